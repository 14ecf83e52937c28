//! Soft actor-critic, replay and simple agents.
