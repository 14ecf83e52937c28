//! `bufgym testbed compare`: policies on the same traces, in the testbed and in the simulator.

use std::fmt::Write as _;
use std::path::PathBuf;

use bufgym::eval::agreement::{Agreement, Pairs};
use bufgym::eval::{Entrant, stats};
use bufgym::sim::rng::{Split, trace_seed};
use bufgym::sim::scenario::Scenario;
use bufgym::sim::traffic::{self, Trace};
use bufgym::testbed::Run;
use clap::Args;
use serde_json::{Value, json};

use super::super::error::{CliError, CliResult, ResultExt as _};
use super::super::interrupt::{Stop, stop_at_signal};
use super::super::output::Output;
use super::super::scenario::check_memory;
use super::super::{Common, eval, policy};
use super::{Chosen, Order, Playing};

/// Play the same traces under several policies, and compare them with what the simulator predicts
#[derive(Args)]
#[command(
    after_help = "DT with alpha = 1 (`dt`) always takes part. The simulator runs the same flows with the same \
    rate, buffer and round trip. A run that lost packets outside the switch is repeated.\n\nExamples:\n  \
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
    /// How often every policy plays every trace
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

/// Policies where none is named.
const DEFAULT: [&str; 5] = ["edt", "st", "cs", "dt+red", "ndt"];
/// Bytes that are kept of a run, at least.
const RESULT_BYTES: u64 = 1_024;
/// The aim: mean FCT of the simulator within this share of the testbed's.
const TARGET: f64 = 0.1;

/// A run that counts, with what the simulator says.
struct Played {
    policy: usize,
    trace: u64,
    seed: u64,
    repeat: u64,
    run: Run,
}

/// Runs the command.
pub fn run(args: &CompareArgs, common: &Common) -> CliResult {
    let scenario = args.chosen.resolve()?;
    let entrants = entrants(args, &scenario)?;
    let plays = entrants.len() as u64 * args.repeats;
    check_memory(&scenario, args.traces, plays * RESULT_BYTES)?;
    let output = args
        .out
        .as_deref()
        .map(|path| Output::folder(path, args.force))
        .transpose()?;
    let stop = stop_at_signal("stopping: hosts are ended and nothing is written")?;
    let seeds = 0..args.traces;
    let traces: Vec<Trace> = seeds
        .map(|index| traffic::generate(&scenario, trace_seed(Split::Test, common.seed(), index)))
        .collect();
    let played = play_all(args, &scenario, &entrants, &traces, &stop, common)?;
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
    common.print(&comparison.json, comparison.text.trim_end())
}

/// The baseline first.
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

/// Plays every trace under every policy, each in a place of its own in the order.
fn play_all(
    args: &CompareArgs,
    scenario: &Scenario,
    entrants: &[Entrant],
    traces: &[Trace],
    stop: &Stop,
    common: &Common,
) -> CliResult<Vec<Played>> {
    let bar = eval::progress_bar(common);
    bar.set_length(traces.len() as u64 * args.repeats * entrants.len() as u64);
    let mut played = Vec::new();
    for (number, trace) in (0..).zip(traces) {
        for repeat in 0..args.repeats {
            let first = bufgym::sim::convert::index(number + repeat);
            for place in 0..entrants.len() {
                let policy = (first + place) % entrants.len();
                let order = Order {
                    scenario,
                    trace,
                    policy: &entrants[policy],
                    playing: &args.playing,
                    timeline: None,
                    capture: None,
                };
                let (run, _) = order.play_until_valid(stop, common)?;
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

/// The simulator's mean FCT of every trace under every policy, and its drops and timeouts.
struct Predicted {
    /// What propagation the measured round trip leaves to a link, nanoseconds.
    propagation_ns: u64,
    /// By policy, then by trace.
    summaries: Vec<Vec<bufgym::sim::network::Summary>>,
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
    let per_link_ns = bufgym::sim::convert::floor_u64((median * 1e3 / 4.0).max(0.0));
    let scenario = Scenario {
        propagation_ns: scenario.propagation_ns + per_link_ns,
        ..scenario.clone()
    };
    let of = |entrant: &Entrant| {
        let runs = traces
            .iter()
            .map(|trace| entrant.run(&scenario, trace, None));
        let summaries = runs.map(|run| run.map(|outcome| outcome.summary));
        summaries.collect::<Result<Vec<_>, _>>().or_bad_input()
    };
    Ok(Predicted {
        propagation_ns: scenario.propagation_ns,
        summaries: entrants.iter().map(of).collect::<CliResult<_>>()?,
    })
}

/// A row for every run, and one for every simulation.
fn runs_csv(entrants: &[Entrant], played: &[Played], predicted: &Predicted) -> String {
    let mut text = String::from(
        "where,policy,trace,seed,repeat,flows,completed,mean_fct_ms,p50_fct_ms,p99_fct_ms,short_mean_fct_ms,\
         long_mean_fct_ms,drops,timeouts,tail_probes,max_occupancy_bytes,late_p50_us,late_p99_us,\
         start_late_p99_us,rtt_us,cpu_headroom,load_average\n",
    );
    let row =
        |place: &str, policy: usize, played: &Played, summary: &bufgym::sim::network::Summary| {
            let s = summary;
            format!(
                "{place},{},{},{},{},{},{},{},{},{},{},{},{},{},{},{}",
                super::super::sim::quoted(entrants[policy].name()),
                played.trace,
                played.seed,
                played.repeat,
                s.flows,
                s.completed,
                s.mean_fct_ms,
                s.p50_fct_ms,
                s.p99_fct_ms,
                s.short_mean_fct_ms,
                s.long_mean_fct_ms,
                s.drops,
                s.timeouts,
                s.tail_probes,
                s.max_occupancy_bytes,
            )
        };
    for one in played {
        let truth = &one.run.truth;
        text += &row("testbed", one.policy, one, &one.run.outcome.summary);
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
        let trace = bufgym::sim::convert::index(one.trace);
        text += &row(
            "simulator",
            one.policy,
            one,
            &predicted.summaries[one.policy][trace],
        );
        text += ",,,,,,\n";
    }
    text
}

/// The result in both forms.
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
                predicted: predicted.summaries[policy]
                    .iter()
                    .map(|summary| summary.mean_fct_ms)
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
                "rate_bps": scenario.rate_bps,
                "buffer_bytes": scenario.buffer_bytes,
                "propagation_ns": scenario.propagation_ns,
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

/// Mean FCT of a policy on every trace, the mean over repeats.
fn measured(policy: usize, played: &[Played]) -> Vec<f64> {
    let traces = played.iter().map(|one| one.trace + 1).max().unwrap_or(0);
    let of = |trace: u64| {
        let mine = played
            .iter()
            .filter(|one| one.policy == policy && one.trace == trace);
        let values: Vec<f64> = mine
            .map(|one| one.run.outcome.summary.mean_fct_ms)
            .collect();
        stats::mean(&values).unwrap_or(f64::NAN)
    };
    (0..traces).map(of).collect()
}

/// How far repeats of the same run are apart: mean of their deviation over their mean; none without
/// repeats.
fn noise(policies: usize, played: &[Played]) -> Option<f64> {
    let mut deviations = Vec::new();
    for policy in 0..policies {
        let mine = || played.iter().filter(|one| one.policy == policy);
        let traces = mine().map(|one| one.trace + 1).max().unwrap_or(0);
        for trace in 0..traces {
            let repeats = mine().filter(|one| one.trace == trace);
            let values: Vec<f64> = repeats
                .map(|one| one.run.outcome.summary.mean_fct_ms)
                .collect();
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

/// The worst of all runs.
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
        scenario.name,
        scenario.ports,
        scenario.rate_bps as f64 * 1e-6,
        scenario.buffer_bytes,
        scenario.propagation_ns as f64 * 1e-3,
        predicted.propagation_ns as f64 * 1e-3,
    );
    let mut close = 0;
    for row in &agreement.rows {
        close += usize::from((row.error.mean - 1.0).abs() <= TARGET);
        let interval = |i: &stats::Interval| format!("{:.3} [{:.3}-{:.3}]", i.mean, i.low, i.high);
        // Writing to a string cannot fail.
        let _ = writeln!(
            text,
            "| `{}` | {:.1} | {:.1} | {:+.1} % [{:+.1}, {:+.1}] | {} | {} |",
            row.policy,
            row.measured_ms,
            row.predicted_ms,
            (row.error.mean - 1.0) * 100.0,
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
