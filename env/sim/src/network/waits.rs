//! How long packets wait in the switch.

use crate::units::Time;

/// Shorter differences are not told apart: 2^9 ps, half a nanosecond.
const UNIT_BITS: u32 = 9;
/// Parts of every factor of two, so that a part is narrower than 1/128 of what it holds.
const PART_BITS: u32 = 7;
const PARTS: u64 = 1 << PART_BITS;
/// From here on, 8.8 s, everything is alike.
const LIMIT: u64 = (1 << 34) - 1;
const BINS: usize = ((34 - PART_BITS + 1) << PART_BITS) as usize;

/// Waiting times of the packets that a port began to send: from the arrival of the last bit to the
/// departure of the first. Percentiles are those of a histogram with 128 bins to a factor of two.
#[derive(Clone, Debug)]
pub(crate) struct Waits {
    /// Packets that found their port idle.
    none: u64,
    bins: Box<[u64]>,
}

impl Default for Waits {
    fn default() -> Self {
        Waits {
            none: 0,
            bins: vec![0; BINS].into_boxed_slice(),
        }
    }
}

impl Waits {
    #[inline]
    pub(crate) fn add_none(&mut self) {
        self.none += 1;
    }

    #[inline]
    pub(crate) fn add(&mut self, wait: Time) {
        self.bins[bin_of(wait)] += 1;
    }

    /// The nearest-rank percentile in microseconds: the middle of its bin, within 0.4 % of the
    /// packet's own wait or a quarter of a nanosecond. NaN where no packet was sent.
    pub(crate) fn percentile_us(&self, percent: f64) -> f64 {
        let total = self.none + self.bins.iter().sum::<u64>();
        if total == 0 {
            return f64::NAN;
        }
        let rank = ((percent / 100.0 * total as f64).ceil() as u64).max(1);
        let mut seen = self.none;
        if seen >= rank {
            return 0.0;
        }
        for (bin, packets) in self.bins.iter().enumerate() {
            seen += packets;
            if seen >= rank {
                return middle_us(bin);
            }
        }
        middle_us(BINS - 1)
    }
}

/// Of equal width up to 256 units, then of twice the width with every factor of two.
#[inline]
fn bin_of(wait: Time) -> usize {
    let units = (wait.0 >> UNIT_BITS).min(LIMIT);
    let shift = (units | PARTS).ilog2() - PART_BITS;
    ((u64::from(shift) << PART_BITS) + (units >> shift)) as usize
}

fn middle_us(bin: usize) -> f64 {
    let bin = bin as u64;
    let shift = (bin >> PART_BITS).saturating_sub(1);
    let first = (bin - (shift << PART_BITS)) << shift;
    let width = 1_u64 << shift;
    (first as f64 + width as f64 / 2.0) * f64::from(1 << UNIT_BITS) * 1e-6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let mut waits = Waits::default();
        assert!(waits.percentile_us(99.0).is_nan());
        for _ in 0..90 {
            waits.add_none();
        }
        for microseconds in 1..=10 {
            waits.add(Time::from_ns(1_000 * microseconds));
        }
        assert_eq!(waits.percentile_us(90.0), 0.0);
        for (percent, expected) in [(91.0, 1.0), (99.0, 9.0), (100.0, 10.0)] {
            let found = waits.percentile_us(percent);
            assert!((found / expected - 1.0).abs() < 0.004, "{percent}: {found}");
        }
    }

    #[test]
    fn every_bin_holds_its_middle_and_no_wait_is_far_from_it() {
        for bin in 0..BINS {
            let middle = Time((middle_us(bin) * 1e6) as u64);
            assert_eq!(bin_of(middle), bin);
        }
        for exponent in 0..420 {
            let wait = Time((f64::from(exponent) / 10.0).exp2() as u64);
            let middle = middle_us(bin_of(wait)) * 1e6;
            let error = (middle - wait.0 as f64).abs();
            assert!(error <= (wait.0 as f64 / 256.0).max(256.0), "{wait:?}");
        }
        assert_eq!(bin_of(Time::MAX), BINS - 1);
    }
}
