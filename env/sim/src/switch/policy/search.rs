//! The values of a parameter that a search tries.

use crate::scenario::Scenario;

/// A bound or the start of a search.
#[derive(Clone, Copy, Debug)]
pub enum Bound {
    /// This value.
    Value(f64),
    /// This share of the buffer, bytes.
    Buffer(f64),
    /// This share of B/N, bytes.
    Queue(f64),
    /// This many full packets, bytes.
    Packets(f64),
    /// This many microseconds at 1 Gbit/s, in inverse proportion to the rate.
    LineTime(f64),
    /// This many bytes at 1 Gbit/s, in proportion to the rate.
    LineBytes(f64),
}

impl Bound {
    /// Returns the value in a scenario.
    pub fn value(self, scenario: &Scenario) -> f64 {
        let buffer = scenario.network.buffer_bytes as f64;
        let gigabits = scenario.network.rate_bps as f64 / 1e9;
        match self {
            Bound::Value(value) => value,
            Bound::Buffer(share) => share * buffer,
            Bound::Queue(share) => share * buffer / scenario.queue_count() as f64,
            Bound::Packets(count) => count * scenario.full_packet_bytes() as f64,
            Bound::LineTime(us) => us / gigabits,
            Bound::LineBytes(bytes) => bytes * gigabits,
        }
    }
}

/// Scale on which the steps of a search are measured.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// Steps are ratios.
    Log,
    /// Steps are differences.
    Linear,
}

/// The numbers that a search tries; whole numbers if the parameter is whole.
#[derive(Clone, Copy, Debug)]
pub struct SearchRange {
    /// The smallest value.
    pub low: Bound,
    /// The largest value.
    pub high: Bound,
    /// The scale.
    pub scale: Scale,
    /// Approximate start of a search if the default is derived and so has no number. `None` for the
    /// middle of the range.
    pub derived: Option<Bound>,
}

/// The values of a parameter that a search tries.
#[derive(Clone, Copy, Debug)]
pub enum Search {
    /// Only the given value: for seeds, paths, lists, and switches between different policies.
    Fixed,
    /// Numbers of a range.
    Range(SearchRange),
    /// Every word of a choice.
    Words,
    /// Every word of a choice between dropping and marking, if the switch of the scenario marks by
    /// itself, so that its hosts are known to use ECN (RFC 3168). Otherwise only the given value.
    Marking,
}

impl Search {
    /// Returns numbers on a log scale.
    pub(in crate::switch) const fn log(low: f64, high: f64) -> Search {
        Search::log_to(low, Bound::Value(high))
    }

    /// Returns numbers on a log scale up to a bound of the scenario.
    pub(in crate::switch) const fn log_to(low: f64, high: Bound) -> Search {
        Search::Range(SearchRange {
            low: Bound::Value(low),
            high,
            scale: Scale::Log,
            derived: None,
        })
    }

    /// Returns the same search with another smallest value.
    pub(in crate::switch) const fn at_least(self, low: Bound) -> Search {
        match self {
            Search::Range(range) => Search::Range(SearchRange { low, ..range }),
            other => other,
        }
    }

    /// Returns the same search with this start instead of a derived default.
    pub(in crate::switch) const fn from(self, derived: Bound) -> Search {
        match self {
            Search::Range(range) => Search::Range(SearchRange {
                derived: Some(derived),
                ..range
            }),
            other => other,
        }
    }
}
