//! What the papers prove of their policies, or what their rules say, one file for each.

mod abm;
mod burst;
mod credence;
mod followlqd;
mod lqd;
mod occamy;
mod overload;
mod pot;
mod switch;
