//! Connection matrices of htsim (`.cm`).

use std::collections::HashMap;
use std::io::Read;

use bufgym_util::input::{excerpt, suggestion};

use super::lines::{Line, Lines, Word};
use super::{ListOptions, plain};
use crate::traffic::{FlowSpec, Trace, TraceError};

const NODES: &str = "Nodes";
const CONNECTIONS: &str = "Connections";
/// Header lines; the last two may only be 0.
const HEADER: [&str; 4] = [NODES, CONNECTIONS, "Triggers", "Failures"];
/// Properties of a connection that are known. `msg` is a number internal to htsim and not read.
const KEYS: [&str; 5] = ["id", "start", "size", "prio", "msg"];
/// Properties that make a connection part of a closed loop.
const TRIGGERS: [&str; 3] = ["trigger", "send_done_trigger", "recv_done_trigger"];
/// Nanoseconds of a picosecond as a power of ten.
const PICOSECONDS: i32 = -3;

/// True if a matrix can begin with this word.
pub(super) fn begins(word: &str) -> bool {
    HEADER.contains(&word) || word.contains("->")
}

/// Reads a matrix. Connections without an `id` are numbered from 0 in their order; a file has either none
/// or all with one.
pub(super) fn read(
    reader: impl Read,
    origin: &str,
    options: &ListOptions,
) -> Result<Trace, TraceError> {
    let mut lines = Lines::new(reader, origin);
    let mut matrix = Matrix {
        options,
        header: [None; HEADER.len()],
        flows: Vec::new(),
        ids: HashMap::new(),
    };
    while let Some(line) = lines.next()? {
        matrix.add(&line)?;
    }
    let found = matrix.flows.len();
    match matrix.header[1] {
        None => Err(lines.error(1, format!("no line `{CONNECTIONS} C`"))),
        Some(expected) if expected != found as u64 => {
            let problem = format!("{CONNECTIONS} is {expected}, and there are {found}");
            Err(lines.error(1, problem))
        }
        Some(0) => Err(lines.error(1, "no connections, and so no flows".to_owned())),
        Some(_) => Ok(plain(matrix.flows)),
    }
}

/// Content read so far.
struct Matrix<'a> {
    options: &'a ListOptions,
    /// The values of the header lines.
    header: [Option<u64>; HEADER.len()],
    flows: Vec<FlowSpec>,
    /// The lines of the ids; empty if connections have none.
    ids: HashMap<u64, u64>,
}

impl Matrix<'_> {
    fn add(&mut self, line: &Line<'_>) -> Result<(), TraceError> {
        let mut words = line.words();
        let Some(first) = words.next().filter(|word| !word.text.starts_with('#')) else {
            return Ok(());
        };
        if let Some(place) = HEADER.iter().position(|name| *name == first.text) {
            return self.add_to_header(line, place, words);
        }
        if let Some((src, dst)) = first.text.split_once("->") {
            let src = Word { text: src, ..first };
            let column = first.column + src.text.chars().count() + 2;
            let flow = self.connection(line, src, Word { text: dst, column }, words)?;
            self.flows.push(flow);
            return Ok(());
        }
        if matches!(first.text, "trigger" | "failure") {
            return Err(closed_loop(line, first));
        }
        let hint = suggestion(first.text, &HEADER);
        let problem = format!(
            "expected {}, `SRC->DST` or a comment that starts with #, found `{}`{hint}",
            HEADER.map(|name| format!("`{name} N`")).join(", "),
            excerpt(first.text)
        );
        Err(line.error(first.column, problem))
    }

    fn add_to_header<'w>(
        &mut self,
        line: &Line<'_>,
        place: usize,
        mut words: impl Iterator<Item = Word<'w>>,
    ) -> Result<(), TraceError> {
        let name = HEADER[place];
        let Some(word) = words.next() else {
            return Err(line.error(line.end(), format!("{name}: no number")));
        };
        if let Some(extra) = words.next() {
            return Err(line.error(extra.column, format!("{name}: one word too many")));
        }
        let most = match place {
            0 => u64::from(u32::MAX),
            _ => Trace::MAX_FLOWS as u64,
        };
        let value = line.whole(name, word, 0, most)?;
        if place > 1 && value > 0 {
            return Err(closed_loop(line, word));
        }
        if self.header[place].replace(value).is_some() {
            return Err(line.error(1, format!("{name}: occurs twice")));
        }
        Ok(())
    }

    fn connection<'w>(
        &mut self,
        line: &Line<'_>,
        src: Word<'_>,
        dst: Word<'_>,
        mut words: impl Iterator<Item = Word<'w>>,
    ) -> Result<FlowSpec, TraceError> {
        if self.flows.len() == Trace::MAX_FLOWS {
            let most = Trace::MAX_FLOWS;
            return Err(line.error(1, format!("more than {most} flows, the most that are read")));
        }
        let mut values = [None; KEYS.len()];
        while let Some(key) = words.next() {
            if TRIGGERS.contains(&key.text) {
                return Err(closed_loop(line, key));
            }
            let Some(place) = KEYS.iter().position(|name| *name == key.text) else {
                let problem = format!(
                    "`{}` is not one of {}{}",
                    excerpt(key.text),
                    KEYS.join(", "),
                    suggestion(key.text, &KEYS)
                );
                return Err(line.error(key.column, problem));
            };
            let Some(value) = words.next() else {
                return Err(line.error(line.end(), format!("{}: no value", key.text)));
            };
            if values[place].replace(value).is_some() {
                return Err(line.error(key.column, format!("{}: occurs twice", key.text)));
            }
        }
        let [id, start, size, priority, message] = values;
        let needed = |key: &str, value: Option<Word<'w>>| {
            let problem = || line.error(line.end(), format!("no `{key}`; a connection needs one"));
            value.ok_or_else(problem)
        };
        if let Some(message) = message {
            line.whole("msg", message, 0, u64::MAX)?;
        }
        let (start, size) = (needed("start", start)?, needed("size", size)?);
        Ok(FlowSpec {
            src: self.host(line, "source", src)?,
            dst: self.destination(line, src, dst)?,
            start: line.time("start, ps", start, PICOSECONDS)?,
            size: line.whole("size", size, 1, Trace::MAX_SIZE)?,
            kind: 0,
            query: -1,
            priority: match priority {
                Some(word) => line.whole("prio", word, 0, u8::MAX)?,
                None => 0,
            },
            id: self.id(line, id)?,
        })
    }

    /// Returns the number of a host, which is one of the nodes.
    fn host(&self, line: &Line<'_>, field: &str, word: Word<'_>) -> Result<u32, TraceError> {
        let Some(nodes) = self.header[0] else {
            return Err(line.error(1, format!("no line `{NODES} N` before this connection")));
        };
        let given = line.whole(field, word, 0, u32::MAX)?;
        let host = self.options.host(field, given);
        let problem = match host {
            Ok(host) if u64::from(host) < nodes => return Ok(host),
            Ok(_) => format!("{field}: host {given} does not exist; there are {nodes} nodes"),
            Err(problem) => problem,
        };
        Err(line.error(word.column, problem))
    }

    fn destination(
        &self,
        line: &Line<'_>,
        src: Word<'_>,
        dst: Word<'_>,
    ) -> Result<u32, TraceError> {
        let from = self.host(line, "source", src)?;
        let to = self.host(line, "destination", dst)?;
        match self.options.ends_problem(from, to) {
            Some(problem) if problem.starts_with("src") => Err(line.error(src.column, problem)),
            Some(problem) => Err(line.error(dst.column, problem)),
            None => Ok(to),
        }
    }

    fn id(&mut self, line: &Line<'_>, word: Option<Word<'_>>) -> Result<u64, TraceError> {
        let number = self.flows.len();
        let Some(word) = word else {
            if !self.ids.is_empty() {
                let problem = "no `id`, which connections before have; give all one, or none";
                return Err(line.error(line.end(), problem));
            }
            return Ok(number as u64);
        };
        let id = line.whole("id", word, 1, u64::MAX)?;
        let problem = if self.ids.len() < number {
            "id: connections before have none; give all one, or none".to_owned()
        } else if let Some(first) = self.ids.insert(id, line.number()) {
            format!("id: {id} already occurred on line {first}; every connection needs its own")
        } else {
            return Ok(id);
        };
        Err(line.error(word.column, problem))
    }
}

fn closed_loop(line: &Line<'_>, word: Word<'_>) -> TraceError {
    let problem = format!(
        "`{}`: closed-loop forms, in which flows start when others have ended or links fail, are not \
         supported yet; give every connection a `start`",
        excerpt(word.text)
    );
    line.error(word.column, problem)
}
