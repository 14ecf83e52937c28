//! Packet-level simulator of shared-memory switches.
//!
//! # A simulation
//!
//! A [`Scenario`](scenario::Scenario) says what is simulated: network, switches, hosts, traffic. A
//! [`Trace`](traffic::Trace) has the flows, and a [`PolicySpec`](switch::PolicySpec) names the policy of every switch
//! and its queue management. The [`Outcome`](network::Outcome) of a run has a [`Summary`](network::Summary) and a record
//! of every flow.
//!
//! ```
//! use bufgym_sim::rng::{Split, trace_seed};
//! use bufgym_sim::scenario::Scenario;
//! use bufgym_sim::switch::PolicySpec;
//! use bufgym_sim::traffic;
//!
//! let mut scenario = Scenario::preset("ndt-16x1g")?;
//! scenario.set_all(["flows=50..50", "buffer_bytes=500000"])?;
//! let trace = traffic::generate(&scenario, trace_seed(Split::Train, 1, 0));
//! let policy: PolicySpec = "dt:alpha=8+red".parse()?;
//! let outcome = policy.run(&scenario, &trace)?;
//! assert_eq!(outcome.records.len(), 50);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # One event at a time
//!
//! A [`Simulation`](network::Simulation) runs in whichever network the scenario has. It can be stopped, read and cloned:
//! a clone continues like the original, bit for bit.
//!
//! ```
//! # use bufgym_sim::scenario::Scenario;
//! # use bufgym_sim::switch::PolicySpec;
//! # use bufgym_sim::traffic;
//! use bufgym_sim::network::Simulation;
//! # let mut scenario = Scenario::preset("ndt-16x1g")?;
//! # scenario.set("flows=50..50")?;
//! # let trace = traffic::generate(&scenario, 1);
//! let mut simulation = Simulation::new(&scenario, &trace, &PolicySpec::baseline())?;
//! for _ in 0..10_000 {
//!     simulation.step();
//! }
//! let mut fork = simulation.clone();
//! println!("{} bytes in the buffer", simulation.switches()[0].buffer().occupancy());
//! let (forked, original) = (fork.run().summary, simulation.run().summary);
//! assert_eq!(forked.mean_fct_ms, original.mean_fct_ms);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Parts of your own
//!
//! - **Policy**: a type with [`Policy`](switch::Policy), for [`Simulator::new`](network::Simulator::new).
//! - **Congestion control**: a type with [`CongestionControl`](transport::CongestionControl), for
//!   [`Simulation::with_transport`](network::Simulation::with_transport).
//! - **Network**: a file of links for the setting `topology`
//!   ([`NetworkLinks`](scenario::NetworkLinks)), or a type with [`Topology`](network::Topology) for
//!   [`Simulator::in_network`](network::Simulator::in_network).
//! - **Traffic**: a [`Trace`](traffic::Trace) made in code, or read from a list of flows or a packet capture.
//! - **Measurement**: a type with [`Observer`](network::Observer), for
//!   [`Simulator::observed`](network::Simulator::observed).
//!
//! The examples `own_policy`, `own_transport` and `own_topology` of the repository are whole programs.
//!
//! # Rules
//!
//! Time is a whole number of picoseconds ([`units`]). Random numbers come from streams with names ([`rng`]), so that the
//! same seed gives the same bits. Simultaneous events run in the order in which they were scheduled. Bad input is a typed
//! error; a panic is a mistake in the program.
//!
//! # Modules
//!
//! They import each other in one direction only: [`units`], then [`scenario`], [`traffic`], the discrete-event `engine`
//! (clock, events, packets, links, topology), [`switch`] and [`transport`], then `host`, then [`network`] with the loop,
//! and [`capture`].

#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        reason = "tests convert the small numbers that they make"
    )
)]

pub mod capture;
mod engine;
mod host;
pub mod network;
pub mod scenario;
pub mod switch;
pub mod traffic;
pub mod transport;
pub mod units;

pub use bufgym_util::rng;

/// The README's examples, which are tested with those of the documentation.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct ReadmeExamples;
