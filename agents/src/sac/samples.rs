//! What a learner learns from: transitions, and pairs of forks.

use burn::tensor::Tensor;

use super::{ActionValue, Observation, mean_of};

/// Transitions to learn from, on the device without automatic differentiation.
#[derive(Clone, Debug)]
pub struct Samples<O> {
    /// Observations at the decisions.
    pub now: O,
    /// Observations after the decisions.
    pub next: O,
    /// Actions in (-1, 1), `[rows, agents * outputs]`.
    pub actions: Tensor<2>,
    /// `[rows, agents]`
    pub rewards: Tensor<2>,
    /// Factor of the value that follows, zero where nothing follows, `[rows, 1]`.
    pub discounts: Tensor<2>,
    /// 1 where an agent's action matters, else 0, `[rows, agents]`.
    pub active: Tensor<2>,
    /// The same after the decisions.
    pub next_active: Tensor<2>,
    /// Pairs of forks, if there are any.
    pub pairs: Option<PairSamples<O>>,
}

/// Pairs of forks, on the device without automatic differentiation. A pair has as many rows as it has decisions that
/// were shifted, in both copies together.
#[derive(Clone, Debug)]
pub struct PairSamples<O> {
    /// Observations at the shifted decisions.
    pub seen: O,
    /// The shifted actions in (-1, 1), `[pairs * rows, agents * outputs]`.
    pub actions: Tensor<2>,
    /// The policy's own actions there.
    pub means: Tensor<2>,
    /// Discounts since the fork, negative in the second copy, `[pairs * rows, 1]`.
    pub weights: Tensor<2>,
    /// Discounted rewards of the first copy less those of the second, `[pairs, agents]`.
    pub differences: Tensor<2>,
    /// 1 where an agent was active at some decision, else 0, `[pairs, agents]`.
    pub active: Tensor<2>,
}

impl<O: Observation> PairSamples<O> {
    /// The mean squared error of the differences that a critic expects. A copy returns `Σ γ^k (Q(s, a) - Q(s, μ(s)))`
    /// more than the policy μ would from the start (Kakade and Langford 2002, lemma 6.1), and both copies start in the
    /// same state.
    pub(super) fn loss<Q: ActionValue<O>>(&self, critic: &Q) -> Tensor<1> {
        let ([pairs, agents], [rows, _]) = (self.differences.dims(), self.actions.dims());
        let seen = self.seen.autodiff();
        let value = |actions: &Tensor<2>| critic.values(&seen, actions.clone().autodiff());
        let gained = (value(&self.actions) - value(&self.means)) * self.weights.clone().autodiff();
        let expected = gained
            .reshape([pairs, rows / pairs, agents])
            .sum_dim(1)
            .reshape([pairs, agents]);
        let error = expected - self.differences.clone().autodiff();
        mean_of(error.square(), &self.active.clone().autodiff())
    }
}
