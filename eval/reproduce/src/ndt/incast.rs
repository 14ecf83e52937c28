//! The 96-port switch with a 95-to-1 in-cast over elephants (§VI-B): Fig. 8(d).

use bufgym_eval::batch::{Quantity, Running};
use bufgym_eval::entrant::Entrant;
use bufgym_eval::evaluate::NumberedTrace;
use bufgym_eval::figures::plot::{Plot, distribution, extent_x, logarithmic};
use bufgym_eval::figures::{Figure, FigureError};
use bufgym_eval::format;
use bufgym_eval::stats;
use bufgym_sim::network::{Outcome, SimError};
use bufgym_sim::scenario::Scenario;
use serde::{Deserialize, Serialize};

use super::NdtFigure;
use super::experiment::{Experiment, Runs};
use super::setting::{Context, Extent, Policies, is_lowest, listed, percent};
use super::variants::{NS3, SHORT_RTO, Variant};
use crate::claim::Claim;
use crate::incast::{Regime, beyond, floor_ms};
use crate::report::{Panel, Report, Table};
use crate::runs::{PapersError, mean_fct};

const PRESET: &str = "ndt-96x10g-incast";

/// The paper's baselines.
const RULES: [&str; 4] = ["st", "cs", "dt", "edt"];

/// Variants, because the paper gives neither the size of the answers nor the elephants.
const VARIANTS: [Variant; 4] = [
    Variant::new("answers of 20 KB", &["response_bytes=20000"]),
    Variant::new("elephants at 50 % load", &["load=0.5"]),
    NS3,
    SHORT_RTO,
];

/// Returns the extent of the experiment. One run takes as long as many of the 16-port switch.
pub fn experiment(extent: &Extent) -> Experiment {
    Experiment {
        rules: &RULES,
        traces: extent.incast,
        few: extent.incast.min(2),
        training: extent.training.div_ceil(4),
        variants: &VARIANTS,
    }
}

/// One run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct IncastRun {
    mean_ms: f64,
    incast_mean_ms: f64,
    incast_p99_ms: f64,
    /// Number of in-cast flows that took longer than the minimum RTO, and number of all.
    late: (u64, u64),
    /// FCTs of the in-cast flows.
    incast_ms: Vec<f64>,
}

impl Quantity for IncastRun {
    const NAME: &'static str = "ndt-incast";

    fn measure(run: &Running<'_>) -> Result<Self, SimError> {
        let outcome = run.policy.run(run.scenario, &run.trace.trace, None)?;
        Ok(IncastRun::of(&outcome, timeout_ms(run.scenario)))
    }
}

/// Returns the minimum RTO in milliseconds.
fn timeout_ms(scenario: &Scenario) -> f64 {
    scenario.tcp.min_rto_us as f64 / 1e3
}

impl IncastRun {
    fn of(outcome: &Outcome, timeout_ms: f64) -> IncastRun {
        let incast = outcome.records.iter().filter(|r| r.spec.query >= 0);
        IncastRun {
            mean_ms: mean_fct(outcome),
            incast_mean_ms: outcome.summary.incast_mean_fct_ms,
            incast_p99_ms: outcome.summary.incast_p99_fct_ms,
            late: beyond(&outcome.records, timeout_ms),
            incast_ms: incast.filter_map(|r| Some(r.fct?.as_ms_f64())).collect(),
        }
    }
}

/// The runs of all policies.
struct Results {
    runs: Runs<IncastRun>,
    /// Time to send a whole query, milliseconds.
    floor_ms: f64,
    timeout_ms: f64,
}

/// Makes the figure.
///
/// # Errors
/// Fails if a run fails or the figure cannot be drawn.
pub fn make(context: &Context, report: &mut Report) -> Result<(), PapersError> {
    let scenario = Scenario::preset(PRESET)?;
    let experiment = experiment(&context.extent);
    let (results, claims) = experiment.run(context, &scenario, measure, Results::claims)?;
    report.claims.extend(claims);
    report.panels.push(Panel {
        id: NdtFigure::Incast.id(),
        title: "95-to-1 in-cast on 96 ports, which no policy was trained on",
        method: format!(
            "{PRESET}, {} unseen traces: every 10 ms 95 hosts answer one port with 64 KB each while 47 \
             other ports receive elephants. The sizes, rates and elephants are ours: the paper gives \
             none. A query takes {} ms on its line (the floor).",
            results.runs.traces(),
            format::significant(results.floor_ms),
        ),
        tables: vec![results.table(context)],
        drawings: vec![results.drawing()?],
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
    let floors = traces.iter().filter_map(|t| floor_ms(scenario, &t.trace));
    Ok(Results {
        runs: Runs::measure(context, scenario, policies, traces)?,
        floor_ms: stats::finite_mean(floors).unwrap_or(f64::NAN),
        timeout_ms: timeout_ms(scenario),
    })
}

impl Results {
    fn values(&self, policy: &str, value: fn(&IncastRun) -> f64) -> Vec<f64> {
        self.runs.values(policy, value)
    }

    fn claims(&self, context: &Context) -> Vec<Claim> {
        let ndt = self.runs.policies.learned();
        let claim = |metric: &'static str, value: fn(&IncastRun) -> f64| {
            Claim::order(
                ("8", "d"),
                ndt,
                metric,
                "NDT scales to 96 ports and 10 Gbps untrained, and is the best.",
                "ndt lowest",
            )
            .measured(context.mean(&self.values(ndt, value)))
        };
        let setting =
            "The setting is ours: the paper gives no sizes, rates or values, nor which FCT.";
        let policies = &self.runs.policies;
        let means =
            policies.compared(|policy| stats::mean(&self.values(policy, |r| r.incast_mean_ms)));
        let tails = policies.compared(|policy| self.tail(policy));
        let late = policies.compared(|policy| self.late(policy));
        vec![
            claim("mean in-cast FCT, ms", |run| run.incast_mean_ms)
                .ranked(is_lowest(ndt, &means))
                .remarked(format!("{setting} Found, ms: {}.", listed(&means))),
            claim("p99 in-cast FCT, ms", |run| run.incast_p99_ms)
                .ranked(self.has_lowest_tail(ndt))
                .remarked(format!(
                    "{setting} Found, ms: {}. Of two tails that are one timeout long the one with fewer \
                     flows beyond the minimum RTO is lower; these are, in %: {}.",
                    listed(&tails),
                    listed(&late),
                )),
        ]
    }

    /// Returns the mean over traces of the 99th percentile of the in-cast flows, milliseconds.
    fn tail(&self, policy: &str) -> Option<f64> {
        stats::mean(&self.values(policy, |run| run.incast_p99_ms))
    }

    /// Returns the share of the in-cast flows that took longer than the minimum RTO, per cent.
    fn late(&self, policy: &str) -> Option<f64> {
        let late: f64 = self.values(policy, |run| run.late.0 as f64).iter().sum();
        let all: f64 = self.values(policy, |run| run.late.1 as f64).iter().sum();
        (all > 0.0).then(|| 100.0 * late / all)
    }

    /// Returns true if the tail is below those of all other policies of the paper. Tails of one timeout are
    /// alike; the share of flows beyond the minimum RTO distinguishes them.
    fn has_lowest_tail(&self, policy: &str) -> Option<bool> {
        let is_one =
            |tail: f64| Regime::of(tail, self.floor_ms, self.timeout_ms) == Regime::OneTimeout;
        let (tail, late) = (self.tail(policy)?, self.late(policy)?);
        let others = self.runs.policies.paper();
        let mut is_lowest = true;
        for other in others.filter(|other| other.name() != policy) {
            let (other_tail, other_late) = (self.tail(other.name())?, self.late(other.name())?);
            is_lowest &= match is_one(tail) && is_one(other_tail) {
                true => late < other_late,
                false => tail < other_tail,
            };
        }
        Some(is_lowest)
    }

    fn table(&self, context: &Context) -> Table {
        let of = |policy: &Entrant, value: fn(&IncastRun) -> f64| {
            context.mean(&self.values(policy.name(), value))
        };
        let tail = |policy: &Entrant| of(policy, |run| run.incast_p99_ms);
        let mean_names = ["incast_mean_fct_ms", "incast_mean_lo", "incast_mean_hi"];
        let tail_names = ["incast_p99_fct_ms", "incast_p99_lo", "incast_p99_hi"];
        let table = self.runs.policies.table("fig8d");
        table
            .interval(mean_names, |policy| of(policy, |run| run.incast_mean_ms))
            .interval(tail_names, |policy| tail(policy))
            .text("regime", |policy| {
                let regime = |tail| Regime::of(tail, self.floor_ms, self.timeout_ms).to_string();
                tail(policy).map_or_else(String::new, |tail| regime(tail.centre))
            })
            .number("share_incast_beyond_min_rto_percent", |policy| {
                let late = self.values(policy.name(), |run| run.late.0 as f64);
                let all = self.values(policy.name(), |run| run.late.1 as f64);
                Some(percent(context.ratio(&late, &all)?).centre)
            })
            .number("mean_fct_ms", |policy| {
                Some(of(policy, |run| run.mean_ms)?.centre)
            })
            .number("floor_ms", |_| Some(self.floor_ms))
            .table()
    }

    fn drawing(&self) -> Result<Figure, FigureError> {
        let curves = self.runs.policies.curves(|policy| {
            let runs = self.runs.of(policy).iter();
            let mut fcts: Vec<f64> = runs.flat_map(|run| &run.incast_ms).copied().collect();
            fcts.sort_by(f64::total_cmp);
            distribution(&stats::half_percentiles(&fcts))
        });
        let (least, most) = extent_x(&curves).unwrap_or((1.0, 10.0));
        Plot {
            name: "fig8d",
            title: "FCT of in-cast flows on 96 ports",
            description:
                "Cumulative distribution of the FCT of all in-cast flows; further left is \
                          better. The steps are retransmission timeouts."
                    .to_owned(),
            curves: &curves,
            x: logarithmic(least * 0.9, most * 1.1),
            x_label: "FCT of an in-cast flow, ms (log scale)".to_owned(),
            x_tick: format::tick,
            y: 0.0..1.0,
            y_label: "share of in-cast flows",
            level: None,
        }
        .draw()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ndt::setting::tests::context;
    use crate::verdict::Grade;

    fn run(mean: f64, tail: f64, late: u64) -> IncastRun {
        IncastRun {
            mean_ms: 2.0 * mean,
            incast_mean_ms: mean,
            incast_p99_ms: tail,
            late: (late, 100),
            incast_ms: vec![mean; 4],
        }
    }

    #[test]
    fn tails_of_one_timeout_are_told_apart_by_late_flows() {
        let of = |tails: [f64; 2], late: [u64; 2]| {
            let runs = tails.into_iter().zip(late);
            let runs = runs.map(|(tail, late)| vec![run(1.0, tail, late)]);
            context(|context| Results {
                runs: Runs {
                    policies: context.policies(&["dt"]),
                    runs: runs.collect(),
                },
                floor_ms: 5.0,
                timeout_ms: 200.0,
            })
            .has_lowest_tail("ndt")
        };
        assert_eq!(of([210.0, 208.0], [5, 70]), Some(true));
        assert_eq!(of([208.0, 210.0], [70, 5]), Some(false));
        assert_eq!(of([410.0, 208.0], [5, 70]), Some(false));
        assert_eq!(of([7.0, 208.0], [0, 70]), Some(true));
    }

    fn results(ndt_mean: f64) -> Results {
        context(|context| Results {
            runs: Runs {
                policies: context.policies(&RULES),
                runs: [ndt_mean, 80.0, 70.0, 60.0, 50.0]
                    .map(|mean| vec![run(mean, 10.0 * mean, 7); 3])
                    .to_vec(),
            },
            floor_ms: 5.0,
            timeout_ms: 200.0,
        })
    }

    #[test]
    fn ndt_is_best_only_if_it_is_below_all_rules() {
        let grades = |mean: f64| {
            let claims = context(|context| results(mean).claims(context));
            claims.iter().map(Claim::grade).collect::<Vec<_>>()
        };
        assert_eq!(grades(20.0), [Grade::InRanking; 2]);
        assert_eq!(grades(55.0), [Grade::Differs; 2]);
    }

    #[test]
    fn the_table_has_regime_and_share_of_late_flows() {
        let table = context(|context| results(20.0).table(context));
        let ndt = &table.rows[0];
        let at = |column: &str| {
            let place = table.columns.iter().position(|c| *c == column).unwrap();
            ndt[place].clone()
        };
        assert_eq!(at("incast_mean_fct_ms"), "20");
        assert_eq!(at("incast_p99_fct_ms"), "200");
        assert_eq!(at("regime"), "1 RTO");
        assert_eq!(
            at("share_incast_beyond_min_rto_percent"),
            "7.000000000000001"
        );
        assert_eq!(at("addition"), "");
    }
}
