//! The oracle of [`Credence`](crate::policy::Credence): predictions of the packets that LQD loses.

use std::collections::VecDeque;

use bufgym_util::rng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::policy::{Afterwards, LongestQueueDrop, Policy, Verdict, unit_only};
use super::queues::{Arrival, Queues};
use super::{Counts, NoObserver, Packet, SlottedError, Switch, run};

/// Returns, for each arrival, true if LQD drops it or pushes it out: the perfect oracle of Credence.
///
/// # Errors
/// [`SlottedError::UnitOnly`] for packets that are not unit packets.
pub fn drops_of_lqd(switch: &Switch, packets: &[Packet]) -> Result<Vec<bool>, SlottedError> {
    let mut recording = RecordingLqd {
        stored: vec![VecDeque::new(); switch.ports as usize],
        lost: vec![false; packets.len()],
    };
    let mut queues = Counts::new(switch);
    run(&mut queues, &mut recording, packets, None, &mut NoObserver)?;
    Ok(recording.lost)
}

/// LQD that records which arrivals it loses. [`Counts`] holds lengths only, so the policy keeps the
/// packets itself.
struct RecordingLqd {
    /// The arrivals in each queue, by index.
    stored: Vec<VecDeque<usize>>,
    lost: Vec<bool>,
}

impl Policy for RecordingLqd {
    fn check(&self, packets: &[Packet]) -> Result<(), SlottedError> {
        unit_only("credence", packets)
    }

    fn admit<Q: Queues>(&mut self, queues: &Q, arrival: &Arrival) -> Verdict {
        let verdict = LongestQueueDrop.admit(queues, arrival);
        if let Verdict::PushOut(port, _) = verdict
            && let Some(last) = self.stored[port].pop_back()
        {
            self.lost[last] = true;
        }
        if verdict == Verdict::Drop {
            self.lost[arrival.index] = true;
        } else {
            self.stored[arrival.port()].push_back(arrival.index);
        }
        verdict
    }

    fn after_transmission<Q: Queues>(&mut self, _queues: &Q, _transmitted: u64) -> Afterwards {
        for queue in &mut self.stored {
            queue.pop_front();
        }
        Afterwards::Keep
    }
}

/// Returns the predictions, each inverted with probability `flip`.
///
/// One random number is drawn for each prediction. So with the same stream, a prediction that is
/// inverted at one probability is also inverted at every higher one.
pub fn flipped(drops: &[bool], flip: f64, mut random: Xoshiro256PlusPlus) -> Vec<bool> {
    drops
        .iter()
        .map(|drop| drop ^ (rng::uniform(&mut random) < flip))
        .collect()
}
