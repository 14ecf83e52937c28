//! The action set: powers of two, so that a dataplane needs a shift instead of a multiplier (paper,
//! §IV-B).

/// The control factors α, `2^-2 ..= 2^5` (paper, §V-A).
pub const ALPHAS: [f64; 8] = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0];

/// Index of α = 1, in force before the first decision, in the type of records and the policy.
pub const INITIAL_LEVEL: u8 = 2;

/// [`INITIAL_LEVEL`] as an index.
pub const INITIAL_INDEX: usize = INITIAL_LEVEL as usize;

/// Returns the index of the one of eight equal cells of `[-1, 1]` that contains an action. Values
/// outside map to the nearest cell, NaN to the lowest.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "what is beyond the cells, and NaN, goes to the nearest one"
)]
pub fn action_index(action: f32) -> usize {
    (((action + 1.0) * 0.5 * ALPHAS.len() as f32)
        .floor()
        .max(0.0) as usize)
        .min(ALPHAS.len() - 1)
}

/// Returns [`action_index`] in one byte, the type of records and the policy.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "there are eight cells")]
pub fn action_level(action: f32) -> u8 {
    action_index(action) as u8
}

/// Returns the centre of cell `index`, `-1 + (index + 1/2)/4`.
///
/// # Panics
/// In debug builds, when there is no such cell.
#[inline]
pub fn cell_centre(index: usize) -> f32 {
    debug_assert!(index < ALPHAS.len());
    -1.0 + (index as f32 + 0.5) * (2.0 / ALPHAS.len() as f32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_centre_falls_into_its_own_cell() {
        for (index, alpha) in ALPHAS.iter().enumerate() {
            assert_eq!(action_index(cell_centre(index)), index);
            assert_eq!(*alpha, 2f64.powi(index as i32 - INITIAL_INDEX as i32));
        }
        assert_eq!(cell_centre(INITIAL_INDEX), -0.375);
    }

    #[test]
    fn values_at_and_beyond_the_ends_go_to_the_end_cells() {
        assert_eq!(action_index(-1.0), 0);
        assert_eq!(action_index(1.0), 7);
        assert_eq!(action_index(-9.0), 0);
        assert_eq!(action_index(9.0), 7);
        assert_eq!(action_index(f32::NAN), 0);
        assert_eq!(action_index(-0.75), 1);
    }
}
