//! Checks that the settings of a scenario make sense together.

use std::fmt::Display;
use std::ops::RangeInclusive;

use crate::input::excerpt;
use crate::units::Time;

use super::{
    AckQueue, Demand, Ecmp, FlowPriority, HostQueue, MAX_FLOW_BYTES, MAX_PACKETS_PER_ROUND_TRIP,
    MAX_WINDOW, Marking, NetworkLinks, RangeU32, Recovery, Scenario, ScenarioError, SlowdownBase,
    Tier, TopologyKind, Traffic, TransportKind,
};

/// Most records of switches that a packet can carry.
pub(crate) const MAX_RECORDS: usize = 8;

/// Largest value of a setting in microseconds: 100 s. Sums of a few such delays are far below the
/// 213 days that a `Time` can hold.
pub(super) const MAX_US: u64 = 100_000_000;

/// Longest mean duration of a generated trace, days. This is well below the latest start of a flow that
/// a trace may have, eleven days.
const MAX_DAYS: f64 = 5.0;

/// Most flows of a trace that hosts send for a given time.
const MAX_FLOWS: u64 = 10_000_000;

/// Bytes of the largest packet on the wire: packets count them in 16 bits.
pub(super) const MAX_WIRE_BYTES: u64 = 65_535;

/// Longest time that a host may take for a packet, nanoseconds: a second.
const MAX_JITTER_NS: u64 = 1_000_000_000;

/// Allowed weights of queues. With a lower weight, a queue would wait for many rounds before it may
/// send a packet.
const WEIGHTS: RangeInclusive<f64> = 0.01..=1_000.0;

/// Checks of single values, with error messages that name the scenario.
pub(super) struct Checks<'a>(&'a Scenario);

impl Checks<'_> {
    pub(super) fn invalid<T>(
        &self,
        field: &'static str,
        value: impl Display,
        problem: impl Into<String>,
    ) -> Result<T, ScenarioError> {
        Err(ScenarioError::Invalid {
            scenario: self.0.name.clone(),
            field,
            value: value.to_string(),
            problem: problem.into(),
        })
    }

    pub(super) fn within(
        &self,
        field: &'static str,
        value: u64,
        min: u64,
        max: u64,
    ) -> Result<(), ScenarioError> {
        if (min..=max).contains(&value) {
            Ok(())
        } else {
            self.invalid(field, value, format!("must be from {min} to {max}"))
        }
    }

    fn range_within(
        &self,
        field: &'static str,
        range: RangeU32,
        max: u32,
        max_is: &str,
    ) -> Result<(), ScenarioError> {
        if range.is_empty() {
            return self.invalid(
                field,
                range,
                format!(
                    "the range is empty; the smaller number comes first, as in {}..{}",
                    range.max, range.min
                ),
            );
        }
        if range.min == 0 || range.max > max {
            return self.invalid(field, range, format!("must lie within 1..{max}{max_is}"));
        }
        Ok(())
    }
}

impl Scenario {
    /// Checks that the settings make a scenario that can be simulated.
    ///
    /// # Errors
    /// [`ScenarioError::Invalid`] for the first invalid setting, with the reason and a valid
    /// alternative.
    pub fn validate(&self) -> Result<(), ScenarioError> {
        let check = Checks(self);
        if self.name.trim().is_empty() || self.name.chars().any(char::is_control) {
            return check.invalid(
                "name",
                format!("\"{}\"", excerpt(&self.name)),
                "must be a non-empty text of one line",
            );
        }
        self.validate_network(&check)?;
        self.validate_transport(&check)?;
        self.validate_rdma(&check)?;
        self.validate_traffic(&check)?;
        check.within("decision_latency_us", self.decision_latency_us, 0, MAX_US)?;
        check.within("max_interval_us", self.max_interval_us, 0, MAX_US)?;
        let longest = match self.max_interval_us {
            0 => MAX_US,
            longest => longest,
        };
        check.within("min_interval_us", self.min_interval_us, 0, longest)?;
        // 10^9 ms, eleven days: the largest start time of a flow.
        check.within("max_simulated_ms", self.max_simulated_ms, 0, 1_000_000_000)
    }

    fn validate_network(&self, check: &Checks<'_>) -> Result<(), ScenarioError> {
        self.validate_fabric(check)?;
        check.within("ports", u64::from(self.ports), 2, 4_096)?;
        check.within("rate_bps", self.rate_bps, 1_000_000, 10_000_000_000_000)?;
        check.within("propagation_ns", self.propagation_ns, 0, MAX_US * 1_000)?;
        check.within("mss", u64::from(self.mss), 1, 65_495)?;
        for (field, bytes) in [
            ("header_bytes", self.header_bytes),
            ("overhead_bytes", self.overhead_bytes),
        ] {
            check.within(field, u64::from(bytes), 0, 1_000)?;
        }
        for (field, bytes) in [("ack_bytes", self.ack_bytes), ("syn_bytes", self.syn_bytes)] {
            check.within(field, u64::from(bytes), 1, 1_000)?;
        }
        check.within(
            "int_bytes_per_hop",
            u64::from(self.int_bytes_per_hop),
            0,
            100,
        )?;
        // Includes telemetry of the path there and back.
        let packet = self.full_packet_bytes() + 8 * u64::from(self.int_bytes_per_hop);
        if packet > MAX_WIRE_BYTES {
            return check.invalid(
                "mss",
                self.mss,
                format!(
                    "with header_bytes, timestamps and telemetry a full packet has {packet} bytes on the wire; \
                     must be at most {MAX_WIRE_BYTES}"
                ),
            );
        }
        let largest = packet.max(u64::from(
            self.ack_bytes.max(self.syn_bytes) + self.timestamp_bytes(),
        ));
        if self.buffer_bytes < largest {
            return check.invalid(
                "buffer_bytes",
                self.buffer_bytes,
                format!("smaller than one packet; must be at least {largest}"),
            );
        }
        check.within(
            "buffer_bytes",
            self.buffer_bytes,
            largest,
            1_000_000_000_000,
        )?;
        let outside_buffer = u64::from(self.ecn_uncounted_packets);
        check.within("ecn_uncounted_packets", outside_buffer, 0, 1_000)?;
        if outside_buffer > 0 && self.count_in_service {
            let problem = "must be 0 where count_in_service is true";
            return check.invalid("ecn_uncounted_packets", outside_buffer, problem);
        }
        let device = u64::from(self.device_fifo_packets);
        check.within("device_fifo_packets", device, 0, 100_000)?;
        if device > 0 && (self.count_in_service || outside_buffer > 0) {
            let problem = "needs count_in_service false and ecn_uncounted_packets 0; must be 0 \
                           otherwise";
            return check.invalid("device_fifo_packets", device, problem);
        }
        check.within("queues_per_port", u64::from(self.queues_per_port), 1, 8)?;
        check.within("incast_priority", u64::from(self.incast_priority), 0, 7)?;
        if outside_buffer > 0 && self.queues_per_port > 1 {
            let problem = "must be 0 where queues_per_port is above 1";
            return check.invalid("ecn_uncounted_packets", outside_buffer, problem);
        }
        self.validate_queues(check)?;
        let threshold = self.ecn_threshold_bytes;
        check.within("ecn_threshold_bytes", threshold, 0, 1_000_000_000_000)?;
        let packets = u64::from(self.ecn_k_packets);
        check.within("ecn_k_packets", packets, 0, 1_000_000_000)?;
        if packets > 0 && threshold > 0 {
            let problem = "must be 0 where ecn_threshold_bytes is above 0";
            return check.invalid("ecn_k_packets", packets, problem);
        }
        self.validate_red(check)?;
        self.validate_lossless(check)
    }

    fn validate_red(&self, check: &Checks<'_>) -> Result<(), ScenarioError> {
        let (low, high) = (self.ecn_red_kmin_bytes, self.ecn_red_kmax_bytes);
        check.within("ecn_red_kmin_bytes", low, 0, 1_000_000_000_000)?;
        check.within("ecn_red_kmax_bytes", high, 0, 1_000_000_000_000)?;
        for (field, share) in [
            ("ecn_red_pmax", self.ecn_red_pmax),
            ("ecn_red_weight", self.ecn_red_weight),
        ] {
            // In this form the condition is false for NaN too.
            if !(share > 0.0 && share <= 1.0) {
                return check.invalid(field, share, "must be above 0 and at most 1");
            }
        }
        if self.marking != Marking::Step && high == 0 {
            let problem = "marking red needs it; must be above 0";
            return check.invalid("ecn_red_kmax_bytes", high, problem);
        }
        if low > high {
            let problem = format!("must be at most ecn_red_kmax_bytes, {high}");
            return check.invalid("ecn_red_kmin_bytes", low, problem);
        }
        Ok(())
    }

    fn validate_queues(&self, check: &Checks<'_>) -> Result<(), ScenarioError> {
        let queues = self.queues_per_port;
        if let AckQueue::Number(queue) = self.ack_queue
            && queue >= queues
        {
            let problem = format!("ports have {queues} queues; must be below that, or flow");
            return check.invalid("ack_queue", queue, problem);
        }
        for (field, numbers) in [
            ("queue_weights", &self.queue_weights),
            ("queue_alpha", &self.queue_alpha),
        ] {
            let count = numbers.values().len();
            if !numbers.is_empty() && count != queues as usize {
                let problem = format!(
                    "{count} numbers, but ports have queues_per_port = {queues}; must be one for \
                     each, or none"
                );
                return check.invalid(field, numbers, problem);
            }
        }
        let weights = self.queue_weights.values();
        if !weights.iter().all(|weight| WEIGHTS.contains(weight)) {
            let (low, high) = (WEIGHTS.start(), WEIGHTS.end());
            let problem = format!("must be from {low} to {high} each");
            return check.invalid("queue_weights", &self.queue_weights, problem);
        }
        if !weights.is_empty() && !self.scheduler.has_weights() {
            let problem = format!("scheduler {} has no weights; must be empty", self.scheduler);
            return check.invalid("queue_weights", &self.queue_weights, problem);
        }
        check.within("strict_queues", u64::from(self.strict_queues), 1, 8)
    }

    fn validate_fabric(&self, check: &Checks<'_>) -> Result<(), ScenarioError> {
        for (field, number) in [
            ("leaves", self.leaves),
            ("hosts_per_leaf", self.hosts_per_leaf),
            ("links_per_pair", self.links_per_pair),
        ] {
            check.within(field, u64::from(number), 1, 4_096)?;
        }
        check.within("spines", u64::from(self.spines), 0, 4_096)?;
        if self.fabric_rate_bps != 0 {
            check.within(
                "fabric_rate_bps",
                self.fabric_rate_bps,
                1_000_000,
                10_000_000_000_000,
            )?;
        }
        let per_gbps = self.buffer_bytes_per_port_gbps;
        // In this form the condition is false for NaN too.
        if !(0.0..=1e6).contains(&per_gbps) {
            let problem = "must be from 0 to 1000000";
            return check.invalid("buffer_bytes_per_port_gbps", per_gbps, problem);
        }
        if self.topology == TopologyKind::Single {
            if per_gbps > 0.0 {
                let problem = "needs topology leafspine; must be 0, and buffer_bytes the size";
                return check.invalid("buffer_bytes_per_port_gbps", per_gbps, problem);
            }
            return Ok(());
        }
        if let Some(network) = self.links() {
            return self.validate_links(check, network);
        }
        match (self.leaves, self.spines) {
            (1, 1..) => {
                let problem = "one leaf has no use for spines; must be 0 where leaves is 1";
                return check.invalid("spines", self.spines, problem);
            }
            (2.., 0) => {
                let problem = "several leaves cannot reach each other; must be at least 1";
                return check.invalid("spines", self.spines, problem);
            }
            _ => {}
        }
        let hosts = u64::from(self.leaves) * u64::from(self.hosts_per_leaf);
        if hosts != u64::from(self.ports) {
            let problem = format!(
                "the hosts of a leaf-spine network are leaves x hosts_per_leaf, {hosts}; change \
                 these instead"
            );
            return check.invalid("ports", self.ports, problem);
        }
        self.validate_leaf_buffer(check)?;
        let spine = self.at_switch(Tier::Spine).buffer_bytes;
        let packet = self.full_packet_bytes();
        if self.is_fabric() && spine < packet {
            let problem = format!(
                "a spine has {spine} bytes, less than one packet of {packet}; must be larger"
            );
            return check.invalid("buffer_bytes_per_port_gbps", per_gbps, problem);
        }
        Ok(())
    }

    fn validate_leaf_buffer(&self, check: &Checks<'_>) -> Result<(), ScenarioError> {
        let buffer = self.leaf_buffer();
        if self.buffer_bytes == buffer {
            return Ok(());
        }
        let problem = format!(
            "buffer_bytes_per_port_gbps makes it {buffer}; must be so, or \
             buffer_bytes_per_port_gbps 0"
        );
        check.invalid("buffer_bytes", self.buffer_bytes, problem)
    }

    fn validate_links(
        &self,
        check: &Checks<'_>,
        network: &NetworkLinks,
    ) -> Result<(), ScenarioError> {
        let (rate, delay) = network.host_kind();
        for (field, found, given) in [
            ("ports", u64::from(self.ports), network.hosts() as u64),
            ("rate_bps", self.rate_bps, rate.0),
            ("propagation_ns", self.propagation_ns, delay.as_ns()),
        ] {
            if found != given {
                let problem =
                    format!("the links of topology make it {given}; change these instead");
                return check.invalid(field, found, problem);
            }
        }
        if self.ecmp == Ecmp::Spray {
            let problem = "must be hash, dst_mod or flow_mod where topology is given by links";
            return check.invalid("ecmp", self.ecmp, problem);
        }
        if self.flow_priority == FlowPriority::RandomPerLeaf {
            let problem = "there are no leaves; must be random_per_flow, fixed or in_turn";
            return check.invalid("flow_priority", self.flow_priority, problem);
        }
        if !matches!(
            self.slowdown_base,
            SlowdownBase::Pipeline | SlowdownBase::Paper
        ) {
            let problem = "must be pipeline or paper where topology is given by links";
            return check.invalid("slowdown_base", self.slowdown_base, problem);
        }
        if self.has_lossless() {
            let problem =
                "must be none where topology is given by links: pauses there are not tested";
            return check.invalid("lossless_priorities", self.lossless_priorities, problem);
        }
        let telemetry = self.transports().iter().any(|kind| kind.reads_telemetry());
        let ways = if self.int_on_acks { 2 } else { 1 };
        let records = ways * network.most_switches() as usize;
        if telemetry && records > MAX_RECORDS {
            let problem = format!(
                "packets have room for {MAX_RECORDS} records of switches, and a path writes {records}"
            );
            return check.invalid("transport", self.transport, problem);
        }
        self.validate_leaf_buffer(check)
    }

    fn validate_transport(&self, check: &Checks<'_>) -> Result<(), ScenarioError> {
        self.validate_combination(check)?;
        self.validate_rates(check)?;
        if !self.sack && self.recovery != Recovery::Rfc {
            let problem = format!(
                "{} is a recovery with SACK; must be rfc where sack is false",
                self.recovery
            );
            return check.invalid("recovery", self.recovery, problem);
        }
        check.within(
            "sack_block_bytes",
            u64::from(self.sack_block_bytes),
            0,
            1_000,
        )?;
        check.within("delayed_ack", u64::from(self.delayed_ack), 1, 1_000)?;
        if self.delayed_ack > 1 && self.recovery == Recovery::Ns3 {
            let problem = "must be 1 where recovery is ns3";
            return check.invalid("delayed_ack", self.delayed_ack, problem);
        }
        check.within("quick_acks", u64::from(self.quick_acks), 0, 255)?;
        if self.quick_acks > 0 && self.stack().delayed_ack == 1 {
            let problem = "must be 0 where delayed_ack is 1: every segment is acknowledged at once";
            return check.invalid("quick_acks", self.quick_acks, problem);
        }
        if self.late_binding && self.host_queue == HostQueue::Fifo {
            let problem = "needs host_queue fair; must be false where it is fifo";
            return check.invalid("late_binding", self.late_binding, problem);
        }
        check.within(
            "slow_start_limit",
            u64::from(self.slow_start_limit),
            1,
            65_535,
        )?;
        if self.slow_start_limit > 1 && self.recovery == Recovery::Ns3 {
            let problem = "must be 1 where recovery is ns3";
            return check.invalid("slow_start_limit", self.slow_start_limit, problem);
        }
        check.within("host_jitter_ns", self.host_jitter_ns, 0, MAX_JITTER_NS)?;
        if !self.slow_start && self.recovery == Recovery::Ns3 {
            let problem = "must be true where recovery is ns3";
            return check.invalid("slow_start", self.slow_start, problem);
        }
        check.within("init_cwnd", u64::from(self.init_cwnd), 1, 10_000)?;
        if self.max_cwnd_bytes != 0 && self.max_cwnd_bytes < u64::from(self.mss) {
            return check.invalid(
                "max_cwnd_bytes",
                self.max_cwnd_bytes,
                format!(
                    "smaller than one segment; must be 0 (not capped) or at least {}",
                    self.mss
                ),
            );
        }
        check.within(
            "max_cwnd_bytes",
            self.max_cwnd_bytes,
            0,
            u64::from(MAX_WINDOW),
        )?;
        self.validate_round_trip(check)?;
        check.within("min_rto_us", self.min_rto_us, 1, MAX_US)?;
        check.within("initial_rtt_us", self.initial_rtt_us, 1, MAX_US)?;
        check.within(
            "syn_timeout_us",
            self.syn_timeout_us.unwrap_or(self.min_rto_us),
            1,
            MAX_US,
        )
    }

    /// Checks the transports that stand for an operating system and imply its loss recovery.
    fn validate_combination(&self, check: &Checks<'_>) -> Result<(), ScenarioError> {
        if !self.transport.is_combination() {
            return Ok(());
        }
        if !self.sack {
            let problem = format!("transport {} needs SACK; must be true", self.transport);
            return check.invalid("sack", self.sack, problem);
        }
        if self.recovery == Recovery::Ns3 {
            let problem = format!(
                "transport {} has recovery rack; must be rack, or left at rfc",
                self.transport
            );
            return check.invalid("recovery", self.recovery, problem);
        }
        Ok(())
    }

    /// Checks transports with a rate, including those of in-cast flows and of the second class.
    fn validate_rates(&self, check: &Checks<'_>) -> Result<(), ScenarioError> {
        check.within(
            "flows_per_host",
            u64::from(self.flows_per_host),
            1,
            1_000_000,
        )?;
        for (field, kind) in [
            ("transport", Some(self.transport)),
            ("incast_transport", self.incast_transport),
            ("second_transport", self.second_transport),
        ] {
            let Some(kind) = kind else { continue };
            let combined = kind.is_combination() || self.transport.is_combination();
            if kind != self.transport && combined {
                let problem =
                    "linux and linux-dctcp stand for both ends of all flows; must be same";
                return check.invalid(field, kind, problem);
            }
            if kind.needs_ns3() && self.recovery != Recovery::Ns3 {
                let problem = "cubic-ns3 belongs to recovery ns3; must be cubic otherwise";
                return check.invalid(field, kind, problem);
            }
        }
        for kind in self.transports() {
            self.validate_rate(check, kind)?;
        }
        Ok(())
    }

    /// Checks the needs of a transport with a rate at the ends and in the network.
    fn validate_rate(&self, check: &Checks<'_>, kind: TransportKind) -> Result<(), ScenarioError> {
        if kind.reads_telemetry() && !self.int {
            let problem = format!("transport {kind} reads telemetry of the switches; must be true");
            return check.invalid("int", self.int, problem);
        }
        if !kind.sets_rate() {
            return Ok(());
        }
        if self.recovery != Recovery::Rfc {
            let problem = format!("transport {kind} has no other recovery; must be rfc");
            return check.invalid("recovery", self.recovery, problem);
        }
        if !self.sack {
            let problem = format!("transport {kind} needs SACK; must be true");
            return check.invalid("sack", self.sack, problem);
        }
        if self.delayed_ack > 1 {
            let problem = format!("transport {kind} needs an acknowledgement each; must be 1");
            return check.invalid("delayed_ack", self.delayed_ack, problem);
        }
        // Windows and rates are converted into each other with the round-trip time.
        if self.base_rtt() == Time::ZERO {
            let problem = format!("transport {kind} needs a round-trip time; must be above 0");
            return check.invalid("propagation_ns", self.propagation_ns, problem);
        }
        Ok(())
    }

    /// Checks the memory of an isolated flow: it has at most a round trip of packets in flight, or its
    /// largest window.
    fn validate_round_trip(&self, check: &Checks<'_>) -> Result<(), ScenarioError> {
        let full = self.full_packet_bytes() + u64::from(self.overhead_bytes);
        let on_line = self.rtt_of_topology().0 / self.rate().transmission_time(full).0;
        let window = match self.max_cwnd_bytes {
            0 => u64::from(MAX_WINDOW),
            bytes => bytes,
        };
        let packets = on_line.min(window / u64::from(self.mss));
        if packets > MAX_PACKETS_PER_ROUND_TRIP {
            return check.invalid(
                "propagation_ns",
                self.propagation_ns,
                format!(
                    "with rate_bps, mss and max_cwnd_bytes a round trip carries {packets} packets; \
                     must be at most {MAX_PACKETS_PER_ROUND_TRIP}"
                ),
            );
        }
        Ok(())
    }

    fn validate_demand(&self, check: &Checks<'_>) -> Result<(), ScenarioError> {
        for (field, ms) in [
            ("warmup_ms", self.warmup_ms),
            ("measure_ms", self.measure_ms),
            ("drain_ms", self.drain_ms),
        ] {
            check.within(field, ms, 0, MAX_US)?;
        }
        // In this form the conditions are false for NaN too.
        if !(0.0..=1e6).contains(&self.query_rate) {
            let problem = "must be from 0 to 1000000";
            return check.invalid("query_rate", self.query_rate, problem);
        }
        if !(self.query_share > 0.0 && self.query_share <= 1_000.0) {
            let problem = "must be above 0 and at most 1000";
            return check.invalid("query_share", self.query_share, problem);
        }
        if self.demand == Demand::Ports {
            return self.validate_classes(check);
        }
        check.within("measure_ms", self.measure_ms, 1, MAX_US)?;
        if self.demand != Demand::Uniform && !self.is_leaf_spine() {
            let problem = "needs several leaves; must be ports or uniform";
            return check.invalid("demand", self.demand, problem);
        }
        self.validate_classes(check)?;
        let (fanin, servers) = (self.fanin(), self.servers());
        if fanin > servers {
            let problem = format!(
                "only {servers} hosts could answer; must be at most that, or 0 for as many as a \
                 leaf has"
            );
            return check.invalid("query_fanin", self.query_fanin, problem);
        }
        let flows = self.expected_flows();
        if flows > MAX_FLOWS {
            let problem = format!(
                "with load, query_rate and warmup_ms a trace would have {flows} flows; must be so \
                 short that they are at most {MAX_FLOWS}"
            );
            return check.invalid("measure_ms", self.measure_ms, problem);
        }
        Ok(())
    }

    fn validate_traffic(&self, check: &Checks<'_>) -> Result<(), ScenarioError> {
        self.validate_demand(check)?;
        // In this form the condition is false for NaN too.
        if !(self.load.min > 0.0 && self.load.max <= 1.5) {
            return check.invalid("load", self.load, "must be above 0 and at most 1.5");
        }
        if self.load.min > self.load.max {
            let problem = format!(
                "the range is empty; the smaller number comes first, as in {}..{}",
                self.load.max, self.load.min
            );
            return check.invalid("load", self.load, problem);
        }
        let others = self.ports - 1;
        check.range_within(
            "incast_degree",
            self.incast_degree,
            others,
            " (a port cannot have more sources than there are other ports)",
        )?;
        check.range_within(
            "active_ports",
            self.active_ports,
            self.ports,
            " (there are no more ports)",
        )?;
        check.range_within("flows", self.flows, 10_000_000, "")?;
        check.within("query_gap_us", self.query_gap_us, 1, MAX_US)?;
        check.within("response_bytes", self.response_bytes, 1, MAX_FLOW_BYTES)?;
        check.within("elephant_bytes", self.elephant_bytes, 1, MAX_FLOW_BYTES)?;
        match self.traffic {
            Traffic::Poisson => self.validate_poisson(check),
            Traffic::IncastElephants | Traffic::BurstsOverElephants => self.validate_queries(check),
        }
    }

    fn validate_poisson(&self, check: &Checks<'_>) -> Result<(), ScenarioError> {
        // The mean number of gaps with the fewest active ports. The last term accounts for the wait for
        // the first group of flows.
        let gaps = f64::from(self.flows.max) / f64::from(self.active_ports.min)
            + f64::from(self.incast_degree.max);
        let longest_gap = self
            .workload
            .iter()
            .map(|sizes| self.flow_gap_seconds(sizes.distribution(), self.load.min))
            .fold(0.0, f64::max);
        let days = gaps * longest_gap / 86_400.0;
        if days > MAX_DAYS {
            return check.invalid(
                "load",
                self.load,
                format!(
                    "with this workload, rate_bps and flows a trace would last {days:.0} days; \
                     must be at most {MAX_DAYS}: raise load or lower flows"
                ),
            );
        }
        Ok(())
    }

    fn validate_queries(&self, check: &Checks<'_>) -> Result<(), ScenarioError> {
        let degree = self.incast_degree;
        let senders = self.ports.saturating_sub(self.active_ports.max);
        if self.traffic == Traffic::BurstsOverElephants && degree.max > senders {
            return check.invalid(
                "incast_degree",
                degree,
                format!(
                    "bursts come from hosts that receive nothing, and with {} ports and \
                     active_ports = {} there may be only {senders} of them; lower one of the two \
                     or raise ports",
                    self.ports, self.active_ports
                ),
            );
        }
        if self.flows.min < degree.max {
            return check.invalid(
                "flows",
                self.flows,
                format!(
                    "a query is never cut short; must be at least the in-cast degree, {}",
                    degree.max
                ),
            );
        }
        // The first term accounts for the wait for the first query. The smallest degree gives the most
        // queries.
        let queries = 1.0 + f64::from(self.flows.max) / f64::from(degree.min);
        let days = queries * self.query_gap_us as f64 / 86_400e6;
        if days > MAX_DAYS {
            return check.invalid(
                "query_gap_us",
                self.query_gap_us,
                format!(
                    "with this incast_degree and flows a trace would last {days:.0} days; must be \
                     at most {MAX_DAYS}: lower query_gap_us or flows"
                ),
            );
        }
        Ok(())
    }
}
