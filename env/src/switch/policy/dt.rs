//! Dynamic Threshold (Choudhury and Hahne, IEEE/ACM Transactions on Networking, 1998).

use super::{Policy, Verdict, View};

/// Accepts iff `q_i < T`, `T = α(B - Q)`.
#[derive(Clone, Copy, Debug)]
pub struct DynamicThreshold {
    /// Control factor α.
    pub alpha: f64,
}

impl Policy for DynamicThreshold {
    #[inline]
    fn on_arrival(&mut self, view: View<'_>, port: usize, _bytes: u64) -> Verdict {
        // Bytes below 2^53 are exact in f64, and so is the product for α a power of two.
        if (view.buffer.queue(port) as f64) < self.alpha * view.buffer.free() as f64 {
            Verdict::Accept
        } else {
            Verdict::Drop
        }
    }

    fn threshold(&self, view: View<'_>, _port: usize) -> Option<u64> {
        Some((self.alpha * view.buffer.free() as f64) as u64)
    }

    fn alpha(&self, _port: usize) -> Option<f64> {
        Some(self.alpha)
    }
}
