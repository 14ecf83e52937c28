//! Loss recovery with SACK (RFC 6675), with proportional rate reduction (RFC 6937).

use super::repair::{Origin, Phase, Repair};
use super::{Ack, Sender};
use crate::transport::prr::{Bound, Progress, RateReduction};
use crate::transport::scoreboard::{Outstanding, Scoreboard};
use crate::transport::{Acked, CongestionControl, Settings};

/// State of a sender with SACK.
#[derive(Clone, Default, Debug)]
pub(crate) struct SackRecovery {
    pub(super) repair: Repair,
    pub(super) board: Scoreboard,
    prr: RateReduction,
    /// True if the rescue retransmission of this recovery has been sent.
    rescued: bool,
}

impl SackRecovery {
    /// Returns true if a new value would behave the same from now on.
    pub(super) fn is_as_new(&self, sent: Outstanding) -> bool {
        self.repair.is_as_new(sent) && self.board.is_undisturbed(sent)
    }

    /// Resets the value, but keeps the allocated memory.
    pub(super) fn clear(&mut self) {
        let mut board = std::mem::take(&mut self.board);
        board.clear();
        *self = SackRecovery {
            board,
            ..SackRecovery::default()
        };
    }
}

/// Acknowledgements.
impl Sender {
    pub(super) fn take_ack_with_sack(
        &mut self,
        recovery: &mut SackRecovery,
        ack: &Ack<'_>,
        settings: &Settings,
    ) {
        let board = &mut recovery.board;
        let (advanced, delivered) =
            board.acknowledge(&mut self.sent, ack.next_expected, ack.blocks);
        let acked = self.note(ack, advanced, false, settings);
        if acked.marked {
            self.answer_mark(&mut recovery.repair, settings);
        }
        self.adapt(recovery, &acked, delivered, settings);
    }

    fn adapt(
        &mut self,
        recovery: &mut SackRecovery,
        acked: &Acked,
        delivered: u32,
        settings: &Settings,
    ) {
        match recovery.repair.phase {
            Phase::Recovery { until } | Phase::Loss { until } if self.sent.una >= until => {
                self.leave(recovery, settings);
            }
            Phase::Recovery { .. } => self.reduce(recovery, delivered, settings),
            Phase::Loss { .. } if acked.segments > 0 => self.grow(acked, settings),
            Phase::Loss { .. } => {}
            Phase::Open if recovery.board.has_loss() => {
                self.enter_recovery(recovery, delivered, settings);
            }
            Phase::Open if acked.segments > 0 => self.grow(acked, settings),
            Phase::Open => {}
        }
    }

    fn leave(&mut self, recovery: &mut SackRecovery, settings: &Settings) {
        if let Phase::Recovery { .. } = recovery.repair.phase
            && !self.congestion.sets_rate()
        {
            // The threshold follows from the flight, which can exceed the cap.
            self.window.cwnd = self.window.ssthresh.min(settings.window_cap);
        }
        recovery.repair.phase = Phase::Open;
        if recovery.board.has_loss() {
            self.enter_recovery(recovery, 0, settings);
        }
    }

    fn enter_recovery(&mut self, recovery: &mut SackRecovery, delivered: u32, settings: &Settings) {
        let flight = self.flight(settings);
        self.window.ssthresh = self.congestion.ssthresh(&self.window, flight, settings);
        recovery.prr = RateReduction::begin(flight);
        recovery.board.begin_recovery(self.sent);
        recovery.rescued = false;
        recovery.repair.phase = Phase::Recovery {
            until: self.sent.next,
        };
        self.reduce(recovery, delivered, settings);
    }

    fn reduce(&mut self, recovery: &mut SackRecovery, delivered: u32, settings: &Settings) {
        let pipe = recovery.board.pipe(self.sent);
        self.reduce_to(
            &mut recovery.prr,
            delivered,
            pipe,
            Bound::SlowStart,
            settings,
        );
    }

    /// Sets the window by proportional rate reduction, unless losses do not reduce the rate; `delivered` and
    /// `pipe` are numbers of segments.
    pub(super) fn reduce_to(
        &mut self,
        prr: &mut RateReduction,
        delivered: u32,
        pipe: u32,
        bound: Bound,
        settings: &Settings,
    ) {
        if self.congestion.sets_rate() || settings.linux_rules && delivered == 0 {
            return;
        }
        let progress = Progress {
            delivered: delivered * settings.mss,
            pipe: pipe * settings.mss,
            ssthresh: self.window.ssthresh,
            bound,
            mss: settings.mss,
        };
        self.window.cwnd = prr.window(progress).min(settings.window_cap);
    }
}

/// Sending.
impl Sender {
    /// Returns the segment to send, if the window has room for it.
    pub(super) fn next_with_sack(
        &mut self,
        recovery: &mut SackRecovery,
        settings: &Settings,
    ) -> Option<(u32, Origin)> {
        let SackRecovery { repair, board, .. } = recovery;
        let rescues = !recovery.rescued;
        let (index, origin) = self.next_in_window(repair.phase, board, rescues, settings)?;
        match origin {
            Origin::New => self.sent.next += 1,
            Origin::Hole => board.retransmitted(self.sent, index),
            Origin::Rescue => recovery.rescued = true,
        }
        if let Phase::Recovery { .. } = recovery.repair.phase {
            recovery.prr.sent(self.payload(index, settings));
        }
        Some((index, origin))
    }

    /// Returns the next segment if the window has room for it; `rescues` permits a rescue retransmission.
    pub(super) fn next_in_window(
        &self,
        phase: Phase,
        board: &Scoreboard,
        rescues: bool,
        settings: &Settings,
    ) -> Option<(u32, Origin)> {
        let (index, origin) = self.next_segment(phase, board, rescues)?;
        let in_flight = u64::from(board.pipe(self.sent)) * u64::from(settings.mss);
        let wanted = in_flight + u64::from(self.payload(index, settings));
        (wanted <= u64::from(self.window.cwnd)).then_some((index, origin))
    }

    /// Returns the next segment regardless of the window (NextSeg, RFC 6675 §4).
    fn next_segment(
        &self,
        phase: Phase,
        board: &Scoreboard,
        rescues: bool,
    ) -> Option<(u32, Origin)> {
        let new = (self.sent.next < self.segments).then_some((self.sent.next, Origin::New));
        if phase == Phase::Open {
            return new;
        }
        if let Some(index) = board.next_lost(self.sent) {
            return Some((index, Origin::Hole));
        }
        if new.is_some() || !matches!(phase, Phase::Recovery { .. }) {
            return new;
        }
        if let Some(index) = board.next_unsacked(self.sent) {
            return Some((index, Origin::Hole));
        }
        if !rescues {
            return None;
        }
        let rescue = board.highest_unsacked(self.sent)?;
        Some((rescue, Origin::Rescue))
    }
}
