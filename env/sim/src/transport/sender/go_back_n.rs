//! Go-back-N: the loss recovery of RDMA. The receiver keeps no segments that arrive out of order. It asks
//! for the missing segment, and the sender begins again there.
//!
//! ns-3 hosts (HPCC, SIGCOMM 2019) have no timer, so a flow whose last packets are lost hangs. Here
//! everything is sent again after [`Settings::rdma_rto`] without an acknowledgement, if no packet of the
//! flow is in flight: pauses delay packets for longer than any timer, but lose none.

use super::loss_recovery::LossRecovery;
use super::{Ack, Segment, Sender};
use crate::transport::pool::Pool;
use crate::transport::{Acked, CongestionControl, Settings};
use crate::units::{Duration, Instant};

impl Sender {
    /// Returns the segment to send now: the next one, if pacing and window allow it.
    pub(super) fn emit_in_sequence(
        &mut self,
        now: Instant,
        settings: &Settings,
    ) -> Option<Segment> {
        if !self.has_next(settings) {
            return None;
        }
        self.congestion.advance(now, settings);
        if !self.congestion.pacer()?.may_send(now) {
            return None;
        }
        let index = self.sent.next;
        self.sent.next += 1;
        if self.deadline == Instant::MAX {
            self.deadline = now + settings.rdma_rto;
        }
        Some(Segment {
            index,
            payload: self.payload(index, settings),
            retransmission: index < self.sent_before(),
        })
    }

    /// Returns true if there is a segment to send and the window is open. Outstanding data may exceed the
    /// window by less than one segment.
    fn has_next(&self, settings: &Settings) -> bool {
        let outstanding = u64::from(self.sent.count()) * u64::from(settings.mss);
        self.sent.next < self.segments && outstanding < u64::from(self.window.cwnd)
    }

    /// Returns the bound below which all segments have been sent.
    fn sent_before(&self) -> u32 {
        match self.recovery.as_deref() {
            Some(LossRecovery::GoBackN { until }) => self.sent.next.max(*until),
            _ => self.sent.next,
        }
    }

    /// Returns the delay of the timer to set for the next segment; `None` if no segment waits because of pacing.
    /// The timer also expires when the rate changes with time, because the segment may be allowed then.
    pub(super) fn take_rate_timer(
        &mut self,
        now: Instant,
        settings: &Settings,
    ) -> Option<Duration> {
        if !self.has_next(settings) {
            return None;
        }
        let change = self.congestion.advance(now, settings);
        self.congestion.pacer()?.take_timer_until(now, change)
    }

    /// Handles a packet that begins to leave the host: the next one follows it at the paced interval.
    pub(crate) fn depart(&mut self, bytes: u32, now: Instant, settings: &Settings) {
        self.congestion.on_departure(bytes, now, settings);
        if let Some(pacer) = self.congestion.pacer() {
            pacer.on_send(now, bytes);
        }
    }

    /// Takes an acknowledgement of all segments below the one that the receiver expects. After a negative one
    /// (`nack`), the sender begins again there.
    pub(crate) fn take_cumulative_ack(
        &mut self,
        ack: &Ack<'_>,
        nack: bool,
        settings: &Settings,
        pool: &mut Pool<LossRecovery>,
    ) {
        let before = self.sent.una;
        self.sent.una = before.max(ack.next_expected);
        self.sent.next = self.sent.next.max(self.sent.una);
        let segments = self.sent.una - before;
        if nack {
            self.go_back(pool);
        }
        if segments > 0 || nack {
            self.deadline = match self.sent.count() {
                0 => Instant::MAX,
                _ => ack.now + settings.rdma_rto,
            };
        }
        self.end_repair(pool);
        let acked = Acked {
            segments,
            una: self.sent.una,
            next: self.sent.next,
            now: ack.now,
            rtt: None,
            elapsed: ack.now.saturating_since(ack.stamp),
            smoothed_rtt: Duration::ZERO,
            marked: ack.marked,
            path: ack.path,
        };
        self.congestion.observe(&mut self.window, &acked, settings);
    }

    /// Restarts the timer, which has expired while packets of the flow are in flight and may not be lost.
    pub(crate) fn wait_on(&mut self, now: Instant, settings: &Settings) {
        self.deadline = now + settings.rdma_rto;
    }

    /// Sends everything again after no acknowledgement has arrived for too long.
    pub(super) fn begin_again(
        &mut self,
        now: Instant,
        settings: &Settings,
        pool: &mut Pool<LossRecovery>,
    ) {
        self.go_back(pool);
        self.deadline = match self.sent.una == self.segments {
            true => Instant::MAX,
            false => now + settings.rdma_rto,
        };
    }

    /// Makes the first unacknowledged segment the next one to send.
    fn go_back(&mut self, pool: &mut Pool<LossRecovery>) {
        let until = self.sent_before();
        self.sent.next = self.sent.una;
        if until > self.sent.next {
            let recovery = self.recovery.get_or_insert_with(|| pool.take());
            **recovery = LossRecovery::GoBackN { until };
        }
    }

    /// Gives the state for losses back when all segments that were sent twice are acknowledged.
    fn end_repair(&mut self, pool: &mut Pool<LossRecovery>) {
        if self.recovery.is_some()
            && self.sent.una >= self.sent_before()
            && let Some(recovery) = self.recovery.take()
        {
            pool.give_back(recovery);
        }
    }
}
