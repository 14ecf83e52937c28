//! `figures`: a folder with page, verdicts, tables and drawings.

use crate::harness::Sandbox;

/// Returns the column names in the heading of a CSV file without quoted cells.
fn heading(text: &str) -> Vec<&str> {
    text.lines().next().unwrap().split(',').collect()
}

#[test]
fn a_figure_is_made_with_verdicts_table_drawing_and_page() {
    let sandbox = Sandbox::new();
    let small = "figures ndt --fig 8b --fig 12b --traces 1 --out f";
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
            "why",
            "ends"
        ]
    );
    let files = sandbox.files();
    for file in ["fig8b.csv", "fig8b.svg", "fig12b.csv", "fig12b.svg"] {
        assert!(files.contains(&format!("f/{file}")), "{files:?}");
    }
    let page = sandbox.read("f/index.html");
    assert!(page.starts_with("<!DOCTYPE html>") && page.contains("Figure 8(b)"));
    assert!(!page.contains("Figure 8(a)"));

    sandbox.refused(small, &["f is not empty", "--force"]);
    let again = sandbox.ok("figures ndt --fig 8b --traces 1 --out f --force --quiet");
    assert_eq!(again.stderr, "");
    assert!(again.stdout.contains("page: f/index.html"));
    let of_improvement = |text: &str| {
        let kept = text.lines().filter(|line| line.starts_with("ndt,8,b"));
        kept.map(str::to_owned).collect::<Vec<_>>()
    };
    let repeated = sandbox.read("f/verdicts.csv");
    assert_eq!(of_improvement(&repeated), of_improvement(&verdicts));
    assert_eq!(of_improvement(&repeated).len(), 3);
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
    sandbox.refused(
        "figures nothing --out f",
        &["nothing", "ndt, abm, credence, occamy, reverie"],
    );
    sandbox.refused(
        "figures reverie --fig 6 --out f",
        &["`6`", "4, 5, 7, 8, 9, 10, 11, 12"],
    );
    sandbox.refused(
        "figures reverie --checkpoint c --out f",
        &["--checkpoint has no meaning for the figures of reverie"],
    );
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

/// Settings of a network that takes a fraction of a second.
const TINY: &str = "--seeds 1 --set leaves=2 --set hosts_per_leaf=4 --set spines=1 \
    --set links_per_pair=1 --set active_ports=8 --set incast_degree=7 --set measure_ms=2 --set query_rate=200";

#[test]
fn figures_of_networks_are_made_and_leave_no_parts() {
    let sandbox = Sandbox::new();
    let run = sandbox.ok(&format!(
        "figures abm --fig 4 --fig 8 --fig 9 {TINY} --out f --json"
    ));
    let printed = run.json();
    assert_eq!(printed["paper"], "abm");
    assert_eq!(printed["seeds"], 1);
    for file in printed["files"].as_array().unwrap() {
        let name = file.as_str().unwrap();
        assert!(!sandbox.read(&format!("f/{name}")).is_empty(), "{name}");
    }
    let rows = printed["rows"].as_array().unwrap();
    let of = |figure: &str| rows.iter().filter(|row| row["figure"] == figure).count();
    assert_eq!((of("4"), of("8"), of("9")), (2, 40, 54));
    // Leaves of four hosts do not have the hosts of all three classes.
    let mixed = rows.iter().filter(|row| row["figure"] == "8");
    for row in mixed {
        let verdict = row["verdict"].as_str().unwrap();
        assert!(
            verdict.starts_with("not comparable: not run: "),
            "{verdict}"
        );
    }
    let page = sandbox.read("f/index.html");
    assert!(page.contains("load_hosts = 0..15: a leaf has 4 hosts"));
    assert!(page.find("claims agree").unwrap() < page.find("Figure 4").unwrap());
    let files = sandbox.files();
    assert!(
        !files.iter().any(|file| file.starts_with("f.parts")),
        "{files:?}"
    );
    let table = sandbox.read("f/fig9.csv");
    assert_eq!(
        heading(&table)[..5],
        ["series", "addition", "x", "runs", "unfinished"]
    );
    assert!(table.contains("\"CUBIC, unlimited\",yes,12.5,1,0"));
}

/// Two hosts of each leaf use CUBIC, one uses DCTCP, and one asks and answers with θ-PowerTCP.
#[test]
fn three_transports_in_a_small_network_are_measured_apart() {
    let sandbox = Sandbox::new();
    let classes = "--set load_hosts=0..1 --set second_hosts=2 --set query_hosts=3 --set query_fanin=1 \
        --set measure_ms=20";
    sandbox.ok(&format!("figures abm --fig 8 {TINY} {classes} --out f"));
    let table = sandbox.read("f/fig8.csv");
    let heads = heading(&table);
    let of = |name: &str| heads.iter().position(|head| *head == name).unwrap();
    let columns = [
        "incast_p99_slowdown",
        "short_p99_slowdown",
        "second_short_p99_slowdown",
    ]
    .map(of);
    // The series whose name has a comma is left out.
    let plain = table.lines().skip(1).filter(|line| !line.starts_with('"'));
    let rows: Vec<Vec<&str>> = plain.map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 18);
    for column in columns {
        assert!(
            rows.iter().all(|row| row[column].parse::<f64>().is_ok()),
            "{column}"
        );
    }
    let page = sandbox.read("f/index.html");
    for panel in ["fig8a.svg", "fig8b.svg", "fig8c.svg"] {
        assert!(
            sandbox.read(&format!("f/{panel}")).contains("slowdown"),
            "{panel}"
        );
    }
    assert!(page.contains("θ-PowerTCP") && !page.contains("not run:"));
}

#[test]
fn forests_of_a_network_are_the_oracle_of_credence() {
    let sandbox = Sandbox::new();
    let network = "--scenario leafspine-4x4 --set measure_ms=20 --set load=0.9 --set query_share=1";
    sandbox.ok(&format!(
        "credence train {network} --traces 2 --trees 2 --out forests"
    ));
    for kind in ["leaf", "spine"] {
        assert!(
            !sandbox
                .read(&format!("forests/{kind}/forest.json"))
                .is_empty()
        );
    }
    let figure = format!("figures credence --fig 10 {TINY}");
    sandbox.ok(&format!("{figure} --model forests --out f"));
    let page = sandbox.read("f/index.html");
    assert!(page.contains("forests of 2 and 2 trees"));
    sandbox.refused(&format!("{figure} --model nothing --out g"), &["nothing"]);
}

#[test]
fn a_learned_policy_is_a_series_of_the_figures_that_compare_policies() {
    let sandbox = Sandbox::new();
    sandbox.random_checkpoint("c");
    let figure = format!("figures credence --fig 6 {TINY}");
    sandbox.ok(&format!("{figure} --out without"));
    sandbox.ok(&format!("{figure} --checkpoint c --out f"));
    let (without, table) = (sandbox.read("without/fig6.csv"), sandbox.read("f/fig6.csv"));
    let (own, others): (Vec<&str>, Vec<&str>) =
        table.lines().partition(|line| line.starts_with("ndt,"));
    assert_eq!(own.len(), 4, "{table}");
    let page = sandbox.read("f/index.html");
    assert!(page.contains("ndt decides at every switch"));
    assert!(
        own.iter()
            .all(|line| line.split(',').any(|field| field == "yes"))
    );
    assert_eq!(others, without.lines().collect::<Vec<_>>());
}

#[test]
fn what_networks_cannot_have_is_refused() {
    let sandbox = Sandbox::new();
    let abm = "4, 5, 6, 7, 8, 9, 10, 11, 12";
    sandbox.refused("figures abm --fig 3 --out f", &["`3`", abm]);
    sandbox.refused("figures abm --fig 6e --out f", &["`6e`", abm]);
    sandbox.refused(
        "figures credence --fig 15 --out f",
        &["`15`", "6, 7, 8, 9, 10, 14"],
    );
    for seeds in ["0", "-1", "1.5", "many"] {
        sandbox.refused(
            &format!("figures abm --seeds {seeds} --out f"),
            &["--seeds", seeds],
        );
    }
    sandbox.refused(
        "figures abm --scale huge --out f",
        &["huge", "quick", "paper"],
    );
    sandbox.refused("figures abm --set nonsense=1 --out f", &["nonsense"]);
    sandbox.refused("figures abm --traces 3 --out f", &["--traces", "abm"]);
    sandbox.refused("figures abm --model f --out f", &["--model", "abm"]);
    sandbox.refused("figures credence --checkpoint none --out f", &["none"]);
    sandbox.refused("figures ndt --set load=0.5 --out f", &["--set", "ndt"]);
}

#[test]
fn pools_of_a_buffer_are_divided_without_a_simulation() {
    let sandbox = Sandbox::new();
    let run = sandbox.ok("figures reverie --fig 4 --fig 5b --out f --json");
    let printed = run.json();
    assert_eq!(printed["paper"], "reverie");
    let rows = printed["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 29);
    for row in rows {
        let verdict = row["verdict"].as_str().unwrap();
        assert!(verdict.starts_with("agrees"), "{row}");
    }
    let table = sandbox.read("f/fig4.csv");
    assert_eq!(table.lines().count(), 401);
    assert!(table.contains("\n20,20,13.33"));
    let files = sandbox.files();
    for file in ["fig4.svg", "fig5a.svg", "fig5b.svg"] {
        assert!(files.contains(&format!("f/{file}")), "{files:?}");
    }
}

/// Policies are compared in a small network, by seed and as medians.
#[test]
fn figures_with_lossless_packets_count_pauses() {
    let sandbox = Sandbox::new();
    let small = "--seeds 1 --set leaves=2 --set hosts_per_leaf=4 --set spines=1 --set active_ports=8 \
        --set incast_degree=7 --set measure_ms=2 --set query_rate=200 --set buffer_bytes=400000";
    let run = sandbox.ok(&format!("figures reverie --fig 7 {small} --out f --json"));
    let printed = run.json();
    let verdicts = printed["rows"].as_array().unwrap().iter();
    let verdicts: Vec<&str> = verdicts
        .map(|row| row["verdict"].as_str().unwrap())
        .collect();
    assert!(verdicts.len() == 13 && !verdicts.iter().any(|verdict| verdict.contains("not run")));
    for panel in ["a", "b", "c", "d", "e"] {
        let table = sandbox.read(&format!("f/fig7{panel}.csv"));
        assert_eq!(
            heading(&table),
            ["figure", "panel", "x", "policy", "seed", "value"]
        );
        assert_eq!(table.lines().count(), 13, "{table}");
        assert!(table.contains(&format!("7,{panel},20,SONiC with DT,0,")));
    }
    let page = sandbox.read("f/index.html");
    assert!(page.contains("No lossless packet was lost.") && !page.contains("not run:"));
    assert!(sandbox.read("f/fig7.csv").contains("pauses"));
}
