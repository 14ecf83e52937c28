use std::cmp::Reverse;
use std::collections::VecDeque;

use super::{Arrival, Queues, Storage, Victim, argmax_by};
use crate::{Kind, Order, Switch};

#[derive(Clone, Copy, Debug)]
struct Stored {
    remaining: u32,
    value: u32,
    index: usize,
}

#[derive(Clone, Debug, Default)]
struct Queue {
    packets: VecDeque<Stored>,
    work: u64,
    value: u64,
}

/// Queues that keep every single packet.
#[derive(Clone, Debug)]
pub struct Packets {
    queues: Vec<Queue>,
    order: Order,
    kind: Kind,
    capacity: u64,
    stored: u64,
}

impl Packets {
    /// Creates empty queues for packets of a kind.
    pub fn new(switch: &Switch, kind: Kind) -> Packets {
        Packets {
            queues: vec![Queue::default(); switch.ports as usize],
            order: switch.order,
            kind,
            capacity: switch.buffer,
            stored: 0,
        }
    }

    /// Returns true if the last packet of a queue is the one with the largest work that arrived last.
    fn largest_work_is_last(&self) -> bool {
        match self.order {
            Order::Pq => self.kind != Kind::Value,
            Order::Fifo => self.kind != Kind::Work,
        }
    }

    /// Returns true if the last packet of a queue is the one with the smallest value that arrived last.
    fn smallest_value_is_last(&self) -> bool {
        match self.order {
            Order::Pq => self.kind != Kind::Work,
            Order::Fifo => self.kind != Kind::Value,
        }
    }

    fn position(&self, port: usize, victim: Victim) -> usize {
        let packets = &self.queues[port].packets;
        let last = packets.len() - 1;
        let chosen = match victim {
            Victim::LargestWork if !self.largest_work_is_last() => packets
                .iter()
                .enumerate()
                .max_by_key(|(_, packet)| (packet.remaining, packet.index)),
            Victim::SmallestValue if !self.smallest_value_is_last() => packets
                .iter()
                .enumerate()
                .max_by_key(|(_, packet)| (Reverse(packet.value), packet.index)),
            _ => None,
        };
        chosen.map_or(last, |(position, _)| position)
    }
}

impl Queues for Packets {
    fn ports(&self) -> usize {
        self.queues.len()
    }

    fn capacity(&self) -> u64 {
        self.capacity
    }

    fn stored(&self) -> u64 {
        self.stored
    }

    fn len(&self, port: usize) -> u64 {
        self.queues[port].packets.len() as u64
    }

    fn longest(&self) -> u64 {
        (0..self.ports())
            .map(|port| self.len(port))
            .max()
            .unwrap_or(0)
    }

    fn longest_with(&self, arrival: &Arrival) -> usize {
        let own = arrival.port();
        let rank = |port: usize| {
            let counted = if port == own { arrival.packet.work } else { 0 };
            (
                self.len(port) + u64::from(port == own),
                self.largest_work(port).max(u64::from(counted)),
            )
        };
        argmax_by(self.ports(), own, |a, b| rank(a).cmp(&rank(b)))
    }

    fn work(&self, port: usize) -> u64 {
        self.queues[port].work
    }

    fn value(&self, port: usize) -> u64 {
        self.queues[port].value
    }

    fn largest_work(&self, port: usize) -> u64 {
        let packets = &self.queues[port].packets;
        let largest = if self.kind != Kind::Work || self.largest_work_is_last() {
            packets.back().map(|packet| packet.remaining)
        } else {
            packets.iter().map(|packet| packet.remaining).max()
        };
        largest.map_or(0, u64::from)
    }

    fn smallest_value(&self, port: usize) -> Option<u64> {
        let packets = &self.queues[port].packets;
        let smallest = if self.kind != Kind::Value || self.smallest_value_is_last() {
            packets.back().map(|packet| packet.value)
        } else {
            packets.iter().map(|packet| packet.value).min()
        };
        smallest.map(u64::from)
    }
}

impl Storage for Packets {
    fn insert(&mut self, arrival: &Arrival) {
        debug_assert!(!self.is_full());
        let packet = arrival.packet;
        let stored = Stored {
            remaining: packet.work,
            value: packet.value,
            index: arrival.index,
        };
        let queue = &mut self.queues[arrival.port()];
        queue.work += u64::from(packet.work);
        queue.value += u64::from(packet.value);
        self.stored += 1;
        match self.order {
            Order::Fifo => queue.packets.push_back(stored),
            Order::Pq => {
                let rank = |packet: &Stored| (packet.remaining, Reverse(packet.value));
                let place = queue
                    .packets
                    .partition_point(|other| rank(other) <= rank(&stored));
                queue.packets.insert(place, stored);
            }
        }
    }

    fn remove(&mut self, port: usize, victim: Victim) -> Option<usize> {
        let position = self.position(port, victim);
        let queue = &mut self.queues[port];
        let packet = queue.packets.remove(position)?;
        queue.work -= u64::from(packet.remaining);
        queue.value -= u64::from(packet.value);
        self.stored -= 1;
        Some(packet.index)
    }

    fn transmit(&mut self) -> (u64, u64) {
        let (mut packets, mut value) = (0, 0);
        for queue in &mut self.queues {
            let Some(head) = queue.packets.front_mut() else {
                continue;
            };
            head.remaining -= 1;
            queue.work -= 1;
            if head.remaining == 0 {
                let worth = u64::from(head.value);
                queue.value -= worth;
                queue.packets.pop_front();
                packets += 1;
                value += worth;
            }
        }
        self.stored -= packets;
        (packets, value)
    }

    fn skip(&mut self, _slots: u64) {}

    fn clear(&mut self, mut lost: impl FnMut(usize)) {
        for queue in &mut self.queues {
            for packet in queue.packets.drain(..) {
                lost(packet.index);
            }
            queue.work = 0;
            queue.value = 0;
        }
        self.stored = 0;
    }
}
