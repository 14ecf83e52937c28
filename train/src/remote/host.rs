//! The host's side.

use std::collections::{BTreeMap, VecDeque};
use std::path::Path;
use std::sync::Arc;

use bufgym_env::control::FlowTimes;
use bufgym_env::gym::EnvError;
use bufgym_eval::batch::{Batch, BatchError, Measurements};
use bufgym_eval::evaluate::is_unfit;
use bufgym_models::{ActorWeights, FastActor};
use bufgym_sim::network::SimError;
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use super::RemoteError;
use super::frame::{self, Kind};
use super::identity::Identity;
use super::message::{Answer, Measure, Origin, Part, Play, Request, Teach};
use crate::TrainConfig;
use crate::rollout::Worker;
use crate::simulations::{Decider, PreparedTrace, RunnablePolicy, Setting, TraceRef};

/// Limit on the flows of the traces that are kept: some 256 MiB.
const MAX_FLOWS: usize = 4 << 20;

/// Plays rollout workers and runs simulations for a [`Cluster`](super::Cluster).
pub struct Host {
    identity: Identity,
    pool: ThreadPool,
    measurements: Measurements,
    players: Option<Players>,
    traces: Option<Traces>,
}

/// The workers of a training that play here.
struct Players {
    /// The settings as they were sent.
    text: String,
    config: TrainConfig,
    /// Workers by index, each with its number of finished rounds.
    held: BTreeMap<usize, (u64, Worker)>,
    flow_times: FlowTimes,
}

/// Traces of a setting; the oldest are removed first.
struct Traces {
    setting: Setting,
    known: BTreeMap<TraceRef, Arc<PreparedTrace>>,
    order: VecDeque<TraceRef>,
    flows: usize,
}

impl Host {
    /// Creates a host that computes on so many threads, at least one. `build` identifies this program, as in
    /// [`Cluster::new`](super::Cluster::new). The host refuses simulations that are to measure anything else than
    /// `measurements`.
    ///
    /// # Errors
    /// When the threads cannot be started.
    pub fn new(
        build: &str,
        threads: usize,
        measurements: Measurements,
    ) -> Result<Host, RemoteError> {
        let pool = ThreadPoolBuilder::new()
            .num_threads(threads.max(1))
            .thread_name(|index| format!("bufgym-host-{index}"))
            .build()
            .map_err(|error| RemoteError::Threads {
                threads,
                reason: error.to_string(),
            })?;
        Ok(Host {
            identity: Identity::here(build),
            pool,
            measurements,
            players: None,
            traces: None,
        })
    }

    /// Returns the message for [`Cluster::join`](super::Cluster::join); `name` is the name of this host in messages.
    ///
    /// # Errors
    /// When the message cannot be written.
    pub fn hello(&self, name: &str) -> Result<Vec<u8>, RemoteError> {
        let hello = self.identity.hello(name, self.pool.current_num_threads());
        frame::encode(Kind::Hello, &hello)
    }

    /// Serves a request. A request that makes no sense is answered too, with a refusal.
    ///
    /// # Errors
    /// When the answer cannot be written.
    pub fn serve(&mut self, request: &[u8]) -> Result<Vec<u8>, RemoteError> {
        let answer = match frame::decode(Kind::Request, request) {
            Ok(request) => self.answer(request).unwrap_or_else(|problem| problem),
            Err(error) => Answer::Refused(error.to_string()),
        };
        frame::encode(Kind::Answer, &answer)
    }

    fn answer(&mut self, request: Request) -> Result<Answer, Answer> {
        match request {
            Request::Play(play) => self.play(play),
            Request::Measure(measure) => self.measure(measure),
            Request::Teach(teach) => self.teach(teach),
            Request::Simulate(batch) => self.simulate(&batch),
        }
    }

    fn play(&mut self, play: Play) -> Result<Answer, Answer> {
        let actor = play.actor.map(|actor| ActorWeights::try_from(*actor));
        let actor = actor.transpose();
        let actor = actor.map_err(|error| Answer::Refused(error.to_string()))?;
        let actor = actor.as_ref().map(FastActor::new);
        let players = Players::of(&mut self.players, &play.config)?;
        let workers = play.workers.into_iter();
        let ready = workers.map(|(index, origin)| players.take(index, play.round, origin));
        let ready = ready.collect::<Result<Vec<(usize, Option<Worker>, Origin)>, Answer>>()?;
        let (config, flow_times) = (&players.config, &players.flow_times);
        let played = self.pool.install(|| {
            let played = ready.into_par_iter().map(|(index, held, origin)| {
                let mut worker = match (held, &origin) {
                    (Some(worker), _) => worker,
                    (None, Origin::Stored(state)) => {
                        Worker::new(config, index, flow_times, Some(state))?
                    }
                    (None, Origin::New | Origin::Held) => {
                        Worker::new(config, index, flow_times, None)?
                    }
                };
                if play.decisions > 0 {
                    worker.collect(play.decisions, actor.as_ref())?;
                }
                let part = Part {
                    worker: index,
                    played: worker.take_played(),
                    state: worker.state(),
                };
                Ok((part, worker))
            });
            played.collect::<Result<Vec<(Part, Worker)>, EnvError>>()
        })?;
        let mut parts = Vec::with_capacity(played.len());
        for (part, worker) in played {
            players.held.insert(part.worker, (play.round + 1, worker));
            parts.push(part);
        }
        Ok(Answer::RolloutResult(parts))
    }

    fn measure(&mut self, measure: Measure) -> Result<Answer, Answer> {
        let Measure {
            setting,
            deciders,
            runs,
        } = measure;
        let scenarios = setting.scenarios.len();
        let foreign = |&(decider, at): &(usize, TraceRef)| {
            decider >= deciders.len() || at.scenario >= scenarios
        };
        if runs.iter().any(foreign) {
            return Err(Answer::Refused(
                "the request names an unknown scenario or policy".to_owned(),
            ));
        }
        let traces = Traces::of(&mut self.traces, setting);
        let ready: Vec<RunnablePolicy> = deciders.iter().map(Decider::ready).collect();
        let measured = self.pool.install(|| {
            let known = traces.know(runs.iter().map(|(_, at)| *at))?;
            let pairs = runs.par_iter().zip(&known);
            let run = |((decider, _), known): (&(usize, TraceRef), &Arc<PreparedTrace>)| {
                traces.setting.measure(&ready[*decider], known)
            };
            pairs.map(run).collect::<Result<_, SimError>>()
        })?;
        Ok(Answer::Measured(measured))
    }

    fn simulate(&self, batch: &Batch) -> Result<Answer, Answer> {
        let results = self.pool.install(|| batch.run(&self.measurements))?;
        Ok(Answer::Simulated(results))
    }

    fn teach(&self, teach: Teach) -> Result<Answer, Answer> {
        let Teach {
            setting,
            student,
            teacher,
            traces,
        } = teach;
        let scenarios = setting.scenarios.len();
        let (Decider::Linear(teacher), false) = (
            teacher,
            matches!(student, Decider::Rule(_)) || traces.iter().any(|at| at.scenario >= scenarios),
        ) else {
            return Err(Answer::Refused(
                "teacher, student or trace is missing".to_owned(),
            ));
        };
        let taught = self
            .pool
            .install(|| setting.teach(&traces, &student, &teacher));
        Ok(Answer::Taught(taught?))
    }
}

impl Players {
    /// Returns the workers of the training with these settings. Workers of another training are dropped.
    fn of<'a>(players: &'a mut Option<Players>, text: &str) -> Result<&'a mut Players, Answer> {
        let same = players.as_ref().is_some_and(|players| players.text == text);
        if !same {
            let config = TrainConfig::from_toml_str(text, Path::new("the settings of the head"));
            let config = config.and_then(|config| config.validate().map(|()| config));
            *players = Some(Players {
                text: text.to_owned(),
                config: config.map_err(|error| Answer::Refused(error.to_string()))?,
                held: BTreeMap::new(),
                flow_times: FlowTimes::default(),
            });
        }
        let none = || Answer::Refused("there are no settings".to_owned());
        players.as_mut().ok_or_else(none)
    }

    /// Takes a worker out, if it is here in its state of that round.
    fn take(
        &mut self,
        index: usize,
        round: u64,
        origin: Origin,
    ) -> Result<(usize, Option<Worker>, Origin), Answer> {
        let refused = |what: &str| Err(Answer::Refused(format!("worker {index}: {what}")));
        if index >= self.config.rollout.workers {
            return refused("the training has fewer");
        }
        let held = self.held.remove(&index);
        match (&origin, held) {
            (Origin::Held, Some((at, worker))) if at == round => Ok((index, Some(worker), origin)),
            (Origin::Held, _) => refused("it is not here as of that round"),
            _ => Ok((index, None, origin)),
        }
    }
}

impl Traces {
    /// Returns the traces of this setting. Traces of another setting are dropped.
    fn of(traces: &mut Option<Traces>, setting: Setting) -> &mut Traces {
        let kept = traces.take().filter(|traces| traces.setting == setting);
        traces.insert(kept.unwrap_or(Traces {
            setting,
            known: BTreeMap::new(),
            order: VecDeque::new(),
            flows: 0,
        }))
    }

    /// Returns these traces. Those that are not known yet are generated in parallel on the current pool.
    fn know(
        &mut self,
        wanted: impl Iterator<Item = TraceRef>,
    ) -> Result<Vec<Arc<PreparedTrace>>, SimError> {
        let wanted: Vec<TraceRef> = wanted.collect();
        let mut missing = wanted.clone();
        missing.retain(|at| !self.known.contains_key(at));
        missing.sort_unstable();
        missing.dedup();
        let setting = &self.setting;
        let found = missing.into_par_iter().map(|at| setting.know(at));
        let found: Vec<PreparedTrace> = found.collect::<Result<_, SimError>>()?;
        for known in found {
            self.flows += known.trace.flows.len();
            self.order.push_back(known.at);
            self.known.insert(known.at, Arc::new(known));
        }
        let known = wanted
            .iter()
            .map(|at| Arc::clone(&self.known[at]))
            .collect();
        self.forget();
        Ok(known)
    }

    fn forget(&mut self) {
        while self.flows > MAX_FLOWS
            && let Some(oldest) = self.order.pop_front()
        {
            let known = self.known.remove(&oldest);
            self.flows -= known.map_or(0, |known| known.trace.flows.len());
        }
    }
}

impl From<EnvError> for Answer {
    fn from(error: EnvError) -> Self {
        Self::Failed(error.to_string())
    }
}

impl From<SimError> for Answer {
    fn from(error: SimError) -> Self {
        let problem = error.to_string();
        match is_unfit(&error) {
            true => Self::Unfit(problem),
            false => Self::Failed(problem),
        }
    }
}

impl From<BatchError> for Answer {
    fn from(error: BatchError) -> Self {
        match error {
            BatchError::Unfit(problem) => Self::Unfit(problem),
            BatchError::Failed(problem) => Self::Failed(problem),
            BatchError::Senseless(problem) => Self::Refused(problem),
        }
    }
}
