//! End-host transport: congestion control and loss recovery over real ACK packets.
//!
//! A congestion control is one file of the folder `congestion` and implements [`CongestionControl`]. Loss recovery
//! (`scoreboard`, `prr`, `rack`, `sender`) and retransmission timing (`rtt`) are separate, so that all congestion
//! controls recover in the same way. RDMA transports recover with go-back-N. Sequence numbers count segments: every
//! segment but a flow's last carries one MSS.

mod congestion;
mod flight;
mod pool;
mod prr;
mod rack;
mod ranges;
mod receiver;
mod rtt;
mod sack;
mod scoreboard;
mod sender;
mod settings;
mod tail_probe;
#[cfg(test)]
pub(crate) mod testing;
mod undo;
mod validation;

pub(crate) use congestion::Congestion;
pub use congestion::{
    Acked, CongestionControl, Cubic, CubicNs3, Dcqcn, DcqcnReverie, Dctcp, Hpcc, NewReno,
    OwnControl, Pacer, PowerTcp, PowerTcpRdma, ThetaPowerTcp, Timely, Window,
};
pub(crate) use pool::Pool;
pub(crate) use receiver::{Answer, Reassembly, Receiver, Reply};
pub(crate) use sack::{SackBlocks, SackStore, with_duplicate};
pub(crate) use sender::{Ack, Expiry, LossRecovery, Segment, Sender};
pub use settings::Settings;

pub use crate::engine::telemetry::{HopRecord, MAX_HOPS, PathRecords, PortId};
pub use crate::scenario::{TransportKind, TransportVariant};
