//! The table of a swept figure: a row for every series and point.

use bufgym_eval::stats::Spread;

use super::{Metric, Point, Series, Swept};
use crate::report::{Table, addition, cell};

impl Swept<'_> {
    /// Returns all metrics at all points; series that were not run have no rows. `regime` is that of the tail
    /// `of`.
    pub fn table(&self, of: Metric) -> Table {
        let mut columns = vec!["series", "addition", "x", "runs", "unfinished"];
        let metrics = self.metrics();
        columns.extend(metrics.iter().flat_map(|metric| metric.columns()));
        columns.extend(["incast_floor", "incast_floor_and_rto", "regime"]);
        let mut table = Table::new(&format!("fig{}", self.sweep.figure), &columns);
        for series in &self.sweep.series {
            for point in &self.sweep.points {
                if !self.of(series, point).is_empty() {
                    table.push(self.row(series, point, &metrics, of));
                }
            }
        }
        table
    }

    /// Returns the metrics of the table: only figures with lossless packets have pauses.
    fn metrics(&self) -> Vec<Metric> {
        let has_lossless = self.all().any(|measured| measured.lossless.is_some());
        let metrics = Metric::ALL.into_iter();
        metrics
            .filter(|metric| has_lossless || !metric.is_of_lossless())
            .collect()
    }

    /// Returns one metric by seed: a row for every series, point and simulation.
    pub(crate) fn by_seed(&self, panel: &str, metric: Metric) -> Table {
        let columns = ["figure", "panel", "x", "policy", "seed", "value"];
        let letter = panel.trim_start_matches(self.sweep.figure);
        let name = match letter {
            "" => format!("fig{panel}-by-seed"),
            _ => format!("fig{panel}"),
        };
        let mut table = Table::new(&name, &columns);
        for series in &self.sweep.series {
            for point in &self.sweep.points {
                for (seed, measured) in self.of(series, point).iter().enumerate() {
                    table.push(vec![
                        self.sweep.figure.to_owned(),
                        letter.to_owned(),
                        point.x.to_string(),
                        series.name.clone(),
                        seed.to_string(),
                        cell(metric.of(measured)),
                    ]);
                }
            }
        }
        table
    }

    fn row(&self, series: &Series, point: &Point, metrics: &[Metric], of: Metric) -> Vec<String> {
        let measured = self.of(series, point);
        let unfinished: u64 = measured.iter().map(|one| one.unfinished).sum();
        let mut row = vec![
            series.name.clone(),
            addition(series.added),
            point.x.to_string(),
            measured.len().to_string(),
            unfinished.to_string(),
        ];
        for &metric in metrics {
            let value = self.value(&series.name, point, metric);
            let part = |part: fn(Spread) -> f64| cell(value.map(part));
            row.extend([
                part(|value| value.median),
                part(|value| value.least),
                part(|value| value.largest),
            ]);
        }
        let scales = self.scales(&series.name, point);
        let regime = self.regime(&series.name, point, of);
        row.push(cell(scales.map(|(floor, _)| floor)));
        row.push(cell(scales.map(|(floor, timeout)| floor + timeout)));
        row.push(regime.map_or_else(String::new, |regime| regime.to_string()));
        row
    }
}
