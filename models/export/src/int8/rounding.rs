//! Rounding weights so that errors cancel on the inputs that occur.
//!
//! The inputs of a layer are correlated: a history moves on by one step per decision, and many
//! channels are zero at the same time. So the weights of an output are rounded one after the other,
//! and the error of each is compensated in the weights that are not rounded yet, by the inverse of
//! the inputs' covariance (Frantar et al., "GPTQ", ICLR 2023, in the form of its Cholesky factor).
//! The remaining mean error goes into the bias.

/// Share of the mean variance that is added to every variance. Then weights of nearly constant
/// inputs are rounded to the nearest, and there may be fewer samples than inputs.
const DAMPING: f64 = 0.01;

/// First and second moments of a layer's inputs.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Moments {
    count: f64,
    sums: Vec<f64>,
    /// `[width, width]`; only the diagonal and the part to its right are filled.
    products: Vec<f64>,
}

impl Moments {
    pub(super) fn new(width: usize) -> Moments {
        Moments {
            count: 0.0,
            sums: vec![0.0; width],
            products: vec![0.0; width * width],
        }
    }

    /// Adds one row of inputs.
    pub(super) fn add(&mut self, row: &[f64]) {
        let width = self.sums.len();
        self.count += 1.0;
        for (i, &x) in row.iter().enumerate() {
            self.sums[i] += x;
            // After a ReLU most inputs are zero.
            if x != 0.0 {
                let products = &mut self.products[i * width + i..(i + 1) * width];
                products
                    .iter_mut()
                    .zip(&row[i..])
                    .for_each(|(p, y)| *p += x * y);
            }
        }
    }
}

/// Distribution of a weight's rounding error over the other weights, for inputs in units of `scale`.
pub(super) struct Compensation {
    /// Mean of every input.
    means: Vec<f64>,
    /// `[width, width]`, upper triangular: the factor U of the inverse covariance `Uᵀ U`.
    factor: Vec<f64>,
}

impl Compensation {
    pub(super) fn new(moments: &Moments, scale: &[f64]) -> Compensation {
        let width = moments.sums.len();
        let scale = |i: usize| scale[i % scale.len()];
        let count = moments.count.max(1.0);
        let means: Vec<f64> = (0..width)
            .map(|i| moments.sums[i] / count / scale(i))
            .collect();
        let mut covariance = vec![0.0; width * width];
        for i in 0..width {
            for j in i..width {
                let product = moments.products[i * width + j] / count / (scale(i) * scale(j));
                covariance[i * width + j] = product - means[i] * means[j];
            }
        }
        let variances = (0..width).map(|i| covariance[i * width + i]);
        let damping = DAMPING * variances.sum::<f64>() / width as f64 + f64::MIN_POSITIVE.sqrt();
        (0..width).for_each(|i| covariance[i * width + i] += damping);
        Compensation {
            means,
            factor: inverse(upper_factor(covariance, width), width),
        }
    }

    /// Rounds `weights` to integers of at most `limit` in magnitude. Also returns the number to add to the bias so that
    /// the mean stays.
    pub(super) fn round(&self, weights: &[f64], limit: f64) -> (Vec<f64>, f64) {
        let width = weights.len();
        let mut rest = weights.to_vec();
        let mut whole = Vec::with_capacity(width);
        for i in 0..width {
            let row = &self.factor[i * width..(i + 1) * width];
            let rounded = rest[i].round().clamp(-limit, limit);
            let error = (rest[i] - rounded) / row[i];
            let open = rest.iter_mut().zip(row).skip(i + 1);
            open.for_each(|(weight, share)| *weight -= error * share);
            whole.push(rounded);
        }
        let lost = weights.iter().zip(&whole).zip(&self.means);
        let gain = lost.map(|((w, q), mean)| (w - q) * mean).sum();
        (whole, gain)
    }
}

/// The upper triangular R with `R Rᵀ = matrix`. The matrix is symmetric and positive definite; only
/// its upper triangle is read.
fn upper_factor(mut matrix: Vec<f64>, width: usize) -> Vec<f64> {
    for j in (0..width).rev() {
        let pivot = matrix[j * width + j].max(f64::MIN_POSITIVE).sqrt();
        matrix[j * width + j] = pivot;
        for i in 0..j {
            matrix[i * width + j] /= pivot;
        }
        for i in 0..j {
            let factor = matrix[i * width + j];
            if factor != 0.0 {
                for k in i..j {
                    matrix[i * width + k] -= factor * matrix[k * width + j];
                }
            }
        }
    }
    matrix
}

/// The inverse of an upper triangular matrix, which is upper triangular too.
fn inverse(matrix: Vec<f64>, width: usize) -> Vec<f64> {
    let mut inverse = vec![0.0; width * width];
    for i in (0..width).rev() {
        let diagonal = 1.0 / matrix[i * width + i];
        // Row i: (e_i - Σ_k R_ik · row k) / R_ii.
        let (own, below) = inverse[i * width..].split_at_mut(width);
        for k in i + 1..width {
            let factor = matrix[i * width + k];
            let row = &below[(k - i - 1) * width..(k - i) * width];
            own[k..]
                .iter_mut()
                .zip(&row[k..])
                .for_each(|(x, y)| *x -= factor * y);
        }
        own[i..].iter_mut().for_each(|x| *x *= diagonal);
        own[i] = diagonal;
    }
    inverse
}

#[cfg(test)]
mod tests {
    use rand::{RngExt as _, SeedableRng};
    use rand_xoshiro::Xoshiro256PlusPlus;

    use super::*;

    /// Rows that lie near a plane of few dimensions, as those of a layer do.
    fn rows(width: usize, count: usize) -> Vec<Vec<f64>> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(8);
        let directions: Vec<Vec<f64>> = (0..4)
            .map(|_| (0..width).map(|_| rng.random_range(0.0..1.0)).collect())
            .collect();
        let mut row = || -> Vec<f64> {
            let along: Vec<f64> = directions
                .iter()
                .map(|_| rng.random_range(0.0..9.0))
                .collect();
            let value = |k: usize| {
                directions
                    .iter()
                    .zip(&along)
                    .map(|(d, a)| a * d[k])
                    .sum::<f64>()
            };
            (0..width)
                .map(|k| value(k) + rng.random_range(-0.1..0.1))
                .collect()
        };
        (0..count).map(|_| row()).collect()
    }

    #[test]
    fn the_factor_is_that_of_the_inverse() {
        let width = 5;
        let mut moments = Moments::new(width);
        rows(width, 50).iter().for_each(|row| moments.add(row));
        let symmetric = |m: &[f64], i: usize, j: usize| m[i.min(j) * width + i.max(j)];
        let mut matrix = moments.products.clone();
        (0..width).for_each(|i| matrix[i * width + i] += 1.0);
        let factor = inverse(upper_factor(matrix.clone(), width), width);
        for i in 0..width {
            for j in 0..width {
                // (matrix · Uᵀ U)_ij
                let entry: f64 = (0..width)
                    .map(|k| {
                        let inverse: f64 = (0..width)
                            .map(|r| factor[r * width + k] * factor[r * width + j])
                            .sum();
                        symmetric(&matrix, i, k) * inverse
                    })
                    .sum();
                let identity = f64::from(u8::from(i == j));
                assert!((entry - identity).abs() < 1e-8, "{i} {j}: {entry}");
            }
        }
    }

    #[test]
    fn errors_are_smaller_than_those_of_the_nearest_weights() {
        let width = 40;
        let (seen, unseen) = (rows(width, 400), rows(width, 500).split_off(400));
        let mut moments = Moments::new(width);
        seen.iter().for_each(|row| moments.add(row));
        let compensation = Compensation::new(&moments, &[1.0]);
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(9);
        let weights: Vec<f64> = (0..width).map(|_| rng.random_range(-9.0..9.0)).collect();
        let (whole, gain) = compensation.round(&weights, 9.0);
        assert!(whole.iter().all(|w| w.fract() == 0.0 && w.abs() <= 9.0));
        let product = |row: &[f64], weights: &[f64]| -> f64 {
            row.iter().zip(weights).map(|(x, w)| x * w).sum()
        };
        let nearest: Vec<f64> = weights.iter().map(|w| w.round()).collect();
        let error = |weights_used: &[f64], gain: f64| -> f64 {
            let of = |row: &Vec<f64>| product(row, weights_used) + gain - product(row, &weights);
            unseen.iter().map(|row| of(row).powi(2)).sum()
        };
        assert!(error(&whole, gain) < 0.1 * error(&nearest, 0.0));
    }
}
