//! The simulator: one switch, a host on every port, and the event loop.

mod access;
mod checks;
mod flow;
mod hosts;
mod interface;
mod pushing_out;
mod scheduling;
mod switching;

use std::time::{Duration, Instant};

use thiserror::Error;

pub use access::FlowView;
pub use checks::Violation;

use pushing_out::PushingOut;
use scheduling::Scheduling;

use flow::{Flow, Roster, flows_in_start_order};

use super::event::{Cause, Causes, Delays, EventQueue, Irregular, LAST_INSTANT, Timer, source};
use super::host::Host;
use super::isolated::IsolatedFlow;
use super::outcome::{DropRow, TimelineRow};
use super::packet::{Packet, PacketQueue, PacketStore, SackStore, SizeClass};
use super::waits::Waits;
use crate::network::FlowMeter;
use crate::scenario::{HostQueue, Scenario, ScenarioError};
use crate::switch::{AnyPolicy, Policy, PolicyParseError, SharedBuffer, View};
use crate::traffic::{Trace, TraceError};
use crate::transport::{Aside, Recycler, Settings, Trouble};
use crate::units::{Rate, Time};

/// Why a simulation cannot be built.
#[derive(Debug, Error)]
pub enum SimError {
    /// The scenario contradicts itself.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The trace does not fit the scenario.
    #[error(transparent)]
    Trace(#[from] TraceError),
    /// A policy's parameters do not fit the scenario.
    #[error(transparent)]
    Policy(#[from] PolicyParseError),
}

/// Why the event loop returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pause {
    /// The control loop has to decide.
    Decision,
    /// All flows are complete.
    Finished,
    /// The limit of simulated time was reached, or nothing is left to happen.
    TimeLimit,
    /// An alarm of the control loop, with its tag.
    Alarm(u64),
}

/// Transmission time of the sizes that nearly all packets have.
#[derive(Clone, Copy, Debug)]
struct CommonSize {
    wire_bytes: u16,
    transmission: Time,
}

/// States of senders and receivers that no flow needs at the moment.
#[derive(Clone, Default, Debug)]
struct Spares {
    senders: Recycler<Trouble>,
    receivers: Recycler<Aside>,
}

/// One output port of the switch.
#[derive(Clone, Default, Debug)]
struct Port {
    /// A packet is being serialised.
    sending: bool,
    /// The queue whose turn it is, of several.
    turn: u16,
    /// Packets that wait.
    length: u32,
}

/// Counts over a run.
#[derive(Clone, Copy, Default, Debug)]
struct Counters {
    created: u64,
    delivered: u64,
    forwarded: u64,
    drops: u64,
    drops_data: u64,
    dropped_bytes: u64,
    marks: u64,
    timeouts: u64,
    pushed_out: u64,
}

/// A packet-level simulation of one shared-memory switch with a host on every port.
///
/// A packet's way: sender, host interface, link, admission, output queue, link, receiver; the
/// acknowledgement goes back in the same way and uses buffer space too. Store and forward, no
/// processing time. The simulation is deterministic: simultaneous events run in the order in which
/// they were scheduled, flows that start at the same time in the order of the trace.
///
/// It owns all its state: clone it to fork a run.
#[derive(Clone, Debug)]
pub struct Simulator<P = AnyPolicy> {
    settings: Settings,
    rate: Rate,
    propagation: Time,
    header_bytes: u32,
    ack_bytes: u16,
    sack_block_bytes: u16,
    syn_bytes: u16,
    overhead_bytes: u64,
    syn_timeout: Time,
    fair_hosts: bool,
    handshake: bool,
    /// Packets at the head of a queue that do not count in it.
    uncounted: usize,
    /// Queue length at which data is marked, bytes.
    mark_threshold: Option<u64>,
    time_limit: Time,
    common: [CommonSize; 2],
    isolated: IsolatedFlow,

    now: Time,
    /// Ranks what happens now at a host.
    cause: Cause,
    causes: Causes,
    events: EventQueue,
    packets: PacketStore,
    next_start: usize,

    roster: Roster,
    flows: Vec<Flow>,
    spares: Spares,
    /// Flows that have started and are not complete, in no particular order.
    active: Vec<u32>,
    hosts: Vec<Host>,
    ports: Vec<Port>,
    /// Packets that wait at the switch, without those being serialised, by queue.
    queues: Vec<PacketQueue>,
    queues_per_port: usize,
    scheduling: Scheduling,
    pushing_out: Option<Box<PushingOut>>,
    buffer: SharedBuffer,
    policy: P,
    sacks: SackStore,
    counters: Counters,
    waits: Option<Box<Waits>>,
    completed: usize,
    last_finish: Time,
    wall: Duration,
    meter: Option<Box<FlowMeter>>,
    /// The alarm that has just rung.
    rung: Option<u64>,
    timeline: Option<Box<TimelineRecorder>>,
    drops: Option<Vec<DropRow>>,
}

#[derive(Clone, Debug)]
struct TimelineRecorder {
    interval: Time,
    next: Time,
    rows: Vec<TimelineRow>,
}

impl<P: Policy> Simulator<P> {
    /// A simulation of `trace` at time zero, in a buffer of `scenario.buffer_bytes`.
    ///
    /// # Errors
    /// When the scenario is inconsistent or a flow's host does not exist in it.
    pub fn new(scenario: &Scenario, trace: &Trace, policy: P) -> Result<Self, SimError> {
        Self::with_capacity(scenario, trace, policy, scenario.buffer_bytes)
    }

    /// As [`new`](Simulator::new), with a buffer of another size than the scenario's.
    ///
    /// # Errors
    /// As [`new`](Simulator::new).
    pub fn with_capacity(
        scenario: &Scenario,
        trace: &Trace,
        policy: P,
        capacity: u64,
    ) -> Result<Self, SimError> {
        scenario.validate()?;
        trace.validate(scenario.ports)?;
        let settings = Settings::from_scenario(scenario);
        let (flows, roster) = flows_in_start_order(trace, &settings)?;
        let rate = scenario.rate();
        let overhead_bytes = u64::from(scenario.overhead_bytes);
        let header_bytes = scenario.header_bytes + scenario.timestamp_bytes();
        let ack_bytes = (scenario.ack_bytes + scenario.timestamp_bytes()) as u16;
        let syn_bytes = (scenario.syn_bytes + scenario.timestamp_bytes()) as u16;
        let common = [scenario.full_packet_bytes() as u16, ack_bytes].map(|wire_bytes| {
            let transmission = rate.transmission_time(u64::from(wire_bytes) + overhead_bytes);
            CommonSize {
                wire_bytes,
                transmission,
            }
        });
        let transmission = common.map(|size| size.transmission);
        // ns-3 schedules the delivery when the transmission begins.
        let delivery = transmission.map(|transmission| match settings.is_ns3() {
            true => transmission + scenario.propagation(),
            false => scenario.propagation(),
        });
        let ports = scenario.port_count();
        let queues_per_port = scenario.queues_per_port as usize;
        let pushing_out = PushingOut::for_policy(&policy, scenario)?;
        let mut packets = PacketStore::default();
        if pushing_out.is_some() {
            packets.link_both_ways();
        }
        let mut simulator = Simulator {
            settings,
            rate,
            propagation: scenario.propagation(),
            header_bytes,
            ack_bytes,
            sack_block_bytes: scenario.sack_block_bytes as u16,
            syn_bytes,
            overhead_bytes,
            syn_timeout: scenario.syn_timeout(),
            fair_hosts: scenario.host_queue == HostQueue::Fair,
            handshake: scenario.handshake,
            uncounted: scenario.uncounted_packets(),
            mark_threshold: scenario.mark_threshold_bytes(),
            time_limit: match scenario.max_simulated_ms {
                // Without a limit only what is due never is later.
                0 => LAST_INSTANT,
                ms => Time::from_ms(ms).min(LAST_INSTANT),
            },
            common,
            isolated: IsolatedFlow::new(scenario),
            now: Time::ZERO,
            cause: Cause::FIRST,
            causes: Causes::new(transmission, delivery),
            events: EventQueue::new(Delays {
                transmission,
                propagation: scenario.propagation(),
                delivery,
                fair_hosts: scenario.host_queue == HostQueue::Fair,
            }),
            packets,
            next_start: 0,
            flows,
            roster,
            spares: Spares::default(),
            active: Vec::new(),
            hosts: vec![Host::default(); ports],
            ports: vec![Port::default(); ports],
            queues: vec![PacketQueue::default(); ports * queues_per_port],
            queues_per_port,
            scheduling: Scheduling::new(scenario),
            pushing_out,
            buffer: SharedBuffer::new(capacity, scenario.buffer_bytes, ports, queues_per_port),
            policy,
            sacks: SackStore::default(),
            counters: Counters::default(),
            waits: None,
            completed: 0,
            last_finish: Time::ZERO,
            wall: Duration::ZERO,
            meter: None,
            rung: None,
            timeline: None,
            drops: None,
        };
        simulator.schedule_next_start();
        Ok(simulator)
    }

    /// Runs to the next decision, to the completion of the last flow or to the limit of simulated
    /// time, whichever comes first.
    pub fn advance(&mut self) -> Pause {
        let started = Instant::now();
        let pause = loop {
            if self.completed == self.flows.len() {
                break Pause::Finished;
            }
            if !self.run_event() {
                break Pause::TimeLimit;
            }
            if self.policy.decision_due() {
                break Pause::Decision;
            }
            if self.rung.is_some()
                && let Some(tag) = self.rung.take()
            {
                break Pause::Alarm(tag);
            }
        };
        self.wall += started.elapsed();
        pause
    }

    /// Runs one event; `false` when none is left before the limit of simulated time.
    pub fn step(&mut self) -> bool {
        self.run_event()
    }

    #[inline(always)]
    fn run_event(&mut self) -> bool {
        let due = self.events.next();
        if due.time() > self.time_limit {
            return false;
        }
        debug_assert!(due.time() >= self.now, "time goes back");
        self.now = due.time();
        if self.timeline.is_some() {
            self.record_timeline_until(self.switch_now());
        }
        self.dispatch(self.events.source(due));
        debug_assert!(
            self.check_invariants().is_ok(),
            "{:?}",
            self.check_invariants()
        );
        true
    }

    /// Every line has code of its own, where its place is a constant.
    #[inline(always)]
    fn dispatch(&mut self, at: u8) {
        match at {
            source::FREE => self.sender_is_free(source::FREE),
            source::FREE_OF_ACK => self.sender_is_free(source::FREE_OF_ACK),
            source::ARRIVAL => self.packet_arrives(source::ARRIVAL),
            source::ARRIVAL_OF_ACK => self.packet_arrives(source::ARRIVAL_OF_ACK),
            source::NEXT => self.host_goes_on(source::NEXT),
            source::NEXT_OF_ACK => self.host_goes_on(source::NEXT_OF_ACK),
            _ => self.on_irregular(),
        }
    }

    #[inline(always)]
    fn sender_is_free(&mut self, line: u8) {
        let subject = self.events.take(line);
        self.port_is_free(subject);
    }

    #[inline(always)]
    fn packet_arrives(&mut self, line: u8) {
        let subject = self.events.take(line);
        self.arrive_at_switch(subject);
    }

    #[inline(always)]
    fn host_goes_on(&mut self, line: u8) {
        if self.fair_hosts {
            let subject = self.events.take(line);
            self.host_is_free(usize::from(subject.sender));
        } else {
            let subject = self.events.take_arrival(line);
            self.arrive_at_switch(subject);
        }
    }

    #[cold]
    #[inline(never)]
    fn on_irregular(&mut self) {
        match self.events.take_irregular() {
            Irregular::Start => {
                self.cause = Cause::FIRST;
                self.start_next_flow();
            }
            Irregular::Timer(timer) => self.on_timer(timer),
        }
    }

    fn on_timer(&mut self, timer: Timer) {
        self.cause = match timer {
            Timer::Begin(_) => Cause::LAST,
            _ => Cause::FIRST,
        };
        match timer {
            Timer::Arrival(subject) => self.arrive_at_switch(subject),
            Timer::Next(host) => self.host_is_free(usize::from(host)),
            Timer::Free(subject) => self.port_is_free(subject),
            Timer::Retransmission(flow) => self.on_retransmission_timer(flow),
            Timer::Begin(flow) => self.pump(flow),
            Timer::Syn(flow, sent) => self.on_syn_timer(flow, sent),
            Timer::SynAck(flow) => self.on_syn_ack_timer(flow),
            Timer::DelayedAck(flow) => self.on_ack_timer(flow),
            Timer::Alarm(tag) => self.rung = Some(tag),
        }
    }

    /// Whether the packet takes one of the two common transmission times.
    #[inline]
    fn size_class(&self, wire_bytes: u16) -> SizeClass {
        if wire_bytes == self.common[0].wire_bytes {
            SizeClass::Full
        } else if wire_bytes == self.common[1].wire_bytes {
            SizeClass::Ack
        } else {
            SizeClass::Odd
        }
    }

    #[inline]
    fn transmission(&self, packet: &Packet) -> Time {
        match packet.class.common() {
            Some(class) => self.common[usize::from(class)].transmission,
            None => self
                .rate
                .transmission_time(u64::from(packet.wire_bytes) + self.overhead_bytes),
        }
    }

    /// Tells the event queue which flow starts next.
    fn schedule_next_start(&mut self) {
        self.events.set_start(self.roster.start(self.next_start));
    }

    #[inline]
    fn view(&self) -> View<'_> {
        View {
            buffer: &self.buffer,
            now: self.switch_now(),
            rate: self.rate,
        }
    }

    /// The instant at the switch; see the [event queue](super::event).
    #[inline]
    pub fn switch_now(&self) -> Time {
        self.now.saturating_since(self.propagation)
    }
}

#[cfg(test)]
mod tests;
