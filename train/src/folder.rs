//! The run folder and its tables.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use bufgym_models::files::write_synced;

use crate::TrainError;

/// The lock of the process that trains in the folder. The operating system releases it when the
/// process ends, also after a crash.
const LOCK: &str = ".lock";
const CONFIG: &str = "config.toml";
const SCENARIO: &str = "scenario.toml";
const CHECKPOINTS: &str = "checkpoints";

/// A run folder that this process trains in.
#[derive(Debug)]
pub(crate) struct RunFolder {
    path: PathBuf,
    _lock: File,
}

impl RunFolder {
    /// Creates a run folder. With `force` the files of an earlier run are removed, and no others.
    pub(crate) fn create(path: &Path, force: bool) -> Result<Self, TrainError> {
        match fs::read_dir(path) {
            Ok(mut entries) => {
                if !force && entries.next().is_some() {
                    return Err(TrainError::FolderNotEmpty(path.to_owned()));
                }
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                fs::create_dir_all(path).map_err(TrainError::folder(path))?;
            }
            Err(error) => return Err(TrainError::folder(path)(error)),
        }
        let folder = Self::lock(path)?;
        if force {
            folder.remove_earlier_run()?;
        }
        Ok(folder)
    }

    /// Opens a folder to continue its training.
    pub(crate) fn open(path: &Path) -> Result<Self, TrainError> {
        if !path.join(CONFIG).is_file() && !path.join(CHECKPOINTS).is_dir() {
            return Err(TrainError::NothingToResume(path.to_owned()));
        }
        Self::lock(path)
    }

    fn lock(path: &Path) -> Result<Self, TrainError> {
        let file = path.join(LOCK);
        let lock = File::create(&file).map_err(TrainError::folder(path))?;
        match lock.try_lock() {
            Ok(()) => Ok(Self {
                path: path.to_owned(),
                _lock: lock,
            }),
            Err(TryLockError::WouldBlock) => Err(TrainError::FolderInUse(path.to_owned())),
            Err(TryLockError::Error(error)) => Err(TrainError::folder(path)(error)),
        }
    }

    fn remove_earlier_run(&self) -> Result<(), TrainError> {
        let entries = fs::read_dir(&self.path).map_err(TrainError::io(&self.path))?;
        for entry in entries {
            let path = entry.map_err(TrainError::io(&self.path))?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let removed = match name.as_ref() {
                CHECKPOINTS => fs::remove_dir_all(&path),
                CONFIG | SCENARIO | "metrics.csv" | "perf.csv" | "train.log" => {
                    fs::remove_file(&path)
                }
                name if name.starts_with("events.out.tfevents.") => fs::remove_file(&path),
                _ => Ok(()),
            };
            removed.map_err(TrainError::io(&path))?;
        }
        Ok(())
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn config(&self) -> PathBuf {
        self.path.join(CONFIG)
    }

    pub(crate) fn scenario(&self) -> PathBuf {
        self.path.join(SCENARIO)
    }

    pub(crate) fn checkpoints(&self) -> PathBuf {
        self.path.join(CHECKPOINTS)
    }

    pub(crate) fn best(&self) -> PathBuf {
        self.checkpoints().join("best")
    }

    /// Writes the resolved configuration atomically.
    pub(crate) fn write_config(&self, toml: &str) -> Result<(), TrainError> {
        let new = self.path.join(".config.toml.new");
        write_synced(&new, toml.as_bytes())
            .and_then(|()| fs::rename(&new, self.config()))
            .map_err(TrainError::io(&self.config()))
    }
}

/// A CSV file that is written row by row and can be cut back to an earlier length.
#[derive(Debug)]
pub(crate) struct Table {
    path: PathBuf,
    file: File,
    bytes: u64,
}

impl Table {
    /// A new table with this first line.
    pub(crate) fn create(path: PathBuf, header: &str) -> Result<Self, TrainError> {
        let file = File::create(&path).map_err(TrainError::io(&path))?;
        let mut table = Self {
            path,
            file,
            bytes: 0,
        };
        table.row(header)?;
        Ok(table)
    }

    /// Opens the table and cuts it back to `bytes`. If it is missing or shorter, rows are lost and
    /// a new table begins.
    pub(crate) fn reopen(path: PathBuf, bytes: u64, header: &str) -> Result<Self, TrainError> {
        let length = fs::metadata(&path).map_or(0, |metadata| metadata.len());
        if bytes == 0 || length < bytes {
            return Self::create(path, header);
        }
        let file = OpenOptions::new().append(true).open(&path);
        let file = file.map_err(TrainError::io(&path))?;
        file.set_len(bytes).map_err(TrainError::io(&path))?;
        Ok(Self { path, file, bytes })
    }

    /// Appends one row.
    pub(crate) fn row(&mut self, row: &str) -> Result<(), TrainError> {
        let line = format!("{row}\n");
        self.file
            .write_all(line.as_bytes())
            .map_err(TrainError::io(&self.path))?;
        self.bytes += line.len() as u64;
        Ok(())
    }

    /// Waits until every row is on the disk. Returns the length in bytes.
    pub(crate) fn sync(&self) -> Result<u64, TrainError> {
        self.file.sync_data().map_err(TrainError::io(&self.path))?;
        Ok(self.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_with_something_in_it_is_refused_and_left_alone() {
        let root = tempfile::tempdir().unwrap();
        fs::write(root.path().join("notes.txt"), "mine").unwrap();
        let refused = RunFolder::create(root.path(), false).unwrap_err();
        assert!(refused.to_string().contains("--force"), "{refused}");
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 1);

        fs::write(root.path().join("metrics.csv"), "old").unwrap();
        RunFolder::create(root.path(), true).unwrap();
        assert!(root.path().join("notes.txt").exists());
        assert!(!root.path().join("metrics.csv").exists());
    }

    #[test]
    fn two_trainings_do_not_share_a_folder() {
        let root = tempfile::tempdir().unwrap();
        let _first = RunFolder::create(root.path(), false).unwrap();
        let second = RunFolder::create(root.path(), true).unwrap_err();
        assert!(matches!(second, TrainError::FolderInUse(_)), "{second}");
    }

    #[test]
    fn an_unwritable_place_is_named() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("file");
        fs::write(&file, "").unwrap();
        let error = RunFolder::create(&file.join("run"), false).unwrap_err();
        assert!(error.to_string().contains("run"), "{error}");
        let error = RunFolder::open(&root.path().join("none")).unwrap_err();
        assert!(error.to_string().contains("no checkpoint"), "{error}");
    }

    #[test]
    fn a_table_goes_back_to_an_earlier_row() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("metrics.csv");
        let mut table = Table::create(path.clone(), "a,b").unwrap();
        table.row("1,2").unwrap();
        let bytes = table.sync().unwrap();
        table.row("3,4").unwrap();
        drop(table);
        // A row torn by a kill.
        let mut text = fs::read_to_string(&path).unwrap();
        text.push_str("5,");
        fs::write(&path, text).unwrap();
        let mut table = Table::reopen(path.clone(), bytes, "a,b").unwrap();
        table.row("6,7").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "a,b\n1,2\n6,7\n");
    }
}
