//! Flow lists of HPCC (SIGCOMM 2019), ns3-datacenter and SimAI.

use std::io::Read;

use super::lines::{Line, Lines, Word};
use super::{ListOptions, plain};
use crate::traffic::{FlowSpec, Trace, TraceError};

/// Names of the words in a line.
const FIELDS: [&str; 6] = ["src", "dst", "priority", "port", "size_bytes", "start_s"];
/// Nanoseconds of a second as a power of ten.
const SECONDS: i32 = 9;

/// Reads the number of flows, and as many lines. Flows are numbered in their order. The port is checked
/// and otherwise not read.
pub(super) fn read(
    reader: impl Read,
    origin: &str,
    options: &ListOptions,
) -> Result<Trace, TraceError> {
    let mut lines = Lines::new(reader, origin);
    let expected = count(&mut lines)?;
    let mut flows = Vec::new();
    while let Some(line) = lines.next()? {
        if flows.len() == expected {
            let problem = format!("the first line says {expected} flows, and this is one more");
            return Err(line.error(1, problem));
        }
        flows.push(flow(&line, flows.len() as u64, options)?);
    }
    if flows.len() < expected {
        let found = flows.len();
        let problem = format!("the first line says {expected} flows, and there are {found}");
        return Err(lines.error(1, problem));
    }
    Ok(plain(flows))
}

/// Returns the number of flows on the first line.
fn count(lines: &mut Lines<'_, impl Read>) -> Result<usize, TraceError> {
    let Some(line) = lines.next()? else {
        return Err(lines.error(1, "expected the number of flows, found nothing".to_owned()));
    };
    let mut words = line.words();
    let first = words.next();
    match (first, words.next()) {
        (Some(word), None) => line.whole("number of flows", word, 1, Trace::MAX_FLOWS),
        (_, second) => {
            let column = second.map_or(1, |word| word.column);
            let problem = "the first line must be the number of flows alone; each line behind it one \
                           flow: src dst priority port size_bytes start_s";
            Err(line.error(column, problem))
        }
    }
}

fn flow(line: &Line<'_>, id: u64, options: &ListOptions) -> Result<FlowSpec, TraceError> {
    let mut words = line.words();
    let mut next = |field: &str| -> Result<Word<'_>, TraceError> {
        words.next().ok_or_else(|| {
            let problem = format!("no {field}; a line must be {}", FIELDS.join(" "));
            line.error(line.end(), problem)
        })
    };
    let [src, dst, priority, port, size, start] = {
        let mut found = [Word {
            text: "",
            column: 1,
        }; FIELDS.len()];
        for (slot, field) in found.iter_mut().zip(FIELDS) {
            *slot = next(field)?;
        }
        found
    };
    if let Some(extra) = words.next() {
        let problem = format!("one word too many; a line must be {}", FIELDS.join(" "));
        return Err(line.error(extra.column, problem));
    }
    let host = |field, word: Word<'_>| {
        let given = line.whole(field, word, 0, u32::MAX)?;
        options
            .host(field, given)
            .map_err(|problem| line.error(word.column, problem))
    };
    let spec = FlowSpec {
        id,
        src: host(FIELDS[0], src)?,
        dst: host(FIELDS[1], dst)?,
        start: line.time(FIELDS[5], start, SECONDS)?,
        size: line.whole(FIELDS[4], size, 1, Trace::MAX_SIZE)?,
        kind: 0,
        query: -1,
        priority: line.whole(FIELDS[2], priority, 0, u8::MAX)?,
    };
    line.whole(FIELDS[3], port, 0, u16::MAX)?;
    match options.ends_problem(spec.src, spec.dst) {
        Some(problem) if problem.starts_with(FIELDS[0]) => Err(line.error(src.column, problem)),
        Some(problem) => Err(line.error(dst.column, problem)),
        None => Ok(spec),
    }
}
