//! DCQCN (Zhu et al., SIGCOMM 2015): the rate of an RDMA flow follows marks.
//!
//! Switches mark data, and acknowledgements echo the marks. An acknowledgement with a mark replaces the
//! congestion notification packet (CNP) that the receiver sends in the paper. Marks cut the rate by a
//! share that depends on their frequency. Without marks, the rate rises again over time.
//!
//! Clocks run without events: a rate is brought up to date when it is read.

mod reverie;

pub use reverie::DcqcnReverie;

use bufgym_util::convert::floor_u64;

use super::{Pacer, rate};
use crate::transport::{Acked, CongestionControl, Settings, Window};
use crate::units::{Duration, Instant, Rate};

/// Weight of a new observation in α (g; §5.2).
const GAIN: f64 = 1.0 / 256.0;

/// Only the first of the notifications that arrive within this time counts (N; §3.1). In the paper, the
/// receiver does not send the others.
const CNP_INTERVAL: Duration = Duration::from_us(50);

/// Time without a notification after which α decays (K; §3.1).
const ALPHA_INTERVAL: Duration = Duration::from_us(55);

/// Time without a notification, or number of bytes, after which the rate rises (T and B; §5.2).
const INCREASE_INTERVAL: Duration = Duration::from_us(55);
const INCREASE_BYTES: u64 = 10_000_000;

/// Number of increases of a kind that are fast recovery (F; §3.1).
const FAST_STEPS: u32 = 5;

/// Gain of the target in a step of additive increase (R_AI; §5.2), bit/s. A step of hyper increase gains ten
/// times as much, as in QCN (IEEE 802.1Qau); the paper gives no value.
const ADDITIVE: f64 = 40e6;
const HYPER: f64 = 10.0 * ADDITIVE;

/// Current rate (R_C) and target rate (R_T), to which it returns, bit/s.
#[derive(Clone, Debug)]
struct Rates {
    current: f64,
    target: f64,
    pacer: Pacer,
}

impl Rates {
    /// Returns the rates of a new flow, which begins at line rate.
    fn new(settings: &Settings) -> Rates {
        let line = settings.line_rate.0 as f64;
        Rates {
            current: line,
            target: line,
            pacer: rate::pacer(settings),
        }
    }

    fn set(&mut self, rate: f64, settings: &Settings) {
        self.current = rate::bounded(rate, settings);
        self.pacer.rate = Rate(floor_u64(self.current));
    }

    /// Cuts the rate by the share α/2, after a notification.
    fn cut(&mut self, alpha: f64, settings: &Settings) {
        self.set(self.current * (1.0 - alpha / 2.0), settings);
    }

    /// Raises the target by `gain`, then moves the rate half of the way to the target.
    fn recover(&mut self, gain: f64, settings: &Settings) {
        self.target = (self.target + gain).min(settings.line_rate.0 as f64);
        self.set((self.current + self.target) / 2.0, settings);
    }
}

/// DCQCN with the parameters of its paper. In a network without lossless priorities its packets can be
/// lost, and marks keep losses rare.
#[derive(Clone, Debug)]
pub struct Dcqcn {
    rates: Rates,
    alpha: f64,
    /// Time of the last notification that counted.
    cnp_at: Option<Instant>,
    /// Times of the next decay of α and of the next rise of the rate.
    alpha_at: Instant,
    increase_at: Instant,
    /// Numbers of increases since the last notification, by time and by bytes.
    steps: [u32; 2],
    /// Bytes sent since the last increase by bytes, or the last notification.
    bytes: u64,
}

impl Dcqcn {
    pub(super) fn new(settings: &Settings) -> Dcqcn {
        Dcqcn {
            rates: Rates::new(settings),
            alpha: 1.0,
            cnp_at: None,
            alpha_at: Instant::MAX,
            increase_at: Instant::MAX,
            steps: [0; 2],
            bytes: 0,
        }
    }

    /// Takes a notification (§3.1, equation 1).
    fn notify(&mut self, now: Instant, settings: &Settings) {
        if self.cnp_at.is_some_and(|last| now < last + CNP_INTERVAL) {
            return;
        }
        self.cnp_at = Some(now);
        self.rates.target = self.rates.current;
        self.rates.cut(self.alpha, settings);
        self.alpha = (1.0 - GAIN) * self.alpha + GAIN;
        self.alpha_at = now + ALPHA_INTERVAL;
        self.increase_at = now + INCREASE_INTERVAL;
        self.steps = [0; 2];
        self.bytes = 0;
    }

    /// Increases the rate because of time (0) or bytes (1). The first five increases of each cause are fast.
    /// Additive ones follow until both causes have had five, then hyper increases (§3.1, Fig. 7).
    fn increase(&mut self, cause: usize, settings: &Settings) {
        let [time, bytes] = self.steps;
        let gain = if time.max(bytes) < FAST_STEPS {
            0.0
        } else if time.min(bytes) >= FAST_STEPS {
            HYPER
        } else {
            ADDITIVE
        };
        self.steps[cause] = self.steps[cause].saturating_add(1);
        self.rates.recover(gain, settings);
    }
}

impl CongestionControl for Dcqcn {
    /// No window limits the flow.
    fn initial_window(&self, _settings: &Settings) -> Window {
        rate::rdma_window(f64::INFINITY)
    }

    fn observe(&mut self, _window: &mut Window, acked: &Acked<'_>, settings: &Settings) {
        if acked.marked {
            self.advance(acked.now, settings);
            self.notify(acked.now, settings);
        }
    }

    fn advance(&mut self, now: Instant, settings: &Settings) -> Instant {
        while self.alpha_at <= now {
            self.alpha *= 1.0 - GAIN;
            self.alpha_at += ALPHA_INTERVAL;
        }
        while self.increase_at <= now {
            self.increase(0, settings);
            self.increase_at += INCREASE_INTERVAL;
        }
        self.increase_at
    }

    fn on_departure(&mut self, bytes: u32, now: Instant, settings: &Settings) {
        if self.cnp_at.is_none() {
            return;
        }
        self.advance(now, settings);
        self.bytes += u64::from(bytes);
        if self.bytes >= INCREASE_BYTES {
            self.bytes -= INCREASE_BYTES;
            self.increase(1, settings);
        }
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
    use crate::scenario::Scenario;
    use crate::transport::testing::acked;

    pub(super) const GBPS: f64 = 1e9;

    /// Returns the settings for links of 25 Gbit/s.
    pub(super) fn settings(transport: &str) -> Settings {
        let mut scenario = Scenario::default();
        scenario.set("rate_bps=25e9").unwrap();
        scenario.set(&format!("transport={transport}")).unwrap();
        Settings::from_scenario(&scenario)
    }

    pub(super) fn close(found: f64, expected: f64, error: f64) {
        assert!((found - expected).abs() < error, "{found}, not {expected}");
    }

    /// Passes the flow an acknowledgement with a mark.
    pub(super) fn notify(flow: &mut impl CongestionControl, ns: u64, settings: &Settings) {
        let acked = Acked {
            now: Instant::from_ns(ns),
            marked: true,
            ..acked(1)
        };
        let mut window = rate::rdma_window(f64::INFINITY);
        flow.observe(&mut window, &acked, settings);
    }

    fn rate_at(flow: &mut Dcqcn, us: u64, settings: &Settings) -> f64 {
        flow.advance(Instant::from_us(us), settings);
        flow.rates.current / GBPS
    }

    /// The first notification halves the rate. Five steps of 55 µs halve the distance to 25 Gbit/s.
    #[test]
    fn a_notification_halves_the_rate_and_five_steps_return_it() {
        let settings = settings("dcqcn");
        let mut flow = Dcqcn::new(&settings);
        notify(&mut flow, 0, &settings);
        assert_eq!(rate_at(&mut flow, 54, &settings), 12.5);
        for step in 1..=5 {
            let expected = 25.0 - 12.5 / f64::from(1 << step);
            assert_eq!(rate_at(&mut flow, 55 * step, &settings), expected);
        }
        // α, initially 1, has decayed five times, too.
        close(flow.alpha, (255.0 / 256.0_f64).powi(5), 1e-12);
    }

    /// Only one notification counts in 50 µs.
    #[test]
    fn notifications_count_once_in_50_us() {
        let settings = settings("dcqcn");
        let mut flow = Dcqcn::new(&settings);
        for us in 0..50 {
            notify(&mut flow, us * 1_000, &settings);
        }
        assert_eq!(rate_at(&mut flow, 49, &settings), 12.5);
        notify(&mut flow, 50_000, &settings);
        // α is still 1: the first notification kept it there, and 55 µs are not over.
        assert_eq!(rate_at(&mut flow, 50, &settings), 6.25);
        assert_eq!(flow.rates.target, 12.5 * GBPS);
    }

    /// After five steps the target rises by 40 Mbit/s per step, and by 400 Mbit/s after five steps by
    /// bytes, too.
    #[test]
    fn fast_recovery_then_additive_then_hyper_increase() {
        let settings = settings("dcqcn");
        let mut flow = Dcqcn::new(&settings);
        notify(&mut flow, 0, &settings);
        notify(&mut flow, 50_000, &settings);
        let at = |step: u64| 50 + 55 * step;
        rate_at(&mut flow, at(5), &settings);
        assert_eq!(flow.rates.target, 12.5 * GBPS);
        rate_at(&mut flow, at(7), &settings);
        close(flow.rates.target / GBPS, 12.58, 1e-9);
        let now = Instant::from_us(at(7) + 1);
        for step in 1..=5 {
            flow.on_departure(10_000_000, now, &settings);
            close(
                flow.rates.target / GBPS,
                12.58 + 0.04 * f64::from(step),
                1e-9,
            );
        }
        flow.on_departure(9_999_999, now, &settings);
        close(flow.rates.target / GBPS, 12.78, 1e-9);
        flow.on_departure(1, now, &settings);
        close(flow.rates.target / GBPS, 13.18, 1e-9);
        rate_at(&mut flow, at(8), &settings);
        close(flow.rates.target / GBPS, 13.58, 1e-9);
    }

    /// Notifications at the highest frequency that counts bring the rate to its minimum.
    #[test]
    fn rates_are_bounded() {
        let settings = settings("dcqcn");
        let mut flow = Dcqcn::new(&settings);
        for step in 0..20 {
            notify(&mut flow, step * 50_000, &settings);
        }
        assert_eq!(flow.rates.current, 0.1 * GBPS);
        assert!(rate_at(&mut flow, 1_000_000, &settings) <= 25.0);
        assert!(flow.rates.current > 24.9 * GBPS);
    }
}
