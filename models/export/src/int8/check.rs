//! Checks that an integer network can be run on any input.

use super::{IntegerDense, IntegerLayer, IntegerNetwork, MEAN_FRACTION, Rescale};

/// The reason why an [`IntegerNetwork`] cannot be run.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IntegerNetworkError {
    /// The numbers of weights, biases or multipliers do not match.
    #[error("layer {0}: its sizes do not belong together")]
    Sizes(String),
    /// Some input would make a sum overflow.
    #[error("layer {0}: some inputs would make a sum overflow 32 bits")]
    Overflow(String),
    /// A shift, cap or multiplier is out of range.
    #[error("layer {0}: its rescaling is outside the ranges of the format")]
    Rescale(String),
    /// There is no layer, or the last layer rescales or does not have one output for each table of levels.
    #[error(
        "the last layer must have one output, or two where it sets early drop, without rescaling, and the others must rescale"
    )]
    Output,
    /// The edges are not in ascending order.
    #[error("the edges between levels must ascend")]
    Edges,
}

impl IntegerNetwork {
    /// Checks that all sizes fit and that no sum can overflow, whatever the codes.
    ///
    /// # Errors
    /// See [`IntegerNetworkError`].
    pub fn check(&self) -> Result<(), IntegerNetworkError> {
        let mut width = self.inputs_per_port();
        for (index, layer) in self.layers.iter().enumerate() {
            width = match layer {
                IntegerLayer::Convolution(conv) => {
                    let name = || conv.name.clone();
                    let channels = conv.bias.len();
                    let fits = index == 0
                        && conv.taps % 2 == 1
                        && conv.filters > 0
                        && self.inputs.len().checked_mul(conv.filters) == Some(channels)
                        && channels.checked_mul(conv.taps) == Some(conv.weight.len())
                        && conv.rescale.multipliers.len() == channels;
                    if !fits {
                        return Err(IntegerNetworkError::Sizes(name()));
                    }
                    conv.rescale.check(name)?;
                    let rows = conv.weight.chunks_exact(conv.taps);
                    if rows
                        .zip(&conv.bias)
                        .any(|(row, &bias)| overflows(row, bias))
                    {
                        return Err(IntegerNetworkError::Overflow(name()));
                    }
                    channels * self.history
                }
                IntegerLayer::Dense(dense) => {
                    dense.check(width)?;
                    if dense.rescale.is_none() != (index + 1 == self.layers.len()) {
                        return Err(IntegerNetworkError::Output);
                    }
                    dense.outputs
                }
            };
        }
        let ends_well =
            matches!(self.layers.last(), Some(IntegerLayer::Dense(_))) && width == self.outputs();
        if !ends_well {
            return Err(IntegerNetworkError::Output);
        }
        let early = self.early.iter().map(|early| &early.edges);
        let mut tables = std::iter::once(&self.edges).chain(early);
        match tables.all(|edges| edges.is_sorted()) {
            true => Ok(()),
            false => Err(IntegerNetworkError::Edges),
        }
    }
}

impl IntegerDense {
    fn check(&self, inputs: usize) -> Result<(), IntegerNetworkError> {
        let name = || self.name.clone();
        let fits = self.inputs == inputs
            && self.inputs > 0
            && self.bias.len() == self.outputs
            && self.weight.len() == self.outputs * self.row_weights()
            && self
                .rescale
                .as_ref()
                .is_none_or(|rescale| rescale.multipliers.len() == self.outputs);
        if !fits {
            return Err(IntegerNetworkError::Sizes(name()));
        }
        if let Some(rescale) = &self.rescale {
            rescale.check(name)?;
        }
        let overflows = self
            .weight
            .chunks_exact(self.row_weights())
            .zip(&self.bias)
            .any(|(row, &bias)| {
                let (own, mean) = row.split_at(self.inputs);
                // The sum over the mean is separate, and has a fraction.
                let rounding = 1 << (MEAN_FRACTION - 1);
                reach(mean, 0) * (1 << MEAN_FRACTION) + rounding > i64::from(i32::MAX)
                    || reach(own, bias) + reach(mean, 0) + 1 > i64::from(i32::MAX)
            });
        match overflows {
            true => Err(IntegerNetworkError::Overflow(name())),
            false => Ok(()),
        }
    }
}

impl Rescale {
    fn check(&self, name: impl Fn() -> String) -> Result<(), IntegerNetworkError> {
        let fits = self.cap >= 0
            && self.pre < 31
            && (1..31).contains(&self.post)
            && self.cap >> self.pre < 1 << 15
            && self.multipliers.iter().all(|m| (0..1 << 15).contains(m));
        match fits {
            true => Ok(()),
            false => Err(IntegerNetworkError::Rescale(name())),
        }
    }
}

/// The largest possible magnitude of a sum over bytes.
fn reach(weights: &[i8], bias: i32) -> i64 {
    let weights: i64 = weights.iter().map(|w| i64::from(w.unsigned_abs())).sum();
    i64::from(bias).abs() + 255 * weights
}

fn overflows(weights: &[i8], bias: i32) -> bool {
    reach(weights, bias) > i64::from(i32::MAX)
}
