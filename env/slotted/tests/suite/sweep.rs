//! Figure 14 of Credence.

use bufgym_slotted::sweep::figure14;
use bufgym_slotted::{Generator, GeneratorOptions, Order, PolicySpec, Switch};

#[test]
fn credence_is_lqd_without_false_predictions_and_keeps_its_bounds_with_them() {
    let switch = Switch::new(8, 64, Order::Fifo).unwrap();
    let options = GeneratorOptions {
        seed: 7,
        ..GeneratorOptions::default()
    };
    let arrivals = Generator::PoissonBursts
        .arrivals(&switch, 400, &options)
        .unwrap();
    let dt = PolicySpec::DynamicThreshold { alpha: 1.0 };
    let figure = figure14(&switch, &arrivals, dt, &[0.0, 0.5, 1.0], 7).unwrap();
    assert!(figure.lqd_loss > 0.0);
    assert_eq!(figure.credence[0].ratio, 1.0);
    assert!(figure.credence[0].ratio < figure.credence[1].ratio);
    assert!(figure.credence[1].ratio < figure.credence[2].ratio);
    for point in &figure.credence {
        assert!(point.ratio <= 8.0, "Lemma 2: {point:?}");
    }
    let of = |policy: PolicySpec| {
        policy
            .run(&switch, &arrivals, 7, false)
            .unwrap()
            .transmitted
    };
    let lqd = of(PolicySpec::LongestQueueDrop);
    assert_eq!(figure.dt, lqd as f64 / of(dt) as f64);
    assert_eq!(
        figure.cs,
        lqd as f64 / of(PolicySpec::CompleteSharing) as f64
    );
    assert_eq!(
        figure.harmonic,
        lqd as f64 / of(PolicySpec::Harmonic) as f64
    );
}
