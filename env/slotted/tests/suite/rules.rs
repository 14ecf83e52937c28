//! Every policy's rule on manually computed arrivals.

use bufgym_slotted::policy::*;
use bufgym_slotted::{Fate, Kind, Observer, Order, Packet, Packets, run};

use crate::instances::Instance;

fn work(port: u32, work: u32) -> Packet {
    Packet {
        work,
        ..Packet::unit(0, port)
    }
}

fn value(port: u32, value: u32) -> Packet {
    Packet {
        value,
        ..Packet::unit(0, port)
    }
}

#[derive(Default)]
struct Losses(Vec<(usize, Fate)>);

impl<S> Observer<S> for Losses {
    fn lost(&mut self, index: usize, fate: Fate) {
        self.0.push((index, fate));
    }
}

/// Returns the places of the packets dropped and of those pushed out, in the order of their loss.
fn losses(
    mut policy: impl Policy,
    kind: Kind,
    order: Order,
    ports: u32,
    buffer: u64,
    packets: &[Packet],
) -> (Vec<usize>, Vec<usize>) {
    let instance = Instance::new(ports, buffer, order, packets.to_vec());
    let mut losses = Losses::default();
    let mut queues = Packets::new(&instance.switch, kind);
    run(&mut queues, &mut policy, packets, None, &mut losses).unwrap();
    let of = |fate| {
        let lost = losses.0.iter().filter(|(_, found)| *found == fate);
        lost.map(|(index, _)| *index).collect()
    };
    (of(Fate::Dropped), of(Fate::PushedOut))
}

fn unit(policy: &str, ports: u32, buffer: u64, by_port: &[u32]) -> (u64, u64, u64) {
    let packets = by_port.iter().map(|port| Packet::unit(0, *port)).collect();
    let outcome = Instance::new(ports, buffer, Order::Fifo, packets).run(policy);
    (outcome.transmitted, outcome.dropped, outcome.pushed_out)
}

#[test]
fn drop_tail_policies_stop_where_their_rules_say() {
    assert_eq!(unit("cs", 2, 6, &[0; 10]), (6, 4, 0));
    assert_eq!(unit("st", 3, 7, &[0; 10]), (2, 8, 0));
    // q < B - Q: 0 < 6, 1 < 5, 2 < 4, not 3 < 3.
    assert_eq!(unit("dt", 2, 6, &[0; 10]), (3, 7, 0));
    // q < (B - Q)/2: 0 < 3, 1 < 2.5, not 2 < 2; then for the other port 0 < 2, 1 < 1.5, not 2 < 1.
    assert_eq!(unit("dt:alpha=0.5", 2, 6, &[0, 0, 0, 1, 1, 1]), (4, 2, 0));
    // H_2 = 1.5, B/H = 4: the longest queue 4, the other 2.
    assert_eq!(unit("harmonic", 2, 6, &[0, 0, 0, 0, 0, 1, 1, 1]), (6, 2, 0));
    assert_eq!(unit("harmonic", 2, 6, &[0, 0, 1, 1, 1, 1, 1, 0]), (6, 2, 0));
}

#[test]
fn lqd_drops_the_arrival_of_the_longest_queue_and_prefers_the_own_queue_then_the_lowest() {
    let lqd = |ports: &[u32], buffer| {
        let packets: Vec<_> = ports.iter().map(|port| Packet::unit(0, *port)).collect();
        losses(
            LongestQueueDrop,
            Kind::Unit,
            Order::Fifo,
            4,
            buffer,
            &packets,
        )
    };
    assert_eq!(lqd(&[0, 0, 0, 0], 3), (vec![3], vec![]));
    // 3 + 0 against 0 + 1: the last packet of port 0 is lost; then 2 against 2: the arrival's own
    // queue.
    assert_eq!(lqd(&[0, 0, 0, 1, 1], 3), (vec![4], vec![2]));
    // Two and two: the arrival for a third port takes the place of a packet of the lower port.
    assert_eq!(lqd(&[2, 2, 1, 1, 3], 4), (vec![], vec![3]));
}

#[test]
fn lqd_with_work_takes_of_several_queues_that_with_the_largest_packet() {
    let lqd = |packets: &[Packet]| losses(LongestQueueDrop, Kind::Work, Order::Pq, 3, 4, packets);
    // Queues of two: {5, 1} and {3, 3}; the largest packet is in the first.
    let packets = [work(1, 3), work(1, 3), work(0, 5), work(0, 1), work(2, 1)];
    assert_eq!(lqd(&packets), (vec![], vec![2]));
    // {2, 2} and {4, 1}: port 1 has the larger packet, though port 0 is lower.
    let packets = [work(0, 2), work(0, 2), work(1, 4), work(1, 1), work(2, 1)];
    assert_eq!(lqd(&packets), (vec![], vec![2]));
    // {1, 1, 6} and {5}: with an arrival of work 9 port 1 has two, not three: port 0 loses.
    let packets = [work(0, 1), work(0, 6), work(0, 1), work(1, 5), work(1, 9)];
    assert_eq!(lqd(&packets), (vec![], vec![1]));
}

#[test]
fn lqd_pushes_out_the_last_packet_in_queue_order() {
    let packets = [work(0, 5), work(0, 2), work(0, 2), work(1, 1)];
    let lqd = |order| losses(LongestQueueDrop, Kind::Work, order, 2, 3, &packets);
    assert_eq!(lqd(Order::Pq), (vec![], vec![0]));
    assert_eq!(lqd(Order::Fifo), (vec![], vec![2]));
}

#[test]
fn bpd_takes_the_largest_packet_of_all_if_the_arrival_is_smaller() {
    let bpd =
        |order, packets: &[Packet]| losses(BiggestPacketDrop, Kind::Work, order, 3, 3, packets);
    for order in [Order::Pq, Order::Fifo] {
        let packets = [work(0, 2), work(1, 7), work(1, 3), work(0, 6), work(0, 6)];
        assert_eq!(bpd(order, &packets), (vec![4], vec![1]));
        // Equal largest packets in two queues: the arrival's own queue loses, and there the last of
        // them.
        let packets = [work(0, 5), work(1, 5), work(1, 5), work(1, 4), work(2, 1)];
        assert_eq!(bpd(order, &packets), (vec![], vec![2, 0]));
    }
}

#[test]
fn bad_takes_from_the_largest_average() {
    let bad =
        |packets: &[Packet]| losses(BiggestAverageDrop, Kind::Work, Order::Fifo, 3, 4, packets);
    // Averages 4 and 4.5: {4, 4}, {8, 1}. An arrival of 4 is below 4.5; then {1} is at 1.
    let packets = [
        work(0, 4),
        work(0, 4),
        work(1, 8),
        work(1, 1),
        work(2, 4),
        work(2, 4),
    ];
    assert_eq!(bad(&packets), (vec![5], vec![2]));
    // The single packet of 9 is the largest, but not in the queue with the largest average.
    let packets = [work(0, 9), work(0, 1), work(0, 1), work(1, 6), work(2, 2)];
    assert_eq!(bad(&packets), (vec![], vec![3]));
}

#[test]
fn lwd_counts_the_arrival_in_its_own_queue() {
    let lwd = |packets: &[Packet]| {
        losses(
            LargestWorkDrop::default(),
            Kind::Work,
            Order::Pq,
            3,
            3,
            packets,
        )
    };
    // 6 against 3 + 4: the arrival's own queue loses, whose largest packet is the arrival itself.
    assert_eq!(
        lwd(&[work(0, 6), work(1, 2), work(1, 1), work(1, 4)]),
        (vec![3], vec![])
    );
    // 6 against 5 + 2: the arrival's own queue loses, where 4 is larger than the arrival.
    assert_eq!(
        lwd(&[work(0, 6), work(1, 4), work(1, 1), work(1, 2)]),
        (vec![], vec![1])
    );
    // 6 against 3 + 1: the other queue loses.
    assert_eq!(
        lwd(&[work(0, 6), work(1, 2), work(1, 1), work(1, 1)]),
        (vec![], vec![0])
    );
    // 6 against 3 + 3: with equal work the queue with the largest packet loses.
    assert_eq!(
        lwd(&[work(0, 6), work(1, 2), work(1, 1), work(1, 3)]),
        (vec![], vec![0])
    );
    // All equal: the arrival's own queue loses, and there the arrival.
    assert_eq!(
        lwd(&[work(0, 3), work(1, 3), work(2, 3), work(2, 3)]),
        (vec![3], vec![])
    );
}

#[test]
fn mtvd_takes_the_smallest_value_of_all_if_the_arrival_is_worth_more() {
    for order in [Order::Pq, Order::Fifo] {
        let packets = [
            value(0, 3),
            value(1, 2),
            value(1, 2),
            value(2, 2),
            value(2, 4),
        ];
        let found = losses(MinimalTotalValueDrop, Kind::Value, order, 3, 3, &packets);
        assert_eq!(found, (vec![3], vec![2]));
    }
}

#[test]
fn mrd_divides_by_the_average_or_by_the_total() {
    let packets = [
        value(0, 4),
        value(0, 4),
        value(0, 4),
        value(1, 1),
        value(2, 5),
    ];
    let mrd = |ratio| {
        losses(
            MaximalRatioDrop { ratio },
            Kind::Value,
            Order::Pq,
            3,
            4,
            &packets,
        )
    };
    // 3/4 against 1/1 by the average, 3/12 against 1/1 by the total.
    assert_eq!(mrd(Ratio::Mean), (vec![], vec![3]));
    assert_eq!(mrd(Ratio::Total), (vec![], vec![3]));
    // 3/2 against 1/1, and 3/6 against 1/1.
    let packets = [
        value(0, 2),
        value(0, 2),
        value(0, 2),
        value(1, 1),
        value(2, 5),
    ];
    let mrd = |ratio| {
        losses(
            MaximalRatioDrop { ratio },
            Kind::Value,
            Order::Fifo,
            3,
            4,
            &packets,
        )
    };
    assert_eq!(mrd(Ratio::Mean), (vec![], vec![2]));
    assert_eq!(mrd(Ratio::Total), (vec![], vec![3]));
}

#[test]
fn credence_accepts_below_the_safeguard_and_then_asks() {
    // B/N = 2: the first two are accepted by the safeguard, though predicted to be lost; the next two
    // are decided by the oracle.
    let packets = [Packet::unit(0, 0); 4];
    let switch = bufgym_slotted::Switch::new(2, 4, Order::Fifo).unwrap();
    let outcome = |drops: [bool; 4]| {
        let mut policy = Credence::new(&switch, drops.to_vec());
        let mut queues = Packets::new(&switch, Kind::Unit);
        let mut losses = Losses::default();
        run(&mut queues, &mut policy, &packets, None, &mut losses).unwrap();
        losses
            .0
            .into_iter()
            .map(|(index, _)| index)
            .collect::<Vec<_>>()
    };
    assert_eq!(outcome([true, true, true, true]), [2, 3]);
    assert_eq!(outcome([true, true, false, true]), [3]);
    assert_eq!(outcome([false; 4]), [0_usize; 0]);
}

#[test]
fn a_smaller_packet_overtakes_in_priority_order_only() {
    let packets = vec![
        work(0, 3),
        Packet {
            slot: 1,
            ..work(0, 1)
        },
    ];
    let transmitted = |order| {
        let instance = Instance::new(1, 4, order, packets.clone());
        let mut queues = Packets::new(&instance.switch, Kind::Work);
        let mut times = Times::default();
        run(
            &mut queues,
            &mut CompleteSharing,
            &packets,
            None,
            &mut times,
        )
        .unwrap();
        times.leaving
    };
    assert_eq!(transmitted(Order::Pq), [1, 3]);
    assert_eq!(transmitted(Order::Fifo), [2, 3]);
}

/// Slots in which packets leave.
#[derive(Default)]
struct Times {
    slot: u64,
    leaving: Vec<u64>,
}

impl<S> Observer<S> for Times {
    fn after_transmission(&mut self, _queues: &S, transmitted: u64) {
        if transmitted > 0 {
            self.leaving.push(self.slot);
        }
        self.slot += 1;
    }
}
