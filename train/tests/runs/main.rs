//! Whole trainings on a small switch: reproducible, resumable, and with clear errors.

mod cluster;
mod simulations;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use bufgym_eval::Entrant;
use bufgym_models::DeviceChoice;
use bufgym_models::checkpoint::load_actor;
use bufgym_models::files::sha256;
use bufgym_models::linear::LinearFile;
use bufgym_sim::scenario::Scenario;
use bufgym_train::{
    Algorithm, Backend, Budget, Controls, Expected, ResumeOptions, Start, StartConfig, Status,
    TrainConfig, TrainError, TrainSummary, resume, train,
};
use serde_json::Value;

const ROUND: u64 = 5 * 8;

/// Four ports and short traces.
fn small_scenario() -> Scenario {
    let mut scenario = Scenario::default();
    let settings = [
        "ports=4",
        "buffer_bytes=100000",
        "active_ports=2..4",
        "incast_degree=1..3",
        "flows=20..40",
    ];
    scenario.set_all(settings).unwrap();
    scenario
}

fn steps(steps: u64) -> Budget {
    Budget {
        steps: Some(steps),
        minutes: None,
    }
}

/// Five workers: episodes end and validations happen within seconds.
fn small(out: &Path, rounds: u64) -> TrainConfig {
    let mut config = TrainConfig {
        out: out.to_owned(),
        seed: 3,
        scenario: small_scenario(),
        low_level: "fab+front".parse().unwrap(),
        budget: steps(rounds * ROUND),
        ..TrainConfig::default()
    };
    config.rollout.workers = 5;
    config.rollout.decisions_per_round = 8;
    config.rollout.learning_starts = 2 * ROUND;
    config.learner.updates_per_round = 2;
    config.start.from = Start::Rule;
    config.start.generations = Some(0);
    config.learner.replay_capacity = 400;
    config.sac.batch_size = 8;
    config.ports.critic_width = 16;
    config.sac.actor_starts = Some(2);
    config.validation.every_decisions = 4 * ROUND;
    config.validation.traces = 2;
    config.validation.final_traces = 0;
    config
}

const TUNED_DT: &str = "dt:alpha=90.4";

fn on_this_machine(stop: &AtomicBool) -> Controls<'_> {
    Controls {
        stop,
        reporter: &(),
        device: DeviceChoice::Cpu,
        backend: Backend::default(),
        tuned_dt: |_| Some(Entrant::tuned(TUNED_DT.parse().expect("a policy"))),
    }
}

fn run(config: TrainConfig) -> TrainSummary {
    try_run(config).unwrap()
}

fn try_run(config: TrainConfig) -> Result<TrainSummary, TrainError> {
    let stop = AtomicBool::new(false);
    train(config, &on_this_machine(&stop))
}

fn try_resume(dir: &Path, options: &ResumeOptions) -> Result<TrainSummary, TrainError> {
    let stop = AtomicBool::new(false);
    resume(dir, options, &on_this_machine(&stop))
}

fn to_rounds(rounds: u64) -> ResumeOptions {
    ResumeOptions {
        budget: Some(steps(rounds * ROUND)),
        ..ResumeOptions::default()
    }
}

fn metrics(out: &Path) -> String {
    fs::read_to_string(out.join("metrics.csv")).unwrap()
}

/// A column of `metrics.csv`.
fn column(out: &Path, name: &str) -> Vec<String> {
    let table = metrics(out);
    let mut rows = table.lines().map(|row| row.split(','));
    let place = rows.next().unwrap().position(|column| column == name);
    let cell = |mut row: std::str::Split<'_, char>| row.nth(place.unwrap()).unwrap().to_owned();
    rows.map(cell).collect()
}

/// A number of the last row of `metrics.csv`.
fn last_of(out: &Path, name: &str) -> u64 {
    column(out, name).pop().unwrap().parse().unwrap()
}

/// The learner's networks in the newest stored state.
fn weights(out: &Path, rounds: u64) -> Vec<u8> {
    let step = out.join(format!("checkpoints/step-{}", rounds * ROUND));
    let learner = ["sac", "ppo"].map(|name| step.join(name));
    let learner = learner.iter().find(|folder| folder.is_dir()).unwrap();
    fs::read(learner.join("networks.safetensors")).unwrap()
}

fn assert_same_run(a: &Path, b: &Path, rounds: u64) {
    assert_eq!(metrics(a), metrics(b));
    assert_eq!(weights(a, rounds), weights(b, rounds));
    let best = |out: &Path| load_actor(&out.join("checkpoints/best")).unwrap();
    assert_eq!(best(a), best(b));
}

/// Forks are made at the same decisions and teach the same, whatever the threads and after a resume. Their decisions
/// count.
#[test]
fn a_training_with_forks_is_the_same_for_any_threads_and_after_a_resume() {
    let root = tempfile::tempdir().unwrap();
    let config = |name: &str, steps: u64, threads| {
        let mut config = small(&root.path().join(name), steps / ROUND);
        config.rollout.threads = threads;
        config.forks.rate = 0.25;
        config.forks.kept = 100;
        config
    };
    let whole = run(config("one", 3_000, 1));
    assert!(whole.decisions >= 3_000 && whole.decisions < 6_000);
    assert!(whole.decisions > 2 * whole.rounds * ROUND, "forks count");
    run(config("three", 1_500, 3));
    let three = root.path().join("three");
    let resumed = try_resume(&three, &to_rounds(3_000 / ROUND)).unwrap();
    let numbers = |summary: &TrainSummary| (summary.rounds, summary.decisions, summary.simulations);
    assert_eq!(numbers(&whole), numbers(&resumed));
    assert_eq!(metrics(&root.path().join("one")), metrics(&three));
    let best = |name: &str| load_actor(&root.path().join(name).join("checkpoints/best")).unwrap();
    assert_eq!(best("one"), best("three"));
    let mut without = config("without", 600, 1);
    without.forks.rate = 0.0;
    run(without);
    let last = |name: &str, column: &str| last_of(&root.path().join(name), column);
    assert_eq!(last("without", "forked"), 0);
    assert_ne!(last("one", "forked"), 0);
    assert_eq!(last("one", "simulations"), whole.simulations);
}

#[test]
fn any_number_of_threads_gives_the_same_run() {
    let root = tempfile::tempdir().unwrap();
    let runs: Vec<PathBuf> = [1, 2, 5]
        .into_iter()
        .map(|threads| {
            let out = root.path().join(threads.to_string());
            let mut config = small(&out, 12);
            config.rollout.threads = threads;
            let summary = run(config);
            assert_eq!(summary.status, Status::Finished);
            assert_eq!((summary.rounds, summary.decisions), (12, 12 * ROUND));
            assert_eq!(summary.updates, 2 * 10);
            assert!(summary.episodes > 5 && summary.best.is_some());
            out
        })
        .collect();
    assert_same_run(&runs[0], &runs[1], 12);
    assert_same_run(&runs[0], &runs[2], 12);
    // One row per round, one for the last validation, and a header.
    assert_eq!(metrics(&runs[0]).lines().count(), 12 + 2);
}

#[test]
fn a_run_folder_has_its_files() {
    let root = tempfile::tempdir().unwrap();
    let out = root.path().join("run");
    let mut config = small(&out, 6);
    config.validation.final_traces = 2;
    let summary = run(config.clone());
    for file in [
        "config.toml",
        "metrics.csv",
        "perf.csv",
        "train.log",
        "checkpoints/step-240/state.json",
        "checkpoints/step-240/replay.bin",
        "checkpoints/best/actor.safetensors",
        "checkpoints/best/manifest.json",
    ] {
        assert!(out.join(file).is_file(), "{file}");
    }
    let names = fs::read_dir(&out).unwrap().map(|e| e.unwrap().file_name());
    let events = names.filter(|n| n.to_string_lossy().contains("tfevents"));
    assert_eq!(events.count(), 1);
    assert!(
        fs::read_to_string(out.join("train.log"))
            .unwrap()
            .contains("validation")
    );

    let mut read = TrainConfig::load(&out.join("config.toml")).unwrap();
    read.out = config.out.clone();
    // Defaults that depend on other settings are written out.
    assert!(read.start.share.is_some() && read.start.step.is_some() && read.start.traces.is_some());
    assert!(read.sac.initial_temperature.is_some() && read.sac.gaussian_entropy == Some(false));
    (read.start, read.sac) = (config.start.clone(), config.sac.clone());
    assert_eq!(read, config);
    assert!(summary.eval_command.contains(" --policy dt:tuned"));
    let evaluation = summary.evaluation.unwrap();
    let policies: Vec<&str> = evaluation
        .policies
        .iter()
        .map(|p| p.entry.policy.as_str())
        .collect();
    for rule in ["dt", "edt", "st", "cs", "unlimited", TUNED_DT] {
        assert!(policies.contains(&rule), "{policies:?}");
    }
    assert!(policies[0].starts_with("ndt:"));
}

#[test]
fn a_resumed_run_equals_an_uninterrupted_one() {
    let root = tempfile::tempdir().unwrap();
    let (whole, parts) = (root.path().join("whole"), root.path().join("parts"));
    run(small(&whole, 13));
    run(small(&parts, 3));
    try_resume(&parts, &to_rounds(7)).unwrap();
    // The remains of a kill in the middle of a row and of a checkpoint.
    let mut text = metrics(&parts);
    text.push_str("99,1234,to");
    fs::write(parts.join("metrics.csv"), text).unwrap();
    let half = parts.join("checkpoints/.step-320.new");
    fs::create_dir_all(half.join("sac")).unwrap();
    fs::write(half.join("state.json"), "{").unwrap();
    let summary = try_resume(&parts, &to_rounds(13)).unwrap();
    assert_eq!(summary.rounds, 13);
    assert!(!half.exists());
    assert_same_run(&whole, &parts, 13);
    // Decisions that set early drop have a second output, in the network, the replay and the critics.
    let (weights, manifest) = load_actor(&whole.join("checkpoints/best")).unwrap();
    assert_eq!(weights.outputs(), 2);
    assert_eq!(manifest.low_level, small(&whole, 0).low_level);
}

/// Returns settings that begin with a search for a rule, of four generations of two rules.
fn small_with_start(out: &Path, rounds: u64) -> TrainConfig {
    let mut config = small(out, rounds);
    config.start = StartConfig {
        from: Start::Rule,
        generations: Some(4),
        share: Some(1.0),
        candidates: 2,
        traces: Some(1),
        choosing_traces: 1,
        lessons: 2,
        lesson_traces: 1,
        lesson_steps: 20,
        ..StartConfig::default()
    };
    config
}

#[test]
fn a_start_is_the_same_for_any_number_of_threads_and_counted() {
    let root = tempfile::tempdir().unwrap();
    let runs: Vec<PathBuf> = [1, 3]
        .into_iter()
        .map(|threads| {
            let out = root.path().join(threads.to_string());
            let mut config = small_with_start(&out, 40);
            config.rollout.threads = threads;
            let planned = config.simulations().unwrap();
            let generations = run_counting(config.clone());
            assert_eq!(generations.0, 4);
            // Four rules to begin from and DT; four generations of two rules and DT; the mean after the fourth and its
            // average; two imitation rounds.
            let start = 5 + 4 * 3 + 2 + 2;
            config.start.generations = Some(0);
            let without = config.simulations().unwrap();
            assert_eq!(planned - without, start);
            assert!(generations.1.simulations > without);
            let rule = LinearFile::load(&out.join("rule.json")).unwrap();
            assert_eq!(rule.low_level, config.low_level);
            assert!(rule.generations <= 4);
            out
        })
        .collect();
    assert_same_run(&runs[0], &runs[1], 40);
    let rule = |out: &Path| fs::read(out.join("rule.json")).unwrap();
    assert_eq!(rule(&runs[0]), rule(&runs[1]));
}

/// Returns the generations of the settled configuration, and the summary.
fn run_counting(config: TrainConfig) -> (u64, TrainSummary) {
    let out = config.out.clone();
    let summary = run(config);
    let stored = TrainConfig::load(&out.join("config.toml")).unwrap();
    (stored.start.generations.unwrap(), summary)
}

#[test]
fn a_start_that_was_stopped_goes_on_where_it_was() {
    let root = tempfile::tempdir().unwrap();
    let (whole, parts) = (root.path().join("whole"), root.path().join("parts"));
    run(small_with_start(&whole, 40));
    let stop = AtomicBool::new(true);
    let controls = on_this_machine(&stop);
    let stopped = train(small_with_start(&parts, 40), &controls).unwrap();
    assert_eq!(
        (stopped.status, stopped.decisions),
        (Status::Interrupted, 0)
    );
    // Four rules and DT, on one trace.
    let without = small(&parts, 40).simulations_of(5, 0);
    assert_eq!(stopped.simulations - without, 5);
    let finished = try_resume(&parts, &ResumeOptions::default()).unwrap();
    assert_eq!(finished.status, Status::Finished);
    assert_same_run(&whole, &parts, 40);
}

#[test]
fn a_search_of_another_version_is_not_gone_on_with() {
    let root = tempfile::tempdir().unwrap();
    let out = root.path().join("run");
    let stop = AtomicBool::new(true);
    let controls = on_this_machine(&stop);
    train(small_with_start(&out, 40), &controls).unwrap();
    let path = out.join("checkpoints/step-0/state.json");
    let mut state: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
    let average = state["start"]["average"].as_array_mut().unwrap();
    average.pop().unwrap();
    let text = state.to_string();
    fs::write(&path, &text).unwrap();
    fs::write(path.with_extension("sha256"), sha256(text.as_bytes())).unwrap();
    let error = try_resume(&out, &ResumeOptions::default()).unwrap_err();
    assert!(error.is_bad_input(), "{error}");
    let reasons = format!("{error:?}");
    assert!(reasons.contains("number of weights"), "{reasons}");
}

#[test]
fn a_small_budget_has_no_room_for_a_search() {
    let root = tempfile::tempdir().unwrap();
    let out = root.path().join("run");
    let mut config = small(&out, 4);
    config.start = StartConfig::default();
    assert_eq!(run_counting(config).0, 0);
}

/// Switches with different numbers of ports, one of them with rewards of another size.
fn mixture(out: &Path, rounds: u64) -> TrainConfig {
    let mut config = small_with_start(out, rounds);
    let mut other = config.scenario.clone();
    let settings = ["ports=6", "load=0.9", "min_rto_us=10000"];
    other.set_all(settings).unwrap();
    other.name = "other".to_owned();
    config.mix(vec![config.scenario.clone(), other]);
    config.start.generations = Some(0);
    config.start.rule = vec![0.1; 32];
    config
}

/// Trains the same with another number of threads and after a resume. Returns the run folder, below `root`.
fn train_alike(root: &Path, config: fn(&Path, u64) -> TrainConfig) -> PathBuf {
    let [whole, parts, threads] = ["whole", "parts", "threads"].map(|name| root.join(name));
    run(config(&whole, 40));
    let mut threaded = config(&threads, 40);
    threaded.rollout.threads = 3;
    run(threaded);
    run(config(&parts, 7));
    try_resume(&parts, &to_rounds(40)).unwrap();
    assert_same_run(&whole, &threads, 40);
    assert_same_run(&whole, &parts, 40);
    whole
}

/// Asserts that the best policy is of this scenario and was learned from switches of two numbers of ports.
fn assert_two_replays(run: &Path, scenario: &str) {
    let (weights, manifest) = load_actor(&run.join("checkpoints/best")).unwrap();
    assert!(weights.is_finite());
    assert_eq!(manifest.scenario, scenario);
    let state = run.join(format!("checkpoints/step-{}", 40 * ROUND));
    for replay in ["replay.bin", "replay-1.bin"] {
        assert!(state.join(replay).is_file(), "{replay}");
    }
}

#[test]
fn a_mixture_trains_one_policy_for_any_number_of_threads_and_after_a_resume() {
    let root = tempfile::tempdir().unwrap();
    let run = train_alike(root.path(), mixture);
    assert_two_replays(&run, "mixture");
}

/// Three leaves and a spine, which decide at different times and have different numbers of ports.
fn network(out: &Path, rounds: u64) -> TrainConfig {
    let mut config = small_with_start(out, rounds);
    config.scenario = Scenario::preset("leafspine-4x4").unwrap();
    let settings = [
        "leaves=3",
        "hosts_per_leaf=3",
        "spines=1",
        "active_ports=9",
        "incast_degree=8",
        "warmup_ms=0",
        "measure_ms=4",
        "load=0.9",
        "query_rate=500",
        "buffer_bytes_per_port_gbps=3",
    ];
    config.scenario.set_all(settings).unwrap();
    config.objective = "slowdown".parse().unwrap();
    config.start.generations = Some(0);
    config.start.rule = vec![0.1; 32];
    config
}

#[test]
fn a_network_trains_one_policy_for_any_number_of_threads_and_after_a_resume() {
    let root = tempfile::tempdir().unwrap();
    let run = train_alike(root.path(), network);
    assert_two_replays(&run, "leafspine-4x4");
    assert!(last_of(&run, "updates") > 0);
}

fn by_ppo(out: &Path, rounds: u64) -> TrainConfig {
    let mut config = small(out, rounds);
    config.algorithm = Algorithm::Ppo;
    config.low_level = "dt".parse().unwrap();
    config.ppo.decisions_per_round = 8;
    config.ppo.epochs = 2;
    config.ppo.minibatch = 16;
    config.ppo.actor_starts = 2;
    config
}

#[test]
fn proximal_policy_optimisation_trains_for_any_number_of_threads_and_after_a_resume() {
    let root = tempfile::tempdir().unwrap();
    let run = train_alike(root.path(), by_ppo);
    // There is no search, no random decision, and an update from the second round on.
    let updates = column(&run, "updates");
    assert!(updates[0] == "0" && updates[1] != "0");
    let kl = column(&run, "kl");
    assert!(kl[2].is_empty() && !kl[3].is_empty());
    assert!(column(&run, "temperature")[5].is_empty());
    assert!(!run.join("rule.json").exists());
}

/// The switches of a network have different numbers of ports, and decide when each of them has to.
fn network_by_ppo(out: &Path, rounds: u64) -> TrainConfig {
    let mut config = network(out, rounds);
    config.algorithm = Algorithm::Ppo;
    config.ppo = by_ppo(out, rounds).ppo;
    config
}

#[test]
fn proximal_policy_optimisation_trains_the_switches_of_a_network() {
    let root = tempfile::tempdir().unwrap();
    let run = train_alike(root.path(), network_by_ppo);
    assert!(last_of(&run, "updates") > 0);
}

#[test]
fn a_training_is_not_resumed_with_another_algorithm() {
    let root = tempfile::tempdir().unwrap();
    let out = root.path().join("run");
    run(by_ppo(&out, 3));
    let mut options = to_rounds(5);
    options.expected.algorithm = Some(Algorithm::Sac);
    let error = try_resume(&out, &options).unwrap_err();
    assert!(
        error.is_bad_input() && error.to_string().contains("algorithm"),
        "{error}"
    );
    options.expected.algorithm = Some(Algorithm::Ppo);
    assert_eq!(try_resume(&out, &options).unwrap().rounds, 5);
}

/// With two leaves no port of the spine ever gets more than it can send.
#[test]
fn switches_that_never_decide_do_not_keep_the_others_from_learning() {
    let root = tempfile::tempdir().unwrap();
    let out = root.path().join("run");
    let mut config = network(&out, 12);
    let settings = ["leaves=2", "active_ports=6", "incast_degree=5"];
    config.scenario.set_all(settings).unwrap();
    run(config);
    assert!(last_of(&out, "updates") > 0);
}

#[test]
fn a_network_whose_spines_use_the_buffers_of_leaves_is_refused() {
    let root = tempfile::tempdir().unwrap();
    let mut config = network(&root.path().join("run"), 4);
    config.scenario.set("spine_pool=with_leaf").unwrap();
    let error = try_run(config).unwrap_err();
    assert!(error.is_bad_input(), "{error}");
    assert!(error.to_string().contains("spine_pool"), "{error}");
}

/// Returns settings of a search that takes the whole budget, and of a network that imitates the result.
fn by_cma(out: &Path) -> TrainConfig {
    let mut config = small(out, 40);
    config.algorithm = Algorithm::Cma;
    config.low_level = "dt".parse().unwrap();
    config.start = StartConfig {
        generations: Some(3),
        candidates: 4,
        traces: Some(2),
        choosing_traces: 2,
        lesson_traces: 2,
        lesson_steps: 50,
        ..StartConfig::default()
    };
    config
}

#[test]
fn a_search_alone_is_a_training_too() {
    let root = tempfile::tempdir().unwrap();
    let (first, second) = (root.path().join("first"), root.path().join("second"));
    let summary = run(by_cma(&first));
    let mut other = by_cma(&second);
    other.rollout.threads = 1;
    run(other);
    assert_eq!((summary.decisions, summary.updates), (0, 0));
    assert!(summary.simulations > 3 * 5 * 2);
    assert_eq!(last_of(&first, "simulations"), summary.simulations);
    for file in ["rule.json", "checkpoints/best/actor.safetensors"] {
        let [first, second] = [&first, &second].map(|out| fs::read(out.join(file)).unwrap());
        assert_eq!(first, second, "{file}");
    }
    // Everything is done: the stored state is of a finished search.
    let again = try_resume(&first, &ResumeOptions::default()).unwrap();
    assert_eq!(again.simulations, summary.simulations);
}

#[test]
fn stopping_stores_the_state_and_a_resume_completes_the_run() {
    let root = tempfile::tempdir().unwrap();
    let (whole, stopped) = (root.path().join("whole"), root.path().join("stopped"));
    run(small(&whole, 40));
    let stop = AtomicBool::new(false);
    let controls = on_this_machine(&stop);
    let summary = thread::scope(|scope| {
        let training = scope.spawn(|| train(small(&stopped, 40), &controls));
        let start = Instant::now();
        let rows =
            || fs::read_to_string(stopped.join("metrics.csv")).map_or(0, |t| t.lines().count());
        while rows() < 5 && start.elapsed() < Duration::from_secs(60) {
            thread::yield_now();
        }
        stop.store(true, Ordering::SeqCst);
        training.join().unwrap().unwrap()
    });
    if summary.status == Status::Interrupted {
        assert!(summary.evaluation.is_none());
        assert!(summary.rounds < 40);
    }
    try_resume(&stopped, &ResumeOptions::default()).unwrap();
    assert_same_run(&whole, &stopped, 40);
}

/// Copies of the folder at random moments of a run equal the remains of a kill at those moments.
#[test]
fn a_kill_at_any_moment_leaves_something_to_resume() {
    let root = tempfile::tempdir().unwrap();
    let (whole, victim) = (root.path().join("whole"), root.path().join("victim"));
    let mut config = small(&victim, 12);
    config.checkpoint.every_rounds = 1;
    let training = thread::spawn(move || run(config));
    let mut copies = Vec::new();
    while !training.is_finished() && copies.len() < 8 {
        thread::sleep(Duration::from_millis(7 * (copies.len() as u64 + 1)));
        let copy = root.path().join(format!("copy-{}", copies.len()));
        // A file may vanish during the copy, which does not happen with a kill: such a copy is not used.
        if victim.join("config.toml").exists() && copy_folder(&victim, &copy).is_ok() {
            copies.push(copy);
        }
    }
    training.join().unwrap();
    run(small(&whole, 12));
    for copy in copies {
        try_resume(&copy, &ResumeOptions::default()).unwrap();
        assert_same_run(&whole, &copy, 12);
    }
}

/// Copies folders first: a table that is copied after a state has all of its rows, as after a kill.
fn copy_folder(from: &Path, to: &Path) -> std::io::Result<()> {
    fs::create_dir_all(to)?;
    let entries: Vec<_> = fs::read_dir(from)?.collect::<Result<_, _>>()?;
    let is_folder = |entry: &&fs::DirEntry| entry.path().is_dir();
    for entry in entries.iter().filter(is_folder) {
        copy_folder(&entry.path(), &to.join(entry.file_name()))?;
    }
    for entry in entries.iter().filter(|entry| !is_folder(entry)) {
        fs::copy(entry.path(), to.join(entry.file_name()))?;
    }
    Ok(())
}

#[test]
fn a_damaged_state_is_set_aside_and_the_one_before_is_used() {
    let root = tempfile::tempdir().unwrap();
    let (whole, out) = (root.path().join("whole"), root.path().join("damaged"));
    run(small(&whole, 9));
    for (file, damage) in [
        ("state.json", false),
        ("replay.bin", true),
        ("sac/networks.safetensors", true),
    ] {
        let mut config = small(&out, 6);
        config.checkpoint.every_rounds = 1;
        config.force = true;
        run(config);
        let newest = out.join("checkpoints/step-240").join(file);
        let mut bytes = fs::read(&newest).unwrap();
        let middle = bytes.len() / 2;
        if damage {
            bytes[middle] ^= 1;
        } else {
            bytes.truncate(middle);
        }
        fs::write(&newest, bytes).unwrap();
        try_resume(&out, &to_rounds(9)).unwrap();
        assert_same_run(&whole, &out, 9);
        assert!(
            out.join("checkpoints/step-240.damaged-0").exists(),
            "{file}"
        );
    }
}

#[test]
fn a_run_without_any_valid_state_says_what_is_wrong() {
    let root = tempfile::tempdir().unwrap();
    let out = root.path().join("run");
    run(small(&out, 2));
    for step in [0, 80] {
        let state = out.join(format!("checkpoints/step-{step}/state.json"));
        let text = fs::read_to_string(&state).unwrap();
        fs::write(&state, text.replace("\"rounds\":", "\"rounds\": 1")).unwrap();
    }
    let error = try_resume(&out, &ResumeOptions::default()).unwrap_err();
    let message = error.to_string();
    assert!(
        message.contains("sha256") && message.contains("step-80"),
        "{message}"
    );
    assert!(error.is_bad_input() && !message.contains('\n'));
    assert!(message.contains("--force"), "{message}");
    assert!(out.join("checkpoints/step-80").exists());

    let force = ResumeOptions {
        force: true,
        ..ResumeOptions::default()
    };
    try_resume(&out, &force).unwrap();
    assert!(out.join("checkpoints/step-80.damaged-0").exists());
    let whole = root.path().join("whole");
    run(small(&whole, 2));
    assert_eq!(
        (metrics(&out), weights(&out, 2)),
        (metrics(&whole), weights(&whole, 2))
    );
}

#[test]
fn bad_input_is_refused_before_anything_is_written() {
    let root = tempfile::tempdir().unwrap();
    let out = root.path().join("run");
    let mut config = small(&out, 2);
    config.rollout.workers = 0;
    let error = try_run(config).unwrap_err();
    assert!(error.to_string().contains("rollout.workers") && error.is_bad_input());
    assert!(!out.exists());

    let error = try_resume(&out, &ResumeOptions::default()).unwrap_err();
    assert!(error.to_string().contains("no checkpoint") && error.is_bad_input());
    assert!(!out.exists());

    run(small(&out, 2));
    let before = metrics(&out);
    let error = try_run(small(&out, 2)).unwrap_err();
    assert!(error.to_string().contains("--force") && error.is_bad_input());
    let other = ResumeOptions {
        expected: Expected {
            scenario: Some(Scenario::default().with(|scenario| {
                scenario.name = "other".into();
            })),
            ..Expected::default()
        },
        ..ResumeOptions::default()
    };
    let error = try_resume(&out, &other).unwrap_err();
    assert!(
        error.to_string().contains("another scenario") && error.is_bad_input(),
        "{error}"
    );
    assert_eq!(metrics(&out), before);
}
