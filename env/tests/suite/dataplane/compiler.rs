//! Compiles C with warnings as errors.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hasher as _};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Arc, LazyLock, Mutex, OnceLock};

/// Returns the root of the repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

const TESTS: &str = "env/tests/suite/dataplane";

/// Compiler and options of a program. A build that this machine lacks is skipped with a message.
pub struct Build {
    pub name: &'static str,
    compiler: &'static str,
    options: &'static [&'static str],
}

pub const BUILDS: [Build; 3] = [
    Build {
        name: "cc",
        compiler: "cc",
        options: &["-O2"],
    },
    Build {
        name: "clang",
        compiler: "clang",
        options: &["-O2"],
    },
    Build {
        name: "sanitized",
        compiler: "cc",
        options: &[
            "-O1",
            "-g",
            "-fsanitize=address,undefined",
            "-fno-sanitize-recover=all",
        ],
    },
];

/// A program that all tests share, None where it cannot be built.
type Built = Arc<OnceLock<Option<PathBuf>>>;

/// The programs that have been built, by the name of the build, the files and the definitions.
static BUILT: LazyLock<Mutex<HashMap<String, Built>>> = LazyLock::new(Mutex::default);

impl Build {
    /// Returns the program of these files, paths in the repository, in `folder`. It is built once for all tests.
    /// Returns `None` if the compiler or its sanitizers are missing.
    ///
    /// # Panics
    /// When the files do not compile.
    pub fn program(&self, folder: &Path, files: &[&str], defines: &[&str]) -> Option<PathBuf> {
        let key = format!("{} {files:?} {defines:?}", self.name);
        let built = Arc::clone(BUILT.lock().unwrap().entry(key.clone()).or_default());
        let built = built.get_or_init(|| self.build(files, defines, &key));
        let built = built.as_ref()?;
        let program = folder.join(format!("program-{}", self.name));
        symlink(built, &program).unwrap();
        Some(program)
    }

    /// Builds the program. A test that runs at the same time in the same place writes the same program there.
    fn build(&self, files: &[&str], defines: &[&str], key: &str) -> Option<PathBuf> {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
        if !self.works(folder.path()) {
            eprintln!(
                "skipped: {} {:?} does not link here",
                self.compiler, self.options
            );
            return None;
        }
        let program = folder.path().join("program");
        let output = self
            .command(&program)
            .args(["-Wall", "-Wextra", "-Werror", "-pedantic"])
            .args(defines)
            .arg("-I")
            .arg(root().join(TESTS).join("standin"))
            .arg("-I")
            .arg(root().join("dataplane"))
            .args(files.iter().map(|file| root().join(file)))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}: {}", self.name, text(&output));
        let mut hash = DefaultHasher::new();
        hash.write(key.as_bytes());
        let name = format!("dataplane-{:016x}", hash.finish());
        let kept = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::rename(&program, &kept).unwrap();
        Some(kept)
    }

    fn works(&self, folder: &Path) -> bool {
        let source = folder.join("empty.c");
        std::fs::write(&source, "int main(void) { return 0; }\n").unwrap();
        let output = self.command(&folder.join("empty")).arg(source).output();
        output.is_ok_and(|output| output.status.success())
    }

    fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(self.compiler);
        command
            .arg("-std=c99")
            .args(self.options)
            .arg("-o")
            .arg(program);
        command
    }
}

/// Returns the output of a program, for messages.
pub fn text(output: &Output) -> String {
    let part = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    part(&output.stdout) + &part(&output.stderr)
}
