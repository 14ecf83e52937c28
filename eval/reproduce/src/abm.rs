//! ABM: Addanki, Apostolaki, Ghobadi, Schmid and Vanbever, "ABM: Active Buffer Management in Datacenters"
//! (SIGCOMM 2022): Fig. 4 and 5, which follow from formulas.

pub mod analysis;
pub mod burst;
