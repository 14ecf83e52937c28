//! The agent that acts at random.

use bufgym_env::control::Controller;
use bufgym_models::noise::uniform;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

/// Draws every port's action uniformly and independently from `[-1, 1)`.
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
