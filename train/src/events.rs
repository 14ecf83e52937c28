//! TensorBoard event files: training curves, histograms, texts and hyper-parameters.
//!
//! An event file is a sequence of TFRecord frames, each around one protocol-buffer message. The
//! field numbers are those of `tensorflow/core/util/event.proto`,
//! `tensorflow/core/framework/summary.proto` and
//! `tensorboard/plugins/hparams/plugin_data.proto`. The frame and its masked CRC-32C are those of
//! `tensorflow/core/lib/io/record_writer.h`.

use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use bufgym_util::convert::{floor_u64, single};

const DT_STRING: u64 = 7;
const SESSION_START: u64 = 1;
const DATA_CLASS_TENSOR: u64 = 2;

/// Counts in buckets, as TensorBoard draws them.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Histogram {
    min: f64,
    max: f64,
    /// Number of values.
    num: f64,
    sum: f64,
    sum_squares: f64,
    /// Right edge of each bucket, ascending.
    limits: Vec<f64>,
    /// Count of each bucket, as long as `limits`.
    counts: Vec<f64>,
}

impl Histogram {
    /// A histogram of values that lie on the centres of cells of equal width, such as actions.
    ///
    /// `centres` are ascending; `counts` has one entry per centre.
    pub(crate) fn of_cells(centres: &[f64], counts: &[u64]) -> Self {
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

/// The value of one hyper-parameter of a run.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum HyperParameter {
    Number(f64),
    Flag(bool),
    Text(String),
}

/// An event file whose failure loses the curves, but does not end the training. After the first error it writes nothing
/// more, because a file with a torn record must not be continued.
pub(crate) struct Events {
    file: Option<EventFile>,
    failure: Option<io::Error>,
}

impl Events {
    /// Wraps an event file, or the failure to open one.
    pub(crate) fn new(file: io::Result<EventFile>) -> Self {
        let (file, failure) = match file {
            Ok(file) => (Some(file), None),
            Err(failure) => (None, Some(failure)),
        };
        Self { file, failure }
    }

    /// Runs `write` on the file, unless an earlier write failed.
    pub(crate) fn write(&mut self, write: impl FnOnce(&mut EventFile) -> io::Result<()>) {
        if let Some(file) = &mut self.file
            && let Err(failure) = write(file)
        {
            self.file = None;
            self.failure = Some(failure);
        }
    }

    /// The failure that stopped the writing, returned once.
    pub(crate) fn take_failure(&mut self) -> Option<io::Error> {
        self.failure.take()
    }
}

/// Writer of one event file. A `step` counts decisions over all workers. Every method fails when
/// the file cannot be written.
pub(crate) struct EventFile {
    writer: BufWriter<Box<dyn Write + Send>>,
}

impl EventFile {
    /// Opens a new event file in `folder`, never an existing one, so that two runs in one folder
    /// stay apart.
    ///
    /// `restart_at` is for a resumed run: TensorBoard drops what earlier files of the folder say
    /// about this step and later ones.
    pub(crate) fn create(folder: &Path, restart_at: Option<u64>) -> io::Result<Self> {
        Self::from_writer(Box::new(create_unique(folder)?), restart_at)
    }

    fn from_writer(writer: Box<dyn Write + Send>, restart_at: Option<u64>) -> io::Result<Self> {
        let mut file = Self {
            writer: BufWriter::new(writer),
        };
        file.event(restart_at.unwrap_or(0), 3, b"brain.Event:2")?;
        if let Some(step) = restart_at {
            let start = Message::new().varint(1, SESSION_START);
            file.event(step, 7, &start.0)?;
        }
        file.flush()?;
        Ok(file)
    }

    /// Writes one point of a curve.
    pub(crate) fn scalar(&mut self, tag: &str, step: u64, value: f64) -> io::Result<()> {
        let value = Message::new()
            .bytes(1, tag.as_bytes())
            .float(2, single(value));
        self.summary(step, &value)
    }

    /// Writes one distribution.
    pub(crate) fn histogram(
        &mut self,
        tag: &str,
        step: u64,
        histogram: &Histogram,
    ) -> io::Result<()> {
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

    /// Writes a text in Markdown.
    pub(crate) fn text(&mut self, tag: &str, step: u64, markdown: &str) -> io::Result<()> {
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

    /// Writes the hyper-parameters of the run, once at its start.
    pub(crate) fn hparams(&mut self, hparams: &[(String, HyperParameter)]) -> io::Result<()> {
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
        let plugin = Message::new().bytes(1, b"hparams").bytes(2, &data.0);
        let metadata = Message::new().message(1, &plugin);
        let value = Message::new()
            .bytes(1, b"_hparams_/session_start_info")
            .message(9, &metadata);
        self.summary(0, &value)
    }

    /// Makes everything written so far visible to readers.
    pub(crate) fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }

    fn summary(&mut self, step: u64, value: &Message) -> io::Result<()> {
        let summary = Message::new().message(1, value);
        self.event(step, 5, &summary.0)
    }

    fn event(&mut self, step: u64, field: u32, payload: &[u8]) -> io::Result<()> {
        let event = Message::new()
            .double(1, unix_seconds())
            .varint(2, step)
            .bytes(field, payload);
        write_record(&mut self.writer, &event.0)
    }
}

fn create_unique(folder: &Path) -> io::Result<File> {
    let process = std::process::id();
    let mut attempt = 0_u32;
    loop {
        let seconds = floor_u64(unix_seconds());
        // Readers look for "tfevents" in the name and order files by it.
        let name = format!("events.out.tfevents.{seconds:010}.bufgym.{process}.{attempt}");
        let path = folder.join(name);
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => attempt += 1,
            other => return other,
        }
    }
}

fn unix_seconds() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0.0, |elapsed| elapsed.as_secs_f64())
}

/// A protocol-buffer message under construction: its encoded fields, in the order written.
#[derive(Default)]
struct Message(Vec<u8>);

impl Message {
    fn new() -> Self {
        Self::default()
    }

    fn raw_varint(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.0.push((value & 0x7f) as u8 | 0x80);
            value >>= 7;
        }
        self.0.push((value & 0x7f) as u8);
    }

    fn key(&mut self, field: u32, wire_type: u32) {
        self.raw_varint(u64::from(field << 3 | wire_type));
    }

    fn varint(mut self, field: u32, value: u64) -> Self {
        self.key(field, 0);
        self.raw_varint(value);
        self
    }

    fn double(mut self, field: u32, value: f64) -> Self {
        self.key(field, 1);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    fn float(mut self, field: u32, value: f32) -> Self {
        self.key(field, 5);
        self.0.extend_from_slice(&value.to_le_bytes());
        self
    }

    fn bytes(mut self, field: u32, value: &[u8]) -> Self {
        self.key(field, 2);
        self.raw_varint(value.len() as u64);
        self.0.extend_from_slice(value);
        self
    }

    fn message(self, field: u32, value: &Message) -> Self {
        self.bytes(field, &value.0)
    }

    fn packed_doubles(self, field: u32, values: &[f64]) -> Self {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        self.bytes(field, &bytes)
    }
}

/// Writes one TFRecord frame with a single call, so that a reader of the growing file sees whole
/// records, except for a short tail.
fn write_record(writer: &mut impl Write, payload: &[u8]) -> io::Result<()> {
    let length = (payload.len() as u64).to_le_bytes();
    let mut frame = Vec::with_capacity(payload.len() + 16);
    frame.extend_from_slice(&length);
    frame.extend_from_slice(&masked_crc(&length));
    frame.extend_from_slice(payload);
    frame.extend_from_slice(&masked_crc(payload));
    writer.write_all(&frame)
}

fn masked_crc(bytes: &[u8]) -> [u8; 4] {
    let crc = crc32c(bytes);
    crc.rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

fn crc32c(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, &byte| {
        CRC32C[((crc ^ u32::from(byte)) & 0xff) as usize] ^ (crc >> 8)
    })
}

const CRC32C: [u32; 256] = {
    let mut table = [0; 256];
    let mut byte: u32 = 0;
    while byte < 256 {
        let mut crc = byte;
        let mut bit = 0;
        while bit < 8 {
            // Castagnoli polynomial, reflected (RFC 3720, appendix B.4).
            crc = (crc >> 1) ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 };
            bit += 1;
        }
        table[byte as usize] = crc;
        byte += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk that is full after this many bytes.
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
        let mut events = Events::new(EventFile::from_writer(Box::new(Disk(100)), None));
        let mut written = 0;
        for step in 0..100 {
            events.write(|file| {
                file.scalar("loss", step, 1.0)?;
                file.flush()?;
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
    fn a_file_that_cannot_be_opened_is_reported_too() {
        let file = EventFile::create(Path::new("/nowhere/at/all"), None);
        assert!(Events::new(file).take_failure().is_some());
    }

    #[test]
    fn two_runs_in_one_folder_have_their_own_files() {
        let root = tempfile::tempdir().unwrap();
        let sizes = || {
            let entries = std::fs::read_dir(root.path()).unwrap();
            let mut files: Vec<_> = entries
                .map(|entry| entry.unwrap())
                .map(|entry| (entry.file_name(), entry.metadata().unwrap().len()))
                .collect();
            files.sort();
            files
        };
        let mut first = EventFile::create(root.path(), None).unwrap();
        let _second = EventFile::create(root.path(), Some(7)).unwrap();
        let before = sizes();
        assert_eq!(before.len(), 2);
        first.scalar("loss", 1, 0.5).unwrap();
        first.flush().unwrap();
        let after = sizes();
        assert!(after[0].1 > before[0].1);
        assert_eq!(after[1], before[1]);
    }

    #[test]
    fn cells_become_buckets() {
        let histogram = Histogram::of_cells(&[-0.75, -0.25, 0.25, 0.75], &[0, 2, 1, 0]);
        assert_eq!(histogram.limits, [-0.5, 0.0, 0.5, 1.0]);
        assert_eq!(histogram.counts, [0.0, 2.0, 1.0, 0.0]);
        assert_eq!((histogram.min, histogram.max), (-0.5, 0.5));
        assert_eq!((histogram.num, histogram.sum), (3.0, -0.25));
    }

    /// Check values of RFC 3720, appendix B.4.
    #[test]
    fn crc32c_matches_the_rfc() {
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
    }

    /// The example of the encoding guide: field 1 = 150 is `08 96 01`.
    #[test]
    fn varints_match_the_encoding_guide() {
        assert_eq!(Message::new().varint(1, 150).0, [0x08, 0x96, 0x01]);
        assert_eq!(Message::new().bytes(2, b"testing").0, b"\x12\x07testing");
    }

    #[test]
    fn a_record_is_length_crc_payload_crc() {
        let mut out = Vec::new();
        write_record(&mut out, b"abc").unwrap();
        assert_eq!(out.len(), 8 + 4 + 3 + 4);
        assert_eq!(&out[..8], &3_u64.to_le_bytes());
        assert_eq!(&out[12..15], b"abc");
    }
}
