//! Packet captures of a switch, simulated or real: the packets that arrive at it, as Ethernet frames.
//!
//! The testbed and [`SwitchCapture`], which watches a simulation, write the same format with the same
//! addresses. So captures of both can be compared directly.

mod addresses;
mod frame;
mod pcap;
mod recorder;

pub use addresses::{
    FIRST_PORT, LISTEN, MAX_SENDS, address, hardware_address, host_of, source_port,
};
pub use pcap::PcapWriter;
pub use recorder::SwitchCapture;
