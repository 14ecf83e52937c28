//! FollowLQD and Credence against LQD.

use bufgym_slotted::oracle::{drops_of_lqd, flipped};
use bufgym_slotted::policy::{Afterwards, Credence, FollowLqd, LongestQueueDrop, Policy, Verdict};
use bufgym_slotted::{
    Arrival, Arrivals, Counts, Fate, Generator, GeneratorOptions, Kind, Observer, Order, Packet,
    Packets, Queues, SlottedError, Switch, run,
};
use bufgym_util::rng;
use proptest::prelude::*;

use crate::instances::{PlainLqd, unit_instances};

/// A policy that asserts after every arrival and every transmission that FollowLQD's thresholds
/// are the lengths of LQD's queues, both those of `plain` and those of the run, which LQD controls.
struct Compared {
    follower: FollowLqd,
    plain: PlainLqd,
    lqd: LongestQueueDrop,
}

impl Compared {
    fn assert_equal(&self) {
        for (port, length) in self.plain.lengths.iter().enumerate() {
            assert_eq!(self.follower.threshold(port), *length, "port {port}");
        }
    }

    /// Checks that before an arrival the engine's queues are those of the plain LQD.
    fn assert_engine(&self, queues: &impl Queues) {
        for (port, length) in self.plain.lengths.iter().enumerate() {
            assert_eq!(queues.len(port), *length, "port {port}");
        }
    }
}

impl Policy for Compared {
    fn check(&self, packets: &[Packet]) -> Result<(), SlottedError> {
        self.follower.check(packets)
    }

    fn admit<Q: Queues>(&mut self, queues: &Q, arrival: &Arrival) -> Verdict {
        self.assert_engine(queues);
        self.plain.arrive(arrival.port());
        self.follower.admit(queues, arrival);
        self.assert_equal();
        self.lqd.admit(queues, arrival)
    }

    fn after_transmission<Q: Queues>(&mut self, queues: &Q, transmitted: u64) -> Afterwards {
        self.plain.transmit();
        let after = self.follower.after_transmission(queues, transmitted);
        self.assert_equal();
        self.assert_engine(queues);
        after
    }

    fn idle(&mut self, slots: u64) {
        self.follower.idle(slots);
        self.assert_equal();
    }
}

/// Marks of the packets: true for those that were not lost.
struct Kept(Vec<bool>);

impl<S> Observer<S> for Kept {
    fn lost(&mut self, index: usize, _fate: Fate) {
        self.0[index] = false;
    }
}

fn compare(switch: &Switch, arrivals: &Arrivals) {
    let mut compared = Compared {
        follower: FollowLqd::new(switch),
        plain: PlainLqd::new(switch),
        lqd: LongestQueueDrop,
    };
    let packets = arrivals.packets();
    let watch = &mut bufgym_slotted::NoObserver;
    let mut counts = Counts::new(switch);
    run(&mut counts, &mut compared, packets, None, watch).unwrap();
    compared.follower = FollowLqd::new(switch);
    let mut told_apart = Packets::new(switch, Kind::Unit);
    run(&mut told_apart, &mut compared, packets, None, watch).unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn thresholds_are_the_lengths_of_lqd_at_every_step(instance in unit_instances(9, 12, 120)) {
        compare(&instance.switch, &instance.arrivals);
    }

    #[test]
    fn the_perfect_oracle_names_the_packets_that_lqd_loses(instance in unit_instances(9, 12, 120)) {
        let packets = instance.arrivals.packets();
        let mut queues = Packets::new(&instance.switch, Kind::Unit);
        let mut kept = Kept(vec![true; packets.len()]);
        run(&mut queues, &mut LongestQueueDrop, packets, None, &mut kept).unwrap();
        let drops = drops_of_lqd(&instance.switch, packets).unwrap();
        let kept_by_oracle: Vec<_> = drops.iter().map(|drop| !drop).collect();
        prop_assert_eq!(kept.0, kept_by_oracle);
    }

    #[test]
    fn perfect_predictions_transmit_what_lqd_transmits(
        ports in 1..6_u32,
        share in 1..5_u64,
        random in unit_instances(5, 1, 100),
    ) {
        let buffer = share * u64::from(ports);
        let packets: Vec<_> = random.arrivals.packets().iter()
            .map(|packet| Packet { port: packet.port % ports, ..*packet })
            .collect();
        let switch = Switch::new(ports, buffer, Order::Fifo).unwrap();
        let drops = drops_of_lqd(&switch, &packets).unwrap();
        let mut credence = Credence::new(&switch, drops.clone());
        let mut queues = Packets::new(&switch, Kind::Unit);
        let mut kept = Kept(vec![true; packets.len()]);
        let outcome = run(&mut queues, &mut credence, &packets, None, &mut kept).unwrap();
        let lqd = drops.iter().filter(|drop| !**drop).count() as u64;
        prop_assert_eq!(outcome.transmitted, lqd);
    }

    #[test]
    fn wrong_predictions_transmit_at_least_a_share_of_the_optimum(
        ports in 1..6_u32,
        share in 1..5_u64,
        random in unit_instances(5, 1, 100),
    ) {
        let packets: Vec<_> = random.arrivals.packets().iter()
            .map(|packet| Packet { port: packet.port % ports, ..*packet })
            .collect();
        let instance = crate::instances::Instance::new(
            ports, share * u64::from(ports), Order::Fifo, packets,
        );
        let credence = instance.run("credence:flip=1").transmitted;
        prop_assert!(credence * u64::from(ports) >= instance.run("opt").transmitted);
    }
}

#[test]
fn thresholds_follow_lqd_through_bursts_and_long_idle_times() {
    let switch = Switch::new(13, 50, Order::Fifo).unwrap();
    for (seed, rate) in [(1, 0.02), (2, 0.2), (3, 1.0)] {
        let options = GeneratorOptions {
            burst_rate: Some(rate),
            seed,
            ..GeneratorOptions::default()
        };
        let arrivals = Generator::PoissonBursts
            .arrivals(&switch, 60, &options)
            .unwrap();
        compare(&switch, &arrivals);
    }
}

#[test]
fn predictions_are_inverted_as_often_as_asked_and_nested() {
    let drops = vec![false; 20_000];
    let flip = |p| flipped(&drops, p, rng::stream(3, "slotted oracle", 0));
    let (few, many) = (flip(0.2), flip(0.6));
    let count = |list: &[bool]| list.iter().filter(|flipped| **flipped).count();
    // Six standard deviations: 6 sqrt(20000 * 0.24) = 416.
    assert!(count(&few).abs_diff(4_000) < 416, "{}", count(&few));
    assert!(count(&many).abs_diff(12_000) < 416, "{}", count(&many));
    assert!(few.iter().zip(&many).all(|(few, many)| !few || *many));
    assert_eq!(count(&flip(0.0)), 0);
    assert_eq!(count(&flip(1.0)), 20_000);
}
