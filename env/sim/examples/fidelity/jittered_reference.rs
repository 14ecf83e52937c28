//! ns-3 3.37 on the mixed list, six times with start times jittered by up to 20 µs.

use crate::cases::{Case, List};
use crate::metrics::{METRICS, Metric, Spread};

const RUNS: usize = 6;

struct Jittered {
    policy: &'static str,
    min_rto_ms: u64,
    /// Mean and standard deviation, in the order of [`METRICS`].
    milliseconds: [(f64, f64); 6],
}

/// Returns ns-3's runs of a case, if they are known.
pub fn of(case: &Case, metric: Metric) -> Option<Spread> {
    let row = JITTERED.iter().find(|row| {
        case.list == List::Mixed
            && case.transport == "newreno"
            && (row.policy, row.min_rto_ms) == (case.policy, case.min_rto_ms)
    })?;
    let column = METRICS.iter().position(|known| *known == metric)?;
    let &(mean, deviation) = row.milliseconds.get(column)?;
    Some(Spread {
        mean,
        deviation,
        runs: RUNS,
    })
}

const JITTERED: [Jittered; 3] = [
    Jittered {
        policy: "dt1",
        min_rto_ms: 10,
        milliseconds: [
            (29.92, 0.28),
            (4.24, 0.10),
            (374.0, 18.0),
            (2.54, 0.06),
            (116.5, 1.1),
            (4.70, 0.27),
        ],
    },
    Jittered {
        policy: "st",
        min_rto_ms: 10,
        milliseconds: [
            (31.16, 0.12),
            (3.77, 0.13),
            (447.0, 10.0),
            (2.15, 0.08),
            (121.4, 0.4),
            (6.37, 0.66),
        ],
    },
    Jittered {
        policy: "dt1",
        min_rto_ms: 200,
        milliseconds: [
            (33.89, 1.10),
            (4.28, 0.11),
            (409.0, 19.0),
            (3.10, 0.46),
            (125.1, 2.0),
            (9.91, 3.97),
        ],
    },
];
