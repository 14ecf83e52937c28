//! Queues of the flows of a trace.

use bufgym_util::rng::{below, stream};
use rand_xoshiro::Xoshiro256PlusPlus;

use crate::scenario::{FlowPriority, Scenario};
use crate::traffic::Trace;

/// Gives every flow its priority, according to `flow_priority`, `incast_priority` and
/// `second_priority`. Random priorities have a random stream of their own.
pub(super) fn assign(scenario: &Scenario, trace: &mut Trace) {
    let queues = u8::try_from(scenario.queues.queues_per_port);
    let queues = queues.expect("a valid scenario has at most 8 queues per port");
    let last = queues - 1;
    let in_cast =
        u8::try_from(scenario.queues.incast_priority).map_or(last, |queue| queue.min(last));
    let of_second =
        u8::try_from(scenario.queues.second_priority).map_or(last, |queue| queue.min(last));
    let of_others =
        u8::try_from(scenario.queues.background_priority).map_or(last, |queue| queue.min(last));
    let second = trace.second_kind();
    let mut of_flows = stream(trace.seed, "priority", 0);
    let mut of_leaves = stream(trace.seed, "priority", 1);
    let racks = 0..scenario.racks();
    let of_leaf: Vec<u8> = racks.map(|_| data_queue(last, &mut of_leaves)).collect();
    let hosts_per_leaf = scenario.network.ports / scenario.racks();
    for (flow, in_turn) in trace.flows.iter_mut().zip((0..queues).cycle()) {
        flow.priority = match scenario.queues.flow_priority {
            FlowPriority::InTurn => in_turn,
            _ if flow.query >= 0 => in_cast,
            _ if second == Some(flow.kind) => of_second,
            FlowPriority::Fixed => of_others,
            FlowPriority::RandomPerFlow => data_queue(last, &mut of_flows),
            FlowPriority::RandomPerLeaf => of_leaf[(flow.src / hosts_per_leaf) as usize],
        };
    }
}

/// Draws a random queue from 1 on; 0 if there is no other.
fn data_queue(last: u8, rng: &mut Xoshiro256PlusPlus) -> u8 {
    match last {
        0 => 0,
        _ => 1 + u8::try_from(below(rng, u64::from(last))).expect("below 8"),
    }
}
