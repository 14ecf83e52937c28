//! The training loop.
//!
//! A training is a sequence of [steps](Phase): at first generations of a search, if it starts from a rule, then rounds.
//! After every step the same is looked after: stops, messages of hosts, the run folder, checkpoints, progress.
//!
//! In a round three things run in parallel, all from the state at its beginning: the learner makes its updates from the
//! replay, the workers collect transitions with the actor (so the policy lags by exactly one round), and, where a
//! validation is due, the actor's moving average is validated. An algorithm that learns from its newest decisions alone
//! does so before the workers collect the next ones, on all threads. Then the transitions enter the replay in the order
//! of the workers. Nothing depends on which part was faster, so a run is the same, bit for bit, for any number of threads.

use std::io;
use std::mem;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bufgym_agents::Batch;
use bufgym_models::checkpoint::{Manifest, save_actor};
use bufgym_models::{ActorWeights, Device};
use bufgym_util::convert::floor_u64;
use bufgym_util::rng::stream;
use rand::Rng as _;

use crate::backend::Backend;
use crate::console::{Progress, Step};
use crate::experience::Experience;
use crate::folder::RULE;
use crate::learner::{Learned, Learner, learn_from, learn_from_newest};
use crate::output::Output;
use crate::report::{Clock, Learning, Rollouts, RoundReport};
use crate::rollout::{Experienced, WorkerPool};
use crate::rule_search::RuleSearch;
use crate::simulations::Decider;
use crate::start;
use crate::state::{Best, Counters, State, Stored};
use crate::validation::{Validation, ValidationResult, ValidationSet};
use crate::{Algorithm, Status, TrainConfig, TrainError};

/// Everything that changes in a training.
pub(crate) struct Trainer {
    pub(crate) config: TrainConfig,
    pub(crate) backend: Backend,
    device: Device,
    learner: Learner,
    replay: Experience,
    /// The batch of the current update, and that of the next.
    batches: [Batch; 2],
    worker_pool: Box<dyn WorkerPool>,
    pub(crate) counters: Counters,
    pub(crate) best: Option<Best>,
    phase: Phase,
}

/// The phases of a training, in their order. Those before the last one are only of trainings that start from a rule.
enum Phase {
    /// The rules that the search may begin from are measured.
    Begin,
    /// The linear rule to start from is searched. A step is a generation.
    Search(Box<RuleSearch>),
    /// The actor learns to imitate the rule that was found. This is one step.
    Imitate(Box<RuleSearch>),
    /// The actor learns by itself. A step is a round.
    Learn,
}

impl Trainer {
    /// Creates the state before the first step, or restores a stored one.
    pub(crate) fn new(
        config: TrainConfig,
        stored: Option<Stored>,
        device: &Device,
        backend: &Backend,
    ) -> Result<Self, TrainError> {
        let backend = backend.with_threads(config.rollout.threads)?;
        let states = stored.as_ref().map(|stored| &stored.state.workers[..]);
        let worker_pool = backend.workers(&config, states)?;
        let Stored {
            state,
            replay,
            learner,
        } = match stored {
            Some(stored) => stored,
            None => {
                let seed = stream(config.seed, "learner", 0).next_u64();
                let mut replay = Experience::new(&config);
                take_rollouts(&mut replay, worker_pool.as_ref());
                Stored {
                    state: State::new(config.to_toml()),
                    replay,
                    learner: Learner::new(&config, seed, device)?,
                }
            }
        };
        let counters = state.counters;
        let untouched = counters.rounds == 0 && counters.start_simulations == 0;
        let phase = match state.start {
            Some(search) => {
                let search = start::search(&config, &backend, Some(search))?;
                Phase::after(Box::new(search), &config, counters.elapsed_s)
            }
            None if untouched && config.starts_from_rule() => Phase::Begin,
            None => Phase::Learn,
        };
        Ok(Self {
            config,
            backend,
            device: device.clone(),
            learner,
            replay,
            batches: Default::default(),
            worker_pool,
            counters,
            best: state.best,
            phase,
        })
    }

    /// Returns the simulations so far, as in [`TrainConfig::simulations`].
    pub(crate) fn simulations(&self) -> u64 {
        let counters = &self.counters;
        let searched = self.phase.search().map(|search| search.state.simulations);
        // A fork is a part of a simulation.
        let of_forks = match counters.episode_decisions {
            0 => 0,
            decisions => counters.forked * counters.episodes / decisions,
        };
        let episodes = counters.episodes + self.config.rollout.workers as u64;
        searched.unwrap_or(counters.start_simulations)
            + of_forks
            + self.config.simulations_of(episodes, counters.decisions)
    }

    /// Runs steps until the budget is spent or `stop` is set, and stores the last state. The rules that a search may
    /// begin from are measured in any case.
    pub(crate) fn run(
        &mut self,
        output: &mut Output<'_>,
        validation: &ValidationSet,
        stop: &AtomicBool,
    ) -> Result<Status, TrainError> {
        let mut stored = Instant::now();
        output.console.reporter.begin(self.progress());
        let status = loop {
            if self.budget_spent() {
                break Status::Finished;
            }
            if stop.load(Ordering::SeqCst) && !matches!(self.phase, Phase::Begin) {
                break Status::Interrupted;
            }
            let learned = self.learns();
            let step = self.step(output, validation)?;
            for note in self.backend.notes() {
                output.console.say(&note);
            }
            self.check(output)?;
            let reporter = output.console.reporter;
            reporter.advance(self.progress(), step);
            let begins = self.learns() && !learned;
            if begins {
                reporter.end();
                reporter.begin(self.progress());
            }
            if (begins || self.is_checkpoint_due(stored)) && !self.budget_spent() {
                self.store_or_warn(output);
                stored = Instant::now();
            }
        };
        output.console.reporter.end();
        self.check(output)?;
        self.store(output)?;
        Ok(status)
    }

    /// Makes one step of the current phase.
    fn step(
        &mut self,
        output: &mut Output<'_>,
        validation: &ValidationSet,
    ) -> Result<Step, TrainError> {
        let clock = Instant::now();
        match mem::replace(&mut self.phase, Phase::Learn) {
            Phase::Learn => return Ok(self.round(output, validation)?.step()),
            Phase::Begin => {
                let search = start::search(&self.config, &self.backend, None)?;
                self.continue_search(Box::new(search), clock);
            }
            Phase::Search(mut search) => {
                self.generation(&mut search, output)?;
                self.continue_search(search, clock);
            }
            Phase::Imitate(search) => {
                self.imitate(*search, output)?;
                self.counters.elapsed_s += clock.elapsed().as_secs_f64();
            }
        }
        let step = |search: &RuleSearch| Step::Search {
            ratio_to_dt: search.state.best.value,
        };
        Ok(self.phase.search().map_or(Step::Imitation, step))
    }

    /// Continues with the search, or with the imitation if the search is over. `clock` has the time of this step.
    fn continue_search(&mut self, search: Box<RuleSearch>, clock: Instant) {
        self.counters.elapsed_s += clock.elapsed().as_secs_f64();
        self.phase = Phase::after(search, &self.config, self.counters.elapsed_s);
    }

    /// Runs a generation of the search for the rule to start from.
    fn generation(
        &self,
        search: &mut RuleSearch,
        output: &mut Output<'_>,
    ) -> Result<(), TrainError> {
        search.generation()?;
        if search.is_check_due() {
            search.check()?;
            let (generation, simulations) = (search.generations(), search.state.simulations);
            let value = search.state.best.value;
            output.curves.start(generation, simulations, value);
            output.console.say(&format!(
                "{generation:>9} generations {simulations:>5} simulations   rule {value:.3} × DT on training traces"
            ));
        }
        self.write_rule(search, output);
        Ok(())
    }

    /// Trains the actor to imitate the best rule of the search.
    fn imitate(&mut self, mut search: RuleSearch, output: &Output<'_>) -> Result<(), TrainError> {
        if !search.is_check_due() {
            search.check()?;
        }
        self.write_rule(&search, output);
        let (config, device, backend) = (&self.config, &self.device, &self.backend);
        let (weights, rule) = (self.learner.averaged_weights(), search.best());
        let imitate = || start::imitate(config, weights, &rule, device, backend);
        let (weights, difference) = backend.install(imitate)?;
        self.learner.set_weights(&weights);
        output.console.say(&format!(
            "start: {} simulations of linear rules, the best {:.3} × DT on training traces (rule.json); the \
             network acts as it does but for {difference:.3} of a range of 2",
            search.state.simulations,
            search.state.best.value
        ));
        self.counters.start_simulations = search.state.simulations + config.dagger_simulations();
        Ok(())
    }

    /// Writes the best rule of the search so far. A failure does not end the training: the rule is also in the stored
    /// state.
    fn write_rule(&self, search: &RuleSearch, output: &Output<'_>) {
        // A missing folder is reported after the step.
        if !output.folder.is_there() {
            return;
        }
        let file = start::rule_file(&self.config, search);
        if let Err(error) = output.folder.write(RULE, &file.to_json()) {
            output.console.warn(&format!("no rule this time: {error}"));
        }
    }

    fn round(
        &mut self,
        output: &mut Output<'_>,
        validation: &ValidationSet,
    ) -> Result<RoundReport, TrainError> {
        let start = Instant::now();
        let averaged = self.learner.averaged_weights();
        let before = self.counters;
        let (learned, learner_s, validated) = self.work(&averaged, validation)?;
        let round_s = start.elapsed().as_secs_f64();

        let learning = Learning::of(&learned);
        let played = self.worker_pool.played();
        let experienced = played.iter().flat_map(|played| &played.rollout);
        let rollouts = Rollouts::of(
            played.iter().flat_map(|played| &played.episodes),
            experienced.flat_map(Experienced::levels),
            self.config.actions().outputs(),
            played.iter().map(|played| played.spread),
        );
        let rollout_s = played.iter().map(|played| played.busy.as_secs_f64()).sum();
        let forked: u64 = played.iter().map(|played| played.forked).sum();
        let decisions = self.config.decisions_per_round() + forked;
        self.counters = Counters {
            rounds: before.rounds + 1,
            decisions: before.decisions + decisions,
            forked: before.forked + forked,
            validations: before.validations + u64::from(validated.is_some()),
            updates: self.learner.updates(),
            episodes: before.episodes + rollouts.episodes,
            episode_decisions: before.episode_decisions + rollouts.decisions_of_episodes,
            packets: before.packets + rollouts.packets,
            elapsed_s: before.elapsed_s + round_s,
            ..before
        };
        let busy = validated.as_ref().map_or(0.0, |v| v.busy.as_secs_f64());
        let result = validated.as_ref().map(|validated| validated.result);
        if let Some(validated) = validated {
            self.judge(&validated.result, &averaged, before, output, validation)?;
        }
        let report = RoundReport {
            decisions,
            learning,
            rollouts,
            clock: Clock {
                wall_s: round_s,
                learner_s: learner_s.as_secs_f64(),
                rollout_s,
                validation_s: busy,
                threads: self.backend.threads(),
            },
            ..self.report(result)
        };
        output.curves.round(&report, &output.console)?;
        Ok(report)
    }

    /// Runs learner, workers and validation in parallel; then the replay gets the workers' transitions.
    fn work(
        &mut self,
        averaged: &ActorWeights,
        validation: &ValidationSet,
    ) -> Result<(Learned, Duration, Option<Validation>), TrainError> {
        let config = &self.config;
        let exploring = config.algorithm == Algorithm::Sac
            && self.counters.decisions < config.rollout.learning_starts;
        let started = self.counters.start_simulations > 0;
        let every = config.validation.every_decisions;
        let due = self.counters.validations.checked_mul(every);
        let validation_due = due.is_some_and(|due| self.counters.decisions >= due);
        let mut newest = None;
        if let Learner::Ppo(ppo) = &mut self.learner {
            // The learner first uses the newest decisions, so the policy that collects next is the newest.
            let start = Instant::now();
            let replay = &mut self.replay;
            let learned = self.backend.install(|| learn_from_newest(replay, ppo));
            newest = Some((learned, start.elapsed()));
        }
        let actor = self.learner.actor_weights();
        let (learner, replay, batches) = (&mut self.learner, &mut self.replay, &mut self.batches);
        let worker_pool = &mut self.worker_pool;

        let learn = || match learner {
            Learner::Ppo(_) | Learner::Cma(_) => newest.unwrap_or_default(),
            Learner::Sac(sac) => {
                let start = Instant::now();
                let due = match exploring || !replay.is_ready() {
                    true => 0,
                    false => config.learner.updates_per_round,
                };
                let updates = learn_from(replay, sac, batches, due, config.learner.n_step);
                (updates, start.elapsed())
            }
        };
        let collect = || {
            let actor = (!exploring || started).then_some(&actor);
            worker_pool.collect(config.worker_decisions(), actor)
        };
        let validated = validation_due.then(|| Decider::network(averaged.clone()));
        let validate = || validated.map(|actor| validation.validate(actor));
        let ((updates, learner), collected, validated) =
            self.backend.run_concurrently(learn, collect, validate);
        collected?;
        take_rollouts(&mut self.replay, self.worker_pool.as_ref());
        if exploring
            && self.counters.decisions + self.config.decisions_per_round()
                >= self.config.rollout.learning_starts
        {
            self.even_rewards();
        }
        Ok((updates, learner, validated.transpose()?))
    }

    /// In a mixture, brings the returns of all scenarios to the deviation that they have in the first one.
    fn even_rewards(&mut self) {
        let factors = self.replay.even_factors(&self.config);
        for (worker, factor) in factors.into_iter().enumerate() {
            self.replay.scale(worker, factor);
            self.worker_pool.scale(worker, factor);
        }
    }

    /// Reports a validation. The best actor so far is saved.
    fn judge(
        &mut self,
        result: &ValidationResult,
        weights: &ActorWeights,
        at: Counters,
        output: &Output<'_>,
        validation: &ValidationSet,
    ) -> Result<(), TrainError> {
        let better = result.value.is_finite()
            && self
                .best
                .is_none_or(|best| result.value < best.result.value);
        output.console.say(&format!(
            "{:>9} decisions {:>7} updates   validation {:.3} × DT ({:.3} to {:.3}), {:.0} % won{}",
            at.decisions,
            at.updates,
            result.value,
            result.low,
            result.high,
            100.0 * result.won,
            if better { "   best so far" } else { "" },
        ));
        // A missing folder is not created again for this.
        if !better || !weights.is_finite() || !output.folder.is_there() {
            return Ok(());
        }
        let config = &self.config;
        let mut manifest = Manifest::new(
            config.scenario_name(),
            &config.scenario.to_toml(),
            &config.objective.to_string(),
            config.seed,
        )
        .over(config.low_level.clone());
        manifest.learner = Some(config.learner_in_words().to_owned());
        manifest.decisions = at.decisions;
        manifest.updates = at.updates;
        manifest.validation = Some(validation.for_manifest(result));
        let saved = save_actor(&output.folder.best(), weights, &manifest);
        if saved.is_err() && !output.folder.is_there() {
            // Moved meanwhile, which the check after the round reports.
            return Ok(());
        }
        saved?;
        self.best = Some(Best {
            decisions: at.decisions,
            updates: at.updates,
            result: *result,
        });
        Ok(())
    }

    /// Validates the final actor, outside any round: the last validation of a round is of an
    /// earlier actor. The stored state stays as it is: a resumed run equals one that was not ended here.
    pub(crate) fn validate_last(
        &mut self,
        output: &mut Output<'_>,
        validation: &ValidationSet,
    ) -> Result<(), TrainError> {
        let weights = self.learner.averaged_weights();
        let actor = Decider::network(weights.clone());
        let result = validation.validate(actor)?.result;
        self.judge(&result, &weights, self.counters, output, validation)?;
        let report = self.report(Some(result));
        output.curves.validation(&report, &output.console)
    }

    /// Reports counters and a validation, and nothing else of a round.
    fn report(&self, validation: Option<ValidationResult>) -> RoundReport {
        RoundReport {
            counters: self.counters,
            simulations: self.simulations(),
            replay: self.replay.len() as u64,
            validation,
            best: self.best.map(|best| best.result.value),
            ..RoundReport::default()
        }
    }

    /// Stores the whole state.
    pub(crate) fn store(&self, output: &mut Output<'_>) -> Result<(), TrainError> {
        let mut state = State::new(self.config.to_toml());
        state.counters = self.counters;
        state.best = self.best;
        state.start = self.phase.search().map(|search| search.state.clone());
        (state.metrics_bytes, state.perf_bytes) = output.curves.sync()?;
        state.workers = self.worker_pool.states();
        // A missing folder is not created again.
        if !output.folder.is_there() {
            return Err(TrainError::io(output.folder.path())(
                io::ErrorKind::NotFound.into(),
            ));
        }
        let keep = self.config.checkpoint.keep;
        let start = Instant::now();
        let folder = state.save(
            &output.folder.checkpoints(),
            keep,
            &self.learner,
            &self.replay,
        )?;
        let seconds = start.elapsed().as_secs_f64();
        tracing::info!("{} written in {seconds:.2} s", folder.display());
        output.stored = Some(folder);
        output.folder.watch_checkpoints()
    }

    /// Stores the state. A failure does not end the training: the earlier state is still there.
    fn store_or_warn(&self, output: &mut Output<'_>) {
        if let Err(error) = self.store(output) {
            output
                .console
                .warn(&format!("no checkpoint this time: {error}"));
        }
    }

    /// Reports files of the run folder that are missing or that this training has not written. The state is stored if
    /// that is still possible.
    pub(crate) fn check(&self, output: &mut Output<'_>) -> Result<(), TrainError> {
        let lost = output.lost(self.best.is_some());
        if lost.is_empty() {
            return Ok(());
        }
        output.console.reporter.end();
        let path = output.folder.path().to_owned();
        let decisions = self.counters.decisions;
        let left = if !output.folder.is_there() {
            "where it was moved, its last checkpoint is there to resume from; where it was removed, \
             all its results are lost"
                .to_owned()
        } else if let Err(error) = self.store(output) {
            format!("the state cannot be stored: {error}")
        } else {
            format!(
                "the state after {decisions} decisions is stored; --resume {} --force continues from it",
                path.display()
            )
        };
        Err(TrainError::FolderChanged { path, lost, left })
    }

    /// Returns true in the last phase.
    fn learns(&self) -> bool {
        matches!(self.phase, Phase::Learn)
    }

    fn is_checkpoint_due(&self, stored: Instant) -> bool {
        let config = &self.config.checkpoint;
        let by_rounds =
            config.every_rounds > 0 && self.counters.rounds.is_multiple_of(config.every_rounds);
        by_rounds || stored.elapsed().as_secs_f64() >= config.every_seconds
    }

    fn budget_spent(&self) -> bool {
        let (budget, counters) = (&self.config.budget, &self.counters);
        let steps = budget.steps.is_some_and(|most| counters.decisions >= most);
        let minutes = budget.minutes.map(|minutes| 60.0 * minutes);
        let time = minutes.is_some_and(|most| counters.elapsed_s >= most);
        // With CMA-ES the search is the whole training.
        self.learns() && (steps || time || self.config.algorithm == Algorithm::Cma)
    }

    fn progress(&self) -> Progress {
        if !self.learns() {
            return Progress {
                done: self.phase.search().map_or(0, RuleSearch::generations),
                total: self.config.search().generations,
            };
        }
        let (budget, counters) = (&self.config.budget, &self.counters);
        let seconds = 60.0 * budget.minutes.unwrap_or(0.0);
        let (done, total) = match budget.steps {
            Some(steps) => (counters.decisions, steps),
            None => (floor_u64(counters.elapsed_s), floor_u64(seconds)),
        };
        Progress {
            done: done.min(total),
            total,
        }
    }
}

impl Phase {
    /// Returns the phase that follows a step of the search after so many seconds of training. Where only the time ends
    /// the training, its share ends the search too.
    fn after(search: Box<RuleSearch>, config: &TrainConfig, elapsed_s: f64) -> Self {
        let limits = config.search();
        let minutes = config.budget.minutes;
        let spent = minutes.is_some_and(|minutes| elapsed_s >= limits.share * 60.0 * minutes);
        match spent || search.generations() >= limits.generations {
            true => Self::Imitate(search),
            false => Self::Search(search),
        }
    }

    /// Returns the search, if there is one.
    fn search(&self) -> Option<&RuleSearch> {
        match self {
            Self::Search(search) | Self::Imitate(search) => Some(search),
            Self::Begin | Self::Learn => None,
        }
    }
}

/// Stores the experience of all workers, in their order.
fn take_rollouts(replay: &mut Experience, worker_pool: &dyn WorkerPool) {
    for (index, played) in worker_pool.played().into_iter().enumerate() {
        for experienced in &played.rollout {
            replay.take(index, experienced);
        }
        for pair in &played.pairs {
            replay.take_pair(index, pair);
        }
    }
}
