//! Names in SONiC's databases, taken from sonic-swss-common's `common/schema.h` and sonic-swss's
//! `doc/swss-schema.md`.

use bufgym_env::control::{ALPHAS, INITIAL_LEVEL};

/// CONFIG_DB: buffer pools by name; fields `type`, `mode`, `size`.
pub const BUFFER_POOL: &str = "BUFFER_POOL";
/// CONFIG_DB: buffer profiles by name; fields `pool`, `size`, `dynamic_th` or `static_th`.
pub const BUFFER_PROFILE: &str = "BUFFER_PROFILE";
/// CONFIG_DB: the profile of the egress queues of a port, by `PORT|FIRST-LAST`.
pub const BUFFER_QUEUE: &str = "BUFFER_QUEUE";
/// CONFIG_DB: ports by name; fields `speed`, Mbit/s, and `admin_status`.
pub const PORT: &str = "PORT";
/// APPL_DB: ports in force. `admin_status` is there even if CONFIG_DB leaves it out (sonic-swss,
/// `cfgmgr/portmgr.cpp`).
pub const APPL_PORT: &str = "PORT_TABLE";
/// APPL_DB: buffer pools in force, with sizes that the switch has computed.
pub const APPL_BUFFER_POOL: &str = "BUFFER_POOL_TABLE";
/// COUNTERS_DB: object ids by port name.
pub const PORT_MAP: &str = "COUNTERS_PORT_NAME_MAP";
/// COUNTERS_DB: object ids by `PORT:QUEUE`.
pub const QUEUE_MAP: &str = "COUNTERS_QUEUE_NAME_MAP";
/// COUNTERS_DB: counters of an object, by its id.
pub const COUNTERS: &str = "COUNTERS";
/// COUNTERS_DB: times at which groups of counters were last read, in ns of a steady clock.
pub const TIME_STAMPS: &str = "COUNTERS:TIME_STAMP";

/// The field of a profile that holds log2 α.
pub const DYNAMIC_TH: &str = "dynamic_th";
/// The field of a profile with a fixed limit.
pub const STATIC_TH: &str = "static_th";
/// The field of a profile with the bytes that are reserved for each queue.
pub const SIZE: &str = "size";
/// The field of a port that is `up` or `down`.
pub const ADMIN_STATUS: &str = "admin_status";
/// The field that refers to a pool.
pub const POOL: &str = "pool";
/// The field that refers to a profile.
pub const PROFILE: &str = "profile";

/// Range of `dynamic_th` (sonic-buffer-profile.yang).
pub const DYNAMIC_TH_RANGE: std::ops::RangeInclusive<i8> = -8..=7;

/// Returns `TABLE|KEY` of CONFIG_DB and STATE_DB.
pub fn key(table: &str, name: &str) -> String {
    format!("{table}|{name}")
}

/// Returns the key of an object's counters.
pub fn counters(oid: &str) -> String {
    format!("{COUNTERS}:{oid}")
}

/// Returns log2 α of a level of the action set: -2 for α = 1/4, 5 for α = 32.
///
/// # Panics
/// Panics if there is no such level.
pub fn threshold(level: u8) -> i8 {
    assert!(
        usize::from(level) < ALPHAS.len(),
        "a level of {}",
        ALPHAS.len()
    );
    i8::try_from(level).expect("levels are few") - unit()
}

/// Returns the level nearest to `dynamic_th`.
pub fn level(threshold: i8) -> u8 {
    let last = u8::try_from(ALPHAS.len() - 1).expect("levels are few");
    let above = i16::from(threshold) + i16::from(unit());
    u8::try_from(above.max(0)).map_or(last, |level| level.min(last))
}

/// Returns `dynamic_th` of α = 1.
fn unit() -> i8 {
    i8::try_from(INITIAL_LEVEL).expect("levels are few")
}

/// A reference to a profile. Older releases write `[BUFFER_PROFILE|name]`, newer ones `name`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reference {
    /// Name of the profile.
    pub name: String,
    bracketed: bool,
}

impl Reference {
    /// Reads the value of the field [`PROFILE`].
    pub fn parse(text: &str) -> Reference {
        let inner = text
            .strip_prefix("[BUFFER_PROFILE|")
            .and_then(|rest| rest.strip_suffix(']'));
        Reference {
            name: inner.unwrap_or(text).to_owned(),
            bracketed: inner.is_some(),
        }
    }

    /// Returns a reference of the same form to another profile.
    #[must_use]
    pub fn to(&self, name: String) -> Reference {
        Reference {
            name,
            bracketed: self.bracketed,
        }
    }

    /// Returns the value of the field.
    pub fn text(&self) -> String {
        match self.bracketed {
            true => format!("[BUFFER_PROFILE|{}]", self.name),
            false => self.name.clone(),
        }
    }
}

/// Returns the name of a pool from either form of a reference.
pub fn pool_name(text: &str) -> &str {
    text.strip_prefix("[BUFFER_POOL|")
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_are_powers_of_two_within_the_range_of_the_schema() {
        for (level_index, alpha) in (0u8..).zip(ALPHAS) {
            let th = threshold(level_index);
            assert_eq!(f64::from(th).exp2(), alpha);
            assert!(DYNAMIC_TH_RANGE.contains(&th));
            assert_eq!(level(th), level_index);
        }
        assert_eq!((threshold(0), threshold(7)), (-2, 5));
        assert_eq!([-8, -3, 6, 7].map(level), [0, 0, 7, 7]);
    }

    #[test]
    fn references_keep_their_form() {
        for (text, name) in [("lossy", "lossy"), ("[BUFFER_PROFILE|lossy]", "lossy")] {
            let reference = Reference::parse(text);
            assert_eq!(reference.name, name);
            assert_eq!(reference.text(), text);
            let other = reference.to("mine".to_owned());
            assert_eq!(other.text(), text.replace("lossy", "mine"));
        }
        assert_eq!(pool_name("[BUFFER_POOL|egress]"), "egress");
        assert_eq!(pool_name("egress"), "egress");
    }
}
