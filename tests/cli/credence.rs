//! `credence train` and `credence sweep`, and the policy with the model that they write.

use crate::harness::Sandbox;

/// Congested enough for Longest Queue Drop to lose packets in two traces.
const SMALL: &str = "--set flows=60..80 --set buffer_bytes=200000 --traces 3";

#[test]
fn a_trained_forest_is_a_policy() {
    let sandbox = Sandbox::new();
    let run = sandbox.ok(&format!(
        "credence train --scenario ndt-16x1g {SMALL} --out forest --json"
    ));
    let report = run.json();
    assert_eq!((&report["trees"], &report["depth"]), (&4.into(), &4.into()));
    assert_eq!(
        (&report["train"]["traces"], &report["test"]["traces"]),
        (&2.into(), &1.into())
    );
    assert!(report["test"]["lost"].as_u64().unwrap() > 0);
    let score = |name: &str| report["scores"][name].as_f64().unwrap();
    for name in ["accuracy", "precision", "recall", "f1", "error_score"] {
        assert!(
            (0.0..=1.0).contains(&score(name)),
            "{name}: {}",
            score(name)
        );
    }
    let kept = 1.0
        - report["test"]["lost"].as_f64().unwrap() / report["test"]["arrivals"].as_f64().unwrap();
    assert!(score("accuracy") > 0.9 * kept && score("recall") > 0.0);
    let f1 = 2.0 * score("precision") * score("recall") / (score("precision") + score("recall"));
    assert!((score("f1") - f1).abs() < 1e-9);

    let sim = |policy: &str| {
        let settings = "--scenario ndt-16x1g --set flows=60..80 --set buffer_bytes=200000";
        let run = sandbox.ok(&format!("sim --policy {policy} {settings} --seed 9 --json"));
        run.json()["drops"].as_u64().unwrap()
    };
    let with = sim("credence:oracle=forest,model=forest");
    let wrong = sim("credence:oracle=forest,model=forest,flip=1");
    assert!(wrong > with, "{wrong} {with}");
}

#[test]
fn equal_seeds_give_equal_models() {
    let sandbox = Sandbox::new();
    let model = |seed: u64, out: &str| {
        sandbox.ok(&format!(
            "credence train {SMALL} --trees 2 --depth 3 --seed {seed} --out {out}"
        ));
        sandbox.read(&format!("{out}/forest.json"))
    };
    assert_eq!(model(1, "a"), model(1, "b"));
    assert_ne!(model(1, "c"), model(2, "d"));
}

#[test]
fn an_output_that_exists_is_kept_without_force() {
    let sandbox = Sandbox::new();
    std::fs::create_dir(sandbox.path("forest")).unwrap();
    sandbox.write("forest/forest.json", "mine");
    let command = format!("credence train {SMALL} --out forest");
    sandbox.refused(&command, &["forest", "--force"]);
    assert_eq!(sandbox.read("forest/forest.json"), "mine");
    sandbox.ok(&format!("{command} --force"));
    assert!(sandbox.read("forest/forest.json").contains("trees"));
}

fn one_figure(svg: &str) {
    assert_eq!(svg.matches("</svg>").count(), 1);
    assert!(svg.trim_end().ends_with("</svg>"));
}

#[test]
fn the_sweeps_write_table_and_figure() {
    let sandbox = Sandbox::new();
    let command = format!("credence sweep --over trees {SMALL} --out fig --json");
    let value = sandbox.ok(&command).json();
    let points = value["points"].as_array().unwrap();
    let trees: Vec<u64> = points
        .iter()
        .map(|point| point["trees"].as_u64().unwrap())
        .collect();
    assert_eq!(trees, [1, 2, 4, 8, 16, 32, 64, 128]);
    assert_eq!(sandbox.read("fig/trees.csv").lines().count(), 9);
    one_figure(&sandbox.read("fig/trees.svg"));
    sandbox.refused(&command, &["fig", "--force"]);

    let command = format!("credence sweep --over flips {SMALL} --out flips --json");
    let value = sandbox.ok(&command).json();
    let points = value["points"].as_array().unwrap();
    let policies: Vec<&str> = points
        .iter()
        .map(|point| point["policy"].as_str().unwrap())
        .collect();
    assert_eq!(policies[..1], ["credence"]);
    assert_eq!(policies[policies.len() - 2..], ["lqd", "dt"]);
    let drops = |index: usize| points[index]["drops"].as_f64().unwrap();
    assert!(drops(policies.len() - 3) > drops(0), "all flipped");
    one_figure(&sandbox.read("flips/flips.svg"));
}

#[test]
fn a_perfect_oracle_needs_given_arrivals() {
    Sandbox::new().refused(
        "sim --policy credence:oracle=perfect --scenario ndt-16x1g",
        &["undefined", "senders react", "oracle=forest", "slotted"],
    );
}

#[test]
fn a_model_that_does_not_fit_is_refused() {
    let sandbox = Sandbox::new();
    let sim = |model: &str, words: &[&str]| {
        sandbox.refused(
            &format!("sim --policy credence:oracle=forest,model={model} --scenario ndt-16x1g"),
            words,
        );
    };
    sim("nowhere", &["nowhere/forest.json", "bufgym credence train"]);
    sandbox.ok(&format!("credence train {SMALL} --out forest"));
    let good = sandbox.read("forest/forest.json");
    std::fs::create_dir(sandbox.path("bad")).unwrap();
    let of = |content: &str, words: &[&str]| {
        sandbox.write("bad/forest.json", content);
        sim("bad", words);
    };
    of(
        &good.replace("queue_average", "flow_age"),
        &["bad/forest.json", "flow_age", "queue_average"],
    );
    of(&good[..good.len() / 2], &["bad/forest.json", "damaged"]);
    of("[]", &["bad/forest.json", "bufgym credence train"]);
    of(
        &good.replace("\"version\": 1", "\"version\": 7"),
        &["format", "7"],
    );
    sandbox.refused(
        "credence sweep --over flips --model nowhere",
        &["nowhere/forest.json"],
    );
}

#[test]
fn bad_usage_is_one_line() {
    let sandbox = Sandbox::new();
    let refused = |arguments: &str, words: &[&str]| {
        sandbox.refused(&format!("credence {arguments}"), words);
    };
    refused(
        "train --trees 0 --out forest",
        &["trees 0", "from 1 to 256"],
    );
    refused("train --depth 5 --out forest", &["depth 5", "from 1 to 4"]);
    refused("train --traces 1 --out forest", &["--traces", "1"]);
    refused(
        "train --threshold 0 --out forest",
        &["--threshold", "above 0"],
    );
    refused("train --scenario nope --out forest", &["nope"]);
    refused("train --set laod=1 --out forest", &["laod"]);
    refused("train", &["--out"]);
    refused("sweep --over leaves", &["leaves", "trees", "flips"]);
    refused("sweep --over trees --model forest", &["--model"]);
    refused("sweep --over flips --threshold 0.3", &["--threshold"]);
    refused(
        "train --quiet --set flows=2..2 --traces 2 --out forest",
        &["lost 0 of", "raise the load"],
    );
}
