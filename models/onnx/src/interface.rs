//! The input and the outputs of a network, as its file declares them.

use bufgym_env::control::{ActionSet, FEATURES, HISTORY};
use bufgym_util::input::excerpt;
use tract_onnx::pb::tensor_proto::DataType;
use tract_onnx::pb::tensor_shape_proto::dimension;
use tract_onnx::pb::{GraphProto, ValueInfoProto, type_proto};

use crate::graph::inputs_of;

/// Values of a port in an observation.
const OBSERVATION: usize = HISTORY * FEATURES;

/// Largest number of states of a recurrent network.
const MAX_STATES: usize = 16;

/// Name of an open size that has none.
const UNNAMED: &str = "?";

/// Input that receives observations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Input {
    pub name: String,
    form: Form,
    /// Number of ports, if it is fixed.
    pub ports: Option<usize>,
}

/// The form of an observation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// `[ports, 8, 5]`.
    Ports,
    /// `[1, ports, 8, 5]`.
    Batch,
    /// `[1, ports * 40]`.
    Flat,
}

/// A state that a recurrent network passes from one decision of a switch to the next; zeros at the first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct State {
    /// Name of the input.
    pub name: String,
    /// Name of the output with the next value.
    pub next: String,
    sizes: Vec<Extent>,
}

/// A size of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extent {
    Fixed(usize),
    /// The number of ports.
    Ports,
}

/// An output with actions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Output {
    pub name: String,
    /// True if its values are μ, so that the action is `tanh μ`.
    pub is_mean: bool,
    /// Values per port.
    pub values: usize,
}

/// Inputs and outputs of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interface {
    pub input: Input,
    /// In the order of their inputs.
    pub states: Vec<State>,
    pub outputs: Vec<Output>,
}

impl Interface {
    /// Reads the declarations of a graph. The first input is the observation, and others are states.
    ///
    /// # Errors
    /// When the first input is no observation, when a state has no usable type, shape or output, and when the names do
    /// not identify the outputs that set `actions`.
    pub(crate) fn of(graph: &GraphProto, actions: ActionSet) -> Result<Interface, String> {
        let inputs = inputs_of(graph);
        let Some((first, others)) = inputs.split_first() else {
            return Err(format!(
                "the network has no input; must have one, the observation {}",
                Input::expected()
            ));
        };
        let (input, sizes) = Input::of(first)?;
        if others.len() > MAX_STATES {
            return Err(format!(
                "the network has {} inputs; must have the observation and at most {MAX_STATES} states",
                inputs.len()
            ));
        }
        let outputs = Output::of(graph, actions, others.len())?;
        let is_action = |name: &str| outputs.iter().any(|output| output.name == name);
        let mut next = graph
            .output
            .iter()
            .filter(|output| !is_action(&output.name));
        let states = others.iter().map(|other| {
            let state = State::of(other, &sizes)?;
            let next = next.next().ok_or_else(|| {
                format!(
                    "input `{}` is a state, and no output is its next value; there must be one for every state, behind the actions and in the order of the inputs",
                    excerpt(&state.name)
                )
            })?;
            Ok(State {
                next: next.name.clone(),
                ..state
            })
        });
        Ok(Interface {
            states: states.collect::<Result<_, String>>()?,
            input,
            outputs,
        })
    }

    /// Returns the names of the outputs that are computed: the actions, followed by the next values of the states.
    pub(crate) fn computed(&self) -> Vec<String> {
        let actions = self.outputs.iter().map(|output| &output.name);
        let states = self.states.iter().map(|state| &state.next);
        actions.chain(states).cloned().collect()
    }
}

impl State {
    /// Reads an input as a state, without its output; `sizes` are those of the observation.
    ///
    /// # Errors
    /// When the input has no type or shape of a state.
    fn of(input: &ValueInfoProto, sizes: &[Size]) -> Result<State, String> {
        let wrong = |found: String| {
            format!(
                "input `{}` is {found}; a state must be float32 and have sizes that are fixed, or named as the ports or the batch of the observation",
                excerpt(&input.name)
            )
        };
        let (kind, own) = declared(input).ok_or_else(|| wrong("not a tensor".to_owned()))?;
        let own = own.ok_or_else(|| wrong(format!("{kind} without a shape")))?;
        let ports = &sizes[sizes.len().saturating_sub(3)];
        let extent = |size: &Size| match size {
            Size::Fixed(size) => Some(Extent::Fixed(usize::try_from(*size).ok()?)),
            Size::Open(name) if name == UNNAMED => None,
            open if sizes.len() > 2 && open == ports => Some(Extent::Ports),
            // An open size other than the ports is the batch, of one.
            open if sizes.len() != 3 && *open == sizes[0] => Some(Extent::Fixed(1)),
            Size::Open(_) => None,
        };
        let extents: Option<Vec<Extent>> = own.iter().map(extent).collect();
        let extents = extents.filter(|_| kind == "float32");
        Ok(State {
            name: input.name.clone(),
            next: String::new(),
            sizes: extents.ok_or_else(|| wrong(format!("{kind} {}", shown(&own))))?,
        })
    }

    /// The shape with so many ports.
    pub(crate) fn shape(&self, ports: usize) -> Vec<usize> {
        let sizes = self.sizes.iter().map(|size| match size {
            Extent::Fixed(size) => *size,
            Extent::Ports => ports,
        });
        sizes.collect()
    }
}

impl Input {
    /// Reads an input as the observation. Returns it with the sizes that it declares.
    ///
    /// # Errors
    /// When it has another type or shape.
    fn of(input: &ValueInfoProto) -> Result<(Input, Vec<Size>), String> {
        let wrong = |found: String| {
            format!(
                "input `{}` is {found}; must be {}",
                excerpt(&input.name),
                Input::expected()
            )
        };
        let (kind, sizes) = declared(input).ok_or_else(|| wrong("not a tensor".to_owned()))?;
        let sizes = sizes.ok_or_else(|| wrong(format!("{kind} without a shape")))?;
        let shape = Input::read(&sizes).filter(|_| kind == "float32");
        let (form, ports) = shape.ok_or_else(|| wrong(format!("{kind} {}", shown(&sizes))))?;
        let input = Input {
            name: input.name.clone(),
            form,
            ports,
        };
        Ok((input, sizes))
    }

    fn expected() -> String {
        format!(
            "float32 [ports, {HISTORY}, {FEATURES}], or with a batch of 1 [1, ports, {HISTORY}, {FEATURES}] or [1, ports*{OBSERVATION}], where sizes may be left open"
        )
    }

    /// The form, and the number of ports.
    fn read(sizes: &[Size]) -> Option<(Form, Option<usize>)> {
        let (form, batch, of_port, ports) = match sizes {
            [ports, of_port @ ..] if of_port.len() == 2 => (Form::Ports, None, of_port, ports),
            [batch, ports, of_port @ ..] if of_port.len() == 2 => {
                (Form::Batch, Some(batch), of_port, ports)
            }
            [batch, values] => (Form::Flat, Some(batch), [].as_slice(), values),
            _ => return None,
        };
        let width = if form == Form::Flat { OBSERVATION } else { 1 };
        let fits = batch.is_none_or(|batch| batch.may_be(1))
            && of_port
                .iter()
                .zip([HISTORY, FEATURES])
                .all(|(size, fixed)| size.may_be(fixed));
        let ports = match ports {
            Size::Open(_) => None,
            Size::Fixed(size) => {
                let size = usize::try_from(*size).ok().filter(|size| *size > 0)?;
                Some(size / width)
                    .filter(|ports| ports * width == size)
                    .map(Some)?
            }
        };
        fits.then_some((form, ports))
    }

    /// The shape of an observation.
    pub(crate) fn shape(&self, ports: usize) -> Vec<usize> {
        match self.form {
            Form::Ports => vec![ports, HISTORY, FEATURES],
            Form::Batch => vec![1, ports, HISTORY, FEATURES],
            Form::Flat => vec![1, ports * OBSERVATION],
        }
    }

    /// The shapes that an output with so many values per port may have.
    pub(crate) fn shapes_of_outputs(&self, ports: usize, values: usize) -> Vec<Vec<usize>> {
        let batch: &[usize] = if self.form == Form::Ports { &[] } else { &[1] };
        let with_batch = |sizes: &[usize]| [batch, sizes].concat();
        let mut shapes = vec![with_batch(&[ports, values])];
        if values == 1 || self.form == Form::Flat {
            shapes.insert(0, with_batch(&[ports * values]));
        }
        shapes
    }
}

/// The names of an output, as an action and as its mean.
type Names = [&'static str; 2];

const FIRST: Names = ["action", "action_mean"];

fn second(actions: ActionSet) -> Option<Names> {
    match actions {
        ActionSet::Alpha => None,
        ActionSet::AlphaEarly => Some(["early_action", "early_action_mean"]),
        ActionSet::AlphaIngress => Some(["ingress_action", "ingress_action_mean"]),
    }
}

impl Output {
    /// Returns the outputs of a graph with so many states that set `actions`: one for each value of a port, or one for
    /// all.
    ///
    /// # Errors
    /// When the names do not identify them.
    fn of(graph: &GraphProto, actions: ActionSet, states: usize) -> Result<Vec<Output>, String> {
        let names: Vec<&str> = graph.output.iter().map(|o| o.name.as_str()).collect();
        let named = |wanted: Names| {
            let [action, mean] = wanted.map(|name| names.contains(&name));
            let output = |name: &str, is_mean| Output {
                name: name.to_owned(),
                is_mean,
                values: 1,
            };
            match (action, mean) {
                (true, _) => Some(output(wanted[0], false)),
                (false, true) => Some(output(wanted[1], true)),
                (false, false) => None,
            }
        };
        let first = named(FIRST).or_else(|| match names.as_slice() {
            [only, next @ ..] if next.len() == states => Some(Output {
                name: (*only).to_owned(),
                is_mean: false,
                values: 1,
            }),
            _ => None,
        });
        let Some(first) = first else {
            return Err(format!(
                "the network has {} outputs{}; must have one, or one named `action` (in [-1, 1]) or `action_mean` (tanh of it is the action)",
                names.len(),
                listed(names.iter().copied())
            ));
        };
        Ok(match second(actions).map(named) {
            None => vec![first],
            Some(Some(second)) => vec![first, second],
            Some(None) => vec![Output {
                values: actions.outputs(),
                ..first
            }],
        })
    }
}

/// Returns the required shape of an output, and the remedy.
pub(crate) fn expected_output(
    input: &Input,
    output: &Output,
    actions: ActionSet,
    ports: usize,
) -> String {
    let shapes = input.shapes_of_outputs(ports, output.values);
    let shapes: Vec<String> = shapes.iter().map(|shape| format!("{shape:?}")).collect();
    let second = match second(actions) {
        Some([action, mean]) if output.values > 1 => {
            format!(", or there must be a second output `{action}` or `{mean}`")
        }
        _ => String::new(),
    };
    format!(
        "must be float32 {}{second}; decisions set {actions}, and `,low_level=` or `,actions=` behind the file chooses what",
        shapes.join(" or ")
    )
}

/// A size of a declared shape.
#[derive(PartialEq, Eq)]
enum Size {
    Fixed(i64),
    Open(String),
}

impl Size {
    fn may_be(&self, size: usize) -> bool {
        match self {
            Size::Fixed(fixed) => usize::try_from(*fixed) == Ok(size),
            Size::Open(_) => true,
        }
    }
}

/// Returns type and shape of a tensor; a shape is not always declared.
fn declared(value: &ValueInfoProto) -> Option<(String, Option<Vec<Size>>)> {
    let type_proto::Value::TensorType(tensor) = value.r#type.as_ref()?.value.as_ref()?;
    let kind = match DataType::try_from(tensor.elem_type) {
        Ok(DataType::Float) => "float32".to_owned(),
        Ok(DataType::Double) => "float64".to_owned(),
        Ok(other) => format!("{other:?}").to_lowercase(),
        Err(_) => format!("of unknown type {}", tensor.elem_type),
    };
    let size = |dimension: &Option<dimension::Value>| match dimension {
        Some(dimension::Value::DimValue(size)) => Size::Fixed(*size),
        Some(dimension::Value::DimParam(name)) => Size::Open(name.clone()),
        None => Size::Open(UNNAMED.to_owned()),
    };
    let shape = tensor.shape.as_ref();
    let sizes = shape.map(|shape| shape.dim.iter().map(|d| size(&d.value)).collect());
    Some((kind, sizes))
}

fn shown(sizes: &[Size]) -> String {
    let sizes: Vec<String> = sizes
        .iter()
        .map(|size| match size {
            Size::Fixed(size) => size.to_string(),
            Size::Open(name) => name.clone(),
        })
        .collect();
    excerpt(&format!("[{}]", sizes.join(", ")))
}

/// Returns names after a blank, in brackets; nothing for none.
fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    match names.is_empty() {
        true => String::new(),
        false => format!(" ({})", excerpt(&names.join(", "))),
    }
}
