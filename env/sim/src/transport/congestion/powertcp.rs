//! PowerTCP (Addanki, Michel and Schmid, NSDI 2022), which reads telemetry.

use super::Pacer;
use super::rate::{
    self, HopChange, PacedWindow, PastWindows, PathMemory, RoundTrips, Smoothed,
    bandwidth_delay_product,
};
use crate::transport::{Acked, CongestionControl, Settings, TransportVariant, Window};
use crate::units::{Duration, Instant};

/// Weight of the new window (γ).
pub(super) const GAMMA: f64 = 0.9;

/// Minimum power.
pub(super) const MIN_POWER: f64 = 0.01;

/// Minimum current, relative to the line. While flows are silent because their windows have shrunk, nothing
/// arrives at a queue, however long it still is. With a current of 0, all flows would then open their windows
/// before the queue is empty.
const MIN_CURRENT: f64 = 0.1;

/// Minimum current in the ns-3 code.
const MIN_CURRENT_IN_NS3: f64 = 0.5;

/// Divisor of the power in the ns-3 code.
const TARGET_IN_NS3: f64 = 0.95;

/// PowerTCP. The window follows the power of the bottleneck, which is current times voltage. The current is
/// the rate at which data arrives. The voltage is the amount of data in the queue and in flight. Power is
/// relative to that of a busy line with an empty queue. Window and power belong to the same round trip, so
/// that a growing queue counts before it is long.
#[derive(Clone, Debug)]
pub struct PowerTcp {
    paced: PacedWindow,
    power: Smoothed,
    reference: Reference,
    path: PathMemory,
}

/// Window from which the new window is computed (w_old).
#[derive(Clone, Debug)]
enum Reference {
    /// The window that caused the power. A record is written when a segment leaves the queue. The bytes in the
    /// queue at that time were sent under the windows of τ before the acknowledgement arrives. The segment
    /// itself was sent earlier, because it waited in the queue. Both windows are the same only if the queue is
    /// empty.
    OfThePower(PastWindows),
    /// The window in the ns-3 code, recorded once per round trip.
    Noted(f64, RoundTrips),
}

impl Reference {
    fn new(bytes: f64, variant: TransportVariant) -> Reference {
        match variant {
            TransportVariant::Paper => Reference::OfThePower(PastWindows::new(bytes)),
            TransportVariant::Ns3 => Reference::Noted(bytes, RoundTrips::default()),
        }
    }

    fn bytes(&mut self, now: Instant, settings: &Settings) -> f64 {
        match self {
            Reference::OfThePower(past) => past.a_round_trip_before(now, settings),
            Reference::Noted(bytes, _) => *bytes,
        }
    }

    /// Records the window after an acknowledgement.
    fn take(&mut self, acked: &Acked<'_>, window: f64) {
        match self {
            Reference::OfThePower(past) => past.set(acked.now, window),
            Reference::Noted(bytes, round_trips) => {
                if round_trips.is_over(acked) {
                    *bytes = window;
                }
            }
        }
    }
}

/// Returns β, the bytes that a flow leaves in the queue. Together, the flows that a host expects leave one
/// bandwidth-delay product. In the ns-3 code, it is the bytes that 100 Mbit/s send in a round trip.
pub(super) fn additive_increase(settings: &Settings) -> f64 {
    match settings.variant {
        TransportVariant::Paper => {
            bandwidth_delay_product(settings) / f64::from(settings.flows_per_host)
        }
        TransportVariant::Ns3 => rate::increase_in_ns3(settings),
    }
}

/// Returns the power of a hop, relative to that of a busy line with an empty queue: `λ (q + bτ) / (b² τ)`,
/// where `λ` is the rate at which bytes arrive.
fn power_of(hop: HopChange, settings: &Settings) -> f64 {
    let [before, now] = hop.queue_bytes;
    let time = hop.time.0 as f64;
    let least = match settings.variant {
        TransportVariant::Paper => MIN_CURRENT,
        TransportVariant::Ns3 => MIN_CURRENT_IN_NS3,
    };
    let current = ((now - before + hop.sent_bytes) / (time * hop.line)).max(least);
    let in_flight = hop.line * settings.base_rtt.0 as f64;
    current * (now + in_flight) / in_flight
}

impl PowerTcp {
    pub(super) fn new(settings: &Settings) -> PowerTcp {
        let paced = PacedWindow::new(settings);
        PowerTcp {
            reference: Reference::new(paced.bytes(), settings.variant),
            paced,
            power: match settings.variant {
                TransportVariant::Paper => Smoothed::from_first(),
                TransportVariant::Ns3 => Smoothed::from_zero(),
            },
            path: PathMemory::default(),
        }
    }

    /// Updates the window with the power of the hop where it is greatest.
    fn adapt(&mut self, power: f64, time: Duration, now: Instant, settings: &Settings) {
        let power = self.power.take(power, time, settings).max(MIN_POWER);
        self.power.set(power);
        let (power, gamma) = match settings.variant {
            TransportVariant::Paper => (power, GAMMA),
            TransportVariant::Ns3 => match power / TARGET_IN_NS3 {
                low if low <= 0.5 => (low, 1.0),
                power => (power, GAMMA),
            },
        };
        let wanted = self.reference.bytes(now, settings) / power + additive_increase(settings);
        let bytes = gamma * wanted + (1.0 - gamma) * self.paced.bytes();
        self.paced.set(bytes, settings);
    }
}

impl CongestionControl for PowerTcp {
    fn initial_window(&self, settings: &Settings) -> Window {
        rate::initial_window(settings)
    }

    /// Implements Algorithm 1.
    fn observe(&mut self, window: &mut Window, acked: &Acked<'_>, settings: &Settings) {
        let Some(path) = acked.path else {
            return;
        };
        let mut greatest: Option<(f64, Duration)> = None;
        self.path.take(path, |hop| {
            let power = power_of(hop, settings);
            if greatest.is_none_or(|(most, _)| power > most) {
                greatest = Some((power, hop.time));
            }
        });
        if let Some((power, time)) = greatest {
            self.adapt(power, time, acked.now, settings);
        }
        self.paced.apply(window, settings);
        self.reference.take(acked, self.paced.bytes());
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
    use crate::transport::HopRecord;
    use crate::transport::congestion::rate::initial_window;
    use crate::transport::congestion::rate::tests::{path, record, settings};
    use crate::transport::testing::acked;

    struct Bench {
        powertcp: PowerTcp,
        window: Window,
        settings: Settings,
    }

    impl Bench {
        fn new(variant: TransportVariant) -> Bench {
            let settings = settings(TransportKind::PowerTcp, variant);
            Bench {
                powertcp: PowerTcp::new(&settings),
                window: initial_window(&settings),
                settings,
            }
        }

        /// Returns the window after an acknowledgement of the segments before `una`.
        fn ack(&mut self, una: u32, records: &[HopRecord]) -> f64 {
            let path = path(records);
            let acked = Acked {
                una,
                next: una + 10,
                now: records.first().map_or(Instant::ZERO, |record| record.at),
                path: Some(&path),
                ..acked(1)
            };
            let Bench {
                powertcp,
                window,
                settings,
            } = self;
            powertcp.observe(window, &acked, settings);
            powertcp.paced.bytes()
        }
    }

    fn close(found: f64, expected: f64) {
        assert!(
            (found / expected - 1.0).abs() < 1e-12,
            "{found}, not {expected}"
        );
    }

    /// β is 10,000 B, and in 8 µs a port sends 10,000 B.
    #[test]
    fn a_sequence_by_hand() {
        let mut bench = Bench::new(TransportVariant::Paper);
        // A single record gives no power.
        assert_eq!(bench.ack(1, &[record(0, 0, 0, 0)]), 100_000.0);
        let first = record(0, 8, 40_000, 10_000);
        let second = record(0, 16, 50_000, 20_000);
        // 50,000 B arrived in 8 µs: current 5, voltage 1.4. That is the first value. Then 20,000 B arrived:
        // current 2, voltage 1.5.
        let window = 0.9 * (100_000.0 / 7.0 + 10_000.0) + 0.1 * 100_000.0;
        close(bench.ack(2, &[first]), window);
        // The smoothed power Γ is 0.9 · 7 + 0.1 · 3.
        let next = 0.9 * (100_000.0 / 6.6 + 10_000.0) + 0.1 * window;
        close(bench.ack(3, &[second]), next);
        assert_eq!(f64::from(bench.window.cwnd), next.floor());
        // The first of these windows was set at 8 µs, and takes effect a round trip of 80 µs later.
        let third = record(0, 87, 50_000, 108_750);
        let power = (9.0 * 6.6 + 71.0 * 1.5) / 80.0;
        let after = 0.9 * (100_000.0 / power + 10_000.0) + 0.1 * next;
        close(bench.ack(12, &[third]), after);
        let fourth = record(0, 91, 50_000, 113_750);
        let power = (76.0 * power + 4.0 * 1.5) / 80.0;
        let last = 0.9 * (window / power + 10_000.0) + 0.1 * after;
        close(bench.ack(13, &[fourth]), last);
    }

    #[test]
    fn the_hop_of_the_greatest_power_counts() {
        let mut bench = Bench::new(TransportVariant::Paper);
        let hops = |at, queue, sent| [record(1, at, 0, sent), record(2, at + 10, queue, 2 * sent)];
        bench.ack(1, &hops(0, 0, 0));
        // The first hop sends 5,000 B in 8 µs: power 0.5. The second hop sends 10,000 B, and 2,500 B are in the
        // queue.
        let power = 1.25 * 1.025;
        let window = 0.9 * (100_000.0 / power + 10_000.0) + 0.1 * 100_000.0;
        close(bench.ack(2, &hops(8, 2_500, 5_000)), window);
    }

    /// An idle line counts as a current of a tenth.
    #[test]
    fn the_window_is_bounded() {
        let mut bench = Bench::new(TransportVariant::Paper);
        bench.ack(1, &[record(0, 0, 0, 0)]);
        assert_eq!(bench.ack(2, &[record(0, 8, 0, 0)]), 100_000.0);
        // 10 MB in 8 µs.
        for step in 2..40 {
            bench.ack(
                step * 11,
                &[record(
                    0,
                    8 * u64::from(step),
                    10_000_000 * u64::from(step),
                    0,
                )],
            );
        }
        let least = 0.9 * 10_000.0;
        assert!(bench.powertcp.paced.bytes() > least && bench.window.cwnd < 11_000);
        // After a timeout the next acknowledgement sets the window again.
        let window = bench.window;
        bench.window.cwnd = 1_400;
        bench.ack(500, &[]);
        assert_eq!(bench.window, window);
    }

    /// Γs begins at 0 and is divided by 0.95; β is 1,000 B.
    #[test]
    fn the_form_of_ns3_by_hand() {
        let mut bench = Bench::new(TransportVariant::Ns3);
        bench.ack(1, &[record(0, 0, 0, 0)]);
        // Current 2 and voltage 1.1 for 8 of 80 µs give 0.22. Divided by 0.95, that is below a half, so γ
        // is 1. The window is the maximum.
        let [first, second] = [record(0, 8, 10_000, 10_000), record(0, 88, 20_000, 110_000)];
        assert_eq!(bench.ack(2, &[first]), 100_000.0);
        // A whole round trip: 110,000 B of 100,000, voltage 1.2.
        let power = 1.1 * 1.2 / 0.95;
        let window = 0.9 * (100_000.0 / power + 1_000.0) + 0.1 * 100_000.0;
        close(bench.ack(3, &[second]), window);
        // Less than half of the line counts as half: 0.5 · 1.2.
        let third = record(0, 168, 20_000, 120_000);
        let low = 0.6 / 0.95;
        let next = 0.9 * (100_000.0 / low + 1_000.0) + 0.1 * window;
        close(bench.ack(4, &[third]), next.min(100_000.0));
    }
}
