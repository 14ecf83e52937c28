//! Acknowledgements for the tests of congestion control.

use super::Acked;
use crate::units::Time;

/// Of so many segments, at time zero, without a mark.
pub(super) fn acked(segments: u32) -> Acked {
    Acked {
        segments,
        una: segments,
        next: segments + 100,
        now: Time::ZERO,
        rtt: None,
        smoothed_rtt: Time::ZERO,
        marked: false,
    }
}
