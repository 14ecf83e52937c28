//! Training curves for TensorBoard.
//!
//! The training loop talks to the small [`EventLog`] trait. [`EventFile`]
//! writes TensorBoard's own format; with the cargo feature `tensorboard-rs`
//! the crate of that name can stand in its place. [`Events`] wraps either one
//! so that a log which cannot be written never ends a training.
//!
//! Why an own writer: `tfrecord` 0.15 returns its errors as values, but has
//! neither text nor hyper-parameters and builds an HTTP client with TLS in its
//! build script; `tensorboard-rs` 0.5.9 aborts the process when the disk is
//! full and lets two writers in one folder overwrite each other.

mod file;
#[cfg(feature = "tensorboard-rs")]
mod tensorboard_rs;
mod wire;

use std::io;

pub use file::EventFile;
#[cfg(feature = "tensorboard-rs")]
pub use tensorboard_rs::TensorboardRsLog;

/// Counts in buckets, as TensorBoard draws them.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    /// Smallest value.
    pub min: f64,
    /// Largest value.
    pub max: f64,
    /// Number of values.
    pub num: f64,
    /// Sum of the values.
    pub sum: f64,
    /// Sum of the squares.
    pub sum_squares: f64,
    /// Right edge of each bucket, ascending.
    pub limits: Vec<f64>,
    /// Count of each bucket, as long as `limits`.
    pub counts: Vec<f64>,
}

impl Histogram {
    /// A histogram of values that take only the centres of equal cells, for
    /// instance the action cells.
    ///
    /// `centres` are ascending, `counts` has one entry per centre.
    #[must_use]
    pub fn of_cells(centres: &[f64], counts: &[u64]) -> Self {
        let half = match centres {
            [first, second, ..] => (second - first) / 2.0,
            _ => 0.5,
        };
        let pairs = || centres.iter().zip(counts).map(|(&c, &n)| (c, n as f64));
        let occupied = || pairs().filter(|&(_, n)| n > 0.0);
        Self {
            min: occupied().next().map_or(0.0, |(c, _)| c - half),
            max: occupied().next_back().map_or(0.0, |(c, _)| c + half),
            num: pairs().map(|(_, n)| n).sum(),
            sum: pairs().map(|(c, n)| c * n).sum(),
            sum_squares: pairs().map(|(c, n)| c * c * n).sum(),
            limits: pairs().map(|(c, _)| c + half).collect(),
            counts: pairs().map(|(_, n)| n).collect(),
        }
    }
}

/// One hyper-parameter of a run.
#[derive(Debug, Clone, PartialEq)]
pub enum HyperParameter {
    /// A number.
    Number(f64),
    /// A switch.
    Flag(bool),
    /// A name.
    Text(String),
}

/// Where training curves go. `step` counts decisions over all workers.
pub trait EventLog: Send {
    /// One point of a curve.
    ///
    /// # Errors
    /// When the log cannot be written.
    fn scalar(&mut self, tag: &str, step: u64, value: f64) -> io::Result<()>;

    /// One distribution.
    ///
    /// # Errors
    /// When the log cannot be written.
    fn histogram(&mut self, tag: &str, step: u64, histogram: &Histogram) -> io::Result<()>;

    /// A text in Markdown.
    ///
    /// # Errors
    /// When the log cannot be written.
    fn text(&mut self, tag: &str, step: u64, markdown: &str) -> io::Result<()>;

    /// The hyper-parameters of the run, once at its start.
    ///
    /// # Errors
    /// When the log cannot be written.
    fn hparams(&mut self, hparams: &[(String, HyperParameter)]) -> io::Result<()>;

    /// Makes everything written so far visible to readers.
    ///
    /// # Errors
    /// When the log cannot be written.
    fn flush(&mut self) -> io::Result<()>;
}

/// An [`EventLog`] whose failure costs the curves, not the training: after the
/// first error it stops writing and hands the error out once.
pub struct Events {
    log: Option<Box<dyn EventLog>>,
    failure: Option<io::Error>,
}

impl Events {
    /// Wraps a log, or the failure to open one.
    #[must_use]
    pub fn new(log: io::Result<Box<dyn EventLog>>) -> Self {
        match log {
            Ok(log) => Self {
                log: Some(log),
                failure: None,
            },
            Err(failure) => Self {
                log: None,
                failure: Some(failure),
            },
        }
    }

    /// Runs `write` on the log, unless an earlier write failed. A log with a
    /// torn record must not be continued, hence no second try.
    pub fn write(&mut self, write: impl FnOnce(&mut dyn EventLog) -> io::Result<()>) {
        if let Some(log) = &mut self.log
            && let Err(failure) = write(log.as_mut())
        {
            self.log = None;
            self.failure = Some(failure);
        }
    }

    /// The failure that stopped the log, handed out once.
    pub fn take_failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }
}
