//! Weights in separate files next to a network, as PyTorch writes them.

use std::fs::{self, File};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use bufgym_util::input;
use tract_onnx::data_resolver::ModelDataResolver;
use tract_onnx::prelude::{TractError, TractResult};

/// Reads weights from regular files, and no more than [`input::MAX_WEIGHTS`] bytes of them at a time. The runtime has
/// checked that the file, and the target of a link, lies next to the network or in a folder there.
pub(crate) struct Beside;

impl ModelDataResolver for Beside {
    fn read_bytes_from_path(
        &self,
        out: &mut Vec<u8>,
        path: &Path,
        offset: usize,
        length: Option<usize>,
    ) -> TractResult<()> {
        let bytes = read(path, offset, length)
            .map_err(|error| TractError::msg(format!("weights in {}: {error}", path.display())))?;
        out.extend(bytes);
        Ok(())
    }
}

fn read(path: &Path, offset: usize, length: Option<usize>) -> io::Result<Vec<u8>> {
    // Opening a pipe would wait for its writer.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        ));
    }
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(offset as u64))?;
    let Some(length) = length else {
        return input::read_from(file, input::MAX_WEIGHTS);
    };
    let bytes = input::read_from(file.take(length as u64), input::MAX_WEIGHTS)?;
    match bytes.len() == length {
        true => Ok(bytes),
        false => Err(io::ErrorKind::UnexpectedEof.into()),
    }
}
