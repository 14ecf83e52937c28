//! Flow traces as CSV: `id,src,dst,start_ns,size_bytes[,kind,query,priority]`.

#![warn(clippy::arithmetic_side_effects)]

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::{Path, PathBuf};

use bufgym_util::files;
use bufgym_util::input::{Records, excerpt, suggestion};
use csv::{ByteRecord, ReaderBuilder, Trim};

use super::formats::{FlowFormat, ListOptions, decimal, endpoint_problem};
use super::{FlowSpec, Trace};
use crate::units::Instant;

const REQUIRED: [&str; 5] = ["id", "src", "dst", "start_ns", "size_bytes"];
const OPTIONAL: [&str; 3] = ["kind", "query", "priority"];

/// Longest name of a kind, bytes. There may be 65,536 kinds.
const MAX_KIND: usize = 1_024;

/// A flow list that cannot be used. Each message is one line with the place, the problem and a valid
/// alternative.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {
    /// The file cannot be read or written.
    #[error("{}: cannot {action} the flow list: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// `read` or `write`.
        action: &'static str,
        /// Reason of the failure.
        source: io::Error,
    },
    /// There are no lines, or only a header.
    #[error("{origin}: no flows; expected a header {} and at least one line", REQUIRED.join(","))]
    Empty {
        /// The file.
        origin: String,
    },
    /// A trace that was not read from a file is empty.
    #[error(
        "the trace: no flows; in a scenario whose traffic lasts for some time, a longer `measure_ms`, more `load` or a greater `query_rate` gives it some"
    )]
    NoFlows,
    /// A required column is missing from the header.
    #[error("{origin}:{line}: no column `{column}`{hint}; the header must have {}", REQUIRED.join(","))]
    MissingColumn {
        /// The file.
        origin: String,
        /// The line of the header, from 1.
        line: u64,
        /// The column.
        column: &'static str,
        /// A column that may have been meant, or nothing.
        hint: String,
    },
    /// An invalid line.
    #[error("{origin}:{line}: {problem}")]
    Line {
        /// The file.
        origin: String,
        /// The line, from 1.
        line: u64,
        /// The problem found there, the field first.
        problem: String,
    },
    /// An invalid word, in a format of words between white space.
    #[error("{origin}:{line}:{column}: {problem}")]
    Place {
        /// The file.
        origin: String,
        /// The line, from 1.
        line: u64,
        /// The column of the word's first character, from 1.
        column: usize,
        /// The problem found there, the field first.
        problem: String,
    },
    /// A packet capture instead of a flow list.
    #[error(
        "{origin}: a packet capture, not a flow list; `bufgym trace --from {origin} --out flows.csv` \
         makes a flow list of it"
    )]
    IsCapture {
        /// The file.
        origin: String,
    },
    /// A flow that cannot be simulated.
    #[error("flow {id}: {problem}")]
    Flow {
        /// The flow's `id`.
        id: u64,
        /// The problem with the flow, the field first.
        problem: String,
    },
}

impl Trace {
    /// Reads a flow list from a file. Hosts may have any number.
    ///
    /// The order of the lines is kept. Unknown columns, empty lines and lines that start with `#`
    /// are ignored. Without the optional columns the kind is [`Trace::DEFAULT_KIND`], the query -1
    /// and the priority 0.
    ///
    /// # Errors
    /// With file, line and field: a file that cannot be read or has no flows, a missing column, a
    /// value that is not a number or out of range, `src = dst`, an `id` that occurs twice.
    pub fn read_csv(path: impl AsRef<Path>) -> Result<Trace, TraceError> {
        let options = ListOptions {
            format: Some(FlowFormat::Csv),
            ..ListOptions::default()
        };
        Trace::read_list(path, &options)
    }

    /// As [`read_csv`](Trace::read_csv), from any reader; `origin` stands for the file in errors.
    ///
    /// # Errors
    /// As for `read_csv`.
    pub fn from_reader(reader: impl Read, origin: &str) -> Result<Trace, TraceError> {
        Parser::new(origin, ListOptions::default()).parse(reader)
    }

    /// Writes the flow list to a file, readable by [`read_csv`](Trace::read_csv). A regular file
    /// appears complete or not at all. Other files, such as `/dev/stdout`, are written directly.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub fn write_csv(&self, path: impl AsRef<Path>) -> Result<(), TraceError> {
        let path = path.as_ref();
        let special = path
            .symlink_metadata()
            .is_ok_and(|metadata| !metadata.is_file());
        let result = if special {
            File::create(path).and_then(|file| self.to_writer(BufWriter::new(file)))
        } else {
            files::replace_with(path, |file| self.to_writer(file))
        };
        result.map_err(|source| TraceError::Io {
            path: path.to_owned(),
            action: "write",
            source,
        })
    }

    /// Writes the flow list as CSV with all columns.
    ///
    /// # Errors
    /// Those of the writer.
    pub fn to_writer(&self, writer: impl Write) -> io::Result<()> {
        let mut csv = csv::Writer::from_writer(writer);
        csv.write_record(REQUIRED.iter().chain(&OPTIONAL))?;
        for flow in &self.flows {
            csv.write_record([
                flow.id.to_string().as_str(),
                &flow.src.to_string(),
                &flow.dst.to_string(),
                &flow.start.as_ns().to_string(),
                &flow.size.to_string(),
                self.kind_name(flow),
                &flow.query.to_string(),
                &flow.priority.to_string(),
            ])?;
        }
        csv.flush()
    }

    /// Checks that the flows can be simulated with hosts `0..ports`.
    ///
    /// # Errors
    /// [`TraceError::NoFlows`] without flows, else [`TraceError::Flow`] for the first flow with a
    /// host that does not exist, `src = dst`, a size or start out of range, or an `id` that
    /// occurred before.
    pub fn validate(&self, ports: u32) -> Result<(), TraceError> {
        if self.flows.is_empty() {
            return Err(TraceError::NoFlows);
        }
        let mut ids = HashSet::with_capacity(self.flows.len());
        for flow in &self.flows {
            let problem = if flow.start > Instant::from_ns(Trace::MAX_START_NS) {
                Some(format!("start_ns: must be at most {}", Trace::MAX_START_NS))
            } else if !(1..=Trace::MAX_SIZE).contains(&flow.size) {
                Some(format!(
                    "size_bytes: must be from 1 to {}, found {}",
                    Trace::MAX_SIZE,
                    flow.size
                ))
            } else if !ids.insert(flow.id) {
                Some("id: occurs twice; every flow needs its own".to_owned())
            } else {
                endpoint_problem(flow.src, flow.dst, ports)
            };
            if let Some(problem) = problem {
                return Err(TraceError::Flow {
                    id: flow.id,
                    problem,
                });
            }
        }
        Ok(())
    }
}

/// Position of each known column in the file.
struct Columns {
    required: [usize; REQUIRED.len()],
    optional: [Option<usize>; OPTIONAL.len()],
    count: usize,
}

/// Reads one file, and keeps what it has read so far.
pub(super) struct Parser<'a> {
    origin: &'a str,
    options: ListOptions,
    line: u64,
    flows: Vec<FlowSpec>,
    kinds: Vec<String>,
    kind_index: HashMap<String, u16>,
    id_lines: HashMap<u64, u64>,
}

impl<'a> Parser<'a> {
    pub(super) fn new(origin: &'a str, options: ListOptions) -> Parser<'a> {
        Parser {
            origin,
            options,
            line: 1,
            flows: Vec::new(),
            kinds: Vec::new(),
            kind_index: HashMap::new(),
            id_lines: HashMap::new(),
        }
    }

    pub(super) fn parse(mut self, reader: impl Read) -> Result<Trace, TraceError> {
        let mut reader = ReaderBuilder::new()
            .has_headers(false)
            .flexible(true)
            .comment(Some(b'#'))
            .trim(Trim::All)
            .from_reader(Records::new(reader));
        let mut record = ByteRecord::new();
        if !self.next(&mut reader, &mut record)? {
            return Err(TraceError::Empty {
                origin: self.origin.to_owned(),
            });
        }
        let columns = self.columns(&record)?;
        while self.next(&mut reader, &mut record)? {
            if self.flows.len() == Trace::MAX_FLOWS {
                let most = Trace::MAX_FLOWS;
                return Err(self.error(format!("more than {most} flows, the most that are read")));
            }
            let flow = self.flow(&columns, &record)?;
            self.flows.push(flow);
        }
        if self.flows.is_empty() {
            return Err(TraceError::Empty {
                origin: self.origin.to_owned(),
            });
        }
        Ok(Trace {
            flows: self.flows,
            kinds: self.kinds,
            seed: 0,
        })
    }

    /// Reads the next record and notes its line. Returns false at the end.
    fn next(
        &mut self,
        reader: &mut csv::Reader<Records<impl Read>>,
        record: &mut ByteRecord,
    ) -> Result<bool, TraceError> {
        let more = reader
            .read_byte_record(record)
            .map_err(|error| TraceError::Io {
                path: PathBuf::from(self.origin),
                action: "read",
                source: error.into(),
            })?;
        if let Some(position) = record.position() {
            self.line = position.line();
        }
        reader.get_mut().done();
        Ok(more)
    }

    fn error(&self, problem: impl Into<String>) -> TraceError {
        TraceError::Line {
            origin: self.origin.to_owned(),
            line: self.line,
            problem: problem.into(),
        }
    }

    fn columns(&self, header: &ByteRecord) -> Result<Columns, TraceError> {
        let find = |column: &str| header.iter().position(|name| name == column.as_bytes());
        for column in REQUIRED.iter().chain(&OPTIONAL) {
            if header
                .iter()
                .filter(|name| *name == column.as_bytes())
                .count()
                > 1
            {
                return Err(self.error(format!("{column}: two columns have this name; keep one")));
            }
        }
        let mut required = [0; REQUIRED.len()];
        for (slot, column) in required.iter_mut().zip(REQUIRED) {
            *slot = find(column).ok_or_else(|| self.missing(column, header))?;
        }
        Ok(Columns {
            required,
            optional: OPTIONAL.map(find),
            count: header.len(),
        })
    }

    fn missing(&self, column: &'static str, header: &ByteRecord) -> TraceError {
        let near = header
            .iter()
            .filter_map(|name| std::str::from_utf8(name).ok())
            .find(|name| !suggestion(name, &[column]).is_empty());
        TraceError::MissingColumn {
            origin: self.origin.to_owned(),
            line: self.line,
            column,
            hint: near
                .map(|name| format!(" (there is `{}`)", excerpt(name)))
                .unwrap_or_default(),
        }
    }

    fn flow(&mut self, columns: &Columns, record: &ByteRecord) -> Result<FlowSpec, TraceError> {
        if record.len() != columns.count {
            return Err(self.error(format!(
                "{} fields where the header has {}",
                record.len(),
                columns.count
            )));
        }
        let field = |index: usize| self.text(REQUIRED[index], record, columns.required[index]);
        let id = self.number(REQUIRED[0], field(0)?, 0, u64::MAX)?;
        let src = self.host(REQUIRED[1], field(1)?)?;
        let dst = self.host(REQUIRED[2], field(2)?)?;
        let start_ns = self.time(REQUIRED[3], field(3)?)?;
        let size = self.number(REQUIRED[4], field(4)?, 1, Trace::MAX_SIZE)?;
        let optional = |index: usize| match columns.optional[index] {
            None => Ok(""),
            Some(column) => self.text(OPTIONAL[index], record, column),
        };
        let kind = optional(0)?.to_owned();
        let query = match optional(1)? {
            "" => -1,
            text => self.number(OPTIONAL[1], text, i64::MIN, i64::MAX)?,
        };
        let priority = match optional(2)? {
            "" => 0,
            text => self.number(OPTIONAL[2], text, 0, u8::MAX)?,
        };
        if let Some(problem) = self.options.ends_problem(src, dst) {
            return Err(self.error(problem));
        }
        if let Some(first) = self.id_lines.insert(id, self.line) {
            return Err(self.error(format!(
                "id: {id} already occurred on line {first}; every flow needs its own"
            )));
        }
        let kind = self.kind(kind)?;
        Ok(FlowSpec {
            id,
            src,
            dst,
            start: Instant::from_ns(start_ns),
            size,
            kind,
            query,
            priority,
        })
    }

    fn text<'r>(
        &self,
        column: &str,
        record: &'r ByteRecord,
        index: usize,
    ) -> Result<&'r str, TraceError> {
        let bytes = record.get(index).unwrap_or_default();
        std::str::from_utf8(bytes).map_err(|_| self.error(format!("{column}: not UTF-8 text")))
    }

    fn number<T>(&self, column: &str, text: &str, min: T, max: T) -> Result<T, TraceError>
    where
        T: Copy + std::fmt::Display + PartialOrd + std::str::FromStr,
    {
        text.parse()
            .ok()
            .filter(|value: &T| *value >= min && *value <= max)
            .ok_or_else(|| {
                let found = if text.is_empty() {
                    "nothing".to_owned()
                } else {
                    format!("`{}`", excerpt(text))
                };
                self.error(format!(
                    "{column}: expected a whole number from {min} to {max}, found {found}"
                ))
            })
    }

    fn host(&self, column: &str, text: &str) -> Result<u32, TraceError> {
        let given = self.number(column, text, 0, u32::MAX)?;
        let host = self.options.host(column, given);
        host.map_err(|problem| self.error(problem))
    }

    /// Parses nanoseconds. A spreadsheet program may write them as `1500.0` or `1.5e3`.
    fn time(&self, column: &str, text: &str) -> Result<u64, TraceError> {
        let whole = decimal(text, 0).map(|value| value.to_string());
        let text = whole.as_deref().unwrap_or(text);
        self.number(column, text, 0, Trace::MAX_START_NS)
    }

    fn kind(&mut self, name: String) -> Result<u16, TraceError> {
        let name = if name.is_empty() {
            Trace::DEFAULT_KIND.to_owned()
        } else {
            name
        };
        if let Some(kind) = self.kind_index.get(&name) {
            return Ok(*kind);
        }
        if name.len() > MAX_KIND {
            let name = excerpt(&name);
            return Err(self.error(format!("kind: `{name}` is longer than {MAX_KIND} bytes")));
        }
        let kind = u16::try_from(self.kinds.len())
            .map_err(|_| self.error("kind: more than 65,536 different kinds"))?;
        self.kinds.push(name.clone());
        self.kind_index.insert(name, kind);
        Ok(kind)
    }
}
