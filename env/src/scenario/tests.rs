use super::*;

#[test]
fn every_preset_is_valid_and_survives_toml() {
    for preset in Scenario::presets() {
        let scenario = preset.scenario();
        assert_eq!(scenario.name, preset.name);
        scenario.validate().unwrap();
        assert_eq!(
            Scenario::from_toml_str(&scenario.to_toml(), "other.toml").unwrap(),
            scenario
        );
    }
}
