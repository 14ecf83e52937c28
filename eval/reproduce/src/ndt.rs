//! NDT: Wang et al., "Learning Buffer Management Policies for Shared Memory Switches" (IEEE INFOCOM
//! 2022), Fig. 8 to 12 and the number of parameters (§V-A).
//!
//! The paper has no tables of results and its figures could not be digitised, so every claim comes from its
//! text. There is one file per group of figures.

mod drops;
mod experiment;
mod incast;
mod queues;
mod setting;
mod single;
mod testbed;
mod triggers;

use std::fmt;
use std::str::FromStr;
use std::time::Instant;

use bufgym_eval::entrant::Entrant;
use bufgym_eval::stats::{Estimate, RESAMPLES};
use bufgym_util::convert::index;
use bufgym_util::input::excerpt;

use super::Scale;
use super::claim::{Claim, Target};
use super::report::{Panel, Report, Table};
use super::runs::{PapersError, Work};
use super::variants;

pub(crate) use drops::Drops as DropsRun;
pub(crate) use incast::IncastRun;
pub(crate) use queues::QueuesRun;
pub(crate) use testbed::measured::Predicted as PredictedRun;
pub(crate) use triggers::PacketIntervals;

use setting::{Context, Extent};

pub use testbed::measured::{Made, MeasuredConfig, MeasuredPlan, Order, SWEPT};
pub use testbed::played::Played;

/// Name in files and on the command line.
pub(crate) const NAME: &str = "ndt";
/// Title with the conference.
pub(crate) const TITLE: &str =
    "“Learning Buffer Management Policies for Shared Memory Switches” (NDT, IEEE INFOCOM 2022)";

/// A figure or panel of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum NdtFigure {
    /// Distribution of the mean FCT over traces.
    MeanFct,
    /// Improvement over DT per trace.
    Improvement,
    /// p99 FCT relative to DT.
    Tail,
    /// 96 ports with a 95-to-1 in-cast.
    Incast,
    /// The testbed with web search.
    WebSearch,
    /// The testbed with data mining.
    DataMining,
    /// Queues and thresholds in a 4-to-2 in-cast.
    Queues,
    /// Occupancy of the port at drops.
    Drops,
    /// Variance of port slowdowns.
    Fairness,
    /// Time between decisions against inference time.
    Triggers,
    /// Number of parameters.
    Parameters,
}

impl NdtFigure {
    /// All figures and panels, in the order of the paper.
    pub const ALL: [NdtFigure; 11] = [
        NdtFigure::MeanFct,
        NdtFigure::Improvement,
        NdtFigure::Tail,
        NdtFigure::Incast,
        NdtFigure::WebSearch,
        NdtFigure::DataMining,
        NdtFigure::Queues,
        NdtFigure::Drops,
        NdtFigure::Fairness,
        NdtFigure::Triggers,
        NdtFigure::Parameters,
    ];

    /// Returns the number and panel; for a section, its number.
    pub fn id(self) -> &'static str {
        match self {
            NdtFigure::MeanFct => "8a",
            NdtFigure::Improvement => "8b",
            NdtFigure::Tail => "8c",
            NdtFigure::Incast => "8d",
            NdtFigure::WebSearch => "9a",
            NdtFigure::DataMining => "9b",
            NdtFigure::Queues => "10",
            NdtFigure::Drops => "11",
            NdtFigure::Fairness => "12a",
            NdtFigure::Triggers => "12b",
            NdtFigure::Parameters => "V-A",
        }
    }

    /// Returns the number without the panel.
    fn number(self) -> &'static str {
        self.id().trim_end_matches(|c: char| c.is_ascii_lowercase())
    }
}

/// One or several figures of the command line: `8` is all panels of Fig. 8.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection(pub Vec<NdtFigure>);

/// A text that names no figure.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{}` is no figure of this paper with results: {}", excerpt(.0), names())]
pub struct UnknownFigure(String);

/// Lists all valid selections.
fn names() -> String {
    let mut names: Vec<&str> = Vec::new();
    for figure in NdtFigure::ALL {
        for name in [figure.number(), figure.id()] {
            if !names.contains(&name) {
                names.push(name);
            }
        }
    }
    names.join(", ")
}

impl FromStr for Selection {
    type Err = UnknownFigure;

    fn from_str(text: &str) -> Result<Selection, UnknownFigure> {
        let named = |figure: &NdtFigure| {
            let is = |name: &str| name.eq_ignore_ascii_case(text);
            is(figure.id()) || is(figure.number())
        };
        let found: Vec<NdtFigure> = NdtFigure::ALL.into_iter().filter(named).collect();
        match found.is_empty() {
            true => Err(UnknownFigure(text.to_owned())),
            false => Ok(Selection(found)),
        }
    }
}

impl fmt::Display for Selection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ids: Vec<&str> = self.0.iter().map(|figure| figure.id()).collect();
        f.pad(&ids.join(", "))
    }
}

/// Configuration of the figures.
#[derive(Clone, Debug)]
pub struct NdtConfig {
    /// The policy of the series NDT: a network.
    pub learned: Entrant,
    /// Number of weights of the network.
    pub parameters: usize,
    /// Amount of simulation.
    pub scale: Scale,
    /// Number of test traces of every point, instead of the scale's.
    pub traces: Option<u64>,
    /// Independent sets of test traces, at least 1. There is one set of weights: each additional set adds
    /// traces, and intervals are over all of them.
    pub seeds: u64,
    /// Seed of the first set; the others follow.
    pub seed: u64,
    /// Figures to make; all if empty.
    pub figures: Vec<NdtFigure>,
    /// Bootstrap resamples behind every interval.
    pub resamples: usize,
}

impl NdtConfig {
    /// Builds a configuration for all figures of a policy at a scale, with one set of traces.
    pub fn new(learned: Entrant, parameters: usize, scale: Scale, seed: u64) -> NdtConfig {
        NdtConfig {
            learned,
            parameters,
            scale,
            traces: None,
            seeds: 1,
            seed,
            figures: Vec::new(),
            resamples: RESAMPLES,
        }
    }

    fn wants(&self, figure: NdtFigure) -> bool {
        self.figures.is_empty() || self.figures.contains(&figure)
    }
}

/// Makes the figures. Apart from wall times and the inference time of Fig. 12(b), the result is the same for
/// the same configuration, whatever the number of threads and whoever runs the simulations. Runs that provide
/// observations for the inference time of Fig. 12(b) always run here.
///
/// # Errors
/// Fails if the learned policy is not a network, or if a run fails.
pub fn run(config: &NdtConfig, work: Work<'_>) -> Result<Report, PapersError> {
    let start = Instant::now();
    let Some((_, low_level)) = config.learned.network() else {
        return Err(PapersError::NotANetwork(config.learned.name().to_owned()));
    };
    let extent = Extent::of(config.scale, config.traces);
    let wanted: Vec<NdtFigure> = NdtFigure::ALL
        .into_iter()
        .filter(|figure| config.wants(*figure))
        .collect();
    let planned = wanted
        .iter()
        .map(|figure| planned(*figure, config, &extent));
    work.plan(planned.sum());
    let context = Context {
        learned: &config.learned,
        extent,
        seed: config.seed,
        seeds: config.seeds,
        resamples: config.resamples,
        work,
    };
    let mut report = Report {
        paper: NAME,
        title: TITLE,
        scale: config.scale.to_string(),
        seeds: config.seeds,
        seed: config.seed,
        extent: context.extent.described(config),
        intervals: format!(
            "Intervals are 95 % percentile bootstrap intervals over traces ({} seeded resamples), \
             paired over policies.",
            bufgym_eval::format::count(RESAMPLES as u64)
        ),
        notes: notes(config, &low_level.to_string(), low_level.is_default()),
        panels: Vec::new(),
        claims: Vec::new(),
        scenarios: Vec::new(),
        software: concat!("bufgym ", env!("CARGO_PKG_VERSION")).to_owned(),
        wall_s: 0.0,
    };
    single::make(&context, &wanted, &mut report)?;
    if wanted.contains(&NdtFigure::Incast) {
        incast::make(&context, &mut report)?;
    }
    for figure in [NdtFigure::WebSearch, NdtFigure::DataMining] {
        if wanted.contains(&figure) {
            testbed::make(&context, figure, &mut report)?;
        }
    }
    if wanted.contains(&NdtFigure::Queues) {
        queues::make(&context, &mut report)?;
    }
    if wanted.contains(&NdtFigure::Drops) {
        drops::make(&context, &mut report)?;
    }
    if wanted.contains(&NdtFigure::Triggers) {
        triggers::make(&context, &mut report)?;
    }
    if wanted.contains(&NdtFigure::Parameters) {
        parameters(config.parameters, &mut report);
    }
    sort(&mut report);
    report.wall_s = start.elapsed().as_secs_f64();
    Ok(report)
}

/// Returns the number of simulations of a figure that are known in advance. Simulations that figures share
/// count once. Repetitions of claims that differ are added later.
fn planned(figure: NdtFigure, config: &NdtConfig, extent: &Extent) -> usize {
    let seeds = index(config.seeds);
    let first_single = single::FIGURES.into_iter().find(|f| config.wants(*f));
    match figure {
        figure if first_single == Some(figure) => single::experiment(extent).planned(seeds),
        NdtFigure::Incast => incast::experiment(extent).planned(seeds),
        NdtFigure::WebSearch | NdtFigure::DataMining => testbed::planned(extent, seeds),
        NdtFigure::Queues => queues::experiment(extent).planned(seeds),
        NdtFigure::Drops => drops::planned(extent, seeds),
        NdtFigure::Triggers => triggers::planned(extent, seeds),
        _ => 0,
    }
}

fn notes(config: &NdtConfig, low_level: &str, over_dt: bool) -> Vec<String> {
    let entry = config.learned.entry();
    let mut notes = vec![format!("NDT is {}.", entry.origin)];
    if !over_dt {
        notes.push(format!(
            "These weights set the α of {low_level} and not that of Dynamic Threshold, as the paper’s \
             do: the first bytes of every flow and burst are admitted wherever there is room."
        ));
    }
    notes.push(
        "The paper’s figures could not be digitised: every value of the paper on this page comes from \
         its text, or follows from a formula."
            .to_owned(),
    );
    notes
}

/// Sorts panels and claims into the order of the paper.
fn sort(report: &mut Report) {
    let place = |id: &str| NdtFigure::ALL.iter().position(|figure| figure.id() == id);
    report.panels.sort_by_key(|panel| place(panel.id));
    report
        .claims
        .sort_by_key(|claim| place(&format!("{}{}", claim.figure, claim.panel)));
}

/// Reports §V-A: the number of parameters.
fn parameters(count: usize, report: &mut Report) {
    let value = count as f64;
    let mut table = Table::new("section-v-a", &["what", "count"]);
    table.push(vec![
        "parameters of the policy".to_owned(),
        count.to_string(),
    ]);
    report.panels.push(Panel {
        id: "V-A",
        title: "Number of parameters",
        method: "Counted in the weights of the policy.".to_owned(),
        tables: vec![table],
        drawings: Vec::new(),
    });
    report.claims.push(
        Claim::number(
            ("V-A", ""),
            "ndt",
            "parameters",
            "The network has 47,650 parameters.",
            Target::Value(47_650.0),
        )
        .measured(Some(Estimate::exact(value))),
    );
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_selected_by_number_panel_and_section() {
        let parse = |text: &str| text.parse::<Selection>().map(|s| s.to_string());
        assert_eq!(parse("8").unwrap(), "8a, 8b, 8c, 8d");
        assert_eq!(parse("8D").unwrap(), "8d");
        assert_eq!(parse("12").unwrap(), "12a, 12b");
        assert_eq!(parse("10").unwrap(), "10");
        assert_eq!(parse("v-a").unwrap(), "V-A");
        for unknown in ["7", "1", "8e", "", "a"] {
            let error = parse(unknown).unwrap_err().to_string();
            assert!(
                error.ends_with("8, 8a, 8b, 8c, 8d, 9, 9a, 9b, 10, 11, 12, 12a, 12b, V-A"),
                "{error}"
            );
        }
    }

    #[test]
    fn the_count_of_parameters_agrees_only_if_it_is_near() {
        let mut report = crate::report::tests::small();
        report.claims.clear();
        parameters(47_650, &mut report);
        parameters(100_000, &mut report);
        let verdicts: Vec<String> = report
            .claims
            .iter()
            .map(|claim| claim.verdict().to_string())
            .collect();
        assert_eq!(verdicts, ["agrees", "differs: unexplained"]);
    }
}
