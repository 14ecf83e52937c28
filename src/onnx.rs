//! Networks from ONNX files as policies: `onnx:FILE`, followed by settings that the file does not contain.

use std::error::Error;
use std::path::Path;

use bufgym_env::control::{ActionSet, Controller, LowLevelPolicy};
use bufgym_eval::Entrant;
use bufgym_eval::data::Training;
use bufgym_eval::entrant::{EntrantError, ExternalNetwork, ONNX, over};

pub use bufgym_onnx::*;

/// The settings that may follow the file, in any order.
const KEYS: [&str; 2] = ["low_level", "actions"];

/// Loads the network of a policy string `onnx:FILE,low_level=HEURISTIC,actions=SET`, on top of the heuristic that the
/// settings or the file name.
///
/// # Errors
/// Fails if the string is another policy, if a setting cannot be read, and if the file contains no network that can
/// decide here.
pub fn entrant(policy: &str) -> Result<Entrant, EntrantError> {
    let text = match policy.split_once(':') {
        Some((ONNX, text)) if !text.is_empty() => text,
        _ => return Err(EntrantError::NoOnnxFile(policy.to_owned())),
    };
    let (file, settings) = split(text).map_err(|problem| EntrantError::OnnxSetting {
        policy: policy.to_owned(),
        problem,
    })?;
    let network = OnnxNetwork::load(Path::new(file), &settings);
    let network = network.map_err(|source| EntrantError::External {
        policy: policy.to_owned(),
        source: Box::new(source),
    })?;
    Ok(Entrant::external(policy, Network(network)))
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

/// A network as a policy of a comparison.
#[derive(Debug)]
struct Network(OnnxNetwork);

impl ExternalNetwork for Network {
    fn controller(&self) -> Box<dyn Controller> {
        Box::new(self.0.actor())
    }

    fn low_level(&self) -> &LowLevelPolicy {
        self.0.low_level()
    }

    fn prepare(&self, ports: usize) -> Result<(), Box<dyn Error + Send + Sync>> {
        Ok(self.0.prepare(ports)?)
    }

    fn origin(&self) -> String {
        let over = over(self.0.low_level());
        let facts = self.0.facts();
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

    fn training(&self) -> Option<Training> {
        let facts = self.0.facts();
        let (scenario, objective) = (facts.scenario.as_ref()?, facts.objective.as_ref()?);
        let task = format!(
            "{ONNX}, trained on {scenario} for {objective}{}",
            over(self.0.low_level())
        );
        Some(Training::new(task, facts.seed?, objective))
    }
}

#[cfg(test)]
mod decisions;

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
}
