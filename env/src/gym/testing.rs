//! Small environments whose every value can be computed manually.

use super::{
    Env, EnvError, EnvSnapshot, EpisodeSnapshot, EpisodeStats, Info, MultiAgentEnv, Reset,
};
use super::{ResetOptions, Resumable, Space, Step, Turn};
use bufgym_sim::units::Duration;

/// Agents that have turns in the order of [`Relay::TURNS`], beginning at the number of the episode. The episode is
/// `seed mod 5` plus the number of resets since the seed.
///
/// An agent observes `[episode, position]` of each port; the position moves by the action. The reward of a
/// port is its action times the steps of all agents until the agent's next turn, each of which takes a
/// millisecond and halves the discount. The privileged value of each port is the number of steps so far.
#[derive(Clone, Debug)]
pub struct Relay {
    pub agents: Vec<Runner>,
    pub length: u64,
    /// True if episodes end with [`Turn::Truncated`].
    pub truncates: bool,
    pub next_episode: u64,
    pub episode: u64,
    pub running: bool,
    /// The actions of the episode.
    pub actions: Vec<Vec<f32>>,
    pub stats: Option<EpisodeStats>,
    begun: bool,
    return_: f64,
}

/// One agent of a [`Relay`].
#[derive(Clone, Debug)]
pub struct Runner {
    pub spaces: [Space; 3],
    pub observation: Vec<f32>,
    pub reward: f64,
    pub info: Info,
    positions: Vec<f32>,
    /// Last action of the agent, and the number of steps before it.
    last: Option<(Vec<f32>, u64)>,
}

impl Runner {
    fn new(ports: usize) -> Runner {
        Runner {
            spaces: [
                Space::uniform_box(&[ports, 2], -1e6, 1e6),
                Space::uniform_box(&[ports], -1.0, 1.0),
                Space::uniform_box(&[ports, 1], 0.0, f32::INFINITY),
            ],
            observation: vec![0.0; 2 * ports],
            positions: vec![0.0; ports],
            reward: 0.0,
            info: Info {
                privileged: vec![0.0; ports],
                port_rewards: vec![0.0; ports],
                ..Info::default()
            },
            last: None,
        }
    }

    fn blank(&mut self) {
        self.observation.fill(0.0);
        self.positions.fill(0.0);
        self.reward = 0.0;
        self.info.begin(0);
        self.info.privileged.fill(0.0);
        self.last = None;
    }

    /// Ends the agent's interval after so many steps of all agents.
    fn close(&mut self, episode: u64, steps: u64) {
        for (pair, position) in self.observation.chunks_mut(2).zip(&self.positions) {
            pair.copy_from_slice(&[episode as f32, *position]);
        }
        self.info.begin(0);
        self.info.privileged.fill(steps as f32);
        self.reward = 0.0;
        if let Some((action, before)) = &self.last {
            let lasted = steps - before;
            let parts = self.info.port_rewards.iter_mut().zip(action);
            parts.for_each(|(part, value)| *part = value * lasted as f32);
            self.reward = self.info.port_rewards.iter().copied().map(f64::from).sum();
            self.info.discount = 0.5_f32.powi(lasted as i32);
            self.info.entropy_weight = 1.0;
            self.info.elapsed = Duration::from_ms(lasted);
        }
    }
}

impl Relay {
    pub const TURNS: [usize; 5] = [0, 1, 0, 1, 2];

    /// Creates a relay of three agents, with 2, 1 and 1 ports, that terminates after `length` steps.
    pub fn new(length: u64) -> Relay {
        Relay::of(&[2, 1, 1], length)
    }

    /// Creates a relay of agents with these numbers of ports: up to three, or one that has every turn.
    pub fn of(ports: &[usize], length: u64) -> Relay {
        Relay {
            agents: ports.iter().copied().map(Runner::new).collect(),
            length,
            truncates: false,
            next_episode: 0,
            episode: 0,
            running: false,
            actions: Vec::new(),
            stats: None,
            begun: false,
            return_: 0.0,
        }
    }

    /// Returns the agent whose turn it is.
    pub fn at(&self) -> usize {
        let turn = self.episode + self.steps();
        Relay::TURNS[(turn % Relay::TURNS.len() as u64) as usize] % self.agents.len()
    }

    fn steps(&self) -> u64 {
        self.actions.len() as u64
    }

    fn begin(&mut self, episode: u64) -> Turn {
        self.episode = episode;
        self.actions.clear();
        self.agents.iter_mut().for_each(Runner::blank);
        (self.running, self.begun, self.stats, self.return_) = (true, true, None, 0.0);
        self.pause()
    }

    fn close(&mut self, agent: usize) {
        let (episode, steps) = (self.episode, self.steps());
        self.agents[agent].close(episode, steps);
        self.return_ += self.agents[agent].reward;
    }

    fn pause(&mut self) -> Turn {
        if self.steps() < self.length {
            let agent = self.at();
            self.close(agent);
            return Turn::Agent(agent);
        }
        (0..self.agents.len()).for_each(|agent| self.close(agent));
        self.running = false;
        self.stats = Some(EpisodeStats {
            return_: self.return_,
            decisions: self.steps(),
            index: self.episode,
            ..EpisodeStats::default()
        });
        match self.truncates {
            true => Turn::Truncated,
            false => Turn::Terminated,
        }
    }
}

impl MultiAgentEnv for Relay {
    fn agents(&self) -> usize {
        self.agents.len()
    }

    fn observation_space(&self, agent: usize) -> &Space {
        &self.agents[agent].spaces[0]
    }

    fn action_space(&self, agent: usize) -> &Space {
        &self.agents[agent].spaces[1]
    }

    fn privileged_space(&self, agent: usize) -> &Space {
        &self.agents[agent].spaces[2]
    }

    fn reset(&mut self, seed: Option<u64>, options: &ResetOptions) -> Result<Turn, EnvError> {
        if let Some(seed) = seed {
            self.next_episode = seed % 5;
        }
        let episode = options.trace.unwrap_or(self.next_episode);
        if options.trace.is_none() {
            self.next_episode += 1;
        }
        Ok(self.begin(episode))
    }

    fn step(&mut self, action: &[f32]) -> Result<Turn, EnvError> {
        if !self.running {
            return Err(EnvError::ResetNeeded("relay"));
        }
        let (agent, steps) = (self.at(), self.steps());
        let runner = &mut self.agents[agent];
        runner.spaces[1].accept_action(action)?;
        for (position, value) in runner.positions.iter_mut().zip(action) {
            *position += value;
        }
        runner.last = Some((action.to_vec(), steps));
        self.actions.push(action.to_vec());
        Ok(self.pause())
    }

    fn observation(&self, agent: usize) -> &[f32] {
        &self.agents[agent].observation
    }

    fn reward(&self, agent: usize) -> f64 {
        self.agents[agent].reward
    }

    fn info(&self, agent: usize) -> &Info {
        &self.agents[agent].info
    }

    fn episode(&self) -> Option<&EpisodeStats> {
        self.stats.as_ref()
    }

    fn fork(&self) -> Box<dyn MultiAgentEnv> {
        Box::new(self.clone())
    }

    fn snapshot(&self) -> EnvSnapshot {
        let values = self.actions.iter().flatten();
        EnvSnapshot {
            options: "relay".to_owned(),
            seed: 0,
            next: self.next_episode,
            episode: self.begun.then(|| EpisodeSnapshot {
                index: self.episode,
                skipped: 0,
                actions: values.flat_map(|value| value.to_le_bytes()).collect(),
            }),
        }
    }

    fn restore(&mut self, snapshot: &EnvSnapshot) -> Result<Option<Turn>, EnvError> {
        self.next_episode = snapshot.next;
        let Some(saved) = &snapshot.episode else {
            (self.running, self.begun) = (false, false);
            return Ok(None);
        };
        let mut turn = self.begin(saved.index);
        let values = saved.actions.chunks_exact(4);
        let mut values = values.map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()));
        while let Turn::Agent(agent) = turn {
            let width = self.agents[agent].spaces[1].len();
            let action: Vec<f32> = values.by_ref().take(width).collect();
            if action.is_empty() {
                break;
            }
            turn = self.step(&action)?;
        }
        Ok(Some(turn))
    }
}

/// An environment of one agent as an [`Env`].
#[derive(Clone, Debug)]
pub struct Alone<E> {
    pub env: E,
    privileged: Privileged,
    info: Info,
}

/// What an [`Alone`] environment tells of privileged observations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Privileged {
    SpaceAndValues,
    ValuesOnly,
    Nothing,
}

/// A [`Relay`] of one agent with one port, without privileged observations: a position moves by the action, and the
/// reward is the action.
pub type Walk = Alone<Relay>;

impl Walk {
    /// Creates a walk that terminates after `length` steps.
    pub fn new(length: u64) -> Walk {
        Alone::of(Relay::of(&[1], length), Privileged::Nothing)
    }
}

impl<E: MultiAgentEnv> Alone<E> {
    pub fn of(env: E, privileged: Privileged) -> Alone<E> {
        Alone {
            env,
            privileged,
            info: Info::default(),
        }
    }

    /// Returns the current state as that of a reset.
    fn state(&mut self) -> Reset<'_> {
        self.info.clone_from(self.env.info(0));
        self.info.episode = self.env.episode().cloned();
        if self.privileged == Privileged::Nothing {
            self.info.privileged.clear();
        }
        Reset {
            observation: self.env.observation(0),
            info: &self.info,
        }
    }
}

impl<E: MultiAgentEnv> Env for Alone<E> {
    fn observation_space(&self) -> &Space {
        self.env.observation_space(0)
    }

    fn action_space(&self) -> &Space {
        self.env.action_space(0)
    }

    fn privileged_space(&self) -> Option<&Space> {
        let has_space = self.privileged == Privileged::SpaceAndValues;
        has_space.then(|| self.env.privileged_space(0))
    }

    fn reward_components(&self) -> usize {
        self.observation_space().shape()[0]
    }

    fn reset(&mut self, seed: Option<u64>, options: &ResetOptions) -> Result<Reset<'_>, EnvError> {
        self.env.reset(seed, options)?;
        Ok(self.state())
    }

    fn step(&mut self, action: &[f32]) -> Result<Step<'_>, EnvError> {
        let turn = self.env.step(action)?;
        let reward = self.env.reward(0);
        let Reset { observation, info } = self.state();
        Ok(Step {
            observation,
            reward,
            terminated: turn == Turn::Terminated,
            truncated: turn == Turn::Truncated,
            info,
        })
    }
}

impl<E: MultiAgentEnv> Resumable for Alone<E> {
    type Snapshot = EnvSnapshot;

    fn snapshot(&self) -> EnvSnapshot {
        self.env.snapshot()
    }

    fn restore(&mut self, snapshot: &EnvSnapshot) -> Result<Option<Reset<'_>>, EnvError> {
        let restored = self.env.restore(snapshot)?;
        Ok(restored.map(|_| self.state()))
    }
}

/// Runs `work` in a pool of so many threads.
pub fn on_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .unwrap()
        .install(work)
}
