//! Turns readings into the observation, and triggers decisions.
//!
//! A switch that counts for itself sees every packet; the agent only sees sums between readings.
//!
//! | quantity | from readings |
//! |---|---|
//! | queue | the bytes that wait now, or else the sum of the queues' watermarks, which is not below |
//! | enqueued | bytes sent, and the growth of the queue if its length is known |
//! | dropped | bytes dropped; if the switch counts packets only, packets of the mean size of those sent |
//! | elapsed | on the switch's clock between its own readings, or else on that of the agent |
//! | excess | per reading, the drops plus the growth of the queue, clamped at 0; with watermarks alone, the drops since the last decision plus the largest watermark since then |
//!
//! The paper (Eq. 5) clamps the excess after every packet. Clamped after every reading, the excess is never
//! larger, so triggers come late or not at all. The excess from watermarks is never smaller, so triggers come
//! early.

use std::time::Duration;

use bufgym_env::control::{Observation, ObservationScale, cell_centre};
use bufgym_sim::switch::policy::TriggerCause;

use crate::Layout;
use crate::counters::{PortCounters, Sample};

/// Assumed bytes of a lost packet if nothing was sent that shows the size.
const UNKNOWN_PACKET: u64 = 1_500;

/// Timing of decisions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// Shortest time between two decisions.
    pub shortest: Duration,
    /// Time after which the next reading causes a decision in any case; zero turns this off.
    pub longest: Duration,
}

/// The outcome of a reading.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum News {
    /// Nothing: the switch has not read its counters since the last reading.
    None,
    /// The first reading, or counters that restarted: differences are known from here on.
    Began,
    /// Counts, and no decision is due.
    Counted,
    /// Counts, and a decision is due for this cause.
    Due(TriggerCause),
}

/// Volumes of a port since the last decision, bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Volumes {
    /// Enqueued.
    pub enqueued: u64,
    /// Lost.
    pub dropped: u64,
    /// Arrived minus sent.
    pub excess: u64,
    /// The longest queue length.
    pub longest: u64,
}

/// Keeps the state that is needed between readings.
#[derive(Clone, Debug)]
pub struct Monitor {
    scales: Vec<ObservationScale>,
    /// β, which is also the safe line γ.
    beta: u64,
    timing: Timing,
    last: Option<Sample>,
    /// True if counts begin with the next new reading.
    is_fresh: bool,
    /// Time of the last reading with new counters.
    now: Duration,
    decided: Duration,
    volumes: Vec<Volumes>,
    guard_armed: bool,
    due: Option<TriggerCause>,
    observation: Observation,
}

impl Monitor {
    /// Builds a monitor without readings.
    pub fn new(layout: &Layout, timing: Timing) -> Monitor {
        let beta = layout.beta();
        let ports = layout.ports.len();
        let scale = |rate_bps| ObservationScale::new(layout.buffer_bytes, beta, rate_bps);
        Monitor {
            scales: layout
                .ports
                .iter()
                .map(|port| scale(port.rate_bps))
                .collect(),
            beta,
            timing,
            last: None,
            is_fresh: true,
            now: Duration::ZERO,
            decided: Duration::ZERO,
            volumes: vec![Volumes::default(); ports],
            guard_armed: true,
            due: None,
            observation: Observation::new(ports),
        }
    }

    /// Forgets all counts: the next new reading counts as the first.
    pub fn restart(&mut self) {
        let ports = self.volumes.len();
        self.is_fresh = true;
        self.volumes.fill(Volumes::default());
        self.guard_armed = true;
        self.due = None;
        self.observation = Observation::new(ports);
    }

    /// Takes a reading. `clock` is the agent's time of it, which counts if the switch reports none.
    ///
    /// # Panics
    /// Panics if the reading has another number of ports.
    pub fn take(&mut self, sample: Sample, clock: Duration) -> News {
        assert_eq!(
            sample.ports.len(),
            self.volumes.len(),
            "counters of every port"
        );
        let Some(last) = &self.last else {
            return self.begin(sample, clock);
        };
        if *last == sample {
            return News::None;
        }
        if self.is_fresh {
            return self.begin(sample, clock);
        }
        let pairs = last.ports.iter().zip(&sample.ports);
        let backwards = pairs
            .clone()
            .any(|(before, after)| is_earlier(after, before));
        if backwards || last.taken.is_some() != sample.taken.is_some() || sample.taken < last.taken
        {
            return self.begin(sample, clock);
        }
        for (volumes, (before, after)) in self.volumes.iter_mut().zip(pairs) {
            volumes.add(before, after);
        }
        self.now = sample.taken.unwrap_or(clock);
        self.last = Some(sample);
        self.due = self.due_now();
        let since = self.now.saturating_sub(self.decided);
        match self.due {
            Some(cause) if since >= self.timing.shortest => News::Due(cause),
            _ => News::Counted,
        }
    }

    fn begin(&mut self, sample: Sample, clock: Duration) -> News {
        let now = sample.taken.unwrap_or(clock);
        // If the clock of the switch did not jump back, the previous counts stay.
        if self.is_fresh || now < self.now {
            self.decided = now;
            self.volumes.fill(Volumes::default());
            self.due = None;
        }
        self.is_fresh = false;
        self.now = now;
        self.last = Some(sample);
        News::Began
    }

    /// Returns the trigger that has fired since the last decision, at this reading or before.
    fn due_now(&self) -> Option<TriggerCause> {
        let any = |reached: &dyn Fn(&Volumes) -> bool| self.volumes.iter().any(reached);
        let excess = any(&|volumes| volumes.excess >= self.beta);
        if excess || self.due == Some(TriggerCause::Excess) {
            return Some(TriggerCause::Excess);
        }
        let lost = self.guard_armed && any(&|volumes| volumes.dropped >= self.beta);
        if lost || self.due == Some(TriggerCause::Safeguard) {
            return Some(TriggerCause::Safeguard);
        }
        let longest = self.timing.longest;
        let since = self.now.saturating_sub(self.decided);
        (longest > Duration::ZERO && since >= longest).then_some(TriggerCause::Interval)
    }

    /// Appends a step to the observation for a decision at the last reading, and restarts the counts.
    /// `levels` are those in force, by port. Returns `[ports, HISTORY, FEATURES]`.
    ///
    /// # Panics
    /// Panics if there is not exactly one level per port.
    pub fn observe(&mut self, levels: &[u8]) -> &[f32] {
        assert_eq!(levels.len(), self.volumes.len(), "a level of every port");
        let elapsed_s = self.now.saturating_sub(self.decided).as_secs_f64();
        let queues = self.last.as_ref().map_or(&[][..], |sample| &sample.ports);
        let Monitor {
            scales,
            volumes,
            observation,
            ..
        } = self;
        observation.push(|port| {
            let (scale, volumes) = (&scales[port], &volumes[port]);
            [
                scale.queue(queues.get(port).map_or(0, length)),
                scale.volume(volumes.enqueued),
                scale.volume(volumes.dropped),
                cell_centre(usize::from(levels[port])),
                scale.elapsed(elapsed_s),
            ]
        });
        self.guard_armed = self.due.take() != Some(TriggerCause::Safeguard);
        self.volumes.fill(Volumes::default());
        self.decided = self.now;
        self.observation.as_slice()
    }

    /// Returns the volumes since the last decision, by port.
    pub fn volumes(&self) -> &[Volumes] {
        &self.volumes
    }

    /// Returns the time of the last reading with new counters.
    pub fn now(&self) -> Duration {
        self.now
    }
}

/// Returns the bytes that wait for a port, as far as the switch reports them.
fn length(counters: &PortCounters) -> u64 {
    counters.occupancy.or(counters.watermark).unwrap_or(0)
}

/// Returns true if a counter has gone back, like after a restart of the switch.
fn is_earlier(after: &PortCounters, before: &PortCounters) -> bool {
    after.sent < before.sent
        || after.sent_packets < before.sent_packets
        || after.dropped < before.dropped
        || after.dropped_packets < before.dropped_packets
}

impl Volumes {
    /// Adds the changes between two readings.
    fn add(&mut self, before: &PortCounters, after: &PortCounters) {
        let sent = after.sent - before.sent;
        let dropped = match (before.dropped, after.dropped) {
            (Some(before), Some(after)) => after - before,
            _ => {
                let packets = after.dropped_packets - before.dropped_packets;
                let mean = sent.checked_div(after.sent_packets - before.sent_packets);
                packets.saturating_mul(mean.unwrap_or(UNKNOWN_PACKET))
            }
        };
        self.dropped = self.dropped.saturating_add(dropped);
        match (before.occupancy, after.occupancy) {
            (Some(was), Some(is)) => {
                self.enqueued = (self.enqueued + sent + is).saturating_sub(was);
                self.excess = (self.excess + dropped + is).saturating_sub(was);
            }
            _ => {
                self.enqueued += sent;
                self.longest = self.longest.max(length(after));
                self.excess = self.longest + self.dropped;
            }
        }
    }
}

#[cfg(test)]
mod tests;
