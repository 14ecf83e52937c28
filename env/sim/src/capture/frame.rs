//! Ethernet frames of simulated packets, without their payload.

use etherparse::{
    EtherType, Ethernet2Header, IpEcn, IpNumber, Ipv4Header, TcpHeader,
    TcpOptionElement::{
        self, MaximumSegmentSize, Noop, SelectiveAcknowledgement,
        SelectiveAcknowledgementPermitted, Timestamp, WindowScale,
    },
};

use super::addresses::{LISTEN, address, hardware_address};
use crate::engine::packet::PacketDirection;
use crate::host::{Crossing, SegmentKind};
use crate::scenario::Scenario;

/// Default time to live of Linux.
const TTL: u8 = 64;
/// Receive windows are counted in units of 2^7 bytes (RFC 7323 §2), as Linux does with its usual buffers.
const WINDOW_SHIFT: u8 = 7;
/// Maximum payload of an IPv4 packet with the longest headers, bytes.
pub(super) const MAX_PAYLOAD: u32 = 65_535 - 60 - 20;
/// Payload of all frames: zeros, because nothing reads it.
static PAYLOAD: [u8; MAX_PAYLOAD as usize] = [0; MAX_PAYLOAD as usize];

/// Properties that all frames of a run share.
#[derive(Clone, Debug)]
pub(super) struct Style {
    mss: u16,
    timestamps: bool,
    sack: bool,
    ecn: bool,
    /// Receive window, in units of 2^[`WINDOW_SHIFT`] bytes.
    window: u16,
}

/// Properties of a frame that the packet does not state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extra {
    /// Port of the flow at its sender.
    pub(super) port: u16,
    /// Clocks of this end and of the other end, milliseconds (RFC 7323 §3).
    pub(super) timestamps: (u32, u32),
}

impl Style {
    pub(super) fn of(scenario: &Scenario) -> Style {
        let window = match scenario.tcp.max_cwnd_bytes {
            0 => u64::MAX,
            bytes => bytes >> WINDOW_SHIFT,
        };
        Style {
            mss: u16::try_from(scenario.packets.mss).unwrap_or(u16::MAX),
            timestamps: scenario.tcp.timestamps,
            sack: scenario.tcp.sack,
            ecn: scenario.uses_ecn(),
            window: u16::try_from(window).unwrap_or(u16::MAX),
        }
    }

    /// Replaces the content of `frame` with the headers of the packet. Returns the length of the whole frame,
    /// bytes.
    pub(super) fn write(&self, packet: &Crossing, extra: Extra, frame: &mut Vec<u8>) -> usize {
        let payload = &PAYLOAD[..(packet.payload as usize).min(PAYLOAD.len())];
        let [from, to] = [packet.from, packet.to].map(u32::from);
        let mut tcp = self.tcp(packet, extra);
        let [source, destination] = [address(from), address(to)].map(|address| address.octets());
        let length = u16::try_from(tcp.header_len() + payload.len()).unwrap_or(u16::MAX);
        let mut ip = Ipv4Header::new(length, TTL, IpNumber::TCP, source, destination)
            .expect("longer payload is refused");
        ip.dont_fragment = true;
        ip.ecn = match (self.ecn && packet.markable, packet.marked) {
            (false, _) => IpEcn::ZERO,
            (true, false) => IpEcn::TWO,
            (true, true) => IpEcn::THREE,
        };
        ip.header_checksum = ip.calc_header_checksum();
        tcp.checksum = tcp
            .calc_checksum_ipv4_raw(source, destination, payload)
            .unwrap_or_default();
        let ethernet = Ethernet2Header {
            source: hardware_address(from),
            destination: hardware_address(to),
            ether_type: EtherType::IPV4,
        };
        frame.clear();
        frame.extend_from_slice(&ethernet.to_bytes());
        frame.extend_from_slice(&ip.to_bytes());
        frame.extend_from_slice(&tcp.to_bytes());
        frame.len() + payload.len()
    }

    fn tcp(&self, packet: &Crossing, extra: Extra) -> TcpHeader {
        let forward = packet.direction == PacketDirection::Forward;
        let (source, destination) = match forward {
            true => (extra.port, LISTEN),
            false => (LISTEN, extra.port),
        };
        let opens = matches!(packet.kind, SegmentKind::Syn | SegmentKind::SynAck);
        // A SYN takes the first sequence number of its direction, which is 0.
        let sequence = if opens { 0 } else { wrapped(packet.offset) };
        // The window of a SYN is not scaled yet.
        let window = if opens { u16::MAX } else { self.window };
        let mut tcp = TcpHeader::new(source, destination, sequence, window);
        tcp.syn = opens;
        tcp.ack = packet.kind != SegmentKind::Syn;
        tcp.psh = packet.is_last;
        tcp.ece = self.ecn && (packet.echoes_mark || opens);
        // A SYN that asks for ECN sets both flags (RFC 3168 §6.1.1).
        tcp.cwr = self.ecn && packet.kind == SegmentKind::Syn;
        if tcp.ack {
            tcp.acknowledgment_number = wrapped(packet.acknowledged);
        }
        let options = self.options(packet, opens, extra.timestamps);
        tcp.set_options(&options)
            .expect("timestamps and three blocks fit into a header");
        tcp
    }

    /// Returns the TCP options, in the order in which Linux writes them.
    fn options(
        &self,
        packet: &Crossing,
        opens: bool,
        (own, other): (u32, u32),
    ) -> Vec<TcpOptionElement> {
        let mut options = Vec::new();
        if opens {
            options.push(MaximumSegmentSize(self.mss));
            match (self.sack, self.timestamps) {
                (true, true) => options.push(SelectiveAcknowledgementPermitted),
                (true, false) => options.extend([Noop, Noop, SelectiveAcknowledgementPermitted]),
                (false, true) => options.extend([Noop, Noop]),
                (false, false) => {}
            }
            if self.timestamps {
                options.push(Timestamp(own, other));
            }
            options.extend([Noop, WindowScale(WINDOW_SHIFT)]);
            return options;
        }
        if self.timestamps {
            options.extend([Noop, Noop, Timestamp(own, other)]);
        }
        let mut blocks = packet.sack.iter().flatten();
        if let Some(first) = blocks.next() {
            let block = |&(from, to): &(u64, u64)| (wrapped(from), wrapped(to));
            let rest = [blocks.next(), blocks.next(), None].map(|other| other.map(block));
            options.extend([Noop, Noop, SelectiveAcknowledgement(block(first), rest)]);
        }
        options
    }
}

/// Returns the sequence number of a byte of a flow: the first byte is 1, after the SYN.
#[expect(clippy::cast_possible_truncation, reason = "sequence numbers wrap")]
fn wrapped(byte: u64) -> u32 {
    byte.wrapping_add(1) as u32
}

#[cfg(test)]
mod tests {
    use etherparse::{NetSlice, SlicedPacket, TransportSlice};

    use super::*;
    use crate::units::Instant;

    fn crossing(kind: SegmentKind) -> Crossing {
        let reverse = matches!(kind, SegmentKind::Ack | SegmentKind::SynAck);
        let (from, to) = if reverse { (2, 0) } else { (0, 2) };
        Crossing {
            flow: 0,
            direction: match reverse {
                true => PacketDirection::Reverse,
                false => PacketDirection::Forward,
            },
            from,
            to,
            kind,
            stamp: Instant::ZERO,
            offset: 0,
            payload: 0,
            is_last: false,
            acknowledged: 0,
            sack: [None; 3],
            markable: false,
            marked: false,
            echoes_mark: false,
        }
    }

    fn linux() -> Scenario {
        Scenario::preset("testbed-4x100m").unwrap()
    }

    /// Returns the whole frame, with its payload.
    fn written(scenario: &Scenario, packet: &Crossing) -> Vec<u8> {
        let extra = Extra {
            port: 10_007,
            timestamps: (3, 4),
        };
        let mut frame = vec![1, 2, 3];
        let length = Style::of(scenario).write(packet, extra, &mut frame);
        frame.resize(length, 0);
        frame
    }

    #[test]
    fn frames_are_as_long_as_the_scenario_says() {
        let scenario = linux();
        // Ethernet counts its check sequence of four bytes.
        let on_wire = |packet: &Crossing| written(&scenario, packet).len() as u64 + 4;
        let full = Crossing {
            payload: scenario.packets.mss,
            ..crossing(SegmentKind::Data)
        };
        assert_eq!(on_wire(&full), scenario.full_packet_bytes());
        assert_eq!(
            on_wire(&crossing(SegmentKind::Ack)),
            u64::from(scenario.packets.ack_bytes) + 12
        );
        assert_eq!(
            on_wire(&crossing(SegmentKind::Syn)),
            u64::from(scenario.packets.syn_bytes) + 12
        );
    }

    #[test]
    fn a_segment_has_its_numbers_and_right_checksums() {
        let mut scenario = linux();
        scenario.set("ecn_threshold_bytes=30000").unwrap();
        let data = Crossing {
            offset: (1 << 32) + 100,
            payload: 500,
            is_last: true,
            markable: true,
            ..crossing(SegmentKind::Data)
        };
        let bytes = written(&scenario, &data);
        let packet = SlicedPacket::from_ethernet(&bytes).unwrap();
        let (Some(NetSlice::Ipv4(ip)), Some(TransportSlice::Tcp(tcp))) =
            (packet.net, packet.transport)
        else {
            panic!("TCP over IPv4");
        };
        let ip = ip.header().to_header();
        assert_eq!((ip.source, ip.destination), ([10, 0, 0, 1], [10, 0, 0, 3]));
        assert_eq!(ip.header_checksum, ip.calc_header_checksum());
        assert_eq!(ip.ecn.value(), 2);
        assert_eq!((tcp.source_port(), tcp.destination_port()), (10_007, 5_001));
        assert_eq!(
            (tcp.sequence_number(), tcp.acknowledgment_number()),
            (101, 1)
        );
        assert!(tcp.ack() && tcp.psh() && !tcp.syn());
        assert_eq!(tcp.payload().len(), 500);
        let header = tcp.to_header();
        let sum = header.calc_checksum_ipv4(&ip, tcp.payload()).unwrap();
        assert_eq!(sum, header.checksum);
        assert_eq!(header.window_size, 49_152, "6 MiB in units of 128 bytes");
    }

    #[test]
    fn an_acknowledgement_has_blocks_and_the_echo_of_a_mark() {
        let mut scenario = linux();
        scenario.set("ecn_threshold_bytes=30000").unwrap();
        let ack = Crossing {
            acknowledged: 2_896,
            sack: [Some((4_344, 5_792)), Some((7_240, 8_688)), None],
            echoes_mark: true,
            ..crossing(SegmentKind::Ack)
        };
        let bytes = written(&scenario, &ack);
        let packet = SlicedPacket::from_ethernet(&bytes).unwrap();
        let Some(TransportSlice::Tcp(tcp)) = packet.transport else {
            panic!("TCP");
        };
        assert_eq!(
            (tcp.sequence_number(), tcp.acknowledgment_number()),
            (1, 2_897)
        );
        assert!(tcp.ece() && tcp.ack() && !tcp.psh());
        let options: Vec<_> = tcp.options_iterator().map(Result::unwrap).collect();
        let blocks = SelectiveAcknowledgement((4_345, 5_793), [Some((7_241, 8_689)), None, None]);
        assert_eq!(options, [Noop, Noop, Timestamp(3, 4), Noop, Noop, blocks]);
        assert_eq!(
            bytes.len() as u64 + 4,
            u64::from(scenario.packets.ack_bytes) + 12 + 2 * 10
        );
    }
}
