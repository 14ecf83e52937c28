//! Hashes of traces and results. The same seed means the same result bit for bit, on every machine,
//! whatever the number of threads, from one version to the next.
//!
//! Change a value here only if a change of behaviour was intended: a rule of the simulator, a transport
//! or a generator was corrected or completed, and the commit says which. If a change that should alter
//! nothing (speed, structure, a dependency) alters one of these values, it is wrong. Trace hashes
//! should never change: published results name their traces by seed. A new transport, policy, workload
//! or arrival mode adds a line.

use bufgym_sim::network::Outcome;
use bufgym_sim::scenario::{Arrivals, PRESETS, Scenario, TransportKind, Workload};
use bufgym_sim::switch::PolicySpec;
use bufgym_sim::switch::{aqm, policy};
use bufgym_sim::traffic::{Trace, generate};
use bufgym_util::rng::{Split, trace_seed};
use sha2::{Digest as _, Sha256};

/// Returns the first eight bytes of SHA-256, as hexadecimal digits.
fn hash(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest[..8]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

fn trace(scenario: &Scenario) -> Trace {
    generate(scenario, trace_seed(Split::Test, 1, 0))
}

fn scenario(settings: &str) -> Scenario {
    let mut scenario = Scenario::default();
    for setting in settings.split_whitespace() {
        scenario.set(setting).expect("a setting that exists");
    }
    scenario.validate().expect("a valid scenario");
    scenario
}

/// Settings with so many flows into a small buffer that a few per cent of the packets are lost.
const CROWDED: &str = "workload=fb_hadoop flows=300 active_ports=4 incast_degree=8 load=0.9 \
                       buffer_bytes=100000 min_rto_us=10000";

/// Returns a hash of the finish times of all flows, picoseconds.
fn results(policy: &str, settings: &str) -> String {
    let scenario = scenario(&format!("{CROWDED} {settings}"));
    let policy: PolicySpec = policy.parse().expect("a policy of the catalogue");
    let outcome = policy
        .run(&scenario, &trace(&scenario))
        .expect("a valid simulation");
    if policy != PolicySpec::unlimited() {
        assert!(outcome.summary.drops > 100, "{:?}", outcome.summary);
    }
    let mut bytes = Vec::new();
    for record in &outcome.records {
        let finish = record.finish.expect("every flow completes");
        bytes.extend_from_slice(&finish.as_ps().to_le_bytes());
    }
    hash(&bytes)
}

#[test]
fn traces_are_what_they_always_were() {
    let expected = [
        ("workload=web_search arrivals=mixed", "86825d35530bde68"),
        ("workload=web_search arrivals=spread", "c5e4d232aebab7f4"),
        (
            "workload=web_search arrivals=synchronised",
            "3d42bbf80df55f63",
        ),
        ("workload=data_mining arrivals=mixed", "cffcb2834e3b6fc8"),
        ("workload=data_mining arrivals=spread", "e8750959f67a34da"),
        (
            "workload=data_mining arrivals=synchronised",
            "017f73636e0b4523",
        ),
        ("workload=fb_hadoop arrivals=mixed", "8ba4cb49d77fc91e"),
        ("workload=fb_hadoop arrivals=spread", "04940d5cab4f50d3"),
        (
            "workload=fb_hadoop arrivals=synchronised",
            "d142fa2cdf757347",
        ),
        ("workload=ali_storage arrivals=mixed", "fac015dfe6fde8b7"),
        ("workload=ali_storage arrivals=spread", "5daf06334835723e"),
        (
            "workload=ali_storage arrivals=synchronised",
            "4180716d1ac87483",
        ),
        ("workload=web_search_abm arrivals=mixed", "8ca9eff02891412f"),
        (
            "workload=web_search_abm arrivals=spread",
            "ef1ce9209e2dcd6a",
        ),
        (
            "workload=web_search_abm arrivals=synchronised",
            "ab46a7704947d473",
        ),
    ];
    assert_eq!(expected.len(), Workload::ALL.len() * Arrivals::ALL.len());
    for (settings, expected) in expected {
        let mut csv = Vec::new();
        trace(&scenario(settings))
            .to_writer(&mut csv)
            .expect("writing to memory");
        assert_eq!(hash(&csv), expected, "{settings}");
    }
}

#[test]
fn results_are_what_they_were() {
    for (run, expected) in [
        ("cs", "aa9cb13e24918959"),
        ("st", "63f135f5ab2505f9"),
        ("dt", "64a628fbfd61530e"),
        ("dt:alpha=8", "30714c39ba277d4f"),
        ("edt", "991ea5064cb57300"),
        ("unlimited", "82400630dd72ef5b"),
        ("dt sack=false", "d46b67b0c243735a"),
        (
            "dt host_queue=fifo count_in_service=false",
            "19523dd1db635906",
        ),
        (
            "dt handshake=true timestamps=true max_cwnd_bytes=130320",
            "e9daeb9e69913d6e",
        ),
        ("dt transport=cubic", "55812a1bf497a049"),
        (
            "unlimited transport=cubic workload=web_search",
            "597dea98c0fff1d6",
        ),
        (
            "unlimited transport=cubic workload=web_search hystart=true",
            "840cc76f19109c46",
        ),
        (
            "dt transport=dctcp ecn_threshold_bytes=10000",
            "1736ef60fdbf4e32",
        ),
        ("dt delayed_ack=2", "d9c02e6a9b6d106b"),
        (
            "dt transport=dctcp ecn_threshold_bytes=20000 delayed_ack=2",
            "78b33ce3b7cc06d1",
        ),
        ("dt recovery=rack", "88e859f82e1fc4d5"),
        (
            "dt transport=cubic recovery=rack late_binding=true",
            "0eec2f2782ade010",
        ),
        ("dt transport=linux", "c88b9b313e50a514"),
        (
            "dt transport=linux-dctcp ecn_threshold_bytes=20000 handshake=true",
            "97859774541a4f42",
        ),
        ("st recovery=ns3", "76d5f2be294332a6"),
        ("st recovery=ns3 transport=cubic-ns3", "cbc9d83e5b51bf54"),
        (
            "st recovery=ns3 transport=dctcp ecn_threshold_bytes=10000",
            "a4e3fb18ae409fcd",
        ),
    ] {
        let (policy, settings) = run.split_once(' ').unwrap_or((run, ""));
        assert_eq!(results(policy, settings), expected, "{run}");
    }
}

/// Returns a hash of the finish times of all flows, picoseconds, and of the counts and averages of the
/// summary.
fn everything(outcome: &Outcome) -> String {
    let mut bytes = Vec::new();
    for record in &outcome.records {
        let finish = record.finish.expect("every flow completes");
        bytes.extend_from_slice(&finish.as_ps().to_le_bytes());
    }
    let summary = &outcome.summary;
    for count in [
        summary.packets_forwarded,
        summary.drops,
        summary.dropped_bytes,
        summary.pushed_out,
        summary.marks,
        summary.timeouts,
        summary.max_occupancy_bytes,
        summary.pauses,
        summary.drops_lossless,
        summary.mean_slowdown.to_bits(),
        summary.p99_occupancy.to_bits(),
        summary.p99_lossless_occupancy.to_bits(),
        summary.p99_lossy_occupancy.to_bits(),
    ] {
        bytes.extend_from_slice(&count.to_le_bytes());
    }
    hash(&bytes)
}

/// Runs a preset: policy, preset and settings, separated by spaces.
fn preset_run(run: &str) -> Outcome {
    let mut words = run.split_whitespace();
    let (policy, preset) = (words.next().unwrap_or(""), words.next().unwrap_or(""));
    let mut scenario = Scenario::preset(preset).expect("a preset");
    for setting in words {
        scenario.set(setting).expect("a setting that exists");
    }
    scenario.validate().expect("a valid scenario");
    let policy: PolicySpec = policy.parse().expect("a policy of the catalogue");
    policy
        .run(&scenario, &trace(&scenario))
        .expect("a valid simulation")
}

/// Compares all runs before it fails, so that one failure shows everything that has changed.
fn check(runs: &[(&str, &str)]) {
    let changed: Vec<String> = runs
        .iter()
        .map(|&(run, expected)| (run, expected, everything(&preset_run(run))))
        .filter(|(_, expected, found)| expected != found)
        .map(|(run, expected, found)| format!("{run}: {expected} is now {found}"))
        .collect();
    assert!(changed.is_empty(), "\n{}", changed.join("\n"));
}

/// Checks that every name of a catalogue occurs in one of the runs.
fn covers(runs: &[(&str, &str)], names: impl IntoIterator<Item = &'static str>) {
    let has = |name: &str| {
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '-';
        runs.iter().any(|(run, _)| {
            let ends = |at: usize| !run[at + name.len()..].starts_with(is_name);
            let begins = |at: usize| !run[..at].ends_with(is_name);
            run.match_indices(name)
                .any(|(at, _)| begins(at) && ends(at))
        })
    };
    for name in names {
        assert!(has(name), "no run of {name}");
    }
}

/// Runs of one switch, overloaded, with each policy.
#[test]
fn every_policy_does_what_it_did() {
    let runs = [
        (
            "cs ndt-16x1g flows=300 buffer_bytes=100000 workload=fb_hadoop active_ports=4 incast_degree=8 load=0.9 min_rto_us=10000",
            "ed5fcc6436e67d70",
        ),
        (
            "st ndt-16x1g flows=300 buffer_bytes=100000 workload=fb_hadoop active_ports=4 incast_degree=8 load=0.9 min_rto_us=10000",
            "7f0fcec55976053b",
        ),
        (
            "dt:alpha=0.5 ndt-16x1g flows=300 buffer_bytes=100000 workload=fb_hadoop active_ports=4 incast_degree=8 load=0.9 min_rto_us=10000",
            "c37876123805adf7",
        ),
        (
            "edt ndt-16x1g flows=300 buffer_bytes=100000 workload=fb_hadoop active_ports=4 incast_degree=8 load=0.9 min_rto_us=10000",
            "539666ee11550aec",
        ),
        (
            "tdt ndt-16x1g flows=300 buffer_bytes=100000 workload=fb_hadoop active_ports=4 incast_degree=8 load=0.9 min_rto_us=10000",
            "5ad25fd37f3c161c",
        ),
        (
            "fab:alpha=1,alpha_short=64 ndt-16x1g flows=300 buffer_bytes=100000 workload=fb_hadoop active_ports=4 incast_degree=8 load=0.9 min_rto_us=10000",
            "bca3e9f59aa609db",
        ),
        (
            "ib ndt-16x1g flows=300 buffer_bytes=100000 workload=fb_hadoop active_ports=4 incast_degree=8 load=0.9 min_rto_us=10000",
            "7e4651e33c59179f",
        ),
        (
            "abm ndt-16x1g flows=300 buffer_bytes=100000 workload=fb_hadoop active_ports=4 incast_degree=8 load=0.9 min_rto_us=10000",
            "53c2ab5093bfe7fd",
        ),
        (
            "occamy ndt-16x1g flows=300 buffer_bytes=100000 workload=fb_hadoop active_ports=4 incast_degree=8 load=0.9 min_rto_us=10000",
            "35bf1818de96e642",
        ),
        (
            "lqd ndt-16x1g flows=300 buffer_bytes=100000 workload=fb_hadoop active_ports=4 incast_degree=8 load=0.9 min_rto_us=10000",
            "190b8bea3e1a2916",
        ),
        (
            "pot ndt-16x1g flows=300 buffer_bytes=100000 workload=fb_hadoop active_ports=4 incast_degree=8 load=0.9 min_rto_us=10000",
            "a17141cde5d7375f",
        ),
        (
            "sma ndt-16x1g flows=300 buffer_bytes=100000 workload=fb_hadoop active_ports=4 incast_degree=8 load=0.9 min_rto_us=10000",
            "d57d6c226e448949",
        ),
        (
            "smxq ndt-16x1g flows=300 buffer_bytes=100000 workload=fb_hadoop active_ports=4 incast_degree=8 load=0.9 min_rto_us=10000",
            "1f705388e6547f2c",
        ),
        (
            "harmonic ndt-16x1g flows=300 buffer_bytes=100000 workload=fb_hadoop active_ports=4 incast_degree=8 load=0.9 min_rto_us=10000",
            "174e569dabcfe837",
        ),
        (
            "followlqd ndt-16x1g flows=300 buffer_bytes=100000 workload=fb_hadoop active_ports=4 incast_degree=8 load=0.9 min_rto_us=10000",
            "f7969f6194390911",
        ),
        (
            "unlimited ndt-16x1g flows=300 buffer_bytes=100000 workload=fb_hadoop active_ports=4 incast_degree=8 load=0.9 min_rto_us=10000",
            "3743c3e4c35091c6",
        ),
        (
            "credence ndt-16x1g flows=300 buffer_bytes=100000 workload=fb_hadoop active_ports=4 incast_degree=8 load=0.9 min_rto_us=10000",
            "f7969f6194390911",
        ),
        (
            "sonic reverie-4x4 measure_ms=3 query_rate=300",
            "c1fc0c842c337d7e",
        ),
        (
            "sonic-abm reverie-4x4 measure_ms=3 query_rate=300",
            "98e1dacd8c774fdc",
        ),
        (
            "reverie reverie-4x4 measure_ms=3 query_rate=300",
            "27dff1e8488d9bf6",
        ),
        (
            "sonic:alpha_i=2,alpha_e=0.25 reverie-4x4 measure_ms=3 query_rate=300",
            "174decddb6bba531",
        ),
        (
            "dt reverie-4x4 measure_ms=3 query_rate=300",
            "c1fc0c842c337d7e",
        ),
    ];
    covers(
        &runs,
        policy::catalogue().iter().map(|policy| policy.info.name),
    );
    check(&runs);
}

#[test]
fn every_queue_management_does_what_it_did() {
    let runs = [
        (
            "dt:alpha=8+random ndt-16x1g flows=300 active_ports=4 incast_degree=8",
            "5f1df96c2dd5ec5d",
        ),
        (
            "dt:alpha=8+red ndt-16x1g flows=300 active_ports=4 incast_degree=8",
            "c4e2d17981a39de1",
        ),
        (
            "dt:alpha=8+red:action=mark ndt-16x1g flows=300 active_ports=4 incast_degree=8 ecn=true",
            "6a6606bf173571fd",
        ),
        (
            "dt:alpha=8+early ndt-16x1g flows=300 active_ports=4 incast_degree=8",
            "235a69bf1948efcb",
        ),
        (
            "dt:alpha=8+early:action=mark ndt-16x1g flows=300 active_ports=4 incast_degree=8 ecn=true",
            "8740d989f74eee9d",
        ),
        (
            "dt:alpha=8+early:from=front,patience=4 ndt-16x1g flows=300 active_ports=4 incast_degree=8",
            "030a1d274f32931d",
        ),
        (
            "dt:alpha=8+codel ndt-16x1g flows=300 active_ports=4 incast_degree=8",
            "19243f4d1450c710",
        ),
        (
            "dt:alpha=8+codel:action=mark ndt-16x1g flows=300 active_ports=4 incast_degree=8 ecn=true",
            "19243f4d1450c710",
        ),
        (
            "dt:alpha=8+pie ndt-16x1g flows=300 active_ports=4 incast_degree=8",
            "19243f4d1450c710",
        ),
        (
            "dt:alpha=8+pie:action=mark ndt-16x1g flows=300 active_ports=4 incast_degree=8 ecn=true",
            "19243f4d1450c710",
        ),
        (
            "dt:alpha=8+step:bytes=20000 ndt-16x1g flows=300 active_ports=4 incast_degree=8 ecn=true",
            "f7f08cd63c758794",
        ),
        (
            "dt+early:from=front leafspine-4x4 measure_ms=3 queues_per_port=3 flow_priority=random_per_flow ecmp=spray",
            "6f0b9b251550a3a4",
        ),
    ];
    covers(
        &runs,
        aqm::catalogue()
            .iter()
            .map(|discipline| discipline.info.name),
    );
    check(&runs);
}

/// Runs of small networks with each transport, path selection, scheduler and mark.
#[test]
fn networks_do_what_they_did() {
    let runs = [
        (
            "dt leafspine-4x4 measure_ms=3 transport=newreno",
            "4052f3076a6decdf",
        ),
        (
            "dt leafspine-4x4 measure_ms=3 transport=cubic",
            "67469bfd411206ca",
        ),
        (
            "dt leafspine-4x4 measure_ms=3 transport=cubic-ns3 recovery=ns3",
            "63b362b41d5ff8f4",
        ),
        (
            "dt leafspine-4x4 measure_ms=3 transport=dctcp",
            "37234fb792e5cd59",
        ),
        (
            "dt leafspine-4x4 measure_ms=3 transport=linux",
            "c43d790ec5650693",
        ),
        (
            "dt leafspine-4x4 measure_ms=3 transport=linux-dctcp",
            "46ef2b287ad1124f",
        ),
        (
            "dt leafspine-4x4 measure_ms=3 transport=powertcp",
            "f42b6f4c0330227e",
        ),
        (
            "dt leafspine-4x4 measure_ms=3 transport=theta-powertcp",
            "bcee5571db5eba11",
        ),
        (
            "dt leafspine-4x4 measure_ms=3 transport=timely",
            "5fdbd74d1f21ad41",
        ),
        (
            "dt leafspine-4x4 measure_ms=3 transport=hpcc",
            "a52a09e96ae6af00",
        ),
        (
            "reverie reverie-4x4 measure_ms=3 query_rate=300 incast_transport=dcqcn",
            "a8eb65098fba0332",
        ),
        (
            "sonic reverie-4x4 measure_ms=3 query_rate=300 transport=dcqcn lossless_priorities=1,3",
            "b6ef6455495354e9",
        ),
        (
            "reverie reverie-4x4 measure_ms=3 query_rate=300 incast_transport=dcqcn:preset=reverie",
            "27dff1e8488d9bf6",
        ),
        (
            "sonic reverie-4x4 measure_ms=3 query_rate=300 transport=dcqcn:preset=reverie lossless_priorities=1,3",
            "e6e562bd7178f81b",
        ),
        (
            "reverie reverie-4x4 measure_ms=3 query_rate=300 incast_transport=powertcp-rdma",
            "8d6df83a116e9c16",
        ),
        (
            "sonic reverie-4x4 measure_ms=3 query_rate=300 transport=powertcp-rdma lossless_priorities=1,3",
            "5937f986a0096433",
        ),
        (
            "abm leafspine-4x4 measure_ms=3 links_per_pair=2",
            "d67db7ab098791ff",
        ),
        (
            "dt leafspine-4x4 measure_ms=3 links_per_pair=2 ecmp_salt=none",
            "cabee771b04a0dbb",
        ),
        (
            "dt leafspine-4x4 measure_ms=3 links_per_pair=2 ecmp=dst_mod",
            "1a8ca1f7a29f5ce2",
        ),
        (
            "dt leafspine-4x4 measure_ms=3 links_per_pair=2 ecmp=flow_mod",
            "998b201eb8beae6a",
        ),
        (
            "dt leafspine-4x4 measure_ms=3 links_per_pair=2 ecmp=spray",
            "2409c6b77e0d68d1",
        ),
        (
            "dt leafspine-4x4 measure_ms=3 links_per_pair=2 spine_pool=with_leaf",
            "883e034f88e9a07a",
        ),
        (
            "abm:estimate=artefact abm-artefact measure_ms=1",
            "80c039c14173d72f",
        ),
        ("abm abm-artefact-mixed measure_ms=1", "7048783760c106b4"),
        ("lqd credence-train measure_ms=1", "4bf8b8197e8c2800"),
        ("abm abm-leafspine measure_ms=1", "90e53f4bcbedd55d"),
        ("lqd credence-leafspine measure_ms=1", "c42fdc049ad81c02"),
        ("reverie reverie-leafspine measure_ms=1", "10713c13f3bb3ab3"),
        ("dt ndt-16x1g flows=200", "6c723b280656f2ab"),
        ("dt linux-16x1g flows=200", "467447d0bae8cac2"),
        ("dt linux-16x25g flows=200", "a69ed5cecaaf3150"),
        ("dt dctcp-16x10g flows=200", "76b8732619b275c1"),
        ("dt ndt-testbed-4x1g", "86867ab902d3fbb2"),
        ("dt ndt-4to2-incast flows=100", "1cda2caccdddd188"),
        ("dt ndt-96x10g-incast flows=500", "ce61683f1abb64b0"),
        ("dt ns3-16x1g flows=200", "7ce7791ef9a1060b"),
        ("dt testbed-4x100m", "c185570c895505c6"),
        (
            "dt leafspine-4x4 measure_ms=3 queues_per_port=3 flow_priority=random_per_flow scheduler=drr queue_weights=1,2,0.5",
            "02067382af250e4a",
        ),
        (
            "edt leafspine-4x4 measure_ms=3 queues_per_port=3 flow_priority=random_per_flow scheduler=strict queue_alpha=1,2,4",
            "1c051a9c40b299c1",
        ),
        (
            "dt leafspine-4x4 measure_ms=3 marking=red ecn_k_packets=0 ecn_red_kmin_bytes=10000 ecn_red_kmax_bytes=50000 ecn_red_pmax=0.5",
            "e670d7f4f113cf2a",
        ),
    ];
    covers(&runs, TransportKind::ALL.iter().map(|kind| kind.name()));
    covers(&runs, PRESETS.iter().map(|preset| preset.name));
    check(&runs);
}
