//! `bufgym runs`: several trainings side by side.

mod choose;
mod curves;

use clap::{Args, Subcommand};

use super::Common;
use super::error::CliResult;

/// Draw the learning curves of several trainings, or choose the best
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    bufgym runs curves runs/fct-ndt-16x1g-1 runs/fct-ndt-16x1g-2 --out learning.svg\n  \
    bufgym runs choose runs/fct-ndt-16x1g-1 runs/fct-ndt-16x1g-2 --out checkpoints/mine")]
pub struct RunsArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Curves(curves::CurvesArgs),
    Choose(choose::ChooseArgs),
}

/// Runs the command.
pub fn run(args: RunsArgs, common: &Common) -> CliResult {
    match args.action {
        Action::Curves(args) => curves::run(args, common),
        Action::Choose(args) => choose::run(args, common),
    }
}
