//! What the workers have experienced: a replay for every number of ports that their switches have.

use std::path::Path;

use bufgym_agents::{Batch, Frame, Replay, ReplayError, ReplayShape, Transition};
use bufgym_sim::rng::stream;
use rand::Rng as _;

use crate::TrainConfig;

/// Fewest transitions of a batch from switches with many ports.
const LEAST_ROWS: usize = 4;

/// The replays. In a training with one scenario there is one.
#[derive(Clone, Debug)]
pub(crate) struct Experience {
    /// In the order of the first worker with that number of ports.
    replays: Vec<Replay>,
    /// Transitions of a batch from each: the more ports, the fewer.
    rows: Vec<usize>,
    /// By worker: its replay, and its stream there.
    places: Vec<(usize, usize)>,
}

impl Experience {
    pub(crate) fn new(config: &TrainConfig) -> Experience {
        let replays = shapes(config).into_iter().zip(0..).map(|(shape, number)| {
            let seed = stream(config.seed, "replay", number).next_u64();
            Replay::new(shape, seed)
        });
        Experience {
            replays: replays.collect(),
            rows: rows(config),
            places: places(config),
        }
    }

    /// Bytes that [`Experience::new`] takes.
    pub(crate) fn memory(config: &TrainConfig) -> u64 {
        shapes(config)
            .into_iter()
            .map(Replay::memory)
            .fold(0, u64::saturating_add)
    }

    /// Begins an episode of a worker with its first frame.
    pub(crate) fn start(&mut self, worker: usize, first: &Frame) {
        let (replay, stream) = self.places[worker];
        self.replays[replay].start(stream, first);
    }

    pub(crate) fn push(&mut self, worker: usize, transition: &Transition) {
        let (replay, stream) = self.places[worker];
        self.replays[replay].push(stream, transition);
    }

    /// Transitions held.
    pub(crate) fn len(&self) -> usize {
        self.replays.iter().map(Replay::len).sum()
    }

    /// Whether a batch can be drawn from every replay.
    pub(crate) fn is_ready(&self) -> bool {
        let mut pairs = self.replays.iter().zip(&self.rows);
        pairs.all(|(replay, &rows)| replay.is_ready(rows))
    }

    /// Draws the batch of update `number`. The workers take turns: it comes from the switches that have as
    /// many ports as that of the worker whose turn it is.
    pub(crate) fn sample(&mut self, number: u64, n_step: usize, batch: &mut Batch) {
        let turn = usize::try_from(number % self.places.len() as u64).unwrap_or(0);
        let (replay, _) = self.places[turn];
        self.replays[replay].sample(self.rows[replay], n_step, batch);
    }

    /// Standard deviation of a worker's returns over `n_step` decisions, as means over ports.
    pub(crate) fn deviation(&self, worker: usize, n_step: usize) -> f64 {
        let (replay, stream) = self.places[worker];
        self.replays[replay].return_deviation(stream, n_step)
    }

    /// Multiplies the rewards that are held of a worker.
    pub(crate) fn scale(&mut self, worker: usize, factor: f32) {
        let (replay, stream) = self.places[worker];
        self.replays[replay].scale_rewards(stream, factor);
    }

    /// Writes `replay.bin`, and `replay-1.bin` and so on where there are more.
    pub(crate) fn save(&self, folder: &Path) -> Result<(), ReplayError> {
        let mut numbered = self.replays.iter().enumerate();
        numbered.try_for_each(|(number, replay)| replay.save(&folder.join(file(number))))
    }

    pub(crate) fn load(folder: &Path, config: &TrainConfig) -> Result<Experience, ReplayError> {
        let shapes = shapes(config).into_iter().enumerate();
        let replays = shapes.map(|(number, shape)| Replay::load(&folder.join(file(number)), shape));
        Ok(Experience {
            replays: replays.collect::<Result<_, _>>()?,
            rows: rows(config),
            places: places(config),
        })
    }

    /// Whether it has as many streams as there are workers.
    pub(crate) fn fits(&self, workers: usize) -> bool {
        let streams: usize = self.replays.iter().map(Replay::streams).sum();
        streams == workers && self.places.len() == workers
    }
}

fn file(number: usize) -> String {
    match number {
        0 => "replay.bin".to_owned(),
        more => format!("replay-{more}.bin"),
    }
}

/// The numbers of ports, in the order of the first worker with each.
fn ports(config: &TrainConfig) -> Vec<usize> {
    let mut ports = Vec::new();
    for worker in 0..config.rollout.workers {
        let found = config.scenario_of(worker).port_count();
        if !ports.contains(&found) {
            ports.push(found);
        }
    }
    ports
}

fn places(config: &TrainConfig) -> Vec<(usize, usize)> {
    let ports = ports(config);
    let mut streams = vec![0; ports.len()];
    let place = |worker: usize| {
        let own = config.scenario_of(worker).port_count();
        let replay = ports.iter().position(|&ports| ports == own).unwrap_or(0);
        streams[replay] += 1;
        (replay, streams[replay] - 1)
    };
    (0..config.rollout.workers).map(place).collect()
}

/// The capacity is shared by the workers.
fn shapes(config: &TrainConfig) -> Vec<ReplayShape> {
    let places = places(config);
    let shape = |(replay, ports): (usize, usize)| {
        let streams = places.iter().filter(|place| place.0 == replay).count();
        let capacity = config.learner.replay_capacity as u128 * streams as u128;
        ReplayShape {
            capacity: usize::try_from(capacity / places.len() as u128).unwrap_or(usize::MAX),
            streams,
            ports,
            outputs: config.actions().outputs(),
        }
    };
    ports(config).into_iter().enumerate().map(shape).collect()
}

/// The batch size holds for the first number of ports; with others a batch has about as many ports in all.
fn rows(config: &TrainConfig) -> Vec<usize> {
    let ports = ports(config);
    let batch = config.sac.batch_size;
    let rows = |&own: &usize| match own == ports[0] {
        true => batch,
        false => (batch * ports[0] / own).max(LEAST_ROWS),
    };
    ports.iter().map(rows).collect()
}
