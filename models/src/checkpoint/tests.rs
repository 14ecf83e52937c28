use super::*;
use bufgym_env::control::ActionSet;
use rand::SeedableRng;
use rand_xoshiro::Xoshiro256PlusPlus;

fn saved() -> (tempfile::TempDir, PathBuf, ActorWeights, Manifest) {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("checkpoint");
    let weights = ActorWeights::random(&mut Xoshiro256PlusPlus::seed_from_u64(3));
    let mut manifest = Manifest::new("ndt-16x1g", "ports = 16\n", "fct=1", 7);
    manifest.decisions = 1000;
    manifest.validation = Some(Validation {
        traces: 24,
        metric: "mean FCT / DT (alpha = 1)".to_owned(),
        value: 0.8,
        low: 0.75,
        high: 0.85,
        won: 0.9,
    });
    save_actor(&dir, &weights, &manifest).unwrap();
    (root, dir, weights, manifest)
}

/// Replaces a piece of the manifest's text.
fn edit(dir: &Path, from: &str, to: &str) -> CheckpointError {
    let path = dir.join(MANIFEST_FILE);
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(from), "{from} is not in {text}");
    fs::write(path, text.replacen(from, to, 1)).unwrap();
    load_actor(dir).unwrap_err()
}

#[test]
fn what_is_saved_is_loaded() {
    let (_root, dir, weights, manifest) = saved();
    let (loaded, described) = load_actor(&dir).unwrap();
    assert_eq!(loaded, weights);
    assert_eq!(described.weights_sha256.len(), 64);
    assert_eq!(
        Manifest {
            weights_sha256: String::new(),
            ..described
        },
        manifest
    );
}

/// The heuristic determines the outputs that decisions set.
#[test]
fn a_network_that_sets_early_drop_is_saved_and_loaded() {
    let root = tempfile::tempdir().unwrap();
    let dir = root.path().join("checkpoint");
    let rng = &mut Xoshiro256PlusPlus::seed_from_u64(3);
    let weights = ActorWeights::random_for(ActionSet::AlphaEarly, rng);
    let manifest = Manifest::new("ndt-16x1g", "ports = 16\n", "fct=1", 7);
    let manifest = manifest.over("dt+early".parse().unwrap());
    save_actor(&dir, &weights, &manifest).unwrap();
    let (loaded, described) = load_actor(&dir).unwrap();
    assert_eq!(loaded, weights);
    assert_eq!(described.architecture.parameters, 47_716);
    assert_eq!(described.actions.early_gaps.as_ref().unwrap()[7], 16);
    let error = edit(&dir, "dt+early", "dt").to_string();
    assert!(
        error.contains("architecture.parameters is 47716"),
        "{error}"
    );
    save_actor(&dir, &weights, &manifest).unwrap();
    let error = edit(&dir, "1024", "1023").to_string();
    assert!(error.contains("actions.early_gaps[1] is 1023"), "{error}");
    let finer = manifest.clone().over("dt+early:finest=4".parse().unwrap());
    save_actor(&dir, &weights, &finer).unwrap();
    let gaps = load_actor(&dir).unwrap().1.actions.early_gaps.unwrap();
    assert_eq!(gaps, [0, 256, 128, 64, 32, 16, 8, 4]);
    let scaled = manifest.over("dt+early:finest=buffer".parse().unwrap());
    save_actor(&dir, &weights, &scaled).unwrap();
    let levels = load_actor(&dir).unwrap().1.actions;
    assert_eq!(levels.early_gaps.unwrap(), [0, 64, 32, 16, 8, 4, 2, 1]);
    assert_eq!(levels.early_gap_bytes, Some(125_000));
    let error = edit(&dir, "125000", "125001").to_string();
    assert!(
        error.contains("actions.early_gap_bytes is 125001"),
        "{error}"
    );
    save_actor(&dir, &weights, &finer).unwrap();
    let error = edit(&dir, "early:finest=4", "early:finest=8").to_string();
    assert!(error.contains("actions.early_gaps[1] is 256"), "{error}");
}

#[test]
fn a_checkpoint_replaces_another() {
    let (_root, dir, _, manifest) = saved();
    let weights = ActorWeights::random(&mut Xoshiro256PlusPlus::seed_from_u64(4));
    save_actor(&dir, &weights, &manifest).unwrap();
    assert_eq!(load_actor(&dir).unwrap().0, weights);
}

#[test]
fn another_version_is_named() {
    let (_root, dir, ..) = saved();
    let error = edit(&dir, "\"format_version\": 1", "\"format_version\": 9");
    assert!(matches!(error, CheckpointError::Version { .. }));
    assert!(
        error
            .to_string()
            .ends_with("format_version is 9; this program reads version 1")
    );
}

#[test]
fn a_missing_field_is_named() {
    let (_root, dir, ..) = saved();
    let error = edit(&dir, "\"objective\": \"fct=1\",", "");
    assert!(
        error.to_string().contains("missing field `objective`"),
        "{error}"
    );
}

#[test]
fn another_network_is_named_with_what_would_be_right() {
    let (_root, dir, ..) = saved();
    let error = edit(&dir, "\"parameters\": 47650", "\"parameters\": 47651");
    let text = error.to_string();
    assert!(text.contains("architecture.parameters is 47651"), "{text}");
    assert!(text.ends_with("this program needs 47650"), "{text}");
    let (_root, dir, ..) = saved();
    let error = edit(&dir, "\"mean\": 0.0", "\"mean\": 0.5");
    assert!(
        error.to_string().contains("features[0].mean is 0.5"),
        "{error}"
    );
}

#[test]
fn the_weights_of_another_checkpoint_are_noticed() {
    let (_root, dir, ..) = saved();
    let error = edit(&dir, "\"weights_sha256\": \"", "\"weights_sha256\": \"0");
    assert!(matches!(error, CheckpointError::Sha256 { .. }));
    assert!(!error.to_string().contains('\n'));
}

#[test]
fn a_folder_that_is_no_checkpoint_is_told_from_one_that_is_missing() {
    let root = tempfile::tempdir().unwrap();
    let error = load_actor(root.path()).unwrap_err();
    assert!(matches!(error, CheckpointError::NoManifest(_)));
    let error = load_actor(&root.path().join("absent")).unwrap_err();
    assert!(matches!(error, CheckpointError::Io { .. }));
}

#[test]
fn no_truncation_or_flipped_byte_goes_unnoticed() {
    let (_root, dir, ..) = saved();
    for file in [WEIGHTS_FILE, MANIFEST_FILE] {
        let path = dir.join(file);
        let whole = fs::read(&path).unwrap();
        let positions = (0..40).map(|i| i * whole.len() / 40).chain(0..16);
        for position in positions {
            fs::write(&path, &whole[..position]).unwrap();
            assert!(load_actor(&dir).is_err(), "{file} cut to {position} bytes");
            let mut flipped = whole.clone();
            flipped[position] ^= 0x80;
            fs::write(&path, &flipped).unwrap();
            // In the manifest a changed byte makes invalid UTF-8 or JSON.
            assert!(
                load_actor(&dir).is_err(),
                "{file} with byte {position} changed"
            );
        }
        fs::write(&path, &whole).unwrap();
        assert!(load_actor(&dir).is_ok());
    }
}

#[test]
fn damaged_weights_with_a_fitting_hash_name_the_tensor() {
    let (_root, dir, weights, _) = saved();
    let mut tensors = named(&weights);
    tensors[4].shape = vec![128, 32];
    let bytes = encode_tensors(&tensors).unwrap();
    assert!(
        decode(&bytes, 1)
            .unwrap_err()
            .starts_with("the tensor `mix.weight` has shape [128, 32]")
    );
    tensors.remove(4);
    let bytes = encode_tensors(&tensors).unwrap();
    assert_eq!(
        decode(&bytes, 1).unwrap_err(),
        "the tensor `mix.weight` is missing"
    );
    for length in (0..bytes.len()).step_by(997) {
        assert!(decode(&bytes[..length], 1).is_err());
    }
    assert!(load_actor(&dir).is_ok());
}

#[test]
fn weights_that_are_not_numbers_are_not_saved() {
    let (_root, dir, weights, manifest) = saved();
    let mut tensors = weights.tensors().clone();
    tensors[0][0] = f32::NAN;
    let broken = ActorWeights::from_tensors(tensors, 1).unwrap();
    assert!(save_actor(&dir, &broken, &manifest).is_err());
    assert_eq!(load_actor(&dir).unwrap().0, weights);
}
