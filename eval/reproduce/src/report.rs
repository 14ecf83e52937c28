//! The output for a paper: tables, drawings, verdicts and the page.

use bufgym_eval::data::ScenarioFacts;
use bufgym_eval::figures::Figure;
use bufgym_eval::output::OutputError;
use bufgym_eval::stats::Estimate;
use bufgym_eval::table::aligned;
use bufgym_sim::scenario::Scenario;
use serde_json::{Map, Value, json};

use super::claim::{Claim, Kind, Ours};
use super::verdict::Grade;

/// A table of numbers, which becomes a CSV file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Table {
    /// File name without `.csv`.
    pub name: String,
    /// Headings of the columns.
    pub columns: Vec<&'static str>,
    /// One cell per column in every row.
    pub rows: Vec<Vec<String>>,
}

impl Table {
    /// Builds an empty table.
    pub fn new(name: &str, columns: &[&'static str]) -> Table {
        Table {
            name: name.to_owned(),
            columns: columns.to_vec(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// Panics if the row does not have exactly one cell per column.
    pub fn push(&mut self, row: Vec<String>) {
        assert_eq!(row.len(), self.columns.len(), "{}", self.name);
        self.rows.push(row);
    }

    /// Starts a table with a row for each of these, to which columns are added.
    pub(crate) fn of<T>(name: &str, keys: impl IntoIterator<Item = T>) -> Rows<T> {
        let keys: Vec<T> = keys.into_iter().collect();
        let mut table = Table::new(name, &[]);
        table.rows = keys.iter().map(|_| Vec::new()).collect();
        Rows { keys, table }
    }

    /// Renders some of the columns as text with aligned columns. Each is given by its heading and the number of
    /// decimals of its numbers.
    pub(crate) fn text(&self, columns: &[(&str, usize)]) -> String {
        let header: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
        let cell = |row: &[String], (name, decimals): (&str, usize)| {
            let place = self.columns.iter().position(|column| *column == name);
            let cell = place.map_or("", |place| row[place].as_str());
            match cell.parse::<f64>() {
                Ok(number) => format!("{number:.decimals$}"),
                Err(_) => cell.to_owned(),
            }
        };
        let rows = self.rows.iter();
        aligned(
            &header,
            rows.map(|row| columns.iter().map(|column| cell(row, *column)).collect()),
        )
    }

    pub(crate) fn csv(&self) -> Result<Vec<u8>, OutputError> {
        let mut writer = csv::Writer::from_writer(Vec::new());
        let mut write = |row: &mut dyn Iterator<Item = &str>| {
            let row: Vec<&str> = row.collect();
            writer.write_record(row).map_err(|error| encode(&error))
        };
        write(&mut self.columns.iter().copied())?;
        for row in &self.rows {
            write(&mut row.iter().map(String::as_str))?;
        }
        writer.into_inner().map_err(|error| encode(&error))
    }
}

/// A table that grows column by column.
pub(crate) struct Rows<T> {
    /// What the rows are about.
    keys: Vec<T>,
    table: Table,
}

impl<T> Rows<T> {
    /// Adds columns, whose cells follow from what a row is about.
    pub fn columns<const N: usize>(
        mut self,
        names: [&'static str; N],
        cells: impl Fn(&T) -> [String; N],
    ) -> Rows<T> {
        self.table.columns.extend(names);
        for (row, key) in self.table.rows.iter_mut().zip(&self.keys) {
            row.extend(cells(key));
        }
        self
    }

    /// Adds a column of texts.
    pub fn text(self, name: &'static str, text: impl Fn(&T) -> String) -> Rows<T> {
        self.columns([name], |key| [text(key)])
    }

    /// Adds a column of numbers.
    pub fn number(self, name: &'static str, value: impl Fn(&T) -> Option<f64>) -> Rows<T> {
        self.columns([name], |key| [cell(value(key))])
    }

    /// Adds the three columns of an interval: value, lower and upper end.
    pub fn interval(
        self,
        names: [&'static str; 3],
        value: impl Fn(&T) -> Option<Estimate>,
    ) -> Rows<T> {
        self.columns(names, |key| cells(value(key).as_ref()))
    }

    /// Returns the table.
    pub fn table(self) -> Table {
        self.table
    }
}

fn encode(error: &dyn std::fmt::Display) -> OutputError {
    OutputError::Encode {
        name: "a table",
        reason: error.to_string(),
    }
}

/// Formats a number in a table: the shortest text that reads back to the same number, empty if there is none.
pub fn cell(value: Option<f64>) -> String {
    let finite = value.filter(|value| value.is_finite());
    finite.map_or_else(String::new, |value| value.to_string())
}

/// Returns the three cells of an interval: value, lower and upper end.
pub fn cells(interval: Option<&Estimate>) -> [String; 3] {
    let part = |part: fn(&Estimate) -> f64| cell(interval.map(part));
    [part(|i| i.centre), part(|i| i.low), part(|i| i.high)]
}

/// Returns the word that marks series that the paper does not have.
pub fn addition(is_addition: bool) -> String {
    if is_addition { "yes" } else { "" }.to_owned()
}

/// A figure or one of its panels.
#[derive(Clone, Debug)]
pub struct Panel {
    /// Number and panel, such as `8a`.
    pub id: &'static str,
    /// Title of the panel.
    pub title: &'static str,
    /// Method: scenario, traces, differences from the paper's.
    pub method: String,
    /// Tables of the panel's numbers.
    pub tables: Vec<Table>,
    /// Drawings.
    pub drawings: Vec<Figure>,
}

/// A reproduced paper.
#[derive(Clone, Debug)]
pub struct Report {
    /// Name in files.
    pub paper: &'static str,
    /// Name and reference for people.
    pub title: &'static str,
    /// `quick` or `paper`.
    pub scale: String,
    /// Independent sets of traces.
    pub seeds: u64,
    /// Seed of the first set.
    pub seed: u64,
    /// Amount of simulation, and reductions compared with the paper.
    pub extent: String,
    /// Description of the intervals.
    pub intervals: String,
    /// Notes that readers need for any of the comparisons.
    pub notes: Vec<String>,
    /// The figures.
    pub panels: Vec<Panel>,
    /// The claims, in the order of the figures.
    pub claims: Vec<Claim>,
    /// The scenarios.
    pub scenarios: Vec<ScenarioFacts>,
    /// Program and version.
    pub software: String,
    /// Wall time, seconds.
    pub wall_s: f64,
}

impl Report {
    /// Adds the facts of a scenario, unless they are there already.
    pub(crate) fn add_scenario(&mut self, scenario: &Scenario) {
        if self
            .scenarios
            .iter()
            .all(|facts| facts.name != scenario.name)
        {
            self.scenarios.push(ScenarioFacts::of(scenario));
        }
    }

    /// Returns the numbers of claims with each grade, of one kind or of all.
    pub fn counts(&self, kind: Option<Kind>) -> [usize; Grade::ALL.len()] {
        let of_kind = |claim: &&Claim| kind.is_none_or(|kind| claim.kind == kind);
        let claims: Vec<&Claim> = self.claims.iter().filter(of_kind).collect();
        Grade::ALL.map(|grade| claims.iter().filter(|c| c.grade() == grade).count())
    }

    /// Returns the number of claims with one of the three grades of agreement, and of all.
    pub fn agreeing(&self, kind: Option<Kind>) -> (usize, usize) {
        let counts = self.counts(kind);
        (counts[..3].iter().sum(), counts.iter().sum())
    }

    /// Returns the rows of `verdicts.csv`.
    pub fn verdicts(&self) -> Table {
        Table::of("verdicts", &self.claims)
            .text("paper", |_| self.paper.to_owned())
            .text("figure", |claim| claim.figure.to_owned())
            .text("panel", |claim| claim.panel.to_owned())
            .text("series", |claim| claim.series.clone())
            .text("x", |claim| claim.x.clone())
            .text("metric", |claim| claim.metric.to_owned())
            .text("paper_value", |claim| claim.paper.to_string())
            .text("kind", |claim| claim.kind.to_string())
            .number("ours", |claim| Some(claim.ours?.value()))
            .number("ours_lo", |claim| Some(claim.ours?.ends()[0]))
            .number("ours_hi", |claim| Some(claim.ours?.ends()[1]))
            .text("seeds", |_| self.seeds.to_string())
            .text("verdict", |claim| claim.verdict().to_string())
            .text("why", |claim| claim.remark.clone())
            .text("ends", |claim| {
                claim.ours.as_ref().map_or("", Ours::kind).to_owned()
            })
            .table()
    }

    /// Returns everything except tables and drawings as one JSON object: counts, rows of `verdicts.csv`,
    /// names of the files.
    pub fn to_json(&self) -> Value {
        let table = self.verdicts();
        let rows: Vec<Value> = table
            .rows
            .iter()
            .map(|row| {
                let fields = table.columns.iter().zip(row);
                let fields = fields.map(|(name, cell)| ((*name).to_owned(), json!(cell)));
                Value::Object(fields.collect())
            })
            .collect();
        let counts = |kind: Option<Kind>| {
            let named = Grade::ALL.iter().zip(self.counts(kind));
            let named = named.map(|(grade, count)| (grade.name().to_owned(), json!(count)));
            Value::Object(named.collect::<Map<_, _>>())
        };
        let by_kind = Kind::ALL.map(|kind| (kind.name().to_owned(), counts(Some(kind))));
        json!({
            "paper": self.paper,
            "scale": self.scale,
            "seeds": self.seeds,
            "seed": self.seed,
            "extent": self.extent,
            "counts": counts(None),
            "counts_by_kind": Value::Object(by_kind.into_iter().collect()),
            "rows": rows,
            "files": self.names(),
            "wall_s": self.wall_s,
        })
    }

    /// Returns the names of all files.
    pub(crate) fn names(&self) -> Vec<String> {
        let mut names = vec!["index.html".to_owned(), "verdicts.csv".to_owned()];
        for panel in &self.panels {
            names.extend(panel.tables.iter().map(|t| format!("{}.csv", t.name)));
            names.extend(panel.drawings.iter().map(|f| format!("{}.svg", f.name)));
        }
        names
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::claim::Target;

    /// Builds a report of three claims without drawings.
    pub fn small() -> Report {
        let ours = |mean: f64| {
            Some(Estimate {
                centre: mean,
                low: mean - 1.0,
                high: mean + 1.0,
            })
        };
        let mut table = Table::new("fig1", &["policy", "ms"]);
        table.push(vec!["dt".to_owned(), cell(Some(1.5))]);
        let claims = vec![
            Claim::number(("1", "a"), "x", "mean, ms", "x is 10", Target::Value(10.0))
                .measured(ours(11.0)),
            Claim::order(("1", "b"), "y", "order", "y is best", "y < z").ranked(Some(false)),
            Claim::number(
                ("1", "c"),
                "z",
                "p99",
                "z, <b>somehow</b>",
                Target::Open("no setting"),
            ),
        ];
        Report {
            paper: "test",
            title: "A test",
            scale: "quick".to_owned(),
            seeds: 2,
            seed: 1,
            extent: "nothing was simulated".to_owned(),
            intervals: "Intervals are made up.".to_owned(),
            notes: vec!["a note".to_owned()],
            panels: vec![Panel {
                id: "1a",
                title: "A table",
                method: "by hand".to_owned(),
                tables: vec![table],
                drawings: Vec::new(),
            }],
            claims,
            scenarios: Vec::new(),
            software: "bufgym 0.0.0".to_owned(),
            wall_s: 1.0,
        }
    }

    #[test]
    fn claims_are_counted_by_kind() {
        let report = small();
        assert_eq!(report.counts(None), [1, 0, 0, 1, 1]);
        assert_eq!(report.counts(Some(Kind::Text)), [1, 0, 0, 0, 1]);
        assert_eq!(report.counts(Some(Kind::Order)), [0, 0, 0, 1, 0]);
        assert_eq!(report.agreeing(None), (1, 3));
        let json = report.to_json();
        assert_eq!(json["counts"]["agrees"], 1);
        assert_eq!(json["counts_by_kind"]["order"]["differs"], 1);
        assert_eq!(json["rows"][1]["verdict"], "differs: unexplained");
        let files = ["index.html", "verdicts.csv", "fig1.csv"];
        assert_eq!(json["files"], json!(files));
    }

    #[test]
    fn rows_of_the_verdicts() {
        let text = String::from_utf8(small().verdicts().csv().unwrap()).unwrap();
        let mut lines = text.lines();
        assert_eq!(
            lines.next(),
            Some(
                "paper,figure,panel,series,x,metric,paper_value,kind,ours,ours_lo,ours_hi,seeds,verdict,why,ends"
            )
        );
        assert_eq!(
            lines.next(),
            Some("test,1,a,x,,\"mean, ms\",10,text,11,10,12,2,agrees,,interval")
        );
        assert_eq!(
            lines.next(),
            Some("test,1,b,y,,order,y < z,order,,,,2,differs: unexplained,,")
        );
        assert_eq!(
            lines.next(),
            Some("test,1,c,z,,p99,,text,,,,2,not comparable: no setting,,")
        );
        assert_eq!(lines.next(), None);
    }
}
