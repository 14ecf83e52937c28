//! Figures that files describe: `figures/PAPER-NUMBER.toml` has the simulations, the panels, the paper's
//! values and its claims.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

use super::Scale;
use super::claim::{Claim, Target};
use super::fabric::{FabricConfig, FigurePlan, PanelPlan, additions, in_words, learned};
use super::rules::{self, Trend};
use super::sweep::{
    Metric, Point, ReferenceRow, ReferenceTable, Series, Sweep, SweepResults, largest_reduction,
    on_a_par, reduced,
};

/// Paper, number and text of every file.
const FILES: &[(&str, &str, &str)] = include!(concat!(env!("OUT_DIR"), "/figures.rs"));

/// Paper, number and figure of every file, read at first use.
static FIGURES: LazyLock<Vec<(&str, &str, Figure)>> = LazyLock::new(|| {
    let figures = FILES.iter();
    let figures = figures.map(|&(paper, number, text)| (paper, number, Figure::read(text)));
    figures.collect()
});

/// Returns paper, number and figure of every file.
pub(crate) fn all() -> impl Iterator<Item = (&'static str, &'static str, &'static Figure)> {
    FIGURES
        .iter()
        .map(|(paper, number, figure)| (*paper, *number, figure))
}

/// A file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Figure {
    figure: String,
    /// The paper, in one of its files.
    pub paper: Option<About>,
    pub preset: String,
    settings: Vec<String>,
    /// Scenario, and its differences from the paper's; `{seeds}` becomes the number of seeds in words.
    method: String,
    /// The tail whose regimes the table shows.
    tail: Metric,
    axis: Axis,
    series: Vec<Curve>,
    pub additions: Option<Additions>,
    panels: Vec<PanelFile>,
    #[serde(default)]
    tables: Vec<TableFile>,
    #[serde(default)]
    claims: Vec<ClaimFile>,
}

/// What the figures of a paper share.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct About {
    /// Title with the conference, for people.
    pub title: String,
    /// Settings that all networks of the paper have.
    #[serde(default)]
    pub settings: Vec<String>,
    quick: Amount,
    paper: Amount,
    /// Notes that readers need for any of the comparisons.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// The amount of simulation of a scale.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Amount {
    pub settings: Vec<String>,
    /// Reductions of the scale, in words.
    pub extent: String,
}

impl About {
    /// Returns the amount of simulation of a scale.
    pub fn amount(&self, scale: Scale) -> &Amount {
        match scale {
            Scale::Quick => &self.quick,
            Scale::Paper => &self.paper,
        }
    }
}

/// Series that the paper does not have and that depend on the run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Additions {
    /// The unlimited buffer, the best static α, and the learned policy if there is one.
    All,
    /// The learned policy if there is one.
    Learned,
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

/// A claim about a series, mostly relative to others.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClaimFile {
    panel: String,
    /// The panel's metric if there is none.
    metric: Option<Metric>,
    series: String,
    #[serde(default)]
    others: Vec<String>,
    rule: Rule,
    /// Value of the point; without it, the claim is about the mean over all points.
    at: Option<f64>,
    statement: String,
    /// Replaces the names of the series.
    name: Option<String>,
    /// Replaces the name of the metric.
    quantity: Option<String>,
    /// Replaces the words for a ranking.
    words: Option<String>,
    /// Replaces the remark of the rule.
    remark: Option<String>,
    /// True if the remark is about the regimes of the in-cast tails.
    #[serde(default)]
    regimes: bool,
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
    /// Reduction relative to the other at the point where it is largest, per cent.
    Largest(f64),
    /// The series and the other are within 10 %.
    OnPar,
    /// The series is below the other.
    Below,
    /// The other is so many times as large as the series.
    Ratio(f64),
    /// The series has a trend over the axis.
    Trend(Trend),
    /// The series grows less over the axis than the other.
    GrowsLess,
    /// The series and the first other differ by at most a tenth of the second other.
    Alike,
    /// The series and all others are within 10 %.
    Similar,
    /// The series and all others are at most so large.
    AtMost(f64),
    /// The series has the same results at every point.
    Constant,
}

impl Figure {
    /// Reads an embedded file. A test reads all files.
    fn read(text: &str) -> Figure {
        toml::from_str(text).unwrap_or_else(|error| panic!("a file of a figure is wrong: {error}"))
    }

    /// Returns the letters of the panels.
    pub(crate) fn letters(&self) -> impl Iterator<Item = &str> {
        let ids = self.panels.iter().map(|panel| panel.id.as_str());
        ids.filter_map(|id| id.strip_prefix(&self.figure))
    }

    /// Returns true if a series has the policy with this name.
    pub(crate) fn has_policy(&self, name: &str) -> bool {
        let named = |series: &Curve| series.policy.split(':').next() == Some(name);
        self.series.iter().any(named)
    }

    /// Returns the plan of the figure. `alpha` is the best static α.
    pub(crate) fn plan(&'static self, config: &FabricConfig, alpha: &str) -> FigurePlan {
        let mut series: Vec<Series> = self.series.iter().map(Curve::series).collect();
        match self.additions {
            Some(Additions::All) => series.extend(additions(config, alpha)),
            Some(Additions::Learned) => series.extend(learned(config).map(Series::as_addition)),
            None => {}
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
    fn table(&'static self, table: &'static TableFile, swept: &SweepResults) -> Vec<Claim> {
        let rows = self.series.iter().filter_map(|series| {
            let values = table.values.get(&series.name)?;
            Some(ReferenceRow {
                series: &series.name,
                values,
            })
        });
        let tabled = ReferenceTable {
            panel: self.panel(&table.panel),
            metric: table.metric,
            statement: &table.statement,
            rows: &rows.collect::<Vec<ReferenceRow>>(),
        };
        tabled.claims(swept)
    }

    fn claim(&'static self, of: &'static ClaimFile, swept: &SweepResults) -> Claim {
        let panel = self.panel(&of.panel);
        let shown = self.panels.iter().find(|panel| panel.id == of.panel);
        let metric = of
            .metric
            .or(shown.map(|panel| panel.metric))
            .unwrap_or(self.tail);
        let (series, statement) = (of.series.as_str(), of.statement.as_str());
        let others: Vec<&str> = of.others.iter().map(String::as_str).collect();
        let other = |place: usize| others.get(place).copied().unwrap_or_default();
        let all: Vec<&str> = [series].into_iter().chain(others.iter().copied()).collect();
        let points = swept.sweep.points.iter();
        let points = points.filter(|point| of.at.is_none_or(|x| x == point.x));
        let points: Vec<&Point> = points.collect();
        let pair = (series, other(0));
        let reduction = |paper| {
            let (pair, paper) = ((series, others.as_slice()), (paper, statement));
            reduced(swept, panel, pair, &points, metric, paper)
        };
        let mut claim = match of.rule {
            Rule::Reduction(paper) => reduction(Target::Reduction(paper)),
            Rule::ReductionFrom(paper) => reduction(Target::AtLeast(paper)),
            Rule::Equal => reduction(Target::Reduction(0.0)).ranked(None),
            Rule::Largest(paper) => {
                let (name, paper) = (metric.reduction(), (paper, statement));
                largest_reduction(swept, panel, pair, metric, name, paper)
            }
            Rule::OnPar => on_a_par(swept, panel.1, pair, &points, metric, statement),
            Rule::Below => rules::below(swept, panel, pair, metric, statement),
            Rule::Ratio(paper) => {
                rules::ratio(swept, panel, pair, points[0], metric, (paper, statement))
            }
            Rule::Trend(trend) => rules::trend(swept, panel, series, metric, (trend, statement)),
            Rule::GrowsLess => rules::grows_less(swept, panel, pair, metric, statement),
            Rule::Alike => {
                let three = (series, other(0), other(1));
                rules::alike(swept, panel, three, metric, statement)
            }
            Rule::Similar => rules::similar(swept, panel, &all, metric, statement),
            Rule::AtMost(limit) => rules::at_most(swept, panel, &all, metric, (limit, statement)),
            Rule::Constant => rules::constant(swept, panel, series, metric, statement),
        };
        if let Some(name) = &of.name {
            claim.series = name.clone();
        }
        claim.metric = of.quantity.as_deref().unwrap_or(claim.metric);
        if let Some(words) = &of.words {
            claim.paper = Target::Order(words);
        }
        match &of.remark {
            Some(remark) => claim.remarked(remark),
            None if of.regimes => claim.remarked(rules::regimes(swept, &points, metric)),
            None => claim,
        }
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

#[cfg(test)]
mod tests {
    use super::{FIGURES, Rule, all};

    /// Every column and table has a value for every point, and names only series, panels and points that
    /// the figure has.
    #[test]
    fn every_file_is_complete() {
        for (paper, number, figure) in FIGURES.iter() {
            let id = &figure.figure;
            let described = all().filter(|(of, _, other)| of == paper && other.paper.is_some());
            assert_eq!((described.count(), id.as_str()), (1, *number), "{paper}");
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
                let others = match claim.rule {
                    Rule::Trend(_) | Rule::Constant => 0..=0,
                    Rule::Alike => 2..=2,
                    Rule::Largest(_) | Rule::OnPar | Rule::Below | Rule::GrowsLess => 1..=1,
                    Rule::Ratio(_) if claim.at.is_some() => 1..=1,
                    Rule::Ratio(_) => 0..=0,
                    _ => 1..=usize::MAX,
                };
                let complete = complete && others.contains(&claim.others.len());
                assert!(complete, "{id}: {}", claim.statement);
            }
        }
    }

    /// ABM’s Fig. 6 at 40 %: the text’s 90.12 % is the mean of the reductions against each of the others.
    #[test]
    fn the_text_agrees_with_the_table() {
        let is_it =
            |(paper, number, _): &&(&str, &str, super::Figure)| (*paper, *number) == ("abm", "6");
        let (.., figure) = FIGURES.iter().find(is_it).unwrap();
        let at = |series: &str| figure.tables[0].values[series][1];
        let others = ["DT", "FAB", "CS", "IB"];
        let reductions = others.map(|other| 100.0 * (1.0 - at("ABM") / at(other)));
        let mean = reductions.iter().sum::<f64>() / 4.0;
        assert!((mean - 90.12).abs() < 1.0, "{mean}");
    }
}
