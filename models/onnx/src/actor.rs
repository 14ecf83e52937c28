//! A network as a controller.

use std::collections::BTreeMap;
use std::sync::Arc;

use bufgym_env::control::{Controller, Reading};
use bufgym_sim::network::SimError;
use tract_onnx::prelude::*;

use crate::error::OnnxError;
use crate::interface::Output;
use crate::network::{OnnxNetwork, Plan, said};

/// An [`OnnxNetwork`] with the buffers to run it. One per run.
#[derive(Clone, Debug)]
pub struct OnnxActor {
    network: OnnxNetwork,
    /// By number of ports, which differs between the switches of a network.
    sessions: BTreeMap<usize, Session>,
}

/// Runs one plan again and again.
#[derive(Clone, Debug)]
struct Session {
    plan: Arc<Plan>,
    /// Buffers, kept where the plan remembers nothing else.
    state: Option<TypedSimpleState>,
}

impl OnnxActor {
    pub(crate) fn new(network: OnnxNetwork) -> OnnxActor {
        OnnxActor {
            network,
            sessions: BTreeMap::new(),
        }
    }

    /// Fills `action`, `[ports, outputs]`, each in [-1, 1], from `observation`, `[ports, 8, 5]`.
    ///
    /// # Errors
    /// When the network is not for so many ports or cannot be computed, and when an output is not a
    /// number or, of an action, not in [-1, 1]. `action` is then partly filled.
    ///
    /// # Panics
    /// When `observation` or `action` has another length.
    pub fn try_act(
        &mut self,
        observation: &[f32],
        ports: usize,
        action: &mut [f32],
    ) -> Result<(), OnnxError> {
        assert_eq!(action.len(), ports * self.outputs());
        let network = &self.network;
        let session = match self.sessions.entry(ports) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert(Session::of(network.plan(ports)?))
            }
        };
        let shape = network.input().shape(ports);
        let results =
            Tensor::from_shape(&shape, observation).and_then(|tensor| session.run(tensor));
        let results = results.map_err(|error| network.failed(ports, said(&error)))?;
        let mut place = 0;
        for (output, result) in network.outputs().iter().zip(&results) {
            let values = result
                .try_as_plain_ram()
                .and_then(|plain| plain.as_slice::<f32>());
            let values = values.map_err(|error| network.failed(ports, said(&error)))?;
            self.take(output, values, place, action)?;
            place += output.values;
        }
        Ok(())
    }

    /// Copies the values of an output, `[ports, output.values]`, to their places in `action`, from
    /// `place` on at every port.
    fn take(
        &self,
        output: &Output,
        values: &[f32],
        place: usize,
        action: &mut [f32],
    ) -> Result<(), OnnxError> {
        let ports = action.chunks_exact_mut(self.outputs());
        for (port, (action, values)) in ports.zip(values.chunks_exact(output.values)).enumerate() {
            for (action, &value) in action[place..].iter_mut().zip(values) {
                let expected = match output.is_mean {
                    true if value.is_finite() => None,
                    true => Some("must be a finite number"),
                    false if (-1.0..=1.0).contains(&value) => None,
                    false => Some(
                        "must be in [-1, 1]: end the network with tanh, or name the output `action_mean`",
                    ),
                };
                if let Some(expected) = expected {
                    return Err(OnnxError::Value {
                        path: self.network.path().to_owned(),
                        output: output.name.clone(),
                        value,
                        port,
                        expected,
                    });
                }
                *action = match output.is_mean {
                    true => libm::tanhf(value),
                    false => value,
                };
            }
        }
        Ok(())
    }
}

impl Session {
    fn of(plan: Arc<Plan>) -> Session {
        Session { plan, state: None }
    }

    fn run(&mut self, observation: Tensor) -> TractResult<TVec<TValue>> {
        let inputs = tvec!(observation.into_tvalue());
        if !self.plan.is_stateless {
            return self.plan.runnable.run(inputs);
        }
        let state = match self.state.take() {
            Some(state) => state,
            None => self.plan.runnable.spawn()?,
        };
        self.state.insert(state).run(inputs)
    }
}

impl Controller for OnnxActor {
    fn outputs(&self) -> usize {
        self.network.actions().outputs()
    }

    /// As [`try_act`](OnnxActor::try_act); where that fails, `action` is 0.
    fn act(&mut self, observation: &[f32], ports: usize, action: &mut [f32]) {
        if self.try_act(observation, ports, action).is_err() {
            action.fill(0.0);
        }
    }

    fn decide(&mut self, at: &Reading<'_>, action: &mut [f32]) -> Result<(), SimError> {
        self.try_act(at.observation(), at.ports(), action)
            .map_err(|error| SimError::Controller(error.to_string()))
    }
}
