//! Queue management: drops or marks packets of a queue before the buffer is full.
//!
//! It is a stage of its own behind the sharing policy. The policy protects the queues from each other
//! and decides what may enter the buffer; queue management keeps each queue short and tells its senders
//! so in time. A discipline sees one queue at a time and draws from a random stream of its port.

mod codel;
pub mod early;
mod pie;
mod random;
mod red;
mod spec;
mod step;

use rand_xoshiro::Xoshiro256PlusPlus;

use super::{Loss, PacketView, Policy, Switch, SwitchObserver};
use crate::engine::packet::{Packet, PacketId, PacketKind, PacketStore};
use crate::rng;
use crate::switch::SwitchId;
use crate::units::{Rate, Time};

pub use codel::{CoDel, CoDelConfig};
use early::{EarlyDrop, OwnMarks};
pub use pie::{Pie, PieConfig};
pub use random::RandomDrop;
pub use red::{Red, RedConfig};
pub use spec::{AqmDefinition, AqmSpec, catalogue};
pub use step::StepMarking;

/// What is to happen to a packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Advice {
    /// Nothing.
    Pass,
    /// It is marked (RFC 3168).
    Mark,
    /// It is dropped.
    Drop,
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
    /// Whether it can be marked. Data can where hosts use ECN; acknowledgements and SYNs cannot (RFC 3168
    /// §6.1.1, §6.1.4).
    pub markable: bool,
    /// Whether its [loss costs its flow most](Policy::spares).
    pub spared: bool,
    /// The instant.
    pub now: Time,
}

/// A packet that has waited and is about to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Leaving {
    /// The queue.
    pub queue: usize,
    /// Number of the flow and direction.
    pub flow: u32,
    /// How long it has waited.
    pub waited: Time,
    /// Bytes that wait in the queue behind it.
    pub behind: u64,
    /// Whether it can be marked.
    pub markable: bool,
    /// The instant.
    pub now: Time,
}

/// A queue management discipline for all queues of a switch.
///
/// Every hook does nothing by default.
trait Discipline {
    /// A packet is about to be enqueued.
    fn on_arrival(&mut self, _packet: Arriving, _random: &mut Xoshiro256PlusPlus) -> Advice {
        Advice::Pass
    }

    /// A packet of a flow has been enqueued. Only where packets are dropped at the head.
    fn on_enqueued(&mut self, _flow: u32) {}

    /// A packet is about to be sent; after a drop the next one of the same queue follows.
    fn on_leaving(&mut self, _packet: Leaving) -> Advice {
        Advice::Pass
    }

    /// After a drop at the head nothing is left in the queue.
    fn on_exhausted(&mut self, _queue: usize, _now: Time) {}

    /// The queue has had this length since the last event, and is about to change.
    fn on_change(&mut self, _queue: usize, _length: u64, _now: Time) {}

    /// The queue has become empty.
    fn on_empty(&mut self, _queue: usize, _now: Time) {}

    /// A packet of a flow was lost, whoever dropped it.
    fn on_loss(&mut self, _flow: u32, _loss: Loss, _now: Time) {}
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
    /// Marking from a length on.
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

/// The queue management of a switch: a discipline, and what the switch keeps for it.
#[derive(Clone, Debug)]
pub struct QueueManagement {
    discipline: AnyDiscipline,
    /// Whether data may be marked.
    ecn: bool,
    /// By port.
    random: Vec<Xoshiro256PlusPlus>,
    /// When the packets in the switch were enqueued, by their number; only for disciplines that drop at
    /// the head.
    enqueued: Option<Vec<Time>>,
    /// Packets that were dropped at the head and are still in the store.
    lost: Vec<PacketId>,
}

impl QueueManagement {
    /// For the switch `id` with so many ports, between hosts that use `ecn` or not. Every port draws
    /// from its own stream under `seed`.
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

    /// Whether packets are dropped at the head of queues.
    pub(crate) fn drops_at_head(&self) -> bool {
        self.enqueued.is_some()
    }

    /// Whether packets are marked.
    pub(crate) fn marks(&self) -> bool {
        self.ecn && self.discipline_marks()
    }

    /// Whether the switch goes on with the marks of its scenario, at least on some packets.
    pub(crate) fn keeps_marks(&self) -> bool {
        self.keeps() != OwnMarks::None
    }

    fn keeps(&self) -> OwnMarks {
        match &self.discipline {
            AnyDiscipline::Early(early) => early.keeps(),
            _ => OwnMarks::None,
        }
    }

    /// Whether a packet may be marked in place of being dropped.
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

    /// What a control loop sets, where the switch has it.
    fn early_mut(&mut self) -> Option<&mut EarlyDrop> {
        match &mut self.discipline {
            AnyDiscipline::Early(early) => Some(early),
            _ => None,
        }
    }

    /// What control records hold of early drop, as keys and values, with the state of every port's random
    /// stream: four words of 64 bits. Nothing of other disciplines.
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

    fn remember(&mut self, id: PacketId, now: Time) {
        if let Some(enqueued) = &mut self.enqueued {
            let place = id as usize;
            if place >= enqueued.len() {
                enqueued.resize(place + 1, Time::ZERO);
            }
            enqueued[place] = now;
        }
    }
}

/// Queue management from outside the packet path, as a control loop sets it.
impl<P: Policy> Switch<P> {
    /// Puts levels of early drop in force, one per port.
    ///
    /// # Panics
    /// When the switch has no [`EarlyDrop`], and as [`EarlyDrop::set_levels`].
    pub fn set_early_drop(&mut self, levels: &[u8]) {
        let aqm = self.aqm.as_mut().and_then(|aqm| aqm.early_mut());
        aqm.expect("the switch has early drop").set_levels(levels);
    }
}

/// Queue management on a packet's way.
impl<P: Policy> Switch<P> {
    /// Asks about a packet that the policy has admitted, and marks it where that is the advice.
    #[cold]
    #[inline(never)]
    pub(super) fn manage_arrival(
        &mut self,
        packets: &mut PacketStore,
        id: PacketId,
        packet: PacketView,
        now: Time,
    ) -> Advice {
        let length = self.buffer.queue(packet.queue);
        let Some(aqm) = &mut self.aqm else {
            return Advice::Pass;
        };
        let markable = aqm.marks_packet(&packets[id]);
        let arriving = Arriving {
            queue: packet.queue,
            flow: packet.flow,
            length,
            bytes: packet.bytes,
            markable,
            spared: self.policy.spares(),
            now,
        };
        let random = &mut aqm.random[packet.port];
        each!(&mut aqm.discipline, d => d.on_change(packet.queue, length, now));
        let advice = each!(&mut aqm.discipline, d => d.on_arrival(arriving, random));
        if advice == Advice::Drop {
            return advice;
        }
        if advice == Advice::Mark {
            packets[id].flags.mark();
            self.counters.marks += 1;
        }
        aqm.remember(id, now);
        advice
    }

    /// Whether the switch's own marks leave out the packet that the policy saw last.
    #[inline]
    pub(super) fn exempts_from_marks(&self) -> bool {
        let aqm = self.aqm.as_ref();
        aqm.is_some_and(|aqm| aqm.keeps() == OwnMarks::Unspared) && self.policy.spares()
    }

    /// A queue is about to get shorter by a departure.
    #[cold]
    #[inline(never)]
    pub(super) fn manage_change(&mut self, queue: usize, now: Time) {
        let length = self.buffer.queue(queue);
        if let Some(aqm) = &mut self.aqm {
            each!(&mut aqm.discipline, d => d.on_change(queue, length, now));
        }
    }

    /// A packet has left, and its queue is shorter.
    #[cold]
    #[inline(never)]
    pub(super) fn manage_departure(&mut self, queue: usize, now: Time) {
        let length = self.buffer.queue(queue);
        if let Some(aqm) = &mut self.aqm
            && length == 0
        {
            each!(&mut aqm.discipline, d => d.on_empty(queue, now));
        }
    }

    /// A packet of a flow was lost.
    #[cold]
    #[inline(never)]
    pub(super) fn manage_loss(&mut self, flow: u32, loss: Loss, now: Time) {
        if let Some(aqm) = &mut self.aqm {
            each!(&mut aqm.discipline, d => d.on_loss(flow, loss, now));
        }
    }

    /// A packet of a flow was enqueued.
    #[inline]
    pub(super) fn manage_enqueued(&mut self, flow: u32) {
        if let Some(aqm) = &mut self.aqm
            && aqm.drops_at_head()
        {
            each!(&mut aqm.discipline, d => d.on_enqueued(flow));
        }
    }

    /// An arrival is served at once: it has waited for nothing.
    #[cold]
    #[inline(never)]
    pub(super) fn manage_service<O: SwitchObserver>(
        &mut self,
        packet: PacketView,
        now: Time,
        observer: &mut O,
    ) {
        if let Some(aqm) = &mut self.aqm {
            let leaving = Leaving {
                queue: packet.queue,
                flow: packet.flow,
                waited: Time::ZERO,
                behind: 0,
                markable: false,
                now,
            };
            each!(&mut aqm.discipline, d => d.on_leaving(leaving));
            observer.leaving(self.id, now, packet);
        }
    }

    /// The packet that the port sends instead of `next`, after the drops at the head of its queue.
    #[cold]
    #[inline(never)]
    pub(super) fn manage_next<O: SwitchObserver>(
        &mut self,
        packets: &mut PacketStore,
        mut next: PacketId,
        now: Time,
        observer: &mut O,
    ) -> Option<PacketId> {
        loop {
            let packet = self.packet_view(&packets[next]);
            let queue = packet.queue;
            // What waits behind it: all that counts, without the packet itself.
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
                    self.next_of_port(packets, packet.port)?
                }
            };
        }
    }

    /// Hands over a packet that queue management dropped at the head and that is still in the store.
    pub(super) fn take_dropped_at_head(&mut self) -> Option<PacketId> {
        self.aqm.as_mut()?.take_lost()
    }
}

/// Time to send so many bytes, in picoseconds as a real number.
fn drain_ps(bytes: u64, rate: Rate) -> f64 {
    bytes as f64 * 8e12 / rate.0 as f64
}
