//! Partial dependence of decisions (Friedman, "Greedy Function Approximation", 2001, §8.2): one feature of
//! one port is replaced by a value, and everything else stays as observed. The decided α of that port, and
//! its level of early drop if decisions set one, is averaged over decisions and ports.

use bufgym_env::control::{Controller, FEATURES, HISTORY, INITIAL_INDEX, action_index};
use bufgym_util::convert::{index, single};
use bufgym_util::rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::stats;

/// Number of values that a feature is replaced by, from 0 to 1 in equal steps.
const GRID: usize = 17;

/// Number of values in the observation of one port.
const HISTORY_VALUES: usize = HISTORY * FEATURES;

/// A feature that is replaced. All values are on the scale of the observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Factor {
    /// The port's queue, as a share of the buffer.
    Queue,
    /// Bytes enqueued at the port since the last decision.
    Enqueued,
    /// Bytes dropped at the port since the last decision.
    Dropped,
    /// Time since the last decision. It is the same at all ports, so it is replaced at all ports.
    Elapsed,
    /// Bytes in the queues of all other ports, as a share of the buffer. These queues are scaled by the
    /// same factor, or made equal if all are empty.
    OtherQueues,
}

impl Factor {
    /// All factors.
    pub const ALL: [Factor; 5] = [
        Factor::Queue,
        Factor::Enqueued,
        Factor::Dropped,
        Factor::Elapsed,
        Factor::OtherQueues,
    ];

    /// Returns the name for texts.
    pub fn label(self) -> &'static str {
        match self {
            Factor::Queue => "the port's queue",
            Factor::Enqueued => "bytes enqueued",
            Factor::Dropped => "bytes dropped",
            Factor::Elapsed => "time since the last decision",
            Factor::OtherQueues => "the other ports' queues",
        }
    }

    fn feature(self) -> usize {
        match self {
            Factor::Queue | Factor::OtherQueues => 0,
            Factor::Enqueued => 1,
            Factor::Dropped => 2,
            Factor::Elapsed => 4,
        }
    }

    /// Returns the value of the factor in an observation at `step`.
    fn value(self, observation: &[f32], port: usize, step: usize) -> f64 {
        let at = |port: usize| f64::from(observation[place(port, step, self.feature())]);
        match self {
            Factor::OtherQueues => {
                let ports = observation.len() / HISTORY_VALUES;
                (0..ports).filter(|other| *other != port).map(at).sum()
            }
            _ => at(port),
        }
    }

    /// Replaces the value of the factor in an observation at `step`.
    fn replace(self, observation: &mut [f32], port: usize, step: usize, value: f64) {
        let ports = observation.len() / HISTORY_VALUES;
        let feature = self.feature();
        match self {
            Factor::Queue | Factor::Enqueued | Factor::Dropped => {
                observation[place(port, step, feature)] = single(value);
            }
            Factor::Elapsed => {
                (0..ports).for_each(|p| observation[place(p, step, feature)] = single(value));
            }
            Factor::OtherQueues => {
                let sum = self.value(observation, port, step);
                let equal = value / (ports - 1).max(1) as f64;
                for other in (0..ports).filter(|other| *other != port) {
                    let queue = &mut observation[place(other, step, feature)];
                    *queue = match sum > 0.0 {
                        true => single(f64::from(*queue) * value / sum),
                        false => single(equal),
                    };
                }
            }
        }
    }
}

/// Returns the index of a feature in an observation.
fn place(port: usize, step: usize, feature: usize) -> usize {
    port * HISTORY_VALUES + step * FEATURES + feature
}

/// The ports that are averaged over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Population {
    /// All ports.
    All,
    /// Ports with at least one full packet queued.
    Busy,
}

/// The steps of the history that are replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Steps {
    /// The newest step.
    Newest,
    /// All eight steps.
    All,
}

/// A sample of the observations of a policy.
#[derive(Clone, Debug)]
pub struct Observations {
    /// Number of ports.
    pub ports: usize,
    /// A port is busy if its newest queue is at least this, as a share of the buffer.
    pub busy_from: f32,
    /// Values of shape `[observations, ports, HISTORY, FEATURES]`.
    pub values: Vec<f32>,
}

impl Observations {
    /// Returns the number of observations.
    pub fn count(&self) -> usize {
        self.values.len() / self.width()
    }

    fn width(&self) -> usize {
        self.ports * HISTORY_VALUES
    }

    /// Returns observation `index`, `[ports, HISTORY, FEATURES]`.
    ///
    /// # Panics
    /// Panics if there is no such observation.
    pub fn get(&self, index: usize) -> &[f32] {
        &self.values[index * self.width()..(index + 1) * self.width()]
    }

    /// Returns true if the port has a full packet queued.
    pub fn is_busy(&self, observation: &[f32], port: usize) -> bool {
        observation[place(port, HISTORY - 1, 0)] >= self.busy_from
    }

    /// Draws pairs of an observation and a port: all pairs of the population if they are no more than
    /// `samples`, otherwise `samples` pairs drawn with replacement.
    fn draw(
        &self,
        population: Population,
        samples: u64,
        chance: &mut Xoshiro256PlusPlus,
    ) -> Vec<(usize, usize)> {
        let pairs = (0..self.count()).flat_map(|index| (0..self.ports).map(move |p| (index, p)));
        let members: Vec<(usize, usize)> = match population {
            Population::All => pairs.collect(),
            Population::Busy => pairs
                .filter(|&(index, port)| self.is_busy(self.get(index), port))
                .collect(),
        };
        let count = members.len() as u64;
        if count <= samples {
            return members;
        }
        (0..samples)
            .map(|_| members[index(rng::below(chance, count))])
            .collect()
    }
}

/// Dependence of the decided α on one factor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Dependence {
    /// The feature that is replaced.
    pub factor: Factor,
    /// The values that replace it.
    pub grid: Vec<f64>,
    /// The average decisions, one curve per population and steps.
    pub curves: Vec<DependenceCurve>,
}

/// An output of a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decided {
    /// log2 α.
    Alpha,
    /// The level of early drop, from 0 (off) to 7 (the shortest gap).
    Early,
}

impl Decided {
    /// Returns the outputs of a policy that sets early drop, or of one that does not.
    pub fn all(early: bool) -> &'static [Decided] {
        match early {
            true => &[Decided::Alpha, Decided::Early],
            false => &[Decided::Alpha],
        }
    }
}

/// The average decision at every value of the grid.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DependenceCurve {
    /// The ports averaged over.
    pub ports: Population,
    /// The steps at which the value is replaced.
    pub steps: Steps,
    /// Number of decisions of one port averaged over.
    pub samples: u64,
    /// Mean of log2 α of that port, one for each value of the grid.
    pub mean_log2_alpha: Vec<f64>,
    /// Mean of log2 α of that port with nothing replaced.
    pub mean_as_observed: f64,
    /// Mean of the level of early drop of that port, one for each value of the grid; empty if decisions set
    /// none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mean_early_level: Vec<f64>,
    /// Mean of the level of early drop of that port with nothing replaced.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mean_early_as_observed: Option<f64>,
    /// 5th, 50th and 95th percentile of the newest values observed. Outside this range the curve is an
    /// extrapolation.
    pub observed: [f64; 3],
}

impl DependenceCurve {
    /// Returns the averages for each value of the grid.
    pub fn means(&self, decided: Decided) -> &[f64] {
        match decided {
            Decided::Alpha => &self.mean_log2_alpha,
            Decided::Early => &self.mean_early_level,
        }
    }
}

/// Computes the dependence of a controller's decisions on every factor, averaged over at most `samples`
/// decisions for each population. `make` is called for every controller that a thread needs. The result does
/// not depend on the number of threads.
///
/// # Panics
/// Panics if there is no port.
pub fn dependences(
    make: &(dyn Fn() -> Box<dyn Controller> + Sync),
    observations: &Observations,
    samples: u64,
    seed: u64,
) -> Vec<Dependence> {
    let mut chance = rng::stream(seed, "explain dependence", 0);
    let drawn = [Population::All, Population::Busy].map(|population| {
        (
            population,
            observations.draw(population, samples, &mut chance),
        )
    });
    let grid: Vec<f64> = (0..GRID).map(|i| i as f64 / (GRID - 1) as f64).collect();
    let alone = observations.ports < 2;
    let factors = Factor::ALL
        .into_iter()
        .filter(|factor| !(alone && *factor == Factor::OtherQueues));
    factors
        .map(|factor| {
            let populations = drawn.iter().filter(|(_, pairs)| !pairs.is_empty());
            let curves = populations.flat_map(|(population, pairs)| {
                [Steps::Newest, Steps::All].map(|steps| {
                    let average = Average {
                        observations,
                        pairs,
                        factor,
                        steps,
                    };
                    average.curve(make, *population, &grid)
                })
            });
            Dependence {
                factor,
                curves: curves.collect(),
                grid: grid.clone(),
            }
        })
        .collect()
}

/// The settings of one average.
struct Average<'a> {
    observations: &'a Observations,
    /// Pairs of an observation and a port.
    pairs: &'a [(usize, usize)],
    factor: Factor,
    steps: Steps,
}

impl Average<'_> {
    fn curve(
        &self,
        make: &(dyn Fn() -> Box<dyn Controller> + Sync),
        ports: Population,
        grid: &[f64],
    ) -> DependenceCurve {
        // Sums of integers do not depend on the order in which threads finish.
        let sums = self
            .pairs
            .par_chunks(32)
            .map(|pairs| self.sum(make().as_mut(), pairs, grid))
            .reduce(
                || vec![[0; 2]; grid.len() + 1],
                |a, b| {
                    let sums = a.iter().zip(&b);
                    sums.map(|(a, b)| [a[0] + b[0], a[1] + b[1]]).collect()
                },
            );
        let count = self.pairs.len() as f64;
        let alpha = |sum: &[u64; 2]| sum[0] as f64 / count - INITIAL_INDEX as f64;
        let early = |sum: &[u64; 2]| sum[1] as f64 / count;
        let (replaced, observed) = (&sums[..grid.len()], &sums[grid.len()]);
        let sets_early = make().outputs() > 1;
        let mut values: Vec<f64> = self
            .pairs
            .iter()
            .map(|&(index, port)| {
                let observation = self.observations.get(index);
                self.factor.value(observation, port, HISTORY - 1)
            })
            .collect();
        values.sort_by(f64::total_cmp);
        let percentile = |q: f64| stats::nearest_rank(&values, q).unwrap_or(0.0);
        DependenceCurve {
            ports,
            steps: self.steps,
            samples: self.pairs.len() as u64,
            mean_log2_alpha: replaced.iter().map(alpha).collect(),
            mean_as_observed: alpha(observed),
            mean_early_level: match sets_early {
                true => replaced.iter().map(early).collect(),
                false => Vec::new(),
            },
            mean_early_as_observed: sets_early.then(|| early(observed)),
            observed: [0.05, 0.5, 0.95].map(percentile),
        }
    }

    /// Sums the index of the decided α, and the level of early drop if it is decided, over the pairs: a pair
    /// of sums for each value of the grid, then those with nothing replaced.
    fn sum(
        &self,
        controller: &mut dyn Controller,
        pairs: &[(usize, usize)],
        grid: &[f64],
    ) -> Vec<[u64; 2]> {
        let (ports, outputs) = (self.observations.ports, controller.outputs());
        let mut action = vec![0.0; ports * outputs];
        let mut sums = vec![[0; 2]; grid.len() + 1];
        let first = match self.steps {
            Steps::Newest => HISTORY - 1,
            Steps::All => 0,
        };
        for &(index, port) in pairs {
            let original = self.observations.get(index);
            for (value, sum) in grid.iter().zip(&mut sums) {
                let mut changed = original.to_vec();
                (first..HISTORY).for_each(|step| {
                    self.factor.replace(&mut changed, port, step, *value);
                });
                controller.act(&changed, ports, &mut action);
                add(sum, &action[port * outputs..][..outputs]);
            }
            controller.act(original, ports, &mut action);
            add(&mut sums[grid.len()], &action[port * outputs..][..outputs]);
        }
        sums
    }
}

/// Adds the levels of a port's outputs to the sums.
fn add(sum: &mut [u64; 2], outputs: &[f32]) {
    for (sum, &output) in sum.iter_mut().zip(outputs) {
        *sum += action_index(output) as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PORTS: usize = 3;

    /// The action of a port as a function of its newest values and the sum of the other ports' queues.
    type Rule = fn(own: &[f32], others: f32) -> f32;

    #[derive(Clone)]
    struct Known(Rule);

    impl Controller for Known {
        fn act(&mut self, observation: &[f32], ports: usize, action: &mut [f32]) {
            let newest = |port: usize| {
                let start = place(port, HISTORY - 1, 0);
                &observation[start..start + FEATURES]
            };
            let total: f32 = (0..ports).map(|port| newest(port)[0]).sum();
            for (port, action) in action.iter_mut().enumerate() {
                *action = (self.0)(newest(port), total - newest(port)[0]);
            }
        }
    }

    /// Returns observations in which port 0 is always idle, and the others have queues.
    fn observations() -> Observations {
        let mut chance = rng::stream(1, "test", 0);
        let mut values = Vec::new();
        for _ in 0..40 {
            for port in 0..PORTS {
                for _ in 0..HISTORY {
                    let queue = rng::uniform(&mut chance) as f32 * 0.3;
                    let queue = if port == 0 { 0.0 } else { queue + 0.02 };
                    let other = rng::uniform(&mut chance) as f32;
                    values.extend([queue, other, 0.0, 0.0, 0.5]);
                }
            }
        }
        Observations {
            ports: PORTS,
            busy_from: 0.01,
            values,
        }
    }

    /// Returns the dependences that are found with copies of a controller.
    fn found(
        controller: impl Controller + Clone + Sync + 'static,
        observations: &Observations,
        samples: u64,
    ) -> Vec<Dependence> {
        dependences(&|| Box::new(controller.clone()), observations, samples, 1)
    }

    fn of(controller: &Known) -> Vec<Dependence> {
        found(controller.clone(), &observations(), 200)
    }

    fn curve(dependences: &[Dependence], factor: Factor) -> &DependenceCurve {
        let dependence = dependences.iter().find(|d| d.factor == factor).unwrap();
        &dependence.curves[0]
    }

    /// Returns the change from the first value of the grid to the last, in octaves of α.
    fn change(curve: &DependenceCurve) -> f64 {
        curve.mean_log2_alpha[GRID - 1] - curve.mean_log2_alpha[0]
    }

    #[test]
    fn alpha_that_grows_with_the_queue_gives_a_rising_curve_and_flat_ones() {
        let found = of(&Known(|own, _| 2.0 * own[0] - 1.0));
        let queue = curve(&found, Factor::Queue);
        assert!(queue.mean_log2_alpha.is_sorted());
        assert_eq!(queue.mean_log2_alpha[0], -2.0);
        assert_eq!(queue.mean_log2_alpha[GRID - 1], 5.0);
        assert_eq!(queue.mean_log2_alpha[GRID / 2], 2.0, "a half is cell 4");
        assert_eq!(change(queue), 7.0);
        for factor in [
            Factor::Enqueued,
            Factor::Dropped,
            Factor::Elapsed,
            Factor::OtherQueues,
        ] {
            let flat = curve(&found, factor);
            assert_eq!(change(flat), 0.0, "{factor:?}");
            assert_eq!(flat.mean_log2_alpha[5], flat.mean_as_observed);
        }
    }

    #[test]
    fn a_falling_dependence_on_each_other_factor_is_found_there_alone() {
        let cases: [(Factor, Rule); 4] = [
            (Factor::Enqueued, |own, _| 1.0 - 2.0 * own[1]),
            (Factor::Dropped, |own, _| 1.0 - 2.0 * own[2]),
            (Factor::Elapsed, |own, _| 1.0 - 2.0 * own[4]),
            (Factor::OtherQueues, |_, others| 1.0 - 2.0 * others),
        ];
        for (factor, rule) in cases {
            let found = of(&Known(rule));
            let falling = curve(&found, factor);
            assert!(falling.mean_log2_alpha.is_sorted_by(|a, b| a >= b));
            assert_eq!(change(falling), -7.0, "{factor:?}");
            assert_eq!(change(curve(&found, Factor::Queue)), 0.0, "{factor:?}");
        }
    }

    #[test]
    fn early_drop_has_curves_of_its_own() {
        /// A controller whose α falls with the queue and whose early drop rises with it.
        #[derive(Clone)]
        struct Both;
        impl Controller for Both {
            fn outputs(&self) -> usize {
                2
            }

            fn act(&mut self, observation: &[f32], _: usize, action: &mut [f32]) {
                for (port, action) in action.chunks_mut(2).enumerate() {
                    let queue = observation[place(port, HISTORY - 1, 0)];
                    action.copy_from_slice(&[1.0 - 2.0 * queue, 2.0 * queue - 1.0]);
                }
            }
        }
        let found = found(Both, &observations(), 200);
        let queue = curve(&found, Factor::Queue);
        assert_eq!(change(queue), -7.0);
        let early = queue.means(Decided::Early);
        assert!(early.is_sorted());
        assert_eq!((early[0], early[GRID - 1]), (0.0, 7.0));
        let flat = curve(&found, Factor::Dropped);
        assert_eq!(
            flat.mean_early_level[3],
            flat.mean_early_as_observed.unwrap()
        );
        let alone = of(&Known(|own, _| 2.0 * own[0] - 1.0));
        assert!(
            curve(&alone, Factor::Queue)
                .means(Decided::Early)
                .is_empty()
        );
    }

    #[test]
    fn all_steps_matter_where_the_newest_does_not() {
        #[derive(Clone)]
        struct Oldest;
        impl Controller for Oldest {
            fn act(&mut self, observation: &[f32], _: usize, action: &mut [f32]) {
                for (port, action) in action.iter_mut().enumerate() {
                    *action = 2.0 * observation[place(port, 0, 0)] - 1.0;
                }
            }
        }
        let found = found(Oldest, &observations(), 200);
        let curves = &found[0].curves;
        assert_eq!(curves[0].steps, Steps::Newest);
        assert_eq!(change(&curves[0]), 0.0);
        assert_eq!(curves[1].steps, Steps::All);
        assert_eq!(change(&curves[1]), 7.0);
    }

    #[test]
    fn busy_ports_are_averaged_apart() {
        let busy = |own: &[f32], _: f32| if own[0] > 0.0 { 1.0 } else { -1.0 };
        let found = of(&Known(busy));
        let elapsed = found.iter().find(|d| d.factor == Factor::Elapsed).unwrap();
        let of_busy = elapsed.curves.iter().find(|c| c.ports == Population::Busy);
        assert_eq!(of_busy.unwrap().mean_as_observed, 5.0);
        let all = &elapsed.curves[0];
        assert!(
            (all.mean_as_observed - (5.0 - 7.0 / 3.0)).abs() < 1e-9,
            "a third of the ports is idle: {all:?}"
        );
        assert_eq!(all.samples, 120, "everything there is, once");
        assert_eq!(of_busy.unwrap().samples, 80);
    }

    #[test]
    fn of_many_decisions_a_sample_is_drawn() {
        let busy = Known(|own, _| if own[0] > 0.0 { 1.0 } else { -1.0 });
        let found = found(busy, &observations(), 60);
        let all = curve(&found, Factor::Elapsed);
        assert_eq!(all.samples, 60);
        assert!(
            (all.mean_as_observed - (5.0 - 7.0 / 3.0)).abs() < 1.0,
            "{all:?}"
        );
    }

    #[test]
    fn a_single_port_has_no_others_and_an_idle_switch_no_busy_curve() {
        let idle = Observations {
            ports: 1,
            busy_from: 0.01,
            values: vec![0.0; HISTORY_VALUES],
        };
        let found = found(Known(|_, _| 0.0), &idle, 10);
        assert_eq!(found.len(), 4);
        assert!(found.iter().all(|d| d.curves.len() == 2));
    }
}
