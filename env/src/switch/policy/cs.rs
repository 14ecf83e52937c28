//! Complete sharing.

use super::{Policy, Verdict, View};

/// Accepts whatever fits: `Q + L <= B`.
#[derive(Clone, Copy, Default, Debug)]
pub struct CompleteSharing;

impl Policy for CompleteSharing {
    #[inline]
    fn on_arrival(&mut self, _view: View<'_>, _port: usize, _bytes: u64) -> Verdict {
        Verdict::Accept
    }

    fn threshold(&self, view: View<'_>, _port: usize) -> Option<u64> {
        Some(view.buffer.capacity())
    }
}
