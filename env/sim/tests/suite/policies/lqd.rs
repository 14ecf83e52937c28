//! Longest Queue Drop: manually computed overloads, and properties for all arrivals.

use bufgym_sim::switch::{
    Fate, Loss, OpenLoop, PacketView, Policy, Verdict, View, policy::LongestQueueDrop,
};
use bufgym_sim::units::Instant;
use bufgym_util::rng;

use crate::policies::switch::{PACKET, fill, lengths, lost, of, slot};

#[test]
fn the_longest_queue_makes_room() {
    let mut switch = of(3, 9, LongestQueueDrop);
    fill(&mut switch, &[6, 3, 0]);
    switch.arrive(Instant::ZERO, 2, PACKET);
    assert_eq!(lengths(&switch), [5, 3, 1]);
    assert_eq!(switch.fates()[5], Fate::Lost(Loss::PushedOut), "its tail");
    assert_eq!(switch.fates()[4], Fate::Stored);
}

#[test]
fn an_arrival_to_the_longest_queue_is_lost() {
    let mut switch = of(3, 9, LongestQueueDrop);
    fill(&mut switch, &[6, 3, 0]);
    switch.arrive(Instant::ZERO, 0, PACKET);
    assert_eq!(lengths(&switch), [6, 3, 0]);
    assert_eq!(lost(&switch, Loss::Full), 1);
}

#[test]
fn of_equal_queues_the_arrivals_own_loses_and_else_the_first() {
    let mut switch = of(4, 9, LongestQueueDrop);
    fill(&mut switch, &[1, 4, 4, 0]);
    switch.arrive(Instant::ZERO, 3, PACKET);
    assert_eq!(lengths(&switch), [1, 3, 4, 1]);
    // With the arrival, its own queue is as long as queue 2.
    switch.arrive(Instant::ZERO, 1, PACKET);
    assert_eq!(lengths(&switch), [1, 3, 4, 1]);
    assert_eq!(lost(&switch, Loss::Full), 1);
}

/// Two ports take the whole buffer; 16 more then get an equal part each.
#[test]
fn a_burst_to_idle_ports_ends_with_equal_queues() {
    let mut switch = of(18, 180, LongestQueueDrop);
    fill(&mut switch, &{
        let mut packets = [0; 18];
        packets[..2].fill(90);
        packets
    });
    for _ in 0..40 {
        for port in 2..18 {
            switch.arrive(Instant::ZERO, port, PACKET);
        }
    }
    assert_eq!(lengths(&switch), [10; 18]);
}

#[test]
fn as_many_packets_leave_as_a_large_arrival_needs_or_none() {
    let mut switch = OpenLoop::new(2, 10_000, crate::policies::switch::RATE, LongestQueueDrop);
    for _ in 0..20 {
        switch.arrive(Instant::ZERO, 0, 500);
    }
    switch.arrive(Instant::ZERO, 1, 1_600);
    assert_eq!(lost(&switch, Loss::PushedOut), 4);
    assert_eq!(switch.buffer().queues(), [8_000, 1_600]);
    // The room for it would finally have to come from its own queue: nothing is removed.
    switch.arrive(Instant::ZERO, 1, 8_000);
    assert_eq!(switch.buffer().queues(), [8_000, 1_600]);
    assert_eq!(lost(&switch, Loss::Full), 1);
}

#[test]
fn the_packet_in_service_stays() {
    let mut switch = OpenLoop::new(3, 10_000, crate::policies::switch::RATE, LongestQueueDrop);
    switch.arrive(Instant::ZERO, 0, 8_000);
    switch.arrive(Instant::ZERO, 1, 1_000);
    switch.arrive(Instant::ZERO, 1, 1_000);
    // Queue 0 is the longest, but its only packet is in service.
    switch.arrive(Instant::ZERO, 2, 1_000);
    assert_eq!(switch.buffer().queues(), [8_000, 1_000, 1_000]);
    switch.arrive(Instant::ZERO, 2, 500);
    assert_eq!(switch.buffer().queues(), [8_000, 1_000, 1_000]);
    switch.finish();
    assert_eq!(switch.fates()[0], Fate::Sent);
}

/// Counts losses while another queue was longer.
#[derive(Clone, Default)]
struct Watched {
    inner: LongestQueueDrop,
    wrong: u64,
    losses: u64,
}

impl Policy for Watched {
    fn on_arrival(&mut self, view: View<'_>, packet: PacketView) -> Verdict {
        self.inner.on_arrival(view, packet)
    }

    fn on_drop(&mut self, view: View<'_>, packet: PacketView, _loss: Loss) {
        self.losses += 1;
        let own = view.buffer.queue(packet.queue) + packet.bytes;
        let others = view.buffer.queues().iter();
        self.wrong += u64::from(others.copied().max() > Some(own));
    }

    fn pushes_out(&self) -> bool {
        true
    }

    fn victim(&mut self, view: View<'_>, packet: PacketView, lengths: &[u64]) -> Option<usize> {
        self.inner.victim(view, packet, lengths)
    }

    fn threshold(&self, view: View<'_>, queue: usize) -> Option<u64> {
        self.inner.threshold(view, queue)
    }
}

#[test]
fn no_queue_loses_a_packet_while_another_is_longer() {
    let mut losses = 0;
    for seed in 0..200 {
        let mut random = rng::stream(seed, "lqd overload", 0);
        let ports = 2 + rng::below(&mut random, 7) as u32;
        let packets = u64::from(ports) + rng::below(&mut random, 40);
        let mut switch = of(ports, packets, Watched::default());
        for at in 0..300 {
            for _ in 0..rng::below(&mut random, 2 * u64::from(ports)) {
                let port = rng::below(&mut random, u64::from(ports)).min(1 + at % 3);
                switch.arrive(slot(at), port as usize, PACKET);
            }
        }
        assert_eq!(switch.policy().wrong, 0, "seed {seed}");
        losses += switch.policy().losses;
    }
    assert!(losses > 10_000, "only {losses} losses");
}
