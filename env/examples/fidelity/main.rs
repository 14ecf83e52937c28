//! Compares this simulator with ns-3 3.37 on the same flows.
//!
//! `cargo run --release -p bufgym-env --example fidelity`

#[path = "../../tests/fidelity/cases.rs"]
mod cases;
#[path = "../../tests/fidelity/comparison.rs"]
mod comparison;
#[path = "../../tests/fidelity/metrics.rs"]
mod metrics;
#[path = "../../tests/fidelity/reference.rs"]
mod reference;
#[path = "../../tests/fidelity/simulation.rs"]
mod simulation;

use std::error::Error;

use cases::{COMPETING, Case, ISOLATED};
use comparison::{Comparison, Row};
use metrics::Metric;

fn main() -> Result<(), Box<dyn Error>> {
    for case in ISOLATED.iter().filter(|case| exists(case)) {
        let (ns3, ours) = (reference::run(case)?, simulation::run(case)?);
        println!("{case}");
        for (theirs, our) in ns3.flows.iter().zip(&ours.flows) {
            let verdict = if our == theirs { "equal" } else { "DIFFERENT" };
            println!(
                "  {:>9} B  ns-3 {:>11} ns  ours {:>11} ns  {verdict}",
                theirs.size, theirs.fct_ns, our.fct_ns
            );
        }
    }
    for case in COMPETING.iter().filter(|case| exists(case)) {
        let comparison = Comparison::of(case)?;
        println!(
            "{case}\n  {:<30} {:>10} {:>17} {:>10} {:>19} {:>7} {:>9}",
            "", "ns-3", "ns-3 jittered", "ours", "ours jittered", "ratio", "target"
        );
        for row in comparison.rows() {
            print_row(&row);
        }
    }
    Ok(())
}

fn print_row(row: &Row) {
    let digits = if is_count(row.metric) { 0 } else { 3 };
    let number = |value: f64| format!("{value:.digits$}");
    let spread = |mean: f64, deviation: f64| format!("{mean:.digits$} ± {deviation:.digits$}");
    let target = match (row.tolerance, row.verdict()) {
        (Some(tolerance), Some(verdict)) => {
            format!("{:.1} % {verdict:?}", tolerance * 100.0)
        }
        _ => String::new(),
    };
    println!(
        "  {:<30} {:>10} {:>17} {:>10} {:>19} {:>7.3} {target:>14}",
        row.metric.name(),
        number(row.ns3),
        row.ns3_jittered
            .map_or(String::new(), |(mean, deviation)| spread(mean, deviation)),
        number(row.plain),
        spread(row.mean, row.deviation),
        row.ratio(),
    );
}

/// TEMPORARY: some transports do not exist yet.
fn exists(case: &Case) -> bool {
    case.scenario()
        .inspect_err(|error| println!("{case}: skipped: {error}"))
        .is_ok()
}

fn is_count(metric: Metric) -> bool {
    matches!(metric, Metric::Forwarded | Metric::Drops | Metric::Marks)
}
