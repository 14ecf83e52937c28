//! Errors that end the agent. Every message is one line.

use std::time::Duration;

use bufgym_util::input::excerpt;

/// An error that ends the agent.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The text is no valid address.
    #[error("'{}' is no address of Redis: give unix:/PATH or HOST:PORT, such as unix:/var/run/redis/redis.sock or 127.0.0.1:6379", excerpt(.0))]
    Address(String),
    /// The server does not answer, or refuses a command.
    #[error("Redis at {address}: {doing}: {source}")]
    Redis {
        /// The server.
        address: String,
        /// The action that failed.
        doing: &'static str,
        /// The error of the client.
        source: redis::RedisError,
    },
    /// The server accepts a connection or a command and does not answer.
    #[error(
        "Redis at {address}: {doing}: no answer within {} s; is it Redis that listens there, and does it \
         still answer others (`redis-cli ping`)?",
        .patience.as_secs()
    )]
    Silent {
        /// The server.
        address: String,
        /// The action that failed.
        doing: &'static str,
        /// Time that the agent has waited.
        patience: Duration,
    },
    /// The server asks for a password, or refuses the given one.
    #[error("Redis at {address}: {problem}")]
    Login {
        /// The server.
        address: String,
        /// Explanation and remedy.
        problem: &'static str,
    },
    /// The network decides on more than SONiC can set, or on the α of a rule other than Dynamic Threshold.
    #[error(
        "its low level is {0}, but a switch with SONiC has the alpha of Dynamic Threshold alone; \
         use weights that were trained with --low-level dt --actions alpha, such as checkpoints/ndt-fct-dt"
    )]
    LowLevel(String),
    /// The agent cannot work with the configuration or the counters of the switch.
    #[error("{key}: {problem}")]
    Switch {
        /// Database and key.
        key: String,
        /// Explanation, and what would be right.
        problem: String,
    },
    /// Some requested ports do not exist.
    #[error(
        "no port {wanted} with a queue in {pool}; there are {}",
        list(.present)
    )]
    NoPort {
        /// The port that was asked for.
        wanted: String,
        /// The pool.
        pool: String,
        /// All ports with a queue in it.
        present: Vec<String>,
    },
    /// Another agent is connected.
    #[error("another agent is connected to this Redis ({0}): end it first")]
    Busy(String),
    /// Somebody else has changed a value that the agent had set.
    #[error("{key} is {found}, but the agent had set {expected}: somebody else configures buffers")]
    Changed {
        /// Database and key.
        key: String,
        /// The value found there.
        found: String,
        /// The value that the agent had set.
        expected: String,
    },
    /// An old value cannot be restored.
    #[error("{key}: cannot go back to {old}: {problem}")]
    Restore {
        /// Database and key.
        key: String,
        /// The old value.
        old: String,
        /// Reason.
        problem: String,
    },
    /// Intervals that contradict each other.
    #[error(
        "the longest interval between decisions, {longest:?}, is below the shortest, {shortest:?}"
    )]
    Intervals {
        /// The shortest interval.
        shortest: Duration,
        /// The longest interval.
        longest: Duration,
    },
}

impl Error {
    /// Builds an error about a key of the switch.
    pub(crate) fn switch(key: impl Into<String>, problem: impl Into<String>) -> Error {
        Error::Switch {
            key: key.into(),
            problem: problem.into(),
        }
    }

    /// Returns true if the connection is gone, so that a new one may help.
    pub fn is_disconnected(&self) -> bool {
        match self {
            Error::Silent { .. } => true,
            Error::Redis { source, .. } => {
                source.is_io_error()
                    || source.is_connection_dropped()
                    || source.is_unrecoverable_error()
            }
            _ => false,
        }
    }

    /// Returns true if the user's input, or the initial state of the switch, is at fault.
    pub fn is_input(&self) -> bool {
        !matches!(self, Error::Changed { .. } | Error::Restore { .. })
    }
}

/// Lists the first few names.
fn list(names: &[String]) -> String {
    const SHOWN: usize = 8;
    match names.len() {
        0 => "none".to_owned(),
        count if count > SHOWN => {
            format!("{} and {} more", names[..SHOWN].join(", "), count - SHOWN)
        }
        _ => names.join(", "),
    }
}
