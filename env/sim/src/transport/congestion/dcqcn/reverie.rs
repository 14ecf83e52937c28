//! DCQCN as network cards implement it, with the values from the evaluations of HPCC (SIGCOMM 2019) and
//! Reverie (NSDI 2024). α and the rate follow separate clocks, not single notifications.

use super::{GAIN, Rates, rate};
use crate::transport::{Acked, CongestionControl, Pacer, Settings, Window};
use crate::units::{Duration, Instant};

/// Interval at which α changes.
const ALPHA_INTERVAL: Duration = Duration::from_us(1);

/// Interval at which the rate is cut, if there were notifications since the last cut.
const DECREASE_INTERVAL: Duration = Duration::from_us(4);

/// Delay of the clock of cuts relative to the clock of α.
const DECREASE_OFFSET: Duration = Duration::from_ns(1);

/// Interval at which the rate rises without a cut.
const INCREASE_INTERVAL: Duration = Duration::from_us(900);

/// Gains of the target in the second increase after a cut, and in later ones, bit/s.
const ADDITIVE: f64 = 50e6;
const HYPER: f64 = 100e6;

/// Minimum of α: smaller values cut nothing, and products would become slow.
const MIN_ALPHA: f64 = 1e-300;

/// DCQCN as network cards implement it. The first notification starts the clocks and leaves the rate
/// unchanged. There is no minimum time between notifications, and bytes do not count.
#[derive(Clone, Debug)]
pub struct DcqcnReverie {
    rates: Rates,
    alpha: f64,
    /// Time of the next change of α; [`Instant::MAX`] before the first notification.
    alpha_at: Instant,
    /// Time of the next possible cut.
    decrease_at: Instant,
    /// Time of the next rise.
    increase_at: Instant,
    /// True if notifications came since the last change of α, and since the last cut.
    heard: bool,
    to_cut: bool,
    /// Number of increases since the last cut.
    stage: u32,
}

impl DcqcnReverie {
    pub(in crate::transport::congestion) fn new(settings: &Settings) -> DcqcnReverie {
        DcqcnReverie {
            rates: Rates::new(settings),
            alpha: 1.0,
            alpha_at: Instant::MAX,
            decrease_at: Instant::MAX,
            increase_at: Instant::MAX,
            heard: false,
            to_cut: false,
            stage: 0,
        }
    }

    fn notify(&mut self, now: Instant) {
        if self.alpha_at == Instant::MAX {
            self.alpha_at = now + ALPHA_INTERVAL;
            self.decrease_at = now + DECREASE_OFFSET + DECREASE_INTERVAL;
        } else {
            self.heard = true;
        }
        self.to_cut = true;
    }

    /// Changes α once for each tick of its clock before `end`.
    fn move_alpha(&mut self, end: Instant) {
        while self.alpha_at < end {
            self.alpha *= 1.0 - GAIN;
            if std::mem::take(&mut self.heard) {
                self.alpha += GAIN;
            } else if self.alpha < MIN_ALPHA {
                self.alpha = 0.0;
            }
            self.alpha_at += ALPHA_INTERVAL;
        }
    }

    fn cut(&mut self, settings: &Settings) {
        self.move_alpha(self.decrease_at);
        if self.stage > 0 {
            self.rates.target = self.rates.current;
        }
        self.rates.cut(self.alpha, settings);
        self.to_cut = false;
        self.stage = 0;
        self.increase_at = self.decrease_at + INCREASE_INTERVAL;
    }

    fn increase(&mut self, settings: &Settings) {
        let gain = match self.stage {
            0 => 0.0,
            1 => ADDITIVE,
            _ => HYPER,
        };
        self.rates.recover(gain, settings);
        self.stage = self.stage.saturating_add(1);
        self.increase_at += INCREASE_INTERVAL;
    }

    /// Returns the first tick of the clock of cuts that is not before `now`.
    fn next_cut(&self, now: Instant) -> Instant {
        let past = now.saturating_since(self.decrease_at).0;
        let ticks = past.div_ceil(DECREASE_INTERVAL.0);
        self.decrease_at + DECREASE_INTERVAL * ticks
    }

    /// Runs the clocks up to `end`, exclusively. If both tick at once, the increase comes first, because it was
    /// scheduled earlier.
    fn run(&mut self, end: Instant, settings: &Settings) {
        loop {
            let cut_at = match self.to_cut {
                true => self.decrease_at,
                false => Instant::MAX,
            };
            if self.increase_at.min(cut_at) >= end {
                return;
            }
            if self.increase_at <= cut_at {
                self.increase(settings);
            } else {
                self.cut(settings);
                self.decrease_at += DECREASE_INTERVAL;
            }
        }
    }
}

impl CongestionControl for DcqcnReverie {
    /// No window limits the flow.
    fn initial_window(&self, _settings: &Settings) -> Window {
        rate::rdma_window(f64::INFINITY)
    }

    /// Handles a notification at the instant of a tick before the tick: its packet left long before.
    fn observe(&mut self, _window: &mut Window, acked: &Acked<'_>, settings: &Settings) {
        if acked.marked {
            self.run(acked.now, settings);
            self.move_alpha(acked.now);
            if self.alpha_at != Instant::MAX && !self.to_cut {
                self.decrease_at = self.next_cut(acked.now);
            }
            self.notify(acked.now);
        }
    }

    fn advance(&mut self, now: Instant, settings: &Settings) -> Instant {
        self.run(now.saturating_add(Duration(1)), settings);
        self.increase_at
    }

    fn on_ack(&mut self, _window: &mut Window, _acked: &Acked<'_>, _settings: &Settings) {}

    fn ssthresh(&mut self, _window: &Window, _flight: u32, _settings: &Settings) -> u32 {
        0
    }

    fn pacer(&mut self) -> Option<&mut Pacer> {
        Some(&mut self.rates.pacer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::congestion::dcqcn::tests::{GBPS, close, notify, settings};

    fn flow() -> (DcqcnReverie, Settings) {
        let settings = settings("dcqcn:preset=reverie");
        (DcqcnReverie::new(&settings), settings)
    }

    /// Returns the rate after the clocks have run until `ns`, Gbit/s.
    fn rate_at(flow: &mut DcqcnReverie, ns: u64, settings: &Settings) -> f64 {
        flow.advance(Instant::from_ns(ns), settings);
        assert_eq!(flow.rates.pacer.rate.0, flow.rates.current as u64);
        flow.rates.current / GBPS
    }

    #[test]
    fn one_cnp_cuts_once_and_the_rate_returns() {
        let (mut flow, settings) = flow();
        notify(&mut flow, 0, &settings);
        assert_eq!(rate_at(&mut flow, 4_000, &settings), 25.0);
        close(rate_at(&mut flow, 4_001, &settings), 12.694_171, 1e-6);
        close(flow.alpha, 0.984_466, 1e-6);
        close(rate_at(&mut flow, 904_000, &settings), 12.694_171, 1e-6);
        for (ns, expected) in [
            (904_001, 18.847_086),
            (1_804_001, 21.923_543),
            (2_704_001, 23.461_772),
        ] {
            close(rate_at(&mut flow, ns, &settings), expected, 1e-6);
            assert_eq!(flow.rates.target, 25.0 * GBPS);
        }
    }

    /// The rate is the same if it is not read in between.
    #[test]
    fn clocks_run_without_being_asked() {
        let (mut flow, settings) = flow();
        notify(&mut flow, 0, &settings);
        close(rate_at(&mut flow, 2_704_001, &settings), 23.461_772, 1e-6);
        assert_eq!(
            flow.advance(Instant::from_ns(2_704_001), &settings),
            Instant::from_ns(3_604_001)
        );
    }

    #[test]
    fn a_cnp_in_every_microsecond_halves_the_rate_each_4_us() {
        let (mut flow, settings) = flow();
        let mut cuts = Vec::new();
        for us in 0..=32 {
            notify(&mut flow, us * 1_000, &settings);
            let rate = rate_at(&mut flow, us * 1_000 + 1, &settings);
            if us > 0 && us % 4 == 0 {
                cuts.push(rate);
            }
        }
        let halves = (1..8).map(|cut| 25.0 / f64::from(1 << cut)).chain([0.1]);
        assert_eq!(cuts, halves.collect::<Vec<_>>());
        assert_eq!((flow.alpha, flow.rates.target), (1.0, 25.0 * GBPS));
    }

    /// After a rise, a cut makes the current rate the next target; without one, it leaves the target unchanged.
    #[test]
    fn the_target_falls_only_after_a_rise() {
        let (mut flow, settings) = flow();
        notify(&mut flow, 0, &settings);
        let risen = rate_at(&mut flow, 904_001, &settings);
        notify(&mut flow, 905_000, &settings);
        rate_at(&mut flow, 908_001, &settings);
        close(flow.rates.target / GBPS, risen, 1e-12);
        notify(&mut flow, 910_000, &settings);
        rate_at(&mut flow, 912_001, &settings);
        close(flow.rates.target / GBPS, risen, 1e-12);
        // The second and third rises increase the target by 50 and 100 Mbit/s.
        let rate = flow.rates.current / GBPS;
        let first = (rate + risen) / 2.0;
        let second = (first + risen + 0.05) / 2.0;
        let third = (second + risen + 0.15) / 2.0;
        for (ns, expected) in [(1_812_001, first), (2_712_001, second), (3_612_001, third)] {
            close(rate_at(&mut flow, ns, &settings), expected, 1e-12);
        }
    }

    /// A notification between two ticks of the clock of cuts waits for the next one.
    #[test]
    fn cuts_keep_to_their_clock() {
        let (mut flow, settings) = flow();
        notify(&mut flow, 500, &settings);
        rate_at(&mut flow, 4_501, &settings);
        let rate = flow.rates.current;
        notify(&mut flow, 21_000, &settings);
        assert_eq!(rate_at(&mut flow, 24_500, &settings) * GBPS, rate);
        assert!(rate_at(&mut flow, 24_501, &settings) * GBPS < rate);
    }
}
