//! Leaf-spine networks: values derived from their settings.

use super::{Demand, NetworkLinks, Scenario, ScenarioError, SpineBuffer, SpinePool, TopologyKind};
use crate::convert::floor_u64;
use crate::units::{Rate, Time};

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
        self.topology == TopologyKind::LeafSpine && self.leaves > 1
    }

    /// Returns the links of a network that is given by them.
    pub fn links(&self) -> Option<&NetworkLinks> {
        match &self.topology {
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
            value: self.topology.name().to_owned(),
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
                value: self.topology.name().to_owned(),
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
            value: self.spine_pool.to_string(),
            problem: "decisions are about the ports of one switch; must be own".to_owned(),
        })
    }

    /// Returns the rate of the links between switches.
    pub fn fabric_rate(&self) -> Rate {
        match self.fabric_rate_bps {
            0 => self.rate(),
            bps => Rate(bps),
        }
    }

    /// Returns the number of links from a leaf to spines.
    pub fn uplinks(&self) -> u64 {
        u64::from(self.spines) * u64::from(self.links_per_pair)
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
        let leaves = tier(Tier::Leaf, self.leaves);
        leaves.chain(tier(Tier::Spine, self.spines)).collect()
    }

    /// Returns the oversubscription: the rate of a leaf's hosts relative to the rate of its uplinks.
    pub fn oversubscription(&self) -> f64 {
        let hosts = f64::from(self.hosts_per_leaf) * self.rate_bps as f64;
        hosts / (self.uplinks() as f64 * self.fabric_rate().0 as f64)
    }

    /// Returns the number of leaves with hosts; a single switch counts as one.
    pub(crate) fn racks(&self) -> u32 {
        match self.topology {
            TopologyKind::Single | TopologyKind::Links(_) => 1,
            TopologyKind::LeafSpine => self.leaves,
        }
    }

    /// Returns how long hosts start flows if `demand` is not `ports`, seconds.
    pub(crate) fn traffic_seconds(&self) -> f64 {
        (self.warmup_ms + self.measure_ms) as f64 * 1e-3
    }

    /// Returns the first and the last instant at which counted flows start; `None` if all flows count.
    pub fn window(&self) -> Option<(Time, Time)> {
        let until = self.warmup_ms + self.measure_ms;
        (self.demand != Demand::Ports)
            .then(|| (Time::from_ms(self.warmup_ms), Time::from_ms(until)))
    }

    /// Returns the time at which a run ends in any case; `None` if there is no limit.
    pub(crate) fn end(&self) -> Option<Time> {
        let of_drain = match self.demand {
            Demand::Ports => None,
            _ => Some(self.warmup_ms + self.measure_ms + self.drain_ms),
        };
        let of_limit = (self.max_simulated_ms > 0).then_some(self.max_simulated_ms);
        let ends = of_drain.into_iter().chain(of_limit);
        ends.min().map(Time::from_ms)
    }

    /// Returns the number of hosts that answer a query.
    pub(crate) fn fanin(&self) -> u32 {
        match (self.query_fanin, &self.topology) {
            (0, TopologyKind::Single | TopologyKind::Links(_)) => self.ports.saturating_sub(1),
            (0, TopologyKind::LeafSpine) => match self.demand {
                Demand::Uniform => self.hosts_per_leaf.min(self.ports.saturating_sub(1)),
                _ => self.servers_of_leaf(),
            },
            (fanin, _) => fanin,
        }
    }

    /// Returns the number of hosts that could answer a query.
    pub(super) fn servers(&self) -> u32 {
        match self.demand {
            Demand::Ports | Demand::Uniform => self.ports.saturating_sub(1),
            Demand::Ring => self.servers_of_leaf(),
            Demand::OtherLeaf => self.leaves.saturating_sub(1) * self.servers_of_leaf(),
        }
    }

    /// Returns the number of hosts of a leaf that answer queries.
    fn servers_of_leaf(&self) -> u32 {
        let numbers = self.numbers_of(self.query_hosts);
        numbers.end.saturating_sub(numbers.start)
    }

    /// Returns the size of each host's answer to a query, bytes: its part of the request.
    pub fn answer_bytes(&self) -> u64 {
        let request = self.query_share * self.buffer_bytes as f64;
        floor_u64(request / f64::from(self.fanin().max(1))).max(1)
    }

    /// Returns the mean number of flows and answers of a trace, if `demand` is not `ports`.
    pub(super) fn expected_flows(&self) -> u64 {
        floor_u64(self.mean_flows_of_hosts())
    }

    /// Returns the scenario as a switch of the network sees it: `ports`, `rate_bps` and `buffer_bytes`
    /// are its own. The rate is that of its fastest port. Policies, queue management and marks within
    /// the switch are built from this.
    pub fn at_switch(&self, tier: Tier) -> Scenario {
        let rate = match tier {
            Tier::Leaf if self.spines > 0 => self.rate_bps.max(self.fabric_rate().0),
            Tier::Leaf => self.rate_bps,
            Tier::Spine => self.fabric_rate().0,
        };
        Scenario {
            ports: u32::try_from(self.switch_ports(tier)).unwrap_or(u32::MAX),
            rate_bps: rate,
            buffer_bytes: self.switch_buffer(tier),
            ..self.clone()
        }
    }

    /// Returns the scenario as a switch with ports of these rates sees it, like [`at_switch`](Scenario::at_switch).
    pub(crate) fn with_ports(&self, rates: &[Rate]) -> Scenario {
        let buffer_bytes = match self.buffer_bytes_per_port_gbps > 0.0 {
            true => self.buffer_of(rates.iter().map(|rate| rate.0 as f64 * 1e-9).sum()),
            false => self.buffer_bytes,
        };
        Scenario {
            ports: u32::try_from(rates.len()).unwrap_or(u32::MAX),
            rate_bps: rates
                .iter()
                .map(|rate| rate.0)
                .max()
                .unwrap_or(self.rate_bps),
            buffer_bytes,
            ..self.clone()
        }
    }

    /// Returns the buffer of a switch whose ports have this rate together, Gbit/s.
    fn buffer_of(&self, gbps: f64) -> u64 {
        // Keeps products whole that are whole in decimals.
        floor_u64(self.buffer_bytes_per_port_gbps * KIB * gbps + 1e-6)
    }

    /// Returns the number of ports of a switch.
    fn switch_ports(&self, tier: Tier) -> u64 {
        match tier {
            Tier::Leaf => u64::from(self.hosts_per_leaf) + self.uplinks(),
            Tier::Spine => u64::from(self.leaves) * u64::from(self.links_per_pair),
        }
    }

    /// Returns the bytes of a switch's buffer: `floor(x · 1024 · Σ Gbit/s)` over its ports, or
    /// `buffer_bytes`.
    fn switch_buffer(&self, tier: Tier) -> u64 {
        if self.buffer_bytes_per_port_gbps <= 0.0 {
            return self.buffer_bytes;
        }
        let tier = match self.spine_buffer {
            SpineBuffer::Own => tier,
            SpineBuffer::Leaf => Tier::Leaf,
        };
        let fabric = self.fabric_rate().0 as f64 * 1e-9;
        let gbps = match tier {
            Tier::Leaf => {
                let hosts = f64::from(self.hosts_per_leaf) * self.rate_bps as f64 * 1e-9;
                hosts + self.uplinks() as f64 * fabric
            }
            Tier::Spine => self.switch_ports(Tier::Spine) as f64 * fabric,
        };
        self.buffer_of(gbps)
    }

    /// Returns true if ports of spines draw on the buffers of leaves.
    pub fn pools_spines(&self) -> bool {
        self.is_leaf_spine() && self.spine_pool == SpinePool::WithLeaf
    }

    /// Returns the bytes of a leaf's buffer; in a network given by its links, of the switch of host 0.
    pub(super) fn leaf_buffer(&self) -> u64 {
        match self.links() {
            Some(network) if self.buffer_bytes_per_port_gbps > 0.0 => {
                self.buffer_of(network.first_switch_gbps())
            }
            Some(_) => self.buffer_bytes,
            None => self.switch_buffer(Tier::Leaf),
        }
    }
}
