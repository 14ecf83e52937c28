//! A switch of a scenario that carries packets from outside the simulation.

use super::base::BaseTime;
use super::isolated::BaseFlow;
use super::observer::Observer as _;
use super::outcome::{FlowRecord, Outcome, Summary, SwitchRow};
use super::recorders::Recorders;
use super::simulator::SimError;
use crate::engine::clock::{ClockOffset, EventTime};
use crate::engine::packet::{Packet, PacketKind, SizeClass};
use crate::scenario::{Recovery, Scenario};
use crate::switch::aqm::AqmSpec;
use crate::switch::driven::DrivenSwitch;
use crate::switch::{Admission, Policy, Switch, SwitchId, SwitchSettings};
use crate::traffic::FlowSpec;
use crate::units::{Duration, Instant};

/// Purpose of a packet from outside the simulation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FrameKind {
    /// It carries payload.
    Data,
    /// An acknowledgement without payload.
    Ack,
    /// The first packet of a handshake (RFC 9293 §3.5).
    Syn,
    /// The answer to the first packet.
    SynAck,
    /// A packet without payload from the sender of the data: the end of a handshake or of the flow.
    Control,
}

/// A packet from outside, as the switch sees it.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    /// Port that the packet leaves by.
    pub port: usize,
    /// Bytes that count in the buffer and take time on the line.
    pub bytes: u16,
    /// Number of the packet's flow, from 0.
    pub flow: u32,
    /// Purpose of the packet.
    pub kind: FrameKind,
    /// True if the sender answers marks: an ECN-capable transport (RFC 3168 §5).
    pub markable: bool,
    /// True if the packet was sent before the network could signal anything to its flow.
    pub unscheduled: bool,
    /// The caller's number for the packet.
    pub tag: u32,
}

/// A packet whose last bit has left its port.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Departure {
    /// The caller's number for the packet.
    pub tag: u32,
    /// Port that the packet left by.
    pub port: usize,
    /// Time of departure.
    pub at: Instant,
    /// True if the switch has set the mark Congestion Experienced.
    pub marked: bool,
}

/// Counts that only the hosts of a run know.
#[derive(Clone, Copy, Default, Debug)]
pub struct HostCounts {
    /// Expiries of retransmission timers.
    pub timeouts: u64,
    /// Tail loss probes (RFC 8985 §7).
    pub tail_probes: u64,
    /// Segments received that the receiver already had.
    pub spurious_retransmissions: u64,
}

/// The [`Switch`] of a scenario with one switch, driven by its caller packet by packet: a program that
/// forwards real frames has the policy, the queue management, the marks and the recorders of the
/// simulator. The caller says when packets arrive and lets them leave; times are those of the switch
/// and never go back.
#[derive(Clone, Debug)]
pub struct ExternalSwitch<P> {
    driven: DrivenSwitch<P>,
    recorders: Recorders,
}

impl<P: Policy> ExternalSwitch<P> {
    /// Returns an empty switch with `capacity` bytes of buffer and, if given, queue management
    /// behind its policy. `seed` seeds the marks.
    ///
    /// # Errors
    /// When the scenario is inconsistent or describes a switch that cannot carry real packets; when the
    /// queue management does not fit it.
    pub fn new(
        scenario: &Scenario,
        seed: u64,
        capacity: u64,
        policy: P,
        aqm: Option<&AqmSpec>,
    ) -> Result<ExternalSwitch<P>, SimError> {
        scenario.validate()?;
        scenario.require_single()?;
        check(scenario)?;
        let ports = scenario.port_count();
        let mut settings = SwitchSettings::new(scenario, ports, capacity);
        settings.seed = seed;
        let mut switch = Switch::new(SwitchId(0), ClockOffset::default(), &settings, policy)?;
        if let Some(aqm) = aqm {
            switch.set_aqm(aqm.build(scenario, SwitchId(0), ports)?);
        }
        let mut recorders = Recorders::default();
        recorders.measure_waits();
        Ok(ExternalSwitch {
            driven: DrivenSwitch::new(
                switch,
                scenario.rate(),
                scenario.packets.overhead_bytes.into(),
            ),
            recorders,
        })
    }

    /// Records the state of every port every `interval` from now on.
    pub fn record_timeline(&mut self, interval: Duration) {
        self.recorders.record_timeline(interval, self.driven.now);
    }

    /// Reports that the last bit of a packet has arrived. Packets that leave
    /// [before](ExternalSwitch::next_departure) have to be taken first. Returns true if the packet was
    /// admitted; packets that were lost in its favour are [handed over](ExternalSwitch::take_lost).
    ///
    /// # Panics
    /// When there is no such port or `at` lies in the past.
    pub fn arrive(&mut self, at: Instant, frame: Frame) -> bool {
        let kind = match frame.kind {
            FrameKind::Data => PacketKind::Data,
            FrameKind::Ack => PacketKind::Ack,
            FrameKind::Syn => PacketKind::Syn,
            FrameKind::SynAck => PacketKind::SynAck,
            FrameKind::Control => PacketKind::HandshakeAck,
        };
        let queue = u16::try_from(frame.port).expect("a switch has at most 65,536 ports");
        let size = (frame.bytes, SizeClass::Odd);
        let mut packet = Packet::new(kind, frame.flow, queue, size, at);
        packet.sequence = frame.tag;
        packet.flags.set_tag(frame.unscheduled);
        if !frame.markable {
            packet.flags.refuse_marks();
        }
        self.record_until(at);
        let (id, admission) = self.driven.arrive(at, packet, &mut self.recorders);
        let is_lost = matches!(admission, Admission::Lost(_));
        if is_lost {
            self.driven.packets.remove(id);
        }
        !is_lost
    }

    /// Returns the time at which the next packet leaves, if one is being sent.
    pub fn next_departure(&self) -> Option<Instant> {
        self.driven.next_departure().map(|(left, _)| left)
    }

    /// Lets the next packet leave, if one is being sent; of several at the same instant that of the
    /// lowest port.
    pub fn depart(&mut self) -> Option<Departure> {
        let (at, _) = self.driven.next_departure()?;
        self.record_until(at);
        let (id, port) = self.driven.depart(&mut self.recorders)?;
        let packet = self.driven.packets[id];
        self.driven.packets.remove(id);
        Some(Departure {
            tag: packet.sequence,
            port,
            at,
            marked: packet.flags.marked(),
        })
    }

    /// Hands over the number of a packet that was lost after it had been admitted: pushed out, or
    /// dropped at the head of its queue.
    pub fn take_lost(&mut self) -> Option<u32> {
        let id = self.driven.switch.take_lost()?;
        let tag = self.driven.packets[id].sequence;
        self.driven.packets.remove(id);
        Some(tag)
    }

    /// Returns the switch.
    pub fn switch(&self) -> &Switch<P> {
        &self.driven.switch
    }

    /// Returns the switch, to be changed from outside the packet path, as a control loop does.
    pub fn switch_mut(&mut self) -> &mut Switch<P> {
        &mut self.driven.switch
    }

    /// Returns the instant of the last event.
    pub fn now(&self) -> Instant {
        self.driven.now
    }

    /// Returns the number of packets that are stored or being sent.
    pub fn stored(&self) -> usize {
        self.driven.packets.live()
    }

    /// Returns records and aggregates in the simulator's form, for flows whose times the hosts have
    /// measured. `wall_s` is the wall time of the run. Values that hosts do not report are NaN.
    pub fn outcome(&mut self, flows: Vec<FlowRecord>, hosts: HostCounts, wall_s: f64) -> Outcome {
        let summary = self.summary(&flows, hosts, wall_s);
        let mut outcome = Outcome {
            summary: summary.with_records(&flows, Instant::ZERO, false),
            switches: vec![self.row()],
            records: flows,
            timeline: Vec::new(),
            ingress: Vec::new(),
            drops: Vec::new(),
            trigger_intervals_ps: Vec::new(),
            pauses: Vec::new(),
            first_lossless_drop: None,
            stuck: None,
        };
        self.recorders.report(&mut outcome);
        outcome
    }

    fn summary(&self, flows: &[FlowRecord], hosts: HostCounts, wall_s: f64) -> Summary {
        let counters = self.driven.switch.counters();
        let buffer = self.driven.switch.buffer();
        let finished = flows.iter().filter_map(|flow| flow.finish);
        let last = finished.max().unwrap_or(Instant::ZERO);
        let first = flows.iter().map(|flow| flow.spec.start).min();
        let span = last.saturating_since(first.unwrap_or(Instant::ZERO));
        let done = || flows.iter().filter(|flow| flow.finish.is_some());
        let bytes: u64 = done().map(|flow| flow.spec.size).sum();
        Summary {
            drops: counters.drops,
            drops_data: counters.drops_data,
            dropped_bytes: counters.dropped_bytes,
            pushed_out: counters.pushed_out,
            marks: counters.marks,
            timeouts: hosts.timeouts,
            timeout_wait_ms: f64::NAN,
            tail_probes: hosts.tail_probes,
            spurious_retransmissions: hosts.spurious_retransmissions,
            packets_forwarded: counters.forwarded,
            simulated_s: last.as_secs_f64(),
            wall_s,
            packets_per_s: counters.forwarded as f64 / wall_s,
            max_occupancy_bytes: buffer.max_occupancy(),
            p99_occupancy: buffer.occupancy_percentile(99.0),
            p99_queueing_delay_us: f64::NAN,
            loss_per_delivered: f64::NAN,
            goodput_bps: 8.0 * bytes as f64 / span.as_secs_f64(),
            p99_lossless_occupancy: f64::NAN,
            p99_lossy_occupancy: f64::NAN,
            ..Summary::default()
        }
    }

    fn row(&self) -> SwitchRow {
        let (counters, buffer) = (self.driven.switch.counters(), self.driven.switch.buffer());
        let percentile = |percent| buffer.occupancy_percentile(percent);
        SwitchRow {
            switch: SwitchId(0),
            kind: "leaf",
            buffer_bytes: buffer.capacity(),
            packets_forwarded: counters.forwarded,
            drops: counters.drops,
            drops_unscheduled: counters.drops_unscheduled,
            marks: counters.marks,
            pushed_out: counters.pushed_out,
            p50_occupancy: percentile(50.0),
            p95_occupancy: percentile(95.0),
            p99_occupancy: percentile(99.0),
            p9999_occupancy: percentile(99.99),
            max_occupancy: buffer.max_share(),
            uplink_throughput: f64::NAN,
        }
    }

    /// Records what is due before the event at the instant `at`.
    fn record_until(&mut self, at: Instant) {
        let switches = std::slice::from_ref(&self.driven.switch);
        self.recorders
            .before_event(EventTime::of_host(at), switches);
    }
}

/// Returns the record of a flow that a host has measured: `spec.start` is the time when it began,
/// `finish` the time when its last byte was delivered.
///
/// # Panics
/// When it ends before it begins.
pub fn measured_flow(base: &BaseTime, spec: FlowSpec, finish: Option<Instant>) -> FlowRecord {
    let fct = finish.map(|finish| finish - spec.start);
    let flow = BaseFlow::within(spec.size, base.transport_of(false, false));
    let base = finish.map(|_| base.of(flow));
    let slowdown = |(fct, base): (Duration, Duration)| fct.as_secs_f64() / base.as_secs_f64();
    FlowRecord {
        spec,
        established: None,
        finish,
        fct,
        base,
        slowdown: fct.zip(base).map(slowdown),
        timeouts: 0,
    }
}

/// Refuses scenarios that packets of real hosts cannot follow.
fn check(scenario: &Scenario) -> Result<(), SimError> {
    let problem = if scenario.has_lossless() {
        "lossless_priorities: hosts do not stop at pause frames; must be empty"
    } else if scenario.queues.queues_per_port != 1 {
        "queues_per_port: packets of real hosts have one priority; must be 1"
    } else if scenario.tcp.recovery == Recovery::Ns3 {
        "recovery = ns3: the hosts are real; must be rfc or rack"
    } else {
        return Ok(());
    };
    Err(SimError::Network(problem.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::PolicySpec;

    fn frame(port: usize, tag: u32) -> Frame {
        Frame {
            port,
            bytes: 1_500,
            flow: 0,
            kind: FrameKind::Data,
            markable: true,
            unscheduled: false,
            tag,
        }
    }

    fn scenario() -> Scenario {
        Scenario::default().with(|scenario| {
            scenario.network.ports = 2;
            scenario.network.buffer_bytes = 6_000;
            scenario.network.rate_bps = 100_000_000;
            scenario.traffic.incast_degree = "1".parse().unwrap();
            scenario.traffic.active_ports = "1".parse().unwrap();
        })
    }

    fn switch(policy: &str, scenario: &Scenario) -> ExternalSwitch<crate::switch::AnyPolicy> {
        let spec: PolicySpec = policy.parse().unwrap();
        let built = spec.build(scenario).unwrap();
        ExternalSwitch::new(
            scenario,
            1,
            scenario.network.buffer_bytes,
            built,
            spec.aqm(),
        )
        .unwrap()
    }

    #[test]
    fn packets_leave_at_line_rate_without_drift() {
        let mut switch = switch("cs", &scenario());
        for tag in 0..4 {
            assert!(switch.arrive(Instant::from_us(u64::from(tag)), frame(0, tag)));
        }
        assert!(
            !switch.arrive(Instant::from_us(4), frame(1, 4)),
            "the buffer is full"
        );
        for tag in 0..4 {
            let departure = switch.depart().unwrap();
            assert_eq!((departure.tag, departure.port), (tag, 0));
            assert_eq!(departure.at, Instant::from_us(120 * (u64::from(tag) + 1)));
        }
        assert!(switch.depart().is_none());
        let outcome = switch.outcome(Vec::new(), HostCounts::default(), 1.0);
        assert_eq!(outcome.summary.drops, 1);
        assert_eq!(outcome.summary.packets_forwarded, 4);
        assert_eq!(outcome.summary.max_occupancy_bytes, 6_000);
    }

    #[test]
    fn data_is_marked_from_the_threshold_on_if_its_sender_answers_marks() {
        let scenario = scenario().with(|scenario| {
            scenario.marking.threshold_bytes = 1_500;
        });
        let mut switch = switch("cs", &scenario);
        for tag in 0..3 {
            let markable = tag != 1;
            let frame = Frame {
                markable,
                ..frame(0, tag)
            };
            assert!(switch.arrive(Instant::ZERO, frame));
        }
        let marked: Vec<bool> = std::iter::from_fn(|| switch.depart())
            .map(|departure| departure.marked)
            .collect();
        assert_eq!(marked, [false, false, true]);
    }

    #[test]
    fn packets_that_are_pushed_out_are_handed_over() {
        let mut switch = switch("lqd", &scenario());
        for tag in 0..4 {
            assert!(switch.arrive(Instant::ZERO, frame(0, tag)));
        }
        assert!(switch.arrive(Instant::ZERO, frame(1, 4)));
        assert_eq!(switch.take_lost(), Some(3));
        assert_eq!(switch.take_lost(), None);
        assert_eq!(switch.stored(), 4);
    }

    #[test]
    fn scenarios_that_real_hosts_cannot_play_are_refused() {
        let refused = |scenario: Scenario| {
            let policy = PolicySpec::baseline().build(&scenario).unwrap();
            let built = ExternalSwitch::new(&scenario, 1, 1_000, policy, None);
            built.err().map(|error| error.to_string())
        };
        let two = scenario().with(|scenario| {
            scenario.queues.queues_per_port = 2;
        });
        assert!(refused(two).unwrap().contains("queues_per_port"));
        assert!(refused(scenario()).is_none());
    }
}
