use bufgym_sim::network::OneSwitch;
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::PolicySpec;
use bufgym_sim::traffic::{FlowSpec, Trace};
use bufgym_sim::units::Instant;

use super::*;

/// Builds a trace of one segment per flow, all at the same time: (source, destination).
fn trace(flows: &[(u32, u32)]) -> Trace {
    let flow = |(id, &(src, dst))| FlowSpec {
        id,
        src,
        dst,
        start: Instant::ZERO,
        size: 1_460,
        kind: 0,
        query: -1,
        priority: 0,
    };
    Trace {
        flows: (0..).zip(flows).map(flow).collect(),
        kinds: vec![Trace::DEFAULT_KIND.to_owned()],
        seed: 0,
    }
}

fn run(scenario: &Scenario, trace: &Trace) -> Outcome {
    let policy = PolicySpec::baseline();
    policy.run(scenario, trace).unwrap()
}

/// A segment takes 12.144 µs to send at 1 Gbit/s and 10 µs of propagation on each of two links, so
/// 44.288 µs in total. Host 2 sends two segments: the second leaves 12.144 µs after the first. Two
/// segments go to port 0: the second waits 12.144 µs.
#[test]
fn port_slowdowns_of_three_flows() {
    let scenario = Scenario::default();
    let trace = trace(&[(2, 0), (3, 0), (2, 1)]);
    let ports = IsolatedPorts::measure(&scenario, &trace).unwrap();
    let outcome = run(&scenario, &trace);
    let slowdowns = ports.slowdowns(&outcome.records).unwrap();
    let of_port_1 = (44.288 + 12.144) / 44.288;
    assert!((slowdowns[0] - 1.0).abs() < 1e-9);
    assert!((slowdowns[1] - of_port_1).abs() < 1e-9);
    let variance = ((of_port_1 - 1.0) / 2.0).powi(2);
    let value = Metric::PortSlowdownVariance
        .value(&outcome, Some(&ports))
        .unwrap();
    assert!((value - variance).abs() < 1e-9, "{value}");
    assert_eq!(Metric::PortSlowdownVariance.value(&outcome, None), None);
}

#[test]
fn a_flow_that_does_not_finish_leaves_no_slowdowns() {
    let scenario = Scenario::default();
    let trace = trace(&[(2, 0), (2, 1)]);
    let ports = IsolatedPorts::measure(&scenario, &trace).unwrap();
    let mut records = run(&scenario, &trace).records;
    records[1].fct = None;
    assert_eq!(ports.slowdowns(&records), None);
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let scenario = Scenario::default();
    let trace = bufgym_sim::traffic::generate(&scenario, 3);
    let measure = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        let measure = || IsolatedPorts::measure(&scenario, &trace).unwrap();
        pool.build().unwrap().install(measure)
    };
    assert_eq!(measure(1), measure(3));
}

/// Three segments arrive at once at a port that has room for two. The first is sent at once, the
/// second waits for it, and the third is lost and sent again after the timeout of 200 ms.
#[test]
fn the_metrics_of_three_segments_and_a_loss() {
    let scenario = Scenario::default().with(|scenario| {
        scenario.network.buffer_bytes = 2 * 1_518;
    });
    let sharing: PolicySpec = "cs".parse().unwrap();
    let trace = trace(&[(1, 0), (2, 0), (3, 0)]);
    let mut simulator = sharing.simulator::<OneSwitch>(&scenario, &trace).unwrap();
    simulator.measure_waits();
    let outcome = simulator.run();
    let value = |metric: Metric| metric.value(&outcome, None).unwrap();
    assert_eq!(value(Metric::Loss), 1.0 / 3.0);
    let delay = value(Metric::QueueingDelay);
    assert!((delay / 12.144 - 1.0).abs() < 0.004, "{delay}");
    let makespan_s = outcome.summary.simulated_s;
    assert!(makespan_s > 0.2 && makespan_s < 0.201, "{makespan_s}");
    let goodput = value(Metric::Goodput);
    assert!((goodput * makespan_s / (8.0 * 3.0 * 1_460.0) - 1.0).abs() < 1e-12);
}

fn samples(values: &[(f64, f64)]) -> Vec<Sample> {
    let sample = |&(value, mean_fct_ms)| Sample {
        value,
        mean_fct_ms,
        complete: true,
        paused_ms: 0.0,
    };
    values.iter().map(sample).collect()
}

#[test]
fn fct_is_a_mean_of_ratios_fairness_a_geometric_one_and_all_else_a_ratio_of_means() {
    let dt = samples(&[(10.0, 10.0), (30.0, 30.0)]);
    let own = samples(&[(5.0, 5.0), (30.0, 30.0)]);
    let value = |metric| compare(metric, &own, &dt, 0).value;
    assert_eq!(value(Metric::MeanFct), 0.75);
    assert_eq!(value(Metric::Loss), 35.0 / 40.0);
    assert_eq!(value(Metric::QueueingDelay), 35.0 / 40.0);
    let fairness = value(Metric::PortSlowdownVariance);
    assert!((fairness - 0.5_f64.sqrt()).abs() < 1e-12, "{fairness}");
    assert_eq!(
        value(Metric::Goodput),
        40.0 / 35.0,
        "DT's over the policy's"
    );
    let tally = |metric| compare(metric, &own, &dt, 0).tally;
    assert_eq!((tally(Metric::Loss).won, tally(Metric::Loss).tied), (1, 1));
    assert_eq!(tally(Metric::Goodput).lost, 1);
}

#[test]
fn dt_is_its_own_measure() {
    for metric in Metric::ALL {
        for dt in [
            samples(&[(10.0, 10.0), (0.0, 30.0)]),
            samples(&[(0.0, 10.0)]),
        ] {
            let found = compare(metric, &dt, &dt, 100);
            let same = if metric == Metric::Goodput && dt[0].value == 0.0 {
                // No bytes were delivered at all.
                continue;
            } else {
                1.0
            };
            assert_eq!(found.value, same, "{metric:?}");
            assert_eq!(found.tally.tied, dt.len() as u64);
        }
    }
}

#[test]
fn no_losses_with_dt_leave_room_for_worse_only() {
    let dt = samples(&[(0.0, 10.0), (0.0, 10.0)]);
    let own = samples(&[(0.0, 10.0), (0.5, 10.0)]);
    assert_eq!(compare(Metric::Loss, &own, &dt, 10).value, 1.25);
}

#[test]
fn delay_may_not_be_bought_with_completion_times() {
    let dt = samples(&[(100.0, 10.0)]);
    let value = |fct| compare(Metric::QueueingDelay, &samples(&[(50.0, fct)]), &dt, 0).value;
    assert_eq!(value(10.5), 0.5);
    assert!(value(10.6) > 1.5);
    let fairness = |fct| {
        compare(
            Metric::PortSlowdownVariance,
            &samples(&[(50.0, fct)]),
            &dt,
            0,
        )
    };
    assert!((fairness(20.0).value - 0.5).abs() < 1e-12);
    assert_eq!(fairness(20.0).fct_ratio, 2.0);
}

#[test]
fn who_does_not_finish_loses() {
    let dt = samples(&[(10.0, 10.0), (10.0, 10.0)]);
    let mut own = samples(&[(1.0, 1.0), (1.0, 1.0)]);
    own[1].complete = false;
    for metric in Metric::ALL {
        let found = compare(metric, &own, &dt, 10);
        assert!(found.value > 1e100 && found.value.is_finite(), "{metric:?}");
        assert_eq!(found.failed, 1);
    }
}

/// If a trace does not have a class of flows, the mean leaves out its tail.
#[test]
fn tails_of_slowdown_are_a_geometric_mean_of_what_there_is() {
    let mut outcome = run(&Scenario::default(), &trace(&[(2, 0), (3, 0)]));
    outcome.summary.mean_slowdown = 2.0;
    let mut value = |incast: f64, short: f64| {
        outcome.summary.incast_p99_slowdown = incast;
        outcome.summary.short_p99_slowdown = short;
        Metric::SlowdownTails.value(&outcome, None).unwrap()
    };
    assert!((value(16.0, 2.0) - 4.0).abs() < 1e-12);
    assert!((value(f64::NAN, 8.0) - 4.0).abs() < 1e-12);
    assert!((value(f64::NAN, f64::NAN) - 2.0).abs() < 1e-12);
    // Half of DT's value and twice of it cancel out in the mean.
    let own = samples(&[(1.0, 1.0), (40.0, 1.0)]);
    let dt = samples(&[(2.0, 1.0), (20.0, 1.0)]);
    let found = compare(Metric::SlowdownTails, &own, &dt, 0);
    assert!((found.value - 1.0).abs() < 1e-12);
    assert_eq!((found.tally.won, found.tally.lost), (1, 1));
}

#[test]
fn every_objective_has_its_metric() {
    let of = |text: &str| Metric::of(&text.parse().unwrap());
    let names = [
        "fct",
        "loss",
        "throughput",
        "delay",
        "fairness",
        "slowdown",
        "pfc",
        "tails",
    ];
    let named = names.map(of);
    assert_eq!(named, Metric::ALL);
    assert_eq!(of("fct=1,loss=0.1"), Metric::MeanFct);
    assert_eq!(of("slowdown=1,incast=0.5"), Metric::SlowdownTails);
    assert_eq!(of("fct=1,slowdown=1,incast=0.5"), Metric::MeanSlowdown);
    assert_eq!(of("slowdown=1,incast=1,paused=1"), Metric::MeanSlowdown);
}
