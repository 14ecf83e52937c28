mod lossless;

use super::*;

/// Returns the paper with this name.
pub(super) fn named(name: &str) -> Paper {
    Paper::named(name).unwrap()
}

fn tiny(figures: &[&str]) -> FabricConfig {
    FabricConfig {
        seeds: Some(1),
        settings: [
            "leaves=2",
            "hosts_per_leaf=4",
            "spines=1",
            "links_per_pair=1",
            "active_ports=8",
            "incast_degree=7",
            "measure_ms=2",
            "query_rate=200",
        ]
        .map(str::to_owned)
        .to_vec(),
        figures: figures.iter().map(|f| (*f).to_owned()).collect(),
        ..FabricConfig::new(Scale::Quick, 3)
    }
}

#[test]
fn figures_are_named_with_and_without_panel() {
    for (text, number) in [("6", "6"), ("6A", "6"), ("10b", "10"), ("12", "12")] {
        assert_eq!(named("abm").figure(text).unwrap(), number);
    }
    for text in ["1", "13", "6e", "", "a", "66"] {
        let error = named("abm").figure(text).unwrap_err().to_string();
        assert!(error.ends_with("4, 5, 6, 7, 8, 9, 10, 11, 12"), "{error}");
    }
    assert!(named("credence").figure("15").is_err());
}

#[test]
fn every_figure_is_planned_or_computed_and_its_claims_are_of_its_panels() {
    for paper in Paper::all() {
        let config = tiny(&[]);
        for number in paper.figures() {
            let plan = paper.planned(number, &config, "1");
            assert_ne!(
                plan.is_some(),
                paper.coded().any(|(coded, _)| coded == number),
                "{number}"
            );
            let Some(plan) = plan else { continue };
            assert_eq!(plan.sweep.figure, number);
            let grid = Grid::default();
            for claim in plan.claims(&plan.sweep.measured(&grid)) {
                let id = format!("{}{}", claim.figure, claim.panel);
                assert!(
                    plan.figure.panels.iter().any(|panel| panel.id == *id),
                    "{id}"
                );
                assert_eq!(
                    claim.grade(),
                    super::super::Grade::NotComparable,
                    "{id}: {}",
                    claim.statement
                );
            }
        }
    }
}

#[test]
fn what_figures_share_is_simulated_once() {
    let simulations = |figures: &[&str]| {
        let config = tiny(figures);
        let plans = figures
            .iter()
            .filter_map(|n| named("abm").planned(n, &config, "1"));
        let mut plan = GridPlan::new(named("abm").common(&config, false));
        for figure in plans {
            figure.sweep.want(&mut plan);
        }
        plan.simulations()
    };
    // Fig. 9 with CUBIC shares the runs of DT, ABM and the unlimited buffer with Fig. 7.
    let (seven, nine) = (simulations(&["7"]), simulations(&["9"]));
    assert_eq!(simulations(&["7", "9"]), seven + nine - 15);
}

#[test]
fn a_paper_is_made_at_a_tiny_scale_the_same_on_any_number_of_threads() {
    let on = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
        let make = || named("credence").make(&tiny(&["8", "10"]), None, &Work::new(&|_| {}));
        pool.unwrap().install(make).unwrap()
    };
    let (one, three) = (on(1), on(3));
    assert_eq!(one.claims, three.claims);
    assert_eq!(one.verdicts(), three.verdicts());
    let ids: Vec<&str> = one.panels.iter().map(|panel| panel.id).collect();
    assert_eq!(ids, ["8a", "8b", "8c", "8d", "10a", "10b", "10c", "10d"]);
    let tables = one.panels.iter().map(|panel| &panel.tables);
    let three_tables = three.panels.iter().map(|panel| &panel.tables);
    assert!(tables.eq(three_tables));
    let mut eighth = one.claims.iter().filter(|claim| claim.figure == "8");
    assert!(eighth.any(|claim| claim.ours.is_some()));
}

#[test]
fn what_differs_is_run_again_at_the_scale_of_the_paper() {
    let quick = tiny(&["9"]);
    let paper = FabricConfig {
        scale: Scale::Paper,
        ..quick.clone()
    };
    let make = |config| {
        named("credence")
            .make(config, None, &Work::new(&|_| {}))
            .unwrap()
    };
    let (once, again) = (make(&quick), make(&paper));
    for (before, after) in once.claims.iter().zip(&again.claims) {
        let (before, after) = (before.verdict().to_string(), after.verdict().to_string());
        match before.as_str() {
            "differs: unexplained" => {
                let tried = after.starts_with("differs: unexplained; also with ");
                assert!(tried || after.starts_with("differs: with "), "{after}");
            }
            _ => assert_eq!(before, after),
        }
    }
    let differs = |report: &Report| report.counts(None)[3];
    assert!(differs(&once) > 0 && differs(&once) == differs(&again));
}

#[test]
fn points_of_open_claims_are_run_again_and_no_others() {
    let config = tiny(&[]);
    let plan = named("credence").planned("6", &config, "1").unwrap();
    let claim = |x: &str, ours: f64| {
        let target = super::super::Target::Value(1.0);
        let ours = bufgym_eval::stats::Spread::of(vec![ours]);
        Claim::number(("6", "a"), "Credence", "m", "s", target)
            .at(x)
            .measured(ours)
    };
    let open = |claims: &[Claim]| open_points(&plan, claims);
    assert!(open(&[claim("load 20 %", 1.0)]).is_empty());
    assert_eq!(
        open(&[claim("load 20 %", 1.0), claim("load 40 %", 9.0)]),
        ["load 40 %"]
    );
    assert_eq!(open(&[claim("mean over the points", 9.0)]).len(), 4);
}

/// Tests Fig. 8 in a small network: three classes with their own hosts. Every series has the short flows of
/// both classes and in-cast flows.
#[test]
fn three_transports_share_a_network() {
    let config = FabricConfig {
        seeds: Some(1),
        settings: ["measure_ms=10", "query_rate=40"]
            .map(str::to_owned)
            .to_vec(),
        figures: vec!["8".to_owned()],
        ..FabricConfig::new(Scale::Quick, 3)
    };
    let plan = named("abm").planned("8", &config, "1").unwrap();
    let mut simulations = GridPlan::new(named("abm").common(&config, false));
    let wanted = |point: &Point| point.label == "CUBIC load 60 %";
    plan.sweep.want_at(&mut simulations, wanted);
    assert_eq!(simulations.simulations(), 4);
    let grid = simulations.run(None, &Work::new(&|_| {})).unwrap();
    let swept = plan.sweep.measured(&grid);
    let point = plan
        .sweep
        .points
        .iter()
        .find(|point| wanted(point))
        .unwrap();
    for series in &plan.sweep.series {
        assert_eq!(swept.refusal(&series.name), None);
        for panel in &plan.figure.panels {
            let value = swept.value(&series.name, point, panel.metric);
            assert!(
                value.is_some_and(|value| value.median > 0.5),
                "{}",
                series.name
            );
        }
    }
    let claims = plan.claims(&swept);
    assert_eq!(claims.len(), 36 + 4);
    let measured = claims.iter().filter(|claim| claim.ours.is_some());
    assert_eq!(measured.count(), 6 + 4);
}

/// The α of the published code and of the paper give valid scenarios with every policy of Fig. 10 and 12.
#[test]
fn every_series_of_the_queues_can_be_run() {
    for number in ["10", "12"] {
        let config = tiny(&[number]);
        let plan = named("abm").planned(number, &config, "1").unwrap();
        let mut simulations = GridPlan::new(named("abm").common(&config, false));
        plan.sweep.want(&mut simulations);
        let cells = plan.sweep.series.len() * plan.sweep.points.len();
        let grid = simulations.resolved();
        assert!(
            cells > 40 && grid.iter().all(|cell| cell.is_ok()),
            "{number}: {grid:?}"
        );
    }
}

#[test]
fn a_page_names_what_was_changed_of_its_scale() {
    let extent = |config: &FabricConfig| named("reverie").empty(config).unwrap().extent;
    let plain = FabricConfig::new(Scale::Quick, 3);
    assert!(extent(&plain).starts_with("four leaves of 16 hosts"));
    let changed = FabricConfig {
        seeds: Some(1),
        settings: vec!["leaves=16".to_owned(), "measure_ms=20".to_owned()],
        ..plain
    };
    let extent = extent(&changed);
    let changes =
        "scale “quick” changed by leaves=16, measure_ms=20, one seed; the scale itself: four";
    assert!(extent.starts_with(changes), "{extent}");
}
