//! Labelled arrivals under Longest Queue Drop (LQD): lost or kept.

use std::collections::VecDeque;

use bufgym_sim::network::{HostObserver, LeafSpine, Observer, SimError, Simulator};
use bufgym_sim::scenario::{Scenario, Tier};
use bufgym_sim::switch::policy::{Averages, Features, LongestQueueDrop};
use bufgym_sim::switch::{Loss, PacketView, SwitchId, SwitchObserver, View};
use bufgym_sim::traffic;
use bufgym_sim::units::Instant;
use bufgym_util::convert::{floor_u64, floor_usize};
use bufgym_util::rng::{Split, trace_seed};
use rayon::prelude::*;

/// Share of the traces for training; the others are for the scores.
const TRAIN_SHARE: f64 = 0.6;

/// A packet that arrived at the switch.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Arrival {
    /// Time of the arrival.
    pub at: Instant,
    /// Queue of the packet.
    pub queue: u32,
    /// Wire bytes.
    pub bytes: u32,
    /// Features that an oracle sees.
    pub features: Features,
    /// LQD dropped it, then or later.
    pub lost: bool,
}

/// Labelled arrivals, trace by trace.
#[derive(Clone, Debug)]
pub struct Data {
    /// Traces for training.
    pub train: Vec<Vec<Arrival>>,
    /// Traces for the scores. Whole traces, because neighbours in a trace are nearly copies of each other.
    pub test: Vec<Vec<Arrival>>,
}

/// Returns the least bytes of a trace's arrivals, on average over the traces of the scenario.
pub fn arrivals_memory(scenario: &Scenario) -> u64 {
    let packets =
        scenario.mean_over_sizes(|size| size.div_ceil(u64::from(scenario.packets.mss)) as f64);
    let bytes = packets * scenario.mean_flows() as f64 * size_of::<Arrival>() as f64;
    // Across leaves a packet arrives at three switches, and so does its acknowledgement.
    let switches = if scenario.is_fabric() { 6.0 } else { 1.0 };
    floor_u64(switches * bytes)
}

/// Simulates training traces `0..traces` of experiment `seed` under LQD. The first 60 % of them, rounded, but neither
/// none nor all, are for training.
///
/// # Errors
/// When the scenario is inconsistent.
pub fn record(scenario: &Scenario, seed: u64, traces: u64) -> Result<Data, SimError> {
    let recorded: Result<Vec<_>, _> = (0..traces)
        .into_par_iter()
        .map(|index| record_trace(scenario, trace_seed(Split::Train, seed, index)))
        .collect();
    let [train, test] = split(recorded?);
    Ok(Data { train, test })
}

/// Same as [`record`], for a network: the arrivals at all leaves and those at all spines. The arrivals at one switch in
/// a trace count as a trace of their own. Either all of a trace are for training, or none.
///
/// # Errors
/// When the scenario is inconsistent.
pub fn record_network(scenario: &Scenario, seed: u64, traces: u64) -> Result<[Data; 2], SimError> {
    let recorded: Result<Vec<_>, _> = (0..traces)
        .into_par_iter()
        .map(|index| record_switches(scenario, trace_seed(Split::Train, seed, index)))
        .collect();
    let leaves = scenario.network.leaves as usize;
    let by_kind = split(recorded?).map(|traces| by_kind(traces, leaves));
    let [[leaves_train, spines_train], [leaves_test, spines_test]] = by_kind;
    let data = |train, test| Data { train, test };
    Ok([
        data(leaves_train, leaves_test),
        data(spines_train, spines_test),
    ])
}

/// Splits the arrivals of all traces into those at leaves and those at spines. Every trace has its leaves first.
fn by_kind(traces: Vec<Vec<Vec<Arrival>>>, leaves: usize) -> [Vec<Vec<Arrival>>; 2] {
    let mut kinds = [Vec::new(), Vec::new()];
    for mut switches in traces {
        kinds[1].extend(switches.split_off(leaves));
        kinds[0].extend(switches);
    }
    kinds
}

/// Returns the items for training, and those for the scores.
fn split<T>(mut train: Vec<T>) -> [Vec<T>; 2] {
    let count = floor_usize((train.len() as f64 * TRAIN_SHARE).round());
    let test = train.split_off(count.clamp(1, train.len().saturating_sub(1).max(1)));
    [train, test]
}

/// Returns the arrivals at every switch of the network, leaves first.
fn record_switches(scenario: &Scenario, seed: u64) -> Result<Vec<Vec<Arrival>>, SimError> {
    let trace = traffic::generate(scenario, seed);
    let topology = LeafSpine::of(scenario, trace.seed);
    let capacity = |at: &Scenario| at.network.buffer_bytes;
    let policy = |_, _: &Scenario| Ok(LongestQueueDrop);
    let simulator = Simulator::in_network(scenario, &trace, topology, capacity, policy)?;
    let mut simulator = simulator.observed(NetworkRecorder::new(scenario));
    simulator.run();
    let switches = std::mem::take(&mut simulator.observer_mut().switches);
    let arrivals = switches.into_iter().map(|recorder| recorder.arrivals);
    Ok(arrivals.collect())
}

fn record_trace(scenario: &Scenario, seed: u64) -> Result<Vec<Arrival>, SimError> {
    let trace = traffic::generate(scenario, seed);
    let simulator = Simulator::new(scenario, &trace, LongestQueueDrop)?;
    let mut simulator = simulator.observed(ArrivalRecorder::new(scenario));
    simulator.run();
    Ok(std::mem::take(&mut simulator.observer_mut().arrivals))
}

/// Records the arrivals and the losses of the switch.
#[derive(Clone, Debug)]
struct ArrivalRecorder {
    averages: Averages,
    arrivals: Vec<Arrival>,
    /// The arrivals that are in each queue, the one in service first.
    queued: Vec<VecDeque<usize>>,
}

impl ArrivalRecorder {
    fn new(scenario: &Scenario) -> ArrivalRecorder {
        let queues = scenario.port_count() * scenario.queues.queues_per_port as usize;
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

    /// Marks the lost arrival. LQD pushes out at the tail, queue management drops at the head, and any other loss is
    /// that of the last arrival.
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

/// A recorder for every switch.
#[derive(Clone, Debug)]
struct NetworkRecorder {
    switches: Vec<ArrivalRecorder>,
}

impl NetworkRecorder {
    fn new(scenario: &Scenario) -> NetworkRecorder {
        let of = |tier, count: u32| {
            let recorder = ArrivalRecorder::new(&scenario.at_switch(tier));
            std::iter::repeat_n(recorder, count as usize)
        };
        let leaves = of(Tier::Leaf, scenario.network.leaves);
        NetworkRecorder {
            switches: leaves
                .chain(of(Tier::Spine, scenario.network.spines))
                .collect(),
        }
    }
}

impl SwitchObserver for NetworkRecorder {
    fn arriving(&mut self, at: SwitchId, view: View<'_>, packet: PacketView) {
        self.switches[usize::from(at.0)].arriving(at, view, packet);
    }

    fn enqueued(&mut self, at: SwitchId, view: View<'_>, packet: PacketView) {
        self.switches[usize::from(at.0)].enqueued(at, view, packet);
    }

    fn departed(&mut self, at: SwitchId, view: View<'_>, packet: PacketView) {
        self.switches[usize::from(at.0)].departed(at, view, packet);
    }

    fn lost(&mut self, at: SwitchId, view: View<'_>, packet: PacketView, loss: Loss) {
        self.switches[usize::from(at.0)].lost(at, view, packet, loss);
    }
}

impl HostObserver for NetworkRecorder {}

impl Observer for NetworkRecorder {}

#[cfg(test)]
mod tests {
    use bufgym_sim::switch::PolicySpec;

    use super::*;

    #[test]
    fn a_network_has_the_losses_of_its_leaves_and_of_its_spines() {
        let mut scenario = Scenario::preset("leafspine-4x4").unwrap();
        let settings = ["measure_ms=20", "load=0.9", "query_share=1"];
        scenario.set_all(settings).unwrap();
        let [leaves, spines] = record_network(&scenario, 1, 2).unwrap();
        assert_eq!((leaves.train.len(), leaves.test.len()), (4, 4));
        assert_eq!((spines.train.len(), spines.test.len()), (2, 2));
        for (index, part) in [&leaves.train, &leaves.test].into_iter().enumerate() {
            let trace = traffic::generate(&scenario, trace_seed(Split::Train, 1, index as u64));
            let outcome = PolicySpec::named("lqd").run(&scenario, &trace).unwrap();
            let drops = |kind: &str| {
                let rows = outcome.switches.iter().filter(|row| row.kind == kind);
                rows.map(|row| row.drops).sum::<u64>()
            };
            let lost = |traces: &[Vec<Arrival>]| {
                let lost = traces.iter().flatten().filter(|arrival| arrival.lost);
                lost.count() as u64
            };
            let of_spines = [&spines.train, &spines.test][index];
            assert_eq!(lost(part), drops("leaf"));
            assert_eq!(lost(of_spines), drops("spine"));
            assert!(drops("leaf") + drops("spine") > 0);
        }
    }

    #[test]
    fn every_arrival_of_lqd_is_noted_and_every_loss() {
        let scenario = Scenario::default();
        let data = record(&scenario, 1, 3).unwrap();
        assert_eq!((data.train.len(), data.test.len()), (2, 1));
        for (index, arrivals) in data.train.iter().chain(&data.test).enumerate() {
            let trace = traffic::generate(&scenario, trace_seed(Split::Train, 1, index as u64));
            let lqd = PolicySpec::named("lqd");
            let summary = lqd.run(&scenario, &trace).unwrap().summary;
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
