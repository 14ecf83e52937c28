//! Packet arrivals per second of the slotted model, 64 ports.
//!
//! `cargo bench -p bufgym-slotted --bench slotted`

use bufgym_slotted::{Arrivals, Order, Packet, PolicySpec, Switch};
use bufgym_util::rng;
use divan::counter::ItemsCount;
use divan::{Bencher, black_box};

fn main() {
    divan::main();
}

const PORTS: u32 = 64;
const BUFFER: u64 = 6_400;
const PACKETS: u64 = 2_000_000;

/// Packets per slot. Their ports are random; a quarter of the ports get more than half of the
/// packets. More packets arrive than leave, so the buffer is full and every policy has decisions to
/// make.
const PER_SLOT: u64 = 80;

fn load() -> Arrivals {
    let mut random = rng::stream(1, "slotted bench", 0);
    let packets = (0..PACKETS)
        .map(|index| {
            let few = rng::below(&mut random, 2) == 0;
            let ports = if few { PORTS / 4 } else { PORTS };
            let port = rng::below(&mut random, ports.into());
            let port = u32::try_from(port).expect("below the number of ports");
            Packet::unit(index / PER_SLOT, port)
        })
        .collect();
    Arrivals::new(packets, PORTS).expect("the packets are right by construction")
}

const POLICIES: [&str; 8] = [
    "cs",
    "st",
    "dt",
    "harmonic",
    "lqd",
    "followlqd",
    "credence",
    "opt",
];

#[divan::bench(args = POLICIES, sample_count = 15, sample_size = 1)]
fn arrivals(bencher: Bencher, policy: &str) {
    let policy: PolicySpec = policy.parse().expect("a known policy");
    let switch = Switch::new(PORTS, BUFFER, Order::Fifo).expect("a switch");
    let load = load();
    bencher
        .counter(ItemsCount::new(PACKETS))
        .bench_local(|| policy.run(black_box(&switch), black_box(&load), 1, false));
}
