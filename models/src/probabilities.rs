//! The probability with which a stochastic policy chooses each level of α.

use bufgym_env::control::ALPHAS;
use bufgym_env::convert::floor_u8;

/// Probability of each level in [`ALPHAS`], in 255ths. One byte each keeps the replay small.
pub type Probabilities = [u8; ALPHAS.len()];

/// Every level with the same probability.
pub const UNIFORM: Probabilities = [32; ALPHAS.len()];

/// The probabilities under the action `tanh(mean + exp(log_std) ε)`, with ε standard normal.
pub fn probabilities(mean: f32, log_std: f32) -> Probabilities {
    let scale = libm::expf(-log_std) * std::f32::consts::FRAC_1_SQRT_2;
    let cells = ALPHAS.len();
    let mut below = 0.0;
    std::array::from_fn(|cell| {
        let edge = 2.0 * (cell + 1) as f32 / cells as f32 - 1.0;
        let up_to = if cell + 1 == cells {
            1.0
        } else {
            0.5 + 0.5 * libm::erff((libm::atanhf(edge) - mean) * scale)
        };
        let probability = up_to - below;
        below = up_to;
        floor_u8(f64::from((255.0 * probability).round()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_add_up_and_lie_where_the_action_does() {
        for (mean, log_std) in [(0.0, -1.0), (-0.4, -2.5), (2.0, 0.3), (-5.0, -3.0)] {
            let found = probabilities(mean, log_std);
            let sum: i32 = found
                .iter()
                .map(|&probability| i32::from(probability))
                .sum();
            assert!((251..=259).contains(&sum), "{found:?}");
            let likeliest = (0..8).max_by_key(|&cell| found[cell]).unwrap();
            let centre = bufgym_env::control::action_index(mean.tanh());
            assert!(likeliest.abs_diff(centre) <= 1, "{found:?}");
        }
        assert_eq!(probabilities(0.0, -4.0)[..3], [0; 3]);
    }
}
