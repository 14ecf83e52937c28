use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

const PRESET: &str = "leafspine-4x4";

fn common() -> Common {
    Common {
        settings: vec!["measure_ms=3".to_owned()],
        seed: 5,
        training: false,
        forests: None,
        learned: None,
        revision: "a revision".to_owned(),
    }
}

fn cell(policy: &str, settings: &[&str]) -> Cell {
    let settings = settings.iter().map(|s| (*s).to_owned()).collect();
    Cell::new(PRESET, policy, settings)
}

fn plan(common: Common) -> (GridPlan, [Cell; 3]) {
    let mut plan = GridPlan::new(common);
    let cells = [
        cell("dt:alpha=0.5", &["load=0.4"]),
        // This is the preset's own load, so it is the same scenario.
        cell("dt:alpha=0.5", &[]),
        cell("abm", &["load=0.2"]),
    ];
    for cell in &cells {
        plan.want(cell, 2);
    }
    (plan, cells)
}

#[test]
fn cells_that_are_the_same_simulation_share_it() {
    let (mut plan, cells) = plan(common());
    assert_eq!(plan.simulations(), 4);
    plan.want(&cells[0], 3);
    assert_eq!(plan.simulations(), 5);
    let grid = plan.run(None, &Work::new(&|_| {})).unwrap();
    assert_eq!(grid.simulations(), 5);
    assert_eq!(grid.of(&cells[0]).len(), 3);
    assert_eq!(grid.of(&cells[0]), grid.of(&cells[1]));
    assert_ne!(grid.of(&cells[0])[0], grid.of(&cells[0])[1]);
    assert_eq!(grid.unfinished(), 0);
}

#[test]
fn a_learned_policy_decides_at_every_switch() {
    let settings = ["load=0.9", "query_share=1", "query_rate=300"];
    let cells = [LEARNED, "dt"].map(|policy| cell(policy, &settings));
    let weights = ActorWeights::random(&mut bufgym_util::rng::stream(1, "test", 0));
    let manifest = Manifest::new(PRESET, "", "fct", 1);
    let learned = Learned::new("mine", &weights, &manifest);
    let run = |learned| {
        let mut plan = GridPlan::new(Common {
            learned,
            ..common()
        });
        cells.iter().for_each(|cell| plan.want(cell, 1));
        plan.run(None, &Work::new(&|_| {})).unwrap()
    };
    let grid = run(Some(learned));
    assert_ne!(grid.of(&cells[0]), grid.of(&cells[1]));
    assert_eq!(grid.of(&cells[0]).len(), 1);
    let without = run(None);
    assert!(without.of(&cells[0]).is_empty());
    assert!(without.refusal(&cells[0]).unwrap().contains(LEARNED));
    assert_eq!(without.of(&cells[1]), grid.of(&cells[1]));
}

#[test]
fn what_this_version_cannot_run_is_left_out_with_the_reason() {
    let mut plan = GridPlan::new(common());
    let refused = [
        cell("dt", &["no_such_setting=1"]),
        cell("dt", &["transport=pigeon"]),
        cell("nothing", &[]),
        cell("abm:alphas=1/2/3", &[]),
    ];
    for cell in &refused {
        plan.want(cell, 2);
    }
    assert_eq!(plan.simulations(), 0);
    let grid = plan.run(None, &Work::new(&|_| {})).unwrap();
    for (cell, word) in refused
        .iter()
        .zip(["no_such_setting", "pigeon", "nothing", "abm"])
    {
        assert!(grid.of(cell).is_empty());
        let reason = grid.refusal(cell).unwrap();
        assert!(reason.contains(word), "{reason}");
    }
    assert!(grid.refusal(&cell("dt", &[])).is_none());
}

#[test]
fn the_same_on_any_number_of_threads() {
    let on = |threads: usize| {
        let (plan, cells) = plan(common());
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let grid = pool
            .unwrap()
            .install(|| plan.run(None, &Work::new(&|_| {})).unwrap());
        cells.map(|cell| grid.of(&cell).to_vec())
    };
    assert_eq!(on(1), on(3));
}

#[test]
fn a_stopped_run_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let parts = ResultCache::new(folder.path().join("kept"));
    let (first, cells) = plan(common());
    let whole = first.run(Some(&parts), &Work::new(&|_| {})).unwrap();
    let files = || std::fs::read_dir(parts.folder()).unwrap().count();
    assert_eq!(files(), 4);

    // The state is like after a kill: one result is missing, one is damaged; the others are not run again.
    let mut kept: Vec<_> = std::fs::read_dir(parts.folder())
        .unwrap()
        .map(Result::unwrap)
        .collect();
    kept.sort_by_key(|entry| entry.file_name());
    std::fs::remove_file(kept[0].path()).unwrap();
    std::fs::write(kept[1].path(), "{").unwrap();
    let times = |number: usize| kept[number].metadata().unwrap().modified().unwrap();
    let before = [times(2), times(3)];
    let ticks = AtomicUsize::new(0);
    let (again, _) = plan(common());
    let tick = |_: bufgym_eval::evaluate::Progress<'_>| {
        ticks.fetch_add(1, Ordering::Relaxed);
    };
    let resumed = again.run(Some(&parts), &Work::new(&tick)).unwrap();
    assert_eq!(files(), 4);
    assert_eq!([times(2), times(3)], before);
    assert_eq!(ticks.into_inner(), 4);
    for cell in &cells {
        assert_eq!(whole.of(cell), resumed.of(cell));
    }

    // With another seed or another revision, no stored result is used.
    for other in [
        Common {
            seed: 6,
            ..common()
        },
        Common {
            revision: "another".to_owned(),
            ..common()
        },
    ] {
        let had = files();
        let work = Work::new(&|_| {});
        plan(other).0.run(Some(&parts), &work).unwrap();
        assert_eq!(files(), had + 4);
    }
    parts.remove().unwrap();
    assert!(!parts.folder().exists());
}
