//! Exact byte accounting of the shared buffer.

use super::numbering::Numbering;
use crate::units::Instant;

/// Bins of the occupancy histogram: equal parts of the buffer.
const OCCUPANCY_BINS: usize = 512;

/// The shared buffer: bytes per queue and in total. A port has one or several queues, with
/// consecutive indices: queue `port · queues_per_port + priority`.
///
/// Always `Σ queue(i) == occupancy() <= capacity()`.
#[derive(Clone, Debug)]
pub struct SharedBuffer {
    capacity: u64,
    occupancy: u64,
    queues: Box<[u64]>,
    numbering: Numbering,
    max_occupancy: u64,
    bin_scale: f64,
    changed_at: Instant,
    time_in_bin: Box<[u64; OCCUPANCY_BINS + 1]>,
    /// Use of every priority; empty if ports have one queue.
    by_priority: Vec<PriorityUse>,
}

/// Bytes of one priority, integrated over time.
#[derive(Clone, Copy, Default, Debug)]
struct PriorityUse {
    bytes: u64,
    changed_at: Instant,
    byte_ps: u128,
}

impl PriorityUse {
    fn settle(&mut self, now: Instant) {
        self.byte_ps += u128::from(self.bytes) * u128::from(now.0 - self.changed_at.0);
        self.changed_at = now;
    }
}

impl SharedBuffer {
    /// Creates an empty buffer of `capacity` bytes for `ports` ports. Occupancy statistics are relative
    /// to `scale` bytes, which differs from the capacity if that is unlimited.
    pub(crate) fn new(
        capacity: u64,
        scale: u64,
        ports: usize,
        queues_per_port: usize,
    ) -> SharedBuffer {
        SharedBuffer {
            capacity,
            occupancy: 0,
            queues: vec![0; ports * queues_per_port].into_boxed_slice(),
            numbering: Numbering::new(queues_per_port),
            max_occupancy: 0,
            bin_scale: OCCUPANCY_BINS as f64 / scale as f64,
            changed_at: Instant::ZERO,
            time_in_bin: Box::new([0; OCCUPANCY_BINS + 1]),
            by_priority: match queues_per_port {
                1 => Vec::new(),
                queues => vec![PriorityUse::default(); queues],
            },
        }
    }

    /// Returns the size of the buffer B, bytes.
    #[inline]
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Returns the bytes stored, Q.
    #[inline]
    pub fn occupancy(&self) -> u64 {
        self.occupancy
    }

    /// Returns the bytes not in use, B - Q.
    #[inline]
    pub fn free(&self) -> u64 {
        self.capacity - self.occupancy
    }

    /// Returns the bytes in queue `queue`, q_i.
    ///
    /// # Panics
    /// When the queue does not exist.
    #[inline]
    pub fn queue(&self, queue: usize) -> u64 {
        self.queues[queue]
    }

    /// Returns the bytes in every queue.
    #[inline]
    pub fn queues(&self) -> &[u64] {
        &self.queues
    }

    /// Returns the bytes queued for port `port`, in all its queues.
    ///
    /// # Panics
    /// When the port does not exist.
    #[inline]
    pub fn port(&self, port: usize) -> u64 {
        let queues_per_port = self.queues_per_port();
        if queues_per_port == 1 {
            return self.queues[port];
        }
        let first = port * queues_per_port;
        self.queues[first..first + queues_per_port].iter().sum()
    }

    /// Returns the number of ports N.
    #[inline]
    pub fn ports(&self) -> usize {
        self.queues.len() / self.queues_per_port()
    }

    /// Returns the number of queues per port.
    #[inline]
    pub fn queues_per_port(&self) -> usize {
        self.numbering.queues_per_port()
    }

    /// Returns the largest occupancy so far, bytes.
    pub fn max_occupancy(&self) -> u64 {
        self.max_occupancy
    }

    /// Returns the largest occupancy as a share of the buffer, or of its usual size if it is unlimited.
    pub fn max_share(&self) -> f64 {
        self.max_occupancy as f64 * self.bin_scale / OCCUPANCY_BINS as f64
    }

    /// Restarts the percentiles and the maximum of occupancy at `now`.
    pub(crate) fn count_from(&mut self, now: Instant) {
        self.time_in_bin.fill(0);
        self.changed_at = now;
        self.max_occupancy = self.occupancy;
    }

    /// Counts the occupancy up to `now`.
    pub(crate) fn count_until(&mut self, now: Instant) {
        self.account_time(now);
    }

    /// Returns true if a packet of L bytes fits, Q + L <= B. No policy can waive this check.
    #[inline]
    pub fn fits(&self, bytes: u64) -> bool {
        self.occupancy + bytes <= self.capacity
    }

    #[inline]
    pub(crate) fn store(&mut self, queue: usize, bytes: u64, now: Instant) {
        debug_assert!(self.fits(bytes));
        self.account_time(now);
        if self.queues_per_port() > 1 {
            self.priority_of(queue, now).bytes += bytes;
        }
        self.queues[queue] += bytes;
        self.occupancy += bytes;
        self.max_occupancy = self.max_occupancy.max(self.occupancy);
    }

    #[inline]
    pub(crate) fn release(&mut self, queue: usize, bytes: u64, now: Instant) {
        self.account_time(now);
        if self.queues_per_port() > 1 {
            self.priority_of(queue, now).bytes -= bytes;
        }
        self.queues[queue] -= bytes;
        self.occupancy -= bytes;
    }

    #[cold]
    fn priority_of(&mut self, queue: usize, now: Instant) -> &mut PriorityUse {
        let used = &mut self.by_priority[self.numbering.priority(queue)];
        used.settle(now);
        used
    }

    /// Returns the mean bytes stored by priority, over the time until the last change; empty if ports
    /// have one queue.
    pub fn mean_by_priority(&self) -> Vec<f64> {
        let span = self.changed_at.0.max(1) as f64;
        let mean = |used: &PriorityUse| {
            let mut used = *used;
            used.settle(self.changed_at);
            used.byte_ps as f64 / span
        };
        self.by_priority.iter().map(mean).collect()
    }

    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        reason = "an occupancy is at most 2^63, and what is beyond 32 bits is in the last bin"
    )]
    fn account_time(&mut self, now: Instant) {
        // Conversions from signed to float and from float to 32 bits take one instruction each;
        // conversions of unsigned and wider numbers take ten.
        let bin =
            ((self.occupancy as i64 as f64 * self.bin_scale) as u32).min(OCCUPANCY_BINS as u32);
        self.time_in_bin[bin as usize] += now.0 - self.changed_at.0;
        self.changed_at = now;
    }

    /// Returns the time-weighted percentile of occupancy as a fraction of the buffer by nearest rank:
    /// the upper edge of its bin, at most the largest occupancy, and zero before any time has passed.
    pub fn occupancy_percentile(&self, percent: f64) -> f64 {
        let times = self.time_in_bin.iter().map(|time| u128::from(*time));
        percentile_of_share(times, percent, self.max_share()).unwrap_or(0.0)
    }

    /// Recounts Σ q_i; equals [`SharedBuffer::occupancy`] unless the accounting is broken.
    pub fn recount(&self) -> u64 {
        self.queues.iter().sum()
    }
}

/// Returns the share of a buffer that is not exceeded for `percent` of the time, by nearest rank over
/// bins of equal width and a last one for the whole buffer: the upper edge of a bin, and at most
/// `largest`. Shares in the first bin count as 0. `None` before any time has passed.
pub(crate) fn percentile_of_share(
    time_in_bin: impl ExactSizeIterator<Item = u128> + Clone,
    percent: f64,
    largest: f64,
) -> Option<f64> {
    let bins = time_in_bin.len() - 1;
    let total: u128 = time_in_bin.clone().sum();
    let wanted = (percent / 100.0 * total as f64).ceil();
    let mut seen = 0;
    for (bin, time) in time_in_bin.enumerate() {
        seen += time;
        if seen > 0 && seen as f64 >= wanted {
            let edge = match bin {
                0 => 0.0,
                _ => (bin + 1).min(bins) as f64 / bins as f64,
            };
            return Some(edge.min(largest));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accounting_is_exact() {
        let mut buffer = SharedBuffer::new(1_000, 1_000, 2, 1);
        buffer.store(0, 600, Instant(0));
        assert!(buffer.fits(400) && !buffer.fits(401));
        buffer.store(1, 400, Instant(10));
        buffer.release(0, 600, Instant(20));
        assert_eq!(
            (buffer.queue(0), buffer.queue(1), buffer.occupancy()),
            (0, 400, 400)
        );
        assert_eq!(buffer.max_occupancy(), 1_000);
        assert_eq!(buffer.recount(), buffer.occupancy());
    }

    #[test]
    fn percentiles_are_weighted_by_time() {
        let mut buffer = SharedBuffer::new(512, 512, 1, 1);
        buffer.store(0, 256, Instant(90));
        buffer.release(0, 256, Instant(100));
        assert_eq!(buffer.occupancy_percentile(90.0), 0.0);
        // The upper edge of the bin would exceed the largest occupancy.
        assert_eq!(buffer.occupancy_percentile(99.0), 0.5);
        buffer.store(0, 300, Instant(100));
        buffer.release(0, 300, Instant(101));
        assert!((buffer.occupancy_percentile(98.0) - 257.0 / 512.0).abs() < 1e-9);
    }
}
