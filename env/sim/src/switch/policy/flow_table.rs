//! State of the recently active flows of a switch.

use rustc_hash::FxHashMap;

use crate::units::{Duration, Instant};

/// State by flow. The state of a flow is forgotten when the flow was idle for longer than
/// `patience`.
///
/// A sweep removes idle flows once per `patience`. So the table holds only flows that sent a packet
/// within twice that time. The time of the sweep has no effect on the results: the state of an idle
/// flow that is still in the table is reset when the flow sends again. A packet costs O(1) on
/// average.
#[derive(Clone, Debug)]
pub(super) struct FlowTable<T> {
    flows: FxHashMap<u32, Entry<T>>,
    patience: Duration,
    next_sweep: Instant,
}

#[derive(Clone, Copy, Debug)]
struct Entry<T> {
    last: Instant,
    state: T,
}

/// A table with a capacity below this does not shrink.
const SMALL: usize = 64;

impl<T: Copy + Default> FlowTable<T> {
    /// Creates an empty table that forgets flows that were idle for longer than `patience`.
    pub(super) fn new(patience: Duration) -> FlowTable<T> {
        FlowTable {
            flows: FxHashMap::default(),
            patience,
            next_sweep: Instant::ZERO,
        }
    }

    /// Notes a packet of `flow`. Returns the state of the flow; a new or forgotten flow has the
    /// default state.
    #[inline]
    pub(super) fn touch(&mut self, flow: u32, now: Instant) -> &mut T {
        if now >= self.next_sweep {
            self.sweep(now);
        }
        let entry = self.flows.entry(flow).or_insert_with(|| Entry {
            last: now,
            state: T::default(),
        });
        if now.saturating_since(entry.last) > self.patience {
            entry.state = T::default();
        }
        entry.last = now;
        &mut entry.state
    }

    #[cold]
    fn sweep(&mut self, now: Instant) {
        let patience = self.patience;
        self.flows
            .retain(|_, entry| now.saturating_since(entry.last) <= patience);
        if self.flows.capacity() > SMALL.max(4 * self.flows.len()) {
            self.flows.shrink_to(2 * self.flows.len());
        }
        self.next_sweep = now.saturating_add(patience);
    }

    /// Returns the number of flows in the table.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.flows.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_forgotten_after_its_time_and_not_before() {
        let mut table = FlowTable::<u32>::new(Duration::from_ms(5));
        *table.touch(1, Instant::ZERO) += 1;
        *table.touch(1, Instant::from_ms(4)) += 1;
        assert_eq!(
            *table.touch(1, Instant::from_ms(9)),
            2,
            "idle for 5 ms, not for longer"
        );
        assert_eq!(*table.touch(2, Instant::from_ms(9)), 0);
        assert_eq!(*table.touch(1, Instant::from_ms(14) + Duration(1)), 0);
    }

    #[test]
    fn idle_flows_take_no_room() {
        let mut table = FlowTable::<u64>::new(Duration::from_ms(5));
        let mut most = 0;
        // A new flow every 10 microseconds: 500 within 5 ms.
        for flow in 0..100_000 {
            let now = Instant::from_us(10 * u64::from(flow));
            *table.touch(flow, now) += 1;
            *table.touch(0, now) += 1;
            most = most.max(table.len());
        }
        assert!((500..=1_003).contains(&most), "{most}");
        assert_eq!(
            *table.touch(0, Instant::from_ms(1_000)),
            100_001,
            "never idle"
        );
        table.touch(0, Instant::from_ms(1_004));
        table.touch(0, Instant::from_ms(1_008));
        table.touch(0, Instant::from_ms(1_012));
        assert_eq!(table.len(), 1);
        assert!(
            table.flows.capacity() <= 2 * SMALL,
            "{}",
            table.flows.capacity()
        );
    }
}
