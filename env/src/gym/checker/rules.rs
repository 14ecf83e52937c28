//! The rules of both contracts, for any number of agents.

use rand_xoshiro::Xoshiro256PlusPlus;

use super::CheckOptions;
use super::subject::{Several, Subject};
use crate::gym::{EnvError, MultiAgentEnv, Space, Turn};
use bufgym_sim::units::Duration;
use bufgym_util::rng::stream;

/// Result of a check: what is wrong.
type Outcome = Result<(), String>;

/// Builds new environments.
type Make<'a, E> = &'a dyn Fn() -> E;

/// An environment that is played with random actions. At the end of an episode the next step is a reset.
struct Player<E> {
    env: E,
    turn: Turn,
    rng: Xoshiro256PlusPlus,
}

impl<E: Subject> Player<E> {
    /// `number` distinguishes the random actions of players with the same seed.
    fn new(env: E, options: &CheckOptions, number: u64) -> Player<E> {
        Player {
            env,
            turn: Turn::Terminated,
            rng: stream(options.seed, "check actions", number),
        }
    }

    fn reset(&mut self, seed: Option<u64>) -> Outcome {
        let turn = self.env.reset(seed);
        self.settle("reset", turn)
    }

    /// Draws an action of an agent.
    fn action(&mut self, agent: usize) -> Vec<f32> {
        self.env.spaces(agent).1.sample(&mut self.rng)
    }

    fn step(&mut self) -> Outcome {
        match self.turn {
            Turn::Agent(agent) => {
                let action = self.action(agent);
                self.act(&action)
            }
            Turn::Terminated | Turn::Truncated => self.reset(None),
        }
    }

    fn act(&mut self, action: &[f32]) -> Outcome {
        let turn = self.env.step(action);
        self.settle("step", turn)
    }

    fn settle(&mut self, call: &str, turn: Result<Turn, EnvError>) -> Outcome {
        let agents = self.env.agents();
        self.turn = turn.map_err(|error| format!("{call} failed: {error}"))?;
        match self.turn {
            Turn::Agent(agent) if agent >= agents => Err(format!(
                "{call} led to the turn of agent {agent} of {agents}"
            )),
            _ => Ok(()),
        }
    }

    /// Returns true while an episode is running.
    fn running(&self) -> bool {
        matches!(self.turn, Turn::Agent(_))
    }

    /// Returns the data of an agent as text, because NaN equals NaN in text.
    fn view(&self, agent: usize) -> String {
        let env = &self.env;
        let (observation, reward) = (env.observation(agent), env.reward(agent));
        format!("{observation:?} {reward:?} {:?}", env.info(agent))
    }

    /// Returns what the last call led to: the turn, the data of the agents whose data is new, and the episode's
    /// statistics.
    fn record(&self) -> String {
        let views: Vec<String> = match self.turn {
            Turn::Agent(agent) => vec![self.view(agent)],
            _ => (0..self.env.agents())
                .map(|agent| self.view(agent))
                .collect(),
        };
        format!("{:?} {views:?} {:?}", self.turn, self.env.episode())
    }

    /// Returns the records of a reset and the steps after it, whose actions are always the same.
    fn play(&mut self, seed: u64, options: &CheckOptions) -> Result<Vec<String>, String> {
        self.rng = stream(options.seed, "check actions", 0);
        self.reset(Some(seed))?;
        let mut records = vec![self.record()];
        for _ in 0..options.steps {
            self.step()?;
            records.push(self.record());
        }
        Ok(records)
    }
}

/// There are agents, and the spaces of each have a shape that matches their bounds, sensible bounds, and a
/// bounded set of actions. Where there are several agents, each space begins with the agent's ports.
pub fn check_spaces<E: Subject>(env: &E) -> Outcome {
    if env.agents() == 0 {
        return Err("there are no agents".to_owned());
    }
    for agent in 0..env.agents() {
        let whose = match E::SEVERAL {
            true => format!("agent {agent}: "),
            false => String::new(),
        };
        let (observed, actions, privileged) = env.spaces(agent);
        let named = [
            ("observation space", Some(observed)),
            ("action space", Some(actions)),
            ("privileged space", privileged),
        ];
        let spaces = named
            .iter()
            .filter_map(|(name, space)| Some((name, (*space)?)));
        for (name, space) in spaces.clone() {
            if let Some(why) = space_problem(space) {
                return Err(format!("{whose}the {name} {why}"));
            }
        }
        let ports: Vec<usize> = spaces
            .filter_map(|(_, space)| space.shape().first().copied())
            .collect();
        if E::SEVERAL && ports != [env.components(agent); 3] {
            return Err(format!(
                "{whose}its spaces begin with {ports:?}, not all with its ports"
            ));
        }
        if !actions.is_bounded() {
            return Err(format!(
                "{whose}the action space has an infinite bound: random actions would be arbitrary"
            ));
        }
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

/// A reset leads to the turn of an agent. That agent has an observation in its space, the others have none yet, and no
/// agent has results of a step.
pub fn check_reset<E: Subject>(make: Make<E>, options: &CheckOptions) -> Outcome {
    let mut player = Player::new(make(), options, 4);
    // The second reset abandons an episode, and nothing of that episode must remain.
    for seed in [Some(options.seed), None] {
        player.reset(seed)?;
        begun(&player)?;
        for _ in 0..options.steps {
            if player.running() {
                player.step()?;
            }
        }
    }
    Ok(())
}

/// Checks the data of all agents at the beginning of an episode.
fn begun<E: Subject>(player: &Player<E>) -> Outcome {
    let (env, turn) = (&player.env, player.turn);
    let Turn::Agent(first) = turn else {
        return Err(format!("reset led to {turn:?}, not to a turn"));
    };
    told(env, first, "after reset")?;
    for agent in 0..env.agents() {
        no_interval(env, agent, "after reset")?;
        let observed = env.observation(agent).iter();
        let known = observed.chain(&env.info(agent).privileged);
        if agent != first && known.into_iter().any(|value| *value != 0.0) {
            return Err(format!(
                "after reset: agent {agent} has an observation before its first turn"
            ));
        }
    }
    if env.episode().is_some() {
        return Err("after reset: statistics of an episode".to_owned());
    }
    let info = env.info(first);
    match info.no_decision == (info.skipped > 0) {
        true => Ok(()),
        false => Err("after reset: `no_decision` and `skipped` contradict each other".to_owned()),
    }
}

/// A step updates the data of the agent whose turn comes, and of no other: an observation in its space, a finite reward
/// that is the sum of its components, and a discount in (0, 1]. At an agent's first turn of an episode no interval has
/// ended, and agents without a turn have no reward at the end either.
pub fn check_step<E: Subject>(make: Make<E>, options: &CheckOptions) -> Outcome {
    let mut player = Player::new(make(), options, 0);
    player.reset(Some(options.seed))?;
    let agents = player.env.agents();
    let mut decided = vec![false; agents];
    for number in 1..=options.steps {
        let Turn::Agent(agent) = player.turn else {
            player.reset(None)?;
            begun(&player)?;
            decided.fill(false);
            continue;
        };
        let before: Vec<String> = (0..agents).map(|agent| player.view(agent)).collect();
        player.step()?;
        decided[agent] = true;
        let place = format!("after step {number}");
        for (agent, before) in before.iter().enumerate() {
            match player.turn {
                Turn::Agent(next) if next != agent => {
                    if player.view(agent) != *before {
                        return Err(format!(
                            "{place}: what agent {agent} knows changed at the turn of agent {next}"
                        ));
                    }
                }
                _ if decided[agent] => told(&player.env, agent, &place)?,
                Turn::Agent(_) => {
                    told(&player.env, agent, &place)?;
                    no_interval(&player.env, agent, &place)?;
                }
                Turn::Terminated | Turn::Truncated => no_interval(&player.env, agent, &place)?,
            }
        }
    }
    Ok(())
}

/// Adds the agent to a place, where there are several.
fn at<E: Subject>(agent: usize, place: &str) -> String {
    match E::SEVERAL {
        true => format!("{place}: agent {agent}:"),
        false => format!("{place}:"),
    }
}

/// Checks that the data of an agent has the right shapes and makes sense.
fn told<E: Subject>(env: &E, agent: usize, place: &str) -> Outcome {
    let at = at::<E>(agent, place);
    let (reward, info) = (env.reward(agent), env.info(agent));
    let (observed, _, privileged) = env.spaces(agent);
    if let Some(why) = observed.violation(env.observation(agent)) {
        return Err(format!("{at} the observation is not in its space: {why}"));
    }
    match privileged {
        Some(space) => {
            if let Some(why) = space.violation(&info.privileged) {
                return Err(format!("{at} `privileged` is not in its space: {why}"));
            }
        }
        None if !info.privileged.is_empty() => {
            return Err(format!(
                "{at} `privileged` has values, but there is no space"
            ));
        }
        None => {}
    }
    let (given, components) = (info.port_rewards.len(), env.components(agent));
    if given != components {
        return Err(format!(
            "{at} the info has {given} port rewards of {components}"
        ));
    }
    if !reward.is_finite() {
        return Err(format!("{at} the reward is {reward}"));
    }
    let sum: f64 = info.port_rewards.iter().copied().map(f64::from).sum();
    // Components are single precision. The comparison is false where the sum is not a number.
    let adds_up = (sum - reward).abs() <= 1e-4 * (1.0 + reward.abs());
    if components > 0 && !adds_up {
        return Err(format!(
            "{at} port rewards add up to {sum}, reward {reward}"
        ));
    }
    if !(info.discount > 0.0 && info.discount <= 1.0) {
        return Err(format!("{at} discount {} is not in (0, 1]", info.discount));
    }
    if !(info.entropy_weight.is_finite() && info.entropy_weight >= 0.0) {
        return Err(format!("{at} entropy weight {}", info.entropy_weight));
    }
    match E::SEVERAL && info.episode.is_some() {
        true => Err(format!("{at} the info has statistics of the episode")),
        false => Ok(()),
    }
}

/// Checks that no interval of the agent has ended in this episode.
fn no_interval<E: Subject>(env: &E, agent: usize, place: &str) -> Outcome {
    let (reward, info) = (env.reward(agent), env.info(agent));
    let parts = &info.port_rewards;
    let told = if reward != 0.0 {
        format!("the reward {reward}")
    } else if parts.iter().any(|part| *part != 0.0) {
        format!("the port rewards {parts:?}")
    } else if info.discount != 1.0 {
        format!("the discount {}, not 1,", info.discount)
    } else if info.elapsed != Duration::ZERO {
        format!("a duration of {} ps", info.elapsed.as_ps())
    } else {
        return Ok(());
    };
    let at = at::<E>(agent, place);
    Err(format!("{at} {told} without an interval"))
}

/// A new environment refuses to step.
pub fn check_step_before_reset<E: Subject>(make: Make<E>, options: &CheckOptions) -> Outcome {
    let mut player = Player::new(make(), options, 0);
    refused(&mut player, 0, "step before the first reset")
}

/// Checks that an environment without an episode refuses to step.
fn refused<E: Subject>(player: &mut Player<E>, agent: usize, call: &str) -> Outcome {
    let action = player.action(agent);
    match player.env.step(&action) {
        Err(EnvError::ResetNeeded(_)) => Ok(()),
        Err(error) => Err(format!("{call} is an error, but the wrong one: {error}")),
        Ok(_) => Err(format!(
            "{call} was accepted; it has to be EnvError::ResetNeeded"
        )),
    }
}

/// Episodes end, their statistics are there then and only then, and no step follows without a reset.
pub fn check_end<E: Subject>(make: Make<E>, options: &CheckOptions) -> Outcome {
    let mut player = Player::new(make(), options, 2);
    for seed in [Some(options.seed), None] {
        player.reset(seed)?;
        let last = play_to_the_end(&mut player, options)?;
        refused(&mut player, last, "step after the end of an episode")?;
    }
    Ok(())
}

/// Plays to the end of the episode, checks its statistics, and returns the agent that decided last.
fn play_to_the_end<E: Subject>(
    player: &mut Player<E>,
    options: &CheckOptions,
) -> Result<usize, String> {
    let (mut steps, mut last) = (0, 0);
    while let Turn::Agent(agent) = player.turn {
        if player.env.episode().is_some() {
            return Err(format!(
                "statistics of an episode that continues after {steps} steps"
            ));
        }
        if steps == options.max_episode_steps {
            return Err(format!("the episode did not end within {steps} steps"));
        }
        player.step()?;
        (steps, last) = (steps + 1, agent);
    }
    match player.env.episode() {
        None => Err("no statistics of an episode that ended".to_owned()),
        Some(stats) if stats.decisions != steps => Err(format!(
            "{steps} steps, but {} in the statistics",
            stats.decisions
        )),
        Some(_) => Ok(last),
    }
}

/// Actions outside the space of the agent whose turn it is are refused and change nothing.
pub fn check_invalid_actions<E: Subject>(make: Make<E>, options: &CheckOptions) -> Outcome {
    let mut undisturbed = Player::new(make(), options, 3);
    undisturbed.reset(Some(options.seed))?;
    let Turn::Agent(agent) = undisturbed.turn else {
        return Ok(()); // check_reset reports it
    };
    let good = undisturbed.action(agent);
    undisturbed.act(&good)?;
    let expected = undisturbed.record();
    let mut player = Player::new(make(), options, 3);
    for (what, bad) in bad_actions(undisturbed.env.spaces(agent).1, &good) {
        player.reset(Some(options.seed))?;
        match player.env.step(&bad) {
            Err(EnvError::InvalidAction(_)) => {}
            Err(error) => return Err(format!("{what} is an error, but the wrong one: {error}")),
            Ok(_) => return Err(format!("{what} was accepted")),
        }
        player.act(&good)?;
        if player.record() != expected {
            return Err(format!("{what} was refused, but changed what follows"));
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
    let longer = [good, &[good[0]]].concat();
    [
        ("an action with one value too few", good[1..].to_vec()),
        ("an action with one value too many", longer),
        ("an action that is not a number", with_first(f32::NAN)),
        ("an action beyond its bounds", with_first(beyond)),
    ]
}

/// The same seed and actions give the same bits: twice on one environment, also in the middle of an
/// episode, and on a second environment.
pub fn check_seed<E: Subject>(make: Make<E>, options: &CheckOptions) -> Outcome {
    let mut player = Player::new(make(), options, 0);
    let first = player.play(options.seed, options)?;
    let again = player.play(options.seed, options)?;
    same(&first, &again, "after the same seed")?;
    let elsewhere = Player::new(make(), options, 0).play(options.seed, options)?;
    let place = "after the same seed on a second environment";
    same(&first, &elsewhere, place)
}

fn same(expected: &[String], records: &[String], place: &str) -> Outcome {
    let mut pairs = expected.iter().zip(records);
    match pairs.position(|(one, other)| one != other) {
        None => Ok(()),
        Some(call) => Err(format!("call {call} gave another result {place}")),
    }
}

/// Resets without a seed continue the sequence of the last seed, whatever the actions were.
pub fn check_sequence<E: Subject>(make: Make<E>, options: &CheckOptions) -> Outcome {
    let mut player = Player::new(make(), options, 1);
    let mut other = Player::new(make(), options, 1);
    let seed = |episode| (episode == 0).then_some(options.seed);
    let mut records = Vec::new();
    for episode in 0..4 {
        player.reset(seed(episode))?;
        records.push(player.record());
        player.step()?;
    }
    for (episode, expected) in records.iter().enumerate() {
        other.reset(seed(episode))?;
        if other.record() != *expected {
            return Err(format!(
                "episode {episode} after the same seed begins differently"
            ));
        }
    }
    match options.stochastic && records.iter().all(|record| *record == records[0]) {
        true => Err("four episodes in a row begin in the same state".to_owned()),
        false => Ok(()),
    }
}

/// Different seeds lead to different episodes. Tests nothing when [`CheckOptions::stochastic`] is off.
pub fn check_seed_matters<E: Subject>(make: Make<E>, options: &CheckOptions) -> Outcome {
    if !options.stochastic {
        return Ok(());
    }
    let mut player = Player::new(make(), options, 0);
    let first = player.play(options.seed, options)?;
    for offset in 1..4 {
        if player.play(options.seed.wrapping_add(offset), options)? != first {
            return Ok(());
        }
    }
    Err("four seeds give the same episodes; does reset use its seed?".to_owned())
}

/// Two environments used in turns return what each returns alone: they share no state.
pub fn check_independence<E: Subject>(make: Make<E>, options: &CheckOptions) -> Outcome {
    let expected = Player::new(make(), options, 0).play(options.seed, options)?;
    let mut player = Player::new(make(), options, 0);
    let mut beside = Player::new(make(), options, 6);
    player.reset(Some(options.seed))?;
    let mut records = vec![player.record()];
    beside.reset(Some(options.seed.wrapping_add(1)))?;
    for _ in 0..options.steps {
        player.step()?;
        records.push(player.record());
        beside.step()?;
    }
    let place = "while a second environment was in use";
    same(&expected, &records, place)
}

/// The intervals of all agents lie on one clock: counted back from the end of an episode, where all of
/// them end, turns come in the order in which they came. The rewards of all intervals add up to the
/// episode's return.
pub fn check_intervals<E: MultiAgentEnv>(
    make: Make<Several<E>>,
    options: &CheckOptions,
) -> Outcome {
    let mut player = Player::new(make(), options, 5);
    player.reset(Some(options.seed))?;
    let (mut turns, mut sum) = (Vec::new(), 0.0);
    while let Turn::Agent(agent) = player.turn {
        if turns.len() as u64 == options.max_episode_steps {
            return Ok(()); // check_end reports it
        }
        turns.push((agent, player.env.info(agent).elapsed));
        sum += player.env.reward(agent);
        player.step()?;
    }
    let env = &player.env;
    let last = |agent| env.info(agent).elapsed;
    let mut before_end: Vec<Duration> = (0..env.agents()).map(last).collect();
    let mut later = Duration::ZERO;
    for (number, (agent, elapsed)) in turns.into_iter().enumerate().rev() {
        let at = before_end[agent];
        if at < later {
            return Err(format!(
                "turn {number} is {} ps before the end by the intervals of agent {agent}, the turn \
                 after it {} ps by those of its own agent",
                at.as_ps(),
                later.as_ps()
            ));
        }
        later = at;
        before_end[agent] = at + elapsed;
    }
    let ends = (0..env.agents()).map(|agent| env.reward(agent));
    sum += ends.sum::<f64>();
    let return_ = env.episode().map_or(sum, |stats| stats.return_);
    // Sums of the same numbers in another order.
    match (return_ - sum).abs() > 1e-9 * (1.0 + sum.abs()) {
        true => Err(format!(
            "the rewards of all intervals add up to {sum}, the return is {return_}"
        )),
        false => Ok(()),
    }
}

/// An environment that is restored from a snapshot is in the state of the snapshot, and continues bit for bit as the
/// first one. This holds before the first reset, and at the beginning, in the middle and at the end of an episode.
pub fn check_snapshots<E: MultiAgentEnv>(
    make: Make<Several<E>>,
    options: &CheckOptions,
) -> Outcome {
    let mut player = Player::new(make(), options, 7);
    let mut other = Player::new(make(), options, 7);
    if restore(&mut other, &player)?.is_some() {
        let what = "a snapshot before the first reset was restored to a running episode";
        return Err(what.to_owned());
    }
    for steps in [0, 1, options.steps / 2, options.max_episode_steps] {
        player.reset(None)?;
        let mut made = 0;
        while made < steps && player.running() {
            player.step()?;
            made += 1;
        }
        let turn = restore(&mut other, &player)?;
        (other.turn, other.rng) = (player.turn, player.rng.clone());
        if turn != Some(player.turn) || other.record() != player.record() {
            return Err(format!(
                "restored after {made} steps it is in another state"
            ));
        }
        for call in 0..options.steps {
            player.step()?;
            other.step()?;
            if player.record() != other.record() {
                return Err(format!(
                    "restored after {made} steps it differs at call {call} behind them"
                ));
            }
        }
    }
    Ok(())
}

/// Restores the state of the first environment from that of the second.
fn restore<E: MultiAgentEnv>(
    to: &mut Player<Several<E>>,
    from: &Player<Several<E>>,
) -> Result<Option<Turn>, String> {
    let restored = to.env.0.restore(&from.env.0.snapshot());
    restored.map_err(|error| format!("restore failed: {error}"))
}
