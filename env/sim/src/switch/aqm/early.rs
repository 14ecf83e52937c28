//! Early drop with regular spacing, at a gap of packets that may be set by port while the switch runs.
//!
//! It is random early detection's second method of spacing (Floyd and Jacobson 1993, section VII) with
//! a probability that does not depend on the queue length: of the packets that find
//! `min_bytes` or more in their queue, one in a gap is lost, where a gap is a whole number drawn
//! uniformly from 1 to `gap`. So a dataplane needs a counter per
//! port and, where gaps are powers of two, some random bits: no multiplier, and no random number per
//! packet. A control loop sets the gap of every port to one of [`GAPS`].

use rand_xoshiro::Xoshiro256PlusPlus;

use super::spec::{AqmDefinition, SEED};
use super::{Advice, AnyDiscipline, Arriving, Discipline};
use crate::rng;
use crate::switch::policy::{Bound, Deployment, Kind, ParameterInfo, PolicyInfo, Search};

pub(super) static DEFINITION: AqmDefinition = AqmDefinition {
    info: PolicyInfo {
        name: "early",
        summary: "Drops at regular gaps from a queue length on",
        rule: "drop one packet in a gap, drawn uniformly from 1 to gap, of those with q_i >= min_bytes",
        source: "Floyd and Jacobson, IEEE/ACM ToN 1993, section VII, method 2, with one probability",
        deployment: Deployment::Extension,
        parameters: &[
            ParameterInfo {
                name: "min_bytes",
                default: "B/(4N)",
                kind: Kind::Bytes,
                search: Search::log_to(1.0, Bound::Buffer(1.0)).from(Bound::Queue(0.25)),
                meaning: "queue length from which packets are dropped, bytes",
            },
            ParameterInfo {
                name: GAP,
                default: "256, or what decisions set",
                kind: Kind::Count,
                search: Search::log(2.0, 65_536.0).from(Bound::Value(256.0)),
                meaning: "longest gap between drops, packets",
            },
            ParameterInfo {
                name: "spare",
                default: "yes",
                kind: Kind::Choice(&["yes", "no"]),
                search: Search::Words,
                meaning: "whether packets are spared whose loss costs most; only fab tells: a flow's first bytes",
            },
            SEED,
        ],
    },
    build: |arguments, context| {
        let ports = context.ports;
        let derived = context.buffer_bytes / (4 * ports.max(1) as u64);
        Ok(AnyDiscipline::Early(EarlyDrop {
            min_bytes: arguments.optional("min_bytes").unwrap_or(derived),
            queues_per_port: context.queues / ports.max(1),
            spare: arguments.text("spare") == Some("yes"),
            ports: vec![Spacing::new(arguments.optional(GAP).unwrap_or(DEFAULT_GAP)); ports],
        }))
    },
};

/// The parameter that decisions set, and what it is where neither they nor the text do.
pub(super) const GAP: &str = "gap";
pub(super) const DEFAULT_GAP: u32 = 256;

/// The gaps that a control loop chooses from, by level; level 0 drops none. One packet in (n + 1)/2 is
/// lost: 0.2, 0.4, 0.8, 1.6, 3.1, 6.1 and 12 %.
pub const GAPS: [u32; 8] = [0, 1024, 512, 256, 128, 64, 32, 16];

/// The level of no early drop, in force before the first decision.
pub const EARLY_OFF: u8 = 0;

/// Drops at regular gaps.
#[derive(Clone, PartialEq, Debug)]
pub struct EarlyDrop {
    /// Queue length from which packets are dropped, bytes.
    min_bytes: u64,
    queues_per_port: usize,
    /// Whether packets are spared that the policy [names](crate::switch::Policy::spares).
    spare: bool,
    ports: Vec<Spacing>,
}

/// The spacing of a port's early drops.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Spacing {
    /// The longest gap, packets; 0 for no early drop.
    gap: u32,
    /// Packets up to and with the next that is dropped; 0 while none is drawn.
    left: u32,
}

impl Spacing {
    fn new(gap: u32) -> Spacing {
        Spacing { gap, left: 0 }
    }
}

impl EarlyDrop {
    /// Puts a level in force on every port. Where it changes, the next gap is drawn anew.
    ///
    /// # Panics
    /// When there is not one level per port, or a level is not one of [`GAPS`].
    pub fn set_levels(&mut self, levels: &[u8]) {
        assert_eq!(levels.len(), self.ports.len(), "one level per port");
        for (port, &level) in self.ports.iter_mut().zip(levels) {
            let gap = GAPS[usize::from(level)];
            if port.gap != gap {
                *port = Spacing::new(gap);
            }
        }
    }
}

impl Discipline for EarlyDrop {
    fn on_arrival(&mut self, packet: Arriving, random: &mut Xoshiro256PlusPlus) -> Advice {
        let port = &mut self.ports[packet.queue / self.queues_per_port];
        if port.gap == 0 || packet.length < self.min_bytes || packet.spared && self.spare {
            return Advice::Pass;
        }
        if port.left == 0 {
            port.left = 1 + rng::below_u32(random, port.gap);
        }
        port.left -= 1;
        match port.left {
            0 => Advice::Drop,
            _ => Advice::Pass,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Time;

    fn early(min_bytes: u64, queues_per_port: usize, ports: usize) -> EarlyDrop {
        EarlyDrop {
            min_bytes,
            queues_per_port,
            spare: true,
            ports: vec![Spacing::new(0); ports],
        }
    }

    fn arriving(queue: usize, length: u64) -> Arriving {
        Arriving {
            queue,
            length,
            bytes: 1500,
            markable: false,
            spared: false,
            now: Time::ZERO,
        }
    }

    /// Numbers of the packets that a full queue loses, of so many.
    fn drops(level: u8, packets: usize) -> Vec<usize> {
        let mut discipline = early(1000, 1, 2);
        let mut random = rng::stream(1, "early", 0);
        discipline.set_levels(&[0, level]);
        let mut dropped =
            |_: &usize| discipline.on_arrival(arriving(1, 1000), &mut random) == Advice::Drop;
        (1..=packets).filter(|number| dropped(number)).collect()
    }

    #[test]
    fn gaps_are_uniform_up_to_their_level() {
        for level in 1..8 {
            let longest = GAPS[usize::from(level)] as usize;
            let drops = drops(level, 400 * longest);
            let gaps: Vec<usize> = [0]
                .iter()
                .chain(&drops)
                .zip(&drops)
                .map(|(a, b)| b - a)
                .collect();
            assert!(gaps.iter().all(|gap| (1..=longest).contains(gap)));
            let mean = gaps.iter().sum::<usize>() as f64 / gaps.len() as f64;
            // 800 gaps with a deviation of n/√12: four standard errors are 4 %.
            let expected = (longest + 1) as f64 / 2.0;
            assert!((mean / expected - 1.0).abs() < 0.05, "{level}: {mean}");
        }
        assert!(drops(0, 10_000).is_empty());
    }

    #[test]
    fn short_queues_and_other_ports_lose_nothing() {
        let mut discipline = early(1000, 2, 2);
        discipline.set_levels(&[7, 0]);
        let mut random = rng::stream(1, "early", 0);
        let mut advice =
            |queue, length| discipline.on_arrival(arriving(queue, length), &mut random);
        for _ in 0..1000 {
            assert_eq!(advice(0, 999), Advice::Pass);
            assert_eq!(advice(2, 5000), Advice::Pass);
        }
        // Both queues of a port share its counter.
        let drops = (0..1000).filter(|i| advice(i % 2, 1000) == Advice::Drop);
        assert!(drops.count() > 80);
    }

    #[test]
    fn the_same_level_again_keeps_the_gap() {
        let mut discipline = early(0, 1, 1);
        discipline.set_levels(&[1]);
        let mut random = rng::stream(1, "early", 0);
        discipline.on_arrival(arriving(0, 0), &mut random);
        let begun = discipline.clone();
        discipline.set_levels(&[1]);
        assert_eq!(discipline, begun);
        discipline.set_levels(&[2]);
        assert_ne!(discipline, begun);
    }
}
