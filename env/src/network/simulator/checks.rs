//! Invariants that hold after every event.

use thiserror::Error;

use super::{Simulator, Timer};
use crate::network::packet::PacketKind;
use crate::switch::Policy;
use crate::units::Time;

/// A broken invariant, with the evidence.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Violation {
    /// The occupancy is not the sum of the queues, or exceeds the buffer.
    #[error("at {at}: queues hold {queued} B, occupancy is {occupancy} B of {capacity} B")]
    Accounting {
        /// When.
        at: Time,
        /// Σ q_i.
        queued: u64,
        /// Q.
        occupancy: u64,
        /// B.
        capacity: u64,
    },
    /// A queue's length is not the sum of its packets.
    #[error("at {at}: port {port} counts {counted} B but holds {held} B")]
    Queue {
        /// When.
        at: Time,
        /// Where.
        port: usize,
        /// q_i.
        counted: u64,
        /// Sum over its packets.
        held: u64,
    },
    /// Packets created are not packets delivered, dropped or on their way.
    #[error(
        "at {at}: {created} packets created, {delivered} delivered, {dropped} dropped, {in_flight} in flight"
    )]
    Conservation {
        /// When.
        at: Time,
        /// Sent by hosts.
        created: u64,
        /// Received by hosts.
        delivered: u64,
        /// Dropped at the switch.
        dropped: u64,
        /// In host queues, on links and in switch queues.
        in_flight: u64,
    },
}

impl<P: Policy> Simulator<P> {
    /// Checks byte accounting and conservation of packets.
    ///
    /// Complexity: O(packets in flight). Runs after every event in debug builds.
    ///
    /// # Errors
    /// The first invariant found broken.
    pub fn check_invariants(&self) -> Result<(), Violation> {
        self.check_accounting()?;
        self.check_queues()?;
        self.check_conservation()
    }

    fn check_accounting(&self) -> Result<(), Violation> {
        let (queued, occupancy) = (self.buffer.recount(), self.buffer.occupancy());
        let capacity = self.buffer.capacity();
        if queued == occupancy && occupancy <= capacity {
            return Ok(());
        }
        Err(Violation::Accounting {
            at: self.now,
            queued,
            occupancy,
            capacity,
        })
    }

    fn check_queues(&self) -> Result<(), Violation> {
        for (port, queue) in self.ports.iter().enumerate() {
            let held = queue
                .packets
                .iter()
                .skip(self.uncounted)
                .map(|p| u64::from(p.wire_bytes))
                .sum();
            let counted = self.buffer.queue(port);
            if counted != held {
                return Err(Violation::Queue {
                    at: self.now,
                    port,
                    counted,
                    held,
                });
            }
        }
        Ok(())
    }

    fn check_conservation(&self) -> Result<(), Violation> {
        let timed = self
            .agenda
            .iter()
            .filter(|timer| matches!(timer, Timer::Arrival(_)))
            .count();
        let lines = self
            .arrivals
            .iter()
            .map(|line| line.iter().count())
            .sum::<usize>()
            + self.deliveries.iter().count();
        let hosts: usize = self
            .hosts
            .iter()
            .map(|host| host.packets.len())
            .sum::<usize>()
            + self.backlog.len();
        let queues: usize = self.ports.iter().map(|port| port.packets.len()).sum();
        let in_flight = (timed + lines + hosts + queues) as u64;
        let counters = &self.counters;
        if counters.created == counters.delivered + counters.drops + in_flight {
            return Ok(());
        }
        Err(Violation::Conservation {
            at: self.now,
            created: counters.created,
            delivered: counters.delivered,
            dropped: counters.drops,
            in_flight,
        })
    }

    /// Acknowledgements on their way that carry SACK blocks; equal to the entries in use.
    pub fn sack_entries_are_balanced(&self) -> bool {
        let on_links = self.arrivals.iter().flat_map(|line| line.iter());
        let queued = self.ports.iter().flat_map(|port| &port.packets);
        let at_hosts = self.hosts.iter().flat_map(|host| &host.packets);
        let timed = self.agenda.iter().filter_map(|timer| match timer {
            Timer::Arrival(packet) => Some(packet),
            _ => None,
        });
        let carrying = on_links
            .chain(self.deliveries.iter())
            .chain(queued)
            .chain(at_hosts)
            .chain(timed)
            .filter(|packet| packet.kind == PacketKind::Ack && packet.has_sack())
            .count();
        carrying == self.sacks.live()
    }
}
