//! HyStart++: leaves slow start before it overfills the buffer (RFC 9406).

use crate::transport::Acked;
use crate::units::Duration;

/// Number of samples that a round needs before its delay is compared (RFC 9406 §4.3, N_RTT_SAMPLE).
const SAMPLES: u32 = 8;
/// Bounds of the delay increase that ends slow start (MIN_RTT_THRESH, MAX_RTT_THRESH).
const MIN_GROWTH: Duration = Duration::from_ms(4);
const MAX_GROWTH: Duration = Duration::from_ms(16);
/// The delay increase is the last round's delay divided by this (MIN_RTT_DIVISOR).
const GROWTH_DIVISOR: u64 = 8;
/// Number of rounds of conservative slow start before congestion avoidance (CSS_ROUNDS).
const CONSERVATIVE_ROUNDS: u32 = 5;
/// Divisor of the window's growth in conservative slow start (CSS_GROWTH_DIVISOR).
const CONSERVATIVE_DIVISOR: u32 = 4;

/// Decision whether slow start continues.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Pace {
    /// Slow start continues.
    Continued,
    /// Congestion avoidance follows.
    Finished,
}

/// State of one flow's slow start. A round ends when the segment that was the newest at its
/// beginning is acknowledged.
#[derive(Clone, Debug)]
pub(super) struct HyStart {
    round_end: u32,
    last_round: Duration,
    this_round: Duration,
    samples: u32,
    /// In conservative slow start: the delay at which it began, and the number of completed rounds.
    conservative: Option<(Duration, u32)>,
}

impl Default for HyStart {
    fn default() -> HyStart {
        HyStart {
            round_end: 0,
            last_round: Duration::MAX,
            this_round: Duration::MAX,
            samples: 0,
            conservative: None,
        }
    }
}

impl HyStart {
    /// Takes an acknowledgement in slow start (RFC 9406 §4.2).
    pub(super) fn observe(&mut self, acked: &Acked) -> Pace {
        if let Some(rtt) = acked.rtt {
            self.this_round = self.this_round.min(rtt);
            self.samples += 1;
            self.judge();
        }
        if acked.una <= self.round_end {
            return Pace::Continued;
        }
        self.round_end = acked.next;
        self.last_round = std::mem::replace(&mut self.this_round, Duration::MAX);
        self.samples = 0;
        match &mut self.conservative {
            Some((_, rounds)) if *rounds + 1 >= CONSERVATIVE_ROUNDS => Pace::Finished,
            Some((_, rounds)) => {
                *rounds += 1;
                Pace::Continued
            }
            None => Pace::Continued,
        }
    }

    fn judge(&mut self) {
        if self.samples < SAMPLES {
            return;
        }
        match self.conservative {
            Some((baseline, _)) if self.this_round < baseline => self.conservative = None,
            None if self.last_round < Duration::MAX => {
                let growth = (self.last_round / GROWTH_DIVISOR).clamp(MIN_GROWTH, MAX_GROWTH);
                if self.this_round >= self.last_round + growth {
                    self.conservative = Some((self.this_round, 0));
                }
            }
            _ => {}
        }
    }

    /// Returns the divisor of the window's growth.
    pub(super) fn growth_divisor(&self) -> u32 {
        match self.conservative {
            Some(_) => CONSERVATIVE_DIVISOR,
            None => 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transport::testing::acked;

    /// Runs rounds of ten acknowledgements, with a round-trip time in milliseconds for each round,
    /// and returns the round in which slow start ended.
    fn left_after(rounds: &[u64]) -> Option<usize> {
        let mut hystart = HyStart::default();
        let mut una = 0;
        for (round, &ms) in rounds.iter().enumerate() {
            for _ in 0..10 {
                una += 1;
                let ack = Acked {
                    una,
                    next: una + 9,
                    rtt: Some(Duration::from_ms(ms)),
                    ..acked(1)
                };
                if hystart.observe(&ack) == Pace::Finished {
                    return Some(round);
                }
            }
        }
        None
    }

    #[test]
    fn steady_delay_does_not_end_slow_start() {
        assert_eq!(left_after(&[40; 20]), None);
        // The threshold is an eighth of 40 ms: 5 ms.
        assert_eq!(left_after(&[40, 44, 44, 44, 44, 44, 44, 44, 44, 44]), None);
    }

    #[test]
    fn growing_delay_ends_it_five_rounds_later() {
        let left = left_after(&[40, 40, 46, 46, 46, 46, 46, 46, 46, 46, 46, 46]);
        assert!(matches!(left, Some(6..=8)), "{left:?}");
    }

    #[test]
    fn delay_that_falls_again_was_a_false_alarm() {
        assert_eq!(left_after(&[40, 40, 46, 40, 40, 40, 40, 40, 40, 40]), None);
    }
}
