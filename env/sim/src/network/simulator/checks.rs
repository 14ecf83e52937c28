//! Invariants that hold after every event.

use thiserror::Error;

use super::Simulator;
use crate::network::packet::{NO_PACKET, PacketId, PacketKind};
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
    #[error("at {at}: queue {queue} counts {counted} B but holds {held} B")]
    Queue {
        /// When.
        at: Time,
        /// Where.
        queue: usize,
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
        let mut in_service = vec![0; self.queues.len()];
        if self.uncounted == 0 {
            for id in self.events.in_service() {
                let packet = &self.packets[id];
                in_service[usize::from(packet.queue)] += u64::from(packet.wire_bytes);
            }
        }
        for (number, queue) in self.queues.iter().enumerate() {
            let skipped = self.uncounted.saturating_sub(1);
            let held = in_service[number] + queue.bytes(&self.packets, skipped);
            let counted = self.buffer.queue(number);
            if counted != held {
                return Err(Violation::Queue {
                    at: self.now,
                    queue: number,
                    counted,
                    held,
                });
            }
        }
        Ok(())
    }

    fn check_conservation(&self) -> Result<(), Violation> {
        let in_flight = self.packets.live() as u64;
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

    /// Every packet of the store is in exactly one queue or on its way between two.
    ///
    /// Complexity: O(packets in flight), those at the hosts included.
    pub fn packets_are_placed_once(&self) -> bool {
        let mut places: Vec<PacketId> = self.in_flight().collect();
        places.sort_unstable();
        let once = places.windows(2).all(|pair| pair[0] != pair[1]);
        once && places.len() == self.packets.live()
    }

    /// Packets in host queues, on links and in switch queues.
    fn in_flight(&self) -> impl Iterator<Item = PacketId> {
        let ready = self.hosts.iter().flat_map(|host| host.ready.iter());
        let of_flows = ready.map(|&flow| self.flows[flow as usize].waiting);
        let of_hosts = self.hosts.iter().map(|host| host.packets);
        let of_ports = self.queues.iter().copied();
        of_flows
            .chain(of_hosts)
            .chain(of_ports)
            .flat_map(|queue| queue.iter(&self.packets))
            .chain(self.events.packets())
            .chain(self.behind_arriving())
    }

    /// Packets that wait at FIFO hosts.
    fn behind_arriving(&self) -> impl Iterator<Item = PacketId> {
        let some = |id| (id != NO_PACKET).then_some(id);
        let arriving = self.events.arriving().filter(|_| !self.fair_hosts);
        arriving.flat_map(move |id| {
            let next = move |&id: &PacketId| some(self.packets[id].next);
            std::iter::successors(next(&id), next)
        })
    }

    /// Acknowledgements on their way that carry SACK blocks; equal to the entries in use.
    pub fn sack_entries_are_balanced(&self) -> bool {
        let carrying = self
            .in_flight()
            .map(|id| &self.packets[id])
            .filter(|packet| packet.kind == PacketKind::Ack && packet.has_sack())
            .count();
        carrying == self.sacks.live()
    }
}
