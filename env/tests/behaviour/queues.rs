//! What a switch port does with its queue: first in, first out, at line rate, without a pause.

use proptest::prelude::*;

use crate::probe::Departure;
use crate::setup::{Setup, any_setup, config};

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
}
