//! `bufgym testbed compare`: policies on the same traces, in the testbed and in the simulator.

use std::fmt::Write as _;
use std::path::PathBuf;

use anyhow::Context as _;
use bufgym::eval::agreement::{Agreement, Pairs};
use bufgym::eval::suite::ResultCache;
use bufgym::eval::{Entrant, stats};
use bufgym::sim::network::Summary;
use bufgym::sim::scenario::Scenario;
use bufgym::sim::traffic::{self, Trace};
use bufgym::testbed::Truth;
use bufgym::util::input::visible;
use bufgym::util::rng::{Split, trace_seed};
use clap::Args;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};

use super::super::error::{CliError, CliResult, ResultExt as _};
use super::super::interrupt::{Stop, stop_at_signal};
use super::super::output::Output;
use super::super::scenario::check_memory;
use super::super::{Common, eval, policy};
use super::{Chosen, Order, Playing, machine};

/// Play the same traces under several policies, and compare them with what the simulator predicts
#[derive(Args)]
#[command(
    after_help = "DT with alpha = 1 (`dt`) always takes part. The simulator runs the same flows with the same \
    rate, buffer and round trip. A run that lost packets outside the switch is repeated. With --out, runs that \
    are finished are kept in DIR.parts, and the same command resumes there.\n\nExamples:\n  \
    sudo bufgym testbed compare --policies dt,edt,st,cs,dt+red,ndt --traces 8 --out report\n  \
    sudo bufgym testbed compare --policy dt:alpha=8 --traces 4 --repeats 3 --json"
)]
pub struct CompareArgs {
    /// Policy to compare; may be repeated [default: edt, st, cs, dt+red, ndt]
    #[arg(long, value_name = "P")]
    policy: Vec<String>,
    /// Policies without parameters, separated by commas
    #[arg(long, value_name = "P,P", value_delimiter = ',')]
    policies: Vec<String>,
    #[command(flatten)]
    chosen: Chosen,
    /// Unseen traces
    #[arg(long, value_name = "N", default_value_t = 4, allow_negative_numbers = true,
        value_parser = clap::value_parser!(u64).range(1..=1_000))]
    traces: u64,
    /// Repetitions of every trace by every policy
    #[arg(long, value_name = "N", default_value_t = 1, allow_negative_numbers = true,
        value_parser = clap::value_parser!(u64).range(1..=100))]
    repeats: u64,
    #[command(flatten)]
    playing: Playing,
    /// Folder for runs.csv, comparison.json and comparison.md
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Write into a folder that is not empty
    #[arg(long)]
    force: bool,
}

/// The default policies.
const DEFAULT: [&str; 5] = ["edt", "st", "cs", "dt+red", "ndt"];
/// Least number of bytes that the result of a run needs.
const RESULT_BYTES: u64 = 1_024;
/// Target: the simulator's mean FCT is within this share of the testbed's.
const TARGET: f64 = 0.1;

/// Stored results of played or simulated flows. Times are NaN if no flow of the class completed.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Times {
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
#[derive(Serialize, Deserialize)]
struct Run {
    times: Times,
    truth: Truth,
}

/// A run with its policy, trace and repeat.
struct Played {
    policy: usize,
    trace: u64,
    seed: u64,
    repeat: u64,
    run: Run,
}

/// Names of the output files.
const FILES: [&str; 3] = ["runs.csv", "comparison.json", "comparison.md"];

/// Runs the command.
pub fn run(args: &CompareArgs, common: &Common) -> CliResult {
    let scenario = args.chosen.resolve()?;
    let entrants = entrants(args, &scenario)?;
    let plays = entrants.len() as u64 * args.repeats;
    check_memory(&scenario, args.traces, plays * RESULT_BYTES)?;
    let output = args
        .out
        .as_deref()
        .map(|path| Output::folder(path, args.force, &FILES))
        .transpose()?;
    let parts = output.as_ref().map(Output::parts).transpose()?;
    let stop = stop_at_signal(match parts {
        Some(_) => {
            "stopping: hosts are ended; finished runs are kept, and the same command resumes"
        }
        None => "stopping: hosts are ended and nothing is written",
    })?;
    let seeds = 0..args.traces;
    let traces: Vec<Trace> = seeds
        .map(|index| traffic::generate(&scenario, trace_seed(Split::Test, common.seed(), index)))
        .collect();
    let session = Session {
        args,
        scenario: &scenario,
        parts: parts.as_ref(),
        stop: &stop,
        common,
    };
    let played = session.play_all(&entrants, &traces)?;
    let predicted = predict_all(&scenario, &entrants, &traces, &played)?;
    let comparison = Comparison::new(&scenario, &entrants, &played, &predicted, common.seed())?;
    if let Some(output) = &output {
        output.write_folder(|folder| {
            let write =
                |name: &str, text: &str| std::fs::write(folder.join(name), text).or_failure();
            write("runs.csv", &runs_csv(&entrants, &played, &predicted))?;
            write("comparison.json", &format!("{:#}\n", comparison.json))?;
            write("comparison.md", &comparison.text)
        })?;
        if !common.json {
            common.note(format!("written to {}", output.path().display()));
        }
    }
    if let Some(parts) = &parts {
        let removed = parts.remove();
        removed
            .with_context(|| parts.folder().display().to_string())
            .or_failure()?;
    }
    common.print(&comparison.json, comparison.text.trim_end())
}

/// Returns the policies, the baseline first.
fn entrants(args: &CompareArgs, scenario: &Scenario) -> CliResult<Vec<Entrant>> {
    let mut texts = args.policies.clone();
    texts.extend(args.policy.iter().cloned());
    if texts.is_empty() {
        texts = DEFAULT.map(str::to_owned).to_vec();
    }
    let mut entrants = vec![Entrant::baseline()];
    for entrant in policy::parse_all(&texts, scenario)? {
        if !entrants.iter().any(|known| known.name() == entrant.name()) {
            entrants.push(entrant);
        }
    }
    Ok(entrants)
}

/// The settings that all runs share.
struct Session<'a> {
    args: &'a CompareArgs,
    scenario: &'a Scenario,
    /// Finished runs, so that an interrupted comparison can resume.
    parts: Option<&'a ResultCache>,
    stop: &'a Stop,
    common: &'a Common,
}

impl Session<'_> {
    /// Plays every trace under every policy; a policy's place in the order differs from trace to trace.
    fn play_all(&self, entrants: &[Entrant], traces: &[Trace]) -> CliResult<Vec<Played>> {
        let bar = eval::progress_bar(self.common);
        bar.set_length(traces.len() as u64 * self.args.repeats * entrants.len() as u64);
        let mut played = Vec::new();
        for (number, trace) in (0..).zip(traces) {
            for repeat in 0..self.args.repeats {
                let first = bufgym::util::convert::index(number + repeat);
                for place in 0..entrants.len() {
                    let policy = (first + place) % entrants.len();
                    let run = self.kept_or_played(&entrants[policy], trace, repeat)?;
                    bar.inc(1);
                    played.push(Played {
                        policy,
                        trace: number,
                        seed: trace.seed,
                        repeat,
                        run,
                    });
                }
            }
        }
        bar.finish_and_clear();
        Ok(played)
    }

    fn kept_or_played(&self, policy: &Entrant, trace: &Trace, repeat: u64) -> CliResult<Run> {
        let fingerprint = self.fingerprint(policy, trace, repeat);
        if let Some(kept) = self.parts.and_then(|parts| parts.load(&fingerprint)) {
            return Ok(kept);
        }
        let order = Order {
            scenario: self.scenario,
            trace,
            policy,
            playing: &self.args.playing,
            timeline: None,
            capture: None,
        };
        let (run, _) = order.play_until_valid(self.stop, self.common)?;
        let run = Run {
            times: Times::from(&run.outcome.summary),
            truth: run.truth,
        };
        if let Some(parts) = self.parts {
            let kept = parts.keep(&fingerprint, &run);
            kept.with_context(|| parts.folder().display().to_string())
                .or_failure()?;
        }
        Ok(run)
    }

    fn fingerprint(&self, policy: &Entrant, trace: &Trace, repeat: u64) -> String {
        let Playing {
            congestion,
            limit_s,
        } = &self.args.playing;
        let (scenario, machine, seed) = (self.scenario.to_toml(), machine(), trace.seed);
        let of = format!(
            "compare\n{scenario}\n{policy:?}\n{seed} {repeat}\n{congestion:?} {limit_s:?}\n{machine}"
        );
        ResultCache::fingerprint(&of, env!("BUFGYM_REVISION"))
    }
}

/// The simulator's results of every trace under every policy.
struct Predicted {
    /// Propagation of a link according to the measured round trip, nanoseconds.
    propagation_ns: u64,
    /// Results by policy, then by trace.
    times: Vec<Vec<Times>>,
}

fn predict_all(
    scenario: &Scenario,
    entrants: &[Entrant],
    traces: &[Trace],
    played: &[Played],
) -> CliResult<Predicted> {
    let extra = played.iter().map(|played| {
        let truth = &played.run.truth;
        truth.rtt_us - truth.rtt_ideal_us
    });
    let mut extra: Vec<f64> = extra.collect();
    extra.sort_by(f64::total_cmp);
    let median = stats::nearest_rank(&extra, 0.5).unwrap_or(0.0);
    // Four links make a round trip.
    let per_link_ns = bufgym::util::convert::floor_u64((median * 1e3 / 4.0).max(0.0));
    let scenario = scenario.clone().with(|changed| {
        changed.network.propagation_ns = scenario.network.propagation_ns + per_link_ns;
    });
    let of = |entrant: &Entrant| {
        let runs = traces
            .iter()
            .map(|trace| entrant.run(&scenario, trace, None));
        let times = runs.map(|run| run.map(|outcome| Times::from(&outcome.summary)));
        times.collect::<Result<Vec<_>, _>>().or_bad_input()
    };
    Ok(Predicted {
        propagation_ns: scenario.network.propagation_ns,
        times: entrants.iter().map(of).collect::<CliResult<_>>()?,
    })
}

/// Returns a row for every run, and one for every simulation.
fn runs_csv(entrants: &[Entrant], played: &[Played], predicted: &Predicted) -> String {
    let mut text = String::from(
        "where,policy,trace,seed,repeat,flows,completed,mean_fct_ms,p50_fct_ms,p99_fct_ms,short_mean_fct_ms,\
         long_mean_fct_ms,drops,timeouts,tail_probes,max_occupancy_bytes,late_p50_us,late_p99_us,\
         start_late_p99_us,rtt_us,cpu_headroom,load_average\n",
    );
    let row = |place: &str, played: &Played, times: &Times| {
        format!(
            "{place},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
            super::super::sim::quoted(entrants[played.policy].name()),
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
            truth.late_us.p50,
            truth.late_us.p99,
            truth.start_late_us.p99,
            truth.rtt_us,
            truth.cpu_headroom,
            truth.load_average.unwrap_or(f64::NAN)
        );
    }
    for one in played.iter().filter(|one| one.repeat == 0) {
        let trace = bufgym::util::convert::index(one.trace);
        text += &row("simulator", one, &predicted.times[one.policy][trace]);
        text += ",,,,,,\n";
    }
    text
}

/// The result as JSON and as text.
struct Comparison {
    json: Value,
    text: String,
}

impl Comparison {
    fn new(
        scenario: &Scenario,
        entrants: &[Entrant],
        played: &[Played],
        predicted: &Predicted,
        seed: u64,
    ) -> CliResult<Comparison> {
        let pairs: Vec<Pairs> = (0..entrants.len())
            .map(|policy| Pairs {
                policy: entrants[policy].name().to_owned(),
                measured: measured(policy, played),
                predicted: predicted.times[policy]
                    .iter()
                    .map(|times| times.mean_fct_ms)
                    .collect(),
            })
            .collect();
        let agreement = Agreement::of(&pairs, seed).ok_or_else(|| {
            CliError::failure(anyhow::anyhow!(
                "a trace has no mean FCT in the testbed or the simulator"
            ))
        })?;
        let noise = noise(entrants.len(), played);
        let truth = truth(played);
        let text = render(scenario, &agreement, predicted, noise, &truth);
        Ok(Comparison {
            json: json!({
                "scenario": scenario.name,
                "rate_bps": scenario.network.rate_bps,
                "buffer_bytes": scenario.network.buffer_bytes,
                "propagation_ns": scenario.network.propagation_ns,
                "simulated_propagation_ns": predicted.propagation_ns,
                "policies": agreement.rows,
                "kendall": agreement.kendall,
                "chance": agreement.chance,
                "noise": noise,
                "testbed": truth,
            }),
            text,
        })
    }
}

/// Returns the mean FCT of a policy on every trace, the mean over repeats.
fn measured(policy: usize, played: &[Played]) -> Vec<f64> {
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
fn noise(policies: usize, played: &[Played]) -> Option<f64> {
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

/// Returns the worst measurement quality of all runs.
fn truth(played: &[Played]) -> Value {
    let worst = |of: fn(&Run) -> f64| played.iter().map(|one| of(&one.run)).fold(0.0, f64::max);
    let least = |of: fn(&Run) -> f64| played.iter().map(|one| of(&one.run)).fold(1.0, f64::min);
    json!({
        "runs": played.len(),
        "late_p50_us": worst(|run| run.truth.late_us.p50),
        "late_p50_share": worst(|run| run.truth.late_share.p50),
        "late_p99_us": worst(|run| run.truth.late_us.p99),
        "late_p99_share": worst(|run| run.truth.late_share.p99),
        "longest_stall_us": worst(|run| run.truth.longest_stall_us),
        "start_late_p99_us": worst(|run| run.truth.start_late_us.p99),
        "decision_p99_us": worst(|run| run.truth.decision_us.p99),
        "cpu_headroom": least(|run| run.truth.cpu_headroom),
        "load_average": worst(|run| run.truth.load_average.unwrap_or(f64::NAN)),
    })
}

fn render(
    scenario: &Scenario,
    agreement: &Agreement,
    predicted: &Predicted,
    noise: Option<f64>,
    truth: &Value,
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
        let interval =
            |i: &stats::Estimate| format!("{:.3} [{:.3}-{:.3}]", i.centre, i.low, i.high);
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
    let number = |key: &str| truth[key].as_f64().unwrap_or(f64::NAN);
    let _ = writeln!(
        text,
        "worst of {} runs, none of which lost a packet outside the switch: late by {:.2} us at the median \
         ({:.2} % of a packet), p99 {:.1} us ({:.0} %); {:.0} % of the processor left; load average {:.1}",
        truth["runs"],
        number("late_p50_us"),
        number("late_p50_share") * 100.0,
        number("late_p99_us"),
        number("late_p99_share") * 100.0,
        number("cpu_headroom") * 100.0,
        number("load_average")
    );
    text
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
