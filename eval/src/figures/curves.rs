//! The figures that are curves over traces: distributions and sorted ratios.

use plotters::coord::combinators::WithKeyPoints;
use plotters::coord::ranged1d::{AsRangedCoord, Ranged, ValueFormatter};
use plotters::prelude::*;

use super::style::{self, Canvas, Drawn, Key, Stroke, TYPE, WIDTH, text};
use super::{Figure, FigureError, draw};
use crate::data::{Evaluation, TraceResult};
use crate::findings::short_name;
use crate::format;

/// The height of the plot without its legend.
pub(super) const PLOT: u32 = 300;
/// Ratios above this leave the figure: a policy ten times worse would flatten all others.
const RATIO_CEILING: f64 = 2.5;

/// One line of a figure.
pub(super) struct Curve {
    pub(super) key: Key,
    pub(super) points: Vec<(f64, f64)>,
}

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
            Curve {
                key: Key {
                    name: policy.clone(),
                    stroke,
                },
                points: points.collect(),
            }
        })
        .filter(|curve| !curve.points.is_empty())
        .collect()
}

/// A logarithmic axis with ticks at 1, 2 and 5 in each decade, or at the decades where there are
/// many: the library marks decades only, of which there is often just one.
pub(super) fn logarithmic(least: f64, most: f64) -> WithKeyPoints<LogCoord<f64>> {
    let least = least.max(1e-6);
    let decades = (most / least).log10();
    let steps: &[f64] = if decades > 2.5 {
        &[1.0]
    } else {
        &[1.0, 2.0, 5.0]
    };
    let exponents = least.log10().floor() as i32..=most.log10().ceil() as i32;
    let ticks = exponents.flat_map(|e| steps.iter().map(move |step| step * 10f64.powi(e)));
    let ticks: Vec<f64> = ticks.filter(|tick| (least..=most).contains(tick)).collect();
    (least..most).log_scale().with_key_points(ticks)
}

/// The points of a distribution function that rises at each value.
pub(super) fn steps(points: &[(f64, f64)], rise: f64) -> Vec<(f64, f64)> {
    points
        .iter()
        .flat_map(|&(value, share)| [(value, share - rise), (value, share)])
        .collect()
}

/// Distribution of the mean FCT per trace (Fig. 8a).
pub fn mean_fct_cdf(evaluation: &Evaluation) -> Result<Option<Figure>, FigureError> {
    let mut curves = curves(
        evaluation,
        |r| r.all_flows.mean_fct_ms,
        |rank, value, count| (value, (rank + 1) as f64 / count as f64),
    );
    for curve in &mut curves {
        curve.points = steps(&curve.points, 1.0 / curve.points.len() as f64);
    }
    let values = curves
        .iter()
        .flat_map(|curve| curve.points.iter().map(|p| p.0));
    let Some((least, most)) = style::extent(values) else {
        return Ok(None);
    };
    let description = format!(
        "Cumulative distribution of the mean flow completion time over {} traces, one curve per \
         policy; further left is better. Medians: {}.",
        evaluation.traces,
        listed(evaluation, |r| r.all_flows.mean_fct_ms, " ms"),
    );
    let axes = Axes {
        x: "mean FCT of a trace, ms (log scale)".to_owned(),
        y: "share of traces",
        x_tick: format::tick,
    };
    plot(
        "cdf-mean-fct",
        "Mean FCT per trace",
        description,
        &curves,
        logarithmic(least * 0.95, most * 1.05),
        0.0..1.0,
        axes,
        None,
    )
    .map(Some)
}

/// Ratio of mean FCTs to DT per trace, sorted (Fig. 8b).
pub fn mean_ratio(evaluation: &Evaluation) -> Result<Option<Figure>, FigureError> {
    let axes = Axes {
        x: "traces, each policy sorted, %".to_owned(),
        y: "mean FCT / mean FCT of DT",
        x_tick: format::tick,
    };
    sorted_ratios(
        evaluation,
        "ratio-mean-fct",
        "Mean FCT relative to DT, per trace",
        |r| r.ratio_to_dt,
        axes,
    )
}

/// Ratio of 99th percentiles to DT per trace, sorted (Fig. 8c).
pub fn tail_ratio(evaluation: &Evaluation) -> Result<Option<Figure>, FigureError> {
    let axes = Axes {
        x: "traces, each policy sorted, %".to_owned(),
        y: "p99 FCT / p99 FCT of DT",
        x_tick: format::tick,
    };
    sorted_ratios(
        evaluation,
        "ratio-p99-fct",
        "p99 FCT relative to DT, per trace",
        |r| r.p99_ratio_to_dt,
        axes,
    )
}

fn sorted_ratios(
    evaluation: &Evaluation,
    name: &str,
    title: &str,
    value: fn(&TraceResult) -> Option<f64>,
    axes: Axes,
) -> Result<Option<Figure>, FigureError> {
    let mut curves = curves(evaluation, value, |rank, value, count| {
        (100.0 * (rank as f64 + 0.5) / count as f64, value)
    });
    let values = curves
        .iter()
        .flat_map(|curve| curve.points.iter().map(|p| p.1));
    let Some((least, most)) = style::extent(values) else {
        return Ok(None);
    };
    let top = (most * 1.02).clamp(1.05, RATIO_CEILING);
    let bottom = (least * 0.98).min(0.95);
    for curve in &mut curves {
        cut_above(&mut curve.points, top);
    }
    let beyond = if most > top {
        " Curves that leave the top go on above it."
    } else {
        ""
    };
    let description = format!(
        "{title}: ratios sorted for each policy; below 1 the policy beats DT on that trace.{beyond} \
         Medians: {}.",
        listed(evaluation, value, ""),
    );
    plot(
        name,
        title,
        description,
        &curves,
        0.0..100.0,
        bottom..top,
        axes,
        Some(1.0),
    )
    .map(Some)
}

/// Ends an ascending curve where it crosses `top`: the drawing library would run it along the edge.
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

/// Values that are percentiles in equal steps, as a curve.
pub(super) fn distribution(percentiles: &[f64]) -> Vec<(f64, f64)> {
    let last = percentiles.len().saturating_sub(1).max(1) as f64;
    let ranked = percentiles.iter().enumerate();
    ranked.map(|(rank, v)| (*v, rank as f64 / last)).collect()
}

/// Distribution of the time between decisions (Fig. 12b).
pub fn trigger_intervals(evaluation: &Evaluation) -> Result<Option<Figure>, FigureError> {
    let learned = evaluation.trigger_intervals.iter().filter(|t| t.count > 0);
    let curves: Vec<Curve> = learned
        .enumerate()
        .map(|(index, intervals)| {
            let points = distribution(&intervals.percentiles_ms);
            let points = points.into_iter().map(|(ms, y)| (ms.max(1e-6), y));
            let stroke = style::stroke(&intervals.policy, crate::data::Role::Learned, index);
            Curve {
                key: Key {
                    name: intervals.policy.clone(),
                    stroke,
                },
                points: points.collect(),
            }
        })
        .collect();
    let values = curves
        .iter()
        .flat_map(|curve| curve.points.iter().map(|p| p.0));
    let Some((least, most)) = style::extent(values) else {
        return Ok(None);
    };
    let medians = evaluation.trigger_intervals.iter().filter_map(|intervals| {
        let median = intervals
            .percentiles_ms
            .get(intervals.percentiles_ms.len() / 2)?;
        let name = short_name(&intervals.policy);
        Some(format!("{name} {} ms", format::significant(*median)))
    });
    let description = format!(
        "Cumulative distribution of the time between two decisions of a learned policy. Medians: {}.",
        medians.collect::<Vec<_>>().join(", "),
    );
    let axes = Axes {
        x: "time between decisions, ms (log scale)".to_owned(),
        y: "share of decisions",
        x_tick: format::tick,
    };
    plot(
        "trigger-intervals",
        "Time between decisions",
        description,
        &curves,
        logarithmic(least * 0.9, most * 1.1),
        0.0..1.0,
        axes,
        None,
    )
    .map(Some)
}

/// The median of every policy, as text.
fn listed(evaluation: &Evaluation, value: fn(&TraceResult) -> Option<f64>, unit: &str) -> String {
    let medians = evaluation.policies.iter().filter_map(|summary| {
        let policy = &summary.entry.policy;
        let mut values: Vec<f64> = evaluation.results_of(policy).filter_map(value).collect();
        values.sort_by(f64::total_cmp);
        let median = crate::stats::nearest_rank(&values, 0.5)?;
        let name = short_name(policy);
        Some(format!("{name} {}{unit}", format::significant(median)))
    });
    medians.collect::<Vec<_>>().join(", ")
}

/// What stands at the axes.
pub(super) struct Axes {
    pub(super) x: String,
    pub(super) y: &'static str,
    /// A value of the horizontal axis as text.
    pub(super) x_tick: fn(f64) -> String,
}

#[expect(
    clippy::too_many_arguments,
    reason = "one call per figure, each argument a part of it"
)]
pub(super) fn plot<X, Y>(
    name: &str,
    title: &str,
    description: String,
    curves: &[Curve],
    x: X,
    y: Y,
    axes: Axes,
    level: Option<f64>,
) -> Result<Figure, FigureError>
where
    X: AsRangedCoord<Value = f64>,
    X::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let keys: Vec<Key> = curves
        .iter()
        .map(|curve| Key {
            name: curve.key.name.clone(),
            stroke: curve.key.stroke,
        })
        .collect();
    let top = style::legend_height(&keys);
    draw(name, (WIDTH, PLOT + top), title, description, |canvas| {
        style::legend(canvas, &keys)?;
        let (_, area) = canvas.split_vertically(top);
        axes_and_curves(&area, curves, x, y, axes, level)
    })
}

fn axes_and_curves<X, Y>(
    area: &Canvas,
    curves: &[Curve],
    x: X,
    y: Y,
    axes: Axes,
    level: Option<f64>,
) -> Drawn
where
    X: AsRangedCoord<Value = f64>,
    X::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
    Y: AsRangedCoord<Value = f64>,
    Y::CoordDescType: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    let mut chart = ChartBuilder::on(area)
        .margin_right(14)
        .margin_top(6)
        .x_label_area_size(44)
        .y_label_area_size(58)
        .build_cartesian_2d(x, y)
        .map_err(text)?;
    let tick = |value: &f64| format::tick(*value);
    chart
        .configure_mesh()
        .x_desc(axes.x)
        .y_desc(axes.y)
        .x_labels(6)
        .y_labels(6)
        .x_label_formatter(&|value: &f64| (axes.x_tick)(*value))
        .y_label_formatter(&tick)
        .label_style(style::label(TYPE))
        .axis_desc_style(style::label(TYPE))
        .axis_style(style::INK.mix(0.45))
        .bold_line_style(style::INK.mix(0.12))
        .light_line_style(TRANSPARENT)
        .draw()
        .map_err(text)?;
    if let Some(level) = level {
        let (left, right) = (chart.x_range().start, chart.x_range().end);
        let line = PathElement::new(vec![(left, level), (right, level)], style::INK.mix(0.6));
        chart.draw_series([line]).map_err(text)?;
    }
    // The curves that matter most are drawn last, on top.
    for curve in curves.iter().rev() {
        let points = curve.points.iter().copied();
        let Stroke {
            colour,
            width,
            dash,
        } = curve.key.stroke;
        let style = colour.stroke_width(width);
        match dash {
            None => chart.draw_series(LineSeries::new(points, style)).map(drop),
            Some((on, off)) => chart
                .draw_series(DashedLineSeries::new(points, on, off, style))
                .map(drop),
        }
        .map_err(text)?;
    }
    Ok(())
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
