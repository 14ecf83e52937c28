//! Marking at or above a queue length, as DCTCP needs it (RFC 8257 §3.1).

use rand_xoshiro::Xoshiro256PlusPlus;

use super::definition::AqmDefinition;
use super::{Advice, AnyDiscipline, Arriving, Discipline};
use crate::switch::policy::{Bound, Deployment, Kind, ParameterInfo, PolicyInfo, Search};

pub(super) static DEFINITION: AqmDefinition = AqmDefinition {
    info: PolicyInfo {
        name: "step",
        summary: "Marks from a queue length on",
        rule: "mark iff q_i >= bytes",
        source: "RFC 8257 §3.1",
        deployment: Deployment::Today,
        parameters: &[ParameterInfo {
            name: "bytes",
            default: "30000",
            kind: Kind::Bytes,
            search: Search::log_to(1.0, Bound::Buffer(1.0)),
            meaning: "queue length K from which packets are marked, bytes",
        }],
    },
    build: |arguments, context| {
        if !context.ecn {
            return Err("it marks only, and the hosts use no ECN; needs ecn=true".to_owned());
        }
        let bytes = arguments.value("bytes");
        Ok(AnyDiscipline::Step(StepMarking { bytes }))
    },
};

/// Marks a packet that finds `bytes` or more in its queue. A packet that cannot be marked passes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct StepMarking {
    /// Threshold K, bytes.
    pub bytes: u64,
}

impl Discipline for StepMarking {
    fn on_arrival(&mut self, packet: Arriving, _random: &mut Xoshiro256PlusPlus) -> Advice {
        match packet.markable && packet.length >= self.bytes {
            true => Advice::Mark,
            false => Advice::Pass,
        }
    }
}
