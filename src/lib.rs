//! Learn, compare and export buffer-management policies for shared-memory switches.
//!
//! This crate is a facade: it gives the workspace's crates one name each. Dependencies point one
//! way, so each is useful without those below it.
//!
//! | module | what is in it |
//! |---|---|
//! | [`mod@env`] | the packet-level switch simulator, traffic, policies, the NDT control and the gym; no machine learning |
//! | [`models`] | the permutation-equivariant actor and the critics, checkpoints of weights |
//! | [`agents`] | soft actor-critic and its replay, fixed and random agents |
//! | [`train`] | rollout workers, learner, validation, run folders, event files |
//! | [`credence`] | the random forest of the policy Credence: labelled arrivals, training, scores |
//! | [`eval`] | paired evaluation on unseen traces, statistics, the report |
//!
//! # A packet's way through
//! A flow of a [`Trace`](env::traffic::Trace) is sent by a window-based transport through a fair
//! host NIC and a link to the switch, where the [`SharedBuffer`](env::switch::SharedBuffer) counts
//! bytes and a [`Policy`](env::switch::Policy) admits or drops; ACKs come back the same way.
//!
//! # Simulate one trace
//! ```
//! use bufgym::env::{rng, scenario::Scenario, switch::PolicySpec, traffic};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let mut scenario = Scenario::preset("ndt-16x1g")?;
//! scenario.set("flows=100..100")?;
//! let trace = traffic::generate(&scenario, rng::trace_seed(rng::Split::Train, 1, 0));
//! let policy: PolicySpec = "dt:alpha=8".parse()?;
//! let outcome = policy.simulator(&scenario, &trace)?.run();
//! assert_eq!(outcome.summary.completed, 100);
//! # Ok(())
//! # }
//! ```

pub use bufgym_agents as agents;
pub use bufgym_credence as credence;
pub use bufgym_env as env;
pub use bufgym_eval as eval;
pub use bufgym_models as models;
pub use bufgym_train as train;
