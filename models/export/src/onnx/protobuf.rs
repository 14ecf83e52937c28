//! Protocol Buffers, the few kinds of fields that ONNX needs
//! (<https://protobuf.dev/programming-guides/encoding>).

/// A message under construction.
#[derive(Clone, Debug, Default)]
pub(super) struct Message(Vec<u8>);

const VARINT: u64 = 0;
const LENGTH: u64 = 2;

impl Message {
    pub(super) fn new() -> Message {
        Message::default()
    }

    /// An `int32`, `int64` or `enum` field.
    pub(super) fn integer(&mut self, field: u64, value: i64) -> &mut Message {
        self.varint(field << 3 | VARINT);
        self.varint(value.cast_unsigned());
        self
    }

    /// A `bytes` field.
    pub(super) fn bytes(&mut self, field: u64, value: &[u8]) -> &mut Message {
        self.varint(field << 3 | LENGTH);
        self.varint(value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    /// A `string` field.
    pub(super) fn text(&mut self, field: u64, value: &str) -> &mut Message {
        self.bytes(field, value.as_bytes())
    }

    /// A message within this one.
    pub(super) fn message(&mut self, field: u64, value: &Message) -> &mut Message {
        self.bytes(field, &value.0)
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Seven bits at a time, lowest first; the highest bit of a byte says that another follows.
    fn varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_the_specification() {
        let mut inner = Message::new();
        inner.integer(1, 150);
        assert_eq!(inner.0, [0x08, 0x96, 0x01]);
        let mut outer = Message::new();
        outer.text(2, "testing");
        assert_eq!(outer.0, b"\x12\x07testing");
        let mut outer = Message::new();
        outer.message(3, &inner);
        assert_eq!(outer.into_bytes(), [0x1a, 0x03, 0x08, 0x96, 0x01]);
        let mut negative = Message::new();
        negative.integer(1, -2);
        let expected = [
            0x08, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01,
        ];
        assert_eq!(negative.0, expected);
    }
}
