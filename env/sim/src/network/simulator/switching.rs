//! What happens at the switch: admission, queueing, departure.

use super::Simulator;
use crate::network::event::Subject;
use crate::network::outcome::DropRow;
use crate::network::packet::{NO_PACKET, Packet, PacketId, PacketKind};
use crate::switch::{Loss, PacketView, Policy, Verdict, View};

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
        let packet = self.packet_view(id);
        if self.buffer.fits(packet.bytes) {
            let view = View {
                buffer: &self.buffer,
                now,
                rate: self.rate,
            };
            if self.policy.on_arrival(view, packet) == Verdict::Drop {
                return self.drop_packet(id, Loss::Refused);
            }
        } else if self.pushing_out.is_none() || !self.make_room(packet) {
            return self.drop_packet(id, Loss::Full);
        }
        if self.mark_threshold.is_some() {
            self.mark(id);
        }
        self.buffer.store(packet.queue, packet.bytes, now);
        let view = View {
            buffer: &self.buffer,
            now,
            rate: self.rate,
        };
        self.policy.on_enqueue(view, packet);
        let line = &mut self.ports[packet.port];
        if line.sending {
            line.length += 1;
            if (line.length as usize) < self.uncounted {
                self.buffer.release(packet.queue, packet.bytes, now);
            }
            if self.waits.is_some() {
                self.packets.set_joined(id, now);
            }
            self.queues[packet.queue].append(&mut self.packets, id);
        } else {
            line.sending = true;
            if let Some(waits) = &mut self.waits {
                waits.add_none();
            }
            if self.uncounted > 0 {
                self.buffer.release(packet.queue, packet.bytes, now);
            }
            self.serve(id);
        }
        if self.pushing_out.is_some() {
            self.expel();
        }
    }

    /// The packet as a policy sees it.
    #[inline(always)]
    pub(super) fn packet_view(&self, id: PacketId) -> PacketView {
        let packet = &self.packets[id];
        let queue = usize::from(packet.queue);
        let forward = matches!(
            packet.kind,
            PacketKind::Data | PacketKind::Syn | PacketKind::HandshakeAck
        );
        PacketView {
            port: self.port_of(queue),
            queue,
            bytes: u64::from(packet.wire_bytes),
            flow: packet.flow << 1 | u32::from(!forward),
            unscheduled: packet.marks.unscheduled(),
        }
    }

    #[inline(always)]
    fn port_of(&self, queue: usize) -> usize {
        match self.queues_per_port {
            1 => queue,
            queues => queue / queues,
        }
    }

    /// Marks data that finds a long queue: on the instantaneous length, before the arrival (RFC 8257
    /// §3.1).
    fn mark(&mut self, id: PacketId) {
        let packet = &mut self.packets[id];
        let length = self.buffer.queue(usize::from(packet.queue));
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
    pub(super) fn drop_packet(&mut self, id: PacketId, loss: Loss) {
        let seen = self.packet_view(id);
        let packet = self.packets[id];
        self.counters.drops += 1;
        self.counters.dropped_bytes += seen.bytes;
        if packet.kind == PacketKind::Data {
            self.counters.drops_data += 1;
            if let Some(meter) = &mut self.meter {
                meter.lost(seen.port);
            }
            self.note_hopeless_loss(&packet);
        }
        self.sacks.take(packet.sack);
        self.packets.remove(id);
        self.flows[packet.flow as usize].in_network -= 1;
        let view = View {
            buffer: &self.buffer,
            now: self.switch_now(),
            rate: self.rate,
        };
        if let Some(drops) = &mut self.drops {
            drops.push(DropRow {
                t: view.now,
                port: seen.port as u32,
                queue_bytes: self.buffer.port(seen.port),
                occupancy_bytes: self.buffer.occupancy(),
                loss,
            });
        }
        self.policy.on_drop(view, seen, loss);
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
        let subject = Subject {
            packet: id,
            sender: self.port_of(usize::from(packet.queue)) as u16,
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
        let packet = self.packet_view(subject.packet);
        self.cause = self.causes.delivered(self.packets[subject.packet].class);
        if self.uncounted == 0 {
            self.buffer.release(packet.queue, packet.bytes, now);
        }
        self.counters.forwarded += 1;
        let view = View {
            buffer: &self.buffer,
            now,
            rate: self.rate,
        };
        self.policy.on_departure(view, packet);
        if self.uncounted > 1 {
            self.uncount(packet.port);
        }
        match self.next_of_port(packet.port) {
            Some(next) => {
                if let Some(waits) = &mut self.waits
                    && let Some(joined) = self.packets.joined(next)
                {
                    waits.add(now - joined);
                }
                if self.uncounted == 1 {
                    let next = self.packet_view(next);
                    self.buffer.release(next.queue, next.bytes, now);
                }
                self.serve(next);
            }
            None => self.ports[packet.port].sending = false,
        }
        if self.pushing_out.is_some() {
            self.expel();
        }
        self.deliver(subject.packet);
    }

    /// A packet has left, and another one behind the next moves up among those that do not count.
    /// The port has one queue.
    #[cold]
    fn uncount(&mut self, port: usize) {
        let now = self.switch_now();
        let mut waiting = self.queues[port].iter(&self.packets);
        if let Some(next) = waiting.nth(self.uncounted - 1) {
            let bytes = u64::from(self.packets[next].wire_bytes);
            self.buffer.release(port, bytes, now);
        }
    }
}
