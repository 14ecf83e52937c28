//! Active Buffer Management: Lemma 2 and Theorems 1 to 3 of its paper in the steady state, under
//! every scheduler.

use bufgym_sim::scenario::Scenario;
use bufgym_sim::traffic::{FlowSpec, Trace};
use bufgym_sim::units::{Duration, Instant};

use crate::policies::overload::{Overload, Stream, assert_close, scenario, trace};

/// Time at which the queues have settled.
const STEADY: Instant = Instant::from_ms(40);
const END: Instant = Instant::from_ms(55);

/// Tolerance. Packets are a few per cent of the shortest queues here.
const TOLERANCE: f64 = 0.04;

/// Returns the mean lengths of all queues in the steady state.
fn steady_lengths(scenario: &Scenario, streams: &[Stream], policy: &str) -> Vec<f64> {
    let mut overload = Overload::new(scenario, &trace(scenario, streams), policy);
    overload.run_until(STEADY);
    overload.mean_lengths(END)
}

/// Returns ABM with this α for every packet, of the first round trip or not.
fn abm(alpha: f64) -> String {
    format!("abm:alpha={alpha},alpha_unscheduled={alpha}")
}

/// Theorem 2: the queues of a priority together get `Bα/(1+α)`, however many are congested. Under
/// Dynamic Threshold they get more with every queue.
#[test]
fn a_priority_s_total_is_bounded_whatever_the_number_of_its_queues() {
    let scenario = scenario(&[]);
    let buffer = scenario.network.buffer_bytes as f64;
    for (ports, alpha) in [(1, 0.5), (2, 0.5), (5, 0.5), (1, 2.0), (4, 2.0)] {
        let streams: Vec<_> = (0..ports).map(|port| Stream::twice(port, 0)).collect();
        let bound = buffer * alpha / (1.0 + alpha);
        let lengths = steady_lengths(&scenario, &streams, &abm(alpha));
        let total: f64 = lengths[..ports as usize].iter().sum();
        assert_close(
            total,
            bound,
            TOLERANCE,
            &format!("{ports} ports, α {alpha}"),
        );

        let lengths = steady_lengths(&scenario, &streams, &format!("dt:alpha={alpha}"));
        let total: f64 = lengths[..ports as usize].iter().sum();
        let n = f64::from(ports);
        let expected = buffer * n * alpha / (1.0 + n * alpha);
        assert_close(
            total,
            expected,
            TOLERANCE,
            &format!("dt, {ports} ports, α {alpha}"),
        );
    }
}

/// Theorem 1: if every priority is congested somewhere, each gets `Bα_p/(1+Σα)`, the minimum that its
/// bound guarantees, however many queues it has.
#[test]
fn a_priority_has_its_minimum_beside_others() {
    let scenario = scenario(&["queues_per_port=3"]);
    let buffer = scenario.network.buffer_bytes as f64;
    // Every port has one congested queue, so each has its line to itself.
    let streams = [
        Stream::twice(0, 0),
        Stream::twice(1, 1),
        Stream::twice(2, 1),
        Stream::twice(3, 1),
        Stream::twice(4, 2),
        Stream::twice(5, 2),
    ];
    for (policy, alphas) in [
        ("abm:alpha=1,alpha_unscheduled=1", [1.0; 3]),
        ("abm:alphas=2/1/0.5,periodic_rtts=1", [2.0, 1.0, 0.5]),
    ] {
        let lengths = steady_lengths(&scenario, &streams, policy);
        let sum: f64 = alphas.iter().sum();
        for (priority, alpha) in alphas.iter().enumerate() {
            let total: f64 = lengths.iter().skip(priority).step_by(3).sum();
            let expected = buffer * alpha / (1.0 + sum);
            let what = format!("{policy}, priority {priority}");
            assert_close(total, expected, TOLERANCE, &what);
        }
    }
}

/// Lemma 2 and Theorem 3: queues that share a line share its buffer, so that each drains within
/// `Bα/((1+α)b)`. Under Dynamic Threshold every further queue of a port takes the same amount again.
#[test]
fn queues_of_one_port_drain_in_bounded_time() {
    let alpha = 1.0;
    for (queues, scheduler) in [(2, "rr"), (4, "rr"), (2, "drr"), (4, "drr")] {
        let queues_per_port = format!("queues_per_port={queues}");
        let scheduler = format!("scheduler={scheduler}");
        let scenario = scenario(&[&queues_per_port, &scheduler]);
        let streams: Vec<_> = (0..queues).map(|queue| Stream::twice(0, queue)).collect();
        let line = scenario.network.rate_bps as f64 / 8.0;
        let buffer = scenario.network.buffer_bytes as f64;
        let bound = buffer * alpha / ((1.0 + alpha) * line);
        let worst_drain = |policy: &str| {
            let lengths = steady_lengths(&scenario, &streams, policy);
            let each_line = line / f64::from(queues);
            lengths[..usize::from(queues)]
                .iter()
                .map(|length| length / each_line)
                .fold(0.0, f64::max)
        };
        let what = format!("{queues} queues, {scheduler}");
        // n_p is 1 for each priority, and the shares of the line add up to 1: the bound is tight.
        assert_close(worst_drain(&abm(alpha)), bound, TOLERANCE, &what);
        assert!(worst_drain("dt:alpha=1") > 1.2 * bound, "{what}");
    }
}

/// μ/b is the scheduler's share for a queue: turn by turn, by packets or by bytes.
#[test]
fn shares_of_a_line_follow_the_scheduler() {
    for (scheduler, expected) in [("rr", [1_518.0, 458.0]), ("drr", [1.0, 1.0])] {
        let scenario = scenario(&["queues_per_port=2", &format!("scheduler={scheduler}")]);
        let mut overload = Overload::new(&scenario, &large_and_small(&scenario), &abm(1.0));
        overload.run_until(Instant::from_ms(10));
        let before = overload.sent();
        let mut shares = [0.0, 0.0];
        let samples = 100;
        for sample in 1..=samples {
            overload.run_until(Instant::from_ms(10) + Duration::from_us(100 * sample));
            (0..2).for_each(|queue| shares[queue] += overload.alpha(queue) / samples as f64);
        }
        let sent = overload.sent();
        let bytes = [0, 1].map(|queue| (sent[queue] - before[queue]) as f64);
        let line: f64 = expected.iter().sum();
        for queue in 0..2 {
            let share = expected[queue] / line;
            let total = bytes[0] + bytes[1];
            assert_close(
                bytes[queue] / total,
                share,
                0.01,
                &format!("{scheduler}, bytes"),
            );
            // α is 1, and neither priority has two congested queues.
            assert_close(shares[queue], share, 0.05, &format!("{scheduler}, μ/b"));
        }
    }
}

/// Returns full packets to queue 0 of port 0 and packets of 458 bytes to queue 1.
fn large_and_small(scenario: &Scenario) -> Trace {
    let mut trace = trace(scenario, &[Stream::twice(0, 0)]);
    let large = trace.flows.len() as u64;
    trace.flows.extend((0..8_000).map(|flow| FlowSpec {
        id: large + flow,
        src: 8 + (flow % 2) as u32,
        dst: 0,
        start: Instant::ZERO,
        size: 400,
        kind: 0,
        query: -1,
        priority: 1,
    }));
    trace
}

/// Under strict priority the lower queue's share of the line, and with it its threshold, falls to zero
/// while the higher one is busy.
#[test]
fn strict_priority_takes_the_buffer_from_the_queue_behind() {
    let scenario = scenario(&["queues_per_port=2", "scheduler=strict"]);
    let streams = [Stream::twice(0, 0), Stream::twice(0, 1)];
    let mut overload = Overload::new(&scenario, &trace(&scenario, &streams), &abm(1.0));
    overload.run_until(STEADY);
    assert_close(overload.alpha(0), 1.0, 0.001, "first queue");
    assert!(overload.alpha(1) < 0.01, "{}", overload.alpha(1));
}

/// Updated every round trip, Dynamic Threshold's α behave like ABM if all packets are treated alike;
/// never updated, they stay the same.
#[test]
fn periodic_updates_lie_between_abm_and_dynamic_threshold() {
    let mut scenario = Scenario::default();
    for setting in ["flows=120", "load=0.7", "queues_per_port=2"] {
        scenario.set(setting).unwrap();
    }
    let trace = bufgym_sim::traffic::generate(&scenario, 11);
    let completions = |policy: &str| -> Vec<Option<Duration>> {
        let spec: bufgym_sim::switch::PolicySpec = policy.parse().unwrap();
        let outcome = spec.run(&scenario, &trace).unwrap();
        assert!(outcome.summary.drops > 0, "{policy}");
        outcome.records.iter().map(|record| record.fct).collect()
    };
    let every_rtt = completions("abm:periodic_rtts=1");
    assert_eq!(every_rtt, completions("abm:alpha_unscheduled=0.5"));
    let never = completions("abm:periodic_rtts=4000000000");
    assert_eq!(never, completions("dt:alpha=0.5"));
    assert_ne!(every_rtt, never);
    assert_ne!(completions("abm:periodic_rtts=100"), never);
}
