//! Facade over the bufgym crates.
