//! A lossless switch, which has lossless and lossy packets: arrivals, departures and pauses.

use super::{IngressUse, LosslessThresholds, Mmu, PauseFrame};
use crate::engine::packet::{PacketId, PacketKind, PacketStore};
use crate::scenario::Scenario;
use crate::switch::ecn::Marking;
use crate::switch::{
    Admission, AdmissionControl, LOSSLESS, Loss, PacketView, Policy, Switch, SwitchObserver,
};
use crate::units::{Instant, Rate};

/// Set-up and read access.
impl<P: Policy> Switch<P> {
    /// Makes the switch lossless; to be called before the first packet. `at` is the scenario as the
    /// switch sees it.
    pub(crate) fn enable_lossless(
        &mut self,
        thresholds: LosslessThresholds,
        at: &Scenario,
        rates: &[Rate],
        seed: u64,
    ) {
        let capacity = self.buffer.capacity();
        let mmu = Mmu::new(self.id, thresholds, at, capacity, rates);
        self.admission = AdmissionControl::Lossless(Box::new(mmu));
        self.path = LOSSLESS;
        if let Some(marking) = Marking::at_dequeue(at, seed, self.id, rates) {
            self.marking = marking;
        }
    }

    /// Sets the control factors of a port: that of its ingress queues of lossless packets, and that of
    /// its egress queues of lossy ones. Has no effect unless the switch is lossless.
    ///
    /// # Panics
    /// When there is no such port.
    pub fn set_lossless_alphas(&mut self, port: usize, ingress: f64, egress: f64) {
        if let Some(mmu) = self.mmu_mut() {
            mmu.set_alphas(port, [ingress, egress]);
        }
    }

    /// Returns the use of a port's ingress by lossless packets at `now`, on the clock of the switch.
    /// Zero unless the switch is lossless.
    ///
    /// # Panics
    /// When there is no such port.
    pub fn ingress_use(&self, port: usize, now: Instant) -> IngressUse {
        self.mmu()
            .map_or_else(IngressUse::default, |mmu| mmu.ingress_at(port, now))
    }

    /// Returns the memory management unit of a lossless switch.
    pub(crate) fn mmu(&self) -> Option<&Mmu> {
        match &self.admission {
            AdmissionControl::Lossless(mmu) => Some(mmu),
            _ => None,
        }
    }

    /// As [`mmu`](Switch::mmu), mutable.
    pub(crate) fn mmu_mut(&mut self) -> Option<&mut Mmu> {
        match &mut self.admission {
            AdmissionControl::Lossless(mmu) => Some(mmu),
            _ => None,
        }
    }
}

/// Stages of the packet path that differ.
impl<P: Policy> Switch<P> {
    /// Decides on a packet that came by a port, and counts it. The order of checks is that of the paper:
    /// the pool and the headroom at the ingress, then the egress. A packet that fails one changes no
    /// counter.
    #[inline(never)]
    pub(in crate::switch) fn admit_lossless(
        &mut self,
        ingress_port: usize,
        packet: PacketView,
        now: Instant,
    ) -> Result<bool, Loss> {
        let AdmissionControl::Lossless(mmu) = &mut self.admission else {
            return Err(Loss::Refused);
        };
        let Some(charge) = mmu.admit(&self.buffer, ingress_port, packet, now) else {
            mmu.count_loss(ingress_port, packet, now);
            return Err(match self.buffer.fits(packet.bytes) {
                true => Loss::Refused,
                false => Loss::Full,
            });
        };
        mmu.charge(ingress_port, packet, charge, now);
        Ok(true)
    }

    /// Takes the packet that a port sends next: a control packet, or one of a queue that is not blocked.
    #[inline(never)]
    pub(in crate::switch) fn next_lossless(
        &mut self,
        packets: &PacketStore,
        port: usize,
    ) -> Option<PacketId> {
        if let Some(control) = self.mmu_mut()?.pop_control(port, packets) {
            return Some(control);
        }
        let queue = self.next_unblocked(port)?;
        let id = self.queues[queue].pop_front(packets)?;
        self.ports[port].length -= 1;
        Some(id)
    }

    /// Returns true if the neighbour behind the port of a queue has paused it.
    #[inline]
    pub(in crate::switch) fn is_blocked(&self, queue: usize) -> bool {
        self.mmu().is_some_and(|mmu| mmu.is_blocked(queue))
    }

    /// Returns the queue of a port that is served next: one packet of each in turn, of those that hold
    /// packets and are not paused.
    fn next_unblocked(&mut self, port: usize) -> Option<usize> {
        if self.ports[port].length == 0 {
            return None;
        }
        let priorities = self.numbering.queues_per_port();
        let turn = usize::from(self.ports[port].turn);
        let mmu = self.mmu()?;
        let ready = |priority: &usize| {
            let waits = !self.queues[port * priorities + priority].is_empty();
            waits && mmu.blocked_since(port, *priority).is_none()
        };
        let in_turn = (turn..priorities).chain(0..turn);
        let priority = in_turn.into_iter().find(ready)?;
        let next = (priority + 1) % priorities;
        self.ports[port].turn = u16::try_from(next).expect("a port has at most 8 queues");
        Some(port * priorities + priority)
    }
}

/// The watchdog.
impl<P: Policy> Switch<P> {
    /// Returns a port and priority that holds packets and has been paused since `then` or before. If
    /// lossless packets wait and none has left since then, returns the first one that was paused.
    pub(crate) fn stuck_since(&self, then: Instant) -> Option<(usize, usize)> {
        let mmu = self.mmu()?;
        let priorities = self.numbering.queues_per_port();
        let places = (0..self.queues.len()).map(|place| (place / priorities, place % priorities));
        let waiting = places
            .filter(|&(port, priority)| !self.queues[port * priorities + priority].is_empty());
        let paused = waiting.filter_map(|(port, priority)| {
            let since = mmu.blocked_since(port, priority)?;
            Some((since, (port, priority)))
        });
        let (since, place) = paused.min_by_key(|(since, _)| *since)?;
        let none_left =
            mmu.stored()[1] > 0 && mmu.counters.last_lossless <= then && then > Instant::ZERO;
        (since <= then && then > Instant::ZERO || none_left).then_some(place)
    }

    /// Takes all packets from a queue, which count as lost.
    pub(crate) fn discard<O: SwitchObserver>(
        &mut self,
        packets: &PacketStore,
        port: usize,
        priority: usize,
        now: Instant,
        observer: &mut O,
    ) {
        let queue = port * self.numbering.queues_per_port() + priority;
        while let Some(id) = self.queues[queue].pop_front(packets) {
            self.ports[port].length -= 1;
            let seen = self.packet_view(&packets[id]);
            let ingress_port = packets.ingress_port(id);
            self.release::<LOSSLESS>(packets, id, seen, now);
            self.lose(&packets[id], Loss::Head, now, observer);
            if let Some(mmu) = self.mmu_mut() {
                mmu.count_loss(ingress_port, seen, now);
                mmu.discarded.push(id);
            }
        }
    }

    /// Hands over a packet that was discarded and is still in the store.
    pub(crate) fn take_discarded(&mut self) -> Option<PacketId> {
        self.mmu_mut()?.discarded.pop()
    }
}

/// Control packets: pause frames, and the packets of the scenario's `control_class`. They precede all
/// data, and are never paused, lost or counted.
impl<P: Policy> Switch<P> {
    /// As [`sent`](Switch::sent), for a control packet.
    #[cold]
    #[inline(never)]
    pub(in crate::switch) fn sent_control<O: SwitchObserver>(
        &mut self,
        packets: &mut PacketStore,
        id: PacketId,
        now: Instant,
        observer: &mut O,
    ) -> Option<PacketId> {
        self.counters.forwarded += u64::from(packets[id].kind != PacketKind::Pause);
        let port = self.port_of(usize::from(packets[id].queue));
        self.serve_next::<LOSSLESS, O>(packets, port, now, observer)
    }

    /// Hands a control packet to its port, which sends it at once if it is idle.
    #[cold]
    #[inline(never)]
    pub(crate) fn send_control(&mut self, packets: &mut PacketStore, id: PacketId) -> Admission {
        let port = self.port_of(usize::from(packets[id].queue));
        if !std::mem::replace(&mut self.ports[port].sending, true) {
            return Admission::Served;
        }
        if let Some(mmu) = self.mmu_mut() {
            mmu.push_control(port, id, packets);
        }
        Admission::Queued
    }

    /// Takes the pause frame that is to be sent next, if any.
    #[inline]
    pub(crate) fn take_frame(&mut self) -> Option<PauseFrame> {
        self.mmu_mut()?.take_frame()
    }

    /// Applies a pause or a resumption of a priority by the neighbour behind a port. Returns the packet
    /// that the port then begins to send, if any.
    pub(crate) fn block<O: SwitchObserver>(
        &mut self,
        packets: &mut PacketStore,
        frame: PauseFrame,
        now: Instant,
        observer: &mut O,
    ) -> Option<PacketId> {
        let port = frame.port;
        self.mmu_mut()?
            .set_blocked(port, frame.priority, frame.pauses, now);
        if frame.pauses || self.ports[port].sending {
            return None;
        }
        self.serve_next::<LOSSLESS, O>(packets, port, now, observer)
    }
}
