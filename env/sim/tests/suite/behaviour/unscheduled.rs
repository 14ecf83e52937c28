//! Packets that switches are told to be unscheduled.

use std::collections::BTreeMap;

use bufgym_sim::network::{HostObserver, LeafSpine, Observer, SwitchId, SwitchObserver};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::{PacketView, PolicySpec, View};
use bufgym_sim::traffic::{FlowSpec, Trace};
use bufgym_sim::units::Instant;

/// Runs two hosts of leaf 0 that send 1 MB each to one of leaf 1, whose port is too narrow for their
/// first windows.
fn observed(changes: &[&str]) -> Labels {
    let mut scenario = Scenario::preset("leafspine-4x4").unwrap();
    let lossy = ["buffer_bytes_per_port_gbps=0", "buffer_bytes=60000"];
    for change in lossy.iter().chain(changes) {
        scenario.set(change).unwrap();
    }
    let flow = |src| FlowSpec {
        id: u64::from(src),
        src,
        dst: 4,
        start: Instant::ZERO,
        size: 1_000_000,
        kind: 0,
        query: -1,
        priority: 0,
    };
    let trace = Trace {
        flows: vec![flow(0), flow(1)],
        ..Trace::default()
    };
    let policy = PolicySpec::baseline();
    let mut simulator = policy
        .simulator::<LeafSpine>(&scenario, &trace)
        .unwrap()
        .observed(Labels::default());
    while simulator.step() {}
    simulator.observer().clone()
}

/// Packets that came to leaf 0: payload and label of each flow's data, in order, and the counts of
/// other packets that are unscheduled and that are not.
#[derive(Clone, Default, Debug)]
struct Labels {
    data: BTreeMap<u32, Vec<(u64, bool)>>,
    control: [u64; 2],
}

/// Wire bytes on top of the payload.
const HEADER: u64 = 54;

impl SwitchObserver for Labels {
    fn arriving(&mut self, at: SwitchId, _view: View<'_>, packet: PacketView) {
        if at != SwitchId(0) {
            return;
        }
        let forward = packet.flow & 1 == 0;
        // SYNs have 58 bytes, and the last segment 434.
        if forward && packet.bytes > 100 {
            let sent = self.data.entry(packet.flow).or_default();
            sent.push((packet.bytes - HEADER, packet.unscheduled));
        } else {
            self.control[usize::from(!packet.unscheduled)] += 1;
        }
    }
}

impl HostObserver for Labels {}
impl Observer for Labels {}

#[test]
fn the_first_bandwidth_delay_product_is_unscheduled_with_its_retransmissions() {
    let labels = observed(&["unscheduled=first_bdp"]);
    assert_eq!(labels.data.len(), 2);
    for sent in labels.data.values() {
        let mut before = 0;
        for (bytes, unscheduled) in sent {
            assert_eq!(*unscheduled, before < 100_000, "after {before} B");
            before += bytes;
        }
        assert!(before > 1_000_000, "some were lost");
        // 71 segments have 99,400 B.
        let first = sent.iter().filter(|(_, unscheduled)| *unscheduled).count();
        assert_eq!(first, 72);
    }
    let [unscheduled, others] = labels.control;
    assert!(unscheduled > 1_000 && others == 0);
}

/// The initial window has 71 segments; acknowledgements are never unscheduled.
#[test]
fn the_first_round_trip_is_unscheduled() {
    for changes in [&[][..], &["init_cwnd=5"]] {
        let labels = observed(changes);
        let window = if changes.is_empty() { 71 } else { 5 };
        for sent in labels.data.values() {
            let last = sent.iter().rposition(|(_, unscheduled)| *unscheduled);
            assert_eq!(last, Some(window - 1));
        }
        assert_eq!(labels.control[0], 0);
    }
}

/// For RDMA the 55 packets up to offset 54,000 are unscheduled; for TCP the packets that leave before
/// 100,000 B have left, that is 100 segments of 1,000 B. Packets without data never are.
#[test]
fn reverie_counts_offsets_of_rdma_and_bytes_sent_of_tcp() {
    for (transport, first) in [("dcqcn", 55), ("powertcp-rdma", 55), ("cubic", 100)] {
        let labels = observed(&[
            "unscheduled=reverie",
            "mss=1000",
            "buffer_bytes=10e6",
            &format!("transport={transport}"),
        ]);
        assert_eq!(labels.data.len(), 2);
        for sent in labels.data.values() {
            let (begin, end) = sent.split_at(first);
            assert!(
                begin.iter().all(|(_, unscheduled)| *unscheduled),
                "{transport}"
            );
            assert!(
                end.iter().all(|(_, unscheduled)| !unscheduled),
                "{transport}"
            );
            assert_eq!(sent.len(), 1_000, "{transport}");
        }
        let [unscheduled, others] = labels.control;
        assert!(unscheduled == 0 && others > 1_000, "{transport}");
    }
}
