//! Packets and capture files, byte by byte.

pub const ETHERNET: u32 = 1;
pub const SYN: u8 = 0x02;
pub const ACK: u8 = 0x10;

/// A packet and the time of its capture.
#[derive(Clone)]
pub struct Frame {
    pub time_ns: u64,
    pub data: Vec<u8>,
    /// Length of the packet before it was cut off.
    pub wire: usize,
}

pub fn frame(time_us: u64, data: Vec<u8>) -> Frame {
    Frame {
        time_ns: time_us * 1_000,
        wire: data.len(),
        data,
    }
}

impl Frame {
    /// Returns the packet as in a capture that keeps `bytes` of every packet.
    pub fn cut(mut self, bytes: usize) -> Frame {
        self.data.truncate(bytes);
        self
    }
}

/// Returns a TCP segment from a port to a port with `payload` bytes of payload.
pub fn tcp(ports: (u16, u16), seq: u32, flags: u8, payload: usize) -> Vec<u8> {
    // Twelve bytes of options, as timestamps take.
    let mut bytes = Vec::new();
    bytes.extend(ports.0.to_be_bytes());
    bytes.extend(ports.1.to_be_bytes());
    bytes.extend(seq.to_be_bytes());
    bytes.extend([0, 0, 0, 0, 8 << 4, flags, 1, 0, 0, 0, 0, 0]);
    bytes.extend([1; 12]);
    bytes.resize(bytes.len() + payload, b'x');
    bytes
}

pub fn udp(ports: (u16, u16), payload: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend(ports.0.to_be_bytes());
    bytes.extend(ports.1.to_be_bytes());
    bytes.extend((8 + payload as u16).to_be_bytes());
    bytes.extend([0, 0]);
    bytes.resize(8 + payload, b'x');
    bytes
}

/// Returns an IPv4 packet with four bytes of options from 10.0.0.`src` to 10.0.0.`dst`.
pub fn ipv4(src: u8, dst: u8, protocol: u8, inner: &[u8]) -> Vec<u8> {
    ipv4_fragment(src, dst, protocol, (0, 0, false), inner)
}

/// Returns such a packet with identification, offset in bytes, and true if more fragments follow.
pub fn ipv4_fragment(
    src: u8,
    dst: u8,
    protocol: u8,
    (id, offset, more): (u16, u16, bool),
    inner: &[u8],
) -> Vec<u8> {
    let mut bytes = vec![0x46, 0];
    bytes.extend((24 + inner.len() as u16).to_be_bytes());
    bytes.extend(id.to_be_bytes());
    bytes.extend((offset / 8 + (u16::from(more) << 13)).to_be_bytes());
    bytes.extend([64, protocol, 0, 0, 10, 0, 0, src, 10, 0, 0, dst]);
    bytes.extend([1, 1, 1, 0]);
    bytes.extend(inner);
    bytes
}

/// Returns an IPv6 packet between fd00::`src` and fd00::`dst`; `headers` are type and content of
/// extension headers.
pub fn ipv6(src: u8, dst: u8, headers: &[(u8, [u8; 7])], protocol: u8, inner: &[u8]) -> Vec<u8> {
    let kinds: Vec<u8> = headers.iter().map(|header| header.0).collect();
    let mut next = kinds.iter().copied().chain([protocol]);
    let mut bytes = vec![0x60, 0, 0, 0];
    bytes.extend(((headers.len() * 8 + inner.len()) as u16).to_be_bytes());
    bytes.extend([next.next().unwrap(), 64]);
    for host in [src, dst] {
        bytes.extend([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, host]);
    }
    for (_, content) in headers {
        bytes.push(next.next().unwrap());
        bytes.extend(content);
    }
    bytes.extend(inner);
    bytes
}

/// Returns an Ethernet frame with VLAN tags.
pub fn ethernet(vlans: &[u16], inner: &[u8]) -> Vec<u8> {
    let mut bytes = vec![2; 12];
    for (index, vlan) in vlans.iter().enumerate() {
        let kind = if index + 1 < vlans.len() {
            [0x88, 0xa8]
        } else {
            [0x81, 0]
        };
        bytes.extend(kind);
        bytes.extend(vlan.to_be_bytes());
    }
    bytes.extend(ether_type(inner));
    bytes.extend(inner);
    // The shortest frame, without its check sequence.
    bytes.resize(bytes.len().max(60), 0);
    bytes
}

pub fn ether_type(inner: &[u8]) -> [u8; 2] {
    if inner[0] >> 4 == 4 {
        [8, 0]
    } else {
        [0x86, 0xdd]
    }
}

/// Returns TCP over IPv4 over Ethernet, at a time in µs.
pub fn segment(
    time_us: u64,
    hosts: (u8, u8),
    ports: (u16, u16),
    seq: u32,
    flags: u8,
    payload: usize,
) -> Frame {
    let inner = ipv4(hosts.0, hosts.1, 6, &tcp(ports, seq, flags, payload));
    frame(time_us, ethernet(&[], &inner))
}

/// Format of a capture file.
#[derive(Clone, Copy)]
pub struct Style {
    pub big_endian: bool,
    pub nanoseconds: bool,
    pub link: u32,
}

impl Style {
    pub const PLAIN: Style = Style {
        big_endian: false,
        nanoseconds: false,
        link: ETHERNET,
    };

    fn word(self, value: u32) -> [u8; 4] {
        if self.big_endian {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    }

    fn half(self, value: u16) -> [u8; 2] {
        if self.big_endian {
            value.to_be_bytes()
        } else {
            value.to_le_bytes()
        }
    }
}

pub fn pcap(style: Style, frames: &[Frame]) -> Vec<u8> {
    let magic = if style.nanoseconds {
        0xa1b2_3c4d
    } else {
        0xa1b2_c3d4
    };
    let mut bytes = Vec::from(style.word(magic));
    bytes.extend(style.half(2));
    bytes.extend(style.half(4));
    for value in [0, 0, 262_144, style.link] {
        bytes.extend(style.word(value));
    }
    for frame in frames {
        let fraction = frame.time_ns % 1_000_000_000;
        let fraction = if style.nanoseconds {
            fraction
        } else {
            fraction / 1_000
        };
        let seconds = frame.time_ns / 1_000_000_000;
        for value in [
            seconds as u32,
            fraction as u32,
            frame.data.len() as u32,
            frame.wire as u32,
        ] {
            bytes.extend(style.word(value));
        }
        bytes.extend(&frame.data);
    }
    bytes
}

/// A block of a pcapng file.
pub fn block(style: Style, kind: u32, content: &[u8]) -> Vec<u8> {
    let padding = content.len().next_multiple_of(4) - content.len();
    let length = style.word((12 + content.len() + padding) as u32);
    let mut bytes = Vec::from(style.word(kind));
    bytes.extend(length);
    bytes.extend(content);
    bytes.extend(vec![0; padding]);
    bytes.extend(length);
    bytes
}

pub fn section(style: Style) -> Vec<u8> {
    let mut content = Vec::from(style.word(0x1a2b_3c4d));
    content.extend(style.half(1));
    content.extend(style.half(0));
    content.extend([0xff; 8]);
    block(style, 0x0a0d_0d0a, &content)
}

/// Returns an interface whose clock has the resolution `if_tsresol` and an offset in seconds.
pub fn interface(style: Style, resolution: u8, offset_s: i64) -> Vec<u8> {
    let mut content = Vec::from(style.half(style.link as u16));
    content.extend(style.half(0));
    content.extend(style.word(0));
    content.extend(style.half(9));
    content.extend(style.half(1));
    content.extend([resolution, 0, 0, 0]);
    content.extend(style.half(14));
    content.extend(style.half(8));
    content.extend(if style.big_endian {
        offset_s.to_be_bytes()
    } else {
        offset_s.to_le_bytes()
    });
    content.extend([0; 4]);
    block(style, 1, &content)
}

pub fn packet(style: Style, interface: u32, ticks: u64, frame: &Frame) -> Vec<u8> {
    let mut content = Vec::new();
    for value in [
        interface,
        (ticks >> 32) as u32,
        ticks as u32,
        frame.data.len() as u32,
        frame.wire as u32,
    ] {
        content.extend(style.word(value));
    }
    content.extend(&frame.data);
    block(style, 6, &content)
}

/// The same packet as an older Packet Block, with a comment.
pub fn packet_block(style: Style, interface: u16, ticks: u64, frame: &Frame) -> Vec<u8> {
    let mut content = Vec::from(style.half(interface));
    content.extend(style.half(7));
    for value in [
        (ticks >> 32) as u32,
        ticks as u32,
        frame.data.len() as u32,
        frame.wire as u32,
    ] {
        content.extend(style.word(value));
    }
    content.extend(&frame.data);
    content.resize(content.len().next_multiple_of(4), 0);
    content.extend(style.half(1));
    content.extend(style.half(2));
    content.extend(b"hi\0\0\0\0\0\0");
    block(style, 2, &content)
}

/// Returns one section, one interface that counts nanoseconds, and some blocks to be skipped.
pub fn pcapng(style: Style, frames: &[Frame]) -> Vec<u8> {
    let mut bytes = section(style);
    bytes.extend(interface(style, 9, 0));
    for frame in frames {
        bytes.extend(block(style, 0x0bad_cafe, b"something"));
        bytes.extend(packet(style, 0, frame.time_ns, frame));
    }
    bytes
}
