//! The traffic generator of the NDT scenarios (NDT §VI-A).

use rand_xoshiro::Xoshiro256PlusPlus;

use super::{FlowSpec, SizeDistribution, Trace};
use crate::rng::{below, stream, uniform};
use crate::scenario::{Arrivals, RangeU32, Scenario};
use crate::units::Time;

/// Flows towards one active port.
struct Port {
    port: u32,
    /// Distinct, fixed for the trace, in the order drawn: flows that start together are inserted
    /// in this order, so that no host always comes first.
    sources: Vec<u32>,
    /// Time between arrivals of flows or groups, seconds.
    mean_gap: f64,
    /// Next arrival, seconds.
    next: f64,
    rng: Xoshiro256PlusPlus,
}

impl Port {
    fn advance(&mut self) {
        // 1 - u is in (0, 1], so that the logarithm is finite.
        self.next -= self.mean_gap * libm::log(1.0 - uniform(&mut self.rng));
    }

    fn flow(&mut self, src: u32, sizes: &SizeDistribution, query: i64) -> FlowSpec {
        // The limit is out of reach unless a first gap is extremely long.
        let start_ns = ((self.next * 1e9).round() as u64).min(Trace::MAX_START_NS);
        FlowSpec {
            id: 0,
            src,
            dst: self.port,
            start: Time::from_ns(start_ns),
            size: sizes.sample(uniform(&mut self.rng)),
            kind: 0,
            query,
            priority: 0,
        }
    }
}

/// The trace of a scenario that belongs to `trace_seed`, and to nothing else.
///
/// `k ~ U{active_ports}` ports receive flows, each from `d ~ U{incast_degree}` distinct sources
/// that stay the same for the whole trace. Flows arrive at a port as a Poisson process of rate
/// `load · C / (8 · E[S])`, each from one of its sources at random (`spread`), or in groups of
/// `d` flows, one from each source, that start together, at that rate divided by `d`
/// (`synchronised`); `mixed` is one or the other with probability 1/2. The number of flows is
/// log-uniform in `flows` and exact: the last group is cut short where needed. Times are rounded
/// to nanoseconds; flows are sorted by time and numbered from 0; `query` is the number of the
/// group, -1 for `spread`.
///
/// # Panics
/// When the ranges of the scenario are not valid; [`Scenario::validate`] tells.
pub fn generate(scenario: &Scenario, trace_seed: u64) -> Trace {
    let sizes = scenario.workload.distribution();
    let mut rng = stream(trace_seed, "trace", 0);
    let synchronised = match scenario.arrivals {
        Arrivals::Spread => false,
        Arrivals::Synchronised => true,
        Arrivals::Mixed => uniform(&mut rng) < 0.5,
    };
    let count = log_uniform(&mut rng, scenario.flows) as usize;
    let mut ports = active_ports(scenario, trace_seed, synchronised, &mut rng);

    let mut flows = Vec::with_capacity(count + scenario.port_count());
    let mut group = 0;
    while flows.len() < count {
        let Some(port) = ports.iter_mut().min_by(|a, b| a.next.total_cmp(&b.next)) else {
            break;
        };
        if synchronised {
            for index in 0..port.sources.len() {
                let src = port.sources[index];
                flows.push(port.flow(src, sizes, group));
            }
            group += 1;
        } else {
            let src = port.sources[below(&mut port.rng, port.sources.len() as u64) as usize];
            flows.push(port.flow(src, sizes, -1));
        }
        port.advance();
    }
    flows.truncate(count);
    for (id, flow) in flows.iter_mut().enumerate() {
        flow.id = id as u64;
    }
    Trace {
        flows,
        kinds: vec![scenario.workload.short_name().to_owned()],
        seed: trace_seed,
    }
}

fn active_ports(
    scenario: &Scenario,
    trace_seed: u64,
    synchronised: bool,
    rng: &mut Xoshiro256PlusPlus,
) -> Vec<Port> {
    let flow_gap = scenario.flow_gap_seconds();
    let active = uniform_in(rng, scenario.active_ports);
    let all: Vec<u32> = (0..scenario.ports).collect();
    let mut chosen = distinct(rng, all.clone(), active);
    // Simultaneous arrivals at two ports are as good as impossible; the order is fixed all the same.
    chosen.sort_unstable();
    chosen
        .into_iter()
        .map(|port| {
            let mut rng = stream(trace_seed, "port", u64::from(port));
            let degree = uniform_in(&mut rng, scenario.incast_degree);
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

/// `count` distinct items, every ordered choice equally likely (Fisher-Yates, stopped early).
fn distinct(rng: &mut Xoshiro256PlusPlus, mut items: Vec<u32>, count: u32) -> Vec<u32> {
    let count = count as usize;
    assert!(
        count <= items.len(),
        "the scenario was not validated: {count} of {}",
        items.len()
    );
    for index in 0..count {
        let other = index + below(rng, (items.len() - index) as u64) as usize;
        items.swap(index, other);
    }
    items.truncate(count);
    items
}

fn uniform_in(rng: &mut Xoshiro256PlusPlus, range: RangeU32) -> u32 {
    range.min + below(rng, u64::from(range.max - range.min) + 1) as u32
}

/// A whole number whose logarithm is uniform: `n` has probability proportional to
/// `log((n + 1) / n)`.
fn log_uniform(rng: &mut Xoshiro256PlusPlus, range: RangeU32) -> u32 {
    let low = libm::log(f64::from(range.min));
    let high = libm::log(f64::from(range.max) + 1.0);
    let value = libm::exp(low + uniform(rng) * (high - low));
    (value as u32).clamp(range.min, range.max)
}
