//! The service of a switch port's queue: first in, first out, at line rate, without a pause.

use proptest::prelude::*;

use crate::behaviour::probe::Departure;
use crate::behaviour::setup::{Setup, any_setup, config};

fn departures(setup: &Setup) -> Vec<Departure> {
    let mut simulator = setup.probed();
    simulator.run();
    simulator.policy().departures.clone()
}

proptest! {
    #![proptest_config(config())]

    /// Packets of different sizes leave in the order in which they came.
    #[test]
    fn a_queue_is_first_in_first_out(setup in any_setup()) {
        for departure in departures(&setup) {
            prop_assert_eq!(departure.bytes, departure.enqueued_bytes, "{:?}", departure);
        }
    }

    #[test]
    fn a_port_is_never_faster_than_its_line(setup in any_setup()) {
        for departure in departures(&setup) {
            let started = departure.port_free.max(departure.enqueued);
            prop_assert!(departure.left >= started + departure.transmission, "{:?}", departure);
        }
    }

    /// Work conservation.
    #[test]
    fn a_port_with_a_packet_never_idles(setup in any_setup()) {
        for departure in departures(&setup) {
            let started = departure.port_free.max(departure.enqueued);
            prop_assert!(departure.left <= started + departure.transmission, "{:?}", departure);
        }
    }

    /// The histogram's percentile is that of the packets that left; one packet of each port may be in
    /// service at the end.
    #[test]
    fn the_delay_reported_is_the_delay_of_a_packet(setup in any_setup()) {
        let mut simulator = setup.probed();
        simulator.measure_waits();
        let reported = simulator.run().summary.p99_queueing_delay_us;
        let mut waits: Vec<f64> = simulator
            .policy()
            .departures
            .iter()
            .map(|d| d.left.saturating_since(d.enqueued + d.transmission).0 as f64 * 1e-6)
            .collect();
        waits.sort_by(f64::total_cmp);
        let rank = (0.99 * waits.len() as f64).ceil() as usize;
        let spare = setup.scenario.port_count() + 1;
        let at = |index: usize| waits.get(index).copied();
        let low = at(rank.saturating_sub(spare + 1)).unwrap_or(0.0);
        let high = at(rank + spare).unwrap_or(f64::INFINITY);
        prop_assert!(low * 0.996 - 3e-4 <= reported && reported <= high * 1.004 + 3e-4,
            "{reported} µs, not from {low} to {high}");
    }
}
