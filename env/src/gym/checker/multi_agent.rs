//! Tests whether an environment keeps the contract of [`MultiAgentEnv`].
//!
//! The rules that it shares with [`Env`](crate::gym::Env) are checked in the same way; the others are about turns and
//! intervals.

use super::{CheckOptions, CheckResult, Record, Violation, Violations};
use super::{
    bad_actions, broken, fail, first_difference, inside, ok, refused, reward_is_sum, seeds_matter,
    space_problem,
};
use crate::gym::multi_agent::named_spaces;
use crate::gym::{EnvError, Info, MultiAgentEnv, ResetOptions, Turn};
use bufgym_sim::rng::stream;
use bufgym_sim::units::Time;
use rand_xoshiro::Xoshiro256PlusPlus;

const PLAIN: ResetOptions = ResetOptions { trace: None };

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
    check_spaces(&make()).map_err(|violation| Violations(vec![violation]))?;
    broken([
        check_reset(&mut make(), options),
        check_turns(&mut make(), options),
        check_intervals(&mut make(), options),
        check_step_before_reset(&mut make()),
        check_end(&mut make(), options),
        check_invalid_actions(&mut make(), &mut make(), options),
        check_seed(&mut make(), &mut make(), options),
        check_sequence(&mut make(), &mut make(), options),
        check_seed_matters(&mut make(), options),
        check_independence(&mut make(), &mut make(), &mut make(), options),
        check_snapshots(&mut make(), &mut make(), options),
    ])
}

/// There are agents, and the spaces of each have a shape that matches their bounds, sensible bounds, and a
/// bounded set of actions.
///
/// # Errors
/// The first rule that is broken.
pub fn check_spaces<E: MultiAgentEnv>(env: &E) -> CheckResult {
    const NAME: &str = "check_spaces";
    if env.agents() == 0 {
        return fail(NAME, "there are no agents".to_owned());
    }
    for agent in 0..env.agents() {
        for (name, space) in named_spaces(env, agent) {
            if let Some(why) = space_problem(space) {
                return fail(NAME, format!("agent {agent}: the {name} {why}"));
            }
        }
        let ports = named_spaces(env, agent).map(|(_, space)| space.shape()[0]);
        if ports.iter().any(|number| *number != ports[0]) {
            return fail(
                NAME,
                format!("agent {agent}: its spaces begin with {ports:?}, not all with its ports"),
            );
        }
        if !env.action_space(agent).is_bounded() {
            return fail(
                NAME,
                format!(
                    "agent {agent}: the action space has an infinite bound: random actions would be \
                     arbitrary"
                ),
            );
        }
    }
    Ok(())
}

/// A reset leads to the turn of an agent. That agent has an observation in its space, the others have none yet, and no
/// agent has results of a step.
///
/// # Errors
/// The first rule that is broken.
pub fn check_reset<E: MultiAgentEnv>(env: &mut E, options: &CheckOptions) -> CheckResult {
    const NAME: &str = "check_reset";
    let mut rng = stream(options.seed, "check actions", 4);
    // The second reset abandons an episode, and nothing of that episode must remain.
    for seed in [Some(options.seed), None] {
        let mut turn = reset(NAME, env, seed)?;
        begun(NAME, env, turn)?;
        for _ in 0..options.steps {
            if !matches!(turn, Turn::Agent(_)) {
                break;
            }
            turn = go_on(NAME, env, turn, &mut rng)?;
        }
    }
    Ok(())
}

/// Checks the data of all agents at the beginning of an episode.
fn begun<E: MultiAgentEnv>(check: &'static str, env: &E, turn: Turn) -> CheckResult {
    let Turn::Agent(first) = turn else {
        return fail(check, format!("reset led to {turn:?}, not to a turn"));
    };
    told(check, "after reset", env, first)?;
    for agent in 0..env.agents() {
        no_interval(check, "after reset", env, agent)?;
        let observed = env.observation(agent).iter();
        let known = observed.chain(&env.info(agent).privileged);
        if agent != first && known.into_iter().any(|value| *value != 0.0) {
            return fail(
                check,
                format!("after reset: agent {agent} has an observation before its first turn"),
            );
        }
    }
    if env.episode().is_some() {
        return fail(check, "after reset: statistics of an episode".to_owned());
    }
    let info = env.info(first);
    if info.no_decision != (info.skipped > 0) {
        return fail(
            check,
            "after reset: `no_decision` and `skipped` contradict each other".to_owned(),
        );
    }
    Ok(())
}

/// A turn updates the data of its agent, and of no other: an observation in its space, a finite reward that is the sum
/// of its ports' rewards, and a discount in (0, 1]. At an agent's first turn of an episode no interval has ended, and
/// agents without a turn have no reward at the end either.
///
/// # Errors
/// The first rule that is broken.
pub fn check_turns<E: MultiAgentEnv>(env: &mut E, options: &CheckOptions) -> CheckResult {
    const NAME: &str = "check_turns";
    let mut rng = stream(options.seed, "check actions", 0);
    let mut turn = reset(NAME, env, Some(options.seed))?;
    let mut decided = vec![false; env.agents()];
    for number in 1..=options.steps {
        let Turn::Agent(agent) = turn else {
            turn = reset(NAME, env, None)?;
            begun(NAME, env, turn)?;
            decided.fill(false);
            continue;
        };
        let before: Vec<Record> = (0..env.agents()).map(|agent| view(env, agent)).collect();
        turn = go_on(NAME, env, turn, &mut rng)?;
        decided[agent] = true;
        let place = format!("after step {number}");
        for (agent, before) in before.iter().enumerate() {
            match turn {
                Turn::Agent(next) if next != agent => {
                    if view(env, agent) != *before {
                        let what = format!("changed at the turn of agent {next}");
                        return fail(NAME, format!("{place}: what agent {agent} knows {what}"));
                    }
                }
                _ if decided[agent] => told(NAME, &place, env, agent)?,
                Turn::Agent(_) => {
                    told(NAME, &place, env, agent)?;
                    no_interval(NAME, &place, env, agent)?;
                }
                Turn::Terminated | Turn::Truncated => no_interval(NAME, &place, env, agent)?,
            }
        }
    }
    Ok(())
}

/// The intervals of all agents lie on one clock: counted back from the end of an episode, where all of
/// them end, turns come in the order in which they came. The rewards of all intervals add up to the
/// episode's return.
///
/// # Errors
/// The first rule that is broken.
pub fn check_intervals<E: MultiAgentEnv>(env: &mut E, options: &CheckOptions) -> CheckResult {
    const NAME: &str = "check_intervals";
    let mut rng = stream(options.seed, "check actions", 5);
    let mut turn = reset(NAME, env, Some(options.seed))?;
    let (mut turns, mut sum) = (Vec::new(), 0.0);
    while let Turn::Agent(agent) = turn {
        if turns.len() as u64 == options.max_episode_steps {
            return Ok(()); // check_end reports it
        }
        turns.push((agent, env.info(agent).elapsed));
        sum += env.reward(agent);
        turn = go_on(NAME, env, turn, &mut rng)?;
    }
    let last = |agent| env.info(agent).elapsed;
    let mut before_end: Vec<Time> = (0..env.agents()).map(last).collect();
    let mut later = Time::ZERO;
    for (number, (agent, elapsed)) in turns.into_iter().enumerate().rev() {
        let at = before_end[agent];
        if at < later {
            return fail(
                NAME,
                format!(
                    "turn {number} is {} ps before the end by the intervals of agent {agent}, the turn \
                     after it {} ps by those of its own agent",
                    at.as_ps(),
                    later.as_ps()
                ),
            );
        }
        later = at;
        before_end[agent] = at + elapsed;
    }
    sum += (0..env.agents())
        .map(|agent| env.reward(agent))
        .sum::<f64>();
    let return_ = env.episode().map_or(sum, |stats| stats.return_);
    // Sums of the same numbers in another order.
    if (return_ - sum).abs() > 1e-9 * (1.0 + sum.abs()) {
        return fail(
            NAME,
            format!("the rewards of all intervals add up to {sum}, the return is {return_}"),
        );
    }
    Ok(())
}

/// A new environment refuses to step.
///
/// # Errors
/// When it does not.
pub fn check_step_before_reset<E: MultiAgentEnv>(env: &mut E) -> CheckResult {
    let action = env
        .action_space(0)
        .sample(&mut stream(0, "check actions", 0));
    refused(
        "check_step_before_reset",
        "step before the first reset",
        env.step(&action),
    )
}

/// Episodes end, their statistics are there then and only then, and no step follows without a reset.
///
/// # Errors
/// The first rule that is broken.
pub fn check_end<E: MultiAgentEnv>(env: &mut E, options: &CheckOptions) -> CheckResult {
    const NAME: &str = "check_end";
    let mut rng = stream(options.seed, "check actions", 2);
    for seed in [Some(options.seed), None] {
        let mut turn = reset(NAME, env, seed)?;
        let (mut steps, mut last) = (0, 0);
        while let Turn::Agent(agent) = turn {
            if env.episode().is_some() {
                return fail(
                    NAME,
                    format!("statistics of an episode that continues after {steps} steps"),
                );
            }
            if steps == options.max_episode_steps {
                return fail(
                    NAME,
                    format!("the episode did not end within {steps} steps"),
                );
            }
            turn = go_on(NAME, env, turn, &mut rng)?;
            (steps, last) = (steps + 1, agent);
        }
        match env.episode() {
            None => return fail(NAME, "no statistics of an episode that ended".to_owned()),
            Some(stats) if stats.decisions != steps => {
                return fail(
                    NAME,
                    format!("{steps} steps, but {} in the statistics", stats.decisions),
                );
            }
            Some(_) => {}
        }
        let action = env.action_space(last).sample(&mut rng);
        refused(NAME, "step after the end of an episode", env.step(&action))?;
    }
    Ok(())
}

/// Actions outside the space of the agent whose turn it is are refused and change nothing.
///
/// # Errors
/// The first action that is accepted or changes what follows.
pub fn check_invalid_actions<E: MultiAgentEnv>(
    env: &mut E,
    undisturbed: &mut E,
    options: &CheckOptions,
) -> CheckResult {
    const NAME: &str = "check_invalid_actions";
    let seed = Some(options.seed);
    let Turn::Agent(agent) = reset(NAME, undisturbed, seed)? else {
        return Ok(()); // check_reset reports it
    };
    let space = undisturbed.action_space(agent).clone();
    let good = space.sample(&mut stream(options.seed, "check actions", 3));
    let turn = ok(NAME, "step", undisturbed.step(&good))?;
    let expected = record(undisturbed, turn);
    for (what, bad) in bad_actions(&space, &good) {
        reset(NAME, env, seed)?;
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
        let turn = ok(NAME, "step", env.step(&good))?;
        if record(env, turn) != expected {
            return fail(
                NAME,
                format!("{what} was refused, but changed what follows"),
            );
        }
    }
    Ok(())
}

/// The same seed and actions give the same bits: twice on one environment, also in the middle of an
/// episode, and on a second environment.
///
/// # Errors
/// The first call whose result differs.
pub fn check_seed<E: MultiAgentEnv>(
    env: &mut E,
    other: &mut E,
    options: &CheckOptions,
) -> CheckResult {
    const NAME: &str = "check_seed";
    let first = play(NAME, env, options.seed, options)?;
    let again = play(NAME, env, options.seed, options)?;
    same(NAME, &first, &again, "after the same seed")?;
    let elsewhere = play(NAME, other, options.seed, options)?;
    let place = "after the same seed on a second environment";
    same(NAME, &first, &elsewhere, place)
}

/// Resets without a seed continue the sequence of the last seed, whatever the actions were.
///
/// # Errors
/// The first episode that differs.
pub fn check_sequence<E: MultiAgentEnv>(
    env: &mut E,
    other: &mut E,
    options: &CheckOptions,
) -> CheckResult {
    const NAME: &str = "check_sequence";
    let mut rng = stream(options.seed, "check actions", 1);
    let mut records = Vec::new();
    for episode in 0..4 {
        let seed = (episode == 0).then_some(options.seed);
        let turn = reset(NAME, env, seed)?;
        records.push(record(env, turn));
        go_on(NAME, env, turn, &mut rng)?;
    }
    for (episode, expected) in records.iter().enumerate() {
        let turn = reset(NAME, other, (episode == 0).then_some(options.seed))?;
        if record(other, turn) != *expected {
            return fail(
                NAME,
                format!("episode {episode} after the same seed begins differently"),
            );
        }
    }
    if options.stochastic && records.iter().all(|record| *record == records[0]) {
        return fail(
            NAME,
            "four episodes in a row begin in the same state".to_owned(),
        );
    }
    Ok(())
}

/// Different seeds lead to different episodes. Tests nothing when [`CheckOptions::stochastic`] is off.
///
/// # Errors
/// When several seeds give the same.
pub fn check_seed_matters<E: MultiAgentEnv>(env: &mut E, options: &CheckOptions) -> CheckResult {
    const NAME: &str = "check_seed_matters";
    if !options.stochastic {
        return Ok(());
    }
    seeds_matter(NAME, options, |seed| play(NAME, env, seed, options))
}

/// Two environments used in turns return what each returns alone: they share no state.
///
/// # Errors
/// The first call whose result differs.
pub fn check_independence<E: MultiAgentEnv>(
    env: &mut E,
    beside: &mut E,
    alone: &mut E,
    options: &CheckOptions,
) -> CheckResult {
    const NAME: &str = "check_independence";
    let expected = play(NAME, alone, options.seed, options)?;
    let mut rng = stream(options.seed, "check actions", 0);
    let mut others = stream(options.seed, "check actions", 6);
    let mut turn = reset(NAME, env, Some(options.seed))?;
    let mut records = vec![record(env, turn)];
    let mut turn_beside = reset(NAME, beside, Some(options.seed.wrapping_add(1)))?;
    for _ in 0..options.steps {
        turn = go_on(NAME, env, turn, &mut rng)?;
        records.push(record(env, turn));
        turn_beside = go_on(NAME, beside, turn_beside, &mut others)?;
    }
    let place = "while a second environment was in use";
    same(NAME, &expected, &records, place)
}

/// An environment that is restored from a snapshot is in the state of the snapshot, and continues bit for bit as the
/// first one. This holds before the first reset, and at the beginning, in the middle and at the end of an episode.
///
/// # Errors
/// The first call whose result differs.
pub fn check_snapshots<E: MultiAgentEnv>(
    env: &mut E,
    other: &mut E,
    options: &CheckOptions,
) -> CheckResult {
    const NAME: &str = "check_snapshots";
    if ok(NAME, "restore", other.restore(&env.snapshot()))?.is_some() {
        let what = "a snapshot before the first reset was restored to a running episode";
        return fail(NAME, what.to_owned());
    }
    let mut rng = stream(options.seed, "check actions", 7);
    for steps in [0, 1, options.steps / 2, options.max_episode_steps] {
        let mut turn = reset(NAME, env, None)?;
        let mut made = 0;
        while made < steps && matches!(turn, Turn::Agent(_)) {
            turn = go_on(NAME, env, turn, &mut rng)?;
            made += 1;
        }
        let restored = ok(NAME, "restore", other.restore(&env.snapshot()))?;
        if restored != Some(turn) || record(other, turn) != record(env, turn) {
            return fail(
                NAME,
                format!("restored after {made} steps it is in another state"),
            );
        }
        let mut rngs = [rng.clone(), rng.clone()];
        let mut turns = [turn; 2];
        for call in 0..options.steps {
            turns = [
                go_on(NAME, env, turns[0], &mut rngs[0])?,
                go_on(NAME, other, turns[1], &mut rngs[1])?,
            ];
            if turns[0] != turns[1] || record(env, turns[0]) != record(other, turns[1]) {
                return fail(
                    NAME,
                    format!("restored after {made} steps it differs at call {call} behind them"),
                );
            }
        }
    }
    Ok(())
}

/// Returns the record of all data of an agent.
fn view<E: MultiAgentEnv>(env: &E, agent: usize) -> Record {
    let (observation, reward, info) = (env.observation(agent), env.reward(agent), env.info(agent));
    Record(format!("{observation:?} {reward:?} {info:?}"))
}

/// Returns the record of a call: the turn, the data of the agents whose data is new, and the episode's statistics.
fn record<E: MultiAgentEnv>(env: &E, turn: Turn) -> Record {
    let views: Vec<String> = match turn {
        Turn::Agent(agent) => vec![view(env, agent).0],
        _ => (0..env.agents()).map(|agent| view(env, agent).0).collect(),
    };
    Record(format!("{turn:?} {views:?} {:?}", env.episode()))
}

fn reset<E: MultiAgentEnv>(
    check: &'static str,
    env: &mut E,
    seed: Option<u64>,
) -> Result<Turn, Violation> {
    let turn = ok(check, "reset", env.reset(seed, &PLAIN))?;
    known(check, "reset", env, turn)
}

/// Makes a random action, or begins the next episode where there is no turn.
fn go_on<E: MultiAgentEnv>(
    check: &'static str,
    env: &mut E,
    turn: Turn,
    rng: &mut Xoshiro256PlusPlus,
) -> Result<Turn, Violation> {
    let Turn::Agent(agent) = turn else {
        return reset(check, env, None);
    };
    let action = env.action_space(agent).sample(rng);
    let turn = ok(check, "step", env.step(&action))?;
    known(check, "step", env, turn)
}

/// Refuses turns of agents that do not exist.
fn known<E: MultiAgentEnv>(
    check: &'static str,
    call: &str,
    env: &E,
    turn: Turn,
) -> Result<Turn, Violation> {
    match turn {
        Turn::Agent(agent) if agent >= env.agents() => {
            let agents = env.agents();
            fail(
                check,
                format!("{call} led to the turn of agent {agent} of {agents}"),
            )
        }
        turn => Ok(turn),
    }
}

/// Returns the records of `steps` calls with random actions from `seed` on.
fn play<E: MultiAgentEnv>(
    check: &'static str,
    env: &mut E,
    seed: u64,
    options: &CheckOptions,
) -> Result<Vec<Record>, Violation> {
    let mut rng = stream(options.seed, "check actions", 0);
    let mut turn = reset(check, env, Some(seed))?;
    let mut records = vec![record(env, turn)];
    for _ in 0..options.steps {
        turn = go_on(check, env, turn, &mut rng)?;
        records.push(record(env, turn));
    }
    Ok(records)
}

fn same(check: &'static str, a: &[Record], b: &[Record], place: &str) -> CheckResult {
    match first_difference(a, b) {
        None => Ok(()),
        Some(call) => fail(check, format!("call {call} gave another result {place}")),
    }
}

/// Checks that the data of an agent has the right shapes and makes sense.
fn told<E: MultiAgentEnv>(check: &'static str, place: &str, env: &E, agent: usize) -> CheckResult {
    let whose = |what: &str| format!("{place}: the {what} of agent {agent}");
    let (reward, info) = (env.reward(agent), env.info(agent));
    let (observation, privileged) = (env.observation_space(agent), env.privileged_space(agent));
    inside(
        check,
        &whose("observation"),
        observation,
        env.observation(agent),
    )?;
    inside(
        check,
        &whose("privileged observation"),
        privileged,
        &info.privileged,
    )?;
    let ports = observation.shape()[0];
    if info.port_rewards.len() != ports {
        let (what, given) = (whose("info"), info.port_rewards.len());
        return fail(
            check,
            format!("{what} has {given} rewards of {ports} ports"),
        );
    }
    if !reward.is_finite() {
        return fail(check, format!("{} is {reward}", whose("reward")));
    }
    reward_is_sum(check, &whose("info"), reward, info)?;
    let Info {
        discount,
        entropy_weight,
        ..
    } = info;
    if !(*discount > 0.0 && *discount <= 1.0) {
        return fail(
            check,
            format!("{} {discount} is not in (0, 1]", whose("discount")),
        );
    }
    if !(entropy_weight.is_finite() && *entropy_weight >= 0.0) {
        return fail(
            check,
            format!("{} is {entropy_weight}", whose("entropy weight")),
        );
    }
    match info.episode {
        None => Ok(()),
        Some(_) => fail(
            check,
            format!("{} has statistics of the episode", whose("info")),
        ),
    }
}

/// Checks that no interval of the agent has ended in this episode.
fn no_interval<E: MultiAgentEnv>(
    check: &'static str,
    place: &str,
    env: &E,
    agent: usize,
) -> CheckResult {
    let (reward, info) = (env.reward(agent), env.info(agent));
    let parts = &info.port_rewards;
    let told = if reward != 0.0 {
        format!("the reward {reward}")
    } else if parts.iter().any(|part| *part != 0.0) {
        format!("the port rewards {parts:?}")
    } else if info.discount != 1.0 {
        format!("the discount {}, not 1,", info.discount)
    } else if info.elapsed != Time::ZERO {
        format!("a duration of {} ps", info.elapsed.as_ps())
    } else {
        return Ok(());
    };
    fail(
        check,
        format!("{place}: agent {agent} has {told} without an interval"),
    )
}

#[cfg(test)]
mod tests;
