//! Marks that a switch sets itself, without queue management behind its policy (explicit congestion
//! notification, ECN).

use bufgym_util::rng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::aqm::{Arriving, Marker, Red, RedConfig};
use super::{PacketView, Policy, Switch, SwitchObserver, SwitchSettings};
use crate::engine::packet::{Packet, PacketId, PacketKind, PacketStore};
use crate::scenario::{self, Recovery, Scenario};
use crate::switch::SwitchId;
use crate::units::{Duration, Instant, Rate};

/// Rule by which a switch marks packets, with its state.
#[derive(Clone, Debug)]
pub(super) enum Marking {
    /// No packet is marked.
    None,
    /// Packets that find at least as many bytes in their queue.
    Step(Threshold),
    /// Packets that arrive, with a probability that rises with the queue length.
    Red(Box<RedMarking>),
    /// Packets whose transmission begins, with a probability that rises with the length left behind.
    RedAtDequeue(Box<DequeueMarking>),
}

/// Settings of the marks that arriving packets get.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArrivalMarking {
    threshold: Threshold,
    red: Option<RedConfig>,
}

/// Queue length below which arriving packets are not marked.
#[derive(Clone, Copy, Debug)]
pub(super) struct Threshold {
    bytes: u64,
    /// With DCTCP, ns-3's acknowledgements and SYNs claim to understand marks too.
    marks_all: bool,
}

/// Marks with the probability of random early detection. Every port draws from a stream of its own. The
/// average moves with arrivals only, not while a queue is idle.
#[derive(Clone, Debug)]
pub(super) struct RedMarking {
    threshold: Threshold,
    red: Red,
    /// Random streams, by port.
    random: Vec<Xoshiro256PlusPlus>,
}

/// Marks by the queue length that a packet leaves behind.
#[derive(Clone, Debug)]
pub(super) struct DequeueMarking {
    /// For every port, the lengths from which some and all packets are marked.
    bounds: Box<[[u64; 2]]>,
    max_p: f64,
    /// Random streams, by port.
    random: Vec<Xoshiro256PlusPlus>,
}

impl ArrivalMarking {
    /// Returns the settings; `None` if the scenario has no marks on arrival.
    pub(super) fn of(scenario: &Scenario) -> Option<ArrivalMarking> {
        let bytes = scenario.mark_threshold_bytes()?;
        let settings = &scenario.marking;
        let red = (settings.kind == scenario::Marking::Red).then_some(RedConfig {
            min_bytes: settings.red_kmin_bytes,
            max_bytes: settings.red_kmax_bytes,
            max_p: settings.red_pmax,
            weight: settings.red_weight,
            gentle: false,
            uniform: false,
            marks: true,
            packet_time: Duration::ZERO,
        });
        // An average moves with every arrival.
        let averages = red.is_some_and(|red| red.weight < 1.0);
        let threshold = Threshold {
            bytes: if averages { 0 } else { bytes },
            marks_all: scenario.tcp.recovery == Recovery::Ns3,
        };
        Some(ArrivalMarking { threshold, red })
    }
}

impl Marking {
    /// Creates the marks on arrival of switch `id`.
    pub(super) fn on_arrival(settings: &SwitchSettings, id: SwitchId) -> Marking {
        let Some(ArrivalMarking { threshold, red }) = settings.marking else {
            return Marking::None;
        };
        let Some(red) = red else {
            return Marking::Step(threshold);
        };
        Marking::Red(Box::new(RedMarking {
            threshold,
            red: Red::new(red, settings.ports * settings.queues_per_port),
            random: streams(settings.seed, id, settings.ports),
        }))
    }

    /// Creates the marks at dequeue of switch `id`, with ports of these rates; `None` if the scenario has
    /// others.
    pub(super) fn at_dequeue(
        scenario: &Scenario,
        seed: u64,
        id: SwitchId,
        rates: &[Rate],
    ) -> Option<Marking> {
        if scenario.marking.kind != scenario::Marking::RedAtDequeue {
            return None;
        }
        let settings = &scenario.marking;
        let bounds = |rate: &Rate| {
            [settings.red_kmin_bytes, settings.red_kmax_bytes].map(|bytes| {
                let product = u128::from(bytes) * u128::from(rate.0);
                u64::try_from(product / u128::from(scenario.network.rate_bps)).unwrap_or(u64::MAX)
            })
        };
        Some(Marking::RedAtDequeue(Box::new(DequeueMarking {
            bounds: rates.iter().map(bounds).collect(),
            max_p: settings.red_pmax,
            random: streams(seed, id, rates.len()),
        })))
    }
}

fn streams(seed: u64, id: SwitchId, ports: usize) -> Vec<Xoshiro256PlusPlus> {
    let first = (id.index() as u64) << 32;
    let ports = (first..).take(ports);
    ports.map(|port| rng::stream(seed, "marks", port)).collect()
}

impl RedMarking {
    #[cold]
    fn chooses(&mut self, packet: PacketView, length: u64, now: Instant) -> bool {
        let arriving = Arriving {
            queue: packet.queue,
            flow: packet.flow,
            length,
            bytes: packet.bytes,
            markable: true,
            spared: false,
            now,
        };
        self.red.chooses(arriving, &mut self.random[packet.port])
    }
}

impl DequeueMarking {
    /// Returns the probability of a mark at a length: 0 up to the first bound, 1 above the second.
    fn probability(&self, port: usize, length: u64) -> f64 {
        let [min, max] = self.bounds[port];
        if length <= min {
            0.0
        } else if length > max {
            1.0
        } else {
            self.max_p * (length - min) as f64 / (max - min) as f64
        }
    }

    fn chooses(&mut self, port: usize, length: u64) -> bool {
        match self.probability(port, length) {
            0.0 => false,
            p if p >= 1.0 => true,
            p => rng::uniform(&mut self.random[port]) < p,
        }
    }
}

impl<P: Policy> Switch<P> {
    /// Marks an arriving packet as queue management has decided, or if it finds a long queue: by the length
    /// before the arrival (RFC 8257 §3.1).
    #[inline(always)]
    pub(super) fn mark<O: SwitchObserver>(
        &mut self,
        packets: &mut PacketStore,
        id: PacketId,
        packet: PacketView,
        marker: Marker,
        now: Instant,
        observer: &mut O,
    ) {
        let length = self.buffer.queue(packet.queue);
        let marks_all = match (marker, &mut self.marking) {
            (Marker::QueueManagement, _) => {
                packets[id].flags.mark();
                self.counters.marks += 1;
                return observer.marked(self.id, packet);
            }
            (Marker::Switch, Marking::Step(step)) if length >= step.bytes => step.marks_all,
            (Marker::Switch, Marking::Red(red)) if length >= red.threshold.bytes => {
                if !red.chooses(packet, length, now) {
                    return;
                }
                red.threshold.marks_all
            }
            _ => return,
        };
        let packet = &mut packets[id];
        match packet.kind {
            PacketKind::Data if packet.flags.accepts_marks() => packet.flags.mark(),
            PacketKind::Data => return,
            _ if marks_all => packet.flags.congest(),
            _ => return,
        }
        self.counters.marks += 1;
    }

    /// Marks data by the length that it leaves behind when its port begins to send it (RFC 3168 §5).
    pub(super) fn mark_at_dequeue(&mut self, packet: &mut Packet) {
        let Marking::RedAtDequeue(marking) = &mut self.marking else {
            return;
        };
        if packet.kind != PacketKind::Data || !packet.flags.accepts_marks() {
            return;
        }
        let queue = usize::from(packet.queue);
        let length = self.buffer.queue(queue) - u64::from(packet.wire_bytes);
        if marking.chooses(self.numbering.port(queue), length) {
            packet.flags.mark();
            self.counters.marks += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::clock::ClockOffset;
    use crate::engine::packet::{PacketStore, SizeClass};
    use crate::switch::Admission;
    use crate::switch::policy::CompleteSharing;

    /// Returns the shares of `arrivals` data packets that are marked at a queue of `length` bytes, for
    /// two ports of a switch.
    fn shares(changes: &[&str], length: u16, seed: u64, accepts: bool) -> [f64; 2] {
        let mut scenario = Scenario::default();
        let red = [
            "transport=dctcp",
            "marking=red",
            "ecn_red_kmin_bytes=10000",
            "ecn_red_kmax_bytes=30000",
            "ecn_red_pmax=0.2",
        ];
        for change in red.iter().chain(changes) {
            scenario.set(change).unwrap();
        }
        scenario.validate().unwrap();
        let mut settings = SwitchSettings::new(&scenario, 2, 1_000_000_000);
        settings.seed = seed;
        let id = SwitchId(3);
        let clock_offset = ClockOffset::of(Duration::ZERO);
        let mut switch = Switch::new(id, clock_offset, &settings, CompleteSharing).unwrap();
        let mut packets = PacketStore::default();
        let mut arrive = |switch: &mut Switch<CompleteSharing>, queue, bytes| {
            let size = (bytes, SizeClass::Odd);
            let mut packet = Packet::new(PacketKind::Data, 0, queue, size, Instant::ZERO);
            if !accepts {
                packet.flags.refuse_marks();
            }
            let id = packets.insert(packet);
            let admission = switch.arrive(&mut packets, id, Instant::ZERO, &mut ());
            assert!(!matches!(admission, Admission::Lost(_)));
            packets[id].flags.marked()
        };
        let arrivals = 20_000;
        [0, 1].map(|queue| {
            if length > 0 {
                arrive(&mut switch, queue, length);
            }
            let marked = (0..arrivals).filter(|_| arrive(&mut switch, queue, 0));
            marked.count() as f64 / f64::from(arrivals)
        })
    }

    /// The probability rises from 0 at 10,000 B to 0.2 just below 30,000 B, then it is 1.
    #[test]
    fn the_probability_is_that_of_the_length() {
        for (length, expected) in [
            (0, 0.0),
            (9_999, 0.0),
            (10_000, 0.0),
            (20_000, 0.1),
            (29_999, 0.2),
            (30_000, 1.0),
            (60_000, 1.0),
        ] {
            for share in shares(&[], length, 1, true) {
                // Four standard deviations.
                assert!((share - expected).abs() < 0.012, "{length}: {share}");
            }
        }
        assert_eq!(
            shares(&[], 60_000, 1, false),
            [0.0; 2],
            "they are let through"
        );
        let step = ["ecn_red_kmin_bytes=30000"];
        assert_eq!(shares(&step, 29_999, 1, true), [0.0; 2]);
        assert_eq!(shares(&step, 30_000, 1, true), [1.0; 2]);
    }

    #[test]
    fn ports_draw_for_themselves_and_the_seed_decides() {
        let [first, second] = shares(&[], 20_000, 1, true);
        assert_ne!(first, second);
        assert_eq!(shares(&[], 20_000, 1, true), [first, second]);
        assert_ne!(shares(&[], 20_000, 2, true), [first, second]);
    }

    /// The queue is 60,000 B long from the second packet on, and the average has a weight of 1/1024:
    /// the average passes 30,000 B after 710 packets, and packets before that are almost never marked.
    #[test]
    fn an_average_lags_behind() {
        let changes = ["ecn_red_weight=0.0009765625", "ecn_red_pmax=0.0001"];
        let [share, _] = shares(&changes, 60_000, 1, true);
        let expected = 1.0 - 709.0 / 20_000.0;
        assert!((share - expected).abs() < 0.002, "{share}, not {expected}");
    }

    #[test]
    fn marks_follow_the_length_left_behind() {
        let mut scenario = Scenario::default();
        for change in [
            "rate_bps=25000000000",
            "marking=red_at_dequeue",
            "ecn_red_kmin_bytes=100000",
            "ecn_red_kmax_bytes=400000",
            "ecn_red_pmax=0.2",
        ] {
            scenario.set(change).unwrap();
        }
        let rates = [25, 100].map(|gbps| Rate(gbps * 1_000_000_000));
        let marking = Marking::at_dequeue(&scenario, 1, SwitchId(0), &rates);
        let Some(Marking::RedAtDequeue(marks)) = marking else {
            panic!("{marking:?}");
        };
        for (length, expected) in [
            (100_000, 0.0),
            (250_000, 0.1),
            (400_000, 0.2),
            (400_001, 1.0),
        ] {
            assert!(
                (marks.probability(0, length) - expected).abs() < 1e-12,
                "{length}"
            );
            assert!(
                (marks.probability(1, 4 * length) - expected).abs() < 1e-12,
                "{length}"
            );
        }
    }
}
