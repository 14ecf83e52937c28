use super::*;
use crate::claim::Kind;
use crate::grid::Slowdowns;
use crate::verdict::Grade;

/// Builds in-cast flows with a p99 slowdown, a floor of 10 and a timeout of 100.
fn with_tail(p99: f64, late: f64) -> Measured {
    Measured {
        incast: Slowdowns {
            flows: 100,
            p99: Some(p99),
            ..Slowdowns::default()
        },
        late: Some(late),
        floor: Some(10.0),
        timeout: Some(100.0),
        ..Measured::default()
    }
}

/// Builds a figure with two policies at two loads.
fn sweep() -> Sweep {
    let point = |load: f64| {
        let percent = 100.0 * load;
        Point::new(
            percent,
            format!("load {percent} %"),
            &[format!("load={load}")],
        )
    };
    Sweep {
        figure: "1",
        preset: "leafspine-4x4",
        settings: vec!["query_share=0.3".to_owned()],
        series: vec![Series::new("DT", "dt:alpha=0.5"), Series::new("ABM", "abm")],
        points: vec![point(0.2), point(0.4)],
        x_label: "load, %",
        seeds: 2,
        changes: Vec::new(),
    }
}

/// Builds results of two seeds for every series and point.
fn grid(sweep: &Sweep, tails: [[[f64; 2]; 2]; 2]) -> Grid {
    let series = sweep.series.iter().zip(tails);
    let results = series.flat_map(|(series, by_point)| {
        let points = sweep.points.iter().zip(by_point);
        points.map(|(point, tails)| {
            let measured = tails.map(|tail| with_tail(tail, tail / 10.0)).to_vec();
            (sweep.cell(series, point), measured)
        })
    });
    Grid::made_up(results.collect::<Vec<_>>())
}

fn tabled() -> ReferenceTable<'static> {
    const VALUES: [&[f64]; 2] = [&[11.0, 105.0], &[9.6, 10.4]];
    ReferenceTable {
        panel: ("1", "a"),
        metric: Metric::IncastP99,
        statement: "a table",
        rows: vec![("DT", VALUES[0]), ("ABM", VALUES[1])],
    }
}

#[test]
fn the_median_is_between_the_ends_of_the_range() {
    let of = |values: &[f64]| Spread::of(values.to_vec()).map(|i| (i.least, i.median, i.largest));
    assert_eq!(of(&[3.0, 1.0, 2.0]), Some((1.0, 2.0, 3.0)));
    assert_eq!(of(&[4.0, 1.0]), Some((1.0, 2.5, 4.0)));
    assert_eq!(of(&[]), None);
}

#[test]
fn settings_of_the_figure_come_before_those_of_the_point_and_the_series() {
    let mut sweep = sweep();
    sweep.points[1].columns = vec![("mss".to_owned(), "1000".to_owned())];
    let own = Series::with("own", "dt:alpha={}", &["mss={mss}"]);
    sweep.series.push(own);
    let cell = sweep.cell(&sweep.series[2], &sweep.points[1]);
    assert_eq!(cell.settings, ["query_share=0.3", "load=0.4", "mss=1000"]);
    assert_eq!(cell.policy, "dt:alpha=40");
}

#[test]
fn values_of_a_table_agree_by_value_and_by_regime() {
    let sweep = sweep();
    // DT at load 40 %: the median of 60 and 130 is near the paper's 105. ABM at 20 %: 14 is at the floor,
    // like in the paper.
    let tails = [[[11.5, 11.7], [60.0, 130.0]], [[14.0, 14.4], [95.0, 99.0]]];
    let grid = grid(&sweep, tails);
    let swept = sweep.measured(&grid);
    let claims = tabled().claims(&swept);
    let shown: Vec<(&str, &str, Grade)> = claims
        .iter()
        .map(|claim| (claim.series.as_str(), claim.x.as_str(), claim.grade()))
        .collect();
    assert_eq!(
        shown,
        [
            ("DT", "load 20 %", Grade::Agrees),
            ("ABM", "load 20 %", Grade::InFactor),
            ("DT", "load 40 %", Grade::Agrees),
            // This is a timeout, while the paper is at the floor, and it is above DT.
            ("ABM", "load 40 %", Grade::Differs),
        ]
    );
    assert!(claims.iter().all(|claim| claim.kind == Kind::Data));
    assert_eq!(claims[3].order, Some(false));
    assert!(
        claims[3]
            .remark
            .starts_with("Regime: paper floor, ours 1 RTO; 9.70 %"),
        "{}",
        claims[3].remark
    );
}

#[test]
fn reductions_are_paired_by_seed_and_averaged_over_series_and_points() {
    let sweep = sweep();
    let grid = grid(
        &sweep,
        [[[20.0, 40.0], [100.0, 100.0]], [[10.0, 10.0], [10.0, 20.0]]],
    );
    let swept = sweep.measured(&grid);
    let points: Vec<&Point> = sweep.points.iter().collect();
    let of = |points: &[&Point]| {
        swept
            .reduction("ABM", &["DT"], points, Metric::IncastP99)
            .unwrap()
    };
    let first = of(&points[..1]);
    assert_eq!(
        (first.least, first.median, first.largest),
        (50.0, 62.5, 75.0)
    );
    let both = of(&points);
    assert_eq!((both.least, both.median, both.largest), (70.0, 73.75, 77.5));
    assert!(
        swept
            .reduction("ABM", &["IB"], &points, Metric::IncastP99)
            .is_none()
    );
    assert!(
        swept
            .reduction("ABM", &["DT"], &points, Metric::ShortP99)
            .is_none()
    );
}

#[test]
fn what_was_not_run_is_said_with_the_reason_and_has_no_rows() {
    let mut sweep = sweep();
    sweep.points.truncate(1);
    sweep.series[1] = Series::with("ABM", "abm", &["no_such_setting=1"]);
    let mut plan = GridPlan::new(crate::grid::Common {
        settings: vec!["measure_ms=2".to_owned()],
        ..crate::grid::Common::default()
    });
    sweep.want(&mut plan);
    assert_eq!(plan.simulations(), 2);
    let grid = plan.run(None, &crate::runs::Work::new(&|_| {})).unwrap();
    let swept = sweep.measured(&grid);
    let lines = swept.left_out();
    assert_eq!(lines.len(), 1);
    assert!(lines[0].starts_with("ABM not run: ") && lines[0].contains("no_such_setting"));
    let claims = tabled().claims(&swept);
    let verdict = claims[1].verdict().to_string();
    assert!(
        verdict.starts_with("not comparable: not run: "),
        "{verdict}"
    );
    let table = swept.table(Metric::IncastP99, &[]);
    assert_eq!(table.rows.len(), 1);
    assert_eq!(table.rows[0][..4], ["DT", "", "20", "2"]);
    assert!(
        swept
            .drawing("fig1a", Metric::OccupancyP99)
            .unwrap()
            .is_some()
    );
}

/// Options change existing settings, values and parameters, and nothing else.
#[test]
fn options_change_settings_values_and_parameters() {
    let mut sweep = sweep();
    sweep.series.push(Series::with(
        "CUBIC",
        "abm:update_us=80",
        &["transport=cubic"],
    ));
    sweep.change(&["load=0.9", "abm:estimate=artefact"]);
    sweep.change(&["transport=cubic=>cubic-ns3", "dt:alpha=1"]);
    let cells = sweep.series.iter();
    let cells: Vec<Cell> = cells.map(|s| sweep.cell(s, &sweep.points[0])).collect();
    assert_eq!(cells[0].policy, "dt");
    assert_eq!(cells[1].policy, "abm:estimate=artefact");
    assert_eq!(cells[2].policy, "abm:update_us=80,estimate=artefact");
    for cell in &cells[..2] {
        assert_eq!(cell.settings, ["query_share=0.3", "load=0.9"]);
    }
    let expected = [
        "query_share=0.3",
        "transport=cubic",
        "load=0.9",
        "transport=cubic-ns3",
    ];
    assert_eq!(cells[2].settings, expected);
}

/// Results by seed of a series without its own panels have another name than its table.
#[test]
fn results_by_seed_have_a_name_of_their_own() {
    let sweep = sweep();
    let grid = grid(&sweep, [[[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]]);
    let swept = sweep.measured(&grid);
    let of_figure = swept.by_seed("1", Metric::IncastP99);
    let of_panel = swept.by_seed("1b", Metric::IncastP99);
    assert_eq!(
        (of_figure.name.as_str(), of_panel.name.as_str()),
        ("fig1-by-seed", "fig1b")
    );
    assert_eq!(of_panel.rows.len(), 8);
    assert_eq!(of_panel.rows[5], ["1", "b", "20", "ABM", "1", "6"]);
    assert!(
        !swept
            .table(Metric::IncastP99, &[])
            .columns
            .contains(&"pauses")
    );
    assert_eq!(swept.lossless_drops(), None);
}

#[test]
fn nothing_is_lower_than_nothing() {
    assert_eq!(lower_by(0.0, 0.0), None);
    assert_eq!(lower_by(0.0, 5.0), Some(100.0));
    assert_eq!(lower_by(6.0, 4.0), Some(-50.0));
    assert_eq!(lower_by(6.0, 0.0), Some(f64::NEG_INFINITY));
    let sweep = sweep();
    // At the first point neither has pauses; at the second one has a quarter of the other's.
    let grid = grid(&sweep, [[[0.0, 0.0], [8.0, 8.0]], [[0.0, 0.0], [2.0, 4.0]]]);
    let swept = sweep.measured(&grid);
    let points: Vec<&Point> = sweep.points.iter().collect();
    let of = |points: &[&Point]| swept.reduction("ABM", &["DT"], points, Metric::IncastP99);
    assert_eq!(
        of(&points).map(|both| (both.least, both.largest)),
        Some((50.0, 75.0))
    );
    assert!(of(&points[..1]).is_none());
}
