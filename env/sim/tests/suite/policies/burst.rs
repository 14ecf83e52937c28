//! Burst tolerance: the length of a queue before a burst loses its first packet, with other ports
//! congested (Eq. 8, 10 and 11 of the ABM paper), under Dynamic Threshold and under ABM.
//!
//! All rates are in units of the line rate. The burst has a port and a priority of its own, and its
//! queue drains at 1.

use bufgym_sim::units::Instant;

use crate::policies::overload::{Overload, Stream, assert_close, scenario, trace};

const BURST: Instant = Instant::from_ms(40);

/// Tolerance. A queue's length at its first loss is known up to a packet; thresholds move while one
/// arrives.
const TOLERANCE: f64 = 0.05;

/// Size of the buffer B, bytes.
const BUFFER: f64 = 1_500_000.0;

/// Returns the bytes in the burst's queue when it loses its first packet: a burst at `rate` line rates,
/// with `congested` other ports.
fn tolerated(policy: &str, rate: u32, congested: u32) -> f64 {
    let scenario = scenario(&["queues_per_port=2"]);
    assert_eq!(scenario.network.buffer_bytes as f64, BUFFER);
    let mut streams: Vec<_> = (0..congested).map(|port| Stream::twice(port, 1)).collect();
    streams.push(Stream {
        port: congested,
        priority: 0,
        senders: rate,
        start: BURST,
    });
    let mut overload = Overload::new(&scenario, &trace(&scenario, &streams), policy);
    let queue = 2 * congested as usize;
    overload.run_until(BURST);
    assert_eq!(overload.simulator.buffer().queue(queue), 0);
    loop {
        if let Some(bytes) = overload.simulator.policy().first_loss[queue] {
            return bytes as f64;
        }
        assert!(overload.simulator.step(), "the burst loses nothing");
    }
}

/// The threshold falls no faster than the other queues drain, so the burst gets its share of the steady
/// state. Under Dynamic Threshold that share is the smaller, the more ports are congested (Eq. 6);
/// under ABM it does not depend on them (Eq. 10).
#[test]
fn a_slow_burst_gets_its_steady_share() {
    for congested in [1, 2, 4] {
        let n = f64::from(congested);
        let what = format!("{congested} congested ports");
        let dt = BUFFER / (1.0 + n + 1.0);
        let dt_found = tolerated("dt:alpha=1", 2, congested);
        assert_close(dt_found, dt, TOLERANCE, &format!("dt, {what}"));
        // α_H = 2, α_L = 1.
        let abm = 2.0 * BUFFER / (1.0 + 2.0 + 1.0);
        let abm_found = tolerated("abm:alphas=2/1,periodic_rtts=1", 2, congested);
        assert_close(abm_found, abm, TOLERANCE, &format!("abm, {what}"));
    }
}

/// Returns `(1 + ω (r - 1 - μ)/(r - 1))` of Eq. 8 and 11. A fast burst gets less than its initial
/// threshold by this factor, if the others together drain only at `drain`.
fn haste(omega: f64, rate: u32, drain: f64) -> f64 {
    let growth = f64::from(rate) - 1.0;
    1.0 + omega * (growth - drain) / growth
}

/// Eq. 8: Dynamic Threshold, `r > 1 + n + 1/α`.
#[test]
fn a_fast_burst_meets_a_falling_threshold_under_dynamic_threshold() {
    for (alpha, rate, congested) in [(1.0, 5, 1), (1.0, 12, 1), (1.0, 7, 2), (2.0, 8, 4)] {
        let n = f64::from(congested);
        assert!(f64::from(rate) > 1.0 + n + 1.0 / alpha, "not a fast burst");
        let expected = alpha * BUFFER / ((1.0 + n * alpha) * haste(alpha, rate, n));
        let found = tolerated(&format!("dt:alpha={alpha}"), rate, congested);
        let what = format!("α {alpha}, r {rate}, {congested} congested ports");
        assert_close(found, expected, TOLERANCE, &what);
    }
}

/// Eq. 11: ABM, `r > 1 + n + n/α_L`. The priorities in its first factor are those that use the buffer
/// when the burst begins (Theorem 5, Eq. 40).
#[test]
fn a_fast_burst_meets_a_falling_threshold_under_abm() {
    let cases = [("1/1", 1.0, 1.0, 5, 1), ("1/1", 1.0, 1.0, 12, 1)]
        .into_iter()
        .chain([("1/1", 1.0, 1.0, 8, 2), ("2/1", 2.0, 1.0, 8, 2)])
        .chain([("0.5/2", 0.5, 2.0, 10, 4)]);
    for (alphas, high, low, rate, congested) in cases {
        let n = f64::from(congested);
        assert!(f64::from(rate) > 1.0 + n + n / low, "not a fast burst");
        let expected = high * BUFFER / ((1.0 + low) * haste(high, rate, n));
        let policy = format!("abm:alphas={alphas},periodic_rtts=1");
        let found = tolerated(&policy, rate, congested);
        let what = format!("{policy}, r {rate}, {congested} congested ports");
        assert_close(found, expected, TOLERANCE, &what);
    }
}

/// §3.3: the first round trip's packets are admitted beyond their priority's share, even next to a
/// congested queue of the same priority.
#[test]
fn an_unscheduled_burst_gets_nearly_all_that_is_free() {
    let plain = tolerated("abm:alpha_unscheduled=0.5", 2, 2);
    let unscheduled = tolerated("abm:alpha_unscheduled=64", 2, 2);
    assert!(unscheduled > 1.5 * plain, "{unscheduled} {plain}");
}
