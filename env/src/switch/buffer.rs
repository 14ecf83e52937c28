//! Exact byte accounting of the shared memory.

use crate::units::Time;

/// Occupancy is recorded in this many equal parts of the buffer.
const OCCUPANCY_BINS: usize = 512;

/// The shared memory: bytes queued per port and in all.
///
/// Always `Σ queue(i) == occupancy() <= capacity()`.
#[derive(Clone, Debug)]
pub struct SharedBuffer {
    capacity: u64,
    occupancy: u64,
    queues: Box<[u64]>,
    max_occupancy: u64,
    bin_scale: f64,
    changed_at: Time,
    time_in_bin: Box<[u64; OCCUPANCY_BINS + 1]>,
}

impl SharedBuffer {
    /// An empty buffer of `capacity` bytes shared by `ports` queues. Occupancy statistics are in
    /// parts of `scale` bytes, which differs from the capacity where that is unlimited.
    pub(crate) fn new(capacity: u64, scale: u64, ports: usize) -> SharedBuffer {
        SharedBuffer {
            capacity,
            occupancy: 0,
            queues: vec![0; ports].into_boxed_slice(),
            max_occupancy: 0,
            bin_scale: OCCUPANCY_BINS as f64 / scale as f64,
            changed_at: Time::ZERO,
            time_in_bin: Box::new([0; OCCUPANCY_BINS + 1]),
        }
    }

    /// Size of the buffer B, bytes.
    #[inline]
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Bytes now stored, Q.
    #[inline]
    pub fn occupancy(&self) -> u64 {
        self.occupancy
    }

    /// Bytes not in use, B - Q.
    #[inline]
    pub fn free(&self) -> u64 {
        self.capacity - self.occupancy
    }

    /// Bytes queued for port `port`, q_i.
    ///
    /// # Panics
    /// When the port does not exist.
    #[inline]
    pub fn queue(&self, port: usize) -> u64 {
        self.queues[port]
    }

    /// Bytes queued for every port.
    #[inline]
    pub fn queues(&self) -> &[u64] {
        &self.queues
    }

    /// Number of ports N.
    #[inline]
    pub fn ports(&self) -> usize {
        self.queues.len()
    }

    /// Largest occupancy so far, bytes.
    pub fn max_occupancy(&self) -> u64 {
        self.max_occupancy
    }

    /// The physical check that no policy can waive: Q + L <= B.
    #[inline]
    pub fn fits(&self, bytes: u64) -> bool {
        self.occupancy + bytes <= self.capacity
    }

    #[inline]
    pub(crate) fn store(&mut self, port: usize, bytes: u64, now: Time) {
        debug_assert!(self.fits(bytes));
        self.account_time(now);
        self.queues[port] += bytes;
        self.occupancy += bytes;
        self.max_occupancy = self.max_occupancy.max(self.occupancy);
    }

    #[inline]
    pub(crate) fn release(&mut self, port: usize, bytes: u64, now: Time) {
        self.account_time(now);
        self.queues[port] -= bytes;
        self.occupancy -= bytes;
    }

    #[inline]
    fn account_time(&mut self, now: Time) {
        // Signed to float and float to 32 bits take one instruction each; their unsigned and wider
        // relatives take ten.
        let bin =
            ((self.occupancy as i64 as f64 * self.bin_scale) as u32).min(OCCUPANCY_BINS as u32);
        self.time_in_bin[bin as usize] += now.0 - self.changed_at.0;
        self.changed_at = now;
    }

    /// Time-weighted percentile of occupancy as a fraction of the buffer (nearest rank over 512
    /// equal parts; the upper edge of the part is reported). Zero before any time has passed.
    pub fn occupancy_percentile(&self, percent: f64) -> f64 {
        let total: u64 = self.time_in_bin.iter().sum();
        let wanted = (percent / 100.0 * total as f64).ceil() as u64;
        let mut seen = 0;
        for (bin, time) in self.time_in_bin.iter().enumerate() {
            seen += time;
            if seen >= wanted && seen > 0 {
                // The empty buffer is its own part: occupancy zero is not "up to 1/512".
                return if bin == 0 {
                    0.0
                } else {
                    (bin + 1).min(OCCUPANCY_BINS) as f64 / OCCUPANCY_BINS as f64
                };
            }
        }
        0.0
    }

    /// Σ q_i, recounted; equal to [`SharedBuffer::occupancy`] unless the accounting is broken.
    pub fn recount(&self) -> u64 {
        self.queues.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounting_is_exact() {
        let mut buffer = SharedBuffer::new(1_000, 1_000, 2);
        buffer.store(0, 600, Time(0));
        assert!(buffer.fits(400) && !buffer.fits(401));
        buffer.store(1, 400, Time(10));
        buffer.release(0, 600, Time(20));
        assert_eq!(
            (buffer.queue(0), buffer.queue(1), buffer.occupancy()),
            (0, 400, 400)
        );
        assert_eq!(buffer.max_occupancy(), 1_000);
        assert_eq!(buffer.recount(), buffer.occupancy());
    }

    #[test]
    fn percentiles_are_weighted_by_time() {
        let mut buffer = SharedBuffer::new(512, 512, 1);
        buffer.store(0, 256, Time(90));
        buffer.release(0, 256, Time(100));
        assert_eq!(buffer.occupancy_percentile(90.0), 0.0);
        assert!((buffer.occupancy_percentile(99.0) - 257.0 / 512.0).abs() < 1e-9);
    }
}
