//! Lossless packets in whole simulations: nothing is lost where headroom suffices, pauses end, and the
//! rest goes on.

use bufgym_sim::network::{FabricSimulator, Outcome};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::PolicySpec;
use bufgym_sim::traffic::{FlowSpec, Trace, generate};
use bufgym_sim::units::Time;
use proptest::prelude::*;

use crate::behaviour::setup::cases;

/// Three leaves with four hosts each, two spines, 25 Gbit/s and 2 µs everywhere. CUBIC at priority 1,
/// which is lossy, answers of queries by DCQCN at priority 3.
fn scenario(changes: &[&str]) -> Scenario {
    let base = [
        "topology=leafspine",
        "leaves=3",
        "hosts_per_leaf=4",
        "spines=2",
        "incast_degree=1..11",
        "active_ports=1..12",
        "rate_bps=25e9",
        "propagation_ns=2000",
        "slowdown_base=reverie",
        "buffer_bytes=600000",
        "mss=1000",
        "min_rto_us=1000",
        "queues_per_port=4",
        "flow_priority=fixed",
        "background_priority=1",
        "incast_priority=3",
        "lossless_priorities=3",
        "transport=cubic",
        "incast_transport=dcqcn:preset=reverie",
        "demand=other_leaf",
        "query_rate=400",
        "query_share=0.8",
        "load=0.6",
        "measure_ms=4",
        "drain_ms=2000",
        "pfc_watchdog_us=10000",
    ];
    let mut scenario = Scenario::default();
    for change in base.iter().chain(changes) {
        scenario.set(change).unwrap();
    }
    scenario.validate().unwrap();
    scenario
}

fn simulator(policy: &str, scenario: &Scenario, trace: &Trace) -> FabricSimulator {
    let policy: PolicySpec = policy.parse().unwrap();
    policy.fabric(scenario, trace).unwrap()
}

fn run(policy: &str, scenario: &Scenario, seed: u64) -> (FabricSimulator, Outcome) {
    let trace = generate(scenario, seed);
    let mut simulator = simulator(policy, scenario, &trace);
    let outcome = simulator.run();
    assert_eq!(simulator.stuck(), None, "{policy}");
    (simulator, outcome)
}

const POLICIES: [&str; 4] = ["sonic", "sonic-abm", "reverie", "reverie:gamma=0.999999"];

fn finishes(outcome: &[bufgym_sim::network::FlowRecord]) -> Vec<Option<Time>> {
    outcome.iter().map(|record| record.finish).collect()
}

/// Every policy pauses here, loses lossy packets at most, and resumes what it has paused.
#[test]
fn nothing_lossless_is_lost() {
    for policy in POLICIES {
        for rules in ["rules=paper", "rules=ns3"] {
            let scenario = scenario(&[rules]);
            let (simulator, outcome) = run(policy, &scenario, 3);
            let summary = &outcome.summary;
            assert!(summary.pauses > 0, "{policy} {rules}");
            assert_eq!(summary.drops_lossless, 0, "{policy} {rules}");
            assert_eq!(simulator.first_lossless_drop(), None);
            assert!(outcome.records.iter().all(|record| record.finish.is_some()));
            let pauses = simulator.pauses();
            assert_eq!(pauses.len() as u64, summary.pauses);
            assert!(pauses.iter().all(|paused| paused.priority == 3));
            assert!(
                pauses
                    .iter()
                    .all(|paused| paused.to.is_none_or(|to| to >= paused.from))
            );
            let answers = outcome
                .records
                .iter()
                .filter(|record| record.spec.query >= 0);
            let timeouts: u32 = answers.map(|record| record.timeouts).sum();
            assert_eq!(timeouts, 0, "{policy} {rules}");
        }
    }
}

/// With no headroom worth the name packets are lost, the first of them is known, and all flows end
/// nevertheless.
#[test]
fn without_headroom_packets_are_lost() {
    let scenario = scenario(&["headroom_bytes=1100"]);
    assert!(scenario.lossless_warning().is_some());
    for policy in ["sonic", "reverie"] {
        let (simulator, outcome) = run(policy, &scenario, 3);
        assert!(outcome.summary.drops_lossless > 0, "{policy}");
        let first = simulator.first_lossless_drop().unwrap();
        assert_eq!(first.priority, 3);
        assert!(outcome.records.iter().all(|record| record.finish.is_some()));
    }
}

/// Pauses that last for a time, and are repeated before it ends, are those that are taken back.
#[test]
fn quanta_change_nothing() {
    let trace_seed = 5;
    for policy in ["sonic", "reverie"] {
        let (_, once) = run(policy, &scenario(&[]), trace_seed);
        let (_, timed) = run(policy, &scenario(&["pfc=quanta"]), trace_seed);
        assert!(once.summary.pauses > 0);
        assert_eq!(
            finishes(&once.records),
            finishes(&timed.records),
            "{policy}"
        );
        // 512 bits of the fastest repetition: frames are on the wire all the time.
        let short = scenario(&["pfc=quanta", "pfc_quanta=400"]);
        let (_, short) = run(policy, &short, trace_seed);
        assert_eq!(short.summary.drops_lossless, 0, "{policy}");
    }
}

/// A simulator that is cloned while pause frames are on their way goes on as the original does.
#[test]
fn forks_with_pauses_are_equal() {
    let scenario = scenario(&["pfc_response_ns=500"]);
    let trace = generate(&scenario, 3);
    let mut original = simulator("reverie", &scenario, &trace);
    let mut forks = Vec::new();
    let mut seen = 0;
    for step in 0u64.. {
        if !original.step() || original.finished() {
            break;
        }
        let pauses = original.pauses().len();
        if step % 64 == 0 && pauses > seen && forks.len() < 8 {
            seen = pauses;
            forks.push(original.clone());
        }
    }
    assert!(forks.len() > 2, "{} forks", forks.len());
    let expected = finishes(&original.outcome().records);
    for mut fork in forks {
        assert_eq!(finishes(&fork.run().records), expected);
    }
}

/// Without a lossless priority, and with one pool for all, SONiC is Dynamic Threshold.
#[test]
fn sonic_without_lossless_priorities_is_dynamic_threshold() {
    for (count, transport) in [
        ("count_in_service=true", "transport=cubic"),
        ("count_in_service=false", "transport=dctcp"),
    ] {
        let changes = [
            "lossless_priorities=none",
            "lossy_pool_share=1",
            "incast_transport=same",
            count,
            transport,
        ];
        let scenario = scenario(&changes);
        let trace = generate(&scenario, 11);
        let [dt, sonic] = ["dt", "sonic"].map(|policy| simulator(policy, &scenario, &trace).run());
        assert!(dt.summary.drops > 0);
        assert_eq!(dt.summary.drops, sonic.summary.drops);
        assert_eq!(dt.summary.marks, sonic.summary.marks);
        assert_eq!(finishes(&dt.records), finishes(&sonic.records));
    }
}

/// Dynamic Threshold is SONiC's where packets are lossless, and a buffer that never fills pauses
/// nobody.
#[test]
fn the_references_know_lossless_packets() {
    let scenario = scenario(&[]);
    let of = |policy| finishes(&run(policy, &scenario, 3).1.records);
    assert_eq!(of("dt"), of("sonic"));
    assert_eq!(of("dt:alpha=2"), of("sonic:alpha_i=2,alpha_e=2"));
    let (_, outcome) = run("unlimited", &scenario, 3);
    assert_eq!((outcome.summary.pauses, outcome.summary.drops), (0, 0));
}

/// Reverie has no egress pool for lossy packets.
#[test]
fn the_lossy_pool_is_none_of_reveries() {
    let of = |share: &str| {
        let scenario = scenario(&[share]);
        finishes(&run("reverie", &scenario, 3).1.records)
    };
    assert_eq!(of("lossy_pool_share=0.2"), of("lossy_pool_share=0.8"));
}

/// Policies without thresholds at the ingress, and queue management, are refused.
#[test]
fn what_could_lose_lossless_packets_is_refused() {
    let scenario = scenario(&[]);
    let trace = generate(&scenario, 1);
    let mut deficits = scenario.clone();
    deficits.set("scheduler=drr").unwrap();
    let spec: PolicySpec = "reverie".parse().unwrap();
    let error = spec.fabric(&deficits, &trace).unwrap_err().to_string();
    assert!(error.contains("needs scheduler rr"), "{error}");
    for policy in ["st", "lqd", "occamy", "ib", "sonic+red"] {
        let spec: PolicySpec = policy.parse().unwrap();
        let error = spec.fabric(&scenario, &trace).unwrap_err().to_string();
        assert!(
            error.contains("must be") || error.contains("leave it out"),
            "{error}"
        );
    }
}

/// Two answers that start at once at hosts of two leaves, to a host of the third.
fn two_answers(bytes: u64) -> Trace {
    let flow = |id, src, dst| FlowSpec {
        id,
        src,
        dst,
        start: Time::ZERO,
        size: bytes,
        kind: 0,
        query: 0,
        priority: 3,
    };
    Trace {
        flows: vec![flow(0, 0, 8), flow(1, 4, 8), flow(2, 1, 8)],
        ..Trace::default()
    }
}

/// A watchdog that is set below the length of a pause says which queue waits for which.
#[test]
fn the_watchdog_names_the_chain() {
    let scenario = scenario(&["pfc_watchdog_us=3", "buffer_bytes=260000"]);
    let mut simulator = simulator("sonic", &scenario, &two_answers(2_000_000));
    simulator.run();
    let stuck = simulator.stuck().expect("a pause lasts longer than 3 us");
    assert!(
        stuck.contains("priority 3") && stuck.contains("paused by switch"),
        "{stuck}"
    );
    let mut drops = scenario.clone();
    drops.set("watchdog=drop").unwrap();
    let mut simulator = self::simulator("sonic", &drops, &two_answers(200_000));
    let outcome = simulator.run();
    assert!(outcome.summary.drops_lossless > 0);
    assert!(outcome.records.iter().all(|record| record.finish.is_some()));
}

/// Every policy that manages memory, with weak and strong filters.
const ALL_POLICIES: [&str; 7] = [
    "dt",
    "sonic",
    "sonic:alpha_i=4,alpha_e=0.5",
    "sonic-abm",
    "reverie",
    "reverie:gamma=0.8",
    "reverie:gamma=0.999999",
];

/// Rates of the links between switches, where those of hosts have 25 Gbit/s; 0: the same.
const FABRIC_RATES: [&str; 3] = ["0", "10e9", "100e9"];

/// A host sends ten segments of TCP beside three flows of RDMA. As flows in turn they take 40 packets of
/// the line, as classes in turn 20.
#[test]
fn hosts_send_rdma_and_tcp_in_turn_under_the_rules_of_the_code() {
    let flow = |id, dst, (size, query, priority)| FlowSpec {
        id,
        src: 0,
        dst,
        start: Time::ZERO,
        size,
        kind: 0,
        query,
        priority,
    };
    let (rdma, tcp) = ((1_000_000, 0, 3), (10_000, -1, 1));
    let trace = Trace {
        flows: vec![
            flow(0, 4, rdma),
            flow(1, 5, rdma),
            flow(2, 8, rdma),
            flow(3, 9, tcp),
        ],
        ..Trace::default()
    };
    // 1,048 bytes at 25 Gbit/s.
    let packet_ns = 335;
    let packets_of_line = |rules| {
        let mut simulator = simulator("reverie", &scenario(&[rules]), &trace);
        let outcome = simulator.run();
        assert_eq!(outcome.summary.drops, 0, "{rules}");
        outcome.records[3].finish.unwrap().as_ns() / packet_ns
    };
    let (paper, code) = (packets_of_line("rules=paper"), packets_of_line("rules=ns3"));
    assert!((paper - code).abs_diff(20) <= 2, "{paper} {code}");
}

/// What of the network the property below is about.
fn networks() -> impl Strategy<Value = Vec<String>> {
    let leaves = 2u32..4;
    let sizes = (leaves, 1u32..3, 0u64..4_000, 0u64..2_000);
    let rest = (
        prop::sample::select(FABRIC_RATES.to_vec()),
        prop::sample::select(vec!["dcqcn:preset=reverie", "powertcp-rdma"]),
        1u32..9,
        prop::option::of(40u32..4_000),
    );
    (sizes, rest).prop_map(|((leaves, spines, delay, response), rest)| {
        let (fabric_rate, transport, load, quanta) = rest;
        let mut changes = vec![
            "measure_ms=1".to_owned(),
            "buffer_bytes=1e8".to_owned(),
            format!("ports={}", 4 * leaves),
            format!("leaves={leaves}"),
            format!("spines={spines}"),
            format!("propagation_ns={delay}"),
            format!("pfc_response_ns={response}"),
            format!("fabric_rate_bps={fabric_rate}"),
            format!("incast_transport={transport}"),
            "incast_degree=1..7".to_owned(),
            "active_ports=1..8".to_owned(),
            format!("load={}", f64::from(load) / 10.0),
        ];
        if let Some(quanta) = quanta {
            changes.extend(["pfc=quanta".to_owned(), format!("pfc_quanta={quanta}")]);
        }
        changes
    })
}

/// What of the rules it is about. Without the guard of the pool Reverie loses packets, by its rules.
fn rules() -> impl Strategy<Value = (&'static str, Vec<String>)> {
    let policy = prop::sample::select(ALL_POLICIES.to_vec());
    let forms = (any::<bool>(), any::<bool>(), any::<bool>(), any::<bool>());
    (policy, forms).prop_map(|(policy, (ns3, abm, class, guard))| {
        let guard = guard || policy.starts_with("reverie");
        let changes = vec![
            format!("rules={}", if ns3 { "ns3" } else { "paper" }),
            format!("congested={}", if abm { "abm" } else { "sum" }),
            format!("control_class={class}"),
            format!("pool_guard={guard}"),
        ];
        (policy, changes)
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(cases(24)))]

    /// Whatever the network, the load, the rules and the size of the buffer: with the headroom that is
    /// needed nothing lossless is lost, no timer of RDMA expires, and every flow ends.
    #[test]
    fn headroom_that_is_needed_suffices(
        seed in 0u64..1_000_000,
        network in networks(),
        (policy, rules) in rules(),
        pool_kb in 30u64..500,
    ) {
        let changes: Vec<&str> = network.iter().chain(&rules).map(String::as_str).collect();
        let mut scenario = scenario(&changes);
        let rate = scenario.rate().max(scenario.fabric_rate());
        scenario.headroom_bytes = scenario.needed_headroom(rate);
        let ports = 4 + u64::from(scenario.spines.max(scenario.leaves));
        scenario.buffer_bytes = ports * scenario.headroom_bytes + 1_000 * pool_kb;
        scenario.query_share = 200_000.0 / scenario.buffer_bytes as f64;
        scenario.validate().unwrap();
        let trace = generate(&scenario, seed);
        prop_assume!(!trace.flows.is_empty());
        let mut simulator = simulator(policy, &scenario, &trace);
        let outcome = simulator.run();
        prop_assert_eq!(simulator.stuck(), None);
        prop_assert_eq!(outcome.summary.drops_lossless, 0);
        prop_assert!(outcome.records.iter().all(|record| record.finish.is_some()));
        let answers = outcome.records.iter().filter(|record| record.spec.query >= 0);
        prop_assert_eq!(answers.map(|record| record.timeouts).sum::<u32>(), 0);
    }
}
