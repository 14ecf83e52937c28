//! FAB, flow-aware buffer sharing (Apostolaki, Vanbever and Ghobadi, Workshop on Buffer Sizing,
//! 2019): Dynamic Threshold that favours the first packets of flows.

use bufgym_util::convert::floor_u64;

use super::flow_table::FlowTable;
use super::{
    Arguments, Bound, Definition, Deployment, Kind, Loss, PacketView, ParameterInfo, Policy,
    PolicyInfo, Search, Verdict, View,
};
use crate::scenario::Scenario;
use crate::units::{Duration, Instant};

pub(super) static DEFINITION: Definition = Definition {
    info: PolicyInfo {
        name: "fab",
        summary: "FAB: Dynamic Threshold with a high alpha for the first bytes of a flow",
        rule: "accept iff q_i < a (B - Q), a = alpha_short while the flow has sent less than short_bytes, else alpha",
        source: "Apostolaki, Vanbever and Ghobadi, Workshop on Buffer Sizing 2019",
        deployment: Deployment::Extension,
        parameters: &[
            ParameterInfo {
                name: "alpha",
                default: "0.5",
                kind: Kind::Positive,
                search: Search::log(1.0 / 64.0, 4096.0),
                meaning: "control factor of long flows, above 0",
            },
            ParameterInfo {
                name: "alpha_short",
                default: "1024",
                kind: Kind::Positive,
                search: Search::log(1.0 / 64.0, 65_536.0),
                meaning: "control factor of a flow's first bytes, above 0",
            },
            ParameterInfo {
                name: "short_bytes",
                default: "15 MSS",
                kind: Kind::Bytes,
                search: Search::log_to(100.0, Bound::Buffer(1.0)).from(Bound::Packets(15.0)),
                meaning: "wire bytes, the arrival's included, from which a flow is long",
            },
            ParameterInfo {
                name: "idle_us",
                default: "5000",
                kind: Kind::Positive,
                search: Search::log(10.0, 1e6),
                meaning: "after longer than this without a packet a flow starts afresh, microseconds",
            },
        ],
    },
    build: |arguments, scenario| {
        let config = FlowAwareConfig::from_arguments(arguments, scenario);
        Ok(FlowAwareBuffer::new(config, scenario.queue_count()).into())
    },
};

/// Parameters of FAB.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FlowAwareConfig {
    /// Initial control factor of long flows, for every queue.
    pub alpha: f64,
    /// Control factor of the first bytes of a flow.
    pub alpha_short: f64,
    /// Wire bytes from which a flow is long.
    pub short_bytes: u64,
    /// Idle time after which the bytes of a flow are counted from zero again.
    pub idle: Duration,
}

impl FlowAwareConfig {
    fn from_arguments(arguments: &Arguments<'_>, scenario: &Scenario) -> Self {
        let idle_us: f64 = arguments.value("idle_us");
        let short_bytes = arguments.optional("short_bytes");
        FlowAwareConfig {
            alpha: arguments.value("alpha"),
            alpha_short: arguments.value("alpha_short"),
            short_bytes: short_bytes.unwrap_or(15 * u64::from(scenario.packets.mss)),
            idle: Duration::from_secs_f64(idle_us * 1e-6),
        }
    }
}

/// Dynamic Threshold, `q_i < α(B - Q)`, with one α for the first bytes of a flow and another for
/// the rest.
///
/// All arriving packets are counted, also those that are lost. The data and the acknowledgements of
/// a connection are two flows.
#[derive(Clone, Debug)]
pub struct FlowAwareBuffer {
    config: FlowAwareConfig,
    /// Control factor of long flows at every queue.
    alphas: Box<[f64]>,
    /// Wire bytes since the flow was last idle.
    sent: FlowTable<u64>,
    /// True if the last arrival was one of the first bytes of its flow.
    short: bool,
}

impl FlowAwareBuffer {
    /// Creates the policy in its state before the first packet.
    pub fn new(config: FlowAwareConfig, queues: usize) -> FlowAwareBuffer {
        FlowAwareBuffer {
            config,
            alphas: vec![config.alpha; queues].into_boxed_slice(),
            sent: FlowTable::new(config.idle),
            short: false,
        }
    }

    /// Returns the parameters that the policy was built with.
    pub fn config(&self) -> FlowAwareConfig {
        self.config
    }

    #[inline]
    fn count(&mut self, packet: PacketView, now: Instant) -> u64 {
        let sent = self.sent.touch(packet.flow, now);
        *sent += packet.bytes;
        *sent
    }
}

impl Policy for FlowAwareBuffer {
    fn listens(&self) -> bool {
        false
    }

    #[inline]
    fn on_arrival(&mut self, view: View<'_>, packet: PacketView) -> Verdict {
        self.short = self.count(packet, view.now) < self.config.short_bytes;
        let alpha = if self.short {
            self.config.alpha_short
        } else {
            self.alphas[packet.queue]
        };
        if (view.buffer.queue(packet.queue) as f64) < alpha * view.buffer.free() as f64 {
            Verdict::Accept
        } else {
            Verdict::Drop
        }
    }

    fn on_drop(&mut self, view: View<'_>, packet: PacketView, loss: Loss) {
        // `on_arrival` has counted the others.
        if loss == Loss::Full {
            self.count(packet, view.now);
        }
    }

    /// Returns the constants of control records: a flow's first bytes and its idle time.
    fn constants(&self) -> Vec<(&'static str, String)> {
        let FlowAwareConfig {
            alpha_short,
            short_bytes,
            idle,
            ..
        } = self.config;
        vec![
            ("fab_alpha_short", alpha_short.to_string()),
            ("fab_short_bytes", short_bytes.to_string()),
            ("fab_idle_ps", idle.as_ps().to_string()),
        ]
    }

    /// Returns the threshold of long flows.
    fn threshold(&self, view: View<'_>, queue: usize) -> Option<u64> {
        Some(floor_u64(self.alphas[queue] * view.buffer.free() as f64))
    }

    /// Returns the α of long flows.
    fn alpha(&self, queue: usize) -> Option<f64> {
        Some(self.alphas[queue])
    }

    /// Sets the α of long flows. The α of a flow's first bytes stays: it admits them under any
    /// load, so it is far above any α for long flows.
    fn set_alpha(&mut self, queue: usize, alpha: f64) -> bool {
        self.alphas[queue] = alpha;
        true
    }

    /// Returns true for the first bytes of a flow.
    fn spares(&self) -> bool {
        self.short
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::policy::workbench::Workbench;

    const MSS: u64 = 1_460;

    const CONFIG: FlowAwareConfig = FlowAwareConfig {
        alpha: 0.5,
        alpha_short: 1_024.0,
        short_bytes: 15 * MSS,
        idle: Duration::from_ms(5),
    };

    /// Returns a switch whose port 0 holds `α(B - Q)`. A long flow is refused there, and a short one is
    /// accepted until the buffer is nearly full.
    fn crowded() -> Workbench<FlowAwareBuffer> {
        let mut bench = Workbench::new(FlowAwareBuffer::new(CONFIG, 2), 300_000, 2);
        bench.buffer.store(0, 100_000, Instant::ZERO);
        assert_eq!(bench.policy.threshold(bench.view(), 0), Some(100_000));
        bench
    }

    fn packet(flow: u32) -> PacketView {
        PacketView {
            flow,
            ..PacketView::of_port(0, MSS)
        }
    }

    #[test]
    fn the_first_fifteen_segments_have_the_higher_factor() {
        let mut bench = crowded();
        for _ in 0..14 {
            assert_eq!(bench.arrive(packet(7)), Ok(()));
        }
        // With the fifteenth the counter is no longer below 15 MSS.
        assert_eq!(bench.arrive(packet(7)), Err(Loss::Refused));
        assert_eq!(
            bench.arrive(packet(8)),
            Ok(()),
            "another flow has its own counter"
        );
        assert_eq!(bench.arrive(packet(7)), Err(Loss::Refused));
    }

    #[test]
    fn a_long_flow_has_dynamic_threshold() {
        let mut bench = crowded();
        let to_port_1 = PacketView {
            flow: 7,
            ..PacketView::of_port(1, MSS)
        };
        for _ in 0..15 {
            bench.arrive(packet(7)).ok();
        }
        let dynamic = |bench: &Workbench<FlowAwareBuffer>| {
            bench.buffer.queue(1) < bench.policy.threshold(bench.view(), 1).unwrap()
        };
        while dynamic(&bench) {
            assert_eq!(bench.arrive(to_port_1), Ok(()));
        }
        assert_eq!(bench.arrive(to_port_1), Err(Loss::Refused));
    }

    #[test]
    fn a_flow_starts_afresh_after_five_idle_milliseconds() {
        let mut bench = crowded();
        for _ in 0..14 {
            bench.arrive(packet(7)).unwrap();
        }
        bench.now = Instant::from_ms(5);
        assert_eq!(bench.arrive(packet(7)), Err(Loss::Refused));
        bench.now = Instant::from_ms(10) + Duration(1);
        for _ in 0..14 {
            assert_eq!(bench.arrive(packet(7)), Ok(()));
        }
        assert_eq!(bench.arrive(packet(7)), Err(Loss::Refused));
    }

    #[test]
    fn packets_that_find_the_buffer_full_count() {
        let mut bench = crowded();
        bench.buffer.store(1, 200_000, Instant::ZERO);
        for _ in 0..14 {
            assert_eq!(bench.arrive(packet(7)), Err(Loss::Full));
        }
        bench.buffer.release(1, 200_000, Instant::ZERO);
        assert_eq!(bench.arrive(packet(7)), Err(Loss::Refused));
    }
}
