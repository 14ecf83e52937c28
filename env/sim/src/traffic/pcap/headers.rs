//! Reads the headers of a packet down to TCP or UDP.

#![warn(clippy::arithmetic_side_effects)]

use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::net::IpAddr;

use etherparse::{EtherType, IpNumber, Ipv6ExtensionSlice, LaxNetSlice, LaxSlicedPacket};
use serde::Serialize;

use super::container::Packet;
use super::segment::{Content, Link, Network, Segment, Tuple};
use super::tunnel::{self, First, Layer, Tunnel};

/// Largest number of fragmented packets that are remembered. Beyond that the oldest is forgotten.
const MAX_FRAGMENTED: usize = 4_096;
/// Most layers of a packet: tunnels within tunnels, and tags of virtual networks beyond three.
const MAX_LAYERS: usize = 16;
const TCP_SYN: u8 = 0x02;
const TCP_ACK: u8 = 0x10;
const UDP_HEADER: u32 = 8;
const TCP_HEADER: u32 = 20;

/// Packets of flows that have passed tunnels, by the tunnels' protocol.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Tunnels {
    /// VXLAN (RFC 7348).
    pub vxlan: u64,
    /// GENEVE (RFC 8926).
    pub geneve: u64,
    /// GRE (RFC 2784), NVGRE (RFC 7637) included.
    pub gre: u64,
    /// ERSPAN of types I to III, in GRE.
    pub erspan: u64,
    /// IPv4 and IPv6 in one another (RFC 2003, RFC 4213, RFC 2473).
    pub ip_in_ip: u64,
    /// MPLS (RFC 3032), pseudowires of Ethernet included.
    pub mpls: u64,
    /// PPPoE (RFC 2516).
    pub pppoe: u64,
}

impl Tunnels {
    fn count(&mut self, tunnel: Tunnel) {
        let count = match tunnel {
            Tunnel::Vxlan => &mut self.vxlan,
            Tunnel::Geneve => &mut self.geneve,
            Tunnel::Gre => &mut self.gre,
            Tunnel::Erspan => &mut self.erspan,
            Tunnel::IpInIp => &mut self.ip_in_ip,
            Tunnel::Mpls => &mut self.mpls,
            Tunnel::Pppoe => &mut self.pppoe,
        };
        *count = count.saturating_add(1);
    }

    /// True if there are tunnels whose ends have IP addresses of their own.
    pub fn have_ends(&self) -> bool {
        let counts = [
            self.vxlan,
            self.geneve,
            self.gre,
            self.erspan,
            self.ip_in_ip,
        ];
        counts.iter().any(|count| *count > 0)
    }
}

impl fmt::Display for Tunnels {
    /// The protocols that occurred and in how many packets; empty without tunnels.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let counts = [
            (self.vxlan, "VXLAN"),
            (self.geneve, "GENEVE"),
            (self.gre, "GRE"),
            (self.erspan, "ERSPAN"),
            (self.ip_in_ip, "IP in IP"),
            (self.mpls, "MPLS"),
            (self.pppoe, "PPPoE"),
        ];
        let found = counts.into_iter().filter(|(count, _)| *count > 0);
        let found: Vec<_> = found
            .map(|(count, name)| format!("{count} in {name}"))
            .collect();
        f.write_str(&found.join(", "))
    }
}

/// Reads headers, and remembers the first fragments of packets.
pub(super) struct Headers {
    /// True to take the outermost IP header; else the innermost counts.
    outer: bool,
    /// Packets of flows that have passed tunnels of each kind.
    tunnels: Tunnels,
    fragmented: HashMap<FragmentKey, FirstFragment>,
    /// The keys of `fragmented`, oldest first.
    order: VecDeque<FragmentKey>,
}

type FragmentKey = (IpAddr, IpAddr, u32, IpNumber);

/// Data of the first fragment that later ones need.
#[derive(Clone, Copy)]
enum FirstFragment {
    Segment {
        tuple: Tuple,
        /// Sequence number of the payload's first byte.
        seq: u32,
        header_bytes: u32,
    },
    Tunnel,
}

/// The part of a packet behind the IP headers.
struct Datagram<'a> {
    src: IpAddr,
    dst: IpAddr,
    protocol: IpNumber,
    /// The captured bytes.
    data: &'a [u8],
    /// Length of the part on the wire.
    bytes: u64,
    /// Identification in the header of IPv4.
    id: Option<u32>,
    fragment: Option<Fragment>,
}

struct Fragment {
    id: u32,
    /// Position of the fragment's data in the whole packet, bytes.
    offset: u32,
}

/// Next step after the headers of a layer.
enum Next<'a> {
    Datagram(Datagram<'a>),
    Layer(Option<Tunnel>, Layer<'a>),
}

impl Headers {
    pub(super) fn new(outer: bool) -> Headers {
        Headers {
            outer,
            tunnels: Tunnels::default(),
            fragmented: HashMap::new(),
            order: VecDeque::new(),
        }
    }

    /// Returns the packets of flows that have passed tunnels.
    pub(super) fn tunnels(&self) -> Tunnels {
        self.tunnels
    }

    pub(super) fn read(&mut self, packet: &Packet<'_>) -> Network {
        self.descend(packet).unwrap_or_else(|other| other)
    }

    /// Goes through the headers of tunnels to the IP header whose flow counts.
    fn descend(&mut self, packet: &Packet<'_>) -> Result<Network, Network> {
        let mut layer = first_layer(packet)?;
        let mut passed = Vec::new();
        for _ in 0..MAX_LAYERS {
            let datagram = match Datagram::read(layer)? {
                Next::Datagram(datagram) => datagram,
                Next::Layer(tunnel, inner) => {
                    passed.extend(tunnel);
                    layer = inner;
                    continue;
                }
            };
            let inner = datagram.tunnel();
            match inner {
                Ok(Some((tunnel, _))) if self.outer => passed.push(tunnel),
                Ok(Some((tunnel, inner))) => {
                    passed.push(tunnel);
                    if let Some(fragment) = &datagram.fragment {
                        self.remember(datagram.key(fragment), FirstFragment::Tunnel);
                    }
                    layer = inner;
                    continue;
                }
                Err(other) if !self.outer => return Err(other),
                _ => {}
            }
            let network = self.segment(&datagram)?;
            for tunnel in passed {
                self.tunnels.count(tunnel);
            }
            return Ok(network);
        }
        Err(Network::Malformed)
    }

    fn segment(&mut self, datagram: &Datagram<'_>) -> Result<Network, Network> {
        if datagram.protocol != IpNumber::TCP && datagram.protocol != IpNumber::UDP {
            return match &datagram.fragment {
                Some(fragment) if fragment.offset > 0 => {
                    Err(self.rest_of_tunnel(datagram, fragment))
                }
                _ => Err(Network::NotTcpOrUdp),
            };
        }
        if let Some(fragment) = &datagram.fragment
            && fragment.offset > 0
        {
            return self.later_fragment(datagram, fragment);
        }
        let (segment, header_bytes) = datagram.segment()?;
        if let Some(fragment) = &datagram.fragment {
            let first = FirstFragment::Segment {
                tuple: segment.tuple,
                seq: segment.seq,
                header_bytes,
            };
            self.remember(datagram.key(fragment), first);
        }
        Ok(Network::Segment(segment))
    }

    fn remember(&mut self, key: FragmentKey, first: FirstFragment) {
        if self.fragmented.insert(key, first).is_none() {
            self.order.push_back(key);
        }
        if self.order.len() > MAX_FRAGMENTED
            && let Some(oldest) = self.order.pop_front()
        {
            self.fragmented.remove(&oldest);
        }
    }

    /// Handles a later fragment that has no ports.
    fn rest_of_tunnel(&self, datagram: &Datagram<'_>, fragment: &Fragment) -> Network {
        match self.fragmented.get(&datagram.key(fragment)) {
            Some(_) => Network::RestOfTunnel,
            None => Network::NotTcpOrUdp,
        }
    }

    fn later_fragment(
        &self,
        datagram: &Datagram<'_>,
        fragment: &Fragment,
    ) -> Result<Network, Network> {
        let first = self.fragmented.get(&datagram.key(fragment));
        let (tuple, seq, header_bytes) = match first.ok_or(Network::Fragment)? {
            FirstFragment::Tunnel => return Ok(Network::RestOfTunnel),
            FirstFragment::Segment {
                tuple,
                seq,
                header_bytes,
            } => (*tuple, *seq, *header_bytes),
        };
        let offset = fragment.offset.checked_sub(header_bytes);
        let offset = offset.ok_or(Network::Malformed)?;
        Ok(Network::Segment(Segment {
            tuple,
            payload: datagram.bytes,
            seq: seq.wrapping_add(offset),
            syn: false,
            ack: true,
            content: tuple.udp.then(|| datagram.content(0)),
        }))
    }
}

impl<'a> Datagram<'a> {
    fn read(layer: Layer<'a>) -> Result<Next<'a>, Network> {
        let data = layer.data;
        let sliced = match layer.first {
            First::Ethernet => LaxSlicedPacket::from_ethernet(data).map_err(|_| Network::CutOff)?,
            First::EtherType(kind) => LaxSlicedPacket::from_ether_type(EtherType(kind), data),
            First::Ip => from_ip(data)?,
        };
        let (stopped, net) = (sliced.stop_err.is_some(), &sliced.net);
        // Bytes that were on the wire but cut off. They add to every length that follows from
        // `data`.
        let beyond = layer.wire_bytes.saturating_sub(data.len() as u64);
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
                Ok(Next::Datagram(Datagram {
                    src: header.source_addr().into(),
                    dst: header.destination_addr().into(),
                    protocol: ip.payload().ip_number,
                    data: ip.payload().payload,
                    bytes: stated.map_or(whole(ip.payload().payload), |stated| {
                        stated.saturating_sub(extension as u64)
                    }),
                    id: Some(u32::from(header.identification())).filter(|id| *id != 0),
                    fragment: fragmented.then(|| Fragment {
                        id: u32::from(header.identification()),
                        offset,
                    }),
                }))
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
                Ok(Next::Datagram(Datagram {
                    src: header.source_addr().into(),
                    dst: header.destination_addr().into(),
                    protocol: ip.payload().ip_number,
                    data: ip.payload().payload,
                    bytes,
                    id: fragment.as_ref().map(|fragment| fragment.id),
                    fragment,
                }))
            }
            Some(LaxNetSlice::Arp(_)) => Err(Network::NotIp),
            None if stopped => Err(cut_or_malformed(layer)),
            None => {
                let payload = sliced.ether_payload().ok_or(Network::NotIp)?;
                let kind = payload.ether_type.0;
                let behind = Layer {
                    first: First::EtherType(kind),
                    data: payload.payload,
                    wire_bytes: whole(payload.payload),
                };
                match tunnel::behind_ether_type(kind, behind)? {
                    Some((tunnel, inner)) => Ok(Next::Layer(Some(tunnel), inner)),
                    // More tags of virtual networks than are read at a time.
                    None if sliced.link_exts.is_full() => Ok(Next::Layer(None, behind)),
                    None => Err(Network::NotIp),
                }
            }
        }
    }

    /// Returns the content of a tunnel's packet; `None` for other packets.
    fn tunnel(&self) -> Result<Option<(Tunnel, Layer<'a>)>, Network> {
        if matches!(&self.fragment, Some(fragment) if fragment.offset > 0) {
            return Ok(None);
        }
        let payload = Layer {
            first: First::Ip,
            data: self.data,
            wire_bytes: self.bytes,
        };
        tunnel::behind_ip(self.protocol, payload)
    }

    /// Returns the content behind the header of UDP, which may begin in another fragment.
    fn content(&self, header_bytes: usize) -> Content {
        let payload = self.data.get(header_bytes..).unwrap_or_default();
        let offset = self.fragment.as_ref().map_or(0, |fragment| fragment.offset);
        Content::new(self.id, offset, payload)
    }

    fn key(&self, fragment: &Fragment) -> FragmentKey {
        (self.src, self.dst, fragment.id, self.protocol)
    }

    /// Returns the segment and the length of its header. Only the needed part of the header is read,
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
            content: udp.then(|| self.content(UDP_HEADER as usize)),
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

/// Reads the address family, which is in the byte order of the host: 2 for IPv4, and one of several for
/// IPv6.
fn after_address_family(data: &[u8]) -> Result<&[u8], Network> {
    let (family, rest) = data.split_first_chunk::<4>().ok_or(Network::CutOff)?;
    let family = u32::from_le_bytes(*family).min(u32::from_be_bytes(*family));
    if matches!(family, 2 | 10 | 24 | 28 | 30) {
        Ok(rest)
    } else {
        Err(Network::NotIp)
    }
}

fn cooked(data: &[u8], ether_type: usize, header: usize) -> Result<(First, &[u8]), Network> {
    let kind = data.get(ether_type..).and_then(<[u8]>::first_chunk);
    let (Some(rest), Some(kind)) = (data.get(header..), kind) else {
        return Err(Network::CutOff);
    };
    Ok((First::EtherType(u16::from_be_bytes(*kind)), rest))
}

/// Returns the packet behind the header of the capture's link type.
fn first_layer<'a>(packet: &Packet<'a>) -> Result<Layer<'a>, Network> {
    let whole = packet.data;
    let (first, data) = match packet.link.ok_or(Network::LinkType)? {
        Link::Ethernet => (First::Ethernet, whole),
        Link::Ip => (First::Ip, whole),
        Link::Loopback => (First::Ip, after_address_family(whole)?),
        Link::Cooked => cooked(whole, 14, 16)?,
        Link::Cooked2 => cooked(whole, 0, 20)?,
    };
    let header = whole.len().saturating_sub(data.len()) as u64;
    Ok(Layer {
        first,
        data,
        wire_bytes: packet.wire_bytes.saturating_sub(header),
    })
}

fn cut_or_malformed(layer: Layer<'_>) -> Network {
    if (layer.data.len() as u64) < layer.wire_bytes {
        Network::CutOff
    } else {
        Network::Malformed
    }
}
