//! Queue management: drops or marks packets of a queue before the buffer is full.
//!
//! It is a stage of its own behind the sharing policy. The policy protects the queues from each other
//! and decides which packets enter the buffer. Queue management keeps each queue short and signals its
//! senders in time. A discipline sees one queue at a time and draws from a random stream of its port.

mod codel;
mod definition;
pub mod early;
mod pie;
mod random;
mod red;
mod spec;
mod step;

use bufgym_util::rng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::{EXTRAS, Loss, PacketView, Policy, Switch, SwitchObserver};
use crate::engine::packet::{Packet, PacketId, PacketKind, PacketStore};
use crate::switch::SwitchId;
use crate::units::{Duration, Instant, Rate};

pub use codel::{CoDel, CoDelConfig};
pub use definition::AqmDefinition;
use early::{EarlyDrop, OwnMarks};
pub use pie::{Pie, PieConfig};
pub use random::RandomDrop;
pub use red::{Red, RedConfig};
pub use spec::{AqmSpec, catalogue};
pub use step::StepMarking;

/// Decision of a discipline about a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Advice {
    /// No action.
    Pass,
    /// The packet is marked (RFC 3168).
    Mark,
    /// The packet is dropped.
    Drop,
}

/// Author of the mark that an arriving packet gets, if any.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Marker {
    /// The switch, by its own rule.
    Switch,
    /// Queue management, which has decided on a mark.
    QueueManagement,
    /// Nobody.
    None,
}

/// A packet that the policy has admitted and that is about to be enqueued.
#[derive(Clone, Copy, Debug)]
pub struct Arriving {
    /// The queue.
    pub queue: usize,
    /// Number of the flow and direction.
    pub flow: u32,
    /// Bytes in the queue without the packet.
    pub length: u64,
    /// Bytes of the packet.
    pub bytes: u64,
    /// True if the packet can be marked. Data can if hosts use ECN; acknowledgements and SYNs cannot
    /// (RFC 3168 §6.1.1, §6.1.4).
    pub markable: bool,
    /// True if the packet's [loss costs its flow most](Policy::spares).
    pub spared: bool,
    /// The instant.
    pub now: Instant,
}

/// A packet that has waited and is about to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Leaving {
    /// The queue.
    pub queue: usize,
    /// Number of the flow and direction.
    pub flow: u32,
    /// Time that the packet has waited.
    pub waited: Duration,
    /// Bytes that wait in the queue behind it.
    pub behind: u64,
    /// True if the packet can be marked.
    pub markable: bool,
    /// The instant.
    pub now: Instant,
}

/// A queue management discipline for all queues of a switch.
///
/// Every hook does nothing by default.
trait Discipline {
    /// Decides on a packet that is about to be enqueued.
    fn on_arrival(&mut self, _packet: Arriving, _random: &mut Xoshiro256PlusPlus) -> Advice {
        Advice::Pass
    }

    /// Notes that a packet of a flow has been enqueued. Called only if packets are dropped at the head.
    fn on_enqueued(&mut self, _flow: u32, _queue: usize) {}

    /// Decides on a packet that is about to be sent; after a drop the next one of the same queue
    /// follows.
    fn on_leaving(&mut self, _packet: Leaving) -> Advice {
        Advice::Pass
    }

    /// Notes that the queue is empty after a drop at the head.
    fn on_exhausted(&mut self, _queue: usize, _now: Instant) {}

    /// Notes the length of the queue since the last event; it is about to change.
    fn on_change(&mut self, _queue: usize, _length: u64, _now: Instant) {}

    /// Notes that the queue has become empty.
    fn on_empty(&mut self, _queue: usize, _now: Instant) {}

    /// Notes that a packet was lost, whatever dropped it.
    fn on_loss(&mut self, _packet: PacketView, _loss: Loss, _now: Instant) {}
}

/// The disciplines, without dynamic dispatch.
#[derive(Clone, Debug)]
pub enum AnyDiscipline {
    /// A fixed probability above a length.
    Random(RandomDrop),
    /// Random early detection.
    Red(Red),
    /// Controlled delay.
    CoDel(CoDel),
    /// Proportional integral controller enhanced.
    Pie(Pie),
    /// Marking at or above a length.
    Step(StepMarking),
    /// Drops at regular gaps.
    Early(EarlyDrop),
}

macro_rules! each {
    ($any:expr, $each:ident => $body:expr) => {
        match $any {
            AnyDiscipline::Random($each) => $body,
            AnyDiscipline::Red($each) => $body,
            AnyDiscipline::CoDel($each) => $body,
            AnyDiscipline::Pie($each) => $body,
            AnyDiscipline::Step($each) => $body,
            AnyDiscipline::Early($each) => $body,
        }
    };
}

/// The queue management of a switch: a discipline, and the state that the switch keeps for it.
#[derive(Clone, Debug)]
pub struct QueueManagement {
    discipline: AnyDiscipline,
    /// True if data may be marked.
    ecn: bool,
    /// Random streams, by port.
    random: Vec<Xoshiro256PlusPlus>,
    /// Times at which the packets in the switch were enqueued, by packet number; only for disciplines
    /// that drop at the head.
    enqueued: Option<Vec<Instant>>,
    /// Packets that were dropped at the head and are still in the store.
    lost: Vec<PacketId>,
}

impl QueueManagement {
    /// Creates the queue management of switch `id` with `ports` ports, between hosts that use `ecn` or
    /// not. Every port draws from its own stream under `seed`.
    pub(crate) fn new(
        discipline: AnyDiscipline,
        ecn: bool,
        seed: u64,
        id: SwitchId,
        ports: usize,
    ) -> Self {
        let at_head = match &discipline {
            AnyDiscipline::CoDel(_) => true,
            AnyDiscipline::Early(early) => early.drops_from_front(),
            _ => false,
        };
        let first = (id.index() as u64) << 32;
        let streams = (first..).take(ports);
        QueueManagement {
            discipline,
            ecn,
            random: streams
                .map(|port| rng::stream(seed, "queue management", port))
                .collect(),
            enqueued: at_head.then(Vec::new),
            lost: Vec::new(),
        }
    }

    /// Returns true if packets are dropped at the head of queues.
    pub(crate) fn drops_at_head(&self) -> bool {
        self.enqueued.is_some()
    }

    /// Returns true if packets are marked.
    pub(crate) fn marks(&self) -> bool {
        self.ecn && self.discipline_marks()
    }

    /// Returns true if the switch keeps setting the marks of its scenario, at least on some packets.
    pub(crate) fn keeps_marks(&self) -> bool {
        self.keeps() != OwnMarks::None
    }

    fn keeps(&self) -> OwnMarks {
        match &self.discipline {
            AnyDiscipline::Early(early) => early.keeps(),
            _ => OwnMarks::None,
        }
    }

    /// Returns true if a packet may be marked instead of dropped.
    fn marks_packet(&self, packet: &Packet) -> bool {
        self.ecn && packet.kind == PacketKind::Data && packet.flags.accepts_marks()
    }

    fn discipline_marks(&self) -> bool {
        match &self.discipline {
            AnyDiscipline::Random(_) => false,
            AnyDiscipline::Early(early) => early.marks(),
            AnyDiscipline::Red(red) => red.marks(),
            AnyDiscipline::CoDel(codel) => codel.marks(),
            AnyDiscipline::Pie(pie) => pie.marks(),
            AnyDiscipline::Step(_) => true,
        }
    }

    /// Returns the early drop that a control loop sets, if the switch has it.
    fn early_mut(&mut self) -> Option<&mut EarlyDrop> {
        match &mut self.discipline {
            AnyDiscipline::Early(early) => Some(early),
            _ => None,
        }
    }

    /// Returns the constants of early drop for control records, as keys and values, with the state of
    /// every port's random stream: four words of 64 bits. Empty for other disciplines.
    fn constants(&self) -> Vec<(&'static str, String)> {
        let AnyDiscipline::Early(early) = &self.discipline else {
            return Vec::new();
        };
        let words = |random: &Xoshiro256PlusPlus| {
            let state = random.state();
            let words = state.as_chunks::<8>().0.iter();
            let words: Vec<String> = words.map(|&w| u64::from_le_bytes(w).to_string()).collect();
            ("early_random", words.join(" "))
        };
        let streams = self.random.iter().map(words);
        early.constants().into_iter().chain(streams).collect()
    }

    /// Hands over a packet that was dropped at the head since the last call.
    pub(super) fn take_lost(&mut self) -> Option<PacketId> {
        self.lost.pop()
    }

    fn remember(&mut self, id: PacketId, now: Instant) {
        if let Some(enqueued) = &mut self.enqueued {
            let place = id as usize;
            if place >= enqueued.len() {
                enqueued.resize(place + 1, Instant::ZERO);
            }
            enqueued[place] = now;
        }
    }
}

/// Queue management from outside the packet path, as a control loop sets it.
impl<P: Policy> Switch<P> {
    /// Sets the levels of early drop, one per port.
    ///
    /// # Panics
    /// When the switch has no [`EarlyDrop`], and as [`EarlyDrop::set_levels`].
    pub fn set_early_drop(&mut self, levels: &[u8]) {
        let aqm = self.aqm.as_mut().and_then(|aqm| aqm.early_mut());
        aqm.expect("the switch has early drop").set_levels(levels);
    }
}

/// Queue management on a packet's path.
impl<P: Policy> Switch<P> {
    /// Asks about a packet that the policy has admitted. Returns who marks it. If the packet does not fit
    /// and others have to be pushed out, the policy was not asked.
    #[cold]
    #[inline(never)]
    pub(super) fn aqm_on_arrival(
        &mut self,
        packets: &PacketStore,
        id: PacketId,
        packet: PacketView,
        fits: bool,
        now: Instant,
    ) -> Result<Marker, Loss> {
        // The policy's answer concerns the packet that it was asked about last.
        let spared = fits && self.policy.spares();
        let length = self.buffer.queue(packet.queue);
        let Some(aqm) = &mut self.aqm else {
            return Ok(Marker::Switch);
        };
        let markable = aqm.marks_packet(&packets[id]);
        let arriving = Arriving {
            queue: packet.queue,
            flow: packet.flow,
            length,
            bytes: packet.bytes,
            markable,
            spared,
            now,
        };
        let random = &mut aqm.random[packet.port];
        each!(&mut aqm.discipline, d => d.on_change(packet.queue, length, now));
        match each!(&mut aqm.discipline, d => d.on_arrival(arriving, random)) {
            Advice::Pass if spared && aqm.keeps() == OwnMarks::Unspared => Ok(Marker::None),
            Advice::Pass => Ok(Marker::Switch),
            Advice::Mark => Ok(Marker::QueueManagement),
            Advice::Drop => Err(Loss::Early),
        }
    }

    /// Reports that a queue is about to get shorter.
    #[cold]
    #[inline(never)]
    pub(super) fn aqm_on_change(&mut self, queue: usize, now: Instant) {
        let length = self.buffer.queue(queue);
        if let Some(aqm) = &mut self.aqm {
            each!(&mut aqm.discipline, d => d.on_change(queue, length, now));
        }
    }

    /// Reports that a packet has left or was removed, and its queue is shorter.
    #[cold]
    #[inline(never)]
    pub(super) fn aqm_on_departure(&mut self, queue: usize, now: Instant) {
        let length = self.buffer.queue(queue);
        if let Some(aqm) = &mut self.aqm
            && length == 0
        {
            each!(&mut aqm.discipline, d => d.on_empty(queue, now));
        }
    }

    /// Reports that a packet was lost.
    #[cold]
    #[inline(never)]
    pub(super) fn aqm_on_loss(&mut self, packet: PacketView, loss: Loss, now: Instant) {
        if let Some(aqm) = &mut self.aqm {
            each!(&mut aqm.discipline, d => d.on_loss(packet, loss, now));
        }
    }

    /// Reports that a packet was enqueued.
    #[inline]
    pub(super) fn aqm_on_enqueued(&mut self, id: PacketId, packet: PacketView, now: Instant) {
        if let Some(aqm) = &mut self.aqm
            && aqm.drops_at_head()
        {
            aqm.remember(id, now);
            each!(&mut aqm.discipline, d => d.on_enqueued(packet.flow, packet.queue));
        }
    }

    /// Reports an arrival that is served at once, without waiting.
    #[cold]
    #[inline(never)]
    pub(super) fn aqm_on_service<O: SwitchObserver>(
        &mut self,
        packet: PacketView,
        now: Instant,
        observer: &mut O,
    ) {
        if let Some(aqm) = &mut self.aqm {
            let leaving = Leaving {
                queue: packet.queue,
                flow: packet.flow,
                waited: Duration::ZERO,
                behind: 0,
                markable: false,
                now,
            };
            each!(&mut aqm.discipline, d => d.on_leaving(leaving));
            observer.leaving(self.id, now, packet);
        }
    }

    /// Returns the packet that the port sends instead of `next`, after the drops at the head of its
    /// queue.
    #[cold]
    #[inline(never)]
    pub(super) fn aqm_next<O: SwitchObserver>(
        &mut self,
        packets: &mut PacketStore,
        mut next: PacketId,
        now: Instant,
        observer: &mut O,
    ) -> Option<PacketId> {
        loop {
            let packet = self.packet_view(&packets[next]);
            let queue = packet.queue;
            // Bytes that wait behind the packet: all that count, without the packet itself.
            let behind = match self.queues[queue].is_empty() {
                true => 0,
                false => self.buffer.queue(queue).saturating_sub(packet.bytes),
            };
            let Some(aqm) = &mut self.aqm else {
                return Some(next);
            };
            let enqueued = aqm
                .enqueued
                .as_ref()
                .map_or(now, |times| times[next as usize]);
            let leaving = Leaving {
                queue,
                flow: packet.flow,
                waited: now.saturating_since(enqueued),
                behind,
                markable: aqm.marks_packet(&packets[next]),
                now,
            };
            match each!(&mut aqm.discipline, d => d.on_leaving(leaving)) {
                Advice::Pass => {
                    observer.leaving(self.id, now, packet);
                    return Some(next);
                }
                Advice::Mark => {
                    packets[next].flags.mark();
                    self.counters.marks += 1;
                    observer.leaving(self.id, now, packet);
                    return Some(next);
                }
                Advice::Drop => {}
            }
            self.buffer.release(queue, packet.bytes, now);
            self.lose(&packets[next], Loss::Head, now, observer);
            if let Some(aqm) = &mut self.aqm {
                aqm.lost.push(next);
            }
            next = match self.queues[queue].pop_front(packets) {
                Some(id) => {
                    self.ports[packet.port].length -= 1;
                    id
                }
                None => {
                    if let Some(aqm) = &mut self.aqm {
                        each!(&mut aqm.discipline, d => d.on_exhausted(queue, now));
                    }
                    self.next_of_port::<EXTRAS>(packets, packet.port)?
                }
            };
        }
    }

    /// Hands over a packet that queue management dropped at the head and that is still in the store.
    pub(super) fn take_dropped_at_head(&mut self) -> Option<PacketId> {
        self.aqm.as_mut()?.take_lost()
    }
}

/// Returns the time to send `bytes` bytes, in picoseconds as a real number.
fn drain_ps(bytes: u64, rate: Rate) -> f64 {
    bytes as f64 * 8e12 / rate.0 as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::clock::ClockOffset;
    use crate::engine::packet::SizeClass;
    use crate::scenario::Scenario;
    use crate::switch::{Admission, SwitchSettings, Verdict, View};

    /// Policy that admits every packet that fits; others push packets out of the last queue. It spares
    /// the packets of flow 1.
    #[derive(Default)]
    struct Pushing {
        spares: bool,
    }

    impl Policy for Pushing {
        fn on_arrival(&mut self, _view: View<'_>, packet: PacketView) -> Verdict {
            self.spares = packet.flow == 2;
            Verdict::Accept
        }

        fn pushes_out(&self) -> bool {
            true
        }

        fn victim(&mut self, _view: View<'_>, packet: PacketView, _: &[u64]) -> Option<usize> {
            (packet.queue == 0).then_some(1)
        }

        fn threshold(&self, _view: View<'_>, _queue: usize) -> Option<u64> {
            None
        }

        fn spares(&self) -> bool {
            self.spares
        }
    }

    /// A manually driven switch with a port of two queues and room for four packets of 1,000 B.
    struct Bench {
        switch: Switch<Pushing>,
        packets: PacketStore,
        sending: Option<PacketId>,
    }

    impl Bench {
        fn new(aqm: &str, capacity: u64) -> Bench {
            Bench::with("count_in_service=true", aqm, capacity)
        }

        fn with(change: &str, aqm: &str, capacity: u64) -> Bench {
            let mut scenario = Scenario::default();
            for change in ["queues_per_port=2", "ecn=true", change] {
                scenario.set(change).unwrap();
            }
            let id = SwitchId(0);
            let settings = SwitchSettings::new(&scenario, 1, capacity);
            let clock_offset = ClockOffset::of(Duration::ZERO);
            let policy = Pushing::default();
            let mut switch = Switch::new(id, clock_offset, &settings, policy).unwrap();
            let spec = AqmSpec::parse(aqm).unwrap().unwrap();
            switch.set_aqm(spec.build(&scenario, id, 1).unwrap());
            let mut packets = PacketStore::default();
            packets.link_both_ways();
            Bench {
                switch,
                packets,
                sending: None,
            }
        }

        fn arrive(&mut self, flow: u32, queue: u16, at: Instant) -> Admission {
            let size = (1_000, SizeClass::Odd);
            let packet = Packet::new(PacketKind::Data, flow, queue, size, at);
            let id = self.packets.insert(packet);
            let admission = self.switch.arrive(&mut self.packets, id, at, &mut ());
            if admission == Admission::Served {
                self.sending = Some(id);
            }
            admission
        }

        /// Sends all waiting packets. Returns the number of packets and how many of them were marked.
        fn drain(&mut self, at: Instant) -> (usize, usize) {
            let (mut sent, mut marked) = (0, 0);
            while let Some(id) = self.sending.take() {
                sent += 1;
                marked += usize::from(self.packets[id].flags.marked());
                self.sending = self.switch.sent(&mut self.packets, id, at, &mut ());
            }
            (sent, marked)
        }

        /// Returns the probability of PIE at queue 1.
        fn probability(&self) -> f64 {
            match &self.switch.aqm.as_ref().unwrap().discipline {
                AnyDiscipline::Pie(pie) => pie.probability(1),
                other => panic!("{other:?}"),
            }
        }

        fn lost(&mut self) -> usize {
            std::iter::from_fn(|| self.switch.take_lost()).count()
        }
    }

    /// Four packets of a flow wait, two in each queue. No packet stands behind them that would reveal a
    /// loss.
    #[test]
    fn packets_in_another_queue_do_not_stand_behind_one_that_is_lost_at_the_front() {
        let mut bench = Bench::new("early:gap=1,min_bytes=0,spare=no,from=front", 100_000);
        bench.arrive(9, 0, Instant::ZERO);
        for queue in [0, 0, 0, 1, 1, 1] {
            assert_eq!(bench.arrive(7, queue, Instant::ZERO), Admission::Queued);
        }
        assert_eq!((bench.drain(Instant::ZERO), bench.lost()), ((7, 0), 0));
        // Four in one queue are enough.
        bench.arrive(9, 0, Instant::ZERO);
        for queue in [0, 0, 0, 1, 0] {
            bench.arrive(7, queue, Instant::ZERO);
        }
        assert_eq!((bench.drain(Instant::ZERO), bench.lost()), ((5, 0), 1));
    }

    /// The fifth packet finds no room, and its queue is the last one.
    #[test]
    fn a_packet_that_is_lost_for_room_is_not_marked() {
        for aqm in [
            "step:bytes=0",
            "early:gap=1,min_bytes=0,action=mark",
            "red:min_bytes=0,max_bytes=4001,max_p=1,action=mark",
        ] {
            let mut bench = Bench::new(aqm, 4_000);
            for _ in 0..4 {
                assert!(!matches!(
                    bench.arrive(3, 1, Instant::ZERO),
                    Admission::Lost(_)
                ));
            }
            let before = bench.switch.counters.marks;
            assert_eq!(
                bench.arrive(3, 1, Instant::ZERO),
                Admission::Lost(Loss::Full),
                "{aqm}"
            );
            assert_eq!(bench.switch.counters.marks, before, "{aqm}");
            let (sent, marked) = bench.drain(Instant::ZERO);
            assert_eq!((sent, marked as u64), (4, before), "{aqm}");
        }
    }

    /// The policy is not asked about a packet that does not fit: its answer for the packet before does
    /// not apply.
    #[test]
    fn a_packet_that_does_not_fit_is_not_spared_as_the_one_before_it() {
        let mut bench = Bench::new("early:gap=1,min_bytes=1", 4_000);
        let spared = 1;
        for _ in 0..4 {
            assert!(!matches!(
                bench.arrive(spared, 1, Instant::ZERO),
                Admission::Lost(_)
            ));
        }
        // Queue 1 has more than enough bytes, so that every packet is due.
        assert_eq!(
            bench.arrive(5, 1, Instant::ZERO),
            Admission::Lost(Loss::Early)
        );
    }

    /// Queue 1 is empty from 10 ms on, when its packets are pushed out, not from the time when one is
    /// sent.
    #[test]
    fn an_average_forgets_from_when_packets_were_pushed_out() {
        let mut bench = Bench::new("red:min_bytes=9000,max_bytes=9999,weight=0.5", 4_000);
        bench.arrive(3, 0, Instant::ZERO);
        for _ in 0..3 {
            bench.arrive(3, 1, Instant::ZERO);
        }
        let average = |bench: &Bench| match &bench.switch.aqm.as_ref().unwrap().discipline {
            AnyDiscipline::Red(red) => red.average(1),
            other => panic!("{other:?}"),
        };
        assert_eq!(average(&bench), 1_250.0);
        for _ in 0..3 {
            bench.arrive(3, 0, Instant::from_ms(10));
        }
        assert_eq!((bench.switch.buffer.queue(1), bench.lost()), (0, 3));
        bench.drain(Instant::from_ms(10));
        bench.arrive(3, 1, Instant::from_ms(100));
        assert!(average(&bench) < 1e-9, "{}", average(&bench));
    }

    /// 3,000 B cause 24 µs of queueing, far above the target, until the queue is pushed out.
    #[test]
    fn a_delay_that_lasted_until_packets_were_pushed_out_counts() {
        let mut bench = Bench::new("pie:target_us=1,update_us=10,burst_us=1", 4_000);
        bench.arrive(3, 0, Instant::ZERO);
        for _ in 0..3 {
            bench.arrive(3, 1, Instant::ZERO);
        }
        for _ in 0..3 {
            bench.arrive(3, 0, Instant::from_ms(10));
        }
        assert_eq!((bench.switch.buffer.queue(1), bench.lost()), (0, 3));
        bench.arrive(3, 1, Instant::from_ms(10));
        assert!(bench.probability() > 0.0);
    }

    /// The delay lasts until the only packet of the queue is sent, which then no longer counts.
    #[test]
    fn a_delay_that_lasted_until_a_packet_was_sent_counts() {
        let pie = "pie:target_us=1,update_us=10,burst_us=1";
        let mut bench = Bench::with("count_in_service=false", pie, 4_000);
        bench.arrive(3, 0, Instant::ZERO);
        bench.arrive(3, 1, Instant::ZERO);
        bench.drain(Instant::from_ms(10));
        bench.arrive(3, 1, Instant::from_ms(10));
        assert!(bench.probability() > 0.0);
    }
}
