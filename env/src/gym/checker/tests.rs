//! One deliberately broken environment per rule, with one agent where the rule is the same for one, and with several.

use super::*;
use crate::control::ControlOptions;
use crate::gym::testing::{Alone, Privileged, Relay};
use crate::gym::{BoxSpace, BufferEnvOptions, EnvError, EnvSnapshot, EpisodeStats, Info};
use crate::gym::{NetworkEnv, ResetOptions, Space, Turn};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::units::Duration;
use std::sync::atomic::{AtomicU64, Ordering};

/// Broken rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    None,
    // With any number of agents.
    EmptySpace,
    BoundsMissing,
    BoundsCrossed,
    UnboundedAction,
    ResetOutside,
    ResetWithReward,
    ResetWithDiscount,
    ResetWithStats,
    Outside,
    RewardNan,
    RewardSum,
    DiscountZero,
    ComponentsMissing,
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
    // With one agent.
    PrivilegedWithoutSpace,
    // With several agents.
    NoAgents,
    PortsDiffer,
    BeginsOver,
    UnknownAgent,
    ToldEarly,
    OldReward,
    ToldInAnothersTurn,
    FirstTurnWithDuration,
    PaidWithoutTurn,
    WrongClock,
    WrongReturn,
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
    /// Breaks the spaces of the last agent that has turns in every episode.
    fn new(ports: &[usize], fault: Fault, shared: &'static AtomicU64) -> Broken {
        let length = match fault {
            Fault::NeverEnds => u64::MAX,
            // Too short for agent 2 to have a turn in most episodes.
            Fault::PaidWithoutTurn => 2,
            _ => 7,
        };
        let mut relay = Relay::of(ports, length);
        let spaces = &mut relay.agents[ports.len() / 2].spaces;
        match fault {
            Fault::EmptySpace => spaces[0] = Space::uniform_box(&[0, 2], 0.0, 1.0),
            Fault::BoundsMissing => {
                spaces[0] = Space::Box(BoxSpace {
                    shape: vec![2],
                    low: vec![0.0],
                    high: vec![9.0],
                });
            }
            Fault::BoundsCrossed => spaces[1] = Space::uniform_box(&[1], 1.0, -1.0),
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
                agent.info.elapsed = agent.info.elapsed / 8;
            }
            Fault::ToldInAnothersTurn => {
                let other = (at + 1) % self.relay.agents.len();
                self.relay.agents[other].observation[1] += 1.0;
            }
            Fault::FirstTurnWithDuration if agent.info.discount == 1.0 => {
                agent.info.elapsed = Duration::from_ms(self.calls % 2);
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
            Fault::ResetWithDiscount => agents[at].info.discount = 0.5,
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
            Fault::TakesAnyAction if !accepted => {
                action = vec![0.0; self.relay.action_space(at).len()]
            }
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

fn options() -> CheckOptions {
    CheckOptions {
        steps: 30,
        max_episode_steps: 100,
        ..CheckOptions::default()
    }
}

/// Returns a count from zero for every fault, as a process-wide state would.
fn shared() -> &'static AtomicU64 {
    Box::leak(Box::new(AtomicU64::new(0)))
}

/// Checks an environment with one agent.
fn check_one(fault: Fault, options: &CheckOptions) -> Result<(), Violations> {
    let shared = shared();
    let make = || {
        let privileged = match fault {
            Fault::PrivilegedWithoutSpace => Privileged::ValuesOnly,
            _ => Privileged::SpaceAndValues,
        };
        Alone::of(Broken::new(&[2], fault, shared), privileged)
    };
    check_env(make, options)
}

/// Checks an environment with several agents.
fn check_several(fault: Fault, options: &CheckOptions) -> Result<(), Violations> {
    let shared = shared();
    check_multi_agent_env(|| Broken::new(&[2, 1, 1], fault, shared), options)
}

/// Asserts that the check `name` fails with a message that contains `text`.
fn assert_among(fault: Fault, checked: Result<(), Violations>, name: &str, text: &str) {
    let violations = checked.err().map_or(Vec::new(), |violations| violations.0);
    let mut found = violations.iter();
    let found = found.any(|v| v.check == name && v.message.contains(text));
    assert!(found, "{fault:?}: {violations:#?}");
}

/// Asserts that the check `name` fails with several agents.
fn assert_found_in_several(fault: Fault, name: &str, text: &str) {
    assert_among(fault, check_several(fault, &options()), name, text);
}

/// Asserts that the check `name` fails with one agent and with several.
fn assert_found(fault: Fault, name: &str, text: &str) {
    assert_among(fault, check_one(fault, &options()), name, text);
    assert_found_in_several(fault, name, text);
}

#[test]
fn a_sound_environment_passes() {
    assert_eq!(check_one(Fault::None, &options()), Ok(()));
    assert_eq!(check_several(Fault::None, &options()), Ok(()));
    let shared = shared();
    let truncating = || {
        let mut env = Broken::new(&[2, 1, 1], Fault::None, shared);
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
    for (fault, text) in [
        (Fault::EmptySpace, "observation space has no elements"),
        (Fault::BoundsMissing, "1 bounds for 2 values"),
        (Fault::BoundsCrossed, "[1, -1], which contain nothing"),
        (Fault::UnboundedAction, "action space has an infinite bound"),
    ] {
        assert_found(fault, "check_spaces", text);
    }
    for (fault, text) in [
        (Fault::NoAgents, "there are no agents"),
        (
            Fault::EmptySpace,
            "agent 1: the observation space has no elements",
        ),
        (
            Fault::PortsDiffer,
            "agent 1: its spaces begin with [1, 1, 3], not all with its ports",
        ),
    ] {
        assert_found_in_several(fault, "check_spaces", text);
    }
}

#[test]
fn resets_that_tell_what_they_must_not() {
    for (fault, text) in [
        (Fault::ResetOutside, "value NaN at 0 is not in"),
        (Fault::ResetWithReward, "the port rewards [1e-5"),
        (Fault::ResetWithDiscount, "the discount 0.5, not 1,"),
        (Fault::ResetWithStats, "statistics of an episode"),
    ] {
        assert_found(fault, "check_reset", text);
    }
    for (fault, text) in [
        (Fault::BeginsOver, "reset led to Terminated, not to a turn"),
        (Fault::UnknownAgent, "reset led to the turn of agent 3 of 3"),
        (Fault::ToldEarly, "has an observation before its first turn"),
    ] {
        assert_found_in_several(fault, "check_reset", text);
    }
    let old = "after reset: agent 0: the reward";
    assert_found_in_several(Fault::OldReward, "check_step", old);
}

#[test]
fn steps_that_tell_what_they_must_not() {
    for (fault, text) in [
        (Fault::Outside, "values given where shape"),
        (Fault::RewardNan, "the reward is NaN"),
        (Fault::RewardSum, "port rewards add up to"),
        (Fault::DiscountZero, "discount 0 is not in (0, 1]"),
        (Fault::ComponentsMissing, "has 0 port rewards of"),
    ] {
        assert_found(fault, "check_step", text);
    }
    let hidden = Fault::PrivilegedWithoutSpace;
    let checked = check_one(hidden, &options());
    assert_among(hidden, checked, "check_step", "there is no space");
    for (fault, text) in [
        (
            Fault::ToldInAnothersTurn,
            "what agent 1 knows changed at the turn of agent 0",
        ),
        (
            Fault::FirstTurnWithDuration,
            "a duration of 1000000000 ps without an interval",
        ),
        (
            Fault::PaidWithoutTurn,
            "agent 2: the reward 1 without an interval",
        ),
    ] {
        assert_found_in_several(fault, "check_step", text);
    }
}

#[test]
fn intervals_that_do_not_add_up() {
    let clock = "ps before the end by the intervals of";
    assert_found_in_several(Fault::WrongClock, "check_intervals", clock);
    let sum = "the return is";
    assert_found_in_several(Fault::WrongReturn, "check_intervals", sum);
}

#[test]
fn steps_at_the_wrong_time() {
    let unreset = "step before the first reset was accepted";
    assert_found(Fault::StepsUnreset, "check_step_before_reset", unreset);
    let past = "step after the end of an episode was accepted";
    assert_found(Fault::StepsPastTheEnd, "check_end", past);
}

#[test]
fn ends_without_what_belongs_to_them() {
    for (fault, text) in [
        (Fault::NeverEnds, "did not end within 100 steps"),
        (Fault::StatsMissing, "no statistics"),
        (Fault::StatsEarly, "an episode that continues after 1 steps"),
        (Fault::StatsWrong, "7 steps, but 8 in the statistics"),
    ] {
        assert_found(fault, "check_end", text);
    }
}

#[test]
fn actions_that_should_have_been_refused() {
    let name = "check_invalid_actions";
    assert_found(Fault::TakesAnyAction, name, "was accepted");
    assert_found(Fault::MovesOnBadAction, name, "changed what follows");
}

#[test]
fn randomness_that_does_not_follow_the_seed() {
    assert_found(Fault::SeedIgnored, "check_seed_matters", "four seeds");
    let again = "call 0 gave another result after the same seed";
    assert_found(Fault::Unseeded, "check_seed", again);
    let stuck = "begin in the same state";
    assert_found(Fault::SequenceStuck, "check_sequence", stuck);
}

#[test]
fn state_shared_between_environments() {
    let shared = "while a second environment was in use";
    assert_found(Fault::SharedState, "check_independence", shared);
}

#[test]
fn snapshots_that_are_not_the_whole_state() {
    let name = "check_snapshots";
    assert_found_in_several(Fault::ForgetsAnAction, name, "restored after");
    assert_found_in_several(Fault::ForgetsTheSequence, name, "behind them");
}

#[test]
fn an_environment_without_chance_passes_when_it_says_so() {
    let options = CheckOptions {
        stochastic: false,
        ..options()
    };
    // The episodes of this environment are all equal.
    assert_eq!(check_one(Fault::SequenceStuck, &options), Ok(()));
    assert_eq!(check_several(Fault::SequenceStuck, &options), Ok(()));
}
