//! The crate `tensorboard-rs` as an [`EventLog`], for those who prefer it.

use std::io;
use std::path::Path;

use tensorboard_rs::summary_writer::SummaryWriter;

use super::{EventLog, Histogram, HyperParameter};

/// `tensorboard-rs`'s writer: scalars and histograms. It has no text and no
/// hyper-parameters (both are dropped), it panics where the default writer
/// returns an error, and two runs started in one folder within a second
/// overwrite each other.
pub struct TensorboardRsLog {
    writer: SummaryWriter,
}

impl TensorboardRsLog {
    /// Opens an event file in `folder`.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self {
            writer: SummaryWriter::new(folder),
        }
    }
}

impl EventLog for TensorboardRsLog {
    fn scalar(&mut self, tag: &str, step: u64, value: f64) -> io::Result<()> {
        self.writer.add_scalar(tag, value as f32, step as usize);
        Ok(())
    }

    fn histogram(&mut self, tag: &str, step: u64, histogram: &Histogram) -> io::Result<()> {
        self.writer.add_histogram_raw(
            tag,
            histogram.min,
            histogram.max,
            histogram.num,
            histogram.sum,
            histogram.sum_squares,
            &histogram.limits,
            &histogram.counts,
            step as usize,
        );
        Ok(())
    }

    fn text(&mut self, _: &str, _: u64, _: &str) -> io::Result<()> {
        Ok(())
    }

    fn hparams(&mut self, _: &[(String, HyperParameter)]) -> io::Result<()> {
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush();
        Ok(())
    }
}
