//! State of the control for one switch.

use super::reward::{IntervalReward, RewardScale};
use super::{ControlOptions, SimError, apply_second};
use crate::control::observation::{Observation, ObservationScale};
use crate::control::privileged::Scale;
use crate::control::{ActionSet, CodeUnits, action_level, cell_centre};
use bufgym_sim::network::{Neighbour, SwitchId, Topology};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::Switch;
use bufgym_sim::switch::policy::ControlledThreshold;
use bufgym_sim::traffic::Trace;
use bufgym_sim::units::{Duration, Instant, Rate};
use bufgym_util::convert::single;

/// One switch under control.
#[derive(Clone, Debug)]
pub(super) struct Agent {
    pub(super) observation: Observation,
    pub(super) reward: IntervalReward,
    pub(super) reward_scale: RewardScale,
    pub(super) scale: FeatureScale,
    /// -Φ at the last decision by port, in units of the reward.
    pub(super) owed: Vec<f64>,
    pub(super) last_decision: Instant,
    pub(super) decisions: u64,
    /// α by port, decided and perhaps not yet in force.
    pub(super) pending: Vec<u8>,
    /// The same for the second output, early drop or α at the ingress; empty where there is none.
    pub(super) pending_second: Vec<u8>,
    /// Total time for which the ports had paused their neighbours at the last step of the observation; empty where that
    /// is not observed.
    paused: Vec<Duration>,
    /// Number of the current alarms; others are out of date.
    pub(super) alarm: u32,
}

impl Agent {
    /// Creates the agent of a switch that sees the scenario as `at`.
    pub(super) fn new(
        scenario: &Scenario,
        at: &Scenario,
        rates: Vec<Rate>,
        trace: &Trace,
        options: &ControlOptions,
    ) -> Result<Agent, SimError> {
        let ports = rates.len();
        let actions = ActionSet::of(&options.low_level);
        let paused = if actions.sets_ingress() { ports } else { 0 };
        Ok(Agent {
            observation: Observation::before(ports, actions),
            reward: IntervalReward::new(ports),
            reward_scale: RewardScale::new(scenario, at, trace, options)?,
            scale: FeatureScale::new(at, &rates),
            owed: vec![0.0; ports],
            last_decision: Instant::ZERO,
            decisions: 0,
            pending: Vec::new(),
            pending_second: Vec::new(),
            paused: vec![Duration::ZERO; paused],
            alarm: 0,
        })
    }

    pub(super) fn ports(&self) -> usize {
        self.owed.len()
    }

    /// Appends a step to the observation; `now` is on the hosts' clock, `switch_now` on that of the switch.
    pub(super) fn observe(
        &mut self,
        switch: &Switch<ControlledThreshold>,
        now: Instant,
        switch_now: Instant,
    ) {
        let (buffer, policy) = (switch.buffer(), switch.policy());
        let since = now - self.last_decision;
        let elapsed_s = since.as_secs_f64();
        let scale = &self.scale;
        let elapsed = scale.port.elapsed(elapsed_s);
        let slow_ports = scale.slow.as_ref();
        let slow = slow_ports.map(|slow| (slow, slow.port.elapsed(elapsed_s)));
        let paused = &mut self.paused;
        self.observation.push(|port| {
            let volumes = policy.volumes(port);
            let [second, fourth] = match paused.get_mut(port) {
                None => [
                    scale.port.volume(volumes.enqueued),
                    cell_centre(usize::from(policy.indices()[port])),
                ],
                Some(before) => {
                    let used = switch.ingress_use(port, switch_now);
                    let added = used.paused - std::mem::replace(before, used.paused);
                    [
                        scale.port.volume(used.bytes),
                        single(added.as_secs_f64() / elapsed_s.max(f64::MIN_POSITIVE)),
                    ]
                }
            };
            [
                scale.port.queue(buffer.port(port)),
                second,
                scale.port.volume(volumes.dropped),
                fourth,
                match slow {
                    Some((slow, elapsed)) if slow.ports[port] => elapsed,
                    _ => elapsed,
                },
            ]
        });
    }

    /// Takes the levels of an action, `[ports, outputs]`, as the pending decision.
    pub(super) fn decide(&mut self, action: &[f32], actions: ActionSet) {
        let outputs = actions.outputs();
        let level = |output: usize| {
            let values = action.iter().skip(output).step_by(outputs);
            values.map(|&value| action_level(value))
        };
        self.pending.clear();
        self.pending.extend(level(0));
        if outputs > 1 {
            self.pending_second.clear();
            self.pending_second.extend(level(1));
        }
    }

    /// Puts the pending decision in force.
    pub(super) fn apply(&self, switch: &mut Switch<ControlledThreshold>, actions: ActionSet) {
        switch.policy_mut().apply(&self.pending);
        apply_second(switch, actions, &self.pending, &self.pending_second);
    }
}

/// Divisors of the features of a switch.
#[derive(Clone, Debug)]
pub(super) struct FeatureScale {
    /// Scale of the fastest ports.
    port: ObservationScale,
    /// Slower ports, if there are any.
    slow: Option<SlowPorts>,
    pub(super) units: CodeUnits,
    pub(super) privileged: Scale,
}

/// The slower ports of a switch that has two rates.
#[derive(Clone, Debug)]
struct SlowPorts {
    /// By port: true if it is a slower one.
    ports: Vec<bool>,
    /// Same as [`FeatureScale::port`], for the slower ports.
    port: ObservationScale,
    /// Same as [`CodeUnits::drain_ns`], for the slower ports.
    drain_ns: u64,
}

impl FeatureScale {
    /// Creates the scale of a switch that sees the scenario as `at`, which has the rate of its fastest port.
    fn new(at: &Scenario, rates: &[Rate]) -> FeatureScale {
        let units = CodeUnits::new(at);
        let slowest = rates.iter().map(|rate| rate.0).min();
        let slow = slowest
            .filter(|&rate| rate < at.network.rate_bps)
            .map(|rate| {
                let slow = at.clone().with(|scenario| {
                    scenario.network.rate_bps = rate;
                });
                SlowPorts {
                    ports: rates.iter().map(|own| own.0 == rate).collect(),
                    port: ObservationScale::new(units.buffer_bytes, units.beta, rate),
                    drain_ns: CodeUnits::new(&slow).drain_ns,
                }
            });
        FeatureScale {
            port: ObservationScale::new(units.buffer_bytes, units.beta, at.network.rate_bps),
            slow,
            privileged: Scale {
                buffer: at.network.buffer_bytes as f64,
                packet: at.full_packet_bytes() as f64,
                drain: Duration::from_secs_f64(
                    8.0 * at.network.buffer_bytes as f64 / at.network.rate_bps as f64,
                ),
                min_rto_s: at.tcp.min_rto_us as f64 * 1e-6,
            },
            units,
        }
    }

    /// The units of a port.
    pub(super) fn units_of(&self, port: usize) -> CodeUnits {
        match &self.slow {
            Some(slow) if slow.ports[port] => CodeUnits {
                drain_ns: slow.drain_ns,
                ..self.units
            },
            _ => self.units,
        }
    }
}

/// The rate of every port of a switch.
pub(super) fn port_rates<T: Topology>(
    scenario: &Scenario,
    topology: &T,
    switch: SwitchId,
) -> Vec<Rate> {
    let rate = |port| match topology.neighbour(switch, port) {
        Neighbour::Host(_) => scenario.rate(),
        Neighbour::Switch(_) => scenario.fabric_rate(),
    };
    (0..topology.ports(switch)).map(rate).collect()
}
