//! Priority flow control (IEEE 802.1Qbb): pauses of neighbours and by neighbours, and the control packets of a
//! port, which are never paused.

use super::{Ingress, Mmu};
use crate::engine::packet::{Packet, PacketId, PacketKind, PacketQueue, PacketStore, PauseNote};
use crate::engine::topology::SwitchId;
use crate::switch::SharedBuffer;
use crate::units::Instant;

/// A pause frame that a port is to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PauseFrame {
    /// The port.
    pub(crate) port: usize,
    /// The priority that the frame is about.
    pub(crate) priority: usize,
    /// True if the frame pauses; else it resumes.
    pub(crate) pauses: bool,
}

/// A time for which a switch has paused a neighbour.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PfcInterval {
    /// The switch that has sent the frames.
    pub switch: SwitchId,
    /// Port of the switch.
    pub port: usize,
    /// The priority that was paused.
    pub priority: usize,
    /// Time at which the switch sent the pause frame.
    pub from: Instant,
    /// Time at which the switch sent the frame that resumes; `None` if it did not.
    pub to: Option<Instant>,
}

/// Pauses of neighbours.
impl Mmu {
    /// Pauses the neighbour behind a queue that has begun to use headroom.
    pub(super) fn pause_if_on_headroom(&mut self, place: usize, now: Instant) {
        let ingress = &mut self.ingress[place];
        if ingress.headroom > 0 && ingress.pausing.is_none() {
            ingress.pausing = Some(now);
            self.counters.pauses += 1;
            self.request_frame(place, true);
        }
    }

    /// Resumes the paused neighbour of a queue that is short again.
    pub(super) fn resume_if_short(&mut self, buffer: &SharedBuffer, place: usize, now: Instant) {
        let Ingress {
            bytes,
            headroom,
            pausing,
            ..
        } = self.ingress[place];
        let Some(from) = pausing.filter(|_| headroom == 0) else {
            return;
        };
        let pool_used = buffer.occupancy() - self.headroom;
        let threshold = self.compute_threshold(false, place, bytes, pool_used, false, now);
        let length = match self.is_reverie() {
            true => self.at_ingress.filtered(place),
            false => bytes as f64,
        };
        let is_short = match (self.as_ns3, self.is_reverie()) {
            (true, _) => {
                length < self.limits.xon as f64
                    || length + self.limits.xoff_offset as f64 <= threshold
            }
            (false, true) => length <= threshold || bytes < self.limits.xon,
            (false, false) => length < threshold || bytes < self.limits.xon,
        };
        if !is_short {
            return;
        }
        self.ingress[place].pausing = None;
        self.ingress[place].paused += now - from;
        let ended = self.pfc_interval(place, from, Some(now));
        self.counters.log.push(ended);
        self.request_frame(place, false);
    }

    fn request_frame(&mut self, place: usize, pauses: bool) {
        let (port, priority) = (place / self.priorities, place % self.priorities);
        self.frames.push_back(PauseFrame {
            port,
            priority,
            pauses,
        });
    }

    fn pfc_interval(&self, place: usize, from: Instant, to: Option<Instant>) -> PfcInterval {
        PfcInterval {
            switch: self.id,
            port: place / self.priorities,
            priority: place % self.priorities,
            from,
            to,
        }
    }

    /// Takes the pause frame that is to be sent next.
    pub(crate) fn take_frame(&mut self) -> Option<PauseFrame> {
        self.frames.pop_front()
    }

    /// Returns true if the switch pauses the sender to a port at a priority.
    pub(crate) fn pauses(&self, port: usize, priority: usize) -> bool {
        self.ingress[port * self.priorities + priority]
            .pausing
            .is_some()
    }

    /// Returns the time at which the pause of a port and priority is to be repeated.
    pub(crate) fn refresh(&self, port: usize, priority: usize) -> Instant {
        self.ingress[port * self.priorities + priority].refresh
    }

    /// Sets the time at which the pause of a port and priority is to be repeated.
    pub(crate) fn set_refresh(&mut self, port: usize, priority: usize, at: Instant) {
        self.ingress[port * self.priorities + priority].refresh = at;
    }

    /// Returns the pauses that have been begun, including those that last.
    pub(crate) fn paused(&self) -> impl Iterator<Item = PfcInterval> {
        let places = self.ingress.iter().enumerate();
        let lasting = places.filter_map(|(place, queue)| {
            queue
                .pausing
                .map(|from| self.pfc_interval(place, from, None))
        });
        self.counters.log.iter().copied().chain(lasting)
    }
}

/// Pauses by neighbours.
impl Mmu {
    /// Returns true if the neighbour behind the port of a queue has paused it.
    pub(super) fn is_blocked(&self, queue: usize) -> bool {
        self.blocked[queue].is_some()
    }

    /// Returns the time since when the neighbour behind a port has paused a priority.
    pub(crate) fn blocked_since(&self, port: usize, priority: usize) -> Option<Instant> {
        self.blocked[port * self.priorities + priority]
    }

    /// Records that the neighbour behind a port pauses a priority or resumes it. Idempotent.
    pub(super) fn set_blocked(
        &mut self,
        port: usize,
        priority: usize,
        blocked: bool,
        now: Instant,
    ) {
        let since = &mut self.blocked[port * self.priorities + priority];
        *since = match blocked {
            true => since.or(Some(now)),
            false => None,
        };
    }

    /// Returns the time at which the pause by the neighbour behind a port ends by itself.
    pub(crate) fn expiry(&mut self, port: usize, priority: usize) -> &mut Instant {
        &mut self.expiries[port * self.priorities + priority]
    }
}

/// Control packets.
impl Mmu {
    /// Returns the control packets that wait, in two queues for each port.
    pub(in crate::switch) fn control(&self) -> &[PacketQueue] {
        self.control.as_flattened()
    }

    pub(super) fn pop_control(&mut self, port: usize, packets: &PacketStore) -> Option<PacketId> {
        let mut queues = self.control[port].iter_mut();
        queues.find_map(|queue| queue.pop_front(packets))
    }

    pub(super) fn push_control(&mut self, port: usize, id: PacketId, packets: &mut PacketStore) {
        let goes_first = packets[id].kind == PacketKind::Pause && !self.as_ns3;
        let [frames, others] = &mut self.control[port];
        let queue = if goes_first { frames } else { others };
        queue.push_back(packets, id);
    }

    /// Returns the frame about a priority that waits at a port, if there is one.
    pub(crate) fn waiting_frame(
        &self,
        packets: &PacketStore,
        port: usize,
        priority: u8,
    ) -> Option<PacketId> {
        let mut waiting = self.control[port]
            .iter()
            .flat_map(|queue| queue.iter(packets));
        waiting.find(|&id| {
            let Packet { kind, sequence, .. } = packets[id];
            kind == PacketKind::Pause && PauseNote::of_sequence(sequence).priority == priority
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::scenario::Scenario;
    use crate::switch::mmu::bench::{Bench, LOSSLESS, LOSSY, RATE, RULES, SONIC};
    use crate::units::{Duration, Rate};

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

    /// A neighbour that sends packets of one size back to back until a pause frame of 64 B takes effect.
    #[derive(Clone, Copy, Debug)]
    struct Neighbour {
        rate: Rate,
        propagation: Duration,
        response: Duration,
        packet: u16,
        /// Packet that the port has just begun to send when it is to send the frame; 0 for none.
        reverse: u16,
    }

    impl Neighbour {
        /// 25 Gbit/s, 2 µs, 1,048 B.
        const OF_W1: Neighbour = Neighbour {
            rate: RATE,
            propagation: Duration::from_us(2),
            response: Duration::ZERO,
            packet: 1_048,
            reverse: 0,
        };

        /// Returns how many packets come after the one that made the queue pause, the largest headroom, and
        /// how many packets were lost.
        fn after_the_trigger(self, changes: &[&str]) -> (usize, u64, u64) {
            let mut bench = Bench::new(SONIC, changes);
            let packet = self.rate.transmission_time(u64::from(self.packet));
            let mut stops: Option<Instant> = None;
            let mut after = 0;
            for number in 0u64.. {
                let begins = Instant::ZERO + packet * number;
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
                propagation: Duration::from_ns(propagation),
                response: Duration::from_ns(response),
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
}
