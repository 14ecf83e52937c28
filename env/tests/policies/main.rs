//! What the papers prove of their policies, or what their rules say, one file for each.

mod credence;
mod followlqd;
mod lqd;
mod occamy;
mod pot;
mod switch;
