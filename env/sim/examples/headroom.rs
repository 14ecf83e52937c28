//! Mean FCT of heuristic policies relative to DT (α = 1): how much gain is possible?
//!
//! `cargo run --release -p bufgym-sim --example headroom -- [traces] [setting=value ...]`

use bufgym_sim::rng::{Split, trace_seed};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::PolicySpec;
use bufgym_sim::traffic::generate;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let traces: u64 = arguments.next().map_or(Ok(24), |text| text.parse())?;
    let mut scenario = Scenario::default();
    for setting in arguments {
        scenario.set(&setting)?;
    }
    let names = [
        "dt",
        "st",
        "cs",
        "edt",
        "dt:alpha=0.25",
        "dt:alpha=2",
        "dt:alpha=8",
        "dt:alpha=32",
        "unlimited",
    ];
    let mut baseline = Vec::new();
    for name in names {
        let policy: PolicySpec = name.parse()?;
        let (mut ratios, mut packets, mut wall) = (0.0, 0, 0.0);
        for (place, index) in (0..traces).enumerate() {
            let trace = generate(&scenario, trace_seed(Split::Validation, 0, index));
            let outcome = policy.run(&scenario, &trace)?;
            if name == "dt" {
                baseline.push(outcome.summary.mean_fct_ms);
            }
            ratios += outcome.summary.mean_fct_ms / baseline[place];
            packets += outcome.summary.packets_forwarded;
            wall += outcome.summary.wall_s;
        }
        println!(
            "{name:14} {:.3}   {:.2} M packets/s",
            ratios / traces as f64,
            packets as f64 / wall * 1e-6
        );
    }
    Ok(())
}
