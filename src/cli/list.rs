//! `bufgym list`: what the program knows by name.

mod policies;
mod scenarios;

use clap::{Args, Subcommand};

use super::Common;
use super::error::CliResult;

/// List policies or scenarios, or show one
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    bufgym list policies\n  \
    bufgym list policies edt\n  \
    bufgym list scenarios ndt-16x1g > mine.toml")]
pub struct ListArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Policies(policies::PoliciesArgs),
    Scenarios(scenarios::ScenariosArgs),
}

/// Runs the command.
pub fn run(args: ListArgs, common: &Common) -> CliResult {
    match args.action {
        Action::Policies(args) => policies::run(args, common),
        Action::Scenarios(args) => scenarios::run(args, common),
    }
}
