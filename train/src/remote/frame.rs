//! The bytes of a message: a header of 24 bytes, all numbers little-endian, and a body in the format of postcard.
//!
//! | bytes | field |
//! |---|---|
//! | 0 to 7 | `BUFGYMRM` |
//! | 8, 9 | version of the protocol |
//! | 10, 11 | kind |
//! | 12 to 19 | length of the body |
//! | 20 to 23 | CRC-32 of the body |

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::RemoteError;

const MAGIC: [u8; 8] = *b"BUFGYMRM";
/// Version of the protocol, which grows with every change of a message.
const PROTOCOL: u16 = 3;
const HEADER: usize = 24;

/// Kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u16)]
pub(super) enum Kind {
    Hello = 1,
    Request = 2,
    Answer = 3,
}

/// A message with this body.
///
/// # Errors
/// When the body cannot be written, which does not happen with the types of this crate.
pub(super) fn encode(kind: Kind, body: &impl Serialize) -> Result<Vec<u8>, RemoteError> {
    let mut bytes = postcard::to_extend(body, vec![0; HEADER]).map_err(unreadable)?;
    let (header, body) = bytes.split_at_mut(HEADER);
    header[..8].copy_from_slice(&MAGIC);
    header[8..10].copy_from_slice(&PROTOCOL.to_le_bytes());
    header[10..12].copy_from_slice(&(kind as u16).to_le_bytes());
    header[12..20].copy_from_slice(&(body.len() as u64).to_le_bytes());
    header[20..].copy_from_slice(&crc32fast::hash(body).to_le_bytes());
    Ok(bytes)
}

/// The body of a message.
///
/// # Errors
/// When the bytes are not a complete, undamaged message of this kind and version.
pub(super) fn decode<T: DeserializeOwned>(kind: Kind, bytes: &[u8]) -> Result<T, RemoteError> {
    let (header, body) = bytes
        .split_first_chunk::<HEADER>()
        .filter(|(header, _)| header.starts_with(&MAGIC))
        .ok_or(RemoteError::NotAMessage)?;
    let word = |at: usize| u16::from_le_bytes([header[at], header[at + 1]]);
    let (theirs, ours) = (word(8), PROTOCOL);
    if theirs != ours {
        return Err(RemoteError::Protocol { theirs, ours });
    }
    let (theirs, ours) = (word(10), kind as u16);
    if theirs != ours {
        return Err(RemoteError::Kind { theirs, ours });
    }
    let mut length = [0; 8];
    length.copy_from_slice(&header[12..20]);
    let (announced, found) = (u64::from_le_bytes(length), body.len() as u64);
    if announced != found {
        return Err(RemoteError::Length { announced, found });
    }
    if header[20..] != crc32fast::hash(body).to_le_bytes() {
        return Err(RemoteError::Checksum);
    }
    match postcard::take_from_bytes(body).map_err(unreadable)? {
        (value, []) => Ok(value),
        (_, rest) => Err(RemoteError::Body(format!("{} bytes too many", rest.len()))),
    }
}

fn unreadable(error: postcard::Error) -> RemoteError {
    RemoteError::Body(error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message() -> Vec<u8> {
        encode(Kind::Hello, &(7_u32, vec![1.5_f32, f32::NAN, -0.0])).unwrap()
    }

    fn read(bytes: &[u8]) -> Result<(u32, Vec<f32>), RemoteError> {
        decode(Kind::Hello, bytes)
    }

    #[test]
    fn numbers_arrive_bit_for_bit() {
        let (whole, numbers) = read(&message()).unwrap();
        let bits: Vec<u32> = numbers.iter().map(|number| number.to_bits()).collect();
        let sent = [1.5_f32, f32::NAN, -0.0].map(f32::to_bits);
        assert_eq!((whole, bits.as_slice()), (7, sent.as_slice()));
    }

    #[test]
    fn every_changed_byte_is_noticed() {
        let sent = message();
        for place in 0..sent.len() {
            let mut changed = sent.clone();
            changed[place] ^= 0x10;
            let error = read(&changed).unwrap_err();
            let expected = match place {
                0..8 => error == RemoteError::NotAMessage,
                8..10 => matches!(error, RemoteError::Protocol { ours: PROTOCOL, .. }),
                10..12 => matches!(error, RemoteError::Kind { ours: 1, .. }),
                12..20 => matches!(error, RemoteError::Length { .. }),
                _ => error == RemoteError::Checksum,
            };
            assert!(expected, "byte {place}: {error:?}");
        }
    }

    #[test]
    fn cut_and_prolonged_messages_are_refused() {
        let sent = message();
        for length in 0..sent.len() {
            assert!(read(&sent[..length]).is_err(), "{length} bytes");
        }
        let longer = [sent.as_slice(), &[0]].concat();
        assert!(matches!(read(&longer), Err(RemoteError::Length { .. })));
    }

    #[test]
    fn a_body_of_something_else_is_refused() {
        let other = encode(Kind::Hello, &7_u32).unwrap();
        assert!(matches!(read(&other), Err(RemoteError::Body(_))));
        let more = encode(Kind::Hello, &(7_u32, vec![1.0_f32], 3_u8)).unwrap();
        assert_eq!(
            read(&more),
            Err(RemoteError::Body("1 bytes too many".to_owned()))
        );
    }
}
