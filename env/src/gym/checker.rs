//! Tests whether an environment keeps the contract of [`Env`], as Gymnasium's `check_env` does, or that of
//! [`MultiAgentEnv`](super::MultiAgentEnv) ([`check_multi_agent_env`]).
//!
//! Each rule has its own function, so a failure names the broken rule.
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

use super::{Env, EnvError, Info, Reset, ResetOptions, Space, Step};
use bufgym_sim::rng::stream;

pub mod multi_agent;

pub use multi_agent::check_multi_agent_env;

/// Options of the checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckOptions {
    /// Seed of the episodes and of the random actions.
    pub seed: u64,
    /// Steps of the checks that look at single steps. They continue after the end of an episode.
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

/// Result of a check.
pub type CheckResult = Result<(), Violation>;

/// Runs every check on environments built by `make`, each on new ones.
///
/// # Errors
/// All rules that are broken. When the spaces themselves make no sense, only they are reported.
pub fn check_env<E: Env>(make: impl Fn() -> E, options: &CheckOptions) -> Result<(), Violations> {
    check_spaces(&make()).map_err(|violation| Violations(vec![violation]))?;
    broken([
        check_reset(&mut make(), options),
        check_step(&mut make(), options),
        check_step_before_reset(&mut make()),
        check_end(&mut make(), options),
        check_invalid_actions(&mut make(), &mut make(), options),
        check_seed(&mut make(), &mut make(), options),
        check_sequence(&mut make(), &mut make(), options),
        check_seed_matters(&mut make(), options),
        check_independence(&mut make(), &mut make(), &mut make(), options),
    ])
}

/// Returns the rules that are broken.
fn broken<const N: usize>(results: [CheckResult; N]) -> Result<(), Violations> {
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

/// A reset returns an observation in its space, and an info without results of a step.
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

/// Every step returns an observation in its space, a finite reward that is the sum of its
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
        if env.reward_components() > 0 {
            reward_is_sum(NAME, &place, reward, &info)?;
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

fn reward_is_sum(check: &'static str, place: &str, reward: f64, info: &Info) -> CheckResult {
    let sum: f64 = info.port_rewards.iter().map(|part| f64::from(*part)).sum();
    // Components are single precision.
    let tolerance = 1e-4 * (1.0 + reward.abs());
    match (sum - reward).abs().partial_cmp(&tolerance) {
        Some(order) if order.is_le() => Ok(()),
        _ => fail(
            check,
            format!("{place}: port rewards add up to {sum}, reward {reward}"),
        ),
    }
}

/// A new environment refuses to step.
///
/// # Errors
/// When it does not.
pub fn check_step_before_reset<E: Env>(env: &mut E) -> CheckResult {
    let action = env
        .action_space()
        .sample(&mut stream(0, "check actions", 0));
    refused(
        "check_step_before_reset",
        "step before the first reset",
        env.step(&action),
    )
}

fn refused<T>(check: &'static str, call: &str, step: Result<T, EnvError>) -> CheckResult {
    match step {
        Err(EnvError::ResetNeeded(_)) => Ok(()),
        Err(error) => fail(
            check,
            format!("{call} is an error, but the wrong one: {error}"),
        ),
        Ok(_) => fail(
            check,
            format!("{call} was accepted; it has to be EnvError::ResetNeeded"),
        ),
    }
}

/// Episodes end, their statistics come with the last step and only there, and no step follows
/// without a reset.
///
/// # Errors
/// The first rule that is broken.
pub fn check_end<E: Env>(env: &mut E, options: &CheckOptions) -> CheckResult {
    const NAME: &str = "check_end";
    let mut rng = stream(options.seed, "check actions", 2);
    for seed in [Some(options.seed), None] {
        ok(NAME, "reset", env.reset(seed, &ResetOptions::default()))?;
        let mut steps = 0;
        loop {
            if steps == options.max_episode_steps {
                return fail(
                    NAME,
                    format!("the episode did not end within {steps} steps"),
                );
            }
            let action = env.action_space().sample(&mut rng);
            let step = ok(NAME, "step", env.step(&action))?;
            steps += 1;
            match (step.done(), &step.info.episode) {
                (false, None) => {}
                (false, Some(_)) => {
                    return fail(
                        NAME,
                        format!("step {steps} has statistics of an episode that continues"),
                    );
                }
                (true, None) => {
                    return fail(
                        NAME,
                        "the last step of an episode has no statistics of it".to_owned(),
                    );
                }
                (true, Some(stats)) if stats.decisions != steps => {
                    return fail(
                        NAME,
                        format!("{steps} steps, but {} in the statistics", stats.decisions),
                    );
                }
                (true, Some(_)) => {
                    refused(NAME, "step after the end of an episode", env.step(&action))?;
                    break;
                }
            }
        }
    }
    Ok(())
}

/// Actions outside the space are refused and change nothing.
///
/// # Errors
/// The first action that is accepted or changes what follows.
pub fn check_invalid_actions<E: Env>(
    env: &mut E,
    undisturbed: &mut E,
    options: &CheckOptions,
) -> CheckResult {
    const NAME: &str = "check_invalid_actions";
    let plain = ResetOptions::default();
    let good = env
        .action_space()
        .sample(&mut stream(options.seed, "check actions", 3));
    ok(NAME, "reset", undisturbed.reset(Some(options.seed), &plain))?;
    let expected = Record::of_step(&ok(NAME, "step", undisturbed.step(&good))?);
    for (what, bad) in bad_actions(env.action_space(), &good) {
        ok(NAME, "reset", env.reset(Some(options.seed), &plain))?;
        match env.step(&bad) {
            Err(EnvError::InvalidAction(_)) => {}
            Err(error) => {
                return fail(
                    NAME,
                    format!("{what} is an error, but the wrong one: {error}"),
                );
            }
            Ok(_) => return fail(NAME, format!("{what} was accepted")),
        }
        if Record::of_step(&ok(NAME, "step", env.step(&good))?) != expected {
            return fail(
                NAME,
                format!("{what} was refused, but changed what follows"),
            );
        }
    }
    Ok(())
}

fn bad_actions(space: &Space, good: &[f32]) -> [(&'static str, Vec<f32>); 4] {
    let beyond = match space {
        Space::Box(space) => space.high[0] + 1.0 + space.high[0].abs(),
        Space::MultiDiscrete(space) => space.counts[0] as f32,
    };
    let with_first = |value: f32| {
        let mut action = good.to_vec();
        action[0] = value;
        action
    };
    [
        ("an action with one value too few", good[1..].to_vec()),
        (
            "an action with one value too many",
            [good, &[good[0]]].concat(),
        ),
        ("an action that is not a number", with_first(f32::NAN)),
        ("an action beyond its bounds", with_first(beyond)),
    ]
}

/// Everything that one call returned, as text, because NaN equals NaN in text.
#[derive(PartialEq)]
struct Record(String);

impl Record {
    fn of_reset(reset: &Reset<'_>) -> Record {
        Record(format!("{reset:?}"))
    }

    fn of_step(step: &Step<'_>) -> Record {
        Record(format!("{step:?}"))
    }
}

/// Returns the records of `steps` steps of random actions from `seed` on, with a reset at every end.
fn play<E: Env>(
    check: &'static str,
    env: &mut E,
    seed: Option<u64>,
    options: &CheckOptions,
) -> Result<Vec<Record>, Violation> {
    let plain = ResetOptions::default();
    let mut rng = stream(options.seed, "check actions", 0);
    let mut records = vec![Record::of_reset(&ok(
        check,
        "reset",
        env.reset(seed, &plain),
    )?)];
    for _ in 0..options.steps {
        let action = env.action_space().sample(&mut rng);
        let step = ok(check, "step", env.step(&action))?;
        records.push(Record::of_step(&step));
        if step.done() {
            records.push(Record::of_reset(&ok(
                check,
                "reset",
                env.reset(None, &plain),
            )?));
        }
    }
    Ok(records)
}

fn first_difference(a: &[Record], b: &[Record]) -> Option<usize> {
    a.iter()
        .zip(b)
        .position(|(a, b)| a != b)
        .or((a.len() != b.len()).then_some(a.len().min(b.len())))
}

/// The same seed and actions give the same bits: twice on one environment, also in the middle of
/// an episode, and on a second environment.
///
/// # Errors
/// The first call whose result differs.
pub fn check_seed<E: Env>(env: &mut E, other: &mut E, options: &CheckOptions) -> CheckResult {
    const NAME: &str = "check_seed";
    let first = play(NAME, env, Some(options.seed), options)?;
    let again = play(NAME, env, Some(options.seed), options)?;
    if let Some(call) = first_difference(&first, &again) {
        return fail(
            NAME,
            format!("call {call} after the same seed gave another result"),
        );
    }
    let elsewhere = play(NAME, other, Some(options.seed), options)?;
    if let Some(call) = first_difference(&first, &elsewhere) {
        return fail(
            NAME,
            format!("call {call} after the same seed gave another result on a second environment"),
        );
    }
    Ok(())
}

/// Resets without a seed continue the sequence of the last seed, whatever the actions were.
///
/// # Errors
/// The first episode that differs.
pub fn check_sequence<E: Env>(env: &mut E, other: &mut E, options: &CheckOptions) -> CheckResult {
    const NAME: &str = "check_sequence";
    const EPISODES: usize = 4;
    let plain = ResetOptions::default();
    let mut rng = stream(options.seed, "check actions", 1);
    let mut records = Vec::with_capacity(EPISODES);
    for episode in 0..EPISODES {
        let seed = (episode == 0).then_some(options.seed);
        records.push(Record::of_reset(&ok(
            NAME,
            "reset",
            env.reset(seed, &plain),
        )?));
        let action = env.action_space().sample(&mut rng);
        ok(NAME, "step", env.step(&action))?;
    }
    for (episode, record) in records.iter().enumerate() {
        let seed = (episode == 0).then_some(options.seed);
        let reset = ok(NAME, "reset", other.reset(seed, &plain))?;
        if *record != Record::of_reset(&reset) {
            return fail(
                NAME,
                format!("episode {episode} after the same seed begins differently"),
            );
        }
    }
    if options.stochastic && records.iter().all(|record| *record == records[0]) {
        return fail(
            NAME,
            format!("{EPISODES} episodes in a row begin in the same state"),
        );
    }
    Ok(())
}

/// Different seeds lead to different episodes. Tests nothing when [`CheckOptions::stochastic`] is
/// off.
///
/// # Errors
/// When several seeds give the same.
pub fn check_seed_matters<E: Env>(env: &mut E, options: &CheckOptions) -> CheckResult {
    const NAME: &str = "check_seed_matters";
    if !options.stochastic {
        return Ok(());
    }
    seeds_matter(NAME, options, |seed| play(NAME, env, Some(seed), options))
}

/// Returns true if several seeds lead to different records.
fn seeds_matter(
    check: &'static str,
    options: &CheckOptions,
    mut play: impl FnMut(u64) -> Result<Vec<Record>, Violation>,
) -> CheckResult {
    let first = play(options.seed)?;
    for offset in 1..4 {
        let other = play(options.seed.wrapping_add(offset))?;
        if first_difference(&first, &other).is_some() {
            return Ok(());
        }
    }
    fail(
        check,
        "four seeds give the same episodes; does reset use its seed?".to_owned(),
    )
}

/// Two environments used in turns return what each returns alone: they share no state.
///
/// # Errors
/// The first call whose result differs.
pub fn check_independence<E: Env>(
    env: &mut E,
    beside: &mut E,
    alone: &mut E,
    options: &CheckOptions,
) -> CheckResult {
    const NAME: &str = "check_independence";
    let plain = ResetOptions::default();
    let expected = play(NAME, alone, Some(options.seed), options)?;
    let mut rng = stream(options.seed, "check actions", 0);
    let reset = ok(NAME, "reset", env.reset(Some(options.seed), &plain))?;
    let mut records = vec![Record::of_reset(&reset)];
    ok(
        NAME,
        "reset",
        beside.reset(Some(options.seed.wrapping_add(1)), &plain),
    )?;
    for _ in 0..options.steps {
        let action = env.action_space().sample(&mut rng);
        let done = {
            let step = ok(NAME, "step", env.step(&action))?;
            records.push(Record::of_step(&step));
            step.done()
        };
        if done {
            records.push(Record::of_reset(&ok(
                NAME,
                "reset",
                env.reset(None, &plain),
            )?));
        }
        if ok(NAME, "step", beside.step(&action))?.done() {
            ok(NAME, "reset", beside.reset(None, &plain))?;
        }
    }
    match first_difference(&expected, &records) {
        None => Ok(()),
        Some(call) => fail(
            NAME,
            format!("call {call} gave another result while a second environment was in use"),
        ),
    }
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
