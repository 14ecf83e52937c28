//! What happens at the hosts: flows start, segments go out, packets come in.

use super::Simulator;
use super::flow::Stage;
use crate::network::event::Timer;
use crate::network::packet::{
    Marks, NO_PACKET, Packet, PacketId, PacketKind, SackBlocks, SackHandle,
};
use crate::switch::Policy;
use crate::transport::{Ack, Answer};
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
        state.stage = Stage::active(self.active.len() as u32);
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
        self.send_control(flow, PacketKind::Syn, self.now, sent_before > 0);
        let timeout = Time(self.syn_timeout.0 << sent_before.min(MAX_SYN_BACKOFF));
        self.events
            .set_timer(self.now, timeout, Timer::Syn(flow, sent_before));
    }

    pub(super) fn on_syn_timer(&mut self, flow: u32, sent_before: u8) {
        if !self.flows[flow as usize].signs.established() {
            self.counters.timeouts += 1;
            self.send_syn(flow, sent_before.saturating_add(1));
        }
    }

    /// A SYN is answered until something else has come from the sender (RFC 9293 §3.5).
    fn receive_syn(&mut self, syn: &Packet) {
        let receiver = &mut self.flows[syn.flow as usize].receiver;
        if receiver.has_accepted() {
            return;
        }
        receiver.echo(syn.stamp, true);
        let sent_before = receiver.count_syn_ack();
        self.send_control(syn.flow, PacketKind::SynAck, syn.stamp, syn.retransmission);
        if sent_before == 0 {
            self.arm_syn_ack_timer(syn.flow, 0);
        }
    }

    fn arm_syn_ack_timer(&mut self, flow: u32, sent_before: u8) {
        let timeout = Time(self.syn_timeout.0 << sent_before.min(MAX_SYN_BACKOFF));
        self.events
            .set_timer(self.now, timeout, Timer::SynAck(flow));
    }

    pub(super) fn on_syn_ack_timer(&mut self, flow: u32) {
        let receiver = &mut self.flows[flow as usize].receiver;
        if receiver.has_accepted() {
            return;
        }
        let stamp = receiver.echo(Time::ZERO, false);
        let sent_before = receiver.count_syn_ack();
        self.counters.timeouts += 1;
        self.send_control(flow, PacketKind::SynAck, stamp, true);
        self.arm_syn_ack_timer(flow, sent_before);
    }

    fn establish(&mut self, flow: u32) {
        self.flows[flow as usize].signs.establish();
        self.roster.establish(flow as usize, self.now);
        if self.settings.is_ns3() {
            // ns-3's socket sends one unit of its time after it was told to.
            self.events
                .set_timer(self.now, Time::from_ns(1), Timer::Begin(flow));
        } else {
            self.pump(flow);
        }
    }

    pub(super) fn on_retransmission_timer(&mut self, flow: u32) {
        let state = &mut self.flows[flow as usize];
        if state.timer_at != self.now {
            return;
        }
        state.timer_at = Time::MAX;
        if state.sender.deadline() <= self.now {
            let spares = &mut self.spares.senders;
            state.sender.on_timeout(self.now, &self.settings, spares);
            state.signs.spare();
            self.counters.timeouts += 1;
            self.pump(flow);
        }
        self.arm_timer(flow);
    }

    /// Keeps a timer event pending per flow that waits for an acknowledgement, at its deadline or
    /// before: a later deadline is read when the event falls due. An earlier one, as after a
    /// timeout that was backed off, needs another event, and the one it overtakes is void.
    #[inline]
    pub(super) fn arm_timer(&mut self, flow: u32) {
        let state = &mut self.flows[flow as usize];
        let deadline = state.sender.deadline();
        if deadline < state.timer_at {
            state.timer_at = deadline.max(self.now);
            self.events.set_timer(
                self.now,
                deadline.saturating_since(self.now),
                Timer::Retransmission(flow),
            );
        }
    }

    fn complete(&mut self, flow: u32) {
        let state = &mut self.flows[flow as usize];
        let at = state.stage.position();
        state.stage = Stage::finished(self.now);
        let dst = usize::from(state.dst);
        self.active.swap_remove(at);
        if let Some(&moved) = self.active.get(at) {
            self.flows[moved as usize].stage = Stage::active(at as u32);
        }
        self.completed += 1;
        self.last_finish = self.now;
        if let Some(meter) = &mut self.meter {
            meter.flow_finished(dst, self.now);
        }
    }
}

/// The receive side of a host.
impl<P: Policy> Simulator<P> {
    #[inline(always)]
    pub(super) fn deliver(&mut self, id: PacketId) {
        let packet = self.packets[id];
        self.packets.remove(id);
        self.counters.delivered += 1;
        self.flows[packet.flow as usize].in_network -= 1;
        match packet.kind {
            PacketKind::Data => self.receive_data(packet),
            PacketKind::Ack => self.receive_ack(packet),
            _ => self.receive_handshake(packet),
        }
    }

    #[cold]
    fn receive_handshake(&mut self, packet: Packet) {
        match packet.kind {
            PacketKind::Syn => self.receive_syn(&packet),
            PacketKind::SynAck => {
                let ack = arrived(&packet, None, self.now);
                let state = &mut self.flows[packet.flow as usize];
                let established = state.signs.established();
                state.sender.on_handshake(&ack, established, &self.settings);
                if !established {
                    self.send_control(packet.flow, PacketKind::HandshakeAck, self.now, false);
                    self.establish(packet.flow);
                }
            }
            PacketKind::HandshakeAck => {
                let receiver = &mut self.flows[packet.flow as usize].receiver;
                receiver.accepted = true;
                if packet.marks.congested() {
                    // It has the sequence number of the first byte.
                    receiver.takes_mark(0, &self.settings, &mut self.spares.receivers);
                }
            }
            PacketKind::Data | PacketKind::Ack => {}
        }
    }

    #[inline(always)]
    fn receive_data(&mut self, packet: Packet) {
        let delays = self.settings.delayed_ack > 1;
        if delays {
            self.settle_change_of_mark(&packet);
        }
        let state = &mut self.flows[packet.flow as usize];
        let in_order = state.receiver.next_expected() == packet.sequence;
        let spares = &mut self.spares.receivers;
        let receiver = &mut state.receiver;
        let delivered = receiver.receive(packet.sequence, &self.settings, spares);
        let stamp = if self.settings.is_ns3() {
            receiver.echo(packet.stamp, in_order)
        } else {
            packet.stamp
        };
        let marked =
            packet.marks.marked() && receiver.takes_mark(packet.sequence, &self.settings, spares);
        if delivered > 0 {
            self.take_delivery(packet.flow, delivered);
        }
        let answer = Answer {
            stamp,
            retransmission: packet.retransmission,
            marked,
        };
        if delays {
            self.answer_or_postpone(packet.flow, answer, delivered);
        } else if self.settings.is_ns3() {
            self.acknowledge_as_ns3(&packet, answer, delivered);
        } else {
            self.acknowledge(packet.flow, answer);
        }
    }

    /// In ns-3 the last segment carries the FIN. When it is delivered in order, data and FIN have
    /// an acknowledgement each; when another segment completes the flow, one stands for both. That
    /// of the FIN echoes no mark.
    fn acknowledge_as_ns3(&mut self, packet: &Packet, answer: Answer, delivered: u32) {
        let state = &self.flows[packet.flow as usize];
        let completes = delivered > 0 && state.receiver.next_expected() == state.segments;
        let of_the_end = Answer {
            marked: false,
            ..answer
        };
        if !completes || packet.sequence + 1 == state.segments {
            self.acknowledge(packet.flow, answer);
        }
        if completes {
            self.acknowledge(packet.flow, of_the_end);
        }
    }

    #[inline]
    fn take_delivery(&mut self, flow: u32, segments: u32) {
        let state = &self.flows[flow as usize];
        let all = state.receiver.next_expected() == state.segments;
        let done = all && state.stage.finish().is_none();
        if let Some(meter) = &mut self.meter {
            let bytes = u64::from(segments) * u64::from(self.settings.mss);
            meter.delivered(usize::from(state.dst), bytes);
        }
        if done {
            self.complete(flow);
        }
    }

    /// Acknowledges all that has arrived in order.
    #[inline]
    fn acknowledge(&mut self, flow: u32, answer: Answer) {
        let state = &mut self.flows[flow as usize];
        let blocks = if self.settings.sack {
            state.receiver.sack_blocks(&self.settings)
        } else {
            None
        };
        state.in_network += 1;
        let (sequence, src, dst) = (state.receiver.next_expected(), state.src, state.dst);
        let priority = state.priority;
        let mut wire_bytes = self.ack_bytes;
        let sack = match blocks {
            Some(blocks) => {
                let filled = blocks.iter().filter(|block| block.0 < block.1).count();
                wire_bytes += self.sack_block_bytes * filled as u16;
                self.sacks.insert(blocks)
            }
            None => SackHandle::NONE,
        };
        self.counters.created += 1;
        let packet = self.packets.insert(Packet {
            stamp: answer.stamp,
            flow,
            sequence,
            sack,
            next: NO_PACKET,
            wire_bytes,
            queue: self.queue_of(src, priority),
            kind: PacketKind::Ack,
            class: self.size_class(wire_bytes),
            retransmission: answer.retransmission,
            marks: Marks::echo(answer.marked),
        });
        self.send_packet(usize::from(dst), packet);
    }

    #[inline(always)]
    fn receive_ack(&mut self, packet: Packet) {
        let blocks = self.sacks.take(packet.sack);
        let ack = arrived(&packet, blocks.as_ref(), self.now);
        let state = &mut self.flows[packet.flow as usize];
        let spares = &mut self.spares.senders;
        state.sender.on_ack(&ack, &self.settings, spares);
        self.pump(packet.flow);
        self.arm_timer(packet.flow);
    }
}

/// Delayed acknowledgements (RFC 5681 §4.2): a segment in order may wait for the next one; one out
/// of order, or one that fills a gap, is answered at once.
impl<P: Policy> Simulator<P> {
    /// What waits is acknowledged before a segment that is marked when they are not, or the other
    /// way round, so that the sender can tell them apart (RFC 8257 §3.2).
    fn settle_change_of_mark(&mut self, packet: &Packet) {
        let spares = &mut self.spares.receivers;
        let receiver = &mut self.flows[packet.flow as usize].receiver;
        if receiver.differs_from_pending(packet.marks.marked()) {
            let answer = receiver.take_postponed(spares);
            self.acknowledge(packet.flow, answer);
        }
    }

    fn answer_or_postpone(&mut self, flow: u32, answer: Answer, delivered: u32) {
        let spares = &mut self.spares.receivers;
        let receiver = &mut self.flows[flow as usize].receiver;
        receiver.postpone(answer, spares);
        let may_wait = delivered == 1 && receiver.is_in_order();
        if !may_wait || receiver.pending() >= self.settings.delayed_ack {
            let answer = receiver.take_postponed(spares);
            return self.acknowledge(flow, answer);
        }
        if receiver.pending() > 1 {
            return;
        }
        // One timer event at most waits for a flow: a later deadline is read when it falls due.
        let waits = receiver.due() > self.now;
        let deadline = self.now + self.settings.ack_delay;
        receiver.set_due(deadline, spares);
        if !waits {
            self.events
                .set_timer(self.now, self.settings.ack_delay, Timer::DelayedAck(flow));
        }
    }

    pub(super) fn on_ack_timer(&mut self, flow: u32) {
        let spares = &mut self.spares.receivers;
        let receiver = &mut self.flows[flow as usize].receiver;
        if receiver.pending() == 0 {
            receiver.set_due(Time::ZERO, spares);
        } else if receiver.due() <= self.now {
            receiver.set_due(Time::ZERO, spares);
            let answer = receiver.take_postponed(spares);
            self.acknowledge(flow, answer);
        } else {
            let delay = receiver.due() - self.now;
            self.events
                .set_timer(self.now, delay, Timer::DelayedAck(flow));
        }
    }
}

/// An acknowledgement for the sender.
#[inline]
fn arrived<'a>(packet: &Packet, blocks: Option<&'a SackBlocks>, now: Time) -> Ack<'a> {
    Ack {
        next_expected: packet.sequence,
        blocks,
        stamp: packet.stamp,
        retransmission: packet.retransmission,
        marked: packet.marks.marked(),
        congested: packet.marks.congested(),
        now,
    }
}
