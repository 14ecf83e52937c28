//! Policy strings `onnx:FILE` in a program without the ONNX runtime: there is no such network, and loading one
//! fails.

use bufgym_env::control::{BasePolicy, Controller};
use bufgym_sim::scenario::Scenario;

use super::EntrantError;
use crate::data::Training;

/// A network that cannot exist.
#[derive(Clone, Debug)]
pub(super) enum OnnxNetwork {}

pub(super) fn load(policy: &str, _file: &str) -> Result<OnnxNetwork, EntrantError> {
    Err(EntrantError::NoOnnxRuntime(policy.to_owned()))
}

pub(super) fn controller(network: &OnnxNetwork) -> Box<dyn Controller> {
    match *network {}
}

pub(super) fn low_level(network: &OnnxNetwork) -> &BasePolicy {
    match *network {}
}

pub(super) fn check(
    _policy: &str,
    network: &OnnxNetwork,
    _scenario: &Scenario,
) -> Result<(), EntrantError> {
    match *network {}
}

pub(super) fn origin(network: &OnnxNetwork) -> String {
    match *network {}
}

pub(super) fn training(network: &OnnxNetwork) -> Option<Training> {
    match *network {}
}
