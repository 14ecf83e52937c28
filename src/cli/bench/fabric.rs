//! Speed of networks of several switches compared with that of a single one.

use std::fmt::Write as _;
use std::time::Duration;

use bufgym::sim::network::{SimError, Simulation};
use bufgym::sim::scenario::Scenario;
use bufgym::sim::switch::PolicySpec;
use bufgym::sim::traffic::{self, Trace};
use bufgym::util::memory;
use bufgym::util::rng::{Split, trace_seed};
use serde_json::{Value, json};

use super::{median, repeat};
use crate::cli::Common;
use crate::cli::error::{CliResult, ResultExt as _};

/// Rounds of the measurement, in which the networks take turns; the results are medians.
const ROUNDS: u32 = 5;

/// The policy of every switch. Its decisions cost little.
const POLICY: &str = "dt";

/// The preset that the networks are compared with.
const SINGLE: &str = "ndt-16x1g";

/// Networks that users run: preset, and settings that make a run short.
const NETWORKS: [(&str, &[&str]); 4] = [
    (SINGLE, &[]),
    ("leafspine-4x4", &["measure_ms=10"]),
    ("abm-artefact", &["warmup_ms=0", "measure_ms=10"]),
    ("abm-leafspine", &["warmup_ms=0", "measure_ms=2"]),
];

/// Networks of growing size: number of leaves (also the number of hosts per leaf), number of spines, and
/// measured milliseconds. The oversubscription is four, and about as many flows start in each.
const GROWTH: [(u32, u32, u32); 4] = [(4, 1, 32), (8, 2, 8), (16, 4, 2), (32, 8, 1)];

/// Preset of the growing networks.
const GROWING: &str = "abm-leafspine";

/// A network with its traffic and its measurements.
struct Load {
    name: String,
    scenario: Scenario,
    trace: Trace,
    counts: Counts,
    /// Nanoseconds per packet and switch, by round.
    rounds: Vec<f64>,
}

/// Quantities that do not depend on the machine, and the memory.
#[derive(Clone, Copy, Default)]
struct Counts {
    events: u64,
    /// Packets that left switches, that is, hops.
    hops: u64,
    /// Packets that hosts created.
    packets: u64,
    /// Largest resident size of the process in a run.
    peak_bytes: Option<u64>,
}

impl Load {
    fn new(name: String, preset: &str, settings: &[String], seed: u64) -> CliResult<Load> {
        let mut scenario = Scenario::preset(preset).or_failure()?;
        scenario.set_all(settings).or_failure()?;
        let trace = traffic::generate(&scenario, trace_seed(Split::Train, seed, 0));
        Ok(Load {
            name,
            scenario,
            trace,
            counts: Counts::default(),
            rounds: Vec::new(),
        })
    }

    /// Counts the events of a run, step by step.
    fn count(&mut self, spec: &PolicySpec) -> Result<(), SimError> {
        memory::forget_peak();
        let mut counts = Counts::default();
        let mut simulation = Simulation::new(&self.scenario, &self.trace, spec)?;
        while !simulation.finished() && simulation.step() {
            counts.events += 1;
        }
        counts.hops = simulation.packets_forwarded();
        counts.packets = simulation.packets_created();
        counts.peak_bytes = memory::peak();
        self.counts = counts;
        Ok(())
    }

    /// Measures another round.
    fn measure(&mut self, spec: &PolicySpec, budget: Duration) -> Result<(), SimError> {
        let (packets, seconds) = repeat(budget, || {
            let outcome = spec.run(&self.scenario, &self.trace)?;
            Ok::<_, SimError>(outcome.summary.packets_forwarded)
        })?;
        self.rounds.push(1e9 * seconds / packets as f64);
        Ok(())
    }

    fn ns(&self) -> f64 {
        median(self.rounds.clone())
    }

    /// Returns the cost as a multiple of the single switch's: the median over rounds.
    fn ratio(&self, single: &[f64]) -> f64 {
        let rounds = self.rounds.iter().zip(single);
        median(rounds.map(|(ns, single)| ns / single).collect())
    }

    fn switches(&self) -> u64 {
        self.scenario.ports_by_switch().len() as u64
    }

    fn json(&self, single: &[f64]) -> Value {
        let Counts {
            events,
            hops,
            packets,
            peak_bytes,
        } = self.counts;
        json!({
            "hosts": self.scenario.network.ports,
            "switches": self.switches(),
            "ns_per_packet": self.ns(),
            "packets_per_s": 1e9 / self.ns(),
            "ratio_to_single": self.ratio(single),
            "events_per_hop": share(events, hops),
            "events_per_packet": share(events, packets),
            "hops_per_packet": share(hops, packets),
            "peak_bytes": peak_bytes,
        })
    }

    fn row(&self, single: &[f64]) -> String {
        let Counts { events, hops, .. } = self.counts;
        let peak = self.counts.peak_bytes;
        let peak = peak.map_or("-".to_owned(), |bytes| {
            format!("{:.0} MB", bytes as f64 / 1e6)
        });
        format!(
            "{:<16}{:>7}{:>10}{:>11.1}{:>14.2}{:>9.2}{:>13.2}{:>9}",
            self.name,
            self.scenario.network.ports,
            self.switches(),
            self.ns(),
            1e3 / self.ns(),
            self.ratio(single),
            share(events, hops),
            peak,
        )
    }
}

fn share(part: u64, whole: u64) -> f64 {
    part as f64 / whole as f64
}

/// Measures the single switch and all networks, `budget` each.
pub fn run(seed: u64, budget: Duration, common: &Common) -> CliResult {
    let spec: PolicySpec = POLICY.parse().or_failure()?;
    let mut loads = loads(seed)?;
    for load in &mut loads {
        load.count(&spec).or_failure()?;
    }
    for round in 1..=ROUNDS {
        common.note(format!("round {round} of {ROUNDS}"));
        for load in &mut loads {
            load.measure(&spec, budget / ROUNDS).or_failure()?;
        }
    }
    let single = loads[0].rounds.clone();
    let (networks, growth) = loads.split_at(NETWORKS.len());
    let by_name = |load: &Load| (load.name.clone(), load.json(&single));
    common.print(
        &json!({
            "policy": POLICY,
            "single": SINGLE,
            "networks": networks.iter().map(by_name).collect::<serde_json::Map<_, _>>(),
            "growth": growth.iter().map(|load| load.json(&single)).collect::<Vec<_>>(),
        }),
        &table(&loads, &single),
    )
}

/// Builds [`NETWORKS`], followed by those of [`GROWTH`].
fn loads(seed: u64) -> CliResult<Vec<Load>> {
    let owned = |settings: &[&str]| settings.iter().map(|&text| text.to_owned()).collect();
    let networks = NETWORKS.iter().map(|(preset, settings)| {
        let settings: Vec<String> = owned(settings);
        Load::new((*preset).to_owned(), preset, &settings, seed)
    });
    let growth = GROWTH.iter().map(|(leaves, spines, measure_ms)| {
        let settings = [
            format!("leaves={leaves}"),
            format!("hosts_per_leaf={leaves}"),
            format!("spines={spines}"),
            format!("measure_ms={measure_ms}"),
            "warmup_ms=0".to_owned(),
            // Hosts with their own demand do not read this setting, but there must be as many hosts.
            "incast_degree=1".to_owned(),
            "active_ports=1".to_owned(),
        ];
        let name = format!("{leaves} x {leaves}, {spines} up");
        Load::new(name, GROWING, &settings, seed)
    });
    networks.chain(growth).collect()
}

fn table(loads: &[Load], single: &[f64]) -> String {
    let mut text = format!(
        "policy {POLICY}, one thread; a packet counts once at every switch\n\n{:<16}{:>7}{:>10}{:>11}{:>14}{:>9}{:>13}{:>9}",
        "network", "hosts", "switches", "ns/packet", "M packets/s", "ratio", "events/hop", "peak"
    );
    for (place, load) in loads.iter().enumerate() {
        if place == NETWORKS.len() {
            let _ = write!(text, "\n\n{GROWING}, growing");
        }
        let _ = write!(text, "\n{}", load.row(single));
    }
    text
}
