//! Theorems of the papers on their policies, or their rules, one file for each.

mod abm;
mod burst;
mod credence;
mod elephants;
mod extremes;
mod followlqd;
mod harmonic;
mod limits;
mod lqd;
mod occamy;
mod overload;
mod pot;
mod saturation;
mod switch;
