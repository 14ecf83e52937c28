use proptest::prelude::*;

use super::{from_json, parse};
use crate::scenario::*;

fn any_workloads() -> impl Strategy<Value = Workloads> {
    prop::sample::subsequence(Workload::ALL, 1..=Workload::ALL.len()).prop_map(|chosen| {
        let names: Vec<_> = chosen.iter().map(|workload| workload.name()).collect();
        names.join(",").parse().unwrap()
    })
}

prop_compose! {
    fn any_scenario()(
        name in "[^\\x00-\\x1f\\x7f-\\u{9f}\\s]\\PC{0,12}",
        numbers in any::<[u16; 8]>(),
        flags in any::<[bool; 4]>(),
        syn_timeout_us in prop::option::of(1_u64..100_000_000),
        recovery in prop::sample::select(Recovery::ALL),
        host_queue in prop::sample::select(HostQueue::ALL),
        arrivals in prop::sample::select(Arrivals::ALL),
        traffic in prop::sample::select(Traffic::ALL),
        workload in any_workloads(),
        spread in prop::sample::select(vec![0.01, 0.3, 1.0]),
        load in 0.1_f64..=1.5,
        degree in 1_u32..=15,
    ) -> Scenario {
        let [rate, buffer, propagation, init, rto, latency, decisions, limit] = numbers.map(u64::from);
        Scenario::default().with(|scenario| {
            scenario.name = name;
            scenario.network.rate_bps = 1_000_000_000 + rate;
            scenario.network.buffer_bytes = 2_000 + buffer;
            scenario.network.propagation_ns = propagation;
            scenario.tcp.init_cwnd = 1 + init as u32 % 100;
            scenario.tcp.min_rto_us = 1 + rto;
            scenario.control.decision_latency_us = latency;
            scenario.control.max_decisions = decisions;
            scenario.control.max_simulated_ms = limit;
            scenario.tcp.sack = flags[0] || recovery != Recovery::Rfc;
            scenario.tcp.timestamps = flags[1];
            scenario.tcp.handshake = flags[2];
            scenario.queues.count_in_service = flags[3];
            scenario.tcp.syn_timeout_us = syn_timeout_us;
            scenario.tcp.recovery = recovery;
            scenario.host.queue = host_queue;
            scenario.traffic.arrivals = arrivals;
            scenario.traffic.kind = traffic;
            scenario.traffic.workload = workload;
            scenario.traffic.load = RangeF64::new(load * spread, load);
            scenario.traffic.query_gap_us = 1 + latency;
            scenario.traffic.response_bytes = 1 + buffer;
            scenario.traffic.elephant_bytes = 1 + decisions;
            scenario.traffic.incast_degree = RangeU32::new(1, degree);
            scenario.traffic.active_ports = RangeU32::new(1, 16 - degree);
        })
    }
}

proptest! {
    #[test]
    fn every_scenario_reads_back_identically_from_toml(scenario in any_scenario()) {
        prop_assert_eq!(parse(&scenario.to_toml()), Ok(scenario));
    }

    /// Numbers of up to 15 digits are exact in JSON with any parser.
    #[test]
    fn every_scenario_reads_back_from_json(scenario in any_scenario(), thousandths in 1_u32..=1_500) {
        let load = f64::from(thousandths) / 1_000.0;
        let scenario = scenario.with(|scenario| scenario.traffic.load = load.into());
        prop_assert_eq!(from_json(&scenario), scenario);
    }

    #[test]
    fn any_text_is_read_or_refused_in_one_line(
        text in "((ports|load|flows|name|sack|base|[a-z_]{1,6}) ?= ?(-?[0-9]{1,20}|[0-9]\\.[0-9]|\"\\PC{0,6}\"|true|\\PC{0,4})\n){0,6}|\\PC{0,60}",
    ) {
        if let Err(error) = parse(&text) {
            prop_assert!(!error.contains('\n'), "{}", error);
        }
    }

    #[test]
    fn any_setting_is_taken_or_refused(assignment in "([a-z_]{1,12}|ports|load|flows|syn_timeout_us|name)=?\\PC{0,12}") {
        let mut scenario = Scenario::default();
        if scenario.set(&assignment).is_ok() {
            let _ = scenario.validate();
            let _ = scenario.to_toml();
        }
    }
}

/// No number is so large that a check of it overflows, alone or with any other number as large.
#[test]
fn the_largest_numbers_are_taken_or_refused() {
    let all = Scenario::settings();
    let keys = || all.iter().map(|setting| setting.key);
    for (preset, transport) in [
        ("ndt-16x1g", "newreno"),
        ("leafspine-4x4", "dctcp"),
        ("reverie-4x4", "powertcp-rdma"),
    ] {
        for (first, second) in keys().flat_map(|first| keys().map(move |second| (first, second))) {
            let mut scenario = Scenario::preset(preset).unwrap();
            let in_cast = format!("incast_transport={transport}");
            scenario.set(&in_cast).unwrap();
            // Fields of 32 bits, and those that are not numbers, refuse the larger one.
            for key in [first, second] {
                let larger = scenario.set(&format!("{key}=9223372036854775807"));
                let _ = larger.or_else(|_| scenario.set(&format!("{key}=4294967295")));
            }
            if let Err(error) = scenario.validate() {
                assert!(!error.to_string().contains('\n'), "{error}");
            }
        }
    }
}
