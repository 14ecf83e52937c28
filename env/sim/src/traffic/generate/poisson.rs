//! Flows of a workload towards active ports (NDT §VI-A).

use bufgym_util::convert::index;
use bufgym_util::rng::{below, stream, uniform};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{distinct, exponential, load_of, log_uniform, start_at, uniform_in, workload_of};
use crate::scenario::{Arrivals, Scenario};
use crate::traffic::{FlowSpec, SizeDistribution, Trace};

/// Flows towards one active port.
struct Port {
    port: u32,
    /// Distinct hosts, fixed for the trace, in random order. Flows that start together are added in
    /// this order, so that no host always comes first.
    sources: Vec<u32>,
    /// Time between arrivals of flows or groups, seconds.
    mean_gap: f64,
    /// Next arrival, seconds.
    next: f64,
    rng: Xoshiro256PlusPlus,
}

impl Port {
    fn advance(&mut self) {
        self.next += exponential(&mut self.rng, self.mean_gap);
    }

    fn flow(&mut self, src: u32, sizes: &SizeDistribution, query: i64) -> FlowSpec {
        FlowSpec {
            id: 0,
            src,
            dst: self.port,
            start: start_at(self.next),
            size: sizes.sample(uniform(&mut self.rng)),
            kind: 0,
            query,
            priority: 0,
        }
    }
}

/// Generates flows of one workload to every active port; see [`generate`](super::generate).
pub(super) fn generate(scenario: &Scenario, trace_seed: u64) -> Trace {
    let workload = workload_of(scenario, trace_seed);
    let sizes = workload.distribution();
    let flow_gap = scenario.flow_gap_seconds(sizes, load_of(scenario, trace_seed));
    let mut rng = stream(trace_seed, "trace", 0);
    let synchronised = match scenario.traffic.arrivals {
        Arrivals::Spread => false,
        Arrivals::Synchronised => true,
        Arrivals::Mixed => uniform(&mut rng) < 0.5,
    };
    let count = log_uniform(&mut rng, scenario.traffic.flows) as usize;
    let mut ports = active_ports(scenario, trace_seed, flow_gap, synchronised, &mut rng);

    let mut flows = Vec::with_capacity(count + scenario.port_count());
    let mut group = 0;
    while flows.len() < count {
        let Some(port) = ports.iter_mut().min_by(|a, b| a.next.total_cmp(&b.next)) else {
            break;
        };
        if synchronised {
            for place in 0..port.sources.len() {
                let src = port.sources[place];
                flows.push(port.flow(src, sizes, group));
            }
            group += 1;
        } else {
            let src = port.sources[index(below(&mut port.rng, port.sources.len() as u64))];
            flows.push(port.flow(src, sizes, -1));
        }
        port.advance();
    }
    flows.truncate(count);
    Trace {
        flows,
        kinds: vec![workload.short_name().to_owned()],
        seed: trace_seed,
    }
}

fn active_ports(
    scenario: &Scenario,
    trace_seed: u64,
    flow_gap: f64,
    synchronised: bool,
    rng: &mut Xoshiro256PlusPlus,
) -> Vec<Port> {
    let active = uniform_in(rng, scenario.traffic.active_ports);
    let all: Vec<u32> = (0..scenario.network.ports).collect();
    let mut chosen = distinct(rng, all.clone(), active);
    // The order matters only for simultaneous arrivals at two ports, which are very unlikely.
    chosen.sort_unstable();
    chosen
        .into_iter()
        .map(|port| {
            let mut rng = stream(trace_seed, "port", u64::from(port));
            let degree = uniform_in(&mut rng, scenario.traffic.incast_degree);
            let others = all.iter().copied().filter(|host| *host != port).collect();
            let sources = distinct(&mut rng, others, degree);
            let mean_gap = if synchronised {
                flow_gap * f64::from(degree)
            } else {
                flow_gap
            };
            let mut port = Port {
                port,
                sources,
                mean_gap,
                next: 0.0,
                rng,
            };
            port.advance();
            port
        })
        .collect()
}
