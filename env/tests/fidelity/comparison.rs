//! ns-3 and this project's simulator side by side.

use std::error::Error;

use crate::cases::Case;
use crate::metrics::{METRICS, Metric, Run, deviation, mean};
use crate::{reference, simulation};

/// Jittered runs of a comparison.
pub const JITTERED_RUNS: u64 = 16;

/// ns-3's jittered means are over so many runs.
const NS3_JITTERED_RUNS: f64 = 6.0;

/// Both simulators on one case.
pub struct Comparison {
    /// What was run.
    pub case: Case,
    /// ns-3's one run.
    pub ns3: Run,
    /// This simulator on the same list.
    pub plain: Run,
    /// This simulator on the list with jittered start times.
    pub jittered: Vec<Run>,
}

/// One metric of a comparison.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Row {
    /// Which.
    pub metric: Metric,
    /// ns-3's one run.
    pub ns3: f64,
    /// ns-3's mean and standard deviation over jittered runs, where known.
    pub ns3_jittered: Option<(f64, f64)>,
    /// This simulator's one run on the same list.
    pub plain: f64,
    /// Its mean over the jittered runs.
    pub mean: f64,
    /// Its standard deviation over the jittered runs.
    pub deviation: f64,
    /// Of the difference between the two: that of the mean over the jittered runs, and that of
    /// ns-3's figure. One run of ns-3 is taken to spread as much as one of ours.
    pub standard_error: f64,
    /// The largest relative difference allowed.
    pub tolerance: Option<f64>,
}

/// How a metric stands to its target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// Within the tolerance.
    Met,
    /// Beyond it, by less than two standard errors of the difference between the simulators: one
    /// run of ns-3 cannot tell.
    WithinChance,
    /// Beyond it.
    Missed,
}

impl Row {
    /// ns-3's jittered mean or, where there is none, its one run.
    fn reference(&self) -> f64 {
        self.ns3_jittered.map_or(self.ns3, |(mean, _)| mean)
    }

    /// This simulator's mean relative to ns-3's jittered mean or, where there is none, its one run.
    pub fn ratio(&self) -> f64 {
        self.mean / self.reference()
    }

    /// `None` without a target.
    pub fn verdict(&self) -> Option<Verdict> {
        let difference = (self.mean - self.reference()).abs();
        let allowed = self.tolerance? * self.reference();
        Some(if difference <= allowed {
            Verdict::Met
        } else if difference <= allowed + 2.0 * self.standard_error {
            Verdict::WithinChance
        } else {
            Verdict::Missed
        })
    }
}

impl Comparison {
    /// Runs a case once as it is and [`JITTERED_RUNS`] times with jittered start times.
    ///
    /// # Errors
    /// When a file cannot be read, a setting does not exist or a flow does not finish.
    pub fn of(case: &Case) -> Result<Comparison, Box<dyn Error>> {
        Ok(Comparison {
            case: *case,
            ns3: reference::run(case)?,
            plain: simulation::run(case)?,
            jittered: simulation::jittered_runs(case, JITTERED_RUNS)?,
        })
    }

    /// The metrics that the case has.
    pub fn rows(&self) -> Vec<Row> {
        METRICS
            .into_iter()
            .filter_map(|metric| self.row(metric))
            .collect()
    }

    fn row(&self, metric: Metric) -> Option<Row> {
        let ns3 = self.ns3.metric(metric)?;
        let plain = self.plain.metric(metric)?;
        if metric == Metric::Marks && ns3 == 0.0 && plain == 0.0 {
            return None;
        }
        let values: Vec<f64> = self
            .jittered
            .iter()
            .filter_map(|run| run.metric(metric))
            .collect();
        let spread = deviation(&values)?;
        let ns3_jittered = self.case.jittered_reference(metric);
        let ns3_error =
            ns3_jittered.map_or(spread, |(_, spread)| spread / NS3_JITTERED_RUNS.sqrt());
        Some(Row {
            metric,
            ns3,
            ns3_jittered,
            plain,
            deviation: spread,
            standard_error: ns3_error.hypot(spread / (values.len() as f64).sqrt()),
            mean: mean(values)?,
            tolerance: self.case.tolerance(metric),
        })
    }
}
