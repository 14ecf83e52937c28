//! HPCC (Li et al., SIGCOMM 2019), which reads telemetry.

use super::Pacer;
use super::rate::{
    self, HopChange, PacedWindow, PathMemory, RoundTrips, Smoothed, bandwidth_delay_product,
};
use crate::transport::{Acked, CongestionControl, Settings, TransportVariant, Window};
use crate::units::Duration;

/// Target utilisation of a line (η).
const TARGET: f64 = 0.95;

/// Number of consecutive additive increases before the window follows the utilisation of the line again.
const STAGES: u32 = 5;

/// HPCC. The window follows the utilisation of the busiest line, including the bytes in its queue. It is a
/// reference window, which changes once per round trip, divided by that utilisation.
#[derive(Clone, Debug)]
pub struct Hpcc {
    paced: PacedWindow,
    /// The reference window, bytes.
    reference: f64,
    /// Number of additive increases since the window last followed the utilisation.
    stage: u32,
    utilisation: Smoothed,
    round_trips: RoundTrips,
    path: PathMemory,
}

/// Returns the bytes that a round trip adds. Together, all flows that a host expects add the part of the line
/// that the target leaves free. In the ns-3 code, it is the bytes that 100 Mbit/s send.
fn additive_increase(settings: &Settings) -> f64 {
    match settings.variant {
        TransportVariant::Paper => {
            let flows = f64::from(settings.flows_per_host);
            bandwidth_delay_product(settings) * (1.0 - TARGET) / flows
        }
        TransportVariant::Ns3 => rate::increase_in_ns3(settings),
    }
}

/// Returns the utilisation of a hop: bytes in the queue and on the line over the bytes that the line holds
/// (Eq. 2).
fn utilisation_of(hop: HopChange, settings: &Settings) -> f64 {
    let [before, now] = hop.queue_bytes;
    let in_flight = hop.line * settings.base_rtt.0 as f64;
    let sent = hop.sent_bytes / (hop.time.0 as f64 * hop.line);
    before.min(now) / in_flight + sent
}

impl Hpcc {
    pub(super) fn new(settings: &Settings) -> Hpcc {
        let paced = PacedWindow::new(settings);
        Hpcc {
            reference: paced.bytes(),
            paced,
            stage: 0,
            utilisation: Smoothed::from_first(),
            round_trips: RoundTrips::default(),
            path: PathMemory::default(),
        }
    }

    /// Updates the window with the utilisation of the busiest hop (Algorithm 1).
    fn adapt(&mut self, share: f64, time: Duration, round_trip_over: bool, settings: &Settings) {
        let share = self.utilisation.take(share, time, settings);
        let increase = additive_increase(settings);
        let (bytes, stage) = if share >= TARGET || self.stage >= STAGES {
            // A line that was idle throughout would let the window grow without bounds.
            let over = (share / TARGET).max(f64::EPSILON);
            (self.reference / over + increase, 0)
        } else {
            (self.reference + increase, self.stage + 1)
        };
        self.paced.set(bytes, settings);
        if round_trip_over {
            self.reference = self.paced.bytes();
            self.stage = stage;
        }
    }
}

impl CongestionControl for Hpcc {
    fn initial_window(&self, settings: &Settings) -> Window {
        rate::initial_window(settings)
    }

    fn observe(&mut self, window: &mut Window, acked: &Acked<'_>, settings: &Settings) {
        let Some(path) = acked.path else {
            return;
        };
        let mut greatest: Option<(f64, Duration)> = None;
        self.path.take(path, |hop| {
            let share = utilisation_of(hop, settings);
            if greatest.is_none_or(|(most, _)| share > most) {
                greatest = Some((share, hop.time));
            }
        });
        if let Some((share, time)) = greatest {
            let round_trip_over = self.round_trips.is_over(acked);
            self.adapt(share, time, round_trip_over, settings);
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
    use crate::transport::congestion::rate::tests::{path, record, settings};
    use crate::transport::testing::acked;

    /// Returns the windows after acknowledgements. Each is given by the number of segments acknowledged so
    /// far and the record of one hop: time in microseconds, bytes in the queue and bytes sent.
    fn windows(variant: TransportVariant, acks: &[(u32, [u64; 3])]) -> Vec<f64> {
        let settings = settings(TransportKind::Hpcc, variant);
        let mut hpcc = Hpcc::new(&settings);
        let mut window = rate::initial_window(&settings);
        let observe = |&(una, [at, queue, sent]): &(u32, [u64; 3])| {
            let path = path(&[record(0, at, queue, sent)]);
            let ack = Acked {
                una,
                next: una + 10,
                path: Some(&path),
                ..acked(1)
            };
            hpcc.observe(&mut window, &ack, &settings);
            hpcc.paced.bytes()
        };
        acks.iter().map(observe).collect()
    }

    fn check(found: &[f64], expected: &[f64]) {
        assert_eq!(found.len(), expected.len());
        for (found, expected) in found.iter().zip(expected) {
            assert!(
                (found / expected - 1.0).abs() < 1e-12,
                "{found:?}, not {expected}"
            );
        }
    }

    /// The additive increase W_AI is 500 B.
    #[test]
    fn a_sequence_by_hand() {
        let acks = [
            (1, [0, 30_000, 0]),
            // A whole round trip of a busy line, with at least 20,000 B in the queue: 1.2.
            (2, [80, 20_000, 100_000]),
            // In the same round trip of the flow the reference is unchanged. Half of the line is
            // busy, smoothed over a tenth of a round trip: 0.9 · 1.2 + 0.1 · 0.5.
            (3, [88, 0, 105_000]),
            // In the next round trip, half of the line is busy for 80 µs, which is below the target.
            (13, [168, 0, 155_000]),
            (14, [248, 0, 205_000]),
        ];
        let first = 100_000.0 / (1.2 / 0.95) + 500.0;
        let second = first / (1.13 / 0.95) + 500.0;
        let third = first + 500.0;
        check(
            &windows(TransportVariant::Paper, &acks),
            &[100_000.0, first, second, third, third + 500.0],
        );
    }

    /// Each round trip below the target adds 500 B; the sixth follows the utilisation again.
    #[test]
    fn five_increases_come_before_the_share_counts() {
        let mut acks = vec![(1, [0, 0, 0]), (2, [80, 400_000, 100_000])];
        // The utilisation counts a queue only if it is long at both ends of an interval.
        acks.push((13, [160, 400_000, 200_000]));
        for step in 0..6 {
            let at = 240 + 80 * u64::from(step);
            acks.push((
                24 + 11 * step,
                [at, 0, 200_000 + 50_000 * (u64::from(step) + 1)],
            ));
        }
        let found = windows(TransportVariant::Paper, &acks);
        let low = 100_000.0 / (1.0 / 0.95) + 500.0;
        let lower = low / (5.0 / 0.95) + 500.0;
        let mut expected = vec![100_000.0, low, lower];
        expected.extend((1..=5).map(|steps| lower + 500.0 * f64::from(steps)));
        expected.push((lower + 2_500.0) / (0.5 / 0.95) + 500.0);
        check(&found, &expected);
    }

    #[test]
    fn the_form_of_ns3_adds_more() {
        let acks = [
            (1, [0, 0, 0]),
            (2, [80, 0, 100_000]),
            (13, [160, 0, 150_000]),
        ];
        let first = 100_000.0 * 0.95 + 1_000.0;
        check(
            &windows(TransportVariant::Ns3, &acks),
            &[100_000.0, first, first + 1_000.0],
        );
    }
}
