//! In-cast tails. Either a query's answers fit, and take the time to send them (the floor), or one of them
//! waits for its retransmission timer. So tails jump between a few levels.

use std::collections::BTreeMap;
use std::fmt;

use bufgym_sim::network::FlowRecord;
use bufgym_sim::scenario::Scenario;
use bufgym_sim::traffic::{FlowSpec, Trace};

/// A tail below this multiple of the floor is at the floor.
const FLOOR: f64 = 1.5;
/// A tail is one timeout long if it differs by at most this share from floor plus timeout.
const TIMEOUT: f64 = 0.2;

/// The level of a tail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Regime {
    /// Below 1.5 times the floor.
    Floor,
    /// Within 20 % of the floor and one minimum RTO.
    OneTimeout,
    /// Neither.
    More,
}

impl Regime {
    /// Returns the level of `tail`; all three are in the same unit.
    pub fn of(tail: f64, floor: f64, timeout: f64) -> Regime {
        let one = floor + timeout;
        if tail < FLOOR * floor {
            Regime::Floor
        } else if (tail - one).abs() <= TIMEOUT * one {
            Regime::OneTimeout
        } else {
            Regime::More
        }
    }
}

impl fmt::Display for Regime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Regime::Floor => "floor",
            Regime::OneTimeout => "1 RTO",
            Regime::More => "more",
        })
    }
}

/// Returns the time to send all answers of the trace's largest query over the line to its client,
/// milliseconds. This is the FCT of its last flow if nothing is lost. `None` without queries.
pub(crate) fn floor_ms(scenario: &Scenario, trace: &Trace) -> Option<f64> {
    let mut queries: BTreeMap<i64, u64> = BTreeMap::new();
    for flow in trace.flows.iter().filter(|flow| flow.query >= 0) {
        *queries.entry(flow.query).or_default() += wire_bytes(scenario, flow);
    }
    let bytes = *queries.values().max()?;
    let line_s = 8.0 * bytes as f64 / scenario.network.rate_bps as f64;
    let first_hop = scenario
        .rate()
        .transmission_time(scenario.full_packet_bytes());
    let links = 2.0 * scenario.propagation().as_ms_f64();
    Some(1e3 * line_s + first_hop.as_ms_f64() + links)
}

/// Returns the same time as [`floor_ms`] for answers in a network, milliseconds. There the longest round trip
/// passes before the line is busy without a pause.
pub(crate) fn largest_query_ms<'a>(
    scenario: &Scenario,
    answers: impl Iterator<Item = &'a FlowSpec>,
) -> Option<f64> {
    let mut queries: BTreeMap<i64, u64> = BTreeMap::new();
    for flow in answers.filter(|flow| flow.query >= 0) {
        *queries.entry(flow.query).or_default() += wire_bytes(scenario, flow);
    }
    Some(in_network_ms(scenario, *queries.values().max()?))
}

/// Returns the time of a query with so many bytes on the wire in an empty network, milliseconds.
fn in_network_ms(scenario: &Scenario, bytes: u64) -> f64 {
    let line_s = 8.0 * bytes as f64 / scenario.network.rate_bps as f64;
    1e3 * line_s + scenario.base_rtt().as_ms_f64()
}

/// Returns the slowdown of every query: the completion time of its last answer relative to the time of the query
/// in an empty network. It is infinite if an answer did not finish.
pub(crate) fn query_slowdowns<'a>(
    scenario: &Scenario,
    answers: impl Iterator<Item = &'a FlowRecord>,
) -> impl Iterator<Item = f64> {
    let mut queries: BTreeMap<i64, (u64, f64)> = BTreeMap::new();
    for answer in answers.filter(|answer| answer.spec.query >= 0) {
        let (bytes, last_ms) = queries.entry(answer.spec.query).or_default();
        *bytes += wire_bytes(scenario, &answer.spec);
        *last_ms = last_ms.max(answer.fct.map_or(f64::INFINITY, |fct| fct.as_ms_f64()));
    }
    let slowdown = |(bytes, last_ms)| last_ms / in_network_ms(scenario, bytes);
    queries.into_values().map(slowdown)
}

/// Returns the number of in-cast flows that took longer than `timeout_ms` or did not finish, and the number
/// of all.
pub(crate) fn beyond_with_unfinished<'a>(
    records: impl Iterator<Item = &'a FlowRecord>,
    timeout_ms: f64,
) -> (u64, u64) {
    let incast = records.filter(|record| record.spec.query >= 0);
    incast.fold((0, 0), |(late, all), record| {
        let is_late = record.fct.is_none_or(|fct| fct.as_ms_f64() > timeout_ms);
        (late + u64::from(is_late), all + 1)
    })
}

fn wire_bytes(scenario: &Scenario, flow: &FlowSpec) -> u64 {
    let packets = flow.size.div_ceil(u64::from(scenario.packets.mss));
    flow.size + packets * u64::from(scenario.packets.header_bytes + scenario.packets.overhead_bytes)
}

/// Returns the number of in-cast flows that took longer than `timeout_ms`, and of all that finished.
pub fn beyond(records: &[FlowRecord], timeout_ms: f64) -> (u64, u64) {
    let incast = records.iter().filter(|record| record.spec.query >= 0);
    incast
        .filter_map(|record| record.fct)
        .fold((0, 0), |(late, all), fct| {
            (late + u64::from(fct.as_ms_f64() > timeout_ms), all + 1)
        })
}

#[cfg(test)]
mod tests {
    use bufgym_sim::units::{Duration, Instant};

    use super::*;

    #[test]
    fn tails_are_at_the_floor_or_one_timeout_above_it() {
        for (tail, expected) in [
            (8.9, Regime::Floor),
            (13.3, Regime::Floor),
            (13.4, Regime::More),
            (167.0, Regime::More),
            (167.2, Regime::OneTimeout),
            (208.9, Regime::OneTimeout),
            (250.6, Regime::OneTimeout),
            (251.0, Regime::More),
            (410.0, Regime::More),
        ] {
            assert_eq!(Regime::of(tail, 8.9, 200.0), expected, "{tail}");
        }
    }

    fn answer(query: i64, size: u64) -> FlowSpec {
        FlowSpec {
            id: 0,
            src: 1,
            dst: 0,
            start: Instant::ZERO,
            size,
            kind: 0,
            query,
            priority: 0,
        }
    }

    #[test]
    fn the_floor_is_the_largest_query_on_the_line() {
        let scenario = Scenario::default();
        let trace = Trace {
            flows: vec![
                answer(0, 1_460_000),
                answer(0, 1_460_000),
                answer(1, 1_000),
                answer(-1, 90_000_000),
            ],
            kinds: vec!["incast".to_owned()],
            seed: 1,
        };
        // The time is that of 2,000 packets of 1,518 B at 1 Gbit/s, one more on the first hop, and two links
        // of 10 us.
        let expected = 2_001.0 * 1_518.0 * 8.0 / 1e6 + 0.02;
        let floor = floor_ms(&scenario, &trace).unwrap();
        assert!((floor - expected).abs() < 1e-9, "{floor} {expected}");
        let none = Trace::default();
        assert_eq!(floor_ms(&scenario, &none), None);
    }

    fn record(query: i64, ms: Option<u64>) -> FlowRecord {
        FlowRecord {
            spec: answer(query, 1_000),
            established: None,
            finish: None,
            fct: ms.map(|ms| Duration::from_us(1_000 * ms)),
            base: None,
            slowdown: None,
            timeouts: 0,
        }
    }

    /// The last answer counts, and the bytes of all.
    #[test]
    fn a_query_is_as_slow_as_its_last_answer() {
        let scenario = Scenario::default();
        let records = [
            record(0, Some(5)),
            record(1, None),
            record(0, Some(2)),
            record(-1, Some(9)),
        ];
        let slowdowns: Vec<f64> = query_slowdowns(&scenario, records.iter()).collect();
        let answers = records[..3].iter().map(|record| &record.spec);
        let base = largest_query_ms(&scenario, answers).unwrap();
        assert_eq!(slowdowns, [5.0 / base, f64::INFINITY]);
    }

    #[test]
    fn flows_beyond_a_timeout_are_counted() {
        let records = [
            record(0, Some(5)),
            record(0, Some(201)),
            record(0, None),
            record(-1, Some(900)),
        ];
        assert_eq!(beyond(&records, 200.0), (1, 2));
    }
}
