//! The advantage of actions by least squares.

use bufgym_env::convert::single;
use bufgym_models::critic::{STATE, advantage_features, advantage_weights};

use crate::replay::Batch;

/// The advantage of actions, estimated from each half of the experience by itself and from all of it.
///
/// Where the two halves find the same, it is the advantage; where they do not, it is chance. With a correlation ρ
/// between their predictions, that between the prediction of both together and another as large sample's is
/// 2 ρ / (1 + ρ) (Spearman 1910, Brown 1910), and so much of it is believed: the expected error is smallest then.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Advantage {
    pub(super) halves: [LeastSquares; 2],
}

impl Advantage {
    pub(super) fn new(outputs: usize) -> Advantage {
        let half = LeastSquares::new(outputs);
        Advantage {
            halves: [half.clone(), half],
        }
    }

    /// All sums, for saving.
    pub(super) fn sums(&self) -> impl Iterator<Item = f64> + '_ {
        self.halves.iter().flat_map(LeastSquares::sums)
    }

    /// The inverse of [`sums`](Advantage::sums); none when their number is wrong.
    pub(super) fn from_sums(outputs: usize, sums: &[f64]) -> Option<Advantage> {
        let (first, second) = sums.split_at(sums.len() / 2);
        Some(Advantage {
            halves: [
                LeastSquares::from_sums(outputs, first)?,
                LeastSquares::from_sums(outputs, second)?,
            ],
        })
    }

    /// As [`LeastSquares::add`], to the half that each decision belongs to.
    pub(super) fn add(&mut self, batch: &Batch, residuals: &[f32], keep: f64) {
        for (half, sums) in self.halves.iter_mut().enumerate() {
            sums.add(batch, residuals, keep, half);
        }
    }

    /// The weights as far as they are believed, and the correlation of the halves' predictions.
    pub(super) fn weights(&self, ridge: f64) -> (Vec<f32>, f64) {
        let [first, second] = &self.halves;
        let all = first.clone().joined(second);
        let halves = self.halves.each_ref().map(|half| half.weights(0.5 * ridge));
        let product = |a: &[f64], b: &[f64]| all.product(a, b);
        let [a, b] = halves.each_ref().map(Vec::as_slice);
        let sizes = product(a, a) * product(b, b);
        let agreement = match sizes > 0.0 {
            true => (product(a, b) / sizes.sqrt()).clamp(-1.0, 1.0),
            false => 0.0,
        };
        let share = (2.0 * agreement / (1.0 + agreement)).max(0.0);
        let weights = all.weights(ridge).into_iter();
        let believed = weights.map(|weight| single(share * weight));
        (believed.collect(), agreement)
    }
}

/// Ridge regression: sums of `z zᵀ` and `z r`.
///
/// `A = W · z`, where z are the centred features of a decision ([`advantage_features`]) and r is the
/// residual of the joint return over the state's value. Older samples count less. The closed form
/// has no step size and uses every sample fully, which matters because the noise is a hundred times
/// larger than the effect. (Least squares in policy iteration: Lagoudakis and Parr 2003. A linear
/// advantage under the policy gradient: Sutton et al. 2000, theorem 2.)
#[derive(Clone, Debug, PartialEq)]
pub(super) struct LeastSquares {
    /// `[weights, weights]`
    pub(super) gram: Vec<f64>,
    /// `[weights]`
    pub(super) moment: Vec<f64>,
}

impl LeastSquares {
    pub(super) fn new(outputs: usize) -> LeastSquares {
        let weights = advantage_weights(outputs);
        LeastSquares {
            gram: vec![0.0; weights * weights],
            moment: vec![0.0; weights],
        }
    }

    /// All sums, for saving.
    pub(super) fn sums(&self) -> impl Iterator<Item = f64> + '_ {
        self.gram.iter().chain(&self.moment).copied()
    }

    /// The inverse of [`sums`](LeastSquares::sums); none when their number is wrong.
    pub(super) fn from_sums(outputs: usize, sums: &[f64]) -> Option<LeastSquares> {
        let weights = advantage_weights(outputs);
        let (gram, moment) = sums.split_at_checked(weights * weights)?;
        (moment.len() == weights).then(|| LeastSquares {
            gram: gram.to_vec(),
            moment: moment.to_vec(),
        })
    }

    /// The sums of this and the other together.
    pub(super) fn joined(mut self, other: &LeastSquares) -> LeastSquares {
        let add = |own: &mut [f64], others: &[f64]| {
            own.iter_mut()
                .zip(others)
                .for_each(|(sum, &other)| *sum += other);
        };
        add(&mut self.gram, &other.gram);
        add(&mut self.moment, &other.moment);
        self
    }

    /// `Σ (W_a · z) (W_b · z)`, what two weights predict for the samples, multiplied.
    pub(super) fn product(&self, a: &[f64], b: &[f64]) -> f64 {
        let n = self.moment.len();
        let row = |i: usize| -> f64 {
            let others = (i + 1..n).map(|j| self.gram[i * n + j] * (a[i] * b[j] + a[j] * b[i]));
            self.gram[i * n + i] * a[i] * b[i] + others.sum::<f64>()
        };
        (0..n).map(row).sum()
    }

    /// Multiplies the weight of all earlier samples by `keep` and adds those of a batch that are of this half.
    /// `residuals` are each decision's return minus the state's value, as means over ports.
    pub(super) fn add(&mut self, batch: &Batch, residuals: &[f32], keep: f64, half: usize) {
        self.gram.iter_mut().for_each(|sum| *sum *= keep);
        self.moment.iter_mut().for_each(|sum| *sum *= keep);
        let (ports, values) = (batch.ports, batch.actions.len() / batch.rows);
        let cells = batch.probabilities.len() / batch.actions.len();
        let weights = self.moment.len();
        let mut features = vec![0.0; weights];
        let own = |&(row, _): &(usize, &f32)| batch.halves[row] == half;
        for (row, &residual) in residuals.iter().enumerate().filter(own) {
            features.fill(0.0);
            let span = |width: usize| row * width..(row + 1) * width;
            advantage_features(
                &batch.state[span(ports * STATE)],
                &batch.actions[span(values)],
                &batch.probabilities[span(values * cells)],
                &mut features,
            );
            for (i, &left) in features.iter().enumerate() {
                self.moment[i] += left * f64::from(residual);
                // Only the upper triangle is read.
                let sums = &mut self.gram[i * weights + i..(i + 1) * weights];
                for (sum, &right) in sums.iter_mut().zip(&features[i..]) {
                    *sum += left * right;
                }
            }
        }
    }

    /// The weights `(Σ z zᵀ + ridge I)⁻¹ Σ z r`, by Cholesky's factorisation. O(n³).
    pub(super) fn weights(&self, ridge: f64) -> Vec<f64> {
        let n = self.moment.len();
        let mut factor = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..=i {
                let done: f64 = (0..j).map(|k| factor[i * n + k] * factor[j * n + k]).sum();
                let rest = self.gram[j * n + i] - done;
                factor[i * n + j] = if i == j {
                    (rest + ridge).max(f64::MIN_POSITIVE).sqrt()
                } else {
                    rest / factor[j * n + j]
                };
            }
        }
        let mut solution = self.moment.clone();
        for i in 0..n {
            let done: f64 = (0..i).map(|k| factor[i * n + k] * solution[k]).sum();
            solution[i] = (solution[i] - done) / factor[i * n + i];
        }
        for i in (0..n).rev() {
            let done: f64 = (i + 1..n).map(|k| factor[k * n + i] * solution[k]).sum();
            solution[i] = (solution[i] - done) / factor[i * n + i];
        }
        solution
    }
}
