//! Synthetic results for tests of summaries, findings, tables, figures and pages.

use rand_xoshiro::Xoshiro256PlusPlus;
use rand_xoshiro::rand_core::{Rng, SeedableRng};

use crate::data::{
    Arrivals, BASELINE, Entry, Evaluation, FORMAT, Role, ScenarioFacts, Timeline, TimelineSeries,
    Timing, TraceResult, Training, TriggerIntervals, UNLIMITED, VERSION,
};
use crate::metric::{
    AllFlows, ClassSlowdowns, FlowClasses, LosslessMetrics, ObjectiveMetrics, SlowdownTails,
};
use crate::{label, summary};

/// Returns the evaluation with its first two policies as seeds of one training.
pub(crate) fn with_two_seeds(mut evaluation: Evaluation, task: &str) -> Evaluation {
    let policies = evaluation.policies.iter();
    let mut entries: Vec<Entry> = policies.map(|policy| policy.entry.clone()).collect();
    for (entry, seed) in entries.iter_mut().take(2).zip([4, 5]) {
        let task = task.to_owned();
        entry.training = Some(Training::new(task, seed, "fct"));
    }
    evaluation.seeds = summary::seeds(&entries, &evaluation.results, 100, 1);
    evaluation
}

fn entry(policy: &str) -> Entry {
    let role = match policy {
        BASELINE => Role::Baseline,
        UNLIMITED => Role::Reference,
        _ if policy.starts_with("ndt:") => Role::Learned,
        _ => Role::Heuristic,
    };
    Entry {
        policy: policy.to_string(),
        label: String::new(),
        role,
        origin: String::new(),
        training: None,
    }
}

fn result(policy: &str, trace: u64, mean: f64) -> TraceResult {
    let finished = mean.is_finite();
    let some = |value: f64| finished.then_some(value);
    TraceResult {
        policy: policy.to_string(),
        trace,
        seed: 0x9e37_79b9 ^ trace,
        arrivals: Arrivals::Spread,
        flows: 300,
        completed: if finished { 300 } else { 299 },
        all_flows: AllFlows {
            mean_fct_ms: some(mean),
            p50_fct_ms: some(mean * 0.2),
            p95_fct_ms: some(mean * 4.0),
            p99_fct_ms: some(mean * 9.0),
            mean_slowdown: some(mean / 5.0),
        },
        flow_classes: FlowClasses {
            short_mean_fct_ms: some(mean * 0.3),
            short_p99_fct_ms: some(mean * 3.0),
            incast_mean_fct_ms: some(mean * 0.4),
            ..FlowClasses::default()
        },
        class_slowdowns: ClassSlowdowns {
            short_mean_slowdown: some(mean / 4.0),
            long_mean_slowdown: None,
        },
        slowdown_tails: SlowdownTails {
            short_p99_slowdown: some(mean),
            ..SlowdownTails::default()
        },
        drops: (mean * 10.0) as u64,
        drops_data: (mean * 9.0) as u64,
        timeouts: mean as u64,
        timeout_wait_ms: mean * 0.25,
        simulated_s: 2.0,
        max_occupancy_bytes: 1_000_000,
        p99_occupancy: some(0.8),
        decisions: if policy.starts_with("ndt:") { 370 } else { 0 },
        ratio_to_dt: None,
        p99_ratio_to_dt: None,
        objectives: ObjectiveMetrics {
            loss_per_delivered: some(mean / 1e4),
            goodput_bps: some(1e9 - mean * 1e6),
            p99_queueing_delay_us: some(mean * 20.0),
            port_slowdown_variance: some(mean / 100.0),
        },
        lossless: LosslessMetrics::default(),
        failure: (!finished).then(|| "1 of 300 flows did not finish".to_string()),
    }
}

/// Builds results with the given mean FCTs per policy and trace; NaN makes a trace fail.
pub(crate) fn from_means(policies: &[(&str, &[f64])]) -> (Vec<Entry>, Vec<TraceResult>) {
    let mut entries: Vec<Entry> = policies.iter().map(|(policy, _)| entry(policy)).collect();
    label::fill(&mut entries);
    let results = policies.iter().flat_map(|(policy, means)| {
        means
            .iter()
            .enumerate()
            .map(|(trace, &mean)| result(policy, trace as u64, mean))
    });
    (entries, results.collect())
}

/// Returns the evaluation with lossless packets: every trace has a pause of 2 ms for every millisecond of
/// mean FCT.
pub(crate) fn with_pauses(mut evaluation: Evaluation) -> Evaluation {
    for result in &mut evaluation.results {
        let mean = result.all_flows.mean_fct_ms;
        result.lossless = LosslessMetrics {
            pauses: mean,
            paused_ms: mean.map(|mean| 2.0 * mean),
            drops_lossless: mean.map(|_| 0.0),
            p99_lossless_occupancy: mean.map(|_| 0.25),
            p99_lossy_occupancy: mean.map(|_| 0.5),
        };
    }
    let policies = evaluation.policies.iter();
    let entries: Vec<Entry> = policies.map(|policy| policy.entry.clone()).collect();
    evaluation.policies = summary::summarise(&entries, &evaluation.results, 100, 1);
    evaluation
}

/// Builds a whole evaluation from the given mean FCTs.
pub fn evaluation(policies: &[(&str, &[f64])]) -> Evaluation {
    let (entries, mut results) = from_means(policies);
    summary::fill_ratios(&mut results);
    let learned = entries.iter().filter(|e| e.role == Role::Learned);
    let trigger_intervals = learned.map(|e| intervals_of(&e.policy)).collect();
    Evaluation {
        format: FORMAT.to_string(),
        version: VERSION,
        software: "bufgym 0.0.0".to_string(),
        scenario: facts(),
        split: "test".to_string(),
        seed: 1,
        traces: policies.first().map_or(0, |(_, means)| means.len() as u64),
        resamples: 1000,
        policies: summary::summarise(&entries, &results, 1000, 1),
        versus: summary::versus(&entries, &results, 1000, 1),
        seeds: summary::seeds(&entries, &results, 1000, 1),
        timeline: Some(timeline(&entries)),
        trigger_intervals,
        results,
        timing: Timing {
            wall_s: 83.2,
            threads: 2,
        },
    }
}

/// Builds an evaluation of the usual size with plausible numbers; the learned policy's mean ratio to DT is
/// near `learned`.
pub fn typical(learned: f64) -> Evaluation {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(5);
    let mut uniform = move || (rng.next_u64() >> 11) as f64 / (1u64 << 53) as f64;
    let dt: Vec<f64> = (0..105)
        .map(|_| 8.0 + 140.0 * uniform() * uniform())
        .collect();
    let mut scaled = |centre: f64, spread: f64| -> Vec<f64> {
        let quiet = |trace: usize| trace % 11 == 3;
        let factor = |trace: usize, u: f64| {
            if quiet(trace) {
                1.0
            } else {
                centre + spread * (u - 0.5)
            }
        };
        dt.iter()
            .enumerate()
            .map(|(trace, mean)| mean * factor(trace, uniform()))
            .collect()
    };
    let (ndt, edt, cs) = (scaled(learned, 0.3), scaled(0.97, 0.15), scaled(1.35, 0.9));
    let (st, unlimited) = (scaled(2.0, 1.6), scaled(0.65, 0.3));
    evaluation(&[
        ("ndt:checkpoints/ndt-fct", &ndt),
        ("edt", &edt),
        ("cs", &cs),
        ("st", &st),
        ("dt", &dt),
        ("unlimited", &unlimited),
    ])
}

fn facts() -> ScenarioFacts {
    let fact = |name: &str, value: &str| (name.to_string(), value.to_string());
    ScenarioFacts {
        name: "ndt-16x1g".to_string(),
        switches: 1,
        facts: vec![
            fact("Switch", "16 ports at 1 Gbit/s, 1.00 MB shared buffer"),
            fact("Links", "10 µs one way"),
            fact(
                "Transport",
                "newreno with SACK, minRTO 200 ms, recovery rfc",
            ),
            fact(
                "Traffic",
                "web_search, load 50 % per active port, mixed arrivals",
            ),
        ],
        toml: "name = \"ndt-16x1g\"\nports = 16\n".to_string(),
    }
}

fn timeline(entries: &[Entry]) -> Timeline {
    let bins = 60;
    let wave = |bin: usize, port: usize, shift: usize| {
        let phase = (bin + 17 * port + 5 * shift) as f64 / 9.0;
        ((phase.sin() * 0.5 + 0.5) * 320_000.0) as u64
    };
    let shown = entries
        .iter()
        .filter(|e| !matches!(e.policy.as_str(), "st" | "edt" | "unlimited"));
    let series = shown.enumerate().flat_map(|(shift, entry)| {
        [3usize, 7].map(|port| {
            let queue: Vec<u64> = (0..bins).map(|bin| wave(bin, port, shift)).collect();
            TimelineSeries {
                policy: entry.policy.clone(),
                port: port as u32,
                mean_queue_bytes: queue.iter().map(|q| *q as f64 * 0.6).collect(),
                min_threshold_bytes: queue.iter().map(|q| 380_000 - q / 2).collect(),
                max_queue_bytes: queue,
            }
        })
    });
    Timeline {
        trace: 12,
        start_ms: 400.0,
        bin_ms: 10.0,
        buffer_bytes: 1_000_000,
        series: series.collect(),
    }
}

fn intervals_of(policy: &str) -> TriggerIntervals {
    TriggerIntervals {
        policy: policy.to_string(),
        count: 39_000,
        percentiles_ms: (0..=200).map(|p| 0.03 * 1.045f64.powi(p)).collect(),
    }
}
