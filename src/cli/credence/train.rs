//! `bufgym credence train`.

use std::fs;
use std::path::PathBuf;

use bufgym::credence::{Data, Scores, Settings, best_threshold, train};
use bufgym::sim::scenario::{Scenario, Tier};
use bufgym::sim::switch::policy::{ForestModel, MODEL_FILE, Tree};
use clap::Args;
use serde_json::{Value, json};

use super::{LearningArgs, classify, counts};
use crate::cli::Common;
use crate::cli::error::{CliResult, ResultExt as _};
use crate::cli::output::Output;

/// Learn what Longest Queue Drop loses, from simulations of it
#[derive(Args)]
#[command(
    after_help = "Writes DIR/forest.json and DIR/report.json. The policy is then \
    credence:oracle=forest,model=DIR. A network of several switches has two models, DIR/leaf and \
    DIR/spine, for bufgym figures credence --model DIR\n\nExamples:\n  \
    bufgym credence train --scenario credence-train --set measure_ms=50 --set query_rate=40 --traces 5 --out forests\n  \
    bufgym credence train --scenario ndt-16x1g --out forest\n  \
    bufgym credence train --set load=0.8 --set transport=dctcp --trees 8 --out forest8 --json"
)]
pub struct ForestArgs {
    #[command(flatten)]
    learning: LearningArgs,
    /// Trees of the forest
    #[arg(
        long,
        value_name = "N",
        default_value_t = 4,
        allow_negative_numbers = true
    )]
    trees: u16,
    /// Folder for the model
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Write into a folder that is not empty
    #[arg(long)]
    force: bool,
}

/// The files of the output; for a network, folders contain the forests.
const FILES: [&str; 2] = [MODEL_FILE, REPORT];
const REPORT: &str = "report.json";

/// Runs the command.
pub(super) fn run(args: &ForestArgs, common: &Common) -> CliResult {
    let learning = &args.learning;
    let scenario = learning.scenario.resolve_any()?;
    let settings = learning.settings(args.trees, common)?;
    let output = Output::folder(&args.out, args.force, &FILES)?;
    if scenario.is_fabric() {
        return network(args, &scenario, settings, &output, common);
    }
    let data = learning.record(&scenario, common)?;
    let model = grown(args, &scenario, settings, &data)?;
    let scores = Scores::of(&model.forest, &data.test, &scenario);
    let value = report(&scenario, &model, &data, &scores)?;
    output.write_folder(|folder| {
        fs::write(folder.join(MODEL_FILE), model.encode()).or_failure()?;
        fs::write(folder.join(REPORT), format!("{value:#}\n")).or_failure()
    })?;
    common.note_written(&output);
    common.print(&value, &describe(&model, &data, &scores))
}

/// Folders of the models of a network.
pub const KINDS: [(&str, Tier); 2] = [("leaf", Tier::Leaf), ("spine", Tier::Spine)];

/// Trains two models of a network, one for all leaves and one for all spines.
fn network(
    args: &ForestArgs,
    scenario: &Scenario,
    settings: Settings,
    output: &Output,
    common: &Common,
) -> CliResult {
    let data = args.learning.record_network(scenario, common)?;
    let mut models = Vec::new();
    let mut values = serde_json::Map::new();
    let mut text = String::new();
    for ((kind, tier), data) in KINDS.iter().zip(&data) {
        let model = match *tier {
            Tier::Spine if counts(&data.train).1 == 0 => {
                common.note("spines lost nothing: their forest expects no loss");
                expecting_none(args, scenario, settings)?
            }
            _ => grown(args, scenario, settings, data)?,
        };
        let at = scenario.at_switch(*tier);
        let scores = Scores::of(&model.forest, &data.test, &at);
        values.insert((*kind).to_owned(), report(&at, &model, data, &scores)?);
        text.push_str(&format!("{kind}: {}\n", describe(&model, data, &scores)));
        models.push((kind, model));
    }
    let value = Value::Object(values);
    output.write_folder(|folder| {
        for (kind, model) in &models {
            fs::create_dir(folder.join(kind)).or_failure()?;
            fs::write(folder.join(kind).join(MODEL_FILE), model.encode()).or_failure()?;
        }
        fs::write(folder.join(REPORT), format!("{value:#}\n")).or_failure()
    })?;
    common.note_written(output);
    common.print(&value, text.trim_end())
}

/// Returns a model that predicts no loss of any packet. With two leaves, links from one leaf feed a port of a
/// spine. Together they are as fast as the spine's own links to the other leaf, so nothing is lost there.
fn expecting_none(
    args: &ForestArgs,
    scenario: &Scenario,
    settings: Settings,
) -> CliResult<ForestModel> {
    let leaf = Tree {
        feature: vec![-1],
        split: vec![0.0],
        left: vec![-1],
        right: vec![-1],
        lost: vec![0.0],
    };
    let (seed, traces) = (settings.seed, args.learning.traces);
    ForestModel::new(&scenario.name, seed, traces, 1.0, vec![leaf]).or_failure()
}

/// Returns the model that is learned from data.
fn grown(
    args: &ForestArgs,
    scenario: &Scenario,
    settings: Settings,
    data: &Data,
) -> CliResult<ForestModel> {
    let trees = train(&data.train, settings).map_err(classify)?;
    let threshold = match args.learning.threshold {
        Some(threshold) => threshold,
        None => best_threshold(&trees, &data.train).or_failure()?,
    };
    let (seed, traces) = (settings.seed, args.learning.traces);
    ForestModel::new(&scenario.name, seed, traces, threshold, trees).or_failure()
}

fn report(
    scenario: &Scenario,
    model: &ForestModel,
    data: &Data,
    scores: &Scores,
) -> CliResult<Value> {
    let part = |traces: &[Vec<_>]| {
        let (arrivals, lost) = counts(traces);
        json!({ "traces": traces.len(), "arrivals": arrivals, "lost": lost })
    };
    Ok(json!({
        "scenario": scenario.name,
        "settings": scenario.to_toml(),
        "seed": model.seed,
        "trees": model.forest.len(),
        "depth": model.depth(),
        "threshold": model.threshold,
        "train": part(&data.train),
        "test": part(&data.test),
        "scores": serde_json::to_value(scores).or_failure()?,
    }))
}

fn describe(model: &ForestModel, data: &Data, scores: &Scores) -> String {
    let (arrivals, lost) = counts(&data.test);
    let error_score = match scores.error_score {
        Some(score) => format!("{score:.4}"),
        None => "not defined for several queues per port".to_owned(),
    };
    format!(
        "{} trees; a loss is predicted from a share of {:.3} on\n\
         on {} traces not learned from: {arrivals} arrivals, {lost} lost\n\
         accuracy    {:.4}\n\
         precision   {:.4}\n\
         recall      {:.4}\n\
         F1          {:.4}\n\
         1/eta       {error_score}",
        model.forest.len(),
        model.threshold,
        data.test.len(),
        scores.accuracy,
        scores.precision,
        scores.recall,
        scores.f1,
    )
}
