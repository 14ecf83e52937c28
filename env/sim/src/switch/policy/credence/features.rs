//! What the oracle sees of an arrival.

use crate::scenario::Scenario;
use crate::switch::View;
use crate::units::Time;

/// Names of the features, in order; a model trained on others is refused.
pub const FEATURES: [&str; 4] = [
    "queue",
    "queue_average",
    "occupancy",
    "occupancy_average",
];

/// The features of one arrival, each as a share of the buffer: length of its queue, that length
/// averaged, bytes in the buffer, those averaged; all before the arrival.
pub type Features = [f32; FEATURES.len()];

/// An exponentially weighted average over time.
#[derive(Clone, Copy, Default, Debug)]
struct Average {
    value: f32,
    updated: Time,
}

impl Average {
    /// Moves towards what is seen now, by `1 - exp(-elapsed/time constant)`.
    #[inline]
    fn observe(&mut self, seen: f32, now: Time, per_ps: f64) -> f32 {
        let elapsed = now.saturating_since(self.updated).0;
        if elapsed > 0 {
            let weight = 1.0 - libm::expf(-(elapsed as f64 * per_ps) as f32);
            self.value += weight * (seen - self.value);
            self.updated = now;
        }
        self.value
    }
}

/// Averages of the queue lengths and of the occupancy, seen at arrivals, with a time constant of
/// one base round trip. A queue is seen by its own arrivals.
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
    /// All zero, for a switch as `scenario` has it.
    pub fn new(scenario: &Scenario) -> Averages {
        let queues = scenario.port_count() * scenario.queues_per_port as usize;
        Averages {
            queues: vec![Average::default(); queues],
            occupancy: Average::default(),
            per_ps: 1.0 / scenario.base_rtt().0.max(1) as f64,
            scale: (1.0 / scenario.buffer_bytes as f64) as f32,
        }
    }

    /// The features of an arrival at `queue`; the view shows the state before it.
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
