//! Credence in a network: a forest for each kind of switch.

use bufgym_models::files::sha256;
use bufgym_sim::network::{Outcome, SimError, SwitchId, run_leaf_spine};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::policy::{Credence, Forest};
use bufgym_sim::switch::{AnyPolicy, PolicySpec};
use bufgym_sim::traffic::Trace;
use serde::{Deserialize, Serialize};

/// The name of the policy that uses forests.
const POLICY: &str = "credence";

/// Models by which leaves and spines predict the losses of Longest Queue Drop.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Forests {
    /// Forest of leaves.
    pub leaf: Forest,
    /// Forest of spines.
    pub spine: Forest,
    /// Description of the training, in words.
    pub origin: String,
}

impl Forests {
    /// Returns a fingerprint of the forests.
    pub fn fingerprint(&self) -> String {
        sha256(format!("{:?} {:?}", self.leaf, self.spine).as_bytes())
    }
}

/// Runs a trace under a policy at every switch. With forests, Credence without its own model uses them, and
/// each switch flips its predictions by its own random stream.
///
/// # Errors
/// Fails if the scenario is inconsistent, or if the trace or the policy does not fit it.
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
    let leaves = scenario.network.leaves as usize;
    let mut build = |id: SwitchId, at: &Scenario| {
        let number = usize::from(id.0);
        let forest = match number < leaves {
            true => &forests.leaf,
            false => &forests.spine,
        };
        let seed = seed.unwrap_or(1).wrapping_add(number as u64);
        let credence = Credence::new(at, forest.clone()).with_flips(flip, seed);
        Ok(AnyPolicy::from(credence))
    };
    run_leaf_spine(scenario, trace, &mut build, policy.aqm())
}
