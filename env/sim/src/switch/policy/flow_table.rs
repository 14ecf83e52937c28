//! State of the recently active flows of a switch.

use crate::units::Time;

/// State by flow. The state of a flow is forgotten when the flow was idle for longer than `patience`.
///
/// Flows are numbered in the order of their starts, so the table is a list that grows to the largest number.
#[derive(Clone, Debug)]
pub(super) struct FlowTable<T> {
    flows: Vec<Entry<T>>,
    patience: Time,
}

#[derive(Clone, Copy, Default, Debug)]
struct Entry<T> {
    last: Time,
    state: T,
}

impl<T: Copy + Default> FlowTable<T> {
    /// Creates an empty table that forgets flows that were idle for longer than `patience`.
    pub(super) fn new(patience: Time) -> FlowTable<T> {
        FlowTable {
            flows: Vec::new(),
            patience,
        }
    }

    /// Notes a packet of `flow`. Returns the state of the flow; a new or forgotten flow has the
    /// default state.
    #[inline]
    pub(super) fn touch(&mut self, flow: u32, now: Time) -> &mut T {
        let place = flow as usize;
        if place >= self.flows.len() {
            self.flows.resize(place + 1, Entry::default());
        }
        let entry = &mut self.flows[place];
        if now.saturating_since(entry.last) > self.patience {
            entry.state = T::default();
        }
        entry.last = now;
        &mut entry.state
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_is_forgotten_after_its_time_and_not_before() {
        let mut table = FlowTable::<u32>::new(Time::from_ms(5));
        *table.touch(1, Time::ZERO) += 1;
        *table.touch(1, Time::from_ms(4)) += 1;
        assert_eq!(
            *table.touch(1, Time::from_ms(9)),
            2,
            "idle for 5 ms, not for longer"
        );
        assert_eq!(*table.touch(2, Time::from_ms(9)), 0);
        assert_eq!(*table.touch(1, Time(Time::from_ms(14).0 + 1)), 0);
    }
}
