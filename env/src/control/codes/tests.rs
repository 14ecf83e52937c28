use super::*;
use crate::control::ControlEnv;
use crate::control::observation::log_scaled;
use crate::control::{ControlOptions, StopReason, cell_centre};
use bufgym_sim::traffic::generate;

#[test]
fn a_logarithmic_code_is_the_rounded_value() {
    for unit in [1, 3, 250, 62_500, 500_000, 123_456_789, UNIT_LIMIT - 1] {
        let mut last = 0;
        for step in 0..40_000u64 {
            let x = (u128::from(step) * u128::from(unit) * 66 / 40_000) as u64;
            let code = log_code(x, unit);
            let exact = 255.0 * f64::from(log_scaled(x as f64 / unit as f64));
            assert!(
                (f64::from(code) - exact).abs() <= 0.5 + 1e-3,
                "{x}/{unit}: {code} for {exact}"
            );
            assert!(code >= last, "{x}/{unit}");
            last = code;
        }
        assert_eq!(last, 255);
        assert_eq!(log_code(0, unit), 0);
        assert_eq!(log_code(64 * unit, unit), 255);
        assert_eq!(log_code(u64::MAX, unit), 255);
    }
}

#[test]
fn every_threshold_is_where_its_code_begins() {
    assert!(LOG_THRESHOLDS.windows(2).all(|pair| pair[0] < pair[1]));
    for code in 1..=255u8 {
        let threshold = u64::from(LOG_THRESHOLDS[usize::from(code)]);
        // With a unit of 2^16 the thresholds are values of x.
        assert_eq!(log_code(threshold, 65_536), code);
        assert_eq!(log_code(threshold - 1, 65_536), code - 1);
    }
}

#[test]
fn the_code_of_a_queue_is_its_rounded_share() {
    for buffer in [1_000_000u64, 999_983, 510, 1_000_000_000_000] {
        for step in 0..=5_000 {
            let bytes = buffer * step / 5_000;
            let rounded = (510 * u128::from(bytes) + u128::from(buffer)) / (2 * u128::from(buffer));
            assert_eq!(
                u128::from(queue_code(bytes, buffer)),
                rounded,
                "{bytes}/{buffer}"
            );
        }
        assert_eq!(queue_code(buffer, buffer), 255);
    }
}

#[test]
fn the_code_of_a_level_is_the_centre_of_its_cell() {
    for level in 0..8u8 {
        let value = (f32::from(level_code(level)) - 128.0) / 128.0;
        assert_eq!(value, cell_centre(usize::from(level)));
    }
    assert_eq!(level_code(INITIAL_LEVEL), 80);
}

#[test]
fn encoding_rounds_halves_up_and_clamps() {
    let steps = [
        0.0, 0.5, 1.0, -0.375, 1.5, //
        -1.0, 0.001, 0.998, -1.0, 0.3, //
        0.2, 0.4, 0.6, 0.99, 0.8,
    ];
    let expected = [
        0, 128, 255, 80, 255, //
        0, 0, 254, 0, 77, //
        51, 102, 153, 255, 204,
    ];
    assert_eq!(encode(&steps), expected);
}

/// The codes computed from the switch's counters equal those of the floating-point observation,
/// except for values on the edge between two codes.
#[test]
fn the_history_follows_the_observation() {
    let mut scenario = Scenario::default();
    scenario.set("flows=150").unwrap();
    let trace = generate(&scenario, 5);
    let mut env = ControlEnv::new(&scenario, &trace, &ControlOptions::default()).unwrap();
    let mut history = CodeHistory::new(16);
    assert_eq!(history.as_slice(), encode(env.observation()));
    let (mut compared, mut off_by_one, mut large) = (0, 0, 0);
    while env.advance() == StopReason::Decision {
        history.observe(&env.reading());
        for (&code, expected) in history.as_slice().iter().zip(encode(env.observation())) {
            assert!(code.abs_diff(expected) <= 1, "{code} {expected}");
            compared += 1;
            off_by_one += usize::from(code != expected);
            large += usize::from(code > 100);
        }
        let action: Vec<f32> = (0..16).map(|port| cell_centre(port % 8)).collect();
        env.act(&action);
    }
    assert!(compared > 10_000 && large > 1_000, "{compared} {large}");
    assert!(off_by_one * 1_000 < compared, "{off_by_one} of {compared}");
}

#[test]
fn the_units_of_a_switch() {
    let units = CodeUnits::new(&Scenario::default());
    let expected = CodeUnits {
        buffer_bytes: 1_000_000,
        beta: 62_500,
        drain_ns: 500_000,
    };
    assert_eq!(units, expected);
    let fast = Scenario::default().with(|scenario| {
        scenario.network.rate_bps = 10_000_000_000_000;
        scenario.network.buffer_bytes = 2_000;
    });
    assert_eq!(CodeUnits::new(&fast).drain_ns, 1);
    let slow = Scenario::default().with(|scenario| {
        scenario.network.rate_bps = 1_000_000;
        scenario.network.buffer_bytes = 1_000_000_000_000;
    });
    assert_eq!(CodeUnits::new(&slow).drain_ns, UNIT_LIMIT - 1);
}

#[test]
fn the_header_in_c_has_these_constants() {
    let kept = include_str!("ndt_codes.h");
    assert!(
        kept == codes_header(),
        "dataplane/ndt_codes.h: generate it anew with the command at its top"
    );
}
