//! Flow lists of other simulators, and detection of a list's format.

mod hpcc;
mod htsim;
mod lines;

use std::fmt;
use std::fs::File;
use std::io::{self, Cursor, Read};
use std::path::Path;
use std::str::FromStr;

use bufgym_util::input::{excerpt, suggestion};

use super::flows_csv::{Parser, TraceError, endpoint_problem};
use super::{FlowSpec, Trace};

pub(super) use lines::decimal;

/// Number of bytes at the start of a file that determine its format.
const START: u64 = 4_096;

/// A format of flows in a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlowFormat {
    /// `id,src,dst,start_ns,size_bytes[,kind,query,priority]`.
    Csv,
    /// A packet capture, pcap or pcapng.
    Pcap,
    /// A list of HPCC (SIGCOMM 2019) or of programs derived from its code, ns3-datacenter and SimAI:
    /// the number of flows, then lines `src dst priority port bytes start_s`.
    Hpcc,
    /// A connection matrix (`.cm`) of htsim, without triggers.
    Htsim,
}

impl FlowFormat {
    /// Every format.
    pub const ALL: [FlowFormat; 4] = [
        FlowFormat::Csv,
        FlowFormat::Pcap,
        FlowFormat::Hpcc,
        FlowFormat::Htsim,
    ];

    /// Returns the name used on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            FlowFormat::Csv => "csv",
            FlowFormat::Pcap => "pcap",
            FlowFormat::Hpcc => "hpcc",
            FlowFormat::Htsim => "htsim",
        }
    }

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

impl fmt::Display for FlowFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The error for an unknown name of a format.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{}` is not one of {}{}",
    excerpt(.0),
    FlowFormat::ALL.map(FlowFormat::name).join(", "),
    suggestion(.0, &FlowFormat::ALL.map(FlowFormat::name))
)]
pub struct UnknownFormat(String);

impl FromStr for FlowFormat {
    type Err = UnknownFormat;

    fn from_str(text: &str) -> Result<FlowFormat, UnknownFormat> {
        let mut all = FlowFormat::ALL.into_iter();
        all.find(|format| format.name() == text)
            .ok_or_else(|| UnknownFormat(text.to_owned()))
    }
}

/// Options for reading a flow list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListOptions {
    /// The format; `None` if the content determines it.
    pub format: Option<FlowFormat>,
    /// Number of hosts; the hosts of the list must be below it.
    pub ports: u32,
    /// Number of the first host in the list, which becomes host 0.
    pub host_offset: u32,
}

impl Default for ListOptions {
    fn default() -> ListOptions {
        ListOptions {
            format: None,
            ports: u32::MAX,
            host_offset: 0,
        }
    }
}

impl ListOptions {
    /// Returns the host that the list calls `given`, or the problem with it.
    pub(super) fn host(&self, field: &str, given: u32) -> Result<u32, String> {
        given.checked_sub(self.host_offset).ok_or_else(|| {
            let offset = self.host_offset;
            format!("{field}: host {given} is below {offset}, the first one by --host-offset")
        })
    }

    /// Returns the problem with the ends of a flow, if there is one.
    pub(super) fn ends_problem(&self, src: u32, dst: u32) -> Option<String> {
        let problem = endpoint_problem(src, dst, self.ports)?;
        // A list that counts from 1 seems to have one host too many.
        let one_more = self.host_offset == 0 && src.max(dst) == self.ports;
        Some(match one_more {
            true => format!("{problem}; if the first host of the list is 1, give --host-offset 1"),
            false => problem,
        })
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
