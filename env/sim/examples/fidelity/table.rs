//! Numbers as text, and the table of one comparison.

use std::fmt::Write as _;

use bufgym_util::convert::floor_u64;

use crate::comparison::Comparison;
use crate::metrics::{Metric, Spread};

/// Returns every metric of a comparison, in Markdown.
pub fn of(comparison: &Comparison) -> String {
    let rows = comparison.rows();
    let jittered_in_both = rows.iter().any(|row| row.ns3_jittered.is_some());
    let (header, rule) = if jittered_in_both {
        (" ns-3, jittered | here / ns-3 |", "--:|--:|")
    } else {
        ("", "")
    };
    let mut text = format!("| | ns-3 | here | here, jittered |{header}\n|---|--:|--:|--:|{rule}\n");
    for row in rows {
        // Writing to a String cannot fail.
        let _ = write!(
            text,
            "| {} | {} | {} | {} |",
            row.metric.name(),
            number(row.metric, row.ns3),
            number(row.metric, row.here),
            spread(row.metric, &row.jittered),
        );
        match row.ns3_jittered {
            Some(ns3) => {
                let ratio = row.jittered.relative_to(&ns3);
                let _ = write!(
                    text,
                    " {} | {} |",
                    spread(row.metric, &ns3),
                    relative(ratio)
                );
            }
            None if jittered_in_both => text.push_str(" | |"),
            None => {}
        }
        text.push('\n');
    }
    text
}

/// Returns a ratio with its standard error.
pub fn relative((ratio, error): (f64, f64)) -> String {
    format!("{ratio:.3} ± {error:.3}")
}

fn spread(metric: Metric, spread: &Spread) -> String {
    let mean = number(metric, spread.mean);
    let digits = if is_count(metric) {
        0
    } else {
        decimals(spread.mean)
    };
    format!("{mean} ± {:.digits$}", spread.deviation)
}

fn number(metric: Metric, value: f64) -> String {
    if is_count(metric) {
        grouped(floor_u64(value.round()))
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

/// Returns the number with a comma at every third digit.
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
