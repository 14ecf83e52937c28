//! Flow lists of other simulators, and detection of a list's format.

mod hpcc;
mod htsim;
mod lines;

use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;

use super::flows_csv::{Parser, TraceError};
use super::formats::{FlowFormat, ListOptions};
use super::{FlowSpec, Trace};

/// Number of bytes at the start of a file that determine its format.
const START: u64 = 4_096;

/// Detection.
impl FlowFormat {
    /// Returns the format of a file that starts with these bytes; CSV if no other fits.
    pub fn of(start: &[u8]) -> FlowFormat {
        let magic: Option<&[u8; 4]> = start.first_chunk();
        if let Some(
            [0x0a, 0x0d, 0x0d, 0x0a]
            | [0xa1, 0xb2, 0xc3, 0xd4 | 0xcd]
            | [0xd4 | 0x34, 0xc3 | 0xcd, 0xb2, 0xa1]
            | [0xa1, 0xb2, 0x3c, 0x4d]
            | [0x4d, 0x3c, 0xb2, 0xa1],
        ) = magic
        {
            return FlowFormat::Pcap;
        }
        let lines = start.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
        let line = lines
            .skip_while(|line| line.is_empty() || line[0] == b'#')
            .map(|line| String::from_utf8_lossy(line))
            .next()
            .unwrap_or_default();
        let word = line.split_ascii_whitespace().next().unwrap_or_default();
        match word {
            _ if line.contains(',') => FlowFormat::Csv,
            _ if htsim::begins(word) => FlowFormat::Htsim,
            _ if !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit()) => {
                FlowFormat::Hpcc
            }
            _ => FlowFormat::Csv,
        }
    }

    /// Reads as much of a file as determines its format. Returns the format and a reader of the whole
    /// file.
    ///
    /// # Errors
    /// Those of the reader.
    pub fn detect(mut reader: impl Read) -> io::Result<(FlowFormat, impl Read)> {
        let mut start = Vec::new();
        (&mut reader).take(START).read_to_end(&mut start)?;
        Ok((FlowFormat::of(&start), Cursor::new(start).chain(reader)))
    }
}

impl Trace {
    /// Reads a flow list in one of the formats of [`FlowFormat`], except for captures.
    ///
    /// # Errors
    /// With file, line and column or field: a file that cannot be read, that is not a flow list or has
    /// no flows, and values that are invalid in its format or in the simulator.
    pub fn read_list(path: impl AsRef<Path>, options: &ListOptions) -> Result<Trace, TraceError> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|source| TraceError::Io {
            path: path.to_owned(),
            action: "read",
            source,
        })?;
        Trace::list_from_reader(file, &path.display().to_string(), options)
    }

    /// As [`read_list`](Trace::read_list), from any reader; `origin` stands for the file in errors.
    ///
    /// # Errors
    /// As for `read_list`.
    pub fn list_from_reader(
        reader: impl Read,
        origin: &str,
        options: &ListOptions,
    ) -> Result<Trace, TraceError> {
        let detected = FlowFormat::detect(reader);
        let (found, reader) = detected.map_err(|source| TraceError::Io {
            path: origin.into(),
            action: "read",
            source,
        })?;
        match options.format.unwrap_or(found) {
            FlowFormat::Csv => Parser::new(origin, *options).parse(reader),
            FlowFormat::Pcap => Err(TraceError::IsCapture {
                origin: origin.to_owned(),
            }),
            FlowFormat::Hpcc => hpcc::read(reader, origin, options),
            FlowFormat::Htsim => htsim::read(reader, origin, options),
        }
    }
}

/// Returns a trace of flows without kinds.
fn plain(flows: Vec<FlowSpec>) -> Trace {
    Trace {
        flows,
        kinds: vec![Trace::DEFAULT_KIND.to_owned()],
        seed: 0,
    }
}
