//! DCQCN (Zhu et al., SIGCOMM 2015): the rate of an RDMA flow follows marks.
//!
//! Switches mark data, its acknowledgements echo the marks, and what the paper has the receiver tell
//! in a congestion notification packet (CNP) is here what an acknowledgement with a mark tells.
//! Marks cut the rate by a share that follows how often they come; without them the rate rises again
//! by itself.
//!
//! Clocks run without events: a rate is brought up to the present when it is asked for.

mod reverie;

pub use reverie::DcqcnReverie;

use super::{Acked, CongestionControl, Pacer, Settings, Window, rate};
use crate::convert::floor_u64;
use crate::units::{Rate, Time};

/// Weight of a new observation in α (g; §5.2).
const GAIN: f64 = 1.0 / 256.0;

/// Of the notifications that come within this time only the first one counts (N; §3.1). The paper
/// has the receiver keep others back.
const CNP_INTERVAL: Time = Time::from_us(50);

/// Without a notification for so long, α decays (K; §3.1).
const ALPHA_INTERVAL: Time = Time::from_us(55);

/// Without a notification for so long, or after so many bytes, the rate rises (T and B; §5.2).
const INCREASE_INTERVAL: Time = Time::from_us(55);
const INCREASE_BYTES: u64 = 10_000_000;

/// So many increases of a kind are fast recovery (F; §3.1).
const FAST_STEPS: u32 = 5;

/// What the target gains in a step of additive increase (R_AI; §5.2), bit/s. In one of hyper increase
/// it is ten times as much, as in QCN (IEEE 802.1Qau); the paper does not say.
const ADDITIVE: f64 = 40e6;
const HYPER: f64 = 10.0 * ADDITIVE;

/// The current rate (R_C) and the one that it returns to (R_T), bit/s.
#[derive(Clone, Debug)]
struct Rates {
    current: f64,
    target: f64,
    pacer: Pacer,
}

impl Rates {
    /// A flow begins with the rate of the line.
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

    /// A notification: half of α is lost.
    fn cut(&mut self, alpha: f64, settings: &Settings) {
        self.set(self.current * (1.0 - alpha / 2.0), settings);
    }

    /// Goes half of the way to the target, after that has gained so much.
    fn recover(&mut self, gain: f64, settings: &Settings) {
        self.target = (self.target + gain).min(settings.line_rate.0 as f64);
        self.set((self.current + self.target) / 2.0, settings);
    }
}

/// DCQCN with the parameters of its paper. In a network without lossless priorities its packets are
/// lost, and marks keep that rare.
#[derive(Clone, Debug)]
pub struct Dcqcn {
    rates: Rates,
    alpha: f64,
    /// Since the last notification that counted.
    cnp_at: Option<Time>,
    /// When α decays next, and when the rate rises next.
    alpha_at: Time,
    increase_at: Time,
    /// Increases since the last notification, by time and by bytes.
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
            alpha_at: Time::MAX,
            increase_at: Time::MAX,
            steps: [0; 2],
            bytes: 0,
        }
    }

    /// Takes a notification (§3.1, equation 1).
    fn notify(&mut self, now: Time, settings: &Settings) {
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

    /// An increase by time (0) or by bytes (1): five fast ones, additive ones until both have had five,
    /// then hyper (§3.1, Fig. 7).
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
    fn observe(&mut self, _window: &mut Window, acked: &Acked<'_>, settings: &Settings) {
        if acked.marked {
            self.advance(acked.now, settings);
            self.notify(acked.now, settings);
        }
    }

    fn advance(&mut self, now: Time, settings: &Settings) -> Time {
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

    fn on_departure(&mut self, bytes: u32, now: Time, settings: &Settings) {
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

    /// 25 Gbit/s.
    pub(super) fn settings(transport: &str) -> Settings {
        let mut scenario = Scenario::default();
        scenario.set("rate_bps=25e9").unwrap();
        scenario.set(&format!("transport={transport}")).unwrap();
        Settings::from_scenario(&scenario)
    }

    pub(super) fn close(found: f64, expected: f64, error: f64) {
        assert!((found - expected).abs() < error, "{found}, not {expected}");
    }

    /// An acknowledgement with a mark.
    pub(super) fn notify(flow: &mut impl CongestionControl, ns: u64, settings: &Settings) {
        let acked = Acked {
            now: Time::from_ns(ns),
            marked: true,
            ..acked(1)
        };
        let mut window = rate::rdma_window(settings);
        flow.observe(&mut window, &acked, settings);
    }

    fn rate_at(flow: &mut Dcqcn, us: u64, settings: &Settings) -> f64 {
        flow.advance(Time::from_us(us), settings);
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
        // α has decayed as often: from 1 five times.
        close(flow.alpha, (255.0 / 256.0_f64).powi(5), 1e-12);
    }

    /// Of notifications within 50 µs one counts.
    #[test]
    fn notifications_count_once_in_50_us() {
        let settings = settings("dcqcn");
        let mut flow = Dcqcn::new(&settings);
        for us in 0..50 {
            notify(&mut flow, us * 1_000, &settings);
        }
        assert_eq!(rate_at(&mut flow, 49, &settings), 12.5);
        notify(&mut flow, 50_000, &settings);
        // α is still 1: it rose to that, and 55 µs are not over.
        assert_eq!(rate_at(&mut flow, 50, &settings), 6.25);
        assert_eq!(flow.rates.target, 12.5 * GBPS);
    }

    /// After five steps the target rises by 40 Mbit/s per step, and by 400 once bytes have had five
    /// steps too.
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
        let now = Time::from_us(at(7) + 1);
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

    /// As often as they count, notifications bring the rate to its least.
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
