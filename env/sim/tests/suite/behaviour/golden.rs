//! Hashes of traces and results. The same seed means the same result bit for bit, on every machine,
//! whatever the number of threads, from one version to the next.
//!
//! It is right to change a value here where a change of behaviour was intended: a rule of the
//! simulator, a transport or a generator was corrected or completed, and the commit says which. A
//! change that was to alter nothing (speed, structure, a dependency) and alters one of these is
//! wrong. Trace hashes should never change: results that were published name their traces by seed.
//! A new transport, policy, workload or arrival mode adds a line.

use bufgym_sim::rng::{Split, trace_seed};
use bufgym_sim::scenario::{Arrivals, Scenario, Workload};
use bufgym_sim::switch::PolicySpec;
use bufgym_sim::traffic::{Trace, generate};
use sha2::{Digest as _, Sha256};

/// The first eight bytes of SHA-256, as hexadecimal digits.
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

/// So many flows into a small buffer that a few per cent of the packets are lost.
const CROWDED: &str = "workload=fb_hadoop flows=300 active_ports=4 incast_degree=8 load=0.9 \
                       buffer_bytes=100000 min_rto_us=10000";

/// Finish times of all flows, picoseconds.
fn results(policy: &str, settings: &str) -> String {
    let scenario = scenario(&format!("{CROWDED} {settings}"));
    let policy: PolicySpec = policy.parse().expect("a policy of the catalogue");
    let outcome = policy
        .simulator(&scenario, &trace(&scenario))
        .expect("a valid simulation")
        .run();
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
