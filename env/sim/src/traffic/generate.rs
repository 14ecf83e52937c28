//! The traffic generators.

mod hosts;
mod poisson;
mod priorities;
mod queries;

use bufgym_util::convert::{floor_u32, floor_u64, index};
use bufgym_util::rng::{below, stream, uniform};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::Trace;
use crate::scenario::{Demand, RangeU32, Scenario, Sizes, Traffic};
use crate::units::Instant;

/// Generates the trace of a scenario for `trace_seed`. The same arguments give the same trace.
///
/// Load and workload are drawn for each trace if the scenario has several. The number of flows is
/// log-uniform in `flows`. Times are rounded to nanoseconds. Flows are sorted by time and numbered
/// from 0. `query` is the number of the group of flows that start together, or -1 for flows outside
/// groups.
///
/// - `poisson`: `k ~ U{active_ports}` ports receive flows. Each has `d ~ U{incast_degree}` distinct
///   sources, which stay the same for the whole trace. With `spread` the flows of a port are a
///   Poisson process of rate `load · C / (8 · E[S])`, each from a random source of the port. With
///   `synchronised` groups of `d` flows, one from each source, start together; the groups are a
///   Poisson process of that rate divided by `d`. `mixed` is one or the other with probability 1/2.
///   The number of flows is exact: the last group is cut short if needed.
/// - `incast_elephants`: one of `k ~ U{active_ports}` ports sends queries, a Poisson process with a
///   mean gap of `query_gap_us`. `d ~ U{incast_degree}` distinct hosts answer a query at the same
///   time, each with `response_bytes`. The other `k - 1` ports receive elephants of
///   `elephant_bytes`, each from a random host. Elephants start at regular intervals, the first at
///   a random time, and offer `load`.
/// - `bursts_over_elephants`: each of `k ~ U{active_ports}` ports receives such elephants and such
///   answers, all from hosts that receive nothing.
///
/// If `demand` is not `ports`, every host sends flows for `warmup_ms + measure_ms`, a Poisson process
/// of [`Scenario::host_flow_rate`]: with `ring` to random hosts of the next leaf, with `other_leaf` to
/// random hosts of random other leaves, with `uniform` to any other host. The host also asks queries, a
/// Poisson process of `query_rate`. `query_fanin` distinct hosts answer each at the same time, with
/// equal parts of `query_share` of the buffer of a leaf: hosts of the next leaf, of a random other leaf
/// (of all other leaves if it has too few), or of all. Hosts have random streams of their own. With
/// `second_load` there is a second class of flows, of the kind [`Trace::SECOND_KIND`]. `load_hosts`,
/// `second_hosts` and `query_hosts` select the hosts of a leaf that have flows of each class, and
/// `demand_leaves` selects the leaves that start any.
///
/// `incast_elephants` and `bursts_over_elephants` never cut a query short: the trace ends before the
/// first query that would exceed the number of flows.
///
/// # Panics
/// When the ranges of the scenario are not valid; see [`Scenario::validate`].
pub fn generate(scenario: &Scenario, trace_seed: u64) -> Trace {
    let mut trace = match scenario.traffic.kind {
        _ if scenario.demand.kind != Demand::Ports => hosts::generate(scenario, trace_seed),
        Traffic::Poisson => poisson::generate(scenario, trace_seed),
        Traffic::IncastElephants | Traffic::BurstsOverElephants => {
            queries::generate(scenario, trace_seed)
        }
    };
    for (id, flow) in (0..).zip(&mut trace.flows) {
        flow.id = id;
    }
    priorities::assign(scenario, &mut trace);
    trace
}

/// Draws the load of the trace. It has its own random stream, so that other draws do not depend on
/// whether the load is fixed.
fn load_of(scenario: &Scenario, trace_seed: u64) -> f64 {
    let load = scenario.traffic.load;
    if load.is_single() {
        return load.min;
    }
    load.min + uniform(&mut stream(trace_seed, "load", 0)) * (load.max - load.min)
}

/// Draws the workload of the trace, also from its own random stream.
fn workload_of(scenario: &Scenario, trace_seed: u64) -> Sizes {
    let count = u64::from(scenario.traffic.workload.count());
    let chosen = index(below(&mut stream(trace_seed, "workload", 0), count));
    scenario
        .traffic
        .workload
        .iter()
        .nth(chosen)
        .expect("a number below the count")
}

/// Converts seconds to a start time. Only an extremely long first gap reaches the limit.
fn start_at(seconds: f64) -> Instant {
    Instant::from_ns(floor_u64((seconds * 1e9).round()).min(Trace::MAX_START_NS))
}

/// Draws an exponential gap, seconds.
fn exponential(rng: &mut Xoshiro256PlusPlus, mean: f64) -> f64 {
    // 1 - u is in (0, 1], so the logarithm is finite.
    -mean * libm::log(1.0 - uniform(rng))
}

/// Draws `count` distinct items, every ordered choice equally likely (Fisher-Yates, stopped early).
fn distinct(rng: &mut Xoshiro256PlusPlus, mut items: Vec<u32>, count: u32) -> Vec<u32> {
    let count = count as usize;
    assert!(
        count <= items.len(),
        "the scenario was not validated: {count} of {}",
        items.len()
    );
    for place in 0..count {
        let other = place + index(below(rng, (items.len() - place) as u64));
        items.swap(place, other);
    }
    items.truncate(count);
    items
}

fn uniform_in(rng: &mut Xoshiro256PlusPlus, range: RangeU32) -> u32 {
    let above = below(rng, u64::from(range.max - range.min) + 1);
    range.min + u32::try_from(above).expect("below 2^32")
}

/// Draws a whole number whose logarithm is uniform: `n` has probability proportional to
/// `log((n + 1) / n)`.
fn log_uniform(rng: &mut Xoshiro256PlusPlus, range: RangeU32) -> u32 {
    let low = libm::log(f64::from(range.min));
    let high = libm::log(f64::from(range.max) + 1.0);
    let value = libm::exp(low + uniform(rng) * (high - low));
    floor_u32(value).clamp(range.min, range.max)
}
