//! Places of results: whatever the name of a place, nothing outside it changes. Places that cannot be written
//! are refused before the work, and names can neither be confused nor control a terminal.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use bufgym::sim::scenario::Scenario;

use crate::faults::{FAST, FAST_TRAIN};
use crate::harness::{Run, Sandbox};

const SIM: &str = "sim --policy dt --quiet --set flows=5..5";
const TRACE: &str = "trace --quiet --set flows=5..5";

/// Writes a checkpoint whose export takes a second.
fn small_checkpoint(sandbox: &Sandbox) {
    let mut scenario = Scenario::default();
    for setting in ["flows=20..20", "active_ports=1..1", "buffer_bytes=100000"] {
        scenario.set(setting).unwrap();
    }
    sandbox.random_checkpoint_for("actor", &scenario);
}

/// Writes a folder next to the results that must stay unchanged.
fn victim(sandbox: &Sandbox) {
    fs::create_dir_all(sandbox.path("victim/sub")).unwrap();
    sandbox.write("victim/precious", "precious");
}

fn assert_untouched(sandbox: &Sandbox, context: &str) {
    let mut files = sandbox.files();
    files.retain(|file| file.starts_with("victim"));
    assert_eq!(
        files,
        ["victim", "victim/precious", "victim/sub"],
        "{context}"
    );
    assert_eq!(sandbox.read("victim/precious"), "precious", "{context}");
}

#[test]
fn a_folder_is_written_however_it_is_named() {
    let sandbox = Sandbox::new();
    for folder in ["empty", "a", "behind"] {
        fs::create_dir(sandbox.path(folder)).unwrap();
    }
    symlink("behind", sandbox.path("link")).unwrap();
    for (named, place) in [
        ("plain", "plain"),
        ("new/.", "new"),
        ("slash/", "slash"),
        ("empty/./", "empty"),
        ("a/../beside", "beside"),
        ("deep/er/out", "deep/er/out"),
        ("link", "behind"),
        ("link/below", "behind/below"),
    ] {
        let force = if named == "link/below" {
            " --force"
        } else {
            ""
        };
        sandbox.ok(&format!("{SIM} --out {named}{force}"));
        for file in ["fct.csv", "switches.csv", "summary.json"] {
            assert!(sandbox.path(place).join(file).is_file(), "{named}: {file}");
        }
    }
    assert!(sandbox.path("link").is_symlink());
    let hidden = |file: &String| file.split('/').any(|part| part.starts_with('.'));
    let left: Vec<String> = sandbox.files().into_iter().filter(hidden).collect();
    assert!(left.is_empty(), "{left:?}");
}

/// Results can be on another disk than the folders next to them.
#[test]
fn a_mounted_folder_and_one_on_another_disk_are_written() {
    let sandbox = Sandbox::new();
    let other = tempfile::tempdir_in("/dev/shm").unwrap();
    symlink(other.path(), sandbox.path("link")).unwrap();
    sandbox.ok(&format!("{SIM} --out link"));
    assert!(other.path().join("fct.csv").is_file() && sandbox.path("link").is_symlink());
    fs::create_dir(sandbox.path("disk")).unwrap();
    let program = env!("CARGO_BIN_EXE_bufgym");
    let script = format!("mount -t tmpfs none disk && {program} {SIM} --out disk && ls -A disk");
    let mut command = std::process::Command::new("unshare");
    command.args(["-rm", "sh", "-c", &script]);
    let run = Run::from(command.current_dir(sandbox.path(".")).output().unwrap());
    if run.stderr.contains("unshare") || run.stderr.contains("mount:") {
        eprintln!("skipped the mounted folder: {}", run.stderr);
        return;
    }
    assert_eq!(run.code, Some(0), "{}", run.stderr);
    assert!(
        run.stdout
            .ends_with("fct.csv\nsummary.json\nswitches.csv\n"),
        "{}",
        run.stdout
    );
}

/// A process that works in the folder sees the results, because the folder stays the same.
#[test]
fn the_folder_that_one_is_in_is_filled_and_not_replaced() {
    use std::os::unix::fs::MetadataExt as _;
    let sandbox = Sandbox::new();
    for named in [".", "./", "../here"] {
        let here = sandbox.path("here");
        fs::create_dir(&here).unwrap();
        let before = fs::metadata(&here).unwrap().ino();
        let mut command = sandbox.command(&format!("{SIM} --out {named}"));
        let run = Run::from(command.current_dir(&here).output().unwrap());
        assert_eq!(run.code, Some(0), "{named}: {}", run.stderr);
        assert_eq!(fs::metadata(&here).unwrap().ino(), before, "{named}");
        let files = [
            "here",
            "here/fct.csv",
            "here/summary.json",
            "here/switches.csv",
        ];
        assert_eq!(sandbox.files(), files, "{named}");
        fs::remove_dir_all(&here).unwrap();
    }
}

#[test]
fn a_place_that_leads_nowhere_is_refused_before_the_work() {
    let sandbox = Sandbox::new();
    small_checkpoint(&sandbox);
    symlink("nowhere", sandbox.path("dangling")).unwrap();
    symlink("loop", sandbox.path("loop")).unwrap();
    sandbox.write("file", "x");
    let folders = [
        format!("{SIM} --out"),
        "export --checkpoint actor --format c --out".to_owned(),
        "eval --policy dt --traces 1 --quiet --out".to_owned(),
        "train --steps 10 --quiet --out".to_owned(),
        "figures ndt --fig 8b --traces 1 --out".to_owned(),
        "credence train --quiet --out".to_owned(),
        "slotted --sweep fig14 --out".to_owned(),
        "headroom --traces 1 --out".to_owned(),
        "explain --traces 1 --out".to_owned(),
    ];
    for command in &folders {
        for place in [
            "dangling",
            "dangling/below",
            "loop",
            "file",
            "file/below",
            "no/..",
            "no/../out",
        ] {
            sandbox.refused(
                &format!("{command} {place}"),
                &[place.split('/').next().unwrap()],
            );
        }
    }
    let files = [
        format!("{TRACE} --out"),
        format!("{SIM} --pcap"),
        "sim --policy dt --quiet --set flows=5..5 --out new --pcap".to_owned(),
    ];
    for command in &files {
        for place in [
            "dangling",
            "dangling/below",
            "loop",
            "file",
            "file/below",
            "new/",
            ".",
        ] {
            sandbox.refused(&format!("{command} {place}"), &["output file"]);
        }
    }
    for command in [SIM, TRACE] {
        let run = sandbox
            .command(command)
            .args(["--out", ""])
            .output()
            .unwrap();
        let run = Run::from(run);
        assert_eq!(run.code, Some(2), "{}", run.stderr);
        assert!(run.stderr.contains("--out"), "{}", run.stderr);
    }
}

#[test]
fn links_below_a_folder_are_replaced_and_not_followed() {
    let sandbox = Sandbox::new();
    small_checkpoint(&sandbox);
    for (command, links) in [
        (
            "export --checkpoint actor --format c --quiet",
            ["golden", "ndt_f32.c"],
        ),
        (SIM, ["fct.csv", "summary.json"]),
    ] {
        victim(&sandbox);
        fs::create_dir(sandbox.path("out")).unwrap();
        let [first, second] = links.map(|link| sandbox.path("out").join(link));
        let to_folder = command.starts_with("export");
        symlink(
            if to_folder {
                "../victim"
            } else {
                "../victim/precious"
            },
            &first,
        )
        .unwrap();
        symlink("../victim/precious", &second).unwrap();
        sandbox.ok(&format!("{command} --out out --force"));
        assert_untouched(&sandbox, command);
        for written in [first, second] {
            assert!(
                !written.is_symlink() && written.exists(),
                "{}",
                written.display()
            );
        }
        fs::remove_dir_all(sandbox.path("out")).unwrap();
    }
}

/// A folder is not removed to make room for a file.
#[test]
fn a_folder_in_place_of_a_file_is_refused_before_the_work_where_names_are_known() {
    let sandbox = Sandbox::new();
    fs::create_dir_all(sandbox.path("out/fct.csv")).unwrap();
    sandbox.write("out/fct.csv/mine", "precious");
    sandbox.refused(
        &format!("{SIM} --out out --force"),
        &["out", "fct.csv", "is a folder"],
    );

    small_checkpoint(&sandbox);
    fs::create_dir_all(sandbox.path("exported/golden/actions-4.npy")).unwrap();
    let run = sandbox.run("export --checkpoint actor --format c --quiet --out exported --force");
    assert_eq!(run.code, Some(1), "{}", run.stderr);
    let words = "exported/golden/actions-4.npy is a folder where a file is to be written: the result is in exported-2";
    assert!(run.stderr.contains(words), "{}", run.stderr);
    assert!(sandbox.path("exported-2/golden/actions-4.npy").is_file());
    let kept = fs::read_dir(sandbox.path("exported")).unwrap().count();
    assert_eq!(kept, 1, "nothing was put beside what was in the way");
}

#[test]
fn parts_are_not_kept_behind_a_link_and_what_is_not_a_part_stays() {
    let sandbox = Sandbox::new();
    let tiny = "figures abm --fig 8 --seeds 1 --set leaves=2 --set hosts_per_leaf=4 --set spines=1 \
        --set links_per_pair=1 --set active_ports=8 --set incast_degree=7 --set measure_ms=2 \
        --set query_rate=200 --quiet";
    victim(&sandbox);
    for target in ["victim", "nowhere", "victim/precious"] {
        symlink(target, sandbox.path("k.parts")).unwrap();
        for out in ["k", "k/"] {
            sandbox.refused(&format!("{tiny} --out {out}"), &["k.parts", "link"]);
        }
        fs::remove_file(sandbox.path("k.parts")).unwrap();
    }
    fs::create_dir(sandbox.path("k.parts")).unwrap();
    sandbox.write("k.parts/notes.json", "mine");
    sandbox.ok(&format!("{tiny} --out k/"));
    assert!(sandbox.path("k/index.html").is_file());
    assert_eq!(sandbox.read("k.parts/notes.json"), "mine");
    assert_eq!(fs::read_dir(sandbox.path("k.parts")).unwrap().count(), 1);
    assert_untouched(&sandbox, "parts");
}

#[test]
fn a_capture_or_record_may_lie_below_the_folder_of_the_results() {
    let sandbox = Sandbox::new();
    sandbox.random_checkpoint("c");
    sandbox.ok(&format!("{SIM} --out o --pcap o/c.pcap"));
    sandbox.ok(&format!("{SIM} --out deep/o --pcap deep/o/er/c.pcap"));
    sandbox.ok("sim --policy ndt:c --quiet --set flows=5..5 --out r --record-control r/r.txt");
    for file in [
        "o/c.pcap",
        "o/fct.csv",
        "deep/o/er/c.pcap",
        "deep/o/fct.csv",
        "r/r.txt",
        "r/fct.csv",
    ] {
        assert!(
            fs::metadata(sandbox.path(file)).unwrap().len() > 0,
            "{file}"
        );
    }
    fs::create_dir(sandbox.path("p")).unwrap();
    symlink("p", sandbox.path("link")).unwrap();
    sandbox.ok(&format!("{SIM} --out link --pcap p/c.pcap"));
    assert!(sandbox.path("p/fct.csv").is_file() && sandbox.path("p/c.pcap").is_file());
    for pcap in ["n/fct.csv", "n/timeline.csv/x", "n", "x/../n"] {
        fs::create_dir_all(sandbox.path("x")).unwrap();
        sandbox.refused(
            &format!("{SIM} --out n --pcap {pcap}"),
            &["output file", pcap, "n"],
        );
    }
    sandbox.refused(
        &format!("{SIM} --out n/below --pcap n"),
        &["output file n", "n/below"],
    );
}

/// A failed run leaves no folders that were made for it.
#[test]
fn a_run_that_fails_leaves_no_folder() {
    let sandbox = Sandbox::new();
    let scenario = "--scenario leafspine-4x4 --set warmup_ms=0 --set measure_ms=1 --set load=0.001 --set query_rate=0";
    sandbox.refused(
        &format!("sim --policy dt {scenario} --out a/b/c"),
        &["no flows"],
    );
    sandbox.refused(&format!("trace {scenario} --out a/b/c.csv"), &["no flows"]);
}

#[test]
fn what_the_shell_has_opened_is_written_and_not_replaced() {
    let sandbox = Sandbox::new();
    sandbox.ok(&format!("{TRACE} --out flows.csv"));
    let device = fs::symlink_metadata("/dev/stdout").unwrap();
    for (place, mode) in [
        ("/dev/stdout", "w"),
        ("/dev/stdout", "a"),
        ("/proc/self/fd/1", "w"),
        ("/dev/fd/1", "w"),
    ] {
        let path = sandbox.write("redirected", "before\n");
        let mut options = fs::OpenOptions::new();
        let file = match mode {
            "a" => options.append(true).open(&path),
            _ => options.write(true).truncate(true).open(&path),
        };
        let mut command = sandbox.command(&format!("{TRACE} --out {place}"));
        let run = Run::from(command.stdout(file.unwrap()).output().unwrap());
        assert_eq!(run.code, Some(0), "{place}: {}", run.stderr);
        let before = if mode == "a" { "before\n" } else { "" };
        let expected = format!("{before}{}", sandbox.read("flows.csv"));
        assert_eq!(sandbox.read("redirected"), expected, "{place} {mode}");
    }
    let after = fs::symlink_metadata("/dev/stdout").unwrap();
    assert_eq!(after.file_type(), device.file_type());
    let piped = sandbox.ok(&format!("{TRACE} --out /dev/stdout"));
    assert_eq!(piped.stdout, sandbox.read("flows.csv"));
}

/// A name that clears a screen, sets the title of a window and forges a line.
const NASTY: &str = "evil\u{1b}[2J\u{7}\u{9b}31m\u{202e}\nforged";

fn is_harmless(text: &str) -> bool {
    let is_bad = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
    !text.contains(is_bad) && !text.lines().any(|line| line.starts_with("forged"))
}

#[test]
fn names_of_files_cannot_control_a_terminal_or_a_drawing() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path(NASTY)).unwrap();
    let table = "round,decisions,validation\n1,10,0.9\n2,20,0.8\n";
    fs::write(sandbox.path(NASTY).join("metrics.csv"), table).unwrap();
    sandbox.validated_checkpoint("first", 1, 0.9);
    sandbox.validated_checkpoint("second", 2, 0.8);
    fs::rename(sandbox.path("second"), sandbox.path(NASTY).join("second")).unwrap();
    let second = format!("{NASTY}/second");
    let (svg, flows) = (format!("{NASTY}/a.svg"), format!("{NASTY}/flows.csv"));
    let folder = |name: &str| format!("{NASTY}/{name}");
    let scenario = "name = \"evil\u{202e}31m\"\nflows = 5\n";
    sandbox.write("evil.toml", scenario);
    let commands: [&[&str]; 9] = [
        &["runs", "curves", NASTY, "--out", &svg],
        &["trace", "--set", "flows=5..5", "--out", &flows],
        &[
            "runs",
            "choose",
            "first",
            &second,
            "--out",
            &folder("chosen"),
        ],
        &[
            "sim",
            "--policy",
            "dt",
            "--trace",
            &flows,
            "--out",
            &folder("sim"),
        ],
        &[
            "sim",
            "--policy",
            &format!("ndt:{second}"),
            "--trace",
            &flows,
        ],
        &[
            "eval",
            "--policy",
            &format!("ndt:{second}"),
            "--traces",
            "1",
            "--set",
            "flows=5..5",
            "--out",
            &folder("eval"),
        ],
        &["sim", "--policy", "dt", "--scenario", "evil.toml"],
        &["list", "scenarios", "evil.toml"],
        &["sim", "--policy", &format!("nothing{NASTY}")],
    ];
    for arguments in commands {
        let output = sandbox.command("").args(arguments).output().unwrap();
        let run = Run::from(output);
        let is_nothing = arguments.last().unwrap().starts_with("nothing");
        let expected = if is_nothing { 2 } else { 0 };
        assert_eq!(run.code, Some(expected), "{arguments:?}: {}", run.stderr);
        for text in [&run.stdout, &run.stderr] {
            assert!(is_harmless(text), "{arguments:?}: {text:?}");
        }
    }
    for name in ["a.svg", "eval/cdf-mean-fct.svg"] {
        let svg = fs::read_to_string(sandbox.path(NASTY).join(name)).unwrap();
        assert!(is_harmless(&svg.replace("\nforged", "")), "{svg}");
        // The comparison names its policies after the last part of their names.
        assert_eq!(svg.contains("evil\\u{1b}[2J"), name == "a.svg", "{svg}");
    }
    let printed = sandbox.ok("list scenarios evil.toml").stdout;
    sandbox.write("printed.toml", &printed);
    assert_eq!(sandbox.ok("list scenarios printed.toml").stdout, printed);
    let reread = Scenario::load(&sandbox.path("printed.toml").display().to_string()).unwrap();
    assert_eq!(reread.name, "evil\u{202e}31m");
}

/// Names of files are bytes, and need not be text.
#[test]
fn a_name_that_is_no_text_is_a_name() {
    use std::os::unix::ffi::OsStrExt as _;
    let sandbox = Sandbox::new();
    small_checkpoint(&sandbox);
    sandbox.validated_checkpoint("first", 1, 0.9);
    sandbox.validated_checkpoint("second", 2, 0.8);
    sandbox.write("fast.toml", FAST);
    for (number, command) in [
        "trace --set flows=5..5",
        "sim --policy dt --set flows=5..5",
        "export --checkpoint actor --format c",
        "runs choose first second",
        FAST_TRAIN,
    ]
    .into_iter()
    .enumerate()
    {
        for (json, name) in [("", b"bad\xff"), (" --json", b"bad\xfe")] {
            let place = sandbox.path(&number.to_string());
            let place = place.with_extension(OsStr::from_bytes(name));
            let mut run = sandbox.command(&format!("{command}{json} --out"));
            let run = run.arg(&place).output().unwrap();
            let text = String::from_utf8_lossy(&run.stderr);
            assert_eq!(run.status.code(), Some(0), "{command}: {text}");
            assert!(place.exists(), "{command}");
        }
    }
}

#[test]
fn a_time_without_traffic_is_bad_input_of_every_command() {
    let sandbox = Sandbox::new();
    let tiny = "--seeds 1 --set leaves=2 --set hosts_per_leaf=4 --set spines=1 --set links_per_pair=1 \
        --set active_ports=8 --set incast_degree=7 --set measure_ms=1 --set query_rate=0 --quiet";
    for command in ["figures abm --fig 7", "figures credence --fig 6"] {
        let run = sandbox.run(&format!("{command} {tiny} --out f"));
        assert_eq!(run.code, Some(2), "{command}: {}", run.stderr);
        assert!(run.stderr.contains("no flows"), "{command}: {}", run.stderr);
        assert!(!sandbox.path("f").exists());
    }
    let short = "--scenario leafspine-4x4 --set warmup_ms=0 --set measure_ms=1 --set load=0.001 --set query_rate=0 --quiet";
    for command in [
        "sim --policy dt",
        "trace --out flows.csv",
        "eval --policy dt --traces 1",
        "train --steps 20 --out run",
        "tune --policy dt --simulations 100",
        "tune all --simulations 100",
        "tune linear --traces 1 --generations 1",
        "credence train --traces 2 --out forest",
    ] {
        let run = sandbox.run(&format!("{command} {short}"));
        assert_eq!(run.code, Some(2), "{command}: {}", run.stderr);
        assert!(run.stderr.contains("no flows"), "{command}: {}", run.stderr);
    }
    assert!(
        Path::new(&sandbox.path("flows.csv"))
            .symlink_metadata()
            .is_err()
    );
}
