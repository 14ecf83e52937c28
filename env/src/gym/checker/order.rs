//! What may be called when.

use super::determinism::Record;
use super::{CheckOptions, CheckResult, fail, ok};
use crate::gym::{Env, EnvError, ResetOptions, Space};
use bufgym_sim::rng::stream;

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
        env,
        &action,
    )
}

fn refused<E: Env>(check: &'static str, call: &str, env: &mut E, action: &[f32]) -> CheckResult {
    match env.step(action) {
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
                        format!("step {steps} has statistics of an episode that goes on"),
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
                    refused(NAME, "step after the end of an episode", env, &action)?;
                    break;
                }
            }
        }
    }
    Ok(())
}

/// Actions outside the space are refused and leave no trace.
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
