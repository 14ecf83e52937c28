//! Packets that leave the buffer without being sent: pushed out at the tail of a queue to make room,
//! or expelled at its head.

use super::{SimError, Simulator};
use crate::network::packet::PacketId;
use crate::scenario::Scenario;
use crate::switch::{Loss, PacketView, Policy, PolicyParseError, View};

/// Scratch space of a decision, kept so that none is allocated on the way.
#[derive(Clone, Default, Debug)]
pub(super) struct PushingOut {
    /// Bytes of every queue without what was chosen.
    lengths: Vec<u64>,
    /// The last packet of every queue that was not chosen.
    tails: Vec<Option<PacketId>>,
    /// Queues that lose their last packet, in order.
    chosen: Vec<usize>,
}

impl PushingOut {
    /// For a policy that pushes out.
    pub(super) fn for_policy<P: Policy>(
        policy: &P,
        scenario: &Scenario,
    ) -> Result<Option<Box<PushingOut>>, SimError> {
        if !policy.pushes_out() {
            return Ok(None);
        }
        if scenario.uncounted_packets() > 1 {
            let problem = "packets that do not count make no room; needs ecn_uncounted_packets=0";
            return Err(SimError::Policy(PolicyParseError::Unusable {
                policy: "that pushes out".to_owned(),
                problem: problem.to_owned(),
            }));
        }
        Ok(Some(Box::default()))
    }
}

impl<P: Policy> Simulator<P> {
    /// Removes tail packets of the queues that the policy names, if the arrival then fits; else
    /// nothing. The packet in service is never removed.
    #[cold]
    #[inline(never)]
    pub(super) fn make_room(&mut self, packet: PacketView) -> bool {
        let Some(mut room) = self.pushing_out.take() else {
            return false;
        };
        let fits = self.choose(packet, &mut room);
        if fits {
            for &queue in &room.chosen {
                if let Some(id) = self.queues[queue].pop_back(&mut self.packets) {
                    self.push_out(id);
                }
            }
        }
        self.pushing_out = Some(room);
        fits
    }

    fn choose(&mut self, packet: PacketView, room: &mut PushingOut) -> bool {
        let wanted = self.buffer.occupancy() + packet.bytes;
        let mut missing = wanted.saturating_sub(self.buffer.capacity());
        room.chosen.clear();
        room.tails.clear();
        room.tails
            .extend(self.queues.iter().map(|queue| queue.tail()));
        room.lengths.clear();
        let lengths = self.buffer.queues().iter().zip(&room.tails);
        room.lengths
            .extend(lengths.map(|(&bytes, tail)| if tail.is_some() { bytes } else { 0 }));
        // Its own queue counts with the packet in service, even if that is all it has.
        room.lengths[packet.queue] = self.buffer.queue(packet.queue);
        let now = self.switch_now();
        while missing > 0 {
            let view = View {
                buffer: &self.buffer,
                now,
                rate: self.rate,
            };
            let Some(queue) = self.policy.victim(view, packet, &room.lengths) else {
                return false;
            };
            let Some(id) = room.tails[queue] else {
                return false;
            };
            let bytes = u64::from(self.packets[id].wire_bytes);
            missing = missing.saturating_sub(bytes);
            room.chosen.push(queue);
            let is_head = self.queues[queue].head() == Some(id);
            room.tails[queue] = (!is_head).then(|| self.packets.previous(id));
            room.lengths[queue] = if is_head {
                0
            } else {
                room.lengths[queue] - bytes
            };
        }
        true
    }

    /// Removes packets from the heads of the queues that the policy names.
    #[cold]
    #[inline(never)]
    pub(super) fn expel(&mut self) {
        let now = self.switch_now();
        loop {
            let view = View {
                buffer: &self.buffer,
                now,
                rate: self.rate,
            };
            let Some(queue) = self.policy.expel(view) else {
                return;
            };
            let Some(id) = self.queues[queue].pop_front(&self.packets) else {
                return;
            };
            self.push_out(id);
        }
    }

    /// A packet that has left its queue is lost.
    fn push_out(&mut self, id: PacketId) {
        let packet = self.packet_view(id);
        self.ports[packet.port].length -= 1;
        self.counters.pushed_out += 1;
        self.buffer
            .release(packet.queue, packet.bytes, self.switch_now());
        self.drop_packet(id, Loss::PushedOut);
    }
}
