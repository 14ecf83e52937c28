//! The definition of a discipline: name, rule, source, parameters, and how to build it.

use super::AnyDiscipline;
use crate::switch::policy::{Arguments, Kind, ParameterInfo, PolicyInfo, Search};
use crate::units::Rate;

/// A discipline: its description and how to build it.
#[derive(Clone, Copy, Debug)]
pub struct AqmDefinition {
    /// The description of the discipline.
    pub info: PolicyInfo,
    /// Builds the discipline. The error message names the wrong parameter and a valid alternative.
    pub(super) build: fn(&Arguments<'_>, &Context) -> Result<AnyDiscipline, String>,
}

/// Properties of the switch that a discipline needs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Context {
    pub(super) ports: usize,
    pub(super) queues: usize,
    pub(super) buffer_bytes: u64,
    pub(super) rate: Rate,
    /// Wire bytes of a full packet.
    pub(super) packet_bytes: u64,
    /// Packets at the head of a queue that count nowhere.
    pub(super) outside_buffer: usize,
    /// True if the hosts use ECN.
    pub(super) ecn: bool,
    /// True if the hosts' senders have RACK (RFC 8985).
    pub(super) rack: bool,
}

/// Selects marking for packets that can be marked.
pub(super) const ACTION: ParameterInfo = ParameterInfo {
    name: "action",
    default: "drop",
    kind: Kind::Choice(&["drop", "mark"]),
    search: Search::Marking,
    meaning: "what happens to data of hosts that use ECN; that of others is dropped",
};

/// The seed of the streams of all ports.
pub(super) const SEED: ParameterInfo = ParameterInfo {
    name: "seed",
    default: "1",
    kind: Kind::Seed,
    search: Search::Fixed,
    meaning: "seed of the random streams of the ports",
};

pub(super) fn marks(arguments: &Arguments<'_>) -> bool {
    arguments.text("action") == Some("mark")
}
