//! Intelligent Buffer in a network: what it drops beyond Dynamic Threshold belongs to elephants.

use std::collections::BTreeMap;

use bufgym_env::network::Simulator;
use bufgym_env::scenario::Scenario;
use bufgym_env::switch::{AnyPolicy, Loss, PacketView, Policy, PolicySpec, Verdict, View};
use bufgym_env::traffic::{FlowSpec, Trace};
use bufgym_env::units::Time;

/// Notes who is dropped where Dynamic Threshold with α = 1 would accept.
#[derive(Clone, Debug)]
struct Observed {
    inner: AnyPolicy,
    /// Wire bytes that have arrived, by flow and direction.
    sent: BTreeMap<u32, u64>,
    /// Bytes sent up to each such drop, by flow and direction.
    fair_drops: BTreeMap<u32, Vec<u64>>,
    other_drops: u64,
}

impl Policy for Observed {
    fn on_arrival(&mut self, view: View<'_>, packet: PacketView) -> Verdict {
        let sent = self.sent.entry(packet.flow).or_default();
        *sent += packet.bytes;
        let verdict = self.inner.on_arrival(view, packet);
        if verdict == Verdict::Drop {
            if view.buffer.queue(packet.queue) < view.buffer.free() {
                self.fair_drops.entry(packet.flow).or_default().push(*sent);
            } else {
                self.other_drops += 1;
            }
        }
        verdict
    }

    fn on_enqueue(&mut self, view: View<'_>, packet: PacketView) {
        self.inner.on_enqueue(view, packet);
    }

    fn on_departure(&mut self, view: View<'_>, packet: PacketView) {
        self.inner.on_departure(view, packet);
    }

    fn on_drop(&mut self, view: View<'_>, packet: PacketView, loss: Loss) {
        if loss == Loss::Full {
            *self.sent.entry(packet.flow).or_default() += packet.bytes;
        }
        self.inner.on_drop(view, packet, loss);
    }

    fn threshold(&self, view: View<'_>, queue: usize) -> Option<u64> {
        self.inner.threshold(view, queue)
    }
}

/// Two elephants, and a mouse to the same port every 2 ms.
fn elephants_and_mice() -> Trace {
    let flow = |id: u64, src, start, size| FlowSpec {
        id,
        src,
        dst: 0,
        start,
        size,
        kind: 0,
        query: -1,
        priority: 0,
    };
    let elephants = (0..2).map(|id| flow(id, 1 + id as u32, Time::ZERO, 4_000_000));
    let mice = (0..25).map(|id| flow(2 + id, 3 + id as u32 % 8, Time::from_ms(2 * id), 20_000));
    Trace {
        flows: elephants.chain(mice).collect(),
        kinds: vec![Trace::DEFAULT_KIND.to_owned()],
        seed: 0,
    }
}

fn observe(policy: &str) -> Observed {
    let scenario = Scenario {
        min_rto_us: 10_000,
        ..Scenario::default()
    };
    let spec: PolicySpec = policy.parse().unwrap();
    let observed = Observed {
        inner: spec.build(&scenario).unwrap(),
        sent: BTreeMap::new(),
        fair_drops: BTreeMap::new(),
        other_drops: 0,
    };
    let mut simulator = Simulator::new(&scenario, &elephants_and_mice(), observed).unwrap();
    let outcome = simulator.run();
    assert!(outcome.records.iter().all(|record| record.finish.is_some()));
    simulator.policy().clone()
}

#[test]
fn elephants_are_dropped_by_flow_and_mice_never() {
    let observed = observe("ib:mfair_bytes=20000,mfair_most_bytes=20000");
    // The flow's number and the direction of its data.
    let dropped: Vec<u32> = observed.fair_drops.keys().copied().collect();
    assert_eq!(dropped, [0 << 1, 1 << 1]);
    for drops in observed.fair_drops.values() {
        assert!(drops.iter().all(|&sent| sent > 1_000_000), "{drops:?}");
        assert!(drops.len() >= 5, "{drops:?}");
    }
}

#[test]
fn without_a_trap_it_is_dynamic_threshold() {
    let observed = observe("ib:elephant_bytes=1000000000");
    assert!(observed.fair_drops.is_empty());
    assert_eq!(observe("dt").sent, observed.sent);
}
