//! The 16-port switch (§VI-A, §VI-B): Fig. 8(a-c), and the fairness of Fig. 12(a).

use bufgym_eval::data::{BASELINE, Evaluation, TraceResult, UNLIMITED};
use bufgym_eval::entrant::Entrant;
use bufgym_eval::evaluate::{EvalConfig, NumberedTrace, evaluate_on, evaluate_traces};
use bufgym_eval::figures::bars::Bars;
use bufgym_eval::figures::plot::{Curve, Plot, extent_x, extent_y, logarithmic};
use bufgym_eval::figures::{Figure, FigureError};
use bufgym_eval::format;
use bufgym_eval::stats::{self, Estimate, Tally};
use bufgym_sim::scenario::{DEFAULT_PRESET, Scenario};
use bufgym_util::rng::Split;

use super::NdtFigure;
use super::experiment::Experiment;
use super::setting::{Context, Extent, Policies, is_lowest, listed, stroke};
use super::variants::{LONG_RTO, NS3, SHORT_RTO, Variant};
use crate::claim::{Claim, Target};
use crate::report::{Panel, Report, Table};
use crate::runs::PapersError;
use crate::verdict::{ascending, same_order};

/// The figures that share their runs.
pub(crate) const FIGURES: [NdtFigure; 4] = [
    NdtFigure::MeanFct,
    NdtFigure::Improvement,
    NdtFigure::Tail,
    NdtFigure::Fairness,
];

/// The paper's baselines.
const RULES: [&str; 4] = ["st", "cs", "dt", "edt"];

/// The two interpretations of the traffic generator, which the paper describes in words, and the other
/// settings that the paper leaves open.
const VARIANTS: [Variant; 5] = [
    NS3,
    Variant::new("flows that start one by one", &["arrivals=spread"]),
    Variant::new("flows that start in groups", &["arrivals=synchronised"]),
    SHORT_RTO,
    LONG_RTO,
];

/// Returns the extent of the experiment.
pub fn experiment(extent: &Extent) -> Experiment {
    Experiment {
        rules: &RULES,
        traces: extent.single,
        few: extent.single,
        training: extent.training,
        variants: &VARIANTS,
    }
}

/// Makes the selected ones of [`FIGURES`].
///
/// # Errors
/// Fails if a run fails or a figure cannot be drawn.
pub fn make(
    context: &Context,
    wanted: &[NdtFigure],
    report: &mut Report,
) -> Result<(), PapersError> {
    if !FIGURES.iter().any(|figure| wanted.contains(figure)) {
        return Ok(());
    }
    let scenario = Scenario::preset(DEFAULT_PRESET)?;
    let experiment = experiment(&context.extent);
    let (results, claims) = experiment.run(context, &scenario, evaluate, |results, context| {
        let mut claims = results.claims(context);
        claims.retain(|claim| wanted.iter().any(|figure| is_of(claim, *figure)));
        claims
    })?;
    report.claims.extend(claims);
    for figure in FIGURES.iter().filter(|figure| wanted.contains(figure)) {
        report.panels.push(results.panel(context, *figure)?);
    }
    report.add_scenario(&scenario);
    Ok(())
}

fn is_of(claim: &Claim, figure: NdtFigure) -> bool {
    format!("{}{}", claim.figure, claim.panel) == figure.id()
}

/// Pairs every policy with DT on the traces.
fn evaluate(
    context: &Context,
    scenario: &Scenario,
    policies: Policies,
    traces: &[NumberedTrace],
) -> Result<Results, PapersError> {
    // The unlimited buffer always runs too.
    if policies.place(UNLIMITED).is_none() {
        context.work.plan(traces.len());
    }
    let config = EvalConfig {
        traces: traces.len() as u64,
        resamples: context.resamples,
        ..EvalConfig::new(scenario.clone(), policies.to_vec(), context.seed)
    };
    let tick =
        |progress: bufgym_eval::Progress<'_>| context.work.tick(progress.policy, progress.trace);
    let evaluation = match context.work.executor() {
        None => evaluate_traces(&config, Split::Test, traces, &tick)?,
        Some(executor) => evaluate_on(&config, Split::Test, traces, executor, &tick)?,
    };
    Ok(Results {
        evaluation,
        policies,
    })
}

/// The runs of all policies.
struct Results {
    evaluation: Evaluation,
    policies: Policies,
}

impl Results {
    /// Returns one number of every trace that all policies finished.
    fn values(&self, policy: &str, value: fn(&TraceResult) -> Option<f64>) -> Vec<f64> {
        let failed: Vec<u64> = self.evaluation.failures().map(|r| r.trace).collect();
        let own = self.evaluation.results_of(policy);
        own.filter(|result| !failed.contains(&result.trace))
            .filter_map(value)
            .collect()
    }

    fn means(&self, policy: &str) -> Vec<f64> {
        self.values(policy, |r| r.all_flows.mean_fct_ms)
    }

    fn ratios(&self, policy: &str) -> Vec<f64> {
        self.values(policy, |r| r.ratio_to_dt)
    }

    fn tails(&self, policy: &str) -> Vec<f64> {
        self.values(policy, |r| r.p99_ratio_to_dt)
    }

    fn variances(&self, policy: &str) -> Vec<f64> {
        self.values(policy, |r| r.objectives.port_slowdown_variance)
    }

    /// Returns the mean of `values` for the learned policy and each baseline of the paper.
    fn compared(&self, values: impl Fn(&str) -> Vec<f64>) -> Vec<(&str, Option<f64>)> {
        let policies = &self.policies;
        policies.compared(|policy| stats::mean(&values(policy)))
    }

    fn claims(&self, context: &Context) -> Vec<Claim> {
        let mut claims = self.mean_fct_claims(context);
        claims.extend(self.improvement_claims(context));
        claims.extend(self.tail_claims(context));
        claims.extend(self.fairness_claims(context));
        claims
    }

    /// Returns the claims of Fig. 8(a).
    fn mean_fct_claims(&self, context: &Context) -> Vec<Claim> {
        let ndt = self.policies.learned();
        let means = self.compared(|policy| self.means(policy));
        let of = |name: &str| means.iter().find(|m| m.0 == name).and_then(|m| m.1);
        // NDT is 8 % below EDT and 43 % below ST.
        let pairs = [(0.57, of(ndt)), (0.57 / 0.92, of("edt")), (1.0, of("st"))];
        let pairs: Option<Vec<(f64, f64)>> =
            pairs.map(|(p, o)| Some((p, o?))).into_iter().collect();
        let order = pairs.as_deref().and_then(same_order);
        let found = format!("Mean FCT found, ms: {}.", listed(&means));
        let reduction = |against: &str, statement: &'static str, paper: f64| {
            let series = format!("{ndt} vs {against}");
            let metric = "lower mean FCT, %";
            Claim::number(
                ("8", "a"),
                &series,
                metric,
                statement,
                Target::Reduction(paper),
            )
            .measured(context.reduction(&self.means(ndt), &self.means(against)))
            .ranked(
                order
                    .zip(ascending(&[of(ndt), of(against)]))
                    .map(|(a, b)| a && b),
            )
            .remarked(found.clone())
        };
        let order_of = |series: &str, statement: &'static str, words: &'static str| {
            Claim::order(("8", "a"), series, "mean FCT, ms", statement, words)
                .measured(context.mean(&self.means(series)))
                .remarked(found.clone())
        };
        let worst: Vec<(&str, Option<f64>)> =
            means.iter().map(|(n, v)| (*n, v.map(|v| -v))).collect();
        let rules: Vec<(&str, Option<f64>)> =
            means.iter().filter(|m| m.0 != ndt).copied().collect();
        vec![
            reduction(
                "edt",
                "NDT has 8 to 43 % lower mean FCT than the baselines: 8 % than the best of them, EDT \
                 (which one is our reading).",
                8.0,
            ),
            reduction(
                "st",
                "NDT has 8 to 43 % lower mean FCT than the baselines: 43 % than the worst of them, ST \
                 (which one is our reading).",
                43.0,
            ),
            order_of(ndt, "NDT outperforms all baselines.", "ndt lowest")
                .ranked(is_lowest(ndt, &means)),
            order_of(
                "edt",
                "EDT is the best of the baselines.",
                "edt lowest of the rules",
            )
            .ranked(is_lowest("edt", &rules)),
            order_of("st", "ST performs worst.", "st highest").ranked(is_lowest("st", &worst)),
        ]
    }

    /// Returns the claims of Fig. 8(b).
    fn improvement_claims(&self, context: &Context) -> Vec<Claim> {
        let ndt = self.policies.learned();
        let (own, edt) = (self.ratios(ndt), self.ratios("edt"));
        let won = |ratios: &[f64]| -> Vec<f64> {
            let wins = ratios.iter().map(|ratio| *ratio < stats::WON_BELOW);
            wins.map(|won| if won { 100.0 } else { 0.0 }).collect()
        };
        let share = stats::mean(&won(&own));
        let best = |ratios: &[f64]| ratios.iter().copied().min_by(f64::total_cmp);
        let improvement = |ratio: Option<f64>| ratio.map(|ratio| 100.0 * (1.0 - ratio));
        let tally = |ratios: &[f64]| {
            let tally = Tally::of(ratios);
            let median = stats::nearest_rank(&sorted(ratios), 0.5);
            format!(
                "{} won, {} tied, {} lost, {} won of those that are not ties; median improvement {} %.",
                tally.won,
                tally.tied,
                tally.lost,
                format::percent(tally.share_won()),
                format::optional(improvement(median)),
            )
        };
        let panel = ("8", "b");
        vec![
            Claim::number(
                panel,
                ndt,
                "traces won, %",
                "NDT outperforms DT on more than 90 % of the traces.",
                Target::AtLeast(90.0),
            )
            .measured(context.mean(&won(&own)))
            .remarked(tally(&own)),
            Claim::number(
                panel,
                ndt,
                "largest improvement over DT, %",
                "NDT’s mean FCT is up to about 28 % lower than DT’s.",
                Target::Reduction(28.0),
            )
            .measured(improvement(best(&own)).map(Estimate::exact))
            .ranked(ascending(&[best(&own), best(&edt)]))
            .remarked("The largest of all traces grows with their number."),
            Claim::order(
                panel,
                "edt",
                "traces won, %",
                "NDT outperforms EDT by a large margin.",
                "edt < ndt",
            )
            .measured(context.mean(&won(&edt)))
            .ranked(ascending(&[stats::mean(&won(&edt)), share]))
            .remarked(tally(&edt)),
        ]
    }

    /// Returns the claims of Fig. 8(c).
    fn tail_claims(&self, context: &Context) -> Vec<Claim> {
        let ndt = self.policies.learned();
        let mean = |policy: &str| stats::mean(&self.tails(policy));
        let order = mean(ndt)
            .zip(mean("edt"))
            .and_then(|(own, edt)| same_order(&[(0.82, own), (1.0, edt), (1.0, 1.0)]));
        let lower = |policy: &str, statement: &'static str, paper: f64| {
            let metric = "lower p99 FCT, mean over traces, %";
            let mean = context.mean(&self.tails(policy));
            Claim::number(
                ("8", "c"),
                policy,
                metric,
                statement,
                Target::Reduction(paper),
            )
            .measured(mean.map(super::setting::reduction))
            .ranked(order)
        };
        vec![
            lower(
                ndt,
                "NDT’s p99 FCT is 18 % lower than DT’s on average.",
                18.0,
            ),
            lower("edt", "EDT’s p99 FCT is comparable with DT’s.", 0.0),
        ]
    }

    /// Returns the claims of Fig. 12(a).
    fn fairness_claims(&self, context: &Context) -> Vec<Claim> {
        let ndt = self.policies.learned();
        let means = self.compared(|policy| self.variances(policy));
        let of = |name: &str| means.iter().find(|m| m.0 == name).and_then(|m| m.1);
        let found = format!("Variances found: {}.", listed(&means));
        let negated: Vec<(&str, Option<f64>)> =
            means.iter().map(|(n, v)| (*n, v.map(|v| -v))).collect();
        let claim = |series: &str, statement: &'static str, words: &'static str| {
            Claim::order(
                ("12", "a"),
                series,
                "variance of port slowdowns",
                statement,
                words,
            )
            .measured(context.mean(&self.variances(series)))
            .remarked(found.clone())
        };
        let between = [of(ndt), of("edt")].map(|own| ascending(&[of("st"), own, of("cs")]));
        let between = between[0].zip(between[1]).map(|(a, b)| a && b);
        vec![
            claim("st", "ST is the fairest.", "st lowest").ranked(is_lowest("st", &means)),
            claim("cs", "CS is totally unfair.", "cs highest").ranked(is_lowest("cs", &negated)),
            claim(
                ndt,
                "NDT is comparable with EDT: both give up some fairness for efficiency.",
                "st < ndt, edt < cs",
            )
            .ranked(between),
        ]
    }

    fn panel(&self, context: &Context, figure: NdtFigure) -> Result<Panel, FigureError> {
        let traces = self.evaluation.traces;
        let (title, method, table, drawing) = match figure {
            NdtFigure::MeanFct => (
                "mean FCT of every trace",
                format!("{DEFAULT_PRESET}, {traces} unseen traces."),
                self.mean_fct_table(context),
                self.mean_fct_drawing()?,
            ),
            NdtFigure::Improvement => (
                "improvement of mean FCT over DT, trace by trace",
                format!(
                    "{DEFAULT_PRESET}, {traces} unseen traces. A trace is won below 0.999 of DT’s mean \
                     FCT, lost above 1.001."
                ),
                self.improvement_table(),
                self.improvement_drawing()?,
            ),
            NdtFigure::Tail => (
                "p99 FCT relative to DT",
                format!("{DEFAULT_PRESET}, {traces} unseen traces; p99 within each trace."),
                self.tail_table(context),
                self.tail_drawing()?,
            ),
            _ => (
                "fairness: variance over ports of the port slowdown",
                format!(
                    "{DEFAULT_PRESET}, {traces} unseen traces; mean over traces of the variance. The \
                     paper does not say which experiment it is."
                ),
                self.fairness_table(context),
                self.fairness_drawing(context)?,
            ),
        };
        Ok(Panel {
            id: figure.id(),
            title,
            method,
            tables: vec![table],
            drawings: vec![drawing],
        })
    }

    fn mean_fct_table(&self, context: &Context) -> Table {
        let of_policy = |policy| {
            let name = Entrant::name(policy);
            let mean = stats::mean(&self.means(name));
            let ratio = context.mean(&self.ratios(name));
            let results = self.evaluation.results_of(name);
            results.map(move |result| (policy, result, mean, ratio))
        };
        let rows = self.policies.iter().flat_map(of_policy);
        let table = self.policies.rows("fig8a", rows, |row| row.0);
        table
            .text("trace", |row| row.1.trace.to_string())
            .number("mean_fct_ms", |row| row.1.all_flows.mean_fct_ms)
            .number("ratio_to_dt", |row| row.1.ratio_to_dt)
            .number("all_traces_mean_fct_ms", |row| row.2)
            .interval(["all_traces_ratio_to_dt", "ratio_lo", "ratio_hi"], |row| {
                row.3
            })
            .table()
    }

    fn mean_fct_drawing(&self) -> Result<Figure, FigureError> {
        let curves = self.policies.curves(|policy| {
            let values = sorted(&self.means(policy));
            let count = values.len() as f64;
            let steps = values.iter().enumerate().flat_map(|(rank, value)| {
                let share = |rank: usize| rank as f64 / count;
                [(*value, share(rank)), (*value, share(rank + 1))]
            });
            steps.collect::<Vec<_>>()
        });
        let (least, most) = extent_x(&curves).unwrap_or((1.0, 10.0));
        Plot {
            name: "fig8a",
            title: "Mean FCT per trace",
            description: format!(
                "Cumulative distribution over {} traces of the mean flow completion time; further left \
                 is better.",
                self.evaluation.traces
            ),
            curves: &curves,
            x: logarithmic(least * 0.95, most * 1.05),
            x_label: "mean FCT of a trace, ms (log scale)".to_owned(),
            x_tick: format::tick,
            y: 0.0..1.0,
            y_label: "share of traces",
            level: None,
        }
        .draw()
    }

    fn improvement_table(&self) -> Table {
        let of_policy = |policy| {
            let results = self.evaluation.results_of(Entrant::name(policy));
            let mut results: Vec<&TraceResult> = results.collect();
            results.sort_by(|a, b| key(b).total_cmp(&key(a)));
            let ranks = results.into_iter().enumerate();
            ranks.map(move |(place, result)| (policy, place + 1, result))
        };
        let rows = self.against_dt().flat_map(of_policy);
        let table = self.policies.rows("fig8b", rows, |row| row.0);
        table
            .text("rank", |row| row.1.to_string())
            .text("trace", |row| row.2.trace.to_string())
            .number("improvement_percent", |row| {
                Some(100.0 * (1.0 - row.2.ratio_to_dt?))
            })
            .table()
    }

    /// Returns the policies of Fig. 8(b) and 8(c), then the additional ones.
    fn against_dt(&self) -> impl Iterator<Item = &Entrant> {
        let left_out = ["st", "cs", BASELINE];
        let policies = self.policies.iter();
        policies.filter(move |policy| !left_out.contains(&policy.name()))
    }

    /// Returns one curve for each policy of [`against_dt`](Results::against_dt): its sorted values, over the
    /// share of traces in per cent.
    fn sorted_curves(&self, values: impl Fn(&str) -> Vec<f64>) -> Vec<Curve> {
        self.against_dt()
            .map(|policy| {
                let values = sorted(&values(policy.name()));
                let count = values.len() as f64;
                let points = values.iter().enumerate();
                let points = points.map(|(rank, v)| (100.0 * (rank as f64 + 0.5) / count, *v));
                let name = self.policies.legend(policy);
                Curve::new(&name, stroke(policy), points.collect::<Vec<_>>())
            })
            .collect()
    }

    fn improvement_drawing(&self) -> Result<Figure, FigureError> {
        let improvements = |policy: &str| {
            let ratios = self.ratios(policy);
            ratios.iter().map(|ratio| 100.0 * (1.0 - ratio)).collect()
        };
        let curves = self.sorted_curves(improvements);
        let (least, most) = extent_y(&curves).unwrap_or((-1.0, 1.0));
        Plot {
            name: "fig8b",
            title: "Improvement over DT per trace",
            description:
                "Mean FCT below DT’s in per cent, sorted for each policy; above 0 the policy \
                          beats DT on that trace."
                    .to_owned(),
            curves: &curves,
            x: 0.0..100.0,
            x_label: "traces, each policy sorted, %".to_owned(),
            x_tick: format::tick,
            y: least.min(0.0) - 2.0..most.max(0.0) + 2.0,
            y_label: "improvement, %",
            level: Some(0.0),
        }
        .draw()
    }

    fn tail_table(&self, context: &Context) -> Table {
        let of_policy = |policy| {
            let name = Entrant::name(policy);
            let mean = context.mean(&self.tails(name));
            let results = self.evaluation.results_of(name);
            results.map(move |result| (policy, result, mean))
        };
        let rows = self.against_dt().flat_map(of_policy);
        let table = self.policies.rows("fig8c", rows, |row| row.0);
        table
            .text("trace", |row| row.1.trace.to_string())
            .number("p99_ratio_to_dt", |row| row.1.p99_ratio_to_dt)
            .interval(
                ["all_traces_p99_ratio_to_dt", "ratio_lo", "ratio_hi"],
                |row| row.2,
            )
            .table()
    }

    fn tail_drawing(&self) -> Result<Figure, FigureError> {
        let curves = self.sorted_curves(|policy| self.tails(policy));
        let (least, most) = extent_y(&curves).unwrap_or((0.9, 1.1));
        Plot {
            name: "fig8c",
            title: "p99 FCT relative to DT, per trace",
            description:
                "p99 FCT over DT’s on the same trace, sorted for each policy; below 1 the \
                          policy beats DT."
                    .to_owned(),
            curves: &curves,
            x: 0.0..100.0,
            x_label: "traces, each policy sorted, %".to_owned(),
            x_tick: format::tick,
            y: (least * 0.95).min(0.95)..(most * 1.05).max(1.05),
            y_label: "p99 FCT / p99 FCT of DT",
            level: Some(1.0),
        }
        .draw()
    }

    fn fairness_table(&self, context: &Context) -> Table {
        let own = |policy: &Entrant| self.variances(policy.name());
        let table = self.policies.table("fig12a");
        table
            .interval(["variance", "variance_lo", "variance_hi"], |policy| {
                context.mean(&own(policy))
            })
            .interval(["ratio_to_st", "ratio_lo", "ratio_hi"], |policy| {
                context.ratio(&own(policy), &self.variances("st"))
            })
            .table()
    }

    fn fairness_drawing(&self, context: &Context) -> Result<Figure, FigureError> {
        let bars = self.policies.iter().map(|policy| {
            let name = self.policies.legend(policy);
            let value = context.mean(&self.variances(policy.name()));
            (name, stroke(policy), value)
        });
        Bars {
            name: "fig12a",
            title: "Variance of port slowdowns",
            description: format!(
                "Mean over {} traces of the variance over active ports of the port slowdown, with its \
                 95 % interval; lower is fairer.",
                self.evaluation.traces
            ),
            bars: bars.collect::<Vec<(String, _, Option<Estimate>)>>(),
            y_label: "variance of port slowdowns",
        }
        .draw()
    }
}

/// Returns the key that sorts improvements; traces without a ratio come last.
fn key(result: &TraceResult) -> f64 {
    result.ratio_to_dt.map_or(f64::NEG_INFINITY, |ratio| -ratio)
}

fn sorted(values: &[f64]) -> Vec<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

#[cfg(test)]
mod tests;
