//! Invariants that hold after every event.

use thiserror::Error;

use super::Simulator;
use crate::engine::event::{Events as _, PacketEvent};
use crate::engine::packet::{NO_PACKET, PacketId, PacketKind};
use crate::engine::topology::Topology;
use crate::host::Nics;
use crate::network::observer::Observer;
use crate::switch::{Policy, Switch};
use crate::units::Instant;

/// A broken invariant, with the evidence.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum Violation {
    /// The occupancy is not the sum of the queues, or exceeds the buffer.
    #[error("at {at}: queues hold {queued} B, occupancy is {occupancy} B of {capacity} B")]
    Accounting {
        /// Time of the check.
        at: Instant,
        /// Sum of queue lengths, Σ q_i.
        queued: u64,
        /// Occupancy Q.
        occupancy: u64,
        /// Size of the buffer B.
        capacity: u64,
    },
    /// A queue's length is not the sum of its packets.
    #[error("at {at}: queue {queue} counts {counted} B but holds {held} B")]
    Queue {
        /// Time of the check.
        at: Instant,
        /// Index of the queue.
        queue: usize,
        /// Length q_i in the accounting.
        counted: u64,
        /// Sum of its packets' bytes.
        held: u64,
    },
    /// The counters of memory management at ingress, at egress and in the pools do not add up.
    #[error("at {at}: the counters of memory management at switch {switch} do not add up")]
    Memory {
        /// Time of the check.
        at: Instant,
        /// The switch.
        switch: u16,
    },
    /// Packets created do not equal packets delivered, dropped and in flight.
    #[error(
        "at {at}: {created} packets created, {delivered} delivered, {dropped} dropped, {in_flight} in flight"
    )]
    Conservation {
        /// Time of the check.
        at: Instant,
        /// Packets sent by hosts.
        created: u64,
        /// Packets received by hosts.
        delivered: u64,
        /// Packets dropped at the switch.
        dropped: u64,
        /// Packets in host queues, on links and in switch queues.
        in_flight: u64,
    },
}

impl<P: Policy, O: Observer, T: Topology> Simulator<P, O, T> {
    /// Checks byte accounting and conservation of packets, after every event in debug builds.
    ///
    /// Complexity: O(packets in flight).
    ///
    /// # Errors
    /// The first broken invariant found.
    pub fn check_invariants(&self) -> Result<(), Violation> {
        for switch in self.switches.as_ref() {
            self.check_accounting(switch)?;
            self.check_queues(switch)?;
            if switch
                .mmu()
                .is_some_and(|mmu| !mmu.is_consistent(switch.buffer()))
            {
                return Err(Violation::Memory {
                    at: self.now(),
                    switch: switch.id().0,
                });
            }
        }
        self.check_conservation()
    }

    fn check_accounting(&self, switch: &Switch<P>) -> Result<(), Violation> {
        let buffer = switch.buffer();
        let (queued, occupancy) = (buffer.recount(), buffer.occupancy());
        let capacity = buffer.capacity();
        if queued == occupancy && occupancy <= capacity {
            return Ok(());
        }
        Err(Violation::Accounting {
            at: self.now(),
            queued,
            occupancy,
            capacity,
        })
    }

    fn check_queues(&self, switch: &Switch<P>) -> Result<(), Violation> {
        let packets = &self.engine.packets;
        let mut in_service = vec![0; switch.queues().len()];
        if switch.outside_buffer() == 0 {
            let of_this =
                |event: &PacketEvent| !T::IS_FABRIC || event.sending_switch() == Some(switch.id());
            for event in self.engine.events.in_service().filter(of_this) {
                let packet = &packets[event.packet];
                if switch.mmu().is_some() && packet.flags.is_control() {
                    continue;
                }
                in_service[usize::from(packet.queue)] += u64::from(switch.counted_bytes(packet));
            }
        }
        for (number, queue) in switch.queues().iter().enumerate() {
            let skipped = switch.outside_buffer().saturating_sub(1);
            let held = in_service[number] + queue.bytes(packets, skipped);
            let counted = switch.buffer().queue(number);
            if counted != held {
                return Err(Violation::Queue {
                    at: self.now(),
                    queue: number,
                    counted,
                    held,
                });
            }
        }
        Ok(())
    }

    fn check_conservation(&self) -> Result<(), Violation> {
        let in_flight = self.engine.packets.live() as u64 - self.pauses.on_wire;
        let created = self.engine.created;
        let delivered = self.hosts.counters().delivered;
        let dropped = self.drops();
        if created == delivered + dropped + in_flight {
            return Ok(());
        }
        Err(Violation::Conservation {
            at: self.now(),
            created,
            delivered,
            dropped,
            in_flight,
        })
    }

    /// Returns true if every live packet is in exactly one queue or on exactly one link.
    ///
    /// Complexity: O(n log n) in the packets in flight, those at hosts included.
    pub fn packets_are_placed_once(&self) -> bool {
        let mut places: Vec<PacketId> = self.in_flight().collect();
        places.sort_unstable();
        let once = places.windows(2).all(|pair| pair[0] != pair[1]);
        once && places.len() == self.engine.packets.live()
    }

    /// Packets in host queues, on links and in switch queues.
    fn in_flight(&self) -> impl Iterator<Item = PacketId> {
        let packets = &self.engine.packets;
        let of_switches = self.switches.as_ref().iter().flat_map(Switch::waiting);
        self.hosts
            .waiting_packets(&self.engine)
            .chain(of_switches.flat_map(|queue| queue.iter(packets)))
            .chain(self.on_links())
            .chain(self.behind_arriving())
    }

    /// Packets whose transmission has begun and that have not arrived. A packet in service has an
    /// event at the far end of its link too where there are several switches.
    fn on_links(&self) -> impl Iterator<Item = PacketId> {
        let events = &self.engine.events;
        let sent = events.in_service().filter(|_| !T::IS_FABRIC);
        events.arriving().chain(sent).map(|event| event.packet)
    }

    /// Packets that wait at FIFO hosts behind one on the link.
    fn behind_arriving(&self) -> impl Iterator<Item = PacketId> {
        let packets = &self.engine.packets;
        let some = |id| (id != NO_PACKET).then_some(id);
        let fifo = matches!(self.hosts.nics(), Nics::Fifo(_));
        let arriving = self.engine.events.arriving().filter(move |_| fifo);
        arriving.flat_map(move |event| {
            let next = move |&id: &PacketId| some(packets[id].next);
            std::iter::successors(next(&event.packet), next)
        })
    }

    /// Returns true if as many packets in flight carry telemetry records as there are such records.
    pub fn records_are_balanced(&self) -> bool {
        let packets = &self.engine.packets;
        let carries = |id: &PacketId| packets[*id].flags.carries_records();
        self.in_flight().filter(carries).count() == packets.records.live()
    }

    /// Returns true if as many SACK entries are in use as acknowledgements with SACK blocks are in
    /// flight.
    pub fn sack_entries_are_balanced(&self) -> bool {
        let carrying = self
            .in_flight()
            .map(|id| &self.engine.packets[id])
            .filter(|packet| packet.kind == PacketKind::Ack && packet.has_sack())
            .count();
        carrying == self.hosts.sack_entries()
    }
}
