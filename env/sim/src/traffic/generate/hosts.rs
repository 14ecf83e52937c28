//! Flows that every host sends, and queries that every host asks, for a given time (ABM, SIGCOMM
//! 2022, §4.1; Credence, NSDI 2024, §4.1).

use std::ops::Range;

use bufgym_util::rng::{below, stream, uniform};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{distinct, exponential, load_of, start_at, workload_of};
use crate::scenario::{Demand, Scenario};
use crate::traffic::{FlowSpec, SizeDistribution, Trace};

const INCAST: u16 = 1;

/// The hosts of a network, leaf by leaf.
struct Racks {
    demand: Demand,
    leaves: u32,
    hosts_per_leaf: u32,
    /// Number of leaves whose hosts start flows and ask queries.
    sending: u32,
}

impl Racks {
    fn of(scenario: &Scenario) -> Racks {
        Racks {
            demand: scenario.demand.kind,
            leaves: scenario.racks(),
            hosts_per_leaf: scenario.network.ports / scenario.racks(),
            sending: scenario.sending_leaves(),
        }
    }

    /// Returns the hosts of a leaf that have these numbers.
    fn hosts(&self, leaf: u32, numbers: &Range<u32>) -> Range<u32> {
        let first = leaf * self.hosts_per_leaf;
        first + numbers.start..first + numbers.end
    }

    /// Returns the hosts with these numbers at all leaves that send.
    fn senders(&self, numbers: &Range<u32>) -> impl Iterator<Item = u32> {
        (0..self.sending).flat_map(|leaf| self.hosts(leaf, numbers))
    }

    /// Draws the leaf, among the first `among`, that a host's traffic goes to or comes from.
    fn other_leaf(&self, own: u32, among: u32, rng: &mut Xoshiro256PlusPlus) -> u32 {
        match self.demand {
            Demand::Ring => (own + 1) % among,
            _ => {
                let other = small(below(rng, u64::from(among - 1)));
                other + u32::from(other >= own)
            }
        }
    }

    /// Draws a destination for a flow of `host`, among the hosts with these numbers.
    fn destination(&self, host: u32, numbers: &Range<u32>, rng: &mut Xoshiro256PlusPlus) -> u32 {
        if self.demand == Demand::Uniform {
            let others = u64::from(self.leaves * self.hosts_per_leaf - 1);
            let other = small(below(rng, others));
            return other + u32::from(other >= host);
        }
        let leaf = self.other_leaf(host / self.hosts_per_leaf, self.sending, rng);
        let number = small(below(rng, u64::from(numbers.end - numbers.start)));
        self.hosts(leaf, numbers).start + number
    }

    /// Draws distinct hosts with these numbers that answer a query of `host`: from one other leaf, or
    /// from all others if one has too few.
    fn servers(
        &self,
        host: u32,
        fanin: u32,
        numbers: &Range<u32>,
        rng: &mut Xoshiro256PlusPlus,
    ) -> Vec<u32> {
        let own = host / self.hosts_per_leaf;
        let candidates = match self.demand {
            Demand::Uniform => {
                let all = 0..self.leaves * self.hosts_per_leaf;
                all.filter(|other| *other != host).collect()
            }
            _ if fanin > numbers.end - numbers.start => {
                let others = (0..self.leaves).filter(|leaf| *leaf != own);
                others.flat_map(|leaf| self.hosts(leaf, numbers)).collect()
            }
            _ => {
                let leaf = self.other_leaf(own, self.leaves, rng);
                self.hosts(leaf, numbers).collect()
            }
        };
        distinct(rng, candidates, fanin)
    }
}

fn small(number: u64) -> u32 {
    u32::try_from(number).expect("a number below a number of hosts")
}

/// Flows of the same kind that some hosts send.
struct Class<'a> {
    /// Label of the random streams of the class's hosts.
    stream: &'a str,
    kind: u16,
    /// Numbers of the class's hosts at their leaf.
    numbers: Range<u32>,
    /// Mean time between two flows of a host, seconds.
    gap: f64,
}

impl Class<'_> {
    fn generate(&self, scenario: &Scenario, seed: u64, sizes: &SizeDistribution) -> Vec<FlowSpec> {
        let racks = Racks::of(scenario);
        let end = scenario.traffic_seconds();
        let mut flows = Vec::new();
        for host in racks.senders(&self.numbers) {
            let mut rng = stream(seed, self.stream, u64::from(host));
            let mut at = exponential(&mut rng, self.gap);
            while at < end {
                flows.push(FlowSpec {
                    id: 0,
                    src: host,
                    dst: racks.destination(host, &self.numbers, &mut rng),
                    start: start_at(at),
                    size: sizes.sample(uniform(&mut rng)),
                    kind: self.kind,
                    query: -1,
                    priority: 0,
                });
                at += exponential(&mut rng, self.gap);
            }
        }
        flows
    }
}

/// Generates flows and answers of all hosts; see [`generate`](super::generate).
pub(super) fn generate(scenario: &Scenario, trace_seed: u64) -> Trace {
    let workload = workload_of(scenario, trace_seed);
    let sizes = workload.distribution();
    let load = load_of(scenario, trace_seed);
    let first = Class {
        stream: "host flows",
        kind: 0,
        numbers: scenario.numbers_of(scenario.demand.load_hosts),
        gap: 1.0 / scenario.host_flow_rate(sizes, load),
    };
    let mut kinds = vec![workload.short_name().to_owned(), "incast".to_owned()];
    let mut flows = first.generate(scenario, trace_seed, sizes);
    let mut queries = queries(scenario, trace_seed);
    queries.sort_by(|a, b| a.at.total_cmp(&b.at));
    for (number, query) in (0..).zip(queries) {
        let size = scenario.answer_bytes();
        flows.extend(query.servers.into_iter().map(|src| FlowSpec {
            id: 0,
            src,
            dst: query.host,
            start: start_at(query.at),
            size,
            kind: INCAST,
            query: number,
            priority: 0,
        }));
    }
    if scenario.demand.second_load > 0.0 {
        let second = Class {
            stream: "host flows of the second class",
            kind: Trace::SECOND,
            numbers: scenario.numbers_of(scenario.demand.second_hosts),
            gap: 1.0 / scenario.second_flow_rate(sizes),
        };
        flows.extend(second.generate(scenario, trace_seed, sizes));
        kinds.push(Trace::SECOND_KIND.to_owned());
    }
    // The sort is stable: of simultaneous flows those of the lowest host come first.
    flows.sort_by_key(|flow| flow.start);
    Trace {
        flows,
        kinds,
        seed: trace_seed,
    }
}

struct Query {
    at: f64,
    host: u32,
    servers: Vec<u32>,
}

fn queries(scenario: &Scenario, trace_seed: u64) -> Vec<Query> {
    let racks = Racks::of(scenario);
    let numbers = scenario.numbers_of(scenario.demand.query_hosts);
    let mut queries = Vec::new();
    if scenario.demand.query_rate <= 0.0 {
        return queries;
    }
    let (gap, end) = (1.0 / scenario.demand.query_rate, scenario.traffic_seconds());
    for host in racks.senders(&numbers) {
        let mut rng = stream(trace_seed, "host queries", u64::from(host));
        let mut at = exponential(&mut rng, gap);
        while at < end {
            let servers = racks.servers(host, scenario.fanin(), &numbers, &mut rng);
            queries.push(Query { at, host, servers });
            at += exponential(&mut rng, gap);
        }
    }
    queries
}
