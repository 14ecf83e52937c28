//! Everything that defines an experiment except the policy and the seed.
//!
//! A [`Scenario`] comes from a preset, a TOML file, or either with single settings changed:
//!
//! ```
//! use bufgym_sim::scenario::Scenario;
//!
//! let mut scenario = Scenario::preset("ndt-16x1g")?;
//! scenario.set("active_ports=2..8")?;
//! scenario.validate()?;
//! assert_eq!(scenario, Scenario::from_toml_str(&scenario.to_toml(), "mine.toml")?);
//! # Ok::<(), bufgym_sim::scenario::ScenarioError>(())
//! ```

mod control;
mod demand;
mod error;
mod file;
mod host;
mod links;
mod lossless;
mod marking;
mod named;
mod network;
mod packets;
mod presets;
mod priorities;
mod queues;
mod range;
mod rdma;
mod settings;
mod sizes;
mod tcp;
mod traffic;
mod transport;
mod transports;
mod validate;
mod workloads;

use std::path::Path;

use serde::ser::{self, SerializeMap as _};
use serde::{Serialize, Serializer};

use settings::{Group, RawValue};

pub use control::ControlSettings;
pub use demand::{Demand, DemandSettings, LeafHosts, NoHosts};
pub use error::{ScenarioError, SettingProblem};
pub use host::{HostQueue, HostSettings};
pub use links::{Link, LinksError, NetworkLinks, Node, TopologyKind};
pub(crate) use lossless::MAX_SACK_BLOCKS;
pub use lossless::{Congested, LosslessRules, LosslessSettings, PfcMode, Watchdog};
pub use marking::{EcnCapable, Marking, MarkingSettings};
pub use named::UnknownName;
pub use network::{Ecmp, EcmpSalt, NetworkSettings, SpineBuffer, SpinePool, Tier};
pub use packets::{PacketSettings, TelemetrySettings};
pub use presets::{DEFAULT_PRESET, PRESETS, Preset};
pub use priorities::{NoPriorities, Priorities};
pub use queues::{
    AckQueue, FlowPriority, NoQueue, NotPerQueue, PerQueue, QueueSettings, Scheduler,
};
pub use range::{RangeF64, RangeParseError, RangeU32};
pub use rdma::{AckClass, FlowEnd, RdmaSettings};
pub use settings::Setting;
pub use sizes::{SizeDistribution, SizeError};
pub use tcp::{HyStartRule, Recovery, TcpRules, TcpSettings, Unscheduled};
pub use traffic::{Arrivals, SlowdownBase, Traffic, TrafficSettings};
pub use transport::{TransportSettings, TransportVariant};
pub use transports::TransportKind;
pub(crate) use transports::transports;
pub(crate) use validate::MAX_RECORDS;
pub use workloads::{Sizes, Workload, WorkloadError, Workloads};

/// The setting that belongs to no group.
const NAME: Setting = Setting {
    key: "name",
    meaning: "what the scenario is called in results",
};

/// Largest size of a flow, bytes: 1 TB.
pub const MAX_FLOW_BYTES: u64 = 1_000_000_000_000;

/// Largest congestion window, bytes: 2 GiB. Windows are counted in 32 bits, and sums of two must fit.
pub(crate) const MAX_WINDOW: u32 = u32::MAX / 2;

/// The switch, the hosts, the transport, the traffic and the control loop of an experiment.
///
/// `Default` is the preset `ndt-16x1g`. Sizes are in bytes (1 MB = 10^6 B). Settings are grouped by what they
/// describe; in TOML and on the command line they have one name each, without a group. The fields can be changed
/// freely. [`validate`](Scenario::validate) checks that the settings make sense together; everything that runs a
/// scenario calls it first.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// What the scenario is called in results. Default: [`DEFAULT_PRESET`].
    pub name: String,
    /// Switches, links and buffers.
    pub network: NetworkSettings,
    /// Sizes of TCP packets on the wire.
    pub packets: PacketSettings,
    /// Transports of the classes of flows, and settings of those with a rate.
    pub transport: TransportSettings,
    /// Packets and timers of RDMA flows.
    pub rdma: RdmaSettings,
    /// Telemetry that switches write into packets.
    pub telemetry: TelemetrySettings,
    /// Both ends of a TCP connection.
    pub tcp: TcpSettings,
    /// Hosts: how flows share an interface, and how fast packets are taken.
    pub host: HostSettings,
    /// Queues of a port: which packets they hold, and which comes next.
    pub queues: QueueSettings,
    /// Marks of explicit congestion notification.
    pub marking: MarkingSettings,
    /// Priorities without loss, and the pause frames that protect them.
    pub lossless: LosslessSettings,
    /// Traffic for a given time, from every host.
    pub demand: DemandSettings,
    /// Flows towards active ports, and sizes and load of all traffic.
    pub traffic: TrafficSettings,
    /// When a controller decides, and where an episode ends.
    pub control: ControlSettings,
}

impl Default for Scenario {
    fn default() -> Scenario {
        Scenario {
            name: DEFAULT_PRESET.to_owned(),
            network: NetworkSettings::default(),
            packets: PacketSettings::default(),
            transport: TransportSettings::default(),
            rdma: RdmaSettings::default(),
            telemetry: TelemetrySettings::default(),
            tcp: TcpSettings::default(),
            host: HostSettings::default(),
            queues: QueueSettings::default(),
            marking: MarkingSettings::default(),
            lossless: LosslessSettings::default(),
            demand: DemandSettings::default(),
            traffic: TrafficSettings::default(),
            control: ControlSettings::default(),
        }
    }
}

/// Settings by name.
impl Scenario {
    fn groups(&self) -> [&dyn Group; 13] {
        [
            &self.network,
            &self.packets,
            &self.transport,
            &self.rdma,
            &self.telemetry,
            &self.tcp,
            &self.host,
            &self.queues,
            &self.marking,
            &self.lossless,
            &self.demand,
            &self.traffic,
            &self.control,
        ]
    }

    fn groups_mut(&mut self) -> [&mut dyn Group; 13] {
        [
            &mut self.network,
            &mut self.packets,
            &mut self.transport,
            &mut self.rdma,
            &mut self.telemetry,
            &mut self.tcp,
            &mut self.host,
            &mut self.queues,
            &mut self.marking,
            &mut self.lossless,
            &mut self.demand,
            &mut self.traffic,
            &mut self.control,
        ]
    }

    /// Every setting with its meaning, in the order of [`to_toml`](Scenario::to_toml).
    pub fn settings() -> Vec<Setting> {
        let others = Scenario::default();
        let others = others.groups().into_iter().flat_map(Group::settings);
        [NAME].into_iter().chain(others.copied()).collect()
    }

    /// Sets one setting alone; [`settle`](Scenario::settle) follows, once.
    fn apply(&mut self, key: &str, written: &RawValue) -> Result<(), SettingProblem> {
        let applied = match key {
            _ if key == NAME.key => {
                Some(settings::Field::from_written(written).map(|name| self.name = name))
            }
            _ => {
                let mut groups = self.groups_mut().into_iter();
                groups.find_map(|group| group.apply(key, written))
            }
        };
        let key = key.to_owned();
        match applied {
            Some(applied) => applied.map_err(|message| SettingProblem::Value { key, message }),
            None => Err(SettingProblem::UnknownKey {
                key,
                known: Scenario::settings()
                    .iter()
                    .map(|setting| setting.key)
                    .collect(),
            }),
        }
    }

    /// The values of all settings as TOML.
    fn values(&self) -> Vec<String> {
        let others = self.groups().into_iter().flat_map(Group::to_toml);
        [settings::Field::to_toml(&self.name)]
            .into_iter()
            .chain(others)
            .collect()
    }

    /// Returns the scenario after `change`.
    #[must_use]
    pub fn with(mut self, change: impl FnOnce(&mut Scenario)) -> Scenario {
        change(&mut self);
        self
    }
}

/// One object with all settings by name.
impl Serialize for Scenario {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry(NAME.key, &self.name)?;
        for group in self.groups() {
            let values = group.to_json().map_err(ser::Error::custom)?;
            for (setting, value) in group.settings().iter().zip(values) {
                map.serialize_entry(setting.key, &value)?;
            }
        }
        map.end()
    }
}

impl Scenario {
    /// The preset with this name.
    ///
    /// # Errors
    /// [`ScenarioError::UnknownPreset`], with the nearest name.
    pub fn preset(name: &str) -> Result<Scenario, ScenarioError> {
        PRESETS
            .iter()
            .find(|preset| preset.name == name)
            .map(Preset::scenario)
            .ok_or_else(|| ScenarioError::UnknownPreset {
                name: name.to_owned(),
                known: PRESETS.iter().map(|preset| preset.name).collect(),
            })
    }

    /// Every preset, the default first.
    pub fn presets() -> &'static [Preset] {
        PRESETS
    }

    /// A preset by its name, or else a TOML file by its path; validated.
    ///
    /// A name that ends in `.toml`, contains a path separator or exists as a file is taken as a path.
    ///
    /// # Errors
    /// When no preset and no file has this name, or the file is not a valid scenario.
    pub fn load(name_or_path: &str) -> Result<Scenario, ScenarioError> {
        let unknown = match Scenario::preset(name_or_path) {
            Ok(scenario) => return Ok(scenario),
            Err(error) => error,
        };
        let path = Path::new(name_or_path);
        let meant_as_path = path
            .extension()
            .is_some_and(|extension| extension == "toml")
            || path.components().count() > 1;
        if !meant_as_path && !path.is_file() {
            return Err(unknown);
        }
        Scenario::from_toml_file(path)
    }
}

#[cfg(test)]
mod tests;
