//! Congestion controls: the rules by which a flow's window, or its rate, follows what its acknowledgements tell.
//!
//! Each is one file of this folder and one line of the table of [transports](crate::scenario::TransportKind).

mod any;
mod cubic;
mod cubic_ns3;
mod dcqcn;
mod dctcp;
mod hpcc;
mod hystart;
mod hystart_linux;
mod newreno;
mod pacer;
mod powertcp;
mod powertcp_rdma;
mod rate;
mod theta_powertcp;
mod timely;

use super::{PathRecords, Settings};
use crate::units::{Duration, Instant};

pub(crate) use any::Congestion;
pub use any::OwnControl;
pub use cubic::Cubic;
pub use cubic_ns3::CubicNs3;
pub use dcqcn::{Dcqcn, DcqcnReverie};
pub use dctcp::Dctcp;
pub use hpcc::Hpcc;
pub use newreno::NewReno;
pub use pacer::Pacer;
pub use powertcp::PowerTcp;
pub use powertcp_rdma::PowerTcpRdma;
pub use theta_powertcp::ThetaPowerTcp;
pub use timely::Timely;

/// The congestion window of one flow, in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Window {
    /// Congestion window, bytes.
    pub cwnd: u32,
    /// Slow-start threshold, bytes.
    pub ssthresh: u32,
}

impl Window {
    /// Returns true if the flow is in slow start (RFC 5681 §3.1).
    #[inline]
    pub fn in_slow_start(&self) -> bool {
        self.cwnd < self.ssthresh
    }

    /// Adds `bytes`, up to [`Settings::window_cap`].
    #[inline]
    pub fn grow(&mut self, bytes: u32, settings: &Settings) {
        self.cwnd = self.cwnd.saturating_add(bytes).min(settings.window_cap);
    }

    /// Grows in slow start: by one segment for each of the `segments` that an acknowledgement
    /// acknowledges, up to [`Settings::slow_start_limit`]. Only the first may take the window beyond
    /// the threshold.
    #[inline]
    pub fn grow_in_slow_start(&mut self, segments: u32, settings: &Settings) {
        let mut growth = settings.mss;
        if settings.slow_start_limit > 1 {
            let room = (self.ssthresh - self.cwnd).max(settings.mss);
            growth = growth
                .saturating_mul(segments.clamp(1, settings.slow_start_limit))
                .min(room);
        }
        self.grow(growth, settings);
    }

    /// Sets the window after a timeout.
    pub(super) fn restart(&mut self, cwnd: u32, settings: &Settings) {
        self.cwnd = cwnd.min(settings.window_cap);
        if !settings.slow_start {
            self.ssthresh = self.ssthresh.min(self.cwnd);
        }
    }
}

/// Information that congestion control gets from an acknowledgement.
#[derive(Clone, Copy, Debug)]
pub struct Acked<'a> {
    /// Number of segments that it newly acknowledges, cumulatively.
    pub segments: u32,
    /// First segment not yet acknowledged.
    pub una: u32,
    /// First segment not yet sent.
    pub next: u32,
    /// Time of arrival.
    pub now: Instant,
    /// Measured round-trip time; `None` after a retransmission (RFC 6298 §3).
    pub rtt: Option<Duration>,
    /// Time since the acknowledged segment was sent. Timestamps tell a retransmission from the original
    /// segment.
    pub elapsed: Duration,
    /// Smoothed round-trip time; zero before the first measurement.
    pub smoothed_rtt: Duration,
    /// True if it echoes an ECN mark (ECN-Echo, RFC 3168 §6.1).
    pub marked: bool,
    /// Telemetry records that switches have written into the acknowledged segment, if any.
    pub path: Option<&'a PathRecords>,
}

/// Rules by which a window grows and shrinks. The sender detects losses and retransmits.
///
/// One of your own runs in all TCP flows of a simulation with `Simulator::with_transport` (module `network`).
pub trait CongestionControl {
    /// Returns the window of a new connection: by default the initial window of the settings (RFC 6928), in slow
    /// start.
    fn initial_window(&self, settings: &Settings) -> Window {
        Window {
            cwnd: (settings.initial_window * settings.mss).min(settings.window_cap),
            ssthresh: if settings.slow_start { u32::MAX } else { 0 },
        }
    }

    /// Returns true if it reads the telemetry that switches write into its packets ([`Acked::path`]).
    fn reads_telemetry(&self) -> bool {
        false
    }

    /// Observes an acknowledgement before the sender reacts to it. The sender calls it in every
    /// state, loss recovery included.
    fn observe(&mut self, _window: &mut Window, _acked: &Acked<'_>, _settings: &Settings) {}

    /// Grows the window after an acknowledgement of new data outside fast recovery.
    fn on_ack(&mut self, window: &mut Window, acked: &Acked<'_>, settings: &Settings);

    /// Returns the slow-start threshold after a loss, bytes; `flight` is the outstanding data, bytes.
    fn ssthresh(&mut self, window: &Window, flight: u32, settings: &Settings) -> u32;

    /// Returns the window after a mark, bytes. The sender asks at most once per window of data. By default
    /// a mark has the effect of a loss (RFC 3168 §5).
    fn window_after_mark(&mut self, window: &Window, flight: u32, settings: &Settings) -> u32 {
        self.ssthresh(window, flight, settings)
    }

    /// Returns the flow's pacer, if the congestion control sets a rate, at which segments then leave within the
    /// window.
    fn pacer(&mut self) -> Option<&mut Pacer> {
        None
    }

    /// Brings a rate that changes with time up to `_now`. Returns the time of the next such change, if no
    /// acknowledgement arrives before; [`Instant::MAX`] if there is none.
    fn advance(&mut self, _now: Instant, _settings: &Settings) -> Instant {
        Instant::MAX
    }

    /// Called when a packet of the flow with this number of bytes on the wire begins to leave its host;
    /// RDMA only.
    fn on_departure(&mut self, _bytes: u32, _now: Instant, _settings: &Settings) {}

    /// Called when the retransmission timer expires, after [`ssthresh`](CongestionControl::ssthresh).
    /// `_next` is the first segment not yet sent.
    fn on_timeout(&mut self, _now: Instant, _next: u32) {}
}
