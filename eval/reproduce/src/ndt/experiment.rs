//! What the figures of NDT share: policies with those that the paper does not have, runs of all policies, and
//! the repetition of claims that differ.

use std::ops::Deref;

use bufgym_eval::batch::Quantity;
use bufgym_eval::data::Role;
use bufgym_eval::entrant::Entrant;
use bufgym_eval::evaluate::{EvalError, NumberedTrace};
use bufgym_eval::figures::plot::Curve;
use bufgym_sim::scenario::Scenario;

use super::setting::{Context, simulations, stroke};
use super::variants::{self, Variant};
use crate::claim::Claim;
use crate::report::{Rows, Table, addition};
use crate::runs::{PapersError, legend, run_all};

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
