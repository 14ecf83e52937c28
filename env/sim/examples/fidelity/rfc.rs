//! Senders by the RFCs, the default, on the same lists.

use std::error::Error;

use bufgym_sim::scenario::{Scenario, ScenarioError};

use crate::cases::{Case, List};
use crate::comparison::{Comparison, jittered_runs};
use crate::metrics::{Metric, Spread};
use crate::reference;

/// The metrics shown.
pub const SHOWN: [Metric; 6] = [
    Metric::Mean,
    Metric::P50,
    Metric::P99,
    Metric::InCast,
    Metric::Forwarded,
    Metric::Drops,
];

/// RFC senders relative to ns-3's.
pub struct Deviation {
    /// The list, the policy and the transport.
    pub case: Case,
    /// Settings that differ from ns-3's senders.
    pub settings: Vec<String>,
    /// Ratios of [`SHOWN`]: means over jittered runs, each with its standard error.
    pub ratios: Vec<(f64, f64)>,
}

/// Returns the variants of a case. ns-3's CUBIC always has HyStart, which is an option here.
fn variants(case: &Case) -> Vec<Vec<String>> {
    let rfc = vec![
        format!("transport={}", case.transport),
        "recovery=rfc".to_owned(),
    ];
    if case.transport != "cubic" {
        return vec![rfc];
    }
    let mut with_hystart = rfc.clone();
    with_hystart.push("hystart=true".to_owned());
    vec![rfc, with_hystart]
}

fn scenario(case: &Case, settings: &[String]) -> Result<Scenario, ScenarioError> {
    let mut scenario = Scenario::preset("ns3-16x1g")?;
    for setting in case.settings().iter().chain(settings) {
        scenario.set(setting)?;
    }
    scenario.validate()?;
    Ok(scenario)
}

impl Deviation {
    /// Runs every mixed case with RFC senders, on the same jittered lists.
    ///
    /// # Errors
    /// When a file cannot be read, a setting does not exist or a flow does not finish.
    pub fn all(comparisons: &[Comparison]) -> Result<Vec<Deviation>, Box<dyn Error>> {
        let mut deviations = Vec::new();
        for comparison in comparisons {
            if comparison.case.list == List::Mixed {
                for settings in variants(&comparison.case) {
                    deviations.push(Deviation::of(comparison, settings)?);
                }
            }
        }
        Ok(deviations)
    }

    fn of(comparison: &Comparison, settings: Vec<String>) -> Result<Deviation, Box<dyn Error>> {
        let case = comparison.case;
        let scenario = scenario(&case, &settings)?;
        let runs = jittered_runs(
            &case,
            &scenario,
            &reference::flows(case.network, case.list)?,
        )?;
        let ratio = |metric| {
            let as_ns3 = Spread::over(&comparison.jittered, metric)?;
            Some(Spread::over(&runs, metric)?.relative_to(&as_ns3))
        };
        Ok(Deviation {
            case,
            settings,
            ratios: SHOWN.into_iter().filter_map(ratio).collect(),
        })
    }
}
