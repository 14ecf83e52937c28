//! A fingerprint of every result of the simulator: two versions of it that should not differ print
//! the same lines.
//!
//! `cargo run --release -p bufgym-env --example fingerprint -- [flows.csv]`

use bufgym_env::control::{Controller, RunOptions, run_controlled};
use bufgym_sim::network::Outcome;
use bufgym_sim::rng::{Split, trace_seed};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::PolicySpec;
use bufgym_sim::traffic::{Trace, generate};

type Failure = Box<dyn std::error::Error>;

const POLICIES: [&str; 8] = [
    "st",
    "cs",
    "dt",
    "dt:alpha=0.25",
    "dt:alpha=8",
    "edt",
    "unlimited",
    "ndt",
];

/// Preset and settings.
const SCENARIOS: [&[&str]; 17] = [
    &["ndt-16x1g"],
    &["ndt-16x1g", "host_queue=fifo"],
    &["ndt-16x1g", "handshake=true", "min_rto_us=10000"],
    &["ndt-16x1g", "count_in_service=false", "sack=false"],
    &["ndt-16x1g", "arrivals=synchronised", "timestamps=true"],
    &["ndt-16x1g", "rate_bps=100000000000", "propagation_ns=500"],
    &["ndt-16x1g", "rate_bps=3000000000", "overhead_bytes=20"],
    &["ndt-16x1g", "propagation_ns=0", "init_cwnd=1"],
    &["ndt-16x1g", "mss=6", "flows=40", "workload=fb_hadoop"],
    &["ndt-16x1g", "ports=96", "active_ports=8..96"],
    &["ns3-16x1g", "min_rto_us=10000"],
    &["ns3-16x1g", "buffer_bytes=100000", "host_queue=fair"],
    &["ns3-16x1g", "transport=dctcp", "min_rto_us=10000"],
    &["ns3-16x1g", "transport=cubic", "ecn_uncounted_packets=3"],
    &["ndt-16x1g", "transport=dctcp", "delayed_ack=2"],
    &["ndt-16x1g", "transport=cubic", "ecn_threshold_bytes=30000"],
    &[
        "ndt-16x1g",
        "sack_block_bytes=8",
        "handshake=true",
        "delayed_ack=2",
    ],
];

const SEEDS: u64 = 3;

fn main() -> Result<(), Failure> {
    for settings in SCENARIOS {
        let mut scenario = Scenario::preset(settings[0])?;
        for setting in &settings[1..] {
            scenario.set(setting)?;
        }
        let traces: Vec<Trace> = (0..SEEDS)
            .map(|index| generate(&scenario, trace_seed(Split::Train, 1, index)))
            .collect();
        report(&settings.join(" "), &scenario, &traces)?;
    }
    if let Some(path) = std::env::args().nth(1) {
        let traces = [Trace::read_csv(path)?];
        for preset in ["ns3-16x1g", "ndt-16x1g"] {
            let mut scenario = Scenario::preset(preset)?;
            scenario.set("min_rto_us=10000")?;
            report(&format!("{preset}, list"), &scenario, &traces)?;
        }
    }
    Ok(())
}

fn report(name: &str, scenario: &Scenario, traces: &[Trace]) -> Result<(), Failure> {
    for policy in POLICIES {
        let mut digest = Digest::default();
        for trace in traces {
            digest.add(&run(scenario, policy, trace)?);
        }
        println!("{:016x}  {policy:14} {name}", digest.0);
    }
    Ok(())
}

fn run(scenario: &Scenario, policy: &str, trace: &Trace) -> Result<Outcome, Failure> {
    if policy == "ndt" {
        let mut agent = Drawn(7);
        return Ok(run_controlled(
            scenario,
            trace,
            &mut agent,
            &RunOptions::default(),
        )?);
    }
    let spec: PolicySpec = policy.parse()?;
    Ok(spec.simulator(scenario, trace)?.run())
}

/// Decides by a linear congruential generator (Knuth's MMIX).
struct Drawn(u64);

impl Controller for Drawn {
    fn act(&mut self, observation: &[f32], _ports: usize, action: &mut [f32]) {
        // What was observed goes into the decisions, and so into the fingerprint.
        for value in observation {
            self.0 = self.0.rotate_left(5) ^ u64::from(value.to_bits());
        }
        for value in action {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            *value = (self.0 >> 40) as f32 / (1u64 << 23) as f32 - 1.0;
        }
    }
}

/// FNV-1a over words.
struct Digest(u64);

impl Default for Digest {
    fn default() -> Self {
        Digest(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    fn word(&mut self, word: u64) {
        self.0 = (self.0 ^ word)
            .wrapping_mul(0x0100_0000_01b3)
            .rotate_left(17);
    }

    fn add(&mut self, outcome: &Outcome) {
        for record in &outcome.records {
            self.word(record.established.map_or(u64::MAX, |time| time.as_ps()));
            self.word(record.finish.map_or(u64::MAX, |time| time.as_ps()));
        }
        let summary = &outcome.summary;
        for count in [
            summary.drops,
            summary.drops_data,
            summary.dropped_bytes,
            summary.timeouts,
            summary.packets_forwarded,
            summary.max_occupancy_bytes,
            summary.p99_occupancy.to_bits(),
            summary.simulated_s.to_bits(),
            summary.decisions,
        ] {
            self.word(count);
        }
        for &interval in &outcome.trigger_intervals_ps {
            self.word(interval);
        }
    }
}
