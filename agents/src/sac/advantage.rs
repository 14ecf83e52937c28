//! The advantage of actions by least squares.
//!
//! `A = W · z` with z the centred features of a decision
//! ([`advantage_features`](bufgym_models::critic::advantage_features)) and W the ridge regression
//! of what the joint return was beyond the state's value, older samples counting less. Closed form:
//! no step size, and every sample used fully, which matters where chance is a hundred times larger
//! than the effect. (Least squares in policy iteration: Lagoudakis and Parr 2003; a linear advantage
//! under the policy gradient: Sutton et al. 2000, theorem 2.)

use bufgym_models::critic::{ADVANTAGE, STATE, advantage_features};

use crate::replay::Batch;

/// Sums of `z zᵀ` and `z r`.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LeastSquares {
    gram: Vec<f64>,
    moment: Vec<f64>,
}

impl LeastSquares {
    pub(super) fn new() -> LeastSquares {
        LeastSquares {
            gram: vec![0.0; ADVANTAGE * ADVANTAGE],
            moment: vec![0.0; ADVANTAGE],
        }
    }

    /// Everything, for storing.
    pub(super) fn sums(&self) -> impl Iterator<Item = f64> + '_ {
        self.gram.iter().chain(&self.moment).copied()
    }

    /// From [`sums`](LeastSquares::sums); none when there are too few or too many.
    pub(super) fn from_sums(sums: &[f64]) -> Option<LeastSquares> {
        let (gram, moment) = sums.split_at_checked(ADVANTAGE * ADVANTAGE)?;
        (moment.len() == ADVANTAGE).then(|| LeastSquares {
            gram: gram.to_vec(),
            moment: moment.to_vec(),
        })
    }

    /// Multiplies all earlier samples by `keep` and adds those of a batch: `surplus` is by how much
    /// the return of each decision, as a mean over ports, exceeded the state's value.
    pub(super) fn add(&mut self, batch: &Batch, surplus: &[f32], keep: f64) {
        self.gram.iter_mut().for_each(|sum| *sum *= keep);
        self.moment.iter_mut().for_each(|sum| *sum *= keep);
        let ports = batch.ports;
        let cells = batch.probabilities.len() / batch.actions.len();
        let mut features = vec![0.0; ADVANTAGE];
        for (row, &surplus) in surplus.iter().enumerate() {
            features.fill(0.0);
            let span = |width: usize| row * ports * width..(row + 1) * ports * width;
            advantage_features(
                &batch.state[span(STATE)],
                &batch.actions[span(1)],
                &batch.probabilities[span(cells)],
                &mut features,
            );
            for (i, &left) in features.iter().enumerate() {
                self.moment[i] += left * f64::from(surplus);
                // The upper triangle is all that is read.
                let sums = &mut self.gram[i * ADVANTAGE + i..(i + 1) * ADVANTAGE];
                for (sum, &right) in sums.iter_mut().zip(&features[i..]) {
                    *sum += left * right;
                }
            }
        }
    }

    /// The weights `(Σ z zᵀ + ridge I)⁻¹ Σ z r`, by Cholesky's factorisation. O(n³).
    pub(super) fn weights(&self, ridge: f64) -> Vec<f32> {
        const N: usize = ADVANTAGE;
        let mut factor = vec![0.0; N * N];
        for i in 0..N {
            for j in 0..=i {
                let done: f64 = (0..j).map(|k| factor[i * N + k] * factor[j * N + k]).sum();
                let rest = self.gram[j * N + i] - done;
                factor[i * N + j] = if i == j {
                    (rest + ridge).max(f64::MIN_POSITIVE).sqrt()
                } else {
                    rest / factor[j * N + j]
                };
            }
        }
        let mut solution = self.moment.clone();
        for i in 0..N {
            let done: f64 = (0..i).map(|k| factor[i * N + k] * solution[k]).sum();
            solution[i] = (solution[i] - done) / factor[i * N + i];
        }
        for i in (0..N).rev() {
            let done: f64 = (i + 1..N).map(|k| factor[k * N + i] * solution[k]).sum();
            solution[i] = (solution[i] - done) / factor[i * N + i];
        }
        solution.into_iter().map(|weight| weight as f32).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_weights_solve_the_normal_equations() {
        let mut sums = LeastSquares::new();
        let value = |i: usize, j: usize| ((i * 7 + j * 13) % 11) as f64 / 11.0 - 0.4;
        for sample in 0..400 {
            for i in 0..ADVANTAGE {
                for j in i..ADVANTAGE {
                    sums.gram[i * ADVANTAGE + j] += value(sample, i * i) * value(sample, j * j);
                }
                sums.moment[i] += value(sample, i * i);
            }
        }
        let ridge = 0.5;
        let weights = sums.weights(ridge);
        for i in 0..ADVANTAGE {
            let product: f64 = (0..ADVANTAGE)
                .map(|j| {
                    let (a, b) = (i.min(j), i.max(j));
                    sums.gram[a * ADVANTAGE + b] * f64::from(weights[j])
                })
                .sum();
            let left = product + ridge * f64::from(weights[i]);
            assert!((left - sums.moment[i]).abs() < 1e-3, "{i}: {left}");
        }
    }
}
