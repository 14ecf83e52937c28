//! The same policies on the same traces in a testbed and in the simulator, which predicts the testbed. The caller
//! plays the runs.

mod quality;

use std::fmt::Write as _;
use std::io;
use std::path::{Path, PathBuf};

use bufgym_sim::network::{SimError, Summary};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::traffic::{self, Trace};
use bufgym_util::convert::index;
use bufgym_util::input::visible;
use bufgym_util::rng::{Split, trace_seed};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use crate::agreement::{Agreement, Pairs};
use crate::entrant::Entrant;
use crate::output::{self, OutputError};
use crate::result_cache::ResultCache;
use crate::stats::{self, Estimate};

pub use quality::{Truth, Worst, simulated_propagation_ns};

/// Target: the simulator's mean FCT is within this share of the testbed's.
const TARGET: f64 = 0.1;

/// Names of the files of a comparison.
pub const FILES: [&str; 3] = ["runs.csv", "comparison.json", "comparison.md"];

/// Configuration of a comparison.
#[derive(Clone, Debug)]
pub struct ComparisonConfig {
    /// Rate, buffer and hosts.
    pub scenario: Scenario,
    /// The policies, the baseline first.
    pub entrants: Vec<Entrant>,
    /// Number of traces.
    pub traces: u64,
    /// Repetitions of every trace by every policy.
    pub repeats: u64,
    /// Seed of the traces.
    pub seed: u64,
    /// Everything else that results depend on, such as machine and congestion control. Stored runs must match it.
    pub setting: String,
    /// Revision of the program, which stored runs must match too.
    pub revision: String,
}

/// Stored results of played or simulated flows. Times are NaN if no flow of the class completed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Times {
    flows: u64,
    completed: u64,
    #[serde(deserialize_with = "nan_for_null")]
    mean_fct_ms: f64,
    #[serde(deserialize_with = "nan_for_null")]
    p50_fct_ms: f64,
    #[serde(deserialize_with = "nan_for_null")]
    p99_fct_ms: f64,
    #[serde(deserialize_with = "nan_for_null")]
    short_mean_fct_ms: f64,
    #[serde(deserialize_with = "nan_for_null")]
    long_mean_fct_ms: f64,
    drops: u64,
    timeouts: u64,
    tail_probes: u64,
    max_occupancy_bytes: u64,
}

impl From<&Summary> for Times {
    fn from(summary: &Summary) -> Times {
        Times {
            flows: summary.flows,
            completed: summary.completed,
            mean_fct_ms: summary.mean_fct_ms,
            p50_fct_ms: summary.p50_fct_ms,
            p99_fct_ms: summary.p99_fct_ms,
            short_mean_fct_ms: summary.short_mean_fct_ms,
            long_mean_fct_ms: summary.long_mean_fct_ms,
            drops: summary.drops,
            timeouts: summary.timeouts,
            tail_probes: summary.tail_probes,
            max_occupancy_bytes: summary.max_occupancy_bytes,
        }
    }
}

/// Reads null as NaN, which JSON does not have.
fn nan_for_null<'de, D: Deserializer<'de>>(value: D) -> Result<f64, D::Error> {
    Option::deserialize(value).map(|value| value.unwrap_or(f64::NAN))
}

/// A run that counts.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TestbedRun {
    /// Results of the flows.
    pub times: Times,
    /// Measurement quality.
    pub truth: Truth,
}

/// A run with its policy, trace and repeat.
struct NumberedRun {
    policy: usize,
    trace: u64,
    seed: u64,
    repeat: u64,
    run: TestbedRun,
}

/// An error that prevents a comparison.
#[derive(Debug, thiserror::Error)]
pub enum ComparisonError {
    /// A finished run cannot be stored.
    #[error("{}: {source}", folder.display())]
    Keep {
        /// Folder for stored runs.
        folder: PathBuf,
        /// Reason.
        source: io::Error,
    },
    /// A policy does not fit the scenario.
    #[error(transparent)]
    Simulation(#[from] SimError),
    /// No flow of a trace completed.
    #[error("a trace has no mean FCT in the testbed or the simulator")]
    NoMean,
}

/// A finished comparison.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The result for programs.
    pub json: Value,
    /// The result for readers.
    pub text: String,
    /// A row for every run, and one for every simulation.
    runs: String,
}

impl Comparison {
    /// Writes all [`FILES`] into an empty folder.
    ///
    /// # Errors
    /// Fails if a file cannot be written.
    pub fn write_into(&self, folder: &Path) -> Result<(), OutputError> {
        let json = format!("{:#}\n", self.json);
        let texts = [self.runs.clone(), json, self.text.clone()];
        let files = FILES.map(str::to_owned).into_iter();
        let files = files.zip(texts.map(String::into_bytes));
        output::fill(folder, &files.collect::<Vec<_>>())
    }
}

/// Plays every trace under every policy and simulates the same; a policy's place in the order differs from trace
/// to trace. Finished runs are stored in `parts`, and stored ones are not played again. `progress` is called after
/// each run.
///
/// # Errors
/// Returns the errors of `play`. Fails if a run cannot be stored, a simulation fails or a trace has no mean FCT.
pub fn compare<E: From<ComparisonError>>(
    config: &ComparisonConfig,
    parts: Option<&ResultCache>,
    mut play: impl FnMut(&Entrant, &Trace) -> Result<TestbedRun, E>,
    progress: &dyn Fn(),
) -> Result<Comparison, E> {
    let ComparisonConfig {
        scenario, entrants, ..
    } = config;
    let traces: Vec<Trace> = (0..config.traces)
        .map(|index| traffic::generate(scenario, trace_seed(Split::Test, config.seed, index)))
        .collect();
    let mut played = Vec::new();
    for (number, trace) in (0..).zip(&traces) {
        for repeat in 0..config.repeats {
            for place in 0..entrants.len() {
                let policy = (index(number + repeat) + place) % entrants.len();
                let entrant = &entrants[policy];
                let run = config.kept_or_played(entrant, trace, repeat, parts, &mut play)?;
                progress();
                played.push(NumberedRun {
                    policy,
                    trace: number,
                    seed: trace.seed,
                    repeat,
                    run,
                });
            }
        }
    }
    let predicted = config.predict(&traces, &played);
    let predicted = predicted.map_err(ComparisonError::from)?;
    Ok(config.compared(&played, &predicted)?)
}

/// The simulator's results of every trace under every policy.
struct Predicted {
    /// Propagation of a link according to the measured round trip, nanoseconds.
    propagation_ns: u64,
    /// Results by policy, then by trace.
    times: Vec<Vec<Times>>,
}

impl ComparisonConfig {
    fn kept_or_played<E: From<ComparisonError>>(
        &self,
        policy: &Entrant,
        trace: &Trace,
        repeat: u64,
        parts: Option<&ResultCache>,
        play: &mut impl FnMut(&Entrant, &Trace) -> Result<TestbedRun, E>,
    ) -> Result<TestbedRun, E> {
        let (scenario, setting, seed) = (self.scenario.to_toml(), &self.setting, trace.seed);
        let of = format!("compare\n{scenario}\n{policy:?}\n{seed} {repeat}\n{setting}");
        let fingerprint = ResultCache::fingerprint(&of, &self.revision);
        if let Some(kept) = parts.and_then(|parts| parts.load(&fingerprint)) {
            return Ok(kept);
        }
        let run = play(policy, trace)?;
        if let Some(parts) = parts {
            let kept = parts.keep(&fingerprint, &run);
            kept.map_err(|source| ComparisonError::Keep {
                folder: parts.folder().to_owned(),
                source,
            })?;
        }
        Ok(run)
    }

    /// Simulates every trace under every policy with the measured round trip.
    fn predict(&self, traces: &[Trace], played: &[NumberedRun]) -> Result<Predicted, SimError> {
        let truths = played.iter().map(|one| &one.run.truth);
        let propagation_ns = simulated_propagation_ns(&self.scenario, truths);
        let scenario = self.scenario.clone().with(|changed| {
            changed.network.propagation_ns = propagation_ns;
        });
        let times = |entrant: &Entrant| {
            let runs = traces
                .iter()
                .map(|trace| entrant.run(&scenario, trace, None));
            runs.map(|run| run.map(|outcome| Times::from(&outcome.summary)))
                .collect()
        };
        Ok(Predicted {
            propagation_ns,
            times: self.entrants.iter().map(times).collect::<Result<_, _>>()?,
        })
    }

    fn compared(
        &self,
        played: &[NumberedRun],
        predicted: &Predicted,
    ) -> Result<Comparison, ComparisonError> {
        let policies = self.entrants.iter().enumerate();
        let pairs = policies.map(|(policy, entrant)| Pairs {
            policy: entrant.name().to_owned(),
            measured: measured(policy, played),
            predicted: predicted.times[policy]
                .iter()
                .map(|times| times.mean_fct_ms)
                .collect(),
        });
        let agreement = Agreement::of(&pairs.collect::<Vec<_>>(), self.seed);
        let agreement = agreement.ok_or(ComparisonError::NoMean)?;
        let noise = noise(self.entrants.len(), played);
        let worst = Worst::of(played.iter().map(|one| &one.run.truth));
        let network = &self.scenario.network;
        Ok(Comparison {
            json: json!({
                "scenario": self.scenario.name,
                "rate_bps": network.rate_bps,
                "buffer_bytes": network.buffer_bytes,
                "propagation_ns": network.propagation_ns,
                "simulated_propagation_ns": predicted.propagation_ns,
                "policies": agreement.rows,
                "kendall": agreement.kendall,
                "chance": agreement.chance,
                "noise": noise,
                "testbed": worst,
            }),
            text: render(&self.scenario, &agreement, predicted, noise, &worst),
            runs: self.runs_csv(played, predicted),
        })
    }

    /// Returns a row for every run, and one for every simulation.
    fn runs_csv(&self, played: &[NumberedRun], predicted: &Predicted) -> String {
        let mut text = String::from(
            "where,policy,trace,seed,repeat,flows,completed,mean_fct_ms,p50_fct_ms,p99_fct_ms,short_mean_fct_ms,\
         long_mean_fct_ms,drops,timeouts,tail_probes,max_occupancy_bytes,late_p50_us,late_p99_us,\
         start_late_p99_us,rtt_us,cpu_headroom,load_average\n",
        );
        let row = |place: &str, played: &NumberedRun, times: &Times| {
            format!(
                "{place},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
                output::quoted(self.entrants[played.policy].name()),
                played.trace,
                played.seed,
                played.repeat,
                times.flows,
                times.completed,
                times.mean_fct_ms,
                times.p50_fct_ms,
                times.p99_fct_ms,
                times.short_mean_fct_ms,
                times.long_mean_fct_ms,
                times.drops,
                times.timeouts,
                times.tail_probes,
                times.max_occupancy_bytes,
            )
        };
        for one in played {
            let truth = &one.run.truth;
            text += &row("testbed", one, &one.run.times);
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                ",{},{},{},{},{},{}",
                truth.late_p50_us,
                truth.late_p99_us,
                truth.start_late_p99_us,
                truth.rtt_us,
                truth.cpu_headroom,
                truth.load_average.unwrap_or(f64::NAN)
            );
        }
        for one in played.iter().filter(|one| one.repeat == 0) {
            let times = &predicted.times[one.policy][index(one.trace)];
            text += &row("simulator", one, times);
            text += ",,,,,,\n";
        }
        text
    }
}

/// Returns the mean FCT of a policy on every trace, the mean over repeats.
fn measured(policy: usize, played: &[NumberedRun]) -> Vec<f64> {
    let traces = played.iter().map(|one| one.trace + 1).max().unwrap_or(0);
    let of = |trace: u64| {
        let mine = played
            .iter()
            .filter(|one| one.policy == policy && one.trace == trace);
        let values: Vec<f64> = mine.map(|one| one.run.times.mean_fct_ms).collect();
        stats::mean(&values).unwrap_or(f64::NAN)
    };
    (0..traces).map(of).collect()
}

/// Returns the spread of repeats of the same run: the mean of their deviation over their mean; `None` without
/// repeats.
fn noise(policies: usize, played: &[NumberedRun]) -> Option<f64> {
    let mut deviations = Vec::new();
    for policy in 0..policies {
        let mine = || played.iter().filter(|one| one.policy == policy);
        let traces = mine().map(|one| one.trace + 1).max().unwrap_or(0);
        for trace in 0..traces {
            let repeats = mine().filter(|one| one.trace == trace);
            let values: Vec<f64> = repeats.map(|one| one.run.times.mean_fct_ms).collect();
            if values.len() < 2 {
                continue;
            }
            if let (Some(mean), Some(variance)) = (stats::mean(&values), stats::variance(&values)) {
                let unbiased = variance * values.len() as f64 / (values.len() as f64 - 1.0);
                deviations.push(unbiased.sqrt() / mean);
            }
        }
    }
    stats::mean(&deviations)
}

fn render(
    scenario: &Scenario,
    agreement: &Agreement,
    predicted: &Predicted,
    noise: Option<f64>,
    worst: &Worst,
) -> String {
    let mut text = format!(
        "{}: {} hosts at {} Mbit/s, {} bytes of buffer; links of {:.0} us, in the simulator {:.1} us\n\n\
         | policy | testbed ms | simulator ms | error | ratio to dt, testbed | simulator |\n\
         |---|--:|--:|--:|--:|--:|\n",
        visible(&scenario.name),
        scenario.network.ports,
        scenario.network.rate_bps as f64 * 1e-6,
        scenario.network.buffer_bytes,
        scenario.network.propagation_ns as f64 * 1e-3,
        predicted.propagation_ns as f64 * 1e-3,
    );
    let mut close = 0;
    for row in &agreement.rows {
        close += usize::from((row.error.centre - 1.0).abs() <= TARGET);
        let interval = |i: &Estimate| format!("{:.3} [{:.3}-{:.3}]", i.centre, i.low, i.high);
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| `{}` | {:.1} | {:.1} | {:+.1} % [{:+.1}, {:+.1}] | {} | {} |",
            visible(&row.policy),
            row.measured_ms,
            row.predicted_ms,
            (row.error.centre - 1.0) * 100.0,
            (row.error.low - 1.0) * 100.0,
            (row.error.high - 1.0) * 100.0,
            interval(&row.measured_ratio),
            interval(&row.predicted_ratio),
        );
    }
    let _ = writeln!(
        text,
        "\nmean FCT of {close} of {} policies within {:.0} %; Kendall's tau of the orders {:.2}, as much or \
         more by chance in {:.1} % of all orders",
        agreement.rows.len(),
        TARGET * 100.0,
        agreement.kendall,
        agreement.chance * 100.0
    );
    if let Some(noise) = noise {
        let _ = writeln!(
            text,
            "repeats of a run in the testbed deviate by {:.1} % on average",
            noise * 100.0
        );
    }
    text + &format!("{worst}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_no_flow_are_kept() {
        let summary = Summary {
            flows: 3,
            mean_fct_ms: 0.1 + 0.2,
            long_mean_fct_ms: f64::NAN,
            ..Summary::default()
        };
        let times = Times::from(&summary);
        let text = serde_json::to_string(&times).unwrap();
        let kept: Times = serde_json::from_str(&text).unwrap();
        assert_eq!((kept.flows, kept.mean_fct_ms), (3, 0.1 + 0.2));
        assert!(kept.long_mean_fct_ms.is_nan());
    }
}
