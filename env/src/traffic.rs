//! traffic.
