//! Wrappers: environments that change the input or the output of another environment.

use std::collections::VecDeque;

use bufgym_util::convert::floor_usize;

use super::{Env, EnvError, Info, Reset, ResetOptions, Resumable, Space, Step};
use crate::control::{ALPHAS, cell_centre};

/// Translates actions into those of the wrapped environment, like Gymnasium's wrapper of this name.
///
/// [`discrete_alpha`] makes one for agents that choose from a list.
#[derive(Clone, Debug)]
pub struct TransformAction<E> {
    env: E,
    action_space: Space,
    transform: fn(&[f32], &mut [f32]),
    /// The translated action.
    action: Vec<f32>,
}

impl<E: Env> TransformAction<E> {
    /// Wraps `env`. Actions are elements of `action_space`; `transform` translates its first
    /// argument into an action of `env` and writes it over its second, which has that length.
    pub fn new(
        env: E,
        action_space: Space,
        transform: fn(&[f32], &mut [f32]),
    ) -> TransformAction<E> {
        let action = vec![0.0; env.action_space().len()];
        TransformAction {
            env,
            action_space,
            transform,
            action,
        }
    }

    /// The wrapped environment.
    pub fn env(&self) -> &E {
        &self.env
    }

    /// Removes the wrapper.
    pub fn into_inner(self) -> E {
        self.env
    }
}

impl<E: Env> Env for TransformAction<E> {
    fn observation_space(&self) -> &Space {
        self.env.observation_space()
    }

    fn action_space(&self) -> &Space {
        &self.action_space
    }

    fn privileged_space(&self) -> Option<&Space> {
        self.env.privileged_space()
    }

    fn reward_components(&self) -> usize {
        self.env.reward_components()
    }

    fn reset(&mut self, seed: Option<u64>, options: &ResetOptions) -> Result<Reset<'_>, EnvError> {
        self.env.reset(seed, options)
    }

    fn step(&mut self, action: &[f32]) -> Result<Step<'_>, EnvError> {
        self.action_space.accept_action(action)?;
        (self.transform)(action, &mut self.action);
        self.env.step(&self.action)
    }
}

impl<E: Resumable> Resumable for TransformAction<E> {
    type Snapshot = E::Snapshot;

    fn snapshot(&self) -> E::Snapshot {
        self.env.snapshot()
    }

    fn restore(&mut self, snapshot: &E::Snapshot) -> Result<Option<Reset<'_>>, EnvError> {
        self.env.restore(snapshot)
    }
}

/// Number of values of α.
#[expect(clippy::cast_possible_truncation, reason = "there are eight")]
const LEVELS: u32 = ALPHAS.len() as u32;

/// Actions as indices of α, from `0` for `2^-2` to `7` for `2^5`, for agents that choose from a
/// list. The actions of `env` must be cells of [-1, 1] as in [`BufferEnv`](super::BufferEnv).
pub fn discrete_alpha<E: Env>(env: E) -> TransformAction<E> {
    let indices = Space::uniform_discrete(env.action_space().shape(), LEVELS);
    TransformAction::new(env, indices, |action, centres| {
        for (centre, index) in centres.iter_mut().zip(action) {
            *centre = cell_centre(floor_usize(f64::from(*index)));
        }
    })
}

/// Keeps the return and the length of the last episodes of any environment, and writes them into [`Info::episode`],
/// like Gymnasium's wrapper of this name.
#[derive(Clone, Debug)]
pub struct RecordEpisodeStatistics<E> {
    env: E,
    capacity: usize,
    returns: VecDeque<f64>,
    lengths: VecDeque<u64>,
    return_: f64,
    discounted_return: f64,
    discount: f64,
    length: u64,
    info: Info,
}

impl<E: Env> RecordEpisodeStatistics<E> {
    /// Wraps `env` and remembers the last `capacity` episodes.
    pub fn new(env: E, capacity: usize) -> RecordEpisodeStatistics<E> {
        RecordEpisodeStatistics {
            env,
            capacity,
            returns: VecDeque::with_capacity(capacity),
            lengths: VecDeque::with_capacity(capacity),
            return_: 0.0,
            discounted_return: 0.0,
            discount: 1.0,
            length: 0,
            info: Info::default(),
        }
    }

    /// Sums of rewards of the last episodes that ended, the latest last.
    pub fn returns(&self) -> &VecDeque<f64> {
        &self.returns
    }

    /// Numbers of steps of the last episodes that ended, the latest last.
    pub fn lengths(&self) -> &VecDeque<u64> {
        &self.lengths
    }

    /// The wrapped environment.
    pub fn env(&self) -> &E {
        &self.env
    }

    /// Removes the wrapper.
    pub fn into_inner(self) -> E {
        self.env
    }
}

impl<E: Env> Env for RecordEpisodeStatistics<E> {
    fn observation_space(&self) -> &Space {
        self.env.observation_space()
    }

    fn action_space(&self) -> &Space {
        self.env.action_space()
    }

    fn privileged_space(&self) -> Option<&Space> {
        self.env.privileged_space()
    }

    fn reward_components(&self) -> usize {
        self.env.reward_components()
    }

    fn reset(&mut self, seed: Option<u64>, options: &ResetOptions) -> Result<Reset<'_>, EnvError> {
        (
            self.return_,
            self.discounted_return,
            self.discount,
            self.length,
        ) = (0.0, 0.0, 1.0, 0);
        self.env.reset(seed, options)
    }

    fn step(&mut self, action: &[f32]) -> Result<Step<'_>, EnvError> {
        let mut step = self.env.step(action)?;
        self.return_ += step.reward;
        self.discounted_return += self.discount * step.reward;
        self.discount *= f64::from(step.info.discount);
        self.length += 1;
        if step.done() {
            remember(&mut self.returns, self.return_, self.capacity);
            remember(&mut self.lengths, self.length, self.capacity);
            self.info.clone_from(step.info);
            let stats = self.info.episode.get_or_insert_default();
            stats.return_ = self.return_;
            stats.discounted_return = self.discounted_return;
            stats.decisions = self.length;
            step.info = &self.info;
        }
        Ok(step)
    }
}

fn remember<T>(queue: &mut VecDeque<T>, value: T, capacity: usize) {
    queue.push_back(value);
    while queue.len() > capacity {
        queue.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gym::testing::Walk;

    const PLAIN: ResetOptions = ResetOptions { trace: None };

    #[test]
    fn an_index_becomes_the_centre_of_its_cell() {
        let mut env = discrete_alpha(Walk::new(9));
        env.reset(Some(0), &PLAIN).unwrap();
        for index in 0..8 {
            let reward = env.step(&[index as f32]).unwrap().reward;
            assert_eq!(reward, f64::from(cell_centre(index)));
        }
        assert!(matches!(env.step(&[8.0]), Err(EnvError::InvalidAction(_))));
    }

    #[test]
    fn the_last_episodes_are_remembered() {
        let mut env = RecordEpisodeStatistics::new(Walk::new(2), 2);
        for value in [0.25, 0.5, 1.0] {
            env.reset(None, &PLAIN).unwrap();
            assert!(env.step(&[value]).unwrap().info.episode.is_none());
            let step = env.step(&[value]).unwrap();
            let stats = step.info.episode.as_ref().unwrap();
            assert_eq!(stats.return_, 2.0 * f64::from(value));
            assert_eq!(stats.discounted_return, 1.5 * f64::from(value));
        }
        assert_eq!(env.returns(), &[1.0, 2.0]);
        assert_eq!(env.lengths(), &[2, 2]);
    }

    #[test]
    fn an_abandoned_episode_is_not_counted() {
        let mut env = RecordEpisodeStatistics::new(Walk::new(2), 10);
        env.reset(None, &PLAIN).unwrap();
        env.step(&[1.0]).unwrap();
        env.reset(None, &PLAIN).unwrap();
        for _ in 0..2 {
            env.step(&[0.5]).unwrap();
        }
        assert_eq!(env.returns(), &[1.0]);
    }
}
