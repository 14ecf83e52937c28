//! Everything that defines an experiment except the policy and the seed.
//!
//! A [`Scenario`] comes from a preset, a TOML file, or either with single settings changed:
//!
//! ```
//! use bufgym_sim::scenario::Scenario;
//!
//! let mut scenario = Scenario::preset("ndt-16x1g")?;
//! scenario.set("active_ports=2..8")?;
//! scenario.validate()?;
//! assert_eq!(scenario, Scenario::from_toml_str(&scenario.to_toml(), "mine.toml")?);
//! # Ok::<(), bufgym_sim::scenario::ScenarioError>(())
//! ```

mod classes;
mod error;
mod fabric;
mod file;
mod kinds;
mod links;
mod lossless;
mod presets;
mod priorities;
mod queues;
mod range;
mod rdma;
mod settings;
mod sizes;
mod stack;
mod transports;
mod validate;
mod workloads;

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::convert::floor_u64;
use crate::units::{Rate, Time};
use settings::settings;

pub use classes::{LeafHosts, NoHosts};
pub use error::{ScenarioError, SettingProblem};
pub use fabric::Tier;
pub use kinds::{
    AckClass, Arrivals, Congested, Demand, Ecmp, EcmpSalt, EcnCapable, FlowEnd, FlowPriority,
    HostQueue, HyStartRule, LosslessRules, Marking, PfcMode, Recovery, Scheduler, SlowdownBase,
    SpineBuffer, SpinePool, TcpRules, Traffic, TransportVariant, UnknownName, Unscheduled,
    Watchdog, Workload,
};
pub use links::{Link, LinksError, NetworkLinks, Node, TopologyKind};
pub(crate) use lossless::MAX_SACK_BLOCKS;
pub use presets::{DEFAULT_PRESET, PRESETS, Preset};
pub use priorities::{NoPriorities, Priorities};
pub use queues::{AckQueue, NoQueue, NotPerQueue, PerQueue};
pub use range::{RangeF64, RangeParseError, RangeU32};
pub use settings::Setting;
pub use sizes::{SizeDistribution, SizeError};
pub use transports::TransportKind;
use transports::transport_names;
pub(crate) use transports::transports;
pub(crate) use validate::MAX_RECORDS;
pub use workloads::{Sizes, WorkloadError, Workloads};

/// Largest size of a flow, bytes: 1 TB.
pub const MAX_FLOW_BYTES: u64 = 1_000_000_000_000;

/// Largest congestion window, bytes: 2 GiB. Windows are counted in 32 bits, and sums of two must fit.
pub(crate) const MAX_WINDOW: u32 = u32::MAX / 2;

/// Most full packets that a round trip through an empty network may carry. An isolated flow keeps them
/// all in memory.
const MAX_PACKETS_PER_ROUND_TRIP: u64 = 10_000_000;

settings! {
    /// The switch, the hosts, the transport, the traffic and the control loop of an experiment.
    ///
    /// `Default` is the preset `ndt-16x1g`. Sizes are in bytes (1 MB = 10^6 B). The fields can be
    /// changed freely. [`validate`](Scenario::validate) checks that the settings make sense
    /// together; everything that runs a scenario calls it first.
    #[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
    #[serde(default, deny_unknown_fields)]
    pub struct Scenario {
        name: String = DEFAULT_PRESET.to_owned(), "what the scenario is called in results";
        /// A `leafspine` with one leaf is a single switch. A file has a line `a,b,rate_bps,delay_ns` for each link;
        /// the scenario holds the links, not the file.
        topology: TopologyKind = TopologyKind::Single, "which switches there are: single | leafspine | FILE with a line a,b,rate_bps,delay_ns for each link";
        /// With another `topology` than `single`, the number of its hosts, which follows from other settings.
        ports: u32 = 16, "switch ports, one host on each; leafspine: hosts";
        leaves: u32 = 4, "leafspine: leaf switches";
        hosts_per_leaf: u32 = 4, "leafspine: hosts of each leaf";
        spines: u32 = 2, "leafspine: spine switches";
        links_per_pair: u32 = 1, "leafspine: parallel links between a leaf and a spine";
        rate_bps: u64 = 1_000_000_000, "rate of every link, bit/s";
        fabric_rate_bps: u64 = 0, "leafspine: rate of links between switches, bit/s; 0: rate_bps";
        /// Each switch has its own buffer. If `buffer_bytes_per_port_gbps` is above 0, this is the size
        /// of a leaf's buffer, which follows from that setting.
        buffer_bytes: u64 = 1_000_000, "buffer shared by all ports of a switch, bytes";
        /// In units of 1,024 bytes, as data sheets of switches give it.
        buffer_bytes_per_port_gbps: f64 = 0.0, "leafspine: KiB of buffer per port and Gbit/s; 0: buffer_bytes";
        spine_buffer: SpineBuffer = SpineBuffer::Own, "leafspine: per-port buffer of a spine: own | leaf";
        /// Reproduces an error in the wiring of published code; only for comparison with it. A spine
        /// then has no buffer and no policy of its own.
        spine_pool: SpinePool = SpinePool::Own, "leafspine: buffer that ports of spines draw on: own | with_leaf";
        ecmp: Ecmp = Ecmp::Hash, "leafspine: choice of path: hash | dst_mod | flow_mod | spray";
        ecmp_salt: EcmpSalt = EcmpSalt::Switch, "leafspine: what makes hashes differ: switch | none";
        propagation_ns: u64 = 10_000, "one-way propagation delay of a link, ns";
        /// Transports with a rate and some policies read it.
        base_rtt_ns: u64 = 0, "round-trip time through the empty network, ns; 0: from the topology";
        mss: u32 = 1_460, "largest payload of a packet, bytes";
        header_bytes: u32 = 58, "bytes on the wire on top of the payload";
        /// Includes SACK blocks, except for `sack_block_bytes`.
        ack_bytes: u32 = 64, "bytes of an ACK on the wire";
        syn_bytes: u32 = 64, "bytes of a SYN or SYN-ACK on the wire";
        /// These bytes take time on the line but no space in the buffer.
        overhead_bytes: u32 = 0, "preamble and gap per packet, on the line only, bytes";
        transport: TransportKind = TransportKind::NewReno, transport_names!();
        /// In-cast flows are those that start as a group. `None`, written `"same"`, means `transport`.
        incast_transport: Option<TransportKind> = None, "transport of in-cast flows, or same";
        /// In a CSV file these flows have the kind `second`. `None`, written `"same"`, means
        /// `transport`.
        second_transport: Option<TransportKind> = None, "transport of flows of the second class, or same";
        transport_variant: TransportVariant = TransportVariant::Paper, "powertcp, theta-powertcp, timely, hpcc: paper | ns3";
        flows_per_host: u32 = 10, "powertcp, theta-powertcp, hpcc: flows that share the line of a host, as they assume";
        /// Added to the payload.
        rdma_header_bytes: u32 = 48, "RDMA: bytes on the wire on top of the payload";
        /// Negative acknowledgements have the same size.
        rdma_ack_bytes: u32 = 60, "RDMA: bytes of an acknowledgement on the wire";
        /// Independent of the number of hops.
        rdma_int_bytes: u32 = 42, "powertcp-rdma: bytes that telemetry adds to a data packet";
        rdma_ack_int_bytes: u32 = 28, "powertcp-rdma: bytes that telemetry adds to an acknowledgement";
        /// Everything from the first unacknowledged packet on is then sent again.
        rdma_rto_us: u64 = 500, "RDMA: longest wait for an acknowledgement that brings news, us";
        /// With `control`, acknowledgements need neither room in a queue nor a priority.
        ack_priority: AckClass = AckClass::Data, "RDMA: acknowledgements go with the data of their flow, or with pause frames: data | control";
        /// Other flows end with their last byte at the receiver.
        fct: FlowEnd = FlowEnd::LastAck, "RDMA: what ends a flow: last_ack | receiver";
        /// Transports that read telemetry need it.
        int: bool = true, "switches write telemetry into packets of transports that read it";
        int_bytes_per_hop: u32 = 0, "bytes that telemetry adds to a packet at every switch";
        int_on_acks: bool = false, "acknowledgements collect telemetry too, on their way back";
        /// The rule is the one that `hystart_rule` names.
        hystart: bool = false, "cubic leaves slow start when delay grows";
        /// HyStart++ is RFC 9406. Applies where the transport has HyStart.
        hystart_rule: HyStartRule = HyStartRule::Rfc9406, "hystart: rfc9406 (HyStart++) | linux";
        sack: bool = true, "selective acknowledgements";
        sack_block_bytes: u32 = 0, "bytes of an ACK per SACK block, on top of ack_bytes";
        /// Applies where `sack` is true.
        recovery: Recovery = Recovery::Rfc, "loss recovery: rfc | ns3 | rack";
        /// Concerns the retransmission timer, and how windows shrink and grow. Applies where `recovery`
        /// is `rack`.
        tcp_rules: TcpRules = TcpRules::Rfc, "rack: rules where Linux differs from RFCs: rfc | linux";
        delayed_ack: u32 = 1, "in-order segments that one ACK covers; 1: an ACK each";
        /// Applies if `delayed_ack` is above 1: at the start of a flow, and after a segment out of
        /// order.
        quick_acks: u32 = 0, "segments acknowledged at once before ACKs are delayed";
        /// Every data packet, ACK and SYN has timestamps.
        timestamps: bool = false, "TCP timestamps, 12 bytes more per packet";
        init_cwnd: u32 = 10, "initial window, segments";
        /// Without it the window grows as in congestion avoidance from the first segment on, after a
        /// timeout too.
        slow_start: bool = true, "windows double per round trip up to a threshold";
        /// With delayed acknowledgements a limit of 1 lets a window grow by half per round trip. Linux
        /// has no limit.
        slow_start_limit: u32 = 1, "segments that an ACK may add to a window in slow start (L of RFC 3465)";
        /// No window exceeds 2 GiB.
        max_cwnd_bytes: u64 = 0, "largest congestion window, bytes; 0: not capped";
        /// Some policies spare such packets.
        unscheduled: Unscheduled = Unscheduled::FirstRtt, "packets that count as unscheduled: first_rtt | first_bdp | reverie";
        min_rto_us: u64 = 200_000, "smallest retransmission timeout, us";
        initial_rtt_us: u64 = 200, "round-trip time assumed before the first sample, us";
        handshake: bool = false, "flows start with SYN and SYN-ACK";
        /// `None`, written `"min_rto"`, means `min_rto_us`.
        syn_timeout_us: Option<u64> = None, "first timeout of a SYN, us, or min_rto";
        host_queue: HostQueue = HostQueue::Fair, "how the flows of a host share its interface: fair | fifo";
        /// A flow then has at most two packets in the queue of its host, as with TCP small queues.
        late_binding: bool = false, "a flow makes a packet when its host can soon send it";
        /// Each packet waits for a random time, uniform up to this one, and behind the packets that
        /// came before it.
        host_jitter_ns: u64 = 0, "longest time until a host takes a packet that has reached it, ns";
        /// The packet then counts in the buffer too.
        count_in_service: bool = true, "the packet being serialised counts in its queue";
        /// A packet takes the queue of its flow's priority, or the last queue where there is no
        /// such queue.
        queues_per_port: u32 = 1, "queues of a port, by priority of the flows";
        flow_priority: FlowPriority = FlowPriority::InTurn, "queues of generated flows: in_turn | fixed | random_per_flow | random_per_leaf";
        /// Other flows are those that are neither in-cast flows nor of the second class.
        background_priority: u32 = 1, "queue of other flows where flow_priority is fixed";
        /// In-cast flows are those that start as a group.
        incast_priority: u32 = 1, "queue of in-cast flows, unless flow_priority is in_turn";
        second_priority: u32 = 2, "queue of flows of the second class, unless flow_priority is in_turn";
        /// With `flow`, packets without data take the queue of their flow's data.
        ack_queue: AckQueue = AckQueue::OfFlow, "queue of ACKs and SYNs: its number, or flow";
        scheduler: Scheduler = Scheduler::Rr, "which queue of a port comes next: rr | drr | strict | strict+drr";
        /// Multiples of a full packet, separated by commas; without them each queue has one.
        queue_weights: PerQueue = PerQueue::default(), "drr: bytes of each queue in its turn, in full packets";
        /// Strict queues come before the others, which share by deficit round robin.
        strict_queues: u32 = 1, "strict+drr: number of queues that are served strictly";
        /// The values replace the `alpha` of a policy that has one, and are separated by commas.
        /// Policies without an α do not read them.
        queue_alpha: PerQueue = PerQueue::default(), "control factor of each queue; none: that of the policy";
        /// The settings of the other kinds of marking do not apply.
        marking: Marking = Marking::Step, "queue lengths at which data is marked: step | red | red_at_dequeue";
        /// With `dctcp` and 0 the threshold is that of
        /// [`mark_threshold_bytes`](Scenario::mark_threshold_bytes).
        ecn_threshold_bytes: u64 = 0, "queue length at which data is marked; 0: off, dctcp's own";
        /// Replaces `ecn_threshold_bytes`; at most one of the two may be above 0.
        ecn_k_packets: u32 = 0, "the same in packets of mss bytes; 0: ecn_threshold_bytes";
        ecn_red_kmin_bytes: u64 = 0, "marking red: queue length above which some data is marked, bytes";
        ecn_red_kmax_bytes: u64 = 0, "marking red: queue length from which all data is marked, bytes";
        /// Below `ecn_red_kmin_bytes` the probability is 0; in between it rises in proportion.
        ecn_red_pmax: f64 = 1.0, "marking red: probability of a mark just below ecn_red_kmax_bytes";
        /// 1 means the current length.
        ecn_red_weight: f64 = 1.0, "marking red: weight of an arrival in the average length";
        /// Queue management that marks drops the packets of hosts without ECN (RFC 3168 §5).
        ecn: bool = false, "hosts use ECN; always so where the switch marks, and with dctcp";
        /// Other data is admitted where it would be marked.
        ecn_capable: EcnCapable = EcnCapable::All, "flows whose data can be marked: all | dctcp";
        /// These packets count neither in the queue nor in the buffer; the packet being serialised is
        /// one of them. This is ns-3's device queue below a marking queue discipline. Needs
        /// `count_in_service` to be false.
        ecn_uncounted_packets: u32 = 0, "packets at the head of a queue that count nowhere";
        /// The scheduler hands packets on to the device while it has room. Packets there count neither
        /// in queues nor in the buffer, and no policy, mark or telemetry sees them. This is ns-3's
        /// device queue. Needs `count_in_service` to be false.
        device_fifo_packets: u32 = 0, "packets of a port behind its scheduler, in a queue of the device";
        /// Only `sonic`, `sonic-abm` and `reverie` manage a buffer with such priorities, which their
        /// switches protect with pause frames (IEEE 802.1Qbb). Separated by commas.
        lossless_priorities: Priorities = Priorities::NONE, "priorities whose packets pause their senders instead of being lost";
        /// With `ns3`, thresholds are tested and pauses end as in the published code of Reverie.
        rules: LosslessRules = LosslessRules::Paper, "lossless: what the paper or its ns-3 code says: paper | ns3";
        /// Without it Reverie's filter lets bursts overrun the pool.
        pool_guard: bool = true, "lossless: a packet that the pool has no room for goes to the headroom";
        /// 0 means the larger of two values: the bytes that can arrive after a pause, and the value
        /// that the published code of Reverie computes.
        headroom_bytes: u64 = 0, "headroom of a port and lossless priority, bytes; 0: from rate and delay";
        headroom_priorities: u32 = 0, "priorities of a port that headroom is set aside for; 0: the lossless ones";
        /// The pool is the buffer without the headroom.
        lossy_pool_share: f64 = 0.8, "sonic, sonic-abm: egress pool of lossy packets, share of the pool";
        lossless_pool_share: f64 = 1.0, "sonic, sonic-abm: egress pool of lossless packets, share of the buffer";
        congested: Congested = Congested::Sum, "reverie: which queues count in n_p: sum | abm";
        xon_bytes: u64 = 1_248, "lossless: a queue shorter than this resumes whatever its threshold, bytes";
        xoff_offset_bytes: u64 = 2_496, "lossless, rules ns3: how far below its threshold a queue resumes, bytes";
        pfc: PfcMode = PfcMode::XonXoff, "pauses last until they are taken back, or for a time: xonxoff | quanta";
        /// In units of 512 bit times. A pause is repeated after half of it.
        pfc_quanta: u32 = 65_535, "pfc quanta: how long a pause frame pauses, 512 bit times";
        pfc_bytes: u32 = 64, "bytes of a pause frame on the wire";
        pfc_response_ns: u64 = 0, "from the arrival of a pause frame to its effect, ns";
        pfc_watchdog_us: u64 = 0, "longest time that a queue may be paused, us; 0: any";
        watchdog: Watchdog = Watchdog::Stop, "what becomes of a queue that is paused for longer: stop | drop";
        strict_lossless: bool = false, "a lossless packet that is lost makes the run fail";
        /// Without it, these packets take the queue that `ack_queue` names.
        control_class: bool = false, "lossless: packets of TCP with at most 70 bytes of payload go with pause frames and count nowhere";
        /// Unless it is `ports`, every host sends flows of `workload` and asks queries for `warmup_ms`
        /// and `measure_ms`, and the settings of active ports do not apply. The load is that of the
        /// uplinks.
        demand: Demand = Demand::Ports, "who sends to whom: ports | ring | other_leaf | uniform";
        /// Answers come from all leaves.
        demand_leaves: u32 = 0, "demand: leaves whose hosts start flows and ask queries, the first ones; 0: all";
        /// The load is that of the uplinks, whatever the number of these hosts.
        load_hosts: LeafHosts = LeafHosts::All, "demand: hosts of each leaf that send flows and receive them, such as 0..15, or all";
        /// Flows of the second class have the same sizes and demand as the others, but their own hosts,
        /// transport and queue.
        second_load: f64 = 0.0, "demand: load of a second class of flows; 0: none";
        second_hosts: LeafHosts = LeafHosts::All, "demand: hosts of each leaf that send flows of the second class and receive them, or all";
        /// Each of these hosts has a Poisson process of queries.
        query_rate: f64 = 0.0, "demand: queries of a host per second; 0: none";
        query_share: f64 = 0.25, "demand: answers to a query, share of the buffer of a leaf";
        /// These are hosts of one leaf if it has enough.
        query_fanin: u32 = 0, "demand: hosts that answer a query; 0: as many as a leaf has";
        query_hosts: LeafHosts = LeafHosts::All, "demand: hosts of each leaf that ask queries and answer them, or all";
        /// An answer then leaves at once, with a window of its size.
        preconnected: bool = false, "demand: answers need no handshake and no slow start";
        /// Flows that start in this time are simulated and not counted.
        warmup_ms: u64 = 0, "demand: traffic before the measured, ms";
        measure_ms: u64 = 3_000, "demand: time in which counted flows start, ms";
        /// A flow that has not finished then makes the run fail.
        drain_ms: u64 = 11_000, "demand: longest time until all flows have finished, ms";
        slowdown_base: SlowdownBase = SlowdownBase::Alone, "what slowdowns are relative to: paper | pipeline | alone | reverie";
        /// Kinds of flows in a trace.
        traffic: Traffic = Traffic::Poisson, "poisson | incast_elephants | bursts_over_elephants";
        /// With elephants, the load that they alone offer to each port that receives them.
        load: RangeF64 = RangeF64::new(0.5, 0.5), "offered load of an active port, fraction of its rate; uniform per trace";
        /// Distributions of the flow sizes. Each trace draws one of them.
        workload: Workloads = Workload::WebSearch.into(), "web_search, data_mining, fb_hadoop, ali_storage, web_search_abm, or bytes:cdf points; one per trace";
        /// Distribution in time of the flows to one port.
        arrivals: Arrivals = Arrivals::Mixed, "flows in time: mixed | spread | synchronised";
        /// The sources are distinct. With queries or bursts, the number of hosts that answer, drawn for
        /// each query or burst.
        incast_degree: RangeU32 = RangeU32::new(1, 15), "sources of an active port, uniform per port";
        active_ports: RangeU32 = RangeU32::new(1, 16), "ports that receive flows, uniform per trace";
        flows: RangeU32 = RangeU32::new(100, 1_000), "flows of a trace, log-uniform per trace";
        query_gap_us: u64 = 10_000, "mean time between queries or bursts to a port, us";
        response_bytes: u64 = 64_000, "what each host answers to a query, or adds to a burst, bytes";
        elephant_bytes: u64 = 30_000_000, "size of a background flow, bytes";
        decision_latency_us: u64 = 0, "from a trigger to its decision taking effect, us";
        max_interval_us: u64 = 0, "longest time between decisions, us; 0: off";
        /// A trigger that fires earlier is kept until then, as by a controller that polls.
        min_interval_us: u64 = 0, "shortest time between decisions, us; 0: off";
        max_decisions: u64 = 0, "an episode is truncated after so many decisions; 0: off";
        max_simulated_ms: u64 = 0, "an episode is truncated after so much time, ms; 0: off";
    }
}

impl Scenario {
    /// The preset with this name.
    ///
    /// # Errors
    /// [`ScenarioError::UnknownPreset`], with the nearest name.
    pub fn preset(name: &str) -> Result<Scenario, ScenarioError> {
        PRESETS
            .iter()
            .find(|preset| preset.name == name)
            .map(Preset::scenario)
            .ok_or_else(|| ScenarioError::UnknownPreset {
                name: name.to_owned(),
                known: PRESETS.iter().map(|preset| preset.name).collect(),
            })
    }

    /// Every preset, the default first.
    pub fn presets() -> &'static [Preset] {
        PRESETS
    }

    /// Name and one-line description of every preset, the default first.
    pub fn scenario_listing() -> Vec<(&'static str, &'static str)> {
        PRESETS
            .iter()
            .map(|preset| (preset.name, preset.summary))
            .collect()
    }

    /// A preset by its name, or else a TOML file by its path; validated.
    ///
    /// A name that ends in `.toml`, contains a path separator or exists as a file is taken as a path.
    ///
    /// # Errors
    /// When no preset and no file has this name, or the file is not a valid scenario.
    pub fn load(name_or_path: &str) -> Result<Scenario, ScenarioError> {
        let unknown = match Scenario::preset(name_or_path) {
            Ok(scenario) => return Ok(scenario),
            Err(error) => error,
        };
        let path = Path::new(name_or_path);
        let meant_as_path = path
            .extension()
            .is_some_and(|extension| extension == "toml")
            || path.components().count() > 1;
        if !meant_as_path && !path.is_file() {
            return Err(unknown);
        }
        Scenario::from_toml_file(path)
    }

    /// The number of ports as an index bound.
    pub fn port_count(&self) -> usize {
        self.ports as usize
    }

    /// The number of queues of the switch, those of all ports together.
    pub fn queue_count(&self) -> usize {
        self.port_count() * self.queues_per_port as usize
    }

    /// Rate of every link.
    pub fn rate(&self) -> Rate {
        Rate(self.rate_bps)
    }

    /// One-way propagation delay of a link.
    pub fn propagation(&self) -> Time {
        Time::from_ns(self.propagation_ns)
    }

    /// Returns the round trip of a full packet and its acknowledgement through an empty switch: four
    /// times the propagation delay and two transmissions of each. In a network of several switches it
    /// is eight times the propagation delay, the longest path (ABM, SIGCOMM 2022, §4.1).
    ///
    /// `base_rtt_ns`, if set, overrides this.
    pub fn base_rtt(&self) -> Time {
        if self.base_rtt_ns > 0 {
            return Time::from_ns(self.base_rtt_ns);
        }
        self.rtt_of_topology()
    }

    pub(crate) fn rtt_of_topology(&self) -> Time {
        if let TopologyKind::Links(network) = &self.topology {
            return network.longest_round_trip();
        }
        if self.is_fabric() {
            return Time(8 * self.propagation().0);
        }
        let on_line = |bytes: u64| {
            let bytes = bytes + u64::from(self.overhead_bytes);
            self.rate().transmission_time(bytes).0
        };
        let ack = on_line(u64::from(self.ack_bytes) + u64::from(self.timestamp_bytes()));
        Time(4 * self.propagation().0 + 2 * on_line(self.full_packet_bytes()) + 2 * ack)
    }

    /// Bytes that the line of a host carries in a base round trip: the bandwidth-delay product.
    pub(crate) fn bdp_bytes(&self) -> u32 {
        let bits = u128::from(self.rate_bps) * u128::from(self.base_rtt().0);
        u32::try_from(bits / 8_000_000_000_000).unwrap_or(u32::MAX)
    }

    /// Returns the first timeout of a SYN.
    pub fn syn_timeout(&self) -> Time {
        Time::from_us(self.syn_timeout_us.unwrap_or(self.min_rto_us))
    }

    /// Mean number of flows of a generated trace, rounded down: that of a log-uniform distribution.
    pub fn mean_flows(&self) -> u64 {
        if self.demand != Demand::Ports {
            return self.expected_flows();
        }
        let (min, max) = (f64::from(self.flows.min), f64::from(self.flows.max));
        match min < max {
            true => floor_u64((max - min) / libm::log(max / min)),
            false => u64::from(self.flows.max),
        }
    }

    /// Mean time between flows of these sizes towards one active port at `load`, seconds:
    /// `8 · E[S] / (load · C)`.
    pub fn flow_gap_seconds(&self, sizes: &SizeDistribution, load: f64) -> f64 {
        8.0 * sizes.mean() / (load * self.rate_bps as f64)
    }

    /// Time between the elephants towards one port at `load`, seconds: `8 · S / (load · C)`.
    pub fn elephant_gap_seconds(&self, load: f64) -> f64 {
        8.0 * self.elephant_bytes as f64 / (load * self.rate_bps as f64)
    }

    /// The mean of `value(size)` over the flows of all traces, sizes in bytes.
    pub fn mean_over_sizes(&self, mut value: impl FnMut(u64) -> f64) -> f64 {
        let elephant_ports = match self.traffic {
            Traffic::Poisson => {
                let workloads = self.workload.iter();
                let sum: f64 = workloads
                    .map(|workload| workload.distribution().expected(&mut value))
                    .sum();
                return sum / f64::from(self.workload.count());
            }
            Traffic::IncastElephants => self.active_ports.mean() - 1.0,
            Traffic::BurstsOverElephants => self.active_ports.mean(),
        };
        let query_ports = match self.traffic {
            Traffic::IncastElephants => 1.0,
            _ => elephant_ports,
        };
        let elephants = elephant_ports / self.elephant_gap_seconds(self.load.mean());
        let responses = query_ports * self.incast_degree.mean() / (self.query_gap_us as f64 * 1e-6);
        (responses * value(self.response_bytes) + elephants * value(self.elephant_bytes))
            / (responses + elephants)
    }

    /// Queue length at which the switch marks data, bytes; `None` without ECN.
    ///
    /// DCTCP without a setting has K of 20 full packets up to 1 Gbit/s and of 65 at 10 Gbit/s (DCTCP,
    /// SIGCOMM 2010, §3.4), in between and beyond in proportion.
    /// With `red` it is the smallest length with any marks; with `red_at_dequeue`, `None`.
    /// DCQCN answers marks, other transports with a rate do not; if no flow does, nothing is marked.
    pub fn mark_threshold_bytes(&self) -> Option<u64> {
        let answers = |kind: &TransportKind| match self.ecn_capable {
            EcnCapable::Dctcp if !kind.is_rdma() => kind.is_dctcp(),
            _ => kind.answers_marks(),
        };
        if !self.transports().iter().any(answers) || self.marking == Marking::RedAtDequeue {
            return None;
        }
        if self.marking == Marking::Red {
            return Some(self.ecn_red_kmin_bytes);
        }
        let given = match self.ecn_k_packets {
            0 => self.ecn_threshold_bytes,
            packets => u64::from(packets) * u64::from(self.mss),
        };
        match given {
            0 if self.transports().iter().any(|kind| kind.is_dctcp()) => {
                let gbps = self.rate_bps as f64 / 1e9;
                let packets =
                    (20.0 + 5.0 * (gbps - 1.0)).clamp(20.0, 65.0) * (gbps / 10.0).max(1.0);
                Some(floor_u64(packets.round()) * self.full_packet_bytes())
            }
            0 => None,
            bytes => Some(bytes),
        }
    }

    /// Returns true if queue management may mark data instead of dropping it: both ends have agreed on
    /// ECN (RFC 3168 §6.1.1).
    pub fn uses_ecn(&self) -> bool {
        self.ecn || self.marking == Marking::RedAtDequeue || self.mark_threshold_bytes().is_some()
    }

    /// Bytes that each queue of a port may send in its turn, deficit round robin: a full packet, or
    /// `queue_weights` of them.
    pub(crate) fn quanta(&self) -> Vec<u64> {
        let full = self.full_packet_bytes();
        match self.queue_weights.values() {
            [] => vec![full; self.queues_per_port as usize],
            weights => weights
                .iter()
                .map(|weight| floor_u64(weight * full as f64).max(1))
                .collect(),
        }
    }

    /// Returns the number of packets at the head of a queue that count neither in it nor in the buffer.
    pub fn uncounted_packets(&self) -> usize {
        if self.count_in_service {
            0
        } else {
            self.ecn_uncounted_packets.max(1) as usize
        }
    }

    /// Bytes that timestamps add to a packet: 12 (RFC 7323 §3.2, padded) or 0.
    pub fn timestamp_bytes(&self) -> u32 {
        if self.timestamps { 12 } else { 0 }
    }

    /// Bytes that a full data packet takes in the buffer.
    pub fn full_packet_bytes(&self) -> u64 {
        u64::from(self.mss) + u64::from(self.header_bytes) + u64::from(self.timestamp_bytes())
    }
}

#[cfg(test)]
mod tests;
