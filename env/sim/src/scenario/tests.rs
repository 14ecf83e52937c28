mod fabric;
mod order;
mod properties;
mod queues;
mod sizes;

use super::*;
use crate::units::{Duration, Instant};

fn parse(text: &str) -> Result<Scenario, String> {
    Scenario::from_toml_str(text, "mine.toml").map_err(|error| error.to_string())
}

fn set(assignment: &str) -> Result<Scenario, String> {
    let mut scenario = Scenario::default();
    scenario
        .set(assignment)
        .map_err(|error| error.to_string())?;
    Ok(scenario)
}

/// Returns the scenario with the settings of its JSON object, each as on the command line.
fn from_json(scenario: &Scenario) -> Scenario {
    let json = serde_json::to_value(scenario).unwrap();
    let given = json.as_object().unwrap().iter();
    let settings = given
        .filter(|(_, value)| !value.is_null())
        .map(|(key, value)| match value.as_str() {
            Some(text) => format!("{key}={text}"),
            None => format!("{key}={value}"),
        });
    let mut read = Scenario::default();
    read.set_all(settings).unwrap();
    // Values on the command line lose blanks at their ends.
    read.name.clone_from(&scenario.name);
    read
}

#[test]
fn every_preset_is_valid_and_survives_toml_and_json() {
    assert_eq!(Scenario::presets()[0].name, DEFAULT_PRESET);
    for preset in Scenario::presets() {
        let scenario = preset.scenario();
        assert_eq!(scenario.name, preset.name);
        scenario.validate().unwrap();
        assert_eq!(Scenario::load(preset.name).unwrap(), scenario);
        assert_eq!(parse(&scenario.to_toml()), Ok(scenario.clone()));
        assert_eq!(from_json(&scenario), scenario);
    }
}

/// The defaults are a published contract; each is the value documented for `ndt-16x1g`.
#[test]
fn the_default_preset_prints_its_documented_values() {
    let toml = Scenario::default().to_toml();
    let values: Vec<_> = toml
        .lines()
        .filter_map(|line| line.split(" #").next())
        .map(|line| line.trim_end())
        .collect();
    assert_eq!(
        values,
        [
            "name = \"ndt-16x1g\"",
            "topology = \"single\"",
            "ports = 16",
            "leaves = 4",
            "hosts_per_leaf = 4",
            "spines = 2",
            "links_per_pair = 1",
            "rate_bps = 1000000000",
            "fabric_rate_bps = 0",
            "buffer_bytes = 1000000",
            "buffer_bytes_per_port_gbps = 0.0",
            "spine_buffer = \"own\"",
            "spine_pool = \"own\"",
            "ecmp = \"hash\"",
            "ecmp_salt = \"switch\"",
            "propagation_ns = 10000",
            "base_rtt_ns = 0",
            "mss = 1460",
            "header_bytes = 58",
            "ack_bytes = 64",
            "syn_bytes = 64",
            "overhead_bytes = 0",
            "transport = \"newreno\"",
            "incast_transport = \"same\"",
            "second_transport = \"same\"",
            "transport_variant = \"paper\"",
            "flows_per_host = 10",
            "rdma_header_bytes = 48",
            "rdma_ack_bytes = 60",
            "rdma_int_bytes = 42",
            "rdma_ack_int_bytes = 28",
            "rdma_rto_us = 500",
            "ack_priority = \"data\"",
            "fct = \"last_ack\"",
            "int = true",
            "int_bytes_per_hop = 0",
            "int_on_acks = false",
            "hystart = false",
            "hystart_rule = \"rfc9406\"",
            "sack = true",
            "sack_block_bytes = 0",
            "recovery = \"rfc\"",
            "tcp_rules = \"rfc\"",
            "delayed_ack = 1",
            "quick_acks = 0",
            "timestamps = false",
            "init_cwnd = 10",
            "slow_start = true",
            "slow_start_limit = 1",
            "max_cwnd_bytes = 0",
            "unscheduled = \"first_rtt\"",
            "min_rto_us = 200000",
            "initial_rtt_us = 200",
            "handshake = false",
            "syn_timeout_us = \"min_rto\"",
            "host_queue = \"fair\"",
            "late_binding = false",
            "host_jitter_ns = 0",
            "count_in_service = true",
            "queues_per_port = 1",
            "flow_priority = \"in_turn\"",
            "background_priority = 1",
            "incast_priority = 1",
            "second_priority = 2",
            "ack_queue = \"flow\"",
            "scheduler = \"rr\"",
            "queue_weights = \"\"",
            "strict_queues = 1",
            "queue_alpha = \"\"",
            "ecn_uncounted_packets = 0",
            "device_fifo_packets = 0",
            "marking = \"step\"",
            "ecn_threshold_bytes = 0",
            "ecn_k_packets = 0",
            "ecn_red_kmin_bytes = 0",
            "ecn_red_kmax_bytes = 0",
            "ecn_red_pmax = 1.0",
            "ecn_red_weight = 1.0",
            "ecn = false",
            "ecn_capable = \"all\"",
            "lossless_priorities = \"none\"",
            "rules = \"paper\"",
            "pool_guard = true",
            "headroom_bytes = 0",
            "headroom_priorities = 0",
            "lossy_pool_share = 0.8",
            "lossless_pool_share = 1.0",
            "congested = \"sum\"",
            "xon_bytes = 1248",
            "xoff_offset_bytes = 2496",
            "pfc = \"xonxoff\"",
            "pfc_quanta = 65535",
            "pfc_bytes = 64",
            "pfc_response_ns = 0",
            "pfc_watchdog_us = 0",
            "watchdog = \"stop\"",
            "strict_lossless = false",
            "control_class = false",
            "demand = \"ports\"",
            "demand_leaves = 0",
            "load_hosts = \"all\"",
            "second_load = 0.0",
            "second_hosts = \"all\"",
            "query_rate = 0.0",
            "query_share = 0.25",
            "query_fanin = 0",
            "query_hosts = \"all\"",
            "preconnected = false",
            "warmup_ms = 0",
            "measure_ms = 3000",
            "drain_ms = 11000",
            "slowdown_base = \"alone\"",
            "traffic = \"poisson\"",
            "load = 0.5",
            "workload = \"web_search\"",
            "arrivals = \"mixed\"",
            "incast_degree = \"1..15\"",
            "active_ports = \"1..16\"",
            "flows = \"100..1000\"",
            "query_gap_us = 10000",
            "response_bytes = 64000",
            "elephant_bytes = 30000000",
            "decision_latency_us = 0",
            "max_interval_us = 0",
            "min_interval_us = 0",
            "max_decisions = 0",
            "max_simulated_ms = 0",
        ]
    );
}

#[test]
fn a_file_overrides_the_preset_it_starts_from_and_gives_its_own_name() {
    let scenario =
        parse("buffer_bytes = 500_000\nactive_ports = 4\nflows = \"10..20\"\nload = 1\n").unwrap();
    let expected = Scenario::default().with(|scenario| {
        scenario.name = "mine".to_owned();
        scenario.network.buffer_bytes = 500_000;
        scenario.traffic.active_ports = RangeU32::new(4, 4);
        scenario.traffic.flows = RangeU32::new(10, 20);
        scenario.traffic.load = 1.0.into();
    });
    assert_eq!(scenario, expected);
    let scenario =
        parse("name = \"x\"\nbase = \"ns3-16x1g\"\nsyn_timeout_us = \"min_rto\"\n").unwrap();
    let expected = Scenario::preset("ns3-16x1g").unwrap().with(|scenario| {
        scenario.name = "x".to_owned();
        scenario.tcp.syn_timeout_us = None;
    });
    assert_eq!(scenario, expected);
    assert_eq!(
        parse(""),
        Ok(Scenario::default().with(|scenario| {
            scenario.name = "mine".to_owned();
        }))
    );
}

#[test]
fn mistakes_in_a_file_are_named_with_line_and_remedy() {
    for (text, problem) in [
        (
            "ports = 8\nbuffer_byte = 1\n",
            "mine.toml:2: unknown setting `buffer_byte`; did you mean `buffer_bytes`?",
        ),
        ("zzz = 1", "mine.toml:1: unknown setting `zzz`"),
        (
            "\n\nports = \"8\"",
            "mine.toml:3: ports: expected a whole number, found the text \"8\"",
        ),
        (
            "ports = -1",
            "mine.toml:1: ports: expected a whole number from 0 to 4294967295, found -1",
        ),
        (
            "ports = 1.5",
            "mine.toml:1: ports: expected a whole number, found 1.5",
        ),
        (
            "rate_bps = 99999999999999999999",
            "mine.toml:1: rate_bps: expected a whole number from 0 to 9223372036854775807",
        ),
        (
            "sack = \"yes\"",
            "mine.toml:1: sack: expected true or false, found the text \"yes\"",
        ),
        (
            "load = [1]",
            "mine.toml:1: load: expected a number or a range such as 0.1..0.9, found a list",
        ),
        ("name = 3", "mine.toml:1: name: expected a text, found 3"),
        (
            "[ports]\nx = 1",
            "mine.toml:1: ports: expected a whole number, found a table",
        ),
        (
            "transport = \"newrino\"",
            "mine.toml:1: transport: `newrino` is not one of newreno, cubic, cubic-ns3, dctcp, linux, linux-dctcp, powertcp, theta-powertcp, timely, hpcc, dcqcn, dcqcn:preset=reverie, powertcp-rdma; did you mean `newreno`?",
        ),
        (
            "workload = \"websearch\"",
            "mine.toml:1: workload: `websearch` is not one of web_search, data_mining, fb_hadoop, ali_storage, web_search_abm; did you mean `web_search`?",
        ),
        (
            "flows = \"a..b\"",
            "mine.toml:1: flows: expected a whole number or a range such as 1..16, found the text \"a..b\"",
        ),
        (
            "syn_timeout_us = \"never\"",
            "mine.toml:1: syn_timeout_us: expected a whole number of microseconds or min_rto",
        ),
        (
            "ports = 8\nbase = \"ndt-16x1\"",
            "mine.toml:2: base: there is no scenario `ndt-16x1`; did you mean `ndt-16x1g`?",
        ),
        (
            "base = 1",
            "mine.toml:1: base: expected the name of a preset as a text",
        ),
        (
            "ports = 8\nports = 9",
            "mine.toml:2: not valid TOML: duplicate key",
        ),
        ("ports 8", "mine.toml:1: not valid TOML: "),
        (
            "ports = 0",
            "scenario `mine`: ports = 0: must be from 2 to 4096",
        ),
    ] {
        let error = parse(text).unwrap_err();
        assert!(error.starts_with(problem), "{text:?}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
}

#[test]
fn settings_are_given_as_on_the_command_line() {
    type Change = fn(&mut Scenario);
    let cases: &[(&str, Change)] = &[
        ("active_ports=1..8", |s| {
            s.traffic.active_ports = RangeU32::new(1, 8)
        }),
        ("active_ports = 3", |s| {
            s.traffic.active_ports = RangeU32::new(3, 3)
        }),
        ("rate_bps=10e9", |s| s.network.rate_bps = 10_000_000_000),
        ("buffer_bytes=2_000_000", |s| {
            s.network.buffer_bytes = 2_000_000
        }),
        ("load=0.9", |s| s.traffic.load = 0.9.into()),
        ("load=0.1..0.9", |s| {
            s.traffic.load = RangeF64::new(0.1, 0.9)
        }),
        ("workload=data_mining, web_search", |s| {
            s.traffic.workload = [Workload::WebSearch, Workload::DataMining].into();
        }),
        ("traffic=incast_elephants", |s| {
            s.traffic.kind = Traffic::IncastElephants
        }),
        ("handshake=true", |s| s.tcp.handshake = true),
        ("host_queue=fifo", |s| s.host.queue = HostQueue::Fifo),
        ("syn_timeout_us=10000", |s| {
            s.tcp.syn_timeout_us = Some(10_000)
        }),
        ("syn_timeout_us=min_rto", |s| s.tcp.syn_timeout_us = None),
        ("name=16", |s| s.name = "16".to_owned()),
    ];
    for (assignment, change) in cases {
        let mut expected = Scenario::default();
        change(&mut expected);
        assert_eq!(set(assignment), Ok(expected), "{assignment}");
    }
}

#[test]
fn settings_that_cannot_be_are_refused() {
    for (assignment, problem) in [
        ("ports", "setting `ports`: expected key=value"),
        (
            "port=8",
            "setting `port=8`: unknown setting `port`; did you mean `ports`?",
        ),
        (
            "base=ndt-16x1g",
            "setting `base=ndt-16x1g`: unknown setting `base`",
        ),
        (
            "ports=",
            "setting `ports=`: ports: expected a whole number, found ``",
        ),
        (
            "ports=1e300",
            "setting `ports=1e300`: ports: expected a whole number, found `1e300`",
        ),
        (
            "ports=5000000000",
            "setting `ports=5000000000`: ports: expected a whole number from 0 to 4294967295",
        ),
        (
            "sack=1",
            "setting `sack=1`: sack: expected true or false, found `1`",
        ),
        (
            "arrivals=sync",
            "setting `arrivals=sync`: arrivals: `sync` is not one of mixed, spread, synchronised",
        ),
        (
            "traffic=incast",
            "setting `traffic=incast`: traffic: `incast` is not one of poisson, incast_elephants",
        ),
        (
            "load=0.1..x",
            "setting `load=0.1..x`: load: expected a number or a range such as 0.1..0.9, found",
        ),
        (
            "workload=web_search,",
            "setting `workload=web_search,`: workload: `` is not one of web_search, data_mining",
        ),
    ] {
        let error = set(assignment).unwrap_err();
        assert!(error.starts_with(problem), "{error}");
    }
}

#[test]
fn a_refused_setting_changes_nothing() {
    let mut scenario = Scenario::default();
    assert!(scenario.set("ports=x").is_err());
    assert_eq!(scenario, Scenario::default());
}

#[test]
fn the_transports_of_linux_bring_their_settings_along() {
    let stack = |settings: &str| {
        let mut scenario = Scenario::default();
        for assignment in settings.split(' ') {
            scenario.set(assignment).unwrap();
        }
        scenario.validate().unwrap();
        let stack = scenario.stack();
        (
            stack.recovery,
            stack.delayed_ack,
            stack.quick_acks,
            stack.hystart,
        )
    };
    for transport in ["transport=linux", "transport=linux-dctcp"] {
        assert_eq!(stack(transport), (Recovery::Rack, 2, 16, true));
    }
    let changed = "transport=linux recovery=rack delayed_ack=4 quick_acks=3";
    assert_eq!(stack(changed), (Recovery::Rack, 4, 3, true));
    assert_eq!(stack("transport=cubic"), (Recovery::Rfc, 1, 0, false));
}

#[test]
fn values_that_make_no_scenario_are_refused() {
    let refused = |scenario: Scenario, problem: &str| {
        let error = scenario.validate().unwrap_err().to_string();
        let (_, message) = error.split_once("`: ").unwrap();
        assert!(message.starts_with(problem), "{error}");
    };
    // Settings with a space between them, and how the message begins.
    for (settings, problem) in [
        ("ports=1", "ports = 1: must be from 2 to 4096"),
        (
            "rate_bps=0",
            "rate_bps = 0: must be from 1000000 to 10000000000000",
        ),
        (
            "buffer_bytes=1517",
            "buffer_bytes = 1517: smaller than one packet; must be at least 1518",
        ),
        ("mss=0", "mss = 0: must be from 1 to 65495"),
        ("ack_bytes=0", "ack_bytes = 0: must be from 1 to 1000"),
        (
            "sack=false recovery=ns3",
            "recovery = ns3: ns3 is a recovery with SACK; must be rfc where sack is false",
        ),
        (
            "sack=false recovery=rack",
            "recovery = rack: rack is a recovery with SACK; must be rfc where sack is false",
        ),
        (
            "transport=linux sack=false",
            "sack = false: transport linux needs SACK; must be true",
        ),
        (
            "recovery=ns3 transport=linux-dctcp",
            "recovery = ns3: transport linux-dctcp has recovery rack; must be rack, or left at rfc",
        ),
        (
            "quick_acks=16",
            "quick_acks = 16: must be 0 where delayed_ack is 1: every segment is acknowledged at once",
        ),
        (
            "delayed_ack=2 quick_acks=256",
            "quick_acks = 256: must be from 0 to 255",
        ),
        (
            "slow_start_limit=0",
            "slow_start_limit = 0: must be from 1 to 65535",
        ),
        (
            "slow_start_limit=2 recovery=ns3",
            "slow_start_limit = 2: must be 1 where recovery is ns3",
        ),
        (
            "host_jitter_ns=1000000001",
            "host_jitter_ns = 1000000001: must be from 0 to 1000000000",
        ),
        (
            "late_binding=true host_queue=fifo",
            "late_binding = true: needs host_queue fair; must be false where it is fifo",
        ),
        ("init_cwnd=0", "init_cwnd = 0: must be from 1 to 10000"),
        (
            "max_cwnd_bytes=100",
            "max_cwnd_bytes = 100: smaller than one segment; must be 0 (not capped) or at least 1460",
        ),
        // Windows are counted in 32 bits; this value would be truncated to a smaller one.
        (
            "max_cwnd_bytes=5000000000",
            "max_cwnd_bytes = 5000000000: must be from 0 to 2147483647",
        ),
        (
            "rate_bps=10000000000000 propagation_ns=100000000000 mss=1 header_bytes=0",
            "propagation_ns = 100000000000: with rate_bps, mss and max_cwnd_bytes a round trip \
             carries 2147483647 packets",
        ),
        (
            "min_rto_us=0",
            "min_rto_us = 0: must be from 1 to 100000000",
        ),
        ("syn_timeout_us=0", "syn_timeout_us = 0: must be from 1"),
        ("load=0", "load = 0: must be above 0 and at most 1.5"),
        ("load=nan", "load = NaN: must be above 0 and at most 1.5"),
        ("load=1e-300", "load = 0.0000"),
        (
            "incast_degree=1..16",
            "incast_degree = 1..16: must lie within 1..15 (a port cannot have more sources than there are other ports)",
        ),
        (
            "active_ports=0..4",
            "active_ports = 0..4: must lie within 1..16",
        ),
        (
            "active_ports=1..17",
            "active_ports = 1..17: must lie within 1..16",
        ),
        (
            "flows=9..3",
            "flows = 9..3: the range is empty; the smaller number comes first, as in 3..9",
        ),
        (
            "load=0.9..0.1",
            "load = 0.9..0.1: the range is empty; the smaller number comes first, as in 0.1..0.9",
        ),
        (
            "load=0.1..2",
            "load = 0.1..2: must be above 0 and at most 1.5",
        ),
        (
            "query_gap_us=0",
            "query_gap_us = 0: must be from 1 to 100000000",
        ),
        (
            "response_bytes=0",
            "response_bytes = 0: must be from 1 to 1000000000000",
        ),
        (
            "elephant_bytes=0",
            "elephant_bytes = 0: must be from 1 to 1000000000000",
        ),
        (
            "traffic=incast_elephants flows=14..100",
            "flows = 14..100: a query is never cut short; must be at least the in-cast degree, 15",
        ),
        (
            "traffic=bursts_over_elephants active_ports=1..4",
            "incast_degree = 1..15: bursts come from hosts that receive nothing, and with 16 ports \
             and active_ports = 1..4 there may be only 12 of them",
        ),
        (
            "traffic=incast_elephants flows=100..1000000 query_gap_us=10000000",
            "query_gap_us = 10000000: with this incast_degree and flows a trace would last 116 days",
        ),
    ] {
        let mut scenario = Scenario::default();
        for assignment in settings.split(' ') {
            scenario.set(assignment).unwrap();
        }
        refused(scenario, problem);
    }
    let scenario = Scenario::default().with(|scenario| {
        scenario.name = "a\nb".to_owned();
    });
    refused(
        scenario,
        "name = \"a\\nb\": must be a non-empty text of one line",
    );
    let scenario = Scenario::default().with(|scenario| {
        scenario.control.max_interval_us = u64::MAX;
    });
    refused(
        scenario,
        "max_interval_us = 18446744073709551615: must be from 0",
    );
    let scenario = Scenario::default().with(|scenario| {
        scenario.control.max_interval_us = 300;
        scenario.control.min_interval_us = 301;
    });
    refused(scenario, "min_interval_us = 301: must be from 0 to 300");
}

#[test]
fn the_largest_window_and_the_longest_pipe_are_accepted_and_one_more_is_not() {
    let mut scenario = Scenario::default();
    for (setting, accepted) in [
        ("max_cwnd_bytes=2147483647", true),
        ("max_cwnd_bytes=2147483648", false),
        ("max_cwnd_bytes=0", true),
        // 8 bytes a packet and 1 Gbit/s: 64 ns each, and four delays to a round trip.
        ("mss=6", true),
        ("header_bytes=2", true),
        ("ack_bytes=8", true),
        ("propagation_ns=159999936", true),
        ("propagation_ns=160000000", false),
        ("max_cwnd_bytes=60000000", true),
        ("max_cwnd_bytes=60000006", false),
    ] {
        scenario.set(setting).unwrap();
        assert_eq!(scenario.validate().is_ok(), accepted, "{setting}");
    }
}

#[test]
fn a_number_that_does_not_fit_its_setting_is_refused_and_never_cut() {
    for (assignment, fits) in [
        ("ports=4294967295", true),
        ("ports=4294967296", false),
        ("ports=-1", false),
        ("rate_bps=9223372036854775807", true),
        ("rate_bps=9223372036854775808", false),
        ("rate_bps=18446744073709551616", false),
        ("rate_bps=9007199254740992.0", true),
        ("rate_bps=1e19", false),
        ("rate_bps=340282366920938463463374607431768211456", false),
        ("flows=1..4294967295", true),
        ("flows=1..4294967296", false),
        ("flows=-1..4", false),
    ] {
        assert_eq!(set(assignment).is_ok(), fits, "{assignment}");
    }
}

#[test]
fn presets_and_files_are_told_apart() {
    let error = |name| Scenario::load(name).unwrap_err().to_string();
    assert_eq!(
        error("ndt-16x1"),
        "there is no scenario `ndt-16x1`; did you mean `ndt-16x1g`?; presets: ndt-16x1g, ns3-16x1g, \
         ndt-96x10g-incast, ndt-testbed-4x1g, ndt-4to2-incast, linux-16x1g, linux-16x25g, testbed-4x100m, \
         dctcp-16x10g, abm-leafspine, abm-artefact, abm-artefact-mixed, credence-leafspine, credence-train, \
         leafspine-4x4, reverie-leafspine, reverie-4x4; or give a file ending in .toml"
    );
    assert!(error("missing.toml").starts_with("missing.toml: cannot read the scenario: "));
    assert!(error("some/folder").starts_with("some/folder: cannot read the scenario: "));
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("small.toml");
    std::fs::write(&path, "buffer_bytes = 100000\n").unwrap();
    let scenario = Scenario::load(path.to_str().unwrap()).unwrap();
    assert_eq!(
        (scenario.name.as_str(), scenario.network.buffer_bytes),
        ("small", 100_000)
    );
}

#[test]
fn derived_sizes_and_times() {
    let scenario = Scenario::default().with(|scenario| {
        scenario.tcp.timestamps = true;
    });
    assert_eq!(scenario.full_packet_bytes(), 1_530);
    assert_eq!(scenario.syn_timeout(), Duration::from_ms(200));
    assert!(
        (scenario.flow_gap_seconds(Workload::WebSearch.distribution(), 0.5) - 0.027_38).abs()
            < 1e-9
    );
}
