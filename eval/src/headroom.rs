//! Estimates the possible gain in a scenario, before anything is trained.
//!
//! On every trace, DT (α = 1) and the best single rule are compared with an unlimited buffer, ideal senders
//! on the same links, the best rule of that trace, and a sequence of decisions. A search with forked
//! simulators finds that sequence. The last two are chosen on the trace itself, so chance is part of the
//! choice. Therefore the choices run again on copies of the trace that differ by chance alone. A gain that
//! remains there is possible; the rest was chance.
//!
//! An unlimited buffer is a scale and not a bound, because short queues can be better. Ideal senders that
//! share their links fairly at once are a scale too, since a switch may favour flows. The search is greedy,
//! so its result is no bound either: without the copies it is optimistic by chance, and with them it is a
//! sequence that is known to reach its result.

mod data;
mod ideal;
mod jitter;
mod page;
mod rules;
mod search;
mod verdict;

pub use data::{Cost, Headroom, Row, RowKind, RuleResult, TraceRow};
pub use page::{render, write_into};
pub use rules::standard_rules;
pub use search::Plan;
pub use verdict::Verdict;

use std::sync::atomic::{AtomicU64, Ordering};

use bufgym_env::control::LowLevelPolicy;
use bufgym_sim::network::{SimError, Summary};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::PolicySpec;
use bufgym_sim::traffic::Trace;
use bufgym_sim::units::{Duration, Instant};
use bufgym_util::rng::Split;
use rayon::prelude::*;

use crate::data::ScenarioFacts;
use crate::stats::{self, Estimate, RESAMPLES};
use crate::traces::{EvalError, NumberedTrace, split_traces};
use ideal::Sharing;
use search::{LEVELS, Search};

/// Default number of traces.
pub const TRACES: u64 = 16;
/// Default number of copies for making choices, the trace itself included.
pub const PLANNED: u64 = 4;
/// Default number of other copies for repeating the choices.
pub const JITTERED: u64 = 4;
/// Default of the longest delay of a flow in a copy, microseconds.
pub const JITTER_US: u64 = 10;

/// Number of choices that run on the copies of a trace: the rows, and DT.
const RUNS: usize = RowKind::ALL.len() + 1;

/// Steps of the default horizon.
pub const HORIZON_STEPS: u64 = 3;

/// Configuration of a measurement.
#[derive(Clone, Debug)]
pub struct HeadroomConfig {
    /// Switch, transport and traffic.
    pub scenario: Scenario,
    /// The rules to choose from; DT (α = 1) is added.
    pub rules: Vec<PolicySpec>,
    /// Traces of the validation split, at least 1.
    pub traces: u64,
    /// Seed from which the seeds of traces, copies and resamples follow.
    pub seed: u64,
    /// Copies of each trace for making choices, the trace itself included, at least 1.
    pub planned: u64,
    /// Other copies of each trace for repeating the choices, at least 1.
    pub jittered: u64,
    /// Longest delay of a flow in a copy, microseconds.
    pub jitter_us: u64,
    /// Time between decisions of the search, microseconds, at least 1.
    pub step_us: u64,
    /// Time that the search follows a candidate, microseconds.
    pub horizon_us: u64,
    /// Bootstrap resamples behind every interval.
    pub resamples: usize,
}

impl HeadroomConfig {
    /// Builds a configuration with 16 traces. A step lasts 2.5 times as long as one port needs to send the
    /// buffer, 20 ms in `ndt-16x1g`, and the horizon is three steps.
    pub fn new(scenario: Scenario, rules: Vec<PolicySpec>, seed: u64) -> HeadroomConfig {
        let drain_us =
            8e6 * scenario.network.buffer_bytes as f64 / scenario.network.rate_bps as f64;
        let step_us = bufgym_util::convert::floor_u64(2.5 * drain_us).max(1);
        HeadroomConfig {
            horizon_us: HORIZON_STEPS * step_us,
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

/// An error that prevents the measurement.
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
    /// A number of the configuration is too small.
    #[error("{what} must be at least {least}")]
    TooLittle {
        /// Name of the number.
        what: &'static str,
        /// The least valid value, with its unit.
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
    /// Simulations on copies that differ by chance.
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

/// Callback that any thread calls.
pub type OnProgress<'a> = &'a (dyn Fn(Progress) + Sync);

/// A trace with its copies.
struct TraceSet {
    numbered: NumberedTrace,
    /// Traces for making choices: the trace itself, then copies.
    members: Vec<Trace>,
    /// Copies for repeating the choices.
    copies: Vec<Trace>,
}

/// Mean over simulations of the mean FCT, ms; `None` if one of them left flows unfinished.
type MeanFct = Option<f64>;

/// Results of simulations of a trace in which all flows ended: means over the copies of the trace.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Outcome {
    mean_fct_ms: f64,
    goodput_bps: f64,
}

impl Outcome {
    /// Returns `None` if flows were left unfinished.
    fn of(summary: &Summary) -> Option<Outcome> {
        (summary.completed == summary.flows).then_some(Outcome {
            mean_fct_ms: summary.mean_fct_ms,
            goodput_bps: summary.goodput_bps,
        })
    }

    fn mean(outcomes: &[Option<Outcome>]) -> Option<Outcome> {
        let all: Vec<Outcome> = outcomes.iter().copied().collect::<Option<_>>()?;
        let mean =
            |field: fn(&Outcome) -> f64| stats::mean(&all.iter().map(field).collect::<Vec<f64>>());
        Some(Outcome {
            mean_fct_ms: mean(|outcome| outcome.mean_fct_ms)?,
            goodput_bps: mean(|outcome| outcome.goodput_bps)?,
        })
    }

    fn mean_fct(outcome: Option<Outcome>) -> MeanFct {
        outcome.map(|outcome| outcome.mean_fct_ms)
    }
}

/// The policy that runs on a trace.
#[derive(Clone, Debug)]
enum Choice {
    Rule(PolicySpec),
    Plan(Plan),
    Ideal(Sharing),
}

/// The choices among the rules.
struct Chosen<'a> {
    /// The best single rule.
    best: usize,
    /// The rule whose α is searched.
    low_level: LowLevelPolicy,
    /// Mean FCT over the members, by trace and rule; `None` also for rules that were not run on them.
    finals: Vec<&'a [MeanFct]>,
}

/// The result of the search on a trace.
struct Planned {
    choice: Choice,
    value: MeanFct,
    fork_packets: u64,
    /// Packets of the trace under that choice, by which the cost of the forks is measured.
    packets: f64,
}

/// Measures the possible gain on the first traces of the validation split.
///
/// The result is the same for the same configuration, whatever the number of threads.
///
/// # Errors
/// Fails if the scenario is invalid, if a rule does not fit it, if a number of the configuration is too
/// small, or if DT finishes no trace.
pub fn measure(config: &HeadroomConfig, progress: OnProgress) -> Result<Headroom, HeadroomError> {
    check(config)?;
    let sets = trace_sets(config)?;
    let work = Work {
        config,
        policies: config.policies(),
        progress,
        runs: AtomicU64::new(0),
    };
    let everything = vec![(0..work.policies.len()).collect(); sets.len()];
    let alone = work.rules(&sets, &everything, |set| &set.members[..1])?;
    let finals = work.rules(&sets, &rules::finalists(&alone), |set| &set.members)?;
    let (mut kept, mut left_out) = (Vec::new(), Vec::new());
    for ((set, alone), finals) in sets.iter().zip(&alone).zip(&finals) {
        match finals[0] {
            Some(_) => kept.push((set, alone.as_slice(), finals.as_slice())),
            None => left_out.push(set.numbered.index),
        }
    }
    if kept.is_empty() {
        return Err(HeadroomError::Unfinished);
    }
    let alone: Vec<&[MeanFct]> = kept.iter().map(|(_, alone, _)| *alone).collect();
    let finals: Vec<&[MeanFct]> = kept.iter().map(|(_, _, finals)| *finals).collect();
    let sets: Vec<&TraceSet> = kept.iter().map(|(set, _, _)| *set).collect();
    let best = rules::best_of_all(&finals);
    let chosen = Chosen {
        best,
        low_level: rules::searchable(&work.policies[best]).unwrap_or_default(),
        finals,
    };
    let planned = work.searches(&sets, &chosen)?;
    let traces = work.on_copies(&sets, &chosen, &planned)?;
    let rules = rules::results(&work.policies, &alone, |values| work.interval(values));
    Ok(work.report(&chosen, rules, &planned, traces, left_out))
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
    let jitter = Duration::from_us(config.jitter_us);
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

/// The measurement in progress, with the data that all parts need.
struct Work<'a> {
    config: &'a HeadroomConfig,
    /// The rules; DT (α = 1) is the first.
    policies: Vec<PolicySpec>,
    progress: OnProgress<'a>,
    /// Simulations of whole traces so far.
    runs: AtomicU64,
}

impl Work<'_> {
    fn done(&self, part: Part, done: u64, total: u64) {
        (self.progress)(Progress { part, done, total });
    }

    fn interval(&self, values: &[f64]) -> Option<Estimate> {
        stats::bootstrap_mean(values, self.config.resamples, self.config.seed)
    }

    fn error(set: &TraceSet, policy: &str) -> impl FnOnce(SimError) -> EvalError {
        EvalError::simulation(policy, &set.numbered)
    }

    /// Runs a rule on copies of a trace.
    fn rule(
        &self,
        set: &TraceSet,
        rule: &PolicySpec,
        copies: &[Trace],
    ) -> Result<Option<Outcome>, EvalError> {
        let run = |trace: &Trace| {
            self.config.scenario.require_single()?;
            let summary = rule.run(&self.config.scenario, trace)?.summary;
            Ok(Outcome::of(&summary))
        };
        let values: Result<Vec<Option<Outcome>>, SimError> = copies.iter().map(run).collect();
        self.count(copies);
        let values = values.map_err(Self::error(set, &rule.to_string()))?;
        Ok(Outcome::mean(&values))
    }

    /// Runs a sequence of decisions on copies of a trace.
    fn replay(
        &self,
        set: &TraceSet,
        search: &Search<'_>,
        plan: &Plan,
        copies: &[Trace],
    ) -> Result<Option<Outcome>, EvalError> {
        let replay = |trace| search.replay(trace, plan);
        let values: Result<Vec<Option<Outcome>>, SimError> = copies.iter().map(replay).collect();
        self.count(copies);
        let values = values.map_err(Self::error(set, search.low_level()))?;
        Ok(Outcome::mean(&values))
    }

    fn count(&self, copies: &[Trace]) {
        self.runs.fetch_add(copies.len() as u64, Ordering::Relaxed);
    }

    fn search<'b>(&self, low_level: &'b LowLevelPolicy) -> Search<'b> {
        let config = self.config;
        Search::new(
            &config.scenario,
            low_level,
            config.step_us,
            config.horizon_us,
        )
    }

    /// Returns the mean FCT by trace and rule, over the copies that `of` returns; `None` for the rules that
    /// are not in the trace's list of wanted rules.
    fn rules(
        &self,
        sets: &[TraceSet],
        wanted: &[Vec<usize>],
        of: impl Fn(&TraceSet) -> &[Trace] + Sync,
    ) -> Result<Vec<Vec<MeanFct>>, EvalError> {
        let runs: Vec<(usize, usize)> = wanted
            .iter()
            .enumerate()
            .flat_map(|(trace, rules)| rules.iter().map(move |&rule| (trace, rule)))
            .collect();
        let values = runs
            .par_iter()
            .map(|&(trace, rule)| {
                let set = &sets[trace];
                let outcome = self.rule(set, &self.policies[rule], of(set));
                self.done(Part::Rules, 1, runs.len() as u64);
                outcome.map(Outcome::mean_fct)
            })
            .collect::<Result<Vec<MeanFct>, EvalError>>()?;
        let mut table = vec![vec![None; self.policies.len()]; sets.len()];
        for ((trace, rule), value) in runs.into_iter().zip(values) {
            table[trace][rule] = value;
        }
        Ok(table)
    }

    /// Returns the best sequence of decisions that was found for each trace. The rules are sequences too, and
    /// so are the levels of α without a change.
    fn searches(&self, sets: &[&TraceSet], chosen: &Chosen<'_>) -> Result<Vec<Planned>, EvalError> {
        // A search lasts until its last flow ends; only the start of that flow is known in advance.
        let steps_of = |set: &&TraceSet| {
            let last = set.numbered.trace.flows.iter().map(|flow| flow.start).max();
            last.unwrap_or(Instant::ZERO).as_ns() / 1_000 / self.config.step_us + 1
        };
        let total: u64 = sets.iter().map(steps_of).sum();
        sets.par_iter()
            .zip(&chosen.finals)
            .map(|(set, finals)| {
                let on_step = || self.done(Part::Search, 1, total);
                self.plan(set, finals, &chosen.low_level, &on_step)
            })
            .collect()
    }

    fn plan(
        &self,
        set: &TraceSet,
        rules: &[MeanFct],
        low_level: &LowLevelPolicy,
        on_step: &dyn Fn(),
    ) -> Result<Planned, EvalError> {
        let search = self.search(low_level);
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
            let outcome = self.replay(set, &search, &plan, &set.members)?;
            let value = Outcome::mean_fct(outcome);
            if rules::is_less(value, base_value) {
                (base, base_value) = (level, value);
            }
            best.take_if_better(Choice::Plan(plan), value);
        }
        let found = search
            .run(&set.members, base, on_step)
            .map_err(Self::error(set, search.low_level()))?;
        self.count(&set.members);
        best.take_if_better(Choice::Plan(found.plan), mean(&found.mean_fct_ms));
        best.fork_packets = found.packets;
        best.packets = found.member_packets as f64 / set.members.len() as f64;
        Ok(best)
    }

    /// Runs the choices on copies of the traces that differ by chance.
    fn on_copies(
        &self,
        sets: &[&TraceSet],
        chosen: &Chosen<'_>,
        planned: &[Planned],
    ) -> Result<Vec<TraceRow>, EvalError> {
        let total = (sets.len() * RUNS) as u64;
        let runs = (0..sets.len() * RUNS)
            .into_par_iter()
            .map(|run| {
                let (trace, row) = (run / RUNS, RowKind::ALL.get(run % RUNS));
                let values = self.on_copies_of(sets[trace], row, trace, chosen, &planned[trace]);
                self.done(Part::Copies, 1, total);
                values
            })
            .collect::<Result<Vec<Repeated>, EvalError>>()?;
        let rows = sets
            .iter()
            .zip(runs.chunks(RUNS))
            .flat_map(|(set, runs)| trace_rows(&set.numbered, runs));
        Ok(rows.collect())
    }

    /// Runs the choice of one row, or DT if there is none.
    fn on_copies_of(
        &self,
        set: &TraceSet,
        row: Option<&RowKind>,
        trace: usize,
        chosen: &Chosen<'_>,
        planned: &Planned,
    ) -> Result<Repeated, EvalError> {
        let finals = chosen.finals[trace];
        let (choice, value) = match row {
            None => (Choice::Rule(PolicySpec::baseline()), finals[0]),
            Some(RowKind::Unlimited) => {
                let unlimited = PolicySpec::unlimited();
                let outcome = self.rule(set, &unlimited, &set.members)?;
                (Choice::Rule(unlimited), Outcome::mean_fct(outcome))
            }
            Some(RowKind::FairSenders) => {
                let outcome = self.ideal(Sharing::Fair, &set.members);
                (Choice::Ideal(Sharing::Fair), Outcome::mean_fct(outcome))
            }
            Some(RowKind::ShortestFirst) => {
                let outcome = self.ideal(Sharing::ShortestFirst, &set.members);
                let value = Outcome::mean_fct(outcome);
                (Choice::Ideal(Sharing::ShortestFirst), value)
            }
            Some(RowKind::BestRule) => {
                let rule = &self.policies[chosen.best];
                (Choice::Rule(rule.clone()), finals[chosen.best])
            }
            Some(RowKind::BestRuleOfTrace) => {
                let own = rules::best_of_trace(finals);
                (Choice::Rule(self.policies[own].clone()), finals[own])
            }
            Some(RowKind::Search) => (planned.choice.clone(), planned.value),
        };
        let repeated = match &choice {
            Choice::Rule(rule) => self.rule(set, rule, &set.copies)?,
            Choice::Plan(plan) => {
                self.replay(set, &self.search(&chosen.low_level), plan, &set.copies)?
            }
            Choice::Ideal(sharing) => self.ideal(*sharing, &set.copies),
        };
        Ok(Repeated {
            policy: choice.name(&chosen.low_level),
            chosen: value,
            repeated,
        })
    }

    /// Runs ideal senders on copies of a trace.
    fn ideal(&self, sharing: Sharing, copies: &[Trace]) -> Option<Outcome> {
        let outcome = |trace| ideal::outcome(&self.config.scenario, trace, sharing);
        let outcomes: Vec<Option<Outcome>> = copies.iter().map(outcome).collect();
        Outcome::mean(&outcomes)
    }

    fn report(
        &self,
        chosen: &Chosen<'_>,
        rules: Vec<RuleResult>,
        planned: &[Planned],
        per_trace: Vec<TraceRow>,
        left_out: Vec<u64>,
    ) -> Headroom {
        let config = self.config;
        let rows: Vec<Row> = RowKind::ALL
            .into_iter()
            .map(|kind| Row::of(kind, &per_trace, |values| self.interval(values)))
            .collect();
        let best_rule = self.policies[chosen.best].to_string();
        Headroom {
            format: data::FORMAT.to_owned(),
            version: data::VERSION,
            software: concat!("bufgym ", env!("CARGO_PKG_VERSION")).to_owned(),
            scenario: ScenarioFacts::of(&config.scenario),
            split: Split::Validation.to_string(),
            seed: config.seed,
            traces: planned.len() as u64,
            left_out,
            planned: config.planned,
            jittered: config.jittered,
            jitter_us: config.jitter_us,
            step_us: config.step_us,
            horizon_us: config.horizon_us,
            resamples: config.resamples,
            rules,
            verdict: Verdict::of(&best_rule, &rows),
            best_rule,
            low_level: chosen.low_level.to_string(),
            rows,
            cost: self.cost(planned),
            per_trace,
        }
    }

    fn cost(&self, planned: &[Planned]) -> Cost {
        let forks = planned.iter().map(|found| found.fork_packets);
        let share = |found: &Planned| found.fork_packets as f64 / found.packets.max(1.0);
        Cost {
            runs: self.runs.load(Ordering::Relaxed),
            fork_packets: forks.sum(),
            forks_as_runs: planned.iter().map(share).sum(),
        }
    }
}

/// A choice with its results on the traces it was chosen on, and on copies that differ by chance.
struct Repeated {
    policy: String,
    chosen: MeanFct,
    repeated: Option<Outcome>,
}

impl Repeated {
    fn mean_fct_ms(&self) -> Option<f64> {
        Outcome::mean_fct(self.repeated)
    }

    fn goodput_bps(&self) -> Option<f64> {
        self.repeated.map(|outcome| outcome.goodput_bps)
    }
}

/// Returns the rows of a trace; the last of `runs` is DT.
fn trace_rows(numbered: &NumberedTrace, runs: &[Repeated]) -> Vec<TraceRow> {
    let dt = &runs[RUNS - 1];
    let best = &runs[RowKind::BestRule as usize];
    let row = |(row, run): (RowKind, &Repeated)| TraceRow {
        trace: numbered.index,
        seed: numbered.seed,
        flows: numbered.trace.flows.len() as u64,
        row,
        policy: run.policy.clone(),
        dt_mean_fct_ms: dt.chosen,
        mean_fct_ms: run.chosen,
        ratio_to_dt: ratio(run.chosen, dt.chosen),
        jittered_dt_mean_fct_ms: dt.mean_fct_ms(),
        jittered_mean_fct_ms: run.mean_fct_ms(),
        jittered_ratio_to_dt: ratio(run.mean_fct_ms(), dt.mean_fct_ms()),
        jittered_ratio_to_best_rule: ratio(run.mean_fct_ms(), best.mean_fct_ms()),
        jittered_dt_goodput_bps: dt.goodput_bps(),
        jittered_goodput_bps: run.goodput_bps(),
        jittered_goodput_ratio_to_dt: ratio(run.goodput_bps(), dt.goodput_bps()),
        jittered_goodput_ratio_to_best_rule: ratio(run.goodput_bps(), best.goodput_bps()),
    };
    RowKind::ALL.into_iter().zip(runs).map(row).collect()
}

impl Choice {
    fn name(&self, low_level: &LowLevelPolicy) -> String {
        match self {
            Choice::Rule(rule) => rule.to_string(),
            Choice::Plan(plan) => format!("{low_level}, {} changes of alpha", plan.changes()),
            Choice::Ideal(Sharing::Fair) => "ideal, fair".to_owned(),
            Choice::Ideal(Sharing::ShortestFirst) => "ideal, shortest first".to_owned(),
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
