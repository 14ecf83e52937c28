//! Classes of flows that hosts send for a given time: which hosts send, and how often.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::validate::Checks;
use super::{Demand, RangeU32, Scenario, ScenarioError, SizeDistribution, Sizes};
use crate::input::excerpt;

/// Hosts of every leaf: all, or some by their numbers, which begin with 0 at each leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
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

impl TryFrom<String> for LeafHosts {
    type Error = NoHosts;

    fn try_from(text: String) -> Result<LeafHosts, NoHosts> {
        text.parse()
    }
}

/// Senders and their rates.
impl Scenario {
    /// Returns the number of leaves whose hosts start flows and ask queries: the first ones.
    pub(crate) fn sending_leaves(&self) -> u32 {
        match self.demand_leaves {
            0 => self.racks(),
            leaves => leaves,
        }
    }

    /// Returns the numbers of these hosts at their leaf.
    pub(crate) fn numbers_of(&self, hosts: LeafHosts) -> Range<u32> {
        match hosts {
            LeafHosts::All => 0..self.ports / self.racks().max(1),
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
        self.rate_of_class(sizes, load, self.load_hosts)
    }

    /// As [`host_flow_rate`](Scenario::host_flow_rate), for the second class.
    pub fn second_flow_rate(&self, sizes: &SizeDistribution) -> f64 {
        self.rate_of_class(sizes, self.second_load, self.second_hosts)
    }

    fn rate_of_class(&self, sizes: &SizeDistribution, load: f64, hosts: LeafHosts) -> f64 {
        let at_line_rate = 1.0 / self.flow_gap_seconds(sizes, load);
        if !self.is_leaf_spine() {
            return at_line_rate;
        }
        let leaving = match self.demand {
            Demand::Uniform => {
                let hosts = f64::from(self.ports);
                (hosts - f64::from(self.hosts_per_leaf)) / (hosts - 1.0)
            }
            _ => 1.0,
        };
        let of_all = at_line_rate / (self.oversubscription() * leaving);
        of_all * (f64::from(self.hosts_per_leaf) / self.numbers_of(hosts).len() as f64)
    }

    /// Returns the mean number of flows and answers of a trace if `demand` is not `ports`.
    pub(super) fn mean_flows_of_hosts(&self) -> f64 {
        let flows = |sizes: Sizes| {
            let sizes = sizes.distribution();
            let first = self.host_flow_rate(sizes, self.load.mean());
            let second = match self.second_load > 0.0 {
                true => self.second_flow_rate(sizes) * self.senders(self.second_hosts),
                false => 0.0,
            };
            first * self.senders(self.load_hosts) + second
        };
        let most = self.workload.iter().map(flows).fold(0.0, f64::max);
        let answers = self.query_rate * f64::from(self.fanin()) * self.senders(self.query_hosts);
        (most + answers) * self.traffic_seconds()
    }

    pub(super) fn validate_classes(&self, check: &Checks<'_>) -> Result<(), ScenarioError> {
        // In this form the condition is false for NaN too.
        if !(0.0..=1.5).contains(&self.second_load) {
            return check.invalid("second_load", self.second_load, "must be from 0 to 1.5");
        }
        check.within("second_priority", u64::from(self.second_priority), 0, 7)?;
        check.within("demand_leaves", u64::from(self.demand_leaves), 0, 4_096)?;
        if self.demand == Demand::Ports {
            return Ok(());
        }
        let by_leaf = matches!(self.demand, Demand::Ring | Demand::OtherLeaf);
        if self.demand_leaves > 0 && !by_leaf {
            let problem = "needs demand ring or other_leaf; must be 0";
            return check.invalid("demand_leaves", self.demand_leaves, problem);
        }
        if self.demand_leaves > 0 && !(2..=self.leaves).contains(&self.demand_leaves) {
            let problem = format!("must be from 2 to leaves, {}, or 0", self.leaves);
            return check.invalid("demand_leaves", self.demand_leaves, problem);
        }
        for (field, hosts) in [
            ("load_hosts", self.load_hosts),
            ("second_hosts", self.second_hosts),
            ("query_hosts", self.query_hosts),
        ] {
            let LeafHosts::Numbers(numbers) = hosts else {
                continue;
            };
            if !by_leaf {
                let problem = "needs demand ring or other_leaf; must be all";
                return check.invalid(field, hosts, problem);
            }
            if numbers.is_empty() || numbers.max >= self.hosts_per_leaf {
                let last = self.hosts_per_leaf - 1;
                let problem = format!(
                    "a leaf has {} hosts; must be a range within 0..{last}, or all",
                    self.hosts_per_leaf
                );
                return check.invalid(field, hosts, problem);
            }
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
