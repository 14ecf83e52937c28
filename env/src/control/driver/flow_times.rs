//! Duration of a scenario's flows without competing traffic, which scales rewards.

use std::sync::{Arc, Mutex, PoisonError};

use bufgym_sim::network::{BaseFlow, BaseTime, IsolatedFlow};
use bufgym_sim::scenario::Scenario;

/// Number of scenarios whose mean is remembered: more than a mixture has, and few enough to compare with each.
const REMEMBERED: usize = 64;

/// Mean durations of scenarios' flows without competing traffic. Clones share what one of them has computed.
///
/// Where slow start has no closed form ([`IsolatedFlow`]), a mean takes a simulation of a flow of every size, which
/// together last longer than a trace. So environments of one training, with options that are clones of each other,
/// compute it once.
#[derive(Clone, Debug, Default)]
pub struct FlowTimes(Arc<Mutex<Vec<(Scenario, f64)>>>);

impl FlowTimes {
    /// Returns the mean duration of a flow of `scenario` without competing traffic, seconds. In a network of several
    /// switches, it is the mean base time of a flow between two leaves.
    pub(super) fn mean_s(&self, scenario: &Scenario) -> f64 {
        // The list is consistent even if another thread has panicked: a mean is added in one step. Who asks meanwhile
        // waits, instead of computing the same.
        let mut means = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, mean)) = means.iter().find(|(known, _)| known == scenario) {
            return *mean;
        }
        let mean = computed_s(scenario);
        if means.len() == REMEMBERED {
            means.remove(0);
        }
        means.push((scenario.clone(), mean));
        mean
    }
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
    fn a_remembered_mean_is_that_of_the_scenario_and_clones_share_it() {
        let mut scenarios = ["linux-16x1g", "leafspine-4x4", "ndt-16x1g"]
            .map(|name| Scenario::preset(name).unwrap())
            .to_vec();
        let times = FlowTimes::default();
        let remembered = || times.0.lock().unwrap().len();
        for times in [&times, &times.clone()] {
            for scenario in &scenarios {
                let mean = times.mean_s(scenario);
                assert_eq!(mean.to_bits(), computed_s(scenario).to_bits());
            }
        }
        assert_eq!(remembered(), scenarios.len());
        // More than are remembered: some are forgotten and computed again.
        for _ in 0..=REMEMBERED {
            let mut scenario = scenarios[scenarios.len() - 1].clone();
            scenario.network.propagation_ns += 1;
            scenarios.push(scenario);
        }
        for scenario in &scenarios {
            let mean = times.mean_s(scenario);
            assert_eq!(mean.to_bits(), computed_s(scenario).to_bits());
        }
        assert_eq!(remembered(), REMEMBERED);
    }
}
