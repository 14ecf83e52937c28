//! Covariance matrix adaptation evolution strategy, CMA-ES (Hansen 2016, "The CMA Evolution
//! Strategy: A Tutorial", arXiv:1604.00772; equation numbers below refer to it).
//!
//! The search adapts a normal distribution so that its samples have low costs. It uses only the
//! ranks of the samples, no gradients. Ranks are robust to noise in the costs, as long as all
//! candidates of a generation are measured on the same traces.
//!
//! Samples are drawn with the Cholesky factor of the covariance instead of its symmetric root
//! (Krause, Arbonès and Igel 2016). Both give the same distribution.

use bufgym_models::standard_normal;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

/// The state of a search over `n` numbers. Memory is O(n²) and a generation takes O(λ n² + n³), so
/// it suits hundreds of numbers, not whole networks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Evolution {
    mean: Vec<f64>,
    step: f64,
    /// Row-major `[n, n]`, symmetric.
    covariance: Vec<f64>,
    step_path: Vec<f64>,
    covariance_path: Vec<f64>,
    generations: u64,
}

impl Evolution {
    /// A search from `mean`. The first samples have the standard deviation `step * scales[i]` in
    /// number i.
    ///
    /// # Panics
    /// When there is no number, when the lengths differ, or when `step` or a scale is not positive.
    pub fn new(mean: Vec<f64>, scales: &[f64], step: f64) -> Evolution {
        let n = mean.len();
        assert!(n > 0, "a search needs at least one number");
        assert_eq!(n, scales.len(), "a scale for every number");
        assert!(step > 0.0 && scales.iter().all(|&scale| scale > 0.0));
        let mut covariance = vec![0.0; n * n];
        for (i, scale) in scales.iter().enumerate() {
            covariance[i * n + i] = scale * scale;
        }
        Evolution {
            mean,
            step,
            covariance,
            step_path: vec![0.0; n],
            covariance_path: vec![0.0; n],
            generations: 0,
        }
    }

    /// The centre of the distribution: the best estimate of the optimum.
    pub fn mean(&self) -> &[f64] {
        &self.mean
    }

    /// The global step size σ.
    pub fn step(&self) -> f64 {
        self.step
    }

    /// Generations so far.
    pub fn generations(&self) -> u64 {
        self.generations
    }

    /// `count` candidates drawn from the distribution (equation 5).
    pub fn ask(&self, count: usize, rng: &mut Xoshiro256PlusPlus) -> Vec<Vec<f64>> {
        let n = self.mean.len();
        let factor = self.factor();
        let mut sample = || {
            let noise: Vec<f64> = (0..n).map(|_| f64::from(standard_normal(rng))).collect();
            let row = |i: usize| &factor[i * n..=i * n + i];
            (0..n)
                .map(|i| self.mean[i] + self.step * dot(row(i), &noise))
                .collect()
        };
        (0..count).map(|_| sample()).collect()
    }

    /// Moves the distribution towards the candidates with the lowest costs. NaN counts as the
    /// highest cost.
    ///
    /// # Panics
    /// When there are fewer than two candidates, or not one cost for each.
    pub fn tell(&mut self, candidates: &[Vec<f64>], costs: &[f64]) {
        assert_eq!(candidates.len(), costs.len(), "a cost for every candidate");
        let rates = Rates::new(self.mean.len(), candidates.len());
        let factor = self.factor();
        let steps = self.best_steps(candidates, costs, rates.weights.len());
        let moved: Vec<f64> = (0..self.mean.len())
            .map(|i| {
                steps
                    .iter()
                    .zip(&rates.weights)
                    .map(|(y, w)| w * y[i])
                    .sum()
            })
            .collect();
        for (mean, moved) in self.mean.iter_mut().zip(&moved) {
            *mean += self.step * moved;
        }
        self.generations += 1;
        let length = self.update_step_path(&moved, &factor, &rates);
        let straight = self.update_covariance_path(&moved, length, &rates);
        self.update_covariance(&steps, straight, &rates);
        let surplus = length / rates.expected_norm - 1.0;
        self.step *= libm::exp((rates.step_path / rates.damping * surplus).clamp(-0.5, 0.5));
    }

    /// `(x - m) / σ` of the best candidates, the best first. Equal costs keep their order.
    fn best_steps(&self, candidates: &[Vec<f64>], costs: &[f64], best: usize) -> Vec<Vec<f64>> {
        let mut order: Vec<usize> = (0..costs.len()).collect();
        let cost = |index: &usize| {
            if costs[*index].is_nan() {
                f64::INFINITY
            } else {
                costs[*index]
            }
        };
        order.sort_by(|a, b| cost(a).total_cmp(&cost(b)));
        let step = |index: &usize| {
            let pairs = candidates[*index].iter().zip(&self.mean);
            pairs.map(|(x, mean)| (x - mean) / self.step).collect()
        };
        order[..best].iter().map(step).collect()
    }

    /// The evolution path of the step size (equation 43) and its length.
    fn update_step_path(&mut self, moved: &[f64], factor: &[f64], rates: &Rates) -> f64 {
        let whitened = solve_lower(factor, moved);
        let gain = (rates.step_path * (2.0 - rates.step_path) * rates.selected).sqrt();
        for (path, whitened) in self.step_path.iter_mut().zip(whitened) {
            *path = (1.0 - rates.step_path) * *path + gain * whitened;
        }
        dot(&self.step_path, &self.step_path).sqrt()
    }

    /// The evolution path of the covariance (equation 45). While the step size grows fast, the path
    /// stalls and `false` is returned.
    fn update_covariance_path(&mut self, moved: &[f64], length: f64, rates: &Rates) -> bool {
        let forgotten = libm::pow(1.0 - rates.step_path, 2.0 * self.generations as f64);
        let limit = (1.4 + 2.0 / (moved.len() as f64 + 1.0)) * rates.expected_norm;
        let straight = length / (1.0 - forgotten).sqrt() < limit;
        let gain = (rates.covariance_path * (2.0 - rates.covariance_path) * rates.selected).sqrt();
        for (path, moved) in self.covariance_path.iter_mut().zip(moved) {
            *path *= 1.0 - rates.covariance_path;
            if straight {
                *path += gain * moved;
            }
        }
        straight
    }

    /// Rank-one and rank-μ update (equation 47).
    fn update_covariance(&mut self, steps: &[Vec<f64>], straight: bool, rates: &Rates) {
        let n = self.mean.len();
        let lost = if straight {
            0.0
        } else {
            rates.covariance_path * (2.0 - rates.covariance_path)
        };
        let keep = 1.0 - rates.rank_one - rates.rank_many + rates.rank_one * lost;
        for i in 0..n {
            for j in 0..=i {
                let many: f64 = steps
                    .iter()
                    .zip(&rates.weights)
                    .map(|(y, w)| w * y[i] * y[j])
                    .sum();
                let one = self.covariance_path[i] * self.covariance_path[j];
                let value = keep * self.covariance[i * n + j]
                    + rates.rank_one * one
                    + rates.rank_many * many;
                self.covariance[i * n + j] = value;
                self.covariance[j * n + i] = value;
            }
        }
    }

    /// Lower Cholesky factor of the covariance. O(n³).
    fn factor(&self) -> Vec<f64> {
        let n = self.mean.len();
        let mut factor = vec![0.0; n * n];
        for i in 0..n {
            for j in 0..=i {
                let done = dot(&factor[i * n..i * n + j], &factor[j * n..j * n + j]);
                let rest = self.covariance[i * n + j] - done;
                factor[i * n + j] = if i == j {
                    rest.max(f64::MIN_POSITIVE).sqrt()
                } else {
                    rest / factor[j * n + j]
                };
            }
        }
        factor
    }
}

/// Weights and learning rates for `n` numbers and λ candidates (table 1, positive weights only).
struct Rates {
    weights: Vec<f64>,
    /// Variance effective selection mass μ_eff.
    selected: f64,
    step_path: f64,
    damping: f64,
    covariance_path: f64,
    rank_one: f64,
    rank_many: f64,
    /// Expected length of a standard normal vector.
    expected_norm: f64,
}

impl Rates {
    fn new(n: usize, candidates: usize) -> Rates {
        assert!(candidates >= 2, "at least two candidates to choose from");
        let n = n as f64;
        let half = (candidates as f64 + 1.0) / 2.0;
        let raw: Vec<f64> = (1..=candidates / 2)
            .map(|rank| libm::log(half) - libm::log(rank as f64))
            .collect();
        let sum: f64 = raw.iter().sum();
        let weights: Vec<f64> = raw.iter().map(|weight| weight / sum).collect();
        let selected = 1.0 / dot(&weights, &weights);
        let step_path = (selected + 2.0) / (n + selected + 5.0);
        let excess = ((selected - 1.0) / (n + 1.0)).sqrt() - 1.0;
        let rank_one = 2.0 / ((n + 1.3) * (n + 1.3) + selected);
        let rank_many =
            2.0 * (0.25 + selected - 2.0 + 1.0 / selected) / ((n + 2.0) * (n + 2.0) + selected);
        Rates {
            selected,
            step_path,
            damping: 1.0 + 2.0 * excess.max(0.0) + step_path,
            covariance_path: (4.0 + selected / n) / (n + 4.0 + 2.0 * selected / n),
            rank_one,
            rank_many: rank_many.min(1.0 - rank_one),
            expected_norm: n.sqrt() * (1.0 - 1.0 / (4.0 * n) + 1.0 / (21.0 * n * n)),
            weights,
        }
    }
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// `x` with `factor · x = right`, for a lower triangular factor.
fn solve_lower(factor: &[f64], right: &[f64]) -> Vec<f64> {
    let n = right.len();
    let mut solution: Vec<f64> = Vec::with_capacity(n);
    for (i, value) in right.iter().enumerate() {
        let done = dot(&factor[i * n..i * n + i], &solution);
        solution.push((value - done) / factor[i * n + i]);
    }
    solution
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng as _;

    fn minimise(
        cost: impl Fn(&[f64], &mut Xoshiro256PlusPlus) -> f64,
        n: usize,
        generations: u32,
    ) -> Evolution {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
        let mut search = Evolution::new(vec![1.0; n], &vec![1.0; n], 0.3);
        for _ in 0..generations {
            let candidates = search.ask(12, &mut rng);
            let costs: Vec<f64> = candidates.iter().map(|x| cost(x, &mut rng)).collect();
            search.tell(&candidates, &costs);
        }
        search
    }

    /// Condition number a million: found only when the covariance is learned.
    fn ellipsoid(x: &[f64]) -> f64 {
        let last = x.len() as f64 - 1.0;
        x.iter()
            .enumerate()
            .map(|(i, x)| libm::pow(1e6, i as f64 / last) * x * x)
            .sum()
    }

    #[test]
    fn a_stretched_bowl_is_descended() {
        let found = minimise(|x, _| ellipsoid(x), 8, 500);
        assert!(
            ellipsoid(found.mean()) < 1e-8,
            "{:e}",
            ellipsoid(found.mean())
        );
    }

    #[test]
    fn noise_as_large_as_the_slope_is_overcome() {
        let noisy = |x: &[f64], rng: &mut Xoshiro256PlusPlus| {
            dot(x, x) + 0.3 * f64::from(standard_normal(rng))
        };
        let found = minimise(noisy, 8, 150);
        let cost = dot(found.mean(), found.mean());
        assert!(cost < 0.8, "from 8 to {cost}");
    }

    #[test]
    fn what_fails_is_avoided() {
        let cost = |x: &[f64], _: &mut Xoshiro256PlusPlus| {
            if x[0] < 0.5 { f64::NAN } else { dot(x, x) }
        };
        let found = minimise(cost, 2, 100);
        assert!((found.mean()[0] - 0.5).abs() < 0.05, "{:?}", found.mean());
        assert!(found.mean()[1].abs() < 0.05, "{:?}", found.mean());
    }

    #[test]
    fn only_ranks_matter_and_runs_repeat() {
        let plain = minimise(|x, _| dot(x, x), 4, 30);
        assert_eq!(plain, minimise(|x, _| libm::exp(3.0 * dot(x, x)), 4, 30));
    }
}
