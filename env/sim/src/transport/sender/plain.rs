//! Loss recovery without SACK: NewReno's fast recovery (RFC 6582).

use super::Sender;
use super::loss_recovery::{LossRecovery, Origin, Phase};
use crate::transport::scoreboard::Outstanding;
use crate::transport::{Acked, CongestionControl, Settings};

/// RFC 5681 §3.2: duplicates that show a loss.
const DUP_THRESH: u32 = 3;

/// What is known from counting acknowledgements alone.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Duplicates {
    /// In a row, for the oldest outstanding segment.
    count: u32,
    /// First segment not sent when the last loss was found: duplicates for what lies before are
    /// no news (RFC 6582 §3.2, step 1).
    recover: u32,
    /// The oldest outstanding segment is to be sent again at once.
    pub(super) resend: bool,
    /// The first partial acknowledgement of this recovery has been taken.
    partial: bool,
}

impl Duplicates {
    /// After a timeout all that is outstanding is sent again, in order (RFC 6582 §3.2, step 4).
    pub(super) fn after_timeout(sent: Outstanding) -> Duplicates {
        Duplicates {
            recover: sent.next,
            ..Duplicates::default()
        }
    }

    /// Whether nothing in it makes a difference any more.
    pub(super) fn are_over(&self, sent: Outstanding) -> bool {
        self.count == 0 && self.recover <= sent.una && !self.resend && !self.partial
    }
}

impl LossRecovery {
    /// Whether an acknowledgement of new data leaves the timer alone: only the first partial one of
    /// a recovery resets it, so that many losses end in a timeout soon (§4, the impatient variant).
    pub(super) fn keeps_timer(&self, sent: Outstanding) -> bool {
        match self.phase {
            Phase::Recovery { until } => self.duplicates.partial && sent.una < until,
            _ => false,
        }
    }
}

impl Sender {
    /// Takes an acknowledgement; of no segments it is a duplicate.
    pub(super) fn adapt_to_plain_ack(
        &mut self,
        recovery: &mut LossRecovery,
        acked: &Acked,
        settings: &Settings,
    ) {
        let advanced = acked.segments;
        match recovery.phase {
            Phase::Recovery { until } | Phase::Loss { until } if self.sent.una >= until => {
                self.leave_plain(recovery, settings);
            }
            Phase::Recovery { .. } if advanced > 0 => {
                self.take_partial_ack(recovery, advanced, settings);
            }
            // Another segment has left the network: the window is inflated (§3.2, step 3).
            Phase::Recovery { .. } => self.window.cwnd += settings.mss,
            Phase::Loss { .. } | Phase::Open if advanced > 0 => {
                recovery.duplicates.count = 0;
                self.grow(acked, settings);
            }
            Phase::Loss { .. } => {}
            Phase::Open => self.count_duplicate(recovery, settings),
        }
    }

    fn count_duplicate(&mut self, recovery: &mut LossRecovery, settings: &Settings) {
        if self.sent.count() == 0 {
            return;
        }
        recovery.duplicates.count += 1;
        if recovery.duplicates.count != DUP_THRESH || self.sent.una < recovery.duplicates.recover {
            return;
        }
        let flight = self.flight(settings);
        self.window.ssthresh = self.congestion.ssthresh(&self.window, flight, settings);
        self.window.cwnd = self.window.ssthresh + DUP_THRESH * settings.mss;
        recovery.phase = Phase::Recovery {
            until: self.sent.next,
        };
        recovery.duplicates = Duplicates {
            recover: self.sent.next,
            resend: true,
            ..Duplicates::default()
        };
    }

    /// The next hole, too, was lost: it is sent again, and the window deflated by what has left
    /// the network, less the segment that takes its place (§3.2, step 3, partial acknowledgements).
    fn take_partial_ack(
        &mut self,
        recovery: &mut LossRecovery,
        advanced: u32,
        settings: &Settings,
    ) {
        let acknowledged = advanced * settings.mss;
        self.window.cwnd = self.window.cwnd.saturating_sub(acknowledged) + settings.mss;
        recovery.duplicates.resend = true;
        recovery.duplicates.partial = true;
    }

    /// Everything that was outstanding at the loss is acknowledged (§3.2, step 3, full
    /// acknowledgements, the first option, which avoids a burst).
    fn leave_plain(&mut self, recovery: &mut LossRecovery, settings: &Settings) {
        if let Phase::Recovery { .. } = recovery.phase {
            let flight = self.flight(settings).max(settings.mss) + settings.mss;
            // Inflation lets out more than the cap; the threshold is half of what is out.
            let window = self.window.ssthresh.min(flight);
            self.window.cwnd = window.min(settings.window_cap);
        }
        recovery.phase = Phase::Open;
        recovery.duplicates.count = 0;
        recovery.duplicates.resend = false;
        recovery.duplicates.partial = false;
    }

    /// What may be sent outside the recovery from a timeout: the lost segment at once, else new
    /// data. Each of the first two duplicates lets one more out (limited transmit, RFC 3042).
    pub(super) fn plain_candidate(
        &self,
        recovery: &LossRecovery,
        settings: &Settings,
    ) -> Option<(u32, Origin)> {
        if recovery.duplicates.resend {
            return Some((self.sent.una, Origin::Hole));
        }
        let index = (self.sent.next < self.segments).then_some(self.sent.next)?;
        let extra = match recovery.phase {
            Phase::Open => recovery.duplicates.count.min(DUP_THRESH - 1) * settings.mss,
            _ => 0,
        };
        let wanted = self.flight(settings) + self.payload(index, settings);
        (wanted <= self.window.cwnd.saturating_add(extra)).then_some((index, Origin::New))
    }
}
