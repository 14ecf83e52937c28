//! Does an environment keep the contract of [`Env`]?
//!
//! Every rule is a function of its own, so that a failure says which rule is broken and how.
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
//! // Ids and settings are right, or the first line of the program would have said so.
//! make("bufgym/NDT-16x1G-v0", &options)?;
//! check_env(|| make("bufgym/NDT-16x1G-v0", &options).unwrap(), &CheckOptions::default())?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::fmt;

use super::{Env, EnvError, Info, ResetOptions, Space};
use bufgym_sim::rng::stream;

mod determinism;
mod order;

pub use determinism::{check_independence, check_seed, check_seed_matters, check_sequence};
pub use order::{check_end, check_invalid_actions, check_step_before_reset};

/// How thoroughly to check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckOptions {
    /// Seed of the episodes and of the random actions.
    pub seed: u64,
    /// Steps that the checks of single steps make, across the ends of episodes.
    pub steps: u64,
    /// Every episode has to end within so many steps.
    pub max_episode_steps: u64,
    /// Whether different seeds have to lead to different episodes.
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
    /// The function that found it.
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

/// What a check returns.
pub type CheckResult = Result<(), Violation>;

/// Runs every check on environments built by `make`, each on new ones.
///
/// # Errors
/// All rules that are broken. When the spaces themselves make no sense, only they are reported.
pub fn check_env<E: Env>(make: impl Fn() -> E, options: &CheckOptions) -> Result<(), Violations> {
    check_spaces(&make()).map_err(|violation| Violations(vec![violation]))?;
    let results = [
        check_reset(&mut make(), options),
        check_step(&mut make(), options),
        check_step_before_reset(&mut make()),
        check_end(&mut make(), options),
        check_invalid_actions(&mut make(), &mut make(), options),
        check_seed(&mut make(), &mut make(), options),
        check_sequence(&mut make(), &mut make(), options),
        check_seed_matters(&mut make(), options),
        check_independence(&mut make(), &mut make(), &mut make(), options),
    ];
    let broken: Vec<Violation> = results.into_iter().filter_map(Result::err).collect();
    if broken.is_empty() {
        Ok(())
    } else {
        Err(Violations(broken))
    }
}

/// Spaces have a shape that matches their bounds, sensible bounds, and a bounded set of actions.
///
/// # Errors
/// The first rule that is broken.
pub fn check_spaces<E: Env>(env: &E) -> CheckResult {
    let named = [
        ("observation space", Some(env.observation_space())),
        ("action space", Some(env.action_space())),
        ("privileged space", env.privileged_space()),
    ];
    for (name, space) in named
        .into_iter()
        .filter_map(|(name, space)| Some((name, space?)))
    {
        if let Some(why) = space_problem(space) {
            return fail("check_spaces", format!("the {name} {why}"));
        }
    }
    if !env.action_space().is_bounded() {
        return fail(
            "check_spaces",
            "the action space has an infinite bound: random actions would be arbitrary".to_owned(),
        );
    }
    Ok(())
}

fn space_problem(space: &Space) -> Option<String> {
    if space.is_empty() {
        return Some(format!("has no elements (shape {:?})", space.shape()));
    }
    let bounds = match space {
        Space::Box(space) => space.low.len().max(space.high.len()),
        Space::MultiDiscrete(space) => space.counts.len(),
    };
    if bounds != space.len() {
        return Some(format!("has {bounds} bounds for {} values", space.len()));
    }
    match space {
        Space::Box(space) => {
            if space.low.len() != space.high.len() {
                return Some("has not as many lower as upper bounds".to_owned());
            }
            let mut pairs = space.low.iter().zip(&space.high);
            let (low, high) =
                pairs.find(|(low, high)| low.partial_cmp(high).is_none_or(|o| o.is_gt()))?;
            Some(format!(
                "has the bounds [{low}, {high}], which contain nothing"
            ))
        }
        Space::MultiDiscrete(space) => {
            let position = space.counts.iter().position(|count| *count == 0)?;
            Some(format!("allows no value at {position}"))
        }
    }
}

/// A reset returns an observation of the space, and an info without anything of a step.
///
/// # Errors
/// The first rule that is broken.
pub fn check_reset<E: Env>(env: &mut E, options: &CheckOptions) -> CheckResult {
    const NAME: &str = "check_reset";
    for seed in [Some(options.seed), None] {
        let reset = ok(NAME, "reset", env.reset(seed, &ResetOptions::default()))?;
        let (observation, info) = (reset.observation.to_vec(), reset.info.clone());
        inside(
            NAME,
            "the observation of reset",
            env.observation_space(),
            &observation,
        )?;
        info_shapes(NAME, "the info of reset", env, &info)?;
        if info.port_rewards.iter().any(|reward| *reward != 0.0) {
            return fail(
                NAME,
                format!("port rewards after reset: {:?}", info.port_rewards),
            );
        }
        if info.discount != 1.0 {
            return fail(
                NAME,
                format!("the discount after reset is {}, not 1", info.discount),
            );
        }
        if info.episode.is_some() {
            return fail(NAME, "reset returned statistics of an episode".to_owned());
        }
        if info.no_decision != (info.skipped > 0) {
            return fail(
                NAME,
                "`no_decision` and `skipped` contradict each other".to_owned(),
            );
        }
    }
    Ok(())
}

/// Every step returns an observation of the space, a finite reward that is the sum of its
/// components, and a discount in (0, 1].
///
/// # Errors
/// The first rule that is broken.
pub fn check_step<E: Env>(env: &mut E, options: &CheckOptions) -> CheckResult {
    const NAME: &str = "check_step";
    let mut rng = stream(options.seed, "check actions", 0);
    ok(
        NAME,
        "reset",
        env.reset(Some(options.seed), &ResetOptions::default()),
    )?;
    for number in 1..=options.steps {
        let action = env.action_space().sample(&mut rng);
        let step = ok(NAME, "step", env.step(&action))?;
        let (observation, info) = (step.observation.to_vec(), step.info.clone());
        let (reward, done) = (step.reward, step.done());
        let place = format!("step {number}");
        inside(
            NAME,
            &format!("the observation of {place}"),
            env.observation_space(),
            &observation,
        )?;
        info_shapes(NAME, &format!("the info of {place}"), env, &info)?;
        if !reward.is_finite() {
            return fail(NAME, format!("{place}: the reward is {reward}"));
        }
        let sum: f64 = info.port_rewards.iter().map(|part| f64::from(*part)).sum();
        // Components are single precision.
        let tolerance = 1e-4 * (1.0 + reward.abs());
        if env.reward_components() > 0
            && (sum - reward)
                .abs()
                .partial_cmp(&tolerance)
                .is_none_or(|o| o.is_gt())
        {
            return fail(
                NAME,
                format!("{place}: port rewards add up to {sum}, reward {reward}"),
            );
        }
        if !(info.discount > 0.0 && info.discount <= 1.0) {
            return fail(
                NAME,
                format!("{place}: discount {} is not in (0, 1]", info.discount),
            );
        }
        if !(info.entropy_weight.is_finite() && info.entropy_weight >= 0.0) {
            return fail(
                NAME,
                format!("{place}: entropy weight {}", info.entropy_weight),
            );
        }
        if done {
            ok(NAME, "reset", env.reset(None, &ResetOptions::default()))?;
        }
    }
    Ok(())
}

fn info_shapes<E: Env>(check: &'static str, what: &str, env: &E, info: &Info) -> CheckResult {
    match env.privileged_space() {
        Some(space) => inside(
            check,
            &format!("`privileged` in {what}"),
            space,
            &info.privileged,
        )?,
        None if !info.privileged.is_empty() => {
            return fail(
                check,
                format!("{what} has `privileged` values, but there is no space"),
            );
        }
        None => {}
    }
    let (given, expected) = (info.port_rewards.len(), env.reward_components());
    if given != expected {
        return fail(
            check,
            format!("{what} has {given} port rewards, reward_components() is {expected}"),
        );
    }
    Ok(())
}

fn inside(check: &'static str, what: &str, space: &Space, value: &[f32]) -> CheckResult {
    match space.violation(value) {
        None => Ok(()),
        Some(why) => fail(check, format!("{what} is not in its space: {why}")),
    }
}

fn fail<T>(check: &'static str, message: String) -> Result<T, Violation> {
    Err(Violation { check, message })
}

fn ok<T>(check: &'static str, call: &str, result: Result<T, EnvError>) -> Result<T, Violation> {
    result.or_else(|error| fail(check, format!("{call} failed: {error}")))
}

#[cfg(test)]
mod tests;
