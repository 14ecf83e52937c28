//! Mutated inputs for every reader. Each is refused with one line, or read, within the memory limit of the
//! reader, and never ends the program.
//!
//! `BUFGYM_FUZZ_INPUTS` is the number of inputs of each reader (300 by default). The current input is always
//! in `/dev/shm/bufgym-fuzz-PROCESS-READER.input` (`target/tmp` if there is no such folder), so that it
//! remains after an abort.

#![allow(
    clippy::cast_possible_truncation,
    reason = "tests convert the small numbers that they make"
)]

mod mutate;
mod networks;
mod readers;

use std::fs;
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};

use allocation_counter::measure;
use bufgym::util::rng;
use rand::seq::IndexedRandom as _;
use rand_xoshiro::Xoshiro256PlusPlus as Random;

use mutate::Mutator;
use readers::Reader;

/// Longest message, characters.
const LONGEST: usize = 2_000;

/// Statistics of all inputs of a reader.
#[derive(Default)]
struct Tally {
    read: u64,
    refused: u64,
    most_bytes: u64,
}

fn inputs() -> u64 {
    let given = std::env::var("BUFGYM_FUZZ_INPUTS").ok();
    given.map_or(300, |text| {
        text.parse().expect("BUFGYM_FUZZ_INPUTS is a whole number")
    })
}

/// Returns the message of a panic.
fn said(payload: &(dyn std::any::Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message")
}

/// Reads one input and returns a problem with the outcome, if there is one.
fn check(reader: &Reader, input: &[u8], tally: &mut Tally) -> Result<(), String> {
    let mut outcome = None;
    let allocated = measure(|| {
        outcome = Some(panic::catch_unwind(AssertUnwindSafe(|| {
            (reader.read)(input)
        })));
    });
    tally.most_bytes = tally.most_bytes.max(allocated.bytes_max);
    if allocated.bytes_max > reader.memory {
        return Err(format!(
            "{} bytes at once, of {}",
            allocated.bytes_max, reader.memory
        ));
    }
    match outcome.expect("it was run") {
        Err(payload) => Err(format!("panicked: {}", said(payload.as_ref()))),
        Ok(Ok(())) => {
            tally.read += 1;
            Ok(())
        }
        Ok(Err(message)) => {
            tally.refused += 1;
            check_message(&message)
        }
    }
}

fn check_message(message: &str) -> Result<(), String> {
    let problem = match message {
        "" => "an empty message",
        _ if message.chars().any(char::is_control) => "a message with control characters",
        _ if message.chars().count() > LONGEST => "a message of more than 2,000 characters",
        _ => return Ok(()),
    };
    let start: String = message.chars().take(300).collect();
    Err(format!("{problem}: {start:?}"))
}

/// Returns the file for the current input; in memory if the system has such a folder.
fn place(reader: &Reader) -> PathBuf {
    let in_memory = Path::new("/dev/shm");
    let folder = match in_memory.is_dir() {
        true => in_memory,
        false => Path::new(env!("CARGO_TARGET_TMPDIR")),
    };
    let process = std::process::id();
    folder.join(format!("bufgym-fuzz-{process}-{}.input", reader.name))
}

fn fuzz(reader: &Reader) {
    let mutator = Mutator::new(&reader.seeds);
    fuzz_with(reader, inputs(), |random| mutator.input(random));
}

/// Reads `inputs` inputs from `make`.
fn fuzz_with(reader: &Reader, inputs: u64, make: impl Fn(&mut Random) -> Vec<u8>) {
    let place = place(reader);
    let mut tally = Tally::default();
    for seed in &reader.seeds {
        let read = (reader.read)(seed);
        assert_eq!(read, Ok(()), "{}: a seed is refused", reader.name);
    }
    for number in 0..inputs {
        let input = make(&mut rng::stream(0xf022, reader.name, number));
        fs::write(&place, &input).expect("the folder of temporary files can be written to");
        if let Err(problem) = check(reader, &input, &mut tally) {
            let kept = place.with_extension(format!("{number}.found"));
            fs::rename(&place, &kept).expect("the input was written");
            panic!(
                "{}: input {number}, kept in {}: {problem}",
                reader.name,
                kept.display()
            );
        }
    }
    let _ = fs::remove_file(&place);
    println!(
        "{}: {} read, {} refused, at most {} KiB at once",
        reader.name,
        tally.read,
        tally.refused,
        tally.most_bytes >> 10
    );
    // Mutation has to damage some inputs, but not all.
    assert!(
        tally.refused > inputs / 20 && tally.read > 0,
        "{}",
        reader.name
    );
}

/// Defines one test for each reader, so that they run in parallel and a failure names the reader.
macro_rules! fuzzed {
    ($($test:ident)+) => {
        $(
            #[test]
            fn $test() {
                fuzz(&readers::$test());
            }
        )+

        #[test]
        fn every_reader_is_fuzzed() {
            assert_eq!([$(stringify!($test)),+].len(), readers::COUNT);
        }
    };
}

fuzzed! {
    flow_list
    peer_list
    size_distribution
    capture
    tunnels
    scenario
    setting
    train_config
    manifest
    weights
    npy
    forest
    linear_rule
    integer_network
    onnx_network
    slotted_arrivals
    tuned_parameters
    policy
    objective
    replay
    learner
}

/// Tests at least a thousand networks with another structure than the valid ones.
#[test]
fn networks_of_altered_structure() {
    let reader = Reader {
        name: "networks_of_altered_structure",
        ..readers::onnx_network()
    };
    let mut seeds = reader.seeds.clone();
    for folder in ["tests/cli/onnx", "tests/fuzz/found"] {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let entries = fs::read_dir(folder).expect("the folder is part of the sources");
        let mut paths: Vec<PathBuf> = entries
            .map(|entry| entry.expect("an entry").path())
            .collect();
        paths.retain(|path| path.extension().is_some_and(|end| end == "onnx"));
        paths.sort();
        seeds.extend(
            paths
                .iter()
                .map(|path| fs::read(path).expect("it can be read")),
        );
    }
    fuzz_with(&reader, inputs().max(1_000), |random| {
        networks::altered(seeds.choose(random).expect("there are seeds"), random)
    });
}

/// Inputs that once revealed a defect.
#[test]
fn inputs_that_were_found_once_stay_mended() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/found");
    for entry in fs::read_dir(folder).expect("the folder is part of the sources") {
        let path = entry.expect("it can be listed").path();
        let name = path.file_stem().expect("a file").to_string_lossy();
        let name = name.split('-').next().expect("a first part");
        let reader = readers::by_name(name)
            .unwrap_or_else(|| panic!("{}: there is no reader {name}", path.display()));
        let input = fs::read(&path).expect("it can be read");
        let checked = check(&reader, &input, &mut Tally::default());
        assert_eq!(checked, Ok(()), "{}", path.display());
    }
}
