//! Parts that rate-based transports share.
//!
//! A flow begins at line rate with a window of the bandwidth-delay product. Then its congestion control
//! sets a window, which bounds the outstanding data, and the rate at which packets leave: a window per
//! round trip. Hosts know the round-trip times through the empty network; they do not measure them.
//!
//! All numbers are floating-point and are only added, subtracted, multiplied and divided, so results are the
//! same on every machine.

use std::collections::VecDeque;

use bufgym_util::convert::{floor_u32, floor_u64};

use super::Pacer;
use crate::scenario::MAX_WINDOW;
use crate::transport::{Acked, PathRecords, Settings, Window};
use crate::units::{Duration, Instant, Rate};

/// Minimum rate of a flow, bit/s.
const MIN_RATE: f64 = 100e6;

/// Returns the bytes that a rate, bit/s, sends in a time.
fn bytes_within(rate: f64, time: Duration) -> f64 {
    rate * time.0 as f64 / 8e12
}

/// Returns the bytes that the line of a host sends in a round trip through the empty network.
pub(super) fn bandwidth_delay_product(settings: &Settings) -> f64 {
    bytes_within(settings.line_rate.0 as f64, settings.base_rtt)
}

/// Returns the bytes that 100 Mbit/s send in a round trip: the additive increase of the ns-3 code.
pub(super) fn increase_in_ns3(settings: &Settings) -> f64 {
    bytes_within(100e6, settings.base_rtt)
}

/// Returns the rate, limited to at least 100 Mbit/s and at most the line rate, bit/s.
pub(super) fn bounded(rate: f64, settings: &Settings) -> f64 {
    rate.max(MIN_RATE).min(settings.line_rate.0 as f64)
}

/// Returns a pacer at line rate.
pub(super) fn pacer(settings: &Settings) -> Pacer {
    Pacer::new(settings.line_rate)
}

/// Returns a window that neither losses nor slow start change.
pub(super) fn window(bytes: f64, settings: &Settings) -> Window {
    Window {
        cwnd: floor_u32(bytes).min(settings.window_cap),
        ssthresh: 0,
    }
}

/// Returns the window with which a flow begins.
pub(super) fn initial_window(settings: &Settings) -> Window {
    let bytes = bandwidth_delay_product(settings).max(f64::from(settings.mss));
    window(bytes, settings)
}

/// Returns a window of these bytes for an RDMA flow, which only the transport changes.
pub(super) fn rdma_window(bytes: f64) -> Window {
    Window {
        cwnd: floor_u32(bytes).clamp(1, MAX_WINDOW),
        ssthresh: 0,
    }
}

/// A window, and the rate that follows from it.
#[derive(Clone, Debug)]
pub(super) struct PacedWindow {
    bytes: f64,
    pub(super) pacer: Pacer,
}

impl PacedWindow {
    pub(super) fn new(settings: &Settings) -> PacedWindow {
        PacedWindow {
            bytes: bandwidth_delay_product(settings).max(f64::from(settings.mss)),
            pacer: pacer(settings),
        }
    }

    /// Returns the window, bytes.
    pub(super) fn bytes(&self) -> f64 {
        self.bytes
    }

    /// Sets the window, from one segment to the bandwidth-delay product, and the rate.
    pub(super) fn set(&mut self, bytes: f64, settings: &Settings) {
        let least = f64::from(settings.mss);
        let most = bandwidth_delay_product(settings).max(least);
        self.bytes = bytes.max(least).min(most);
        let rate = self.bytes * 8e12 / settings.base_rtt.0 as f64;
        self.pacer.rate = Rate(floor_u64(bounded(rate, settings)));
    }

    /// Applies the window to the sender, also after a timeout that has reduced the sender's window.
    pub(super) fn apply(&self, window_in_force: &mut Window, settings: &Settings) {
        *window_in_force = window(self.bytes, settings);
    }
}

/// A quantity that is smoothed over a round trip: `((τ - Δ) x + Δ x') / τ` for a new value x' that
/// stands for a time Δ.
#[derive(Clone, Copy, Debug)]
pub(super) struct Smoothed(Option<f64>);

impl Smoothed {
    /// Creates a quantity whose first value is taken as it is.
    pub(super) fn from_first() -> Smoothed {
        Smoothed(None)
    }

    /// Creates a quantity that begins at zero, so that the first value is smoothed, too.
    pub(super) fn from_zero() -> Smoothed {
        Smoothed(Some(0.0))
    }

    /// Takes a value that stands for `time`; returns the smoothed value.
    pub(super) fn take(&mut self, value: f64, time: Duration, settings: &Settings) -> f64 {
        let round_trip = settings.base_rtt.0 as f64;
        let share = time.0 as f64;
        let share = share.min(round_trip);
        let smoothed = match self.0 {
            None => value,
            Some(before) => (before * (round_trip - share) + value * share) / round_trip,
        };
        self.0 = Some(smoothed);
        smoothed
    }

    /// Replaces the smoothed value.
    pub(super) fn set(&mut self, value: f64) {
        self.0 = Some(value);
    }
}

/// Detects the acknowledgements that end a round trip.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct RoundTrips {
    /// First segment not yet sent when the last round trip ended.
    until: u32,
}

impl RoundTrips {
    /// Returns true if the acknowledgement ends a round trip: it is the first one of a segment that was sent
    /// after the previous round trip ended.
    pub(super) fn is_over(&mut self, acked: &Acked<'_>) -> bool {
        if acked.una <= self.until {
            return false;
        }
        self.until = acked.next;
        true
    }
}

/// Windows during the last round-trip time of the empty network (τ).
#[derive(Clone, Debug)]
pub(super) struct PastWindows {
    /// Window one τ ago, bytes.
    before: f64,
    /// The windows since then, bytes, and the time at which each was set; in order.
    since: VecDeque<(Instant, f64)>,
}

impl PastWindows {
    /// Creates the record with the first window.
    pub(super) fn new(bytes: f64) -> PastWindows {
        PastWindows {
            before: bytes,
            since: VecDeque::new(),
        }
    }

    /// Returns the window that was in force one τ before `now`, which must not decrease from call to call.
    /// Amortised constant time; at most one window is kept for every acknowledgement within τ.
    pub(super) fn a_round_trip_before(&mut self, now: Instant, settings: &Settings) -> f64 {
        while let Some(&(set, bytes)) = self.since.front()
            && set + settings.base_rtt <= now
        {
            self.before = bytes;
            self.since.pop_front();
        }
        self.before
    }

    /// Records the window from `now` on, bytes.
    pub(super) fn set(&mut self, now: Instant, bytes: f64) {
        self.since.push_back((now, bytes));
    }
}

/// Changes at a hop between the segments of two acknowledgements.
#[derive(Clone, Copy, PartialEq, Debug)]
pub(super) struct HopChange {
    /// Bytes in the queue at the first and at the second segment.
    pub(super) queue_bytes: [f64; 2],
    /// Bytes that the port sent in between.
    pub(super) sent_bytes: f64,
    /// Time between the two.
    pub(super) time: Duration,
    /// Rate of the port's line, bytes per picosecond.
    pub(super) line: f64,
}

/// The last record of every hop.
#[derive(Clone, Default, Debug)]
pub(super) struct PathMemory {
    /// Boxed, because the records would make the flows of all congestion controls larger.
    records: Box<PathRecords>,
}

impl PathMemory {
    /// Takes the records of a segment, and calls `change` with the changes at every hop. A hop without an
    /// earlier record, such as after a change of path, is only stored.
    pub(super) fn take(&mut self, path: &PathRecords, mut change: impl FnMut(HopChange)) {
        for (place, hop) in path.hops().iter().enumerate() {
            let before = self.records.hops().get(place).copied();
            let before = before.filter(|before| before.port == hop.port);
            if let Some(before) = before {
                if hop.at < before.at {
                    continue;
                }
                if hop.at > before.at {
                    change(HopChange {
                        queue_bytes: [before.queue_bytes as f64, hop.queue_bytes as f64],
                        sent_bytes: (hop.sent_bytes - before.sent_bytes) as f64,
                        time: hop.at - before.at,
                        line: hop.rate.0 as f64 / 8e12,
                    });
                }
            }
            self.records.set(place, *hop);
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use crate::transport::{HopRecord, PortId, TransportKind, TransportVariant};

    /// Returns settings with 10 Gbit/s and 80 µs: 100,000 B. A record's port sends 1,250 B in a microsecond.
    pub(in crate::transport) fn settings(
        transport: TransportKind,
        variant: TransportVariant,
    ) -> Settings {
        let mut scenario = Scenario::preset("abm-leafspine").unwrap();
        scenario.transport.kind = transport;
        scenario.transport.variant = variant;
        Settings::from_scenario(&scenario)
    }

    /// Returns a record of a port at 10 Gbit/s.
    pub(in crate::transport) fn record(
        port: usize,
        at_us: u64,
        queue_bytes: u64,
        sent_bytes: u64,
    ) -> HopRecord {
        HopRecord {
            port: PortId::of(Default::default(), port),
            queue_bytes,
            port_bytes: queue_bytes,
            sent_bytes,
            at: Instant::from_us(at_us),
            rate: Rate(10_000_000_000),
        }
    }

    pub(in crate::transport) fn path(records: &[HopRecord]) -> PathRecords {
        let mut path = PathRecords::default();
        for record in records {
            path.push(*record);
        }
        path
    }

    #[test]
    fn a_window_is_a_rate() {
        let settings = settings(TransportKind::PowerTcp, TransportVariant::Paper);
        let mut paced = PacedWindow::new(&settings);
        assert_eq!(initial_window(&settings).cwnd, 100_000);
        assert_eq!(paced.pacer.rate, Rate(10_000_000_000));
        for (bytes, window, rate) in [
            (40_000.0, 40_000.0, 4_000_000_000),
            (1e9, 100_000.0, 10_000_000_000),
            (0.0, 1_400.0, 140_000_000),
        ] {
            paced.set(bytes, &settings);
            assert_eq!((paced.bytes(), paced.pacer.rate), (window, Rate(rate)));
        }
        let small = Settings {
            mss: 100,
            ..settings
        };
        paced.set(0.0, &small);
        assert_eq!(
            (paced.bytes(), paced.pacer.rate),
            (100.0, Rate(100_000_000))
        );
    }

    #[test]
    fn values_are_smoothed_over_a_round_trip() {
        let settings = settings(TransportKind::PowerTcp, TransportVariant::Paper);
        let mut smoothed = Smoothed::from_first();
        assert_eq!(smoothed.take(2.0, Duration::from_us(1), &settings), 2.0);
        assert_eq!(smoothed.take(1.0, Duration::from_us(20), &settings), 1.75);
        assert_eq!(smoothed.take(3.0, Duration::from_us(800), &settings), 3.0);
        let mut smoothed = Smoothed::from_zero();
        assert_eq!(smoothed.take(2.0, Duration::from_us(20), &settings), 0.5);
    }

    #[test]
    fn changes_are_between_records_of_one_port() {
        let mut memory = PathMemory::default();
        let mut changes = |records: &[HopRecord]| {
            let mut changes = Vec::new();
            memory.take(&path(records), |change| changes.push(change));
            changes
        };
        assert!(changes(&[record(1, 10, 0, 500), record(2, 20, 70, 0)]).is_empty());
        // The second hop is at another port, and the first one has the same time as before.
        assert!(changes(&[record(1, 10, 5, 500), record(3, 21, 0, 0)]).is_empty());
        let found = changes(&[record(1, 12, 3_000, 1_500), record(3, 22, 9, 900)]);
        let expected = |queue_bytes, sent_bytes, us| HopChange {
            queue_bytes,
            sent_bytes,
            time: Duration::from_us(us),
            line: 1_250.0 / 1e6,
        };
        let first = expected([5.0, 3_000.0], 1_000.0, 2);
        assert_eq!(found, [first, expected([0.0, 9.0], 900.0, 1)]);
        // The record of a segment that was overtaken is ignored.
        assert!(changes(&[record(1, 11, 1, 1_000)]).is_empty());
        let later = changes(&[record(1, 14, 2_000, 2_000)]);
        assert_eq!(later, [expected([3_000.0, 2_000.0], 500.0, 2)]);
    }
}
