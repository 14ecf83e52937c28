//! The noise of exploration.

use bufgym_models::standard_normal;
use bufgym_sim::units::Duration;
use bufgym_util::convert::single;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

/// One normal number per port and output, whose correlation over time falls as `e^{-t/τ}`: an
/// Ornstein-Uhlenbeck process (Uhlenbeck and Ornstein, Physical Review 36, 1930) seen at the instants of
/// decisions.
///
/// An action of a few milliseconds hardly changes any flow's completion, but an action held for longer than a round
/// trip does. So the effect of an action stands out from the noise of the traffic, while the policy of every single
/// decision stays the same.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Noise {
    values: Vec<f32>,
}

impl Noise {
    /// Noise for so many values; the first draw is new.
    pub(crate) fn new(values: usize) -> Noise {
        Noise {
            values: vec![0.0; values],
        }
    }

    /// The noise of the next decision, which comes `elapsed` after the last one. With `tau_s = 0`, or
    /// without a last one, it is new.
    pub(crate) fn draw(
        &mut self,
        tau_s: f64,
        elapsed: Option<Duration>,
        rng: &mut Xoshiro256PlusPlus,
    ) -> &[f32] {
        let kept = match elapsed {
            Some(elapsed) if tau_s > 0.0 => libm::exp(-elapsed.as_secs_f64() / tau_s),
            _ => 0.0,
        };
        let (kept, fresh) = (single(kept), single(libm::sqrt(1.0 - kept * kept)));
        for value in &mut self.values {
            *value = kept * *value + fresh * standard_normal(rng);
        }
        &self.values
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng as _;

    /// Mean of the products of `later` with the values before, and of their squares.
    fn moments(noise: &[Vec<f32>], later: usize) -> f64 {
        let pairs = noise.iter().zip(&noise[later..]);
        let products = pairs.flat_map(|(a, b)| a.iter().zip(b).map(|(a, b)| f64::from(a * b)));
        let products: Vec<f64> = products.collect();
        products.iter().sum::<f64>() / products.len() as f64
    }

    fn series(tau_s: f64, elapsed: Option<Duration>) -> Vec<Vec<f32>> {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        let mut noise = Noise::new(16);
        let mut draw = |elapsed| noise.draw(tau_s, elapsed, &mut rng).to_vec();
        let first = draw(None);
        std::iter::once(first)
            .chain((1..20_000).map(|_| draw(elapsed)))
            .collect()
    }

    /// Variance 1, and after a time constant a correlation of 1/e: four standard errors are below 0.03.
    #[test]
    fn the_correlation_falls_with_time_and_the_variance_stays() {
        let noise = series(0.02, Some(Duration::from_ms(5)));
        assert!((moments(&noise, 0) - 1.0).abs() < 0.03);
        assert!((moments(&noise, 4) - libm::exp(-1.0)).abs() < 0.03);
    }

    #[test]
    fn without_a_time_constant_every_draw_is_new() {
        let white = series(0.0, Some(Duration::from_ms(5)));
        assert!(moments(&white, 1).abs() < 0.01);
        // The values are those of the stream itself, on which results of white noise depend.
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
        let plain: Vec<f32> = (0..32).map(|_| standard_normal(&mut rng)).collect();
        assert_eq!(white[..2].concat(), plain);
        assert_eq!(series(0.0, None), white);
    }
}
