//! The slow level of the control: runs a simulation from decision to decision.

mod agent;
mod external;
mod flow_times;
mod measured;
mod reward;
mod run;

pub use external::{ControlledSwitch, ExternalControl};
pub use flow_times::FlowTimes;
pub use measured::Reading;
pub use reward::IntervalReward;
pub use run::{Controller, FixedAlpha, RunOptions, run_controlled, run_observed, run_recorded};

use agent::{Agent, port_rates};

use super::ideal::{Arrivals, IdealRun, Lookahead};
use super::meter::{ActiveTime, BaseRates, RewardMeter};
use super::privileged::{self, Known};
use super::record::ControlRecord;
use super::ways::{ControlTopology, Paths, switch_id};
use super::{ALPHAS, INITIAL_LEVEL};
use super::{ActionSet, CodeUnits, LowLevelPolicy, Objective, SWITCH, TriggerMode};
use bufgym_sim::network::{
    self, Alarm, AlarmKind, FlowView, IngressSampling, Observer, OneSwitch, Outcome, Recorders,
    SimError, Simulator, SwitchId,
};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::policy::{ControlledThreshold, TriggerCause};
use bufgym_sim::switch::{PolicyParseError, Switch};
use bufgym_sim::traffic::Trace;
use bufgym_sim::units::{Duration, Instant};
use bufgym_util::convert::single;

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
    /// The heuristic whose α, and possibly early drop, the decisions set.
    pub low_level: LowLevelPolicy,
    /// When decisions are due.
    pub trigger: TriggerMode,
    /// Baseline of the flow time in the reward.
    pub baseline: RewardBaseline,
    /// Charges delays as soon as they are certain, and discounts later rewards with this time constant instead of τ,
    /// seconds. It needs a baseline: without [`RewardBaseline::UnlimitedBuffer`], or without `fct` in the objective, it
    /// has no effect.
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
    /// Durations of flows that scale the reward; environments with clones of these options compute them once.
    pub flow_times: FlowTimes,
}

impl Default for ControlOptions {
    fn default() -> Self {
        ControlOptions {
            objective: Objective::FCT,
            tau_s: 1.0,
            low_level: LowLevelPolicy::dt(),
            trigger: TriggerMode::CumulativeEvent,
            baseline: RewardBaseline::Zero,
            horizon_s: None,
            reference_interval_s: 0.010,
            flow_times: FlowTimes::default(),
        }
    }
}

/// The reason why [`ControlEnv::advance`] returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StopReason {
    /// A decision is due: read the observation, then [`act`](ControlEnv::act).
    Decision,
    /// All flows are complete; the last reward covers the time until then.
    Finished,
    /// The limit of decisions or of simulated time was reached; the observation is of that instant.
    Truncated,
}

/// Observers of a controlled simulation: recorders, the user's own observer, reward meter, control record.
type Watch<T, O> = ((Recorders, O), (RewardMeter<T>, ControlRecord));

/// A simulation under control, by default of one switch.
pub type Controlled<T = OneSwitch, O = ()> = Simulator<ControlledThreshold, Watch<T, O>, T>;

/// One trace under the NDT control.
///
/// In a network every switch decides for itself: it has its own counts, trigger, observation, decision latency and
/// longest interval, and the simulation pauses for one decision at a time. The current switch ([`at`](ControlEnv::at))
/// is the one whose decision is due. Methods without a switch argument read the current switch, and
/// [`act`](ControlEnv::act) decides for it. `max_decisions` of the scenario limits the decisions of all switches
/// together.
///
/// Clone it to fork a run: with the same actions, clones continue identically, bit for bit.
///
/// `O` is an additional observer of the simulation.
#[derive(Clone, Debug)]
pub struct ControlEnv<T: ControlTopology = OneSwitch, O: Observer = ()> {
    simulator: Controlled<T, O>,
    /// By switch.
    agents: Vec<Agent>,
    /// The switch of the last pause; always the first one where there is no other.
    at: SwitchId,
    ideal: Option<IdealRun<T>>,
    arrivals: Arrivals,
    tau_s: f64,
    lookahead: Option<(Lookahead, f64)>,
    /// For the slowdowns ahead of the lookahead.
    base_rates: Option<BaseRates>,
    reference_interval_s: f64,
    latency: Duration,
    max_interval: Duration,
    min_interval: Duration,
    max_decisions: u64,
    decisions: u64,
    intervals: Vec<u64>,
    actions: ActionSet,
}

impl ControlEnv<OneSwitch> {
    /// Prepares the trace at time zero with α = 1 on every port. If a port has several queues, its
    /// features are sums over them, and all have its α.
    ///
    /// # Errors
    /// When the scenario is inconsistent or has several switches, or the trace or the heuristic does
    /// not fit it.
    pub fn new(
        scenario: &Scenario,
        trace: &Trace,
        options: &ControlOptions,
    ) -> Result<ControlEnv, SimError> {
        ControlEnv::in_network(scenario, trace, options)
    }

    /// Same as [`advance`](ControlEnv::advance), but compiled with this crate. So callers run the same code at any
    /// level of optimisation.
    #[inline(never)]
    pub fn advance_alone(&mut self) -> StopReason {
        self.advance()
    }
}

/// Puts the levels of the second output in force, by port: early drop, or α at the ingress and, with the first output,
/// at the egress of lossless memory. The policy has the first output.
fn apply_second(
    switch: &mut Switch<ControlledThreshold>,
    actions: ActionSet,
    first: &[u8],
    second: &[u8],
) {
    match actions {
        ActionSet::Alpha => {}
        ActionSet::AlphaEarly => switch.set_early_drop(second),
        ActionSet::AlphaIngress => {
            for (port, levels) in first.iter().zip(second).enumerate() {
                let (egress, ingress) = levels;
                let [egress, ingress] = [egress, ingress].map(|level| ALPHAS[usize::from(*level)]);
                switch.set_lossless_alphas(port, ingress, egress);
            }
        }
    }
}

/// As [`apply_second`], with what is in force before the first decision.
fn apply_initial(switch: &mut Switch<ControlledThreshold>, actions: ActionSet, ports: usize) {
    let of_output = |level: Option<&u8>| vec![*level.unwrap_or(&INITIAL_LEVEL); ports];
    let levels = actions.initial();
    apply_second(
        switch,
        actions,
        &of_output(levels.first()),
        &of_output(levels.get(1)),
    );
}

/// Returns the fast level at a switch that sees the scenario as `at`.
fn low_level_policy(
    at: &Scenario,
    options: &ControlOptions,
) -> Result<ControlledThreshold, PolicyParseError> {
    // β = γ = B/N (paper, §IV-B).
    let beta = CodeUnits::new(at).beta;
    let policy = ControlledThreshold::new(at.port_count(), beta, beta, options.trigger)
        .with_queues_per_port(at.queues.queues_per_port as usize);
    let low_level = &options.low_level;
    Ok(match low_level.admits_by_dt() {
        true => policy,
        false => policy.over(low_level.policy().build(at)?),
    })
}

/// Creates the simulation with policy, queue management and observers.
fn controlled<T: ControlTopology, O: Observer>(
    scenario: &Scenario,
    trace: &Trace,
    options: &ControlOptions,
    observer: O,
) -> Result<(Controlled<T, O>, Option<BaseRates>), SimError> {
    let low_level = &options.low_level;
    let topology = T::for_trace(scenario, trace.seed)?;
    let make = |_, at: &Scenario| low_level_policy(at, options);
    let capacity = |at: &Scenario| at.network.buffer_bytes;
    let simulator = Simulator::in_network(scenario, trace, topology.clone(), capacity, make)?;
    let simulator = simulator.with_aqm(low_level.policy().aqm(), scenario)?;
    let rates = BaseRates::new(scenario, trace, &topology, &options.objective);
    let ways = Paths::new(topology, simulator.switches().len(), trace);
    let time = ActiveTime::new(ways, options.tau_s, rates.clone());
    let meter = RewardMeter::new(time, trace.flows.len());
    let watch = (
        (Recorders::default(), observer),
        (meter, ControlRecord::default()),
    );
    Ok((simulator.observed(watch), rates))
}

impl<T: ControlTopology> ControlEnv<T> {
    /// Same as [`new`](ControlEnv::new), for a network with a control loop at every switch.
    ///
    /// # Errors
    /// When the scenario is inconsistent or has another network, or the trace or the heuristic does not
    /// fit it.
    pub fn in_network(
        scenario: &Scenario,
        trace: &Trace,
        options: &ControlOptions,
    ) -> Result<ControlEnv<T>, SimError> {
        ControlEnv::observed(scenario, trace, options, ())
    }
}

impl<T: ControlTopology, O: Observer> ControlEnv<T, O> {
    /// Same as [`in_network`](ControlEnv::in_network), with an additional observer.
    ///
    /// # Errors
    /// Same as [`in_network`](ControlEnv::in_network).
    pub fn observed(
        scenario: &Scenario,
        trace: &Trace,
        options: &ControlOptions,
        observer: O,
    ) -> Result<ControlEnv<T, O>, SimError> {
        scenario.validate()?;
        let (simulator, base_rates) = controlled::<T, O>(scenario, trace, options, observer)?;
        let ways = simulator.observer().1.0.ways().clone();
        let agent = |switch: SwitchId| {
            let topology = ways.topology();
            let at = topology.scenario_at(scenario, switch);
            let rates = port_rates(scenario, topology, switch);
            Agent::new(scenario, &at, rates, trace, options)
        };
        let switches = (0..simulator.switches().len()).map(switch_id);
        let agents = switches.map(agent).collect::<Result<Vec<_>, _>>()?;
        let timed = options.objective.measures_time();
        let relative = options.baseline == RewardBaseline::UnlimitedBuffer && timed;
        let ideal = relative.then(|| {
            let time = ActiveTime::new(ways.clone(), options.tau_s, base_rates.clone());
            IdealRun::new(scenario, trace, time)
        });
        let mut env = ControlEnv {
            ideal: ideal.transpose()?,
            arrivals: Arrivals::new(&ways, trace),
            simulator,
            agents,
            at: SWITCH,
            tau_s: options.tau_s,
            lookahead: options.horizon_s.map(|horizon_s| {
                let lookahead = Lookahead {
                    tau_s: options.tau_s,
                    rate_bps: scenario.network.rate_bps as f64,
                };
                (lookahead, horizon_s)
            }),
            base_rates,
            reference_interval_s: options.reference_interval_s,
            latency: Duration::from_us(scenario.control.decision_latency_us),
            max_interval: Duration::from_us(scenario.control.max_interval_us),
            min_interval: Duration::from_us(scenario.control.min_interval_us),
            max_decisions: scenario.control.max_decisions,
            decisions: 0,
            intervals: Vec::new(),
            actions: ActionSet::of(&options.low_level),
        };
        for at in (0..env.agents.len()).map(switch_id) {
            env.at = at;
            env.set_interval_alarm();
            let ports = env.ports();
            let (switch, _) = env.simulator.switch_and_observer(at);
            apply_initial(switch, env.actions, ports);
        }
        env.at = SWITCH;
        Ok(env)
    }

    /// Runs to the next decision, to the end of the trace or to a limit.
    pub fn advance(&mut self) -> StopReason {
        loop {
            match self.simulator.advance() {
                network::StopReason::Decision(switch) => {
                    self.at = switch;
                    return self.ask();
                }
                network::StopReason::Alarm(alarm) => {
                    if self.on_alarm(alarm) {
                        return self.ask();
                    }
                }
                network::StopReason::Finished => {
                    self.at_every_switch(Self::close_interval);
                    return StopReason::Finished;
                }
                network::StopReason::TimeLimit => {
                    self.at_every_switch(Self::observe);
                    return StopReason::Truncated;
                }
            }
        }
    }

    /// Calls `act` with every switch as the current one, then restores the current switch.
    fn at_every_switch(&mut self, act: impl Fn(&mut Self)) {
        let last = self.at;
        for switch in (0..self.agents.len()).map(switch_id) {
            self.at = switch;
            act(self);
        }
        self.at = last;
    }

    fn ask(&mut self) -> StopReason {
        if self.max_decisions > 0 && self.decisions >= self.max_decisions {
            self.at_every_switch(Self::observe);
            return StopReason::Truncated;
        }
        self.observe();
        StopReason::Decision
    }

    /// Handles an alarm. Returns true if a decision is due.
    fn on_alarm(&mut self, alarm: Alarm) -> bool {
        let at = alarm.switch;
        if alarm.number != self.agents[at.index()].alarm {
            return false;
        }
        self.at = at;
        match alarm.kind {
            AlarmKind::Apply => {
                self.apply();
                if !T::IS_FABRIC {
                    self.record(|lines, buffer, now| lines.applied(buffer, now));
                }
                false
            }
            AlarmKind::Release => self.policy_mut().release(),
            AlarmKind::Interval => {
                self.policy_mut().fire(TriggerCause::Interval);
                true
            }
        }
    }

    /// Sets an alarm of the current switch, which its next decision makes void.
    fn set_alarm(&mut self, delay: Duration, kind: AlarmKind) {
        let switch = self.at();
        let number = self.agents[switch.index()].alarm;
        let alarm = Alarm {
            switch,
            kind,
            number,
        };
        self.simulator.set_alarm(delay, alarm);
    }

    /// Puts the pending decision in force.
    fn apply(&mut self) {
        let at = self.at();
        let (switch, _) = self.simulator.switch_and_observer(at);
        self.agents[at.index()].apply(switch, self.actions);
    }

    /// Decides on all ports of the current switch: `action` is `[ports, outputs]`, with values of
    /// [-1, 1] that [`action_level`](super::action_level) turns into levels.
    ///
    /// # Panics
    /// When there is not one value per port and output.
    pub fn act(&mut self, action: &[f32]) {
        let expected = self.ports() * self.outputs();
        assert_eq!(action.len(), expected, "one action per port and output");
        let (at, now) = (self.at(), self.simulator.now());
        let agent = &mut self.agents[at.index()];
        agent.decide(action, self.actions);
        if agent.decisions > 0 {
            self.intervals.push((now - agent.last_decision).as_ps());
        }
        agent.decisions += 1;
        agent.last_decision = now;
        agent.alarm = agent.alarm.wrapping_add(1);
        self.decisions += 1;
        if !T::IS_FABRIC {
            self.record_decision();
        }
        let latency = self.latency;
        let policy = self.policy_mut();
        policy.acknowledge();
        if latency == Duration::ZERO {
            self.apply();
        } else {
            policy.suspend();
            self.set_alarm(latency, AlarmKind::Apply);
        }
        self.set_interval_alarm();
        if self.min_interval > Duration::ZERO {
            self.policy_mut().hold();
            self.set_alarm(self.min_interval, AlarmKind::Release);
        }
    }

    fn set_interval_alarm(&mut self) {
        if self.max_interval > Duration::ZERO {
            self.set_alarm(self.max_interval.max(self.latency), AlarmKind::Interval);
        }
    }

    fn observe(&mut self) {
        let (at, now) = (self.at(), self.simulator.now());
        let switch_now = self.simulator.switch_now(at);
        let switch = self.simulator.switch(at);
        self.agents[at.index()].observe(switch, now, switch_now);
        self.close_interval();
    }

    fn close_interval(&mut self) {
        let (at, now) = (self.at(), self.simulator.now());
        let switch_now = self.simulator.switch_now(at);
        let mut terms = self.meter_mut().close_interval(at, now, switch_now);
        let agent = &mut self.agents[at.index()];
        let elapsed = now - agent.last_decision;
        let elapsed_s = elapsed.as_secs_f64();
        let discount = libm::exp(-elapsed_s / self.tau_s);
        agent.reward.discount = single(discount);
        agent.reward.entropy_weight =
            single(self.tau_s * (1.0 - discount) / self.reference_interval_s);
        agent.reward.elapsed = elapsed;
        if let Some(ideal) = &mut self.ideal {
            // At the end of the episode the baseline includes the rest of the ideal run.
            let rest = self.simulator.finished().then(|| ideal.end());
            ideal.close_interval(at, rest.unwrap_or(now).max(now), |port, totals| {
                terms[port].0.discounted_flow_time -= totals.discounted_flow_time;
                terms[port].0.discounted_slowdown -= totals.discounted_slowdown;
            });
        }
        agent.reward_scale.weigh(&terms, &mut agent.reward);
        if agent.reward_scale.charges_pauses() {
            let switch = self.simulator.switch(at);
            let paused = |port| switch.ingress_use(port, switch_now).paused;
            agent.reward_scale.charge_pauses(paused, &mut agent.reward);
        }
        self.shape(now);
    }

    /// Charges the delays that became certain in the interval.
    fn shape(&mut self, now: Instant) {
        let Some((lookahead, horizon_s)) = self.lookahead.filter(|_| self.ideal.is_some()) else {
            return;
        };
        let owed = match self.simulator.finished() {
            true => vec![0.0; self.ports()],
            false => self.owed(lookahead, now),
        };
        let agent = &mut self.agents[self.at.index()];
        let reward = &mut agent.reward;
        let discount = f64::from(reward.discount);
        let owes = agent.owed.iter().zip(&owed);
        for (reward, (before, after)) in reward.port_rewards.iter_mut().zip(owes) {
            *reward += single(before - discount * after);
        }
        reward.total = reward.port_rewards.iter().map(|&r| f64::from(r)).sum();
        reward.discount = single(libm::exp(-reward.elapsed.as_secs_f64() / horizon_s));
        agent.owed = owed;
    }

    /// Returns by how much the cost of the flows at the current switch will exceed that in the ideal run, by port.
    fn owed(&self, lookahead: Lookahead, now: Instant) -> Vec<f64> {
        let scale = &self.agent().reward_scale;
        let mut times = vec![0.0; self.ports()];
        let mut slowdowns = vec![0.0; self.ports()];
        if let Some(ideal) = &self.ideal {
            let flows = self.active_flows();
            lookahead.excess(self.at(), now, ideal, &flows, |flow, port, part| {
                times[port] += part;
                if let Some(rates) = &self.base_rates {
                    slowdowns[port] += part * rates.of(flow);
                }
            });
        }
        let (of_time, of_slowdown) = (scale.flow_time_price(), scale.slowdown_price());
        times.iter_mut().for_each(|time| *time *= of_time);
        if self.base_rates.is_some() {
            for (time, slowdown) in times.iter_mut().zip(&slowdowns) {
                *time += slowdown * of_slowdown;
            }
        }
        times
    }

    /// The current switch: that of the last pause for a decision.
    pub fn at(&self) -> SwitchId {
        match T::IS_FABRIC {
            true => self.at,
            false => SWITCH,
        }
    }

    fn agent(&self) -> &Agent {
        &self.agents[self.at().index()]
    }

    fn policy_mut(&mut self) -> &mut ControlledThreshold {
        let at = self.at();
        self.simulator.switch_and_observer(at).0.policy_mut()
    }

    /// `[ports, HISTORY, FEATURES]`: the observation of the current switch at the last pause.
    pub fn observation(&self) -> &[f32] {
        self.agent().observation.as_slice()
    }

    /// `[ports, HISTORY, FEATURES]`: the observation of a switch at its last decision, or at the end of
    /// a truncated run.
    ///
    /// # Panics
    /// When there is no such switch.
    pub fn observation_of(&self, switch: SwitchId) -> &[f32] {
        self.agents[switch.index()].observation.as_slice()
    }

    /// Writes `[ports, PRIVILEGED]` of the current switch: the state of the senders and the future
    /// traffic, for critics in training. The features that refer to an unlimited buffer are zero if the
    /// reward does not.
    ///
    /// # Panics
    /// When `out` is shorter than that.
    pub fn privileged(&self, out: &mut [f32]) {
        self.privileged_of(self.at(), out);
    }

    /// Same as [`privileged`](ControlEnv::privileged), for any switch.
    ///
    /// # Panics
    /// When there is no such switch, or `out` is shorter than that.
    pub fn privileged_of(&self, switch: SwitchId, out: &mut [f32]) {
        let (_, (meter, _)) = self.simulator.observer();
        let known = Known {
            switch,
            ways: meter.ways(),
            buffer: self.simulator.switch(switch).buffer(),
            now: self.simulator.now(),
            flows: &self.active_flows(),
            ideal: self.ideal.as_ref(),
            arrivals: &self.arrivals,
        };
        let scale = self.agents[switch.index()].scale.privileged;
        privileged::write(&known, scale, out);
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

    fn meter_mut(&mut self) -> &mut RewardMeter<T> {
        &mut self.simulator.observer_mut().1.0
    }

    fn record_mut(&mut self) -> &mut ControlRecord {
        &mut self.simulator.observer_mut().1.1
    }

    /// The reward of the current switch for the interval that ended with the last pause.
    pub fn reward(&self) -> &IntervalReward {
        &self.agent().reward
    }

    /// The reward of a switch for its interval that ended with its last decision, or with the run.
    ///
    /// # Panics
    /// When there is no such switch.
    pub fn reward_of(&self, switch: SwitchId) -> &IntervalReward {
        &self.agents[switch.index()].reward
    }

    /// Number of switches.
    pub fn switches(&self) -> usize {
        self.agents.len()
    }

    /// Number of ports of the current switch.
    pub fn ports(&self) -> usize {
        self.agent().ports()
    }

    /// Number of ports of a switch.
    ///
    /// # Panics
    /// When there is no such switch.
    pub fn ports_of(&self, switch: SwitchId) -> usize {
        self.agents[switch.index()].ports()
    }

    /// Returns the outputs that decisions set.
    pub fn actions(&self) -> ActionSet {
        self.actions
    }

    /// Values per port in an action.
    pub fn outputs(&self) -> usize {
        self.actions.outputs()
    }

    /// Number of decisions so far, of all switches.
    pub fn decisions(&self) -> u64 {
        self.decisions
    }

    /// Number of decisions of a switch so far.
    ///
    /// # Panics
    /// When there is no such switch.
    pub fn decisions_of(&self, switch: SwitchId) -> u64 {
        self.agents[switch.index()].decisions
    }

    /// The simulation under control.
    pub fn simulator(&self) -> &Controlled<T, O> {
        &self.simulator
    }

    /// Returns the additional observer, once the run has ended.
    pub fn into_observer(self) -> O {
        self.simulator.into_observer().0.1
    }

    fn recorders_mut(&mut self) -> &mut Recorders {
        &mut self.simulator.observer_mut().0.0
    }

    /// See [`Recorders::measure_waits`].
    pub fn measure_waits(&mut self) {
        self.recorders_mut().measure_waits();
    }

    /// See [`Recorders::sample_ingress`].
    pub fn sample_ingress(&mut self, sampling: IngressSampling) {
        self.recorders_mut().sample_ingress(sampling);
    }

    /// See [`Recorders::record_drops`].
    pub fn record_drops(&mut self) {
        self.recorders_mut().record_drops();
    }

    /// From now on, records the state of every port every `interval` of simulated time.
    pub fn record_timeline(&mut self, interval: Duration) {
        let now = self.simulator.switch_now(SWITCH);
        self.recorders_mut().record_timeline(interval, now);
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
