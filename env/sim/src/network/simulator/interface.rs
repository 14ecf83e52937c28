//! What happens at the hosts' network interfaces: segments become packets and go onto the wire.

use super::Simulator;
use crate::network::event::{Cause, Subject};
use crate::network::packet::{Marks, NO_PACKET, Packet, PacketId, PacketKind, SackHandle};
use crate::switch::Policy;
use crate::transport::Segment;
use crate::units::Time;

/// The send side of a host.
impl<P: Policy> Simulator<P> {
    /// Lets a flow send what its window allows, into the queue of its host.
    #[inline]
    pub(super) fn pump(&mut self, flow: u32) {
        let src = usize::from(self.flows[flow as usize].src);
        let mut sent = false;
        while let Some(segment) = self.flows[flow as usize]
            .sender
            .emit(self.now, &self.settings)
        {
            sent = true;
            let packet = self.data_packet(flow, segment);
            if self.fair_hosts {
                self.enqueue_fairly(flow, src, packet);
            } else {
                self.send_in_order(src, packet);
            }
        }
        if sent {
            self.arm_timer(flow);
            if self.fair_hosts && !self.hosts[src].sending {
                self.host_is_free(src);
            }
        }
    }

    #[inline]
    fn enqueue_fairly(&mut self, flow: u32, host: usize, packet: PacketId) {
        let waiting = &mut self.flows[flow as usize].waiting;
        if waiting.is_empty() {
            self.hosts[host].ready.push_back(flow);
        }
        waiting.push_back(&mut self.packets, packet);
    }

    /// The host puts its next packet onto the wire, if it has one.
    #[inline(always)]
    pub(super) fn host_is_free(&mut self, host: usize) {
        match self.next_packet(host) {
            Some(packet) => self.transmit_from_host(host, packet),
            None => self.hosts[host].sending = false,
        }
    }

    #[inline(always)]
    fn next_packet(&mut self, host: usize) -> Option<PacketId> {
        if let Some(packet) = self.hosts[host].packets.pop_front(&self.packets) {
            return Some(packet);
        }
        let flow = self.hosts[host].ready.pop_front()?;
        let waiting = &mut self.flows[flow as usize].waiting;
        let packet = waiting.pop_front(&self.packets);
        if !waiting.is_empty() {
            self.hosts[host].ready.push_back(flow);
        }
        packet
    }

    #[inline(always)]
    fn transmit_from_host(&mut self, host: usize, id: PacketId) {
        self.hosts[host].sending = true;
        let packet = &self.packets[id];
        let (class, transmission) = (packet.class, self.transmission(packet));
        let subject = self.subject(host, id);
        self.events.arrive(self.now, transmission, class, subject);
        self.events
            .free_host(self.now, transmission, class, subject);
    }

    #[inline(always)]
    fn subject(&self, host: usize, packet: PacketId) -> Subject {
        Subject {
            packet,
            sender: host as u16,
            cause: self.cause,
        }
    }

    /// A FIFO host puts the packet onto the wire, now if it is idle, else behind the one that it
    /// was given before. When that reaches the switch, this one follows; see
    /// [`send_next`](Self::send_next).
    #[inline(always)]
    fn send_in_order(&mut self, host: usize, id: PacketId) {
        let packet = &self.packets[id];
        let (class, transmission) = (packet.class, self.transmission(packet));
        let line = &mut self.hosts[host];
        let last = std::mem::replace(&mut line.last, id);
        // Simultaneously with the end of a transmission the order of events decides. Without
        // propagation that packet is at the switch by now, and nothing would follow it.
        let ends_later =
            line.free_at == self.now && self.cause < line.free_by && self.propagation > Time::ZERO;
        let free_by = self.causes.sent(class, transmission);
        if line.free_at > self.now || ends_later {
            line.free_at += transmission;
            line.free_by = free_by;
            self.packets[last].next = id;
            return;
        }
        line.free_at = self.now + transmission;
        line.free_by = free_by;
        let subject = self.subject(host, id);
        self.events.arrive(self.now, transmission, class, subject);
    }

    /// A packet of a FIFO host has reached the switch, and the next one has followed at once.
    #[inline(always)]
    pub(super) fn send_next(&mut self, id: PacketId, cause: Cause) {
        let packet = &self.packets[id];
        let (class, transmission) = (packet.class, self.transmission(packet));
        let subject = Subject {
            packet: id,
            cause,
            ..Subject::default()
        };
        self.events
            .arrive_next(self.now, transmission, class, subject);
    }

    #[inline]
    fn data_packet(&mut self, flow: u32, segment: Segment) -> PacketId {
        let wire_bytes = (segment.payload + self.header_bytes) as u16;
        let class = self.size_class(wire_bytes);
        let state = &mut self.flows[flow as usize];
        state.in_network += 1;
        let marks = Marks::tag(state.sender.is_unheard());
        let (dst, priority) = (state.dst, state.priority);
        let queue = self.queue_of(dst, priority);
        self.counters.created += 1;
        self.packets.insert(Packet {
            stamp: self.now,
            flow,
            sequence: segment.index,
            sack: SackHandle::NONE,
            next: NO_PACKET,
            wire_bytes,
            queue,
            kind: PacketKind::Data,
            class,
            retransmission: segment.retransmission,
            marks,
        })
    }

    /// The queue at the switch that leads to a host.
    #[inline]
    pub(super) fn queue_of(&self, host: u16, priority: u8) -> u16 {
        if self.queues_per_port == 1 {
            return host;
        }
        let last = self.queues_per_port as u16 - 1;
        host * (last + 1) + u16::from(priority).min(last)
    }

    /// A packet of the handshake; `stamp` and `retransmission` are those of the SYN.
    pub(super) fn send_control(
        &mut self,
        flow: u32,
        kind: PacketKind,
        stamp: Time,
        retransmission: bool,
    ) {
        let state = &mut self.flows[flow as usize];
        let (from, to) = match kind {
            PacketKind::SynAck => (state.dst, state.src),
            _ => (state.src, state.dst),
        };
        let wire_bytes = if kind == PacketKind::HandshakeAck {
            self.ack_bytes
        } else {
            self.syn_bytes
        };
        state.in_network += 1;
        let priority = state.priority;
        let queue = self.queue_of(to, priority);
        self.counters.created += 1;
        let packet = self.packets.insert(Packet {
            stamp,
            flow,
            sequence: 0,
            sack: SackHandle::NONE,
            next: NO_PACKET,
            wire_bytes,
            queue,
            kind,
            class: self.size_class(wire_bytes),
            retransmission,
            marks: Marks::default(),
        });
        self.send_packet(usize::from(from), packet);
    }

    #[inline(always)]
    pub(super) fn send_packet(&mut self, host: usize, packet: PacketId) {
        if !self.fair_hosts {
            self.send_in_order(host, packet);
        } else if self.hosts[host].sending {
            self.hosts[host]
                .packets
                .push_back(&mut self.packets, packet);
        } else {
            self.transmit_from_host(host, packet);
        }
    }
}
