//! The slotted model against its theorems: what the papers prove, on random arrivals and on their
//! own constructions, with an optimum that is itself checked against every possible choice.

mod accounting;
mod constructions;
mod following;
mod guarantees;
mod input;
mod instances;
mod optimum;
mod rules;
mod sweep;
