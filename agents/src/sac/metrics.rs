//! What the learner reports.

/// Measurements of one update; means over active agents.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct UpdateMetrics {
    /// Mean squared error. It, `q_mean` and `td_error` are means over the critics too.
    pub critic_loss: f32,
    /// Mean value of the stored actions.
    pub q_mean: f32,
    /// Mean target.
    pub target_mean: f32,
    /// Mean absolute difference between value and target.
    pub td_error: f32,
    /// Loss of the actor and entropy per output in nats; none where the actor made no step.
    pub actor: Option<[f32; 2]>,
    /// Divergence of the means over the actor's last 32 steps in nats per agent, where it was measured.
    pub kl: Option<f32>,
    /// Temperature after the update.
    pub temperature: f32,
    /// Adam's step size for the actor after the update.
    pub actor_lr: f64,
}
