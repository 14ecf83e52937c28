//! Hosts that take a varying time for a packet (`host_jitter_ns`).
//!
//! If all hosts answer at once, packets of one size on lines of one rate reach a full queue in the same
//! order again and again. Some flows then lose nothing while others lose all that they send, until
//! their timers expire: phase effects (Floyd and Jacobson, *On traffic phase effects in
//! packet-switched gateways*, 1992, who also add a random time at the hosts). A real host takes some
//! microseconds for a packet, and a different time for each.

use std::collections::VecDeque;

use bufgym_util::rng::{below, stream};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{HostObserver, Hosts};
use crate::engine::Engine;
use crate::engine::event::Timer;
use crate::engine::packet::PacketId;
use crate::engine::topology::Topology;
use crate::units::{Duration, Instant};

/// Packets that have reached hosts but that the hosts have not taken yet.
#[derive(Clone, Debug)]
pub(super) struct Jitter {
    /// Exclusive upper bound of the random time of a packet, picoseconds. A packet may also wait for the one
    /// before it.
    bound: u64,
    hosts: Vec<Backlog>,
}

/// Packets that have reached a host, in the order of arrival.
#[derive(Clone, Debug)]
struct Backlog {
    rng: Xoshiro256PlusPlus,
    waiting: VecDeque<PacketId>,
    /// Time at which the host takes the last of them.
    last: Instant,
}

impl Jitter {
    /// Creates the state of hosts that take a packet up to `longest` after it has reached them. Each host has a
    /// separate stream of random numbers. The streams do not depend on the trace, so that a list of flows gives
    /// the same results wherever it comes from. Returns `None` if hosts take packets at once.
    pub(super) fn new(longest: Duration, hosts: usize) -> Option<Box<Jitter>> {
        let backlog = |host| Backlog {
            rng: stream(0, "host jitter", host),
            waiting: VecDeque::new(),
            last: Instant::ZERO,
        };
        (longest > Duration::ZERO).then(|| {
            Box::new(Jitter {
                bound: longest.0 + 1,
                hosts: (0..hosts as u64).map(backlog).collect(),
            })
        })
    }

    /// Adds a packet that reaches a host. Returns the time until the host takes it, which is not before it
    /// takes earlier ones.
    pub(super) fn push(&mut self, host: u16, id: PacketId, now: Instant) -> Duration {
        let backlog = &mut self.hosts[usize::from(host)];
        let due = now + Duration(below(&mut backlog.rng, self.bound));
        backlog.last = backlog.last.max(due);
        backlog.waiting.push_back(id);
        backlog.last - now
    }

    /// Takes the first waiting packet of a host.
    pub(super) fn pop(&mut self, host: u16) -> Option<PacketId> {
        self.hosts[usize::from(host)].waiting.pop_front()
    }

    /// Returns all waiting packets.
    pub(super) fn waiting(&self) -> impl Iterator<Item = PacketId> {
        let hosts = self.hosts.iter();
        hosts.flat_map(|backlog| backlog.waiting.iter().copied())
    }
}

impl<T: Topology> Hosts<T> {
    /// Lets a packet wait until its host takes it.
    #[cold]
    pub(super) fn let_wait(&mut self, id: PacketId, engine: &mut Engine<T>) {
        let packet = &engine.packets[id];
        let host = self.ends_of(packet.flow, packet.kind.direction()).1;
        if let Some(jitter) = &mut self.jitter {
            let wait = jitter.push(host, id, engine.host_now());
            engine.set_timer(wait, Timer::Delivery(host));
        }
    }

    /// Lets a host take its first waiting packet.
    #[cold]
    pub(crate) fn take_waiting<O: HostObserver>(
        &mut self,
        host: u16,
        engine: &mut Engine<T>,
        observer: &mut O,
    ) {
        let first = self.jitter.as_mut().and_then(|jitter| jitter.pop(host));
        if let Some(id) = first {
            self.take(id, engine, observer);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_stay_in_order_and_wait_no_longer_than_their_bound_or_their_predecessor() {
        let longest = Duration::from_us(20);
        let mut jitter = Jitter::new(longest, 2).unwrap();
        let mut before = Instant::ZERO;
        let (mut shortest, mut most) = (longest, Duration::ZERO);
        for id in 0..10_000 {
            let now = Instant::from_us(5 * u64::from(id));
            let wait = jitter.push(1, id, now);
            assert!(now + wait >= before && wait <= longest);
            before = now + wait;
            (shortest, most) = (shortest.min(wait), most.max(wait));
        }
        assert!(shortest < Duration::from_us(1) && most > Duration::from_us(19));
        assert_eq!(jitter.waiting().count(), 10_000);
        assert_eq!(
            (jitter.pop(0), jitter.pop(1), jitter.pop(1)),
            (None, Some(0), Some(1))
        );
    }

    #[test]
    fn hosts_have_random_numbers_of_their_own() {
        let waits = |host| {
            let mut jitter = Jitter::new(Duration::from_us(20), 2).unwrap();
            [0, 1, 2].map(|id| jitter.push(host, id, Instant::from_ms(u64::from(id))))
        };
        assert_eq!(waits(0), waits(0));
        assert_ne!(waits(0), waits(1));
        assert!(Jitter::new(Duration::ZERO, 2).is_none());
    }
}
