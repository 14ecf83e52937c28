//! Pauses over time: which port pauses which neighbour under each policy, and the ingress queues that cause
//! the pauses.

use plotters::prelude::*;

use super::{IngressSeries, PausedQueue, PausesExcerpt, PausesExplained};
use crate::figures::panels::{self, FOOT, RIGHT};
use crate::figures::style::{self, Canvas, Drawn, Key, Stroke, TYPE, text};
use crate::figures::{Figure, FigureError, draw, timeline};
use crate::findings::short_name;
use crate::format;

/// Height of a line of text in a row.
const NAME: u32 = 20;
/// Height of the bars of one policy.
const BAR: u32 = 11;
/// Space between rows.
const GAP: u32 = 9;

/// Begin and end of the strip of pauses, relative to the height of a panel.
const STRIP: [f64; 2] = [1.03, 1.11];

/// Draws all figures of pauses; none without an excerpt.
///
/// # Errors
/// Fails if the drawing library refuses a figure.
pub fn figures(explained: &PausesExplained) -> Result<Vec<Figure>, FigureError> {
    let Some(excerpt) = &explained.excerpt else {
        return Ok(Vec::new());
    };
    let mut figures = vec![lanes(excerpt)?];
    let shown = excerpt.policies.first().map_or(0, |p| p.lengths.len());
    for (place, queue) in excerpt.queues.iter().enumerate().take(shown) {
        figures.push(ingress(excerpt, queue, place)?);
    }
    Ok(figures)
}

/// Returns the first and last millisecond of the excerpt.
fn span(excerpt: &PausesExcerpt) -> [f64; 2] {
    [excerpt.start_ms, excerpt.start_ms + excerpt.length_ms]
}

fn thick(index: usize) -> Stroke {
    Stroke {
        width: 8,
        ..style::series(index)
    }
}

/// Draws a row per queue, with a line of bars for every policy.
fn lanes(excerpt: &PausesExcerpt) -> Result<Figure, FigureError> {
    let keys: Vec<Key> = excerpt
        .policies
        .iter()
        .enumerate()
        .map(|(index, policy)| Key {
            name: policy.policy.clone(),
            stroke: thick(index),
        })
        .collect();
    let top = style::legend_height(&keys);
    let policies = excerpt.policies.iter().map(|_| BAR).sum::<u32>();
    let lane = NAME + policies + GAP;
    let all = excerpt.queues.iter().map(|_| lane).sum::<u32>();
    let size = (style::WIDTH, top + all + FOOT);
    draw(
        "pauses",
        size,
        "Pauses by port",
        describe_lanes(excerpt),
        |canvas| {
            style::legend(canvas, &keys)?;
            let (_, area) = canvas.split_vertically(top);
            let tall = f64::from(all);
            let [from, to] = span(excerpt);
            let mut chart = ChartBuilder::on(&area)
                .margin_right(RIGHT)
                .x_label_area_size(FOOT)
                .margin_left(RIGHT)
                .build_cartesian_2d(panels::time_axis(from, to), tall..0.0)
                .map_err(text)?;
            let tick = |value: &f64| format::tick(*value);
            style::mesh(
                chart
                    .configure_mesh()
                    .disable_y_mesh()
                    .disable_y_axis()
                    .x_labels(6)
                    .x_desc("time, ms")
                    .x_label_formatter(&tick),
            )?;
            for (place, queue) in (0u32..).zip(&excerpt.queues) {
                let above = f64::from(place * lane);
                let name = Text::new(queue.name(), (from, above), style::label(TYPE));
                chart.draw_series([name]).map_err(text)?;
                for (row, (policy, key)) in (0u32..).zip(excerpt.policies.iter().zip(&keys)) {
                    let y = above + f64::from(NAME + row * BAR);
                    let bounds = [y, y + f64::from(BAR) - 2.0];
                    let track = Rectangle::new(
                        [(from, bounds[0]), (to, bounds[1])],
                        key.stroke.colour.mix(0.12).filled(),
                    );
                    let index = excerpt.queues.iter().position(|other| other == queue);
                    let pauses = index.and_then(|index| policy.pauses.get(index));
                    let bars = pauses.into_iter().flatten().map(|[a, b]| {
                        let corners = [(*a, bounds[0]), (*b, bounds[1])];
                        Rectangle::new(corners, key.stroke.colour.filled())
                    });
                    chart
                        .draw_series(std::iter::once(track).chain(bars))
                        .map_err(text)?;
                }
            }
            Ok(())
        },
    )
}

fn describe_lanes(excerpt: &PausesExcerpt) -> String {
    let totals = excerpt.policies.iter().map(|policy| {
        let pauses = policy.pauses.iter().flatten();
        let paused: f64 = pauses.clone().map(|[from, to]| to - from).sum();
        format!(
            "{} {} pauses, {} ms together",
            short_name(&policy.policy),
            pauses.count(),
            format::significant(paused)
        )
    });
    let totals: Vec<String> = totals.collect();
    let others = match excerpt.others {
        0 => String::new(),
        others => format!(" {others} more queues pause in this time and are not shown."),
    };
    format!(
        "Every bar is a time for which a port has paused what sends to it, from {} to {} ms on trace {}: \
         a row per policy. The queues that pause longest come first.{others} Here: {}.",
        format::significant(excerpt.start_ms),
        format::significant(excerpt.start_ms + excerpt.length_ms),
        excerpt.trace,
        totals.join("; "),
    )
}

/// Colours of the parts of a panel of an ingress queue.
const POOL: usize = 0;
const HEADROOM: usize = 1;
const THRESHOLD: usize = 2;
const PAUSED: usize = 3;

fn ingress_keys(filters: bool) -> Vec<Key> {
    let key = |name: &str, stroke| Key {
        name: name.to_owned(),
        stroke,
    };
    let mut keys = vec![
        key("in the pool", thick(POOL)),
        key("on headroom", thick(HEADROOM)),
        key("pauses its neighbour", thick(PAUSED)),
        key("threshold", style::series(THRESHOLD)),
    ];
    if filters {
        let stroke = Stroke {
            colour: style::INK,
            width: 1,
            dash: None,
        };
        keys.push(key("filtered length", stroke));
    }
    keys
}

/// Returns true if the length that is compared with the threshold differs from the length itself.
fn filters(series: &IngressSeries) -> bool {
    let lengths = series.bytes.iter().zip(&series.compared_bytes);
    lengths
        .into_iter()
        .any(|(bytes, compared)| *bytes as f64 != *compared)
}

/// Draws an ingress queue, a panel per policy.
fn ingress(
    excerpt: &PausesExcerpt,
    queue: &PausedQueue,
    place: usize,
) -> Result<Figure, FigureError> {
    let of = |policy: usize| &excerpt.policies[policy].lengths[place];
    let policies = 0..excerpt.policies.len();
    let keys = ingress_keys(policies.clone().any(|policy| filters(of(policy))));
    let longest = policies.clone().flat_map(|policy| &of(policy).bytes).max();
    let top_kb = longest.map_or(1.0, |bytes| (*bytes as f64).max(1e3) / 1e3);
    let legend = style::legend_height(&keys);
    let count = excerpt.policies.len();
    let height = legend + panels::height(count);
    let name = format!("ingress-{}-{}-{}", queue.switch, queue.port, queue.priority);
    let title = format!(
        "Ingress queue of {} {}, port {}",
        queue.kind, queue.switch, queue.port
    );
    let description = format!(
        "Bytes at priority {} that came from {} and are still in the switch, a panel per policy; \
         thresholds above the panel are not shown.",
        queue.priority, queue.neighbour,
    );
    draw(
        &name,
        (style::WIDTH, height),
        &title,
        description,
        |canvas| {
            style::legend(canvas, &keys)?;
            let (_, rest) = canvas.split_vertically(legend);
            panels::stack(&rest, count, |panel, policy, last| {
                draw_panel(panel, excerpt, (policy, place), top_kb, last)
            })
        },
    )
}

fn draw_panel(
    panel: &Canvas,
    excerpt: &PausesExcerpt,
    (policy, place): (usize, usize),
    top_kb: f64,
    last: bool,
) -> Drawn {
    let policy = &excerpt.policies[policy];
    let series = &policy.lengths[place];
    let time @ [from, to] = span(excerpt);
    let name = short_name(&policy.policy);
    let mut chart = panels::axes(panel, name, time, 0.0..top_kb * 1.14, last)?;

    let steps = Steps {
        from,
        width: (to - from) / series.bytes.len().max(1) as f64,
    };
    let kb = |bytes: &u64| *bytes as f64 / 1e3;
    let whole: Vec<f64> = series.bytes.iter().map(kb).collect();
    let headroom = series.headroom_bytes.iter().map(kb);
    let pool: Vec<f64> = whole.iter().zip(headroom).map(|(all, h)| all - h).collect();
    let none = vec![0.0; pool.len()];
    for (low, high, colour, strength) in
        [(&none, &pool, POOL, 0.45), (&pool, &whole, HEADROOM, 0.9)]
    {
        let fill = style::series(colour).colour.mix(strength).filled();
        let area = Polygon::new(steps.between(low, high), fill);
        chart.draw_series([area]).map_err(text)?;
    }
    let pauses = policy.pauses[place].iter().map(|[a, b]| {
        let [low, high] = STRIP.map(|share| share * top_kb);
        let fill = style::series(PAUSED).colour.filled();
        Rectangle::new([(*a, low), (*b, high)], fill)
    });
    chart.draw_series(pauses).map_err(text)?;
    if filters(series) {
        let compared = series.compared_bytes.iter().map(|bytes| bytes / 1e3);
        let line = steps.line(compared.enumerate());
        let line = LineSeries::new(line, style::INK.stroke_width(1));
        chart.draw_series(line).map_err(text)?;
    }
    let thresholds = series.threshold_bytes.iter().map(|bytes| bytes / 1e3);
    for run in timeline::visible_runs(thresholds, top_kb) {
        let stroke = style::series(THRESHOLD);
        let line = steps.line(run.into_iter());
        let line = LineSeries::new(line, stroke.colour.stroke_width(stroke.width));
        chart.draw_series(line).map_err(text)?;
    }
    Ok(())
}

/// Time steps with one constant value each.
#[derive(Clone, Copy)]
struct Steps {
    from: f64,
    width: f64,
}

impl Steps {
    fn line(self, values: impl Iterator<Item = (usize, f64)>) -> Vec<(f64, f64)> {
        let at = |step: usize| self.from + step as f64 * self.width;
        let ends = values.flat_map(|(step, value)| [(at(step), value), (at(step + 1), value)]);
        ends.collect()
    }

    /// Returns the outline of the area between two series.
    fn between(self, low: &[f64], high: &[f64]) -> Vec<(f64, f64)> {
        let line = |values: &[f64]| self.line(values.iter().copied().enumerate());
        let mut outline = line(high);
        outline.extend(line(low).into_iter().rev());
        outline
    }
}
