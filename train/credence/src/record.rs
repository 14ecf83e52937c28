//! Arrivals under Longest Queue Drop, and which of them it lost.

use std::collections::VecDeque;

use bufgym_sim::convert::{floor_u64, floor_usize};
use bufgym_sim::network::{HostObserver, Observer, SimError, Simulator};
use bufgym_sim::rng::{Split, trace_seed};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::policy::{Averages, Features, LongestQueueDrop};
use bufgym_sim::switch::{Loss, PacketView, SwitchId, SwitchObserver, View};
use bufgym_sim::traffic;
use bufgym_sim::units::Time;
use rayon::prelude::*;

/// Share of the traces to learn from; the others are for the scores.
const TRAIN_SHARE: f64 = 0.6;

/// A packet that arrived at the switch.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Arrival {
    /// When.
    pub at: Time,
    /// For which queue.
    pub queue: u32,
    /// Wire bytes.
    pub bytes: u32,
    /// What an oracle sees of it.
    pub features: Features,
    /// LQD dropped it, then or later.
    pub lost: bool,
}

/// Labelled arrivals, trace by trace.
#[derive(Clone, Debug)]
pub struct Data {
    /// To learn from.
    pub train: Vec<Vec<Arrival>>,
    /// To judge by. Whole traces: neighbours in a trace are nearly copies of each other.
    pub test: Vec<Vec<Arrival>>,
}

/// Bytes that the arrivals of a trace take at least, on average over the traces of the scenario.
pub fn arrivals_memory(scenario: &Scenario) -> u64 {
    let packets = scenario.mean_over_sizes(|size| size.div_ceil(u64::from(scenario.mss)) as f64);
    let bytes = packets * scenario.mean_flows() as f64 * size_of::<Arrival>() as f64;
    floor_u64(bytes)
}

/// Simulates training traces `0..traces` of experiment `seed` under LQD. The first 60 % of them,
/// rounded, but neither none nor all, are to learn from.
///
/// # Errors
/// When the scenario is inconsistent.
pub fn record(scenario: &Scenario, seed: u64, traces: u64) -> Result<Data, SimError> {
    let recorded: Result<Vec<_>, _> = (0..traces)
        .into_par_iter()
        .map(|index| record_trace(scenario, trace_seed(Split::Train, seed, index)))
        .collect();
    let mut train = recorded?;
    let split = floor_usize((train.len() as f64 * TRAIN_SHARE).round());
    let test = train.split_off(split.clamp(1, train.len().saturating_sub(1).max(1)));
    Ok(Data { train, test })
}

fn record_trace(scenario: &Scenario, seed: u64) -> Result<Vec<Arrival>, SimError> {
    let trace = traffic::generate(scenario, seed);
    let simulator = Simulator::new(scenario, &trace, LongestQueueDrop)?;
    let mut simulator = simulator.observed(ArrivalRecorder::new(scenario));
    simulator.run();
    Ok(std::mem::take(&mut simulator.observer_mut().arrivals))
}

/// Notes what arrives at the switch and what it loses.
#[derive(Clone, Debug)]
struct ArrivalRecorder {
    averages: Averages,
    arrivals: Vec<Arrival>,
    /// The arrivals that are in each queue, the one in service first.
    queued: Vec<VecDeque<usize>>,
}

impl ArrivalRecorder {
    fn new(scenario: &Scenario) -> ArrivalRecorder {
        let queues = scenario.port_count() * scenario.queues_per_port as usize;
        ArrivalRecorder {
            averages: Averages::new(scenario),
            arrivals: Vec::new(),
            queued: vec![VecDeque::new(); queues],
        }
    }
}

impl SwitchObserver for ArrivalRecorder {
    fn arriving(&mut self, _at: SwitchId, view: View<'_>, packet: PacketView) {
        self.arrivals.push(Arrival {
            at: view.now,
            queue: u32::try_from(packet.queue).expect("a switch has at most 65,536 queues"),
            bytes: u32::try_from(packet.bytes).expect("a packet has less than 64 KiB"),
            features: self.averages.observe(view, packet.queue),
            lost: false,
        });
    }

    fn enqueued(&mut self, _at: SwitchId, _view: View<'_>, packet: PacketView) {
        self.queued[packet.queue].push_back(self.arrivals.len() - 1);
    }

    fn departed(&mut self, _at: SwitchId, _view: View<'_>, packet: PacketView) {
        self.queued[packet.queue].pop_front();
    }

    /// LQD pushes out at the tail, queue management drops at the head; any other loss is that of the
    /// last arrival.
    fn lost(&mut self, _at: SwitchId, _view: View<'_>, packet: PacketView, loss: Loss) {
        let lost = match loss {
            Loss::PushedOut => self.queued[packet.queue].pop_back(),
            Loss::Head => self.queued[packet.queue].pop_front(),
            _ => self.arrivals.len().checked_sub(1),
        };
        if let Some(arrival) = lost.and_then(|lost| self.arrivals.get_mut(lost)) {
            arrival.lost = true;
        }
    }
}

impl HostObserver for ArrivalRecorder {}

impl Observer for ArrivalRecorder {}

#[cfg(test)]
mod tests {
    use bufgym_sim::switch::PolicySpec;

    use super::*;

    #[test]
    fn every_arrival_of_lqd_is_noted_and_every_loss() {
        let scenario = Scenario::default();
        let data = record(&scenario, 1, 3).unwrap();
        assert_eq!((data.train.len(), data.test.len()), (2, 1));
        for (index, arrivals) in data.train.iter().chain(&data.test).enumerate() {
            let trace = traffic::generate(&scenario, trace_seed(Split::Train, 1, index as u64));
            let lqd = PolicySpec::named("lqd");
            let summary = lqd.simulator(&scenario, &trace).unwrap().run().summary;
            let lost = arrivals.iter().filter(|arrival| arrival.lost).count() as u64;
            assert_eq!(lost, summary.drops);
            assert!(arrivals.len() as u64 >= summary.packets_forwarded + lost);
            assert!(arrivals.is_sorted_by_key(|arrival| arrival.at));
            for arrival in arrivals {
                assert!(
                    arrival
                        .features
                        .iter()
                        .all(|share| (0.0..=1.0).contains(share))
                );
            }
        }
    }
}
