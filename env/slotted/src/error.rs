use std::io;
use std::path::PathBuf;

use bufgym_util::input::{excerpt, suggestion};
use bufgym_util::parameters::ParameterError;

/// An error of the slotted model. Each message is one line with the place, the problem and a valid
/// alternative.
#[derive(Debug, thiserror::Error)]
pub enum SlottedError {
    /// An invalid setting; the message names it.
    #[error("{0}")]
    Input(String),
    /// The arrivals cannot be read.
    #[error("{}: cannot read the arrivals: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Reason of the failure.
        source: io::Error,
    },
    /// An invalid line of the arrivals.
    #[error("{origin}:{line}: {problem}")]
    Line {
        /// The file.
        origin: String,
        /// The line, from 1.
        line: u64,
        /// The problem found there, the field first.
        problem: String,
    },
    /// The model has no policy of this name.
    #[error("policy '{}' is not known in the slotted model{}; it has {}", excerpt(.name), suggestion(.name, .known), .known.join(", "))]
    UnknownPolicy {
        /// The name as it was written.
        name: String,
        /// The names of all policies.
        known: Vec<&'static str>,
    },
    /// An invalid parameter of a policy.
    #[error(transparent)]
    Parameter(#[from] ParameterError),
    /// The policy is defined for unit packets only.
    #[error(
        "{policy} is defined for unit packets only, and these arrivals have packets with {found}; for these there are lqd, bpd, bad, lwd, mtvd and mrd"
    )]
    UnitOnly {
        /// The policy.
        policy: &'static str,
        /// `work` or `values`.
        found: &'static str,
    },
    /// The exact search has grown beyond its limit.
    #[error(
        "opt: the instance is too large: more than {limit} states at packet {packet} of {packets} (slot {slot}); with {found} the exact search is for small instances, of about 20 packets or 10 in the buffer; unit packets have no such limit"
    )]
    OptimumTooLarge {
        /// Largest number of states that are kept.
        limit: usize,
        /// Packet at which the limit was exceeded, from 1.
        packet: usize,
        /// Number of all packets.
        packets: usize,
        /// Slot of that packet.
        slot: u64,
        /// `work` or `values`.
        found: &'static str,
    },
    /// The exact search takes too much memory or time.
    #[error(
        "opt: the instance is too large: the search takes too much {what} from packet {packet} of {packets} (slot {slot}) on; with work or values it is for small instances, of about 20 packets or 10 in the buffer; unit packets have no such limit"
    )]
    OptimumTooCostly {
        /// `memory` or `time`.
        what: &'static str,
        /// The packet that was the last to arrive, from 1.
        packet: usize,
        /// Number of all packets.
        packets: usize,
        /// Slot of that packet.
        slot: u64,
    },
    /// The arrivals have no schedule of a proof.
    #[error(
        "scripted-opt follows the schedule of a proof, and these arrivals have none: use --generate {generators}; opt finds the optimum of any arrivals"
    )]
    NoScript {
        /// The generators whose arrivals have one.
        generators: &'static str,
    },
    /// The arrivals have no rounds.
    #[error(
        "these arrivals have no rounds, so throughput cannot be counted to the end of the last: leave out --until-last-round, or use --generate"
    )]
    NoRounds,
}
