//! What happens at the switch: admission, queueing, departure.

use super::Simulator;
use crate::network::event::Subject;
use crate::network::packet::{NO_PACKET, Packet, PacketId, PacketKind};
use crate::switch::{Policy, Verdict, View};

impl<P: Policy> Simulator<P> {
    /// The last bit of a packet has arrived: admit it or drop it.
    #[inline(always)]
    pub(super) fn arrive_at_switch(&mut self, subject: Subject) {
        if self.fair_hosts {
            return self.admit(subject.packet);
        }
        let packet = &self.packets[subject.packet];
        let (next, class) = (packet.next, packet.class);
        if next == NO_PACKET {
            return self.admit(subject.packet);
        }
        let cause = self.causes.sent(class, self.transmission(packet));
        self.send_next(next, cause);
        self.admit(subject.packet);
    }

    #[inline(always)]
    fn admit(&mut self, id: PacketId) {
        let now = self.switch_now();
        let packet = &self.packets[id];
        let port = usize::from(packet.port);
        let bytes = u64::from(packet.wire_bytes);
        let full = !self.buffer.fits(bytes);
        let view = View {
            buffer: &self.buffer,
            now,
            rate: self.rate,
        };
        if full || self.policy.on_arrival(view, port, bytes) == Verdict::Drop {
            self.drop_packet(id, full);
            return;
        }
        if self.mark_threshold.is_some() {
            self.mark(id);
        }
        self.buffer.store(port, bytes, now);
        let view = View {
            buffer: &self.buffer,
            now,
            rate: self.rate,
        };
        self.policy.on_enqueue(view, port, bytes);
        let line = &mut self.ports[port];
        if line.sending {
            line.waiting.push_back(&mut self.packets, id);
            line.length += 1;
            if (line.length as usize) < self.uncounted {
                self.buffer.release(port, bytes, now);
            }
        } else {
            line.sending = true;
            if self.uncounted > 0 {
                self.buffer.release(port, bytes, now);
            }
            self.serve(id);
        }
    }

    /// Marks data that finds a long queue: on the instantaneous length, before the arrival (RFC 8257
    /// §3.1).
    fn mark(&mut self, id: PacketId) {
        let packet = &mut self.packets[id];
        let length = self.buffer.queue(usize::from(packet.port));
        if self
            .mark_threshold
            .is_none_or(|threshold| length < threshold)
        {
            return;
        }
        match packet.kind {
            PacketKind::Data => packet.marks.mark(),
            // With DCTCP, ns-3's acknowledgements and SYNs claim to understand marks too.
            _ if self.settings.is_ns3() => packet.marks.congest(),
            _ => return,
        }
        self.counters.marks += 1;
    }

    #[inline(never)]
    fn drop_packet(&mut self, id: PacketId, full: bool) {
        let now = self.switch_now();
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
            now,
            rate: self.rate,
        };
        self.policy.on_drop(view, port, bytes, full);
    }

    /// A lost retransmission is not noticed before the timer expires (RFC 6675 §5.1), nor is the
    /// loss of one of a flow's last segments, behind which too few duplicates follow.
    fn note_hopeless_loss(&mut self, packet: &Packet) {
        let flow = &mut self.flows[packet.flow as usize];
        let few_follow = packet.sequence + 3 >= flow.segments && !flow.sender.is_recovering();
        if packet.retransmission || few_follow {
            flow.signs.doom();
        }
    }

    /// The packet's port begins to send it.
    #[inline(always)]
    fn serve(&mut self, id: PacketId) {
        let packet = &self.packets[id];
        let transmission = self.transmission(packet);
        let sender = packet.port;
        let subject = Subject {
            packet: id,
            sender,
            ..Subject::default()
        };
        self.events
            .free_port(self.now, transmission, packet.class, subject);
    }

    /// The last bit of the packet has left its port, and one propagation delay later, which is now
    /// on the clock of the hosts, it is delivered.
    #[inline(always)]
    pub(super) fn port_is_free(&mut self, subject: Subject) {
        let now = self.switch_now();
        let port = usize::from(subject.sender);
        let packet = &self.packets[subject.packet];
        let bytes = u64::from(packet.wire_bytes);
        self.cause = self.causes.delivered(packet.class);
        if self.uncounted == 0 {
            self.buffer.release(port, bytes, now);
        }
        self.counters.forwarded += 1;
        let view = View {
            buffer: &self.buffer,
            now,
            rate: self.rate,
        };
        self.policy.on_departure(view, port, bytes);
        if self.uncounted > 1 {
            self.uncount(port);
        }
        let line = &mut self.ports[port];
        match line.waiting.pop_front(&self.packets) {
            Some(next) => {
                line.length -= 1;
                if self.uncounted == 1 {
                    let bytes = u64::from(self.packets[next].wire_bytes);
                    self.buffer.release(port, bytes, now);
                }
                self.serve(next);
            }
            None => line.sending = false,
        }
        self.deliver(subject.packet);
    }

    /// A packet has left, and another one behind the next moves up among those that do not count.
    #[cold]
    fn uncount(&mut self, port: usize) {
        let now = self.switch_now();
        let mut waiting = self.ports[port].waiting.iter(&self.packets);
        if let Some(next) = waiting.nth(self.uncounted - 1) {
            let bytes = u64::from(self.packets[next].wire_bytes);
            self.buffer.release(port, bytes, now);
        }
    }
}
