//! How likely a policy was to choose each α.

use bufgym_env::control::ALPHAS;

/// Probability of each cell of [`ALPHAS`] in 255ths; one byte each, because a replay keeps them.
pub type Chances = [u8; ALPHAS.len()];

/// All cells equally likely.
pub const UNIFORM: Chances = [32; ALPHAS.len()];

/// Of the action `tanh(mean + exp(log_std) ε)`, ε standard normal.
pub fn chances(mean: f32, log_std: f32) -> Chances {
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
        let chance = up_to - below;
        below = up_to;
        (255.0 * chance).round() as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn they_add_up_and_lie_where_the_action_does() {
        for (mean, log_std) in [(0.0, -1.0), (-0.4, -2.5), (2.0, 0.3), (-5.0, -3.0)] {
            let chances = chances(mean, log_std);
            let sum: i32 = chances.iter().map(|&chance| i32::from(chance)).sum();
            assert!((251..=259).contains(&sum), "{chances:?}");
            let likeliest = (0..8).max_by_key(|&cell| chances[cell]).unwrap();
            let centre = bufgym_env::control::action_index(mean.tanh());
            assert!(likeliest.abs_diff(centre) <= 1, "{chances:?}");
        }
        assert_eq!(chances(0.0, -4.0)[..3], [0; 3]);
    }
}
