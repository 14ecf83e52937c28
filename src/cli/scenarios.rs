//! `bufgym list scenarios`: the presets, or one of them as TOML.

use bufgym::sim::scenario::Scenario;
use clap::Args;
use serde_json::json;

use super::Common;
use super::error::{CliResult, ResultExt as _};

/// List the scenario presets, or print one as TOML
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    bufgym list scenarios\n  \
    bufgym list scenarios ndt-16x1g > mine.toml\n  \
    bufgym train --scenario mine.toml")]
pub struct ScenariosArgs {
    /// Preset or TOML file to print with every setting resolved
    name: Option<String>,
}

/// Runs the command.
pub fn run(args: ScenariosArgs, common: &Common) -> CliResult {
    let Some(name) = args.name else {
        let presets = Scenario::presets();
        let listing: Vec<_> = presets
            .iter()
            .map(|preset| json!({ "name": preset.name, "summary": preset.summary }))
            .collect();
        let width = presets
            .iter()
            .map(|preset| preset.name.len())
            .max()
            .unwrap_or(0);
        let lines: Vec<String> = presets
            .iter()
            .map(|preset| format!("{:width$}  {}", preset.name, preset.summary))
            .collect();
        return common.print(&json!({ "scenarios": listing }), &lines.join("\n"));
    };
    let scenario = Scenario::load(&name).or_bad_input()?;
    common.print(&json!(scenario), scenario.to_toml().trim_end())
}
