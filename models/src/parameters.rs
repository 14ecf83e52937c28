//! Operations on all parameters of a network: saving, restoring, numbering, averaging.

use burn::module::{Module, ModuleMapper, ModuleVisitor, Param, ParamId};
use burn::tensor::{Tensor, TensorData};

/// One parameter on the host.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedTensor {
    /// Path within the network, such as `trunk.embed.weight`.
    pub name: String,
    /// Row-major shape.
    pub shape: Vec<usize>,
    /// Values.
    pub values: Vec<f32>,
}

/// The reason why a list of parameters does not fit a network.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParameterError {
    /// A parameter of the network is not in the list.
    #[error("the tensor `{0}` is missing")]
    Missing(String),
    /// A parameter has another shape than in the network.
    #[error("the tensor `{name}` has shape {found:?}; this network needs {expected:?}")]
    Shape {
        /// Name of the parameter.
        name: String,
        /// Shape in the list.
        found: Vec<usize>,
        /// Shape in the network.
        expected: Vec<usize>,
    },
}

/// The values of a tensor on any device.
///
/// # Panics
/// When the tensor does not hold `f32`.
pub fn host_values<const D: usize>(tensor: Tensor<D>) -> Vec<f32> {
    tensor
        .into_data()
        .try_into_vec::<f32>()
        .expect("every network is made of f32")
}

/// Every parameter, in the network's order.
pub fn collect<M: Module>(module: &M) -> Vec<NamedTensor> {
    let mut collector = Collector {
        path: Vec::new(),
        tensors: Vec::new(),
    };
    module.visit(&mut collector);
    collector.tensors
}

struct Collector {
    path: Vec<String>,
    tensors: Vec<NamedTensor>,
}

impl ModuleVisitor for Collector {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_owned());
    }
    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }
    fn visit_float<const D: usize>(&mut self, parameter: &Param<Tensor<D>>) {
        let value = parameter.val();
        self.tensors.push(NamedTensor {
            name: self.path.join("."),
            shape: value.dims().to_vec(),
            values: host_values(value),
        });
    }
}

/// The network with its parameters replaced by those of the list, matched by name. Surplus entries
/// are ignored.
///
/// # Errors
/// When a parameter is missing or has another shape.
pub fn apply<M: Module>(module: M, tensors: Vec<NamedTensor>) -> Result<M, ParameterError> {
    let mut applier = Applier {
        path: Vec::new(),
        tensors,
        error: None,
    };
    let module = module.map(&mut applier);
    applier.error.map_or(Ok(module), Err)
}

struct Applier {
    path: Vec<String>,
    tensors: Vec<NamedTensor>,
    error: Option<ParameterError>,
}

impl ModuleMapper for Applier {
    fn enter_module(&mut self, name: &str, _container: &str) {
        self.path.push(name.to_owned());
    }
    fn exit_module(&mut self, _name: &str, _container: &str) {
        self.path.pop();
    }
    fn map_float<const D: usize>(&mut self, parameter: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let name = self.path.join(".");
        let expected = parameter.val().dims().to_vec();
        let Some(index) = self.tensors.iter().position(|tensor| tensor.name == name) else {
            self.error.get_or_insert(ParameterError::Missing(name));
            return parameter;
        };
        let NamedTensor {
            shape: found,
            values,
            ..
        } = self.tensors.swap_remove(index);
        if found != expected || values.len() != expected.iter().product::<usize>() {
            self.error.get_or_insert(ParameterError::Shape {
                name,
                found,
                expected,
            });
            return parameter;
        }
        replace(parameter, |old| {
            Tensor::from_data(TensorData::new(values, expected), &old.device())
        })
    }
}

/// Gives the parameters the identifiers `first`, `first + 1`, … in the network's order.
///
/// They are the keys of an optimiser's record. Burn draws them at random; with fixed ones a record
/// fits the network in another process too.
pub fn number<M: Module>(module: M, first: u64) -> M {
    module.map(&mut Numberer { next: first })
}

struct Numberer {
    next: u64,
}

impl ModuleMapper for Numberer {
    fn map_float<const D: usize>(&mut self, parameter: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let (_, tensor, mapper) = parameter.consume();
        let id = ParamId::from(self.next);
        self.next += 1;
        Param::from_mapped_value(id, tensor, mapper)
    }
}

/// `target * (1 - rate) + source * rate`, parameter by parameter (Polyak averaging).
///
/// `target` holds no gradients, `source` may. Both must be networks of the same kind.
///
/// # Panics
/// When the networks differ in their number of parameters.
pub fn polyak<M: Module>(target: M, source: &M, rate: f64) -> M {
    let mut flat = Flattener {
        tensors: Vec::new(),
    };
    source.visit(&mut flat);
    flat.tensors.reverse();
    target.map(&mut Averager {
        sources: flat.tensors,
        rate,
    })
}

struct Flattener {
    tensors: Vec<Tensor<1>>,
}

impl ModuleVisitor for Flattener {
    fn visit_float<const D: usize>(&mut self, parameter: &Param<Tensor<D>>) {
        let value = parameter.val().without_autodiff();
        let count = value.shape().num_elements();
        self.tensors.push(value.reshape([count]));
    }
}

struct Averager {
    sources: Vec<Tensor<1>>,
    rate: f64,
}

impl ModuleMapper for Averager {
    fn map_float<const D: usize>(&mut self, parameter: Param<Tensor<D>>) -> Param<Tensor<D>> {
        let source = self.sources.pop().expect("networks of the same kind");
        replace(parameter, |old| {
            let source = source.reshape(old.dims());
            old * (1.0 - self.rate) + source * self.rate
        })
    }
}

/// The parameter with another value, the same identifier and the same use of gradients.
fn replace<const D: usize>(
    parameter: Param<Tensor<D>>,
    value: impl FnOnce(Tensor<D>) -> Tensor<D>,
) -> Param<Tensor<D>> {
    let (id, old, mapper) = parameter.consume();
    let (autodiff, require_grad) = (old.is_autodiff(), old.is_require_grad());
    let mut new = value(old.without_autodiff());
    if autodiff {
        new = new.autodiff().set_require_grad(require_grad);
    }
    Param::from_mapped_value(id, new, mapper)
}
