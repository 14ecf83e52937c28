//! The order of settings does not matter.

use proptest::prelude::*;

use super::parse;
use crate::scenario::*;

/// Returns the scenario that a preset with changes makes, or the reason why it is invalid.
fn changed(preset: &str, changes: &[&str]) -> Result<Scenario, String> {
    let mut scenario = Scenario::preset(preset).unwrap();
    let text = |error: ScenarioError| error.to_string();
    scenario.set_all(changes).map_err(text)?;
    scenario.validate().map_err(text)?;
    Ok(scenario)
}

/// Returns the scenario that a file with the same changes makes.
fn in_file(preset: &str, changes: &[&str]) -> Result<Scenario, String> {
    let mut text = format!("base = \"{preset}\"\nname = \"{preset}\"\n");
    for change in changes {
        let (key, value) = change.split_once('=').unwrap();
        // Words are quoted; numbers and truth values are not.
        let bare = value.parse::<f64>().is_ok() || value.parse::<bool>().is_ok();
        let quote = if bare { "" } else { "\"" };
        text.push_str(&format!("{key} = {quote}{value}{quote}\n"));
    }
    parse(&text)
}

/// Returns all orders of up to four changes.
fn orders<'a>(changes: &[&'a str]) -> Vec<Vec<&'a str>> {
    match changes {
        [] => vec![Vec::new()],
        _ => (0..changes.len())
            .flat_map(|first| {
                let mut others = changes.to_vec();
                let first = others.remove(first);
                let rest = orders(&others).into_iter();
                rest.map(move |order| [vec![first], order].concat())
            })
            .collect(),
    }
}

#[test]
fn a_buffer_is_what_was_given_whatever_stands_between() {
    for (changes, bytes, per_port) in [
        (
            &[
                "buffer_bytes=200000",
                "measure_ms=20",
                "load=0.3",
                "buffer_bytes_per_port_gbps=0",
            ][..],
            200_000,
            0.0,
        ),
        (&["buffer_bytes=200000", "spines=4"], 200_000, 0.0),
        (
            &["buffer_bytes_per_port_gbps=5", "spines=4"],
            5 * 1_024 * 80,
            5.0,
        ),
        // Without a size of its own the buffer keeps its size.
        (&["buffer_bytes_per_port_gbps=0", "spines=4"], 589_824, 0.0),
        (
            &[
                "buffer_bytes=409600",
                "buffer_bytes_per_port_gbps=5",
                "spines=4",
            ],
            409_600,
            5.0,
        ),
        (
            &["topology=single", "ports=4", "buffer_bytes=70000"],
            70_000,
            0.0,
        ),
    ] {
        for order in orders(changes) {
            // Settings that a single switch cannot have are replaced.
            let order: Vec<&str> = match changes.contains(&"topology=single") {
                true => [
                    &order[..],
                    &["demand=ports", "active_ports=2", "incast_degree=1"],
                ]
                .concat(),
                false => order,
            };
            for scenario in [
                changed("leafspine-4x4", &order),
                in_file("leafspine-4x4", &order),
            ] {
                let scenario = scenario.unwrap();
                let found = (
                    scenario.network.buffer_bytes,
                    scenario.network.buffer_bytes_per_port_gbps,
                );
                assert_eq!(found, (bytes, per_port), "{order:?}");
            }
        }
    }
}

#[test]
fn a_marking_threshold_is_what_was_given_in_either_form() {
    for (changes, bytes, packets) in [
        (&["ecn_threshold_bytes=30000", "mss=1000"][..], 30_000, 0),
        (&["ecn_threshold_bytes=30000", "ecn_k_packets=0"], 30_000, 0),
        (&["ecn_k_packets=7", "ecn_threshold_bytes=0"], 0, 7),
        (&["ecn_k_packets=0", "ecn_threshold_bytes=0"], 0, 0),
        // 0 does not turn off the preset's setting.
        (&["ecn_threshold_bytes=0", "mss=1000"], 0, 65),
    ] {
        for order in orders(changes) {
            for scenario in [
                changed("leafspine-4x4", &order),
                in_file("leafspine-4x4", &order),
            ] {
                let scenario = scenario.unwrap();
                let found = (
                    scenario.marking.threshold_bytes,
                    scenario.marking.threshold_packets,
                );
                assert_eq!(found, (bytes, packets), "{order:?}");
            }
        }
    }
}

#[test]
fn settings_that_contradict_each_other_are_refused_with_both_names() {
    for (changes, names) in [
        (
            &[
                "buffer_bytes=200000",
                "measure_ms=20",
                "buffer_bytes_per_port_gbps=9.6",
            ][..],
            ["buffer_bytes = 200000", "buffer_bytes_per_port_gbps"],
        ),
        (
            &["ecn_threshold_bytes=30000", "load=0.3", "ecn_k_packets=65"],
            ["ecn_k_packets = 65", "ecn_threshold_bytes"],
        ),
        (
            &["ports=17", "load=0.3", "leaves=6"],
            ["ports = 17", "leaves x hosts_per_leaf"],
        ),
    ] {
        for order in orders(changes) {
            for refused in [
                changed("leafspine-4x4", &order),
                in_file("leafspine-4x4", &order),
            ] {
                let error = refused.unwrap_err();
                assert!(
                    names.iter().all(|name| error.contains(name)),
                    "{order:?}: {error}"
                );
            }
        }
    }
}

#[test]
fn what_cannot_be_read_changes_nothing() {
    let mut scenario = Scenario::default();
    assert!(scenario.set_all(["ports=8", "load=much"]).is_err());
    assert_eq!(scenario, Scenario::default());
}

/// Returns the values of each setting in the presets, and some more values for settings that depend on
/// others.
fn values() -> Vec<(&'static str, Vec<String>)> {
    let settings = Scenario::settings();
    let mut values: Vec<(&str, Vec<String>)> = settings
        .iter()
        .map(|setting| (setting.key, Vec::new()))
        .collect();
    for preset in Scenario::presets() {
        let entries: Vec<_> = preset.scenario().values();
        for ((_, known), value) in values.iter_mut().zip(entries) {
            let value = value.trim_matches('"').to_owned();
            if !known.contains(&value) {
                known.push(value);
            }
        }
    }
    for (key, more) in [
        ("topology", &["single", "leafspine"][..]),
        ("leaves", &["2", "6"]),
        ("hosts_per_leaf", &["3", "8"]),
        ("spines", &["1", "4"]),
        ("ports", &["16", "24"]),
        ("buffer_bytes", &["200000", "589824"]),
        ("buffer_bytes_per_port_gbps", &["0", "5"]),
        ("ecn_threshold_bytes", &["0", "30000"]),
        ("ecn_k_packets", &["0", "20"]),
    ] {
        let known = values.iter_mut().find(|(known, _)| *known == key).unwrap();
        known.1.extend(more.iter().map(|&value| value.to_owned()));
    }
    values
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_settings_make_the_same_scenario_in_any_order(
        preset in prop::sample::select(vec!["ndt-16x1g", "leafspine-4x4", "abm-artefact", "reverie-4x4"]),
        few in prop::sample::subsequence(values(), 0..=6),
        of_pairs in prop::sample::subsequence(
            values().into_iter().filter(|(key, _)| DEPENDENT.contains(key)).collect::<Vec<_>>(),
            0..=4,
        ),
        choices in prop::collection::vec(any::<prop::sample::Index>(), 20),
        turns in prop::collection::vec(any::<prop::sample::Index>(), 20),
    ) {
        let mut changes: Vec<String> = Vec::new();
        for ((key, values), choice) in few.iter().chain(&of_pairs).zip(choices) {
            if *key != "name" && !changes.iter().any(|known| known.starts_with(&format!("{key}="))) {
                changes.push(format!("{key}={}", choice.get(values)));
            }
        }
        let given: Vec<&str> = changes.iter().map(String::as_str).collect();
        let mut other = given.clone();
        for (place, turn) in turns.iter().enumerate().take(other.len()) {
            let with = turn.index(other.len());
            other.swap(place, with);
        }
        let expected = changed(preset, &given);
        prop_assert_eq!(&changed(preset, &other), &expected, "{:?}", &other);
        prop_assert_eq!(&in_file(preset, &given), &expected, "{:?}", &given);
        prop_assert_eq!(&in_file(preset, &other), &expected, "{:?}", &other);
        if let Ok(scenario) = expected {
            // The written scenario has both forms, which agree.
            prop_assert_eq!(parse(&scenario.to_toml()), Ok(scenario));
        }
    }
}

/// Settings that follow from others or override others.
const DEPENDENT: [&str; 12] = [
    "topology",
    "ports",
    "leaves",
    "hosts_per_leaf",
    "spines",
    "links_per_pair",
    "rate_bps",
    "fabric_rate_bps",
    "buffer_bytes",
    "buffer_bytes_per_port_gbps",
    "ecn_threshold_bytes",
    "ecn_k_packets",
];
