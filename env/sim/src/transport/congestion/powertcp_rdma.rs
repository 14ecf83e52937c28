//! PowerTCP for RDMA, as in the evaluation of Reverie (NSDI 2024): the rate rule of HPCC's ns-3 hosts,
//! with the power of PowerTCP (NSDI 2022) instead of the utilisation.

use bufgym_util::convert::{floor_u32, floor_u64};

use super::Pacer;
use super::rate::{self, HopChange, PathMemory, RoundTrips};
use crate::transport::{Acked, CongestionControl, HopRecord, PathRecords, Settings, Window};
use crate::units::{Duration, Instant, Rate};

/// Power at which rates stay constant (η).
const TARGET: f64 = 0.95;

/// Additive increase, bit/s.
const ADDITIVE: f64 = 150e6;

/// Weight of a new rate.
const WEIGHT: f64 = 0.9;

/// Minimum current of a hop, as a share of its line.
const MIN_CURRENT: f64 = 0.5;

/// Units of the records: time, bytes enqueued, bytes waiting.
const TIME_UNIT: Duration = Duration::from_ns(1);
const ENQUEUED_UNIT: u64 = 128;
const WAITING_UNIT: u64 = 80;

/// PowerTCP for RDMA. The rate follows the power of the bottleneck, smoothed over a round trip. Outstanding
/// data is limited to what the rate sends in a round trip.
#[derive(Clone, Debug)]
pub struct PowerTcpRdma {
    /// Rate, bit/s (R).
    rate: f64,
    /// Rate from which new rates are computed, recorded once per round trip, bit/s (R_c).
    reference: f64,
    /// Smoothed power (u).
    power: f64,
    pacer: Pacer,
    round_trips: RoundTrips,
    path: PathMemory,
}

/// Returns the record as its packet carries it: in whole units, with all bytes that have arrived at the port.
fn quantised(hop: &HopRecord) -> HopRecord {
    let whole = |number: u64, unit: u64| number - number % unit;
    HopRecord {
        at: Instant(whole(hop.at.0, TIME_UNIT.0)),
        queue_bytes: whole(hop.port_bytes, WAITING_UNIT),
        sent_bytes: whole(hop.sent_bytes + hop.port_bytes, ENQUEUED_UNIT),
        ..*hop
    }
}

/// Returns the power of a hop, relative to that of a busy line with an empty queue: `A (q + bτ) / (b · bτ)`.
/// A is the rate at which bytes arrive, at least half of the line rate.
fn power_of(hop: HopChange, settings: &Settings) -> f64 {
    let current = (hop.sent_bytes / (hop.time.0 as f64 * hop.line)).max(MIN_CURRENT);
    let in_flight = hop.line * settings.base_rtt.0 as f64;
    current * (hop.queue_bytes[1] + in_flight) / in_flight
}

impl PowerTcpRdma {
    pub(super) fn new(settings: &Settings) -> PowerTcpRdma {
        let line = settings.line_rate.0 as f64;
        PowerTcpRdma {
            rate: line,
            reference: line,
            power: 1.0,
            pacer: rate::pacer(settings),
            round_trips: RoundTrips::default(),
            path: PathMemory::default(),
        }
    }

    /// Returns the greatest power of a hop between two acknowledgements, and the time between their records
    /// at that hop.
    fn greatest(&mut self, path: &PathRecords, settings: &Settings) -> Option<(f64, Duration)> {
        let mut records = PathRecords::default();
        for hop in path.hops() {
            records.push(quantised(hop));
        }
        let mut greatest: Option<(f64, Duration)> = None;
        self.path.take(&records, |hop| {
            let power = power_of(hop, settings);
            if greatest.is_none_or(|(most, _)| power > most) {
                greatest = Some((power, hop.time));
            }
        });
        greatest
    }

    fn adapt(&mut self, power: f64, time: Duration, settings: &Settings) {
        let round_trip = settings.base_rtt.0 as f64;
        let share = (time.0 as f64).min(round_trip) / round_trip;
        self.power = self.power * (1.0 - share) + power * share;
        let wanted = self.reference * TARGET / self.power + ADDITIVE;
        let rate = WEIGHT * wanted + (1.0 - WEIGHT) * self.reference;
        self.rate = rate::bounded(rate, settings);
        self.pacer.rate = Rate(floor_u64(self.rate));
    }

    /// Returns the window, bytes: outstanding data is below Rτ.
    fn window(&self, settings: &Settings) -> u32 {
        let bytes = self.rate * settings.base_rtt.0 as f64 / 8e12;
        floor_u32(bytes.ceil()).max(1)
    }
}

impl CongestionControl for PowerTcpRdma {
    /// Returns what the line sends in a round trip.
    fn initial_window(&self, settings: &Settings) -> Window {
        rate::rdma_window(rate::bandwidth_delay_product(settings).ceil())
    }

    fn observe(&mut self, window: &mut Window, acked: &Acked<'_>, settings: &Settings) {
        if let Some(path) = acked.path
            && let Some((power, time)) = self.greatest(path, settings)
        {
            self.adapt(power, time, settings);
        }
        window.cwnd = self.window(settings);
        if self.round_trips.is_over(acked) {
            self.reference = self.rate;
        }
    }

    fn on_ack(&mut self, _window: &mut Window, _acked: &Acked<'_>, _settings: &Settings) {}

    fn ssthresh(&mut self, _window: &Window, _flight: u32, _settings: &Settings) -> u32 {
        0
    }

    fn pacer(&mut self) -> Option<&mut Pacer> {
        Some(&mut self.pacer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use crate::transport::testing::acked;
    use crate::transport::{PortId, TransportKind};

    const GBPS: f64 = 1e9;

    /// Returns settings with 25 Gbit/s and 17.28 µs: 54,000 B.
    fn settings() -> Settings {
        let mut scenario = Scenario::default();
        for change in [
            "rate_bps=25e9",
            "base_rtt_ns=17280",
            "transport=powertcp-rdma",
        ] {
            scenario.set(change).unwrap();
        }
        let settings = Settings::from_scenario(&scenario);
        assert_eq!(settings.transport, TransportKind::PowerTcpRdma);
        settings
    }

    fn close(found: f64, expected: f64) {
        assert!(
            (found / expected - 1.0).abs() < 1e-12,
            "{found}, not {expected}"
        );
    }

    struct Bench {
        flow: PowerTcpRdma,
        window: Window,
        settings: Settings,
    }

    impl Bench {
        fn new() -> Bench {
            let settings = settings();
            Bench {
                flow: PowerTcpRdma::new(&settings),
                window: rate::rdma_window(rate::bandwidth_delay_product(&settings).ceil()),
                settings,
            }
        }

        /// Returns the rate after an acknowledgement. A hop states the time in ps, the waiting bytes and the bytes
        /// sent.
        fn ack(&mut self, una: u32, hops: &[(u64, u64, u64)]) -> f64 {
            let mut path = PathRecords::default();
            for (port, &(ps, port_bytes, sent_bytes)) in hops.iter().enumerate() {
                path.push(HopRecord {
                    port: PortId::of(Default::default(), port),
                    // The queue of the packet alone does not count.
                    queue_bytes: port_bytes / 2,
                    port_bytes,
                    sent_bytes,
                    at: Instant(ps),
                    rate: Rate(25_000_000_000),
                });
            }
            let acked = Acked {
                una,
                next: una + 50,
                path: Some(&path),
                ..acked(1)
            };
            self.flow.observe(&mut self.window, &acked, &self.settings);
            assert_eq!(self.flow.pacer.rate, Rate(self.flow.rate as u64));
            self.flow.rate / GBPS
        }
    }

    /// A busy line without a queue: u stays 1.
    #[test]
    fn the_fixed_point_of_a_busy_line_is_24_01_gbps() {
        let mut bench = Bench::new();
        assert_eq!(bench.window.cwnd, 54_000);
        assert_eq!(bench.ack(1, &[(0, 0, 0)]), 25.0);
        // 8,000 units of 128 B in 327,680 ns, both whole numbers of units.
        let busy = [(327_680_000, 0, 1_024_000)];
        close(bench.ack(2, &busy), 24.01);
        assert_eq!(bench.flow.power, 1.0);
        // Rτ is 51,861.6 B, and outstanding data is below that.
        assert_eq!(bench.window.cwnd, 51_862);
    }

    /// 25,600 B arrived in 8.192 µs, which is the line rate, and 10,800 B wait, a fifth of bτ: power 1.2
    /// for 8.192 of 17.28 µs.
    #[test]
    fn power_is_smoothed_over_a_round_trip() {
        let mut bench = Bench::new();
        bench.ack(1, &[(0, 10_800, 0)]);
        let u = (17.28 - 8.192 + 1.2 * 8.192) / 17.28;
        // 10,800 B are 135 units of 80 B. All bytes that arrived are 84 units of 128 B and 48 B, and then 284
        // units and 48 B.
        let rate = 0.9 * (25.0 * 0.95 / u + 0.15) + 2.5;
        close(bench.ack(2, &[(8_192_000, 10_800, 25_600)]), rate);
        // In the same round trip the reference is unchanged.
        let after = (u * (17.28 - 8.192) + 1.2 * 8.192) / 17.28;
        let next = 0.9 * (25.0 * 0.95 / after + 0.15) + 2.5;
        close(bench.ack(3, &[(16_384_000, 10_800, 51_200)]), next);
        // The first packet that left after the first acknowledgement makes the current rate the
        // reference.
        let third = (after * (17.28 - 8.192) + 1.2 * 8.192) / 17.28;
        let last = 0.9 * (25.0 * 0.95 / third + 0.15) + 2.5;
        close(bench.ack(52, &[(24_576_000, 10_800, 76_800)]), last);
        let fourth = (third * (17.28 - 8.192) + 1.2 * 8.192) / 17.28;
        let wanted = 0.9 * (last * 0.95 / fourth + 0.15) + 0.1 * last;
        close(bench.ack(53, &[(32_768_000, 10_800, 102_400)]), wanted);
    }

    /// An idle line counts as half busy, and the time of a hop is at most a round trip.
    #[test]
    fn the_least_power_is_a_half() {
        let mut bench = Bench::new();
        bench.ack(1, &[(0, 0, 0), (0, 0, 0)]);
        bench.ack(2, &[(100_000_000, 0, 0), (100_000_000, 0, 12_800)]);
        assert_eq!(bench.flow.power, 0.5);
        assert_eq!(bench.flow.rate, 25.0 * GBPS);
    }

    /// Remainders below a unit are dropped: 127 B, 79 B and 999 ps.
    #[test]
    fn records_have_whole_units() {
        let record = HopRecord {
            port_bytes: 239,
            sent_bytes: 16,
            at: Instant(5_999),
            ..HopRecord::default()
        };
        let found = quantised(&record);
        assert_eq!(
            (found.at, found.queue_bytes, found.sent_bytes),
            (Instant(5_000), 160, 128)
        );
    }

    #[test]
    fn the_hop_of_the_greatest_power_counts() {
        let mut bench = Bench::new();
        bench.ack(1, &[(0, 0, 0), (0, 54_000, 0)]);
        // The second hop is as busy, and as many bytes wait as are in flight, for more than a whole round
        // trip.
        let hops = [(40_960_000, 0, 128_000), (40_960_000, 54_000, 128_000)];
        let rate = 0.9 * (25.0 * 0.95 / 2.0 + 0.15) + 2.5;
        close(bench.ack(2, &hops), rate);
        assert_eq!(bench.flow.power, 2.0);
    }
}
