//! Controlled delay (RFC 8289): drops at the head while every packet of an interval has waited longer
//! than the target.

use bufgym_util::convert::floor_u64;

use super::definition::{ACTION, AqmDefinition, marks};
use super::{Advice, AnyDiscipline, Discipline, Leaving};
use crate::switch::policy::{Deployment, Kind, ParameterInfo, PolicyInfo, Search};
use crate::units::{Duration, Instant};

pub(super) static DEFINITION: AqmDefinition = AqmDefinition {
    info: PolicyInfo {
        name: "codel",
        summary: "Controlled delay",
        rule: "drop or mark at the head, ever more often, while packets have waited longer than target_us for \
               interval_us",
        source: "RFC 8289",
        deployment: Deployment::NewHardware,
        parameters: &[
            ParameterInfo {
                name: "target_us",
                default: "5000",
                kind: Kind::Positive,
                search: Search::log(1.0, 1e6),
                meaning: "acceptable standing delay, us",
            },
            ParameterInfo {
                name: "interval_us",
                default: "100000",
                kind: Kind::Positive,
                search: Search::log(10.0, 1e7),
                meaning: "time in which the delay must fall below the target once, us",
            },
            ACTION,
        ],
    },
    build: |arguments, context| {
        if context.outside_buffer > 1 {
            return Err("drops at the head make no room; needs ecn_uncounted_packets=0".to_owned());
        }
        let time = |name| arguments.microseconds(name).unwrap_or(Duration::ZERO);
        let config = CoDelConfig {
            target: time("target_us"),
            interval: time("interval_us"),
            max_packet: context.packet_bytes,
            marks: marks(arguments),
        };
        if config.interval == Duration::ZERO {
            return Err("interval_us is below a picosecond".to_owned());
        }
        Ok(AnyDiscipline::CoDel(CoDel::new(config, context.queues)))
    },
};

/// Parameters of [`CoDel`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CoDelConfig {
    /// Acceptable waiting time, TARGET.
    pub target: Duration,
    /// Time for which the target has to be exceeded, INTERVAL.
    pub interval: Duration,
    /// MAXPACKET: a queue with no more bytes is never too long.
    pub max_packet: u64,
    /// True if packets that can be marked are marked instead of dropped.
    pub marks: bool,
}

/// State of a queue between two calls about the same departure (RFC 8289 §5.5).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Step {
    /// A departure begins.
    First,
    /// A packet was dropped on entry into the dropping state.
    Entered,
    /// A packet was dropped because a drop was due.
    Due,
}

/// State of one queue, with the names of RFC 8289 §5.3.
#[derive(Clone, Copy, Debug)]
struct State {
    first_above_time: Option<Instant>,
    drop_next: Instant,
    count: u32,
    lastcount: u32,
    dropping: bool,
    step: Step,
}

/// Controlled delay, with a state for each queue.
#[derive(Clone, Debug)]
pub struct CoDel {
    config: CoDelConfig,
    queues: Vec<State>,
}

impl CoDel {
    /// Creates the discipline for `queues` queues, all of them empty.
    pub fn new(config: CoDelConfig, queues: usize) -> CoDel {
        let state = State {
            first_above_time: None,
            drop_next: Instant::ZERO,
            count: 0,
            lastcount: 0,
            dropping: false,
            step: Step::First,
        };
        CoDel {
            config,
            queues: vec![state; queues],
        }
    }

    pub(super) fn marks(&self) -> bool {
        self.config.marks
    }
}

impl CoDelConfig {
    /// Returns `t + INTERVAL / sqrt(count)` (§5.6).
    fn control_law(&self, t: Instant, count: u32) -> Instant {
        let wait = self.interval.as_ps() as f64 / f64::from(count.max(1)).sqrt();
        t.saturating_add(Duration(floor_u64(wait)))
    }
}

impl State {
    /// `dodequeue` (§5.4): returns true if the delay has been above the target for an interval.
    fn ok_to_drop(
        &mut self,
        config: &CoDelConfig,
        waited: Duration,
        behind: u64,
        now: Instant,
    ) -> bool {
        if waited < config.target || behind <= config.max_packet {
            self.first_above_time = None;
            return false;
        }
        match self.first_above_time {
            None => {
                self.first_above_time = Some(now.saturating_add(config.interval));
                false
            }
            Some(since) => now >= since,
        }
    }

    /// `deque` (§5.5), one packet at a time: `ok` is that of the current packet. Returns true if this
    /// packet is dropped, so that the next one has to be tested.
    fn next(&mut self, config: &CoDelConfig, ok: bool, now: Instant) -> bool {
        match self.step {
            Step::First if self.dropping => {
                self.dropping = ok;
                self.drop_if_due(now)
            }
            Step::First if ok => {
                self.step = Step::Entered;
                true
            }
            Step::First => false,
            Step::Due => {
                self.step = Step::First;
                self.dropping = ok;
                if ok {
                    self.drop_next = config.control_law(self.drop_next, self.count);
                }
                self.drop_if_due(now)
            }
            Step::Entered => {
                self.step = Step::First;
                self.enter(config, now);
                false
            }
        }
    }

    fn drop_if_due(&mut self, now: Instant) -> bool {
        let due = self.dropping && now >= self.drop_next;
        if due {
            self.count = self.count.saturating_add(1);
            self.step = Step::Due;
        }
        due
    }

    /// Enters the dropping state, with the previous drop rate if that was a short while ago.
    fn enter(&mut self, config: &CoDelConfig, now: Instant) {
        self.dropping = true;
        let delta = self.count.saturating_sub(self.lastcount);
        let recent = now.saturating_since(self.drop_next) < config.interval.saturating_mul(16);
        self.count = if delta > 1 && recent { delta } else { 1 };
        self.drop_next = config.control_law(now, self.count);
        self.lastcount = self.count;
    }
}

impl Discipline for CoDel {
    fn on_leaving(&mut self, packet: Leaving) -> Advice {
        let config = self.config;
        let state = &mut self.queues[packet.queue];
        let ok = state.ok_to_drop(&config, packet.waited, packet.behind, packet.now);
        if !state.next(&config, ok, packet.now) {
            return Advice::Pass;
        }
        if !(config.marks && packet.markable) {
            return Advice::Drop;
        }
        // A mark replaces the drop, and the current packet is sent.
        match state.step {
            Step::Entered => state.enter(&config, packet.now),
            _ => state.drop_next = config.control_law(state.drop_next, state.count),
        }
        state.step = Step::First;
        Advice::Mark
    }

    fn on_exhausted(&mut self, queue: usize, now: Instant) {
        let config = self.config;
        let state = &mut self.queues[queue];
        state.first_above_time = None;
        state.next(&config, false, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: u64 = 1_000_000_000;

    fn codel(marks: bool) -> CoDel {
        let config = CoDelConfig {
            target: Duration(5 * MS),
            interval: Duration(100 * MS),
            max_packet: 1_500,
            marks,
        };
        CoDel::new(config, 1)
    }

    fn leaving(now_ms: u64, waited_ms: u64, behind: u64) -> Leaving {
        Leaving {
            queue: 0,
            flow: 0,
            waited: Duration(waited_ms * MS),
            behind,
            markable: true,
            now: Instant(now_ms * MS),
        }
    }

    /// Returns the instants, ms, of drops of a queue in which a packet leaves every millisecond after
    /// waiting 20 ms.
    fn drops(codel: &mut CoDel, until_ms: u64) -> Vec<u64> {
        let mut drops = Vec::new();
        for now in 0..until_ms {
            while codel.on_leaving(leaving(now, 20, 60_000)) == Advice::Drop {
                drops.push(now);
            }
        }
        drops
    }

    /// Computed manually: the delay is above the target from 0 on, so the first drop is at 100. The
    /// next are due at 100 + 100/√1 = 200, + 100/√2 = 270.7, + 100/√3 = 328.4, + 100/√4 = 378.4, +
    /// 100/√5 = 423.2.
    #[test]
    fn drops_come_at_the_control_law_s_times() {
        assert_eq!(
            drops(&mut codel(false), 430),
            [100, 200, 271, 329, 379, 424]
        );
    }

    #[test]
    fn one_packet_below_the_target_ends_it() {
        let mut codel = codel(false);
        assert_eq!(drops(&mut codel, 210), [100, 200]);
        assert_eq!(codel.on_leaving(leaving(211, 4, 60_000)), Advice::Pass);
        assert!(!codel.queues[0].dropping);
        // A whole interval has to pass again.
        assert_eq!(codel.on_leaving(leaving(280, 20, 60_000)), Advice::Pass);
        assert_eq!(codel.on_leaving(leaving(379, 20, 60_000)), Advice::Pass);
        assert_eq!(codel.on_leaving(leaving(380, 20, 60_000)), Advice::Drop);
    }

    /// Four drops, then a pause below 16 intervals: the next dropping state begins with count 3, so that
    /// its second drop comes after 100/√3 = 57.7 ms.
    #[test]
    fn a_soon_return_goes_on_at_the_former_rate() {
        let mut codel = codel(false);
        assert_eq!(drops(&mut codel, 330), [100, 200, 271, 329]);
        assert_eq!(codel.on_leaving(leaving(340, 1, 60_000)), Advice::Pass);
        assert_eq!(codel.on_leaving(leaving(400, 20, 60_000)), Advice::Pass);
        assert_eq!(codel.on_leaving(leaving(500, 20, 60_000)), Advice::Drop);
        assert_eq!(codel.on_leaving(leaving(500, 20, 60_000)), Advice::Pass);
        assert_eq!(codel.queues[0].count, 3);
        assert_eq!(codel.on_leaving(leaving(557, 20, 60_000)), Advice::Pass);
        assert_eq!(codel.on_leaving(leaving(558, 20, 60_000)), Advice::Drop);
    }

    #[test]
    fn the_last_packet_is_never_dropped() {
        let mut codel = codel(false);
        for now in 0..1_000 {
            assert_eq!(codel.on_leaving(leaving(now, 50, 1_500)), Advice::Pass);
        }
    }

    #[test]
    fn a_queue_that_a_drop_empties_leaves_the_dropping_state() {
        let mut codel = codel(false);
        assert_eq!(drops(&mut codel, 110), [100]);
        assert_eq!(codel.on_leaving(leaving(200, 20, 60_000)), Advice::Drop);
        codel.on_exhausted(0, Instant(200 * MS));
        assert!(!codel.queues[0].dropping && codel.queues[0].step == Step::First);
    }

    #[test]
    fn marks_come_where_drops_would() {
        let mut codel = codel(true);
        let marked: Vec<u64> = (0..430)
            .filter(|now| codel.on_leaving(leaving(*now, 20, 60_000)) == Advice::Mark)
            .collect();
        assert_eq!(marked, [100, 200, 271, 329, 379, 424]);
    }
}
