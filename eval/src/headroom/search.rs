//! A greedy search over sequences of decisions, with forked simulators.
//!
//! Time is cut into steps. At the beginning of a step the simulation is forked once per candidate. The fork
//! uses the candidate's α for the step, and those of a base policy until the horizon. The value of a
//! candidate is the time that flows spend in the network until then, plus an estimate of the rest. The best
//! candidate is put in force for the step. The estimate is that of [`ControlOptions::horizon_s`]: a flow that
//! can only wait for its retransmission timer is charged the whole wait, and the others share their port. So
//! the horizon can be shorter than the minimum RTO. This is a rollout (Bertsekas, Tsitsiklis and Wu, "Rollout
//! algorithms for combinatorial optimization", Journal of Heuristics 1997) with a clairvoyant model: forks
//! see the future traffic.
//!
//! The search sees one outcome of every chance event, so it chooses whatever happens to succeed. With several
//! members (copies of the trace that differ by chance), a candidate's value is the sum over them, and a
//! smaller part of the gain is chance.

use bufgym_env::control::{
    ALPHAS, ControlEnv, ControlOptions, FlowTimes, LowLevelPolicy, RewardBaseline, StopReason,
    TriggerMode, cell_centre,
};
use bufgym_sim::network::SimError;
use bufgym_sim::scenario::Scenario;
use bufgym_sim::traffic::Trace;
use serde::{Deserialize, Serialize};

use super::Outcome;

/// Number of queues whose α is also varied individually: the longest ones.
const BUSIEST: usize = 2;

/// Levels by which the α of these queues is moved up and down: a factor of four.
const STRIDE: u8 = 2;

/// Number of levels of α.
pub(super) const LEVELS: u8 = 8;

const _: () = assert!(LEVELS as usize == ALPHAS.len());

/// A time constant that discounts nothing within a simulation, seconds.
const UNDISCOUNTED_S: f64 = 1e9;

/// Settings of a search.
#[derive(Clone, Debug)]
pub(super) struct Search<'a> {
    /// Switch, transport and traffic, with a decision at the beginning of every step.
    scenario: Scenario,
    /// The rule whose α is searched.
    low_level: &'a LowLevelPolicy,
    name: String,
    /// Steps for which a candidate is followed.
    horizon: u64,
    flow_times: FlowTimes,
}

/// Levels of α by port and step, indices into [`ALPHAS`]. After the last step, the base level is in force.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The same level for all ports after the last step.
    pub base: u8,
    /// Levels by step and port.
    pub steps: Vec<Vec<u8>>,
}

impl Plan {
    /// Builds a plan with the same α all the time.
    pub(super) fn fixed(base: u8) -> Plan {
        Plan {
            base,
            steps: Vec::new(),
        }
    }

    /// Returns the number of steps whose levels differ from those of the previous step.
    pub fn changes(&self) -> u64 {
        let pairs = self.steps.windows(2);
        pairs.filter(|pair| pair[0] != pair[1]).count() as u64
    }

    fn levels(&self, step: usize, ports: usize) -> Vec<u8> {
        let levels = self.steps.get(step).cloned();
        levels.unwrap_or_else(|| vec![self.base; ports])
    }
}

/// The result of a search.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub plan: Plan,
    /// Mean FCT of every member under the plan, ms; `None` if flows did not finish.
    pub mean_fct_ms: Vec<Option<f64>>,
    /// Packets that were forwarded in all forks.
    pub packets: u64,
    /// Packets that the members have forwarded.
    pub member_packets: u64,
}

impl<'a> Search<'a> {
    /// Builds a search over decisions every `step_us` microseconds, each followed for `horizon_us`, rounded
    /// up to whole steps. Decisions take effect at once, regardless of the latency in the scenario.
    ///
    /// # Panics
    /// Panics if the step is zero.
    pub(super) fn new(
        scenario: &Scenario,
        low_level: &'a LowLevelPolicy,
        step_us: u64,
        horizon_us: u64,
    ) -> Search<'a> {
        Search {
            scenario: scenario.clone().with(|scenario| {
                scenario.control.max_interval_us = step_us;
                scenario.control.decision_latency_us = 0;
                scenario.control.max_decisions = 0;
            }),
            low_level,
            name: low_level.to_string(),
            flow_times: FlowTimes::default(),
            horizon: horizon_us.div_ceil(step_us).max(1),
        }
    }

    /// Returns the policy string of the rule whose α is searched.
    pub(super) fn low_level(&self) -> &str {
        &self.name
    }

    fn start(&self, trace: &Trace, options: ControlOptions) -> Result<ControlEnv, SimError> {
        let options = ControlOptions {
            low_level: self.low_level.clone(),
            trigger: TriggerMode::FixedInterval,
            flow_times: self.flow_times.clone(),
            ..options
        };
        ControlEnv::new(&self.scenario, trace, &options)
    }

    /// Starts a simulation whose rewards sum up to minus the flow time so far and the estimate of the rest.
    /// The flow time with an unlimited buffer is subtracted; it is the same for all forks.
    fn start_judged(&self, trace: &Trace) -> Result<ControlEnv, SimError> {
        let options = ControlOptions {
            tau_s: UNDISCOUNTED_S,
            baseline: RewardBaseline::UnlimitedBuffer,
            horizon_s: Some(UNDISCOUNTED_S),
            ..ControlOptions::default()
        };
        self.start(trace, options)
    }

    /// Returns the outcome of the trace under the plan; `None` if flows did not finish.
    pub(super) fn replay(&self, trace: &Trace, plan: &Plan) -> Result<Option<Outcome>, SimError> {
        let mut env = self.start(trace, ControlOptions::default())?;
        let ports = env.ports();
        let mut step = 0;
        loop {
            env.act(&actions(&plan.levels(step, ports)));
            if env.advance_alone() != StopReason::Decision {
                return Ok(outcome(&mut env));
            }
            step += 1;
        }
    }

    /// Searches a plan for all members together, the level `base` on all ports being the base policy.
    /// `on_step` is called after every step.
    pub(super) fn run(
        &self,
        members: &[Trace],
        base: u8,
        on_step: &dyn Fn(),
    ) -> Result<Found, SimError> {
        let members: Result<Vec<ControlEnv>, SimError> = members
            .iter()
            .map(|trace| self.start_judged(trace))
            .collect();
        let mut members = Members::new(members?);
        let ports = members.ports();
        let mut held = vec![base; ports];
        let (mut plan, mut packets) = (Plan::fixed(base), 0);
        while members.any_running() {
            let (levels, spent) = self.choose(&members, &held, base);
            packets += spent;
            members.act(&levels);
            held.clone_from(&levels);
            plan.steps.push(levels);
            on_step();
        }
        Ok(Found {
            plan,
            mean_fct_ms: members.mean_fct_ms(),
            packets,
            member_packets: members.packets(),
        })
    }

    /// Returns the best candidate for the coming step, the first one if several are equal, and the number of
    /// packets that the forks have forwarded.
    fn choose(&self, members: &Members, held: &[u8], base: u8) -> (Vec<u8>, u64) {
        let base = vec![base; held.len()];
        let hold = self.follow(members, held, &base);
        let mut best = (hold.flow_time, held.to_vec());
        let mut packets = hold.packets;
        for candidate in candidates(held, &members.busiest()) {
            let raises_only = candidate.iter().zip(held).all(|(new, old)| new >= old);
            // If nothing was dropped in the step, a higher threshold changes nothing.
            if !hold.dropped && raises_only {
                continue;
            }
            let followed = self.follow(members, &candidate, &base);
            packets += followed.packets;
            if followed.flow_time < best.0 {
                best = (followed.flow_time, candidate);
            }
        }
        (best.1, packets)
    }

    fn follow(&self, members: &Members, candidate: &[u8], base: &[u8]) -> Followed {
        let (candidate, base) = (actions(candidate), actions(base));
        let mut sum = Followed::default();
        for env in members.running() {
            let followed = self.fork(env, &candidate, &base);
            sum.flow_time += followed.flow_time;
            sum.dropped |= followed.dropped;
            sum.packets += followed.packets;
        }
        sum
    }

    /// Runs a copy of `env`, which waits for a decision, to the horizon.
    fn fork(&self, env: &ControlEnv, candidate: &[f32], base: &[f32]) -> Followed {
        let mut fork = env.clone();
        let before = fork.simulator().packets_forwarded();
        let mut followed = Followed::default();
        fork.act(candidate);
        for step in 0..self.horizon {
            let stop = fork.advance_alone();
            followed.flow_time -= fork.reward().total;
            if step == 0 {
                followed.dropped =
                    (0..fork.ports()).any(|port| fork.reading().volumes(port).dropped > 0);
            }
            if stop != StopReason::Decision {
                break;
            }
            fork.act(base);
        }
        followed.packets = fork.simulator().packets_forwarded() - before;
        followed
    }
}

/// The outcome of a candidate.
#[derive(Clone, Copy, Default)]
struct Followed {
    /// Time that flows spend in the network, in units of the reward, less a constant.
    flow_time: f64,
    /// True if packets were lost in the step.
    dropped: bool,
    packets: u64,
}

/// Simulations under the same decisions.
struct Members {
    /// Each simulation with true if it waits for a decision, or false if it has ended.
    envs: Vec<(ControlEnv, bool)>,
}

impl Members {
    fn new(envs: Vec<ControlEnv>) -> Members {
        Members {
            envs: envs.into_iter().map(|env| (env, true)).collect(),
        }
    }

    fn ports(&self) -> usize {
        self.envs.first().map_or(0, |(env, _)| env.ports())
    }

    fn running(&self) -> impl Iterator<Item = &ControlEnv> {
        self.envs
            .iter()
            .filter(|(_, runs)| *runs)
            .map(|(env, _)| env)
    }

    fn any_running(&self) -> bool {
        self.running().next().is_some()
    }

    fn act(&mut self, levels: &[u8]) {
        let action = actions(levels);
        for (env, runs) in self.envs.iter_mut().filter(|(_, runs)| *runs) {
            env.act(&action);
            *runs = env.advance_alone() == StopReason::Decision;
        }
    }

    /// Returns the ports with the longest queues, summed over the members, the longest first; empty queues
    /// are left out.
    fn busiest(&self) -> Vec<usize> {
        let mut lengths: Vec<(u64, usize)> = (0..self.ports())
            .map(|port| {
                (
                    self.running()
                        .map(|env| env.reading().queue_bytes(port))
                        .sum(),
                    port,
                )
            })
            .filter(|(bytes, _)| *bytes > 0)
            .collect();
        lengths.sort_by_key(|&(bytes, port)| (std::cmp::Reverse(bytes), port));
        lengths.truncate(BUSIEST);
        lengths.into_iter().map(|(_, port)| port).collect()
    }

    fn packets(&self) -> u64 {
        let forwarded = |(env, _): &(ControlEnv, bool)| env.simulator().packets_forwarded();
        self.envs.iter().map(forwarded).sum()
    }

    fn mean_fct_ms(&mut self) -> Vec<Option<f64>> {
        self.envs
            .iter_mut()
            .map(|(env, _)| Outcome::mean_fct(outcome(env)))
            .collect()
    }
}

/// Returns the alternatives to the current levels: every level on all ports, and other levels on one of the
/// busiest ports. No candidate occurs twice.
fn candidates(held: &[u8], busiest: &[usize]) -> Vec<Vec<u8>> {
    let shared = (0..LEVELS).map(|level| vec![level; held.len()]);
    let single = busiest.iter().flat_map(|&port| {
        let up = (held[port] + STRIDE).min(LEVELS - 1);
        let down = held[port].saturating_sub(STRIDE);
        [up, down].map(|level| {
            let mut levels = held.to_vec();
            levels[port] = level;
            levels
        })
    });
    let mut unique: Vec<Vec<u8>> = Vec::new();
    for candidate in shared.chain(single) {
        if candidate != held && !unique.contains(&candidate) {
            unique.push(candidate);
        }
    }
    unique
}

fn actions(levels: &[u8]) -> Vec<f32> {
    let action = |&level: &u8| cell_centre(usize::from(level));
    levels.iter().map(action).collect()
}

fn outcome(env: &mut ControlEnv) -> Option<Outcome> {
    Outcome::of(&env.outcome().summary)
}

#[cfg(test)]
mod tests {
    use bufgym_sim::switch::PolicySpec;
    use bufgym_sim::traffic::generate;
    use bufgym_util::rng::{Split, trace_seed};

    use super::*;

    fn crowded() -> Scenario {
        let mut scenario = Scenario::default();
        for setting in ["flows=60", "active_ports=4", "buffer_bytes=150000"] {
            scenario.set(setting).unwrap();
        }
        scenario
    }

    fn trace(scenario: &Scenario, index: u64) -> Trace {
        generate(scenario, trace_seed(Split::Validation, 1, index))
    }

    fn search<'a>(scenario: &Scenario, low_level: &'a LowLevelPolicy) -> Search<'a> {
        Search::new(scenario, low_level, 20_000, 300_000)
    }

    /// A fixed plan equals the rule with that α, from the first packet on.
    #[test]
    fn a_fixed_plan_is_the_rule_itself() {
        let scenario = crowded();
        let trace = trace(&scenario, 0);
        for (low_level, rule, level) in [
            ("dt", "dt:alpha=8", 5),
            ("dt+random:p=0.02", "dt:alpha=0.5+random:p=0.02", 1),
            ("fab", "fab:alpha=4", 4),
        ] {
            let low_level: LowLevelPolicy = low_level.parse().unwrap();
            let by_plan = search(&scenario, &low_level)
                .replay(&trace, &Plan::fixed(level))
                .unwrap();
            let rule: PolicySpec = rule.parse().unwrap();
            let by_rule = rule.run(&scenario, &trace).unwrap().summary;
            assert!(by_rule.drops > 0);
            assert_eq!(by_plan, Outcome::of(&by_rule), "{rule}");
            assert!(by_plan.is_some());
        }
    }

    /// The result of the search equals a replay of the plan on the trace itself, bit by bit.
    #[test]
    fn a_plan_can_be_replayed() {
        let scenario = crowded();
        let low_level = LowLevelPolicy::dt();
        let search = search(&scenario, &low_level);
        let members = [trace(&scenario, 0), trace(&scenario, 1)];
        let found = search.run(&members, 4, &|| {}).unwrap();
        assert!(found.plan.changes() > 0 && found.packets > 0);
        let replayed: Vec<Option<f64>> = members
            .iter()
            .map(|trace| Outcome::mean_fct(search.replay(trace, &found.plan).unwrap()))
            .collect();
        assert_eq!(replayed, found.mean_fct_ms);
    }

    #[test]
    fn a_fork_leaves_the_original_as_it_was() {
        let scenario = crowded();
        let low_level = LowLevelPolicy::dt();
        let search = search(&scenario, &low_level);
        let trace = trace(&scenario, 0);
        let ahead = |forked: bool| {
            let mut env = search.start_judged(&trace).unwrap();
            let mut dropped = false;
            loop {
                let action = actions(&[4; 16]);
                if forked {
                    for level in [0, 7] {
                        dropped |= search.fork(&env, &actions(&[level; 16]), &action).dropped;
                    }
                }
                env.act(&action);
                if env.advance() != StopReason::Decision {
                    return (env.outcome().summary.mean_fct_ms, env.decisions(), dropped);
                }
            }
        };
        let (with, without) = (ahead(true), ahead(false));
        assert!(with.2, "the forks lost nothing");
        assert_eq!((with.0, with.1), (without.0, without.1));
    }

    #[test]
    fn candidates_are_all_shared_levels_and_changes_of_busy_ports() {
        let held = vec![3, 3, 3];
        let found = candidates(&held, &[1]);
        assert_eq!(found.len(), 7 + 2);
        assert!(!found.contains(&held));
        assert!(found.contains(&vec![3, 5, 3]) && found.contains(&vec![3, 1, 3]));
        // At the end of the range, a move up equals the current levels.
        assert_eq!(candidates(&[7, 7], &[0]).len(), 7 + 1);
    }
}
