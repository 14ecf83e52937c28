//! TIMELY (Mittal et al., SIGCOMM 2015), which computes a rate from the gradient of round-trip times.

use bufgym_util::convert::floor_u64;

use super::Pacer;
use super::rate::{self, RoundTrips};
use crate::transport::{Acked, CongestionControl, Settings, TransportVariant, Window};
use crate::units::{Duration, Rate};

/// Weight of a new difference of round-trip times.
const WEIGHT: f64 = 0.875;

/// Factor of a decrease (β).
const DECREASE: f64 = 0.8;

/// Round-trip time above which rates decrease regardless of the gradient.
const HIGH: Duration = Duration::from_us(500);

/// Number of consecutive increases after which steps are larger.
const PATIENCE: u32 = 5;

/// Parameters that differ between the paper and the ns-3 code.
#[derive(Clone, Copy, Debug)]
struct Rules {
    /// Round-trip time below which rates increase regardless of the gradient.
    low: Duration,
    /// Additive increases, bit/s: the usual one, and the one after five consecutive increases.
    step: f64,
    large_step: f64,
}

impl Rules {
    fn of(variant: TransportVariant) -> Rules {
        match variant {
            TransportVariant::Paper => Rules {
                low: Duration::from_us(50),
                step: 10e6,
                large_step: 50e6,
            },
            TransportVariant::Ns3 => Rules {
                low: Duration::from_us(200),
                step: 100e6,
                large_step: 150e6,
            },
        }
    }
}

/// TIMELY. Once per round trip, the rate increases or decreases, depending on whether the round-trip time is
/// short, grows, or is long. The window does not limit the flow.
#[derive(Clone, Debug)]
pub struct Timely {
    /// Rate, bit/s.
    rate: f64,
    pacer: Pacer,
    round_trips: RoundTrips,
    before: Option<Duration>,
    /// Smoothed difference of round-trip times, picoseconds.
    difference: f64,
    /// Number of consecutive increases while round-trip times did not grow.
    increases: u32,
}

impl Timely {
    pub(super) fn new(settings: &Settings) -> Timely {
        Timely {
            rate: settings.line_rate.0 as f64,
            pacer: rate::pacer(settings),
            round_trips: RoundTrips::default(),
            before: None,
            difference: 0.0,
            increases: 0,
        }
    }

    /// Implements Algorithm 1 of the paper, with τ instead of the minimum round-trip time.
    fn adapt(&mut self, from: Duration, to: Duration, settings: &Settings) {
        let rules = Rules::of(settings.variant);
        let difference = to.0 as f64 - from.0 as f64;
        self.difference = (1.0 - WEIGHT) * self.difference + WEIGHT * difference;
        let gradient = self.difference / settings.base_rtt.0 as f64;
        let increases = std::mem::take(&mut self.increases);
        let rate = if to < rules.low {
            self.rate + rules.step
        } else if to > HIGH {
            self.rate * (1.0 - DECREASE * (1.0 - HIGH.0 as f64 / to.0 as f64))
        } else if gradient <= 0.0 {
            self.increases = increases.saturating_add(1);
            match increases < PATIENCE {
                true => self.rate + rules.step,
                false => self.rate + rules.large_step,
            }
        } else {
            self.rate * (1.0 - DECREASE * gradient).max(0.0)
        };
        self.rate = rate::bounded(rate, settings);
        self.pacer.rate = Rate(floor_u64(self.rate));
    }
}

impl CongestionControl for Timely {
    fn initial_window(&self, settings: &Settings) -> Window {
        rate::initial_window(settings)
    }

    fn observe(&mut self, window: &mut Window, acked: &Acked<'_>, settings: &Settings) {
        *window = rate::window(f64::INFINITY, settings);
        if self.round_trips.is_over(acked)
            && let Some(before) = self.before.replace(acked.elapsed)
        {
            self.adapt(before, acked.elapsed, settings);
        }
    }

    fn on_ack(&mut self, _window: &mut Window, _acked: &Acked<'_>, _settings: &Settings) {}

    fn ssthresh(&mut self, _window: &Window, _flight: u32, _settings: &Settings) -> u32 {
        0
    }

    fn window_after_mark(&mut self, window: &Window, _flight: u32, _settings: &Settings) -> u32 {
        window.cwnd
    }

    fn pacer(&mut self) -> Option<&mut Pacer> {
        Some(&mut self.pacer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::TransportKind;
    use crate::transport::congestion::rate::tests::settings;
    use crate::transport::testing::acked;

    /// Returns the rates after round trips of these durations, microseconds, starting at 5 Gbit/s.
    fn rates(variant: TransportVariant, round_trips: &[u64]) -> Vec<f64> {
        let settings = settings(TransportKind::Timely, variant);
        let mut timely = Timely::new(&settings);
        timely.rate = 5e9;
        let mut window = rate::initial_window(&settings);
        let mut una = 0;
        let mut rates = Vec::new();
        for &rtt in round_trips {
            for (segments, rtt) in [(1, rtt), (9, 7 * rtt)] {
                una += segments;
                let ack = Acked {
                    una,
                    next: una + 9,
                    elapsed: Duration::from_us(rtt),
                    ..acked(segments)
                };
                timely.observe(&mut window, &ack, &settings);
            }
            rates.push(timely.rate);
        }
        assert_eq!(window.cwnd, settings.window_cap);
        rates
    }

    fn check(found: &[f64], expected: &[f64]) {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!(
                (found / expected - 1.0).abs() < 1e-12,
                "{found}, not {expected}"
            );
        }
    }

    #[test]
    fn a_sequence_by_hand() {
        let found = rates(TransportVariant::Paper, &[100, 116, 108, 40, 1_000]);
        // The round trip grows by 16 µs: D is 14 µs, the gradient 0.175.
        let second = 5e9 * (1.0 - 0.8 * 0.175);
        // It shrinks by 8 µs: D is 14/8 - 7 = -5.25 µs.
        let third = second + 10e6;
        // It is short, and then twice the upper threshold.
        let fourth = third + 10e6;
        let fifth = fourth * (1.0 - 0.8 * 0.5);
        check(&found, &[5e9, second, third, fourth, fifth]);
    }

    #[test]
    fn from_the_sixth_increase_in_a_row_steps_are_larger() {
        let found = rates(TransportVariant::Paper, &[100; 9]);
        let steps = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 15.0, 20.0];
        check(&found, &steps.map(|steps| 5e9 + 10e6 * steps));
    }

    /// Below 200 µs, rates increase by 100 Mbit/s; above, by 100 or 150 Mbit/s.
    #[test]
    fn the_form_of_ns3_by_hand() {
        let found = rates(TransportVariant::Ns3, &[100, 199, 205]);
        // D is 0.875 · 99 µs, and then an eighth of that and 0.875 · 6 µs.
        let gradient = (0.125 * 86.625 + 5.25) / 80.0;
        check(&found, &[5e9, 5.1e9, 5.1e9 * (1.0 - 0.8 * gradient)]);
        let found = rates(TransportVariant::Ns3, &[300; 9]);
        let steps = [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.5, 8.0, 9.5];
        check(&found, &steps.map(|steps| 5e9 + 100e6 * steps));
    }

    #[test]
    fn rates_are_bounded() {
        let settings = settings(TransportKind::Timely, TransportVariant::Paper);
        let falling = rates(
            TransportVariant::Paper,
            &[100, 400, 400, 400_000, 400_000, 400_000, 400_000],
        );
        assert_eq!(falling.last(), Some(&100e6));
        let rising = rates(TransportVariant::Ns3, &[100; 100]);
        assert_eq!(rising.last(), Some(&(settings.line_rate.0 as f64)));
    }
}
