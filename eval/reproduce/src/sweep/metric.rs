//! The metrics on the vertical axis of figures of networks.

use serde::Deserialize;

use crate::grid::Measured;

/// Declares the metrics: column in tables, name with its unit in a second text, value in a simulation.
macro_rules! metrics {
    ($($metric:ident($column:literal, $name:literal, $unit:literal, $value:expr),)+) => {
        /// A metric of a simulation.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum Metric {
            $(#[doc = concat!("The ", $name, $unit, ".")] $metric,)+
        }

        impl Metric {
            /// All metrics, in the order of tables.
            pub const ALL: &[Metric] = &[$(Metric::$metric),+];

            /// Returns the value in a simulation, if there is one.
            pub fn of(self, measured: &Measured) -> Option<f64> {
                let value: fn(&Measured) -> Option<f64> = match self {
                    $(Metric::$metric => $value,)+
                };
                value(measured)
            }

            /// Returns the name in words, with the unit if there is one.
            pub fn name(self) -> &'static str {
                match self {
                    $(Metric::$metric => concat!($name, $unit),)+
                }
            }

            /// Returns the name of a reduction, in per cent.
            pub(crate) fn reduction(self) -> &'static str {
                if self == Metric::Pauses {
                    return "reduction of the number of pauses, %";
                }
                match self {
                    $(Metric::$metric => concat!("reduction of the ", $name, ", %"),)+
                }
            }

            /// Returns the column in tables, followed by those of the lower and the upper end.
            pub fn columns(self) -> [&'static str; 3] {
                match self {
                    $(Metric::$metric => [
                        $column,
                        concat!($column, "_lo"),
                        concat!($column, "_hi"),
                    ],)+
                }
            }
        }
    };
}

metrics! {
    IncastP95("incast_p95_slowdown", "p95 slowdown of in-cast flows", "", |of| of.incast.p95),
    IncastP99("incast_p99_slowdown", "p99 slowdown of in-cast flows", "", |of| of.incast.p99),
    IncastP999("incast_p999_slowdown", "p99.9 slowdown of in-cast flows", "", |of| of.incast.p999),
    Late("incast_late_percent", "in-cast flows beyond the minimum RTO", ", %", |of| of.late),
    ShortP95("short_p95_slowdown", "p95 slowdown of short flows", "", |of| of.short.p95),
    ShortP99("short_p99_slowdown", "p99 slowdown of short flows", "", |of| of.short.p99),
    ShortP999("short_p999_slowdown", "p99.9 slowdown of short flows", "", |of| of.short.p999),
    SecondShortP99("second_short_p99_slowdown", "p99 slowdown of short flows of the second class", "", |of| of.second_short.p99),
    LongP95("long_p95_slowdown", "p95 slowdown of long flows", "", |of| of.long.p95),
    LargestP50("largest_p50_slowdown", "median slowdown of flows of at least 30 MB", "", |of| of.largest.p50),
    LargestMean("largest_mean_slowdown", "mean slowdown of flows of at least 30 MB", "", |of| of.largest.mean),
    OccupancyP99("leaf_p99_occupancy_percent", "p99 occupancy", " of leaves, %", |of| of.leaf.p99),
    OccupancyP9999("leaf_p9999_occupancy_percent", "p99.99 occupancy", " of leaves, %", |of| of.leaf.p9999),
    Throughput("uplink_throughput_percent", "throughput of uplinks", ", %", |of| of.uplinks),
    IncastMean("incast_mean_slowdown", "mean slowdown of in-cast flows", "", |of| of.incast.mean),
    LongMean("long_mean_slowdown", "mean slowdown of long flows", "", |of| of.long.mean),
    QueryMean("query_mean_slowdown", "mean slowdown of whole queries", "", |of| of.queries.mean),
    QueryP99("query_p99_slowdown", "p99 slowdown of whole queries", "", |of| of.queries.p99),
    BackgroundMean("background_mean_slowdown", "mean slowdown of background flows", "", |of| of.background.mean),
    Pauses("pauses", "pauses", "", |of| Some(of.lossless.as_ref()?.pauses as f64)),
    Paused("paused_ms", "paused time of all links together", ", ms", |of| of.lossless.as_ref()?.paused_ms),
    LosslessP99("lossless_p99_occupancy_percent", "p99 occupancy by lossless packets", ", %", |of| of.lossless.as_ref()?.occupancy),
    LossyP99("lossy_p99_occupancy_percent", "p99 occupancy by lossy packets", ", %", |of| of.lossless.as_ref()?.lossy_occupancy),
}

impl Metric {
    /// Returns true if only networks with lossless packets have the metric.
    pub(crate) fn is_of_lossless(self) -> bool {
        use Metric::{LosslessP99, LossyP99, Paused, Pauses};
        matches!(self, Pauses | Paused | LosslessP99 | LossyP99)
    }

    /// Returns true if only figures with a panel of the metric have it in their table.
    pub(crate) fn needs_panel(self) -> bool {
        use Metric::{BackgroundMean, QueryMean, QueryP99};
        matches!(self, QueryMean | QueryP99 | BackgroundMean)
    }

    /// Returns true if the metric is a tail of in-cast flows, which has regimes.
    pub(crate) fn has_regimes(self) -> bool {
        use Metric::{IncastP95, IncastP99, IncastP999};
        matches!(self, IncastP95 | IncastP99 | IncastP999)
    }

    /// Returns true if the values spread over decades.
    pub(crate) fn is_logarithmic(self) -> bool {
        use Metric::{IncastMean, Late, LongMean, OccupancyP99, OccupancyP9999, Throughput};
        let is_share = matches!(self, Late | OccupancyP99 | OccupancyP9999 | Throughput);
        !self.is_of_lossless() && !is_share && !matches!(self, IncastMean | LongMean)
    }
}
