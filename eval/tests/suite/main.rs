//! Whole evaluations and explanations of small traces, one module for each.

mod evaluation;
mod explanation;
mod pauses;
