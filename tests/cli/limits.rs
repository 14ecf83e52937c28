//! No input takes unbounded memory or time, and no message shows more of it than an excerpt.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::harness::{Run, Sandbox};

/// Address space of a run, kB: the program alone takes half of it.
const MEMORY_KB: u32 = 1_000_000;

/// Runs the binary in the sandbox with little memory; an unbounded reader would abort.
fn run_in_little_memory(sandbox: &Sandbox, arguments: &[&str]) -> Run {
    let script = format!("ulimit -v {MEMORY_KB}; exec \"$0\" \"$@\"");
    let output = Command::new("sh")
        .args(["-c", &script, env!("CARGO_BIN_EXE_bufgym")])
        .args(arguments)
        .current_dir(sandbox.path("."))
        .output()
        .unwrap();
    Run::from(output)
}

/// Expects exit code 2 and one readable line; returns it.
fn refusal(sandbox: &Sandbox, arguments: &[&str]) -> String {
    let run = run_in_little_memory(sandbox, arguments);
    let shown: Vec<String> = arguments
        .iter()
        .map(|text| text.chars().take(60).collect())
        .collect();
    let start: String = run.stderr.chars().take(3_000).collect();
    let context = format!("bufgym {shown:?}: {start}");
    assert_eq!(run.code, Some(2), "{context}");
    assert_eq!(run.stdout, "", "{context}");
    let line = run.stderr.strip_suffix('\n').unwrap();
    assert!(!line.contains(char::is_control), "{context}");
    assert!(line.chars().count() <= 2_010, "{context}");
    assert!(!line.contains("panicked"), "{context}");
    line.to_owned()
}

fn words(arguments: &str) -> Vec<&str> {
    arguments.split_whitespace().collect()
}

/// Writes a file with a size of 64 GB that takes no space on the disk.
fn sparse(path: &Path) {
    fs::File::create(path).unwrap().set_len(1 << 36).unwrap();
}

const TRAIN: &str = "train --config tiny.toml --steps 24 --out run --quiet";
const TINY: &str = "\
[rollout]
workers = 2
decisions_per_round = 4
learning_starts = 8
[start]
generations = 0
[learner]
updates_per_round = 1
replay_capacity = 100
n_step = 2
[sac]
batch_size = 4
[validation]
every_decisions = 1000
traces = 1
final_traces = 0
[checkpoint]
every_rounds = 1
[scenario]
ports = 4
flows = 20
workload = 'fb_hadoop'
incast_degree = '1..3'
active_ports = '1..4'
";

#[test]
fn an_endless_or_huge_file_or_a_folder_is_refused_as_any_input() {
    let sandbox = Sandbox::new();
    sandbox.random_checkpoint("c");
    sparse(&sandbox.path("sparse"));
    fs::create_dir(sandbox.path("folder")).unwrap();
    let readers = [
        "sim --policy dt --trace @",
        "sim --policy dt --scenario @",
        "train --scenario @",
        "train --config @",
        "train --resume @",
        "list scenarios @",
        "trace --from-pcap @ --out flows.csv",
        "slotted --policy lqd --ports 4 --buffer 16 --arrivals @",
        "infer --checkpoint c --observations @ --out actions.npy",
        "sim --policy linear:@",
        "sim --policy credence:model=@",
        "sim --policy ndt:@",
        "sim --policy ndt-int8:@",
        "export --checkpoint @ --format c --out exported",
        "explain --checkpoint @ --out explained",
        "runs curves @ --out figure.svg",
        "runs choose c @ --out chosen",
    ];
    for reader in readers {
        for file in ["/dev/zero", "sparse", "folder", "missing"] {
            refusal(&sandbox, &words(&reader.replace('@', file)));
        }
    }
}

#[test]
fn an_endless_or_huge_file_in_a_folder_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("tiny.toml", TINY);
    sandbox.ok(TRAIN);
    let step = "run/checkpoints/step-24";
    for old in ["step-0", "step-16"] {
        let _ = fs::remove_dir_all(sandbox.path("run/checkpoints").join(old));
    }
    sandbox.random_checkpoint("c");
    for folder in ["int8", "forest", "checkpoints/tuned"] {
        fs::create_dir_all(sandbox.path(folder)).unwrap();
    }
    let resume = "train --resume run --steps 32 --quiet";
    let cases = [
        ("c/manifest.json".to_owned(), "sim --policy ndt:c"),
        ("c/actor.safetensors".to_owned(), "sim --policy ndt:c"),
        (
            "int8/ndt_int8.json".to_owned(),
            "sim --policy ndt-int8:int8",
        ),
        (
            "forest/forest.json".to_owned(),
            "sim --policy credence:model=forest",
        ),
        (
            "checkpoints/tuned/ndt-16x1g.json".to_owned(),
            "sim --policy dt:tuned",
        ),
        ("run/metrics.csv".to_owned(), "runs curves run --out c.svg"),
        (format!("{step}/state.json"), resume),
        (format!("{step}/state.sha256"), resume),
        (format!("{step}/replay.bin"), resume),
        (format!("{step}/sac/sac.json"), resume),
        (format!("{step}/sac/sac.sha256"), resume),
        (format!("{step}/sac/networks.safetensors"), resume),
        (format!("{step}/sac/critic-1.adam.bpk"), resume),
    ];
    for (file, command) in cases {
        let path = sandbox.path(&file);
        let good = fs::read(&path).ok();
        let refused = |kind: &str| {
            // A warning about a skipped checkpoint may come before the refusal.
            let run = run_in_little_memory(&sandbox, &words(command));
            assert_eq!(run.code, Some(2), "{kind} {file}: {}", run.stderr);
            let name = path.file_name().unwrap().to_str().unwrap();
            assert!(run.stderr.contains(name), "{kind} {file}: {}", run.stderr);
            fs::remove_file(&path).unwrap();
        };
        let _ = fs::remove_file(&path);
        symlink("/dev/zero", &path).unwrap();
        refused("endless");
        sparse(&path);
        refused("huge");
        if let Some(good) = good {
            fs::write(&path, good).unwrap();
        }
    }
    let config = sandbox.read("run/config.toml");
    sparse(&sandbox.path("run/config.toml"));
    assert!(refusal(&sandbox, &words(resume)).contains("config.toml"));
    sandbox.write("run/config.toml", &config);
    sandbox.ok(resume);
}

/// Returns every file below the folder.
fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let entries = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let below = entries.flat_map(|path| match path.is_dir() {
        true => files(&path),
        false => vec![path],
    });
    below.collect()
}

#[test]
fn a_changed_byte_in_any_file_of_a_stored_state_is_noticed() {
    let sandbox = Sandbox::new();
    sandbox.write("tiny.toml", TINY);
    sandbox.ok(TRAIN);
    let newest = sandbox.path("run/checkpoints/step-24");
    let older = sandbox.path("run/checkpoints/step-16");
    let names: Vec<_> = files(&newest)
        .iter()
        .map(|file| file.strip_prefix(&newest).unwrap().to_owned())
        .collect();
    assert_eq!(names.len(), 12, "{names:?}");
    for name in names {
        let flip = |folder: &Path| {
            let path = folder.join(&name);
            let good = fs::read(&path).unwrap();
            let mut bad = good.clone();
            bad[good.len() / 2] ^= 1;
            fs::write(&path, bad).unwrap();
            (path, good)
        };
        let damaged = [flip(&newest), flip(&older)];
        let run = sandbox.run("train --resume run --steps 32 --quiet");
        assert_eq!(run.code, Some(2), "{}: {}", name.display(), run.stderr);
        let file = name.file_name().unwrap().to_str().unwrap();
        assert!(
            run.stderr.contains(file),
            "{}: {}",
            name.display(),
            run.stderr
        );
        for (path, good) in damaged {
            fs::write(path, good).unwrap();
        }
    }
    // The older state is used if only the newest is damaged.
    fs::write(newest.join("sac/sac.json"), "{}").unwrap();
    let run = sandbox.ok("train --resume run --steps 32 --quiet");
    assert!(run.stderr.contains("sac.json"), "{}", run.stderr);
}

#[test]
fn what_does_not_fit_into_memory_is_refused_before_it_begins() {
    let sandbox = Sandbox::new();
    let with_capacity = |capacity: &str| {
        TINY.replace(
            "replay_capacity = 100",
            &format!("replay_capacity = {capacity}"),
        )
    };
    sandbox.write("replay.toml", &with_capacity("9_000_000_000"));
    sandbox.write("workers.toml", &with_capacity("10_000"));
    let cases = [
        ("train --config replay.toml", "learner.replay_capacity"),
        (
            "train --config workers.toml --workers 4096 --set flows=10000000",
            "rollout.workers",
        ),
        ("eval --traces 1000000 --set flows=10000000", "traces"),
        (
            "tune --policy dt --traces 1000000 --set flows=100000",
            "traces",
        ),
        (
            "tune linear --out l.json --traces 1000000 --set flows=100000",
            "traces",
        ),
        (
            "explain --out e --traces 1000000 --set flows=100000",
            "traces",
        ),
        (
            "credence train --out f --traces 10000 --set flows=100000",
            "traces",
        ),
        (
            "sim --policy dt --set flows=10000000 --set workload=fb_hadoop --set load=1",
            "flows",
        ),
        (
            "trace --out f.csv --set flows=10000000 --set workload=fb_hadoop --set load=1",
            "flows",
        ),
        (
            "slotted --policy lqd --ports 4 --buffer 16 --generate poisson-bursts --rounds 3000000",
            "--rounds",
        ),
    ];
    for (command, lower) in cases {
        let message = refusal(&sandbox, &words(command));
        assert!(message.contains("of memory"), "{command}: {message}");
        assert!(message.contains(lower), "{command}: {message}");
    }
}

#[test]
fn flags_have_limits() {
    let sandbox = Sandbox::new();
    for (command, word) in [
        ("train --workers 4294967295", "--workers"),
        ("train --threads 4294967295", "--threads"),
        ("train --steps 18446744073709551615", "--steps"),
        ("train --minutes 1e308", "--minutes"),
        ("train --minutes inf", "--minutes"),
        ("train --seed 18446744073709551615", "seed"),
        ("eval --traces 18446744073709551615", "--traces"),
        ("tune --policy dt --traces 4294967295", "--traces"),
        ("sim --policy dt --set flows=1000000000", "flows"),
        ("bench --seconds 1e308", "--seconds"),
    ] {
        let message = refusal(&sandbox, &words(command));
        assert!(message.contains(word), "{command}: {message}");
    }
}

/// Returns text that would fill and colour a terminal.
fn hostile(length: usize) -> String {
    format!("\u{1b}[31mred\u{7}{}", "x".repeat(length))
}

#[test]
fn messages_show_excerpts_of_arguments() {
    let sandbox = Sandbox::new();
    // Linux accepts at most 128 kB per argument.
    for text in [hostile(100_000), hostile(3), "a\nb\r\nc".to_owned()] {
        for command in [
            "@",
            "--@",
            "sim --policy @",
            "sim --policy @:tuned",
            "sim --policy dt:@=1",
            "sim --policy dt:alpha=@",
            "sim --policy dt:@",
            "sim --policy ndt:@",
            "sim --policy linear:@",
            "sim --policy dt --scenario @",
            "sim --policy dt --set @",
            "sim --policy dt --set @=1",
            "sim --policy dt --set load=@",
            "sim --policy dt --set flows=@",
            "sim --policy dt --set transport=@",
            "sim --policy dt --split @",
            "sim --policy dt --index @",
            "sim --policy dt --trace @",
            "sim --policy dt --seed @",
            "eval --suite @",
            "eval --policy @ --traces 1",
            "train --objective @",
            "train --objective fct=@",
            "train --low-level @",
            "train --device @",
            "train --workers @",
            "train --minutes @",
            "train --config @",
            "train --resume @",
            "tune --policy @",
            "tune --policy dt --objective @",
            "slotted --ports 4 --buffer 16 --generate thm1 --policy @",
            "slotted --ports 4 --buffer 16 --generate @ --policy lqd",
            "slotted --ports 4 --buffer 16 --generate thm1 --policy lqd --order @",
            "slotted --sweep @",
            "slotted --policy lqd --ports 4 --buffer 16 --arrivals @",
            "export --checkpoint @ --format c --out e",
            "export --checkpoint c --format @ --out e",
            "infer --checkpoint c --observations @ --out e",
            "list policies @",
            "list scenarios @",
            "runs curves @ --out c.svg",
            "runs choose c @ --out chosen",
            "trace --from-pcap @ --out f.csv",
        ] {
            let arguments: Vec<String> = command
                .split_whitespace()
                .map(|word| word.replace('@', &text))
                .collect();
            let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
            refusal(&sandbox, &arguments);
        }
    }
}

#[test]
fn messages_show_excerpts_of_files() {
    let sandbox = Sandbox::new();
    sandbox.random_checkpoint("c");
    let manifest = sandbox.read("c/manifest.json");
    let text = hostile(500_000);
    let json = text
        .replace('\u{1b}', "\\u001b")
        .replace('\u{7}', "\\u0007");
    let cases: [(&str, String, &str); 15] = [
        (
            "flows.csv",
            format!("{text}\n1\n"),
            "sim --policy dt --trace flows.csv",
        ),
        (
            "flows.csv",
            format!("id,src,dst,start_ns,size_bytes\n{text},0,1,0,1\n"),
            "sim --policy dt --trace flows.csv",
        ),
        (
            "flows.csv",
            format!("id,src,dst,start_ns,size_bytes,kind\n0,0,1,0,1,{text}\n"),
            "sim --policy dt --trace flows.csv",
        ),
        (
            "s.toml",
            format!("\"{json}\" = 1\n"),
            "sim --policy dt --scenario s.toml",
        ),
        (
            "s.toml",
            format!("load = \"{json}\"\n"),
            "sim --policy dt --scenario s.toml",
        ),
        (
            "s.toml",
            format!("{text}\n"),
            "sim --policy dt --scenario s.toml",
        ),
        (
            "t.toml",
            format!("\"{json}\" = 1\n"),
            "train --config t.toml",
        ),
        (
            "t.toml",
            format!("seed = \"{json}\"\n"),
            "train --config t.toml",
        ),
        (
            "t.toml",
            format!("objective = \"{json}\"\n"),
            "train --config t.toml",
        ),
        (
            "a.csv",
            format!("slot,port\n0,{text}\n"),
            "slotted --policy lqd --ports 4 --buffer 16 --arrivals a.csv",
        ),
        (
            "c/manifest.json",
            manifest.replacen("\"seed\"", &format!("\"{json}\""), 1),
            "sim --policy ndt:c",
        ),
        (
            "c/manifest.json",
            manifest.replacen("\"ndt-actor\"", &format!("\"{json}\""), 1),
            "sim --policy ndt:c",
        ),
        (
            "l.json",
            format!("\"{json}\""),
            "sim --policy linear:l.json",
        ),
        (
            "l.json",
            format!("{{\"format\": \"{json}\"}}"),
            "sim --policy linear:l.json",
        ),
        (
            "forest.json",
            format!("{{\"format\": \"{json}\", \"version\": 1, \"features\": []}}"),
            "sim --policy credence:model=forest.json",
        ),
    ];
    for (file, content, command) in cases {
        sandbox.write(file, &content);
        let message = refusal(&sandbox, &words(command));
        assert!(message.chars().count() < 1_000, "{command}: {message}");
    }
}

#[test]
fn shapes_that_announce_what_is_not_there_are_refused() {
    let sandbox = Sandbox::new();
    sandbox.random_checkpoint("c");
    for shape in [
        "0, 0, 8, 5",
        "1, 0, 8, 5",
        "0, 2305843009213693952, 8, 5",
        "2305843009213693952, 0, 8, 5",
        "2305843009213693952, 1, 8, 5",
        "18446744073709551616, 1, 8, 5",
    ] {
        let header = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': ({shape}), }}\n");
        let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
        bytes.extend(u16::try_from(header.len()).unwrap().to_le_bytes());
        bytes.extend(header.as_bytes());
        fs::write(sandbox.path("o.npy"), bytes).unwrap();
        let message = refusal(
            &sandbox,
            &words("infer --checkpoint c --observations o.npy --out a.npy"),
        );
        assert!(message.contains("shape"), "{shape}: {message}");
    }
}

#[test]
fn curves_of_any_numbers_are_drawn() {
    let sandbox = Sandbox::new();
    fs::create_dir(sandbox.path("run")).unwrap();
    for results in [
        ["1e308", "-1e308"],
        ["5e-324", "1e308"],
        ["0.5", "0.5"],
        ["NaN", "1"],
    ] {
        let [first, second] = results;
        sandbox.write(
            "run/metrics.csv",
            &format!("decisions,validation\n1,{first}\n2,{second}\n"),
        );
        let run = run_in_little_memory(&sandbox, &words("runs curves run --out c.svg --force"));
        assert_eq!(run.code, Some(0), "{results:?}: {}", run.stderr);
        assert!(sandbox.read("c.svg").len() < 100_000, "{results:?}");
    }
    sandbox.write("run/metrics.csv", "decisions,validation\n1e308,1\n");
    refusal(&sandbox, &words("runs curves run --out c.svg --force"));
}

#[test]
fn an_export_of_a_huge_scenario_simulates_a_part_of_it() {
    let sandbox = Sandbox::new();
    sandbox.random_checkpoint("c");
    let manifest = sandbox.read("c/manifest.json");
    let huge = manifest.replacen("flows = \\\"100..1000\\\"", "flows = 10000000", 1);
    let huge = huge.replacen("load = 0.5", "load = 1.5", 1);
    let huge = huge.replacen("\\\"web_search\\\"", "\\\"fb_hadoop\\\"", 1);
    assert_ne!(huge, manifest);
    assert!(huge.contains("flows = 10000000"));
    sandbox.write("c/manifest.json", &huge);
    let run = run_in_little_memory(
        &sandbox,
        &words("export --checkpoint c --format safetensors --out e --quiet"),
    );
    assert_eq!(run.code, Some(0), "{}", run.stderr);
}
