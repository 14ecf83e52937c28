//! The testbed of four hosts (§VI-C): Fig. 9, simulated, and [measured] on a software testbed.

pub mod measured;
pub mod played;
mod stretched;

use bufgym_eval::data::BASELINE;
use bufgym_eval::entrant::Entrant;
use bufgym_eval::figures::plot::{Curve, Plot, extent_y};
use bufgym_eval::figures::style::Stroke;
use bufgym_eval::figures::{Figure, FigureError};
use bufgym_eval::format;
use bufgym_eval::stats::{self, Estimate};
use bufgym_sim::scenario::{Scenario, ScenarioError};

use super::NdtFigure;
use super::setting::{
    Context, Extent, LOADS, Policies, is_lowest, listed, reduction, simulations, stroke,
};
use super::variants::{self, LINUX, SHORT_RTO, Variant};
use crate::claim::{Claim, Target};
use crate::report::{Panel, Report, Rows};
use crate::runs::{PapersError, best_static_runs, mean_fcts};
use crate::verdict::ascending;

const PRESET: &str = "ndt-testbed-4x1g";

const SIMULATED: &str = "The paper measures on hardware with hosts of its own; this is simulated.";

/// The paper's other series.
const RULES: [&str; 2] = ["dt", "edt"];

/// Variants: the hosts of the testbed run Linux; the paper gives no minimum RTO and no number of flows of a
/// run.
const VARIANTS: [Variant; 3] = [
    LINUX,
    SHORT_RTO,
    Variant::new("NewReno", &["transport=newreno"]),
];

/// Returns the number of simulations known in advance, of one workload.
pub fn planned(extent: &Extent, seeds: usize) -> usize {
    let training = extent.training;
    let tests =
        simulations(RULES.len() + 3, extent.loads, seeds, training) - best_static_runs(training);
    LOADS.len() * tests + best_static_runs(training)
}

/// Returns the workload of a panel, in files and in words.
fn workload(figure: NdtFigure) -> (&'static str, &'static str) {
    match figure {
        NdtFigure::DataMining => ("data_mining", "data mining"),
        _ => ("web_search", "web search"),
    }
}

/// Mean FCTs of every policy at one load, by trace.
struct Point {
    load: u32,
    /// Mean FCTs by policy, then by trace.
    means: Vec<Vec<f64>>,
}

/// The runs of all policies at all loads.
struct Results {
    figure: NdtFigure,
    /// Description of the origin of the runs, compared with the paper's.
    origin: &'static str,
    policies: Policies,
    points: Vec<Point>,
}

/// Makes one panel.
///
/// # Errors
/// Fails if a run fails or the figure cannot be drawn.
pub fn make(context: &Context, figure: NdtFigure, report: &mut Report) -> Result<(), PapersError> {
    let (name, words) = workload(figure);
    let mut scenario = Scenario::preset(PRESET)?;
    scenario.set(&format!("workload={name}"))?;
    let policies = context.with_additions(&RULES, &scenario, context.extent.training)?;
    let count = context.extent.loads;
    let results = measure(context, figure, &scenario, policies, count, true)?;
    let mut claims = results.claims(context);
    variants::explain(&mut claims, &VARIANTS, |variant| {
        let scenario = variant.of(&scenario)?;
        let policies = context.policies(&RULES);
        let count = count.min(context.extent.variant);
        context
            .work
            .plan(policies.len() * LOADS.len() * bufgym_util::convert::index(count));
        Ok(measure(context, figure, &scenario, policies, count, false)?.claims(context))
    })?;
    report.claims.extend(claims);
    report.panels.push(Panel {
        id: figure.id(),
        title: match figure {
            NdtFigure::DataMining => "mean FCT over load on the testbed, data mining",
            _ => "mean FCT over load on the testbed, web search",
        },
        method: format!(
            "{PRESET} with {words}, simulated: 4 hosts at 1 Gbps, 256 KB, CUBIC, {} runs of 100 flows \
             for each load. The loads are ours: the paper does not list them. NDT was trained on web \
             search.",
            results.points.first().map_or(0, |point| point.means[0].len()),
        ),
        tables: vec![results.table(context).table()],
        drawings: vec![results.drawing(context)?],
    });
    report.add_scenario(&scenario);
    Ok(())
}

fn at_load(scenario: &Scenario, load: u32) -> Result<Scenario, ScenarioError> {
    let mut scenario = scenario.clone();
    scenario.set(&format!("load={}", f64::from(load) / 100.0))?;
    Ok(scenario)
}

fn measure(
    context: &Context,
    figure: NdtFigure,
    scenario: &Scenario,
    policies: Policies,
    count: u64,
    all_sets: bool,
) -> Result<Results, PapersError> {
    let point = |load: u32| {
        let scenario = at_load(scenario, load)?;
        let traces = match all_sets {
            true => context.traces(&scenario, count)?,
            false => context.few_traces(&scenario, count)?,
        };
        let means = mean_fcts(&context.work, &scenario, &policies, &traces)?;
        Ok(Point { load, means })
    };
    let points = LOADS.into_iter().map(point);
    Ok(Results {
        figure,
        origin: SIMULATED,
        points: points.collect::<Result<Vec<Point>, PapersError>>()?,
        policies,
    })
}

impl Results {
    /// Returns the mean FCT over DT's at every load.
    fn ratios(&self, context: &Context, policy: &str) -> Vec<(u32, Option<Estimate>)> {
        let policies = &self.policies;
        let places = policies.place(policy).zip(policies.place(BASELINE));
        let ratio = |point: &Point| {
            let (own, dt) = places?;
            context.ratio(&point.means[own], &point.means[dt])
        };
        let points = self.points.iter();
        points.map(|point| (point.load, ratio(point))).collect()
    }

    /// Returns the mean over loads of the ratio to DT.
    fn mean_ratio(&self, context: &Context, policy: &str) -> Option<f64> {
        let ratios = self.ratios(context, policy);
        stats::finite_mean(
            ratios
                .iter()
                .filter_map(|(_, ratio)| Some((*ratio)?.centre)),
        )
    }

    /// Returns the number of loads at which the learned policy is below all of the paper's other series.
    fn loads_won(&self, context: &Context) -> usize {
        let paper: Vec<Vec<_>> = self
            .policies
            .paper()
            .map(|p| self.ratios(context, p.name()))
            .collect();
        let value = |series: &[(u32, Option<Estimate>)], at: usize| series[at].1.map(|r| r.centre);
        let won = |at: &usize| {
            let own = value(&paper[0], *at);
            let others = paper[1..].iter().map(|series| value(series, *at));
            own.is_some()
                && others
                    .into_iter()
                    .all(|other| other.is_some() && own < other)
        };
        (0..self.points.len()).filter(won).count()
    }

    fn claims(&self, context: &Context) -> Vec<Claim> {
        let mut claims = vec![self.best_claim(context)];
        if self.figure == NdtFigure::WebSearch {
            claims.extend(self.maximum_claims(context));
        }
        claims
    }

    fn panel(&self) -> (&'static str, &'static str) {
        match self.figure {
            NdtFigure::DataMining => ("9", "b"),
            _ => ("9", "a"),
        }
    }

    /// Claims that NDT is the best on average over the loads.
    fn best_claim(&self, context: &Context) -> Claim {
        let ndt = self.policies.learned();
        let policies = &self.policies;
        let means = policies.compared(|policy| self.mean_ratio(context, policy));
        let statement = match self.figure {
            NdtFigure::DataMining => {
                "NDT generalises to a workload that it was not trained on and outperforms the other \
                 schemes."
            }
            _ => "NDT outperforms DT and EDT.",
        };
        let (panel, words) = (self.panel(), "ndt lowest");
        Claim::order(
            panel,
            ndt,
            "mean FCT / DT’s, mean over loads",
            statement,
            words,
        )
        .measured(self.mean_ratio(context, ndt).map(Estimate::exact))
        .ranked(is_lowest(ndt, &means))
        .remarked(format!(
            "Found: {}; ndt is the lowest at {} of {} loads. The loads are ours.",
            listed(&means),
            self.loads_won(context),
            self.points.len(),
        ))
    }

    /// Claims the largest improvement, and the load at which it occurs.
    fn maximum_claims(&self, context: &Context) -> Vec<Claim> {
        let ndt = self.policies.learned();
        let ratios = self.ratios(context, ndt);
        let known: Vec<(u32, Estimate)> = ratios
            .iter()
            .filter_map(|(load, ratio)| Some((*load, (*ratio)?)))
            .collect();
        let best = known
            .iter()
            .min_by(|a, b| a.1.centre.total_cmp(&b.1.centre));
        let half = |low: bool| {
            let of_half = known
                .iter()
                .filter(|(load, _)| (*load < 50) == low && *load != 50);
            stats::finite_mean(of_half.map(|(_, ratio)| ratio.centre))
        };
        let x = best.map_or_else(String::new, |(load, _)| format!("load {load} %"));
        vec![
            Claim::number(
                self.panel(),
                ndt,
                "largest reduction of mean FCT against DT, %",
                "NDT’s mean FCT is up to 16 % lower than DT’s, at low load.",
                Target::Reduction(16.0),
            )
            .at(x.clone())
            .measured(best.map(|(_, ratio)| reduction(*ratio)))
            .ranked(best.map(|(_, ratio)| ratio.centre < 1.0))
            .remarked(self.origin),
            Claim::order(
                self.panel(),
                ndt,
                "mean FCT / DT’s, loads below 50 % against above",
                "The improvement is largest when the load is low.",
                "ndt lower at loads below 50 %",
            )
            .measured(half(true).map(Estimate::exact))
            .ranked(ascending(&[half(true), half(false)]))
            .remarked(format!(
                "Above 50 % load the ratio is {}; the largest improvement is at {x}.",
                format::ratio(half(false)),
            )),
        ]
    }

    fn name(&self) -> &'static str {
        match self.figure {
            NdtFigure::DataMining => "fig9b",
            _ => "fig9a",
        }
    }

    /// Returns the table with a row for every policy, by its index, and load, by its index.
    fn table(&self, context: &Context) -> Rows<(usize, usize)> {
        let loads = self.points.len();
        let of_policy = |policy| (0..loads).map(move |load| (policy, load));
        let rows = (0..self.policies.len()).flat_map(of_policy);
        let name = self.name();
        let rows = self.policies.rows(name, rows, |row| &self.policies[row.0]);
        let rows = rows.text("load_percent", |row| self.points[row.1].load.to_string());
        let names = ["mean_fct_ms", "ratio_to_dt", "ratio_lo", "ratio_hi"];
        self.add_means(context, rows, names)
            .text("runs", |row| self.means(row).len().to_string())
    }

    /// Adds the columns of the mean FCT and of its ratio to DT's.
    fn add_means(
        &self,
        context: &Context,
        rows: Rows<(usize, usize)>,
        [mean, ratio @ ..]: [&'static str; 4],
    ) -> Rows<(usize, usize)> {
        let policies = self.policies.iter();
        let ratios: Vec<_> = policies.map(|p| self.ratios(context, p.name())).collect();
        rows.number(mean, |row| Some(context.mean(self.means(row))?.centre))
            .interval(ratio, |row| ratios[row.0][row.1].1)
    }

    fn means(&self, (policy, load): &(usize, usize)) -> &[f64] {
        &self.points[*load].means[*policy]
    }

    /// Returns a policy's ratio to DT over the load.
    fn curve(&self, context: &Context, policy: &Entrant, name: &str, stroke: Stroke) -> Curve {
        let ratios = self.ratios(context, policy.name());
        let points = ratios.iter();
        let points = points.filter_map(|(load, r)| Some((f64::from(*load), (*r)?.centre)));
        Curve::new(name, stroke, points.collect::<Vec<_>>())
    }

    fn drawing(&self, context: &Context) -> Result<Figure, FigureError> {
        let curve = |policy: &Entrant| {
            let name = self.policies.legend(policy);
            self.curve(context, policy, &name, stroke(policy))
        };
        let curves: Vec<Curve> = self.policies.iter().map(curve).collect();
        self.plot(&curves, "")
    }

    /// Plots curves over the load; `remark` is added to the description.
    fn plot(&self, curves: &[Curve], remark: &str) -> Result<Figure, FigureError> {
        let (least, most) = extent_y(curves).unwrap_or((0.9, 1.1));
        let (_, words) = workload(self.figure);
        Plot {
            name: self.name(),
            title: "Mean FCT relative to DT, over load",
            description: format!(
                "Mean FCT over all runs at a load divided by DT’s, {words}; below 1 is better.{remark}"
            ),
            curves,
            x: 5.0..95.0,
            x_label: "load, %".to_owned(),
            x_tick: format::tick,
            y: (least * 0.95).min(0.95)..(most * 1.05).max(1.05),
            y_label: "mean FCT / DT’s",
            level: Some(1.0),
        }
        .draw()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ndt::setting::tests::context;
    use crate::verdict::Grade;

    /// Builds results: DT has 10 ms everywhere, EDT 10.5 ms, and NDT the given values at loads below 50 % and
    /// at the others.
    fn results(figure: NdtFigure, low: f64, high: f64) -> Results {
        let points = LOADS.map(|load| Point {
            load,
            means: vec![
                vec![if load < 50 { low } else { high }; 2],
                vec![10.0; 2],
                vec![10.5; 2],
            ],
        });
        context(|context| Results {
            figure,
            origin: SIMULATED,
            policies: context.policies(&RULES),
            points: points.into_iter().collect(),
        })
    }

    fn grades(results: &Results) -> Vec<Grade> {
        let claims = context(|context| results.claims(context));
        claims.iter().map(Claim::grade).collect()
    }

    #[test]
    fn an_improvement_like_the_paper_s_agrees() {
        let like = results(NdtFigure::WebSearch, 8.4, 9.5);
        let expected = [Grade::InRanking, Grade::Agrees, Grade::InRanking];
        assert_eq!(grades(&like), expected);
        let other_side = results(NdtFigure::WebSearch, 9.5, 6.0);
        let expected = [Grade::InRanking, Grade::InRanking, Grade::Differs];
        assert_eq!(grades(&other_side), expected);
        let worse = results(NdtFigure::DataMining, 10.2, 10.1);
        assert_eq!(grades(&worse), [Grade::Differs]);
        let remark = context(|c| worse.claims(c)[0].remark.clone());
        assert!(remark.contains("lowest at 0 of 9 loads"), "{remark}");
    }

    #[test]
    fn the_table_has_a_row_for_every_policy_and_load() {
        let table = context(|c| results(NdtFigure::WebSearch, 8.0, 9.0).table(c).table());
        assert_eq!(table.rows.len(), 3 * LOADS.len());
        assert_eq!(
            table.rows[0],
            ["ndt", "", "10", "8", "0.8", "0.8", "0.8", "2"]
        );
    }
}
