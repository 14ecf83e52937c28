//! What a teacher does, as examples for the actor.

use bufgym_models::windows::{OBSERVATION, UNFOLDED, fill};
use rand::RngExt as _;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};

/// Observations of whole switches, each with what the teacher does there.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Examples {
    ports: usize,
    outputs: usize,
    /// `[examples, ports, 8, 5]`
    observations: Vec<f32>,
    /// `[examples, ports, outputs]`, in [-1, 1].
    actions: Vec<f32>,
}

impl Examples {
    /// None yet, of switches with so many ports.
    pub fn new(ports: usize, outputs: usize) -> Examples {
        Examples {
            ports,
            outputs,
            ..Examples::default()
        }
    }

    /// Adds one.
    ///
    /// # Panics
    /// When `observation` is not `[ports, 8, 5]`, or `action` not `[ports, outputs]`.
    pub fn push(&mut self, observation: &[f32], action: &[f32]) {
        assert_eq!(observation.len(), self.ports * OBSERVATION);
        assert_eq!(action.len(), self.ports * self.outputs);
        self.observations.extend_from_slice(observation);
        self.actions.extend_from_slice(action);
    }

    /// Adds all of others with the same numbers of ports and outputs.
    pub fn append(&mut self, others: Examples) {
        assert_eq!((self.ports, self.outputs), (others.ports, others.outputs));
        self.observations.extend(others.observations);
        self.actions.extend(others.actions);
    }

    /// Ports of each.
    pub fn ports(&self) -> usize {
        self.ports
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.actions.len() / (self.ports * self.outputs).max(1)
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.actions.is_empty()
    }

    /// Draws `rows`, with replacement: unfolded observations `[rows * ports * 8, 15]` and actions
    /// `[rows, ports, outputs]`.
    pub(crate) fn draw(&self, rows: usize, rng: &mut Xoshiro256PlusPlus) -> (Vec<f32>, Vec<f32>) {
        let (seen, decided) = (self.ports * OBSERVATION, self.ports * self.outputs);
        let mut windows = vec![0.0; rows * self.ports * UNFOLDED];
        let mut actions = Vec::with_capacity(rows * decided);
        for windows in windows.chunks_exact_mut(self.ports * UNFOLDED) {
            let index = rng.random_range(0..self.len());
            fill(&self.observations[index * seen..][..seen], windows);
            actions.extend_from_slice(&self.actions[index * decided..][..decided]);
        }
        (windows, actions)
    }
}
