//! The two ports of the in-cast over time, and the quantities that Fig. 10 shows.

use bufgym_sim::network::TimelineRow;
use bufgym_sim::units::{Duration, Instant};
use bufgym_util::convert::index;
use serde::{Deserialize, Serialize};

/// A port starves below this share of the buffer while the other is above [`HOLDS`].
const STARVES: f64 = 0.05;
/// See [`STARVES`].
const HOLDS: f64 = 0.8;
/// The time before and after the peak of a burst.
const AROUND: Duration = Duration::from_us(50_000);
/// A burst's queue peaks within this time of the burst's start: four senders send its 1 MB in 2 ms, and one
/// port needs 8 ms for it.
const PEAK_WITHIN: Duration = Duration::from_us(20_000);

/// The state of the two ports from one instant on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct State {
    pub t: Instant,
    pub queue: [u64; 2],
    pub threshold: [u64; 2],
    /// α of both ports; NaN without α.
    pub alpha: [f64; 2],
}

/// The states of a run in order, each lasting until the next one.
#[derive(Clone, Debug)]
pub struct States {
    pub states: Vec<State>,
    pub end: Instant,
}

/// One bar of one port.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bar {
    /// Largest queue, bytes.
    pub longest: u64,
    /// Smallest threshold, bytes.
    pub threshold: u64,
    /// Mean queue over time, bytes.
    pub mean: f64,
}

/// Bars of one port, one after the other.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Bars {
    pub start: Instant,
    pub width: Duration,
    pub bars: Vec<Bar>,
}

/// Means of log2 α around the peaks of bursts, one value per burst. The heavier port is the burst's.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Alphas {
    pub heavier_before: Vec<f64>,
    pub heavier_after: Vec<f64>,
    pub lighter_before: Vec<f64>,
    pub lighter_after: Vec<f64>,
}

impl States {
    /// Extracts the states of two ports from a timeline of all ports.
    pub fn of(rows: &[TimelineRow], ports: [u32; 2], end: Instant) -> States {
        let mut states: Vec<State> = Vec::new();
        for row in rows {
            let Some(place) = ports.iter().position(|port| *port == row.port) else {
                continue;
            };
            if states.last().is_none_or(|last| last.t != row.t) {
                let before = states.last().copied().unwrap_or_default();
                states.push(State { t: row.t, ..before });
            }
            if let Some(state) = states.last_mut() {
                state.queue[place] = row.queue_bytes;
                state.threshold[place] = row.threshold_bytes;
                state.alpha[place] = row.alpha;
            }
        }
        States { states, end }
    }

    /// Returns every state with the part of its time that lies in a span, in picoseconds.
    fn within(&self, from: Instant, to: Instant) -> impl Iterator<Item = (&State, u64)> {
        let first = self.states.partition_point(|state| state.t <= from);
        let ends = self.states.iter().skip(1).map(|next| next.t);
        let lasting = self.states.iter().zip(ends.chain([self.end]));
        lasting
            .skip(first.saturating_sub(1))
            .take_while(move |(state, _)| state.t < to)
            .map(move |(state, until)| {
                let (start, stop) = (state.t.max(from), until.min(to));
                (state, stop.0.saturating_sub(start.0))
            })
            .filter(|(_, lasted)| *lasted > 0)
    }

    /// Returns the share of the time in which one port has less than 5 % of the buffer and the other more
    /// than 80 %.
    pub(crate) fn starved(&self, capacity: u64) -> f64 {
        let limits = [STARVES, HOLDS].map(|share| share * capacity as f64);
        let starves = |queue: [u64; 2]| {
            let [a, b] = queue.map(|bytes| bytes as f64);
            a.min(b) < limits[0] && a.max(b) > limits[1]
        };
        let mut shares = (0, 0);
        for (state, lasted) in self.within(Instant::ZERO, self.end) {
            shares.1 += lasted;
            if starves(state.queue) {
                shares.0 += lasted;
            }
        }
        shares.0 as f64 / shares.1.max(1) as f64
    }

    /// Returns the bars of both ports from `start` on, until the run ends, but at most `most`.
    pub fn bars(&self, start: Instant, width: Duration, most: usize) -> [Bars; 2] {
        let span = self.end.0.saturating_sub(start.0);
        let count = index(span.div_ceil(width.0)).min(most);
        [0, 1].map(|place| Bars {
            start,
            width,
            bars: (0..count)
                .map(|bar| {
                    let from = start + width * bar as u64;
                    self.bar(place, from, from + width)
                })
                .collect(),
        })
    }

    fn bar(&self, place: usize, from: Instant, to: Instant) -> Bar {
        let mut bar = Bar {
            longest: 0,
            threshold: u64::MAX,
            mean: 0.0,
        };
        let (mut area, mut time) = (0.0, 0.0);
        for (state, lasted) in self.within(from, to) {
            bar.longest = bar.longest.max(state.queue[place]);
            bar.threshold = bar.threshold.min(state.threshold[place]);
            area += state.queue[place] as f64 * lasted as f64;
            time += lasted as f64;
        }
        if time > 0.0 {
            bar.mean = area / time;
        }
        bar
    }

    /// Returns α of the heavier and the lighter port around the peak of every burst.
    pub fn alphas(&self, bursts: &[Vec<Instant>; 2]) -> Alphas {
        let mut alphas = Alphas::default();
        for (heavy, starts) in bursts.iter().enumerate() {
            for start in starts {
                let Some(peak) = self.peak(heavy, *start) else {
                    continue;
                };
                let before = peak.saturating_sub(AROUND);
                let after = peak + AROUND;
                let spans = [(before, peak), (peak, after)];
                let [heavier, lighter] = [heavy, 1 - heavy]
                    .map(|place| spans.map(|(from, to)| self.mean_log2_alpha(place, from, to)));
                alphas.heavier_before.extend(heavier[0]);
                alphas.heavier_after.extend(heavier[1]);
                alphas.lighter_before.extend(lighter[0]);
                alphas.lighter_after.extend(lighter[1]);
            }
        }
        alphas
    }

    /// Returns the first time at which the queue is longest within [`PEAK_WITHIN`] of a burst's start.
    fn peak(&self, place: usize, start: Instant) -> Option<Instant> {
        let states = self.within(start, start + PEAK_WITHIN);
        let longest = states.max_by_key(|(state, _)| (state.queue[place], u64::MAX - state.t.0));
        longest.map(|(state, _)| state.t.max(start))
    }

    /// Returns the mean over time of log2 α; `None` without α or without time.
    fn mean_log2_alpha(&self, place: usize, from: Instant, to: Instant) -> Option<f64> {
        let (mut area, mut time) = (0.0, 0.0);
        for (state, lasted) in self.within(from, to) {
            area += state.alpha[place].log2() * lasted as f64;
            time += lasted as f64;
        }
        let mean = area / time;
        mean.is_finite().then_some(mean)
    }
}

#[cfg(test)]
mod tests {
    use bufgym_sim::switch::SwitchId;

    use super::*;

    fn row(us: u64, port: u32, queue: u64, threshold: u64, alpha: f64) -> TimelineRow {
        TimelineRow {
            switch: SwitchId(0),
            t: Instant::from_us(us),
            port,
            queue_bytes: queue,
            threshold_bytes: threshold,
            occupancy_bytes: queue,
            alpha,
        }
    }

    /// Port 4 (A) holds 90 of 100 bytes in the second quarter and port 2 (B) holds nothing; port 7 is neither
    /// of them.
    fn states() -> States {
        let mut rows = Vec::new();
        for (us, a, b, alpha) in [
            (0, 10, 10, 4.0),
            (100, 90, 0, 4.0),
            (200, 90, 6, 0.5),
            (300, 0, 6, 0.5),
        ] {
            rows.push(row(us, 4, a, 50, alpha));
            rows.push(row(us, 7, 77, 1, 32.0));
            rows.push(row(us, 2, b, 40 + us, 16.0));
        }
        States::of(&rows, [4, 2], Instant::from_us(400))
    }

    #[test]
    fn rows_of_one_instant_are_one_state() {
        let states = states();
        assert_eq!(states.states.len(), 4);
        assert_eq!(states.states[1].queue, [90, 0]);
        assert_eq!(states.states[2].threshold, [50, 240]);
    }

    #[test]
    fn a_port_starves_beside_one_that_holds_the_buffer() {
        let states = states();
        assert_eq!(states.starved(100), 0.25);
        // 6 of 200 bytes are less than 5 %, but 90 are not more than 80 %.
        assert_eq!(states.starved(200), 0.0);
        // 90 of 110 bytes are more than 80 %, but 6 are not less than 5 %.
        assert_eq!(states.starved(110), 0.25);
        let none = States {
            states: Vec::new(),
            end: Instant::ZERO,
        };
        assert_eq!(none.starved(100), 0.0);
    }

    #[test]
    fn a_bar_has_the_longest_queue_the_least_threshold_and_the_mean() {
        let [a, b] = states().bars(Instant::from_us(50), Duration::from_us(200), 9);
        assert_eq!(a.bars.len(), 2);
        // The bar covers 50 us of 10 bytes and 150 us of 90.
        let expected = Bar {
            longest: 90,
            threshold: 50,
            mean: (50.0 * 10.0 + 150.0 * 90.0) / 200.0,
        };
        assert_eq!(a.bars[0], expected);
        assert_eq!((b.bars[0].longest, b.bars[0].threshold), (10, 40));
        assert_eq!(b.bars[1].threshold, 240);
        // The run ends before the second bar does.
        assert_eq!(a.bars[1].mean, 50.0 * 90.0 / 150.0);
        assert_eq!(
            states().bars(Instant::ZERO, Duration::from_us(100), 3)[0]
                .bars
                .len(),
            3
        );
    }

    #[test]
    fn alpha_is_averaged_in_powers_of_two_around_the_peak() {
        let alphas = states().alphas(&[vec![Instant::from_us(50)], Vec::new()]);
        // The first peak is at 100 us: α = 4 before; 100 us of 4 and 200 us of 1/2 after.
        assert_eq!(alphas.heavier_before, [2.0]);
        assert!((alphas.heavier_after[0] - (2.0 - 2.0) / 3.0).abs() < 1e-12);
        assert_eq!(alphas.lighter_before, [4.0]);
        assert_eq!(alphas.lighter_after, [4.0]);
    }

    #[test]
    fn without_alpha_there_is_no_mean() {
        let rows = [row(0, 0, 5, 9, f64::NAN), row(0, 1, 5, 9, f64::NAN)];
        let states = States::of(&rows, [0, 1], Instant::from_us(10));
        let alphas = states.alphas(&[vec![Instant::ZERO], Vec::new()]);
        assert_eq!(alphas, Alphas::default());
    }
}
