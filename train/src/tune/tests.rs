use bufgym_sim::scenario::RangeU32;

use super::*;

/// Returns small traces in a buffer that is too small for DT's caution.
fn config(policy: &str, simulations: u64) -> TuneConfig {
    let scenario = Scenario::default().with(|scenario| {
        scenario.traffic.flows = RangeU32::new(30, 50);
        scenario.network.buffer_bytes = 300_000;
    });
    TuneConfig {
        simulations,
        ..TuneConfig::new(scenario, policy.parse().unwrap(), 1)
    }
}

fn found(config: &TuneConfig) -> Tuning {
    tune(config, &Backend::default(), &mut |_| ()).unwrap()
}

#[test]
fn what_is_found_is_never_worse_than_the_default() {
    for policy in ["dt:alpha=0.02", "edt+random", "st", "st+red", "lqd+codel"] {
        let tuning = found(&config(policy, 150));
        assert!(tuning.best.ratio_to_dt <= tuning.start.ratio_to_dt);
        assert!(tuning.tried.contains(&tuning.start), "{tuning:?}");
        assert!(tuning.simulations <= 150, "{}", tuning.simulations);
        for candidate in &tuning.tried {
            assert!(tuning.best.ratio_to_dt <= candidate.ratio_to_dt);
        }
    }
}

#[test]
fn a_bad_start_is_left() {
    let tuning = found(&config("dt:alpha=0.02", 400));
    assert_eq!(tuning.start.policy, "dt");
    let given = tuning.tried.iter().find(|c| c.policy == "dt:alpha=0.02");
    assert!(tuning.best.ratio_to_dt < given.unwrap().ratio_to_dt);
    assert!(tuning.best.ratio_to_dt < 1.0, "{tuning:?}");
}

#[test]
fn the_search_repeats_itself_on_any_number_of_threads() {
    let config = config("fab+red", 250);
    let results = [1, 3].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let mut told = Vec::new();
        let tuning = pool.unwrap().install(|| {
            tune(&config, &Backend::default(), &mut |progress| {
                told.push((progress.done, progress.best.to_string()));
            })
        });
        let tuning = Tuning {
            wall_s: 0.0,
            ..tuning.unwrap()
        };
        (tuning, told)
    });
    assert_eq!(results[0], results[1]);
    assert!(results[0].1.len() > 1);
}

#[test]
fn every_metric_can_be_searched_for() {
    for metric in Metric::ALL {
        let tuning = found(&TuneConfig {
            metric,
            ..config("dt:alpha=0.25", 100)
        });
        assert!(tuning.best.ratio_to_dt <= tuning.start.ratio_to_dt);
    }
}

#[test]
fn earlier_results_are_compared_too() {
    let mut config = config("dt", 100);
    let starts = ["dt:alpha=77", "edt", "dt:alpha=78+red"];
    config.starts = starts.map(|start| start.parse().unwrap()).to_vec();
    let tuning = found(&config);
    let tried: Vec<&str> = tuning.tried.iter().map(|c| c.policy.as_str()).collect();
    assert!(tried.contains(&"dt:alpha=77"), "{tried:?}");
    for other in &starts[1..] {
        assert!(!tried.contains(other), "{tried:?}");
    }
}

#[test]
fn what_does_not_fit_is_refused_and_numbers_too_low_are_named() {
    let refused = |config: &TuneConfig| {
        tune(config, &Backend::default(), &mut |_| ())
            .unwrap_err()
            .to_string()
    };
    let unfit = config("dt+red:min_bytes=9,max_bytes=9", 100);
    assert!(refused(&unfit).contains("max_bytes=9"));
    assert!(refused(&config("dt", 99)).starts_with("simulations: 99"));
    let none = TuneConfig {
        traces: 0,
        ..config("dt", 100)
    };
    assert!(refused(&none).starts_with("traces: 0"));
}
