//! The measurements of ABM: the number of congested queues of each priority, and each queue's share of
//! its line.

use crate::scenario::Scenario;
use crate::switch::policy::{PacketView, View};
use crate::units::{Duration, Instant};

/// A queue is congested if its length is at least this fraction of its threshold (paper, §3.1).
const CONGESTED: f64 = 0.9;

/// The departures of a queue since the last update.
#[derive(Clone, Copy, Debug)]
struct Drain {
    /// Bytes that left in `(since, last]`, preambles and gaps included.
    sent: u64,
    /// The last departure before the interval, or the time at which the queue became busy.
    since: Instant,
    /// The last departure, or `since`.
    last: Instant,
    /// True if the queue was empty at some time of the interval.
    emptied: bool,
    /// Share of the line μ/b, as of the last update.
    share: f64,
}

/// Factors `(1/n_p) · μ/b` of every queue.
///
/// μ is measured from departure to departure. Otherwise the ends of an interval with only a few
/// packets of a queue would distort it.
#[derive(Clone, Debug)]
pub(super) struct Shares {
    factors: Box<[f64]>,
    drains: Box<[Drain]>,
    /// Congested queues by priority.
    congested: Box<[u32]>,
    interval: Duration,
    next_update: Instant,
    overhead_bytes: u64,
    /// Bytes of a full packet, preamble and gap included.
    largest: u64,
}

impl Shares {
    pub(super) fn new(
        queues: usize,
        priorities: usize,
        interval: Duration,
        scenario: &Scenario,
    ) -> Shares {
        let idle = Drain {
            sent: 0,
            since: Instant::ZERO,
            last: Instant::ZERO,
            emptied: true,
            share: 1.0,
        };
        let overhead_bytes = u64::from(scenario.packets.overhead_bytes);
        Shares {
            factors: vec![1.0; queues].into_boxed_slice(),
            drains: vec![idle; queues].into_boxed_slice(),
            congested: vec![0; priorities].into_boxed_slice(),
            interval,
            next_update: Instant::ZERO + interval,
            overhead_bytes,
            largest: scenario.full_packet_bytes() + overhead_bytes,
        }
    }

    /// Returns the time of the next update.
    #[inline]
    pub(super) fn next_update(&self) -> Instant {
        self.next_update
    }

    /// Returns `(1/n_p) · μ/b` of a queue.
    #[inline]
    pub(super) fn factor(&self, queue: usize) -> f64 {
        self.factors[queue]
    }

    /// Notes that a packet was enqueued; the view shows the state after that.
    #[inline]
    pub(super) fn enqueued(&mut self, view: View<'_>, packet: PacketView) {
        if view.buffer.queue(packet.queue) <= packet.bytes {
            let drain = &mut self.drains[packet.queue];
            drain.emptied = true;
            drain.sent = 0;
            drain.since = view.now;
            drain.last = view.now;
        }
    }

    /// Notes that a packet has left; the view shows the state after that.
    #[inline]
    pub(super) fn sent(&mut self, view: View<'_>, packet: PacketView) {
        let drain = &mut self.drains[packet.queue];
        drain.sent += packet.bytes + self.overhead_bytes;
        drain.last = view.now;
        drain.emptied |= view.buffer.queue(packet.queue) == 0;
    }

    /// Notes that a packet was removed from a queue; the view shows the state after that.
    pub(super) fn removed(&mut self, view: View<'_>, queue: usize) {
        self.drains[queue].emptied |= view.buffer.queue(queue) == 0;
    }

    /// Replaces the measurements. `free` is `B - Q` and `alphas` the α of every queue. The
    /// thresholds before the update decide which queues are congested.
    #[inline(never)]
    pub(super) fn update(&mut self, view: View<'_>, free: u64, alphas: &[f64]) {
        let queues = view.buffer.queues();
        let priorities = self.congested.len();
        self.congested.fill(0);
        for (queue, &bytes) in queues.iter().enumerate() {
            let threshold = alphas[queue] * self.factors[queue] * free as f64;
            let congested = bytes > 0 && bytes as f64 >= CONGESTED * threshold;
            self.congested[queue % priorities] += u32::from(congested);
        }
        for (queue, drain) in self.drains.iter_mut().enumerate() {
            drain.update(view, queues[queue] == 0, self.largest);
            let congested = self.congested[queue % priorities].max(1);
            self.factors[queue] = drain.share / f64::from(congested);
        }
        self.next_update = view.now.saturating_add(self.interval);
    }
}

impl Drain {
    /// Updates the share. `largest` is the most bytes that may be in service, which `sent` does not
    /// include yet.
    fn update(&mut self, view: View<'_>, empty: bool, largest: u64) {
        let line =
            |bytes: u64, span: Duration| 8e12 * bytes as f64 / (view.rate.0 as f64 * span.0 as f64);
        if self.emptied {
            self.share = 1.0;
        } else {
            if self.last > self.since {
                self.share = line(self.sent, self.last - self.since).min(1.0);
            }
            // An upper bound from the whole time since the last departure.
            if view.now > self.since {
                let most = line(self.sent + largest, view.now - self.since);
                self.share = self.share.min(most);
            }
        }
        self.sent = 0;
        self.since = self.last;
        self.emptied = empty;
    }
}
