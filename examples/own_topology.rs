//! A fat-tree of your own, made link by link: `cargo run --release --example own_topology`.

use std::fmt::Write;

use bufgym::sim::scenario::Scenario;
use bufgym::sim::switch::PolicySpec;
use bufgym::sim::traffic;
use bufgym::util::rng::{Split, trace_seed};

/// The links of a fat-tree of switches with `k` ports (Al-Fares, Loukissas and Vahdat, SIGCOMM 2008): `k` pods of
/// `k / 2` edge and `k / 2` aggregation switches, `k³ / 4` hosts. Links between pods are longer.
fn fat_tree(k: usize) -> String {
    let half = k / 2;
    let mut links = String::new();
    let mut link = |a: String, b: String, delay_ns: u32| {
        let _ = write!(links, "{a},{b},10e9,{delay_ns} ");
    };
    for pod in 0..k {
        for edge in 0..half {
            for port in 0..half {
                let host = (pod * half + edge) * half + port;
                link(format!("h{host}"), format!("edge{pod}-{edge}"), 500);
                link(format!("edge{pod}-{edge}"), format!("pod{pod}-{port}"), 500);
            }
        }
        for switch in 0..half {
            for port in 0..half {
                let core = switch * half + port;
                link(format!("pod{pod}-{switch}"), format!("core{core}"), 2_000);
            }
        }
    }
    links
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut scenario = Scenario::preset("ndt-16x1g")?;
    scenario.set_all([
        format!("topology={}", fat_tree(4)),
        "demand=uniform".to_owned(),
        "load=0.6".to_owned(),
        "measure_ms=20".to_owned(),
    ])?;
    let trace = traffic::generate(&scenario, trace_seed(Split::Train, 1, 0));
    for policy in ["dt", "dt:alpha=8", "cs", "unlimited"] {
        let policy: PolicySpec = policy.parse()?;
        let summary = policy.run(&scenario, &trace)?.summary;
        println!(
            "{policy}: mean FCT {:.3} ms, {} of {} flows",
            summary.mean_fct_ms, summary.completed, summary.flows
        );
    }
    Ok(())
}
