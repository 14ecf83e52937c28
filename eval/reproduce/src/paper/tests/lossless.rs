//! Figures of networks with lossless packets.

use super::*;
use crate::grid::{Lossless, Measured, Slowdowns};
use crate::sweep::Metric;

const REVERIE: &str = "Reverie";
const DT: &str = "SONiC with DT";
const ABM: &str = "SONiC with ABM";

fn figure(number: &str) -> FigurePlan {
    let config = FabricConfig::new(Scale::Quick, 1);
    named("reverie").planned(number, &config, "").unwrap()
}

/// Builds results of a figure: `of` gives the result of one seed for a series at the point of this number.
fn made(plan: &FigurePlan, of: impl Fn(&str, usize) -> Measured) -> Grid {
    let series = plan.sweep.series.iter();
    let results = series.flat_map(|series| {
        let points = plan.sweep.points.iter().enumerate();
        points.map(|(place, point)| {
            let measured = vec![of(&series.name, place)];
            (plan.sweep.cell(series, point), measured)
        })
    });
    Grid::made_up(results.collect::<Vec<_>>())
}

fn claims(plan: &FigurePlan, grid: &Grid) -> Vec<Claim> {
    plan.claims(&plan.sweep.measured(grid))
}

fn result(pauses: u64, incast: f64) -> Measured {
    Measured {
        incast: Slowdowns {
            mean: Some(incast),
            ..Slowdowns::default()
        },
        short: Slowdowns {
            p99: Some(10.0),
            ..Slowdowns::default()
        },
        lossless: Some(Lossless {
            pauses,
            occupancy: Some(20.0),
            lossy_occupancy: Some(30.0),
            ..Lossless::default()
        }),
        ..Measured::default()
    }
}

fn of<'a>(claims: &'a [Claim], statement: &str) -> &'a Claim {
    let found = claims
        .iter()
        .find(|claim| claim.statement.contains(statement));
    found.unwrap_or_else(|| panic!("no claim has `{statement}`"))
}

#[test]
fn every_figure_has_its_panels_and_policies() {
    for (number, panels, points) in [
        ("7", "abcde", 4),
        ("8", "abcde", 4),
        ("9", "abcde", 4),
        ("10", "ab", 5),
        ("11", "abcde", 4),
        ("12", "abcde", 4),
    ] {
        let plan = figure(number);
        let shown = plan.figure.panels.iter();
        let ids: Vec<&str> = shown.map(|panel| panel.id.as_str()).collect();
        let expected: Vec<String> = panels.chars().map(|p| format!("{number}{p}")).collect();
        assert_eq!(ids, expected);
        assert_eq!(plan.sweep.points.len(), points);
        let policies = plan.sweep.series.iter().map(|s| s.name.as_str());
        let expected: &[&str] = match number {
            "10" => &[REVERIE],
            _ => &[DT, ABM, REVERIE],
        };
        assert_eq!(policies.collect::<Vec<_>>(), expected);
    }
    assert_eq!(figure("9").figure.panels[2].metric, Metric::LongMean);
    for text in ["7e", "10E", "5b", "12"] {
        assert!(named("reverie").figure(text).is_ok(), "{text}");
    }
    for text in ["6", "7f", "13"] {
        let error = named("reverie").figure(text).unwrap_err().to_string();
        assert!(error.ends_with("4, 5, 7, 8, 9, 10, 11, 12"), "{error}");
    }
}

/// Requests are shares of the buffer; γ belongs to the policy.
#[test]
fn points_set_what_the_axis_says() {
    let cell = |number: &str, series: usize, point: usize| {
        let sweep = figure(number).sweep;
        sweep.cell(&sweep.series[series], &sweep.points[point])
    };
    assert_eq!(
        cell("7", 0, 0).settings,
        ["transport=cubic", "query_share=0.78125", "load=0.2"]
    );
    assert_eq!(
        cell("8", 2, 0).settings,
        ["transport=cubic", "load=0.8", "query_share=0.1953125"]
    );
    assert_eq!(cell("8", 2, 0).policy, "reverie:gamma=0.999");
    assert_eq!(
        cell("9", 1, 1).settings,
        [
            "transport=cubic",
            "load=0.8",
            "query_share=0.78125",
            "lossy_pool_share=0.4"
        ]
    );
    assert_eq!(cell("10", 0, 4).policy, "reverie:gamma=0.999999");
    assert!(
        cell("12", 0, 0)
            .settings
            .contains(&"query_share=0.09765625".to_owned())
    );
    let places = figure("10").sweep.points;
    let places: Vec<f64> = places.iter().map(|point| point.place).collect();
    for (place, expected) in places.iter().zip([0.69897, 1.0, 2.0, 3.0, 6.0]) {
        assert!((place - expected).abs() < 1e-5, "{place}");
    }
}

#[test]
fn reductions_of_pauses_are_averaged_over_the_points() {
    let plan = figure("7");
    // Reverie is 50 % below DT at every load; ABM has no pauses at the first, where Reverie has some.
    let grid = made(&plan, |series, place| match series {
        DT => result(200, 20.0),
        ABM => result(if place == 0 { 0 } else { 1_000 }, 20.0),
        _ => result(100, 16.0),
    });
    let claims = claims(&plan, &grid);
    assert_eq!(claims.len(), 13);
    let pauses = of(&claims, "60 % fewer");
    assert_eq!(pauses.ours.map(|ours| ours.value()), Some(50.0));
    assert_eq!(pauses.grade(), Grade::InFactor);
    assert_eq!(of(&claims, "71.2 % fewer").grade(), Grade::NotComparable);
    assert_eq!(of(&claims, "18.5 % faster").grade(), Grade::Agrees);
    let most = of(&claims, "up to 33.3 %").ours.unwrap();
    assert!((most.value() - 20.0).abs() < 1e-9);
    assert_eq!(of(&claims, "on a par with ABM").grade(), Grade::InRanking);
    // Nothing changes over the axis.
    assert_eq!(of(&claims, "DT gives lossless").grade(), Grade::Differs);
    assert_eq!(of(&claims, "at high loads").grade(), Grade::InRanking);
}

/// If neither policy pauses, they are alike.
#[test]
fn policies_without_pauses_are_alike() {
    let plan = figure("11");
    let with = |of_dt: u64| {
        made(&plan, move |series, _| match series {
            DT => result(of_dt, 15.0),
            ABM => result(50, 10.1),
            _ => result(0, 10.0),
        })
    };
    let none = claims(&plan, &with(0));
    assert_eq!(of(&none, "100 % fewer").grade(), Grade::Agrees);
    assert_eq!(of(&none, "similar numbers").grade(), Grade::InRanking);
    assert_eq!(of(&none, "33.7 %").grade(), Grade::Agrees);
    assert_eq!(of(&none, "similar with all").grade(), Grade::InRanking);
    assert_eq!(of(&none, "small part").grade(), Grade::InRanking);
    assert_eq!(
        of(&none, "100 % fewer").ours.map(|ours| ours.value()),
        Some(100.0)
    );
    let some = claims(&plan, &with(6));
    assert_eq!(of(&some, "similar numbers").grade(), Grade::Differs);
}

#[test]
fn reverie_may_not_depend_on_the_lossy_pool_at_all() {
    let plan = figure("9");
    let constant = |of_last: f64| {
        let grid = made(&plan, |series, place| match (series, place) {
            (REVERIE, 3) => result(7, of_last),
            (REVERIE, _) => result(7, 5.0),
            _ => result(10 * place as u64, 5.0 + place as f64),
        });
        claims(&plan, &grid)
    };
    let same = constant(5.0);
    assert_eq!(of(&same, "no such pool").grade(), Grade::InRanking);
    assert_eq!(of(&same, "fewer pauses").grade(), Grade::InRanking);
    assert_eq!(of(&same, "slower long").grade(), Grade::NotComparable);
    let other = constant(5.000_001);
    assert_eq!(of(&other, "no such pool").grade(), Grade::Differs);
}

#[test]
fn the_filter_helps_up_to_a_point() {
    let plan = figure("10");
    let incast = [20.0, 18.0, 15.0, 10.0, 11.0];
    let grid = made(&plan, |_, place| {
        result(90 - 10 * place as u64, incast[place])
    });
    let claims = claims(&plan, &grid);
    let grades: Vec<Grade> = claims.iter().map(Claim::grade).collect();
    assert_eq!(grades, [Grade::InRanking, Grade::InRanking, Grade::Agrees]);
    assert_eq!(claims[2].ours.map(|ours| ours.value().round()), Some(10.0));
    assert!(
        claims[1].remark.contains("20.0, 18.0, 15.0, 10.0."),
        "{}",
        claims[1].remark
    );
}

/// Pauses have their own column in the table of the figure, and queries have one if a panel shows them.
#[test]
fn some_metrics_are_only_in_the_tables_of_some_figures() {
    let plan = figure("10");
    let grid = made(&plan, |_, place| result(place as u64, 2.0));
    let swept = plan.sweep.measured(&grid);
    let seeds = swept.by_seed("10a", Metric::Pauses);
    assert_eq!(seeds.rows[4], ["10", "a", "0.999999", REVERIE, "0", "4"]);
    for (shown, has_queries) in [(&[][..], false), (&[Metric::QueryMean], true)] {
        let table = swept.table(Metric::IncastP99, shown);
        assert!(table.columns.contains(&"pauses") && table.rows.len() == 5);
        let queries = table.columns.contains(&"query_mean_slowdown");
        assert_eq!(queries, has_queries);
    }
    assert_eq!(swept.lossless_drops(), Some(0));
}

/// Every option changes the scenario of some figure, and all scenarios are valid.
#[test]
fn every_figure_can_have_its_options() {
    let scenario = |number: &str, option: Option<&Variant>| {
        let mut sweep = figure(number).sweep;
        if let Some(option) = option {
            sweep.change(option.settings);
        }
        let cell = sweep.cell(&sweep.series[0], &sweep.points[0]);
        let mut scenario = Scenario::preset(cell.preset).unwrap();
        for setting in &cell.settings {
            scenario.set(setting).unwrap();
        }
        scenario.validate().unwrap();
        scenario
    };
    for option in options::LOSSLESS {
        let changes = |number: &str| scenario(number, Some(option)) != scenario(number, None);
        let changed = ["7", "10", "11"].map(changes);
        assert!(changed.contains(&true), "{}: {changed:?}", option.name);
    }
}

/// Fig. 7 at 80 % is Fig. 8 at 2 MB and Fig. 9 at 80 %; Fig. 11 at 80 % is Fig. 12 at 1.5 MB.
#[test]
fn what_figures_share_is_simulated_once() {
    let simulations = |numbers: &[&str]| {
        let mut plan = GridPlan::new(Common::default());
        for number in numbers {
            figure(number).sweep.want(&mut plan);
        }
        assert!(
            plan.resolved().iter().all(|cell| cell.is_ok()),
            "{:?}",
            plan.resolved()
        );
        plan.simulations()
    };
    assert_eq!(simulations(&["7"]), 24);
    assert_eq!(simulations(&["7", "8"]), 24 + 18);
    assert_eq!(simulations(&["7", "8", "9"]), 24 + 18 + 18);
    assert_eq!(simulations(&["10"]), 10);
    assert_eq!(simulations(&["11", "12"]), 24 + 18);
    assert_eq!(simulations(&["7", "8", "9", "10", "11", "12"]), 112);
}
