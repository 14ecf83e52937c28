//! Generated flows: where they go, how large they are, and when they start.

use bufgym_util::convert::floor_u64;

use super::named::named;
use super::settings::settings;
use super::validate::{Checks, MAX_US};
use super::{
    Demand, MAX_FLOW_BYTES, RangeF64, RangeU32, Scenario, ScenarioError, SizeDistribution,
    Workload, Workloads,
};

/// Longest mean duration of a generated trace, days. This is well below the latest start of a flow that
/// a trace may have, eleven days.
const MAX_DAYS: f64 = 5.0;

settings! {
    /// Flows towards active ports, and sizes and load of all traffic.
    pub struct TrafficSettings {
        slowdown_base: SlowdownBase = SlowdownBase::Alone, "what slowdowns are relative to: paper | pipeline | alone | reverie";
        /// Kinds of flows in a trace.
        kind as traffic: Traffic = Traffic::Poisson, "poisson | incast_elephants | bursts_over_elephants";
        /// With elephants, the load that they alone offer to each port that receives them.
        load: RangeF64 = RangeF64::new(0.5, 0.5), "offered load of an active port, fraction of its rate; uniform per trace";
        /// Distributions of the flow sizes. Each trace draws one of them.
        workload: Workloads = Workload::WebSearch.into(), "web_search, data_mining, fb_hadoop, ali_storage, web_search_abm, or bytes:cdf points; one per trace";
        /// Distribution in time of the flows to one port.
        arrivals: Arrivals = Arrivals::Mixed, "flows in time: mixed | spread | synchronised";
        /// The sources are distinct. With queries or bursts, the number of hosts that answer, drawn for
        /// each query or burst.
        incast_degree: RangeU32 = RangeU32::new(1, 15), "sources of an active port, uniform per port";
        active_ports: RangeU32 = RangeU32::new(1, 16), "ports that receive flows, uniform per trace";
        flows: RangeU32 = RangeU32::new(100, 1_000), "flows of a trace, log-uniform per trace";
        query_gap_us: u64 = 10_000, "mean time between queries or bursts to a port, us";
        response_bytes: u64 = 64_000, "what each host answers to a query, or adds to a burst, bytes";
        elephant_bytes: u64 = 30_000_000, "size of a background flow, bytes";
    }
}

named! {
    /// Time that a flow's completion time is divided by in its slowdown.
    SlowdownBase {
        /// The propagation delay of the longest round trip and the time of the payload on the line of
        /// a host (ABM, SIGCOMM 2022; Credence, NSDI 2024).
        Paper = "paper",
        /// The time of its packets through the empty network, whatever its window.
        Pipeline = "pipeline",
        /// The completion time of the flow alone in the network, with its transport.
        Alone = "alone",
        /// The longest round trip of a packet without headers and the time of the flow on the line of
        /// a host, that of RDMA with headers (Reverie, NSDI 2024).
        Reverie = "reverie",
    }
}

named! {
    /// Kinds of flows in a trace.
    Traffic {
        /// Flows of a workload towards every active port, as `arrivals` says (NDT §VI-A).
        Poisson = "poisson",
        /// Queries to one port, which many hosts answer at once, while other ports receive
        /// elephants (NDT §VI-B, Fig. 8(d)).
        IncastElephants = "incast_elephants",
        /// Elephants to a few ports from hosts that also send them bursts together (NDT §VI-D,
        /// Fig. 10).
        BurstsOverElephants = "bursts_over_elephants",
    }
}

named! {
    /// Distribution in time of the flows to one port (NDT §VI-A).
    Arrivals {
        /// Each trace is `spread` or `synchronised` with probability 1/2.
        Mixed = "mixed",
        /// A Poisson process per port, each flow from one of the port's sources at random.
        Spread = "spread",
        /// Groups with one flow from each source of the port, all starting at one instant; the
        /// groups are a Poisson process.
        Synchronised = "synchronised",
    }
}

impl Scenario {
    /// Mean number of flows of a generated trace, rounded down: that of a log-uniform distribution.
    pub fn mean_flows(&self) -> u64 {
        if self.demand.kind != Demand::Ports {
            return self.expected_flows();
        }
        let (min, max) = (
            f64::from(self.traffic.flows.min),
            f64::from(self.traffic.flows.max),
        );
        match min < max {
            true => floor_u64((max - min) / libm::log(max / min)),
            false => u64::from(self.traffic.flows.max),
        }
    }

    /// Mean time between flows of these sizes towards one active port at `load`, seconds:
    /// `8 · E[S] / (load · C)`.
    pub(crate) fn flow_gap_seconds(&self, sizes: &SizeDistribution, load: f64) -> f64 {
        8.0 * sizes.mean() / (load * self.network.rate_bps as f64)
    }

    /// Time between the elephants towards one port at `load`, seconds: `8 · S / (load · C)`.
    pub(crate) fn elephant_gap_seconds(&self, load: f64) -> f64 {
        8.0 * self.traffic.elephant_bytes as f64 / (load * self.network.rate_bps as f64)
    }

    /// The mean of `value(size)` over the flows of all traces, sizes in bytes.
    pub fn mean_over_sizes(&self, mut value: impl FnMut(u64) -> f64) -> f64 {
        let elephant_ports = match self.traffic.kind {
            Traffic::Poisson => {
                let workloads = self.traffic.workload.iter();
                let sum: f64 = workloads
                    .map(|workload| workload.distribution().expected(&mut value))
                    .sum();
                return sum / f64::from(self.traffic.workload.count());
            }
            Traffic::IncastElephants => self.traffic.active_ports.mean() - 1.0,
            Traffic::BurstsOverElephants => self.traffic.active_ports.mean(),
        };
        let query_ports = match self.traffic.kind {
            Traffic::IncastElephants => 1.0,
            _ => elephant_ports,
        };
        let elephants = elephant_ports / self.elephant_gap_seconds(self.traffic.load.mean());
        let responses = query_ports * self.traffic.incast_degree.mean()
            / (self.traffic.query_gap_us as f64 * 1e-6);
        (responses * value(self.traffic.response_bytes)
            + elephants * value(self.traffic.elephant_bytes))
            / (responses + elephants)
    }

    pub(super) fn validate_traffic(&self, check: &Checks<'_>) -> Result<(), ScenarioError> {
        self.validate_demand(check)?;
        // In this form the condition is false for NaN too.
        if !(self.traffic.load.min > 0.0 && self.traffic.load.max <= 1.5) {
            return check.invalid("load", self.traffic.load, "must be above 0 and at most 1.5");
        }
        if self.traffic.load.min > self.traffic.load.max {
            let problem = format!(
                "the range is empty; the smaller number comes first, as in {}..{}",
                self.traffic.load.max, self.traffic.load.min
            );
            return check.invalid("load", self.traffic.load, problem);
        }
        let others = self.network.ports - 1;
        check.range_within(
            "incast_degree",
            self.traffic.incast_degree,
            others,
            " (a port cannot have more sources than there are other ports)",
        )?;
        check.range_within(
            "active_ports",
            self.traffic.active_ports,
            self.network.ports,
            " (there are no more ports)",
        )?;
        check.range_within("flows", self.traffic.flows, 10_000_000, "")?;
        check.within("query_gap_us", self.traffic.query_gap_us, 1, MAX_US)?;
        check.within(
            "response_bytes",
            self.traffic.response_bytes,
            1,
            MAX_FLOW_BYTES,
        )?;
        check.within(
            "elephant_bytes",
            self.traffic.elephant_bytes,
            1,
            MAX_FLOW_BYTES,
        )?;
        match self.traffic.kind {
            Traffic::Poisson => self.validate_poisson(check),
            Traffic::IncastElephants | Traffic::BurstsOverElephants => self.validate_queries(check),
        }
    }

    fn validate_poisson(&self, check: &Checks<'_>) -> Result<(), ScenarioError> {
        // The mean number of gaps with the fewest active ports. The last term accounts for the wait for
        // the first group of flows.
        let gaps = f64::from(self.traffic.flows.max) / f64::from(self.traffic.active_ports.min)
            + f64::from(self.traffic.incast_degree.max);
        let longest_gap = self
            .traffic
            .workload
            .iter()
            .map(|sizes| self.flow_gap_seconds(sizes.distribution(), self.traffic.load.min))
            .fold(0.0, f64::max);
        let days = gaps * longest_gap / 86_400.0;
        if days > MAX_DAYS {
            return check.invalid(
                "load",
                self.traffic.load,
                format!(
                    "with this workload, rate_bps and flows a trace would last {days:.0} days; \
                     must be at most {MAX_DAYS}: raise load or lower flows"
                ),
            );
        }
        Ok(())
    }

    fn validate_queries(&self, check: &Checks<'_>) -> Result<(), ScenarioError> {
        let degree = self.traffic.incast_degree;
        let senders = self
            .network
            .ports
            .saturating_sub(self.traffic.active_ports.max);
        if self.traffic.kind == Traffic::BurstsOverElephants && degree.max > senders {
            return check.invalid(
                "incast_degree",
                degree,
                format!(
                    "bursts come from hosts that receive nothing, and with {} ports and \
                     active_ports = {} there may be only {senders} of them; lower one of the two \
                     or raise ports",
                    self.network.ports, self.traffic.active_ports
                ),
            );
        }
        if self.traffic.flows.min < degree.max {
            return check.invalid(
                "flows",
                self.traffic.flows,
                format!(
                    "a query is never cut short; must be at least the in-cast degree, {}",
                    degree.max
                ),
            );
        }
        // The first term accounts for the wait for the first query. The smallest degree gives the most
        // queries.
        let queries = 1.0 + f64::from(self.traffic.flows.max) / f64::from(degree.min);
        let days = queries * self.traffic.query_gap_us as f64 / 86_400e6;
        if days > MAX_DAYS {
            return check.invalid(
                "query_gap_us",
                self.traffic.query_gap_us,
                format!(
                    "with this incast_degree and flows a trace would last {days:.0} days; must be \
                     at most {MAX_DAYS}: lower query_gap_us or flows"
                ),
            );
        }
        Ok(())
    }
}
