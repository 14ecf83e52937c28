//! Targets that are missed, each with its size and its reason.

use crate::metrics::Metric;

/// The name of a case, which of its metrics misses the target, this simulator's figure relative to
/// ns-3's, and why.
pub type KnownDifference = (&'static str, Metric, f64, &'static str);

/// Every target that is missed, and no other: a test fails when one is met again, too.
pub const KNOWN_DIFFERENCES: &[KnownDifference] = &[
    ("2to1_st_newreno", Metric::Mean, 0.89, "not explained yet"),
    ("2to1_st_newreno", Metric::P50, 0.67, "not explained yet"),
    (
        "mixed_st_newreno_rto10",
        Metric::P50,
        1.21,
        "not explained yet",
    ),
    (
        "mixed_st_newreno_rto10",
        Metric::InCast,
        1.22,
        "not explained yet",
    ),
    (
        "mixed_st_newreno_rto10",
        Metric::Drops,
        1.38,
        "not explained yet",
    ),
    (
        "mixed_dt8_newreno_rto10",
        Metric::Drops,
        1.45,
        "not explained yet",
    ),
    (
        "mixed_st_newreno_rto200",
        Metric::Mean,
        1.32,
        "not explained yet",
    ),
    (
        "mixed_st_newreno_rto200",
        Metric::P50,
        1.22,
        "beyond it by less than two standard errors: ns-3's few runs cannot tell",
    ),
    (
        "mixed_st_newreno_rto200",
        Metric::InCast,
        2.03,
        "not explained yet",
    ),
    (
        "mixed_st_newreno_rto200",
        Metric::Drops,
        1.13,
        "beyond it by less than two standard errors: ns-3's few runs cannot tell",
    ),
    (
        "mixed_cs_newreno_rto200",
        Metric::InCast,
        1.14,
        "beyond it by less than two standard errors: ns-3's few runs cannot tell",
    ),
    (
        "mixed_dt1_newreno_rto200",
        Metric::InCast,
        1.21,
        "beyond it by less than two standard errors: ns-3's few runs cannot tell",
    ),
    (
        "mixed_dt1_newreno_rto200",
        Metric::Drops,
        1.17,
        "beyond it by less than two standard errors: ns-3's few runs cannot tell",
    ),
    (
        "mixed_dt8_newreno_rto200",
        Metric::Drops,
        1.14,
        "beyond it by less than two standard errors: ns-3's few runs cannot tell",
    ),
];
