//! Environments of one agent and of several, as the checks see them.

use crate::gym::{Env, EnvError, EpisodeStats, Info, MultiAgentEnv, ResetOptions, Space, Turn};

const PLAIN: ResetOptions = ResetOptions { trace: None };

/// An environment under test. The methods are those of [`MultiAgentEnv`], as far as both contracts have them.
pub trait Subject {
    /// True if agents take turns and have names in messages.
    const SEVERAL: bool;

    fn agents(&self) -> usize;

    /// Returns the spaces of an agent's observations, actions and privileged observations.
    fn spaces(&self, agent: usize) -> (&Space, &Space, Option<&Space>);

    /// Number of components of an agent's reward.
    fn components(&self, agent: usize) -> usize;

    fn reset(&mut self, seed: Option<u64>) -> Result<Turn, EnvError>;

    fn step(&mut self, action: &[f32]) -> Result<Turn, EnvError>;

    fn observation(&self, agent: usize) -> &[f32];

    fn reward(&self, agent: usize) -> f64;

    fn info(&self, agent: usize) -> &Info;

    fn episode(&self) -> Option<&EpisodeStats>;
}

/// An environment of several agents.
pub struct Several<E>(pub E);

impl<E: MultiAgentEnv> Subject for Several<E> {
    const SEVERAL: bool = true;

    fn agents(&self) -> usize {
        self.0.agents()
    }

    fn spaces(&self, agent: usize) -> (&Space, &Space, Option<&Space>) {
        let privileged = self.0.privileged_space(agent);
        let observed = self.0.observation_space(agent);
        (observed, self.0.action_space(agent), Some(privileged))
    }

    fn components(&self, agent: usize) -> usize {
        let shape = self.0.observation_space(agent).shape();
        shape.first().copied().unwrap_or(0)
    }

    fn reset(&mut self, seed: Option<u64>) -> Result<Turn, EnvError> {
        self.0.reset(seed, &PLAIN)
    }

    fn step(&mut self, action: &[f32]) -> Result<Turn, EnvError> {
        self.0.step(action)
    }

    fn observation(&self, agent: usize) -> &[f32] {
        self.0.observation(agent)
    }

    fn reward(&self, agent: usize) -> f64 {
        self.0.reward(agent)
    }

    fn info(&self, agent: usize) -> &Info {
        self.0.info(agent)
    }

    fn episode(&self) -> Option<&EpisodeStats> {
        self.0.episode()
    }
}

/// An environment of one agent, with a copy of what its last call returned.
pub struct Single<E> {
    env: E,
    observation: Vec<f32>,
    reward: f64,
    info: Info,
}

impl<E: Env> Single<E> {
    pub fn new(env: E) -> Single<E> {
        Single {
            env,
            observation: Vec::new(),
            reward: 0.0,
            info: Info::default(),
        }
    }
}

impl<E: Env> Subject for Single<E> {
    const SEVERAL: bool = false;

    fn agents(&self) -> usize {
        1
    }

    fn spaces(&self, _: usize) -> (&Space, &Space, Option<&Space>) {
        let env = &self.env;
        let observed = env.observation_space();
        (observed, env.action_space(), env.privileged_space())
    }

    fn components(&self, _: usize) -> usize {
        self.env.reward_components()
    }

    fn reset(&mut self, seed: Option<u64>) -> Result<Turn, EnvError> {
        let reset = self.env.reset(seed, &PLAIN)?;
        self.observation = reset.observation.to_vec();
        self.reward = 0.0;
        self.info = reset.info.clone();
        Ok(Turn::Agent(0))
    }

    fn step(&mut self, action: &[f32]) -> Result<Turn, EnvError> {
        let step = self.env.step(action)?;
        self.observation = step.observation.to_vec();
        self.reward = step.reward;
        self.info = step.info.clone();
        Ok(match (step.terminated, step.truncated) {
            (true, _) => Turn::Terminated,
            (_, true) => Turn::Truncated,
            _ => Turn::Agent(0),
        })
    }

    fn observation(&self, _: usize) -> &[f32] {
        &self.observation
    }

    fn reward(&self, _: usize) -> f64 {
        self.reward
    }

    fn info(&self, _: usize) -> &Info {
        &self.info
    }

    fn episode(&self) -> Option<&EpisodeStats> {
        self.info.episode.as_ref()
    }
}
