//! Errors of ONNX files that are no policies.

use std::io;
use std::path::PathBuf;

use bufgym_env::control::Unfit;

/// The reason why a network cannot be read or cannot decide. Every message is one line that names the file.
#[derive(Debug, thiserror::Error)]
pub enum OnnxError {
    /// The file cannot be read.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        error: io::Error,
    },
    /// The file is damaged, or its network is not one that decides on the ports of a switch.
    #[error("{}: {problem}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Description of the problem, and the expected value.
        problem: String,
    },
    /// The requested actions do not fit the heuristic.
    #[error("{}: {error}", path.display())]
    Actions {
        /// The file.
        path: PathBuf,
        /// Reason.
        error: Unfit,
    },
    /// The network is for another number of ports.
    #[error(
        "{}: input `{input}` is for {fixed} ports and a switch here has {ports}; export the network with an open number of ports, or set ports={fixed}",
        path.display()
    )]
    Ports {
        /// The file.
        path: PathBuf,
        /// Name of the input.
        input: String,
        /// Ports of the network.
        fixed: usize,
        /// Ports of the switch.
        ports: usize,
    },
    /// The network cannot be computed for so many ports.
    #[error("{}: the network cannot be computed for {ports} ports: {problem}", path.display())]
    Compute {
        /// The file.
        path: PathBuf,
        /// Ports of the switch.
        ports: usize,
        /// Error of the runtime, or the output that is not as expected.
        problem: String,
    },
    /// An output is out of range.
    #[error("{}: output `{output}` is {value} at port {port}; {expected}", path.display())]
    Value {
        /// The file.
        path: PathBuf,
        /// Name of the output.
        output: String,
        /// The value.
        value: f32,
        /// The port.
        port: usize,
        /// Expected value.
        expected: &'static str,
    },
}
