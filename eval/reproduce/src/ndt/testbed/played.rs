//! The results of a run of the testbed.

use bufgym_eval::testbed::Truth;
use serde::{Deserialize, Serialize};

/// A run in which no packet was lost outside the switch.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Played {
    /// Mean FCT, milliseconds.
    pub mean_fct_ms: f64,
    /// 99th percentile of the FCT, milliseconds.
    pub p99_fct_ms: f64,
    /// Packets that the switch has dropped.
    pub drops: u64,
    /// Expiries of retransmission timers.
    pub timeouts: u64,
    /// Decisions of the learned policy.
    pub decisions: u64,
    /// Measurement quality.
    pub truth: Truth,
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Builds a run with this mean FCT.
    pub fn run(mean_fct_ms: f64) -> Played {
        Played {
            mean_fct_ms,
            p99_fct_ms: 2.0 * mean_fct_ms,
            drops: 7,
            timeouts: 1,
            decisions: 0,
            truth: Truth {
                late_p50_us: 0.5,
                late_p99_us: 30.0,
                packet_us: 60.0,
                cpu_headroom: 0.75,
                longest_stall_us: 900.0,
                start_late_p99_us: 400.0,
                decision_p99_us: 0.0,
                rtt_us: 340.0,
                rtt_ideal_us: 300.0,
                load_average: Some(1.5),
                void_runs: 0,
            },
        }
    }

    #[test]
    fn a_run_comes_back_as_it_was_kept() {
        let mut run = run(12.345_678_9);
        run.truth.load_average = None;
        let text = serde_json::to_string(&run).unwrap();
        assert_eq!(serde_json::from_str::<Played>(&text).unwrap(), run);
    }
}
