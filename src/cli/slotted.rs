//! `bufgym slotted`: the slotted model of the theory, one policy on one list of arrivals.

mod sweep;

use std::path::PathBuf;

use bufgym::slotted::{
    Arrivals, Generator, GeneratorOptions, Order, Outcome, PolicySpec, SlottedError, Switch,
};
use clap::Args;
use serde_json::json;

use super::Common;
use super::error::{CliError, CliResult, ResultExt as _};

/// Run a policy in the slotted model of the theory: competitive ratios, optimum, constructions
#[derive(Args)]
#[command(
    after_help = "Policies: cs, st, dt[:alpha=A], harmonic, lqd, bpd, bad, lwd[:flush=true], mtvd,\n\
    mrd[:ratio=total], followlqd, credence[:oracle=perfect,flip=P], opt, scripted-opt\n\
    Generators: thm1, thm2, thm3, thm6, thm7, followlqd-lower-bound, poisson-bursts\n\n\
    Examples:\n  \
    bufgym slotted --policy lqd --ports 8 --buffer 400 --generate thm1 --rounds 100 --until-last-round\n  \
    bufgym slotted --policy opt --ports 4 --buffer 16 --arrivals packets.csv --json\n  \
    bufgym slotted --sweep fig14 --out figure"
)]
pub struct SlottedArgs {
    /// Policy, such as `lqd` or `credence:flip=0.3`
    #[arg(long, value_name = "P", required_unless_present = "sweep")]
    policy: Option<String>,
    /// Ports (N) [default of a sweep: 16]
    #[arg(long, value_name = "N", required_unless_present = "sweep")]
    ports: Option<u32>,
    /// Shared buffer (B), packets [default of a sweep: 160]
    #[arg(long, value_name = "B", required_unless_present = "sweep")]
    buffer: Option<u64>,
    /// Packets in order of arrival: slot,port[,work][,value]
    #[arg(
        long,
        value_name = "FILE.csv",
        required_unless_present_any = ["generate", "sweep"],
        conflicts_with = "generate"
    )]
    arrivals: Option<PathBuf>,
    /// Built-in arrivals [default of a sweep: poisson-bursts]
    #[arg(long, value_name = "NAME")]
    generate: Option<String>,
    /// Rounds of built-in arrivals [default: 100; of a sweep: 5000]
    #[arg(long, value_name = "R", conflicts_with = "arrivals")]
    rounds: Option<u64>,
    /// Largest work of thm1 [default: N (N - 1)] and thm3 [default: (B/N)^2]
    #[arg(long, value_name = "K", conflicts_with = "arrivals")]
    max_work: Option<u32>,
    /// Largest value of thm6 [default: N] and thm7 [default: the least that N ports allow]
    #[arg(long, value_name = "V", conflicts_with = "arrivals")]
    max_value: Option<u32>,
    /// Bursts per slot of poisson-bursts [default: 0.75/B]
    #[arg(
        long,
        value_name = "RATE",
        conflicts_with = "arrivals",
        allow_negative_numbers = true
    )]
    burst_rate: Option<f64>,
    /// Order of every queue: pq (least work or largest value first) or fifo
    #[arg(long, value_name = "ORDER", default_value = "pq")]
    order: String,
    /// Count throughput to the end of the last round, not until the queues are empty
    #[arg(long, conflicts_with = "arrivals")]
    until_last_round: bool,
    /// Compare policies over a parameter: fig14 (Credence's flip probability)
    #[arg(long, value_name = "FIGURE")]
    sweep: Option<String>,
    /// Folder for the CSV, JSON and SVG of a sweep
    #[arg(long, value_name = "DIR", requires = "sweep")]
    out: Option<PathBuf>,
    /// Write into a folder that is not empty
    #[arg(long, requires = "out")]
    force: bool,
}

/// Runs the command.
pub fn run(args: SlottedArgs, common: &Common) -> CliResult {
    if args.sweep.is_some() {
        return sweep::run(&args, common);
    }
    // clap requires all three when there is no sweep.
    let missing = || CliError::bad("--policy, --ports and --buffer are needed");
    let policy: PolicySpec = args
        .policy
        .as_deref()
        .ok_or_else(missing)?
        .parse()
        .or_bad_input()?;
    let switch = args.switch(
        args.ports.ok_or_else(missing)?,
        args.buffer.ok_or_else(missing)?,
    )?;
    let arrivals = args.load(&switch, None, 100, common)?;
    let outcome = policy
        .run(&switch, &arrivals, common.seed(), args.until_last_round)
        .or_bad_input()?;
    let mut value = json!(outcome);
    value["policy"] = json!(policy.to_string());
    common.print(
        &value,
        &describe(&policy, &arrivals, &switch, &outcome, args.until_last_round),
    )
}

impl SlottedArgs {
    fn switch(&self, ports: u32, buffer: u64) -> CliResult<Switch> {
        let order: Order = self.order.parse().or_bad_input()?;
        Switch::new(ports, buffer, order).or_bad_input()
    }

    /// Returns the requested arrivals, or those of `generator`.
    fn load(
        &self,
        switch: &Switch,
        generator: Option<Generator>,
        rounds: u64,
        common: &Common,
    ) -> CliResult<Arrivals> {
        if let Some(path) = &self.arrivals {
            return Arrivals::read_csv(path, switch.ports).or_bad_input();
        }
        let named = self.generate.as_deref().map(str::parse).transpose();
        let generator = named
            .or_bad_input()?
            .or(generator)
            .ok_or_else(|| CliError::bad("--arrivals or --generate is needed"))?;
        let options = GeneratorOptions {
            max_work: self.max_work,
            max_value: self.max_value,
            burst_rate: self.burst_rate,
            seed: common.seed(),
        };
        let rounds = self.rounds.unwrap_or(rounds);
        generator
            .arrivals(switch, rounds, &options)
            .map_err(|error: SlottedError| CliError::input(error))
    }
}

fn describe(
    policy: &PolicySpec,
    arrivals: &Arrivals,
    switch: &Switch,
    outcome: &Outcome,
    until_last_round: bool,
) -> String {
    let mut text = format!(
        "{policy} with {} ports, buffer {}, {}: {} of {} packets transmitted in {} slots\n\
         value       {}\n\
         lost        {} dropped, {} pushed out",
        switch.ports,
        switch.buffer,
        switch.order,
        outcome.transmitted,
        outcome.arrived,
        outcome.slots,
        outcome.transmitted_value,
        outcome.dropped,
        outcome.pushed_out,
    );
    if outcome.left() > 0 {
        text.push_str(&format!("\nleft        {} in the buffer", outcome.left()));
    }
    text + &against_the_proof(policy, arrivals, switch, outcome, until_last_round)
}

/// Describes the prediction of the finite-size formula for this run; empty without a prediction.
fn against_the_proof(
    policy: &PolicySpec,
    arrivals: &Arrivals,
    switch: &Switch,
    outcome: &Outcome,
    until_last_round: bool,
) -> String {
    let Some(prediction) = arrivals.prediction() else {
        return String::new();
    };
    // The theorem holds for the default parameters of the policy.
    let of_theorem = prediction.policies.contains(&policy.to_string().as_str())
        && prediction.order.is_none_or(|order| order == switch.order);
    let expected = match policy {
        PolicySpec::ScriptedOptimum => prediction.optimum,
        _ if of_theorem => prediction.algorithm,
        _ => return String::new(),
    };
    if !until_last_round {
        return format!(
            "\nformula     {} counts to the end of the last round: --until-last-round",
            prediction.theorem
        );
    }
    format!(
        "\nformula     {}: value {expected}, optimum/policy {:.4}; the paper's ratio {:.4}\n\
         measured    value {}",
        prediction.theorem,
        prediction.ratio(),
        prediction.paper,
        outcome.transmitted_value
    )
}
