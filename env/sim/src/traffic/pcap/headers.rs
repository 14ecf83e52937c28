//! Reads the headers of a packet down to TCP or UDP.

#![warn(clippy::arithmetic_side_effects)]

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

use etherparse::{EtherType, IpNumber, Ipv6ExtensionSlice, LaxNetSlice, LaxSlicedPacket};

use super::container::Packet;

/// Largest number of fragmented packets that are remembered. Beyond that the oldest is forgotten.
const MAX_FRAGMENTED: usize = 4_096;
const TCP_SYN: u8 = 0x02;
const TCP_ACK: u8 = 0x10;
const UDP_HEADER: u32 = 8;
const TCP_HEADER: u32 = 20;

/// The first header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    Ethernet,
    Ip,
    /// Four bytes with the address family.
    Loopback,
    /// Linux cooked, version 1: 16 bytes, the last two the EtherType.
    Cooked,
    /// Linux cooked, version 2: 20 bytes, the first two the EtherType.
    Cooked2,
}

impl Link {
    /// Names for error messages.
    pub(super) const KNOWN: &str =
        "0 (null), 1 (Ethernet), 101 (raw IP), 108 (loop), 113 and 276 (Linux cooked)";

    /// By its number in capture files (<https://www.tcpdump.org/linktypes.html>). 12 and 14 are
    /// raw IP on BSD, 228 and 229 its two versions.
    pub(super) fn from_number(number: u32) -> Option<Link> {
        match number {
            1 => Some(Link::Ethernet),
            12 | 14 | 101 | 228 | 229 => Some(Link::Ip),
            0 | 108 => Some(Link::Loopback),
            113 => Some(Link::Cooked),
            276 => Some(Link::Cooked2),
            _ => None,
        }
    }
}

/// Addresses and ports of both ends, and the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Tuple {
    pub(super) src: IpAddr,
    pub(super) dst: IpAddr,
    pub(super) src_port: u16,
    pub(super) dst_port: u16,
    pub(super) udp: bool,
}

impl Tuple {
    /// The other direction.
    pub(super) fn reversed(self) -> Tuple {
        Tuple {
            src: self.dst,
            dst: self.src,
            src_port: self.dst_port,
            dst_port: self.src_port,
            udp: self.udp,
        }
    }
}

/// A TCP segment or UDP datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub(super) tuple: Tuple,
    /// Bytes of payload.
    pub(super) payload: u64,
    /// Sequence number of the first payload byte; without meaning for UDP.
    pub(super) seq: u32,
    pub(super) syn: bool,
    pub(super) ack: bool,
}

/// The result of reading a packet.
pub(super) enum Network {
    Segment(Segment),
    LinkType,
    NotIp,
    NotTcpOrUdp,
    CutOff,
    Malformed,
    Fragment,
}

/// Reads headers, and remembers the first fragments of packets.
#[derive(Default)]
pub(super) struct Headers {
    fragmented: HashMap<FragmentKey, Fragmented>,
    /// The keys of `fragmented`, oldest first.
    order: VecDeque<FragmentKey>,
}

type FragmentKey = (IpAddr, IpAddr, u32, IpNumber);

/// What the first fragment tells about the later ones.
#[derive(Clone, Copy)]
struct Fragmented {
    tuple: Tuple,
    /// Sequence number of the payload's first byte.
    seq: u32,
    header_bytes: u32,
}

/// The part of a packet behind the IP headers.
struct Datagram<'a> {
    src: IpAddr,
    dst: IpAddr,
    protocol: IpNumber,
    /// The captured bytes.
    data: &'a [u8],
    /// Its length on the wire.
    bytes: u64,
    fragment: Option<Fragment>,
}

struct Fragment {
    id: u32,
    /// Position of the fragment's data in the whole packet, bytes.
    offset: u32,
}

impl Headers {
    pub(super) fn read(&mut self, packet: &Packet<'_>) -> Network {
        let datagram = match Datagram::read(packet) {
            Ok(datagram) => datagram,
            Err(other) => return other,
        };
        if datagram.protocol != IpNumber::TCP && datagram.protocol != IpNumber::UDP {
            return Network::NotTcpOrUdp;
        }
        match &datagram.fragment {
            Some(fragment) if fragment.offset > 0 => self.later_fragment(&datagram, fragment),
            fragment => match datagram.segment() {
                Ok((segment, header_bytes)) => {
                    if let Some(fragment) = fragment {
                        let key = datagram.key(fragment);
                        self.remember(key, &segment, header_bytes);
                    }
                    Network::Segment(segment)
                }
                Err(other) => other,
            },
        }
    }

    fn remember(&mut self, key: FragmentKey, segment: &Segment, header_bytes: u32) {
        let first = Fragmented {
            tuple: segment.tuple,
            seq: segment.seq,
            header_bytes,
        };
        if self.fragmented.insert(key, first).is_none() {
            self.order.push_back(key);
        }
        if self.order.len() > MAX_FRAGMENTED
            && let Some(oldest) = self.order.pop_front()
        {
            self.fragmented.remove(&oldest);
        }
    }

    fn later_fragment(&self, datagram: &Datagram<'_>, fragment: &Fragment) -> Network {
        let Some(first) = self.fragmented.get(&datagram.key(fragment)) else {
            return Network::Fragment;
        };
        let Some(offset) = fragment.offset.checked_sub(first.header_bytes) else {
            return Network::Malformed;
        };
        Network::Segment(Segment {
            tuple: first.tuple,
            payload: datagram.bytes,
            seq: first.seq.wrapping_add(offset),
            syn: false,
            ack: true,
        })
    }
}

impl<'a> Datagram<'a> {
    fn read(packet: &Packet<'a>) -> Result<Datagram<'a>, Network> {
        let data = packet.data;
        let sliced = match packet.link.ok_or(Network::LinkType)? {
            Link::Ethernet => LaxSlicedPacket::from_ethernet(data).map_err(|_| Network::CutOff)?,
            Link::Ip => from_ip(data)?,
            Link::Loopback => from_ip(after_address_family(data)?)?,
            Link::Cooked => cooked(data, 14, 16)?,
            Link::Cooked2 => cooked(data, 0, 20)?,
        };
        let (stopped, net) = (sliced.stop_err.is_some(), sliced.net);
        // Bytes that were on the wire but cut off. They add to every length that follows from
        // `data`.
        let beyond = packet.wire_bytes.saturating_sub(data.len() as u64);
        let whole = |payload: &[u8]| (payload.len() as u64).saturating_add(beyond);
        match net {
            Some(LaxNetSlice::Ipv4(ip)) => {
                let header = ip.header();
                let header_bytes = header.slice().len() as u64;
                let extension = ip.extensions().auth.map_or(0, |auth| auth.slice().len());
                // Hosts that leave the segmentation to their interface write 0.
                let stated = u64::from(header.total_len()).checked_sub(header_bytes);
                let offset = u32::from(header.fragments_offset().value()) * 8;
                let fragmented = header.more_fragments() || offset > 0;
                Ok(Datagram {
                    src: header.source_addr().into(),
                    dst: header.destination_addr().into(),
                    protocol: ip.payload().ip_number,
                    data: ip.payload().payload,
                    bytes: stated.map_or(whole(ip.payload().payload), |stated| {
                        stated.saturating_sub(extension as u64)
                    }),
                    fragment: fragmented.then(|| Fragment {
                        id: u32::from(header.identification()),
                        offset,
                    }),
                })
            }
            Some(LaxNetSlice::Ipv6(ip)) => {
                let header = ip.header();
                let extensions = ip.extensions().slice().len() as u64;
                let bytes = match u64::from(header.payload_length()) {
                    0 => whole(ip.payload().payload),
                    stated => stated.saturating_sub(extensions),
                };
                let fragment = ip.extensions().clone().into_iter().find_map(|extension| {
                    let Ipv6ExtensionSlice::Fragment(header) = extension else {
                        return None;
                    };
                    header.is_fragmenting_payload().then(|| Fragment {
                        id: header.identification(),
                        offset: u32::from(header.fragment_offset().value()) * 8,
                    })
                });
                Ok(Datagram {
                    src: header.source_addr().into(),
                    dst: header.destination_addr().into(),
                    protocol: ip.payload().ip_number,
                    data: ip.payload().payload,
                    bytes,
                    fragment,
                })
            }
            Some(LaxNetSlice::Arp(_)) => Err(Network::NotIp),
            None if stopped => Err(cut_or_malformed(packet)),
            None => Err(Network::NotIp),
        }
    }

    fn key(&self, fragment: &Fragment) -> FragmentKey {
        (self.src, self.dst, fragment.id, self.protocol)
    }

    /// The segment and the length of its header. Only the needed part of the header is read,
    /// because captures are often cut off within the options of TCP.
    fn segment(&self) -> Result<(Segment, u32), Network> {
        let udp = self.protocol == IpNumber::UDP;
        let needed = if udp { 4 } else { 14 };
        let Some(header) = self.data.get(..needed) else {
            let minimum = if udp { UDP_HEADER } else { TCP_HEADER };
            return Err(if self.bytes < u64::from(minimum) {
                Network::Malformed
            } else {
                Network::CutOff
            });
        };
        let src_port = u16::from_be_bytes([header[0], header[1]]);
        let dst_port = u16::from_be_bytes([header[2], header[3]]);
        let (header_bytes, seq, flags) = if udp {
            (UDP_HEADER, 0, 0)
        } else {
            let seq = u32::from_be_bytes([header[4], header[5], header[6], header[7]]);
            (u32::from(header[12] >> 4) * 4, seq, header[13])
        };
        let minimum = if udp { UDP_HEADER } else { TCP_HEADER };
        let payload = self.bytes.checked_sub(u64::from(header_bytes));
        let Some(payload) = payload.filter(|_| header_bytes >= minimum) else {
            return Err(Network::Malformed);
        };
        let syn = flags & TCP_SYN != 0;
        let segment = Segment {
            tuple: Tuple {
                src: self.src,
                dst: self.dst,
                src_port,
                dst_port,
                udp,
            },
            payload,
            // A SYN takes one sequence number.
            seq: seq.wrapping_add(u32::from(syn)),
            syn,
            ack: flags & TCP_ACK != 0,
        };
        Ok((segment, header_bytes))
    }
}

fn from_ip(data: &[u8]) -> Result<LaxSlicedPacket<'_>, Network> {
    match data.first().map(|byte| byte >> 4) {
        None => Err(Network::CutOff),
        Some(4 | 6) => LaxSlicedPacket::from_ip(data).map_err(|_| {
            let shortest = if data[0] >> 4 == 4 { 20 } else { 40 };
            if data.len() < shortest {
                Network::CutOff
            } else {
                Network::Malformed
            }
        }),
        Some(_) => Err(Network::NotIp),
    }
}

/// The address family is in the byte order of the host: 2 for IPv4, and one of several for IPv6.
fn after_address_family(data: &[u8]) -> Result<&[u8], Network> {
    let (family, rest) = data.split_first_chunk::<4>().ok_or(Network::CutOff)?;
    let family = u32::from_le_bytes(*family).min(u32::from_be_bytes(*family));
    if matches!(family, 2 | 10 | 24 | 28 | 30) {
        Ok(rest)
    } else {
        Err(Network::NotIp)
    }
}

fn cooked(data: &[u8], ether_type: usize, header: usize) -> Result<LaxSlicedPacket<'_>, Network> {
    let kind = data.get(ether_type..).and_then(<[u8]>::first_chunk);
    let (Some(rest), Some(kind)) = (data.get(header..), kind) else {
        return Err(Network::CutOff);
    };
    let number = u16::from_be_bytes(*kind);
    Ok(LaxSlicedPacket::from_ether_type(EtherType(number), rest))
}

fn cut_or_malformed(packet: &Packet<'_>) -> Network {
    if (packet.data.len() as u64) < packet.wire_bytes {
        Network::CutOff
    } else {
        Network::Malformed
    }
}
