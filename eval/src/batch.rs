//! Batches of simulations that other machines can run.
//!
//! An [evaluation](mod@crate::evaluate) and the figures of papers do the same: they run policies on
//! generated traces and reduce every run to a [`Quantity`]. A [`Batch`] lists the policies, the traces and
//! the name of the quantity in a form that another process reads. An [`Executor`] runs such a batch on other
//! machines. A machine that receives it, or a part of it, calls [`Batch::run`] with the [`Measurements`] that
//! it knows. Without other machines none of this is used: runs then go directly from traces in memory to the
//! quantity. Both ways end in the same function for each quantity, so they give the same bits.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use bufgym_sim::network::SimError;
use bufgym_sim::scenario::Scenario;
use bufgym_sim::traffic;
use rayon::prelude::*;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::entrant::Entrant;
use crate::forests::Forests;
use crate::metric::IsolatedPorts;
use crate::portable::{NotPortable, PortableEntrant};
use crate::traces::{EvalError, NumberedTrace, is_unfit};

/// A policy on a trace: indices into the lists of the batch, and the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Simulation {
    /// Index of the scenario.
    pub scenario: usize,
    /// Index of the policy.
    pub policy: usize,
    /// Number of the trace, for messages and results.
    pub trace: u64,
    /// Seed that generates it.
    pub seed: u64,
}

/// Simulations with everything that they need, and the quantity that each measures.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Batch {
    /// Name of the quantity.
    quantity: String,
    /// Scenarios in TOML.
    scenarios: Vec<String>,
    policies: Vec<PortableEntrant>,
    /// Forests of Credence in networks.
    forests: Option<Forests>,
    runs: Vec<Simulation>,
}

/// An error that leaves a batch without results. Its text is one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BatchError {
    /// A policy cannot be sent, or does not fit its scenario.
    #[error("{0}")]
    Unfit(String),
    /// A simulation failed as it would anywhere, or no machine is left.
    #[error("{0}")]
    Failed(String),
    /// The received data are no batch that this program understands.
    #[error("{0}")]
    Senseless(String),
}

/// Takes the result of a run: its number in the batch, and bytes as [`Batch::run`] returns them. Returning a
/// break declines further results.
pub type OnResult<'a> = &'a mut dyn FnMut(usize, &[u8]) -> ControlFlow<()>;

/// Machines that run simulations instead of this one.
pub trait Executor: Sync {
    /// Runs a batch. Passes on each result once, as it arrives, in any order.
    ///
    /// # Errors
    /// Fails if a simulation fails, or if no machine is left.
    fn run(&self, batch: &Batch, on_result: OnResult<'_>) -> Result<(), BatchError>;
}

/// A policy that is about to run on a trace.
pub struct Running<'a> {
    /// The scenario.
    pub scenario: &'a Scenario,
    /// The policy.
    pub policy: &'a Entrant,
    /// The trace.
    pub trace: &'a NumberedTrace,
    /// Isolated ports, if the quantity [needs them](Quantity::PORTS) and the scenario is no network.
    pub ports: Option<&'a IsolatedPorts>,
    /// Forests of Credence in networks.
    pub forests: Option<&'a Forests>,
}

/// The quantity that a run is reduced to.
pub trait Quantity: Serialize + DeserializeOwned + Send {
    /// Name in a batch; no other quantity of a program has it.
    const NAME: &'static str;
    /// True if the quantity is relative to the isolated ports of the trace.
    const PORTS: bool = false;

    /// Runs the policy to the end of the trace.
    ///
    /// # Errors
    /// Fails if the policy or the trace does not fit the scenario.
    fn measure(run: &Running<'_>) -> Result<Self, SimError>;
}

/// Runs the simulations of a batch and returns what [`Batch::run`] returns.
type Runner = fn(&Batch) -> Result<Vec<Vec<u8>>, BatchError>;

/// The quantities that a program can measure in a received batch, by name.
#[derive(Clone, Debug)]
pub struct Measurements(BTreeMap<&'static str, Runner>);

impl Measurements {
    /// Returns a single quantity.
    pub fn of<T: Quantity>() -> Measurements {
        Measurements(BTreeMap::new()).with::<T>()
    }

    /// Adds a quantity.
    ///
    /// # Panics
    /// Panics if there is a quantity of this name already.
    #[must_use]
    pub fn with<T: Quantity>(mut self) -> Measurements {
        let other = self.0.insert(T::NAME, Batch::each::<T>);
        assert!(other.is_none(), "two quantities have the name {}", T::NAME);
        self
    }
}

impl Batch {
    /// Builds a batch without simulations, which will measure `T`.
    pub fn new<T: Quantity>() -> Batch {
        Batch {
            quantity: T::NAME.to_owned(),
            scenarios: Vec::new(),
            policies: Vec::new(),
            forests: None,
            runs: Vec::new(),
        }
    }

    /// Builds a batch of every policy on every trace of a scenario: by trace, then by policy.
    ///
    /// # Errors
    /// Fails if a policy cannot be sent.
    pub fn crossed<T: Quantity>(
        scenario: &Scenario,
        policies: &[Entrant],
        traces: &[NumberedTrace],
    ) -> Result<Batch, BatchError> {
        let mut batch = Batch::new::<T>();
        let scenario = batch.add_scenario(scenario);
        for policy in policies {
            batch.add_policy(policy)?;
        }
        for NumberedTrace { index, seed, .. } in traces {
            for policy in 0..policies.len() {
                batch.add(Simulation {
                    scenario,
                    policy,
                    trace: *index,
                    seed: *seed,
                });
            }
        }
        Ok(batch)
    }

    /// Sets the forests for Credence in networks.
    #[must_use]
    pub fn with_forests(mut self, forests: Option<Forests>) -> Batch {
        self.forests = forests;
        self
    }

    /// Returns the index of the scenario in this batch.
    pub fn add_scenario(&mut self, scenario: &Scenario) -> usize {
        self.scenarios.push(scenario.to_toml());
        self.scenarios.len() - 1
    }

    /// Returns the index of the policy in this batch.
    ///
    /// # Errors
    /// Fails if the policy cannot be sent.
    pub fn add_policy(&mut self, policy: &Entrant) -> Result<usize, BatchError> {
        self.policies.push(policy.portable()?);
        Ok(self.policies.len() - 1)
    }

    /// Adds a simulation.
    pub fn add(&mut self, run: Simulation) {
        self.runs.push(run);
    }

    /// Returns the number of simulations.
    pub fn len(&self) -> usize {
        self.runs.len()
    }

    /// Returns true if there are no simulations.
    pub fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Returns some of the simulations, selected by their numbers, with everything that they need.
    ///
    /// # Panics
    /// Panics if a number is [`len`](Batch::len) or larger.
    #[must_use]
    pub fn part(&self, numbers: &[usize]) -> Batch {
        let mut part = Batch {
            quantity: self.quantity.clone(),
            scenarios: Vec::new(),
            policies: Vec::new(),
            forests: self.forests.clone(),
            runs: Vec::new(),
        };
        let (mut scenarios, mut policies) = (BTreeMap::new(), BTreeMap::new());
        for &number in numbers {
            let run = self.runs[number];
            let scenario = *scenarios.entry(run.scenario).or_insert_with(|| {
                part.scenarios.push(self.scenarios[run.scenario].clone());
                part.scenarios.len() - 1
            });
            let policy = *policies.entry(run.policy).or_insert_with(|| {
                part.policies.push(self.policies[run.policy].clone());
                part.policies.len() - 1
            });
            part.runs.push(Simulation {
                scenario,
                policy,
                ..run
            });
        }
        part
    }

    /// Runs the simulations, in parallel on the current pool, if the quantity is one of those given. Results are in
    /// the order of the simulations, each as bytes in the format of postcard.
    ///
    /// # Errors
    /// Fails if a simulation fails. Returns [`BatchError::Senseless`] if the batch makes no sense.
    pub fn run(&self, known: &Measurements) -> Result<Vec<Vec<u8>>, BatchError> {
        match known.0.get(self.quantity.as_str()) {
            Some(run) => run(self),
            None => Err(senseless("the request measures an unknown quantity")),
        }
    }

    fn each<T: Quantity>(&self) -> Result<Vec<Vec<u8>>, BatchError> {
        let (scenarios, policies) = self.read()?;
        let measured: Vec<Vec<(usize, Vec<u8>)>> = self
            .by_trace()
            .par_iter()
            .with_max_len(1)
            .map(|numbers| {
                let first = self.runs[numbers[0]];
                let scenario = &scenarios[first.scenario];
                let (trace, ports) = generated::<T>(scenario, first)?;
                let measure = |&number: &usize| {
                    let policy = &policies[self.runs[number].policy];
                    let run = Running {
                        scenario,
                        policy,
                        trace: &trace,
                        ports: ports.as_ref(),
                        forests: self.forests.as_ref(),
                    };
                    let measured = T::measure(&run).map_err(failure(policy.name(), &trace))?;
                    let bytes = postcard::to_stdvec(&measured).map_err(senseless)?;
                    Ok((number, bytes))
                };
                numbers.par_iter().map(measure).collect()
            })
            .collect::<Result<_, BatchError>>()?;
        let mut all: Vec<(usize, Vec<u8>)> = measured.into_iter().flatten().collect();
        all.sort_unstable_by_key(|(number, _)| *number);
        Ok(all.into_iter().map(|(_, bytes)| bytes).collect())
    }

    /// Reads scenarios and policies, ready to run.
    fn read(&self) -> Result<(Vec<Scenario>, Vec<Entrant>), BatchError> {
        let scenario = |text: &String| Scenario::from_toml_str(text, "a scenario of the head");
        let scenarios = self.scenarios.iter().map(scenario);
        let scenarios = scenarios
            .collect::<Result<Vec<_>, _>>()
            .map_err(senseless)?;
        let policies = self.policies.iter().cloned().map(Entrant::try_from);
        let policies = policies.collect::<Result<Vec<_>, _>>().map_err(senseless)?;
        let foreign =
            |run: &Simulation| run.scenario >= scenarios.len() || run.policy >= policies.len();
        match self.runs.iter().any(foreign) {
            true => Err(senseless("the request names an unknown scenario or policy")),
            false => Ok((scenarios, policies)),
        }
    }

    /// Returns the numbers of the simulations of each trace.
    fn by_trace(&self) -> Vec<Vec<usize>> {
        let mut groups: BTreeMap<(usize, u64, u64), Vec<usize>> = BTreeMap::new();
        for (number, run) in self.runs.iter().enumerate() {
            let trace = (run.scenario, run.trace, run.seed);
            groups.entry(trace).or_default().push(number);
        }
        groups.into_values().collect()
    }
}

/// Generates the trace of a simulation, with the isolated ports if the quantity is relative to them.
fn generated<T: Quantity>(
    scenario: &Scenario,
    run: Simulation,
) -> Result<(NumberedTrace, Option<IsolatedPorts>), BatchError> {
    let trace = NumberedTrace {
        index: run.trace,
        seed: run.seed,
        trace: traffic::generate(scenario, run.seed),
    };
    let has_ports = T::PORTS && !scenario.is_fabric();
    let ports = has_ports.then(|| IsolatedPorts::measure(scenario, &trace.trace));
    let ports = ports.transpose().map_err(failure("cs", &trace))?;
    Ok((trace, ports))
}

/// Runs a batch on other machines and collects its results in the order of the simulations. Calls `on_result` for
/// each as it arrives.
///
/// # Errors
/// Fails if the batch has no results, and returns the errors of `on_result`.
pub fn gather<T: Quantity, E: From<BatchError>>(
    executor: &dyn Executor,
    batch: &Batch,
    mut on_result: impl FnMut(usize, &T) -> Result<(), E>,
) -> Result<Vec<T>, E> {
    let mut found: Vec<Option<T>> = batch.runs.iter().map(|_| None).collect();
    let mut problem = None;
    executor.run(batch, &mut |number, bytes| {
        let read = postcard::from_bytes::<T>(bytes).map_err(|error| E::from(senseless(error)));
        match read.and_then(|result| on_result(number, &result).map(|()| result)) {
            Ok(result) => {
                found[number] = Some(result);
                ControlFlow::Continue(())
            }
            Err(error) => {
                problem = Some(error);
                ControlFlow::Break(())
            }
        }
    })?;
    match problem {
        Some(error) => Err(error),
        None => found
            .into_iter()
            .collect::<Option<Vec<T>>>()
            .ok_or_else(|| senseless("a simulation has no result").into()),
    }
}

fn senseless(problem: impl std::fmt::Display) -> BatchError {
    BatchError::Senseless(problem.to_string())
}

/// Turns the error of a simulation of `policy` on a trace into that of its batch.
fn failure(policy: &str, trace: &NumberedTrace) -> impl FnOnce(SimError) -> BatchError {
    let whole = EvalError::simulation(policy, trace);
    |error| {
        let unfit = is_unfit(&error);
        let problem = whole(error).to_string();
        match unfit {
            true => BatchError::Unfit(problem),
            false => BatchError::Failed(problem),
        }
    }
}

impl From<BatchError> for EvalError {
    fn from(error: BatchError) -> Self {
        match error {
            BatchError::Unfit(problem) => EvalError::Unfit(problem),
            BatchError::Failed(problem) | BatchError::Senseless(problem) => {
                EvalError::Remote(problem)
            }
        }
    }
}

impl From<NotPortable> for BatchError {
    fn from(error: NotPortable) -> Self {
        BatchError::Unfit(error.to_string())
    }
}

#[cfg(test)]
mod tests;
