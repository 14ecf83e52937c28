//! Output files and folders: never overwritten without `--force`, never half written.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::error::{CliError, CliResult, ResultExt as _};

/// A file or folder that a command will write, checked before the work starts.
pub struct Output {
    path: PathBuf,
}

impl Output {
    /// A folder to be written. It may be absent or empty, or with `force` hold anything.
    ///
    /// # Errors
    /// Bad input: it holds something, is a file, or cannot be created.
    pub fn folder(path: &Path, force: bool) -> CliResult<Output> {
        match fs::read_dir(path) {
            Ok(mut entries) => {
                if !force && entries.next().is_some() {
                    return Err(CliError::bad(format!(
                        "output folder {} is not empty: choose another, or give --force to replace files in it",
                        path.display()
                    )));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                return Err(CliError::bad(format!(
                    "output folder {} is not a folder, or lies under a file",
                    path.display()
                )));
            }
            Err(error) => {
                return Err(error)
                    .with_context(|| format!("output folder {}", path.display()))
                    .or_bad_input();
            }
        }
        Output::writable(path)
    }

    /// A file to be written. It may be absent or empty, or with `force` hold anything.
    ///
    /// # Errors
    /// Bad input: it holds something, is a folder, or cannot be created.
    pub fn file(path: &Path, force: bool) -> CliResult<Output> {
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => {
                return Err(CliError::bad(format!(
                    "output file {} is a folder: give the name of a file",
                    path.display()
                )));
            }
            Ok(found) if found.is_file() && found.len() > 0 && !force => {
                return Err(CliError::bad(format!(
                    "output file {} exists: choose another, or give --force to replace it",
                    path.display()
                )));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => {
                return Err(error)
                    .with_context(|| format!("output file {}", path.display()))
                    .or_bad_input();
            }
        }
        Output::writable(path)
    }

    /// Creates and removes a folder in the nearest existing folder, so that a path that cannot be
    /// written is refused before the work starts.
    fn writable(path: &Path) -> CliResult<Output> {
        let mut folder = parent(path);
        while !folder.exists() {
            folder = parent(&folder);
        }
        let probe = folder.join(format!(".bufgym-probe-{}", std::process::id()));
        fs::create_dir(&probe)
            .and_then(|()| fs::remove_dir(&probe))
            .with_context(|| format!("cannot write {}", path.display()))
            .or_bad_input()?;
        Ok(Output {
            path: path.to_path_buf(),
        })
    }

    /// Where the result will be.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the folder: `write` fills a temporary one beside it, whose files are then renamed
    /// into place. When `write` fails, nothing is left.
    ///
    /// # Errors
    /// What `write` says, or the operating system.
    pub fn write_folder(&self, write: impl FnOnce(&Path) -> CliResult) -> CliResult {
        let staging = self.staging()?;
        fs::create_dir(&staging)
            .with_context(|| format!("cannot create {}", staging.display()))
            .or_failure()?;
        let moved = write(&staging).and_then(|()| {
            move_into_place(&staging, &self.path)
                .with_context(|| format!("cannot write {}", self.path.display()))
                .or_failure()
        });
        if moved.is_err() {
            // The first error is the one to report.
            let _ = fs::remove_dir_all(&staging);
        }
        moved
    }

    /// Writes the file, through a temporary one beside it.
    ///
    /// # Errors
    /// What `write` says, or the operating system.
    pub fn write_file(&self, write: impl FnOnce(&mut dyn io::Write) -> CliResult) -> CliResult {
        // A device or pipe (`/dev/stdout`) cannot be renamed over.
        if fs::metadata(&self.path).is_ok_and(|found| !found.is_file()) {
            let mut file = io::BufWriter::new(
                fs::OpenOptions::new()
                    .write(true)
                    .open(&self.path)
                    .or_failure()?,
            );
            write(&mut file)?;
            return file.flush().or_failure();
        }
        let staging = self.staging()?;
        let save = || {
            let mut file = io::BufWriter::new(fs::File::create(&staging).or_failure()?);
            write(&mut file)?;
            let file = file
                .into_inner()
                .map_err(|error| CliError::failure(error.into_error()))?;
            file.sync_all().or_failure()?;
            fs::rename(&staging, &self.path).or_failure()
        };
        let saved = save();
        if saved.is_err() {
            let _ = fs::remove_file(&staging);
        }
        saved
    }

    /// A hidden name beside the output, on the same file system so that a rename is atomic.
    fn staging(&self) -> CliResult<PathBuf> {
        let folder = parent(&self.path);
        fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))
            .or_failure()?;
        let name = self.path.file_name().unwrap_or_default().to_string_lossy();
        Ok(folder.join(format!(".{name}.partial-{}", std::process::id())))
    }
}

/// Renames the whole folder where `to` is absent, else entry by entry.
fn move_into_place(from: &Path, to: &Path) -> io::Result<()> {
    if !to.exists() {
        return fs::rename(from, to);
    }
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() && target.exists() {
            fs::remove_dir_all(&target)?;
        }
        fs::rename(entry.path(), target)?;
    }
    fs::remove_dir(from)
}

/// The folder that holds `path`; `.` for a bare name.
fn parent(path: &Path) -> PathBuf {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder.to_path_buf(),
        Some(_) => PathBuf::from("."),
        None => PathBuf::from("/"),
    }
}

/// The name with `_` for every character that is unusual in file names.
pub fn file_name(name: &str) -> String {
    let plain = |c: char| match c.is_alphanumeric() || "-_.=".contains(c) {
        true => c,
        false => '_',
    };
    name.chars().map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entries(folder: &Path) -> Vec<String> {
        let mut names: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_failed_write_leaves_nothing() {
        let base = tempfile::tempdir().unwrap();
        let output = Output::folder(&base.path().join("out"), false)
            .ok()
            .unwrap();
        let result = output.write_folder(|folder| {
            fs::write(folder.join("a.csv"), "1").unwrap();
            Err(CliError::bad("stopped"))
        });
        assert!(result.is_err());
        assert!(entries(base.path()).is_empty());
    }

    #[test]
    fn a_folder_with_content_is_refused_and_kept() {
        let base = tempfile::tempdir().unwrap();
        fs::write(base.path().join("mine.txt"), "precious").unwrap();
        assert!(Output::folder(base.path(), false).is_err());
        let output = Output::folder(base.path(), true).ok().unwrap();
        output
            .write_folder(|folder| fs::write(folder.join("a.csv"), "1").or_failure())
            .ok()
            .unwrap();
        assert_eq!(entries(base.path()), ["a.csv", "mine.txt"]);
    }

    #[test]
    fn a_path_under_a_file_is_refused() {
        let base = tempfile::tempdir().unwrap();
        let file = base.path().join("file");
        fs::write(&file, "x").unwrap();
        assert!(Output::folder(&file, true).is_err());
        assert!(Output::folder(&file.join("below"), false).is_err());
        assert!(Output::file(base.path(), false).is_err());
    }
}
