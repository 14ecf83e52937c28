//! Packets that leave the buffer without being sent: pushed out at the tail of a queue to make room,
//! or expelled at its head.

use super::{AdmissionControl, Loss, PacketView, Policy, PolicyParseError, Switch, SwitchObserver};
use crate::engine::packet::{PacketId, PacketStore};
use crate::units::Instant;

/// State of a switch whose policy pushes out.
#[derive(Clone, Default, Debug)]
pub(super) struct PushOut {
    choice: Choice,
    /// Packets that were pushed out and are still in the store.
    lost: Vec<PacketId>,
}

/// Scratch space of a decision, kept to avoid allocations.
#[derive(Clone, Default, Debug)]
struct Choice {
    /// Bytes of every queue without the chosen packets.
    lengths: Vec<u64>,
    /// The last packet of every queue that was not chosen.
    tails: Vec<Option<PacketId>>,
    /// Queues that lose their last packet, in order.
    chosen: Vec<usize>,
}

impl PushOut {
    /// Creates the state, if the policy pushes out.
    pub(super) fn for_policy<P: Policy>(
        policy: &P,
        outside_buffer: usize,
    ) -> Result<Option<Box<PushOut>>, PolicyParseError> {
        if !policy.pushes_out() {
            return Ok(None);
        }
        if outside_buffer > 1 {
            let problem = "packets that do not count make no room; needs ecn_uncounted_packets=0";
            return Err(PolicyParseError::Unusable {
                policy: "that pushes out".to_owned(),
                problem: problem.to_owned(),
            });
        }
        Ok(Some(Box::default()))
    }
}

impl<P: Policy> Switch<P> {
    /// Hands over a packet that was pushed out since the last call and is still in the store.
    #[inline]
    pub(super) fn take_pushed_out(&mut self) -> Option<PacketId> {
        match &mut self.admission {
            AdmissionControl::PushOut(push_out) => push_out.lost.pop(),
            _ => None,
        }
    }

    /// Removes tail packets of the queues that the policy names, if the arrival then fits; otherwise
    /// removes none. The packet in service is never removed.
    #[cold]
    #[inline(never)]
    pub(super) fn make_room<O: SwitchObserver>(
        &mut self,
        packets: &mut PacketStore,
        packet: PacketView,
        now: Instant,
        observer: &mut O,
    ) -> bool {
        let AdmissionControl::PushOut(push_out) = &mut self.admission else {
            return false;
        };
        let mut choice = std::mem::take(&mut push_out.choice);
        let fits = self.choose(packets, packet, now, &mut choice);
        if fits {
            for &queue in &choice.chosen {
                if let Some(id) = self.queues[queue].pop_back(packets) {
                    self.lose_queued(packets, id, now, observer);
                }
            }
        }
        if let AdmissionControl::PushOut(push_out) = &mut self.admission {
            push_out.choice = choice;
        }
        fits
    }

    fn choose(
        &mut self,
        packets: &PacketStore,
        packet: PacketView,
        now: Instant,
        choice: &mut Choice,
    ) -> bool {
        let Choice {
            lengths,
            tails,
            chosen,
        } = choice;
        let wanted = self.buffer.occupancy() + packet.bytes;
        let mut missing = wanted.saturating_sub(self.buffer.capacity());
        chosen.clear();
        tails.clear();
        tails.extend(self.queues.iter().map(|queue| queue.tail()));
        lengths.clear();
        let waiting = self.buffer.queues().iter().zip(tails.iter());
        lengths.extend(waiting.map(|(&bytes, tail)| if tail.is_some() { bytes } else { 0 }));
        // The arrival's own queue counts with the packet in service, even if that is all it holds.
        lengths[packet.queue] = self.buffer.queue(packet.queue);
        while missing > 0 {
            let Some(queue) = self.ask(now, |policy, view| policy.victim(view, packet, lengths))
            else {
                return false;
            };
            let Some(id) = tails[queue] else {
                return false;
            };
            let bytes = u64::from(packets[id].wire_bytes);
            missing = missing.saturating_sub(bytes);
            chosen.push(queue);
            let is_head = self.queues[queue].head() == Some(id);
            tails[queue] = (!is_head).then(|| packets.previous(id));
            lengths[queue] = if is_head { 0 } else { lengths[queue] - bytes };
        }
        true
    }

    /// Removes packets from the heads of the queues that the policy names.
    #[cold]
    #[inline(never)]
    pub(super) fn expel<O: SwitchObserver>(
        &mut self,
        packets: &mut PacketStore,
        now: Instant,
        observer: &mut O,
    ) {
        while let Some(queue) = self.ask(now, |policy, view| policy.expel(view))
            && let Some(id) = self.queues[queue].pop_front(packets)
        {
            self.lose_queued(packets, id, now, observer);
        }
    }

    /// Handles the loss of a packet that has left its queue.
    fn lose_queued<O: SwitchObserver>(
        &mut self,
        packets: &PacketStore,
        id: PacketId,
        now: Instant,
        observer: &mut O,
    ) {
        let packet = self.packet_view(&packets[id]);
        self.ports[packet.port].length -= 1;
        self.counters.pushed_out += 1;
        if self.aqm.is_some() {
            self.aqm_on_change(packet.queue, now);
        }
        self.buffer.release(packet.queue, packet.bytes, now);
        if self.aqm.is_some() {
            self.aqm_on_departure(packet.queue, now);
        }
        self.lose(&packets[id], Loss::PushedOut, now, observer);
        if let AdmissionControl::PushOut(push_out) = &mut self.admission {
            push_out.lost.push(id);
        }
    }
}
