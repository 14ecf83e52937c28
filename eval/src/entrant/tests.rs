use super::*;

#[test]
fn rules_know_their_part() {
    let role = |text: &str| text.parse::<Entrant>().unwrap().role();
    assert_eq!(role("dt"), Role::Baseline);
    assert_eq!(role("dt:alpha=1"), Role::Baseline);
    assert_eq!(role("dt:alpha=8"), Role::Heuristic);
    assert_eq!(role("unlimited"), Role::Reference);
    assert_eq!(role("cs"), Role::Heuristic);
}

#[test]
fn mistakes_are_one_clear_line() {
    let message = |text: &str| text.parse::<Entrant>().unwrap_err().to_string();
    assert!(message("ett").contains("`edt`"), "{}", message("ett"));
    assert!(message("ndt").contains("ndt:checkpoints/ndt-fct"));
    assert!(message("ndt:").contains("needs a checkpoint folder"));
    let missing = message("ndt:no/such/folder");
    assert!(
        missing.contains("no/such/folder") && !missing.contains('\n'),
        "{missing}"
    );
    for text in ["linear", "linear:"] {
        assert!(message(text).contains("bufgym tune linear"));
    }
    let missing = message("linear:no/such.json");
    assert!(
        missing.contains("no/such.json") && !missing.contains('\n'),
        "{missing}"
    );
}

#[test]
fn a_linear_rule_is_learned_but_no_network() {
    let file = LinearFile {
        bufgym_version: String::new(),
        low_level: "abm".parse().unwrap(),
        rule: LinearRule::constant(&[0.5]),
        scenario: "ndt-16x1g".to_owned(),
        scenario_toml: String::new(),
        objective: "fct".to_owned(),
        seed: 3,
        generations: 25,
        training: None,
    };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rule.json");
    std::fs::write(&path, file.to_json()).unwrap();
    let name = format!("linear:{}", path.display());
    let entrant: Entrant = name.parse().unwrap();
    assert_eq!(entrant.name(), name);
    assert_eq!(entrant.role(), Role::Learned);
    assert!(entrant.network().is_none());
    assert_eq!(
        entrant.entry().origin,
        "linear rule tuned on ndt-16x1g for fct over abm, seed 3, 25 generations"
    );
}
