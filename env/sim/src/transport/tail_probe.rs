//! Tail loss probes: one more segment if the end of a flight may be lost. Its acknowledgement shows the
//! losses before the retransmission timer expires (RFC 8985 §7).

use super::Settings;
use super::settings::FALLBACK_FACTOR;
use crate::units::Duration;

/// The probe of a flow that is in flight, at most one.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct TailProbe {
    /// First segment not yet sent when the probe left (TLP.end_seq), if a probe is in flight.
    end: Option<u32>,
    /// True if the probe was a segment sent before (TLP.is_retrans).
    retransmitted: bool,
}

/// Result of a probe, after an acknowledgement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// There is no result yet, or no probe.
    Open,
    /// Nothing was lost, so the probe was needless.
    Needless,
    /// The probe has repaired a loss, to which the window must react.
    Repaired,
}

/// Returns the time without an acknowledgement after which a probe is sent (TLP_calc_PTO, §7.2). It is two
/// round trips, plus the maximum delay of an acknowledgement if only one segment is outstanding, otherwise
/// plus the resolution of the timer. Before the first measurement, it is the first timeout of a SYN (one
/// second in the RFC), but not less than the retransmission timeout at that time.
pub(crate) fn probe_timeout(
    smoothed_rtt: Option<Duration>,
    outstanding: u32,
    settings: &Settings,
) -> Duration {
    let Some(rtt) = smoothed_rtt else {
        let first = settings.fallback_rto / FALLBACK_FACTOR;
        return first.max(settings.initial_rtt + settings.min_rto);
    };
    let delay = match outstanding {
        1 if settings.delayed_ack > 1 => settings.ack_delay.max(settings.timer_slack),
        _ => settings.timer_slack,
    };
    rtt.saturating_mul(2).saturating_add(delay)
}

impl TailProbe {
    /// Returns true if a probe is in flight.
    pub(crate) fn is_under_way(&self) -> bool {
        self.end.is_some()
    }

    /// Records that a probe left; `next` is the first segment not yet sent.
    pub(crate) fn send(&mut self, next: u32, retransmitted: bool) {
        *self = TailProbe {
            end: Some(next),
            retransmitted,
        };
    }

    /// Forgets the probe, because losses are being repaired.
    pub(crate) fn cancel(&mut self) {
        self.end = None;
    }

    /// Returns true if a segment that the receiver got twice is the probe.
    pub(crate) fn is(&self, duplicate: u32) -> bool {
        self.retransmitted && self.end == Some(duplicate + 1)
    }

    /// Takes an acknowledgement of all segments below `una` (TLP_process_ack, §7.4.2).
    pub(crate) fn judge(&mut self, una: u32, duplicate: Option<u32>) -> Verdict {
        let Some(end) = self.end.filter(|&end| una >= end) else {
            return Verdict::Open;
        };
        let verdict = if !self.retransmitted || duplicate.is_some_and(|index| self.is(index)) {
            Verdict::Needless
        } else if una > end {
            Verdict::Repaired
        } else {
            return Verdict::Open;
        };
        self.cancel();
        verdict
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::Scenario;

    fn settings(change: &str) -> Settings {
        let mut scenario = Scenario::default();
        for setting in change.split_whitespace() {
            scenario.set(setting).unwrap();
        }
        Settings::from_scenario(&scenario)
    }

    /// 2 · 300 µs + 2 ms; with one segment outstanding and delayed acknowledgements, + 40 ms instead of 2 ms.
    #[test]
    fn two_round_trips_and_the_delay_of_an_acknowledgement() {
        let each = settings("recovery=rack");
        let delayed = settings("recovery=rack delayed_ack=2");
        let rtt = Some(Duration::from_us(300));
        let timeouts = |settings| [1, 2].map(|count| probe_timeout(rtt, count, settings));
        assert_eq!(timeouts(&each), [Duration::from_us(2_600); 2]);
        let [one, two] = timeouts(&delayed);
        assert_eq!(one, Duration::from_us(40_600));
        assert_eq!(two, Duration::from_us(2_600));
        // The resolution is a hundredth of minRTO, the delay half of minRTO.
        let short = settings("recovery=rack delayed_ack=2 min_rto_us=10000");
        let [one, two] = timeouts(&short);
        assert_eq!(one, Duration::from_us(5_600));
        assert_eq!(two, Duration::from_us(700));
        // Without a measurement, the probe timeout is at least the retransmission timeout.
        assert_eq!(probe_timeout(None, 2, &each), Duration::from_us(200_200));
        let slow = settings("recovery=rack syn_timeout_us=1000000");
        assert_eq!(probe_timeout(None, 2, &slow), Duration::from_ms(1_000));
    }

    #[test]
    fn a_probe_of_new_data_repairs_nothing() {
        let mut probe = TailProbe::default();
        assert_eq!(probe.judge(9, None), Verdict::Open);
        probe.send(5, false);
        assert_eq!(probe.judge(4, None), Verdict::Open);
        assert_eq!(probe.judge(5, None), Verdict::Needless);
        assert!(!probe.is_under_way());
    }

    #[test]
    fn a_duplicate_shows_that_the_probe_was_needless_and_later_data_that_it_was_not() {
        let mut probe = TailProbe::default();
        probe.send(5, true);
        assert_eq!(probe.judge(5, Some(3)), Verdict::Open);
        assert_eq!(probe.judge(5, Some(4)), Verdict::Needless);
        probe.send(5, true);
        assert_eq!(probe.judge(5, None), Verdict::Open);
        assert_eq!(probe.judge(6, None), Verdict::Repaired);
        assert_eq!(probe.judge(6, None), Verdict::Open);
    }
}
