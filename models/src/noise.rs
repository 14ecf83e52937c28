//! Random numbers for initialisation and exploration, the same on every machine.

use bufgym_util::convert::single;
use rand::Rng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// A uniform number in `[0, 1)` with 24 random bits. All such numbers are exact in `f32`.
pub fn uniform(rng: &mut Xoshiro256PlusPlus) -> f32 {
    (rng.next_u64() >> 40) as f32 * (1.0 / (1 << 24) as f32)
}

/// A standard normal number (Box and Muller 1958), from two words of the stream.
///
/// The second number of the pair is discarded, so that the generator holds the whole state.
pub fn standard_normal(rng: &mut Xoshiro256PlusPlus) -> f32 {
    let scale = 1.0 / (1u64 << 53) as f64;
    // In (0, 1]: the logarithm is finite.
    let radius = ((rng.next_u64() >> 11) + 1) as f64 * scale;
    let angle = (rng.next_u64() >> 11) as f64 * scale * std::f64::consts::TAU;
    single(libm::sqrt(-2.0 * libm::log(radius)) * libm::cos(angle))
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::SeedableRng;

    #[test]
    fn normal_numbers_have_the_moments_of_the_normal_distribution() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(1);
        let count = 100_000;
        let sample: Vec<f64> = (0..count)
            .map(|_| f64::from(standard_normal(&mut rng)))
            .collect();
        let moment = |power: i32| sample.iter().map(|x| x.powi(power)).sum::<f64>() / count as f64;
        assert!(moment(1).abs() < 0.015, "mean {}", moment(1));
        assert!((moment(2) - 1.0).abs() < 0.02, "variance {}", moment(2));
        assert!(
            (moment(4) - 3.0).abs() < 0.15,
            "fourth moment {}",
            moment(4)
        );
    }

    #[test]
    fn uniform_numbers_stay_below_one() {
        let mut rng = Xoshiro256PlusPlus::seed_from_u64(2);
        assert!(
            (0..100_000)
                .map(|_| uniform(&mut rng))
                .all(|u| (0.0..1.0).contains(&u))
        );
    }
}
