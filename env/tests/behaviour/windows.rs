//! Congestion windows stay within their bounds, and acknowledged data stays acknowledged.

use std::collections::HashMap;

use proptest::prelude::*;

use crate::setup::{MANY_EVENTS, any_setup, config};

proptest! {
    #![proptest_config(config())]

    /// At least one segment, so that a flow can go on; at most the cap, except that duplicates
    /// inflate the window in a recovery without SACK (RFC 6582 §3.2, step 3).
    #[test]
    fn windows_stay_within_their_bounds(setup in any_setup()) {
        let mss = setup.scenario.mss;
        let cap = match setup.scenario.max_cwnd_bytes {
            0 => u64::from(u32::MAX),
            bytes => bytes,
        };
        let mut simulator = setup.simulator();
        for _ in 0..MANY_EVENTS {
            if simulator.finished() || !simulator.step() {
                break;
            }
            for flow in simulator.active_flows() {
                prop_assert!(flow.cwnd >= mss, "at {}: {:?}", simulator.now(), flow);
                let inflated = flow.recovering && !setup.scenario.sack;
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
