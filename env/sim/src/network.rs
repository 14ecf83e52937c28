//! The network: the simulator's loop, the observers of it, and the results that it returns.

mod base;
mod external;
mod ingress;
mod isolated;
mod observer;
mod outcome;
mod recorders;
mod report;
mod simulation;
mod simulator;
mod window;

use crate::scenario::Scenario;

pub use crate::engine::clock::{ClockOffset, EventTime};
pub use crate::engine::event::{Alarm, AlarmKind};
pub use crate::engine::packet::PacketDirection;
pub use crate::engine::topology::{
    LeafSpine, LinkedNetwork, Neighbour, OneSwitch, PooledLeafSpine, Route, Routing, SwitchId,
    Topology,
};
pub use crate::host::{Crossing, FlowRef, FlowView, HostObserver, LostSegment, SegmentKind};
pub use crate::switch::SwitchObserver;
pub use base::BaseTime;
pub use external::{Departure, ExternalSwitch, Frame, FrameKind, HostCounts, measured_flow};
pub use ingress::{IngressRow, IngressSampling};
pub use isolated::{BaseFlow, IsolatedFlow, isolated_port};
pub use observer::Observer;
pub use outcome::{DropRow, FlowClass, FlowRecord, Outcome, Summary, SwitchRow, TimelineRow};
pub use recorders::Recorders;
pub use simulation::{Records, Simulation, run_leaf_spine};
pub use simulator::{
    FabricSimulator, ScenarioTopology, SimError, Simulator, StopReason, Violation,
};

/// Bytes that the state and the results of a flow take at least: 384 have been measured.
const FLOW_BYTES: u64 = 256;

/// Bytes that a simulation of a generated trace takes at least, on average over the traces; those of
/// the trace itself are not among them.
pub fn memory(scenario: &Scenario) -> u64 {
    scenario.mean_flows() * FLOW_BYTES
}
