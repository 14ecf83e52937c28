//! Flow traces as CSV.

/// A flow list that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum TraceError {}
