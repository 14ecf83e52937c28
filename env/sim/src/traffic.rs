//! Flow traces: the flows themselves, reading and writing them as CSV, reading lists of other
//! simulators, generating them from a scenario, and extracting them from packet captures.

mod flows_csv;
mod formats;
mod generate;
mod lists;
mod pcap;

use serde::{Deserialize, Serialize};

use crate::scenario::Scenario;
use crate::units::Instant;

pub use crate::scenario::{SizeDistribution, SizeError, Workload};
pub use flows_csv::TraceError;
pub use formats::{FlowFormat, ListOptions, UnknownFormat};
pub use generate::generate;
pub use pcap::{Capture, CaptureError, CaptureOptions, Skipped, Tunnels};

/// One flow: a number of bytes from one host to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FlowSpec {
    /// Unique in its trace; generated traces number their flows from 0 in order.
    pub id: u64,
    /// Sending host, from 0.
    pub src: u32,
    /// Receiving host, from 0; also the switch port the data goes out of.
    pub dst: u32,
    /// Start time of the flow; a whole number of nanoseconds.
    pub start: Instant,
    /// Payload bytes, at least 1.
    pub size: u64,
    /// Index into [`Trace::kinds`].
    pub kind: u16,
    /// Number of the group of flows that belong together, or -1.
    pub query: i64,
    /// Priority class.
    pub priority: u8,
}

/// The flows of one simulation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Trace {
    /// The flows in file order. Start times may come in any order. Flows that start at the same
    /// time start in this order.
    pub flows: Vec<FlowSpec>,
    /// Name of each kind of flow, by [`FlowSpec::kind`].
    pub kinds: Vec<String>,
    /// The seed that the trace was generated from; 0 for traces from files.
    pub seed: u64,
}

/// Returns the number of a host of a [valid](Trace::validate) trace, as networks number hosts.
///
/// # Panics
/// When the number is above 65,535: no network has so many hosts.
pub fn host_number(host: u32) -> u16 {
    u16::try_from(host).expect("a valid trace has hosts of the network")
}

impl Trace {
    /// Largest size of a flow, bytes.
    pub const MAX_SIZE: u64 = crate::scenario::MAX_FLOW_BYTES;
    /// Latest start of a flow, nanoseconds: eleven days.
    pub const MAX_START_NS: u64 = 1_000_000_000_000_000;
    /// Most flows of a trace.
    pub const MAX_FLOWS: usize = 10_000_000;
    /// Kind of the flows in files that do not give kinds.
    pub const DEFAULT_KIND: &'static str = "flow";

    /// Kind of the flows of the second class, which may have a transport and a queue of their own.
    pub const SECOND_KIND: &'static str = "second";
    /// Number of the kind [`SECOND_KIND`](Trace::SECOND_KIND) in generated traces.
    pub const SECOND: u16 = 2;

    /// Returns the number of the kind of the second class, if there are such flows.
    pub fn second_kind(&self) -> Option<u16> {
        let mut kinds = (0..).zip(&self.kinds);
        kinds.find_map(|(kind, name)| (name == Trace::SECOND_KIND).then_some(kind))
    }

    /// Returns the name of a flow's kind.
    pub fn kind_name(&self, flow: &FlowSpec) -> &str {
        self.kinds
            .get(usize::from(flow.kind))
            .map_or(Trace::DEFAULT_KIND, String::as_str)
    }

    /// Returns the payload bytes of all flows. They need more than 64 bits if 18 million flows have the
    /// largest size.
    pub fn total_bytes(&self) -> u128 {
        self.flows.iter().map(|flow| u128::from(flow.size)).sum()
    }
}

/// Returns the bytes that the flows of a generated trace take on average.
pub fn memory(scenario: &Scenario) -> u64 {
    scenario.mean_flows() * size_of::<FlowSpec>() as u64
}

#[cfg(test)]
mod tests;
