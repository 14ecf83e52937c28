//! Settings by name: one table serves `--set`, TOML in and TOML out.

use super::error::SettingProblem;
use super::{
    Arrivals, HostQueue, RangeF64, RangeU32, Recovery, Scenario, Scheduler, Traffic, TransportKind,
    Workload, Workloads,
};

/// A value as it was written, before it is known which setting it is for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Written {
    /// A number or word on the command line, where nothing is quoted.
    Bare(String),
    /// A TOML string.
    Text(String),
    /// A TOML integer.
    Integer(i128),
    /// A TOML float.
    Float(f64),
    /// A TOML boolean.
    Bool(bool),
    /// Anything else in TOML, by the name of its type.
    Other(&'static str),
}

impl Written {
    fn describe(&self) -> String {
        match self {
            Written::Bare(text) => format!("`{text}`"),
            Written::Text(text) => format!("the text \"{text}\""),
            Written::Integer(value) => value.to_string(),
            Written::Float(value) => format!("{value:?}"),
            Written::Bool(value) => value.to_string(),
            Written::Other(kind) => (*kind).to_owned(),
        }
    }

    fn is_not(&self, expected: &str) -> String {
        format!("expected {expected}, found {}", self.describe())
    }

    /// A whole number; `1e9` and `1_000_000` are whole numbers too.
    fn integer(&self) -> Option<i128> {
        match self {
            Written::Integer(value) => Some(*value),
            Written::Float(value) => whole(*value),
            Written::Bare(text) => {
                let text = text.replace('_', "");
                text.parse()
                    .ok()
                    .or_else(|| text.parse().ok().and_then(whole))
            }
            _ => None,
        }
    }

    fn words(&self) -> Option<&str> {
        match self {
            Written::Bare(text) | Written::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// Floats up to 2^53 name whole numbers exactly; beyond that the digits given would be lost.
fn whole(value: f64) -> Option<i128> {
    (value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0).then_some(value as i128)
}

/// A type of a scenario field: from what was written, and to TOML.
trait Field: Sized {
    fn from_written(written: &Written) -> Result<Self, String>;
    fn to_toml(&self) -> String;
}

macro_rules! unsigned_field {
    ($($type:ident),+) => {$(
        impl Field for $type {
            fn from_written(written: &Written) -> Result<$type, String> {
                let value = written
                    .integer()
                    .ok_or_else(|| written.is_not("a whole number"))?;
                // TOML integers are signed 64-bit numbers: what could not be saved is not accepted.
                let max = ($type::MAX as i128).min(i64::MAX as i128);
                if (0..=max).contains(&value) {
                    Ok(value as $type)
                } else {
                    Err(format!("expected a whole number from 0 to {max}, found {value}"))
                }
            }

            fn to_toml(&self) -> String {
                self.to_string()
            }
        }
    )+};
}
unsigned_field!(u32, u64);

impl Field for RangeF64 {
    fn from_written(written: &Written) -> Result<RangeF64, String> {
        let value = match written {
            Written::Float(value) => Some(RangeF64::from(*value)),
            Written::Integer(value) => Some(RangeF64::from(*value as f64)),
            Written::Bare(text) | Written::Text(text) => text.parse().ok(),
            _ => None,
        };
        value.ok_or_else(|| written.is_not("a number or a range such as 0.1..0.9"))
    }

    fn to_toml(&self) -> String {
        if self.min.is_nan() {
            "nan".to_owned()
        } else if self.is_single() {
            format!("{:?}", self.min)
        } else {
            format!("\"{self}\"")
        }
    }
}

impl Field for bool {
    fn from_written(written: &Written) -> Result<bool, String> {
        let value = match written {
            Written::Bool(value) => Some(*value),
            Written::Bare(text) => text.parse().ok(),
            _ => None,
        };
        value.ok_or_else(|| written.is_not("true or false"))
    }

    fn to_toml(&self) -> String {
        self.to_string()
    }
}

impl Field for String {
    fn from_written(written: &Written) -> Result<String, String> {
        written
            .words()
            .map(str::to_owned)
            .ok_or_else(|| written.is_not("a text"))
    }

    fn to_toml(&self) -> String {
        toml::Value::String(self.clone()).to_string()
    }
}

impl Field for RangeU32 {
    fn from_written(written: &Written) -> Result<RangeU32, String> {
        if written.integer().is_some() {
            return u32::from_written(written).map(|value| RangeU32::new(value, value));
        }
        let expected = "a whole number or a range such as 1..16";
        let text = written.words().ok_or_else(|| written.is_not(expected))?;
        text.parse().map_err(|_| written.is_not(expected))
    }

    fn to_toml(&self) -> String {
        if self.min == self.max {
            self.to_string()
        } else {
            format!("\"{self}\"")
        }
    }
}

impl Field for Option<u64> {
    fn from_written(written: &Written) -> Result<Option<u64>, String> {
        if written.words() == Some("min_rto") {
            return Ok(None);
        }
        if written.integer().is_none() {
            return Err(written.is_not("a whole number of microseconds or min_rto"));
        }
        u64::from_written(written).map(Some)
    }

    fn to_toml(&self) -> String {
        self.map_or_else(|| "\"min_rto\"".to_owned(), |value| value.to_string())
    }
}

macro_rules! named_field {
    ($($type:ident),+) => {$(
        impl Field for $type {
            fn from_written(written: &Written) -> Result<$type, String> {
                let names: Vec<_> = $type::ALL.iter().map(|value| value.name()).collect();
                let expected = format!("one of {}", names.join(", "));
                let text = written.words().ok_or_else(|| written.is_not(&expected))?;
                text.parse().map_err(|error: super::UnknownName| error.to_string())
            }

            fn to_toml(&self) -> String {
                format!("\"{}\"", self.name())
            }
        }
    )+};
}
named_field!(
    TransportKind,
    Recovery,
    HostQueue,
    Scheduler,
    Traffic,
    Arrivals
);

impl Field for Workloads {
    fn from_written(written: &Written) -> Result<Workloads, String> {
        let names: Vec<_> = Workload::ALL.iter().map(|value| value.name()).collect();
        let expected = format!("one or several of {}", names.join(","));
        let text = written.words().ok_or_else(|| written.is_not(&expected))?;
        text.parse()
            .map_err(|error: super::UnknownName| error.to_string())
    }

    fn to_toml(&self) -> String {
        format!("\"{self}\"")
    }
}

/// Name and meaning of a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The key in TOML and on the command line.
    pub key: &'static str,
    /// One line: meaning and unit.
    pub meaning: &'static str,
}

macro_rules! settings {
    ($($field:ident: $meaning:literal,)+) => {
        const SETTINGS: &[Setting] = &[$(Setting { key: stringify!($field), meaning: $meaning },)+];

        impl Scenario {
            /// Sets the field `key`.
            pub(super) fn apply(&mut self, key: &str, written: &Written) -> Result<(), SettingProblem> {
                let value_problem = |message| SettingProblem::Value { key: key.to_owned(), message };
                match key {
                    $(stringify!($field) => {
                        self.$field = Field::from_written(written).map_err(value_problem)?;
                    })+
                    _ => {
                        return Err(SettingProblem::UnknownKey {
                            key: key.to_owned(),
                            known: SETTINGS.iter().map(|setting| setting.key).collect(),
                        });
                    }
                }
                Ok(())
            }

            /// Every setting with its value as TOML.
            pub(super) fn entries(&self) -> Vec<(&'static Setting, String)> {
                // Without this pattern a new field could be left out of the table.
                let Scenario { $($field,)+ } = self;
                SETTINGS.iter().zip([$($field.to_toml(),)+]).collect()
            }
        }
    };
}

settings! {
    name: "what the scenario is called in results",
    ports: "switch ports, one host on each",
    rate_bps: "rate of every link, bit/s",
    buffer_bytes: "buffer shared by all ports, bytes",
    propagation_ns: "one-way propagation delay of a link, ns",
    mss: "largest payload of a packet, bytes",
    header_bytes: "bytes on the wire on top of the payload",
    ack_bytes: "bytes of an ACK on the wire",
    syn_bytes: "bytes of a SYN or SYN-ACK on the wire",
    overhead_bytes: "preamble and gap per packet, on the line only, bytes",
    transport: "congestion control: newreno | cubic | dctcp | cubic-ns3",
    hystart: "cubic leaves slow start when delay grows (HyStart++)",
    sack: "selective acknowledgements",
    sack_block_bytes: "bytes of an ACK per SACK block, on top of ack_bytes",
    recovery: "loss recovery: rfc | ns3",
    delayed_ack: "in-order segments that one ACK covers; 1: an ACK each",
    timestamps: "TCP timestamps, 12 bytes more per packet",
    init_cwnd: "initial window, segments",
    max_cwnd_bytes: "largest congestion window, bytes; 0: not capped",
    min_rto_us: "smallest retransmission timeout, us",
    initial_rtt_us: "round-trip time assumed before the first sample, us",
    handshake: "flows start with SYN and SYN-ACK",
    syn_timeout_us: "first timeout of a SYN, us, or min_rto",
    host_queue: "how the flows of a host share its interface: fair | fifo",
    count_in_service: "the packet being serialised counts in its queue",
    queues_per_port: "queues of a port, by priority of the flows",
    scheduler: "which queue of a port comes next: rr | drr | strict",
    ecn_threshold_bytes: "queue length at which data is marked; 0: off, dctcp's own",
    ecn_uncounted_packets: "packets at the head of a queue that count nowhere",
    traffic: "poisson | incast_elephants | bursts_over_elephants",
    load: "offered load of an active port, fraction of its rate; uniform per trace",
    workload: "web_search, data_mining, fb_hadoop, ali_storage; one per trace",
    arrivals: "flows in time: mixed | spread | synchronised",
    incast_degree: "sources of an active port, uniform per port",
    active_ports: "ports that receive flows, uniform per trace",
    flows: "flows of a trace, log-uniform per trace",
    query_gap_us: "mean time between queries or bursts to a port, us",
    response_bytes: "what each host answers to a query, or adds to a burst, bytes",
    elephant_bytes: "size of a background flow, bytes",
    decision_latency_us: "from a trigger to its decision taking effect, us",
    max_interval_us: "longest time between decisions, us; 0: off",
    max_decisions: "an episode is truncated after so many decisions; 0: off",
    max_simulated_ms: "an episode is truncated after so much time, ms; 0: off",
}

impl Scenario {
    /// Every setting with its meaning, in the order of [`to_toml`](Scenario::to_toml).
    pub fn settings() -> &'static [Setting] {
        SETTINGS
    }
}
