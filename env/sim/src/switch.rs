//! The shared-memory switch: one buffer, queues per port, admission, scheduling, push-out, marking.
//!
//! [`SharedBuffer`] is the only place that counts bytes; a [`Policy`] sees it read-only and decides on
//! each arriving packet. A [`Switch`] knows neither flows nor hosts: packets arrive, and are sent or
//! lost.

pub mod aqm;
mod base;
mod buffer;
pub(crate) mod driven;
mod ecn;
mod egress;
pub(crate) mod mmu;
mod numbering;
mod observer;
mod open_loop;
mod parameters;
pub mod policy;
mod push_out;
mod scheduling;
mod spec;

use crate::engine::clock::ClockOffset;
use crate::engine::packet::{Packet, PacketDirection, PacketKind, PacketQueue, PacketStore};
use crate::scenario::{Scenario, Scheduler};
use crate::units::{Instant, Rate};

pub use crate::engine::packet::PacketId;
pub use crate::engine::topology::SwitchId;
pub use base::{LowLevelPolicy, UnknownBasePolicy};
pub use buffer::SharedBuffer;
pub use mmu::{IngressState, IngressUse, LosslessDrop, PfcInterval};
pub use observer::SwitchObserver;
pub use open_loop::{Fate, OpenLoop};
pub use parameters::PolicyParseError;
pub use policy::{
    AnyPolicy, Definition, Loss, LosslessThresholds, PacketView, ParameterInfo, Policy, PolicyInfo,
    Sharing, Verdict, View,
};
pub use spec::PolicySpec;

use aqm::{Marker, QueueManagement};
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

/// What decides which packets enter the buffer.
#[derive(Clone, Debug)]
enum AdmissionControl {
    /// The policy. Packets that do not fit are lost.
    Policy,
    /// The policy, which removes others for packets that do not fit.
    PushOut(Box<PushOut>),
    /// The memory management unit of a lossless switch.
    Lossless(Box<Mmu>),
}

/// What a packet's path has besides admission by the policy, a queue and its service.
type Path = u8;
/// Nothing.
const PLAIN: Path = 0;
/// The memory management unit of a lossless switch, pauses and control packets, and meters if there are any.
const LOSSLESS: Path = 1;
/// Those that there are of queue management, push-out, device queues and meters.
const EXTRAS: Path = 2;

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
    admission: AdmissionControl,
    aqm: Option<Box<QueueManagement>>,
    meters: Option<Box<Meters>>,
    devices: Option<Box<DeviceQueues>>,
    path: Path,
    /// True if the policy is told of packets that are enqueued and that depart.
    listens: bool,
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
        let push_out = PushOut::for_policy(&policy, settings.outside_buffer)?;
        let devices = DeviceQueues::new(settings.device_packets, ports);
        Ok(Switch {
            id,
            clock_offset,
            rate: settings.rate,
            outside_buffer: settings.outside_buffer,
            marking: Marking::on_arrival(settings, id),
            numbering: Numbering::new(queues_per_port),
            ports: vec![port; ports],
            queues: vec![PacketQueue::default(); queues],
            scheduling,
            path: match push_out.is_some() || devices.is_some() {
                true => EXTRAS,
                false => PLAIN,
            },
            admission: push_out.map_or(AdmissionControl::Policy, AdmissionControl::PushOut),
            aqm: None,
            meters: None,
            devices,
            listens: policy.listens(),
            buffer: SharedBuffer::new(settings.capacity, settings.scale, ports, queues_per_port),
            policy,
            counters: SwitchCounters::default(),
        })
    }

    /// Handles the arrival of a packet's last bit: admits the packet or drops it. If it is
    /// [served](Admission::Served), its port has [sent](Switch::sent) it one transmission time later.
    /// If the switch is lossless, the store gives the [port](PacketStore::ingress_port) by which the packet
    /// came.
    ///
    /// Complexity: O(1), plus the cost of the policy.
    #[inline(always)]
    pub(crate) fn arrive<O: SwitchObserver>(
        &mut self,
        packets: &mut PacketStore,
        id: PacketId,
        now: Instant,
        observer: &mut O,
    ) -> Admission {
        let outcome = match self.path {
            PLAIN => self.arrive_by_stages::<PLAIN, O>(packets, id, now, observer),
            LOSSLESS => self.arrive_by_stages::<LOSSLESS, O>(packets, id, now, observer),
            _ => self.arrive_by_stages::<EXTRAS, O>(packets, id, now, observer),
        };
        outcome.unwrap_or_else(|loss| self.lose(&packets[id], loss, now, observer))
    }

    /// As [`arrive`](Switch::arrive). Every `PATH` has an instance of its own, so that none has
    /// a trace of what it does not need.
    #[inline(always)]
    fn arrive_by_stages<const PATH: Path, O: SwitchObserver>(
        &mut self,
        packets: &mut PacketStore,
        id: PacketId,
        now: Instant,
        observer: &mut O,
    ) -> Result<Admission, Loss> {
        if PATH == LOSSLESS && packets[id].flags.is_control() {
            return Ok(self.send_control(packets, id));
        }
        let packet = self.packet_view(&packets[id]);
        observer.arriving(self.id, self.view(now), packet);
        let fits = self.admit::<PATH>(packets, id, packet, now)?;
        let marker = match PATH == EXTRAS && self.aqm.is_some() {
            true => self.aqm_on_arrival(packets, id, packet, fits, now)?,
            false => Marker::Switch,
        };
        if !fits && !self.make_room(packets, packet, now, observer) {
            return Err(Loss::Full);
        }
        self.mark(packets, id, packet, marker, now, observer);
        self.buffer.store(packet.queue, packet.bytes, now);
        if PATH == EXTRAS {
            self.aqm_on_enqueued(id, packet, now);
        }
        if self.listens {
            self.ask(now, |policy, view| policy.on_enqueue(view, packet));
        }
        observer.enqueued(self.id, self.view(now), packet);
        let admission = self.serve::<PATH, O>(packets, id, packet, now, observer);
        if PATH == EXTRAS && self.pushes_out() {
            self.expel(packets, now, observer);
        }
        Ok(admission)
    }

    /// Decides whether a packet may enter the buffer. Returns false if others have to be pushed out first.
    #[inline(always)]
    fn admit<const PATH: Path>(
        &mut self,
        packets: &PacketStore,
        id: PacketId,
        packet: PacketView,
        now: Instant,
    ) -> Result<bool, Loss> {
        if PATH == LOSSLESS {
            return self.admit_lossless(packets.ingress_port(id), packet, now);
        }
        if !self.buffer.fits(packet.bytes) {
            return match self.pushes_out() {
                true => Ok(false),
                false => Err(Loss::Full),
            };
        }
        match self.ask(now, |policy, view| policy.on_arrival(view, packet)) {
            Verdict::Accept => Ok(true),
            Verdict::Drop => Err(Loss::Refused),
        }
    }

    /// Makes the port of an enqueued packet send it, if the port is idle and the queue not blocked.
    #[inline(always)]
    fn serve<const PATH: Path, O: SwitchObserver>(
        &mut self,
        packets: &mut PacketStore,
        id: PacketId,
        packet: PacketView,
        now: Instant,
        observer: &mut O,
    ) -> Admission {
        if PATH == EXTRAS && self.devices.is_some() {
            return self.arrive_above_device(packets, id, packet, now, observer);
        }
        if self.ports[packet.port].sending || PATH == LOSSLESS && self.is_blocked(packet.queue) {
            let port = &mut self.ports[packet.port];
            port.length += 1;
            if (port.length as usize) < self.outside_buffer {
                self.release::<PATH>(packets, id, packet, now);
            }
            observer.waits(id, now);
            self.queues[packet.queue].append(packets, id);
            return Admission::Queued;
        }
        self.ports[packet.port].sending = true;
        observer.served(id, now, false);
        let counted = (self.outside_buffer > 0).then_some(packet);
        self.begin::<PATH>(packets, id, counted, now);
        if PATH == EXTRAS && self.aqm.is_some() {
            self.aqm_on_service(packet, now, observer);
        }
        Admission::Served
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
        now: Instant,
        observer: &mut O,
    ) -> Option<PacketId> {
        match self.path {
            PLAIN => self.sent_by_stages::<PLAIN, O>(packets, id, now, observer),
            LOSSLESS => self.sent_by_stages::<LOSSLESS, O>(packets, id, now, observer),
            _ => self.sent_by_stages::<EXTRAS, O>(packets, id, now, observer),
        }
    }

    /// As [`sent`](Switch::sent); `PATH` as on arrival.
    #[inline(always)]
    fn sent_by_stages<const PATH: Path, O: SwitchObserver>(
        &mut self,
        packets: &mut PacketStore,
        id: PacketId,
        now: Instant,
        observer: &mut O,
    ) -> Option<PacketId> {
        if PATH == LOSSLESS && packets[id].flags.is_control() {
            return self.sent_control(packets, id, now, observer);
        }
        let mut packet = self.packet_view(&packets[id]);
        if PATH != PLAIN {
            packet.bytes = u64::from(self.counted_bytes(&packets[id]));
        }
        if PATH == EXTRAS && self.devices.is_some() {
            return self.sent_by_device(packets, packet, now, observer);
        }
        if PATH == EXTRAS && self.aqm.is_some() {
            self.aqm_on_change(packet.queue, now);
        }
        if self.outside_buffer == 0 {
            self.release::<PATH>(packets, id, packet, now);
        }
        self.counters.forwarded += 1;
        if self.listens {
            self.ask(now, |policy, view| policy.on_departure(view, packet));
        }
        observer.departed(self.id, self.view(now), packet);
        if self.outside_buffer > 1 {
            self.uncount(packets, packet.port, now);
        }
        if PATH == EXTRAS && self.aqm.is_some() {
            self.aqm_on_departure(packet.queue, now);
        }
        let next = self.serve_next::<PATH, O>(packets, packet.port, now, observer);
        if PATH == EXTRAS && self.pushes_out() {
            self.expel(packets, now, observer);
        }
        next
    }

    /// Makes a port that sends nothing any more begin to send the next packet, if any may be sent.
    #[inline(always)]
    fn serve_next<const PATH: Path, O: SwitchObserver>(
        &mut self,
        packets: &mut PacketStore,
        port: usize,
        now: Instant,
        observer: &mut O,
    ) -> Option<PacketId> {
        let mut next = self.next_of_port::<PATH>(packets, port);
        if PATH == EXTRAS && self.aqm.is_some() {
            next = next.and_then(|next| self.aqm_next(packets, next, now, observer));
        }
        self.ports[port].sending = next.is_some();
        let next = next?;
        if PATH != LOSSLESS || !packets[next].flags.is_control() {
            observer.served(next, now, true);
            let counted = (self.outside_buffer == 1).then(|| self.packet_view(&packets[next]));
            if PATH == EXTRAS
                && self.aqm.is_some()
                && let Some(packet) = counted
            {
                self.aqm_on_change(packet.queue, now);
            }
            self.begin::<PATH>(packets, next, counted, now);
        }
        Some(next)
    }

    /// Begins the transmission of a packet, which leaves the buffer now if it is still `counted`.
    #[inline(always)]
    fn begin<const PATH: Path>(
        &mut self,
        packets: &mut PacketStore,
        id: PacketId,
        counted: Option<PacketView>,
        now: Instant,
    ) {
        if PATH == LOSSLESS
            && let Marking::RedAtDequeue(_) = self.marking
        {
            self.mark_at_dequeue(&mut packets[id]);
        }
        if let Some(packet) = counted {
            self.release::<PATH>(packets, id, packet, now);
        }
        if PATH != PLAIN && self.meters.is_some() {
            self.stamp(packets, id, now);
        }
    }

    /// Stops counting a packet.
    #[inline(always)]
    fn release<const PATH: Path>(
        &mut self,
        packets: &PacketStore,
        id: PacketId,
        packet: PacketView,
        now: Instant,
    ) {
        self.buffer.release(packet.queue, packet.bytes, now);
        if PATH == LOSSLESS
            && let AdmissionControl::Lossless(mmu) = &mut self.admission
        {
            mmu.discharge(&self.buffer, packets.ingress_port(id), packet, now);
        }
    }

    #[inline(always)]
    fn view(&self, now: Instant) -> View<'_> {
        View {
            buffer: &self.buffer,
            now,
            rate: self.rate,
        }
    }

    #[inline(always)]
    fn ask<R>(&mut self, now: Instant, question: impl FnOnce(&mut P, View<'_>) -> R) -> R {
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
        now: Instant,
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
    fn uncount(&mut self, packets: &PacketStore, port: usize, now: Instant) {
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
    pub fn threshold(&self, queue: usize, now: Instant) -> Option<u64> {
        match self.mmu() {
            Some(mmu) => mmu.threshold(&self.buffer, queue),
            None => self.policy.threshold(self.view(now), queue),
        }
    }

    /// As [`SharedBuffer::count_from`].
    pub(crate) fn count_occupancy_from(&mut self, now: Instant) {
        self.buffer.count_from(now);
        if let Some(mmu) = self.mmu_mut() {
            mmu.count_from(now);
        }
    }

    /// As [`SharedBuffer::count_until`].
    pub(crate) fn count_occupancy_until(&mut self, now: Instant) {
        self.buffer.count_until(now);
        if let Some(mmu) = self.mmu_mut() {
            mmu.count_until(now);
        }
    }

    /// Returns true if the policy removes packets that are already enqueued.
    #[inline]
    pub(crate) fn pushes_out(&self) -> bool {
        matches!(self.admission, AdmissionControl::PushOut(_))
    }

    /// Puts queue management behind the policy. Its marks replace those of `ecn_threshold_bytes`,
    /// except for early drop that keeps them.
    pub(crate) fn set_aqm(&mut self, aqm: QueueManagement) {
        if aqm.marks() && !aqm.keeps_marks() {
            self.marking = Marking::None;
        }
        self.aqm = Some(Box::new(aqm));
        self.add_extras();
    }

    /// Notes that the switch has more than the plain path.
    fn add_extras(&mut self) {
        if self.path == PLAIN {
            self.path = EXTRAS;
        }
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
