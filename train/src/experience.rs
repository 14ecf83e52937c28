//! The experience of the workers: a replay for every number of ports that their switches have.

use std::path::Path;

use bufgym_agents::{Batch, Pair, Replay, ReplayError, ReplayShape, Rollout};
use bufgym_util::convert::{index, single};
use bufgym_util::rng::stream;
use rand::Rng as _;

use crate::TrainConfig;
use crate::rollout::Experienced;

/// Smallest number of transitions of a batch from switches with many ports.
const MIN_ROWS: usize = 4;

/// Batches from which the scales of a learner are measured: from 32 of 128 transitions the scale of returns varies by
/// some per cent between seeds, from a single one by a third.
const SCALE_BATCHES: usize = 32;

/// Largest factor between the rewards of two scenarios of a mixture.
const MAX_SCALE: f64 = 1e3;

/// The replays. In a training with one scenario of one switch there is one.
#[derive(Clone, Debug)]
pub(crate) struct Experience {
    /// In the order of the first switch with that number of ports.
    replays: Vec<Replay>,
    /// Transitions of a batch from each: the more ports, the fewer.
    rows: Vec<usize>,
    places: Places,
}

/// The streams of the transitions of every switch of every worker.
#[derive(Clone, Debug)]
struct Places {
    /// Numbers of ports of the replays.
    ports: Vec<usize>,
    /// Streams of each replay.
    streams: Vec<usize>,
    /// By worker and switch: the replay, and the stream there.
    of: Vec<Vec<(usize, usize)>>,
}

impl Places {
    /// Assigns the streams. They are numbered through the workers for the first switch with as many ports, then for the
    /// second and so on. So with an even number of workers, the switches of a worker are in one half of the experience,
    /// because they share its traffic.
    fn new(config: &TrainConfig) -> Places {
        let workers = 0..config.rollout.workers;
        let ports_of = |worker| config.scenario_of(worker).ports_by_switch();
        let switches: Vec<Vec<usize>> = workers.map(ports_of).collect();
        let mut places = Places {
            ports: Vec::new(),
            streams: Vec::new(),
            of: vec![Vec::new(); switches.len()],
        };
        let most = switches.iter().map(Vec::len).max().unwrap_or(0);
        for switch in 0..most {
            for (worker, ports) in switches.iter().enumerate() {
                if let Some(&ports) = ports.get(switch) {
                    let place = places.add(ports);
                    places.of[worker].push(place);
                }
            }
        }
        places
    }

    /// A further stream of switches with so many ports.
    fn add(&mut self, ports: usize) -> (usize, usize) {
        let found = self.ports.iter().position(|&known| known == ports);
        let replay = found.unwrap_or_else(|| {
            self.ports.push(ports);
            self.streams.push(0);
            self.ports.len() - 1
        });
        self.streams[replay] += 1;
        (replay, self.streams[replay] - 1)
    }

    fn all_streams(&self) -> usize {
        self.streams.iter().sum()
    }

    /// Returns the shapes of the replays. The capacity is shared by the switches of all workers.
    fn shapes(&self, config: &TrainConfig) -> Vec<ReplayShape> {
        let all = self.all_streams() as u128;
        let pairs = self.ports.iter().zip(&self.streams);
        let shape = |(&ports, &streams): (&usize, &usize)| {
            let share = |kept: usize| {
                let own = kept as u128 * streams as u128 / all;
                usize::try_from(own).unwrap_or(usize::MAX)
            };
            ReplayShape {
                capacity: share(config.replay_capacity()),
                pairs: share(config.pairs_kept()),
                streams,
                ports,
                outputs: config.actions().outputs(),
            }
        };
        pairs.map(shape).collect()
    }

    /// Returns the transitions of a batch. The batch size holds for the first number of ports; with other numbers a
    /// batch has about as many ports in total.
    fn rows(&self, config: &TrainConfig) -> Vec<usize> {
        let batch = config.sac.batch_size;
        let rows = |&own: &usize| match own == self.ports[0] {
            true => batch,
            false => (batch * self.ports[0] / own).max(MIN_ROWS),
        };
        self.ports.iter().map(rows).collect()
    }
}

impl Experience {
    pub(crate) fn new(config: &TrainConfig) -> Experience {
        let places = Places::new(config);
        let shapes = places.shapes(config);
        let replays = shapes.into_iter().zip(0..).map(|(shape, number)| {
            let seed = stream(config.seed, "replay", number).next_u64();
            Replay::new(shape, seed)
        });
        Experience {
            replays: replays.collect(),
            rows: places.rows(config),
            places,
        }
    }

    /// Bytes that [`Experience::new`] takes.
    pub(crate) fn memory(config: &TrainConfig) -> u64 {
        let shapes = Places::new(config).shapes(config).into_iter();
        shapes.map(Replay::memory).fold(0, u64::saturating_add)
    }

    /// Stores the experience of a switch of a worker.
    pub(crate) fn take(&mut self, worker: usize, experienced: &Experienced) {
        match experienced {
            Experienced::First { agent, frame } => {
                let (replay, stream) = self.places.of[worker][*agent];
                self.replays[replay].start(stream, frame);
            }
            Experienced::Decision { agent, transition } => {
                let (replay, stream) = self.places.of[worker][*agent];
                self.replays[replay].push(stream, transition);
            }
        }
    }

    /// Stores a pair of forks of a switch of a worker.
    pub(crate) fn take_pair(&mut self, worker: usize, (agent, pair): &(usize, Pair)) {
        let (replay, _) = self.places.of[worker][*agent];
        self.replays[replay].push_pair(pair);
    }

    /// Returns all transitions that the switches have recorded since the last call, for each number of ports.
    pub(crate) fn take_new(&mut self) -> Vec<Rollout> {
        self.replays.iter_mut().map(Replay::take_new).collect()
    }

    /// Transitions held.
    pub(crate) fn len(&self) -> usize {
        self.replays.iter().map(Replay::len).sum()
    }

    /// Returns true if a batch can be drawn from a replay. Switches of one kind may never have to decide: with two
    /// leaves, no port of a spine gets more than it can send.
    pub(crate) fn is_ready(&self) -> bool {
        self.ready().next().is_some()
    }

    /// The replays from which a batch can be drawn.
    fn ready(&self) -> impl Iterator<Item = usize> {
        let pairs = self.replays.iter().zip(&self.rows).enumerate();
        pairs.filter_map(|(number, (replay, &rows))| replay.is_ready(rows).then_some(number))
    }

    /// Draws the batch of update `number`. The workers take turns, and so do the switches of each. The batch comes from
    /// the switches with as many ports as the switch whose turn it is. If these have not decided enough, it comes from
    /// the first ones that have.
    pub(crate) fn sample(&mut self, number: u64, n_step: usize, batch: &mut Batch) {
        self.sample_batches(1, number, n_step, batch);
    }

    /// As [`sample`](Experience::sample), for the scales of a learner: many more transitions.
    pub(crate) fn sample_many(&mut self, number: u64, n_step: usize, batch: &mut Batch) {
        self.sample_batches(SCALE_BATCHES, number, n_step, batch);
    }

    fn sample_batches(&mut self, batches: usize, number: u64, n_step: usize, batch: &mut Batch) {
        let workers = self.places.of.len() as u64;
        let worker = &self.places.of[index(number % workers)];
        let (turn, _) = worker[index(number / workers % worker.len() as u64)];
        let mut ready: Vec<usize> = self.ready().collect();
        ready.sort_by_key(|&replay| replay != turn);
        let replay = ready.first().copied().unwrap_or(turn);
        self.replays[replay].sample(batches * self.rows[replay], n_step, batch);
    }

    /// Standard deviation of a worker's returns over `n_step` decisions, as means over ports; the mean over its
    /// switches.
    fn deviation(&self, worker: usize, n_step: usize) -> f64 {
        let own = &self.places.of[worker];
        let deviation = |&(replay, stream): &(usize, usize)| {
            self.replays[replay].return_deviation(stream, n_step)
        };
        own.iter().map(deviation).sum::<f64>() / own.len() as f64
    }

    /// Returns a factor for the rewards of each worker. With them, the returns of all scenarios of a mixture have the
    /// deviation that they have in the first one. Without a mixture there are none.
    pub(crate) fn even_factors(&self, config: &TrainConfig) -> Vec<f32> {
        let (count, workers) = (config.scenarios().len(), config.rollout.workers);
        if count == 1 {
            return Vec::new();
        }
        let deviation = |scenario: usize| {
            let own = (scenario..workers).step_by(count);
            let number = own.len() as f64;
            let each = own.map(|worker| self.deviation(worker, config.learner.n_step));
            each.sum::<f64>() / number
        };
        let deviations: Vec<f64> = (0..count).map(deviation).collect();
        let factor = |worker: usize| match [deviations[0], deviations[worker % count]] {
            [wanted, own] if wanted > 0.0 && own > 0.0 => {
                single((wanted / own).clamp(1.0 / MAX_SCALE, MAX_SCALE))
            }
            // If nothing is lost, nothing varies.
            _ => 1.0,
        };
        (0..workers).map(factor).collect()
    }

    /// Multiplies the stored rewards of a worker.
    pub(crate) fn scale(&mut self, worker: usize, factor: f32) {
        for &(replay, stream) in &self.places.of[worker] {
            self.replays[replay].scale_rewards(stream, factor);
        }
    }

    /// Writes `replay.bin`, followed by `replay-1.bin` and so on if there are more replays.
    pub(crate) fn save(&self, folder: &Path) -> Result<(), ReplayError> {
        let mut numbered = self.replays.iter().enumerate();
        numbered.try_for_each(|(number, replay)| replay.save(&folder.join(file(number))))
    }

    pub(crate) fn load(folder: &Path, config: &TrainConfig) -> Result<Experience, ReplayError> {
        let places = Places::new(config);
        let shapes = places.shapes(config).into_iter().enumerate();
        let replays = shapes.map(|(number, shape)| Replay::load(&folder.join(file(number)), shape));
        Ok(Experience {
            replays: replays.collect::<Result<_, _>>()?,
            rows: places.rows(config),
            places,
        })
    }

    /// Returns true if there is a stream for every switch of so many workers.
    pub(crate) fn fits(&self, workers: usize) -> bool {
        let streams: usize = self.replays.iter().map(Replay::streams).sum();
        streams == self.places.all_streams() && self.places.of.len() == workers
    }
}

fn file(number: usize) -> String {
    match number {
        0 => "replay.bin".to_owned(),
        more => format!("replay-{more}.bin"),
    }
}
