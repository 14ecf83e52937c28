//! Output files and folders: never overwritten without `--force`, never half written.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bufgym::eval::suite::ResultCache;
use bufgym::util::files::{self, Staging, file_name, ground, parent};
use bufgym::util::input::visible;

use super::error::{CliError, CliResult, ResultExt as _};

/// A file or folder that a command will write, checked before the work starts.
pub struct Output {
    /// The path from the user, without a meaningless end (`out/`, `out/.`).
    path: PathBuf,
    /// The real destination: the target of a link to a folder, otherwise `path`.
    place: PathBuf,
    /// True if existing content may be replaced.
    force: bool,
    /// Files of a folder that are known in advance.
    files: &'static [&'static str],
    /// Files that the command writes separately, relative to the folder.
    own: Vec<PathBuf>,
}

impl Output {
    /// Checks a folder for output, and the files that will be in it, as far as they are known. It may be
    /// absent or empty, or with `force` contain anything except folders of these names. It may be a link to a
    /// folder; links in it are not followed.
    ///
    /// # Errors
    /// Bad input: the folder is not empty, is a file, or cannot be created.
    pub fn folder(path: &Path, force: bool, files: &'static [&'static str]) -> CliResult<Output> {
        let what = format!("output folder {}", path.display());
        let path = named(path, &what)?;
        refuse_dangling(&path, &what)?;
        let place = match path.is_symlink() {
            true => path.canonicalize().map_err(|error| refusal(error, &what))?,
            false => path.clone(),
        };
        match files::entries(&place) {
            Ok(entries) if !entries.is_empty() && !force => {
                return Err(CliError::bad(format!(
                    "{what} is not empty: choose another, or give --force to replace files in it",
                )));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
                return Err(CliError::bad(format!(
                    "{what} is not a folder, or lies under a file",
                )));
            }
            Err(error) => return Err(refusal(error, &what)),
        }
        let is_folder = |name: &&&str| files::is_folder(&place.join(name));
        if let Some(name) = files.iter().find(is_folder) {
            return Err(CliError::bad(format!(
                "{what}: {name} in it is a folder where a file is to be written: move it away, or choose another output folder"
            )));
        }
        check_writable(&path, &place)?;
        Ok(Output {
            path,
            place,
            force,
            files,
            own: Vec::new(),
        })
    }

    /// Checks a folder with [`Output::folder`], if there is to be one.
    ///
    /// # Errors
    /// Returns the errors of [`Output::folder`].
    pub fn folder_if(
        path: Option<&Path>,
        force: bool,
        files: &'static [&'static str],
    ) -> CliResult<Option<Output>> {
        path.map(|path| Output::folder(path, force, files))
            .transpose()
    }

    /// Checks a file for output. It may be absent or empty, or with `force` have any content. A link to a
    /// file is replaced, not followed.
    ///
    /// # Errors
    /// Bad input: the file has content, is a folder, or cannot be created.
    pub fn file(path: &Path, force: bool) -> CliResult<Output> {
        let what = format!("output file {}", path.display());
        let names_folder = is_name_of_folder(path);
        let path = named(path, &what)?;
        refuse_dangling(parent(&path), &what)?;
        match fs::metadata(&path) {
            Ok(_) if is_stream(&path) => {}
            Ok(found) if found.is_dir() => {
                return Err(CliError::bad(format!(
                    "{what} is a folder: give the name of a file",
                )));
            }
            Ok(found) if found.is_file() && found.len() > 0 && !force => {
                return Err(CliError::bad(format!(
                    "{what} exists: choose another, or give --force to replace it",
                )));
            }
            Ok(_) => {}
            Err(_) if path.is_symlink() && !force => {
                return Err(CliError::bad(format!(
                    "{what} is a link that leads nowhere: choose another, or give --force to replace it",
                )));
            }
            Err(_) if path.is_symlink() => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(refusal(error, &what)),
        }
        if names_folder {
            return Err(CliError::bad(format!(
                "{what} names a folder: give the name of a file",
            )));
        }
        if !is_stream(&path) {
            check_writable(&path, &path)?;
        }
        Ok(Output {
            place: path.clone(),
            path,
            force,
            files: &[],
            own: Vec::new(),
        })
    }

    /// Returns the path of the result.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the store of finished parts until the work on the folder has ended: `DIR.parts` next to it.
    ///
    /// # Errors
    /// Bad input: a link or file is there, or nothing can be written there.
    pub fn parts(&self) -> CliResult<ResultCache> {
        let mut name = self.path.as_os_str().to_owned();
        name.push(".parts");
        let parts = ResultCache::new(PathBuf::from(name));
        let checked = parts.check();
        checked.map_err(|error| refusal(error, &parts.folder().display().to_string()))?;
        Ok(parts)
    }

    /// Lets the command write a separate file, which may lie below the folder.
    ///
    /// # Errors
    /// Bad input: the folder and the file, or one of the folder's, would be in the same place.
    pub fn admit(&mut self, file: &Output) -> CliResult {
        if is_stream(&file.path) {
            return Ok(());
        }
        let (folder, place) = (real(&self.place), real(&file.place));
        if folder.starts_with(&place) {
            return Err(CliError::bad(format!(
                "output file {} is in the place of output folder {}, or above it: choose another",
                file.path.display(),
                self.path.display()
            )));
        }
        let Ok(below) = place.strip_prefix(&folder) else {
            return Ok(());
        };
        if let Some(name) = self.files.iter().find(|name| below.starts_with(name)) {
            return Err(CliError::bad(format!(
                "output file {}: {name} in output folder {} is another result: choose another name",
                file.path.display(),
                self.path.display()
            )));
        }
        self.own.push(below.to_path_buf());
        Ok(())
    }

    /// Writes the folder: `write` fills a temporary one near it, which is then renamed into place. If `write`
    /// fails, nothing is left. Returns the result of `write`.
    ///
    /// # Errors
    /// Returns the errors of `write` and of the operating system. Fails if something that may not be replaced
    /// has appeared there since the work started; the result is then next to it.
    pub fn write_folder<T>(&self, write: impl FnOnce(&Path) -> CliResult<T>) -> CliResult<T> {
        let staging = Staging::folder(&self.place).map_err(|error| self.failure(error))?;
        let written = write(staging.path()).map_err(|error| self.located(error))?;
        let in_the_way = self.folder_in_the_way(&staging);
        self.install(&staging, in_the_way, |place| staging.install_folder(place))?;
        Ok(written)
    }

    /// Writes the file through a temporary one near it.
    ///
    /// # Errors
    /// Returns the errors of [`Output::write_folder`].
    pub fn write_file<T>(
        &self,
        write: impl FnOnce(&mut dyn io::Write) -> CliResult<T>,
    ) -> CliResult<T> {
        if is_stream(&self.path) {
            let file = open_stream(&self.path).map_err(|error| self.failure(error))?;
            let mut file = io::BufWriter::new(file);
            let written = write(&mut file).map_err(|error| self.located(error))?;
            file.flush().map_err(|error| self.failure(error))?;
            return Ok(written);
        }
        let (staging, file) = Staging::file(&self.place).map_err(|error| self.failure(error))?;
        let mut file = io::BufWriter::new(file);
        let written = write(&mut file).map_err(|error| self.located(error))?;
        let file = file
            .into_inner()
            .map_err(|error| self.failure(error.into_error()))?;
        let in_the_way = fs::metadata(&self.place)
            .is_ok_and(|found| found.is_dir() || (found.len() > 0 && !self.force));
        let in_the_way = in_the_way.then(|| self.by_somebody_else());
        self.install(&staging, in_the_way, |place| {
            fs::create_dir_all(parent(place))?;
            staging.install_file(&file, place)
        })?;
        Ok(written)
    }

    /// Moves the result into its place, or next to it if something is in the way.
    fn install(
        &self,
        staging: &Staging,
        in_the_way: Option<String>,
        install: impl Fn(&Path) -> io::Result<()>,
    ) -> CliResult {
        let Some(problem) = in_the_way else {
            let Err(error) = install(&self.place) else {
                return Ok(());
            };
            // The result is kept even if it cannot be moved into its place.
            let beside = self.beside(staging);
            let kept = staging.path().exists() && install(&beside).is_ok();
            return Err(match kept {
                true => CliError::failure(anyhow::Error::new(error).context(format!(
                    "cannot write {}; what could not be put there is in {}",
                    self.path.display(),
                    beside.display()
                ))),
                false => self.failure(error),
            });
        };
        let beside = self.beside(staging);
        install(&beside).map_err(|error| self.failure(error))?;
        Err(CliError::failure(anyhow::anyhow!(
            "{problem}: the result is in {}",
            beside.display()
        )))
    }

    /// Returns the reason why the folder cannot be moved into its place, if there is one.
    fn folder_in_the_way(&self, staging: &Staging) -> Option<String> {
        let found = fs::symlink_metadata(&self.place).ok()?;
        let own: Vec<&Path> = self.own.iter().map(PathBuf::as_path).collect();
        if !found.is_dir() || (!self.force && holds_others(&self.place, &own)) {
            return Some(self.by_somebody_else());
        }
        let obstacle = staging.obstacle(&self.place).ok()??;
        Some(format!(
            "{} is a folder where a file is to be written",
            obstacle.display()
        ))
    }

    fn by_somebody_else(&self) -> String {
        format!(
            "{} has been written by somebody else since the work started",
            self.path.display()
        )
    }

    /// Returns a free name next to the place, or inside it if the result was made there.
    fn beside(&self, staging: &Staging) -> PathBuf {
        let inside = parent(staging.path()) == self.place;
        let place = match (inside, self.place.file_name()) {
            (true, Some(name)) => self.place.join(name),
            _ => self.place.clone(),
        };
        let numbered = |number: u64| {
            let mut name = place.as_os_str().to_owned();
            name.push(format!("-{number}"));
            PathBuf::from(name)
        };
        let absent = |path: &PathBuf| path.symlink_metadata().is_err();
        let mut free = (2..).map(numbered).filter(absent);
        free.next().unwrap_or_else(|| place.clone())
    }

    fn failure(&self, error: io::Error) -> CliError {
        self.located(CliError::failure(error))
    }

    /// Adds the path of the output to a failure.
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

/// Removes finished parts after the work has ended.
///
/// # Errors
/// Failure: they cannot be removed.
pub fn discard(parts: &ResultCache) -> CliResult {
    let removed = parts.remove();
    removed
        .with_context(|| parts.folder().display().to_string())
        .or_failure()
}

/// Returns the path without `.` and `/` at its end. If it has no name, like `..`, returns it with the name of
/// the folder.
fn named(path: &Path, what: &str) -> CliResult<PathBuf> {
    let plain: PathBuf = path.components().collect();
    match plain.file_name() {
        Some(_) => Ok(plain),
        None => plain.canonicalize().map_err(|error| refusal(error, what)),
    }
}

/// Returns true if a path can only be that of a folder.
fn is_name_of_folder(path: &Path) -> bool {
    let text = path.as_os_str().as_encoded_bytes();
    text.ends_with(b"/") || text.ends_with(b"/.")
}

/// Refuses a path with a dangling link in it, or with a `..` after a missing folder: nothing can be created
/// behind these.
fn refuse_dangling(path: &Path, what: &str) -> CliResult {
    let is_missing = |place: &&Path| place.ends_with("..") && !place.exists();
    if let Some(missing) = path.ancestors().find(is_missing) {
        return Err(CliError::bad(format!(
            "{what}: {} is not there: leave it out, or choose another",
            missing.display()
        )));
    }
    let dangling = |place: &&Path| place.is_symlink() && !place.exists();
    match path.ancestors().find(dangling) {
        None => Ok(()),
        Some(link) => Err(CliError::bad(format!(
            "{what}: {} is a link that leads nowhere: make what it points to, or choose another",
            link.display()
        ))),
    }
}

/// Creates and removes a folder near the place, so that an unwritable place is refused before the work
/// starts.
fn check_writable(path: &Path, place: &Path) -> CliResult {
    let tried = Staging::folder(place).map(drop);
    tried.map_err(|error| refusal(error, &format!("cannot write {}", path.display())))
}

/// Resolves the links in the existing part of the path, except in its last component.
fn real(path: &Path) -> PathBuf {
    let ground = ground(path);
    let below = path.strip_prefix(ground).unwrap_or(path);
    ground
        .canonicalize()
        .unwrap_or_else(|_| ground.to_path_buf())
        .join(below)
}

/// Returns true if the folder contains anything except these files, which are relative to it.
fn holds_others(folder: &Path, own: &[&Path]) -> bool {
    let names = files::entries(folder).unwrap_or_default();
    names.iter().any(|name| {
        let below = own.iter().filter_map(|own| own.strip_prefix(name).ok());
        let below: Vec<&Path> = below.collect();
        if below.iter().any(|own| own.as_os_str().is_empty()) {
            return false;
        }
        let found = folder.join(name);
        below.is_empty() || !files::is_folder(&found) || holds_others(&found, &below)
    })
}

/// Returns true if a path leads to a device, a pipe or a file opened by the shell, which a rename cannot
/// replace.
fn is_stream(path: &Path) -> bool {
    let of_system = |folder: PathBuf| folder == Path::new("/dev") || folder.starts_with("/proc");
    match fs::metadata(path) {
        Ok(found) if found.is_file() => {
            path.is_symlink() && parent(path).canonicalize().is_ok_and(of_system)
        }
        Ok(found) => !found.is_dir(),
        Err(_) => false,
    }
}

fn open_stream(path: &Path) -> io::Result<Box<dyn io::Write>> {
    let is_stdout = |name: &&str| path == Path::new(name);
    // If a file were opened a second time, it would have a second position for writing.
    if ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"]
        .iter()
        .any(is_stdout)
    {
        return Ok(Box::new(io::stdout()));
    }
    Ok(Box::new(fs::OpenOptions::new().append(true).open(path)?))
}

/// Returns bad input for a place that cannot be written, and a failure for a full or broken disk.
fn refusal(error: io::Error, context: &str) -> CliError {
    let wrong_place = files::is_wrong_place(&error);
    let error = anyhow::Error::new(error).context(context.to_owned());
    match wrong_place {
        true => CliError::input(error),
        false => CliError::failure(error),
    }
}

/// Returns a path as one line of a text: the name of a file can neither end the line nor control a terminal.
pub fn shown(path: &Path) -> String {
    visible(&path.display().to_string())
}

/// Largest number of bytes of one of [`file_names`]. It leaves room for a number after the name, and for the
/// prefix of a temporary file.
const LONGEST_NAME: usize = 180;

/// Returns [`file_name`] of each of the names, short enough for a file system. If several are the same, the
/// second gets the suffix `-2`, and so on.
pub fn file_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut taken = BTreeSet::new();
    let free = |name: &str| {
        let mut plain = file_name(name);
        plain.truncate(plain.floor_char_boundary(LONGEST_NAME));
        let mut free = plain.clone();
        let mut number = 1;
        while !taken.insert(free.clone()) {
            number += 1;
            free = format!("{plain}-{number}");
        }
        free
    };
    names.into_iter().map(free).collect()
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

    fn folder(path: &Path, force: bool) -> CliResult<Output> {
        Output::folder(path, force, &["a.csv"])
    }

    #[test]
    fn a_failed_write_leaves_nothing() {
        let base = tempfile::tempdir().unwrap();
        let output = folder(&base.path().join("new/out"), false).ok().unwrap();
        let result: CliResult = output.write_folder(|folder| {
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
        assert!(folder(base.path(), false).is_err());
        let output = folder(base.path(), true).ok().unwrap();
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
        assert!(folder(&file, true).is_err());
        assert!(folder(&file.join("below"), false).is_err());
        assert!(Output::file(base.path(), false).is_err());
        assert!(Output::file(&file.join("below"), false).is_err());
    }

    /// A file that has appeared meanwhile stays, and the result is next to it.
    #[test]
    fn a_result_whose_place_was_taken_goes_beside_it() {
        let base = tempfile::tempdir().unwrap();
        let place = base.path().join("out");
        type Take = fn(&Path);
        let takes: [(bool, Take); 4] = [
            (true, |place| fs::write(place, "file").unwrap()),
            (false, |place| fs::write(place, "file").unwrap()),
            (false, |place| {
                fs::create_dir_all(place.join("mine")).unwrap()
            }),
            (true, |place| {
                fs::create_dir_all(place.join("a.csv")).unwrap()
            }),
        ];
        for (force, take) in takes {
            let output = folder(&place, force).ok().unwrap();
            let result = output.write_folder(|folder| {
                take(&place);
                fs::write(folder.join("a.csv"), "1").or_failure()
            });
            let problem = result.err().unwrap().to_string();
            assert!(problem.contains("out-2"), "{problem}");
            assert_eq!(entries(base.path()), ["out", "out-2"]);
            assert_eq!(entries(&base.path().join("out-2")), ["a.csv"]);
            for name in ["out", "out-2"] {
                files::remove(&base.path().join(name)).unwrap();
            }
        }
    }

    #[test]
    fn a_file_that_the_command_writes_itself_is_not_in_the_way() {
        let base = tempfile::tempdir().unwrap();
        let place = base.path().join("out");
        for (own, wrong) in [
            ("c.pcap", false),
            ("deep/c.pcap", false),
            ("a.csv", true),
            ("", true),
        ] {
            let mut output = folder(&place, false).ok().unwrap();
            let path: PathBuf = place.join(own).components().collect();
            let file = Output::file(&path, false).ok().unwrap();
            assert_eq!(output.admit(&file).is_err(), wrong, "{own}");
            if wrong {
                continue;
            }
            for others in [false, true] {
                fs::create_dir_all(parent(&place.join(own))).unwrap();
                fs::write(place.join(own), "own").unwrap();
                if others {
                    fs::write(parent(&place.join(own)).join("other"), "precious").unwrap();
                }
                let written =
                    output.write_folder(|folder| fs::write(folder.join("a.csv"), "1").or_failure());
                assert_eq!(written.is_err(), others, "{own}");
                assert!(place.join(own).exists());
                for name in ["out", "out-2"] {
                    files::remove(&base.path().join(name)).unwrap();
                }
            }
        }
    }

    #[test]
    fn names_of_files_are_never_the_same() {
        let long = "x".repeat(300);
        let names = [
            "linear:a:b",
            "linear:a_b",
            "linear:a_b-2",
            "dt",
            "dt",
            &long,
            &long,
        ];
        let found = file_names(names);
        assert_eq!(
            found[..5],
            ["linear_a_b", "linear_a_b-2", "linear_a_b-2-2", "dt", "dt-2"]
        );
        assert!(found[5..].iter().all(|name| name.len() < 200) && found[5] != found[6]);
    }
}
