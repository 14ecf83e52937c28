//! `train`: writes a run folder as documented; interrupted, killed and resumed runs give the same result.

use std::fs;
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use crate::harness::{Run, Sandbox};

/// Settings of a training of a second.
const TINY: &str = "\
[rollout]
workers = 3
decisions_per_round = 4
learning_starts = 24
[start]
generations = 0
[learner]
updates_per_round = 1
replay_capacity = 500
[sac]
batch_size = 8
[validation]
every_decisions = 60
traces = 2
final_traces = 2
[checkpoint]
every_rounds = 1
";

pub const TRAIN: &str = "train --config tiny.toml --set flows=100..100 --set active_ports=8..8 --set arrivals=synchronised";

pub fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("tiny.toml", TINY);
    sandbox
}

/// Returns the parts of a run that two equal trainings must share.
pub fn result(sandbox: &Sandbox, run: &str) -> (String, Vec<u8>) {
    let weights =
        fs::read(sandbox.path(&format!("{run}/checkpoints/best/actor.safetensors"))).unwrap();
    (sandbox.read(&format!("{run}/metrics.csv")), weights)
}

/// Waits until a training has stored a state beyond its first.
pub fn wait_for_progress(sandbox: &Sandbox, run: &str) {
    let started = Instant::now();
    let checkpoints = sandbox.path(&format!("{run}/checkpoints"));
    let advanced = || {
        let entries = fs::read_dir(&checkpoints).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name()).any(|name| {
            let name = name.to_string_lossy();
            name.strip_prefix("step-")
                .and_then(|step| step.parse::<u64>().ok())
                .is_some_and(|step| step > 0)
        })
    };
    while !advanced() {
        assert!(
            started.elapsed() < Duration::from_secs(120),
            "no checkpoint in {}",
            checkpoints.display()
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_run_leaves_what_is_documented_and_can_be_evaluated() {
    let sandbox = sandbox();
    let run = sandbox.ok(&format!("{TRAIN} --steps 120 --seed 1 --json"));
    let summary = run.json();
    assert_eq!(summary["status"], "finished");
    assert_eq!(summary["out"], "runs/fct-ndt-16x1g-1");
    assert!(summary["decisions"].as_u64().unwrap() >= 120);
    let names: Vec<&str> = summary["policies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| p["policy"].as_str().unwrap())
        .collect();
    for rule in ["edt", "st", "cs", "dt"] {
        assert!(names.contains(&rule), "{names:?}");
    }
    let files = sandbox.files().join("\n");
    for file in [
        "config.toml",
        "metrics.csv",
        "perf.csv",
        "train.log",
        "events.out.tfevents",
        "checkpoints/step-",
        "checkpoints/best/actor.safetensors",
        "checkpoints/best/manifest.json",
    ] {
        assert!(
            files.contains(&format!("runs/fct-ndt-16x1g-1/{file}")),
            "no {file} in\n{files}"
        );
    }
    sandbox.ok(
        "eval --policy ndt:runs/fct-ndt-16x1g-1/checkpoints/best --traces 1 --set flows=100..100",
    );

    let again = sandbox.ok(&format!("{TRAIN} --steps 30 --seed 1 --json --quiet"));
    assert_eq!(again.json()["out"], "runs/fct-ndt-16x1g-1-2");
    assert_eq!(again.stderr, "");
}

#[test]
fn learning_curves_of_runs_are_drawn_together() {
    let sandbox = sandbox();
    for seed in [1, 2] {
        sandbox.ok(&format!(
            "{TRAIN} --steps 120 --seed {seed} --out run{seed}"
        ));
    }
    let run = sandbox.ok("runs curves run1 run2 --out curves.svg --json");
    let trainings = run.json()["trainings"].as_array().unwrap().clone();
    assert_eq!(trainings.len(), 2);
    assert!(
        trainings
            .iter()
            .all(|run| run["best"].as_f64().unwrap() > 0.0)
    );
    let svg = sandbox.read("curves.svg");
    assert!(svg.contains("run1") && svg.contains("run2"), "{svg}");
    sandbox.refused(
        "runs curves run1 --out curves.svg",
        &["curves.svg", "--force"],
    );
    sandbox.refused(
        "runs curves nowhere --out new.svg",
        &["nowhere/metrics.csv"],
    );
    assert!(!sandbox.path("new.svg").exists());
}

/// Weights act on top of the heuristic that they were trained with, which their manifest names.
#[test]
fn weights_over_another_heuristic_stay_with_it() {
    let sandbox = sandbox();
    let run = sandbox.ok(&format!(
        "{TRAIN} --steps 120 --low-level abm --set queues_per_port=2 --json"
    ));
    assert_eq!(run.json()["out"], "runs/fct-abm-ndt-16x1g-1");
    let best = "runs/fct-abm-ndt-16x1g-1/checkpoints/best";
    let simulate = |options: &str| {
        let run = sandbox.ok(&format!(
            "sim --policy ndt:{best} --set flows=300..300 --seed 3 --json {options}"
        ));
        run.json()["mean_fct_ms"].as_f64().unwrap()
    };
    let over_abm = simulate("");
    assert_eq!(over_abm, simulate(""));
    let manifest = sandbox.path(best).join("manifest.json");
    let text = fs::read_to_string(&manifest).unwrap();
    let over_dt = text.replace("\"low_level\": \"abm\"", "\"low_level\": \"dt\"");
    assert_ne!(over_dt, text, "{text}");
    fs::write(&manifest, over_dt).unwrap();
    assert_ne!(over_abm, simulate(""));
}

/// The training starts from random weights on top of Dynamic Threshold, without a search.
#[test]
fn proximal_policy_optimisation_is_chosen_by_name() {
    let sandbox = sandbox();
    let text = sandbox.read("tiny.toml")
        + "[ppo]\ndecisions_per_round = 4\nminibatch = 16\nactor_starts = 1\n";
    sandbox.write("tiny.toml", &text);
    let options = "--algorithm ppo --low-level dt --steps 120 --out ppo";
    sandbox.ok(&format!("{TRAIN} {options}"));
    let config = sandbox.read("ppo/config.toml");
    assert!(config.contains("algorithm = \"ppo\""), "{config}");
    assert!(!sandbox.path("ppo/rule.json").exists());
    sandbox.ok("sim --policy ndt:ppo/checkpoints/best --seed 3");
    sandbox.ok("export --checkpoint ppo/checkpoints/best --format c-int8 --out exported");
    sandbox.ok("train --resume ppo --steps 180 --algorithm ppo");
    sandbox.refused(
        "train --resume ppo --algorithm sac",
        &["algorithm", "ppo", "sac"],
    );
    sandbox.refused("train --algorithm dqn", &["`dqn`", "sac, ppo or cma"]);
    sandbox.refused(
        "train --algorithm ppo --scenario mixed",
        &["algorithm", "must be sac"],
    );
    sandbox.write("bad.toml", "algorithm = 'ppo'\n[ppo]\nlambda = 2\n");
    sandbox.refused("train --config bad.toml", &["`lambda`", "between 0 and 1"]);
}

#[test]
fn a_search_alone_and_a_start_from_random_weights_are_chosen_by_name() {
    let sandbox = sandbox();
    let text = sandbox.read("tiny.toml");
    let text = text.replace("[start]", "[start]\nlesson_steps = 50");
    sandbox.write("tiny.toml", &text);
    sandbox.ok(&format!(
        "{TRAIN} --algorithm cma --low-level dt --steps 2000 --out cma"
    ));
    assert!(sandbox.path("cma/rule.json").exists());
    sandbox.ok("sim --policy ndt:cma/checkpoints/best --seed 3");
    sandbox.ok("sim --policy linear:cma/rule.json --seed 3");
    sandbox.refused("train --resume cma --algorithm ppo", &["algorithm", "cma"]);
    sandbox.ok(&format!(
        "{TRAIN} --start random --low-level dt --steps 120 --out random"
    ));
    assert!(!sandbox.path("random/rule.json").exists());
    sandbox.refused("train --resume random --start rule", &["start.from"]);
    sandbox.refused("train --start middle", &["`middle`", "random or rule"]);
}

/// The outputs of decisions are part of the heuristic's name, which manifest and policy contain.
#[test]
fn decisions_can_set_early_drop_too() {
    let sandbox = sandbox();
    let options = "--steps 120 --low-level dt --actions alpha,early --out early";
    sandbox.ok(&format!("{TRAIN} {options}"));
    let best = "early/checkpoints/best";
    let manifest = sandbox.read(&format!("{best}/manifest.json"));
    assert!(
        manifest.contains("\"low_level\": \"dt+early\""),
        "{manifest}"
    );
    let run = sandbox.ok(&format!("sim --policy ndt:{best} --seed 3 --json"));
    assert!(run.json()["decisions"].as_u64().unwrap() > 0);
    sandbox.ok("train --resume early --actions alpha,early");
    sandbox.refused(
        "train --resume early --actions alpha",
        &["low_level", "dt+early"],
    );
    for (command, words) in [
        ("train --actions early", ["'early'", "alpha,early"]),
        (
            "train --actions alpha,early --low-level dt+red",
            ["dt+red", "leave out"],
        ),
    ] {
        sandbox.refused(command, &words);
    }
    // Exports and records contain both outputs.
    sandbox.ok(&format!(
        "export --checkpoint {best} --format onnx --out exported"
    ));
    assert!(sandbox.path("exported/golden/early-levels-1.npy").exists());
    sandbox.ok(&format!(
        "sim --policy ndt:{best} --seed 3 --record-control record.csv"
    ));
    assert!(
        sandbox
            .read("record.csv")
            .starts_with("bufgym-control-record,2\n")
    );
}

#[test]
fn the_number_of_threads_does_not_change_the_result() {
    let sandbox = sandbox();
    for threads in [1, 2, 5] {
        sandbox.ok(&format!(
            "{TRAIN} --steps 120 --threads {threads} --out run{threads}"
        ));
    }
    assert_eq!(result(&sandbox, "run1"), result(&sandbox, "run2"));
    assert_eq!(result(&sandbox, "run1"), result(&sandbox, "run5"));
}

#[test]
fn a_killed_run_resumes_to_the_same_result() {
    let sandbox = sandbox();
    sandbox.ok(&format!("{TRAIN} --steps 180 --out whole"));
    let mut child = sandbox.spawn(&format!("{TRAIN} --steps 180 --out killed"));
    wait_for_progress(&sandbox, "killed");
    // SIGKILL; the run may just have ended by itself.
    child.kill().unwrap();
    child.wait().unwrap();
    sandbox.ok("train --resume killed");
    assert_eq!(result(&sandbox, "whole"), result(&sandbox, "killed"));
}

#[test]
fn an_interrupted_run_saves_says_how_to_go_on_and_does() {
    let sandbox = sandbox();
    let child = sandbox.spawn(&format!("{TRAIN} --steps 100000 --out stopped"));
    wait_for_progress(&sandbox, "stopped");
    let signal = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status()
        .unwrap();
    assert!(signal.success());
    let run = Run::from(child.wait_with_output().unwrap());
    assert_eq!(run.code, Some(130), "{}", run.stderr);
    assert!(
        run.stdout.contains("train --resume stopped"),
        "{}",
        run.stdout
    );
    // The budget is spent already: the run ends at once with its table.
    let resumed = sandbox.ok("train --resume stopped --steps 1 --json");
    assert_eq!(resumed.json()["status"], "finished");
}

/// A folder with somebody's weights, such as a checkout, is not a run folder.
#[test]
fn force_replaces_nothing_that_no_training_made() {
    let sandbox = sandbox();
    fs::create_dir_all(sandbox.path("checkout/checkpoints/mine")).unwrap();
    sandbox.write("checkout/checkpoints/mine/actor.safetensors", "weights");
    sandbox.write("checkout/config.toml", "");
    let command = format!("{TRAIN} --steps 30 --force --out checkout");
    sandbox.refused(
        &command,
        &["checkout", "not made by a training", "another folder"],
    );
    sandbox.ok(&format!("{TRAIN} --steps 30 --out run"));
    sandbox.ok(&format!("{TRAIN} --steps 30 --force --out run"));
}

/// `nohup` does the same to the program that it starts.
#[test]
fn a_run_that_ignores_hang_ups_goes_on() {
    let sandbox = sandbox();
    let program = env!("CARGO_BIN_EXE_bufgym");
    let command = format!("trap '' HUP; exec {program} {TRAIN} --steps 100000 --out ignoring");
    let mut child = Command::new("sh")
        .args(["-c", &command])
        .current_dir(sandbox.path("."))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    wait_for_progress(&sandbox, "ignoring");
    let id = child.id().to_string();
    let signal = |name: &str| {
        let status = Command::new("kill").args([name, &id]).status();
        assert!(status.unwrap().success());
    };
    signal("-HUP");
    let rounds = || sandbox.read("ignoring/metrics.csv").lines().count();
    let (before, started) = (rounds(), Instant::now());
    while rounds() < before + 3 {
        assert!(
            started.elapsed() < Duration::from_secs(60),
            "it has stopped"
        );
        sleep(Duration::from_millis(20));
    }
    assert!(child.try_wait().unwrap().is_none());
    signal("-INT");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

/// A full device represents a log on a full disk, and a terminal that is gone.
#[test]
fn a_run_that_cannot_print_ends_with_its_results() {
    let sandbox = sandbox();
    let full = || {
        fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap()
    };
    let arguments = format!("{TRAIN} --steps 60 --out mute");
    let status = Command::new(env!("CARGO_BIN_EXE_bufgym"))
        .args(arguments.split_whitespace())
        .current_dir(sandbox.path("."))
        .stdout(Stdio::null())
        .stderr(full())
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(0));
    assert!(sandbox.path("mute/checkpoints/best/manifest.json").exists());
}

#[test]
fn a_resume_that_cannot_work_is_refused() {
    let sandbox = sandbox();
    sandbox.refused("train --resume nowhere", &["nowhere"]);
    fs::create_dir(sandbox.path("empty")).unwrap();
    sandbox.refused("train --resume empty", &["empty"]);
    sandbox.ok(&format!("{TRAIN} --steps 30 --out run"));
    sandbox.refused("train --resume run --workers 5", &["workers", "3", "5"]);
    sandbox.refused(
        "train --resume run --objective loss",
        &["objective", "fct", "loss"],
    );
    sandbox.refused(
        "train --resume run --low-level abm",
        &["low_level", "dt", "abm"],
    );
    sandbox.refused("train --resume run --out other", &["--resume", "--out"]);
}

#[test]
fn a_training_file_with_an_unknown_key_is_refused_by_line() {
    let sandbox = Sandbox::new();
    sandbox.write("bad.toml", "[rollout]\nwokers = 3\n");
    sandbox.refused("train --config bad.toml", &["bad.toml", "2", "wokers"]);
    sandbox.refused("train --config none.toml", &["none.toml"]);
}

/// Every switch decides, on top of the heuristic for networks, and the learned policy runs wherever networks
/// run.
#[test]
fn a_network_is_trained_and_its_policy_evaluated() {
    let sandbox = sandbox();
    let network = "--scenario leafspine-4x4 --set warmup_ms=0 --set measure_ms=2 --set load=0.9 --set query_rate=300";
    let train = format!("train --steps 48 --workers 3 --objective slowdown {network}");
    let run = sandbox.ok(&format!("{train} --seed 2 --json")).json();
    assert_eq!(run["status"], "finished");
    assert_eq!(run["out"], "runs/slowdown-leafspine-4x4-2");
    let config = sandbox.read("runs/slowdown-leafspine-4x4-2/config.toml");
    assert!(config.contains("low_level = \"dt\""), "{config}");
    let report = sandbox
        .ok(&format!(
            "eval {network} --traces 1 --policy ndt:runs/slowdown-leafspine-4x4-2/checkpoints/best --json"
        ))
        .json();
    assert_eq!(report["scenario"]["switches"], 6);
    sandbox.refused(
        &format!("{train} --set spine_pool=with_leaf"),
        &["spine_pool", "must be own"],
    );
}
