//! The completion time of a flow that is alone in the network.

use std::sync::Arc;

use super::outcome::FlowRecord;
use super::simulator::{SimError, Simulator};
use crate::convert::index;
use crate::engine::topology::{LeafSpine, OneSwitch, Topology};
use crate::scenario::{MAX_WINDOW, RangeU32, Scenario, TransportKind};
use crate::switch::PolicySpec;
use crate::switch::policy::CompleteSharing;
use crate::traffic::{FlowSpec, Trace, host_number};
use crate::units::{Rate, Time};

/// Completion times of isolated flows, by size.
///
/// A flow alone in the network never loses a packet and never queues behind another flow, so it
/// stays in slow start until its host or its window cap limits it. Its send times are computed, and
/// become periodic from there; a test compares them with the simulator. If slow start depends on
/// more than that (delayed acknowledgements, marks, HyStart), the flow is simulated.
#[derive(Clone, Debug)]
pub struct IsolatedFlow {
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
    propagation: Time,
    handshake: Time,
    full: Time,
    /// When segment k starts to leave the host, counted from the end of the handshake.
    sends: Vec<Time>,
    /// Beyond `sends`: number of segments in a period, and its length.
    period: (usize, Time),
}

impl IsolatedFlow {
    /// For flows of `scenario`. Complexity: O(bandwidth-delay product in segments).
    pub fn new(scenario: &Scenario) -> IsolatedFlow {
        // Other congestion controls are simulated.
        let is_plain_slow_start = match scenario.transport {
            TransportKind::NewReno | TransportKind::Dctcp => true,
            TransportKind::Cubic => !scenario.hystart,
            _ => false,
        };
        let arithmetic_is_exact = is_plain_slow_start
            && scenario.delayed_ack <= 1
            && scenario.mark_threshold_bytes().is_none();
        IsolatedFlow {
            scenario: Arc::new(Scenario {
                max_simulated_ms: 0,
                ..scenario.clone()
            }),
            arithmetic: arithmetic_is_exact.then(|| SlowStart::new(scenario)),
        }
    }

    /// Time from the start of a flow of `bytes` bytes to the delivery of the last one. Complexity:
    /// O(1), or a simulation of that flow with delayed acknowledgements, marks or HyStart.
    ///
    /// # Panics
    /// When `bytes` is zero.
    pub fn completion(&self, bytes: u64) -> Time {
        match &self.arithmetic {
            Some(slow_start) => slow_start.completion(bytes),
            None => simulate(&self.scenario, bytes),
        }
    }

    /// As [`completion`](IsolatedFlow::completion) for a flow between hosts of different leaves of
    /// a [`LeafSpine`] network. Complexity: a simulation of that flow.
    ///
    /// # Panics
    /// When `bytes` is zero.
    pub fn completion_across(&self, bytes: u64) -> Time {
        let topology = LeafSpine {
            leaves: 2,
            hosts_per_leaf: 1,
            spines: 1,
            links_per_pair: 1,
        };
        let scenario = Scenario {
            ports: 2,
            active_ports: RangeU32::new(1, 2),
            incast_degree: RangeU32::new(1, 1),
            ..Scenario::clone(&self.scenario)
        };
        simulate_in(topology, &scenario, bytes)
    }
}

/// The completion time of a flow in a network of its own.
fn simulate(scenario: &Scenario, bytes: u64) -> Time {
    let ports = scenario.port_count();
    simulate_in(OneSwitch { ports }, scenario, bytes)
}

fn simulate_in<T: Topology>(topology: T, scenario: &Scenario, bytes: u64) -> Time {
    let trace = Trace {
        flows: vec![FlowSpec {
            id: 0,
            src: 1,
            dst: 0,
            start: Time::ZERO,
            size: bytes,
            kind: 0,
            query: -1,
            priority: 0,
        }],
        ..Trace::default()
    };
    let unlimited = PolicySpec::unlimited();
    let policy = unlimited.build(scenario).unwrap_or(CompleteSharing.into());
    let capacity = unlimited.capacity(scenario);
    let mut simulator =
        Simulator::in_network(scenario, &trace, topology, capacity, |_| Ok(policy.clone()))
            .expect(
                "a scenario that is being simulated is valid, and so is a flow between its hosts",
            )
            .observed(());
    simulator.advance();
    simulator.last_finish()
}

/// The flows to one port of a single switch when only they are simulated, in the same buffer with
/// complete sharing (NDT paper, §VI-D): what port slowdowns are relative to. Empty for a port without
/// flows.
///
/// # Errors
/// When the scenario is inconsistent or the trace does not fit it.
pub fn isolated_port(
    scenario: &Scenario,
    trace: &Trace,
    port: usize,
) -> Result<Vec<FlowRecord>, SimError> {
    trace.validate(scenario.ports)?;
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
        let rate = scenario.rate();
        let propagation = scenario.propagation();
        let on_wire = |bytes: u32| {
            rate.transmission_time(u64::from(
                bytes + scenario.timestamp_bytes() + scenario.overhead_bytes,
            ))
        };
        let full = on_wire(scenario.mss + scenario.header_bytes);
        let ack = on_wire(scenario.ack_bytes);
        let hop_and_back =
            |there: Time, back: Time| Time(2 * there.0 + 2 * back.0 + 4 * propagation.0);
        let syn = on_wire(scenario.syn_bytes);
        let (handshake, first) = if scenario.handshake {
            (hop_and_back(syn, syn), ack)
        } else {
            (Time::ZERO, Time::ZERO)
        };
        let round_trip = hop_and_back(full, ack);
        let (sends, period) = send_times(scenario, first, full, round_trip);
        SlowStart {
            mss: u64::from(scenario.mss),
            header_bytes: u64::from(scenario.header_bytes + scenario.timestamp_bytes()),
            overhead_bytes: u64::from(scenario.overhead_bytes),
            rate,
            propagation,
            handshake,
            full,
            sends,
            period,
        }
    }

    fn completion(&self, bytes: u64) -> Time {
        let last = index((bytes - 1) / self.mss);
        let payload = bytes - last as u64 * self.mss;
        let wire = payload + self.header_bytes + self.overhead_bytes;
        let transmission = self.rate.transmission_time(wire);
        // A flow that does not end within the time that can be expressed ends at its end.
        let hop = Time(transmission.0 + self.propagation.0);
        let at_switch = self.send(last).saturating_add(hop);
        // A short last segment catches up with the full one before it at the switch.
        let port_free = match last {
            0 => Time::ZERO,
            _ => {
                let two = Time(2 * self.full.0 + self.propagation.0);
                self.send(last - 1).saturating_add(two)
            }
        };
        let left = at_switch.max(port_free).saturating_add(hop);
        self.handshake.saturating_add(left)
    }

    fn send(&self, segment: usize) -> Time {
        if let Some(&time) = self.sends.get(segment) {
            return time;
        }
        let (segments, time) = self.period;
        let beyond = segment - self.sends.len();
        let periods = beyond / segments + 1;
        let reference = self.sends.len() - segments + beyond % segments;
        let later = Time(time.0.saturating_mul(periods as u64));
        self.sends[reference].saturating_add(later)
    }
}

/// Send times up to the steady state, and its period: segments and length.
fn send_times(
    scenario: &Scenario,
    first: Time,
    full: Time,
    round_trip: Time,
) -> (Vec<Time>, (usize, Time)) {
    let initial = scenario.init_cwnd as usize;
    let cap = match scenario.max_cwnd_bytes {
        0 => u64::from(MAX_WINDOW),
        bytes => bytes,
    };
    let cap = index(cap / u64::from(scenario.mss)).max(1);
    let mut sends = vec![first];
    loop {
        let k = sends.len();
        let paced = sends[k - 1] + full;
        // Segment k needs `acks` acknowledgements: k - acks < min(initial + acks, cap).
        let slow_start = (k + 1).saturating_sub(initial).div_ceil(2);
        let capped = (k + 1).saturating_sub(cap);
        let acks = slow_start.max(capped);
        let allowed = match acks {
            0 => first,
            acks => sends[acks - 1] + round_trip,
        };
        sends.push(paced.max(allowed));
        let window = k - acks + 1;
        if window >= cap && k >= 2 * cap && allowed > paced {
            return (sends, (cap, round_trip));
        }
        // Once sending a window takes a full round trip, the host limits the flow from then on.
        let window_lasts = Time(full.0.saturating_mul(window.min(cap) as u64));
        if acks > 0 && allowed <= paced && window_lasts >= round_trip {
            return (sends, (1, full));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_of_one_segment_crosses_two_lines() {
        let scenario = Scenario::default();
        let isolated = IsolatedFlow::new(&scenario);
        let wire = 8 * (100 + u64::from(scenario.header_bytes));
        assert_eq!(isolated.completion(100), Time::from_ns(2 * wire + 20_000));
    }

    #[test]
    fn long_flows_take_the_line_rate() {
        let scenario = Scenario::default();
        let isolated = IsolatedFlow::new(&scenario);
        let difference = isolated.completion(2_000 * 1460) - isolated.completion(1_000 * 1460);
        let full = scenario
            .rate()
            .transmission_time(scenario.full_packet_bytes());
        assert_eq!(difference, Time(1_000 * full.0));
    }

    #[test]
    fn arithmetic_and_simulation_agree() {
        let scenario = Scenario {
            propagation_ns: 200_000,
            ..Scenario::default()
        };
        let isolated = IsolatedFlow::new(&scenario);
        for bytes in [1, 1_460, 20_000, 100_001, 3_000_000] {
            assert_eq!(
                isolated.completion(bytes),
                simulate(&scenario, bytes),
                "{bytes} B"
            );
        }
    }

    #[test]
    fn delayed_acknowledgements_slow_the_start_of_a_flow() {
        let scenario = Scenario {
            propagation_ns: 200_000,
            ..Scenario::default()
        };
        let delayed = Scenario {
            delayed_ack: 2,
            ..scenario.clone()
        };
        let times = [&scenario, &delayed].map(|s| IsolatedFlow::new(s).completion(100_000));
        assert!(times[1] > times[0], "{times:?}");
    }
}
