//! Recorded runs, replayed by `dataplane/replay.c` with a stand-in for the network.

use std::path::Path;
use std::process::{Command, Output};

use bufgym_env::control::{
    CodeHistory, ControlOptions, Controller, FEATURES, FixedAlpha, HISTORY, Reading, RunOptions,
    cell_centre, run_recorded,
};
use bufgym_sim::network::SimError;
use bufgym_sim::scenario::Scenario;
use bufgym_sim::traffic::generate;
use bufgym_util::rng::{self, Split, trace_seed};

use crate::dataplane::compiler::{BUILDS, Build, text};
use crate::mutate::Mutator;

const FILES: [&str; 2] = [
    "dataplane/replay.c",
    "env/tests/suite/dataplane/standin/ndt_int8.c",
];

const FAB: &str = "fab:alpha_short=2048,short_bytes=10000,idle_us=100";

/// `standin/ndt_int8.c`: levels by a hash of all codes (FNV-1a).
struct Hashed(CodeHistory);

fn mixed(hash: u32, value: u32) -> u32 {
    (hash ^ value).wrapping_mul(16_777_619)
}

impl Controller for Hashed {
    fn act(&mut self, _observation: &[f32], _ports: usize, _action: &mut [f32]) {
        panic!("decides from the codes");
    }

    fn decide(&mut self, at: &Reading<'_>, action: &mut [f32]) -> Result<(), SimError> {
        const START: u32 = 2_166_136_261;
        self.0.observe(at);
        let ports = self.0.as_slice().chunks(HISTORY * FEATURES);
        let hash = |codes: &[u8]| codes.iter().fold(START, |h, &c| mixed(h, u32::from(c)));
        let hashes: Vec<u32> = ports.map(hash).collect();
        let all = hashes.iter().fold(START, |h, &port| mixed(h, port));
        let outputs = at.outputs();
        for (place, value) in action.iter_mut().enumerate() {
            let (hash, output) = (hashes[place / outputs], place % outputs);
            *value = cell_centre((mixed(all, hash) >> (13 + 4 * output) & 7) as usize);
        }
        Ok(())
    }
}

/// A recorded run of the control over `low_level`.
fn record(changes: &[&str], low_level: &str, trace: u64) -> String {
    let mut scenario = Scenario::default();
    for change in ["flows=80"].iter().chain(changes) {
        scenario.set(change).unwrap();
    }
    let mut agent = Hashed(CodeHistory::new(scenario.port_count()));
    recorded(&scenario, low_level, trace, &mut agent)
}

fn recorded(
    scenario: &Scenario,
    low_level: &str,
    trace: u64,
    agent: &mut dyn Controller,
) -> String {
    let trace = generate(scenario, trace_seed(Split::Train, 1, trace));
    let options = RunOptions {
        control: ControlOptions {
            low_level: low_level.parse().unwrap(),
            ..ControlOptions::default()
        },
        ..RunOptions::default()
    };
    let mut out = Vec::new();
    run_recorded(scenario, &trace, agent, &options, "test", &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// The builds of the replay that can be made here, each in a folder of its own.
fn replays() -> Vec<(tempfile::TempDir, std::path::PathBuf)> {
    replays_with(&[])
}

/// Returns the builds of the replay for a network that also sets early drop.
fn early_replays() -> Vec<(tempfile::TempDir, std::path::PathBuf)> {
    replays_with(&["-DSTANDIN_EARLY"])
}

fn replays_with(defines: &[&str]) -> Vec<(tempfile::TempDir, std::path::PathBuf)> {
    let program = |build: &Build| {
        let folder = tempfile::tempdir().unwrap();
        let program = build.program(folder.path(), &FILES, defines)?;
        Some((folder, program))
    };
    BUILDS.iter().filter_map(program).collect()
}

fn replay(program: &Path, record: &str) -> Output {
    let path = program.with_extension("record");
    std::fs::write(&path, record).unwrap();
    Command::new(program).arg(&path).output().unwrap()
}

/// Returns the number that the replay prints under a name.
fn count(output: &Output, name: &str) -> u64 {
    let text = text(output);
    let line = text.lines().find_map(|line| line.strip_prefix(name));
    line.unwrap_or_else(|| panic!("no {name} in {text}"))
        .trim()
        .parse()
        .unwrap()
}

#[test]
fn a_replay_agrees_on_every_trigger_level_and_verdict() {
    let cases: [(&str, u64, &[&str]); 13] = [
        ("dt", 0, &[]),
        ("dt", 1, &[]),
        ("dt", 2, &["buffer_bytes=300000"]),
        ("dt", 3, &["decision_latency_us=400"]),
        ("dt", 4, &["max_interval_us=300"]),
        ("dt", 5, &["count_in_service=false"]),
        ("dt", 6, &["queues_per_port=3"]),
        ("dt", 7, &["max_decisions=20"]),
        (
            "dt",
            8,
            &["count_in_service=false", "ecn_uncounted_packets=3"],
        ),
        (FAB, 0, &[]),
        (FAB, 1, &["ports=96", "rate_bps=10000000000", "flows=300"]),
        (FAB, 2, &["buffer_bytes=300000", "decision_latency_us=90"]),
        ("fab:alpha_short=0.5,short_bytes=30000", 3, &[]),
    ];
    let replays = replays();
    let (mut safeguards, mut intervals) = (0, 0);
    for (low_level, trace, changes) in cases {
        let record = record(changes, low_level, trace);
        let ports = if record.contains("\nports,96\n") {
            96
        } else {
            16
        };
        safeguards += record.matches(",safeguard,").count();
        intervals += record.matches(",interval,").count();
        for (_, program) in &replays {
            let output = replay(program, &record);
            let context = format!("{low_level} {trace} {changes:?}: {}", text(&output));
            assert_eq!(output.status.code(), Some(0), "{context}");
            let decisions = record.matches("\nD,").count() as u64;
            assert_eq!(count(&output, "decisions "), decisions);
            assert_eq!(count(&output, "levels_compared "), ports * decisions);
            assert_eq!(count(&output, "triggers_compared "), decisions);
            let arrivals = count(&output, "arrivals ");
            assert_eq!(count(&output, "verdicts_compared "), arrivals, "{context}");
            assert_eq!(count(&output, "flow_table_overflows "), 0, "{context}");
            assert!(decisions >= 20 && arrivals > 1_000, "{context}");
        }
    }
    assert!(safeguards > 0 && intervals > 0, "{safeguards} {intervals}");
}

/// The record may say that latencies vary: then each decision takes its own time.
#[test]
fn a_latency_that_varies_is_that_of_the_record() {
    let fixed = record(&["decision_latency_us=400"], "dt", 3);
    let with = |lines: &str| {
        changed(&fixed, 0, "decision_latency_ps,", |line| {
            assert_eq!(line, "decision_latency_ps,400000000");
            lines.to_owned()
        })
    };
    let cases = [
        ("decision_latency_ps,0", 2, "and none were decided"),
        ("decision_latency_ps,1", 1, "after their decision"),
        (
            "decision_latency_ps,0\ndecision_latency_varies,1",
            0,
            "differences 0",
        ),
        (
            "decision_latency_ps,0\ndecision_latency_varies,2",
            2,
            "decision_latency_varies (0 or 1)",
        ),
    ];
    for (_, program) in replays() {
        for (lines, code, message) in cases {
            let output = replay(&program, &with(lines));
            let text = text(&output);
            assert_eq!(output.status.code(), Some(code), "{lines}: {text}");
            assert!(text.contains(message), "{lines}: {text}");
        }
    }
}

/// Decisions about α and early drop, with the simulator's own random draws: every early drop is the same.
#[test]
fn early_drop_is_replayed_packet_by_packet() {
    let front = FAB.to_owned() + "+early:from=front,min_bytes=3000";
    let cases: [(&str, u64, &[&str]); 18] = [
        (&front, 0, &[]),
        (
            &front,
            1,
            &["ports=96", "rate_bps=10000000000", "flows=300"],
        ),
        (
            &front,
            2,
            &["buffer_bytes=300000", "decision_latency_us=90"],
        ),
        ("dt+early:from=front", 4, &["count_in_service=false"]),
        ("dt+early:from=front,spare=no", 5, &["queues_per_port=3"]),
        (
            "dt+early:from=front,action=mark",
            6,
            &["buffer_bytes=300000", "ecn=true"],
        ),
        (
            "dt+early:from=front,patience=1,min_bytes=1",
            7,
            &["buffer_bytes=300000"],
        ),
        (
            "dt+early:from=front,patience=2,min_bytes=1,spare=no",
            3,
            &["decision_latency_us=90"],
        ),
        ("dt+early", 1, &["buffer_bytes=300000"]),
        ("dt+early:grace_us=300", 2, &["decision_latency_us=400"]),
        ("dt+early:spare=no", 3, &["max_interval_us=300"]),
        ("dt+early:min_bytes=1", 4, &["count_in_service=false"]),
        ("dt+early:seed=9", 5, &["queues_per_port=3"]),
        (&(FAB.to_owned() + "+early"), 0, &[]),
        (
            &(FAB.to_owned() + "+early:min_bytes=3000"),
            1,
            &["ports=96", "rate_bps=10000000000", "flows=300"],
        ),
        (
            &(FAB.to_owned() + "+early:spare=no"),
            2,
            &["buffer_bytes=300000", "decision_latency_us=90"],
        ),
        (
            "dt+early:action=mark",
            6,
            &["buffer_bytes=300000", "ecn=true"],
        ),
        (
            "dt+early:action=mark",
            6,
            &["buffer_bytes=300000", "transport=dctcp"],
        ),
    ];
    let replays = early_replays();
    for (low_level, trace, changes) in cases {
        let record = record(changes, low_level, trace);
        let ports = if record.contains("\nports,96\n") {
            96
        } else {
            16
        };
        let early_drops = record.matches("\ne,").count() as u64;
        let early_marks = record.matches("\nm,").count() as u64;
        let head_drops = record.matches("\nh,").count() as u64;
        let from_front = low_level.contains("front");
        let marks = low_level.contains("mark");
        for (_, program) in &replays {
            let output = replay(program, &record);
            let context = format!("{low_level} {trace} {changes:?}: {}", text(&output));
            assert_eq!(output.status.code(), Some(0), "{context}");
            let decisions = record.matches("\nD,").count() as u64;
            assert_eq!(count(&output, "levels_compared "), 2 * ports * decisions);
            let arrivals = count(&output, "arrivals ");
            assert_eq!(count(&output, "verdicts_compared "), arrivals, "{context}");
            assert_eq!(count(&output, "loss_table_overflows "), 0, "{context}");
            assert_eq!(count(&output, "early_drops "), early_drops, "{context}");
            assert_eq!(count(&output, "early_marks "), early_marks, "{context}");
            assert_eq!(count(&output, "head_drops "), head_drops, "{context}");
            assert_eq!(count(&output, "waiting_table_overflows "), 0, "{context}");
            assert_eq!(
                count(&output, "heads_compared ") > 0,
                from_front,
                "{context}"
            );
            let lost = early_drops + early_marks + head_drops;
            assert!(decisions >= 20 && lost > 20, "{context}");
            assert!(head_drops > 0 || marks || !from_front, "{context}");
            let patient = from_front && !low_level.contains("patience");
            assert!(early_drops == 0 || !patient, "{context}");
            assert!(early_drops > 0 || marks || patient, "{context}");
            assert_eq!(early_marks > 0, marks, "{context}");
        }
    }
}

/// Gaps that grow with the buffer are those of the record's switch.
#[test]
fn a_replay_of_gaps_that_grow_with_the_buffer_agrees() {
    let heuristic = "dt+early:finest=buffer";
    let replays = replays_with(&["-DSTANDIN_EARLY", "-DSTANDIN_OF_BUFFER"]);
    let cases = [
        ("buffer_bytes=300000", "0 128 64 32 16 8 4 2"),
        ("buffer_bytes=1000000", "0 512 256 128 64 32 16 8"),
    ];
    for (buffer, gaps) in cases {
        let record = record(&[buffer], heuristic, 1);
        assert!(record.contains(&format!("\nearly_gaps,{gaps}\n")));
        let early_drops = record.matches("\ne,").count() as u64;
        assert!(early_drops > 20, "{buffer}: {early_drops}");
        for (_, program) in &replays {
            let output = replay(program, &record);
            assert_eq!(output.status.code(), Some(0), "{}", text(&output));
            assert_eq!(count(&output, "early_drops "), early_drops);
        }
        for (_, program) in early_replays() {
            let output = replay(&program, &record);
            let refusal = "that of the network is 1024";
            assert!(text(&output).contains(refusal), "{}", text(&output));
        }
    }
}

/// Returns the record with another state of every port's random numbers.
fn seeds_changed(record: &str) -> String {
    let line = |line: &str| match line.starts_with("early_random,") {
        true => "early_random,1 2 3 4\n".to_owned(),
        false => format!("{line}\n"),
    };
    record.lines().map(line).collect()
}

/// A difference in early drop is noticed, and a record with early drop needs a network that sets it.
#[test]
fn a_wrong_early_drop_is_counted() {
    let record = record(&["buffer_bytes=300000"], "dt+early", 1);
    let other_level = |line: &str| {
        let (rest, last) = line.rsplit_once(',').unwrap();
        format!("{rest},{}", (last.parse::<u8>().unwrap() + 1) % 8)
    };
    let cases = [
        (
            changed(&record, 5_000, "e,", |line| line.replace("e,", "a,")),
            "was admitted, and is dropped early here",
        ),
        (
            changed(&record, 5_000, "D,", other_level),
            "port 15 has early level",
        ),
        (
            seeds_changed(&record),
            "was admitted, and is dropped early here",
        ),
    ];
    let front = self::record(&["buffer_bytes=300000"], "dt+early:from=front", 1);
    let cases = cases.into_iter().chain([
        (
            changed(&front, 5_000, "h,", |line| line.replace("h,", "p,")),
            "the packet at the head was sent, and is lost here",
        ),
        (seeds_changed(&front), "the packet at the head was "),
    ]);
    let cases: Vec<_> = cases.collect();
    let plain = self::record(&[], "dt", 0);
    for (_, program) in early_replays() {
        for (record, message) in &cases {
            let output = replay(&program, record);
            assert_eq!(output.status.code(), Some(1), "{}", text(&output));
            assert!(text(&output).contains(message), "{}", text(&output));
        }
        let refused = [
            (plain.clone(), "version 1, with decisions about alpha only"),
            (
                changed(&record, 0, "early_gaps,", |line| line.replace("512", "500")),
                "gap 2 of early_gaps is 500; that of the network is 512",
            ),
            (
                changed(&record, 0, "early_random,", |_| {
                    "early_random,1 2 3".to_owned()
                }),
                "four numbers",
            ),
            (
                changed(&record, 0, "early_random,", |_| "policy,x".to_owned()),
                "early_random for every port",
            ),
            (
                changed(&record, 0, "early_spare,", |_| "policy,x".to_owned()),
                "no usable early_spare",
            ),
            (
                changed(&record, 5_000, "e,", |line| line.replace("e,", "m,")),
                "the header has no early_mark",
            ),
            (
                changed(&record, 5_000, "d,", |line| line.replace("d,", "h,")),
                "the header has no early_from_front",
            ),
            (
                changed(&front, 0, "early_from_front,", |_| {
                    "early_from_front,2".to_owned()
                }),
                "early_from_front (0 or 1)",
            ),
            (
                changed(&front, 0, "early_from_front,", |_| {
                    "early_patience,1".to_owned()
                }),
                "early_from_front, which early_patience needs",
            ),
        ];
        for (record, message) in refused {
            let output = replay(&program, &record);
            assert_eq!(output.status.code(), Some(2), "{}", text(&output));
            assert!(text(&output).contains(message), "{}", text(&output));
        }
    }
    for (_, program) in replays() {
        let output = replay(&program, &record);
        assert_eq!(output.status.code(), Some(2), "{}", text(&output));
        assert!(
            text(&output).contains("sets alpha only"),
            "{}",
            text(&output)
        );
    }
}

/// The replay does not know the verdicts of other heuristics; it checks the rest.
#[test]
fn a_heuristic_that_pushes_out_is_replayed_but_for_its_verdicts() {
    let record = record(&["buffer_bytes=200000"], "occamy", 1);
    for (_, program) in replays() {
        let output = replay(&program, &record);
        assert_eq!(output.status.code(), Some(0), "{}", text(&output));
        assert!(count(&output, "pushed_out ") > 0);
        assert_eq!(count(&output, "verdicts_compared "), 0);
    }
}

/// Returns `record` with one line changed: the first line from number `from` on that begins with `prefix`.
fn changed(record: &str, from: usize, prefix: &str, change: impl Fn(&str) -> String) -> String {
    let mut done = false;
    let line = |(number, line): (usize, &str)| {
        let hit = !done && number >= from && line.starts_with(prefix);
        done |= hit;
        let line = if hit { change(line) } else { line.to_owned() };
        line + "\n"
    };
    let text = record.lines().enumerate().map(line).collect();
    assert!(done, "no line {prefix}");
    text
}

/// Every kind of difference is noticed, in the count of its kind.
#[test]
fn differences_are_counted() {
    let record = record(&["buffer_bytes=300000"], "dt", 2);
    let one_level = |line: &str| {
        let (rest, last) = line.rsplit_once(',').unwrap();
        format!("{rest},{}", (last.parse::<u8>().unwrap() + 1) % 8)
    };
    let cases = [
        (
            changed(&record, 5_000, "D,", one_level),
            "has level",
            "level",
        ),
        (
            changed(&record, 9_000, "D,", |line| {
                line.replace("excess", "safeguard")
            }),
            "because of safeguard, and of excess",
            "trigger",
        ),
        (
            changed(&record, 9_000, "r,", |line| line.replace("r,", "f,")),
            "lost for want of room, and is refused",
            "verdict",
        ),
    ];
    for (_, program) in replays() {
        for (record, message, kind) in &cases {
            let output = replay(&program, record);
            assert_eq!(output.status.code(), Some(1), "{}", text(&output));
            assert!(text(&output).contains(message), "{}", text(&output));
            assert!(count(&output, &format!("{kind}_differences ")) > 0);
        }
        let none = record.split_once("\nD,").unwrap().0;
        let none = format!("{none}\nE,{},limit,{},0\n", u64::MAX, events(none));
        let output = replay(&program, &none);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        assert!(text(&output).contains("no decision to compare"));
    }
}

/// Levels of another network differ; triggers and verdicts follow the recorded levels.
#[test]
fn another_network_differs_in_its_levels_alone() {
    let mut scenario = Scenario::default();
    scenario.set("flows=80").unwrap();
    let record = recorded(&scenario, FAB, 0, &mut FixedAlpha::new(2));
    for (_, program) in replays() {
        let output = replay(&program, &record);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        assert!(count(&output, "level_differences ") > 100);
        assert_eq!(count(&output, "trigger_differences "), 0);
        assert_eq!(count(&output, "verdict_differences "), 0);
    }
}

/// A trigger without a decision in the record is a difference as well.
#[test]
fn a_decision_that_was_not_made_is_noticed() {
    let cases = [
        (record(&[], "dt", 0), ",excess,", "no decision before"),
        (
            record(&["max_interval_us=300"], "dt", 4),
            ",interval,",
            "no decision by interval before",
        ),
    ];
    let replays = replays();
    for (record, cause, message) in cases {
        let is_decision = |line: &str| line.starts_with("D,") && line.contains(cause);
        let first = record.lines().position(is_decision).unwrap();
        let without: String = record
            .lines()
            .enumerate()
            .filter(|&(number, _)| number != first)
            .map(|(_, line)| format!("{line}\n"))
            .collect();
        for (_, program) in &replays {
            let output = replay(program, &without);
            // Then the counts at the end are wrong, so the record cannot be trusted.
            assert_eq!(output.status.code(), Some(2), "{}", text(&output));
            let message = format!("line {}: {message} this line", first + 1);
            assert!(text(&output).contains(&message), "{}", text(&output));
        }
    }
}

fn events(record: &str) -> usize {
    let (_, events) = record.split_once("begin\n").unwrap();
    events.lines().count()
}

#[test]
fn a_damaged_record_is_refused_with_its_line() {
    let record = record(&[], FAB, 0);
    let begin = record.lines().position(|line| line == "begin").unwrap() + 1;
    let event = |line: &str| changed(&record, begin, "a,", |_| line.to_owned());
    let key = |key: &str, value: &str| {
        changed(&record, 0, &format!("{key},"), |_| format!("{key},{value}"))
    };
    let at = begin + 1;
    let last = record.lines().count();
    let cut = record.len() - 3;
    let end = record.rfind("E,").unwrap();
    let cases = [
        (String::new(), 0, "not a record"),
        (record.replace("record,1", "record,3"), 1, "not a record"),
        (
            record.replace("record,1", "record,2"),
            1,
            "a record of version 2, with decisions about early drop too",
        ),
        (
            record.replace("\nports,16\n", "\n"),
            begin - 1,
            "no usable ports",
        ),
        (key("ports", "sixteen"), 8, "ports is 'sixteen'"),
        (
            key("ports", "4096"),
            begin,
            "4096 ports; this replay is compiled for 1 to 256",
        ),
        (key("fab_alpha_short", "1000"), 4, "fab_alpha_short is 1000"),
        (key("trigger", "per-packet"), 7, "per-packet"),
        (key("buffer_bytes", "0"), begin, "out of range"),
        (key("rate_bps", "18446744073709551616"), 11, "below 2^64"),
        (event("x,1,2,3,4"), at, "'x' is no event"),
        (event("a,1,2,3"), at, "flow is missing"),
        (event("a,1,16,3,4"), at, "no queue 16"),
        (event("a,1,2,0,4"), at, "0 bytes"),
        (event("a,1,2,3,4,5"), at, "'5' is one field too many"),
        (
            event("d,1,2,3,4"),
            at,
            "3 bytes leave queue 2, which holds 0",
        ),
        (event("D,1,why"), at, "the cause is 'why'"),
        (event("D,1,excess,9"), at, "level 9"),
        (event("L,1"), at, "none were decided"),
        (event(&"a".repeat(20_000)), at, "too long"),
        (event("a,99999999999999999,2,3,4"), at + 1, "time goes back"),
        (record[..cut].to_owned(), last, "cut off"),
        (record[..end].to_owned(), last - 1, "cut off"),
        (format!("{record}a,1,2,3,4\n"), last + 1, "after the end"),
    ];
    for (_, program) in replays() {
        for (record, line, message) in &cases {
            let output = replay(&program, record);
            assert_eq!(
                output.status.code(),
                Some(2),
                "{message}: {}",
                text(&output)
            );
            let error = String::from_utf8_lossy(&output.stderr).into_owned();
            assert_eq!(error.lines().count(), 1, "{error}");
            assert!(error.contains(&format!(":{line}: ")), "{message}: {error}");
            assert!(error.contains(message), "{message}: {error}");
        }
    }
}

/// Replays altered and truncated records, as many as `BUFGYM_FUZZ_INPUTS` says. The replay ends with one of its exit
/// codes and at most one line of error, and its sanitizers report nothing.
#[test]
fn altered_records_are_refused_or_replayed() {
    let given = std::env::var("BUFGYM_FUZZ_INPUTS").ok();
    let inputs = given.map_or(100, |text| text.parse().expect("a whole number"));
    let short = |low_level| {
        record(
            &[
                "flows=10",
                "ports=4",
                "active_ports=1..4",
                "incast_degree=1..3",
            ],
            low_level,
            2,
        )
    };
    let plain = ["dt", FAB].map(|low_level| short(low_level).into_bytes());
    let early = ["dt+early:min_bytes=1", "dt+early:min_bytes=1,from=front"]
        .map(|low_level| short(low_level).into_bytes());
    let both = [
        (plain.to_vec(), replays()),
        (early.to_vec(), early_replays()),
    ];
    for (seeds, replays) in both {
        altered_records_end_well(&Mutator::new(&seeds), replays, inputs);
    }
}

fn altered_records_end_well(
    mutator: &Mutator,
    replays: Vec<(tempfile::TempDir, std::path::PathBuf)>,
    inputs: u64,
) {
    for (folder, program) in replays {
        let mut codes = [0_u64; 3];
        for number in 0..inputs {
            let input = mutator.input(&mut rng::stream(0xf022, "record", number));
            let path = folder.path().join("altered");
            std::fs::write(&path, &input).unwrap();
            let output = Command::new(&program).arg(&path).output().unwrap();
            let error = String::from_utf8_lossy(&output.stderr);
            let code = output.status.code();
            let shown: String = text(&output).chars().take(2_000).collect();
            assert!(
                matches!(code, Some(0..=2)),
                "input {number}: {code:?} {shown}"
            );
            assert!(error.lines().count() <= 1, "input {number}: {shown}");
            codes[code.unwrap_or_default() as usize] += 1;
        }
        println!("{}: {codes:?} by exit code", program.display());
        assert!(codes[2] > inputs / 2, "{codes:?}");
    }
}
