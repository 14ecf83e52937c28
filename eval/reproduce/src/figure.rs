//! Figures that files describe: `figures/PAPER-NUMBER.toml` has the simulations, the panels, the paper's
//! values and its claims.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::claim::{Claim, Target};
use super::fabric::{FabricConfig, FigurePlan, PanelPlan, additions, in_words};
use super::sweep::{Metric, Point, Series, Sweep, Swept, Tabled, TabledRow, reduced};

/// The figures of a paper that files describe, read at first use.
pub(crate) type Figures = LazyLock<Vec<Figure>>;

/// Embeds the files of a paper's figures.
macro_rules! figures {
    ($paper:literal: $($number:literal),+) => {
        std::sync::LazyLock::new(|| vec![$(crate::figure::Figure::read(include_str!(concat!(
            env!("CARGO_MANIFEST_DIR"), "/figures/", $paper, "-", $number, ".toml"
        )))),+])
    };
}
pub(crate) use figures;

/// A file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Figure {
    figure: String,
    preset: String,
    settings: Vec<String>,
    /// Scenario, and its differences from the paper's; `{seeds}` becomes the number of seeds in words.
    method: String,
    /// The tail whose regimes the table shows.
    tail: Metric,
    axis: Axis,
    series: Vec<Curve>,
    /// True if the series that every comparison of policies has are added.
    #[serde(default)]
    additions: bool,
    panels: Vec<PanelFile>,
    #[serde(default)]
    tables: Vec<TableFile>,
    #[serde(default)]
    claims: Vec<ClaimFile>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Axis {
    label: String,
    /// Label of a point, with `{}` for its value.
    point: String,
    values: Vec<f64>,
    /// For every setting its values at the points.
    settings: BTreeMap<String, Vec<f64>>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Curve {
    name: String,
    policy: String,
    #[serde(default)]
    settings: Vec<String>,
    /// True if the paper does not have the series.
    #[serde(default)]
    added: bool,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PanelFile {
    /// Number and panel, such as `6a`. Tables and claims name their panel in the same way.
    id: String,
    title: String,
    metric: Metric,
}

/// The paper's values of a metric: for every series one for each point.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct TableFile {
    panel: String,
    metric: Metric,
    statement: String,
    values: BTreeMap<String, Vec<f64>>,
}

/// A claim about a series relative to others.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClaimFile {
    panel: String,
    /// The panel's metric if there is none.
    metric: Option<Metric>,
    series: String,
    others: Vec<String>,
    rule: Rule,
    /// Value of the point; without it, the claim is about the mean over all points.
    at: Option<f64>,
    statement: String,
    /// Replaces the names of the series.
    name: Option<String>,
    /// Replaces the name of the metric.
    quantity: Option<String>,
    #[serde(default)]
    remark: String,
}

/// The rule of a claim, with the paper's value.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Rule {
    /// Reduction relative to the mean of the others, per cent.
    Reduction(f64),
    /// Reduction of at least so much.
    ReductionFrom(f64),
    /// No reduction: a difference of up to five points agrees, and there is no order.
    Equal,
    /// The first other is so many times as large as the series.
    Ratio(f64),
}

impl Figure {
    /// Reads an embedded file. A test reads all files.
    pub(crate) fn read(text: &str) -> Figure {
        toml::from_str(text).unwrap_or_else(|error| panic!("a file of a figure is wrong: {error}"))
    }

    /// Returns the plan of the figure of this number, if a file describes it.
    pub(crate) fn planned(
        figures: &'static Figures,
        number: &str,
        config: &FabricConfig,
        alpha: &str,
    ) -> Option<FigurePlan> {
        let figure = figures.iter().find(|figure| figure.figure == number)?;
        Some(figure.plan(config, alpha))
    }

    fn plan(&'static self, config: &FabricConfig, alpha: &str) -> FigurePlan {
        let mut series: Vec<Series> = self.series.iter().map(Curve::series).collect();
        if self.additions {
            series.extend(additions(config, alpha));
        }
        let seeds = config.seeds();
        let panels = self.panels.iter().map(|panel| PanelPlan {
            id: &panel.id,
            title: &panel.title,
            metric: panel.metric,
        });
        FigurePlan {
            sweep: Sweep {
                figure: &self.figure,
                preset: &self.preset,
                settings: self.settings.clone(),
                series,
                points: self.axis.points(),
                x_label: &self.axis.label,
                seeds,
                changes: Vec::new(),
            },
            panels: panels.collect(),
            tail: self.tail,
            method: self.method.replace("{seeds}", &in_words(seeds)),
            claims: Box::new(|swept| {
                let tables = self
                    .tables
                    .iter()
                    .flat_map(|table| self.table(table, swept));
                let claims = self.claims.iter().map(|claim| self.claim(claim, swept));
                tables.chain(claims).collect()
            }),
        }
    }

    /// Returns figure and panel of a panel such as `6a`.
    fn panel(&'static self, id: &'static str) -> (&'static str, &'static str) {
        (&self.figure, id.strip_prefix(&self.figure).unwrap_or(id))
    }

    /// Returns the claims of a table. Its rows have the order of the series.
    fn table(&'static self, table: &'static TableFile, swept: &Swept) -> Vec<Claim> {
        let rows = self.series.iter().filter_map(|series| {
            let values = table.values.get(&series.name)?;
            Some(TabledRow {
                series: &series.name,
                values,
            })
        });
        let tabled = Tabled {
            panel: self.panel(&table.panel),
            metric: table.metric,
            statement: &table.statement,
            rows: &rows.collect::<Vec<TabledRow>>(),
        };
        tabled.claims(swept)
    }

    fn claim(&'static self, of: &'static ClaimFile, swept: &Swept) -> Claim {
        let panel = self.panel(&of.panel);
        let shown = self.panels.iter().find(|panel| panel.id == of.panel);
        let metric = of
            .metric
            .or(shown.map(|panel| panel.metric))
            .unwrap_or(self.tail);
        let others: Vec<&str> = of.others.iter().map(String::as_str).collect();
        let points = swept.sweep.points.iter();
        let points = points.filter(|point| of.at.is_none_or(|x| x == point.x));
        let points: Vec<&Point> = points.collect();
        let reduction = |paper| {
            let paper = (paper, of.statement.as_str());
            reduced(swept, panel, (&of.series, &others), &points, metric, paper)
        };
        let mut claim = match of.rule {
            Rule::Reduction(paper) => reduction(Target::Reduction(paper)),
            Rule::ReductionFrom(paper) => reduction(Target::AtLeast(paper)),
            Rule::Equal => reduction(Target::Reduction(0.0)).ranked(None),
            Rule::Ratio(paper) => {
                let pair = (others[0], of.series.as_str());
                ratio(
                    swept,
                    panel,
                    pair,
                    points[0],
                    metric,
                    (paper, &of.statement),
                )
            }
        };
        if let Some(name) = &of.name {
            claim.series = name.clone();
        }
        claim.metric = of.quantity.as_deref().unwrap_or(claim.metric);
        claim.remarked(&of.remark)
    }
}

impl Curve {
    fn series(&self) -> Series {
        let settings: Vec<&str> = self.settings.iter().map(String::as_str).collect();
        let series = Series::with(&self.name, &self.policy, &settings);
        match self.added {
            true => series.as_addition(),
            false => series,
        }
    }
}

impl Axis {
    fn points(&self) -> Vec<Point> {
        let point = |(place, x): (usize, &f64)| {
            let settings = self.settings.iter();
            let settings = settings.map(|(key, values)| format!("{key}={}", values[place]));
            let label = self.point.replace("{}", &x.to_string());
            Point::new(*x, label, &settings.collect::<Vec<String>>())
        };
        self.values.iter().enumerate().map(point).collect()
    }
}

/// Claims how many times as large as another a series is at a point. The order holds from 1.5 on.
fn ratio(
    swept: &Swept,
    panel: (&'static str, &'static str),
    (upper, lower): (&str, &str),
    point: &Point,
    metric: Metric,
    (paper, statement): (f64, &'static str),
) -> Claim {
    let name = format!("{upper} vs {lower}");
    let values = |series| swept.values(series, point, metric);
    let ratios = values(upper).zip(values(lower)).map(|(upper, lower)| {
        let pairs = upper.iter().zip(&lower);
        pairs
            .map(|(upper, lower)| upper / lower)
            .collect::<Vec<f64>>()
    });
    let ours = ratios.and_then(bufgym_eval::stats::Spread::of);
    Claim::number(panel, &name, metric.name(), statement, Target::Value(paper))
        .at(point.label.clone())
        .measured(ours)
        .ranked(ours.map(|ours| ours.median > 1.5))
        .not_run(swept.refusal(upper))
}

#[cfg(test)]
mod tests {
    /// Every column and table has a value for every point, and names only series, panels and points that
    /// the figure has.
    #[test]
    fn every_file_is_complete() {
        for figure in crate::abm::FIGURES.iter() {
            let id = &figure.figure;
            let points = figure.axis.values.len();
            let series = |name: &String| figure.series.iter().any(|series| series.name == *name);
            let panel = |id: &String| figure.panels.iter().any(|panel| panel.id == *id);
            assert!(
                figure.panels.iter().all(|panel| panel.id.starts_with(id)),
                "{id}"
            );
            for (key, values) in &figure.axis.settings {
                assert_eq!(values.len(), points, "{id}: {key}");
            }
            for table in &figure.tables {
                assert!(panel(&table.panel), "{id}: {}", table.statement);
                for (name, values) in &table.values {
                    assert!(series(name), "{id}: {name}");
                    assert_eq!(values.len(), points, "{id}: {}: {name}", table.statement);
                }
            }
            for claim in &figure.claims {
                let place = |x: f64| figure.axis.values.contains(&x);
                let named = claim.others.iter().chain([&claim.series]).all(series);
                let complete = panel(&claim.panel) && claim.at.is_none_or(place) && named;
                assert!(
                    complete && !claim.others.is_empty(),
                    "{id}: {}",
                    claim.statement
                );
            }
        }
    }
}
