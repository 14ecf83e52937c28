//! Compiles C as it is meant to be compiled: without a warning.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

const TESTS: &str = "env/tests/suite/dataplane";

/// How a program is built; what is not here is passed over, with a word of it.
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

impl Build {
    /// The program of these files, paths in the repository, in `folder`. None where the compiler or
    /// its sanitizers are missing.
    ///
    /// # Panics
    /// When the files do not compile.
    pub fn program(&self, folder: &Path, files: &[&str], defines: &[&str]) -> Option<PathBuf> {
        if !self.works(folder) {
            eprintln!(
                "skipped: {} {:?} does not link here",
                self.compiler, self.options
            );
            return None;
        }
        let program = folder.join(format!("program-{}", self.name));
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
        Some(program)
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

/// What a program wrote, for messages.
pub fn text(output: &Output) -> String {
    let part = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    part(&output.stdout) + &part(&output.stderr)
}
