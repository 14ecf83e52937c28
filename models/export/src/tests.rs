use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::*;
use bufgym_models::checkpoint::{Feature, WEIGHTS_FILE, decode_actor, encode_weights};
use bufgym_models::files::sha256;

/// Features `f0`, `f1`, … without normalisation.
pub(crate) fn features(count: usize) -> Vec<Feature> {
    let feature = |index: usize| Feature {
        name: format!("f{index}"),
        scale: String::new(),
        clip: [-1.0, 1.0],
        mean: 0.0,
        deviation: 1.0,
    };
    (0..count).map(feature).collect()
}

/// A network with eight levels.
pub(crate) fn network_of(history: usize, features: Vec<Feature>, layers: Vec<Layer>) -> Network {
    Network {
        history,
        features,
        layers,
        actions: Actions { levels: 8, unit: 2 },
        gaps: None,
        gap_bytes: None,
    }
}

fn source() -> Source {
    source_over("dt")
}

/// Returns a source with random weights that set the outputs that the heuristic leaves open.
fn source_over(low_level: &str) -> Source {
    let mut manifest = Manifest::new("ndt-16x1g", "", "fct", 1).over(low_level.parse().unwrap());
    let mut rng = Xoshiro256PlusPlus::seed_from_u64(7);
    let weights = ActorWeights::random_for(manifest.action_set(), &mut rng);
    manifest.weights_sha256 = sha256(&encode_weights(&weights).unwrap());
    let recording = Recording {
        ports: 1,
        observations: vec![0.5; OBSERVATION],
    };
    Source::new(weights, manifest, recording).unwrap()
}

#[test]
fn names_are_read_back_and_others_listed() {
    for format in Format::ALL {
        assert_eq!(format.name().parse(), Ok(format));
    }
    let message = "c99".parse::<Format>().unwrap_err().to_string();
    for format in Format::ALL {
        assert!(message.contains(format.name()), "{message}");
    }
}

#[test]
fn every_format_is_written_the_same_every_time() {
    for source in [source(), source_over("fab+early")] {
        for format in Format::ALL {
            let files = export(&source, format).unwrap();
            assert!(files.iter().all(|file| !file.bytes.is_empty()));
            assert_eq!(files, export(&source, format).unwrap());
        }
    }
}

#[test]
fn the_levels_of_everything_recorded_are_compared() {
    let integer = source().integer;
    assert_eq!(
        (integer.agreement.levels, integer.early_agreement),
        (1, None)
    );
    let integer = source_over("dt+early").integer;
    let early = integer.early_agreement.unwrap();
    assert_eq!((integer.agreement.levels, early.levels), (1, 1));
    let agreement = int8::Agreement::of([(0, 0), (1, 2), (7, 5), (3, 3)].into_iter());
    assert_eq!((agreement.equal, agreement.neighbouring), (2, 1));
    assert_eq!(agreement.share_different(), 0.5);
}

#[test]
fn safetensors_are_a_checkpoint_with_the_same_bits() {
    let source = source();
    let files = export(&source, Format::Safetensors).unwrap();
    let content = |name: &str| &files.iter().find(|file| file.path == name).unwrap().bytes;
    let manifest = content("manifest.json");
    let (weights, described) =
        decode_actor(manifest, content(WEIGHTS_FILE), "out".as_ref()).unwrap();
    let bits = |weights: &ActorWeights| -> Vec<u32> {
        weights
            .tensors()
            .iter()
            .flatten()
            .map(|value| value.to_bits())
            .collect()
    };
    assert_eq!(bits(&weights), bits(&source.weights));
    assert_eq!(described, source.manifest);
    let json: serde_json::Value = serde_json::from_slice(manifest).unwrap();
    assert_eq!(json["low_level"], source.manifest.low_level.to_string());
}

#[test]
fn the_code_says_where_it_comes_from() {
    let mut source = source();
    source.manifest.scenario = "*/ int main;".to_owned();
    let hash = source.manifest.weights_sha256.clone();
    for file in export(&source, Format::C).unwrap() {
        let text = String::from_utf8(file.bytes).unwrap();
        assert!(text.contains(&hash) && text.contains("* / int main;"));
    }
}
