//! `bufgym list policies`: every policy and every queue management with rule, parameters, defaults and source.

use bufgym::eval::entrant::{INTEGER, LINEAR, ONNX};
use bufgym::sim::switch::aqm::{self, AqmSpec};
use bufgym::sim::switch::policy::{Deployment, ParameterInfo, catalogue};
use clap::Args;
use serde_json::{Value, json};

use super::error::{CliResult, ResultExt as _};
use super::{Common, policy};

/// List every policy and queue management with parameters, defaults and source
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    bufgym list policies\n  \
    bufgym list policies edt\n  \
    bufgym list policies red\n  \
    bufgym sim --policy dt:alpha=8 --scenario ndt-16x1g")]
pub struct PoliciesArgs {
    /// Show this one only
    name: Option<String>,
}

/// A learned policy. The simulator's catalogue does not have these: they are read from files.
struct Learned {
    name: &'static str,
    summary: &'static str,
    rule: &'static str,
    source: &'static str,
    switch: &'static str,
    /// Name of the part after the colon of the policy string.
    parameter: &'static str,
    /// Meaning of the name without a colon, if that is valid.
    default: Option<&'static str>,
    meaning: &'static str,
}

const LEARNED: [Learned; 4] = [
    Learned {
        name: "ndt",
        summary: "per-port Dynamic Threshold whose alpha a trained network sets",
        rule: "T_i = alpha_i (B - Q), alpha_i in 2^-2..2^5, decided whenever enough traffic exceeded what left",
        source: "Neural Dynamic Thresholds (NDT), sections III to V",
        switch: "needs more counters than Dynamic Threshold, and a processor that decides; the shipped weights also a byte counter and a time per flow, for FAB below, and a counter per port and a time per flow with losses, for early drop",
        parameter: "DIR",
        default: Some("the shipped weights"),
        meaning: "checkpoint folder, as in ndt:DIR",
    },
    Learned {
        name: INTEGER,
        summary: "ndt with its network rounded to 8-bit integers, as `bufgym export` writes it",
        rule: "as ndt; inputs, weights and activations of a byte each",
        source: "control: NDT; rounding: Frantar et al., GPTQ, ICLR 2023",
        switch: "as ndt, without floating point",
        parameter: "DIR",
        default: Some("the shipped weights"),
        meaning: "checkpoint folder, or one that `bufgym export --format c-int8` wrote",
    },
    Learned {
        name: LINEAR,
        summary: "per-port Dynamic Threshold whose alpha a tuned weighted sum sets, in the place of ndt's network",
        rule: "T_i = alpha_i (B - Q), alpha_i in 2^-2..2^5 from w f_i, f_i sixteen features of queues, arrivals and drops",
        source: "control: NDT; weights: CMA-ES (Hansen, The CMA Evolution Strategy: A Tutorial, 2016)",
        switch: "needs more counters than Dynamic Threshold, and a processor that decides; the shipped weights also a byte counter and a time per flow, for FAB below, and a counter per port and a time per flow with losses, for early drop",
        parameter: "FILE",
        default: Some("the shipped weights"),
        meaning: "file that `bufgym tune linear` wrote, as in linear:FILE",
    },
    Learned {
        name: ONNX,
        summary: "any network from an ONNX file in the place of ndt's",
        rule: "as ndt; input [ports, 8, 5], output `action` or `action_mean` per port (docs/exports.md)",
        source: "control: NDT; file: ONNX, operators of version 9 to 21",
        switch: "as ndt, with a processor that runs the network",
        parameter: "FILE",
        default: None,
        meaning: "as `bufgym export --format onnx` or PyTorch writes it, with ,low_level=P and ,actions=A behind it where its metadata do not say them",
    },
];

/// Runs the command.
pub fn run(args: PoliciesArgs, common: &Common) -> CliResult {
    let wanted = match args.name.as_deref() {
        Some(name) => {
            if let Some(learned) = LEARNED.iter().find(|learned| learned.name == name) {
                let value = json!({ "policies": [learned.json()] });
                return common.print(&value, &learned.describe());
            }
            if let Some(aqm) = disciplines().find(|aqm| aqm.name == name) {
                let value = json!({ "policies": [], "queue_management": [aqm.json()] });
                return common.print(&value, &aqm.describe());
            }
            // The error of parsing suggests the nearest name.
            policy::read(name).or_bad_input()?;
            let (policy, aqm) = AqmSpec::split(name);
            Some([Some(policy), aqm].map(|part| part.and_then(|part| part.split(':').next())))
        }
        None => None,
    };
    let [policy, aqm] = wanted.unwrap_or_default();
    let is_shown = |listed: &Listed, name: Option<&str>| match wanted {
        None => true,
        Some(_) => Some(listed.name) == name,
    };
    let policies: Vec<Listed> = policies()
        .filter(|listed| is_shown(listed, policy))
        .collect();
    let aqms: Vec<Listed> = disciplines()
        .filter(|listed| is_shown(listed, aqm))
        .collect();
    let mut values: Vec<Value> = policies.iter().map(Listed::json).collect();
    let mut texts: Vec<String> = policies.iter().map(Listed::describe).collect();
    if wanted.is_none() {
        values.extend(LEARNED.iter().map(Learned::json));
        texts.extend(LEARNED.iter().map(Learned::describe));
        texts.push(BEHIND.to_owned());
    }
    texts.extend(aqms.iter().map(Listed::describe));
    let aqms: Vec<Value> = aqms.iter().map(Listed::json).collect();
    let value = json!({ "policies": values, "queue_management": aqms });
    common.print(&value, &texts.join("\n\n"))
}

/// Heading of the disciplines in the whole list.
const BEHIND: &str = "Queue management, behind any rule: dt+red, fab:alpha=4+random:p=0.01";

/// The common fields of a policy and a discipline.
struct Listed {
    name: &'static str,
    summary: &'static str,
    rule: &'static str,
    source: &'static str,
    switch: &'static str,
    parameters: &'static [ParameterInfo],
}

fn policies() -> impl Iterator<Item = Listed> {
    catalogue().iter().map(|definition| {
        let info = &definition.info;
        Listed {
            name: info.name,
            summary: info.summary,
            rule: info.rule,
            source: info.source,
            switch: deployment(info.deployment),
            parameters: info.parameters,
        }
    })
}

fn disciplines() -> impl Iterator<Item = Listed> {
    aqm::catalogue().iter().map(|definition| {
        let info = &definition.info;
        Listed {
            name: info.name,
            summary: info.summary,
            rule: info.rule,
            source: info.source,
            switch: has(info.deployment),
            parameters: info.parameters,
        }
    })
}

impl Listed {
    fn describe(&self) -> String {
        let mut text = format!(
            "{}  {}\n  rule    {}\n  source  {}\n  switch  {}",
            self.name, self.summary, self.rule, self.source, self.switch
        );
        for parameter in self.parameters {
            text.push_str(&format!(
                "\n  {} = {}  {}",
                parameter.name, parameter.default, parameter.meaning
            ));
        }
        text
    }

    fn json(&self) -> Value {
        let parameter = |parameter: &ParameterInfo| json!({ "name": parameter.name, "default": parameter.default, "meaning": parameter.meaning });
        json!({
            "name": self.name,
            "summary": self.summary,
            "rule": self.rule,
            "source": self.source,
            "switch": self.switch,
            "parameters": self.parameters.iter().map(parameter).collect::<Vec<Value>>(),
        })
    }
}

impl Learned {
    fn describe(&self) -> String {
        let name = self.name;
        let alone = self
            .default
            .map(|default| format!("{name} ({default}) or "));
        format!(
            "{name}  {}\n  rule    {}\n  source  {}\n  switch  {}\n  use     {}{name}:{} ({})",
            self.summary,
            self.rule,
            self.source,
            self.switch,
            alone.unwrap_or_default(),
            self.parameter,
            self.meaning,
        )
    }

    fn json(&self) -> Value {
        json!({
            "name": self.name,
            "summary": self.summary,
            "rule": self.rule,
            "source": self.source,
            "switch": self.switch,
            "parameters": [{ "name": self.parameter, "default": self.default, "meaning": self.meaning }],
        })
    }
}

/// Describes in words whether a switch could run the policy.
fn deployment(deployment: Deployment) -> &'static str {
    match deployment {
        Deployment::Today => "today's can run it",
        Deployment::Extension => "needs more counters than Dynamic Threshold",
        Deployment::NewHardware => "needs new hardware",
        Deployment::Reference => "none can run it",
    }
}

/// Describes in words which switches have a discipline.
fn has(deployment: Deployment) -> &'static str {
    match deployment {
        Deployment::Today => "today's have it, as WRED or ECN thresholds",
        Deployment::Extension => "needs counters",
        Deployment::NewHardware => "rare: it needs a time stamp or a controller for every queue",
        Deployment::Reference => "none has it",
    }
}
