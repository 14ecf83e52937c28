//! What happens at the switch: admission, queueing, departure.

use super::{Simulator, Timer};
use crate::network::event::Due;
use crate::network::packet::{Packet, PacketKind};
use crate::switch::{Policy, Verdict, View};

impl<P: Policy> Simulator<P> {
    /// The last bit of a packet has arrived: admit it or drop it.
    #[inline]
    pub(super) fn arrive_at_switch(&mut self, mut packet: Packet) {
        let port = usize::from(packet.port);
        let bytes = u64::from(packet.wire_bytes);
        let full = !self.buffer.fits(bytes);
        let view = View {
            buffer: &self.buffer,
            now: self.now,
            rate: self.rate,
        };
        if full || self.policy.on_arrival(view, port, bytes) == Verdict::Drop {
            self.drop_packet(packet, full);
            return;
        }
        if self.mark_threshold.is_some() {
            self.mark(&mut packet);
        }
        self.buffer.store(port, bytes, self.now);
        let view = View {
            buffer: &self.buffer,
            now: self.now,
            rate: self.rate,
        };
        self.policy.on_enqueue(view, port, bytes);
        let queue = &mut self.ports[port].packets;
        queue.push_back(packet);
        let length = queue.len();
        if length <= self.uncounted {
            self.buffer.release(port, bytes, self.now);
        }
        if length == 1 {
            self.serve(port, packet);
        }
    }

    /// Marks data that finds a long queue: on the instantaneous length, before the arrival (RFC 8257
    /// §3.1).
    fn mark(&mut self, packet: &mut Packet) {
        let port = usize::from(packet.port);
        let length = self.buffer.queue(port);
        if self
            .mark_threshold
            .is_none_or(|threshold| length < threshold)
        {
            return;
        }
        match packet.kind {
            PacketKind::Data => packet.marked = true,
            // With DCTCP, ns-3's acknowledgements and SYNs claim to understand marks too.
            _ if self.settings.is_ns3() => packet.congested = true,
            _ => return,
        }
        self.counters.marks += 1;
    }

    fn drop_packet(&mut self, packet: Packet, full: bool) {
        let port = usize::from(packet.port);
        let bytes = u64::from(packet.wire_bytes);
        self.counters.drops += 1;
        self.counters.dropped_bytes += bytes;
        if packet.kind == PacketKind::Data {
            self.counters.drops_data += 1;
            if let Some(meter) = &mut self.meter {
                meter.lost(port);
            }
            self.note_hopeless_loss(packet);
        }
        self.sacks.take(packet.sack);
        self.flows[packet.flow as usize].in_network -= 1;
        let view = View {
            buffer: &self.buffer,
            now: self.now,
            rate: self.rate,
        };
        self.policy.on_drop(view, port, bytes, full);
    }

    /// A lost retransmission is not noticed before the timer expires (RFC 6675 §5.1), nor is the
    /// loss of one of a flow's last segments, behind which too few duplicates follow.
    fn note_hopeless_loss(&mut self, packet: Packet) {
        let flow = &mut self.flows[packet.flow as usize];
        let few_follow = packet.sequence + 3 >= flow.segments && !flow.sender.is_recovering();
        flow.doomed |= packet.retransmission || few_follow;
    }

    /// The port begins to send the packet at the head of its queue.
    #[inline]
    fn serve(&mut self, port: usize, packet: Packet) {
        match self.common_size(packet.wire_bytes) {
            Some(size) => {
                let due = self.due_in(self.common[size].transmission);
                self.port_free[size].push(due, port as u16);
            }
            None => {
                let due = self.due_in(self.transmission(packet.wire_bytes));
                self.agenda.push(due, Timer::PortFree(port as u16));
            }
        }
        if self.settings.is_ns3() {
            self.sequence += 1;
            self.ports[port].order = self.sequence;
        }
    }

    /// The last bit of the packet in service has left the port.
    #[inline]
    pub(super) fn port_is_free(&mut self, port: usize) {
        let Some(packet) = self.ports[port].packets.pop_front() else {
            return;
        };
        let bytes = u64::from(packet.wire_bytes);
        if self.uncounted == 0 {
            self.buffer.release(port, bytes, self.now);
        }
        self.counters.forwarded += 1;
        let view = View {
            buffer: &self.buffer,
            now: self.now,
            rate: self.rate,
        };
        self.policy.on_departure(view, port, bytes);
        // ns-3 schedules the delivery when the transmission begins, which decides among
        // simultaneous events.
        let due = if self.settings.is_ns3() {
            Due::new(self.now + self.propagation, self.ports[port].order)
        } else {
            self.due_in(self.propagation)
        };
        self.deliveries.push(due, packet);
        if self.uncounted > 0
            && let Some(next) = self.ports[port].packets.get(self.uncounted - 1)
        {
            let bytes = u64::from(next.wire_bytes);
            self.buffer.release(port, bytes, self.now);
        }
        if let Some(&next) = self.ports[port].packets.front() {
            self.serve(port, next);
        }
    }
}
