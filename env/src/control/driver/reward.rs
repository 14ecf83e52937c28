//! From what was counted to what is paid.

use super::ControlOptions;
use crate::control::Objective;
use crate::control::meter::PortTotals;
use bufgym_sim::network::{IsolatedFlow, SimError, Simulator};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::policy::CompleteSharing;
use bufgym_sim::traffic::Trace;
use bufgym_sim::units::Time;

/// Reward of one interval between two decisions.
#[derive(Clone, Debug, Default)]
pub struct IntervalReward {
    /// By destination port; they add up to `total`.
    pub port_rewards: Vec<f32>,
    /// Sum over ports.
    pub total: f64,
    /// What the value of the state at the end is worth at the start: `e^{-Δt/τ}`, or with
    /// [`horizon_s`](ControlOptions::horizon_s) `e^{-Δt/horizon}`.
    pub discount: f32,
    /// Weight of the entropy of the decision at the start, `τ(1 - e^{-Δt/τ})/Δt_ref`: entropy is
    /// paid by time, because the agent influences how often decisions come.
    pub entropy_weight: f32,
    /// Length Δt of the interval.
    pub elapsed: Time,
}

impl IntervalReward {
    pub(super) fn new(ports: usize) -> IntervalReward {
        IntervalReward {
            port_rewards: vec![0.0; ports],
            ..IntervalReward::default()
        }
    }
}

/// Constants of a scenario that bring every term to order one; never of a trace or a step, which
/// would make the values of states drift.
#[derive(Clone, Debug)]
pub(super) struct RewardScale {
    objective: Objective,
    /// Mean isolated FCT times mean number of active ports, seconds.
    flow_time_s: f64,
    /// Full packets in β.
    beta_packets: f64,
    /// β, bytes.
    beta: f64,
    /// B·Δt_ref, byte seconds.
    queue_area: f64,
    fairness: Option<Fairness>,
}

/// Running port slowdowns: flow time so far over the flow time of the port's flows on their own.
#[derive(Clone, Debug)]
struct Fairness {
    isolated_s: Vec<f64>,
    deviations: Vec<f64>,
}

impl RewardScale {
    pub(super) fn new(
        scenario: &Scenario,
        trace: &Trace,
        options: &ControlOptions,
    ) -> Result<RewardScale, SimError> {
        let isolated = IsolatedFlow::new(scenario);
        let mean_fct_s =
            scenario.mean_over_sizes(|size| isolated.completion(size.max(1)).as_secs_f64());
        let mean_ports = scenario.active_ports.mean();
        let beta = scenario.buffer_bytes as f64 / f64::from(scenario.ports);
        let fairness = if options.objective.fairness > 0.0 {
            Some(Fairness {
                isolated_s: isolated_flow_times(scenario, trace)?,
                deviations: vec![0.0; scenario.port_count()],
            })
        } else {
            None
        };
        Ok(RewardScale {
            objective: options.objective,
            flow_time_s: mean_fct_s * mean_ports,
            beta_packets: beta / scenario.full_packet_bytes() as f64,
            beta,
            queue_area: scenario.buffer_bytes as f64 * options.reference_interval_s,
            fairness,
        })
    }

    /// What an active flow second is divided by.
    #[cfg(test)]
    pub(super) fn flow_time_seconds(&self) -> f64 {
        self.flow_time_s
    }

    /// Flow times in seconds become costs in units of the reward.
    pub(super) fn value_flow_time(&self, seconds: &mut [f64]) {
        let price = self.objective.fct / self.flow_time_s;
        seconds.iter_mut().for_each(|value| *value *= price);
    }

    /// Pays for an interval: `terms` has per port what the meter counted and the area under its
    /// queue in byte seconds.
    pub(super) fn weigh(&mut self, terms: &[(PortTotals, f64)], reward: &mut IntervalReward) {
        let objective = self.objective;
        for ((totals, area), paid) in terms.iter().zip(&mut reward.port_rewards) {
            let value = -objective.fct * totals.discounted_flow_time / self.flow_time_s
                - objective.loss * totals.lost as f64 / self.beta_packets
                + objective.throughput * totals.delivered as f64 / self.beta
                - objective.delay * area / self.queue_area;
            *paid = value as f32;
        }
        if let Some(fairness) = &mut self.fairness {
            fairness.charge(terms, objective.fairness, &mut reward.port_rewards);
        }
        reward.total = reward.port_rewards.iter().map(|&r| f64::from(r)).sum();
    }
}

impl Fairness {
    /// Charges each port the growth of its part in the variance, so that the charges of an episode
    /// add up to the variance at its end.
    fn charge(&mut self, terms: &[(PortTotals, f64)], weight: f64, rewards: &mut [f32]) {
        let slowdown = |port: usize| terms[port].0.flow_time / self.isolated_s[port];
        let busy: Vec<usize> = (0..terms.len())
            .filter(|&port| self.isolated_s[port] > 0.0)
            .collect();
        if busy.is_empty() {
            return;
        }
        let count = busy.len() as f64;
        let mean = busy.iter().map(|&port| slowdown(port)).sum::<f64>() / count;
        for port in busy {
            let deviation = (slowdown(port) - mean) * (slowdown(port) - mean) / count;
            rewards[port] -= (weight * (deviation - self.deviations[port])) as f32;
            self.deviations[port] = deviation;
        }
    }
}

/// Flow time of every port's flows, seconds, when only they are simulated: the same buffer,
/// complete sharing (paper, §VI-D). Zero for ports without flows.
fn isolated_flow_times(scenario: &Scenario, trace: &Trace) -> Result<Vec<f64>, SimError> {
    let mut times = Vec::with_capacity(scenario.port_count());
    for port in 0..scenario.ports {
        let flows: Vec<_> = trace
            .flows
            .iter()
            .copied()
            .filter(|flow| flow.dst == port)
            .collect();
        if flows.is_empty() {
            times.push(0.0);
            continue;
        }
        let alone = Trace {
            flows,
            kinds: trace.kinds.clone(),
            seed: trace.seed,
        };
        let outcome = Simulator::new(scenario, &alone, CompleteSharing)?.run();
        let fcts = outcome.records.iter().filter_map(|record| record.fct);
        times.push(fcts.map(Time::as_secs_f64).sum());
    }
    Ok(times)
}
