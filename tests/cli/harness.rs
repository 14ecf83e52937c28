//! Runs the binary in a separate folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use bufgym::models::ActorWeights;
use bufgym::models::checkpoint::{self, Manifest, Validation};
use bufgym::sim::scenario::Scenario;
use bufgym::util::rng;

/// An empty folder that is the working directory of every run in it.
pub struct Sandbox {
    folder: tempfile::TempDir,
}

/// The output of a run.
pub struct Run {
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

impl Sandbox {
    pub fn new() -> Sandbox {
        Sandbox {
            folder: tempfile::tempdir().unwrap(),
        }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn write(&self, name: &str, content: &str) -> PathBuf {
        let path = self.path(name);
        fs::write(&path, content).unwrap();
        path
    }

    pub fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// Writes a checkpoint folder with random weights.
    pub fn random_checkpoint(&self, name: &str) -> ActorWeights {
        self.random_checkpoint_for(name, &Scenario::default())
    }

    /// Writes a checkpoint folder with random weights for a scenario.
    pub fn random_checkpoint_for(&self, name: &str, scenario: &Scenario) -> ActorWeights {
        self.save_random(
            name,
            &Manifest::new(&scenario.name, &scenario.to_toml(), "fct", 1),
        )
    }

    /// Writes a checkpoint folder with random weights on top of a heuristic, which also set its early drop if
    /// that is open.
    pub fn random_checkpoint_over(&self, name: &str, low_level: &str) -> ActorWeights {
        let scenario = Scenario::default();
        let manifest = Manifest::new(&scenario.name, &scenario.to_toml(), "fct", 1);
        self.save_random(name, &manifest.over(low_level.parse().unwrap()))
    }

    /// Writes a checkpoint folder with random weights of a seed, with `result` on 32 validation traces.
    pub fn validated_checkpoint(&self, name: &str, seed: u64, result: f64) -> ActorWeights {
        let scenario = Scenario::default();
        let mut manifest = Manifest::new(&scenario.name, &scenario.to_toml(), "fct", seed);
        manifest.decisions = 1000 * seed;
        manifest.validation = Some(Validation {
            traces: 32,
            metric: "mean FCT / DT (alpha = 1)".to_owned(),
            value: result,
            low: result - 0.01,
            high: result + 0.01,
            won: 0.9,
        });
        self.save_random(name, &manifest)
    }

    fn save_random(&self, name: &str, manifest: &Manifest) -> ActorWeights {
        let mut random = rng::stream(manifest.seed, "test weights", 0);
        let weights = ActorWeights::random_for(manifest.action_set(), &mut random);
        let folder = self.path(name);
        fs::create_dir_all(&folder).unwrap();
        checkpoint::save_actor(&folder, &weights, manifest).unwrap();
        weights
    }

    /// Returns everything below the folder, hidden names included, sorted.
    pub fn files(&self) -> Vec<String> {
        let mut names = Vec::new();
        list(self.folder.path(), self.folder.path(), &mut names);
        names.sort();
        names
    }

    /// Builds a command; blanks separate the arguments.
    pub fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bufgym"));
        command
            .args(arguments.split_whitespace())
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        command
    }

    pub fn run(&self, arguments: &str) -> Run {
        Run::from(self.command(arguments).output().unwrap())
    }

    /// Starts without waiting.
    pub fn spawn(&self, arguments: &str) -> Child {
        self.command(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Runs and expects success.
    pub fn ok(&self, arguments: &str) -> Run {
        let run = self.run(arguments);
        assert_eq!(
            run.code,
            Some(0),
            "bufgym {arguments}\n{}{}",
            run.stdout,
            run.stderr
        );
        run
    }

    /// Runs, and expects exit code 2, one line on stderr that contains every word, nothing on stdout and no
    /// change of files.
    pub fn refused(&self, arguments: &str, words: &[&str]) {
        let before = self.files();
        let run = self.run(arguments);
        let context = format!(
            "bufgym {arguments}\nstdout: {}\nstderr: {}",
            run.stdout, run.stderr
        );
        assert_eq!(run.code, Some(2), "{context}");
        assert_eq!(run.stdout, "", "{context}");
        assert_eq!(run.stderr.trim_end().lines().count(), 1, "{context}");
        for word in words {
            assert!(
                run.stderr.contains(word),
                "no '{word}' in the message of {context}"
            );
        }
        assert!(!run.stderr.contains("panicked"), "{context}");
        assert_eq!(self.files(), before, "files changed: {context}");
    }
}

impl Run {
    /// Parses stdout as one JSON object.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", self.stdout))
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Run {
        Run {
            code: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        }
    }
}

fn list(base: &Path, folder: &Path, names: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        names.push(path.strip_prefix(base).unwrap().display().to_string());
        if path.is_dir() {
            list(base, &path, names);
        }
    }
}
