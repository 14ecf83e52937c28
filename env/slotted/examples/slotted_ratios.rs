//! Worst ratios of the optimum to every policy over random small instances of the slotted model, next
//! to the proved bounds.
//!
//! `cargo run --release -p bufgym-slotted --example slotted_ratios -- [instances]`

use bufgym_slotted::opt::optimum;
use bufgym_slotted::policy::LargestWorkDrop;
use bufgym_slotted::{Arrivals, Kind, NoObserver, Order, Packet, Packets, PolicySpec, Switch, run};
use bufgym_util::rng;

type Failure = Box<dyn std::error::Error>;

/// Number of ports, buffer size, number of packets and largest work of the instances.
struct Size {
    ports: u32,
    buffer: u64,
    packets: usize,
    work: u64,
}

const UNIT: Size = Size {
    ports: 4,
    buffer: 12,
    packets: 80,
    work: 1,
};
const WORK: Size = Size {
    ports: 3,
    buffer: 6,
    packets: 26,
    work: 6,
};

fn main() -> Result<(), Failure> {
    let instances = match std::env::args().nth(1) {
        Some(text) => text.parse()?,
        None => 3_000,
    };
    println!(
        "{instances} instances, N = {}, B = {}, unit packets",
        UNIT.ports, UNIT.buffer
    );
    worst(
        &[
            "cs",
            "st",
            "dt",
            "harmonic",
            "lqd",
            "followlqd",
            "credence",
            "credence:flip=1",
        ],
        &UNIT,
        instances,
    )?;
    println!(
        "{instances} instances, N = {}, B = {}, work 1 to {}",
        WORK.ports, WORK.buffer, WORK.work
    );
    worst(&["cs", "lqd", "bpd", "bad", "lwd"], &WORK, instances)?;
    theorem_5(instances)
}

/// Draws bursts for few ports and gaps, different for every instance.
fn instance(size: &Size, index: u64) -> Result<(Switch, Arrivals), Failure> {
    let mut random = rng::stream(1, "slotted ratios", index);
    let mut below = |bound: u64| {
        let drawn = rng::below(&mut random, bound);
        u32::try_from(drawn).expect("all bounds are small")
    };
    let mut slot = 0;
    let mut port = 0;
    let packets = (0..size.packets)
        .map(|_| {
            if below(4) == 0 {
                port = below(size.ports.into());
                slot += u64::from(below(3));
            }
            let work = 1 + below(size.work);
            Packet {
                work,
                ..Packet::unit(slot, port)
            }
        })
        .collect();
    let switch = Switch::new(size.ports, size.buffer, Order::Pq)?;
    Ok((switch, Arrivals::new(packets, size.ports)?))
}

fn worst(policies: &[&str], size: &Size, instances: u64) -> Result<(), Failure> {
    let specs: Vec<PolicySpec> = policies
        .iter()
        .map(|name| name.parse())
        .collect::<Result<_, _>>()?;
    let mut worst = vec![1.0_f64; specs.len()];
    for index in 0..instances {
        let (switch, arrivals) = instance(size, index)?;
        let best = optimum(&switch, &arrivals, None)?.transmitted as f64;
        for (worst, spec) in worst.iter_mut().zip(&specs) {
            let found = spec.run(&switch, &arrivals, index, false)?;
            *worst = worst.max(best / found.transmitted as f64);
        }
    }
    for (name, worst) in policies.iter().zip(worst) {
        println!("  {name:<16} {worst:.3}");
    }
    Ok(())
}

/// Compares LWD with the flush of the analysis with the bound `1 + B/(T + B)`.
fn theorem_5(instances: u64) -> Result<(), Failure> {
    let (mut worst, mut nearest) = (1.0_f64, 0.0_f64);
    for index in 0..instances {
        let (switch, arrivals) = instance(&WORK, index)?;
        let best = optimum(&switch, &arrivals, None)?.transmitted as f64;
        let mut policy = LargestWorkDrop::flushing();
        let mut queues = Packets::new(&switch, Kind::Work);
        let outcome = run(
            &mut queues,
            &mut policy,
            arrivals.packets(),
            None,
            &mut NoObserver,
        )?;
        let between = policy.iterations().and_then(|found| found.least_between);
        let buffer = switch.buffer as f64;
        let bound = 1.0 + buffer / (between.unwrap_or(0) as f64 + buffer);
        let ratio = best / outcome.transmitted as f64;
        worst = worst.max(ratio);
        nearest = nearest.max(ratio / bound);
    }
    println!(
        "  {:<16} {worst:.3}, at most {nearest:.3} of 1 + B/(T + B)",
        "lwd:flush=true"
    );
    Ok(())
}
