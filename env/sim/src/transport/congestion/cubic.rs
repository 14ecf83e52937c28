//! CUBIC's window (RFC 9438).

use bufgym_util::convert::floor_u32;

use super::hystart::{HyStart, Pace};
use super::hystart_linux::HyStartLinux;
use crate::scenario::HyStartRule;
use crate::transport::{Acked, CongestionControl, Settings, Window};
use crate::units::Instant;

/// RFC 9438 §5: segments per cubic second.
const C: f64 = 0.4;
/// RFC 9438 §4.6: fraction of the window that remains after a loss.
const BETA: f64 = 0.7;
/// RFC 9438 §4.3: additive increase at which the Reno-friendly region is as fast as Reno.
const ALPHA: f64 = 3.0 * (1.0 - BETA) / (1.0 + BETA);

/// CUBIC. The window grows as `W(t) = C (t - K)³ + W_max`, where t is the time since the last loss, and
/// never slower than Reno's. Windows are in segments, times in seconds.
#[derive(Clone, Debug)]
pub struct Cubic {
    /// Window before the last loss, reduced under fast convergence.
    w_max: f64,
    /// Estimate of Reno's window.
    w_est: f64,
    /// Window just before the last loss.
    prior: f64,
    /// Seconds from `epoch` until the window reaches `w_max` again.
    k: f64,
    /// Start of the current stage of congestion avoidance.
    epoch: Option<Instant>,
    /// Fraction of a byte of growth, carried over to the next acknowledgement.
    fraction: f64,
    /// True if the retransmission timer detected the last loss.
    timed_out: bool,
    exit: SlowStartExit,
    /// True if the window grows as in Linux.
    linux: bool,
    /// True if no loss since the last timeout has shown how large a window the path can hold.
    path_unknown: bool,
}

/// Condition, other than a loss, that ends slow start.
#[derive(Clone, Debug)]
enum SlowStartExit {
    None,
    HyStart(HyStart),
    Linux(HyStartLinux),
}

impl SlowStartExit {
    fn new(rule: Option<HyStartRule>) -> SlowStartExit {
        match rule {
            None => SlowStartExit::None,
            Some(HyStartRule::Rfc9406) => SlowStartExit::HyStart(HyStart::default()),
            Some(HyStartRule::Linux) => SlowStartExit::Linux(HyStartLinux::default()),
        }
    }
}

impl Cubic {
    pub(super) fn new(settings: &Settings) -> Cubic {
        Cubic {
            w_max: 0.0,
            w_est: 0.0,
            prior: 0.0,
            k: 0.0,
            epoch: None,
            fraction: 0.0,
            timed_out: false,
            exit: SlowStartExit::new(settings.hystart),
            linux: settings.linux_rules,
            path_unknown: true,
        }
    }

    /// Returns the seconds since this stage began; begins a stage if there is none.
    fn elapsed(&mut self, cwnd: f64, now: Instant) -> f64 {
        let epoch = *self.epoch.get_or_insert_with(|| {
            self.w_est = cwnd;
            // §4.8 after a timeout; likewise if slow start ended without a loss.
            if self.timed_out || self.w_max <= cwnd {
                self.w_max = cwnd;
                self.k = 0.0;
            } else {
                self.k = libm::cbrt((self.w_max - cwnd) / C);
            }
            self.timed_out = false;
            now
        });
        (now - epoch).as_secs_f64()
    }

    /// Returns the window of the cubic curve (§4.2, figure 1).
    fn target(&self, t: f64) -> f64 {
        let offset = t - self.k;
        C * offset * offset * offset + self.w_max
    }

    /// Returns the segments to add for one acknowledgement.
    fn step(&mut self, cwnd: f64, acked: &Acked) -> f64 {
        let t = self.elapsed(cwnd, acked.now);
        // Linux stays at the slower rate (`bictcp_update`).
        let alpha = match self.w_est < self.prior || self.linux {
            true => ALPHA,
            false => 1.0,
        };
        self.w_est += alpha * f64::from(acked.segments) / cwnd;
        if self.target(t) < self.w_est {
            return (self.w_est - cwnd).max(self.least(acked));
        }
        let target = self.target(t + acked.smoothed_rtt.as_secs_f64());
        ((target.clamp(cwnd, 1.5 * cwnd) - cwnd) / cwnd).max(self.least(acked))
    }

    /// Returns the minimum growth: in Linux a twentieth per round trip while the path is unknown.
    fn least(&self, acked: &Acked) -> f64 {
        match self.linux && self.path_unknown {
            true => f64::from(acked.segments) / 20.0,
            false => 0.0,
        }
    }
}

impl CongestionControl for Cubic {
    fn observe(&mut self, window: &mut Window, acked: &Acked, settings: &Settings) {
        let ends = match &mut self.exit {
            SlowStartExit::None => false,
            SlowStartExit::HyStart(hystart) => {
                window.in_slow_start() && hystart.observe(acked) == Pace::Finished
            }
            SlowStartExit::Linux(hystart) => {
                hystart.observe(window, acked, self.epoch, settings.mss)
            }
        };
        if ends {
            window.ssthresh = window.cwnd;
        }
    }

    fn on_ack(&mut self, window: &mut Window, acked: &Acked, settings: &Settings) {
        if window.in_slow_start() {
            if let SlowStartExit::HyStart(hystart) = &self.exit
                && hystart.growth_divisor() > 1
            {
                return window.grow(settings.mss / hystart.growth_divisor(), settings);
            }
            return window.grow_in_slow_start(acked.segments, settings);
        }
        let mss = f64::from(settings.mss);
        let bytes = self.fraction + mss * self.step(f64::from(window.cwnd) / mss, acked);
        self.fraction = bytes.fract();
        window.grow(floor_u32(bytes), settings);
    }

    fn ssthresh(&mut self, window: &Window, flight: u32, settings: &Settings) -> u32 {
        let cwnd = f64::from(window.cwnd) / f64::from(settings.mss);
        // Fast convergence (§4.7): a flow that did not regain its last window releases bandwidth.
        self.w_max = if cwnd < self.w_max {
            cwnd * (1.0 + BETA) / 2.0
        } else {
            cwnd
        };
        self.prior = cwnd;
        self.epoch = None;
        self.fraction = 0.0;
        self.timed_out = false;
        self.path_unknown = false;
        floor_u32(f64::from(flight) * BETA).max(2 * settings.mss)
    }

    fn on_timeout(&mut self, now: Instant, next: u32) {
        self.timed_out = true;
        self.path_unknown = true;
        self.epoch = None;
        if let SlowStartExit::Linux(hystart) = &mut self.exit {
            hystart.on_timeout(now, next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Scenario, TransportKind};
    use crate::transport::testing::acked;
    use crate::units::Duration;

    fn settings() -> Settings {
        Settings::from_scenario(&Scenario::default().with(|scenario| {
            scenario.transport.kind = TransportKind::Cubic;
            scenario.packets.mss = 1_000;
        }))
    }

    fn at(ms: u64, segments: u32) -> Acked<'static> {
        Acked {
            now: Instant::from_ms(ms),
            smoothed_rtt: Duration::from_ms(100),
            ..acked(segments)
        }
    }

    /// Returns a window of 1,000 segments that was cut to 700: K = cbrt(300 / 0.4) = 9.086 s.
    fn after_a_loss() -> (Cubic, Window, Settings) {
        let settings = settings();
        let mut cubic = Cubic::new(&settings);
        let mut window = Window {
            cwnd: 1_000_000,
            ssthresh: 1,
        };
        window.ssthresh = cubic.ssthresh(&window, 1_000_000, &settings);
        window.cwnd = window.ssthresh;
        (cubic, window, settings)
    }

    #[test]
    fn a_loss_leaves_seven_tenths() {
        let (cubic, window, _) = after_a_loss();
        assert_eq!(window.cwnd, 700_000);
        assert_eq!(cubic.w_max, 1_000.0);
    }

    #[test]
    fn follows_the_cubic_curve() {
        let (mut cubic, mut window, settings) = after_a_loss();
        let k = (300.0f64 / 0.4).cbrt();
        // Consecutive round trips of 100 ms, with an acknowledgement for every segment.
        for round in 0..120u64 {
            let flight = window.cwnd / 1_000;
            for index in 0..u64::from(flight) {
                let ms = round * 100 + index * 100 / u64::from(flight);
                cubic.on_ack(&mut window, &at(ms, 1), &settings);
            }
            let expected = 0.4 * ((round + 1) as f64 * 0.1 - k).powi(3) + 1_000.0;
            let found = f64::from(window.cwnd) / 1_000.0;
            assert!(
                (found - expected).abs() < 0.015 * expected,
                "round {round}: {found} instead of {expected}"
            );
        }
    }

    #[test]
    fn two_steps_by_hand() {
        let (mut cubic, mut window, settings) = after_a_loss();
        // W(0) = 700 is below Reno's window, 700 + 0.53/700: growth by a fraction of a byte.
        cubic.on_ack(&mut window, &at(5_000, 1), &settings);
        assert_eq!(window.cwnd, 700_000);
        assert_eq!(cubic.epoch, Some(Instant::from_ms(5_000)));
        // t = 0.1 s; the target is one round trip ahead: 0.4 (0.2 - 9.0856)³ + 1000 =
        // 719.38 segments, so that 19.38/700 of a segment is added.
        cubic.on_ack(&mut window, &at(5_100, 1), &settings);
        assert_eq!(window.cwnd, 700_028);
    }

    /// Returns the segments of a window that had 10, after a loss and ten round trips of 100 µs, in which the
    /// cubic curve hardly moves.
    fn small_window(settings: &Settings) -> f64 {
        let mut cubic = Cubic::new(settings);
        let mut window = Window {
            cwnd: 10_000,
            ssthresh: 1,
        };
        window.cwnd = cubic.ssthresh(&window, 10_000, settings);
        for round in 0..10 {
            for _ in 0..window.cwnd / 1_000 {
                let ack = Acked {
                    now: Instant::from_us(100 * round),
                    smoothed_rtt: Duration::from_us(100),
                    ..acked(1)
                };
                cubic.on_ack(&mut window, &ack, settings);
            }
        }
        f64::from(window.cwnd) / 1_000.0
    }

    /// Reno's estimate grows by α = 0.53 per round trip from 7 segments to the former 10, then by a whole
    /// segment.
    #[test]
    fn a_small_window_grows_as_renos_does() {
        let grown = small_window(&settings());
        assert!((13.0..=14.0).contains(&grown), "{grown}");
    }

    /// Linux keeps the slower rate: 7 + 10 · 0.53.
    #[test]
    fn a_small_window_of_linux_grows_by_half_a_segment_per_round_trip() {
        let grown = small_window(&Settings {
            linux_rules: true,
            ..settings()
        });
        assert!((11.5..=12.4).contains(&grown), "{grown}");
    }

    #[test]
    fn a_flow_that_did_not_regain_its_window_makes_room() {
        let (mut cubic, window, settings) = after_a_loss();
        cubic.ssthresh(&window, 700_000, &settings);
        assert_eq!(cubic.w_max, 700.0 * 1.7 / 2.0);
    }

    #[test]
    fn after_a_timeout_the_curve_starts_at_the_current_window() {
        let (mut cubic, mut window, settings) = after_a_loss();
        cubic.on_timeout(Instant::ZERO, 0);
        window.cwnd = 300_000;
        window.ssthresh = 300_000;
        cubic.on_ack(&mut window, &at(100, 1), &settings);
        assert_eq!((cubic.w_max, cubic.k), (300.0, 0.0));
    }

    /// Slow start ended without a loss at 100 segments. A round trip adds one segment, in Linux five, until a
    /// loss has shown how large a window the path can hold.
    #[test]
    fn while_the_path_is_unknown_linux_grows_by_a_twentieth() {
        let grown = [false, true].map(|linux_rules| {
            let settings = Settings {
                linux_rules,
                ..settings()
            };
            let round = |cubic: &mut Cubic, window: &mut Window| {
                let before = window.cwnd;
                for _ in 0..window.cwnd / 1_000 {
                    cubic.on_ack(window, &at(0, 1), &settings);
                }
                window.cwnd - before
            };
            let mut cubic = Cubic::new(&settings);
            let mut window = Window {
                cwnd: 100_000,
                ssthresh: 1,
            };
            let unknown = round(&mut cubic, &mut window);
            window.cwnd = cubic.ssthresh(&window, 100_000, &settings);
            (unknown, round(&mut cubic, &mut window))
        });
        let [rfc, linux] = grown;
        assert!((900..=1_000).contains(&rfc.0), "{rfc:?}");
        assert!((4_900..=5_300).contains(&linux.0), "{linux:?}");
        assert!(linux.1 < 1_000, "{linux:?}");
    }
}
