//! Flow-aware policies in a network. Intelligent Buffer's drops beyond those of Dynamic Threshold hit
//! only elephants, and FAB drops no packets of mice while it drops elephants.

use std::collections::BTreeMap;

use bufgym_sim::network::Simulator;
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::{AnyPolicy, Loss, PacketView, Policy, PolicySpec, Verdict, View};
use bufgym_sim::traffic::{FlowSpec, Trace};
use bufgym_sim::units::Instant;

/// A packet that the policy refused.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Refusal {
    /// Number of the flow, and direction.
    flow: u32,
    /// Wire bytes that the flow has sent, this packet's included.
    sent: u64,
    /// Length of the queue over free bytes.
    crowding: f64,
}

/// Records the refused packets and their circumstances.
#[derive(Clone, Debug)]
struct Observed {
    inner: AnyPolicy,
    /// Wire bytes that have arrived, by flow and direction.
    sent: BTreeMap<u32, u64>,
    refusals: Vec<Refusal>,
}

impl Observed {
    /// Returns the refusals that Dynamic Threshold with this α would accept.
    fn beyond(&self, alpha: f64) -> Vec<Refusal> {
        let refusals = self.refusals.iter().copied();
        refusals
            .filter(|refusal| refusal.crowding < alpha)
            .collect()
    }

    fn is_mouse(refusal: &Refusal) -> bool {
        refusal.flow >> 1 >= ELEPHANTS
    }
}

/// The first flows of the trace.
const ELEPHANTS: u32 = 2;

impl Policy for Observed {
    fn on_arrival(&mut self, view: View<'_>, packet: PacketView) -> Verdict {
        let sent = self.sent.entry(packet.flow).or_default();
        *sent += packet.bytes;
        let verdict = self.inner.on_arrival(view, packet);
        if verdict == Verdict::Drop {
            self.refusals.push(Refusal {
                flow: packet.flow,
                sent: *sent,
                crowding: view.buffer.queue(packet.queue) as f64 / view.buffer.free() as f64,
            });
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

/// Returns two elephants, and a mouse to the same port every 2 ms.
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
    let elephants = (0..2).map(|id| flow(id, 1 + id as u32, Instant::ZERO, 4_000_000));
    let mice = (0..25).map(|id| flow(2 + id, 3 + id as u32 % 8, Instant::from_ms(2 * id), 20_000));
    Trace {
        flows: elephants.chain(mice).collect(),
        kinds: vec![Trace::DEFAULT_KIND.to_owned()],
        seed: 0,
    }
}

fn observe(policy: &str) -> Observed {
    let scenario = Scenario::default().with(|scenario| {
        scenario.tcp.min_rto_us = 10_000;
    });
    let spec: PolicySpec = policy.parse().unwrap();
    let observed = Observed {
        inner: spec.build(&scenario).unwrap(),
        sent: BTreeMap::new(),
        refusals: Vec::new(),
    };
    let mut simulator = Simulator::new(&scenario, &elephants_and_mice(), observed).unwrap();
    let outcome = simulator.run();
    assert!(outcome.records.iter().all(|record| record.finish.is_some()));
    simulator.policy().clone()
}

#[test]
fn intelligent_buffer_drops_elephants_by_flow_and_mice_never() {
    let observed = observe("ib:mfair_bytes=20000,mfair_most_bytes=20000");
    let drops = observed.beyond(1.0);
    for elephant in 0..ELEPHANTS {
        // Number of the flow in the direction of its data.
        let flow = elephant << 1;
        assert!(drops.iter().filter(|drop| drop.flow == flow).count() >= 5);
    }
    for drop in drops {
        assert!(
            !Observed::is_mouse(&drop) && drop.sent > 1_000_000,
            "{drop:?}"
        );
    }
}

#[test]
fn without_a_trap_it_is_dynamic_threshold() {
    let observed = observe("ib:elephant_bytes=1000000000");
    assert!(observed.beyond(1.0).is_empty());
    assert_eq!(observe("dt").sent, observed.sent);
}

#[test]
fn fab_gives_the_first_bytes_of_a_flow_the_higher_factor() {
    const SHORT: u64 = 15 * 1_460;
    let observed = observe("fab");
    let refusals = &observed.refusals;
    // Mice end before they are long.
    assert!(
        refusals
            .iter()
            .filter(|refusal| !Observed::is_mouse(refusal))
            .count()
            > 100
    );
    assert!(!refusals.iter().any(Observed::is_mouse), "{refusals:?}");
    assert!(
        refusals
            .iter()
            .all(|refusal| refusal.sent >= SHORT && refusal.crowding >= 0.5)
    );
    assert!(
        observed
            .sent
            .iter()
            .all(|(flow, &sent)| flow >> 1 < ELEPHANTS || sent < SHORT)
    );
}

#[test]
fn fab_with_one_factor_is_dynamic_threshold_and_refuses_mice() {
    let observed = observe("fab:alpha_short=0.5");
    assert!(observed.refusals.iter().any(Observed::is_mouse));
    assert_eq!(observe("dt:alpha=0.5").refusals, observed.refusals);
}
