//! Results of a run, independent of the simulator.

/// One completed flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Completion {
    /// `ws`, `incast`, `iso` or `long`.
    pub kind: String,
    /// Payload bytes.
    pub size: u64,
    /// Time at which the sender had its data, nanoseconds.
    pub start_ns: u64,
    /// Time at which the SYN-ACK arrived at the sender, nanoseconds.
    pub established_ns: u64,
    /// Time at which the last byte was delivered, nanoseconds.
    pub finish_ns: u64,
}

/// A run of a flow list.
#[derive(Clone, Debug)]
pub struct Run {
    /// The completed flows, in the order of the list.
    pub flows: Vec<Completion>,
    /// Packets that left the switch ports.
    pub forwarded: u64,
    /// Packets dropped at the switch.
    pub drops: u64,
    /// ECN marks.
    pub marks: u64,
}

impl Run {
    /// Returns the number of flows established and completed at the same nanosecond in both runs.
    pub fn equal_flows(&self, other: &Run) -> usize {
        let both = self.flows.iter().zip(&other.flows);
        both.filter(|(one, other)| one == other).count()
    }
}
