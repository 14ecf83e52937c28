//! What happens at the hosts: flows start, segments go out, packets come in.

use super::{Simulator, Timer};
use crate::network::packet::{Packet, PacketKind, SackHandle};
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
        self.active.push(flow);
        let dst = usize::from(self.flows[flow as usize].dst);
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
        let due = self.due_in(timeout);
        self.agenda.push(due, Timer::Syn(flow, sent_before));
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
            let due = self.due_in(deadline.saturating_since(self.now));
            self.agenda.push(due, Timer::Retransmission(flow));
        }
    }

    fn complete(&mut self, flow: u32) {
        let state = &mut self.flows[flow as usize];
        state.finish = self.now;
        let dst = usize::from(state.dst);
        if let Some(at) = self.active.iter().position(|&active| active == flow) {
            self.active.swap_remove(at);
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
        let Some(first) = self.flows[flow as usize]
            .sender
            .emit(self.now, &self.settings)
        else {
            return;
        };
        let src = usize::from(self.flows[flow as usize].src);
        let mut next = Some(first);
        while let Some(segment) = next {
            let packet = self.data_packet(flow, segment);
            if self.fair_hosts {
                self.enqueue_fairly(flow, src, packet);
            } else {
                self.hosts[src].packets.push_back(packet);
            }
            next = self.flows[flow as usize]
                .sender
                .emit(self.now, &self.settings);
        }
        self.arm_timer(flow);
        if !self.hosts[src].sending {
            self.host_is_free(src);
        }
    }

    #[inline]
    fn enqueue_fairly(&mut self, flow: u32, host: usize, packet: Packet) {
        let waiting = &mut self.flows[flow as usize].waiting;
        if waiting.is_empty() {
            self.hosts[host].ready.push_back(flow);
        }
        self.backlog.push_back(waiting, packet);
    }

    /// The host puts its next packet onto the wire, if it has one.
    #[inline]
    pub(super) fn host_is_free(&mut self, host: usize) {
        match self.next_packet(host) {
            Some(packet) => self.transmit_from_host(host, packet),
            None => self.hosts[host].sending = false,
        }
    }

    #[inline]
    fn next_packet(&mut self, host: usize) -> Option<Packet> {
        if let Some(packet) = self.hosts[host].packets.pop_front() {
            return Some(packet);
        }
        let flow = self.hosts[host].ready.pop_front()?;
        let waiting = &mut self.flows[flow as usize].waiting;
        let packet = self.backlog.pop_front(waiting);
        if !waiting.is_empty() {
            self.hosts[host].ready.push_back(flow);
        }
        packet
    }

    #[inline]
    fn transmit_from_host(&mut self, host: usize, packet: Packet) {
        self.hosts[host].sending = true;
        match self.common_size(packet.wire_bytes) {
            Some(size) => {
                let transmission = self.common[size].transmission;
                let arrival = self.due_in(transmission + self.propagation);
                self.arrivals[size].push(arrival, packet);
                let free = self.due_in(transmission);
                self.host_free[size].push(free, host as u16);
            }
            None => {
                let transmission = self.transmission(packet.wire_bytes);
                let arrival = self.due_in(transmission + self.propagation);
                self.agenda.push(arrival, Timer::Arrival(packet));
                let free = self.due_in(transmission);
                self.agenda.push(free, Timer::HostFree(host as u16));
            }
        }
    }

    #[inline]
    fn data_packet(&mut self, flow: u32, segment: Segment) -> Packet {
        let state = &mut self.flows[flow as usize];
        state.in_network += 1;
        self.counters.created += 1;
        Packet {
            stamp: self.now,
            flow,
            sequence: segment.index,
            sack: SackHandle::NONE,
            wire_bytes: (segment.payload + self.header_bytes) as u16,
            port: state.dst,
            kind: PacketKind::Data,
            retransmission: segment.retransmission,
        }
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
        let packet = Packet {
            stamp: self.now,
            flow,
            sequence: 0,
            sack: SackHandle::NONE,
            wire_bytes,
            port: to,
            kind,
            retransmission: false,
        };
        self.send_packet(usize::from(from), packet);
    }

    #[inline]
    fn send_packet(&mut self, host: usize, packet: Packet) {
        if self.hosts[host].sending {
            self.hosts[host].packets.push_back(packet);
        } else {
            self.transmit_from_host(host, packet);
        }
    }
}

/// The receive side of a host.
impl<P: Policy> Simulator<P> {
    #[inline]
    pub(super) fn deliver(&mut self, packet: Packet) {
        self.counters.delivered += 1;
        self.flows[packet.flow as usize].in_network -= 1;
        match packet.kind {
            PacketKind::Data => self.receive_data(packet),
            PacketKind::Ack => self.receive_ack(packet),
            PacketKind::Syn => self.send_control(packet.flow, PacketKind::SynAck),
            PacketKind::SynAck => {
                if !self.flows[packet.flow as usize].established {
                    self.send_control(packet.flow, PacketKind::HandshakeAck);
                    self.establish(packet.flow);
                }
            }
            PacketKind::HandshakeAck => {}
        }
    }

    #[inline]
    fn receive_data(&mut self, packet: Packet) {
        let state = &mut self.flows[packet.flow as usize];
        let delivered = state.receiver.receive(packet.sequence);
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
                self.complete(packet.flow);
            }
        }
        let sack = match blocks {
            Some(blocks) => self.sacks.insert(blocks),
            None => SackHandle::NONE,
        };
        self.counters.created += 1;
        let answer = Packet {
            stamp: packet.stamp,
            flow: packet.flow,
            sequence: acknowledgement,
            sack,
            wire_bytes: self.ack_bytes,
            port: src,
            kind: PacketKind::Ack,
            retransmission: packet.retransmission,
        };
        self.send_packet(dst, answer);
    }

    #[inline]
    fn receive_ack(&mut self, packet: Packet) {
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
