//! Queue length against threshold over time (Fig. 10 of the NDT paper): per bin the largest queue
//! as a bar, its part above the smallest threshold dark, the mean queue as a line.

use std::collections::BTreeSet;

use plotters::prelude::*;

use super::style::{self, Canvas, Drawn, text};
use super::{Figure, FigureError, draw, panels};
use crate::data::{Entry, Role, Timeline, TimelineSeries};
use crate::format;

/// Draws one figure per port, one panel per policy; `entries` are the policies in the order that determines
/// colours.
pub fn timelines(timeline: &Timeline, entries: &[&Entry]) -> Result<Vec<Figure>, FigureError> {
    let ports: BTreeSet<u32> = timeline.series.iter().map(|series| series.port).collect();
    ports
        .into_iter()
        .map(|port| of_port(entries, timeline, port))
        .collect()
}

fn of_port(entries: &[&Entry], timeline: &Timeline, port: u32) -> Result<Figure, FigureError> {
    let series: Vec<&TimelineSeries> = timeline.series.iter().filter(|s| s.port == port).collect();
    let names: Vec<&str> = series.iter().map(|s| label(entries, &s.policy)).collect();
    let description = format!(
        "Queue of port {port} on trace {}, in bins of {} ms from {} ms on, one panel per policy \
         ({}). {KEY}",
        timeline.trace,
        format::significant(timeline.bin_ms),
        format::significant(timeline.start_ms),
        names.join(", "),
    );
    let rows = series.iter().map(|series| Row {
        label: label(entries, &series.policy).to_owned(),
        stroke: policy_stroke(entries, &series.policy),
        series,
    });
    panels(
        &format!("timeline-port-{port}"),
        &format!("Queue and threshold at port {port}"),
        description,
        timeline,
        &rows.collect::<Vec<Row>>(),
    )
}

/// Explanation of bars and lines.
pub const KEY: &str = "Bars: largest queue of the bin, dark where it exceeds the smallest threshold of \
                       the bin (the coloured line; thresholds above the panel are not shown). Thin \
                       line: mean queue.";

/// One row of panels: a series with its name.
pub struct Row<'a> {
    /// The name of the series.
    pub label: String,
    /// The stroke of the thresholds and the colour of the bars.
    pub stroke: style::Stroke,
    /// The series.
    pub series: &'a TimelineSeries,
}

/// Draws a figure with the panels one below the other, on the same scale.
///
/// # Errors
/// Fails if the drawing library refuses the figure.
pub fn panels(
    name: &str,
    title: &str,
    description: String,
    timeline: &Timeline,
    rows: &[Row],
) -> Result<Figure, FigureError> {
    let queues = rows.iter().flat_map(|row| &row.series.max_queue_bytes);
    let longest = queues.max().copied().unwrap_or(0);
    let top_kb = (longest as f64 * 1.1).max(timeline.buffer_bytes as f64 * 0.05) / 1e3;
    let size = (style::WIDTH, panels::height(rows.len()));
    draw(name, size, title, description, |canvas| {
        panels::stack(canvas, rows.len(), |panel, index, last| {
            draw_panel(panel, timeline, &rows[index], top_kb, last)
        })
    })
}

fn label<'a>(entries: &[&'a Entry], policy: &'a str) -> &'a str {
    let entry = entries.iter().find(|entry| entry.policy == policy);
    entry.map_or(policy, |entry| entry.label())
}

fn policy_stroke(entries: &[&Entry], policy: &str) -> style::Stroke {
    let index = entries.iter().position(|entry| entry.policy == policy);
    let role = index.map_or(Role::Heuristic, |index| entries[index].role);
    style::stroke(policy, role, index.unwrap_or(0))
}

fn draw_panel(panel: &Canvas, timeline: &Timeline, row: &Row, top_kb: f64, last: bool) -> Drawn {
    let Row {
        label,
        stroke,
        series,
    } = row;
    let bins = series.max_queue_bytes.len();
    let at = |bin: usize| timeline.start_ms + bin as f64 * timeline.bin_ms;
    let time = [at(0), at(bins)];
    let mut chart = panels::axes(panel, label, time, 0.0..top_kb, last)?;
    let bars = (0..bins).flat_map(|bin| {
        let (queue, threshold) = (series.max_queue_bytes[bin], series.min_threshold_bytes[bin]);
        bar(at(bin), at(bin + 1), queue, threshold, stroke.colour)
    });
    chart.draw_series(bars).map_err(text)?;
    let mean = series.mean_queue_bytes.iter().enumerate();
    let mean = mean.map(|(bin, bytes)| (at(bin) + timeline.bin_ms / 2.0, bytes / 1e3));
    chart
        .draw_series(LineSeries::new(mean, style::INK.stroke_width(1)))
        .map_err(text)?;
    let thresholds = series.min_threshold_bytes.iter().map(|t| *t as f64 / 1e3);
    for run in visible_runs(thresholds, top_kb) {
        let steps = run
            .iter()
            .flat_map(|&(bin, t)| [(at(bin), t), (at(bin + 1), t)]);
        chart
            .draw_series(LineSeries::new(steps, stroke.colour.stroke_width(2)))
            .map_err(text)?;
    }
    Ok(())
}

/// Builds a bar in up to two parts: the part within the threshold is tinted, the part above it is dark.
fn bar(
    left: f64,
    right: f64,
    queue: u64,
    threshold: u64,
    colour: RGBColor,
) -> Vec<Rectangle<(f64, f64)>> {
    let kb = |bytes: u64| bytes as f64 / 1e3;
    let edge = queue.min(threshold);
    let parts = [(0, edge, 0.3), (edge, queue, 0.85)];
    let visible = parts.into_iter().filter(|(low, high, _)| high > low);
    visible
        .map(|(low, high, strength)| {
            Rectangle::new(
                [(left, kb(low)), (right, kb(high))],
                colour.mix(strength).filled(),
            )
        })
        .collect()
}

/// Returns runs of consecutive bins whose threshold lies within the panel.
pub(crate) fn visible_runs(
    thresholds: impl Iterator<Item = f64>,
    top: f64,
) -> Vec<Vec<(usize, f64)>> {
    let mut runs: Vec<Vec<(usize, f64)>> = Vec::new();
    let mut open = false;
    for (bin, threshold) in thresholds.enumerate() {
        if threshold > top {
            open = false;
            continue;
        }
        if !open {
            runs.push(Vec::new());
            open = true;
        }
        if let Some(run) = runs.last_mut() {
            run.push((bin, threshold));
        }
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_above_the_panel_interrupt_the_line() {
        let runs = visible_runs([5.0, 50.0, 6.0, 7.0].into_iter(), 10.0);
        assert_eq!(runs, vec![vec![(0, 5.0)], vec![(2, 6.0), (3, 7.0)]]);
    }

    #[test]
    fn a_bar_is_split_at_the_threshold() {
        assert_eq!(bar(0.0, 1.0, 100, 200, BLACK).len(), 1);
        assert_eq!(bar(0.0, 1.0, 300, 200, BLACK).len(), 2);
        assert!(bar(0.0, 1.0, 0, 200, BLACK).is_empty());
    }
}
