//! The sending end: window, loss detection, retransmission and its timer.

mod ns3;
mod plain;

use super::recovery::{Progress, RateReduction};
use super::rtt::RttEstimator;
use super::scoreboard::Scoreboard;
use super::{Acked, Congestion, CongestionControl, Settings, Window};
use crate::network::SackBlocks;
use crate::units::Time;

use ns3::Ns3;
use plain::Duplicates;

/// A segment handed to the host's network interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Segment {
    pub(crate) index: u32,
    pub(crate) payload: u32,
    pub(crate) retransmission: bool,
}

/// An acknowledgement that has arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ack<'a> {
    /// The next segment that the receiver expects.
    pub(crate) next_expected: u32,
    /// What it holds beyond.
    pub(crate) blocks: Option<&'a SackBlocks>,
    /// When the segment that it echoes was sent.
    pub(crate) stamp: Time,
    /// That segment had been sent before.
    pub(crate) retransmission: bool,
    /// It echoes a mark (RFC 3168 §6.1).
    pub(crate) marked: bool,
    /// It was marked itself, which only ns-3 allows.
    pub(crate) congested: bool,
    /// Now.
    pub(crate) now: Time,
}

impl Ack<'_> {
    /// Whether it says nothing but what has arrived in order.
    #[inline]
    fn is_plain(&self) -> bool {
        self.blocks.is_none() && !self.marked && !self.congested
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Phase {
    /// No loss pending.
    Open,
    /// Fast recovery until everything below `until` is acknowledged (RFC 6675 §5).
    Recovery { until: u32 },
    /// Slow start after a timeout until everything below `until` is acknowledged.
    Loss { until: u32 },
}

/// Send state of one flow.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    board: Scoreboard,
    window: Window,
    congestion: Congestion,
    prr: RateReduction,
    rtt: RttEstimator,
    phase: Phase,
    rescued: bool,
    /// Marks of segments below this one have been answered.
    mark_end: u32,
    /// In use where there is no SACK.
    duplicates: Duplicates,
    /// In use where loss recovery is ns-3's.
    ns3: Option<Box<Ns3>>,
    segments: u32,
    last_payload: u32,
    deadline: Time,
}

fn initial_window(settings: &Settings) -> Window {
    Window {
        cwnd: (settings.initial_window * settings.mss).min(settings.window_cap),
        ssthresh: u32::MAX,
    }
}

impl Sender {
    /// A sender of `bytes` bytes with its initial window.
    pub(crate) fn new(bytes: u64, settings: &Settings) -> Sender {
        let mss = u64::from(settings.mss);
        let segments = bytes.div_ceil(mss);
        Sender {
            board: Scoreboard::default(),
            window: initial_window(settings),
            congestion: Congestion::new(settings),
            prr: RateReduction::default(),
            rtt: RttEstimator::new(settings),
            phase: Phase::Open,
            rescued: false,
            mark_end: 0,
            duplicates: Duplicates::default(),
            ns3: settings.is_ns3().then(Box::default),
            segments: segments as u32,
            last_payload: (bytes - (segments - 1) * mss) as u32,
            deadline: Time::MAX,
        }
    }

    /// When the retransmission timer expires; [`Time::MAX`] while it is off.
    #[inline]
    pub(crate) fn deadline(&self) -> Time {
        self.deadline
    }

    /// The segment to send now, if the window allows one.
    #[inline]
    pub(crate) fn emit(&mut self, now: Time, settings: &Settings) -> Option<Segment> {
        if settings.is_ns3() {
            return self.emit_as_ns3(now, settings);
        }
        let (index, origin) = self.candidate(settings)?;
        match origin {
            Origin::New => self.board.next += 1,
            Origin::Hole if self.duplicates.resend => self.duplicates.resend = false,
            Origin::Hole => self.board.retransmitted(index),
            Origin::Rescue => self.rescued = true,
        }
        let payload = self.payload(index, settings);
        if let Phase::Recovery { .. } = self.phase
            && settings.sack
        {
            self.prr.sent(payload);
        }
        if self.deadline == Time::MAX {
            self.deadline = now + self.rtt.timeout(settings);
        }
        Some(Segment {
            index,
            payload,
            retransmission: origin != Origin::New,
        })
    }

    /// Takes a SYN-ACK: the first one measures the round-trip time.
    pub(crate) fn on_handshake(&mut self, ack: &Ack<'_>, again: bool, settings: &Settings) {
        if settings.is_ns3() {
            self.on_handshake_as_ns3(ack, again, settings);
        } else if !again && !ack.retransmission {
            self.rtt.sample(ack.now - ack.stamp);
        }
    }

    /// Takes an acknowledgement.
    #[inline]
    pub(crate) fn on_ack(&mut self, ack: &Ack<'_>, settings: &Settings) {
        if settings.is_ns3() {
            return self.on_ack_as_ns3(ack, settings);
        }
        let (advanced, delivered) = self.board.acknowledge(ack.next_expected, ack.blocks);
        // Karn's rule (RFC 6298 §3): the echo of a retransmission is ambiguous.
        let rtt = (!ack.retransmission).then(|| ack.now - ack.stamp);
        if let Some(rtt) = rtt {
            self.rtt.sample(rtt);
        }
        if advanced > 0 && !self.keeps_timer() {
            self.rtt.reset_backoff();
            self.deadline = if self.board.outstanding() == 0 {
                Time::MAX
            } else {
                ack.now + self.rtt.timeout(settings)
            };
        }
        let acked = Acked {
            segments: advanced,
            una: self.board.una,
            next: self.board.next,
            now: ack.now,
            rtt,
            smoothed_rtt: self.rtt.smoothed(),
            marked: ack.marked,
        };
        self.congestion.observe(&mut self.window, &acked, settings);
        if acked.marked {
            self.answer_mark(settings);
        }
        if settings.sack {
            self.adapt(&acked, delivered, settings);
        } else {
            self.adapt_to_plain_ack(&acked, settings);
        }
    }

    /// Cuts the window for a mark, once per window of data, unless a loss has cut it (RFC 3168
    /// §6.1.2).
    fn answer_mark(&mut self, settings: &Settings) {
        if self.phase != Phase::Open || self.board.una <= self.mark_end {
            return;
        }
        let flight = self.flight(settings);
        let window = &self.window;
        let cwnd = self.congestion.window_after_mark(window, flight, settings);
        self.window = Window {
            cwnd,
            ssthresh: cwnd,
        };
        self.mark_end = self.board.next;
    }

    /// Grows the window, except by an acknowledgement that echoes a mark (RFC 3168 §6.1.2).
    #[inline]
    fn grow(&mut self, acked: &Acked, settings: &Settings) {
        if !acked.marked {
            self.congestion.on_ack(&mut self.window, acked, settings);
        }
    }

    #[inline]
    fn adapt(&mut self, acked: &Acked, delivered: u32, settings: &Settings) {
        match self.phase {
            Phase::Recovery { until } | Phase::Loss { until } if self.board.una >= until => {
                self.leave(settings);
            }
            Phase::Recovery { .. } => self.reduce(delivered, settings),
            Phase::Loss { .. } if acked.segments > 0 => self.grow(acked, settings),
            Phase::Loss { .. } => {}
            Phase::Open if self.board.has_loss() => self.enter_recovery(delivered, settings),
            Phase::Open if acked.segments > 0 => self.grow(acked, settings),
            Phase::Open => {}
        }
    }

    fn leave(&mut self, settings: &Settings) {
        if let Phase::Recovery { .. } = self.phase {
            self.window.cwnd = self.window.ssthresh;
        }
        self.phase = Phase::Open;
        if self.board.has_loss() {
            self.enter_recovery(0, settings);
        }
    }

    fn enter_recovery(&mut self, delivered: u32, settings: &Settings) {
        let flight = self.flight(settings);
        self.window.ssthresh = self.congestion.ssthresh(&self.window, flight, settings);
        self.prr = RateReduction::begin(flight);
        self.board.begin_recovery();
        self.rescued = false;
        self.phase = Phase::Recovery {
            until: self.board.next,
        };
        self.reduce(delivered, settings);
    }

    fn reduce(&mut self, delivered: u32, settings: &Settings) {
        let progress = Progress {
            delivered: delivered * settings.mss,
            pipe: self.board.pipe() * settings.mss,
            ssthresh: self.window.ssthresh,
            mss: settings.mss,
        };
        self.window.cwnd = self.prr.window(progress);
    }

    /// The retransmission timer expired (RFC 5681 §3.1, RFC 6298 §5.4-5.6, RFC 6675 §5.1).
    pub(crate) fn on_timeout(&mut self, now: Time, settings: &Settings) {
        if settings.is_ns3() {
            return self.on_timeout_as_ns3(now, settings);
        }
        // A timeout that follows another one is no news of congestion (RFC 5681 §3.1, note on
        // equation 4): the threshold stays.
        if !self.rtt.is_backed_off() {
            let flight = self.flight(settings);
            self.window.ssthresh = self.congestion.ssthresh(&self.window, flight, settings);
        }
        self.congestion.on_timeout(now, self.board.next);
        self.window.cwnd = settings.mss;
        self.board.mark_all_lost();
        self.forget_duplicates();
        self.phase = Phase::Loss {
            until: self.board.next,
        };
        self.rtt.back_off();
        self.deadline = now + self.rtt.timeout(settings);
    }

    /// Outstanding bytes.
    fn flight(&self, settings: &Settings) -> u32 {
        let full = self.board.outstanding() * settings.mss;
        let ends_short = self.board.next == self.segments && self.board.outstanding() > 0;
        full - if ends_short {
            settings.mss - self.last_payload
        } else {
            0
        }
    }

    #[inline]
    fn payload(&self, index: u32, settings: &Settings) -> u32 {
        if index + 1 == self.segments {
            self.last_payload
        } else {
            settings.mss
        }
    }

    #[inline]
    fn candidate(&self, settings: &Settings) -> Option<(u32, Origin)> {
        if !settings.sack && !matches!(self.phase, Phase::Loss { .. }) {
            return self.plain_candidate(settings);
        }
        let (index, origin) = self.next_segment()?;
        let in_flight = u64::from(self.board.pipe()) * u64::from(settings.mss);
        let wanted = in_flight + u64::from(self.payload(index, settings));
        (wanted <= u64::from(self.window.cwnd)).then_some((index, origin))
    }

    /// NextSeg (RFC 6675 §4).
    #[inline]
    fn next_segment(&self) -> Option<(u32, Origin)> {
        let new = (self.board.next < self.segments).then_some((self.board.next, Origin::New));
        if self.phase == Phase::Open {
            return new;
        }
        if let Some(index) = self.board.next_lost() {
            return Some((index, Origin::Hole));
        }
        if new.is_some() || !matches!(self.phase, Phase::Recovery { .. }) {
            return new;
        }
        if let Some(index) = self.board.next_unsacked() {
            return Some((index, Origin::Hole));
        }
        if self.rescued {
            return None;
        }
        self.board
            .highest_unsacked()
            .map(|index| (index, Origin::Rescue))
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Origin {
    New,
    Hole,
    Rescue,
}

/// What the simulator and its users may ask of a sender.
impl Sender {
    /// Bytes not yet acknowledged, sent or not.
    pub(crate) fn unacknowledged_bytes(&self, settings: &Settings) -> u64 {
        let segments = u64::from(self.segments - self.board.una);
        match segments {
            0 => 0,
            n => (n - 1) * u64::from(settings.mss) + u64::from(self.last_payload),
        }
    }

    /// Congestion window, bytes.
    pub(crate) fn cwnd(&self) -> u32 {
        self.window.cwnd
    }

    /// Segments known to be lost that still wait to be sent again.
    pub(crate) fn lost_unsent(&self) -> u32 {
        self.board.lost_unsent()
    }

    /// Whether losses are being repaired.
    pub(crate) fn is_recovering(&self) -> bool {
        self.phase != Phase::Open
    }

    /// Whether the flow is in slow start.
    pub(crate) fn in_slow_start(&self) -> bool {
        self.window.in_slow_start()
    }

    /// Everything has been acknowledged.
    #[cfg(test)]
    pub(crate) fn is_done(&self) -> bool {
        self.board.una == self.segments
    }
}

#[cfg(test)]
mod tests;
