//! Two clocks: the time at a node, and the time by which events are ordered.
//!
//! A node's event is due at the **event time** `time + potential(node)`. Hosts have potential 0, a
//! switch next to hosts one propagation delay p, a switch above those p plus the delay between
//! them. A hop from u to v that takes d on the link then lasts
//! `d + potential(v) - potential(u)` of event time, which is zero for hops towards hosts: a packet
//! that leaves a switch towards a host is delivered in the same event. Hops away from hosts take
//! `2 d`. No hop lasts less than zero, so causes stay before effects.

use crate::units::Time;

/// An instant on the clock by which events are ordered, in picoseconds.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct EventTime(pub(crate) u64);

impl EventTime {
    /// The start of the simulation at the hosts.
    pub const ZERO: EventTime = EventTime(0);

    /// The instant at a node; before the start of its clock, its start.
    #[inline]
    pub fn at(self, node: Potential) -> Time {
        Time(self.0.saturating_sub(node.0.0))
    }

    /// The instant at a host.
    #[inline]
    pub fn at_host(self) -> Time {
        Time(self.0)
    }

    /// When it is `time` at a host.
    #[inline]
    pub fn of_host(time: Time) -> EventTime {
        EventTime(time.0)
    }

    /// So much later, at the most at the end of time.
    pub fn saturating_add(self, delay: Time) -> EventTime {
        EventTime(self.0.saturating_add(delay.0))
    }
}

/// How far the event time is ahead of the time at a node.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Debug)]
pub struct Potential(pub(crate) Time);

impl Potential {
    /// Of a node so many links of this delay away from the hosts.
    pub fn of_level(level: u32, propagation: Time) -> Potential {
        Potential(Time(u64::from(level) * propagation.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hops_towards_hosts_take_no_event_time() {
        let delay = Time::from_us(3);
        let [host, leaf, spine] = [0, 1, 2].map(|level| Potential::of_level(level, delay));
        let hop = |from: Potential, to: Potential| (delay.0 + to.0.0) - from.0.0;
        assert_eq!((hop(spine, leaf), hop(leaf, host)), (0, 0));
        assert_eq!(
            (hop(host, leaf), hop(leaf, spine)),
            (2 * delay.0, 2 * delay.0)
        );
        let now = EventTime::of_host(Time::from_us(10));
        assert_eq!(
            (now.at(leaf), now.at(spine)),
            (Time::from_us(7), Time::from_us(4))
        );
        assert_eq!(EventTime::ZERO.at(spine), Time::ZERO);
    }
}
