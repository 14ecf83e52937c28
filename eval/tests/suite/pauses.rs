//! Tests of reports and explanations if some packets are lossless.

use std::fs;

use bufgym_eval::data::Timing;
use bufgym_eval::explain::pauses::{self, PausesConfig, PausesExplained};
use bufgym_eval::{Entrant, EvalConfig, evaluate, output, table};
use bufgym_sim::scenario::Scenario;

fn entrants(policies: &[&str]) -> Vec<Entrant> {
    let parsed = policies.iter().map(|policy| policy.parse().unwrap());
    parsed.collect()
}

fn network() -> Scenario {
    let mut scenario = Scenario::preset("reverie-4x4").unwrap();
    scenario.set("measure_ms=4").unwrap();
    scenario
}

/// Returns a scenario of four hosts on one switch, with all traffic in a lossless priority.
fn one_switch() -> Scenario {
    let mut scenario = Scenario::default();
    for change in [
        "ports=4",
        "rate_bps=25e9",
        "propagation_ns=2000",
        "buffer_bytes=200000",
        "queues_per_port=4",
        "flow_priority=fixed",
        "background_priority=1",
        "incast_priority=3",
        "lossless_priorities=3",
        "incast_transport=dcqcn:preset=reverie",
        "arrivals=synchronised",
        "incast_degree=3",
        "active_ports=1..4",
        "flows=60",
        "min_rto_us=1000",
    ] {
        scenario.set(change).unwrap();
    }
    scenario
}

fn explained(scenario: Scenario, policies: &[&str]) -> PausesExplained {
    let config = PausesConfig {
        scenario,
        entrants: entrants(policies),
        traces: 2,
        seed: 3,
    };
    let mut explained = pauses::explain(&config, &|_| {}).unwrap();
    explained.timing = Timing {
        wall_s: 0.0,
        threads: 0,
    };
    explained
}

#[test]
fn reports_of_lossless_scenarios_count_pauses() {
    let policies = entrants(&["sonic-abm", "reverie:gamma=0.99"]);
    let config = EvalConfig {
        traces: 2,
        resamples: 100,
        ..EvalConfig::new(network(), policies, 3)
    };
    let evaluation = evaluate(&config, &|_| {}).unwrap();
    assert!(evaluation.has_lossless());
    for policy in &evaluation.policies {
        let name = &policy.entry.policy;
        let lossless = policy.lossless;
        assert_eq!(lossless.drops_lossless, Some(0.0), "{name}");
        assert_eq!(lossless.pauses > Some(0.0), name != "unlimited", "{name}");
        assert_eq!(
            lossless.paused_ms > Some(0.0),
            name != "unlimited",
            "{name}"
        );
    }
    let dt = evaluation.policy("dt").unwrap().lossless_ratios;
    assert_eq!(dt.pauses_ratio_to_dt.unwrap().centre, 1.0);
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("report");
    output::write(&evaluation, &folder, false).unwrap();
    let read = |name: &str| fs::read_to_string(folder.join(name)).unwrap();
    assert!(read("report.html").contains("Pauses and lossless packets"));
    let json: serde_json::Value = serde_json::from_str(&read("report.json")).unwrap();
    assert!(json["policies"][0]["pauses"].as_f64().unwrap() > 0.0);
    let csv = read("per_trace.csv");
    let widths = csv.lines().map(|line| line.split(',').count());
    assert!(widths.into_iter().all(|width| width == 31 + 5), "{csv}");
    assert!(table::render_evaluation(&evaluation).contains("lossless drops"));
}

#[test]
fn pauses_of_a_network_are_explained() {
    let policies = ["dt", "sonic-abm", "reverie"];
    let found = explained(network(), &policies);
    let excerpt = found.excerpt.as_ref().unwrap();
    assert!(!excerpt.queues.is_empty());
    assert!(excerpt.queues.iter().all(|queue| queue.priority == 3));
    let end = excerpt.start_ms + excerpt.length_ms;
    for policy in &excerpt.policies {
        assert_eq!(policy.pauses.len(), excerpt.queues.len());
        let all = policy.pauses.iter().flatten();
        for [from, to] in all {
            assert!(excerpt.start_ms <= *from && from < to && *to <= end + 1e-9);
        }
        // A queue that uses headroom pauses its neighbour.
        for (place, series) in policy.lengths.iter().enumerate() {
            let on_headroom = series.headroom_bytes.iter().enumerate();
            for (step, _) in on_headroom.filter(|(_, bytes)| **bytes > 0) {
                let t =
                    excerpt.start_ms + excerpt.length_ms * step as f64 / series.bytes.len() as f64;
                let pauses = |[from, to]: &[f64; 2]| (*from - 1e-6..=*to + 1e-6).contains(&t);
                assert!(
                    policy.pauses[place].iter().any(pauses),
                    "{} {t}",
                    policy.policy
                );
            }
        }
    }
    assert!(excerpt.policies[1].pauses.iter().flatten().count() > 0);
    let reverie = &excerpt.policies[2].lengths[0];
    assert_ne!(
        reverie.compared_bytes,
        reverie
            .bytes
            .iter()
            .map(|b| *b as f64)
            .collect::<Vec<f64>>(),
        "Reverie filters"
    );

    let parent = tempfile::tempdir().unwrap();
    pauses::write_into(&found, parent.path()).unwrap();
    let read = |name: &str| fs::read_to_string(parent.path().join(name)).unwrap();
    let json: PausesExplained = serde_json::from_str(&read("explain.json")).unwrap();
    assert_eq!(json.excerpt, found.excerpt);
    let page = read("explain.html");
    for queue in &excerpt.queues {
        assert!(read("pauses.svg").contains(&queue.name()));
    }
    assert_eq!(page.matches("<svg").count(), 1 + 2);
    assert_eq!(pauses::findings(&found).len(), policies.len());
}

#[test]
fn one_switch_and_a_buffer_that_never_fills_are_explained_too() {
    let found = explained(one_switch(), &["dt", "unlimited"]);
    let excerpt = found.excerpt.as_ref().expect("dt pauses");
    assert!(excerpt.queues[0].name().starts_with("switch 0, port "));
    assert!(excerpt.queues[0].neighbour.starts_with("host "));
    assert_eq!(excerpt.policies[1].pauses.iter().flatten().count(), 0);
    assert!(pauses::findings(&found)[1].contains("pauses nobody"));
    let none = explained(one_switch(), &["unlimited"]);
    assert_eq!(none.excerpt, None);
    let parent = tempfile::tempdir().unwrap();
    pauses::write_into(&none, parent.path()).unwrap();
    let page = fs::read_to_string(parent.path().join("explain.html")).unwrap();
    assert!(page.contains("No switch has paused anybody"));
}
