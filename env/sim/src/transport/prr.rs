//! Proportional rate reduction (PRR): the amount to send on each acknowledgement during fast recovery
//! (RFC 6937).

/// State of one recovery episode; all quantities are in bytes.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct RateReduction {
    delivered: u64,
    out: u64,
    flight_at_entry: u64,
}

/// Bound on the growth of the outstanding data if it is below the target.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Bound {
    /// Growth by no more than was delivered (PRR-CRB).
    Conservation,
    /// Growth by one more segment for each acknowledgement, as in slow start (PRR-SSRB).
    SlowStart,
}

/// Input of PRR at an acknowledgement, bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Progress {
    /// Data that was newly acknowledged or SACKed (DeliveredData).
    pub(crate) delivered: u32,
    /// Data believed to be in the network.
    pub(crate) pipe: u32,
    /// Target of the reduction: the slow-start threshold.
    pub(crate) ssthresh: u32,
    pub(crate) bound: Bound,
    /// Maximum segment size.
    pub(crate) mss: u32,
}

impl RateReduction {
    /// Begins an episode; `flight` is the outstanding data, bytes (RecoverFS, RFC 6937 §3).
    pub(crate) fn begin(flight: u32) -> RateReduction {
        RateReduction {
            flight_at_entry: u64::from(flight).max(1),
            ..RateReduction::default()
        }
    }

    /// Returns the window after this acknowledgement: `pipe` plus the bytes that may be sent now.
    pub(crate) fn window(&mut self, progress: Progress) -> u32 {
        self.delivered += u64::from(progress.delivered);
        let allowance = if progress.pipe > progress.ssthresh {
            (self.delivered * u64::from(progress.ssthresh))
                .div_ceil(self.flight_at_entry)
                .saturating_sub(self.out)
        } else {
            let conserving = self
                .delivered
                .saturating_sub(self.out)
                .max(u64::from(progress.delivered));
            let bounded = match progress.bound {
                Bound::Conservation => conserving,
                Bound::SlowStart => conserving + u64::from(progress.mss),
            };
            bounded.min(u64::from(progress.ssthresh - progress.pipe))
        };
        // The fast retransmit is always sent (RFC 6937 §3).
        let floor = if self.out == 0 {
            u64::from(progress.mss)
        } else {
            0
        };
        let window = u64::from(progress.pipe) + allowance.max(floor);
        u32::try_from(window).map_or(u32::MAX / 2, |window| window.min(u32::MAX / 2))
    }

    /// Counts bytes sent during recovery (prr_out).
    pub(crate) fn sent(&mut self, bytes: u32) {
        self.out += u64::from(bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 6937 §4, the example of a single loss in a window of 20 with a target of 10: one segment
    /// is sent for every two delivered.
    #[test]
    fn sends_in_proportion_to_the_reduction() {
        let mss = 1_000;
        let mut prr = RateReduction::begin(20 * mss);
        let mut pipe = 16;
        let mut sent = 0;
        for _ in 0..10 {
            let progress = Progress {
                delivered: mss,
                pipe: pipe * mss,
                ssthresh: 10 * mss,
                bound: Bound::SlowStart,
                mss,
            };
            let window = prr.window(progress);
            while (pipe + 1) * mss <= window {
                pipe += 1;
                sent += 1;
                prr.sent(mss);
            }
            pipe -= 1;
        }
        assert_eq!(sent, 5);
    }
    /// Below the target: 6 of 10 segments are outstanding, 1 was delivered.
    #[test]
    fn conservation_sends_what_was_delivered_and_slow_start_a_segment_more() {
        let window = |bound| {
            let mut prr = RateReduction::begin(20_000);
            prr.sent(1_000);
            let progress = Progress {
                delivered: 1_000,
                pipe: 6_000,
                ssthresh: 10_000,
                bound,
                mss: 1_000,
            };
            prr.window(progress)
        };
        assert_eq!(window(Bound::Conservation), 7_000);
        assert_eq!(window(Bound::SlowStart), 8_000);
    }
}
