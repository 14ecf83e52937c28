//! Cost per packet against the number of ports and of concurrent flows.
//!
//! `cargo bench -p bufgym-sim --bench scaling`

#[path = "../examples/scaling/load.rs"]
mod load;

use divan::counter::ItemsCount;
use divan::{Bencher, black_box};
use load::{FLOWS, Load, PORTS};

fn main() {
    divan::main();
}

/// Every iteration forwards as many packets.
const PACKETS: u64 = 100_000;

fn forward(bencher: Bencher, load: Load) {
    let mut simulator = load.simulator();
    bencher
        .counter(ItemsCount::new(PACKETS))
        .bench_local(|| load::forward(black_box(&mut simulator), PACKETS));
}

#[divan::bench(args = PORTS, sample_count = 20, sample_size = 1)]
fn ports(bencher: Bencher, ports: u32) {
    forward(bencher, Load::of_ports(ports));
}

#[divan::bench(args = FLOWS, sample_count = 20, sample_size = 1)]
fn flows(bencher: Bencher, flows: u32) {
    forward(bencher, Load::of_flows(flows));
}
