//! Marks that a switch sets itself, without queue management behind its policy (ECN).

use rand_xoshiro::Xoshiro256PlusPlus;

use super::aqm::{Arriving, Red, RedConfig};
use super::{Policy, Switch};
use crate::engine::packet::{Packet, PacketKind};
use crate::rng;
use crate::scenario::{Marking, Recovery, Scenario};
use crate::switch::SwitchId;
use crate::units::Time;

/// Rule by which a switch marks packets.
#[derive(Clone, Copy, Debug)]
pub(super) struct MarkingRule {
    /// Queue length below which packets are not marked, bytes.
    threshold: u64,
    /// With DCTCP, ns-3's acknowledgements and SYNs claim to understand marks too.
    marks_all: bool,
}

impl MarkingRule {
    pub(super) fn of(scenario: &Scenario) -> Option<MarkingRule> {
        let threshold = scenario.mark_threshold_bytes()?;
        let averages = RedMarking::config(scenario).is_some_and(|red| red.weight < 1.0);
        Some(MarkingRule {
            // An average moves with every arrival.
            threshold: if averages { 0 } else { threshold },
            marks_all: scenario.tcp.recovery == Recovery::Ns3,
        })
    }
}

/// Marks with a probability that rises with the queue length, of random early detection. Every port
/// draws from a stream of its own. The average moves with arrivals only, not while a queue is idle.
#[derive(Clone, Debug)]
pub(super) struct RedMarking {
    red: Red,
    /// Random streams, by port.
    random: Vec<Xoshiro256PlusPlus>,
}

impl RedMarking {
    /// Returns the probabilities; `None` if the scenario has a threshold.
    pub(super) fn config(scenario: &Scenario) -> Option<RedConfig> {
        (scenario.marking.kind == Marking::Red).then_some(RedConfig {
            min_bytes: scenario.marking.red_kmin_bytes,
            max_bytes: scenario.marking.red_kmax_bytes,
            max_p: scenario.marking.red_pmax,
            weight: scenario.marking.red_weight,
            gentle: false,
            uniform: false,
            marks: true,
            packet_time: Time::ZERO,
        })
    }

    /// Creates the marks of switch `id` in the simulation of a trace with this seed.
    pub(super) fn new(
        config: RedConfig,
        seed: u64,
        id: SwitchId,
        ports: usize,
        queues: usize,
    ) -> RedMarking {
        let first = (id.index() as u64) << 32;
        let streams = (first..).take(ports);
        RedMarking {
            red: Red::new(config, queues),
            random: streams
                .map(|port| rng::stream(seed, "marks", port))
                .collect(),
        }
    }
}

impl<P: Policy> Switch<P> {
    /// Marks a packet that finds a long queue: by the length before the arrival (RFC 8257 §3.1).
    pub(super) fn mark(&mut self, packet: &mut Packet, rule: MarkingRule, now: Time) {
        let length = self.buffer.queue(usize::from(packet.queue));
        if length < rule.threshold {
            return;
        }
        if self.red_marking.is_some() && !self.draws_a_mark(packet, length, now) {
            return;
        }
        match packet.kind {
            PacketKind::Data if packet.flags.accepts_marks() => packet.flags.mark(),
            PacketKind::Data => return,
            _ if rule.marks_all => packet.flags.congest(),
            _ => return,
        }
        self.counters.marks += 1;
    }

    #[cold]
    fn draws_a_mark(&mut self, packet: &Packet, length: u64, now: Time) -> bool {
        let seen = self.packet_view(packet);
        let Some(marking) = &mut self.red_marking else {
            return false;
        };
        let arriving = Arriving {
            queue: seen.queue,
            flow: seen.flow,
            length,
            bytes: seen.bytes,
            markable: true,
            spared: false,
            now,
        };
        let random = &mut marking.random[seen.port];
        marking.red.chooses(arriving, random)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::clock::ClockOffset;
    use crate::engine::packet::{PacketStore, SizeClass};
    use crate::switch::policy::CompleteSharing;
    use crate::switch::{Admission, SwitchSettings};

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
        let clock_offset = ClockOffset::of(Time::ZERO);
        let mut switch = Switch::new(id, clock_offset, &settings, CompleteSharing).unwrap();
        let mut packets = PacketStore::default();
        let mut arrive = |switch: &mut Switch<CompleteSharing>, queue, bytes| {
            let size = (bytes, SizeClass::Odd);
            let mut packet = Packet::new(PacketKind::Data, 0, queue, size, Time::ZERO);
            if !accepts {
                packet.flags.refuse_marks();
            }
            let id = packets.insert(packet);
            let admission = switch.arrive(&mut packets, id, Time::ZERO, &mut ());
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
}
