//! Whole explanations of untrained weights on small traces.

use std::fs;

use bufgym_eval::Entrant;
use bufgym_eval::data::Timing;
use bufgym_eval::explain::{
    ExplainConfig, ExplainError, Explanation, Factor, Inference, explain, findings, write_into,
};
use bufgym_models::{ActorWeights, FastActor};
use bufgym_sim::scenario::{RangeU32, Scenario};
use bufgym_util::rng;

fn config(traces: u64) -> ExplainConfig {
    let actor = FastActor::new(&ActorWeights::random(&mut rng::stream(1, "test actor", 0)));
    ExplainConfig {
        scenario: Scenario::default().with(|scenario| {
            scenario.name = "small".to_owned();
            scenario.network.ports = 6;
            scenario.network.buffer_bytes = 150_000;
            scenario.traffic.flows = RangeU32::new(30, 50);
            scenario.traffic.active_ports = RangeU32::new(2, 3);
            scenario.traffic.incast_degree = RangeU32::new(3, 5);
        }),
        entrant: Entrant::learned("ndt:untrained", actor, "random weights"),
        traces,
        seed: 3,
    }
}

fn run(config: &ExplainConfig) -> Explanation {
    explain(config, &|_| {}).unwrap()
}

/// Returns the part of an explanation that does not depend on the machine.
fn reproducible(mut explanation: Explanation) -> Explanation {
    explanation.timing = Timing {
        wall_s: 0.0,
        threads: 0,
    };
    explanation.inference = Inference {
        ports: 0,
        passes: 0,
        mean_us: 0.0,
        median_us: 0.0,
        p99_us: 0.0,
        shorter_intervals: Vec::new(),
    };
    explanation
}

#[test]
fn the_same_for_any_number_of_threads_and_another_for_another_seed() {
    let on = |threads: usize, config: &ExplainConfig| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        reproducible(pool.unwrap().install(|| run(config)))
    };
    let one = on(1, &config(2));
    assert_eq!(one, on(3, &config(2)));
    let other = ExplainConfig {
        seed: 4,
        ..config(2)
    };
    assert_ne!(one.alphas, on(2, &other).alphas);
}

#[test]
fn everything_is_measured_and_written() {
    let explanation = run(&config(3));
    assert_eq!(explanation.split, "validation");
    let factors: Vec<Factor> = explanation.dependences.iter().map(|d| d.factor).collect();
    assert_eq!(factors, Factor::ALL);
    for dependence in &explanation.dependences {
        for curve in &dependence.curves {
            assert_eq!(curve.mean_log2_alpha.len(), dependence.grid.len());
            let within = |v: &f64| (-2.0..=5.0).contains(v);
            assert!(curve.mean_log2_alpha.iter().all(within));
        }
    }
    let counted: u64 = [explanation.alphas.idle, explanation.alphas.busy]
        .iter()
        .flatten()
        .sum();
    assert_eq!(counted, 6 * explanation.decisions);
    let names: Vec<&str> = explanation
        .drops
        .iter()
        .map(|d| d.entry.policy.as_str())
        .collect();
    assert_eq!(names, ["ndt:untrained", "cs", "st", "dt", "edt"]);
    let medians = explanation.intervals.iter().filter_map(|i| i.median_us());
    assert!(
        medians.is_sorted_by(|a, b| a > b),
        "faster ports ask more often"
    );
    assert!(explanation.inference.median_us > 0.0);
    let timeline = explanation.timeline.as_ref().unwrap();
    assert_eq!(timeline.series.len(), 6, "three policies at two ports");

    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join("out");
    fs::create_dir(&folder).unwrap();
    write_into(&explanation, &folder).unwrap();
    let json = fs::read(folder.join("explain.json")).unwrap();
    let read: Explanation = serde_json::from_slice(&json).unwrap();
    assert_eq!(read.decisions, explanation.decisions);
    let page = fs::read_to_string(folder.join("explain.html")).unwrap();
    for finding in findings(&explanation) {
        assert!(page.contains(&finding.replace('&', "&amp;")), "{finding}");
    }
    let drawings = fs::read_dir(&folder).unwrap().filter(|entry| {
        let name = entry.as_ref().unwrap().file_name();
        name.to_string_lossy().ends_with(".svg")
    });
    assert_eq!(drawings.count(), page.matches("<svg").count());
    assert_eq!(page.matches("<svg").count(), 5 + 1 + 2 + 2 + 1);
    for outside in ["http://", "https://", "src=", "href=", "<script", "<link"] {
        assert!(!page.contains(outside), "{outside}");
    }
}

#[test]
fn a_rule_and_a_policy_without_decisions_have_nothing_to_explain() {
    let rule = ExplainConfig {
        entrant: "dt:alpha=8".parse().unwrap(),
        ..config(1)
    };
    let refused = explain(&rule, &|_| {}).unwrap_err();
    assert!(matches!(&refused, ExplainError::NotLearned(name) if name == "dt:alpha=8"));
    let mut quiet = config(1);
    quiet.scenario.network.buffer_bytes = 1_000_000_000;
    let refused = explain(&quiet, &|_| {}).unwrap_err();
    assert!(matches!(refused, ExplainError::NoDecisions(1)), "{refused}");
}
