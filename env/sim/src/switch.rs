//! The shared-memory switch: one buffer, queues per port, admission, scheduling, push-out, marking.
//!
//! [`SharedBuffer`] is the only place that counts bytes; a [`Policy`] sees it read-only and decides on
//! each arriving packet. A [`Switch`] knows neither flows nor hosts: packets arrive, and are sent or
//! lost.

pub mod aqm;
mod base;
mod buffer;
mod ecn;
mod egress;
pub(crate) mod mmu;
mod numbering;
mod observer;
mod open_loop;
pub mod policy;
mod push_out;
mod scheduling;
mod spec;

use crate::engine::clock::ClockOffset;
use crate::engine::packet::{Packet, PacketDirection, PacketKind, PacketQueue, PacketStore};
use crate::scenario::{Scenario, Scheduler};
use crate::units::{Rate, Time};

pub use crate::engine::packet::PacketId;
pub use crate::engine::topology::SwitchId;
pub use base::{LowLevelPolicy, UnknownBasePolicy};
pub use buffer::SharedBuffer;
pub use mmu::{IngressState, IngressUse, LosslessDrop, LosslessThresholds, PfcInterval, Sharing};
pub use observer::SwitchObserver;
pub use open_loop::{Fate, OpenLoop};
pub use policy::{
    AnyPolicy, Definition, Loss, PacketView, ParameterInfo, Policy, PolicyInfo, Verdict, View,
};
pub use spec::{LABELS, PolicyParseError, PolicySpec, SplitError};

use aqm::{Advice, QueueManagement};
use ecn::{ArrivalMarking, Marking};
use egress::DeviceQueues;
pub(crate) use egress::Meters;
use mmu::Mmu;
use numbering::Numbering;
use push_out::PushOut;
use scheduling::Scheduling;

/// Outcome of a packet's arrival.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Admission {
    /// The packet's port was idle and begins to send it.
    Served,
    /// The packet waits in its queue.
    Queued,
    /// The packet was lost.
    Lost(Loss),
}

/// One output port.
#[derive(Clone, Default, Debug)]
struct Port {
    /// True if a packet is being serialised.
    sending: bool,
    /// Queue whose turn it is, if there are several.
    turn: u16,
    /// Number of packets that wait.
    length: u32,
}

/// Counts over a run.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct SwitchCounters {
    pub(crate) forwarded: u64,
    pub(crate) drops: u64,
    pub(crate) drops_data: u64,
    /// Drops of unscheduled packets.
    pub(crate) drops_unscheduled: u64,
    pub(crate) dropped_bytes: u64,
    pub(crate) marks: u64,
    pub(crate) pushed_out: u64,
}

/// Settings that a switch is built from, apart from its policy.
#[derive(Clone, Debug)]
pub(crate) struct SwitchSettings {
    pub(crate) ports: usize,
    pub(crate) queues_per_port: usize,
    pub(crate) rate: Rate,
    /// Bytes of the buffer, and the bytes that occupancy is measured relative to.
    pub(crate) capacity: u64,
    pub(crate) scale: u64,
    /// Packets at the head of a queue that do not count in it.
    outside_buffer: usize,
    /// Packets of a port behind its scheduler, without the one in service.
    device_packets: u32,
    marking: Option<ArrivalMarking>,
    /// Seed of the random streams.
    pub(crate) seed: u64,
    scheduler: Scheduler,
    /// Number of a port's queues that are served strictly, before the others.
    strict: usize,
    /// Bytes that a queue may send in a turn, by priority.
    quanta: Vec<u64>,
}

impl SwitchSettings {
    /// Returns the settings of a switch of a scenario, with `ports` ports and `capacity` bytes.
    pub(crate) fn new(scenario: &Scenario, ports: usize, capacity: u64) -> SwitchSettings {
        SwitchSettings {
            ports,
            queues_per_port: scenario.queues.queues_per_port as usize,
            rate: scenario.rate(),
            capacity,
            scale: scenario.network.buffer_bytes,
            outside_buffer: scenario.uncounted_packets(),
            device_packets: scenario.queues.device_fifo_packets,
            marking: ArrivalMarking::of(scenario),
            seed: 0,
            scheduler: scenario.queues.scheduler,
            strict: scenario.queues.strict as usize,
            quanta: scenario.quanta(),
        }
    }

    /// Returns the settings of drop-tail queues, one for each port, without ECN.
    pub(crate) fn plain(ports: usize, capacity: u64, rate: Rate) -> SwitchSettings {
        SwitchSettings {
            ports,
            queues_per_port: 1,
            rate,
            capacity,
            scale: capacity,
            outside_buffer: 0,
            device_packets: 0,
            marking: None,
            seed: 0,
            scheduler: Scheduler::Rr,
            strict: 0,
            quanta: Vec::new(),
        }
    }
}

/// A shared-memory switch: store and forward, no processing time.
///
/// The switch is passive: its driver reports arrivals and the times when a port has sent its packet,
/// and is told which packet a port begins to send. Packets lie in the driver's store; the driver
/// disposes of lost packets.
#[derive(Clone, Debug)]
pub struct Switch<P> {
    id: SwitchId,
    clock_offset: ClockOffset,
    rate: Rate,
    outside_buffer: usize,
    marking: Marking,
    numbering: Numbering,
    ports: Vec<Port>,
    /// Packets that wait, without those being serialised, by queue.
    queues: Vec<PacketQueue>,
    scheduling: Scheduling,
    push_out: Option<Box<PushOut>>,
    aqm: Option<Box<QueueManagement>>,
    meters: Option<Box<Meters>>,
    devices: Option<Box<DeviceQueues>>,
    mmu: Option<Box<Mmu>>,
    buffer: SharedBuffer,
    policy: P,
    counters: SwitchCounters,
}

impl<P: Policy> Switch<P> {
    /// Creates an empty switch. If it [pushes out](Switch::pushes_out), the store must
    /// [link packets both ways](PacketStore::link_both_ways).
    pub(crate) fn new(
        id: SwitchId,
        clock_offset: ClockOffset,
        settings: &SwitchSettings,
        policy: P,
    ) -> Result<Switch<P>, PolicyParseError> {
        let SwitchSettings {
            ports,
            queues_per_port,
            ..
        } = *settings;
        let queues = ports * queues_per_port;
        let quanta = settings.quanta.clone();
        let scheduling = Scheduling::new(settings.scheduler, settings.strict, quanta, queues);
        let port = Port {
            turn: scheduling.first_turn(),
            ..Port::default()
        };
        Ok(Switch {
            id,
            clock_offset,
            rate: settings.rate,
            outside_buffer: settings.outside_buffer,
            marking: Marking::on_arrival(settings.marking, settings.seed, id, ports, queues),
            numbering: Numbering::new(queues_per_port),
            ports: vec![port; ports],
            queues: vec![PacketQueue::default(); queues],
            scheduling,
            push_out: PushOut::for_policy(&policy, settings.outside_buffer)?,
            aqm: None,
            meters: None,
            devices: DeviceQueues::new(settings.device_packets, ports),
            mmu: None,
            buffer: SharedBuffer::new(settings.capacity, settings.scale, ports, queues_per_port),
            policy,
            counters: SwitchCounters::default(),
        })
    }

    /// Handles the arrival of a packet's last bit: admits the packet or drops it. If it is
    /// [served](Admission::Served), its port has [sent](Switch::sent) it one transmission time later.
    ///
    /// Complexity: O(1), plus the cost of the policy.
    #[inline(always)]
    pub(crate) fn arrive<O: SwitchObserver>(
        &mut self,
        packets: &mut PacketStore,
        id: PacketId,
        now: Time,
        observer: &mut O,
    ) -> Admission {
        match self.mmu.is_some() {
            true => self.arrive_lossless(packets, id, now, observer),
            false => self.arrive_lossy(packets, id, now, observer),
        }
    }

    /// As [`arrive`](Switch::arrive) of a switch that is not lossless.
    #[inline(always)]
    pub(crate) fn arrive_lossy<O: SwitchObserver>(
        &mut self,
        packets: &mut PacketStore,
        id: PacketId,
        now: Time,
        observer: &mut O,
    ) -> Admission {
        debug_assert!(self.mmu.is_none(), "it has another way");
        let packet = self.packet_view(&packets[id]);
        observer.arriving(self.id, self.view(now), packet);
        let fits = self.buffer.fits(packet.bytes);
        if fits {
            let verdict = self.ask(now, |policy, view| policy.on_arrival(view, packet));
            if verdict == Verdict::Drop {
                return self.lose(&packets[id], Loss::Refused, now, observer);
            }
        } else if self.push_out.is_none() {
            return self.lose(&packets[id], Loss::Full, now, observer);
        }
        let (mut marked, mut exempt) = (false, false);
        if self.aqm.is_some() {
            // The policy's answer concerns the packet that it was asked about last.
            let spared = fits && self.policy.spares();
            match self.aqm_on_arrival(packets, id, packet, spared, now) {
                Advice::Pass => exempt = spared && self.exempts_from_marks(),
                Advice::Mark => marked = true,
                Advice::Drop => return self.lose(&packets[id], Loss::Early, now, observer),
            }
        }
        if !fits && !self.make_room(packets, packet, now, observer) {
            return self.lose(&packets[id], Loss::Full, now, observer);
        }
        if marked {
            packets[id].flags.mark();
            self.counters.marks += 1;
            observer.marked(self.id, packet);
        }
        if self.marking.is_on_arrival() && !marked && !exempt {
            self.mark_arrival(packets, id, packet, now);
        }
        self.buffer.store(packet.queue, packet.bytes, now);
        self.aqm_on_enqueued(id, packet, now);
        self.ask(now, |policy, view| policy.on_enqueue(view, packet));
        observer.enqueued(self.id, self.view(now), packet);
        let admission = if self.devices.is_some() {
            self.arrive_above_device(packets, id, packet, now, observer)
        } else if self.ports[packet.port].sending {
            let port = &mut self.ports[packet.port];
            port.length += 1;
            if (port.length as usize) < self.outside_buffer {
                self.buffer.release(packet.queue, packet.bytes, now);
            }
            observer.waits(id, now);
            self.queues[packet.queue].append(packets, id);
            Admission::Queued
        } else {
            self.ports[packet.port].sending = true;
            observer.served(id, now, false);
            if self.outside_buffer > 0 {
                self.buffer.release(packet.queue, packet.bytes, now);
            }
            if self.meters.is_some() {
                self.stamp(packets, id, now);
            }
            if self.aqm.is_some() {
                self.aqm_on_service(packet, now, observer);
            }
            Admission::Served
        };
        if self.push_out.is_some() {
            self.expel(packets, now, observer);
        }
        admission
    }

    /// Handles the departure of the last bit of packet `id` from its port. Returns the packet that the
    /// port begins to send, if one waits.
    ///
    /// Complexity: O(1), plus the cost of the policy; O(queues) if a port has several.
    #[inline(always)]
    pub(crate) fn sent<O: SwitchObserver>(
        &mut self,
        packets: &mut PacketStore,
        id: PacketId,
        now: Time,
        observer: &mut O,
    ) -> Option<PacketId> {
        match self.mmu.is_some() {
            true => self.sent_lossless(packets, id, now, observer),
            false => self.sent_lossy(packets, id, now, observer),
        }
    }

    /// As [`sent`](Switch::sent) of a switch that is not lossless.
    #[inline(always)]
    pub(crate) fn sent_lossy<O: SwitchObserver>(
        &mut self,
        packets: &mut PacketStore,
        id: PacketId,
        now: Time,
        observer: &mut O,
    ) -> Option<PacketId> {
        debug_assert!(self.mmu.is_none(), "it has another way");
        let mut packet = self.packet_view(&packets[id]);
        if self.meters.is_some() {
            packet.bytes = u64::from(self.counted_bytes(&packets[id]));
        }
        if self.devices.is_some() {
            return self.sent_by_device(packets, packet, now, observer);
        }
        if self.aqm.is_some() {
            self.aqm_on_change(packet.queue, now);
        }
        if self.outside_buffer == 0 {
            self.buffer.release(packet.queue, packet.bytes, now);
        }
        self.counters.forwarded += 1;
        self.ask(now, |policy, view| policy.on_departure(view, packet));
        observer.departed(self.id, self.view(now), packet);
        if self.outside_buffer > 1 {
            self.uncount(packets, packet.port, now);
        }
        let mut next = self.next_of_port(packets, packet.port);
        if self.aqm.is_some() {
            self.aqm_on_departure(packet.queue, now);
            next = next.and_then(|next| self.aqm_next(packets, next, now, observer));
        }
        match next {
            Some(next) => {
                observer.served(next, now, true);
                if self.outside_buffer == 1 {
                    let next = self.packet_view(&packets[next]);
                    if self.aqm.is_some() {
                        self.aqm_on_change(next.queue, now);
                    }
                    self.buffer.release(next.queue, next.bytes, now);
                }
                if self.meters.is_some() {
                    self.stamp(packets, next, now);
                }
            }
            None => self.ports[packet.port].sending = false,
        }
        if self.push_out.is_some() {
            self.expel(packets, now, observer);
        }
        next
    }

    #[inline(always)]
    fn view(&self, now: Time) -> View<'_> {
        View {
            buffer: &self.buffer,
            now,
            rate: self.rate,
        }
    }

    #[inline(always)]
    fn ask<R>(&mut self, now: Time, question: impl FnOnce(&mut P, View<'_>) -> R) -> R {
        let view = View {
            buffer: &self.buffer,
            now,
            rate: self.rate,
        };
        question(&mut self.policy, view)
    }

    /// Returns the packet as a policy sees it.
    #[inline(always)]
    fn packet_view(&self, packet: &Packet) -> PacketView {
        let queue = usize::from(packet.queue);
        let reverse = packet.kind.direction() == PacketDirection::Reverse;
        PacketView {
            port: self.port_of(queue),
            queue,
            bytes: u64::from(packet.wire_bytes),
            flow: packet.flow << 1 | u32::from(reverse),
            unscheduled: packet.flags.unscheduled(),
        }
    }

    /// Returns the port of a queue.
    #[inline(always)]
    pub(crate) fn port_of(&self, queue: usize) -> usize {
        self.numbering.port(queue)
    }

    #[inline(never)]
    fn lose<O: SwitchObserver>(
        &mut self,
        packet: &Packet,
        loss: Loss,
        now: Time,
        observer: &mut O,
    ) -> Admission {
        let seen = self.packet_view(packet);
        self.counters.drops += 1;
        self.counters.dropped_bytes += seen.bytes;
        self.counters.drops_data += u64::from(packet.kind == PacketKind::Data);
        self.counters.drops_unscheduled += u64::from(seen.unscheduled);
        observer.lost(self.id, self.view(now), seen, loss);
        self.ask(now, |policy, view| policy.on_drop(view, seen, loss));
        if self.aqm.is_some() {
            self.aqm_on_loss(seen, loss, now);
        }
        Admission::Lost(loss)
    }

    /// Stops counting the packet that moves up among those outside the buffer when a packet has left. The
    /// port has one queue.
    #[cold]
    fn uncount(&mut self, packets: &PacketStore, port: usize, now: Time) {
        let mut waiting = self.queues[port].iter(packets);
        if let Some(next) = waiting.nth(self.outside_buffer - 1) {
            let bytes = u64::from(packets[next].wire_bytes);
            self.buffer.release(port, bytes, now);
        }
    }
}

/// Read access.
impl<P: Policy> Switch<P> {
    /// Returns the number of the switch.
    pub fn id(&self) -> SwitchId {
        self.id
    }

    /// Returns the number of output ports.
    pub(crate) fn ports(&self) -> usize {
        self.ports.len()
    }

    /// Returns how far the event time is ahead of the switch's clock.
    #[inline]
    pub fn clock_offset(&self) -> ClockOffset {
        self.clock_offset
    }

    /// Returns the shared buffer.
    #[inline]
    pub fn buffer(&self) -> &SharedBuffer {
        &self.buffer
    }

    /// Returns the policy.
    #[inline]
    pub fn policy(&self) -> &P {
        &self.policy
    }

    /// Returns the policy, to be changed from outside the packet path, as a control loop does.
    pub fn policy_mut(&mut self) -> &mut P {
        &mut self.policy
    }

    /// Returns the length at which a queue stops accepting, bytes, if the policy has such a threshold.
    pub fn threshold(&self, queue: usize, now: Time) -> Option<u64> {
        match &self.mmu {
            Some(mmu) => mmu.threshold(&self.buffer, queue),
            None => self.policy.threshold(self.view(now), queue),
        }
    }

    /// As [`SharedBuffer::count_from`].
    pub(crate) fn count_occupancy_from(&mut self, now: Time) {
        self.buffer.count_from(now);
        if let Some(mmu) = &mut self.mmu {
            mmu.count_from(now);
        }
    }

    /// As [`SharedBuffer::count_until`].
    pub(crate) fn count_occupancy_until(&mut self, now: Time) {
        self.buffer.count_until(now);
        if let Some(mmu) = &mut self.mmu {
            mmu.count_until(now);
        }
    }

    /// Returns true if the policy removes packets that are already enqueued.
    pub(crate) fn pushes_out(&self) -> bool {
        self.push_out.is_some()
    }

    /// Puts queue management behind the policy. Its marks replace those of `ecn_threshold_bytes`,
    /// except for early drop that keeps them.
    pub(crate) fn set_aqm(&mut self, aqm: QueueManagement) {
        if aqm.marks() && !aqm.keeps_marks() {
            self.marking = Marking::None;
        }
        self.aqm = Some(Box::new(aqm));
    }

    /// Returns true if packets that are already enqueued can be lost: pushed out, or dropped at the
    /// head.
    pub(crate) fn loses_enqueued(&self) -> bool {
        self.pushes_out() || self.aqm.as_ref().is_some_and(|aqm| aqm.drops_at_head())
    }

    /// Hands over a packet that was lost after it was enqueued and is still in the store.
    #[inline]
    pub(crate) fn take_lost(&mut self) -> Option<PacketId> {
        self.take_pushed_out()
            .or_else(|| self.take_dropped_at_head())
    }

    pub(crate) fn counters(&self) -> &SwitchCounters {
        &self.counters
    }

    /// Returns the number of packets at the head of a queue that count nowhere.
    pub(crate) fn outside_buffer(&self) -> usize {
        self.outside_buffer
    }

    /// Returns the number of queues of a port.
    pub(crate) fn queues_per_port(&self) -> usize {
        self.numbering.queues_per_port()
    }

    /// Returns the waiting packets, by queue.
    pub(crate) fn queues(&self) -> &[PacketQueue] {
        &self.queues
    }
}
