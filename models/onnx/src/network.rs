//! A network that was read from a file.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use bufgym_env::control::{ActionSet, LowLevelPolicy};
use bufgym_util::input::{self, condensed, excerpt};
use tract_onnx::Onnx;
use tract_onnx::pb::ModelProto;
use tract_onnx::prelude::*;
use tract_onnx::tract_hir::infer::Factoid as _;

use crate::beside::Beside;
use crate::error::OnnxError;
use crate::facts::{self, Facts};
use crate::gate;
use crate::graph::{self, Operators, SAFEST};
use crate::interface::{Interface, expected_output};
use crate::limits;
use crate::seam::caught;
use crate::wire;

/// Supported versions of ONNX's operators. The runtime is tested with those up to 18. Operators whose meaning changed
/// between 18 and 21 are refused.
pub const OPSETS: RangeInclusive<i64> = 9..=21;

/// Settings of the caller, which replace those in the network's file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Settings {
    /// Heuristic whose α the network sets.
    pub low_level: Option<LowLevelPolicy>,
    /// Outputs that the network sets. Together with a heuristic they work as in `bufgym train`: `alpha,early` adds
    /// early drop to it.
    pub actions: Option<ActionSet>,
}

/// A network from an ONNX file. Cheap to clone; runs share it.
#[derive(Clone)]
pub struct OnnxNetwork(Arc<Inner>);

struct Inner {
    path: PathBuf,
    model: InferenceModel,
    interface: Interface,
    low_level: LowLevelPolicy,
    facts: Facts,
    /// Plans by number of ports.
    plans: Mutex<BTreeMap<usize, Arc<Plan>>>,
}

/// The network for one number of ports.
#[derive(Debug)]
pub(crate) struct Plan {
    pub runnable: Arc<TypedRunnableModel>,
    /// True if no operator keeps a state from one run to the next.
    pub is_stateless: bool,
}

impl OnnxNetwork {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read, when it is no ONNX file of [`OPSETS`] or damaged, when the runtime lacks
    /// an operator, when input or outputs are not as the [crate](crate) says, and when metadata or
    /// settings contradict each other.
    pub fn load(path: &Path, settings: &Settings) -> Result<OnnxNetwork, OnnxError> {
        let bytes = input::read(path, input::MAX_WEIGHTS).map_err(|error| OnnxError::Io {
            path: path.to_owned(),
            error,
        })?;
        OnnxNetwork::parse(&bytes, path, settings)
    }

    /// Same as [`load`](OnnxNetwork::load), from memory. `path` is the name in messages, and weights in separate files
    /// are looked for next to it.
    ///
    /// # Errors
    /// Same as [`load`](OnnxNetwork::load).
    pub fn parse(bytes: &[u8], path: &Path, settings: &Settings) -> Result<OnnxNetwork, OnnxError> {
        let wrong = |problem: String| OnnxError::File {
            path: path.to_owned(),
            problem,
        };
        let runtime = runtime();
        let (mut file, version) = decode(bytes, &runtime).map_err(wrong)?;
        let facts = Facts::of(&file).map_err(wrong)?;
        let low_level = low_level(&facts, settings).map_err(|error| OnnxError::Actions {
            path: path.to_owned(),
            error,
        })?;
        let actions = ActionSet::of(&low_level);
        facts::check(&file, &low_level).map_err(wrong)?;
        let interface =
            narrow(&mut file, actions, &Operators::new(&runtime, version)).map_err(wrong)?;
        let folder = path.parent().and_then(Path::to_str);
        let parsed = caught(|| runtime.parse(&file, folder));
        let parsed = parsed.map_err(|error| wrong(said(&error)))?;
        let inputs = parsed.model.input_outlets().map_or(0, <[OutletId]>::len);
        if inputs != 1 + interface.states.len() || !parsed.unresolved_inputs.is_empty() {
            return Err(wrong("the graph is damaged".to_owned()));
        }
        check_constants(&parsed.model).map_err(wrong)?;
        Ok(OnnxNetwork(Arc::new(Inner {
            path: path.to_owned(),
            model: parsed.model,
            interface,
            low_level,
            facts,
            plans: Mutex::default(),
        })))
    }

    /// The file.
    pub fn path(&self) -> &Path {
        &self.0.path
    }

    /// Returns the heuristic whose α the network sets.
    pub fn low_level(&self) -> &LowLevelPolicy {
        &self.0.low_level
    }

    /// Returns the facts in the network's file.
    pub fn facts(&self) -> &Facts {
        &self.0.facts
    }

    /// Checks that the network can be computed for switches with so many ports, and prepares it.
    ///
    /// # Errors
    /// When it is for another number, or has other outputs than it should.
    pub fn prepare(&self, ports: usize) -> Result<(), OnnxError> {
        self.plan(ports).map(|_| ())
    }

    pub(crate) fn interface(&self) -> &Interface {
        &self.0.interface
    }

    pub(crate) fn actions(&self) -> ActionSet {
        ActionSet::of(&self.0.low_level)
    }

    /// The network for so many ports.
    ///
    /// # Errors
    /// Same as [`prepare`](OnnxNetwork::prepare).
    pub(crate) fn plan(&self, ports: usize) -> Result<Arc<Plan>, OnnxError> {
        let plans = &self.0.plans;
        let mut plans = plans.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(plan) = plans.get(&ports) {
            return Ok(Arc::clone(plan));
        }
        let input = &self.0.interface.input;
        if let Some(fixed) = input.ports.filter(|fixed| *fixed != ports) {
            return Err(OnnxError::Ports {
                path: self.0.path.clone(),
                input: input.name.clone(),
                fixed,
                ports,
            });
        }
        let plan = self
            .build(ports)
            .map_err(|problem| self.failed(ports, problem))?;
        plans.insert(ports, Arc::clone(&plan));
        Ok(plan)
    }

    fn build(&self, ports: usize) -> Result<Arc<Plan>, String> {
        let model = caught(|| self.optimized(ports)).map_err(|error| said(&error))?;
        let Interface {
            input,
            states,
            outputs,
        } = &self.0.interface;
        let found = |place: usize| model.output_fact(place).map_err(|error| said(&error));
        let is = |fact: &TypedFact, shapes: &[Vec<usize>]| {
            let shape = fact.shape.as_concrete().map(<[usize]>::to_vec);
            fact.datum_type == f32::datum_type()
                && shape.is_some_and(|shape| shapes.contains(&shape))
        };
        for (place, output) in outputs.iter().enumerate() {
            let fact = found(place)?;
            if !is(fact, &input.shapes_of_outputs(ports, output.values)) {
                return Err(format!(
                    "output `{}` is {}; {}",
                    excerpt(&output.name),
                    described(fact),
                    expected_output(input, output, self.actions(), ports)
                ));
            }
        }
        for (place, state) in (outputs.len()..).zip(states) {
            let fact = found(place)?;
            let shape = state.shape(ports);
            if !is(fact, std::slice::from_ref(&shape)) {
                return Err(format!(
                    "output `{}` is {}; must be float32 {shape:?} as the state `{}`, whose next value it is",
                    excerpt(&state.next),
                    described(fact),
                    excerpt(&state.name)
                ));
            }
        }
        let plan = caught(|| {
            let runnable = model.into_runnable()?;
            let state = runnable.spawn()?;
            let is_stateless = state.op_states.iter().all(Option::is_none);
            Ok(Plan {
                runnable,
                is_stateless,
            })
        });
        plan.map(Arc::new).map_err(|error| said(&error))
    }

    /// Returns the graph for so many ports as it is computed, after a check of its needs.
    fn optimized(&self, ports: usize) -> TractResult<TypedModel> {
        let Interface { input, states, .. } = &self.0.interface;
        let states = states.iter().map(|state| state.shape(ports));
        let mut model = self.0.model.clone();
        for (place, shape) in [input.shape(ports)].into_iter().chain(states).enumerate() {
            let fact = InferenceFact::dt_shape(f32::datum_type(), &shape);
            limits::check_fact(&fact)?;
            model.set_input_fact(place, fact)?;
        }
        let model = model.into_typed()?;
        limits::check_model(&model)?;
        model.into_optimized()
    }

    /// Returns the error for a failure of the runtime.
    pub(crate) fn failed(&self, ports: usize, problem: String) -> OnnxError {
        OnnxError::Compute {
            path: self.0.path.clone(),
            ports,
            problem,
        }
    }
}

impl fmt::Debug for OnnxNetwork {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OnnxNetwork").field(&self.0.path).finish()
    }
}

/// Returns the runtime with a gate before its operators. By default it would map separate weight files into memory.
fn runtime() -> Onnx {
    Onnx {
        op_register: gate::operators(),
        provider: Arc::new(Beside),
        ..Onnx::default()
    }
}

/// Type and shape of a tensor.
fn described(fact: &TypedFact) -> String {
    let kind = match fact.datum_type {
        DatumType::F16 => "float16".to_owned(),
        DatumType::F32 => "float32".to_owned(),
        DatumType::F64 => "float64".to_owned(),
        DatumType::I32 => "int32".to_owned(),
        DatumType::I64 | DatumType::TDim => "int64".to_owned(),
        other => format!("{other:?}").to_lowercase(),
    };
    let sizes: Vec<String> = fact.shape.iter().map(ToString::to_string).collect();
    excerpt(&format!("{kind} [{}]", sizes.join(", ")))
}

/// Returns the message of the runtime, on one line.
pub(crate) fn said(error: &TractError) -> String {
    condensed(format!("{error:#}"))
}

/// Decodes the file, and returns it with the version of its operators. In the file a later version than [`SAFEST`] is
/// replaced by [`SAFEST`], because the runtime would print a warning.
fn decode(bytes: &[u8], runtime: &Onnx) -> Result<(ModelProto, i64), String> {
    let damaged = |reason: String| {
        format!("not an ONNX file, or damaged: {reason}; export the network again")
    };
    wire::check(bytes)?;
    let file = runtime.proto_model_for_read(&mut &*bytes);
    let mut file = file.map_err(|error| damaged(said(&error)))?;
    let standard = file
        .opset_import
        .iter_mut()
        .find(|set| ["", "ai.onnx"].contains(&set.domain.as_str()));
    let Some(standard) = standard.filter(|_| file.graph.is_some()) else {
        return Err(damaged("there is no graph in it".to_owned()));
    };
    if !OPSETS.contains(&standard.version) {
        return Err(format!(
            "the operators are of version {}; must be {} to {}: export the network with opset_version={SAFEST}",
            standard.version,
            OPSETS.start(),
            OPSETS.end(),
        ));
    }
    let version = standard.version;
    standard.version = version.min(SAFEST);
    Ok((file, version))
}

/// Refuses weights that are not numbers: comparisons in the runtime can hide them.
fn check_constants(model: &InferenceModel) -> Result<(), String> {
    for node in model.nodes() {
        for output in &node.outputs {
            let Some(constant) = output.fact.value.concretize() else {
                continue;
            };
            let plain = constant.try_as_plain_ram();
            let values = plain.and_then(|plain| plain.as_slice::<f32>());
            if values.is_ok_and(|values| values.iter().any(|value| value.is_nan())) {
                return Err(format!(
                    "a value of the constant `{}` is not a number; train and export the network again",
                    excerpt(&node.name)
                ));
            }
        }
    }
    Ok(())
}

/// Returns the heuristic below the network.
fn low_level(
    facts: &Facts,
    settings: &Settings,
) -> Result<LowLevelPolicy, bufgym_env::control::Unfit> {
    let given = settings.low_level.as_ref();
    let low_level = given.or(facts.low_level.as_ref());
    let low_level = low_level.cloned().unwrap_or_default();
    // The outputs that the file names belong to the heuristic that the file names.
    let actions = settings
        .actions
        .or(facts.actions.filter(|_| given.is_none()));
    match actions {
        None => Ok(low_level),
        Some(actions) => actions.over(&low_level),
    }
}

/// Returns inputs and outputs of the graph, and removes everything that these outputs do not need.
fn narrow(
    file: &mut ModelProto,
    actions: ActionSet,
    operators: &Operators<'_>,
) -> Result<Interface, String> {
    let graph = file.graph.get_or_insert_default();
    graph::check_names(graph)?;
    let interface = Interface::of(graph, actions)?;
    graph::prune(graph, &interface.computed());
    limits::check_graph(graph)?;
    graph::check(graph, &HashSet::new(), operators)?;
    Ok(interface)
}
