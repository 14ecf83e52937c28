//! Networks from ONNX files: `onnx:FILE`, followed by settings that the file does not contain.

use std::collections::BTreeSet;
use std::path::Path;

use bufgym_env::control::{ActionSet, BasePolicy, Controller};
pub(super) use bufgym_onnx::OnnxNetwork;
use bufgym_onnx::{Facts, Settings};
use bufgym_sim::network::{LeafSpine, SwitchId, Topology as _};
use bufgym_sim::scenario::Scenario;

use super::{EntrantError, ONNX, over};
use crate::data::Training;

/// The settings that may follow the file, in any order.
const KEYS: [&str; 2] = ["low_level", "actions"];

/// Loads the network of a policy string `onnx:FILE,low_level=HEURISTIC,actions=SET`; `text` is the part after
/// the colon.
pub(super) fn load(policy: &str, text: &str) -> Result<OnnxNetwork, EntrantError> {
    let (file, settings) = split(text).map_err(|problem| EntrantError::OnnxSetting {
        policy: policy.to_owned(),
        problem,
    })?;
    OnnxNetwork::load(Path::new(file), &settings).map_err(|source| EntrantError::Onnx {
        policy: policy.to_owned(),
        source,
    })
}

/// Splits a text into file and settings. A value extends to the next setting, because heuristics and sets of
/// actions contain commas.
fn split(text: &str) -> Result<(&str, Settings), String> {
    let mut marks: Vec<(usize, &str)> = Vec::new();
    for key in KEYS {
        let mark = format!(",{key}=");
        let mut places = text.match_indices(&mark).map(|(place, _)| place);
        marks.extend(places.next().map(|place| (place, key)));
        if places.next().is_some() {
            return Err(format!("{key} is given twice; leave one out"));
        }
    }
    marks.sort_unstable();
    let mut settings = Settings::default();
    for (index, &(place, key)) in marks.iter().enumerate() {
        let end = marks.get(index + 1).map_or(text.len(), |(next, _)| *next);
        let value = &text[place + key.len() + 2..end];
        match key {
            "low_level" => settings.low_level = Some(value.parse().map_err(said)?),
            _ => settings.actions = Some(value.parse::<ActionSet>().map_err(said)?),
        }
    }
    let file = &text[..marks.first().map_or(text.len(), |(place, _)| *place)];
    match file {
        "" => Err("there is no file; must be as in onnx:actor.onnx".to_owned()),
        file => Ok((file, settings)),
    }
}

fn said(error: impl std::fmt::Display) -> String {
    error.to_string()
}

/// Returns a controller for one run.
pub(super) fn controller(network: &OnnxNetwork) -> Box<dyn Controller> {
    Box::new(network.actor())
}

/// Returns the heuristic whose α the network sets.
pub(super) fn low_level(network: &OnnxNetwork) -> &BasePolicy {
    network.low_level()
}

/// Checks that the network can decide at every switch of the scenario.
pub(super) fn check(
    policy: &str,
    network: &OnnxNetwork,
    scenario: &Scenario,
) -> Result<(), EntrantError> {
    for ports in ports_of(scenario) {
        network
            .prepare(ports)
            .map_err(|source| EntrantError::Onnx {
                policy: policy.to_owned(),
                source,
            })?;
    }
    Ok(())
}

/// Returns the numbers of ports that switches of the scenario have.
fn ports_of(scenario: &Scenario) -> BTreeSet<usize> {
    if !scenario.is_fabric() {
        return BTreeSet::from([scenario.port_count()]);
    }
    let network = LeafSpine::of(scenario, 0);
    let spine = u16::try_from(network.leaves).ok().map(SwitchId);
    let switches = std::iter::once(SwitchId(0)).chain(spine);
    switches.map(|switch| network.ports(switch)).collect()
}

/// Describes the source of the network in one line.
pub(super) fn origin(network: &OnnxNetwork) -> String {
    let over = over(network.low_level());
    let facts = network.facts();
    match facts {
        Facts {
            scenario: Some(scenario),
            objective: Some(objective),
            ..
        } => {
            let seed = facts.seed.map(|seed| format!(", seed {seed}"));
            let seed = seed.unwrap_or_default();
            format!("ONNX network trained on {scenario} for {objective}{over}{seed}")
        }
        Facts { producer, .. } if producer.is_empty() => format!("ONNX network{over}"),
        Facts { producer, .. } => format!("ONNX network of {producer}{over}"),
    }
}

/// Returns the training objective of the network, if the file contains it.
pub(super) fn training(network: &OnnxNetwork) -> Option<Training> {
    let facts = network.facts();
    let (scenario, objective) = (facts.scenario.as_ref()?, facts.objective.as_ref()?);
    let task = format!(
        "{ONNX}, trained on {scenario} for {objective}{}",
        over(network.low_level())
    );
    Some(Training::new(task, facts.seed?, objective))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> (&str, Settings) {
        split(text).unwrap()
    }

    #[test]
    fn settings_stand_behind_the_file_in_any_order() {
        assert_eq!(read("a.onnx"), ("a.onnx", Settings::default()));
        assert_eq!(read("odd,name=3.onnx").0, "odd,name=3.onnx");
        let low_level = "fab:short_bytes=10000,idle_us=100+early";
        for text in [
            format!("a.onnx,low_level={low_level},actions=alpha,early"),
            format!("a.onnx,actions=alpha,early,low_level={low_level}"),
        ] {
            let (file, settings) = read(&text);
            assert_eq!(file, "a.onnx");
            assert_eq!(settings.low_level, Some(low_level.parse().unwrap()));
            assert_eq!(settings.actions, Some(ActionSet::AlphaEarly));
        }
    }

    #[test]
    fn settings_that_make_no_sense_are_refused() {
        for (text, word) in [
            ("", "onnx:actor.onnx"),
            (",actions=alpha", "onnx:actor.onnx"),
            ("a.onnx,actions=beta", "alpha,early"),
            ("a.onnx,low_level=cs", "cs"),
            (
                "a.onnx,actions=alpha,actions=alpha",
                "actions is given twice",
            ),
        ] {
            let error = split(text).unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }

    #[test]
    fn a_network_of_switches_has_the_ports_of_leaves_and_of_spines() {
        let of = |preset: &str| ports_of(&Scenario::preset(preset).unwrap());
        assert_eq!(of("ndt-16x1g"), BTreeSet::from([16]));
        let scenario = Scenario::preset("leafspine-4x4").unwrap();
        let leaf = scenario.hosts_per_leaf + scenario.spines * scenario.links_per_pair;
        let spine = scenario.leaves * scenario.links_per_pair;
        let expected = [leaf, spine].map(|ports| ports as usize);
        assert_eq!(ports_of(&scenario), BTreeSet::from(expected));
    }
}
