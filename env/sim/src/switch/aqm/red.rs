//! Random early detection (Floyd and Jacobson, "Random early detection gateways for congestion
//! avoidance", IEEE/ACM Transactions on Networking, 1993).

use bufgym_util::rng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::definition::{ACTION, AqmDefinition, SEED, marks};
use super::{Advice, AnyDiscipline, Arriving, Discipline};
use crate::switch::policy::{Bound, Deployment, Kind, ParameterInfo, PolicyInfo, Search};
use crate::units::{Duration, Instant};

pub(super) static DEFINITION: AqmDefinition = AqmDefinition {
    info: PolicyInfo {
        name: "red",
        summary: "Random early detection",
        rule: "drop or mark with a probability that rises from 0 at min_bytes to max_p at max_bytes of the \
               average queue length; gentle: on to 1 at twice max_bytes, else 1 from max_bytes on",
        source: "Floyd and Jacobson, IEEE/ACM ToN 1993; gentle: Floyd, 2000",
        deployment: Deployment::Today,
        parameters: &[
            ParameterInfo {
                name: "min_bytes",
                default: "15000",
                kind: Kind::Bytes,
                search: Search::log_to(1.0, Bound::Buffer(1.0)),
                meaning: "average length below which no packet is dropped, bytes",
            },
            ParameterInfo {
                name: "max_bytes",
                default: "45000",
                kind: Kind::Bytes,
                search: Search::log_to(2.0, Bound::Buffer(4.0)),
                meaning: "average length at which the probability is max_p, bytes",
            },
            ParameterInfo {
                name: "max_p",
                default: "0.01",
                kind: Kind::Fraction,
                search: Search::log(1e-5, 1.0),
                meaning: "probability at max_bytes",
            },
            ParameterInfo {
                name: "weight",
                default: "1",
                kind: Kind::Fraction,
                search: Search::log(1e-4, 1.0),
                meaning: "weight of an arrival in the average, above 0; 1: the length itself",
            },
            ParameterInfo {
                name: "gentle",
                default: "yes",
                kind: Kind::Choice(&["yes", "no"]),
                search: Search::Words,
                meaning: "whether the probability rises to 1 up to twice max_bytes, or jumps there",
            },
            ParameterInfo {
                name: "uniform",
                default: "no",
                kind: Kind::Choice(&["yes", "no"]),
                search: Search::Words,
                meaning: "whether drops are spaced uniformly, not geometrically",
            },
            ACTION,
            SEED,
        ],
    },
    build: |arguments, context| {
        let config = RedConfig {
            min_bytes: arguments.value("min_bytes"),
            max_bytes: arguments.value("max_bytes"),
            max_p: arguments.value("max_p"),
            weight: arguments.value("weight"),
            gentle: arguments.text("gentle") == Some("yes"),
            uniform: arguments.text("uniform") == Some("yes"),
            marks: marks(arguments),
            packet_time: context.rate.transmission_time(context.packet_bytes),
        };
        if config.max_bytes <= config.min_bytes {
            let (min, max) = (config.min_bytes, config.max_bytes);
            return Err(format!("max_bytes={max} must be above min_bytes={min}"));
        }
        if config.weight <= 0.0 {
            return Err("weight=0 never looks at the queue; must be above 0".to_owned());
        }
        Ok(AnyDiscipline::Red(Red::new(config, context.queues)))
    },
};

/// Parameters of [`Red`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RedConfig {
    /// Average length below which nothing is dropped, bytes.
    pub min_bytes: u64,
    /// Average length at which the probability is `max_p`, bytes; above `min_bytes`.
    pub max_bytes: u64,
    /// Probability at `max_bytes`.
    pub max_p: f64,
    /// Weight of an arrival in the average, w_q; 1 for the instantaneous length.
    pub weight: f64,
    /// True if the probability rises to 1 between `max_bytes` and twice that; otherwise it jumps to 1.
    pub gentle: bool,
    /// True if the number of packets between two drops is uniform instead of geometric (1993, §VII).
    pub uniform: bool,
    /// True if packets that can be marked are marked, unless the probability is 1.
    pub marks: bool,
    /// s, the transmission time of a typical packet: an idle queue averages as if one small packet in
    /// each such time had found it empty.
    pub packet_time: Duration,
}

impl RedConfig {
    /// Returns p_b, the probability at an average length, from 0 to 1.
    pub fn probability(&self, average: f64) -> f64 {
        let (min, max) = (self.min_bytes as f64, self.max_bytes as f64);
        if average < min {
            0.0
        } else if average < max {
            self.max_p * (average - min) / (max - min)
        } else if self.gentle && average < 2.0 * max {
            self.max_p + (1.0 - self.max_p) * (average - max) / max
        } else {
            1.0
        }
    }
}

/// Average length of one queue.
#[derive(Clone, Copy, Debug)]
struct Average {
    /// Bytes.
    bytes: f64,
    /// Time since when the queue is empty.
    idle_since: Option<Instant>,
    /// Packets since the last drop, while the average is above `min_bytes`; -1 below.
    since_drop: i64,
}

/// Random early detection, with a state for each queue.
#[derive(Clone, Debug)]
pub struct Red {
    config: RedConfig,
    queues: Vec<Average>,
}

impl Red {
    /// Creates the discipline for `queues` queues, all of them empty.
    pub fn new(config: RedConfig, queues: usize) -> Red {
        let empty = Average {
            bytes: 0.0,
            idle_since: Some(Instant::ZERO),
            since_drop: -1,
        };
        Red {
            config,
            queues: vec![empty; queues],
        }
    }

    pub(super) fn marks(&self) -> bool {
        self.config.marks
    }

    /// Returns the average length of a queue, bytes.
    pub fn average(&self, queue: usize) -> f64 {
        self.queues[queue].bytes
    }

    /// Updates the average with the length that an arrival finds (1993, §IV).
    fn observe(&mut self, packet: Arriving) {
        let RedConfig {
            weight,
            packet_time,
            ..
        } = self.config;
        let queue = &mut self.queues[packet.queue];
        if packet.length == 0
            && let Some(since) = queue.idle_since
        {
            let idle = packet.now.saturating_since(since).as_ps() as f64;
            let packets = (idle / packet_time.as_ps().max(1) as f64).floor();
            queue.bytes *= libm::pow(1.0 - weight, packets);
        }
        queue.idle_since = None;
        queue.bytes += weight * (packet.length as f64 - queue.bytes);
    }

    /// Returns true if this packet is dropped or marked.
    fn is_chosen(&mut self, packet: Arriving, random: &mut Xoshiro256PlusPlus) -> bool {
        let queue = &mut self.queues[packet.queue];
        let p = self.config.probability(queue.bytes);
        if p <= 0.0 {
            queue.since_drop = -1;
            return false;
        }
        queue.since_drop += 1;
        let spaced = match self.config.uniform {
            true => {
                let left = 1.0 - queue.since_drop as f64 * p;
                if left > 0.0 { p / left } else { 1.0 }
            }
            false => p,
        };
        let chosen = rng::uniform(random) < spaced;
        if chosen {
            queue.since_drop = 0;
        }
        chosen
    }
}

impl Red {
    /// Handles an arrival. Returns true if it is dropped or marked.
    pub(in crate::switch) fn chooses(
        &mut self,
        packet: Arriving,
        random: &mut Xoshiro256PlusPlus,
    ) -> bool {
        self.observe(packet);
        self.is_chosen(packet, random)
    }
}

impl Discipline for Red {
    fn on_arrival(&mut self, packet: Arriving, random: &mut Xoshiro256PlusPlus) -> Advice {
        if !self.chooses(packet, random) {
            return Advice::Pass;
        }
        // Marks no longer help if every packet would get one (RFC 3168 §7).
        let overloaded = self.config.probability(self.queues[packet.queue].bytes) >= 1.0;
        match self.config.marks && packet.markable && !overloaded {
            true => Advice::Mark,
            false => Advice::Drop,
        }
    }

    fn on_empty(&mut self, queue: usize, now: Instant) {
        self.queues[queue].idle_since = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config() -> RedConfig {
        RedConfig {
            min_bytes: 1_000,
            max_bytes: 3_000,
            max_p: 0.1,
            weight: 1.0,
            gentle: true,
            uniform: false,
            marks: false,
            packet_time: Duration(100),
        }
    }

    fn arriving(length: u64, now: Instant) -> Arriving {
        Arriving {
            queue: 0,
            flow: 0,
            length,
            bytes: 100,
            markable: true,
            spared: false,
            now,
        }
    }

    /// Returns the share of `arrivals` arrivals at length `length` that are dropped or marked.
    fn share(config: RedConfig, length: u64, arrivals: u32) -> f64 {
        let mut red = Red::new(config, 1);
        let mut random = rng::stream(1, "red", 0);
        let stopped = (0..arrivals).filter(|_| {
            red.on_arrival(arriving(length, Instant::ZERO), &mut random) != Advice::Pass
        });
        stopped.count() as f64 / f64::from(arrivals)
    }

    #[test]
    fn the_probability_is_that_of_the_formula() {
        let gentle = config();
        let jump = RedConfig {
            gentle: false,
            ..gentle
        };
        for (average, expected) in [
            (0.0, 0.0),
            (999.9, 0.0),
            (1_000.0, 0.0),
            (2_000.0, 0.05),
            (2_999.999, 0.1),
        ] {
            assert!((gentle.probability(average) - expected).abs() < 1e-6);
            assert!((jump.probability(average) - expected).abs() < 1e-6);
        }
        assert!((gentle.probability(4_500.0) - 0.55).abs() < 1e-12);
        assert_eq!(gentle.probability(6_000.0), 1.0);
        assert_eq!(jump.probability(3_000.0), 1.0);
        for (length, expected) in [
            (500, 0.0),
            (2_000, 0.05),
            (2_500, 0.075),
            (4_500, 0.55),
            (7_000, 1.0),
        ] {
            let found = share(gentle, length, 200_000);
            assert!((found - expected).abs() < 0.004, "{length}: {found}");
        }
    }

    /// With p = 1/20 the drops are 1 to 19 packets apart, all equally often: the packet after a drop
    /// counts as one since it (1993, Fig. 2).
    #[test]
    fn uniform_spacing_bounds_the_distance_of_drops() {
        let uniform = RedConfig {
            uniform: true,
            ..config()
        };
        let mut red = Red::new(uniform, 1);
        let mut random = rng::stream(1, "red", 0);
        let mut distances = Vec::new();
        let mut distance = 0;
        for _ in 0..100_000 {
            distance += 1;
            if red.on_arrival(arriving(2_000, Instant::ZERO), &mut random) == Advice::Drop {
                distances.push(distance);
                distance = 0;
            }
        }
        // The first distance also counts the packet with which the average rose.
        let distances = &distances[1..];
        for distance in 1..=19 {
            let share = distances.iter().filter(|d| **d == distance).count() as f64;
            let share = share / distances.len() as f64;
            assert!((share - 1.0 / 19.0).abs() < 0.01, "{distance}: {share}");
        }
        assert!(distances.iter().all(|distance| *distance <= 19));
    }

    #[test]
    fn the_average_follows_the_length_and_forgets_while_idle() {
        let slow = RedConfig {
            weight: 0.25,
            ..config()
        };
        let mut red = Red::new(slow, 1);
        let mut random = rng::stream(1, "red", 0);
        red.on_arrival(arriving(800, Instant(0)), &mut random);
        assert_eq!(red.average(0), 200.0);
        red.on_arrival(arriving(800, Instant(10)), &mut random);
        assert_eq!(red.average(0), 350.0);
        red.on_empty(0, Instant(20));
        // After three packet times the average is 350 · 0.75³; the arrival then finds an empty queue.
        red.on_arrival(arriving(0, Instant(330)), &mut random);
        assert!((red.average(0) - 350.0 * 0.421_875 * 0.75).abs() < 1e-9);
    }

    #[test]
    fn what_can_be_marked_is_marked_until_the_queue_is_overloaded() {
        let marking = RedConfig {
            max_p: 1.0,
            marks: true,
            ..config()
        };
        let mut red = Red::new(marking, 1);
        let mut random = rng::stream(1, "red", 0);
        let mut advice = |length, markable| {
            let packet = Arriving {
                markable,
                spared: false,
                ..arriving(length, Instant::ZERO)
            };
            red.on_arrival(packet, &mut random)
        };
        assert_eq!(advice(2_999, true), Advice::Mark);
        assert_eq!(advice(2_999, false), Advice::Drop);
        assert_eq!(advice(6_001, true), Advice::Drop);
    }
}
