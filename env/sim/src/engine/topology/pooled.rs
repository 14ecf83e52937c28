//! A leaf-spine network with the wiring of ABM's published ns-3 code, in which a port of a spine draws on
//! the buffer of the leaf that it leads to.

use std::borrow::Cow;

use super::{Attachment, LeafSpine, Neighbour, Route, SwitchId, Topology};
use crate::engine::clock::ClockOffset;
use crate::engine::fabric::FabricEvents;
use crate::engine::link::{LinkKind, Links};
use crate::scenario::{Scenario, Tier};
use crate::units::Duration;

/// Like [`LeafSpine`], but a leaf shares its buffer with all spine ports that lead to it. Such a pool is a
/// switch here, and spines have no buffers.
///
/// The first ports of a pool lead to the hosts of its leaf. The next ones lead up, spine by spine. The last
/// ones are those of the spines, spine by spine. A packet to another leaf leaves the pool of its own leaf by
/// a port that leads up. Then it reaches the pool of the other leaf and leaves it twice: by a port of a
/// spine, and by the port of its host.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PooledLeafSpine {
    network: LeafSpine,
}

impl PooledLeafSpine {
    /// Returns the network of a scenario; `seed` is that of its trace.
    pub fn of(scenario: &Scenario, seed: u64) -> PooledLeafSpine {
        PooledLeafSpine {
            network: LeafSpine::of(scenario, seed),
        }
    }

    fn uplinks(&self) -> usize {
        self.network.spines * self.network.links_per_pair
    }

    /// Returns the spine that holds a packet that has left a pool by a port that leads up.
    fn spine_above(&self, port: usize) -> usize {
        (port - self.network.hosts_per_leaf) / self.network.links_per_pair
    }

    /// Returns the real switch at which a packet in a pool is: the leaf of the pool, or the spine if the packet
    /// comes from another pool.
    fn position(&self, pool: SwitchId, came: Option<(SwitchId, usize)>) -> SwitchId {
        match came {
            Some((from, port)) if from != pool => {
                SwitchId::of(self.network.leaves + self.spine_above(port))
            }
            _ => pool,
        }
    }
}

impl Topology for PooledLeafSpine {
    type PerSwitch<S> = Vec<S>;
    type Events = FabricEvents;

    const IS_FABRIC: bool = true;
    const POOLS_SPINES: bool = true;

    fn hosts(&self) -> usize {
        self.network.hosts()
    }

    fn ports(&self, _switch: SwitchId) -> usize {
        self.network.hosts_per_leaf + 2 * self.uplinks()
    }

    fn clock_offset(propagation: Duration) -> ClockOffset {
        LeafSpine::clock_offset(propagation)
    }

    fn attachment(&self, host: u16) -> Attachment {
        self.network.attachment(host)
    }

    fn check(&self) -> Result<(), String> {
        self.network.check()
    }

    fn port_towards(&self, switch: SwitchId, destination: Attachment, route: Route) -> usize {
        let LeafSpine {
            hosts_per_leaf,
            links_per_pair,
            leaves,
            ..
        } = self.network;
        let at = self.position(switch, route.came);
        if at == switch {
            return self.network.port_towards(switch, destination, route);
        }
        let spine = at.index() - leaves;
        let link = self.network.routing.choose(at, route, links_per_pair);
        hosts_per_leaf + self.uplinks() + spine * links_per_pair + link
    }

    fn sprays(&self) -> bool {
        self.network.sprays()
    }

    fn path_sets(&self) -> usize {
        self.network.path_sets()
    }

    fn path_set(
        &self,
        switch: SwitchId,
        destination: Attachment,
        came: Option<(SwitchId, usize)>,
    ) -> Option<usize> {
        let at = self.position(switch, came);
        self.network.path_set(at, destination, came)
    }

    /// Returns the pool itself as the neighbour of ports that lead up: only the packet's destination tells the
    /// real one, see [`next_hop`](Topology::next_hop).
    fn neighbour(&self, switch: SwitchId, port: usize) -> Neighbour {
        match port < self.network.hosts_per_leaf {
            true => self.network.neighbour(switch, port),
            false => Neighbour::Switch(switch),
        }
    }

    fn next_hop(&self, switch: SwitchId, port: usize, dst: impl FnOnce() -> u16) -> Neighbour {
        match self.is_uplink(switch, port) {
            true => Neighbour::Switch(self.switch_of(dst())),
            false => self.neighbour(switch, port),
        }
    }

    fn scenario_at<'a>(&self, scenario: &'a Scenario, switch: SwitchId) -> Cow<'a, Scenario> {
        Cow::Owned(scenario.at_switch(Tier::Leaf).with(|scenario| {
            scenario.network.ports = u32::try_from(self.ports(switch)).unwrap_or(u32::MAX);
        }))
    }

    fn kind(&self, switch: SwitchId, links: &Links) -> (&'static str, Option<f64>) {
        self.network.kind(switch, links)
    }

    fn line(&self, switch: SwitchId, port: usize) -> LinkKind {
        self.network.line(switch, port)
    }

    fn is_uplink(&self, _switch: SwitchId, port: usize) -> bool {
        let hosts = self.network.hosts_per_leaf;
        (hosts..hosts + self.uplinks()).contains(&port)
    }

    fn per_switch<S, E>(&self, make: impl FnMut(SwitchId) -> Result<S, E>) -> Result<Vec<S>, E> {
        let pools = 0..self.network.leaves;
        pools.map(SwitchId::of).map(make).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::packet::PacketDirection;
    use crate::scenario::Ecmp;

    /// Returns the pools and ports of a packet's path, the sets of equal paths on it, and the host where it ends.
    fn way<T: Topology>(
        network: &T,
        mut route: Route,
    ) -> (Vec<(u16, usize)>, Vec<Option<usize>>, u16) {
        let (mut at, mut hops) = (network.switch_of(route.src), Vec::new());
        let mut sets = Vec::new();
        loop {
            let port = network.port_to(at, route);
            assert!(port < network.ports(at));
            hops.push((at.0, port));
            sets.push(network.path_set(at, network.attachment(route.dst), route.came));
            match network.next_hop(at, port, || route.dst) {
                Neighbour::Host(host) => return (hops, sets, host),
                Neighbour::Switch(next) => {
                    route.came = Some((at, port));
                    at = next;
                }
            }
        }
    }

    /// Three leaves of four hosts, two spines with two links each. Every packet takes the links that it
    /// would take if spines had buffers. The spine port towards leaf `l`, link `k`, is number `2 l + k` of
    /// the spine; in the pool of `l` it follows four hosts and four uplinks.
    #[test]
    fn packets_take_the_same_links_as_with_pools_of_spines() {
        let mut scenario = Scenario::preset("leafspine-4x4").unwrap();
        for change in ["leaves=3", "links_per_pair=2"] {
            scenario.set(change).unwrap();
        }
        for &ecmp in Ecmp::ALL {
            scenario.network.ecmp = ecmp;
            let (own, pooled) = (
                LeafSpine::of(&scenario, 5),
                PooledLeafSpine::of(&scenario, 5),
            );
            for (src, dst) in (0..12).flat_map(|src| (0..12).map(move |dst| (src, dst))) {
                for flow in 0..16 {
                    let route = Route {
                        src,
                        dst,
                        flow,
                        direction: PacketDirection::Forward,
                        turn: flow,
                        came: None,
                    };
                    let (hops, sets, host) = way(&own, route);
                    let (pools, pooled_sets, pooled_host) = way(&pooled, route);
                    assert_eq!((host, pooled_host), (dst, dst));
                    assert_eq!(sets, pooled_sets);
                    assert!(sets.iter().flatten().all(|&set| set < own.path_sets()));
                    assert_eq!((hops[0], hops.len()), (pools[0], pools.len()));
                    let leaf = dst / 4;
                    if let [_, (spine, down), last] = hops[..] {
                        let link = down - 2 * usize::from(leaf);
                        let port = 8 + 2 * usize::from(spine - 3) + link;
                        assert_eq!(pools[1..], [(leaf, port), last]);
                    }
                }
            }
        }
    }

    #[test]
    fn a_pool_has_the_bytes_of_its_leaf_and_the_ports_of_both() {
        let scenario = Scenario::preset("abm-artefact").unwrap();
        let network = PooledLeafSpine::of(&scenario, 0);
        let pools = network.per_switch(Ok::<_, ()>).unwrap();
        assert_eq!(pools.len(), 2);
        let at = network.scenario_at(&scenario, pools[0]);
        assert_eq!((at.network.ports, at.network.buffer_bytes), (48, 3_932_160));
        assert!((32..40).all(|port| network.is_uplink(pools[1], port)));
        assert!(!network.is_uplink(pools[1], 31) && !network.is_uplink(pools[1], 40));
        assert_eq!(network.line(pools[1], 40), LinkKind::FABRIC);
    }
}
