//! A network as a controller.

use std::collections::BTreeMap;
use std::sync::Arc;

use bufgym_env::control::{Controller, Reading};
use bufgym_sim::network::{SimError, SwitchId};
use bufgym_util::input::excerpt;
use tract_onnx::prelude::*;

use crate::error::OnnxError;
use crate::interface::{Interface, Output};
use crate::network::{OnnxNetwork, Plan, said};
use crate::seam::caught;

/// An [`OnnxNetwork`] with the buffers to run it. One per run.
#[derive(Clone, Debug)]
pub struct OnnxActor {
    network: OnnxNetwork,
    /// Sessions by number of ports, which differs between the switches of a network.
    sessions: BTreeMap<usize, Session>,
    /// States of a recurrent network for the next decision of each switch.
    states: BTreeMap<SwitchId, Vec<Tensor>>,
}

/// Runs one plan again and again.
#[derive(Clone, Debug)]
struct Session {
    plan: Arc<Plan>,
    /// Buffers, kept where the plan has no other state.
    state: Option<TypedSimpleState>,
}

impl OnnxNetwork {
    /// Returns a controller for one run.
    pub fn actor(&self) -> OnnxActor {
        OnnxActor {
            network: self.clone(),
            sessions: BTreeMap::new(),
            states: BTreeMap::new(),
        }
    }
}

impl OnnxActor {
    /// Fills `action`, `[ports, outputs]`, each in [-1, 1], from `observation`, `[ports, 8, 5]`. A recurrent network
    /// starts from the state 0, as at the first decision of a run.
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
        self.compute(observation, ports, None, action).map(drop)
    }

    /// Same as [`try_act`](OnnxActor::try_act), from these states, or from zeros. Returns the next states.
    fn compute(
        &mut self,
        observation: &[f32],
        ports: usize,
        states: Option<Vec<Tensor>>,
        action: &mut [f32],
    ) -> Result<Vec<Tensor>, OnnxError> {
        assert_eq!(action.len(), ports * self.outputs());
        let network = &self.network;
        let session = match self.sessions.entry(ports) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                entry.insert(Session::of(network.plan(ports)?))
            }
        };
        let Interface {
            input,
            states: of_states,
            outputs,
        } = network.interface();
        let failed = |error: &TractError| network.failed(ports, said(error));
        let results = caught(|| {
            let mut inputs = vec![Tensor::from_shape(&input.shape(ports), observation)?];
            match states {
                Some(states) => inputs.extend(states),
                None => {
                    for state in of_states {
                        inputs.push(Tensor::zero::<f32>(&state.shape(ports))?);
                    }
                }
            }
            session.run(inputs)
        });
        let mut results = results.map_err(|error| failed(&error))?.into_iter();
        let mut place = 0;
        for (output, result) in outputs.iter().zip(results.by_ref()) {
            let values = values(&result, ports * output.values).map_err(|error| failed(&error))?;
            take(
                network,
                output,
                values,
                [place, action.len() / ports],
                action,
            )?;
            place += output.values;
        }
        let mut next = Vec::with_capacity(of_states.len());
        for (state, result) in of_states.iter().zip(results) {
            let length = state.shape(ports).iter().product();
            let values = values(&result, length).map_err(|error| failed(&error))?;
            if let Some(value) = values.iter().find(|value| !value.is_finite()) {
                let name = excerpt(&state.next);
                let problem =
                    format!("a value of the state `{name}` is {value}; must be a finite number");
                return Err(network.failed(ports, problem));
            }
            next.push(result.into_tensor());
        }
        Ok(next)
    }
}

/// Returns the values of a result, which must be so many.
fn values(result: &TValue, count: usize) -> TractResult<&[f32]> {
    let values = result.try_as_plain_ram()?.as_slice::<f32>()?;
    match values.len() == count {
        true => Ok(values),
        false => Err(TractError::msg(format!(
            "an output has {} values; must have {count}",
            values.len()
        ))),
    }
}

/// Copies the values of an output, `[ports, output.values]`, to their places in `action`, of `width` values a
/// port, from `place` on at every port.
fn take(
    network: &OnnxNetwork,
    output: &Output,
    values: &[f32],
    [place, width]: [usize; 2],
    action: &mut [f32],
) -> Result<(), OnnxError> {
    let ports = action.chunks_exact_mut(width);
    for (port, (action, values)) in ports.zip(values.chunks_exact(output.values)).enumerate() {
        for (action, &value) in action[place..].iter_mut().zip(values) {
            let expected = match output.is_mean {
                true if value.is_finite() => None,
                true => Some("must be a finite number"),
                false if (-1.0..=1.0).contains(&value) => None,
                false => Some(
                    "must be in [-1, 1]: end the network with Clip to [-1, 1], as libraries clip an unbounded mean (PPO); only a policy that was trained with tanh (SAC) ends with Tanh, or names the output `action_mean`",
                ),
            };
            if let Some(expected) = expected {
                return Err(OnnxError::Value {
                    path: network.path().to_owned(),
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

impl Session {
    fn of(plan: Arc<Plan>) -> Session {
        Session { plan, state: None }
    }

    fn run(&mut self, inputs: Vec<Tensor>) -> TractResult<TVec<TValue>> {
        let inputs = inputs.into_iter().map(Tensor::into_tvalue).collect();
        if !self.plan.is_stateless {
            return self.plan.runnable.run(inputs);
        }
        let state = match self.state.take() {
            Some(state) => state,
            None => self.plan.runnable.spawn()?,
        };
        // After an error, including a panic, the buffers are not used again.
        let mut state = state;
        let results = state.run(inputs)?;
        self.state = Some(state);
        Ok(results)
    }
}

impl Controller for OnnxActor {
    fn outputs(&self) -> usize {
        self.network.actions().outputs()
    }

    /// Same as [`try_act`](OnnxActor::try_act); if that fails, `action` is 0.
    fn act(&mut self, observation: &[f32], ports: usize, action: &mut [f32]) {
        if self.try_act(observation, ports, action).is_err() {
            action.fill(0.0);
        }
    }

    fn decide(&mut self, at: &Reading<'_>, action: &mut [f32]) -> Result<(), SimError> {
        let states = self.states.remove(&at.switch());
        let next = self
            .compute(at.observation(), at.ports(), states, action)
            .map_err(|error| SimError::Controller(error.to_string()))?;
        self.states.insert(at.switch(), next);
        Ok(())
    }
}
