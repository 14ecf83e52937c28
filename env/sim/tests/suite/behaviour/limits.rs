//! The largest packets and the latest instants.

use bufgym_sim::network::OneSwitch;
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::PolicySpec;
use bufgym_sim::traffic::{FlowSpec, Trace, generate};
use bufgym_sim::units::Instant;

fn alone(start: Instant, size: u64) -> Trace {
    Trace {
        flows: vec![FlowSpec {
            id: 0,
            src: 0,
            dst: 1,
            start,
            size,
            kind: 0,
            query: -1,
            priority: 0,
        }],
        ..Trace::default()
    }
}

/// Packets count their wire bytes in 16 bits: a larger packet is refused, not truncated.
#[test]
fn the_largest_packet_takes_its_time_and_a_larger_one_is_refused() {
    let mut scenario = Scenario::default();
    let headers = u64::from(scenario.packets.header_bytes);
    for (timestamps, added) in [(false, 0), (true, 12)] {
        scenario.tcp.timestamps = timestamps;
        scenario.packets.mss = (65_535 - headers - added) as u32;
        let size = 100 * u64::from(scenario.packets.mss);
        let dt = PolicySpec::baseline();
        let outcome = dt.run(&scenario, &alone(Instant::ZERO, size)).unwrap();
        let line_time = scenario.rate().transmission_time(65_535) * 100;
        assert!(outcome.records[0].fct.unwrap() > line_time);
        scenario.packets.mss += 1;
        let error = scenario.validate().unwrap_err().to_string();
        assert!(
            error.contains("mss") && error.contains("65536 bytes on the wire"),
            "{error}"
        );
    }
}

/// Every setting at its limits is refused by name, or gives a scenario that can be simulated.
#[test]
fn every_setting_at_its_ends_is_refused_or_works() {
    let small = || {
        let mut scenario = Scenario::default();
        for setting in [
            "active_ports=2",
            "incast_degree=2",
            "flows=30",
            "max_simulated_ms=3",
        ] {
            scenario.set(setting).unwrap();
        }
        scenario
    };
    let values = [
        "0",
        "1",
        "8",
        "1000",
        "4096",
        "65535",
        "65536",
        "1000000",
        "4294967295",
        "4294967296",
        "10000000000000",
        "9223372036854775807",
        "18446744073709551615",
        "-1",
        "0.5",
        "1e300",
        "nan",
    ];
    let (mut refused, mut ran) = (0, 0);
    for traffic in ["poisson", "incast_elephants", "bursts_over_elephants"] {
        for setting in Scenario::settings() {
            for value in values {
                let mut scenario = small();
                scenario.set(&format!("traffic={traffic}")).unwrap();
                let checked = scenario
                    .set(&format!("{}={value}", setting.key))
                    .and_then(|()| scenario.validate());
                match checked {
                    Ok(()) if setting.key == "max_simulated_ms" => {}
                    Ok(()) => {
                        let trace = generate(&scenario, 5);
                        let dt = PolicySpec::baseline();
                        let mut simulator = dt.simulator::<OneSwitch>(&scenario, &trace).unwrap();
                        simulator.run();
                        assert_eq!(simulator.check_invariants(), Ok(()));
                        ran += 1;
                    }
                    Err(error) => {
                        let error = error.to_string();
                        assert!(
                            error.contains(setting.key) || error.contains("load"),
                            "{error}"
                        );
                        refused += 1;
                    }
                }
            }
        }
    }
    assert!(ran > 500 && refused > 500, "{ran}, {refused}");
}

/// A simulation ends before its instants can no longer be distinguished. A flow in progress is then
/// unfinished, and no packet is lost by this.
#[test]
fn a_flow_beyond_the_last_instant_is_unfinished() {
    let mut scenario = Scenario::default();
    for setting in [
        "rate_bps=1000000",
        "propagation_ns=100000000000",
        "max_cwnd_bytes=1460",
        "min_rto_us=100000000",
        "initial_rtt_us=100000000",
    ] {
        scenario.set(setting).unwrap();
    }
    let start = Instant::from_ns(Trace::MAX_START_NS);
    for (segments, completes) in [(100, true), (600, false)] {
        let trace = alone(start, segments * 1_460);
        for policy in ["cs", "dt"] {
            let policy: PolicySpec = policy.parse().unwrap();
            let mut simulator = policy.simulator::<OneSwitch>(&scenario, &trace).unwrap();
            let outcome = simulator.run();
            assert_eq!(outcome.summary.completed == 1, completes, "{segments}");
            assert_eq!(outcome.summary.drops, 0);
            assert_eq!(simulator.check_invariants(), Ok(()));
            assert!(simulator.now() > start && simulator.now() < Instant::from_ms(1_152_000_000));
        }
    }
}
