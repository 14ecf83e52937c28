//! Scales of the networks' inputs, measured once: drops are rare, and a network should see them as well as queues.

use bufgym_env::control::FEATURES;
use bufgym_models::critic::{FRAMES, STATE};
use bufgym_models::windows::{TAPS, WINDOW};
use bufgym_util::convert::single;

/// Standardised inputs are clipped here: a few samples must not decide a step.
const MAX_INPUT: f32 = 5.0;

/// Deviations of inputs and of returns at busy ports.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Scales {
    /// Deviations of the observation's features.
    pub(crate) features: [f32; FEATURES],
    /// Means and deviations of a critic's inputs, `[STATE]` each.
    state: [Vec<f32>; 2],
    /// Root of the mean squared return.
    pub(crate) returns: f32,
}

impl Scales {
    /// Measures busy ports, each with its inputs of a critic and its return. An input that never varies keeps its size.
    pub(crate) fn of<'a>(ports: impl Iterator<Item = (&'a [f32; STATE], f32)>) -> Scales {
        let mut state = [(); STATE].map(|()| Vec::new());
        let mut returns = Vec::new();
        for (row, gained) in ports {
            let columns = state.iter_mut().zip(row);
            columns.for_each(|(column, &value)| column.push(f64::from(value)));
            returns.push(f64::from(gained) * f64::from(gained));
        }
        let whole = |deviation: f64| {
            if deviation > 1e-3 {
                single(deviation)
            } else {
                1.0
            }
        };
        let spreads = state.each_ref().map(|values| moments(values));
        let deviations = spreads.map(|(_, deviation)| whole(deviation));
        let newest = &deviations[(FRAMES - 1) * FEATURES..][..FEATURES];
        Scales {
            features: std::array::from_fn(|feature| newest[feature]),
            state: [
                spreads.map(|(mean, _)| single(mean)).to_vec(),
                deviations.to_vec(),
            ],
            returns: single(libm::sqrt(moments(&returns).0).max(1e-9)),
        }
    }

    /// Standardises a critic's inputs, `[rows, STATE]`.
    pub(crate) fn scale_state(&self, state: &mut [f32]) {
        let [means, deviations] = &self.state;
        for port in state.as_chunks_mut::<STATE>().0 {
            for ((value, mean), deviation) in port.iter_mut().zip(means).zip(deviations) {
                *value = ((*value - mean) / deviation).clamp(-MAX_INPUT, MAX_INPUT);
            }
        }
    }

    /// Divides the features of unfolded observations, `[rows * 8, 15]`.
    pub(crate) fn scale_windows(&self, windows: &mut [f32]) {
        for window in windows.as_chunks_mut::<WINDOW>().0 {
            let features = window
                .as_chunks_mut::<TAPS>()
                .0
                .iter_mut()
                .zip(self.features);
            features.for_each(|(taps, deviation)| {
                taps.iter_mut().for_each(|value| *value /= deviation)
            });
        }
    }

    /// Factors that take the scales into a network's first layer.
    pub(crate) fn factors(&self) -> [f32; FEATURES] {
        self.features.map(|deviation| 1.0 / deviation)
    }

    pub(crate) fn to_bits(&self) -> Vec<u32> {
        let [means, deviations] = &self.state;
        let all = self.features.iter().chain(means).chain(deviations);
        all.chain([&self.returns])
            .map(|value| value.to_bits())
            .collect()
    }

    pub(crate) fn from_bits(bits: &[u32]) -> Option<Scales> {
        let values: Vec<f32> = bits.iter().map(|&bits| f32::from_bits(bits)).collect();
        let (features, rest) = values.split_first_chunk()?;
        let (state, [returns]) = rest.split_last_chunk()?;
        let (means, deviations) = state.split_at_checked(STATE)?;
        (deviations.len() == STATE).then(|| Scales {
            features: *features,
            state: [means.to_vec(), deviations.to_vec()],
            returns: *returns,
        })
    }
}

/// Mean and standard deviation.
pub(crate) fn moments(values: &[f64]) -> (f64, f64) {
    let count = values.len().max(1) as f64;
    let mean = values.iter().sum::<f64>() / count;
    let squares = values.iter().map(|value| (value - mean) * (value - mean));
    (mean, libm::sqrt(squares.sum::<f64>() / count))
}
