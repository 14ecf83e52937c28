//! C99 in 32-bit floating point, for control processors.
//!
//! The code computes the layers for four ports at a time, so that every weight is read from memory
//! once for all four. It sums thirty-two outputs at once, which compilers turn into vector
//! instructions; sizes are padded with zeros to multiples of thirty-two. A mean over ports cuts the
//! network into parts, because all ports must be computed up to there first.

pub(super) mod text;

use super::network::{self, Convolution, Network};
use super::stages::{Stage, Stages};
use super::{ExportError, File};
use bufgym_models::checkpoint::Manifest;
use bufgym_util::convert::single;
use text::{array, fill};

/// Prefix of the names of files, functions and types.
pub const PREFIX: &str = "ndt_f32";

/// Ports that are computed together.
const BLOCK: usize = 4;
/// Outputs that are summed up together.
const TILE: usize = 32;

/// C code that turns the mean of a port into its level, where there is one output.
const LEVEL: &str = "        uint8_t level = 0;
        for (edge = 0; edge < NDT_LEVELS - 1; edge++)
            level = (uint8_t)(level + (workspace->mean[port] >= level_edges[edge]));
        levels[port] = level;";

/// Lines of the header's comment about the levels of early drop.
const EARLY_LEVELS: &str = " * Levels of early drop: of the packets that find a long queue, level l drops one in a gap that is
 * drawn from 1 to NDT_EARLY_GAPS[l] packets, or none where that is 0; l from 0 to NDT_EARLY_LEVELS - 1.
 * Before the first decision every port has level 0.
";

/// `PREFIX.h` and `PREFIX.c`.
///
/// # Errors
/// When the layers do not form a network, or a number is out of range.
///
/// # Panics
/// When `prefix` is not an identifier of C.
pub fn render(
    network: &Network,
    manifest: &Manifest,
    prefix: &str,
) -> Result<Vec<File>, ExportError> {
    assert_eq!(
        prefix,
        text::identifier(prefix),
        "a prefix is an identifier"
    );
    let stages = Stages::of(network, text::identifier)?;
    let program = Program::new(network, &stages);
    let about = text::comment(&text::about(manifest));
    let early = network.gaps.as_deref();
    let when_early = |text: &str| early.map_or("", |_| text).to_owned();
    let header = [
        ("ABOUT", about.clone()),
        ("FEATURES", text::comment(&text::features(network))),
        ("GUARD", format!("{}_H", prefix.to_uppercase())),
        ("HISTORY", network.history.to_string()),
        ("FEATURE_COUNT", network.features.len().to_string()),
        ("LEVELS", network.actions.levels.to_string()),
        ("UNIT", network.actions.unit.to_string()),
        ("AND_EARLY", when_early("and the level of early drop\n * ")),
        ("EARLY_LEVELS", when_early(EARLY_LEVELS)),
        (
            "EARLY_MACROS",
            early.map_or_else(String::new, |gaps| {
                text::early_macros(gaps, network.gap_bytes)
            }),
        ),
        ("PLURAL", when_early("s")),
        (
            "OUTPUTS",
            when_early("[NDT_OUTPUTS], for alpha and for early drop"),
        ),
        (
            "EARLY_LEVEL",
            when_early("That of early drop; early: [ports].\n * "),
        ),
        ("EARLY_ARGUMENT", when_early(", uint8_t *early")),
        ("WORKSPACE", program.workspace()),
        ("PREFIX", prefix.to_owned()),
    ];
    let source = [
        ("ABOUT", about),
        ("BLOCK", BLOCK.to_string()),
        ("TILE", TILE.to_string()),
        ("WIDEST", program.widest().to_string()),
        ("WEIGHTS", program.weights()),
        ("EDGES", edges(network.actions.levels)),
        ("EARLY_EDGES", early.map_or_else(String::new, early_edges)),
        ("EARLY_ARGUMENT", when_early(", uint8_t *early")),
        ("LEVELS", program.levels()),
        ("INPUT", program.input()),
        ("HELPERS", program.helpers()),
        ("BODY", program.body()),
        ("PREFIX", prefix.to_owned()),
    ];
    Ok(vec![
        File::new(
            format!("{prefix}.h"),
            fill(include_str!("c/template.h"), &header),
        ),
        File::new(
            format!("{prefix}.c"),
            fill(include_str!("c/template.c"), &source),
        ),
    ])
}

/// The edges between so many levels, in lines.
fn edges(levels: usize) -> String {
    let edges = network::edges(levels).into_iter();
    text::rows(&edges.map(single).collect::<Vec<f32>>())
}

/// The array of the edges between the levels of early drop.
fn early_edges(gaps: &[u32]) -> String {
    format!(
        "\n/* The same for early drop. */\n\
         static const float early_edges[NDT_EARLY_LEVELS - 1] = {{\n{}\n}};\n",
        edges(gaps.len())
    )
}

/// The generated code of one network.
struct Program<'a> {
    network: &'a Network,
    stages: &'a Stages<'a>,
    parts: Vec<&'a [Stage<'a>]>,
}

impl<'a> Program<'a> {
    fn new(network: &'a Network, stages: &'a Stages<'a>) -> Program<'a> {
        // A stage that needs the mean begins a new part.
        let mut parts = Vec::new();
        let mut rest = &stages.stages[..];
        loop {
            let ends = |stage: &Stage<'_>| stage.mean.is_some();
            let skip = usize::from(!parts.is_empty());
            let end = rest.iter().skip(skip).position(ends);
            let (part, behind) = rest.split_at(end.map_or(rest.len(), |end| end + skip));
            parts.push(part);
            rest = behind;
            if rest.is_empty() {
                break;
            }
        }
        Program {
            network,
            stages,
            parts,
        }
    }

    /// Values of a port at the end of every part.
    fn kept(&self) -> Vec<usize> {
        let mut width = self.stages.inputs;
        let of = |part: &&[Stage<'_>]| {
            width = part.last().map_or(width, |stage| stage.outputs);
            width
        };
        self.parts.iter().map(of).collect()
    }

    fn widest(&self) -> usize {
        let widths = self.stages.stages.iter().map(|stage| padded(stage.outputs));
        widths.fold(padded(self.stages.inputs), usize::max)
    }

    fn workspace(&self) -> String {
        let mut lines = vec![format!(
            "    /* Values of {BLOCK} ports before and after a layer. */\n    float even[{0}];\n    float odd[{0}];",
            BLOCK * self.widest()
        )];
        let kept = self.kept();
        let between = &kept[..kept.len() - 1];
        for (part, width) in between.iter().enumerate() {
            lines.push(format!(
                "    /* Values of which the mean over ports is taken. */\n    float part_{part}[NDT_MAX_PORTS * {width}];"
            ));
        }
        if let Some(width) = between.iter().max() {
            let widths = self.parts[1..].iter().map(|part| padded(part[0].outputs));
            let start = widths.max().unwrap_or(TILE);
            lines.push(format!(
                "    float average[{width}];\n    /* What the mean adds to a layer, with the bias. */\n    float start[{start}];"
            ));
        }
        let outputs = match self.network.gaps {
            None => "",
            Some(_) => " * NDT_OUTPUTS",
        };
        lines.push(format!("    float mean[NDT_MAX_PORTS{outputs}];"));
        lines.join("\n")
    }

    fn weights(&self) -> String {
        let mut blocks = Vec::new();
        if let Some((name, conv)) = &self.stages.convolution {
            blocks.push(convolution(name, conv, self.network.features.len()));
        }
        for (index, stage) in self.stages.stages.iter().enumerate() {
            let order = match (&self.stages.convolution, index) {
                (Some(_), 0) => step_major(stage.inputs, self.network.history),
                _ => (0..stage.inputs).collect(),
            };
            blocks.push(dense(stage, &order));
        }
        blocks.join("\n\n")
    }

    /// The function that reads an observation, with the data that it needs.
    fn input(&self) -> String {
        let of = |value: fn(&bufgym_models::checkpoint::Feature) -> f32| -> Vec<f32> {
            self.network.features.iter().map(value).collect()
        };
        let (means, scales) = (
            of(|feature| feature.mean),
            of(|feature| single(1.0 / f64::from(feature.deviation))),
        );
        let plain = means.iter().all(|&mean| mean == 0.0) && scales.iter().all(|&s| s == 1.0);
        let mut blocks = Vec::new();
        if !plain {
            blocks.push(format!(
                "/* Normalisation of the features: (value - mean) * scale. */\n{}\n{}",
                array("feature_mean", &means),
                array("feature_scale", &scales)
            ));
        }
        if let Some((name, _)) = &self.stages.convolution {
            let block = fill(include_str!("c/convolution.c"), &[("NAME", name.clone())]);
            blocks.push(block.trim_end().to_owned());
        }
        blocks.push(reader(plain, self.stages.convolution.is_some()));
        blocks.join("\n\n")
    }

    fn helpers(&self) -> String {
        let mut blocks = Vec::new();
        if !self.stages.stages.is_empty() {
            blocks.push(include_str!("c/dense.c").trim_end());
        }
        if self.stages.mixes() {
            blocks.push(include_str!("c/mean.c").trim_end());
        }
        blocks.join("\n\n")
    }

    fn body(&self) -> String {
        let kept = self.kept();
        let parts = self.parts.iter().enumerate().map(|(index, stages)| Part {
            stages,
            before: index.checked_sub(1).map(|before| (before, kept[before])),
            after: (index + 1 < self.parts.len()).then(|| (index, kept[index])),
        });
        forward(&parts.collect::<Vec<_>>(), self.network.outputs())
    }

    /// Returns the code that turns the means of a port into its levels.
    fn levels(&self) -> String {
        if self.network.gaps.is_none() {
            return LEVEL.to_owned();
        }
        let level = |output: usize, levels: &str, macro_name: &str, edges: &str| {
            format!(
                "        {levels}[port] = 0;\n        \
                 for (edge = 0; edge < {macro_name} - 1; edge++)\n            \
                 {levels}[port] = (uint8_t)({levels}[port]\n                \
                 + (workspace->mean[port * NDT_OUTPUTS + {output}] >= {edges}[edge]));"
            )
        };
        [
            level(0, "levels", "NDT_LEVELS", "level_edges"),
            level(1, "early", "NDT_EARLY_LEVELS", "early_edges"),
        ]
        .join("\n")
    }
}

/// The function that writes a port's observation into its row.
fn reader(plain: bool, convolved: bool) -> String {
    let (verb, target) = match convolved {
        true => ("Convolves", "normal"),
        false => ("Takes", "row"),
    };
    let mut lines = Vec::new();
    if convolved && !plain {
        lines.push("    float normal[INPUTS];".to_owned());
    }
    if !plain {
        lines.push(format!(
            "    int step, feature;\n\n    \
             for (step = 0; step < NDT_HISTORY; step++)\n        \
             for (feature = 0; feature < NDT_FEATURES; feature++) {{\n            \
             const int k = step * NDT_FEATURES + feature;\n            \
             {target}[k] = (observation[k] - feature_mean[feature]) * feature_scale[feature];\n        \
             }}"
        ));
    }
    match (plain, convolved) {
        (true, true) => lines.push("    convolve(observation, row);".to_owned()),
        (false, true) => lines.push("    convolve(normal, row);".to_owned()),
        (true, false) => lines.push(
            "    int k;\n\n    for (k = 0; k < INPUTS; k++)\n        row[k] = observation[k];"
                .to_owned(),
        ),
        (false, false) => {}
    }
    format!(
        "/* {verb} the observation of a port{} into its row. */\n\
         static void read_port(const float *observation, float *row)\n{{\n{}\n}}",
        if plain { "" } else { ", normalised," },
        lines.join("\n")
    )
}

/// `[features * filters, taps]` to `[feature][tap][filter]`.
fn convolution(name: &str, conv: &Convolution, features: usize) -> String {
    let (filters, taps) = (conv.filters, conv.taps);
    let mut weight = Vec::with_capacity(conv.weight.len());
    for feature in 0..features {
        for tap in 0..taps {
            let channels = feature * filters..(feature + 1) * filters;
            weight.extend(channels.map(|channel| conv.weight[channel * taps + tap]));
        }
    }
    format!(
        "/* {name}: {filters} filters of {taps} taps for each of {features} features, ReLU.\n * Weights [feature][tap][filter], biases [feature][filter]. */\nenum {{ FILTERS = {filters}, TAPS = {taps} }};\n{}\n{}",
        array(&format!("{name}_weight"), &weight),
        array(&format!("{name}_bias"), &conv.bias)
    )
}

fn dense(stage: &Stage<'_>, order: &[usize]) -> String {
    let (name, inputs, outputs) = (&stage.name, stage.inputs, stage.outputs);
    let tiles = padded(outputs) / TILE;
    let mut bias = stage.bias.to_vec();
    bias.resize(padded(outputs), 0.0);
    let mean = stage.mean.as_ref().map(|mean| {
        let name = format!("{name}_weight_of_mean");
        format!("\n{}", array(&name, &tiled(mean, outputs, order)))
    });
    let of_mean = match mean {
        Some(_) => " of the port and as many means over ports",
        None => "",
    };
    let plural = if outputs == 1 { "" } else { "s" };
    let relu = if stage.relu { ", ReLU" } else { "" };
    format!(
        "/* {name}: {inputs} inputs{of_mean} -> {outputs} output{plural}{relu}.\n \
         * Weights [{tiles}][{inputs} inputs][{TILE} outputs], zero beyond the last output. */\n\
         {}{}\n{}",
        array(
            &format!("{name}_weight"),
            &tiled(&stage.own, outputs, order)
        ),
        mean.unwrap_or_default(),
        array(&format!("{name}_bias"), &bias)
    )
}

/// `[outputs, inputs]` to `[tiles][inputs][TILE]`. `order` is the order of the inputs.
fn tiled(weight: &[f32], outputs: usize, order: &[usize]) -> Vec<f32> {
    let inputs = order.len();
    let mut result = Vec::with_capacity(padded(outputs) * inputs);
    for tile in (0..padded(outputs)).step_by(TILE) {
        for &input in order {
            let value = |output: usize| match output < outputs {
                true => weight[output * inputs + input],
                false => 0.0,
            };
            result.extend((tile..tile + TILE).map(value));
        }
    }
    result
}

/// The description's order of a convolution's output (channel, then step) in the order of the
/// program (step, then channel).
fn step_major(width: usize, history: usize) -> Vec<usize> {
    let channels = width / history;
    let place = |step: usize| (0..channels).map(move |channel| channel * history + step);
    (0..history).flat_map(place).collect()
}

fn padded(width: usize) -> usize {
    width.next_multiple_of(TILE)
}

/// Dense layers that are computed for a block of ports without reading other ports.
struct Part<'a> {
    stages: &'a [Stage<'a>],
    /// Index of the array with the values of the previous part, and the values per port. `None` if the part begins with
    /// the observation.
    before: Option<(usize, usize)>,
    /// The same for the values of this part. `None` if they are the output.
    after: Option<(usize, usize)>,
}

/// The body of the generated function that goes through the layers.
fn forward(parts: &[Part<'_>], outputs: usize) -> String {
    let dense = parts.iter().any(|part| !part.stages.is_empty());
    let mut lines = vec!["    float *const even = workspace->even;".to_owned()];
    if dense {
        lines.push("    float *const odd = workspace->odd;".to_owned());
    }
    let counters = match (parts.len(), outputs) {
        (1, 1) => "first, place",
        _ => "first, place, k",
    };
    lines.push(format!("    uint32_t {counters};\n"));
    lines.push("    if (ports == 0 || ports > NDT_MAX_PORTS)".to_owned());
    lines.push("        return NDT_ERROR_PORTS;".to_owned());
    for part in parts {
        lines.extend(part.share());
        lines.push("    for (first = 0; first < ports; first += BLOCK) {".to_owned());
        lines.push(part.load());
        lines.extend((0..part.stages.len()).map(|index| part.layer(index)));
        lines.push(part.store(outputs));
        lines.push("    }".to_owned());
    }
    lines.push("    return NDT_OK;".to_owned());
    lines.join("\n")
}

/// The buffer that holds the values before the layer with this number.
fn row_buffer(index: usize) -> &'static str {
    match index % 2 {
        0 => "even",
        _ => "odd",
    }
}

impl Part<'_> {
    /// The call that computes the share of the mean in the first layer.
    fn share(&self) -> Option<String> {
        let (before, width) = self.before?;
        let stage = self.stages.first()?;
        Some(format!(
            "    share({0}_weight_of_mean, {0}_bias, {width}, {1}, workspace->part_{before}, ports,\n        \
             workspace->average, workspace->start);",
            stage.name,
            padded(stage.outputs) / TILE
        ))
    }

    /// The loop that fills the rows of a block.
    fn load(&self) -> String {
        let row = match self.before {
            None => "            \
                read_port(observation + port_of(first, place, ports) * INPUTS,\n                \
                even + place * WIDEST);"
                .to_owned(),
            Some((part, width)) => format!(
                "            \
                 for (k = 0; k < {width}; k++)\n                \
                 even[place * WIDEST + k] =\n                    \
                 workspace->part_{part}[port_of(first, place, ports) * {width} + k];"
            ),
        };
        format!("        for (place = 0; place < BLOCK; place++)\n{row}")
    }

    fn layer(&self, index: usize) -> String {
        let stage = &self.stages[index];
        let start = match index == 0 && stage.mean.is_some() {
            true => "workspace->start".to_owned(),
            false => format!("{}_bias", stage.name),
        };
        format!(
            "        dense({}_weight, {start}, {}, {}, {}, {}, {});",
            stage.name,
            stage.inputs,
            padded(stage.outputs) / TILE,
            u8::from(stage.relu),
            row_buffer(index),
            row_buffer(index + 1)
        )
    }

    /// The loop that copies the values of a block's ports out of their rows.
    fn store(&self, outputs: usize) -> String {
        let rows = row_buffer(self.stages.len());
        let row = match self.after {
            None if outputs == 1 => {
                format!("            mean[first + place] = {rows}[place * WIDEST];")
            }
            None => format!(
                "            \
                 for (k = 0; k < NDT_OUTPUTS; k++)\n                \
                 mean[(first + place) * NDT_OUTPUTS + k] = {rows}[place * WIDEST + k];"
            ),
            Some((part, width)) => format!(
                "            \
                 for (k = 0; k < {width}; k++)\n                \
                 workspace->part_{part}[(first + place) * {width} + k] = {rows}[place * WIDEST + k];"
            ),
        };
        format!("        for (place = 0; place < BLOCK && first + place < ports; place++)\n{row}")
    }
}
