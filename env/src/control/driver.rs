//! The slow level of the control: runs a simulation from decision to decision.

mod measured;
mod reward;
mod run;

pub use reward::IntervalReward;
pub use run::{Controller, FixedAlpha, RunOptions, run_controlled, run_recorded};

use reward::RewardScale;

use super::ideal::{Arrivals, IdealRun, Lookahead};
use super::meter::RewardMeter;
use super::observation::log_scaled;
use super::privileged::{self, Known, Scale};
use super::record::ControlRecord;
use super::{
    ActionSet, BasePolicy, CodeUnits, Objective, Observation, SWITCH, TriggerMode, action_level,
    cell_centre,
};
use bufgym_sim::convert::single;
use bufgym_sim::network::{self, FlowView, OneSwitch, Outcome, Recorders, SimError, Simulator};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::aqm::early::EARLY_OFF;
use bufgym_sim::switch::policy::{NeuralDynamicThreshold, TriggerCause};
use bufgym_sim::traffic::Trace;
use bufgym_sim::units::Time;

use serde::{Deserialize, Serialize};

/// The baseline that is subtracted from the flow time of the objective `fct`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RewardBaseline {
    /// None: the reward is minus the flow time.
    #[default]
    Zero,
    /// The flow time of the same trace with an unlimited buffer, interval by interval.
    ///
    /// It depends on the traffic alone, so the best policy stays the same, and it removes most of
    /// the returns' variance that the policy cannot influence. (An input-dependent baseline: Mao et
    /// al., "Variance Reduction for Reinforcement Learning in Input-Driven Environments", ICLR
    /// 2019.) It costs one more simulation of every trace.
    UnlimitedBuffer,
}

/// Settings of the control loop and of the reward.
#[derive(Clone, Debug)]
pub struct ControlOptions {
    /// Weights of the reward terms.
    pub objective: Objective,
    /// Time constant τ of the discount, seconds. A drop's cost arrives one minimum RTO later, so it
    /// must be well above that.
    pub tau_s: f64,
    /// The heuristic whose α the decisions set, and perhaps its early drop.
    pub low_level: BasePolicy,
    /// When decisions are due.
    pub trigger: TriggerMode,
    /// Baseline of the flow time in the reward.
    pub baseline: RewardBaseline,
    /// Charges delays as soon as they are certain, and discounts later rewards with this time
    /// constant in place of τ, seconds. It needs a baseline: without
    /// [`RewardBaseline::UnlimitedBuffer`], or without `fct` in the objective, it has no effect.
    ///
    /// A drop's cost arrives one minimum RTO later, after some 75 decisions. But once a flow waits
    /// for its retransmission timer, the delay is certain. Let -Φ(s) be the flow time ahead that
    /// exceeds the baseline's, as estimated from the state. The reward is `r + γΦ(s') - Φ(s)`,
    /// which by itself leaves the best policy unchanged (Ng, Harada and Russell 1999). What follows
    /// is discounted by `e^{-Δt/horizon}` instead of γ, so that the shorter horizon affects only
    /// what Φ does not predict (Cheng, Kolobov and Swaminathan, NeurIPS 2021).
    pub horizon_s: Option<f64>,
    /// Length of the interval whose decision has an entropy weight of about 1, seconds.
    pub reference_interval_s: f64,
}

impl Default for ControlOptions {
    fn default() -> Self {
        ControlOptions {
            objective: Objective::FCT,
            tau_s: 1.0,
            low_level: BasePolicy::dt(),
            trigger: TriggerMode::CumulativeEvent,
            baseline: RewardBaseline::Zero,
            horizon_s: None,
            reference_interval_s: 0.010,
        }
    }
}

/// Why [`ControlEnv::advance`] returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pause {
    /// A decision is due: read the observation, then [`act`](ControlEnv::act).
    Decision,
    /// All flows are complete; the last reward covers the time until then.
    Finished,
    /// The limit of decisions or of simulated time was reached; the observation is of that instant.
    Truncated,
}

/// Observers of a controlled simulation: the user's recorders, reward meter, control record.
type Watch = (Recorders, (RewardMeter, ControlRecord));

/// A simulation of one switch under control.
pub type Controlled = Simulator<NeuralDynamicThreshold, Watch>;

/// One trace under the NDT control.
///
/// Clone it to fork a run: with the same actions, clones continue identically, bit for bit.
#[derive(Clone, Debug)]
pub struct ControlEnv {
    simulator: Controlled,
    observation: Observation,
    reward: IntervalReward,
    reward_scale: RewardScale,
    ideal: Option<IdealRun>,
    arrivals: Arrivals,
    feature_scale: FeatureScale,
    units: CodeUnits,
    tau_s: f64,
    lookahead: Option<(Lookahead, f64)>,
    /// -Φ at the last decision by port, in units of the reward.
    owed: Vec<f64>,
    reference_interval_s: f64,
    latency: Time,
    max_interval: Time,
    max_decisions: u64,
    last_decision: Time,
    decisions: u64,
    intervals: Vec<u64>,
    actions: ActionSet,
    /// α by port, decided and perhaps not yet in force.
    pending: Vec<u8>,
    /// The same for the levels of early drop; empty where decisions do not set them.
    pending_early: Vec<u8>,
    /// Number of the current alarms; others are out of date.
    alarm: u64,
}

#[derive(Clone, Copy, Debug)]
struct FeatureScale {
    buffer: f64,
    beta: f64,
    /// Time to send β at line rate, 8β/C, seconds.
    drain_s: f64,
    privileged: Scale,
}

/// Bit of an alarm's tag: it puts a delayed decision in force. The other bits are its number.
const APPLY: u64 = 1 << 63;

impl ControlEnv {
    /// Prepares the trace at time zero with α = 1 on every port. If a port has several queues, its
    /// features are sums over them, and all have its α.
    ///
    /// # Errors
    /// When the scenario is inconsistent, or the trace or the heuristic does not fit it.
    pub fn new(
        scenario: &Scenario,
        trace: &Trace,
        options: &ControlOptions,
    ) -> Result<ControlEnv, SimError> {
        scenario.validate()?;
        let ports = scenario.port_count();
        // β = γ = B/N (paper, §IV-B).
        let units = CodeUnits::new(scenario);
        let beta = units.beta;
        let policy = NeuralDynamicThreshold::new(ports, beta, beta, options.trigger)
            .with_queues_per_port(scenario.queues_per_port as usize);
        let low_level = &options.low_level;
        let policy = match low_level.admits_by_dt() {
            true => policy,
            false => policy.over(low_level.policy().build(scenario)?),
        };
        let topology = OneSwitch { ports };
        let meter = RewardMeter::new(topology, trace.flows.len(), options.tau_s);
        let watch = (Recorders::default(), (meter, ControlRecord::default()));
        let simulator = Simulator::new(scenario, trace, policy)?;
        let simulator = simulator.managed(low_level.policy().aqm(), scenario)?;
        let simulator = simulator.observed(watch);
        let relative =
            options.baseline == RewardBaseline::UnlimitedBuffer && options.objective.fct > 0.0;
        let ideal = relative.then(|| IdealRun::new(scenario, trace, options.tau_s));
        let mut env = ControlEnv {
            ideal: ideal.transpose()?,
            arrivals: Arrivals::new(topology, trace),
            reward: IntervalReward::new(ports),
            reward_scale: RewardScale::new(scenario, trace, options)?,
            feature_scale: FeatureScale {
                buffer: scenario.buffer_bytes as f64,
                beta: beta as f64,
                drain_s: 8.0 * beta as f64 / scenario.rate_bps as f64,
                privileged: Scale {
                    buffer: scenario.buffer_bytes as f64,
                    packet: scenario.full_packet_bytes() as f64,
                    drain: Time::from_secs_f64(
                        8.0 * scenario.buffer_bytes as f64 / scenario.rate_bps as f64,
                    ),
                    min_rto_s: scenario.min_rto_us as f64 * 1e-6,
                },
            },
            units,
            observation: Observation::new(ports),
            simulator,
            tau_s: options.tau_s,
            lookahead: options.horizon_s.map(|horizon_s| {
                let lookahead = Lookahead {
                    tau_s: options.tau_s,
                    rate_bps: scenario.rate_bps as f64,
                };
                (lookahead, horizon_s)
            }),
            owed: vec![0.0; ports],
            reference_interval_s: options.reference_interval_s,
            latency: Time::from_us(scenario.decision_latency_us),
            max_interval: Time::from_us(scenario.max_interval_us),
            max_decisions: scenario.max_decisions,
            last_decision: Time::ZERO,
            decisions: 0,
            intervals: Vec::new(),
            actions: ActionSet::of(low_level),
            pending: Vec::new(),
            pending_early: Vec::new(),
            alarm: 0,
        };
        env.set_interval_alarm();
        if env.actions.drops_early() {
            env.simulator.set_early_drop(&vec![EARLY_OFF; ports]);
        }
        Ok(env)
    }

    /// Runs to the next decision, to the end of the trace or to a limit.
    pub fn advance(&mut self) -> Pause {
        loop {
            match self.simulator.advance() {
                network::Pause::Decision(_) => return self.ask(),
                network::Pause::Alarm(tag) => {
                    if self.on_alarm(tag) {
                        return self.ask();
                    }
                }
                network::Pause::Finished => {
                    self.close_interval();
                    return Pause::Finished;
                }
                network::Pause::TimeLimit => {
                    self.observe();
                    return Pause::Truncated;
                }
            }
        }
    }

    fn ask(&mut self) -> Pause {
        self.observe();
        if self.max_decisions > 0 && self.decisions >= self.max_decisions {
            Pause::Truncated
        } else {
            Pause::Decision
        }
    }

    /// Handles an alarm and returns whether a decision is due.
    fn on_alarm(&mut self, tag: u64) -> bool {
        if tag & !APPLY != self.alarm {
            return false;
        }
        if tag & APPLY == 0 {
            self.simulator.policy_mut().fire(TriggerCause::Interval);
            return true;
        }
        self.apply();
        self.record(|lines, buffer, now| lines.applied(buffer, now));
        false
    }

    /// Puts the pending decision in force.
    fn apply(&mut self) {
        self.simulator.policy_mut().apply(&self.pending);
        if self.actions.drops_early() {
            self.simulator.set_early_drop(&self.pending_early);
        }
    }

    /// Decides on all ports: `action` is `[ports, outputs]`, with values of [-1, 1] that
    /// [`action_level`] turns into levels.
    ///
    /// # Panics
    /// When there is not one value per port and output.
    pub fn act(&mut self, action: &[f32]) {
        let outputs = self.outputs();
        let expected = self.ports() * outputs;
        assert_eq!(action.len(), expected, "one action per port and output");
        let level = |output: usize| {
            let values = action.iter().skip(output).step_by(outputs);
            values.map(|&value| action_level(value))
        };
        self.pending.clear();
        self.pending.extend(level(0));
        if self.actions.drops_early() {
            self.pending_early.clear();
            self.pending_early.extend(level(1));
        }
        let now = self.simulator.now();
        if self.decisions > 0 {
            self.intervals.push((now - self.last_decision).as_ps());
        }
        self.decisions += 1;
        self.last_decision = now;
        self.alarm += 1;
        self.record_decision();
        let policy = self.simulator.policy_mut();
        policy.acknowledge();
        if self.latency == Time::ZERO {
            self.apply();
        } else {
            policy.suspend();
            self.simulator.set_alarm(self.latency, self.alarm | APPLY);
        }
        self.set_interval_alarm();
    }

    fn set_interval_alarm(&mut self) {
        if self.max_interval > Time::ZERO {
            self.simulator
                .set_alarm(self.max_interval.max(self.latency), self.alarm);
        }
    }

    fn observe(&mut self) {
        let now = self.simulator.now();
        let elapsed_s = (now - self.last_decision).as_secs_f64();
        let scale = self.feature_scale;
        let elapsed = log_scaled(elapsed_s / scale.drain_s);
        let (buffer, policy) = (self.simulator.buffer(), self.simulator.policy());
        self.observation.push(|port| {
            let volumes = policy.volumes(port);
            [
                single(buffer.port(port) as f64 / scale.buffer),
                log_scaled(volumes.enqueued as f64 / scale.beta),
                log_scaled(volumes.dropped as f64 / scale.beta),
                cell_centre(usize::from(policy.indices()[port])),
                elapsed,
            ]
        });
        self.close_interval();
    }

    fn close_interval(&mut self) {
        let now = self.simulator.now();
        let elapsed = now - self.last_decision;
        let elapsed_s = elapsed.as_secs_f64();
        let discount = libm::exp(-elapsed_s / self.tau_s);
        self.reward.discount = single(discount);
        self.reward.entropy_weight =
            single(self.tau_s * (1.0 - discount) / self.reference_interval_s);
        self.reward.elapsed = elapsed;
        let switch_now = self.simulator.switch_now(SWITCH);
        let mut terms = self.meter_mut().close_interval(now, switch_now);
        if let Some(ideal) = &mut self.ideal {
            // At the end of the episode the baseline includes the rest of the ideal run.
            let rest = self.simulator.finished().then(|| ideal.end());
            ideal.close_interval(rest.unwrap_or(now).max(now), |port, totals| {
                terms[port].0.discounted_flow_time -= totals.discounted_flow_time;
            });
        }
        self.reward_scale.weigh(&terms, &mut self.reward);
        self.shape(now);
    }

    /// Charges the delays that became certain in the interval.
    fn shape(&mut self, now: Time) {
        let (Some((lookahead, horizon_s)), Some(ideal)) = (self.lookahead, &self.ideal) else {
            return;
        };
        let mut owed = vec![0.0; self.owed.len()];
        if !self.simulator.finished() {
            lookahead.excess(now, ideal, &self.active_flows(), &mut owed);
            self.reward_scale.value_flow_time(&mut owed);
        }
        let discount = f64::from(self.reward.discount);
        for ((reward, before), after) in self
            .reward
            .port_rewards
            .iter_mut()
            .zip(&self.owed)
            .zip(&owed)
        {
            *reward += single(before - discount * after);
        }
        self.reward.total = self.reward.port_rewards.iter().map(|&r| f64::from(r)).sum();
        self.reward.discount = single(libm::exp(-self.reward.elapsed.as_secs_f64() / horizon_s));
        self.owed = owed;
    }

    /// `[ports, HISTORY, FEATURES]`: the observation of the switch at the last pause.
    pub fn observation(&self) -> &[f32] {
        self.observation.as_slice()
    }

    /// Writes `[ports, PRIVILEGED]`: the state of the senders and the future traffic, for critics
    /// in training. The features that refer to an unlimited buffer are zero if the reward does not.
    ///
    /// # Panics
    /// When `out` is shorter than that.
    pub fn privileged(&self, out: &mut [f32]) {
        let known = Known {
            topology: *self.simulator.topology(),
            buffer: self.simulator.buffer(),
            now: self.simulator.now(),
            flows: &self.active_flows(),
            ideal: self.ideal.as_ref(),
            arrivals: &self.arrivals,
        };
        privileged::write(known, self.feature_scale.privileged, out);
    }

    /// Active flows; a flow whose loss only the timer repairs counts as stalled.
    fn active_flows(&self) -> Vec<FlowView> {
        let (_, (meter, _)) = self.simulator.observer();
        let stalled = |flow: FlowView| {
            let wait = meter.awaits_timeout(flow.number).then_some(flow.timeout_in);
            FlowView {
                stalled_for: flow.stalled_for.or(wait),
                ..flow
            }
        };
        self.simulator.active_flows().map(stalled).collect()
    }

    fn meter_mut(&mut self) -> &mut RewardMeter {
        &mut self.simulator.observer_mut().1.0
    }

    fn record_mut(&mut self) -> &mut ControlRecord {
        &mut self.simulator.observer_mut().1.1
    }

    /// The reward of the interval that ended with the last pause.
    pub fn reward(&self) -> &IntervalReward {
        &self.reward
    }

    /// Number of ports.
    pub fn ports(&self) -> usize {
        self.simulator.buffer().ports()
    }

    /// What decisions set.
    pub fn actions(&self) -> ActionSet {
        self.actions
    }

    /// Values per port in an action.
    pub fn outputs(&self) -> usize {
        self.actions.outputs()
    }

    /// Number of decisions so far.
    pub fn decisions(&self) -> u64 {
        self.decisions
    }

    /// The simulation under control.
    pub fn simulator(&self) -> &Controlled {
        &self.simulator
    }

    /// See [`Recorders::measure_waits`].
    pub fn measure_waits(&mut self) {
        self.simulator.observer_mut().0.measure_waits();
    }

    /// See [`Recorders::record_drops`].
    pub fn record_drops(&mut self) {
        self.simulator.observer_mut().0.record_drops();
    }

    /// From now on, records the state of every port every `interval` of simulated time.
    pub fn record_timeline(&mut self, interval: Time) {
        let now = self.simulator.switch_now(SWITCH);
        let recorders = &mut self.simulator.observer_mut().0;
        recorders.record_timeline(interval, now);
    }

    /// Flow records and aggregates so far.
    pub fn outcome(&mut self) -> Outcome {
        let mut outcome = self.simulator.outcome();
        outcome.summary.decisions = self.decisions;
        outcome.trigger_intervals_ps = self.intervals.clone();
        outcome
    }
}

#[cfg(test)]
mod tests;
