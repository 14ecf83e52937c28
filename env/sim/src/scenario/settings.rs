//! Settings by name: the declaration of a group serves `--set`, reading TOML and writing TOML.

#![warn(clippy::arithmetic_side_effects)]

use bufgym_util::convert::whole_i64;

use super::{
    AckClass, AckQueue, Arrivals, Congested, Demand, Ecmp, EcmpSalt, EcnCapable, FlowEnd,
    FlowPriority, HostQueue, HyStartRule, LeafHosts, LosslessRules, Marking, PerQueue, PfcMode,
    Priorities, RangeF64, RangeU32, Recovery, Scheduler, SlowdownBase, SpineBuffer, SpinePool,
    TcpRules, TopologyKind, Traffic, TransportKind, TransportVariant, Unscheduled, Watchdog,
    Workload, Workloads,
};

use bufgym_util::input::{excerpt, lines};

/// A value as the user wrote it, independent of its setting.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RawValue {
    /// A number or word on the command line, where texts have no quotes.
    Bare(String),
    /// A TOML string.
    Text(String),
    /// A TOML integer.
    Integer(i128),
    /// A TOML float.
    Float(f64),
    /// A TOML boolean.
    Bool(bool),
    /// Any other TOML value: the name of its type.
    Other(&'static str),
}

impl RawValue {
    fn describe(&self) -> String {
        match self {
            RawValue::Bare(text) => format!("`{}`", excerpt(text)),
            RawValue::Text(text) => format!("the text \"{}\"", excerpt(text)),
            RawValue::Integer(value) => value.to_string(),
            RawValue::Float(value) => format!("{value:?}"),
            RawValue::Bool(value) => value.to_string(),
            RawValue::Other(kind) => (*kind).to_owned(),
        }
    }

    fn is_not(&self, expected: &str) -> String {
        format!("expected {expected}, found {}", self.describe())
    }

    /// The value as a whole number; `1e9` and `1_000_000` are whole numbers too.
    fn integer(&self) -> Option<i128> {
        match self {
            RawValue::Integer(value) => Some(*value),
            RawValue::Float(value) => whole(*value),
            RawValue::Bare(text) => {
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
            RawValue::Bare(text) | RawValue::Text(text) => Some(text),
            _ => None,
        }
    }
}

/// The float as a whole number. Above 2^53 floats are not exact, so larger ones are refused.
fn whole(value: f64) -> Option<i128> {
    let exact = value.fract() == 0.0 && value.abs() <= 9_007_199_254_740_992.0;
    exact.then(|| i128::from(whole_i64(value)))
}

/// The type of a scenario field, which can be read from user input and written as TOML.
pub(super) trait Field: Sized {
    fn from_written(written: &RawValue) -> Result<Self, String>;
    fn to_toml(&self) -> String;
}

macro_rules! unsigned_field {
    ($($type:ident),+) => {$(
        impl Field for $type {
            fn from_written(written: &RawValue) -> Result<$type, String> {
                let value = written
                    .integer()
                    .ok_or_else(|| written.is_not("a whole number"))?;
                // TOML integers are signed 64-bit numbers. A larger value could not be saved.
                let max = i128::from($type::MAX).min(i128::from(i64::MAX));
                let fitting = $type::try_from(value).ok().filter(|_| value <= max);
                fitting.ok_or_else(|| {
                    format!("expected a whole number from 0 to {max}, found {value}")
                })
            }

            fn to_toml(&self) -> String {
                self.to_string()
            }
        }
    )+};
}
unsigned_field!(u32, u64);

impl Field for RangeF64 {
    fn from_written(written: &RawValue) -> Result<RangeF64, String> {
        let value = match written {
            RawValue::Float(value) => Some(RangeF64::from(*value)),
            RawValue::Integer(value) => Some(RangeF64::from(*value as f64)),
            RawValue::Bare(text) | RawValue::Text(text) => text.parse().ok(),
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

impl Field for f64 {
    fn from_written(written: &RawValue) -> Result<f64, String> {
        let value = match written {
            RawValue::Float(value) => Some(*value),
            RawValue::Integer(value) => Some(*value as f64),
            RawValue::Bare(text) => text.parse().ok(),
            _ => None,
        };
        value.ok_or_else(|| written.is_not("a number"))
    }

    fn to_toml(&self) -> String {
        format!("{self:?}").to_lowercase()
    }
}

impl Field for bool {
    fn from_written(written: &RawValue) -> Result<bool, String> {
        let value = match written {
            RawValue::Bool(value) => Some(*value),
            RawValue::Bare(text) => text.parse().ok(),
            _ => None,
        };
        value.ok_or_else(|| written.is_not("true or false"))
    }

    fn to_toml(&self) -> String {
        self.to_string()
    }
}

impl Field for String {
    fn from_written(written: &RawValue) -> Result<String, String> {
        written
            .words()
            .map(str::to_owned)
            .ok_or_else(|| written.is_not("a text"))
    }

    fn to_toml(&self) -> String {
        if lines(self) == *self {
            return toml::Value::String(self.clone()).to_string();
        }
        // TOML allows control characters from U+0080 on, and terminals obey them.
        let escaped = self.chars().map(|character| match character {
            '"' | '\\' => format!("\\{character}"),
            _ if lines(character.encode_utf8(&mut [0; 4]))
                .chars()
                .eq([character]) =>
            {
                character.to_string()
            }
            _ => format!("\\U{:08x}", u32::from(character)),
        });
        format!("\"{}\"", escaped.collect::<String>().replace('\n', "\\n"))
    }
}

impl Field for RangeU32 {
    fn from_written(written: &RawValue) -> Result<RangeU32, String> {
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
    fn from_written(written: &RawValue) -> Result<Option<u64>, String> {
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

impl Field for Option<TransportKind> {
    fn from_written(written: &RawValue) -> Result<Option<TransportKind>, String> {
        if written.words() == Some("same") {
            return Ok(None);
        }
        TransportKind::from_written(written)
            .map(Some)
            .map_err(|problem| format!("{problem}; or same"))
    }

    fn to_toml(&self) -> String {
        self.map_or_else(|| "\"same\"".to_owned(), |kind| Field::to_toml(&kind))
    }
}

macro_rules! named_field {
    ($($type:ident),+) => {$(
        impl Field for $type {
            fn from_written(written: &RawValue) -> Result<$type, String> {
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
    SpineBuffer,
    SpinePool,
    Ecmp,
    EcmpSalt,
    Demand,
    FlowPriority,
    SlowdownBase,
    TransportKind,
    TransportVariant,
    Unscheduled,
    FlowEnd,
    AckClass,
    Recovery,
    HyStartRule,
    TcpRules,
    HostQueue,
    Scheduler,
    Marking,
    EcnCapable,
    LosslessRules,
    Congested,
    PfcMode,
    Watchdog,
    Traffic,
    Arrivals
);

impl Field for TopologyKind {
    fn from_written(written: &RawValue) -> Result<TopologyKind, String> {
        let expected = "single, leafspine or a file of links";
        let text = written.words().ok_or_else(|| written.is_not(expected))?;
        text.parse()
            .map_err(|error: super::LinksError| error.to_string())
    }

    fn to_toml(&self) -> String {
        format!("\"{self}\"")
    }
}

impl Field for AckQueue {
    fn from_written(written: &RawValue) -> Result<AckQueue, String> {
        if written.integer().is_some() {
            return u32::from_written(written).map(AckQueue::Number);
        }
        let expected = "the number of a queue or flow";
        let text = written.words().ok_or_else(|| written.is_not(expected))?;
        text.parse()
            .map_err(|error: super::NoQueue| error.to_string())
    }

    fn to_toml(&self) -> String {
        match self {
            AckQueue::OfFlow => format!("\"{self}\""),
            AckQueue::Number(queue) => queue.to_string(),
        }
    }
}

impl Field for LeafHosts {
    fn from_written(written: &RawValue) -> Result<LeafHosts, String> {
        if written.integer().is_some() {
            return RangeU32::from_written(written).map(LeafHosts::Numbers);
        }
        let expected = "numbers of hosts of a leaf, such as 0..15, or all";
        let text = written.words().ok_or_else(|| written.is_not(expected))?;
        text.parse()
            .map_err(|error: super::NoHosts| error.to_string())
    }

    fn to_toml(&self) -> String {
        match self {
            LeafHosts::Numbers(numbers) => numbers.to_toml(),
            LeafHosts::All => format!("\"{self}\""),
        }
    }
}

impl Field for PerQueue {
    fn from_written(written: &RawValue) -> Result<PerQueue, String> {
        let expected = "numbers above 0 separated by commas, such as \"1,0.5\"";
        let text = match written {
            RawValue::Integer(value) => value.to_string(),
            RawValue::Float(value) => value.to_string(),
            _ => written
                .words()
                .ok_or_else(|| written.is_not(expected))?
                .to_owned(),
        };
        text.parse()
            .map_err(|error: super::NotPerQueue| error.to_string())
    }

    fn to_toml(&self) -> String {
        format!("\"{self}\"")
    }
}

impl Field for Priorities {
    fn from_written(written: &RawValue) -> Result<Priorities, String> {
        let expected = "priorities separated by commas, such as \"3\", or none";
        let text = match written {
            RawValue::Integer(value) => value.to_string(),
            _ => written
                .words()
                .ok_or_else(|| written.is_not(expected))?
                .to_owned(),
        };
        text.parse()
            .map_err(|error: super::NoPriorities| error.to_string())
    }

    fn to_toml(&self) -> String {
        format!("\"{self}\"")
    }
}

impl Field for Workloads {
    fn from_written(written: &RawValue) -> Result<Workloads, String> {
        let names: Vec<_> = Workload::ALL.iter().map(|value| value.name()).collect();
        let expected = format!("one or several of {}", names.join(","));
        let text = written.words().ok_or_else(|| written.is_not(&expected))?;
        let workloads = match written {
            // A user of the command line has the file. A scenario may come from elsewhere.
            RawValue::Bare(_) => Workloads::read(text),
            _ => text.parse(),
        };
        workloads.map_err(|error| error.to_string())
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

/// A part of the settings of a scenario.
pub(super) trait Group {
    /// Sets the setting with this name. Returns `None` if the group has none of this name.
    fn apply(&mut self, key: &str, written: &RawValue) -> Option<Result<(), String>>;

    /// Every setting with its meaning.
    fn settings(&self) -> &'static [Setting];

    /// The values of all settings as TOML.
    fn to_toml(&self) -> Vec<String>;

    /// The values of all settings as JSON.
    fn to_json(&self) -> serde_json::Result<Vec<serde_json::Value>>;
}

/// Declares a group of settings. A line of the list is `field: type = default, "meaning";`, or
/// `field as name: …` where the setting has another name in TOML and on the command line than its field. The
/// documentation of a field is its meaning, the comment above its line, and its default.
macro_rules! settings {
    (
        $(#[$attribute:meta])*
        pub struct $group:ident {
            $($(#[$doc:meta])* $field:ident $(as $key:ident)?: $type:ty = $default:expr, $meaning:expr;)+
        }
    ) => {
        $(#[$attribute])*
        #[derive(Clone, Debug, PartialEq)]
        pub struct $group {
            $(
                #[doc = $meaning]
                #[doc = ""]
                $(#[$doc])*
                #[doc = ""]
                $(#[doc = concat!("Written `", stringify!($key), "`.")])?
                #[doc = concat!("Default: `", stringify!($default), "`.")]
                pub $field: $type,
            )+
        }

        impl Default for $group {
            fn default() -> $group {
                $group { $($field: $default,)+ }
            }
        }

        impl $crate::scenario::settings::Group for $group {
            fn apply(
                &mut self,
                key: &str,
                written: &$crate::scenario::settings::RawValue,
            ) -> Option<Result<(), String>> {
                $(
                    if key == $crate::scenario::settings::key!($field $($key)?) {
                        let value = $crate::scenario::settings::Field::from_written(written);
                        return Some(value.map(|value| self.$field = value));
                    }
                )+
                None
            }

            fn settings(&self) -> &'static [$crate::scenario::Setting] {
                &[$(
                    $crate::scenario::Setting {
                        key: $crate::scenario::settings::key!($field $($key)?),
                        meaning: $meaning,
                    },
                )+]
            }

            fn to_toml(&self) -> Vec<String> {
                vec![$($crate::scenario::settings::Field::to_toml(&self.$field),)+]
            }

            fn to_json(&self) -> serde_json::Result<Vec<serde_json::Value>> {
                Ok(vec![$(serde_json::to_value(&self.$field)?,)+])
            }
        }
    };
}
pub(super) use settings;

/// The name of a setting: that of its field, unless it has another one.
macro_rules! key {
    ($field:ident) => {
        stringify!($field)
    };
    ($field:ident $key:ident) => {
        stringify!($key)
    };
}
pub(super) use key;
