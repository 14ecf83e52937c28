//! What ns-3's sender does to its window and its timer, and what it sends.

use super::{Ns3, Progress, Reduction, State};
use crate::transport::sender::{Origin, Segment, Sender};
use crate::transport::{Acked, Congestion, CongestionControl, Settings};
use crate::units::Time;

/// Window and timer.
impl Sender {
    /// Segments of full size among those acknowledged.
    pub(super) fn whole_segments(&self, progress: &Progress, settings: &Settings) -> u32 {
        let ends_short = self.board.una == self.segments && self.last_payload < settings.mss;
        progress.advanced - u32::from(ends_short)
    }

    /// Bytes believed to be in the network.
    pub(super) fn pipe_bytes(&self, ns3: &Ns3, settings: &Settings) -> u32 {
        let last = self.segments - 1;
        let short = if self.board.next == self.segments && self.board.is_in_pipe(last) {
            settings.mss - self.last_payload
        } else {
            0
        };
        (self.board.pipe() + ns3.resent_count) * settings.mss - short
    }

    fn acked(&self, ns3: &Ns3, segments: u32, progress: &Progress) -> Acked {
        Acked {
            segments,
            una: self.board.una,
            next: match self.congestion {
                Congestion::DctcpNs3(_) => ns3.next_sent,
                _ => self.board.next,
            },
            now: progress.now,
            rtt: None,
            smoothed_rtt: progress.smoothed,
            marked: ns3.echoed,
        }
    }

    /// `PktsAcked`.
    pub(super) fn observe_as_ns3(
        &mut self,
        ns3: &Ns3,
        segments: u32,
        progress: &Progress,
        settings: &Settings,
    ) {
        let acked = self.acked(ns3, segments, progress);
        self.congestion.observe(&mut self.window, &acked, settings);
    }

    /// `IncreaseWindow`.
    pub(super) fn grow_as_ns3(
        &mut self,
        ns3: &Ns3,
        segments: u32,
        progress: &Progress,
        settings: &Settings,
    ) {
        let acked = self.acked(ns3, segments, progress);
        self.congestion.on_ack(&mut self.window, &acked, settings);
    }

    pub(super) fn begin_reduction(
        &mut self,
        ns3: &mut Ns3,
        progress: &Progress,
        settings: &Settings,
    ) {
        ns3.reduction = Reduction {
            flight: self.flight(settings),
            ..Reduction::default()
        };
        self.reduce_as_ns3(ns3, progress, settings);
    }

    pub(super) fn reduce_as_ns3(
        &mut self,
        ns3: &mut Ns3,
        progress: &Progress,
        settings: &Settings,
    ) {
        let window = ns3.reduction.window(
            progress.delivered_bytes,
            self.pipe_bytes(ns3, settings),
            self.window.ssthresh,
            settings.mss,
            progress.repaired,
        );
        self.window.cwnd = window.min(settings.window_cap);
    }

    /// `NewAck`.
    pub(super) fn restart_timer(&mut self, ns3: &mut Ns3, now: Time, settings: &Settings) {
        self.rtt.reset_backoff();
        ns3.next_sent = ns3.next_sent.max(self.board.una);
        self.deadline = if self.board.una == self.segments {
            Time::MAX
        } else {
            now + self.rtt.timeout(settings)
        };
    }

    /// `ReTxTimeout`.
    pub(in super::super) fn on_timeout_as_ns3(&mut self, now: Time, settings: &Settings) {
        let Some(mut ns3) = self.ns3.take() else {
            return;
        };
        let pipe = self.pipe_bytes(&ns3, settings);
        self.board.mark_all_lost();
        (ns3.resent, ns3.resent_count) = Default::default();
        self.window.ssthresh = self.congestion.ssthresh(&self.window, pipe, settings);
        self.congestion.on_timeout(now, self.board.next);
        self.window.cwnd = settings.mss;
        ns3.state = State::Loss;
        ns3.duplicates = 0;
        ns3.forced = false;
        ns3.recover = self.board.next;
        ns3.recover_active = true;
        ns3.measured_from = self.board.next;
        self.rtt.back_off();
        // It starts again with the next segment sent.
        self.deadline = Time::MAX;
        self.show_phase(&ns3);
        self.ns3 = Some(ns3);
    }
}

/// Sending (`SendPendingData`, `DoRetransmit`, `NextSeg`).
impl Sender {
    pub(in super::super) fn emit_as_ns3(
        &mut self,
        now: Time,
        settings: &Settings,
    ) -> Option<Segment> {
        let (index, origin) = self.candidate_as_ns3(settings)?;
        match origin {
            Origin::New => self.board.next += 1,
            Origin::Hole => self.board.retransmitted(index),
            Origin::Rescue => {}
        }
        let payload = self.payload(index, settings);
        let retransmission = origin != Origin::New;
        if let Some(ns3) = &mut self.ns3 {
            // `DoRetransmit` does not count what it sends.
            ns3.next_sent = index + u32::from(!ns3.forced);
            ns3.forced = false;
            // `ECN_CWR_SENT`
            if ns3.echoed && !retransmission && ns3.echo_seen > ns3.echo_answered {
                ns3.echoed = false;
                ns3.echo_answered = index;
            }
            if matches!(ns3.state, State::Recovery | State::Reduction) {
                ns3.reduction.out = ns3.reduction.out.wrapping_add(payload);
            }
        }
        if self.deadline == Time::MAX {
            self.deadline = now + self.rtt.timeout(settings);
        }
        Some(Segment {
            index,
            payload,
            retransmission,
        })
    }

    fn candidate_as_ns3(&self, settings: &Settings) -> Option<(u32, Origin)> {
        let ns3 = self.ns3.as_deref()?;
        if ns3.forced {
            return self.forced_segment();
        }
        let pending = || match ns3.state {
            State::Recovery => self.board.next_pending().map(|index| (index, Origin::Hole)),
            _ => None,
        };
        let (index, origin) = self.lost_or_new().or_else(pending)?;
        let wanted = self.pipe_bytes(ns3, settings) + self.payload(index, settings);
        (wanted <= self.window.cwnd).then_some((index, origin))
    }

    fn lost_or_new(&self) -> Option<(u32, Origin)> {
        let lost = self.board.next_lost().map(|index| (index, Origin::Hole));
        let new = (self.board.next < self.segments).then_some((self.board.next, Origin::New));
        lost.or(new)
    }

    /// `DoRetransmit`.
    pub(super) fn forced_segment(&self) -> Option<(u32, Origin)> {
        self.lost_or_new().or_else(|| self.head_again())
    }

    fn head_again(&self) -> Option<(u32, Origin)> {
        let head = self.board.una;
        match self.board.outstanding() {
            0 => None,
            _ if self.board.is_retransmitted(head) => Some((head, Origin::Rescue)),
            _ => Some((head, Origin::Hole)),
        }
    }
}
