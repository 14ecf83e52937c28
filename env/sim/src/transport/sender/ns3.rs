//! Loss recovery as in TcpSocketBase of ns-3 3.37, for comparison of the simulators.
//!
//! It differs from RFC 6675 and RFC 6937 in ways that change completion times:
//! - The threshold at entry follows from the pipe, not from the outstanding data.
//! - A segment is sent regardless of the window on entry, and on every partial acknowledgement
//!   whose next segment is not yet retransmitted. Only a recovery's first one restarts the timer.
//! - An acknowledgement that is both partial and a duplicate counts twice in the rate reduction,
//!   whose products wrap at 2^32. A SACKed retransmission stays in the pipe until `una` passes it.
//! - A mark starts a rate reduction too, during which losses start no recovery.
//! - Every timeout lowers the threshold.

mod sending;

use bufgym_util::convert::{lower_u32, whole_i64};

use super::repair::Phase;
use super::{Ack, Sender};
use crate::transport::ranges::RangeSet;
use crate::transport::scoreboard::{Outstanding, Scoreboard};
use crate::transport::{CongestionControl, Settings};
use crate::units::{Duration, Instant};

/// Number of duplicate acknowledgements that indicates a loss.
const DUP_THRESH: u32 = 3;

/// ns-3's congestion states.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum State {
    #[default]
    Open,
    Disorder,
    /// `CA_CWR`: rate reduction after a mark.
    Reduction,
    Recovery,
    Loss,
}

/// State of ns-3's sender other than the window. Indices are segments.
#[derive(Clone, Default, Debug)]
pub(crate) struct Ns3Recovery {
    pub(super) board: Scoreboard,
    state: State,
    duplicates: u32,
    /// First segment not yet sent at the last congestion event.
    recover: u32,
    recover_active: bool,
    /// True if this recovery has had a partial acknowledgement.
    partial: bool,
    /// True if the next segment is sent regardless of the window.
    forced: bool,
    /// True if a mark was echoed and no new data has been sent since to answer it.
    echoed: bool,
    /// True if an acknowledgement itself arrived marked.
    congested: bool,
    /// Cumulative acknowledgement that came with the last valid echo.
    echo_seen: u32,
    /// Segment that answered the last echo (CWR).
    echo_answered: u32,
    /// Acknowledgements of segments below this one do not measure the round-trip time.
    measured_from: u32,
    /// One past the segment sent last.
    next_sent: u32,
    reduction: Reduction,
    /// Retransmitted segments that have been SACKed.
    resent: RangeSet,
    resent_count: u32,
}

impl Ns3Recovery {
    /// Begins use by a flow that has sent only new data so far.
    pub(super) fn begin(&mut self, sent: Outstanding) {
        self.next_sent = sent.next;
    }

    /// Returns true if a new value would behave the same from now on; never after a marked acknowledgement.
    pub(super) fn is_as_new(&self, sent: Outstanding) -> bool {
        let Ns3Recovery {
            state: State::Open,
            duplicates: 0,
            resent_count: 0,
            partial: false,
            forced: false,
            echoed: false,
            congested: false,
            ..
        } = self
        else {
            return false;
        };
        let passed = [self.recover, self.measured_from, self.echo_answered];
        self.board.is_undisturbed(sent)
            && passed.iter().all(|&index| index <= sent.una)
            && self.next_sent == sent.next
    }

    /// Returns the phase that corresponds to the congestion state.
    pub(super) fn phase(&self) -> Phase {
        let until = self.recover;
        match self.state {
            State::Recovery => Phase::Recovery { until },
            State::Loss => Phase::Loss { until },
            _ => Phase::Open,
        }
    }

    /// Resets the value, but keeps the allocated memory.
    pub(super) fn clear(&mut self) {
        let (mut board, mut resent) = (
            std::mem::take(&mut self.board),
            std::mem::take(&mut self.resent),
        );
        board.clear();
        resent.clear();
        *self = Ns3Recovery {
            board,
            resent,
            ..Ns3Recovery::default()
        };
    }
}

/// ns-3's proportional rate reduction, bytes. Unsigned 32-bit arithmetic wraps as in ns-3.
#[derive(Clone, Copy, Default, Debug)]
struct Reduction {
    delivered: u32,
    out: u32,
    flight: u32,
}

impl Reduction {
    fn window(
        &mut self,
        delivered: u32,
        pipe: u32,
        ssthresh: u32,
        mss: u32,
        repaired: bool,
    ) -> u32 {
        self.delivered = self.delivered.wrapping_add(delivered);
        let allowance = if pipe > ssthresh {
            let product = f64::from(self.delivered.wrapping_mul(ssthresh));
            whole_i64((product / f64::from(self.flight)).ceil()) - i64::from(self.out)
        } else {
            let room = i64::from(ssthresh - pipe);
            let bound = if repaired {
                let conserving = self.delivered.wrapping_sub(self.out).max(delivered);
                i64::from(conserving.wrapping_add(mss).cast_signed())
            } else {
                i64::from(delivered)
            };
            bound.min(room)
        };
        let floor = if self.out > 0 { 0 } else { i64::from(mss) };
        let window = i64::from(pipe).wrapping_add(allowance.max(floor));
        lower_u32(window.cast_unsigned())
    }
}

/// Changes by one acknowledgement; counts are in segments.
#[derive(Clone, Copy, Default)]
struct Progress {
    advanced: u32,
    sacked: u32,
    delivered_bytes: u32,
    /// True if a partial acknowledgement has covered a retransmission.
    repaired: bool,
    smoothed: Duration,
    now: Instant,
}

/// Acknowledgements (`ReceivedAck`, `ProcessAck`, `DupAck`).
impl Sender {
    pub(super) fn take_ack_as_ns3(
        &mut self,
        recovery: &mut Ns3Recovery,
        ack: &Ack<'_>,
        settings: &Settings,
    ) {
        self.measure(recovery, ack);
        // Acknowledgements share one sequence number, so that ns-3 counts only their first mark.
        if ack.congested && !recovery.congested {
            recovery.congested = true;
            recovery.echoed = false;
        }
        if ack.next_expected >= self.sent.una {
            self.take_ack(recovery, ack, settings);
        }
    }

    /// Takes an acknowledgement on the fast path: most arrive without losses and marks.
    #[inline]
    pub(super) fn take_plain_ack_as_ns3(
        &mut self,
        ack: &Ack<'_>,
        advanced: u32,
        settings: &Settings,
    ) {
        if advanced > 0 {
            self.rtt.sample_in_ms(ack.stamp, ack.now);
        }
        self.sent.una += advanced;
        let progress = Progress {
            advanced,
            smoothed: self.rtt.smoothed(),
            now: ack.now,
            ..Progress::default()
        };
        if advanced > 0 {
            let segments = self.whole_segments(&progress, settings);
            let acked = self.acked_in_order(segments, &progress);
            self.congestion.observe(&mut self.window, &acked, settings);
            self.congestion.on_ack(&mut self.window, &acked, settings);
            self.restart_timer(ack.now, settings);
        } else if self.sent.count() > 0 {
            let acked = self.acked_in_order(1, &progress);
            self.congestion.observe(&mut self.window, &acked, settings);
        }
    }

    /// Takes a SYN-ACK; a repeated one resets the window.
    pub(super) fn on_handshake_as_ns3(&mut self, ack: &Ack<'_>, again: bool, settings: &Settings) {
        if again {
            self.window = self.congestion.initial_window(settings);
        } else {
            self.rtt.sample_in_ms(ack.stamp, ack.now);
        }
    }

    /// Measures the round-trip time when the oldest segment is acknowledged, if it was sent once (`EstimateRtt`).
    fn measure(&mut self, recovery: &Ns3Recovery, ack: &Ack<'_>) {
        let front = self.sent.una.max(recovery.measured_from);
        if ack.next_expected > front && !recovery.board.is_retransmitted(front) {
            self.rtt.sample_in_ms(ack.stamp, ack.now);
        }
    }

    fn take_ack(&mut self, recovery: &mut Ns3Recovery, ack: &Ack<'_>, settings: &Settings) {
        let advanced = ack.next_expected.min(self.sent.next) - self.sent.una;
        let una = self.sent.una + advanced;
        let short = recovery.board.has_delivered(self.sent, self.segments - 1);
        let again = recovery.board.retransmitted_out();
        let mut delivered = recovery.board.advance(&mut self.sent, una);
        let repaired = recovery.state == State::Recovery
            && una < recovery.recover
            && recovery.board.retransmitted_out() < again;
        let Ns3Recovery {
            board,
            resent,
            resent_count: count,
            ..
        } = recovery;
        resent.remove_below(una, |start, end| *count -= end - start);
        let sacked = ack.blocks.map_or(0, |blocks| {
            board.mark_sacked(self.sent, blocks, |start, end| {
                resent.insert(start, end, |start, end| *count += end - start);
            })
        });
        delivered += sacked;
        let short = !short && recovery.board.has_delivered(self.sent, self.segments - 1);
        let missing = if short { self.missing(settings) } else { 0 };
        let progress = Progress {
            advanced,
            sacked,
            delivered_bytes: delivered * settings.mss - missing,
            repaired,
            smoothed: self.rtt.smoothed(),
            now: ack.now,
        };
        if recovery.state == State::Reduction && una > recovery.recover {
            recovery.state = State::Open;
            self.window.cwnd = self.window.ssthresh.min(settings.window_cap);
        }
        self.note_echo(recovery, ack, &progress, settings);
        self.process(recovery, &progress, settings);
    }

    fn note_echo(
        &mut self,
        recovery: &mut Ns3Recovery,
        ack: &Ack<'_>,
        progress: &Progress,
        settings: &Settings,
    ) {
        if progress.advanced == 0 || !ack.marked {
            recovery.echoed &= ack.marked;
            return;
        }
        if recovery.echo_seen >= ack.next_expected {
            return;
        }
        recovery.echo_seen = ack.next_expected;
        recovery.echoed = true;
        if recovery.state != State::Reduction {
            let pipe = self.pipe_bytes(recovery, settings);
            self.window.ssthresh = self.congestion.ssthresh(&self.window, pipe, settings);
            recovery.state = State::Reduction;
            recovery.recover = self.sent.next;
            self.begin_reduction(recovery, progress, settings);
        }
    }

    fn process(&mut self, recovery: &mut Ns3Recovery, progress: &Progress, settings: &Settings) {
        let duplicates = recovery.duplicates;
        let is_duplicate = progress.sacked > 0;
        if is_duplicate {
            self.take_duplicate(recovery, progress, settings);
        }
        if progress.advanced == 0 {
            if self.sent.count() > 0 {
                self.observe_as_ns3(recovery, 1, progress, settings);
            }
            return;
        }
        if !is_duplicate {
            recovery.duplicates = 0;
        }
        let partial = self.sent.una < recovery.recover;
        match recovery.state {
            State::Recovery if partial => self.take_partial_as_ns3(recovery, progress, settings),
            State::Loss if partial => {
                let segments = self.whole_segments(progress, settings);
                self.observe_as_ns3(recovery, segments, progress, settings);
                self.grow_as_ns3(recovery, segments, progress, settings);
                self.restart_timer_in(recovery, progress.now, settings);
            }
            State::Reduction => {
                let segments = self.whole_segments(progress, settings);
                self.observe_as_ns3(recovery, segments, progress, settings);
                if segments > 0 {
                    self.reduce_as_ns3(recovery, progress, settings);
                }
                self.restart_timer_in(recovery, progress.now, settings);
            }
            _ => self.take_new_data(recovery, duplicates, is_duplicate, progress, settings),
        }
    }

    fn take_duplicate(
        &mut self,
        recovery: &mut Ns3Recovery,
        progress: &Progress,
        settings: &Settings,
    ) {
        match recovery.state {
            State::Loss => return,
            State::Recovery => return self.reduce_as_ns3(recovery, progress, settings),
            State::Open => recovery.state = State::Disorder,
            State::Disorder | State::Reduction => {}
        }
        recovery.duplicates += 1;
        if recovery.state != State::Disorder {
            return;
        }
        let una = self.sent.una;
        let counted = recovery.duplicates == DUP_THRESH
            && (una >= recovery.recover || !recovery.recover_active);
        if counted || recovery.board.is_lost(una + 1) {
            self.enter_recovery_as_ns3(recovery, progress, settings);
        }
    }

    fn enter_recovery_as_ns3(
        &mut self,
        recovery: &mut Ns3Recovery,
        progress: &Progress,
        settings: &Settings,
    ) {
        recovery.board.mark_head_lost(self.sent);
        recovery.recover = self.sent.next;
        recovery.recover_active = true;
        recovery.state = State::Recovery;
        let pipe = self.pipe_bytes(recovery, settings);
        self.window.ssthresh = self.congestion.ssthresh(&self.window, pipe, settings);
        self.begin_reduction(recovery, progress, settings);
        recovery.forced = true;
    }

    fn take_partial_as_ns3(
        &mut self,
        recovery: &mut Ns3Recovery,
        progress: &Progress,
        settings: &Settings,
    ) {
        if self.whole_segments(progress, settings) > 0 {
            self.reduce_as_ns3(recovery, progress, settings);
        }
        // ns-3 fails to find a short segment in its buffer, and so always retransmits it.
        let head = self.sent.una;
        let is_short = self.payload(head, settings) < settings.mss;
        recovery.forced |= is_short || !recovery.board.is_retransmitted(head);
        if recovery.forced
            && let Some((index, _)) = self.forced_segment(recovery)
        {
            recovery.next_sent = index;
        }
        self.observe_as_ns3(recovery, 1, progress, settings);
        if !recovery.partial {
            self.restart_timer_in(recovery, progress.now, settings);
        }
        recovery.partial = true;
    }

    /// Takes an acknowledgement of new data that ends loss recovery or arrives outside of it.
    fn take_new_data(
        &mut self,
        recovery: &mut Ns3Recovery,
        duplicates: u32,
        is_duplicate: bool,
        progress: &Progress,
        settings: &Settings,
    ) {
        let mut segments = self.whole_segments(progress, settings);
        match recovery.state {
            State::Disorder => {
                if let Some(beyond) = segments.checked_sub(duplicates) {
                    self.observe_as_ns3(recovery, beyond, progress, settings);
                }
                if !is_duplicate {
                    recovery.state = State::Open;
                }
            }
            State::Recovery => {
                self.observe_as_ns3(recovery, segments, progress, settings);
                recovery.partial = false;
                recovery.state = State::Open;
                recovery.duplicates = 0;
                self.window.cwnd = self.window.ssthresh.min(settings.window_cap);
            }
            State::Loss => {
                segments = self.sent.una - recovery.recover;
                self.observe_as_ns3(recovery, segments, progress, settings);
                recovery.partial = false;
                recovery.state = State::Open;
            }
            State::Open | State::Reduction => {
                self.observe_as_ns3(recovery, segments, progress, settings);
            }
        }
        recovery.recover_active &= self.sent.una < recovery.recover;
        if recovery.state == State::Open {
            self.grow_as_ns3(recovery, segments, progress, settings);
            self.restart_timer_in(recovery, progress.now, settings);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reduction_wraps_like_thirty_two_bits() {
        let mut reduction = Reduction {
            delivered: 65_160,
            out: 30_000,
            flight: 130_320,
        };
        // 66,608 B × 65,160 B exceeds 2^32; the wrapped product allows no segment.
        let window = reduction.window(1_448, 90_000, 65_160, 1_448, false);
        assert_eq!(window, 90_000);
    }

    #[test]
    fn half_of_the_delivered_segments_are_sent() {
        let mut reduction = Reduction {
            flight: 20_000,
            out: 1_000,
            ..Reduction::default()
        };
        let mut pipe = 16_000;
        let mut sent = 0;
        for _ in 0..8 {
            let window = reduction.window(1_000, pipe, 10_000, 1_000, false);
            while pipe + 1_000 <= window {
                pipe += 1_000;
                sent += 1;
                reduction.out += 1_000;
            }
            pipe -= 1_000;
        }
        // Four of eight, minus the retransmission already in `out`.
        assert_eq!(sent, 3);
    }
}
