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

/// Networks of several switches: preset and settings.
const FABRICS: [&[&str]; 14] = [
    &["leafspine-4x4"],
    &["leafspine-4x4", "host_queue=fifo", "propagation_ns=0"],
    &["leafspine-4x4", "ecmp=spray", "links_per_pair=2"],
    &["leafspine-4x4", "links_per_pair=3", "ecmp_salt=switch"],
    &["leafspine-4x4", "fabric_rate_bps=40000000000", "spines=1"],
    &["leafspine-4x4", "transport=powertcp", "int_bytes_per_hop=8"],
    &["leafspine-4x4", "transport=hpcc", "demand=uniform"],
    &["leafspine-4x4", "transport=cubic", "demand=ring"],
    &[
        "leafspine-4x4",
        "queues_per_port=3",
        "scheduler=drr",
        "flow_priority=random_per_flow",
        "count_in_service=false",
    ],
    &["abm-leafspine", "warmup_ms=0", "measure_ms=4"],
    &["abm-artefact", "warmup_ms=0", "measure_ms=20"],
    &["abm-artefact-mixed", "warmup_ms=0", "measure_ms=5"],
    &["credence-leafspine", "warmup_ms=0", "measure_ms=4"],
    &["credence-train", "warmup_ms=0", "measure_ms=10"],
];

const FABRIC_POLICIES: [&str; 7] = ["cs", "dt", "abm", "lqd", "edt", "occamy", "dt+codel"];

const SEEDS: u64 = 3;

fn main() -> Result<(), Failure> {
    for settings in SCENARIOS {
        let scenario = scenario(settings)?;
        let traces: Vec<Trace> = (0..SEEDS)
            .map(|index| generate(&scenario, trace_seed(Split::Train, 1, index)))
            .collect();
        report(&settings.join(" "), &POLICIES, &scenario, &traces)?;
    }
    for settings in FABRICS {
        let scenario = scenario(settings)?;
        let traces = [generate(&scenario, trace_seed(Split::Train, 1, 0))];
        report(&settings.join(" "), &FABRIC_POLICIES, &scenario, &traces)?;
    }
    if let Some(path) = std::env::args().nth(1) {
        let traces = [Trace::read_csv(path)?];
        for preset in ["ns3-16x1g", "ndt-16x1g"] {
            let mut scenario = Scenario::preset(preset)?;
            scenario.set("min_rto_us=10000")?;
            report(&format!("{preset}, list"), &POLICIES, &scenario, &traces)?;
        }
    }
    Ok(())
}

fn scenario(settings: &[&str]) -> Result<Scenario, Failure> {
    let mut scenario = Scenario::preset(settings[0])?;
    for setting in &settings[1..] {
        scenario.set(setting)?;
    }
    Ok(scenario)
}

fn report(
    name: &str,
    policies: &[&str],
    scenario: &Scenario,
    traces: &[Trace],
) -> Result<(), Failure> {
    for policy in policies {
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
    Ok(spec.run(scenario, trace)?)
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
        if let [_] = outcome.switches[..] {
            return;
        }
        for &mean in &summary.mean_bytes_by_priority {
            self.word(mean.to_bits());
        }
        for row in &outcome.switches {
            for count in [
                row.packets_forwarded,
                row.drops,
                row.drops_unscheduled,
                row.pushed_out,
                row.marks,
                row.p50_occupancy.to_bits(),
                row.p95_occupancy.to_bits(),
                row.p99_occupancy.to_bits(),
                row.p9999_occupancy.to_bits(),
                row.max_occupancy.to_bits(),
                row.uplink_throughput.to_bits(),
            ] {
                self.word(count);
            }
        }
    }
}
