//! RDMA in a scenario: packet sizes, and its requirements on queues and hosts.

use super::named::named;
use super::settings::settings;
use super::validate::{Checks, MAX_US, MAX_WIRE_BYTES};
use super::{Demand, FlowPriority, HostQueue, Scenario, ScenarioError, Traffic, TransportKind};

settings! {
    /// Packets and timers of RDMA flows.
    pub struct RdmaSettings {
        /// Added to the payload.
        header_bytes as rdma_header_bytes: u32 = 48, "RDMA: bytes on the wire on top of the payload";
        /// Negative acknowledgements have the same size.
        ack_bytes as rdma_ack_bytes: u32 = 60, "RDMA: bytes of an acknowledgement on the wire";
        /// Independent of the number of hops.
        int_bytes as rdma_int_bytes: u32 = 42, "powertcp-rdma: bytes that telemetry adds to a data packet";
        ack_int_bytes as rdma_ack_int_bytes: u32 = 28, "powertcp-rdma: bytes that telemetry adds to an acknowledgement";
        /// Everything from the first unacknowledged packet on is then sent again.
        rto_us as rdma_rto_us: u64 = 500, "RDMA: longest wait for an acknowledgement that brings news, us";
        /// With `control`, acknowledgements need neither room in a queue nor a priority.
        ack_priority: AckClass = AckClass::Data, "RDMA: acknowledgements go with the data of their flow, or with pause frames: data | control";
        /// Other flows end with their last byte at the receiver.
        fct: FlowEnd = FlowEnd::LastAck, "RDMA: what ends a flow: last_ack | receiver";
    }
}

named! {
    /// Time at which an RDMA flow ends.
    FlowEnd {
        /// When its last acknowledgement reaches the sender, as in the ns-3 code of HPCC.
        LastAck = "last_ack",
        /// When its last byte reaches the receiver, as with TCP.
        Receiver = "receiver",
    }
}

named! {
    /// Treatment of RDMA acknowledgements at switches.
    AckClass {
        /// Like the data of their flow.
        Data = "data",
        /// Like pause frames.
        Control = "control",
    }
}

impl RdmaSettings {
    pub(super) fn validate(&self, check: &Checks<'_>) -> Result<(), ScenarioError> {
        for (field, bytes, least) in [
            ("rdma_header_bytes", self.header_bytes, 0),
            ("rdma_ack_bytes", self.ack_bytes, 1),
            ("rdma_int_bytes", self.int_bytes, 0),
            ("rdma_ack_int_bytes", self.ack_int_bytes, 0),
        ] {
            check.within(field, u64::from(bytes), least, 1_000)?;
        }
        check.within("rdma_rto_us", self.rto_us, 1, MAX_US)
    }
}

impl Scenario {
    /// Returns true if some class of flows is RDMA.
    pub fn has_rdma(&self) -> bool {
        self.transports().into_iter().any(TransportKind::is_rdma)
    }

    /// Returns the transport of a flow, which may start as part of a group or belong to the second
    /// class.
    pub fn transport_of(&self, in_group: bool, in_second: bool) -> TransportKind {
        let [others, in_cast, second] = self.transports();
        match (in_group, in_second) {
            (true, _) => in_cast,
            (false, true) => second,
            (false, false) => others,
        }
    }

    /// Returns the wire bytes of a full data packet of a transport when it leaves its host.
    pub fn full_packet_bytes_of(&self, kind: TransportKind) -> u64 {
        match kind.is_rdma() {
            true => u64::from(self.packets.mss) + u64::from(self.rdma_headers(kind)),
            false => self.full_packet_bytes(),
        }
    }

    /// Returns the bytes of an RDMA data packet on top of its payload.
    pub(crate) fn rdma_headers(&self, kind: TransportKind) -> u32 {
        let telemetry = match kind.reads_telemetry() {
            true => self.rdma.int_bytes,
            false => 0,
        };
        self.rdma.header_bytes + telemetry
    }

    /// Bytes of an acknowledgement of a transport without SACK blocks.
    pub(crate) fn ack_bytes_of(&self, kind: TransportKind) -> u32 {
        match (kind.is_rdma(), kind.reads_telemetry()) {
            (false, _) => self.packets.ack_bytes + self.timestamp_bytes(),
            (true, false) => self.rdma.ack_bytes,
            (true, true) => self.rdma.ack_bytes + self.rdma.ack_int_bytes,
        }
    }

    pub(super) fn validate_rdma(&self, check: &Checks<'_>) -> Result<(), ScenarioError> {
        if !self.has_rdma() {
            return Ok(());
        }
        let largest = self.largest_packet_bytes();
        if largest > MAX_WIRE_BYTES {
            let problem = format!(
                "with rdma_header_bytes and rdma_int_bytes a full packet has {largest} bytes on the \
                 wire; must be at most {MAX_WIRE_BYTES}"
            );
            return check.invalid("mss", self.packets.mss, problem);
        }
        let buffer = self.network.buffer_bytes;
        if buffer < largest {
            let problem = format!("smaller than one packet; must be at least {largest}");
            return check.invalid("buffer_bytes", buffer, problem);
        }
        if self.host.queue != HostQueue::Fair {
            let problem = "RDMA flows take turns at their host; must be fair";
            return check.invalid("host_queue", self.host.queue, problem);
        }
        let telemetry = self.transports().contains(&TransportKind::PowerTcpRdma);
        if telemetry && self.telemetry.bytes_per_hop > 0 {
            let problem =
                "telemetry of powertcp-rdma has rdma_int_bytes whatever the hops; must be 0";
            return check.invalid("int_bytes_per_hop", self.telemetry.bytes_per_hop, problem);
        }
        Ok(())
    }

    /// Checks that lossless priorities, if any, belong to RDMA: generated flows of other transports
    /// must have other priorities, as far as the settings determine it.
    pub(super) fn validate_classes_of_loss(&self, check: &Checks<'_>) -> Result<(), ScenarioError> {
        if self.queues.flow_priority != FlowPriority::Fixed {
            return self.validate_any_priority(check);
        }
        let [background, in_cast, second] = self.transports();
        let last = self.queues.queues_per_port - 1;
        let of_demand = self.demand.kind != Demand::Ports;
        let classes = [
            (
                "background_priority",
                self.queues.background_priority,
                background,
                true,
            ),
            (
                "incast_priority",
                self.queues.incast_priority,
                in_cast,
                self.has_queries(),
            ),
            (
                "second_priority",
                self.queues.second_priority,
                second,
                of_demand && self.demand.second_load > 0.0,
            ),
        ];
        for (field, priority, kind, is_used) in classes {
            let lossless = self
                .lossless
                .priorities
                .contains(priority.min(last) as usize);
            if !is_used || lossless == kind.is_rdma() {
                continue;
            }
            let lossless = self.lossless.priorities;
            let problem = match kind.is_rdma() {
                true => format!(
                    "these flows are RDMA ({kind}); must be one of lossless_priorities, {lossless}"
                ),
                false => format!(
                    "these flows are not RDMA ({kind}); must be none of lossless_priorities, {lossless}"
                ),
            };
            return check.invalid(field, priority, problem);
        }
        Ok(())
    }

    /// Checks settings in which flows may have any priority, so that priorities cannot separate RDMA
    /// from other flows.
    fn validate_any_priority(&self, check: &Checks<'_>) -> Result<(), ScenarioError> {
        let kinds = self.transports();
        let mixed = kinds
            .iter()
            .any(|kind| kind.is_rdma() != kinds[0].is_rdma());
        let all = self.lossless.priorities.count() == self.queues.queues_per_port;
        if mixed || (self.has_rdma() && !all) {
            let problem = "RDMA flows need a lossless priority of their own; must be fixed";
            return check.invalid("flow_priority", self.queues.flow_priority, problem);
        }
        Ok(())
    }

    /// Returns true if generated traces have flows that start as a group.
    fn has_queries(&self) -> bool {
        match self.demand.kind {
            Demand::Ports => self.traffic.kind != Traffic::Poisson,
            _ => self.demand.query_rate > 0.0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scenario(changes: &[&str]) -> Scenario {
        let mut scenario = Scenario::default();
        for change in ["mss=1000", "queues_per_port=4", "buffer_bytes=1e6"]
            .iter()
            .chain(changes)
        {
            scenario.set(change).unwrap();
        }
        scenario
    }

    fn refused(changes: &[&str], said: &[&str]) {
        let error = scenario(changes).validate().unwrap_err().to_string();
        let all = said.iter().all(|said| error.contains(said));
        assert!(all, "{changes:?}: {error}");
    }

    #[test]
    fn packets_have_the_sizes_of_their_class() {
        let mixed = scenario(&[
            "transport=cubic",
            "timestamps=true",
            "incast_transport=powertcp-rdma",
        ]);
        mixed.validate().unwrap();
        let rdma = TransportKind::PowerTcpRdma;
        assert_eq!(mixed.full_packet_bytes_of(TransportKind::Dcqcn), 1_048);
        assert_eq!(mixed.full_packet_bytes_of(rdma), 1_090);
        assert_eq!(mixed.ack_bytes_of(TransportKind::Dcqcn), 60);
        assert_eq!(mixed.ack_bytes_of(rdma), 88);
        assert_eq!(mixed.full_packet_bytes_of(TransportKind::Cubic), 1_070);
        assert_eq!(mixed.largest_packet_bytes(), 1_090);
        assert_eq!(
            (
                mixed.transport_of(true, false),
                mixed.transport_of(false, true)
            ),
            (rdma, TransportKind::Cubic)
        );
        let tcp = scenario(&["transport=cubic"]);
        assert_eq!(tcp.largest_packet_bytes(), 1_058);
    }

    #[test]
    fn what_rdma_cannot_do_is_refused() {
        for (changes, said) in [
            (
                &["rdma_rto_us=0"][..],
                &["rdma_rto_us", "must be from 1"][..],
            ),
            (&["rdma_ack_bytes=0"], &["rdma_ack_bytes", "must be from 1"]),
            (&["rdma_header_bytes=1001"], &["must be from 0 to 1000"]),
            (&["background_priority=8"], &["must be from 0 to 7"]),
            (
                &["transport=dcqcn", "host_queue=fifo"],
                &["host_queue", "must be fair"],
            ),
            (
                &["transport=powertcp-rdma", "int=false"],
                &["reads telemetry"],
            ),
            (
                &["transport=powertcp-rdma", "int_bytes_per_hop=8"],
                &["int_bytes_per_hop", "must be 0"],
            ),
            (
                &[
                    "transport=powertcp-rdma",
                    "rdma_int_bytes=1000",
                    "mss=64600",
                ],
                &["65648 bytes on the wire"],
            ),
        ] {
            refused(changes, said);
        }
        let error = Scenario::default().set("transport=dcqcn:preset=hpcc");
        let error = error.unwrap_err().to_string();
        assert!(error.contains("dcqcn:preset=reverie"), "{error}");
    }

    #[test]
    fn rdma_has_the_lossless_priorities_for_itself() {
        let lossless = [
            "lossless_priorities=3",
            "flow_priority=fixed",
            "traffic=incast_elephants",
        ];
        let with = |changes: &[&'static str]| [&lossless, changes].concat();
        scenario(&with(&[
            "transport=cubic",
            "incast_transport=dcqcn",
            "incast_priority=3",
        ]))
        .validate()
        .unwrap();
        scenario(&with(&[
            "transport=dcqcn",
            "incast_transport=cubic",
            "background_priority=3",
            "incast_priority=1",
        ]))
        .validate()
        .unwrap();
        // Without in-cast flows their priority does not count.
        scenario(&with(&[
            "transport=dcqcn",
            "background_priority=3",
            "traffic=poisson",
        ]))
        .validate()
        .unwrap();
        refused(
            &with(&["transport=dcqcn", "incast_transport=cubic"]),
            &[
                "background_priority",
                "are RDMA (dcqcn)",
                "must be one of lossless_priorities, 3",
            ],
        );
        refused(
            &with(&["transport=cubic", "incast_priority=3"]),
            &["incast_priority", "are not RDMA (cubic)", "must be none of"],
        );
        refused(
            &with(&["transport=dcqcn", "flow_priority=in_turn"]),
            &["flow_priority", "must be fixed"],
        );
        // Without lossless priorities RDMA may have any.
        scenario(&["transport=dcqcn"]).validate().unwrap();
    }

    #[test]
    fn dcqcn_answers_marks_and_powertcp_does_not() {
        let threshold = |changes: &[&str]| scenario(changes).mark_threshold_bytes();
        let k = "ecn_threshold_bytes=9000";
        assert_eq!(threshold(&["transport=dcqcn", k]), Some(9_000));
        assert_eq!(
            threshold(&["transport=dcqcn", "ecn_capable=dctcp", k]),
            Some(9_000)
        );
        assert_eq!(threshold(&["transport=powertcp-rdma", k]), None);
        assert_eq!(threshold(&["transport=dcqcn"]), None);
    }
}
