//! `bufgym credence`: the random forest of the policy Credence.

mod sweep;
mod train;

use bufgym::credence::{Data, Settings, TrainError, arrivals_memory, record, record_network};
use bufgym::sim::scenario::Scenario;
use clap::{Args, Subcommand};

use super::Common;
use super::error::{CliError, CliResult, ResultExt as _};
use super::scenario::{ScenarioArgs, check_memory};

pub(super) use sweep::write_sweep;

/// Train the random forest of the policy Credence, or see what its size and its errors change
#[derive(Args)]
#[command(after_help = "Examples:\n  \
    bufgym credence train --scenario ndt-16x1g --out forest\n  \
    bufgym sim --policy credence:oracle=forest,model=forest --scenario ndt-16x1g\n  \
    bufgym credence sweep --over trees --out figure")]
pub struct CredenceArgs {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    Train(train::ForestArgs),
    Sweep(sweep::SweepArgs),
}

/// Runs the command.
pub fn run(args: CredenceArgs, common: &Common) -> CliResult {
    match args.action {
        Action::Train(args) => train::run(&args, common),
        Action::Sweep(args) => sweep::run(&args, common),
    }
}

/// Training data and settings of a forest.
#[derive(Args)]
struct LearningArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Splits between root and leaf of a tree, 1 to 4
    #[arg(
        long,
        value_name = "N",
        default_value_t = 4,
        allow_negative_numbers = true
    )]
    depth: u16,
    /// Training traces; the first 60 % are learned from, the others are for the scores
    #[arg(long, value_name = "N", default_value_t = 20, allow_negative_numbers = true,
        value_parser = clap::value_parser!(u64).range(2..=10_000))]
    traces: u64,
    /// Share of lost arrivals from which a loss is predicted [default: the one with the best F1 on what
    /// is learned from]
    #[arg(long, value_name = "SHARE", allow_negative_numbers = true, value_parser = share)]
    threshold: Option<f32>,
}

fn share(text: &str) -> Result<f32, String> {
    match text.parse::<f32>() {
        Ok(value) if value > 0.0 && value <= 1.0 => Ok(value),
        _ => Err("a number above 0 and up to 1 is needed".to_owned()),
    }
}

impl LearningArgs {
    /// Returns the checked settings of a forest with this many trees.
    fn settings(&self, trees: u16, common: &Common) -> CliResult<Settings> {
        let settings = Settings {
            trees,
            depth: self.depth,
            seed: common.seed(),
        };
        settings.check().or_bad_input()?;
        Ok(settings)
    }

    /// Checks the memory for the arrivals, and says what is simulated.
    fn announce(&self, scenario: &Scenario, common: &Common) -> CliResult {
        check_memory(scenario, self.traces, arrivals_memory(scenario))?;
        common.note(format!(
            "simulating {} traces of {} under Longest Queue Drop",
            self.traces, scenario.name
        ));
        Ok(())
    }

    fn record(&self, scenario: &Scenario, common: &Common) -> CliResult<Data> {
        self.announce(scenario, common)?;
        let data = record(scenario, common.seed(), self.traces).or_bad_input()?;
        tell(&data, "", common);
        Ok(data)
    }

    /// Records the data of all leaves and of all spines.
    fn record_network(&self, scenario: &Scenario, common: &Common) -> CliResult<[Data; 2]> {
        self.announce(scenario, common)?;
        let data = record_network(scenario, common.seed(), self.traces).or_bad_input()?;
        for (data, kind) in data.iter().zip(["leaves: ", "spines: "]) {
            tell(data, kind, common);
        }
        Ok(data)
    }
}

fn tell(data: &Data, of: &str, common: &Common) {
    let (arrivals, lost) = counts(&data.train);
    common.note(format!(
        "{of}{arrivals} arrivals to learn from, {lost} of them lost"
    ));
}

/// Returns the number of arrivals, and of lost ones.
fn counts(traces: &[Vec<bufgym::credence::Arrival>]) -> (usize, usize) {
    let all = traces.iter().map(Vec::len).sum();
    let lost = traces.iter().flatten().filter(|arrival| arrival.lost);
    (all, lost.count())
}

fn classify(error: TrainError) -> CliError {
    match error {
        TrainError::Library(_) => CliError::failure(error),
        _ => CliError::input(error),
    }
}
