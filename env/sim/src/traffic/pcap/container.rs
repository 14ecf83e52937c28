//! The records of a capture file: pcap and pcapng.

use std::io::{self, Read};

use pcap_parser::nom;
use pcap_parser::pcapng::{Block, InterfaceDescriptionBlock, OptionCode};
use pcap_parser::{
    LegacyPcapBlock, PcapError, PcapHeader, parse_block_be, parse_block_le, parse_pcap_frame,
    parse_pcap_frame_be, parse_pcap_frame_modified, parse_pcap_header,
};

use super::CaptureError;
use super::headers::Link;

/// Largest size of a record, bytes. A larger one means a damaged file, so no memory is allocated
/// for it.
const MAX_RECORD: usize = 64 << 20;
/// Most interfaces of a section.
const MAX_INTERFACES: usize = 65_536;
/// Type of a block that starts a section of a pcapng file. It is the same in both byte orders.
const SECTION: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
/// The magic number of a section, as stored in big-endian order.
const BIG_ENDIAN_SECTION: [u8; 4] = [0x1a, 0x2b, 0x3c, 0x4d];

/// A packet as captured.
pub(super) struct Packet<'a> {
    /// Time of the packet; `None` where the capture does not give it.
    pub(super) time_ns: Option<i128>,
    /// The first header; `None` for a link type that is not read.
    pub(super) link: Option<Link>,
    /// The bytes that were kept.
    pub(super) data: &'a [u8],
    /// Its length on the wire, bytes.
    pub(super) wire_bytes: u64,
}

/// A file being read.
pub(super) struct Container<R> {
    reader: R,
    origin: String,
    /// The record being read.
    record: Vec<u8>,
    /// Where it starts in the file.
    offset: u64,
    packets: u64,
    format: Format,
}

enum Format {
    Pcap { header: PcapHeader, link: Link },
    PcapNg(Section),
}

/// The state of a section of a pcapng file.
#[derive(Default)]
struct Section {
    big_endian: bool,
    interfaces: Vec<Interface>,
}

struct Interface {
    link: Option<Link>,
    ticks_per_second: u128,
    offset_s: i64,
}

type PcapParser = fn(&[u8]) -> nom::IResult<&[u8], LegacyPcapBlock<'_>, PcapError<&[u8]>>;

impl<R: Read> Container<R> {
    /// Reads the start of the file.
    pub(super) fn open(reader: R, origin: &str) -> Result<Container<R>, CaptureError> {
        let mut container = Container {
            reader,
            origin: origin.to_owned(),
            record: Vec::new(),
            offset: 0,
            packets: 0,
            format: Format::PcapNg(Section::default()),
        };
        container.fill(4)?;
        if container.record == SECTION {
            return Ok(container);
        }
        container.fill(PcapHeader::new().size())?;
        let header = match parse_pcap_header(&container.record) {
            Ok((_, header)) => header,
            Err(nom::Err::Incomplete(_)) if container.record.len() >= 4 => {
                return Err(container.damaged("the file ends within its header".to_owned()));
            }
            Err(_) => return Err(container.not_a_capture()),
        };
        // The upper bits may hold the length of the frame check sequence.
        let number = header.network.0.cast_unsigned() & 0xffff;
        let link = Link::from_number(number).ok_or_else(|| CaptureError::NotACapture {
            origin: container.origin.clone(),
            problem: format!(
                "link type {number} is not read; it must be one of {}",
                Link::KNOWN
            ),
        })?;
        container.offset = container.record.len() as u64;
        container.record.clear();
        container.format = Format::Pcap { header, link };
        Ok(container)
    }

    /// Packets read so far.
    pub(super) fn packets(&self) -> u64 {
        self.packets
    }

    /// The next packet; `None` at the end of the file.
    pub(super) fn next_packet(&mut self) -> Result<Option<Packet<'_>>, CaptureError> {
        match self.format {
            Format::Pcap { .. } => self.next_pcap(),
            Format::PcapNg(_) => self.next_pcapng(),
        }
    }

    fn next_pcap(&mut self) -> Result<Option<Packet<'_>>, CaptureError> {
        self.begin_record();
        let Format::Pcap { header, link } = &self.format else {
            return Ok(None);
        };
        let (link, nanoseconds) = (*link, header.is_nanosecond_precision());
        let parse: PcapParser = match (header.is_modified_format(), header.is_bigendian()) {
            (true, _) => parse_pcap_frame_modified,
            (false, true) => parse_pcap_frame_be,
            (false, false) => parse_pcap_frame,
        };
        self.fill(if header.is_modified_format() { 24 } else { 16 })?;
        if self.record.is_empty() {
            return Ok(None);
        }
        while let Err(error) = parse(&self.record) {
            let nom::Err::Incomplete(nom::Needed::Size(missing)) = error else {
                return Err(self.damaged("this is not a packet".to_owned()));
            };
            let length = self.record.len().saturating_add(missing.get());
            self.complete(length)?;
        }
        self.packets += 1;
        let Ok((_, block)) = parse(&self.record) else {
            return Ok(None);
        };
        let fraction = i128::from(block.ts_usec) * if nanoseconds { 1 } else { 1_000 };
        Ok(Some(Packet {
            time_ns: Some(i128::from(block.ts_sec) * 1_000_000_000 + fraction),
            link: Some(link),
            data: block.data,
            wire_bytes: u64::from(block.origlen),
        }))
    }

    fn next_pcapng(&mut self) -> Result<Option<Packet<'_>>, CaptureError> {
        while self.next_block()? {
            let Format::PcapNg(section) = &mut self.format else {
                break;
            };
            let problem = match parse_block(section.big_endian, &self.record) {
                Err(_) => Some("this is not a valid block".to_owned()),
                Ok(Block::SectionHeader(block)) => {
                    *section = Section {
                        big_endian: block.big_endian(),
                        interfaces: Vec::new(),
                    };
                    None
                }
                Ok(Block::InterfaceDescription(block)) => {
                    let interface = Interface::new(&block, section.big_endian);
                    section.interfaces.push(interface);
                    (section.interfaces.len() > MAX_INTERFACES)
                        .then(|| format!("more than {MAX_INTERFACES} interfaces in a section"))
                }
                Ok(Block::EnhancedPacket(block)) => {
                    let number = block.if_id;
                    if section.interfaces.get(number as usize).is_some() {
                        break;
                    }
                    Some(format!(
                        "a packet on interface {number}, which is not described before it"
                    ))
                }
                Ok(Block::SimplePacket(_)) => break,
                Ok(_) => None,
            };
            if let Some(problem) = problem {
                return Err(self.damaged(problem));
            }
        }
        Ok(self.packet_in_block())
    }

    /// The packet of the block that was read last; `None` after the end of the file.
    fn packet_in_block(&mut self) -> Option<Packet<'_>> {
        let Format::PcapNg(section) = &self.format else {
            return None;
        };
        let Ok(block) = parse_block(section.big_endian, &self.record) else {
            return None;
        };
        let packet = match block {
            Block::EnhancedPacket(block) => {
                let interface = section.interfaces.get(block.if_id as usize)?;
                let ticks = u64::from(block.ts_high) << 32 | u64::from(block.ts_low);
                Packet {
                    time_ns: Some(interface.time_ns(ticks)),
                    link: interface.link,
                    data: captured(block.data, block.caplen),
                    wire_bytes: u64::from(block.origlen),
                }
            }
            Block::SimplePacket(block) => Packet {
                time_ns: None,
                link: section.interfaces.first().and_then(|first| first.link),
                data: captured(block.data, block.origlen),
                wire_bytes: u64::from(block.origlen),
            },
            _ => return None,
        };
        self.packets += 1;
        Some(packet)
    }

    /// Reads the next block of a pcapng file; false at the end.
    fn next_block(&mut self) -> Result<bool, CaptureError> {
        // Opening has read the first four bytes.
        if self.offset > 0 || self.record.len() != SECTION.len() {
            self.begin_record();
        }
        self.fill(12)?;
        if self.record.is_empty() {
            return Ok(false);
        }
        self.complete(12)?;
        let Format::PcapNg(section) = &self.format else {
            return Ok(false);
        };
        let big_endian = if self.record[..4] == SECTION {
            self.record[8..12] == BIG_ENDIAN_SECTION
        } else {
            section.big_endian
        };
        let length = word(&self.record[4..8], big_endian);
        if length < 12 || !length.is_multiple_of(4) {
            return Err(self.damaged(format!(
                "a block of {length} bytes; a length must be at least 12 and a multiple of 4"
            )));
        }
        self.complete(length as usize)?;
        Ok(true)
    }

    fn begin_record(&mut self) {
        self.offset += self.record.len() as u64;
        self.record.clear();
    }

    /// Reads until the record has `length` bytes or the file ends.
    fn fill(&mut self, length: usize) -> Result<(), CaptureError> {
        let missing = length.saturating_sub(self.record.len()) as u64;
        let mut part = (&mut self.reader).take(missing);
        part.read_to_end(&mut self.record)
            .map(drop)
            .map_err(|source| self.io(source))
    }

    /// Reads until the record has `length` bytes.
    fn complete(&mut self, length: usize) -> Result<(), CaptureError> {
        if length > MAX_RECORD {
            return Err(self.damaged(format!(
                "a record of {length} bytes; at most {MAX_RECORD} are plausible"
            )));
        }
        self.fill(length)?;
        if self.record.len() < length {
            return Err(self.damaged(format!(
                "the file ends within a record, {} bytes early; was it copied whole?",
                length - self.record.len()
            )));
        }
        Ok(())
    }

    fn io(&self, source: io::Error) -> CaptureError {
        CaptureError::Io {
            path: self.origin.clone().into(),
            source,
        }
    }

    fn damaged(&self, problem: String) -> CaptureError {
        CaptureError::Damaged {
            origin: self.origin.clone(),
            offset: self.offset,
            packets: self.packets,
            problem,
        }
    }

    fn not_a_capture(&self) -> CaptureError {
        let problem = match self.record.as_slice() {
            [] => "the file is empty".to_owned(),
            [0x1f, 0x8b, ..] => "it is compressed by gzip; unpack it first".to_owned(),
            [0x28, 0xb5, 0x2f, 0xfd, ..] => "it is compressed by zstd; unpack it first".to_owned(),
            start => format!(
                "it starts with {:02x?}; expected pcap or pcapng, as tcpdump and Wireshark write",
                &start[..start.len().min(4)]
            ),
        };
        CaptureError::NotACapture {
            origin: self.origin.clone(),
            problem,
        }
    }
}

impl Interface {
    fn new(block: &InterfaceDescriptionBlock<'_>, big_endian: bool) -> Interface {
        // The library knows neither powers of two nor big-endian offsets.
        let exponent = u32::from(block.if_tsresol & 0x7f);
        let ticks_per_second = if block.if_tsresol & 0x80 == 0 {
            10_u128.checked_pow(exponent)
        } else {
            1_u128.checked_shl(exponent)
        };
        let offset = block
            .options
            .iter()
            .find(|option| option.code == OptionCode::IfTsoffset)
            .and_then(|option| option.value.get(..8)?.try_into().ok());
        Interface {
            link: Link::from_number(block.linktype.0.cast_unsigned()),
            ticks_per_second: ticks_per_second.unwrap_or(u128::MAX),
            offset_s: offset.map_or(0, |bytes| match big_endian {
                true => i64::from_be_bytes(bytes),
                false => i64::from_le_bytes(bytes),
            }),
        }
    }

    fn time_ns(&self, ticks: u64) -> i128 {
        // At most 2^64 · 10^9, well within 128 bits with a sign; so is the offset.
        let elapsed = u128::from(ticks) * 1_000_000_000 / self.ticks_per_second;
        elapsed.cast_signed() + i128::from(self.offset_s) * 1_000_000_000
    }
}

fn parse_block(big_endian: bool, record: &[u8]) -> Result<Block<'_>, ()> {
    let parse = if big_endian {
        parse_block_be
    } else {
        parse_block_le
    };
    // A block is incomplete if its parts are longer than the whole.
    parse(record).map(|(_, block)| block).map_err(drop)
}

/// Without the padding.
fn captured(data: &[u8], length: u32) -> &[u8] {
    &data[..data.len().min(length as usize)]
}

fn word(bytes: &[u8], big_endian: bool) -> u32 {
    let bytes = [bytes[0], bytes[1], bytes[2], bytes[3]];
    if big_endian {
        u32::from_be_bytes(bytes)
    } else {
        u32::from_le_bytes(bytes)
    }
}
