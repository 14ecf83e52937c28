use bufgym_eval::evaluate::split_traces;
use bufgym_eval::metric::{AllFlows, ObjectiveMetrics};

use super::*;
use crate::ndt::setting::tests::context;
use crate::verdict::Grade;

/// Mean FCT of Dynamic Threshold.
const DT: f64 = 80.0;

/// Builds an evaluation with the given mean FCTs of two traces per policy; NaN makes a trace fail. Tails and variances
/// of port slowdowns are proportional to them. Everything else comes from a small simulation.
fn evaluation(policies: &[(&'static str, [f64; 2])]) -> Evaluation {
    let mut scenario = Scenario::default();
    scenario.set("flows=5").unwrap();
    let traces = split_traces(&scenario, Split::Test, 1, 2).unwrap();
    let config = EvalConfig::new(scenario, Vec::new(), 1);
    let simulated = evaluate_traces(&config, Split::Test, &traces, &|_| {}).unwrap();
    let of = |policy: &str, trace: usize, mean: f64| TraceResult {
        policy: policy.to_owned(),
        trace: trace as u64,
        all_flows: AllFlows {
            mean_fct_ms: Some(mean),
            p99_fct_ms: Some(mean * 9.0),
            ..AllFlows::default()
        },
        objectives: ObjectiveMetrics {
            port_slowdown_variance: Some(mean / 100.0),
            ..ObjectiveMetrics::default()
        },
        ratio_to_dt: Some(mean / DT),
        p99_ratio_to_dt: Some(mean / DT),
        failure: mean.is_nan().then(|| "a flow did not finish".to_owned()),
        ..simulated.results[0].clone()
    };
    let of_policy = |(policy, means): &(&'static str, [f64; 2])| {
        [0, 1].map(|trace| of(policy, trace, means[trace]))
    };
    Evaluation {
        results: policies.iter().flat_map(of_policy).collect(),
        ..simulated
    }
}

/// Builds results with the given mean FCTs of two traces for NDT and EDT.
fn results(ndt: [f64; 2], edt: [f64; 2]) -> Results {
    let evaluation = evaluation(&[
        ("ndt", ndt),
        ("st", [100.0, 100.0]),
        ("cs", [90.0, 90.0]),
        ("edt", edt),
        ("dt:alpha=64", [70.0, 70.0]),
        ("dt", [DT, DT]),
        ("unlimited", [50.0, 50.0]),
    ]);
    let mut policies = context(|context| context.policies(&RULES));
    policies.add("dt:alpha=64".parse().unwrap());
    policies.add(Entrant::unlimited());
    Results {
        evaluation,
        policies,
    }
}

fn of_figure(results: &Results, figure: NdtFigure) -> Vec<Claim> {
    let mut claims = context(|context| results.claims(context));
    claims.retain(|claim| is_of(claim, figure));
    claims
}

fn grades(results: &Results, figure: NdtFigure) -> Vec<Grade> {
    let claims = of_figure(results, figure);
    claims.iter().map(Claim::grade).collect()
}

fn column(table: &Table, name: &str) -> Vec<String> {
    let place = table.columns.iter().position(|c| *c == name).unwrap();
    table.rows.iter().map(|row| row[place].clone()).collect()
}

/// 57 is 8 % below 62 and 43 % below 100; EDT wins one trace of two against DT.
#[test]
fn values_like_the_paper_s_agree() {
    let like = results([57.0, 57.0], [40.5, 83.5]);
    let [value, order] = [Grade::Agrees, Grade::InRanking];
    let expected = [value, value, order, order, order];
    assert_eq!(grades(&like, NdtFigure::MeanFct), expected);
    assert_eq!(grades(&like, NdtFigure::Improvement), [value, value, order]);
    // 28.75 % is neither near 18 % nor within its factor; 0 is inside the interval of EDT's two.
    assert_eq!(grades(&like, NdtFigure::Tail), [order, value]);
    let remark = &of_figure(&like, NdtFigure::MeanFct)[0].remark;
    assert!(remark.contains("ndt 57.0 < edt 62.0 < dt 80.0 < cs 90.0 < st 100"));
}

#[test]
fn values_unlike_the_paper_s_differ() {
    let unlike = results([96.0, 81.0], [70.0, 71.0]);
    let expected = [
        Grade::Differs,
        Grade::InRanking,
        Grade::Differs,
        Grade::InRanking,
        Grade::InRanking,
    ];
    assert_eq!(grades(&unlike, NdtFigure::MeanFct), expected);
    assert_eq!(grades(&unlike, NdtFigure::Improvement), [Grade::Differs; 3]);
    let claims = of_figure(&unlike, NdtFigure::Improvement);
    assert_eq!(claims[0].ours.unwrap().value(), 0.0);
    assert!(claims[0].remark.starts_with("0 won, 0 tied, 2 lost"));
    assert!((claims[1].ours.unwrap().value() - -1.25).abs() < 1e-9);
}

#[test]
fn fairness_follows_the_variances() {
    let mut like = results([57.0, 57.0], [62.0, 62.0]);
    // In these results variances are proportional to FCT, so ST is the least fair.
    assert_eq!(grades(&like, NdtFigure::Fairness), [Grade::Differs; 3]);
    for result in &mut like.evaluation.results {
        result.objectives.port_slowdown_variance = Some(match result.policy.as_str() {
            "st" => 0.1,
            "ndt" => 0.2,
            "edt" => 0.3,
            "cs" => 5.0,
            _ => 0.15,
        });
    }
    assert_eq!(grades(&like, NdtFigure::Fairness), [Grade::InRanking; 3]);
    let table = context(|context| like.fairness_table(context));
    assert_eq!(column(&table, "policy")[..2], ["ndt", "st"]);
    let ratio: f64 = column(&table, "ratio_to_st")[0].parse().unwrap();
    assert!((ratio - 2.0).abs() < 1e-12);
}

#[test]
fn additions_are_marked_in_tables() {
    let results = results([57.0, 57.0], [62.0, 62.0]);
    let table = context(|context| results.mean_fct_table(context));
    assert_eq!(table.rows.len(), 14);
    let added: Vec<&Vec<String>> = table.rows.iter().filter(|row| row[1] == "yes").collect();
    let names: Vec<&str> = added.iter().map(|row| row[0].as_str()).collect();
    assert_eq!(
        names,
        ["dt:alpha=64", "dt:alpha=64", "unlimited", "unlimited"]
    );
    let improvement = results.improvement_table();
    assert!(!column(&improvement, "policy").contains(&"st".to_owned()));
    assert_eq!(column(&improvement, "rank")[..2], ["1", "2"]);
}

#[test]
fn every_panel_has_its_table_and_its_drawing() {
    let results = results([57.0, 50.0], [62.0, 60.0]);
    for figure in FIGURES {
        let panel = context(|context| results.panel(context, figure)).unwrap();
        assert_eq!(panel.id, figure.id());
        assert_eq!(panel.tables[0].name, format!("fig{}", figure.id()));
        let svg = panel.drawings[0].standalone();
        assert!(svg.contains("unlimited (added)"), "{}", figure.id());
    }
}

#[test]
fn a_trace_that_a_policy_failed_counts_for_none() {
    let failed = results([57.0, 57.0], [62.0, f64::NAN]);
    assert_eq!(failed.means("ndt"), [57.0]);
    assert_eq!(failed.means("edt"), [62.0]);
}
