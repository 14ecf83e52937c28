//! Segments and datagrams that are read from packets of a capture.

use std::hash::Hasher as _;
use std::net::IpAddr;

use rustc_hash::FxHasher;

/// Payload bytes that are compared even where the rest was cut off.
pub(super) const START: usize = 16;

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

    /// Returns the type with this number in capture files (<https://www.tcpdump.org/linktypes.html>).
    /// 12 and 14 are raw IP on BSD, 228 and 229 its two versions.
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
    /// Returns the tuple of the other direction.
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
    /// Content of the packet, for UDP only.
    pub(super) content: Option<Content>,
}

/// Properties that distinguish a UDP packet from others of its flow. Routers do not change them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Content {
    /// Identification in the IP header. `None` if it does not identify the packet: IPv6 has none, and
    /// many senders write 0.
    pub(super) id: Option<u32>,
    /// Position of the fragment in the packet.
    pub(super) offset: u32,
    pub(super) start: [u8; START],
    /// Bytes of payload that were captured.
    pub(super) captured: usize,
    hash: u64,
}

impl Content {
    pub(super) fn new(id: Option<u32>, offset: u32, payload: &[u8]) -> Content {
        let mut start = [0; START];
        let length = payload.len().min(START);
        start[..length].copy_from_slice(&payload[..length]);
        let mut hasher = FxHasher::default();
        hasher.write(payload);
        Content {
            id,
            offset,
            start,
            captured: payload.len(),
            hash: hasher.finish(),
        }
    }

    /// Returns true if both were captured with the same payload, as far as they were captured.
    pub(super) fn fits(&self, other: &Content) -> bool {
        if self.captured == other.captured {
            return self.hash == other.hash;
        }
        let common = self.captured.min(other.captured).min(START);
        self.start[..common] == other.start[..common]
    }
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
    /// A later fragment of a tunnel's packet. The first has given the length of the inner packet.
    RestOfTunnel,
}
