//! Finished parts of a long work, kept until the work has ended, so that one that was stopped goes on
//! where it was.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use bufgym_models::files::sha256;
use bufgym_sim::files;
use bufgym_sim::input::{MAX_JSON, read_text};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A folder of finished parts, one file each.
#[derive(Clone, Debug)]
pub struct Parts {
    folder: PathBuf,
}

/// The content of a file.
#[derive(Serialize, Deserialize)]
struct Part<T> {
    /// Fingerprint of what was done, and by which revision of the program.
    of: String,
    result: T,
}

impl Parts {
    /// Parts in a folder, which is made with the first of them.
    pub fn new(folder: PathBuf) -> Parts {
        Parts { folder }
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The fingerprint of a part: of everything that its result depends on, written out, and of the
    /// program's revision.
    pub fn fingerprint(of: &str, revision: &str) -> String {
        sha256(format!("{revision}\n{of}").as_bytes())
    }

    /// A result, if it was kept under this fingerprint. A file that cannot be read counts as none.
    pub fn load<T: DeserializeOwned>(&self, fingerprint: &str) -> Option<T> {
        let text = read_text(&self.file(fingerprint), MAX_JSON).ok()?;
        let part: Part<T> = serde_json::from_str(&text).ok()?;
        (part.of == fingerprint).then_some(part.result)
    }

    /// Keeps a result under a fingerprint, whole or not at all.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn keep<T: Serialize>(&self, fingerprint: &str, result: T) -> io::Result<()> {
        fs::create_dir_all(&self.folder)?;
        let part = Part {
            of: fingerprint.to_owned(),
            result,
        };
        let text = serde_json::to_string(&part)?;
        files::replace(&self.file(fingerprint), text.as_bytes())
    }

    /// Removes the folder with all that was kept; also if there is none.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn remove(&self) -> io::Result<()> {
        match fs::remove_dir_all(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            result => result,
        }
    }

    fn file(&self, fingerprint: &str) -> PathBuf {
        let short = fingerprint.get(..16).unwrap_or(fingerprint);
        self.folder.join(format!("{short}.json"))
    }
}
