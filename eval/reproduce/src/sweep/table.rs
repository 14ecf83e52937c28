//! The table of a swept figure: a row for every series and point.

use bufgym_eval::stats::Spread;

use super::{Metric, Point, Series, SweepResults};
use crate::grid::Measured;
use crate::report::{Table, addition, cell};

/// A series at a point, with its simulations.
type Row<'a> = (&'a Series, &'a Point, &'a [Measured]);

impl SweepResults<'_> {
    /// Returns all metrics at all points; series that were not run have no rows. `regime` is that of the tail
    /// `of`. Some metrics are only there if they are among those `shown` in panels.
    pub fn table(&self, of: Metric, shown: &[Metric]) -> Table {
        let name = format!("fig{}", self.sweep.figure);
        let rows = self.cells().filter(|row| !row.2.is_empty());
        let unfinished = |runs: &[Measured]| runs.iter().map(|one| one.unfinished).sum::<u64>();
        let mut table = Table::of(&name, rows)
            .text("series", |row| row.0.name.clone())
            .text("addition", |row| addition(row.0.added))
            .text("x", |row| row.1.x.to_string())
            .text("runs", |row| row.2.len().to_string())
            .text("unfinished", |row| unfinished(row.2).to_string());
        for metric in self.metrics(shown) {
            table = table.columns(metric.columns(), |row| {
                let value = self.value(&row.0.name, row.1, metric);
                let part = |part: fn(Spread) -> f64| cell(value.map(part));
                [
                    part(|value| value.median),
                    part(|value| value.least),
                    part(|value| value.largest),
                ]
            });
        }
        let scales = |row: &Row<'_>| self.scales(&row.0.name, row.1);
        table
            .number("incast_floor", |row| Some(scales(row)?.0))
            .number("incast_floor_and_rto", |row| {
                scales(row).map(|(floor, rto)| floor + rto)
            })
            .text("regime", |row| {
                let regime = self.regime(&row.0.name, row.1, of);
                regime.map_or_else(String::new, |regime| regime.to_string())
            })
            .table()
    }

    /// Returns every series at every point, with its simulations.
    fn cells(&self) -> impl Iterator<Item = Row<'_>> {
        let of_series = move |series| {
            let points = self.sweep.points.iter();
            points.map(move |point| (series, point, self.of(series, point)))
        };
        self.sweep.series.iter().flat_map(of_series)
    }

    /// Returns the metrics of the table: only figures with lossless packets have pauses.
    fn metrics(&self, shown: &[Metric]) -> Vec<Metric> {
        let has_lossless = self.all().any(|measured| measured.lossless.is_some());
        let has = |metric: &Metric| {
            (has_lossless || !metric.is_of_lossless())
                && (shown.contains(metric) || !metric.needs_panel())
        };
        Metric::ALL.iter().copied().filter(has).collect()
    }

    /// Returns one metric by seed: a row for every series, point and simulation.
    pub(crate) fn by_seed(&self, panel: &str, metric: Metric) -> Table {
        let letter = panel.trim_start_matches(self.sweep.figure);
        let name = match letter {
            "" => format!("fig{panel}-by-seed"),
            _ => format!("fig{panel}"),
        };
        let rows = self.cells().flat_map(|(series, point, runs)| {
            let runs = runs.iter().enumerate();
            runs.map(move |(seed, measured)| (series, point, seed, measured))
        });
        Table::of(&name, rows)
            .text("figure", |_| self.sweep.figure.to_owned())
            .text("panel", |_| letter.to_owned())
            .text("x", |row| row.1.x.to_string())
            .text("policy", |row| row.0.name.clone())
            .text("seed", |row| row.2.to_string())
            .number("value", |row| metric.of(row.3))
            .table()
    }
}
