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

mod error;
mod file;
mod kinds;
mod presets;
mod range;
mod settings;
mod validate;
mod workloads;

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::units::{Rate, Time};

pub use error::{ScenarioError, SettingProblem, suggestion};
pub use kinds::{
    Arrivals, HostQueue, Recovery, Scheduler, Traffic, TransportKind, UnknownName, Workload,
};
pub use presets::{DEFAULT_PRESET, PRESETS, Preset};
pub use range::{RangeF64, RangeParseError, RangeU32};
pub use settings::Setting;
pub use workloads::Workloads;

/// The switch, the hosts, the transport, the traffic and the control loop of an experiment.
///
/// `Default` is the preset `ndt-16x1g`; the values in brackets are its own. Sizes are in bytes
/// (1 MB = 10^6 B). The fields can be changed freely; [`validate`](Scenario::validate) says
/// whether the whole makes sense, and everything that runs a scenario calls it first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Scenario {
    /// What the scenario is called in results.
    pub name: String,
    /// Switch ports, one host on each (16).
    pub ports: u32,
    /// Rate of every link, bits per second (10^9).
    pub rate_bps: u64,
    /// Buffer shared by all ports, bytes (10^6).
    pub buffer_bytes: u64,
    /// One-way propagation delay of a link, nanoseconds (10,000).
    pub propagation_ns: u64,
    /// Largest payload of a packet, bytes (1,460).
    pub mss: u32,
    /// Bytes on the wire on top of a data packet's payload (58).
    pub header_bytes: u32,
    /// Bytes of an ACK on the wire, SACK blocks included (64).
    pub ack_bytes: u32,
    /// Bytes of a SYN or SYN-ACK on the wire (64).
    pub syn_bytes: u32,
    /// Preamble and inter-frame gap per packet: they take time on the line but no buffer, bytes (0).
    pub overhead_bytes: u32,
    /// Congestion control (`newreno`).
    pub transport: TransportKind,
    /// Whether CUBIC leaves slow start when delay grows (HyStart++, RFC 9406) (false).
    pub hystart: bool,
    /// Selective acknowledgements (true).
    pub sack: bool,
    /// Bytes that each SACK block adds to an ACK of `ack_bytes` (0).
    pub sack_block_bytes: u32,
    /// Loss recovery with SACK (`rfc`).
    pub recovery: Recovery,
    /// In-order segments that one acknowledgement covers; 1 is an acknowledgement each (1).
    pub delayed_ack: u32,
    /// TCP timestamps: 12 bytes more on every data packet, ACK and SYN (false).
    pub timestamps: bool,
    /// Initial window, segments (10).
    pub init_cwnd: u32,
    /// Largest congestion window, bytes; 0 means not capped (0).
    pub max_cwnd_bytes: u64,
    /// Smallest retransmission timeout, microseconds (200,000).
    pub min_rto_us: u64,
    /// Round-trip time assumed before the first sample, microseconds (200).
    pub initial_rtt_us: u64,
    /// Whether a flow starts with SYN and SYN-ACK (false).
    pub handshake: bool,
    /// First timeout of a SYN, microseconds; `None`, written `"min_rto"`, means `min_rto_us`
    /// (`None`).
    pub syn_timeout_us: Option<u64>,
    /// How the flows of a host share its network interface (`fair`).
    pub host_queue: HostQueue,
    /// Whether the packet being serialised still counts in its queue and in the buffer (true).
    pub count_in_service: bool,
    /// Queues of every port; a packet takes that of its flow's priority, or the last one (1).
    /// Generated flows are spread over them in turn.
    pub queues_per_port: u32,
    /// Which queue of a port is served next (`rr`).
    pub scheduler: Scheduler,
    /// Queue length at which the switch marks data (ECN), bytes; 0 is off, but for `dctcp`, which
    /// then has its own: see [`mark_threshold_bytes`](Scenario::mark_threshold_bytes) (0).
    pub ecn_threshold_bytes: u64,
    /// Packets at the head of a queue that count neither in it nor in the buffer, the one being
    /// serialised among them: ns-3's device queue below a marking queue discipline. Needs
    /// `count_in_service` to be false (0).
    pub ecn_uncounted_packets: u32,
    /// Which flows a trace is made of (`poisson`).
    pub traffic: Traffic,
    /// Offered load of each active port as a fraction of its rate, drawn uniformly per trace; of
    /// each port with elephants, elephants alone, where there are such (0.5).
    pub load: RangeF64,
    /// Distribution of the flow sizes; of several, each trace draws one (`web_search`).
    pub workload: Workloads,
    /// How flows towards one port are spread in time (`mixed`).
    pub arrivals: Arrivals,
    /// Number of distinct sources of an active port, drawn uniformly per port; of a query or
    /// burst, drawn for each, where there are such (1..15).
    pub incast_degree: RangeU32,
    /// Number of ports that receive flows, drawn uniformly per trace (1..16).
    pub active_ports: RangeU32,
    /// Number of flows of a trace, drawn log-uniformly per trace (100..1000).
    pub flows: RangeU32,
    /// Mean time between the queries, or between the bursts to one port, microseconds (10,000).
    pub query_gap_us: u64,
    /// What each host answers to a query, or adds to a burst, bytes (64,000).
    pub response_bytes: u64,
    /// Size of an elephant, bytes (30,000,000).
    pub elephant_bytes: u64,
    /// From a trigger to the moment its decision takes effect, microseconds (0).
    pub decision_latency_us: u64,
    /// A decision comes at the latest this long after the one before, microseconds; 0 is off (0).
    pub max_interval_us: u64,
    /// An episode is truncated after this many decisions; 0 is off (0).
    pub max_decisions: u64,
    /// An episode is truncated after this much simulated time, milliseconds; 0 is off (0).
    pub max_simulated_ms: u64,
}

impl Default for Scenario {
    fn default() -> Scenario {
        presets::ndt_16x1g()
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

    /// Name and one-line description of every preset, the default first.
    pub fn scenario_listing() -> Vec<(&'static str, &'static str)> {
        PRESETS
            .iter()
            .map(|preset| (preset.name, preset.summary))
            .collect()
    }

    /// A preset by its name, or else a TOML file by its path; validated.
    ///
    /// Whatever ends in `.toml`, contains a path separator or exists as a file is taken as a path.
    ///
    /// # Errors
    /// When there is neither such a preset nor such a file, or the file is not a valid scenario.
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

    /// The number of ports as an index bound.
    pub fn port_count(&self) -> usize {
        self.ports as usize
    }

    /// The number of queues of the switch, those of all ports together.
    pub fn queue_count(&self) -> usize {
        self.port_count() * self.queues_per_port as usize
    }

    /// Rate of every link.
    pub fn rate(&self) -> Rate {
        Rate(self.rate_bps)
    }

    /// One-way propagation delay of a link.
    pub fn propagation(&self) -> Time {
        Time::from_ns(self.propagation_ns)
    }

    /// Round trip of a full packet and its acknowledgement through an empty switch: four times the
    /// propagation delay and two transmissions of each.
    pub fn base_rtt(&self) -> Time {
        let on_line = |bytes: u64| {
            let bytes = bytes + u64::from(self.overhead_bytes);
            self.rate().transmission_time(bytes).0
        };
        let ack = on_line(u64::from(self.ack_bytes) + u64::from(self.timestamp_bytes()));
        Time(4 * self.propagation().0 + 2 * on_line(self.full_packet_bytes()) + 2 * ack)
    }

    /// First timeout of a SYN.
    pub fn syn_timeout(&self) -> Time {
        Time::from_us(self.syn_timeout_us.unwrap_or(self.min_rto_us))
    }

    /// Mean time between the flows of `workload` towards one active port at `load`, seconds:
    /// `8 · E[S] / (load · C)`.
    pub fn flow_gap_seconds(&self, workload: Workload, load: f64) -> f64 {
        8.0 * workload.distribution().mean() / (load * self.rate_bps as f64)
    }

    /// Time between the elephants towards one port at `load`, seconds: `8 · S / (load · C)`.
    pub fn elephant_gap_seconds(&self, load: f64) -> f64 {
        8.0 * self.elephant_bytes as f64 / (load * self.rate_bps as f64)
    }

    /// The mean of `value(size)` over the flows of all traces, sizes in bytes.
    pub fn mean_over_sizes(&self, mut value: impl FnMut(u64) -> f64) -> f64 {
        let elephant_ports = match self.traffic {
            Traffic::Poisson => {
                let workloads = self.workload.iter();
                let sum: f64 = workloads
                    .map(|workload| workload.distribution().expected(&mut value))
                    .sum();
                return sum / f64::from(self.workload.count());
            }
            Traffic::IncastElephants => self.active_ports.mean() - 1.0,
            Traffic::BurstsOverElephants => self.active_ports.mean(),
        };
        let query_ports = match self.traffic {
            Traffic::IncastElephants => 1.0,
            _ => elephant_ports,
        };
        let elephants = elephant_ports / self.elephant_gap_seconds(self.load.mean());
        let responses = query_ports * self.incast_degree.mean() / (self.query_gap_us as f64 * 1e-6);
        (responses * value(self.response_bytes) + elephants * value(self.elephant_bytes))
            / (responses + elephants)
    }

    /// Queue length at which the switch marks data, bytes; `None` without ECN.
    ///
    /// DCTCP without a setting has K of 20 full packets up to 1 Gbit/s, of 65 at 10 Gbit/s
    /// (DCTCP, SIGCOMM 2010, §3.4), in between and beyond in proportion.
    pub fn mark_threshold_bytes(&self) -> Option<u64> {
        match self.ecn_threshold_bytes {
            0 if self.transport == TransportKind::Dctcp => {
                let gbps = self.rate_bps as f64 / 1e9;
                let packets =
                    (20.0 + 5.0 * (gbps - 1.0)).clamp(20.0, 65.0) * (gbps / 10.0).max(1.0);
                Some(packets.round() as u64 * self.full_packet_bytes())
            }
            0 => None,
            bytes => Some(bytes),
        }
    }

    /// Packets at the head of a queue that count neither in it nor in the buffer.
    pub fn uncounted_packets(&self) -> usize {
        if self.count_in_service {
            0
        } else {
            self.ecn_uncounted_packets.max(1) as usize
        }
    }

    /// Bytes that timestamps add to a packet: 12 (RFC 7323 §3.2, padded) or 0.
    pub fn timestamp_bytes(&self) -> u32 {
        if self.timestamps { 12 } else { 0 }
    }

    /// Bytes that a full data packet takes in the buffer.
    pub fn full_packet_bytes(&self) -> u64 {
        u64::from(self.mss) + u64::from(self.header_bytes) + u64::from(self.timestamp_bytes())
    }
}

#[cfg(test)]
mod tests;
