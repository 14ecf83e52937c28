//! ns-3 and this project's simulator side by side.

use std::error::Error;

use crate::cases::Case;
use crate::metrics::{METRICS, Metric, Run, deviation, mean};
use crate::{reference, simulation};

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
    /// The largest relative difference allowed.
    pub tolerance: Option<f64>,
}

impl Row {
    /// This simulator's mean relative to ns-3's jittered mean or, where there is none, its one run.
    pub fn ratio(&self) -> f64 {
        self.mean / self.ns3_jittered.map_or(self.ns3, |(mean, _)| mean)
    }

    /// Whether the target is met; `None` without a target.
    pub fn met(&self) -> Option<bool> {
        self.tolerance
            .map(|tolerance| (self.ratio() - 1.0).abs() <= tolerance)
    }
}

impl Comparison {
    /// Runs a case once as it is and `jittered` times with jittered start times.
    ///
    /// # Errors
    /// When a file cannot be read, a setting does not exist or a flow does not finish.
    pub fn of(case: &Case, jittered: u64) -> Result<Comparison, Box<dyn Error>> {
        Ok(Comparison {
            case: *case,
            ns3: reference::run(case)?,
            plain: simulation::run(case)?,
            jittered: simulation::jittered_runs(case, jittered)?,
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
        Some(Row {
            metric,
            ns3,
            ns3_jittered: self.case.jittered_reference(metric),
            plain,
            deviation: deviation(&values)?,
            mean: mean(values)?,
            tolerance: self.case.tolerance(metric),
        })
    }
}
