//! A simulation of whichever network a scenario has. What is in this file is compiled with this crate, once for all
//! crates that call it.

use super::ingress::IngressSampling;
use super::outcome::Outcome;
use super::recorders::Recorders;
use super::simulator::Violation;
use super::simulator::{ScenarioTopology, SimError, Simulator};
use crate::engine::topology::{
    LeafSpine, LinkedNetwork, OneSwitch, PooledLeafSpine, SwitchId, Topology,
};
use crate::scenario::Scenario;
use crate::switch::aqm::AqmSpec;
use crate::switch::{AnyPolicy, PolicyParseError, PolicySpec, Switch};
use crate::traffic::Trace;
use crate::transport::OwnControl;
use crate::units::{Duration, Instant};

/// Selects the records of a run besides its summary and its flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Records {
    /// True if the waiting times of packets are measured.
    pub waits: bool,
    /// Interval of the timeline, if one is recorded.
    pub timeline: Option<Duration>,
    /// True if every lost packet is recorded.
    pub drops: bool,
    /// Sampling times of lossless ingress queues, if they are sampled.
    pub ingress: Option<IngressSampling>,
}

/// A simulation of the network of a scenario: one switch, leaves and spines, or links from a file.
///
/// It can be stopped after any event, read, and cloned: a clone goes on like the original, bit for bit. A program that
/// needs to know the topology at compile time uses a [`Simulator`].
#[derive(Clone, Debug)]
pub struct Simulation(Network);

/// The topologies, each with an event loop that is compiled for it.
#[derive(Clone, Debug)]
enum Network {
    One(Box<Simulator<AnyPolicy, Recorders, OneSwitch>>),
    LeafSpine(Box<Simulator<AnyPolicy, Recorders, LeafSpine>>),
    Pooled(Box<Simulator<AnyPolicy, Recorders, PooledLeafSpine>>),
    Linked(Box<Simulator<AnyPolicy, Recorders, LinkedNetwork>>),
}

/// Evaluates an expression with the simulator of whichever topology.
macro_rules! with {
    ($network:expr, $simulator:ident => $value:expr) => {
        match $network {
            Network::One($simulator) => $value,
            Network::LeafSpine($simulator) => $value,
            Network::Pooled($simulator) => $value,
            Network::Linked($simulator) => $value,
        }
    };
}

impl Simulation {
    /// Creates a simulation of `trace` at time zero, with an instance of a policy at every switch.
    ///
    /// # Errors
    /// When the scenario is inconsistent, the trace does not fit it, or the policy's parameters do not.
    pub fn new(
        scenario: &Scenario,
        trace: &Trace,
        policy: &PolicySpec,
    ) -> Result<Simulation, SimError> {
        fn boxed<T: ScenarioTopology>(
            scenario: &Scenario,
            trace: &Trace,
            policy: &PolicySpec,
        ) -> Result<Box<Simulator<AnyPolicy, Recorders, T>>, SimError> {
            policy.simulator(scenario, trace).map(Box::new)
        }
        Ok(Simulation(if scenario.links().is_some() {
            Network::Linked(boxed(scenario, trace, policy)?)
        } else if !scenario.is_fabric() {
            Network::One(boxed(scenario, trace, policy)?)
        } else if scenario.pools_spines() {
            Network::Pooled(boxed(scenario, trace, policy)?)
        } else {
            Network::LeafSpine(boxed(scenario, trace, policy)?)
        }))
    }

    /// Records what `records` selects; to be called before the run.
    #[must_use]
    pub fn recording(mut self, records: &Records) -> Simulation {
        with!(&mut self.0, simulator => record(simulator, records));
        self
    }

    /// Replaces the congestion control of all TCP flows, as [`Simulator::with_transport`].
    #[must_use]
    pub fn with_transport(mut self, scenario: &Scenario, control: impl OwnControl) -> Simulation {
        with!(&mut self.0, simulator => simulator.set_transport(scenario, &control));
        self
    }

    /// Runs the next event. Returns false if nothing is left to happen within the limit of time.
    pub fn step(&mut self) -> bool {
        with!(&mut self.0, simulator => simulator.step())
    }

    /// Runs to the completion of the last flow or to the limit of simulated time.
    pub fn run(&mut self) -> Outcome {
        with!(&mut self.0, simulator => simulator.run())
    }

    /// Returns true if all flows are complete.
    pub fn finished(&self) -> bool {
        with!(&self.0, simulator => simulator.finished())
    }

    /// Returns the current instant on the clock of the hosts.
    pub fn now(&self) -> Instant {
        with!(&self.0, simulator => simulator.now())
    }

    /// Returns all switches, by number.
    pub fn switches(&self) -> &[Switch<AnyPolicy>] {
        with!(&self.0, simulator => simulator.switches())
    }

    /// Returns the number of packets whose last bit has left a switch port.
    pub fn packets_forwarded(&self) -> u64 {
        with!(&self.0, simulator => simulator.packets_forwarded())
    }

    /// Returns the number of packets that hosts have made.
    pub fn packets_created(&self) -> u64 {
        with!(&self.0, simulator => simulator.packets_created())
    }

    /// Checks what holds between any two events, as [`Simulator::check_invariants`].
    ///
    /// # Errors
    /// The first thing that does not hold.
    pub fn check_invariants(&self) -> Result<(), Violation> {
        with!(&self.0, simulator => simulator.check_invariants())
    }
}

impl PolicySpec {
    /// Runs `trace` under this policy at every switch of the scenario.
    ///
    /// # Errors
    /// As [`Simulation::new`].
    pub fn run(&self, scenario: &Scenario, trace: &Trace) -> Result<Outcome, SimError> {
        Ok(Simulation::new(scenario, trace, self)?.run())
    }

    /// As [`run`](PolicySpec::run), and records what `records` selects.
    ///
    /// # Errors
    /// As [`Simulation::new`].
    pub fn run_recording(
        &self,
        scenario: &Scenario,
        trace: &Trace,
        records: &Records,
    ) -> Result<Outcome, SimError> {
        let simulation = Simulation::new(scenario, trace, self)?;
        Ok(simulation.recording(records).run())
    }
}

/// Runs `trace` in the leaf-spine network of a scenario, with the policy that `policy` makes for each switch, from its
/// number and the scenario as it [sees it](Scenario::at_switch), and with queue management behind it.
///
/// # Errors
/// As [`Simulator::in_network`] and [`Simulator::with_aqm`].
pub fn run_leaf_spine(
    scenario: &Scenario,
    trace: &Trace,
    policy: &mut dyn FnMut(SwitchId, &Scenario) -> Result<AnyPolicy, PolicyParseError>,
    aqm: Option<&AqmSpec>,
) -> Result<Outcome, SimError> {
    let topology = LeafSpine::of(scenario, trace.seed);
    let capacity = |at: &Scenario| at.network.buffer_bytes;
    let simulator = Simulator::in_network(scenario, trace, topology, capacity, policy)?;
    Ok(simulator.with_aqm(aqm, scenario)?.run())
}

fn record<T: Topology>(simulator: &mut Simulator<AnyPolicy, Recorders, T>, records: &Records) {
    if records.waits {
        simulator.measure_waits();
    }
    if let Some(interval) = records.timeline {
        simulator.record_timeline(interval);
    }
    if records.drops {
        simulator.record_drops();
    }
    if let Some(sampling) = records.ingress {
        simulator.sample_ingress(sampling);
    }
}
