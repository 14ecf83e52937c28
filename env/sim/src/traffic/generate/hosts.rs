//! Flows that every host sends, and queries that every host asks, for a given time (ABM, SIGCOMM
//! 2022, §4.1; Credence, NSDI 2024, §4.1).

use rand_xoshiro::Xoshiro256PlusPlus;

use super::{distinct, exponential, load_of, start_at, workload_of};
use crate::rng::{below, stream, uniform};
use crate::scenario::{Demand, Scenario};
use crate::traffic::{FlowSpec, Trace};

const INCAST: u16 = 1;

/// The hosts of a network, leaf by leaf.
struct Racks {
    demand: Demand,
    leaves: u32,
    hosts_per_leaf: u32,
}

impl Racks {
    fn hosts(&self, leaf: u32) -> impl Iterator<Item = u32> {
        let first = leaf * self.hosts_per_leaf;
        first..first + self.hosts_per_leaf
    }

    /// The leaf that a host's traffic goes to, or comes from.
    fn other_leaf(&self, own: u32, rng: &mut Xoshiro256PlusPlus) -> u32 {
        match self.demand {
            Demand::Ring => (own + 1) % self.leaves,
            _ => {
                let other = small(below(rng, u64::from(self.leaves - 1)));
                other + u32::from(other >= own)
            }
        }
    }

    /// A destination for a flow of `host`.
    fn destination(&self, host: u32, rng: &mut Xoshiro256PlusPlus) -> u32 {
        if self.demand == Demand::Uniform {
            let others = u64::from(self.leaves * self.hosts_per_leaf - 1);
            let other = small(below(rng, others));
            return other + u32::from(other >= host);
        }
        let leaf = self.other_leaf(host / self.hosts_per_leaf, rng);
        leaf * self.hosts_per_leaf + small(below(rng, u64::from(self.hosts_per_leaf)))
    }

    /// Distinct hosts that answer a query of `host`: of one other leaf, or of all others where that
    /// has not as many.
    fn servers(&self, host: u32, fanin: u32, rng: &mut Xoshiro256PlusPlus) -> Vec<u32> {
        let own = host / self.hosts_per_leaf;
        let candidates = match self.demand {
            Demand::Uniform => {
                let all = 0..self.leaves * self.hosts_per_leaf;
                all.filter(|other| *other != host).collect()
            }
            _ if fanin > self.hosts_per_leaf => {
                let others = (0..self.leaves).filter(|leaf| *leaf != own);
                others.flat_map(|leaf| self.hosts(leaf)).collect()
            }
            _ => self.hosts(self.other_leaf(own, rng)).collect(),
        };
        distinct(rng, candidates, fanin)
    }
}

fn small(number: u64) -> u32 {
    u32::try_from(number).expect("a number below a number of hosts")
}

/// Flows and answers of all hosts; see [`generate`](super::generate).
pub(super) fn generate(scenario: &Scenario, trace_seed: u64) -> Trace {
    let workload = workload_of(scenario, trace_seed);
    let sizes = workload.distribution();
    let gap = 1.0 / scenario.host_flow_rate(workload, load_of(scenario, trace_seed));
    let racks = Racks {
        demand: scenario.demand,
        leaves: scenario.racks(),
        hosts_per_leaf: scenario.ports / scenario.racks(),
    };
    let end = scenario.traffic_seconds();
    let mut flows = Vec::new();
    for host in 0..scenario.ports {
        let mut rng = stream(trace_seed, "host flows", u64::from(host));
        let mut at = exponential(&mut rng, gap);
        while at < end {
            flows.push(FlowSpec {
                id: 0,
                src: host,
                dst: racks.destination(host, &mut rng),
                start: start_at(at),
                size: sizes.sample(uniform(&mut rng)),
                kind: 0,
                query: -1,
                priority: 0,
            });
            at += exponential(&mut rng, gap);
        }
    }
    let mut queries = queries(scenario, trace_seed, &racks);
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
    // The sort is stable: of simultaneous flows those of the lowest host come first.
    flows.sort_by_key(|flow| flow.start);
    Trace {
        flows,
        kinds: vec![workload.short_name().to_owned(), "incast".to_owned()],
        seed: trace_seed,
    }
}

struct Query {
    at: f64,
    host: u32,
    servers: Vec<u32>,
}

fn queries(scenario: &Scenario, trace_seed: u64, racks: &Racks) -> Vec<Query> {
    let mut queries = Vec::new();
    if scenario.query_rate <= 0.0 {
        return queries;
    }
    let (gap, end) = (1.0 / scenario.query_rate, scenario.traffic_seconds());
    for host in 0..scenario.ports {
        let mut rng = stream(trace_seed, "host queries", u64::from(host));
        let mut at = exponential(&mut rng, gap);
        while at < end {
            let servers = racks.servers(host, scenario.fanin(), &mut rng);
            queries.push(Query { at, host, servers });
            at += exponential(&mut rng, gap);
        }
    }
    queries
}
