//! Helpers of the tests for the databases of a switch.

use std::collections::BTreeMap;
use std::time::Duration;

use bufgym_env::control::{Controller, FEATURES, HISTORY};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::traffic::{Trace, generate};
use bufgym_sonic::counters::Source;
use bufgym_sonic::layout::Wanted;
use bufgym_sonic::monitor::Timing;
use bufgym_sonic::{Database, Databases, Settings};
use bufgym_util::rng::{Split, trace_seed};

/// All hashes of a database.
pub type Dump = BTreeMap<String, BTreeMap<String, String>>;

/// Reads everything in a database.
pub fn dump(databases: &mut Databases, database: Database) -> Dump {
    let mut pipeline = redis::pipe();
    pipeline.cmd("KEYS").arg("*");
    let (keys,): (Vec<String>,) = databases.send(database, "dump", &pipeline).unwrap();
    let hash = |key: String| {
        let fields = databases.hash(database, &key).unwrap();
        (key, fields.into_iter().collect())
    };
    keys.into_iter().map(hash).collect()
}

/// Sets a field.
pub fn set(databases: &mut Databases, database: Database, key: &str, field: &str, value: &str) {
    let mut pipeline = redis::pipe();
    pipeline.cmd("HSET").arg(key).arg(field).arg(value).ignore();
    let () = databases.send(database, "set", &pipeline).unwrap();
}

/// Removes a key.
pub fn delete(databases: &mut Databases, database: Database, key: &str) {
    let mut pipeline = redis::pipe();
    pipeline.cmd("DEL").arg(key).ignore();
    let () = databases.send(database, "delete", &pipeline).unwrap();
}

/// Removes a field.
pub fn unset(databases: &mut Databases, database: Database, key: &str, field: &str) {
    let mut pipeline = redis::pipe();
    pipeline.cmd("HDEL").arg(key).arg(field).ignore();
    let () = databases.send(database, "unset", &pipeline).unwrap();
}

/// Returns settings for the simulated switch, with a decision at every `interval_ms` even without a trigger.
pub fn settings(interval_ms: u64) -> Settings {
    let interval = Duration::from_millis(interval_ms);
    Settings {
        wanted: Wanted {
            pool: "egress_lossy_pool".to_owned(),
            ports: Vec::new(),
            buffer_bytes: None,
        },
        source: Source::Queue,
        timing: Timing {
            shortest: interval,
            longest: interval,
        },
        stale: Duration::from_secs(10),
        max_threshold: 5,
        dry_run: false,
    }
}

/// Returns a trace with drops.
pub fn crowded() -> (Scenario, Trace) {
    let mut scenario = Scenario::default();
    for setting in ["flows=60", "active_ports=3", "buffer_bytes=200000"] {
        scenario.set(setting).unwrap();
    }
    let trace = generate(&scenario, trace_seed(Split::Train, 5, 0));
    (scenario, trace)
}

/// Decides by the newest step, differently on every port, and records the observations.
#[derive(Clone, Debug, Default)]
pub struct Watcher {
    pub seen: Vec<Vec<f32>>,
}

impl Controller for Watcher {
    fn act(&mut self, observation: &[f32], _ports: usize, action: &mut [f32]) {
        let histories = observation.chunks_exact(HISTORY * FEATURES);
        for (action, history) in action.iter_mut().zip(histories) {
            let newest = &history[(HISTORY - 1) * FEATURES..];
            *action = (1.4 * newest[1] + 0.5 * newest[2] - 3.0 * newest[0] - 0.6 - 0.3 * newest[3])
                .clamp(-1.0, 1.0);
        }
        self.seen.push(observation.to_vec());
    }
}

/// Lets the agent and the test share one controller.
impl Controller for &mut Watcher {
    fn act(&mut self, observation: &[f32], ports: usize, action: &mut [f32]) {
        Watcher::act(self, observation, ports, action);
    }
}
