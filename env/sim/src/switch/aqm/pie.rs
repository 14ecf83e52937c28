//! Proportional integral controller enhanced (RFC 8033): drops at random with a probability that a
//! controller of the queueing delay sets.
//!
//! The delay is the queue's length over the line rate, which a switch knows (RFC 8033 §4.2 estimates it
//! if the rate varies). Drops are not spaced apart (§5.4 is optional).

use bufgym_util::rng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::definition::{ACTION, AqmDefinition, SEED, marks};
use super::{Advice, AnyDiscipline, Arriving, Discipline, drain_ps};
use crate::switch::policy::{Deployment, Kind, ParameterInfo, PolicyInfo, Search};
use crate::units::{Duration, Instant, Rate};

pub(super) static DEFINITION: AqmDefinition = AqmDefinition {
    info: PolicyInfo {
        name: "pie",
        summary: "Proportional integral controller enhanced",
        rule: "drop or mark with a probability p; every update_us, p rises by alpha (delay - target_us) + beta \
               (delay - previous delay)",
        source: "RFC 8033",
        deployment: Deployment::NewHardware,
        parameters: &[
            ParameterInfo {
                name: "target_us",
                default: "15000",
                kind: Kind::Positive,
                search: Search::log(1.0, 1e6),
                meaning: "wanted queueing delay, us",
            },
            ParameterInfo {
                name: "update_us",
                default: "15000",
                kind: Kind::Positive,
                search: Search::log(1.0, 1e6),
                meaning: "time between updates of the probability, at least 1, us",
            },
            ParameterInfo {
                name: "alpha",
                default: "0.125",
                kind: Kind::Positive,
                search: Search::log(1e-3, 1e4),
                meaning: "weight of the distance from the target, 1/s",
            },
            ParameterInfo {
                name: "beta",
                default: "1.25",
                kind: Kind::Positive,
                search: Search::log(1e-3, 1e4),
                meaning: "weight of the change since the last update, 1/s",
            },
            ParameterInfo {
                name: "burst_us",
                default: "150000",
                kind: Kind::Positive,
                search: Search::log(1.0, 1e7),
                meaning: "longest burst that passes whole, us",
            },
            ACTION,
            SEED,
        ],
    },
    build: |arguments, context| {
        let time = |name| arguments.microseconds(name).unwrap_or(Duration::ZERO);
        let config = PieConfig {
            target: time("target_us"),
            update: time("update_us"),
            alpha: arguments.value("alpha"),
            beta: arguments.value("beta"),
            burst: time("burst_us"),
            max_packet: context.packet_bytes,
            rate: context.rate,
            marks: marks(arguments),
        };
        // Missed updates are computed one by one.
        if config.update < Duration::from_us(1) {
            return Err("update_us must be at least 1".to_owned());
        }
        Ok(AnyDiscipline::Pie(Pie::new(config, context.queues)))
    },
};

/// Parameters of [`Pie`], with the names of RFC 8033 §4 and §5 in parentheses.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct PieConfig {
    /// Wanted delay (QDELAY_REF).
    pub target: Duration,
    /// Time between updates (T_UPDATE).
    pub update: Duration,
    /// Weight of the distance from the target, 1/s.
    pub alpha: f64,
    /// Weight of the change of the delay, 1/s.
    pub beta: f64,
    /// Longest burst that passes without drops (MAX_BURST).
    pub burst: Duration,
    /// Bytes of a full packet (MEAN_PKTSIZE).
    pub max_packet: u64,
    /// Line rate.
    pub rate: Rate,
    /// True if packets that can be marked are marked, up to a probability of 10 %.
    pub marks: bool,
}

/// Probability from which packets are dropped even if they can be marked (MARK_ECNTH).
const MAX_MARKED: f64 = 0.1;

/// State of one queue.
#[derive(Clone, Copy, Debug)]
struct State {
    probability: f64,
    /// Delays at the last two updates, seconds.
    delay: f64,
    old_delay: f64,
    burst_left: Duration,
    /// Time of the next update.
    next: Instant,
}

/// Proportional integral controller enhanced, with a state for each queue.
#[derive(Clone, Debug)]
pub struct Pie {
    config: PieConfig,
    queues: Vec<State>,
}

impl Pie {
    /// Creates the discipline for `queues` queues, all of them empty.
    pub fn new(config: PieConfig, queues: usize) -> Pie {
        let state = State {
            probability: 0.0,
            delay: 0.0,
            old_delay: 0.0,
            burst_left: config.burst,
            next: Instant::ZERO + config.update,
        };
        Pie {
            config,
            queues: vec![state; queues],
        }
    }

    pub(super) fn marks(&self) -> bool {
        self.config.marks
    }

    /// Returns the drop probability of a queue.
    pub fn probability(&self, queue: usize) -> f64 {
        self.queues[queue].probability
    }
}

impl State {
    /// Returns true if updates of an empty queue change only the remaining burst.
    fn is_at_rest(&self) -> bool {
        self.probability == 0.0 && self.delay == 0.0 && self.old_delay == 0.0
    }

    /// Makes one update (§4.2, with the scaling of §4.2 and the limits of §5.2 and §5.5).
    fn update(&mut self, config: &PieConfig, length: u64) {
        self.old_delay = self.delay;
        self.delay = drain_ps(length, config.rate) * 1e-12;
        let target = config.target.as_secs_f64();
        let mut change =
            config.alpha * (self.delay - target) + config.beta * (self.delay - self.old_delay);
        let p = self.probability;
        change /= match p {
            p if p < 0.000_001 => 2_048.0,
            p if p < 0.000_01 => 512.0,
            p if p < 0.000_1 => 128.0,
            p if p < 0.001 => 32.0,
            p if p < 0.01 => 8.0,
            p if p < 0.1 => 2.0,
            _ => 1.0,
        };
        // A high probability rises slowly.
        if p >= 0.1 {
            change = change.min(0.02);
        }
        let mut p = p + change;
        // The probability decays while the queue is idle.
        if self.delay == 0.0 && self.old_delay == 0.0 {
            p *= 0.98;
        }
        self.probability = p.clamp(0.0, 1.0);
        self.burst_left = self.burst_left.saturating_sub(config.update);
    }

    /// Makes the missed updates up to `now`; the queue has had this length since the last event.
    fn catch_up(&mut self, config: &PieConfig, length: u64, now: Instant) {
        while self.next <= now {
            if length == 0 && self.is_at_rest() {
                let updates = (now - self.next).as_ps() / config.update.as_ps() + 1;
                let time = config.update.saturating_mul(updates);
                self.next = self.next.saturating_add(time);
                self.burst_left = self.burst_left.saturating_sub(time);
                return;
            }
            self.update(config, length);
            self.next = self.next.saturating_add(config.update);
        }
    }

    /// Returns true if the queue is so short that nothing is dropped (§4.1).
    fn is_harmless(&self, config: &PieConfig, length: u64) -> bool {
        let half = config.target.as_secs_f64() / 2.0;
        (self.old_delay < half && self.probability < 0.2) || length <= 2 * config.max_packet
    }
}

impl Discipline for Pie {
    fn on_change(&mut self, queue: usize, length: u64, now: Instant) {
        self.queues[queue].catch_up(&self.config, length, now);
    }

    fn on_arrival(&mut self, packet: Arriving, random: &mut Xoshiro256PlusPlus) -> Advice {
        let config = &self.config;
        let state = &mut self.queues[packet.queue];
        let half = config.target.as_secs_f64() / 2.0;
        let spared = state.burst_left > Duration::ZERO || state.is_harmless(config, packet.length);
        let advice = if spared || rng::uniform(random) >= state.probability {
            Advice::Pass
        } else if config.marks && packet.markable && state.probability <= MAX_MARKED {
            Advice::Mark
        } else {
            Advice::Drop
        };
        // Congestion is over: the next burst may pass (§4.4).
        if state.probability == 0.0 && state.delay < half && state.old_delay < half {
            state.burst_left = config.burst;
        }
        advice
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000_000;

    fn pie() -> Pie {
        let config = PieConfig {
            target: Duration(15 * MS),
            update: Duration(15 * MS),
            alpha: 0.125,
            beta: 1.25,
            burst: Duration(150 * MS),
            max_packet: 1_500,
            rate: Rate(1_000_000_000),
            marks: false,
        };
        Pie::new(config, 1)
    }

    /// Returns the bytes that take `ms` milliseconds at 1 Gbit/s.
    fn bytes(ms: u64) -> u64 {
        ms * 125_000
    }

    /// Computed manually, for a constant queue of 35 ms: the first update adds (0.125 · 20 ms + 1.25 ·
    /// 35 ms) / 2048 = 2.2583e-5. The second adds 0.0025 / 128 = 1.9531e-5, as p is between 1e-5 and
    /// 1e-4; so do all up to 1e-4. From there on each adds 0.0025 / 32.
    #[test]
    fn the_probability_rises_as_computed_by_hand() {
        let mut pie = pie();
        let mut expected = 0.04625 / 2_048.0;
        for update in 1..=8 {
            pie.on_change(0, bytes(35), Instant(15 * update * MS));
            assert!(
                (pie.probability(0) - expected).abs() < 1e-15,
                "update {update}"
            );
            expected += if expected < 1e-4 {
                0.0025 / 128.0
            } else {
                0.0025 / 32.0
            };
        }
    }

    #[test]
    fn updates_that_nothing_happened_between_are_made_up_for() {
        let (mut often, mut once) = (pie(), pie());
        for update in 1..=40 {
            often.on_change(0, bytes(35), Instant(15 * update * MS));
        }
        once.on_change(0, bytes(35), Instant(15 * 40 * MS));
        assert_eq!(often.probability(0), once.probability(0));
        // After a long idle time the probability is zero, and the computation of a day is short.
        once.on_change(0, 0, Instant(86_400_000 * MS));
        assert_eq!(once.probability(0), 0.0);
    }

    #[test]
    fn a_burst_passes_whole_and_what_stays_is_dropped_at_the_probability() {
        let mut pie = pie();
        let mut random = rng::stream(1, "pie", 0);
        let mut arrive = |pie: &mut Pie, now_ms: u64| {
            let packet = Arriving {
                queue: 0,
                flow: 0,
                length: bytes(100),
                bytes: 1_500,
                markable: true,
                spared: false,
                now: Instant(now_ms * MS),
            };
            pie.on_change(0, packet.length, packet.now);
            pie.on_arrival(packet, &mut random)
        };
        assert!((0..149).all(|now| arrive(&mut pie, now) == Advice::Pass));
        for now in 149..3_000 {
            arrive(&mut pie, now);
        }
        let p = pie.probability(0);
        assert!(p > 0.2, "{p}");
        // Without an update in between, the probability stays the same.
        let dropped = (0..10_000)
            .filter(|_| arrive(&mut pie, 3_000) == Advice::Drop)
            .count();
        assert!((dropped as f64 / 10_000.0 - pie.probability(0)).abs() < 0.02);
    }

    #[test]
    fn a_short_queue_loses_nothing() {
        let mut pie = pie();
        let mut random = rng::stream(1, "pie", 0);
        pie.queues[0] = State {
            probability: 1.0,
            delay: 1.0,
            old_delay: 1.0,
            burst_left: Duration::ZERO,
            next: Instant::MAX,
        };
        let packet = |length| Arriving {
            queue: 0,
            flow: 0,
            length,
            bytes: 1_500,
            markable: false,
            spared: false,
            now: Instant(1),
        };
        assert_eq!(pie.on_arrival(packet(3_000), &mut random), Advice::Pass);
        assert_eq!(pie.on_arrival(packet(3_001), &mut random), Advice::Drop);
    }
}
