//! Congestion windows stay within their bounds, and acknowledged data stays acknowledged.

use std::collections::HashMap;

use bufgym_sim::network::FlowView;
use bufgym_sim::scenario::{Recovery, Scenario, TransportKind};
use proptest::prelude::*;

use crate::behaviour::setup::{MANY_EVENTS, any_setup, config};

/// Returns the least window of a flow, bytes: one segment, so that the flow can continue. ns-3's rate
/// reduction has no such floor in a recovery, and its DCTCP has none at all: a threshold is (1 - α/2)
/// of the window, whatever the size of a segment. In these cases the timer helps.
fn least_window(scenario: &Scenario, flow: &FlowView) -> u32 {
    let ns3 = scenario.tcp.recovery == Recovery::Ns3;
    let no_floor = flow.recovering || scenario.transport.kind == TransportKind::Dctcp;
    if ns3 && no_floor {
        0
    } else {
        scenario.packets.mss
    }
}

proptest! {
    #![proptest_config(config())]

    /// Windows have at least one segment, except in the cases of ns-3. They are at most the cap, except
    /// that duplicates inflate the window in a recovery without SACK (RFC 6582 §3.2, step 3).
    #[test]
    fn windows_stay_within_their_bounds(setup in any_setup()) {
        let cap = match setup.scenario.tcp.max_cwnd_bytes {
            0 => u64::from(u32::MAX),
            bytes => bytes,
        };
        let mut simulator = setup.simulator();
        for _ in 0..MANY_EVENTS {
            if simulator.finished() || !simulator.step() {
                break;
            }
            for flow in simulator.active_flows() {
                let least = least_window(&setup.scenario, &flow);
                prop_assert!(flow.cwnd >= least, "at {}: {:?}", simulator.now(), flow);
                let inflated = flow.recovering && !setup.scenario.tcp.sack;
                let within = u64::from(flow.cwnd) <= cap || inflated;
                prop_assert!(within, "at {}: {:?}", simulator.now(), flow);
            }
        }
        prop_assert!(simulator.finished());
    }

    #[test]
    fn what_is_left_of_a_flow_never_grows(setup in any_setup()) {
        let mut left: HashMap<_, u64> = HashMap::new();
        let mut simulator = setup.simulator();
        for _ in 0..MANY_EVENTS {
            if simulator.finished() || !simulator.step() {
                break;
            }
            for flow in simulator.active_flows() {
                let before = left.insert(flow.index, flow.remaining_bytes);
                let before = before.unwrap_or(flow.remaining_bytes);
                prop_assert!(flow.remaining_bytes <= before, "at {}: {:?}", simulator.now(), flow);
            }
        }
    }
}
