//! Helpers for tests: acknowledgements and a congestion control.

use super::{Acked, CongestionControl, Pacer, Settings, Window};
use crate::units::{Duration, Instant, Rate};

/// A congestion control that always paces at 100 Mbit/s; its window never limits the flow.
#[derive(Clone, Debug)]
pub(crate) struct ConstantRate(Pacer);

impl ConstantRate {
    pub(crate) const RATE: Rate = Rate(100_000_000);
}

impl Default for ConstantRate {
    fn default() -> Self {
        ConstantRate(Pacer::new(ConstantRate::RATE))
    }
}

impl CongestionControl for ConstantRate {
    fn on_ack(&mut self, window: &mut Window, _acked: &Acked, settings: &Settings) {
        window.cwnd = settings.window_cap;
    }

    fn ssthresh(&mut self, window: &Window, _flight: u32, _settings: &Settings) -> u32 {
        window.cwnd
    }

    fn pacer(&mut self) -> Option<&mut Pacer> {
        Some(&mut self.0)
    }
}

/// Returns an acknowledgement of the first `segments` segments, at time zero, without a mark.
pub(super) fn acked(segments: u32) -> Acked<'static> {
    Acked {
        segments,
        una: segments,
        next: segments + 100,
        now: Instant::ZERO,
        rtt: None,
        elapsed: Duration::ZERO,
        smoothed_rtt: Duration::ZERO,
        marked: false,
        path: None,
    }
}
