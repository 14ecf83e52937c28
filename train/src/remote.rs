//! Rounds and simulations on other machines: of trainings, evaluations, searches for parameters and figures.
//!
//! The learner stays in one process, the head. [`Cluster`] is its side: it holds the work that is to be done and
//! says which [`Host`] is asked for what. A host plays rollout workers and runs simulations. Both sides speak in
//! [messages](Message) of bytes; what carries them, such as Ray, is not known here. [`InProcess`] carries them
//! between threads.
//!
//! # The same bits
//! A worker is determined by its state before a round, the actor and the number of decisions, and a simulation by
//! trace and decider. The head takes what workers experienced in the order of the workers. So weights and results
//! are those of a training in one process, bit for bit, whichever host did what.
//!
//! # Lost hosts
//! With every round a host sends the state in which it leaves its workers: random streams, the trace of the episode
//! and the actions in it. Where a host is lost, others restore its workers to the state before the round by a replay
//! of these episodes, as a resume does, and play the round again; simulations are simply run again.
//!
//! # Who may join
//! A host says which build of bufgym it runs, and what a small computation of the simulator and the actor gives there
//! ([`RemoteError::Build`], [`RemoteError::Arithmetic`]). Both must be as on the head. The learner, whose sums are
//! rounded as the vector units of the processor have it, computes on the head alone.

mod cluster;
mod crew;
mod error;
mod frame;
mod host;
mod identity;
mod in_process;
mod message;

pub use cluster::{Cluster, HostId, Message, Next, Traffic};
pub use error::RemoteError;
pub use host::Host;
pub use in_process::InProcess;

pub(crate) use crew::RemoteCrew;
