//! Sets of observations and actions.
//!
//! Elements are flat `f32` slices in row-major order; a discrete element is a whole number. [`Space::array`] gives them
//! their shape.

use bufgym_util::convert::single;
use bufgym_util::rng::{below, uniform};
use ndarray::{ArrayViewD, ErrorKind, ShapeError};
use rand_xoshiro::Xoshiro256PlusPlus;

use super::EnvError;

/// The set that observations or actions lie in.
#[derive(Clone, Debug, PartialEq)]
pub enum Space {
    /// Real numbers within bounds.
    Box(BoxSpace),
    /// Whole numbers, each below its own limit.
    MultiDiscrete(MultiDiscreteSpace),
}

/// A product of closed intervals, any of them possibly unbounded.
#[derive(Clone, Debug, PartialEq)]
pub struct BoxSpace {
    /// Length of each dimension.
    pub shape: Vec<usize>,
    /// Lower bounds, one per element; may be `-∞`.
    pub low: Vec<f32>,
    /// Upper bounds, one per element; may be `∞`.
    pub high: Vec<f32>,
}

/// A product of sets `{0, …, n_i - 1}`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MultiDiscreteSpace {
    /// Length of each dimension.
    pub shape: Vec<usize>,
    /// Number of values that each element can take.
    pub counts: Vec<u32>,
}

impl Space {
    /// A box with the same bounds for every element.
    pub fn uniform_box(shape: &[usize], low: f32, high: f32) -> Space {
        let len = shape.iter().product();
        Space::Box(BoxSpace {
            shape: shape.to_vec(),
            low: vec![low; len],
            high: vec![high; len],
        })
    }

    /// `{0, …, count - 1}` for every element.
    pub fn uniform_discrete(shape: &[usize], count: u32) -> Space {
        let len = shape.iter().product();
        Space::MultiDiscrete(MultiDiscreteSpace {
            shape: shape.to_vec(),
            counts: vec![count; len],
        })
    }

    /// Length of each dimension.
    pub fn shape(&self) -> &[usize] {
        match self {
            Space::Box(space) => &space.shape,
            Space::MultiDiscrete(space) => &space.shape,
        }
    }

    /// Number of values of one element, the product of the shape.
    pub fn len(&self) -> usize {
        self.shape().iter().product()
    }

    /// Returns true if an element has no values at all.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns a view of an element's values in the shape of the space, without a copy.
    ///
    /// # Errors
    /// When there are more or fewer values than in an element.
    pub fn array<'a>(&self, values: &'a [f32]) -> Result<ArrayViewD<'a, f32>, ShapeError> {
        // A longer slice would be accepted otherwise.
        if values.len() != self.len() {
            return Err(ShapeError::from_kind(ErrorKind::IncompatibleShape));
        }
        ArrayViewD::from_shape(self.shape(), values)
    }

    /// Returns true if `value` lies in the space.
    pub fn contains(&self, value: &[f32]) -> bool {
        self.violation(value).is_none()
    }

    /// Returns the reason why `value` does not lie in the space; `None` if it does.
    pub fn violation(&self, value: &[f32]) -> Option<String> {
        if value.len() != self.len() {
            return Some(format!(
                "{} values given where shape {:?} has {}",
                value.len(),
                self.shape(),
                self.len()
            ));
        }
        let outside = |(i, v): (usize, &f32)| match self {
            Space::Box(space) => (!(space.low[i]..=space.high[i]).contains(v)).then(|| {
                format!(
                    "value {v} at {i} is not in [{}, {}]",
                    space.low[i], space.high[i]
                )
            }),
            Space::MultiDiscrete(space) => (v.fract() != 0.0
                || *v < 0.0
                || f64::from(*v) >= f64::from(space.counts[i]))
            .then(|| {
                format!(
                    "value {v} at {i} is not a whole number in 0..{}",
                    space.counts[i]
                )
            }),
        };
        value.iter().enumerate().find_map(outside)
    }

    /// Returns `Ok` if `action` lies in the space, for use at the top of `step`.
    ///
    /// # Errors
    /// [`EnvError::InvalidAction`] with the first value that does not fit.
    pub fn accept_action(&self, action: &[f32]) -> Result<(), EnvError> {
        self.violation(action)
            .map_or(Ok(()), |why| Err(EnvError::InvalidAction(why)))
    }

    /// Returns true if every bound of a box is finite; always true for whole numbers.
    pub fn is_bounded(&self) -> bool {
        match self {
            Space::Box(space) => space.low.iter().chain(&space.high).all(|b| b.is_finite()),
            Space::MultiDiscrete(_) => true,
        }
    }

    /// Draws an element into `out`. As in Gymnasium: uniform between two finite bounds, bound plus
    /// or minus an exponential variable where only one is finite, standard normal without bounds.
    ///
    /// # Panics
    /// When `out` has another length than the space.
    pub fn sample_into(&self, rng: &mut Xoshiro256PlusPlus, out: &mut [f32]) {
        assert_eq!(
            out.len(),
            self.len(),
            "the slice must have the length of the space"
        );
        match self {
            Space::Box(space) => {
                let bounds = space.low.iter().zip(&space.high);
                for (value, (&low, &high)) in out.iter_mut().zip(bounds) {
                    *value = sample_interval(rng, low, high);
                }
            }
            Space::MultiDiscrete(space) => {
                for (value, &count) in out.iter_mut().zip(&space.counts) {
                    *value = exact_below(below(rng, u64::from(count.max(1))));
                }
            }
        }
    }

    /// Draws an element; see [`Space::sample_into`].
    pub fn sample(&self, rng: &mut Xoshiro256PlusPlus) -> Vec<f32> {
        let mut out = vec![0.0; self.len()];
        self.sample_into(rng, &mut out);
        out
    }
}

/// Rounds the number down to single precision, so that it never gets larger: a set of more than 2^24 numbers has
/// elements that no action can name.
fn exact_below(number: u64) -> f32 {
    let surplus = (u64::BITS - number.leading_zeros()).saturating_sub(f32::MANTISSA_DIGITS);
    (number >> surplus << surplus) as f32
}

fn sample_interval(rng: &mut Xoshiro256PlusPlus, low: f32, high: f32) -> f32 {
    let unit = uniform(rng);
    // 1 - u lies in (0, 1], where the logarithm is finite.
    let exponential = -libm::log(1.0 - unit);
    match (low.is_finite(), high.is_finite()) {
        (true, true) => {
            let value = f64::from(low) + unit * (f64::from(high) - f64::from(low));
            single(value).clamp(low, high)
        }
        (true, false) => single(f64::from(low) + exponential),
        (false, true) => single(f64::from(high) - exponential),
        (false, false) => {
            // Box-Muller.
            let angle = std::f64::consts::TAU * uniform(rng);
            single(libm::sqrt(2.0 * exponential) * libm::cos(angle))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bufgym_util::rng::stream;

    fn rng() -> Xoshiro256PlusPlus {
        stream(1, "space", 0)
    }

    #[test]
    fn a_box_contains_its_bounds_and_nothing_beyond() {
        let space = Space::uniform_box(&[2], -1.0, 1.0);
        assert!(space.contains(&[-1.0, 1.0]));
        assert!(!space.contains(&[0.0, 1.000_001]));
        assert!(!space.contains(&[f32::NAN, 0.0]));
        assert!(!space.contains(&[0.0]));
        assert!(!space.contains(&[0.0, 0.0, 0.0]));
    }

    #[test]
    fn an_element_is_seen_in_the_shape_of_its_space() {
        let space = Space::uniform_box(&[2, 3], 0.0, 9.0);
        let seen = space.array(&[0.0, 1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert_eq!((seen.shape(), seen[[1, 0]]), (&[2, 3][..], 3.0));
        assert!(space.array(&[0.0; 7]).is_err());
    }

    #[test]
    fn whole_numbers_only_in_a_discrete_space() {
        let space = Space::uniform_discrete(&[2], 8);
        assert!(space.contains(&[0.0, 7.0]));
        for bad in [-1.0, 0.5, 8.0, f32::NAN, f32::INFINITY] {
            assert!(!space.contains(&[0.0, bad]), "{bad}");
        }
    }

    #[test]
    fn a_violation_names_the_place_and_the_bounds() {
        let space = Space::uniform_box(&[1, 3], -1.0, 1.0);
        assert_eq!(
            space.violation(&[0.0, 0.0, 2.5]).unwrap(),
            "value 2.5 at 2 is not in [-1, 1]"
        );
        assert_eq!(
            space.violation(&[0.0]).unwrap(),
            "1 values given where shape [1, 3] has 3"
        );
    }

    #[test]
    fn samples_lie_in_the_space_and_spread_over_it() {
        let space = Space::Box(BoxSpace {
            shape: vec![4],
            low: vec![-1.0, f32::NEG_INFINITY, 3.0, f32::NEG_INFINITY],
            high: vec![1.0, 5.0, f32::INFINITY, f32::INFINITY],
        });
        let mut rng = rng();
        let mut sums = [0.0f64; 4];
        for _ in 0..4000 {
            let sample = space.sample(&mut rng);
            assert!(space.contains(&sample), "{sample:?}");
            sums.iter_mut()
                .zip(&sample)
                .for_each(|(sum, v)| *sum += f64::from(*v) / 4000.0);
        }
        for (mean, expected) in sums.iter().zip([0.0, 4.0, 4.0, 0.0]) {
            assert!((mean - expected).abs() < 0.1, "{sums:?}");
        }
    }

    #[test]
    fn a_sample_of_a_large_discrete_space_is_never_rounded_out_of_it() {
        for number in [0, 1, (1 << 24) - 1, 1 << 24, (1 << 24) + 2] {
            assert_eq!(exact_below(number), number as f32);
        }
        assert_eq!(exact_below((1 << 24) + 1), 16_777_216.0);
        assert_eq!(exact_below(u64::from(u32::MAX) - 1), 4_294_967_040.0);
        let space = Space::uniform_discrete(&[1], (1 << 25) - 1);
        let mut rng = rng();
        assert!((0..1_000).all(|_| space.contains(&space.sample(&mut rng))));
        assert!(space.contains(&[exact_below((1 << 25) - 2)]));
    }

    #[test]
    fn discrete_samples_reach_every_value() {
        let space = Space::uniform_discrete(&[1], 8);
        let mut rng = rng();
        let mut seen = [false; 8];
        for _ in 0..200 {
            seen[space.sample(&mut rng)[0] as usize] = true;
        }
        assert_eq!(seen, [true; 8]);
    }
}
