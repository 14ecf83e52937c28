//! `bench`: tests the output. Durations are not tested.

use serde_json::Value;

use crate::harness::Sandbox;

/// Returns a positive number; every number in JSON is finite.
fn positive(value: &Value) -> f64 {
    let number = value.as_f64().unwrap_or_else(|| panic!("{value}"));
    assert!(number > 0.0, "{value}");
    number
}

/// Every network has all fields, also the growing ones. The machine-independent ones are right: a packet
/// between leaves crosses three switches, and has two events on each of its four lines.
#[test]
fn networks_are_measured_beside_a_single_switch() {
    let printed = Sandbox::new()
        .ok("bench fabric --seconds 0.01 --json")
        .json();
    assert_eq!(printed["policy"], "dt");
    assert_eq!(printed["single"], "ndt-16x1g");
    let networks = printed["networks"].as_object().unwrap();
    assert_eq!(networks.len(), 4);
    let growth = printed["growth"].as_array().unwrap();
    let hosts: Vec<u64> = growth
        .iter()
        .map(|load| load["hosts"].as_u64().unwrap())
        .collect();
    assert_eq!(hosts, [16, 64, 256, 1_024]);
    for load in networks.values().chain(growth) {
        let ns = positive(&load["ns_per_packet"]);
        let rate = positive(&load["packets_per_s"]);
        assert!((ns * rate * 1e-9 - 1.0).abs() < 1e-9);
        positive(&load["ratio_to_single"]);
        let [hop, packet, hops] = ["events_per_hop", "events_per_packet", "hops_per_packet"]
            .map(|field| positive(&load[field]));
        assert!((hop * hops / packet - 1.0).abs() < 1e-9);
        if cfg!(target_os = "linux") {
            assert!(positive(&load["peak_bytes"]) < 1e9);
        }
    }
    let single = &networks["ndt-16x1g"];
    assert_eq!(
        (&single["switches"], &single["hosts"]),
        (&1.into(), &16.into())
    );
    assert_eq!(single["ratio_to_single"], 1.0);
    let network = &networks["abm-leafspine"];
    assert_eq!(
        (&network["switches"], &network["hosts"]),
        (&16.into(), &256.into())
    );
    // Few packets are lost, and timers and starts of flows are rare.
    assert!((positive(&network["hops_per_packet"]) - 3.0).abs() < 0.05);
    assert!((positive(&network["events_per_packet"]) - 8.0).abs() < 0.05);
}

#[test]
fn the_networks_are_given() {
    let sandbox = Sandbox::new();
    for other in ["--scenario leafspine-4x4", "--set load=0.5", "--policies"] {
        sandbox.refused(
            &format!("bench fabric {other}"),
            &[other.split(' ').next().unwrap()],
        );
    }
}
