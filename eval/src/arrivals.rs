//! Distinguishes traces whose flows start one by one from traces whose flows start in groups, with results
//! for both.

use bufgym_sim::traffic::Trace;
use serde::{Deserialize, Serialize};

use crate::data::TraceResult;
use crate::stats::{self, Estimate};

/// Arrival pattern of the flows of a trace (`arrivals` of a scenario). With `mixed`, a trace is one or the
/// other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Arrivals {
    /// Every flow starts independently.
    #[default]
    Spread,
    /// Flows start together in groups.
    Synchronised,
}

impl Arrivals {
    /// Both patterns, in the order of tables.
    pub const ALL: [Arrivals; 2] = [Arrivals::Spread, Arrivals::Synchronised];

    /// Returns the pattern of a trace: in synchronised traces, flows have group numbers.
    pub fn of(trace: &Trace) -> Arrivals {
        match trace.flows.iter().any(|flow| flow.query >= 0) {
            true => Arrivals::Synchronised,
            false => Arrivals::Spread,
        }
    }

    /// Returns the word for tables.
    pub fn name(self) -> &'static str {
        match self {
            Arrivals::Spread => "spread",
            Arrivals::Synchronised => "synchronised",
        }
    }
}

/// The mean FCT of one policy on the traces of one kind of arrivals.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ByArrivals {
    /// The kind.
    pub arrivals: Arrivals,
    /// Traces of that kind that every policy finished.
    pub traces: u64,
    /// Mean over them of the mean FCT, ms.
    pub mean_fct_ms: Option<f64>,
    /// Mean over them of mean FCT / mean FCT of DT (α = 1).
    pub ratio_to_dt: Option<Estimate>,
}

impl ByArrivals {
    /// Returns one entry for every kind among `results` of one policy; none if all are of one kind.
    pub(crate) fn split(results: &[&TraceResult], resamples: usize, seed: u64) -> Vec<ByArrivals> {
        let of_kind = |arrivals: Arrivals| {
            let own: Vec<&TraceResult> = results
                .iter()
                .copied()
                .filter(|result| result.arrivals == arrivals)
                .collect();
            let ratios: Vec<f64> = own.iter().filter_map(|r| r.ratio_to_dt).collect();
            ByArrivals {
                arrivals,
                traces: own.len() as u64,
                mean_fct_ms: stats::finite_mean(own.iter().filter_map(|r| r.all_flows.mean_fct_ms)),
                ratio_to_dt: stats::bootstrap_mean(&ratios, resamples, seed),
            }
        };
        let kinds = Arrivals::ALL.map(of_kind);
        match kinds.iter().all(|kind| kind.traces > 0) {
            true => kinds.into(),
            false => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use bufgym_sim::scenario::Scenario;
    use bufgym_sim::traffic::generate;

    use super::*;
    use crate::{summary, synthetic};

    #[test]
    fn generated_traces_are_told_apart() {
        for arrivals in Arrivals::ALL {
            let mut scenario = Scenario::default();
            let setting = format!("arrivals={}", arrivals.name());
            scenario.set(&setting).unwrap();
            for seed in 1..20 {
                assert_eq!(Arrivals::of(&generate(&scenario, seed)), arrivals);
            }
        }
    }

    #[test]
    fn each_kind_has_its_own_mean() {
        let (_, mut results) =
            synthetic::from_means(&[("dt", &[10.0, 20.0, 10.0]), ("cs", &[8.0, 30.0, 10.0])]);
        for result in &mut results {
            if result.trace == 1 {
                result.arrivals = Arrivals::Synchronised;
            }
        }
        summary::fill_ratios(&mut results);
        let cs: Vec<&TraceResult> = results.iter().filter(|r| r.policy == "cs").collect();
        let [spread, synchronised] = &ByArrivals::split(&cs, 100, 1)[..] else {
            panic!("two kinds")
        };
        assert_eq!((spread.traces, synchronised.traces), (2, 1));
        assert_eq!(spread.ratio_to_dt.unwrap().centre, 0.9);
        assert_eq!(synchronised.ratio_to_dt.unwrap().centre, 1.5);
        assert_eq!(spread.mean_fct_ms, Some(9.0));
        assert_eq!(ByArrivals::split(&cs[..1], 100, 1), []);
    }
}
