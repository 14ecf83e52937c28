//! Early drop with regular spacing. The gap between drops may be set by port while the switch runs.
//!
//! It is random early detection's second method of spacing (Floyd and Jacobson 1993, section VII) with
//! a probability that does not depend on the queue length: of the packets that find
//! `min_bytes` or more in their queue, one in a gap is lost, where a gap is a whole number drawn
//! uniformly from 1 to `gap`. So a dataplane needs a counter per port and, if gaps are powers of two,
//! some random bits: no multiplier, and no random number per packet. A control loop sets the gap of
//! every port to one of eight: [`GAPS`] or, with `finest`, as many shorter or longer ones.
//!
//! One loss is enough to slow down a sender. A second one in the same round trip has no further effect
//! (RFC 5681 §4.3: the sender halves its window once per window of data). But it may hit a
//! retransmission, and without RACK (RFC 8985) a sender that loses one can only wait for its timer. So
//! a flow that has lost a packet, early or to the policy, is spared for `grace_us` from that loss on.
//! The default is the time that a port needs to send the whole buffer. If senders have RACK, it is an
//! eighth of that, because only the first of the two reasons applies.
//!
//! The loss of one of a flow's last packets ends in a timeout too: no packets follow whose
//! acknowledgements would reveal the loss to the sender. With `from=front` the first waiting packet of
//! the flow is lost instead, when it comes to the head of its queue, and only if enough packets wait
//! behind it for fast retransmit. Packets of the flow in other queues, of other ports or priorities, do
//! not count: each queue counts separately. The sender also learns of the loss earlier, by the delay of
//! the queue. (Dropping from the front: Yin and Hluchyj, IEEE Transactions on Communications 1993;
//! Lakshman, Neidhardt and Ott, INFOCOM 1996.) A dataplane needs a counter of waiting packets per flow
//! and queue for that. A flow whose sender is no faster than its port never has so many packets
//! waiting, however large its window has grown. When its port has to share the buffer, that window
//! overflows it. With `patience`, a drop that has been due for that many gaps falls on the packet that
//! arrives.

use bufgym_util::convert::floor_u64;
use bufgym_util::rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rustc_hash::FxHashMap;

use super::definition::{ACTION, AqmDefinition, SEED, marks};
use super::{Advice, AnyDiscipline, Arriving, Discipline, Leaving, drain_ps};
use crate::switch::policy::{
    Bound, Deployment, Kind, Loss, PacketView, ParameterInfo, PolicyInfo, Search,
};
use crate::units::{Duration, Instant};

pub(super) static DEFINITION: AqmDefinition = AqmDefinition {
    info: PolicyInfo {
        name: "early",
        summary: "Drops at regular gaps from a queue length on",
        rule: "drop or mark one packet in a gap, drawn uniformly from 1 to gap, of those with q_i >= min_bytes",
        source: "Floyd and Jacobson, IEEE/ACM ToN 1993, section VII, method 2, with one probability",
        deployment: Deployment::Extension,
        parameters: &[
            ParameterInfo {
                name: "min_bytes",
                default: "B/(4N)",
                kind: Kind::Bytes,
                search: Search::log_to(1.0, Bound::Buffer(1.0)).from(Bound::Queue(0.25)),
                meaning: "queue length from which packets are dropped, bytes",
            },
            ParameterInfo {
                name: GAP,
                default: "256, or what decisions set",
                kind: Kind::Count,
                search: Search::log(2.0, 65_536.0).from(Bound::Value(256.0)),
                meaning: "longest gap between drops, packets",
            },
            ParameterInfo {
                name: FINEST,
                default: "16, where decisions set gaps",
                kind: Kind::Choice(&["2", "4", "8", "16", "32", "64", BUFFER]),
                search: Search::Fixed,
                meaning: "where decisions set the gap: the shortest of those that they choose from, packets; the others are twice to 64 times as long; buffer: one for every 125 kB of the switch's buffer, rounded down to a power of two, 2 at least",
            },
            ParameterInfo {
                name: "spare",
                default: "yes",
                kind: Kind::Choice(&["yes", "no"]),
                search: Search::Words,
                meaning: "whether packets are spared whose loss costs most: of flows in grace_us, and with fab a flow's first bytes",
            },
            ParameterInfo {
                name: "grace_us",
                default: "8B/R, with RACK B/R",
                kind: Kind::Positive,
                search: Search::log(10.0, 1e6).from(Bound::Value(5_000.0)),
                meaning: "for how long a flow that has lost a packet is spared, microseconds",
            },
            ParameterInfo {
                name: "from",
                default: "back",
                kind: Kind::Choice(&["back", "front"]),
                search: Search::Words,
                meaning: "which packet is dropped: back: the one that arrives; front: the first one of its flow in the queue, where three or more of the flow wait behind it",
            },
            ParameterInfo {
                name: PATIENCE,
                default: "for ever",
                kind: Kind::Count,
                search: Search::Fixed,
                meaning: "with from=front: for how many gaps a drop stays due, where packets arrive of which none can be dropped at the front, before the next that arrives is dropped",
            },
            ACTION,
            ParameterInfo {
                name: "keep",
                default: "no",
                kind: Kind::Choice(&["no", "yes", "long"]),
                search: Search::Marking,
                meaning: "with action=mark: whether the switch's own marks (ecn_threshold_bytes) stay beside these; long: but not, with fab, on a flow's first bytes",
            },
            SEED,
        ],
    },
    build: |arguments, context| {
        let ports = context.ports;
        let derived = context.buffer_bytes / (4 * ports.max(1) as u64);
        let from_front = arguments.text("from") == Some("front");
        if from_front && context.outside_buffer > 1 {
            return Err(
                "drops from the front make no room; needs ecn_uncounted_packets=0".to_owned(),
            );
        }
        let patience: Option<u32> = arguments.optional(PATIENCE);
        if patience.is_some() && !from_front {
            return Err("patience is for drops from the front; needs from=front".to_owned());
        }
        let gap: Option<u32> = arguments.optional(GAP);
        let finest = arguments.text(FINEST);
        if finest.is_some() && gap.is_some() {
            return Err(
                "finest is for gaps that decisions set; leave out gap or finest".to_owned(),
            );
        }
        let grace_us: Option<f64> = arguments.optional("grace_us");
        let drained = drain_ps(context.buffer_bytes, context.rate);
        let grace = Duration(floor_u64(if context.rack {
            drained / 8.0
        } else {
            drained
        }));
        Ok(AnyDiscipline::Early(EarlyDrop {
            min_bytes: arguments.optional("min_bytes").unwrap_or(derived),
            queues_per_port: context.queues / ports.max(1),
            spare: arguments.text("spare") == Some("yes"),
            marks: marks(arguments),
            keeps: match arguments.text("keep") {
                Some("yes") => OwnMarks::All,
                Some("long") => OwnMarks::Unspared,
                _ => OwnMarks::None,
            },
            waiting: from_front.then(|| Waiting {
                patience,
                ..Waiting::default()
            }),
            gaps: EarlyGaps::of(finest).in_buffer(context.buffer_bytes),
            ports: vec![Spacing::new(gap.unwrap_or(DEFAULT_GAP)); ports],
            losses: RecentLosses::new(
                grace_us.map_or(grace, |us| Duration::from_secs_f64(us * 1e-6)),
            ),
        }))
    },
};

/// The parameter that decisions set, and its default.
pub(super) const GAP: &str = "gap";
pub(super) const DEFAULT_GAP: u32 = 256;

/// The parameter that limits how long a drop stays due.
const PATIENCE: &str = "patience";

/// The parameter that shortens the gaps from which decisions choose.
pub(super) const FINEST: &str = "finest";

/// Gaps that a control loop chooses from by default, by level; level 0 drops none. One packet in (n +
/// 1)/2 is lost: 0.2, 0.4, 0.8, 1.6, 3.1, 6.1 and 12 %.
pub const GAPS: [u32; 8] = [0, 1024, 512, 256, 128, 64, 32, 16];

/// Value of `finest` that scales the gaps with the buffer.
const BUFFER: &str = "buffer";

/// Bytes of buffer for every packet of the shortest gap, if gaps grow with the buffer. For buffers of
/// 256 kB, 1 MB and 4 MB the best gaps, 8, 32 and 128 packets, are then the same level.
const BYTES_PER_PACKET: u64 = 125_000;

/// The gaps that decisions choose from, by level; level 0 drops none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EarlyGaps {
    /// The same gaps in every switch, packets.
    Packets([u32; 8]),
    /// Multiples of the [shortest gap](EarlyGaps::shortest) of the switch. Decisions then have the same
    /// meaning whatever the size of its buffer, as an α does.
    OfBuffer([u32; 8]),
}

impl EarlyGaps {
    pub(super) fn of(finest: Option<&str>) -> EarlyGaps {
        let [.., usual] = GAPS;
        let multiples = GAPS.map(|gap| gap / usual);
        match finest {
            Some(BUFFER) => EarlyGaps::OfBuffer(multiples),
            finest => {
                let finest = finest.and_then(|text| text.parse().ok()).unwrap_or(usual);
                EarlyGaps::Packets(multiples.map(|multiple| multiple * finest))
            }
        }
    }

    /// Returns the gaps in a switch with `buffer_bytes` of buffer, by level, packets.
    #[must_use]
    pub fn in_buffer(self, buffer_bytes: u64) -> [u32; 8] {
        match self {
            EarlyGaps::Packets(gaps) => gaps,
            EarlyGaps::OfBuffer(multiples) => {
                multiples.map(|multiple| multiple * EarlyGaps::shortest(buffer_bytes))
            }
        }
    }

    /// Returns the numbers by level in the form of manifests and exports: packets, or multiples of the
    /// shortest gap.
    #[must_use]
    pub fn by_level(self) -> [u32; 8] {
        match self {
            EarlyGaps::Packets(numbers) | EarlyGaps::OfBuffer(numbers) => numbers,
        }
    }

    /// Returns the bytes of buffer for every packet of the shortest gap, if gaps grow with the buffer.
    #[must_use]
    pub fn bytes_per_packet(self) -> Option<u64> {
        match self {
            EarlyGaps::Packets(_) => None,
            EarlyGaps::OfBuffer(_) => Some(BYTES_PER_PACKET),
        }
    }

    /// Returns the shortest gap of a switch with `buffer_bytes` of buffer, if gaps grow with it:
    /// packets, a power of two from 2 to 2^20.
    #[must_use]
    pub fn shortest(buffer_bytes: u64) -> u32 {
        let packets = (buffer_bytes / BYTES_PER_PACKET).clamp(2, 1 << 20);
        1 << packets.ilog2()
    }
}

/// Number of a flow's packets that have to wait behind one that is dropped from the front: as many
/// duplicate acknowledgements start fast retransmit (RFC 5681 §3.2).
const FOLLOWERS: u32 = 3;

/// The level of no early drop, in force before the first decision.
pub const EARLY_OFF: u8 = 0;

/// Drops at regular gaps.
#[derive(Clone, PartialEq, Debug)]
pub struct EarlyDrop {
    /// Queue length from which packets are dropped, bytes.
    min_bytes: u64,
    queues_per_port: usize,
    /// True if packets are spared that the policy [names](crate::switch::Policy::spares).
    spare: bool,
    /// True if packets that can be marked are marked instead of dropped. A mark is not a loss, after
    /// which a flow would be spared.
    marks: bool,
    keeps: OwnMarks,
    /// Packets that wait, if packets are dropped from the front.
    waiting: Option<Waiting>,
    /// The gaps that decisions choose from, by level.
    gaps: [u32; 8],
    ports: Vec<Spacing>,
    losses: RecentLosses,
}

/// Marks that the switch sets by itself in addition to those of early drop.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum OwnMarks {
    None,
    /// Marks on packets that the policy does not [name](crate::switch::Policy::spares).
    Unspared,
    All,
}

/// Packets of every flow that wait in every queue.
#[derive(Clone, Default, PartialEq, Debug)]
struct Waiting {
    flows: FxHashMap<(u32, u32), WaitingFlow>,
    /// Number of gaps for which a drop stays due before it falls on the arriving packet; `None` for no
    /// limit.
    patience: Option<u32>,
}

#[derive(Clone, Copy, Default, PartialEq, Debug)]
struct WaitingFlow {
    packets: u32,
    /// True if the first packet is to be dropped when it comes to the head.
    chosen: bool,
}

/// Returns the key of a flow in a queue.
#[inline]
#[expect(
    clippy::cast_possible_truncation,
    reason = "a switch has at most 65,536 queues"
)]
fn place(flow: u32, queue: usize) -> (u32, u32) {
    (flow, queue as u32)
}

impl Waiting {
    fn enqueued(&mut self, flow: u32, queue: usize) {
        self.flows.entry(place(flow, queue)).or_default().packets += 1;
    }

    /// Returns true if the flow's first packet in the queue may be chosen when one more is enqueued.
    fn may_lose_first(&self, flow: u32, queue: usize) -> bool {
        let waiting = self.flows.get(&place(flow, queue));
        waiting.is_some_and(|flow| !flow.chosen && flow.packets >= FOLLOWERS)
    }

    fn choose_first(&mut self, flow: u32, queue: usize) {
        self.flows.entry(place(flow, queue)).or_default().chosen = true;
    }

    /// Notes that the flow's first packet in a queue comes to its head. Returns true if it is to be
    /// dropped.
    fn at_head(&mut self, flow: u32, queue: usize) -> bool {
        let Some(waiting) = self.flows.get_mut(&place(flow, queue)) else {
            return false;
        };
        waiting.packets = waiting.packets.saturating_sub(1);
        let chosen = std::mem::take(&mut waiting.chosen);
        // Others may have been pushed out since the packet was chosen.
        let dropped = chosen && waiting.packets >= FOLLOWERS;
        if waiting.packets == 0 {
            self.flows.remove(&place(flow, queue));
        }
        dropped
    }

    /// Notes that one of the flow's packets in a queue is pushed out.
    fn pushed_out(&mut self, flow: u32, queue: usize) {
        if let Some(waiting) = self.flows.get_mut(&place(flow, queue)) {
            waiting.packets = waiting.packets.saturating_sub(1);
            if waiting.packets == 0 {
                self.flows.remove(&place(flow, queue));
            }
        }
    }
}

/// Flows that have recently lost a packet.
#[derive(Clone, PartialEq, Debug)]
struct RecentLosses {
    /// Time for which a loss counts.
    grace: Duration,
    /// Time of the first loss of a flow in its grace period.
    first: FxHashMap<u32, Instant>,
    next_sweep: Instant,
}

impl RecentLosses {
    fn new(grace: Duration) -> RecentLosses {
        RecentLosses {
            grace,
            first: FxHashMap::default(),
            next_sweep: Instant::ZERO,
        }
    }

    fn counts(&self, first: Instant, now: Instant) -> bool {
        now.saturating_since(first) < self.grace
    }

    /// Returns true if the flow is in its grace period.
    #[inline]
    fn spare(&self, flow: u32, now: Instant) -> bool {
        let first = self.first.get(&flow);
        first.is_some_and(|&first| self.counts(first, now))
    }

    /// Notes a loss. A further loss in the grace period of the first does not extend it. O(1) on
    /// average: expired losses are removed once per grace period.
    fn note(&mut self, flow: u32, now: Instant) {
        let grace = self.grace;
        if grace == Duration::ZERO {
            return;
        }
        if now >= self.next_sweep {
            self.first
                .retain(|_, first| now.saturating_since(*first) < grace);
            self.next_sweep = now.saturating_add(grace);
        }
        if !self.spare(flow, now) {
            self.first.insert(flow, now);
        }
    }
}

/// The spacing of a port's early drops.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Spacing {
    /// The longest gap, packets; 0 for no early drop.
    gap: u32,
    /// Packets up to and including the next that is dropped; 0 while no gap is drawn.
    left: u32,
    /// Number of packets that have passed the due drop on to the next.
    passed: u32,
}

impl Spacing {
    fn new(gap: u32) -> Spacing {
        Spacing {
            gap,
            left: 0,
            passed: 0,
        }
    }
}

impl EarlyDrop {
    /// Returns the constants of early drop for control records, as keys and values.
    pub(super) fn constants(&self) -> Vec<(&'static str, String)> {
        let mut constants = vec![
            ("early_min_bytes", self.min_bytes.to_string()),
            ("early_grace_ps", self.losses.grace.as_ps().to_string()),
            ("early_spare", u8::from(self.spare).to_string()),
            ("early_gaps", self.gaps.map(|gap| gap.to_string()).join(" ")),
        ];
        if self.marks {
            constants.push(("early_mark", "1".to_owned()));
        }
        if self.drops_from_front() {
            constants.push(("early_from_front", "1".to_owned()));
        }
        if let Some(patience) = self.waiting.as_ref().and_then(|waiting| waiting.patience) {
            constants.push(("early_patience", patience.to_string()));
        }
        constants
    }

    pub(super) fn marks(&self) -> bool {
        self.marks
    }

    pub(super) fn keeps(&self) -> OwnMarks {
        self.keeps
    }

    pub(super) fn drops_from_front(&self) -> bool {
        self.waiting.is_some()
    }

    /// Decides on the packet that is due. Returns `None` if the drop is passed on to the next packet:
    /// with drops from the front, while too few packets of the flow wait and patience lasts.
    fn lose(&mut self, packet: Arriving) -> Option<Advice> {
        if self.marks && packet.markable {
            return Some(Advice::Mark);
        }
        let Some(waiting) = &mut self.waiting else {
            return Some(Advice::Drop);
        };
        if waiting.may_lose_first(packet.flow, packet.queue) {
            waiting.choose_first(packet.flow, packet.queue);
            return Some(Advice::Pass);
        }
        let port = &mut self.ports[packet.queue / self.queues_per_port];
        let patience = waiting.patience?.saturating_mul(port.gap);
        port.passed += 1;
        (port.passed > patience).then_some(Advice::Drop)
    }

    /// Sets the level of every port. If it changes, the next gap is drawn again.
    ///
    /// # Panics
    /// When there is not one level per port, or a level is not below eight.
    pub fn set_levels(&mut self, levels: &[u8]) {
        assert_eq!(levels.len(), self.ports.len(), "one level per port");
        for (port, &level) in self.ports.iter_mut().zip(levels) {
            let gap = self.gaps[usize::from(level)];
            if port.gap != gap {
                *port = Spacing::new(gap);
            }
        }
    }
}

impl Discipline for EarlyDrop {
    fn on_arrival(&mut self, packet: Arriving, random: &mut Xoshiro256PlusPlus) -> Advice {
        let port = &mut self.ports[packet.queue / self.queues_per_port];
        if port.gap == 0
            || packet.length < self.min_bytes
            || self.spare && (packet.spared || self.losses.spare(packet.flow, packet.now))
        {
            return Advice::Pass;
        }
        if port.left == 0 {
            port.left = 1 + rng::below_u32(random, port.gap);
        }
        if port.left > 1 {
            port.left -= 1;
            return Advice::Pass;
        }
        let Some(advice) = self.lose(packet) else {
            return Advice::Pass;
        };
        let port = &mut self.ports[packet.queue / self.queues_per_port];
        *port = Spacing::new(port.gap);
        advice
    }

    fn on_enqueued(&mut self, flow: u32, queue: usize) {
        if let Some(waiting) = &mut self.waiting {
            waiting.enqueued(flow, queue);
        }
    }

    fn on_leaving(&mut self, packet: Leaving) -> Advice {
        let waiting = self.waiting.as_mut();
        match waiting.is_some_and(|waiting| waiting.at_head(packet.flow, packet.queue)) {
            true => Advice::Drop,
            false => Advice::Pass,
        }
    }

    fn on_loss(&mut self, packet: PacketView, loss: Loss, now: Instant) {
        self.losses.note(packet.flow, now);
        if loss == Loss::PushedOut
            && let Some(waiting) = &mut self.waiting
        {
            waiting.pushed_out(packet.flow, packet.queue);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use crate::switch::SwitchId;
    use crate::switch::aqm::AqmSpec;

    fn early(min_bytes: u64, queues_per_port: usize, ports: usize) -> EarlyDrop {
        EarlyDrop {
            min_bytes,
            queues_per_port,
            spare: true,
            marks: false,
            keeps: OwnMarks::None,
            waiting: None,
            gaps: GAPS,
            ports: vec![Spacing::new(0); ports],
            losses: RecentLosses::new(Duration::from_ms(5)),
        }
    }

    fn arriving(queue: usize, length: u64) -> Arriving {
        Arriving {
            queue,
            flow: 7,
            length,
            bytes: 1500,
            markable: false,
            spared: false,
            now: Instant::ZERO,
        }
    }

    fn of_flow(flow: u32) -> PacketView {
        PacketView {
            flow,
            ..PacketView::of_port(0, 1500)
        }
    }

    /// Returns the numbers of the packets that a full queue loses, out of `packets`.
    fn drops(level: u8, packets: usize) -> Vec<usize> {
        let mut discipline = early(1000, 1, 2);
        let mut random = rng::stream(1, "early", 0);
        discipline.set_levels(&[0, level]);
        let mut dropped =
            |_: &usize| discipline.on_arrival(arriving(1, 1000), &mut random) == Advice::Drop;
        (1..=packets).filter(|number| dropped(number)).collect()
    }

    #[test]
    fn the_shortest_gap_that_decisions_choose_can_be_another() {
        let spec = |text: &str| AqmSpec::parse(text).unwrap().unwrap().gaps();
        let gaps = |text: &str| spec(text).map(|gaps| gaps.in_buffer(1_000_000));
        assert_eq!(gaps("early"), Some(GAPS));
        assert_eq!(gaps("early:finest=16"), Some(GAPS));
        let fine = [0, 256, 128, 64, 32, 16, 8, 4];
        assert_eq!(gaps("early:finest=4"), Some(fine));
        assert_eq!(gaps("early:finest=2").unwrap()[7], 2);
        assert_eq!(gaps("early:gap=9"), None);
        let of_buffer = |bytes| spec("early:finest=buffer").unwrap().in_buffer(bytes);
        assert_eq!(of_buffer(1_000_000), [0, 512, 256, 128, 64, 32, 16, 8]);
        assert_eq!(of_buffer(999_999)[7], 4);
        assert_eq!(of_buffer(256_000)[1..], [128, 64, 32, 16, 8, 4, 2]);
        assert_eq!(of_buffer(1)[7], 2);
        assert_eq!(of_buffer(u64::MAX)[1], 1 << 26);
        let built = |buffer| {
            let mut scenario = Scenario::default();
            scenario.set(buffer).unwrap();
            let spec = AqmSpec::parse("early:finest=buffer").unwrap().unwrap();
            let constants = spec.build(&scenario, SwitchId(0), 16).unwrap().constants();
            let gaps = constants.into_iter().find(|(key, _)| *key == "early_gaps");
            gaps.unwrap().1
        };
        let text = "0 2048 1024 512 256 128 64 32";
        assert_eq!(built("buffer_bytes=4000000"), text);
        let closed = AqmSpec::parse("early:finest=4").unwrap().unwrap().closed();
        assert_eq!(closed.unwrap().to_string(), "early:gap=256");
    }

    #[test]
    fn gaps_are_uniform_up_to_their_level() {
        for level in 1..8 {
            let longest = GAPS[usize::from(level)] as usize;
            let drops = drops(level, 400 * longest);
            let gaps: Vec<usize> = [0]
                .iter()
                .chain(&drops)
                .zip(&drops)
                .map(|(a, b)| b - a)
                .collect();
            assert!(gaps.iter().all(|gap| (1..=longest).contains(gap)));
            let mean = gaps.iter().sum::<usize>() as f64 / gaps.len() as f64;
            // 800 gaps with a deviation of n/√12: four standard errors are 4 %.
            let expected = (longest + 1) as f64 / 2.0;
            assert!((mean / expected - 1.0).abs() < 0.05, "{level}: {mean}");
        }
        assert!(drops(0, 10_000).is_empty());
    }

    #[test]
    fn short_queues_and_other_ports_lose_nothing() {
        let mut discipline = early(1000, 2, 2);
        discipline.set_levels(&[7, 0]);
        let mut random = rng::stream(1, "early", 0);
        let mut advice =
            |queue, length| discipline.on_arrival(arriving(queue, length), &mut random);
        for _ in 0..1000 {
            assert_eq!(advice(0, 999), Advice::Pass);
            assert_eq!(advice(2, 5000), Advice::Pass);
        }
        // Both queues of a port share its counter.
        let drops = (0..1000).filter(|i| advice(i % 2, 1000) == Advice::Drop);
        assert!(drops.count() > 80);
    }

    #[test]
    fn what_can_be_marked_is_marked_at_the_same_gaps() {
        let advice = |marks, markable| -> Vec<Advice> {
            let mut discipline = early(0, 1, 1);
            discipline.marks = marks;
            discipline.set_levels(&[6]);
            let mut random = rng::stream(1, "early", 0);
            let packet = Arriving {
                markable,
                ..arriving(0, 0)
            };
            let advice = |_| discipline.on_arrival(packet, &mut random);
            (0..500).map(advice).collect()
        };
        let dropped = advice(false, true);
        assert!(dropped.contains(&Advice::Drop));
        assert_eq!(advice(true, false), dropped);
        let marked = dropped.iter().map(|&advice| match advice {
            Advice::Drop => Advice::Mark,
            other => other,
        });
        assert_eq!(advice(true, true), marked.collect::<Vec<_>>());
    }

    #[test]
    fn from_the_front_the_first_packet_is_lost_where_three_wait_behind_it() {
        let mut discipline = early(0, 1, 1);
        discipline.waiting = Some(Waiting::default());
        discipline.set_levels(&[7]);
        let mut random = rng::stream(1, "early", 0);
        let mut enqueue = |discipline: &mut EarlyDrop, flow| {
            let packet = Arriving {
                flow,
                ..arriving(0, 0)
            };
            assert_eq!(discipline.on_arrival(packet, &mut random), Advice::Pass);
            discipline.on_enqueued(flow, 0);
        };
        let leaving = |flow| Leaving {
            queue: 0,
            flow,
            waited: Duration::ZERO,
            behind: 0,
            markable: false,
            now: Instant::ZERO,
        };
        // A flow of which at most three packets wait loses nothing, however often a packet of it is
        // due.
        for _ in 0..2 {
            enqueue(&mut discipline, 1);
        }
        for _ in 0..100 {
            enqueue(&mut discipline, 1);
            assert_eq!(discipline.on_leaving(leaving(1)), Advice::Pass);
        }
        // A drop is due; the next flow with a fourth packet takes it, once, with its first packet.
        for _ in 0..5 {
            enqueue(&mut discipline, 2);
        }
        assert_eq!(discipline.on_leaving(leaving(1)), Advice::Pass);
        assert_eq!(discipline.on_leaving(leaving(2)), Advice::Drop);
        assert_eq!(discipline.on_leaving(leaving(2)), Advice::Pass);
        // A packet that was pushed out no longer waits.
        let mut flow = Waiting::default();
        for _ in 0..4 {
            flow.enqueued(3, 0);
        }
        flow.choose_first(3, 0);
        flow.pushed_out(3, 0);
        assert!(!flow.at_head(3, 0));
        flow.pushed_out(3, 0);
        flow.pushed_out(3, 0);
        assert!(flow.flows.is_empty());
    }

    #[test]
    fn a_drop_that_no_flow_can_take_at_the_front_falls_on_what_arrives_when_patience_is_over() {
        // The sender is as fast as its port, so none of its packets ever waits.
        let drops = |patience| {
            let mut discipline = early(0, 1, 1);
            discipline.waiting = Some(Waiting {
                patience,
                ..Waiting::default()
            });
            discipline.set_levels(&[7]);
            let mut random = rng::stream(1, "early", 0);
            let mut advice = || discipline.on_arrival(arriving(0, 0), &mut random);
            (0..2_000).filter(|_| advice() == Advice::Drop).count()
        };
        assert_eq!(drops(None), 0);
        // The mean gap is 8.5, and the drop stays due for 16 or 64 packets.
        assert!((75..90).contains(&drops(Some(1))), "{}", drops(Some(1)));
        assert!((25..30).contains(&drops(Some(4))), "{}", drops(Some(4)));
    }

    #[test]
    fn patience_is_for_drops_from_the_front() {
        let scenario = Scenario::default();
        let build = |text: &str| {
            let spec = AqmSpec::parse(text).unwrap().unwrap();
            let built = spec.build(&scenario, SwitchId(0), scenario.port_count());
            built.map(|_| ()).map_err(|error| error.to_string())
        };
        assert_eq!(build("early:from=front,patience=2"), Ok(()));
        let refused = build("early:patience=2").unwrap_err();
        assert!(refused.contains("needs from=front"), "{refused}");
    }

    /// Sending 1 MB takes 8 ms at 1 Gbit/s.
    #[test]
    fn senders_with_rack_are_spared_for_an_eighth_of_the_time() {
        let grace_ps = |setting: &str, text: &str| {
            let mut scenario = Scenario::default();
            scenario.set(setting).unwrap();
            let spec = AqmSpec::parse(text).unwrap().unwrap();
            let built = spec.build(&scenario, SwitchId(0), 16).unwrap();
            let constants = built.constants();
            let grace = constants.iter().find(|(key, _)| *key == "early_grace_ps");
            grace.unwrap().1.parse::<u64>().unwrap()
        };
        assert_eq!(
            grace_ps("transport=newreno", "early"),
            Duration::from_ms(8).as_ps()
        );
        for rack in ["recovery=rack", "transport=linux", "transport=linux-dctcp"] {
            assert_eq!(grace_ps(rack, "early"), Duration::from_ms(1).as_ps());
            assert_eq!(
                grace_ps(rack, "early:grace_us=5000"),
                Duration::from_ms(5).as_ps()
            );
        }
    }

    #[test]
    fn the_same_level_again_keeps_the_gap() {
        let mut discipline = early(0, 1, 1);
        discipline.set_levels(&[1]);
        let mut random = rng::stream(1, "early", 0);
        discipline.on_arrival(arriving(0, 0), &mut random);
        let begun = discipline.clone();
        discipline.set_levels(&[1]);
        assert_eq!(discipline, begun);
        discipline.set_levels(&[2]);
        assert_ne!(discipline, begun);
    }

    #[test]
    fn a_flow_that_has_lost_a_packet_is_spared_for_a_while() {
        let mut discipline = early(0, 1, 1);
        discipline.set_levels(&[7]);
        let mut random = rng::stream(1, "early", 0);
        let mut drops = |discipline: &mut EarlyDrop, flow, ms| {
            let packet = Arriving {
                flow,
                now: Instant::from_ms(ms),
                ..arriving(0, 0)
            };
            let mut advice = || discipline.on_arrival(packet, &mut random);
            (0..100).filter(|_| advice() == Advice::Drop).count()
        };
        assert!(drops(&mut discipline, 7, 1) > 5);
        discipline.on_loss(of_flow(7), Loss::Early, Instant::from_ms(1));
        // The second loss does not count, so the grace ends 5 ms after the first.
        discipline.on_loss(of_flow(7), Loss::Early, Instant::from_ms(3));
        assert_eq!(drops(&mut discipline, 7, 5), 0);
        assert!(drops(&mut discipline, 8, 5) > 5);
        assert!(drops(&mut discipline, 7, 6) > 5);
        discipline.on_loss(of_flow(7), Loss::Early, Instant::from_ms(6));
        assert_eq!(drops(&mut discipline, 7, 10), 0);
        // Expired losses are forgotten.
        discipline.on_loss(of_flow(9), Loss::Early, Instant::from_ms(100));
        assert_eq!(discipline.losses.first.len(), 1);
    }
}
