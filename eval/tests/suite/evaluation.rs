//! Whole evaluations on small traces: pairing, determinism, failures, files.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use bufgym_eval::data::{Evaluation, Role, Timing};
use bufgym_eval::evaluate::{self, EvalConfig, EvalError, Progress, evaluate};
use bufgym_eval::{Entrant, findings, output, table};
use bufgym_models::checkpoint::{Manifest, save_actor};
use bufgym_models::{ActorWeights, FastActor};
use bufgym_sim::scenario::{RangeU32, Scenario};
use bufgym_util::rng::{self, Split};

/// Returns a scenario whose traffic fits a test and still drops: many senders to few ports, a small buffer.
fn scenario() -> Scenario {
    Scenario::default().with(|scenario| {
        scenario.name = "small".to_string();
        scenario.network.ports = 8;
        scenario.network.buffer_bytes = 200_000;
        scenario.traffic.flows = RangeU32::new(30, 60);
        scenario.traffic.active_ports = RangeU32::new(2, 4);
        scenario.traffic.incast_degree = RangeU32::new(3, 7);
    })
}

fn entrants() -> Vec<Entrant> {
    let actor = FastActor::new(&ActorWeights::random(&mut rng::stream(1, "test actor", 0)));
    let mut entrants = vec![Entrant::learned("ndt:untrained", actor, "random weights")];
    entrants.extend(["edt", "st", "cs", "dt:alpha=8"].map(|text| text.parse().unwrap()));
    entrants
}

fn config(traces: u64) -> EvalConfig {
    EvalConfig {
        traces,
        resamples: 200,
        ..EvalConfig::new(scenario(), entrants(), 3)
    }
}

fn run(config: &EvalConfig) -> Evaluation {
    evaluate(config, &|_| {}).unwrap()
}

#[test]
fn no_simulation_begins_after_it_was_stopped() {
    let config = config(6);
    let (stop, done) = (AtomicBool::new(false), Mutex::new(0));
    let stopped = evaluate::evaluate_until(
        &config,
        &|progress: Progress<'_>| {
            assert_eq!(progress.total, 42);
            *done.lock().unwrap() += 1;
            stop.store(true, Ordering::SeqCst);
        },
        &stop,
    );
    let error = stopped.unwrap_err();
    assert!(matches!(error, EvalError::Stopped));
    assert_eq!(error.to_string(), "the evaluation was stopped");
    // Each thread finishes the simulation that it had begun.
    let threads = rayon::current_num_threads();
    assert!((1..=threads).contains(&done.into_inner().unwrap()));
}

#[test]
fn every_policy_sees_the_same_unseen_traces() {
    let evaluation = run(&config(4));
    let seen = |policy: &str| -> Vec<(u64, u64, u64)> {
        evaluation
            .results_of(policy)
            .map(|r| (r.trace, r.seed, r.flows))
            .collect()
    };
    let baseline = seen("dt");
    assert_eq!(baseline.len(), 4);
    for policy in &evaluation.policies {
        assert_eq!(
            seen(&policy.entry.policy),
            baseline,
            "{}",
            policy.entry.policy
        );
    }
    assert!(
        baseline
            .iter()
            .all(|(_, seed, _)| rng::split_of(*seed) == Some(Split::Test))
    );
    let seeds: BTreeSet<u64> = baseline.iter().map(|(_, seed, _)| *seed).collect();
    assert_eq!(seeds.len(), 4);
}

#[test]
fn baseline_and_reference_are_always_there() {
    let evaluation = run(&config(3));
    let roles: Vec<Role> = evaluation.policies.iter().map(|p| p.entry.role).collect();
    assert_eq!(roles[0], Role::Learned);
    assert_eq!(roles[roles.len() - 2..], [Role::Baseline, Role::Reference]);
    let dt = evaluation.policy("dt").unwrap();
    assert_eq!(dt.ratio_to_dt.unwrap().centre, 1.0);
    assert_eq!((dt.tally.won, dt.tally.lost), (0, 0));
    assert!(dt.drops > 0, "the traffic must fill the buffer");
    assert_eq!(evaluation.policy("unlimited").unwrap().drops, 0);
    let learned = evaluation.policy("ndt:untrained").unwrap();
    assert!(learned.decisions > 0);
    assert_eq!(evaluation.trigger_intervals.len(), 1);
    assert!(evaluation.trigger_intervals[0].count > 0);
    assert_eq!(
        evaluation.versus.len(),
        5,
        "against cs, dt, dt:alpha=8, edt, st"
    );
}

#[test]
fn a_policy_given_twice_runs_once() {
    let twice = ["dt", "cs", "dt:alpha=1", "cs"]
        .map(|text| text.parse().unwrap())
        .to_vec();
    let config = EvalConfig {
        traces: 1,
        ..EvalConfig::new(scenario(), twice, 1)
    };
    let names: Vec<String> = run(&config)
        .policies
        .into_iter()
        .map(|p| p.entry.policy)
        .collect();
    assert_eq!(names, ["cs", "dt", "unlimited"]);
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let with_threads = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        let mut evaluation = pool.install(|| run(&config(4)));
        evaluation.timing = Timing {
            wall_s: 0.0,
            threads: 0,
        };
        serde_json::to_string(&evaluation).unwrap()
    };
    let one = with_threads(1);
    assert!(one == with_threads(2), "2 threads");
    assert!(one == with_threads(5), "5 threads");
}

#[test]
fn progress_counts_every_simulation_once() {
    let seen = Mutex::new(Vec::new());
    evaluate(&config(2), &|p: Progress<'_>| {
        seen.lock().unwrap().push((p.done, p.total))
    })
    .unwrap();
    let mut seen = seen.into_inner().unwrap();
    seen.sort_unstable();
    let expected: Vec<(usize, usize)> = (1..=14).map(|done| (done, 14)).collect();
    assert_eq!(seen, expected);
}

#[test]
fn flows_that_do_not_finish_fail_their_trace_visibly() {
    let mut config = config(2);
    config.scenario.control.max_simulated_ms = 1;
    let evaluation = run(&config);
    assert_eq!(evaluation.failures().count(), evaluation.results.len());
    assert!(
        evaluation
            .policies
            .iter()
            .all(|p| p.failed == 2 && p.ratio_to_dt.is_none())
    );
    assert!(table::render_evaluation(&evaluation).contains("FAILED: cs on trace 0"));
    let first = findings::findings(&evaluation).remove(0);
    assert_eq!(first.tone, findings::Tone::Warning);
}

#[test]
fn traces_of_another_split_are_refused() {
    let config = config(2);
    let seen = evaluate::split_traces(&config.scenario, Split::Train, 3, 2).unwrap();
    let refused = evaluate::evaluate_traces(&config, Split::Test, &seen, &|_| {}).unwrap_err();
    assert!(
        matches!(
            refused,
            EvalError::WrongSplit {
                split: Split::Test,
                ..
            }
        ),
        "{refused}"
    );
    let validation = evaluate::split_traces(&config.scenario, Split::Validation, 3, 1).unwrap();
    let evaluation =
        evaluate::evaluate_traces(&config, Split::Validation, &validation, &|_| {}).unwrap();
    assert_eq!(evaluation.split, "validation");
}

#[test]
fn no_trace_is_no_evaluation() {
    assert!(matches!(
        evaluate(&config(0), &|_| {}),
        Err(EvalError::NoTraces)
    ));
}

#[test]
fn a_report_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("report");
    let evaluation = run(&config(3));
    assert!(evaluation.timeline.is_some());
    output::write(&evaluation, &out, false).unwrap();
    let page = std::fs::read_to_string(out.join("report.html")).unwrap();
    for part in [
        "untrained",
        "newreno",
        "200 ms",
        "random weights",
        "timeline-port-",
    ] {
        assert!(page.contains(part), "{part}");
    }
    let rows = std::fs::read_to_string(out.join("per_trace.csv"))
        .unwrap()
        .lines()
        .count();
    assert_eq!(rows, 1 + 3 * evaluation.policies.len());
}

#[test]
fn a_checkpoint_folder_is_a_policy() {
    let folder = tempfile::tempdir().unwrap();
    let checkpoint = folder.path().join("mine");
    let weights = ActorWeights::random(&mut rng::stream(1, "test actor", 0));
    let mut manifest = Manifest::new("small", "", "fct", 7);
    manifest.decisions = 120_000;
    save_actor(&checkpoint, &weights, &manifest).unwrap();
    let loaded: Entrant = format!("ndt:{}/", checkpoint.display()).parse().unwrap();
    assert_eq!(loaded.name(), format!("ndt:{}", checkpoint.display()));
    assert_eq!(loaded.role(), Role::Learned);
    let expected = "trained on small for fct, seed 7, 120,000 decisions, 0 updates";
    assert_eq!(loaded.entry().origin, expected);
    let config = EvalConfig {
        traces: 1,
        ..EvalConfig::new(scenario(), vec![loaded, entrants().remove(0)], 3)
    };
    let evaluation = run(&config);
    let means: Vec<_> = evaluation
        .learned()
        .map(|p| p.all_flows.mean_fct_ms)
        .collect();
    assert_eq!(
        means[0], means[1],
        "the same weights make the same decisions"
    );
}
