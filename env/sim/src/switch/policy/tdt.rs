//! Traffic-aware Dynamic Threshold (Huang, Wang and Cui, INFOCOM 2021): a port absorbs a burst with
//! a higher threshold and, after many drops, empties its queue with a lower one.

#[cfg(test)]
mod tests;

use bufgym_util::convert::floor_u64;

use super::dt::ALPHA;
use super::{
    Arguments, Bound, Definition, Deployment, Kind, Loss, PacketView, ParameterInfo, Policy,
    PolicyInfo, Search, Verdict, View,
};
use crate::scenario::Scenario;

pub(super) static DEFINITION: Definition = Definition {
    info: PolicyInfo {
        name: "tdt",
        summary: "Traffic-aware Dynamic Threshold: absorbs bursts, evacuates ports that lose packets",
        rule: "accept iff q_i < T; normal: T = alpha (B - Q); absorbing: B/A, A absorbing ports; evacuating: the least of alpha (B - Q) and B/N",
        source: "Huang, Wang and Cui, INFOCOM 2021",
        deployment: Deployment::Extension,
        parameters: &[
            ALPHA,
            ParameterInfo {
                name: "dec",
                default: "3",
                kind: Kind::Count,
                search: Search::log(1.0, 1024.0),
                meaning: "dequeues in a row that show an underloaded port",
            },
            ParameterInfo {
                name: "nec",
                default: "B/N in packets",
                kind: Kind::Count,
                search: Search::log(1.0, 65_536.0).from(Bound::Value(42.0)),
                meaning: "net enqueues that reveal a burst",
            },
            ParameterInfo {
                name: "oc1",
                default: "nec",
                kind: Kind::Count,
                search: Search::log(1.0, 65_536.0).from(Bound::Value(42.0)),
                meaning: "dequeues in the normal state after which the net enqueues are counted afresh",
            },
            ParameterInfo {
                name: "oc2",
                default: "2B in packets",
                kind: Kind::Count,
                search: Search::log(1.0, 65_536.0).from(Bound::Value(1333.0)),
                meaning: "longest absorption, in dequeues",
            },
            ParameterInfo {
                name: "dc",
                default: "B/2 in packets",
                kind: Kind::Count,
                search: Search::log(1.0, 65_536.0).from(Bound::Value(333.0)),
                meaning: "drops after which a port is evacuated",
            },
        ],
    },
    build: |arguments, scenario| {
        let config = TrafficAwareConfig::from_arguments(arguments, scenario);
        Ok(TrafficAwareThreshold::new(config, scenario.queue_count()).into())
    },
};

/// Parameters of TDT. All counters count packets.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TrafficAwareConfig {
    /// Initial control factor α of every port.
    pub alpha: f64,
    /// Dequeues since the last enqueue after which a port counts as underloaded.
    pub underload_dequeues: u32,
    /// Net enqueues that reveal a burst.
    pub burst_enqueues: u32,
    /// Number of dequeues in the normal state after which the count of net enqueues restarts.
    pub observation_dequeues: u32,
    /// Number of dequeues after which an absorption ends.
    pub absorption_dequeues: u32,
    /// Number of drops after which an evacuation begins.
    pub overload_drops: u32,
}

impl TrafficAwareConfig {
    /// Returns the paper's parameters: 3 dequeues for underload, `B/N` net enqueues and dequeues of an
    /// observation, `2B` dequeues of an absorption, `B/2` drops, in packets of `packet_bytes`.
    pub fn suggested(alpha: f64, buffer_bytes: u64, ports: usize, packet_bytes: u64) -> Self {
        let packets = |bytes: u64| {
            let packets = (bytes / packet_bytes.max(1)).max(1);
            u32::try_from(packets).unwrap_or(u32::MAX)
        };
        let share = packets(buffer_bytes / ports as u64);
        TrafficAwareConfig {
            alpha,
            underload_dequeues: Arguments::defaults(&DEFINITION.info).value("dec"),
            burst_enqueues: share,
            observation_dequeues: share,
            absorption_dequeues: packets(2 * buffer_bytes),
            overload_drops: packets(buffer_bytes / 2),
        }
    }

    fn from_arguments(arguments: &Arguments<'_>, scenario: &Scenario) -> Self {
        let derived = Self::suggested(
            arguments.value("alpha"),
            scenario.network.buffer_bytes,
            scenario.queue_count(),
            scenario.full_packet_bytes(),
        );
        let count = |name, derived| arguments.optional(name).unwrap_or(derived);
        let burst_enqueues = count("nec", derived.burst_enqueues);
        TrafficAwareConfig {
            alpha: derived.alpha,
            underload_dequeues: arguments.value("dec"),
            burst_enqueues,
            observation_dequeues: count("oc1", burst_enqueues),
            absorption_dequeues: count("oc2", derived.absorption_dequeues),
            overload_drops: count("dc", derived.overload_drops),
        }
    }
}

/// The state of a port under TDT.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum TrafficState {
    /// Threshold `α(B - Q)`.
    Normal,
    /// The port absorbs a burst: threshold `B/A`, with `A` absorbing ports.
    Absorption,
    /// The port has lost many packets: threshold `min(α(B - Q), B/N)`, until the queue is shorter
    /// than half of the threshold.
    Evacuation,
}

/// The state of a port and its counters, which start at zero.
#[derive(Clone, Copy, Debug)]
struct Port {
    alpha: f64,
    state: TrafficState,
    /// DEC: dequeues since the last enqueue.
    dequeues: u32,
    /// NEC: net enqueues.
    enqueues: u32,
    /// OC1: dequeues in the normal state. At a busy port they measure time.
    observed: u32,
    /// OC2: dequeues of this absorption.
    absorbed: u32,
    /// DC: drops.
    drops: u32,
}

/// The TDT state machine, one for each port.
///
/// Arrivals and departures at a port check whether its evacuation is over.
#[derive(Clone, Debug)]
pub struct TrafficAwareThreshold {
    config: TrafficAwareConfig,
    ports: Vec<Port>,
    absorbing: usize,
}

impl TrafficAwareThreshold {
    /// Creates the policy with all ports in the normal state.
    pub fn new(config: TrafficAwareConfig, ports: usize) -> Self {
        let normal = Port {
            alpha: config.alpha,
            state: TrafficState::Normal,
            dequeues: 0,
            enqueues: 0,
            observed: 0,
            absorbed: 0,
            drops: 0,
        };
        TrafficAwareThreshold {
            config,
            ports: vec![normal; ports],
            absorbing: 0,
        }
    }

    /// Returns the state of `port`, as of its last event.
    pub fn state(&self, port: usize) -> TrafficState {
        self.ports[port].state
    }

    #[inline]
    fn limit(&self, view: View<'_>, port: usize) -> f64 {
        let capacity = view.buffer.capacity() as f64;
        let Port { alpha, state, .. } = self.ports[port];
        let dynamic = alpha * view.buffer.free() as f64;
        match state {
            TrafficState::Normal => dynamic,
            TrafficState::Absorption => capacity / self.absorbing as f64,
            TrafficState::Evacuation => dynamic.min(capacity / self.ports.len() as f64),
        }
    }

    #[inline]
    fn enter(&mut self, port: usize, state: TrafficState) {
        let before = std::mem::replace(&mut self.ports[port].state, state);
        if before != state {
            self.absorbing += usize::from(state == TrafficState::Absorption);
            self.absorbing -= usize::from(before == TrafficState::Absorption);
            self.ports[port].absorbed = 0;
        }
    }

    #[inline]
    fn end_evacuation(&mut self, view: View<'_>, port: usize) {
        if self.ports[port].state == TrafficState::Evacuation
            && self.limit(view, port) > 2.0 * view.buffer.queue(port) as f64
        {
            self.enter(port, TrafficState::Normal);
        }
    }
}

impl Policy for TrafficAwareThreshold {
    #[inline]
    fn on_arrival(&mut self, view: View<'_>, packet: PacketView) -> Verdict {
        let port = packet.queue;
        self.end_evacuation(view, port);
        if (view.buffer.queue(port) as f64) < self.limit(view, port) {
            Verdict::Accept
        } else {
            Verdict::Drop
        }
    }

    #[inline]
    fn on_enqueue(&mut self, _view: View<'_>, packet: PacketView) {
        let port = &mut self.ports[packet.queue];
        port.dequeues = 0;
        if port.state == TrafficState::Absorption {
            return;
        }
        port.enqueues += 1;
        if port.enqueues >= self.config.burst_enqueues {
            // Both counters stay at zero until the absorption is over.
            port.enqueues = 0;
            port.observed = 0;
            self.enter(packet.queue, TrafficState::Absorption);
        }
    }

    #[inline]
    fn on_departure(&mut self, view: View<'_>, packet: PacketView) {
        let config = self.config;
        let port = &mut self.ports[packet.queue];
        port.dequeues += 1;
        if port.dequeues >= config.underload_dequeues {
            port.dequeues = 0;
            port.enqueues = 0;
            port.drops = 0;
            self.enter(packet.queue, TrafficState::Normal);
        }
        let port = &mut self.ports[packet.queue];
        port.enqueues = port.enqueues.saturating_sub(1);
        match port.state {
            TrafficState::Normal => {
                port.observed += 1;
                if port.observed >= config.observation_dequeues {
                    port.observed = 0;
                    port.enqueues = 0;
                    port.dequeues = 0;
                }
            }
            TrafficState::Absorption => {
                port.absorbed += 1;
                if port.absorbed >= config.absorption_dequeues {
                    self.enter(packet.queue, TrafficState::Normal);
                }
            }
            TrafficState::Evacuation => self.end_evacuation(view, packet.queue),
        }
    }

    fn on_drop(&mut self, _view: View<'_>, packet: PacketView, loss: Loss) {
        if loss == Loss::Full {
            self.enter(packet.queue, TrafficState::Normal);
        }
        let port = &mut self.ports[packet.queue];
        port.enqueues = 0;
        port.dequeues = 0;
        port.drops += 1;
        if port.drops >= self.config.overload_drops {
            port.drops = 0;
            self.enter(packet.queue, TrafficState::Evacuation);
        }
    }

    fn threshold(&self, view: View<'_>, queue: usize) -> Option<u64> {
        Some(floor_u64(self.limit(view, queue)))
    }

    fn alpha(&self, queue: usize) -> Option<f64> {
        let Port { alpha, state, .. } = self.ports[queue];
        (state == TrafficState::Normal).then_some(alpha)
    }

    /// Sets the α of the normal state and of evacuations.
    fn set_alpha(&mut self, queue: usize, alpha: f64) -> bool {
        self.ports[queue].alpha = alpha;
        true
    }
}
