//! Credence: Addanki, Pacut and Schmid, "Credence: Augmenting Datacenter Switch Buffer Sharing with ML
//! Predictions" (NSDI 2024): Fig. 14, which is of the slotted model, and sweeps in a setting of one's own.

pub mod slotted;
pub mod sweeps;
