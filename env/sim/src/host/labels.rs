//! Labels of packets that hosts set for switches: unscheduled, may be marked, and collects telemetry.
//!
//! With the default settings, the only label tells whether the flow is in its first round trip, which the
//! sender knows.

use super::Hosts;
use crate::engine::Engine;
use crate::engine::packet::PacketId;
use crate::engine::topology::Topology;
use crate::transport::{Segment, Settings};

/// Maximum payload of TCP data packets that can belong to the control class, bytes, as in the ns-3 code of
/// Reverie.
const CONTROL_PAYLOAD: u32 = 70;

/// Payload bytes that every flow has sent, including retransmissions, if they decide which of its packets
/// are unscheduled.
#[derive(Clone, Debug)]
pub(super) struct FirstBytes {
    /// Packets that a flow sends before it has sent this many bytes are unscheduled.
    limit: u32,
    /// Bytes sent, by number of the flow; saturating.
    sent: Vec<u32>,
}

impl FirstBytes {
    /// Creates the counters of `flows` flows; `None` if something else decides which packets are unscheduled.
    pub(super) fn new(settings: &Settings, flows: usize) -> Option<Box<FirstBytes>> {
        settings.unscheduled_bytes.map(|limit| {
            Box::new(FirstBytes {
                limit,
                sent: vec![0; flows],
            })
        })
    }

    /// Counts `bytes` that a flow sends. Returns true if they are unscheduled.
    fn take(&mut self, flow: u32, bytes: u32) -> bool {
        let sent = &mut self.sent[flow as usize];
        let unscheduled = *sent < self.limit;
        *sent = sent.saturating_add(bytes);
        unscheduled
    }
}

/// Returns true if data packets need more labels than that of the first round trip.
pub(super) fn are_needed(settings: &Settings) -> bool {
    settings.paced || settings.marks_dctcp_only || settings.unscheduled_bytes.is_some()
}

impl<T: Topology> Hosts<T> {
    /// Labels a new data packet.
    #[cold]
    pub(super) fn label(
        &mut self,
        flow: u32,
        segment: Segment,
        id: PacketId,
        engine: &mut Engine<T>,
    ) {
        if self.settings.rdma && self.flows[flow as usize].is_rdma() {
            return self.label_rdma(flow, segment, id, engine);
        }
        if self.control_class && segment.payload <= CONTROL_PAYLOAD {
            let flags = &mut engine.packets[id].flags;
            *flags = flags.with_control(true);
        }
        if let Some(first) = &mut self.first_bytes {
            let unscheduled = first.take(flow, segment.payload);
            engine.packets[id].flags.set_tag(unscheduled);
        }
        let sender = &self.flows[flow as usize].sender;
        // A rate-based transport does not respond to marks.
        let refuses = self.settings.marks_dctcp_only && !sender.is_dctcp();
        if refuses || sender.sets_rate() {
            engine.packets[id].flags.refuse_marks();
        }
        if sender.reads_telemetry() {
            let records = engine.packets.records.insert();
            engine.packets.carry(id, records);
        }
    }

    /// Labels a new data packet of RDMA, which may always be marked.
    fn label_rdma(&mut self, flow: u32, segment: Segment, id: PacketId, engine: &mut Engine<T>) {
        let offset = u64::from(segment.index) * u64::from(self.settings.mss);
        let unscheduled = match (self.settings.unscheduled_offset, &mut self.first_bytes) {
            (Some(most), _) => Some(offset <= u64::from(most)),
            (None, Some(first)) => Some(first.take(flow, segment.payload)),
            (None, None) => None,
        };
        if let Some(unscheduled) = unscheduled {
            engine.packets[id].flags.set_tag(unscheduled);
        }
        if self.flows[flow as usize].sender.reads_telemetry() {
            let records = engine.packets.records.insert();
            engine.packets.carry(id, records);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    /// 10 Gbit/s and 80 µs: 100,000 B. A segment that begins below that limit is unscheduled as a whole.
    #[test]
    fn the_first_bytes_of_a_flow_are_unscheduled() {
        let mut scenario = Scenario::preset("abm-artefact").unwrap();
        let settings = Settings::from_scenario(&scenario);
        assert!(FirstBytes::new(&settings, 2).is_none());
        scenario.set("unscheduled=first_bdp").unwrap();
        let settings = Settings::from_scenario(&scenario);
        let mut first = FirstBytes::new(&settings, 2).unwrap();
        assert_eq!(first.limit, 100_000);
        let unscheduled = (0..100).filter(|_| first.take(1, 1_400)).count();
        assert_eq!(unscheduled, 72, "71 segments have 99,400 B");
        assert!(first.take(0, u32::MAX) && !first.take(0, 1) && !first.take(0, u32::MAX));
    }
}
