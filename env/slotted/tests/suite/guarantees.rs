//! Bounds that the papers prove for all arrivals, tested on random ones.

use bufgym_slotted::policy::LargestWorkDrop;
use bufgym_slotted::{Kind, NoObserver, Order, Packets, run};
use proptest::prelude::*;

use crate::instances::{Instance, Size, instances, unit_instances};

const SMALL: Size = Size {
    ports: 4,
    buffer: 5,
    packets: 26,
    amount: 6,
};

/// Runs LWD with the flush of the analysis. Returns the transmitted packets, and the least number
/// between two iterations.
fn flushing(instance: &Instance) -> (u64, Option<u64>) {
    let mut policy = LargestWorkDrop::flushing();
    let packets = instance.arrivals.packets();
    let mut queues = Packets::new(&instance.switch, Kind::Work);
    let outcome = run(&mut queues, &mut policy, packets, None, &mut NoObserver).unwrap();
    let iterations = policy.iterations().unwrap();
    (outcome.transmitted, iterations.least_between)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    /// Kesselman and Mansour: LQD is 2-competitive.
    #[test]
    fn lqd_transmits_at_least_half_of_the_optimum(instance in unit_instances(6, 12, 150)) {
        prop_assert!(2 * instance.run("lqd").transmitted >= instance.run("opt").transmitted);
    }

    /// Theorem 5 with T = 0.
    #[test]
    fn lwd_transmits_at_least_half_of_the_optimum(
        instance in instances(Kind::Work, Order::Pq, SMALL),
    ) {
        prop_assert!(2 * instance.run("lwd").transmitted >= instance.run("opt").transmitted);
    }

    /// Theorem 5: 1 + B/(T + B), with the buffer flushed after every iteration.
    #[test]
    fn lwd_with_the_flush_keeps_the_bound_of_theorem_5(
        instance in instances(Kind::Work, Order::Pq, SMALL),
    ) {
        let (transmitted, least_between) = flushing(&instance);
        let buffer = instance.switch.buffer;
        let bound = 1.0 + buffer as f64 / (least_between.unwrap_or(0) + buffer) as f64;
        let optimum = instance.run("opt").transmitted;
        prop_assert!(
            optimum as f64 <= bound * transmitted as f64 + 1e-9,
            "{} of {}, bound {}", transmitted, optimum, bound
        );
    }

    /// Without congestion no greedy policy loses anything (Lemma 2).
    #[test]
    fn nothing_is_lost_when_everything_fits(instance in unit_instances(5, 4, 40)) {
        let instance = Instance::new(
            instance.switch.ports, 40, Order::Pq, instance.arrivals.packets().to_vec(),
        );
        for policy in ["cs", "lqd", "bpd", "bad", "lwd", "mtvd", "mrd", "followlqd", "credence", "opt"] {
            let outcome = instance.run(policy);
            prop_assert_eq!(outcome.transmitted, outcome.arrived, "{}", policy);
        }
    }

    /// Harmonic: after every arrival the k-th longest queue has at most B/(k H_N).
    #[test]
    fn harmonic_keeps_its_bound(instance in unit_instances(6, 40, 150)) {
        use bufgym_slotted::{Counts, Observer, Queues};
        struct Bound(f64);
        impl Observer<Counts> for Bound {
            fn after_arrival(&mut self, queues: &Counts) {
                let mut lengths: Vec<_> = (0..queues.ports()).map(|p| queues.len(p)).collect();
                lengths.sort_unstable_by(|a, b| b.cmp(a));
                for (k, length) in lengths.iter().enumerate() {
                    assert!(*length as f64 <= self.0 / (k + 1) as f64 + 1e-9);
                }
            }
        }
        let harmonic: f64 = (1..=instance.switch.ports).map(|k| 1.0 / f64::from(k)).sum();
        let mut bound = Bound(instance.switch.buffer as f64 / harmonic);
        let mut policy = bufgym_slotted::policy::Harmonic::new(&instance.switch);
        let mut queues = Counts::new(&instance.switch);
        run(&mut queues, &mut policy, instance.arrivals.packets(), None, &mut bound).unwrap();
    }
}
