//! The codes of C and Rust are the same, at every edge and far outside the values that occur in runs.

use std::fmt::Write as _;
use std::io::Write as _;
use std::process::{Command, Stdio};

use bufgym_env::control::{CodeUnits, level_code, log_code, queue_code};
use bufgym_sim::scenario::Scenario;
use bufgym_util::rng;

use crate::dataplane::compiler::{BUILDS, text};

/// Returns questions, one per line, and the answers.
fn examination() -> (String, String) {
    let (mut questions, mut answers) = (String::new(), String::new());
    let mut ask = |name: &str, x: u64, unit: u64, answer: u64| {
        writeln!(questions, "{name} {x} {unit}").unwrap();
        writeln!(answers, "{answer}").unwrap();
    };
    let units = [
        1,
        2,
        7,
        1_500,
        62_500,
        500_000,
        65_536,
        (1 << 40) - 1,
        (1 << 41) - 1,
    ];
    for unit in units {
        for code in 1..=255u32 {
            // Two values on each side of the edge where the code begins.
            let edge = (65f64.powf((f64::from(code) - 0.5) / 255.0) - 1.0) * unit as f64;
            for x in (edge as u64).saturating_sub(1)..=edge as u64 + 2 {
                ask("log", x, unit, u64::from(log_code(x, unit)));
            }
        }
        for x in [0, 64 * unit, 65 * unit - 1, 65 * unit, u64::MAX] {
            ask("log", x, unit, u64::from(log_code(x, unit)));
        }
    }
    let mut chance = rng::stream(1, "codes", 0);
    for _ in 0..20_000 {
        let bits = 1 + rng::below(&mut chance, 40);
        let unit = 1 + rng::below(&mut chance, 1 << bits);
        let x = rng::below(&mut chance, 66 * unit);
        ask("log", x, unit, u64::from(log_code(x, unit)));
        let buffer = 255 * unit.min(4_000_000_000);
        let bytes = rng::below(&mut chance, buffer + 1);
        ask("queue", bytes, buffer, u64::from(queue_code(bytes, buffer)));
        let rate = 1_000_000 + rng::below(&mut chance, 10_000_000_000_000);
        let scenario = Scenario::default().with(|scenario| {
            scenario.network.ports = 2;
            scenario.network.buffer_bytes = 2 * unit.min(400_000_000_000);
            scenario.network.rate_bps = rate;
        });
        let units = CodeUnits::new(&scenario);
        ask("drain", units.beta, rate, units.drain_ns);
    }
    for code in 1..=255u64 {
        // With a buffer of 510 bytes codes begin at odd lengths.
        for bytes in [2 * code - 2, 2 * code - 1, 2 * code] {
            ask("queue", bytes, 510, u64::from(queue_code(bytes, 510)));
        }
    }
    for level in 0..8 {
        ask("level", u64::from(level), 0, u64::from(level_code(level)));
    }
    (questions, answers)
}

#[test]
fn c_and_rust_have_the_same_codes() {
    let (questions, answers) = examination();
    for build in &BUILDS {
        let folder = tempfile::tempdir().unwrap();
        let files = ["env/tests/suite/dataplane/codes.c"];
        let Some(program) = build.program(folder.path(), &files, &[]) else {
            continue;
        };
        let path = folder.path().join("questions");
        std::fs::File::create(&path)
            .and_then(|mut file| file.write_all(questions.as_bytes()))
            .unwrap();
        let output = Command::new(program)
            .stdin(Stdio::from(std::fs::File::open(&path).unwrap()))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}: {}", build.name, text(&output));
        let given = String::from_utf8(output.stdout).unwrap();
        assert_eq!(given.lines().count(), answers.lines().count());
        let mut lines = questions.lines().zip(answers.lines()).zip(given.lines());
        if let Some(wrong) = lines.find(|((_, expected), given)| expected != given) {
            panic!("{}: {wrong:?}", build.name);
        }
    }
}
