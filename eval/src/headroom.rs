//! What could be won in a scenario, before anything is trained.
//!
//! On every trace three things are set beside DT (α = 1) and the best single rule: an unlimited buffer,
//! the best rule of that very trace, and a sequence of decisions that a search with forked simulators
//! found. The last two are chosen with the trace in view, and so choose its luck too. Therefore what was
//! chosen runs again on [copies](jitter) of the trace that differ by chance alone: what survives there
//! can be won, the rest was luck.
//!
//! An unlimited buffer is a scale and not a bound, because short queues can be better. The search is
//! greedy, so its result is no bound either: with luck it is optimistic, without it a sequence that is
//! known to do so well.

mod data;
mod jitter;
mod page;
mod rules;
mod search;
mod verdict;

pub use data::{Cost, Headroom, Row, RowKind, RuleResult, TraceRow};
pub use page::{render, write_into};
pub use rules::standard_rules;
pub use search::Plan;
pub use verdict::{LEAST_GAIN, Verdict};

use bufgym_env::control::BasePolicy;
use bufgym_sim::network::SimError;
use bufgym_sim::rng::Split;
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::PolicySpec;
use bufgym_sim::traffic::Trace;
use bufgym_sim::units::Time;
use rayon::prelude::*;

use crate::data::ScenarioFacts;
use crate::evaluate::{EvalError, NumberedTrace, split_traces};
use crate::stats::{self, RESAMPLES};
use search::{LEVELS, Search};

/// Default number of traces.
pub const TRACES: u64 = 16;
/// Default number of copies that choices are made on, the trace itself included.
pub const PLANNED: u64 = 1;
/// Default number of other copies that what was chosen is repeated on.
pub const JITTERED: u64 = 4;
/// Default of the longest delay of a flow in a copy, microseconds.
pub const JITTER_US: u64 = 10;

/// What runs on the copies of a trace: the rows, and DT.
const RUNS: usize = RowKind::ALL.len() + 1;

/// Steps of the default horizon, at least.
const HORIZON_STEPS: u64 = 5;

/// What to measure.
#[derive(Clone, Debug)]
pub struct HeadroomConfig {
    /// Switch, transport and traffic.
    pub scenario: Scenario,
    /// The rules to choose from; DT (α = 1) is added.
    pub rules: Vec<PolicySpec>,
    /// Traces of the validation split, at least 1.
    pub traces: u64,
    /// Seed from which traces, copies and resamples follow.
    pub seed: u64,
    /// Copies of each trace that choices are made on, the trace itself included, at least 1.
    pub planned: u64,
    /// Other copies of each trace that what was chosen is repeated on, at least 1.
    pub jittered: u64,
    /// Longest delay of a flow in a copy, microseconds.
    pub jitter_us: u64,
    /// Time between decisions of the search, microseconds, at least 1.
    pub step_us: u64,
    /// How far a candidate is followed, microseconds.
    pub horizon_us: u64,
    /// Bootstrap resamples behind every interval.
    pub resamples: usize,
}

impl HeadroomConfig {
    /// 16 traces. A step lasts as long as 2.5 times the buffer takes at line rate, 20 ms in `ndt-16x1g`.
    /// The horizon is one and a half times the minimum RTO, so that the cost of a drop is seen, and at
    /// least five steps.
    pub fn new(scenario: Scenario, rules: Vec<PolicySpec>, seed: u64) -> HeadroomConfig {
        let drain_us = 8e6 * scenario.buffer_bytes as f64 / scenario.rate_bps as f64;
        let step_us = bufgym_sim::convert::floor_u64(2.5 * drain_us).max(1);
        HeadroomConfig {
            horizon_us: (scenario.min_rto_us * 3 / 2).max(HORIZON_STEPS * step_us),
            scenario,
            rules,
            traces: TRACES,
            seed,
            planned: PLANNED,
            jittered: JITTERED,
            jitter_us: JITTER_US,
            step_us,
            resamples: RESAMPLES,
        }
    }

    fn policies(&self) -> Vec<PolicySpec> {
        let mut unique = vec![PolicySpec::baseline()];
        for rule in &self.rules {
            if !unique.contains(rule) {
                unique.push(rule.clone());
            }
        }
        unique
    }
}

/// Why headroom could not be measured.
#[derive(Debug, thiserror::Error)]
pub enum HeadroomError {
    /// The scenario is invalid, a rule does not fit it, or there are no traces.
    #[error(transparent)]
    Evaluation(#[from] EvalError),
    /// DT leaves flows unfinished on every trace.
    #[error(
        "DT leaves flows unfinished on every trace, so that there is no mean FCT to compare: raise max_simulated_ms"
    )]
    Unfinished,
    /// A number of the configuration makes no sense.
    #[error("{what} must be at least {least}")]
    TooLittle {
        /// The number.
        what: &'static str,
        /// The least that makes sense, with its unit.
        least: String,
    },
}

/// Parts of the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Simulations of rules on traces.
    Rules,
    /// Steps of the searches; the total is estimated.
    Search,
    /// Simulations on copies with other luck.
    Copies,
}

/// Progress of one part.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// The part.
    pub part: Part,
    /// Units done since the last call.
    pub done: u64,
    /// Units of the whole part.
    pub total: u64,
}

/// Called from any thread.
pub type OnProgress<'a> = &'a (dyn Fn(Progress) + Sync);

/// A trace with its copies.
struct TraceSet {
    numbered: NumberedTrace,
    /// What choices are made on: the trace itself, then copies.
    members: Vec<Trace>,
    /// What choices are repeated on.
    copies: Vec<Trace>,
}

/// Mean over simulations of the mean FCT, ms; `None` where one of them left flows unfinished.
type MeanFct = Option<f64>;

/// What is put in force on a trace.
#[derive(Clone, Debug)]
enum Choice {
    Rule(PolicySpec),
    Plan(Plan),
}

/// What the search of a trace came to.
struct Planned {
    choice: Choice,
    value: MeanFct,
    fork_packets: u64,
    /// Packets of the trace under that, by which the cost of the forks is measured.
    packets: f64,
}

/// Measures what could be won on the first traces of the validation split.
///
/// The result is the same for the same configuration, whatever the number of threads.
///
/// # Errors
/// When the scenario is invalid, when a rule does not fit it, when a number of the configuration makes
/// no sense, or when DT finishes no trace.
pub fn measure(config: &HeadroomConfig, progress: OnProgress) -> Result<Headroom, HeadroomError> {
    check(config)?;
    let sets = trace_sets(config)?;
    let work = Work {
        config,
        policies: config.policies(),
        progress,
    };
    let chosen_on = work.rules_on_members(&sets)?;
    let finished: Vec<usize> = (0..sets.len())
        .filter(|&trace| chosen_on[trace][0].is_some())
        .collect();
    let left_out = (0..sets.len())
        .filter(|trace| !finished.contains(trace))
        .map(|trace| sets[trace].numbered.index)
        .collect();
    let sets: Vec<&TraceSet> = finished.iter().map(|&trace| &sets[trace]).collect();
    let chosen_on: Vec<&[MeanFct]> = finished
        .iter()
        .map(|&trace| chosen_on[trace].as_slice())
        .collect();
    if sets.is_empty() {
        return Err(HeadroomError::Unfinished);
    }
    let best = rules::best_of_all(&chosen_on);
    let low_level = rules::searchable(&work.policies[best]).unwrap_or_default();
    let planned = work.searches(&sets, &chosen_on, &low_level)?;
    let traces = work.on_copies(&sets, &chosen_on, best, &planned, &low_level)?;
    Ok(work.report(&chosen_on, best, &low_level, &planned, traces, left_out))
}

fn check(config: &HeadroomConfig) -> Result<(), HeadroomError> {
    let too_little = |what, least: &str| {
        Err(HeadroomError::TooLittle {
            what,
            least: least.to_owned(),
        })
    };
    if config.traces == 0 {
        return Err(EvalError::NoTraces.into());
    }
    if config.planned == 0 || config.jittered == 0 {
        return too_little("the number of copies", "1");
    }
    if config.step_us == 0 {
        return too_little("the step of the search", "1 µs");
    }
    if config.horizon_us < config.step_us {
        return too_little("the horizon of the search", "one step");
    }
    Ok(())
}

fn trace_sets(config: &HeadroomConfig) -> Result<Vec<TraceSet>, EvalError> {
    let traces = split_traces(
        &config.scenario,
        Split::Validation,
        config.seed,
        config.traces,
    )?;
    let jitter = Time::from_us(config.jitter_us);
    let copy = |trace: &NumberedTrace, label, copy| {
        jitter::jittered(&trace.trace, jitter, trace.seed, label, copy)
    };
    let set = |numbered: NumberedTrace| TraceSet {
        members: std::iter::once(numbered.trace.clone())
            .chain((1..config.planned).map(|n| copy(&numbered, "headroom: to choose", n)))
            .collect(),
        copies: (0..config.jittered)
            .map(|n| copy(&numbered, "headroom: to repeat", n))
            .collect(),
        numbered,
    };
    Ok(traces.into_par_iter().map(set).collect())
}

/// The work, with what all parts need.
struct Work<'a> {
    config: &'a HeadroomConfig,
    /// The rules; DT (α = 1) is the first.
    policies: Vec<PolicySpec>,
    progress: OnProgress<'a>,
}

impl Work<'_> {
    fn done(&self, part: Part, done: u64, total: u64) {
        (self.progress)(Progress { part, done, total });
    }

    fn error(set: &TraceSet, policy: &str) -> impl FnOnce(SimError) -> EvalError {
        EvalError::simulation(policy, &set.numbered)
    }

    /// Mean FCT of a rule over traces.
    fn rule(&self, set: &TraceSet, rule: &PolicySpec, traces: &[Trace]) -> Result<MeanFct, EvalError> {
        let run = |trace: &Trace| {
            let summary = rule.simulator(&self.config.scenario, trace)?.run().summary;
            Ok((summary.completed == summary.flows).then_some(summary.mean_fct_ms))
        };
        let values: Result<Vec<MeanFct>, SimError> = traces.iter().map(run).collect();
        Ok(mean(&values.map_err(Self::error(set, &rule.to_string()))?))
    }

    fn choice(
        &self,
        set: &TraceSet,
        choice: &Choice,
        low_level: &BasePolicy,
    ) -> Result<MeanFct, EvalError> {
        match choice {
            Choice::Rule(rule) => self.rule(set, rule, &set.copies),
            Choice::Plan(plan) => {
                let search = self.search(low_level);
                let replay = |trace| search.replay(trace, plan);
                let values: Result<Vec<MeanFct>, SimError> = set.copies.iter().map(replay).collect();
                Ok(mean(&values.map_err(Self::error(set, &low_level.to_string()))?))
            }
        }
    }

    fn search<'b>(&self, low_level: &'b BasePolicy) -> Search<'b> {
        let config = self.config;
        Search::new(&config.scenario, low_level, config.step_us, config.horizon_us)
    }

    /// By trace and rule: mean FCT over the members.
    fn rules_on_members(&self, sets: &[TraceSet]) -> Result<Vec<Vec<MeanFct>>, EvalError> {
        let rules = self.policies.len();
        let total = (sets.len() * rules) as u64;
        let values = (0..sets.len() * rules)
            .into_par_iter()
            .map(|run| {
                let (set, rule) = (&sets[run / rules], &self.policies[run % rules]);
                let value = self.rule(set, rule, &set.members);
                self.done(Part::Rules, 1, total);
                value
            })
            .collect::<Result<Vec<MeanFct>, EvalError>>()?;
        Ok(values.chunks(rules).map(<[MeanFct]>::to_vec).collect())
    }

    /// By trace: the best sequence of decisions that was found. The rules are sequences too, and so are
    /// the levels of α without a change.
    fn searches(
        &self,
        sets: &[&TraceSet],
        rules: &[&[MeanFct]],
        low_level: &BasePolicy,
    ) -> Result<Vec<Planned>, EvalError> {
        // Arrivals last about as long as the traffic needs at the load; the rest is not known before.
        let steps_of = |set: &&TraceSet| {
            let last = set.numbered.trace.flows.iter().map(|flow| flow.start).max();
            last.unwrap_or(Time::ZERO).as_ns() / 1_000 / self.config.step_us + 1
        };
        let total: u64 = sets.iter().map(steps_of).sum();
        sets.par_iter()
            .zip(rules)
            .map(|(set, rules)| {
                let on_step = || self.done(Part::Search, 1, total);
                self.plan(set, rules, low_level, &on_step)
            })
            .collect()
    }

    fn plan(
        &self,
        set: &TraceSet,
        rules: &[MeanFct],
        low_level: &BasePolicy,
        on_step: &dyn Fn(),
    ) -> Result<Planned, EvalError> {
        let search = self.search(low_level);
        let failed = |error| Self::error(set, &low_level.to_string())(error);
        let rule = rules::best_of_trace(rules);
        let mut best = Planned {
            choice: Choice::Rule(self.policies[rule].clone()),
            value: rules[rule],
            fork_packets: 0,
            packets: 0.0,
        };
        let (mut base, mut base_value) = (LEVELS - 1, None);
        for level in 0..LEVELS {
            let plan = Plan::fixed(level);
            let values: Result<Vec<MeanFct>, SimError> = set
                .members
                .iter()
                .map(|trace| search.replay(trace, &plan))
                .collect();
            let value = mean(&values.map_err(failed)?);
            if rules::is_less(value, base_value) {
                (base, base_value) = (level, value);
            }
            best.take_if_better(Choice::Plan(plan), value);
        }
        let found = search.run(&set.members, base, on_step).map_err(failed)?;
        best.take_if_better(Choice::Plan(found.plan), mean(&found.mean_fct_ms));
        best.fork_packets = found.packets;
        best.packets = found.member_packets as f64 / set.members.len() as f64;
        Ok(best)
    }

    /// What was chosen, on copies of the traces with other luck.
    fn on_copies(
        &self,
        sets: &[&TraceSet],
        rules: &[&[MeanFct]],
        best: usize,
        planned: &[Planned],
        low_level: &BasePolicy,
    ) -> Result<Vec<TraceRow>, EvalError> {
        let total = (sets.len() * RUNS) as u64;
        let unlimited = PolicySpec::unlimited();
        let baseline = PolicySpec::baseline();
        let runs = (0..sets.len() * RUNS)
            .into_par_iter()
            .map(|run| {
                let (trace, kind) = (run / RUNS, RowKind::ALL.get(run % RUNS));
                let set = sets[trace];
                let own = rules::best_of_trace(rules[trace]);
                let rule = |rule: &PolicySpec, chosen: MeanFct| {
                    let fresh = self.rule(set, rule, &set.copies)?;
                    Ok((rule.to_string(), chosen, fresh))
                };
                let values = match kind {
                    None => rule(&baseline, rules[trace][0]),
                    Some(RowKind::Unlimited) => {
                        let chosen = self.rule(set, &unlimited, &set.members)?;
                        rule(&unlimited, chosen)
                    }
                    Some(RowKind::BestRule) => rule(&self.policies[best], rules[trace][best]),
                    Some(RowKind::BestRuleOfTrace) => rule(&self.policies[own], rules[trace][own]),
                    Some(RowKind::Search) => {
                        let found = &planned[trace];
                        let fresh = self.choice(set, &found.choice, low_level)?;
                        Ok((found.choice.name(low_level), found.value, fresh))
                    }
                };
                self.done(Part::Copies, 1, total);
                values
            })
            .collect::<Result<Vec<(String, MeanFct, MeanFct)>, EvalError>>()?;
        let rows = sets.iter().zip(runs.chunks(RUNS)).flat_map(|(set, runs)| {
            let (_, dt, fresh_dt) = &runs[RUNS - 1];
            let (_, _, fresh_best) = &runs[RowKind::BestRule as usize];
            RowKind::ALL.into_iter().zip(runs).map(|(row, run)| {
                let (policy, chosen, fresh) = run.clone();
                TraceRow {
                    trace: set.numbered.index,
                    seed: set.numbered.seed,
                    flows: set.numbered.trace.flows.len() as u64,
                    row,
                    policy,
                    dt_mean_fct_ms: *dt,
                    mean_fct_ms: chosen,
                    ratio_to_dt: ratio(chosen, *dt),
                    jittered_dt_mean_fct_ms: *fresh_dt,
                    jittered_mean_fct_ms: fresh,
                    jittered_ratio_to_dt: ratio(fresh, *fresh_dt),
                    jittered_ratio_to_best_rule: ratio(fresh, *fresh_best),
                }
            })
        });
        Ok(rows.collect())
    }

    fn report(
        &self,
        rules: &[&[MeanFct]],
        best: usize,
        low_level: &BasePolicy,
        planned: &[Planned],
        per_trace: Vec<TraceRow>,
        left_out: Vec<u64>,
    ) -> Headroom {
        let config = self.config;
        let interval = |values: &[f64]| stats::bootstrap_mean(values, config.resamples, config.seed);
        let rows: Vec<Row> = RowKind::ALL
            .into_iter()
            .map(|kind| Row::of(kind, &per_trace, interval))
            .collect();
        Headroom {
            format: data::FORMAT.to_owned(),
            version: data::VERSION,
            software: concat!("bufgym ", env!("CARGO_PKG_VERSION")).to_owned(),
            scenario: ScenarioFacts::of(&config.scenario),
            split: Split::Validation.to_string(),
            seed: config.seed,
            traces: rules.len() as u64,
            left_out,
            planned: config.planned,
            jittered: config.jittered,
            jitter_us: config.jitter_us,
            step_us: config.step_us,
            horizon_us: config.horizon_us,
            resamples: config.resamples,
            rules: rules::results(&self.policies, rules, interval),
            best_rule: self.policies[best].to_string(),
            low_level: low_level.to_string(),
            verdict: Verdict::of(&self.policies[best].to_string(), &rows),
            rows,
            cost: self.cost(planned),
            per_trace,
        }
    }

    fn cost(&self, planned: &[Planned]) -> Cost {
        let config = self.config;
        let traces = planned.len() as u64;
        let rules = self.policies.len() as u64;
        let members = config.traces * rules + traces * (u64::from(LEVELS) + 2);
        let forks = planned.iter().map(|found| found.fork_packets);
        let share = |found: &Planned| found.fork_packets as f64 / found.packets.max(1.0);
        Cost {
            runs: members * config.planned + traces * RUNS as u64 * config.jittered,
            fork_packets: forks.sum(),
            forks_as_runs: planned.iter().map(share).sum(),
        }
    }
}

impl Choice {
    fn name(&self, low_level: &BasePolicy) -> String {
        match self {
            Choice::Rule(rule) => rule.to_string(),
            Choice::Plan(plan) => format!("{low_level}, {} changes of alpha", plan.changes()),
        }
    }
}

impl Planned {
    fn take_if_better(&mut self, choice: Choice, value: MeanFct) {
        if rules::is_less(value, self.value) {
            (self.choice, self.value) = (choice, value);
        }
    }
}

fn mean(values: &[MeanFct]) -> MeanFct {
    let values: Option<Vec<f64>> = values.iter().copied().collect();
    stats::mean(&values?)
}

fn ratio(value: MeanFct, of: MeanFct) -> Option<f64> {
    Some(value? / of?)
}

#[cfg(test)]
mod tests;
