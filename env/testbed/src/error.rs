//! Errors of the testbed.

use std::io;

use bufgym_sim::network::SimError;
use thiserror::Error;

/// Reason why a run of the testbed did not complete.
#[derive(Debug, Error)]
pub enum TestbedError {
    /// The scenario, the trace or the settings cannot be played here; the message names what is
    /// possible.
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
        /// Error of the operating system.
        source: io::Error,
    },
    /// A program of iproute2 has failed.
    #[error("`{command}` has failed: {message}")]
    Command {
        /// The command line.
        command: String,
        /// Output on stderr, or the reason why it could not be started.
        message: String,
    },
    /// The process of a host has failed or ended.
    #[error("host {host}: {problem}")]
    Host {
        /// Number of the host.
        host: usize,
        /// Message of the host.
        problem: String,
    },
    /// The flows were not complete when the time limit was reached.
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
    /// The run was asked to stop.
    #[error("stopped")]
    Stopped,
}

impl TestbedError {
    /// Returns true if other input would help.
    pub fn is_input(&self) -> bool {
        matches!(self, TestbedError::Input(_) | TestbedError::Scenario(_))
    }

    /// Returns an error of the operating system at this step.
    pub(crate) fn system(what: impl Into<String>) -> impl FnOnce(io::Error) -> TestbedError {
        let what = what.into();
        move |source| TestbedError::System { what, source }
    }
}
