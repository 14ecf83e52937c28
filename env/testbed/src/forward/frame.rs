//! Frames from the hosts: Ethernet, IPv4, TCP.

use bufgym_sim::capture::host_of;
use bufgym_sim::network::FrameKind;
use etherparse::{EtherType, Ethernet2HeaderSlice, IpNumber, Ipv4HeaderSlice, TcpHeaderSlice};

/// Bytes of Ethernet's frame check sequence, which the kernel does not hand over.
const FCS: u16 = 4;
/// Size of the smallest Ethernet frame with the check sequence.
const SMALLEST: u16 = 64;
/// Positions of the type of service and of the IPv4 header's checksum in the frame.
const TOS: usize = 15;
const CHECKSUM: std::ops::Range<usize> = 24..26;
/// Bits of Explicit Congestion Notification (RFC 3168 §5); both set: Congestion Experienced.
const ECN: u8 = 0b11;

/// Fields of a frame that the switch reads.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Seen {
    pub(super) from: usize,
    pub(super) to: usize,
    pub(super) source_port: u16,
    pub(super) destination_port: u16,
    pub(super) kind: SeenKind,
    /// True if the sender understands marks.
    pub(super) markable: bool,
}

/// Purpose of a frame, without knowledge of the end of its flow that it comes from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SeenKind {
    Syn,
    SynAck,
    Payload,
    Bare,
}

impl Seen {
    /// Reads a frame of TCP between hosts.
    pub(super) fn of(frame: &[u8], hosts: usize) -> Option<Seen> {
        let ethernet = Ethernet2HeaderSlice::from_slice(frame).ok()?;
        if ethernet.ether_type() != EtherType::IPV4 {
            return None;
        }
        let rest = frame.get(ethernet.slice().len()..)?;
        let ip = Ipv4HeaderSlice::from_slice(rest).ok()?;
        if ip.protocol() != IpNumber::TCP {
            return None;
        }
        let tcp = TcpHeaderSlice::from_slice(rest.get(ip.slice().len()..)?).ok()?;
        let headers = ip.slice().len() + tcp.slice().len();
        let payload = usize::from(ip.total_len()).checked_sub(headers)?;
        Some(Seen {
            from: host_of(ip.source(), hosts)?,
            to: host_of(ip.destination(), hosts)?,
            source_port: tcp.source_port(),
            destination_port: tcp.destination_port(),
            kind: match (tcp.syn(), tcp.ack()) {
                (true, false) => SeenKind::Syn,
                (true, true) => SeenKind::SynAck,
                _ if payload > 0 => SeenKind::Payload,
                _ => SeenKind::Bare,
            },
            markable: ip.ecn().value() != 0,
        })
    }

    /// Returns the purpose of the frame, given whether it comes from the sender of the data.
    pub(super) fn kind(self, forward: bool) -> FrameKind {
        match (self.kind, forward) {
            (SeenKind::Syn, _) => FrameKind::Syn,
            (SeenKind::SynAck, _) => FrameKind::SynAck,
            (SeenKind::Payload, _) => FrameKind::Data,
            (SeenKind::Bare, true) => FrameKind::Control,
            (SeenKind::Bare, false) => FrameKind::Ack,
        }
    }
}

/// Returns the bytes that a frame of `length` bytes takes on the wire, without preamble and gap.
pub(super) fn wire_bytes(length: usize) -> u16 {
    let length = u16::try_from(length).unwrap_or(u16::MAX - FCS);
    (length + FCS).max(SMALLEST)
}

/// Sets Congestion Experienced in the IPv4 header and updates its checksum (RFC 1624).
pub(super) fn mark(frame: &mut [u8]) {
    let before = u16::from_be_bytes([frame[TOS - 1], frame[TOS]]);
    frame[TOS] |= ECN;
    let after = u16::from_be_bytes([frame[TOS - 1], frame[TOS]]);
    let checksum = u16::from_be_bytes([frame[CHECKSUM.start], frame[CHECKSUM.start + 1]]);
    let mut sum = u32::from(!checksum) + u32::from(!before) + u32::from(after);
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    let sum = u16::try_from(sum).expect("folded to 16 bits");
    frame[CHECKSUM].copy_from_slice(&(!sum).to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use etherparse::{PacketBuilder, SlicedPacket};

    fn frame(flags: &str, ecn: u8, payload: &[u8]) -> Vec<u8> {
        let mut ip =
            etherparse::Ipv4Header::new(0, 64, IpNumber::TCP, [10, 0, 0, 1], [10, 0, 0, 3])
                .unwrap();
        ip.ecn = etherparse::IpEcn::try_new(ecn).unwrap();
        let builder = PacketBuilder::ethernet2([2; 6], [3; 6])
            .ip(etherparse::IpHeaders::Ipv4(ip, Default::default()))
            .tcp(10_007, 5_001, 1, 1_000);
        let builder = match flags {
            "syn" => builder.syn(),
            "syn-ack" => builder.syn().ack(5),
            _ => builder.ack(5),
        };
        let mut bytes = Vec::new();
        builder.write(&mut bytes, payload).unwrap();
        bytes
    }

    #[test]
    fn frames_are_told_apart() {
        let seen = Seen::of(&frame("", 2, b"abc"), 4).unwrap();
        assert_eq!((seen.from, seen.to), (0, 2));
        assert_eq!((seen.source_port, seen.destination_port), (10_007, 5_001));
        assert!(seen.markable);
        assert_eq!(seen.kind(true), FrameKind::Data);
        let kind = |flags, forward| Seen::of(&frame(flags, 0, b""), 4).unwrap().kind(forward);
        assert_eq!(kind("syn", true), FrameKind::Syn);
        assert_eq!(kind("syn-ack", false), FrameKind::SynAck);
        assert_eq!(kind("", true), FrameKind::Control);
        assert_eq!(kind("", false), FrameKind::Ack);
        assert_eq!(
            Seen::of(&frame("", 0, b""), 2),
            None,
            "there is no such host"
        );
        assert_eq!(Seen::of(&[0; 60], 4), None);
        assert_eq!(Seen::of(&frame("", 0, b"")[..30], 4), None);
    }

    #[test]
    fn a_mark_keeps_the_checksum_right() {
        for ecn in [1, 2] {
            let mut bytes = frame("", ecn, b"abc");
            mark(&mut bytes);
            let packet = SlicedPacket::from_ethernet(&bytes).unwrap();
            let Some(etherparse::NetSlice::Ipv4(ip)) = packet.net else {
                panic!("it is IPv4");
            };
            let header = ip.header().to_header();
            assert_eq!(header.ecn.value(), 3);
            assert_eq!(header.header_checksum, header.calc_header_checksum());
        }
    }

    #[test]
    fn bytes_on_the_wire_are_those_of_ethernet() {
        assert_eq!(wire_bytes(1_514), 1_518);
        assert_eq!(wire_bytes(54), 64);
        assert_eq!(wire_bytes(66), 70);
    }
}
