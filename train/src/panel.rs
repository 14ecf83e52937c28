//! Fixed traces with DT's results on them: what controllers are measured on.

use std::ops::Range;
use std::time::{Duration, Instant};

use bufgym_env::control::{BasePolicy, ControlOptions, Controller, RunOptions, run_controlled};
use bufgym_eval::metric::{Comparison, IsolatedPorts, Metric, Sample, compare};
use bufgym_sim::network::SimError;
use bufgym_sim::rng::{Split, trace_seed};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::PolicySpec;
use bufgym_sim::traffic::{Trace, generate};
use rayon::prelude::*;

/// Traces of one split, each with DT's (α = 1) result by the metric.
#[derive(Debug)]
pub struct Panel {
    scenario: Scenario,
    metric: Metric,
    traces: Vec<PanelTrace>,
}

#[derive(Debug)]
struct PanelTrace {
    trace: Trace,
    /// Where the metric is about ports.
    ports: Option<IsolatedPorts>,
    /// DT's.
    baseline: Sample,
}

impl Panel {
    /// Generates the traces with these indices of a split and runs DT on them, in parallel on the
    /// current pool.
    ///
    /// # Errors
    /// When the scenario makes no sense.
    pub fn new(
        scenario: &Scenario,
        metric: Metric,
        split: Split,
        seed: u64,
        indices: Range<u64>,
    ) -> Result<Panel, SimError> {
        scenario.validate()?;
        let traces = indices
            .into_par_iter()
            .map(|index| {
                let trace = generate(scenario, trace_seed(split, seed, index));
                PanelTrace::new(metric, scenario, trace)
            })
            .collect::<Result<_, SimError>>()?;
        Ok(Panel {
            scenario: scenario.clone(),
            metric,
            traces,
        })
    }

    /// Number of traces.
    pub fn traces(&self) -> u64 {
        self.traces.len() as u64
    }

    /// What controllers are measured by.
    pub fn metric(&self) -> Metric {
        self.metric
    }

    /// Runs every controller on every trace, in parallel on the current pool. Samples by
    /// controller, then by trace; and the time spent on all threads together. The result does not
    /// depend on the number of threads.
    ///
    /// # Errors
    /// When the heuristic does not fit the scenario.
    pub fn run<C: Controller + Clone + Sync>(
        &self,
        controllers: &[C],
        low_level: &BasePolicy,
    ) -> Result<(Vec<Vec<Sample>>, Duration), SimError> {
        let options = RunOptions {
            control: ControlOptions {
                low_level: low_level.clone(),
                ..ControlOptions::default()
            },
            ..RunOptions::default()
        };
        let total = controllers.len() * self.traces.len();
        let measured = (0..total)
            .into_par_iter()
            .map(|run| {
                let start = Instant::now();
                let known = &self.traces[run % self.traces.len()];
                let mut controller = controllers[run / self.traces.len()].clone();
                let (scenario, trace) = (&self.scenario, &known.trace);
                let outcome = run_controlled(scenario, trace, &mut controller, &options)?;
                let sample = Sample::of(self.metric, &outcome, known.ports.as_ref());
                Ok((sample, start.elapsed()))
            })
            .collect::<Result<Vec<(Sample, Duration)>, SimError>>()?;
        let busy = measured.iter().map(|(_, busy)| busy).sum();
        let samples = measured
            .chunks(self.traces.len().max(1))
            .map(|samples| samples.iter().map(|(sample, _)| *sample).collect())
            .collect();
        Ok((samples, busy))
    }

    /// One controller's samples against DT's.
    pub fn compare(&self, samples: &[Sample], resamples: usize) -> Comparison {
        let baseline: Vec<Sample> = self.traces.iter().map(|known| known.baseline).collect();
        compare(self.metric, samples, &baseline, resamples)
    }
}

impl PanelTrace {
    /// Runs DT on the trace, and the ports one by one where the metric is about them.
    fn new(metric: Metric, scenario: &Scenario, trace: Trace) -> Result<PanelTrace, SimError> {
        let ports = metric.isolated_ports(scenario, &trace)?;
        let mut simulator = PolicySpec::baseline().simulator(scenario, &trace)?;
        simulator.measure_waits();
        let outcome = simulator.run();
        let baseline = Sample::of(metric, &outcome, ports.as_ref());
        Ok(PanelTrace {
            trace,
            ports,
            baseline,
        })
    }
}
