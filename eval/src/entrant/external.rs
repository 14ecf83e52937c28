//! Networks whose runtime is not part of this crate, such as those from ONNX files.

use std::collections::BTreeSet;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

use bufgym_env::control::{Controller, LowLevelPolicy};
use bufgym_sim::network::{LeafSpine, SwitchId, Topology as _};
use bufgym_sim::scenario::Scenario;

use super::EntrantError;
use crate::data::Training;

/// A network that another crate runs. The crate does not depend on it, so that it is compiled once for programs with
/// and without that runtime.
pub trait ExternalNetwork: fmt::Debug + Send + Sync {
    /// Returns a controller for one run. All runs may be in progress at the same time.
    fn controller(&self) -> Box<dyn Controller>;

    /// Returns the heuristic whose α the network sets.
    fn low_level(&self) -> &LowLevelPolicy;

    /// Prepares the network for switches with this number of ports.
    ///
    /// # Errors
    /// Fails if it cannot decide about that many ports.
    fn prepare(&self, ports: usize) -> Result<(), Box<dyn Error + Send + Sync>>;

    /// Describes the source of the network in one line.
    fn origin(&self) -> String;

    /// Returns the training of the network, if it is known.
    fn training(&self) -> Option<Training>;
}

/// A network that all runs share.
pub(super) type Shared = Arc<dyn ExternalNetwork>;

/// Checks that the network can decide at every switch of the scenario.
pub(super) fn check(
    policy: &str,
    network: &dyn ExternalNetwork,
    scenario: &Scenario,
) -> Result<(), EntrantError> {
    for ports in ports_of(scenario) {
        network
            .prepare(ports)
            .map_err(|source| EntrantError::External {
                policy: policy.to_owned(),
                source,
            })?;
    }
    Ok(())
}

/// Returns the numbers of ports that switches of the scenario have.
fn ports_of(scenario: &Scenario) -> BTreeSet<usize> {
    if !scenario.is_fabric() {
        return BTreeSet::from([scenario.port_count()]);
    }
    let network = LeafSpine::of(scenario, 0);
    let spine = u16::try_from(network.leaves).ok().map(SwitchId);
    let switches = std::iter::once(SwitchId(0)).chain(spine);
    switches.map(|switch| network.ports(switch)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_of_switches_has_the_ports_of_leaves_and_of_spines() {
        let of = |preset: &str| ports_of(&Scenario::preset(preset).unwrap());
        assert_eq!(of("ndt-16x1g"), BTreeSet::from([16]));
        let scenario = Scenario::preset("leafspine-4x4").unwrap();
        let leaf = scenario.network.hosts_per_leaf
            + scenario.network.spines * scenario.network.links_per_pair;
        let spine = scenario.network.leaves * scenario.network.links_per_pair;
        let expected = [leaf, spine].map(|ports| ports as usize);
        assert_eq!(ports_of(&scenario), BTreeSet::from(expected));
    }
}
