//! Static thresholds (complete partitioning).

use super::{Policy, Verdict, View};

/// Every port has its own `B/N`: accepts iff `q_i + L <= B/N`.
#[derive(Clone, Copy, Default, Debug)]
pub struct StaticThreshold;

impl StaticThreshold {
    fn share(view: View<'_>) -> u64 {
        view.buffer.capacity() / view.buffer.ports() as u64
    }
}

impl Policy for StaticThreshold {
    #[inline]
    fn on_arrival(&mut self, view: View<'_>, port: usize, bytes: u64) -> Verdict {
        if view.buffer.queue(port) + bytes <= Self::share(view) {
            Verdict::Accept
        } else {
            Verdict::Drop
        }
    }

    fn threshold(&self, view: View<'_>, _port: usize) -> Option<u64> {
        Some(Self::share(view))
    }
}
