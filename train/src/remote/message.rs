//! Messages between head and hosts.

use bufgym_agents::Examples;
use bufgym_eval::batch::Batch;
use bufgym_eval::portable::PortableNetwork;
use serde::{Deserialize, Serialize};

use crate::rollout::{RolloutResult, WorkerState};
use crate::simulations::{Decider, Measured, Setting, TraceRef};

/// Introduction of a host.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) name: String,
    pub(super) version: String,
    pub(super) build: String,
    pub(super) arithmetic: String,
    pub(super) threads: usize,
}

/// A request to a host. Between two requests a host holds nothing but workers, so any host can finish the work of
/// another.
#[derive(Clone, Serialize, Deserialize)]
pub(super) enum Request {
    Play(Play),
    Measure(Measure),
    Teach(Teach),
    /// Simulations of an evaluation or of figures.
    Simulate(Batch),
}

/// Rollouts of workers that make so many decisions each.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Play {
    /// The settings of the training as TOML.
    pub(super) config: String,
    /// Number of finished rounds of these workers.
    pub(super) round: u64,
    pub(super) decisions: u64,
    /// Policy of the workers. If absent, decisions are uniformly random.
    pub(super) actor: Option<Box<PortableNetwork>>,
    pub(super) workers: Vec<(usize, Origin)>,
}

/// Origin of a worker's state.
#[derive(Clone, Serialize, Deserialize)]
pub(super) enum Origin {
    /// It begins its first episode.
    New,
    /// The host has it from the round before.
    Held,
    /// It is restored.
    Stored(Box<WorkerState>),
}

/// Simulations to measure.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Measure {
    pub(super) setting: Setting,
    pub(super) deciders: Vec<Decider>,
    /// Index of the decider, and trace.
    pub(super) runs: Vec<(usize, TraceRef)>,
}

/// Simulations in which a student decides, with the decision of a teacher in every state.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Teach {
    pub(super) setting: Setting,
    pub(super) student: Decider,
    /// A linear rule.
    pub(super) teacher: Decider,
    pub(super) traces: Vec<TraceRef>,
}

/// An answer of a host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Answer {
    /// Rollouts, in the order of the workers.
    RolloutResult(Vec<Part>),
    /// Measurements, in the order of the runs.
    Measured(Vec<Measured>),
    /// Examples, in the order of the traces, each by number of ports.
    Taught(Vec<Vec<Examples>>),
    /// Results in the order of the simulations, as [`Batch::run`] returns them.
    Simulated(Vec<Vec<u8>>),
    /// A policy does not fit its scenario, here as elsewhere.
    Unfit(String),
    /// The work has failed, as it would elsewhere.
    Failed(String),
    /// The request makes no sense here; another host may do it.
    Refused(String),
}

/// The rollout of a worker, and its state afterwards.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Part {
    pub(super) worker: usize,
    pub(super) played: RolloutResult,
    pub(super) state: WorkerState,
}
