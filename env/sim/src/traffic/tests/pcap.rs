mod copies;
mod errors;
mod tunnels;
mod writer;

use std::io;
use std::time::Duration;

use crate::traffic::{Capture, CaptureError, CaptureOptions, FlowSpec, Trace};
use writer::*;

const CLIENT: (u16, u16) = (50_000, 80);
const SERVER: (u16, u16) = (80, 50_000);

fn read_with(bytes: &[u8], options: &CaptureOptions) -> Result<Capture, CaptureError> {
    Capture::from_reader(bytes, "test.pcap", options)
}

fn read(bytes: &[u8]) -> Capture {
    read_with(bytes, &CaptureOptions::default()).unwrap()
}

fn flows_of(frames: &[Frame]) -> Vec<(u32, u32, u64, u64)> {
    outline(&read(&pcap(Style::PLAIN, frames)))
}

/// Returns source, destination, start in ns and size of every flow.
fn outline(capture: &Capture) -> Vec<(u32, u32, u64, u64)> {
    let flow = |flow: &FlowSpec| (flow.src, flow.dst, flow.start.as_ns(), flow.size);
    capture.trace.flows.iter().map(flow).collect()
}

/// Checks the blocks that were skipped, and removes them: a file of the format pcap has none.
fn but_for_blocks(capture: Capture) -> Capture {
    assert_eq!(
        capture.blocks,
        [("type 0xbadcafe".to_owned(), capture.packets)].into()
    );
    Capture {
        blocks: Default::default(),
        ..capture
    }
}

/// Returns a handshake, a request, an answer of three segments of which the second is lost and
/// retransmitted, and acknowledgements.
fn conversation() -> Vec<Frame> {
    let client = |time, seq, flags, payload| segment(time, (1, 2), CLIENT, seq, flags, payload);
    let server = |time, seq, flags, payload| segment(time, (2, 1), SERVER, seq, flags, payload);
    vec![
        client(0, 999, SYN, 0),
        server(50, 4_999, SYN | ACK, 0),
        client(100, 1_000, ACK, 0),
        client(110, 1_000, ACK, 300),
        server(160, 5_000, ACK, 0),
        server(200, 5_000, ACK, 1_448),
        server(212, 7_896, ACK, 1_448),
        client(260, 1_300, ACK, 0),
        server(300, 6_448, ACK, 1_448),
        server(305, 7_896, ACK, 1_448),
        client(350, 1_300, ACK, 0),
    ]
}

#[test]
fn each_direction_with_payload_is_a_flow_and_each_byte_counts_once() {
    let capture = read(&pcap(Style::PLAIN, &conversation()));
    assert_eq!(
        outline(&capture),
        [(0, 1, 110_000, 300), (1, 0, 200_000, 3 * 1_448)]
    );
    assert_eq!(capture.packets, 11);
    assert_eq!(capture.skipped.no_payload, 6);
    assert_eq!(capture.skipped.total(), 6);
    assert_eq!(capture.ports, 2);
    let hosts: Vec<_> = capture.hosts.iter().map(ToString::to_string).collect();
    assert_eq!(hosts, ["10.0.0.1", "10.0.0.2"]);
    assert_eq!(capture.trace.kinds, ["tcp", "udp"]);
    capture.trace.validate(2).unwrap();
}

#[test]
fn every_container_reads_alike() {
    let frames = conversation();
    let expected = read(&pcap(Style::PLAIN, &frames));
    for big_endian in [false, true] {
        for nanoseconds in [false, true] {
            let style = Style {
                big_endian,
                nanoseconds,
                ..Style::PLAIN
            };
            assert_eq!(read(&pcap(style, &frames)), expected);
            assert_eq!(but_for_blocks(read(&pcapng(style, &frames))), expected);
        }
    }
}

#[test]
fn nanoseconds_are_kept() {
    let mut frames = conversation();
    frames[3].time_ns += 7;
    let style = Style {
        nanoseconds: true,
        ..Style::PLAIN
    };
    assert_eq!(
        read(&pcap(style, &frames)).trace.flows[0].start.as_ns(),
        110_007
    );
    assert_eq!(
        read(&pcapng(style, &frames)).trace.flows[0].start.as_ns(),
        110_007
    );
}

#[test]
fn clocks_of_interfaces_are_brought_together() {
    for big_endian in [false, true] {
        let style = Style {
            big_endian,
            ..Style::PLAIN
        };
        let data = |host, time| segment(time, (host, 9), CLIENT, 0, ACK, 10);
        let mut bytes = section(style);
        // Microseconds; 2^-10 s; milliseconds that count from 100 s on.
        bytes.extend(interface(style, 6, 0));
        bytes.extend(interface(style, 0x80 | 10, 0));
        bytes.extend(interface(style, 3, 100));
        bytes.extend(packet(style, 0, 100_000_000, &data(1, 0)));
        bytes.extend(packet(style, 1, 100 * 1_024 + 512, &data(2, 0)));
        bytes.extend(packet(style, 2, 250, &data(3, 0)));
        let starts: Vec<_> = read(&bytes)
            .trace
            .flows
            .iter()
            .map(|flow| flow.start.as_ns())
            .collect();
        assert_eq!(starts, [0, 250_000_000, 500_000_000]);
    }
}

#[test]
fn sections_of_either_byte_order_follow_one_another() {
    let big = Style {
        big_endian: true,
        ..Style::PLAIN
    };
    let frames = conversation();
    let mut bytes = pcapng(Style::PLAIN, &frames[..6]);
    bytes.extend(pcapng(big, &frames[6..]));
    assert_eq!(
        but_for_blocks(read(&bytes)),
        read(&pcap(Style::PLAIN, &frames))
    );
}

#[test]
fn segments_in_any_order_make_the_same_flow() {
    let data = |time, seq| segment(time, (1, 2), CLIENT, seq, ACK, 1_000);
    let base = u32::MAX - 1_499;
    let seqs = [0, 1_000, 2_000, 3_000].map(|offset| base.wrapping_add(offset));
    for order in [[0, 1, 2, 3], [3, 2, 1, 0], [2, 0, 3, 1]] {
        let frames: Vec<_> = order
            .iter()
            .enumerate()
            .map(|(time, index)| data(time as u64, seqs[*index]))
            .collect();
        assert_eq!(flows_of(&frames), [(0, 1, 0, 4_000)]);
    }
}

#[test]
fn a_syn_starts_the_same_ports_anew() {
    let client = |time, seq, flags, payload| segment(time, (1, 2), CLIENT, seq, flags, payload);
    let server = |time, seq, flags, payload| segment(time, (2, 1), SERVER, seq, flags, payload);
    let frames = [
        client(0, 99, SYN, 0),
        client(10, 100, ACK, 500),
        server(20, 700, ACK, 40),
        // A late copy of the SYN changes nothing.
        client(30, 99, SYN, 0),
        client(40, 600, ACK, 500),
        // The same sequence numbers again, in a new connection.
        client(100, 80, SYN, 0),
        server(105, 699, SYN | ACK, 0),
        client(110, 100, ACK, 500),
        server(120, 700, ACK, 40),
    ];
    assert_eq!(
        flows_of(&frames),
        [
            (0, 1, 10_000, 1_000),
            (1, 0, 20_000, 40),
            (0, 1, 110_000, 500),
            (1, 0, 120_000, 40)
        ]
    );
}

#[test]
fn a_pause_starts_a_new_flow() {
    let data = |time, seq| segment(time, (1, 2), CLIENT, seq, ACK, 100);
    let frames = [
        data(0, 0),
        data(900_000, 100),
        data(2_500_000, 200),
        // After a pause, retransmitted data that was delivered before is not a flow.
        data(5_000_000, 200),
        data(5_100_000, 300),
    ];
    let bytes = pcap(Style::PLAIN, &frames);
    let capture = read(&bytes);
    assert_eq!(
        outline(&capture),
        [
            (0, 1, 0, 200),
            (0, 1, 2_500_000_000, 100),
            (0, 1, 5_100_000_000, 100)
        ]
    );
    assert_eq!(capture.skipped.repeated, 1);
    let patient = CaptureOptions {
        idle: Duration::from_secs(3),
        ..CaptureOptions::default()
    };
    let capture = read_with(&bytes, &patient).unwrap();
    assert_eq!(outline(&capture), [(0, 1, 0, 400)]);
}

/// Keep-alives of BSD and Windows repeat the last byte.
#[test]
fn bytes_that_were_seen_do_not_end_a_pause() {
    let data = |time, seq, bytes| segment(time, (1, 2), CLIENT, seq, ACK, bytes);
    let mut frames = vec![data(0, 0, 100)];
    frames.extend((1..6).map(|beat| data(beat * 900_000, 99, 1)));
    frames.push(data(5_400_000, 100, 50));
    let capture = read(&pcap(Style::PLAIN, &frames));
    assert_eq!(
        outline(&capture),
        [(0, 1, 0, 100), (0, 1, 5_400_000_000, 50)]
    );
    // The first one is within the second that ends the flow.
    assert_eq!(capture.skipped.repeated, 4);
}

/// The older block of a packet holds a number of lost packets and options, too.
#[test]
fn packet_blocks_are_read() {
    for big_endian in [false, true] {
        let style = Style {
            big_endian,
            ..Style::PLAIN
        };
        let mut bytes = section(style);
        bytes.extend(interface(style, 9, 0));
        for (place, frame) in conversation().iter().enumerate() {
            bytes.extend(match place % 2 {
                0 => packet(style, 0, frame.time_ns, frame),
                _ => packet_block(style, 0, frame.time_ns, frame),
            });
        }
        bytes.extend(block(style, 5, &[0; 12]));
        bytes.extend(block(style, 0x77, &[0; 4]));
        let capture = read(&bytes);
        let expected = read(&pcap(Style::PLAIN, &conversation()));
        assert_eq!(outline(&capture), outline(&expected));
        assert_eq!(capture.packets, 11);
        let blocks = [("interface statistics", 1), ("type 0x77", 1)];
        let blocks = blocks.map(|(name, count)| (name.to_owned(), count));
        assert_eq!(capture.blocks, blocks.into());
    }
}

#[test]
fn of_a_capture_that_is_cut_short_the_whole_packets_are_taken_if_asked_for() {
    let frames = conversation();
    let options = CaptureOptions {
        truncated: true,
        ..CaptureOptions::default()
    };
    for whole in [pcap(Style::PLAIN, &frames), pcapng(Style::PLAIN, &frames)] {
        let full = read_with(&whole, &options).unwrap();
        assert!(!full.cut_short);
        assert_eq!(outline(&full), outline(&read(&whole)));
        for lost in 1..60 {
            let bytes = &whole[..whole.len() - lost];
            let capture = read_with(bytes, &options).unwrap();
            assert!(capture.cut_short);
            assert_eq!(capture.packets, 10);
            assert_eq!(
                outline(&capture),
                outline(&full),
                "the last one acknowledges"
            );
            let refused = read_with(bytes, &CaptureOptions::default()).unwrap_err();
            assert!(
                refused
                    .to_string()
                    .contains("--truncated takes the 10 packets"),
                "{refused}"
            );
        }
    }
}

/// A pause before 1970, where times are negative, is detected too.
#[test]
fn a_clock_that_is_behind_1970_makes_no_difference() {
    let data = |seq| segment(0, (1, 2), CLIENT, seq, ACK, 100);
    let flows = |offset_s: i64| {
        let mut bytes = section(Style::PLAIN);
        bytes.extend(interface(Style::PLAIN, 6, offset_s));
        for (time, seq) in [(0, 0), (900_000, 100), (2_500_000, 200)] {
            bytes.extend(packet(Style::PLAIN, 0, time, &data(seq)));
        }
        outline(&read(&bytes))
    };
    let expected = [(0, 1, 0, 200), (0, 1, 2_500_000_000, 100)];
    for offset_s in [0, 1_700_000_000, -1_000, i64::MIN, i64::MAX] {
        assert_eq!(flows(offset_s), expected, "{offset_s}");
    }
}

/// The latest start is eleven days after the earliest packet, and resolutions go to 10^-127 s.
#[test]
fn clocks_at_their_ends_are_read_or_refused() {
    let data = |seq| segment(0, (1, 2), CLIENT, seq, ACK, 100);
    let read_times = |resolution, times: [u64; 2]| {
        let mut bytes = section(Style::PLAIN);
        bytes.extend(interface(Style::PLAIN, resolution, 0));
        for (time, seq) in times.into_iter().zip([0, 100]) {
            bytes.extend(packet(Style::PLAIN, 0, time, &data(seq)));
        }
        read_with(&bytes, &CaptureOptions::default())
    };
    let last = Trace::MAX_START_NS;
    let starts = |times| outline(&read_times(9, times).unwrap());
    assert_eq!(starts([0, last]), [(0, 1, 0, 100), (0, 1, last, 100)]);
    for (resolution, times) in [(9, [0, last + 1]), (9, [0, u64::MAX]), (0, [0, u64::MAX])] {
        let error = read_times(resolution, times).unwrap_err().to_string();
        assert!(error.contains("at most 1000000 s are possible"), "{error}");
    }
    for resolution in [127, 255] {
        assert_eq!(
            read_times(resolution, [0, u64::MAX])
                .unwrap()
                .trace
                .flows
                .len(),
            1
        );
    }
}

#[test]
fn data_with_the_syn_counts() {
    let frames = [
        segment(0, (1, 2), CLIENT, 99, SYN, 50),
        segment(9, (1, 2), CLIENT, 100, ACK, 50),
        segment(10, (1, 2), CLIENT, 150, ACK, 50),
    ];
    assert_eq!(flows_of(&frames), [(0, 1, 0, 100)]);
}

#[test]
fn udp_is_summed_in_each_direction() {
    let datagram = |time, hosts: (u8, u8), ports, payload| {
        let id = (time as u16, 0, false);
        let inner = ipv4_fragment(hosts.0, hosts.1, 17, id, &udp(ports, payload));
        frame(time, ethernet(&[], &inner))
    };
    let frames = [
        datagram(5, (1, 2), CLIENT, 100),
        datagram(6, (1, 2), CLIENT, 100),
        datagram(7, (2, 1), SERVER, 1),
        datagram(8, (2, 1), SERVER, 0),
    ];
    let capture = read(&pcap(Style::PLAIN, &frames));
    assert_eq!(outline(&capture), [(0, 1, 0, 200), (1, 0, 2_000, 1)]);
    assert_eq!(capture.trace.kind_name(&capture.trace.flows[0]), "udp");
}

/// The same segment behind every kind of header that is read.
#[test]
fn every_link_type_and_every_kind_of_header_reads_alike() {
    let inner = tcp(CLIENT, 1, ACK, 777);
    let v4 = ipv4(1, 2, 6, &inner);
    // Hop-by-hop and destination options of eight bytes.
    let options = [(0, [0, 1, 4, 0, 0, 0, 0]), (60, [0, 1, 4, 0, 0, 0, 0])];
    let v6 = ipv6(1, 2, &options, 6, &inner);
    let after = |header: &[u8], inner: &[u8]| [header, inner].concat();
    for ip in [v4, ipv6(1, 2, &[], 6, &inner), v6] {
        let kind = ether_type(&ip);
        let cooked: Vec<u8> = [&[0; 14][..], &kind].concat();
        let cooked2: Vec<u8> = [&kind[..], &[0; 18]].concat();
        let family: u8 = if ip[0] >> 4 == 4 { 2 } else { 30 };
        for (link, data) in [
            (1, ethernet(&[], &ip)),
            (1, ethernet(&[7], &ip)),
            (1, ethernet(&[7, 8], &ip)),
            (101, ip.clone()),
            (if family == 2 { 228 } else { 229 }, ip.clone()),
            (113, after(&cooked, &ip)),
            (276, after(&cooked2, &ip)),
            (0, after(&[family, 0, 0, 0], &ip)),
            (0, after(&[0, 0, 0, family], &ip)),
            (108, after(&[0, 0, 0, family], &ip)),
        ] {
            let style = Style {
                link,
                ..Style::PLAIN
            };
            let capture = read(&pcap(style, &[frame(3, data)]));
            assert_eq!(outline(&capture), [(0, 1, 0, 777)], "link type {link}");
        }
    }
}

#[test]
fn cut_packets_count_with_their_length_on_the_wire() {
    for keep in [54, 60, 68, 96] {
        let frames: Vec<_> = conversation().into_iter().map(|f| f.cut(keep)).collect();
        for bytes in [pcap(Style::PLAIN, &frames), pcapng(Style::PLAIN, &frames)] {
            let sizes: Vec<_> = read(&bytes).trace.flows.iter().map(|f| f.size).collect();
            assert_eq!(sizes, [300, 3 * 1_448], "{keep} bytes kept");
        }
    }
    let mut frames = conversation();
    frames[3] = frames[3].clone().cut(45);
    let capture = read(&pcap(Style::PLAIN, &frames));
    assert_eq!(outline(&capture), [(0, 1, 200_000, 3 * 1_448)].map(|f| f));
    assert_eq!(capture.skipped.cut_off, 1);
}

/// A host that leaves segmentation to its interface writes no length for more than 64 KB.
#[test]
fn without_a_length_in_the_header_that_of_the_packet_counts() {
    let mut large = segment(0, (1, 2), CLIENT, 1, ACK, 100_000);
    large.data[16..18].copy_from_slice(&[0, 0]);
    assert_eq!(flows_of(&[large.clone()]), [(0, 1, 0, 100_000)]);
    assert_eq!(flows_of(&[large.cut(96)]), [(0, 1, 0, 100_000)]);
}

#[test]
fn fragments_belong_to_the_flow_of_the_first() {
    let whole = tcp(CLIENT, 1_000, ACK, 968);
    let (first, second) = whole.split_at(480);
    let piece = |time, place, inner: &[u8]| {
        frame(time, ethernet(&[], &ipv4_fragment(1, 2, 6, place, inner)))
    };
    let frames = [
        piece(0, (7, 0, true), first),
        piece(1, (7, 480, false), second),
        // The same again, unfragmented, as a retransmission.
        segment(2, (1, 2), CLIENT, 1_000, ACK, 968),
        // The first fragment of this one is missing.
        piece(3, (8, 480, false), second),
    ];
    let capture = read(&pcap(Style::PLAIN, &frames));
    assert_eq!(outline(&capture), [(0, 1, 0, 968)]);
    assert_eq!(capture.skipped.fragment, 1);

    let whole = udp(CLIENT, 992);
    let (first, second) = whole.split_at(496);
    let header = |offset: u8, more: u8| (44, [0, offset >> 5, offset << 3 | more, 0, 0, 0, 9]);
    let frames = [
        frame(0, ethernet(&[], &ipv6(1, 2, &[header(0, 1)], 17, first))),
        frame(1, ethernet(&[], &ipv6(1, 2, &[header(62, 0)], 17, second))),
    ];
    assert_eq!(flows_of(&frames), [(0, 1, 0, 992)]);
}

#[test]
fn hosts_are_dealt_out_to_ports_in_turn() {
    let frames: Vec<_> = [(1, 2), (3, 4), (5, 6), (1, 4), (1, 5)]
        .iter()
        .enumerate()
        .map(|(time, hosts)| segment(time as u64, *hosts, CLIENT, 0, ACK, 10))
        .collect();
    let bytes = pcap(Style::PLAIN, &frames);
    let ends = |ports| {
        let options = CaptureOptions {
            ports,
            ..CaptureOptions::default()
        };
        let capture = read_with(&bytes, &options).unwrap();
        let ends: Vec<_> = outline(&capture).iter().map(|f| (f.0, f.1)).collect();
        capture.trace.validate(capture.ports).unwrap();
        (ends, capture.ports, capture.skipped.same_port)
    };
    let all = vec![(0, 1), (2, 3), (4, 5), (0, 3), (0, 4)];
    assert_eq!(ends(None), (all.clone(), 6, 0));
    assert_eq!(ends(Some(16)), (all, 16, 0));
    // Host 4 is port 0 again, so that the last flow has both ends there.
    assert_eq!(ends(Some(4)), (vec![(0, 1), (2, 3), (0, 1), (0, 3)], 4, 1));
}

#[test]
fn starts_are_relative_to_the_earliest_packet_and_sorted() {
    let day = 86_400_000_000;
    let frames = [
        segment(day + 30, (1, 2), CLIENT, 0, ACK, 10),
        segment(day + 20, (3, 4), CLIENT, 0, ACK, 10),
        segment(day + 5, (3, 4), CLIENT, 10, ACK, 10),
        frame(day, ethernet(&[], &ipv4(1, 2, 1, &[8, 0, 0, 0]))),
    ];
    let capture = read(&pcap(Style::PLAIN, &frames));
    assert_eq!(outline(&capture), [(2, 3, 5_000, 20), (0, 1, 30_000, 10)]);
    assert_eq!(capture.skipped.not_tcp_or_udp, 1);
    assert!(capture.trace.flows.iter().map(|flow| flow.id).eq(0..2));
}

/// A reader that gives one byte at a time, as a slow pipe may.
struct Trickle<'a>(&'a [u8]);

impl io::Read for Trickle<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let length = buffer.len().min(1);
        io::Read::read(&mut self.0, &mut buffer[..length])
    }
}

#[test]
fn short_reads_make_no_difference() {
    for bytes in [
        pcap(Style::PLAIN, &conversation()),
        pcapng(Style::PLAIN, &conversation()),
    ] {
        let slow = Trickle(&bytes);
        let capture = Capture::from_reader(slow, "pipe", &CaptureOptions::default()).unwrap();
        assert_eq!(capture, read(&bytes));
    }
}
