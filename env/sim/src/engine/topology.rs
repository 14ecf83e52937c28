//! Which switches there are, and which of their ports leads where.

use std::fmt::Debug;

use serde::Serialize;

use super::packet::PacketDirection;
use crate::convert::index;

/// Number of a switch, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize)]
#[serde(transparent)]
pub struct SwitchId(pub u16);

impl SwitchId {
    /// As an index.
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// The switch with this index in a network that was [checked](Topology::check).
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a network has fewer switches than 16 bits can count"
    )]
    fn of(index: usize) -> SwitchId {
        debug_assert!(index < 1 << 15);
        SwitchId(index as u16)
    }
}

/// Queues that a switch can have, and so ports: packets count queues in 16 bits.
pub(crate) const MAX_QUEUES: usize = 1 << 16;

/// What is at the other end of a switch port's link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Neighbour {
    /// A host.
    Host(u16),
    /// A switch, and whether it is farther from the hosts.
    Switch {
        /// Which.
        id: SwitchId,
        /// Whether it is farther from the hosts than the port's own switch.
        up: bool,
    },
}

/// How hosts and switches are connected. All links have the same rate and delay.
///
/// Ports are numbered per switch. A packet goes up from its host, away from all hosts, and then
/// down; so every switch has a level, its distance from the hosts in links.
pub trait Topology: Clone + Debug {
    /// One value for every switch, in the order of their numbers.
    type PerSwitch<S>: AsRef<[S]> + AsMut<[S]>;

    /// Whether packets can cross several switches. Where they cannot, the code for it disappears.
    const IS_FABRIC: bool;

    /// Number of hosts.
    fn hosts(&self) -> usize;

    /// Ports of a switch.
    fn ports(&self, switch: SwitchId) -> usize;

    /// Links between a switch and the nearest hosts, from 1.
    fn level(&self, switch: SwitchId) -> u32;

    /// The switch that a host is attached to.
    fn switch_of(&self, host: u16) -> SwitchId;

    /// The port of `switch` that leads to `host`. Among several that do, `path` chooses: a number
    /// that is uniform over all 64-bit numbers and constant for a flow and direction.
    fn port_to(&self, switch: SwitchId, host: u16, path: u64) -> usize;

    /// Whether packets can be sent in this network.
    ///
    /// # Errors
    /// What is wrong, in words.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// What is at the other end of a port's link.
    fn neighbour(&self, switch: SwitchId, port: usize) -> Neighbour;

    /// A value for every switch.
    ///
    /// # Errors
    /// The first error of `make`.
    fn per_switch<S, E>(
        &self,
        make: impl FnMut(SwitchId) -> Result<S, E>,
    ) -> Result<Self::PerSwitch<S>, E>;

    /// The number that chooses among equal-cost ports: a hash of flow and direction.
    fn path(flow: u32, direction: PacketDirection) -> u64 {
        splitmix64(u64::from(flow) << 1 | direction as u64)
    }
}

/// The output function of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), after one step.
fn splitmix64(state: u64) -> u64 {
    let z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// One of `count` equal choices.
fn choose(path: u64, count: usize) -> usize {
    index(((u128::from(path) * count as u128) >> 64) as u64)
}

/// A single switch with a host on every port: port i leads to host i.
#[derive(Clone, Copy, Debug)]
pub struct OneSwitch {
    /// Ports, and hosts.
    pub ports: usize,
}

impl OneSwitch {
    /// The port that a host is attached to.
    #[inline(always)]
    pub fn port_of(&self, host: u16) -> usize {
        self.port_to(SwitchId(0), host, 0)
    }
}

impl Topology for OneSwitch {
    type PerSwitch<S> = [S; 1];

    const IS_FABRIC: bool = false;

    fn hosts(&self) -> usize {
        self.ports
    }

    fn ports(&self, _switch: SwitchId) -> usize {
        self.ports
    }

    fn level(&self, _switch: SwitchId) -> u32 {
        1
    }

    #[inline(always)]
    fn switch_of(&self, _host: u16) -> SwitchId {
        SwitchId(0)
    }

    /// There must be ports, at most 65,536.
    fn check(&self) -> Result<(), String> {
        if !(1..=MAX_QUEUES).contains(&self.ports) {
            let found = self.ports;
            return Err(format!(
                "a switch has 1 to {MAX_QUEUES} ports; found {found}"
            ));
        }
        Ok(())
    }

    #[inline(always)]
    fn port_to(&self, _switch: SwitchId, host: u16, _path: u64) -> usize {
        usize::from(host)
    }

    #[inline(always)]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "`check` bounds the hosts, and a port has one"
    )]
    fn neighbour(&self, _switch: SwitchId, port: usize) -> Neighbour {
        debug_assert!(port < self.ports);
        Neighbour::Host(port as u16)
    }

    fn per_switch<S, E>(
        &self,
        mut make: impl FnMut(SwitchId) -> Result<S, E>,
    ) -> Result<[S; 1], E> {
        Ok([make(SwitchId(0))?])
    }
}

/// Leaf switches with hosts, each connected to every spine switch.
///
/// Hosts are numbered leaf by leaf, switches leaves first. A leaf's ports lead to its hosts, then
/// up, spine by spine; a spine's ports lead down, leaf by leaf.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeafSpine {
    /// Leaf switches.
    pub leaves: usize,
    /// Hosts of each leaf.
    pub hosts_per_leaf: usize,
    /// Spine switches.
    pub spines: usize,
    /// Parallel links between a leaf and a spine.
    pub links_per_pair: usize,
}

impl LeafSpine {
    /// Events tell hosts from switches by one bit of a 16-bit number.
    const MAX_HOSTS: usize = 1 << 15;
    /// As for hosts.
    const MAX_SWITCHES: usize = 1 << 15;

    /// Whether hosts, switches and the ports of each can be numbered.
    fn is_countable(&self) -> bool {
        let links = self.links_per_pair;
        let within = |number: Option<usize>, most| number.is_some_and(|number| number <= most);
        let leaf_ports = self.spines.checked_mul(links);
        let leaf_ports = leaf_ports.and_then(|links| links.checked_add(self.hosts_per_leaf));
        within(
            self.leaves.checked_mul(self.hosts_per_leaf),
            Self::MAX_HOSTS,
        ) && within(self.leaves.checked_add(self.spines), Self::MAX_SWITCHES)
            && within(leaf_ports, MAX_QUEUES)
            && within(self.leaves.checked_mul(links), MAX_QUEUES)
    }

    fn is_leaf(&self, switch: SwitchId) -> bool {
        switch.index() < self.leaves
    }
}

impl Topology for LeafSpine {
    type PerSwitch<S> = Vec<S>;

    const IS_FABRIC: bool = true;

    fn hosts(&self) -> usize {
        self.leaves * self.hosts_per_leaf
    }

    fn ports(&self, switch: SwitchId) -> usize {
        match self.is_leaf(switch) {
            true => self.hosts_per_leaf + self.spines * self.links_per_pair,
            false => self.leaves * self.links_per_pair,
        }
    }

    fn level(&self, switch: SwitchId) -> u32 {
        if self.is_leaf(switch) { 1 } else { 2 }
    }

    fn switch_of(&self, host: u16) -> SwitchId {
        SwitchId::of(usize::from(host) / self.hosts_per_leaf)
    }

    /// There must be hosts, at most 32,768, and links between leaves. There are at most 32,768
    /// switches, of at most 65,536 ports each.
    fn check(&self) -> Result<(), String> {
        let connected = self.leaves == 1 || (self.spines > 0 && self.links_per_pair > 0);
        if !self.is_countable() || self.hosts() == 0 || !connected {
            return Err(format!(
                "a leaf-spine network has 1 to {} hosts, at most {} switches of at most \
                 {MAX_QUEUES} ports, and spines where it has several leaves; found {self:?}",
                LeafSpine::MAX_HOSTS,
                LeafSpine::MAX_SWITCHES
            ));
        }
        Ok(())
    }

    fn port_to(&self, switch: SwitchId, host: u16, path: u64) -> usize {
        let leaf = self.switch_of(host);
        if switch == leaf {
            usize::from(host) % self.hosts_per_leaf
        } else if self.is_leaf(switch) {
            self.hosts_per_leaf + choose(path, self.spines * self.links_per_pair)
        } else {
            leaf.index() * self.links_per_pair + choose(path, self.links_per_pair)
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "`check` bounds the number of hosts"
    )]
    fn neighbour(&self, switch: SwitchId, port: usize) -> Neighbour {
        if !self.is_leaf(switch) {
            let id = SwitchId::of(port / self.links_per_pair);
            return Neighbour::Switch { id, up: false };
        }
        match port.checked_sub(self.hosts_per_leaf) {
            None => Neighbour::Host((switch.index() * self.hosts_per_leaf + port) as u16),
            Some(uplink) => Neighbour::Switch {
                id: SwitchId::of(self.leaves + uplink / self.links_per_pair),
                up: true,
            },
        }
    }

    fn per_switch<S, E>(&self, make: impl FnMut(SwitchId) -> Result<S, E>) -> Result<Vec<S>, E> {
        let switches = 0..self.leaves + self.spines;
        switches.map(SwitchId::of).map(make).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From every switch on the way, every path of every pair of hosts leads to the destination,
    /// up at most once and then down.
    #[test]
    fn every_route_of_a_leaf_spine_network_ends_at_its_host() {
        let network = LeafSpine {
            leaves: 3,
            hosts_per_leaf: 4,
            spines: 2,
            links_per_pair: 2,
        };
        for (from, to) in (0..12u16).flat_map(|from| (0..12u16).map(move |to| (from, to))) {
            for path in (0..64).map(|step| step << 58) {
                let (mut at, mut hops) = (network.switch_of(from), 0);
                loop {
                    hops += 1;
                    let port = network.port_to(at, to, path);
                    assert!(port < network.ports(at));
                    match network.neighbour(at, port) {
                        Neighbour::Host(host) => break assert_eq!(host, to),
                        Neighbour::Switch { id, up } => {
                            assert_eq!(up, network.level(id) > network.level(at));
                            at = id;
                        }
                    }
                }
                let same_leaf = from / 4 == to / 4;
                assert_eq!(hops, if same_leaf { 1 } else { 3 });
            }
        }
    }

    #[test]
    fn networks_in_which_packets_go_nowhere_are_refused() {
        let network = |leaves, hosts_per_leaf, spines, links_per_pair| LeafSpine {
            leaves,
            hosts_per_leaf,
            spines,
            links_per_pair,
        };
        for right in [
            network(1, 4, 0, 1),
            network(2, 1, 1, 1),
            network(2, 16_384, 1, 1),
            network(2, 1, 32_766, 1),
            network(2, 1, 1, 32_768),
        ] {
            assert_eq!(right.check(), Ok(()));
        }
        for wrong in [
            network(0, 4, 1, 1),
            network(2, 0, 1, 1),
            network(2, 4, 0, 1),
            network(2, 4, 1, 0),
            network(2, 16_385, 1, 1),
            network(2, 1, 32_767, 1),
            network(2, 1, 1, 32_769),
            network(2, 1, 256, 257),
            // Products that are in range again when they are cut to 64 bits.
            network((1 << 62) + 1, 4, 1, 1),
            network(2, 1, 1 << 32, 1 << 32),
            network(1, 1, usize::MAX, 1),
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn flows_are_spread_evenly_over_uplinks() {
        let mut counts = [0.0; 8];
        for flow in 0..10_000 {
            let path = LeafSpine::path(flow, PacketDirection::Forward);
            counts[choose(path, 8)] += 1.0;
        }
        // Four standard deviations of a binomial count.
        let (mean, deviation) = (1_250.0, (10_000.0f64 * 0.125 * 0.875).sqrt());
        assert!(
            counts
                .iter()
                .all(|count: &f64| (count - mean).abs() < 4.0 * deviation)
        );
    }
}
