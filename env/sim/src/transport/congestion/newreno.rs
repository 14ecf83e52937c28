//! TCP NewReno's window (RFC 5681 §3.1, RFC 6582).

use crate::transport::{Acked, CongestionControl, Settings, Window};

/// NewReno. Slow start adds one segment per acknowledgement; congestion avoidance adds about one segment
/// per round trip. A loss sets the slow-start threshold to half of the outstanding data.
#[derive(Clone, Copy, Default, Debug)]
pub struct NewReno;

/// Returns the bytes that congestion avoidance adds per acknowledgement (RFC 5681 §3.1, equation 3); at
/// least one, so that a huge window still grows.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "a segment has fewer than 2^16 bytes, so the square has 32 bits"
)]
fn avoidance_step(window: &Window, settings: &Settings) -> u32 {
    debug_assert!(settings.mss < 1 << 16);
    let square = u64::from(settings.mss) * u64::from(settings.mss);
    ((square / u64::from(window.cwnd)) as u32).max(1)
}

/// Returns half of the outstanding bytes, but at least two segments (RFC 5681 §3.1, equation 4).
#[inline]
pub(super) fn half(flight: u32, settings: &Settings) -> u32 {
    (flight / 2).max(2 * settings.mss)
}

/// Grows a window like Reno.
#[inline]
pub(super) fn grow(window: &mut Window, acked: &Acked, settings: &Settings) {
    if acked.segments == 0 {
        return;
    }
    if !window.in_slow_start() {
        return window.grow(avoidance_step(window, settings), settings);
    }
    window.grow_in_slow_start(acked.segments, settings);
    // If slow start ends here, ns-3 applies the further segments as one avoidance step.
    if settings.is_ns3() && acked.segments > 1 && !window.in_slow_start() {
        window.grow(avoidance_step(window, settings), settings);
    }
}

impl CongestionControl for NewReno {
    #[inline]
    fn on_ack(&mut self, window: &mut Window, acked: &Acked, settings: &Settings) {
        grow(window, acked, settings);
    }

    fn ssthresh(&mut self, _window: &Window, flight: u32, settings: &Settings) -> u32 {
        half(flight, settings)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use crate::transport::testing::acked;

    #[test]
    fn doubles_in_slow_start_then_adds_about_a_segment_per_window() {
        let settings = Settings::from_scenario(&Scenario::default());
        let mss = settings.mss;
        let mut window = Window {
            cwnd: 10 * mss,
            ssthresh: 20 * mss,
        };
        for _ in 0..10 {
            NewReno.on_ack(&mut window, &acked(1), &settings);
        }
        assert_eq!(window.cwnd, 20 * mss);
        for _ in 0..20 {
            NewReno.on_ack(&mut window, &acked(1), &settings);
        }
        assert!(window.cwnd > 20 * mss + mss * 9 / 10 && window.cwnd <= 21 * mss);
    }

    #[test]
    fn a_loss_halves_the_flight_but_leaves_two_segments() {
        let settings = Settings::from_scenario(&Scenario::default());
        let window = Window {
            cwnd: 1,
            ssthresh: 1,
        };
        assert_eq!(NewReno.ssthresh(&window, 100_000, &settings), 50_000);
        assert_eq!(
            NewReno.ssthresh(&window, 1_000, &settings),
            2 * settings.mss
        );
    }
}
