//! Headers of tunnels, and the packets behind them.

#![warn(clippy::arithmetic_side_effects)]

use etherparse::IpNumber;

use super::segment::Network;

/// GRE (RFC 2784).
const GRE: IpNumber = IpNumber(47);
/// MPLS directly in IP (RFC 4023).
const MPLS_IN_IP: IpNumber = IpNumber(137);
const UDP_HEADER: usize = 8;
/// UDP port of VXLAN (RFC 7348), and the port that Linux used before VXLAN had one.
const VXLAN_PORT: u16 = 4_789;
const OLD_VXLAN_PORT: u16 = 8_472;
const VXLAN_HEADER: usize = 8;
/// UDP port of GENEVE (RFC 8926).
const GENEVE_PORT: u16 = 6_081;
/// Shortest Ethernet header.
const ETHERNET_HEADER: usize = 14;

const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
const ARP: u16 = 0x0806;
/// An Ethernet frame in GRE or GENEVE.
const TRANSPARENT_ETHERNET: u16 = 0x6558;
const MPLS: u16 = 0x8847;
const MPLS_UPSTREAM: u16 = 0x8848;
const PPPOE_SESSION: u16 = 0x8864;
const ERSPAN: u16 = 0x88be;
const ERSPAN_3: u16 = 0x22eb;

/// Protocols of tunnels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tunnel {
    Vxlan,
    Geneve,
    Gre,
    Erspan,
    IpInIp,
    Mpls,
    Pppoe,
}

/// Type of a layer's first header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum First {
    Ethernet,
    /// The header of this EtherType.
    EtherType(u16),
    /// IPv4 or IPv6, by its first four bits.
    Ip,
}

/// A part of a packet from a header on.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layer<'a> {
    pub(super) first: First,
    /// The captured bytes.
    pub(super) data: &'a [u8],
    /// Length of the part on the wire, bytes; padding may follow the content.
    pub(super) wire_bytes: u64,
}

impl<'a> Layer<'a> {
    /// Returns the layer behind `header` bytes.
    fn behind(self, header: usize, first: First) -> Result<Layer<'a>, Network> {
        let wire_bytes = self.wire_bytes.checked_sub(header as u64);
        let wire_bytes = wire_bytes.ok_or(Network::Malformed)?;
        let data = self.data.get(header..).ok_or(Network::CutOff)?;
        Ok(Layer {
            first,
            data,
            wire_bytes,
        })
    }

    /// Returns the first `N` bytes.
    fn start<const N: usize>(self) -> Result<[u8; N], Network> {
        self.behind(N, self.first)?;
        self.data.first_chunk().copied().ok_or(Network::CutOff)
    }

    /// Returns true if the bytes behind the first header match it. This is certain enough to tell
    /// tunnels from other content.
    fn is_plausible(self) -> bool {
        let (mut kind, mut data) = match self.first {
            First::Ip => return matches!(self.data.first(), Some(0x45..=0x4f | 0x60..=0x6f)),
            First::EtherType(kind) => (kind, self.data),
            First::Ethernet => match self.data.split_at_checked(ETHERNET_HEADER) {
                Some((header, rest)) => (u16::from_be_bytes([header[12], header[13]]), rest),
                None => return false,
            },
        };
        // Tags of virtual networks.
        while let (0x8100 | 0x88a8 | 0x9100, [_, _, high, low, rest @ ..]) = (kind, data) {
            (kind, data) = (u16::from_be_bytes([*high, *low]), rest);
        }
        match kind {
            IPV4 => matches!(data.first(), Some(0x45..=0x4f)),
            IPV6 => matches!(data.first(), Some(0x60..=0x6f)),
            ARP | MPLS | MPLS_UPSTREAM | PPPOE_SESSION => true,
            _ => false,
        }
    }

    /// Returns true for an IP packet as long as the layer, except for the padding of a short frame.
    fn is_whole_ip(self) -> bool {
        let length = match self.data.first() {
            Some(0x45..=0x4f) => self.data.get(2..).and_then(half).map(u64::from),
            Some(0x60..=0x6f) => {
                let payload = self.data.get(4..).and_then(half);
                payload.map(|bytes| u64::from(bytes).saturating_add(40))
            }
            _ => None,
        };
        let is_padded = |length: u64| self.wire_bytes <= 60 && length < self.wire_bytes;
        length.is_some_and(|length| length == self.wire_bytes || is_padded(length))
    }
}

fn half(data: &[u8]) -> Option<u16> {
    data.first_chunk().copied().map(u16::from_be_bytes)
}

/// Returns the content of a tunnel that follows an Ethernet header: MPLS or PPPoE. `None` for another
/// EtherType.
pub(super) fn behind_ether_type<'a>(
    kind: u16,
    layer: Layer<'a>,
) -> Result<Option<(Tunnel, Layer<'a>)>, Network> {
    match kind {
        MPLS | MPLS_UPSTREAM => Ok(Some((Tunnel::Mpls, behind_mpls(layer)?))),
        PPPOE_SESSION => Ok(Some((Tunnel::Pppoe, behind_pppoe(layer)?))),
        _ => Ok(None),
    }
}

/// Returns the content of a tunnel in IP, where `layer` is the payload of the packet. `None` for other
/// payload.
pub(super) fn behind_ip<'a>(
    protocol: IpNumber,
    layer: Layer<'a>,
) -> Result<Option<(Tunnel, Layer<'a>)>, Network> {
    match protocol {
        IpNumber::IPV4 | IpNumber::IPV6 => {
            let first = First::Ip;
            Ok(Some((Tunnel::IpInIp, Layer { first, ..layer })))
        }
        GRE => behind_gre(layer),
        MPLS_IN_IP => Ok(Some((Tunnel::Mpls, behind_mpls(layer)?))),
        IpNumber::UDP => behind_udp(layer),
        _ => Ok(None),
    }
}

/// Returns the content of VXLAN and GENEVE. Packets that only have their port stay UDP.
fn behind_udp(layer: Layer<'_>) -> Result<Option<(Tunnel, Layer<'_>)>, Network> {
    let Ok(inner) = layer.behind(UDP_HEADER, First::Ethernet) else {
        return Ok(None);
    };
    match layer.data.get(2..).and_then(half) {
        Some(VXLAN_PORT) => Ok(behind_vxlan(inner, false)),
        Some(OLD_VXLAN_PORT) => Ok(behind_vxlan(inner, true)),
        Some(GENEVE_PORT) => behind_geneve(inner),
        _ => Ok(None),
    }
}

/// Returns the content of VXLAN (RFC 7348 §5), also with a group policy
/// (draft-smith-vxlan-group-policy). Receivers ignore reserved bits. If those are not zero, or the port
/// is not certain, the inner frame decides.
fn behind_vxlan(layer: Layer<'_>, uncertain: bool) -> Option<(Tunnel, Layer<'_>)> {
    let header = layer.start::<VXLAN_HEADER>().ok()?;
    let inner = layer.behind(VXLAN_HEADER, First::Ethernet).ok()?;
    let [flags, first, second, third, _, _, _, last] = header;
    let plain = flags == 0x08 && [first, second, third] == [0; 3];
    let with_policy = flags == 0x88 && first & !0x48 == 0;
    let clean = (plain || with_policy) && last == 0;
    let is_vxlan = flags & 0x08 != 0
        && inner.wire_bytes >= ETHERNET_HEADER as u64
        && (clean && !uncertain || inner.is_plausible());
    is_vxlan.then_some((Tunnel::Vxlan, inner))
}

/// Returns the content of GENEVE (RFC 8926 §3.4). Control packets, which are no traffic of the inner
/// network, stay UDP.
fn behind_geneve(layer: Layer<'_>) -> Result<Option<(Tunnel, Layer<'_>)>, Network> {
    let Ok([start, flags, high, low, _, _, _, last]) = layer.start::<8>() else {
        return Ok(None);
    };
    let first = match u16::from_be_bytes([high, low]) {
        TRANSPARENT_ETHERNET => First::Ethernet,
        kind @ (IPV4 | IPV6 | MPLS) => First::EtherType(kind),
        _ => return Ok(None),
    };
    let options = usize::from(start & 0x3f).saturating_mul(4);
    let inner = match layer.behind(options.saturating_add(8), first) {
        Ok(inner) => inner,
        Err(Network::Malformed) => return Ok(None),
        Err(other) => return Err(other),
    };
    let is_data = start >> 6 == 0 && flags & 0x80 == 0;
    let clean = flags & 0x3f == 0 && last == 0;
    let is_geneve = is_data && (clean || inner.is_plausible());
    Ok(is_geneve.then_some((Tunnel::Geneve, inner)))
}

/// Returns the content of GRE with key and sequence number (RFC 2784, RFC 2890) and of ERSPAN in it
/// (draft-foschiano-erspan). `None` for other versions and for routes in the header.
fn behind_gre(layer: Layer<'_>) -> Result<Option<(Tunnel, Layer<'_>)>, Network> {
    let [flags, version, high, low] = layer.start::<4>()?;
    if flags & 0x40 != 0 || version & 0x07 != 0 {
        return Ok(None);
    }
    let has_sequence = flags & 0x10 != 0;
    let words = [0x80, 0x20, 0x10].map(|bit| usize::from(flags & bit != 0));
    let header = words
        .iter()
        .sum::<usize>()
        .saturating_add(1)
        .saturating_mul(4);
    let kind = u16::from_be_bytes([high, low]);
    let first = match kind {
        TRANSPARENT_ETHERNET | ERSPAN | ERSPAN_3 => First::Ethernet,
        kind => First::EtherType(kind),
    };
    let inner = layer.behind(header, first)?;
    match kind {
        // Type I has neither a sequence number nor a header.
        ERSPAN if !has_sequence => Ok(Some((Tunnel::Erspan, inner))),
        ERSPAN => {
            let [start, ..] = inner.start::<8>()?;
            let is_second = start >> 4 == 1;
            is_second.then_some(()).ok_or(Network::Malformed)?;
            Ok(Some((Tunnel::Erspan, inner.behind(8, first)?)))
        }
        ERSPAN_3 => Ok(Some((Tunnel::Erspan, behind_erspan_3(inner)?))),
        _ => Ok(Some((Tunnel::Gre, inner))),
    }
}

/// Returns the content of ERSPAN type III: the frame type is in bits 81 to 85, and the last bit is set
/// if there are 8 bytes more.
fn behind_erspan_3(layer: Layer<'_>) -> Result<Layer<'_>, Network> {
    let header = layer.start::<12>()?;
    let first = match header[10] >> 2 & 0x1f {
        0 => First::Ethernet,
        2 => First::Ip,
        _ => return Err(Network::NotIp),
    };
    if header[0] >> 4 != 2 {
        return Err(Network::Malformed);
    }
    let length = if header[11] & 1 == 1 { 20 } else { 12 };
    layer.behind(length, first)
}

/// Returns the layer behind a stack of MPLS labels (RFC 3032). The labels do not give its type. As in
/// routers (RFC 4928), the first four bits distinguish IP from a pseudowire of Ethernet, which may have
/// a control word that starts with four zeros (RFC 4385).
fn behind_mpls(layer: Layer<'_>) -> Result<Layer<'_>, Network> {
    let mut inner = layer;
    loop {
        let [_, _, bottom, _] = inner.start::<4>()?;
        inner = inner.behind(4, First::Ip)?;
        if bottom & 1 == 1 {
            break;
        }
    }
    let frame = Layer {
        first: First::Ethernet,
        ..inner
    };
    let is_frame = frame.is_plausible();
    let version = inner.data.first().ok_or(Network::CutOff)? >> 4;
    match version {
        4 | 6 if inner.is_whole_ip() || !is_frame => Ok(inner),
        0 => match frame.behind(4, First::Ethernet) {
            Ok(behind) if behind.is_plausible() => Ok(behind),
            _ if is_frame => Ok(frame),
            _ => Err(Network::NotIp),
        },
        _ if is_frame => Ok(frame),
        _ => Err(Network::NotIp),
    }
}

/// Returns the packet of a PPPoE session (RFC 2516 §4): 6 bytes, and 2 of PPP.
fn behind_pppoe(layer: Layer<'_>) -> Result<Layer<'_>, Network> {
    let header = layer.start::<6>()?;
    let length = u16::from_be_bytes([header[4], header[5]]);
    if header[..2] != [0x11, 0] || length < 2 {
        return Err(Network::Malformed);
    }
    let [high, low] = layer.behind(6, layer.first)?.start::<2>()?;
    let first = match u16::from_be_bytes([high, low]) {
        0x0021 => First::EtherType(IPV4),
        0x0057 => First::EtherType(IPV6),
        0x0281 => First::EtherType(MPLS),
        _ => return Err(Network::NotIp),
    };
    // Short Ethernet frames are padded.
    let length = usize::from(length).saturating_sub(2);
    let inner = layer.behind(8, first)?;
    Ok(Layer {
        data: &inner.data[..inner.data.len().min(length)],
        wire_bytes: inner.wire_bytes.min(length as u64),
        ..inner
    })
}
