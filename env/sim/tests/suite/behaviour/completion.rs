//! Every flow completes, none faster than the line allows, and the network empties.

use bufgym_sim::scenario::Scenario;
use bufgym_sim::units::Duration;
use proptest::prelude::*;

use crate::behaviour::setup::{MANY_EVENTS, any_setup, config};

/// Returns the least time from the establishment to the last byte: all packets on the host's line, then
/// the last one on the port's.
fn least_time(scenario: &Scenario, size: u64) -> Duration {
    let mss = u64::from(scenario.packets.mss);
    let packets = size.div_ceil(mss);
    let last_payload = size - (packets - 1) * mss;
    let headers = scenario.full_packet_bytes() - mss + u64::from(scenario.packets.overhead_bytes);
    let rate = scenario.rate();
    let full = rate.transmission_time(mss + headers) * (packets - 1);
    let last = rate.transmission_time(last_payload + headers);
    let propagation = scenario.propagation();
    full + last + propagation + last + propagation
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_flow_completes_and_the_network_empties(setup in any_setup()) {
        let mut simulator = setup.probed();
        let mut events = 0;
        while simulator.step() {
            events += 1;
            prop_assert!(events < MANY_EVENTS, "still busy at {}", simulator.now());
        }
        prop_assert!(simulator.finished());
        prop_assert_eq!(simulator.active_flows().count(), 0);
        prop_assert_eq!(simulator.buffer().occupancy(), 0);
        prop_assert_eq!(simulator.policy().queued(), 0);
    }

    #[test]
    fn no_flow_is_faster_than_the_line(setup in any_setup()) {
        for record in setup.simulator().run().records {
            let established = record.established.expect("it completed");
            let finish = record.finish.expect("it completed");
            prop_assert!(established >= record.spec.start);
            let least = least_time(&setup.scenario, record.spec.size);
            prop_assert!(finish >= established + least, "{:?}", record);
        }
    }
}
