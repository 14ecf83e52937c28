//! Choice of the packet that a port sends next.

use super::{LOSSLESS, Path, Policy, Switch};
use crate::engine::packet::{PacketId, PacketStore};
use crate::scenario::Scheduler;

/// State that the schedulers of all ports share.
#[derive(Clone, Debug)]
pub(super) struct Scheduling {
    scheduler: Scheduler,
    /// Number of a port's queues that come before those of deficit round robin.
    strict: usize,
    /// Bytes that a queue may send in its turn, by priority, deficit round robin.
    quanta: Vec<u64>,
    /// Remaining bytes of the current turn, by queue.
    deficits: Vec<u64>,
}

impl Scheduling {
    /// Creates the state for `queues` queues of all ports; the first `strict` ones of each port are
    /// served strictly.
    pub(super) fn new(
        scheduler: Scheduler,
        strict: usize,
        quanta: Vec<u64>,
        queues: usize,
    ) -> Scheduling {
        Scheduling {
            scheduler,
            strict: match scheduler {
                Scheduler::StrictDrr => strict.min(quanta.len()),
                _ => 0,
            },
            quanta,
            deficits: vec![0; queues],
        }
    }

    /// Returns the priority that has the first turn.
    pub(super) fn first_turn(&self) -> u16 {
        u16::try_from(self.strict).expect("a port has at most 8 queues")
    }
}

impl<P: Policy> Switch<P> {
    /// Takes the packet that a port sends next.
    #[inline(always)]
    pub(super) fn next_of_port<const PATH: Path>(
        &mut self,
        packets: &PacketStore,
        port: usize,
    ) -> Option<PacketId> {
        if PATH == LOSSLESS {
            return self.next_lossless(packets, port);
        }
        let packet = match self.numbering.queues_per_port() {
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
        let first = port * self.numbering.queues_per_port();
        let queue = match self.scheduling.scheduler {
            Scheduler::Strict => first + self.first_waiting(port, 0),
            Scheduler::Rr => {
                let turn = usize::from(self.ports[port].turn);
                let priority = self.first_waiting(port, turn);
                self.pass_turn(port, priority);
                first + priority
            }
            Scheduler::Drr => self.next_by_deficit(packets, port),
            Scheduler::StrictDrr => match self.first_strict(port) {
                Some(queue) => queue,
                None => self.next_by_deficit(packets, port),
            },
        };
        self.queues[queue].pop_front(packets)
    }

    /// Returns the priority of the first queue that is not empty, in circular order from priority
    /// `from` on; there must be one. The code has no branch, because the result cannot be predicted.
    #[inline(always)]
    fn first_waiting(&self, port: usize, from: usize) -> usize {
        let queues_per_port = self.numbering.queues_per_port();
        debug_assert!(queues_per_port <= 32 && from < queues_per_port);
        let first = port * queues_per_port;
        let queues = &self.queues[first..first + queues_per_port];
        let waiting = queues
            .iter()
            .enumerate()
            .fold(0u64, |waiting, (priority, queue)| {
                waiting | u64::from(!queue.is_empty()) << priority
            });
        // In the upper half the queues before `from` come after all others.
        let round = waiting >> from << from | waiting << 32;
        (round.trailing_zeros() % 32) as usize
    }

    /// Returns the first queue that is not empty among those that come before deficit round robin.
    fn first_strict(&self, port: usize) -> Option<usize> {
        let first = port * self.numbering.queues_per_port();
        let mut strict = first..first + self.scheduling.strict;
        strict.find(|queue| !self.queues[*queue].is_empty())
    }

    /// Gives the turn to the queue after that of this priority, among those that are not served
    /// strictly.
    fn pass_turn(&mut self, port: usize, priority: usize) {
        let next = match priority + 1 {
            next if next == self.numbering.queues_per_port() => self.scheduling.strict,
            next => next,
        };
        self.ports[port].turn = u16::try_from(next).expect("a switch has at most 65,536 queues");
    }

    /// Returns the next queue by deficit round robin. A queue whose turn begins gets its quantum, and
    /// keeps its turn while its deficit suffices. The port must have a packet in a queue that is not
    /// served strictly.
    fn next_by_deficit(&mut self, packets: &PacketStore, port: usize) -> usize {
        let first = port * self.numbering.queues_per_port();
        loop {
            let turn = usize::from(self.ports[port].turn);
            let queue = first + turn;
            let Some(head) = self.queues[queue].head() else {
                self.scheduling.deficits[queue] = 0;
                self.begin_turn(port, turn);
                continue;
            };
            let bytes = u64::from(packets[head].wire_bytes);
            match self.scheduling.deficits[queue].checked_sub(bytes) {
                Some(left) => {
                    self.scheduling.deficits[queue] = left;
                    return queue;
                }
                None => self.begin_turn(port, turn),
            }
        }
    }

    /// Ends the turn of the queue of this priority and begins that of the one behind it.
    fn begin_turn(&mut self, port: usize, priority: usize) {
        self.pass_turn(port, priority);
        let turn = usize::from(self.ports[port].turn);
        let next = port * self.numbering.queues_per_port() + turn;
        if !self.queues[next].is_empty() {
            self.scheduling.deficits[next] += self.scheduling.quanta[turn];
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::clock::ClockOffset;
    use crate::engine::packet::{Packet, PacketKind, SizeClass};
    use crate::scenario::Scenario;
    use crate::switch::policy::CompleteSharing;
    use crate::switch::{Admission, SwitchId, SwitchSettings};
    use crate::units::{Duration, Instant};

    /// Returns a scenario in which a full packet has 1,500 bytes.
    fn scenario(changes: &[&str]) -> Scenario {
        let mut scenario = Scenario::default();
        for change in ["mss=1442", "queues_per_port=4"].iter().chain(changes) {
            scenario.set(change).unwrap();
        }
        scenario.validate().unwrap();
        scenario
    }

    /// Returns the priorities that a port serves, one after the other, when `bytes` are the sizes of
    /// the packets of each of its four queues. The first packet that arrives is served before.
    fn served(changes: &[&str], bytes: [&[u16]; 4]) -> Vec<usize> {
        let scenario = scenario(changes);
        let settings = SwitchSettings::new(&scenario, 16, 1_000_000);
        let id = SwitchId(0);
        let mut switch = Switch::new(
            id,
            ClockOffset::of(Duration::ZERO),
            &settings,
            CompleteSharing,
        )
        .unwrap();
        let mut packets = PacketStore::default();
        let port = 3;
        let mut arrive = |switch: &mut Switch<CompleteSharing>, priority: usize, bytes| {
            let queue = (port * 4 + priority) as u16;
            let size = (bytes, SizeClass::Odd);
            let packet = Packet::new(PacketKind::Data, 0, queue, size, Instant::ZERO);
            let id = packets.insert(packet);
            (id, switch.arrive(&mut packets, id, Instant::ZERO, &mut ()))
        };
        let (mut sending, admission) = arrive(&mut switch, 0, 100);
        assert_eq!(admission, Admission::Served);
        for (priority, bytes) in bytes.into_iter().enumerate() {
            for &bytes in bytes {
                arrive(&mut switch, priority, bytes);
            }
        }
        let mut order = Vec::new();
        while let Some(next) = switch.sent(&mut packets, sending, Instant::ZERO, &mut ()) {
            order.push(usize::from(packets[next].queue) - port * 4);
            sending = next;
        }
        order
    }

    #[test]
    fn round_robin_takes_a_packet_of_each() {
        let order = served(&[], [&[900], &[1_500; 2], &[], &[40; 3]]);
        assert_eq!(order, [0, 1, 3, 1, 3, 3]);
    }

    #[test]
    fn strict_takes_the_first_queue_first() {
        let order = served(
            &["scheduler=strict"],
            [&[900], &[1_500; 2], &[40; 2], &[40]],
        );
        assert_eq!(order, [0, 1, 1, 2, 2, 3]);
    }

    /// Each turn grants 1,500 bytes: queue 1 sends one packet of 1,500, queue 2 two of 750, and queue 3
    /// keeps 900 of its second turn.
    #[test]
    fn deficit_round_robin_takes_the_same_bytes_of_each() {
        let order = served(
            &["scheduler=drr"],
            [&[], &[1_500; 3], &[750; 4], &[1_050; 3]],
        );
        assert_eq!(order, [1, 2, 2, 3, 1, 2, 2, 3, 1, 3]);
    }

    #[test]
    fn weights_are_multiples_of_a_full_packet() {
        let weights = "queue_weights=1,2,0.5,1";
        let order = served(
            &["scheduler=drr", weights],
            [&[], &[1_500; 4], &[1_500; 2], &[1_500]],
        );
        // Queue 2 may send a packet every second turn.
        assert_eq!(order, [1, 1, 3, 1, 1, 2, 2]);
    }

    #[test]
    fn the_first_queues_come_before_those_in_turn() {
        let order = served(
            &["scheduler=strict+drr", "strict_queues=2"],
            [&[900; 2], &[1_500], &[1_500; 2], &[750; 3]],
        );
        assert_eq!(order, [0, 0, 1, 3, 3, 2, 3, 2]);
        let order = served(
            &["scheduler=strict+drr", "strict_queues=8"],
            [&[900], &[1_500], &[1_500], &[750]],
        );
        assert_eq!(order, [0, 1, 2, 3]);
    }
}
