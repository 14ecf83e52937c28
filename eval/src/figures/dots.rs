//! The ratios of all policies with their intervals, a row for each.

use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use bufgym_util::convert::whole_i32;

use super::style::{self, CHARACTER, Canvas, Drawn, TYPE, text};
use super::{Figure, FigureError, OVERVIEW, draw};
use crate::data::{Entry, Evaluation, Role};
use crate::format;
use crate::stats::Estimate;

/// Largest number of rows.
const ROWS: usize = 20;
/// Largest number of characters of a name.
const LONGEST: usize = 40;
/// Upper end of the axis, so that a policy that is ten times worse does not flatten all others.
const CEILING: f64 = 2.5;

const WIDTH: u32 = 640;
const TITLE: u32 = 34;
const ROW: u32 = 22;
const AXIS: u32 = 46;
const NOTE: u32 = 22;

struct Row<'a> {
    entry: &'a Entry,
    ratio: Estimate,
}

/// Draws the mean FCT relative to DT (α = 1) of the best policies and of DT, the best first.
///
/// # Errors
/// Fails if the drawing library refuses the figure.
pub(crate) fn overview(evaluation: &Evaluation) -> Result<Option<Figure>, FigureError> {
    let (rows, left_out) = rows(evaluation);
    if rows.is_empty() {
        return Ok(None);
    }
    let traces = evaluation.traces;
    let title = "Mean FCT relative to DT (α = 1)";
    let heading = format!("{title}: mean of {traces} traces, 95 % intervals");
    let note = match left_out {
        0 => String::new(),
        1 => "1 policy is left out.".to_owned(),
        count => format!("{count} policies are left out."),
    };
    let values = rows.iter().map(|row| {
        let value = format::interval(Some(&row.ratio));
        format!("{} {value}", row.entry.label())
    });
    let description = format!(
        "Ratio of mean flow completion times to DT's, the mean over traces with its 95 % interval; below 1 \
         a policy beats DT. {}.{}{note}",
        values.collect::<Vec<_>>().join(", "),
        if left_out > 0 { " " } else { "" },
    );
    let tall = rows.iter().map(|_| ROW).sum::<u32>() + AXIS;
    let below = if left_out > 0 { NOTE } else { 0 };
    let size = (WIDTH, TITLE + tall + below);
    let drawn = draw(OVERVIEW, size, title, description, |canvas| {
        let at = |y: u32| (8, y.cast_signed());
        let heading = Text::new(heading.as_str(), at(8), style::label(TYPE));
        canvas.draw(&heading).map_err(text)?;
        let note = Text::new(note.as_str(), at(TITLE + tall), style::label(TYPE));
        if left_out > 0 {
            canvas.draw(&note).map_err(text)?;
        }
        let (_, area) = canvas.split_vertically(TITLE);
        let (area, _) = area.split_vertically(tall);
        draw_rows(canvas, &area, &rows)
    });
    drawn.map(Some)
}

/// Returns the best policies, DT among them, and the number of policies that are left out.
fn rows(evaluation: &Evaluation) -> (Vec<Row<'_>>, usize) {
    let rows = evaluation.policies.iter().filter_map(|policy| {
        let (entry, ratio) = (&policy.entry, policy.ratio_to_dt?);
        Some(Row { entry, ratio })
    });
    let mut rows: Vec<Row> = rows.collect();
    rows.sort_by(|a, b| a.ratio.centre.total_cmp(&b.ratio.centre));
    let left_out = rows.len().saturating_sub(ROWS);
    let is_baseline = |row: &Row| row.entry.role == Role::Baseline;
    if let Some(place) = rows.iter().position(is_baseline)
        && place >= ROWS
    {
        rows.swap(place, ROWS - 1);
    }
    rows.truncate(ROWS);
    (rows, left_out)
}

fn draw_rows(canvas: &Canvas, area: &Canvas, rows: &[Row]) -> Drawn {
    let names: Vec<String> = rows
        .iter()
        .map(|row| shortened(row.entry.label()))
        .collect();
    let longest = names.iter().map(|name| name.chars().count()).max();
    let left = whole_i32(longest.unwrap_or(0) as f64 * CHARACTER) + 16;
    let ends = rows.iter().map(|row| (row.ratio.low, row.ratio.high));
    let (low, high) = ends.fold((1.0_f64, 1.0_f64), |(low, high), (l, h)| {
        (low.min(l), high.max(h))
    });
    let high = high.min(CEILING);
    let room = (0.04 * (high - low)).max(0.02);
    let (from, to) = (low - room, high + room);
    let bottom = rows.len() as f64 - 0.5;
    let mut chart = ChartBuilder::on(area)
        .margin_left(left)
        .margin_right(14)
        .x_label_area_size(AXIS)
        .build_cartesian_2d(from..to, bottom..-0.5)
        .map_err(text)?;
    let tick = |value: &f64| format::tick(*value);
    style::mesh(
        chart
            .configure_mesh()
            .disable_y_mesh()
            .disable_y_axis()
            .x_labels(8)
            .x_desc("mean FCT ÷ mean FCT of DT (ratio); lower is better")
            .x_label_formatter(&tick),
    )?;
    let level = PathElement::new(vec![(1.0, -0.5), (1.0, bottom)], style::INK.mix(0.6));
    chart.draw_series([level]).map_err(text)?;
    for (place, (row, name)) in rows.iter().zip(&names).enumerate() {
        let (y, role) = (place as f64, row.entry.role);
        let colour = match role {
            Role::Heuristic => style::INK,
            role => style::stroke(&row.entry.policy, role, 0).colour,
        };
        let beside = |x: f64, shift: i32| {
            let (x, y) = chart.plotting_area().map_coordinate(&(x, y));
            (x + shift, y)
        };
        let written = style::label(TYPE).color(&colour);
        let written = written.pos(Pos::new(HPos::Right, VPos::Center));
        let name = Text::new(name.as_str(), beside(from, -10), written.clone());
        canvas.draw(&name).map_err(text)?;
        let Estimate { centre, low, high } = row.ratio;
        if centre > to {
            let value = format!("{} →", format::ratio(Some(centre)));
            let value = Text::new(value, beside(to, 0), written);
            canvas.draw(&value).map_err(text)?;
            continue;
        }
        let whisker = vec![(low, y), (high.min(to), y)];
        let whisker = PathElement::new(whisker, colour.stroke_width(2));
        chart.draw_series([whisker]).map_err(text)?;
        let radius = if role == Role::Learned { 5 } else { 3 };
        let dot = Circle::new((centre, y), radius, colour.filled());
        chart.draw_series([dot]).map_err(text)?;
    }
    Ok(())
}

/// Shortens a name to at most [`LONGEST`] characters.
fn shortened(name: &str) -> String {
    match name.char_indices().nth(LONGEST) {
        None => name.to_owned(),
        Some(_) => name.chars().take(LONGEST - 1).chain(['…']).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    #[test]
    fn the_best_twenty_are_drawn_and_the_baseline() {
        let rules: Vec<String> = (2..=30).map(|alpha| format!("dt:alpha={alpha}")).collect();
        let values: Vec<[f64; 1]> = (2..=30).map(|alpha| [f64::from(alpha)]).collect();
        let means = |dt: &'static [f64]| {
            let rules = rules.iter().map(String::as_str);
            let mut means: Vec<(&str, &[f64])> =
                rules.zip(values.iter().map(|own| &own[..])).collect();
            means.push(("dt", dt));
            synthetic::evaluation(&means)
        };
        let labels = |evaluation: &Evaluation| -> Vec<String> {
            let (rows, left_out) = rows(evaluation);
            assert_eq!(left_out, 10);
            rows.iter()
                .map(|row| row.entry.label().to_owned())
                .collect()
        };
        let first = labels(&means(&[1.0]));
        assert_eq!(
            (first.len(), &*first[0], &*first[19]),
            (20, "dt", "dt:alpha=20")
        );
        let last = labels(&means(&[100.0]));
        assert_eq!(
            (last.len(), &*last[0], &*last[19]),
            (20, "dt:alpha=2", "dt")
        );
        let svg = overview(&means(&[1.0])).unwrap().unwrap().standalone();
        assert!(svg.contains("\n10 policies are left out.\n"), "{svg}");
        // Beyond the end of the axis, numbers replace the dots.
        assert!(
            svg.contains("3.000 →") && svg.matches("<circle").count() == 2,
            "{svg}"
        );
    }

    #[test]
    fn long_names_are_cut() {
        assert_eq!(shortened("dt"), "dt");
        let long = "é".repeat(41);
        assert_eq!(shortened(&long), format!("{}…", "é".repeat(39)));
    }
}
