//! Occamy: DT with α = 8, and the packets that it expels.

use bufgym_sim::switch::{Fate, Loss, PolicySpec};
use bufgym_sim::units::Instant;

use crate::policies::switch::{PACKET, fill, lengths, lost, named, scenario, slot};

/// One saturated queue stops at αB/(1+α), as under DT.
#[test]
fn one_queue_gets_eight_ninths() {
    let mut switch = named(16, 180, "occamy");
    for _ in 0..400 {
        switch.arrive(Instant::ZERO, 3, PACKET);
    }
    assert_eq!(lengths(&switch)[3], 160);
    assert_eq!(lost(&switch, Loss::PushedOut), 0);
}

/// As more queues fill, the threshold falls below the long queue, which loses packets at once, oldest
/// first, and not at line rate.
#[test]
fn a_queue_above_the_threshold_loses_its_head_packets() {
    let mut switch = named(16, 180, "occamy");
    for _ in 0..160 {
        switch.arrive(Instant::ZERO, 0, PACKET);
    }
    for packet in 0..80 {
        switch.arrive(slot(1 + packet / 4), 1, PACKET);
    }
    let lengths = lengths(&switch);
    let free = 180 - lengths.iter().sum::<u64>();
    assert!(lengths[0] <= 8 * free, "{lengths:?}");
    assert!(lost(&switch, Loss::PushedOut) > 20, "{lengths:?}");
    let stored = (0..160).filter(|arrival| switch.fates()[*arrival] == Fate::Stored);
    let stored: Vec<usize> = stored.collect();
    // One packet is in service, behind it are the newest.
    let newest: Vec<usize> = (161 - stored.len()..160).collect();
    assert_eq!(stored[1..], newest);
}

/// Steady state with n saturated queues as under DT: each has αB/(1+nα).
#[test]
fn saturated_queues_become_equal() {
    let mut switch = named(16, 425, "occamy");
    for at in 0..400 {
        for port in 0..(if at < 100 { 1 } else { 3 }) {
            for _ in 0..4 {
                switch.arrive(slot(at), port, PACKET);
            }
        }
    }
    let expected = 8.0 * 425.0 / 25.0;
    for length in &lengths(&switch)[..3] {
        // A packet moves the threshold by eight packets.
        let error = (*length as f64 - expected).abs();
        assert!(error <= 8.0, "{length} packets, expected {expected}");
    }
}

/// Without spare bandwidth nothing is expelled: long queues shrink at line rate only.
#[test]
fn the_budget_limits_what_is_taken_back() {
    let taken = |policy: &str| {
        let mut switch = named(16, 180, policy);
        fill(&mut switch, &{
            let mut packets = [0; 16];
            packets[0] = 159;
            packets
        });
        for at in 1..6 {
            for _ in 0..12 {
                switch.arrive(slot(at), 1, PACKET);
            }
        }
        lost(&switch, Loss::PushedOut)
    };
    let plenty = taken("occamy");
    let scarce = taken("occamy:bandwidth=0.01,burst_bytes=1250");
    assert!(plenty > 20 && scarce < 3, "{plenty} and {scarce}");
}

/// Queues above the threshold lose packets in turn.
#[test]
fn queues_give_back_in_turn() {
    let mut switch = named(16, 180, "occamy");
    fill(&mut switch, &{
        let mut packets = [0; 16];
        packets[..2].fill(80);
        packets
    });
    for packet in 0..60 {
        switch.arrive(slot(1 + packet / 10), 2, PACKET);
    }
    let lengths = lengths(&switch);
    assert!(lengths[0] < 73, "{lengths:?}");
    assert!(lengths[0].abs_diff(lengths[1]) <= 1, "{lengths:?}");
}

#[test]
fn a_budget_below_a_packet_is_refused() {
    let spec: PolicySpec = "occamy:burst_bytes=1000".parse().unwrap();
    let error = spec.build(&scenario(4, 100_000)).unwrap_err().to_string();
    assert!(error.contains("1250"), "{error}");
}
