use proptest::prelude::*;

use super::*;

fn error(bytes: &[u8]) -> String {
    let error = read_with(bytes, &CaptureOptions::default()).unwrap_err();
    error.to_string()
}

#[test]
fn what_is_no_capture_is_told() {
    for (bytes, problem) in [
        (&b""[..], "the file is empty"),
        (&[0xd4, 0xc3], "it starts with [d4, c3]"),
        (
            b"id,src,dst\n",
            "it starts with [69, 64, 2c, 73]; expected pcap or pcapng",
        ),
        (
            &[0x1f, 0x8b, 8, 0, 0],
            "it is compressed by gzip; unpack it first",
        ),
    ] {
        let error = error(bytes);
        let expected = format!("test.pcap: not a packet capture: {problem}");
        assert!(error.starts_with(&expected), "{error}");
    }
    let style = Style {
        link: 105,
        ..Style::PLAIN
    };
    assert!(
        error(&pcap(style, &conversation()))
            .contains("link type 105 is not read; it must be one of 0 (null), 1 (Ethernet)")
    );
}

#[test]
fn a_capture_without_flows_says_what_it_has() {
    assert_eq!(
        error(&pcap(Style::PLAIN, &[])),
        "test.pcap: no flows: the capture has no packets"
    );
    assert_eq!(
        error(&section(Style::PLAIN)),
        "test.pcap: no flows: the capture has no packets"
    );
    let mut statistics = section(Style::PLAIN);
    statistics.extend(block(Style::PLAIN, 5, &[0; 12]));
    assert_eq!(
        error(&statistics),
        "test.pcap: no flows: the capture has no packets, only blocks of other types: 1 interface \
         statistics"
    );
    let frames = conversation();
    assert_eq!(
        error(&pcap(Style::PLAIN, &frames[..3])),
        "test.pcap: no flows: of 3 packets 3 without payload; a flow needs TCP or UDP payload \
         between two ports"
    );
    let local = segment(0, (1, 1), CLIENT, 0, ACK, 10);
    let arp = frame(
        1,
        [&[2; 12][..], &[8, 6], &[0, 1, 8, 0, 6, 4, 0, 1], &[0; 38]].concat(),
    );
    let error = error(&pcap(Style::PLAIN, &[local, arp]));
    assert!(
        error.contains("of 2 packets 1 not IP, 1 with both ends at one port"),
        "{error}"
    );
}

#[test]
fn a_damaged_place_is_found() {
    let frames = conversation();
    let whole = pcap(Style::PLAIN, &frames);
    let second = 24 + 16 + frames[0].data.len();
    // In the middle of the header and of the bytes of the second packet.
    for (end, missing) in [
        (second + 7, 9),
        (second + 16 + 40, frames[1].data.len() - 40),
    ] {
        assert_eq!(
            error(&whole[..end]),
            format!(
                "test.pcap: byte {second}, after 1 packets: the file ends within a record, \
                 {missing} bytes early; was it copied whole? --truncated takes the 1 packets before it"
            )
        );
    }
    assert!(
        error(&whole[..20]).contains("byte 0, after 0 packets: the file ends within its header")
    );
    let mut huge = whole.clone();
    huge[second + 8..second + 12].copy_from_slice(&[0xff; 4]);
    assert!(error(&huge).contains("a record of 4294967311 bytes; at most 67108864 are plausible"));

    let style = Style::PLAIN;
    let start = [section(style), interface(style, 9, 0)].concat();
    let offset = start.len();
    let with = |block: Vec<u8>| error(&[start.clone(), block].concat());
    let place = format!("test.pcap: byte {offset}, after 0 packets: ");
    assert_eq!(
        with(packet(style, 3, 0, &frames[0])),
        format!("{place}a packet on interface 3, which is not described before it")
    );
    let mut odd = packet(style, 0, 0, &frames[0]);
    odd[4] += 1;
    assert!(with(odd).starts_with(&format!("{place}a block of 10")));
    let mut long = packet(style, 0, 0, &frames[0]);
    // The packet claims more captured bytes than the block has.
    long[20..24].copy_from_slice(&[0, 9, 0, 0]);
    assert_eq!(with(long), format!("{place}this is not a valid block"));
    let mut cut = packet(style, 0, 0, &frames[0]);
    cut.truncate(30);
    assert!(with(cut).starts_with(&format!("{place}the file ends within a record")));
    assert!(with(vec![6, 0]).contains("the file ends within a record, 10 bytes early"));
}

#[test]
fn clocks_that_jump_are_told() {
    let frames = [
        segment(0, (1, 2), CLIENT, 0, ACK, 10),
        segment(2_000_000_000_000, (1, 2), CLIENT, 10, ACK, 10),
    ];
    let error = error(&pcap(Style::PLAIN, &frames));
    assert!(
        error.contains("a flow starts 2000000 s after the earliest packet; at most 1000000 s"),
        "{error}"
    );
}

#[test]
fn a_missing_file_is_named() {
    let error = Capture::read("no/such.pcap", &CaptureOptions::default()).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("no/such.pcap: cannot read the capture: ")
    );
}

#[test]
fn wrong_headers_are_passed_over_and_counted() {
    let good = segment(0, (1, 2), CLIENT, 0, ACK, 10);
    let mut short_tcp = good.clone();
    short_tcp.data[14 + 24 + 12] = 4 << 4;
    let mut long_tcp = good.clone();
    long_tcp.data[14 + 24 + 12] = 15 << 4;
    let mut short_ip = good.clone();
    short_ip.data[14] = 0x42;
    let frames = [good, short_tcp, long_tcp, short_ip];
    let capture = read(&pcap(Style::PLAIN, &frames));
    assert_eq!(capture.skipped.malformed, 3);
    assert_eq!(capture.skipped.total(), 3);
}

/// Checks that the result is a valid trace or an error of one line, for any content of the file.
fn check(bytes: &[u8]) -> Result<(), TestCaseError> {
    for ports in [None, Some(3)] {
        let options = CaptureOptions {
            ports,
            ..CaptureOptions::default()
        };
        match read_with(bytes, &options) {
            Ok(capture) => {
                prop_assert!(capture.trace.validate(capture.ports).is_ok());
                prop_assert!(capture.trace.flows.is_sorted_by_key(|flow| flow.start));
                prop_assert!(capture.skipped.total() < capture.packets);
            }
            Err(error) => prop_assert!(!error.to_string().contains('\n')),
        }
    }
    Ok(())
}

fn sample(kind: usize) -> Vec<u8> {
    let mut frames = conversation();
    let fragment = |place, inner: &[u8]| ethernet(&[5], &ipv4_fragment(3, 4, 17, place, inner));
    let datagram = udp(CLIENT, 120);
    frames.push(frame(400, fragment((1, 0, true), &datagram[..64])));
    frames.push(frame(401, fragment((1, 64, false), &datagram[64..])));
    let extension = [(0, [0, 1, 4, 0, 0, 0, 0]), (44, [0, 0, 1, 0, 0, 0, 9])];
    let inner = tcp(CLIENT, 1, ACK, 40);
    let v6 = ipv6(1, 2, &extension, 6, &inner);
    frames.push(frame(402, ethernet(&[], &v6)).cut(90));
    let style = Style {
        big_endian: kind & 1 == 1,
        nanoseconds: kind & 2 == 2,
        link: ETHERNET,
    };
    if kind & 4 == 4 {
        pcapng(style, &frames)
    } else {
        pcap(style, &frames)
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        check(&bytes)?;
    }

    #[test]
    fn any_bytes_behind_a_valid_start_are_read_or_refused(
        kind in 0_usize..8,
        link in prop::sample::select(vec![0_u32, 1, 12, 101, 108, 113, 228, 276]),
        packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 0..8),
        version in prop::sample::select(vec![0x45_u8, 0x46, 0x60, 0x4f, 0]),
    ) {
        let frames: Vec<_> = packets
            .into_iter()
            .enumerate()
            .map(|(time, mut data)| {
                if let Some(first) = data.first_mut() {
                    *first = version;
                }
                let data = if link == ETHERNET && !data.is_empty() { ethernet(&[], &data) } else { data };
                frame(time as u64, data)
            })
            .collect();
        let style = Style { big_endian: kind & 1 == 1, nanoseconds: kind & 2 == 2, link };
        check(&if kind & 4 == 4 { pcapng(style, &frames) } else { pcap(style, &frames) })?;
    }

    #[test]
    fn changed_captures_are_read_or_refused(
        kind in 0_usize..8,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..8),
    ) {
        let mut bytes = sample(kind);
        for (place, value) in changes {
            let place = place.index(bytes.len());
            bytes[place] = value;
        }
        check(&bytes)?;
    }

    #[test]
    fn captures_that_end_early_are_read_or_refused(kind in 0_usize..8, end in any::<prop::sample::Index>()) {
        let bytes = sample(kind);
        check(&bytes[..end.index(bytes.len())])?;
    }
}
