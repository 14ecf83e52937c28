//! Push-out with threshold.

use bufgym_sim::switch::Loss;
use bufgym_sim::units::Instant;

use crate::policies::switch::{PACKET, fill, lengths, lost, named};

#[test]
fn a_short_queue_pushes_out_of_the_longest() {
    let mut switch = named(4, 12, "pot");
    fill(&mut switch, &[7, 3, 2, 0]);
    // B/N is three packets.
    switch.arrive(Instant::ZERO, 2, PACKET);
    assert_eq!(lengths(&switch), [6, 3, 3, 0]);
    switch.arrive(Instant::ZERO, 2, PACKET);
    switch.arrive(Instant::ZERO, 1, PACKET);
    assert_eq!(lengths(&switch), [6, 3, 3, 0]);
    assert_eq!(lost(&switch, Loss::Full), 2);
    assert_eq!(lost(&switch, Loss::PushedOut), 1);
}

#[test]
fn the_threshold_can_be_set() {
    let mut switch = named(4, 12, &format!("pot:k={}", 4 * PACKET));
    fill(&mut switch, &[7, 3, 2, 0]);
    switch.arrive(Instant::ZERO, 1, PACKET);
    assert_eq!(lengths(&switch), [6, 4, 2, 0]);
    switch.arrive(Instant::ZERO, 1, PACKET);
    assert_eq!(lengths(&switch), [6, 4, 2, 0]);
    let mut never = named(4, 12, "pot:k=0");
    fill(&mut never, &[12, 0, 0, 0]);
    never.arrive(Instant::ZERO, 1, PACKET);
    assert_eq!(lengths(&never), [12, 0, 0, 0]);
}

/// A queue that is short and yet the longest has no other queue to push packets out of.
#[test]
fn the_longest_queue_does_not_push_out_of_itself() {
    let mut switch = named(4, 4, &format!("pot:k={}", 9 * PACKET));
    fill(&mut switch, &[3, 1, 0, 0]);
    switch.arrive(Instant::ZERO, 0, PACKET);
    assert_eq!(lengths(&switch), [3, 1, 0, 0]);
    assert_eq!(lost(&switch, Loss::Full), 1);
}
