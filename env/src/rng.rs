//! rng.
