//! Figures of papers with untrained weights on few traces.

use std::collections::BTreeMap;
use std::fs;

use bufgym_eval::Entrant;
use bufgym_models::{ActorWeights, FastActor};
use bufgym_reproduce::ndt::{self, NdtConfig, NdtFigure};
use bufgym_reproduce::{PapersError, Report, Scale, Work, write_into};
use bufgym_util::rng;

fn config() -> NdtConfig {
    let weights = ActorWeights::random(&mut rng::stream(1, "test actor", 0));
    let learned = Entrant::learned("ndt", FastActor::new(&weights), "random weights");
    NdtConfig {
        traces: Some(1),
        figures: vec![NdtFigure::Queues, NdtFigure::Parameters],
        resamples: 200,
        ..NdtConfig::new(learned, 47_650, Scale::Quick, 3)
    }
}

/// Returns the name and content of every file except the page, which contains the wall time.
fn files(report: &Report) -> BTreeMap<String, String> {
    let folder = tempfile::tempdir().unwrap();
    write_into(report, folder.path()).unwrap();
    let entries = fs::read_dir(folder.path()).unwrap().map(Result::unwrap);
    let read = entries.map(|entry| {
        let name = entry.file_name().into_string().unwrap();
        (name, fs::read_to_string(entry.path()).unwrap())
    });
    read.filter(|(name, _)| name != "index.html").collect()
}

#[test]
fn the_same_for_any_number_of_threads_and_another_for_another_seed() {
    let on = |threads: usize, config: &NdtConfig| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        files(
            &pool
                .unwrap()
                .install(|| ndt::run(config, Work::new(&|_| {})).unwrap()),
        )
    };
    let one = on(1, &config());
    assert_eq!(
        one.keys().collect::<Vec<_>>(),
        [
            "fig10-excerpt.svg",
            "fig10-summary.csv",
            "fig10.csv",
            "fig10.svg",
            "section-v-a.csv",
            "verdicts.csv"
        ]
    );
    assert_eq!(one, on(3, &config()));
    let other = NdtConfig {
        seed: 4,
        ..config()
    };
    assert_ne!(one["fig10-summary.csv"], on(2, &other)["fig10-summary.csv"]);
}

#[test]
fn two_sets_of_traces_are_twice_as_many_and_say_so() {
    let with_sets = |seeds: u64| {
        let config = NdtConfig {
            seeds,
            figures: vec![NdtFigure::Queues],
            ..config()
        };
        ndt::run(&config, Work::new(&|_| {})).unwrap()
    };
    let (one, two) = (with_sets(1), with_sets(2));
    assert!(two.panels[0].method.contains("2 unseen traces"));
    assert_eq!(two.verdicts().rows[0][11], "2");
    let drops = |report: &Report| {
        let table = &report.panels[0].tables[1];
        let column = table.columns.iter().position(|c| *c == "drops").unwrap();
        let cs = table.rows.iter().find(|row| row[0] == "cs").unwrap();
        cs[column].parse::<u64>().unwrap()
    };
    assert!(drops(&two) > drops(&one));
}

#[test]
fn progress_ends_at_its_total() {
    let last = std::sync::Mutex::new((0, 0));
    let report = ndt::run(
        &config(),
        Work::new(&|progress| {
            let mut last = last.lock().unwrap();
            *last = (last.0.max(progress.done), progress.total);
        }),
    );
    assert!(!report.unwrap().claims.is_empty());
    let (done, total) = *last.lock().unwrap();
    assert_eq!(done, total);
}

#[test]
fn a_rule_cannot_be_the_series_ndt() {
    let rule = NdtConfig {
        learned: "dt:alpha=8".parse().unwrap(),
        ..config()
    };
    let refused = ndt::run(&rule, Work::new(&|_| {})).unwrap_err();
    assert!(matches!(refused, PapersError::NotANetwork(name) if name == "dt:alpha=8"));
}
