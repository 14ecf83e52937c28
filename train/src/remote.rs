//! Rounds and simulations on other machines: of trainings, evaluations, searches for parameters and figures.
//!
//! The learner stays in one process, the head. [`Cluster`] is its side: it holds the open work and assigns it to
//! [hosts](Host). A host plays rollout workers and runs simulations. Both sides exchange [messages](Message) of bytes.
//! The transport, such as Ray, is not part of this module; [`InProcess`] carries the messages between threads.
//!
//! # The same bits
//! A worker is determined by its state before a round, the actor and the number of decisions, and a simulation by trace
//! and decider. The head processes the experience of the workers in their order. So weights and results are those of a
//! training in one process, bit for bit, whichever host did the work.
//!
//! # Lost hosts
//! With every round a host sends the state of its workers after it: random streams, the trace of the episode and the
//! actions in it. If a host is lost, others restore its workers to the state before the round by a replay of these
//! episodes, as a resume does, and play the round again. Simulations are simply run again.
//!
//! # Requirements on hosts
//! A host reports its build of bufgym and the result of a small computation of the simulator and the actor
//! ([`RemoteError::Build`], [`RemoteError::Arithmetic`]). Both must be the same as on the head. The learner computes on
//! the head alone, because the rounding of its sums depends on the vector units of the processor.

mod cluster;
mod frame;
mod host;
mod identity;
mod in_process;
mod message;
mod worker_pool;

pub use cluster::{Cluster, HostId, Message, Next, Traffic};
pub use host::Host;
pub use in_process::InProcess;

pub use crate::error::RemoteError;

pub(crate) use worker_pool::RemoteWorkers;
