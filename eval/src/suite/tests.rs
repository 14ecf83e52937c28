use bufgym_sim::scenario::RangeU32;

use super::*;
use crate::synthetic;

fn cell(title: &str, means: &[(&str, &[f64])]) -> CellResult {
    CellResult::of(title, synthetic::evaluation(means))
}

fn suite(cells: Vec<CellResult>) -> Suite {
    Suite {
        format: FORMAT.to_owned(),
        version: VERSION,
        software: "bufgym 0.0.0, abc".to_owned(),
        main: synthetic::typical(0.8),
        push_out: vec!["cs".to_owned()],
        cells,
        wall_s: 120.0,
    }
}

const DT: (&str, &[f64]) = ("dt", &[10.0, 20.0]);

#[test]
fn cells_are_counted_by_their_intervals() {
    let suite = suite(vec![
        cell(
            "won",
            &[("ndt:a", &[8.0, 17.0]), DT, ("unlimited", &[7.0, 15.0])],
        ),
        cell(
            "open",
            &[("ndt:a", &[9.0, 22.0]), DT, ("unlimited", &[7.0, 15.0])],
        ),
        cell(
            "no room",
            &[("ndt:a", &[10.1, 20.2]), DT, ("unlimited", &[9.9, 19.9])],
        ),
        cell(
            "lost",
            &[("ndt:a", &[11.0, 22.0]), DT, ("unlimited", &[12.0, 24.0])],
        ),
    ]);
    let expected = Transfer {
        lost: vec!["lost".to_owned()],
        with_headroom: 2,
        better: 1,
    };
    assert_eq!(suite.transfer("ndt:a"), expected);
    assert_eq!(suite.transfer("ndt:b"), Transfer::default());
}

#[test]
fn the_page_has_a_row_for_every_policy_and_cell() {
    let cell = cell(
        "CUBIC",
        &[("ndt:a", &[8.0, 17.0]), DT, ("unlimited", &[7.0, 15.0])],
    );
    let page = render(&suite(vec![cell]), "bufgym eval --suite paper --out DIR");
    for words in [
        "`bufgym eval --suite paper --out DIR` of bufgym 0.0.0, abc: 2 min",
        "| `cs`\\* |",
        "The best rule that never pushes out is `edt`: 0.9",
        "`ndt:checkpoints/ndt-fct` against it, trace by trace: 0.8",
        "| `ndt:checkpoints/ndt-fct` |",
        "| CUBIC | 27.5 % | 0.825 [0.800–0.850] | 1.000 [1.000–1.000] |",
        "cells whose interval lies above 1.02: none",
    ] {
        assert!(page.contains(words), "{words} is not in\n{page}");
    }
}

#[test]
fn the_best_rule_does_not_push_out() {
    let mut suite = suite(Vec::new());
    suite.main = synthetic::evaluation(&[
        ("ndt:a", &[5.0, 10.0]),
        ("cs", &[6.0, 12.0]),
        ("edt", &[7.0, 14.0]),
        DT,
    ]);
    assert_eq!(suite.best_drop_tail().unwrap().entry.policy, "edt");
    suite.push_out.push("edt".to_owned());
    assert_eq!(suite.best_drop_tail().unwrap().entry.policy, "dt");
}

#[test]
fn every_cell_is_a_scenario_of_its_own() {
    let cells = cells().unwrap();
    let main = Scenario::load(MAIN).unwrap();
    for (index, cell) in cells.iter().enumerate() {
        cell.scenario.validate().unwrap();
        assert_ne!(cell.scenario, main, "{}", cell.title);
        let others = &cells[..index];
        assert!(others.iter().all(|other| other.scenario != cell.scenario));
    }
}

#[test]
fn a_small_suite_runs() {
    let scenario = Scenario {
        flows: RangeU32::new(20, 20),
        ..Scenario::default()
    };
    let cell = Cell {
        title: "small buffer",
        scenario: Scenario {
            buffer_bytes: 100_000,
            ..scenario.clone()
        },
    };
    let config = SuiteConfig {
        main: EvalConfig {
            traces: 2,
            ..EvalConfig::new(scenario, vec![Entrant::baseline()], 1)
        },
        transferred: vec!["cs".parse().unwrap()],
        cells: vec![cell],
        cell_traces: 3,
        revision: "abc".to_owned(),
    };
    let parts = std::sync::Mutex::new(Vec::new());
    let note =
        |title: &str, simulations| parts.lock().unwrap().push((title.to_owned(), simulations));
    let suite = run(&config, &note, &|_| {}).unwrap();
    let expected = [("ndt-16x1g".to_owned(), 4), ("small buffer".to_owned(), 9)];
    assert_eq!(*parts.lock().unwrap(), expected);
    assert_eq!(suite.main.results.len(), 4);
    assert_eq!(suite.cells[0].policies.len(), 3);
}
