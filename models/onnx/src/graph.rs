//! The part of a graph that its actions need, and checks that it can be run.

use std::collections::{HashMap, HashSet};

use bufgym_util::input::excerpt;
use tract_onnx::Onnx;
use tract_onnx::pb::{GraphProto, NodeProto, ValueInfoProto};

/// Operators whose result does not follow from their inputs.
const RANDOM: [&str; 6] = [
    "Bernoulli",
    "Multinomial",
    "RandomNormal",
    "RandomNormalLike",
    "RandomUniform",
    "RandomUniformLike",
];

/// The newest version of operators that the runtime is tested with.
pub(crate) const SAFEST: i64 = 18;

/// Operators whose meaning changes with a version.
const CHANGED: [(&str, i64); 6] = [
    ("AveragePool", 19),
    ("DFT", 20),
    ("GridSample", 20),
    ("GroupNormalization", 21),
    ("QuantizeLinear", 21),
    ("Resize", 19),
];

/// Domains of the operators of the standard.
const DOMAINS: [&str; 3] = ["", "ai.onnx", "ai.onnx.ml"];

/// Removes the parts of the graph that the named outputs do not need.
pub(crate) fn prune(graph: &mut GraphProto, outputs: &[String]) {
    let nodes = &graph.node;
    let mut source = HashMap::new();
    for (index, node) in nodes.iter().enumerate() {
        source.extend(node.output.iter().map(|output| (output.clone(), index)));
    }
    let mut needed = HashSet::new();
    let mut kept = vec![false; nodes.len()];
    let mut open: Vec<String> = outputs.to_vec();
    while let Some(name) = open.pop() {
        if name.is_empty() || !needed.insert(name.clone()) {
            continue;
        }
        if let Some(&index) = source.get(&name)
            && !kept[index]
        {
            kept[index] = true;
            read_by(&nodes[index], &mut open);
        }
    }
    let mut kept = kept.iter();
    graph.node.retain(|_| kept.next().is_some_and(|kept| *kept));
    graph.initializer.retain(|c| needed.contains(&c.name));
    let place = |name: &str| outputs.iter().position(|output| output == name);
    graph.output.retain(|output| place(&output.name).is_some());
    graph.output.sort_by_key(|output| place(&output.name));
    graph.output.dedup_by(|a, b| a.name == b.name);
    graph.value_info.clear();
}

/// Checks that no two operators compute values of the same name. PyTorch writes such files if an output has the name of
/// an inner value.
///
/// # Errors
/// When two do.
pub(crate) fn check_names(graph: &GraphProto) -> Result<(), String> {
    let mut computed = HashSet::new();
    for node in &graph.node {
        graphs_in(node).try_for_each(check_names)?;
        for output in node.output.iter().filter(|output| !output.is_empty()) {
            if !computed.insert(output) {
                return Err(format!(
                    "`{}` is computed twice; give outputs other names and export the network again",
                    excerpt(output)
                ));
            }
        }
    }
    Ok(())
}

/// Adds the names that a node reads, graphs within it included.
fn read_by(node: &NodeProto, names: &mut Vec<String>) {
    names.extend(node.input.iter().cloned());
    for graph in graphs_in(node) {
        graph.node.iter().for_each(|node| read_by(node, names));
        names.extend(graph.output.iter().map(|output| output.name.clone()));
    }
}

pub(crate) fn graphs_in(node: &NodeProto) -> impl Iterator<Item = &GraphProto> {
    let attributes = node.attribute.iter();
    attributes.flat_map(|attribute| attribute.g.iter().chain(&attribute.graphs))
}

/// The inputs of a graph that have no value in it.
pub(crate) fn inputs_of(graph: &GraphProto) -> Vec<&ValueInfoProto> {
    let constants: HashSet<&str> = graph.initializer.iter().map(|c| c.name.as_str()).collect();
    let inputs = graph.input.iter();
    inputs
        .filter(|input| !constants.contains(input.name.as_str()))
        .collect()
}

/// Checks that every value is computed before it is used, by operators that the runtime knows and whose results depend
/// on their inputs alone. `outside` are the values around a graph within a node.
///
/// # Errors
/// When a check fails.
pub(crate) fn check(
    graph: &GraphProto,
    outside: &HashSet<&str>,
    operators: &Operators<'_>,
) -> Result<(), String> {
    let mut known = outside.clone();
    known.extend(graph.initializer.iter().map(|c| c.name.as_str()));
    known.extend(graph.input.iter().map(|input| input.name.as_str()));
    for node in &graph.node {
        let missing = node.input.iter().find(|input| {
            let name = input.as_str();
            !name.is_empty() && !known.contains(name)
        });
        if let Some(input) = missing {
            return Err(format!(
                "{} needs `{}`, which nothing before it computes; the file is damaged",
                described(node),
                excerpt(input)
            ));
        }
        operators.check(node)?;
        check_inner(node)?;
        for graph in graphs_in(node) {
            check(graph, &known, operators)?;
        }
        known.extend(node.output.iter().map(String::as_str));
    }
    let missing = graph.output.iter().find(|output| {
        let name = output.name.as_str();
        name.is_empty() || !known.contains(name)
    });
    match missing {
        None => Ok(()),
        Some(output) => Err(format!(
            "nothing computes the output `{}`; the file is damaged",
            excerpt(&output.name)
        )),
    }
}

/// Checks that graphs within a node have the inputs and outputs that the node needs.
///
/// # Errors
/// When they do not.
fn check_inner(node: &NodeProto) -> Result<(), String> {
    let number = |name: &str| node.attribute.iter().find(|a| a.name == name).map(|a| a.i);
    let count = |names: &[String]| names.iter().filter(|name| !name.is_empty()).count();
    for graph in graphs_in(node) {
        let (outputs, inputs) = (graph.output.len(), inputs_of(graph).len());
        let scanned = number("num_scan_inputs").map(usize::try_from);
        let fits = match (node.op_type.as_str(), scanned) {
            ("If", _) => inputs == 0 && outputs == count(&node.output),
            ("Scan", Some(Ok(scanned))) => {
                let states = inputs.checked_sub(scanned);
                inputs == count(&node.input) && states.is_some_and(|states| states <= outputs)
            }
            ("Scan", _) => false,
            _ => true,
        };
        if !fits {
            return Err(format!(
                "the graph in {} has {inputs} inputs and {outputs} outputs, which do not fit it; the file is damaged",
                described(node)
            ));
        }
    }
    Ok(())
}

/// The operators that nodes may have.
pub(crate) struct Operators<'a> {
    runtime: &'a Onnx,
    version: i64,
}

impl Operators<'_> {
    /// Returns the operators of the runtime, for a file with operators of this version.
    pub(crate) fn new(runtime: &Onnx, version: i64) -> Operators<'_> {
        Operators { runtime, version }
    }

    fn check(&self, node: &NodeProto) -> Result<(), String> {
        let operator = node.op_type.as_str();
        let said = described(node);
        if !DOMAINS.contains(&node.domain.as_str()) {
            let domain = excerpt(&node.domain);
            return Err(format!(
                "{said} is of the domain {domain}; only operators of the ONNX standard can be run"
            ));
        }
        if RANDOM.contains(&operator) {
            return Err(format!(
                "{said} draws a random number; a policy has to decide from the observation alone"
            ));
        }
        if !self.runtime.op_register.0.contains_key(operator) {
            return Err(format!(
                "{said} is an operator that the runtime does not have; export the network with others"
            ));
        }
        let since = CHANGED.iter().find(|(name, _)| *name == operator);
        if since.is_some_and(|(_, since)| self.version >= *since) {
            return Err(format!(
                "{said} is run as in version {SAFEST} of the operators only; export the network with opset_version={SAFEST}"
            ));
        }
        Ok(())
    }
}

/// Returns a description of a node for messages.
pub(crate) fn described(node: &NodeProto) -> String {
    let output = node.output.first().map_or("", String::as_str);
    let name = match node.name.as_str() {
        "" => output,
        name => name,
    };
    format!("{} `{}`", excerpt(&node.op_type), excerpt(name))
}
