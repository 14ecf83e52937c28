//! DCTCP's window (RFC 8257).

mod ns3;

use super::newreno::{grow, half};
use crate::transport::{Acked, CongestionControl, Settings, Window};
use bufgym_util::convert::floor_u32;
use ns3::DctcpNs3;

/// RFC 8257 §4.2: gain of the estimate.
const GAIN: f64 = 1.0 / 16.0;

/// DCTCP. The recovery `ns3` has that of ns-3.
#[derive(Clone, Debug)]
pub struct Dctcp(Variant);

#[derive(Clone, Debug)]
enum Variant {
    Rfc(Rfc8257),
    Ns3(DctcpNs3),
}

impl Dctcp {
    pub(super) fn new(settings: &Settings) -> Dctcp {
        Dctcp(match settings.is_ns3() {
            true => Variant::Ns3(DctcpNs3::default()),
            false => Variant::Rfc(Rfc8257::default()),
        })
    }
}

impl CongestionControl for Dctcp {
    fn observe(&mut self, window: &mut Window, acked: &Acked, settings: &Settings) {
        match &mut self.0 {
            Variant::Rfc(dctcp) => dctcp.observe(window, acked, settings),
            Variant::Ns3(dctcp) => dctcp.observe(window, acked, settings),
        }
    }

    #[inline]
    fn on_ack(&mut self, window: &mut Window, acked: &Acked, settings: &Settings) {
        match &mut self.0 {
            Variant::Rfc(dctcp) => dctcp.on_ack(window, acked, settings),
            Variant::Ns3(dctcp) => dctcp.on_ack(window, acked, settings),
        }
    }

    fn ssthresh(&mut self, window: &Window, flight: u32, settings: &Settings) -> u32 {
        match &mut self.0 {
            Variant::Rfc(dctcp) => dctcp.ssthresh(window, flight, settings),
            Variant::Ns3(dctcp) => dctcp.ssthresh(window, flight, settings),
        }
    }

    fn window_after_mark(&mut self, window: &Window, flight: u32, settings: &Settings) -> u32 {
        match &mut self.0 {
            Variant::Rfc(dctcp) => dctcp.window_after_mark(window, flight, settings),
            Variant::Ns3(dctcp) => dctcp.window_after_mark(window, flight, settings),
        }
    }
}

/// Cuts the window in proportion to the fraction of marked data, once per window of data. Otherwise
/// it behaves like NewReno.
#[derive(Clone, Debug)]
struct Rfc8257 {
    /// Estimate of the fraction of marked data.
    alpha: f64,
    /// Numbers of segments acknowledged in this observation window, and of those with an echo.
    acknowledged: u32,
    marked: u32,
    /// Segment whose acknowledgement ends the observation window.
    window_end: u32,
}

impl Default for Rfc8257 {
    fn default() -> Rfc8257 {
        Rfc8257 {
            // §4.2: the value if all data were marked, so that the first cut is as large as Reno's.
            alpha: 1.0,
            acknowledged: 0,
            marked: 0,
            window_end: 0,
        }
    }
}

impl CongestionControl for Rfc8257 {
    /// Implements §3.3, steps 1 to 8.
    fn observe(&mut self, _window: &mut Window, acked: &Acked, _settings: &Settings) {
        self.acknowledged += acked.segments;
        if acked.marked {
            self.marked += acked.segments;
        }
        if acked.una <= self.window_end {
            return;
        }
        if self.acknowledged > 0 {
            let fraction = f64::from(self.marked) / f64::from(self.acknowledged);
            self.alpha = (1.0 - GAIN) * self.alpha + GAIN * fraction;
        }
        self.window_end = acked.next;
        (self.acknowledged, self.marked) = (0, 0);
    }

    #[inline]
    fn on_ack(&mut self, window: &mut Window, acked: &Acked, settings: &Settings) {
        grow(window, acked, settings);
    }

    /// Reacts to a loss like conventional TCP (§3.5).
    fn ssthresh(&mut self, _window: &Window, flight: u32, settings: &Settings) -> u32 {
        half(flight, settings)
    }

    /// Returns `cwnd (1 - α/2)` (§3.3, step 9), but at least two segments, so that acknowledgements keep coming.
    fn window_after_mark(&mut self, window: &Window, _flight: u32, settings: &Settings) -> u32 {
        let left = f64::from(window.cwnd) * (1.0 - self.alpha / 2.0);
        floor_u32(left).max(2 * settings.mss)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use crate::transport::testing::acked;

    /// Returns α after each window of ten segments; `marks` gives the number of marked ones.
    fn alphas(marks: &[u32]) -> Vec<f64> {
        let settings = Settings::from_scenario(&Scenario::default());
        let mut dctcp = Rfc8257 {
            window_end: 9,
            ..Rfc8257::default()
        };
        let mut window = Window {
            cwnd: 10 * settings.mss,
            ssthresh: settings.mss,
        };
        let mut una = 0;
        let mut alphas = Vec::new();
        for &marked in marks {
            for index in 0..10 {
                una += 1;
                let ack = Acked {
                    una,
                    next: una + 9,
                    marked: index < marked,
                    ..acked(1)
                };
                dctcp.observe(&mut window, &ack, &settings);
            }
            alphas.push(dctcp.alpha);
        }
        alphas
    }

    #[test]
    fn alpha_follows_the_marked_fraction() {
        let found = alphas(&[10, 5, 0]);
        let second = 15.0 / 16.0 + 0.5 / 16.0;
        assert_eq!(found, [1.0, second, second * 15.0 / 16.0]);
    }

    #[test]
    fn a_window_is_cut_by_half_of_alpha_but_by_half_on_loss() {
        let settings = Settings::from_scenario(&Scenario::default());
        let mut dctcp = Rfc8257 {
            alpha: 0.25,
            ..Rfc8257::default()
        };
        let window = Window {
            cwnd: 80_000,
            ssthresh: 1,
        };
        assert_eq!(dctcp.window_after_mark(&window, 60_000, &settings), 70_000);
        assert_eq!(dctcp.ssthresh(&window, 60_000, &settings), 30_000);
    }
}
