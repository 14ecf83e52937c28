//! The worked examples of the rules, computed manually, under both forms of the rules.

use proptest::prelude::*;

use super::*;
use crate::engine::clock::ClockOffset;
use crate::engine::packet::{Packet, PacketKind, SizeClass};
use crate::rng;
use crate::switch::policy::LosslessPolicy;
use crate::switch::{Admission, Switch, SwitchSettings};

const RATE: Rate = Rate(25_000_000_000);

const SONIC: Sharing = Sharing::Sonic;

fn reverie(gamma: f64) -> Sharing {
    Sharing::Reverie { gamma }
}

/// A switch of two ports with two priorities, of which 1 is lossless. `b` is 100,000 B, of which each
/// port has 20,000 B of headroom, so that the pool has 60,000 B and its lossy part 48,000 B.
struct Bench {
    switch: Switch<LosslessPolicy>,
    packets: PacketStore,
    sending: [Option<PacketId>; 2],
    now: Time,
    frames: Vec<PauseFrame>,
}

const LOSSY: usize = 0;
const LOSSLESS: usize = 1;

impl Bench {
    fn new(sharing: Sharing, changes: &[&str]) -> Bench {
        Bench::with_alphas(sharing, [1.0; 2], changes)
    }

    fn with_alphas(sharing: Sharing, alphas: [f64; 2], changes: &[&str]) -> Bench {
        let mut scenario = Scenario::default();
        let base = [
            "ports=2",
            "incast_degree=1",
            "active_ports=1..2",
            "rate_bps=25000000000",
            "propagation_ns=2000",
            "mss=1000",
            "header_bytes=48",
            "queues_per_port=2",
            "lossless_priorities=1",
            "headroom_bytes=20000",
            "buffer_bytes=100000",
        ];
        for change in base.iter().chain(changes) {
            scenario.set(change).unwrap();
        }
        scenario.validate().unwrap();
        let thresholds = LosslessThresholds {
            sharing,
            alpha_ingress: alphas[0],
            alpha_egress: alphas[1],
        };
        let settings = SwitchSettings::new(&scenario, 2, scenario.network.buffer_bytes);
        let clock_offset = ClockOffset::of(Time::ZERO);
        let policy = LosslessPolicy(thresholds);
        let mut switch = Switch::new(SwitchId(0), clock_offset, &settings, policy).unwrap();
        switch.enable_lossless(thresholds, &scenario, &[RATE; 2], 1);
        Bench {
            switch,
            packets: PacketStore::default(),
            sending: [None; 2],
            now: Time::ZERO,
            frames: Vec::new(),
        }
    }

    fn mmu(&self) -> &Mmu {
        self.switch.mmu().unwrap()
    }

    /// Sends a packet by a port that is to leave by the other one. Returns true if it is stored.
    fn arrive(&mut self, port: usize, priority: usize, bytes: u16) -> bool {
        let out = 1 - port;
        let queue = (2 * out + priority) as u16;
        let size = (bytes, SizeClass::Odd);
        let packet = Packet::new(PacketKind::Data, 0, queue, size, self.now);
        let id = self.packets.insert(packet);
        self.packets.set_came_by(id, port as u16);
        let admission = self.switch.arrive(&mut self.packets, id, self.now, &mut ());
        let stays = match admission {
            Admission::Served => {
                self.sending[out] = Some(id);
                true
            }
            Admission::Queued => true,
            Admission::Lost(_) => false,
        };
        self.settle();
        stays
    }

    /// Completes the packet on the line of a port.
    fn depart(&mut self, port: usize) {
        let id = self.sending[port].expect("a packet is on the line");
        self.sending[port] = self.switch.sent(&mut self.packets, id, self.now, &mut ());
        self.settle();
    }

    fn settle(&mut self) {
        while let Some(frame) = self.switch.take_frame() {
            self.frames.push(frame);
        }
        assert!(self.mmu().is_consistent(self.switch.buffer()));
    }

    /// Sends `count` lossless packets by the ports in turn. Returns the numbers, from 1, of the packets
    /// that caused a pause, and of the first one lost.
    fn fill(&mut self, ports: &[usize], bytes: u16, count: usize) -> (Vec<usize>, Option<usize>) {
        let (mut pauses, mut lost) = (Vec::new(), None);
        for number in 1..=count {
            let before = self.frames.len();
            let port = ports[(number - 1) % ports.len()];
            if !self.arrive(port, LOSSLESS, bytes) && lost.is_none() {
                lost = Some(number);
            }
            if self.frames.len() > before {
                pauses.push(number);
            }
        }
        (pauses, lost)
    }

    /// Returns how many of `count` lossy packets by port 0 are stored.
    fn lossy(&mut self, count: usize) -> usize {
        (0..count).filter(|_| self.arrive(0, LOSSY, 1_000)).count()
    }
}

const RULES: [&str; 2] = ["rules=paper", "rules=ns3"];

#[test]
fn s1_a_lossless_queue_passes_its_threshold() {
    for rules in RULES {
        let mut bench = Bench::new(SONIC, &[rules]);
        assert_eq!(bench.fill(&[0], 1_000, 51), (vec![31], Some(51)), "{rules}");
        let mmu = bench.mmu();
        assert_eq!((mmu.headroom, mmu.counters.drops_lossless), (20_000, 1));
    }
}

#[test]
fn s1_with_packets_that_do_not_divide_the_pool() {
    for (rules, pause, drop) in [(RULES[0], 30, 49), (RULES[1], 29, 48)] {
        let mut bench = Bench::new(SONIC, &[rules]);
        assert_eq!(
            bench.fill(&[0], 1_048, 50),
            (vec![pause], Some(drop)),
            "{rules}"
        );
    }
}

#[test]
fn s2_two_lossless_queues_alternate() {
    for rules in RULES {
        let mut bench = Bench::new(SONIC, &[rules]);
        assert_eq!(
            bench.fill(&[0, 1], 1_000, 81),
            (vec![41, 42], Some(81)),
            "{rules}"
        );
    }
}

#[test]
fn s3_lossless_packets_see_lossy_ones() {
    for rules in RULES {
        let mut bench = Bench::new(SONIC, &[rules]);
        assert_eq!(bench.lossy(30), 24, "{rules}");
        assert_eq!(bench.fill(&[0], 1_000, 19), (vec![19], None), "{rules}");
    }
}

#[test]
fn s4_lossy_packets_do_not_see_lossless_ones() {
    for rules in RULES {
        let mut bench = Bench::new(SONIC, &[rules]);
        assert_eq!(bench.fill(&[0], 1_000, 30), (vec![], None));
        assert_eq!(bench.lossy(30), 24, "{rules}");
    }
}

#[test]
fn s5_headroom_empties_first_and_then_the_queue_resumes() {
    for (rules, resumes_at) in [(RULES[0], 6), (RULES[1], 7)] {
        let mut bench = Bench::new(SONIC, &[rules]);
        bench.fill(&[0], 1_000, 35);
        let mut headroom = vec![bench.mmu().headroom];
        for departure in 1..=7 {
            bench.depart(1);
            headroom.push(bench.mmu().headroom);
            let resumed = bench.frames.len() == 2;
            assert_eq!(resumed, departure >= resumes_at, "{rules}: {departure}");
        }
        assert_eq!(headroom[..6], [5_000, 4_000, 3_000, 2_000, 1_000, 0]);
        assert!(!bench.frames[1].pauses && !bench.mmu().pauses(0, LOSSLESS));
    }
}

#[test]
fn s6_a_packet_leaves_headroom_and_pool_in_part() {
    let mut bench = Bench::new(SONIC, &["buffer_bytes=62800"]);
    // The pool has 22,800 B: eleven packets of 1,000 B and one of 400 B pass the threshold.
    for bytes in [1_000; 11].iter().chain(&[1_000, 400]) {
        assert!(bench.arrive(0, LOSSLESS, *bytes));
    }
    let mmu = bench.mmu();
    let place = mmu.ingress[LOSSLESS];
    assert_eq!((place.bytes, place.headroom), (12_400, 400));
    let pool = bench.switch.buffer().occupancy() - mmu.headroom;
    bench.depart(1);
    let (mmu, buffer) = (bench.mmu(), bench.switch.buffer());
    let place = mmu.ingress[LOSSLESS];
    assert_eq!((place.bytes, place.headroom), (11_400, 0));
    assert_eq!(pool - (buffer.occupancy() - mmu.headroom), 600);
}

#[test]
fn r1_the_guard_sends_bursts_to_the_headroom() {
    for rules in RULES {
        let mut bench = Bench::new(reverie(0.999), &[rules]);
        assert_eq!(bench.fill(&[0], 1_000, 81), (vec![61], Some(81)), "{rules}");
        let mut bench = Bench::new(reverie(0.999), &[rules, "pool_guard=false"]);
        assert_eq!(bench.fill(&[0], 1_000, 101), (vec![], Some(101)), "{rules}");
    }
}

#[test]
fn r2_a_lossy_burst_has_the_whole_pool() {
    for rules in RULES {
        assert_eq!(
            Bench::new(reverie(0.999), &[rules]).lossy(70),
            60,
            "{rules}"
        );
    }
    assert_eq!(Bench::new(SONIC, &[]).lossy(70), 24);
}

/// Returns the filtered lengths after each of `count` departures of twenty packets.
fn filtered(gamma: f64, rules: &str, count: usize) -> Vec<f64> {
    let mut bench = Bench::new(reverie(gamma), &[rules]);
    bench.fill(&[0], 1_000, 20);
    let after = |bench: &mut Bench| {
        bench.depart(1);
        bench.mmu().at_ingress.filtered(LOSSLESS)
    };
    (0..count).map(|_| after(&mut bench)).collect()
}

#[test]
fn r3_the_filter_follows_departures() {
    let lengths = filtered(0.9, RULES[0], 20);
    for (length, expected) in lengths
        .iter()
        .zip([1_900.0, 3_510.0, 4_859.0, 5_973.1, 6_875.79])
    {
        assert!((length - expected).abs() < 1e-6, "{length}");
    }
    assert!((lengths[10] - 8_899.492_7).abs() < 1e-3, "{}", lengths[10]);
    for (departed, length) in lengths.iter().enumerate().skip(11) {
        let queue = 1_000.0 * (19 - departed) as f64;
        assert_eq!(*length, queue, "capped from then on");
    }
}

#[test]
fn r4_the_published_code_cuts_bytes_off() {
    let close = |lengths: Vec<f64>, expected: [f64; 4]| {
        for (length, expected) in lengths.iter().zip(expected) {
            assert!((length - expected).abs() < 1e-6, "{length}");
        }
    };
    close(
        filtered(0.999, RULES[0], 4),
        [19.0, 36.981, 53.944_019, 69.890_074_981],
    );
    close(filtered(0.999, RULES[1], 4), [19.0, 36.0, 52.0, 67.0]);
}

#[test]
fn r5_congested_queues_share_the_threshold() {
    let mut bench = Bench::new(reverie(0.999), &[]);
    for (port, bytes) in [(0, 10_240), (1, 19_760)] {
        assert!(bench.arrive(port, LOSSLESS, bytes));
    }
    let mmu = bench.switch.mmu_mut().unwrap();
    for (place, length) in [(LOSSLESS, 10_240.0), (2 + LOSSLESS, 30_000.0)] {
        mmu.at_ingress.observe(place, length);
    }
    assert_eq!(mmu.at_ingress.congestion(LOSSLESS), 1.5);
    let threshold = mmu.ingress_threshold(LOSSLESS, 30_000, false, Time::ZERO);
    assert_eq!(threshold, 20_000.0);
}

/// Sends lossless packets by port 0 and lossy ones by port 1, two of each in a slot, the lossless ones
/// unless paused; one of each departs. Returns the mean pool shares of the second half.
fn shares(alphas: [f64; 2]) -> [f64; 2] {
    let changes = ["buffer_bytes=1861760"];
    let mut bench = Bench::with_alphas(reverie(0.9), alphas, &changes);
    assert_eq!(bench.mmu().limits.pool, 1_821_760);
    let slots = 40_000;
    let mut sums = [0.0; 2];
    for slot in 0..slots {
        bench.now = Time::from_ns(335 * slot);
        for _ in 0..2 {
            if !bench.mmu().pauses(0, LOSSLESS) {
                bench.arrive(0, LOSSLESS, 1_000);
            }
            bench.arrive(1, LOSSY, 1_000);
        }
        bench.depart(0);
        bench.depart(1);
        if slot >= slots / 2 {
            let mmu = bench.mmu();
            sums[0] += (mmu.stored[1] - mmu.headroom) as f64;
            sums[1] += mmu.stored[0] as f64;
        }
    }
    sums.map(|sum| sum / (slots / 2) as f64)
}

#[test]
fn r6_alphas_are_shares_of_the_pool() {
    for (alphas, expected) in [
        ([1.0, 1.0], [607_253.0, 607_253.0]),
        ([2.0, 1.0], [910_880.0, 455_440.0]),
    ] {
        let shares = shares(alphas);
        for (share, expected) in shares.iter().zip(expected) {
            assert!(
                (share / expected - 1.0).abs() < 0.01,
                "{alphas:?}: {shares:?}"
            );
        }
    }
}

/// A neighbour that sends packets of one size back to back until a pause frame of 64 B takes effect.
#[derive(Clone, Copy, Debug)]
struct Neighbour {
    rate: Rate,
    propagation: Time,
    response: Time,
    packet: u16,
    /// Packet that the port has just begun to send when it is to send the frame; 0 for none.
    reverse: u16,
}

impl Neighbour {
    /// 25 Gbit/s, 2 µs, 1,048 B.
    const OF_W1: Neighbour = Neighbour {
        rate: RATE,
        propagation: Time::from_us(2),
        response: Time::ZERO,
        packet: 1_048,
        reverse: 0,
    };

    /// Returns how many packets come after the one that made the queue pause, the largest headroom, and
    /// how many packets were lost.
    fn after_the_trigger(self, changes: &[&str]) -> (usize, u64, u64) {
        let mut bench = Bench::new(SONIC, changes);
        let packet = self.rate.transmission_time(u64::from(self.packet));
        let mut stops: Option<Time> = None;
        let mut after = 0;
        for number in 0u64.. {
            let begins = Time(number * packet.0);
            if stops.is_some_and(|stops| begins >= stops) {
                break;
            }
            bench.now = begins + packet + self.propagation;
            let paused = stops.is_some();
            bench.arrive(0, LOSSLESS, self.packet);
            after += usize::from(paused);
            if stops.is_none() && !bench.frames.is_empty() {
                let frame = self.rate.transmission_time(64);
                let busy = self.rate.transmission_time(u64::from(self.reverse));
                stops = Some(bench.now + busy + frame + self.propagation + self.response);
            }
        }
        let counters = &bench.mmu().counters;
        (after, counters.max_headroom, counters.drops_lossless)
    }
}

const ROOM: &str = "buffer_bytes=200000";

#[test]
fn w1_what_comes_after_the_trigger() {
    let with = |headroom| Neighbour::OF_W1.after_the_trigger(&[ROOM, headroom]);
    assert_eq!(with("headroom_bytes=13624"), (12, 13_624, 0));
    let (after, _, lost) = with("headroom_bytes=13623");
    assert_eq!((after, lost), (12, 1));
}

#[test]
fn w2_a_packet_has_just_begun_on_the_reverse_link() {
    let busy = Neighbour {
        reverse: 1_048,
        ..Neighbour::OF_W1
    };
    let found = busy.after_the_trigger(&[ROOM, "headroom_bytes=15708"]);
    assert_eq!(found, (13, 14_672, 0));
}

proptest! {
    /// W1 and W2 for any line and any packets: the computed headroom is never exceeded, and one byte
    /// less than the used headroom loses exactly one packet.
    #[test]
    fn a_byte_less_than_what_comes_loses_one_packet(
        gbps in 1u64..=400,
        propagation in 0u64..10_000,
        response in 0u64..5_000,
        packet in 100u16..1_500,
        reverse in 0.0f64..=1.0,
        rules in prop::sample::select(RULES.to_vec()),
    ) {
        let mut neighbour = Neighbour {
            rate: Rate(gbps * 1_000_000_000),
            propagation: Time::from_ns(propagation),
            response: Time::from_ns(response),
            packet,
            reverse: (reverse * f64::from(packet)) as u16,
        };
        let mut scenario = Scenario::default();
        for change in [
            format!("mss={}", packet - 48),
            "header_bytes=48".to_owned(),
            format!("propagation_ns={propagation}"),
            format!("pfc_response_ns={response}"),
        ] {
            scenario.set(&change).unwrap();
        }
        let needed = scenario.needed_headroom(neighbour.rate);
        let with = |neighbour: Neighbour, headroom: u64| {
            let buffer = format!("buffer_bytes={}", 2 * headroom + 60_000);
            let headroom = format!("headroom_bytes={headroom}");
            neighbour.after_the_trigger(&[rules, &headroom, &buffer])
        };
        let (after, used, lost) = with(neighbour, needed);
        prop_assert!(used <= needed, "{} of {}", used, needed);
        prop_assert_eq!((used, lost), ((after as u64 + 1) * u64::from(packet), 0));
        prop_assert_eq!(with(neighbour, used), (after, used, 0));
        let (again, _, lost) = with(neighbour, used - 1);
        prop_assert_eq!((again, lost), (after, 1));
        // The formula is tight up to a packet and the rounding of this many packet times.
        neighbour.reverse = packet;
        let (_, used, _) = with(neighbour, needed);
        let slack = u64::from(packet) + needed / 1_000 + 2;
        prop_assert!(needed - used <= slack, "{} of {}", used, needed);
    }
}

#[test]
fn one_lossless_queue_alone_on_a_leaf() {
    for (rules, pause) in [(RULES[0], 871), (RULES[1], 870)] {
        let changes = [rules, "buffer_bytes=1861760"];
        let mut bench = Bench::new(SONIC, &changes);
        assert_eq!(bench.fill(&[0], 1_048, 871).0, [pause], "{rules}");
    }
}

/// A paused priority waits, and the others of the port continue in turn.
#[test]
fn a_paused_queue_waits_alone() {
    let mut bench = Bench::new(SONIC, &[]);
    for priority in [LOSSY, LOSSLESS, LOSSLESS, LOSSY, LOSSY] {
        assert!(bench.arrive(0, priority, 1_000));
    }
    let frame = |pauses| PauseFrame {
        port: 1,
        priority: LOSSLESS,
        pauses,
    };
    let block = |bench: &mut Bench, pauses| {
        let now = bench.now;
        let next = bench
            .switch
            .block(&mut bench.packets, frame(pauses), now, &mut ());
        if next.is_some() {
            bench.sending[1] = next;
        }
        next.is_some()
    };
    assert!(!block(&mut bench, true));
    let mut left = Vec::new();
    while let Some(id) = bench.sending[1] {
        left.push(usize::from(bench.packets[id].queue) % 2);
        bench.depart(1);
    }
    assert_eq!(left, [LOSSY; 3]);
    assert_eq!(bench.mmu().stored, [0, 2_000]);
    assert!(block(&mut bench, false), "the idle port continues");
    bench.depart(1);
    bench.depart(1);
    assert_eq!((bench.mmu().stored, bench.sending[1]), ([0, 0], None));
}

/// The counters add up, whatever arrives, leaves and is paused.
#[test]
fn counters_add_up_whatever_happens() {
    for (number, sharing) in [SONIC, Sharing::SonicAbm, reverie(0.9), reverie(0.999_999)]
        .into_iter()
        .enumerate()
    {
        for rules in RULES {
            let mut bench = Bench::new(sharing, &[rules]);
            let mut random = rng::stream(7, "test", number as u64);
            let mut balance = [0i32; 2];
            for step in 0..20_000 {
                bench.now = Time::from_ns(step * 300);
                let port = usize::from(rng::below(&mut random, 2) == 1);
                let pauses = bench.mmu().pauses(port, LOSSLESS);
                match rng::below(&mut random, 5) {
                    0 | 1 if !pauses => {
                        bench.arrive(port, LOSSLESS, 1_048);
                    }
                    0..=2 => {
                        bench.arrive(port, LOSSY, 1_066);
                    }
                    _ if bench.sending[port].is_some() => bench.depart(port),
                    _ => {}
                }
                for frame in bench.frames.drain(..) {
                    balance[frame.port] += if frame.pauses { 1 } else { -1 };
                    assert!((0..=1).contains(&balance[frame.port]), "they alternate");
                }
            }
            for port in [0, 1] {
                while bench.sending[port].is_some() {
                    bench.depart(port);
                }
            }
            for frame in bench.frames.drain(..) {
                balance[frame.port] += if frame.pauses { 1 } else { -1 };
            }
            assert_eq!(balance, [0, 0], "all that was paused was resumed");
            let mmu = bench.mmu();
            assert_eq!((mmu.headroom, mmu.stored), (0, [0, 0]));
            assert!(mmu.at_ingress.filtered(LOSSLESS) == 0.0);
            assert_eq!(mmu.counters.drops_lossless, 0);
        }
    }
}

/// Percentiles are by nearest rank: the upper edge of a bin of 1/512 and at most the largest use, as
/// for the whole buffer.
#[test]
fn what_classes_take_has_the_percentiles_of_occupancy() {
    let mut used = ClassUse::new(512);
    assert!(percentile([&used].into_iter(), 99.0).is_nan());
    used.settle(0, Time(90));
    used.settle(256, Time(100));
    assert_eq!(percentile([&used].into_iter(), 90.0), 0.0);
    assert_eq!(percentile([&used].into_iter(), 90.1), 0.5);
    let mut other = ClassUse::new(512);
    other.settle(300, Time(1));
    assert_eq!(percentile([&used, &other].into_iter(), 99.0), 257.0 / 512.0);
    assert_eq!(
        percentile([&used, &other].into_iter(), 100.0),
        300.0 / 512.0
    );
}
