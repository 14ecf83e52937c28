//! TCP NewReno's window (RFC 5681 §3.1, RFC 6582).

use super::{CongestionControl, Settings, Window};

/// Slow start adds one segment for every acknowledgement, congestion avoidance about one segment
/// per round trip; a loss halves the outstanding data.
#[derive(Clone, Copy, Default, Debug)]
pub struct NewReno;

impl CongestionControl for NewReno {
    #[inline]
    fn on_ack(&mut self, window: &mut Window, settings: &Settings) {
        let increase = if window.in_slow_start() {
            settings.mss
        } else {
            // RFC 5681 §3.1, equation 3; at least one byte, so that a huge window still grows.
            let square = u64::from(settings.mss) * u64::from(settings.mss);
            ((square / u64::from(window.cwnd)) as u32).max(1)
        };
        window.cwnd = (window.cwnd + increase).min(settings.window_cap);
    }

    fn ssthresh(&self, _window: &Window, flight: u32, settings: &Settings) -> u32 {
        (flight / 2).max(2 * settings.mss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    #[test]
    fn doubles_in_slow_start_then_adds_about_a_segment_per_window() {
        let settings = Settings::from_scenario(&Scenario::default());
        let mss = settings.mss;
        let mut window = Window {
            cwnd: 10 * mss,
            ssthresh: 20 * mss,
        };
        for _ in 0..10 {
            NewReno.on_ack(&mut window, &settings);
        }
        assert_eq!(window.cwnd, 20 * mss);
        for _ in 0..20 {
            NewReno.on_ack(&mut window, &settings);
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
