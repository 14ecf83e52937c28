//! Paired evaluation of buffer policies, statistics, figures and reports.
