//! The integer network as C99.
//!
//! The code uses sums of bytes, multiplications and shifts, without allocation, division or
//! floating point. The dense layers and the convolution have a plain form and forms for AVX-512
//! VNNI and AVX2, chosen when the C is compiled; all give the same bits. Ports with equal inputs
//! are computed once.

use std::fmt::{Display, Write as _};

use super::c::text::{comment, early_macros, identifier, table};
use super::int8::{
    EarlyOutput, IntegerConvolution, IntegerDense, IntegerLayer, IntegerNetwork, MAX_PORTS, Rescale,
};

/// Name of the header.
pub const HEADER: &str = "ndt_int8.h";
/// Name of the source file.
pub const SOURCE: &str = "ndt_int8.c";

const KERNELS: &str = include_str!("c_int8/kernels.c");
const CONVOLUTION: &str = include_str!("c_int8/convolution.c");
const DENSE: &str = include_str!("c_int8/dense.c");
const MEAN: &str = include_str!("c_int8/mean.c");
const PORTS: &str = include_str!("c_int8/ports.c");
/// The rest of `ndt_int8_forward`, and `ndt_int8_decide`, for a network with two outputs.
const BOTH: &str = include_str!("c_int8/both.c");

/// The header and the source file. `origin` are lines about the origin of the network.
///
/// # Panics
/// When the network has not been [checked](IntegerNetwork::check).
pub fn render(network: &IntegerNetwork, origin: &[String]) -> [String; 2] {
    let plan = Plan::new(network);
    [
        header_text(network, &plan, origin),
        source_text(network, &plan, origin),
    ]
}

/// A dense layer in the memory layout of the generated code.
struct Packed<'a> {
    /// Prefix of the names of the layer's arrays, which no other layer has.
    name: String,
    dense: &'a IntegerDense,
    /// `[groups of 4 inputs][outputs][4]`, padded with zeros.
    own: Vec<i8>,
    /// `[inputs][outputs]` for the mean; empty where the layer has no mean.
    mean: Vec<i8>,
    groups: usize,
    /// A multiple of 16.
    outputs: usize,
}

/// Layers between two means, computed port by port.
#[derive(Default)]
struct Stage<'a> {
    convolution: bool,
    layers: Vec<Packed<'a>>,
}

/// Order of computation of the layers.
struct Plan<'a> {
    stages: Vec<Stage<'a>>,
    /// Weights of the last layer in the order of its inputs.
    last: &'a IntegerDense,
    /// The widest row of activations.
    width: usize,
    /// The widest row that is kept between stages.
    kept: usize,
}

impl<'a> Plan<'a> {
    fn new(network: &'a IntegerNetwork) -> Plan<'a> {
        let mut stages = vec![Stage::default()];
        let mut order: Vec<usize> = (0..network.inputs_per_port()).collect();
        let mut widths = vec![order.len()];
        let mut kept = 1;
        let mut last = None;
        for (index, layer) in network.layers.iter().enumerate() {
            match layer {
                IntegerLayer::Convolution(conv) => {
                    let channels = conv.bias.len();
                    // The code is step-major; the description is channel-major.
                    let place = |i: usize| i % channels * network.history + i / channels;
                    order = (0..channels * network.history).map(place).collect();
                    stages[0].convolution = true;
                    widths.push(order.len());
                }
                IntegerLayer::Dense(dense) => {
                    if dense.with_mean {
                        kept = kept.max(padded(order.len()));
                        stages.push(Stage::default());
                    }
                    let stage = stages.last_mut().expect("there is a first stage");
                    stage.layers.push(Packed::new(index, dense, &order));
                    order = (0..dense.outputs).collect();
                    widths.push(dense.outputs);
                    last = Some(dense);
                }
            }
        }
        Plan {
            stages,
            last: last.expect("a checked network ends in a dense layer"),
            width: widths.into_iter().map(padded).max().unwrap_or(16),
            kept,
        }
    }
}

/// A width rounded up to whole vectors.
fn padded(width: usize) -> usize {
    width.next_multiple_of(16)
}

impl<'a> Packed<'a> {
    /// `order[k]` is the number in the description of the input at place `k`.
    fn new(index: usize, dense: &'a IntegerDense, order: &[usize]) -> Packed<'a> {
        let groups = dense.inputs.div_ceil(4);
        let outputs = padded(dense.outputs);
        let mut own = vec![0; groups * outputs * 4];
        let mut mean = vec![
            0;
            if dense.with_mean {
                dense.inputs * outputs
            } else {
                0
            }
        ];
        let rows = dense.weight.chunks_exact(dense.row_weights());
        for (output, row) in rows.enumerate() {
            for (place, &input) in order.iter().enumerate() {
                own[(place / 4 * outputs + output) * 4 + place % 4] = row[input];
                if dense.with_mean {
                    mean[place * outputs + output] = row[dense.inputs + input];
                }
            }
        }
        Packed {
            name: format!("ndt_layer_{index}_{}", identifier(&dense.name)),
            dense,
            own,
            mean,
            groups,
            outputs,
        }
    }
}

fn header_text(network: &IntegerNetwork, plan: &Plan<'_>, origin: &[String]) -> String {
    let mut text = intro(origin);
    let mut line = |args: std::fmt::Arguments<'_>| {
        text.push_str(&args.to_string());
        text.push('\n');
    };
    line(format_args!(
        "#ifndef NDT_INT8_H\n#define NDT_INT8_H\n\n#include <stdint.h>\n"
    ));
    line(format_args!(
        "/* Ports that the workspace has room for, at most {MAX_PORTS}. */"
    ));
    line(format_args!(
        "#ifndef NDT_MAX_PORTS\n#define NDT_MAX_PORTS 256\n#endif\n"
    ));
    line(format_args!("#define NDT_HISTORY {}", network.history));
    line(format_args!(
        "#define NDT_FEATURES {}",
        network.inputs.len()
    ));
    line(format_args!(
        "#define NDT_LEVELS {}",
        network.edges.len() + 1
    ));
    line(format_args!(
        "/* Level l is alpha = 2^(l - NDT_UNIT_LEVEL). */"
    ));
    line(format_args!("#define NDT_UNIT_LEVEL {}", network.unit));
    let early = network.early.as_ref();
    let macros = early.map_or_else(String::new, |early| {
        early_macros(&early.gaps, early.gap_bytes)
    });
    line(format_args!("{macros}"));
    line(format_args!(
        "#ifndef NDT_STATUS\n#define NDT_STATUS\nenum {{ NDT_OK = 0, NDT_ERROR_PORTS = -1 }};\n#endif\n"
    ));
    line(format_args!(
        "/* Codes: [ports][NDT_HISTORY][NDT_FEATURES], newest step last. A code c stands for"
    ));
    for input in &network.inputs {
        let unit = (1.0 / input.scale).round();
        line(format_args!(
            "     {:<12} (c - {}) / {unit}",
            input.name, input.zero
        ));
    }
    line(format_args!(
        "*/\n\n/* What a call needs; it is not initialised and holds nothing between calls. */\n\
         struct ndt_int8_workspace {{\n    \
         uint32_t row[NDT_MAX_PORTS];\n    \
         uint32_t first[NDT_MAX_PORTS];\n    \
         int32_t outputs[NDT_MAX_PORTS{}];\n    \
         uint8_t kept[NDT_MAX_PORTS][{}];\n}};\n",
        early.map_or("", |_| " * NDT_OUTPUTS"),
        plan.kept
    ));
    if let Some(early) = early {
        line(format_args!("{}", early_functions(network, early)));
        return text;
    }
    line(format_args!(
        "/* The output of every port, [ports]: about mu / {:e}. NDT_ERROR_PORTS, and nothing is\n   \
         written, for no port or more than NDT_MAX_PORTS. */\n\
         int ndt_int8_forward(struct ndt_int8_workspace *workspace, const uint8_t *codes,\n                     \
         uint32_t ports, int32_t *outputs);\n",
        network.output_scale
    ));
    line(format_args!(
        "/* The level of every port, [ports]; errors as above. */\n\
         int ndt_int8_decide(struct ndt_int8_workspace *workspace, const uint8_t *codes,\n                    \
         uint32_t ports, uint8_t *levels);\n\n#endif"
    ));
    text
}

/// Returns the header's text about the functions of a network with two outputs.
fn early_functions(network: &IntegerNetwork, early: &EarlyOutput) -> String {
    format!(
        "/* The outputs of every port, [ports][NDT_OUTPUTS]: about mu / {:e} for alpha,\n   \
         mu / {:e} for early drop. NDT_ERROR_PORTS, and nothing is written, for no port or more\n   \
         than NDT_MAX_PORTS. */\n\
         int ndt_int8_forward(struct ndt_int8_workspace *workspace, const uint8_t *codes,\n                     \
         uint32_t ports, int32_t *outputs);\n\n\
         /* The level of alpha and that of early drop of every port, [ports] each; errors as above. Early\n   \
         drop takes, of the packets that find a long queue, one in a gap that is drawn from 1 to\n   \
         NDT_EARLY_GAPS[level] {}. */\n\
         int ndt_int8_decide(struct ndt_int8_workspace *workspace, const uint8_t *codes,\n                    \
         uint32_t ports, uint8_t *levels, uint8_t *early);\n\n#endif",
        network.output_scale,
        early.output_scale,
        early.gap_bytes.map_or("packets", |_| "shortest gaps")
    )
}

fn source_text(network: &IntegerNetwork, plan: &Plan<'_>, origin: &[String]) -> String {
    let mut text = intro(origin);
    text.push_str("#include \"ndt_int8.h\"\n\n#include <string.h>\n\n");
    let _ = write!(
        text,
        "#if NDT_MAX_PORTS < 1 || NDT_MAX_PORTS > {MAX_PORTS}\n\
         #error \"NDT_MAX_PORTS must be 1 to {MAX_PORTS}\"\n#endif\n\n\
         /* The widest row of activations. */\n#define NDT_WIDTH {}\n\n",
        plan.width
    );
    text.push_str(KERNELS);
    if let Some(IntegerLayer::Convolution(conv)) = network.layers.first() {
        convolution(&mut text, network, conv);
    }
    let layers = plan.stages.iter().flat_map(|stage| &stage.layers);
    let hidden: Vec<_> = layers
        .filter(|layer| layer.dense.rescale.is_some())
        .collect();
    if !hidden.is_empty() {
        text.push_str(DENSE);
    }
    hidden.into_iter().for_each(|layer| dense(&mut text, layer));
    last(&mut text, network, plan);
    text.push_str(PORTS);
    if plan.stages.len() > 1 {
        text.push_str(MEAN);
    }
    for (number, stage) in plan.stages.iter().enumerate() {
        stage_function(&mut text, network, plan, number, stage);
    }
    entry(&mut text, network, plan);
    text
}

fn intro(origin: &[String]) -> String {
    format!(
        "/*\n * A buffer-management policy in integer arithmetic, generated.\n{}\n */\n",
        comment(origin)
    )
}

fn array<T: Display>(text: &mut String, kind: &str, name: &str, values: &[T]) {
    let length = values.len().max(1);
    let declaration = format!("static const {kind} {name}[{length}] NDT_ALIGNED");
    table(text, &declaration, values);
}

fn with_zeros<T: Copy + Default>(values: &[T], length: usize) -> Vec<T> {
    let zeros = std::iter::repeat_n(T::default(), length - values.len());
    values.iter().copied().chain(zeros).collect()
}

fn rescale_value(rescale: &Rescale, multiplier: &str) -> String {
    let Rescale { cap, pre, post, .. } = rescale;
    format!("{{ {cap}, {pre}, {post}, {multiplier} }}")
}

fn convolution(text: &mut String, network: &IntegerNetwork, conv: &IntegerConvolution) {
    let tap_bytes = conv.taps.next_multiple_of(4);
    let weight: Vec<i8> = conv
        .weight
        .chunks_exact(conv.taps)
        .flat_map(|filter| with_zeros(filter, tap_bytes))
        .collect();
    let padding: Vec<u8> = network.inputs.iter().map(|input| input.padding).collect();
    let (filters, taps) = (conv.filters, conv.taps);
    let _ = write!(
        text,
        "\n/* {}: {filters} filters of {taps} steps for every feature. */\n\
         #define NDT_FILTERS {filters}\n#define NDT_TAPS {taps}\n#define NDT_TAP_BYTES {tap_bytes}\n",
        conv.name
    );
    array(text, "uint8_t", "ndt_padding", &padding);
    array(text, "int8_t", "ndt_convolution_weight", &weight);
    array(text, "int32_t", "ndt_convolution_bias", &conv.bias);
    array(
        text,
        "int16_t",
        "ndt_convolution_multiplier",
        &conv.rescale.multipliers,
    );
    let value = rescale_value(&conv.rescale, "ndt_convolution_multiplier");
    let _ = writeln!(
        text,
        "static const struct ndt_rescale ndt_convolution_rescale = {value};"
    );
    text.push_str(CONVOLUTION);
}

fn dense(text: &mut String, layer: &Packed<'_>) {
    let Some(rescale) = &layer.dense.rescale else {
        return;
    };
    let name = &layer.name;
    let (inputs, outputs) = (layer.dense.inputs, layer.dense.outputs);
    let mean = if layer.dense.with_mean {
        ", and as many of the mean"
    } else {
        ""
    };
    let _ = writeln!(
        text,
        "\n/* {}: {inputs} inputs{mean}, {outputs} outputs. */",
        layer.dense.name
    );
    array(text, "int8_t", &format!("{name}_weight"), &layer.own);
    if layer.dense.with_mean {
        array(text, "int8_t", &format!("{name}_mean_weight"), &layer.mean);
    }
    array(
        text,
        "int32_t",
        &format!("{name}_bias"),
        &with_zeros(&layer.dense.bias, layer.outputs),
    );
    let multipliers = with_zeros(&rescale.multipliers, layer.outputs);
    array(text, "int16_t", &format!("{name}_multiplier"), &multipliers);
    let value = rescale_value(rescale, &format!("{name}_multiplier"));
    let _ = writeln!(
        text,
        "static const struct ndt_dense {name} = {{ {name}_weight, {}, {}, {value} }};",
        layer.groups, layer.outputs
    );
}

fn last(text: &mut String, network: &IntegerNetwork, plan: &Plan<'_>) {
    let outputs = match network.outputs() {
        1 => "one output".to_owned(),
        more => format!("{more} outputs, [outputs][inputs]"),
    };
    let _ = writeln!(text, "\n/* {}: {outputs}. */", plan.last.name);
    // The packed weights are in the order of the inputs, which depends on the layer before.
    let packed = plan.stages.last().and_then(|stage| stage.layers.last());
    let own: Vec<i8> = packed.map_or_else(Vec::new, |packed| {
        let inputs = packed.dense.inputs;
        let at = |output| {
            let place = move |place| (place / 4 * packed.outputs + output) * 4 + place % 4;
            (0..inputs).map(move |input| packed.own[place(input)])
        };
        (0..network.outputs()).flat_map(at).collect()
    });
    array(text, "int8_t", "ndt_last_weight", &own);
    if plan.last.with_mean {
        let mean = packed.map_or(&[][..], |packed| &packed.mean);
        array(text, "int8_t", "ndt_last_mean_weight", mean);
    }
    array(
        text,
        "int32_t",
        "ndt_last_bias",
        &with_zeros(&plan.last.bias, 16),
    );
    text.push_str("\n/* What an output must reach for level 1, 2, ... */\n");
    array(text, "int32_t", "ndt_edges", &network.edges);
    if let Some(early) = &network.early {
        text.push_str("\n/* The same for early drop. */\n");
        array(text, "int32_t", "ndt_early_edges", &early.edges);
    }
}

/// Writes the function that computes the rows from `row` on of a stage, at most `NDT_BLOCK`, from the rows that the
/// stage before kept.
fn stage_function(
    text: &mut String,
    network: &IntegerNetwork,
    plan: &Plan<'_>,
    number: usize,
    stage: &Stage<'_>,
) {
    let inputs = network.inputs_per_port();
    let is_last = number + 1 == plan.stages.len();
    let hidden = stage
        .layers
        .iter()
        .any(|layer| layer.dense.rescale.is_some());
    let pointers = match hidden {
        true => "    const uint8_t *x[NDT_BLOCK];\n    uint8_t *y[NDT_BLOCK];\n",
        false => "",
    };
    let parameter = match number {
        0 => "const uint8_t *codes",
        _ => "const int32_t *start",
    };
    let _ = write!(
        text,
        "\nstatic void ndt_stage_{number}(struct ndt_int8_workspace *workspace, {parameter},\n                        \
         uint32_t row, uint32_t rows)\n{{\n    \
         uint8_t buffers[2][NDT_BLOCK][NDT_WIDTH] NDT_ALIGNED;\n{pointers}    \
         for (uint32_t r = 0; r < NDT_BLOCK; r++) {{\n        \
         /* What is left of a block is filled up with its last row. */\n        \
         const uint32_t from = row + (r < rows ? r : rows - 1);\n"
    );
    let first = match (number, stage.convolution) {
        (0, true) => format!(
            "        memset(buffers[0][r], 0, NDT_WIDTH);\n        \
             ndt_convolve(codes + (size_t)workspace->first[from] * {inputs}, buffers[0][r]);\n"
        ),
        (0, false) => format!(
            "        memset(buffers[0][r], 0, NDT_WIDTH);\n        \
             memcpy(buffers[0][r], codes + (size_t)workspace->first[from] * {inputs}, {inputs});\n"
        ),
        _ => {
            "        memcpy(buffers[0][r], workspace->kept[from], sizeof workspace->kept[from]);\n"
                .to_owned()
        }
    };
    text.push_str(&first);
    text.push_str("    }\n");
    let mut current = 0;
    for (index, layer) in stage.layers.iter().enumerate() {
        if layer.dense.rescale.is_none() {
            break;
        }
        let name = &layer.name;
        let start = match (index, layer.dense.with_mean) {
            (0, true) => "start".to_owned(),
            _ => format!("{name}_bias"),
        };
        let _ = write!(
            text,
            "    for (uint32_t r = 0; r < NDT_BLOCK; r++) {{\n        \
             x[r] = buffers[{current}][r];\n        y[r] = buffers[{}][r];\n    }}\n    \
             ndt_dense_block(&{name}, {start}, x, y);\n",
            1 - current
        );
        current = 1 - current;
    }
    if is_last {
        let start = match stage.layers.len() == 1 && plan.last.with_mean {
            true => "start",
            false => "ndt_last_bias",
        };
        if network.outputs() > 1 {
            let inputs = plan.last.inputs;
            let _ = write!(
                text,
                "    for (uint32_t r = 0; r < rows; r++) {{\n        \
                 for (uint32_t o = 0; o < NDT_OUTPUTS; o++) {{\n            \
                 int32_t sum = {start}[o];\n            \
                 for (uint32_t k = 0; k < {inputs}; k++) {{\n                \
                 sum += ndt_last_weight[o * {inputs} + k] * buffers[{current}][r][k];\n            }}\n            \
                 workspace->outputs[(row + r) * NDT_OUTPUTS + o] = sum;\n        }}\n    }}\n}}\n"
            );
            return;
        }
        let _ = write!(
            text,
            "    for (uint32_t r = 0; r < rows; r++) {{\n        int32_t sum = {start}[0];\n        \
             for (uint32_t k = 0; k < {}; k++) {{\n            \
             sum += ndt_last_weight[k] * buffers[{current}][r][k];\n        }}\n        \
             workspace->outputs[row + r] = sum;\n    }}\n}}\n",
            plan.last.inputs
        );
    } else {
        let _ = write!(
            text,
            "    for (uint32_t r = 0; r < rows; r++) {{\n        \
             memcpy(workspace->kept[row + r], buffers[{current}][r], sizeof workspace->kept[row + r]);\n    \
             }}\n}}\n"
        );
    }
}

/// The two functions of the header.
fn entry(text: &mut String, network: &IntegerNetwork, plan: &Plan<'_>) {
    text.push_str(
        "\nint ndt_int8_forward(struct ndt_int8_workspace *workspace, const uint8_t *codes,\n                     \
         uint32_t ports, int32_t *outputs)\n{\n    uint32_t distinct;\n",
    );
    let has_mean = plan.stages.len() > 1;
    if has_mean {
        text.push_str("    int32_t start[NDT_WIDTH] NDT_ALIGNED;\n");
    }
    text.push_str(
        "    if (ports == 0 || ports > NDT_MAX_PORTS) {\n        return NDT_ERROR_PORTS;\n    }\n    \
         distinct = ndt_find_distinct(workspace, codes, ports);\n",
    );
    for (number, stage) in plan.stages.iter().enumerate() {
        let argument = if number == 0 { "codes" } else { "start" };
        if number > 0 {
            let layer = &stage.layers[0];
            let name = match layer.dense.rescale {
                Some(_) => &layer.name,
                None => "ndt_last",
            };
            let _ = writeln!(
                text,
                "    ndt_add_mean(workspace, ports, {}, {}, {name}_mean_weight, {name}_bias, start);",
                layer.dense.inputs, layer.outputs
            );
        }
        let _ = write!(
            text,
            "    for (uint32_t row = 0; row < distinct; row += NDT_BLOCK) {{\n        \
             const uint32_t left = distinct - row;\n        \
             ndt_stage_{number}(workspace, {argument}, row, left < NDT_BLOCK ? left : NDT_BLOCK);\n    }}\n"
        );
    }
    if network.early.is_some() {
        text.push_str(BOTH);
        return;
    }
    text.push_str(
        "    for (uint32_t port = 0; port < ports; port++) {\n        \
         outputs[port] = workspace->outputs[workspace->row[port]];\n    }\n    return NDT_OK;\n}\n\n\
         int ndt_int8_decide(struct ndt_int8_workspace *workspace, const uint8_t *codes,\n                    \
         uint32_t ports, uint8_t *levels)\n{\n    int32_t outputs[NDT_MAX_PORTS];\n    \
         const int result = ndt_int8_forward(workspace, codes, ports, outputs);\n    \
         if (result != NDT_OK) {\n        return result;\n    }\n    \
         for (uint32_t port = 0; port < ports; port++) {\n        uint8_t level = 0;\n        \
         for (uint32_t edge = 0; edge < NDT_LEVELS - 1; edge++) {\n            \
         level = (uint8_t)(level + (outputs[port] >= ndt_edges[edge]));\n        }\n        \
         levels[port] = level;\n    }\n    return NDT_OK;\n}\n",
    );
}
