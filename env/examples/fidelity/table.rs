//! Numbers as text, and the table of one comparison.

use std::fmt::Write as _;

use crate::comparison::{Comparison, Row, Verdict};
use crate::metrics::Metric;

const HEADER: &str = "\
| | ns-3, one run | ns-3, jittered | here, one run | here, jittered | here / ns-3 | target |
|---|--:|--:|--:|--:|--:|---|
";

/// Every metric of a comparison, in Markdown.
pub fn of(comparison: &Comparison) -> String {
    let mut text = HEADER.to_owned();
    for row in comparison.rows() {
        // Writing to a String cannot fail.
        let _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {:.3} | {} |",
            row.metric.name(),
            number(row.metric, row.ns3),
            row.ns3_jittered.map_or(String::new(), |(mean, deviation)| {
                spread(row.metric, mean, deviation)
            }),
            number(row.metric, row.plain),
            spread(row.metric, row.mean, row.deviation),
            row.ratio(),
            target(&row),
        );
    }
    text
}

/// A tolerance in per cent.
pub fn tolerance(tolerance: f64) -> String {
    format!("{} %", tolerance * 100.0)
}

/// A verdict in words.
pub const fn verdict(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Met => "met",
        Verdict::WithinChance => "undecided",
        Verdict::Missed => "**missed**",
    }
}

fn target(row: &Row) -> String {
    match (row.tolerance, row.verdict()) {
        (Some(limit), Some(reached)) => format!("{}: {}", tolerance(limit), verdict(reached)),
        _ => String::new(),
    }
}

fn spread(metric: Metric, mean: f64, deviation: f64) -> String {
    if is_count(metric) {
        format!("{} ± {deviation:.0}", number(metric, mean))
    } else {
        format!("{} ± {deviation:.*}", number(metric, mean), decimals(mean))
    }
}

fn number(metric: Metric, value: f64) -> String {
    if is_count(metric) {
        grouped(value.round() as u64)
    } else {
        format!("{value:.*}", decimals(value))
    }
}

fn is_count(metric: Metric) -> bool {
    matches!(metric, Metric::Forwarded | Metric::Drops | Metric::Marks)
}

fn decimals(value: f64) -> usize {
    if value >= 100.0 { 1 } else { 2 }
}

/// With a comma at every third digit.
pub fn grouped(value: u64) -> String {
    let digits = value.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}
