//! Optional recordings of a run: waiting times, a timeline of all ports, every lost packet.

use bufgym_util::convert::{index, nearest_rank};

use super::ingress::{IngressSamples, IngressSampling};
use super::observer::Observer;
use super::outcome::{DropRow, Outcome, TimelineRow};
use crate::engine::clock::EventTime;
use crate::host::HostObserver;
use crate::switch::{Loss, PacketId, PacketView, Policy, Switch, SwitchId, SwitchObserver, View};
use crate::units::{Duration, Instant};

/// Recordings that users can request; nothing is recorded by default.
#[derive(Clone, Default, Debug)]
pub struct Recorders {
    waits: Option<Box<Waits>>,
    samples: Option<Box<Samples>>,
    drops: Option<Vec<DropRow>>,
}

/// Recordings taken at equal intervals, kept together so that each event needs one check.
#[derive(Clone, Default, Debug)]
struct Samples {
    timeline: Option<Timeline>,
    ingress: Option<IngressSamples>,
}

impl Samples {
    #[cold]
    #[inline(never)]
    fn take<P: Policy>(&mut self, now: EventTime, switches: &[Switch<P>]) {
        if let Some(timeline) = &mut self.timeline {
            timeline.sample(now, switches);
        }
        if let Some(ingress) = &mut self.ingress {
            ingress.sample(|switch| now.at(switch.clock_offset()), switches);
        }
    }
}

impl Recorders {
    /// Measures how long packets wait in the switches, for
    /// [`Summary::p99_queueing_delay_us`](super::Summary::p99_queueing_delay_us); to be called before
    /// the run.
    pub fn measure_waits(&mut self) {
        self.waits.get_or_insert_default();
    }

    /// Records the state of every port every `interval` of simulated time from `start` on.
    pub fn record_timeline(&mut self, interval: Duration, start: Instant) {
        self.samples.get_or_insert_default().timeline = Some(Timeline {
            interval: interval.max(Duration(1)),
            start,
            next: Vec::new(),
            rows: Vec::new(),
        });
    }

    /// Records lossless ingress queues at these instants; to be called before the run.
    pub fn sample_ingress(&mut self, sampling: IngressSampling) {
        let samples = self.samples.get_or_insert_default();
        samples.ingress = Some(IngressSamples::new(sampling));
    }

    /// Records every lost packet from now on.
    pub fn record_drops(&mut self) {
        self.drops.get_or_insert_default();
    }
}

impl HostObserver for Recorders {}

impl SwitchObserver for Recorders {
    #[inline]
    fn lost(&mut self, at: SwitchId, view: View<'_>, packet: PacketView, loss: Loss) {
        if let Some(drops) = &mut self.drops {
            drops.push(DropRow {
                t: view.now,
                switch: at,
                port: port_number(packet.port),
                queue_bytes: view.buffer.port(packet.port),
                occupancy_bytes: view.buffer.occupancy(),
                loss,
            });
        }
    }

    #[inline]
    fn waits(&mut self, id: PacketId, now: Instant) {
        if let Some(waits) = &mut self.waits {
            waits.begin(id, now);
        }
    }

    #[inline]
    fn served(&mut self, id: PacketId, now: Instant, waited: bool) {
        if let Some(waits) = &mut self.waits {
            waits.end(id, now, waited);
        }
    }
}

impl Observer for Recorders {
    #[inline(always)]
    fn before_event<P: Policy>(&mut self, now: EventTime, switches: &[Switch<P>]) {
        if let Some(samples) = &mut self.samples {
            samples.take(now, switches);
        }
    }

    /// Hands over the timeline, ingress queues and drops.
    fn report(&mut self, outcome: &mut Outcome) {
        if let Some(waits) = &self.waits {
            outcome.summary.p99_queueing_delay_us = waits.times.percentile_us(99.0);
        }
        let samples = self.samples.take().unwrap_or_default();
        outcome.timeline = samples.timeline.map_or_else(Vec::new, |taken| taken.rows);
        outcome.ingress = samples.ingress.map_or_else(Vec::new, |taken| taken.rows);
        outcome.drops = self.drops.take().unwrap_or_default();
    }
}

/// Samples of all ports at equal intervals.
#[derive(Clone, Debug)]
struct Timeline {
    interval: Duration,
    start: Instant,
    /// Time of the next sample, for every switch.
    next: Vec<Instant>,
    rows: Vec<TimelineRow>,
}

impl Timeline {
    /// Samples every switch that is due. Nothing changes between events, so a single sample stands
    /// for all that have become due since.
    fn sample<P: Policy>(&mut self, now: EventTime, switches: &[Switch<P>]) {
        self.next.resize(switches.len(), self.start);
        for (switch, next) in switches.iter().zip(&mut self.next) {
            let now = now.at(switch.clock_offset());
            if *next > now {
                continue;
            }
            let missed = (now - *next).0 / self.interval.0;
            sample_ports(switch, *next, now, &mut self.rows);
            *next = next.saturating_add(self.interval.saturating_mul(missed + 1));
        }
    }
}

/// Returns a port's number in a row.
fn port_number(port: usize) -> u32 {
    u32::try_from(port).expect("a switch has at most 65,536 ports")
}

fn sample_ports<P: Policy>(
    switch: &Switch<P>,
    t: Instant,
    now: Instant,
    rows: &mut Vec<TimelineRow>,
) {
    let buffer = switch.buffer();
    for port in 0..buffer.ports() {
        // A port with several queues shows the threshold of its first queue.
        let queue = port * buffer.queues_per_port();
        rows.push(TimelineRow {
            t,
            port: port_number(port),
            queue_bytes: buffer.port(port),
            threshold_bytes: switch.threshold(queue, now).unwrap_or(buffer.capacity()),
            occupancy_bytes: buffer.occupancy(),
            alpha: switch.policy().alpha(queue).unwrap_or(f64::NAN),
            switch: switch.id(),
        });
    }
}

/// Records how long packets wait.
#[derive(Clone, Default, Debug)]
struct Waits {
    /// Time at which each waiting packet was enqueued, by packet number.
    since: Vec<Instant>,
    times: WaitingTimes,
}

impl Waits {
    fn begin(&mut self, id: PacketId, now: Instant) {
        let index = id as usize;
        if self.since.len() <= index {
            self.since
                .resize((index + 1).next_power_of_two(), Instant::ZERO);
        }
        self.since[index] = now;
    }

    fn end(&mut self, id: PacketId, now: Instant, waited: bool) {
        match self.since.get(id as usize).filter(|_| waited) {
            Some(&since) => self.times.add(now - since),
            None => self.times.add_none(),
        }
    }
}

/// Shorter differences are not resolved: 2^9 ps, half a nanosecond.
const UNIT_BITS: u32 = 9;
/// Parts of every factor of two, so that a part is narrower than 1/128 of its values.
const PART_BITS: u32 = 7;
const PARTS: u64 = 1 << PART_BITS;
/// Longer waits, from 8.8 s on, all fall into the last bin.
const LIMIT: u64 = (1 << 34) - 1;
const BINS: usize = ((34 - PART_BITS + 1) << PART_BITS) as usize;

/// Waiting times of the packets that a port began to send: from the arrival of the last bit to the
/// departure of the first. Percentiles are those of a histogram with 128 bins to a factor of two.
#[derive(Clone, Debug)]
struct WaitingTimes {
    /// Packets that found their port idle.
    none: u64,
    bins: Box<[u64]>,
}

impl Default for WaitingTimes {
    fn default() -> Self {
        WaitingTimes {
            none: 0,
            bins: vec![0; BINS].into_boxed_slice(),
        }
    }
}

impl WaitingTimes {
    #[inline]
    fn add_none(&mut self) {
        self.none += 1;
    }

    #[inline]
    fn add(&mut self, wait: Duration) {
        self.bins[bin_of(wait)] += 1;
    }

    /// The nearest-rank percentile in microseconds: the middle of its bin, within 0.4 % of the
    /// packet's own wait or a quarter of a nanosecond. NaN where no packet was sent.
    fn percentile_us(&self, percent: f64) -> f64 {
        let total = self.none + self.bins.iter().sum::<u64>();
        if total == 0 {
            return f64::NAN;
        }
        let rank = nearest_rank(percent / 100.0, total);
        let mut seen = self.none;
        if seen >= rank {
            return 0.0;
        }
        for (bin, packets) in self.bins.iter().enumerate() {
            seen += packets;
            if seen >= rank {
                return middle_us(bin);
            }
        }
        middle_us(BINS - 1)
    }
}

/// Returns the bin of a wait. Bins have equal width up to 256 units, then twice the width with
/// every factor of two.
#[inline]
fn bin_of(wait: Duration) -> usize {
    let units = (wait.0 >> UNIT_BITS).min(LIMIT);
    let shift = (units | PARTS).ilog2() - PART_BITS;
    index((u64::from(shift) << PART_BITS) + (units >> shift))
}

fn middle_us(bin: usize) -> f64 {
    let bin = bin as u64;
    let shift = (bin >> PART_BITS).saturating_sub(1);
    let first = (bin - (shift << PART_BITS)) << shift;
    let width = 1_u64 << shift;
    (first as f64 + width as f64 / 2.0) * f64::from(1 << UNIT_BITS) * 1e-6
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let mut waits = WaitingTimes::default();
        assert!(waits.percentile_us(99.0).is_nan());
        for _ in 0..90 {
            waits.add_none();
        }
        for microseconds in 1..=10 {
            waits.add(Duration::from_ns(1_000 * microseconds));
        }
        assert_eq!(waits.percentile_us(90.0), 0.0);
        for (percent, expected) in [(91.0, 1.0), (99.0, 9.0), (100.0, 10.0)] {
            let found = waits.percentile_us(percent);
            assert!((found / expected - 1.0).abs() < 0.004, "{percent}: {found}");
        }
    }

    #[test]
    fn every_bin_holds_its_middle_and_no_wait_is_far_from_it() {
        for bin in 0..BINS {
            let middle = Duration((middle_us(bin) * 1e6) as u64);
            assert_eq!(bin_of(middle), bin);
        }
        for exponent in 0..420 {
            let wait = Duration((f64::from(exponent) / 10.0).exp2() as u64);
            let middle = middle_us(bin_of(wait)) * 1e6;
            let error = (middle - wait.0 as f64).abs();
            assert!(error <= (wait.0 as f64 / 256.0).max(256.0), "{wait:?}");
        }
        assert_eq!(bin_of(Duration::MAX), BINS - 1);
    }
}
