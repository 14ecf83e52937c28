//! Simulations of networks that several figures need, each made once.
//!
//! A [`Cell`] is what a point of a figure needs: a preset with settings, and a policy. Cells that come to
//! the same scenario under the same policy share their simulations, one for each seed.

mod forests;
mod measured;

use std::collections::BTreeMap;

use bufgym_models::ActorWeights;
use bufgym_models::checkpoint::Manifest;
use bufgym_models::files::sha256;
use bufgym_sim::convert::index;
use bufgym_sim::network::{Outcome, SimError};
use bufgym_sim::rng::{Split, trace_seed};
use bufgym_sim::scenario::{Scenario, Tier};
use bufgym_sim::switch::PolicySpec;
use bufgym_sim::traffic::{self, Trace};
use rayon::prelude::*;

use super::runs::{PapersError, Work};
use crate::Entrant;
use crate::parts::Parts;

pub use forests::Forests;
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
    /// A preset under a policy, with settings.
    pub fn new(preset: &'static str, policy: &str, settings: Vec<String>) -> Cell {
        Cell {
            preset,
            settings,
            policy: policy.to_owned(),
        }
    }
}

/// The policy of a cell that stands for [`Learned`].
pub const LEARNED: &str = "learned";

/// A learned policy that decides at every switch.
#[derive(Clone, Debug)]
pub struct Learned {
    /// The policy.
    pub entrant: Entrant,
    /// Its weights and the heuristic below them, as one number.
    pub fingerprint: String,
}

impl Learned {
    /// The policy of a checkpoint.
    pub fn new(name: &str, weights: &ActorWeights, manifest: &Manifest) -> Learned {
        let text = format!("{} {:?}", manifest.low_level, weights.tensors());
        Learned {
            entrant: Entrant::from_checkpoint(name, weights, manifest),
            fingerprint: sha256(text.as_bytes()),
        }
    }
}

/// What all simulations have in common.
#[derive(Clone, Debug, Default)]
pub struct Common {
    /// `KEY=VALUE`, applied to every preset before the settings of the cell.
    pub settings: Vec<String>,
    /// Seed of the experiment.
    pub seed: u64,
    /// Whether the traces are those to choose parameters by, and not those of the figures.
    pub training: bool,
    /// Forests of Credence; without them it has the one that comes with the program.
    pub forests: Option<Forests>,
    /// The policy of cells that have [`LEARNED`].
    pub learned: Option<Learned>,
    /// Revision of the program, which kept results must have.
    pub revision: String,
}

/// A scenario under a policy, ready to run.
struct Planned {
    scenario: Scenario,
    policy: Contender,
    seeds: u64,
}

/// Who decides in a cell.
enum Contender {
    Rule(PolicySpec),
    Learned(Learned),
}

impl Contender {
    fn name(&self) -> String {
        match self {
            Contender::Rule(policy) => policy.to_string(),
            Contender::Learned(learned) => learned.entrant.name().to_owned(),
        }
    }

    fn key(&self) -> String {
        match self {
            Contender::Rule(policy) => format!("{policy:?}"),
            Contender::Learned(learned) => format!("{LEARNED} {}", learned.fingerprint),
        }
    }

    fn simulate(
        &self,
        scenario: &Scenario,
        trace: &Trace,
        forests: Option<&Forests>,
    ) -> Result<Outcome, SimError> {
        match self {
            Contender::Rule(policy) => forests::simulate(scenario, trace, policy, forests),
            Contender::Learned(learned) => learned.entrant.run(scenario, trace, None),
        }
    }
}

/// The key of what cells share.
type Key = String;

/// The simulations to be made.
pub struct Plan {
    common: Common,
    keys: BTreeMap<Cell, Result<Key, String>>,
    work: BTreeMap<Key, Planned>,
}

impl Plan {
    /// No simulations yet.
    pub fn new(common: Common) -> Plan {
        Plan {
            common,
            keys: BTreeMap::new(),
            work: BTreeMap::new(),
        }
    }

    /// Adds the simulations of a cell, unless they are planned already. A cell that this version
    /// cannot run is remembered with the reason.
    pub fn want(&mut self, cell: &Cell, seeds: u64) {
        let resolved = self.resolve(cell);
        let key = resolved.map(|(scenario, policy)| {
            let key = format!("{}\n{}", policy.key(), scenario.to_toml());
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

    /// The scenario and the policy of a cell, or why they cannot be.
    fn resolve(&self, cell: &Cell) -> Result<(Scenario, Contender), String> {
        let text = |error: &dyn std::fmt::Display| error.to_string();
        let mut scenario = Scenario::preset(cell.preset).map_err(|error| text(&error))?;
        for setting in self.common.settings.iter().chain(&cell.settings) {
            scenario.set(setting).map_err(|error| text(&error))?;
        }
        scenario.validate().map_err(|error| text(&error))?;
        if let Some(learned) = self
            .common
            .learned
            .as_ref()
            .filter(|_| cell.policy == LEARNED)
        {
            scenario.require_decidable().map_err(|error| text(&error))?;
            return Ok((scenario, Contender::Learned(learned.clone())));
        }
        let policy: PolicySpec = cell.policy.parse().map_err(|error| text(&error))?;
        for tier in [Tier::Leaf, Tier::Spine] {
            let built = policy.build(&scenario.at_switch(tier));
            built.map_err(|error| text(&error))?;
        }
        Ok((scenario, Contender::Rule(policy)))
    }

    /// Number of simulations.
    pub fn simulations(&self) -> usize {
        let seeds = self.work.values().map(|work| index(work.seeds));
        seeds.sum()
    }

    /// Every cell with its key, or why it cannot be run.
    #[cfg(test)]
    pub fn resolved(&self) -> Vec<&Result<Key, String>> {
        self.keys.values().collect()
    }

    /// Makes them all, on all threads. The result does not depend on the number of threads. With
    /// `parts`, what is finished is kept there, and what was kept is not made again.
    ///
    /// # Errors
    /// When a simulation fails or its result cannot be kept.
    pub fn run(self, parts: Option<&Parts>, ticks: &Work) -> Result<Grid, PapersError> {
        let simulations: Vec<(&Key, &Planned, u64)> = self
            .work
            .iter()
            .flat_map(|(key, work)| (0..work.seeds).map(move |number| (key, work, number)))
            .collect();
        let common = &self.common;
        ticks.plan(simulations.len());
        let measure = |&(key, work, number): &(&Key, &Planned, u64)| {
            let measured = kept_or_made(common, key, work, number, parts)?;
            ticks.tick(&work.policy.name(), number);
            Ok(measured)
        };
        let measured: Vec<Measured> = simulations
            .par_iter()
            .with_max_len(1)
            .map(measure)
            .collect::<Result<_, PapersError>>()?;
        let mut runs: BTreeMap<Key, Vec<Measured>> = BTreeMap::new();
        for ((key, _, _), measured) in simulations.iter().zip(measured) {
            runs.entry((*key).clone()).or_default().push(measured);
        }
        Ok(Grid {
            keys: self.keys,
            runs,
        })
    }
}

/// The simulation `number` of a scenario under a policy, from the parts or made now.
fn kept_or_made(
    common: &Common,
    key: &str,
    work: &Planned,
    number: u64,
    parts: Option<&Parts>,
) -> Result<Measured, PapersError> {
    let forests = common.forests.as_ref();
    let oracle = forests.map_or_else(String::new, Forests::fingerprint);
    let split = match common.training {
        true => Split::Train,
        false => Split::Test,
    };
    let seed = trace_seed(split, common.seed, number);
    let of = format!("grid\n{key}\n{oracle}\n{seed}");
    let fingerprint = Parts::fingerprint(&of, &common.revision);
    if let Some(kept) = parts.and_then(|parts| parts.load(&fingerprint)) {
        return Ok(kept);
    }
    let Planned {
        scenario, policy, ..
    } = work;
    let trace = traffic::generate(scenario, seed);
    let outcome = policy.simulate(scenario, &trace, forests);
    let outcome = outcome.map_err(|source| PapersError::Run {
        policy: policy.name(),
        scenario: scenario.name.clone(),
        source: Box::new(source),
    })?;
    let measured = Measured::of(scenario, &outcome);
    if let Some(parts) = parts {
        let keep = parts.keep(&fingerprint, &measured);
        keep.map_err(|source| PapersError::Keep {
            folder: parts.folder().to_owned(),
            source,
        })?;
    }
    Ok(measured)
}

/// Simulations that were made.
#[derive(Clone, Debug, Default)]
pub struct Grid {
    keys: BTreeMap<Cell, Result<Key, String>>,
    runs: BTreeMap<Key, Vec<Measured>>,
}

impl Grid {
    /// What was measured in a cell, by seed; empty if it could not be run or was not planned.
    pub fn of(&self, cell: &Cell) -> &[Measured] {
        let key = self.keys.get(cell).and_then(|key| key.as_ref().ok());
        key.and_then(|key| self.runs.get(key))
            .map_or(&[], Vec::as_slice)
    }

    /// Why this version cannot run a cell, if it cannot.
    pub fn refusal(&self, cell: &Cell) -> Option<&str> {
        match self.keys.get(cell)? {
            Ok(_) => None,
            Err(reason) => Some(reason),
        }
    }

    /// Flows that did not finish, in all simulations.
    pub fn unfinished(&self) -> u64 {
        let runs = self.runs.values().flatten();
        runs.map(|measured| measured.unfinished).sum()
    }

    /// Number of simulations.
    pub fn simulations(&self) -> usize {
        self.runs.values().map(Vec::len).sum()
    }

    /// Results as if they had been simulated, for tests.
    #[cfg(test)]
    pub fn made_up(results: impl IntoIterator<Item = (Cell, Vec<Measured>)>) -> Grid {
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
