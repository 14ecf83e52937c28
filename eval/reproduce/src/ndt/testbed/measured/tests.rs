use std::cell::{Cell, RefCell};

use super::*;
use crate::claim::Claim;
use crate::ndt::setting::tests::untrained;
use crate::ndt::testbed::played::tests::run;
use crate::verdict::Grade;

/// Configures panels with one trace of three flows for each load.
fn config(figures: &[NdtFigure], revision: &str) -> MeasuredConfig {
    let figures = NdtConfig {
        figures: figures.to_vec(),
        traces: Some(1),
        resamples: 100,
        ..NdtConfig::new(untrained(), 1, Scale::Quick, 1)
    };
    MeasuredConfig {
        figures,
        settings: vec!["flows=3".to_owned()],
        learned: "weights".to_owned(),
        machine: "a machine".to_owned(),
        revision: revision.to_owned(),
    }
}

/// Returns mean FCTs with which the paper's claims agree.
fn fct(order: &Order<'_>) -> f64 {
    let low = order.scenario.traffic.load.max < 0.5;
    match order.policy.name() {
        "dt" => 10.0,
        "edt" => 10.5,
        _ if low => 8.4,
        _ => 9.5,
    }
}

fn parts(folder: &tempfile::TempDir) -> ResultCache {
    ResultCache::new(folder.path().join("f.parts"))
}

#[test]
fn every_policy_plays_every_flow_list_in_turn() {
    let plan = MeasuredPlan::new(config(&[NdtFigure::WebSearch], "1")).unwrap();
    assert_eq!(plan.runs(), 27);
    let folder = tempfile::tempdir().unwrap();
    let orders = RefCell::new(Vec::new());
    let play = |order: &Order<'_>| -> Result<Played, PapersError> {
        let loads = order.scenario.traffic.load;
        assert_eq!(loads.min, loads.max);
        let name = order.policy.name().to_owned();
        orders
            .borrow_mut()
            .push((loads.min, name, order.trace.seed));
        Ok(run(fct(order)))
    };
    let made = plan.make(&parts(&folder), play, &|_| {}).unwrap();
    let orders = orders.into_inner();
    for (place, three) in orders.chunks(3).enumerate() {
        let names: Vec<&str> = three.iter().map(|(_, name, _)| name.as_str()).collect();
        let mut rotated = ["ndt", "dt", "edt"];
        rotated.rotate_left(place % 3);
        assert_eq!(names, rotated);
        assert!(
            three
                .iter()
                .all(|(load, _, seed)| (load, seed) == (&three[0].0, &three[0].2))
        );
    }
    assert_eq!(made.worst.runs, 27);
    // The measured round trip contains 40 µs that are neither rate nor propagation: 10 µs per link.
    assert_eq!(made.simulated_propagation_ns, [60_000]);
    let grades: Vec<Grade> = made.report.claims.iter().map(Claim::grade).collect();
    assert_eq!(grades, [Grade::InRanking, Grade::Agrees, Grade::InRanking]);
    let remark = &made.report.claims[0].remark;
    assert!(remark.contains("Over all 9 pairs of runs"), "{remark}");
    assert!(remark.contains("The simulator has "), "{remark}");
    let [table, runs] = made.report.panels[0].tables.as_slice() else {
        panic!("two tables");
    };
    assert_eq!((table.rows.len(), runs.rows.len()), (27, 27));
    assert_eq!(table.rows[0][..4], ["ndt", "", "10", "8.4"]);
    for ratio in &table.rows[0][4..7] {
        assert!(
            (ratio.parse::<f64>().unwrap() - 0.84).abs() < 1e-9,
            "{ratio}"
        );
    }
    assert_eq!(table.rows[0][7], "1");
    let column = |name: &str| {
        table
            .columns
            .iter()
            .position(|column| *column == name)
            .unwrap()
    };
    for row in &table.rows {
        let simulated: f64 = row[column("simulated_mean_fct_ms")].parse().unwrap();
        let error: f64 = row[column("simulated_over_measured")].parse().unwrap();
        let measured: f64 = row[column("mean_fct_ms")].parse().unwrap();
        assert!((error * measured / simulated - 1.0).abs() < 1e-9, "{row:?}");
        assert_eq!(row[column("late_p99_us")], "30");
    }
    let method = &made.report.panels[0].method;
    assert!(method.contains("stretched by the factor 5.00"), "{method}");
    assert!(method.contains("Worst of 27 runs"), "{method}");
}

#[test]
fn what_was_played_is_not_played_again() {
    let folder = tempfile::tempdir().unwrap();
    let played = Cell::new(0);
    let figures = [NdtFigure::WebSearch];
    let until = |last: usize| {
        let played = &played;
        move |order: &Order<'_>| -> Result<Played, PapersError> {
            if played.get() == last {
                return Err(PapersError::NotANetwork("stopped".to_owned()));
            }
            played.set(played.get() + 1);
            Ok(run(fct(order)))
        }
    };
    let plan = MeasuredPlan::new(config(&figures, "1")).unwrap();
    let stopped = plan.make(&parts(&folder), until(10), &|_| {});
    assert!(stopped.is_err_and(|error| error.to_string().contains("stopped")));
    let again = plan.make(&parts(&folder), until(27), &|_| {}).unwrap();
    assert_eq!(played.get(), 27, "ten of them were kept");
    let third = plan.make(&parts(&folder), until(27), &|_| {}).unwrap();
    assert_eq!(third.report.claims, again.report.claims);
    let other = MeasuredPlan::new(config(&figures, "2")).unwrap();
    other.make(&parts(&folder), until(54), &|_| {}).unwrap();
    assert_eq!(played.get(), 54, "those of another revision do not count");
    let mut machine = config(&figures, "1");
    machine.machine = "another machine".to_owned();
    let machine = MeasuredPlan::new(machine).unwrap();
    assert!(machine.make(&parts(&folder), until(54), &|_| {}).is_err());
}

#[test]
fn a_difference_is_beside_what_the_simulator_says() {
    let folder = tempfile::tempdir().unwrap();
    let plan = MeasuredPlan::new(MeasuredConfig {
        settings: vec!["flows=1".to_owned()],
        ..config(&[NdtFigure::WebSearch], "1")
    })
    .unwrap();
    let worse = |order: &Order<'_>| -> Result<Played, PapersError> {
        Ok(run(if order.policy.spec().is_some() {
            1.0
        } else {
            2.0
        }))
    };
    let made = plan.make(&parts(&folder), worse, &|_| {}).unwrap();
    let verdict = made.report.claims[0].verdict().to_string();
    assert!(verdict.starts_with("differs: unexplained; "), "{verdict}");
    assert!(verdict.contains("in the simulator"), "{verdict}");
    assert_eq!(made.report.panels[0].id, "9a");
    let note = made
        .report
        .notes
        .iter()
        .find(|note| note.contains("testbed’s: dt "));
    assert!(note.is_some(), "{:?}", made.report.notes);
}

#[test]
fn the_default_takes_twelve_minutes() {
    let config = MeasuredConfig {
        figures: NdtConfig::new(untrained(), 1, Scale::Quick, 1),
        settings: Vec::new(),
        ..config(&[], "1")
    };
    let plan = MeasuredPlan::new(config).unwrap();
    assert_eq!(plan.runs(), 2 * 9 * 2 * 3);
    let expected = plan.expected().as_secs_f64();
    assert!((400.0..720.0).contains(&expected), "{expected} s");
}
