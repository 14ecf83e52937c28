//! Priorities without loss, the headroom that they need, and the pause frames that protect them.

use super::named::named;
use super::settings::settings;
use super::validate::Checks;
use super::{
    AckClass, HostQueue, Marking, Priorities, Scenario, ScenarioError, Scheduler, SpinePool, Tier,
    TransportKind,
};
use crate::units::{Duration, Rate};

settings! {
    /// Priorities without loss, and the pause frames that protect them.
    pub struct LosslessSettings {
        /// Only `sonic`, `sonic-abm` and `reverie` manage a buffer with such priorities, which their
        /// switches protect with pause frames (IEEE 802.1Qbb). Separated by commas.
        priorities as lossless_priorities: Priorities = Priorities::NONE, "priorities whose packets pause their senders instead of being lost";
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
        strict as strict_lossless: bool = false, "a lossless packet that is lost makes the run fail";
        /// Without it, these packets take the queue that `ack_queue` names.
        control_class: bool = false, "lossless: packets of TCP with at most 70 bytes of payload go with pause frames and count nowhere";
    }
}

named! {
    /// The form of the rules for a buffer with lossless packets.
    LosslessRules {
        /// Reverie (NSDI 2024).
        Paper = "paper",
        /// The ns-3 code that Reverie was evaluated with.
        Ns3 = "ns3",
    }
}

named! {
    /// Queues that count as congested in Reverie's n_p.
    Congested {
        /// Each queue in part, by its filtered length in units of 20,480 B, as in the ns-3 code.
        Sum = "sum",
        /// Queues whose filtered length is at least 0.9 of the last threshold (ABM, SIGCOMM 2022).
        Abm = "abm",
    }
}

named! {
    /// Duration of a pause (IEEE 802.1Qbb).
    PfcMode {
        /// Until it is revoked.
        XonXoff = "xonxoff",
        /// For a limited time; the frame is repeated before that ends.
        Quanta = "quanta",
    }
}

named! {
    /// Action on a queue that has been paused for too long.
    Watchdog {
        /// The run stops and reports which queues wait for which.
        Stop = "stop",
        /// The packets of the queue are lost.
        Drop = "drop",
    }
}

/// Bytes that the published code of Reverie adds to two packets and a round trip: 60 quanta of 512 bits
/// on the line, the usual response time to a pause, and twenty bytes more.
const RESPONSE_IN_NS3: u64 = 3_860;

/// Largest number of bytes on a port's line that headroom may stand for. Packets are counted in 16
/// bits, and a terabit per second over 100 ms is 12.5 GB.
const MAX_HEADROOM: u64 = 100_000_000_000;

/// Most SACK blocks of an acknowledgement: the number that fits next to a time stamp (RFC 2018 §3).
pub(crate) const MAX_SACK_BLOCKS: usize = 3;

impl Scenario {
    /// Returns true if some packets must not be lost.
    pub fn has_lossless(&self) -> bool {
        !self.lossless.priorities.is_empty()
    }

    /// Returns true if hosts send a packet of RDMA and one of TCP in turn, as in the published code of
    /// Reverie, instead of a packet of each flow.
    pub(crate) fn hosts_alternate_classes(&self) -> bool {
        self.has_lossless() && self.lossless.rules == LosslessRules::Ns3
    }

    /// Bytes of the largest packet of any class on the wire, acknowledgements included.
    pub(crate) fn largest_packet_bytes(&self) -> u64 {
        let kinds = self.transports().into_iter();
        let largest = kinds.map(|kind| self.largest_packet_bytes_of(kind)).max();
        largest.unwrap_or(self.full_packet_bytes())
    }

    /// Returns the bytes of the largest packet of a transport on the wire, with the telemetry of all
    /// switches on its path and all SACK blocks.
    fn largest_packet_bytes_of(&self, kind: TransportKind) -> u64 {
        let data = self.full_packet_bytes_of(kind);
        let ack = u64::from(self.ack_bytes_of(kind));
        if kind.is_rdma() {
            return data.max(ack);
        }
        let hops = match self.links() {
            Some(network) => u64::from(network.most_switches()),
            None if self.is_fabric() => 3,
            None => 1,
        };
        let ways = if self.telemetry.on_acks { 2 } else { 1 };
        let record = match kind.reads_telemetry() {
            true => u64::from(self.telemetry.bytes_per_hop),
            false => 0,
        };
        let blocks = match self.tcp.sack {
            true => MAX_SACK_BLOCKS as u64 * u64::from(self.tcp.sack_block_bytes),
            false => 0,
        };
        let syn = match self.tcp.handshake {
            true => u64::from(self.packets.syn_bytes + self.timestamp_bytes()),
            false => 0,
        };
        let ack = ack + blocks + ways * hops * record;
        (data + hops * record).max(ack).max(syn)
    }

    /// Returns the headroom that a queue of a port with this line needs in the worst case, bytes:
    /// `2 M + a(C (t(W) + n t(F) + 2 d + r))`.
    ///
    /// M is the size of the largest packet. One such packet makes the queue pause its neighbour, and
    /// the neighbour begins another just before the pause takes effect. In between, the line is full.
    /// The frame waits for the packet W that its own port has just begun, the larger of M and a pause
    /// frame, and for the frames of the other of n lossless priorities. Then come its own transmission,
    /// propagation in both directions (d each), and the neighbour's response r. `t` is the time of a
    /// packet on the line, overhead included. `a` is the most bytes of whole packets that this much of
    /// a line carries: all of them if packets have no overhead.
    pub fn needed_headroom(&self, rate: Rate) -> u64 {
        let on_line = |bytes: u64| {
            let bytes = bytes + u64::from(self.packets.overhead_bytes);
            rate.transmission_time(bytes).0
        };
        let (packet, frame) = (
            self.largest_packet_bytes(),
            u64::from(self.lossless.pfc_bytes),
        );
        let frames = u64::from(self.lossless.priorities.count().max(1));
        let delay =
            Duration::from_ns(2 * self.network.propagation_ns + self.lossless.pfc_response_ns);
        let wait = on_line(packet.max(frame)) + frames * on_line(frame) + delay.0;
        let line = u128::from(rate.0) * u128::from(wait) / 8_000_000_000_000;
        2 * packet + self.stored_of(u64::try_from(line).unwrap_or(u64::MAX))
    }

    /// Returns the most bytes of whole packets, as they count in a buffer, that `line` bytes of a line
    /// carry.
    fn stored_of(&self, line: u64) -> u64 {
        let packet = self.largest_packet_bytes();
        let overhead = u64::from(self.packets.overhead_bytes);
        let full = line / (packet + overhead);
        (full * packet).max(line.saturating_sub((full + 1) * overhead))
    }

    /// Returns the headroom that the published code of Reverie computes: two packets, 3,860 B, and the
    /// bytes that cross the link in a round trip.
    fn headroom_in_ns3(&self, rate: Rate) -> u64 {
        let bit_ns = u128::from(rate.0) * u128::from(2 * self.network.propagation_ns);
        let delay = u64::try_from(bit_ns / 8_000_000_000).unwrap_or(u64::MAX);
        2 * self.largest_packet_bytes() + RESPONSE_IN_NS3 + delay
    }

    /// Returns the headroom of a port with this line and one lossless priority, bytes.
    pub fn port_headroom(&self, rate: Rate) -> u64 {
        match self.lossless.headroom_bytes {
            0 => self.needed_headroom(rate).max(self.headroom_in_ns3(rate)),
            bytes => bytes,
        }
    }

    /// Returns the number of priorities of a port that have headroom.
    pub fn headroom_priorities(&self) -> u32 {
        match self.lossless.headroom_priorities {
            0 => self.lossless.priorities.count(),
            priorities => priorities,
        }
    }

    /// Returns the headroom of a switch as it [sees](Scenario::at_switch) the scenario, bytes; `rates`
    /// are those of its ports.
    pub fn switch_headroom(&self, rates: impl Iterator<Item = Rate>) -> u64 {
        let priorities = u64::from(self.headroom_priorities());
        rates
            .map(|rate| priorities * self.port_headroom(rate))
            .sum()
    }

    /// Returns the bytes of the largest packet that may be lost; `None` if the settings make all
    /// packets lossless.
    pub(crate) fn largest_lossy_packet_bytes(&self) -> Option<u64> {
        if self.lossless.priorities.count() == self.queues.queues_per_port {
            return None;
        }
        let kinds = self.transports().into_iter();
        let lossy = kinds.filter(|kind| !kind.is_rdma() || !self.has_lossless());
        lossy.map(|kind| self.largest_packet_bytes_of(kind)).max()
    }

    /// Returns the reason why the memory of a switch cannot be managed by port of arrival, if there is
    /// one.
    pub(crate) fn unmanageable(&self) -> Option<String> {
        if self.queues.device_fifo_packets > 0 || self.queues.uncounted_packets > 0 {
            let needs = "it counts all packets of a queue; needs device_fifo_packets 0 and \
                         ecn_uncounted_packets 0";
            return Some(needs.to_owned());
        }
        (self.queues.queues_per_port > 1 && self.queues.scheduler != Scheduler::Rr).then(|| {
            format!(
                "it serves queues in turn; needs scheduler rr, found {}",
                self.queues.scheduler
            )
        })
    }

    pub(super) fn validate_lossless(&self, check: &Checks<'_>) -> Result<(), ScenarioError> {
        check.within(
            "headroom_bytes",
            self.lossless.headroom_bytes,
            0,
            MAX_HEADROOM,
        )?;
        let priorities = u64::from(self.lossless.headroom_priorities);
        check.within("headroom_priorities", priorities, 0, 8)?;
        for (field, share) in [
            ("lossy_pool_share", self.lossless.lossy_pool_share),
            ("lossless_pool_share", self.lossless.lossless_pool_share),
        ] {
            // In this form the condition is false for NaN too.
            if !(share > 0.0 && share <= 1.0) {
                return check.invalid(field, share, "must be above 0 and at most 1");
            }
        }
        check.within("xon_bytes", self.lossless.xon_bytes, 1, 1_000_000_000)?;
        check.within(
            "xoff_offset_bytes",
            self.lossless.xoff_offset_bytes,
            0,
            1_000_000_000,
        )?;
        check.within("pfc_quanta", u64::from(self.lossless.pfc_quanta), 1, 65_535)?;
        check.within("pfc_bytes", u64::from(self.lossless.pfc_bytes), 1, 1_000)?;
        check.within(
            "pfc_response_ns",
            self.lossless.pfc_response_ns,
            0,
            1_000_000_000,
        )?;
        check.within(
            "pfc_watchdog_us",
            self.lossless.pfc_watchdog_us,
            0,
            100_000_000,
        )?;
        match self.has_lossless() {
            true => self.validate_pools(check),
            false if self.marking.kind == Marking::RedAtDequeue => check.invalid(
                "marking",
                self.marking.kind,
                "needs lossless_priorities; must be step or red",
            ),
            false => Ok(()),
        }
    }

    fn validate_pools(&self, check: &Checks<'_>) -> Result<(), ScenarioError> {
        let lossless = self.lossless.priorities;
        let queues = self.queues.queues_per_port as usize;
        if let Some(priority) = lossless.iter().find(|priority| *priority >= queues) {
            let problem = format!(
                "priority {priority} needs a queue of its own, and ports have queues_per_port = \
                 {queues}; must be below that"
            );
            return check.invalid("lossless_priorities", lossless, problem);
        }
        if self.queues.device_fifo_packets > 0 || self.queues.uncounted_packets > 0 {
            let problem = "pauses act on the queues themselves; needs device_fifo_packets 0 and \
                           ecn_uncounted_packets 0";
            return check.invalid("lossless_priorities", lossless, problem);
        }
        if self.network.spine_pool != SpinePool::Own {
            let problem = "headroom belongs to a switch; needs spine_pool own";
            return check.invalid("lossless_priorities", lossless, problem);
        }
        if self.host.queue != HostQueue::Fair {
            let problem = "a paused host sends what is not paused; needs host_queue fair";
            return check.invalid("lossless_priorities", lossless, problem);
        }
        self.validate_classes_of_loss(check)?;
        // A pause that is repeated only after its frame can have left would end in between.
        let overhead = u64::from(self.packets.overhead_bytes);
        let frame = u64::from(self.lossless.pfc_bytes);
        let packet = self.largest_packet_bytes().max(frame) + overhead;
        let frames = u64::from(lossless.count()) * (frame + overhead);
        let least = 2 * (packet + frames).div_ceil(64);
        if self.lossless.pfc == PfcMode::Quanta && u64::from(self.lossless.pfc_quanta) < least {
            let problem = format!(
                "half of it must be as long as a packet and a pause frame of each lossless priority; must \
                 be at least {least}"
            );
            return check.invalid("pfc_quanta", self.lossless.pfc_quanta, problem);
        }
        if self.headroom_priorities() < lossless.count() {
            let problem = format!(
                "{} priorities are lossless; must be 0 or as many",
                lossless.count()
            );
            return check.invalid(
                "headroom_priorities",
                self.lossless.headroom_priorities,
                problem,
            );
        }
        let tiers: &[Tier] = match self.is_fabric() {
            true => &[Tier::Leaf, Tier::Spine],
            false => &[Tier::Leaf],
        };
        for &tier in tiers {
            self.validate_pools_at(check, tier)?;
        }
        Ok(())
    }

    fn validate_pools_at(&self, check: &Checks<'_>, tier: Tier) -> Result<(), ScenarioError> {
        let at = match self.is_fabric() {
            true => self.at_switch(tier),
            false => self.clone(),
        };
        let headroom = self.switch_headroom(self.rates_of(tier));
        let least = headroom + self.largest_packet_bytes();
        if at.network.buffer_bytes < least {
            let problem = format!(
                "a {} sets {headroom} aside for headroom, which leaves less than a packet; must be at \
                 least {least}, or headroom_bytes smaller",
                tier.name()
            );
            return check.invalid("buffer_bytes", at.network.buffer_bytes, problem);
        }
        Ok(())
    }

    /// Returns the rates of the ports of a switch.
    fn rates_of(&self, tier: Tier) -> impl Iterator<Item = Rate> {
        let (hosts, others) = match (tier, self.is_fabric()) {
            (_, false) => (self.network.ports as usize, 0),
            (Tier::Leaf, true) => (
                self.network.hosts_per_leaf as usize,
                bufgym_util::convert::index(self.uplinks()),
            ),
            (Tier::Spine, true) => (
                0,
                (self.network.leaves * self.network.links_per_pair) as usize,
            ),
        };
        let to_hosts = std::iter::repeat_n(self.rate(), hosts);
        to_hosts.chain(std::iter::repeat_n(self.fabric_rate(), others))
    }

    /// Returns a warning if lossless packets may be lost despite pauses, as far as the settings tell.
    pub fn lossless_warning(&self) -> Option<String> {
        if !self.has_lossless() {
            return None;
        }
        let rate = match self.is_fabric() {
            true => self.rate().max(self.fabric_rate()),
            false => self.rate(),
        };
        let needed = self.needed_headroom(rate);
        let mut reasons = Vec::new();
        if self.port_headroom(rate) < needed {
            reasons.push(format!(
                "headroom_bytes is {}, and up to {needed} bytes can need it; raise it, or set it to 0",
                self.lossless.headroom_bytes
            ));
        }
        let has_control = self.lossless.control_class
            || self.has_rdma() && self.rdma.ack_priority == AckClass::Control;
        if self.lossless.rules == LosslessRules::Ns3 && has_control {
            reasons.push(
                "with rules ns3 a pause frame waits for all packets of the control class before it, and no \
                 headroom is enough for that; set rules to paper, or control_class to false and \
                 ack_priority to data"
                    .to_owned(),
            );
        }
        if !self.lossless.pool_guard {
            reasons.push(
                "pool_guard is false, so that packets can overrun the pool; set it to true"
                    .to_owned(),
            );
        }
        if self.lossless.lossless_pool_share < 1.0 {
            reasons.push(format!(
                "lossless_pool_share is {}, and sonic and sonic-abm drop what exceeds that pool; set it to 1",
                self.lossless.lossless_pool_share
            ));
        }
        let joined = reasons.join("; ");
        (!reasons.is_empty()).then(|| format!("lossless packets may be lost: {joined}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a scenario with 25 Gbit/s, 2 µs and packets of 1,048 B.
    fn scenario(changes: &[&str]) -> Scenario {
        let mut scenario = Scenario::default();
        let base = [
            "ports=4",
            "incast_degree=1..3",
            "active_ports=1..4",
            "rate_bps=25000000000",
            "propagation_ns=2000",
            "mss=1000",
            "header_bytes=48",
            "queues_per_port=4",
            "lossless_priorities=3",
            "buffer_bytes=2560000",
        ];
        for change in base.iter().chain(changes) {
            scenario.set(change).unwrap();
        }
        scenario
    }

    #[test]
    fn headroom_is_what_can_arrive_after_a_pause() {
        let rate = Rate(25_000_000_000);
        let scenario = scenario(&[]);
        assert_eq!(scenario.needed_headroom(rate), 15_708);
        assert_eq!(scenario.port_headroom(rate), 18_456);
        let slow = scenario_with_response();
        assert_eq!(slow.needed_headroom(rate), 15_708 + 3_125);
        assert_eq!(slow.port_headroom(rate), 18_833);
        assert_eq!(scenario.switch_headroom([rate; 3].into_iter()), 3 * 18_456);
    }

    fn scenario_with_response() -> Scenario {
        scenario(&["pfc_response_ns=1000"])
    }

    /// W1 and W2 of the worked examples are within these, and every term counts.
    #[test]
    fn headroom_counts_all_that_the_frame_waits_for() {
        let rate = Rate(25_000_000_000);
        let needed = |changes: &[&str]| scenario(changes).needed_headroom(rate);
        assert_eq!(needed(&[]), 12_500 + 1_048 + 64 + 2 * 1_048);
        // A frame of every lossless priority.
        let three = &["lossless_priorities=1,2,3"];
        assert_eq!(needed(three), 12_500 + 1_048 + 3 * 64 + 2 * 1_048);
        // A pause frame that is larger than any packet may be the one in service.
        let large = &["mss=256", "pfc_bytes=1000"];
        assert_eq!(needed(large), 12_500 + 1_000 + 1_000 + 2 * 304);
        // The reverse link carries overheads. On the incoming link they replace bytes that count:
        // 14,112 bytes of the line are ten full packets and a smaller one, each with its overhead.
        let overhead = &["overhead_bytes=250"];
        let line = 12_500 + (1_048 + 250) + (64 + 250);
        assert_eq!(line, 14_112);
        assert_eq!(needed(overhead), 2 * 1_048 + (line - 11 * 250));
        // Acknowledgements and SYNs that are larger than data.
        let acks = &[
            "mss=10",
            "header_bytes=10",
            "ack_bytes=500",
            "timestamps=true",
        ];
        assert_eq!(needed(acks), 12_500 + 512 + 64 + 2 * 512);
        let blocks = &["mss=10", "ack_bytes=500", "sack_block_bytes=8"];
        assert_eq!(needed(blocks), 12_500 + 524 + 64 + 2 * 524);
        let syns = &["mss=10", "syn_bytes=700"];
        assert_eq!(needed(syns), 12_500 + 64 + 64 + 2 * 64);
        let shaken = &["mss=10", "syn_bytes=700", "handshake=true"];
        assert_eq!(needed(shaken), 12_500 + 700 + 64 + 2 * 700);
        let rdma = &["mss=100", "transport=dcqcn", "rdma_ack_bytes=642"];
        assert_eq!(needed(rdma), 12_500 + 642 + 64 + 2 * 642);
        // Telemetry grows at every hop, on the return path too.
        let telemetry = &["transport=hpcc", "int_bytes_per_hop=20"];
        assert_eq!(needed(telemetry), 12_500 + 1_068 + 64 + 2 * 1_068);
        // The rate of the port's line counts.
        assert_eq!(
            scenario(&[]).needed_headroom(Rate(10_000_000_000)),
            5_000 + 1_048 + 64 + 2 * 1_048
        );
    }

    #[test]
    fn what_may_lose_packets_is_worth_a_warning() {
        let warning = |changes: &[&str]| scenario(changes).lossless_warning();
        assert_eq!(warning(&[]), None);
        assert_eq!(warning(&["headroom_bytes=15708"]), None);
        assert_eq!(warning(&["rules=ns3"]), None);
        assert_eq!(warning(&["control_class=true"]), None);
        for (changes, words) in [
            (
                &["headroom_bytes=15707"][..],
                &["15707", "15708", "set it to 0"][..],
            ),
            (
                &["rules=ns3", "control_class=true"],
                &["rules", "paper", "control_class"],
            ),
            (
                &["rules=ns3", "transport=dcqcn", "ack_priority=control"],
                &["rules", "ack_priority"],
            ),
            (&["pool_guard=false"], &["pool_guard"]),
            (
                &["lossless_pool_share=0.9"],
                &["lossless_pool_share", "set it to 1"],
            ),
        ] {
            let warning = warning(changes).unwrap_or_default();
            let all = words.iter().all(|word| warning.contains(word));
            assert!(all, "{changes:?}: {warning}");
        }
        assert_eq!(Scenario::default().lossless_warning(), None);
    }

    #[test]
    fn what_cannot_be_lossless_is_refused() {
        for (change, said) in [
            ("queues_per_port=3", "needs a queue of its own"),
            ("xon_bytes=0", "must be from 1"),
            ("host_queue=fifo", "needs host_queue fair"),
            ("headroom_bytes=640000", "leaves less than a packet"),
            ("lossy_pool_share=1.1", "must be above 0 and at most 1"),
            ("lossless_pool_share=nan", "must be above 0 and at most 1"),
        ] {
            let error = scenario(&[change]).validate().unwrap_err().to_string();
            assert!(error.contains(said), "{change}: {error}");
        }
        scenario(&[]).validate().unwrap();
        let quanta = |quanta: &str| scenario(&["pfc=quanta", quanta]).validate();
        let error = quanta("pfc_quanta=35").unwrap_err().to_string();
        assert!(error.contains("must be at least 36"), "{error}");
        quanta("pfc_quanta=36").unwrap();
        let large = ["pfc=quanta", "pfc_quanta=36", "overhead_bytes=24"];
        let error = scenario(&large).validate().unwrap_err().to_string();
        assert!(error.contains("must be at least 38"), "{error}");
        let mut none = Scenario::default();
        none.set("marking=red_at_dequeue").unwrap();
        none.set("ecn_red_kmax_bytes=1000").unwrap();
        let error = none.validate().unwrap_err().to_string();
        assert!(error.contains("needs lossless_priorities"), "{error}");
    }
}
