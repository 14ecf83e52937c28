//! One deliberately broken environment per rule.

use super::*;
use crate::gym::testing::Walk;
use crate::gym::{BoxSpace, EpisodeStats, Reset, Step};
use std::sync::atomic::{AtomicU64, Ordering};

/// Broken rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    EmptySpace,
    BoundsMissing,
    BoundsCrossed,
    UnboundedAction,
    ResetOutside,
    ResetWithReward,
    ResetWithDiscount,
    ResetWithStats,
    StepOutside,
    RewardNan,
    RewardSum,
    DiscountZero,
    ComponentsMissing,
    PrivilegedWithoutSpace,
    StepsUnreset,
    NeverEnds,
    StatsMissing,
    StatsEarly,
    StatsWrong,
    StepsPastTheEnd,
    TakesAnyAction,
    MovesOnBadAction,
    SeedIgnored,
    Unseeded,
    SequenceStuck,
    SharedState,
}

struct Broken {
    walk: Walk,
    fault: Fault,
    info: Info,
    observation: Vec<f32>,
    calls: u64,
    shared: &'static AtomicU64,
}

impl Broken {
    fn new(fault: Fault, shared: &'static AtomicU64) -> Broken {
        let mut walk = Walk::new(if fault == Fault::NeverEnds {
            u64::MAX
        } else {
            5
        });
        let broken = |low: Vec<f32>, high: Vec<f32>, shape: Vec<usize>| {
            Space::Box(BoxSpace { shape, low, high })
        };
        match fault {
            Fault::EmptySpace => walk.observation_space = broken(vec![], vec![], vec![0]),
            Fault::BoundsMissing => {
                walk.observation_space = broken(vec![0.0], vec![9.0], vec![2]);
            }
            Fault::BoundsCrossed => walk.action_space = Space::uniform_box(&[1], 1.0, -1.0),
            Fault::UnboundedAction => {
                walk.action_space = Space::uniform_box(&[1], -1.0, f32::INFINITY);
            }
            _ => {}
        }
        let (info, observation) = (Info::default(), Vec::new());
        Broken {
            walk,
            fault,
            info,
            observation,
            calls: 0,
            shared,
        }
    }
}

impl Env for Broken {
    fn observation_space(&self) -> &Space {
        self.walk.observation_space()
    }

    fn action_space(&self) -> &Space {
        self.walk.action_space()
    }

    fn reward_components(&self) -> usize {
        1
    }

    fn reset(&mut self, seed: Option<u64>, options: &ResetOptions) -> Result<Reset<'_>, EnvError> {
        self.calls += 1;
        let seed = match self.fault {
            Fault::SeedIgnored => seed.map(|_| 0),
            Fault::SequenceStuck => Some(seed.unwrap_or(1)),
            _ => seed,
        };
        let reset = self.walk.reset(seed, options)?;
        self.info.clone_from(reset.info);
        self.observation = reset.observation.to_vec();
        match self.fault {
            Fault::ResetOutside => self.observation[0] = f32::NAN,
            Fault::ResetWithReward => self.info.port_rewards[0] = 1.0,
            Fault::ResetWithDiscount => self.info.discount = 0.0,
            Fault::ResetWithStats => self.info.episode = Some(EpisodeStats::default()),
            Fault::Unseeded => self.observation[1] = self.calls as f32,
            _ => {}
        }
        Ok(Reset {
            observation: &self.observation,
            info: &self.info,
        })
    }

    fn step(&mut self, action: &[f32]) -> Result<Step<'_>, EnvError> {
        let shared = self.shared.fetch_add(1, Ordering::Relaxed);
        let ready = self.walk.state.running;
        let over = !ready && self.walk.state.steps > 0;
        if (self.fault == Fault::StepsUnreset && !ready && !over)
            || (self.fault == Fault::StepsPastTheEnd && over)
        {
            self.walk.state.running = true;
        }
        let checked = self.walk.action_space.accept_action(action);
        let mut replaced = action.to_vec();
        match self.fault {
            Fault::TakesAnyAction if checked.is_err() => replaced = vec![0.0],
            Fault::MovesOnBadAction if checked.is_err() => self.walk.state.position += 1.0,
            _ => {}
        }
        let length = self.walk.length;
        let step = self.walk.step(&replaced)?;
        let (mut reward, terminated, truncated) = (step.reward, step.terminated, step.truncated);
        self.info.clone_from(step.info);
        self.observation = step.observation.to_vec();
        match self.fault {
            Fault::StepOutside => self.observation.push(0.0),
            Fault::RewardNan => reward = f64::NAN,
            Fault::RewardSum => reward += 0.1,
            Fault::DiscountZero => self.info.discount = 0.0,
            Fault::ComponentsMissing => self.info.port_rewards.clear(),
            Fault::PrivilegedWithoutSpace => self.info.privileged = vec![1.0],
            Fault::StatsMissing => self.info.episode = None,
            Fault::StatsEarly => self.info.episode = Some(EpisodeStats::default()),
            Fault::StatsWrong if terminated => {
                self.info.episode = Some(EpisodeStats {
                    decisions: length + 1,
                    ..EpisodeStats::default()
                });
            }
            Fault::SharedState => self.observation[1] += shared as f32,
            _ => {}
        }
        Ok(Step {
            observation: &self.observation,
            reward,
            terminated,
            truncated,
            info: &self.info,
        })
    }
}

fn found(fault: Fault) -> Vec<Violation> {
    // Counts from zero for every fault, as a process-wide state would.
    let shared: &'static AtomicU64 = Box::leak(Box::new(AtomicU64::new(0)));
    let options = CheckOptions {
        max_episode_steps: 1_000,
        ..CheckOptions::default()
    };
    match check_env(|| Broken::new(fault, shared), &options) {
        Ok(()) => Vec::new(),
        Err(violations) => violations.0,
    }
}

/// Asserts that `check` fails, with a message that contains `text`.
fn assert_found(fault: Fault, check: &str, text: &str) {
    let violations = found(fault);
    assert!(
        violations
            .iter()
            .any(|v| v.check == check && v.message.contains(text)),
        "{fault:?}: {violations:#?}"
    );
}

#[test]
fn a_sound_environment_passes() {
    assert_eq!(found(Fault::None), []);
}

#[test]
fn spaces_that_make_no_sense() {
    assert_found(
        Fault::EmptySpace,
        "check_spaces",
        "observation space has no elements",
    );
    assert_found(
        Fault::BoundsMissing,
        "check_spaces",
        "1 bounds for 2 values",
    );
    assert_found(
        Fault::BoundsCrossed,
        "check_spaces",
        "[1, -1], which contain nothing",
    );
    assert_found(
        Fault::UnboundedAction,
        "check_spaces",
        "action space has an infinite bound",
    );
}

#[test]
fn resets_that_return_what_they_must_not() {
    assert_found(
        Fault::ResetOutside,
        "check_reset",
        "value NaN at 0 is not in",
    );
    assert_found(
        Fault::ResetWithReward,
        "check_reset",
        "port rewards after reset: [1.0]",
    );
    assert_found(
        Fault::ResetWithDiscount,
        "check_reset",
        "discount after reset is 0, not 1",
    );
    assert_found(
        Fault::ResetWithStats,
        "check_reset",
        "statistics of an episode",
    );
}

#[test]
fn steps_that_return_what_they_must_not() {
    assert_found(
        Fault::StepOutside,
        "check_step",
        "3 values given where shape [2] has 2",
    );
    assert_found(Fault::RewardNan, "check_step", "the reward is NaN");
    assert_found(Fault::RewardSum, "check_step", "port rewards add up to");
    assert_found(
        Fault::DiscountZero,
        "check_step",
        "discount 0 is not in (0, 1]",
    );
    assert_found(Fault::ComponentsMissing, "check_step", "has 0 port rewards");
    assert_found(
        Fault::PrivilegedWithoutSpace,
        "check_step",
        "there is no space",
    );
}

#[test]
fn steps_at_the_wrong_time() {
    assert_found(
        Fault::StepsUnreset,
        "check_step_before_reset",
        "was accepted",
    );
    assert_found(
        Fault::StepsPastTheEnd,
        "check_end",
        "step after the end of an episode was",
    );
}

#[test]
fn ends_without_what_belongs_to_them() {
    assert_found(
        Fault::NeverEnds,
        "check_end",
        "did not end within 1000 steps",
    );
    assert_found(Fault::StatsMissing, "check_end", "has no statistics");
    assert_found(
        Fault::StatsEarly,
        "check_end",
        "statistics of an episode that continues",
    );
    assert_found(
        Fault::StatsWrong,
        "check_end",
        "5 steps, but 6 in the statistics",
    );
}

#[test]
fn actions_that_should_have_been_refused() {
    assert_found(
        Fault::TakesAnyAction,
        "check_invalid_actions",
        "was accepted",
    );
    assert_found(
        Fault::MovesOnBadAction,
        "check_invalid_actions",
        "changed what follows",
    );
}

#[test]
fn randomness_that_does_not_follow_the_seed() {
    assert_found(Fault::SeedIgnored, "check_seed_matters", "four seeds");
    assert_found(Fault::Unseeded, "check_seed", "call 0 after the same seed");
    assert_found(
        Fault::SequenceStuck,
        "check_sequence",
        "begin in the same state",
    );
}

#[test]
fn state_shared_between_environments() {
    assert_found(
        Fault::SharedState,
        "check_independence",
        "while a second environment",
    );
}

#[test]
fn an_environment_without_chance_passes_when_it_says_so() {
    let options = CheckOptions {
        stochastic: false,
        ..CheckOptions::default()
    };
    let shared: &'static AtomicU64 = Box::leak(Box::new(AtomicU64::new(0)));
    assert_eq!(
        check_env(|| Broken::new(Fault::SequenceStuck, shared), &options),
        Ok(())
    );
}
