use bufgym_sim::scenario::RangeU32;

use super::*;

/// Small traces in a buffer that is too small for DT's caution.
fn config(policy: &str, traces: u64) -> TuneConfig {
    TuneConfig {
        scenario: Scenario {
            flows: RangeU32::new(60, 100),
            buffer_bytes: 300_000,
            ..Scenario::default()
        },
        policy: policy.parse().unwrap(),
        traces,
        seed: 1,
        metric: Metric::MeanFct,
    }
}

fn search(config: &TuneConfig) -> Tuning {
    tune(config, &mut |_| {}).unwrap()
}

#[test]
fn the_best_is_at_least_as_good_as_the_start_on_all_traces() {
    let tuning = search(&config("dt:alpha=0.0625", 8));
    assert!(
        tuning.best.ratio_to_dt < tuning.start.ratio_to_dt,
        "{tuning:?}"
    );
    assert_eq!((tuning.best.traces, tuning.start.traces), (8, 8));
    let full = tuning
        .tried
        .iter()
        .filter(|candidate| candidate.traces == 8);
    for candidate in full {
        assert!(tuning.best.ratio_to_dt <= candidate.ratio_to_dt);
    }
}

#[test]
fn dt_is_its_own_measure() {
    let tuning = search(&config("dt", 3));
    assert_eq!(tuning.start.ratio_to_dt, 1.0);
}

#[test]
fn every_metric_can_be_searched_for() {
    for metric in Metric::ALL {
        let tuning = search(&TuneConfig {
            metric,
            ..config("dt:alpha=0.25", 4)
        });
        assert!(tuning.best.ratio_to_dt <= tuning.start.ratio_to_dt);
        let worst = tuning
            .tried
            .iter()
            .map(|c| c.ratio_to_dt)
            .fold(0.0, f64::max);
        assert!(tuning.best.ratio_to_dt < worst, "{metric:?}: {tuning:?}");
        if metric == Metric::QueueingDelay {
            assert!(tuning.best.fct_ratio_to_dt <= crate::metric::DELAY_FCT_LIMIT);
        }
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let results = [1, 3].map(|threads| {
        let pool = rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build()
            .unwrap();
        let tuning = pool.install(|| search(&config("dt", 4)));
        (
            tuning.best.policy,
            tuning.best.ratio_to_dt,
            tuning.simulations,
        )
    });
    assert_eq!(results[0], results[1]);
}

#[test]
fn a_policy_without_parameters_is_only_measured() {
    let tuning = search(&config("st", 2));
    assert_eq!((tuning.tried.len(), tuning.best.policy.as_str()), (1, "st"));
}

/// A policy that is bad on the first traces only must not be dropped if it was the best before.
#[test]
fn the_first_policy_runs_to_the_end() {
    let config = config("dt", 8);
    let traces = split_traces(&config.scenario, Split::Train, config.seed, 8).unwrap();
    let mut race = Race::new(&config.scenario, config.metric, &traces).unwrap();
    let samples = |ratios: [f64; 8]| {
        let sample = |ratio| Sample {
            value: ratio,
            mean_fct_ms: ratio,
            complete: true,
        };
        ratios.map(sample).to_vec()
    };
    race.baseline = samples([1.0; 8]);
    let mut policies: Vec<PolicySpec> = vec![config.policy];
    policies.extend((2..12).map(|alpha| format!("dt:alpha={alpha}").parse().unwrap()));
    for policy in &policies {
        race.results.insert(policy.to_string(), samples([1.0; 8]));
    }
    let late = [2.0, 2.0, 2.0, 0.1, 0.1, 0.1, 0.1, 0.1];
    race.results.insert("dt".to_owned(), samples(late));
    assert_eq!(race.winner(policies).unwrap().to_string(), "dt");
}
