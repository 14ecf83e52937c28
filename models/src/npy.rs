//! NumPy's `.npy` format: float32 arrays are read and written, arrays of bytes written.
//!
//! Layout: the magic `\x93NUMPY`, two version bytes, the header's length (u16 in version 1, u32 in
//! versions 2 and 3, little endian), the header as a Python dict literal, then the data
//! (NumPy Enhancement Proposal 1, and `numpy.lib.format`).

use std::fs::File;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use bufgym_util::input::{self, excerpt};

/// Limit on the bytes before the data: NumPy writes a hundred.
const MAX_HEADER: u64 = 1 << 17;
/// Limit on the bytes of a file.
const MAX_ARRAY: u64 = 4 << 30;
const MAGIC: &[u8; 6] = b"\x93NUMPY";

/// A float32 array in C order.
#[derive(Debug, PartialEq)]
pub struct Array {
    /// Sizes of the dimensions, slowest first.
    pub shape: Vec<usize>,
    /// Row-major values.
    pub data: Vec<f32>,
}

/// The reason why a file cannot be read as an array. Every message is one line.
#[derive(Debug, thiserror::Error)]
pub enum NpyError {
    /// The file cannot be read.
    #[error("cannot read {}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        error: io::Error,
    },
    /// The file is not a float32 array.
    #[error("{}: {reason}", path.display())]
    Content {
        /// The file.
        path: PathBuf,
        /// The wrong field, and the expected value.
        reason: String,
    },
}

/// The element type of an array to be written.
pub trait Element: Copy {
    /// NumPy's name of the type in little-endian order.
    const DESCR: &'static str;

    /// Appends the value's bytes.
    fn append(self, bytes: &mut Vec<u8>);
}

impl Element for f32 {
    const DESCR: &'static str = "<f4";

    fn append(self, bytes: &mut Vec<u8>) {
        bytes.extend(self.to_le_bytes());
    }
}

impl Element for i32 {
    const DESCR: &'static str = "<i4";

    fn append(self, bytes: &mut Vec<u8>) {
        bytes.extend(self.to_le_bytes());
    }
}

impl Element for u8 {
    const DESCR: &'static str = "|u1";

    fn append(self, bytes: &mut Vec<u8>) {
        bytes.push(self);
    }
}

/// Reads a file.
///
/// # Errors
/// When it cannot be read, is not `.npy`, is truncated, or holds something other than
/// little-endian float32 in C order; the message names the file and the field.
pub fn read(path: &Path) -> Result<Array, NpyError> {
    let io = |error| NpyError::Io {
        path: path.to_owned(),
        error,
    };
    let content = |reason| NpyError::Content {
        path: path.to_owned(),
        reason,
    };
    let mut file = File::open(path).map_err(io)?;
    let mut start = Vec::new();
    let header = Read::by_ref(&mut file)
        .take(MAX_HEADER)
        .read_to_end(&mut start);
    header.map_err(io)?;
    // The sizes in the header are checked before the data is loaded into memory.
    let announced = Header::parse(&start).map_err(content)?;
    let most = announced.length().map_err(content)?;
    match input::read_from(start.chain(file), most) {
        Err(error) if error.kind() == io::ErrorKind::FileTooLarge => Err(content(format!(
            "shape {} needs {} bytes of data, the file has more",
            announced.shape_text(),
            announced.data
        ))),
        other => parse(&other.map_err(io)?).map_err(content),
    }
}

/// Writes an array as version 1.
///
/// # Errors
/// Returns errors of the writer.
pub fn write<T: Element>(out: &mut dyn Write, shape: &[usize], data: &[T]) -> io::Result<()> {
    out.write_all(&encode(shape, data))
}

/// The bytes of a file of version 1: an array of this shape, row-major.
///
/// # Panics
/// When the shape has thousands of dimensions: its text would not fit into the header.
pub fn encode<T: Element>(shape: &[usize], data: &[T]) -> Vec<u8> {
    let mut dims: Vec<String> = shape.iter().map(ToString::to_string).collect();
    if dims.len() == 1 {
        dims.push(String::new());
    }
    let mut header = format!(
        "{{'descr': '{}', 'fortran_order': False, 'shape': ({}), }}",
        T::DESCR,
        dims.join(", ").trim_end()
    );
    // The data must start at a multiple of 64 bytes.
    let unpadded = MAGIC.len() + 4 + header.len() + 1;
    header.push_str(&" ".repeat(unpadded.next_multiple_of(64) - unpadded));
    header.push('\n');
    let mut bytes = MAGIC.to_vec();
    bytes.extend([1, 0]);
    let length = u16::try_from(header.len()).expect("an array has a few dimensions");
    bytes.extend(length.to_le_bytes());
    bytes.extend(header.as_bytes());
    data.iter().for_each(|value| value.append(&mut bytes));
    bytes
}

/// Returns an error with this message unless the condition holds.
macro_rules! ensure {
    ($condition:expr, $($message:tt)*) => {
        if !$condition {
            return Err(format!($($message)*));
        }
    };
}

/// The part before the data.
struct Header {
    /// Bytes before the data.
    start: usize,
    shape: Vec<usize>,
    /// Bytes of the data.
    data: usize,
}

impl Header {
    /// Bytes of the whole file.
    fn length(&self) -> Result<u64, String> {
        let length = self.start.checked_add(self.data);
        length
            .and_then(|length| u64::try_from(length).ok())
            .filter(|length| *length <= MAX_ARRAY)
            .ok_or_else(|| {
                format!(
                    "shape {} needs {} bytes of data; at most {MAX_ARRAY} are read",
                    self.shape_text(),
                    self.data
                )
            })
    }

    fn shape_text(&self) -> String {
        excerpt(&format!("{:?}", self.shape))
    }
}

fn parse(bytes: &[u8]) -> Result<Array, String> {
    let header = Header::parse(bytes)?;
    let data = &bytes[header.start..];
    ensure!(
        data.len() == header.data,
        "shape {} needs {} bytes of data, the file has {}",
        header.shape_text(),
        header.data,
        data.len()
    );
    let values = data.as_chunks::<4>().0.iter();
    let data = values.map(|bytes| f32::from_le_bytes(*bytes)).collect();
    Ok(Array {
        shape: header.shape,
        data,
    })
}

impl Header {
    fn parse(bytes: &[u8]) -> Result<Header, String> {
        ensure!(
            bytes.len() >= 10 && bytes.starts_with(MAGIC),
            "not a .npy file (its first bytes are not \\x93NUMPY)"
        );
        let (start, length): (usize, usize) = match bytes[6] {
            1 => (10, usize::from(u16::from_le_bytes([bytes[8], bytes[9]]))),
            2 | 3 => {
                ensure!(bytes.len() >= 12, "truncated header");
                (
                    12,
                    u32::from_le_bytes([bytes[8], bytes[9], bytes[10], bytes[11]]) as usize,
                )
            }
            version => {
                return Err(format!(
                    "version {version} of the .npy format is unknown (1, 2 and 3 are read)"
                ));
            }
        };
        let end = start.saturating_add(length);
        let header = bytes
            .get(start..end)
            .ok_or_else(|| match length > bytes.len() {
                true if bytes.len() as u64 >= MAX_HEADER => {
                    format!("a header of {length} bytes; at most {MAX_HEADER} are read")
                }
                _ => "truncated header".to_owned(),
            })?;
        let header =
            std::str::from_utf8(header).map_err(|error| format!("header is not text: {error}"))?;

        let descr = field(header, "descr")?.trim_matches(['\'', '"']);
        ensure!(
            descr == "<f4",
            "descr is '{}': float32 in little-endian order ('<f4') is read; use array.astype('<f4')",
            excerpt(descr)
        );
        let order = field(header, "fortran_order")?;
        ensure!(
            order == "False",
            "fortran_order is {}: C order is read; use numpy.ascontiguousarray",
            excerpt(order)
        );
        let shape = field(header, "shape")?
            .split(',')
            .map(str::trim)
            .filter(|size| !size.is_empty())
            .map(|size| {
                let parsed = size.parse::<usize>();
                parsed.map_err(|_| format!("shape: '{}' is not a size", excerpt(size)))
            })
            .collect::<Result<Vec<_>, String>>()?;

        let count = shape
            .iter()
            .try_fold(1usize, |product, &size| product.checked_mul(size));
        let data = count
            .and_then(|count| count.checked_mul(4))
            .ok_or("shape: more values than fit in memory")?;
        Ok(Header {
            start: end,
            shape,
            data,
        })
    }
}

/// Returns the text of one value of the header's dict: the text between brackets, or up to a comma.
fn field<'a>(header: &'a str, name: &str) -> Result<&'a str, String> {
    let after = [format!("'{name}':"), format!("\"{name}\":")]
        .iter()
        .find_map(|key| {
            header
                .split_once(key.as_str())
                .map(|(_, after)| after.trim_start())
        })
        .ok_or_else(|| format!("the header has no field '{name}'"))?;
    let value = match after.strip_prefix('(') {
        Some(tuple) => tuple.split(')').next(),
        None => after.split([',', '}']).next(),
    };
    Ok(value.unwrap_or(after).trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(shape: &[usize], data: &[f32]) -> Vec<u8> {
        let mut out = Vec::new();
        write(&mut out, shape, data).unwrap();
        out
    }

    #[test]
    fn bytes_are_written_under_their_own_type() {
        let file = encode(&[3], &[1u8, 2, 255]);
        let text = String::from_utf8_lossy(&file[10..]);
        assert!(text.starts_with("{'descr': '|u1', 'fortran_order': False, 'shape': (3,), }"));
        assert!(file.ends_with(b"\n\x01\x02\xff"));
        assert!(parse(&file).unwrap_err().contains("descr is '|u1'"));
    }

    #[test]
    fn what_is_written_is_read_back() {
        for shape in [
            vec![],
            vec![3],
            vec![2, 3],
            vec![0, 16, 8, 5],
            vec![1, 2, 8, 5],
        ] {
            let count = shape.iter().product();
            let data: Vec<f32> = (0..count).map(|i| i as f32 * 0.5 - 1.0).collect();
            let file = bytes(&shape, &data);
            assert_eq!(parse(&file).unwrap(), Array { shape, data });
        }
    }

    #[test]
    fn the_header_is_what_numpy_writes() {
        let file = bytes(&[2, 3], &[0.0; 6]);
        let text = String::from_utf8_lossy(&file[10..]);
        assert!(text.starts_with("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }"));
        assert_eq!((file.len() - 24) % 64, 0);
        assert!(String::from_utf8_lossy(&bytes(&[3], &[0.0; 3])).contains("'shape': (3,), }"));
    }

    #[test]
    fn a_file_is_read_as_far_as_its_header_says() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npy");
        let message = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            let message = read(&path).unwrap_err().to_string();
            assert!(message.chars().count() < 400, "{message}");
            message
        };
        let good = bytes(&[2, 3], &[0.5; 6]);
        std::fs::write(&path, &good).unwrap();
        assert_eq!(read(&path).unwrap().data, [0.5; 6]);
        // A sparse file of half a terabyte after a valid header, and one without a header.
        for start in [&good[..], &[]] {
            std::fs::write(&path, start).unwrap();
            let file = File::options().write(true).open(&path).unwrap();
            file.set_len(1 << 39).unwrap();
            let message = read(&path).unwrap_err().to_string();
            assert!(message.contains("the file has more") || message.contains("not a .npy"));
        }
        let with_shape = |shape: &str| {
            let header =
                format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({shape})}}\n");
            let mut file = MAGIC.to_vec();
            file.extend([2, 0]);
            file.extend((header.len() as u32).to_le_bytes());
            file.extend(header.as_bytes());
            file
        };
        assert!(message(&with_shape("4294967296, 8, 5")).contains("at most"));
        assert!(message(&with_shape("4294967296, 4294967296, 8, 5")).contains("fit in memory"));
        assert!(message(&with_shape("18446744073709551615, 1")).contains("fit in memory"));
        assert!(message(&with_shape("-1")).contains("'-1' is not a size"));
        assert!(message(&with_shape(&"1, ".repeat(30_000))).contains("needs 4 bytes"));
        assert!(message(&with_shape(&"9".repeat(100_000))).contains("is not a size"));
        let mut long = with_shape("1");
        long[8..12].copy_from_slice(&u32::MAX.to_le_bytes());
        assert!(message(&long).contains("truncated header"));
        long.resize(1 << 18, b' ');
        assert!(message(&long).contains("at most 131072 are read"));
    }

    #[test]
    fn damage_is_named() {
        let good = bytes(&[2, 3], &[0.0; 6]);
        let message = |bytes: &[u8]| parse(bytes).unwrap_err();
        assert!(message(b"PK").contains("not a .npy file"));
        assert!(message(&good[..40]).contains("truncated header"));
        assert!(
            message(&good[..good.len() - 1]).contains("needs 24 bytes of data, the file has 23")
        );
        let replaced = |from: &str, to: &str| {
            let text: String = good
                .iter()
                .map(|&b| char::from(b))
                .collect::<String>()
                .replace(from, to);
            text.chars().map(|c| c as u8).collect::<Vec<u8>>()
        };
        assert!(message(&replaced("<f4", "<f8")).contains("descr is '<f8'"));
        assert!(message(&replaced("False", "True ")).contains("fortran_order is True"));
        assert!(message(&replaced("(2, 3)", "(2, x)")).contains("'x' is not a size"));
    }
}
