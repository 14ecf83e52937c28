//! Bad usage and bad input: exit code 2, one clear line, nothing written.

use bufgym::models::DeviceChoice;

use crate::harness::Sandbox;

const FLOWS: &str = "id,src,dst,start_ns,size_bytes\n";

#[test]
fn an_unknown_flag_suggests_the_nearest() {
    let sandbox = Sandbox::new();
    sandbox.refused("train --wokers 3", &["--wokers", "--workers"]);
    sandbox.refused("sim --polcy dt", &["--polcy", "--policy"]);
    sandbox.refused("simm --policy dt", &["simm", "sim"]);
}

#[test]
fn an_unknown_policy_suggests_the_nearest() {
    let sandbox = Sandbox::new();
    sandbox.refused("sim --policy dtt", &["dtt", "`dt`"]);
    sandbox.refused("eval --policy ett", &["ett", "`edt`"]);
    sandbox.refused("sim --policy dt:alfa=2", &["alfa", "`alpha`"]);
    sandbox.refused("sim --policy dt:alpha=-2", &["alpha", "-2"]);
    sandbox.refused("list policies dtt", &["dtt", "`dt`"]);
}

#[test]
fn a_message_suggests_only_what_the_command_takes() {
    let sandbox = Sandbox::new();
    for command in ["sim --policy", "eval --policy"] {
        sandbox.refused(&format!("{command} NDT"), &["NDT", "did you mean `ndt`?"]);
        sandbox.refused(&format!("{command} DT"), &["DT", "did you mean `dt`?"]);
        sandbox.refused(&format!("{command} ndt-int9"), &["`ndt-int8`"]);
        sandbox.refused(&format!("{command} liner:x"), &["`linear`"]);
        sandbox.refused(&format!("{command} ndt:tuned"), &["ndt", "rule is needed"]);
    }
    for learned in ["ndt", "ndt-int8", "ndt:c"] {
        sandbox.refused(
            &format!("tune --policy {learned}"),
            &["ndt", "a rule is needed", "edt"],
        );
    }
    sandbox.refused("tune --policy dt:tuned", &["'tuned'", "one by one"]);
    sandbox.refused("train --low-level dt:tuned", &["'tuned'", "one by one"]);
    sandbox.refused("train --low-level DT", &["DT", "`dt`"]);
    sandbox.refused("train --low-level ndt", &["'ndt'", "there are dt, "]);
    sandbox.refused("train --objective FCT", &["FCT", "`fct`"]);
    sandbox.refused("list policies NDT", &["NDT", "`ndt`"]);
    sandbox.refused("sim --policy dt --split Train", &["Train", "`train`"]);
    sandbox.refused("sim --policy dt --set Load=1", &["Load", "`load`"]);
    sandbox.refused("sim --policy dt --scenario NDT-16x1g", &["`ndt-16x1g`"]);
    let slotted = "slotted --ports 4 --buffer 16";
    sandbox.refused(
        &format!("{slotted} --generate thm1 --policy LQD"),
        &["LQD", "`lqd`"],
    );
    sandbox.refused(
        &format!("{slotted} --generate Thm1 --policy lqd"),
        &["Thm1", "`thm1`"],
    );
    sandbox.refused(
        "export --checkpoint c --out e --format ONNX",
        &["ONNX", "`onnx`"],
    );
}

#[test]
fn an_unknown_objective_suggests_the_nearest() {
    let sandbox = Sandbox::new();
    sandbox.refused("train --objective fcd", &["fcd", "fct"]);
    sandbox.refused("train --objective fct=x", &["fct", "x"]);
    sandbox.refused(
        "train --low-level lqd",
        &["lqd", "control factor", "abm", "occamy"],
    );
    sandbox.refused("train --low-level etd", &["etd", "`edt`", "occamy"]);
}

#[test]
fn an_unknown_scenario_or_setting_suggests_the_nearest() {
    let sandbox = Sandbox::new();
    sandbox.refused(
        "sim --policy dt --scenario ndt-16x1",
        &["ndt-16x1", "`ndt-16x1g`"],
    );
    sandbox.refused(
        "sim --policy dt --set bufer_bytes=1",
        &["bufer_bytes", "`buffer_bytes`"],
    );
    sandbox.refused("sim --policy dt --set load=many", &["load", "many"]);
    sandbox.refused("train --set load=-1", &["load"]);
    sandbox.refused("list scenarios ndt", &["ndt"]);
    sandbox.refused("sim --policy dt --scenario missing.toml", &["missing.toml"]);
}

#[test]
fn an_unknown_key_in_a_scenario_file_is_found_by_its_line() {
    let sandbox = Sandbox::new();
    sandbox.write("mine.toml", "ports = 8\nbufer_bytes = 100\n");
    for command in ["sim --policy dt", "eval", "train"] {
        sandbox.refused(
            &format!("{command} --scenario mine.toml"),
            &["mine.toml:2", "bufer_bytes", "`buffer_bytes`"],
        );
    }
    sandbox.write("broken.toml", "ports = \n");
    sandbox.refused("sim --policy dt --scenario broken.toml", &["broken.toml:1"]);
}

#[test]
fn a_time_without_traffic_is_refused_with_a_remedy() {
    let sandbox = Sandbox::new();
    let short = "--scenario leafspine-4x4 --set warmup_ms=0 --set measure_ms=1 --set load=0.001 --set query_rate=0";
    let words = ["no flows", "`measure_ms`", "`load`", "`query_rate`"];
    sandbox.refused(&format!("sim --policy dt {short}"), &words);
    sandbox.refused(
        &format!("eval --policy dt {short} --traces 1 --quiet"),
        &words,
    );
    let training = sandbox.run(&format!("train --steps 20 {short} --quiet"));
    assert_eq!(training.code, Some(2), "{}", training.stderr);
    assert!(
        training.stderr.contains("`measure_ms`"),
        "{}",
        training.stderr
    );
}

#[test]
fn a_missing_trace_is_named() {
    Sandbox::new().refused("sim --policy dt --trace no.csv --out out", &["no.csv"]);
}

#[test]
fn a_malformed_trace_is_found_by_its_line_and_field() {
    let sandbox = Sandbox::new();
    let cases = [
        ("0,0,1,0,1000\n1,0,x,0,1000\n", ["bad.csv:3", "dst"]),
        ("0,0,1,0,-5\n", ["bad.csv:2", "size_bytes"]),
        ("0,0,1,0,0\n", ["bad.csv:2", "size_bytes"]),
        ("0,3,3,0,1000\n", ["bad.csv:2", "src"]),
        ("0,0,16,0,1000\n", ["bad.csv:2", "dst"]),
        ("0,0,1,-1,1000\n", ["bad.csv:2", "start_ns"]),
        ("0,0,1,0,10\n0,0,1,0,10\n", ["bad.csv:3", "id"]),
        ("0,0,1\n", ["bad.csv:2", "3 fields"]),
    ];
    for (rows, words) in cases {
        sandbox.write("bad.csv", &format!("{FLOWS}{rows}"));
        sandbox.refused("sim --policy dt --trace bad.csv --out out", &words);
    }
    sandbox.write("bad.csv", "id,src,dst,start_ns\n0,0,1,0\n");
    sandbox.refused(
        "sim --policy dt --trace bad.csv --out out",
        &["bad.csv", "size_bytes"],
    );
    sandbox.write("bad.csv", "");
    sandbox.refused("sim --policy dt --trace bad.csv --out out", &["bad.csv"]);
}

#[test]
fn numbers_that_make_no_sense_are_refused() {
    let sandbox = Sandbox::new();
    sandbox.refused("train --workers 0", &["--workers", "0"]);
    sandbox.refused("train --workers many", &["--workers", "many"]);
    sandbox.refused("train --steps 0", &["--steps"]);
    sandbox.refused("train --steps 10 --minutes 3", &["--steps", "--minutes"]);
    sandbox.refused("train --minutes -3", &["--minutes"]);
    sandbox.refused("eval --traces 0", &["--traces", "0"]);
    sandbox.refused("bench --seconds 0", &["--seconds"]);
    sandbox.refused("sim --policy dt --seed -1", &["--seed"]);
    sandbox.refused("sim --policy dt --split tests", &["tests", "test"]);
    sandbox.refused("sim --policy dt --timeline", &["--out"]);
}

#[test]
fn a_heuristic_that_does_not_fit_is_refused_before_a_run_folder_is_made() {
    let sandbox = Sandbox::new();
    sandbox.refused(
        "train --low-level dt+early:patience=2 --out run",
        &["low_level", "patience", "from=front"],
    );
    sandbox.refused(
        "train --low-level dt+early:from=front --set count_in_service=false --set ecn_uncounted_packets=2 --out run",
        &["low_level", "ecn_uncounted_packets=0"],
    );
    assert!(!sandbox.path("run").exists());
}

#[test]
fn a_mixture_needs_a_worker_for_every_switch() {
    let sandbox = Sandbox::new();
    sandbox.refused(
        "train --scenario mixed --workers 15",
        &["rollout.workers", "at least 16"],
    );
    sandbox.refused("train --scenario mixed --set load=-1", &["load"]);
    sandbox.write("mine.toml", "mixture = ['ndt-16x1g', 'ndt-16x2g']\n");
    sandbox.refused(
        "train --config mine.toml",
        &["mine.toml", "line 1", "ndt-16x1g"],
    );
    sandbox.write("mine.toml", "mixture = 'mixd'\n");
    sandbox.refused(
        "train --config mine.toml",
        &["mine.toml", "line 1", "\"mixed\""],
    );
}

#[test]
fn settings_of_the_start_are_checked() {
    let sandbox = Sandbox::new();
    for (setting, words) in [
        ("rule = [1.0]", ["start.rule", "16 finite numbers"]),
        ("candidates = 1", ["start.candidates", "2"]),
        ("share = 1.5", ["start.share", "1"]),
        ("generatons = 3", ["mine.toml", "generatons"]),
    ] {
        sandbox.write("mine.toml", &format!("[start]\n{setting}\n"));
        sandbox.refused("train --config mine.toml", &words);
    }
    sandbox.write("mine.toml", "[sac]\npolyak = 0.0\n");
    sandbox.refused("train --config mine.toml", &["polyak", "between"]);
}

#[test]
fn devices_that_are_not_built_in_are_refused() {
    let sandbox = Sandbox::new();
    sandbox.refused("train --device gpu", &["gpu", "cpu, wgpu and cuda"]);
    for device in DeviceChoice::ALL {
        if device.is_built_in() {
            continue;
        }
        let feature = format!("--features {device}");
        for command in ["train", "train --resume missing", "bench"] {
            sandbox.refused(
                &format!("{command} --device {device}"),
                &[device.name(), &feature, "--device cpu"],
            );
        }
    }
}

#[test]
fn an_output_folder_with_content_is_refused() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("full")).unwrap();
    sandbox.write("full/notes.txt", "mine");
    for command in ["train", "eval", "sim --policy dt"] {
        sandbox.refused(
            &format!("{command} --out full"),
            &["full", "not empty", "--force"],
        );
    }
    sandbox.write("flows.csv", "something");
    sandbox.refused("trace --out flows.csv", &["flows.csv", "exists", "--force"]);
}

#[test]
fn an_output_place_that_cannot_be_written_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("file", "x");
    for command in ["train", "eval", "sim --policy dt"] {
        sandbox.refused(&format!("{command} --out file/below"), &["file/below"]);
        sandbox.refused(&format!("{command} --out file"), &["file"]);
    }
    sandbox.refused("trace --out file/flows.csv", &["file/flows.csv"]);
}

#[test]
fn the_suite_needs_a_folder_and_has_its_own_scenarios() {
    let sandbox = Sandbox::new();
    sandbox.refused("eval --suite paper", &["--suite", "--out"]);
    sandbox.refused("eval --suite papr --out o", &["papr", "paper"]);
    sandbox.refused(
        "eval --suite paper --out o --set load=0.2",
        &["--suite", "--set"],
    );
}
