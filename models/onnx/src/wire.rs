//! Estimates the memory of a decoded file before it is decoded.
//!
//! A message without content is two bytes in a file and some two hundred in memory, so that a file of
//! 256 MiB could take a hundred times as much.

/// Limit on the bytes of a decoded file: its weights, and as much again for its graph.
const MAX_DECODED: u64 = 512 << 20;

/// Bytes of the largest message in memory, including the free space of a growing list of them.
const MESSAGE: u64 = 512;

/// Bytes in memory for each byte of a message whose content is not read, such as a shape.
const SMALL: u64 = 64;

/// Bytes of a number in a list, including the list's free space.
const NUMBER: u64 = 16;

/// Largest nesting of messages that the decoder accepts.
const DEEPEST: usize = 100;

/// Content of a field: a message of ONNX in the encoding of protobuf, or other data.
#[derive(Clone, Copy)]
enum Kind {
    Model,
    Graph,
    Node,
    Attribute,
    Tensor,
    /// A message with many small messages in it.
    Other,
    /// Numbers of up to eight bytes, each of which may be a single byte in the file.
    Numbers,
    /// A text, or bytes that take as many bytes in memory.
    Bytes,
}

impl Kind {
    /// Returns the content of a field of this message.
    fn of(self, field: u64) -> Kind {
        match (self, field) {
            (Kind::Model, 7) | (Kind::Attribute, 6 | 11) => Kind::Graph,
            (Kind::Graph, 1) => Kind::Node,
            (Kind::Node, 5) => Kind::Attribute,
            (Kind::Graph, 5) | (Kind::Attribute, 5 | 10) => Kind::Tensor,
            (Kind::Model, 8 | 20 | 25) | (Kind::Graph, 11..=15) => Kind::Other,
            (Kind::Attribute, 14 | 15 | 22 | 23) | (Kind::Tensor, 3 | 13) => Kind::Other,
            (Kind::Attribute, 8) | (Kind::Tensor, 1 | 5 | 7 | 11) => Kind::Numbers,
            _ => Kind::Bytes,
        }
    }
}

/// Checks that a file can be decoded in a sensible amount of memory. A file that cannot be decoded at all passes.
///
/// # Errors
/// When it cannot.
pub(crate) fn check(bytes: &[u8]) -> Result<(), String> {
    match decoded(Kind::Model, bytes, MAX_DECODED, 0) {
        Some(_) => Ok(()),
        None => Err(format!(
            "the file takes more than {} MiB when it is decoded; keep weights in raw_data, or in a file beside it",
            MAX_DECODED >> 20
        )),
    }
}

/// Returns the rest of `memory` after the message is decoded; `None` if it is not enough. Where the bytes are damaged,
/// or messages are nested deeper than the decoder accepts, the decoder ends as well.
fn decoded(kind: Kind, mut bytes: &[u8], memory: u64, depth: usize) -> Option<u64> {
    let mut left = memory.checked_sub(MESSAGE)?;
    if depth > DEEPEST {
        return Some(left);
    }
    while let Some(tag) = varint(&mut bytes) {
        let length = match tag & 7 {
            0 => varint(&mut bytes).map(|_| 0),
            1 => Some(8),
            2 => varint(&mut bytes),
            5 => Some(4),
            _ => None,
        };
        let length = length.and_then(|length| usize::try_from(length).ok());
        let Some(content) = length.and_then(|length| bytes.split_off(..length)) else {
            break;
        };
        let length = content.len() as u64;
        left = match kind.of(tag >> 3) {
            _ if tag & 7 != 2 => left.checked_sub(NUMBER)?,
            Kind::Other => left.checked_sub(SMALL * (length + 1))?,
            Kind::Numbers => left.checked_sub(8 * length)?,
            Kind::Bytes => left.checked_sub(length + SMALL)?,
            message => decoded(message, content, left, depth + 1)?,
        };
    }
    Some(left)
}

/// Takes an integer of variable length from the front.
fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *bytes.split_off_first()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_may_fill_a_file_and_empty_messages_may_not() {
        // A graph with a tensor of 4 MiB, and one with a million nodes.
        let field = |number: u8, content: &[u8]| {
            let mut bytes = vec![number << 3 | 2];
            // Four bytes of seven bits each.
            let group = |shift: u32| u8::try_from(content.len() >> shift & 0x7f).unwrap();
            bytes.extend([
                group(0) | 0x80,
                group(7) | 0x80,
                group(14) | 0x80,
                group(21),
            ]);
            [&bytes, content].concat()
        };
        let weights = field(7, &field(5, &field(9, &[0; 4 << 20])));
        let left = decoded(Kind::Model, &weights, MAX_DECODED, 0).unwrap();
        assert!(MAX_DECODED - left < 5 << 20, "{left}");
        let nodes = field(7, &[0x0a, 0].repeat(1 << 20));
        assert!(check(&weights).is_ok());
        assert!(check(&nodes).unwrap_err().contains("512 MiB"));
        let end = weights.len() - 1;
        assert!(check(&weights[..end]).is_ok());
    }
}
