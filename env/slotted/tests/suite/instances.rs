//! Random instances, and the model implemented again in its simplest form.

use bufgym_slotted::{Arrivals, Kind, Order, Outcome, Packet, PolicySpec, Switch};
use proptest::prelude::*;

/// A switch and arrivals for it.
#[derive(Clone, Debug)]
pub struct Instance {
    pub switch: Switch,
    pub arrivals: Arrivals,
}

impl Instance {
    pub fn new(ports: u32, buffer: u64, order: Order, packets: Vec<Packet>) -> Instance {
        Instance {
            switch: Switch::new(ports, buffer, order).unwrap(),
            arrivals: Arrivals::new(packets, ports).unwrap(),
        }
    }

    pub fn run(&self, policy: &str) -> Outcome {
        let policy: PolicySpec = policy.parse().unwrap();
        policy.run(&self.switch, &self.arrivals, 1, false).unwrap()
    }
}

/// Size of random instances.
#[derive(Clone, Copy)]
pub struct Size {
    pub ports: u32,
    pub buffer: u64,
    pub packets: usize,
    pub amount: u32,
}

/// Generates arrivals in bursts with gaps, which fill a buffer and empty it again.
pub fn instances(kind: Kind, order: Order, size: Size) -> impl Strategy<Value = Instance> {
    (1..=size.ports, 1..=size.buffer).prop_flat_map(move |(ports, buffer)| {
        let gap = prop_oneof![6 => Just(0_u64), 3 => Just(1), 2 => 2..4_u64, 1 => 4..9_u64];
        let packet = (gap, 0..ports, 1..=size.amount);
        prop::collection::vec(packet, 1..=size.packets).prop_map(move |list| {
            let mut slot = 0;
            let packets = list
                .into_iter()
                .map(|(gap, port, amount)| {
                    slot += gap;
                    Packet {
                        slot,
                        port,
                        work: if kind == Kind::Work { amount } else { 1 },
                        value: if kind == Kind::Value { amount } else { 1 },
                    }
                })
                .collect();
            Instance::new(ports, buffer, order, packets)
        })
    })
}

pub fn unit_instances(ports: u32, buffer: u64, packets: usize) -> impl Strategy<Value = Instance> {
    let size = Size {
        ports,
        buffer,
        packets,
        amount: 1,
    };
    instances(Kind::Unit, Order::Fifo, size)
}

/// Returns the value transmitted if exactly the marked packets are accepted, by slot `end` if there is
/// one; `None` if they do not fit.
fn value_of_choice(instance: &Instance, chosen: u32, end: Option<u64>) -> Option<u64> {
    let mut queues: Vec<Vec<Packet>> = vec![Vec::new(); instance.switch.ports as usize];
    let packets = instance.arrivals.packets();
    let (mut next, mut slot, mut value) = (0, 0, 0);
    while next < packets.len() || queues.iter().any(|queue| !queue.is_empty()) {
        if Some(slot) == end {
            break;
        }
        while next < packets.len() && packets[next].slot == slot {
            if chosen >> next & 1 == 1 {
                queues[packets[next].port as usize].push(packets[next]);
                let stored: usize = queues.iter().map(Vec::len).sum();
                if stored as u64 > instance.switch.buffer {
                    return None;
                }
            }
            next += 1;
        }
        for queue in &mut queues {
            let head = match instance.switch.order {
                Order::Fifo => 0,
                // The first of equal packets is the earliest.
                Order::Pq => (0..queue.len())
                    .min_by_key(|i| (queue[*i].work, u32::MAX - queue[*i].value))
                    .unwrap_or(0),
            };
            if let Some(packet) = queue.get_mut(head) {
                packet.work -= 1;
                if packet.work == 0 {
                    value += u64::from(packet.value);
                    queue.remove(head);
                }
            }
        }
        slot += 1;
    }
    Some(value)
}

/// Returns the best value of all choices of packets.
pub fn brute_force(instance: &Instance, end: Option<u64>) -> u64 {
    let packets = instance.arrivals.packets().len();
    assert!(packets <= 16);
    (0..1_u32 << packets)
        .filter_map(|chosen| value_of_choice(instance, chosen, end))
        .max()
        .unwrap()
}

/// LQD's queue lengths by its definition, without any data structure.
pub struct PlainLqd {
    pub lengths: Vec<u64>,
    buffer: u64,
}

impl PlainLqd {
    pub fn new(switch: &Switch) -> PlainLqd {
        PlainLqd {
            lengths: vec![0; switch.ports as usize],
            buffer: switch.buffer,
        }
    }

    pub fn arrive(&mut self, port: usize) {
        self.lengths[port] += 1;
        if self.lengths.iter().sum::<u64>() > self.buffer {
            let most = *self.lengths.iter().max().unwrap();
            let longest = if self.lengths[port] == most {
                port
            } else {
                self.lengths.iter().position(|len| *len == most).unwrap()
            };
            self.lengths[longest] -= 1;
        }
    }

    pub fn transmit(&mut self) {
        for length in &mut self.lengths {
            *length = length.saturating_sub(1);
        }
    }
}
