//! A gate before every operator of the runtime.
//!
//! While the runtime analyses a graph, it computes everything that follows from constants, without a limit on memory.
//! The gate checks the sizes first, in graphs within operators too.

use std::collections::HashMap;
use std::sync::LazyLock;

use tract_onnx::model::{OnnxOpRegister, ParsingContext};
use tract_onnx::pb::NodeProto;
use tract_onnx::tract_hir::infer::{Factoid as _, InferenceOp};
use tract_onnx::tract_hir::internal::*;

use crate::limits;
use crate::seam::caught;

/// Limit on the values of a constant that is computed during the analysis, and on the combinations of the values of all
/// inputs, which bounds intermediate values. It is enough for sizes and places.
const FOLDED: usize = 1 << 14;

/// Operators of the runtime that are not in the standard, and so do not occur in a file that follows it.
const OF_OTHERS: [&str; 14] = [
    "BiasGelu",
    "ConstantLike",
    "FastGelu",
    "GatherBlockQuantized",
    "GroupQueryAttention",
    "MatMulNBits",
    "MultiHeadAttention",
    "ParametricSoftplus",
    "QuickGelu",
    "RotaryEmbedding",
    "Rsqrt",
    "ScaledTanh",
    "SimplifiedLayerNormalization",
    "SkipLayerNormalization",
];

/// The operators of the runtime, each behind a gate.
pub(crate) fn operators() -> OnnxOpRegister {
    let names = OPERATORS.0.keys();
    let names = names.filter(|name| !OF_OTHERS.contains(&name.as_str()));
    OnnxOpRegister(names.map(|name| (name.clone(), build as _)).collect())
}

static OPERATORS: LazyLock<OnnxOpRegister> = LazyLock::new(|| tract_onnx::onnx().op_register);

fn build(
    context: &ParsingContext<'_>,
    node: &NodeProto,
) -> TractResult<(Box<dyn InferenceOp>, Vec<String>)> {
    let builder = OPERATORS.0.get(&node.op_type);
    let builder = builder.with_context(|| format!("no operator {}", node.op_type))?;
    let (operator, around) = caught(|| builder(context, node))?;
    // The runtime looks for constants by their type.
    let operator = match node.op_type.as_str() {
        "Constant" => operator,
        _ => Box::new(Gate {
            operator,
            granted: Granted::of(node),
        }),
    };
    Ok((operator, around))
}

/// An operator of the runtime that computes nothing large before the size of the whole graph is known.
#[derive(Clone, Debug)]
struct Gate {
    operator: Box<dyn InferenceOp>,
    granted: Granted,
}

/// Assumptions of the runtime about the inputs of an operator. Where a dimension is missing, the runtime counts from a
/// negative number to the largest. Where a value is missing, it reads outside the memory.
#[derive(Clone, Debug)]
struct Granted {
    /// True if each input has at least one value.
    values: bool,
    /// Fewest dimensions of the first two inputs.
    least: [i64; 2],
    /// True if the second input holds places in the first, with at most as many numbers as the first has dimensions.
    places: bool,
    /// Dimensions that an attribute names.
    named: Vec<i64>,
    /// Input that names dimensions, if there is one.
    input: Option<usize>,
    /// True if each of these dimensions is added to those of the first input.
    adds: bool,
    /// True if a named dimension may also be one after the last of the first input.
    behind: bool,
}

impl Granted {
    fn of(node: &NodeProto) -> Granted {
        let operator = node.op_type.as_str();
        let mut named: Vec<i64> = Vec::new();
        for attribute in &node.attribute {
            match attribute.name.as_str() {
                "axis" => named.push(attribute.i),
                "axes" => named.extend(&attribute.ints),
                _ => {}
            }
        }
        // The standard has no bounds if the scale is a single number.
        if operator.ends_with("quantizeLinear") || operator == "QuantizeLinear" {
            named.clear();
        }
        let place = match operator {
            "CumSum" | "Squeeze" | "Unsqueeze" => Some(1),
            "Pad" | "Slice" => Some(3),
            _ if operator.starts_with("Reduce") => Some(1),
            _ => None,
        };
        // The runtime does not count inputs that are left out.
        let is_given = |place: &usize| node.input.get(*place).is_some_and(|name| !name.is_empty());
        let count = |place: usize| {
            node.input[..place]
                .iter()
                .filter(|name| !name.is_empty())
                .count()
        };
        let least = match operator {
            "Conv" | "ConvInteger" | "ConvTranspose" | "MatMulInteger" => [2, 2],
            "AveragePool"
            | "BatchNormalization"
            | "DFT"
            | "DepthToSpace"
            | "EyeLike"
            | "GlobalAveragePool"
            | "GlobalLpPool"
            | "GlobalMaxPool"
            | "GridSample"
            | "GroupNormalization"
            | "InstanceNormalization"
            | "LRN"
            | "MaxPool"
            | "QLinearConv"
            | "STFT"
            | "SpaceToDepth"
            | "Trilu" => [2, 0],
            "GatherND" | "MatMul" | "ScatterND" => [1, 1],
            "ArgMax" | "ArgMin" | "CumSum" | "Gather" | "GatherElements" | "Hardmax"
            | "LayerNormalization" | "LogSoftmax" | "LpNormalization" | "Normalizer"
            | "RMSNormalization" | "Scatter" | "ScatterElements" | "Softmax" | "Split" | "TopK" => {
                [1, 0]
            }
            _ => [0, 0],
        };
        let lists = [
            "Cast",
            "Concat",
            "ConstantOfShape",
            "Expand",
            "Identity",
            "Reshape",
            "Resize",
            "Shape",
            "Size",
            "Squeeze",
            "Tile",
            "Unsqueeze",
        ];
        Granted {
            values: !lists.contains(&operator) && !operator.starts_with("Reduce"),
            least,
            places: operator == "GatherND",
            named,
            input: place.filter(is_given).map(count),
            adds: operator == "Unsqueeze",
            behind: ["Flatten", "OneHot"].contains(&operator),
        }
    }

    /// Checks that the inputs meet the assumptions. Returns true if that can be decided already.
    ///
    /// # Errors
    /// When they do not.
    fn check(&self, inputs: &[&InferenceFact]) -> TractResult<bool> {
        let is_empty = |fact: &&InferenceFact| limits::known_len(fact) == Some(0);
        if let Some(place) = inputs.iter().position(is_empty).filter(|_| self.values) {
            bail!("input {place} has no values; must have at least one");
        }
        let rank = |place: usize| inputs.get(place)?.shape.rank().concretize();
        for (place, least) in self.least.into_iter().enumerate() {
            if least == 0 || place >= inputs.len() {
                continue;
            }
            let Some(rank) = rank(place) else {
                return Ok(false);
            };
            ensure!(
                rank >= least,
                "input {place} has {rank} dimensions; must have at least {least}"
            );
        }
        if self.places {
            let last = inputs
                .get(1)
                .and_then(|fact| fact.shape.dims().last()?.concretize()?.as_i64());
            let Some(last) = last else {
                return Ok(false);
            };
            ensure!(
                rank(0).is_some_and(|rank| (0..=rank).contains(&last)),
                "a place has {last} numbers, more than there are dimensions"
            );
        }
        let mut named = self.named.clone();
        if let Some(place) = self.input {
            let Some(values) = inputs.get(place).and_then(|fact| fact.value.concretize()) else {
                return Ok(true);
            };
            let values = values.cast_to::<i64>()?;
            named.extend(values.try_as_plain_ram()?.as_slice::<i64>()?);
        }
        if named.is_empty() {
            return Ok(true);
        }
        let Some(rank) = inputs
            .first()
            .and_then(|fact| fact.shape.rank().concretize())
        else {
            return Ok(false);
        };
        let more = if self.adds { named.len() } else { 0 };
        let rank = rank + i64::try_from(more)?;
        for axis in named {
            let known =
                (-rank..rank).contains(&axis) || self.behind && (-rank - 1..=rank).contains(&axis);
            ensure!(known, "there is no dimension {axis} of {rank}");
        }
        Ok(true)
    }
}

impl PartialEq for Gate {
    fn eq(&self, _other: &Gate) -> bool {
        false
    }
}

impl Eq for Gate {}

impl Op for Gate {
    fn name(&self) -> StaticName {
        self.operator.name()
    }

    fn as_typed(&self) -> Option<&dyn TypedOp> {
        None
    }
}

impl EvalOp for Gate {
    fn eval(&self, context: &EvalContext, inputs: TVec<TValue>) -> TractResult<TVec<TValue>> {
        self.operator.eval(context, inputs)
    }

    fn eval_out_of_plan(&self, inputs: TVec<TValue>) -> TractResult<Option<TVec<TValue>>> {
        self.operator.eval_out_of_plan(inputs)
    }

    fn state(&self, context: &EvalContext) -> TractResult<Option<Box<dyn OpState>>> {
        self.operator.state(context)
    }
}

type Facts = TVec<InferenceFact>;

impl InferenceOp for Gate {
    fn infer(
        &mut self,
        inputs: TVec<&InferenceFact>,
        outputs: TVec<&InferenceFact>,
        observed: TVec<&InferenceFact>,
    ) -> TractResult<(Facts, Facts, Facts)> {
        let facts = self.infer_facts(inputs.clone(), outputs.clone(), observed.clone())?;
        let known = facts.0.iter().collect::<Vec<_>>();
        self.granted.check(&known)?;
        match self.may_fold(&facts.0, &facts.1)? {
            true => caught(|| self.operator.infer(inputs, outputs, observed)),
            false => Ok(facts),
        }
    }

    fn infer_facts(
        &mut self,
        inputs: TVec<&InferenceFact>,
        outputs: TVec<&InferenceFact>,
        observed: TVec<&InferenceFact>,
    ) -> TractResult<(Facts, Facts, Facts)> {
        if !self.granted.check(&inputs)? {
            let known = |facts: TVec<&InferenceFact>| facts.into_iter().cloned().collect();
            return Ok((known(inputs), known(outputs), known(observed)));
        }
        let facts = caught(|| self.operator.infer_facts(inputs, outputs, observed))?;
        facts.1.iter().try_for_each(limits::check_fact)?;
        Ok(facts)
    }

    fn observe_outlets(
        &self,
        model: &InferenceModel,
        node: &InferenceNode,
    ) -> TractResult<Vec<OutletId>> {
        self.operator.observe_outlets(model, node)
    }

    fn incorporate(
        &self,
        model: &InferenceModel,
        node: &InferenceNode,
    ) -> TractResult<Option<InferenceModelPatch>> {
        self.operator.incorporate(model, node)
    }

    fn nboutputs(&self) -> TractResult<usize> {
        self.operator.nboutputs()
    }

    fn as_op(&self) -> &dyn Op {
        self
    }

    fn as_op_mut(&mut self) -> &mut dyn Op {
        self
    }

    fn to_typed(
        &self,
        source: &InferenceModel,
        node: &InferenceNode,
        target: &mut TypedModel,
        mapping: &HashMap<OutletId, OutletId>,
    ) -> TractResult<TVec<OutletId>> {
        caught(|| self.operator.to_typed(source, node, target, mapping))
    }
}

impl Gate {
    /// Returns true if the operator may be computed now: all its inputs are known, and it is small.
    fn may_fold(&self, inputs: &Facts, outputs: &Facts) -> TractResult<bool> {
        let values: Option<Vec<Arc<Tensor>>> =
            inputs.iter().map(|fact| fact.value.concretize()).collect();
        let Some(values) = values else {
            return Ok(false);
        };
        let name = self.operator.name();
        if name == "Range" {
            check_range(&values)?;
        }
        let combinations = values
            .iter()
            .try_fold(1_usize, |all, value| all.checked_mul(value.len().max(1)));
        let small = |fact: &InferenceFact| limits::known_len(fact).is_some_and(|len| len <= FOLDED);
        // The runtime would compute a branch, which has no gate, before its content.
        Ok(name != "If"
            && combinations.is_some_and(|count| count <= FOLDED)
            && outputs.iter().all(small))
    }
}

/// Checks the length of a range. Where steps are negative or not whole numbers, the runtime's analysis expects another
/// length than it computes.
fn check_range(values: &[Arc<Tensor>]) -> TractResult<()> {
    let numbers: Vec<f64> = values
        .iter()
        .map(|value| value.cast_to_scalar::<f64>())
        .collect::<TractResult<_>>()?;
    let [start, end, step] = numbers.as_slice() else {
        bail!("Range has {} inputs; must have 3", numbers.len());
    };
    let length = ((end - start) / step).ceil();
    ensure!(
        (0.0..=FOLDED as f64).contains(&length),
        "Range from {start} to {end} in steps of {step} must have 0 to {FOLDED} values"
    );
    Ok(())
}
