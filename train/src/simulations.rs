//! Simulations of whole traces under one decider. They are independent, so neither the place nor the order of the runs
//! changes their results.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bufgym_agents::Examples;
use bufgym_env::control::{
    ControlOptions, Controller, LowLevelPolicy, RunOptions, UnknownBasePolicy, run_controlled,
};
use bufgym_eval::Entrant;
use bufgym_eval::metric::{IsolatedPorts, Metric, Sample};
use bufgym_eval::portable::{Decides, Portable};
use bufgym_models::{ActorWeights, FastActor, LinearRule};
use bufgym_sim::network::SimError;
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::PolicySpec;
use bufgym_sim::traffic::{Trace, generate};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// The common settings of all simulations of a comparison.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "SettingText", into = "SettingText")]
pub(crate) struct Setting {
    /// The scenarios of the traces, at least one.
    pub(crate) scenarios: Vec<Scenario>,
    /// Metric of a simulation.
    pub(crate) metric: Metric,
    /// Heuristic whose α is set by deciders other than rules.
    pub(crate) low_level: LowLevelPolicy,
}

/// A generated trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct TraceRef {
    /// Index of its scenario.
    pub(crate) scenario: usize,
    pub(crate) seed: u64,
}

/// A trace with the data that its samples need.
pub(crate) struct PreparedTrace {
    pub(crate) at: TraceRef,
    pub(crate) trace: Trace,
    /// Isolated ports, only if the metric is about ports.
    ports: Option<IsolatedPorts>,
}

/// Traces of a setting for simulations.
pub(crate) struct TraceSet {
    pub(crate) setting: Setting,
    pub(crate) traces: Vec<TraceRef>,
    /// The traces themselves; empty where hosts generate them.
    pub(crate) prepared: Vec<PreparedTrace>,
}

/// The policy that decides in a simulation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Portable", into = "Portable")]
pub(crate) enum Decider {
    Rule(PolicySpec),
    Linear(Box<LinearRule>),
    /// A network, which acts on its mean.
    Network(Arc<ActorWeights>),
}

/// A decider that is ready to run.
pub(crate) enum RunnablePolicy {
    Rule(Entrant),
    Linear(LinearRule),
    Network(Box<FastActor>),
}

/// The sample of a simulation, and its duration on its thread.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) sample: Sample,
    pub(crate) busy: Duration,
}

impl Setting {
    /// Generates a trace, and runs the reference of its samples.
    ///
    /// # Errors
    /// When the scenario is not valid.
    pub(crate) fn know(&self, at: TraceRef) -> Result<PreparedTrace, SimError> {
        let scenario = &self.scenarios[at.scenario];
        let trace = generate(scenario, at.seed);
        let ports = self.metric.isolated_ports(scenario, &trace)?;
        Ok(PreparedTrace { at, trace, ports })
    }

    /// Runs a decider on a trace.
    ///
    /// # Errors
    /// When the decider does not fit the scenario.
    pub(crate) fn measure(
        &self,
        decider: &RunnablePolicy,
        known: &PreparedTrace,
    ) -> Result<Measured, SimError> {
        let start = Instant::now();
        let (scenario, trace) = (&self.scenarios[known.at.scenario], &known.trace);
        let outcome = match decider {
            RunnablePolicy::Rule(entrant) => entrant.run(scenario, trace, None)?,
            RunnablePolicy::Linear(_) | RunnablePolicy::Network(_) => {
                let mut controller = decider.controller();
                run_controlled(scenario, trace, controller.as_mut(), &self.options())?
            }
        };
        Ok(Measured {
            sample: Sample::of(self.metric, &outcome, known.ports.as_ref()),
            busy: start.elapsed(),
        })
    }

    /// Plays every trace with the student, and returns the teacher's actions in the states that it meets, by trace, then
    /// by number of ports. Runs in parallel on the current pool.
    ///
    /// # Errors
    /// When the student does not fit a scenario.
    ///
    /// # Panics
    /// When the student is a rule.
    pub(crate) fn teach(
        &self,
        traces: &[TraceRef],
        student: &Decider,
        teacher: &LinearRule,
    ) -> Result<Vec<Vec<Examples>>, SimError> {
        let student = student.ready();
        let play = |at: &TraceRef| -> Result<Vec<Examples>, SimError> {
            let scenario = &self.scenarios[at.scenario];
            let trace = generate(scenario, at.seed);
            let mut student = Student {
                examples: Vec::new(),
                controller: student.controller(),
                teacher: teacher.clone(),
                taught: Vec::new(),
            };
            run_controlled(scenario, &trace, &mut student, &self.options())?;
            Ok(student.examples)
        };
        traces.par_iter().map(play).collect()
    }

    fn options(&self) -> RunOptions {
        let control = ControlOptions {
            low_level: self.low_level.clone(),
            ..ControlOptions::default()
        };
        RunOptions {
            control,
            ..RunOptions::default()
        }
    }
}

impl TraceSet {
    /// Runs every decider on every prepared trace, in parallel on the current pool. Measurements are by decider, then
    /// by trace.
    ///
    /// # Errors
    /// When a decider does not fit its scenario.
    pub(crate) fn measure(&self, deciders: &[Decider]) -> Result<Vec<Measured>, SimError> {
        let ready: Vec<RunnablePolicy> = deciders.iter().map(Decider::ready).collect();
        let count = self.prepared.len();
        (0..ready.len() * count)
            .into_par_iter()
            .map(|number| {
                let (decider, trace) = (number / count, number % count);
                self.setting.measure(&ready[decider], &self.prepared[trace])
            })
            .collect()
    }
}

impl Decider {
    pub(crate) fn linear(rule: LinearRule) -> Self {
        Self::Linear(Box::new(rule))
    }

    pub(crate) fn network(weights: ActorWeights) -> Self {
        Self::Network(Arc::new(weights))
    }

    pub(crate) fn ready(&self) -> RunnablePolicy {
        match self {
            Self::Rule(spec) => RunnablePolicy::Rule(Entrant::rule(spec.clone())),
            Self::Linear(rule) => RunnablePolicy::Linear(rule.as_ref().clone()),
            Self::Network(weights) => RunnablePolicy::Network(Box::new(FastActor::new(weights))),
        }
    }
}

impl RunnablePolicy {
    /// Returns a fresh copy for one run.
    ///
    /// # Panics
    /// When it is a rule, which has no controller.
    pub(crate) fn controller(&self) -> Box<dyn Controller> {
        match self {
            Self::Rule(_) => unreachable!("rules decide at every packet"),
            Self::Linear(rule) => Box::new(rule.clone()),
            Self::Network(actor) => actor.clone(),
        }
    }
}

/// A student controller with a teacher, whose action is recorded at every decision.
struct Student {
    controller: Box<dyn Controller>,
    teacher: LinearRule,
    taught: Vec<f32>,
    /// Examples for every number of ports of a switch, in the order in which they are met.
    examples: Vec<Examples>,
}

impl Controller for Student {
    fn outputs(&self) -> usize {
        self.controller.outputs()
    }

    fn act(&mut self, observation: &[f32], ports: usize, action: &mut [f32]) {
        self.taught.resize(action.len(), 0.0);
        self.teacher.act(observation, ports, &mut self.taught);
        let outputs = action.len() / ports;
        of_ports(&mut self.examples, ports, outputs).push(observation, &self.taught);
        self.controller.act(observation, ports, action);
    }
}

/// Returns the examples of switches with so many ports, and adds them if there are none.
pub(crate) fn of_ports(all: &mut Vec<Examples>, ports: usize, outputs: usize) -> &mut Examples {
    let found = all.iter().position(|examples| examples.ports() == ports);
    let place = found.unwrap_or_else(|| {
        all.push(Examples::new(ports, outputs));
        all.len() - 1
    });
    &mut all[place]
}

/// [`Setting`] in a message.
#[derive(Serialize, Deserialize)]
struct SettingText {
    scenarios: Vec<String>,
    metric: String,
    low_level: String,
}

impl From<Setting> for SettingText {
    fn from(setting: Setting) -> Self {
        Self {
            scenarios: setting.scenarios.iter().map(Scenario::to_toml).collect(),
            metric: setting.metric.objective().to_owned(),
            low_level: setting.low_level.to_string(),
        }
    }
}

impl TryFrom<SettingText> for Setting {
    type Error = String;

    fn try_from(text: SettingText) -> Result<Self, String> {
        let read = |text: &String| Scenario::from_toml_str(text, "scenario");
        let scenarios = text
            .scenarios
            .iter()
            .map(read)
            .collect::<Result<Vec<_>, _>>();
        let named = |metric: &Metric| metric.objective() == text.metric;
        let metric = Metric::ALL.into_iter().find(named);
        Ok(Self {
            scenarios: scenarios.map_err(|error| error.to_string())?,
            metric: metric.ok_or_else(|| format!("metric '{}' is not known", text.metric))?,
            low_level: text
                .low_level
                .parse()
                .map_err(|error: UnknownBasePolicy| error.to_string())?,
        })
    }
}

impl From<Decider> for Portable {
    fn from(decider: Decider) -> Self {
        match decider {
            Decider::Rule(spec) => Self::from(&spec),
            Decider::Linear(rule) => Self::from(rule.as_ref()),
            Decider::Network(weights) => Self::from(weights.as_ref()),
        }
    }
}

impl TryFrom<Portable> for Decider {
    type Error = String;

    fn try_from(portable: Portable) -> Result<Self, String> {
        match Decides::try_from(portable).map_err(|error| error.to_string())? {
            Decides::Rule(spec) => Ok(Self::Rule(spec)),
            Decides::Linear(rule) => Ok(Self::Linear(rule)),
            Decides::Network(weights) => Ok(Self::network(*weights)),
            Decides::Integer(_) => Err("no training has integers that decide".to_owned()),
        }
    }
}
