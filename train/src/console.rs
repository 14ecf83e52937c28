//! The messages of a training: a progress bar and lines on standard error, and `train.log`.

use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use bufgym_util::input;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use tracing::subscriber::DefaultGuard;

/// Limit on the characters of a line: messages name files, whose names can have any form.
const LINE: usize = 2_000;

/// Standard error and the log file. Every message goes to both, but a quiet console shows only
/// warnings on standard error.
pub(crate) struct Console {
    quiet: bool,
    bar: ProgressBar,
    _log: Option<DefaultGuard>,
}

impl Console {
    pub(crate) fn new(quiet: bool) -> Self {
        Self {
            quiet,
            bar: ProgressBar::hidden(),
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

    /// Shows a bar; hidden when quiet or when standard error is not a terminal.
    pub(crate) fn start_bar(&mut self, length: u64, position: u64) {
        if self.quiet {
            return;
        }
        let left = |state: &ProgressState, out: &mut dyn std::fmt::Write| {
            let left = Duration::from_secs(state.eta().as_secs());
            let _ = write!(out, "{}", indicatif::HumanDuration(left));
        };
        let template = "{bar:30} {percent:>3} % · {left} left · {msg}";
        let style = ProgressStyle::with_template(template)
            .unwrap_or_else(|_| ProgressStyle::default_bar())
            .with_key("left", left);
        self.bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
        self.bar.set_style(style);
        self.bar.set_position(position);
        self.bar.reset_eta();
    }

    pub(crate) fn advance(&self, position: u64, message: String) {
        self.bar.set_position(position);
        self.bar.set_message(message);
    }

    pub(crate) fn stop_bar(&mut self) {
        self.bar.finish_and_clear();
        self.bar = ProgressBar::hidden();
    }

    /// Writes a line to standard error and the log.
    pub(crate) fn say(&self, line: &str) {
        tracing::info!("{line}");
        if !self.quiet {
            self.show(line);
        }
    }

    /// Reports a problem that does not end the training.
    pub(crate) fn warn(&self, line: &str) {
        // Not as a warning of the log, which would show it a second time.
        tracing::info!("warning: {line}");
        self.show(&format!("warning: {line}"));
    }

    /// Standard error may be closed or on a full disk, which must not end a training.
    fn show(&self, line: &str) {
        self.bar.suspend(|| {
            let _ = writeln!(io::stderr(), "{}", input::line(line, LINE));
        });
    }
}
