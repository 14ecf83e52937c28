//! The integer network as a BPF program.
//!
//! The target is restricted C for `clang -target bpf`. The kernel's verifier follows every path. So
//! loops over ports and outputs are `bpf_loop` callbacks (Linux 5.17), each verified once; only the
//! loop over the inputs of one output is a plain loop. The program reads the ports' codes from a
//! map and writes the levels into a map. It has the type `syscall`: the control loop runs it when a
//! trigger has fired.

use std::fmt::{Display, Write as _};

use super::c::text::{comment, early_macros, table};
use super::int8::{IntegerConvolution, IntegerDense, IntegerLayer, IntegerNetwork, Rescale};

/// Name of the source file.
pub const SOURCE: &str = "ndt.bpf.c";

const FRAME: &str = include_str!("ebpf/frame.c");

const SET_LEVEL: &str = include_str!("ebpf/set_level.c");

/// The map of a second output, and the code that sets it.
const EARLY: &str = include_str!("ebpf/early.c");

/// The program. `origin` are lines about the origin of the network.
///
/// # Panics
/// When the network has not been [checked](IntegerNetwork::check).
pub fn render(network: &IntegerNetwork, origin: &[String]) -> String {
    let mut program = Program::new(network, origin);
    for (index, layer) in network.layers.iter().enumerate() {
        match layer {
            IntegerLayer::Convolution(conv) => program.convolution(network, conv),
            IntegerLayer::Dense(dense) => {
                program.dense(index, dense, index + 1 == network.layers.len());
                if network.early.is_some() && dense.rescale.is_none() {
                    program.stage().port.push_str("    set_early(port);\n");
                }
            }
        }
    }
    program.finish(network)
}

/// The generated text so far, and the callbacks that `main` will call.
struct Program {
    text: String,
    /// Callbacks over ports, in order, with a mean between two of them.
    stages: Vec<Stage>,
    /// Index of the row buffer, of two, that holds the current activations.
    row: usize,
    width: usize,
}

#[derive(Default)]
struct Stage {
    /// Statements for one port.
    port: String,
    /// Statements before the ports: the mean and its share in the sums.
    before: String,
}

impl Program {
    fn new(network: &IntegerNetwork, origin: &[String]) -> Program {
        let mut text = "// SPDX-License-Identifier: MIT OR Apache-2.0 OR GPL-2.0\n\
                        /*\n * A buffer-management policy in integer arithmetic, generated.\n"
            .to_owned();
        text.push_str(&comment(origin));
        text.push_str("\n * A code c of a feature stands for\n");
        for input in &network.inputs {
            let unit = (1.0 / input.scale).round();
            let _ = writeln!(
                text,
                "     {:<12} (c - {}) / {unit}",
                input.name, input.zero
            );
        }
        let widths = network.layers.iter().map(|layer| match layer {
            IntegerLayer::Convolution(conv) => conv.bias.len() * network.history,
            IntegerLayer::Dense(dense) => dense.outputs.max(dense.inputs),
        });
        let width = widths.max().unwrap_or(1).max(network.inputs_per_port());
        let kept = network.layers.iter().filter_map(|layer| match layer {
            IntegerLayer::Dense(dense) if dense.with_mean => Some(dense.inputs),
            _ => None,
        });
        let early = network.early.as_ref();
        let early = early.map_or_else(String::new, |early| {
            early_macros(&early.gaps, early.gap_bytes)
        });
        let _ = write!(
            text,
            " */\n#define NDT_HISTORY {}\n#define NDT_FEATURES {}\n#define NDT_LEVELS {}\n\
             /* Level l is alpha = 2^(l - NDT_UNIT_LEVEL). */\n#define NDT_UNIT_LEVEL {}\n{early}\
             /* The widest row of activations, and of those that the mean is taken of. */\n\
             #define NDT_WIDTH {width}\n#define NDT_KEPT {}\n\n",
            network.history,
            network.inputs.len(),
            network.edges.len() + 1,
            network.unit,
            kept.max().unwrap_or(1)
        );
        text.push_str(FRAME);
        array(&mut text, "__s32", "edges", &network.edges);
        text.push_str(SET_LEVEL);
        if let Some(early) = &network.early {
            text.push('\n');
            array(&mut text, "__s32", "early_edges", &early.edges);
            text.push_str(EARLY);
        }
        Program {
            text,
            stages: vec![Stage::default()],
            row: 0,
            width: network.inputs_per_port(),
        }
    }

    fn stage(&mut self) -> &mut Stage {
        self.stages.last_mut().expect("there is a first stage")
    }

    /// Emits a callback per channel, so that the verifier's work does not depend on their number.
    fn convolution(&mut self, network: &IntegerNetwork, conv: &IntegerConvolution) {
        let IntegerConvolution { filters, taps, .. } = conv;
        let channels = conv.bias.len();
        let (half, history) = (taps / 2, network.history);
        let features = network.inputs.len();
        let padding: Vec<u8> = network.inputs.iter().map(|input| input.padding).collect();
        let text = &mut self.text;
        let _ = writeln!(
            text,
            "\n/* {}: {filters} filters of {taps} steps for every feature. */",
            conv.name
        );
        array(text, "__u8", "convolution_padding", &padding);
        array(text, "__s8", "convolution_weight", &conv.weight);
        array(text, "__s32", "convolution_bias", &conv.bias);
        array(
            text,
            "__s32",
            "convolution_multiplier",
            &conv.rescale.multipliers,
        );
        let rescaled = rescaled(&conv.rescale, "convolution_multiplier[channel]");
        let _ = write!(
            text,
            "static long convolve(__u32 channel, void *context)\n{{\n    (void)context;\n    \
             if (channel >= {channels})\n        return 1;\n    \
             const __u32 feature = channel / {filters};\n    \
             if (feature >= {features})\n        return 1;\n    \
             for (__u32 step = 0; step < {history}; step++) {{\n        \
             __s32 sum = convolution_bias[channel];\n        \
             for (__u32 tap = 0; tap < {taps}; tap++) {{\n            \
             const __u32 source = step + tap;\n            \
             const __s32 code = source < {half} || source >= {history} + {half}\n                \
             ? convolution_padding[feature]\n                \
             : rows[0][(source - {half}) * {features} + feature];\n            \
             sum += convolution_weight[channel * {taps} + tap] * code;\n        }}\n        \
             rows[1][channel * {history} + step] = {rescaled};\n    }}\n    return 0;\n}}\n"
        );
        let _ = writeln!(
            self.stage().port,
            "    bpf_loop({channels}, convolve, 0, 0);"
        );
        self.row = 1;
        self.width = channels * history;
    }

    fn dense(&mut self, index: usize, dense: &IntegerDense, last: bool) {
        let IntegerDense {
            inputs, outputs, ..
        } = *dense;
        let name = format!("layer_{index}");
        let text = &mut self.text;
        let _ = writeln!(
            text,
            "\n/* {}: {inputs} inputs, {outputs} outputs. */",
            dense.name
        );
        let rows = dense.weight.chunks_exact(dense.row_weights());
        let own: Vec<i8> = rows
            .clone()
            .flat_map(|row| row[..inputs].to_vec())
            .collect();
        array(text, "__s8", &format!("{name}_weight"), &own);
        array(text, "__s32", &format!("{name}_bias"), &dense.bias);
        let mut start = format!("{name}_bias[output]");
        if dense.with_mean {
            let mean: Vec<i8> = rows.flat_map(|row| row[inputs..].to_vec()).collect();
            array(text, "__s8", &format!("{name}_mean_weight"), &mean);
            let _ = write!(
                text,
                "static __s32 {name}_start[{outputs}];\n\n\
                 static long {name}_share(__u32 output, void *context)\n{{\n    (void)context;\n    \
                 if (output >= {outputs})\n        return 1;\n    __s32 sum = 0;\n    \
                 for (__u32 k = 0; k < {inputs}; k++)\n        \
                 sum += {name}_mean_weight[output * {inputs} + k] * means[k];\n    \
                 {name}_start[output] = {name}_bias[output] + ((sum + 128) >> 8);\n    \
                 return 0;\n}}\n\n"
            );
            self.begin_stage(inputs);
            let before = &mut self.stage().before;
            let _ = write!(
                before,
                "    bpf_loop({inputs}, take_mean, 0, 0);\n    bpf_loop({outputs}, {name}_share, 0, 0);\n"
            );
            start = format!("{name}_start[output]");
        }
        let (from, to) = (self.row, 1 - self.row);
        let text = &mut self.text;
        if let Some(rescale) = &dense.rescale {
            array(
                text,
                "__s32",
                &format!("{name}_multiplier"),
                &rescale.multipliers,
            );
        }
        let store = match &dense.rescale {
            Some(rescale) => {
                let rescaled = rescaled(rescale, &format!("{name}_multiplier[output]"));
                format!("rows[{to}][output] = {rescaled};")
            }
            None if outputs == 1 => "result = sum;".to_owned(),
            None => {
                "if (output == 0)\n        result = sum;\n    else\n        early_result = sum;"
                    .to_owned()
            }
        };
        let _ = write!(
            text,
            "static long {name}(__u32 output, void *context)\n{{\n    (void)context;\n    \
             if (output >= {outputs})\n        return 1;\n    __s32 sum = {start};\n    \
             for (__u32 k = 0; k < {inputs}; k++)\n        \
             sum += {name}_weight[output * {inputs} + k] * rows[{from}][k];\n    \
             {store}\n    return 0;\n}}\n"
        );
        let _ = writeln!(self.stage().port, "    bpf_loop({outputs}, {name}, 0, 0);");
        (self.row, self.width) = (to, outputs);
        if last {
            self.stage().port.push_str("    set_level(port);\n");
        }
    }

    /// Ends a stage: keeps its rows, with which the next stage begins.
    fn begin_stage(&mut self, width: usize) {
        debug_assert_eq!(self.width, width);
        let row = self.row;
        let keep = format!(
            "    for (__u32 k = 0; k < {width}; k++)\n        kept[port][k] = rows[{row}][k];\n"
        );
        self.stage().port.push_str(&keep);
        let restore = format!(
            "    for (__u32 k = 0; k < {width}; k++)\n        rows[0][k] = kept[port][k];\n"
        );
        self.stages.push(Stage {
            port: restore,
            before: String::new(),
        });
        self.row = 0;
    }

    fn finish(mut self, network: &IntegerNetwork) -> String {
        let text = &mut self.text;
        let inputs = network.inputs_per_port();
        let mut main = String::new();
        for (number, stage) in self.stages.iter().enumerate() {
            let load = match number {
                0 => format!(
                    "    const __u32 key = port;\n    \
                     const struct ndt_port *state = bpf_map_lookup_elem(&ndt_ports, &key);\n    \
                     if (!state)\n        return 1;\n    \
                     for (__u32 k = 0; k < {inputs}; k++)\n        rows[0][k] = state->codes[k];\n"
                ),
                _ => String::new(),
            };
            let _ = write!(
                text,
                "\nstatic long stage_{number}(__u32 port, void *context)\n{{\n    (void)context;\n    \
                 if (port >= NDT_MAX_PORTS)\n        return 1;\n{load}{}    return 0;\n}}\n",
                stage.port
            );
            let _ = writeln!(
                main,
                "{}    bpf_loop(ports, stage_{number}, 0, 0);",
                stage.before
            );
        }
        let _ = write!(
            text,
            "\nstatic void compute(void)\n{{\n{main}}}\n\n\
             SEC(\"syscall\")\nint ndt_decide(void *context)\n{{\n    (void)context;\n    \
             const __u32 zero = 0;\n    const __u32 *count = bpf_map_lookup_elem(&ndt_count, &zero);\n    \
             if (!count || *count == 0 || *count > NDT_MAX_PORTS)\n        return NDT_ERROR_PORTS;\n    \
             if (__sync_lock_test_and_set(&busy, 1))\n        return NDT_ERROR_BUSY;\n    \
             ports = *count;\n    reciprocal = ((1u << 24) + ports / 2) / ports;\n    compute();\n    \
             __sync_lock_test_and_set(&busy, 0);\n    return NDT_OK;\n}}\n\n\
             char ndt_license[] SEC(\"license\") = \"Dual MIT/GPL\";\n"
        );
        self.text
    }
}

fn rescaled(rescale: &Rescale, multiplier: &str) -> String {
    let Rescale { cap, pre, post, .. } = rescale;
    format!("eight_bits(sum, {cap}, {pre}, {multiplier}, {post})")
}

fn array<T: Display>(text: &mut String, kind: &str, name: &str, values: &[T]) {
    let declaration = format!("NDT_TABLE {kind} {name}[{}]", values.len().max(1));
    table(text, &declaration, values);
}
