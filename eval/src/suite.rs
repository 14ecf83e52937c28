//! A fixed set of comparisons for a page of results: all policies in the scenario that the network was
//! trained in and with other senders (the main comparisons), then some of them in other scenarios (the
//! cells).

mod page;

use std::io;
use std::path::{Path, PathBuf};

use bufgym_sim::scenario::{Scenario, ScenarioError};
use bufgym_sim::switch::PolicySpec;
use bufgym_sim::switch::policy::catalogue;
use bufgym_util::convert::index;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::data::{Evaluation, PolicySummary, Role, SeedGroup, UNLIMITED, Versus};
use crate::entrant::Entrant;
use crate::evaluate::{EvalConfig, EvalError, OnProgress, evaluate, with_references};

use crate::output::{self, OutputError};
use crate::stats::Estimate;
use crate::tune::Tuned;

pub use crate::result_cache::ResultCache;
pub use page::{front_table, render};

/// Name of the file format in `suite.json`.
const FORMAT: &str = "bufgym-eval-suite";
/// Version of the file format. It rises if a field changes its meaning; added fields do not change it.
const VERSION: u32 = 2;

/// Names of the files of a suite besides the figures.
pub const FILES: [&str; 6] = [
    "report.html",
    "report.json",
    "per_trace.csv",
    "results.md",
    "table.md",
    "suite.json",
];

/// Number of tuned rules, the best of the first comparison, that take part in the cells too.
const TRANSFERRED_RULES: usize = 3;

/// Number of the best tuned policies in a main comparison, with or without queue management.
const BEST_TUNED: usize = 10;

/// Largest number of traces of a cell.
const CELL_TRACES: u64 = 32;

/// Largest number of ports of a cell with all traces. With more ports, a trace takes many times as long, so
/// half of the traces must suffice.
const MANY_PORTS: usize = 64;

/// The preset of the first comparison. Most cells change one of its settings.
pub const MAIN: &str = "ndt-16x1g";

/// The presets of the main comparisons: classic senders, senders of Linux, and data center TCP.
pub const PRESETS: [&str; 3] = [MAIN, "linux-16x1g", "dctcp-16x10g"];

/// A cell is lost if the lower end of its interval is above this.
pub const LOST_ABOVE: f64 = 1.02;

/// A cell has headroom if the unlimited buffer is better than DT by more than this share.
pub const HEADROOM: f64 = 0.03;

/// A scenario that the policies were not trained in.
#[derive(Clone, Debug)]
pub struct Cell {
    /// Differences from the main scenario, in words.
    pub title: &'static str,
    /// The scenario.
    pub scenario: Scenario,
    /// The best of the rules that were tuned for this scenario, by validation traces.
    pub tuned: Option<Entrant>,
}

impl Cell {
    /// Returns the number of traces of the cell, if other cells have `others`.
    fn traces(&self, others: u64) -> u64 {
        match self.scenario.port_count() > MANY_PORTS {
            true => others.div_ceil(2),
            false => others,
        }
    }
}

/// Title, preset and settings of every cell.
const CELLS: [(&str, &str, &[&str]); 15] = [
    ("data mining", MAIN, &["workload=data_mining"]),
    ("load 20 %", MAIN, &["load=0.2"]),
    ("load 30 %", MAIN, &["load=0.3"]),
    ("load 40 %", MAIN, &["load=0.4"]),
    ("load 60 %", MAIN, &["load=0.6"]),
    ("load 70 %", MAIN, &["load=0.7"]),
    ("load 80 %", MAIN, &["load=0.8"]),
    ("minimum RTO 10 ms", MAIN, &["min_rto_us=10000"]),
    ("CUBIC", MAIN, &["transport=cubic"]),
    (
        "DCTCP, marking above 30 KB",
        MAIN,
        &["transport=dctcp", "ecn_threshold_bytes=30000"],
    ),
    ("256 KB of buffer", MAIN, &["buffer_bytes=256000"]),
    ("4 MB of buffer", MAIN, &["buffer_bytes=4000000"]),
    (
        "96 ports at 10 Gbps, 95-to-1 in-cast",
        "ndt-96x10g-incast",
        &[],
    ),
    ("4-to-2 in-cast against elephants", "ndt-4to2-incast", &[]),
    ("Linux-like senders, 25 Gbps", "linux-16x25g", &[]),
];

/// Returns all cells, without tuned rules.
///
/// # Errors
/// Fails if a setting does not exist.
fn cells() -> Result<Vec<Cell>, ScenarioError> {
    CELLS
        .iter()
        .map(|&(title, preset, settings)| {
            let mut scenario = Scenario::load(preset)?;
            scenario.set_all(settings)?;
            Ok(Cell {
                title,
                scenario,
                tuned: None,
            })
        })
        .collect()
}

/// The search that found a tuned rule of a main comparison.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// The policy string.
    pub policy: String,
    /// Number of simulations of the search, if counted.
    pub simulations: Option<u64>,
    /// Parameters at an edge of the search range, in words.
    pub edges: Vec<String>,
}

/// An error that prevents a suite.
#[derive(Debug, thiserror::Error)]
pub enum SuiteError {
    /// A preset is missing or has no such setting.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// A comparison failed.
    #[error(transparent)]
    Evaluation(#[from] EvalError),
    /// A finished comparison cannot be stored.
    #[error("cannot keep a finished comparison in {}: {source}", folder.display())]
    Keep {
        /// Folder for stored results.
        folder: PathBuf,
        /// Reason.
        source: io::Error,
    },
}

/// Configuration of a suite.
#[derive(Clone, Debug)]
pub struct SuiteConfig {
    /// The main comparisons, each with the searches that found its tuned rules.
    pub mains: Vec<(EvalConfig, Vec<Spent>)>,
    /// Simulations of a default training of the network.
    pub learner_simulations: Option<u64>,
    /// The policies that are also compared in the cells.
    pub transferred: Vec<Entrant>,
    /// The cells.
    pub cells: Vec<Cell>,
    /// Traces of every cell; half as many if a switch has more than 64 ports.
    pub cell_traces: u64,
    /// Revision of the program.
    pub revision: String,
}

/// Returns everything that was tuned for a scenario, the best first.
pub type AllTuned<'a, E> = &'a dyn Fn(&Scenario) -> Result<Vec<(PolicySpec, Tuned)>, E>;

impl SuiteConfig {
    /// Builds the suite of these learned policies, every rule with its defaults, every rule tuned without queue
    /// management, and the best of those tuned with it.
    ///
    /// # Errors
    /// Returns the errors of `tuned`. Fails if a preset cannot be used.
    pub fn paper<E: From<SuiteError>>(
        learned: &[Entrant],
        traces: u64,
        seed: u64,
        tuned: AllTuned<'_, E>,
    ) -> Result<SuiteConfig, E> {
        let load = |preset: &str| Scenario::load(preset).map_err(SuiteError::from);
        let mut mains = Vec::new();
        for preset in PRESETS {
            let scenario = load(preset)?;
            let rules = catalogue()
                .iter()
                .map(|rule| Entrant::rule(PolicySpec::named(rule.info.name)));
            let mut entrants: Vec<Entrant> = learned.iter().cloned().chain(rules).collect();
            let mut spent = Vec::new();
            for (place, (policy, tuned)) in tuned(&scenario)?.into_iter().enumerate() {
                if place < BEST_TUNED || policy.aqm().is_none() {
                    spent.push(Spent {
                        policy: policy.to_string(),
                        simulations: tuned.simulations,
                        edges: tuned.edges,
                    });
                    entrants.push(Entrant::tuned(policy));
                }
            }
            let config = EvalConfig::new(scenario, entrants, seed);
            mains.push((EvalConfig { traces, ..config }, spent));
        }
        let mut transferred = learned.to_vec();
        transferred.extend(best_deployable(&load(MAIN)?, tuned)?.take(TRANSFERRED_RULES));
        let mut cells = cells().map_err(SuiteError::from)?;
        for cell in &mut cells {
            cell.tuned = best_deployable(&cell.scenario, tuned)?.next();
        }
        Ok(SuiteConfig {
            mains,
            learner_simulations: None,
            transferred,
            cells,
            cell_traces: traces.min(CELL_TRACES),
            revision: String::new(),
        })
    }
}

/// Returns the tuned rules that a switch of today could run, the best first.
fn best_deployable<'a, E>(
    scenario: &'a Scenario,
    tuned: AllTuned<'_, E>,
) -> Result<impl Iterator<Item = Entrant> + use<'a, E>, E> {
    let tuned = tuned(scenario)?.into_iter();
    let entrants = tuned.map(|(policy, _)| Entrant::tuned(policy));
    Ok(entrants.filter(|entrant| !entrant.pushes_out(scenario)))
}

/// The result of one cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CellResult {
    /// Differences from the main scenario, in words.
    pub title: String,
    /// All settings of the scenario, as TOML.
    pub scenario: String,
    /// Number of traces.
    pub traces: u64,
    /// Summaries of the policies, like in an evaluation.
    pub policies: Vec<PolicySummary>,
    /// Groups of trainings, like in an evaluation.
    pub seeds: Vec<SeedGroup>,
    /// Comparisons of policies, like in an evaluation.
    #[serde(default)]
    pub versus: Vec<Versus>,
    /// The rule that was tuned for this scenario.
    #[serde(default)]
    pub tuned: Option<String>,
    /// Wall time, seconds.
    pub wall_s: f64,
}

impl CellResult {
    fn of(title: &str, tuned: Option<&Entrant>, evaluation: Evaluation) -> CellResult {
        CellResult {
            title: title.to_owned(),
            tuned: tuned.map(|entrant| entrant.name().to_owned()),
            versus: evaluation.versus,
            scenario: evaluation.scenario.toml,
            traces: evaluation.traces,
            policies: evaluation.policies,
            seeds: evaluation.seeds,
            wall_s: evaluation.timing.wall_s,
        }
    }

    /// Returns the ratio to DT of a policy, or of the seeds of a training taken together.
    pub fn ratio(&self, name: &str) -> Option<Estimate> {
        let policy = self.policies.iter().find(|p| p.entry.policy == name);
        let group = self.seeds.iter().find(|group| group.task == name);
        policy
            .and_then(|policy| policy.ratio_to_dt)
            .or(group.map(|group| group.ratio_to_dt))
    }

    /// Returns the mean FCT of a learned policy, or of the seeds of a training taken together, over that of
    /// the rule tuned for the scenario.
    pub fn against_tuned(&self, name: &str) -> Option<Estimate> {
        let tuned = self.tuned.as_ref()?;
        let groups = self.seeds.iter().flat_map(|group| &group.versus);
        let mut all = groups.chain(&self.versus);
        let found = all.find(|versus| versus.policy == name && versus.against == *tuned);
        found.map(|versus| versus.ratio)
    }

    /// Returns the reduction of the mean FCT by the unlimited buffer relative to DT, as a share.
    pub fn headroom(&self) -> Option<f64> {
        let unlimited = self.policies.iter().find(|p| p.entry.policy == UNLIMITED)?;
        Some(1.0 - unlimited.ratio_to_dt?.centre)
    }
}

/// The results of a policy in the cells.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transfer {
    /// Titles of the cells in which the policy is worse than DT by more than 2 %, significantly.
    pub lost: Vec<String>,
    /// Number of cells with headroom.
    pub with_headroom: usize,
    /// Number of cells with headroom in which the policy is significantly better than DT.
    pub better: usize,
    /// Number of cells with a tuned rule.
    pub tuned: usize,
    /// Number of cells with a tuned rule in which the policy is significantly better than that rule.
    pub better_than_tuned: usize,
    /// Titles of the cells in which the policy is worse than the tuned rule by more than 2 %, significantly.
    pub worse_than_tuned: Vec<String>,
}

/// A main comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// Results of the comparison.
    pub evaluation: Evaluation,
    /// The policies that push out.
    pub push_out: Vec<String>,
    /// The searches that found the tuned rules.
    pub spent: Vec<Spent>,
}

impl Comparison {
    /// Returns the rules and the baseline, the best first; those that push out are left out.
    pub fn drop_tail(&self) -> Vec<&PolicySummary> {
        let rules = self.evaluation.policies.iter().filter(|p| {
            matches!(p.entry.role, Role::Heuristic | Role::Baseline)
                && !self.push_out.contains(&p.entry.policy)
        });
        let mut rules: Vec<&PolicySummary> = rules.filter(|p| p.ratio_to_dt.is_some()).collect();
        rules.sort_by(|a, b| key(a).total_cmp(&key(b)));
        rules
    }

    /// Returns the search that found a tuned rule.
    pub fn spent(&self, policy: &str) -> Option<&Spent> {
        self.spent.iter().find(|spent| spent.policy == policy)
    }
}

/// All results of the suite.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Suite {
    format: String,
    version: u32,
    /// Name, version and revision of the program.
    pub software: String,
    /// The main comparisons.
    pub mains: Vec<Comparison>,
    /// Simulations of a default training of the network.
    pub learner_simulations: Option<u64>,
    /// The results of the cells.
    pub cells: Vec<CellResult>,
    /// Wall time of the whole suite, seconds.
    pub wall_s: f64,
}

impl Suite {
    /// Counts the cells of one policy, or of a training's seeds taken together.
    pub fn transfer(&self, policy: &str) -> Transfer {
        let mut transfer = Transfer::default();
        for cell in &self.cells {
            let Some(ratio) = cell.ratio(policy) else {
                continue;
            };
            if ratio.low > LOST_ABOVE {
                transfer.lost.push(cell.title.clone());
            }
            if cell.headroom().is_some_and(|share| share > HEADROOM) {
                transfer.with_headroom += 1;
                transfer.better += usize::from(ratio.is_below_one());
            }
            if let Some(ratio) = cell.against_tuned(policy) {
                transfer.tuned += 1;
                transfer.better_than_tuned += usize::from(ratio.is_below_one());
                if ratio.low > LOST_ABOVE {
                    transfer.worse_than_tuned.push(cell.title.clone());
                }
            }
        }
        transfer
    }
}

/// Callback at the beginning of a comparison, with its title and its number of simulations: zero if its
/// result was stored.
pub type OnPart<'a> = &'a dyn Fn(&str, usize);

/// Runs the main comparisons and the cells. Apart from wall times, the result does not depend on the number
/// of threads. With `parts`, finished comparisons are stored there, and stored ones are not run again.
///
/// # Errors
/// Returns the errors of [`evaluate`], and fails if a finished comparison cannot be stored.
pub fn run(
    config: &SuiteConfig,
    parts: Option<&ResultCache>,
    part: OnPart<'_>,
    progress: OnProgress<'_>,
) -> Result<Suite, SuiteError> {
    let once = |title: &str, what: &EvalConfig| -> Result<Evaluation, SuiteError> {
        let fingerprint = ResultCache::fingerprint(&format!("{what:?}"), &config.revision);
        if let Some(kept) = parts.and_then(|parts| parts.load(&fingerprint)) {
            part(title, 0);
            return Ok(kept);
        }
        let policies = with_references(&what.entrants).len();
        part(title, policies.saturating_mul(index(what.traces)));
        let evaluation = evaluate(what, progress)?;
        if let Some(parts) = parts {
            parts
                .keep(&fingerprint, &evaluation)
                .map_err(|source| SuiteError::Keep {
                    folder: parts.folder().to_owned(),
                    source,
                })?;
        }
        Ok(evaluation)
    };
    let mut mains = Vec::new();
    for (main, spent) in &config.mains {
        let pushing = main.entrants.iter();
        let pushing = pushing.filter(|one| one.pushes_out(&main.scenario));
        mains.push(Comparison {
            push_out: pushing.map(|one| one.name().to_owned()).collect(),
            evaluation: once(&main.scenario.name, main)?,
            spent: spent.clone(),
        });
    }
    let mut cells = Vec::new();
    for cell in &config.cells {
        let seed = config.mains.first().map_or(1, |(main, _)| main.seed);
        let entrants = config.transferred.iter().chain(&cell.tuned);
        let what = EvalConfig {
            traces: cell.traces(config.cell_traces),
            ..EvalConfig::new(cell.scenario.clone(), entrants.cloned().collect(), seed)
        };
        let evaluation = once(cell.title, &what)?;
        cells.push(CellResult::of(cell.title, cell.tuned.as_ref(), evaluation));
    }
    let of_mains = mains.iter().map(|main| main.evaluation.timing.wall_s);
    let wall_s = of_mains.sum::<f64>() + cells.iter().map(|cell| cell.wall_s).sum::<f64>();
    Ok(Suite {
        format: FORMAT.to_owned(),
        version: VERSION,
        software: format!("bufgym {}, {}", env!("CARGO_PKG_VERSION"), config.revision),
        mains,
        learner_simulations: config.learner_simulations,
        cells,
        wall_s,
    })
}

/// Writes the report of the first comparison, the page and all results into an empty folder.
///
/// # Errors
/// Fails if a file cannot be written.
pub fn write_into(suite: &Suite, page: &str, folder: &Path) -> Result<(), OutputError> {
    if let Some(first) = suite.mains.first() {
        output::write_into(&first.evaluation, folder)?;
    }
    let numbers = output::pretty_json("suite.json", &json!(suite))?;
    let files = [
        ("results.md".to_owned(), page.as_bytes().to_vec()),
        ("table.md".to_owned(), front_table(suite).into_bytes()),
        ("suite.json".to_owned(), numbers),
    ];
    output::fill(folder, &files)
}

/// Returns the sort key of policies: their mean ratio to DT, lower is better.
fn key(policy: &PolicySummary) -> f64 {
    policy
        .ratio_to_dt
        .map_or(f64::INFINITY, |ratio| ratio.centre)
}

#[cfg(test)]
mod tests;
