use super::*;

fn preset(name: &str) -> Scenario {
    Scenario::preset(name).unwrap()
}

/// The sizes come from the papers and from the settings of their published code.
#[test]
fn the_presets_have_the_published_buffers() {
    for (name, leaf, spine, rtt_us) in [
        ("abm-leafspine", 3_932_160, 786_432, 80),
        ("abm-artefact", 3_932_160, 786_432, 80),
        ("abm-artefact-mixed", 3_932_160, 1_966_080, 80),
        ("credence-leafspine", 1_048_576, 838_860, 24),
        ("credence-train", 1_052_672, 105_267, 32),
    ] {
        let scenario = preset(name);
        assert_eq!(
            scenario.at_switch(Tier::Leaf).network.buffer_bytes,
            leaf,
            "{name}"
        );
        assert_eq!(
            scenario.at_switch(Tier::Spine).network.buffer_bytes,
            spine,
            "{name}"
        );
        assert_eq!(scenario.network.buffer_bytes, leaf, "{name}");
        assert_eq!(scenario.base_rtt(), Duration::from_us(rtt_us), "{name}");
        assert_eq!(scenario.oversubscription(), 4.0, "{name}");
    }
    let mut scenario = preset("abm-leafspine");
    scenario.set("spine_buffer=leaf").unwrap();
    assert_eq!(
        scenario.at_switch(Tier::Spine).network.buffer_bytes,
        3_932_160
    );
    assert_eq!(scenario.at_switch(Tier::Spine).network.ports, 8);
    assert_eq!(scenario.at_switch(Tier::Leaf).network.ports, 40);
}

#[test]
fn hosts_and_buffers_follow_from_the_settings_in_any_order() {
    let settings = ["topology=leafspine", "leaves=6", "hosts_per_leaf=5"];
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2]] {
        let mut scenario = Scenario::default();
        for place in order {
            scenario.set(settings[place]).unwrap();
        }
        scenario.set("buffer_bytes_per_port_gbps=10").unwrap();
        scenario.set("fabric_rate_bps=4e9").unwrap();
        assert_eq!((scenario.network.ports, scenario.is_fabric()), (30, true));
        // Five hosts of 1 Gbit/s and two links of 4.
        assert_eq!(scenario.network.buffer_bytes, 10 * 1_024 * 13);
        let spine = scenario.at_switch(Tier::Spine);
        assert_eq!(spine.network.buffer_bytes, 10 * 1_024 * 24);
        assert_eq!(
            (spine.network.ports, spine.network.rate_bps),
            (6, 4_000_000_000)
        );
        scenario.validate().unwrap();
    }
}

#[test]
fn one_leaf_is_one_switch() {
    let mut scenario = Scenario::default();
    for setting in ["topology=leafspine", "leaves=1", "hosts_per_leaf=16"] {
        scenario.set(setting).unwrap();
    }
    assert!(!scenario.is_fabric());
    assert!(
        scenario
            .validate()
            .is_err_and(|error| error.to_string().contains("spines = 2"))
    );
    scenario.set("spines=0").unwrap();
    scenario.validate().unwrap();
    scenario.require_single().unwrap();
    assert_eq!(scenario.base_rtt(), Scenario::default().base_rtt());
    let switch = scenario.at_switch(Tier::Leaf);
    assert_eq!(
        (
            switch.network.ports,
            switch.network.rate_bps,
            switch.network.buffer_bytes
        ),
        (16, 1_000_000_000, 1_000_000)
    );
}

#[test]
fn networks_that_cannot_be_are_refused_with_the_remedy() {
    for (preset, change, problem) in [
        ("leafspine-4x4", "spines=0", "spines = 0: several leaves"),
        ("leafspine-4x4", "leaves=0", "leaves = 0: must be from 1"),
        (
            "leafspine-4x4",
            "links_per_pair=0",
            "links_per_pair = 0: must be from 1",
        ),
        (
            "leafspine-4x4",
            "ports=17",
            "ports = 17: the hosts of a leaf-spine network are leaves x hosts_per_leaf, 16",
        ),
        (
            "leafspine-4x4",
            "fabric_rate_bps=5",
            "fabric_rate_bps = 5: must be from 1000000",
        ),
        (
            "leafspine-4x4",
            "buffer_bytes_per_port_gbps=-1",
            "buffer_bytes_per_port_gbps = -1: must be from 0",
        ),
        (
            "leafspine-4x4",
            "buffer_bytes_per_port_gbps=0.03",
            "buffer_bytes_per_port_gbps = 0.03: a spine has 1228 bytes",
        ),
        (
            "ndt-16x1g",
            "buffer_bytes_per_port_gbps=9.6",
            "buffer_bytes_per_port_gbps = 9.6: needs topology leafspine",
        ),
        (
            "ndt-16x1g",
            "leaves=5000",
            "leaves = 5000: must be from 1 to 4096",
        ),
    ] {
        let mut scenario = Scenario::preset(preset).unwrap();
        scenario.set(change).unwrap();
        let error = scenario.validate().unwrap_err().to_string();
        assert!(error.contains(problem), "{change}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
    for wrong in [
        "topology=ring",
        "ecmp=random",
        "spine_buffer=both",
        "spine_pool=leaf",
    ] {
        let error = set(wrong).unwrap_err();
        assert!(error.contains("one of"), "{error}");
    }
    let error = preset("leafspine-4x4").require_single().unwrap_err();
    assert!(error.to_string().contains("must be single"), "{error}");
}

#[test]
fn demands_that_cannot_be_met_are_refused_with_the_remedy() {
    for (preset, changes, problem) in [
        (
            "ndt-16x1g",
            &["demand=ring"][..],
            "demand = ring: needs several leaves; must be ports or uniform",
        ),
        (
            "leafspine-4x4",
            &["query_fanin=13"],
            "query_fanin = 13: only 12 hosts could answer; must be at most that",
        ),
        (
            "leafspine-4x4",
            &["demand=ring", "query_fanin=5"],
            "query_fanin = 5: only 4 hosts could answer",
        ),
        (
            "leafspine-4x4",
            &["query_rate=-1"],
            "query_rate = -1: must be from 0 to 1000000",
        ),
        (
            "leafspine-4x4",
            &["query_rate=nan"],
            "query_rate = NaN: must be from 0",
        ),
        (
            "leafspine-4x4",
            &["query_share=0"],
            "query_share = 0: must be above 0 and at most 1000",
        ),
        (
            "leafspine-4x4",
            &["measure_ms=0"],
            "measure_ms = 0: must be from 1",
        ),
        (
            "leafspine-4x4",
            &["drain_ms=100000001"],
            "drain_ms = 100000001: must be from 0 to 100000000",
        ),
        (
            "leafspine-4x4",
            &["measure_ms=100000000"],
            "flows; must be so short that they are at most 10000000",
        ),
        (
            "leafspine-4x4",
            &["incast_priority=8"],
            "incast_priority = 8: must be from 0 to 7",
        ),
    ] {
        let error = preset_with(preset, changes)
            .validate()
            .unwrap_err()
            .to_string();
        assert!(error.contains(problem), "{changes:?}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
    for wrong in [
        "demand=all",
        "slowdown_base=ideal",
        "flow_priority=random",
        "preconnected=maybe",
    ] {
        let error = set(wrong).unwrap_err();
        assert!(
            error.contains("one of") || error.contains("true or false"),
            "{error}"
        );
    }
    preset_with("ndt-16x1g", &["demand=uniform"])
        .validate()
        .unwrap();
}

fn preset_with(name: &str, changes: &[&str]) -> Scenario {
    let mut scenario = preset(name);
    for change in changes {
        scenario.set(change).unwrap();
    }
    scenario
}

/// The values come from the papers and their published code, as far as they state them.
#[test]
fn the_presets_have_the_published_traffic() {
    for (name, demand, load, answer) in [
        ("abm-leafspine", Demand::OtherLeaf, 0.4, 36_864),
        ("abm-artefact", Demand::Ring, 0.4, 36_864),
        ("abm-artefact-mixed", Demand::OtherLeaf, 0.4, 36_864),
        ("credence-leafspine", Demand::OtherLeaf, 0.4, 32_768),
        ("credence-train", Demand::Ring, 0.8, 49_344),
    ] {
        let scenario = preset(name);
        assert_eq!(scenario.demand.kind, demand, "{name}");
        assert_eq!(scenario.traffic.load, load.into(), "{name}");
        assert_eq!(scenario.answer_bytes(), answer, "{name}");
        assert_eq!(scenario.demand.query_rate, 2.0);
        assert!(scenario.demand.preconnected && scenario.tcp.handshake);
        assert_eq!(scenario.traffic.slowdown_base, SlowdownBase::Pipeline);
        let window = (Instant::ZERO, Instant::from_ms(3_000));
        assert_eq!(scenario.window(), Some(window));
        assert_eq!(scenario.end(), Some(Instant::from_ms(14_000)));
    }
    assert_eq!(preset("ndt-16x1g").window(), None);
    assert_eq!(preset("ndt-16x1g").end(), None);
}

#[test]
fn classes_that_cannot_be_are_refused_with_the_remedy() {
    for (preset, changes, problem) in [
        (
            "leafspine-4x4",
            &["second_load=2"][..],
            "second_load = 2: must be from 0 to 1.5",
        ),
        (
            "leafspine-4x4",
            &["second_priority=8"],
            "second_priority = 8: must be from 0 to 7",
        ),
        (
            "leafspine-4x4",
            &["demand=uniform", "demand_leaves=2"],
            "demand_leaves = 2: needs demand ring or other_leaf; must be 0",
        ),
        (
            "leafspine-4x4",
            &["demand_leaves=5"],
            "demand_leaves = 5: must be from 2 to leaves, 4, or 0",
        ),
        (
            "leafspine-4x4",
            &["load_hosts=2..4"],
            "load_hosts = 2..4: a leaf has 4 hosts; must be a range within 0..3, or all",
        ),
        (
            "leafspine-4x4",
            &["second_hosts=3..2"],
            "second_hosts = 3..2: a leaf has 4 hosts; must be a range within 0..3, or all",
        ),
        (
            "leafspine-4x4",
            &["demand=uniform", "query_hosts=0"],
            "query_hosts = 0: needs demand ring or other_leaf; must be all",
        ),
        (
            "leafspine-4x4",
            &["demand=ring", "query_hosts=0..1", "query_fanin=3"],
            "query_fanin = 3: only 2 hosts could answer",
        ),
        (
            "leafspine-4x4",
            &["transport=linux", "second_transport=dctcp"],
            "second_transport = dctcp: linux and linux-dctcp stand for both ends",
        ),
    ] {
        let error = preset_with(preset, changes)
            .validate()
            .unwrap_err()
            .to_string();
        assert!(error.contains(problem), "{changes:?}: {error}");
        assert!(!error.contains('\n'), "{error}");
    }
    for (wrong, problem) in [
        ("load_hosts=first", "such as 0..15, or all"),
        ("second_transport=tcp", "or same"),
        ("second_load=much", "a number"),
    ] {
        let error = set(wrong).unwrap_err();
        assert!(error.contains(problem), "{error}");
    }
    let list = parse("query_hosts = [1, 2]").unwrap_err();
    assert!(list.contains("such as 0..15, or all"), "{list}");
    let one = parse("load_hosts = 3\ntopology = \"leafspine\"\ndemand = \"ring\"").unwrap();
    assert_eq!(
        one.demand.load_hosts,
        LeafHosts::Numbers(RangeU32::new(3, 3))
    );
}
