//! One deliberately broken environment per rule.

use super::*;
use crate::control::ControlOptions;
use crate::gym::testing::Relay;
use crate::gym::{BufferEnvOptions, EnvSnapshot, EpisodeStats, NetworkEnv, Space};
use bufgym_sim::scenario::Scenario;
use std::sync::atomic::{AtomicU64, Ordering};

/// Broken rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    NoAgents,
    EmptySpace,
    PortsDiffer,
    UnboundedAction,
    BeginsOver,
    UnknownAgent,
    ResetOutside,
    ResetWithReward,
    ResetWithStats,
    ToldEarly,
    OldReward,
    ToldInAnothersTurn,
    Outside,
    RewardNan,
    RewardSum,
    DiscountZero,
    ComponentsMissing,
    FirstTurnWithDuration,
    PaidWithoutTurn,
    WrongClock,
    WrongReturn,
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
    ForgetsAnAction,
    ForgetsTheSequence,
}

struct Broken {
    relay: Relay,
    fault: Fault,
    calls: u64,
    shared: &'static AtomicU64,
}

impl Broken {
    fn new(fault: Fault, shared: &'static AtomicU64) -> Broken {
        let mut relay = Relay::new(match fault {
            Fault::NeverEnds => u64::MAX,
            // Too short for agent 2 to have a turn in most episodes.
            Fault::PaidWithoutTurn => 2,
            _ => 7,
        });
        let spaces = &mut relay.agents[1].spaces;
        match fault {
            Fault::EmptySpace => spaces[0] = Space::uniform_box(&[0, 2], 0.0, 1.0),
            Fault::PortsDiffer => spaces[2] = Space::uniform_box(&[3, 1], 0.0, 1.0),
            Fault::UnboundedAction => spaces[1] = Space::uniform_box(&[1], -1.0, f32::INFINITY),
            Fault::NoAgents => relay.agents.clear(),
            _ => {}
        }
        Broken {
            relay,
            fault,
            calls: 0,
            shared,
        }
    }

    /// Damages the data after a turn has been reached.
    fn spoil(&mut self, turn: Turn) -> Turn {
        let Turn::Agent(at) = turn else {
            self.spoil_end();
            return turn;
        };
        let agent = &mut self.relay.agents[at];
        match self.fault {
            Fault::Outside => agent.observation.push(0.0),
            Fault::RewardNan => agent.reward = f64::NAN,
            Fault::RewardSum if agent.reward != 0.0 => agent.reward += 0.1,
            Fault::DiscountZero if agent.info.discount < 1.0 => agent.info.discount = 0.0,
            Fault::ComponentsMissing => agent.info.port_rewards.clear(),
            Fault::StatsEarly => self.relay.stats = Some(EpisodeStats::default()),
            Fault::WrongClock if at == 0 => {
                agent.info.elapsed = Time::from_ps(agent.info.elapsed.as_ps() / 8);
            }
            Fault::ToldInAnothersTurn => {
                let other = (at + 1) % self.relay.agents.len();
                self.relay.agents[other].observation[1] += 1.0;
            }
            Fault::FirstTurnWithDuration if agent.info.discount == 1.0 => {
                agent.info.elapsed = Time::from_ms(self.calls % 2);
            }
            _ => {}
        }
        turn
    }

    fn spoil_end(&mut self) {
        let relay = &mut self.relay;
        match (self.fault, &mut relay.stats) {
            (Fault::StatsMissing, stats) => *stats = None,
            (Fault::StatsWrong, Some(stats)) => stats.decisions += 1,
            (Fault::WrongReturn, Some(stats)) => stats.return_ *= 1.01,
            (Fault::PaidWithoutTurn, _) => relay.agents[2].reward += 1.0,
            _ => {}
        }
    }
}

impl MultiAgentEnv for Broken {
    fn agents(&self) -> usize {
        self.relay.agents()
    }

    fn observation_space(&self, agent: usize) -> &Space {
        self.relay.observation_space(agent)
    }

    fn action_space(&self, agent: usize) -> &Space {
        self.relay.action_space(agent)
    }

    fn privileged_space(&self, agent: usize) -> &Space {
        self.relay.privileged_space(agent)
    }

    fn reset(&mut self, seed: Option<u64>, options: &ResetOptions) -> Result<Turn, EnvError> {
        self.calls += 1;
        let seed = match self.fault {
            Fault::SeedIgnored => seed.map(|_| 0),
            Fault::SequenceStuck => Some(seed.unwrap_or(1)),
            _ => seed,
        };
        let old = self.relay.agents[0].reward;
        let turn = self.relay.reset(seed, options)?;
        let at = self.relay.at();
        let other = (at + 1) % self.relay.agents.len();
        let agents = &mut self.relay.agents;
        match self.fault {
            Fault::BeginsOver => return Ok(Turn::Terminated),
            Fault::UnknownAgent => return Ok(Turn::Agent(3)),
            Fault::ResetOutside => agents[at].observation[0] = f32::NAN,
            Fault::ResetWithReward => agents[at].info.port_rewards[0] = 1e-5,
            Fault::ResetWithStats => self.relay.stats = Some(EpisodeStats::default()),
            Fault::ToldEarly => agents[other].observation[0] = 1.0,
            Fault::OldReward if at != 0 => agents[0].reward = old,
            Fault::Unseeded => agents[at].observation[1] = self.calls as f32,
            _ => {}
        }
        Ok(turn)
    }

    fn step(&mut self, action: &[f32]) -> Result<Turn, EnvError> {
        self.calls += 1;
        let shared = self.shared.fetch_add(1, Ordering::Relaxed);
        let over = !self.relay.running && self.relay.stats.is_some();
        let unreset = !self.relay.running && !over;
        if (self.fault == Fault::StepsUnreset && unreset)
            || (self.fault == Fault::StepsPastTheEnd && over)
        {
            return Ok(Turn::Agent(0));
        }
        let at = self.relay.at();
        let mut action = action.to_vec();
        let accepted = self.relay.action_space(at).contains(&action);
        match self.fault {
            Fault::TakesAnyAction if !accepted => action = vec![0.0; [2, 1, 1][at]],
            Fault::MovesOnBadAction if !accepted => self.relay.episode += 5,
            _ => {}
        }
        let turn = self.relay.step(&action)?;
        if let (Fault::SharedState, Turn::Agent(at)) = (self.fault, turn) {
            self.relay.agents[at].observation[1] += shared as f32;
        }
        Ok(self.spoil(turn))
    }

    fn observation(&self, agent: usize) -> &[f32] {
        self.relay.observation(agent)
    }

    fn reward(&self, agent: usize) -> f64 {
        self.relay.reward(agent)
    }

    fn info(&self, agent: usize) -> &Info {
        self.relay.info(agent)
    }

    fn episode(&self) -> Option<&EpisodeStats> {
        self.relay.episode()
    }

    fn fork(&self) -> Box<dyn MultiAgentEnv> {
        self.relay.fork()
    }

    fn snapshot(&self) -> EnvSnapshot {
        let mut snapshot = self.relay.snapshot();
        match (self.fault, &mut snapshot.episode) {
            (Fault::ForgetsAnAction, Some(episode)) if !episode.actions.is_empty() => {
                let value = episode.actions.len() - 4;
                episode.actions[value..].copy_from_slice(&0.0_f32.to_le_bytes());
            }
            (Fault::ForgetsTheSequence, _) => snapshot.next = 0,
            _ => {}
        }
        snapshot
    }

    fn restore(&mut self, snapshot: &EnvSnapshot) -> Result<Option<Turn>, EnvError> {
        self.relay.restore(snapshot)
    }
}

fn check(fault: Fault, stochastic: bool) -> Vec<Violation> {
    // Counts from zero for every fault, as a process-wide state would.
    let shared: &'static AtomicU64 = Box::leak(Box::new(AtomicU64::new(0)));
    let options = CheckOptions {
        steps: 30,
        max_episode_steps: 100,
        stochastic,
        ..CheckOptions::default()
    };
    match check_multi_agent_env(|| Broken::new(fault, shared), &options) {
        Ok(()) => Vec::new(),
        Err(violations) => violations.0,
    }
}

/// Asserts that the check `name` fails, with a message that contains `text`.
fn assert_found(fault: Fault, name: &str, text: &str) {
    let violations = check(fault, true);
    assert!(
        violations
            .iter()
            .any(|v| v.check == name && v.message.contains(text)),
        "{fault:?}: {violations:#?}"
    );
}

#[test]
fn a_sound_environment_passes() {
    assert_eq!(check(Fault::None, true), []);
    let shared: &'static AtomicU64 = Box::leak(Box::new(AtomicU64::new(0)));
    let truncating = || {
        let mut env = Broken::new(Fault::None, shared);
        env.relay.truncates = true;
        env
    };
    let options = CheckOptions::default();
    assert_eq!(check_multi_agent_env(truncating, &options), Ok(()));
}

#[test]
fn a_network_of_switches_passes() {
    let mut scenario = Scenario::preset("leafspine-4x4").unwrap();
    let traffic = ["warmup_ms=0", "measure_ms=1", "load=0.1", "query_rate=1500"];
    for setting in traffic.iter().chain(&["max_decisions=6"]) {
        scenario.set(setting).unwrap();
    }
    let options = BufferEnvOptions {
        scenario,
        control: ControlOptions {
            low_level: "dt+early".parse().unwrap(),
            ..ControlOptions::default()
        },
        ..BufferEnvOptions::default()
    };
    let make = || -> NetworkEnv { NetworkEnv::new(options.clone()).unwrap() };
    let check = CheckOptions {
        steps: 9,
        ..CheckOptions::default()
    };
    assert_eq!(check_multi_agent_env(make, &check), Ok(()));
}

#[test]
fn agents_and_spaces_that_make_no_sense() {
    assert_found(Fault::NoAgents, "check_spaces", "there are no agents");
    let empty = "agent 1: the observation space has no elements";
    assert_found(Fault::EmptySpace, "check_spaces", empty);
    let ports = "agent 1: its spaces begin with [1, 1, 3], not all with its ports";
    assert_found(Fault::PortsDiffer, "check_spaces", ports);
    let unbounded = "agent 1: the action space has an infinite bound";
    assert_found(Fault::UnboundedAction, "check_spaces", unbounded);
}

#[test]
fn resets_that_tell_what_they_must_not() {
    let over = "reset led to Terminated, not to a turn";
    assert_found(Fault::BeginsOver, "check_reset", over);
    let unknown = "reset led to the turn of agent 3 of 3";
    assert_found(Fault::UnknownAgent, "check_reset", unknown);
    assert_found(
        Fault::ResetOutside,
        "check_reset",
        "value NaN at 0 is not in",
    );
    assert_found(
        Fault::ResetWithReward,
        "check_reset",
        "has the port rewards [1e-5",
    );
    assert_found(
        Fault::ResetWithStats,
        "check_reset",
        "statistics of an episode",
    );
    assert_found(
        Fault::ToldEarly,
        "check_reset",
        "has an observation before its first turn",
    );
    assert_found(
        Fault::OldReward,
        "check_turns",
        "after reset: agent 0 has the reward",
    );
}

#[test]
fn turns_that_tell_what_they_must_not() {
    let changed = "what agent 1 knows changed at the turn of agent 0";
    assert_found(Fault::ToldInAnothersTurn, "check_turns", changed);
    assert_found(Fault::Outside, "check_turns", "values given where shape");
    assert_found(Fault::RewardNan, "check_turns", "is NaN");
    assert_found(Fault::RewardSum, "check_turns", "port rewards add up to");
    assert_found(Fault::DiscountZero, "check_turns", "0 is not in (0, 1]");
    assert_found(Fault::ComponentsMissing, "check_turns", "has 0 rewards of");
    let duration = "has a duration of 1000000000 ps without an interval";
    assert_found(Fault::FirstTurnWithDuration, "check_turns", duration);
    let paid = "agent 2 has the reward 1 without an interval";
    assert_found(Fault::PaidWithoutTurn, "check_turns", paid);
}

#[test]
fn intervals_that_do_not_add_up() {
    assert_found(
        Fault::WrongClock,
        "check_intervals",
        "ps before the end by the intervals of",
    );
    assert_found(Fault::WrongReturn, "check_intervals", "the return is");
}

#[test]
fn steps_at_the_wrong_time() {
    assert_found(
        Fault::StepsUnreset,
        "check_step_before_reset",
        "was accepted",
    );
    let past = "step after the end of an episode was accepted";
    assert_found(Fault::StepsPastTheEnd, "check_end", past);
}

#[test]
fn ends_without_what_belongs_to_them() {
    assert_found(
        Fault::NeverEnds,
        "check_end",
        "did not end within 100 steps",
    );
    assert_found(Fault::StatsMissing, "check_end", "no statistics");
    assert_found(
        Fault::StatsEarly,
        "check_end",
        "an episode that continues after 1 steps",
    );
    assert_found(
        Fault::StatsWrong,
        "check_end",
        "7 steps, but 8 in the statistics",
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
    assert_found(
        Fault::Unseeded,
        "check_seed",
        "call 0 gave another result after the same seed",
    );
    assert_found(
        Fault::SequenceStuck,
        "check_sequence",
        "begin in the same state",
    );
}

#[test]
fn state_shared_between_environments() {
    let shared = "while a second environment was in use";
    assert_found(Fault::SharedState, "check_independence", shared);
}

#[test]
fn snapshots_that_are_not_the_whole_state() {
    assert_found(Fault::ForgetsAnAction, "check_snapshots", "restored after");
    assert_found(Fault::ForgetsTheSequence, "check_snapshots", "behind them");
}

#[test]
fn an_environment_without_chance_passes_when_it_says_so() {
    // The episodes of this environment are all equal.
    assert_eq!(check(Fault::SequenceStuck, false), []);
}
