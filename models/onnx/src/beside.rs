//! Weights in files beside a network, as PyTorch writes them.

use std::fs::File;
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use bufgym_sim::input;
use tract_onnx::data_resolver::ModelDataResolver;
use tract_onnx::prelude::{TractError, TractResult};

/// Reads weights, and no more than [`input::MAX_WEIGHTS`] bytes of them at a time. The runtime has checked
/// that the file lies beside the network or in a folder there.
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
