use super::*;
use bufgym_sim::network::OneSwitch;

fn config(settings: &[&str], rules: &[&str]) -> HeadroomConfig {
    let mut scenario = Scenario::default();
    for setting in settings {
        scenario.set(setting).unwrap();
    }
    let rules = rules.iter().map(|rule| rule.parse().unwrap()).collect();
    HeadroomConfig {
        traces: 3,
        planned: 1,
        jittered: 2,
        resamples: 500,
        ..HeadroomConfig::new(scenario, rules, 1)
    }
}

const CROWDED: [&str; 3] = ["flows=60", "active_ports=4", "buffer_bytes=150000"];

fn quietly(config: &HeadroomConfig) -> Headroom {
    measure(config, &|_| {}).unwrap()
}

fn rows(headroom: &Headroom, row: RowKind) -> Vec<&TraceRow> {
    let rows = headroom.per_trace.iter();
    rows.filter(|found| found.row == row).collect()
}

/// On the traces it was chosen on, a searched sequence is never worse than any rule.
#[test]
fn a_search_is_never_worse_than_what_it_started_from() {
    let rules = ["dt:alpha=8", "dt:alpha=32", "cs", "fab"];
    let found = quietly(&config(&CROWDED, &rules));
    let search = rows(&found, RowKind::Search);
    let own = rows(&found, RowKind::BestRuleOfTrace);
    let best = rows(&found, RowKind::BestRule);
    assert_eq!([search.len(), own.len(), best.len()], [3, 3, 3]);
    for ((search, own), best) in search.iter().zip(&own).zip(&best) {
        assert_eq!((search.trace, own.trace), (best.trace, best.trace));
        assert!(search.mean_fct_ms <= own.mean_fct_ms);
        assert!(own.mean_fct_ms <= best.mean_fct_ms);
        assert!(own.mean_fct_ms <= own.dt_mean_fct_ms);
    }
    let improved = search
        .iter()
        .zip(&own)
        .any(|(s, o)| s.mean_fct_ms < o.mean_fct_ms);
    assert!(improved, "the search found nothing: {search:?}");
    assert!(found.cost.fork_packets > 0 && found.cost.forks_as_runs > 1.0);
}

/// Ideal senders need no more time than real ones, and serving the shortest first is no worse than fair.
#[test]
fn ideal_senders_are_faster_than_any() {
    let found = quietly(&config(&CROWDED, &["cs"]));
    let fair = rows(&found, RowKind::FairSenders);
    let shortest = rows(&found, RowKind::ShortestFirst);
    let unlimited = rows(&found, RowKind::Unlimited);
    assert_eq!(fair.len(), 3);
    for ((fair, shortest), unlimited) in fair.iter().zip(&shortest).zip(&unlimited) {
        assert!(fair.mean_fct_ms < unlimited.mean_fct_ms);
        assert!(shortest.mean_fct_ms <= fair.mean_fct_ms);
        assert_eq!(fair.policy, "ideal, fair");
        assert!(fair.jittered_ratio_to_best_rule.unwrap() < 1.0);
        assert!(fair.jittered_goodput_bps > unlimited.jittered_goodput_bps);
    }
}

/// The ratios of the rows equal those of single simulations of the same traces.
#[test]
fn rows_are_what_the_simulations_say() {
    let config = config(&CROWDED, &["dt:alpha=8"]);
    let found = quietly(&config);
    let trace = split_traces(&config.scenario, Split::Validation, 1, 1).unwrap();
    let summary = |rule: PolicySpec, trace: &Trace| {
        let mut simulator = rule
            .simulator::<OneSwitch>(&config.scenario, trace)
            .unwrap();
        simulator.run().summary
    };
    let run = |rule, trace: &Trace| summary(rule, trace).mean_fct_ms;
    let row = rows(&found, RowKind::Unlimited)[0];
    assert_eq!((row.trace, row.seed), (0, trace[0].seed));
    let original = &trace[0].trace;
    assert_eq!(
        row.mean_fct_ms,
        Some(run(PolicySpec::unlimited(), original))
    );
    assert_eq!(
        row.dt_mean_fct_ms,
        Some(run(PolicySpec::baseline(), original))
    );
    let (fct, goodput): (Vec<f64>, Vec<f64>) = (0..2)
        .map(|copy| {
            let jitter = Duration::from_us(config.jitter_us);
            let label = "headroom: to repeat";
            let copy = jitter::jittered(original, jitter, trace[0].seed, label, copy);
            let summary = summary(PolicySpec::baseline(), &copy);
            (summary.mean_fct_ms, summary.goodput_bps)
        })
        .unzip();
    assert_eq!(row.jittered_dt_mean_fct_ms, stats::mean(&fct));
    assert_ne!(row.jittered_dt_mean_fct_ms, row.dt_mean_fct_ms);
    assert_eq!(row.jittered_dt_goodput_bps, stats::mean(&goodput));
}

#[test]
fn a_buffer_that_never_fills_leaves_nothing_to_win() {
    let settings = ["flows=60", "active_ports=4", "buffer_bytes=1000000000"];
    let found = quietly(&config(&settings, &["dt:alpha=8", "cs"]));
    assert!(found.verdict.nothing_to_win, "{:?}", found.verdict);
    assert!(found.verdict.text.contains("No gain"));
    let ideal = [RowKind::FairSenders, RowKind::ShortestFirst];
    let simulated = found.per_trace.iter();
    for row in simulated.filter(|row| !ideal.contains(&row.row)) {
        assert_eq!(row.ratio_to_dt, Some(1.0));
        assert_eq!(row.jittered_ratio_to_dt, Some(1.0));
    }
    assert_eq!(found.best_rule, "dt");
}

#[test]
fn the_result_does_not_depend_on_the_number_of_threads() {
    let config = HeadroomConfig {
        planned: 2,
        ..config(&CROWDED, &["dt:alpha=8"])
    };
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads);
        pool.build().unwrap().install(|| quietly(&config))
    };
    assert_eq!(with(1), with(2));
}

#[test]
fn traces_that_cannot_end_are_refused() {
    let config = config(&["flows=60", "max_simulated_ms=1"], &[]);
    let error = measure(&config, &|_| {}).unwrap_err();
    assert!(error.to_string().contains("max_simulated_ms"), "{error}");
}

#[test]
fn numbers_that_make_no_sense_are_refused() {
    let base = config(&CROWDED, &[]);
    let message = |config: HeadroomConfig| measure(&config, &|_| {}).unwrap_err().to_string();
    let cases = [
        (
            HeadroomConfig {
                traces: 0,
                ..base.clone()
            },
            "at least one trace",
        ),
        (
            HeadroomConfig {
                planned: 0,
                ..base.clone()
            },
            "at least 1",
        ),
        (
            HeadroomConfig {
                jittered: 0,
                ..base.clone()
            },
            "at least 1",
        ),
        (
            HeadroomConfig {
                step_us: 0,
                ..base.clone()
            },
            "step",
        ),
        (
            HeadroomConfig {
                horizon_us: 5,
                ..base.clone()
            },
            "horizon",
        ),
    ];
    for (config, words) in cases {
        let message = message(config);
        assert!(message.contains(words), "{message}");
    }
}

#[test]
fn the_default_step_and_horizon_follow_the_scenario() {
    let base = HeadroomConfig::new(Scenario::default(), Vec::new(), 1);
    assert_eq!((base.step_us, base.horizon_us), (20_000, 60_000));
    let mut fast = Scenario::default();
    fast.set("rate_bps=10000000000").unwrap();
    let fast = HeadroomConfig::new(fast, Vec::new(), 1);
    assert_eq!((fast.step_us, fast.horizon_us), (2_000, 6_000));
}

#[test]
fn files_and_tables_have_every_row() {
    let found = quietly(&config(&CROWDED, &["dt:alpha=8"]));
    let folder = tempfile::tempdir().unwrap();
    write_into(&found, folder.path()).unwrap();
    let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
    let back: Headroom = serde_json::from_str(&read("headroom.json")).unwrap();
    assert_eq!(back.rows, found.rows);
    assert_eq!(read("per_trace.csv").lines().count(), 1 + 3 * 6);
    let (page, table) = (read("headroom.md"), render(&found));
    for row in &found.rows {
        assert!(page.contains(row.row.title()) && table.contains(row.row.title()));
    }
    for text in [&page, &table] {
        assert!(text.contains(&found.verdict.text) && text.contains("picks chance"));
        assert!(text.contains("goodput, higher is better"));
    }
}
