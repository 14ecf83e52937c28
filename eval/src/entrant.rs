//! The policies that take part in a comparison.

mod error;
mod external;
pub mod observations;
mod own;
mod portable;

use std::fmt;
use std::io;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use bufgym_env::control::{
    ControlOptions, Controller, LowLevelPolicy, RunOptions, TriggerMode, run_controlled,
    run_observed, run_recorded,
};
use bufgym_export::int8::{self, IntegerFile};
use bufgym_export::{IntegerActor, Source};
use bufgym_models::checkpoint::{self, Manifest, SeedResult, Validation};
use bufgym_models::{ActorWeights, FastActor, LinearFile, LinearRule};
use bufgym_sim::network::{
    IngressSampling, Observer, OneSwitch, Outcome, Recorders, Records, SimError, SwitchId,
};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::{Policy as _, PolicyParseError, PolicySpec};
use bufgym_sim::traffic::Trace;
use bufgym_sim::units::Duration;

pub use error::{ControlRecordError, EntrantError};
pub use external::ExternalNetwork;

use crate::data::{BASELINE, Entry, Role, Training, UNLIMITED};
use crate::format;

/// Name of a network in policy strings.
const LEARNED: &str = "ndt";

/// Name of an integer network in policy strings.
pub const INTEGER: &str = "ndt-int8";

/// Name of a linear rule in policy strings.
pub const LINEAR: &str = "linear";

/// Name of a network from an ONNX file in policy strings. The crate `bufgym` reads them, with its feature `onnx`.
pub const ONNX: &str = "onnx";

/// Settings for the recording of a run, and for the decisions of a learned policy in it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Recording {
    /// Interval of the timeline, if one is recorded.
    pub timeline: Option<Duration>,
    /// If true, every lost packet is recorded.
    pub drops: bool,
    /// Sampling times of lossless ingress queues, if they are sampled.
    pub ingress: Option<IngressSampling>,
    /// Trigger mode of decisions; rules decide at every packet.
    pub trigger: TriggerMode,
}

/// A named policy, ready to run any trace.
#[derive(Clone, Debug)]
pub struct Entrant {
    name: String,
    label: String,
    kind: Kind,
}

#[derive(Clone, Debug)]
enum Kind {
    Rule(PolicySpec),
    Tuned(PolicySpec),
    Learned {
        decider: Decider,
        low_level: LowLevelPolicy,
        origin: String,
        training: Option<Training>,
    },
}

/// The controller of a learned policy.
#[derive(Clone, Debug)]
enum Decider {
    Network(Box<FastActor>),
    Integer(Box<IntegerActor>),
    Linear(Box<LinearRule>),
    External(external::Shared),
    Own(own::CustomController),
}

impl Decider {
    /// Returns a fresh copy for one run.
    fn controller(&self) -> Box<dyn Controller> {
        match self {
            Decider::Network(actor) => actor.clone(),
            Decider::Integer(actor) => actor.clone(),
            Decider::Linear(rule) => rule.clone(),
            Decider::External(network) => network.controller(),
            Decider::Own(own) => own.controller(),
        }
    }
}

impl Entrant {
    fn new(name: &str, kind: Kind) -> Entrant {
        Entrant {
            name: name.to_string(),
            label: String::new(),
            kind,
        }
    }

    /// Sets the label in tables and figures.
    #[must_use]
    pub fn labelled(mut self, label: &str) -> Entrant {
        label.clone_into(&mut self.label);
        self
    }

    /// Builds a fixed rule.
    pub fn rule(spec: PolicySpec) -> Entrant {
        Entrant::new(&spec.to_string(), Kind::Rule(spec))
    }

    /// Builds a rule with parameters that were tuned on training traces.
    pub fn tuned(spec: PolicySpec) -> Entrant {
        Entrant::new(&spec.to_string(), Kind::Tuned(spec))
    }

    /// Builds a network that acts on its mean, on top of Dynamic Threshold. `name` is the policy string,
    /// `origin` describes the training in a few words.
    pub fn learned(name: &str, actor: FastActor, origin: &str) -> Entrant {
        let kind = Kind::Learned {
            decider: Decider::Network(Box::new(actor)),
            low_level: LowLevelPolicy::default(),
            origin: origin.to_string(),
            training: None,
        };
        Entrant::new(name, kind)
    }

    /// Builds a linear rule on top of the heuristic that it was tuned with, under the given policy string.
    pub fn linear(name: &str, file: &LinearFile) -> Entrant {
        let kind = Kind::Learned {
            decider: Decider::Linear(Box::new(file.rule.clone())),
            low_level: file.low_level.clone(),
            origin: linear_origin(file),
            training: Some(Training::new(
                format!(
                    "linear, tuned on {} for {}{}",
                    file.scenario,
                    file.objective,
                    over(&file.low_level)
                ),
                file.seed,
                &file.objective,
            )),
        };
        Entrant::new(name, kind)
    }

    /// Builds an integer network on top of the heuristic that its weights were trained with, under the given
    /// policy string.
    pub fn integer(name: &str, file: &IntegerFile) -> Entrant {
        let kind = Kind::Learned {
            decider: Decider::Integer(Box::new(IntegerActor::new(file.network.clone()))),
            low_level: file.low_level.clone(),
            origin: integer_origin(file),
            training: None,
        };
        Entrant::new(name, kind)
    }

    /// Builds a network of another crate's runtime on top of its own heuristic, under the given policy string.
    pub fn external(name: &str, network: impl ExternalNetwork + 'static) -> Entrant {
        let kind = Kind::Learned {
            low_level: network.low_level().clone(),
            origin: network.origin(),
            training: network.training(),
            decider: Decider::External(Arc::new(network)),
        };
        Entrant::new(name, kind)
    }

    /// Rounds a checkpoint to integers exactly like `bufgym export`, under the given policy string.
    ///
    /// # Errors
    /// Fails if the scenario of the checkpoint cannot be run or the network cannot be rounded.
    pub fn rounded(
        name: &str,
        weights: ActorWeights,
        manifest: Manifest,
    ) -> Result<Entrant, EntrantError> {
        let calibration = |reason: String| EntrantError::Calibration {
            policy: name.to_string(),
            reason,
        };
        let scenario = Scenario::from_toml_str(&manifest.scenario_toml, "scenario_toml")
            .map_err(|error| calibration(error.to_string()))?;
        let float = Entrant::from_checkpoint(name, &weights, &manifest);
        let recording = observations::for_export(&scenario, &float)
            .map_err(|error| calibration(error.to_string()))?;
        let source =
            Source::new(weights, manifest, recording).map_err(|source| EntrantError::Export {
                policy: name.to_string(),
                source,
            })?;
        Ok(Entrant::integer(name, &source.integer))
    }

    /// Builds a policy from the caller's controller, on top of Dynamic Threshold. `make` is called for every
    /// run. A decision may depend on the observations only, so that runs do not depend on each other.
    /// `origin` describes the source in a few words.
    pub fn own(
        name: &str,
        origin: &str,
        make: impl Fn() -> Box<dyn Controller> + Send + Sync + 'static,
    ) -> Entrant {
        let kind = Kind::Learned {
            decider: Decider::Own(own::CustomController::new(make)),
            low_level: LowLevelPolicy::default(),
            origin: origin.to_string(),
            training: None,
        };
        Entrant::new(name, kind)
    }

    /// Puts the same learned policy on top of another heuristic; rules stay unchanged.
    #[must_use]
    pub fn over(mut self, heuristic: LowLevelPolicy) -> Entrant {
        if let Kind::Learned { low_level, .. } = &mut self.kind {
            *low_level = heuristic;
        }
        self
    }

    /// Returns DT with α = 1, which every ratio is relative to.
    pub fn baseline() -> Entrant {
        Entrant::rule(PolicySpec::baseline())
    }

    /// Returns the reference: complete sharing with a buffer that never fills.
    pub fn unlimited() -> Entrant {
        Entrant::rule(PolicySpec::unlimited())
    }

    /// Builds the policy of a loaded checkpoint, under the given policy string, on top of the heuristic that
    /// it was trained with.
    pub fn from_checkpoint(name: &str, weights: &ActorWeights, manifest: &Manifest) -> Entrant {
        let actor = FastActor::new(weights);
        let entrant = Entrant::learned(name, actor, &origin(manifest));
        entrant
            .over(manifest.low_level.clone())
            .trained(training(manifest))
    }

    fn trained(mut self, of: Training) -> Entrant {
        if let Kind::Learned { training, .. } = &mut self.kind {
            *training = Some(of);
        }
        self
    }

    /// Loads the checkpoint of a policy string `ndt:DIR`.
    fn load(policy: &str, folder: &str) -> Result<Entrant, EntrantError> {
        let (weights, manifest) = load_checkpoint(policy, folder)?;
        let name = format!("{LEARNED}:{}", folder.trim_end_matches('/'));
        Ok(Entrant::from_checkpoint(&name, &weights, &manifest))
    }

    /// Loads the folder of a policy string `ndt-int8:DIR`: an export, or a checkpoint to round.
    fn load_integer(policy: &str, folder: &str) -> Result<Entrant, EntrantError> {
        let name = format!("{INTEGER}:{}", folder.trim_end_matches('/'));
        let exported = Path::new(folder).join(int8::FILE);
        if exported.exists() {
            let file = IntegerFile::load(&exported).map_err(|source| EntrantError::Integer {
                policy: policy.to_string(),
                source,
            })?;
            return Ok(Entrant::integer(&name, &file));
        }
        let (weights, manifest) = load_checkpoint(policy, folder)?;
        Entrant::rounded(&name, weights, manifest)
    }

    /// Loads the file of a policy string `linear:FILE`.
    fn load_linear(policy: &str, file: &str) -> Result<Entrant, EntrantError> {
        let loaded = LinearFile::load(Path::new(file)).map_err(|source| EntrantError::Linear {
            policy: policy.to_string(),
            source,
        })?;
        Ok(Entrant::linear(policy, &loaded))
    }

    /// Checks, before a run, whether a network of another crate's runtime can decide for the numbers of ports that
    /// the switches of the scenario have.
    ///
    /// # Errors
    /// Fails if the network cannot decide for one of these numbers.
    pub fn check(&self, scenario: &Scenario) -> Result<(), EntrantError> {
        match &self.kind {
            Kind::Learned {
                decider: Decider::External(network),
                ..
            } => external::check(&self.name, network.as_ref(), scenario),
            _ => Ok(()),
        }
    }

    /// Returns the policy string in its canonical form.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the label; empty if none was given.
    pub fn label(&self) -> &str {
        &self.label
    }

    /// Returns the policy's role in a comparison.
    pub fn role(&self) -> Role {
        match &self.kind {
            Kind::Learned { .. } => Role::Learned,
            _ if self.name == BASELINE => Role::Baseline,
            _ if self.name == UNLIMITED => Role::Reference,
            Kind::Rule(_) | Kind::Tuned(_) => Role::Heuristic,
        }
    }

    /// Returns the rule, if the policy is one.
    pub fn spec(&self) -> Option<&PolicySpec> {
        match &self.kind {
            Kind::Rule(spec) | Kind::Tuned(spec) => Some(spec),
            Kind::Learned { .. } => None,
        }
    }

    /// Returns the network of a learned policy that has one, and the heuristic whose α it sets.
    pub fn network(&self) -> Option<(&FastActor, LowLevelPolicy)> {
        match &self.kind {
            Kind::Learned {
                decider: Decider::Network(actor),
                low_level,
                ..
            } => Some((actor, low_level.clone())),
            _ => None,
        }
    }

    /// Returns a function that makes controllers of a network, bufgym's own or another runtime's, and the
    /// heuristic whose α it sets.
    pub fn networks(&self) -> Option<(impl Fn() -> Box<dyn Controller> + Sync, LowLevelPolicy)> {
        match &self.kind {
            Kind::Learned {
                decider: decider @ (Decider::Network(_) | Decider::External(_)),
                low_level,
                ..
            } => Some((|| decider.controller(), low_level.clone())),
            _ => None,
        }
    }

    /// Returns the controller of a learned policy, as a fresh copy for one run, and the heuristic whose α it
    /// sets.
    pub fn controller(&self) -> Option<(Box<dyn Controller>, LowLevelPolicy)> {
        match &self.kind {
            Kind::Learned {
                decider, low_level, ..
            } => Some((decider.controller(), low_level.clone())),
            _ => None,
        }
    }

    /// Returns true if the policy removes packets that it has admitted. Today's switches cannot do that.
    pub fn pushes_out(&self, scenario: &Scenario) -> bool {
        match &self.kind {
            Kind::Rule(spec) | Kind::Tuned(spec) => {
                spec.build(scenario).is_ok_and(|policy| policy.pushes_out())
            }
            Kind::Learned { .. } => false,
        }
    }

    /// Returns the entry for tables. It has a label if one was given.
    pub fn entry(&self) -> Entry {
        let origin = match &self.kind {
            Kind::Learned { origin, .. } => origin.clone(),
            Kind::Tuned(_) => "tuned on training traces".to_owned(),
            Kind::Rule(_) => String::new(),
        };
        let training = match &self.kind {
            Kind::Learned { training, .. } => training.clone(),
            Kind::Rule(_) | Kind::Tuned(_) => None,
        };
        Entry {
            policy: self.name.clone(),
            label: self.label.clone(),
            role: self.role(),
            origin,
            training,
        }
    }

    /// Runs a trace to its end. With `timeline`, the outcome has a timeline at that interval.
    ///
    /// # Errors
    /// Fails if the scenario is inconsistent or the trace does not fit it.
    pub fn run(
        &self,
        scenario: &Scenario,
        trace: &Trace,
        timeline: Option<Duration>,
    ) -> Result<Outcome, SimError> {
        let recording = Recording {
            timeline,
            ..Recording::default()
        };
        self.watched(scenario, trace, recording)
    }

    /// Runs a trace to its end like [`run`](Entrant::run), and records what `recording` selects.
    ///
    /// # Errors
    /// Fails if the scenario is inconsistent or the trace does not fit it.
    pub fn watched(
        &self,
        scenario: &Scenario,
        trace: &Trace,
        recording: Recording,
    ) -> Result<Outcome, SimError> {
        match &self.kind {
            Kind::Rule(spec) | Kind::Tuned(spec) => {
                let records = Records {
                    waits: true,
                    timeline: recording.timeline,
                    drops: recording.drops,
                    ingress: recording.ingress,
                };
                spec.run_recording(scenario, trace, &records)
            }
            Kind::Learned {
                decider, low_level, ..
            } => {
                let mut options = run_options(low_level.clone(), recording.timeline);
                options.drops = recording.drops;
                options.ingress = recording.ingress;
                options.control.trigger = recording.trigger;
                run_controlled(scenario, trace, decider.controller().as_mut(), &options)
            }
        }
    }

    /// Runs a trace to its end on one switch like [`run`](Entrant::run), while `observer` watches. Also
    /// returns the observer.
    ///
    /// # Errors
    /// Fails if the scenario is inconsistent or has several switches, or if the trace does not fit it.
    pub fn run_observed<O: Observer>(
        &self,
        scenario: &Scenario,
        trace: &Trace,
        timeline: Option<Duration>,
        observer: O,
    ) -> Result<(Outcome, O), SimError> {
        match &self.kind {
            Kind::Rule(spec) | Kind::Tuned(spec) => {
                let simulator = spec.simulator::<OneSwitch>(scenario, trace)?;
                let start = simulator.switch_now(SwitchId(0));
                let mut recorders = Recorders::default();
                recorders.measure_waits();
                if let Some(interval) = timeline {
                    recorders.record_timeline(interval, start);
                }
                let mut simulator = simulator.observed((recorders, observer));
                let outcome = simulator.run();
                Ok((outcome, simulator.into_observer().1))
            }
            Kind::Learned {
                decider, low_level, ..
            } => {
                let options = run_options(low_level.clone(), timeline);
                let mut controller = decider.controller();
                run_observed(scenario, trace, controller.as_mut(), &options, observer)
            }
        }
    }

    /// Runs a trace to its end like [`run`](Entrant::run), and writes every packet event and every decision
    /// to `out`; see [`run_recorded`].
    ///
    /// # Errors
    /// Fails if the policy has no control loop, if the scenario is inconsistent, or if the trace does not fit
    /// it. Returns the errors of `out`.
    pub fn run_recorded(
        &self,
        scenario: &Scenario,
        trace: &Trace,
        timeline: Option<Duration>,
        out: &mut dyn io::Write,
    ) -> Result<Outcome, ControlRecordError> {
        let Kind::Learned {
            decider, low_level, ..
        } = &self.kind
        else {
            return Err(ControlRecordError::NoControl(self.name.clone()));
        };
        let options = run_options(low_level.clone(), timeline);
        let mut controller = decider.controller();
        let controller = controller.as_mut();
        Ok(run_recorded(
            scenario, trace, controller, &options, &self.name, out,
        )?)
    }
}

/// Returns the options of a run on top of the heuristic `low_level`, with a timeline at the given interval if
/// there is one.
pub(crate) fn run_options(low_level: LowLevelPolicy, timeline: Option<Duration>) -> RunOptions {
    RunOptions {
        timeline,
        control: ControlOptions {
            low_level,
            ..ControlOptions::default()
        },
        ..RunOptions::default()
    }
}

fn load_checkpoint(policy: &str, folder: &str) -> Result<(ActorWeights, Manifest), EntrantError> {
    checkpoint::load_actor(Path::new(folder)).map_err(|source| EntrantError::Checkpoint {
        policy: policy.to_string(),
        source,
    })
}

/// Describes the training of a checkpoint in one line.
fn origin(manifest: &Manifest) -> String {
    format!(
        "trained on {} for {}{}, seed {}{}, {} decisions, {} updates{}",
        manifest.scenario,
        manifest.objective,
        over(&manifest.low_level),
        manifest.seed,
        chosen(&manifest.seeds),
        format::count(manifest.decisions),
        format::count(manifest.updates),
        measured(manifest.validation.as_ref(), "validation"),
    )
}

/// Describes the number of seeds that the weights are the best of, and their results.
fn chosen(seeds: &[SeedResult]) -> String {
    let values = seeds.iter().map(|result| result.value);
    let best = values.clone().fold(f64::INFINITY, f64::min);
    let worst = values.fold(f64::NEG_INFINITY, f64::max);
    match seeds.len() {
        0 => String::new(),
        count => format!(" (the best of {count} by validation, {best:.3} to {worst:.3})"),
    }
}

/// Returns the training objective and the seed of a checkpoint.
fn training(manifest: &Manifest) -> Training {
    let learner = manifest.learner.as_ref();
    let by = learner.map_or_else(String::new, |learner| format!(" by {learner}"));
    let task = format!(
        "{LEARNED}, trained on {} for {}{by}{}",
        manifest.scenario,
        manifest.objective,
        over(&manifest.low_level)
    );
    Training::new(task, manifest.seed, &manifest.objective)
}

/// Describes the source of an integer network, and its agreement with the network that was rounded.
fn integer_origin(file: &IntegerFile) -> String {
    let agreement = &file.agreement;
    format!(
        "8-bit integers, {}{}; another level than in floating point for {:.1} % of {} recorded \
         ports, {} of them more than one away",
        file.origin,
        over(&file.low_level),
        100.0 * agreement.share_different(),
        format::count(agreement.levels),
        agreement.levels - agreement.equal - agreement.neighbouring,
    )
}

/// Describes the tuning of a linear rule in one line.
fn linear_origin(file: &LinearFile) -> String {
    format!(
        "linear rule tuned on {} for {}{}, seed {}, {} generations{}",
        file.scenario,
        file.objective,
        over(&file.low_level),
        file.seed,
        format::count(file.generations),
        measured(file.training.as_ref(), "training"),
    )
}

/// Returns the words ` over HEURISTIC` in the description of a policy; empty for Dynamic Threshold.
pub fn over(low_level: &LowLevelPolicy) -> String {
    match low_level {
        dt if dt.is_default() => String::new(),
        other => format!(" over {other}"),
    }
}

/// Describes the result by which the weights were chosen, on traces of a split.
fn measured(result: Option<&Validation>, split: &str) -> String {
    let result = result.map(|result| {
        let interval = format!("{:.3} [{:.3}–{:.3}]", result.value, result.low, result.high);
        format!(
            "; {} on {} {split} traces: {interval}",
            result.metric, result.traces
        )
    });
    result.unwrap_or_default()
}

impl FromStr for Entrant {
    type Err = EntrantError;

    /// Reads a rule such as `dt` or `dt:alpha=8`, or loads the files of `ndt:DIR`, `ndt-int8:DIR` or
    /// `linear:FILE`. A checkpoint in the folder of `ndt-int8` is rounded to integers. `onnx:FILE` is an error here:
    /// the crate `bufgym` reads it.
    fn from_str(text: &str) -> Result<Entrant, EntrantError> {
        match text.split_once(':').unwrap_or((text, "")) {
            (LEARNED, "") => Err(EntrantError::NoFolder(text.to_string())),
            (LEARNED, folder) => Entrant::load(text, folder),
            (INTEGER, "") => Err(EntrantError::NoIntegerFolder(text.to_string())),
            (INTEGER, folder) => Entrant::load_integer(text, folder),
            (LINEAR, "") => Err(EntrantError::NoFile(text.to_string())),
            (LINEAR, file) => Entrant::load_linear(text, file),
            (ONNX, "") => Err(EntrantError::NoOnnxFile(text.to_string())),
            (ONNX, _) => Err(EntrantError::NoOnnxRuntime(text.to_string())),
            _ => text
                .parse()
                .map(Entrant::rule)
                .map_err(|error| match error {
                    PolicyParseError::UnknownPolicy { name } => EntrantError::Unknown(name),
                    error => EntrantError::Rule(error),
                }),
        }
    }
}

impl fmt::Display for Entrant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.name)
    }
}

#[cfg(test)]
mod tests;
