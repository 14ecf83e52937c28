//! The records of a capture file: pcap and pcapng.

use std::collections::BTreeMap;
use std::io::{self, Read};

use pcap_parser::nom;
use pcap_parser::pcapng::{Block, InterfaceDescriptionBlock, OptionCode};
use pcap_parser::{
    LegacyPcapBlock, PcapError, PcapHeader, parse_block_be, parse_block_le, parse_pcap_frame,
    parse_pcap_frame_be, parse_pcap_frame_modified, parse_pcap_header,
};

use super::CaptureError;
use super::segment::Link;

/// Largest size of a record, bytes. A larger one means a damaged file, so no memory is allocated
/// for it.
const MAX_RECORD: usize = 64 << 20;
/// Most interfaces of a section.
const MAX_INTERFACES: usize = 65_536;
/// Type of a block that starts a section of a pcapng file. It is the same in both byte orders.
const SECTION: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];
/// Type of a Packet Block. Later drafts replace it with an Enhanced Packet Block, but require that it
/// can still be read.
const PACKET_BLOCK: u32 = 2;
/// Most types of blocks that are counted separately.
const MAX_TYPES: usize = 64;
/// The magic number of a section, as stored in big-endian order.
const BIG_ENDIAN_SECTION: [u8; 4] = [0x1a, 0x2b, 0x3c, 0x4d];

/// A packet as captured.
pub(super) struct Packet<'a> {
    /// Time of the packet; `None` if the capture does not give it.
    pub(super) time_ns: Option<i128>,
    /// The first header; `None` for a link type that is not read.
    pub(super) link: Option<Link>,
    /// The bytes that were kept.
    pub(super) data: &'a [u8],
    /// Length of the packet on the wire, bytes.
    pub(super) wire_bytes: u64,
}

/// A file being read.
pub(super) struct Container<R> {
    reader: R,
    origin: String,
    /// The record being read.
    record: Vec<u8>,
    /// Position of the record's start in the file.
    offset: u64,
    packets: u64,
    /// True if a file that ends within a record counts as one that ends before it.
    truncated: bool,
    cut_short: bool,
    /// Blocks that were skipped, by their type.
    passed: BTreeMap<u32, u64>,
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
    pub(super) fn open(
        reader: R,
        origin: &str,
        truncated: bool,
    ) -> Result<Container<R>, CaptureError> {
        let mut container = Container {
            reader,
            origin: origin.to_owned(),
            record: Vec::new(),
            offset: 0,
            packets: 0,
            truncated,
            cut_short: false,
            passed: BTreeMap::new(),
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

    /// Returns the number of packets read so far.
    pub(super) fn packets(&self) -> u64 {
        self.packets
    }

    /// Returns true if the file has ended within a record.
    pub(super) fn is_cut_short(&self) -> bool {
        self.cut_short
    }

    /// Returns the blocks that were skipped: the type's name, and the number.
    pub(super) fn passed(&self) -> BTreeMap<String, u64> {
        let mut named = BTreeMap::new();
        for (kind, count) in &self.passed {
            *named.entry(block_name(*kind)).or_insert(0) += count;
        }
        named
    }

    /// Returns the next packet; `None` at the end of the file.
    pub(super) fn next_packet(&mut self) -> Result<Option<Packet<'_>>, CaptureError> {
        let found = match self.format {
            Format::Pcap { .. } => self.next_pcap(),
            Format::PcapNg(_) => self.next_pcapng(),
        };
        match found {
            Ok(true) => {}
            Ok(false) => return Ok(None),
            Err(CaptureError::CutShort { .. }) if self.truncated => {
                self.cut_short = true;
                return Ok(None);
            }
            Err(error) => return Err(error),
        }
        self.packets += 1;
        Ok(match &self.format {
            Format::Pcap { header, link } => packet_of_pcap(header, *link, &self.record),
            Format::PcapNg(section) => section.packet(&self.record),
        })
    }

    /// Reads the next packet of a pcap file; false at the end.
    fn next_pcap(&mut self) -> Result<bool, CaptureError> {
        self.begin_record();
        let Format::Pcap { header, .. } = &self.format else {
            return Ok(false);
        };
        let parse = pcap_parser(header);
        self.fill(if header.is_modified_format() { 24 } else { 16 })?;
        if self.record.is_empty() {
            return Ok(false);
        }
        while let Err(error) = parse(&self.record) {
            let nom::Err::Incomplete(nom::Needed::Size(missing)) = error else {
                return Err(self.damaged("this is not a packet".to_owned()));
            };
            let length = self.record.len().saturating_add(missing.get());
            self.complete(length)?;
        }
        Ok(true)
    }

    /// Reads blocks of a pcapng file up to one with a packet; false at the end.
    fn next_pcapng(&mut self) -> Result<bool, CaptureError> {
        while self.next_block()? {
            let Format::PcapNg(section) = &mut self.format else {
                break;
            };
            let on_interface = |section: &Section, number: u32| {
                let is_known = (number as usize) < section.interfaces.len();
                (!is_known).then(|| {
                    format!("a packet on interface {number}, which is not described before it")
                })
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
                Ok(Block::EnhancedPacket(block)) => match on_interface(section, block.if_id) {
                    None => return Ok(true),
                    problem => problem,
                },
                Ok(Block::SimplePacket(_)) => return Ok(true),
                // The library does not swap the bytes of the type.
                Ok(Block::Unknown(block))
                    if word(&self.record[..4], section.big_endian) == PACKET_BLOCK =>
                {
                    match PacketBlock::read(block.data, section.big_endian) {
                        None => Some("this is not a valid packet block".to_owned()),
                        Some(packet) => match on_interface(section, packet.interface) {
                            None => return Ok(true),
                            problem => problem,
                        },
                    }
                }
                Ok(_) => {
                    let kind = word(&self.record[..4], section.big_endian);
                    if self.passed.len() < MAX_TYPES || self.passed.contains_key(&kind) {
                        *self.passed.entry(kind).or_insert(0) += 1;
                    } else {
                        *self.passed.entry(u32::MAX).or_insert(0) += 1;
                    }
                    None
                }
            };
            if let Some(problem) = problem {
                return Err(self.damaged(problem));
            }
        }
        Ok(false)
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
            return Err(CaptureError::CutShort {
                origin: self.origin.clone(),
                offset: self.offset,
                packets: self.packets,
                missing: length - self.record.len(),
            });
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

    fn time_ns(&self, ticks_high: u32, ticks_low: u32) -> i128 {
        let ticks = u64::from(ticks_high) << 32 | u64::from(ticks_low);
        // At most 2^64 · 10^9, well within 128 bits with a sign; so is the offset.
        let elapsed = u128::from(ticks) * 1_000_000_000 / self.ticks_per_second;
        elapsed.cast_signed() + i128::from(self.offset_s) * 1_000_000_000
    }
}

impl Section {
    /// Returns the packet of a block that is known to have one.
    fn packet<'a>(&self, record: &'a [u8]) -> Option<Packet<'a>> {
        Some(match parse_block(self.big_endian, record).ok()? {
            Block::EnhancedPacket(block) => {
                let interface = self.interfaces.get(block.if_id as usize)?;
                Packet {
                    time_ns: Some(interface.time_ns(block.ts_high, block.ts_low)),
                    link: interface.link,
                    data: captured(block.data, block.caplen),
                    wire_bytes: u64::from(block.origlen),
                }
            }
            Block::SimplePacket(block) => Packet {
                time_ns: None,
                link: self.interfaces.first().and_then(|first| first.link),
                data: captured(block.data, block.origlen),
                wire_bytes: u64::from(block.origlen),
            },
            Block::Unknown(block) => {
                let block = PacketBlock::read(block.data, self.big_endian)?;
                let interface = self.interfaces.get(block.interface as usize)?;
                let [high, low] = block.ticks;
                Packet {
                    time_ns: Some(interface.time_ns(high, low)),
                    link: interface.link,
                    data: block.data,
                    wire_bytes: u64::from(block.wire_bytes),
                }
            }
            _ => return None,
        })
    }
}

/// The content of a Packet Block: number of the interface and of lost packets, 16 bits each, time, the two
/// lengths, the packet, padding and options.
struct PacketBlock<'a> {
    interface: u32,
    /// Upper and lower half.
    ticks: [u32; 2],
    wire_bytes: u32,
    data: &'a [u8],
}

impl PacketBlock<'_> {
    fn read(content: &[u8], big_endian: bool) -> Option<PacketBlock<'_>> {
        let (header, rest) = content.split_at_checked(20)?;
        let interface = [header[0], header[1]];
        let word = |place: usize| word(&header[place..], big_endian);
        Some(PacketBlock {
            interface: u32::from(match big_endian {
                true => u16::from_be_bytes(interface),
                false => u16::from_le_bytes(interface),
            }),
            ticks: [word(4), word(8)],
            wire_bytes: word(16),
            data: rest.get(..word(12) as usize)?,
        })
    }
}

/// Returns the name of a type of block (draft-ietf-opsawg-pcapng, section 11.1).
fn block_name(kind: u32) -> String {
    match kind {
        4 => "name resolution".to_owned(),
        5 => "interface statistics".to_owned(),
        9 => "systemd journal".to_owned(),
        10 => "decryption secrets".to_owned(),
        0xbad | 0x4000_0bad => "custom".to_owned(),
        u32::MAX => "other types".to_owned(),
        _ => format!("type {kind:#x}"),
    }
}

fn pcap_parser(header: &PcapHeader) -> PcapParser {
    match (header.is_modified_format(), header.is_bigendian()) {
        (true, _) => parse_pcap_frame_modified,
        (false, true) => parse_pcap_frame_be,
        (false, false) => parse_pcap_frame,
    }
}

/// Returns the packet of a record of a pcap file.
fn packet_of_pcap<'a>(header: &PcapHeader, link: Link, record: &'a [u8]) -> Option<Packet<'a>> {
    let (_, block) = pcap_parser(header)(record).ok()?;
    let unit = match header.is_nanosecond_precision() {
        true => 1,
        false => 1_000,
    };
    Some(Packet {
        time_ns: Some(i128::from(block.ts_sec) * 1_000_000_000 + i128::from(block.ts_usec) * unit),
        link: Some(link),
        data: block.data,
        wire_bytes: u64::from(block.origlen),
    })
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

/// Returns the data without the padding.
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
