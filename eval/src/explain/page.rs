//! The explanation as a self-contained HTML page.

use bufgym_sim::switch::aqm::early::GAPS;
use maud::{Markup, html};

use super::drawing::share_of;
use super::{Decided, Dependence, DependenceCurve, Explanation, Population, Steps};
use crate::figures::Figure;
use crate::findings::short_name;
use crate::format;
use crate::html::{self, figure_grid, tables};

/// Renders the whole page.
pub fn render(explanation: &Explanation, figures: &[Figure]) -> String {
    let name = short_name(&explanation.entry.policy);
    let of = |prefix: &str| -> Vec<&Figure> {
        let chosen = figures.iter().filter(|f| f.name.starts_with(prefix));
        chosen.collect()
    };
    let content = html! {
        ul class="findings" aria-label="Findings" {
            @for finding in findings(explanation) { li class="plain" { (finding) } }
        }
        (figure_grid("What the decided α depends on", &of("alpha-")))
        @if explanation.early.is_some() {
            (figure_grid("What the decided early drop depends on", &of("early-")))
        }
        (on_dependence())
        (incast(explanation, &of("timeline-")))
        (figure_grid("How full the buffer is when packets are lost", &of("drops-")))
        (drops_table(explanation))
        (figure_grid("Whether decisions come in time", &of("decision-cost")))
        (cost_table(explanation))
        (setup(explanation))
    };
    let title = format!("What {name} learned");
    let intro = what_was_watched(explanation);
    html::document(&title, &explanation.software, &intro, &content)
}

fn what_was_watched(explanation: &Explanation) -> String {
    format!(
        "{} decisions on {} traces of {} ({} split, seed {}), from which training has not learned; \
         weights may have been chosen by traces of that split.",
        format::count(explanation.decisions),
        explanation.traces,
        explanation.scenario.name,
        explanation.split,
        explanation.seed,
    )
}

/// Returns the findings in sentences: the factors that α depends on most and least, the places where packets
/// are lost, and whether decisions come in time.
pub fn findings(explanation: &Explanation) -> Vec<String> {
    let mut findings = Vec::new();
    for &decided in Decided::all(explanation.early.is_some()) {
        findings.extend(strongest(explanation, decided));
        findings.extend(weak(explanation, decided));
    }
    findings.extend(where_lost(explanation));
    findings.extend(in_time(explanation));
    findings
}

/// Returns the curve that findings are about: the newest value, of busy ports if there are any, otherwise of
/// all ports.
fn main_curve(dependence: &Dependence) -> Option<&DependenceCurve> {
    let newest = dependence
        .curves
        .iter()
        .filter(|c| c.steps == Steps::Newest);
    newest.max_by_key(|curve| curve.ports == Population::Busy)
}

/// Returns the mean decision at the 5th and at the 95th percentile of the observed values.
fn observed_change(
    dependence: &Dependence,
    curve: &DependenceCurve,
    decided: Decided,
) -> (f64, f64) {
    let at = |value: f64| interpolate(&dependence.grid, curve.means(decided), value);
    let [low, _, high] = curve.observed;
    (at(low), at(high))
}

/// Interpolates linearly at `x`; constant outside the grid.
fn interpolate(grid: &[f64], values: &[f64], x: f64) -> f64 {
    let after = grid.partition_point(|g| *g < x);
    match (after, values.get(after)) {
        (0, _) => values.first().copied().unwrap_or(0.0),
        (_, None) => values.last().copied().unwrap_or(0.0),
        (after, Some(right)) => {
            let (x0, x1) = (grid[after - 1], grid[after]);
            values[after - 1] + (right - values[after - 1]) * (x - x0) / (x1 - x0)
        }
    }
}

fn octaves(value: f64) -> String {
    format!("{value:.2}").replace('-', "−")
}

/// Returns, for every dependence, the change of the decision over the observed range, and a description of
/// it; the largest change first.
fn changes(explanation: &Explanation, decided: Decided) -> Vec<(f64, String)> {
    let mut changes: Vec<(f64, String)> = explanation
        .dependences
        .iter()
        .filter_map(|dependence| {
            let (low, high) = observed_change(dependence, main_curve(dependence)?, decided);
            let direction = if high >= low { "rises" } else { "falls" };
            let label = dependence.factor.label();
            let words = format!(
                "with {label} it {direction} from {} to {}",
                octaves(low),
                octaves(high)
            );
            Some(((high - low).abs(), words))
        })
        .collect();
    changes.sort_by(|a, b| b.0.total_cmp(&a.0));
    changes
}

/// Changes below this are weak, in octaves of α or levels of early drop.
const WEAK: f64 = 0.25;

fn strongest(explanation: &Explanation, decided: Decided) -> Option<String> {
    let changes = changes(explanation, decided);
    let [.., shortest] = explanation.early_gaps.unwrap_or(GAPS);
    let what = match decided {
        Decided::Alpha => "log2 α".to_owned(),
        Decided::Early => {
            format!("the level of early drop, 0 (off) to 7 (one in a gap of up to {shortest}),")
        }
    };
    let strong: Vec<&str> = changes
        .iter()
        .filter(|(size, _)| *size >= WEAK)
        .map(|(_, words)| words.as_str())
        .collect();
    (!strong.is_empty()).then(|| {
        format!(
            "The mean of {what} of a {}port, from the 5th to the 95th percentile of what was \
             observed, the rest as it was: {}.",
            if any_busy(explanation) { "busy " } else { "" },
            strong.join("; ")
        )
    })
}

/// Returns true if the findings are about busy ports, and false if they are about all ports.
fn any_busy(explanation: &Explanation) -> bool {
    let mut curves = explanation.dependences.iter().filter_map(main_curve);
    curves.any(|curve| curve.ports == Population::Busy)
}

fn weak(explanation: &Explanation, decided: Decided) -> Option<String> {
    let changes = changes(explanation, decided);
    let little = match decided {
        Decided::Alpha => "By less than a quarter of an octave it",
        Decided::Early => "By less than a quarter of a level early drop",
    };
    let weak: Vec<&str> = changes
        .iter()
        .filter(|(size, _)| *size < WEAK)
        .map(|(_, words)| words.as_str())
        .collect();
    (!weak.is_empty()).then(|| format!("{little} changes in these: {}.", weak.join("; ")))
}

fn where_lost(explanation: &Explanation) -> Option<String> {
    let listed = explanation.drops.iter().filter_map(|drops| {
        let port = drops.median_port_share()?;
        let buffer = drops.median_buffer_share()?;
        Some(format!(
            "{} {} and {}",
            short_name(&drops.entry.policy),
            format::percent(Some(port)),
            format::percent(Some(buffer))
        ))
    });
    let listed: Vec<String> = listed.collect();
    (!listed.is_empty()).then(|| {
        format!(
            "At the median lost packet the port's queue and the whole buffer hold, of the buffer: {}.",
            listed.join("; ")
        )
    })
}

fn in_time(explanation: &Explanation) -> Option<String> {
    let shares = explanation.intervals.iter();
    let shares = shares.zip(&explanation.inference.shorter_intervals);
    let listed = shares.filter_map(|(intervals, share)| {
        share.map(|_| {
            format!(
                "{} at {}",
                share_of(*share),
                format::rate(intervals.rate_bps)
            )
        })
    });
    let listed: Vec<String> = listed.collect();
    (!listed.is_empty()).then(|| {
        format!(
            "A decision about {} ports takes {} µs on one thread of this machine; shorter than that \
             is, of the times between decisions: {}.",
            explanation.inference.ports,
            format::significant(explanation.inference.median_us),
            listed.join(", ")
        )
    })
}

fn on_dependence() -> Markup {
    html! {
        p class="note" {
            "Partial dependence: in recorded observations one feature of one port takes the value on \
             the axis, all else stays, and the network decides again. It shows what the network does \
             with the feature and not what causes what in the switch; features that go together in \
             the switch are torn apart, so that far from what was observed the curve says little."
        }
    }
}

fn incast(explanation: &Explanation, figures: &[&Figure]) -> Markup {
    let name = &explanation.incast.name;
    html! {
        @if figures.is_empty() {
            section {
                h2 { "An in-cast from four senders to two ports" }
                p { "No two ports were busy on the trace of " (name) "." }
            }
        } @else {
            (figure_grid("An in-cast from four senders to two ports", figures))
            p class="note" {
                "The first validation trace of " (name) ", where both ports are busiest under DT. It \
                 illustrates how the policies differ and is no evidence about the average trace."
            }
        }
    }
}

fn drops_table(explanation: &Explanation) -> Markup {
    let caption = html! {
        "Lost packets of all " (explanation.traces) " traces, acknowledgements \
         included; the queue of the packet's port and the bytes in the whole buffer, \
         as shares of the buffer."
    };
    let heads = [
        "policy",
        "lost",
        "of them: buffer full",
        "port, median",
        "port, 5–95 %",
        "buffer, median",
        "buffer, 5–95 %",
    ];
    let rows = html! {
        @for drops in &explanation.drops {
            tr {
                th scope="row" { (short_name(&drops.entry.policy)) }
                td { (format::count(drops.drops)) }
                td {
                    (format::percent((drops.drops > 0)
                        .then(|| drops.buffer_full as f64 / drops.drops as f64)))
                }
                td { (format::percent(drops.median_port_share())) }
                td { (range(&drops.port_share)) }
                td { (format::percent(drops.median_buffer_share())) }
                td { (range(&drops.buffer_share)) }
            }
        }
    };
    tables::scrolling(
        "Lost packets",
        &caption,
        &heads.map(|head| (head, "")),
        &rows,
    )
}

/// Returns the 5th and the 95th percentile of nearest-rank percentiles 0, 0.5, …, 100, as text.
fn range(percentiles: &[f64]) -> String {
    let ends = percentiles.get(10).zip(percentiles.get(190));
    ends.map_or_else(
        || format::NONE.to_owned(),
        |(low, high)| {
            format!(
                "{}–{}",
                format::percent(Some(*low)),
                format::percent(Some(*high))
            )
        },
    )
}

fn cost_table(explanation: &Explanation) -> Markup {
    let inference = &explanation.inference;
    let caption = html! {
        "Time between decisions at the line rates, propagation delay and buffer as \
         they are, against the median time of a decision: "
        (format::significant(inference.median_us)) " µs (99th percentile "
        (format::significant(inference.p99_us)) " µs, "
        (format::count(inference.passes as u64)) " passes for "
        (inference.ports) " ports on one thread of this machine)."
    };
    let heads = [
        "line rate",
        "intervals",
        "5th percentile, µs",
        "median, µs",
        "95th percentile, µs",
        "shorter than a decision",
    ];
    let intervals = explanation.intervals.iter();
    let rows = html! {
        @for (intervals, share) in intervals.zip(&inference.shorter_intervals) {
            tr {
                th scope="row" { (format::rate(intervals.rate_bps)) }
                td { (format::count(intervals.count)) }
                @for place in [10, 100, 190] {
                    td { (format::optional(intervals.percentiles_us.get(place).copied())) }
                }
                td { (share_of(*share)) }
            }
        }
    };
    let heads = heads.map(|head| (head, ""));
    html! {
        (tables::scrolling("Time between decisions", &caption, &heads, &rows))
        p class="note" {
            "The simulation itself waits for no decision: α changes at the instant of the trigger, \
             unless the scenario says otherwise (decision_latency_us)."
        }
    }
}

fn setup(explanation: &Explanation) -> Markup {
    html! {
        section {
            h2 { "Setup" }
            dl {
                dt { "Policy" } dd { (explanation.entry.policy) ", " (explanation.entry.origin) }
                (html::facts(&explanation.scenario))
                dt { "Unit β" }
                dd {
                    (format::bytes(explanation.beta_bytes)) " (buffer / ports), sent in "
                    (format::significant(explanation.drain_ms)) " ms at line rate"
                }
                dt { "In-cast" }
                dd { (explanation.incast.name) ", as it is" }
                (html::run_facts(&explanation.software, &explanation.timing))
            }
            (html::settings(&explanation.scenario))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_between_its_points_and_beyond() {
        let (grid, values) = ([0.0, 0.5, 1.0], [1.0, 3.0, 3.0]);
        assert_eq!(interpolate(&grid, &values, 0.25), 2.0);
        assert_eq!(interpolate(&grid, &values, 0.0), 1.0);
        assert_eq!(interpolate(&grid, &values, 1.0), 3.0);
        assert_eq!(interpolate(&grid, &values, 3.0), 3.0);
        assert_eq!(interpolate(&grid, &values, -1.0), 1.0);
    }
}
