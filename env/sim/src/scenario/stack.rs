//! Settings that a transport implies besides its congestion control.

use super::{Recovery, Scenario, Scheduler, TransportKind};

/// Segments that Linux acknowledges at once at the start of a connection (`TCP_MAX_QUICKACKS`).
const QUICK_ACKS: u32 = 16;

/// Settings of the ends of a flow that some transports imply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Stack {
    pub(crate) recovery: Recovery,
    pub(crate) delayed_ack: u32,
    pub(crate) quick_acks: u32,
    pub(crate) hystart: bool,
}

impl Scheduler {
    /// Returns true if queues have weights.
    pub fn has_weights(self) -> bool {
        matches!(self, Scheduler::Drr | Scheduler::StrictDrr)
    }
}

impl Scenario {
    /// Returns the transports of other flows, of in-cast flows and of those of the second class.
    pub(crate) fn transports(&self) -> [TransportKind; 3] {
        let or_same = |kind: Option<TransportKind>| kind.unwrap_or(self.transport);
        [
            self.transport,
            or_same(self.incast_transport),
            or_same(self.second_transport),
        ]
    }

    /// Returns the settings of the ends of flows. `linux` and `linux-dctcp` have RACK-TLP,
    /// acknowledgements of two segments, 16 quick ones and HyStart, wherever the setting has its
    /// default.
    pub(crate) fn stack(&self) -> Stack {
        let given = Stack {
            recovery: self.recovery,
            delayed_ack: self.delayed_ack,
            quick_acks: self.quick_acks,
            hystart: self.hystart,
        };
        if !self.transport.is_combination() {
            return given;
        }
        Stack {
            recovery: Recovery::Rack,
            delayed_ack: if given.delayed_ack == 1 {
                2
            } else {
                given.delayed_ack
            },
            quick_acks: if given.quick_acks == 0 {
                QUICK_ACKS
            } else {
                given.quick_acks
            },
            hystart: true,
        }
    }
}
