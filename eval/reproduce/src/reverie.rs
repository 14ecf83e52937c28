//! Reverie: Addanki, Bai, Schmid and Apostolaki, "Reverie: Low Pass Filter-Based Switch Buffer Sharing for
//! Datacenters with RDMA and TCP Traffic" (NSDI 2024): Fig. 4 and 5, which follow from formulas.

pub mod pools;
