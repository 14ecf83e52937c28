//! No byte and no packet is lost or counted twice.

use bufgym_sim::units::Instant;
use proptest::prelude::*;

use crate::behaviour::setup::{EVENTS_PER_CHECK, MANY_EVENTS, any_setup, config};

proptest! {
    #![proptest_config(config())]

    #[test]
    fn bytes_and_packets_are_conserved_and_time_never_goes_back(setup in any_setup()) {
        let mut simulator = setup.simulator();
        let mut last = Instant::ZERO;
        for event in 0..MANY_EVENTS {
            if simulator.finished() || !simulator.step() {
                break;
            }
            prop_assert!(simulator.now() >= last);
            last = simulator.now();
            if event % EVENTS_PER_CHECK == 0 {
                let checked = simulator.check_invariants();
                prop_assert!(checked.is_ok(), "{:?}", checked);
                prop_assert!(simulator.packets_are_placed_once());
                prop_assert!(simulator.sack_entries_are_balanced());
                prop_assert!(simulator.records_are_balanced());
            }
        }
        prop_assert_eq!(simulator.check_invariants(), Ok(()));
        prop_assert!(simulator.sack_entries_are_balanced());
        prop_assert!(simulator.records_are_balanced());
    }

    /// The policy's events, the buffer's counts and the outcome's values agree.
    #[test]
    fn policy_buffer_and_outcome_tell_the_same(setup in any_setup()) {
        let mut simulator = setup.probed();
        let summary = simulator.run().summary;
        let probe = simulator.policy();
        prop_assert_eq!(&probe.problem, &None);
        prop_assert_eq!(probe.departures.len() as u64, summary.packets_forwarded);
        prop_assert_eq!(probe.enqueued, summary.packets_forwarded + probe.queued() as u64);
        prop_assert_eq!(probe.drops, summary.drops);
        prop_assert_eq!(probe.dropped_bytes, summary.dropped_bytes);
        prop_assert!(summary.drops_data <= summary.drops);
        prop_assert!(summary.max_occupancy_bytes <= simulator.buffer().capacity());
    }
}
