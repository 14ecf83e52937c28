//! Every packet is counted once, whatever the policy.

use bufgym_slotted::oracle::{drops_of_lqd, flipped};
use bufgym_slotted::policy::*;
use bufgym_slotted::{
    Counts, Generator, GeneratorOptions, Kind, NoObserver, Observer, Order, Outcome, Packet,
    Packets, PolicySpec, Queues, Switch, run,
};
use proptest::prelude::*;

use crate::instances::{Instance, Size, instances, unit_instances};

const SIZE: Size = Size {
    ports: 5,
    buffer: 9,
    packets: 80,
    amount: 7,
};

/// Compares sums over the queues with the totals that the queues report.
struct Sums;

impl<S: Queues> Observer<S> for Sums {
    fn after_arrival(&mut self, queues: &S) {
        let total: u64 = (0..queues.ports()).map(|port| queues.len(port)).sum();
        assert_eq!(total, queues.stored());
        assert!(total <= queues.capacity());
        let longest = (0..queues.ports()).map(|port| queues.len(port)).max();
        assert_eq!(longest, Some(queues.longest()));
    }

    fn after_transmission(&mut self, queues: &S, _transmitted: u64) {
        self.after_arrival(queues);
    }
}

fn simulate<P: Policy>(instance: &Instance, mut policy: P) -> Outcome {
    let packets = instance.arrivals.packets();
    let mut queues = Packets::new(&instance.switch, instance.arrivals.kind());
    run(&mut queues, &mut policy, packets, None, &mut Sums).unwrap()
}

fn check(instance: &Instance, outcome: Outcome) {
    assert_eq!(outcome.arrived, instance.arrivals.packets().len() as u64);
    assert_eq!(outcome.left(), 0);
    let last = instance.arrivals.packets().last().unwrap().slot;
    assert!(outcome.slots > last);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_packet_is_transmitted_dropped_or_pushed_out(
        instance in prop_oneof![
            instances(Kind::Work, Order::Pq, SIZE),
            instances(Kind::Work, Order::Fifo, SIZE),
            instances(Kind::Value, Order::Pq, SIZE),
            instances(Kind::Value, Order::Fifo, SIZE),
        ],
    ) {
        check(&instance, simulate(&instance, CompleteSharing));
        check(&instance, simulate(&instance, LongestQueueDrop));
        check(&instance, simulate(&instance, BiggestPacketDrop));
        check(&instance, simulate(&instance, BiggestAverageDrop));
        check(&instance, simulate(&instance, LargestWorkDrop::default()));
        check(&instance, simulate(&instance, LargestWorkDrop::flushing()));
        check(&instance, simulate(&instance, MinimalTotalValueDrop));
        check(&instance, simulate(&instance, MaximalRatioDrop::default()));
    }

    /// Queues that count lengths and queues that keep packets give the same results.
    #[test]
    fn counted_queues_do_what_queues_of_packets_do(
        instance in unit_instances(9, 14, 150),
        flip in 0.0..1.0_f64,
    ) {
        let (switch, packets) = (&instance.switch, instance.arrivals.packets());
        macro_rules! compare {
            ($policy:expr) => {{
                let mut queues = Counts::new(switch);
                let counted = run(&mut queues, &mut $policy, packets, None, &mut Sums).unwrap();
                prop_assert_eq!(counted, simulate(&instance, $policy));
            }};
        }
        compare!(DynamicThreshold { alpha: 0.7 });
        compare!(Harmonic::new(switch));
        compare!(LongestQueueDrop);
        compare!(LargestWorkDrop::default());
        compare!(LargestWorkDrop::flushing());
        compare!(BiggestAverageDrop);
        compare!(MaximalRatioDrop::default());
        compare!(FollowLqd::new(switch));
        let drops = drops_of_lqd(switch, packets).unwrap();
        let drops = flipped(&drops, flip, bufgym_util::rng::stream(1, "test", 0));
        compare!(Credence::new(switch, drops.clone()));
    }
}

#[test]
fn a_run_ends_in_the_slot_of_the_last_packet() {
    let packets = vec![
        Packet::unit(0, 0),
        Packet::unit(0, 0),
        Packet::unit(1_000_000_000, 1),
    ];
    let instance = Instance::new(2, 4, Order::Fifo, packets);
    assert_eq!(instance.run("cs").slots, 1_000_000_001);
    assert_eq!(instance.run("opt").slots, 1_000_000_001);
    assert_eq!(instance.run("followlqd").transmitted, 3);
}

#[test]
fn until_the_last_round_leaves_the_rest_in_the_buffer() {
    let switch = Switch::new(4, 16, Order::Pq).unwrap();
    let arrivals = Generator::FollowLqdLowerBound
        .arrivals(&switch, 10, &GeneratorOptions::default())
        .unwrap();
    let policy: PolicySpec = "lqd".parse().unwrap();
    let cut = policy.run(&switch, &arrivals, 1, true).unwrap();
    let whole = policy.run(&switch, &arrivals, 1, false).unwrap();
    assert_eq!(cut.slots, 21);
    assert!(cut.left() > 0);
    assert_eq!(whole.left(), 0);
    assert_eq!(whole.transmitted, cut.transmitted + cut.left());
}

#[test]
fn the_same_seed_gives_the_same_arrivals_and_the_same_run() {
    let switch = Switch::new(6, 30, Order::Pq).unwrap();
    let with = |seed| {
        let options = GeneratorOptions {
            seed,
            ..GeneratorOptions::default()
        };
        Generator::PoissonBursts
            .arrivals(&switch, 50, &options)
            .unwrap()
    };
    assert_eq!(with(4), with(4));
    assert_ne!(with(4), with(5));
    let run = |seed| {
        let policy: PolicySpec = "credence:flip=0.5".parse().unwrap();
        policy.run(&switch, &with(4), seed, false).unwrap()
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
    let mut queues = Counts::new(&switch);
    let packets = with(4);
    let outcome = run_cs(&mut queues, packets.packets());
    assert_eq!(outcome.arrived, 50 * 30);
}

fn run_cs(queues: &mut Counts, packets: &[Packet]) -> Outcome {
    run(queues, &mut CompleteSharing, packets, None, &mut NoObserver).unwrap()
}
