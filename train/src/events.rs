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

#[cfg(test)]
mod tests {
    use super::*;

    /// Holds this many bytes, then says that it is full.
    struct Disk(usize);

    impl io::Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if bytes.len() > self.0 {
                return Err(io::ErrorKind::StorageFull.into());
            }
            self.0 -= bytes.len();
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_costs_the_curves_and_is_reported_once() {
        let log = EventFile::from_writer(Disk(100), None).map(|log| Box::new(log) as Box<_>);
        let mut events = Events::new(log);
        let mut written = 0;
        for step in 0..100 {
            events.write(|log| {
                log.scalar("loss", step, 1.0)?;
                log.flush()?;
                written += 1;
                Ok(())
            });
        }
        assert_eq!(written, 1);
        let failure = events.take_failure().unwrap();
        assert_eq!(failure.kind(), io::ErrorKind::StorageFull);
        assert!(events.take_failure().is_none());
    }

    #[test]
    fn a_log_that_cannot_be_opened_is_reported_too() {
        let folder = std::path::Path::new("/nowhere/at/all");
        let log = EventFile::create(folder, None).map(|(log, _)| Box::new(log) as Box<_>);
        assert!(Events::new(log).take_failure().is_some());
    }

    #[test]
    fn two_runs_in_one_folder_have_their_own_files() {
        let root = tempfile::tempdir().unwrap();
        let (mut first, one) = EventFile::create(root.path(), None).unwrap();
        let (_second, two) = EventFile::create(root.path(), Some(7)).unwrap();
        assert_ne!(one, two);
        let before = std::fs::metadata(&one).unwrap().len();
        first.scalar("loss", 1, 0.5).unwrap();
        first.flush().unwrap();
        assert!(std::fs::metadata(&one).unwrap().len() > before);
    }

    #[test]
    fn cells_become_buckets() {
        let histogram = Histogram::of_cells(&[-0.75, -0.25, 0.25, 0.75], &[0, 2, 1, 0]);
        assert_eq!(histogram.limits, [-0.5, 0.0, 0.5, 1.0]);
        assert_eq!(histogram.counts, [0.0, 2.0, 1.0, 0.0]);
        assert_eq!((histogram.min, histogram.max), (-0.5, 0.5));
        assert_eq!((histogram.num, histogram.sum), (3.0, -0.25));
    }
}
