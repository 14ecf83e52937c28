//! Intelligent Buffer (Cisco, "Intelligent Buffer Management on Cisco Nexus 9000 Series Switches",
//! 2017): Dynamic Threshold, with approximate fair dropping of elephants (AFD; Pan, Breslau,
//! Prabhakar and Shenker, Computer Communication Review, 2003).

mod fairness;
#[cfg(test)]
mod tests;

use rand_xoshiro::Xoshiro256PlusPlus;

use super::dt::ALPHA;
use super::flow_table::FlowTable;
use super::{
    Arguments, Bound, Definition, Deployment, Kind, Loss, PacketView, ParameterInfo, Policy,
    PolicyInfo, Search, Verdict, View,
};
use crate::scenario::Scenario;
use crate::units::{Duration, Instant};
use bufgym_util::convert::floor_u64;
use bufgym_util::rng;
use fairness::FairShare;

pub(super) static DEFINITION: Definition = Definition {
    info: PolicyInfo {
        name: "ib",
        summary: "Intelligent Buffer: Dynamic Threshold, and elephants are dropped to a fair rate",
        rule: "accept iff q_i < alpha (B - Q), and of an elephant f with probability min(1, Mfair/M_f) while q_i > queue_bytes",
        source: "Cisco, Intelligent Buffer Management on Nexus 9000 2017; AFD: Pan, Breslau, Prabhakar and Shenker, CCR 2003",
        deployment: Deployment::Today,
        parameters: PARAMETERS,
    },
    build: |arguments, scenario| {
        let config = IntelligentBufferConfig::from_arguments(arguments, scenario)?;
        Ok(IntelligentBuffer::new(config, scenario.queue_count()).into())
    },
};

const PARAMETERS: &[ParameterInfo] = &[
    ALPHA,
    ParameterInfo {
        name: "t_afd_us",
        default: "50 at 10 Gbit/s, in inverse proportion to the rate",
        kind: Kind::Positive,
        search: Search::log(1.0, 1e6).from(Bound::LineTime(500.0)),
        meaning: "interval over which the bytes of flows are counted and Mfair is kept, microseconds",
    },
    ParameterInfo {
        name: "qref_bytes",
        default: "bandwidth-delay product",
        kind: Kind::Bytes,
        search: Search::log_to(1.0, Bound::Buffer(1.0)).from(Bound::LineBytes(8_000.0)),
        meaning: "queue length that Mfair aims at, bytes",
    },
    ParameterInfo {
        name: "queue_bytes",
        default: "150000 at 10 Gbit/s, in proportion to the rate",
        kind: Kind::Bytes,
        search: Search::log_to(1.0, Bound::Buffer(1.0)).from(Bound::LineBytes(15_000.0)),
        meaning: "queue length above which elephants are dropped, bytes",
    },
    ParameterInfo {
        name: "mfair_bytes",
        default: "4000000",
        kind: Kind::Bytes,
        search: Search::log(100.0, 1e8),
        meaning: "Mfair at first, bytes per interval",
    },
    ParameterInfo {
        name: "mfair_most_bytes",
        default: "no limit",
        kind: Kind::Bytes,
        search: Search::log(100.0, 1e10).from(Bound::Value(1e10)),
        meaning: "limit of Mfair, which grows while a queue is short, bytes per interval",
    },
    ParameterInfo {
        name: "elephant_bytes",
        default: "1000000",
        kind: Kind::Bytes,
        search: Search::log(1000.0, 1e8),
        meaning: "wire bytes above which a flow is an elephant",
    },
    ParameterInfo {
        name: "age_us",
        default: "5000 at 10 Gbit/s, in inverse proportion to the rate",
        kind: Kind::Positive,
        search: Search::log(10.0, 1e7).from(Bound::LineTime(50_000.0)),
        meaning: "after longer than this without a packet a flow leaves the elephant trap, microseconds",
    },
    ParameterInfo {
        name: "seed",
        default: "1",
        kind: Kind::Seed,
        search: Search::Fixed,
        meaning: "seed of the random drops",
    },
];

/// Parameters of the Intelligent Buffer.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct IntelligentBufferConfig {
    /// Initial control factor α of Dynamic Threshold, for every queue.
    pub alpha: f64,
    /// Interval over which bytes are counted, more than zero.
    pub interval: Duration,
    /// Queue length that the fair share aims at, bytes.
    pub reference_bytes: u64,
    /// Elephants are dropped only at queues longer than this, bytes.
    pub queue_bytes: u64,
    /// Initial fair share, bytes per interval.
    pub initial_share: u64,
    /// Limit of the fair share, bytes per interval.
    pub largest_share: Option<u64>,
    /// A flow that has sent more wire bytes than this is an elephant.
    pub elephant_bytes: u64,
    /// A flow that is idle for longer than this leaves the elephant trap.
    pub age: Duration,
    /// Seed of the random drops.
    pub seed: u64,
}

impl IntelligentBufferConfig {
    /// The default parameters: those for 10 Gbit/s, scaled to the rate of the scenario such that a
    /// queue of the suggested length takes the same time to drain.
    pub fn suggested(scenario: &Scenario) -> Self {
        Self::from_arguments(&Arguments::defaults(&DEFINITION.info), scenario)
            .expect("the defaults are valid")
    }

    fn from_arguments(arguments: &Arguments<'_>, scenario: &Scenario) -> Result<Self, String> {
        let slower = 10e9 / scenario.network.rate_bps as f64;
        let time = |name, at_10_gbps: f64| {
            let derived = || Duration::from_secs_f64(at_10_gbps * slower);
            arguments.microseconds(name).unwrap_or_else(derived)
        };
        let interval = time("t_afd_us", 50e-6);
        if interval < SHORTEST_INTERVAL {
            return Err("t_afd_us is less than a nanosecond: 0.001 is the least".to_owned());
        }
        let reference_bytes = arguments.optional("qref_bytes");
        let queue_bytes = arguments.optional("queue_bytes");
        Ok(IntelligentBufferConfig {
            alpha: arguments.value("alpha"),
            interval,
            reference_bytes: reference_bytes.unwrap_or_else(|| bandwidth_delay_product(scenario)),
            queue_bytes: queue_bytes.unwrap_or(floor_u64(150_000.0 / slower)),
            initial_share: arguments.value("mfair_bytes"),
            largest_share: arguments.optional("mfair_most_bytes"),
            elephant_bytes: arguments.value("elephant_bytes"),
            age: time("age_us", 5e-3),
            seed: arguments.value("seed"),
        })
    }
}

const SHORTEST_INTERVAL: Duration = Duration::from_ns(1);

/// Bytes that the line carries during the round trip of a full packet and its acknowledgement
/// through an empty switch.
fn bandwidth_delay_product(scenario: &Scenario) -> u64 {
    let acknowledgement = u64::from(scenario.packets.ack_bytes + scenario.timestamp_bytes());
    let packets = [scenario.full_packet_bytes(), acknowledgement];
    let on_the_line: u64 = packets
        .iter()
        .map(|bytes| 2 * (bytes + u64::from(scenario.packets.overhead_bytes)))
        .sum();
    let on_the_way =
        4.0 * scenario.propagation().as_secs_f64() * scenario.network.rate_bps as f64 / 8.0;
    on_the_line + floor_u64(on_the_way)
}

/// The state of a flow in the elephant trap.
#[derive(Clone, Copy, Default, Debug)]
struct Trapped {
    /// Wire bytes since the flow was last idle.
    sent: u64,
    /// Number of the interval of the last packet.
    interval: u64,
    /// Wire bytes in that interval.
    current: u64,
    /// Wire bytes in the interval before, M_f.
    last: u64,
}

impl Trapped {
    #[inline]
    fn count(&mut self, bytes: u64, interval: u64) {
        if interval != self.interval {
            let follows = interval == self.interval + 1;
            self.last = if follows { self.current } else { 0 };
            self.current = 0;
            self.interval = interval;
        }
        self.sent += bytes;
        self.current += bytes;
    }
}

/// The state of a queue.
#[derive(Clone, Copy, Debug)]
struct Queue {
    /// Control factor of Dynamic Threshold.
    alpha: f64,
    share: FairShare,
}

/// Dynamic Threshold and approximate fair dropping of elephants.
///
/// If a queue is longer than a limit, a packet of an elephant that sent `M_f` bytes in the last
/// interval is dropped with probability `max(0, 1 - Mfair/M_f)`. The fair share `Mfair` of a queue
/// follows the length of the queue. Short flows are not dropped in this way. All arriving packets
/// count as sent, also those that are lost.
///
/// Cisco's switches can also put the first packets of all flows into a separate queue (dynamic
/// packet prioritization, DPP). The policy does not do this, because it does not choose queues.
#[derive(Clone, Debug)]
pub struct IntelligentBuffer {
    config: IntelligentBufferConfig,
    flows: FlowTable<Trapped>,
    queues: Vec<Queue>,
    /// Number of the current interval, and the start of the next one.
    interval: (u64, Instant),
    rng: Xoshiro256PlusPlus,
}

impl IntelligentBuffer {
    /// Creates the policy with an empty elephant trap and the initial fair share for every queue.
    ///
    /// # Panics
    /// When the interval is zero.
    pub fn new(config: IntelligentBufferConfig, queues: usize) -> Self {
        assert!(config.interval > Duration::ZERO, "an interval takes time");
        let queue = Queue {
            alpha: config.alpha,
            share: FairShare::new(&config),
        };
        IntelligentBuffer {
            config,
            flows: FlowTable::new(config.age),
            queues: vec![queue; queues],
            interval: (0, Instant::ZERO + config.interval),
            rng: rng::stream(config.seed, "ib", 0),
        }
    }

    #[inline]
    fn number_of_interval(&mut self, now: Instant) -> u64 {
        if now >= self.interval.1 {
            let number = now.0 / self.config.interval.0;
            let next = self.config.interval.saturating_mul(number + 1);
            self.interval = (number, Instant::ZERO + next);
        }
        self.interval.0
    }

    #[inline]
    fn count(&mut self, packet: PacketView, now: Instant) -> Trapped {
        let interval = self.number_of_interval(now);
        let trapped = self.flows.touch(packet.flow, now);
        trapped.count(packet.bytes, interval);
        *trapped
    }

    /// Draws whether to drop a packet of this elephant.
    fn exceeds_its_share(&mut self, queue: usize, elephant: Trapped) -> bool {
        let share = self.queues[queue].share.bytes();
        let sent = elephant.last as f64;
        // P = 1 - Mfair/M_f > 0.
        sent > share && rng::uniform(&mut self.rng) * sent < sent - share
    }

    #[inline]
    fn note_length(&mut self, view: View<'_>, queue: usize) {
        let length = view.buffer.queue(queue);
        self.queues[queue]
            .share
            .change(length, view.now, &self.config);
    }
}

impl Policy for IntelligentBuffer {
    #[inline]
    fn on_arrival(&mut self, view: View<'_>, packet: PacketView) -> Verdict {
        let flow = self.count(packet, view.now);
        self.note_length(view, packet.queue);
        let length = view.buffer.queue(packet.queue);
        if length as f64 >= self.queues[packet.queue].alpha * view.buffer.free() as f64 {
            return Verdict::Drop;
        }
        let trapped = flow.sent > self.config.elephant_bytes && length > self.config.queue_bytes;
        if trapped && self.exceeds_its_share(packet.queue, flow) {
            return Verdict::Drop;
        }
        Verdict::Accept
    }

    #[inline]
    fn on_enqueue(&mut self, view: View<'_>, packet: PacketView) {
        self.note_length(view, packet.queue);
    }

    #[inline]
    fn on_departure(&mut self, view: View<'_>, packet: PacketView) {
        self.note_length(view, packet.queue);
    }

    fn on_drop(&mut self, view: View<'_>, packet: PacketView, loss: Loss) {
        match loss {
            // `on_arrival` has counted the others.
            Loss::Full => {
                self.count(packet, view.now);
            }
            Loss::PushedOut | Loss::Head => self.note_length(view, packet.queue),
            Loss::Refused | Loss::Early => {}
        }
    }

    /// Returns the threshold of Dynamic Threshold.
    fn threshold(&self, view: View<'_>, queue: usize) -> Option<u64> {
        Some(floor_u64(
            self.queues[queue].alpha * view.buffer.free() as f64,
        ))
    }

    fn alpha(&self, queue: usize) -> Option<f64> {
        Some(self.queues[queue].alpha)
    }

    fn set_alpha(&mut self, queue: usize, alpha: f64) -> bool {
        self.queues[queue].alpha = alpha;
        true
    }
}
