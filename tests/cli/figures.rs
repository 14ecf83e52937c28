//! `figures`: a folder with page, verdicts, tables and drawings.

use crate::harness::Sandbox;

/// The rows of a CSV file without quoted cells, and the number of columns of its heading.
fn heading(text: &str) -> Vec<&str> {
    text.lines().next().unwrap().split(',').collect()
}

#[test]
fn a_figure_is_made_with_verdicts_table_drawing_and_page() {
    let sandbox = Sandbox::new();
    let small = "figures ndt --fig 12 --traces 1 --out f";
    let run = sandbox.ok(&format!("{small} --json"));
    let printed = run.json();
    assert_eq!(printed["paper"], "ndt");
    assert_eq!(printed["seeds"], 1);
    assert_eq!(printed["rows"].as_array().unwrap().len(), 9);
    let counted: u64 = printed["counts"]
        .as_object()
        .unwrap()
        .values()
        .map(|count| count.as_u64().unwrap())
        .sum();
    assert_eq!(counted, 9);
    for file in printed["files"].as_array().unwrap() {
        let name = file.as_str().unwrap();
        assert!(!sandbox.read(&format!("f/{name}")).is_empty(), "{name}");
    }
    let verdicts = sandbox.read("f/verdicts.csv");
    assert_eq!(
        heading(&verdicts),
        [
            "paper",
            "figure",
            "panel",
            "series",
            "x",
            "metric",
            "paper_value",
            "kind",
            "ours",
            "ours_lo",
            "ours_hi",
            "seeds",
            "verdict",
            "why"
        ]
    );
    let files = sandbox.files();
    for file in ["fig12a.csv", "fig12a.svg", "fig12b.csv", "fig12b.svg"] {
        assert!(files.contains(&format!("f/{file}")), "{files:?}");
    }
    let page = sandbox.read("f/index.html");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("Figure 12(b)"));
    assert!(!page.contains("Figure 8(a)"));

    sandbox.refused(small, &["f is not empty", "--force"]);
    let again = sandbox.ok("figures ndt --fig 12a --traces 1 --out f --force --quiet");
    assert_eq!(again.stderr, "");
    assert!(again.stdout.contains("page: f/index.html"));
    let of_fairness = |text: &str| {
        let kept = text.lines().filter(|line| line.starts_with("ndt,12,a"));
        kept.map(str::to_owned).collect::<Vec<_>>()
    };
    let repeated = sandbox.read("f/verdicts.csv");
    assert_eq!(of_fairness(&repeated), of_fairness(&verdicts));
    assert_eq!(of_fairness(&repeated).len(), 3);
}

#[test]
fn the_count_of_parameters_needs_no_simulation() {
    let sandbox = Sandbox::new();
    sandbox.random_checkpoint("c");
    let run = sandbox.ok("figures ndt --fig V-A --checkpoint c --out f --json");
    let row = &run.json()["rows"][0];
    assert_eq!(row["ours"], "47650");
    assert_eq!(row["verdict"], "agrees");
}

#[test]
fn what_cannot_be_made_is_refused_with_what_can() {
    let sandbox = Sandbox::new();
    for paper in ["credence", "abm", "reverie", "nothing"] {
        sandbox.refused(&format!("figures {paper} --out f"), &[paper, "ndt"]);
    }
    sandbox.refused(
        "figures ndt --fig 7 --out f",
        &["`7`", "8, 8a, 8b, 8c, 8d, 9, 9a, 9b, 10, 11, 12, 12a, 12b"],
    );
    sandbox.refused(
        "figures ndt --scale huge --out f",
        &["huge", "quick", "paper"],
    );
    sandbox.refused("figures ndt --seeds 0 --out f", &["--seeds", "0"]);
    sandbox.refused("figures ndt --checkpoint none --out f", &["none"]);
    sandbox.refused("figures ndt", &["--out"]);
    sandbox.write("file", "x");
    sandbox.refused("figures ndt --out file", &["file"]);
}
