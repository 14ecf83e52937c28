//! The share of the buffer that a port holds when it drops a packet (§VI-D): Fig. 11.

use bufgym_eval::batch::{Quantity, Running};
use bufgym_eval::entrant::{Entrant, Recording};
use bufgym_eval::evaluate::NumberedTrace;
use bufgym_eval::figures::plot::{Plot, distribution};
use bufgym_eval::figures::{Figure, FigureError};
use bufgym_eval::format;
use bufgym_eval::stats::{self, Estimate};
use bufgym_sim::network::{DropRow, SimError};
use bufgym_sim::scenario::{DEFAULT_PRESET, Scenario};
use bufgym_util::convert::index;
use serde::{Deserialize, Serialize};

use super::NdtFigure;
use super::experiment::{Experiment, Runs};
use super::queues::{PRESET, VARIANTS};
use super::setting::{Context, Extent, Policies, is_lowest, listed, percent};
use crate::claim::{Claim, Target};
use crate::report::{Panel, Report, Table, cell};
use crate::runs::PapersError;
use crate::verdict::ascending;

/// The paper's other series.
const RULES: [&str; 3] = ["cs", "dt", "edt"];

/// A port starves below this share of the buffer.
const LOW: f64 = 0.05;
/// A port holds all of the buffer above this share.
const ALL: f64 = 0.95;
/// A port holds much of the buffer above this share.
const HIGH: f64 = 0.6;
/// Points to which DT's thresholds converge for one, two and three saturated ports, 1/(1 + n).
const CONVERGENCE: [f64; 3] = [1.0 / 2.0, 1.0 / 3.0, 1.0 / 4.0];
/// Distance from a point of convergence.
const NEAR: f64 = 0.05;

/// Returns the number of simulations known in advance: those of the in-cast with the search of a static α,
/// and those of the 16-port switch.
pub fn planned(extent: &Extent, seeds: usize) -> usize {
    let queues = experiment(extent);
    let single = (RULES.len() + 3) * index(extent.single) * seeds;
    queues.planned(seeds) + single
}

fn experiment(extent: &Extent) -> Experiment {
    Experiment {
        rules: &RULES,
        traces: extent.queues,
        few: extent.queues,
        training: extent.training,
        variants: &VARIANTS,
    }
}

/// The drops of one run, in shares of the buffer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Drops {
    /// The port's queue at every drop.
    port: Vec<f64>,
    /// Sum over the drops of the buffer's free part.
    free: f64,
}

impl Quantity for Drops {
    const NAME: &'static str = "ndt-drops";

    fn measure(run: &Running<'_>) -> Result<Self, SimError> {
        let recording = Recording {
            drops: true,
            ..Recording::default()
        };
        let outcome = run
            .policy
            .watched(run.scenario, &run.trace.trace, recording)?;
        Ok(Drops::of(&outcome.drops, run.scenario.network.buffer_bytes))
    }
}

impl Drops {
    fn of(rows: &[DropRow], capacity: u64) -> Drops {
        let share = |bytes: u64| bytes as f64 / capacity as f64;
        Drops {
            port: rows.iter().map(|row| share(row.queue_bytes)).collect(),
            free: rows
                .iter()
                .map(|row| 1.0 - share(row.occupancy_bytes))
                .sum(),
        }
    }

    /// Returns the number of drops at which `is` holds for the port's share.
    fn count(&self, is: fn(f64) -> bool) -> f64 {
        self.port.iter().filter(|share| is(**share)).count() as f64
    }
}

fn is_low(share: f64) -> bool {
    share < LOW
}

fn is_extreme(share: f64) -> bool {
    is_low(share) || share > ALL
}

fn is_high(share: f64) -> bool {
    share > HIGH
}

fn is_near_convergence(share: f64) -> bool {
    CONVERGENCE
        .iter()
        .any(|point| (share - point).abs() <= NEAR)
}

/// The runs of all policies in one scenario.
type Results = Runs<Drops>;

/// Makes the figure.
///
/// # Errors
/// Fails if a run fails or a figure cannot be drawn.
pub fn make(context: &Context, report: &mut Report) -> Result<(), PapersError> {
    let scenario = Scenario::preset(PRESET)?;
    let experiment = experiment(&context.extent);
    let (results, claims) = experiment.run(context, &scenario, measure, Results::claims)?;
    let wide = Scenario::preset(DEFAULT_PRESET)?;
    let wide_traces = context.traces(&wide, context.extent.single)?;
    let beside = measure(context, &wide, results.policies.clone(), &wide_traces)?;
    report.claims.extend(claims);
    report.panels.push(Panel {
        id: NdtFigure::Drops.id(),
        title: "share of the buffer that a port holds when it drops",
        method: format!(
            "{PRESET}, {} unseen traces, which the claims are compared with; the paper does not say \
             which experiment it is. Beside it {DEFAULT_PRESET}, {} unseen traces (added).",
            results.traces(),
            beside.traces(),
        ),
        tables: vec![
            results.table(context, "fig11", PRESET),
            beside.table(context, "fig11-16x1g", DEFAULT_PRESET),
        ],
        drawings: vec![
            results.drawing("fig11", "Queue of the port at drops, 4-to-2 in-cast")?,
            beside.drawing("fig11-16x1g", "Queue of the port at drops, 16 ports (added)")?,
        ],
    });
    report.add_scenario(&scenario);
    Ok(())
}

fn measure(
    context: &Context,
    scenario: &Scenario,
    policies: Policies,
    traces: &[NumberedTrace],
) -> Result<Results, PapersError> {
    Ok(Runs::measure(context, scenario, policies, traces)?)
}

impl Runs<Drops> {
    /// Returns a sum over the drops of every trace as a percentage of all drops; `None` without drops.
    fn share(
        &self,
        context: &Context,
        policy: &str,
        sum: impl Fn(&Drops) -> f64,
    ) -> Option<Estimate> {
        let sums = self.values(policy, sum);
        let drops = self.values(policy, |run| run.port.len() as f64);
        context.ratio(&sums, &drops).map(percent)
    }

    /// Returns that percentage for the learned policy and the paper's other series.
    fn compared(
        &self,
        context: &Context,
        sum: impl Fn(&Drops) -> f64 + Copy,
    ) -> Vec<(&str, Option<f64>)> {
        let policies = &self.policies;
        policies.compared(|policy| Some(self.share(context, policy, sum)?.centre))
    }

    fn claims(&self, context: &Context) -> Vec<Claim> {
        let mut claims = self.rules_claims(context);
        claims.push(self.learned_claim(context));
        claims
    }

    fn rules_claims(&self, context: &Context) -> Vec<Claim> {
        let panel = ("11", "");
        let extreme = self.compared(context, |d| d.count(is_extreme));
        let near = self.compared(context, |d| d.count(is_near_convergence));
        let free = self.compared(context, |d| d.free);
        let of = |values: &[(&str, Option<f64>)], name: &str| {
            values.iter().find(|v| v.0 == name).and_then(|v| v.1)
        };
        let negated: Vec<(&str, Option<f64>)> =
            extreme.iter().map(|(n, v)| (*n, v.map(|v| -v))).collect();
        let remark = |values: &[(&str, Option<f64>)]| {
            format!("Found, %: {}. The setting is ours.", listed(values))
        };
        let drops_of = |policy: &str, is: fn(f64) -> bool| {
            self.share(context, policy, move |d: &Drops| d.count(is))
        };
        let metric_near = "drops within 5 points of 50, 33 or 25 % of the buffer, %";
        let converged = |policy: &str, statement: &'static str, words: &'static str| {
            Claim::order(panel, policy, metric_near, statement, words)
                .measured(drops_of(policy, is_near_convergence))
                .ranked(ascending(&[of(&near, "cs"), of(&near, policy)]))
                .remarked(remark(&near))
        };
        vec![
            Claim::number(
                panel,
                "cs",
                "drops with the port below 5 % or above 95 % of the buffer, %",
                "CS drops when the port occupies all of the buffer or starves (most drops, as we read \
                 it).",
                Target::AtLeast(50.0),
            )
            .measured(drops_of("cs", is_extreme))
            .ranked(is_lowest("cs", &negated))
            .remarked(remark(&extreme)),
            converged("dt", "DT usually drops around the point where thresholds converge.", "cs < dt"),
            converged(
                "edt",
                "EDT usually drops around the point where thresholds converge.",
                "cs < edt",
            ),
            Claim::order(
                panel,
                "dt, edt",
                "free buffer at drops, %",
                "DT and EDT drop even when there is unoccupied buffer.",
                "cs < dt, edt",
            )
            .measured(self.share(context, "dt", |d| d.free))
            .ranked(
                ascending(&[of(&free, "cs"), of(&free, "dt")])
                    .zip(ascending(&[of(&free, "cs"), of(&free, "edt")]))
                    .map(|(dt, edt)| dt && edt),
            )
            .remarked(remark(&free)),
        ]
    }

    fn learned_claim(&self, context: &Context) -> Claim {
        let ndt = self.policies.learned();
        let high = self.compared(context, |d| d.count(is_high));
        let of = |name: &str| high.iter().find(|v| v.0 == name).and_then(|v| v.1);
        let above = ["dt", "edt"].map(|rule| ascending(&[of(rule), of(ndt)]));
        let low = self.share(context, ndt, |d| d.count(is_low));
        Claim::number(
            ("11", ""),
            ndt,
            "drops with the port above 60 % of the buffer, %",
            "NDT starts to drop when the port occupies more than 60 % of the buffer, and sometimes at \
             low occupancy (most drops above 60 %, as we read it).",
            Target::AtLeast(50.0),
        )
        .measured(self.share(context, ndt, |d| d.count(is_high)))
        .ranked(above[0].zip(above[1]).map(|(dt, edt)| dt && edt))
        .remarked(format!(
            "Found, %: {}. Below 5 % of the buffer: {} %. The setting is ours.",
            listed(&high),
            format::optional(low.map(|low| low.centre)),
        ))
    }

    /// Returns the shares at all drops of a policy, ascending.
    fn pooled(&self, policy: &str) -> Vec<f64> {
        let runs = self.of(policy).iter();
        let mut shares: Vec<f64> = runs.flat_map(|run| &run.port).copied().collect();
        shares.sort_by(f64::total_cmp);
        shares
    }

    fn table(&self, context: &Context, name: &str, preset: &str) -> Table {
        let mean = |policy: &Entrant, sum: &dyn Fn(&Drops) -> f64| {
            Some(self.share(context, policy.name(), sum)?.centre)
        };
        let deciles = [
            "d10", "d20", "d30", "d40", "d50", "d60", "d70", "d80", "d90",
        ];
        let table = self.policies.table(name);
        table
            .text("scenario", |_| preset.to_owned())
            .text("drops", |p| self.pooled(p.name()).len().to_string())
            .number("below_5_percent", |p| mean(p, &|d| d.count(is_low)))
            .number("near_convergence_percent", |p| {
                mean(p, &|d| d.count(is_near_convergence))
            })
            .number("above_60_percent", |p| mean(p, &|d| d.count(is_high)))
            .number("free_buffer_percent", |p| mean(p, &|d| d.free))
            .columns(deciles, |p| {
                let shares = self.pooled(p.name());
                [1, 2, 3, 4, 5, 6, 7, 8, 9].map(|decile| {
                    let share = stats::nearest_rank(&shares, f64::from(decile) / 10.0);
                    cell(share.map(|share| 100.0 * share))
                })
            })
            .table()
    }

    fn drawing(&self, name: &str, title: &str) -> Result<Figure, FigureError> {
        let mut curves = self.policies.curves(|policy| {
            let points = distribution(&stats::half_percentiles(&self.pooled(policy)));
            points.into_iter().map(|(share, y)| (100.0 * share, y))
        });
        curves.retain(|curve| !curve.points.is_empty());
        Plot {
            name,
            title,
            description: format!(
                "{title}: cumulative distribution over all lost packets of the dropping port’s share of \
                 the buffer. A policy without drops has no curve."
            ),
            curves: &curves,
            x: 0.0..100.0,
            x_label: "queue of the port, % of the buffer".to_owned(),
            x_tick: format::tick,
            y: 0.0..1.0,
            y_label: "share of lost packets",
            level: None,
        }
        .draw()
    }
}

#[cfg(test)]
mod tests {
    use bufgym_sim::switch::{Loss, SwitchId};
    use bufgym_sim::units::Instant;

    use super::*;
    use crate::ndt::setting::tests::context;
    use crate::verdict::Grade;

    fn row(queue: u64, occupancy: u64) -> DropRow {
        DropRow {
            t: Instant::ZERO,
            switch: SwitchId(0),
            port: 0,
            queue_bytes: queue,
            occupancy_bytes: occupancy,
            loss: Loss::Full,
        }
    }

    fn drops(shares: [u64; 4], occupancy: u64) -> Vec<Drops> {
        let rows = shares.map(|queue| row(queue, occupancy));
        vec![Drops::of(&rows, 100); 2]
    }

    /// Builds results of NDT, CS, DT and EDT.
    fn results(shares: [[u64; 4]; 4], occupancies: [u64; 4]) -> Results {
        let runs = shares.into_iter().zip(occupancies);
        context(|context| Results {
            policies: context.policies(&RULES),
            runs: runs.map(|(shares, full)| drops(shares, full)).collect(),
        })
    }

    fn grades(results: &Results) -> Vec<Grade> {
        let claims = context(|context| results.claims(context));
        claims.iter().map(Claim::grade).collect()
    }

    #[test]
    fn drops_are_classed_by_the_share_of_their_port() {
        let [run, _] = drops([2, 33, 61, 99], 90).try_into().unwrap();
        assert_eq!(run.count(is_low), 1.0);
        assert_eq!(run.count(is_extreme), 2.0);
        assert_eq!(run.count(is_near_convergence), 1.0);
        assert_eq!(run.count(is_high), 2.0);
        assert!((run.free - 0.4).abs() < 1e-12);
        for (share, near) in [
            (0.19, false),
            (0.21, true),
            (0.42, false),
            (0.549, true),
            (0.56, false),
        ] {
            assert_eq!(is_near_convergence(share), near, "{share}");
        }
    }

    #[test]
    fn what_the_paper_describes_agrees() {
        let like = results(
            [
                [65, 70, 80, 3],
                [1, 99, 100, 2],
                [33, 50, 51, 70],
                [25, 33, 48, 10],
            ],
            [80, 100, 70, 60],
        );
        let [order, value] = [Grade::InRanking, Grade::Agrees];
        assert_eq!(grades(&like), [value, order, order, order, value]);
    }

    #[test]
    fn the_opposite_differs() {
        let unlike = results(
            [
                [10, 11, 12, 13],
                [33, 34, 50, 51],
                [1, 99, 99, 99],
                [2, 98, 99, 99],
            ],
            [80, 60, 100, 100],
        );
        assert_eq!(grades(&unlike), [Grade::Differs; 5]);
    }

    #[test]
    fn deciles_and_shares_are_in_the_table() {
        let results = results([[10, 20, 65, 100]; 4], [75; 4]);
        let table = context(|context| results.table(context, "fig11", "x"));
        let row = &table.rows[0];
        assert_eq!(row[3..8], ["8", "0", "25", "50", "25"].map(str::to_owned));
        assert_eq!(row[8], "10");
        assert_eq!(row[12], "20");
        assert_eq!(row[16], "100");
    }
}
