//! The figures of an [`Evaluation`] that are curves: distributions and sorted ratios.

use super::plot::{Curve, Plot, distribution, extent_x, extent_y, logarithmic};
use super::{Figure, FigureError, style};
use crate::data::{Evaluation, Role, TraceResult};
use crate::{format, stats};

/// Upper end of the axis of ratios, so that a policy that is ten times worse does not flatten the
/// curves of all others.
const RATIO_CEILING: f64 = 2.5;

/// Builds one curve per policy. `place` computes each point from the rank of a value, the value and the
/// number of values.
fn curves(
    evaluation: &Evaluation,
    value: fn(&TraceResult) -> Option<f64>,
    place: impl Fn(usize, f64, usize) -> (f64, f64),
) -> Vec<Curve> {
    let policies = evaluation.policies.iter().enumerate();
    policies
        .map(|(index, summary)| {
            let policy = &summary.entry.policy;
            let mut values: Vec<f64> = evaluation.results_of(policy).filter_map(value).collect();
            values.sort_by(f64::total_cmp);
            let count = values.len();
            let points = values
                .iter()
                .enumerate()
                .map(|(rank, v)| place(rank, *v, count));
            let stroke = style::stroke(policy, summary.entry.role, index);
            Curve::new(summary.entry.label(), stroke, points)
        })
        .filter(|curve| !curve.points.is_empty())
        .collect()
}

/// Returns the points of a step-shaped distribution function, which rises by `rise` at each value.
fn steps(points: &[(f64, f64)], rise: f64) -> Vec<(f64, f64)> {
    points
        .iter()
        .flat_map(|&(value, share)| [(value, share - rise), (value, share)])
        .collect()
}

/// Draws the distribution of the mean FCT per trace (Fig. 8a).
pub(crate) fn mean_fct_cdf(evaluation: &Evaluation) -> Result<Option<Figure>, FigureError> {
    let mut curves = curves(
        evaluation,
        |r| r.all_flows.mean_fct_ms,
        |rank, value, count| (value, (rank + 1) as f64 / count as f64),
    );
    for curve in &mut curves {
        curve.points = steps(&curve.points, 1.0 / curve.points.len() as f64);
    }
    let Some((least, most)) = extent_x(&curves) else {
        return Ok(None);
    };
    let description = format!(
        "Cumulative distribution of the mean flow completion time over {} traces, one curve per \
         policy; further left is better. Medians: {}.",
        evaluation.traces,
        listed(evaluation, |r| r.all_flows.mean_fct_ms, " ms"),
    );
    let plot = Plot {
        name: "cdf-mean-fct",
        title: "Mean FCT per trace",
        description,
        curves: &curves,
        x: logarithmic(least * 0.95, most * 1.05),
        x_label: "mean FCT of a trace, ms (log scale)".to_owned(),
        x_tick: format::tick,
        y: 0.0..1.0,
        y_label: "share of traces",
        level: None,
    };
    plot.draw().map(Some)
}

/// Draws the ratio of mean FCTs to DT per trace, sorted (Fig. 8b).
pub(crate) fn mean_ratio(evaluation: &Evaluation) -> Result<Option<Figure>, FigureError> {
    sorted_ratios(
        evaluation,
        "ratio-mean-fct",
        "Mean FCT relative to DT, per trace",
        |r| r.ratio_to_dt,
        "mean FCT / mean FCT of DT",
    )
}

/// Draws the ratio of 99th percentiles to DT per trace, sorted (Fig. 8c).
pub(crate) fn tail_ratio(evaluation: &Evaluation) -> Result<Option<Figure>, FigureError> {
    sorted_ratios(
        evaluation,
        "ratio-p99-fct",
        "p99 FCT relative to DT, per trace",
        |r| r.p99_ratio_to_dt,
        "p99 FCT / p99 FCT of DT",
    )
}

fn sorted_ratios(
    evaluation: &Evaluation,
    name: &str,
    title: &str,
    value: fn(&TraceResult) -> Option<f64>,
    y_label: &'static str,
) -> Result<Option<Figure>, FigureError> {
    let mut curves = curves(evaluation, value, |rank, value, count| {
        (100.0 * (rank as f64 + 0.5) / count as f64, value)
    });
    let Some((least, most)) = extent_y(&curves) else {
        return Ok(None);
    };
    let top = (most * 1.02).clamp(1.05, RATIO_CEILING);
    let bottom = (least * 0.98).min(0.95);
    for curve in &mut curves {
        cut_above(&mut curve.points, top);
    }
    let beyond = if most > top {
        " Curves that leave the top continue above it."
    } else {
        ""
    };
    let description = format!(
        "{title}: ratios sorted for each policy; below 1 the policy beats DT on that trace.{beyond} \
         Medians: {}.",
        listed(evaluation, value, ""),
    );
    let plot = Plot {
        name,
        title,
        description,
        curves: &curves,
        x: 0.0..100.0,
        x_label: "traces, each policy sorted, %".to_owned(),
        x_tick: format::tick,
        y: bottom..top,
        y_label,
        level: Some(1.0),
    };
    plot.draw().map(Some)
}

/// Ends an ascending curve at its crossing of `top`. Otherwise, the drawing library would draw the rest along
/// the edge.
fn cut_above(points: &mut Vec<(f64, f64)>, top: f64) {
    let Some(first) = points.iter().position(|point| point.1 > top) else {
        return;
    };
    let beyond = points[first];
    points.truncate(first);
    if let Some(&(x, y)) = points.last() {
        points.push((x + (beyond.0 - x) * (top - y) / (beyond.1 - y), top));
    }
}

/// Draws the distribution of the time between decisions (Fig. 12b).
pub fn trigger_intervals(evaluation: &Evaluation) -> Result<Option<Figure>, FigureError> {
    let learned = evaluation.trigger_intervals.iter().filter(|t| t.count > 0);
    let curves: Vec<Curve> = learned
        .enumerate()
        .map(|(index, intervals)| {
            let points = distribution(&intervals.percentiles_ms);
            let points = points.into_iter().map(|(ms, y)| (ms.max(1e-6), y));
            let stroke = style::stroke(&intervals.policy, Role::Learned, index);
            Curve::new(evaluation.label(&intervals.policy), stroke, points)
        })
        .collect();
    let Some((least, most)) = extent_x(&curves) else {
        return Ok(None);
    };
    let medians = evaluation.trigger_intervals.iter().filter_map(|intervals| {
        let median = intervals
            .percentiles_ms
            .get(intervals.percentiles_ms.len() / 2)?;
        let name = evaluation.label(&intervals.policy);
        Some(format!("{name} {} ms", format::significant(*median)))
    });
    let description = format!(
        "Cumulative distribution of the time between two decisions of a learned policy. Medians: {}.",
        medians.collect::<Vec<_>>().join(", "),
    );
    let plot = Plot {
        name: "trigger-intervals",
        title: "Time between decisions",
        description,
        curves: &curves,
        x: logarithmic(least * 0.9, most * 1.1),
        x_label: "time between decisions, ms (log scale)".to_owned(),
        x_tick: format::tick,
        y: 0.0..1.0,
        y_label: "share of decisions",
        level: None,
    };
    plot.draw().map(Some)
}

/// Describes the median of every policy in words.
fn listed(evaluation: &Evaluation, value: fn(&TraceResult) -> Option<f64>, unit: &str) -> String {
    let medians = evaluation.policies.iter().filter_map(|summary| {
        let policy = &summary.entry.policy;
        let mut values: Vec<f64> = evaluation.results_of(policy).filter_map(value).collect();
        values.sort_by(f64::total_cmp);
        let median = stats::nearest_rank(&values, 0.5)?;
        let name = summary.entry.label();
        Some(format!("{name} {}{unit}", format::significant(median)))
    });
    medians.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_ends_where_it_leaves_the_figure() {
        let mut points = vec![(0.0, 1.0), (10.0, 2.0), (20.0, 4.0), (30.0, 9.0)];
        cut_above(&mut points, 3.0);
        assert_eq!(points, [(0.0, 1.0), (10.0, 2.0), (15.0, 3.0)]);
        let mut outside = vec![(0.0, 5.0)];
        cut_above(&mut outside, 3.0);
        assert!(outside.is_empty());
    }

    #[test]
    fn a_distribution_rises_at_each_value() {
        let points = steps(&[(1.0, 0.5), (2.0, 1.0)], 0.5);
        assert_eq!(points, [(1.0, 0.0), (1.0, 0.5), (2.0, 0.5), (2.0, 1.0)]);
    }
}
