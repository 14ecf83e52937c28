//! `bufgym figures`: the figures of a paper made again, with verdicts.

use std::path::PathBuf;

use bufgym::eval::Entrant;
use bufgym::eval::papers::ndt::{self, NdtConfig, NdtFigure, Selection};
use bufgym::eval::papers::{self, Grade, PAPERS, PapersError, Report, Scale};
use bufgym::models::ActorWeights;
use bufgym::sim::input::excerpt;
use clap::Args;

use super::Common;
use super::error::{CliError, CliResult, ResultExt as _};
use super::eval;
use super::output::Output;
use super::policy;

/// Make the figures of a paper again, and compare every claim with ours
#[derive(Args)]
#[command(
    after_help = "Writes index.html (one file that opens anywhere: figure, claim and verdict side by \
    side), verdicts.csv, and for every figure a CSV file and an SVG drawing. Verdicts follow from rules \
    that the page states. What differs is run again with one option of the setting after the \
    other.\n\nPapers: ndt (Learning Buffer Management Policies for Shared Memory Switches).\n\nExamples:\n  \
    bufgym figures ndt --out reports/ndt-figures\n  \
    bufgym figures ndt --fig 8 --scale paper --out reports/ndt-fig8\n  \
    bufgym figures ndt --fig 12b --checkpoint checkpoints/ndt-fct-dt --traces 2 --out out --json"
)]
pub struct FiguresArgs {
    /// The paper
    paper: String,
    /// Figure or panel, such as 8 or 8d; may be repeated [default: all]
    #[arg(long, value_name = "N")]
    fig: Vec<String>,
    /// How much is simulated: quick (minutes) or paper (the paper's numbers)
    #[arg(long, value_name = "SCALE", default_value = "quick")]
    scale: String,
    /// Independent sets of test traces; intervals are over the traces of all sets
    #[arg(long, value_name = "K", default_value_t = 1, allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=1_000))]
    seeds: u64,
    /// Test traces of every point, in place of the scale's
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    traces: Option<u64>,
    /// Checkpoint folder of the policy NDT [default: shipped weights that set α alone, as the paper's]
    #[arg(long, value_name = "DIR")]
    checkpoint: Option<PathBuf>,
    /// Folder for index.html, verdicts.csv, tables and drawings
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Write into a folder that is not empty
    #[arg(long)]
    force: bool,
}

/// Runs the command.
pub fn run(args: FiguresArgs, common: &Common) -> CliResult {
    if !PAPERS.contains(&args.paper.as_str()) {
        return Err(unknown_paper(&args.paper));
    }
    let config = config(&args, common)?;
    let output = Output::folder(&args.out, args.force)?;
    let bar = eval::progress_bar(common);
    let mut report = ndt::run(&config, &|progress| {
        bar.set_length(progress.total as u64);
        bar.inc(1);
    })
    .map_err(classify)?;
    bar.finish_and_clear();
    report.software = format!("{}, {}", report.software, env!("BUFGYM_REVISION"));
    output.write_folder(|folder| papers::write_into(&report, folder).or_failure())?;
    let mut text = summary(&report);
    let page = output.path().join("index.html");
    text.push_str(&format!("\npage: {}", page.display()));
    let mut json = report.to_json();
    json["out"] = output.path().display().to_string().into();
    common.print(&json, &text)
}

fn unknown_paper(name: &str) -> CliError {
    CliError::bad(format!(
        "no figures for paper `{}`: this version has {}",
        excerpt(name),
        PAPERS.join(", "),
    ))
}

fn config(args: &FiguresArgs, common: &Common) -> CliResult<NdtConfig> {
    let scale: Scale = args.scale.parse().or_bad_input()?;
    let mut figures: Vec<NdtFigure> = Vec::new();
    for text in &args.fig {
        let Selection(named) = text.parse().or_bad_input()?;
        figures.extend(named);
    }
    let (weights, manifest) = match &args.checkpoint {
        Some(folder) => policy::load_checkpoint(folder)?,
        None => policy::shipped_alpha_weights()?,
    };
    let learned = Entrant::from_checkpoint(policy::SHIPPED, &weights, &manifest);
    Ok(NdtConfig {
        traces: args.traces,
        seeds: args.seeds,
        figures,
        ..NdtConfig::new(learned, parameters(&weights), scale, common.seed())
    })
}

/// Number of weights.
fn parameters(weights: &ActorWeights) -> usize {
    weights.tensors().iter().map(Vec::len).sum()
}

fn classify(error: PapersError) -> CliError {
    match error {
        PapersError::Eval(error) => eval::classify(error),
        error => CliError::failure(error),
    }
}

/// The verdicts as text, one line per claim.
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
            |ours| format!("{:.4} [{:.4}, {:.4}]", ours.mean, ours.low, ours.high),
        );
        text.push_str(&format!(
            "\n{figure}  {}: {}: paper {}, ours {ours}: {}",
            claim.series,
            claim.metric,
            claim.paper,
            claim.verdict(),
        ));
    }
    text
}
