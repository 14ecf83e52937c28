//! The file of a replay: header, frames in order, pairs of forks, SHA-256 of all.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use bufgym_env::control::{FEATURES, MAX_OUTPUTS, PRIVILEGED};
use bufgym_util::{files, input};
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{DECIDED, Outcome, Pairs, Replay, ReplayShape, Stream, pair_bytes};

const MAGIC: &[u8; 8] = b"BUFGYMRB";
const VERSION: u32 = 6;
const DIGEST: usize = 32;
/// Largest number of bytes that a stream adds to the header.
const MAX_STREAM: usize = 96;
/// Largest number of bytes of everything except the records.
const MAX_FRAME: u64 = 4_096;

/// The reason why a replay could not be saved or loaded.
#[derive(Debug, thiserror::Error)]
pub enum ReplayError {
    /// The file cannot be read or written.
    #[error("{}: {error}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Error of the operating system.
        error: io::Error,
    },
    /// The file is not a replay, of another version, truncated or altered.
    #[error("{}: not a usable replay file: {reason}", path.display())]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Description of the problem.
        reason: String,
    },
}

#[derive(Serialize, Deserialize)]
struct Header {
    ports: usize,
    /// Values of an action, all ports together.
    values: usize,
    slots: usize,
    pushed: u64,
    /// Pairs that are kept, and pairs that there have been.
    pairs: (usize, u64),
    rng: Xoshiro256PlusPlus,
    /// For each stream: number of frames ever written, first frame that was not handed out, and whether the newest
    /// frame waits for its decision.
    streams: Vec<(u64, u64, bool)>,
}

impl Replay {
    /// Writes everything held and the state of the random stream, and waits until it is on the
    /// disk.
    ///
    /// # Errors
    /// Returns errors of the file system.
    pub fn save(&self, path: &Path) -> Result<(), ReplayError> {
        self.write(path).map_err(|error| ReplayError::Io {
            path: path.to_owned(),
            error,
        })
    }

    fn write(&self, path: &Path) -> io::Result<()> {
        let mut out = Hashed {
            inner: BufWriter::new(files::create(path)?),
            hash: Sha256::new(),
        };
        let header = serde_json::to_vec(&Header {
            ports: self.ports,
            values: self.values,
            slots: self.slots,
            pushed: self.pushed,
            pairs: (self.pairs.slots(), self.pairs.end),
            rng: self.rng.clone(),
            streams: self
                .streams
                .iter()
                .map(|ring| (ring.end, ring.taken, ring.open))
                .collect(),
        })?;
        out.write_all(MAGIC)?;
        out.write_all(&VERSION.to_le_bytes())?;
        let length = u32::try_from(header.len()).map_err(io::Error::other)?;
        out.write_all(&length.to_le_bytes())?;
        out.write_all(&header)?;
        let mut record = Vec::with_capacity(record_size(self.ports, self.values));
        for ring in &self.streams {
            for frame in ring.first(self.slots)..ring.end {
                record.clear();
                ring.encode(ring.slot(frame), (self.ports, self.values), &mut record);
                out.write_all(&record)?;
            }
        }
        for value in self.pairs.data() {
            out.write_all(&value.to_le_bytes())?;
        }
        let Hashed { mut inner, hash } = out;
        inner.write_all(&hash.finalize())?;
        inner
            .into_inner()
            .map_err(io::IntoInnerError::into_error)?
            .sync_all()
    }

    /// Reads what [`Replay::save`] wrote of a replay that [`Replay::new`] made with this shape. The
    /// random draws continue where they stopped. Reads no more than such a
    /// replay can have.
    ///
    /// # Errors
    /// When the file cannot be read, is not exactly as `save` wrote it, or is of another replay.
    pub fn load(path: &Path, shape: ReplayShape) -> Result<Replay, ReplayError> {
        let record = record_size(shape.ports, shape.ports * shape.outputs);
        let records = product(&[shape.slots(), shape.streams, record]);
        let pairs = product(&[
            shape.pairs,
            pair_bytes((shape.ports, shape.ports * shape.outputs)),
        ]);
        let most = product(&[shape.streams, MAX_STREAM])
            .saturating_add(records)
            .saturating_add(pairs)
            .saturating_add(MAX_FRAME);
        let bytes = input::read(path, most).map_err(|error| ReplayError::Io {
            path: path.to_owned(),
            error,
        })?;
        let replay = parse(&bytes, shape);
        replay.map_err(|reason| ReplayError::Corrupt {
            path: path.to_owned(),
            reason: reason.into(),
        })
    }
}

fn product(factors: &[usize]) -> u64 {
    factors.iter().fold(1, |product: u64, &factor| {
        product.saturating_mul(u64::try_from(factor).unwrap_or(u64::MAX))
    })
}

/// Checks the whole file before anything is allocated by the numbers in it.
fn parse(bytes: &[u8], shape: ReplayShape) -> Result<Replay, &'static str> {
    let (body, digest) = bytes
        .len()
        .checked_sub(DIGEST)
        .map(|at| bytes.split_at(at))
        .ok_or("it is too short")?;
    let body = body
        .strip_prefix(MAGIC)
        .ok_or("it does not begin as a replay file does")?;
    let (version, body) = body.split_at_checked(4).ok_or("it is too short")?;
    if version != VERSION.to_le_bytes() {
        return Err("it has another version than 6");
    }
    if Sha256::digest(&bytes[..bytes.len() - DIGEST]).as_slice() != digest {
        return Err("its checksum does not match: it is truncated or altered");
    }
    let (length, body) = body.split_at_checked(4).ok_or("it is too short")?;
    let length = length
        .iter()
        .rev()
        .fold(0, |length, &byte| length << 8 | usize::from(byte));
    let (header, body) = body.split_at_checked(length).ok_or("it is too short")?;
    let header: Header =
        serde_json::from_slice(header).map_err(|_| "its header cannot be understood")?;
    let values = shape.ports * shape.outputs;
    let found = (
        header.slots,
        header.streams.len(),
        header.ports,
        header.values,
        header.pairs.0,
    );
    if found
        != (
            shape.slots(),
            shape.streams,
            shape.ports,
            values,
            shape.pairs,
        )
    {
        return Err("it is of a replay with other workers, ports, actions or capacity");
    }
    restore(&header, body)
}

/// Limit on ports, more than any scenario has.
const MAX_PORTS: usize = 1 << 16;

/// Limit on bytes of a stream, 1 TiB, more than any stream has.
const MAX_RECORDS: u64 = 1 << 40;

fn restore(header: &Header, body: &[u8]) -> Result<Replay, &'static str> {
    let Header {
        ports,
        values,
        slots,
        ..
    } = *header;
    let streams = header.streams.len();
    if [streams, ports, values, slots].contains(&0) {
        return Err("its header does not belong to its content");
    }
    let misfit = "its header does not belong to its content";
    let (pair_slots, pairs) = header.pairs;
    let frames = frames_of(header).and_then(|bytes| usize::try_from(bytes).ok());
    let (body, rest) = frames
        .and_then(|bytes| body.split_at_checked(bytes))
        .ok_or(misfit)?;
    let (words, odd) = rest.as_chunks::<4>();
    let data = words.iter().map(|word| f32::from_le_bytes(*word)).collect();
    let pairs = Pairs::restored(pair_slots, (ports, values), pairs, data)
        .filter(|_| odd.is_empty())
        .ok_or(misfit)?;
    let mut records = body.chunks_exact(record_size(ports, values));
    let mut streams = Vec::with_capacity(streams);
    let mut held = 0;
    for &(end, taken, open) in &header.streams {
        let mut ring = Stream {
            end,
            taken,
            open,
            ..Stream::new(slots, ports, values)
        };
        if open && end == 0 || taken > end {
            return Err("a stream is open or handed out that has not begun");
        }
        for (frame, record) in (ring.first(slots)..end).zip(&mut records) {
            let slot = ring.slot(frame);
            ring.decode(slot, (ports, values), record);
            held += usize::from(ring.outcomes[slot].flags & DECIDED != 0);
        }
        streams.push(ring);
    }
    Ok(Replay {
        ports,
        values,
        slots,
        streams,
        pairs,
        rng: header.rng.clone(),
        pushed: header.pushed,
        held,
    })
}

/// Returns the bytes of the frames that the header describes; `None` for numbers that no replay has, so that the sums
/// below fit.
fn frames_of(header: &Header) -> Option<u64> {
    if header.ports > MAX_PORTS || header.values > MAX_OUTPUTS * MAX_PORTS {
        return None;
    }
    let record = record_size(header.ports, header.values) as u64;
    let slots = header.slots as u64;
    slots
        .checked_mul(record)
        .filter(|bytes| *bytes <= MAX_RECORDS)?;
    let ends = header.streams.iter().map(|&(end, ..)| end.min(slots));
    ends.fold(0, u64::saturating_add).checked_mul(record)
}

/// Bytes of one frame and its decision.
fn record_size(ports: usize, values: usize) -> usize {
    4 * (ports * (FEATURES + PRIVILEGED + 1) + values) + 9
}

impl Stream {
    fn encode(&self, slot: usize, (ports, values): (usize, usize), out: &mut Vec<u8>) {
        let outcome = self.outcomes[slot];
        let parts = [
            &self.frames[slot * ports * FEATURES..][..ports * FEATURES],
            &self.privileged[slot * ports * PRIVILEGED..][..ports * PRIVILEGED],
            &self.rewards[slot * ports..][..ports],
            &self.raw[slot * values..][..values],
            &[outcome.discount],
        ];
        for value in parts.into_iter().flatten() {
            out.extend_from_slice(&value.to_le_bytes());
        }
        out.extend_from_slice(&outcome.position.to_le_bytes());
        out.push(outcome.flags);
    }

    /// # Panics
    /// When the record is shorter than [`record_size`].
    fn decode(&mut self, slot: usize, (ports, values): (usize, usize), record: &[u8]) {
        let (words, flags) = record.split_at(record.len() - 1);
        let mut words = words.as_chunks::<4>().0.iter();
        let mut discount = [0.0];
        let parts = [
            &mut self.frames[slot * ports * FEATURES..][..ports * FEATURES],
            &mut self.privileged[slot * ports * PRIVILEGED..][..ports * PRIVILEGED],
            &mut self.rewards[slot * ports..][..ports],
            &mut self.raw[slot * values..][..values],
            &mut discount,
        ];
        for (value, word) in parts.into_iter().flatten().zip(&mut words) {
            *value = f32::from_le_bytes(*word);
        }
        let [discount] = discount;
        let position = words.next().map_or(0, |word| u32::from_le_bytes(*word));
        self.outcomes[slot] = Outcome {
            discount,
            position,
            flags: flags[0],
        };
    }
}

/// A writer that also hashes the bytes written.
struct Hashed<W> {
    inner: W,
    hash: Sha256,
}

impl<W: Write> Write for Hashed<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let count = self.inner.write(bytes)?;
        self.hash.update(&bytes[..count]);
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}
