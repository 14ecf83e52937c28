//! Reverie: Addanki, Bai, Schmid and Apostolaki, "Reverie: Low Pass Filter-Based Switch Buffer Sharing for
//! Datacenters with RDMA and TCP Traffic" (NSDI 2024), Fig. 4, 5 and 7 to 12.
//!
//! Fig. 4 and 5 follow from formulas (`reverie/pools.rs`); the others are simulations of networks with
//! lossless and lossy packets, most of them described by files. Every value of the paper is from its text.

pub mod filter;
pub mod pools;

/// TCP web search in a lossy priority, RDMA in-cast of 2 MB in a lossless one.
const PRESET: &str = "reverie-leafspine";

/// Name of the paper's policy, on pages and in files.
const REVERIE: &str = "Reverie";
