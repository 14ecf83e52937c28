//! Random drop at or above a queue length (after Hashem, "Analysis of random drop for gateway
//! congestion control", MIT LCS TR-465, 1989: early random drop).

use bufgym_util::rng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::definition::{AqmDefinition, SEED};
use super::{Advice, AnyDiscipline, Arriving, Discipline};
use crate::switch::policy::{Bound, Deployment, Kind, ParameterInfo, PolicyInfo, Search};

pub(super) static DEFINITION: AqmDefinition = AqmDefinition {
    info: PolicyInfo {
        name: "random",
        summary: "Drops with a fixed probability from a queue length on",
        rule: "drop with probability p iff q_i >= min_bytes",
        source: "Hashem, MIT LCS TR-465, 1989; WRED with both thresholds equal",
        deployment: Deployment::Today,
        parameters: &[
            ParameterInfo {
                name: "min_bytes",
                default: "15000",
                kind: Kind::Bytes,
                search: Search::log_to(1.0, Bound::Buffer(1.0)),
                meaning: "queue length from which packets are dropped, bytes",
            },
            ParameterInfo {
                name: "p",
                default: "0.007",
                kind: Kind::Fraction,
                search: Search::log(1e-5, 1.0),
                meaning: "probability of a drop",
            },
            SEED,
        ],
    },
    build: |arguments, _| {
        let random = RandomDrop {
            min_bytes: arguments.value("min_bytes"),
            p: arguments.value("p"),
        };
        Ok(AnyDiscipline::Random(random))
    },
};

/// Drops a packet that finds `min_bytes` or more in its queue with probability `p`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct RandomDrop {
    /// Queue length from which packets are dropped, bytes.
    pub min_bytes: u64,
    /// Drop probability.
    pub p: f64,
}

impl Discipline for RandomDrop {
    fn on_arrival(&mut self, packet: Arriving, random: &mut Xoshiro256PlusPlus) -> Advice {
        // No random number is drawn for a packet that finds a shorter queue.
        match packet.length >= self.min_bytes && rng::uniform(random) < self.p {
            true => Advice::Drop,
            false => Advice::Pass,
        }
    }
}
