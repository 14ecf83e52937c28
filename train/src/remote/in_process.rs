//! Hosts on threads of the same process.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bufgym_eval::batch::Measurements;

use super::{Cluster, Host, HostId, Message, Next, RemoteError};

/// Fate of a message: the returned bytes arrive; after `None` its host is lost.
pub type Fate = dyn Fn(&Message, Vec<u8>) -> Option<Vec<u8>> + Send + Sync;

/// Carries messages between a [`Cluster`] and hosts in this process, until the work is over.
///
/// It needs no other program, and serves as an example of a carrier: one thread takes requests, and answers come back
/// in any order.
pub struct InProcess {
    carrier: JoinHandle<()>,
}

/// Interval in which the carrier checks whether the work is over.
const PATIENCE: Duration = Duration::from_millis(50);

impl InProcess {
    /// Starts a host for each number of threads. All hosts know the same measurements. The bytes that `fate` returns for an answer arrive, so a test can
    /// damage answers and lose hosts.
    ///
    /// # Errors
    /// When a host cannot be started or may not join.
    pub fn start(
        cluster: &Cluster,
        build: &str,
        threads: &[usize],
        measurements: &Measurements,
        fate: impl Fn(&Message, Vec<u8>) -> Option<Vec<u8>> + Send + Sync + 'static,
    ) -> Result<InProcess, RemoteError> {
        let fate: Arc<Fate> = Arc::new(fate);
        let mut lines = Vec::new();
        for (number, &threads) in threads.iter().enumerate() {
            let host = Host::new(build, threads, measurements.clone())?;
            let id = cluster.join(&host.hello(&format!("in-process {number}"))?)?;
            let (sender, receiver) = channel();
            let (cluster, fate) = (cluster.clone(), Arc::clone(&fate));
            thread::spawn(move || serve(&cluster, host, id, &receiver, fate.as_ref()));
            lines.push((id, sender));
        }
        let cluster = cluster.clone();
        let carrier = thread::spawn(move || carry(&cluster, &lines));
        Ok(InProcess { carrier })
    }

    /// Waits until the work is over.
    ///
    /// # Panics
    /// When the carrier has panicked.
    pub fn join(self) {
        self.carrier.join().expect("the carrier has not panicked");
    }
}

fn carry(cluster: &Cluster, lines: &[(HostId, Sender<Message>)]) {
    loop {
        match cluster.next(PATIENCE) {
            Next::Over => return,
            Next::Nothing => {}
            Next::Carry(message) => {
                let host = message.host;
                let line = lines.iter().find(|(id, _)| *id == host);
                let sent = line.is_some_and(|(_, line)| line.send(message).is_ok());
                if !sent {
                    cluster.lose(host, "its thread has ended");
                }
            }
        }
    }
}

fn serve(cluster: &Cluster, mut host: Host, id: HostId, requests: &Receiver<Message>, fate: &Fate) {
    for message in requests {
        let answer = host.serve(&message.bytes).ok();
        match answer.and_then(|answer| fate(&message, answer)) {
            // The cluster drops a host whose answer cannot be used.
            Some(answer) if cluster.answer(message.id, &answer).is_ok() => {}
            Some(_) => return,
            None => return cluster.lose(id, "it was killed"),
        }
    }
}
