//! Loss recovery: one type of state for every rule, and the choice between them.

use super::ns3::Ns3Recovery;
use super::plain::{Duplicates, PlainRecovery};
use super::rack::RackRecovery;
use super::repair::{Origin, Phase, Repair};
use super::sack::SackRecovery;
use super::{Ack, Expiry, Segment, Sender};
use crate::scenario::Recovery;
use crate::transport::pool::{Pool, Reset};
use crate::transport::scoreboard::{Outstanding, Scoreboard};
use crate::transport::{CongestionControl, Settings};
use crate::units::Instant;

/// State that a sender needs only after losses, marks or reordering; with RACK, always.
#[derive(Clone, Debug)]
pub(crate) enum LossRecovery {
    /// RFC 6675.
    Sack(SackRecovery),
    /// RFC 6582, without SACK.
    Plain(PlainRecovery),
    /// RFC 8985.
    Rack(Box<RackRecovery>),
    /// The rules of ns-3.
    Ns3(Ns3Recovery),
    /// Go-back-N: all segments below `until` have been sent before.
    GoBackN {
        /// First segment not yet sent when the sender began again.
        until: u32,
    },
}

impl Default for LossRecovery {
    fn default() -> LossRecovery {
        LossRecovery::Sack(SackRecovery::default())
    }
}

impl Reset for LossRecovery {
    fn reset(&mut self) {
        match self {
            LossRecovery::Sack(recovery) => recovery.clear(),
            LossRecovery::Plain(recovery) => recovery.clear(),
            LossRecovery::Rack(recovery) => recovery.clear(),
            LossRecovery::Ns3(recovery) => recovery.clear(),
            LossRecovery::GoBackN { until } => *until = 0,
        }
    }
}

impl LossRecovery {
    /// Changes the rule to that of the settings, unless it is that already.
    fn follow(&mut self, settings: &Settings) {
        match (&self, settings.recovery, settings.sack) {
            (LossRecovery::Sack(_), Recovery::Rfc, true)
            | (LossRecovery::Plain(_), Recovery::Rfc, false)
            | (LossRecovery::Rack(_), Recovery::Rack, _)
            | (LossRecovery::Ns3(_), Recovery::Ns3, _) => {}
            (_, Recovery::Rfc, true) => *self = LossRecovery::Sack(SackRecovery::default()),
            (_, Recovery::Rfc, false) => *self = LossRecovery::Plain(PlainRecovery::default()),
            (_, Recovery::Rack, _) => *self = LossRecovery::Rack(Box::default()),
            (_, Recovery::Ns3, _) => *self = LossRecovery::Ns3(Ns3Recovery::default()),
        }
    }

    /// Returns true if a new value would behave the same from now on.
    fn is_as_new(&self, sent: Outstanding) -> bool {
        match self {
            LossRecovery::Sack(recovery) => recovery.is_as_new(sent),
            LossRecovery::Plain(recovery) => recovery.is_as_new(sent),
            LossRecovery::Ns3(recovery) => recovery.is_as_new(sent),
            LossRecovery::Rack(_) | LossRecovery::GoBackN { .. } => false,
        }
    }

    pub(super) fn lost_unsent(&self) -> u32 {
        match self {
            LossRecovery::Sack(recovery) => recovery.board.lost_unsent(),
            LossRecovery::Plain(recovery) => recovery.board.lost_unsent(),
            LossRecovery::Ns3(recovery) => recovery.board.lost_unsent(),
            LossRecovery::Rack(recovery) => recovery.lost(),
            LossRecovery::GoBackN { .. } => 0,
        }
    }

    pub(super) fn is_recovering(&self) -> bool {
        let phase = match self {
            LossRecovery::Sack(recovery) => recovery.repair.phase,
            LossRecovery::Plain(recovery) => recovery.repair.phase,
            LossRecovery::Ns3(recovery) => recovery.phase(),
            LossRecovery::Rack(recovery) => recovery.repair.phase,
            LossRecovery::GoBackN { .. } => return true,
        };
        phase != Phase::Open
    }
}

/// Taking recovery state from the pool, and giving it back.
impl Sender {
    /// Takes the state of RACK from the pool. Must be called before the first segment, and after the handshake if
    /// there is one.
    pub(crate) fn begin_by_time(&mut self, settings: &Settings, pool: &mut Pool<LossRecovery>) {
        let mut recovery = self.take_recovery(settings, pool);
        if let (LossRecovery::Rack(time), Some(rtt)) = (&mut *recovery, self.rtt.measured()) {
            time.begin(rtt);
        }
        self.recovery = Some(recovery);
    }

    fn take_recovery(
        &mut self,
        settings: &Settings,
        pool: &mut Pool<LossRecovery>,
    ) -> Box<LossRecovery> {
        self.recovery.take().unwrap_or_else(|| {
            let mut recovery = pool.take();
            recovery.follow(settings);
            if let LossRecovery::Ns3(recovery) = &mut *recovery {
                recovery.begin(self.sent);
            }
            recovery
        })
    }

    /// Keeps the state, or gives it back if all data is acknowledged or a new state would behave the same.
    fn keep_or_give_back(&mut self, recovery: Box<LossRecovery>, pool: &mut Pool<LossRecovery>) {
        if self.sent.una == self.segments || recovery.is_as_new(self.sent) {
            pool.give_back(recovery);
        } else {
            self.recovery = Some(recovery);
        }
    }

    /// Returns true if RACK has ended: all data is acknowledged.
    fn has_ended(&self, settings: &Settings) -> bool {
        settings.is_rack() && self.recovery.is_none()
    }
}

/// Acknowledgements and timeouts.
impl Sender {
    pub(super) fn take_ack_in_recovery(
        &mut self,
        ack: &Ack<'_>,
        settings: &Settings,
        pool: &mut Pool<LossRecovery>,
    ) {
        if self.has_ended(settings) {
            return;
        }
        let mut recovery = self.take_recovery(settings, pool);
        match &mut *recovery {
            LossRecovery::Sack(recovery) => self.take_ack_with_sack(recovery, ack, settings),
            LossRecovery::Plain(recovery) => self.take_ack_without_sack(recovery, ack, settings),
            LossRecovery::Rack(recovery) => {
                self.take_ack_by_time(recovery, ack, settings);
                self.deadline = match self.is_done() {
                    true => Instant::MAX,
                    false => recovery.deadline(),
                };
            }
            LossRecovery::Ns3(recovery) => self.take_ack_as_ns3(recovery, ack, settings),
            LossRecovery::GoBackN { .. } => unreachable!("RDMA takes cumulative acknowledgements"),
        }
        self.keep_or_give_back(recovery, pool);
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
        if self.has_ended(settings) {
            return Expiry::Timeout;
        }
        let mut recovery = self.take_recovery(settings, pool);
        let mut expiry = Expiry::Timeout;
        match &mut *recovery {
            LossRecovery::Sack(SackRecovery { repair, board, .. }) => {
                self.time_out(repair, board, now, settings);
            }
            LossRecovery::Plain(recovery) => {
                self.time_out(&mut recovery.repair, &mut recovery.board, now, settings);
                recovery.duplicates = Duplicates::after_timeout(self.sent);
            }
            LossRecovery::Rack(recovery) => {
                expiry = self.expire_by_time(recovery, now, settings);
                self.deadline = recovery.deadline();
            }
            LossRecovery::Ns3(recovery) => self.time_out_as_ns3(recovery, now, settings),
            LossRecovery::GoBackN { .. } => unreachable!("RDMA begins again"),
        }
        self.recovery = Some(recovery);
        expiry
    }

    fn time_out(
        &mut self,
        repair: &mut Repair,
        board: &mut Scoreboard,
        now: Instant,
        settings: &Settings,
    ) {
        // A repeated timeout of the same segment leaves the threshold unchanged (RFC 5681 §3.1, note
        // on equation 4).
        if !self.rtt.is_backed_off() {
            let flight = self.flight(settings);
            self.window.ssthresh = self.congestion.ssthresh(&self.window, flight, settings);
        }
        self.congestion.on_timeout(now, self.sent.next);
        self.window.restart(settings.mss, settings);
        board.mark_all_lost(self.sent);
        repair.phase = Phase::Loss {
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
        let mut recovery = self.recovery.take()?;
        let candidate = match &mut *recovery {
            LossRecovery::Sack(recovery) => self.next_with_sack(recovery, settings),
            LossRecovery::Plain(recovery) => self.next_without_sack(recovery, settings),
            LossRecovery::Ns3(recovery) => self.next_as_ns3(recovery, settings),
            LossRecovery::Rack(time) => {
                let segment = self.next_by_time(time, now, settings);
                self.deadline = time.deadline();
                self.recovery = Some(recovery);
                return segment;
            }
            LossRecovery::GoBackN { .. } => unreachable!("RDMA sends in sequence"),
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
}
