//! The optimum of packets with work or values, by a search over all schedules.
//!
//! A schedule that pushes a packet out is never better than one that does not accept the packet: in
//! both orders the other packets of the queue then leave no later. So a schedule is a choice of the
//! packets to accept. After every arrival the search keeps all reachable contents of the buffer,
//! and for each the largest gain with which it can be reached.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use crate::{Kind, Order, Outcome, Packet, SlottedError, Switch};

/// Largest number of contents of the buffer that the search keeps.
pub const MAX_STATES: usize = 200_000;

/// Largest total size of these contents, bytes.
const MAX_BYTES: u64 = 256 << 20;
/// Largest number of bytes of contents that the search visits, all steps together: a minute or two.
const MAX_STEPS: u64 = 30 << 30;

/// The properties of a stored packet that can still matter.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Stored {
    remaining: u32,
    value: u32,
}

type State = Vec<Vec<Stored>>;

/// Transmitted value and packets, compared by value first.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
struct Gain {
    value: u64,
    packets: u64,
}

struct Search {
    switch: Switch,
    kind: Kind,
    /// True if accepted packets count as transmitted at once. Without an end of the run all of them are
    /// transmitted, so only their work matters afterwards.
    at_once: bool,
    states: HashMap<State, Gain>,
}

pub(super) fn optimum(
    switch: &Switch,
    packets: &[Packet],
    kind: Kind,
    end: Option<u64>,
) -> Result<Outcome, SlottedError> {
    let empty = vec![Vec::new(); switch.ports as usize];
    let mut search = Search {
        switch: *switch,
        kind,
        at_once: end.is_none(),
        states: HashMap::from([(empty, Gain::default())]),
    };
    let mut arrived = 0;
    let mut slot = 0;
    let mut steps = 0;
    let mut check = |search: &Search, arrived: usize, slot: u64| {
        let bytes = search.bytes();
        steps += bytes;
        let what = match (bytes > MAX_BYTES, steps > MAX_STEPS) {
            (true, _) => "memory",
            (false, true) => "time",
            (false, false) => return Ok(()),
        };
        Err(SlottedError::OptimumTooCostly {
            what,
            packet: arrived,
            packets: packets.len(),
            slot,
        })
    };
    let best = loop {
        let all_empty = search.states.keys().all(|state| stored(state) == 0);
        if all_empty {
            let until = match packets.get(arrived) {
                Some(packet) => packet.slot,
                None => end.unwrap_or(slot),
            };
            slot = slot.max(end.map_or(until, |end| until.min(end)));
        }
        if end.is_some_and(|end| slot >= end) || all_empty && arrived == packets.len() {
            break search.best();
        }
        while let Some(packet) = packets.get(arrived)
            && packet.slot == slot
        {
            arrived += 1;
            search.arrive(packet);
            check(&search, arrived, slot)?;
            if search.states.len() > MAX_STATES {
                return Err(SlottedError::OptimumTooLarge {
                    limit: MAX_STATES,
                    packet: arrived,
                    packets: packets.len(),
                    slot,
                    found: if kind == Kind::Value {
                        "values"
                    } else {
                        "work"
                    },
                });
            }
        }
        search.transmit();
        slot += 1;
        check(&search, arrived, slot)?;
    };
    let (gain, left) = best;
    Ok(Outcome {
        arrived: arrived as u64,
        transmitted: gain.packets,
        transmitted_value: gain.value,
        dropped: arrived as u64 - gain.packets - left,
        pushed_out: 0,
        slots: slot,
    })
}

fn stored(state: &State) -> u64 {
    state.iter().map(|queue| queue.len() as u64).sum()
}

impl Search {
    /// Returns the largest gain, and the number of packets left in the buffer by a schedule with that
    /// gain.
    fn best(&self) -> (Gain, u64) {
        self.states
            .iter()
            .map(|(state, gain)| (*gain, std::cmp::Reverse(stored(state))))
            .max()
            .map_or((Gain::default(), 0), |(gain, left)| (gain, left.0))
    }

    /// Returns the bytes of the states.
    fn bytes(&self) -> u64 {
        let queues = u64::from(self.switch.ports) * size_of::<Vec<Stored>>() as u64;
        let packets: u64 = self.states.keys().map(stored).sum();
        let entry = queues + size_of::<(State, Gain)>() as u64;
        self.states.len() as u64 * entry + packets * size_of::<Stored>() as u64
    }

    fn arrive(&mut self, packet: &Packet) {
        let accepted: Vec<(State, Gain)> = self
            .states
            .iter()
            .filter(|(state, _)| stored(state) < self.switch.buffer)
            .map(|(state, gain)| self.accept(state, *gain, packet))
            .collect();
        for (state, gain) in accepted {
            keep(&mut self.states, state, gain);
        }
    }

    fn accept(&self, state: &State, gain: Gain, packet: &Packet) -> (State, Gain) {
        let (mut state, mut gain) = (state.clone(), gain);
        let mut stored = Stored {
            remaining: packet.work,
            value: packet.value,
        };
        if self.at_once {
            gain.value += u64::from(packet.value);
            gain.packets += 1;
            stored.value = 0;
        }
        let queue = &mut state[packet.port as usize];
        let place = match (self.switch.order, self.kind) {
            (Order::Fifo, _) => queue.len(),
            (Order::Pq, Kind::Value) => queue.partition_point(|other| other.value >= stored.value),
            (Order::Pq, _) => queue.partition_point(|other| other.remaining <= stored.remaining),
        };
        queue.insert(place, stored);
        (state, gain)
    }

    fn transmit(&mut self) {
        let mut after = HashMap::with_capacity(self.states.len());
        for (mut state, mut gain) in self.states.drain() {
            for queue in &mut state {
                let Some(head) = queue.first_mut() else {
                    continue;
                };
                head.remaining -= 1;
                if head.remaining == 0 {
                    if !self.at_once {
                        gain.value += u64::from(head.value);
                        gain.packets += 1;
                    }
                    queue.remove(0);
                }
            }
            keep(&mut after, state, gain);
        }
        self.states = after;
    }
}

fn keep(states: &mut HashMap<State, Gain>, state: State, gain: Gain) {
    match states.entry(state) {
        Entry::Occupied(mut entry) => {
            let best = (*entry.get()).max(gain);
            entry.insert(best);
        }
        Entry::Vacant(entry) => {
            entry.insert(gain);
        }
    }
}
