//! Automatic resets of an environment whose episode has ended.

use serde::{Deserialize, Serialize};

use super::{Env, EnvError, Info, Reset, ResetOptions, Resumable};

/// When a finished environment is reset, with the semantics of Gymnasium's `AutoresetMode`.
///
/// Let the step at time `t` end an episode:
///
/// | | step `t` returns | step `t + 1` returns |
/// |---|---|---|
/// | `NextStep` | the last observation of the episode | the first observation of the next one; the action is ignored, reward 0, neither terminated nor truncated |
/// | `SameStep` | the first observation of the next episode, with reward and flags of the ended one, whose last observation and info are `final_observation` and `final_info` | an ordinary step |
/// | `Disabled` | the last observation of the episode | [`EnvError::ResetNeeded`], until the caller has reset it |
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AutoresetMode {
    /// The step after the last one resets.
    #[default]
    NextStep,
    /// The last step itself resets.
    SameStep,
    /// The caller resets.
    Disabled,
}

/// An environment that is reset by the rule of an [`AutoresetMode`].
///
/// It keeps a copy of the current observation and info, so a loop needs no other state:
///
/// ```
/// use bufgym_env::gym::{Autoreset, AutoresetMode, Env, MakeOptions, ResetOptions, make};
///
/// let env = make("bufgym/NDT-16x1G-v0", &MakeOptions::default())?;
/// let action = vec![0.0; env.action_space().len()];
/// let mut worker = Autoreset::new(env, AutoresetMode::SameStep);
/// worker.reset(None, &ResetOptions::default())?;
/// for _ in 0..10 {
///     let before = worker.observation().to_vec();
///     let step = worker.step(&action)?;
///     // One transition for a replay memory:
///     let _ = (before, step.reward, step.next_observation(), step.terminated);
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct Autoreset<E> {
    env: E,
    mode: AutoresetMode,
    /// The next step resets ([`AutoresetMode::NextStep`] only).
    reset_due: bool,
    observation: Vec<f32>,
    info: Info,
    final_observation: Vec<f32>,
    final_info: Info,
}

/// Result of [`Autoreset::step`].
#[derive(Clone, Copy, Debug)]
pub struct AutoresetStep<'a> {
    /// Observation on which the agent acts next.
    pub observation: &'a [f32],
    /// Reward of the step; 0 where `reset` is set.
    pub reward: f64,
    /// The step reached the end of its episode.
    pub terminated: bool,
    /// The step's episode was cut short.
    pub truncated: bool,
    /// No step was made: the action was ignored and an episode begun
    /// ([`AutoresetMode::NextStep`]). Such a step is no transition to learn from.
    pub reset: bool,
    /// Info that belongs to `observation`.
    pub info: &'a Info,
    /// The last observation of the episode that this step ended ([`AutoresetMode::SameStep`]).
    pub final_observation: Option<&'a [f32]>,
    /// The info that belongs to `final_observation`.
    pub final_info: Option<&'a Info>,
}

impl<'a> AutoresetStep<'a> {
    /// Returns true if the step ended its episode.
    pub fn done(&self) -> bool {
        self.terminated || self.truncated
    }

    /// Returns the observation that the step led to, in the same episode. In every mode, a value function is
    /// bootstrapped from it.
    pub fn next_observation(&self) -> &'a [f32] {
        self.final_observation.unwrap_or(self.observation)
    }

    /// Returns the info of the step itself, with its discount, port rewards and episode statistics, in every mode.
    pub fn step_info(&self) -> &'a Info {
        self.final_info.unwrap_or(self.info)
    }
}

/// The state of an [`Autoreset`] environment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AutoresetSnapshot<S> {
    /// The state of the environment itself.
    pub env: S,
    /// The next step is a reset.
    pub reset_due: bool,
}

impl<E: Env> Autoreset<E> {
    /// Wraps `env`. It has to be reset before the first step.
    pub fn new(env: E, mode: AutoresetMode) -> Autoreset<E> {
        Autoreset {
            env,
            mode,
            reset_due: false,
            observation: Vec::new(),
            info: Info::default(),
            final_observation: Vec::new(),
            final_info: Info::default(),
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

    /// Returns the rule by which the environment is reset.
    pub fn mode(&self) -> AutoresetMode {
        self.mode
    }

    /// Returns true if the next step will ignore its action and begin an episode.
    pub fn reset_due(&self) -> bool {
        self.reset_due
    }

    /// The current observation; empty before the first reset.
    pub fn observation(&self) -> &[f32] {
        &self.observation
    }

    /// The info that belongs to the current observation.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// Begins an episode; see [`Env::reset`].
    ///
    /// # Errors
    /// Same as [`Env::reset`].
    pub fn reset(
        &mut self,
        seed: Option<u64>,
        options: &ResetOptions,
    ) -> Result<Reset<'_>, EnvError> {
        keep(
            self.env.reset(seed, options)?,
            &mut self.observation,
            &mut self.info,
        );
        self.reset_due = false;
        Ok(Reset {
            observation: &self.observation,
            info: &self.info,
        })
    }

    /// Makes one step, or one reset where the mode requires it.
    ///
    /// # Errors
    /// Same as [`Env::step`] and, where it resets, [`Env::reset`].
    pub fn step(&mut self, action: &[f32]) -> Result<AutoresetStep<'_>, EnvError> {
        if self.reset_due {
            self.reset(None, &ResetOptions::default())?;
            return Ok(self.outcome(0.0, false, false, true));
        }
        let step = self.env.step(action)?;
        let (reward, terminated, truncated) = (step.reward, step.terminated, step.truncated);
        let reached = Reset {
            observation: step.observation,
            info: step.info,
        };
        let done = step.done();
        if done && self.mode == AutoresetMode::SameStep {
            keep(reached, &mut self.final_observation, &mut self.final_info);
            self.reset(None, &ResetOptions::default())?;
        } else {
            keep(reached, &mut self.observation, &mut self.info);
            self.reset_due = done && self.mode == AutoresetMode::NextStep;
        }
        Ok(self.outcome(reward, terminated, truncated, false))
    }

    fn outcome(
        &self,
        reward: f64,
        terminated: bool,
        truncated: bool,
        reset: bool,
    ) -> AutoresetStep<'_> {
        let ended = (terminated || truncated) && self.mode == AutoresetMode::SameStep;
        AutoresetStep {
            observation: &self.observation,
            reward,
            terminated,
            truncated,
            reset,
            info: &self.info,
            final_observation: ended.then_some(&self.final_observation),
            final_info: ended.then_some(&self.final_info),
        }
    }
}

impl<E: Resumable> Autoreset<E> {
    /// Returns the state at this moment.
    pub fn snapshot(&self) -> AutoresetSnapshot<E::Snapshot> {
        AutoresetSnapshot {
            env: self.env.snapshot(),
            reset_due: self.reset_due,
        }
    }

    /// Restores the state of `snapshot`; see [`Resumable::restore`].
    ///
    /// # Errors
    /// Same as [`Resumable::restore`].
    pub fn restore(&mut self, snapshot: &AutoresetSnapshot<E::Snapshot>) -> Result<(), EnvError> {
        match self.env.restore(&snapshot.env)? {
            Some(state) => keep(state, &mut self.observation, &mut self.info),
            None => self.observation.clear(),
        }
        self.reset_due = snapshot.reset_due;
        Ok(())
    }
}

/// Copies what an environment returned into existing memory.
fn keep(from: Reset<'_>, observation: &mut Vec<f32>, info: &mut Info) {
    observation.clear();
    observation.extend_from_slice(from.observation);
    info.clone_from(from.info);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gym::testing::Walk;

    fn worker(mode: AutoresetMode) -> Autoreset<Walk> {
        let mut worker = Autoreset::new(Walk::new(3), mode);
        worker.reset(Some(5), &ResetOptions::default()).unwrap();
        worker
    }

    /// Returns observation, reward, done, reset and final observation of six steps.
    #[allow(clippy::type_complexity)]
    fn six_steps(mode: AutoresetMode) -> Vec<(Vec<f32>, f64, bool, bool, Option<Vec<f32>>)> {
        let mut worker = worker(mode);
        (0..6)
            .map(|_| {
                let step = worker.step(&[1.0]).unwrap();
                let last = step.final_observation.map(<[f32]>::to_vec);
                (
                    step.observation.to_vec(),
                    step.reward,
                    step.done(),
                    step.reset,
                    last,
                )
            })
            .collect()
    }

    // `Walk` observes [episode, position] and ends after three steps.

    #[test]
    fn next_step_returns_the_last_observation_and_then_a_reset_without_reward() {
        assert_eq!(
            six_steps(AutoresetMode::NextStep),
            [
                (vec![0.0, 1.0], 1.0, false, false, None),
                (vec![0.0, 2.0], 1.0, false, false, None),
                (vec![0.0, 3.0], 1.0, true, false, None),
                (vec![1.0, 0.0], 0.0, false, true, None),
                (vec![1.0, 1.0], 1.0, false, false, None),
                (vec![1.0, 2.0], 1.0, false, false, None),
            ]
        );
    }

    #[test]
    fn same_step_returns_the_new_observation_and_keeps_the_last_one_aside() {
        assert_eq!(
            six_steps(AutoresetMode::SameStep),
            [
                (vec![0.0, 1.0], 1.0, false, false, None),
                (vec![0.0, 2.0], 1.0, false, false, None),
                (vec![1.0, 0.0], 1.0, true, false, Some(vec![0.0, 3.0])),
                (vec![1.0, 1.0], 1.0, false, false, None),
                (vec![1.0, 2.0], 1.0, false, false, None),
                (vec![2.0, 0.0], 1.0, true, false, Some(vec![1.0, 3.0])),
            ]
        );
    }

    #[test]
    fn disabled_leaves_the_reset_to_the_caller() {
        let mut worker = worker(AutoresetMode::Disabled);
        for _ in 0..3 {
            worker.step(&[1.0]).unwrap();
        }
        assert_eq!(worker.observation(), [0.0, 3.0]);
        assert!(matches!(worker.step(&[1.0]), Err(EnvError::ResetNeeded(_))));
        worker.reset(None, &ResetOptions::default()).unwrap();
        assert_eq!(worker.step(&[1.0]).unwrap().observation, [1.0, 1.0]);
    }

    #[test]
    fn the_transition_is_the_same_in_every_mode() {
        let transition = |mode| {
            let mut worker = worker(mode);
            for _ in 0..2 {
                worker.step(&[1.0]).unwrap();
            }
            let step = worker.step(&[1.0]).unwrap();
            (
                step.next_observation().to_vec(),
                step.step_info().clone(),
                step.reward,
            )
        };
        let next = transition(AutoresetMode::NextStep);
        assert_eq!(next, transition(AutoresetMode::SameStep));
        assert_eq!(next, transition(AutoresetMode::Disabled));
        assert!(next.1.episode.is_some());
    }

    #[test]
    fn the_info_of_a_same_step_reset_is_that_of_the_new_episode() {
        let mut worker = worker(AutoresetMode::SameStep);
        for _ in 0..2 {
            worker.step(&[1.0]).unwrap();
        }
        let step = worker.step(&[1.0]).unwrap();
        assert!(step.info.episode.is_none());
        assert_eq!(step.info.discount, 1.0);
        assert_eq!(
            step.final_info.unwrap().episode.as_ref().unwrap().decisions,
            3
        );
    }

    #[test]
    fn the_action_of_a_reset_step_is_ignored_whatever_it_is() {
        let mut worker = worker(AutoresetMode::NextStep);
        for _ in 0..3 {
            worker.step(&[1.0]).unwrap();
        }
        assert!(worker.reset_due());
        assert!(worker.step(&[f32::NAN]).unwrap().reset);
    }

    #[test]
    fn a_snapshot_continues_bit_for_bit_even_where_a_reset_is_due() {
        for steps in 0..6 {
            let mut one = worker(AutoresetMode::NextStep);
            for _ in 0..steps {
                one.step(&[0.5]).unwrap();
            }
            let mut two = Autoreset::new(Walk::new(3), AutoresetMode::NextStep);
            two.restore(&one.snapshot()).unwrap();
            assert_eq!(one.observation(), two.observation());
            for _ in 0..5 {
                let (a, b) = (one.step(&[1.0]).unwrap(), two.step(&[1.0]).unwrap());
                assert_eq!(
                    (a.observation, a.reset, a.info),
                    (b.observation, b.reset, b.info)
                );
            }
        }
    }
}
