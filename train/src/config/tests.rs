use super::*;

fn read(text: &str) -> Result<TrainConfig, TrainError> {
    TrainConfig::from_toml_str(text, Path::new("a.toml"))
}

#[test]
fn settings_survive_their_file() {
    let mut config = TrainConfig {
        seed: 3,
        budget: Budget {
            steps: None,
            minutes: Some(2.5),
        },
        ..TrainConfig::default()
    };
    config.scenario.set("active_ports=2..8").unwrap();
    config.low_level = "abm:update_us=20".parse().unwrap();
    config.sac.batch_size = 17;
    assert_eq!(read(&config.to_toml()).unwrap(), config);
    assert_eq!(read("").unwrap(), TrainConfig::default());
}

#[test]
fn every_built_in_heuristic_is_read_as_it_is_written() {
    let texts = [
        ALPHA_LOW_LEVEL,
        EARLY_LOW_LEVEL,
        EARLY_FROM_BACK,
        ALPHA_IN_NETWORK,
        EARLY_IN_NETWORK,
        INGRESS_LOW_LEVEL,
        mixed::LOW_LEVEL,
    ];
    for text in texts {
        assert_eq!(built_in(text).to_string(), text);
    }
}

#[test]
fn the_heuristic_of_a_file_that_names_none_depends_on_its_network() {
    let of = |text| read(text).unwrap().low_level.to_string();
    assert_eq!(of(""), "dt");
    assert_eq!(of("scenario = 'leafspine-4x4'"), "dt");
    assert_eq!(of("scenario = 'reverie-4x4'"), "reverie");
    assert_eq!(of("low_level = 'fab+front'"), EARLY_LOW_LEVEL);
}

#[test]
fn a_file_for_the_mixture_is_laid_over_its_defaults() {
    let mixed = TrainConfig::mixed().unwrap();
    assert_eq!(read("mixture = 'mixed'").unwrap(), mixed);
    let text =
        "mixture = 'mixed'\n[budget]\nminutes = 2\n[sac]\nbatch_size = 9\n[start]\nstep = 0.3\n";
    let config = read(text).unwrap();
    assert_eq!(config.mixture, mixed.mixture);
    assert_eq!(config.scenario, mixed.scenario);
    assert_eq!(config.sac.batch_size, 9);
    let expected = (None, Some(2.0));
    assert_eq!((config.budget.steps, config.budget.minutes), expected);
    let start = StartConfig {
        step: Some(0.3),
        ..mixed.start.clone()
    };
    assert_eq!(config.start, start);
    let alone = read("mixture = 'mixed'\nlow_level = 'dt'").unwrap();
    assert!(alone.start.rule.is_empty() && alone.validate().is_ok());
    // A run's own file has all settings, and a list of scenarios does not change the defaults.
    assert_eq!(read(&config.to_toml()).unwrap(), config);
    let listed = read("mixture = ['ndt-16x1g', 'linux-16x1g']").unwrap();
    assert_eq!(listed.start, StartConfig::default());
}

#[test]
fn mistakes_are_one_line_with_their_place() {
    for (text, parts) in [
        ("seed = 1\nsede = 2\n", ["a.toml", "line 2", "sede"]),
        ("[sac]\nbatchsize = 2\n", ["a.toml", "line 2", "batchsize"]),
        ("objective = 'fcd'", ["a.toml", "line 1", "fct"]),
        ("low_level = 'lqd'", ["a.toml", "line 1", "abm"]),
        ("[rollout]\nworkers = -1\n", ["a.toml", "line 2", "-1"]),
        ("[scenario]\nportz = 3\n", ["a.toml", "line", "portz"]),
        ("scenario = 'ndt-16x2g'", ["a.toml", "line 1", "ndt-16x1g"]),
        ("seed = = 1", ["a.toml", "line 1", ""]),
    ] {
        let message = read(text).unwrap_err().to_string();
        assert!(!message.contains('\n'), "{message}");
        for part in parts {
            assert!(message.contains(part), "{part:?} not in {message:?}");
        }
    }
}

#[test]
fn the_default_is_valid() {
    assert!(TrainConfig::default().validate().is_ok());
    assert_eq!(TrainConfig::default().simulations(), Some(1_656));
    for actions in ActionSet::ALL {
        for preset in ["ndt-16x1g", "leafspine-4x4"] {
            let scenario = Scenario::preset(preset).unwrap();
            let usual = default_low_level(actions, &scenario);
            assert_eq!(ActionSet::of(&usual), actions);
        }
    }
}

#[test]
fn the_default_heuristic_fits_where_packets_at_the_head_count_nowhere() {
    let mut scenario = Scenario::default();
    for uncounted in [0, 3] {
        scenario.set("count_in_service=false").unwrap();
        let setting = format!("ecn_uncounted_packets={uncounted}");
        scenario.set(&setting).unwrap();
        let usual = default_low_level(ActionSet::AlphaEarly, &scenario);
        let aqm = usual.policy().aqm().unwrap();
        assert_eq!(aqm.text("from") == Some("front"), uncounted == 0);
    }
}

#[test]
fn only_what_does_not_change_results_may_differ_at_a_resume() {
    let stored = TrainConfig::default();
    let mut given = stored.clone();
    given.budget.steps = Some(7);
    given.rollout.threads = 5;
    assert!(given.require_same(&stored).is_ok());
    given.sac.batch_size += 1;
    let message = given.require_same(&stored).unwrap_err().to_string();
    assert!(message.contains("sac.batch_size"), "{message}");
}

/// Other settings of the learner must not change what a start from a rule needs, and given ones stay.
#[test]
fn at_first_nothing_moves_the_means_of_a_policy_that_starts_from_a_rule() {
    let settled = |text: &str| {
        let mut config = read(text).unwrap();
        config.settle();
        let sac = config.sac;
        (
            sac.gaussian_entropy,
            sac.initial_temperature,
            sac.actor_starts,
        )
    };
    let rule = "[start]\nfrom = 'rule'\n[sac]\nbatch_size = 64\n";
    assert_eq!(settled(rule), (Some(true), Some(0.003), Some(256)));
    let given = format!("{rule}gaussian_entropy = false\nactor_starts = 0\n");
    assert_eq!(settled(&given), (Some(false), Some(0.003), Some(0)));
    let random = "[sac]\nbatch_size = 64\n";
    assert_eq!(settled(random), (Some(false), Some(0.1), Some(0)));
}
