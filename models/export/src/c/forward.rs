//! The generated function that goes through the layers.

use super::super::stages::Stage;
use super::{TILE, padded};

/// Dense layers that are computed for a block of ports without looking at other ports.
pub(super) struct Part<'a> {
    pub(super) stages: &'a [Stage<'a>],
    /// Where the values of the part before are kept, and how many per port; none where the part
    /// begins with the observation.
    pub(super) before: Option<(usize, usize)>,
    /// Where the values of this part go; none where they are the output.
    pub(super) after: Option<(usize, usize)>,
}

/// The body of the function.
pub(super) fn body(parts: &[Part<'_>]) -> String {
    let dense = parts.iter().any(|part| !part.stages.is_empty());
    let mut lines = vec!["    float *const even = workspace->even;".to_owned()];
    if dense {
        lines.push("    float *const odd = workspace->odd;".to_owned());
    }
    let counters = match parts.len() {
        1 => "first, place",
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
        lines.push(part.store());
        lines.push("    }".to_owned());
    }
    lines.push("    return NDT_OK;".to_owned());
    lines.join("\n")
}

/// The rows that hold the values before the layer with this number.
fn rows(index: usize) -> &'static str {
    match index % 2 {
        0 => "even",
        _ => "odd",
    }
}

impl Part<'_> {
    /// The call that computes what the mean adds to the first layer.
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
            rows(index),
            rows(index + 1)
        )
    }

    /// The loop that takes the values of a block's ports out of their rows.
    fn store(&self) -> String {
        let rows = rows(self.stages.len());
        let row = match self.after {
            None => format!("            mean[first + place] = {rows}[place * WIDEST];"),
            Some((part, width)) => format!(
                "            \
                 for (k = 0; k < {width}; k++)\n                \
                 workspace->part_{part}[(first + place) * {width} + k] = {rows}[place * WIDEST + k];"
            ),
        };
        format!("        for (place = 0; place < BLOCK && first + place < ports; place++)\n{row}")
    }
}
