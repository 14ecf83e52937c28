//! Errors between head and hosts.

use bufgym_util::input::excerpt;

/// An error of head or host. Its text is one line with the problem and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RemoteError {
    /// Bytes that are not a message of bufgym.
    #[error(
        "a message does not begin as those of bufgym do: it was damaged, or something else sent it"
    )]
    NotAMessage,
    /// A message of another version of the protocol.
    #[error(
        "a message is of version {theirs} of the protocol, this program speaks version {ours}: install the same \
         bufgym on every node"
    )]
    Protocol {
        /// Version of the message.
        theirs: u16,
        /// Version of this program.
        ours: u16,
    },
    /// A message of another kind than the one expected.
    #[error("a message is of kind {theirs} where kind {ours} is expected")]
    Kind {
        /// Kind of the message.
        theirs: u16,
        /// Kind expected.
        ours: u16,
    },
    /// A message that is shorter or longer than it says.
    #[error(
        "a message says that it has {announced} bytes and has {found}: it was damaged on its way"
    )]
    Length {
        /// Bytes of the body as announced.
        announced: u64,
        /// Bytes found.
        found: u64,
    },
    /// A message whose bytes have changed.
    #[error("the checksum of a message is wrong: it was damaged on its way")]
    Checksum,
    /// A message whose content makes no sense.
    #[error("a message cannot be understood: {0}")]
    Body(String),
    /// A host with another version of bufgym.
    #[error(
        "host {} has bufgym {}, the head {ours}: install the same on every node",
        excerpt(.host),
        excerpt(.theirs)
    )]
    Version {
        /// Name of the host.
        host: String,
        /// Version of the host.
        theirs: String,
        /// Version of the head.
        ours: String,
    },
    /// A host with another build of the same version.
    #[error(
        "host {} has another build of bufgym than the head ({}, not {ours}): install the same wheel on every node",
        excerpt(.host),
        excerpt(.theirs)
    )]
    Build {
        /// Name of the host.
        host: String,
        /// Build of the host.
        theirs: String,
        /// Build of the head.
        ours: String,
    },
    /// A host whose processor computes other bits.
    #[error(
        "host {} computes other bits than the head (a check gives {}, not {ours}): leave this node out",
        excerpt(.host),
        excerpt(.theirs)
    )]
    Arithmetic {
        /// Name of the host.
        host: String,
        /// Result of the check on the host.
        theirs: String,
        /// Result of the check on the head.
        ours: String,
    },
    /// A host refuses a request.
    #[error("host {} refuses: {problem}", excerpt(.host))]
    Refused {
        /// Name of the host.
        host: String,
        /// Reason of the host.
        problem: String,
    },
    /// A host sends an answer that does not fit its request.
    #[error("host {} answers something else than it was asked for", excerpt(.host))]
    Unexpected {
        /// Name of the host.
        host: String,
    },
    /// A policy cannot be sent to hosts, or does not fit its scenario.
    #[error("{0}")]
    Unfit(String),
    /// The work itself failed, as it would on any host.
    #[error("{0}")]
    Failed(String),
    /// No hosts are left.
    #[error("{0}")]
    Closed(String),
    /// The threads of a host cannot be started.
    #[error("cannot start {threads} threads: {reason}")]
    Threads {
        /// Requested number of threads.
        threads: usize,
        /// Error of the operating system.
        reason: String,
    },
}
