//! Why the agent cannot go on. Every message is one line.

use std::time::Duration;

use bufgym_sim::input::excerpt;

/// Why the agent cannot go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A text that is no address.
    #[error("'{}' is no address of Redis: give unix:/PATH or HOST:PORT, such as unix:/var/run/redis/redis.sock or 127.0.0.1:6379", excerpt(.0))]
    Address(String),
    /// The server does not answer, or has refused a command.
    #[error("Redis at {address}: {doing}: {source}")]
    Redis {
        /// The server.
        address: String,
        /// What was to be done.
        doing: &'static str,
        /// What the client says.
        source: redis::RedisError,
    },
    /// The server takes a connection or a command and does not answer.
    #[error(
        "Redis at {address}: {doing}: no answer within {} s; is it Redis that listens there, and does it \
         still answer others (`redis-cli ping`)?",
        .patience.as_secs()
    )]
    Silent {
        /// The server.
        address: String,
        /// What was to be done.
        doing: &'static str,
        /// How long the agent has waited.
        patience: Duration,
    },
    /// The server asks for a password, or refuses the one that was given.
    #[error("Redis at {address}: {problem}")]
    Login {
        /// The server.
        address: String,
        /// What is wrong, and what would help.
        problem: &'static str,
    },
    /// The network decides on more than SONiC can set, or on the α of another rule.
    #[error(
        "its low level is {0}, but a switch with SONiC has the alpha of Dynamic Threshold alone; \
         use weights that were trained with --low-level dt --actions alpha, such as checkpoints/ndt-fct-dt"
    )]
    LowLevel(String),
    /// The configuration or the counters of the switch are not as the agent needs them.
    #[error("{key}: {problem}")]
    Switch {
        /// Database and key.
        key: String,
        /// What is wrong, and what would be right.
        problem: String,
    },
    /// Ports were asked for that are not there.
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
    /// Somebody else changed what the agent has set.
    #[error("{key} is {found}, but the agent had set {expected}: somebody else configures buffers")]
    Changed {
        /// Database and key.
        key: String,
        /// The value there.
        found: String,
        /// The agent's.
        expected: String,
    },
    /// An old value cannot be put back.
    #[error("{key}: cannot go back to {old}: {problem}")]
    Restore {
        /// Database and key.
        key: String,
        /// The old value.
        old: String,
        /// Why not.
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
    /// A complaint about a key of the switch.
    pub(crate) fn switch(key: impl Into<String>, problem: impl Into<String>) -> Error {
        Error::Switch {
            key: key.into(),
            problem: problem.into(),
        }
    }

    /// Whether the connection is gone, so that another one may help.
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

    /// Whether what the user gave, or the switch as it was found, is at fault.
    pub fn is_input(&self) -> bool {
        !matches!(self, Error::Changed { .. } | Error::Restore { .. })
    }
}

/// The first few names.
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
