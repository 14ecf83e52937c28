//! UDP packets that were captured twice.

use super::*;

/// Returns a datagram whose payload starts with `number`, from a sender that writes `id`.
fn datagram(time_us: u64, id: u16, number: u8, payload: usize) -> Frame {
    let mut inner = udp(CLIENT, payload);
    inner[8] = number;
    let ip = ipv4_fragment(1, 2, 17, (id, 0, false), &inner);
    frame(time_us, ethernet(&[], &ip))
}

/// Returns the same packet behind a router.
fn routed(mut other: Frame, time_us: u64) -> Frame {
    other.time_ns = time_us * 1_000;
    // Addresses of Ethernet, time to live, checksum.
    other.data[..12].fill(7);
    other.data[14 + 8] -= 1;
    other.data[14 + 10..14 + 12].fill(3);
    other
}

fn read_all(frames: &[Frame]) -> (u64, u64) {
    let capture = read(&pcap(Style::PLAIN, frames));
    let sizes: u64 = capture.trace.flows.iter().map(|flow| flow.size).sum();
    (sizes, capture.copies)
}

#[test]
fn a_packet_that_was_captured_again_within_a_millisecond_counts_once() {
    for id in [0, 7] {
        let first = datagram(1_000, id, 1, 500);
        for (later, expected) in [(0, (500, 1)), (1_000, (500, 1)), (1_001, (1_000, 0))] {
            let frames = [first.clone(), routed(first.clone(), 1_000 + later)];
            assert_eq!(read_all(&frames), expected, "id {id}, {later} us later");
            // Interfaces are not always written in the order of time.
            let reversed = [frames[1].clone(), frames[0].clone()];
            assert_eq!(read_all(&reversed), expected);
        }
    }
}

#[test]
fn other_packets_are_no_copies() {
    let first = datagram(0, 7, 1, 500);
    let mut other_end = datagram(1, 7, 1, 500);
    other_end.data[14 + 16] = 99;
    for other in [
        datagram(1, 8, 1, 500),
        // A counter or a random identification that meets an earlier one.
        datagram(1, 7, 2, 500),
        other_end,
    ] {
        assert_eq!(read_all(&[first.clone(), other]), (1_000, 0));
    }
    assert_eq!(read_all(&[first.clone(), datagram(1, 7, 1, 499)]), (999, 0));
    // Without an identification the payload decides.
    let frames: Vec<_> = (0..100).map(|k| datagram(k, 0, k as u8, 300)).collect();
    assert_eq!(read_all(&frames), (30_000, 0));
    let twice: Vec<_> = frames.iter().flat_map(|f| [f.clone(), f.clone()]).collect();
    assert_eq!(read_all(&twice), (30_000, 100));
}

/// A packet that is cut off within its header reveals nothing but the identification.
#[test]
fn a_packet_that_says_nothing_about_itself_is_no_copy() {
    let headers = 14 + 24 + 8;
    for (id, keep, expected) in [
        (7, headers, (500, 1)),
        (0, headers, (1_000, 0)),
        (0, headers + 15, (1_000, 0)),
        (0, headers + 16, (500, 1)),
    ] {
        let frames = [datagram(0, id, 1, 500), datagram(1, id, 1, 500)];
        let cut = frames.map(|frame| frame.cut(keep));
        assert_eq!(read_all(&cut), expected, "id {id}, {keep} bytes");
    }
    // One of the two may be cut off more.
    let frames = [datagram(0, 0, 1, 500), datagram(1, 0, 1, 500).cut(100)];
    assert_eq!(read_all(&frames), (500, 1));
}

#[test]
fn fragments_are_told_by_their_place() {
    let whole = udp(CLIENT, 992);
    let piece = |time, place, inner: &[u8]| {
        frame(time, ethernet(&[], &ipv4_fragment(1, 2, 17, place, inner)))
    };
    let first = |time| piece(time, (7, 0, true), &whole[..504]);
    let second = |time| piece(time, (7, 504, false), &whole[504..]);
    assert_eq!(read_all(&[first(0), second(1)]), (992, 0));
    assert_eq!(
        read_all(&[first(0), first(1), second(2), second(3)]),
        (992, 2)
    );
}

/// A stream at the full rate of 100 Gbit/s is read in time proportional to its length.
#[test]
fn many_packets_of_equal_start_take_bounded_time() {
    let frames: Vec<_> = (0..20_000).map(|k| datagram(k / 20, 0, 1, 64)).collect();
    let frames: Vec<_> = frames
        .into_iter()
        .enumerate()
        .map(|(k, mut frame)| {
            let end = frame.data.len() - 4;
            frame.data[end..].copy_from_slice(&(k as u32).to_be_bytes());
            frame
        })
        .collect();
    assert_eq!(read_all(&frames), (20_000 * 64, 0));
}
