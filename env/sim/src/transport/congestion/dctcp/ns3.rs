//! DCTCP as in TcpDctcp of ns-3 3.37, for comparison of the simulators. The window grows by counting
//! acknowledgements, like Linux's Reno. A loss cuts it like a mark.

use bufgym_util::convert::floor_u32;

use crate::transport::{Acked, CongestionControl, Settings, Window};

const GAIN: f64 = 1.0 / 16.0;

/// DCTCP of ns-3. The sender shrinks the window by proportional rate reduction, also after a mark.
#[derive(Clone, Debug)]
pub(super) struct DctcpNs3 {
    alpha: f64,
    acknowledged: u32,
    marked: u32,
    /// Segment whose acknowledgement ends the observation window.
    window_end: Option<u32>,
    /// Number of acknowledged segments towards the next segment of growth.
    count: u32,
}

impl Default for DctcpNs3 {
    fn default() -> DctcpNs3 {
        DctcpNs3 {
            alpha: 1.0,
            acknowledged: 0,
            marked: 0,
            window_end: None,
            count: 0,
        }
    }
}

impl DctcpNs3 {
    /// Grows the window in congestion avoidance. The earlier count alone can suffice for a step, even if no
    /// segment is newly acknowledged.
    fn avoid_congestion(&mut self, window: &mut Window, acked: &Acked, settings: &Settings) {
        let segments = (window.cwnd / settings.mss).max(1);
        if self.count >= segments {
            self.count = 0;
            window.grow(settings.mss, settings);
        }
        self.count += acked.segments;
        if self.count >= segments {
            let steps = self.count / segments;
            self.count -= steps * segments;
            window.grow(steps * settings.mss, settings);
        }
    }
}

impl CongestionControl for DctcpNs3 {
    fn observe(&mut self, _window: &mut Window, acked: &Acked, _settings: &Settings) {
        self.acknowledged += acked.segments;
        if acked.marked {
            self.marked += acked.segments;
        }
        let end = *self.window_end.get_or_insert(acked.next);
        if acked.una < end {
            return;
        }
        let fraction = if self.acknowledged > 0 {
            f64::from(self.marked) / f64::from(self.acknowledged)
        } else {
            0.0
        };
        self.alpha = (1.0 - GAIN) * self.alpha + GAIN * fraction;
        self.window_end = Some(acked.next);
        (self.acknowledged, self.marked) = (0, 0);
    }

    fn on_ack(&mut self, window: &mut Window, acked: &Acked, settings: &Settings) {
        if window.in_slow_start() {
            let room = window.ssthresh - window.cwnd;
            let growth = (acked.segments * settings.mss).min(room);
            window.grow(growth, settings);
        } else {
            self.avoid_congestion(window, acked, settings);
        }
    }

    fn ssthresh(&mut self, window: &Window, _flight: u32, _settings: &Settings) -> u32 {
        floor_u32((1.0 - self.alpha / 2.0) * f64::from(window.cwnd))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;
    use crate::transport::testing::acked;

    #[test]
    fn a_window_of_acknowledgements_adds_a_segment() {
        let settings = Settings::from_scenario(&Scenario::default());
        let mut dctcp = DctcpNs3::default();
        let mut window = Window {
            cwnd: 10 * settings.mss,
            ssthresh: settings.mss,
        };
        for _ in 0..10 {
            assert_eq!(window.cwnd, 10 * settings.mss);
            dctcp.on_ack(&mut window, &acked(1), &settings);
        }
        assert_eq!(window.cwnd, 11 * settings.mss);
    }

    #[test]
    fn marks_and_losses_cut_alike() {
        let settings = Settings::from_scenario(&Scenario::default());
        let mut dctcp = DctcpNs3 {
            alpha: 0.5,
            ..DctcpNs3::default()
        };
        let window = Window {
            cwnd: 100_000,
            ssthresh: 1,
        };
        assert_eq!(dctcp.ssthresh(&window, 7, &settings), 75_000);
        assert_eq!(dctcp.window_after_mark(&window, 7, &settings), 75_000);
    }
}
