use bufgym_sim::scenario::RangeU32;

use super::*;
use crate::synthetic;

fn cell(title: &str, means: &[(&str, &[f64])]) -> CellResult {
    CellResult::of(title, None, synthetic::evaluation(means))
}

fn suite(cells: Vec<CellResult>) -> Suite {
    Suite {
        format: FORMAT.to_owned(),
        version: VERSION,
        software: "bufgym 0.0.0, abc".to_owned(),
        mains: vec![Comparison {
            evaluation: synthetic::typical(0.8),
            push_out: vec!["cs".to_owned()],
            spent: vec![Spent {
                policy: "edt".to_owned(),
                simulations: Some(4_074),
                edges: vec!["alpha=64 of 1..64".to_owned()],
            }],
        }],
        learner_simulations: Some(4_074),
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
        ..Transfer::default()
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
        "the training of the shipped policy ran 4074.",
        "At an edge of what was searched: `edt`: alpha=64 of 1..64.",
        "- `ndt-fct` beats `edt`: mean FCT ratio 0.8",
        "| **`ndt-fct`** |",
        "\n\n- `ndt-fct`: `ndt:checkpoints/ndt-fct`\n\n",
        "| share of the unlimited buffer's gain |",
        "| `ndt:checkpoints/ndt-fct` |\n",
        "| 4074 |",
        "| CUBIC | 2 | 27.5 % | 0.825 [0.800–0.850] | 1.000 [1.000–1.000] | 0.725 [0.700–0.750] | – | – |",
        "cells whose interval lies above 1.02: none",
    ] {
        assert!(page.contains(words), "{words} is not in\n{page}");
    }
}

#[test]
fn a_cell_has_the_rule_that_was_tuned_for_it() {
    let with = |title: &str, rule: &str, own: &[f64]| {
        let means: &[(&str, &[f64])] = &[
            ("ndt:a", &[8.0, 16.0]),
            (rule, own),
            DT,
            ("unlimited", &[7.0, 15.0]),
        ];
        let rule: Entrant = rule.parse().unwrap();
        CellResult::of(title, Some(&rule), synthetic::evaluation(means))
    };
    let suite = suite(vec![
        with("one", "dt:alpha=8", &[10.0, 20.0]),
        with("two", "dt:alpha=4", &[6.0, 12.0]),
    ]);
    let transfer = suite.transfer("ndt:a");
    assert_eq!((transfer.tuned, transfer.better_than_tuned), (2, 1));
    assert_eq!(transfer.worse_than_tuned, ["two"]);
    let page = render(&suite, "bufgym eval");
    for words in [
        "| scenario | traces | headroom | `a` | `dt` | `unlimited` | tuned for it | against it |",
        "| 1.000 [1.000–1.000] | 0.800 [0.800–0.800] |\n",
        "| 0.600 [0.600–0.600] | 1.333 [1.333–1.333] |\n",
        "- Tuned for two: `dt:alpha=4`",
        "it is better, beyond chance, in 1 of 2, and worse by more than 2 % in: two.",
    ] {
        assert!(page.contains(words), "{words} is not in\n{page}");
    }
}

#[test]
fn the_best_rule_does_not_push_out() {
    let mut suite = suite(Vec::new());
    let main = &mut suite.mains[0];
    main.evaluation = synthetic::evaluation(&[
        ("ndt:a", &[5.0, 10.0]),
        ("cs", &[6.0, 12.0]),
        ("edt", &[7.0, 14.0]),
        DT,
    ]);
    assert_eq!(main.drop_tail()[0].entry.policy, "edt");
    main.push_out.push("edt".to_owned());
    assert_eq!(main.drop_tail()[0].entry.policy, "dt");
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
    let scenario = Scenario::default().with(|scenario| {
        scenario.traffic.flows = RangeU32::new(20, 20);
    });
    let cell = Cell {
        title: "small buffer",
        scenario: (scenario.clone()).with(|scenario| scenario.network.buffer_bytes = 100_000),
        tuned: Some("st".parse().unwrap()),
    };
    let mut config = SuiteConfig {
        mains: vec![(
            EvalConfig {
                traces: 2,
                ..EvalConfig::new(scenario, vec![Entrant::baseline()], 1)
            },
            Vec::new(),
        )],
        learner_simulations: None,
        transferred: vec!["cs".parse().unwrap()],
        cells: vec![cell],
        cell_traces: 3,
        revision: "abc".to_owned(),
    };
    let parts = std::sync::Mutex::new(Vec::new());
    let note =
        |title: &str, simulations| parts.lock().unwrap().push((title.to_owned(), simulations));
    let folder = tempfile::tempdir().unwrap();
    let kept = ResultCache::new(folder.path().join("kept"));
    let suite = run(&config, Some(&kept), &note, &|_| {}).unwrap();
    let expected = [("ndt-16x1g".to_owned(), 4), ("small buffer".to_owned(), 12)];
    assert_eq!(*parts.lock().unwrap(), expected);
    assert_eq!(suite.mains[0].evaluation.results.len(), 4);
    assert_eq!(suite.cells[0].policies.len(), 4);

    let again = |config: &SuiteConfig| {
        parts.lock().unwrap().clear();
        let suite = run(config, Some(&kept), &note, &|_| {}).unwrap();
        let run = parts.lock().unwrap().iter().map(|part| part.1).collect();
        (suite, run)
    };
    let simulations: Vec<usize> = vec![0, 0];
    assert_eq!(again(&config), (suite, simulations));
    config.cells[0].scenario.network.buffer_bytes += 1;
    assert_eq!(again(&config).1, [0, 12]);
    config.revision = "abd".to_owned();
    assert_eq!(again(&config).1, [4, 12]);
    for file in std::fs::read_dir(kept.folder()).unwrap() {
        std::fs::write(file.unwrap().path(), "{").unwrap();
    }
    assert_eq!(again(&config).1, [4, 12]);
    kept.remove().unwrap();
    kept.remove().unwrap();
    assert!(!kept.folder().exists());
}

#[test]
fn the_seeds_of_a_training_take_one_row_and_one_column() {
    let trained = |evaluation| synthetic::with_two_seeds(evaluation, "ndt, trained");
    let means: &[(&str, &[f64])] = &[
        ("ndt:a", &[8.0, 17.0]),
        ("ndt:b", &[6.0, 15.0]),
        DT,
        ("unlimited", &[7.0, 15.0]),
    ];
    let cell = CellResult::of("CUBIC", None, trained(synthetic::evaluation(means)));
    let mut suite = suite(vec![cell]);
    suite.mains[0].evaluation = trained(synthetic::evaluation(means));
    assert_eq!(suite.transfer("ndt, trained").better, 1);
    let page = render(&suite, "bufgym eval");
    let table = front_table(&suite);
    let row = "| **ndt, trained: mean of 2 seeds** (0.675 to 0.825, deviation 0.106) | 11.5 | 0.750 [0.700–0.800] |";
    assert!(page.contains(row) && table.contains(row), "{page}");
    assert!(
        !table.contains("ndt:a") && page.contains("| **`a`** |"),
        "{table}"
    );
    assert!(
        page.contains(
            "| scenario | traces | headroom | `ndt, trained` | `dt` | `unlimited` | tuned for it |"
        ),
        "{page}"
    );
    assert!(page.contains("- `ndt, trained` beats `dt`"), "{page}");
}

#[test]
fn a_switch_with_many_ports_has_half_of_the_traces() {
    let cells = cells().unwrap();
    let fewer = cells.iter().filter(|cell| cell.traces(32) == 16);
    let fewer: Vec<usize> = fewer.map(|cell| cell.scenario.port_count()).collect();
    assert_eq!(fewer, [96]);
    assert!(
        cells
            .iter()
            .all(|cell| [16, 32].contains(&cell.traces(32)) && cell.traces(1) == 1)
    );
}
