//! Queries that many hosts answer at the same time, and elephants (NDT §VI-B and §VI-D).

use bufgym_util::rng::{stream, uniform};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{distinct, exponential, load_of, log_uniform, start_at, uniform_in};
use crate::scenario::{Scenario, Traffic};
use crate::traffic::{FlowSpec, Trace};

const KINDS: [&str; 2] = ["incast", "elephant"];

/// Index into [`KINDS`].
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Incast = 0,
    Elephant = 1,
}

/// The flows of one kind that one port receives.
struct Process {
    kind: Kind,
    port: u32,
    /// Hosts that may send.
    senders: Vec<u32>,
    /// Time between arrivals, seconds: the mean for queries, the exact time for elephants.
    gap: f64,
    /// Next arrival, seconds.
    next: f64,
    rng: Xoshiro256PlusPlus,
}

impl Process {
    fn queries(scenario: &Scenario, trace_seed: u64, port: u32, senders: Vec<u32>) -> Process {
        let gap = scenario.traffic.query_gap_us as f64 * 1e-6;
        let mut rng = stream(trace_seed, "queries", u64::from(port));
        Process {
            kind: Kind::Incast,
            port,
            senders,
            gap,
            next: exponential(&mut rng, gap),
            rng,
        }
    }

    fn elephants(gap: f64, trace_seed: u64, port: u32, senders: Vec<u32>) -> Process {
        let mut rng = stream(trace_seed, "elephants", u64::from(port));
        Process {
            kind: Kind::Elephant,
            port,
            senders,
            gap,
            next: uniform(&mut rng) * gap,
            rng,
        }
    }

    fn advance(&mut self) {
        self.next += match self.kind {
            Kind::Incast => exponential(&mut self.rng, self.gap),
            Kind::Elephant => self.gap,
        };
    }

    /// Draws the sources of the next flows, in the order in which the flows start.
    fn sources(&mut self, scenario: &Scenario) -> Vec<u32> {
        let count = match self.kind {
            Kind::Incast => uniform_in(&mut self.rng, scenario.traffic.incast_degree),
            Kind::Elephant => 1,
        };
        distinct(&mut self.rng, self.senders.clone(), count)
    }
}

/// Generates answers to queries and elephants; see [`generate`](super::generate).
pub(super) fn generate(scenario: &Scenario, trace_seed: u64) -> Trace {
    let mut rng = stream(trace_seed, "trace", 0);
    let count = log_uniform(&mut rng, scenario.traffic.flows) as usize;
    let mut processes = processes(scenario, trace_seed, &mut rng);
    let mut flows = Vec::with_capacity(count);
    let mut queries = 0;
    while let Some(process) = processes
        .iter_mut()
        .min_by(|a, b| a.next.total_cmp(&b.next))
    {
        let sources = process.sources(scenario);
        if flows.len() + sources.len() > count {
            break;
        }
        let (size, query) = match process.kind {
            Kind::Incast => (scenario.traffic.response_bytes, queries),
            Kind::Elephant => (scenario.traffic.elephant_bytes, -1),
        };
        flows.extend(sources.into_iter().map(|src| FlowSpec {
            id: 0,
            src,
            dst: process.port,
            start: start_at(process.next),
            size,
            kind: process.kind as u16,
            query,
            priority: 0,
        }));
        queries += i64::from(process.kind == Kind::Incast);
        process.advance();
    }
    Trace {
        flows,
        kinds: KINDS.map(str::to_owned).to_vec(),
        seed: trace_seed,
    }
}

fn processes(scenario: &Scenario, trace_seed: u64, rng: &mut Xoshiro256PlusPlus) -> Vec<Process> {
    let gap = scenario.elephant_gap_seconds(load_of(scenario, trace_seed));
    let active = uniform_in(rng, scenario.traffic.active_ports);
    let receivers = distinct(rng, (0..scenario.network.ports).collect(), active);
    let hosts_except = |excluded: &[u32]| -> Vec<u32> {
        (0..scenario.network.ports)
            .filter(|host| !excluded.contains(host))
            .collect()
    };
    let queries = |port, senders| Process::queries(scenario, trace_seed, port, senders);
    let elephants = |port, senders| Process::elephants(gap, trace_seed, port, senders);
    if scenario.traffic.kind == Traffic::BurstsOverElephants {
        let senders = hosts_except(&receivers);
        return receivers
            .iter()
            .flat_map(|&port| {
                [
                    queries(port, senders.clone()),
                    elephants(port, senders.clone()),
                ]
            })
            .collect();
    }
    let with_elephants = receivers[1..]
        .iter()
        .map(|&port| elephants(port, hosts_except(&[port])));
    std::iter::once(queries(receivers[0], hosts_except(&receivers[..1])))
        .chain(with_elephants)
        .collect()
}
