//! Enhanced Dynamic Threshold (Shan, Jiang and Ren, INFOCOM 2015 and IEEE TPDS 2017): absorbs
//! micro-bursts by lifting the threshold of a port for a bounded time.

#[cfg(test)]
mod tests;

use bufgym_util::convert::{floor_u32, floor_u64};

use super::dt::ALPHA;
use super::{
    Arguments, Bound, Definition, Deployment, Kind, Loss, PacketView, ParameterInfo, Policy,
    PolicyInfo, Search, Verdict, View,
};
use crate::scenario::Scenario;
use crate::units::{Duration, Instant, Rate};

pub(super) static DEFINITION: Definition = Definition {
    info: PolicyInfo {
        name: "edt",
        summary: "Enhanced Dynamic Threshold: lifts the threshold of a port with a micro-burst",
        rule: "controlled: accept iff q_i < alpha (B - Q); uncontrolled: iff q_i < B/U, U uncontrolled ports",
        source: "Shan, Jiang and Ren, INFOCOM 2015 and IEEE TPDS 2017",
        deployment: Deployment::Extension,
        parameters: &[
            ALPHA,
            ParameterInfo {
                name: "c1",
                default: "3",
                kind: Kind::Count,
                search: Search::log(1.0, 1024.0),
                meaning: "dequeues in a row that show an underloaded port",
            },
            ParameterInfo {
                name: "c2",
                default: "floor(alpha B / (1 + alpha N/2)^2) packets",
                kind: Kind::Count,
                search: Search::log(1.0, 65_536.0).from(Bound::Value(8.0)),
                meaning: "net enqueues that reveal a burst",
            },
            ParameterInfo {
                name: "t1_us",
                default: "T2 (1 + alpha N) / (1 + alpha N/2)^2",
                kind: Kind::Positive,
                search: Search::log(1.0, 1e6).from(Bound::LineTime(2_000.0)),
                meaning: "restart of the counters while controlled, microseconds",
            },
            ParameterInfo {
                name: "t2_us",
                default: "10000 at 1 Gbit/s, in inverse proportion to the rate",
                kind: Kind::Positive,
                search: Search::log(1.0, 1e6).from(Bound::LineTime(10_000.0)),
                meaning: "longest stay in the uncontrolled state, microseconds",
            },
        ],
    },
    build: |arguments, scenario| {
        // Each queue has the scenario's α, if there is one, and the parameters that follow from it.
        let given = scenario.queues.alpha.values();
        let alphas: Vec<f64> = match given {
            [] => vec![arguments.value("alpha"); scenario.queue_count()],
            _ => given
                .iter()
                .copied()
                .cycle()
                .take(scenario.queue_count())
                .collect(),
        };
        let config =
            |alpha| EnhancedDynamicThresholdConfig::from_arguments(alpha, arguments, scenario);
        Ok(EnhancedDynamicThreshold::of_queues(alphas.into_iter().map(config)).into())
    },
};

/// Parameters of EDT.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct EnhancedDynamicThresholdConfig {
    /// Initial control factor α of every port, for the controlled state.
    pub alpha: f64,
    /// Dequeues in a row after which a port counts as underloaded (C1).
    pub underload_dequeues: u32,
    /// Net enqueues that reveal a burst (C2).
    pub burst_enqueues: u32,
    /// Time in the controlled state after which the counters restart (T1).
    pub controlled_period: Duration,
    /// Longest stay in the uncontrolled state: the expected duration of a micro-burst (T2).
    pub uncontrolled_period: Duration,
}

/// Packet size with which the paper expresses the buffer in packets, bytes.
const PACKET_BYTES: f64 = 1_500.0;

impl EnhancedDynamicThresholdConfig {
    /// The parameters that §4.4 of the TPDS paper suggests: `C1 = 3`,
    /// `C2 = ⌊αB/(1 + αN/2)²⌋` packets, `T2` = 10 ms at 1 Gbit/s and less in proportion to the
    /// rate, `T1 = T2 (1 + αN)/(1 + αN/2)²`.
    pub fn suggested(alpha: f64, buffer_bytes: u64, ports: usize, rate: Rate) -> Self {
        let n = ports as f64;
        let spread = (1.0 + alpha * n / 2.0) * (1.0 + alpha * n / 2.0);
        let packets = buffer_bytes as f64 / PACKET_BYTES;
        let t2 = 10e-3 * 1e9 / rate.0 as f64;
        EnhancedDynamicThresholdConfig {
            alpha,
            underload_dequeues: Arguments::defaults(&DEFINITION.info).value("c1"),
            burst_enqueues: floor_u32(alpha * packets / spread).max(1),
            controlled_period: Duration::from_secs_f64(t2 * (1.0 + alpha * n) / spread),
            uncontrolled_period: Duration::from_secs_f64(t2),
        }
    }

    fn from_arguments(alpha: f64, arguments: &Arguments<'_>, scenario: &Scenario) -> Self {
        let derived = Self::suggested(
            alpha,
            scenario.network.buffer_bytes,
            scenario.queue_count(),
            scenario.rate(),
        );
        let time = |name, derived| arguments.microseconds(name).unwrap_or(derived);
        EnhancedDynamicThresholdConfig {
            alpha: derived.alpha,
            underload_dequeues: arguments.value("c1"),
            burst_enqueues: arguments.optional("c2").unwrap_or(derived.burst_enqueues),
            controlled_period: time("t1_us", derived.controlled_period),
            uncontrolled_period: time("t2_us", derived.uncontrolled_period),
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct PortState {
    /// α of the controlled state.
    alpha: f64,
    uncontrolled: bool,
    dequeues: u32,
    enqueues: u32,
    /// Start of the timer: T1 in the controlled state, T2 in the uncontrolled state.
    since: Instant,
}

/// The EDT state machine. Every port is controlled or uncontrolled.
///
/// A controlled port has the threshold `α(B - Q)`, an uncontrolled port `B/U`, with `U`
/// uncontrolled ports.
#[derive(Clone, Debug)]
pub struct EnhancedDynamicThreshold {
    configs: Box<[EnhancedDynamicThresholdConfig]>,
    ports: Vec<PortState>,
    uncontrolled: usize,
    /// No timer of an uncontrolled port expires before this time.
    next_expiry: Instant,
}

impl EnhancedDynamicThreshold {
    /// Creates the policy with all ports controlled and all timers started at time zero.
    pub fn new(config: EnhancedDynamicThresholdConfig, ports: usize) -> Self {
        Self::of_queues(std::iter::repeat_n(config, ports))
    }

    /// As [`new`](EnhancedDynamicThreshold::new), with parameters for each queue.
    fn of_queues(configs: impl Iterator<Item = EnhancedDynamicThresholdConfig>) -> Self {
        let configs: Box<[_]> = configs.collect();
        let idle = |config: &EnhancedDynamicThresholdConfig| PortState {
            alpha: config.alpha,
            uncontrolled: false,
            dequeues: 0,
            enqueues: 0,
            since: Instant::ZERO,
        };
        EnhancedDynamicThreshold {
            ports: configs.iter().map(idle).collect(),
            configs,
            uncontrolled: 0,
            next_expiry: Instant::MAX,
        }
    }

    fn limit(&self, view: View<'_>, port: usize) -> f64 {
        let state = &self.ports[port];
        if state.uncontrolled {
            view.buffer.capacity() as f64 / self.uncontrolled as f64
        } else {
            state.alpha * view.buffer.free() as f64
        }
    }

    #[inline]
    fn expire_timers(&mut self, now: Instant, port: usize) {
        if now >= self.next_expiry {
            self.expire_uncontrolled(now);
        }
        let state = &mut self.ports[port];
        if !state.uncontrolled
            && now.saturating_since(state.since) >= self.configs[port].controlled_period
        {
            state.dequeues = 0;
            state.enqueues = 0;
            state.since = now;
        }
    }

    #[cold]
    fn expire_uncontrolled(&mut self, now: Instant) {
        let expiry = |state: &PortState, config: &EnhancedDynamicThresholdConfig| {
            state.since.saturating_add(config.uncontrolled_period)
        };
        for port in 0..self.ports.len() {
            let state = self.ports[port];
            let expiry = expiry(&state, &self.configs[port]);
            if state.uncontrolled && now >= expiry {
                self.control(port, expiry);
            }
        }
        let states = self.ports.iter().zip(&self.configs);
        self.next_expiry = states
            .filter(|(state, _)| state.uncontrolled)
            .map(|(state, config)| expiry(state, config))
            .min()
            .unwrap_or(Instant::MAX);
    }

    fn control(&mut self, port: usize, now: Instant) {
        let state = &mut self.ports[port];
        if state.uncontrolled {
            state.uncontrolled = false;
            state.since = now;
            self.uncontrolled -= 1;
        }
    }

    fn release(&mut self, port: usize, now: Instant) {
        let state = &mut self.ports[port];
        *state = PortState {
            uncontrolled: true,
            dequeues: 0,
            enqueues: 0,
            since: now,
            ..*state
        };
        self.uncontrolled += 1;
        let expiry = now.saturating_add(self.configs[port].uncontrolled_period);
        self.next_expiry = self.next_expiry.min(expiry);
    }
}

impl Policy for EnhancedDynamicThreshold {
    #[inline]
    fn on_arrival(&mut self, view: View<'_>, packet: PacketView) -> Verdict {
        let port = packet.queue;
        self.expire_timers(view.now, port);
        if (view.buffer.queue(port) as f64) < self.limit(view, port) {
            Verdict::Accept
        } else {
            Verdict::Drop
        }
    }

    #[inline]
    fn on_enqueue(&mut self, view: View<'_>, packet: PacketView) {
        let port = packet.queue;
        let state = &mut self.ports[port];
        state.dequeues = 0;
        if !state.uncontrolled {
            state.enqueues += 1;
            if state.enqueues >= self.configs[port].burst_enqueues {
                self.release(port, view.now);
            }
        }
    }

    #[inline]
    fn on_departure(&mut self, view: View<'_>, packet: PacketView) {
        let port = packet.queue;
        self.expire_timers(view.now, port);
        let state = &mut self.ports[port];
        state.dequeues += 1;
        if !state.uncontrolled {
            state.enqueues = state.enqueues.saturating_sub(1);
        } else if state.dequeues >= self.configs[port].underload_dequeues {
            self.control(port, view.now);
        }
    }

    fn on_drop(&mut self, view: View<'_>, packet: PacketView, loss: Loss) {
        let port = packet.queue;
        // `on_arrival` is not called for packets that do not fit.
        self.expire_timers(view.now, port);
        if loss == Loss::Full {
            for port in 0..self.ports.len() {
                self.control(port, view.now);
            }
            return;
        }
        let state = &mut self.ports[port];
        state.dequeues = 0;
        state.enqueues = 0;
        if !state.uncontrolled {
            state.since = view.now;
        }
    }

    fn threshold(&self, view: View<'_>, port: usize) -> Option<u64> {
        Some(floor_u64(self.limit(view, port)))
    }

    fn alpha(&self, port: usize) -> Option<f64> {
        let state = &self.ports[port];
        (!state.uncontrolled).then_some(state.alpha)
    }

    /// Sets the α of the controlled state. C2 and T1 stay as they are.
    fn set_alpha(&mut self, port: usize, alpha: f64) -> bool {
        self.ports[port].alpha = alpha;
        true
    }
}
