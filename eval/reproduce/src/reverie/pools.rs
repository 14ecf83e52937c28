//! Fig. 4 and 5: the division of a buffer by SONiC's pools in the steady state (Eq. 2 and 3), if all lossless
//! and all lossy queues have α 1.

use bufgym_eval::figures::plot::{Curve, Plot};
use bufgym_eval::figures::{Figure, FigureError, style};
use bufgym_eval::format;
use bufgym_eval::stats::Estimate;

use crate::claim::{Claim, Kind, Target};
use crate::fabric::FabricConfig;
use crate::report::{Panel, Table};
use crate::runs::PapersError;

/// Sizes of pools, megabytes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Pools {
    /// Ingress pool, which all packets take from.
    ingress: f64,
    /// Egress pool, of lossy packets.
    lossy: f64,
}

/// The pools of the paper's figures.
const PAPER: Pools = Pools {
    ingress: 18.0,
    lossy: 14.0,
};

/// Largest number of queues of a class.
const MOST: u32 = 20;
/// Numbers of queues of the class that is not on the axis.
const CURVES: [u32; 3] = [1, 4, MOST];

/// Use of the pools by queues in the steady state, megabytes.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Steady {
    /// All lossy queues together.
    lossy: f64,
    /// All lossless queues together.
    lossless: f64,
    /// Threshold of an ingress lossless queue, beyond which it pauses its neighbour.
    pause: f64,
    /// Threshold of an egress lossy queue, beyond which it drops.
    drop: f64,
}

impl Steady {
    /// Returns the ratio of lossy to lossless traffic.
    fn ratio(self) -> f64 {
        self.lossy / self.lossless
    }
}

impl Pools {
    /// Returns the steady state with the given numbers of lossless ingress queues and lossy egress queues.
    /// Lossy queues share their own pool; lossless ones share the rest of the ingress pool.
    fn steady(self, lossless: f64, lossy: f64) -> Steady {
        let of_lossy = self.lossy * lossy / (1.0 + lossy);
        let left = self.ingress - of_lossy;
        let of_lossless = left * lossless / (1.0 + lossless);
        Steady {
            lossy: of_lossy,
            lossless: of_lossless,
            pause: left - of_lossless,
            drop: self.lossy - of_lossy,
        }
    }

    /// Returns the ratio of lossy to lossless traffic in the limit of many queues of both classes.
    fn limit(self) -> f64 {
        self.lossy / (self.ingress - self.lossy)
    }
}

fn at(lossless: u32, lossy: u32) -> Steady {
    PAPER.steady(f64::from(lossless), f64::from(lossy))
}

/// Values that follow from the formulas, megabytes except for the ratio.
struct PoolSizes {
    lossless: u32,
    lossy: u32,
    of_lossy: f64,
    of_lossless: f64,
    ratio: f64,
    pause: f64,
    drop: f64,
}

const fn row(lossless: u32, lossy: u32, values: [f64; 5]) -> PoolSizes {
    let [of_lossy, of_lossless, ratio, pause, drop] = values;
    PoolSizes {
        lossless,
        lossy,
        of_lossy,
        of_lossless,
        ratio,
        pause,
        drop,
    }
}

const TABLE: [PoolSizes; 5] = [
    row(1, 1, [7.0, 5.5, 1.2727, 5.5, 7.0]),
    row(4, 4, [11.2, 5.44, 2.0588, 1.36, 2.8]),
    row(20, 1, [7.0, 10.4762, 0.6682, 0.5238, 7.0]),
    row(1, 20, [13.3333, 2.3333, 5.7143, 2.3333, 0.6667]),
    row(20, 20, [13.3333, 4.4444, 3.0, 0.2222, 0.6667]),
];

/// Ratio of lossy to lossless traffic with many queues of both classes.
const LIMIT: f64 = 3.5;

impl PoolSizes {
    fn label(&self) -> String {
        format!("{} lossless, {} lossy queues", self.lossless, self.lossy)
    }

    fn claim(&self, panel: (&'static str, &'static str), of: &Quantity, paper: f64) -> Claim {
        let ours = (of.value)(at(self.lossless, self.lossy));
        Claim::number(
            panel,
            of.series,
            of.name,
            of.statement,
            Target::Value(paper),
        )
        .of_kind(Kind::Derived)
        .at(self.label())
        .measured(Some(Estimate::exact(ours)))
    }
}

/// The quantity on an axis.
struct Quantity {
    series: &'static str,
    name: &'static str,
    statement: &'static str,
    column: &'static str,
    value: fn(Steady) -> f64,
}

const LOSSY: Quantity = Quantity {
    series: "lossy",
    name: "buffer of all lossy queues, MB",
    statement: "Lossy queues take what their own pool gives them (Eq. 3).",
    column: "lossy_mb",
    value: |steady| steady.lossy,
};

const LOSSLESS: Quantity = Quantity {
    series: "lossless",
    name: "buffer of all lossless queues, MB",
    statement: "Lossless queues take a part of what lossy ones leave (Eq. 2).",
    column: "lossless_mb",
    value: |steady| steady.lossless,
};

const RATIO: Quantity = Quantity {
    series: "lossy over lossless",
    name: "buffer of lossy over lossless queues",
    statement: "Lossy traffic gets more of the buffer than lossless traffic (Issue 1).",
    column: "lossy_over_lossless",
    value: Steady::ratio,
};

const PAUSE: Quantity = Quantity {
    series: "lossless",
    name: "PFC threshold, MB",
    statement: "The threshold of lossless queues depends on the numbers of lossless and of lossy queues.",
    column: "pfc_threshold_mb",
    value: |steady| steady.pause,
};

const DROP: Quantity = Quantity {
    series: "lossy",
    name: "drop threshold, MB",
    statement: "The threshold of lossy queues depends on the number of lossy queues only.",
    column: "drop_threshold_mb",
    value: |steady| steady.drop,
};

/// Makes Fig. 4.
///
/// # Errors
/// Fails if the figure cannot be drawn.
pub fn ratio(_: &FabricConfig) -> Result<Vec<(Panel, Vec<Claim>)>, PapersError> {
    let panel = ("4", "");
    let mut claims = Vec::new();
    for row in &TABLE {
        claims.push(row.claim(panel, &LOSSY, row.of_lossy));
        claims.push(row.claim(panel, &LOSSLESS, row.of_lossless));
        claims.push(row.claim(panel, &RATIO, row.ratio));
    }
    claims.push(
        Claim::number(
            panel,
            RATIO.series,
            RATIO.name,
            "With many queues the ratio tends to the lossy pool over the rest of the ingress pool.",
            Target::Value(LIMIT),
        )
        .of_kind(Kind::Derived)
        .at("many queues")
        .measured(Some(Estimate::exact(PAPER.limit()))),
    );
    claims.push(partitioned(panel));
    let drawing = Drawing {
        name: "fig4",
        title: "Buffer of lossy over that of lossless queues",
        x_label: "lossy queues",
        curve: |curve| format!("{curve} lossless"),
        steady: |x, curve| at(curve, x),
    };
    let panel = Panel {
        id: "4",
        title: "buffer of lossy and lossless queues with SONiC’s pools",
        method: method(),
        tables: vec![table("fig4", &[&LOSSY, &LOSSLESS, &RATIO])],
        drawings: vec![drawing.of(&RATIO)?],
    };
    Ok(vec![(panel, claims)])
}

/// Claims that, with many queues, lossy traffic gets at most as much as lossless traffic if the ingress pool
/// is at least twice the lossy pool.
fn partitioned(panel: (&'static str, &'static str)) -> Claim {
    let limit = |ingress: f64| Pools { ingress, ..PAPER }.limit();
    let twice = 2.0 * PAPER.lossy;
    let smaller = PAPER.lossy + 1.0;
    let steps = (0..100).map(|step| smaller + (twice - smaller) * f64::from(step) / 100.0);
    let isolated = limit(twice) <= 1.0 && steps.map(limit).all(|limit| limit > 1.0);
    Claim::order(
        panel,
        RATIO.series,
        "ratio with many queues and an ingress pool of twice the lossy pool",
        "Lossy traffic gets more unless the ingress pool is at least twice the lossy pool.",
        "above 1 with a smaller ingress pool",
    )
    .measured(Some(Estimate::exact(limit(twice))))
    .ranked(Some(isolated))
}

/// Makes Fig. 5.
///
/// # Errors
/// Fails if the figure cannot be drawn.
pub fn thresholds(_: &FabricConfig) -> Result<Vec<(Panel, Vec<Claim>)>, PapersError> {
    let claims = |panel, of: &Quantity, paper: fn(&PoolSizes) -> f64| {
        let rows = TABLE.iter();
        rows.map(|row| row.claim(panel, of, paper(row)))
            .collect::<Vec<_>>()
    };
    let pauses = Drawing {
        name: "fig5a",
        title: "PFC threshold of a lossless queue",
        x_label: "lossy queues",
        curve: |curve| format!("{curve} lossless"),
        steady: |x, curve| at(curve, x),
    };
    let drops = Drawing {
        name: "fig5b",
        title: "Drop threshold of a lossy queue",
        x_label: "lossless queues",
        curve: |curve| format!("{curve} lossy"),
        steady: |x, curve| at(x, curve),
    };
    let mut of_pauses = claims(("5", "a"), &PAUSE, |row| row.pause);
    of_pauses.push(depends(("5", "a"), &PAUSE, [true, true]));
    let mut of_drops = claims(("5", "b"), &DROP, |row| row.drop);
    of_drops.push(depends(("5", "b"), &DROP, [false, true]));
    Ok(vec![
        (
            Panel {
                id: "5a",
                title: "PFC thresholds of lossless queues",
                method: method(),
                tables: vec![table("fig5a", &[&PAUSE])],
                drawings: vec![pauses.of(&PAUSE)?],
            },
            of_pauses,
        ),
        (
            Panel {
                id: "5b",
                title: "drop thresholds of lossy queues",
                method: "As panel 5a.".to_owned(),
                tables: vec![table("fig5b", &[&DROP])],
                drawings: vec![drops.of(&DROP)?],
            },
            of_drops,
        ),
    ])
}

fn method() -> String {
    format!(
        "Closed form: α 1, an ingress pool of {} MB, an egress pool of {} MB for lossy packets, 1 to {MOST} \
         queues of each class.",
        PAPER.ingress, PAPER.lossy
    )
}

/// Claims that a threshold falls with every lossless queue, and with every lossy one, if it `depends` on
/// them, and does not change otherwise.
fn depends(panel: (&'static str, &'static str), of: &Quantity, depends: [bool; 2]) -> Claim {
    let value = |lossless, lossy| (of.value)(at(lossless, lossy));
    let all = (1..MOST).flat_map(|one| (1..=MOST).map(move |other| (one, other)));
    let right = |falls: bool, before: f64, after: f64| match falls {
        true => after < before,
        false => after == before,
    };
    let holds = all.into_iter().all(|(one, other)| {
        let on_lossless = (value(one, other), value(one + 1, other));
        let on_lossy = (value(other, one), value(other, one + 1));
        right(depends[0], on_lossless.0, on_lossless.1) && right(depends[1], on_lossy.0, on_lossy.1)
    });
    let words = match depends {
        [true, true] => "falls with lossless and with lossy queues",
        _ => "falls with lossy queues, the same for any number of lossless queues",
    };
    Claim::order(panel, of.series, of.name, of.statement, words)
        .at(format!("{MOST} lossless, {MOST} lossy queues"))
        .measured(Some(Estimate::exact(value(MOST, MOST))))
        .ranked(Some(holds))
}

/// Returns a row for every number of queues of both classes.
fn table(name: &str, quantities: &[&Quantity]) -> Table {
    let mut columns = vec!["lossless_queues", "lossy_queues"];
    columns.extend(quantities.iter().map(|of| of.column));
    let mut table = Table::new(name, &columns);
    for lossless in 1..=MOST {
        for lossy in 1..=MOST {
            let mut row = vec![lossless.to_string(), lossy.to_string()];
            let steady = at(lossless, lossy);
            row.extend(quantities.iter().map(|of| (of.value)(steady).to_string()));
            table.push(row);
        }
    }
    table
}

/// A drawing over the queues of one class, with a curve for some numbers of the other.
struct Drawing {
    name: &'static str,
    title: &'static str,
    x_label: &'static str,
    curve: fn(u32) -> String,
    steady: fn(u32, u32) -> Steady,
}

impl Drawing {
    fn of(&self, quantity: &Quantity) -> Result<Figure, FigureError> {
        let curve = |(place, &curve): (usize, &u32)| {
            let points =
                (1..=MOST).map(|x| (f64::from(x), (quantity.value)((self.steady)(x, curve))));
            Curve::new(&(self.curve)(curve), style::series(place), points)
        };
        let curves: Vec<Curve> = CURVES.iter().enumerate().map(curve).collect();
        let values = curves.iter().flat_map(|curve| &curve.points);
        let most = values.map(|point| point.1).fold(0.0, f64::max);
        let plot = Plot {
            name: self.name,
            title: self.title,
            description: format!("In the steady state: {}.", quantity.name),
            curves: &curves,
            x: 1.0..f64::from(MOST),
            x_label: self.x_label.to_owned(),
            x_tick: format::tick,
            y: 0.0..1.08 * most,
            y_label: quantity.name,
            level: None,
        };
        plot.draw()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scale;
    use crate::verdict::Grade;

    /// The test compares every number of the table to its last digit.
    #[test]
    fn the_pools_are_divided_as_the_formulas_say() {
        for row in &TABLE {
            let steady = at(row.lossless, row.lossy);
            let pairs = [
                (steady.lossy, row.of_lossy),
                (steady.lossless, row.of_lossless),
                (steady.ratio(), row.ratio),
                (steady.pause, row.pause),
                (steady.drop, row.drop),
            ];
            for (ours, derived) in pairs {
                assert!((ours - derived).abs() < 5.1e-5, "{}: {ours}", row.label());
            }
        }
        assert_eq!(PAPER.limit(), LIMIT);
        let many = PAPER.steady(1e9, 1e9).ratio();
        assert!((many / LIMIT - 1.0).abs() < 1e-8, "{many}");
    }

    /// Queues that grow below their threshold and shrink above it, a kilobyte at a time, settle at the values
    /// of the formulas: within a packet of each queue.
    #[test]
    fn queues_that_follow_their_thresholds_settle_there() {
        let packet = 0.001;
        for row in &TABLE {
            let mut lossless = vec![0.0; row.lossless as usize];
            let mut lossy = vec![0.0; row.lossy as usize];
            for _ in 0..40_000 {
                let in_lossy: f64 = lossy.iter().sum();
                let used: f64 = in_lossy + lossless.iter().sum::<f64>();
                let follow = |queue: &mut f64, threshold: f64| {
                    *queue += if *queue < threshold { packet } else { -packet };
                };
                let (pause, drop) = (PAPER.ingress - used, PAPER.lossy - in_lossy);
                lossless.iter_mut().for_each(|queue| follow(queue, pause));
                lossy.iter_mut().for_each(|queue| follow(queue, drop));
            }
            let steady = at(row.lossless, row.lossy);
            let queues = f64::from(row.lossless + row.lossy);
            let of = |queues: &[f64]| queues.iter().sum::<f64>();
            let far = [of(&lossy) - steady.lossy, of(&lossless) - steady.lossless];
            assert!(
                far.iter().all(|far| far.abs() <= 2.0 * queues * packet),
                "{}: {far:?}",
                row.label()
            );
        }
    }

    #[test]
    fn every_claim_of_both_figures_agrees_and_stands_at_its_panel() {
        let config = FabricConfig::new(Scale::Quick, 1);
        let made = [ratio(&config).unwrap(), thresholds(&config).unwrap()];
        let panels: Vec<&(Panel, Vec<Claim>)> = made.iter().flatten().collect();
        let ids: Vec<&str> = panels.iter().map(|(panel, _)| panel.id).collect();
        assert_eq!(ids, ["4", "5a", "5b"]);
        let counts: Vec<usize> = panels.iter().map(|(_, claims)| claims.len()).collect();
        assert_eq!(counts, [17, 6, 6]);
        for (panel, claims) in panels {
            for claim in claims {
                assert_eq!(format!("{}{}", claim.figure, claim.panel), panel.id);
                let best = match claim.kind {
                    Kind::Order => Grade::InRanking,
                    _ => Grade::Agrees,
                };
                assert_eq!(claim.grade(), best, "{}", claim.statement);
            }
            assert_eq!(panel.tables[0].rows.len(), 400);
            assert_eq!(panel.drawings.len(), 1);
        }
    }

    /// The claim distinguishes a threshold that depends on a class from one that does not.
    #[test]
    fn what_a_threshold_depends_on_is_told_apart() {
        let grade = |of: &Quantity, on: [bool; 2]| depends(("5", ""), of, on).grade();
        assert_eq!(grade(&DROP, [true, true]), Grade::Differs);
        assert_eq!(grade(&PAUSE, [false, true]), Grade::Differs);
    }
}
