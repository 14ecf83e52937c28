//! The input and the outputs of a network, as its file declares them.

use bufgym_env::control::{ActionSet, FEATURES, HISTORY};
use bufgym_sim::input::excerpt;
use tract_onnx::pb::tensor_proto::DataType;
use tract_onnx::pb::tensor_shape_proto::dimension;
use tract_onnx::pb::{GraphProto, ValueInfoProto, type_proto};

/// The input that observations go to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Input {
    pub name: String,
    /// Whether there is a dimension before the ports, of size 1.
    pub batched: bool,
    /// The number of ports, where it is fixed.
    pub ports: Option<usize>,
}

/// An output that actions come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Output {
    pub name: String,
    /// Whether its values are μ, of which tanh is the action.
    pub is_mean: bool,
    /// Values per port.
    pub values: usize,
}

impl Input {
    /// The only input of a graph.
    ///
    /// # Errors
    /// When there is none or another one, or it has another type or shape.
    pub(crate) fn of(graph: &GraphProto) -> Result<Input, String> {
        let is_constant =
            |input: &&ValueInfoProto| graph.initializer.iter().any(|c| c.name == input.name);
        let inputs: Vec<&ValueInfoProto> = graph.input.iter().filter(|i| !is_constant(i)).collect();
        let [input] = inputs.as_slice() else {
            let found = listed(inputs.iter().map(|input| input.name.as_str()));
            return Err(format!(
                "the network has {} inputs{found}; must have one, the observation {}",
                inputs.len(),
                Input::expected()
            ));
        };
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
        let (batched, ports) = shape.ok_or_else(|| wrong(format!("{kind} {}", shown(&sizes))))?;
        Ok(Input {
            name: input.name.clone(),
            batched,
            ports,
        })
    }

    fn expected() -> String {
        format!(
            "float32 [ports, {HISTORY}, {FEATURES}] or [1, ports, {HISTORY}, {FEATURES}], where sizes may be left open"
        )
    }

    /// Whether the sizes have a batch, and the number of ports.
    fn read(sizes: &[Size]) -> Option<(bool, Option<usize>)> {
        let (batch, [ports, history, features]) = match sizes {
            [ports, history, features] => (None, [ports, history, features]),
            [batch, ports, history, features] => (Some(batch), [ports, history, features]),
            _ => return None,
        };
        let fits = batch.is_none_or(|batch| batch.may_be(1))
            && history.may_be(HISTORY)
            && features.may_be(FEATURES);
        let ports = match ports {
            Size::Open(_) => None,
            Size::Fixed(ports) => Some(usize::try_from(*ports).ok().filter(|ports| *ports > 0)?),
        };
        fits.then_some((batch.is_some(), ports))
    }

    /// The shape of an observation.
    pub(crate) fn shape(&self, ports: usize) -> Vec<usize> {
        self.with_batch(&[ports, HISTORY, FEATURES])
    }

    /// The shapes that an output with so many values per port may have.
    pub(crate) fn shapes_of_outputs(&self, ports: usize, values: usize) -> Vec<Vec<usize>> {
        let mut shapes = vec![self.with_batch(&[ports, values])];
        if values == 1 {
            shapes.insert(0, self.with_batch(&[ports]));
        }
        shapes
    }

    fn with_batch(&self, sizes: &[usize]) -> Vec<usize> {
        let batch = self.batched.then_some(1);
        batch.into_iter().chain(sizes.iter().copied()).collect()
    }
}

/// The names of the output that sets something, as an action and as its mean.
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
    /// The outputs of a graph that set `actions`: one for each value of a port, or one for all.
    ///
    /// # Errors
    /// When none can be told from the names.
    pub(crate) fn of(graph: &GraphProto, actions: ActionSet) -> Result<Vec<Output>, String> {
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
            [only] => Some(Output {
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

/// What an output of another shape would have to be, and the remedy.
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

/// Type and shape of a tensor; a shape is not always declared.
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
        None => Size::Open("?".to_owned()),
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

/// Names behind a blank, in brackets; nothing for none.
fn listed<'a>(names: impl Iterator<Item = &'a str>) -> String {
    let names: Vec<&str> = names.collect();
    match names.is_empty() {
        true => String::new(),
        false => format!(" ({})", excerpt(&names.join(", "))),
    }
}
