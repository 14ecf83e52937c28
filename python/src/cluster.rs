//! The two ends of a training, or of other simulations, on several machines. The transport between them, such
//! as Ray, is in Python.

use std::ffi::OsString;
use std::sync::Mutex;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bufgym::cli::embed;
use bufgym::reproduce::measurements;
use bufgym::train::remote::{self, HostId, Next};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::failure::{broken, invalid, locked, released};

/// The head: runs a command, and hosts run its simulations.
#[pyclass(frozen, module = "bufgym._native")]
pub struct Cluster {
    cluster: remote::Cluster,
    command: Mutex<Command>,
}

/// The command that the head runs.
enum Command {
    None,
    Running(JoinHandle<u8>),
    Over(u8),
}

/// Number of a request, number of its host, and its bytes.
type Request<'py> = (u64, u64, Bound<'py, PyBytes>);

#[pymethods]
impl Cluster {
    #[new]
    fn new(py: Python<'_>, build: &str) -> PyResult<Cluster> {
        let cluster = released(py, || remote::Cluster::new(build))?;
        Ok(Cluster {
            cluster,
            command: Mutex::new(Command::None),
        })
    }

    /// Adds a host and returns its number; raises `ValueError` if it may not join.
    fn join(&self, py: Python<'_>, hello: &[u8]) -> PyResult<u64> {
        let joined = released(py, || self.cluster.join(hello))?;
        joined.map(|host| host.0).map_err(invalid)
    }

    /// Drops a host.
    fn lose(&self, py: Python<'_>, host: u64, why: &str) -> PyResult<()> {
        released(py, || self.cluster.lose(HostId(host), why))
    }

    /// Starts the command with these arguments, the first of which is the program's name.
    fn start(&self, arguments: Vec<OsString>) -> PyResult<()> {
        let mut command = locked(&self.command, "cluster")?;
        if !matches!(*command, Command::None) {
            return Err(PyRuntimeError::new_err(
                "this cluster has run a command already",
            ));
        }
        let cluster = self.cluster.clone();
        let run = move || {
            let over = Over(cluster);
            embed::run_on(&over.0, arguments)
        };
        let thread = thread::Builder::new().name("bufgym-head".to_owned());
        *command = Command::Running(thread.spawn(run)?);
        Ok(())
    }

    /// Returns the next request; None if there is none for `patience` seconds, or if the command has ended.
    fn next<'py>(&self, py: Python<'py>, patience: f64) -> PyResult<Option<Request<'py>>> {
        let patience = Duration::try_from_secs_f64(patience).map_err(invalid)?;
        Ok(match released(py, || self.cluster.next(patience))? {
            Next::Carry(message) => {
                let bytes = PyBytes::new(py, &message.bytes);
                Some((message.id, message.host.0, bytes))
            }
            Next::Nothing | Next::Over => None,
        })
    }

    /// Passes on the answer to a request; raises `ValueError` and drops its host if the answer cannot be
    /// used.
    fn answer(&self, py: Python<'_>, request: u64, answer: &[u8]) -> PyResult<()> {
        released(py, || self.cluster.answer(request, answer))?.map_err(invalid)
    }

    /// Declares that no more hosts will join; the command then fails with this reason.
    fn close(&self, py: Python<'_>, reason: &str) -> PyResult<()> {
        released(py, || self.cluster.close(reason))
    }

    /// Returns the exit code of the command; None while it runs.
    fn exit_code(&self, py: Python<'_>) -> PyResult<Option<u8>> {
        let mut command = locked(&self.command, "cluster")?;
        if matches!(&*command, Command::Running(thread) if thread.is_finished())
            && let Command::Running(thread) = std::mem::replace(&mut *command, Command::None)
        {
            let code = py.detach(|| thread.join());
            *command = Command::Over(code.map_err(|panic| broken(panic.as_ref()))?);
        }
        Ok(match *command {
            Command::Over(code) => Some(code),
            Command::None | Command::Running(_) => None,
        })
    }

    /// Returns the number of requests so far, their bytes, and the bytes of their answers.
    fn traffic(&self, py: Python<'_>) -> PyResult<(u64, u64, u64)> {
        let traffic = released(py, || self.cluster.traffic())?;
        Ok((traffic.requests, traffic.sent_bytes, traffic.received_bytes))
    }
}

/// Marks the work as finished when dropped, however it ends.
struct Over(remote::Cluster);

impl Drop for Over {
    fn drop(&mut self) {
        self.0.finish();
    }
}

/// A host: runs rollout workers and simulations.
#[pyclass(frozen, module = "bufgym._native")]
pub struct Host(Mutex<remote::Host>);

#[pymethods]
impl Host {
    #[new]
    fn new(py: Python<'_>, build: &str, threads: usize) -> PyResult<Host> {
        let host = released(py, || remote::Host::new(build, threads, measurements()))?;
        host.map(|host| Host(Mutex::new(host))).map_err(invalid)
    }

    /// Returns the message with which this host asks the head to join.
    fn hello<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyBytes>> {
        let host = locked(&self.0, "host")?;
        let hello = host.hello(name).map_err(invalid)?;
        Ok(PyBytes::new(py, &hello))
    }

    /// Carries out a request and returns the answer.
    fn serve<'py>(&self, py: Python<'py>, request: &[u8]) -> PyResult<Bound<'py, PyBytes>> {
        let mut guard = locked(&self.0, "host")?;
        let host: &mut remote::Host = &mut guard;
        let answer = released(py, || host.serve(request))?.map_err(invalid)?;
        Ok(PyBytes::new(py, &answer))
    }
}
