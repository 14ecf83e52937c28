//! Records a controller at work: its observations, its decisions, and the losses meanwhile.

use bufgym_env::control::{
    ALPHAS, ControlOptions, Controller, LowLevelPolicy, Reading, RunOptions, action_index,
    run_controlled,
};
use bufgym_sim::network::{DropRow, SimError};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::traffic::Trace;
use bufgym_util::convert::{index, single};
use bufgym_util::rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

use super::dependence::Observations;

/// Counts of each decided level of one output, by its place in [`ALPHAS`] or
/// [`GAPS`](bufgym_sim::switch::aqm::early::GAPS): one count per decision and port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LevelCounts {
    /// Counts for ports with less than one full packet queued.
    pub idle: [u64; ALPHAS.len()],
    /// Counts for the other ports.
    pub busy: [u64; ALPHAS.len()],
}

impl LevelCounts {
    fn append(&mut self, other: &LevelCounts) {
        for (sums, counts) in [(&mut self.idle, other.idle), (&mut self.busy, other.busy)] {
            sums.iter_mut().zip(counts).for_each(|(sum, n)| *sum += n);
        }
    }
}

/// Recordings of one run or of several.
#[derive(Clone, Debug)]
pub struct Watched {
    /// Some of the observations, each as likely as any other of its trace.
    pub observations: Observations,
    /// Decisions made.
    pub decisions: u64,
    /// Counts of the decided α.
    pub alphas: LevelCounts,
    /// Counts of the levels of early drop; all 0 if decisions set none.
    pub early: LevelCounts,
    /// Every lost packet.
    pub drops: Vec<DropRow>,
    /// Time between decisions, picoseconds.
    pub intervals_ps: Vec<u64>,
}

impl Watched {
    /// Builds an empty recording.
    pub fn new(scenario: &Scenario) -> Watched {
        let packet = scenario.full_packet_bytes() as f64;
        Watched {
            observations: Observations {
                ports: scenario.port_count(),
                busy_from: single(packet / scenario.network.buffer_bytes as f64),
                values: Vec::new(),
            },
            decisions: 0,
            alphas: LevelCounts::default(),
            early: LevelCounts::default(),
            drops: Vec::new(),
            intervals_ps: Vec::new(),
        }
    }

    /// Adds another run of the same scenario.
    pub fn append(&mut self, run: Watched) {
        self.observations.values.extend(run.observations.values);
        self.decisions += run.decisions;
        self.alphas.append(&run.alphas);
        self.early.append(&run.early);
        self.drops.extend(run.drops);
        self.intervals_ps.extend(run.intervals_ps);
    }

    /// Counts the levels; `action` is `[ports, outputs]`, α first.
    fn count(&mut self, observation: &[f32], action: &[f32]) {
        let outputs = action.len() / self.observations.ports;
        for (port, action) in action.chunks_exact(outputs).enumerate() {
            let busy = self.observations.is_busy(observation, port);
            for (counts, &output) in [&mut self.alphas, &mut self.early].into_iter().zip(action) {
                let counts = match busy {
                    true => &mut counts.busy,
                    false => &mut counts.idle,
                };
                counts[action_index(output)] += 1;
            }
        }
    }

    /// Keeps an observation by reservoir sampling (Vitter, "Random Sampling with a Reservoir", 1985,
    /// algorithm R).
    fn keep(&mut self, observation: &[f32], kept: usize, chance: &mut Xoshiro256PlusPlus) {
        let values = &mut self.observations.values;
        if values.len() < kept * observation.len() {
            return values.extend_from_slice(observation);
        }
        let place = index(rng::below(chance, self.decisions.max(1)));
        if place < kept {
            let start = place * observation.len();
            values[start..start + observation.len()].copy_from_slice(observation);
        }
    }
}

/// Runs `trace` to its end under `controller`, and keeps up to `kept` observations.
///
/// # Errors
/// Fails if the scenario is inconsistent or the trace does not fit it.
pub fn watch(
    scenario: &Scenario,
    trace: &Trace,
    controller: &mut dyn Controller,
    low_level: LowLevelPolicy,
    kept: usize,
    chance: &mut Xoshiro256PlusPlus,
) -> Result<Watched, SimError> {
    let options = RunOptions {
        control: ControlOptions {
            low_level,
            ..ControlOptions::default()
        },
        drops: true,
        ..RunOptions::default()
    };
    let mut observed = Observed {
        controller,
        watched: Watched::new(scenario),
        kept,
        chance,
    };
    let outcome = run_controlled(scenario, trace, &mut observed, &options)?;
    Ok(Watched {
        drops: outcome.drops,
        intervals_ps: outcome.trigger_intervals_ps,
        ..observed.watched
    })
}

/// Forwards decisions to another controller, and records its observations and decisions.
struct Observed<'a> {
    controller: &'a mut dyn Controller,
    watched: Watched,
    kept: usize,
    chance: &'a mut Xoshiro256PlusPlus,
}

impl Controller for Observed<'_> {
    fn outputs(&self) -> usize {
        self.controller.outputs()
    }

    fn act(&mut self, observation: &[f32], ports: usize, action: &mut [f32]) {
        self.controller.act(observation, ports, action);
    }

    fn decide(&mut self, at: &Reading<'_>, action: &mut [f32]) -> Result<(), SimError> {
        self.controller.decide(at, action)?;
        let observation = at.observation();
        self.watched.decisions += 1;
        self.watched.count(observation, action);
        self.watched.keep(observation, self.kept, self.chance);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use bufgym_env::control::{FEATURES, FixedAlpha, HISTORY};
    use bufgym_sim::traffic;
    use bufgym_util::rng::{Split, trace_seed};

    use super::*;

    fn run(kept: usize) -> Watched {
        let mut scenario = Scenario::default();
        for change in ["flows=60", "active_ports=3", "buffer_bytes=200000"] {
            scenario.set(change).unwrap();
        }
        let trace = traffic::generate(&scenario, trace_seed(Split::Validation, 1, 0));
        let mut chance = rng::stream(1, "test", 0);
        let mut controller = FixedAlpha::new(5);
        watch(
            &scenario,
            &trace,
            &mut controller,
            LowLevelPolicy::dt(),
            kept,
            &mut chance,
        )
        .unwrap()
    }

    #[test]
    fn every_decision_of_every_port_is_counted() {
        let watched = run(8);
        let sum = |counts: [u64; 8]| counts.iter().sum::<u64>();
        let (idle, busy) = (watched.alphas.idle, watched.alphas.busy);
        assert!(watched.decisions > 50);
        assert_eq!(sum(idle) + sum(busy), 16 * watched.decisions);
        assert_eq!(idle[5] + busy[5], 16 * watched.decisions);
        assert!(busy[5] > 0 && idle[5] > busy[5]);
        assert_eq!(watched.early, LevelCounts::default());
        assert_eq!(watched.intervals_ps.len() as u64, watched.decisions - 1);
        assert!(!watched.drops.is_empty());
    }

    #[test]
    fn kept_observations_are_whole_and_spread_over_the_run() {
        let (few, all) = (run(8), run(1_000_000));
        let width = 16 * HISTORY * FEATURES;
        assert_eq!(few.observations.count(), 8);
        assert_eq!(all.observations.count() as u64, all.decisions);
        let places: Vec<usize> = few
            .observations
            .values
            .chunks(width)
            .map(|kept| {
                let mut observations = all.observations.values.chunks(width);
                observations.position(|o| o == kept).unwrap()
            })
            .collect();
        assert!(
            places.iter().any(|p| *p > 8),
            "only the first ones: {places:?}"
        );
        assert_eq!(few.alphas, all.alphas);
    }
}
