//! The results of a run of the testbed, and the measurement quality of all runs of a figure.

use std::fmt;

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
    /// The least idle share of the processor of the switch.
    pub cpu_headroom: f64,
    /// The highest load average, if known.
    pub load_average: Option<f64>,
    /// Total number of runs that did not count.
    pub void_runs: u64,
}

impl Worst {
    /// Returns the worst values of these runs.
    pub fn of<'a>(runs: impl IntoIterator<Item = &'a Played>) -> Worst {
        let first = Worst {
            cpu_headroom: 1.0,
            ..Worst::default()
        };
        runs.into_iter().fold(first, |worst, run| {
            let truth = &run.truth;
            let share = |late: f64| late / truth.packet_us;
            Worst {
                runs: worst.runs + 1,
                late_p50_us: worst.late_p50_us.max(truth.late_p50_us),
                late_p50_share: worst.late_p50_share.max(share(truth.late_p50_us)),
                late_p99_us: worst.late_p99_us.max(truth.late_p99_us),
                late_p99_share: worst.late_p99_share.max(share(truth.late_p99_us)),
                longest_stall_us: worst.longest_stall_us.max(truth.longest_stall_us),
                start_late_p99_us: worst.start_late_p99_us.max(truth.start_late_p99_us),
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
    fn the_worst_is_the_worst_of_each() {
        let mut late = run(3.0);
        late.truth.late_p99_us = 90.0;
        late.truth.load_average = None;
        late.truth.void_runs = 2;
        let mut busy = run(4.0);
        busy.truth.cpu_headroom = 0.25;
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
    fn a_run_comes_back_as_it_was_kept() {
        let mut run = run(12.345_678_9);
        run.truth.load_average = None;
        let text = serde_json::to_string(&run).unwrap();
        assert_eq!(serde_json::from_str::<Played>(&text).unwrap(), run);
    }
}
