//! θ-PowerTCP (Addanki, Michel and Schmid, NSDI 2022): PowerTCP from round-trip times, for switches that
//! write no telemetry.

use super::Pacer;
use super::powertcp::{GAMMA, MIN_POWER, additive_increase};
use super::rate::{self, PacedWindow, RoundTrips, Smoothed};
use crate::transport::{Acked, CongestionControl, Settings, TransportVariant, Window};
use crate::units::{Duration, Instant};

/// Weight of the new window in the ns-3 code if the power is not low.
const GAMMA_IN_NS3: f64 = 0.7;

/// θ-PowerTCP. A round-trip time grows at the rate `λ/b - 1`. So the power follows from the round-trip time
/// and its growth, once per round trip.
#[derive(Clone, Debug)]
pub struct ThetaPowerTcp {
    paced: PacedWindow,
    power: Smoothed,
    round_trips: RoundTrips,
    /// The window that was in force until the last update (w_old). An update uses the round-trip time of the
    /// first segment that was sent after the previous update. So this window caused the queue in which the
    /// segment waited.
    previous: f64,
    /// The previous round-trip time, and the time at which it was measured.
    before: Option<(Duration, Instant)>,
}

impl ThetaPowerTcp {
    pub(super) fn new(settings: &Settings) -> ThetaPowerTcp {
        let paced = PacedWindow::new(settings);
        ThetaPowerTcp {
            previous: paced.bytes(),
            paced,
            power: Smoothed::from_first(),
            round_trips: RoundTrips::default(),
            before: None,
        }
    }

    /// Updates the window: the round-trip time was `from` one `time` ago, and is `to` now.
    fn adapt(&mut self, from: Duration, to: Duration, time: Duration, settings: &Settings) {
        let least = match settings.variant {
            TransportVariant::Paper => 0.0,
            TransportVariant::Ns3 => 0.5,
        };
        let growth = (to.0 as f64 - from.0 as f64) / time.0 as f64;
        let current = (growth + 1.0).max(least);
        let power = current * to.0 as f64 / settings.base_rtt.0 as f64;
        let power = self.power.take(power, time, settings).max(MIN_POWER);
        self.power.set(power);
        let gamma = match settings.variant {
            TransportVariant::Ns3 if power >= 0.5 => GAMMA_IN_NS3,
            _ => GAMMA,
        };
        let bytes = self.paced.bytes();
        let reference = match settings.variant {
            TransportVariant::Paper => std::mem::replace(&mut self.previous, bytes),
            TransportVariant::Ns3 => bytes,
        };
        let wanted = reference / power + additive_increase(settings);
        self.paced
            .set(gamma * wanted + (1.0 - gamma) * bytes, settings);
    }
}

impl CongestionControl for ThetaPowerTcp {
    fn initial_window(&self, settings: &Settings) -> Window {
        rate::initial_window(settings)
    }

    /// Implements Algorithm 2.
    fn observe(&mut self, window: &mut Window, acked: &Acked<'_>, settings: &Settings) {
        if self.round_trips.is_over(acked) {
            let before = self.before.replace((acked.elapsed, acked.now));
            if let Some((rtt, at)) = before
                && acked.now > at
            {
                self.adapt(rtt, acked.elapsed, acked.now - at, settings);
            }
        }
        self.paced.apply(window, settings);
    }

    fn on_ack(&mut self, _window: &mut Window, _acked: &Acked<'_>, _settings: &Settings) {}

    fn ssthresh(&mut self, _window: &Window, _flight: u32, _settings: &Settings) -> u32 {
        0
    }

    fn window_after_mark(&mut self, window: &Window, _flight: u32, _settings: &Settings) -> u32 {
        window.cwnd
    }

    fn pacer(&mut self) -> Option<&mut Pacer> {
        Some(&mut self.paced.pacer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::TransportKind;
    use crate::transport::congestion::rate::initial_window;
    use crate::transport::congestion::rate::tests::settings;
    use crate::transport::testing::acked;

    /// Returns the windows after acknowledgements of round trips, which are given by duration and end, both in
    /// microseconds. The second acknowledgement in a round trip does not count.
    fn windows(variant: TransportVariant, round_trips: &[(u64, u64)]) -> Vec<f64> {
        let settings = settings(TransportKind::ThetaPowerTcp, variant);
        let mut theta = ThetaPowerTcp::new(&settings);
        let mut window = initial_window(&settings);
        let mut una = 0;
        let mut windows = Vec::new();
        for &(rtt, now) in round_trips {
            for (segments, rtt) in [(1, rtt), (9, 3 * rtt)] {
                una += segments;
                let ack = Acked {
                    una,
                    next: una + 9,
                    now: Instant::from_us(now),
                    elapsed: Duration::from_us(rtt),
                    ..acked(segments)
                };
                theta.observe(&mut window, &ack, &settings);
            }
            windows.push(theta.paced.bytes());
        }
        windows
    }

    #[test]
    fn a_sequence_by_hand() {
        let round_trips = [(80, 100), (120, 180), (110, 260), (110, 300)];
        let found = windows(TransportVariant::Paper, &round_trips);
        // The round trip grows by 40 µs in 80 µs: current 1.5, voltage 1.5.
        let second = 0.9 * (100_000.0 / 2.25 + 10_000.0) + 0.1 * 100_000.0;
        // It shrinks by 10 µs in 80 µs: power 0.875 · 1.375, with the weight of a whole round trip. It
        // applies to the previous window.
        let third = 0.9 * (100_000.0 / 1.203125 + 10_000.0) + 0.1 * second;
        // It is the same half a round trip later: power 1 · 1.375, with half of the weight.
        let power = (1.203125 + 1.375) / 2.0;
        let fourth = 0.9 * (second / power + 10_000.0) + 0.1 * third;
        for (found, expected) in found.iter().zip([100_000.0, second, third, fourth]) {
            assert!(
                (found / expected - 1.0).abs() < 1e-12,
                "{found}, not {expected}"
            );
        }
    }

    #[test]
    fn the_form_of_ns3_by_hand() {
        let round_trips = [(80, 100), (160, 180), (80, 260)];
        let found = windows(TransportVariant::Ns3, &round_trips);
        // First current 2 and voltage 2; then current 0, which counts as a half, and voltage 1.
        let second = 0.7 * (100_000.0 / 4.0 + 1_000.0) + 0.3 * 100_000.0;
        let third = 0.7 * (second / 0.5 + 1_000.0) + 0.3 * second;
        for (found, expected) in found.iter().zip([100_000.0, second, third]) {
            assert!(
                (found / expected - 1.0).abs() < 1e-12,
                "{found}, not {expected}"
            );
        }
    }
}
