//! The processes of the hosts, seen from the switch.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::io::{self, BufReader};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::thread;
use std::time::Duration;

use crate::message::{FromHost, ToHost};
use crate::{TestbedError, machine, message};

/// Longest time for a step of a host.
const PATIENCE: Duration = Duration::from_secs(20);

/// A message of a host; an error is the last one.
type Said = (usize, io::Result<FromHost>);

/// The processes; they are killed when this is dropped.
pub(super) struct Hosts {
    children: Vec<(Child, ChildStdin)>,
    said: Receiver<Said>,
    /// Messages that arrived before they were waited for.
    early: VecDeque<(usize, FromHost)>,
}

impl Hosts {
    /// Starts a process for every host, and waits until each has a namespace of its own. The threads
    /// that read their output run on these processors.
    pub(super) fn start(
        command: &[OsString],
        hosts: usize,
        processors: &[usize],
    ) -> Result<Hosts, TestbedError> {
        let (say, said) = channel();
        let mut started = Hosts {
            children: Vec::new(),
            said,
            early: VecDeque::new(),
        };
        for host in 0..hosts {
            let (child, input, output) = spawn(command).map_err(|error| TestbedError::Host {
                host,
                problem: format!("its process cannot be started: {error}"),
            })?;
            started.children.push((child, input));
            let (say, processors) = (say.clone(), processors.to_vec());
            thread::spawn(move || {
                // On other processors they would take time from the switch.
                let _ = machine::pin(&processors);
                relay(host, output, &say);
            });
        }
        for host in 0..hosts {
            started.expect(host, |message| *message == FromHost::Unshared)?;
        }
        Ok(started)
    }

    /// Returns the numbers of the processes, by host.
    pub(super) fn pids(&self) -> impl Iterator<Item = u32> {
        self.children.iter().map(|(child, _)| child.id())
    }

    /// Sends an order.
    pub(super) fn tell(&mut self, host: usize, order: &ToHost) -> Result<(), TestbedError> {
        let Err(error) = message::write(&mut self.children[host].1, order) else {
            return Ok(());
        };
        // The last message of a host tells more than the failure of the write.
        match self.said.recv_timeout(Duration::from_millis(100)) {
            Ok((host, said)) => Err(failed(host, said)),
            Err(_) => Err(failed(host, Err(error))),
        }
    }

    /// Returns a message of a host, if there is one.
    pub(super) fn poll(&mut self) -> Result<Option<(usize, FromHost)>, TestbedError> {
        match self.said.try_recv() {
            Ok((host, Ok(message))) if !matches!(message, FromHost::Failed(_)) => {
                Ok(Some((host, message)))
            }
            Ok((host, said)) => Err(failed(host, said)),
            Err(TryRecvError::Empty) => Ok(None),
            Err(TryRecvError::Disconnected) => Err(failed(0, Err(ended()))),
        }
    }

    /// Waits for a message of this kind from a host. Other hosts may send such messages before.
    pub(super) fn expect(
        &mut self,
        host: usize,
        expected: impl Fn(&FromHost) -> bool,
    ) -> Result<FromHost, TestbedError> {
        let awaited = |(from, message): &(usize, FromHost)| *from == host && expected(message);
        if let Some(place) = self.early.iter().position(awaited)
            && let Some((_, message)) = self.early.remove(place)
        {
            return Ok(message);
        }
        loop {
            match self.said.recv_timeout(PATIENCE) {
                Ok((from, Ok(message))) if from == host && expected(&message) => {
                    return Ok(message);
                }
                Ok((from, Ok(message))) if from != host && expected(&message) => {
                    self.early.push_back((from, message));
                }
                Ok((from, said)) => return Err(failed(from, said)),
                Err(RecvTimeoutError::Timeout) => {
                    let late = io::Error::new(io::ErrorKind::TimedOut, "it does not answer");
                    return Err(failed(host, Err(late)));
                }
                Err(RecvTimeoutError::Disconnected) => return Err(failed(host, Err(ended()))),
            }
        }
    }
}

/// Returns the error for a message that nobody waits for.
pub(super) fn unexpected(host: usize, message: FromHost) -> TestbedError {
    failed(host, Ok(message))
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for (child, _) in &mut self.children {
            // A process that has ended cannot be killed, but has to be waited for.
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn spawn(command: &[OsString]) -> io::Result<(Child, ChildStdin, ChildStdout)> {
    let (program, arguments) = command
        .split_first()
        .ok_or_else(|| io::Error::other("there is no command"))?;
    let mut child = Command::new(program)
        .args(arguments)
        // Ctrl-C is handled by the switch, which ends its hosts.
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    match (child.stdin.take(), child.stdout.take()) {
        (Some(input), Some(output)) => Ok((child, input, output)),
        _ => Err(io::Error::other("it has no pipes")),
    }
}

/// Passes on the messages of a host, and its end.
fn relay(host: usize, output: ChildStdout, say: &Sender<Said>) {
    let mut output = BufReader::new(output);
    loop {
        let said = message::read(&mut output).and_then(|message| message.ok_or_else(ended));
        // The counters are a host's last message.
        let last = !matches!(&said, Ok(message) if !matches!(message, FromHost::Counted(_)));
        if say.send((host, said)).is_err() || last {
            return;
        }
    }
}

fn ended() -> io::Error {
    io::Error::new(io::ErrorKind::UnexpectedEof, "its process has ended")
}

fn failed(host: usize, said: io::Result<FromHost>) -> TestbedError {
    let problem = match said {
        Ok(FromHost::Failed(problem)) => problem,
        Ok(message) => format!("said {message:?} at the wrong time"),
        Err(error) => error.to_string(),
    };
    TestbedError::Host { host, problem }
}
