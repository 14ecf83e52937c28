//! The simulator: one switch, a host on every port, and the event loop.

mod access;
mod checks;
mod hosts;
mod switching;

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use thiserror::Error;

pub use access::FlowView;
pub use checks::Violation;

use super::event::{Agenda, Due, Line};
use super::host::{Backlog, Host, PacketQueue};
use super::isolated::IsolatedFlow;
use super::outcome::TimelineRow;
use super::packet::{Packet, SackStore};
use crate::control::FlowMeter;
use crate::scenario::{HostQueue, Scenario, ScenarioError};
use crate::switch::{AnyPolicy, Policy, SharedBuffer, View};
use crate::traffic::{FlowSpec, Trace, TraceError};
use crate::transport::{Receiver, Sender, Settings};
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
    #[error("policy {policy}: {problem}")]
    Policy {
        /// As it was asked for.
        policy: String,
        /// What is wrong and what would be right.
        problem: String,
    },
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

/// Events at irregular times.
#[derive(Clone, Copy, Debug)]
enum Timer {
    /// A packet of unusual size reaches the switch.
    Arrival(Packet),
    /// A packet of unusual size has left a host.
    HostFree(u16),
    /// A packet of unusual size has left a port.
    PortFree(u16),
    /// A retransmission timer may have expired; it is read when the event falls due, so that
    /// restarting a timer costs nothing.
    Retransmission(u32),
    /// A flow sends its first data.
    Begin(u32),
    /// A SYN may have been lost; the number of SYNs sent before.
    Syn(u32, u8),
    /// A SYN-ACK may have been lost.
    SynAck(u32),
    /// An acknowledgement may have waited long enough.
    DelayedAck(u32),
    /// The control loop asked to be woken; its tag.
    Alarm(u64),
}

/// Transmission time of the sizes that nearly all packets have.
#[derive(Clone, Copy, Debug)]
struct CommonSize {
    wire_bytes: u16,
    transmission: Time,
}

/// One flow: both ends of it.
#[derive(Clone, Debug)]
struct Flow {
    sender: Sender,
    receiver: Receiver,
    /// Packets of this flow on their way, data and acknowledgements.
    in_network: u32,
    segments: u32,
    /// Position in the trace.
    place: u32,
    src: u16,
    dst: u16,
    established: bool,
    /// Data packets in its queue at the host.
    waiting: PacketQueue,
    /// When its timer event falls due.
    timer_at: Time,
    /// Only the timer can repair what was lost; kept for looking at, not for the protocol.
    doomed: bool,
    start: Time,
    established_at: Time,
    finish: Time,
}

#[derive(Clone, Default, Debug)]
struct Port {
    packets: VecDeque<Packet>,
    /// When the delivery of the packet in service was scheduled, for ns-3.
    order: u64,
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
    sequence: u64,
    arrivals: [Line<Packet>; 2],
    host_free: [Line<u16>; 2],
    port_free: [Line<u16>; 2],
    deliveries: Line<Packet>,
    agenda: Agenda<Timer>,
    next_start: usize,

    specs: Vec<FlowSpec>,
    flows: Vec<Flow>,
    /// Flows that have started and are not complete, in no particular order.
    active: Vec<u32>,
    hosts: Vec<Host>,
    /// Packets that wait in per-flow queues at fair hosts.
    backlog: Backlog,
    ports: Vec<Port>,
    buffer: SharedBuffer,
    policy: P,
    sacks: SackStore,
    counters: Counters,
    completed: usize,
    last_finish: Time,
    wall: Duration,
    meter: Option<Box<FlowMeter>>,
    /// The alarm that has just rung.
    rung: Option<u64>,
    timeline: Option<Box<TimelineRecorder>>,
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
        let ports = scenario.port_count();
        Ok(Simulator {
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
                0 => Time::MAX,
                ms => Time::from_ms(ms),
            },
            common,
            isolated: IsolatedFlow::new(scenario),
            now: Time::ZERO,
            sequence: trace.flows.len() as u64,
            arrivals: Default::default(),
            host_free: Default::default(),
            port_free: Default::default(),
            deliveries: Line::default(),
            agenda: Agenda::default(),
            next_start: 0,
            flows: flows_in_start_order(trace, &settings),
            specs: trace.flows.clone(),
            active: Vec::new(),
            hosts: vec![Host::default(); ports],
            backlog: Backlog::default(),
            ports: vec![Port::default(); ports],
            buffer: SharedBuffer::new(capacity, scenario.buffer_bytes, ports),
            policy,
            sacks: SackStore::default(),
            counters: Counters::default(),
            completed: 0,
            last_finish: Time::ZERO,
            wall: Duration::ZERO,
            meter: None,
            rung: None,
            timeline: None,
        })
    }

    /// Runs to the next decision, to the completion of the last flow or to the limit of simulated
    /// time, whichever comes first.
    pub fn advance(&mut self) -> Pause {
        let started = Instant::now();
        let pause = loop {
            if self.completed == self.flows.len() {
                break Pause::Finished;
            }
            if !self.step() {
                break Pause::TimeLimit;
            }
            if self.policy.decision_due() {
                break Pause::Decision;
            }
            if let Some(tag) = self.rung.take() {
                break Pause::Alarm(tag);
            }
        };
        self.wall += started.elapsed();
        pause
    }

    /// Runs one event; `false` when none is left before the limit of simulated time.
    pub fn step(&mut self) -> bool {
        let (due, source) = self.next_event();
        if due.time() > self.time_limit || due == Due::NEVER {
            return false;
        }
        debug_assert!(due.time() >= self.now, "time goes back");
        self.now = due.time();
        if self.timeline.is_some() {
            self.record_timeline_until(self.now);
        }
        self.dispatch(source);
        debug_assert!(
            self.check_invariants().is_ok(),
            "{:?}",
            self.check_invariants()
        );
        true
    }

    #[inline]
    fn next_event(&self) -> (Due, Source) {
        let start = match self.flows.get(self.next_start) {
            Some(flow) => Due::new(flow.start, self.next_start as u64),
            None => Due::NEVER,
        };
        let mut best = (start, Source::Start);
        let heads = [
            (self.arrivals[0].head(), Source::Arrival(0)),
            (self.arrivals[1].head(), Source::Arrival(1)),
            (self.host_free[0].head(), Source::HostFree(0)),
            (self.host_free[1].head(), Source::HostFree(1)),
            (self.port_free[0].head(), Source::PortFree(0)),
            (self.port_free[1].head(), Source::PortFree(1)),
            (self.deliveries.head(), Source::Delivery),
            (self.agenda.head(), Source::Agenda),
        ];
        for head in heads {
            if head.0 < best.0 {
                best = head;
            }
        }
        best
    }

    #[inline]
    fn dispatch(&mut self, source: Source) {
        match source {
            Source::Start => self.start_next_flow(),
            Source::Arrival(size) => {
                if let Some((_, packet)) = self.arrivals[size].pop() {
                    self.arrive_at_switch(packet);
                }
            }
            Source::HostFree(size) => {
                if let Some((_, host)) = self.host_free[size].pop() {
                    self.host_is_free(usize::from(host));
                }
            }
            Source::PortFree(size) => {
                if let Some((_, port)) = self.port_free[size].pop() {
                    self.port_is_free(usize::from(port));
                }
            }
            Source::Delivery => {
                if let Some((_, packet)) = self.deliveries.pop() {
                    self.deliver(packet);
                }
            }
            Source::Agenda => {
                if let Some((_, timer)) = self.agenda.pop() {
                    self.on_timer(timer);
                }
            }
        }
    }

    fn on_timer(&mut self, timer: Timer) {
        match timer {
            Timer::Arrival(packet) => self.arrive_at_switch(packet),
            Timer::HostFree(host) => self.host_is_free(usize::from(host)),
            Timer::PortFree(port) => self.port_is_free(usize::from(port)),
            Timer::Retransmission(flow) => self.on_retransmission_timer(flow),
            Timer::Begin(flow) => self.pump(flow),
            Timer::Syn(flow, sent) => self.on_syn_timer(flow, sent),
            Timer::SynAck(flow) => self.on_syn_ack_timer(flow),
            Timer::DelayedAck(flow) => self.on_ack_timer(flow),
            Timer::Alarm(tag) => self.rung = Some(tag),
        }
    }

    /// The due time `delay` from now; every call is later in the order of simultaneous events.
    #[inline]
    fn due_in(&mut self, delay: Time) -> Due {
        self.sequence += 1;
        Due::new(self.now + delay, self.sequence)
    }

    #[inline]
    fn common_size(&self, wire_bytes: u16) -> Option<usize> {
        if wire_bytes == self.common[0].wire_bytes {
            Some(0)
        } else if wire_bytes == self.common[1].wire_bytes {
            Some(1)
        } else {
            None
        }
    }

    fn transmission(&self, wire_bytes: u16) -> Time {
        self.rate
            .transmission_time(u64::from(wire_bytes) + self.overhead_bytes)
    }

    #[inline]
    fn view(&self) -> View<'_> {
        View {
            buffer: &self.buffer,
            now: self.now,
            rate: self.rate,
        }
    }
}

/// Where the next event waits.
#[derive(Clone, Copy, Debug)]
enum Source {
    Start,
    Arrival(usize),
    HostFree(usize),
    PortFree(usize),
    Delivery,
    Agenda,
}

fn flows_in_start_order(trace: &Trace, settings: &Settings) -> Vec<Flow> {
    let mut order: Vec<usize> = (0..trace.flows.len()).collect();
    order.sort_by_key(|&place| trace.flows[place].start);
    order
        .into_iter()
        .map(|place| {
            let spec = &trace.flows[place];
            Flow {
                sender: Sender::new(spec.size, settings),
                receiver: Receiver::new(settings),
                in_network: 0,
                segments: spec.size.div_ceil(u64::from(settings.mss)) as u32,
                place: place as u32,
                src: spec.src as u16,
                dst: spec.dst as u16,
                established: false,
                waiting: PacketQueue::default(),
                timer_at: Time::MAX,
                doomed: false,
                start: spec.start,
                established_at: Time::MAX,
                finish: Time::MAX,
            }
        })
        .collect()
}

#[cfg(test)]
mod tests;
