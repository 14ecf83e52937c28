//! Inputs of the thresholds of one side of a switch, ingress or egress, apart from lengths: the
//! congested queues, the drain rate of each, and filtered lengths.

use crate::scenario::Congested;
use crate::units::{Duration, Instant, Rate};

/// Length from which a queue counts fully as congested, bytes: 20 packets of 1,024 B.
const CONGESTED: f64 = 20_480.0;

/// Largest number of bytes in an interval for which a queue counts as one that drains at the rate of
/// its line.
const HARDLY_ANYTHING: u64 = 2_048;

/// Parts in which a congested queue is counted, so that sums are exact.
const WHOLE: f64 = (1u64 << 40) as f64;

/// Share of its threshold from which a queue counts as congested (ABM, SIGCOMM 2022, §3.3).
const NEARLY: f64 = 0.9;

/// State of a queue.
#[derive(Clone, Copy, Default, Debug)]
struct QueueState {
    /// The filtered length, bytes.
    filtered: f64,
    /// Degree to which the queue counts as congested, in parts of `WHOLE`.
    share: u64,
    /// Threshold of the queue when it was last computed.
    threshold: f64,
    drain: Drain,
}

/// Bytes that have left a queue in the present and in the last interval.
#[derive(Clone, Copy, Default, Debug)]
struct Drain {
    interval: u64,
    bytes: u64,
    before: u64,
}

impl Drain {
    fn settle(&mut self, interval: u64) {
        if interval > self.interval {
            let next = interval == self.interval + 1;
            self.before = if next { self.bytes } else { 0 };
            self.bytes = 0;
            self.interval = interval;
        }
    }
}

/// The queues of one side, grouped by port.
#[derive(Clone, Debug)]
pub(super) struct Side {
    queues: Box<[QueueState]>,
    /// Shares by priority.
    sums: Box<[u64]>,
    congested: Congested,
    /// Interval in which drained bytes are counted.
    interval: Duration,
    /// Rate of every port.
    rates: Box<[Rate]>,
}

impl Side {
    pub(super) fn new(
        rates: &[Rate],
        priorities: usize,
        congested: Congested,
        interval: Duration,
    ) -> Side {
        Side {
            queues: vec![QueueState::default(); rates.len() * priorities].into_boxed_slice(),
            sums: vec![0; priorities].into_boxed_slice(),
            congested,
            interval: interval.max(Duration(1)),
            rates: rates.into(),
        }
    }

    fn priorities(&self) -> usize {
        self.sums.len()
    }

    /// Updates the degree of congestion of the queue from `length`.
    pub(super) fn observe(&mut self, queue: usize, length: f64) {
        let share = bufgym_util::convert::floor_u64((length / CONGESTED).min(1.0) * WHOLE);
        let before = std::mem::replace(&mut self.queues[queue].share, share);
        let priority = queue % self.sums.len();
        let sum = &mut self.sums[priority];
        *sum = *sum - before + share;
    }

    /// Returns n_p of the queue's priority: `max(1, Σ min(1, x / 20,480))`, or the number of queues
    /// with at least nine tenths of their last thresholds.
    pub(super) fn congestion(&self, queue: usize) -> f64 {
        let priority = queue % self.priorities();
        match self.congested {
            Congested::Sum => (self.sums[priority] as f64 / WHOLE).max(1.0),
            Congested::Abm => {
                let of_priority = self.queues.iter().skip(priority).step_by(self.priorities());
                let long = of_priority
                    .filter(|state| state.filtered > 0.0)
                    .filter(|state| state.filtered >= NEARLY * state.threshold);
                (long.count() as f64).max(1.0)
            }
        }
    }

    pub(super) fn filtered(&self, queue: usize) -> f64 {
        self.queues[queue].filtered
    }

    /// Returns the threshold that was noted last.
    pub(super) fn threshold(&self, queue: usize) -> f64 {
        self.queues[queue].threshold
    }

    /// Notes the threshold that was computed, and returns it.
    pub(super) fn note(&mut self, queue: usize, threshold: f64) -> f64 {
        self.queues[queue].threshold = threshold;
        threshold
    }

    /// Updates the filtered length when a packet has left the queue, which now holds `length` bytes:
    /// `f ← min(γ f + (1 - γ) q, q)`. If `whole`, bytes are not divided.
    pub(super) fn filter(&mut self, queue: usize, length: u64, gamma: f64, whole: bool) {
        let length = length as f64;
        let state = &mut self.queues[queue];
        let mixed = gamma * state.filtered + (1.0 - gamma) * length;
        let mixed = if whole { mixed.floor() } else { mixed };
        state.filtered = mixed.min(length);
        let filtered = state.filtered;
        self.observe(queue, filtered);
    }

    /// Counts `bytes` bytes that have left the queue.
    pub(super) fn drain(&mut self, queue: usize, bytes: u64, now: Instant) {
        let interval = now.0 / self.interval.0;
        let drain = &mut self.queues[queue].drain;
        drain.settle(interval);
        drain.bytes += bytes;
    }

    /// Returns μ: the bytes that have left a queue of `length` bytes in the last whole interval, as a
    /// share of the capacity of its line. It is 1 for a short queue, and for one from which hardly
    /// anything has left, because it may be paused.
    pub(super) fn drain_rate(&mut self, queue: usize, length: u64, now: Instant) -> f64 {
        let interval = now.0 / self.interval.0;
        let rate = self.rates[queue / self.priorities()];
        let drain = &mut self.queues[queue].drain;
        drain.settle(interval);
        if length as f64 <= CONGESTED || drain.before <= HARDLY_ANYTHING {
            return 1.0;
        }
        let whole = rate.0 as f64 * self.interval.0 as f64 / 8e12;
        (drain.before as f64 / whole).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate(25_000_000_000);

    fn side(congested: Congested) -> Side {
        Side::new(&[RATE; 3], 2, congested, Duration::from_ns(17_280))
    }

    /// Half of one queue and all of another count; queues of the other priority do not.
    #[test]
    fn queues_count_as_congested_in_part() {
        let mut side = side(Congested::Sum);
        assert_eq!(side.congestion(1), 1.0);
        side.observe(1, 10_240.0);
        side.observe(3, 30_000.0);
        side.observe(4, 50_000.0);
        assert_eq!((side.congestion(5), side.congestion(0)), (1.5, 1.0));
        side.observe(3, 0.0);
        assert_eq!(side.congestion(1), 1.0);
    }

    #[test]
    fn or_where_they_are_near_their_thresholds() {
        let mut side = side(Congested::Abm);
        for (queue, length) in [(0, 9_000), (2, 8_999), (4, 10_000)] {
            side.filter(queue, length, 0.0, false);
            side.note(queue, 10_000.0);
        }
        assert_eq!((side.congestion(0), side.congestion(1)), (2.0, 1.0));
    }

    /// The line carries 54,000 B in an interval. Only the last whole interval counts.
    #[test]
    fn queues_drain_at_a_share_of_their_line() {
        let mut side = side(Congested::Sum);
        let at = |us| Instant::from_us(us);
        side.drain(0, 27_000, at(1));
        assert_eq!(side.drain_rate(0, 30_000, at(2)), 1.0, "nothing before");
        assert_eq!(side.drain_rate(0, 30_000, at(18)), 0.5);
        assert_eq!(side.drain_rate(0, 20_480, at(18)), 1.0, "a short queue");
        side.drain(0, 2_048, at(18));
        assert_eq!(side.drain_rate(0, 30_000, at(36)), 1.0, "as good as paused");
        side.drain(0, 99_000, at(36));
        assert_eq!(
            side.drain_rate(0, 30_000, at(55)),
            1.0,
            "no more than the line"
        );
        assert_eq!(side.drain_rate(0, 30_000, at(90)), 1.0, "long ago");
    }
}
