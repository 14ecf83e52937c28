//! Common parts of the figures of NDT: amount of simulation, policies, intervals.

use std::ops::Deref;

use bufgym_eval::data::Role;
use bufgym_eval::entrant::Entrant;
use bufgym_eval::evaluate::{EvalError, NumberedTrace};
use bufgym_eval::figures::plot::Curve;
use bufgym_eval::figures::style::{self, Stroke};
use bufgym_eval::stats::{self, Estimate};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::PolicySpec;
use bufgym_util::convert::index;

use super::NdtConfig;
use crate::Scale;
use crate::report::{Rows, Table, addition};
use crate::runs::{PapersError, Work, best_static, legend, test_traces};

/// Loads of Fig. 9, per cent.
pub const LOADS: [u32; 9] = [10, 20, 30, 40, 50, 60, 70, 80, 90];

/// Numbers of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// Test traces of the 16-port switch.
    pub single: u64,
    /// Test traces of the 96-port switch.
    pub incast: u64,
    /// Test traces of the testbed for each load.
    pub loads: u64,
    /// Test traces of the 4-to-2 in-cast.
    pub queues: u64,
    /// Test traces of the testbed for intervals between decisions.
    pub triggers: u64,
    /// Training traces for the best static α; a quarter of them for the 96-port switch.
    pub training: u64,
    /// Largest number of test traces of a repetition with one option changed.
    pub variant: u64,
}

impl Extent {
    /// Returns the numbers of a scale. With `traces`, there are that many test traces everywhere, and at most
    /// as many training traces.
    pub fn of(scale: Scale, traces: Option<u64>) -> Extent {
        let own = match scale {
            Scale::Quick => Extent {
                single: 21,
                incast: 4,
                loads: 8,
                queues: 10,
                triggers: 5,
                training: 4,
                variant: 12,
            },
            Scale::Paper => Extent {
                single: 105,
                incast: 20,
                loads: 50,
                queues: 50,
                triggers: 20,
                training: 32,
                variant: 21,
            },
        };
        match traces {
            None => own,
            Some(traces) => Extent {
                single: traces,
                incast: traces,
                loads: traces,
                queues: traces,
                triggers: traces,
                training: own.training.min(traces),
                variant: own.variant.min(traces),
            },
        }
    }

    /// Describes the numbers in words, with the paper's larger ones.
    pub fn described(&self, config: &NdtConfig) -> String {
        let sets = match config.seeds {
            1 => "one set".to_owned(),
            seeds => format!("{seeds} sets"),
        };
        let scale = match config.traces {
            Some(_) => "numbers of traces given manually".to_owned(),
            None => format!("scale “{}”", config.scale),
        };
        format!(
            "{scale}, {sets} of test traces with {} for the 16-port switch (the paper has 105), {} for \
             the 96-port switch, {} for each load of the testbed (the paper repeats 50 times), {} for \
             the 4-to-2 in-cast and {} for the intervals between decisions (the paper does not say). \
             One set of weights.",
            self.single, self.incast, self.loads, self.queues, self.triggers,
        )
    }
}

/// The policies of a figure in the order of tables and legends: the learned one, the paper's rules, and those
/// that the paper does not have.
#[derive(Clone, Debug)]
pub struct Policies {
    all: Vec<Entrant>,
    rules: &'static [&'static str],
}

impl Deref for Policies {
    type Target = [Entrant];

    fn deref(&self) -> &[Entrant] {
        &self.all
    }
}

impl Policies {
    /// Returns these policies, the learned one first; `rules` are the paper's.
    pub fn new(all: Vec<Entrant>, rules: &'static [&'static str]) -> Policies {
        Policies { all, rules }
    }

    /// Adds a policy, unless it is there already.
    pub fn add(&mut self, policy: Entrant) {
        if self.place(policy.name()).is_none() {
            self.all.push(policy);
        }
    }

    /// Returns the name of the learned policy.
    pub fn learned(&self) -> &str {
        self[0].name()
    }

    /// Returns the index of a policy.
    pub fn place(&self, name: &str) -> Option<usize> {
        self.iter().position(|policy| policy.name() == name)
    }

    fn is_added(&self, policy: &Entrant) -> bool {
        policy.role() != Role::Learned && !self.rules.contains(&policy.name())
    }

    /// Returns the word that marks a policy that the paper does not have.
    pub fn addition(&self, policy: &Entrant) -> String {
        addition(self.is_added(policy))
    }

    /// Returns the name of a policy in legends.
    pub fn legend(&self, policy: &Entrant) -> String {
        legend(policy, self.is_added(policy))
    }

    /// Returns the learned policy and the paper's rules.
    pub fn paper(&self) -> impl Iterator<Item = &Entrant> {
        self.iter().filter(|policy| !self.is_added(policy))
    }

    /// Returns the value of the learned policy and of each of the paper's rules.
    pub fn compared(&self, value: impl Fn(&str) -> Option<f64>) -> Vec<(&str, Option<f64>)> {
        let policies = self.paper().map(|policy| policy.name());
        policies.map(|name| (name, value(name))).collect()
    }

    /// Starts a table with a row for every policy.
    pub fn table(&self, name: &str) -> Rows<&Entrant> {
        self.rows(name, self.iter(), |policy| *policy)
    }

    /// Starts a table with a row for each of these, all of which have a policy.
    pub fn rows<'a, T>(
        &self,
        name: &str,
        of: impl IntoIterator<Item = T>,
        policy: impl Fn(&T) -> &'a Entrant,
    ) -> Rows<T> {
        Table::of(name, of)
            .text("policy", |row| policy(row).name().to_owned())
            .text("addition", |row| self.addition(policy(row)))
    }

    /// Returns a curve for every policy.
    pub fn curves<P: IntoIterator<Item = (f64, f64)>>(
        &self,
        points: impl Fn(&str) -> P,
    ) -> Vec<Curve> {
        let curve = |policy: &Entrant| {
            let points = points(policy.name());
            Curve::new(&self.legend(policy), stroke(policy), points)
        };
        self.iter().map(curve).collect()
    }
}

/// The inputs that all figures share.
pub struct Context<'a> {
    /// The policy of the series NDT.
    pub learned: &'a Entrant,
    /// Numbers of traces.
    pub extent: Extent,
    /// Seed of the first set of test traces.
    pub seed: u64,
    /// Sets of test traces.
    pub seeds: u64,
    /// Bootstrap resamples.
    pub resamples: usize,
    /// Progress.
    pub work: Work<'a>,
}

impl Context<'_> {
    /// Returns `count` test traces of every set.
    ///
    /// # Errors
    /// Fails if the scenario is invalid.
    pub fn traces(&self, scenario: &Scenario, count: u64) -> Result<Vec<NumberedTrace>, EvalError> {
        test_traces(scenario, (self.seed, self.seeds), count)
    }

    /// Returns the test traces of a repetition with an option changed: those of the first set, at most
    /// `count`.
    ///
    /// # Errors
    /// Fails if the scenario is invalid.
    pub(crate) fn few_traces(
        &self,
        scenario: &Scenario,
        count: u64,
    ) -> Result<Vec<NumberedTrace>, EvalError> {
        test_traces(scenario, (self.seed, 1), count.min(self.extent.variant))
    }

    /// Returns the learned policy and these rules, in this order.
    pub fn policies(&self, rules: &'static [&'static str]) -> Policies {
        let own = std::iter::once(self.learned.clone());
        let named = |name: &&str| Entrant::rule(PolicySpec::named(name));
        Policies::new(own.chain(rules.iter().map(named)).collect(), rules)
    }

    /// Returns [`policies`](Context::policies), and the series that the paper does not have: DT with the best
    /// static α for the scenario, found on training traces, and the unlimited buffer.
    ///
    /// # Errors
    /// Fails if the scenario is invalid.
    pub(crate) fn with_additions(
        &self,
        rules: &'static [&'static str],
        scenario: &Scenario,
        training: u64,
    ) -> Result<Policies, PapersError> {
        let mut policies = self.policies(rules);
        policies.add(best_static(&self.work, scenario, self.seed, training)?);
        policies.add(Entrant::unlimited());
        Ok(policies)
    }

    /// Returns the mean of the values over traces.
    pub fn mean(&self, values: &[f64]) -> Option<Estimate> {
        stats::bootstrap_mean(values, self.resamples, self.seed)
    }

    /// Returns the ratio of the means over traces.
    pub fn ratio(&self, values: &[f64], of: &[f64]) -> Option<Estimate> {
        stats::bootstrap_ratio_of_means(values, of, self.resamples, self.seed)
    }

    /// Returns the reduction of the mean of the values relative to that of `of`, in per cent.
    pub fn reduction(&self, values: &[f64], of: &[f64]) -> Option<Estimate> {
        self.ratio(values, of).map(reduction)
    }
}

/// Converts a ratio to a reduction in per cent.
pub fn reduction(ratio: Estimate) -> Estimate {
    let lower = |ratio: f64| 100.0 * (1.0 - ratio);
    Estimate {
        centre: lower(ratio.centre),
        low: lower(ratio.high),
        high: lower(ratio.low),
    }
}

/// Converts a share to a percentage.
pub fn percent(share: Estimate) -> Estimate {
    Estimate {
        centre: 100.0 * share.centre,
        low: 100.0 * share.low,
        high: 100.0 * share.high,
    }
}

/// Returns the stroke of a policy in every figure.
pub(crate) fn stroke(entrant: &Entrant) -> Stroke {
    style::stroke(entrant.name(), entrant.role(), 0)
}

/// Returns true if `name` has the strictly lowest of the values; `None` if a value is missing.
pub(crate) fn is_lowest(name: &str, values: &[(&str, Option<f64>)]) -> Option<bool> {
    let own = values.iter().find(|(other, _)| *other == name)?.1?;
    let others = values.iter().filter(|(other, _)| *other != name);
    let others: Option<Vec<f64>> = others.map(|(_, value)| *value).collect();
    Some(others?.iter().all(|other| own < *other))
}

/// Lists values of several series in words, in ascending order.
pub fn listed(values: &[(&str, Option<f64>)]) -> String {
    let mut known: Vec<(&str, f64)> = values
        .iter()
        .filter_map(|(name, value)| Some((*name, (*value)?)))
        .collect();
    known.sort_by(|a, b| a.1.total_cmp(&b.1));
    let words: Vec<String> = known
        .iter()
        .map(|(name, value)| format!("{name} {}", bufgym_eval::format::significant(*value)))
        .collect();
    words.join(" < ")
}

/// Returns the number of simulations of `policies` policies on `count` traces of each set, with the search of
/// a static α.
pub fn simulations(policies: usize, count: u64, seeds: usize, training: u64) -> usize {
    policies * index(count) * seeds + crate::runs::best_static_runs(training)
}

#[cfg(test)]
pub(super) mod tests {
    use bufgym_models::{ActorWeights, FastActor};
    use bufgym_util::rng;

    use super::*;

    /// Returns a network with random weights under the name of the shipped one.
    pub fn untrained() -> Entrant {
        let weights = ActorWeights::random(&mut rng::stream(1, "test actor", 0));
        Entrant::learned("ndt", FastActor::new(&weights), "random weights")
    }

    /// Calls `with` with a context of few traces and few resamples.
    pub fn context<T>(with: impl FnOnce(&Context) -> T) -> T {
        let learned = untrained();
        with(&Context {
            learned: &learned,
            extent: Extent::of(Scale::Quick, Some(1)),
            seed: 1,
            seeds: 1,
            resamples: 100,
            work: Work::new(&|_| {}),
        })
    }

    #[test]
    fn traces_given_by_hand_replace_those_of_the_scale() {
        let extent = Extent::of(Scale::Paper, Some(3));
        assert_eq!((extent.single, extent.loads), (3, 3));
        assert_eq!((extent.training, extent.variant), (3, 3));
        assert_eq!(Extent::of(Scale::Paper, None).single, 105);
        assert_eq!(Extent::of(Scale::Quick, Some(500)).training, 4);
    }

    #[test]
    fn a_ratio_and_its_interval_as_a_reduction() {
        let ratio = Estimate {
            centre: 0.75,
            low: 0.5,
            high: 1.25,
        };
        let expected = Estimate {
            centre: 25.0,
            low: -25.0,
            high: 50.0,
        };
        assert_eq!(reduction(ratio), expected);
    }

    #[test]
    fn the_lowest_is_below_all_others() {
        let values = [("a", Some(1.0)), ("b", Some(2.0)), ("c", Some(1.5))];
        assert_eq!(is_lowest("a", &values), Some(true));
        assert_eq!(is_lowest("c", &values), Some(false));
        assert_eq!(is_lowest("d", &values), None);
        assert_eq!(
            is_lowest("a", &[("a", Some(1.0)), ("b", Some(1.0))]),
            Some(false)
        );
        assert_eq!(is_lowest("a", &[("a", Some(1.0)), ("b", None)]), None);
        assert_eq!(listed(&values), "a 1.00 < c 1.50 < b 2.00");
    }
}
