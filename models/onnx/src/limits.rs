//! Limits of a network: its constants before they are loaded, its values and its work before they are computed.

use bufgym_util::input::{self, excerpt};
use tract_onnx::pb::tensor_proto::{DataLocation, DataType};
use tract_onnx::pb::{AttributeProto, GraphProto, NodeProto, TensorProto};
use tract_onnx::tract_core::ops::cnn::{Conv, Deconv, MaxPool, PoolSpec, SumPool};
use tract_onnx::tract_core::ops::einsum::EinSum;
use tract_onnx::tract_core::ops::konst::Const;
use tract_onnx::tract_core::ops::logic::IfThenElse;
use tract_onnx::tract_core::ops::scan::{InputMapping, Scan};
use tract_onnx::tract_hir::infer::Factoid as _;
use tract_onnx::tract_hir::internal::*;

use crate::graph::{described, graphs_in};

/// Limit on operators, including those in graphs within operators. The time in which the runtime optimises a graph
/// grows with their third power if it can merge them all.
const MAX_OPERATORS: usize = 1_024;

/// Limit on constants.
const MAX_CONSTANTS: usize = 4_096;

/// Limit on compared bytes: the runtime compares every constant with all others of its shape.
const MAX_COMPARED: u64 = 16 << 30;

/// Limit on the nesting of graphs: for each analysis of the outer graph, the runtime analyses an inner one several
/// times.
const MAX_DEPTH: usize = 3;

/// Limit on the dimensions of a tensor.
const MAX_RANK: usize = 8;

/// Limit on a size or a count in an attribute.
const MAX_ATTRIBUTE: u64 = 1 << 20;

/// Bytes that the runtime needs for each place of a kernel.
const KERNEL_PLACE: f64 = 64.0;

/// Limit on the bytes of all values that a decision computes.
const MAX_BYTES: u64 = 64 << 20;

/// Limit on the multiplications and additions of a decision.
const MAX_WORK: f64 = (1_u64 << 30) as f64;

/// Factor of the runtime's time for a product of matrices for which it has no kernel.
const WITHOUT_KERNEL: f64 = 64.0;

/// Checks the number of operators, and types, shapes and lengths of all constants.
///
/// # Errors
/// When there are too many, or one is damaged.
pub(crate) fn check_graph(graph: &GraphProto) -> Result<(), String> {
    let mut left = Left {
        operators: MAX_OPERATORS,
        constants: MAX_CONSTANTS,
        bytes: input::MAX_WEIGHTS,
        compared: MAX_COMPARED,
        shapes: HashMap::new(),
    };
    left.take(graph, 0)
}

/// Remaining budgets of the graphs.
struct Left {
    operators: usize,
    constants: usize,
    bytes: u64,
    compared: u64,
    /// The number of constants of each type and shape so far.
    shapes: HashMap<(i32, Vec<i64>), u64>,
}

impl Left {
    fn take(&mut self, graph: &GraphProto, depth: usize) -> Result<(), String> {
        if depth > MAX_DEPTH {
            return Err(format!(
                "there are more than {MAX_DEPTH} graphs within one another; export the network without so many branches and loops"
            ));
        }
        let constants = graph
            .node
            .iter()
            .filter(|node| node.op_type == "Constant")
            .count();
        let operators = graph.node.len() - constants;
        for (left, count, most, what) in [
            (&mut self.operators, operators, MAX_OPERATORS, "operators"),
            (
                &mut self.constants,
                constants + graph.initializer.len(),
                MAX_CONSTANTS,
                "constants",
            ),
        ] {
            *left = left.checked_sub(count).ok_or_else(|| {
                format!("the graph has more than {most} {what}, the most that are run")
            })?;
        }
        for constant in &graph.initializer {
            self.take_constant(constant, &constant.name)?;
        }
        for node in &graph.node {
            for attribute in &node.attribute {
                check_attribute(node, attribute)?;
                for constant in attribute.t.iter().chain(&attribute.tensors) {
                    self.take_constant(constant, node.output.first().map_or("", String::as_str))?;
                }
            }
            graphs_in(node).try_for_each(|graph| self.take(graph, depth + 1))?;
        }
        Ok(())
    }

    fn take_constant(&mut self, constant: &TensorProto, name: &str) -> Result<(), String> {
        let wrong = |problem: String| format!("the constant `{}` {problem}", excerpt(name));
        let (width, stored) = stored(constant).ok_or_else(|| {
            wrong("has a type that cannot be run; must have numbers of 8 to 64 bits".to_owned())
        })?;
        let length =
            length(constant.dims.iter().copied()).filter(|_| constant.dims.len() <= MAX_RANK);
        let length = length.ok_or_else(|| {
            wrong(format!(
                "is {}; must have at most {MAX_RANK} dimensions",
                excerpt(&format!("{:?}", constant.dims))
            ))
        })?;
        let bytes = length.saturating_mul(width);
        self.bytes = self.bytes.checked_sub(bytes).ok_or_else(|| {
            format!(
                "the constants have more than {} MiB, the most that is read",
                input::MAX_WEIGHTS >> 20
            )
        })?;
        let alike = self
            .shapes
            .entry((constant.data_type, constant.dims.clone()));
        let alike = alike.or_default();
        *alike += 1;
        let compared = self.compared.checked_sub(bytes.saturating_mul(*alike));
        self.compared = compared.ok_or_else(|| {
            format!(
                "there are {alike} constants of the shape {:?}, too many of this size; export the network with other shapes, or with fewer weights",
                constant.dims
            )
        })?;
        let external = constant.data_location == Some(DataLocation::External as i32);
        match external && constant.raw_data.is_empty() || stored == bytes {
            true => Ok(()),
            false => Err(wrong(format!(
                "is {:?} of {width} bytes each and has {stored} bytes; the file is damaged",
                constant.dims
            ))),
        }
    }
}

/// Checks that the whole numbers of an attribute can be numbers of dimensions, sizes or counts.
///
/// # Errors
/// When one is too large. When one of a window is too small: the runtime divides by them, and reads beyond the memory
/// where the padding of a window is negative.
fn check_attribute(node: &NodeProto, attribute: &AttributeProto) -> Result<(), String> {
    let most = match attribute.name.as_str() {
        // A value is any number, and a large end means the end.
        "value_int" | "value_ints" | "starts" | "ends" | "seed" => return Ok(()),
        _ if node.domain == "ai.onnx.ml" => return Ok(()),
        "axis" | "axes" | "batch_dims" | "perm" | "scan_input_axes" | "scan_output_axes" => {
            MAX_RANK as u64
        }
        _ => MAX_ATTRIBUTE,
    };
    let windows = ["Conv", "Pool"]
        .iter()
        .any(|part| node.op_type.contains(part));
    let (values, least) = match attribute.name.as_str() {
        "strides" | "dilations" | "kernel_shape" => (attribute.ints.as_slice(), 1),
        "pads" | "output_padding" if windows => (attribute.ints.as_slice(), 0),
        "group" => (std::slice::from_ref(&attribute.i), 1),
        _ => (&[][..], 0),
    };
    if let Some(value) = values.iter().find(|&&value| value < least) {
        return Err(format!(
            "the attribute `{}` of {} has {value}; must be at least {least}",
            excerpt(&attribute.name),
            described(node)
        ));
    }
    let mut numbers = attribute.ints.iter().chain([&attribute.i]);
    match numbers.find(|number| number.unsigned_abs() > most) {
        None => Ok(()),
        Some(number) => Err(format!(
            "the attribute `{}` of {} is {number}; must be at most {most}",
            excerpt(&attribute.name),
            described(node)
        )),
    }
}

/// Bytes of a value in memory, and of all values that lie in the file itself.
fn stored(constant: &TensorProto) -> Option<(u64, u64)> {
    let (width, listed) = match DataType::try_from(constant.data_type).ok()? {
        DataType::Float => (4, constant.float_data.len()),
        DataType::Double => (8, constant.double_data.len()),
        DataType::Int64 | DataType::Uint64 => (8, constant.int64_data.len()),
        DataType::Int32 | DataType::Uint32 => (4, constant.int32_data.len()),
        DataType::Int16 | DataType::Uint16 | DataType::Float16 => (2, constant.int32_data.len()),
        DataType::Int8 | DataType::Uint8 | DataType::Bool => (1, constant.int32_data.len()),
        _ => return None,
    };
    let bytes = match constant.raw_data.len() as u64 {
        0 => listed as u64 * width,
        bytes => bytes,
    };
    Some((width, bytes))
}

/// Returns the number of values of a shape; `None` if a size is negative or there are too many.
fn length(sizes: impl IntoIterator<Item = i64>) -> Option<u64> {
    let mut sizes = sizes.into_iter().map(|size| u64::try_from(size).ok());
    sizes.try_fold(1_u64, |length, size| length.checked_mul(size?))
}

/// The number of values, where the analysis knows all sizes.
pub(crate) fn known_len(fact: &InferenceFact) -> Option<usize> {
    let sizes = fact.shape.concretize()?;
    let sizes: Option<Vec<i64>> = sizes.iter().map(TDim::as_i64).collect();
    usize::try_from(length(sizes?)?).ok()
}

/// Checks the size of a value as far as the analysis knows it.
///
/// # Errors
/// When it is negative or too large.
pub(crate) fn check_fact(fact: &InferenceFact) -> TractResult<()> {
    let sizes: Vec<i64> = fact
        .shape
        .dims()
        .filter_map(|size| size.concretize()?.as_i64())
        .collect();
    // A size of 0 hides the others from the product, and they may be filled in later.
    let length = length(sizes.iter().map(|&size| size.max(1)));
    ensure!(
        sizes.iter().all(|&size| size >= 0)
            && fact.shape.dims().count() <= MAX_RANK
            && length.is_some_and(|length| length <= input::MAX_WEIGHTS),
        "a value of shape {:?} is too large or has a negative size",
        fact.shape
    );
    Ok(())
}

/// Checks the memory and time that one decision needs.
///
/// # Errors
/// When a size is not known before the network runs, and when it needs too much memory or time.
pub(crate) fn check_model(model: &TypedModel) -> TractResult<()> {
    let mut need = Need::default();
    need.add(model, 1.0)?;
    for (bytes, most, what) in [
        (need.bytes, MAX_BYTES, "a decision"),
        (
            need.constants,
            input::MAX_WEIGHTS,
            "what follows from constants",
        ),
    ] {
        ensure!(
            bytes <= most as f64,
            "{what} needs {:.0} MiB; must be at most {} MiB",
            bytes / 1_048_576.0,
            most >> 20
        );
    }
    ensure!(
        need.work <= MAX_WORK,
        "a decision takes {:.1e} multiplications and additions; must be at most {MAX_WORK:.1e}",
        need.work
    );
    Ok(())
}

/// Total need of the operators of a graph.
#[derive(Default)]
struct Need {
    /// Bytes of values.
    bytes: f64,
    /// Bytes of values that follow from constants alone, which are computed once.
    constants: f64,
    work: f64,
}

impl Need {
    /// Adds the need of a graph that is computed so many times.
    fn add(&mut self, model: &TypedModel, times: f64) -> TractResult<()> {
        // True for operators on constants alone.
        let mut constant = vec![false; model.nodes().len()];
        for id in model.eval_order()? {
            let node = model.node(id);
            if node.op_is::<Const>() {
                constant[id] = true;
                continue;
            }
            let mut sources = node.inputs.iter().map(|input| constant[input.node]);
            constant[id] = !node.inputs.is_empty() && sources.all(|constant| constant);
            let inputs = model.node_input_facts(id)?;
            let outputs = model.node_output_facts(id)?;
            let mut values = 0.0_f64;
            for fact in inputs.iter().chain(&outputs) {
                values = values.max(len(fact).with_context(|| {
                    format!(
                        "{} `{}` has a size that follows from the observation; it must follow from the number of ports",
                        node.op.name(),
                        excerpt(&node.name)
                    )
                })?);
            }
            let own = Own::of(node, &inputs, &outputs, constant[id]);
            let width = |fact: &&TypedFact| fact.datum_type.size_of() as f64;
            let bytes = outputs
                .iter()
                .map(|fact| len(fact).unwrap_or_default() * width(fact));
            let bytes = own.bytes + bytes.sum::<f64>();
            match constant[id] {
                true => self.constants += bytes,
                false => self.bytes += bytes,
            }
            self.work += times * (values + own.work);
            if let Some(scan) = node.op_as::<Scan>() {
                self.add(&scan.body, times * steps(scan, &inputs))?;
            }
            if let Some(branches) = node.op_as::<IfThenElse>() {
                self.add(&branches.then_body, times)?;
                self.add(&branches.else_body, times)?;
            }
        }
        Ok(())
    }
}

/// Need of an operator beyond its inputs and outputs.
#[derive(Default)]
struct Own {
    bytes: f64,
    work: f64,
}

impl Own {
    fn of(node: &TypedNode, inputs: &[&TypedFact], outputs: &[&TypedFact], constant: bool) -> Own {
        let len = |fact: &TypedFact| len(fact).unwrap_or_default();
        let product = |sizes: &[usize]| sizes.iter().map(|&size| size as f64).product::<f64>();
        if let Some(einsum) = node.op_as::<EinSum>() {
            let terms = terms(einsum, inputs);
            let no_kernel = constant || inputs.len() > 2 || !einsum.operating_dt.is_float();
            Own {
                bytes: 0.0,
                work: if no_kernel {
                    terms * WITHOUT_KERNEL
                } else {
                    terms
                },
            }
        } else if let Some(conv) = node.op_as::<Conv>() {
            // A copy of the input for every place of the kernel.
            let pool = &conv.pool_spec;
            let places = len(outputs[0]) / pool.output_channels.max(1) as f64;
            let copies = places * product(&pool.kernel_shape) * pool.input_channels as f64;
            Own {
                bytes: copies * 4.0 + product(&pool.kernel_shape) * KERNEL_PLACE,
                work: copies * pool.output_channels as f64,
            }
        } else if let Some(deconv) = node.op_as::<Deconv>() {
            let pool = &deconv.pool_spec;
            let copies = len(inputs[0]) * product(&pool.kernel_shape) * pool.output_channels as f64;
            Own {
                bytes: copies * 4.0 + product(&pool.kernel_shape) * KERNEL_PLACE,
                work: copies,
            }
        } else if let Some(pool) = pool(node) {
            Own {
                bytes: product(&pool.kernel_shape) * KERNEL_PLACE,
                work: len(outputs[0]) * product(&pool.kernel_shape),
            }
        } else {
            Own::default()
        }
    }
}

fn pool(node: &TypedNode) -> Option<&PoolSpec> {
    let largest = node.op_as::<MaxPool>().map(|pool| &pool.pool_spec);
    largest.or_else(|| node.op_as::<SumPool>().map(|pool| &pool.pool_spec))
}

/// Returns the number of products in a sum over indices: the product of the sizes of all its indices.
fn terms(einsum: &EinSum, inputs: &[&TypedFact]) -> f64 {
    let size = |axis: &Axis| {
        let places = axis.inputs.iter().zip(inputs);
        let sizes =
            places.flat_map(|(places, fact)| places.iter().map(|&place| &fact.shape[place]));
        sizes.filter_map(TDim::as_i64).max().unwrap_or(1) as f64
    };
    einsum.axes.iter_all_axes().map(size).product()
}

/// The number of times that a loop computes its graph.
fn steps(scan: &Scan, inputs: &[&TypedFact]) -> f64 {
    let mapped = scan.input_mapping.iter().zip(inputs);
    let steps = mapped.filter_map(|(mapping, fact)| match mapping {
        InputMapping::Scan(info) => fact.shape[info.axis].as_i64(),
        _ => None,
    });
    steps.max().unwrap_or(1) as f64
}

fn len(fact: &TypedFact) -> Option<f64> {
    let sizes = fact.shape.as_concrete()?;
    Some(sizes.iter().map(|&size| size as f64).product())
}
