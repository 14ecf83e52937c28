//! Pairs of forks, which show what actions are worth.
//!
//! At some decisions of a rollout two copies of the environment go on with the mean of the policy. In both, the first
//! decisions of every switch are shifted, each action up in one copy where it is down in the other. The difference of
//! the rewards that follow is the effect of the shifts, nearly free of the noise of the traffic, which is the same in
//! both. Shifts of a single decision have hardly any effect: a queue outlives it.

use bufgym_agents::Pair;
use bufgym_agents::replay::{PAIR_ROWS, SHIFTED};
use bufgym_env::control::FEATURES;
use bufgym_env::gym::{EnvError, MultiAgentEnv, Turn};
use bufgym_models::FastActor;
use bufgym_models::critic::{FRAMES, STATE};
use bufgym_util::rng::uniform;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

/// Shift of an action, whose range is 2 wide: two levels.
pub(crate) const SHIFT: f32 = 0.5;

/// Largest size of an action. Its ends have no value before tanh.
const LARGEST_ACTION: f32 = 0.999;

/// A copy ends when what follows counts less than this, by the discount.
const MIN_DISCOUNT: f32 = 0.2;

/// Settings of the pairs of forks. Only soft actor-critic learns from them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ForkConfig {
    /// Share of the decisions at which a pair is made, 0 to 1; 0: no pairs.
    pub rate: f64,
    /// Pairs kept for learning, all workers together; 1 to 10^8, and what fits into memory.
    pub kept: usize,
}

impl Default for ForkConfig {
    fn default() -> Self {
        Self {
            rate: 0.0,
            kept: 1_000,
        }
    }
}

/// One agent in both copies.
struct Trial {
    pair: Pair,
    /// Signs of the shifts in the first copy, `[ports, outputs]`.
    signs: Vec<f32>,
    /// Size of the shifts.
    shift: f32,
    /// Decisions in the current copy.
    decisions: usize,
    /// Discount since the fork in the current copy.
    discount: f32,
}

impl Trial {
    fn new(
        env: &dyn MultiAgentEnv,
        agent: usize,
        shift: f32,
        rng: &mut Xoshiro256PlusPlus,
    ) -> Self {
        let space = env.action_space(agent);
        let (ports, values) = (space.shape()[0], space.len());
        let mut sign = || if uniform(rng) < 0.5 { 1.0 } else { -1.0 };
        Self {
            signs: (0..values).map(|_| sign()).collect(),
            shift,
            decisions: 0,
            discount: 1.0,
            pair: Pair {
                state: Vec::with_capacity(PAIR_ROWS * ports * STATE),
                actions: Vec::new(),
                means: Vec::new(),
                weights: Vec::new(),
                differences: vec![0.0; ports],
            },
        }
    }

    /// Adds the rewards of an interval, times `scale`.
    fn earn(&mut self, env: &dyn MultiAgentEnv, agent: usize, scale: f32) {
        let info = env.info(agent);
        let differences = self.pair.differences.iter_mut().zip(&info.port_rewards);
        differences.for_each(|(sum, reward)| *sum += scale * self.discount * reward);
        self.discount *= info.discount;
    }

    /// The action at a decision: that of the policy, shifted in the direction of `side` if it is one of the first.
    fn act(
        &mut self,
        env: &dyn MultiAgentEnv,
        agent: usize,
        actor: &mut FastActor,
        side: f32,
    ) -> Vec<f32> {
        let observation = env.observation(agent);
        let ports = self.pair.differences.len();
        let (means, _) = actor.forward(observation, ports);
        let means: Vec<f32> = means.iter().map(|&mean| libm::tanhf(mean)).collect();
        self.decisions += 1;
        if self.decisions > SHIFTED {
            return means;
        }
        let shifted = means.iter().zip(&self.signs).map(|(mean, sign)| {
            (mean + side * self.shift * sign).clamp(-LARGEST_ACTION, LARGEST_ACTION)
        });
        let actions: Vec<f32> = shifted.collect();
        let privileged = &env.info(agent).privileged;
        let frames = observation.chunks_exact(FRAMES * FEATURES);
        for (frames, privileged) in frames.zip(privileged.chunks_exact(privileged.len() / ports)) {
            self.pair.state.extend_from_slice(frames);
            self.pair.state.extend_from_slice(privileged);
        }
        self.pair.actions.extend_from_slice(&actions);
        self.pair.means.extend_from_slice(&means);
        self.pair.weights.push(side * self.discount);
        actions
    }

    /// Ends a copy, of `copies` so far. Decisions that it did not come to count nothing.
    fn end(&mut self, copies: usize) {
        let (ports, values) = (self.pair.differences.len(), self.signs.len());
        let rows = copies * SHIFTED;
        self.pair.state.resize(rows * ports * STATE, 0.0);
        self.pair.actions.resize(rows * values, 0.0);
        self.pair.means.resize(rows * values, 0.0);
        self.pair.weights.resize(rows, 0.0);
        (self.decisions, self.discount) = (0, 1.0);
    }
}

/// Makes a pair at the turn of `first`, for every agent that decides in it, with the rewards times `scale` and actions
/// shifted by `shift`. Returns the agents with their pairs, and the number of decisions in both copies. The environment
/// stays as it is.
pub(crate) fn fork(
    env: &dyn MultiAgentEnv,
    first: usize,
    actor: &mut FastActor,
    scale: f32,
    shift: f32,
    rng: &mut Xoshiro256PlusPlus,
) -> Result<(Vec<(usize, Pair)>, u64), EnvError> {
    let agents = 0..env.agents();
    let mut trials: Vec<Trial> = agents
        .map(|agent| Trial::new(env, agent, shift, rng))
        .collect();
    let mut decisions = 0;
    for (copy, side) in [1.0, -1.0].into_iter().enumerate() {
        let mut env = env.fork();
        let mut turn = Turn::Agent(first);
        let mut begun = false;
        while let Turn::Agent(agent) = turn {
            let trial = &mut trials[agent];
            if begun {
                trial.earn(env.as_ref(), agent, side * scale);
            }
            begun = true;
            let of_first = &trials[first];
            if of_first.decisions >= SHIFTED && of_first.discount < MIN_DISCOUNT {
                break;
            }
            let action = trials[agent].act(env.as_ref(), agent, actor, side);
            turn = env.step(&action)?;
            decisions += 1;
        }
        let over = !matches!(turn, Turn::Agent(_));
        for (agent, trial) in trials.iter_mut().enumerate() {
            if over && trial.decisions > 0 {
                trial.earn(env.as_ref(), agent, side * scale);
            }
            trial.end(copy + 1);
        }
    }
    let pairs = trials.into_iter().map(|trial| trial.pair).enumerate();
    let acted = |(_, pair): &(usize, Pair)| pair.weights.iter().any(|&weight| weight != 0.0);
    Ok((pairs.filter(acted).collect(), decisions))
}

#[cfg(test)]
mod tests {
    use super::*;
    use bufgym_env::gym::{BufferEnvOptions, NetworkEnv, ResetOptions};
    use bufgym_models::ActorWeights;
    use bufgym_sim::network::OneSwitch;
    use bufgym_sim::scenario::Scenario;
    use bufgym_util::rng::stream;

    fn options(preset: &str, settings: &[&str]) -> BufferEnvOptions {
        let mut scenario = Scenario::preset(preset).unwrap();
        scenario.set_all(settings).unwrap();
        BufferEnvOptions {
            scenario,
            ..BufferEnvOptions::default()
        }
    }

    fn actor() -> FastActor {
        FastActor::new(&ActorWeights::random(&mut stream(1, "weights", 0)))
    }

    /// The environment after some decisions, and the agent whose turn it is.
    fn begun(mut env: impl MultiAgentEnv) -> (impl MultiAgentEnv, usize) {
        let mut turn = env.reset(Some(5), &ResetOptions::default()).unwrap();
        for _ in 0..20 {
            let Turn::Agent(agent) = turn else { break };
            let action = vec![0.2; env.action_space(agent).len()];
            turn = env.step(&action).unwrap();
        }
        let Turn::Agent(agent) = turn else {
            panic!("the episode is over");
        };
        (env, agent)
    }

    #[test]
    fn copies_are_shifted_in_opposite_directions() {
        let (env, agent) = begun(NetworkEnv::<OneSwitch>::new(options("ndt-16x1g", &[])).unwrap());
        let before = env.observation(agent).to_vec();
        let make = |scale| {
            let mut rng = stream(1, "forks", 0);
            fork(&env, agent, &mut actor(), scale, SHIFT, &mut rng).unwrap()
        };
        let (pairs, decisions) = make(1.0);
        let [(of, pair)] = pairs.as_slice() else {
            panic!("there is one switch");
        };
        assert_eq!((*of, pair.weights.len()), (agent, PAIR_ROWS));
        assert!(decisions >= PAIR_ROWS as u64);
        assert_eq!(pair.state.len(), PAIR_ROWS * 16 * STATE);
        let (first, second) = pair.actions.split_at(SHIFTED * 16);
        let (means, _) = pair.means.split_at(16);
        assert_eq!(means, &pair.means[SHIFTED * 16..][..16], "both start alike");
        for ((up, down), mean) in first.iter().zip(second).zip(means) {
            let range = -LARGEST_ACTION..=LARGEST_ACTION;
            assert!(range.contains(up) && range.contains(down));
            let free = mean.abs() < 1.0 - SHIFT;
            assert!(!free || (up + down - 2.0 * mean).abs() < 1e-6 && up != down);
        }
        assert!(pair.weights[0] == 1.0 && pair.weights[SHIFTED] == -1.0);
        assert!(pair.differences.iter().any(|&difference| difference != 0.0));
        assert_eq!(env.observation(agent), before, "the environment stays");
        // The same again, with rewards in other units.
        let (again, _) = make(2.0);
        for (one, two) in pair.differences.iter().zip(&again[0].1.differences) {
            assert!((2.0 * one - two).abs() <= 1e-4 * two.abs());
        }
        assert_eq!(pair.actions, again[0].1.actions);
    }

    #[test]
    fn copies_with_equal_actions_have_no_difference() {
        let (env, agent) = begun(NetworkEnv::<OneSwitch>::new(options("ndt-16x1g", &[])).unwrap());
        let mut rng = stream(1, "forks", 0);
        let mut largest = |shift| {
            let made = fork(&env, agent, &mut actor(), 1.0, shift, &mut rng);
            let (pairs, _) = made.unwrap();
            let sizes = pairs[0].1.differences.iter().map(|of| of.abs());
            sizes.fold(0.0, f32::max)
        };
        // Sums of both copies differ by rounding alone.
        assert!(largest(0.0) < 1e-4 * largest(SHIFT));
    }

    #[test]
    fn switches_of_a_network_have_pairs_of_their_own() {
        let options = options("leafspine-4x4", &["measure_ms=2", "query_rate=2000"]);
        let (env, agent) = begun(<NetworkEnv>::new(options).unwrap());
        let mut rng = stream(2, "forks", 0);
        let (pairs, _) = fork(&env, agent, &mut actor(), 1.0, SHIFT, &mut rng).unwrap();
        assert!(pairs.len() > 1, "several switches decide");
        for (of, pair) in &pairs {
            let ports = env.action_space(*of).shape()[0];
            assert_eq!(pair.differences.len(), ports);
            assert_eq!(pair.state.len(), PAIR_ROWS * ports * STATE);
        }
    }
}
