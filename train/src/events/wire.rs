//! The two encodings of an event file: TFRecord frames around protocol-buffer
//! messages.
//!
//! Sources: `tensorflow/core/lib/io/record_writer.h` (frame and masked
//! CRC-32C) and the protocol-buffer encoding guide (wire types 0, 1, 2, 5).

use std::io::{self, Write};

const CRC32C: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let mut crc = byte as u32;
        let mut bit = 0;
        while bit < 8 {
            // Castagnoli polynomial, reflected (RFC 3720, appendix B.4).
            crc = (crc >> 1) ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 };
            bit += 1;
        }
        table[byte] = crc;
        byte += 1;
    }
    table
};

/// CRC-32C of `bytes`.
pub(super) fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, &byte| {
        CRC32C[((crc ^ u32::from(byte)) & 0xff) as usize] ^ (crc >> 8)
    })
}

fn masked_crc(bytes: &[u8]) -> [u8; 4] {
    let crc = crc32c(bytes);
    crc.rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

/// Writes one TFRecord frame with a single call, so that a reader of the
/// growing file sees whole records or a short tail, never interleaved ones.
pub(super) fn write_record(writer: &mut impl Write, payload: &[u8]) -> io::Result<()> {
    let length = (payload.len() as u64).to_le_bytes();
    let mut frame = Vec::with_capacity(payload.len() + 16);
    frame.extend_from_slice(&length);
    frame.extend_from_slice(&masked_crc(&length));
    frame.extend_from_slice(payload);
    frame.extend_from_slice(&masked_crc(payload));
    writer.write_all(&frame)
}

/// A protocol-buffer message under construction; fields in the order written.
#[derive(Debug, Default, Clone)]
pub(super) struct Message(Vec<u8>);

impl Message {
    pub(super) fn new() -> Self {
        Self::default()
    }

    pub(super) fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    fn raw_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push(value as u8 | 0x80);
            value >>= 7;
        }
        self.0.push(value as u8);
    }

    fn key(&mut self, field: u32, wire_type: u32) {
        self.raw_varint(u64::from(field << 3 | wire_type));
    }

    pub(super) fn varint(mut self, field: u32, value: u64) -> Self {
        self.key(field, 0);
        self.raw_varint(value);
        self
    }

    pub(super) fn double(mut self, field: u32, value: f64) -> Self {
        self.key(field, 1);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(super) fn float(mut self, field: u32, value: f32) -> Self {
        self.key(field, 5);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    pub(super) fn bytes(mut self, field: u32, value: &[u8]) -> Self {
        self.key(field, 2);
        self.raw_varint(value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    pub(super) fn message(self, field: u32, value: &Message) -> Self {
        self.bytes(field, &value.0)
    }

    pub(super) fn packed_doubles(self, field: u32, values: &[f64]) -> Self {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.bytes(field, &bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Check values of RFC 3720, appendix B.4.
    #[test]
    fn crc32c_matches_the_rfc() {
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    /// The example of the encoding guide: field 1 = 150 is `08 96 01`.
    #[test]
    fn varints_match_the_encoding_guide() {
        assert_eq!(Message::new().varint(1, 150).as_bytes(), [0x08, 0x96, 0x01]);
        assert_eq!(
            Message::new().bytes(2, b"testing").as_bytes(),
            b"\x12\x07testing"
        );
    }

    #[test]
    fn a_record_is_length_crc_payload_crc() {
        let mut out = Vec::new();
        write_record(&mut out, b"abc").unwrap();
        assert_eq!(out.len(), 8 + 4 + 3 + 4);
        assert_eq!(&out[..8], &3_u64.to_le_bytes());
        assert_eq!(&out[12..15], b"abc");
    }
}
