//! What the figures of NDT share: runs of all policies, and the repetition of claims that differ.

use bufgym_eval::batch::Quantity;
use bufgym_eval::evaluate::{EvalError, NumberedTrace};
use bufgym_sim::scenario::Scenario;

use super::setting::{Context, Policies, simulations};
use super::variants::{self, Variant};
use crate::claim::Claim;
use crate::runs::{PapersError, run_all};

/// The runs of all policies in one scenario.
pub struct Runs<T> {
    /// The policies.
    pub policies: Policies,
    /// Runs by policy, then by trace.
    pub runs: Vec<Vec<T>>,
}

impl<T> Runs<T> {
    /// Returns the runs of a policy by trace.
    pub fn of(&self, policy: &str) -> &[T] {
        let own = self.policies.place(policy);
        own.map_or(&[], |own| &self.runs[own])
    }

    /// Returns a value of every run of a policy.
    pub fn values(&self, policy: &str, value: impl Fn(&T) -> f64) -> Vec<f64> {
        self.of(policy).iter().map(value).collect()
    }

    /// Returns the number of traces.
    pub fn traces(&self) -> usize {
        self.runs.first().map_or(0, Vec::len)
    }
}

impl<T: Quantity> Runs<T> {
    /// Runs all policies on all traces.
    ///
    /// # Errors
    /// Fails if a run fails.
    pub fn measure(
        context: &Context,
        scenario: &Scenario,
        policies: Policies,
        traces: &[NumberedTrace],
    ) -> Result<Runs<T>, EvalError> {
        let runs = run_all(&context.work, scenario, &policies, traces)?;
        Ok(Runs { policies, runs })
    }
}

/// The extent of an experiment.
pub struct Experiment {
    /// The paper's rules.
    pub rules: &'static [&'static str],
    /// Test traces of every set.
    pub traces: u64,
    /// Largest number of test traces of a repetition with one option changed.
    pub few: u64,
    /// Training traces for the best static α.
    pub training: u64,
    /// Options with which claims that differ are measured again.
    pub variants: &'static [Variant],
}

impl Experiment {
    /// Returns the number of simulations known in advance: those of the learned policy, of the rules, of two
    /// additions, and of the search of a static α.
    pub fn planned(&self, seeds: usize) -> usize {
        simulations(self.rules.len() + 3, self.traces, seeds, self.training)
    }

    /// Measures all policies, derives the claims, and searches for the reason of those that differ.
    ///
    /// # Errors
    /// Fails if a run fails.
    pub fn run<R>(
        &self,
        context: &Context,
        scenario: &Scenario,
        measure: impl Fn(&Context, &Scenario, Policies, &[NumberedTrace]) -> Result<R, PapersError>,
        claims: impl Fn(&R, &Context) -> Vec<Claim>,
    ) -> Result<(R, Vec<Claim>), PapersError> {
        let policies = context.with_additions(self.rules, scenario, self.training)?;
        let traces = context.traces(scenario, self.traces)?;
        let results = measure(context, scenario, policies, &traces)?;
        let mut found = claims(&results, context);
        variants::explain(&mut found, self.variants, |variant| {
            let scenario = variant.of(scenario)?;
            let traces = context.few_traces(&scenario, self.few)?;
            let policies = context.policies(self.rules);
            context.work.plan(policies.len() * traces.len());
            let results = measure(context, &scenario, policies, &traces)?;
            Ok(claims(&results, context))
        })?;
        Ok((results, found))
    }
}
