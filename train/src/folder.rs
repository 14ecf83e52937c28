//! The run folder and its tables.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead as _, BufReader, Write};
use std::path::{Path, PathBuf};

use bufgym_util::files::{self, Lock, is_at};

use crate::TrainError;

/// The lock of the process that trains in the folder. The operating system releases it when the
/// process ends, also after a crash.
const LOCK: &str = ".lock";
const CHECKPOINTS: &str = "checkpoints";
pub(crate) const CONFIG: &str = "config.toml";
pub(crate) const SCENARIO: &str = "scenario.toml";
/// The linear rule that a training starts from.
pub(crate) const RULE: &str = "rule.json";
pub(crate) const METRICS: &str = "metrics.csv";
pub(crate) const PERF: &str = "perf.csv";

/// A run folder that this process trains in.
#[derive(Debug)]
pub(crate) struct RunFolder {
    path: PathBuf,
    lock: Lock,
    folder: File,
    /// Opened once the folder exists.
    checkpoints: Option<File>,
}

impl RunFolder {
    /// Creates a run folder. With `force` the files of an earlier run are removed, and no others. A
    /// folder that no training has made, but that has files or folders of the same names, is refused.
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
        if force {
            check_origin(path)?;
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
        let checkpoints = path.join(CHECKPOINTS);
        if checkpoints.is_symlink() {
            let link = "it is a link, which is not followed: put the folder itself there";
            let error = io::Error::new(io::ErrorKind::InvalidInput, link);
            return Err(TrainError::folder(&checkpoints)(error));
        }
        Self::lock(path)
    }

    fn lock(path: &Path) -> Result<Self, TrainError> {
        let lock = Lock::take(&path.join(LOCK)).map_err(|error| match error.kind() {
            // The folder may come from somebody else, so the target of a link is not our lock.
            io::ErrorKind::InvalidInput => not_a_run(path, format!("{LOCK}: {error}")),
            _ => TrainError::folder(path)(error),
        })?;
        Ok(Self {
            path: path.to_owned(),
            lock: lock.ok_or_else(|| TrainError::FolderInUse(path.to_owned()))?,
            folder: File::open(path).map_err(TrainError::folder(path))?,
            checkpoints: None,
        })
    }

    /// Watches the folder of the checkpoints, which must exist, from the first call on. A folder that was made again
    /// while a state was written counts as another one.
    pub(crate) fn watch_checkpoints(&mut self) -> Result<(), TrainError> {
        if self.checkpoints.is_some() {
            return Ok(());
        }
        let path = self.checkpoints();
        self.checkpoints = Some(File::open(&path).map_err(TrainError::io(&path))?);
        Ok(())
    }

    /// Returns true if the folder is still in its place. The path to it may have links.
    pub(crate) fn is_there(&self) -> bool {
        let path = self.path.canonicalize();
        path.is_ok_and(|path| is_at(&self.folder, &path))
    }

    /// Returns the files and folders of this process that are missing from the folder.
    pub(crate) fn lost(&self) -> Vec<&'static str> {
        let lock = self.lock.is_at(&self.path.join(LOCK));
        let checkpoints = match &self.checkpoints {
            Some(open) => is_at(open, &self.checkpoints()),
            None => true,
        };
        let found = [(LOCK, lock), (CHECKPOINTS, checkpoints)];
        let lost = found.into_iter().filter(|(_, there)| !there);
        lost.map(|(name, _)| name).collect()
    }

    fn remove_earlier_run(&self) -> Result<(), TrainError> {
        for path in files_of_a_run(&self.path)? {
            files::remove(&path).map_err(TrainError::io(&path))?;
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

    /// Writes a file of this name atomically.
    pub(crate) fn write(&self, name: &str, text: &str) -> Result<(), TrainError> {
        let path = self.path.join(name);
        files::replace(&path, text.as_bytes()).map_err(TrainError::io(&path))
    }

    /// Returns a description of the results that a new training in this folder would replace; `None` if there are none.
    pub(crate) fn earlier_results(&self) -> Option<String> {
        let rows = match rows(&self.path.join(METRICS)) {
            0 => None,
            rows => Some(format!("{METRICS} with {rows} rows")),
        };
        let entries = fs::read_dir(self.checkpoints()).into_iter().flatten();
        let kept = entries.flatten().next().map(|_| CHECKPOINTS.to_owned());
        let found: Vec<String> = rows.into_iter().chain(kept).collect();
        (!found.is_empty()).then(|| found.join(" and "))
    }
}

/// Returns the files and folders in `path` with names that a training uses.
fn files_of_a_run(path: &Path) -> Result<Vec<PathBuf>, TrainError> {
    let mut found = Vec::new();
    for entry in fs::read_dir(path).map_err(TrainError::io(path))? {
        let entry = entry.map_err(TrainError::io(path))?.path();
        let name = entry.file_name().unwrap_or_default().to_string_lossy();
        let is_of_a_run = match name.as_ref() {
            CHECKPOINTS | CONFIG | SCENARIO | RULE | METRICS | PERF | "train.log" => true,
            name => name.starts_with("events.out.tfevents."),
        };
        if is_of_a_run {
            found.push(entry);
        }
    }
    Ok(found)
}

/// Refuses a folder whose files would be removed although no training made them: a training leaves a
/// lock file, and its checkpoints are called `best` and `step-N`.
fn check_origin(path: &Path) -> Result<(), TrainError> {
    let found = files_of_a_run(path)?;
    if let Some(first) = found.first()
        && !path.join(LOCK).is_file()
    {
        let name = first.file_name().unwrap_or_default().to_string_lossy();
        return Err(not_a_run(
            path,
            format!("{name} is there and {LOCK} is not"),
        ));
    }
    let checkpoints = path.join(CHECKPOINTS);
    for entry in fs::read_dir(&checkpoints).into_iter().flatten() {
        let name = entry.map_err(TrainError::io(&checkpoints))?.file_name();
        let name = name.to_string_lossy();
        // Names with a leading dot belong to checkpoints that were being written.
        if !(name == "best" || name.starts_with("step-") || name.starts_with('.')) {
            return Err(not_a_run(path, format!("{CHECKPOINTS}/{name} is there")));
        }
    }
    Ok(())
}

fn not_a_run(path: &Path, found: String) -> TrainError {
    TrainError::NotARun {
        path: path.to_owned(),
        found,
    }
}

/// Returns the number of complete rows of a table, without its header; 0 if there is no table.
fn rows(table: &Path) -> u64 {
    let complete = |line: &io::Result<Vec<u8>>| line.is_ok();
    let lines =
        File::open(table).map(|file| BufReader::new(file).split(b'\n').take_while(complete));
    lines.map_or(0, |lines| (lines.count() as u64).saturating_sub(1))
}

/// A CSV file that is written row by row and can be cut back to an earlier length.
#[derive(Debug)]
pub(crate) struct Table {
    path: PathBuf,
    file: File,
    bytes: u64,
}

impl Table {
    /// Creates a table with this first line. It replaces an existing file.
    pub(crate) fn create(path: PathBuf, header: &str) -> Result<Self, TrainError> {
        // The old file may be a link, which is not followed.
        let file = match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => OpenOptions::new().append(true).create_new(true).open(&path),
        };
        let file = file.map_err(TrainError::io(&path))?;
        let mut table = Self {
            path,
            file,
            bytes: 0,
        };
        table.row(header)?;
        Ok(table)
    }

    /// Opens the table and cuts it back to `bytes`. If [`Table::problem`] finds a problem, complete rows that are left
    /// stay, and a table without its header begins anew.
    pub(crate) fn reopen(path: PathBuf, bytes: u64, header: &str) -> Result<Self, TrainError> {
        let bytes = match Self::problem(&path, bytes, header) {
            None => bytes,
            Some(_) => Self::complete(&path, bytes, header).map_err(TrainError::io(&path))?,
        };
        if bytes == 0 {
            return Self::create(path, header);
        }
        let file = OpenOptions::new().append(true).open(&path);
        let file = file.map_err(TrainError::io(&path))?;
        file.set_len(bytes).map_err(TrainError::io(&path))?;
        Ok(Self { path, file, bytes })
    }

    /// Returns the reason why `path` does not hold a table of `bytes` bytes with this first line; `None` if it does.
    pub(crate) fn problem(path: &Path, bytes: u64, header: &str) -> Option<String> {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let length = match fs::symlink_metadata(path) {
            Ok(found) if found.is_file() => found.len(),
            Ok(_) => return Some(format!("{name} is not a file")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Some(format!("{name} is missing"));
            }
            Err(error) => return Some(format!("{name}: {error}")),
        };
        if length < bytes {
            return Some(format!(
                "{name} has {length} bytes where the stored state has {bytes}"
            ));
        }
        match Self::complete(path, bytes, header) {
            Ok(complete) if complete == bytes => None,
            Ok(_) => Some(format!("{name} is not the table of the stored state")),
            Err(error) => Some(format!("{name}: {error}")),
        }
    }

    /// Returns the bytes up to the last line end among the first `bytes`; 0 if the first line is another.
    fn complete(path: &Path, bytes: u64, header: &str) -> io::Result<u64> {
        let plain = fs::symlink_metadata(path).is_ok_and(|found| found.is_file());
        if !plain {
            return Ok(0);
        }
        let mut reader = BufReader::new(io::Read::take(File::open(path)?, bytes));
        let (mut complete, mut line) = (0, Vec::new());
        loop {
            line.clear();
            reader.read_until(b'\n', &mut line)?;
            let is_first = complete == 0;
            match line.strip_suffix(b"\n") {
                Some(text) if !is_first || text == header.as_bytes() => {
                    complete += line.len() as u64;
                }
                _ => return Ok(complete),
            }
        }
    }

    /// Returns true if the file at the path is this table, with all of its rows and no others.
    pub(crate) fn is_there(&self) -> bool {
        let length = self.file.metadata().map(|metadata| metadata.len());
        is_at(&self.file, &self.path) && length.is_ok_and(|length| length == self.bytes)
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

        // First without files that have names of a training's, and then as a training leaves it.
        drop(RunFolder::create(root.path(), true).unwrap());
        fs::write(root.path().join("metrics.csv"), "old").unwrap();
        fs::create_dir_all(root.path().join("checkpoints/step-10")).unwrap();
        RunFolder::create(root.path(), true).unwrap();
        assert!(root.path().join("notes.txt").exists());
        assert!(!root.path().join("metrics.csv").exists());
        assert!(!root.path().join("checkpoints").exists());
    }

    #[test]
    fn what_no_training_made_is_not_replaced() {
        let root = tempfile::tempdir().unwrap();
        let shipped = root.path().join("checkpoints/mine/actor.safetensors");
        fs::create_dir_all(shipped.parent().unwrap()).unwrap();
        fs::write(&shipped, "weights").unwrap();
        for lock in [false, true] {
            if lock {
                fs::write(root.path().join(LOCK), "").unwrap();
            }
            let refused = RunFolder::create(root.path(), true).unwrap_err();
            assert!(refused.to_string().contains("checkpoints"), "{refused}");
            assert_eq!(fs::read_to_string(&shipped).unwrap(), "weights");
        }
    }

    #[cfg(unix)]
    #[test]
    fn a_lock_that_is_a_link_is_refused_and_its_target_kept() {
        let root = tempfile::tempdir().unwrap();
        let target = root.path().join("target");
        fs::write(&target, "precious").unwrap();
        let run = root.path().join("run");
        fs::create_dir_all(run.join("checkpoints")).unwrap();
        std::os::unix::fs::symlink(&target, run.join(LOCK)).unwrap();
        for result in [RunFolder::open(&run), RunFolder::create(&run, true)] {
            let refused = result.unwrap_err().to_string();
            assert!(refused.contains("link"), "{refused}");
        }
        assert_eq!(fs::read_to_string(&target).unwrap(), "precious");
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

    #[test]
    fn a_table_that_lost_rows_says_so_and_keeps_the_others() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("metrics.csv");
        let problem = |text: &str| {
            fs::write(&path, text).unwrap();
            Table::problem(&path, 12, "a,b").unwrap_or_default()
        };
        assert_eq!(problem("a,b\n1,2\n3,4\n5"), "");
        assert!(problem("a,b\n1,2\n").contains("8 bytes"));
        assert!(problem("b,a\n1,2\n3,4\n").contains("not the table"));
        assert!(problem("a,b\n1,2\n3,445\n").contains("not the table"));
        fs::remove_file(&path).unwrap();
        let missing = Table::problem(&path, 12, "a,b").unwrap();
        assert_eq!(missing, "metrics.csv is missing");

        for (left, kept) in [
            ("a,b\n1,2\n3", "a,b\n1,2\n"),
            ("x\n", "a,b\n"),
            ("", "a,b\n"),
        ] {
            fs::write(&path, left).unwrap();
            drop(Table::reopen(path.clone(), 12, "a,b").unwrap());
            assert_eq!(fs::read_to_string(&path).unwrap(), kept);
        }
    }

    #[test]
    fn a_table_that_is_gone_or_another_is_noticed() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("metrics.csv");
        let mut table = Table::create(path.clone(), "a,b").unwrap();
        table.row("1,2").unwrap();
        assert!(table.is_there());
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, "a,b\n").unwrap();
        assert!(!table.is_there(), "it is cut");
        fs::write(&path, &text).unwrap();
        assert!(table.is_there());
        fs::remove_file(&path).unwrap();
        assert!(!table.is_there(), "it is gone");
        fs::write(&path, &text).unwrap();
        assert!(!table.is_there() || cfg!(not(unix)), "it is another file");
    }
}
