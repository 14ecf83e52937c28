//! Same seed, same bits.

use super::{CheckOptions, CheckResult, Violation, fail, ok};
use crate::gym::{Env, Reset, ResetOptions, Step};
use bufgym_sim::rng::stream;

/// Everything that one call returned, in a form in which not-a-number equals itself.
#[derive(PartialEq)]
pub(super) struct Record(String);

impl Record {
    pub(super) fn of_reset(reset: &Reset<'_>) -> Record {
        Record(format!("{reset:?}"))
    }

    pub(super) fn of_step(step: &Step<'_>) -> Record {
        Record(format!("{step:?}"))
    }
}

/// Records of `steps` steps of random actions from `seed` on, with a reset at every end.
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

/// The same seed and actions give the same bits: twice on one environment, in the middle of
/// whatever it was doing, and on another one.
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

/// Resets without a seed continue a sequence that the last seed determines, and that does not
/// depend on what was done in the episodes.
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

/// Different seeds lead to different episodes. Passes without a look when
/// [`CheckOptions::stochastic`] is off.
///
/// # Errors
/// When several seeds give the same.
pub fn check_seed_matters<E: Env>(env: &mut E, options: &CheckOptions) -> CheckResult {
    const NAME: &str = "check_seed_matters";
    if !options.stochastic {
        return Ok(());
    }
    let first = play(NAME, env, Some(options.seed), options)?;
    for offset in 1..4 {
        let other = play(NAME, env, Some(options.seed.wrapping_add(offset)), options)?;
        if first_difference(&first, &other).is_some() {
            return Ok(());
        }
    }
    fail(
        NAME,
        "four seeds give the same episodes; does reset use its seed?".to_owned(),
    )
}

/// Two environments used by turns give what each gives alone: there is no shared state.
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
