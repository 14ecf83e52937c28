//! The features of an arrival, which are the input of the oracle.

use bufgym_util::convert::single;

use crate::scenario::Scenario;
use crate::switch::View;
use crate::units::Instant;

/// Names of the features, in order. A model that was trained on other features is refused.
pub const FEATURES: [&str; 4] = ["queue", "queue_average", "occupancy", "occupancy_average"];

/// The features of one arrival, each as a fraction of the buffer size: length of its queue, average
/// of that length, occupancy of the buffer, average of that occupancy. All are from before the
/// arrival.
pub type Features = [f32; FEATURES.len()];

/// An exponentially weighted average over time.
#[derive(Clone, Copy, Default, Debug)]
struct Average {
    value: f32,
    updated: Instant,
}

impl Average {
    /// Moves the average towards the current value by `1 - exp(-elapsed/time constant)`.
    #[inline]
    fn observe(&mut self, seen: f32, now: Instant, per_ps: f64) -> f32 {
        let elapsed = now.saturating_since(self.updated).0;
        if elapsed > 0 {
            let weight = 1.0 - libm::expf(single(-(elapsed as f64 * per_ps)));
            self.value += weight * (seen - self.value);
            self.updated = now;
        }
        self.value
    }
}

/// Averages of the queue lengths and of the occupancy, with a time constant of one base round trip.
/// The length of a queue is sampled at the arrivals of that queue, the occupancy at all arrivals.
#[derive(Clone, Debug)]
pub struct Averages {
    queues: Vec<Average>,
    occupancy: Average,
    /// One over the time constant.
    per_ps: f64,
    /// One over the size of the buffer.
    scale: f32,
}

impl Averages {
    /// Creates averages of zero, for the switch of `scenario`.
    pub fn new(scenario: &Scenario) -> Averages {
        let queues = scenario.queue_count();
        Averages {
            queues: vec![Average::default(); queues],
            occupancy: Average::default(),
            per_ps: 1.0 / scenario.base_rtt().0.max(1) as f64,
            scale: single(1.0 / scenario.network.buffer_bytes as f64),
        }
    }

    /// Returns the features of an arrival at `queue`; the view shows the state before it.
    ///
    /// # Panics
    /// When the queue does not exist.
    #[inline]
    pub fn observe(&mut self, view: View<'_>, queue: usize) -> Features {
        let length = view.buffer.queue(queue) as f32 * self.scale;
        let occupancy = view.buffer.occupancy() as f32 * self.scale;
        let of_queue = self.queues[queue].observe(length, view.now, self.per_ps);
        let of_all = self.occupancy.observe(occupancy, view.now, self.per_ps);
        [length, of_queue, occupancy, of_all]
    }
}
