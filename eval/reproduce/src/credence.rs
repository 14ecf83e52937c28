//! Credence: Addanki, Pacut and Schmid, "Credence: Augmenting Datacenter Switch Buffer Sharing with ML
//! Predictions" (NSDI 2024), Fig. 6 to 10 and 14.
//!
//! Every value of the paper is from its text.

pub(crate) mod flips;
pub(crate) mod loads;
pub(crate) mod round_trips;
pub mod slotted;
pub mod sweeps;

const PRESET: &str = "credence-leafspine";

/// Returns the settings of a figure.
fn settings(of: &[&str]) -> Vec<String> {
    of.iter().map(|setting| (*setting).to_owned()).collect()
}
