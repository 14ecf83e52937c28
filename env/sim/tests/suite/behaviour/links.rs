//! Networks given by their links.

use std::fmt::Write;

use bufgym_sim::scenario::{Ecmp, RangeU32, Scenario, SlowdownBase, TopologyKind};
use bufgym_sim::switch::PolicySpec;
use bufgym_sim::traffic::{FlowSpec, Trace};
use bufgym_sim::units::{Duration, Instant};
use proptest::prelude::*;

use crate::behaviour::fabric::{any_fabric, results};
use crate::behaviour::setup::{Setup, config};

/// Returns the links of a leaf-spine network, in the order of its ports.
fn links_of(scenario: &Scenario) -> String {
    let mut links = String::new();
    let mut link = |a: String, b: String, rate: u64| {
        let delay = scenario.network.propagation_ns;
        write!(links, "{a},{b},{rate},{delay} ").expect("a text has room");
    };
    for host in 0..scenario.network.ports {
        let leaf = host / scenario.network.hosts_per_leaf;
        link(
            format!("h{host}"),
            format!("leaf{leaf}"),
            scenario.network.rate_bps,
        );
    }
    for leaf in 0..scenario.network.leaves {
        for spine in 0..scenario.network.spines {
            for _ in 0..scenario.network.links_per_pair {
                let rate = scenario.fabric_rate().0;
                link(format!("leaf{leaf}"), format!("spine{spine}"), rate);
            }
        }
    }
    links
}

fn with_links(scenario: &Scenario, links: &str) -> Scenario {
    let mut scenario = scenario.clone();
    scenario
        .set(&format!("topology={links}"))
        .expect("the links are a network");
    scenario
}

proptest! {
    #![proptest_config(config())]

    /// A leaf-spine network has the same results if it is given by its links, whatever the rule for equal paths.
    #[test]
    fn a_leaf_spine_network_equals_its_links(setup in any_fabric()) {
        let Setup { mut scenario, policy, trace } = setup;
        scenario.traffic.slowdown_base = SlowdownBase::Pipeline;
        prop_assume!(scenario.network.ecmp != Ecmp::Spray);
        let linked = with_links(&scenario, &links_of(&scenario));
        prop_assert_eq!(scenario.network.base_rtt_ns, linked.network.base_rtt_ns);
        let expected = policy.run(&scenario, &trace).expect("the set-up is valid");
        let found = policy.run(&linked, &trace).expect("the set-up is valid");
        prop_assert_eq!(results(&expected), results(&found));
        let slowdowns = |outcome: &bufgym_sim::network::Outcome| -> Vec<Option<f64>> {
            outcome.records.iter().map(|record| record.slowdown).collect()
        };
        prop_assert_eq!(slowdowns(&expected), slowdowns(&found));
    }
}

/// Two hosts and three switches in a chain, with links of different rates and delays.
const CHAIN: &str = "h0,west,1e9,1000 h1,east,1e9,1000 west,middle,4e8,50000 middle,east,2e9,7000";

/// A packet of 1,460 B takes 1,518 B on the wire: 12,144 ns at 1 Gbit/s, 30,360 ns at 400 Mbit/s, 6,072 at 2 Gbit/s.
/// Two packets wait for each other at the slow link alone.
#[test]
fn every_link_has_its_rate_and_its_delay() {
    let mut scenario = with_links(&Scenario::default(), CHAIN);
    (
        scenario.traffic.active_ports,
        scenario.traffic.incast_degree,
    ) = (RangeU32::new(1, 1), RangeU32::new(1, 1));
    assert_eq!(
        (scenario.network.ports, scenario.network.propagation_ns),
        (2, 1_000)
    );
    let trace = Trace {
        flows: vec![FlowSpec {
            id: 0,
            src: 0,
            dst: 1,
            size: 2 * 1_460,
            start: Instant::ZERO,
            query: -1,
            kind: 0,
            priority: 0,
        }],
        ..Trace::default()
    };
    let dt: PolicySpec = "dt".parse().expect("a policy");
    let outcome = dt.run(&scenario, &trace).expect("the network is valid");
    let delays = 1_000 + 50_000 + 7_000 + 1_000;
    let expected = Duration::from_ns(12_144 + 2 * 30_360 + 6_072 + 12_144 + delays);
    assert_eq!(outcome.records[0].fct, Some(expected));
    assert_eq!(outcome.records[0].slowdown, Some(1.0));
}

/// The message for links that are not a network.
fn refused(links: &str) -> String {
    let error = links.parse::<TopologyKind>().expect_err("not a network");
    error.to_string()
}

#[test]
fn links_that_are_no_network_are_refused() {
    for (links, expected) in [
        ("h0,a,1e9", "link 1: `h0,a,1e9` is not a link"),
        ("h0,a,1e9,0 h2,a,1e9,0", "h2 is beyond h1"),
        ("h0,a,1e9,0 h0,b,1e9,0", "h0 has a link already"),
        ("h0,h1,1e9,0", "two hosts"),
        ("h0,a,1e9,0 a,a,1e9,0", "same switch"),
        ("h0,a,1e9,0 h1,b,1e9,0", "no path leads from a to b"),
        ("h0,a,1e9,0 h1,a,2e9,0", "the links of h0 and h1 differ"),
        ("h0,a,1e9,0", "1 hosts; must be at least two"),
        ("h0,a,fast,0 h1,a,1e9,0", "rate_bps is `fast`"),
        ("h0,a,1e9,-1 h1,a,1e9,0", "delay_ns is `-1`"),
        ("h0,a b,1e9,0", "is not a link"),
        ("/nowhere/links.csv", "cannot read the links"),
        ("leafspin", "did you mean"),
    ] {
        let message = refused(links);
        assert!(message.contains(expected), "{links}: {message}");
    }
}
