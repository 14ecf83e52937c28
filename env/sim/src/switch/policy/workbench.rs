//! A buffer and a policy without a network, for tests: the test drives arrivals and departures.

use std::collections::VecDeque;

use super::{Loss, PacketView, Policy, Verdict, View};
use crate::switch::SharedBuffer;
use crate::units::{Instant, Rate};

/// A switch reduced to its buffer.
#[derive(Clone, Debug)]
pub(crate) struct Workbench<P> {
    pub(crate) policy: P,
    pub(crate) buffer: SharedBuffer,
    pub(crate) now: Instant,
    pub(crate) rate: Rate,
    queues: Vec<VecDeque<PacketView>>,
}

impl<P: Policy> Workbench<P> {
    /// Creates an empty buffer of `capacity` bytes and a queue for each of `ports` ports at 1 Gbit/s.
    pub(crate) fn new(policy: P, capacity: u64, ports: usize) -> Workbench<P> {
        Workbench {
            policy,
            buffer: SharedBuffer::new(capacity, capacity, ports, 1),
            now: Instant::ZERO,
            rate: Rate(1_000_000_000),
            queues: vec![VecDeque::new(); ports],
        }
    }

    /// Returns the current view of the policy.
    pub(crate) fn view(&self) -> View<'_> {
        View {
            buffer: &self.buffer,
            now: self.now,
            rate: self.rate,
        }
    }

    /// Handles an arrival. Returns the reason if the packet is lost.
    pub(crate) fn arrive(&mut self, packet: PacketView) -> Result<(), Loss> {
        let loss = if !self.buffer.fits(packet.bytes) {
            Some(Loss::Full)
        } else {
            let view = View {
                buffer: &self.buffer,
                now: self.now,
                rate: self.rate,
            };
            match self.policy.on_arrival(view, packet) {
                Verdict::Accept => None,
                Verdict::Drop => Some(Loss::Refused),
            }
        };
        if loss.is_none() {
            self.buffer.store(packet.queue, packet.bytes, self.now);
            self.queues[packet.queue].push_back(packet);
        }
        let view = View {
            buffer: &self.buffer,
            now: self.now,
            rate: self.rate,
        };
        match loss {
            None => {
                self.policy.on_enqueue(view, packet);
                Ok(())
            }
            Some(loss) => {
                self.policy.on_drop(view, packet, loss);
                Err(loss)
            }
        }
    }

    /// Sends a packet of flow 0. Returns true if it is enqueued.
    pub(crate) fn accepts(&mut self, port: usize, bytes: u64) -> bool {
        self.arrive(PacketView::of_port(port, bytes)).is_ok()
    }

    /// Lets the first packet of a queue leave. Returns false if there is none.
    pub(crate) fn depart(&mut self, queue: usize) -> bool {
        self.take(queue, |policy, view, packet| {
            policy.on_departure(view, packet);
        })
    }

    /// Drops the first packet of a queue, as queue management does. Returns false if there is none.
    pub(crate) fn drop_first(&mut self, queue: usize) -> bool {
        self.take(queue, |policy, view, packet| {
            policy.on_drop(view, packet, Loss::Head);
        })
    }

    fn take(&mut self, queue: usize, tell: impl FnOnce(&mut P, View<'_>, PacketView)) -> bool {
        let Some(packet) = self.queues[queue].pop_front() else {
            return false;
        };
        self.buffer.release(queue, packet.bytes, self.now);
        let view = View {
            buffer: &self.buffer,
            now: self.now,
            rate: self.rate,
        };
        tell(&mut self.policy, view, packet);
        true
    }
}
