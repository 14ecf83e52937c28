//! Classes of flows that hosts send for a given time: which hosts send, and how often.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use bufgym_util::convert::floor_u64;
use bufgym_util::input::excerpt;
use serde::Serialize;

use super::named::named;
use super::settings::settings;
use super::validate::{Checks, MAX_US};
use super::{RangeU32, Scenario, ScenarioError, SizeDistribution, Sizes, TopologyKind};
use crate::units::Instant;

/// Most flows of a trace that hosts send for a given time.
const MAX_FLOWS: u64 = 10_000_000;

settings! {
    /// Traffic for a given time, from every host.
    pub struct DemandSettings {
        /// Unless it is `ports`, every host sends flows of `workload` and asks queries for `warmup_ms`
        /// and `measure_ms`, and the settings of active ports do not apply. The load is that of the
        /// uplinks.
        kind as demand: Demand = Demand::Ports, "who sends to whom: ports | ring | other_leaf | uniform";
        /// Answers come from all leaves.
        leaves as demand_leaves: u32 = 0, "demand: leaves whose hosts start flows and ask queries, the first ones; 0: all";
        /// The load is that of the uplinks, whatever the number of these hosts.
        load_hosts: LeafHosts = LeafHosts::All, "demand: hosts of each leaf that send flows and receive them, such as 0..15, or all";
        /// Flows of the second class have the same sizes and demand as the others, but their own hosts,
        /// transport and queue.
        second_load: f64 = 0.0, "demand: load of a second class of flows; 0: none";
        second_hosts: LeafHosts = LeafHosts::All, "demand: hosts of each leaf that send flows of the second class and receive them, or all";
        /// Each of these hosts has a Poisson process of queries.
        query_rate: f64 = 0.0, "demand: queries of a host per second; 0: none";
        query_share: f64 = 0.25, "demand: answers to a query, share of the buffer of a leaf";
        /// These are hosts of one leaf if it has enough.
        query_fanin: u32 = 0, "demand: hosts that answer a query; 0: as many as a leaf has";
        query_hosts: LeafHosts = LeafHosts::All, "demand: hosts of each leaf that ask queries and answer them, or all";
        /// An answer then leaves at once, with a window of its size.
        preconnected: bool = false, "demand: answers need no handshake and no slow start";
        /// Flows that start in this time are simulated and not counted.
        warmup_ms: u64 = 0, "demand: traffic before the measured, ms";
        measure_ms: u64 = 3_000, "demand: time in which counted flows start, ms";
        /// A flow that has not finished then makes the run fail.
        drain_ms: u64 = 11_000, "demand: longest time until all flows have finished, ms";
    }
}

named! {
    /// Pattern of senders and receivers.
    Demand {
        /// Active ports receive flows, as `traffic` says.
        Ports = "ports",
        /// The hosts of a leaf send to those of the next leaf, so that all traffic crosses spines.
        Ring = "ring",
        /// Hosts send to the hosts of all other leaves.
        OtherLeaf = "other_leaf",
        /// Hosts send to all other hosts.
        Uniform = "uniform",
    }
}

/// Hosts of every leaf: all, or some by their numbers, which begin with 0 at each leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize)]
#[serde(into = "String")]
pub enum LeafHosts {
    /// All of them.
    #[default]
    All,
    /// The hosts with these numbers.
    Numbers(RangeU32),
}

impl LeafHosts {
    /// Text form of [`All`](LeafHosts::All).
    const ALL: &'static str = "all";
}

/// A text that names no hosts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected numbers of hosts of a leaf, such as 0..15, or all, found `{}`", excerpt(.0))]
pub struct NoHosts(String);

impl fmt::Display for LeafHosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LeafHosts::All => f.pad(LeafHosts::ALL),
            LeafHosts::Numbers(numbers) => numbers.fmt(f),
        }
    }
}

impl FromStr for LeafHosts {
    type Err = NoHosts;

    fn from_str(text: &str) -> Result<LeafHosts, NoHosts> {
        if text == LeafHosts::ALL {
            return Ok(LeafHosts::All);
        }
        let numbers = text.parse().map_err(|_| NoHosts(text.to_owned()))?;
        Ok(LeafHosts::Numbers(numbers))
    }
}

impl From<LeafHosts> for String {
    fn from(hosts: LeafHosts) -> String {
        hosts.to_string()
    }
}

/// Senders and their rates.
impl Scenario {
    /// Returns how long hosts start flows if `demand` is not `ports`, seconds.
    pub(crate) fn traffic_seconds(&self) -> f64 {
        (self.demand.warmup_ms + self.demand.measure_ms) as f64 * 1e-3
    }

    /// Returns the first and the last instant at which counted flows start; `None` if all flows count.
    pub fn window(&self) -> Option<(Instant, Instant)> {
        let until = self.demand.warmup_ms + self.demand.measure_ms;
        (self.demand.kind != Demand::Ports).then(|| {
            (
                Instant::from_ms(self.demand.warmup_ms),
                Instant::from_ms(until),
            )
        })
    }

    /// Returns the time at which a run ends in any case; `None` if there is no limit.
    pub(crate) fn end(&self) -> Option<Instant> {
        let of_drain = match self.demand.kind {
            Demand::Ports => None,
            _ => Some(self.demand.warmup_ms + self.demand.measure_ms + self.demand.drain_ms),
        };
        let of_limit = (self.control.max_simulated_ms > 0).then_some(self.control.max_simulated_ms);
        let ends = of_drain.into_iter().chain(of_limit);
        ends.min().map(Instant::from_ms)
    }

    /// Returns the number of hosts that answer a query.
    pub(crate) fn fanin(&self) -> u32 {
        match (self.demand.query_fanin, &self.network.topology) {
            (0, TopologyKind::Single | TopologyKind::Links(_)) => {
                self.network.ports.saturating_sub(1)
            }
            (0, TopologyKind::LeafSpine) => match self.demand.kind {
                Demand::Uniform => self
                    .network
                    .hosts_per_leaf
                    .min(self.network.ports.saturating_sub(1)),
                _ => self.servers_of_leaf(),
            },
            (fanin, _) => fanin,
        }
    }

    /// Returns the number of hosts that could answer a query.
    pub(super) fn servers(&self) -> u32 {
        match self.demand.kind {
            Demand::Ports | Demand::Uniform => self.network.ports.saturating_sub(1),
            Demand::Ring => self.servers_of_leaf(),
            Demand::OtherLeaf => self.network.leaves.saturating_sub(1) * self.servers_of_leaf(),
        }
    }

    /// Returns the number of hosts of a leaf that answer queries.
    fn servers_of_leaf(&self) -> u32 {
        let numbers = self.numbers_of(self.demand.query_hosts);
        numbers.end.saturating_sub(numbers.start)
    }

    /// Returns the size of each host's answer to a query, bytes: its part of the request.
    pub fn answer_bytes(&self) -> u64 {
        let request = self.demand.query_share * self.network.buffer_bytes as f64;
        floor_u64(request / f64::from(self.fanin().max(1))).max(1)
    }

    /// Returns the mean number of flows and answers of a trace, if `demand` is not `ports`.
    pub(super) fn expected_flows(&self) -> u64 {
        floor_u64(self.mean_flows_of_hosts())
    }

    /// Returns the number of leaves whose hosts start flows and ask queries: the first ones.
    pub(crate) fn sending_leaves(&self) -> u32 {
        match self.demand.leaves {
            0 => self.racks(),
            leaves => leaves,
        }
    }

    /// Returns the numbers of these hosts at their leaf.
    pub(crate) fn numbers_of(&self, hosts: LeafHosts) -> Range<u32> {
        match hosts {
            LeafHosts::All => 0..self.network.ports / self.racks().max(1),
            LeafHosts::Numbers(numbers) => numbers.min..numbers.max.saturating_add(1),
        }
    }

    /// Returns the number of these hosts at all leaves that send.
    fn senders(&self, hosts: LeafHosts) -> f64 {
        f64::from(self.sending_leaves()) * self.numbers_of(hosts).len() as f64
    }

    /// Returns the flows per second that a host starts if `demand` is not `ports`:
    /// `load · C / (oversubscription · 8 · E[S])` if all hosts send. If only some hosts of its leaf
    /// send, the rate is higher in proportion. With `uniform` it is also higher, so that the uplinks
    /// have this load although some flows stay in their leaf. With one switch, or a network given by its
    /// links, the load is that of the hosts' links.
    pub fn host_flow_rate(&self, sizes: &SizeDistribution, load: f64) -> f64 {
        self.rate_of_class(sizes, load, self.demand.load_hosts)
    }

    /// As [`host_flow_rate`](Scenario::host_flow_rate), for the second class.
    pub fn second_flow_rate(&self, sizes: &SizeDistribution) -> f64 {
        self.rate_of_class(sizes, self.demand.second_load, self.demand.second_hosts)
    }

    fn rate_of_class(&self, sizes: &SizeDistribution, load: f64, hosts: LeafHosts) -> f64 {
        let at_line_rate = 1.0 / self.flow_gap_seconds(sizes, load);
        if !self.is_leaf_spine() {
            return at_line_rate;
        }
        let leaving = match self.demand.kind {
            Demand::Uniform => {
                let hosts = f64::from(self.network.ports);
                (hosts - f64::from(self.network.hosts_per_leaf)) / (hosts - 1.0)
            }
            _ => 1.0,
        };
        let of_all = at_line_rate / (self.oversubscription() * leaving);
        of_all * (f64::from(self.network.hosts_per_leaf) / self.numbers_of(hosts).len() as f64)
    }

    /// Returns the mean number of flows and answers of a trace if `demand` is not `ports`.
    pub(super) fn mean_flows_of_hosts(&self) -> f64 {
        let flows = |sizes: Sizes| {
            let sizes = sizes.distribution();
            let first = self.host_flow_rate(sizes, self.traffic.load.mean());
            let second = match self.demand.second_load > 0.0 {
                true => self.second_flow_rate(sizes) * self.senders(self.demand.second_hosts),
                false => 0.0,
            };
            first * self.senders(self.demand.load_hosts) + second
        };
        let most = self.traffic.workload.iter().map(flows).fold(0.0, f64::max);
        let answers = self.demand.query_rate
            * f64::from(self.fanin())
            * self.senders(self.demand.query_hosts);
        (most + answers) * self.traffic_seconds()
    }

    pub(super) fn validate_classes(&self, check: &Checks<'_>) -> Result<(), ScenarioError> {
        // In this form the condition is false for NaN too.
        if !(0.0..=1.5).contains(&self.demand.second_load) {
            return check.invalid(
                "second_load",
                self.demand.second_load,
                "must be from 0 to 1.5",
            );
        }
        check.within("demand_leaves", u64::from(self.demand.leaves), 0, 4_096)?;
        if self.demand.kind == Demand::Ports {
            return Ok(());
        }
        let by_leaf = matches!(self.demand.kind, Demand::Ring | Demand::OtherLeaf);
        if self.demand.leaves > 0 && !by_leaf {
            let problem = "needs demand ring or other_leaf; must be 0";
            return check.invalid("demand_leaves", self.demand.leaves, problem);
        }
        if self.demand.leaves > 0 && !(2..=self.network.leaves).contains(&self.demand.leaves) {
            let problem = format!("must be from 2 to leaves, {}, or 0", self.network.leaves);
            return check.invalid("demand_leaves", self.demand.leaves, problem);
        }
        for (field, hosts) in [
            ("load_hosts", self.demand.load_hosts),
            ("second_hosts", self.demand.second_hosts),
            ("query_hosts", self.demand.query_hosts),
        ] {
            let LeafHosts::Numbers(numbers) = hosts else {
                continue;
            };
            if !by_leaf {
                let problem = "needs demand ring or other_leaf; must be all";
                return check.invalid(field, hosts, problem);
            }
            if numbers.is_empty() || numbers.max >= self.network.hosts_per_leaf {
                let last = self.network.hosts_per_leaf - 1;
                let problem = format!(
                    "a leaf has {} hosts; must be a range within 0..{last}, or all",
                    self.network.hosts_per_leaf
                );
                return check.invalid(field, hosts, problem);
            }
        }
        Ok(())
    }

    pub(super) fn validate_demand(&self, check: &Checks<'_>) -> Result<(), ScenarioError> {
        for (field, ms) in [
            ("warmup_ms", self.demand.warmup_ms),
            ("measure_ms", self.demand.measure_ms),
            ("drain_ms", self.demand.drain_ms),
        ] {
            check.within(field, ms, 0, MAX_US)?;
        }
        // In this form the conditions are false for NaN too.
        if !(0.0..=1e6).contains(&self.demand.query_rate) {
            let problem = "must be from 0 to 1000000";
            return check.invalid("query_rate", self.demand.query_rate, problem);
        }
        if !(self.demand.query_share > 0.0 && self.demand.query_share <= 1_000.0) {
            let problem = "must be above 0 and at most 1000";
            return check.invalid("query_share", self.demand.query_share, problem);
        }
        if self.demand.kind == Demand::Ports {
            return self.validate_classes(check);
        }
        check.within("measure_ms", self.demand.measure_ms, 1, MAX_US)?;
        if self.demand.kind != Demand::Uniform && !self.is_leaf_spine() {
            let problem = "needs several leaves; must be ports or uniform";
            return check.invalid("demand", self.demand.kind, problem);
        }
        self.validate_classes(check)?;
        let (fanin, servers) = (self.fanin(), self.servers());
        if fanin > servers {
            let problem = format!(
                "only {servers} hosts could answer; must be at most that, or 0 for as many as a \
                 leaf has"
            );
            return check.invalid("query_fanin", self.demand.query_fanin, problem);
        }
        let flows = self.expected_flows();
        if flows > MAX_FLOWS {
            let problem = format!(
                "with load, query_rate and warmup_ms a trace would have {flows} flows; must be so \
                 short that they are at most {MAX_FLOWS}"
            );
            return check.invalid("measure_ms", self.demand.measure_ms, problem);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Workload;

    #[test]
    fn what_is_written_is_read_back() {
        for text in ["all", "0..15", "7"] {
            assert_eq!(text.parse::<LeafHosts>().unwrap().to_string(), text);
        }
        for text in ["", "none", "0..", "-1", "1,2"] {
            let error = text.parse::<LeafHosts>().unwrap_err().to_string();
            assert!(error.contains("such as 0..15, or all"), "{error}");
        }
    }

    /// At load 0.4, 32 hosts start 73 flows per second each; 16 hosts start twice as many each. Eight
    /// hosts at load 0.1 start as many each as 32 at 0.4.
    #[test]
    fn fewer_hosts_start_more_flows_each() {
        let mut scenario = Scenario::preset("abm-artefact").unwrap();
        let all = scenario.host_flow_rate(Workload::WebSearch.distribution(), 0.4);
        for change in [
            "load_hosts=0..15",
            "second_hosts=16..23",
            "second_load=0.1",
            "query_hosts=24..31",
        ] {
            scenario.set(change).unwrap();
        }
        scenario.validate().unwrap();
        let half = scenario.host_flow_rate(Workload::WebSearch.distribution(), 0.4);
        let second = scenario.second_flow_rate(Workload::WebSearch.distribution());
        assert!((half - 2.0 * all).abs() < 1e-9 && (second - all).abs() < 1e-9);
        assert_eq!((scenario.fanin(), scenario.servers()), (8, 8));
        let expected = 3.0 * (32.0 * half + 16.0 * second + 16.0 * 2.0 * 8.0);
        assert!((scenario.mean_flows_of_hosts() - expected).abs() < 1e-6);
    }
}
