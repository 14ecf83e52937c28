//! Output files and folders: never overwritten without `--force`, never half written.

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use bufgym::sim::files::{self, Staging, parent};

use super::error::{CliError, CliResult};

/// A file or folder that a command will write, checked before the work starts.
pub struct Output {
    path: PathBuf,
    /// What is there may be replaced.
    force: bool,
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
            Err(error) => return Err(refusal(error, format!("output folder {}", path.display()))),
        }
        Output::writable(path, force)
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
            Err(error) => return Err(refusal(error, format!("output file {}", path.display()))),
        }
        Output::writable(path, force)
    }

    /// Creates and removes a folder in the nearest existing folder, so that a path that cannot be
    /// written is refused before the work starts.
    fn writable(path: &Path, force: bool) -> CliResult<Output> {
        let mut first = path;
        while !parent(first).exists() {
            first = parent(first);
        }
        Staging::folder(first)
            .map(drop)
            .map_err(|error| refusal(error, format!("cannot write {}", path.display())))?;
        Ok(Output {
            path: path.to_path_buf(),
            force,
        })
    }

    /// Where the result will be.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Writes the folder: `write` fills a temporary one beside it, which is then renamed into place.
    /// When `write` fails, nothing is left.
    ///
    /// # Errors
    /// What `write` says, or the operating system. When something has come to be there since the work
    /// started, which may not be replaced; the result is then beside it.
    pub fn write_folder(&self, write: impl FnOnce(&Path) -> CliResult) -> CliResult {
        let staging = fs::create_dir_all(parent(&self.path))
            .and_then(|()| Staging::folder(&self.path))
            .map_err(|error| self.failure(error))?;
        write(staging.path()).map_err(|error| self.located(error))?;
        let occupied = fs::read_dir(&self.path).is_ok_and(|mut entries| entries.next().is_some());
        let place = self.place(occupied);
        staging
            .install_folder(&place)
            .map_err(|error| self.failure(error))?;
        self.confirm(&place)
    }

    /// Writes the file, through a temporary one beside it.
    ///
    /// # Errors
    /// As [`Output::write_folder`].
    pub fn write_file(&self, write: impl FnOnce(&mut dyn io::Write) -> CliResult) -> CliResult {
        // A device or pipe (`/dev/stdout`) cannot be renamed over.
        if fs::metadata(&self.path).is_ok_and(|found| !found.is_file()) {
            let file = fs::OpenOptions::new().write(true).open(&self.path);
            let mut file = io::BufWriter::new(file.map_err(|error| self.failure(error))?);
            write(&mut file).map_err(|error| self.located(error))?;
            return file.flush().map_err(|error| self.failure(error));
        }
        let (staging, file) = fs::create_dir_all(parent(&self.path))
            .and_then(|()| Staging::file(&self.path))
            .map_err(|error| self.failure(error))?;
        let mut file = io::BufWriter::new(file);
        write(&mut file).map_err(|error| self.located(error))?;
        let file = file
            .into_inner()
            .map_err(|error| self.failure(error.into_error()))?;
        let occupied = fs::metadata(&self.path).is_ok_and(|found| found.len() > 0);
        let place = self.place(occupied);
        staging
            .install_file(file, &place)
            .map_err(|error| self.failure(error))?;
        self.confirm(&place)
    }

    /// Where the result goes: beside its place if that is occupied and may not be replaced.
    fn place(&self, occupied: bool) -> PathBuf {
        if !occupied || self.force {
            return self.path.clone();
        }
        let numbered = |number: u64| {
            let mut name = self.path.as_os_str().to_owned();
            name.push(format!("-{number}"));
            PathBuf::from(name)
        };
        let absent = |path: &PathBuf| path.symlink_metadata().is_err();
        let mut free = (2..).map(numbered).filter(absent);
        free.next().unwrap_or_else(|| self.path.clone())
    }

    fn confirm(&self, place: &Path) -> CliResult {
        if place == self.path {
            return Ok(());
        }
        Err(CliError::failure(anyhow::anyhow!(
            "{} has been written by somebody else since the work started: the result is in {}",
            self.path.display(),
            place.display()
        )))
    }

    fn failure(&self, error: io::Error) -> CliError {
        self.located(CliError::failure(error))
    }

    /// A failure with the place that was written.
    fn located(&self, error: CliError) -> CliError {
        match error {
            CliError::Failure(error) => {
                let context = format!("cannot write {}", self.path.display());
                CliError::Failure(error.context(context))
            }
            other => other,
        }
    }
}

/// A place where nothing can be written is bad input; a full or broken disk is not.
fn refusal(error: io::Error, context: String) -> CliError {
    let wrong_place = files::is_wrong_place(&error);
    let error = anyhow::Error::new(error).context(context);
    match wrong_place {
        true => CliError::input(error),
        false => CliError::failure(error),
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
    use crate::cli::error::ResultExt as _;

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
