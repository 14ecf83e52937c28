//! Measures whether a prediction agrees with a measurement: the same policies on the same traces, twice.

use bufgym_util::rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::Rng;
use serde::Serialize;

use crate::stats::{self, Estimate, RESAMPLES};

/// Largest number of policies for which all orders are enumerated; above it, a sample is drawn.
const EXACT: usize = 8;
/// Size of that sample.
const ORDERS: usize = 100_000;

/// A policy's mean FCT on every trace, milliseconds: measured and predicted.
#[derive(Clone, Debug, PartialEq)]
pub struct Pairs {
    /// The policy.
    pub policy: String,
    /// Measured values.
    pub measured: Vec<f64>,
    /// Predicted values.
    pub predicted: Vec<f64>,
}

/// A policy that was measured and predicted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AgreementRow {
    /// The policy.
    pub policy: String,
    /// Mean over the traces of the measured mean FCT, milliseconds.
    pub measured_ms: f64,
    /// Mean over the traces of the predicted mean FCT, milliseconds.
    pub predicted_ms: f64,
    /// Mean over the traces of the measured ratio to the baseline.
    pub measured_ratio: Estimate,
    /// Mean over the traces of the predicted ratio to the baseline.
    pub predicted_ratio: Estimate,
    /// Predicted over measured mean FCT, as a ratio of the means over the traces.
    pub error: Estimate,
}

/// Agreement over all policies.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Agreement {
    /// The policies in the order given, the baseline first.
    pub rows: Vec<AgreementRow>,
    /// Kendall's τ of the orders of the policies by mean FCT: 1 if they are the same, -1 if one is the
    /// reverse of the other; NaN for fewer than two policies.
    pub kendall: f64,
    /// Share of all orders whose τ is at least as large: the probability that chance alone agrees as well.
    pub chance: f64,
}

impl Agreement {
    /// Compares these policies, the first of which is the baseline. Returns `None` if there is no policy, if
    /// they differ in their numbers of traces, or if a value is not finite.
    pub fn of(policies: &[Pairs], seed: u64) -> Option<Agreement> {
        let baseline = policies.first()?;
        let rows = policies.iter().map(|pairs| row(pairs, baseline, seed));
        let rows: Vec<AgreementRow> = rows.collect::<Option<_>>()?;
        let measured: Vec<f64> = rows.iter().map(|row| row.measured_ms).collect();
        let predicted: Vec<f64> = rows.iter().map(|row| row.predicted_ms).collect();
        let kendall = kendall(&measured, &predicted);
        let chance = chance(&measured, &predicted, kendall, seed);
        Some(Agreement {
            rows,
            kendall,
            chance,
        })
    }
}

fn row(pairs: &Pairs, baseline: &Pairs, seed: u64) -> Option<AgreementRow> {
    let ratios = |values: &[f64], of: &[f64]| {
        let ratios = values.iter().zip(of).map(|(value, of)| value / of);
        stats::bootstrap_mean(&ratios.collect::<Vec<_>>(), RESAMPLES, seed)
    };
    if pairs.measured.len() != baseline.measured.len() {
        return None;
    }
    Some(AgreementRow {
        policy: pairs.policy.clone(),
        measured_ms: stats::mean(&pairs.measured)?,
        predicted_ms: stats::mean(&pairs.predicted)?,
        measured_ratio: ratios(&pairs.measured, &baseline.measured)?,
        predicted_ratio: ratios(&pairs.predicted, &baseline.predicted)?,
        error: stats::bootstrap_ratio_of_means(&pairs.predicted, &pairs.measured, RESAMPLES, seed)?,
    })
}

/// Returns Kendall's τ-a of two lists of the same length: concordant pairs minus discordant ones, over all
/// pairs (Kendall 1938). NaN for fewer than two values.
pub fn kendall(a: &[f64], b: &[f64]) -> f64 {
    let mut score = 0.0;
    let mut pairs = 0.0;
    for later in 1..a.len().min(b.len()) {
        for earlier in 0..later {
            let signs = [a, b].map(|list| sign(list[later] - list[earlier]));
            score += signs[0] * signs[1];
            pairs += 1.0;
        }
    }
    score / pairs
}

fn sign(difference: f64) -> f64 {
    match difference {
        above if above > 0.0 => 1.0,
        below if below < 0.0 => -1.0,
        _ => 0.0,
    }
}

/// Returns the share of the orders of `b` whose τ with `a` is at least `observed`: of all orders, or of a
/// sample.
fn chance(a: &[f64], b: &[f64], observed: f64, seed: u64) -> f64 {
    let reached = |order: &[f64]| f64::from(u8::from(kendall(a, order) >= observed - 1e-12));
    let mut order = b.to_vec();
    if b.len() <= EXACT {
        let (mut hits, mut all) = (0.0, 0.0);
        every_order(&mut order, b.len(), &mut |order| {
            hits += reached(order);
            all += 1.0;
        });
        return hits / all;
    }
    let mut random = rng::stream(seed, "orders", 0);
    let hits = (0..ORDERS).map(|_| {
        shuffle(&mut order, &mut random);
        reached(&order)
    });
    hits.sum::<f64>() / ORDERS as f64
}

/// Visits every order (Heap's algorithm).
fn every_order(values: &mut Vec<f64>, length: usize, visit: &mut impl FnMut(&[f64])) {
    if length <= 1 {
        return visit(values);
    }
    for place in 0..length {
        every_order(values, length - 1, visit);
        let other = if length.is_multiple_of(2) { place } else { 0 };
        if place + 1 < length {
            values.swap(other, length - 1);
        }
    }
}

fn shuffle(values: &mut [f64], random: &mut Xoshiro256PlusPlus) {
    for last in (1..values.len()).rev() {
        let wide = u128::from(random.next_u64()) * (last as u128 + 1);
        let place = bufgym_util::convert::index(bufgym_util::convert::lower_u64(wide >> 64));
        values.swap(last, place);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kendall_counts_pairs_in_the_same_order() {
        assert_eq!(kendall(&[1.0, 2.0, 3.0], &[10.0, 20.0, 30.0]), 1.0);
        assert_eq!(kendall(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]), -1.0);
        let one_swap = kendall(&[1.0, 2.0, 3.0], &[2.0, 1.0, 3.0]);
        assert!((one_swap - 1.0 / 3.0).abs() < 1e-12);
        assert!(kendall(&[1.0], &[1.0]).is_nan());
    }

    #[test]
    fn every_order_is_visited_once() {
        for length in 1..=5_u32 {
            let mut seen = std::collections::BTreeSet::new();
            let mut count = 0;
            let mut values: Vec<f64> = (0..length).map(f64::from).collect();
            every_order(&mut values, length as usize, &mut |order| {
                seen.insert(order.iter().map(|value| *value as u32).collect::<Vec<_>>());
                count += 1;
            });
            assert_eq!(count, (1..=length).product::<u32>());
            assert_eq!(seen.len(), count as usize);
        }
    }

    #[test]
    fn chance_is_exact_for_few_policies_and_close_for_more() {
        // Of 24 orders of four, one has τ = 1.
        let few: Vec<f64> = (0..4).map(f64::from).collect();
        assert!((chance(&few, &few, 1.0, 1) - 1.0 / 24.0).abs() < 1e-12);
        let many: Vec<f64> = (0..9).map(f64::from).collect();
        let half = chance(&many, &many, 0.0, 1);
        assert!((half - 0.5).abs() < 0.06, "{half}");
    }

    #[test]
    fn rows_are_relative_to_the_first_policy() {
        let pairs = |policy: &str, factor: f64| Pairs {
            policy: policy.to_owned(),
            measured: vec![10.0 * factor, 20.0 * factor],
            predicted: vec![11.0 * factor, 22.0 * factor],
        };
        let agreement = Agreement::of(&[pairs("dt", 1.0), pairs("st", 2.0)], 1).unwrap();
        assert_eq!(agreement.kendall, 1.0);
        let st = &agreement.rows[1];
        assert_eq!((st.measured_ms, st.predicted_ms), (30.0, 33.0));
        assert_eq!(
            (st.measured_ratio.centre, st.predicted_ratio.centre),
            (2.0, 2.0)
        );
        assert!((st.error.centre - 1.1).abs() < 1e-12);
        assert_eq!(Agreement::of(&[], 1), None);
    }
}
