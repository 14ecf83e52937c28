//! The order in which an environment plays traces.

use bufgym_util::rng::{Split, trace_seed};

use super::EnvError;

/// The traces `start`, `start + stride`, `start + 2·stride`, … of a split, endless or wrapped
/// around after `traces` of them.
///
/// ```
/// use bufgym_env::gym::TraceSequence;
///
/// // Worker 1 of 4 takes every fourth trace.
/// let worker = TraceSequence::default().worker(1, 4);
/// assert_eq!((worker.index(0), worker.index(1)), (1, 5));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceSequence {
    /// Training, validation or test traces.
    pub split: Split,
    /// Seed of the experiment. With the split and the index it determines a trace.
    pub seed: u64,
    /// Index of the first trace.
    pub start: u64,
    /// Difference between an index and the next; at least 1.
    pub stride: u64,
    /// Indices are taken modulo this number; `None` plays without end.
    pub traces: Option<u64>,
}

impl Default for TraceSequence {
    /// Returns all training traces of seed 0 in order.
    fn default() -> TraceSequence {
        TraceSequence {
            split: Split::Train,
            seed: 0,
            start: 0,
            stride: 1,
            traces: None,
        }
    }
}

impl TraceSequence {
    /// The share of worker `worker` of `workers`: every `workers`-th trace of this sequence,
    /// beginning with number `worker`. The shares of all workers are disjoint and together the
    /// whole, as long as the sequence does not wrap around.
    pub fn worker(self, worker: u64, workers: u64) -> TraceSequence {
        TraceSequence {
            start: self.start.wrapping_add(worker.wrapping_mul(self.stride)),
            stride: self.stride.wrapping_mul(workers),
            ..self
        }
    }

    /// Index in the split of the `n`-th trace of the sequence.
    pub fn index(&self, n: u64) -> u64 {
        let index = self.start.wrapping_add(n.wrapping_mul(self.stride));
        self.traces.map_or(index, |traces| index % traces.max(1))
    }

    /// Seed of the trace with this index in the split.
    pub fn trace_seed(&self, index: u64) -> u64 {
        trace_seed(self.split, self.seed, index)
    }

    /// Returns the number of traces that the sequence plays before it repeats itself; `None` if it never does.
    pub fn period(&self) -> Option<u64> {
        let traces = self.traces?.max(1);
        Some(traces / gcd(traces, self.stride))
    }

    pub(super) fn validate(&self) -> Result<(), EnvError> {
        if self.stride == 0 {
            return Err(EnvError::Options(
                "stride = 0: every reset would play the same trace; the stride is at least 1"
                    .to_owned(),
            ));
        }
        if self.traces == Some(0) {
            return Err(EnvError::Options(
                "traces = 0: there has to be at least one trace".to_owned(),
            ));
        }
        Ok(())
    }
}

fn gcd(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workers_share_the_traces_without_overlap() {
        let base = TraceSequence {
            start: 10,
            stride: 2,
            ..TraceSequence::default()
        };
        let mut indices: Vec<u64> = (0..3)
            .flat_map(|w| (0..4).map(move |n| base.worker(w, 3).index(n)))
            .collect();
        indices.sort_unstable();
        assert_eq!(indices, (0..12).map(|n| base.index(n)).collect::<Vec<_>>());
    }

    #[test]
    fn a_bounded_sequence_wraps_around() {
        let sequence = TraceSequence {
            traces: Some(5),
            stride: 2,
            ..TraceSequence::default()
        };
        assert_eq!(
            (0..6).map(|n| sequence.index(n)).collect::<Vec<_>>(),
            [0, 2, 4, 1, 3, 0]
        );
        assert_eq!(sequence.period(), Some(5));
        assert_eq!(
            TraceSequence {
                traces: Some(6),
                ..sequence
            }
            .period(),
            Some(3)
        );
        assert_eq!(TraceSequence::default().period(), None);
    }

    #[test]
    fn seeds_depend_on_split_seed_and_index() {
        let train = TraceSequence::default();
        let seed = train.trace_seed(1);
        assert_ne!(seed, train.trace_seed(2));
        assert_ne!(seed, TraceSequence { seed: 1, ..train }.trace_seed(1));
        assert_ne!(
            seed,
            TraceSequence {
                split: Split::Test,
                ..train
            }
            .trace_seed(1)
        );
    }

    #[test]
    fn sequences_that_make_no_sense_are_refused() {
        let no_stride = TraceSequence {
            stride: 0,
            ..TraceSequence::default()
        };
        assert!(
            no_stride
                .validate()
                .unwrap_err()
                .to_string()
                .starts_with("stride = 0")
        );
        let empty = TraceSequence {
            traces: Some(0),
            ..TraceSequence::default()
        };
        assert!(
            empty
                .validate()
                .unwrap_err()
                .to_string()
                .starts_with("traces = 0")
        );
    }
}
