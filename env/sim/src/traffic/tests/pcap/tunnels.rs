//! Flows within tunnels.

use proptest::prelude::*;

use super::*;

const VXLAN: [u8; 8] = [8, 0, 0, 0, 0, 0, 42, 0];

fn join(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

/// Returns a UDP datagram to a port with this payload.
fn udp_to(port: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = udp((49_999, port), 0);
    bytes[4..6].copy_from_slice(&(8 + payload.len() as u16).to_be_bytes());
    bytes.extend(payload);
    bytes
}

/// Returns an IP packet between the ends of a tunnel, 10.0.0.200 and 10.0.0.201.
fn outside(protocol: u8, payload: &[u8]) -> Vec<u8> {
    ipv4(200, 201, protocol, payload)
}

fn outside_v6(protocol: u8, payload: &[u8]) -> Vec<u8> {
    let options = [(60, [0, 1, 4, 0, 0, 0, 0])];
    ipv6(200, 201, &options, protocol, payload)
}

/// Returns an Ethernet frame with another EtherType than that of IP.
fn frame_of(kind: u16, payload: &[u8]) -> Vec<u8> {
    let mut bytes = vec![2; 12];
    bytes.extend(kind.to_be_bytes());
    bytes.extend(payload);
    bytes.resize(bytes.len().max(60), 0);
    bytes
}

/// Returns an inner packet in every supported tunnel, as Ethernet frames.
fn tunnels(ip: &[u8]) -> Vec<(&'static str, Vec<u8>)> {
    let frame = ethernet(&[], ip);
    let tagged = ethernet(&[7, 8], ip);
    let kind = ether_type(ip);
    let ipip = if ip[0] >> 4 == 4 { 4 } else { 41 };
    let ppp = if ip[0] >> 4 == 4 {
        [0, 0x21]
    } else {
        [0, 0x57]
    };
    let gre = |header: &[u8], inner: &[u8]| outside(47, &join(&[header, inner]));
    let geneve = |header: &[u8], inner: &[u8]| outside(17, &udp_to(6_081, &join(&[header, inner])));
    let length = (ip.len() as u16 + 2).to_be_bytes();
    let label = [0, 1, 0x10, 64];
    let last = [0, 2, 0x11, 64];
    // A frame to an address that starts with four zeros, as old vendors' addresses do.
    let mut zeros = frame.clone();
    zeros[0] = 0;
    let mut fours = frame.clone();
    // The version, header length and total length do not match the packet.
    fours[..4].copy_from_slice(&[0x45, 2, 0xff, 0xff]);
    let packets = vec![
        (
            "VXLAN",
            outside(17, &udp_to(4_789, &join(&[&VXLAN, &frame]))),
        ),
        (
            "VXLAN",
            outside(17, &udp_to(4_789, &join(&[&VXLAN, &tagged]))),
        ),
        (
            "VXLAN",
            outside(17, &udp_to(8_472, &join(&[&VXLAN, &frame]))),
        ),
        (
            "VXLAN",
            outside_v6(17, &udp_to(4_789, &join(&[&VXLAN, &frame]))),
        ),
        // With a group policy.
        (
            "VXLAN",
            outside(
                17,
                &udp_to(4_789, &join(&[&[0x88, 8, 0, 9, 0, 0, 1, 0], &frame])),
            ),
        ),
        ("GENEVE", geneve(&[0, 0, 0x65, 0x58, 0, 0, 1, 0], &frame)),
        (
            "GENEVE",
            geneve(
                &[2, 0x40, 0x65, 0x58, 0, 0, 1, 0, 1, 2, 3, 1, 0, 0, 0, 0],
                &frame,
            ),
        ),
        ("GENEVE", geneve(&[0, 0, kind[0], kind[1], 0, 0, 1, 0], ip)),
        ("GRE", gre(&[0, 0, kind[0], kind[1]], ip)),
        (
            "GRE",
            gre(
                &[
                    0xb0, 0, kind[0], kind[1], 1, 1, 0, 0, 0, 0, 0, 9, 0, 0, 0, 1,
                ],
                ip,
            ),
        ),
        // NVGRE has a key.
        ("GRE", gre(&[0x20, 0, 0x65, 0x58, 0, 0, 9, 1], &frame)),
        ("ERSPAN", gre(&[0, 0, 0x88, 0xbe], &frame)),
        (
            "ERSPAN",
            gre(
                &[0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x10, 7, 0, 1, 0, 0, 0, 2],
                &frame,
            ),
        ),
        (
            "ERSPAN",
            gre(
                &[
                    0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 7, 0, 1, 0, 0, 0, 2, 0, 0, 0, 0,
                ],
                &frame,
            ),
        ),
        (
            "ERSPAN",
            gre(
                &join(&[
                    &[
                        0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 7, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1,
                    ],
                    &[5; 8],
                ]),
                &tagged,
            ),
        ),
        (
            "ERSPAN",
            gre(
                &[
                    0x10, 0, 0x22, 0xeb, 0, 0, 0, 1, 0x20, 7, 0, 1, 0, 0, 0, 2, 0, 0, 8, 0,
                ],
                ip,
            ),
        ),
        ("IP in IP", outside(ipip, ip)),
        ("IP in IP", outside_v6(ipip, ip)),
        ("MPLS", outside(137, &join(&[&label, &last, ip]))),
    ];
    let mut frames: Vec<_> = packets
        .into_iter()
        .map(|(name, packet)| (name, ethernet(&[], &packet)))
        .collect();
    frames.extend([
        ("MPLS", frame_of(0x8847, &join(&[&label, &last, ip]))),
        ("MPLS", frame_of(0x8848, &join(&[&last, ip]))),
        // Pseudowires with and without a control word.
        (
            "MPLS",
            frame_of(0x8847, &join(&[&label, &last, &[0, 0, 0, 1], &frame])),
        ),
        ("MPLS", frame_of(0x8847, &join(&[&last, &frame]))),
        ("MPLS", frame_of(0x8847, &join(&[&last, &zeros]))),
        ("MPLS", frame_of(0x8847, &join(&[&last, &[0; 4], &zeros]))),
        ("MPLS", frame_of(0x8847, &join(&[&last, &fours]))),
        (
            "PPPoE",
            frame_of(0x8864, &join(&[&[0x11, 0, 0, 9], &length, &ppp, ip])),
        ),
        (
            "PPPoE",
            join(&[
                &[2; 12],
                &[0x81, 0, 0, 5, 0x88, 0x64, 0x11, 0, 0, 9],
                &length,
                &ppp,
                ip,
            ]),
        ),
    ]);
    frames
}

fn inner(seq: u32, payload: usize) -> [Vec<u8>; 2] {
    let tcp = tcp(CLIENT, seq, ACK, payload);
    [ipv4(1, 2, 6, &tcp), ipv6(1, 2, &[], 6, &tcp)]
}

/// Checks the name of the only tunnel of a capture, and the number of its packets.
fn named(capture: &Capture, count: usize, name: &str) {
    assert_eq!(capture.tunnels.to_string(), format!("{count} in {name}"));
}

#[test]
fn the_flow_within_every_tunnel_counts() {
    // The shortest one makes padded frames.
    for payload in [1, 777] {
        for ip in inner(1, payload) {
            for (name, data) in tunnels(&ip) {
                for cut in [usize::MAX, 160] {
                    let frame = frame(0, data.clone()).cut(cut);
                    let what = format!("{name}: {:02x?}", &data[..data.len().min(60)]);
                    let capture =
                        read_with(&pcap(Style::PLAIN, &[frame]), &CaptureOptions::default())
                            .unwrap_or_else(|error| panic!("{error}: {what}"));
                    assert_eq!(outline(&capture), [(0, 1, 0, payload as u64)], "{what}");
                    let first = capture.hosts[0].to_string();
                    assert!(["10.0.0.1", "fd00::1"].contains(&first.as_str()), "{what}");
                    named(&capture, 1, name);
                }
            }
        }
    }
}

#[test]
fn tunnels_within_tunnels_are_read_to_a_depth() {
    let [ip, _] = inner(1, 777);
    let frame_in = |frame: &[u8]| {
        let packet = outside(17, &udp_to(4_789, &join(&[&VXLAN, frame])));
        ethernet(&[], &packet)
    };
    for (name, data) in tunnels(&ip) {
        let capture = read(&pcap(Style::PLAIN, &[frame(0, frame_in(&data))]));
        assert_eq!(outline(&capture), [(0, 1, 0, 777)], "{name}");
        assert!(capture.tunnels.vxlan > 0);
    }
    let mut deep = ip;
    for _ in 0..15 {
        deep = outside(4, &deep);
    }
    let style = Style {
        link: 101,
        ..Style::PLAIN
    };
    let capture = read(&pcap(style, &[frame(0, deep.clone())]));
    assert_eq!(outline(&capture), [(0, 1, 0, 777)]);
    let [good, _] = inner(1, 10);
    let frames = [frame(0, outside(4, &deep)), frame(1, good)];
    let capture = read(&pcap(style, &frames));
    assert_eq!(capture.skipped.malformed, 1);
}

/// A packet that a host captures both within a tunnel and outside of it counts once.
#[test]
fn a_packet_that_was_captured_with_and_without_its_tunnel_counts_once() {
    let mut inner_udp = udp(CLIENT, 600);
    inner_udp[8] = 1;
    let udp_packet = ipv4_fragment(1, 2, 17, (9, 0, false), &inner_udp);
    let [tcp_packet, _] = inner(1, 600);
    for ip in [udp_packet, tcp_packet] {
        let mut frames = vec![frame(0, ethernet(&[], &ip))];
        for (_, data) in tunnels(&ip) {
            frames.push(frame(10, data.clone()));
            frames.push(frame(20, data).cut(160));
        }
        let capture = read(&pcap(Style::PLAIN, &frames));
        assert_eq!(outline(&capture), [(0, 1, 0, 600)]);
    }
}

#[test]
fn the_flow_between_the_ends_counts_if_asked_for() {
    let [ip, _] = inner(1, 777);
    let options = CaptureOptions {
        outer: true,
        ..CaptureOptions::default()
    };
    for (name, data) in tunnels(&ip) {
        let bytes = pcap(Style::PLAIN, &[frame(0, data.clone())]);
        match (name, read_with(&bytes, &options)) {
            ("VXLAN" | "GENEVE", Ok(capture)) => {
                let tunnelled = capture.trace.flows[0].size;
                assert!((777 + 8..777 + 120).contains(&tunnelled), "{tunnelled}");
                assert!(capture.hosts[0].to_string().ends_with("200") || data[12] == 0x86);
                named(&capture, 1, name);
            }
            // These have only the inner IP header.
            ("MPLS" | "PPPoE", Ok(capture)) if data[12] == 0x88 || data[12] == 0x81 => {
                assert_eq!(outline(&capture), [(0, 1, 0, 777)]);
            }
            (_, Err(error)) => {
                assert!(
                    error.to_string().contains("1 neither TCP nor UDP"),
                    "{error}"
                );
            }
            (name, Ok(capture)) => panic!("{name}: {:?}", capture.trace.flows),
        }
    }
}

#[test]
fn what_only_has_the_port_of_a_tunnel_stays_udp() {
    let [ip, _] = inner(1, 777);
    let frame_in = ethernet(&[], &ip);
    let no_frame = [0x33; 60];
    for (port, payload) in [
        // Neither the flag of VXLAN, nor a frame behind a header with reserved bits.
        (4_789, join(&[&[0, 0, 0, 0, 0, 0, 1, 0], &frame_in])),
        (4_789, join(&[&[8, 1, 2, 3, 4, 5, 6, 7], &no_frame])),
        (4_789, VXLAN.to_vec()),
        (4_789, b"short".to_vec()),
        // This port has other uses too.
        (8_472, join(&[&VXLAN, &no_frame])),
        // Another version, a control packet, an unknown protocol, options beyond the end.
        (
            6_081,
            join(&[&[0x40, 0, 0x65, 0x58, 0, 0, 1, 0], &frame_in]),
        ),
        (
            6_081,
            join(&[&[0, 0x80, 0x65, 0x58, 0, 0, 1, 0], &frame_in]),
        ),
        (6_081, join(&[&[0, 0, 0x12, 0x34, 0, 0, 1, 0], &frame_in])),
        (
            6_081,
            join(&[&[0x3f, 0, 0x65, 0x58, 0, 0, 1, 0], &[0; 100]]),
        ),
        (4_790, join(&[&VXLAN, &frame_in])),
    ] {
        let packet = outside(17, &udp_to(port, &payload));
        let capture = read(&pcap(Style::PLAIN, &[frame(0, ethernet(&[], &packet))]));
        let size = payload.len() as u64;
        assert_eq!(
            outline(&capture),
            [(0, 1, 0, size)],
            "{port}: {payload:02x?}"
        );
        assert_eq!(capture.tunnels.to_string(), "");
    }
}

/// The first fragment of a tunnel's packet holds the inner header, which states the length of the inner
/// packet.
#[test]
fn a_fragmented_tunnel_counts_by_its_inner_lengths() {
    let [ip, _] = inner(1, 1_448);
    for (protocol, payload) in [
        (17, udp_to(4_789, &join(&[&VXLAN, &ethernet(&[], &ip)]))),
        (47, join(&[&[0, 0, 8, 0], &ip])),
        (4, ip.clone()),
    ] {
        let piece = |time, place, part: &[u8]| {
            let packet = ipv4_fragment(200, 201, protocol, place, part);
            frame(time, ethernet(&[], &packet))
        };
        let frames = [
            piece(0, (5, 0, true), &payload[..1_000]),
            piece(1, (5, 1_000, false), &payload[1_000..]),
        ];
        let capture = read(&pcap(Style::PLAIN, &frames));
        assert_eq!(outline(&capture), [(0, 1, 0, 1_448)], "{protocol}");
        assert_eq!(capture.skipped.total(), 0);
    }
}

/// Fragments within a tunnel are identified by the inner header.
#[test]
fn fragments_within_a_tunnel_belong_together() {
    let whole = udp(CLIENT, 992);
    let packets = [
        ipv4_fragment(1, 2, 17, (7, 0, true), &whole[..504]),
        ipv4_fragment(1, 2, 17, (7, 504, false), &whole[504..]),
    ];
    let [first, second] = packets.map(|ip| tunnels(&ip));
    for ((name, first), (_, second)) in first.into_iter().zip(second) {
        let frames = [frame(0, first), frame(1, second)];
        let capture = read(&pcap(Style::PLAIN, &frames));
        assert_eq!(outline(&capture), [(0, 1, 0, 992)], "{name}");
    }
}

#[test]
fn what_a_tunnel_carries_besides_is_counted_by_its_reason() {
    let [good, _] = inner(1, 10);
    let arp = frame_of(
        0x0806,
        &[
            0, 1, 8, 0, 6, 4, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0,
        ],
    );
    let ping = ipv4(1, 2, 1, &[8, 0, 0, 0]);
    let skipped = |packet: Vec<u8>, keep: usize| {
        let frames = [frame(0, packet).cut(keep), frame(1, ethernet(&[], &good))];
        read(&pcap(Style::PLAIN, &frames)).skipped
    };
    let gre = |header: &[u8], inner: &[u8]| ethernet(&[], &outside(47, &join(&[header, inner])));
    let all = usize::MAX;
    let vxlan = |frame: &[u8]| ethernet(&[], &outside(17, &udp_to(4_789, &join(&[&VXLAN, frame]))));
    assert_eq!(skipped(vxlan(&arp), all).not_ip, 1);
    assert_eq!(skipped(vxlan(&ethernet(&[], &ping)), all).not_tcp_or_udp, 1);
    let [large, _] = inner(1, 500);
    assert_eq!(skipped(vxlan(&ethernet(&[], &large)), 80).cut_off, 1);
    assert_eq!(skipped(gre(&[0, 0, 8, 0], &large), 14 + 24 + 2).cut_off, 1);
    // Routing in the header, version 1, an unknown protocol, an ERSPAN header of another version.
    assert_eq!(
        skipped(gre(&[0x40, 0, 8, 0, 0, 0, 0, 0], &good), all).not_tcp_or_udp,
        1
    );
    assert_eq!(
        skipped(gre(&[0x20, 1, 0x88, 0x0b, 0, 0, 0, 0], &good), all).not_tcp_or_udp,
        1
    );
    assert_eq!(skipped(gre(&[0, 0, 0x12, 0x34], &good), all).not_ip, 1);
    let other = [0x10, 0, 0x88, 0xbe, 0, 0, 0, 1, 0x30, 7, 0, 1, 0, 0, 0, 2];
    assert_eq!(
        skipped(gre(&other, &ethernet(&[], &good)), all).malformed,
        1
    );
    // Discovery and control of PPPoE, and a message of an MPLS network.
    assert_eq!(
        skipped(frame_of(0x8863, &[0x11, 9, 0, 0, 0, 0]), all).not_ip,
        1
    );
    let control = [0x11, 0, 0, 9, 0, 4, 0xc0, 0x21, 1, 1];
    assert_eq!(skipped(frame_of(0x8864, &control), all).not_ip, 1);
    let message = join(&[&[0, 2, 0x11, 64, 0x10, 0, 0, 7], &good]);
    assert_eq!(skipped(frame_of(0x8847, &message), all).not_ip, 1);
    assert_eq!(
        skipped(frame_of(0x8847, &[0, 0, 0x10, 64].repeat(20)), all).malformed,
        1
    );
}

/// Tags of virtual networks are not tunnels, however many there are.
#[test]
fn many_tags_are_read() {
    let [ip, _] = inner(1, 777);
    for tags in 0..9 {
        let vlans: Vec<u16> = (1..=tags).collect();
        let capture = read(&pcap(Style::PLAIN, &[frame(0, ethernet(&vlans, &ip))]));
        assert_eq!(outline(&capture), [(0, 1, 0, 777)]);
        assert_eq!(capture.tunnels.to_string(), "");
    }
}

prop_compose! {
    /// A packet with payload: of UDP or not, its length, and the tunnels of each of its sightings.
    fn any_sighting()(
        is_udp in any::<bool>(),
        payload in 1_usize..1_400,
        sightings in prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 0..3), 1..4),
    ) -> (bool, usize, Vec<Vec<prop::sample::Index>>) {
        (is_udp, payload, sightings)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// The bytes of a packet count once, whatever tunnels it is in and however often it was captured.
    #[test]
    fn every_byte_counts_once(packets in prop::collection::vec(any_sighting(), 1..12), cut in any::<bool>()) {
        let (mut frames, mut sizes, mut seq) = (Vec::new(), [0_u64; 2], 7_u32);
        for (number, (is_udp, payload, sightings)) in (1_u16..).zip(packets) {
            let ip = match is_udp {
                true => ipv4_fragment(1, 2, 17, (number, 0, false), &udp(CLIENT, payload)),
                false => ipv4(3, 4, 6, &tcp(CLIENT, seq, ACK, payload)),
            };
            sizes[usize::from(is_udp)] += payload as u64;
            seq = seq.wrapping_add(if is_udp { 0 } else { payload as u32 });
            for (place, nest) in sightings.iter().enumerate() {
                let mut data = ethernet(&[], &ip);
                for (depth, index) in nest.iter().enumerate() {
                    data = match depth {
                        0 => {
                            let choices = tunnels(&ip);
                            choices[index.index(choices.len())].1.clone()
                        }
                        // The remaining protocols carry whole frames.
                        _ => {
                            let packet = outside(17, &udp_to(4_789, &join(&[&VXLAN, &data])));
                            ethernet(&[], &packet)
                        }
                    };
                }
                let keep = if cut && payload > 64 { data.len() - payload + 32 } else { data.len() };
                frames.push(frame(u64::from(number) * 5_000 + place as u64 * 300, data).cut(keep));
            }
        }
        let capture = read(&pcap(Style::PLAIN, &frames));
        let found = [0, 1].map(|kind| {
            let flows = capture.trace.flows.iter().filter(|flow| flow.kind == kind);
            flows.map(|flow| flow.size).sum::<u64>()
        });
        prop_assert_eq!(found, sizes);
        prop_assert_eq!(capture.skipped.total(), 0);
    }
}
