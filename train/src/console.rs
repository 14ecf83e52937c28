//! The messages of a training: to its caller, and to `train.log`.

use std::fs::OpenOptions;
use std::io;
use std::path::Path;
use std::sync::Mutex;

use tracing::subscriber::DefaultGuard;

/// Shows a training while it runs. `()` shows nothing.
pub trait Reporter: std::fmt::Debug + Sync {
    /// Called when a phase begins: the search for the rule to start from, or the learning.
    fn begin(&self, _at: Progress) {}

    /// Called after every step of a phase.
    fn advance(&self, _at: Progress, _step: Step) {}

    /// Called when a phase ends.
    fn end(&self) {}

    /// Called for a line of `train.log`. File names in it can have any form.
    fn line(&self, _line: &str) {}

    /// Called for a problem that does not end the training.
    fn warning(&self, _line: &str) {}
}

impl Reporter for () {}

/// Progress of a phase.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Generations of the search, then decisions, or seconds if only the time is limited.
    pub done: u64,
    /// The number at which the phase ends.
    pub total: u64,
}

/// Results of a step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step {
    /// A step of the search for the rule to start from.
    Search {
        /// Result of the best rule on training traces, relative to DT.
        ratio_to_dt: f64,
    },
    /// The network has learned to imitate the rule.
    Imitation,
    /// A round.
    Round {
        /// Decisions per second of wall time.
        decisions_per_s: f64,
        /// Gradient updates per second of wall time.
        updates_per_s: f64,
        /// Result of the best actor on the validation traces, relative to DT.
        best: Option<f64>,
    },
}

/// The caller and the log file. Every message goes to both.
pub(crate) struct Console<'a> {
    pub(crate) reporter: &'a dyn Reporter,
    _log: Option<DefaultGuard>,
}

impl<'a> Console<'a> {
    pub(crate) fn new(reporter: &'a dyn Reporter) -> Self {
        Self {
            reporter,
            _log: None,
        }
    }

    /// Appends the messages of this thread to `train.log`.
    pub(crate) fn log_to(&mut self, path: &Path) -> io::Result<()> {
        // The folder may come from somebody else, so the target of a link is not our log.
        if path.is_symlink() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is a link"));
        }
        let file = OpenOptions::new().create(true).append(true).open(path)?;
        let subscriber = tracing_subscriber::fmt()
            .with_writer(Mutex::new(file))
            .with_ansi(false)
            .with_target(false)
            .finish();
        self._log = Some(tracing::subscriber::set_default(subscriber));
        Ok(())
    }

    /// Reports a line.
    pub(crate) fn say(&self, line: &str) {
        tracing::info!("{line}");
        self.reporter.line(line);
    }

    /// Reports a problem that does not end the training.
    pub(crate) fn warn(&self, line: &str) {
        // Not as a warning of the log, which would show it a second time.
        tracing::info!("warning: {line}");
        self.reporter.warning(line);
    }
}
