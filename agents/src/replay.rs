//! Past transitions, each frame stored once.
//!
//! An observation is a history of eight frames, of which all but the newest were in the observation
//! before it. So only the newest frame is stored, and a batch rebuilds the histories. A history
//! never reaches across the start of an episode. Every environment writes into its own ring (a
//! stream), in which its frames follow each other.

mod file;
mod pairs;

use bufgym_env::control::{FEATURES, HISTORY, INITIAL_INDEX, MAX_OUTPUTS, PRIVILEGED, cell_centre};
use bufgym_models::critic::{FRAMES, STATE};
use bufgym_models::windows::{OBSERVATION, UNFOLDED, fill_row};
use bufgym_util::convert::index;
use rand::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

pub use file::ReplayError;
pub use pairs::{PAIR_ROWS, Pair, PairBatch, SHIFTED};
use pairs::{Pairs, pair_bytes};

/// Index of the last action, the only feature that is not zero before the first frame.
const LAST_ACTION: usize = 3;

/// Flag: a decision was made on the slot's frame, and its outcome is stored.
const DECIDED: u8 = 1;
/// Flag: the episode terminated with that decision, so no value follows.
const TERMINATED: u8 = 2;

/// The newest step of an observation, with the privileged features of that moment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Frame {
    /// `[ports, FEATURES]`.
    features: Vec<f32>,
    /// `[ports, PRIVILEGED]`.
    privileged: Vec<f32>,
}

impl Frame {
    /// The newest frame of an observation `[ports, 8, 5]`, with privileged features `[ports, 22]`.
    pub fn newest(observation: &[f32], privileged: &[f32]) -> Frame {
        let histories = observation.as_chunks::<OBSERVATION>().0;
        let newest = histories.iter().flat_map(|h| &h[OBSERVATION - FEATURES..]);
        Frame {
            features: newest.copied().collect(),
            privileged: privileged.to_vec(),
        }
    }
}

impl Transition {
    /// Returns the bytes of one frame with this many ports and outputs per port.
    pub fn memory(ports: usize, outputs: usize) -> u64 {
        let bytes = ports.saturating_mul(port_bytes(outputs));
        u64::try_from(bytes.saturating_add(size_of::<Transition>())).unwrap_or(u64::MAX)
    }
}

/// One decision, its reward and the frame that it led to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Transition {
    /// Index of the chosen level, `[ports, outputs]`.
    pub actions: Vec<u8>,
    /// The action before tanh, `[ports, outputs]`.
    pub raw: Vec<f32>,
    /// Reward of each port over the interval, `[ports]`.
    pub port_rewards: Vec<f32>,
    /// Discount over the interval. It also applies where the episode was truncated.
    pub discount: f32,
    /// The episode ended because all flows are complete: the value of what follows is 0.
    pub terminated: bool,
    /// The episode was cut off: the value of what follows is that of `next`.
    pub truncated: bool,
    /// The frame after the interval; where the episode ended, its last one.
    pub next: Frame,
    /// The first frame of the next episode, where the environment has begun one.
    pub reset: Option<Frame>,
}

/// The size of a [`Replay`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplayShape {
    /// Transitions, in equal streams; each stream holds at least 16.
    pub capacity: usize,
    /// Number of streams, one for each environment.
    pub streams: usize,
    /// Ports of each environment.
    pub ports: usize,
    /// Values of an action per port.
    pub outputs: usize,
    /// Pairs of forks that are kept.
    pub pairs: usize,
}

/// Transitions of several environments with the same number of ports.
#[derive(Clone, Debug)]
pub struct Replay {
    ports: usize,
    /// Values of an action, all ports together.
    values: usize,
    /// Frames per stream.
    slots: usize,
    streams: Vec<Stream>,
    pairs: Pairs,
    rng: Xoshiro256PlusPlus,
    pushed: u64,
    held: usize,
}

/// A ring of frames, each with the decision that was made on it.
#[derive(Clone, Debug, PartialEq)]
struct Stream {
    /// `[slots, ports, FEATURES]`: the newest frame of each observation.
    frames: Vec<f32>,
    /// `[slots, ports, PRIVILEGED]`.
    privileged: Vec<f32>,
    /// `[slots, ports, outputs]`.
    raw: Vec<f32>,
    /// `[slots, ports]`.
    rewards: Vec<f32>,
    /// `[slots]`.
    outcomes: Vec<Outcome>,
    /// Frames ever written; frame `k` is in slot `k % slots`.
    end: u64,
    /// The first frame whose decision [`Replay::take_new`] has not handed out.
    taken: u64,
    /// True if the newest frame waits for its decision.
    open: bool,
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Outcome {
    discount: f32,
    /// Frames before this one in its episode.
    position: u32,
    flags: u8,
}

/// Bytes of one port of a frame with its decision.
const fn port_bytes(outputs: usize) -> usize {
    4 * (FEATURES + PRIVILEGED + 1 + outputs)
}

impl ReplayShape {
    /// Frames of each stream.
    fn slots(self) -> usize {
        self.capacity.div_ceil(self.streams.max(1)).max(2 * HISTORY)
    }
}

/// A batch for the learner. Buffers are reused from one batch to the next.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Batch {
    /// Transitions.
    pub rows: usize,
    /// Ports of each.
    pub ports: usize,
    /// Unfolded observations, `[rows * ports * 8, 15]`.
    pub windows: Vec<f32>,
    /// Unfolded observations after the decision.
    pub next_windows: Vec<f32>,
    /// Newest frames and privileged features, `[rows * ports, STATE]`.
    pub state: Vec<f32>,
    /// The same after the decision.
    pub next_state: Vec<f32>,
    /// Actions before tanh, `[rows, ports, outputs]`.
    pub raw: Vec<f32>,
    /// Discounted sum of the rewards of the (n) intervals, `[rows, ports]`.
    pub rewards: Vec<f32>,
    /// Factor of the value that follows, `[rows]`; zero where nothing follows.
    pub discounts: Vec<f32>,
    /// Pairs of forks, with about as many decisions as the batch has transitions.
    pub pairs: PairBatch,
}

impl Replay {
    /// An empty replay.
    ///
    /// # Panics
    /// When a number of `shape` but the capacity is zero.
    pub fn new(shape: ReplayShape, seed: u64) -> Replay {
        let ReplayShape {
            streams,
            ports,
            outputs,
            ..
        } = shape;
        assert!(
            streams > 0 && ports > 0 && outputs > 0,
            "a replay needs a stream, a port and an output"
        );
        let (slots, values) = (shape.slots(), ports * outputs);
        Replay {
            ports,
            values,
            slots,
            streams: vec![Stream::new(slots, ports, values); streams],
            pairs: Pairs::new(shape.pairs, (ports, values)),
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
            pushed: 0,
            held: 0,
        }
    }

    /// Bytes that [`Replay::new`] takes for this shape.
    pub fn memory(shape: ReplayShape) -> u64 {
        let slots = shape.slots().saturating_mul(shape.streams);
        let ports = shape.ports.saturating_mul(port_bytes(shape.outputs));
        let slot = ports.saturating_add(size_of::<Outcome>());
        let pair = pair_bytes((shape.ports, shape.ports * shape.outputs));
        let bytes = slots
            .saturating_mul(slot)
            .saturating_add(shape.pairs.saturating_mul(pair));
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }

    /// Transitions held.
    pub fn len(&self) -> usize {
        self.held
    }

    /// Returns true if no transition is held.
    pub fn is_empty(&self) -> bool {
        self.held == 0
    }

    /// Transitions ever pushed.
    pub fn pushed(&self) -> u64 {
        self.pushed
    }

    /// Number of streams.
    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// Standard deviation of the `n_step` returns that a stream holds, as means over ports; 0 where it
    /// holds none.
    ///
    /// # Panics
    /// When there is no such stream, or `n_step` is zero.
    pub fn return_deviation(&self, stream: usize, n_step: usize) -> f64 {
        assert!(n_step > 0, "a transition spans at least one interval");
        let ring = &self.streams[stream];
        let mut rewards = vec![0.0; self.ports];
        let (mut count, mut sum, mut squares) = (0.0, 0.0, 0.0);
        for frame in ring.first(self.slots)..ring.end {
            if ring.outcome(frame).flags & DECIDED == 0 {
                continue;
            }
            ring.n_step_return(frame, n_step, &mut rewards);
            let total: f64 = rewards.iter().map(|&reward| f64::from(reward)).sum();
            let mean = total / self.ports as f64;
            count += 1.0;
            sum += mean;
            squares += mean * mean;
        }
        match count > 0.0 {
            true => (squares / count - (sum / count) * (sum / count))
                .max(0.0)
                .sqrt(),
            false => 0.0,
        }
    }

    /// Multiplies the rewards that a stream holds.
    ///
    /// # Panics
    /// When there is no such stream.
    pub fn scale_rewards(&mut self, stream: usize, factor: f32) {
        let rewards = self.streams[stream].rewards.iter_mut();
        rewards.for_each(|reward| *reward *= factor);
    }

    /// Begins an episode with its first frame.
    ///
    /// # Panics
    /// When there is no such stream, or the frame has another number of ports.
    pub fn start(&mut self, stream: usize, first: &Frame) {
        self.write_frame(stream, first, 0);
        self.streams[stream].open = true;
    }

    /// Adds a decision on the newest frame of the stream, and the frame that it led to.
    ///
    /// # Panics
    /// When there is no such stream, it has no open episode, or the transition has another number
    /// of ports or outputs.
    pub fn push(&mut self, stream: usize, transition: &Transition) {
        let (ports, values) = (self.ports, self.values);
        let ring = &mut self.streams[stream];
        assert!(
            ring.open,
            "`start` begins an episode before `push` adds to it"
        );
        let slot = ring.slot(ring.end - 1);
        ring.raw[slot * values..][..values].copy_from_slice(&transition.raw);
        ring.rewards[slot * ports..][..ports].copy_from_slice(&transition.port_rewards);
        let outcome = &mut ring.outcomes[slot];
        outcome.discount = transition.discount;
        outcome.flags = DECIDED | if transition.terminated { TERMINATED } else { 0 };
        let position = outcome.position + 1;
        ring.open = !(transition.terminated || transition.truncated);
        self.write_frame(stream, &transition.next, position);
        self.pushed += 1;
        self.held += 1;
        if let Some(first) = &transition.reset {
            self.start(stream, first);
        }
    }

    /// Adds a pair of forks.
    ///
    /// # Panics
    /// When it has another number of ports or outputs.
    pub fn push_pair(&mut self, pair: &Pair) {
        self.pairs.push(pair);
    }

    fn write_frame(&mut self, stream: usize, frame: &Frame, position: u32) {
        let (features, privileged) = (self.ports * FEATURES, self.ports * PRIVILEGED);
        let ring = &mut self.streams[stream];
        let slot = ring.slot(ring.end);
        if ring.outcomes[slot].flags & DECIDED != 0 {
            self.held -= 1;
        }
        ring.frames[slot * features..][..features].copy_from_slice(&frame.features);
        ring.privileged[slot * privileged..][..privileged].copy_from_slice(&frame.privileged);
        ring.outcomes[slot] = Outcome {
            position,
            ..Outcome::default()
        };
        ring.end += 1;
    }

    /// Returns true if batches can be drawn: at least `transitions` are held, and at least one of them has its whole
    /// history.
    pub fn is_ready(&self, transitions: usize) -> bool {
        self.held >= transitions.max(1)
            && (0..self.streams.len()).any(|stream| {
                let ring = &self.streams[stream];
                let newest = ring.end.saturating_sub(2);
                (ring.first(self.slots)..=newest).any(|frame| self.is_whole(stream, frame))
            })
    }

    /// Returns all transitions that the streams have recorded since the last call, stream by stream in order, except
    /// those overwritten since then.
    pub fn take_new(&mut self) -> Rollout {
        let mut rollout = Rollout {
            ports: self.ports,
            ..Rollout::default()
        };
        for stream in 0..self.streams.len() {
            let ring = &self.streams[stream];
            let first = ring.taken.max(ring.first(self.slots));
            let first = (first..ring.end).find(|&frame| self.is_whole(stream, frame));
            for frame in first.unwrap_or(ring.end)..ring.end {
                rollout.push(ring, frame, self.values);
            }
            let ring = &mut self.streams[stream];
            // The newest frame of an episode that continues gets its decision later.
            ring.taken = ring.end - u64::from(ring.open);
        }
        rollout
    }

    /// Draws `rows` transitions uniformly, with replacement.
    ///
    /// The rewards are n-step returns: discounted sums over up to `n_step` intervals, fewer where the episode or the
    /// stream ends before. They leave out the entropy bonus of the later decisions, and depend on the policies that
    /// made these decisions.
    ///
    /// # Panics
    /// When `n_step` is zero or the replay is not [ready](Replay::is_ready).
    pub fn sample(&mut self, rows: usize, n_step: usize, batch: &mut Batch) {
        assert!(n_step > 0, "a transition spans at least one interval");
        assert!(self.is_ready(1), "the replay holds no transition yet");
        batch.resize(rows, self.ports, self.values);
        for row in 0..rows {
            let (stream, frame) = self.draw();
            self.fill(batch, row, stream, frame, n_step);
        }
        let (pairs, rng) = (&self.pairs, &mut self.rng);
        pairs.sample(rows.div_ceil(PAIR_ROWS), &mut batch.pairs, |bound| {
            below(rng, bound)
        });
    }

    /// Uniform over all transitions whose history has not been overwritten.
    fn draw(&mut self) -> (usize, u64) {
        let used: Vec<u64> = self
            .streams
            .iter()
            .map(|ring| ring.used(self.slots))
            .collect();
        let total: u64 = used.iter().sum();
        loop {
            let mut index = below(&mut self.rng, total);
            let stream = used
                .iter()
                .position(|&count| {
                    let here = index < count;
                    if !here {
                        index -= count;
                    }
                    here
                })
                .unwrap_or(0);
            let frame = self.streams[stream].first(self.slots) + index;
            if self.is_whole(stream, frame) {
                return (stream, frame);
            }
        }
    }

    /// Returns true if this frame has a decision and its history has not been overwritten.
    fn is_whole(&self, stream: usize, frame: u64) -> bool {
        let ring = &self.streams[stream];
        let outcome = ring.outcome(frame);
        let history = u64::from(outcome.position).min(HISTORY as u64 - 1);
        outcome.flags & DECIDED != 0 && frame >= ring.first(self.slots) + history
    }

    fn fill(&self, batch: &mut Batch, row: usize, stream: usize, frame: u64, n_step: usize) {
        let (ports, values) = (self.ports, self.values);
        let ring = &self.streams[stream];
        let slot = ring.slot(frame);
        let span = row * ports..(row + 1) * ports;
        let decided = row * values..(row + 1) * values;
        batch.raw[decided].copy_from_slice(&ring.raw[slot * values..][..values]);

        let rewards = &mut batch.rewards[span.clone()];
        let (discount, last) = ring.n_step_return(frame, n_step, rewards);
        batch.discounts[row] = discount;

        let unfolded = span.start * UNFOLDED..span.end * UNFOLDED;
        let state = span.start * STATE..span.end * STATE;
        let now = (
            &mut batch.windows[unfolded.clone()],
            &mut batch.state[state.clone()],
        );
        ring.observe(frame, ports, now.0, now.1);
        ring.observe(
            last,
            ports,
            &mut batch.next_windows[unfolded],
            &mut batch.next_state[state],
        );
    }
}

impl Stream {
    fn new(slots: usize, ports: usize, values: usize) -> Stream {
        Stream {
            frames: vec![0.0; slots * ports * FEATURES],
            privileged: vec![0.0; slots * ports * PRIVILEGED],
            raw: vec![0.0; slots * values],
            rewards: vec![0.0; slots * ports],
            outcomes: vec![Outcome::default(); slots],
            end: 0,
            taken: 0,
            open: false,
        }
    }

    fn slots(&self) -> u64 {
        self.outcomes.len() as u64
    }

    fn slot(&self, frame: u64) -> usize {
        index(frame % self.slots())
    }

    fn outcome(&self, frame: u64) -> Outcome {
        self.outcomes[self.slot(frame)]
    }

    /// Frames held.
    fn used(&self, slots: usize) -> u64 {
        self.end.min(slots as u64)
    }

    /// The oldest frame held.
    fn first(&self, slots: usize) -> u64 {
        self.end - self.used(slots)
    }

    /// Writes the discounted sum of each port's rewards over up to `n_step` intervals from `frame`.
    /// Returns the discount of the value after them, and the frame that they led to.
    fn n_step_return(&self, frame: u64, n_step: usize, rewards: &mut [f32]) -> (f32, u64) {
        let ports = rewards.len();
        rewards.fill(0.0);
        let mut discount = 1.0;
        let mut last = frame;
        loop {
            let slot = self.slot(last);
            let gained = &self.rewards[slot * ports..][..ports];
            rewards
                .iter_mut()
                .zip(gained)
                .for_each(|(sum, &reward)| *sum += discount * reward);
            let outcome = self.outcomes[slot];
            discount *= outcome.discount;
            if outcome.flags & TERMINATED != 0 {
                discount = 0.0;
            }
            last += 1;
            let steps = index(last - frame);
            // A frame without a decision is the last of its episode or of the stream.
            if steps == n_step || discount == 0.0 || self.outcome(last).flags & DECIDED == 0 {
                return (discount, last);
            }
        }
    }

    /// Rebuilds the observation that ended with `frame`: unfolded `[ports * 8, 15]` and the
    /// critic's `[ports, STATE]`.
    fn observe(&self, frame: u64, ports: usize, windows: &mut [f32], state: &mut [f32]) {
        let position = u64::from(self.outcome(frame).position);
        // Slot of each step of the history, oldest first; none before the episode's first frame.
        let slots: [Option<usize>; HISTORY] = std::array::from_fn(|step| {
            let age = (HISTORY - 1 - step) as u64;
            (age <= position).then(|| self.slot(frame - age))
        });
        let mut empty = [0.0; FEATURES];
        empty[LAST_ACTION] = cell_centre(INITIAL_INDEX);
        let newest = self.slot(frame);
        let rows = windows.as_chunks_mut::<UNFOLDED>().0.iter_mut();
        for (port, (windows, state)) in rows.zip(state.as_chunks_mut::<STATE>().0).enumerate() {
            let mut history = [0.0; OBSERVATION];
            for (step, slot) in history.as_chunks_mut::<FEATURES>().0.iter_mut().zip(slots) {
                *step = slot.map_or(empty, |slot| {
                    self.frames.as_chunks::<FEATURES>().0[slot * ports + port]
                });
            }
            fill_row(&history, windows);
            let (frames, privileged) = state.split_at_mut(FRAMES * FEATURES);
            frames.copy_from_slice(&history[OBSERVATION - FRAMES * FEATURES..]);
            privileged.copy_from_slice(
                &self.privileged.as_chunks::<PRIVILEGED>().0[newest * ports + port],
            );
        }
    }
}

/// Decisions in the order in which they were made, and the frames that they led to.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Rollout {
    /// Ports of each frame.
    pub ports: usize,
    /// True where a decision was made on the frame, `[frames]`. The frame that it led to is the next.
    pub decided: Vec<bool>,
    /// Unfolded observations, `[frames * ports * 8, 15]`.
    pub windows: Vec<f32>,
    /// Newest frames and privileged features, `[frames * ports, STATE]`.
    pub state: Vec<f32>,
    /// Actions before tanh, `[frames, ports, outputs]`; zero without a decision.
    pub raw: Vec<f32>,
    /// Rewards, `[frames, ports]`; zero without a decision.
    pub rewards: Vec<f32>,
    /// Discounts of the value that follows, `[frames]`; zero where nothing follows.
    pub discounts: Vec<f32>,
}

impl Rollout {
    /// Number of frames.
    pub fn frames(&self) -> usize {
        self.decided.len()
    }

    /// Number of decisions.
    pub fn decisions(&self) -> usize {
        self.decided.iter().filter(|&&decided| decided).count()
    }

    /// True where a port has active flows at a decision, `[frames, ports]`.
    pub fn busy(&self) -> Vec<bool> {
        let flows = self
            .state
            .chunks_exact(STATE)
            .map(|port| port[FRAMES * FEATURES]);
        let ports = flows
            .zip(0..)
            .map(|(flows, at)| flows > 0.0 && self.decided[at / self.ports]);
        ports.collect()
    }

    fn push(&mut self, ring: &Stream, frame: u64, values: usize) {
        let (slot, ports, frames) = (ring.slot(frame), self.ports, self.frames());
        let outcome = ring.outcome(frame);
        let decided = outcome.flags & DECIDED != 0;
        self.windows.resize((frames + 1) * ports * UNFOLDED, 0.0);
        self.state.resize((frames + 1) * ports * STATE, 0.0);
        let windows = &mut self.windows[frames * ports * UNFOLDED..];
        ring.observe(
            frame,
            ports,
            windows,
            &mut self.state[frames * ports * STATE..],
        );
        let of = |all: &[f32], width: usize| match decided {
            true => all[slot * width..][..width].to_vec(),
            false => vec![0.0; width],
        };
        self.raw.extend(of(&ring.raw, values));
        self.rewards.extend(of(&ring.rewards, ports));
        let goes_on = decided && outcome.flags & TERMINATED == 0;
        self.discounts
            .push(if goes_on { outcome.discount } else { 0.0 });
        self.decided.push(decided);
    }
}

impl Batch {
    /// Bytes per transition and port, at most.
    pub const BYTES_PER_PORT: u64 = 4 * (2 * (UNFOLDED + STATE) + MAX_OUTPUTS + 1) as u64;

    fn resize(&mut self, rows: usize, ports: usize, values: usize) {
        (self.rows, self.ports) = (rows, ports);
        let cells = rows * ports;
        self.windows.resize(cells * UNFOLDED, 0.0);
        self.next_windows.resize(cells * UNFOLDED, 0.0);
        self.state.resize(cells * STATE, 0.0);
        self.next_state.resize(cells * STATE, 0.0);
        self.raw.resize(rows * values, 0.0);
        self.rewards.resize(cells, 0.0);
        self.discounts.resize(rows, 0.0);
    }
}

/// A number in `0..bound` (Lemire 2019, without the rejection step: the bias is below
/// `bound / 2^64`).
fn below(rng: &mut Xoshiro256PlusPlus, bound: u64) -> u64 {
    ((u128::from(rng.next_u64()) * u128::from(bound)) >> 64) as u64
}

#[cfg(test)]
mod tests;
