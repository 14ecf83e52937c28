//! Reaction to marks, and loss recovery with SACK (RFC 6675).

use super::ns3::Ns3;
use super::plain::Duplicates;
use super::rack::ByTime;
use super::{Ack, Expiry, Segment, Sender};
use crate::transport::pool::{Pool, Reset};
use crate::transport::prr::{Bound, Progress, RateReduction};
use crate::transport::scoreboard::{Outstanding, Scoreboard};
use crate::transport::{Acked, CongestionControl, Settings, Window};
use crate::units::Instant;

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

/// State that a sender needs only after losses, marks or reordering.
#[derive(Clone, Default, Debug)]
pub(crate) struct LossRecovery {
    pub(super) board: Scoreboard,
    pub(super) phase: Phase,
    pub(super) prr: RateReduction,
    /// True if the rescue retransmission of this recovery has been sent.
    rescued: bool,
    /// The next segment to send when the window was last cut for a mark.
    mark_end: u32,
    /// Used without SACK.
    pub(super) duplicates: Duplicates,
    /// Used if loss recovery is that of ns-3.
    pub(super) ns3: Ns3,
    /// Used if loss recovery is RACK-TLP.
    pub(super) by_time: Option<Box<ByTime>>,
}

impl Reset for LossRecovery {
    fn reset(&mut self) {
        let (mut board, mut ns3) = (
            std::mem::take(&mut self.board),
            std::mem::take(&mut self.ns3),
        );
        let mut by_time = self.by_time.take();
        board.clear();
        ns3.clear();
        if let Some(by_time) = &mut by_time {
            by_time.clear();
        }
        *self = LossRecovery {
            board,
            ns3,
            by_time,
            ..LossRecovery::default()
        };
    }
}

impl LossRecovery {
    /// Returns true if a new value would behave the same from now on.
    fn is_as_new(&self, sent: Outstanding, settings: &Settings) -> bool {
        self.phase == Phase::Open
            && self.board.is_undisturbed(sent)
            && if settings.is_ns3() {
                self.ns3.is_as_new(sent)
            } else {
                self.has_answered_marks(sent) && self.duplicates.are_as_new(sent)
            }
    }

    fn has_answered_marks(&self, sent: Outstanding) -> bool {
        self.mark_end == 0 || self.mark_end < sent.una
    }

    pub(super) fn lost_unsent(&self) -> u32 {
        let by_time = self.by_time.as_deref();
        by_time.map_or_else(|| self.board.lost_unsent(), ByTime::lost)
    }

    pub(super) fn is_recovering(&self) -> bool {
        self.phase != Phase::Open
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Origin {
    /// New data.
    New,
    /// The first hole that is not yet retransmitted.
    Hole,
    /// A retransmission outside the order of holes (NextSeg rule 4, RFC 6675 §4).
    Rescue,
}

/// Taking recovery state from the pool, and giving it back.
impl Sender {
    pub(super) fn take_recovery(&mut self, pool: &mut Pool<LossRecovery>) -> Box<LossRecovery> {
        self.recovery.take().unwrap_or_else(|| {
            let mut recovery = pool.take();
            recovery.ns3.begin(self.sent);
            recovery
        })
    }

    /// Keeps the state, or gives it back if all data is acknowledged or a new state would behave the same.
    pub(super) fn keep_or_give_back(
        &mut self,
        recovery: Box<LossRecovery>,
        settings: &Settings,
        pool: &mut Pool<LossRecovery>,
    ) {
        if self.sent.una == self.segments || recovery.is_as_new(self.sent, settings) {
            pool.give_back(recovery);
        } else {
            self.recovery = Some(recovery);
        }
    }
}

/// Acknowledgements, marks and timeouts.
impl Sender {
    pub(super) fn take_ack_in_recovery(
        &mut self,
        ack: &Ack<'_>,
        settings: &Settings,
        pool: &mut Pool<LossRecovery>,
    ) {
        if settings.is_rack() {
            return self.take_ack_by_time(ack, settings, pool);
        }
        let mut recovery = self.take_recovery(pool);
        let board = &mut recovery.board;
        let (advanced, delivered) =
            board.acknowledge(&mut self.sent, ack.next_expected, ack.blocks);
        let keeps_timer = recovery.keeps_timer(self.sent);
        let acked = self.note(ack, advanced, keeps_timer, settings);
        if acked.marked {
            self.answer_mark(&mut recovery, settings);
        }
        if settings.sack {
            self.adapt(&mut recovery, &acked, delivered, settings);
        } else {
            self.adapt_to_plain_ack(&mut recovery, &acked, settings);
        }
        self.keep_or_give_back(recovery, settings, pool);
    }

    /// Cuts the window for a mark, at most once per window of data and not in loss recovery (RFC
    /// 3168 §6.1.2).
    pub(super) fn answer_mark(&mut self, recovery: &mut LossRecovery, settings: &Settings) {
        if recovery.phase != Phase::Open || self.sent.una <= recovery.mark_end {
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
        recovery.mark_end = self.sent.next;
    }

    fn adapt(
        &mut self,
        recovery: &mut LossRecovery,
        acked: &Acked,
        delivered: u32,
        settings: &Settings,
    ) {
        match recovery.phase {
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

    fn leave(&mut self, recovery: &mut LossRecovery, settings: &Settings) {
        if let Phase::Recovery { .. } = recovery.phase
            && !self.congestion.sets_rate()
        {
            // The threshold follows from the flight, which can exceed the cap.
            self.window.cwnd = self.window.ssthresh.min(settings.window_cap);
        }
        recovery.phase = Phase::Open;
        if recovery.board.has_loss() {
            self.enter_recovery(recovery, 0, settings);
        }
    }

    fn enter_recovery(&mut self, recovery: &mut LossRecovery, delivered: u32, settings: &Settings) {
        let flight = self.flight(settings);
        self.window.ssthresh = self.congestion.ssthresh(&self.window, flight, settings);
        recovery.prr = RateReduction::begin(flight);
        recovery.board.begin_recovery(self.sent);
        recovery.rescued = false;
        recovery.phase = Phase::Recovery {
            until: self.sent.next,
        };
        self.reduce(recovery, delivered, settings);
    }

    fn reduce(&mut self, recovery: &mut LossRecovery, delivered: u32, settings: &Settings) {
        let pipe = recovery.board.pipe(self.sent);
        self.reduce_to(recovery, delivered, pipe, Bound::SlowStart, settings);
    }

    /// Sets the window by proportional rate reduction, unless losses do not reduce the rate; `delivered` and
    /// `pipe` are numbers of segments.
    pub(super) fn reduce_to(
        &mut self,
        recovery: &mut LossRecovery,
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
        self.window.cwnd = recovery.prr.window(progress).min(settings.window_cap);
    }

    /// Handles an expired timer. The one for retransmissions follows RFC 5681 §3.1, RFC 6298 §5.4-5.6 and RFC
    /// 6675 §5.1.
    pub(crate) fn on_timeout(
        &mut self,
        now: Instant,
        settings: &Settings,
        pool: &mut Pool<LossRecovery>,
    ) -> Expiry {
        if self.is_rdma() {
            self.begin_again(now, settings, pool);
            return Expiry::Timeout;
        }
        if settings.is_rack() {
            return self.expire_by_time(now, settings);
        }
        let mut recovery = self.take_recovery(pool);
        if settings.is_ns3() {
            self.time_out_as_ns3(&mut recovery, now, settings);
        } else {
            self.time_out(&mut recovery, now, settings);
        }
        self.recovery = Some(recovery);
        Expiry::Timeout
    }

    fn time_out(&mut self, recovery: &mut LossRecovery, now: Instant, settings: &Settings) {
        // A repeated timeout of the same segment leaves the threshold unchanged (RFC 5681 §3.1, note
        // on equation 4).
        if !self.rtt.is_backed_off() {
            let flight = self.flight(settings);
            self.window.ssthresh = self.congestion.ssthresh(&self.window, flight, settings);
        }
        self.congestion.on_timeout(now, self.sent.next);
        self.window.restart(settings.mss, settings);
        recovery.board.mark_all_lost(self.sent);
        recovery.duplicates = Duplicates::after_timeout(self.sent);
        recovery.phase = Phase::Loss {
            until: self.sent.next,
        };
        self.rtt.back_off();
        self.deadline = now + self.rtt.timeout(settings);
    }
}

/// Sending.
impl Sender {
    pub(super) fn emit_in_recovery(
        &mut self,
        now: Instant,
        settings: &Settings,
    ) -> Option<Segment> {
        if settings.is_rack() {
            return self.emit_by_time(now, settings);
        }
        let mut recovery = self.recovery.take()?;
        let candidate = if settings.is_ns3() {
            self.next_as_ns3(&mut recovery, settings)
        } else {
            self.next_by_rfc(&mut recovery, settings)
        };
        self.recovery = Some(recovery);
        let (index, origin) = candidate?;
        self.start_timer(now, settings);
        Some(Segment {
            index,
            payload: self.payload(index, settings),
            retransmission: origin != Origin::New,
        })
    }

    fn next_by_rfc(
        &mut self,
        recovery: &mut LossRecovery,
        settings: &Settings,
    ) -> Option<(u32, Origin)> {
        let (index, origin) = self.candidate(recovery, settings)?;
        match origin {
            Origin::New => self.sent.next += 1,
            Origin::Hole if recovery.duplicates.resend => recovery.duplicates.resend = false,
            Origin::Hole => recovery.board.retransmitted(self.sent, index),
            Origin::Rescue => recovery.rescued = true,
        }
        if let Phase::Recovery { .. } = recovery.phase
            && settings.sack
        {
            recovery.prr.sent(self.payload(index, settings));
        }
        Some((index, origin))
    }

    fn candidate(&self, recovery: &LossRecovery, settings: &Settings) -> Option<(u32, Origin)> {
        if !settings.sack && !matches!(recovery.phase, Phase::Loss { .. }) {
            return self.plain_candidate(recovery, settings);
        }
        let (index, origin) = self.next_segment(recovery)?;
        let in_flight = u64::from(recovery.board.pipe(self.sent)) * u64::from(settings.mss);
        let wanted = in_flight + u64::from(self.payload(index, settings));
        (wanted <= u64::from(self.window.cwnd)).then_some((index, origin))
    }

    /// Returns the next segment regardless of the window (NextSeg, RFC 6675 §4).
    fn next_segment(&self, recovery: &LossRecovery) -> Option<(u32, Origin)> {
        let new = (self.sent.next < self.segments).then_some((self.sent.next, Origin::New));
        if recovery.phase == Phase::Open {
            return new;
        }
        if let Some(index) = recovery.board.next_lost(self.sent) {
            return Some((index, Origin::Hole));
        }
        if new.is_some() || !matches!(recovery.phase, Phase::Recovery { .. }) {
            return new;
        }
        if let Some(index) = recovery.board.next_unsacked(self.sent) {
            return Some((index, Origin::Hole));
        }
        if recovery.rescued {
            return None;
        }
        let rescue = recovery.board.highest_unsacked(self.sent)?;
        Some((rescue, Origin::Rescue))
    }
}
