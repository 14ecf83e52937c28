//! Duration of a scenario's flows without competing traffic, which scales rewards.

use std::sync::{Mutex, PoisonError};

use bufgym_sim::network::{BaseFlow, BaseTime, IsolatedFlow};
use bufgym_sim::scenario::Scenario;

/// Number of scenarios whose mean is remembered: more than a mixture has, and few enough to compare with each.
const REMEMBERED: usize = 64;

/// Returns the mean duration of a flow of `scenario` without competing traffic, seconds. In a network of several
/// switches, it is the mean base time of a flow between two leaves.
///
/// It is remembered for all environments of the process. Where slow start has no closed form
/// ([`IsolatedFlow`]), it takes a simulation of every size, which together last longer than a trace.
pub(super) fn mean_s(scenario: &Scenario) -> f64 {
    static MEANS: Mutex<Vec<(Scenario, f64)>> = Mutex::new(Vec::new());
    let remembered = |means: &[(Scenario, f64)]| {
        let found = means.iter().find(|(known, _)| known == scenario);
        found.map(|&(_, mean)| mean)
    };
    // The list is consistent even if another thread has panicked: a mean is added in one step.
    let known = || MEANS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(mean) = remembered(&known()) {
        return mean;
    }
    let mean = computed_s(scenario);
    let mut means = known();
    if remembered(&means).is_none() {
        if means.len() == REMEMBERED {
            means.remove(0);
        }
        means.push((scenario.clone(), mean));
    }
    mean
}

fn computed_s(scenario: &Scenario) -> f64 {
    if scenario.is_fabric() {
        let base = BaseTime::new(scenario);
        return scenario.mean_over_sizes(|size| {
            let flow = BaseFlow {
                across: true,
                ..BaseFlow::within(size.max(1), scenario.transport.kind)
            };
            base.of(flow).as_secs_f64()
        });
    }
    let isolated = IsolatedFlow::new(scenario);
    scenario.mean_over_sizes(|size| isolated.completion(size.max(1)).as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_remembered_mean_is_that_of_the_scenario_and_no_other() {
        let presets = ["linux-16x1g", "leafspine-4x4", "ndt-16x1g"];
        let mut scenarios = presets.map(|name| Scenario::preset(name).unwrap()).to_vec();
        // More than are remembered: some are forgotten and computed again.
        for _ in 0..=REMEMBERED {
            let mut scenario = scenarios[scenarios.len() - 1].clone();
            scenario.network.propagation_ns += 1;
            scenarios.push(scenario);
        }
        for _ in 0..2 {
            for scenario in &scenarios {
                assert_eq!(mean_s(scenario).to_bits(), computed_s(scenario).to_bits());
            }
        }
    }
}
