//! Measurement quality of runs in a testbed.

use std::fmt;

use bufgym_sim::scenario::Scenario;
use bufgym_util::convert::floor_u64;
use serde::{Deserialize, Serialize};

use crate::stats;

/// Measurement quality of a run: disturbances by the machine that the scenario does not contain.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Truth {
    /// Median lateness of packets, microseconds.
    pub late_p50_us: f64,
    /// 99th percentile of the lateness of packets, microseconds.
    pub late_p99_us: f64,
    /// Time of a full packet on a line, microseconds.
    pub packet_us: f64,
    /// Share of the time in which the processor of the switch was idle.
    pub cpu_headroom: f64,
    /// Longest time for which the switch stood still, microseconds.
    pub longest_stall_us: f64,
    /// Lateness of the starts of flows, microseconds: 99th percentile.
    pub start_late_p99_us: f64,
    /// Duration of decisions, microseconds: 99th percentile; 0 for rules.
    pub decision_p99_us: f64,
    /// Round trip of a handshake on the idle network, microseconds.
    pub rtt_us: f64,
    /// Round trip by rate and propagation only, microseconds.
    pub rtt_ideal_us: f64,
    /// Load average of the machine before the run, if known.
    pub load_average: Option<f64>,
    /// Runs before this one that lost packets outside the switch and do not count.
    pub void_runs: u64,
}

/// The worst of several runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Worst {
    /// Number of runs.
    pub runs: usize,
    /// The largest median lateness, microseconds.
    pub late_p50_us: f64,
    /// The largest median lateness as a share of a full packet's time.
    pub late_p50_share: f64,
    /// The largest 99th percentile of the lateness, microseconds.
    pub late_p99_us: f64,
    /// The largest 99th percentile of the lateness as a share of a full packet's time.
    pub late_p99_share: f64,
    /// The longest time for which the switch stood still, microseconds.
    pub longest_stall_us: f64,
    /// The largest 99th percentile of the lateness of starts, microseconds.
    pub start_late_p99_us: f64,
    /// The largest 99th percentile of the duration of decisions, microseconds.
    pub decision_p99_us: f64,
    /// The least idle share of the processor of the switch.
    pub cpu_headroom: f64,
    /// The highest load average, if known.
    pub load_average: Option<f64>,
    /// Total number of runs that did not count.
    pub void_runs: u64,
}

impl Worst {
    /// Returns the worst values of these runs.
    pub fn of<'a>(runs: impl IntoIterator<Item = &'a Truth>) -> Worst {
        let first = Worst {
            cpu_headroom: 1.0,
            ..Worst::default()
        };
        runs.into_iter().fold(first, |worst, truth| {
            let share = |late: f64| late / truth.packet_us;
            Worst {
                runs: worst.runs + 1,
                late_p50_us: worst.late_p50_us.max(truth.late_p50_us),
                late_p50_share: worst.late_p50_share.max(share(truth.late_p50_us)),
                late_p99_us: worst.late_p99_us.max(truth.late_p99_us),
                late_p99_share: worst.late_p99_share.max(share(truth.late_p99_us)),
                longest_stall_us: worst.longest_stall_us.max(truth.longest_stall_us),
                start_late_p99_us: worst.start_late_p99_us.max(truth.start_late_p99_us),
                decision_p99_us: worst.decision_p99_us.max(truth.decision_p99_us),
                cpu_headroom: worst.cpu_headroom.min(truth.cpu_headroom),
                load_average: match (worst.load_average, truth.load_average) {
                    (Some(one), Some(other)) => Some(one.max(other)),
                    (one, other) => one.or(other),
                },
                void_runs: worst.void_runs + truth.void_runs,
            }
        })
    }
}

impl fmt::Display for Worst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = |share: f64| share * 100.0;
        write!(
            f,
            "Worst of {} runs, none of which lost a packet outside the switch: packets late by {:.2} µs at \
             the median ({:.2} % of a packet’s time) and {:.0} µs at the 99th percentile ({:.0} %), the \
             switch still for {:.1} ms, flows started {:.1} ms late at the 99th percentile, {:.0} % of the \
             switch’s processor left, load average {}. {}",
            self.runs,
            self.late_p50_us,
            percent(self.late_p50_share),
            self.late_p99_us,
            percent(self.late_p99_share),
            self.longest_stall_us * 1e-3,
            self.start_late_p99_us * 1e-3,
            percent(self.cpu_headroom),
            self.load_average
                .map_or_else(|| "unknown".to_owned(), |load| format!("{load:.1}")),
            match self.void_runs {
                0 => "No run was void.".to_owned(),
                void => format!("{void} void runs were played again."),
            }
        )
    }
}

/// Returns the propagation of a link with which the simulator has the measured round trip, the median over runs,
/// nanoseconds.
pub fn simulated_propagation_ns<'a>(
    scenario: &Scenario,
    runs: impl IntoIterator<Item = &'a Truth>,
) -> u64 {
    let extra = runs
        .into_iter()
        .map(|truth| truth.rtt_us - truth.rtt_ideal_us);
    let mut extra: Vec<f64> = extra.collect();
    extra.sort_by(f64::total_cmp);
    let median = stats::nearest_rank(&extra, 0.5).unwrap_or(0.0);
    // Four links make a round trip.
    scenario.network.propagation_ns + floor_u64((median * 1e3 / 4.0).max(0.0))
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Builds the quality of a run.
    pub fn truth() -> Truth {
        Truth {
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
        }
    }

    #[test]
    fn the_worst_is_the_worst_of_each() {
        let late = Truth {
            late_p99_us: 90.0,
            load_average: None,
            void_runs: 2,
            ..truth()
        };
        let busy = Truth {
            cpu_headroom: 0.25,
            ..truth()
        };
        let worst = Worst::of([&late, &busy]);
        assert_eq!((worst.runs, worst.void_runs), (2, 2));
        assert_eq!((worst.late_p99_us, worst.late_p99_share), (90.0, 1.5));
        assert_eq!((worst.cpu_headroom, worst.load_average), (0.25, Some(1.5)));
        let words = worst.to_string();
        assert!(words.contains("99th percentile (150 %)"), "{words}");
        assert!(words.ends_with("2 void runs were played again."), "{words}");
        assert!(Worst::of([&busy]).to_string().ends_with("No run was void."));
    }

    #[test]
    fn the_simulator_has_the_median_round_trip() {
        let late = |rtt_us: f64| Truth { rtt_us, ..truth() };
        let runs = [late(340.0), late(380.0), late(900.0)];
        let scenario = Scenario::default();
        let propagation_ns = simulated_propagation_ns(&scenario, &runs);
        assert_eq!(propagation_ns, scenario.network.propagation_ns + 20_000);
    }
}
