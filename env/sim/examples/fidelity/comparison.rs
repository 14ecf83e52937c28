//! ns-3 and this project's simulator side by side.

use std::error::Error;

use bufgym_sim::rng::{below, stream};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::traffic::Trace;
use bufgym_sim::units::Duration;
use bufgym_util::convert::index;

use crate::cases::Case;
use crate::metrics::{METRICS, Metric, Spread};
use crate::run::Run;
use crate::{jittered_reference, reference, simulation};

/// Jittered runs of a comparison.
pub const JITTERED_RUNS: u64 = 32;

/// Start times are moved by up to this much, nanoseconds.
pub const JITTER_NS: u64 = 20_000;

/// Both simulators on one case.
pub struct Comparison {
    /// The case that was run.
    pub case: Case,
    /// ns-3's one run.
    pub ns3: Run,
    /// This simulator on the same list.
    pub here: Run,
    /// This simulator on the list with jittered start times.
    pub jittered: Vec<Run>,
}

/// One metric of a comparison.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Row {
    /// Metric of the row.
    pub metric: Metric,
    /// ns-3's one run.
    pub ns3: f64,
    /// This simulator's one run on the same list.
    pub here: f64,
    /// This simulator's jittered runs.
    pub jittered: Spread,
    /// ns-3's jittered runs, if known.
    pub ns3_jittered: Option<Spread>,
}

impl Comparison {
    /// Runs a case once as it is and [`JITTERED_RUNS`] times with jittered start times.
    ///
    /// # Errors
    /// When a file cannot be read, a setting does not exist or a flow does not finish.
    pub fn of(case: &Case) -> Result<Comparison, Box<dyn Error>> {
        let (scenario, flows) = (case.scenario()?, reference::flows(case.network, case.list)?);
        Ok(Comparison {
            case: *case,
            ns3: reference::run(case)?,
            here: simulation::run(case, &scenario, &flows)?,
            jittered: jittered_runs(case, &scenario, &flows)?,
        })
    }

    /// Returns the metrics that the case has.
    pub fn rows(&self) -> Vec<Row> {
        METRICS
            .into_iter()
            .filter_map(|metric| self.row(metric))
            .collect()
    }

    fn row(&self, metric: Metric) -> Option<Row> {
        Some(Row {
            metric,
            ns3: metric.of(&self.ns3)?,
            here: metric.of(&self.here)?,
            jittered: Spread::over(&self.jittered, metric)?,
            ns3_jittered: jittered_reference::of(&self.case, metric),
        })
    }
}

/// Runs the list `JITTERED_RUNS` times, each time with differently jittered start times. Results are in
/// the order of the seeds, whatever the number of threads.
///
/// # Errors
/// When the scenario cannot be built or a flow does not finish.
pub fn jittered_runs(
    case: &Case,
    scenario: &Scenario,
    flows: &Trace,
) -> Result<Vec<Run>, Box<dyn Error>> {
    let run = |seed| {
        let outcome = simulation::run(case, scenario, &jittered(flows, seed));
        outcome.map_err(|error| error.to_string())
    };
    let threads = std::thread::available_parallelism()?.get() as u64;
    let runs_of = |thread| (thread..JITTERED_RUNS).step_by(index(threads)).map(run);
    let mut runs = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|thread| scope.spawn(move || runs_of(thread).collect::<Vec<_>>().into_iter()))
            .collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, _>| worker.join();
        workers.into_iter().map(join).collect::<Result<Vec<_>, _>>()
    })
    .map_err(|_| "a run panicked")?;
    (0..JITTERED_RUNS)
        .filter_map(|seed| runs[index(seed % threads)].next())
        .collect::<Result<_, _>>()
        .map_err(Into::into)
}

fn jittered(flows: &Trace, seed: u64) -> Trace {
    let mut rng = stream(seed, "fidelity jitter", 0);
    let mut jittered = flows.clone();
    for flow in &mut jittered.flows {
        flow.start += Duration::from_ns(below(&mut rng, JITTER_NS + 1));
    }
    jittered
}
