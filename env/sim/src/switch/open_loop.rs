//! A switch whose arrivals are given: no senders, so that losses change nothing of what arrives.

use std::collections::VecDeque;

use super::{Loss, PacketView, Policy, SharedBuffer, Verdict, View};
use crate::units::{Rate, Time};

/// What became of an arrival.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Fate {
    /// It waits or is being sent.
    Stored,
    /// Its last bit has left.
    Sent,
    /// It was lost.
    Lost(Loss),
}

/// A packet that waits, by the number of its arrival.
#[derive(Clone, Copy, Debug)]
struct Waiting {
    arrival: usize,
    bytes: u64,
}

#[derive(Clone, Default, Debug)]
struct Port {
    /// The packet that is being sent, and when its last bit leaves.
    serving: Option<(Waiting, Time)>,
    waiting: VecDeque<Waiting>,
}

/// A shared-memory switch with one queue per port, driven arrival by arrival: the model of the
/// theorems with bytes and time. Packets leave at line rate, before packets that arrive at the same
/// instant, the lowest port first.
#[derive(Clone, Debug)]
pub struct OpenLoop<P> {
    policy: P,
    buffer: SharedBuffer,
    rate: Rate,
    now: Time,
    ports: Vec<Port>,
    fates: Vec<Fate>,
}

impl<P: Policy> OpenLoop<P> {
    /// An empty switch.
    ///
    /// # Panics
    /// When there are no ports.
    pub fn new(ports: usize, buffer_bytes: u64, rate: Rate, policy: P) -> OpenLoop<P> {
        assert!(ports > 0, "a switch has ports");
        OpenLoop {
            policy,
            buffer: SharedBuffer::new(buffer_bytes, buffer_bytes, ports, 1),
            rate,
            now: Time::ZERO,
            ports: vec![Port::default(); ports],
            fates: Vec::new(),
        }
    }

    /// A packet of `bytes` arrives for `port` at the instant `at`. Returns the number of the
    /// arrival, counted from 0.
    ///
    /// # Panics
    /// When there is no such port, or `at` lies in the past.
    pub fn arrive(&mut self, at: Time, port: usize, bytes: u64) -> usize {
        self.run_until(at);
        let packet = PacketView::of_port(port, bytes);
        let arrival = self.fates.len();
        self.fates.push(Fate::Stored);
        if self.buffer.fits(bytes) {
            let verdict = self.ask(|policy, view| policy.on_arrival(view, packet));
            if verdict == Verdict::Drop {
                self.lose(arrival, packet, Loss::Refused);
                return arrival;
            }
        } else if !self.make_room(packet) {
            self.lose(arrival, packet, Loss::Full);
            return arrival;
        }
        self.buffer.store(port, bytes, at);
        self.ask(|policy, view| policy.on_enqueue(view, packet));
        let waiting = Waiting { arrival, bytes };
        if self.ports[port].serving.is_none() {
            self.serve(port, waiting);
        } else {
            self.ports[port].waiting.push_back(waiting);
        }
        self.expel();
        arrival
    }

    /// Lets packets leave up to and at the instant `at`.
    ///
    /// # Panics
    /// When `at` lies in the past.
    pub fn run_until(&mut self, at: Time) {
        assert!(at >= self.now, "time goes back");
        while let Some((left, port)) = self.next_departure()
            && left <= at
        {
            self.now = left;
            self.depart(port);
        }
        self.now = at;
    }

    /// Lets every packet leave.
    pub fn finish(&mut self) {
        while let Some((left, port)) = self.next_departure() {
            self.now = left;
            self.depart(port);
        }
    }

    /// The shared buffer.
    pub fn buffer(&self) -> &SharedBuffer {
        &self.buffer
    }

    /// The policy.
    pub fn policy(&self) -> &P {
        &self.policy
    }

    /// What the policy would be shown now.
    pub fn view(&self) -> View<'_> {
        View {
            buffer: &self.buffer,
            now: self.now,
            rate: self.rate,
        }
    }

    /// What became of every arrival so far, in order.
    pub fn fates(&self) -> &[Fate] {
        &self.fates
    }

    /// Arrivals whose last bit has left.
    pub fn sent(&self) -> u64 {
        let sent = self.fates.iter().filter(|fate| **fate == Fate::Sent);
        sent.count() as u64
    }

    fn ask<R>(&mut self, question: impl FnOnce(&mut P, View<'_>) -> R) -> R {
        let view = View {
            buffer: &self.buffer,
            now: self.now,
            rate: self.rate,
        };
        question(&mut self.policy, view)
    }

    fn next_departure(&self) -> Option<(Time, usize)> {
        let ports = self.ports.iter().enumerate();
        ports
            .filter_map(|(port, state)| Some((state.serving?.1, port)))
            .min()
    }

    fn serve(&mut self, port: usize, packet: Waiting) {
        let left = self.now + self.rate.transmission_time(packet.bytes);
        self.ports[port].serving = Some((packet, left));
    }

    fn depart(&mut self, port: usize) {
        let Some((packet, _)) = self.ports[port].serving.take() else {
            return;
        };
        self.buffer.release(port, packet.bytes, self.now);
        self.fates[packet.arrival] = Fate::Sent;
        let seen = PacketView::of_port(port, packet.bytes);
        self.ask(|policy, view| policy.on_departure(view, seen));
        if let Some(next) = self.ports[port].waiting.pop_front() {
            self.serve(port, next);
        }
        self.expel();
    }

    fn lose(&mut self, arrival: usize, packet: PacketView, loss: Loss) {
        self.fates[arrival] = Fate::Lost(loss);
        self.ask(|policy, view| policy.on_drop(view, packet, loss));
    }

    fn push_out(&mut self, port: usize, packet: Waiting) {
        self.buffer.release(port, packet.bytes, self.now);
        let seen = PacketView::of_port(port, packet.bytes);
        self.lose(packet.arrival, seen, Loss::PushedOut);
    }

    /// Removes tail packets as the policy names their queues, if the arrival then fits; else
    /// nothing.
    fn make_room(&mut self, packet: PacketView) -> bool {
        if !self.policy.pushes_out() {
            return false;
        }
        let wanted = self.buffer.occupancy() + packet.bytes;
        let mut missing = wanted.saturating_sub(self.buffer.capacity());
        let mut chosen = vec![0; self.ports.len()];
        while missing > 0 {
            let lengths = self.removable(packet.port, &chosen);
            let victim = self.ask(|policy, view| policy.victim(view, packet, &lengths));
            let Some(port) = victim else { return false };
            let Some(tail) = self.ports[port].waiting.iter().nth_back(chosen[port]) else {
                return false;
            };
            missing = missing.saturating_sub(tail.bytes);
            chosen[port] += 1;
        }
        for (port, count) in chosen.into_iter().enumerate() {
            for _ in 0..count {
                if let Some(tail) = self.ports[port].waiting.pop_back() {
                    self.push_out(port, tail);
                }
            }
        }
        true
    }

    /// Bytes of every queue without the tail packets chosen; zero where none is left to remove,
    /// except in the arrival's own queue.
    fn removable(&self, own: usize, chosen: &[usize]) -> Vec<u64> {
        let length = |(port, count): (usize, &usize)| {
            let waiting = &self.ports[port].waiting;
            if waiting.len() == *count && port != own {
                return 0;
            }
            let taken = waiting.iter().rev().take(*count);
            self.buffer.queue(port) - taken.map(|packet| packet.bytes).sum::<u64>()
        };
        chosen.iter().enumerate().map(length).collect()
    }

    fn expel(&mut self) {
        if !self.policy.pushes_out() {
            return;
        }
        while let Some(port) = self.ask(|policy, view| policy.expel(view))
            && let Some(head) = self.ports[port].waiting.pop_front()
        {
            self.push_out(port, head);
        }
    }
}
