//! What head and hosts say to each other.

use bufgym_agents::Examples;
use bufgym_eval::batch::Batch;
use bufgym_eval::portable::PortableNetwork;
use serde::{Deserialize, Serialize};

use crate::rollout::{Played, WorkerState};
use crate::simulations::{Decider, Measured, Setting, TraceRef};

/// How a host introduces itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) build: String,
    pub(super) arithmetic: String,
    pub(super) threads: usize,
}

/// What a host is asked for. It holds nothing but workers between two requests, so that any host can do what another
/// one did not finish.
#[derive(Clone, Serialize, Deserialize)]
pub(super) enum Request {
    Play(Play),
    Measure(Measure),
    Teach(Teach),
    /// Simulations of an evaluation or of figures.
    Simulate(Batch),
}

/// Workers that make so many decisions each.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Play {
    /// The settings of the training as TOML.
    pub(super) config: String,
    /// Rounds that these workers have behind them.
    pub(super) round: u64,
    pub(super) decisions: u64,
    /// Without one, decisions are uniformly random.
    pub(super) actor: Option<Box<PortableNetwork>>,
    pub(super) workers: Vec<(usize, Origin)>,
}

/// Where a worker comes from.
#[derive(Clone, Serialize, Deserialize)]
pub(super) enum Origin {
    /// It begins its first episode.
    New,
    /// The host has it from the round before.
    Held,
    /// It is restored.
    Stored(Box<WorkerState>),
}

/// Simulations that are measured.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Measure {
    pub(super) setting: Setting,
    pub(super) deciders: Vec<Decider>,
    /// Index of the decider, and trace.
    pub(super) runs: Vec<(usize, TraceRef)>,
}

/// Simulations in which a pupil decides and a teacher says what it would do.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Teach {
    pub(super) setting: Setting,
    pub(super) pupil: Decider,
    /// A linear rule.
    pub(super) teacher: Decider,
    pub(super) traces: Vec<TraceRef>,
}

/// What a host answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    /// In the order of the workers.
    Played(Vec<Part>),
    /// In the order of the runs.
    Measured(Vec<Measured>),
    /// In the order of the traces, each by number of ports.
    Taught(Vec<Vec<Examples>>),
    /// In the order of the simulations, as [`Batch::run`] gives them.
    Simulated(Vec<Vec<u8>>),
    /// A policy does not fit its scenario, here as elsewhere.
    Unfit(String),
    /// The work has failed, as it would elsewhere.
    Failed(String),
    /// The request makes no sense here; another host may do it.
    Refused(String),
}

/// What a worker did, and how it is now.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Part {
    pub(super) worker: usize,
    pub(super) played: Played,
    pub(super) state: WorkerState,
}
