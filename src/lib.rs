//! Learn, compare and export buffer-management policies for shared-memory switches.
//!
//! This crate is a facade: it gives the workspace's crates one name each. Dependencies point one way, so each
//! crate is useful without those below it. Without the default feature `cli` it has no command line and needs
//! neither clap nor indicatif.
//!
//! | module | content |
//! |---|---|
//! | [`util`] | input, files, memory, conversions, random streams |
//! | [`sim`] | the packet-level simulator: scenarios, traffic, hosts, transports, switches, policies |
//! | [`mod@env`] | the gym: NDT's control loop, observation, reward, environments |
//! | [`slotted`] | the discrete-time model of the theorems |
//! | `testbed` | real TCP between network namespaces through a software switch (Linux) |
//! | [`models`] | the permutation-equivariant actor and the critics, checkpoints of weights |
//! | [`export`] | trained weights for dataplanes: safetensors, ONNX, C, integer C, eBPF |
//! | `onnx` | networks from ONNX files as policies; with the feature `onnx` |
//! | [`agents`] | soft actor-critic and its replay, fixed and random agents |
//! | [`train`] | rollout workers, learner, validation, run folders, event files |
//! | [`credence`] | the random forest of the policy Credence: labelled arrivals, training, scores |
//! | `sonic` | the agent for switches with SONiC; with the feature `sonic` |
//! | [`eval`] | paired evaluation on unseen traces, statistics, the report |
//! | [`reproduce`] | the figures of papers made again, with a verdict on every claim |
//!
//! # A packet's way through
//! A flow of a [`Trace`](sim::traffic::Trace) is sent by a window-based transport through a fair
//! host NIC and a link to the switch, where the [`SharedBuffer`](sim::switch::SharedBuffer) counts
//! bytes and a [`Policy`](sim::switch::Policy) admits or drops; ACKs come back the same way.
//!
//! # Simulate one trace
//! ```
//! use bufgym::sim::{rng, scenario::Scenario, switch::PolicySpec, traffic};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut scenario = Scenario::preset("ndt-16x1g")?;
//! scenario.set("flows=100..100")?;
//! let trace = traffic::generate(&scenario, rng::trace_seed(rng::Split::Train, 1, 0));
//! let policy: PolicySpec = "dt:alpha=8".parse()?;
//! let outcome = policy.run(&scenario, &trace)?;
//! assert_eq!(outcome.summary.completed, 100);
//! # Ok(())
//! # }
//! ```

// The command line uses this crate by the same name as other programs.
#[cfg(feature = "cli")]
extern crate self as bufgym;

#[cfg(feature = "cli")]
#[doc(hidden)]
pub mod cli;
#[cfg(feature = "onnx")]
pub mod onnx;

pub use bufgym_agents as agents;
pub use bufgym_credence as credence;
pub use bufgym_env as env;
pub use bufgym_eval as eval;
pub use bufgym_export as export;
pub use bufgym_models as models;
pub use bufgym_reproduce as reproduce;
pub use bufgym_sim as sim;
pub use bufgym_slotted as slotted;
#[cfg(feature = "sonic")]
pub use bufgym_sonic as sonic;
#[cfg(target_os = "linux")]
pub use bufgym_testbed as testbed;
pub use bufgym_train as train;
pub use bufgym_util as util;
