//! The simulator: hosts, switches and the event loop between them.

mod checks;
mod pauses;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use thiserror::Error;

use super::ingress::IngressSampling;
use super::observer::Observer;
use super::outcome::{Outcome, SwitchRow};
use super::recorders::Recorders;
use super::window::Window;
use crate::engine::Engine;
use crate::engine::clock::EventTime;
use crate::engine::event::{
    Alarm, Delays, Events as _, HORIZON, HeapEvent, PacketEvent, TieBreak, TieBreaks, Timer, source,
};
use crate::engine::fabric;
use crate::engine::link::{LinkKind, Links, wire_bytes};
use crate::engine::packet::{PacketId, PacketKind, PacketStore};
use crate::engine::port_link::{PortLink, PortLinks};
use crate::engine::topology::{
    LeafSpine, LinkedNetwork, MAX_QUEUES, OneSwitch, PooledLeafSpine, Routing, SwitchId, Topology,
};
use crate::host::{FlowView, Hosts};
use crate::scenario::{HostQueue, Scenario, ScenarioError};
use crate::switch::aqm::AqmSpec;
use crate::switch::{
    Admission, AnyPolicy, Meters, Policy, PolicyParseError, PolicySpec, SharedBuffer, Switch,
    SwitchCounters, SwitchSettings,
};
use crate::traffic::{Trace, TraceError};
use crate::transport::{OwnControl, Settings};
use crate::units::{Duration, Instant};

pub use checks::Violation;
use pauses::{Pauses, enable_lossless};

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
    /// The network cannot be simulated.
    #[error("{0}")]
    Network(String),
    /// The controller of the switches failed to decide: which decision, and why.
    #[error("{0}")]
    Controller(String),
}

/// Why the event loop returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StopReason {
    /// The control loop of a switch has to decide.
    Decision(SwitchId),
    /// All flows are complete.
    Finished,
    /// The limit of simulated time was reached, which is 13.3 days where the scenario has none, or
    /// nothing is left to happen.
    TimeLimit,
    /// An alarm of the control loop.
    Alarm(Alarm),
}

/// A packet-level simulation of shared-memory switches and the hosts attached to them, by default of
/// one switch with a host on every port.
///
/// The path of a packet: sender, host interface, link, admission, output queue, link, receiver; the
/// acknowledgement goes back in the same way and uses buffer space too. Store and forward, no
/// processing time. The simulation is deterministic: simultaneous events run in the order in which
/// they were scheduled, flows that start at the same time in the order of the trace.
///
/// It owns all its state: clone it to fork a run.
#[derive(Clone, Debug)]
pub struct Simulator<P = AnyPolicy, O = Recorders, T: Topology = OneSwitch> {
    pub(super) engine: Engine<T>,
    pub(super) hosts: Hosts<T>,
    pub(super) switches: T::PerSwitch<Switch<P>>,
    pub(super) observer: O,
    /// The scenario, for the base times of the [report](Simulator::outcome).
    pub(super) scenario: Arc<Scenario>,
    pub(super) window: Window,
    /// Kind of the second class of flows.
    pub(super) second: Option<u16>,
    time_limit: EventTime,
    fair_hosts: bool,
    loses_enqueued: bool,
    /// The alarm that has just fired.
    fired_alarm: Option<Alarm>,
    /// Switch of the last event, in a network of several switches.
    touched: SwitchId,
    pub(super) port_links: PortLinks,
    pauses: Pauses,
    pub(super) wall: std::time::Duration,
}

/// A simulation of a leaf-spine network.
pub type FabricSimulator = Simulator<AnyPolicy, Recorders, LeafSpine>;

/// Construction with one switch.
impl<P: Policy> Simulator<P> {
    /// Creates a simulation of `trace` at time zero, in a buffer of `scenario.network.buffer_bytes`.
    ///
    /// # Errors
    /// When the scenario is inconsistent or a flow's host does not exist in it.
    pub fn new(scenario: &Scenario, trace: &Trace, policy: P) -> Result<Self, SimError> {
        Self::with_capacity(scenario, trace, policy, scenario.network.buffer_bytes)
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
        let topology = OneSwitch::of_scenario(scenario, trace.seed)?;
        let mut policy = Some(policy);
        let take = |_, _: &Scenario| Ok(policy.take().expect("there is one switch"));
        Simulator::in_network(scenario, trace, topology, |_| capacity, take)
    }
}

/// A topology that a scenario describes.
pub trait ScenarioTopology: Topology {
    /// Creates the topology of a scenario. `trace_seed` determines the choice among equal paths.
    ///
    /// # Errors
    /// When the scenario has another topology.
    fn of_scenario(scenario: &Scenario, trace_seed: u64) -> Result<Self, SimError>;
}

impl ScenarioTopology for OneSwitch {
    fn of_scenario(scenario: &Scenario, _: u64) -> Result<OneSwitch, SimError> {
        scenario.require_single()?;
        let ports = scenario.port_count();
        Ok(OneSwitch { ports })
    }
}

impl ScenarioTopology for LeafSpine {
    fn of_scenario(scenario: &Scenario, trace_seed: u64) -> Result<LeafSpine, SimError> {
        Ok(LeafSpine::of(scenario, trace_seed))
    }
}

impl ScenarioTopology for PooledLeafSpine {
    fn of_scenario(scenario: &Scenario, trace_seed: u64) -> Result<PooledLeafSpine, SimError> {
        Ok(PooledLeafSpine::of(scenario, trace_seed))
    }
}

impl ScenarioTopology for LinkedNetwork {
    fn of_scenario(scenario: &Scenario, trace_seed: u64) -> Result<LinkedNetwork, SimError> {
        let network = scenario
            .links()
            .ok_or_else(|| SimError::Network("topology is a name; this needs links".to_owned()))?;
        let routing = Routing::of(scenario, trace_seed);
        Ok(LinkedNetwork::new(network, routing))
    }
}

impl PolicySpec {
    /// Creates a simulation of `trace` in the topology `T` of a scenario, with an instance of this policy at every
    /// switch. With [`PooledLeafSpine`], a leaf and all ports of spines that lead to it share an instance.
    ///
    /// [`Simulation`](super::Simulation) takes the topology from the scenario.
    ///
    /// # Errors
    /// When the scenario is inconsistent or has another topology, the trace does not fit it, or the policy's parameters
    /// do not.
    pub fn simulator<T: ScenarioTopology>(
        &self,
        scenario: &Scenario,
        trace: &Trace,
    ) -> Result<Simulator<AnyPolicy, Recorders, T>, SimError> {
        scenario.validate()?;
        let topology = T::of_scenario(scenario, trace.seed)?;
        let capacity = |at: &Scenario| self.capacity(at);
        let policy = |_, at: &Scenario| self.build(at);
        let simulator = Simulator::in_network(scenario, trace, topology, capacity, policy)?;
        Ok(simulator.with_aqm(self.aqm(), scenario)?)
    }
}

/// Construction.
impl<P: Policy, T: Topology> Simulator<P, Recorders, T> {
    /// Creates a simulation of `trace` at time zero in a network of switches, each with a policy of its
    /// own and a buffer of `capacity` bytes. Both are made from the scenario as the switch
    /// [sees it](Scenario::at_switch). `scenario.network.ports` is the number of hosts.
    ///
    /// # Errors
    /// When the scenario is inconsistent, a flow's host does not exist, the network has not as many
    /// hosts as the scenario has ports; and those of `policy`.
    pub fn in_network(
        scenario: &Scenario,
        trace: &Trace,
        topology: T,
        capacity: impl Fn(&Scenario) -> u64,
        mut policy: impl FnMut(SwitchId, &Scenario) -> Result<P, PolicyParseError>,
    ) -> Result<Self, SimError> {
        scenario.validate()?;
        trace.validate(scenario.network.ports)?;
        let settings = Settings::from_scenario(scenario);
        check_network(scenario, &topology)?;
        let propagation = scenario.propagation();
        let mut switches = topology.per_switch(|id| {
            let at = topology.scenario_at(scenario, id);
            let mut switch = SwitchSettings::new(&at, topology.ports(id), capacity(&at));
            switch.seed = trace.seed;
            let clock_offset = T::clock_offset(propagation);
            Switch::new(id, clock_offset, &switch, policy(id, &at)?)
        })?;
        let pushes_out = switches.as_ref().iter().any(Switch::pushes_out);
        let mut engine = Engine::new(scenario, settings.is_ns3());
        if pushes_out {
            engine.packets.link_both_ways();
        }
        if scenario
            .transports()
            .iter()
            .any(|kind| kind.reads_telemetry())
        {
            for switch in switches.as_mut() {
                switch.measure(meters(scenario, &topology, switch.id(), &engine.links));
            }
        }
        let port_links = PortLinks::of(&topology, switches.as_ref().len());
        let mut pauses = Pauses::new(scenario);
        for switch in switches.as_mut() {
            let is_lossless =
                enable_lossless(scenario, &topology, switch, &engine.links, trace.seed)?;
            pauses.active |= is_lossless;
        }
        let hosts = Hosts::new(scenario, settings, trace, topology)?;
        hosts.schedule_next_start(&mut engine);
        let window = Window::new(scenario, switches.as_ref().len());
        for (at, timer) in window.timers() {
            engine.set_timer(at - Instant::ZERO, timer);
        }
        if let Some(delay) = pauses.watch() {
            engine.set_timer(delay, Timer::Watchdog);
        }
        Ok(Simulator {
            engine,
            hosts,
            switches,
            observer: Recorders::default(),
            scenario: Arc::new(scenario.clone()),
            window,
            second: trace.second_kind(),
            // Thirteen days: later events could not be distinguished from earlier ones.
            time_limit: scenario
                .end()
                .map_or(HORIZON, |end| EventTime::of_host(end).min(HORIZON)),
            fair_hosts: scenario.host.queue == HostQueue::Fair,
            loses_enqueued: pushes_out,
            fired_alarm: None,
            touched: SwitchId::default(),
            port_links,
            pauses,
            wall: std::time::Duration::ZERO,
        })
    }

    /// Adds queue management behind the policy of every switch; to be called before the run.
    ///
    /// # Errors
    /// When the parameters do not fit the scenario or each other.
    pub fn with_aqm(
        mut self,
        aqm: Option<&AqmSpec>,
        scenario: &Scenario,
    ) -> Result<Self, PolicyParseError> {
        if let Some(aqm) = aqm {
            let topology = self.hosts.topology();
            for switch in self.switches.as_mut() {
                if switch.mmu().is_some() {
                    return Err(PolicyParseError::Unusable {
                        policy: format!("{aqm}"),
                        problem:
                            "queue management drops packets that pauses are to save; leave it \
                                  out, or see the setting marking"
                                .to_owned(),
                    });
                }
                let at = topology.scenario_at(scenario, switch.id());
                switch.set_aqm(aqm.build(&at, switch.id(), switch.ports())?);
            }
        }
        let mut switches = self.switches.as_ref().iter();
        self.loses_enqueued = switches.any(Switch::loses_enqueued);
        Ok(self)
    }

    /// Replaces the congestion control of all TCP flows; to be called before the run. Every flow begins with a clone
    /// of `control`. Loss recovery, acknowledgements and everything else stay as the scenario has them.
    ///
    /// `examples/own_transport.rs` is a whole program.
    #[must_use]
    pub fn with_transport(mut self, scenario: &Scenario, control: impl OwnControl) -> Self {
        self.set_transport(scenario, &control);
        self
    }

    /// As [`with_transport`](Simulator::with_transport).
    pub(super) fn set_transport(&mut self, scenario: &Scenario, control: &dyn OwnControl) {
        let topology = self.hosts.topology();
        if control.reads_telemetry() {
            for switch in self.switches.as_mut() {
                switch.measure(meters(scenario, topology, switch.id(), &self.engine.links));
            }
        }
        self.hosts.set_transport(control);
    }

    /// Replaces the observer; to be called before the run.
    pub fn observed<O: Observer>(self, observer: O) -> Simulator<P, O, T> {
        Simulator {
            engine: self.engine,
            hosts: self.hosts,
            switches: self.switches,
            observer,
            scenario: self.scenario,
            window: self.window,
            second: self.second,
            time_limit: self.time_limit,
            fair_hosts: self.fair_hosts,
            loses_enqueued: self.loses_enqueued,
            fired_alarm: self.fired_alarm,
            touched: self.touched,
            port_links: self.port_links,
            pauses: self.pauses,
            wall: self.wall,
        }
    }

    /// As [`Recorders::measure_waits`].
    pub fn measure_waits(&mut self) {
        self.observer.measure_waits();
    }

    /// Records the state of every port every `interval` of simulated time from now on.
    pub fn record_timeline(&mut self, interval: Duration) {
        let now = self.switch_now(SwitchId(0));
        self.observer.record_timeline(interval, now);
    }

    /// As [`Recorders::sample_ingress`].
    pub fn sample_ingress(&mut self, sampling: IngressSampling) {
        self.observer.sample_ingress(sampling);
    }

    /// As [`Recorders::record_drops`].
    pub fn record_drops(&mut self) {
        self.observer.record_drops();
    }
}

/// Returns the telemetry of a switch.
fn meters<T: Topology>(scenario: &Scenario, topology: &T, at: SwitchId, links: &Links) -> Meters {
    let ports = 0..topology.ports(at);
    let rates = ports.map(|port| links.rate(topology.line(at, port)));
    let record_bytes = wire_bytes(scenario.telemetry.bytes_per_hop);
    Meters::new(rates, record_bytes, scenario.telemetry.on_acks)
}

fn check_network<T: Topology>(scenario: &Scenario, topology: &T) -> Result<(), SimError> {
    topology.check().map_err(SimError::Network)?;
    let (hosts, ports) = (topology.hosts(), scenario.port_count());
    if hosts != ports {
        let problem = format!("the network has {hosts} hosts, the scenario has ports = {ports}");
        return Err(SimError::Network(problem));
    }
    if T::IS_FABRIC && scenario.pools_spines() != T::POOLS_SPINES {
        let problem =
            "spine_pool = with_leaf: this needs a buffer of every switch’s own; must be own";
        return Err(SimError::Network(problem.to_owned()));
    }
    let queues_per_port = scenario.queues.queues_per_port as usize;
    let queues =
        topology.per_switch(|id| Ok::<_, SimError>(topology.ports(id) * queues_per_port))?;
    if let Some(&queues) = queues.as_ref().iter().find(|queues| **queues > MAX_QUEUES) {
        let problem = format!("a switch has at most {MAX_QUEUES} queues; found {queues}");
        return Err(SimError::Network(problem));
    }
    Ok(())
}

impl<T: Topology> Engine<T> {
    fn new(scenario: &Scenario, is_ns3: bool) -> Engine<T> {
        let links = Links::new(scenario);
        let transmission = links.common_transmissions(LinkKind::HOST);
        let propagation = links.propagation(LinkKind::HOST);
        // ns-3 schedules the delivery when the transmission begins.
        let delivery = transmission.map(|transmission| match is_ns3 {
            true => transmission + propagation,
            false => propagation,
        });
        Engine {
            now: EventTime::ZERO,
            rank: TieBreak::FIRST,
            ranks: TieBreaks::new(transmission, delivery),
            events: T::Events::new(Delays {
                transmission,
                of_fabric: links.common_transmissions(LinkKind::FABRIC),
                propagation,
                fabric_propagation: links.propagation(LinkKind::FABRIC),
                delivery,
                fair_hosts: scenario.host.queue == HostQueue::Fair,
            }),
            packets: PacketStore::default(),
            links,
            created: 0,
        }
    }
}

/// The event loop.
impl<P: Policy, O: Observer, T: Topology> Simulator<P, O, T> {
    /// Runs to the next decision, to the completion of the last flow or to the limit of simulated
    /// time, whichever comes first.
    pub fn advance(&mut self) -> StopReason {
        let started = std::time::Instant::now();
        let stop = match self.pauses.active {
            true => self.run_events::<true>(),
            false => self.run_events::<false>(),
        };
        self.wall += started.elapsed();
        stop
    }

    /// As [`advance`](Simulator::advance). `LOSSLESS` is true if switches pause their
    /// neighbours. Everything that this needs has a code path of its own, so that the common
    /// path has no trace of it.
    #[inline(always)]
    fn run_events<const LOSSLESS: bool>(&mut self) -> StopReason {
        loop {
            if self.hosts.finished() {
                break StopReason::Finished;
            }
            if !self.run_event::<LOSSLESS>() || self.stuck().is_some() {
                break StopReason::TimeLimit;
            }
            let at = match T::IS_FABRIC {
                true => self.touched,
                false => SwitchId(0),
            };
            if self.switch(at).policy().decision_due() {
                break StopReason::Decision(at);
            }
            if self.fired_alarm.is_some()
                && let Some(alarm) = self.fired_alarm.take()
            {
                break StopReason::Alarm(alarm);
            }
        }
    }

    /// Runs one event; `false` when none is left before the limit of simulated time.
    pub fn step(&mut self) -> bool {
        match self.pauses.active {
            true => self.run_event::<true>(),
            false => self.run_event::<false>(),
        }
    }

    /// Runs to the end and reports.
    ///
    /// A policy that waits for decisions keeps its current settings.
    pub fn run(&mut self) -> Outcome {
        while !matches!(self.advance(), StopReason::Finished | StopReason::TimeLimit) {}
        self.outcome()
    }

    #[inline(always)]
    fn run_event<const LOSSLESS: bool>(&mut self) -> bool {
        let due = self.engine.events.next();
        if due.time() > self.time_limit {
            return false;
        }
        debug_assert!(due.time() >= self.engine.now, "time goes back");
        self.engine.now = due.time();
        self.observer
            .before_event(due.time(), self.switches.as_ref());
        self.dispatch::<LOSSLESS>(self.engine.events.source(due));
        debug_assert!(
            self.check_invariants().is_ok(),
            "{:?}",
            self.check_invariants()
        );
        true
    }

    /// Each source has its own copy of the code, so that the compiler knows which queue is used.
    #[inline(always)]
    fn dispatch<const LOSSLESS: bool>(&mut self, at: u8) {
        if T::IS_FABRIC {
            return self.dispatch_in_fabric::<LOSSLESS>(at);
        }
        match at {
            source::FREE => self.port_is_free::<LOSSLESS>(source::FREE),
            source::FREE_OF_ACK => self.port_is_free::<LOSSLESS>(source::FREE_OF_ACK),
            source::ARRIVAL => self.packet_arrives::<LOSSLESS>(source::ARRIVAL),
            source::ARRIVAL_OF_ACK => self.packet_arrives::<LOSSLESS>(source::ARRIVAL_OF_ACK),
            source::NEXT => self.host_goes_on::<LOSSLESS>(source::NEXT),
            source::NEXT_OF_ACK => self.host_goes_on::<LOSSLESS>(source::NEXT_OF_ACK),
            _ => self.on_irregular(),
        }
    }

    #[inline(always)]
    fn dispatch_in_fabric<const LOSSLESS: bool>(&mut self, at: u8) {
        match at {
            fabric::source::HEAP => self.on_irregular(),
            at if at < fabric::source::REACH => {
                let event = self.engine.events.take(at);
                self.on_sent::<LOSSLESS>(event);
            }
            at => {
                let event = self.engine.events.take(at);
                self.on_arrival::<LOSSLESS>(event);
            }
        }
    }

    #[inline(always)]
    fn port_is_free<const LOSSLESS: bool>(&mut self, queue: u8) {
        let event = self.engine.events.take(queue);
        self.on_sent::<LOSSLESS>(event);
    }

    #[inline(always)]
    fn packet_arrives<const LOSSLESS: bool>(&mut self, queue: u8) {
        let event = self.engine.events.take(queue);
        self.on_arrival::<LOSSLESS>(event);
    }

    #[inline(always)]
    fn host_goes_on<const LOSSLESS: bool>(&mut self, queue: u8) {
        if self.fair_hosts {
            let event = self.engine.events.take(queue);
            self.hosts.line_is_free(event.sender, &mut self.engine);
        } else {
            let event = self.engine.events.take_arrival(queue);
            self.on_arrival::<LOSSLESS>(event);
        }
    }

    #[cold]
    #[inline(never)]
    fn on_irregular(&mut self) {
        match self.engine.events.take_heap() {
            HeapEvent::Start => {
                self.engine.rank = TieBreak::FIRST;
                self.hosts
                    .start_next_flow(&mut self.engine, &mut self.observer);
            }
            HeapEvent::Timer(timer) => self.on_timer(timer),
        }
    }

    fn on_timer(&mut self, timer: Timer) {
        let engine = &mut self.engine;
        engine.rank = match timer {
            Timer::Begin(_) => TieBreak::LAST,
            _ => TieBreak::FIRST,
        };
        match timer {
            Timer::Arrival(event) if self.pauses.active => self.on_arrival::<true>(event),
            Timer::Arrival(event) => self.on_arrival::<false>(event),
            Timer::Next(host) => self.hosts.line_is_free(host, engine),
            Timer::Free(event) if self.pauses.active => self.on_sent::<true>(event),
            Timer::Free(event) => self.on_sent::<false>(event),
            Timer::Retransmission(flow) => {
                self.hosts
                    .on_retransmission_timer(flow, engine, &mut self.observer);
            }
            Timer::Delivery(host) => {
                self.hosts.take_waiting(host, engine, &mut self.observer);
            }
            Timer::Begin(flow) | Timer::Pace(flow) => self.hosts.pump(flow, engine),
            Timer::Syn(flow, sent) => self.hosts.on_syn_timer(flow, sent, engine),
            Timer::SynAck(flow) => self.hosts.on_syn_ack_timer(flow, engine),
            Timer::DelayedAck(flow) => self.hosts.on_ack_timer(flow, engine),
            Timer::Alarm(alarm) => self.fired_alarm = Some(alarm),
            Timer::Pause(effect) => self.take_pause(effect),
            Timer::PauseEnds(effect) => self.pause_ends(effect),
            Timer::PauseAgain(switch, place) => self.pause_again(switch, place),
            Timer::Watchdog => self.watch(),
            Timer::WindowOpens => self.open_window(),
            Timer::WindowCloses => self.close_window(),
        }
    }

    /// Handles the arrival of a packet's last bit at a switch; in a network of several, at a switch
    /// or a host.
    #[inline(always)]
    fn on_arrival<const LOSSLESS: bool>(&mut self, event: PacketEvent) {
        match LOSSLESS {
            true => self.on_arrival_lossless(event),
            false => self.arrive::<false>(event),
        }
    }

    /// As [`on_arrival`](Self::on_arrival); `LOSSLESS` is true if switches may pause neighbours.
    #[inline(always)]
    pub(super) fn arrive<const LOSSLESS: bool>(&mut self, event: PacketEvent) {
        let id = event.packet;
        if !T::IS_FABRIC {
            self.hosts.nics().follow(event, &mut self.engine);
            return self.admit::<LOSSLESS>(SwitchId(0), id);
        }
        let Some(from) = event.sending_switch() else {
            let switch = self.hosts.attachment(event.sender).switch;
            return self.admit::<LOSSLESS>(switch, id);
        };
        match event.receiving_switch() {
            Some(to) => {
                let came = T::POOLS_SPINES.then(|| (from, self.port_of(from, id)));
                let queue = self.hosts.queue_at(to, came, &self.engine.packets[id]);
                self.engine.packets[id].queue = queue;
                self.admit::<LOSSLESS>(to, id);
            }
            None => self.hosts.receive(id, &mut self.engine, &mut self.observer),
        }
    }

    #[inline(always)]
    fn admit<const LOSSLESS: bool>(&mut self, at: SwitchId, id: PacketId) {
        if T::IS_FABRIC {
            self.touched = at;
        }
        let switch = &mut self.switches.as_mut()[at.index()];
        let now = self.engine.now.at(switch.clock_offset());
        let (packets, observer) = (&mut self.engine.packets, &mut self.observer);
        observer.crossing(at, now, || self.hosts.crossing(&packets[id]));
        match switch.arrive(packets, id, now, observer) {
            Admission::Served => self.serve(at, id),
            Admission::Queued => {}
            Admission::Lost(_) => self.dispose(id),
        }
        if LOSSLESS {
            self.send_frames(at);
        }
        if self.loses_enqueued {
            self.dispose_of_lost(at);
        }
    }

    /// Makes a port of the switch begin to send the packet.
    #[inline(always)]
    pub(super) fn serve(&mut self, at: SwitchId, id: PacketId) {
        if !T::IS_FABRIC {
            return self.engine.free_port(PacketEvent::of_switch(at, id));
        }
        let packet = &self.engine.packets[id];
        let port = self.port_of(at, id);
        let PortLink { line, mut to, .. } = self.port_links.at(at, port);
        let topology = self.hosts.topology();
        if T::POOLS_SPINES {
            let ends = || self.hosts.ends_of(packet.flow, packet.kind.direction());
            to = topology.next_hop(at, port, || ends().1);
        }
        if topology.is_uplink(at, port) {
            self.window.count(at, line, packet);
        }
        self.engine.cross(line, PacketEvent::of_line(at, id, to));
    }

    /// Returns the port at which a packet leaves the switch that it is at.
    #[inline(always)]
    pub(super) fn port_of(&self, at: SwitchId, id: PacketId) -> usize {
        let queue = usize::from(self.engine.packets[id].queue);
        self.switches.as_ref()[at.index()].port_of(queue)
    }

    /// Handles the departure of a packet's last bit from its port; in a network of several
    /// switches, also from the interface of a host. One propagation delay later it reaches the far
    /// end. With a single switch that is a host, and the time is then on the host's clock.
    #[inline(always)]
    fn on_sent<const LOSSLESS: bool>(&mut self, event: PacketEvent) {
        match LOSSLESS {
            true => self.on_sent_lossless(event),
            false => self.leave::<false>(event),
        }
    }

    /// As [`on_sent`](Self::on_sent); `LOSSLESS` is true if switches may pause neighbours.
    #[inline(always)]
    pub(super) fn leave<const LOSSLESS: bool>(&mut self, event: PacketEvent) {
        let id = event.packet;
        let engine = &mut self.engine;
        let at = match event.sending_switch() {
            None if T::IS_FABRIC => return self.hosts.line_is_free(event.sender, engine),
            Some(at) if T::IS_FABRIC => at,
            _ => SwitchId(0),
        };
        if T::IS_FABRIC {
            self.touched = at;
        } else {
            engine.rank = engine.ranks.delivered(engine.packets[id].class);
        }
        let switch = &mut self.switches.as_mut()[at.index()];
        let now = engine.now.at(switch.clock_offset());
        let (packets, observer) = (&mut engine.packets, &mut self.observer);
        if let Some(next) = switch.sent(packets, id, now, observer) {
            self.serve(at, next);
        }
        if LOSSLESS {
            self.send_frames(at);
        }
        if self.loses_enqueued {
            self.dispose_of_lost(at);
        }
        if !T::IS_FABRIC {
            if LOSSLESS && self.engine.packets[id].kind == PacketKind::Pause {
                return self.pause_reaches_host(id);
            }
            self.hosts.receive(id, &mut self.engine, &mut self.observer);
        }
    }

    /// Handles the loss of a packet.
    #[inline(never)]
    pub(super) fn dispose(&mut self, id: PacketId) {
        let packets = &mut self.engine.packets;
        let packet = packets[id];
        packets.remove(id);
        if packet.flags.carries_records() {
            let records = packets.records.of(id);
            packets.records.remove(records);
        }
        self.hosts.lose(&packet, &mut self.observer);
    }

    #[cold]
    #[inline(never)]
    fn dispose_of_lost(&mut self, at: SwitchId) {
        while let Some(id) = self.switches.as_mut()[at.index()].take_lost() {
            self.dispose(id);
        }
    }
}

/// Access to the switch of a simulation with one switch.
impl<P: Policy, O: Observer> Simulator<P, O> {
    /// Returns the shared buffer.
    pub fn buffer(&self) -> &SharedBuffer {
        self.switches[0].buffer()
    }

    /// Returns the policy.
    pub fn policy(&self) -> &P {
        self.switches[0].policy()
    }

    /// Returns the policy, to be changed from outside the packet path, as a control loop does.
    pub fn policy_mut(&mut self) -> &mut P {
        self.switches[0].policy_mut()
    }

    /// Sets the levels of [early drop](crate::switch::aqm::early), one per port.
    ///
    /// # Panics
    /// When the switch has another queue management, there is not one level per port, or a level is out
    /// of range.
    pub fn set_early_drop(&mut self, levels: &[u8]) {
        self.switches[0].set_early_drop(levels);
    }
}

/// State that users and the control loop read.
impl<P: Policy, O: Observer, T: Topology> Simulator<P, O, T> {
    /// Returns the current instant on the clock of the hosts. An action of a switch reaches them later,
    /// so this clock is ahead of the switch's.
    pub fn now(&self) -> Instant {
        self.engine.host_now()
    }

    /// Returns the current instant on the clock of a switch.
    ///
    /// # Panics
    /// When there is no such switch.
    pub fn switch_now(&self, id: SwitchId) -> Instant {
        self.engine.now.at(self.switch(id).clock_offset())
    }

    /// Returns true if all flows are complete.
    pub fn finished(&self) -> bool {
        self.hosts.finished()
    }

    /// Returns the topology: how hosts and switches are connected.
    pub fn topology(&self) -> &T {
        self.hosts.topology()
    }

    /// Returns all switches, by number.
    pub fn switches(&self) -> &[Switch<P>] {
        self.switches.as_ref()
    }

    /// Returns a switch.
    ///
    /// # Panics
    /// When there is no such switch.
    pub fn switch(&self, id: SwitchId) -> &Switch<P> {
        &self.switches.as_ref()[id.index()]
    }

    /// Returns a switch and the observer, for control loops.
    ///
    /// # Panics
    /// When there is no such switch.
    pub fn switch_and_observer(&mut self, id: SwitchId) -> (&mut Switch<P>, &mut O) {
        (&mut self.switches.as_mut()[id.index()], &mut self.observer)
    }

    /// Returns the observer of the simulation.
    pub fn observer(&self) -> &O {
        &self.observer
    }

    /// Returns the observer, to be changed.
    pub fn observer_mut(&mut self) -> &mut O {
        &mut self.observer
    }

    /// Returns the observer of the simulation, once the run has ended.
    pub fn into_observer(self) -> O {
        self.observer
    }

    /// Returns the number of packets whose last bit has left a switch port.
    pub fn packets_forwarded(&self) -> u64 {
        self.count(|counters| counters.forwarded)
    }

    /// Returns the number of packets that hosts have made: data, acknowledgements, and those of
    /// handshakes.
    pub fn packets_created(&self) -> u64 {
        self.engine.created
    }

    /// Returns the time at which the last flow so far was complete.
    pub(crate) fn last_finish(&self) -> Instant {
        self.hosts.last_finish()
    }

    /// Returns the flows that have started and are not complete, in an unspecified but
    /// deterministic order.
    pub fn active_flows(&self) -> impl Iterator<Item = FlowView> + '_ {
        self.hosts.active_flows(self.now())
    }

    /// Makes [`advance`](Simulator::advance) return with `alarm` after `delay`.
    pub fn set_alarm(&mut self, delay: Duration, alarm: Alarm) {
        self.engine.set_timer(delay, Timer::Alarm(alarm));
    }

    /// Returns the number of packets lost at switches.
    pub(super) fn drops(&self) -> u64 {
        self.count(|counters| counters.drops)
    }

    pub(super) fn count(&self, of: impl Fn(&SwitchCounters) -> u64) -> u64 {
        let switches = self.switches.as_ref().iter();
        switches.map(|switch| of(switch.counters())).sum()
    }

    #[cold]
    fn open_window(&mut self) {
        let now = self.engine.now;
        let at = |switch: &Switch<P>| now.at(switch.clock_offset());
        self.window.open(self.switches.as_mut(), at);
    }

    #[cold]
    fn close_window(&mut self) {
        for switch in self.switches.as_mut() {
            let now = self.engine.now.at(switch.clock_offset());
            switch.count_occupancy_until(now);
        }
        let rows = self.switch_rows();
        self.window.close(rows);
    }

    pub(super) fn switch_rows(&self) -> Vec<SwitchRow> {
        let switches = self.switches.as_ref();
        let links = &self.engine.links;
        self.window
            .rows(switches, self.topology(), links, self.now())
    }
}
