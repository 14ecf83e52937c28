//! Which packet a port sends next.

use super::{Policy, Switch};
use crate::engine::packet::{PacketId, PacketStore};
use crate::scenario::Scheduler;

/// What the schedulers of all ports share.
#[derive(Clone, Debug)]
pub(super) struct Scheduling {
    scheduler: Scheduler,
    /// Bytes that a queue may send in its turn, deficit round robin.
    quantum: u64,
    /// What is left of them, by queue.
    deficits: Vec<u64>,
}

impl Scheduling {
    pub(super) fn new(scheduler: Scheduler, quantum: u64, queues: usize) -> Scheduling {
        Scheduling {
            scheduler,
            quantum,
            deficits: vec![0; queues],
        }
    }
}

impl<P: Policy> Switch<P> {
    /// Takes the packet that a port sends next.
    #[inline(always)]
    pub(super) fn next_of_port(&mut self, packets: &PacketStore, port: usize) -> Option<PacketId> {
        let packet = match self.queues_per_port {
            1 => self.queues[port].pop_front(packets),
            _ => self.next_of_several(packets, port),
        }?;
        self.ports[port].length -= 1;
        Some(packet)
    }

    #[inline(never)]
    fn next_of_several(&mut self, packets: &PacketStore, port: usize) -> Option<PacketId> {
        if self.ports[port].length == 0 {
            return None;
        }
        let queue = match self.scheduling.scheduler {
            Scheduler::Strict => self.first_waiting(port, 0),
            Scheduler::Rr => {
                let turn = usize::from(self.ports[port].turn);
                let queue = self.first_waiting(port, turn);
                self.pass_turn(port, queue);
                queue
            }
            Scheduler::Drr => self.next_by_deficit(packets, port),
        };
        self.queues[queue].pop_front(packets)
    }

    /// The first queue that is not empty, from the one of priority `from` on and round; there must
    /// be one.
    fn first_waiting(&self, port: usize, from: usize) -> usize {
        let (first, queues) = (port * self.queues_per_port, self.queues_per_port);
        let waiting = |queue: &usize| !self.queues[*queue].is_empty();
        let mut round = (from..from + queues).map(|priority| first + priority % queues);
        round.find(waiting).unwrap_or(first)
    }

    /// The queue after this one is next.
    fn pass_turn(&mut self, port: usize, queue: usize) {
        let next = (queue + 1) % self.queues_per_port;
        self.ports[port].turn = u16::try_from(next).expect("a switch has at most 65,536 queues");
    }

    /// A queue whose turn begins gets the quantum, and keeps its turn while what it has suffices.
    /// The port must have a packet.
    fn next_by_deficit(&mut self, packets: &PacketStore, port: usize) -> usize {
        let first = port * self.queues_per_port;
        loop {
            let turn = usize::from(self.ports[port].turn);
            let queue = first + turn;
            let Some(head) = self.queues[queue].head() else {
                self.scheduling.deficits[queue] = 0;
                self.begin_turn(port, queue);
                continue;
            };
            let bytes = u64::from(packets[head].wire_bytes);
            match self.scheduling.deficits[queue].checked_sub(bytes) {
                Some(left) => {
                    self.scheduling.deficits[queue] = left;
                    return queue;
                }
                None => self.begin_turn(port, queue),
            }
        }
    }

    /// Ends the turn of `queue` and begins that of the one behind it.
    fn begin_turn(&mut self, port: usize, queue: usize) {
        self.pass_turn(port, queue);
        let next = port * self.queues_per_port + usize::from(self.ports[port].turn);
        if !self.queues[next].is_empty() {
            self.scheduling.deficits[next] += self.scheduling.quantum;
        }
    }
}
