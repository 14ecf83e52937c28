//! What can go wrong.

use std::io;

use bufgym_sim::network::SimError;
use thiserror::Error;

/// Why a run of the testbed did not come to its end.
#[derive(Debug, Error)]
pub enum TestbedError {
    /// The scenario, the trace or the settings cannot be played here; the message says what can.
    #[error("{0}")]
    Input(String),
    /// The scenario is inconsistent, or the trace or the policy does not fit it.
    #[error(transparent)]
    Scenario(#[from] SimError),
    /// The operating system refuses a step.
    #[error("{what}: {source}")]
    System {
        /// The step.
        what: String,
        /// What it says.
        source: io::Error,
    },
    /// A program of iproute2 has failed.
    #[error("`{command}` has failed: {message}")]
    Command {
        /// The command line.
        command: String,
        /// What it wrote on stderr, or why it could not be started.
        message: String,
    },
    /// The process of a host has failed or ended.
    #[error("host {host}: {problem}")]
    Host {
        /// Its number.
        host: usize,
        /// What it said.
        problem: String,
    },
    /// The flows were not complete when the time was over.
    #[error(
        "{unfinished} of {flows} flows were not complete after {limit_s} s; raise the limit or lower the load"
    )]
    Timeout {
        /// Flows that were not complete.
        unfinished: usize,
        /// Flows of the trace.
        flows: usize,
        /// The limit, seconds.
        limit_s: u64,
    },
    /// It was asked to stop.
    #[error("stopped")]
    Stopped,
}

impl TestbedError {
    /// Whether other input would help.
    pub fn is_input(&self) -> bool {
        matches!(self, TestbedError::Input(_) | TestbedError::Scenario(_))
    }

    /// An error of the operating system at this step.
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> TestbedError {
        let what = what.into();
        move |source| TestbedError::System { what, source }
    }
}
