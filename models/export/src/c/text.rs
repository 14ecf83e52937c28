//! Numbers, arrays and comments in C.

use std::fmt::{Display, Write as _};

use super::Network;
use bufgym_models::checkpoint::Manifest;

/// Characters of a line of numbers, at most.
const LINE: usize = 96;

/// Replaces `@KEY@` in a template by the key's value. Keys are replaced in order, so a value may
/// contain `@KEY@` of later keys.
pub(super) fn fill(template: &str, values: &[(&str, String)]) -> String {
    let place =
        |text: String, (key, value): &(&str, String)| text.replace(&format!("@{key}@"), value);
    let filled = values.iter().fold(template.to_owned(), place);
    debug_assert!(!filled.contains("@"), "a place is left");
    filled
}

/// The shortest decimal form that reads back as the same number.
pub(super) fn number(value: f32) -> String {
    format!("{value:?}f")
}

/// Numbers with commas, in lines.
pub(super) fn rows(values: &[f32]) -> String {
    let mut text = String::from("   ");
    let mut width = text.len();
    for &value in values {
        let number = number(value);
        if width + number.len() + 2 > LINE {
            text.push_str("\n   ");
            width = 3;
        }
        width += number.len() + 2;
        // Writing to a String cannot fail.
        let _ = write!(text, " {number},");
    }
    text
}

/// A constant array.
pub(super) fn array(name: &str, values: &[f32]) -> String {
    format!(
        "static const float {name}[{}] = {{\n{}\n}};",
        values.len(),
        rows(values)
    )
}

/// Numbers with commas between them.
pub(crate) fn list<T: Display>(values: &[T]) -> String {
    let values: Vec<String> = values.iter().map(ToString::to_string).collect();
    values.join(", ")
}

/// The macros of a header whose network sets early drop too.
///
/// `gap_bytes`: bytes of buffer for every packet of the shortest gap, where the gaps are multiples of it.
pub(crate) fn early_macros(gaps: &[u32], gap_bytes: Option<u64>) -> String {
    let unit = match gap_bytes {
        None => "packets",
        Some(_) => "in shortest gaps",
    };
    let of_buffer = gap_bytes.map_or_else(String::new, |bytes| {
        format!(
            "/* The shortest gap is one packet for so many bytes of the switch's buffer, rounded down to a\n   \
             power of two, 2 at least. */\n\
             #define NDT_EARLY_GAP_BYTES {bytes}\n"
        )
    });
    format!(
        "/* Outputs per port: alpha, then early drop. */\n#define NDT_OUTPUTS 2\n\
         #define NDT_EARLY_LEVELS {}\n\
         /* The longest gaps between early drops by level, {unit}, as an array's initialiser; 0: none. */\n\
         #define NDT_EARLY_GAPS {{ {} }}\n{of_buffer}",
        gaps.len(),
        list(gaps)
    )
}

/// Appends an array of integers. `declaration` is the text before the `=`. C has no empty arrays,
/// so an array without values holds a zero.
pub(crate) fn table<T: Display>(text: &mut String, declaration: &str, values: &[T]) {
    // Writing to a String cannot fail.
    let _ = writeln!(text, "{declaration} = {{");
    for row in values.chunks(24) {
        let row: Vec<String> = row.iter().map(ToString::to_string).collect();
        let _ = writeln!(text, "    {},", row.join(", "));
    }
    text.push_str(if values.is_empty() {
        "    0,\n};\n"
    } else {
        "};\n"
    });
}

/// Formats lines as the inside of a C comment.
pub(crate) fn comment(lines: &[String]) -> String {
    let line = |line: &String| {
        let plain = |c: char| {
            if c.is_ascii() && !c.is_control() && c != '@' {
                c
            } else {
                '?'
            }
        };
        let text: String = line.chars().map(plain).collect();
        let text = text
            .replace("*/", "* /")
            .replace("/*", "/ *")
            .replace("??", "? ?");
        format!(" * {text}").trim_end().to_owned()
    };
    lines.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// Lines about the origin of the weights.
pub(crate) fn about(manifest: &Manifest) -> Vec<String> {
    let sets = match manifest.action_set().drops_early() {
        false => "alpha is",
        true => "alpha and early drop are",
    };
    vec![
        format!("Made by bufgym {}.", env!("CARGO_PKG_VERSION")),
        format!(
            "Trained on {} for {}, seed {}, {} decisions.",
            manifest.scenario, manifest.objective, manifest.seed, manifest.decisions
        ),
        format!("Heuristic whose {sets} set: {}.", manifest.low_level),
        format!("SHA-256 of the weights: {}.", manifest.weights_sha256),
    ]
}

/// Lines that describe the features.
pub(super) fn features(network: &Network) -> Vec<String> {
    let line = |(index, feature): (usize, &bufgym_models::checkpoint::Feature)| {
        let [low, high] = feature.clip;
        let normal = match (feature.mean, feature.deviation) {
            (0.0, 1.0) => String::new(),
            (mean, deviation) => format!("; normalised here: (value - {mean}) / {deviation}"),
        };
        format!(
            "  {index}  {}: {}, clipped to [{low}, {high}]{normal}",
            feature.name, feature.scale
        )
    };
    network.features.iter().enumerate().map(line).collect()
}

/// Returns a name with `_` instead of the characters that C does not allow.
pub(crate) fn identifier(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = name.chars().map(plain).collect();
    match name.chars().next() {
        Some(c) if c.is_ascii_digit() => format!("layer_{name}"),
        Some(_) => name,
        None => "layer".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_back_bit_for_bit() {
        let mut bits = 1u32;
        while let Some(next) = bits.checked_mul(3) {
            bits = next;
            let value = f32::from_bits(bits);
            let text = number(value);
            assert!(
                text.contains(['.', 'e']),
                "{text} is not floating point in C"
            );
            let read: f32 = text.trim_end_matches('f').parse().unwrap();
            assert_eq!(read.to_bits(), bits);
        }
        assert_eq!(number(-0.0), "-0.0f");
    }

    #[test]
    fn a_comment_cannot_be_left() {
        let lines = ["a */ b /* c".to_owned(), "two\nlines\u{3b1}".to_owned()];
        assert_eq!(comment(&lines), " * a * / b / * c\n * two?lines?");
    }

    #[test]
    fn names_become_identifiers() {
        let names = ["mean.0", "0", "", "ab_1"].map(identifier);
        assert_eq!(names, ["mean_0", "layer_0", "layer", "ab_1"]);
    }
}
