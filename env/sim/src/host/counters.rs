//! Counters of the hosts.

use crate::units::Duration;

/// Counters of a run.
#[derive(Clone, Default, Debug)]
pub(crate) struct HostCounters {
    pub(crate) delivered: u64,
    pub(crate) timeouts: u64,
    /// Total time that incomplete flows waited for these timeouts, picoseconds.
    pub(crate) timeout_wait_ps: u128,
    /// Number of tail loss probes.
    pub(crate) tail_probes: u64,
    /// Number of data packets that their receivers had already.
    pub(crate) duplicates: u64,
    /// Timeouts by number of the flow; saturates at 255.
    timeouts_by_flow: Vec<u8>,
}

impl HostCounters {
    /// Returns the counters of a run with this number of flows.
    pub(super) fn new(flows: usize) -> HostCounters {
        HostCounters {
            timeouts_by_flow: vec![0; flows],
            ..HostCounters::default()
        }
    }

    /// Counts an expiry after which the flow has `waited` in vain.
    pub(super) fn count_timeout(&mut self, flow: u32, waited: Duration) {
        self.timeouts += 1;
        self.timeout_wait_ps += u128::from(waited.0);
        let of_flow = &mut self.timeouts_by_flow[flow as usize];
        *of_flow = of_flow.saturating_add(1);
    }

    /// Returns the number of timeouts of a flow, by the flow's number.
    pub(crate) fn timeouts_of(&self, flow: usize) -> u32 {
        u32::from(self.timeouts_by_flow[flow])
    }
}
