//! The metrics on the vertical axis of figures of networks.

use serde::Deserialize;

use crate::grid::Measured;

/// A metric of a simulation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    /// 95th percentile of the slowdown of in-cast flows.
    IncastP95,
    /// 99th percentile of the slowdown of in-cast flows.
    IncastP99,
    /// 99.9th percentile of the slowdown of in-cast flows.
    IncastP999,
    /// In-cast flows beyond one minimum RTO, per cent.
    Late,
    /// 95th percentile of the slowdown of short flows.
    ShortP95,
    /// 99th percentile of the slowdown of short flows.
    ShortP99,
    /// 99.9th percentile of the slowdown of short flows.
    ShortP999,
    /// 99th percentile of the slowdown of short flows of the second class.
    SecondShortP99,
    /// 95th percentile of the slowdown of flows of at least 1 MB.
    LongP95,
    /// Median of the slowdown of flows of at least 30 MB.
    LargestP50,
    /// Mean slowdown of flows of at least 30 MB.
    LargestMean,
    /// 99th percentile of the occupancy of leaves, per cent.
    OccupancyP99,
    /// 99.99th percentile of the occupancy of leaves, per cent.
    OccupancyP9999,
    /// Throughput of uplinks, per cent.
    Throughput,
    /// Mean slowdown of in-cast flows.
    IncastMean,
    /// Mean slowdown of flows of at least 1 MB.
    LongMean,
    /// Pauses sent.
    Pauses,
    /// Time for which links were paused.
    Paused,
    /// 99th percentile of the occupancy of leaves by lossless packets, per cent.
    LosslessP99,
    /// 99th percentile of the occupancy of leaves by lossy packets, per cent.
    LossyP99,
}

impl Metric {
    /// All metrics, in the order of tables.
    pub const ALL: [Metric; 20] = [
        Metric::IncastP95,
        Metric::IncastP99,
        Metric::IncastP999,
        Metric::Late,
        Metric::ShortP95,
        Metric::ShortP99,
        Metric::ShortP999,
        Metric::SecondShortP99,
        Metric::LongP95,
        Metric::LargestP50,
        Metric::LargestMean,
        Metric::OccupancyP99,
        Metric::OccupancyP9999,
        Metric::Throughput,
        Metric::IncastMean,
        Metric::LongMean,
        Metric::Pauses,
        Metric::Paused,
        Metric::LosslessP99,
        Metric::LossyP99,
    ];

    /// Returns true if only networks with lossless packets have the metric.
    pub(crate) fn is_of_lossless(self) -> bool {
        matches!(
            self,
            Metric::Pauses | Metric::Paused | Metric::LosslessP99 | Metric::LossyP99
        )
    }

    /// Returns the value in a simulation, if there is one.
    pub fn of(self, measured: &Measured) -> Option<f64> {
        let lossless = measured.lossless.as_ref();
        match self {
            Metric::IncastP95 => measured.incast.p95,
            Metric::IncastP99 => measured.incast.p99,
            Metric::IncastP999 => measured.incast.p999,
            Metric::Late => measured.late,
            Metric::ShortP95 => measured.short.p95,
            Metric::ShortP99 => measured.short.p99,
            Metric::ShortP999 => measured.short.p999,
            Metric::SecondShortP99 => measured.second_short.p99,
            Metric::LongP95 => measured.long.p95,
            Metric::LargestP50 => measured.largest.p50,
            Metric::LargestMean => measured.largest.mean,
            Metric::OccupancyP99 => measured.leaf.p99,
            Metric::OccupancyP9999 => measured.leaf.p9999,
            Metric::Throughput => measured.uplinks,
            Metric::IncastMean => measured.incast.mean,
            Metric::LongMean => measured.long.mean,
            Metric::Pauses => lossless.map(|lossless| lossless.pauses as f64),
            Metric::Paused => lossless?.paused_ms,
            Metric::LosslessP99 => lossless?.occupancy,
            Metric::LossyP99 => lossless?.lossy_occupancy,
        }
    }

    /// Returns the name in words, with the unit if there is one.
    pub fn name(self) -> &'static str {
        match self {
            Metric::IncastP95 => "p95 slowdown of in-cast flows",
            Metric::IncastP99 => "p99 slowdown of in-cast flows",
            Metric::IncastP999 => "p99.9 slowdown of in-cast flows",
            Metric::Late => "in-cast flows beyond the minimum RTO, %",
            Metric::ShortP95 => "p95 slowdown of short flows",
            Metric::ShortP99 => "p99 slowdown of short flows",
            Metric::ShortP999 => "p99.9 slowdown of short flows",
            Metric::SecondShortP99 => "p99 slowdown of short flows of the second class",
            Metric::LongP95 => "p95 slowdown of long flows",
            Metric::LargestP50 => "median slowdown of flows of at least 30 MB",
            Metric::LargestMean => "mean slowdown of flows of at least 30 MB",
            Metric::OccupancyP99 => "p99 occupancy of leaves, %",
            Metric::OccupancyP9999 => "p99.99 occupancy of leaves, %",
            Metric::Throughput => "throughput of uplinks, %",
            Metric::IncastMean => "mean slowdown of in-cast flows",
            Metric::LongMean => "mean slowdown of long flows",
            Metric::Pauses => "pauses",
            Metric::Paused => "paused time of all links together, ms",
            Metric::LosslessP99 => "p99 occupancy by lossless packets, %",
            Metric::LossyP99 => "p99 occupancy by lossy packets, %",
        }
    }

    /// Returns the column in tables, followed by those of the lower and the upper end.
    pub fn columns(self) -> [&'static str; 3] {
        macro_rules! columns {
            ($name:literal) => {
                [$name, concat!($name, "_lo"), concat!($name, "_hi")]
            };
        }
        match self {
            Metric::IncastP95 => columns!("incast_p95_slowdown"),
            Metric::IncastP99 => columns!("incast_p99_slowdown"),
            Metric::IncastP999 => columns!("incast_p999_slowdown"),
            Metric::Late => columns!("incast_late_percent"),
            Metric::ShortP95 => columns!("short_p95_slowdown"),
            Metric::ShortP99 => columns!("short_p99_slowdown"),
            Metric::ShortP999 => columns!("short_p999_slowdown"),
            Metric::SecondShortP99 => columns!("second_short_p99_slowdown"),
            Metric::LongP95 => columns!("long_p95_slowdown"),
            Metric::LargestP50 => columns!("largest_p50_slowdown"),
            Metric::LargestMean => columns!("largest_mean_slowdown"),
            Metric::OccupancyP99 => columns!("leaf_p99_occupancy_percent"),
            Metric::OccupancyP9999 => columns!("leaf_p9999_occupancy_percent"),
            Metric::Throughput => columns!("uplink_throughput_percent"),
            Metric::IncastMean => columns!("incast_mean_slowdown"),
            Metric::LongMean => columns!("long_mean_slowdown"),
            Metric::Pauses => columns!("pauses"),
            Metric::Paused => columns!("paused_ms"),
            Metric::LosslessP99 => columns!("lossless_p99_occupancy_percent"),
            Metric::LossyP99 => columns!("lossy_p99_occupancy_percent"),
        }
    }

    /// Returns true if the metric is a tail of in-cast flows, which has regimes.
    pub(crate) fn has_regimes(self) -> bool {
        matches!(
            self,
            Metric::IncastP95 | Metric::IncastP99 | Metric::IncastP999
        )
    }

    /// Returns true if the values spread over decades.
    pub(crate) fn is_logarithmic(self) -> bool {
        !self.is_of_lossless()
            && !matches!(
                self,
                Metric::Late
                    | Metric::OccupancyP99
                    | Metric::OccupancyP9999
                    | Metric::Throughput
                    | Metric::IncastMean
                    | Metric::LongMean
            )
    }
}
