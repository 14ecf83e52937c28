//! Observations unfolded for the convolution.
//!
//! At each step a convolution of size 3 with same padding reads that step and its two neighbours.
//! Unfolding these on the host turns the convolution into one matrix product, the fastest form that
//! was measured for this shape.

use bufgym_env::control::{FEATURES, HISTORY};

/// Taps of the convolution (§V-A).
pub const TAPS: usize = 3;
/// Values per unfolded step: `feature * TAPS + tap`.
pub const WINDOW: usize = FEATURES * TAPS;
/// Values in one port's observation.
pub const OBSERVATION: usize = HISTORY * FEATURES;
/// Values in one port's unfolded observation.
pub const UNFOLDED: usize = HISTORY * WINDOW;

/// Unfolds one port's history of `[8, 5]` into `[8, 15]`, zero-padded at both ends.
///
/// # Panics
/// When a slice has another length.
pub fn fill_row(observation: &[f32], windows: &mut [f32]) {
    assert_eq!(observation.len(), OBSERVATION);
    assert_eq!(windows.len(), UNFOLDED);
    for (step, window) in windows.as_chunks_mut::<WINDOW>().0.iter_mut().enumerate() {
        for tap in 0..TAPS {
            // Tap 0 is the step before, tap 2 the step after.
            let source = (step + tap)
                .checked_sub(1)
                .filter(|&source| source < HISTORY);
            for feature in 0..FEATURES {
                window[feature * TAPS + tap] =
                    source.map_or(0.0, |source| observation[source * FEATURES + feature]);
            }
        }
    }
}

/// Unfolds `[rows, 8, 5]` into `[rows * 8, 15]`.
///
/// # Panics
/// When the lengths do not belong together.
pub fn fill(observations: &[f32], windows: &mut [f32]) {
    assert_eq!(observations.len() / OBSERVATION, windows.len() / UNFOLDED);
    let rows = observations
        .chunks_exact(OBSERVATION)
        .zip(windows.chunks_exact_mut(UNFOLDED));
    rows.for_each(|(observation, windows)| fill_row(observation, windows));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_window_holds_a_step_and_its_neighbours() {
        let observation: Vec<f32> = (0..OBSERVATION).map(|i| 1.0 + i as f32).collect();
        let mut windows = vec![f32::NAN; UNFOLDED];
        fill(&observation, &mut windows);
        let value = |step: usize, feature: usize| observation[step * FEATURES + feature];
        let at = |step: usize, feature: usize| {
            let start = step * WINDOW + feature * TAPS;
            &windows[start..start + TAPS]
        };
        assert_eq!(at(0, 2), [0.0, value(0, 2), value(1, 2)]);
        assert_eq!(at(3, 4), [value(2, 4), value(3, 4), value(4, 4)]);
        assert_eq!(at(7, 0), [value(6, 0), value(7, 0), 0.0]);
    }
}
