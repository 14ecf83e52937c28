//! A figure with a swept setting: series of networks over points of the horizontal axis.

mod drawing;
mod metric;
mod reference;
mod table;

use bufgym_eval::stats::Spread;
use bufgym_sim::switch::PolicySpec;

use super::grid::{Cell, Grid, GridPlan, Measured};
use super::incast::Regime;

pub(crate) use drawing::stroke;
pub use metric::Metric;
pub use reference::ReferenceTable;

/// A point of the horizontal axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Value of the point.
    pub x: f64,
    /// Position in the drawing.
    pub place: f64,
    /// Label with its unit.
    pub label: String,
    /// Settings that the point sets in every scenario.
    pub settings: Vec<String>,
    /// Values by name that texts of series may contain, each as `{NAME}`.
    pub columns: Vec<(String, String)>,
}

impl Point {
    /// Builds a point with the given settings.
    pub fn new(x: f64, label: impl Into<String>, settings: &[String]) -> Point {
        Point {
            x,
            place: x,
            label: label.into(),
            settings: settings.to_vec(),
            columns: Vec::new(),
        }
    }

    /// Fills in a text: `{}` becomes the value of the point, `{NAME}` that of a column.
    pub(crate) fn fill(&self, text: &str) -> String {
        let text = text.replace("{}", &self.x.to_string());
        let columns = self.columns.iter();
        columns.fold(text, |text, (name, value)| {
            text.replace(&format!("{{{name}}}"), value)
        })
    }
}

/// A curve.
#[derive(Clone, Debug)]
pub struct Series {
    /// Name on the page and in files.
    pub name: String,
    /// True if the paper does not have the series.
    pub added: bool,
    policy: String,
    settings: Vec<String>,
}

impl Series {
    /// Builds a series from a policy.
    pub fn new(name: &str, policy: &str) -> Series {
        Series::with(name, policy, &[])
    }

    /// Builds a series from a policy with settings. Both may contain names of values, which every point fills in.
    pub fn with(name: &str, policy: &str, settings: &[&str]) -> Series {
        Series {
            name: name.to_owned(),
            added: false,
            policy: policy.to_owned(),
            settings: settings.iter().map(|s| (*s).to_owned()).collect(),
        }
    }

    /// Marks the series as not in the paper.
    #[must_use]
    pub fn as_addition(self) -> Series {
        Series {
            added: true,
            ..self
        }
    }
}

/// The simulations of a figure.
pub struct Sweep {
    /// Number of the figure.
    pub figure: &'static str,
    /// Preset of all scenarios.
    pub preset: &'static str,
    /// Settings of all scenarios of the figure.
    pub settings: Vec<String>,
    /// Curves.
    pub series: Vec<Series>,
    /// Points.
    pub points: Vec<Point>,
    /// The swept quantity, with its unit.
    pub x_label: &'static str,
    /// Number of simulations of every point.
    pub seeds: u64,
    /// Changes to all of these: see [`change`](Sweep::change).
    pub changes: Vec<&'static str>,
}

impl Sweep {
    /// Returns the simulations of a point of a series: settings of the figure, then of the point, then of the
    /// series, with all changes.
    pub fn cell(&self, series: &Series, point: &Point) -> Cell {
        let shared = self.settings.iter().chain(&point.settings).cloned();
        let own = series.settings.iter().map(|setting| point.fill(setting));
        let policy = point.fill(&series.policy);
        let cell = Cell::new(self.preset, &policy, shared.chain(own).collect());
        self.changes.iter().fold(cell, |cell, of| changed(cell, of))
    }

    /// Plans all simulations.
    pub fn want(&self, plan: &mut GridPlan) {
        self.want_at(plan, |_| true);
    }

    /// Plans the simulations of some points.
    pub(crate) fn want_at(&self, plan: &mut GridPlan, keep: impl Fn(&Point) -> bool) {
        for series in &self.series {
            for point in self.points.iter().filter(|point| keep(point)) {
                plan.want(&self.cell(series, point), self.seeds);
            }
        }
    }

    /// Adds changes to the figure, each in one of these forms:
    /// - `KEY=VALUE`, a setting of all scenarios;
    /// - `KEY=VALUE=>OTHER`, another value of a setting that is `VALUE`;
    /// - `POLICY:KEY=VALUE`, a parameter of a policy that a series has.
    pub fn change(&mut self, changes: &[&'static str]) {
        self.changes.extend(changes);
    }

    /// Combines the figure with the results of its simulations.
    pub fn measured<'a>(&'a self, grid: &'a Grid) -> SweepResults<'a> {
        SweepResults { sweep: self, grid }
    }
}

/// A figure with its results.
#[derive(Clone, Copy)]
pub struct SweepResults<'a> {
    /// The simulated figure.
    pub sweep: &'a Sweep,
    grid: &'a Grid,
}

impl<'a> SweepResults<'a> {
    fn series(&self, name: &str) -> Option<&'a Series> {
        self.sweep.series.iter().find(|series| series.name == name)
    }

    /// Returns the results of a point by seed; empty if it was not run.
    pub fn of(&self, series: &Series, point: &Point) -> &'a [Measured] {
        self.grid.of(&self.sweep.cell(series, point))
    }

    /// Returns a metric at a point by seed; `None` if a seed has no value.
    pub fn values(&self, series: &str, point: &Point, metric: Metric) -> Option<Vec<f64>> {
        let measured = self.of(self.series(series)?, point);
        let values = measured.iter().map(|measured| metric.of(measured));
        values
            .collect::<Option<Vec<f64>>>()
            .filter(|v| !v.is_empty())
    }

    /// Returns the median and range over the seeds of a metric at a point.
    pub fn value(&self, series: &str, point: &Point, metric: Metric) -> Option<Spread> {
        self.values(series, point, metric).and_then(Spread::of)
    }

    /// Returns the mean reduction of a series relative to others, per cent: median and range over the seeds.
    /// With several points, it is the mean over these. If both values of a pair are 0, neither can be lower,
    /// and the pair does not count.
    pub fn reduction(
        &self,
        series: &str,
        others: &[&str],
        points: &[&Point],
        metric: Metric,
    ) -> Option<Spread> {
        let at = |point: &Point| -> Option<Vec<Option<f64>>> {
            let own = self.values(series, point, metric)?;
            let others: Vec<Vec<f64>> = others
                .iter()
                .map(|other| self.values(other, point, metric))
                .collect::<Option<_>>()?;
            let one = |seed: usize| {
                let lower = |other: &Vec<f64>| lower_by(own[seed], *other.get(seed)?);
                mean(&others.iter().filter_map(lower).collect::<Vec<f64>>())
            };
            Some((0..own.len()).map(one).collect())
        };
        let by_point: Vec<Vec<Option<f64>>> =
            points.iter().map(|p| at(p)).collect::<Option<_>>()?;
        let seeds = by_point.iter().map(Vec::len).min()?;
        let over_points = (0..seeds).filter_map(|seed| {
            let values: Vec<f64> = by_point.iter().filter_map(|values| values[seed]).collect();
            mean(&values)
        });
        Spread::of(over_points.collect())
    }

    /// Returns the level of a series' in-cast tail at a point.
    pub fn regime(&self, series: &str, point: &Point, metric: Metric) -> Option<Regime> {
        let tail = self.value(series, point, metric)?.median;
        let (floor, timeout) = self.scales(series, point)?;
        Some(Regime::of(tail, floor, timeout))
    }

    /// Returns the floor and the timeout of the in-cast flows at a point, in slowdowns.
    pub fn scales(&self, series: &str, point: &Point) -> Option<(f64, f64)> {
        let measured = self.of(self.series(series)?, point).first()?;
        measured.floor.zip(measured.timeout)
    }

    /// Returns the reason why a series has no value: the first reason of its points.
    pub fn refusal(&self, series: &str) -> Option<String> {
        let series = self.series(series)?;
        let reasons = self.sweep.points.iter();
        let mut reasons = reasons.filter_map(|p| self.grid.refusal(&self.sweep.cell(series, p)));
        reasons.next().map(str::to_owned)
    }

    /// Returns a line for every series that was not run, with the reason. Series with the same reason share
    /// it.
    pub fn left_out(&self) -> Vec<String> {
        let mut by_reason: Vec<(String, Vec<&str>)> = Vec::new();
        for series in &self.sweep.series {
            let Some(reason) = self.refusal(&series.name) else {
                continue;
            };
            match by_reason.iter_mut().find(|(other, _)| *other == reason) {
                Some((_, names)) => names.push(&series.name),
                None => by_reason.push((reason, vec![&series.name])),
            }
        }
        let line = |(reason, names): (String, Vec<&str>)| {
            format!("{} not run: {reason}", names.join(", "))
        };
        by_reason.into_iter().map(line).collect()
    }

    /// Returns all simulations of the figure; those of several points occur several times.
    pub fn all(&self) -> impl Iterator<Item = &'a Measured> {
        let points = &self.sweep.points;
        let cells = self
            .sweep
            .series
            .iter()
            .flat_map(move |s| points.iter().map(move |p| (s, p)));
        cells.flat_map(|(series, point)| self.of(series, point))
    }

    /// Returns the number of lost lossless packets in all simulations of the figure; `None` if none has
    /// lossless packets.
    pub(crate) fn lossless_drops(&self) -> Option<u64> {
        let lossless = self.all().filter_map(|measured| measured.lossless.as_ref());
        let drops = lossless.map(|lossless| lossless.drops);
        drops.reduce(|sum, drops| sum + drops)
    }

    /// Returns the number of flows that did not finish, in all simulations of the figure.
    pub fn unfinished(&self) -> u64 {
        self.all().map(|measured| measured.unfinished).sum()
    }
}

/// Returns the reduction of a value relative to another, per cent; `None` if both are 0.
fn lower_by(own: f64, other: f64) -> Option<f64> {
    (own != 0.0 || other != 0.0).then(|| 100.0 * (1.0 - own / other))
}

/// Applies one [change](Sweep::change) to a point of a series.
fn changed(mut cell: Cell, change: &str) -> Cell {
    let setting = |cell: &mut Cell, setting: &str| cell.settings.push(setting.to_owned());
    match (change.split_once(':'), change.split_once("=>")) {
        (Some((name, parameter)), _) => {
            let changed = with_parameter(&cell.policy, name, parameter);
            cell.policy = changed.unwrap_or(cell.policy);
        }
        (_, Some((before, value))) => {
            let last = cell.settings.iter().rposition(|own| same_key(own, before));
            if last.is_some_and(|last| cell.settings[last] == before) {
                let key = before.split('=').next().unwrap_or_default();
                setting(&mut cell, &format!("{key}={value}"));
            }
        }
        _ => {
            cell.settings.retain(|own| !same_key(own, change));
            setting(&mut cell, change);
        }
    }
    cell
}

fn same_key(one: &str, other: &str) -> bool {
    one.split('=').next() == other.split('=').next()
}

/// Returns a policy with another value of a parameter, if the policy has this name.
fn with_parameter(policy: &str, name: &str, parameter: &str) -> Option<String> {
    let spec: PolicySpec = policy.parse().ok()?;
    let (key, value) = parameter.split_once('=')?;
    let changed = (spec.name() == name).then(|| spec.with(key, value).ok())?;
    changed.map(|spec| spec.to_string())
}

fn mean(values: &[f64]) -> Option<f64> {
    bufgym_eval::stats::mean(values)
}

#[cfg(test)]
mod tests;
