//! gym.
