//! The queues of a port: which packets they hold, and which comes next.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use bufgym_util::convert::floor_u64;
use bufgym_util::input::excerpt;
use serde::Serialize;

use super::named::named;
use super::settings::settings;
use super::validate::Checks;
use super::{Scenario, ScenarioError};

/// Allowed weights of queues. With a lower weight, a queue would wait for many rounds before it may
/// send a packet.
const WEIGHTS: RangeInclusive<f64> = 0.01..=1_000.0;

settings! {
    /// Queues of a port: which packets they hold, and which comes next.
    pub struct QueueSettings {
        /// The packet then counts in the buffer too.
        count_in_service: bool = true, "the packet being serialised counts in its queue";
        /// A packet takes the queue of its flow's priority, or the last queue where there is no
        /// such queue.
        queues_per_port: u32 = 1, "queues of a port, by priority of the flows";
        flow_priority: FlowPriority = FlowPriority::InTurn, "queues of generated flows: in_turn | fixed | random_per_flow | random_per_leaf";
        /// Other flows are those that are neither in-cast flows nor of the second class.
        background_priority: u32 = 1, "queue of other flows where flow_priority is fixed";
        /// In-cast flows are those that start as a group.
        incast_priority: u32 = 1, "queue of in-cast flows, unless flow_priority is in_turn";
        second_priority: u32 = 2, "queue of flows of the second class, unless flow_priority is in_turn";
        /// With `flow`, packets without data take the queue of their flow's data.
        ack_queue: AckQueue = AckQueue::OfFlow, "queue of ACKs and SYNs: its number, or flow";
        scheduler: Scheduler = Scheduler::Rr, "which queue of a port comes next: rr | drr | strict | strict+drr";
        /// Multiples of a full packet, separated by commas; without them each queue has one.
        weights as queue_weights: PerQueue = PerQueue::default(), "drr: bytes of each queue in its turn, in full packets";
        /// Strict queues come before the others, which share by deficit round robin.
        strict as strict_queues: u32 = 1, "strict+drr: number of queues that are served strictly";
        /// The values replace the `alpha` of a policy that has one, and are separated by commas.
        /// Policies without an α do not read them.
        alpha as queue_alpha: PerQueue = PerQueue::default(), "control factor of each queue; none: that of the policy";
        /// These packets count neither in the queue nor in the buffer; the packet being serialised is
        /// one of them. This is ns-3's device queue below a marking queue discipline. Needs
        /// `count_in_service` to be false.
        uncounted_packets as ecn_uncounted_packets: u32 = 0, "packets at the head of a queue that count nowhere";
        /// The scheduler hands packets on to the device while it has room. Packets there count neither
        /// in queues nor in the buffer, and no policy, mark or telemetry sees them. This is ns-3's
        /// device queue. Needs `count_in_service` to be false.
        device_fifo_packets: u32 = 0, "packets of a port behind its scheduler, in a queue of the device";
    }
}

named! {
    /// Queues that generated flows use.
    FlowPriority {
        /// All queues in turn.
        InTurn = "in_turn",
        /// Queue `background_priority`.
        Fixed = "fixed",
        /// Each flow a random queue from 1 on.
        RandomPerFlow = "random_per_flow",
        /// The flows of a leaf's hosts one random queue from 1 on.
        RandomPerLeaf = "random_per_leaf",
    }
}

named! {
    /// Order in which a port serves its queues.
    Scheduler {
        /// One packet of every queue in turn.
        Rr = "rr",
        /// A number of bytes of every queue in turn: deficit round robin (Shreedhar and Varghese,
        /// SIGCOMM 1995) with a quantum of `queue_weights` full packets.
        Drr = "drr",
        /// The queue of the lowest number that is not empty.
        Strict = "strict",
        /// The first `strict_queues` queues strictly, then the others by deficit round robin.
        StrictDrr = "strict+drr",
    }
}

impl Scheduler {
    /// Returns true if queues have weights.
    pub fn has_weights(self) -> bool {
        matches!(self, Scheduler::Drr | Scheduler::StrictDrr)
    }
}

/// The queue of packets without data: acknowledgements, SYNs and their answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize)]
#[serde(into = "String")]
pub enum AckQueue {
    /// The queue of their flow's data.
    #[default]
    OfFlow,
    /// The queue with this number, from 0.
    Number(u32),
}

impl AckQueue {
    /// Text form of [`OfFlow`](AckQueue::OfFlow).
    const OF_FLOW: &'static str = "flow";
}

/// A text that names no queue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected the number of a queue or flow, found `{}`", excerpt(.0))]
pub struct NoQueue(String);

impl fmt::Display for AckQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AckQueue::OfFlow => f.pad(AckQueue::OF_FLOW),
            AckQueue::Number(queue) => queue.fmt(f),
        }
    }
}

impl FromStr for AckQueue {
    type Err = NoQueue;

    fn from_str(text: &str) -> Result<AckQueue, NoQueue> {
        if text == AckQueue::OF_FLOW {
            return Ok(AckQueue::OfFlow);
        }
        let queue = text.parse().map_err(|_| NoQueue(text.to_owned()))?;
        Ok(AckQueue::Number(queue))
    }
}

impl From<AckQueue> for String {
    fn from(queue: AckQueue) -> String {
        queue.to_string()
    }
}

/// A number above 0 for each queue of a port, in the order of the queues; or none, which is written as
/// an empty text.
#[derive(Clone, Debug, PartialEq, Default, Serialize)]
#[serde(into = "String")]
pub struct PerQueue(Vec<f64>);

/// A text that is not a list of numbers above 0.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("expected numbers above 0 separated by commas, such as 1,0.5, found `{}`", excerpt(.0))]
pub struct NotPerQueue(String);

impl PerQueue {
    /// Returns true if there are no numbers.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The numbers, by queue.
    pub fn values(&self) -> &[f64] {
        &self.0
    }
}

impl fmt::Display for PerQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, value) in self.0.iter().enumerate() {
            let before = if place == 0 { "" } else { "," };
            write!(f, "{before}{value}")?;
        }
        Ok(())
    }
}

impl FromStr for PerQueue {
    type Err = NotPerQueue;

    fn from_str(text: &str) -> Result<PerQueue, NotPerQueue> {
        if text.trim().is_empty() {
            return Ok(PerQueue::default());
        }
        let number = |part: &str| {
            let value = part.trim().parse::<f64>().ok();
            value.filter(|value| value.is_finite() && *value > 0.0)
        };
        let numbers: Option<Vec<f64>> = text.split(',').map(number).collect();
        numbers
            .map(PerQueue)
            .ok_or_else(|| NotPerQueue(text.to_owned()))
    }
}

impl From<PerQueue> for String {
    fn from(numbers: PerQueue) -> String {
        numbers.to_string()
    }
}

impl QueueSettings {
    pub(super) fn validate(&self, check: &Checks<'_>) -> Result<(), ScenarioError> {
        let outside_buffer = u64::from(self.uncounted_packets);
        check.within("ecn_uncounted_packets", outside_buffer, 0, 1_000)?;
        if outside_buffer > 0 && self.count_in_service {
            let problem = "must be 0 where count_in_service is true";
            return check.invalid("ecn_uncounted_packets", outside_buffer, problem);
        }
        let device = u64::from(self.device_fifo_packets);
        check.within("device_fifo_packets", device, 0, 100_000)?;
        if device > 0 && (self.count_in_service || outside_buffer > 0) {
            let problem = "needs count_in_service false and ecn_uncounted_packets 0; must be 0 \
                           otherwise";
            return check.invalid("device_fifo_packets", device, problem);
        }
        check.within("queues_per_port", self.queues_per_port.into(), 1, 8)?;
        check.within("background_priority", self.background_priority.into(), 0, 7)?;
        check.within("incast_priority", self.incast_priority.into(), 0, 7)?;
        check.within("second_priority", self.second_priority.into(), 0, 7)?;
        if outside_buffer > 0 && self.queues_per_port > 1 {
            let problem = "must be 0 where queues_per_port is above 1";
            return check.invalid("ecn_uncounted_packets", outside_buffer, problem);
        }
        let queues = self.queues_per_port;
        if let AckQueue::Number(queue) = self.ack_queue
            && queue >= queues
        {
            let problem = format!("ports have {queues} queues; must be below that, or flow");
            return check.invalid("ack_queue", queue, problem);
        }
        for (field, numbers) in [
            ("queue_weights", &self.weights),
            ("queue_alpha", &self.alpha),
        ] {
            let count = numbers.values().len();
            if !numbers.is_empty() && count != queues as usize {
                let problem = format!(
                    "{count} numbers, but ports have queues_per_port = {queues}; must be one for \
                     each, or none"
                );
                return check.invalid(field, numbers, problem);
            }
        }
        let weights = self.weights.values();
        if !weights.iter().all(|weight| WEIGHTS.contains(weight)) {
            let (low, high) = (WEIGHTS.start(), WEIGHTS.end());
            let problem = format!("must be from {low} to {high} each");
            return check.invalid("queue_weights", &self.weights, problem);
        }
        if !weights.is_empty() && !self.scheduler.has_weights() {
            let problem = format!("scheduler {} has no weights; must be empty", self.scheduler);
            return check.invalid("queue_weights", &self.weights, problem);
        }
        check.within("strict_queues", u64::from(self.strict), 1, 8)
    }
}

impl Scenario {
    /// The number of queues of the switch, those of all ports together.
    pub fn queue_count(&self) -> usize {
        self.port_count() * self.queues.queues_per_port as usize
    }

    /// Bytes that each queue of a port may send in its turn, deficit round robin: a full packet, or
    /// `queue_weights` of them.
    pub(crate) fn quanta(&self) -> Vec<u64> {
        let full = self.full_packet_bytes();
        match self.queues.weights.values() {
            [] => vec![full; self.queues.queues_per_port as usize],
            weights => weights
                .iter()
                .map(|weight| floor_u64(weight * full as f64).max(1))
                .collect(),
        }
    }

    /// Returns the number of packets at the head of a queue that count neither in it nor in the buffer.
    pub fn uncounted_packets(&self) -> usize {
        if self.queues.count_in_service {
            0
        } else {
            self.queues.uncounted_packets.max(1) as usize
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read_back() {
        for text in ["flow", "0", "7"] {
            assert_eq!(text.parse::<AckQueue>().unwrap().to_string(), text);
        }
        for text in ["", "1", "1,0.5,0.0625"] {
            assert_eq!(text.parse::<PerQueue>().unwrap().to_string(), text);
        }
        assert_eq!("64, 1".parse::<PerQueue>().unwrap().values(), [64.0, 1.0]);
    }

    #[test]
    fn mistakes_are_refused() {
        for text in ["", "first", "-1", "1.5"] {
            assert!(text.parse::<AckQueue>().is_err(), "{text}");
        }
        for text in ["0", "1,,2", "1;2", "nan", "inf", "1,-1"] {
            assert!(text.parse::<PerQueue>().is_err(), "{text}");
        }
    }
}
