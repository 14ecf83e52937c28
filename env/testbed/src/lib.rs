//! A testbed on one machine: the TCP of the Linux kernel, hosts that are network namespaces, and a
//! software switch that manages its buffer with the simulator's own policies.
//!
//! [`run`] plays a flow list. Each host is a process in a network namespace of its own, tied to the
//! switch by a pair of virtual Ethernet interfaces. The switch is a thread of the calling process, in
//! another new namespace: it takes frames from packet sockets, passes them through an
//! [`ExternalSwitch`](bufgym_sim::network::ExternalSwitch), which is the simulator's switch with its
//! policies, queue management, marks and recorders, and sends them at the times when the simulator
//! delivers them. [`Truth`] gives the measurement quality.
//!
//! Nothing outlives a run: namespaces have no name and end with their processes, interfaces end with
//! their namespaces, and the processes of hosts end with the thread of the switch, however it ends.
//!
//! The crate needs Linux, the programs `ip` and `tc` of iproute2, and either root or the privileges that
//! `unshare --user --map-root-user --net` gives.

#![cfg(target_os = "linux")]
#![cfg_attr(
    test,
    allow(
        clippy::cast_possible_truncation,
        clippy::cast_possible_wrap,
        clippy::cast_sign_loss,
        reason = "tests convert the small numbers that they make"
    )
)]

mod commands;
mod error;
mod forward;
mod host;
mod machine;
mod message;
mod plan;
mod raw;
mod session;
mod truth;

pub use error::TestbedError;
pub use host::serve_host;
pub use session::{Decider, Run, Settings, check, run};
pub use truth::{Lost, PortPacing, Quantiles, Truth};

/// Name of a host's interface.
const INTERFACE: &str = "eth0";
