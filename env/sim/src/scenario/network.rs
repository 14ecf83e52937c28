//! Switches, links and buffers.

use bufgym_util::convert::floor_u64;

use super::named::named;
use super::settings::settings;
use super::validate::{Checks, MAX_RECORDS, MAX_US};
use super::{FlowPriority, NetworkLinks, Scenario, ScenarioError, SlowdownBase, TopologyKind};
use crate::units::{Duration, Rate};

settings! {
    /// Switches, links and buffers.
    pub struct NetworkSettings {
        /// A `leafspine` with one leaf is a single switch. A file has a line `a,b,rate_bps,delay_ns` for each link;
        /// the scenario holds the links, not the file.
        topology: TopologyKind = TopologyKind::Single, "which switches there are: single | leafspine | FILE with a line a,b,rate_bps,delay_ns for each link";
        /// With another `topology` than `single`, the number of its hosts, which follows from other settings.
        ports: u32 = 16, "switch ports, one host on each; leafspine: hosts";
        leaves: u32 = 4, "leafspine: leaf switches";
        hosts_per_leaf: u32 = 4, "leafspine: hosts of each leaf";
        spines: u32 = 2, "leafspine: spine switches";
        links_per_pair: u32 = 1, "leafspine: parallel links between a leaf and a spine";
        rate_bps: u64 = 1_000_000_000, "rate of every link, bit/s";
        fabric_rate_bps: u64 = 0, "leafspine: rate of links between switches, bit/s; 0: rate_bps";
        /// Each switch has its own buffer. If `buffer_bytes_per_port_gbps` is above 0, this is the size
        /// of a leaf's buffer, which follows from that setting.
        buffer_bytes: u64 = 1_000_000, "buffer shared by all ports of a switch, bytes";
        /// In units of 1,024 bytes, as data sheets of switches give it.
        buffer_bytes_per_port_gbps: f64 = 0.0, "leafspine: KiB of buffer per port and Gbit/s; 0: buffer_bytes";
        spine_buffer: SpineBuffer = SpineBuffer::Own, "leafspine: per-port buffer of a spine: own | leaf";
        /// Reproduces an error in the wiring of published code; only for comparison with it. A spine
        /// then has no buffer and no policy of its own.
        spine_pool: SpinePool = SpinePool::Own, "leafspine: buffer that ports of spines draw on: own | with_leaf";
        ecmp: Ecmp = Ecmp::Hash, "leafspine: choice of path: hash | dst_mod | flow_mod | spray";
        ecmp_salt: EcmpSalt = EcmpSalt::Switch, "leafspine: what makes hashes differ: switch | none";
        propagation_ns: u64 = 10_000, "one-way propagation delay of a link, ns";
        /// Transports with a rate and some policies read it.
        base_rtt_ns: u64 = 0, "round-trip time through the empty network, ns; 0: from the topology";
    }
}

named! {
    /// Size of a spine switch's buffer, if `buffer_bytes_per_port_gbps` is set.
    SpineBuffer {
        /// In proportion to the spine's own ports.
        Own = "own",
        /// As large as the buffer of a leaf switch.
        Leaf = "leaf",
    }
}

named! {
    /// Buffer that the ports of a spine switch draw on.
    SpinePool {
        /// The buffer of the spine.
        Own = "own",
        /// The buffer of the leaf that a port leads to, as in the published code of ABM (SIGCOMM 2022).
        WithLeaf = "with_leaf",
    }
}

named! {
    /// Choice of the path for a packet among several equal ones.
    Ecmp {
        /// A hash of hosts, flow and direction (RFC 2992).
        Hash = "hash",
        /// The number of the destination, modulo the number of links; like ns-3's static routes.
        DstMod = "dst_mod",
        /// The number of the flow in the order of starts, modulo the number of links.
        FlowMod = "flow_mod",
        /// Packets take the links in turn, so that those of a flow overtake each other.
        Spray = "spray",
    }
}

named! {
    /// Salt that makes the hash of flows differ from switch to switch.
    EcmpSalt {
        /// The number of the switch, so that choices at different switches are independent.
        Switch = "switch",
        /// No salt: all switches reduce the same hash. If a leaf has several links to a spine, the
        /// choice of the spine then determines which of them are used on the way down, and the others
        /// stay idle.
        None = "none",
    }
}

/// Bytes of a KiB, the unit of buffers per port and Gbit/s.
const KIB: f64 = 1_024.0;

/// A kind of switch of a leaf-spine network.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Tier {
    /// Switch with hosts.
    Leaf,
    /// Switch that connects leaves.
    Spine,
}

impl Tier {
    /// The name used in files.
    pub fn name(self) -> &'static str {
        match self {
            Tier::Leaf => "leaf",
            Tier::Spine => "spine",
        }
    }
}

impl Scenario {
    /// Returns true if there are several switches.
    pub fn is_fabric(&self) -> bool {
        self.is_leaf_spine() || self.links().is_some()
    }

    /// Returns true if there are several leaves.
    pub(crate) fn is_leaf_spine(&self) -> bool {
        self.network.topology == TopologyKind::LeafSpine && self.network.leaves > 1
    }

    /// Returns the links of a network that is given by them.
    pub fn links(&self) -> Option<&NetworkLinks> {
        match &self.network.topology {
            TopologyKind::Links(network) => Some(network),
            TopologyKind::Single | TopologyKind::LeafSpine => None,
        }
    }

    /// Refuses a network of several switches, for callers that simulate one.
    ///
    /// # Errors
    /// If there are several switches, with the remedy.
    pub fn require_single(&self) -> Result<(), ScenarioError> {
        if !self.is_fabric() {
            return Ok(());
        }
        Err(ScenarioError::Invalid {
            scenario: self.name.clone(),
            field: "topology",
            value: self.network.topology.name().to_owned(),
            problem: "this needs one switch; must be single (networks of several switches run in \
                      `bufgym sim`, `eval`, `train` and `tune`)"
                .to_owned(),
        })
    }

    /// Refuses networks for which no learned policy can decide: ports of spines that draw on the
    /// buffers of leaves, since decisions are made switch by switch; and networks given by their links.
    ///
    /// # Errors
    /// For such networks, with the remedy.
    pub fn require_decidable(&self) -> Result<(), ScenarioError> {
        if self.links().is_some() {
            return Err(ScenarioError::Invalid {
                scenario: self.name.clone(),
                field: "topology",
                value: self.network.topology.name().to_owned(),
                problem:
                    "learned policies do not run in networks given by their links yet; must be \
                          single or leafspine"
                        .to_owned(),
            });
        }
        if !self.pools_spines() {
            return Ok(());
        }
        Err(ScenarioError::Invalid {
            scenario: self.name.clone(),
            field: "spine_pool",
            value: self.network.spine_pool.to_string(),
            problem: "decisions are about the ports of one switch; must be own".to_owned(),
        })
    }

    /// Returns the rate of the links between switches.
    pub fn fabric_rate(&self) -> Rate {
        match self.network.fabric_rate_bps {
            0 => self.rate(),
            bps => Rate(bps),
        }
    }

    /// Returns the number of links from a leaf to spines.
    pub fn uplinks(&self) -> u64 {
        u64::from(self.network.spines) * u64::from(self.network.links_per_pair)
    }

    /// Returns the number of ports of every switch, leaves first, then spines.
    pub fn ports_by_switch(&self) -> Vec<usize> {
        if let Some(network) = self.links() {
            return network.ports_by_switch();
        }
        if !self.is_fabric() {
            return vec![self.port_count()];
        }
        let tier = |tier, switches: u32| {
            let ports = usize::try_from(self.switch_ports(tier)).unwrap_or(usize::MAX);
            std::iter::repeat_n(ports, switches as usize)
        };
        let leaves = tier(Tier::Leaf, self.network.leaves);
        leaves
            .chain(tier(Tier::Spine, self.network.spines))
            .collect()
    }

    /// Returns the oversubscription: the rate of a leaf's hosts relative to the rate of its uplinks.
    pub fn oversubscription(&self) -> f64 {
        let hosts = f64::from(self.network.hosts_per_leaf) * self.network.rate_bps as f64;
        hosts / (self.uplinks() as f64 * self.fabric_rate().0 as f64)
    }

    /// Returns the number of leaves with hosts; a single switch counts as one.
    pub(crate) fn racks(&self) -> u32 {
        match self.network.topology {
            TopologyKind::Single | TopologyKind::Links(_) => 1,
            TopologyKind::LeafSpine => self.network.leaves,
        }
    }

    /// Returns the scenario as a switch of the network sees it: `ports`, `rate_bps` and `buffer_bytes`
    /// are its own. The rate is that of its fastest port. Policies, queue management and marks within
    /// the switch are built from this.
    pub fn at_switch(&self, tier: Tier) -> Scenario {
        let rate = match tier {
            Tier::Leaf if self.network.spines > 0 => {
                self.network.rate_bps.max(self.fabric_rate().0)
            }
            Tier::Leaf => self.network.rate_bps,
            Tier::Spine => self.fabric_rate().0,
        };
        self.clone().with(|scenario| {
            scenario.network.ports = u32::try_from(self.switch_ports(tier)).unwrap_or(u32::MAX);
            scenario.network.rate_bps = rate;
            scenario.network.buffer_bytes = self.switch_buffer(tier);
        })
    }

    /// Returns the scenario as a switch with ports of these rates sees it, like [`at_switch`](Scenario::at_switch).
    pub(crate) fn with_ports(&self, rates: &[Rate]) -> Scenario {
        let buffer_bytes = match self.network.buffer_bytes_per_port_gbps > 0.0 {
            true => self.buffer_of(rates.iter().map(|rate| rate.0 as f64 * 1e-9).sum()),
            false => self.network.buffer_bytes,
        };
        self.clone().with(|scenario| {
            scenario.network.ports = u32::try_from(rates.len()).unwrap_or(u32::MAX);
            scenario.network.rate_bps = rates
                .iter()
                .map(|rate| rate.0)
                .max()
                .unwrap_or(self.network.rate_bps);
            scenario.network.buffer_bytes = buffer_bytes;
        })
    }

    /// Returns the buffer of a switch whose ports have this rate together, Gbit/s.
    fn buffer_of(&self, gbps: f64) -> u64 {
        // Keeps products whole that are whole in decimals.
        floor_u64(self.network.buffer_bytes_per_port_gbps * KIB * gbps + 1e-6)
    }

    /// Returns the number of ports of a switch.
    fn switch_ports(&self, tier: Tier) -> u64 {
        match tier {
            Tier::Leaf => u64::from(self.network.hosts_per_leaf) + self.uplinks(),
            Tier::Spine => u64::from(self.network.leaves) * u64::from(self.network.links_per_pair),
        }
    }

    /// Returns the bytes of a switch's buffer: `floor(x · 1024 · Σ Gbit/s)` over its ports, or
    /// `buffer_bytes`.
    fn switch_buffer(&self, tier: Tier) -> u64 {
        if self.network.buffer_bytes_per_port_gbps <= 0.0 {
            return self.network.buffer_bytes;
        }
        let tier = match self.network.spine_buffer {
            SpineBuffer::Own => tier,
            SpineBuffer::Leaf => Tier::Leaf,
        };
        let fabric = self.fabric_rate().0 as f64 * 1e-9;
        let gbps = match tier {
            Tier::Leaf => {
                let hosts =
                    f64::from(self.network.hosts_per_leaf) * self.network.rate_bps as f64 * 1e-9;
                hosts + self.uplinks() as f64 * fabric
            }
            Tier::Spine => self.switch_ports(Tier::Spine) as f64 * fabric,
        };
        self.buffer_of(gbps)
    }

    /// Returns true if ports of spines draw on the buffers of leaves.
    pub fn pools_spines(&self) -> bool {
        self.is_leaf_spine() && self.network.spine_pool == SpinePool::WithLeaf
    }

    /// Returns the bytes of a leaf's buffer; in a network given by its links, of the switch of host 0.
    pub(super) fn leaf_buffer(&self) -> u64 {
        match self.links() {
            Some(network) if self.network.buffer_bytes_per_port_gbps > 0.0 => {
                self.buffer_of(network.first_switch_gbps())
            }
            Some(_) => self.network.buffer_bytes,
            None => self.switch_buffer(Tier::Leaf),
        }
    }

    /// The number of ports as an index bound.
    pub fn port_count(&self) -> usize {
        self.network.ports as usize
    }

    /// Rate of every link.
    pub fn rate(&self) -> Rate {
        Rate(self.network.rate_bps)
    }

    /// One-way propagation delay of a link.
    pub fn propagation(&self) -> Duration {
        Duration::from_ns(self.network.propagation_ns)
    }

    /// Returns the round trip of a full packet and its acknowledgement through an empty switch: four
    /// times the propagation delay and two transmissions of each. In a network of several switches it
    /// is eight times the propagation delay, the longest path (ABM, SIGCOMM 2022, §4.1).
    ///
    /// `base_rtt_ns`, if set, overrides this.
    pub fn base_rtt(&self) -> Duration {
        if self.network.base_rtt_ns > 0 {
            return Duration::from_ns(self.network.base_rtt_ns);
        }
        self.rtt_of_topology()
    }

    pub(crate) fn rtt_of_topology(&self) -> Duration {
        if let TopologyKind::Links(network) = &self.network.topology {
            return network.longest_round_trip();
        }
        if self.is_fabric() {
            return self.propagation() * 8;
        }
        let on_line = |bytes: u64| {
            let bytes = bytes + u64::from(self.packets.overhead_bytes);
            self.rate().transmission_time(bytes)
        };
        let ack = on_line(u64::from(self.packets.ack_bytes) + u64::from(self.timestamp_bytes()));
        self.propagation() * 4 + on_line(self.full_packet_bytes()) * 2 + ack * 2
    }

    /// Bytes that the line of a host carries in a base round trip: the bandwidth-delay product.
    pub(crate) fn bdp_bytes(&self) -> u32 {
        let bits = u128::from(self.network.rate_bps) * u128::from(self.base_rtt().0);
        u32::try_from(bits / 8_000_000_000_000).unwrap_or(u32::MAX)
    }

    pub(super) fn validate_network(&self, check: &Checks<'_>) -> Result<(), ScenarioError> {
        self.validate_fabric(check)?;
        let network = &self.network;
        check.within("ports", network.ports.into(), 2, 4_096)?;
        check.within("rate_bps", network.rate_bps, 1_000_000, 10_000_000_000_000)?;
        check.within("propagation_ns", network.propagation_ns, 0, MAX_US * 1_000)?;
        check.within("base_rtt_ns", network.base_rtt_ns, 0, MAX_US * 1_000)
    }

    fn validate_fabric(&self, check: &Checks<'_>) -> Result<(), ScenarioError> {
        for (field, number) in [
            ("leaves", self.network.leaves),
            ("hosts_per_leaf", self.network.hosts_per_leaf),
            ("links_per_pair", self.network.links_per_pair),
        ] {
            check.within(field, u64::from(number), 1, 4_096)?;
        }
        check.within("spines", u64::from(self.network.spines), 0, 4_096)?;
        if self.network.fabric_rate_bps != 0 {
            check.within(
                "fabric_rate_bps",
                self.network.fabric_rate_bps,
                1_000_000,
                10_000_000_000_000,
            )?;
        }
        let per_gbps = self.network.buffer_bytes_per_port_gbps;
        // In this form the condition is false for NaN too.
        if !(0.0..=1e6).contains(&per_gbps) {
            let problem = "must be from 0 to 1000000";
            return check.invalid("buffer_bytes_per_port_gbps", per_gbps, problem);
        }
        if self.network.topology == TopologyKind::Single {
            if per_gbps > 0.0 {
                let problem = "needs topology leafspine; must be 0, and buffer_bytes the size";
                return check.invalid("buffer_bytes_per_port_gbps", per_gbps, problem);
            }
            return Ok(());
        }
        if let Some(network) = self.links() {
            return self.validate_links(check, network);
        }
        match (self.network.leaves, self.network.spines) {
            (1, 1..) => {
                let problem = "one leaf has no use for spines; must be 0 where leaves is 1";
                return check.invalid("spines", self.network.spines, problem);
            }
            (2.., 0) => {
                let problem = "several leaves cannot reach each other; must be at least 1";
                return check.invalid("spines", self.network.spines, problem);
            }
            _ => {}
        }
        let hosts = u64::from(self.network.leaves) * u64::from(self.network.hosts_per_leaf);
        if hosts != u64::from(self.network.ports) {
            let problem = format!(
                "the hosts of a leaf-spine network are leaves x hosts_per_leaf, {hosts}; change \
                 these instead"
            );
            return check.invalid("ports", self.network.ports, problem);
        }
        self.validate_leaf_buffer(check)?;
        let spine = self.at_switch(Tier::Spine).network.buffer_bytes;
        let packet = self.full_packet_bytes();
        if self.is_fabric() && spine < packet {
            let problem = format!(
                "a spine has {spine} bytes, less than one packet of {packet}; must be larger"
            );
            return check.invalid("buffer_bytes_per_port_gbps", per_gbps, problem);
        }
        Ok(())
    }

    fn validate_leaf_buffer(&self, check: &Checks<'_>) -> Result<(), ScenarioError> {
        let buffer = self.leaf_buffer();
        if self.network.buffer_bytes == buffer {
            return Ok(());
        }
        let problem = format!(
            "buffer_bytes_per_port_gbps makes it {buffer}; must be so, or \
             buffer_bytes_per_port_gbps 0"
        );
        check.invalid("buffer_bytes", self.network.buffer_bytes, problem)
    }

    fn validate_links(
        &self,
        check: &Checks<'_>,
        network: &NetworkLinks,
    ) -> Result<(), ScenarioError> {
        let (rate, delay) = network.host_kind();
        for (field, found, given) in [
            (
                "ports",
                u64::from(self.network.ports),
                network.hosts() as u64,
            ),
            ("rate_bps", self.network.rate_bps, rate.0),
            ("propagation_ns", self.network.propagation_ns, delay.as_ns()),
        ] {
            if found != given {
                let problem =
                    format!("the links of topology make it {given}; change these instead");
                return check.invalid(field, found, problem);
            }
        }
        if self.network.ecmp == Ecmp::Spray {
            let problem = "must be hash, dst_mod or flow_mod where topology is given by links";
            return check.invalid("ecmp", self.network.ecmp, problem);
        }
        if self.queues.flow_priority == FlowPriority::RandomPerLeaf {
            let problem = "there are no leaves; must be random_per_flow, fixed or in_turn";
            return check.invalid("flow_priority", self.queues.flow_priority, problem);
        }
        if !matches!(
            self.traffic.slowdown_base,
            SlowdownBase::Pipeline | SlowdownBase::Paper
        ) {
            let problem = "must be pipeline or paper where topology is given by links";
            return check.invalid("slowdown_base", self.traffic.slowdown_base, problem);
        }
        if self.has_lossless() {
            let problem =
                "must be none where topology is given by links: pauses there are not tested";
            return check.invalid("lossless_priorities", self.lossless.priorities, problem);
        }
        let telemetry = self.transports().iter().any(|kind| kind.reads_telemetry());
        let ways = if self.telemetry.on_acks { 2 } else { 1 };
        let records = ways * network.most_switches() as usize;
        if telemetry && records > MAX_RECORDS {
            let problem = format!(
                "packets have room for {MAX_RECORDS} records of switches, and a path writes {records}"
            );
            return check.invalid("transport", self.transport.kind, problem);
        }
        self.validate_leaf_buffer(check)
    }
}
