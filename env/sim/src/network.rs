//! The network: the simulator's loop, what can be observed of it, and what it yields.

mod checks;
mod isolated;
mod observer;
mod outcome;
mod recorders;
mod simulator;

pub use crate::engine::clock::{EventTime, Potential};
pub use crate::engine::topology::{LeafSpine, Neighbour, OneSwitch, SwitchId, Topology};
pub use crate::host::{FlowRef, FlowView, HostObserver, LostSegment};
pub use crate::switch::SwitchObserver;
pub use checks::Violation;
pub use isolated::{IsolatedFlow, isolated_port};
pub use observer::Observer;
pub use outcome::{DropRow, FlowRecord, Outcome, Summary, TimelineRow};
pub use recorders::Recorders;
pub use simulator::{Pause, SimError, Simulator};
