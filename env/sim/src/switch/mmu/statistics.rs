//! Counts of a lossless switch, and the state that it shows.

use super::{Mmu, PfcInterval, Sharing};
use crate::engine::topology::SwitchId;
use crate::switch::SharedBuffer;
use crate::switch::buffer::percentile_of_share;
use crate::switch::policy::PacketView;
use crate::units::{Duration, Instant};

/// Use of a port's ingress by lossless packets.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct IngressUse {
    /// Bytes stored that came by the port.
    pub bytes: u64,
    /// Total time for which the port's queues have paused the neighbour behind it.
    pub paused: Duration,
}

/// Description of a lossless packet that was lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LosslessDrop {
    /// The switch.
    pub switch: SwitchId,
    /// The port by which the packet came.
    pub port: usize,
    /// Priority of the packet.
    pub priority: usize,
    /// Time of the loss.
    pub at: Instant,
}

/// A queue of lossless packets at the port by which they came.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct IngressState {
    /// The port.
    pub port: usize,
    /// The priority.
    pub priority: usize,
    /// Length of the queue, bytes, including those on headroom.
    pub bytes: u64,
    /// Bytes on headroom.
    pub headroom_bytes: u64,
    /// The length that is compared with the threshold; for Reverie the filtered length.
    pub compared_bytes: f64,
    /// The threshold beyond which packets go to the headroom, bytes.
    pub threshold_bytes: f64,
}

/// Counts over a run.
#[derive(Clone, Default, Debug)]
pub(crate) struct MmuCounters {
    /// Pauses that were begun.
    pub(crate) pauses: u64,
    pub(crate) drops_lossless: u64,
    pub(crate) first_lossless_drop: Option<LosslessDrop>,
    /// Largest headroom of a queue, bytes.
    pub(crate) max_headroom: u64,
    /// Ended pauses.
    pub(crate) log: Vec<PfcInterval>,
    /// Time of the last departure of a lossless packet.
    pub(crate) last_lossless: Instant,
}

impl Mmu {
    /// Counts a lossless packet that was lost.
    pub(super) fn count_loss(&mut self, port: usize, packet: PacketView, now: Instant) {
        if !self.is_lossless(packet.queue) {
            return;
        }
        self.counters.drops_lossless += 1;
        let drop = LosslessDrop {
            switch: self.id,
            port,
            priority: packet.queue % self.priorities,
            at: now,
        };
        self.counters.first_lossless_drop.get_or_insert(drop);
    }

    /// Returns the bytes in the lossless queues at the ingress of a port, headroom included, and how
    /// long they have paused their neighbour until `now`; every pause counts.
    pub(super) fn ingress_at(&self, port: usize, now: Instant) -> IngressUse {
        let queues = &self.ingress[port * self.priorities..(port + 1) * self.priorities];
        let own = queues.iter().enumerate();
        let own = own.filter(|(priority, _)| self.lossless.contains(*priority));
        own.fold(IngressUse::default(), |sum, (_, queue)| IngressUse {
            bytes: sum.bytes + queue.bytes,
            paused: sum.paused
                + queue.paused
                + queue.pausing.map_or(Duration::ZERO, |from| now - from),
        })
    }

    /// Returns the queues of lossless packets at the ports by which they come. `buffer` is that of the
    /// switch. The threshold of `sonic-abm`, whose computation changes state, is the last one computed;
    /// for an empty queue it is that of Dynamic Threshold.
    pub(crate) fn lossless_ingress(
        &self,
        buffer: &SharedBuffer,
    ) -> impl Iterator<Item = IngressState> {
        let pool_used = buffer.occupancy() - self.headroom;
        let state = move |place: usize| {
            let ingress = &self.ingress[place];
            let dynamic = Mmu::dynamic(self.alphas[0][place], self.limits.pool, pool_used);
            let filtered = self.at_ingress.filtered(place);
            let length = ingress.bytes as f64;
            let (compared_bytes, threshold_bytes) = match self.thresholds.sharing {
                Sharing::Sonic => (length, dynamic),
                Sharing::SonicAbm if ingress.bytes == 0 => (length, dynamic),
                Sharing::SonicAbm => (length, self.at_ingress.threshold(place)),
                Sharing::Reverie { .. } => (filtered, dynamic / self.at_ingress.congestion(place)),
            };
            IngressState {
                port: place / self.priorities,
                priority: place % self.priorities,
                bytes: ingress.bytes,
                headroom_bytes: ingress.headroom,
                compared_bytes,
                threshold_bytes,
            }
        };
        let places = 0..self.ingress.len();
        places.filter(|&place| self.is_lossless(place)).map(state)
    }

    /// Returns the bytes of lossy and of lossless packets.
    pub(crate) fn stored(&self) -> [u64; 2] {
        self.stored
    }

    /// Returns how long lossy and lossless packets have used each share of the buffer.
    pub(crate) fn use_of_classes(&self) -> &[ClassUse; 2] {
        &self.use_of_classes
    }

    /// Restarts the counts at `now`.
    pub(crate) fn count_from(&mut self, now: Instant) {
        for (used, stored) in self.use_of_classes.iter_mut().zip(self.stored) {
            used.settle(stored, now);
            used.restart(now);
        }
    }

    /// Counts the use of the buffer up to `now`.
    pub(crate) fn count_until(&mut self, now: Instant) {
        for (used, stored) in self.use_of_classes.iter_mut().zip(self.stored) {
            used.settle(stored, now);
        }
    }

    /// Returns true if all counters add up, given that the queues of the switch hold what the buffer
    /// counts.
    pub(crate) fn is_consistent(&self, buffer: &SharedBuffer) -> bool {
        let came: u64 = self.ingress.iter().map(|queue| queue.bytes).sum();
        let headroom: u64 = self.ingress.iter().map(|queue| queue.headroom).sum();
        let [lossy, lossless] = self.stored;
        let queues = self.ingress.iter().enumerate().all(|(place, queue)| {
            let of_port = self.limits.port_headroom[place / self.priorities];
            // The published code tests no limit for the first packet on headroom.
            let of_port = if self.as_ns3 { u64::MAX } else { of_port };
            let within = queue.headroom <= queue.bytes && queue.headroom <= of_port;
            let pauses = queue.headroom == 0 || queue.pausing.is_some();
            let filtered = self.at_ingress.filtered(place) <= queue.bytes as f64;
            within && pauses && filtered && (queue.headroom == 0 || self.is_lossless(place))
        });
        let pool = buffer.occupancy() - headroom;
        queues
            && came == buffer.occupancy()
            && lossy + lossless == buffer.occupancy()
            && headroom == self.headroom
            && (self.as_ns3 || headroom <= self.limits.headroom)
            && (!self.guard || pool <= self.limits.pool)
    }
}

/// Bins of the occupancy of a class: equal parts of the buffer.
const BINS: usize = 512;

/// Time for which a class of packets has used each share of the buffer.
#[derive(Clone, Debug)]
pub(crate) struct ClassUse {
    scale: f64,
    changed_at: Instant,
    time_in_bin: Box<[u64]>,
    /// Largest use, bytes.
    largest: u64,
}

impl ClassUse {
    pub(super) fn new(capacity: u64) -> ClassUse {
        ClassUse {
            scale: BINS as f64 / capacity as f64,
            changed_at: Instant::ZERO,
            time_in_bin: vec![0; BINS + 1].into_boxed_slice(),
            largest: 0,
        }
    }

    /// Adds the time since the last change, in which the class has used `bytes`.
    pub(super) fn settle(&mut self, bytes: u64, now: Instant) {
        self.largest = self.largest.max(bytes);
        let bin = bufgym_util::convert::floor_u64(bytes as f64 * self.scale);
        let bin = bufgym_util::convert::index(bin).min(BINS);
        self.time_in_bin[bin] += now.0 - self.changed_at.0;
        self.changed_at = now;
    }

    fn restart(&mut self, now: Instant) {
        self.time_in_bin.fill(0);
        self.changed_at = now;
        self.largest = 0;
    }

    /// Returns the time in every part of the buffer, the first part's first.
    pub(crate) fn time_in_bins(&self) -> &[u64] {
        &self.time_in_bin
    }
}

/// Returns the share of the buffer that a class does not exceed for `percent` per cent of the time, for
/// several switches together, as [`percentile_of_share`]. NaN before any time has passed.
pub(crate) fn percentile<'a>(uses: impl Iterator<Item = &'a ClassUse>, percent: f64) -> f64 {
    let mut bins = vec![0u128; BINS + 1];
    let mut largest = 0.0;
    for used in uses {
        for (bin, time) in bins.iter_mut().zip(used.time_in_bins()) {
            *bin += u128::from(*time);
        }
        largest = f64::max(largest, used.largest as f64 * used.scale / BINS as f64);
    }
    percentile_of_share(bins.into_iter(), percent, largest).unwrap_or(f64::NAN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::mmu::bench::{Bench, LOSSLESS, LOSSY, RULES, SONIC, reverie};
    use bufgym_util::rng;

    /// The counters add up, whatever arrives, leaves and is paused.
    #[test]
    fn counters_add_up_whatever_happens() {
        for (number, sharing) in [SONIC, Sharing::SonicAbm, reverie(0.9), reverie(0.999_999)]
            .into_iter()
            .enumerate()
        {
            for rules in RULES {
                let mut bench = Bench::new(sharing, &[rules]);
                let mut random = rng::stream(7, "test", number as u64);
                let mut balance = [0i32; 2];
                for step in 0..20_000 {
                    bench.now = Instant::from_ns(step * 300);
                    let port = usize::from(rng::below(&mut random, 2) == 1);
                    let pauses = bench.mmu().pauses(port, LOSSLESS);
                    match rng::below(&mut random, 5) {
                        0 | 1 if !pauses => {
                            bench.arrive(port, LOSSLESS, 1_048);
                        }
                        0..=2 => {
                            bench.arrive(port, LOSSY, 1_066);
                        }
                        _ if bench.sending[port].is_some() => bench.depart(port),
                        _ => {}
                    }
                    for frame in bench.frames.drain(..) {
                        balance[frame.port] += if frame.pauses { 1 } else { -1 };
                        assert!((0..=1).contains(&balance[frame.port]), "they alternate");
                    }
                }
                for port in [0, 1] {
                    while bench.sending[port].is_some() {
                        bench.depart(port);
                    }
                }
                for frame in bench.frames.drain(..) {
                    balance[frame.port] += if frame.pauses { 1 } else { -1 };
                }
                assert_eq!(balance, [0, 0], "all that was paused was resumed");
                let mmu = bench.mmu();
                assert_eq!((mmu.headroom, mmu.stored), (0, [0, 0]));
                assert!(mmu.at_ingress.filtered(LOSSLESS) == 0.0);
                assert_eq!(mmu.counters.drops_lossless, 0);
            }
        }
    }

    /// Percentiles are by nearest rank: the upper edge of a bin of 1/512 and at most the largest use, as
    /// for the whole buffer.
    #[test]
    fn what_classes_take_has_the_percentiles_of_occupancy() {
        let mut used = ClassUse::new(512);
        assert!(percentile([&used].into_iter(), 99.0).is_nan());
        used.settle(0, Instant(90));
        used.settle(256, Instant(100));
        assert_eq!(percentile([&used].into_iter(), 90.0), 0.0);
        assert_eq!(percentile([&used].into_iter(), 90.1), 0.5);
        let mut other = ClassUse::new(512);
        other.settle(300, Instant(1));
        assert_eq!(percentile([&used, &other].into_iter(), 99.0), 257.0 / 512.0);
        assert_eq!(
            percentile([&used, &other].into_iter(), 100.0),
            300.0 / 512.0
        );
    }
}
