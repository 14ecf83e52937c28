//! Finished parts of a long computation, stored until it has ended, so that an interrupted one can resume.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use bufgym_models::files::sha256;
use bufgym_util::files::{self, Staging, is_folder, parent};
use bufgym_util::input::{MAX_JSON, read_text};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// A folder of finished parts, one file each.
#[derive(Clone, Debug)]
pub struct ResultCache {
    folder: PathBuf,
}

/// The content of a file.
#[derive(Serialize, Deserialize)]
struct Part<T> {
    /// Fingerprint of the computation and of the program's revision.
    of: String,
    result: T,
}

impl ResultCache {
    /// Opens a folder of parts, which is created with the first of them.
    pub fn new(folder: PathBuf) -> ResultCache {
        ResultCache { folder }
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Returns the fingerprint of a part: a hash of everything that its result depends on, and of the
    /// program's revision.
    pub fn fingerprint(of: &str, revision: &str) -> String {
        sha256(format!("{revision}\n{of}").as_bytes())
    }

    /// Returns a result, if it was stored under this fingerprint. A file that cannot be read counts as none.
    pub fn load<T: DeserializeOwned>(&self, fingerprint: &str) -> Option<T> {
        let text = read_text(&self.file(fingerprint), MAX_JSON).ok()?;
        let part: Part<T> = serde_json::from_str(&text).ok()?;
        (part.of == fingerprint).then_some(part.result)
    }

    /// Checks before the computation that parts can be stored.
    ///
    /// # Errors
    /// Returns errors of the file system, and [`io::ErrorKind::InvalidInput`] if the folder is a file or a
    /// link, which is not followed.
    pub fn check(&self) -> io::Result<()> {
        match fs::symlink_metadata(&self.folder) {
            Ok(found) if !found.is_dir() => Err(io::Error::new(
                io::ErrorKind::InvalidInput,
                "what is finished is kept there until the work has ended, and it is a link or a file: move it away",
            )),
            _ => Staging::folder(&self.folder).map(drop),
        }
    }

    /// Stores a result under a fingerprint, whole or not at all.
    ///
    /// # Errors
    /// Returns errors of the file system, and those of [`ResultCache::check`].
    pub fn keep<T: Serialize>(&self, fingerprint: &str, result: T) -> io::Result<()> {
        fs::create_dir_all(parent(&self.folder))?;
        if let Err(error) = fs::create_dir(&self.folder)
            && !is_folder(&self.folder)
        {
            return Err(error);
        }
        let part = Part {
            of: fingerprint.to_owned(),
            result,
        };
        let text = serde_json::to_string(&part)?;
        files::replace(&self.file(fingerprint), text.as_bytes())
    }

    /// Removes everything that was stored, and the folder if it is empty then. Does nothing if there is no
    /// folder.
    ///
    /// # Errors
    /// Returns errors of the file system.
    pub fn remove(&self) -> io::Result<()> {
        if !is_folder(&self.folder) {
            return Ok(());
        }
        for entry in fs::read_dir(&self.folder)? {
            let entry = entry?;
            if is_part(&entry.file_name()) {
                fs::remove_file(entry.path())?;
            }
        }
        match fs::remove_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => Ok(()),
            result => result,
        }
    }

    fn file(&self, fingerprint: &str) -> PathBuf {
        let short = fingerprint.get(..DIGITS).unwrap_or(fingerprint);
        self.folder.join(format!("{short}{SUFFIX}"))
    }
}

/// Number of hexadecimal digits of a fingerprint in the name of a file.
const DIGITS: usize = 16;
const SUFFIX: &str = ".json";

/// Returns true if a file in the folder has the name of a part, or of one that a killed process was writing.
fn is_part(name: &OsStr) -> bool {
    let name = name.to_string_lossy();
    let name = match name
        .strip_prefix('.')
        .and_then(|name| name.split_once(files::PARTIAL))
    {
        Some((part, _)) => part,
        None => name.as_ref(),
    };
    let digits = name.strip_suffix(SUFFIX).unwrap_or_default();
    digits.len() == DIGITS && digits.bytes().all(|digit| digit.is_ascii_hexdigit())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_removed_and_nothing_else() {
        let base = tempfile::tempdir().unwrap();
        let parts = ResultCache::new(base.path().join("a/b.parts"));
        let fingerprint = ResultCache::fingerprint("what", "revision");
        for others in [false, true] {
            parts.check().unwrap();
            parts.keep(&fingerprint, 7).unwrap();
            let left = format!(".{}.json.partial-1", &fingerprint[..DIGITS]);
            fs::write(parts.folder().join(left), "half").unwrap();
            assert_eq!(parts.load(&fingerprint), Some(7));
            if others {
                fs::write(parts.folder().join("notes.json"), "mine").unwrap();
            }
            parts.remove().unwrap();
            assert_eq!(parts.folder().exists(), others);
        }
        assert_eq!(fs::read_dir(parts.folder()).unwrap().count(), 1);
    }

    #[cfg(unix)]
    #[test]
    fn a_link_in_their_place_is_refused_and_not_followed() {
        let base = tempfile::tempdir().unwrap();
        let victim = base.path().join("victim");
        fs::create_dir(&victim).unwrap();
        fs::write(victim.join("0123456789abcdef.json"), "mine").unwrap();
        for target in ["victim", "nowhere"] {
            let parts = ResultCache::new(base.path().join(format!("{target}.parts")));
            std::os::unix::fs::symlink(target, parts.folder()).unwrap();
            assert!(parts.check().is_err() && parts.keep("0123", 7).is_err());
            parts.remove().unwrap();
            assert!(parts.folder().is_symlink());
        }
        assert_eq!(fs::read_dir(&victim).unwrap().count(), 1);
        assert!(!base.path().join("nowhere").exists());
    }
}
