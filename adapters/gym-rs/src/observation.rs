//! Observations with what gym-rs asks of them.

use bufgym_env::control::{FEATURES, HISTORY};
use gym_rs::spaces::BoxR;
use gym_rs::utils::custom::traits::Sample;
use rand::Rng;
use rand::distributions::uniform::{SampleBorrow, SampleUniform, UniformSampler};
use serde::Serialize;

/// Ports of the default scenario, for samples without bounds.
const DEFAULT_PORTS: usize = 16;

/// `[ports, 8, 5]` in row-major order: the last 8 decisions of every port, newest last, by 5
/// features in [-1, 1].
#[derive(Clone, Debug, PartialEq, PartialOrd, Serialize)]
pub struct Observation(pub Vec<f32>);

impl Observation {
    /// The same value everywhere.
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

    /// The same as `new`: among real numbers a single end makes no difference.
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
    /// Uniform within `bounds`; without any, an observation of the default scenario.
    fn sample_between<R: Rng>(rng: &mut R, bounds: Option<BoxR<Observation>>) -> Observation {
        let BoxR { low, high } = bounds.unwrap_or_else(|| {
            let of = |value| Observation::uniform(DEFAULT_PORTS, value);
            BoxR::new(of(-1.0), of(1.0))
        });
        UniformObservation::new(low, high).sample(rng)
    }
}
