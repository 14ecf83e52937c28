//! The figures of an [`Explanation`].

use bufgym_env::control::{ALPHAS, INITIAL_INDEX, LOG_RANGE};
use bufgym_sim::switch::aqm::early::GAPS;
use bufgym_util::convert::floor_usize;
use plotters::prelude::*;

use super::{
    Decided, Dependence, DropOccupancy, Explanation, Factor, LevelCounts, Population, Steps,
};
use crate::data::Entry;
use crate::figures::axis::Ticked;
use crate::figures::plot::{self, Curve, Plot, distribution, extent_x, logarithmic};
use crate::figures::style::{self, Canvas, Drawn, Key, Stroke, WIDTH, text};
use crate::figures::{Figure, FigureError, draw, timeline};
use crate::findings::short_name;
use crate::format;

/// Ticks of the logarithmic features, in units of volume or time.
const TICKS: [f64; 8] = [0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0];

/// Draws all figures that the explanation has data for.
///
/// # Errors
/// Fails if the drawing library refuses a figure.
pub fn figures(explanation: &Explanation) -> Result<Vec<Figure>, FigureError> {
    let mut figures = Vec::new();
    for &decided in Decided::all(explanation.early.is_some()) {
        for dependence in &explanation.dependences {
            figures.push(of_dependence(explanation, dependence, decided)?);
        }
    }
    figures.push(histogram(&Histogram::alpha(), &explanation.alphas)?);
    if let Some(early) = &explanation.early {
        let gaps = explanation.early_gaps.unwrap_or(GAPS);
        figures.push(histogram(&Histogram::early(gaps), early)?);
    }
    if let Some(excerpt) = &explanation.timeline {
        let entries: Vec<&Entry> = explanation.drops.iter().map(|d| &d.entry).collect();
        figures.extend(timeline::timelines(excerpt, &entries)?);
    }
    figures.extend(drops(
        explanation,
        "drops-port",
        "Queue of the port when a packet is lost",
        |d| &d.port_share,
    )?);
    figures.extend(drops(
        explanation,
        "drops-buffer",
        "Bytes in the whole buffer when a packet is lost",
        |d| &d.buffer_share,
    )?);
    figures.extend(intervals(explanation)?);
    Ok(figures)
}

/// Returns the file name of a dependence's figure.
fn name_of(factor: Factor, decided: Decided) -> &'static str {
    let [alpha, early] = match factor {
        Factor::Queue => ["alpha-by-queue", "early-by-queue"],
        Factor::Enqueued => ["alpha-by-enqueued", "early-by-enqueued"],
        Factor::Dropped => ["alpha-by-dropped", "early-by-dropped"],
        Factor::Elapsed => ["alpha-by-elapsed", "early-by-elapsed"],
        Factor::OtherQueues => ["alpha-by-other-queues", "early-by-other-queues"],
    };
    match decided {
        Decided::Alpha => alpha,
        Decided::Early => early,
    }
}

fn is_share(factor: Factor) -> bool {
    matches!(factor, Factor::Queue | Factor::OtherQueues)
}

/// Formats a value on the scale of the observation.
fn in_units(factor: Factor, value: f64) -> String {
    if is_share(factor) {
        return format::percent(Some(value));
    }
    format!("{} β", format::significant(unscaled(value)))
}

/// Converts a value on the logarithmic scale of the observation into the volume or time, in its unit.
fn unscaled(value: f64) -> f64 {
    (LOG_RANGE.powf(value) - 1.0).max(0.0)
}

fn axis_of(explanation: &Explanation, factor: Factor) -> String {
    let beta = format::bytes(explanation.beta_bytes);
    match factor {
        Factor::Queue => "queue of the port, share of the buffer".to_owned(),
        Factor::OtherQueues => "queues of the other ports, share of the buffer".to_owned(),
        Factor::Enqueued => format!("bytes enqueued since the last decision, β = {beta}"),
        Factor::Dropped => format!("bytes dropped since the last decision, β = {beta}"),
        Factor::Elapsed => format!(
            "time since the last decision, β at line rate = {} ms",
            format::significant(explanation.drain_ms)
        ),
    }
}

/// Returns the horizontal axis: the whole scale of the observation.
fn range_of(factor: Factor) -> Ticked {
    let ticks: Vec<f64> = if is_share(factor) {
        (0..=5).map(|i| f64::from(i) / 5.0).collect()
    } else {
        let scaled = |units: &f64| units.ln_1p() / LOG_RANGE.ln();
        TICKS.iter().map(scaled).collect()
    };
    Ticked::new(0.0..1.0, ticks)
}

/// Returns the stroke of a curve: busy ports have the first colour, all ports the second; all steps are
/// dashed.
fn stroke_of(ports: Population, steps: Steps) -> Stroke {
    let colour = match ports {
        Population::Busy => 0,
        Population::All => 1,
    };
    Stroke {
        dash: match steps {
            Steps::Newest => None,
            Steps::All => Some((6, 4)),
        },
        ..style::series(colour)
    }
}

fn of_dependence(
    explanation: &Explanation,
    dependence: &Dependence,
    decided: Decided,
) -> Result<Figure, FigureError> {
    let factor = dependence.factor;
    let curve = |curve: &crate::explain::DependenceCurve| {
        let ports = match curve.ports {
            Population::All => "all ports",
            Population::Busy => "busy ports",
        };
        let steps = match curve.steps {
            Steps::Newest => "newest value",
            Steps::All => "all 8 steps",
        };
        let points = dependence.grid.iter().zip(curve.means(decided));
        Curve::new(
            &format!("{ports}, {steps}"),
            stroke_of(curve.ports, curve.steps),
            points.map(|(x, y)| (*x, *y)),
        )
    };
    let lines: Vec<Curve> = dependence.curves.iter().map(curve).collect();
    let (what, bottom, y_label) = match decided {
        Decided::Alpha => ("α", -(INITIAL_INDEX as f64), "mean of log2 α"),
        Decided::Early => ("Early drop", 0.0, "mean level, 0: off"),
    };
    let title = format!("{what} by {}", factor.label());
    let plot = Plot {
        name: name_of(factor, decided),
        title: &title,
        description: describe(dependence, decided),
        curves: &lines,
        x: range_of(factor),
        x_label: axis_of(explanation, factor),
        x_tick: match is_share(factor) {
            true => format::tick,
            false => |value| format::tick(unscaled(value).round()),
        },
        y: bottom..bottom + (ALPHAS.len() - 1) as f64,
        y_label,
        level: None,
    };
    plot.draw()
}

fn describe(dependence: &Dependence, decided: Decided) -> String {
    let factor = dependence.factor;
    let what = match decided {
        Decided::Alpha => "log2 of the decided α",
        Decided::Early => "the decided level of early drop",
    };
    let ends = dependence.curves.iter().filter_map(|curve| {
        let first = curve.means(decided).first()?;
        let last = curve.means(decided).last()?;
        (curve.steps == Steps::Newest).then(|| {
            let ports = match curve.ports {
                Population::All => "all ports",
                Population::Busy => "busy ports",
            };
            let [low, middle, high] = curve.observed.map(|value| in_units(factor, value));
            format!(
                "{ports}: from {first:.2} to {last:.2}, observed {middle} (median), {low} to {high} \
                 (90 % of the decisions), so that the rest of the curve is an extrapolation"
            )
        })
    });
    let ends: Vec<String> = ends.collect();
    let replaced = match factor {
        Factor::Elapsed => "The time is the same for all ports and replaced at all of them. ",
        Factor::OtherQueues => {
            "The other queues are scaled alike; sums with the port's own queue above the buffer \
             cannot occur. "
        }
        _ => "",
    };
    format!(
        "Mean of {what} when {} takes the value on the axis and all else stays as \
         observed. {replaced}Newest value: {}.",
        factor.label(),
        ends.join("; "),
    )
    .replace('-', "−")
}

/// Texts of a histogram of levels.
struct Histogram {
    name: &'static str,
    title: &'static str,
    /// Description in sentences.
    what: &'static str,
    x_label: &'static str,
    /// Labels of the levels.
    labels: [String; ALPHAS.len()],
}

impl Histogram {
    fn alpha() -> Histogram {
        Histogram {
            name: "alpha-histogram",
            title: "Decided α",
            what: "α",
            x_label: "α",
            labels: ALPHAS.map(format::tick),
        }
    }

    fn early(gaps: [u32; ALPHAS.len()]) -> Histogram {
        Histogram {
            name: "early-histogram",
            title: "Decided early drop",
            what: "longest gap between early drops",
            x_label: "longest gap between early drops, packets",
            labels: gaps.map(|gap| match gap {
                0 => "off".to_owned(),
                gap => gap.to_string(),
            }),
        }
    }
}

/// Draws the counts of each decided level.
fn histogram(of: &Histogram, counts: &LevelCounts) -> Result<Figure, FigureError> {
    let counts = [counts.busy, counts.idle];
    let names = ["busy ports", "idle ports"];
    let shares = counts.map(|counts| {
        let total = counts.iter().sum::<u64>().max(1) as f64;
        counts.map(|count| count as f64 / total)
    });
    let keys: Vec<Key> = names
        .iter()
        .enumerate()
        .map(|(index, name)| Key {
            name: (*name).to_owned(),
            stroke: Stroke {
                width: 8,
                ..style::series(index)
            },
        })
        .collect();
    let listed = names.iter().zip(&shares).map(|(name, shares)| {
        let parts = shares.iter().enumerate();
        let parts = parts
            .filter(|(_, share)| **share >= 0.005)
            .map(|(level, share)| {
                format!("{}: {}", of.labels[level], format::percent(Some(*share)))
            })
            .collect::<Vec<_>>();
        format!("{name} {}", parts.join(", "))
    });
    let description = format!(
        "Share of the decisions in which each {} was chosen, by port; busy ports have at least one \
         full packet queued. {}.",
        of.what,
        listed.collect::<Vec<_>>().join("; "),
    );
    let top = style::legend_height(&keys);
    let size = (WIDTH, plot::HEIGHT + top);
    draw(of.name, size, of.title, description, |canvas| {
        style::legend(canvas, &keys)?;
        let (_, area) = canvas.split_vertically(top);
        bars(&area, &shares, &keys, of)
    })
}

fn bars(area: &Canvas, shares: &[[f64; ALPHAS.len()]; 2], keys: &[Key], of: &Histogram) -> Drawn {
    let most = shares.iter().flatten().fold(0.0f64, |a, b| a.max(*b));
    let middles: Vec<f64> = (0..ALPHAS.len()).map(|i| i as f64).collect();
    let range = Ticked::new(-0.6..ALPHAS.len() as f64 - 0.4, middles);
    let mut chart = ChartBuilder::on(area)
        .margin_right(14)
        .margin_top(6)
        .x_label_area_size(44)
        .y_label_area_size(58)
        .build_cartesian_2d(range, 0.0..(most * 1.05).max(0.01))
        .map_err(text)?;
    let label = |place: &f64| {
        let level = floor_usize(place.round());
        of.labels.get(level).cloned().unwrap_or_default()
    };
    let tick = |value: &f64| format::tick(*value);
    style::mesh(
        chart
            .configure_mesh()
            .x_desc(of.x_label)
            .y_desc("share of decisions")
            .disable_x_mesh()
            .x_label_formatter(&label)
            .y_label_formatter(&tick)
            .y_labels(6),
    )?;
    for (place, (shares, key)) in shares.iter().zip(keys).enumerate() {
        let left = -0.38 + 0.38 * place as f64;
        let bars = shares.iter().enumerate().map(|(index, share)| {
            let start = index as f64 + left;
            let corners = [(start, 0.0), (start + 0.36, *share)];
            Rectangle::new(corners, key.stroke.colour.filled())
        });
        chart.draw_series(bars).map_err(text)?;
    }
    Ok(())
}

/// Draws the distribution of a share over the lost packets, one curve per policy.
fn drops(
    explanation: &Explanation,
    name: &str,
    title: &str,
    shares: fn(&DropOccupancy) -> &Vec<f64>,
) -> Result<Option<Figure>, FigureError> {
    let dropping = explanation.drops.iter().enumerate();
    let dropping = dropping.filter(|(_, drops)| drops.drops > 0);
    let lines: Vec<Curve> = dropping
        .clone()
        .map(|(index, drops)| {
            let stroke = style::stroke(&drops.entry.policy, drops.entry.role, index);
            Curve::new(&drops.entry.policy, stroke, distribution(shares(drops)))
        })
        .collect();
    if lines.is_empty() {
        return Ok(None);
    }
    let medians = dropping.filter_map(|(_, drops)| {
        let shares = shares(drops);
        let median = shares.get(shares.len() / 2)?;
        let name = short_name(&drops.entry.policy);
        Some(format!("{name} {}", format::percent(Some(*median))))
    });
    let description = format!(
        "{title}, as a share of the buffer: cumulative distribution over all lost packets of {} \
         traces. Medians: {}.",
        explanation.traces,
        medians.collect::<Vec<_>>().join(", "),
    );
    let plot = Plot {
        name,
        title,
        description,
        curves: &lines,
        x: 0.0..1.0,
        x_label: "share of the buffer".to_owned(),
        x_tick: format::tick,
        y: 0.0..1.0,
        y_label: "share of lost packets",
        level: None,
    };
    plot.draw().map(Some)
}

/// Draws the time between decisions at each line rate, and the time of a decision.
fn intervals(explanation: &Explanation) -> Result<Option<Figure>, FigureError> {
    let measured = explanation.intervals.iter().filter(|i| i.count > 0);
    let mut lines: Vec<Curve> = measured
        .enumerate()
        .map(|(index, intervals)| {
            let points = distribution(&intervals.percentiles_us);
            let points = points.into_iter().map(|(us, y)| (us.max(1e-3), y));
            let name = format::rate(intervals.rate_bps);
            Curve::new(&name, style::series(index + 1), points)
        })
        .collect();
    let decision = explanation.inference.median_us;
    let stroke = Stroke {
        width: 3,
        ..style::series(0)
    };
    let upright = [(decision, 0.0), (decision, 1.0)];
    lines.push(Curve::new("inference", stroke, upright));
    let Some((least, most)) = extent_x(&lines).filter(|_| lines.len() > 1) else {
        return Ok(None);
    };
    let rates = explanation.intervals.iter();
    let shares = rates.zip(&explanation.inference.shorter_intervals);
    let listed = shares.filter_map(|(intervals, share)| {
        Some(format!(
            "{}: median {} µs, {} shorter than a decision takes",
            format::rate(intervals.rate_bps),
            format::significant(intervals.median_us()?),
            share_of(*share),
        ))
    });
    let description = format!(
        "Cumulative distribution of the time between decisions at several line rates, propagation \
         and buffer as they are; upright: the median time of one decision about {} ports on this \
         machine, {} µs. {}.",
        explanation.inference.ports,
        format::significant(decision),
        listed.collect::<Vec<_>>().join("; "),
    );
    let plot = Plot {
        name: "decision-cost",
        title: "Time between decisions and time of a decision",
        description,
        curves: &lines,
        x: logarithmic(least * 0.9, most * 1.1),
        x_label: "time between decisions, µs (log scale)".to_owned(),
        x_tick: format::tick,
        y: 0.0..1.0,
        y_label: "share of decisions",
        level: None,
    };
    plot.draw().map(Some)
}

/// Formats a share as a percentage with three significant digits.
pub(super) fn share_of(share: Option<f64>) -> String {
    share.map_or_else(
        || format::NONE.to_owned(),
        |share| format!("{}\u{a0}%", format::significant(100.0 * share)),
    )
}
