//! Fuzzing with any valid or invalid input. The input is refused with a reason, or its results satisfy
//! the invariants and are the same however they are computed.
//!
//! The set-ups of the other properties are realistic networks. These are not: every setting, every
//! parameter of a policy and every column of a flow list takes values from one end of its range to the
//! other.

use std::io::Cursor;

use bufgym_sim::network::{FlowRecord, OneSwitch, Outcome, Simulator, Summary};
use bufgym_sim::scenario::{
    Arrivals, HostQueue, HyStartRule, Recovery, Scenario, Scheduler, TcpRules, Traffic,
    TransportKind,
};
use bufgym_sim::switch::PolicySpec;
use bufgym_sim::switch::policy::{Kind, ParameterInfo, catalogue};
use bufgym_sim::traffic::{FlowSpec, Trace, generate};
use bufgym_sim::units::Instant;
use proptest::prelude::*;
use proptest::strategy::ValueTree as _;
use proptest::test_runner::TestRunner;

use crate::behaviour::setup::{cases, config};

/// Events after which a simulation is stopped. A flow of terabytes would take hours.
const EVENTS: u64 = 30_000;

/// Numeric settings and the ends of their ranges.
const NUMBERS: [(&str, u64, u64); 34] = [
    ("ports", 2, 200),
    ("rate_bps", 1_000_000, 10_000_000_000_000),
    ("buffer_bytes", 1_000, 1_000_000_000_000),
    ("propagation_ns", 0, 100_000_000_000),
    ("mss", 1, 65_495),
    ("header_bytes", 0, 1_000),
    ("ack_bytes", 1, 1_000),
    ("syn_bytes", 1, 1_000),
    ("sack_block_bytes", 0, 1_000),
    ("overhead_bytes", 0, 1_000),
    ("delayed_ack", 1, 1_000),
    ("quick_acks", 0, 255),
    ("slow_start_limit", 1, 65_535),
    ("host_jitter_ns", 0, 1_000_000_000),
    ("init_cwnd", 1, 10_000),
    ("max_cwnd_bytes", 0, 1_000_000_000_000),
    ("min_rto_us", 1, 100_000_000),
    ("initial_rtt_us", 1, 100_000_000),
    ("syn_timeout_us", 1, 100_000_000),
    ("ecn_threshold_bytes", 0, 1_000_000_000_000),
    ("ecn_uncounted_packets", 0, 1_000),
    ("ecn_k_packets", 0, 1_000_000_000),
    ("queues_per_port", 1, 8),
    ("ack_queue", 0, 7),
    ("strict_queues", 1, 8),
    ("query_gap_us", 1, 100_000_000),
    ("response_bytes", 1, 1_000_000_000_000),
    ("elephant_bytes", 1, 1_000_000_000_000),
    ("decision_latency_us", 0, 100_000_000),
    ("max_interval_us", 0, 100_000_000),
    ("min_interval_us", 0, 100_000_000),
    ("max_simulated_ms", 0, 1_000_000_000),
    ("flows", 1, 200),
    ("incast_degree", 1, 20),
];

/// A user's input: settings, a policy and a flow list, or none for generated traffic.
#[derive(Clone, Debug)]
struct Input {
    settings: Vec<String>,
    policy: String,
    flows: Vec<FlowSpec>,
    seed: u64,
}

/// The input, parsed into objects.
struct Accepted {
    scenario: Scenario,
    policy: PolicySpec,
    trace: Trace,
}

/// A simulation that ended or was stopped, and its results.
struct Ran {
    simulator: Simulator,
    outcome: Outcome,
}

impl Input {
    /// Returns the objects that the input describes, or the reason why it is refused.
    fn accept(&self) -> Result<Accepted, String> {
        let mut scenario = Scenario::default();
        for setting in &self.settings {
            scenario.set(setting).map_err(|error| error.to_string())?;
        }
        scenario.validate().map_err(|error| error.to_string())?;
        let policy: PolicySpec = self
            .policy
            .parse()
            .map_err(|error| format!("{}: {error}", self.policy))?;
        let trace = match self.flows.is_empty() {
            true => generate(&scenario, self.seed),
            false => Trace {
                flows: self.flows.clone(),
                kinds: vec![Trace::DEFAULT_KIND.to_owned()],
                seed: 0,
            },
        };
        policy
            .simulator::<OneSwitch>(&scenario, &trace)
            .map_err(|error| error.to_string())?;
        Ok(Accepted {
            scenario,
            policy,
            trace,
        })
    }
}

impl Accepted {
    fn simulator(&self) -> Simulator {
        let simulator = self
            .policy
            .simulator::<OneSwitch>(&self.scenario, &self.trace);
        simulator.expect("it was accepted before")
    }

    fn run(&self) -> Ran {
        run(self.simulator(), EVENTS)
    }

    /// Returns the same input after being written to files and read again.
    fn through_files(&self) -> Accepted {
        let mut csv = Vec::new();
        self.trace.to_writer(&mut csv).expect("memory takes it");
        let toml = self.scenario.to_toml();
        Accepted {
            scenario: Scenario::from_toml_str(&toml, "again.toml").expect("what we wrote"),
            policy: self.policy.to_string().parse().expect("what we wrote"),
            trace: Trace::from_reader(Cursor::new(csv), "again.csv").expect("what we wrote"),
        }
    }
}

fn run(mut simulator: Simulator, events: u64) -> Ran {
    let mut left = events;
    while left > 0 && !simulator.finished() && simulator.step() {
        left -= 1;
    }
    let outcome = simulator.outcome();
    Ran { simulator, outcome }
}

/// Returns everything in the outcome that does not depend on the machine.
fn results(outcome: &Outcome) -> String {
    let summary = Summary {
        wall_s: 0.0,
        packets_per_s: 0.0,
        ..outcome.summary.clone()
    };
    let times: Vec<_> = outcome
        .records
        .iter()
        .map(|record| (record.spec.id, record.established, record.finish))
        .collect();
    format!("{times:?} {summary:?}")
}

/// Generates numbers of all orders of magnitude, and the ends.
fn number(min: u64, max: u64) -> impl Strategy<Value = u64> {
    let (low, high) = ((min as f64 + 1.0).ln(), (max as f64 + 1.0).ln());
    prop_oneof![
        8 => (low..=high).prop_map(move |x| ((x.exp() - 1.0) as u64).clamp(min, max)),
        1 => Just(min),
        1 => Just(max),
    ]
}

fn names<T: Copy>(all: &[T], name: fn(T) -> &'static str) -> Vec<&'static str> {
    all.iter().copied().map(name).collect()
}

fn named_setting() -> impl Strategy<Value = String> {
    let sizes = ["web_search", "data_mining", "fb_hadoop", "ali_storage"];
    let switch = vec!["true", "false"];
    let words: Vec<String> = [
        ("transport", names(TransportKind::ALL, TransportKind::name)),
        ("recovery", names(Recovery::ALL, Recovery::name)),
        ("host_queue", names(HostQueue::ALL, HostQueue::name)),
        ("scheduler", names(Scheduler::ALL, Scheduler::name)),
        ("traffic", names(Traffic::ALL, Traffic::name)),
        ("arrivals", names(Arrivals::ALL, Arrivals::name)),
        ("workload", sizes.to_vec()),
        ("sack", switch.clone()),
        ("timestamps", switch.clone()),
        ("handshake", switch.clone()),
        ("slow_start", switch.clone()),
        ("hystart", switch.clone()),
        ("hystart_rule", names(HyStartRule::ALL, HyStartRule::name)),
        ("tcp_rules", names(TcpRules::ALL, TcpRules::name)),
        ("late_binding", switch.clone()),
        ("count_in_service", switch),
        ("load", vec!["0.01", "0.5", "1.5", "0.1..1.2"]),
        ("active_ports", vec!["1", "2", "2..5", "16"]),
        ("ack_queue", vec!["flow", "0"]),
        ("queue_weights", vec!["1", "0.01,1000", "2,1,0.5"]),
        ("queue_alpha", vec!["0.001", "64,0.5", "1,1,1"]),
    ]
    .into_iter()
    .flat_map(|(key, values)| {
        values
            .into_iter()
            .map(move |value| format!("{key}={value}"))
    })
    .collect();
    prop::sample::select(words)
}

fn number_setting() -> impl Strategy<Value = String> {
    prop::sample::select(NUMBERS.to_vec()).prop_flat_map(|(key, min, max)| {
        number(min, max).prop_map(move |value| format!("{key}={value}"))
    })
}

/// Generates a value of the parameter, as text; most are accepted.
fn value_of(parameter: &ParameterInfo) -> BoxedStrategy<String> {
    let real = |low: f64, high: f64| (low.ln()..high.ln()).prop_map(f64::exp);
    let words = |values: &[&str]| {
        let values: Vec<String> = values.iter().map(|value| (*value).to_owned()).collect();
        prop::sample::select(values).boxed()
    };
    match parameter.kind {
        Kind::Positive => real(1e-9, 1e12).prop_map(|x| format!("{x}")).boxed(),
        Kind::Fraction => (0.0..=1.0).prop_map(|x| format!("{x}")).boxed(),
        Kind::Count | Kind::Seed => number(1, u64::from(u32::MAX))
            .prop_map(|x| x.to_string())
            .boxed(),
        Kind::Bytes => number(0, 1 << 40).prop_map(|x| x.to_string()).boxed(),
        Kind::Numbers => prop::collection::vec(real(1e-6, 1e6), 1..8)
            .prop_map(|numbers| {
                numbers
                    .iter()
                    .map(f64::to_string)
                    .collect::<Vec<_>>()
                    .join("/")
            })
            .boxed(),
        Kind::Choice(values) => words(values),
        Kind::Path => words(&["/nowhere"]),
    }
}

/// Generates a policy with some of its parameters given.
fn policy() -> impl Strategy<Value = String> {
    let definitions: Vec<_> = catalogue().to_vec();
    prop::sample::select(definitions).prop_flat_map(|definition| {
        let info = definition.info;
        let parameters: Vec<_> = info
            .parameters
            .iter()
            .filter(|parameter| !matches!(parameter.kind, Kind::Path))
            .map(|parameter| prop::option::weighted(0.4, value_of(parameter)))
            .collect();
        let names: Vec<_> = info
            .parameters
            .iter()
            .filter(|parameter| !matches!(parameter.kind, Kind::Path))
            .map(|parameter| parameter.name)
            .collect();
        parameters.prop_map(move |values| {
            let given: Vec<String> = names
                .iter()
                .zip(values)
                .filter_map(|(name, value)| Some(format!("{name}={}", value?)))
                .collect();
            match given.is_empty() {
                true => info.name.to_owned(),
                false => format!("{}:{}", info.name, given.join(",")),
            }
        })
    })
}

fn flows() -> impl Strategy<Value = Vec<FlowSpec>> {
    let host = 0..18_u32;
    let start = prop_oneof![
        3 => number(0, 1_000_000),
        1 => number(0, Trace::MAX_START_NS),
    ];
    let size = prop_oneof![3 => number(1, 1_000_000), 1 => number(1, Trace::MAX_SIZE)];
    let flow = (host.clone(), host, start, size, 0..8_u8);
    prop::collection::vec(flow, 0..12).prop_map(|flows| {
        let flows = flows.into_iter().zip(0_u64..);
        flows
            .map(|((src, dst, start_ns, size, priority), id)| FlowSpec {
                id,
                src: src % 16,
                dst: if dst == src { (dst + 1) % 16 } else { dst % 16 },
                start: Instant::from_ns(start_ns),
                size,
                kind: 0,
                query: -1,
                priority,
            })
            .collect()
    })
}

fn any_input() -> impl Strategy<Value = Input> {
    let settings = prop::collection::vec(
        prop_oneof![2 => number_setting(), 1 => named_setting()],
        0..8,
    );
    (settings, policy(), flows(), any::<u64>()).prop_map(|(settings, policy, flows, seed)| Input {
        settings,
        policy,
        flows,
        seed,
    })
}

/// Returns the least time between the establishment and the last byte: every byte of payload and
/// headers on the host's line, the last packet on the port's, and two propagation delays, picoseconds.
fn least_ps(scenario: &Scenario, size: u64) -> u128 {
    let mss = u64::from(scenario.packets.mss);
    let packets = size.div_ceil(mss);
    let of_tcp = scenario.full_packet_bytes() - mss;
    // A flow may be RDMA, whose headers are usually smaller.
    let headers = of_tcp.min(u64::from(scenario.rdma.header_bytes));
    let headers = headers + u64::from(scenario.packets.overhead_bytes);
    let last = size - (packets - 1) * mss + headers;
    let bytes = u128::from(size) + u128::from(packets) * u128::from(headers) + u128::from(last);
    let bits_ps = bytes * 8 * 1_000_000_000_000;
    // A transmission is rounded to a picosecond, in the worst case down.
    let rounding = u128::from(packets) + 1;
    (bits_ps / u128::from(scenario.network.rate_bps)).saturating_sub(rounding)
        + 2 * u128::from(scenario.propagation().as_ps())
}

fn check_times(input: &Accepted, outcome: &Outcome) -> Result<(), TestCaseError> {
    for record in &outcome.records {
        let Some(finish) = record.finish else {
            prop_assert_eq!(record.fct, None);
            continue;
        };
        let established = record.established.expect("before the last byte");
        prop_assert!(established >= record.spec.start, "{:?}", record);
        let least = least_ps(&input.scenario, record.spec.size);
        let took = u128::from(finish.as_ps()) - u128::from(established.as_ps());
        prop_assert!(took >= least, "{took} ps, least {least}: {:?}", record);
    }
    Ok(())
}

/// Checks that no host receives or sends payload faster than its line, over any set of completed flows.
fn check_rates(input: &Accepted, outcome: &Outcome) -> Result<(), TestCaseError> {
    let ends: [fn(&FlowRecord) -> u32; 2] = [|record| record.spec.src, |record| record.spec.dst];
    for end in ends {
        for host in 0..input.scenario.network.ports {
            let completed = || {
                let records = outcome.records.iter();
                records.filter(move |record| end(record) == host && record.finish.is_some())
            };
            let bytes: u128 = completed().map(|record| u128::from(record.spec.size)).sum();
            let first = completed().map(|record| record.spec.start).min();
            let last = completed().filter_map(|record| record.finish).max();
            let (Some(first), Some(last)) = (first, last) else {
                continue;
            };
            let span = u128::from(last.as_ps()) - u128::from(first.as_ps());
            let bits_ps = bytes * 8 * 1_000_000_000_000;
            prop_assert!(
                bits_ps <= span * u128::from(input.scenario.network.rate_bps),
                "host {host}"
            );
        }
    }
    Ok(())
}

fn check_counts(input: &Accepted, ran: &Ran) -> Result<(), TestCaseError> {
    let summary = &ran.outcome.summary;
    prop_assert_eq!(ran.simulator.check_invariants(), Ok(()));
    prop_assert_eq!(summary.flows, input.trace.flows.len() as u64);
    let completed = ran
        .outcome
        .records
        .iter()
        .filter(|record| record.finish.is_some());
    prop_assert_eq!(summary.completed, completed.count() as u64);
    prop_assert!(summary.drops_data <= summary.drops && summary.pushed_out <= summary.drops);
    prop_assert!(summary.max_occupancy_bytes <= ran.simulator.buffer().capacity());
    let line = input.scenario.network.rate_bps as f64 * f64::from(input.scenario.network.ports);
    let rate = summary.goodput_bps;
    prop_assert!(
        rate.is_nan() || rate <= line * (1.0 + 1e-9),
        "{rate} of {line} bit/s"
    );
    if input.policy == PolicySpec::unlimited() {
        prop_assert_eq!(summary.drops, 0);
    }
    Ok(())
}

/// Checks that forks, other threads, recorders and files change nothing.
fn check_same(input: &Accepted, ran: &Ran) -> Result<(), TestCaseError> {
    let expected = results(&ran.outcome);
    let mut half = input.simulator();
    let mut events = 0;
    while events < 1_000 && !half.finished() && half.step() {
        events += 1;
    }
    let mut watched = half.clone();
    watched.record_drops();
    let fork = std::thread::spawn(move || run(half, EVENTS - events));
    let watched = run(watched, EVENTS - events);
    let again = input.through_files().run();
    let fork = fork.join().expect("the same run has not panicked before");
    prop_assert_eq!(&results(&fork.outcome), &expected);
    prop_assert_eq!(&results(&watched.outcome), &expected);
    prop_assert_eq!(&results(&again.outcome), &expected);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: cases(if cfg!(debug_assertions) { 24 } else { 400 }), ..config() })]

    #[test]
    fn whatever_is_given_is_refused_or_right(input in any_input()) {
        match input.accept() {
            Err(reason) => prop_assert!(!reason.is_empty() && !reason.contains('\n'), "{reason}"),
            Ok(accepted) => {
                let ran = accepted.run();
                check_times(&accepted, &ran.outcome)?;
                check_rates(&accepted, &ran.outcome)?;
                check_counts(&accepted, &ran)?;
                check_same(&accepted, &ran)?;
            }
        }
    }
}

/// A fuzzer whose inputs are all refused would find nothing.
#[test]
fn many_inputs_are_accepted_and_have_something_to_do() {
    let mut runner = TestRunner::deterministic();
    let tries = 400;
    let [mut accepted, mut finished, mut with_drops] = [0; 3];
    for _ in 0..tries {
        let input = any_input()
            .new_tree(&mut runner)
            .expect("an input")
            .current();
        let Ok(input) = input.accept() else { continue };
        accepted += 1;
        let ran = input.run();
        finished += u32::from(ran.simulator.finished());
        with_drops += u32::from(ran.outcome.summary.drops > 0);
    }
    for (count, least) in [
        (accepted, tries / 4),
        (finished, tries / 10),
        (with_drops, tries / 20),
    ] {
        assert!(count > least, "{accepted}, {finished}, {with_drops}");
    }
}
