//! A small environment whose every value can be computed by hand.

use serde::{Deserialize, Serialize};

use super::{Env, EnvError, EpisodeStats, Info, Reset, ResetOptions, Resumable, Space, Step};
use bufgym_sim::units::Time;

/// Observes `[episode, position]`; the position moves by the action and the reward is the action.
/// The episode is `seed mod 5` plus the number of resets since the seed.
#[derive(Clone, Debug)]
pub struct Walk {
    pub observation_space: Space,
    pub action_space: Space,
    pub state: WalkState,
    pub length: u64,
    observation: [f32; 2],
    info: Info,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WalkState {
    pub next_episode: u64,
    pub episode: u64,
    pub position: f32,
    pub return_: f64,
    pub steps: u64,
    pub running: bool,
}

impl Walk {
    /// Terminates after `length` steps.
    pub fn new(length: u64) -> Walk {
        Walk {
            observation_space: Space::uniform_box(&[2], -1e6, 1e6),
            action_space: Space::uniform_box(&[1], -1.0, 1.0),
            state: WalkState::default(),
            length,
            observation: [0.0; 2],
            info: Info {
                port_rewards: vec![0.0],
                ..Info::default()
            },
        }
    }

    fn observe(&mut self) {
        self.observation = [self.state.episode as f32, self.state.position];
    }
}

impl Env for Walk {
    fn observation_space(&self) -> &Space {
        &self.observation_space
    }

    fn action_space(&self) -> &Space {
        &self.action_space
    }

    fn reward_components(&self) -> usize {
        1
    }

    fn reset(&mut self, seed: Option<u64>, options: &ResetOptions) -> Result<Reset<'_>, EnvError> {
        if let Some(seed) = seed {
            self.state.next_episode = seed % 5;
        }
        let mut next_episode = self.state.next_episode;
        let episode = options.trace.unwrap_or_else(|| {
            next_episode += 1;
            next_episode - 1
        });
        self.state = WalkState {
            next_episode,
            episode,
            running: true,
            ..WalkState::default()
        };
        self.observe();
        self.info.begin(0);
        Ok(Reset {
            observation: &self.observation,
            info: &self.info,
        })
    }

    fn step(&mut self, action: &[f32]) -> Result<Step<'_>, EnvError> {
        if !self.state.running {
            return Err(EnvError::ResetNeeded("walk"));
        }
        self.action_space.accept_action(action)?;
        let reward = f64::from(action[0]);
        self.state.position += action[0];
        self.state.return_ += reward;
        self.state.steps += 1;
        self.observe();
        let terminated = self.state.steps == self.length;
        self.state.running = !terminated;
        self.info.begin(0);
        self.info.port_rewards[0] = action[0];
        self.info.discount = 0.5;
        self.info.entropy_weight = 1.0;
        self.info.elapsed = Time::from_ms(1);
        self.info.episode = terminated.then(|| EpisodeStats {
            return_: self.state.return_,
            decisions: self.state.steps,
            index: self.state.episode,
            ..EpisodeStats::default()
        });
        Ok(Step {
            observation: &self.observation,
            reward,
            terminated,
            truncated: false,
            info: &self.info,
        })
    }
}

impl Resumable for Walk {
    type Snapshot = WalkState;

    fn snapshot(&self) -> WalkState {
        self.state
    }

    fn restore(&mut self, snapshot: &WalkState) -> Result<Option<Reset<'_>>, EnvError> {
        self.state = *snapshot;
        self.observe();
        Ok(Some(Reset {
            observation: &self.observation,
            info: &self.info,
        }))
    }
}
