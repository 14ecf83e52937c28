//! Atomic writing of results: a file or folder is complete or absent, and existing content is not lost.
//!
//! Output goes into a hidden file or folder next to its final path, `.NAME.partial-PID`, which is
//! synchronised with the disk and renamed. It is created, never opened: a link that somebody has put
//! there is not followed, nor is a link below a folder that is written. Leftovers of a killed process
//! are removed by the next process that writes the same name.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// Text between the name of a result and the id of the process that writes it.
pub const PARTIAL: &str = ".partial-";

/// Creates a file. The path must not exist, not even as a link.
///
/// # Errors
/// Those of the file system.
pub fn create(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).open(path)
}

/// Creates a file that must not exist yet, writes it and waits until it is on the disk.
///
/// # Errors
/// Those of the file system.
pub fn write_new(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file = create(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Replaces the content of a file, or creates the file. At any moment, also after a crash, the file has
/// either its complete old or its complete new content. A link itself is replaced, not its target.
///
/// # Errors
/// Those of the file system. The old content is then still there.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let (staging, mut file) = Staging::file(path)?;
    file.write_all(bytes)?;
    staging.install_file(&file, path)
}

/// Like [`replace`], with a function that writes the content.
///
/// # Errors
/// Those of the function and of the file system.
pub fn replace_with<E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> Result<(), E>,
) -> Result<(), E> {
    let (staging, file) = Staging::file(path)?;
    let mut file = BufWriter::new(file);
    write(&mut file)?;
    let file = file.into_inner().map_err(io::IntoInnerError::into_error)?;
    Ok(staging.install_file(&file, path)?)
}

/// A file or folder that is being written near its final path. It is removed if it is dropped before it is
/// installed.
#[derive(Debug)]
pub struct Staging {
    path: PathBuf,
    /// Held while this process writes: a file or folder without a lock is a leftover.
    _lock: Option<File>,
}

impl Staging {
    /// Creates a file for the final path `target`, in the nearest existing folder above it. Removes leftovers
    /// of killed processes for the same path.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn file(target: &Path) -> io::Result<(Staging, File)> {
        remove_partial(target)?;
        let path = partial(target, ground(target));
        let file = create(&path)?;
        let lock = file.try_clone().ok().filter(|file| file.try_lock().is_ok());
        Ok((Staging { path, _lock: lock }, file))
    }

    /// Like [`Staging::file`], but creates an empty folder. The new folder is inside `target` if `target` is a
    /// folder into which nothing next to it can be moved, such as a mount point.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn folder(target: &Path) -> io::Result<Staging> {
        remove_partial(target)?;
        let beside = Staging::folder_in(ground(target), target);
        if !target.is_dir() {
            return beside;
        }
        match beside.ok().filter(|beside| beside.can_move_into(target)) {
            Some(beside) => Ok(beside),
            None => Staging::folder_in(target, target),
        }
    }

    fn folder_in(folder: &Path, target: &Path) -> io::Result<Staging> {
        let path = partial(target, folder);
        fs::create_dir(&path)?;
        let lock = File::open(&path).ok();
        let lock = lock.filter(|folder| folder.try_lock().is_ok());
        Ok(Staging { path, _lock: lock })
    }

    fn can_move_into(&self, target: &Path) -> bool {
        let inside = partial(target, target);
        fs::rename(&self.path, &inside).is_ok() && fs::rename(&inside, &self.path).is_ok()
    }

    /// Returns the current path of the staged file or folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Waits until the file is on the disk, then moves it to `target`, whose folder must exist.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn install_file(&self, file: &File, target: &Path) -> io::Result<()> {
        file.sync_all()?;
        fs::rename(&self.path, target)?;
        sync_folder(parent(target))
    }

    /// Returns an obstacle to the installation of the folder: a folder in `target` where a file is to go.
    /// Files and links are no obstacles, they are replaced.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn obstacle(&self, target: &Path) -> io::Result<Option<PathBuf>> {
        obstacle(&self.path, target)
    }

    /// Waits until the folder is on the disk, then moves it to `target`: at once if `target` is absent or
    /// empty, otherwise entry by entry. Other entries of `target` stay. Links in it are replaced, not their
    /// targets. Creates the folders above it.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn install_folder(&self, target: &Path) -> io::Result<()> {
        sync_tree(&self.path)?;
        fs::create_dir_all(parent(target))?;
        // The new folder keeps the permissions of the empty folder that it replaces.
        if let Ok(found) = fs::symlink_metadata(target)
            && found.is_dir()
        {
            fs::set_permissions(&self.path, found.permissions())?;
        }
        // A rename cannot replace a link or a mount point. A process whose current folder is `target` would
        // not see a folder that replaces it.
        let empty = fs::read_dir(target).map_or(true, |mut entries| entries.next().is_none());
        if !(empty && !is_current(target) && fs::rename(&self.path, target).is_ok()) {
            fs::create_dir_all(target)?;
            move_entries(&self.path, target)?;
            fs::remove_dir(&self.path)?;
            sync_folder(target)?;
        }
        sync_folder(parent(target))
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // Nothing is left after an installation. A failure here does no harm: the next process that writes
        // to the same path removes the leftovers.
        let _ = remove(&self.path);
    }
}

/// Removes leftovers of killed processes for the final path `target`. Files that a living process writes
/// stay.
///
/// # Errors
/// Those of the file system.
pub(crate) fn remove_partial(target: &Path) -> io::Result<()> {
    // Paths that cannot be read or are no folders are skipped.
    let folders = [ground(target), target].map(fs::read_dir);
    for entry in folders.into_iter().flatten().flatten() {
        let entry = entry?;
        if let Some(process) = partial_of(&entry.file_name(), target)
            && !is_alive(process)
            && !is_locked(&entry.path())
        {
            remove(&entry.path())?;
        }
    }
    Ok(())
}

/// Returns the names in a folder, without the partial files and folders that processes write for it.
///
/// # Errors
/// Those of the file system, also if `folder` is no folder or does not exist.
pub fn entries(folder: &Path) -> io::Result<Vec<OsString>> {
    let names = fs::read_dir(folder)?.map(|entry| Ok(entry?.file_name()));
    names
        .filter(|name| {
            !name
                .as_ref()
                .is_ok_and(|name| partial_of(name, folder).is_some())
        })
        .collect()
}

/// Returns the path in `folder` at which this process writes the later content of `target`.
fn partial(target: &Path, folder: &Path) -> PathBuf {
    folder.join(hidden(target, &format!("{PARTIAL}{}", std::process::id())))
}

/// Returns the id of the process that writes a file or folder of this name for `target`; `None` for other
/// names.
fn partial_of(name: &OsStr, target: &Path) -> Option<u32> {
    let name = name.to_string_lossy();
    name.strip_prefix(&hidden(target, PARTIAL))?.parse().ok()
}

/// Returns the nearest existing folder above `path`. A broken link counts as existing.
pub fn ground(path: &Path) -> &Path {
    let is_missing = |folder: &Path| {
        let found = fs::symlink_metadata(folder);
        found.is_err_and(|error| error.kind() == io::ErrorKind::NotFound)
    };
    let mut folder = parent(path);
    while is_missing(folder) && parent(folder) != folder {
        folder = parent(folder);
    }
    folder
}

/// Returns true if the folder is the current folder of this process.
fn is_current(folder: &Path) -> bool {
    let (current, folder) = (std::env::current_dir(), folder.canonicalize());
    current.is_ok_and(|current| folder.is_ok_and(|folder| folder == current))
}

/// Returns true if another process has this id, as far as the system tells.
fn is_alive(process: u32) -> bool {
    process != std::process::id() && Path::new(&format!("/proc/{process}")).exists()
}

fn is_locked(path: &Path) -> bool {
    let plain = fs::symlink_metadata(path).is_ok_and(|found| found.is_file() || found.is_dir());
    let file = plain.then(|| File::open(path).ok()).flatten();
    file.is_some_and(|file| matches!(file.try_lock(), Err(TryLockError::WouldBlock)))
}

/// A lock file, held until the process ends or this value is dropped. The file stays.
#[derive(Debug)]
pub struct Lock(File);

impl Lock {
    /// Opens or creates the lock file at `path`, without taking the lock.
    ///
    /// # Errors
    /// Those of the file system, and [`io::ErrorKind::InvalidInput`] for a link or anything else than
    /// a file: the target of a link is not a lock of this program.
    fn open(path: &Path) -> io::Result<File> {
        match OpenOptions::new()
            .read(true)
            .write(true)
            .create_new(true)
            .open(path)
        {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            other => return other,
        }
        // A pipe would wait for its other end.
        if !fs::symlink_metadata(path)?.is_file() {
            return Err(no_lock());
        }
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        match is_at(&file, path) {
            true => Ok(file),
            false => Err(no_lock()),
        }
    }

    /// Waits for the lock.
    ///
    /// # Errors
    /// Those of the file system; a link or anything else than a file at `path`.
    pub fn wait(path: &Path) -> io::Result<Lock> {
        let file = Lock::open(path)?;
        file.lock()?;
        Ok(Lock(file))
    }

    /// Takes the lock. Returns `None` if another process has it.
    ///
    /// # Errors
    /// Those of the file system; a link or anything else than a file at `path`.
    pub fn take(path: &Path) -> io::Result<Option<Lock>> {
        let file = Lock::open(path)?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Lock(file))),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error),
        }
    }

    /// Returns true if the lock file is still at `path`.
    pub fn is_at(&self, path: &Path) -> bool {
        is_at(&self.0, path)
    }
}

fn no_lock() -> io::Error {
    let message = "it is a link, or no file, and cannot be a lock";
    io::Error::new(io::ErrorKind::InvalidInput, message)
}

/// Returns true if `path` is the open file or folder itself, neither a link nor another one of the same name.
#[cfg(unix)]
pub fn is_at(open: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt as _;
    match (open.metadata(), fs::symlink_metadata(path)) {
        (Ok(open), Ok(found)) => (open.dev(), open.ino()) == (found.dev(), found.ino()),
        _ => false,
    }
}

/// Returns true if something of the same kind as the open file or folder is at `path`.
#[cfg(not(unix))]
pub fn is_at(open: &File, path: &Path) -> bool {
    match (open.metadata(), fs::symlink_metadata(path)) {
        (Ok(open), Ok(found)) => open.file_type() == found.file_type(),
        _ => false,
    }
}

/// Returns true if an error of the file system means that the user chose a path that cannot be written,
/// rather than that the disk or the system has failed.
pub fn is_wrong_place(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::NotFound
            | Kind::NotADirectory
            | Kind::IsADirectory
            | Kind::AlreadyExists
            | Kind::PermissionDenied
            | Kind::ReadOnlyFilesystem
            | Kind::InvalidFilename
            | Kind::InvalidInput
    )
}

/// Waits until the entries of a folder are on the disk.
///
/// # Errors
/// Those of the file system.
pub fn sync_folder(folder: &Path) -> io::Result<()> {
    // Other systems cannot open a folder.
    if cfg!(unix) {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}

/// Waits until all files in a folder, and the folders below it, are on the disk.
fn sync_tree(folder: &Path) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            sync_tree(&entry.path())?;
        } else {
            File::open(entry.path())?.sync_all()?;
        }
    }
    sync_folder(folder)
}

/// Returns a folder in `to` that has the name of a file in `from`. Searches folders of the same names, too.
fn obstacle(from: &Path, to: &Path) -> io::Result<Option<PathBuf>> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if !is_folder(&target) {
            continue;
        }
        let found = match entry.file_type()?.is_dir() {
            true => obstacle(&entry.path(), &target)?,
            false => Some(target),
        };
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

/// Returns true if the path is a folder and not a link to one.
pub fn is_folder(path: &Path) -> bool {
    fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

/// Moves the entries of `from` to `to`, one after the other. Folders of the same name are merged. A file or
/// link at the path of a folder is replaced.
fn move_entries(from: &Path, to: &Path) -> io::Result<()> {
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            if is_folder(&target) {
                move_entries(&entry.path(), &target)?;
                fs::remove_dir(entry.path())?;
                sync_folder(&target)?;
                continue;
            }
            remove(&target)?;
        }
        fs::rename(entry.path(), target)?;
    }
    Ok(())
}

/// Removes a file, a link or a folder with everything in it. Does nothing if the path does not exist.
///
/// # Errors
/// Those of the file system.
pub fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(error) => Err(error),
    };
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

/// Returns the name with `_` for every character that is unusual in file names.
pub fn file_name(name: &str) -> String {
    let plain = |c: char| match c.is_alphanumeric() || "-_.=".contains(c) {
        true => c,
        false => '_',
    };
    name.chars().map(plain).collect()
}

/// Returns the folder that holds `path`; `.` for a bare name.
pub fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder.as_os_str().is_empty() => Path::new("."),
        Some(folder) => folder,
        None => Path::new("/"),
    }
}

/// Returns `.NAMEsuffix` for the path `a/NAME`.
fn hidden(path: &Path, suffix: &str) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    format!(".{name}{suffix}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_replaced_and_nothing_is_left_beside_it() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("file");
        for text in ["one", "two"] {
            replace(&path, text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
        }
        let failed = replace_with(&path, |file| {
            file.write_all(b"three")?;
            Err(io::Error::other("full"))
        });
        assert_eq!(failed.unwrap_err().to_string(), "full");
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        assert_eq!(names(root.path()), ["file"]);
    }

    #[test]
    fn a_folder_takes_the_place_of_an_empty_one_and_joins_a_full_one() {
        let root = tempfile::tempdir().unwrap();
        let target = root.path().join("out");
        fs::create_dir(&target).unwrap();
        for round in ["one", "two"] {
            let staging = Staging::folder(&target).unwrap();
            write_new(&staging.path().join("a"), round.as_bytes()).unwrap();
            fs::create_dir(staging.path().join("below")).unwrap();
            write_new(&staging.path().join("below/b"), round.as_bytes()).unwrap();
            staging.install_folder(&target).unwrap();
            assert_eq!(fs::read_to_string(target.join("a")).unwrap(), round);
            assert_eq!(fs::read_to_string(target.join("below/b")).unwrap(), round);
            fs::write(target.join("below/mine"), "precious").unwrap();
        }
        assert_eq!(names(&target.join("below")), ["b", "mine"]);
        drop(Staging::folder(&target).unwrap());
        assert_eq!(names(root.path()), ["out"]);
    }

    /// Folders above the target are created with the result and not before.
    #[test]
    fn what_is_not_installed_leaves_no_folders() {
        let root = tempfile::tempdir().unwrap();
        let target = root.path().join("a/b/out");
        drop(Staging::folder(&target).unwrap());
        drop(Staging::file(&target).unwrap());
        assert!(names(root.path()).is_empty());
        let staging = Staging::folder(&target).unwrap();
        staging.install_folder(&target).unwrap();
        assert!(is_folder(&target));
        assert_eq!(names(root.path()), ["a"]);
        assert_eq!(names(&root.path().join("a/b")), ["out"]);
    }

    /// A folder that was moved or removed is not created again by a process that keeps writing into it.
    #[test]
    fn a_file_is_not_replaced_in_a_folder_that_is_gone() {
        let root = tempfile::tempdir().unwrap();
        let gone = root.path().join("gone/file");
        let problem = replace(&gone, b"new").unwrap_err();
        assert_eq!(problem.kind(), io::ErrorKind::NotFound);
        assert!(names(root.path()).is_empty());
    }

    #[test]
    fn a_folder_is_in_the_way_of_a_file_and_nothing_else_is() {
        let root = tempfile::tempdir().unwrap();
        let target = root.path().join("out");
        fs::create_dir_all(target.join("below/b")).unwrap();
        fs::write(target.join("folder"), "a file instead of a folder").unwrap();
        let staging = Staging::folder(&target).unwrap();
        for folder in ["below", "folder"] {
            fs::create_dir(staging.path().join(folder)).unwrap();
            write_new(&staging.path().join(folder).join("a"), b"1").unwrap();
        }
        assert_eq!(staging.obstacle(&target).unwrap(), None);
        write_new(&staging.path().join("below/b"), b"1").unwrap();
        let found = staging.obstacle(&target).unwrap();
        assert_eq!(found, Some(target.join("below/b")));
        fs::remove_dir(target.join("below/b")).unwrap();
        staging.install_folder(&target).unwrap();
        assert_eq!(names(&target), ["below", "folder"]);
        assert_eq!(names(&target.join("folder")), ["a"]);
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_what_a_living_one_writes_stays() {
        let root = tempfile::tempdir().unwrap();
        let target = root.path().join("out");
        let own = format!(".out.partial-{}", std::process::id());
        // Process 1 lives; no process has the largest id.
        for name in [".out.partial-1", ".out.partial-4294967295", &own] {
            fs::create_dir(root.path().join(name)).unwrap();
        }
        for name in [
            ".out.partial-x",
            ".outer.partial-4294967294",
            "out.partial-7",
        ] {
            fs::write(root.path().join(name), "").unwrap();
        }
        let held = create(&root.path().join(".out.partial-4294967293")).unwrap();
        held.lock().unwrap();
        replace(&target, b"new").unwrap();
        let left = [
            ".out.partial-1",
            ".out.partial-4294967293",
            ".out.partial-x",
            ".outer.partial-4294967294",
            "out",
            "out.partial-7",
        ];
        assert_eq!(names(root.path()), left);
    }

    #[cfg(unix)]
    #[test]
    fn what_was_private_stays_private() {
        use std::os::unix::fs::PermissionsExt as _;
        let root = tempfile::tempdir().unwrap();
        let target = root.path().join("out");
        fs::create_dir(&target).unwrap();
        fs::set_permissions(&target, fs::Permissions::from_mode(0o700)).unwrap();
        let staging = Staging::folder(&target).unwrap();
        write_new(&staging.path().join("a"), b"1").unwrap();
        staging.install_folder(&target).unwrap();
        let mode = fs::metadata(&target).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_not_followed() {
        use std::os::unix::fs::symlink;
        let root = tempfile::tempdir().unwrap();
        let precious = root.path().join("precious");
        fs::write(&precious, "precious").unwrap();
        let own = format!(".out.partial-{}", std::process::id());
        symlink(&precious, root.path().join(&own)).unwrap();
        symlink(&precious, root.path().join("out")).unwrap();
        symlink(&precious, root.path().join("lock")).unwrap();
        assert!(create(&root.path().join("out")).is_err());
        assert!(Lock::take(&root.path().join("lock")).is_err());
        replace(&root.path().join("out"), b"new").unwrap();
        assert_eq!(fs::read_to_string(&precious).unwrap(), "precious");
        assert_eq!(fs::read_to_string(root.path().join("out")).unwrap(), "new");
        assert_eq!(names(root.path()), ["lock", "out", "precious"]);
    }

    #[cfg(unix)]
    #[test]
    fn links_in_a_folder_are_replaced() {
        use std::os::unix::fs::symlink;
        let root = tempfile::tempdir().unwrap();
        let (target, victim) = (root.path().join("out"), root.path().join("victim"));
        fs::create_dir_all(target.join("real")).unwrap();
        fs::create_dir_all(victim.join("sub")).unwrap();
        fs::write(victim.join("precious"), "precious").unwrap();
        symlink("../victim", target.join("folder")).unwrap();
        symlink("../../victim", target.join("real/deep")).unwrap();
        symlink("../victim/precious", target.join("file")).unwrap();
        symlink("nowhere", target.join("dangling")).unwrap();
        let staging = Staging::folder(&target).unwrap();
        for folder in ["folder", "real", "real/deep", "dangling"] {
            fs::create_dir(staging.path().join(folder)).unwrap();
            write_new(&staging.path().join(folder).join("precious"), b"new").unwrap();
        }
        write_new(&staging.path().join("file"), b"new").unwrap();
        staging.install_folder(&target).unwrap();
        assert_eq!(
            fs::read_to_string(victim.join("precious")).unwrap(),
            "precious"
        );
        assert_eq!(names(&victim), ["precious", "sub"]);
        for written in [
            "folder/precious",
            "real/deep/precious",
            "dangling/precious",
            "file",
        ] {
            assert_eq!(fs::read_to_string(target.join(written)).unwrap(), "new");
        }
        assert_eq!(names(root.path()), ["out", "victim"]);
    }

    #[test]
    fn a_lock_is_had_by_one_and_seen_to_be_gone() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("lock");
        let lock = Lock::take(&path).unwrap().unwrap();
        assert!(Lock::take(&path).unwrap().is_none());
        assert!(lock.is_at(&path));
        fs::remove_file(&path).unwrap();
        assert!(!lock.is_at(&path));
        fs::write(&path, "").unwrap();
        assert!(!lock.is_at(&path) || cfg!(not(unix)));
        drop(lock);
        drop(Lock::wait(&path).unwrap());
        fs::remove_file(&path).unwrap();
        fs::create_dir(&path).unwrap();
        assert!(Lock::take(&path).is_err());
    }
}
