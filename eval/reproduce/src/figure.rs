//! Figures that files describe: `figures/PAPER-NUMBER.toml` has the simulations, the panels, the paper's
//! values and its claims.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::LazyLock;

use serde::Deserialize;

use super::Scale;
use super::claim::{Claim, Target};
use super::fabric::{FabricConfig, additions, in_words, learned};
use super::rules::{Also, Place, Rule, Subject};
use super::sweep::{Metric, Point, ReferenceTable, Series, Sweep, SweepResults};

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
    let figures = FIGURES.iter();
    figures.map(|(paper, number, figure)| (*paper, *number, figure))
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
    /// Simulations of every point at the scale of the paper, instead of five.
    paper_seeds: Option<u64>,
    /// Scenario, and its differences from the paper's; `{seeds}` becomes the number of seeds in words.
    method: String,
    /// The tail whose regimes the table shows.
    pub tail: Metric,
    axis: Axis,
    series: Vec<Curve>,
    pub additions: Option<Additions>,
    pub panels: Vec<PanelFile>,
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

/// The points. In the label of a point, and in policies and settings of series, `{}` becomes the value of the
/// point and `{NAME}` that of a column.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Axis {
    label: String,
    /// Label of a point.
    point: String,
    values: Vec<f64>,
    /// Positions in the drawing, if they are not the values.
    places: Option<Vec<f64>>,
    /// For every setting its values at the points.
    #[serde(default)]
    settings: BTreeMap<String, Vec<f64>>,
    #[serde(default)]
    columns: BTreeMap<String, Vec<Entry>>,
}

/// An entry of a column.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Entry {
    Number(f64),
    Text(String),
}

impl fmt::Display for Entry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Entry::Number(number) => write!(f, "{number}"),
            Entry::Text(text) => f.write_str(text),
        }
    }
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

/// A panel.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PanelFile {
    /// Number and panel, such as `6a`. Tables and claims name their panel in the same way.
    pub id: String,
    pub title: String,
    pub metric: Metric,
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
    /// Value of the point. Without it, the claim is about all points.
    at: Option<f64>,
    /// The claim is about the points with larger values.
    beyond: Option<f64>,
    /// The claim is about the points up to this value.
    until: Option<f64>,
    statement: String,
    /// Replaces the names of the series.
    name: Option<String>,
    /// Replaces the name of the metric.
    quantity: Option<String>,
    /// Replaces the words for a ranking.
    words: Option<String>,
    /// Replaces the words for the points.
    place: Option<String>,
    /// Replaces the remark of the rule. [`Subject::remark`] fills in results.
    remark: Option<String>,
    #[serde(default)]
    also: Vec<Also>,
}

/// The simulations of a figure.
pub(crate) struct FigurePlan {
    pub figure: &'static Figure,
    pub sweep: Sweep,
    /// Scenario, and its differences from the paper's.
    pub method: String,
}

impl FigurePlan {
    /// Compares the claims with the results.
    pub fn claims(&self, swept: &SweepResults) -> Vec<Claim> {
        let tables = self.figure.tables.iter();
        let tables = tables.flat_map(|table| self.figure.table(table, swept));
        let claims = self.figure.claims.iter();
        let claims = claims.map(|claim| self.figure.claim(claim, swept));
        tables.chain(claims).collect()
    }
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
        let of_paper = self.paper_seeds.filter(|_| config.scale == Scale::Paper);
        let seeds = config.seeds.or(of_paper).unwrap_or(config.seeds());
        FigurePlan {
            figure: self,
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
            method: self.method.replace("{seeds}", &in_words(seeds)),
        }
    }

    /// Returns figure and panel of a panel such as `6a`.
    fn panel(&'static self, id: &'static str) -> Place {
        (&self.figure, id.strip_prefix(&self.figure).unwrap_or(id))
    }

    /// Returns the claims of a table. Its rows have the order of the series.
    fn table(&'static self, table: &'static TableFile, swept: &SweepResults) -> Vec<Claim> {
        let rows = self.series.iter().filter_map(|series| {
            let values = table.values.get(&series.name)?;
            Some((series.name.as_str(), values.as_slice()))
        });
        let tabled = ReferenceTable {
            panel: self.panel(&table.panel),
            metric: table.metric,
            statement: &table.statement,
            rows: rows.collect(),
        };
        tabled.claims(swept)
    }

    fn claim(&'static self, of: &'static ClaimFile, swept: &SweepResults) -> Claim {
        let shown = self.panels.iter().find(|panel| panel.id == of.panel);
        let metric = of.metric.or(shown.map(|panel| panel.metric));
        let is_meant = |point: &&Point| {
            of.at.is_none_or(|x| x == point.x)
                && of.beyond.is_none_or(|x| x < point.x)
                && of.until.is_none_or(|x| x >= point.x)
        };
        let mut subject = Subject {
            swept,
            panel: self.panel(&of.panel),
            metric: metric.unwrap_or(self.tail),
            series: &of.series,
            others: of.others.iter().map(String::as_str).collect(),
            points: swept.sweep.points.iter().filter(is_meant).collect(),
            statement: &of.statement,
        };
        if matches!(of.rule, Rule::Anywhere(_)) {
            let panels = self.panels.iter();
            subject.move_to_largest(panels.map(|panel| (self.panel(&panel.id), panel.metric)));
        }
        let mut claim = subject.judged(of.rule);
        if let Some(name) = &of.name {
            claim.series.clone_from(name);
        }
        claim.metric = of.quantity.as_deref().unwrap_or(claim.metric);
        if let Some(words) = &of.words {
            claim.paper = Target::Order(words);
        }
        if let Some(place) = &of.place {
            claim.x.clone_from(place);
        }
        match &of.remark {
            Some(remark) => claim.remarked(subject.remark(remark, &of.also)),
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
        let point = |(number, x): (usize, &f64)| {
            let settings = self.settings.iter();
            let settings = settings.map(|(key, values)| format!("{key}={}", values[number]));
            let columns = self.columns.iter();
            let columns = columns.map(|(key, values)| (key.clone(), values[number].to_string()));
            let mut point = Point::new(*x, "", &settings.collect::<Vec<String>>());
            point.columns = columns.collect();
            point.label = point.fill(&self.point);
            if let Some(places) = &self.places {
                point.place = places[number];
            }
            point
        };
        self.values.iter().enumerate().map(point).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{FIGURES, Rule, all};

    /// Every column and table has a value for every point, and names only series, panels and points that
    /// the figure has. Every paper is described once.
    #[test]
    fn every_file_is_complete() {
        for (paper, number, figure) in FIGURES.iter() {
            let id = &figure.figure;
            let described = all().filter(|(of, _, other)| of == paper && other.paper.is_some());
            assert_eq!((described.count(), id.as_str()), (1, *number), "{paper}");
            let axis = &figure.axis;
            let series = |name: &String| figure.series.iter().any(|series| series.name == *name);
            let panel = |id: &String| figure.panels.iter().any(|panel| panel.id == *id);
            assert!(
                figure.panels.iter().all(|panel| panel.id.starts_with(id)),
                "{id}"
            );
            let settings = axis.settings.values().map(Vec::len);
            let columns = axis.columns.values().map(Vec::len);
            let lengths = settings
                .chain(columns)
                .chain(axis.places.as_ref().map(Vec::len));
            let points = axis.values.len();
            assert!(lengths.into_iter().all(|length| length == points), "{id}");
            for table in &figure.tables {
                assert!(panel(&table.panel), "{id}: {}", table.statement);
                for (name, values) in &table.values {
                    assert!(series(name), "{id}: {name}");
                    assert_eq!(values.len(), points, "{id}: {}: {name}", table.statement);
                }
            }
            for claim in &figure.claims {
                let place = |x: &f64| axis.values.contains(x);
                let places = [claim.at, claim.beyond, claim.until];
                let also = claim.also.iter();
                let also = also.flat_map(|also| also.others.iter().chain(&also.series));
                let mut named = claim.others.iter().chain([&claim.series]).chain(also);
                let needs_point = matches!(
                    claim.rule,
                    Rule::Value(_) | Rule::Increase(_) | Rule::Ratio(_) | Rule::Over { .. }
                );
                let complete = panel(&claim.panel)
                    && places.iter().flatten().all(place)
                    && named.all(series)
                    && (claim.at.is_some() || !needs_point);
                let others = match claim.rule {
                    Rule::Trend(_) | Rule::Constant | Rule::Steady(_) => 0..=0,
                    Rule::Value(_) | Rule::Increase(_) => 0..=0,
                    Rule::Alike => 2..=2,
                    Rule::Largest(_) | Rule::Anywhere(_) | Rule::OnPar | Rule::Below => 1..=1,
                    Rule::Ratio(_) | Rule::Over { .. } => 1..=1,
                    Rule::GrowsLess | Rule::Outgrows => 1..=1,
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
        let (.., figure) = all()
            .find(|(paper, number, _)| (*paper, *number) == ("abm", "6"))
            .unwrap();
        let at = |series: &str| figure.tables[0].values[series][1];
        let others = ["DT", "FAB", "CS", "IB"];
        let reductions = others.map(|other| 100.0 * (1.0 - at("ABM") / at(other)));
        let mean = reductions.iter().sum::<f64>() / 4.0;
        assert!((mean - 90.12).abs() < 1.0, "{mean}");
    }
}
