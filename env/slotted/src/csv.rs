//! Arrivals as CSV: `slot,port[,work][,value]`, one row per packet in order of arrival.

#![warn(clippy::arithmetic_side_effects)]

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufReader, Read};
use std::path::Path;
use std::str::FromStr;

use bufgym_util::input::{Records, condensed, excerpt, suggestion};
use csv::{ByteRecord, ReaderBuilder, Trim};

use super::arrivals::Check;
use super::generate::MAX_PACKETS;
use super::{Arrivals, Packet, SlottedError};

const COLUMNS: [&str; 4] = ["slot", "port", "work", "value"];
const HEADER: &str = "slot,port[,work][,value]";

impl Arrivals {
    /// Reads arrivals for a switch with `ports` ports. Unknown columns, empty lines and lines that
    /// start with `#` are ignored; without a column work or value is 1.
    ///
    /// # Errors
    /// With file, line and field: a file that cannot be read or has no packets, a missing column, and
    /// everything that [`Arrivals::new`] refuses.
    pub fn read_csv(path: impl AsRef<Path>, ports: u32) -> Result<Arrivals, SlottedError> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|source| SlottedError::Io {
            path: path.to_owned(),
            source,
        })?;
        Arrivals::from_reader(BufReader::new(file), &path.display().to_string(), ports)
    }

    /// As [`read_csv`](Arrivals::read_csv), from any reader; `origin` stands for the file in
    /// errors.
    ///
    /// # Errors
    /// As for `read_csv`.
    pub fn from_reader(
        reader: impl Read,
        origin: &str,
        ports: u32,
    ) -> Result<Arrivals, SlottedError> {
        let at = |line: u64, problem: String| SlottedError::Line {
            origin: origin.to_owned(),
            line,
            problem,
        };
        let mut csv = ReaderBuilder::new()
            .comment(Some(b'#'))
            .trim(Trim::All)
            .flexible(true)
            .from_reader(Records::new(reader));
        let header = csv
            .byte_headers()
            .map_err(|error| at(1, format!("not CSV: {}", condensed(io::Error::from(error)))))?
            .clone();
        let columns = Columns::find(&header).map_err(|problem| at(1, problem))?;
        let mut check = Check::new(ports);
        let mut packets = Vec::new();
        let mut record = ByteRecord::new();
        loop {
            let more = csv.read_byte_record(&mut record).map_err(|error| {
                let line = error.position().map_or(0, csv::Position::line);
                at(
                    line,
                    format!("cannot be read: {}", condensed(io::Error::from(error))),
                )
            })?;
            if !more {
                break;
            }
            csv.get_mut().done();
            let line = record.position().map_or(0, csv::Position::line);
            let packet = columns
                .packet(&record, header.len())
                .and_then(|packet| check.packet(&packet).map(|()| packet))
                .map_err(|problem| at(line, problem))?;
            if packets.len() as u64 == MAX_PACKETS {
                return Err(at(
                    line,
                    format!("more than {MAX_PACKETS} packets, the most that are read"),
                ));
            }
            packets.push(packet);
        }
        if packets.is_empty() {
            return Err(at(
                1,
                format!("no packets; expected a header {HEADER} and at least one line"),
            ));
        }
        Arrivals::new(packets, ports)
    }
}

/// Positions of the columns in the file.
struct Columns([Option<usize>; 4]);

impl Columns {
    fn find(header: &ByteRecord) -> Result<Columns, String> {
        let names: Vec<String> = header
            .iter()
            .map(|name| {
                String::from_utf8_lossy(name)
                    .trim_start_matches('\u{feff}')
                    .to_owned()
            })
            .collect();
        let columns = COLUMNS.map(|column| names.iter().position(|name| name == column));
        for column in COLUMNS {
            if names.iter().filter(|name| *name == column).count() > 1 {
                return Err(format!("two columns are called `{column}`; leave one out"));
            }
        }
        for (column, found) in COLUMNS.iter().zip(&columns).take(2) {
            if found.is_none() {
                let near = names
                    .iter()
                    .map(|name| suggestion(name, &[column]))
                    .find(|hint| !hint.is_empty())
                    .unwrap_or_default();
                return Err(format!(
                    "no column `{column}`{near}; the header must be {HEADER}"
                ));
            }
        }
        Ok(Columns(columns))
    }

    fn packet(&self, record: &ByteRecord, expected: usize) -> Result<Packet, String> {
        if record.len() != expected {
            return Err(format!(
                "{} fields, where the header has {expected}",
                record.len()
            ));
        }
        Ok(Packet {
            slot: self.number(record, 0, u64::MAX)?.unwrap_or_default(),
            port: self.small(record, 1)?.unwrap_or_default(),
            work: self.small(record, 2)?.unwrap_or(1),
            value: self.small(record, 3)?.unwrap_or(1),
        })
    }

    fn small(&self, record: &ByteRecord, column: usize) -> Result<Option<u32>, String> {
        self.number(record, column, u32::MAX)
    }

    fn number<T>(&self, record: &ByteRecord, column: usize, most: T) -> Result<Option<T>, String>
    where
        T: Display + FromStr,
    {
        let Some(field) = self.0[column].and_then(|index| record.get(index)) else {
            return Ok(None);
        };
        std::str::from_utf8(field)
            .ok()
            .and_then(|text| text.parse().ok())
            .map(Some)
            .ok_or_else(|| {
                format!(
                    "{}: '{}' is not a whole number from 0 to {most}",
                    COLUMNS[column],
                    excerpt(&String::from_utf8_lossy(field))
                )
            })
    }
}
