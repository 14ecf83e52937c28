mod early;
mod fabric;
mod ingress;
mod low_level;

use super::reward::RewardScale;
use super::*;
use crate::control::observation::log_scaled;
use crate::control::{
    ALPHAS, FEATURES, FixedAlpha, HISTORY, PRIVILEGED, RunOptions, cell_centre, run_controlled,
};
use bufgym_sim::switch::PolicySpec;
use bufgym_sim::traffic::generate;

fn small() -> Scenario {
    let mut scenario = Scenario::default();
    scenario.set("flows=60").unwrap();
    scenario
}

#[test]
fn a_fixed_alpha_under_the_control_is_dynamic_threshold() {
    let scenario = small();
    let mut decisions = 0;
    for (seed, index, alpha) in [(5, 2, 1.0), (6, 0, 0.25), (7, 5, 8.0)] {
        assert_eq!(ALPHAS[index], alpha);
        let trace = generate(&scenario, seed);
        let mut controlled =
            ControlEnv::new(&scenario, &trace, &ControlOptions::default()).unwrap();
        // Until the first decision the control has α = 1; replace it.
        controlled.simulator.policy_mut().apply(&[index as u8; 16]);
        let mut action = FixedAlpha::new(index);
        let mut values = vec![0.0; 16];
        while controlled.advance() == StopReason::Decision {
            action.act(controlled.observation(), 16, &mut values);
            controlled.act(&values);
        }
        let by_control = controlled.outcome();
        let by_policy = PolicySpec::named("dt")
            .with("alpha", &alpha.to_string())
            .unwrap()
            .run(&scenario, &trace)
            .unwrap();
        let fcts = |outcome: &Outcome| -> Vec<_> {
            outcome.records.iter().map(|record| record.fct).collect()
        };
        assert_eq!(fcts(&by_control), fcts(&by_policy));
        assert_eq!(by_control.summary.drops, by_policy.summary.drops);
        decisions += by_control.summary.decisions;
    }
    assert!(decisions > 10);
}

/// Queue management works under the control as it does with a fixed α.
#[test]
fn queue_management_stands_behind_the_control() {
    let scenario = small();
    let trace = generate(&scenario, 5);
    let fixed = "dt+random:min_bytes=3000,p=0.05"
        .parse::<PolicySpec>()
        .unwrap();
    let options = ControlOptions {
        low_level: "dt+random:min_bytes=3000,p=0.05".parse().unwrap(),
        ..ControlOptions::default()
    };
    let mut controlled = ControlEnv::new(&scenario, &trace, &options).unwrap();
    let mut action = FixedAlpha::new(2);
    let mut values = vec![0.0; 16];
    while controlled.advance() == StopReason::Decision {
        action.act(controlled.observation(), 16, &mut values);
        controlled.act(&values);
    }
    let fcts =
        |outcome: &Outcome| -> Vec<_> { outcome.records.iter().map(|record| record.fct).collect() };
    let by_control = fcts(&controlled.outcome());
    let by_policy = |spec: &PolicySpec| fcts(&spec.run(&scenario, &trace).unwrap());
    assert_eq!(by_control, by_policy(&fixed));
    assert_ne!(by_control, by_policy(&PolicySpec::baseline()));
}

fn run(scenario: &Scenario, options: &ControlOptions, seed: u64) -> (ControlEnv, f64, Instant) {
    let trace = generate(scenario, seed);
    let mut env = ControlEnv::new(scenario, &trace, options).unwrap();
    let (mut total, mut first) = (0.0, None);
    loop {
        let stop = env.advance();
        if first.is_some() {
            total += env.reward().total;
        }
        if stop != StopReason::Decision {
            break;
        }
        first.get_or_insert(env.simulator().now());
        env.act(&[-0.375; 16]);
    }
    (env, total, first.unwrap_or(Instant::ZERO))
}

/// Almost undiscounted, the rewards of an episode add up to minus the active time of all flows
/// after the first decision, and so to the mean FCT.
#[test]
fn undiscounted_rewards_add_up_to_the_active_time() {
    let scenario = small();
    let options = ControlOptions {
        tau_s: 1e9,
        ..ControlOptions::default()
    };
    let (mut env, total, first) = run(&scenario, &options, 5);
    let active: f64 = env
        .outcome()
        .records
        .iter()
        .filter_map(|record| {
            Some(
                record
                    .finish?
                    .saturating_since(record.spec.start.max(first)),
            )
        })
        .map(Duration::as_secs_f64)
        .sum();
    let scale = RewardScale::new(&scenario, &scenario, &Trace::default(), &options).unwrap();
    let expected = -active * scale.flow_time_price();
    assert!(
        (total - expected).abs() < 1e-4 * expected.abs(),
        "{total} {expected}"
    );
}

#[test]
fn shapes_and_ranges() {
    let scenario = small();
    let trace = generate(&scenario, 5);
    let mut env = ControlEnv::new(&scenario, &trace, &ControlOptions::default()).unwrap();
    assert_eq!(env.advance(), StopReason::Decision);
    assert_eq!(env.observation().len(), 16 * HISTORY * FEATURES);
    let mut privileged = vec![f32::NAN; 16 * PRIVILEGED];
    env.privileged(&mut privileged);
    assert!(privileged.iter().all(|v| (0.0..=4.0).contains(v)));
    assert!(privileged.chunks(PRIVILEGED).any(|port| port[0] > 0.0));
    // The decision was triggered by a port that received at least β more than it sent.
    let beta_enqueued = env
        .observation()
        .chunks(HISTORY * FEATURES)
        .any(|port| port[(HISTORY - 1) * FEATURES + 1] >= log_scaled(1.0) - 1e-6);
    assert!(beta_enqueued);
}

#[test]
fn a_late_decision_takes_effect_late_and_no_trigger_fires_before() {
    let scenario = small().with(|scenario| {
        scenario.control.decision_latency_us = 400;
    });
    let trace = generate(&scenario, 5);
    let mut env = ControlEnv::new(&scenario, &trace, &ControlOptions::default()).unwrap();
    assert_eq!(env.advance(), StopReason::Decision);
    let decided = env.simulator().now();
    env.act(&[0.9; 16]);
    assert_eq!(env.simulator().policy().indices(), [2; 16]);
    assert_eq!(env.advance(), StopReason::Decision);
    assert!(env.simulator().now() >= decided + Duration::from_us(400));
    assert_eq!(env.simulator().policy().indices(), [7; 16]);
}

#[test]
fn the_longest_interval_is_kept() {
    let scenario = small().with(|scenario| {
        scenario.control.max_interval_us = 300;
    });
    let trace = generate(&scenario, 5);
    let mut controller = FixedAlpha::new(2);
    let outcome =
        run_controlled(&scenario, &trace, &mut controller, &RunOptions::default()).unwrap();
    assert!(
        outcome
            .trigger_intervals_ps
            .iter()
            .all(|&ps| ps <= Duration::from_us(300).as_ps())
    );
    assert!(outcome.summary.completed == 60);
}

/// A controller that polls. A trigger within the shortest interval is served when that interval is over, a later
/// trigger at once. The observation includes everything that the ports have counted in the meantime.
#[test]
fn the_shortest_interval_is_kept_and_a_trigger_in_it_waits() {
    let interval = Duration::from_us(2_000);
    let scenario = small().with(|scenario| {
        scenario.control.min_interval_us = 2_000;
    });
    let trace = generate(&scenario, 5);
    let mut env = ControlEnv::new(&scenario, &trace, &ControlOptions::default()).unwrap();
    let (mut at_once, mut waited, mut last) = (0, 0, None);
    while env.advance() == StopReason::Decision {
        let now = env.simulator().now();
        let policy = env.simulator().policy();
        assert!(matches!(
            policy.fired(),
            Some(TriggerCause::Excess | TriggerCause::Safeguard)
        ));
        let beta = env.reading().units(0).beta;
        let reached = |port| {
            let volumes = policy.volumes(port);
            volumes.enqueued + volumes.dropped >= beta
        };
        assert!((0..16).any(reached));
        match last.map(|last| now - last) {
            Some(since) if since < interval => panic!("{since:?} since the last decision"),
            Some(since) if since == interval => waited += 1,
            _ => at_once += 1,
        }
        last = Some(now);
        env.act(&[cell_centre(3); 16]);
    }
    assert!(waited > 5 && at_once > 5, "{waited} {at_once}");
    assert_eq!(env.outcome().summary.completed, 60);
}

/// With the longest interval as short as the shortest one, decisions come at a fixed rate, and the
/// latency of a decision changes nothing about that.
#[test]
fn the_shortest_interval_goes_with_the_longest_and_with_a_latency() {
    for settings in [
        &["min_interval_us=700", "max_interval_us=700"][..],
        &[
            "min_interval_us=700",
            "max_interval_us=700",
            "decision_latency_us=300",
        ],
    ] {
        let mut scenario = small();
        for setting in settings {
            scenario.set(setting).unwrap();
        }
        let trace = generate(&scenario, 5);
        let mut controller = FixedAlpha::new(3);
        let options = RunOptions::default();
        let outcome = run_controlled(&scenario, &trace, &mut controller, &options).unwrap();
        let intervals = &outcome.trigger_intervals_ps;
        assert!(intervals.len() > 20, "{}", intervals.len());
        let exact = Duration::from_us(700).as_ps();
        assert!(intervals.iter().all(|&ps| ps == exact), "{intervals:?}");
        assert_eq!(outcome.summary.completed, 60);
    }
}

#[test]
fn a_limit_of_decisions_truncates() {
    let scenario = small().with(|scenario| {
        scenario.control.max_decisions = 3;
    });
    let trace = generate(&scenario, 5);
    let mut env = ControlEnv::new(&scenario, &trace, &ControlOptions::default()).unwrap();
    for _ in 0..3 {
        assert_eq!(env.advance(), StopReason::Decision);
        env.act(&[0.0; 16]);
    }
    assert_eq!(env.advance(), StopReason::Truncated);
    assert!(env.reward().elapsed > Duration::ZERO);
}

#[test]
fn the_other_objectives_reward_their_terms() {
    let scenario = small();
    let with = |name: &str| ControlOptions {
        objective: name.parse().unwrap(),
        ..ControlOptions::default()
    };
    let (mut env, total, _) = run(&scenario, &with("throughput"), 5);
    let bytes: u64 = env
        .outcome()
        .records
        .iter()
        .map(|record| record.spec.size)
        .sum();
    let beta = scenario.network.buffer_bytes as f64 / 16.0;
    assert!(total > 0.0 && total <= 1.01 * bytes as f64 / beta);
    let (mut env, total, _) = run(&scenario, &with("loss"), 5);
    let lost = env.outcome().summary.drops_data as f64;
    assert!(lost > 0.0 && total < 0.0);
    assert!(-total <= lost / (beta / scenario.full_packet_bytes() as f64) * 1.001);
    let (_, total, _) = run(&scenario, &with("delay=1"), 5);
    assert!(total < 0.0);
    let (_, total, _) = run(&scenario, &with("fairness=1"), 5);
    // The charges add up to minus the variance at the end, less that before the first decision.
    assert!(total.is_finite() && total <= 1e-6);
}

fn longer_trace() -> (Scenario, Trace) {
    let mut scenario = Scenario::default();
    scenario.set("flows=150").unwrap();
    let trace = generate(&scenario, 5);
    (scenario, trace)
}

/// Discounted return from the first decision on, with the same α everywhere.
fn discounted_return(
    (scenario, trace): &(Scenario, Trace),
    options: &ControlOptions,
    alpha: usize,
) -> f64 {
    let mut env = ControlEnv::new(scenario, trace, options).unwrap();
    let (mut sum, mut discount) = (0.0, 1.0);
    let mut stop = env.advance();
    while stop == StopReason::Decision {
        env.act(&[cell_centre(alpha); 16]);
        stop = env.advance();
        sum += discount * env.reward().total;
        discount *= f64::from(env.reward().discount);
    }
    assert_eq!(stop, StopReason::Finished);
    sum
}

/// Without the baseline, with it, and with delays charged when they are certain.
fn reward_options() -> [ControlOptions; 3] {
    let plain = ControlOptions {
        tau_s: 0.4,
        ..ControlOptions::default()
    };
    let relative = ControlOptions {
        baseline: RewardBaseline::UnlimitedBuffer,
        ..plain.clone()
    };
    let shaped = ControlOptions {
        horizon_s: Some(plain.tau_s),
        ..relative.clone()
    };
    [plain, relative, shaped]
}

/// Neither the baseline nor the potential favours a policy: runs do not differ up to the first
/// decision, and both shift the return by an amount that is known there.
#[test]
fn baseline_and_potential_shift_every_policy_s_return_alike() {
    let run = longer_trace();
    let returns = |alpha| reward_options().map(|options| discounted_return(&run, &options, alpha));
    let (low, high) = (returns(1), returns(5));
    assert!((low[0] - high[0]).abs() > 0.1, "{low:?} {high:?}");
    for kind in 1..3 {
        let shift = |returns: [f64; 3]| returns[kind] - returns[0];
        let difference = shift(low) - shift(high);
        assert!(difference.abs() < 1e-3, "{kind}: {low:?} {high:?}");
    }
    assert!(low[1] > low[0]);
}

#[test]
fn the_order_of_the_file_does_not_change_the_rewards() {
    let (scenario, sorted) = longer_trace();
    let mut by_port = sorted.clone();
    // The sort is stable: flows that start together keep their order.
    by_port.flows.sort_by_key(|flow| flow.dst);
    assert_ne!(by_port.flows, sorted.flows);
    let (sorted, by_port) = ((scenario.clone(), sorted), (scenario, by_port));
    for options in reward_options() {
        let returns = [&sorted, &by_port].map(|run| discounted_return(run, &options, 4));
        let difference = returns[0] - returns[1];
        assert!(difference.abs() < 1e-9, "{options:?}: {returns:?}");
    }
}

/// The features of a port with several queues are sums over them.
#[test]
fn several_queues_of_a_port_are_observed_together() {
    let scenario = small().with(|scenario| {
        scenario.queues.queues_per_port = 3;
    });
    let mut trace = generate(&scenario, 5);
    for (flow, spec) in trace.flows.iter_mut().enumerate() {
        spec.priority = (flow % 3) as u8;
    }
    let mut env = ControlEnv::new(&scenario, &trace, &ControlOptions::default()).unwrap();
    let mut shared = 0;
    while env.advance() == StopReason::Decision {
        let buffer = env.simulator().buffer();
        for (port, features) in env.observation().chunks(HISTORY * FEATURES).enumerate() {
            let length = features[(HISTORY - 1) * FEATURES];
            let expected = buffer.port(port) as f32 / scenario.network.buffer_bytes as f32;
            assert!((length - expected).abs() < 1e-6, "{length} {expected}");
            let queues = &buffer.queues()[3 * port..3 * port + 3];
            shared += usize::from(queues.iter().filter(|&&bytes| bytes > 0).count() > 1);
        }
        env.act(&[cell_centre(3); 16]);
    }
    assert!(shared > 0, "no port had two busy queues");
    assert_eq!(env.outcome().summary.completed, 60);
}
