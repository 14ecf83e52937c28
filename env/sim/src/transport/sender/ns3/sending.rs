//! Window, timer and choice of segments in ns-3's sender.

use super::{Progress, Reduction, State};
use crate::transport::sender::Sender;
use crate::transport::sender::ns3::Ns3Recovery;
use crate::transport::sender::repair::Origin;
use crate::transport::{Acked, CongestionControl, Settings};
use crate::units::{Duration, Instant};

/// Window and timer.
impl Sender {
    /// Returns the number of full-sized segments among those newly acknowledged.
    pub(super) fn whole_segments(&self, progress: &Progress, settings: &Settings) -> u32 {
        let ends_short = self.sent.una == self.segments && self.missing(settings) > 0;
        progress.advanced - u32::from(ends_short)
    }

    /// Returns the bytes believed to be in the network.
    pub(super) fn pipe_bytes(&self, recovery: &Ns3Recovery, settings: &Settings) -> u32 {
        let last = self.segments - 1;
        let short = if self.sent.next == self.segments && recovery.board.is_in_pipe(self.sent, last)
        {
            self.missing(settings)
        } else {
            0
        };
        (recovery.board.pipe(self.sent) + recovery.resent_count) * settings.mss - short
    }

    /// Returns the information for congestion control about an acknowledgement without losses and marks.
    pub(super) fn acked_in_order(&self, segments: u32, progress: &Progress) -> Acked<'static> {
        Acked {
            segments,
            una: self.sent.una,
            next: self.sent.next,
            now: progress.now,
            rtt: None,
            elapsed: Duration::ZERO,
            smoothed_rtt: progress.smoothed,
            marked: false,
            path: None,
        }
    }

    fn acked(&self, recovery: &Ns3Recovery, segments: u32, progress: &Progress) -> Acked<'static> {
        let acked = self.acked_in_order(segments, progress);
        Acked {
            next: if self.congestion.is_dctcp() {
                recovery.next_sent
            } else {
                acked.next
            },
            marked: recovery.echoed,
            ..acked
        }
    }

    /// Implements `PktsAcked`.
    pub(super) fn observe_as_ns3(
        &mut self,
        recovery: &Ns3Recovery,
        segments: u32,
        progress: &Progress,
        settings: &Settings,
    ) {
        let acked = self.acked(recovery, segments, progress);
        self.congestion.observe(&mut self.window, &acked, settings);
    }

    /// Implements `IncreaseWindow`.
    pub(super) fn grow_as_ns3(
        &mut self,
        recovery: &Ns3Recovery,
        segments: u32,
        progress: &Progress,
        settings: &Settings,
    ) {
        let acked = self.acked(recovery, segments, progress);
        self.congestion.on_ack(&mut self.window, &acked, settings);
    }

    pub(super) fn begin_reduction(
        &mut self,
        recovery: &mut Ns3Recovery,
        progress: &Progress,
        settings: &Settings,
    ) {
        recovery.reduction = Reduction {
            flight: self.flight(settings),
            ..Reduction::default()
        };
        self.reduce_as_ns3(recovery, progress, settings);
    }

    pub(super) fn reduce_as_ns3(
        &mut self,
        recovery: &mut Ns3Recovery,
        progress: &Progress,
        settings: &Settings,
    ) {
        let window = recovery.reduction.window(
            progress.delivered_bytes,
            self.pipe_bytes(recovery, settings),
            self.window.ssthresh,
            settings.mss,
            progress.repaired,
        );
        self.window.cwnd = window.min(settings.window_cap);
    }

    /// Implements `NewAck`.
    pub(super) fn restart_timer_in(
        &mut self,
        recovery: &mut Ns3Recovery,
        now: Instant,
        settings: &Settings,
    ) {
        recovery.next_sent = recovery.next_sent.max(self.sent.una);
        self.restart_timer(now, settings);
    }

    #[inline]
    pub(super) fn restart_timer(&mut self, now: Instant, settings: &Settings) {
        self.rtt.reset_backoff();
        self.deadline = if self.sent.una == self.segments {
            Instant::MAX
        } else {
            now + self.rtt.timeout(settings)
        };
    }

    /// Implements `ReTxTimeout`.
    pub(in super::super) fn time_out_as_ns3(
        &mut self,
        recovery: &mut Ns3Recovery,
        now: Instant,
        settings: &Settings,
    ) {
        let pipe = self.pipe_bytes(recovery, settings);
        recovery.board.mark_all_lost(self.sent);
        recovery.resent.clear();
        recovery.resent_count = 0;
        self.window.ssthresh = self.congestion.ssthresh(&self.window, pipe, settings);
        self.congestion.on_timeout(now, self.sent.next);
        self.window.cwnd = settings.mss;
        recovery.state = State::Loss;
        recovery.duplicates = 0;
        recovery.forced = false;
        recovery.recover = self.sent.next;
        recovery.recover_active = true;
        recovery.measured_from = self.sent.next;
        self.rtt.back_off();
        // The next segment sent starts the timer again.
        self.deadline = Instant::MAX;
    }
}

/// Sending (`SendPendingData`, `DoRetransmit`, `NextSeg`).
impl Sender {
    pub(in super::super) fn next_as_ns3(
        &mut self,
        recovery: &mut Ns3Recovery,
        settings: &Settings,
    ) -> Option<(u32, Origin)> {
        let (index, origin) = self.candidate_as_ns3(recovery, settings)?;
        match origin {
            Origin::New => self.sent.next += 1,
            Origin::Hole => recovery.board.retransmitted(self.sent, index),
            Origin::Rescue => {}
        }
        // `DoRetransmit` does not advance the next sequence number.
        recovery.next_sent = index + u32::from(!recovery.forced);
        recovery.forced = false;
        // `ECN_CWR_SENT`
        if recovery.echoed && origin == Origin::New && recovery.echo_seen > recovery.echo_answered {
            recovery.echoed = false;
            recovery.echo_answered = index;
        }
        if matches!(recovery.state, State::Recovery | State::Reduction) {
            let payload = self.payload(index, settings);
            recovery.reduction.out = recovery.reduction.out.wrapping_add(payload);
        }
        Some((index, origin))
    }

    fn candidate_as_ns3(
        &self,
        recovery: &Ns3Recovery,
        settings: &Settings,
    ) -> Option<(u32, Origin)> {
        if recovery.forced {
            return self.forced_segment(recovery);
        }
        let pending = || match recovery.state {
            State::Recovery => recovery.board.next_pending(self.sent),
            _ => None,
        };
        let again = || pending().map(|index| (index, Origin::Hole));
        let (index, origin) = self.lost_or_new(recovery).or_else(again)?;
        let wanted = self.pipe_bytes(recovery, settings) + self.payload(index, settings);
        (wanted <= self.window.cwnd).then_some((index, origin))
    }

    fn lost_or_new(&self, recovery: &Ns3Recovery) -> Option<(u32, Origin)> {
        let lost = recovery.board.next_lost(self.sent);
        let new = (self.sent.next < self.segments).then_some((self.sent.next, Origin::New));
        lost.map(|index| (index, Origin::Hole)).or(new)
    }

    /// Implements `DoRetransmit`.
    pub(super) fn forced_segment(&self, recovery: &Ns3Recovery) -> Option<(u32, Origin)> {
        self.lost_or_new(recovery)
            .or_else(|| self.head_again(recovery))
    }

    fn head_again(&self, recovery: &Ns3Recovery) -> Option<(u32, Origin)> {
        let head = self.sent.una;
        match self.sent.count() {
            0 => None,
            _ if recovery.board.is_retransmitted(head) => Some((head, Origin::Rescue)),
            _ => Some((head, Origin::Hole)),
        }
    }
}
