//! FollowLQD's thresholds are LQD's queue lengths.

use bufgym_sim::switch::{Loss, OpenLoop, policy::FollowLqd, policy::LongestQueueDrop};
use bufgym_sim::units::{Duration, Instant};
use bufgym_util::rng;

use crate::policies::switch::{PACKET, RATE, lengths, lost, of, slot};

/// Returns the virtual lengths, packets.
fn thresholds(switch: &OpenLoop<FollowLqd>, ports: u32) -> Vec<u64> {
    let queues = switch.policy().virtual_queues();
    let length = |port| queues.length(switch.view(), port as usize);
    let bytes: Vec<u64> = (0..ports).map(length).collect();
    assert!(bytes.iter().all(|bytes| bytes % PACKET == 0), "{bytes:?}");
    bytes.iter().map(|bytes| bytes / PACKET).collect()
}

/// Random arrivals of equal packets at the beginning of slots, also if the buffer is no multiple of the
/// ports or of the packet; compared after every arrival and after every slot.
#[test]
fn thresholds_are_the_queue_lengths_of_lqd_at_every_step() {
    let (mut pushed, mut behind, mut ahead) = (0, 0, 0);
    for seed in 0..150 {
        let mut random = rng::stream(seed, "followlqd", 0);
        let ports = 2 + rng::below(&mut random, 7) as u32;
        let bytes = (1 + rng::below(&mut random, 50)) * PACKET + rng::below(&mut random, PACKET);
        let mut lqd = OpenLoop::new(ports as usize, bytes, RATE, LongestQueueDrop);
        let policy = FollowLqd::new(ports as usize, 1);
        let mut follow = OpenLoop::new(ports as usize, bytes, RATE, policy);
        let mut hot = 0;
        for at in 0..250 {
            lqd.run_until(slot(at));
            follow.run_until(slot(at));
            assert_eq!(
                thresholds(&follow, ports),
                lengths(&lqd),
                "seed {seed}, slot {at}"
            );
            if rng::below(&mut random, 10) == 0 {
                hot = rng::below(&mut random, u64::from(ports));
            }
            for _ in 0..rng::below(&mut random, 2 * u64::from(ports)) {
                let uniform = rng::below(&mut random, u64::from(ports));
                let port = if rng::below(&mut random, 3) == 0 {
                    uniform
                } else {
                    hot
                } as usize;
                lqd.arrive(slot(at), port, PACKET);
                follow.arrive(slot(at), port, PACKET);
                assert_eq!(
                    thresholds(&follow, ports),
                    lengths(&lqd),
                    "seed {seed}, slot {at}"
                );
            }
            for (real, followed) in lengths(&follow).iter().zip(lengths(&lqd)) {
                ahead += u32::from(*real > followed);
                behind += u32::from(*real < followed);
            }
        }
        pushed += lost(&lqd, Loss::PushedOut);
    }
    // The real queues differ in both directions, otherwise this would show little.
    assert!(
        pushed > 1_000 && behind > 1_000 && ahead > 1_000,
        "{pushed} {behind} {ahead}"
    );
}

/// Observation 1: the policy sends two packets for every N + 1 of the optimum.
#[test]
fn what_lqd_pushes_out_stays_and_costs_others() {
    let mut switch = of(4, 8, FollowLqd::new(4, 1));
    for _ in 0..8 {
        switch.arrive(Instant::ZERO, 0, PACKET);
    }
    for port in 0..4 {
        switch.arrive(slot(1), port, PACKET);
    }
    assert_eq!(thresholds(&switch, 4), [5, 1, 1, 1]);
    assert_eq!(lengths(&switch), [8, 0, 0, 0], "one of four is accepted");
}

/// Nothing is lost if LQD loses nothing, whatever the sizes and the instants.
#[test]
fn without_congestion_the_virtual_queues_are_the_real_ones() {
    for seed in 0..100 {
        let mut random = rng::stream(seed, "followlqd calm", 0);
        let mut switch = OpenLoop::new(4, 40_000, RATE, FollowLqd::new(4, 1));
        let mut at = Instant::ZERO;
        for _ in 0..500 {
            at += Duration(rng::below(&mut random, 9_000_000));
            let port = rng::below(&mut random, 4) as usize;
            switch.arrive(at, port, 40 + rng::below(&mut random, 1_461));
            let queues = switch.policy().virtual_queues();
            for port in 0..4 {
                assert_eq!(
                    queues.length(switch.view(), port),
                    switch.buffer().queue(port)
                );
            }
        }
        assert!(switch.buffer().max_occupancy() > 4_000);
        assert_eq!(lost(&switch, Loss::Refused) + lost(&switch, Loss::Full), 0);
    }
}
