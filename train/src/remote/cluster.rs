//! The head's side: the hosts, the open work, and its assignment.
//!
//! Two kinds of threads use a cluster. Threads of the learner bring work and wait for its results. Threads of the
//! carrier take [requests](Cluster::next) to hosts and bring their [answers](Cluster::answer).

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::ops::ControlFlow;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bufgym_agents::Examples;
use bufgym_eval::Evaluation;
use bufgym_eval::batch::{Batch, BatchError, Executor, OnResult};
use bufgym_eval::evaluate::{EvalConfig, EvalError, OnProgress, evaluate_on, split_traces};
use bufgym_models::LinearRule;
use bufgym_util::rng::Split;

use super::RemoteError;
use super::frame::{self, Kind};
use super::identity::Identity;
use super::message::{Answer, Hello, Measure, Request, Teach};
use crate::simulations::{Decider, Measured, Setting, TraceRef};

/// Requests of shared work that a host has at a time: one that it works on, and one that waits.
const DEPTH: usize = 2;

/// Number of a host, never given twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostId(pub u64);

/// A request on its way to a host.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// Number of the request, which the answer must repeat.
    pub id: u64,
    /// Host that it goes to.
    pub host: HostId,
    /// Bytes for [`Host::serve`](super::Host::serve).
    pub bytes: Vec<u8>,
}

/// The next step of a carrier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Next {
    /// Carry this message.
    Carry(Message),
    /// No message came within the time.
    Nothing,
    /// The work is over.
    Over,
}

/// Counts of carried messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Requests to hosts.
    pub requests: u64,
    /// Bytes of the requests.
    pub sent_bytes: u64,
    /// Bytes of the answers.
    pub received_bytes: u64,
}

impl fmt::Display for Traffic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mega = |bytes: u64| bytes as f64 / 1e6;
        write!(
            f,
            "{} requests with {:.1} MB, answers with {:.1} MB",
            self.requests,
            mega(self.sent_bytes),
            mega(self.received_bytes)
        )
    }
}

/// The hosts of a command, and their work. Clones share the same cluster.
#[derive(Clone)]
pub struct Cluster(Arc<Shared>);

struct Shared {
    identity: Identity,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    hosts: BTreeMap<HostId, Entry>,
    /// Numbers of hosts, requests and pieces of work so far.
    hosts_ever: u64,
    requests_ever: u64,
    work_ever: u64,
    /// Requests for certain hosts that have not been carried yet.
    due: VecDeque<Message>,
    /// Requests without an answer.
    flights: BTreeMap<u64, Flight>,
    /// Answers to requests for certain hosts; `None` where the host was lost.
    answers: BTreeMap<u64, Option<Answer>>,
    /// Work that any host may do.
    shared: BTreeMap<u64, Work>,
    /// Reason why there will be no more answers.
    closed: Option<String>,
    over: bool,
    notes: Vec<String>,
    traffic: Traffic,
}

struct Entry {
    name: String,
    threads: usize,
    flights: usize,
}

struct Flight {
    host: HostId,
    purpose: Purpose,
}

enum Purpose {
    /// Request for this host alone.
    Certain,
    /// Pieces of shared work.
    Pieces { work: u64, pieces: Vec<usize> },
}

/// Pieces that any host may do.
struct Work {
    /// Builds the request for these pieces.
    ask: Ask,
    pending: VecDeque<usize>,
    open: usize,
    answers: Vec<Answered>,
}

/// Pieces, and the answer to them.
type Answered = (Vec<usize>, Answer);

type Ask = Box<dyn Fn(&[usize]) -> Request + Send + Sync>;

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = self.lock();
        let hosts: Vec<&str> = state
            .hosts
            .values()
            .map(|host| host.name.as_str())
            .collect();
        f.debug_struct("Cluster").field("hosts", &hosts).finish()
    }
}

/// The carrier's side.
impl Cluster {
    /// Creates a cluster without hosts. `build` identifies this program, such as by a hash of the library's file; hosts
    /// must give the same.
    pub fn new(build: &str) -> Cluster {
        Cluster(Arc::new(Shared {
            identity: Identity::here(build),
            state: Mutex::default(),
            changed: Condvar::new(),
        }))
    }

    /// Adds a host that has sent [`hello`](super::Host::hello).
    ///
    /// # Errors
    /// When the message is damaged, or the host would not compute the same.
    pub fn join(&self, hello: &[u8]) -> Result<HostId, RemoteError> {
        let hello: Hello = frame::decode(Kind::Hello, hello)?;
        self.0.identity.admit(&hello)?;
        let mut state = self.lock();
        let id = HostId(state.hosts_ever);
        state.hosts_ever += 1;
        let Hello { name, threads, .. } = hello;
        let threads = threads.max(1);
        state.note(format!("host {name} joins with {threads} threads"));
        let flights = 0;
        state.hosts.insert(
            id,
            Entry {
                name,
                threads,
                flights,
            },
        );
        self.0.changed.notify_all();
        Ok(id)
    }

    /// Drops a host. Its requests are done by others. Does nothing if the host is already lost.
    pub fn lose(&self, host: HostId, why: &str) {
        self.lock().lose(host, why);
        self.0.changed.notify_all();
    }

    /// Returns the next request to carry; waits for one for at most so long.
    pub fn next(&self, patience: Duration) -> Next {
        let until = Instant::now() + patience;
        let mut state = self.lock();
        loop {
            if state.over {
                return Next::Over;
            }
            match state.carry() {
                Ok(Some(message)) => return Next::Carry(message),
                Ok(None) => {}
                Err(error) => {
                    state.closed.get_or_insert(error.to_string());
                    self.0.changed.notify_all();
                }
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Next::Nothing;
            }
            let waited = self.0.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    /// Accepts the answer to a request. If it cannot be used, its host is dropped, as the error says. Replies from
    /// dropped hosts are ignored.
    ///
    /// # Errors
    /// When the answer is damaged, answers something else, or is a refusal of the host.
    pub fn answer(&self, id: u64, bytes: &[u8]) -> Result<(), RemoteError> {
        let read: Result<Answer, RemoteError> = frame::decode(Kind::Answer, bytes);
        let mut state = self.lock();
        let Some(host) = state.flights.get(&id).map(|flight| flight.host) else {
            return Ok(());
        };
        state.traffic.received_bytes += bytes.len() as u64;
        let taken = state.take(id, host, read);
        if let Err(error) = &taken {
            state.lose(host, &error.to_string());
        }
        self.0.changed.notify_all();
        taken
    }

    /// Declares that no more hosts will come; the learner's work then fails with this reason.
    pub fn close(&self, reason: &str) {
        self.lock().closed.get_or_insert(reason.to_owned());
        self.0.changed.notify_all();
    }

    /// Declares that there will be no more work: [`next`](Cluster::next) returns [`Next::Over`].
    pub fn finish(&self) {
        self.lock().over = true;
        self.0.changed.notify_all();
    }

    /// Returns the counts of carried messages so far.
    pub fn traffic(&self) -> Traffic {
        self.lock().traffic
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn note(&mut self, line: String) {
        self.notes.push(line);
    }

    /// Returns a request that can be carried now.
    fn carry(&mut self) -> Result<Option<Message>, RemoteError> {
        let message = match self.due.pop_front() {
            Some(message) => Some(message),
            None => self.share()?,
        };
        if let Some(message) = &message {
            self.traffic.requests += 1;
            self.traffic.sent_bytes += message.bytes.len() as u64;
        }
        Ok(message)
    }

    /// Gives pieces of shared work to the host that has the least to do.
    fn share(&mut self) -> Result<Option<Message>, RemoteError> {
        let all: usize = self.hosts.values().map(|host| host.threads).sum();
        let idle = self.hosts.iter().filter(|(_, host)| host.flights < DEPTH);
        let Some((&host, entry)) = idle.min_by_key(|(_, host)| host.flights) else {
            return Ok(None);
        };
        let mut open = self.shared.iter_mut();
        let Some((&work, todo)) = open.find(|(_, work)| !work.pending.is_empty()) else {
            return Ok(None);
        };
        let count = portion(todo.pending.len(), entry.threads, all);
        let pieces: Vec<usize> = todo.pending.drain(..count).collect();
        let bytes = frame::encode(Kind::Request, &(todo.ask)(&pieces))?;
        Ok(Some(self.request(
            host,
            bytes,
            Purpose::Pieces { work, pieces },
        )))
    }

    fn request(&mut self, host: HostId, bytes: Vec<u8>, purpose: Purpose) -> Message {
        let id = self.requests_ever;
        self.requests_ever += 1;
        if let Some(entry) = self.hosts.get_mut(&host) {
            entry.flights += 1;
        }
        self.flights.insert(id, Flight { host, purpose });
        Message { id, host, bytes }
    }

    fn take(
        &mut self,
        id: u64,
        host: HostId,
        read: Result<Answer, RemoteError>,
    ) -> Result<(), RemoteError> {
        let name = || {
            self.hosts
                .get(&host)
                .map_or(String::new(), |entry| entry.name.clone())
        };
        let answer = match read? {
            Answer::Refused(problem) => {
                let host = name();
                return Err(RemoteError::Refused { host, problem });
            }
            answer => answer,
        };
        let Some(flight) = self.flights.get(&id) else {
            return Ok(());
        };
        if let Purpose::Pieces { pieces, .. } = &flight.purpose
            && answer.pieces().is_some_and(|count| count != pieces.len())
        {
            return Err(RemoteError::Unexpected { host: name() });
        }
        let Some(flight) = self.flights.remove(&id) else {
            return Ok(());
        };
        if let Some(entry) = self.hosts.get_mut(&host) {
            entry.flights -= 1;
        }
        match flight.purpose {
            Purpose::Certain => {
                self.answers.insert(id, Some(answer));
            }
            Purpose::Pieces { work, pieces } => {
                if let Some(work) = self.shared.get_mut(&work) {
                    work.open -= pieces.len();
                    work.answers.push((pieces, answer));
                }
            }
        }
        Ok(())
    }

    fn lose(&mut self, host: HostId, why: &str) {
        let Some(entry) = self.hosts.remove(&host) else {
            return;
        };
        self.due.retain(|message| message.host != host);
        let own = self
            .flights
            .iter()
            .filter(|(_, flight)| flight.host == host);
        let own: Vec<u64> = own.map(|(&id, _)| id).collect();
        self.note(format!(
            "host {} is lost with {} requests unanswered, which others get: {why}",
            entry.name,
            own.len()
        ));
        for id in own {
            match self.flights.remove(&id).map(|flight| flight.purpose) {
                Some(Purpose::Pieces { work, pieces }) => {
                    if let Some(work) = self.shared.get_mut(&work) {
                        pieces
                            .into_iter()
                            .rev()
                            .for_each(|piece| work.pending.push_front(piece));
                    }
                }
                Some(Purpose::Certain) => {
                    self.answers.insert(id, None);
                }
                None => {}
            }
        }
    }

    fn open(&self) -> Result<(), RemoteError> {
        match &self.closed {
            Some(reason) => Err(RemoteError::Closed(reason.clone())),
            None => Ok(()),
        }
    }
}

/// Returns the number of pieces, of so many, for a host that has `threads` of `all` threads. It is half of the host's
/// share, so that the last portions are small, but at least one piece per thread while there are enough for all.
fn portion(pieces: usize, threads: usize, all: usize) -> usize {
    let share = (pieces * threads).div_ceil(all.max(1));
    let half = (pieces * threads).div_ceil(2 * all.max(1));
    half.max(share.min(threads)).clamp(1, pieces.max(1))
}

impl Answer {
    /// Returns the number of pieces that it answers; `None` if it is a failure.
    fn pieces(&self) -> Option<usize> {
        match self {
            Answer::Measured(measured) => Some(measured.len()),
            Answer::Taught(taught) => Some(taught.len()),
            Answer::Simulated(results) => Some(results.len()),
            Answer::RolloutResult(parts) => Some(parts.len()),
            Answer::Unfit(_) | Answer::Failed(_) | Answer::Refused(_) => None,
        }
    }
}

/// The learner's side.
impl Cluster {
    /// Returns the hosts with their threads; waits until there is one.
    pub(super) fn hosts(&self) -> Result<Vec<(HostId, usize)>, RemoteError> {
        let mut state = self.lock();
        loop {
            state.open()?;
            if !state.hosts.is_empty() {
                let hosts = state.hosts.iter();
                return Ok(hosts.map(|(&id, host)| (id, host.threads)).collect());
            }
            state = self.wait(state);
        }
    }

    /// Returns the number of threads of all hosts together.
    pub(crate) fn threads(&self) -> usize {
        self.lock().hosts.values().map(|host| host.threads).sum()
    }

    /// Returns the events since the last call, one per line.
    pub(crate) fn notes(&self) -> Vec<String> {
        std::mem::take(&mut self.lock().notes)
    }

    /// Sends each of these hosts a request. Returns their answers in this order, `None` for lost hosts.
    pub(super) fn ask(
        &self,
        requests: Vec<(HostId, Request)>,
    ) -> Result<Vec<Option<Answer>>, RemoteError> {
        let encode = |(host, request)| Ok((host, frame::encode(Kind::Request, &request)?));
        let requests = requests.into_iter().map(encode);
        let requests: Vec<(HostId, Vec<u8>)> = requests.collect::<Result<_, RemoteError>>()?;
        let mut state = self.lock();
        let mut ids = Vec::new();
        for (host, bytes) in requests {
            let message = state.request(host, bytes, Purpose::Certain);
            ids.push(message.id);
            match state.hosts.contains_key(&host) {
                true => state.due.push_back(message),
                false => {
                    state.flights.remove(&message.id);
                    state.answers.insert(message.id, None);
                }
            }
        }
        self.0.changed.notify_all();
        loop {
            state.open()?;
            if ids.iter().all(|id| state.answers.contains_key(id)) {
                let answers = ids.iter().map(|id| state.answers.remove(id).flatten());
                return answers.map(failed).collect();
            }
            state = self.wait(state);
        }
    }

    /// Distributes pieces 0 to `count` to free hosts. `on_answer` gets the answers as they come, each with its pieces,
    /// until it returns a break.
    fn spread(
        &self,
        count: usize,
        ask: impl Fn(&[usize]) -> Request + Send + Sync + 'static,
        mut on_answer: impl FnMut(&[usize], Answer) -> Result<ControlFlow<()>, RemoteError>,
    ) -> Result<(), RemoteError> {
        let work = self.begin(Work {
            ask: Box::new(ask),
            pending: (0..count).collect(),
            open: count,
            answers: Vec::new(),
        });
        while let Some(answers) = work.answers()? {
            for (pieces, answer) in answers {
                let answer = failed(Some(answer))?.ok_or_else(unexpected)?;
                if on_answer(&pieces, answer)?.is_break() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn begin(&self, work: Work) -> Begun<'_> {
        let mut state = self.lock();
        let id = state.work_ever;
        state.work_ever += 1;
        state.shared.insert(id, work);
        self.0.changed.notify_all();
        Begun { cluster: self, id }
    }

    /// Same as [`spread`](Cluster::spread), for pieces with one result each. Returns the results in the order of the
    /// pieces.
    fn gather<T>(
        &self,
        count: usize,
        ask: impl Fn(&[usize]) -> Request + Send + Sync + 'static,
        results: impl Fn(Answer) -> Option<Vec<T>>,
    ) -> Result<Vec<T>, RemoteError> {
        let mut found = Vec::with_capacity(count);
        self.spread(count, ask, |pieces, answer| {
            let answer = results(answer).ok_or_else(unexpected)?;
            found.extend(pieces.iter().copied().zip(answer));
            Ok(ControlFlow::Continue(()))
        })?;
        found.sort_by_key(|(piece, _)| *piece);
        Ok(found.into_iter().map(|(_, result)| result).collect())
    }

    /// Runs every decider on every trace. Samples are by decider, then by trace.
    pub(crate) fn measure(
        &self,
        setting: &Setting,
        traces: &[TraceRef],
        deciders: &[Decider],
    ) -> Result<Vec<Measured>, RemoteError> {
        let (setting, traces) = (setting.clone(), traces.to_vec());
        let (all, count) = (deciders.to_vec(), deciders.len());
        // Runs of one trace follow each other, so that few hosts have to generate it.
        let places = traces.len() * count;
        let by_decider = move |piece: usize| (piece % count, piece / count);
        let ask = move |pieces: &[usize]| {
            let runs = pieces.iter().map(|&piece| by_decider(piece));
            let mut used: Vec<usize> = runs.clone().map(|(decider, _)| decider).collect();
            used.sort_unstable();
            used.dedup();
            let place = |decider| used.binary_search(&decider).unwrap_or_default();
            Request::Measure(Measure {
                setting: setting.clone(),
                runs: runs
                    .map(|(decider, trace)| (place(decider), traces[trace]))
                    .collect(),
                deciders: used.iter().map(|&decider| all[decider].clone()).collect(),
            })
        };
        let measured = self.gather(places, ask, |answer| match answer {
            Answer::Measured(measured) => Some(measured),
            _ => None,
        })?;
        let of = |decider| measured.iter().skip(decider).step_by(count).copied();
        Ok((0..count).flat_map(of).collect())
    }

    /// Plays every trace with the student, and asks the teacher for its decision in every state. Examples are by trace,
    /// then by number of ports.
    pub(crate) fn teach(
        &self,
        setting: &Setting,
        traces: &[TraceRef],
        student: &Decider,
        teacher: &LinearRule,
    ) -> Result<Vec<Vec<Examples>>, RemoteError> {
        let all = traces.to_vec();
        let dagger_round = Teach {
            setting: setting.clone(),
            student: student.clone(),
            teacher: Decider::linear(teacher.clone()),
            traces: Vec::new(),
        };
        let ask = move |pieces: &[usize]| {
            Request::Teach(Teach {
                traces: pieces.iter().map(|&piece| all[piece]).collect(),
                ..dagger_round.clone()
            })
        };
        self.gather(traces.len(), ask, |answer| match answer {
            Answer::Taught(taught) => Some(taught),
            _ => None,
        })
    }

    /// Same as [`evaluate`](bufgym_eval::evaluate()), with the simulations on the hosts.
    ///
    /// # Errors
    /// Same as [`evaluate_on`].
    pub fn evaluate(
        &self,
        config: &EvalConfig,
        progress: OnProgress<'_>,
    ) -> Result<Evaluation, EvalError> {
        let EvalConfig {
            scenario,
            traces,
            seed,
            ..
        } = config;
        let traces = split_traces(scenario, Split::Test, *seed, *traces)?;
        evaluate_on(config, Split::Test, &traces, self, progress)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        let waited = self.0.changed.wait(state);
        waited.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Executor for Cluster {
    fn run(&self, batch: &Batch, on_result: OnResult<'_>) -> Result<(), BatchError> {
        let whole = batch.clone();
        let ask = move |pieces: &[usize]| Request::Simulate(whole.part(pieces));
        let run = self.spread(batch.len(), ask, |pieces, answer| {
            let Answer::Simulated(results) = answer else {
                return Err(unexpected());
            };
            let mut results = pieces.iter().zip(&results);
            Ok(results.try_for_each(|(&piece, result)| on_result(piece, result)))
        });
        run.map_err(|error| match error {
            RemoteError::Unfit(problem) => BatchError::Unfit(problem),
            error => BatchError::Failed(error.to_string()),
        })
    }
}

/// Shared work that has begun. It is cancelled when this is dropped.
struct Begun<'a> {
    cluster: &'a Cluster,
    id: u64,
}

impl Begun<'_> {
    /// Returns the answers that have come since the last call, each with its pieces; waits for some. `None` if all
    /// pieces are done and all answers were taken.
    fn answers(&self) -> Result<Option<Vec<Answered>>, RemoteError> {
        let mut state = self.cluster.lock();
        loop {
            let Some(work) = state.shared.get_mut(&self.id) else {
                return Ok(None);
            };
            let answers = std::mem::take(&mut work.answers);
            if !answers.is_empty() {
                return Ok(Some(answers));
            }
            if work.open == 0 {
                return Ok(None);
            }
            state.open()?;
            state = self.cluster.wait(state);
        }
    }
}

impl Drop for Begun<'_> {
    fn drop(&mut self) {
        self.cluster.lock().shared.remove(&self.id);
    }
}

fn failed(answer: Option<Answer>) -> Result<Option<Answer>, RemoteError> {
    match answer {
        Some(Answer::Unfit(problem)) => Err(RemoteError::Unfit(problem)),
        Some(Answer::Failed(problem)) => Err(RemoteError::Failed(problem)),
        answer => Ok(answer),
    }
}

pub(super) fn unexpected() -> RemoteError {
    let host = "a host".to_owned();
    RemoteError::Unexpected { host }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn portions_shrink_and_leave_no_host_without_work() {
        // One host gets everything in few requests.
        assert_eq!(portion(136, 64, 64), 68);
        assert_eq!(portion(4, 64, 64), 4);
        // Ten hosts share thirty-two pieces.
        assert_eq!(portion(32, 16, 160), 4);
        assert_eq!(portion(1, 16, 160), 1);
        for pieces in 1..50 {
            for (threads, all) in [(1, 1), (1, 7), (8, 24)] {
                let portion = portion(pieces, threads, all);
                assert!((1..=pieces).contains(&portion), "{pieces} {threads} {all}");
            }
        }
    }
}
