//! What happens at the switch: admission, queueing, departure.

use super::Simulator;
use crate::network::packet::{Packet, PacketId, PacketKind};
use crate::switch::{Policy, Verdict, View};

impl<P: Policy> Simulator<P> {
    /// The last bit of a packet has arrived: admit it or drop it.
    #[inline(always)]
    pub(super) fn arrive_at_switch(&mut self, id: PacketId) {
        let packet = &self.packets[id];
        let port = usize::from(packet.port);
        let bytes = u64::from(packet.wire_bytes);
        let full = !self.buffer.fits(bytes);
        let view = View {
            buffer: &self.buffer,
            now: self.now,
            rate: self.rate,
        };
        if full || self.policy.on_arrival(view, port, bytes) == Verdict::Drop {
            self.drop_packet(id, full);
            return;
        }
        self.buffer.store(port, bytes, self.now);
        let view = View {
            buffer: &self.buffer,
            now: self.now,
            rate: self.rate,
        };
        self.policy.on_enqueue(view, port, bytes);
        let line = &mut self.ports[port];
        if line.sending {
            line.waiting.push_back(&mut self.packets, id);
        } else {
            line.sending = true;
            self.serve(id);
        }
    }

    #[inline(never)]
    fn drop_packet(&mut self, id: PacketId, full: bool) {
        let packet = self.packets[id];
        let port = usize::from(packet.port);
        let bytes = u64::from(packet.wire_bytes);
        self.counters.drops += 1;
        self.counters.dropped_bytes += bytes;
        if packet.kind == PacketKind::Data {
            self.counters.drops_data += 1;
            if let Some(meter) = &mut self.meter {
                meter.lost(port);
            }
            self.note_hopeless_loss(&packet);
        }
        self.sacks.take(packet.sack);
        self.packets.remove(id);
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
    fn note_hopeless_loss(&mut self, packet: &Packet) {
        let flow = &mut self.flows[packet.flow as usize];
        let few_follow = packet.sequence + 3 >= flow.segments && !flow.sender.is_recovering();
        flow.doomed |= packet.retransmission || few_follow;
    }

    /// The packet's port begins to send it.
    #[inline(always)]
    fn serve(&mut self, id: PacketId) {
        let packet = &self.packets[id];
        if !self.count_in_service {
            let (port, bytes) = (usize::from(packet.port), u64::from(packet.wire_bytes));
            self.buffer.release(port, bytes, self.now);
        }
        let transmission = self.transmission(packet);
        self.events
            .free_port(self.now, transmission, packet.class, id);
    }

    /// The last bit of the packet has left its port.
    #[inline(always)]
    pub(super) fn port_is_free(&mut self, id: PacketId) {
        let packet = &self.packets[id];
        let port = usize::from(packet.port);
        let bytes = u64::from(packet.wire_bytes);
        if self.count_in_service {
            self.buffer.release(port, bytes, self.now);
        }
        self.counters.forwarded += 1;
        let view = View {
            buffer: &self.buffer,
            now: self.now,
            rate: self.rate,
        };
        self.policy.on_departure(view, port, bytes);
        self.events.deliver(self.now, self.propagation, id);
        match self.ports[port].waiting.pop_front(&self.packets) {
            Some(next) => self.serve(next),
            None => self.ports[port].sending = false,
        }
    }
}
