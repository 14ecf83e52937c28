//! Two clocks: the time at a node, and the time by which events are ordered.
//!
//! A node's event is due at the **event time** `time + offset(node)`. Hosts have a clock offset of 0, a
//! single switch one propagation delay. A hop from u to v that takes d on the link then lasts
//! `d + offset(v) - offset(u)` of event time, which is zero for hops to hosts: a packet
//! that leaves the switch is delivered in the same event. Hops to the switch take `2 d`. No hop lasts
//! less than zero, so causes stay before effects. In a network of several switches all offsets
//! are zero: there the order of simultaneous events at different nodes counts.

use crate::units::{Duration, Instant};

/// An instant on the clock by which events are ordered, in picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct EventTime(pub(crate) u64);

impl EventTime {
    /// The start of the simulation at the hosts.
    pub const ZERO: EventTime = EventTime(0);

    /// Returns the time at a node. It is zero before the node's clock starts.
    #[inline]
    pub fn at(self, node: ClockOffset) -> Instant {
        Instant(self.0.saturating_sub(node.0.0))
    }

    /// Returns the time at a host.
    #[inline]
    pub fn at_host(self) -> Instant {
        Instant(self.0)
    }

    /// Returns the event time at which it is `time` at a host.
    #[inline]
    pub fn of_host(time: Instant) -> EventTime {
        EventTime(time.0)
    }

    /// Adds a delay. Saturates at the end of time.
    pub fn saturating_add(self, delay: Duration) -> EventTime {
        EventTime(self.0.saturating_add(delay.0))
    }
}

/// Offset by which the event time is ahead of the time at a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct ClockOffset(pub(crate) Duration);

impl ClockOffset {
    /// Returns the clock offset of a node with this propagation delay to the hosts.
    pub fn of(propagation: Duration) -> ClockOffset {
        ClockOffset(propagation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hops_towards_hosts_take_no_event_time() {
        let delay = Duration::from_us(3);
        let [host, switch] = [Duration::ZERO, delay].map(ClockOffset::of);
        let hop = |from: ClockOffset, to: ClockOffset| (delay.0 + to.0.0) - from.0.0;
        assert_eq!((hop(switch, host), hop(host, switch)), (0, 2 * delay.0));
        let now = EventTime::of_host(Instant::from_us(10));
        assert_eq!(
            (now.at(host), now.at(switch)),
            (Instant::from_us(10), Instant::from_us(7))
        );
        assert_eq!(EventTime::ZERO.at(switch), Instant::ZERO);
    }
}
