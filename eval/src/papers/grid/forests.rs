//! Credence in a network: a forest for each kind of switch.

use bufgym_models::files::sha256;
use bufgym_sim::network::{LeafSpine, Outcome, SimError, Simulator};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::policy::{Credence, Forest};
use bufgym_sim::switch::{AnyPolicy, PolicySpec};
use bufgym_sim::traffic::Trace;
use serde::{Deserialize, Serialize};

/// The name of the policy that has them.
const POLICY: &str = "credence";

/// What leaves and what spines expect Longest Queue Drop to lose.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Forests {
    /// Of leaves.
    pub leaf: Forest,
    /// Of spines.
    pub spine: Forest,
    /// How they were made, in words.
    pub origin: String,
}

impl Forests {
    /// The forests written out, as one number.
    pub fn fingerprint(&self) -> String {
        sha256(format!("{:?} {:?}", self.leaf, self.spine).as_bytes())
    }
}

/// Runs a trace under a policy at every switch. With forests, Credence without a model of its own has
/// them, and each switch flips its predictions by a stream of its own.
///
/// # Errors
/// When the scenario is inconsistent, or trace or policy do not fit it.
pub fn simulate(
    scenario: &Scenario,
    trace: &Trace,
    policy: &PolicySpec,
    forests: Option<&Forests>,
) -> Result<Outcome, SimError> {
    let has_none = policy.name() == POLICY && !policy.to_string().contains("model=");
    let Some(forests) = forests.filter(|_| has_none && scenario.is_fabric()) else {
        return policy.run(scenario, trace);
    };
    let number = |key: &str| policy.text(key).and_then(|text| text.parse::<f64>().ok());
    let flip = number("flip").unwrap_or(0.0);
    let seed = policy
        .text("seed")
        .and_then(|text| text.parse::<u64>().ok());
    let topology = LeafSpine::of(scenario, trace.seed);
    let leaves = scenario.leaves as usize;
    let capacity = |at: &Scenario| at.buffer_bytes;
    let build = |id: bufgym_sim::network::SwitchId, at: &Scenario| {
        let number = usize::from(id.0);
        let forest = match number < leaves {
            true => &forests.leaf,
            false => &forests.spine,
        };
        let seed = seed.unwrap_or(1).wrapping_add(number as u64);
        let credence = Credence::new(at, forest.clone()).with_flips(flip, seed);
        Ok(AnyPolicy::from(credence))
    };
    let simulator = Simulator::in_network(scenario, trace, topology, capacity, build)?;
    Ok(simulator.managed(policy.aqm(), scenario)?.run())
}
