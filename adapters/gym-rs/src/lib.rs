//! The buffer-management environment of [`bufgym_env`] behind the [`Env`] trait of
//! [gym-rs](https://docs.rs/gym-rs/0.3.0), for agents that are written against that trait.
//!
//! ```
//! use bufgym_gym_rs::{Action, GymRsEnv};
//! use gym_rs::core::Env;
//!
//! let mut env = GymRsEnv::make("bufgym/NDT-16x1G-v0", &Default::default())?;
//! env.reset(Some(7), false, None);
//! let step = env.step(Action::uniform(16, 0.0));
//! assert!(step.reward.into_inner() <= 0.0);
//! # Ok::<(), bufgym_env::gym::RegistryError>(())
//! ```
//!
//! Differences from [`bufgym_env::gym`]:
//! * the calls of gym-rs cannot fail, so [`Env::reset`] and [`Env::step`] panic where
//!   [`GymRsEnv::try_reset`] and [`GymRsEnv::try_step`] return an error;
//! * `done` means terminated only, and `truncated` is a separate field: a loop has to check both;
//! * the bounds that gym-rs takes as options of a reset are ignored: the trace determines where an episode
//!   begins, and a caller cannot ask for a state.

use std::fmt;

use bufgym_env::control::{ALPHAS, FEATURES, HISTORY, action_index};
use bufgym_env::gym::{self, BufferEnv, EnvError, Info, MakeOptions, RegistryError, Resumable};
use bufgym_util::convert::floor_usize;
use gym_rs::core::{ActionReward, Env, EnvProperties};
use gym_rs::spaces::{BoxR, Space};
use gym_rs::utils::custom::structs::Metadata;
use gym_rs::utils::custom::traits::Sample;
use gym_rs::utils::custom::types::O64;
use gym_rs::utils::renderer::{RenderMode, Renders};
use gym_rs::utils::seeding::rand_random;
use rand::Rng;
use rand::distributions::uniform::{SampleBorrow, SampleUniform, UniformSampler};
use rand_pcg::Pcg64;
use serde::{Serialize, Serializer};

/// Ports of the default scenario, for samples without bounds.
const DEFAULT_PORTS: usize = 16;

/// An episode is shown as text or not at all.
const RENDER_MODES: &[RenderMode] = &[RenderMode::Ansi, RenderMode::None];

/// One value in [-1, 1] per port; eight equal cells mean α = 2^-2, …, 2^5.
#[derive(Clone, Debug, PartialEq, PartialOrd, Serialize)]
pub struct Action(pub Vec<f32>);

impl Action {
    /// Returns an action with the same value for every port.
    pub fn uniform(ports: usize, value: f32) -> Action {
        Action(vec![value; ports])
    }
}

impl Space<Action> for BoxR<Action> {
    fn contains(&self, value: Action) -> bool {
        let bounds = self.low.0.iter().zip(&self.high.0);
        value.0.len() == self.low.0.len()
            && value
                .0
                .iter()
                .zip(bounds)
                .all(|(v, (low, high))| (low..=high).contains(&v))
    }
}

/// `[ports, 8, 5]` in row-major order: the last 8 decisions of every port, newest last, by 5
/// features in [-1, 1].
#[derive(Clone, Debug, PartialEq, PartialOrd, Serialize)]
pub struct Observation(pub Vec<f32>);

impl Observation {
    /// Returns an observation with the same value everywhere.
    pub fn uniform(ports: usize, value: f32) -> Observation {
        Observation(vec![value; ports * HISTORY * FEATURES])
    }
}

impl From<Observation> for Vec<f64> {
    fn from(observation: Observation) -> Vec<f64> {
        observation.0.into_iter().map(f64::from).collect()
    }
}

/// Draws every element between its own bounds.
#[derive(Clone, Debug)]
pub struct UniformObservation {
    low: Vec<f32>,
    high: Vec<f32>,
}

impl UniformSampler for UniformObservation {
    type X = Observation;

    fn new<B1, B2>(low: B1, high: B2) -> UniformObservation
    where
        B1: SampleBorrow<Observation> + Sized,
        B2: SampleBorrow<Observation> + Sized,
    {
        let (low, high) = (low.borrow().0.clone(), high.borrow().0.clone());
        UniformObservation { low, high }
    }

    /// Same as `new`: for real numbers it makes no difference whether the end is included.
    fn new_inclusive<B1, B2>(low: B1, high: B2) -> UniformObservation
    where
        B1: SampleBorrow<Observation> + Sized,
        B2: SampleBorrow<Observation> + Sized,
    {
        UniformObservation::new(low, high)
    }

    fn sample<R: Rng + ?Sized>(&self, rng: &mut R) -> Observation {
        let bounds = self.low.iter().zip(&self.high);
        Observation(
            bounds
                .map(|(low, high)| low + rng.r#gen::<f32>() * (high - low))
                .collect(),
        )
    }
}

impl SampleUniform for Observation {
    type Sampler = UniformObservation;
}

impl Sample for Observation {
    /// Samples uniformly within `bounds`; without bounds, samples an observation of the default scenario.
    fn sample_between<R: Rng>(rng: &mut R, bounds: Option<BoxR<Observation>>) -> Observation {
        let BoxR { low, high } = bounds.unwrap_or_else(|| {
            let of = |value| Observation::uniform(DEFAULT_PORTS, value);
            BoxR::new(of(-1.0), of(1.0))
        });
        UniformObservation::new(low, high).sample(rng)
    }
}

/// A [`BufferEnv`] as an environment of gym-rs.
#[derive(Clone)]
pub struct GymRsEnv {
    env: BufferEnv,
    observation: Observation,
    observation_space: BoxR<Observation>,
    action_space: BoxR<Action>,
    metadata: Metadata<GymRsEnv>,
    random: Pcg64,
}

impl GymRsEnv {
    /// Puts `env` behind the trait of gym-rs.
    pub fn new(env: BufferEnv) -> GymRsEnv {
        let ports = env.ports();
        let (random, _) = rand_random(Some(env.options().traces.seed));
        GymRsEnv {
            env,
            observation: Observation::uniform(ports, 0.0),
            observation_space: BoxR::new(
                Observation::uniform(ports, -1.0),
                Observation::uniform(ports, 1.0),
            ),
            action_space: BoxR::new(Action::uniform(ports, -1.0), Action::uniform(ports, 1.0)),
            metadata: Metadata::new(RENDER_MODES, 1),
            random,
        }
    }

    /// Builds an environment by its registered name.
    ///
    /// # Errors
    /// Returns the errors of [`bufgym_env::gym::make`].
    pub fn make(id: &str, options: &MakeOptions) -> Result<GymRsEnv, RegistryError> {
        gym::make(id, options).map(GymRsEnv::new)
    }

    /// Returns the wrapped environment.
    pub fn env(&self) -> &BufferEnv {
        &self.env
    }

    /// Begins an episode like [`bufgym_env::gym::Env::reset`].
    ///
    /// # Errors
    /// Fails if no episode can be started.
    pub fn try_reset(&mut self, seed: Option<u64>) -> Result<(Observation, Info), EnvError> {
        let reset = gym::Env::reset(&mut self.env, seed, &gym::ResetOptions::default())?;
        let (observation, info) = (Observation(reset.observation.to_vec()), reset.info.clone());
        if seed.is_some() {
            (self.random, _) = rand_random(seed);
        }
        self.observation = observation.clone();
        Ok((observation, info))
    }

    /// Makes one decision like [`bufgym_env::gym::Env::step`].
    ///
    /// # Errors
    /// Fails if no episode is running or the action is not in the action space.
    pub fn try_step(
        &mut self,
        action: &Action,
    ) -> Result<ActionReward<Observation, Info>, EnvError> {
        let step = gym::Env::step(&mut self.env, &action.0)?;
        let result = ActionReward {
            observation: Observation(step.observation.to_vec()),
            reward: O64::from(step.reward),
            done: step.terminated,
            truncated: step.truncated,
            info: Some(step.info.clone()),
        };
        self.observation = result.observation.clone();
        Ok(result)
    }

    /// Returns one line per port: the queue as a share of the buffer, and the α of the port.
    fn text(&self) -> Vec<String> {
        let newest = |port: &[f32]| port[(HISTORY - 1) * FEATURES..].to_vec();
        let ports = self
            .observation
            .0
            .chunks_exact(HISTORY * FEATURES)
            .map(newest);
        ports
            .enumerate()
            .map(|(port, features)| {
                let (share, alpha) = (features[0], ALPHAS[action_index(features[3])]);
                let bar = "#".repeat(floor_usize(f64::from(
                    (share.clamp(0.0, 1.0) * 40.0).round(),
                )));
                format!("port {port:3}  α {alpha:5}  {:5.1} % {bar}", share * 100.0)
            })
            .collect()
    }
}

impl Env for GymRsEnv {
    type Action = Action;
    type Observation = Observation;
    type Info = Info;
    type ResetInfo = Info;

    /// # Panics
    /// Panics if [`GymRsEnv::try_step`] returns an error.
    fn step(&mut self, action: Action) -> ActionReward<Observation, Info> {
        match self.try_step(&action) {
            Ok(result) => result,
            Err(error) => panic!("step: {error}"),
        }
    }

    /// # Panics
    /// Panics if [`GymRsEnv::try_reset`] returns an error.
    fn reset(
        &mut self,
        seed: Option<u64>,
        return_info: bool,
        _options: Option<BoxR<Observation>>,
    ) -> (Observation, Option<Info>) {
        match self.try_reset(seed) {
            Ok((observation, info)) => (observation, return_info.then_some(info)),
            Err(error) => panic!("reset: {error}"),
        }
    }

    /// Renders the ports as text for [`RenderMode::Ansi`], and nothing for any other mode.
    fn render(&mut self, mode: RenderMode) -> Renders {
        match mode {
            RenderMode::Ansi => Renders::Ansi(self.text()),
            _ => Renders::None,
        }
    }

    /// Does nothing: the environment holds no open resources.
    fn close(&mut self) {}
}

impl EnvProperties for GymRsEnv {
    type ActionSpace = BoxR<Action>;
    type ObservationSpace = BoxR<Observation>;

    fn metadata(&self) -> &Metadata<GymRsEnv> {
        &self.metadata
    }

    /// Returns a generator with the seed of the last reset that had one. The environment itself does not draw
    /// from it: its traces follow from the seed.
    fn rand_random(&self) -> &Pcg64 {
        &self.random
    }

    fn action_space(&self) -> &BoxR<Action> {
        &self.action_space
    }

    fn observation_space(&self) -> &BoxR<Observation> {
        &self.observation_space
    }
}

impl fmt::Debug for GymRsEnv {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GymRsEnv")
            .field("scenario", &self.env.options().scenario.name)
            .field("trace", &self.env.trace_index())
            .finish_non_exhaustive()
    }
}

/// Serialises the snapshot of the environment. Together with the environment's options it is the whole state.
impl Serialize for GymRsEnv {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.env.snapshot().serialize(serializer)
    }
}
