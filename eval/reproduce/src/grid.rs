//! Simulations of networks that several figures need; each runs only once.
//!
//! A [`Cell`] contains the inputs for a point of a figure: a preset with settings, and a policy. Cells with
//! the same scenario under the same policy share their simulations, one for each seed.

mod measured;

use std::collections::BTreeMap;

use bufgym_eval::Entrant;
use bufgym_eval::batch::{self, Batch, Executor, Quantity, Running, Simulation};
use bufgym_eval::evaluate::NumberedTrace;
use bufgym_eval::result_cache::ResultCache;
use bufgym_models::ActorWeights;
use bufgym_models::checkpoint::Manifest;
use bufgym_models::files::sha256;
use bufgym_sim::network::SimError;
use bufgym_sim::scenario::{Scenario, Tier};
use bufgym_sim::switch::PolicySpec;
use bufgym_sim::traffic;
use bufgym_util::convert::index;
use bufgym_util::rng::{Split, trace_seed};
use rayon::prelude::*;

use super::runs::{PapersError, Work};

pub use bufgym_eval::forests::Forests;
pub use measured::{Lossless, Measured, Occupancy, Slowdowns};

/// A scenario and the policy of its switches.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cell {
    /// Preset.
    pub preset: &'static str,
    /// `KEY=VALUE`, applied in order.
    pub settings: Vec<String>,
    /// Policy string.
    pub policy: String,
}

impl Cell {
    /// Builds a cell from a preset, a policy and settings.
    pub fn new(preset: &'static str, policy: &str, settings: Vec<String>) -> Cell {
        Cell {
            preset,
            settings,
            policy: policy.to_owned(),
        }
    }
}

/// The policy string of cells that use [`Learned`].
pub const LEARNED: &str = "learned";

/// A learned policy that decides at every switch.
#[derive(Clone, Debug)]
pub struct Learned {
    /// The policy.
    pub entrant: Entrant,
    /// Fingerprint of the weights and the heuristic below them.
    pub fingerprint: String,
}

impl Learned {
    /// Builds the policy of a checkpoint.
    pub fn new(name: &str, weights: &ActorWeights, manifest: &Manifest) -> Learned {
        let text = format!("{} {:?}", manifest.low_level, weights.tensors());
        Learned {
            entrant: Entrant::from_checkpoint(name, weights, manifest),
            fingerprint: sha256(text.as_bytes()),
        }
    }
}

/// Settings that all simulations share.
#[derive(Clone, Debug, Default)]
pub struct Common {
    /// `KEY=VALUE`, applied to every preset before the settings of the cell.
    pub settings: Vec<String>,
    /// Seed of the experiment.
    pub seed: u64,
    /// True if the traces serve to choose parameters, and are not those of the figures.
    pub training: bool,
    /// Forests of Credence; without them it uses the one that comes with the program.
    pub forests: Option<Forests>,
    /// The policy of cells with the policy string [`LEARNED`].
    pub learned: Option<Learned>,
    /// Revision of the program, which stored results must match.
    pub revision: String,
}

/// A scenario under a policy, ready to run.
struct Planned {
    scenario: Scenario,
    policy: Entrant,
    seeds: u64,
}

impl Quantity for Measured {
    const NAME: &'static str = "network";

    fn measure(run: &Running<'_>) -> Result<Self, SimError> {
        let (scenario, trace) = (run.scenario, &run.trace.trace);
        let outcome = match run.policy.spec() {
            Some(rule) => bufgym_eval::forests::simulate(scenario, trace, rule, run.forests)?,
            None => run.policy.run(scenario, trace, None)?,
        };
        Ok(Measured::of(scenario, &outcome))
    }
}

/// The key that cells with the same simulations share.
type Key = String;

/// The simulations to run.
pub struct GridPlan {
    common: Common,
    keys: BTreeMap<Cell, Result<Key, String>>,
    work: BTreeMap<Key, Planned>,
}

impl GridPlan {
    /// Builds a plan without simulations.
    pub fn new(common: Common) -> GridPlan {
        GridPlan {
            common,
            keys: BTreeMap::new(),
            work: BTreeMap::new(),
        }
    }

    /// Adds the simulations of a cell, unless they are planned already. If this version cannot run a cell,
    /// the plan remembers the reason.
    pub fn want(&mut self, cell: &Cell, seeds: u64) {
        let resolved = self.resolve(cell);
        let key = resolved.map(|(scenario, policy, key)| {
            let key = format!("{key}\n{}", scenario.to_toml());
            let work = Planned {
                scenario,
                policy,
                seeds,
            };
            let planned = self.work.entry(key.clone()).or_insert(work);
            planned.seeds = planned.seeds.max(seeds);
            key
        });
        self.keys.insert(cell.clone(), key);
    }

    /// Returns the scenario and the policy of a cell, with a text that is unique to the policy, or the reason
    /// why they are invalid.
    fn resolve(&self, cell: &Cell) -> Result<(Scenario, Entrant, String), String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let mut scenario = Scenario::preset(cell.preset).map_err(|error| text(&error))?;
        for settings in [&self.common.settings, &cell.settings] {
            scenario.set_all(settings).map_err(|error| text(&error))?;
        }
        scenario.validate().map_err(|error| text(&error))?;
        if let Some(learned) = self
            .common
            .learned
            .as_ref()
            .filter(|_| cell.policy == LEARNED)
        {
            scenario.require_decidable().map_err(|error| text(&error))?;
            let key = format!("{LEARNED} {}", learned.fingerprint);
            return Ok((scenario, learned.entrant.clone(), key));
        }
        let policy: PolicySpec = cell.policy.parse().map_err(|error| text(&error))?;
        for tier in [Tier::Leaf, Tier::Spine] {
            let built = policy.build(&scenario.at_switch(tier));
            built.map_err(|error| text(&error))?;
        }
        let key = format!("{policy:?}");
        Ok((scenario, Entrant::rule(policy), key))
    }

    /// Returns the number of simulations.
    pub fn simulations(&self) -> usize {
        let seeds = self.work.values().map(|work| index(work.seeds));
        seeds.sum()
    }

    /// Returns the key of every cell, or the reason why it cannot be run.
    #[cfg(test)]
    pub fn resolved(&self) -> Vec<&Result<Key, String>> {
        self.keys.values().collect()
    }

    /// Runs all simulations. The result depends neither on the number of threads nor on who runs the
    /// simulations. With `parts`, finished results are stored there, and stored ones are not run again.
    ///
    /// # Errors
    /// Fails if a simulation fails or its result cannot be stored.
    pub fn run(self, parts: Option<&ResultCache>, work: &Work) -> Result<Grid, PapersError> {
        let points = self.points();
        work.plan(points.len());
        let measured = match work.executor() {
            None => self.made_locally(&points, parts, work)?,
            Some(executor) => self.made_remotely(executor, &points, parts, work)?,
        };
        let mut runs: BTreeMap<Key, Vec<Measured>> = BTreeMap::new();
        for (point, measured) in points.iter().zip(measured) {
            runs.entry(point.key.clone()).or_default().push(measured);
        }
        Ok(Grid {
            keys: self.keys,
            runs,
        })
    }
}

/// One simulation of a plan.
struct Point<'a> {
    key: &'a Key,
    planned: &'a Planned,
    /// Number of the trace.
    number: u64,
    seed: u64,
    /// Fingerprint of the stored result.
    fingerprint: String,
}

impl Point<'_> {
    fn kept(&self, parts: Option<&ResultCache>) -> Option<Measured> {
        parts.and_then(|parts| parts.load(&self.fingerprint))
    }

    fn keep(&self, parts: Option<&ResultCache>, measured: &Measured) -> Result<(), PapersError> {
        let Some(parts) = parts else { return Ok(()) };
        let kept = parts.keep(&self.fingerprint, measured);
        kept.map_err(|source| PapersError::Keep {
            folder: parts.folder().to_owned(),
            source,
        })
    }

    fn make(&self, forests: Option<&Forests>) -> Result<Measured, PapersError> {
        let Planned {
            scenario, policy, ..
        } = self.planned;
        let trace = NumberedTrace {
            index: self.number,
            seed: self.seed,
            trace: traffic::generate(scenario, self.seed),
        };
        let run = Running {
            scenario,
            policy,
            trace: &trace,
            ports: None,
            forests,
        };
        Measured::measure(&run).map_err(|source| PapersError::Run {
            policy: policy.name().to_owned(),
            scenario: scenario.name.clone(),
            source: Box::new(source),
        })
    }

    fn tick(&self, work: &Work) {
        work.tick(self.planned.policy.name(), self.number);
    }
}

impl GridPlan {
    fn points(&self) -> Vec<Point<'_>> {
        let common = &self.common;
        let forests = common.forests.as_ref();
        let oracle = forests.map_or_else(String::new, Forests::fingerprint);
        let split = match common.training {
            true => Split::Train,
            false => Split::Test,
        };
        let point = |key, planned, number| {
            let seed = trace_seed(split, common.seed, number);
            let of = format!("grid\n{key}\n{oracle}\n{seed}");
            Point {
                key,
                planned,
                number,
                seed,
                fingerprint: ResultCache::fingerprint(&of, &common.revision),
            }
        };
        let all = self.work.iter();
        all.flat_map(|(key, planned)| {
            (0..planned.seeds).map(move |number| point(key, planned, number))
        })
        .collect()
    }

    fn made_locally(
        &self,
        points: &[Point<'_>],
        parts: Option<&ResultCache>,
        work: &Work,
    ) -> Result<Vec<Measured>, PapersError> {
        let forests = self.common.forests.as_ref();
        let measure = |point: &Point<'_>| {
            let measured = match point.kept(parts) {
                Some(kept) => kept,
                None => {
                    let made = point.make(forests)?;
                    point.keep(parts, &made)?;
                    made
                }
            };
            point.tick(work);
            Ok(measured)
        };
        points.par_iter().with_max_len(1).map(measure).collect()
    }

    /// Runs missing simulations on other machines. Results are stored as they arrive.
    fn made_remotely(
        &self,
        executor: &dyn Executor,
        points: &[Point<'_>],
        parts: Option<&ResultCache>,
        work: &Work,
    ) -> Result<Vec<Measured>, PapersError> {
        let mut found: Vec<Option<Measured>> = points.iter().map(|p| p.kept(parts)).collect();
        let (kept, missing): (Vec<_>, Vec<_>) = points
            .iter()
            .enumerate()
            .partition(|(place, _)| found[*place].is_some());
        kept.iter().for_each(|(_, point)| point.tick(work));
        let batch = self.batch(missing.iter().map(|(_, point)| *point))?;
        let made = batch::gather(executor, &batch, |number, measured| {
            let (_, point) = missing[number];
            point.keep(parts, measured)?;
            point.tick(work);
            Ok::<(), PapersError>(())
        })?;
        for ((place, _), measured) in missing.into_iter().zip(made) {
            found[place] = Some(measured);
        }
        Ok(found.into_iter().flatten().collect())
    }

    fn batch<'a>(&self, points: impl Iterator<Item = &'a Point<'a>>) -> Result<Batch, PapersError> {
        let mut batch = Batch::new::<Measured>().with_forests(self.common.forests.clone());
        let mut known: BTreeMap<&Key, (usize, usize)> = BTreeMap::new();
        for point in points {
            let (scenario, policy) = match known.get(point.key) {
                Some(place) => *place,
                None => {
                    let scenario = batch.add_scenario(&point.planned.scenario);
                    let policy = batch.add_policy(&point.planned.policy)?;
                    known.insert(point.key, (scenario, policy));
                    (scenario, policy)
                }
            };
            batch.add(Simulation {
                scenario,
                policy,
                trace: point.number,
                seed: point.seed,
            });
        }
        Ok(batch)
    }
}

/// Finished simulations.
#[derive(Clone, Debug, Default)]
pub struct Grid {
    keys: BTreeMap<Cell, Result<Key, String>>,
    runs: BTreeMap<Key, Vec<Measured>>,
}

impl Grid {
    /// Returns the measurements of a cell, by seed; empty if it could not be run or was not planned.
    pub fn of(&self, cell: &Cell) -> &[Measured] {
        let key = self.keys.get(cell).and_then(|key| key.as_ref().ok());
        key.and_then(|key| self.runs.get(key))
            .map_or(&[], Vec::as_slice)
    }

    /// Returns the reason why this version cannot run a cell, if it cannot.
    pub fn refusal(&self, cell: &Cell) -> Option<&str> {
        match self.keys.get(cell)? {
            Ok(_) => None,
            Err(reason) => Some(reason),
        }
    }

    /// Returns the number of flows that did not finish, in all simulations.
    pub fn unfinished(&self) -> u64 {
        let runs = self.runs.values().flatten();
        runs.map(|measured| measured.unfinished).sum()
    }

    /// Returns the number of simulations.
    pub fn simulations(&self) -> usize {
        self.runs.values().map(Vec::len).sum()
    }

    /// Returns given results as if they had been simulated, for tests.
    #[cfg(test)]
    pub(crate) fn made_up(results: impl IntoIterator<Item = (Cell, Vec<Measured>)>) -> Grid {
        let mut grid = Grid::default();
        for (number, (cell, measured)) in results.into_iter().enumerate() {
            grid.keys.insert(cell, Ok(number.to_string()));
            grid.runs.insert(number.to_string(), measured);
        }
        grid
    }
}

#[cfg(test)]
mod tests;
