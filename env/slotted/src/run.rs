use serde::Serialize;

use super::policy::{Afterwards, Policy, Verdict};
use super::queues::{Arrival, Storage};
use super::{Packet, SlottedError};

/// The result of a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Outcome {
    /// Packets that arrived.
    pub arrived: u64,
    /// Packets transmitted.
    pub transmitted: u64,
    /// Value of the transmitted packets.
    pub transmitted_value: u64,
    /// Packets dropped on arrival.
    pub dropped: u64,
    /// Packets accepted and pushed out later.
    pub pushed_out: u64,
    /// Slots that passed.
    pub slots: u64,
}

impl Outcome {
    /// Returns the packets in the buffer at the end: 0, unless the run stopped at the end of the last
    /// round.
    pub fn left(&self) -> u64 {
        self.arrived - self.transmitted - self.dropped - self.pushed_out
    }
}

/// Way in which a packet is lost.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// The packet was dropped on arrival.
    Dropped,
    /// The packet was pushed out, or flushed.
    PushedOut,
}

/// Receives the events of a run.
pub trait Observer<S> {
    /// Called when the packet with this index was lost. Packets that are pushed out are reported only
    /// if the queues keep single packets.
    fn lost(&mut self, _index: usize, _fate: Fate) {}
    /// Called when the policy has decided about an arrival.
    fn after_arrival(&mut self, _queues: &S) {}
    /// Called after a transmission phase, in which `transmitted` packets left.
    fn after_transmission(&mut self, _queues: &S, _transmitted: u64) {}
}

/// An observer that does nothing.
#[derive(Clone, Copy, Default, Debug)]
pub struct NoObserver;

impl<S> Observer<S> for NoObserver {}

/// Runs `policy` on packets in order of arrival, until every queue is empty, or for `end` slots.
///
/// A packet that the policy accepts into a full buffer is dropped.
///
/// # Errors
/// Those of the policy's [`Policy::check`].
pub fn run<S: Storage, P: Policy>(
    queues: &mut S,
    policy: &mut P,
    packets: &[Packet],
    end: Option<u64>,
    observer: &mut impl Observer<S>,
) -> Result<Outcome, SlottedError> {
    policy.check(packets)?;
    let mut outcome = Outcome::default();
    let mut next = 0;
    let mut slot = 0;
    loop {
        if queues.stored() == 0 {
            let until = match packets.get(next) {
                Some(packet) => packet.slot,
                None => end.unwrap_or(slot),
            };
            let until = end.map_or(until, |end| until.min(end));
            if until > slot {
                queues.skip(until - slot);
                policy.idle(until - slot);
                slot = until;
            }
            if next == packets.len() {
                break;
            }
        }
        if end.is_some_and(|end| slot >= end) {
            break;
        }
        while let Some(packet) = packets.get(next)
            && packet.slot == slot
        {
            let arrival = Arrival {
                index: next,
                packet: *packet,
            };
            arrive(queues, policy, &arrival, &mut outcome, observer);
            next += 1;
        }
        let (transmitted, value) = queues.transmit();
        outcome.transmitted += transmitted;
        outcome.transmitted_value += value;
        if policy.after_transmission(queues, transmitted) == Afterwards::Flush {
            outcome.pushed_out += queues.stored();
            queues.clear(|index| observer.lost(index, Fate::PushedOut));
        }
        observer.after_transmission(queues, transmitted);
        slot += 1;
    }
    outcome.arrived = next as u64;
    outcome.slots = slot;
    Ok(outcome)
}

#[inline]
fn arrive<S: Storage, P: Policy>(
    queues: &mut S,
    policy: &mut P,
    arrival: &Arrival,
    outcome: &mut Outcome,
    observer: &mut impl Observer<S>,
) {
    let accepted = match policy.admit(queues, arrival) {
        Verdict::Accept => !queues.is_full(),
        Verdict::Drop => false,
        Verdict::PushOut(port, victim) => {
            let lost = queues.remove(port, victim);
            outcome.pushed_out += 1;
            if let Some(index) = lost {
                observer.lost(index, Fate::PushedOut);
            }
            true
        }
    };
    if accepted {
        queues.insert(arrival);
    } else {
        outcome.dropped += 1;
        observer.lost(arrival.index, Fate::Dropped);
    }
    observer.after_arrival(queues);
}
