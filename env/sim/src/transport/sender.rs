//! The sender: window, loss detection, retransmission and its timer.
//!
//! Most senders see no loss, mark or reordering, and take 64 bytes. The state for such events is a
//! [`LossRecovery`]: a sender takes one from a [`Pool`] when it needs one, and gives it back as
//! soon as a new one would behave the same.

mod go_back_n;
mod loss_recovery;
mod ns3;
mod plain;
mod rack;
mod repair;
mod sack;

use super::pool::Pool;
use super::rtt::RttEstimator;
use super::scoreboard::Outstanding;
use super::{Acked, Congestion, CongestionControl, OwnControl, PathRecords, Settings, Window};
use crate::transport::sack::SackBlocks;
use crate::units::{Duration, Instant};

pub(crate) use loss_recovery::LossRecovery;

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
    /// The next segment that the receiver expects: the cumulative acknowledgement.
    pub(crate) next_expected: u32,
    /// SACK blocks: out-of-order segments that the receiver holds.
    pub(crate) blocks: Option<&'a SackBlocks>,
    /// Echoed timestamp: time at which the acknowledged segment was sent.
    pub(crate) stamp: Instant,
    /// True if that segment was a retransmission.
    pub(crate) retransmission: bool,
    /// True if the acknowledgement echoes an ECN mark (RFC 3168 §6.1).
    pub(crate) marked: bool,
    /// True if the acknowledgement itself was marked; only ns-3 marks acknowledgements.
    pub(crate) congested: bool,
    /// Time of arrival.
    pub(crate) now: Instant,
    /// Telemetry records that switches have written into the acknowledged segment, if any.
    pub(crate) path: Option<&'a PathRecords>,
}

impl Ack<'_> {
    /// Returns true if it has neither SACK blocks nor marks.
    #[inline]
    fn is_plain(&self) -> bool {
        self.blocks.is_none() && !self.marked && !self.congested
    }
}

/// Kind of an expired timer of a flow.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Expiry {
    /// The timer for retransmissions.
    Timeout,
    /// The timer for a tail loss probe, which is to be sent now.
    Probe,
    /// The timer for segments that others have overtaken.
    Reordering,
}

/// Send state of one flow.
#[derive(Clone, Debug)]
pub(crate) struct Sender {
    sent: Outstanding,
    window: Window,
    rtt: RttEstimator,
    last_payload: u16,
    segments: u32,
    deadline: Instant,
    congestion: Congestion,
    recovery: Option<Box<LossRecovery>>,
}

impl Sender {
    /// Returns a sender of `bytes` payload bytes, with the initial window.
    pub(crate) fn new(bytes: u64, settings: &Settings) -> Sender {
        let mss = u64::from(settings.mss);
        let segments = bytes.div_ceil(mss);
        let last_payload = bytes - (segments - 1) * mss;
        let congestion = Congestion::new(settings);
        Sender {
            sent: Outstanding::default(),
            window: congestion.initial_window(settings),
            rtt: RttEstimator::new(settings),
            last_payload: u16::try_from(last_payload).expect("segments have less than 64 KiB"),
            segments: u32::try_from(segments).expect("flows with more segments are refused"),
            deadline: Instant::MAX,
            congestion,
            recovery: None,
        }
    }

    /// Replaces the congestion control of a flow that has not started.
    pub(crate) fn set_congestion(&mut self, control: &dyn OwnControl, settings: &Settings) {
        self.congestion = Congestion::own(control);
        self.window = self.congestion.initial_window(settings);
    }

    /// Returns when the next timer of the flow expires; [`Instant::MAX`] while all are off.
    #[inline]
    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// Returns the current retransmission timeout, including back-off (RFC 6298 §2).
    pub(crate) fn retransmission_timeout(&self, settings: &Settings) -> Duration {
        if self.is_rdma() {
            return settings.rdma_rto;
        }
        self.rtt.timeout(settings)
    }

    /// Returns the segment to send now, if the window and the pacer allow one.
    #[inline]
    pub(crate) fn emit(&mut self, now: Instant, settings: &Settings) -> Option<Segment> {
        if settings.paced {
            return self.emit_paced(now, settings);
        }
        self.emit_in_window(now, settings)
    }

    #[inline]
    fn emit_in_window(&mut self, now: Instant, settings: &Settings) -> Option<Segment> {
        if self.recovery.is_some() {
            self.emit_in_recovery(now, settings)
        } else {
            self.emit_new(now, settings)
        }
    }

    #[cold]
    fn emit_paced(&mut self, now: Instant, settings: &Settings) -> Option<Segment> {
        if self.is_rdma() {
            return self.emit_in_sequence(now, settings);
        }
        let pacer = self.congestion.pacer();
        if pacer.is_some_and(|pacer| !pacer.may_send(now)) {
            return None;
        }
        let segment = self.emit_in_window(now, settings)?;
        if let Some(pacer) = self.congestion.pacer() {
            pacer.on_send(now, segment.payload + settings.header_bytes);
        }
        Some(segment)
    }

    /// Returns the delay of the pacing timer to set now; `None` if the sender needs none.
    pub(crate) fn take_pacing_timer(
        &mut self,
        now: Instant,
        settings: &Settings,
    ) -> Option<Duration> {
        if self.is_rdma() {
            return self.take_rate_timer(now, settings);
        }
        self.congestion.pacer()?.take_timer(now)
    }

    #[inline]
    fn emit_new(&mut self, now: Instant, settings: &Settings) -> Option<Segment> {
        let index = self.sent.next;
        if index == self.segments {
            return None;
        }
        let payload = self.payload(index, settings);
        let in_flight = u64::from(self.sent.count()) * u64::from(settings.mss);
        if in_flight + u64::from(payload) > u64::from(self.window.cwnd) {
            return None;
        }
        self.sent.next += 1;
        self.start_timer(now, settings);
        Some(Segment {
            index,
            payload,
            retransmission: false,
        })
    }

    #[inline]
    fn start_timer(&mut self, now: Instant, settings: &Settings) {
        if self.deadline == Instant::MAX {
            self.deadline = now + self.rtt.timeout(settings);
        }
    }

    /// Handles a retransmission of the SYN; `number` counts them from 1. The initial window becomes one segment,
    /// at once (RFC 5681 §3.1) or from the second retransmission on (RFC 6928 §2, and `tcp_init_transfer` of
    /// Linux). ns-3 keeps its window.
    pub(crate) fn on_syn_timeout(&mut self, number: u8, settings: &Settings) {
        if settings.is_ns3() {
            return;
        }
        self.rtt.fall_back(settings);
        if number >= settings.syn_retransmissions {
            self.window.cwnd = self.window.cwnd.min(settings.mss);
        }
    }

    /// Takes a SYN-ACK; the first one measures the round-trip time. If the SYN was sent again, it does so only
    /// with timestamps (RFC 6298 §3). `again` is true for a repeated SYN-ACK.
    pub(crate) fn on_handshake(&mut self, ack: &Ack<'_>, again: bool, settings: &Settings) {
        if settings.is_ns3() {
            return self.on_handshake_as_ns3(ack, again, settings);
        }
        if again || self.rtt.has_fallen_back() && !settings.timestamps {
            return;
        }
        if settings.linux_rules && !ack.retransmission {
            // The SYN-ACK answers the first SYN (`tcp_try_undo_spurious_syn`).
            self.window = self.congestion.initial_window(settings);
        }
        self.rtt.sample(ack.now - ack.stamp);
    }

    /// Takes an acknowledgement.
    #[inline]
    pub(crate) fn on_ack(
        &mut self,
        ack: &Ack<'_>,
        settings: &Settings,
        pool: &mut Pool<LossRecovery>,
    ) {
        let advanced = self.sent.advance_by(ack.next_expected);
        let is_news = advanced > 0 || settings.sack;
        match self.recovery.is_none() && ack.is_plain() && is_news {
            true if settings.is_ns3() => self.take_plain_ack_as_ns3(ack, advanced, settings),
            true => self.take_plain_ack(ack, advanced, settings),
            false => self.take_ack_in_recovery(ack, settings, pool),
        }
    }

    /// Takes an acknowledgement on the fast path: most arrive without SACK blocks and marks, outside recovery.
    #[inline]
    fn take_plain_ack(&mut self, ack: &Ack<'_>, advanced: u32, settings: &Settings) {
        self.sent.una += advanced;
        let acked = self.note(ack, advanced, false, settings);
        if advanced > 0 {
            self.grow(&acked, settings);
        }
    }

    /// Updates round-trip time, timer and congestion control; `una` and the scoreboard are updated before.
    #[inline]
    fn note<'a>(
        &mut self,
        ack: &Ack<'a>,
        advanced: u32,
        keeps_timer: bool,
        settings: &Settings,
    ) -> Acked<'a> {
        // Karn's rule (RFC 6298 §3): the acknowledgement of a retransmission is ambiguous.
        let rtt = (!ack.retransmission).then(|| ack.now - ack.stamp);
        if let Some(rtt) = rtt {
            self.rtt.sample(rtt);
        }
        if advanced > 0 && !keeps_timer {
            self.rtt.reset_backoff();
            self.deadline = if self.sent.count() == 0 {
                Instant::MAX
            } else {
                ack.now + self.rtt.timeout(settings)
            };
        }
        let acked = Acked {
            segments: advanced,
            una: self.sent.una,
            next: self.sent.next,
            now: ack.now,
            rtt,
            elapsed: ack.now.saturating_since(ack.stamp),
            smoothed_rtt: self.rtt.smoothed(),
            marked: ack.marked,
            path: ack.path,
        };
        self.congestion.observe(&mut self.window, &acked, settings);
        acked
    }

    /// Grows the window, unless the acknowledgement echoes a mark (RFC 3168 §6.1.2).
    #[inline]
    fn grow(&mut self, acked: &Acked, settings: &Settings) {
        if !acked.marked {
            self.congestion.on_ack(&mut self.window, acked, settings);
        }
    }

    /// Returns the outstanding payload bytes (FlightSize, RFC 5681 §2).
    fn flight(&self, settings: &Settings) -> u32 {
        let full = self.sent.count() * settings.mss;
        let ends_short = self.sent.next == self.segments && self.sent.count() > 0;
        full - if ends_short {
            self.missing(settings)
        } else {
            0
        }
    }

    /// Returns the bytes that a loss, a mark or a timeout reduces. These are the outstanding bytes (RFC 5681
    /// §3.1), which grow before losses are known, because SACKed segments make room. In Linux it is the window.
    fn to_reduce(&self, settings: &Settings) -> u32 {
        match settings.linux_rules {
            true => self.window.cwnd,
            false => self.flight(settings),
        }
    }

    #[inline]
    fn payload(&self, index: u32, settings: &Settings) -> u32 {
        if index + 1 == self.segments {
            u32::from(self.last_payload)
        } else {
            settings.mss
        }
    }

    /// Returns by how many bytes the last segment is shorter than a full one.
    fn missing(&self, settings: &Settings) -> u32 {
        settings.mss - u32::from(self.last_payload)
    }
}

/// State that hosts and observers read.
impl Sender {
    /// Returns true if no data has been acknowledged yet.
    pub(crate) fn is_unheard(&self) -> bool {
        self.sent.una == 0
    }

    /// Returns true if the sender repairs losses with go-back-N.
    pub(crate) fn is_rdma(&self) -> bool {
        self.congestion.is_rdma()
    }

    /// Returns true if the sender sets a rate and reacts to neither marks nor losses.
    pub(crate) fn sets_rate(&self) -> bool {
        self.congestion.sets_rate()
    }

    /// Returns true if the congestion control is DCTCP.
    pub(crate) fn is_dctcp(&self) -> bool {
        self.congestion.is_dctcp()
    }

    /// Returns true if the segments are to collect telemetry.
    pub(crate) fn reads_telemetry(&self) -> bool {
        self.congestion.reads_telemetry()
    }

    /// Returns the bytes not yet acknowledged, sent or not.
    pub(crate) fn unacknowledged_bytes(&self, settings: &Settings) -> u64 {
        self.bytes_from(self.sent.una, settings)
    }

    /// Returns the payload bytes of the flow.
    pub(crate) fn size(&self, settings: &Settings) -> u64 {
        self.bytes_from(0, settings)
    }

    fn bytes_from(&self, index: u32, settings: &Settings) -> u64 {
        match u64::from(self.segments - index) {
            0 => 0,
            n => (n - 1) * u64::from(settings.mss) + u64::from(self.last_payload),
        }
    }

    /// Returns the congestion window, bytes.
    pub(crate) fn cwnd(&self) -> u32 {
        self.window.cwnd
    }

    /// Returns the number of lost segments that wait to be retransmitted.
    pub(crate) fn lost_unsent(&self) -> u32 {
        let recovery = self.recovery.as_deref();
        recovery.map_or(0, LossRecovery::lost_unsent)
    }

    /// Returns true if the sender is in loss recovery.
    pub(crate) fn is_recovering(&self) -> bool {
        let recovery = self.recovery.as_deref();
        recovery.is_some_and(LossRecovery::is_recovering)
    }

    /// Returns true if the flow is in slow start.
    pub(crate) fn in_slow_start(&self) -> bool {
        self.window.in_slow_start()
    }

    /// Returns true if all data has been acknowledged.
    pub(crate) fn is_done(&self) -> bool {
        self.sent.una == self.segments
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod rack_tests;
