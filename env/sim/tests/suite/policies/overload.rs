//! Queues that get more than their line can carry, from hosts that do not react.

use bufgym_sim::network::Simulator;
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::{AnyPolicy, Loss, PacketView, Policy, PolicySpec, Verdict, View};
use bufgym_sim::traffic::{FlowSpec, Trace};
use bufgym_sim::units::Instant;

/// Segments of a flow, all within its first window: its host sends them at line rate, whatever happens
/// to them.
const SEGMENTS: u32 = 6_000;

/// Hosts that send to one queue, each at line rate.
#[derive(Clone, Copy, Debug)]
pub struct Stream {
    /// Destination port.
    pub port: u32,
    /// Queue of the port.
    pub priority: u8,
    /// Number of hosts: the arrival rate in line rates.
    pub senders: u32,
    /// Time at which the hosts begin.
    pub start: Instant,
}

impl Stream {
    /// Returns a stream of twice the line rate from the start on.
    pub fn twice(port: u32, priority: u8) -> Stream {
        Stream {
            port,
            priority,
            senders: 2,
            start: Instant::ZERO,
        }
    }
}

/// Returns a switch with 1 Gbit/s ports, the first of which receive.
pub fn scenario(settings: &[&str]) -> Scenario {
    let mut scenario = Scenario::default();
    let fixed = ["ports=24", "buffer_bytes=1500000", "load=0.5"];
    for setting in fixed.iter().chain(settings) {
        scenario.set(setting).expect("a setting that exists");
    }
    scenario.tcp.init_cwnd = SEGMENTS;
    scenario
}

/// Returns the flows of `streams`; every sender is a separate host, from the last one down.
pub fn trace(scenario: &Scenario, streams: &[Stream]) -> Trace {
    let mut flows = Vec::new();
    let mut src = scenario.network.ports;
    for stream in streams {
        for _ in 0..stream.senders {
            src -= 1;
            flows.push(FlowSpec {
                id: flows.len() as u64,
                src,
                dst: stream.port,
                start: stream.start,
                size: u64::from(SEGMENTS) * u64::from(scenario.packets.mss),
                kind: 0,
                query: -1,
                priority: stream.priority,
            });
        }
    }
    let receivers = streams.iter().map(|stream| stream.port + 1).max();
    assert!(receivers <= Some(src), "too few hosts");
    Trace {
        flows,
        kinds: vec![Trace::DEFAULT_KIND.to_owned()],
        seed: 0,
    }
}

/// A policy, and its observations.
#[derive(Clone, Debug)]
pub struct Watched {
    /// The policy.
    pub policy: AnyPolicy,
    /// Bytes sent, by queue.
    pub sent: Vec<u64>,
    /// Length at which a queue first lost a packet, bytes.
    pub first_loss: Vec<Option<u64>>,
}

impl Policy for Watched {
    fn on_arrival(&mut self, view: View<'_>, packet: PacketView) -> Verdict {
        self.policy.on_arrival(view, packet)
    }

    fn on_enqueue(&mut self, view: View<'_>, packet: PacketView) {
        self.policy.on_enqueue(view, packet);
    }

    fn on_departure(&mut self, view: View<'_>, packet: PacketView) {
        self.sent[packet.queue] += packet.bytes;
        self.policy.on_departure(view, packet);
    }

    fn on_drop(&mut self, view: View<'_>, packet: PacketView, loss: Loss) {
        self.first_loss[packet.queue].get_or_insert(view.buffer.queue(packet.queue));
        self.policy.on_drop(view, packet, loss);
    }

    fn threshold(&self, view: View<'_>, queue: usize) -> Option<u64> {
        self.policy.threshold(view, queue)
    }

    fn alpha(&self, queue: usize) -> Option<f64> {
        self.policy.alpha(queue)
    }
}

/// A switch under `policy` that is being overloaded.
pub struct Overload {
    /// The simulation.
    pub simulator: Simulator<Watched>,
}

impl Overload {
    /// Creates the simulation at time zero.
    pub fn new(scenario: &Scenario, trace: &Trace, policy: &str) -> Overload {
        let spec: PolicySpec = policy.parse().expect("a policy");
        let queues = (scenario.network.ports * scenario.queues.queues_per_port) as usize;
        let watched = Watched {
            policy: spec.build(scenario).expect("parameters that fit"),
            sent: vec![0; queues],
            first_loss: vec![None; queues],
        };
        Overload {
            simulator: Simulator::new(scenario, trace, watched).expect("a valid scenario"),
        }
    }

    /// Runs until `end` and returns the mean length of every queue over that time, bytes.
    pub fn mean_lengths(&mut self, end: Instant) -> Vec<f64> {
        let begin = self.simulator.now();
        let mut areas = vec![0.0; self.simulator.buffer().queues().len()];
        while self.simulator.now() < end {
            let (before, lengths) = (
                self.simulator.now(),
                self.simulator.buffer().queues().to_vec(),
            );
            assert!(self.simulator.step(), "the streams end too early");
            let span = (self.simulator.now() - before).as_secs_f64();
            let weighted = areas.iter_mut().zip(&lengths);
            weighted.for_each(|(area, &bytes)| *area += bytes as f64 * span);
        }
        let span = (self.simulator.now() - begin).as_secs_f64();
        areas.iter().map(|area| area / span).collect()
    }

    /// Runs until `end`.
    pub fn run_until(&mut self, end: Instant) {
        while self.simulator.now() < end {
            assert!(self.simulator.step(), "the streams end too early");
        }
    }

    /// Returns the α with which Dynamic Threshold would now give a queue the policy's threshold.
    pub fn alpha(&self, queue: usize) -> f64 {
        self.simulator
            .policy()
            .alpha(queue)
            .expect("a policy with α")
    }

    /// Returns the bytes sent so far, by queue.
    pub fn sent(&self) -> Vec<u64> {
        self.simulator.policy().sent.clone()
    }
}

/// Asserts that two numbers agree within a fraction of the second.
pub fn assert_close(found: f64, expected: f64, tolerance: f64, what: &str) {
    assert!(
        (found - expected).abs() <= tolerance * expected,
        "{what}: {found} instead of {expected}"
    );
}
