//! Agents that do not learn.

use bufgym_env::control::{ALPHAS, Controller, cell_centre};
use bufgym_models::noise::uniform;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// The same α for every port, always: under it the two-level control is a static DT.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FixedAgent {
    action: f32,
}

impl FixedAgent {
    /// An agent that always chooses cell `index`, or nothing where there is no such cell.
    pub fn new(index: usize) -> Option<FixedAgent> {
        (index < ALPHAS.len()).then(|| FixedAgent {
            action: cell_centre(index),
        })
    }
}

impl Controller for FixedAgent {
    fn act(&mut self, _observation: &[f32], _ports: usize, action: &mut [f32]) {
        action.fill(self.action);
    }
}

/// Every action uniform in `[-1, 1)`, every port for itself.
#[derive(Clone, Debug)]
pub struct RandomAgent {
    rng: Xoshiro256PlusPlus,
}

impl RandomAgent {
    /// An agent whose choices depend on the seed alone.
    pub fn new(seed: u64) -> RandomAgent {
        RandomAgent {
            rng: Xoshiro256PlusPlus::seed_from_u64(seed),
        }
    }
}

impl Controller for RandomAgent {
    fn act(&mut self, _observation: &[f32], _ports: usize, action: &mut [f32]) {
        action.fill_with(|| 2.0 * uniform(&mut self.rng) - 1.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bufgym_env::control::action_index;

    #[test]
    fn the_fixed_agent_chooses_its_own_cell() {
        let mut actions = [0.0; 3];
        for index in 0..ALPHAS.len() {
            FixedAgent::new(index).unwrap().act(&[], 3, &mut actions);
            assert_eq!(actions.map(action_index), [index; 3]);
        }
        assert_eq!(FixedAgent::new(ALPHAS.len()), None);
    }

    #[test]
    fn the_random_agent_visits_every_cell_and_repeats_itself() {
        let mut actions = [0.0; 256];
        RandomAgent::new(1).act(&[], 256, &mut actions);
        let mut seen = [false; 8];
        actions
            .iter()
            .for_each(|&action| seen[action_index(action)] = true);
        assert_eq!(seen, [true; 8]);
        let mut again = [0.0; 256];
        RandomAgent::new(1).act(&[], 256, &mut again);
        assert_eq!(actions, again);
    }
}
