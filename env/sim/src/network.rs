//! The network around the switch: events, links, hosts and the simulator loop.

mod event;
mod host;
mod isolated;
mod meter;
mod outcome;
mod packet;
mod ring;
mod simulator;
mod waits;

pub use isolated::IsolatedFlow;
pub use meter::{FlowMeter, PortTotals};
pub use outcome::{DropRow, FlowRecord, Outcome, Summary, TimelineRow};
pub(crate) use packet::{MAX_SACK_BLOCKS, SackBlock, SackBlocks};
pub use simulator::{FlowView, Pause, SimError, Simulator, Violation};
