//! TensorBoard's event file, written directly.
//!
//! Field numbers from `tensorflow/core/util/event.proto`,
//! `tensorflow/core/framework/summary.proto` and
//! `tensorboard/plugins/hparams/plugin_data.proto`.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::wire::{Message, write_record};
use super::{EventLog, Histogram, HyperParameter};

const DT_STRING: u64 = 7;
const SESSION_START: u64 = 1;
const DATA_CLASS_TENSOR: u64 = 2;

/// Writer of one event file.
#[derive(Debug)]
pub struct EventFile<W: Write + Send = File> {
    writer: BufWriter<W>,
}

impl EventFile<File> {
    /// Opens a new event file in `folder`, never an existing one, so that two
    /// runs in one folder stay apart.
    ///
    /// `restart_at`: for a resumed run the step from which on earlier files of
    /// the folder are out of date; TensorBoard then drops what they say.
    ///
    /// # Errors
    /// When the file cannot be created or written.
    pub fn create(folder: &Path, restart_at: Option<u64>) -> io::Result<(Self, PathBuf)> {
        let (file, path) = create_unique(folder)?;
        Ok((Self::from_writer(file, restart_at)?, path))
    }
}

impl<W: Write + Send> EventFile<W> {
    /// Writes the file header to `writer`, see [`EventFile::create`].
    ///
    /// # Errors
    /// When the writer fails.
    pub fn from_writer(writer: W, restart_at: Option<u64>) -> io::Result<Self> {
        let mut log = Self {
            writer: BufWriter::new(writer),
        };
        log.event(restart_at.unwrap_or(0), 3, b"brain.Event:2")?;
        if let Some(step) = restart_at {
            let start = Message::new().varint(1, SESSION_START);
            log.event(step, 7, start.as_bytes())?;
        }
        log.flush()?;
        Ok(log)
    }

    fn event(&mut self, step: u64, field: u32, payload: &[u8]) -> io::Result<()> {
        let event = Message::new()
            .double(1, unix_seconds())
            .varint(2, step)
            .bytes(field, payload);
        write_record(&mut self.writer, event.as_bytes())
    }

    fn summary(&mut self, step: u64, value: &Message) -> io::Result<()> {
        let summary = Message::new().message(1, value);
        self.event(step, 5, summary.as_bytes())
    }
}

impl<W: Write + Send> EventLog for EventFile<W> {
    fn scalar(&mut self, tag: &str, step: u64, value: f64) -> io::Result<()> {
        let value = Message::new()
            .bytes(1, tag.as_bytes())
            .float(2, value as f32);
        self.summary(step, &value)
    }

    fn histogram(&mut self, tag: &str, step: u64, histogram: &Histogram) -> io::Result<()> {
        let histo = Message::new()
            .double(1, histogram.min)
            .double(2, histogram.max)
            .double(3, histogram.num)
            .double(4, histogram.sum)
            .double(5, histogram.sum_squares)
            .packed_doubles(6, &histogram.limits)
            .packed_doubles(7, &histogram.counts);
        let value = Message::new().bytes(1, tag.as_bytes()).message(5, &histo);
        self.summary(step, &value)
    }

    fn text(&mut self, tag: &str, step: u64, markdown: &str) -> io::Result<()> {
        let one = Message::new().message(2, &Message::new().varint(1, 1));
        let tensor = Message::new()
            .varint(1, DT_STRING)
            .message(2, &one)
            .bytes(8, markdown.as_bytes());
        let plugin = Message::new().bytes(1, b"text");
        let metadata = Message::new()
            .message(1, &plugin)
            .varint(4, DATA_CLASS_TENSOR);
        // The text plugin lists a tag under the name with this ending.
        let tag = format!("{tag}/text_summary");
        let value = Message::new()
            .bytes(1, tag.as_bytes())
            .message(9, &metadata)
            .message(8, &tensor);
        self.summary(step, &value)
    }

    fn hparams(&mut self, hparams: &[(String, HyperParameter)]) -> io::Result<()> {
        let mut start = Message::new();
        for (name, value) in hparams {
            // google.protobuf.Value
            let value = match value {
                HyperParameter::Number(number) => Message::new().double(2, *number),
                HyperParameter::Text(text) => Message::new().bytes(3, text.as_bytes()),
                HyperParameter::Flag(flag) => Message::new().varint(4, u64::from(*flag)),
            };
            let entry = Message::new().bytes(1, name.as_bytes()).message(2, &value);
            start = start.message(1, &entry);
        }
        let start = start.double(5, unix_seconds());
        let data = Message::new().message(3, &start);
        let plugin = Message::new()
            .bytes(1, b"hparams")
            .bytes(2, data.as_bytes());
        let metadata = Message::new().message(1, &plugin);
        let value = Message::new()
            .bytes(1, b"_hparams_/session_start_info")
            .message(9, &metadata);
        self.summary(0, &value)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

fn create_unique(folder: &Path) -> io::Result<(File, PathBuf)> {
    let process = std::process::id();
    let mut attempt = 0_u32;
    loop {
        let seconds = unix_seconds() as u64;
        // Readers look for "tfevents" in the name and order files by it.
        let name = format!("events.out.tfevents.{seconds:010}.bufgym.{process}.{attempt}");
        let path = folder.join(name);
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => attempt += 1,
            Err(error) => return Err(error),
            Ok(file) => return Ok((file, path)),
        }
    }
}

fn unix_seconds() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0.0, |elapsed| elapsed.as_secs_f64())
}
