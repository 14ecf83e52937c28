//! The place where trainings and searches compute: threads of this process, or hosts of a cluster.

use std::ops::Range;
use std::sync::Arc;
use std::thread;

use bufgym_agents::Examples;
use bufgym_env::control::FlowTimes;
use bufgym_env::gym::EnvError;
use bufgym_eval::evaluate::{EvalConfig, EvalError, NumberedTrace, evaluate_on};
use bufgym_eval::{Evaluation, evaluate_traces};
use bufgym_models::LinearRule;
use bufgym_sim::network::SimError;
use bufgym_sim::traffic::generate;
use bufgym_util::rng::{Split, trace_seed};
use rayon::prelude::*;
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::remote::{Cluster, RemoteWorkers, Traffic};
use crate::rollout::{Worker, WorkerPool, WorkerState};
use crate::simulations::{Decider, Measured, Setting, TraceRef, TraceSet};
use crate::{TrainConfig, TrainError};

/// Runs rollouts and simulations on threads of this process, or on the hosts of a [`Cluster`].
///
/// The default is the current thread pool. Results are the same, bit for bit, for any number of threads and hosts.
/// Clones share the same threads and hosts.
#[derive(Clone, Debug, Default)]
pub struct Backend {
    /// Threads of this process; the current pool if absent.
    pool: Option<Arc<ThreadPool>>,
    /// Hosts that simulate instead of this process. The learner always computes in this process.
    hosts: Option<Cluster>,
}

impl From<&Cluster> for Backend {
    fn from(cluster: &Cluster) -> Self {
        let hosts = Some(cluster.clone());
        Self { pool: None, hosts }
    }
}

impl Backend {
    /// Returns the same backend with so many threads of its own in this process; 0 is one per core.
    ///
    /// # Errors
    /// [`TrainError::Threads`] when the threads cannot be started.
    pub(crate) fn with_threads(&self, threads: usize) -> Result<Self, TrainError> {
        let pool = ThreadPoolBuilder::new()
            .num_threads(threads)
            .thread_name(|index| format!("bufgym-{index}"))
            .build()
            .map_err(|error| TrainError::Threads {
                threads,
                reason: error.to_string(),
            })?;
        Ok(Self {
            pool: Some(Arc::new(pool)),
            hosts: self.hosts.clone(),
        })
    }

    /// Runs `work` on the threads of this process.
    pub(crate) fn install<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        match &self.pool {
            Some(pool) => pool.install(work),
            None => work(),
        }
    }

    /// Returns the number of threads, those of the hosts included.
    pub(crate) fn threads(&self) -> usize {
        let own = self.install(rayon::current_num_threads);
        own + self.hosts.as_ref().map_or(0, Cluster::threads)
    }

    /// Returns the events of hosts since the last call, one per line.
    pub(crate) fn notes(&self) -> Vec<String> {
        self.hosts.as_ref().map(Cluster::notes).unwrap_or_default()
    }

    /// Returns the counts of messages to and from hosts; `None` if there are no hosts.
    pub(crate) fn traffic(&self) -> Option<Traffic> {
        self.hosts.as_ref().map(Cluster::traffic)
    }

    /// Prepares traces for [`measure`](Backend::measure). Hosts generate the traces that they simulate themselves.
    pub(crate) fn prepare(
        &self,
        setting: Setting,
        traces: Vec<TraceRef>,
    ) -> Result<TraceSet, SimError> {
        let know = traces.par_iter().map(|&at| setting.know(at));
        let prepared = match self.hosts {
            Some(_) => Vec::new(),
            None => self.install(|| know.collect::<Result<_, SimError>>())?,
        };
        Ok(TraceSet {
            setting,
            traces,
            prepared,
        })
    }

    /// Runs every decider on every trace. Measurements are by decider, then by trace.
    pub(crate) fn measure(
        &self,
        traces: &TraceSet,
        deciders: &[Decider],
    ) -> Result<Vec<Measured>, TrainError> {
        match &self.hosts {
            Some(cluster) => Ok(cluster.measure(&traces.setting, &traces.traces, deciders)?),
            None => Ok(self.install(|| traces.measure(deciders))?),
        }
    }

    /// Plays every trace with the student, and asks the teacher for its decision in every state. Examples are by trace,
    /// then by number of ports.
    ///
    /// # Panics
    /// When the student is a rule.
    pub(crate) fn teach(
        &self,
        setting: &Setting,
        traces: &[TraceRef],
        student: &Decider,
        teacher: &LinearRule,
    ) -> Result<Vec<Vec<Examples>>, TrainError> {
        match &self.hosts {
            Some(cluster) => Ok(cluster.teach(setting, traces, student, teacher)?),
            None => Ok(self.install(|| setting.teach(traces, student, teacher))?),
        }
    }

    /// Evaluates policies on the traces with these indices of a split.
    pub(crate) fn evaluate(
        &self,
        config: &EvalConfig,
        split: Split,
        indices: Range<u64>,
    ) -> Result<Evaluation, EvalError> {
        let numbered = |index| {
            let seed = trace_seed(split, config.seed, index);
            let trace = generate(&config.scenario, seed);
            NumberedTrace { index, seed, trace }
        };
        self.install(|| {
            let traces: Vec<NumberedTrace> = indices.into_par_iter().map(numbered).collect();
            match &self.hosts {
                Some(cluster) => evaluate_on(config, split, &traces, cluster, &|_| ()),
                None => evaluate_traces(config, split, &traces, &|_| ()),
            }
        })
    }

    /// Creates the rollout workers of a training, in their first episodes or in stored states.
    pub(crate) fn workers(
        &self,
        config: &TrainConfig,
        stored: Option<&[WorkerState]>,
    ) -> Result<Box<dyn WorkerPool>, TrainError> {
        if let Some(cluster) = &self.hosts {
            return Ok(Box::new(RemoteWorkers::new(config, cluster, stored)?));
        }
        let flow_times = FlowTimes::default();
        let indices = (0..config.rollout.workers).into_par_iter();
        let new = indices.map(|index| {
            let stored = stored.map(|all| &all[index]);
            Worker::new(config, index, &flow_times, stored)
        });
        let workers = self.install(|| new.collect::<Result<Vec<Worker>, EnvError>>())?;
        Ok(Box::new(workers))
    }

    /// Runs the three parts of a round concurrently, and returns their results.
    ///
    /// # Panics
    /// When a part panics.
    pub(crate) fn run_concurrently<L: Send, C: Send, V: Send>(
        &self,
        learn: impl FnOnce() -> L + Send,
        collect: impl FnOnce() -> C + Send,
        validate: impl FnOnce() -> V + Send,
    ) -> (L, C, V) {
        if self.hosts.is_none() {
            let both = || rayon::join(collect, validate);
            let (learned, (collected, validated)) = self.install(|| rayon::join(learn, both));
            return (learned, collected, validated);
        }
        // The learner has the threads of this process, while two more wait for messages from hosts.
        let finished = "a panic ends the training";
        thread::scope(|scope| {
            let (collected, validated) = (scope.spawn(collect), scope.spawn(validate));
            let learned = self.install(learn);
            let collected = collected.join().expect(finished);
            (learned, collected, validated.join().expect(finished))
        })
    }
}
