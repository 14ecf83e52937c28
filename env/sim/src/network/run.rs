//! Runs of a whole trace under a policy string. The simulations of this file are compiled with this crate, once for
//! all crates that call it.

use super::ingress::IngressSampling;
use super::outcome::Outcome;
use super::recorders::Recorders;
use super::simulator::{SimError, Simulator};
use crate::engine::topology::{LeafSpine, SwitchId, Topology};
use crate::scenario::Scenario;
use crate::switch::aqm::AqmSpec;
use crate::switch::{AnyPolicy, PolicyParseError, PolicySpec};
use crate::traffic::Trace;
use crate::units::Time;

/// Selects the records of a run besides its summary and its flows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Records {
    /// True if the waiting times of packets are measured.
    pub waits: bool,
    /// Interval of the timeline, if one is recorded.
    pub timeline: Option<Time>,
    /// True if every lost packet is recorded.
    pub drops: bool,
    /// Sampling times of lossless ingress queues, if they are sampled.
    pub ingress: Option<IngressSampling>,
}

impl PolicySpec {
    /// Runs `trace` under this policy at every switch of the scenario, which may have a single one.
    ///
    /// # Errors
    /// As [`fabric`](PolicySpec::fabric).
    pub fn run(&self, scenario: &Scenario, trace: &Trace) -> Result<Outcome, SimError> {
        self.run_recording(scenario, trace, &Records::default())
    }

    /// As [`run`](PolicySpec::run), and records what `records` selects.
    ///
    /// # Errors
    /// As [`fabric`](PolicySpec::fabric).
    pub fn run_recording(
        &self,
        scenario: &Scenario,
        trace: &Trace,
        records: &Records,
    ) -> Result<Outcome, SimError> {
        if scenario.links().is_some() {
            return Ok(run(self.linked(scenario, trace)?, records));
        }
        Ok(match scenario.is_fabric() {
            true if scenario.pools_spines() => run(self.pooled(scenario, trace)?, records),
            true => run(self.fabric(scenario, trace)?, records),
            false => run(self.simulator(scenario, trace)?, records),
        })
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
    Ok(run(simulator.with_aqm(aqm, scenario)?, &Records::default()))
}

fn run<T: Topology>(
    mut simulator: Simulator<AnyPolicy, Recorders, T>,
    records: &Records,
) -> Outcome {
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
    simulator.run()
}
