//! Loss recovery as ns-3 3.37's TcpSocketBase has it, for comparing the simulators.
//!
//! It differs from RFC 6675 and RFC 6937 in ways that show in completion times. The threshold at
//! entry follows from what is in the network, not from what is outstanding. A segment is sent
//! outside the window on entry and on every partial acknowledgement whose next segment was not sent
//! again yet. Only the first partial acknowledgement of a recovery restarts the timer. An
//! acknowledgement that is both partial and a duplicate counts twice in the rate reduction, whose
//! products wrap at 2^32. A retransmission that was selectively acknowledged counts as in the
//! network until the cumulative acknowledgement passes it. A mark is answered by rate reduction too, during which losses start no
//! recovery. Every timeout lowers the threshold.

mod sending;

use super::{Ack, Phase, Sender, initial_window};
use crate::transport::ranges::RangeSet;
use crate::transport::{CongestionControl, Settings};
use crate::units::Time;

/// Duplicates that show a loss.
const DUP_THRESH: u32 = 3;

/// ns-3's congestion states.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
enum State {
    #[default]
    Open,
    Disorder,
    /// `CA_CWR`: the window shrinks after a mark.
    Reduction,
    Recovery,
    Loss,
}

/// What ns-3's sender keeps besides scoreboard and window. Indices are segments.
#[derive(Clone, Default, Debug)]
pub(super) struct Ns3 {
    state: State,
    duplicates: u32,
    /// First segment not sent when the last congestion event was noticed.
    recover: u32,
    recover_active: bool,
    /// A partial acknowledgement has been taken in this recovery.
    partial: bool,
    /// One segment is to be sent whatever the window.
    forced: bool,
    /// The last echo has not been answered by new data yet.
    echoed: bool,
    /// An acknowledgement came marked.
    congested: bool,
    /// Acknowledgement of the last valid echo.
    echo_seen: u32,
    /// Segment that told the receiver so.
    echo_answered: u32,
    /// Segments before are no measure of the round-trip time.
    measured_from: u32,
    /// One behind the segment sent last.
    next_sent: u32,
    reduction: Reduction,
    /// Retransmissions that were selectively acknowledged.
    resent: RangeSet,
    resent_count: u32,
}

impl Ns3 {
    #[inline]
    fn is_undisturbed(&self) -> bool {
        self.state == State::Open && self.duplicates == 0 && self.resent_count == 0 && !self.echoed
    }
}

/// ns-3's proportional rate reduction, bytes. Unsigned 32-bit arithmetic wraps, as there.
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
            (product / f64::from(self.flight)).ceil() as i64 - i64::from(self.out)
        } else {
            let room = i64::from(ssthresh - pipe);
            let bound = if repaired {
                let conserving = self.delivered.wrapping_sub(self.out).max(delivered);
                i64::from(conserving.wrapping_add(mss) as i32)
            } else {
                i64::from(delivered)
            };
            bound.min(room)
        };
        let floor = if self.out > 0 { 0 } else { i64::from(mss) };
        (i64::from(pipe) + allowance.max(floor)) as u32
    }
}

/// One acknowledgement on its way through the state machine; counts in segments.
#[derive(Clone, Copy, Default)]
struct Progress {
    advanced: u32,
    sacked: u32,
    delivered_bytes: u32,
    /// A retransmission was acknowledged.
    repaired: bool,
    smoothed: Time,
    now: Time,
}

/// Acknowledgements (`ReceivedAck`, `ProcessAck`, `DupAck`).
impl Sender {
    pub(super) fn on_ack_as_ns3(&mut self, ack: &Ack<'_>, settings: &Settings) {
        let Some(mut ns3) = self.ns3.take() else {
            return;
        };
        self.measure(&ns3, ack);
        if ns3.is_undisturbed() && self.board.is_undisturbed() && ack.is_plain() {
            self.take_plain_ack(&mut ns3, ack, settings);
            self.ns3 = Some(ns3);
            return;
        }
        // All have one sequence number, so that only the first counts, as if data had come marked.
        if ack.congested && !ns3.congested {
            ns3.congested = true;
            ns3.echoed = false;
        }
        if ack.next_expected >= self.board.una {
            self.take_ack(&mut ns3, ack, settings);
        }
        self.show_phase(&ns3);
        self.ns3 = Some(ns3);
    }

    /// The short way of nearly all acknowledgements: new data, nothing lost, nothing marked.
    #[inline]
    fn take_plain_ack(&mut self, ns3: &mut Ns3, ack: &Ack<'_>, settings: &Settings) {
        let (advanced, _) = self.board.acknowledge(ack.next_expected, None);
        let progress = Progress {
            advanced,
            smoothed: self.rtt.smoothed(),
            now: ack.now,
            ..Progress::default()
        };
        if advanced > 0 {
            self.take_new_data(ns3, 0, false, &progress, settings);
        } else if self.board.outstanding() > 0 {
            self.observe_as_ns3(ns3, 1, &progress, settings);
        }
    }

    /// A SYN-ACK that comes again opens the window anew.
    pub(super) fn on_handshake_as_ns3(&mut self, ack: &Ack<'_>, again: bool, settings: &Settings) {
        if again {
            self.window = initial_window(settings);
        } else {
            self.rtt.sample_in_ms(ack.stamp, ack.now);
        }
    }

    fn show_phase(&mut self, ns3: &Ns3) {
        let until = ns3.recover;
        self.phase = match ns3.state {
            State::Recovery => Phase::Recovery { until },
            State::Loss => Phase::Loss { until },
            _ => Phase::Open,
        };
    }

    /// `EstimateRtt`: only the oldest segment that is waited for is a measure, unless sent again.
    fn measure(&mut self, ns3: &Ns3, ack: &Ack<'_>) {
        let front = self.board.una.max(ns3.measured_from);
        if ack.next_expected > front && !self.board.is_retransmitted(front) {
            self.rtt.sample_in_ms(ack.stamp, ack.now);
        }
    }

    fn take_ack(&mut self, ns3: &mut Ns3, ack: &Ack<'_>, settings: &Settings) {
        let advanced = ack.next_expected.min(self.board.next) - self.board.una;
        let una = self.board.una + advanced;
        let short = self.board.has_delivered(self.segments - 1);
        let again = self.board.retransmitted_out();
        let mut delivered = self.board.advance(una);
        let repaired = ns3.state == State::Recovery
            && una < ns3.recover
            && self.board.retransmitted_out() < again;
        let (resent, count) = (&mut ns3.resent, &mut ns3.resent_count);
        resent.remove_below(una, |start, end| *count -= end - start);
        let sacked = ack.blocks.map_or(0, |blocks| {
            self.board.mark_sacked(blocks, |start, end| {
                resent.insert(start, end, |start, end| *count += end - start);
            })
        });
        delivered += sacked;
        let short = !short && self.board.has_delivered(self.segments - 1);
        let missing = if short {
            settings.mss - self.last_payload
        } else {
            0
        };
        let progress = Progress {
            advanced,
            sacked,
            delivered_bytes: delivered * settings.mss - missing,
            repaired,
            smoothed: self.rtt.smoothed(),
            now: ack.now,
        };
        if ns3.state == State::Reduction && una > ns3.recover {
            ns3.state = State::Open;
            self.window.cwnd = self.window.ssthresh;
        }
        self.note_echo(ns3, ack, &progress, settings);
        self.process(ns3, &progress, settings);
    }

    fn note_echo(
        &mut self,
        ns3: &mut Ns3,
        ack: &Ack<'_>,
        progress: &Progress,
        settings: &Settings,
    ) {
        if progress.advanced == 0 || !ack.marked {
            ns3.echoed &= ack.marked;
            return;
        }
        if ns3.echo_seen >= ack.next_expected {
            return;
        }
        ns3.echo_seen = ack.next_expected;
        ns3.echoed = true;
        if ns3.state != State::Reduction {
            let pipe = self.pipe_bytes(ns3, settings);
            self.window.ssthresh = self.congestion.ssthresh(&self.window, pipe, settings);
            ns3.state = State::Reduction;
            ns3.recover = self.board.next;
            self.begin_reduction(ns3, progress, settings);
        }
    }

    fn process(&mut self, ns3: &mut Ns3, progress: &Progress, settings: &Settings) {
        let duplicates = ns3.duplicates;
        let is_duplicate = progress.sacked > 0;
        if is_duplicate {
            self.take_duplicate(ns3, progress, settings);
        }
        if progress.advanced == 0 {
            if self.board.outstanding() > 0 {
                self.observe_as_ns3(ns3, 1, progress, settings);
            }
            return;
        }
        if !is_duplicate {
            ns3.duplicates = 0;
        }
        let partial = self.board.una < ns3.recover;
        match ns3.state {
            State::Recovery if partial => self.take_partial_as_ns3(ns3, progress, settings),
            State::Loss if partial => {
                let segments = self.whole_segments(progress, settings);
                self.observe_as_ns3(ns3, segments, progress, settings);
                self.grow_as_ns3(ns3, segments, progress, settings);
                self.restart_timer(ns3, progress.now, settings);
            }
            State::Reduction => {
                let segments = self.whole_segments(progress, settings);
                self.observe_as_ns3(ns3, segments, progress, settings);
                if segments > 0 {
                    self.reduce_as_ns3(ns3, progress, settings);
                }
                self.restart_timer(ns3, progress.now, settings);
            }
            _ => self.take_new_data(ns3, duplicates, is_duplicate, progress, settings),
        }
    }

    fn take_duplicate(&mut self, ns3: &mut Ns3, progress: &Progress, settings: &Settings) {
        match ns3.state {
            State::Loss => return,
            State::Recovery => return self.reduce_as_ns3(ns3, progress, settings),
            State::Open => ns3.state = State::Disorder,
            State::Disorder | State::Reduction => {}
        }
        ns3.duplicates += 1;
        if ns3.state != State::Disorder {
            return;
        }
        let una = self.board.una;
        let counted = ns3.duplicates == DUP_THRESH && (una >= ns3.recover || !ns3.recover_active);
        if counted || self.board.is_lost(una + 1) {
            self.enter_recovery_as_ns3(ns3, progress, settings);
        }
    }

    fn enter_recovery_as_ns3(&mut self, ns3: &mut Ns3, progress: &Progress, settings: &Settings) {
        self.board.mark_head_lost();
        ns3.recover = self.board.next;
        ns3.recover_active = true;
        ns3.state = State::Recovery;
        let pipe = self.pipe_bytes(ns3, settings);
        self.window.ssthresh = self.congestion.ssthresh(&self.window, pipe, settings);
        self.begin_reduction(ns3, progress, settings);
        ns3.forced = true;
    }

    fn take_partial_as_ns3(&mut self, ns3: &mut Ns3, progress: &Progress, settings: &Settings) {
        if self.whole_segments(progress, settings) > 0 {
            self.reduce_as_ns3(ns3, progress, settings);
        }
        // A short segment is looked for at the wrong place, and always sent again.
        let head = self.board.una;
        let is_short = self.payload(head, settings) < settings.mss;
        ns3.forced |= is_short || !self.board.is_retransmitted(head);
        if ns3.forced
            && let Some((index, _)) = self.forced_segment()
        {
            ns3.next_sent = index;
        }
        self.observe_as_ns3(ns3, 1, progress, settings);
        if !ns3.partial {
            self.restart_timer(ns3, progress.now, settings);
        }
        ns3.partial = true;
    }

    /// An acknowledgement of new data that ends a state, or comes in none.
    fn take_new_data(
        &mut self,
        ns3: &mut Ns3,
        duplicates: u32,
        is_duplicate: bool,
        progress: &Progress,
        settings: &Settings,
    ) {
        let mut segments = self.whole_segments(progress, settings);
        match ns3.state {
            State::Disorder => {
                if let Some(beyond) = segments.checked_sub(duplicates) {
                    self.observe_as_ns3(ns3, beyond, progress, settings);
                }
                if !is_duplicate {
                    ns3.state = State::Open;
                }
            }
            State::Recovery => {
                self.observe_as_ns3(ns3, segments, progress, settings);
                ns3.partial = false;
                ns3.state = State::Open;
                ns3.duplicates = 0;
                self.window.cwnd = self.window.ssthresh;
            }
            State::Loss => {
                segments = self.board.una - ns3.recover;
                self.observe_as_ns3(ns3, segments, progress, settings);
                ns3.partial = false;
                ns3.state = State::Open;
            }
            State::Open | State::Reduction => {
                self.observe_as_ns3(ns3, segments, progress, settings);
            }
        }
        ns3.recover_active &= self.board.una < ns3.recover;
        if ns3.state == State::Open {
            self.grow_as_ns3(ns3, segments, progress, settings);
            self.restart_timer(ns3, progress.now, settings);
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
        // 66,608 B × 65,160 B exceeds 2^32: what is left of the product allows nothing.
        let window = reduction.window(1_448, 90_000, 65_160, 1_448, false);
        assert_eq!(window, 90_000);
    }

    #[test]
    fn half_of_what_is_delivered_goes_out() {
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
        // Four of eight, less the retransmission counted before.
        assert_eq!(sent, 3);
    }
}
