//! Figures of papers about networks of several switches.

use std::path::Path;

use bufgym::reproduce::fabric::FabricConfig;
use bufgym::reproduce::grid::{Forests, Learned};
use bufgym::reproduce::{Paper, Scale, Work};
use bufgym::sim::scenario::Scenario;
use bufgym::sim::switch::policy::ForestModel;

use super::{FILES, FiguresArgs, machines, refuse_given, write};
use crate::cli::Common;
use crate::cli::error::{CliResult, ResultExt as _};
use crate::cli::output::{Output, discard};
use crate::cli::policy;
use crate::cli::progress::{by_simulations, progress_bar};

/// Runs the command for a paper.
pub fn run(paper: &Paper, args: &FiguresArgs, common: &Common) -> CliResult {
    refuse_given(
        args,
        &[
            ("--testbed", args.testbed),
            ("--traces", args.traces.is_some()),
            ("--model", args.model.is_some() && !paper.has_forests()),
            (
                "--checkpoint",
                args.checkpoint.is_some() && !paper.takes_learned(),
            ),
        ],
    )?;
    let config = config(paper, args, common)?;
    let output = Output::folder(&args.out, args.force, &FILES)?;
    let parts = output.parts()?;
    let bar = progress_bar(common);
    let progress = by_simulations(&bar);
    let work = Work::new(&progress).on(machines(common));
    let report = paper.make(&config, Some(&parts), &work)?;
    bar.finish_and_clear();
    write(report, &output, common)?;
    discard(&parts)
}

fn config(paper: &Paper, args: &FiguresArgs, common: &Common) -> CliResult<FabricConfig> {
    let scale: Scale = args.scale.parse().or_bad_input()?;
    let mut figures = Vec::new();
    for text in &args.fig {
        figures.push(paper.figure(text).or_bad_input()?);
    }
    let mut scenario = Scenario::preset(paper.preset()).or_failure()?;
    crate::cli::scenario::change(&mut scenario, &args.set)?;
    let forests = args.model.as_deref().map(forests).transpose()?;
    let learned = args.checkpoint.as_deref().map(learned).transpose()?;
    Ok(FabricConfig {
        learned,
        seeds: args.seeds,
        settings: args.set.clone(),
        figures,
        forests,
        revision: env!("BUFGYM_REVISION").to_owned(),
        ..FabricConfig::new(scale, common.seed())
    })
}

/// Returns the policy of a checkpoint folder.
fn learned(folder: &Path) -> CliResult<Learned> {
    let (weights, manifest) = policy::load_checkpoint(folder)?;
    Ok(Learned::new(policy::SHIPPED, &weights, &manifest))
}

/// Reads the forests in a folder that `bufgym credence train` wrote for a network.
fn forests(folder: &Path) -> CliResult<Forests> {
    let load = |kind: &str| ForestModel::load(&folder.join(kind)).or_bad_input();
    let (leaf, spine) = (load("leaf")?, load("spine")?);
    let origin = format!(
        "forests of {} and {} trees, for leaves and spines, trained on {} traces of {}",
        leaf.forest.len(),
        spine.forest.len(),
        leaf.traces,
        leaf.scenario,
    );
    Ok(Forests {
        leaf: leaf.forest,
        spine: spine.forest,
        origin,
    })
}
