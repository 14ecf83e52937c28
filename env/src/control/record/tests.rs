use super::*;
use crate::control::{Controller, RunOptions, run_controlled, run_recorded};
use bufgym_sim::network::Outcome;
use bufgym_sim::traffic::{Trace, generate};

/// Decides at random, by a linear congruential generator (Knuth's MMIX).
struct Drawn(u64);

impl Controller for Drawn {
    fn act(&mut self, _observation: &[f32], _ports: usize, action: &mut [f32]) {
        for value in action {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            *value = (self.0 >> 40) as f32 / (1u64 << 23) as f32 - 1.0;
        }
    }
}

fn crowded(changes: &[&str]) -> (Scenario, Trace) {
    let mut scenario = Scenario::default();
    let few = ["flows=60", "active_ports=3", "buffer_bytes=200000"];
    for change in few.iter().chain(changes) {
        scenario.set(change).unwrap();
    }
    let trace = generate(&scenario, 5);
    (scenario, trace)
}

fn over(low_level: &str) -> RunOptions {
    RunOptions {
        control: ControlOptions {
            low_level: low_level.parse().unwrap(),
            ..ControlOptions::default()
        },
        ..RunOptions::default()
    }
}

fn record((scenario, trace): &(Scenario, Trace), options: &RunOptions) -> (String, Outcome) {
    let mut out = Vec::new();
    let outcome = run_recorded(scenario, trace, &mut Drawn(7), options, "drawn", &mut out).unwrap();
    (String::from_utf8(out).unwrap(), outcome)
}

/// Heuristics and settings with different kinds of lines.
const CASES: [(&str, &[&str]); 10] = [
    ("dt", &[]),
    ("dt+early:min_bytes=1", &[]),
    ("dt+early:min_bytes=1,from=front", &[]),
    (
        "fab+early:min_bytes=1,from=front",
        &["count_in_service=false"],
    ),
    ("dt+early:min_bytes=1,action=mark", &["ecn=true"]),
    ("fab", &["decision_latency_us=400"]),
    ("occamy", &[]),
    ("dt", &["max_interval_us=300"]),
    ("dt", &["count_in_service=false"]),
    (
        "abm",
        &["count_in_service=false", "ecn_uncounted_packets=3"],
    ),
];

#[test]
fn recording_repeats_and_changes_nothing() {
    for (low_level, changes) in CASES {
        let run = crowded(changes);
        let options = over(low_level);
        let (text, outcome) = record(&run, &options);
        assert!(text == record(&run, &options).0, "{low_level} {changes:?}");
        let plain = run_controlled(&run.0, &run.1, &mut Drawn(7), &options).unwrap();
        let finishes = |outcome: &Outcome| -> Vec<_> {
            outcome.records.iter().map(|record| record.finish).collect()
        };
        assert_eq!(finishes(&outcome), finishes(&plain));
        assert_eq!(outcome.trigger_intervals_ps, plain.trigger_intervals_ps);
        assert_eq!(outcome.summary.drops, plain.summary.drops);
    }
}

/// Replays the lines: no queue becomes negative, time never goes back, and all counts add up to the
/// summary.
#[test]
fn the_lines_add_up_to_the_summary() {
    for (low_level, changes) in CASES {
        let context = format!("{low_level} {changes:?}");
        let run = crowded(changes);
        let (text, outcome) = record(&run, &over(low_level));
        let (_, events) = text.split_once("begin\n").unwrap();
        let in_service = run.0.queues.count_in_service;
        let (mut queues, mut last, mut most) = (vec![0u64; 16], 0, 0);
        let mut counts = std::collections::BTreeMap::<char, u64>::new();
        let mut lines = events.lines().peekable();
        while let Some(line) = lines.next() {
            let kind = line.chars().next().unwrap();
            let fields: Vec<&str> = line.split(',').collect();
            let number = |place: usize| fields[place].parse::<u64>().unwrap();
            assert!(number(1) >= last, "{context}: {line}");
            last = number(1);
            let taken = match kind {
                'a' | 'm' => {
                    queues[number(2) as usize] += number(3);
                    0
                }
                'd' if in_service => number(3),
                'p' | 'h' | 'u' => number(3),
                _ => 0,
            };
            if taken > 0 {
                let queue = &mut queues[number(2) as usize];
                *queue = queue.checked_sub(taken).expect("bytes that are not there");
            }
            most = most.max(queues.iter().sum());
            *counts.entry(kind).or_default() += 1;
            if kind == 'E' {
                assert_eq!(fields[2], "finished");
                let events: u64 = counts.values().sum();
                assert_eq!(number(3), events - 1, "{context}");
                assert_eq!(number(4), outcome.summary.decisions);
                assert!(lines.peek().is_none());
            }
        }
        let count = |kind| counts.get(&kind).copied().unwrap_or(0);
        let summary = &outcome.summary;
        assert_eq!(count('d'), summary.packets_forwarded, "{context}");
        let lost = count('r') + count('f') + count('p') + count('e') + count('h');
        assert_eq!(lost, summary.drops);
        let marks = low_level.contains("mark");
        let early = low_level.contains("early");
        let front = low_level.contains("front");
        assert!(count('e') > 0 || marks || front || !early, "{context}");
        assert!(count('e') == 0 || early && !front, "{context}");
        assert_eq!(count('h') > 0, front, "{context}");
        let left = match front {
            true => count('d'),
            false => 0,
        };
        assert_eq!(count('s'), left, "{context}");
        assert_eq!(count('m'), summary.marks, "{context}");
        assert_eq!(count('m') > 0, marks, "{context}");
        assert_eq!(count('p'), summary.pushed_out);
        assert_eq!(count('D'), summary.decisions);
        assert_eq!(most, summary.max_occupancy_bytes, "{context}");
        assert!(count('D') > 50, "{context}: {counts:?}");
        assert_eq!(count('u') > 0, !in_service);
        assert_eq!(count('L') > 0, run.0.control.decision_latency_us > 0);
        assert_eq!(count('p') > 0, low_level == "occamy", "{context}");
        assert_eq!(
            events.contains(",interval,"),
            run.0.control.max_interval_us > 0,
            "{context}"
        );
    }
}

#[test]
fn the_header_says_what_a_dataplane_needs() {
    let run = crowded(&["decision_latency_us=400"]);
    let low_level = "fab:alpha_short=2048,short_bytes=10000,idle_us=250";
    let (text, _) = record(&run, &over(low_level));
    let expected = format!(
        "bufgym-control-record,1\n\
         policy,drawn\n\
         low_level,{low_level}\n\
         fab_alpha_short,2048\n\
         fab_short_bytes,10000\n\
         fab_idle_ps,250000000\n\
         trigger,cumulative-event\n\
         ports,16\n\
         queues_per_port,1\n\
         buffer_bytes,200000\n\
         rate_bps,1000000000\n\
         beta_bytes,12500\n\
         gamma_bytes,12500\n\
         count_in_service,1\n\
         decision_latency_ps,400000000\n\
         max_interval_ps,0\n\
         begin\n\
         a,"
    );
    assert!(text.starts_with(&expected), "{}", &text[..600]);
}

/// Early drop that no decision sets is part of the heuristic; such a record has the format without early drop.
#[test]
fn fixed_early_drop_is_a_refusal() {
    let run = crowded(&[]);
    let (text, _) = record(&run, &over("dt+early:gap=16,min_bytes=1"));
    assert!(text.starts_with(RECORD_FORMAT));
    assert!(!text.contains("\ne,") && !text.contains("early_"));
    let (text, _) = record(&run, &over("dt+early:min_bytes=1"));
    assert!(text.starts_with(EARLY_RECORD_FORMAT));
    let decision = text.lines().find(|line| line.starts_with("D,")).unwrap();
    assert_eq!(decision.split(',').count(), 3 + 2 * 16);
}

#[test]
fn a_run_that_is_cut_short_says_so() {
    let run = crowded(&["max_decisions=3"]);
    let (text, _) = record(&run, &over("dt"));
    let last = text.lines().last().unwrap();
    assert!(last.starts_with("E,") && last.ends_with(",3"), "{last}");
    assert!(last.contains(",limit,"), "{last}");
}

/// A writer that fails after this many bytes.
struct Full(usize);

impl io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self
            .0
            .checked_sub(bytes.len())
            .ok_or_else(|| io::Error::other("no room"))?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_record_that_cannot_be_written_is_an_error() {
    let (scenario, trace) = crowded(&[]);
    let mut out = Full(20_000);
    let (mut agent, options) = (Drawn(7), over("dt"));
    let error =
        run_recorded(&scenario, &trace, &mut agent, &options, "drawn", &mut out).unwrap_err();
    assert_eq!(error.to_string(), "cannot write the record: no room");
}

#[test]
fn decisions_that_wait_are_not_recorded() {
    let (scenario, trace) = crowded(&["min_interval_us=100"]);
    let (mut agent, options, mut out) = (Drawn(7), over("dt"), Vec::new());
    let refused = run_recorded(&scenario, &trace, &mut agent, &options, "drawn", &mut out);
    let error = refused.unwrap_err().to_string();
    assert!(error.starts_with("min_interval_us = 100: "), "{error}");
    assert!(out.is_empty());
}
