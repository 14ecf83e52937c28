//! Parallel rollout workers, learner, validation, checkpoints and event files.
