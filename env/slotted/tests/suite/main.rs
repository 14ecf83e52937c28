//! The slotted model against its theorems: bounds that the papers prove, on random arrivals and on the
//! papers' constructions, with an optimum that is itself checked against every possible choice.

mod accounting;
mod constructions;
mod following;
mod guarantees;
mod input;
mod instances;
mod optimum;
mod rules;
mod sweep;
