//! Properties that head and hosts must share.

use bufgym_env::control::{FEATURES, HISTORY};
use bufgym_eval::metric::Metric;
use bufgym_models::files::sha256;
use bufgym_models::{ActorWeights, FastActor};
use bufgym_sim::scenario::Scenario;
use bufgym_util::convert::single;
use bufgym_util::rng::uniform;
use rand::SeedableRng as _;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::RemoteError;
use super::message::Hello;
use crate::simulations::{Decider, Setting, TraceRef};

/// Version, build, and a check of the processor's arithmetic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Identity {
    version: String,
    build: String,
    arithmetic: String,
}

/// Ports of the check.
const PORTS: usize = 4;
/// Seed of the check; the value does not matter.
const SEED: u64 = 20;

impl Identity {
    /// Returns the identity of this process, whose program or library is `build`.
    pub(super) fn here(build: &str) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            build: build.to_owned(),
            arithmetic: arithmetic(),
        }
    }

    pub(super) fn hello(&self, name: &str, threads: usize) -> Hello {
        let Self {
            version,
            build,
            arithmetic,
        } = self.clone();
        Hello {
            name: name.to_owned(),
            version,
            build,
            arithmetic,
            threads,
        }
    }

    /// Refuses a host that might compute other results.
    pub(super) fn admit(&self, hello: &Hello) -> Result<(), RemoteError> {
        type Refusal = fn(String, String, String) -> RemoteError;
        let checks: [(&String, &String, Refusal); 3] = [
            (&hello.version, &self.version, |host, theirs, ours| {
                RemoteError::Version { host, theirs, ours }
            }),
            (&hello.build, &self.build, |host, theirs, ours| {
                RemoteError::Build { host, theirs, ours }
            }),
            (&hello.arithmetic, &self.arithmetic, |host, theirs, ours| {
                RemoteError::Arithmetic { host, theirs, ours }
            }),
        ];
        match checks.into_iter().find(|(theirs, ours, _)| theirs != ours) {
            Some((theirs, ours, refusal)) => {
                Err(refusal(hello.name.clone(), theirs.clone(), ours.clone()))
            }
            None => Ok(()),
        }
    }
}

/// Returns a hash over the outputs of random weights for random observations, and over a short simulation in which they
/// decide.
fn arithmetic() -> String {
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(SEED);
    let weights = ActorWeights::random(&mut rng);
    let mut actor = FastActor::new(&weights);
    let mut observation = vec![0.0; PORTS * HISTORY * FEATURES];
    observation.fill_with(|| single(uniform(&mut rng)));
    let mut action = vec![0.0; PORTS];
    actor.sample(&observation, PORTS, &mut rng, &mut action);
    let (mean, log_std) = actor.forward(&observation, PORTS);
    let outputs = [mean, log_std, action.as_slice()].concat();
    let simulated = simulated(weights).map(f64::to_bits);
    let bits = outputs.iter().map(|output| u64::from(output.to_bits()));
    let bytes = bits.chain(simulated).flat_map(u64::to_le_bytes);
    let mut hash = sha256(&bytes.collect::<Vec<u8>>());
    hash.truncate(16);
    hash
}

/// Returns the mean FCT of a short simulation, and 1 if it finished.
fn simulated(weights: ActorWeights) -> [f64; 2] {
    let mut scenario = Scenario::default();
    let settings = [
        "ports=4",
        "buffer_bytes=100000",
        "active_ports=2..4",
        "incast_degree=1..3",
        "flows=20..20",
    ];
    scenario.set_all(settings).expect("the settings are valid");
    let setting = Setting {
        scenarios: vec![scenario],
        metric: Metric::MeanFct,
        low_level: bufgym_env::control::LowLevelPolicy::dt(),
    };
    let trace = TraceRef {
        scenario: 0,
        seed: SEED,
    };
    let known = setting.know(trace).expect("the scenario is valid");
    let measured = setting.measure(&Decider::network(weights).ready(), &known);
    let sample = measured.expect("the heuristic fits the scenario").sample;
    [sample.value, f64::from(u8::from(sample.complete))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_computes_the_same_is_admitted() {
        let here = Identity::here("a build");
        assert_eq!(here, Identity::here("a build"));
        let hello = here.hello("node", 4);
        assert_eq!(here.admit(&hello), Ok(()));
        let with = |change: &dyn Fn(&mut Hello)| {
            let mut other = hello.clone();
            change(&mut other);
            here.admit(&other).unwrap_err()
        };
        let version = with(&|hello| hello.version = "0.0.1".to_owned());
        assert!(matches!(version, RemoteError::Version { .. }));
        let build = with(&|hello| hello.build = "another".to_owned());
        assert!(matches!(build, RemoteError::Build { .. }));
        let arithmetic = with(&|hello| hello.arithmetic = "0123".to_owned());
        assert!(matches!(arithmetic, RemoteError::Arithmetic { .. }));
    }
}
