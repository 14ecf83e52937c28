//! Errors of stored results of searches.

use std::io;
use std::path::{Path, PathBuf};

use bufgym_eval::tune::StoreError;

/// An error of stored results.
#[derive(Debug, thiserror::Error)]
pub enum KeptError {
    /// A file is broken.
    #[error(transparent)]
    File(Box<StoreError>),
    /// A file cannot be read, or has results that may not be replaced.
    #[error("{}{problem}", .path.display())]
    Refused {
        /// The file or folder.
        path: PathBuf,
        /// Description of the problem, which follows the path in the message.
        problem: String,
    },
    /// Another search has stored a result meanwhile.
    #[error(
        "{} has got {names} tuned by another search meanwhile: the result above is not kept; --force replaces",
        .path.display()
    )]
    Overtaken {
        /// File of the result.
        path: PathBuf,
        /// Names of the policy and its queue management.
        names: String,
    },
    /// A file that the program brings along is broken.
    #[error(transparent)]
    BuiltIn(Box<StoreError>),
    /// A result cannot be written.
    #[error("cannot write {}", .folder.display())]
    Write {
        /// Folder of the results.
        folder: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}

impl From<StoreError> for KeptError {
    fn from(error: StoreError) -> KeptError {
        KeptError::File(Box::new(error))
    }
}

impl KeptError {
    /// Returns true if the input was wrong. Otherwise the work failed.
    #[must_use]
    pub fn is_bad_input(&self) -> bool {
        matches!(self, Self::File(_) | Self::Refused { .. })
    }

    /// Returns the refusal of a file or folder; `problem` follows its path.
    pub(crate) fn refused(path: &Path, problem: String) -> KeptError {
        KeptError::Refused {
            path: path.to_owned(),
            problem,
        }
    }
}
