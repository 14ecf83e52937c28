//! `bufgym figures`: reproduces the figures of a paper, with verdicts.

mod network;
#[cfg(target_os = "linux")]
mod testbed;

use std::path::PathBuf;

use bufgym::eval::Entrant;
use bufgym::eval::batch::Executor;
use bufgym::models::ActorWeights;
use bufgym::models::checkpoint::Manifest;
use bufgym::reproduce::ndt::{self, NdtConfig, NdtFigure, Selection};
use bufgym::reproduce::{self, Grade, Ours, Paper, Report, Scale, Work, papers};
use bufgym::util::input::excerpt;
use clap::Args;
use serde_json::{Value, json};

use super::Common;
use super::error::{CliError, CliResult, ResultExt as _};
use super::output::{Output, shown};
use super::policy;
use super::progress::{by_simulations, progress_bar};

/// Returns the text below the options.
fn after_help() -> String {
    let papers: Vec<String> = papers()
        .map(|(name, title)| format!("- {name}: {title}"))
        .collect();
    format!(
        "Writes index.html (one file that opens anywhere: figure, claim and verdict side by side), verdicts.csv, and \
         for every figure a CSV file and an SVG drawing. Verdicts follow from rules that the page states. Claims that \
         differ are run again with one option of the setting after the other (all but ndt: at --scale paper). \
         Simulations of all but ndt that are finished are kept in DIR.parts, from which the same command resumes.\n\n\
         Papers:\n{}\n\n\
         With --testbed, Fig. 9 of ndt is measured and not simulated, with the simulator beside it (Linux; needs root \
         or `unshare -Urn`); its runs are kept in DIR.parts too.\n\n\
         Examples:\n  \
         bufgym figures ndt --out reports/ndt-figures\n  \
         bufgym figures ndt --fig 8 --scale paper --out reports/ndt-fig8\n  \
         bufgym figures abm --fig 6 --fig 7 --out reports/abm-figures\n  \
         bufgym figures credence --model forests --seeds 3 --out reports/credence-figures\n  \
         bufgym figures reverie --fig 4 --fig 7 --out reports/reverie-figures\n  \
         sudo bufgym figures ndt --fig 9 --testbed --out reports/ndt-fig9     (11 minutes; docs/testbed.md)\n  \
         bufgym figures ndt --fig 12b --checkpoint checkpoints/ndt-fct-dt --traces 2 --out out --json",
        papers.join("\n")
    )
}

/// Remake the figures of a paper, and compare every claim with our values
#[derive(Args)]
#[command(
    after_help = after_help()
)]
pub struct FiguresArgs {
    /// The paper
    paper: String,
    /// Figure or panel, such as 8 or 8d; may be repeated [default: all]
    #[arg(long, value_name = "N")]
    fig: Vec<String>,
    /// Amount of simulation: quick (minutes) or paper (the paper's numbers)
    #[arg(long, value_name = "SCALE", default_value = "quick")]
    scale: String,
    /// Independent repetitions of every point, on traces of their own [default: 1 for ndt; 2 for
    /// others, at --scale paper 5]
    #[arg(long, value_name = "K", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    seeds: Option<u64>,
    /// ndt: test traces of every point, instead of the scale's
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    traces: Option<u64>,
    /// Checkpoint folder; ndt: its policy [default: shipped weights that set α alone]; others: a policy
    /// to add to the comparisons
    #[arg(long, value_name = "DIR")]
    checkpoint: Option<PathBuf>,
    /// All but ndt: change one setting of every network, for example `measure_ms=50`; may be repeated; ndt: with
    /// --testbed, of its scenario
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// ndt: with --fig 9, send the flows through real TCP and a software switch on this machine
    #[arg(long)]
    testbed: bool,
    /// credence: folder of forests of leaves and spines, from `bufgym credence train` [default: the
    /// program's forest at every switch]
    #[arg(long, value_name = "DIR")]
    model: Option<PathBuf>,
    /// Folder for index.html, verdicts.csv, tables and drawings
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Write into a folder that is not empty
    #[arg(long)]
    force: bool,
}

/// Names of the files of every paper.
const FILES: [&str; 2] = ["index.html", "verdicts.csv"];

/// Runs the command.
pub fn run(args: FiguresArgs, common: &Common) -> CliResult {
    match args.paper.as_str() {
        "ndt" if args.testbed => run_on_testbed(&args, common),
        "ndt" => run_ndt(&args, common),
        other => match Paper::named(other) {
            Some(paper) => network::run(&paper, &args, common),
            None => Err(unknown_paper(other)),
        },
    }
}

fn run_ndt(args: &FiguresArgs, common: &Common) -> CliResult {
    refuse_given(
        args,
        &[
            ("--set", !args.set.is_empty()),
            ("--model", args.model.is_some()),
        ],
    )?;
    let (weights, manifest) = weights(args)?;
    let config = config(args, &weights, &manifest, common)?;
    let output = Output::folder(&args.out, args.force, &FILES)?;
    let bar = progress_bar(common);
    let progress = by_simulations(&bar);
    let work = Work::new(&progress).on(machines(common));
    let report = ndt::run(&config, work)?;
    bar.finish_and_clear();
    write(report, &output, common)
}

/// Returns the machines that simulate instead of this one, if there are any.
fn machines(common: &Common) -> Option<&dyn Executor> {
    let cluster = common.cluster.as_ref();
    cluster.map(|cluster| cluster as &dyn Executor)
}

#[cfg(target_os = "linux")]
fn run_on_testbed(args: &FiguresArgs, common: &Common) -> CliResult {
    testbed::run(args, common)
}

#[cfg(not(target_os = "linux"))]
fn run_on_testbed(_args: &FiguresArgs, _common: &Common) -> CliResult {
    Err(CliError::bad(
        "--testbed: the testbed needs the network namespaces of Linux; leave it out to simulate the figure",
    ))
}

/// Refuses options that the paper does not have.
fn refuse_given(args: &FiguresArgs, given: &[(&str, bool)]) -> CliResult {
    match given.iter().find(|(_, given)| *given) {
        Some((name, _)) => Err(CliError::bad(format!(
            "{name} has no meaning for the figures of {}: leave it out",
            args.paper
        ))),
        None => Ok(()),
    }
}

/// Writes the folder and prints the verdicts.
fn write(report: Report, output: &Output, common: &Common) -> CliResult {
    write_with(report, json!({}), output, common)
}

/// Does the same as [`write`], with more fields in the output of `--json`.
fn write_with(mut report: Report, more: Value, output: &Output, common: &Common) -> CliResult {
    report.software = format!("{}, {}", report.software, env!("BUFGYM_REVISION"));
    output.write_folder(|folder| reproduce::write_into(&report, folder).or_failure())?;
    let mut text = summary(&report);
    let page = output.path().join("index.html");
    text.push_str(&format!("\npage: {}", shown(&page)));
    let mut json = report.to_json();
    json["out"] = output.path().display().to_string().into();
    if let (Value::Object(fields), Value::Object(more)) = (&mut json, more) {
        fields.extend(more);
    }
    common.print(&json, &text)
}

fn unknown_paper(name: &str) -> CliError {
    let known: Vec<&str> = papers().map(|(name, _)| name).collect();
    CliError::bad(format!(
        "no figures for paper `{}`: this version has {}",
        excerpt(name),
        known.join(", "),
    ))
}

/// Returns the weights of the series NDT.
fn weights(args: &FiguresArgs) -> CliResult<(ActorWeights, Manifest)> {
    match &args.checkpoint {
        Some(folder) => policy::load_checkpoint(folder),
        None => policy::shipped_alpha_weights(),
    }
}

fn config(
    args: &FiguresArgs,
    weights: &ActorWeights,
    manifest: &Manifest,
    common: &Common,
) -> CliResult<NdtConfig> {
    let scale: Scale = args.scale.parse().or_bad_input()?;
    let mut figures: Vec<NdtFigure> = Vec::new();
    for text in &args.fig {
        let Selection(named) = text.parse().or_bad_input()?;
        figures.extend(named);
    }
    let learned = Entrant::from_checkpoint(policy::SHIPPED, weights, manifest);
    Ok(NdtConfig {
        traces: args.traces,
        seeds: args.seeds.unwrap_or(1),
        figures,
        ..NdtConfig::new(learned, parameters(weights), scale, common.seed())
    })
}

/// Returns the number of weights.
fn parameters(weights: &ActorWeights) -> usize {
    weights.tensors().iter().map(Vec::len).sum()
}

/// Returns the verdicts as text, one line per claim.
fn summary(report: &Report) -> String {
    let (agree, all) = report.agreeing(None);
    let counts = Grade::ALL.iter().zip(report.counts(None));
    let counts = counts.map(|(grade, count)| format!("{count} {}", grade.name()));
    let mut text = format!(
        "{agree} of {all} claims agree in value, factor or ranking ({})\n",
        counts.collect::<Vec<_>>().join(", ")
    );
    for claim in &report.claims {
        let figure = format!("{}{}", claim.figure, claim.panel);
        let ours = claim.ours.map_or_else(
            || "-".to_owned(),
            |ours| {
                let (value, [low, high]) = (ours.value(), ours.ends());
                match ours {
                    Ours::Interval(_) => format!("{value:.4} [{low:.4}, {high:.4}]"),
                    Ours::Range(_) => format!("{value:.4} ({low:.4} to {high:.4})"),
                }
            },
        );
        let at = match claim.x.as_str() {
            "" => String::new(),
            x => format!(", {x}"),
        };
        text.push_str(&format!(
            "\n{figure}  {}{at}: {}: paper {}, ours {ours}: {}",
            claim.series,
            claim.metric,
            claim.paper,
            claim.verdict(),
        ));
    }
    text
}
