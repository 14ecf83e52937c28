//! A network as a sequence of dense layers, which is the form that generated programs compute.
//!
//! An appended mean is the same for all ports. So the weights of the next dense layer are split
//! into those of the port's own values and those of the mean, and the product with the mean is
//! computed once for all ports. Several means in a row are merged, because the mean of a mean is
//! the mean.

use bufgym_util::convert::single;

use super::ExportError;
use super::network::{Convolution, Dense, Layer, Network, NetworkError};

/// A checked network.
pub(super) struct Stages<'a> {
    /// Name and layer of the convolution, where the network begins with one.
    pub(super) convolution: Option<(String, &'a Convolution)>,
    /// Values per port before the first stage.
    pub(super) inputs: usize,
    /// The dense layers, first to last.
    pub(super) stages: Vec<Stage<'a>>,
}

/// A dense layer: `y = own x + mean x̄ + bias`, then ReLU if `relu`.
pub(super) struct Stage<'a> {
    /// Name of the layer, which no other layer has.
    pub(super) name: String,
    /// Width of the input.
    pub(super) inputs: usize,
    /// Width of the output.
    pub(super) outputs: usize,
    /// Weights of the port's own values, `[outputs, inputs]`.
    pub(super) own: Vec<f32>,
    /// Weights of the mean over ports, `[outputs, inputs]`.
    pub(super) mean: Option<Vec<f32>>,
    /// `[outputs]`.
    pub(super) bias: &'a [f32],
    /// True if ReLU follows.
    pub(super) relu: bool,
}

impl<'a> Stages<'a> {
    /// The stages of a network. `plain` turns the name of a layer into one that the target allows.
    ///
    /// # Errors
    /// When the layers do not form a network, a size is zero, or a number is out of range.
    pub(super) fn of(
        network: &'a Network,
        plain: impl Fn(&str) -> String,
    ) -> Result<Stages<'a>, ExportError> {
        check(network)?;
        let mut names = Names::default();
        let mut result = Stages {
            convolution: None,
            inputs: network.history * network.features.len(),
            stages: Vec::new(),
        };
        let mut means = 0;
        for layer in &network.layers {
            match layer {
                Layer::Convolution(conv) => {
                    result.inputs *= conv.filters;
                    result.convolution = Some((names.claim(plain(&conv.name)), conv));
                }
                Layer::AppendMean => means += 1,
                Layer::Dense(dense) => {
                    let name = names.claim(plain(&dense.name));
                    result.stages.push(Stage::new(name, dense, means));
                    means = 0;
                }
            }
        }
        Ok(result)
    }

    /// Returns true if a stage needs the mean over ports.
    pub(super) fn mixes(&self) -> bool {
        self.stages.iter().any(|stage| stage.mean.is_some())
    }
}

impl<'a> Stage<'a> {
    /// A dense layer after `means` appended means.
    fn new(name: String, dense: &'a Dense, means: u32) -> Stage<'a> {
        let inputs = dense.inputs >> means;
        let rows = || dense.weight.chunks_exact(dense.inputs);
        let own = rows().flat_map(|row| &row[..inputs]).copied().collect();
        let summed = |row: &[f32], k: usize| {
            let parts = row[inputs..].iter().skip(k).step_by(inputs);
            single(parts.map(|&weight| f64::from(weight)).sum::<f64>())
        };
        let mean = || {
            let row = |row: &'a [f32]| (0..inputs).map(move |k| summed(row, k));
            rows().flat_map(row).collect()
        };
        Stage {
            name,
            inputs,
            outputs: dense.outputs,
            own,
            mean: (means > 0).then(mean),
            bias: &dense.bias,
            relu: dense.relu,
        }
    }
}

fn check(network: &Network) -> Result<(), ExportError> {
    let sizes = [network.history, network.features.len()];
    let widths = network.widths()?;
    if let Some(index) = widths.iter().position(|&width| width == 0) {
        return Err(ExportError::Network(NetworkError::Layer {
            index,
            name: network.layers[index].name().to_owned(),
            reason: "no outputs".to_owned(),
        }));
    }
    if sizes.contains(&0) {
        let [history, features] = sizes;
        return Err(ExportError::Value(format!(
            "a history of {history} steps of {features} features: a network needs both"
        )));
    }
    for (levels, what) in network.levels().into_iter().zip(["alpha", "early drop"]) {
        if !(2..=256).contains(&levels) {
            return Err(ExportError::Value(format!(
                "{levels} levels of {what}: 2 to 256 can be exported"
            )));
        }
    }
    for feature in &network.features {
        let (mean, deviation) = (feature.mean, feature.deviation);
        if !(mean.is_finite() && deviation.is_finite() && deviation > 0.0) {
            return Err(ExportError::Value(format!(
                "feature {}: mean {mean} and deviation {deviation}; the mean must be a number, the \
                 deviation one above 0",
                feature.name
            )));
        }
    }
    for layer in &network.layers {
        let numbers = match layer {
            Layer::Convolution(conv) => [&conv.weight, &conv.bias],
            Layer::Dense(dense) => [&dense.weight, &dense.bias],
            Layer::AppendMean => continue,
        };
        if !numbers.into_iter().flatten().all(|value| value.is_finite()) {
            let name = layer.name();
            let message = format!("layer {name}: a weight is not a finite number");
            return Err(ExportError::Value(message));
        }
    }
    Ok(())
}

/// Names that are taken.
#[derive(Default)]
struct Names(Vec<String>);

impl Names {
    /// Returns `name`, or, if that is taken, the name followed by the first free number.
    fn claim(&mut self, name: String) -> String {
        let numbered = (2..).map(|number| format!("{name}_{number}"));
        let free = std::iter::once(name.clone())
            .chain(numbered)
            .find(|candidate| !self.0.contains(candidate))
            .unwrap_or(name);
        self.0.push(free.clone());
        free
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::{features, network_of};

    fn dense(name: &str, inputs: usize, outputs: usize) -> Layer {
        Layer::Dense(Dense {
            name: name.to_owned(),
            inputs,
            outputs,
            weight: (0..inputs * outputs).map(|k| 1.0 + k as f32).collect(),
            bias: vec![0.0; outputs],
            relu: false,
        })
    }

    #[test]
    fn means_of_means_are_added_up() {
        let network = network_of(
            1,
            features(2),
            vec![Layer::AppendMean, Layer::AppendMean, dense("a", 8, 1)],
        );
        let stages = Stages::of(&network, str::to_owned).unwrap().stages;
        assert_eq!(stages[0].own, [1.0, 2.0]);
        let mean = [3.0 + 5.0 + 7.0, 4.0 + 6.0 + 8.0];
        assert_eq!(stages[0].mean.as_deref(), Some(&mean[..]));
    }

    #[test]
    fn names_are_told_apart() {
        let layers = vec![dense("a", 2, 2), dense("a", 2, 2), dense("a_2", 2, 1)];
        let network = network_of(1, features(2), layers);
        let stages = Stages::of(&network, str::to_owned).unwrap().stages;
        let names: Vec<&str> = stages.iter().map(|stage| stage.name.as_str()).collect();
        assert_eq!(names, ["a", "a_2", "a_2_2"]);
    }

    #[test]
    fn numbers_without_meaning_are_named() {
        let message = |change: &dyn Fn(&mut Network)| {
            let mut network = network_of(1, features(2), vec![dense("only", 2, 1)]);
            change(&mut network);
            let error = Stages::of(&network, str::to_owned).err();
            error.map(|error| error.to_string()).unwrap_or_default()
        };
        assert_eq!(message(&|_| ()), "");
        let infinite = message(&|network| {
            if let Layer::Dense(dense) = &mut network.layers[0] {
                dense.weight[1] = f32::INFINITY;
            }
        });
        assert!(infinite.contains("layer only"), "{infinite}");
        let flat = message(&|network| network.features[1].deviation = 0.0);
        assert!(
            flat.contains("feature f1") && flat.contains("deviation 0"),
            "{flat}"
        );
        let single = message(&|network| network.actions.levels = 1);
        assert!(single.contains("2 to 256"), "{single}");
    }
}
