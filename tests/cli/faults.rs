//! Faults of the system: a kill at any operation of the file system, a full disk, files that vanish, closed
//! output. No result is lost without a message.

mod shim;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread::scope;
use std::time::{Duration, Instant};

use bufgym::sim::scenario::Scenario;

use crate::harness::{Run, Sandbox};
use crate::training::{TRAIN, result, sandbox as training_sandbox, wait_for_progress};
use shim::{Fault, Shim, points};

/// Settings of a training of a quarter of a second, with two validations and some checkpoints.
pub const FAST: &str = "\
[rollout]
workers = 2
decisions_per_round = 4
learning_starts = 16
[start]
generations = 0
[learner]
updates_per_round = 1
replay_capacity = 100
[ports]
critic_width = 8
[sac]
batch_size = 4
[validation]
every_decisions = 24
traces = 1
final_traces = 0
[checkpoint]
every_rounds = 3
";
pub const FAST_TRAIN: &str = "train --config fast.toml --set ports=4 --set flows=20..20 --set active_ports=2..2 \
    --set incast_degree=1..3 --set buffer_bytes=100000 --threads 1 --steps 64 --quiet";

const SMALL: &str = "--set flows=20..20 --set buffer_bytes=200000";

fn fast_sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("fast.toml", FAST);
    sandbox
}

/// Returns names below `folder` that only a writing process should see.
fn left_over(sandbox: &Sandbox, folder: &str) -> Vec<String> {
    let mut files = sandbox.files();
    files.retain(|file| {
        let hidden = file.rsplit('/').next().unwrap_or_default();
        file.starts_with(folder) && hidden.starts_with('.') && hidden != ".lock"
    });
    files
}

/// Completes an interrupted training, like its user would, and compares the result.
fn complete(sandbox: &Sandbox, run: &str, whole: &(String, Vec<u8>), context: &str) {
    let resumed = sandbox.run(&format!("train --quiet --resume {run}"));
    if resumed.code == Some(2) {
        // The training had not begun: there are no settings yet.
        let text = &resumed.stderr;
        assert!(
            text.contains("holds no checkpoint") || text.contains("nowhere"),
            "{context}: {text}"
        );
        assert!(
            !sandbox.path(run).join("metrics.csv").exists(),
            "{context}: {text}"
        );
        sandbox.ok(&format!("{FAST_TRAIN} --out {run} --force"));
    } else {
        assert_eq!(resumed.code, Some(0), "{context}: {}", resumed.stderr);
    }
    assert!(result(sandbox, run) == *whole, "{context}: another result");
    assert_eq!(left_over(sandbox, &format!("{run}/")), [""; 0], "{context}");
}

/// Runs `check` for every point, on two threads.
fn for_points(points: &[u64], check: impl Fn(u64) + Sync) {
    scope(|scope| {
        for half in 0..2 {
            let check = &check;
            let own = points.iter().skip(half).step_by(2);
            scope.spawn(move || own.for_each(|&point| check(point)));
        }
    });
}

#[test]
fn a_training_killed_at_any_operation_resumes_to_the_same_result() {
    let sandbox = fast_sandbox();
    let shim = Shim::new();
    let operations = shim.count(&sandbox, &format!("{FAST_TRAIN} --out whole"));
    let whole = result(&sandbox, "whole");
    let points = points(operations, 40);
    for_points(&points, |point| {
        let run = format!("killed-{point}");
        let command = format!("{FAST_TRAIN} --out {run}");
        let killed = shim.run(&sandbox, &command, point, Fault::Kill);
        let context = format!("killed at operation {point} of {operations}");
        assert_eq!(killed.code, None, "{context}: {}", killed.stderr);
        complete(&sandbox, &run, &whole, &context);
    });
    println!("{} of {operations} operations killed", points.len());
}

#[test]
fn a_training_on_a_disk_that_fills_up_fails_in_words_and_resumes_to_the_same_result() {
    let sandbox = fast_sandbox();
    let shim = Shim::new();
    let operations = shim.count(&sandbox, &format!("{FAST_TRAIN} --out whole"));
    let whole = result(&sandbox, "whole");
    let points = points(operations, 16);
    for_points(&points, |point| {
        for (fault, name) in [(Fault::Full, "full"), (Fault::Broken, "broken")] {
            let run = format!("{name}-{point}");
            let command = format!("{FAST_TRAIN} --out {run}");
            let failed = shim.run(&sandbox, &command, point, fault);
            let context = format!("{name} from operation {point} of {operations}");
            let errors = failed
                .stderr
                .lines()
                .filter(|line| line.starts_with("error:"));
            if failed.code == Some(0) {
                // Only the event file and the log are incomplete.
                assert!(result(&sandbox, &run) == whole, "{context}: not complete");
            } else {
                assert_eq!(failed.code, Some(1), "{context}: {}", failed.stderr);
                assert_eq!(errors.count(), 1, "{context}: {}", failed.stderr);
                assert!(
                    failed.stderr.contains(&fault.message()),
                    "{context}: {}",
                    failed.stderr
                );
            }
            assert!(
                !failed.stderr.contains("panicked"),
                "{context}: {}",
                failed.stderr
            );
            complete(&sandbox, &run, &whole, &context);
        }
    });
    println!(
        "{} of {operations} operations failed in two ways",
        points.len()
    );
}

/// A command that writes results, with the earlier results and the way to replace them.
struct Case {
    command: &'static str,
    output: &'static str,
    /// The command that writes `output` with an older content.
    before: Option<&'static str>,
    /// Files whose content is the same in every run.
    same: &'static [&'static str],
    /// Largest number of operations to test.
    most: u64,
}

const CASES: [Case; 6] = [
    Case {
        command: "sim --policy dt --seed 3 --set flows=20..20 --out out --timeline --timeline-interval-us 100000",
        output: "out",
        before: None,
        same: &["out/fct.csv", "out/timeline.csv"],
        most: 16,
    },
    Case {
        command: "eval --policy dt --traces 1 --set flows=20..20 --quiet --out out",
        output: "out",
        before: None,
        same: &["out/per_trace.csv"],
        most: 16,
    },
    Case {
        command: "export --checkpoint actor --format c --quiet --out out",
        output: "out",
        before: None,
        same: &["out/ndt_f32.c", "out/ndt_f32.h", "out/golden/actions-4.npy"],
        // A run takes a second.
        most: 5,
    },
    Case {
        command: "trace --seed 3 --set flows=20..20 --out flows.csv --force",
        output: "flows.csv",
        before: Some("trace --seed 4 --set flows=20..20 --out flows.csv"),
        same: &["flows.csv"],
        most: 16,
    },
    Case {
        command: "tune --policy dt --simulations 100 --set flows=20..20 --quiet --force",
        output: "checkpoints",
        before: Some("tune --policy st --simulations 100 --set flows=20..20 --quiet"),
        same: &["checkpoints/tuned"],
        most: 16,
    },
    Case {
        command: "tune linear --traces 1 --generations 1 --set ports=4 --set active_ports=1..1 --set incast_degree=1..1 --set flows=4..4 --set workload=fb_hadoop --quiet --out rule.json --force",
        output: "rule.json",
        before: Some(
            "tune linear --traces 1 --generations 1 --set ports=4 --set active_ports=1..1 --set incast_degree=1..1 --set flows=4..4 --set workload=fb_hadoop --seed 2 --quiet --out rule.json",
        ),
        same: &["rule.json"],
        most: 16,
    },
];

/// Names, and contents of some of the files.
type State = (Vec<String>, Vec<Vec<u8>>);

impl Case {
    fn sandbox(&self) -> Sandbox {
        let sandbox = Sandbox::new();
        if self.command.contains("--checkpoint actor") {
            let mut scenario = Scenario::default();
            for setting in ["flows=20..20", "active_ports=1..1", "buffer_bytes=100000"] {
                scenario.set(setting).unwrap();
            }
            sandbox.random_checkpoint_for("actor", &scenario);
        }
        if let Some(before) = self.before {
            sandbox.ok(before);
        }
        sandbox
    }

    /// Returns the names below the output, and the contents that do not depend on the clock.
    fn state(&self, sandbox: &Sandbox) -> State {
        let mut names = sandbox.files();
        names.retain(|name| {
            let hidden = name.split('/').any(|part| part.starts_with('.'));
            name.starts_with(self.output) && !hidden
        });
        let contents = names
            .iter()
            .filter(|name| self.same.iter().any(|same| name.starts_with(same)))
            .filter_map(|name| fs::read(sandbox.path(name)).ok());
        let contents = contents.collect();
        (names, contents)
    }

    /// Checks that the result is absent, the old one or the new one.
    fn check(&self, sandbox: &Sandbox, whole: &[State; 2], context: &str) {
        let state = self.state(sandbox);
        assert!(
            whole.contains(&state),
            "{context}: neither old nor new: {:?}",
            state.0
        );
    }

    /// Checks that another run gives the new result, and that nothing is left of the killed process.
    fn repeat(&self, sandbox: &Sandbox, whole: &[State; 2], context: &str) {
        let force = match self.command.contains("--force") {
            true => "",
            false => " --force",
        };
        sandbox.ok(&format!("{}{force}", self.command));
        assert!(self.state(sandbox) == whole[1], "{context}: another result");
        assert_eq!(left_over(sandbox, ""), [""; 0], "{context}");
    }
}

#[test]
fn results_are_old_or_new_and_whole_whenever_their_writer_is_killed_or_the_disk_is_full() {
    let shim = Shim::new();
    for case in &CASES {
        let sandbox = case.sandbox();
        let old = case.state(&sandbox);
        let operations = shim.count(&sandbox, case.command);
        let whole = [old, case.state(&sandbox)];
        assert!(
            whole[0] != whole[1] && !whole[1].1.is_empty(),
            "{}",
            case.command
        );
        let points = points(operations, case.most);
        for_points(&points, |point| {
            let context = format!("{} at operation {point} of {operations}", case.command);
            let sandbox = case.sandbox();
            let killed = shim.run(&sandbox, case.command, point, Fault::Kill);
            assert_eq!(killed.code, None, "{context}: {}", killed.stderr);
            case.check(&sandbox, &whole, &context);
            case.repeat(&sandbox, &whole, &context);

            let sandbox = case.sandbox();
            let failed = shim.run(&sandbox, case.command, point, Fault::Full);
            let text = &failed.stderr;
            // Once the result is in place, only the sync to the disk may fail.
            assert_eq!(failed.code, Some(1), "full: {context}: {text}");
            assert_eq!(
                text.lines()
                    .filter(|line| line.starts_with("error:"))
                    .count(),
                1,
                "{text}"
            );
            assert!(
                text.contains(&Fault::Full.message()) && !text.contains("panicked"),
                "{text}"
            );
            assert_eq!(left_over(&sandbox, ""), [""; 0], "full: {context}");
            case.check(&sandbox, &whole, &format!("full: {context}"));
        });
        println!(
            "{} of {operations} operations: {}",
            points.len(),
            case.command
        );
    }
}

#[test]
fn a_place_that_cannot_be_written_is_refused_by_name() {
    let shim = Shim::new();
    let sandbox = fast_sandbox();
    sandbox.random_checkpoint("actor");
    let cases = CASES.iter().map(|case| (case.command, case.output));
    for (command, output) in cases.chain([(FAST_TRAIN, "runs/fct-ndt-16x1g-1")]) {
        let before = sandbox.files();
        let run = shim.run(&sandbox, command, 1, Fault::ReadOnly);
        assert_eq!(run.code, Some(2), "{command}: {}", run.stderr);
        assert_eq!(run.stderr.lines().count(), 1, "{}", run.stderr);
        assert!(
            run.stderr.contains(output) && run.stderr.contains("Read-only"),
            "{}",
            run.stderr
        );
        assert_eq!(sandbox.files(), before, "{command}");
    }
}

#[test]
fn a_device_that_is_full_is_a_failure() {
    let sandbox = Sandbox::new();
    let full = || {
        fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap()
    };
    let run = sandbox.run("trace --set flows=20..20 --out /dev/full");
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert!(
        run.stderr.contains("/dev/full: No space left"),
        "{}",
        run.stderr
    );
    let sim = format!("sim --policy dt {SMALL} --out out --json");
    let run = Run::from(sandbox.command(&sim).stdout(full()).output().unwrap());
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert!(sandbox.path("out/fct.csv").exists(), "the result is kept");
}

/// Starts the program from a shell, which can close its output.
fn from_shell(sandbox: &Sandbox, arguments: &str, redirections: &str) -> Command {
    let program = env!("CARGO_BIN_EXE_bufgym");
    let mut command = Command::new("sh");
    command
        .args(["-c", &format!("exec {program} {arguments} {redirections}")])
        .current_dir(sandbox.path("."))
        .stdin(Stdio::null());
    command
}

#[test]
fn work_is_done_whether_or_not_anyone_reads_about_it() {
    let sandbox = fast_sandbox();
    let train = format!("{FAST_TRAIN} --out run");
    for arguments in [&train, &format!("sim --policy dt {SMALL} --out out")] {
        let status = from_shell(&sandbox, arguments, "<&- >&- 2>&-")
            .status()
            .unwrap();
        assert_eq!(status.code(), Some(0), "{arguments}");
    }
    sandbox.ok(&format!("{FAST_TRAIN} --out other"));
    assert!(result(&sandbox, "run") == result(&sandbox, "other"));
    assert!(sandbox.path("out/summary.json").exists());
}

fn signal(name: &str, process: u32) {
    let status = Command::new("kill")
        .args([name, &process.to_string()])
        .status();
    assert!(status.unwrap().success());
}

/// Returns true if this process ignores a hang-up, like under `nohup`; its children then do so too.
fn ignores_hang_up() -> bool {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut lines = status.lines();
    let ignored = lines.find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    ignored.is_some_and(|mask| mask & 1 != 0)
}

#[test]
fn the_exit_code_tells_which_signal_ended_a_training() {
    let sandbox = training_sandbox();
    for (name, code) in [("INT", 130), ("TERM", 143), ("HUP", 129)] {
        if name == "HUP" && ignores_hang_up() {
            eprintln!(
                "skipped: a hang-up is ignored here, as under nohup, and trainings respect that"
            );
            continue;
        }
        let child = sandbox.spawn(&format!("{TRAIN} --steps 100000 --out {name}"));
        wait_for_progress(&sandbox, name);
        signal(&format!("-{name}"), child.id());
        let run = Run::from(child.wait_with_output().unwrap());
        assert_eq!(run.code, Some(code), "{}", run.stderr);
        assert!(
            run.stdout.contains(&format!("--resume {name}")),
            "{}",
            run.stdout
        );
        sandbox.ok(&format!("train --resume {name} --steps 1"));
    }
}

/// Starts a training, disturbs its folder `run`, and returns the output of the training.
fn disturbed(sandbox: &Sandbox, disturb: impl FnOnce(&Path)) -> Run {
    let mut child = sandbox.spawn(&format!("{TRAIN} --steps 1000000 --out run"));
    wait_for_progress(sandbox, "run");
    disturb(&sandbox.path("run"));
    let started = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if started.elapsed() > Duration::from_secs(60) {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    let run = Run::from(child.wait_with_output().unwrap());
    let errors = run.stderr.lines().filter(|line| line.starts_with("error:"));
    assert_eq!((run.code, errors.count()), (Some(1), 1), "{}", run.stderr);
    run
}

#[test]
fn a_run_folder_that_is_removed_or_moved_ends_the_training() {
    let sandbox = training_sandbox();
    // A checkpoint that is being written may block a removal, so the removal is repeated.
    let run = disturbed(&sandbox, |path| while fs::remove_dir_all(path).is_err() {});
    // The training may notice the removal before all of the folder is gone.
    assert!(
        run.stderr.contains("changed during the training"),
        "{}",
        run.stderr
    );

    let _ = fs::remove_dir_all(sandbox.path("run"));
    let run = disturbed(&sandbox, |path| {
        fs::rename(path, sandbox.path("moved")).unwrap()
    });
    assert!(
        run.stderr.contains("the folder was moved or removed"),
        "{}",
        run.stderr
    );
    assert!(!sandbox.path("run").exists(), "it was made again");
    sandbox.ok("train --resume moved --steps 1");
}

/// Settings of a search for a start rule that does not end.
const SEARCH: &str = "\
[start]
from = 'rule'
generations = 1000000
share = 1.0
candidates = 2
traces = 1
choosing_traces = 1
[checkpoint]
every_rounds = 1
";

#[test]
fn a_search_for_the_start_is_stopped_as_a_training_is() {
    let sandbox = Sandbox::new();
    sandbox.write("search.toml", SEARCH);
    let begin = |out: &str| {
        let child = sandbox.spawn(&format!(
            "train --config search.toml --set flows=20..20 --set ports=4 --set active_ports=2..2 --set incast_degree=1..3 --steps 1000000 --workers 2 --out {out}"
        ));
        let log = sandbox.path(&format!("{out}/train.log"));
        let started = Instant::now();
        while !fs::read_to_string(&log).is_ok_and(|log| log.contains("generations")) {
            assert!(started.elapsed() < Duration::from_secs(60), "no progress");
            std::thread::sleep(Duration::from_millis(10));
        }
        child
    };
    let child = begin("stopped");
    signal("-INT", child.id());
    let run = Run::from(child.wait_with_output().unwrap());
    assert_eq!(run.code, Some(130), "{}", run.stderr);
    assert!(run.stdout.contains("--resume stopped"), "{}", run.stdout);

    let child = begin("moved");
    fs::rename(sandbox.path("moved"), sandbox.path("elsewhere")).unwrap();
    let run = Run::from(child.wait_with_output().unwrap());
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    assert!(
        run.stderr.contains("the folder was moved or removed"),
        "{}",
        run.stderr
    );
    assert!(!sandbox.path("moved").exists(), "it was made again");
}

#[cfg(unix)]
#[test]
fn links_in_a_run_folder_are_not_written_through() {
    let sandbox = fast_sandbox();
    for name in [
        "train.log",
        "metrics.csv",
        ".lock",
        ".config.toml.partial-7",
    ] {
        let run = format!("run-{name}");
        sandbox.ok(&format!("{FAST_TRAIN} --out {run}"));
        sandbox.write("precious", "precious");
        let link = sandbox.path(&run).join(name);
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(sandbox.path("precious"), &link).unwrap();
        sandbox.run(&format!("train --resume {run} --steps 80"));
        sandbox.run(&format!("train --resume {run} --steps 80 --force"));
        assert_eq!(sandbox.read("precious"), "precious", "{name}");
    }
    let checkpoints = sandbox.path("run-train.log/checkpoints");
    fs::rename(&checkpoints, sandbox.path("elsewhere")).unwrap();
    std::os::unix::fs::symlink(sandbox.path("elsewhere"), &checkpoints).unwrap();
    for force in ["", "--force"] {
        sandbox.refused(
            &format!("train --resume run-train.log --steps 99 {force}"),
            &["run-train.log/checkpoints", "link"],
        );
    }
}

/// A change to a run folder.
type Disturbance<'a> = &'a dyn Fn(&Path);

#[test]
fn results_that_vanish_during_a_training_end_it_and_the_others_are_kept() {
    let lost_metrics = |path: &Path| fs::remove_file(path.join("metrics.csv")).unwrap();
    let replaced_metrics = |path: &Path| {
        let table = path.join("metrics.csv");
        let text = fs::read_to_string(&table).unwrap();
        fs::remove_file(&table).unwrap();
        fs::write(&table, text).unwrap();
    };
    // The folder is moved at once: a removal file by file could also remove what the training stores in
    // response.
    let lost_checkpoints = |path: &Path| {
        let elsewhere = path.with_extension("checkpoints");
        fs::rename(path.join("checkpoints"), elsewhere).unwrap();
    };
    let lost_lock = |path: &Path| fs::remove_file(path.join(".lock")).unwrap();
    let cases: [(&str, Disturbance, bool); 4] = [
        ("metrics.csv", &lost_metrics, true),
        ("metrics.csv", &replaced_metrics, false),
        ("checkpoints", &lost_checkpoints, false),
        (".lock", &lost_lock, false),
    ];
    for (name, disturb, needs_force) in cases {
        let sandbox = training_sandbox();
        let run = disturbed(&sandbox, disturb);
        let error = run.stderr.lines().last().unwrap();
        assert!(
            error.contains(name) && error.contains("is stored"),
            "{error}"
        );
        if needs_force {
            sandbox.refused(
                "train --resume run --steps 1",
                &["run", "metrics.csv", "--force"],
            );
        }
        sandbox.ok("train --resume run --steps 1 --force");
    }
}

#[test]
fn a_resume_that_would_lose_results_needs_force() {
    let sandbox = fast_sandbox();
    let fresh = |remove: &str| {
        let _ = fs::remove_dir_all(sandbox.path("run"));
        sandbox.ok(&format!("{FAST_TRAIN} --out run"));
        let path = sandbox.path("run").join(remove);
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
    };
    for (lost, words) in [
        (
            "metrics.csv",
            ["metrics.csv is missing", "after 64 decisions"],
        ),
        (
            "checkpoints/best",
            ["checkpoints/best is missing", "after 64 decisions"],
        ),
        (
            "checkpoints",
            ["no stored state", "replaces metrics.csv with 9 rows"],
        ),
    ] {
        fresh(lost);
        sandbox.refused(
            "train --resume run",
            &["run", words[0], words[1], "--force"],
        );
        let forced = sandbox.ok("train --resume run --force");
        assert!(forced.stderr.contains("warning"), "{}", forced.stderr);
        assert!(sandbox.path("run/checkpoints/best/manifest.json").exists());
    }
    fresh("metrics.csv");
    sandbox.write("run/metrics.csv", "round\n");
    sandbox.refused(
        "train --resume run",
        &["metrics.csv has 6 bytes", "--force"],
    );

    fresh("checkpoints/best");
    for step in fs::read_dir(sandbox.path("run/checkpoints")).unwrap() {
        fs::write(step.unwrap().path().join("state.json"), "{}").unwrap();
    }
    let damaged = sandbox.run("train --resume run");
    assert_eq!(damaged.code, Some(2), "{}", damaged.stderr);
    assert!(
        damaged.stderr.contains("--force starts again") || damaged.stderr.contains("with --force")
    );
    sandbox.ok("train --resume run --force");

    // Measurements of the wall clock are no result: a warning is enough.
    fresh("perf.csv");
    let resumed = sandbox.ok("train --resume run");
    assert!(
        resumed.stderr.contains("perf.csv is missing"),
        "{}",
        resumed.stderr
    );
}

#[test]
fn two_trainings_do_not_write_into_one_folder() {
    let sandbox = training_sandbox();
    let mut first = sandbox.spawn(&format!("{TRAIN} --steps 1000000 --out run"));
    wait_for_progress(&sandbox, "run");
    for second in ["--out run --force", "--resume run"] {
        let command = match second.contains("resume") {
            true => format!("train {second}"),
            false => format!("{TRAIN} {second}"),
        };
        let refused = sandbox.run(&command);
        assert_eq!(refused.code, Some(2), "{}", refused.stderr);
        assert!(refused.stderr.contains("in use"), "{}", refused.stderr);
    }
    assert!(first.try_wait().unwrap().is_none());
    signal("-INT", first.id());
    assert_eq!(first.wait().unwrap().code(), Some(130));
    sandbox.ok("train --resume run --steps 1");
}
