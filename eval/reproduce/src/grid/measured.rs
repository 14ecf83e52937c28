//! Measurements of one simulation of a network, for the figures.

use bufgym_eval::stats::nearest_rank;
use bufgym_sim::network::{FlowClass, FlowRecord, Outcome, Summary, SwitchRow};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::traffic::Trace;
use serde::{Deserialize, Serialize};

use crate::incast::{beyond_with_unfinished, largest_query_ms, query_slowdowns};

/// Least size of the long flows in ABM's evaluation.
pub(crate) const LARGEST_BYTES: u64 = 30_000_000;

/// Slowdowns of a class of flows. A flow that did not finish is slower than any other. A value is `None` if
/// it falls on such a flow or if there are no flows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Slowdowns {
    /// Number of flows.
    pub flows: u64,
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Median, nearest rank.
    pub p50: Option<f64>,
    /// 95th percentile, nearest rank.
    pub p95: Option<f64>,
    /// 99th percentile, nearest rank.
    pub p99: Option<f64>,
    /// 99.9th percentile, nearest rank.
    pub p999: Option<f64>,
}

impl Slowdowns {
    fn of<'a>(records: impl Iterator<Item = &'a FlowRecord>) -> Slowdowns {
        Slowdowns::from(records.map(|record| record.slowdown.unwrap_or(f64::INFINITY)))
    }

    fn from(slowdowns: impl Iterator<Item = f64>) -> Slowdowns {
        let mut sorted: Vec<f64> = slowdowns.collect();
        sorted.sort_by(f64::total_cmp);
        let at = |percent: f64| percentile(&sorted, percent);
        let mean = sorted.iter().sum::<f64>() / sorted.len().max(1) as f64;
        Slowdowns {
            flows: sorted.len() as u64,
            mean: (!sorted.is_empty() && mean.is_finite()).then_some(mean),
            p50: at(50.0),
            p95: at(95.0),
            p99: at(99.0),
            p999: at(99.9),
        }
    }
}

fn percentile(sorted: &[f64], percent: f64) -> Option<f64> {
    let value = nearest_rank(sorted, percent / 100.0);
    value.filter(|value| value.is_finite())
}

/// Occupancy of the switches of a kind, per cent of the buffer: the mean over the switches of percentiles
/// over time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Occupancy {
    /// Median.
    pub p50: Option<f64>,
    /// 95th percentile.
    pub p95: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.99th percentile.
    pub p9999: Option<f64>,
}

impl Occupancy {
    fn of(rows: &[&SwitchRow]) -> Occupancy {
        let mean = |value: fn(&SwitchRow) -> f64| mean(rows.iter().map(|row| 100.0 * value(row)));
        Occupancy {
            p50: mean(|row| row.p50_occupancy),
            p95: mean(|row| row.p95_occupancy),
            p99: mean(|row| row.p99_occupancy),
            p9999: mean(|row| row.p9999_occupancy),
        }
    }
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
    let mean = sum / f64::from(count);
    mean.is_finite().then_some(mean)
}

/// Measurements of a network with lossless packets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Lossless {
    /// Pauses sent.
    pub pauses: u64,
    /// Lossless packets that were lost.
    pub drops: u64,
    /// Time for which priorities of links were paused, milliseconds.
    pub paused_ms: Option<f64>,
    /// 99th percentile of the share of a leaf's buffer that lossless packets take, per cent.
    pub occupancy: Option<f64>,
    /// 99th percentile of the share of a leaf's buffer that lossy packets take, per cent.
    pub lossy_occupancy: Option<f64>,
}

impl Lossless {
    fn of(scenario: &Scenario, summary: &Summary) -> Option<Lossless> {
        let finite = |value: f64| value.is_finite().then_some(value);
        scenario.has_lossless().then(|| Lossless {
            pauses: summary.pauses,
            drops: summary.drops_lossless,
            paused_ms: finite(summary.paused_ms),
            occupancy: finite(100.0 * summary.p99_lossless_occupancy),
            lossy_occupancy: finite(100.0 * summary.p99_lossy_occupancy),
        })
    }
}

/// Measurements of one simulation, for the figures.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Measured {
    /// Slowdowns of answers to queries.
    pub incast: Slowdowns,
    /// Slowdowns of whole queries: the time until the last answer has come, relative to a [round
    /// trip](Scenario::base_rtt) and the time to send all answers over the client's line.
    pub queries: Slowdowns,
    /// Slowdowns of flows that answer no query.
    pub background: Slowdowns,
    /// Slowdowns of other flows of at most 100,000 B, without those of a second class.
    pub short: Slowdowns,
    /// Slowdowns of short flows of a second class.
    pub second_short: Slowdowns,
    /// Slowdowns of other flows of at least 1 MB.
    pub long: Slowdowns,
    /// Slowdowns of the long flows of at least 30 MB.
    pub largest: Slowdowns,
    /// In-cast flows that took longer than the minimum RTO or did not finish, per cent.
    pub late: Option<f64>,
    /// Slowdown of an in-cast flow that waits only for the answers of its own query.
    pub floor: Option<f64>,
    /// One minimum RTO in units of the base time of an in-cast flow.
    pub timeout: Option<f64>,
    /// Occupancy of leaves.
    pub leaf: Occupancy,
    /// Occupancy of spines.
    pub spine: Occupancy,
    /// Utilisation of the links from leaves to spines, per cent of their rates; mean over the leaves.
    pub uplinks: Option<f64>,
    /// Measured flows that did not finish.
    pub unfinished: u64,
    /// Packets lost at switches.
    pub drops: u64,
    /// Measurements that exist only for networks with lossless packets.
    pub lossless: Option<Lossless>,
}

impl Measured {
    /// Reduces an outcome; flows that start outside the measured time do not count.
    pub fn of(scenario: &Scenario, outcome: &Outcome) -> Measured {
        let counts = |record: &&FlowRecord| match scenario.window() {
            Some((from, until)) => (from..until).contains(&record.spec.start),
            None => true,
        };
        let records: Vec<&FlowRecord> = outcome.records.iter().filter(counts).collect();
        let class = |class: FlowClass| {
            let of_class = move |record: &&&FlowRecord| FlowClass::of(&record.spec) == class;
            records.iter().filter(of_class).copied()
        };
        let second = |record: &&FlowRecord| record.spec.kind == Trace::SECOND;
        let largest = |record: &&FlowRecord| record.spec.size >= LARGEST_BYTES;
        let of_kind = |kind: &str| -> Vec<&SwitchRow> {
            let rows = outcome.switches.iter();
            rows.filter(|row| row.kind == kind).collect()
        };
        let (leaves, spines) = (of_kind("leaf"), of_kind("spine"));
        let base = class(FlowClass::Incast).find_map(|record| record.base);
        let base_ms = base.map(|base| base.as_ms_f64());
        let min_rto_ms = scenario.tcp.min_rto_us as f64 / 1e3;
        let floor_ms = largest_query_ms(scenario, class(FlowClass::Incast).map(|r| &r.spec));
        let (late, answers) = beyond_with_unfinished(class(FlowClass::Incast), min_rto_ms);
        Measured {
            incast: Slowdowns::of(class(FlowClass::Incast)),
            queries: Slowdowns::from(query_slowdowns(scenario, class(FlowClass::Incast))),
            background: Slowdowns::of(records.iter().copied().filter(|r| r.spec.query < 0)),
            short: Slowdowns::of(class(FlowClass::Short).filter(|record| !second(record))),
            second_short: Slowdowns::of(class(FlowClass::Short).filter(second)),
            long: Slowdowns::of(class(FlowClass::Long)),
            largest: Slowdowns::of(class(FlowClass::Long).filter(largest)),
            late: (answers > 0).then(|| 100.0 * late as f64 / answers as f64),
            floor: floor_ms.zip(base_ms).map(|(floor, base)| floor / base),
            timeout: base_ms.map(|base| min_rto_ms / base),
            leaf: Occupancy::of(&leaves),
            spine: Occupancy::of(&spines),
            uplinks: mean(leaves.iter().map(|row| 100.0 * row.uplink_throughput)),
            unfinished: records.iter().filter(|r| r.finish.is_none()).count() as u64,
            drops: outcome.summary.drops,
            lossless: Lossless::of(scenario, &outcome.summary),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_take_an_element_and_unfinished_flows_have_none() {
        let sorted = [1.0, 2.0, 3.0, f64::INFINITY];
        assert_eq!(percentile(&sorted, 50.0), Some(2.0));
        assert_eq!(percentile(&sorted, 75.0), Some(3.0));
        assert_eq!(percentile(&sorted, 99.0), None);
        assert_eq!(percentile(&[], 50.0), None);
    }

    /// Both classes have short flows, and each is measured separately.
    #[test]
    fn a_second_class_is_measured_apart() {
        let mut scenario = Scenario::preset("leafspine-4x4").unwrap();
        scenario.set("measure_ms=20").unwrap();
        let measured = |scenario: &Scenario| {
            let trace = bufgym_sim::traffic::generate(scenario, 3);
            let outcome = bufgym_sim::switch::PolicySpec::named("dt").run(scenario, &trace);
            (Measured::of(scenario, &outcome.unwrap()), trace)
        };
        let (alone, _) = measured(&scenario);
        assert_eq!(alone.second_short, Slowdowns::of([].into_iter()));
        scenario.set("second_load=0.3").unwrap();
        let (both, trace) = measured(&scenario);
        let is_short =
            |flow: &&bufgym_sim::traffic::FlowSpec| flow.query < 0 && flow.size <= 100_000;
        let short = trace.flows.iter().filter(is_short).count() as u64;
        assert_eq!(both.short.flows, alone.short.flows);
        assert_eq!(both.short.flows + both.second_short.flows, short);
        assert!(both.second_short.p99.is_some());
    }

    #[test]
    fn a_network_has_slowdowns_occupancies_and_a_floor() {
        let mut scenario = Scenario::preset("leafspine-4x4").unwrap();
        scenario.set("measure_ms=20").unwrap();
        scenario.set("slowdown_base=paper").unwrap();
        let trace = bufgym_sim::traffic::generate(&scenario, 3);
        let outcome = bufgym_sim::switch::PolicySpec::named("dt").run(&scenario, &trace);
        let measured = Measured::of(&scenario, &outcome.unwrap());
        assert!(measured.incast.flows > 0 && measured.short.flows > 0);
        assert_eq!(measured.unfinished, 0);
        // Four answers of 36,864 B: the floor is τ + 8 Q'/C over τ + 8 S/C.
        let floor = measured.floor.unwrap();
        let wire = 36_864.0 + 27.0 * 54.0;
        let expected = (80.0 + 4.0 * wire * 8e-4) / (80.0 + 36_864.0 * 8e-4);
        assert!((floor / expected - 1.0).abs() < 0.02, "{floor} {expected}");
        assert!(measured.timeout.unwrap() > 50.0);
        assert!(measured.leaf.p99.is_some() && measured.spine.p99.is_some());
        assert!(measured.uplinks.unwrap() > 0.0);
        assert_eq!(measured.lossless, None);
        let text = serde_json::to_string(&measured).unwrap();
        assert_eq!(serde_json::from_str::<Measured>(&text).unwrap(), measured);
    }

    #[test]
    fn shares_of_the_classes_are_per_cent_and_unknown_where_nothing_was_sampled() {
        let mut scenario = Scenario::default();
        for change in ["queues_per_port=4", "lossless_priorities=3"] {
            scenario.set(change).unwrap();
        }
        let summary = Summary {
            pauses: 7,
            drops_lossless: 2,
            paused_ms: 1.5,
            p99_lossless_occupancy: 0.25,
            p99_lossy_occupancy: f64::NAN,
            ..Summary::default()
        };
        let expected = Lossless {
            pauses: 7,
            drops: 2,
            paused_ms: Some(1.5),
            occupancy: Some(25.0),
            lossy_occupancy: None,
        };
        assert_eq!(Lossless::of(&scenario, &summary), Some(expected));
        assert_eq!(Lossless::of(&Scenario::default(), &summary), None);
    }
}
