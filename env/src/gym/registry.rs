//! Environments by name: `namespace/Name-vVersion`, as in Gymnasium.

use super::{AutoresetMode, BufferEnv, BufferEnvOptions, EnvError, MultiAgentVectorEnv};
use super::{NetworkEnv, TraceSequence, VectorEnv, VectorError};
use crate::control::{ControlOptions, LowLevelPolicy};
use bufgym_sim::scenario::{Scenario, ScenarioError};
use bufgym_util::input::excerpt;

/// A registered environment.
#[derive(Clone, Debug, PartialEq)]
pub struct EnvSpec {
    /// Name with version, such as `bufgym/NDT-16x1G-v0`. The version goes up whenever a change
    /// makes results incomparable.
    pub id: String,
    /// Description in one line.
    pub summary: String,
    /// Scenario that it simulates.
    pub scenario: Scenario,
}

/// Options of [`make`], [`make_vec`], [`make_network`] and [`make_network_vec`].
#[derive(Clone, Debug, Default)]
pub struct MakeOptions {
    /// Traces to play, and their order.
    pub traces: TraceSequence,
    /// Trigger, objective and scale of the reward. Where packets are lossless, Reverie replaces Dynamic Threshold as
    /// the low level, because Dynamic Threshold is not defined there.
    pub control: ControlOptions,
    /// Settings of the scenario to change, `key=value` each.
    pub settings: Vec<String>,
}

/// The reason why an environment could not be made or registered.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// No environment has this name.
    #[error("unknown environment '{}'{hint}; registered: {known}", excerpt(.id))]
    Unknown {
        /// Requested name.
        id: String,
        /// `, did you mean '…'?`, or nothing.
        hint: String,
        /// All names.
        known: String,
    },
    /// The name exists, but not in this version.
    #[error("environment '{name}' has no version {version}; registered: {known}")]
    Version {
        /// The name without its version.
        name: String,
        /// Requested version.
        version: u32,
        /// Existing versions.
        known: String,
    },
    /// A name without version, or not of the form `namespace/Name-v0`.
    #[error("'{}' is not the name of an environment: it has to look like 'bufgym/NDT-16x1G-v0'", excerpt(.id))]
    Malformed {
        /// The name that was given.
        id: String,
    },
    /// The name is taken.
    #[error("environment '{}' is registered already", excerpt(.id))]
    Taken {
        /// The name.
        id: String,
    },
    /// A single switch was requested, but the name is that of a network.
    #[error(
        "environment '{}' is a network of several switches, each of which is an agent: make it with \
         make_network or make_network_vec", excerpt(.id)
    )]
    Network {
        /// The name.
        id: String,
    },
    /// A network was requested, but the name is that of one switch.
    #[error(
        "environment '{}' is a single switch, which is one agent: make it with make or make_vec",
        excerpt(.id)
    )]
    SingleSwitch {
        /// The name.
        id: String,
    },
    /// A setting of the scenario is wrong.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
    /// The environment refuses its options.
    #[error(transparent)]
    Env(#[from] EnvError),
    /// The environments cannot be combined.
    #[error(transparent)]
    Vector(#[from] VectorError),
}

/// A list of environments by name. There is no global one: a program that adds its own
/// environments keeps its own list.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    specs: Vec<EnvSpec>,
}

/// Names of the environments of this crate and the presets they simulate.
const STANDARD: [(&str, &str); 11] = [
    ("bufgym/NDT-16x1G-v0", "ndt-16x1g"),
    ("bufgym/NS3-16x1G-v0", "ns3-16x1g"),
    ("bufgym/NDT-96x10G-Incast-v0", "ndt-96x10g-incast"),
    ("bufgym/NDT-Testbed-4x1G-v0", "ndt-testbed-4x1g"),
    ("bufgym/NDT-4to2-Incast-v0", "ndt-4to2-incast"),
    ("bufgym/Linux-16x1G-v0", "linux-16x1g"),
    ("bufgym/Linux-16x25G-v0", "linux-16x25g"),
    ("bufgym/Testbed-4x100M-v0", "testbed-4x100m"),
    ("bufgym/DCTCP-16x10G-v0", "dctcp-16x10g"),
    ("bufgym/LeafSpine-4x4-v0", "leafspine-4x4"),
    ("bufgym/Reverie-4x4-v0", "reverie-4x4"),
];

impl Registry {
    /// The environments of this crate.
    pub fn standard() -> Registry {
        let presets = Scenario::presets();
        let spec = |(id, name): (&str, &str)| {
            let preset = presets.iter().find(|preset| preset.name == name)?;
            let summary = preset.summary.to_owned();
            Some(EnvSpec {
                id: id.to_owned(),
                summary,
                scenario: preset.scenario(),
            })
        };
        Registry {
            specs: STANDARD.into_iter().filter_map(spec).collect(),
        }
    }

    /// Everything that is registered, in order of registration.
    pub fn specs(&self) -> &[EnvSpec] {
        &self.specs
    }

    /// Adds an environment.
    ///
    /// # Errors
    /// [`RegistryError::Malformed`] and [`RegistryError::Taken`] for its name.
    pub fn register(&mut self, spec: EnvSpec) -> Result<(), RegistryError> {
        let malformed = || RegistryError::Malformed {
            id: spec.id.clone(),
        };
        let (name, _) = split_version(&spec.id).ok_or_else(malformed)?;
        let parts: Vec<&str> = name.split('/').collect();
        if parts.len() > 2 || parts.iter().any(|part| part.is_empty()) {
            return Err(malformed());
        }
        if self.specs.iter().any(|other| other.id == spec.id) {
            return Err(RegistryError::Taken { id: spec.id });
        }
        self.specs.push(spec);
        Ok(())
    }

    /// The environment called `id`. A name without version means its latest version.
    ///
    /// # Errors
    /// [`RegistryError::Unknown`] with the nearest name and [`RegistryError::Version`] with the
    /// versions there are.
    pub fn spec(&self, id: &str) -> Result<&EnvSpec, RegistryError> {
        let (name, version) = split_version(id).map_or((id, None), |(n, v)| (n, Some(v)));
        let versions = || {
            self.specs.iter().filter_map(|spec| {
                let (other, version) = split_version(&spec.id)?;
                (other == name).then_some((version, spec))
            })
        };
        let found = match version {
            None => versions().max_by_key(|(version, _)| *version),
            Some(version) => versions().find(|(other, _)| *other == version),
        };
        match (found, version) {
            (Some((_, spec)), _) => Ok(spec),
            (None, Some(version)) if versions().next().is_some() => Err(RegistryError::Version {
                name: name.to_owned(),
                version,
                known: list(versions().map(|(_, spec)| spec)),
            }),
            (None, _) => Err(self.unknown(id)),
        }
    }

    fn unknown(&self, id: &str) -> RegistryError {
        let distance = |spec: &&EnvSpec| {
            strsim::damerau_levenshtein(&id.to_lowercase(), &spec.id.to_lowercase())
        };
        let nearest = self.specs.iter().min_by_key(distance);
        let near = nearest.filter(|spec| distance(spec) <= spec.id.len() / 2);
        RegistryError::Unknown {
            id: id.to_owned(),
            hint: near.map_or(String::new(), |spec| {
                format!(", did you mean '{}'?", spec.id)
            }),
            known: list(self.specs.iter()),
        }
    }

    /// Returns the options from which the environment called `id` is built.
    fn options(&self, id: &str, options: &MakeOptions) -> Result<BufferEnvOptions, RegistryError> {
        let mut scenario = self.spec(id)?.scenario.clone();
        scenario.set_all(&options.settings)?;
        let mut control = options.control.clone();
        if scenario.has_lossless() && control.low_level.is_default() {
            control.low_level = LowLevelPolicy::reverie();
        }
        Ok(BufferEnvOptions {
            scenario,
            traces: options.traces,
            control,
        })
    }

    /// Builds the environment called `id`, which is a single switch.
    ///
    /// # Errors
    /// Same as [`Registry::spec`]; [`RegistryError::Network`] for the name of a network,
    /// [`RegistryError::Scenario`] for wrong settings and [`RegistryError::Env`] for other options
    /// that make no sense.
    pub fn make(&self, id: &str, options: &MakeOptions) -> Result<BufferEnv, RegistryError> {
        let options = self.options(id, options)?;
        if options.scenario.is_fabric() {
            return Err(RegistryError::Network { id: id.to_owned() });
        }
        Ok(BufferEnv::new(options)?)
    }

    /// Builds the environment called `id`, which is a network of switches.
    ///
    /// # Errors
    /// Same as [`Registry::make`], but [`RegistryError::SingleSwitch`] for the name of a single switch.
    pub fn make_network(
        &self,
        id: &str,
        options: &MakeOptions,
    ) -> Result<NetworkEnv, RegistryError> {
        let options = self.options(id, options)?;
        if !options.scenario.is_fabric() {
            return Err(RegistryError::SingleSwitch { id: id.to_owned() });
        }
        Ok(NetworkEnv::new(options)?)
    }

    /// Builds a vector of `envs` environments, which share the traces of `options.traces`:
    /// environment `i` plays the `i`-th trace, the `i + envs`-th, and so on.
    ///
    /// # Errors
    /// Same as [`Registry::make`], and [`RegistryError::Vector`] for zero environments.
    pub fn make_vec(
        &self,
        id: &str,
        envs: usize,
        mode: AutoresetMode,
        options: &MakeOptions,
    ) -> Result<VectorEnv<BufferEnv>, RegistryError> {
        let envs = (0..envs).map(|env| self.make(id, &share(options, env, envs)));
        Ok(VectorEnv::new(envs.collect::<Result<Vec<_>, _>>()?, mode)?)
    }

    /// Same as [`Registry::make_vec`], for a network of switches.
    ///
    /// # Errors
    /// Same as [`Registry::make_network`], and [`RegistryError::Vector`] for zero environments.
    pub fn make_network_vec(
        &self,
        id: &str,
        envs: usize,
        mode: AutoresetMode,
        options: &MakeOptions,
    ) -> Result<MultiAgentVectorEnv<NetworkEnv>, RegistryError> {
        let envs = (0..envs).map(|env| self.make_network(id, &share(options, env, envs)));
        let envs = envs.collect::<Result<Vec<_>, _>>()?;
        Ok(MultiAgentVectorEnv::new(envs, mode)?)
    }
}

/// The options of one environment of several, with its share of the traces.
fn share(options: &MakeOptions, env: usize, envs: usize) -> MakeOptions {
    MakeOptions {
        traces: options.traces.worker(env as u64, envs as u64),
        ..options.clone()
    }
}

/// Calls [`Registry::make`] on the environments of this crate.
///
/// # Errors
/// Same as [`Registry::make`].
pub fn make(id: &str, options: &MakeOptions) -> Result<BufferEnv, RegistryError> {
    Registry::standard().make(id, options)
}

/// Calls [`Registry::make_vec`] on the environments of this crate.
///
/// # Errors
/// Same as [`Registry::make_vec`].
pub fn make_vec(
    id: &str,
    envs: usize,
    mode: AutoresetMode,
    options: &MakeOptions,
) -> Result<VectorEnv<BufferEnv>, RegistryError> {
    Registry::standard().make_vec(id, envs, mode, options)
}

/// Calls [`Registry::make_network`] on the environments of this crate.
///
/// # Errors
/// Same as [`Registry::make_network`].
pub fn make_network(id: &str, options: &MakeOptions) -> Result<NetworkEnv, RegistryError> {
    Registry::standard().make_network(id, options)
}

/// Calls [`Registry::make_network_vec`] on the environments of this crate.
///
/// # Errors
/// Same as [`Registry::make_network_vec`].
pub fn make_network_vec(
    id: &str,
    envs: usize,
    mode: AutoresetMode,
    options: &MakeOptions,
) -> Result<MultiAgentVectorEnv<NetworkEnv>, RegistryError> {
    Registry::standard().make_network_vec(id, envs, mode, options)
}

/// Splits `Name-v3` into its two parts.
fn split_version(id: &str) -> Option<(&str, u32)> {
    let (name, version) = id.rsplit_once("-v")?;
    Some((name, version.parse().ok()?))
}

fn list<'a>(specs: impl Iterator<Item = &'a EnvSpec>) -> String {
    specs
        .map(|spec| spec.id.as_str())
        .collect::<Vec<_>>()
        .join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gym::{Env, MultiAgentEnv};

    fn error(id: &str) -> String {
        make(id, &MakeOptions::default()).unwrap_err().to_string()
    }

    #[test]
    fn every_preset_of_one_switch_and_the_small_networks_have_a_name_here() {
        let registry = Registry::standard();
        let specs = registry.specs().iter();
        let registered: Vec<&str> = specs.map(|spec| spec.scenario.name.as_str()).collect();
        let presets = Scenario::presets().iter();
        let small = ["leafspine-4x4", "reverie-4x4"];
        let expected: Vec<&str> = presets
            .filter(|preset| !preset.scenario().is_fabric() || small.contains(&preset.name))
            .map(|preset| preset.name)
            .collect();
        assert_eq!(registered, expected);
    }

    #[test]
    fn where_packets_are_lossless_decisions_set_both_sides_over_reverie() {
        let env = make_network("bufgym/Reverie-4x4-v0", &MakeOptions::default()).unwrap();
        assert_eq!(env.options().control.low_level, LowLevelPolicy::reverie());
        assert_eq!(env.action_space(0).shape(), [6, 2]);
        let mut options = MakeOptions::default();
        options.control.low_level = "fab".parse().unwrap();
        let mut env = make_network("bufgym/Reverie-4x4-v0", &options).unwrap();
        let error = env
            .reset(Some(1), &Default::default())
            .unwrap_err()
            .to_string();
        assert!(error.contains("sonic-abm or reverie"), "{error}");
    }

    #[test]
    fn a_network_and_a_single_switch_are_made_by_their_own_functions() {
        const NETWORK: &str = "bufgym/LeafSpine-4x4-v0";
        const SWITCH: &str = "bufgym/NDT-16x1G-v0";
        let options = MakeOptions::default();
        let network = "environment 'bufgym/LeafSpine-4x4-v0' is a network of several switches, each \
                       of which is an agent: make it with make_network or make_network_vec";
        assert_eq!(error(NETWORK), network);
        let vec = make_vec(NETWORK, 2, AutoresetMode::NextStep, &options);
        assert_eq!(vec.unwrap_err().to_string(), network);

        let switch = "environment 'bufgym/NDT-16x1G-v0' is a single switch, which is one agent: \
                      make it with make or make_vec";
        let made = make_network(SWITCH, &options);
        assert_eq!(made.unwrap_err().to_string(), switch);
        let vec = make_network_vec(SWITCH, 2, AutoresetMode::NextStep, &options);
        assert_eq!(vec.unwrap_err().to_string(), switch);
        let unknown = make_network("bufgym/LeafSpine-4x5-v0", &options).unwrap_err();
        let hint = "did you mean 'bufgym/LeafSpine-4x4-v0'?";
        assert!(unknown.to_string().contains(hint), "{unknown}");
    }

    #[test]
    fn a_network_made_by_name_with_settings() {
        let options = MakeOptions {
            settings: vec!["leaves=8".to_owned()],
            ..MakeOptions::default()
        };
        let env = make_network("bufgym/LeafSpine-4x4", &options).unwrap();
        let ports = env.options().scenario.ports_by_switch();
        assert_eq!(ports, [6, 6, 6, 6, 6, 6, 6, 6, 8, 8]);
        assert_eq!(env.agents(), 10);
    }

    #[test]
    fn networks_of_a_vector_share_the_traces() {
        let options = MakeOptions {
            settings: vec!["warmup_ms=0".to_owned(), "measure_ms=2".to_owned()],
            ..MakeOptions::default()
        };
        let id = "bufgym/LeafSpine-4x4-v0";
        let envs = make_network_vec(id, 3, AutoresetMode::NextStep, &options).unwrap();
        let starts = envs.envs().map(|env| env.options().traces.start);
        assert_eq!(starts.collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(envs.layout().ports, [6, 6, 6, 6, 4, 4]);
    }

    #[test]
    fn made_by_name_with_settings() {
        let settings = vec!["ports=4".to_owned(), "active_ports=1..4".to_owned()];
        let settings = [settings, vec!["incast_degree=1..3".to_owned()]].concat();
        let options = MakeOptions {
            settings,
            ..MakeOptions::default()
        };
        let env = make("bufgym/NDT-16x1G-v0", &options).unwrap();
        assert_eq!(env.action_space().shape(), [4]);
    }

    #[test]
    fn a_name_without_version_means_the_latest() {
        let mut registry = Registry::standard();
        let mut spec = registry.specs()[0].clone();
        spec.id = "bufgym/NDT-16x1G-v1".to_owned();
        registry.register(spec).unwrap();
        assert_eq!(
            registry.spec("bufgym/NDT-16x1G").unwrap().id,
            "bufgym/NDT-16x1G-v1"
        );
        assert_eq!(
            registry.spec("bufgym/NDT-16x1G-v0").unwrap().id,
            "bufgym/NDT-16x1G-v0"
        );
    }

    #[test]
    fn the_nearest_name_is_suggested() {
        let message = error("bufgym/NDT-16x1-v0");
        assert!(
            message.contains("did you mean 'bufgym/NDT-16x1G-v0'?"),
            "{message}"
        );
        let message = error("CartPole");
        assert!(!message.contains("did you mean"), "{message}");
        assert!(
            message.contains("registered: bufgym/NDT-16x1G-v0"),
            "{message}"
        );
    }

    #[test]
    fn a_version_that_does_not_exist_is_named() {
        assert_eq!(
            error("bufgym/NDT-16x1G-v7"),
            "environment 'bufgym/NDT-16x1G' has no version 7; registered: bufgym/NDT-16x1G-v0"
        );
    }

    #[test]
    fn names_are_well_formed_and_unique() {
        let mut registry = Registry::standard();
        let spec = registry.specs()[0].clone();
        let mut try_id = |id: &str| {
            registry
                .register(EnvSpec {
                    id: id.to_owned(),
                    ..spec.clone()
                })
                .map_err(|e| e.to_string())
        };
        assert!(try_id("lab/Mine-v0").is_ok());
        assert!(try_id("Mine-v0").is_ok());
        assert_eq!(
            try_id("lab/Mine-v0").unwrap_err(),
            "environment 'lab/Mine-v0' is registered already"
        );
        for bad in ["Mine", "Mine-v", "/Mine-v0", "a/b/c-v0", "-v0"] {
            assert!(
                try_id(bad).unwrap_err().contains("has to look like"),
                "{bad}"
            );
        }
    }

    #[test]
    fn a_wrong_setting_is_refused() {
        let options = MakeOptions {
            settings: vec!["prots=4".to_owned()],
            ..MakeOptions::default()
        };
        let message = make("bufgym/NDT-16x1G-v0", &options)
            .unwrap_err()
            .to_string();
        assert!(
            message.contains("prots") && message.contains("ports"),
            "{message}"
        );
    }

    #[test]
    fn zero_environments_are_refused() {
        let options = MakeOptions::default();
        let made = make_vec("bufgym/NDT-16x1G-v0", 0, AutoresetMode::NextStep, &options);
        assert!(matches!(
            made,
            Err(RegistryError::Vector(VectorError::Empty))
        ));
    }
}
