//! Tests whether an environment keeps the contract of [`Env`], as Gymnasium's `check_env` does, or that of
//! [`MultiAgentEnv`] ([`check_multi_agent_env`]).
//!
//! Each rule has its own check, so a failure names the broken rule. Both contracts are checked by the same code: an
//! [`Env`] has one agent, whose turn it always is.
//!
//! ```
//! use bufgym_env::gym::checker::{CheckOptions, check_env};
//! use bufgym_env::gym::{MakeOptions, make};
//!
//! let settings = ["flows=20..30", "arrivals=synchronised", "max_decisions=40"];
//! let options = MakeOptions {
//!     settings: settings.map(str::to_owned).to_vec(),
//!     ..MakeOptions::default()
//! };
//! // A wrong name or setting fails here, not inside the checker.
//! make("bufgym/NDT-16x1G-v0", &options)?;
//! check_env(|| make("bufgym/NDT-16x1G-v0", &options).unwrap(), &CheckOptions::default())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;

use super::{Env, MultiAgentEnv};

mod rules;
mod subject;

use subject::{Several, Single, Subject};

/// Options of the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckOptions {
    /// Seed of the episodes and of the random actions.
    pub seed: u64,
    /// Steps of the checks that look at single steps. They continue after the end of an episode, and a reset there
    /// counts as a step.
    pub steps: u64,
    /// Every episode has to end within this number of steps.
    pub max_episode_steps: u64,
    /// True if different seeds have to lead to different episodes.
    pub stochastic: bool,
}

impl Default for CheckOptions {
    fn default() -> CheckOptions {
        CheckOptions {
            seed: 1,
            steps: 100,
            max_episode_steps: 100_000,
            stochastic: true,
        }
    }
}

/// A broken rule.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{check}: {message}")]
pub struct Violation {
    /// The check that found it.
    pub check: &'static str,
    /// What was expected and what happened.
    pub message: String,
}

/// All rules that an environment breaks, one line each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violations(pub Vec<Violation>);

impl fmt::Display for Violations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines: Vec<String> = self.0.iter().map(Violation::to_string).collect();
        f.write_str(&lines.join("\n"))
    }
}

impl std::error::Error for Violations {}

/// Runs every check on environments built by `make`, each on new ones.
///
/// # Errors
/// All rules that are broken. When the spaces themselves make no sense, only they are reported.
pub fn check_env<E: Env>(make: impl Fn() -> E, options: &CheckOptions) -> Result<(), Violations> {
    run(&|| Single::new(make()), options, &shared())
}

/// Runs every check on environments built by `make`, each on new ones.
///
/// # Errors
/// All rules that are broken. When the agents or their spaces make no sense, only they are reported.
///
/// ```
/// use bufgym_env::gym::checker::{CheckOptions, check_multi_agent_env};
/// use bufgym_env::gym::{MakeOptions, make_network};
///
/// let settings = ["warmup_ms=0", "measure_ms=1", "load=0.1", "query_rate=1500", "max_decisions=4"];
/// let options = MakeOptions {
///     settings: settings.map(str::to_owned).to_vec(),
///     ..MakeOptions::default()
/// };
/// let id = "bufgym/LeafSpine-4x4-v0";
/// make_network(id, &options)?;
/// let check = CheckOptions { steps: 6, ..CheckOptions::default() };
/// check_multi_agent_env(|| make_network(id, &options).unwrap(), &check)?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn check_multi_agent_env<E: MultiAgentEnv>(
    make: impl Fn() -> E,
    options: &CheckOptions,
) -> Result<(), Violations> {
    let mut checks = shared().to_vec();
    checks.push(("check_intervals", rules::check_intervals));
    checks.push(("check_snapshots", rules::check_snapshots));
    run(&|| Several(make()), options, &checks)
}

/// A check builds its own environments and returns what is wrong with them.
type Check<E> = fn(&dyn Fn() -> E, &CheckOptions) -> Result<(), String>;

/// Returns the checks of both contracts, but for that of spaces.
fn shared<E: Subject>() -> [(&'static str, Check<E>); 9] {
    [
        ("check_reset", rules::check_reset),
        ("check_step", rules::check_step),
        ("check_step_before_reset", rules::check_step_before_reset),
        ("check_end", rules::check_end),
        ("check_invalid_actions", rules::check_invalid_actions),
        ("check_seed", rules::check_seed),
        ("check_sequence", rules::check_sequence),
        ("check_seed_matters", rules::check_seed_matters),
        ("check_independence", rules::check_independence),
    ]
}

/// Returns the rules that are broken. Without sensible spaces, the other checks mean nothing.
fn run<E: Subject>(
    make: &dyn Fn() -> E,
    options: &CheckOptions,
    checks: &[(&'static str, Check<E>)],
) -> Result<(), Violations> {
    let violation = |check, message| Violation { check, message };
    let spaces = rules::check_spaces(&make());
    spaces.map_err(|message| Violations(vec![violation("check_spaces", message)]))?;
    let mut broken = Vec::new();
    for (name, check) in checks {
        if let Err(message) = check(make, options) {
            broken.push(violation(name, message));
        }
    }
    match broken.is_empty() {
        true => Ok(()),
        false => Err(Violations(broken)),
    }
}

#[cfg(test)]
mod tests;
