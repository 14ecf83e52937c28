//! Topologies: the switches of a network, and the neighbours of their ports.

mod linked;
mod pooled;

use std::borrow::Cow;
use std::fmt::Debug;
use std::hint::select_unpredictable;

use bufgym_util::convert::index;

use super::clock::ClockOffset;
use super::event::Events;
use super::fabric::FabricEvents;
use super::link::{LinkKind, Links};
use super::packet::PacketDirection;
use super::single::EventQueue;
use crate::scenario::{Ecmp, EcmpSalt, Scenario, Tier};
use crate::units::Duration;

pub use super::ids::{Neighbour, SwitchId};
pub use linked::LinkedNetwork;
pub use pooled::PooledLeafSpine;

/// Maximum number of queues, and so of ports, of a switch: packets count queues in 16 bits.
pub(crate) const MAX_QUEUES: usize = 1 << 16;

/// Place where a host is attached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Attachment {
    /// Switch of the host.
    pub switch: SwitchId,
    /// Port of the switch that leads to the host.
    pub port: u16,
}

/// Source and destination of a packet, with the properties that determine its path.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route {
    /// Host that has sent the packet.
    pub src: u16,
    /// Destination host of the packet.
    pub dst: u16,
    /// Flow of the packet, by number in the order of starts.
    pub flow: u32,
    /// Direction of the packet within its flow.
    pub direction: PacketDirection,
    /// Number of packets that used this set of equal paths before, if packets are [sprayed](Topology::sprays).
    pub turn: u32,
    /// The switch and the port that the packet comes from; `None` if it comes from a host.
    pub came: Option<(SwitchId, usize)>,
}

/// Connections between hosts and switches.
///
/// Ports are numbered per switch.
pub trait Topology: Clone + Debug {
    /// One value for every switch, in the order of their numbers.
    type PerSwitch<S>: AsRef<[S]> + AsMut<[S]>;

    /// The pending events of the network.
    #[doc(hidden)]
    type Events: Events;

    /// True if packets can cross several switches. If false, the code for it is compiled out.
    const IS_FABRIC: bool;

    /// True if ports of spines draw on the buffers of leaves.
    const POOLS_SPINES: bool = false;

    /// Returns the number of hosts.
    fn hosts(&self) -> usize;

    /// Returns the number of ports of a switch.
    fn ports(&self, switch: SwitchId) -> usize;

    /// Returns the offset by which the event time is ahead of the clock of the switches, on links of this delay.
    fn clock_offset(propagation: Duration) -> ClockOffset;

    /// Returns the place where a host is attached.
    fn attachment(&self, host: u16) -> Attachment;

    /// Returns the switch to which a host is attached.
    fn switch_of(&self, host: u16) -> SwitchId {
        self.attachment(host).switch
    }

    /// Returns the port of `switch` that leads to the packet's destination. If several do, the choice is
    /// constant for a flow and direction, unless packets are [sprayed](Topology::sprays).
    fn port_to(&self, switch: SwitchId, route: Route) -> usize {
        self.port_towards(switch, self.attachment(route.dst), route)
    }

    /// Like [`port_to`](Topology::port_to), for callers that know where the destination is attached.
    fn port_towards(&self, switch: SwitchId, destination: Attachment, route: Route) -> usize;

    /// Returns true if packets of a flow take turns among equal paths.
    fn sprays(&self) -> bool {
        false
    }

    /// Returns the number of sets of equal paths in the whole network.
    fn path_sets(&self) -> usize {
        0
    }

    /// Returns the set of equal paths from which a packet takes one at a switch, by number below
    /// [`path_sets`](Topology::path_sets); `None` if there is only one path.
    fn path_set(
        &self,
        _switch: SwitchId,
        _destination: Attachment,
        _came: Option<(SwitchId, usize)>,
    ) -> Option<usize> {
        None
    }

    /// Returns the kinds of the links on a packet's path, if those between switches differ.
    #[doc(hidden)]
    fn links_on_path(&self, _route: Route) -> Option<Vec<LinkKind>> {
        None
    }

    /// Checks that packets can be sent in this network.
    ///
    /// # Errors
    /// A description of the problem.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }

    /// Returns the node at the other end of a port's link.
    fn neighbour(&self, switch: SwitchId, port: usize) -> Neighbour;

    /// Returns the next node of a packet for host `dst` that leaves by a port.
    #[inline(always)]
    fn next_hop(&self, switch: SwitchId, port: usize, _dst: impl FnOnce() -> u16) -> Neighbour {
        self.neighbour(switch, port)
    }

    /// Returns true if a port that leads to another switch counts in the throughput of links to spines.
    #[inline(always)]
    fn is_uplink(&self, _switch: SwitchId, _port: usize) -> bool {
        true
    }

    /// Returns the scenario as a switch sees it, like [`Scenario::at_switch`].
    fn scenario_at<'a>(&self, scenario: &'a Scenario, switch: SwitchId) -> Cow<'a, Scenario>;

    /// Returns the name of a switch's kind, and the total rate of its links to switches that are farther
    /// from the hosts, bit/s, if it has such links.
    #[doc(hidden)]
    fn kind(&self, switch: SwitchId, links: &Links) -> (&'static str, Option<f64>);

    /// Returns the kind of a port's link.
    #[doc(hidden)]
    fn line(&self, switch: SwitchId, port: usize) -> LinkKind;

    /// Makes a value for every switch.
    ///
    /// # Errors
    /// The first error of `make`.
    fn per_switch<S, E>(
        &self,
        make: impl FnMut(SwitchId) -> Result<S, E>,
    ) -> Result<Self::PerSwitch<S>, E>;
}

/// Computes the output function of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014), after one step.
fn splitmix64(state: u64) -> u64 {
    let z = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Returns in which of `count` equal parts of the range of 64-bit numbers `path` lies.
fn equal_part(path: u64, count: usize) -> usize {
    index(((u128::from(path) * count as u128) >> 64) as u64)
}

/// A single switch with a host on every port: port i leads to host i.
#[derive(Clone, Copy, Debug)]
pub struct OneSwitch {
    /// Number of ports, and of hosts.
    pub ports: usize,
}

impl OneSwitch {
    /// Returns the port to which a host is attached.
    #[inline(always)]
    pub fn port_of(&self, host: u16) -> usize {
        usize::from(host)
    }
}

impl Topology for OneSwitch {
    type PerSwitch<S> = [S; 1];
    type Events = EventQueue;

    const IS_FABRIC: bool = false;

    fn hosts(&self) -> usize {
        self.ports
    }

    fn ports(&self, _switch: SwitchId) -> usize {
        self.ports
    }

    /// Returns the propagation delay, so that a packet that leaves the switch is delivered in the same event.
    fn clock_offset(propagation: Duration) -> ClockOffset {
        ClockOffset::of(propagation)
    }

    #[inline(always)]
    fn attachment(&self, host: u16) -> Attachment {
        Attachment {
            switch: SwitchId(0),
            port: host,
        }
    }

    /// Checks that the switch has 1 to 65,536 ports.
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
    fn port_towards(&self, _switch: SwitchId, destination: Attachment, _route: Route) -> usize {
        usize::from(destination.port)
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

    fn scenario_at<'a>(&self, scenario: &'a Scenario, _switch: SwitchId) -> Cow<'a, Scenario> {
        Cow::Borrowed(scenario)
    }

    fn kind(&self, _switch: SwitchId, _links: &Links) -> (&'static str, Option<f64>) {
        (Tier::Leaf.name(), None)
    }

    #[inline(always)]
    fn line(&self, _switch: SwitchId, _port: usize) -> LinkKind {
        LinkKind::HOST
    }

    fn per_switch<S, E>(
        &self,
        mut make: impl FnMut(SwitchId) -> Result<S, E>,
    ) -> Result<[S; 1], E> {
        Ok([make(SwitchId(0))?])
    }
}

/// Choice of a switch among equal paths.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Routing {
    /// Rule of the choice.
    pub ecmp: Ecmp,
    /// Salt that makes the hashes of switches differ.
    pub salt: EcmpSalt,
    /// Seed of the hash.
    pub seed: u64,
}

impl Default for Routing {
    /// Returns a choice by a hash of the flow that differs between switches, with seed 0.
    fn default() -> Routing {
        Routing {
            ecmp: Ecmp::Hash,
            salt: EcmpSalt::Switch,
            seed: 0,
        }
    }
}

impl Routing {
    /// Returns the choice of a scenario; `seed` is that of its trace, so that paths are the same for every policy.
    pub(crate) fn of(scenario: &Scenario, seed: u64) -> Routing {
        Routing {
            ecmp: scenario.network.ecmp,
            salt: scenario.network.ecmp_salt,
            seed,
        }
    }

    /// Returns true if packets of a flow take turns among equal paths.
    fn sprays(&self) -> bool {
        self.ecmp == Ecmp::Spray
    }

    /// Returns one of `count` equal choices at a switch.
    fn choose(&self, switch: SwitchId, route: Route, count: usize) -> usize {
        match self.ecmp {
            Ecmp::Hash => equal_part(self.hash(switch, route), count),
            Ecmp::DstMod => usize::from(route.dst) % count,
            Ecmp::FlowMod => route.flow as usize % count,
            Ecmp::Spray => route.turn as usize % count,
        }
    }

    fn hash(&self, switch: SwitchId, route: Route) -> u64 {
        let ends = u64::from(route.src) << 16 | u64::from(route.dst);
        let flow = u64::from(route.flow) << 1 | route.direction as u64;
        let salt = match self.salt {
            EcmpSalt::None => 0,
            EcmpSalt::Switch => 1 + u64::from(switch.0),
        };
        splitmix64(self.seed ^ splitmix64(splitmix64(flow) ^ ends ^ salt << 32))
    }
}

/// Leaf switches with hosts, each connected to every spine switch.
///
/// Hosts are numbered leaf by leaf, switches leaves first. A leaf's ports lead to its hosts, then
/// up, spine by spine; a spine's ports lead down, leaf by leaf.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct LeafSpine {
    /// Number of leaf switches.
    pub leaves: usize,
    /// Number of hosts of each leaf.
    pub hosts_per_leaf: usize,
    /// Number of spine switches.
    pub spines: usize,
    /// Number of parallel links between a leaf and a spine.
    pub links_per_pair: usize,
    /// Choice among equal paths.
    pub routing: Routing,
}

impl LeafSpine {
    /// Returns the network of a scenario; `seed` is that of its trace, so that paths are the same for every
    /// policy.
    pub fn of(scenario: &Scenario, seed: u64) -> LeafSpine {
        LeafSpine {
            leaves: scenario.network.leaves as usize,
            hosts_per_leaf: scenario.network.hosts_per_leaf as usize,
            spines: scenario.network.spines as usize,
            links_per_pair: scenario.network.links_per_pair as usize,
            routing: Routing::of(scenario, seed),
        }
    }

    /// Maximum number of hosts: events tell hosts from switches by one bit of a 16-bit number.
    const MAX_HOSTS: usize = 1 << 15;
    /// Maximum number of switches, for the same reason.
    const MAX_SWITCHES: usize = 1 << 15;

    /// Returns true if hosts, switches and the ports of each can be numbered.
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

    /// Returns whether a switch is a leaf or a spine.
    pub fn tier(&self, switch: SwitchId) -> Tier {
        match self.is_leaf(switch) {
            true => Tier::Leaf,
            false => Tier::Spine,
        }
    }
}

impl Topology for LeafSpine {
    type PerSwitch<S> = Vec<S>;
    type Events = FabricEvents;

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

    fn clock_offset(_propagation: Duration) -> ClockOffset {
        ClockOffset::default()
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "`check` bounds the number of ports"
    )]
    fn attachment(&self, host: u16) -> Attachment {
        let host = usize::from(host);
        Attachment {
            switch: SwitchId::of(host / self.hosts_per_leaf),
            port: (host % self.hosts_per_leaf) as u16,
        }
    }

    /// Checks that there are 1 to 32,768 hosts, links between leaves, and at most 32,768 switches with at most
    /// 65,536 ports each.
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

    /// Returns the port without a branch if there is no choice: the processor cannot predict whether a
    /// switch is a leaf or a spine.
    #[inline]
    fn port_towards(&self, switch: SwitchId, destination: Attachment, route: Route) -> usize {
        let Attachment { switch: leaf, port } = destination;
        let is_leaf = self.is_leaf(switch);
        let uplinks = self.spines * self.links_per_pair;
        let of_spine = leaf.index() * self.links_per_pair;
        let count = select_unpredictable(is_leaf, uplinks, self.links_per_pair);
        let first = select_unpredictable(is_leaf, self.hosts_per_leaf, of_spine);
        let elsewhere = usize::from(switch != leaf);
        let choices = elsewhere * count;
        match choices {
            0 | 1 => elsewhere * first + (1 - elsewhere) * usize::from(port),
            _ => first + self.routing.choose(switch, route, choices),
        }
    }

    fn sprays(&self) -> bool {
        self.routing.sprays()
    }

    /// Counts a set for the uplinks of each leaf, and one for the links of each spine to each leaf.
    fn path_sets(&self) -> usize {
        self.leaves * (1 + self.spines)
    }

    fn path_set(
        &self,
        switch: SwitchId,
        destination: Attachment,
        _came: Option<(SwitchId, usize)>,
    ) -> Option<usize> {
        let leaf = destination.switch;
        match self.is_leaf(switch) {
            true => (switch != leaf).then_some(switch.index()),
            // Spines are numbered from `leaves`, so their sets follow those of the leaves.
            false => Some((switch.index() - self.leaves + 1) * self.leaves + leaf.index()),
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "`check` bounds the number of hosts"
    )]
    fn neighbour(&self, switch: SwitchId, port: usize) -> Neighbour {
        if !self.is_leaf(switch) {
            return Neighbour::Switch(SwitchId::of(port / self.links_per_pair));
        }
        match port.checked_sub(self.hosts_per_leaf) {
            None => Neighbour::Host((switch.index() * self.hosts_per_leaf + port) as u16),
            Some(uplink) => {
                Neighbour::Switch(SwitchId::of(self.leaves + uplink / self.links_per_pair))
            }
        }
    }

    fn scenario_at<'a>(&self, scenario: &'a Scenario, switch: SwitchId) -> Cow<'a, Scenario> {
        Cow::Owned(scenario.at_switch(self.tier(switch)))
    }

    fn kind(&self, switch: SwitchId, links: &Links) -> (&'static str, Option<f64>) {
        let uplinks = self.spines * self.links_per_pair;
        let tier = self.tier(switch);
        let has_uplinks = tier == Tier::Leaf && uplinks > 0;
        let rate = has_uplinks.then(|| uplinks as f64 * links.rate(LinkKind::FABRIC).0 as f64);
        (tier.name(), rate)
    }

    #[inline]
    fn line(&self, switch: SwitchId, port: usize) -> LinkKind {
        match self.is_leaf(switch) && port < self.hosts_per_leaf {
            true => LinkKind::HOST,
            false => LinkKind::FABRIC,
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

    fn network(ecmp: Ecmp) -> LeafSpine {
        LeafSpine {
            leaves: 3,
            hosts_per_leaf: 4,
            spines: 2,
            links_per_pair: 2,
            routing: Routing {
                ecmp,
                ..Routing::default()
            },
        }
    }

    fn route(src: u16, dst: u16, flow: u32) -> Route {
        Route {
            src,
            dst,
            flow,
            direction: PacketDirection::Forward,
            turn: flow,
            came: None,
        }
    }

    /// Returns the switches and ports of a packet's path, and the host where it ends.
    fn way(network: &LeafSpine, route: Route) -> (Vec<(u16, usize)>, u16) {
        let (mut at, mut hops) = (network.switch_of(route.src), Vec::new());
        loop {
            let port = network.port_to(at, route);
            assert!(port < network.ports(at));
            hops.push((at.0, port));
            match network.neighbour(at, port) {
                Neighbour::Host(host) => {
                    assert_eq!(network.line(at, port), LinkKind::HOST);
                    return (hops, host);
                }
                Neighbour::Switch(id) => {
                    assert_eq!(network.line(at, port), LinkKind::FABRIC);
                    at = id;
                }
            }
        }
    }

    /// Every flow of every pair of hosts reaches its destination, over at most one spine.
    #[test]
    fn every_route_of_a_leaf_spine_network_ends_at_its_host() {
        for &ecmp in Ecmp::ALL {
            let network = network(ecmp);
            for (from, to) in (0..12u16).flat_map(|from| (0..12u16).map(move |to| (from, to))) {
                for flow in 0..64 {
                    let (hops, host) = way(&network, route(from, to, flow));
                    assert_eq!(host, to);
                    let same_leaf = from / 4 == to / 4;
                    assert_eq!(hops.len(), if same_leaf { 1 } else { 3 });
                }
            }
        }
    }

    /// Leaves have ports 0-3 to hosts and 4-7 up; spines are switches 3 and 4, with ports 0-1 to leaf
    /// 0, and so on.
    #[test]
    fn static_routes_follow_from_the_destination() {
        let network = network(Ecmp::DstMod);
        for (src, dst, expected) in [
            (0, 5, [(0, 4 + 1), (3, 2 + 1), (1, 1)]),
            (5, 0, [(1, 4), (3, 0), (0, 0)]),
            (1, 10, [(0, 4 + 2), (4, 4), (2, 2)]),
            (8, 7, [(2, 4 + 3), (4, 2 + 1), (1, 3)]),
        ] {
            assert_eq!(way(&network, route(src, dst, 9)).0, expected);
        }
        assert_eq!(way(&network, route(4, 6, 9)).0, [(1, 2)]);
    }

    /// Without salt, the choice among the links of a spine follows from that among the uplinks. With salt, the
    /// default, it does not.
    #[test]
    fn salt_and_seed_change_the_paths() {
        let plain = LeafSpine {
            routing: Routing {
                salt: EcmpSalt::None,
                ..Routing::default()
            },
            ..network(Ecmp::Hash)
        };
        let seeded = LeafSpine {
            routing: Routing {
                seed: 1,
                ..plain.routing
            },
            ..plain
        };
        let salted = network(Ecmp::Hash);
        let ways = |network: &LeafSpine| -> Vec<_> {
            let flows = 0..1_000;
            flows
                .map(|flow| way(network, route(0, 9, flow)).0)
                .collect()
        };
        assert_eq!(ways(&plain), ways(&plain));
        assert_ne!(ways(&plain), ways(&seeded));
        // The upper bit of the same hash chooses the spine at the leaf, and the link at the spine.
        let follows = |ways: &[Vec<(u16, usize)>]| {
            let same = |way: &&Vec<(u16, usize)>| usize::from(way[1].0 - 3) == way[1].1 % 2;
            ways.iter().filter(same).count()
        };
        assert_eq!(follows(&ways(&plain)), 1_000);
        let half = follows(&ways(&salted));
        assert!((400..600).contains(&half), "{half}");
    }

    #[test]
    fn networks_in_which_packets_go_nowhere_are_refused() {
        let network = |leaves, hosts_per_leaf, spines, links_per_pair| LeafSpine {
            leaves,
            hosts_per_leaf,
            spines,
            links_per_pair,
            routing: Routing::default(),
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
            // Products that are in range again when they wrap at 64 bits.
            network((1 << 62) + 1, 4, 1, 1),
            network(2, 1, 1 << 32, 1 << 32),
            network(1, 1, usize::MAX, 1),
        ] {
            assert!(wrong.check().is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn flows_are_spread_evenly_over_uplinks() {
        let network = LeafSpine {
            leaves: 2,
            hosts_per_leaf: 4,
            spines: 8,
            links_per_pair: 1,
            routing: Routing::default(),
        };
        for direction in [PacketDirection::Forward, PacketDirection::Reverse] {
            let mut counts = [0.0; 8];
            for flow in 0..10_000 {
                let route = Route {
                    direction,
                    ..route(0, 5, flow)
                };
                counts[network.port_to(SwitchId(0), route) - 4] += 1.0;
            }
            // Four standard deviations of a binomial count.
            let (mean, deviation) = (1_250.0, (10_000.0f64 * 0.125 * 0.875).sqrt());
            assert!(
                counts
                    .iter()
                    .all(|count: &f64| (count - mean).abs() < 4.0 * deviation),
                "{counts:?}"
            );
        }
    }
}
