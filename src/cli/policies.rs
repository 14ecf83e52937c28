//! `bufgym policies`: every policy with its rule, parameters, defaults and source.

use bufgym::env::switch::policy::{Deployment, catalogue};
use bufgym::env::switch::{PolicyInfo, PolicySpec};
use clap::Args;
use serde_json::{Value, json};

use super::Common;
use super::error::{CliResult, ResultExt as _};

/// List every policy with its parameters, defaults and source
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    bufgym policies\n  \
    bufgym policies edt\n  \
    bufgym sim --policy dt:alpha=8 --scenario ndt-16x1g")]
pub struct PoliciesArgs {
    /// Show this one only
    name: Option<String>,
}

/// The learned policy is not in the simulator's catalogue, because its rule is a file.
const LEARNED: &str = "ndt";

/// Runs the command.
pub fn run(args: PoliciesArgs, common: &Common) -> CliResult {
    let wanted = match args.name.as_deref() {
        Some(LEARNED) => {
            return common.print(&json!({ "policies": [learned_json()] }), LEARNED_TEXT);
        }
        Some(name) => {
            // Parsing gives the message with the nearest name.
            let _: PolicySpec = name.parse().or_bad_input()?;
            Some(name.split(':').next().unwrap_or(name))
        }
        None => None,
    };
    let shown: Vec<&PolicyInfo> = catalogue()
        .iter()
        .map(|definition| &definition.info)
        .filter(|info| wanted.is_none_or(|name| info.name == name))
        .collect();
    let mut values: Vec<Value> = shown.iter().map(|info| describe_json(info)).collect();
    let mut texts: Vec<String> = shown.iter().map(|info| describe(info)).collect();
    if wanted.is_none() {
        values.push(learned_json());
        texts.push(LEARNED_TEXT.to_owned());
    }
    common.print(&json!({ "policies": values }), &texts.join("\n\n"))
}

const LEARNED_TEXT: &str = "ndt  per-port Dynamic Threshold whose alpha a trained network sets\n  \
    rule    T_i = alpha_i (B - Q), alpha_i in 2^-2..2^5, decided whenever enough traffic exceeded what left\n  \
    source  Neural Dynamic Thresholds (NDT), sections III to V\n  \
    switch  needs counters beside Dynamic Threshold, and a processor that decides\n  \
    use     ndt (the weights shipped with this program) or ndt:DIR (a checkpoint folder)";

fn learned_json() -> Value {
    json!({
        "name": LEARNED,
        "summary": "per-port Dynamic Threshold whose alpha a trained network sets",
        "rule": "T_i = alpha_i (B - Q), alpha_i in 2^-2..2^5",
        "source": "Neural Dynamic Thresholds (NDT), sections III to V",
        "switch": "needs counters beside Dynamic Threshold, and a processor that decides",
        "parameters": [{ "name": "DIR", "default": "the shipped weights", "meaning": "checkpoint folder, as in ndt:DIR" }],
    })
}

fn describe(info: &PolicyInfo) -> String {
    let mut text = format!(
        "{}  {}\n  rule    {}\n  source  {}\n  switch  {}",
        info.name,
        info.summary,
        info.rule,
        info.source,
        deployment(info.deployment)
    );
    for parameter in info.parameters {
        text.push_str(&format!(
            "\n  {} = {}  {}",
            parameter.name, parameter.default, parameter.meaning
        ));
    }
    text
}

/// Whether a switch could run it, in words.
fn deployment(deployment: Deployment) -> &'static str {
    match deployment {
        Deployment::Today => "today's can run it",
        Deployment::Extension => "needs counters beside Dynamic Threshold",
        Deployment::NewHardware => "needs new hardware",
        Deployment::Reference => "none can run it",
    }
}

fn describe_json(info: &PolicyInfo) -> Value {
    let parameters: Vec<Value> = info
        .parameters
        .iter()
        .map(|parameter| {
            json!({ "name": parameter.name, "default": parameter.default, "meaning": parameter.meaning })
        })
        .collect();
    json!({
        "name": info.name,
        "summary": info.summary,
        "rule": info.rule,
        "source": info.source,
        "switch": deployment(info.deployment),
        "parameters": parameters,
    })
}
