//! A lossless switch, which has lossless and lossy packets: arrivals, departures and pauses.

use super::{Booking, IngressUse, LosslessThresholds, Mmu, PauseFrame};
use crate::engine::packet::{PacketId, PacketKind, PacketStore};
use crate::scenario::Scenario;
use crate::switch::ecn::Marking;
use crate::switch::{Admission, Loss, PacketView, Policy, Switch, SwitchObserver};
use crate::units::{Rate, Time};

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
        self.mmu = Some(Box::new(mmu));
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
        if let Some(mmu) = &mut self.mmu {
            mmu.set_alphas(port, [ingress, egress]);
        }
    }

    /// Returns the use of a port's ingress by lossless packets at `now`, on the clock of the switch.
    /// Zero unless the switch is lossless.
    ///
    /// # Panics
    /// When there is no such port.
    pub fn ingress_use(&self, port: usize, now: Time) -> IngressUse {
        let mmu = self.mmu.as_ref();
        mmu.map_or_else(IngressUse::default, |mmu| mmu.ingress_at(port, now))
    }

    /// Returns the memory management unit of a lossless switch.
    pub(crate) fn mmu(&self) -> Option<&Mmu> {
        self.mmu.as_deref()
    }

    /// As [`mmu`](Switch::mmu), mutable.
    pub(crate) fn mmu_mut(&mut self) -> Option<&mut Mmu> {
        self.mmu.as_deref_mut()
    }
}

/// The packet path. The store gives the port by which a packet came ([`PacketStore::ingress_port`]).
impl<P: Policy> Switch<P> {
    /// As [`arrive`](Switch::arrive). The order of checks is that of the paper: the pool and the headroom
    /// at the ingress, then the egress. A packet that fails one changes no counter.
    #[inline(never)]
    pub(in crate::switch) fn arrive_lossless<O: SwitchObserver>(
        &mut self,
        packets: &mut PacketStore,
        id: PacketId,
        now: Time,
        observer: &mut O,
    ) -> Admission {
        if packets[id].flags.is_control() {
            return self.take_control(packets, id);
        }
        let packet = self.packet_view(&packets[id]);
        let ingress_port = packets.ingress_port(id);
        observer.arriving(self.id, self.view(now), packet);
        let Some(mmu) = &mut self.mmu else {
            return Admission::Lost(Loss::Refused);
        };
        let charge_of = mmu.admit(&self.buffer, ingress_port, packet, now);
        if charge_of == Booking::Drop {
            mmu.count_loss(ingress_port, packet, now);
            let loss = match self.buffer.fits(packet.bytes) {
                true => Loss::Refused,
                false => Loss::Full,
            };
            return self.lose(&packets[id], loss, now, observer);
        }
        mmu.charge(ingress_port, packet, charge_of, now);
        self.mark_arrival(packets, id, packet, now);
        self.buffer.store(packet.queue, packet.bytes, now);
        self.ask(now, |policy, view| policy.on_enqueue(view, packet));
        observer.enqueued(self.id, self.view(now), packet);
        // As in a lossy switch, the port's turn does not move on.
        if !self.ports[packet.port].sending && !self.is_blocked(packet.queue) {
            self.begin_service(packets, packet.port, id, now);
            observer.served(id, now, false);
            return Admission::Served;
        }
        self.queues[packet.queue].append(packets, id);
        self.ports[packet.port].length += 1;
        observer.waits(id, now);
        Admission::Queued
    }

    /// As [`sent`](Switch::sent).
    #[inline(never)]
    pub(in crate::switch) fn sent_lossless<O: SwitchObserver>(
        &mut self,
        packets: &mut PacketStore,
        id: PacketId,
        now: Time,
        observer: &mut O,
    ) -> Option<PacketId> {
        let packet = packets[id];
        let port = self.port_of(usize::from(packet.queue));
        if !packet.flags.is_control() {
            self.counters.forwarded += 1;
            let mut seen = self.packet_view(&packet);
            if self.meters.is_some() {
                seen.bytes = u64::from(self.counted_bytes(&packet));
            }
            if self.outside_buffer == 0 {
                self.release_lossless(packets.ingress_port(id), seen, now);
            }
            self.ask(now, |policy, view| policy.on_departure(view, seen));
            observer.departed(self.id, self.view(now), seen);
        } else if packet.kind != PacketKind::Pause {
            self.counters.forwarded += 1;
        }
        self.ports[port].sending = false;
        let next = self.begin_lossless(packets, port, now)?;
        if !packets[next].flags.is_control() {
            observer.served(next, now, true);
        }
        Some(next)
    }

    fn release_lossless(&mut self, ingress_port: usize, packet: PacketView, now: Time) {
        self.buffer.release(packet.queue, packet.bytes, now);
        if let Some(mmu) = &mut self.mmu {
            mmu.unbook(&self.buffer, ingress_port, packet, now);
        }
    }

    /// Makes an idle port begin to send the next packet, if any may be sent.
    fn begin_lossless(
        &mut self,
        packets: &mut PacketStore,
        port: usize,
        now: Time,
    ) -> Option<PacketId> {
        let mmu = self.mmu.as_mut()?;
        if let Some(control) = mmu.pop_control(port, packets) {
            self.ports[port].sending = true;
            return Some(control);
        }
        let queue = self.next_unblocked(port)?;
        let id = self.queues[queue].pop_front(packets)?;
        self.ports[port].length -= 1;
        self.begin_service(packets, port, id, now);
        Some(id)
    }

    /// Makes the port begin to send a packet that is no longer in a queue.
    fn begin_service(&mut self, packets: &mut PacketStore, port: usize, id: PacketId, now: Time) {
        self.ports[port].sending = true;
        self.mark_at_dequeue(&mut packets[id]);
        if self.outside_buffer > 0 {
            let seen = self.packet_view(&packets[id]);
            self.release_lossless(packets.ingress_port(id), seen, now);
        }
        if self.meters.is_some() {
            self.stamp(packets, id, now);
        }
    }

    fn is_blocked(&self, queue: usize) -> bool {
        let (port, priority) = (self.port_of(queue), self.numbering.priority(queue));
        let mmu = self.mmu.as_ref();
        mmu.is_some_and(|mmu| mmu.blocked_since(port, priority).is_some())
    }

    /// Returns the queue of a port that is served next: one packet of each in turn, of those that hold
    /// packets and are not paused.
    fn next_unblocked(&mut self, port: usize) -> Option<usize> {
        if self.ports[port].length == 0 {
            return None;
        }
        let priorities = self.numbering.queues_per_port();
        let turn = usize::from(self.ports[port].turn);
        let mmu = self.mmu.as_ref()?;
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
    pub(crate) fn stuck_since(&self, then: Time) -> Option<(usize, usize)> {
        let mmu = self.mmu.as_ref()?;
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
            mmu.stored()[1] > 0 && mmu.counters.last_lossless <= then && then > Time::ZERO;
        (since <= then && then > Time::ZERO || none_left).then_some(place)
    }

    /// Takes all packets from a queue, which count as lost.
    pub(crate) fn discard<O: SwitchObserver>(
        &mut self,
        packets: &PacketStore,
        port: usize,
        priority: usize,
        now: Time,
        observer: &mut O,
    ) {
        let queue = port * self.numbering.queues_per_port() + priority;
        while let Some(id) = self.queues[queue].pop_front(packets) {
            self.ports[port].length -= 1;
            let seen = self.packet_view(&packets[id]);
            let ingress_port = packets.ingress_port(id);
            self.release_lossless(ingress_port, seen, now);
            self.lose(&packets[id], Loss::Head, now, observer);
            if let Some(mmu) = &mut self.mmu {
                mmu.count_loss(ingress_port, seen, now);
                mmu.discarded.push(id);
            }
        }
    }

    /// Hands over a packet that was discarded and is still in the store.
    pub(crate) fn take_discarded(&mut self) -> Option<PacketId> {
        self.mmu.as_mut()?.discarded.pop()
    }
}

/// Control packets: pause frames, and the packets of the scenario's `control_class`. They precede all
/// data, and are never paused, lost or counted.
impl<P: Policy> Switch<P> {
    fn take_control(&mut self, packets: &mut PacketStore, id: PacketId) -> Admission {
        let port = self.port_of(usize::from(packets[id].queue));
        match self.send_control(packets, port, id) {
            true => Admission::Served,
            false => Admission::Queued,
        }
    }

    /// Hands a control packet to a port. Returns true if the port, which was idle, begins to send it.
    pub(crate) fn send_control(
        &mut self,
        packets: &mut PacketStore,
        port: usize,
        id: PacketId,
    ) -> bool {
        let Some(mmu) = &mut self.mmu else {
            return false;
        };
        if self.ports[port].sending {
            mmu.push_control(port, id, packets);
            return false;
        }
        debug_assert!(mmu.has_no_control(port), "an idle port has nothing to send");
        self.ports[port].sending = true;
        true
    }

    /// Takes the pause frame that is to be sent next, if any.
    #[inline]
    pub(crate) fn take_frame(&mut self) -> Option<PauseFrame> {
        self.mmu.as_mut()?.take_frame()
    }

    /// Applies a pause or a resumption of a priority by the neighbour behind a port. Returns the packet
    /// that the port then begins to send, if any.
    pub(crate) fn block<O: SwitchObserver>(
        &mut self,
        packets: &mut PacketStore,
        frame: PauseFrame,
        now: Time,
        observer: &mut O,
    ) -> Option<PacketId> {
        let PauseFrame {
            port,
            priority,
            pauses,
        } = frame;
        let mmu = self.mmu.as_mut()?;
        mmu.set_blocked(port, priority, pauses, now);
        if pauses || self.ports[port].sending {
            return None;
        }
        let next = self.begin_lossless(packets, port, now)?;
        observer.served(next, now, true);
        Some(next)
    }
}
