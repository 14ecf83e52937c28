//! Loss recovery without SACK: NewReno's fast recovery (RFC 6582).

use super::repair::{Origin, Phase, Repair};
use super::{Ack, Sender};
use crate::transport::scoreboard::{Outstanding, Scoreboard};
use crate::transport::{Acked, CongestionControl, Settings};

/// Number of duplicate acknowledgements that indicates a loss (RFC 5681 §3.2).
const DUP_THRESH: u32 = 3;

/// Duplicate acknowledgements and the fast retransmit that follows from them.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Duplicates {
    /// Number of consecutive duplicates for the oldest outstanding segment.
    count: u32,
    /// First segment not yet sent at the last loss: duplicates for segments before it indicate no
    /// new loss (RFC 6582 §3.2, step 1).
    recover: u32,
    /// True if the oldest outstanding segment is to be retransmitted at once.
    resend: bool,
    /// True if this recovery has had a partial acknowledgement.
    partial: bool,
}

impl Duplicates {
    /// Returns the state after a timeout, which resends all outstanding segments (RFC 6582 §3.2, step 4).
    pub(super) fn after_timeout(sent: Outstanding) -> Duplicates {
        Duplicates {
            recover: sent.next,
            ..Duplicates::default()
        }
    }

    /// Returns true if a new value would behave the same from now on.
    fn are_as_new(&self, sent: Outstanding) -> bool {
        self.count == 0 && self.recover <= sent.una && !self.resend && !self.partial
    }
}

/// State of a sender without SACK.
#[derive(Clone, Default, Debug)]
pub(crate) struct PlainRecovery {
    pub(super) repair: Repair,
    pub(super) board: Scoreboard,
    pub(super) duplicates: Duplicates,
}

impl PlainRecovery {
    /// Returns true if a new value would behave the same from now on.
    pub(super) fn is_as_new(&self, sent: Outstanding) -> bool {
        self.repair.is_as_new(sent)
            && self.board.is_undisturbed(sent)
            && self.duplicates.are_as_new(sent)
    }

    /// Resets the value, but keeps the allocated memory.
    pub(super) fn clear(&mut self) {
        let mut board = std::mem::take(&mut self.board);
        board.clear();
        *self = PlainRecovery {
            board,
            ..PlainRecovery::default()
        };
    }

    /// Returns true if an acknowledgement of new data leaves the timer running. Only the first partial
    /// acknowledgement of a recovery restarts it, so that many losses soon end in a timeout (§4, impatient
    /// variant).
    fn keeps_timer(&self, sent: Outstanding) -> bool {
        match self.repair.phase {
            Phase::Recovery { until } => self.duplicates.partial && sent.una < until,
            _ => false,
        }
    }
}

impl Sender {
    pub(super) fn take_ack_without_sack(
        &mut self,
        recovery: &mut PlainRecovery,
        ack: &Ack<'_>,
        settings: &Settings,
    ) {
        let board = &mut recovery.board;
        let (advanced, _) = board.acknowledge(&mut self.sent, ack.next_expected, ack.blocks);
        let keeps_timer = recovery.keeps_timer(self.sent);
        let acked = self.note(ack, advanced, keeps_timer, settings);
        if acked.marked {
            self.answer_mark(&mut recovery.repair, settings);
        }
        self.adapt_to_plain_ack(recovery, &acked, settings);
    }

    /// Takes an acknowledgement; if it acknowledges no new segment, it is a duplicate.
    fn adapt_to_plain_ack(
        &mut self,
        recovery: &mut PlainRecovery,
        acked: &Acked,
        settings: &Settings,
    ) {
        let advanced = acked.segments;
        match recovery.repair.phase {
            Phase::Recovery { until } | Phase::Loss { until } if self.sent.una >= until => {
                self.leave_plain(recovery, settings);
            }
            Phase::Recovery { .. } if advanced > 0 => {
                self.take_partial_ack(recovery, advanced, settings);
            }
            // Inflates the window by the segment that has left the network (§3.2, step 3).
            Phase::Recovery { .. } => self.window.cwnd += settings.mss,
            Phase::Loss { .. } | Phase::Open if advanced > 0 => {
                recovery.duplicates.count = 0;
                self.grow(acked, settings);
            }
            Phase::Loss { .. } => {}
            Phase::Open => self.count_duplicate(recovery, settings),
        }
    }

    fn count_duplicate(&mut self, recovery: &mut PlainRecovery, settings: &Settings) {
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
        recovery.repair.phase = Phase::Recovery {
            until: self.sent.next,
        };
        recovery.duplicates = Duplicates {
            recover: self.sent.next,
            resend: true,
            ..Duplicates::default()
        };
    }

    /// Takes a partial acknowledgement: retransmits the next hole and deflates the window by the newly
    /// acknowledged bytes minus one segment (§3.2, step 3, partial acknowledgements).
    fn take_partial_ack(
        &mut self,
        recovery: &mut PlainRecovery,
        advanced: u32,
        settings: &Settings,
    ) {
        let acknowledged = advanced * settings.mss;
        self.window.cwnd = self.window.cwnd.saturating_sub(acknowledged) + settings.mss;
        recovery.duplicates.resend = true;
        recovery.duplicates.partial = true;
    }

    /// Leaves loss recovery at a full acknowledgement (§3.2, step 3, full acknowledgements, first
    /// option, which avoids a burst).
    fn leave_plain(&mut self, recovery: &mut PlainRecovery, settings: &Settings) {
        if let Phase::Recovery { .. } = recovery.repair.phase {
            let flight = self.flight(settings).max(settings.mss) + settings.mss;
            // Inflation can raise the flight, and so the threshold, above the cap.
            let window = self.window.ssthresh.min(flight);
            self.window.cwnd = window.min(settings.window_cap);
        }
        recovery.repair.phase = Phase::Open;
        recovery.duplicates.count = 0;
        recovery.duplicates.resend = false;
        recovery.duplicates.partial = false;
    }

    /// Returns the segment to send, if the window has room for it.
    pub(super) fn next_without_sack(
        &mut self,
        recovery: &mut PlainRecovery,
        settings: &Settings,
    ) -> Option<(u32, Origin)> {
        let (index, origin) = match recovery.repair.phase {
            phase @ Phase::Loss { .. } => {
                self.next_in_window(phase, &recovery.board, false, settings)?
            }
            _ => self.plain_candidate(recovery, settings)?,
        };
        match origin {
            Origin::New => self.sent.next += 1,
            _ if recovery.duplicates.resend => recovery.duplicates.resend = false,
            _ => recovery.board.retransmitted(self.sent, index),
        }
        Some((index, origin))
    }

    /// Returns the segment to send outside recovery from a timeout: the lost one at once, otherwise new data.
    /// Each of the first two duplicates allows one more segment (limited transmit, RFC 3042).
    fn plain_candidate(
        &self,
        recovery: &PlainRecovery,
        settings: &Settings,
    ) -> Option<(u32, Origin)> {
        if recovery.duplicates.resend {
            return Some((self.sent.una, Origin::Hole));
        }
        let index = (self.sent.next < self.segments).then_some(self.sent.next)?;
        let extra = match recovery.repair.phase {
            Phase::Open => recovery.duplicates.count.min(DUP_THRESH - 1) * settings.mss,
            _ => 0,
        };
        let wanted = self.flight(settings) + self.payload(index, settings);
        (wanted <= self.window.cwnd.saturating_add(extra)).then_some((index, Origin::New))
    }
}
