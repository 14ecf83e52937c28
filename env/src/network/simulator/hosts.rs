//! What happens at the hosts: flows start, segments go out, packets come in.

use super::Simulator;
use crate::network::event::Timer;
use crate::network::packet::{NO_PACKET, Packet, PacketId, PacketKind, SackHandle};
use crate::switch::Policy;
use crate::transport::Segment;
use crate::units::Time;

/// RFC 9293 leaves the bound on SYN back-off to the implementation; 2^10 exceeds any run.
const MAX_SYN_BACKOFF: u8 = 10;

/// Flows: start, timers, completion.
impl<P: Policy> Simulator<P> {
    pub(super) fn start_next_flow(&mut self) {
        let flow = self.next_start as u32;
        self.next_start += 1;
        self.schedule_next_start();
        let state = &mut self.flows[flow as usize];
        state.active_at = self.active.len() as u32;
        self.active.push(flow);
        let dst = usize::from(state.dst);
        if let Some(meter) = &mut self.meter {
            meter.flow_started(dst, self.now);
        }
        if self.handshake {
            self.send_syn(flow, 0);
        } else {
            self.establish(flow);
        }
    }

    fn send_syn(&mut self, flow: u32, sent_before: u8) {
        self.send_control(flow, PacketKind::Syn);
        let timeout = Time(self.syn_timeout.0 << sent_before.min(MAX_SYN_BACKOFF));
        self.events
            .set_timer(self.now, timeout, Timer::Syn(flow, sent_before));
    }

    pub(super) fn on_syn_timer(&mut self, flow: u32, sent_before: u8) {
        if !self.flows[flow as usize].established {
            self.counters.timeouts += 1;
            self.send_syn(flow, sent_before.saturating_add(1));
        }
    }

    fn establish(&mut self, flow: u32) {
        let state = &mut self.flows[flow as usize];
        state.established = true;
        state.established_at = self.now;
        self.pump(flow);
    }

    pub(super) fn on_retransmission_timer(&mut self, flow: u32) {
        let state = &mut self.flows[flow as usize];
        state.timer_pending = false;
        let deadline = state.sender.deadline();
        if deadline <= self.now {
            state.sender.on_timeout(self.now, &self.settings);
            state.doomed = false;
            self.counters.timeouts += 1;
            self.pump(flow);
        }
        self.arm_timer(flow);
    }

    /// Keeps one timer event pending per flow that waits for an acknowledgement.
    #[inline]
    fn arm_timer(&mut self, flow: u32) {
        let state = &mut self.flows[flow as usize];
        let deadline = state.sender.deadline();
        if deadline != Time::MAX && !state.timer_pending {
            state.timer_pending = true;
            let delay = deadline.saturating_since(self.now);
            self.events
                .set_timer(self.now, delay, Timer::Retransmission(flow));
        }
    }

    fn complete(&mut self, flow: u32) {
        let state = &mut self.flows[flow as usize];
        state.finish = self.now;
        let dst = usize::from(state.dst);
        let at = state.active_at as usize;
        self.active.swap_remove(at);
        if let Some(&moved) = self.active.get(at) {
            self.flows[moved as usize].active_at = at as u32;
        }
        self.completed += 1;
        self.last_finish = self.now;
        if let Some(meter) = &mut self.meter {
            meter.flow_finished(dst, self.now);
        }
    }
}

/// The send side of a host.
impl<P: Policy> Simulator<P> {
    /// Lets a flow send what its window allows, into the queue of its host.
    #[inline]
    fn pump(&mut self, flow: u32) {
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
                self.hosts[src].packets.push_back(&mut self.packets, packet);
            }
        }
        if sent {
            self.arm_timer(flow);
            if !self.hosts[src].sending {
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
        let delay = transmission + self.propagation;
        self.events.arrive(self.now, delay, class, id);
        self.events.free_host(self.now, transmission, class, host);
    }

    #[inline]
    fn data_packet(&mut self, flow: u32, segment: Segment) -> PacketId {
        let wire_bytes = (segment.payload + self.header_bytes) as u16;
        let class = self.size_class(wire_bytes);
        let state = &mut self.flows[flow as usize];
        state.in_network += 1;
        self.counters.created += 1;
        self.packets.insert(Packet {
            stamp: self.now,
            flow,
            sequence: segment.index,
            sack: SackHandle::NONE,
            next: NO_PACKET,
            wire_bytes,
            port: state.dst,
            kind: PacketKind::Data,
            class,
            retransmission: segment.retransmission,
        })
    }

    fn send_control(&mut self, flow: u32, kind: PacketKind) {
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
        self.counters.created += 1;
        let packet = self.packets.insert(Packet {
            stamp: self.now,
            flow,
            sequence: 0,
            sack: SackHandle::NONE,
            next: NO_PACKET,
            wire_bytes,
            port: to,
            kind,
            class: self.size_class(wire_bytes),
            retransmission: false,
        });
        self.send_packet(usize::from(from), packet);
    }

    #[inline(always)]
    fn send_packet(&mut self, host: usize, packet: PacketId) {
        if self.hosts[host].sending {
            self.hosts[host]
                .packets
                .push_back(&mut self.packets, packet);
        } else {
            self.transmit_from_host(host, packet);
        }
    }
}

/// The receive side of a host.
impl<P: Policy> Simulator<P> {
    #[inline(always)]
    pub(super) fn deliver(&mut self, id: PacketId) {
        let packet = &self.packets[id];
        let flow = packet.flow;
        self.counters.delivered += 1;
        self.flows[flow as usize].in_network -= 1;
        match packet.kind {
            PacketKind::Data => self.receive_data(id),
            PacketKind::Ack => self.receive_ack(id),
            kind => {
                self.packets.remove(id);
                self.receive_control(flow, kind);
            }
        }
    }

    #[cold]
    fn receive_control(&mut self, flow: u32, kind: PacketKind) {
        match kind {
            PacketKind::Syn => self.send_control(flow, PacketKind::SynAck),
            PacketKind::SynAck if !self.flows[flow as usize].established => {
                self.send_control(flow, PacketKind::HandshakeAck);
                self.establish(flow);
            }
            _ => {}
        }
    }

    /// The acknowledgement takes the place of the segment, with its stamp.
    #[inline(always)]
    fn receive_data(&mut self, id: PacketId) {
        let packet = &self.packets[id];
        let (flow, sequence) = (packet.flow, packet.sequence);
        let state = &mut self.flows[flow as usize];
        let delivered = state.receiver.receive(sequence);
        let acknowledgement = state.receiver.next_expected();
        let blocks = if self.settings.sack {
            state.receiver.sack_blocks()
        } else {
            None
        };
        let (src, dst) = (state.src, usize::from(state.dst));
        state.in_network += 1;
        if delivered > 0 {
            let done = acknowledgement == state.segments && state.finish == Time::MAX;
            if let Some(meter) = &mut self.meter {
                meter.delivered(dst, u64::from(delivered) * u64::from(self.settings.mss));
            }
            if done {
                self.complete(flow);
            }
        }
        let sack = match blocks {
            Some(blocks) => self.sacks.insert(blocks),
            None => SackHandle::NONE,
        };
        self.counters.created += 1;
        let class = self.size_class(self.ack_bytes);
        let answer = &mut self.packets[id];
        answer.sequence = acknowledgement;
        answer.sack = sack;
        answer.wire_bytes = self.ack_bytes;
        answer.port = src;
        answer.kind = PacketKind::Ack;
        answer.class = class;
        self.send_packet(dst, id);
    }

    #[inline(always)]
    fn receive_ack(&mut self, id: PacketId) {
        let packet = self.packets[id];
        self.packets.remove(id);
        let blocks = self.sacks.take(packet.sack);
        // Karn's rule (RFC 6298 §3): the echo of a retransmission is ambiguous.
        let rtt = (!packet.retransmission).then(|| self.now - packet.stamp);
        let state = &mut self.flows[packet.flow as usize];
        state.sender.on_ack(
            packet.sequence,
            blocks.as_ref(),
            rtt,
            self.now,
            &self.settings,
        );
        self.pump(packet.flow);
    }
}
