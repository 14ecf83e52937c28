//! Packet captures in the classic pcap format with nanosecond timestamps.

use std::io::{self, Write};

/// Magic number of captures with times in nanoseconds.
const MAGIC: u32 = 0xa1b2_3c4d;
/// Maximum length of a stored frame, bytes.
const SNAP_LENGTH: u32 = 65_535;
/// Link type: Ethernet.
const LINK_TYPE: u32 = 1;

/// Writes frames to a capture (draft-ietf-opsawg-pcap).
#[derive(Debug)]
pub struct PcapWriter<W> {
    out: W,
}

impl<W: Write> PcapWriter<W> {
    /// Writes the header of the file.
    ///
    /// # Errors
    /// When `out` fails.
    pub fn new(out: W) -> io::Result<PcapWriter<W>> {
        let (writer, result) = PcapWriter::started(out);
        result.map(|()| writer)
    }

    fn begin(&mut self) -> io::Result<()> {
        self.out.write_all(&MAGIC.to_le_bytes())?;
        for version in [2_u16, 4] {
            self.out.write_all(&version.to_le_bytes())?;
        }
        // Time zone and accuracy are not used.
        for word in [0, 0, SNAP_LENGTH, LINK_TYPE] {
            self.out.write_all(&word.to_le_bytes())?;
        }
        Ok(())
    }

    /// Like [`new`](PcapWriter::new), but returns the writer also on failure, for callers that check the result
    /// later.
    pub(super) fn started(out: W) -> (PcapWriter<W>, io::Result<()>) {
        let mut writer = PcapWriter { out };
        let result = writer.begin();
        (writer, result)
    }

    /// Writes a frame of `length` bytes that arrived at `at_ns`; `frame` is all of it or its beginning.
    ///
    /// # Errors
    /// When `out` fails, or the time or a length does not fit into 32 bits.
    pub fn write(&mut self, at_ns: u64, frame: &[u8], length: usize) -> io::Result<()> {
        let kept = u32::try_from(frame.len()).map_err(io::Error::other)?;
        let length = u32::try_from(length).map_err(io::Error::other)?;
        let parts = [at_ns / 1_000_000_000, at_ns % 1_000_000_000];
        for part in parts {
            let part = u32::try_from(part).map_err(io::Error::other)?;
            self.out.write_all(&part.to_le_bytes())?;
        }
        for bytes in [kept, length] {
            self.out.write_all(&bytes.to_le_bytes())?;
        }
        self.out.write_all(frame)
    }

    /// Writes the data that is still buffered.
    ///
    /// # Errors
    /// When the output fails.
    pub fn finish(mut self) -> io::Result<()> {
        self.out.flush()
    }
}
