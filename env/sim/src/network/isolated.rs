//! The completion time of a flow that is alone in the network.

use std::sync::Arc;

use super::outcome::FlowRecord;
use super::simulator::{SimError, Simulator};
use crate::engine::topology::{LeafSpine, OneSwitch, Topology};
use crate::scenario::{
    Demand, Ecmp, Marking, Priorities, RangeU32, Scenario, SpinePool, TopologyKind, TransportKind,
};
use crate::switch::PolicySpec;
use crate::switch::policy::CompleteSharing;
use crate::traffic::{FlowSpec, Trace, host_number};
use crate::transport::Settings;
use crate::units::{Duration, Instant, Rate};

/// Marking threshold that disables marks, bytes: more than a flow has in flight.
const UNMARKED: u64 = 1_000_000_000_000;

/// Minimum timeout that disables timeouts: longer than a flow's own queue delays acknowledgements.
const NO_TIMEOUT_US: u64 = 100_000_000;

/// Maximum number of spines in the simulated network.
const MAX_SPINES: u64 = 4_096;

/// Flow properties that determine the base time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct BaseFlow {
    /// Payload bytes, at least 1.
    pub bytes: u64,
    /// True if the flow crosses links between switches.
    pub across: bool,
    /// True if the connection is established before the flow starts.
    pub connected: bool,
    /// Transport of the flow.
    pub transport: TransportKind,
}

impl BaseFlow {
    /// Describes a flow of `bytes` bytes between hosts of one switch.
    pub fn within(bytes: u64, transport: TransportKind) -> BaseFlow {
        BaseFlow {
            bytes,
            across: false,
            connected: false,
            transport,
        }
    }
}

/// Completion times of isolated flows, by size.
///
/// A flow alone in the network never loses a packet and never queues behind another flow, so it
/// stays in slow start until its host or its window cap limits it. Its send times are computed, and
/// become periodic from there; a test compares them with the simulator. If slow start depends on
/// more than that, such as delayed acknowledgements, the flow is simulated.
///
/// Marks, HyStart and spurious timeouts do not slow it down. Other flows can keep these from a
/// flow, which would then be faster among them than alone. Tail loss probes do not speed it up: after a handshake of
/// small packets and with a `min_rto_us` so small that a probe does not wait for long, a flow can be faster than this.
#[derive(Clone, Debug)]
pub struct IsolatedFlow {
    transport: TransportKind,
    scenario: Arc<Scenario>,
    /// Computes send times; `None` if the flow must be simulated.
    arithmetic: Option<SlowStart>,
}

#[derive(Clone, Debug)]
struct SlowStart {
    mss: u64,
    header_bytes: u64,
    overhead_bytes: u64,
    rate: Rate,
    propagation: Duration,
    handshake: Duration,
    rounds: Rounds,
}

/// Times at which the segments of an isolated flow start to leave its host, in slow start.
///
/// Acknowledgements return as far apart as segments leave, and each lets two segments go, or one at
/// the cap of the window. So the window of a round trip leaves in one burst at line rate, a round trip
/// after the burst before. From the first burst that lasts a round trip on, the host never pauses.
#[derive(Clone, Debug)]
struct Rounds {
    /// Start time of the first burst.
    first: Duration,
    /// Transmission time of a full packet.
    full: Duration,
    /// Time from the start of a burst to the acknowledgement of its first segment.
    round_trip: Duration,
    /// Number of segments in the first burst.
    initial: u64,
    /// Largest number of segments in a burst.
    cap: u64,
}

impl IsolatedFlow {
    /// Prepares completion times for flows of `scenario`.
    pub fn new(scenario: &Scenario) -> IsolatedFlow {
        // Other congestion controls are simulated.
        let is_plain_slow_start = matches!(
            scenario.transport.kind,
            TransportKind::NewReno | TransportKind::Dctcp | TransportKind::Cubic
        );
        // Each acknowledgement is of one segment then, whatever the limit of slow start.
        let arithmetic_is_exact =
            is_plain_slow_start && scenario.tcp.slow_start && scenario.tcp.delayed_ack <= 1;
        IsolatedFlow {
            transport: scenario.transport.kind,
            scenario: Arc::new(undisturbed(scenario)),
            arithmetic: arithmetic_is_exact.then(|| SlowStart::new(scenario)),
        }
    }

    /// Returns the time from the start of a flow of `bytes` bytes to the delivery of the last one.
    /// Complexity: O(log of the segments), or a simulation of that flow if its send times are not
    /// computed.
    ///
    /// # Panics
    /// When `bytes` is zero.
    pub fn completion(&self, bytes: u64) -> Duration {
        match &self.arithmetic {
            Some(slow_start) => slow_start.completion(bytes),
            None => simulate(&self.scenario, self.within(bytes)),
        }
    }

    /// Returns the completion time of any flow, as [`completion`](IsolatedFlow::completion).
    /// Complexity: a simulation of it if it crosses several switches or is connected before it starts.
    ///
    /// # Panics
    /// When the flow has no bytes.
    pub fn completion_of(&self, flow: BaseFlow) -> Duration {
        if flow.transport != self.transport {
            let own = self.with_transport(flow.transport);
            return IsolatedFlow::new(&own).completion_of(flow);
        }
        if !flow.across && !flow.connected {
            return self.completion(flow.bytes);
        }
        if !flow.across {
            return simulate(&self.scenario, flow);
        }
        let spines = self.useful_links();
        let scenario = Scenario::clone(&self.scenario).with(|scenario| {
            scenario.network.topology = TopologyKind::LeafSpine;
            scenario.network.leaves = 2;
            scenario.network.hosts_per_leaf = 1;
            scenario.network.spines = spines;
            scenario.network.links_per_pair = 1;
            scenario.network.buffer_bytes_per_port_gbps = 0.0;
            scenario.network.spine_pool = SpinePool::Own;
            scenario.demand.kind = Demand::Ports;
            scenario.network.ports = 2;
            scenario.traffic.active_ports = RangeU32::new(1, 2);
            scenario.traffic.incast_degree = RangeU32::new(1, 1);
        });
        simulate_in(LeafSpine::of(&scenario, 0), &scenario, flow)
    }

    pub(super) fn scenario(&self) -> &Scenario {
        &self.scenario
    }

    fn within(&self, bytes: u64) -> BaseFlow {
        BaseFlow::within(bytes, self.transport)
    }

    /// Returns the number of links between two leaves that an isolated flow can use. That is one,
    /// or with packet spraying as many as let a packet pass both links between switches before the
    /// next packet on them comes, however short that is. Each link belongs to a spine of its own, so
    /// that packets of the other direction do not disturb the turns.
    fn useful_links(&self) -> u32 {
        if self.scenario.network.ecmp != Ecmp::Spray {
            return 1;
        }
        let (host, fabric) = (self.scenario.rate(), self.scenario.fabric_rate());
        // One more, as packets can grow by telemetry.
        let needed = 2 * host.0.div_ceil(fabric.0) + 2;
        let links = self.scenario.uplinks().min(needed).min(MAX_SPINES);
        u32::try_from(links).unwrap_or(u32::MAX)
    }

    /// Returns the scenario with this transport for all flows.
    fn with_transport(&self, transport: TransportKind) -> Scenario {
        Scenario::clone(&self.scenario).with(|scenario| {
            scenario.transport.kind = transport;
            scenario.transport.incast = None;
            scenario.transport.second = None;
            scenario.lossless.priorities = Priorities::NONE;
        })
    }
}

/// Returns the scenario with everything disabled that can slow an isolated flow besides its window:
/// marks, timers that expire although nothing is lost, and HyStart, which `linux` and `linux-dctcp`
/// enable.
fn undisturbed(scenario: &Scenario) -> Scenario {
    let stack = scenario.stack();
    scenario.clone().with(|changed| {
        changed.transport.kind = match scenario.transport.kind {
            TransportKind::Linux => TransportKind::Cubic,
            TransportKind::LinuxDctcp => TransportKind::Dctcp,
            kind => kind,
        };
        changed.tcp.recovery = stack.recovery;
        changed.tcp.delayed_ack = stack.delayed_ack;
        changed.tcp.quick_acks = stack.quick_acks;
        changed.tcp.hystart = false;
        changed.tcp.min_rto_us = NO_TIMEOUT_US;
        changed.tcp.syn_timeout_us = None;
        changed.control.max_simulated_ms = 0;
        changed.host.jitter_ns = 0;
        changed.marking.kind = Marking::Step;
        changed.marking.threshold_packets = 0;
        changed.marking.threshold_bytes = UNMARKED;
    })
}

/// Simulates a flow in a network of its own and returns its completion time.
fn simulate(scenario: &Scenario, flow: BaseFlow) -> Duration {
    let ports = scenario.port_count();
    simulate_in(OneSwitch { ports }, scenario, flow)
}

fn simulate_in<T: Topology>(topology: T, scenario: &Scenario, flow: BaseFlow) -> Duration {
    let trace = Trace {
        flows: vec![FlowSpec {
            id: 0,
            src: 1,
            dst: 0,
            start: Instant::ZERO,
            size: flow.bytes,
            kind: 0,
            query: if flow.connected { 0 } else { -1 },
            priority: 0,
        }],
        ..Trace::default()
    };
    let unlimited = PolicySpec::unlimited();
    let policy = unlimited.build(scenario).unwrap_or(CompleteSharing.into());
    let capacity = unlimited.capacity(scenario);
    let make = |_, _: &Scenario| Ok(policy.clone());
    let mut simulator = Simulator::in_network(scenario, &trace, topology, |_| capacity, make)
        .expect("a scenario that is being simulated is valid, and so is a flow between its hosts")
        .observed(());
    simulator.advance();
    simulator.last_finish() - Instant::ZERO
}

/// Returns the flows to one port of a single switch when only they are simulated, in the same
/// buffer with complete sharing (NDT paper, §VI-D). Port slowdowns are relative to their times.
/// Empty for a port without flows.
///
/// # Errors
/// When the scenario is inconsistent or the trace does not fit it.
pub fn isolated_port(
    scenario: &Scenario,
    trace: &Trace,
    port: usize,
) -> Result<Vec<FlowRecord>, SimError> {
    trace.validate(scenario.network.ports)?;
    let topology = OneSwitch {
        ports: scenario.port_count(),
    };
    let is_to_port = |flow: &&FlowSpec| topology.port_of(host_number(flow.dst)) == port;
    let alone = Trace {
        flows: trace.flows.iter().filter(is_to_port).copied().collect(),
        kinds: trace.kinds.clone(),
        seed: trace.seed,
    };
    if alone.flows.is_empty() {
        return Ok(Vec::new());
    }
    let simulator = Simulator::new(scenario, &alone, CompleteSharing)?;
    Ok(simulator.observed(()).run().records)
}

impl SlowStart {
    fn new(scenario: &Scenario) -> SlowStart {
        let settings = Settings::from_scenario(scenario);
        let rate = scenario.rate();
        let propagation = scenario.propagation();
        let on_wire = |bytes: u32| {
            rate.transmission_time(u64::from(
                bytes + scenario.timestamp_bytes() + scenario.packets.overhead_bytes,
            ))
        };
        let full = on_wire(scenario.packets.mss + scenario.packets.header_bytes);
        let ack = on_wire(scenario.packets.ack_bytes);
        let hop_and_back = |there: Duration, back: Duration| there * 2 + back * 2 + propagation * 4;
        let syn = on_wire(scenario.packets.syn_bytes);
        let (handshake, first) = if scenario.tcp.handshake {
            (hop_and_back(syn, syn), ack)
        } else {
            (Duration::ZERO, Duration::ZERO)
        };
        let round_trip = hop_and_back(full, ack);
        SlowStart {
            mss: u64::from(scenario.packets.mss),
            header_bytes: u64::from(scenario.packets.header_bytes + scenario.timestamp_bytes()),
            overhead_bytes: u64::from(scenario.packets.overhead_bytes),
            rate,
            propagation,
            handshake,
            rounds: Rounds {
                first,
                full,
                round_trip,
                initial: u64::from(scenario.tcp.init_cwnd),
                cap: u64::from((settings.window_cap / settings.mss).max(1)),
            },
        }
    }

    fn completion(&self, bytes: u64) -> Duration {
        let last = (bytes - 1) / self.mss;
        let payload = bytes - last * self.mss;
        let wire = payload + self.header_bytes + self.overhead_bytes;
        let transmission = self.rate.transmission_time(wire);
        // A time beyond the representable range becomes the largest time.
        let hop = transmission + self.propagation;
        let at_switch = self.rounds.send(last).saturating_add(hop);
        // A short last segment catches up with the full one before it at the switch.
        let port_free = match last {
            0 => Duration::ZERO,
            _ => {
                let two = self.rounds.full * 2 + self.propagation;
                self.rounds.send(last - 1).saturating_add(two)
            }
        };
        let left = at_switch.max(port_free).saturating_add(hop);
        self.handshake.saturating_add(left)
    }
}

impl Rounds {
    /// Returns the time at which segment `k`, from 0, starts to leave the host; the last instant if
    /// that is later.
    fn send(&self, k: u64) -> Duration {
        let mut start = self.first;
        let mut before = 0;
        let mut window = self.initial.min(self.cap);
        loop {
            let lasts = self.full.saturating_mul(window);
            let place = k - before;
            if place < window || lasts >= self.round_trip {
                return start.saturating_add(self.full.saturating_mul(place));
            }
            if window == self.cap {
                let bursts = place / window;
                let later = self.round_trip.saturating_mul(bursts);
                let within = self.full.saturating_mul(place % window);
                return start.saturating_add(later).saturating_add(within);
            }
            start = start.saturating_add(self.round_trip);
            before += window;
            window = window.saturating_mul(2).min(self.cap);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::SlowdownBase;

    #[test]
    fn a_flow_of_one_segment_crosses_two_lines() {
        let scenario = Scenario::default();
        let isolated = IsolatedFlow::new(&scenario);
        let wire = 8 * (100 + u64::from(scenario.packets.header_bytes));
        assert_eq!(
            isolated.completion(100),
            Duration::from_ns(2 * wire + 20_000)
        );
    }

    #[test]
    fn long_flows_take_the_line_rate() {
        let scenario = Scenario::default();
        let isolated = IsolatedFlow::new(&scenario);
        let difference = isolated.completion(2_000 * 1460) - isolated.completion(1_000 * 1460);
        let full = scenario
            .rate()
            .transmission_time(scenario.full_packet_bytes());
        assert_eq!(difference, full * 1_000);
    }

    #[test]
    fn arithmetic_and_simulation_agree() {
        let scenario = Scenario::default().with(|scenario| {
            scenario.network.propagation_ns = 200_000;
        });
        let isolated = IsolatedFlow::new(&scenario);
        for bytes in [1, 1_460, 20_000, 100_001, 3_000_000] {
            assert_eq!(
                isolated.completion(bytes),
                simulate(&scenario, isolated.within(bytes)),
                "{bytes} B"
            );
        }
    }

    /// Segment k leaves after the one before it, and once its window lets it go:
    /// `k - acks < min(initial + acks, cap)`.
    fn sends_one_by_one(rounds: &Rounds, segments: usize) -> Vec<Duration> {
        let (initial, cap) = (rounds.initial as usize, rounds.cap as usize);
        let mut sends = vec![rounds.first];
        for k in 1..segments {
            let slow_start = (k + 1).saturating_sub(initial).div_ceil(2);
            let acks = slow_start.max((k + 1).saturating_sub(cap));
            let allowed = match acks {
                0 => rounds.first,
                acks => sends[acks - 1] + rounds.round_trip,
            };
            sends.push(allowed.max(sends[k - 1] + rounds.full));
        }
        sends
    }

    proptest::proptest! {
        #[test]
        fn bursts_are_what_the_acknowledgements_allow(
            first in 0_u64..1_000,
            full in 0_u64..100,
            round_trip in 0_u64..5_000,
            initial in 1_u64..20,
            cap in proptest::prop_oneof![1_u64..100, proptest::strategy::Just(u64::MAX)],
        ) {
            let rounds = Rounds { first: Duration(first), full: Duration(full), round_trip: Duration(round_trip), initial, cap };
            for (k, send) in (0..).zip(sends_one_by_one(&rounds, 400)) {
                proptest::prop_assert_eq!(rounds.send(k), send, "segment {}", k);
            }
        }
    }

    #[test]
    fn the_longest_path_takes_no_memory() {
        let scenario = Scenario::default().with(|scenario| {
            scenario.network.propagation_ns = 100_000_000_000;
            scenario.network.rate_bps = 10_000_000_000_000;
            scenario.packets.mss = 1;
        });
        let completion = IsolatedFlow::new(&scenario).completion(Trace::MAX_SIZE);
        // Doublings from 10 segments to 2 GiB, the largest window, and from there on one window each.
        let largest = f64::from(u32::MAX / 2);
        let rounds = (largest / 10.0).log2() + Trace::MAX_SIZE as f64 / largest;
        let round_trips = completion.as_secs_f64() / 400.0;
        assert!(
            (round_trips - rounds).abs() < 3.0,
            "{round_trips} of {rounds}"
        );
    }

    /// The base leaves out marks and HyStart. That changes nothing in the presets: if all links are
    /// equally fast, an isolated flow fills no queue but that of its host.
    #[test]
    fn presets_are_compared_with_the_whole_simulation() {
        let presets = Scenario::presets().iter().map(|preset| preset.scenario());
        for scenario in presets.filter(|preset| preset.traffic.slowdown_base == SlowdownBase::Alone)
        {
            let whole = scenario.clone().with(|scenario| {
                scenario.host.jitter_ns = 0;
            });
            let isolated = IsolatedFlow::new(&scenario);
            for bytes in [1, 1_460, 20_000, 100_001, 3_000_000] {
                let simulated = simulate(&whole, isolated.within(bytes));
                assert_eq!(
                    isolated.completion(bytes),
                    simulated,
                    "{} {bytes}",
                    scenario.name
                );
            }
        }
    }

    #[test]
    fn delayed_acknowledgements_slow_the_start_of_a_flow() {
        let scenario = Scenario::default().with(|scenario| {
            scenario.network.propagation_ns = 200_000;
        });
        let delayed = scenario.clone().with(|scenario| {
            scenario.tcp.delayed_ack = 2;
        });
        let times = [&scenario, &delayed].map(|s| IsolatedFlow::new(s).completion(100_000));
        assert!(times[1] > times[0], "{times:?}");
    }
}
