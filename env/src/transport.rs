//! End-host transport: window-based congestion control and loss recovery over real ACK packets.
//!
//! One file per congestion control behind the [`CongestionControl`] trait; loss recovery
//! (`scoreboard`, `recovery`) and retransmission timing (`rtt`) are apart from it, so that
//! every congestion control recovers in the same way. Sequence numbers count segments: every
//! segment but a flow's last carries one MSS.

mod newreno;
mod ranges;
mod receiver;
mod recovery;
mod rtt;
mod scoreboard;
mod sender;

pub use newreno::NewReno;
pub(crate) use receiver::Receiver;
pub(crate) use sender::{Segment, Sender};

pub use crate::scenario::TransportKind;

use crate::scenario::{Recovery, Scenario};
use crate::units::Time;

/// The congestion window of one flow, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// Congestion window, bytes.
    pub cwnd: u32,
    /// Slow-start threshold, bytes.
    pub ssthresh: u32,
}

impl Window {
    /// Whether the flow is in slow start (RFC 5681 §3.1).
    #[inline]
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }
}

/// How a window grows and shrinks. Loss detection and retransmission are not its business.
pub trait CongestionControl {
    /// New data was acknowledged outside loss recovery: grow the window.
    fn on_ack(&mut self, window: &mut Window, settings: &Settings);

    /// The slow-start threshold after a loss, bytes; `flight` is the outstanding data, bytes.
    fn ssthresh(&self, window: &Window, flight: u32, settings: &Settings) -> u32;
}

/// What all senders of a simulation share.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Maximum segment size, payload bytes.
    pub mss: u32,
    /// Initial window, segments (RFC 6928).
    pub initial_window: u32,
    /// Largest congestion window, bytes.
    pub window_cap: u32,
    /// Least retransmission timeout.
    pub min_rto: Time,
    /// RTT assumed before the first sample.
    pub initial_rtt: Time,
    /// Whether acknowledgements carry SACK blocks; without them loss recovery is RFC 6582's.
    pub sack: bool,
    /// Which proportional rate reduction.
    pub recovery: Recovery,
}

impl Settings {
    pub(crate) fn from_scenario(scenario: &Scenario) -> Settings {
        let cap = match scenario.max_cwnd_bytes {
            0 => u64::from(u32::MAX / 2),
            bytes => bytes,
        };
        Settings {
            mss: scenario.mss,
            initial_window: scenario.init_cwnd,
            window_cap: u32::try_from(cap).unwrap_or(u32::MAX / 2),
            min_rto: Time::from_us(scenario.min_rto_us),
            initial_rtt: Time::from_us(scenario.initial_rtt_us),
            sack: scenario.sack,
            recovery: scenario.recovery,
        }
    }
}
