//! The optimum against every possible choice, and against every policy.

use bufgym_slotted::opt::{optimum, optimum_by_search};
use bufgym_slotted::{Generator, Kind, Order, PolicySpec, Switch};
use proptest::prelude::*;

use crate::instances::{Instance, Size, brute_force, instances, unit_instances};

const SMALL: Size = Size {
    ports: 3,
    buffer: 4,
    packets: 11,
    amount: 4,
};
const MEDIUM: Size = Size {
    ports: 4,
    buffer: 5,
    packets: 24,
    amount: 5,
};

const ALL: [&str; 10] = [
    "cs", "st", "dt", "harmonic", "lqd", "bpd", "bad", "lwd", "mtvd", "mrd",
];

fn orders() -> impl Strategy<Value = Order> {
    prop_oneof![Just(Order::Pq), Just(Order::Fifo)]
}

fn amounts(size: Size) -> impl Strategy<Value = Instance> {
    let kinds = prop_oneof![Just(Kind::Work), Just(Kind::Value)];
    (kinds, orders()).prop_flat_map(move |(kind, order)| instances(kind, order, size))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn the_greedy_rule_is_the_best_of_all_choices(
        instance in unit_instances(3, 4, 12),
        end in prop::option::of(1..12_u64),
    ) {
        let found = optimum(&instance.switch, &instance.arrivals, end).unwrap();
        prop_assert_eq!(found.transmitted, brute_force(&instance, end));
    }

    #[test]
    fn the_greedy_rule_agrees_with_the_search_on_longer_lists(
        instance in unit_instances(4, 7, 60),
        end in prop::option::of(1..60_u64),
    ) {
        let greedy = optimum(&instance.switch, &instance.arrivals, end).unwrap();
        let search = optimum_by_search(&instance.switch, &instance.arrivals, end).unwrap();
        prop_assert_eq!(greedy.transmitted, search.transmitted);
        prop_assert_eq!(greedy.arrived, search.arrived);
    }

    #[test]
    fn the_search_is_the_best_of_all_choices(
        instance in amounts(SMALL),
        end in prop::option::of(1..20_u64),
    ) {
        let found = optimum(&instance.switch, &instance.arrivals, end).unwrap();
        prop_assert_eq!(found.transmitted_value, brute_force(&instance, end));
    }

    #[test]
    fn no_policy_beats_the_optimum(instance in amounts(MEDIUM)) {
        let best = instance.run("opt").transmitted_value;
        for policy in ALL {
            let value = instance.run(policy).transmitted_value;
            prop_assert!(value <= best, "{}: {} of {}", policy, value, best);
        }
    }

    #[test]
    fn no_policy_beats_the_optimum_of_unit_packets(instance in unit_instances(5, 12, 150)) {
        let best = instance.run("opt").transmitted;
        for policy in ALL.into_iter().chain(["followlqd", "credence", "credence:flip=0.5"]) {
            let transmitted = instance.run(policy).transmitted;
            prop_assert!(transmitted <= best, "{}: {} of {}", policy, transmitted, best);
        }
    }
}

#[test]
fn the_schedules_of_the_proofs_are_no_better_than_the_optimum() {
    let switch = Switch::new(2, 4, Order::Fifo).unwrap();
    for generator in Generator::ALL {
        if generator == Generator::PoissonBursts || generator == Generator::Theorem7 {
            continue;
        }
        let arrivals = generator.arrivals(&switch, 2, &Default::default()).unwrap();
        let best = optimum(&switch, &arrivals, arrivals.rounds_end()).unwrap();
        let scripted = PolicySpec::ScriptedOptimum
            .run(&switch, &arrivals, 1, true)
            .unwrap();
        assert!(
            scripted.transmitted_value <= best.transmitted_value,
            "{generator}: {scripted:?} {best:?}"
        );
    }
}

#[test]
fn millions_of_unit_packets_have_an_exact_optimum() {
    let switch = Switch::new(16, 500, Order::Pq).unwrap();
    let options = Default::default();
    let arrivals = Generator::PoissonBursts
        .arrivals(&switch, 1_000, &options)
        .unwrap();
    let best = optimum(&switch, &arrivals, None).unwrap();
    let lqd = PolicySpec::LongestQueueDrop
        .run(&switch, &arrivals, 1, false)
        .unwrap();
    assert!(lqd.transmitted <= best.transmitted);
    assert!(best.transmitted <= 2 * lqd.transmitted);
    assert_eq!(best.arrived, 500_000);
}
