//! Phases of loss recovery and the reaction to marks, which all rules but those of ns-3 share.

use super::Sender;
use crate::transport::scoreboard::Outstanding;
use crate::transport::{CongestionControl, Settings, Window};

/// Phase of a sender.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub(super) enum Phase {
    /// Outside loss recovery.
    #[default]
    Open,
    /// Fast recovery until all segments below `until` are acknowledged (RFC 6675 §5).
    Recovery { until: u32 },
    /// Slow start after a timeout until all segments below `until` are acknowledged.
    Loss { until: u32 },
}

/// Phase of a sender, and the mark that it has answered last.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Repair {
    pub(super) phase: Phase,
    /// The next segment to send when the window was last cut for a mark.
    mark_end: u32,
}

impl Repair {
    /// Returns true if a new value would behave the same from now on.
    pub(super) fn is_as_new(&self, sent: Outstanding) -> bool {
        self.phase == Phase::Open && (self.mark_end == 0 || self.mark_end < sent.una)
    }
}

/// Origin of a segment to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    /// New data.
    New,
    /// The first hole that is not yet retransmitted.
    Hole,
    /// A retransmission outside the order of holes (NextSeg rule 4, RFC 6675 §4).
    Rescue,
}

impl Sender {
    /// Cuts the window for a mark, at most once per window of data and not in loss recovery (RFC
    /// 3168 §6.1.2).
    pub(super) fn answer_mark(&mut self, repair: &mut Repair, settings: &Settings) {
        if repair.phase != Phase::Open || self.sent.una <= repair.mark_end {
            return;
        }
        let flight = self.to_reduce(settings);
        let window = &self.window;
        let cwnd = self.congestion.window_after_mark(window, flight, settings);
        // Limited transmit and inflation can have raised the flight above the cap.
        let cwnd = cwnd.min(settings.window_cap);
        self.window = Window {
            cwnd,
            ssthresh: cwnd,
        };
        repair.mark_end = self.sent.next;
    }
}
