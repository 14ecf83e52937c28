//! The 4-to-2 in-cast (§VI-D): queues and thresholds of two ports over time, Fig. 10.

mod states;

use bufgym_eval::batch::{Quantity, Running};
use bufgym_eval::data::{Timeline, TimelineSeries};
use bufgym_eval::entrant::{Entrant, Recording};
use bufgym_eval::evaluate::NumberedTrace;
use bufgym_eval::figures::timeline::{KEY, Row, panels};
use bufgym_eval::figures::{Figure, FigureError};
use bufgym_eval::format;
use bufgym_eval::stats::{self, Estimate};
use bufgym_sim::network::{Outcome, SimError};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::traffic::Trace;
use bufgym_sim::units::{Duration, Instant};
use serde::{Deserialize, Serialize};

use super::NdtFigure;
use super::experiment::{Experiment, Runs};
use super::setting::{Context, Extent, Policies, is_lowest, listed, percent, stroke};
use super::variants::{NS3, Variant};
use crate::claim::{Claim, Kind, Target};
use crate::report::{Panel, Report, Table, cell};
use crate::runs::PapersError;
use crate::verdict::ascending;

use states::{Alphas, Bars, States};

pub(crate) const PRESET: &str = "ndt-4to2-incast";

/// The paper's policies.
const RULES: [&str; 2] = ["cs", "dt"];

/// Interval of the samples.
const SAMPLING: Duration = Duration::from_us(100);
/// Width of the paper's bars.
const BAR: Duration = Duration::from_us(100_000);
/// Width of the bars of the enlarged excerpt.
const FINE: Duration = Duration::from_us(2_000);
/// Largest number of bars.
const BARS: usize = 60;
/// Time that the excerpt shows before its first burst.
const LEAD: Duration = Duration::from_us(30_000);

/// Variants, because the paper gives only the pattern: sizes and distances of the bursts are assumed.
pub const VARIANTS: [Variant; 3] = [
    Variant::new("bursts as large as one buffer", &["response_bytes=64000"]),
    Variant::new("bursts every 100 ms", &["query_gap_us=100000"]),
    NS3,
];

/// Returns the extent of the experiment.
pub fn experiment(extent: &Extent) -> Experiment {
    Experiment {
        rules: &RULES,
        traces: extent.queues,
        few: extent.queues,
        training: extent.training,
        variants: &VARIANTS,
    }
}

/// One run.
#[derive(Serialize, Deserialize)]
pub(crate) struct QueuesRun {
    /// Share of time in which one port has less than 5 % of the buffer and the other more than 80 %.
    starved: f64,
    /// Sum of the unused shares of the buffer at drops, and number of drops.
    unused: (f64, f64),
    /// α around the bursts; `None` for policies without α.
    alphas: Option<Alphas>,
    /// Bars of both ports, of the first trace only.
    bars: Option<[Bars; 2]>,
    /// Bars of both ports around the bursts that overlap most.
    fine: Option<[Bars; 2]>,
}

/// One of the means of α.
type Part = fn(&Alphas) -> &Vec<f64>;

/// The runs of all policies.
struct Results {
    runs: Runs<QueuesRun>,
    /// The two ports of the first trace.
    ports: [u32; 2],
    buffer_bytes: u64,
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
        id: NdtFigure::Queues.id(),
        title: "queues and thresholds of two ports in a 4-to-2 in-cast",
        method: format!(
            "{PRESET}, {} unseen traces for the numbers, the first of them in the drawings: bars of 0.1 \
             s as in the paper, then an excerpt around two overlapping bursts in bars of 2 ms. Sizes and \
             distances of the bursts are ours: the paper gives only the pattern.",
            results.runs.traces(),
        ),
        tables: vec![results.bars_table(), results.table(context)],
        drawings: results.drawings()?,
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
    Ok(Results {
        runs: Runs::measure(context, scenario, policies, traces)?,
        ports: traces.first().map_or([0, 1], |t| ports_of(&t.trace)),
        buffer_bytes: scenario.network.buffer_bytes,
    })
}

/// Returns the two ports of a trace that receive bursts, A and B, in ascending order.
fn ports_of(trace: &Trace) -> [u32; 2] {
    let bursts = trace.flows.iter().filter(|flow| flow.query >= 0);
    let mut ports: Vec<u32> = bursts.map(|flow| flow.dst).collect();
    ports.sort_unstable();
    ports.dedup();
    match ports.as_slice() {
        [a, b, ..] => [*a, *b],
        [only] => [*only, *only],
        [] => [0, 1],
    }
}

/// Returns the starts of the bursts to each port.
fn bursts_of(trace: &Trace, ports: [u32; 2]) -> [Vec<Instant>; 2] {
    ports.map(|port| {
        let own = trace.flows.iter().filter(|f| f.query >= 0 && f.dst == port);
        let mut starts: Vec<Instant> = own.map(|flow| flow.start).collect();
        starts.sort_unstable();
        starts.dedup();
        starts
    })
}

/// Returns the start of the excerpt: before the two bursts to different ports that start nearest to each
/// other.
fn excerpt_start(bursts: &[Vec<Instant>; 2]) -> Instant {
    let pairs = bursts[0]
        .iter()
        .flat_map(|a| bursts[1].iter().map(move |b| (*a, *b)));
    let nearest = pairs.min_by_key(|(a, b)| (a.0.abs_diff(b.0), a.0.min(b.0)));
    let first = nearest.map_or(Instant::ZERO, |(a, b)| a.min(b));
    first.saturating_sub(LEAD)
}

impl Quantity for QueuesRun {
    const NAME: &'static str = "ndt-queues";

    fn measure(run: &Running<'_>) -> Result<Self, SimError> {
        let recording = Recording {
            timeline: Some(SAMPLING),
            drops: true,
            ..Recording::default()
        };
        let (scenario, policy) = (run.scenario, run.policy);
        let outcome = policy.watched(scenario, &run.trace.trace, recording)?;
        Ok(QueuesRun::of(scenario, policy, run.trace, &outcome))
    }
}

impl QueuesRun {
    fn of(
        scenario: &Scenario,
        policy: &Entrant,
        numbered: &NumberedTrace,
        outcome: &Outcome,
    ) -> QueuesRun {
        let capacity = scenario.network.buffer_bytes;
        let ports = ports_of(&numbered.trace);
        let end = Instant::from_secs_f64(outcome.summary.simulated_s);
        let states = States::of(&outcome.timeline, ports, end);
        let bursts = bursts_of(&numbered.trace, ports);
        let free = |occupancy: u64| 1.0 - occupancy as f64 / capacity as f64;
        let drops = outcome.drops.iter();
        let unused: f64 = drops.map(|drop| free(drop.occupancy_bytes)).sum();
        let first = numbered.index == 0;
        let bars = |start: Instant, width: Duration| first.then(|| states.bars(start, width, BARS));
        QueuesRun {
            starved: states.starved(capacity),
            unused: (unused, outcome.drops.len() as f64),
            alphas: (policy.network().is_some()).then(|| states.alphas(&bursts)),
            bars: bars(Instant::ZERO, BAR),
            fine: bars(excerpt_start(&bursts), FINE),
        }
    }
}

impl Results {
    /// Returns the share of time in which a port starves, per cent.
    fn starved(&self, context: &Context, policy: &str) -> Option<Estimate> {
        let shares = self.runs.values(policy, |run| run.starved);
        context.mean(&shares).map(percent)
    }

    /// Returns the unused buffer at drops, per cent, over the drops of all traces.
    fn unused(&self, context: &Context, policy: &str) -> Option<Estimate> {
        let sums = self.runs.values(policy, |run| run.unused.0);
        let drops = self.runs.values(policy, |run| run.unused.1);
        context.ratio(&sums, &drops).map(percent)
    }

    /// Returns the geometric mean over bursts of a time-weighted geometric mean of α.
    fn alpha(&self, policy: &str, part: Part) -> Option<f64> {
        let runs = self.runs.of(policy).iter();
        let logs = runs.filter_map(|run| run.alphas.as_ref()).flat_map(part);
        stats::finite_mean(logs.copied()).map(f64::exp2)
    }

    fn claims(&self, context: &Context) -> Vec<Claim> {
        let mut claims = self.rules_claims(context);
        claims.extend(self.learned_claims());
        claims
    }

    fn rules_claims(&self, context: &Context) -> Vec<Claim> {
        let panel = ("10", "");
        let ndt = self.runs.policies.learned();
        let mean = |value: Option<Estimate>| value.map(|value| value.centre);
        let starved = [ndt, "cs", "dt"].map(|p| (p, mean(self.starved(context, p))));
        let unused = [ndt, "cs", "dt"].map(|p| (p, mean(self.unused(context, p))));
        let negated = starved.map(|(p, share)| (p, share.map(|share| -share)));
        let setting = "The setting is ours.";
        vec![
            Claim::order(
                panel,
                "cs",
                "time with one port below 5 % and the other above 80 % of the buffer, %",
                "Under CS one port holds most of the buffer and the other starves.",
                "cs highest",
            )
            .measured(self.starved(context, "cs"))
            .ranked(is_lowest("cs", &negated))
            .remarked(format!("Found, %: {}. {setting}", listed(&starved))),
            Claim {
                kind: Kind::Derived,
                ..Claim::number(
                    panel,
                    "dt",
                    "unused buffer at drops, %",
                    "DT cannot use the buffer fully: two saturated ports at a third of it each leave \
                     one third.",
                    Target::Value(33.3),
                )
            }
            .measured(self.unused(context, "dt"))
            .ranked(ascending(&[unused[1].1, unused[2].1]))
            .remarked(format!(
                "With one saturated port half of it stays unused. Found, %: {}. {setting}",
                listed(&unused)
            )),
        ]
    }

    fn learned_claims(&self) -> Vec<Claim> {
        let panel = ("10", "");
        let ndt = self.runs.policies.learned();
        let parts: [(&str, Part); 4] = [
            ("heavier port before", |alphas| &alphas.heavier_before),
            ("after", |alphas| &alphas.heavier_after),
            ("lighter port before", |alphas| &alphas.lighter_before),
            ("after", |alphas| &alphas.lighter_after),
        ];
        let found = parts.map(|(name, part)| (name, self.alpha(ndt, part)));
        let words: Vec<String> = found
            .iter()
            .map(|(name, alpha)| format!("{name} {}", format::optional(*alpha)))
            .collect();
        let remark = format!(
            "Geometric mean of α in the 50 ms before and after the peak of a burst’s queue: {}. The \
             setting is ours.",
            words.join(", ")
        );
        let [before, after, _, light] = found.map(|(_, alpha)| alpha);
        vec![
            Claim::order(
                panel,
                ndt,
                "α of the heavier port after a burst’s peak",
                "NDT relaxes the threshold at a burst, then lowers α and drains the heavy port.",
                "after < before",
            )
            .measured(after.map(Estimate::exact))
            .ranked(ascending(&[after, before]))
            .remarked(remark.clone()),
            Claim::order(
                panel,
                ndt,
                "α of the lighter port after a burst’s peak",
                "NDT puts almost no constraint on light ports.",
                "heavier < lighter",
            )
            .measured(light.map(Estimate::exact))
            .ranked(ascending(&[after, light]))
            .remarked(remark),
        ]
    }

    /// Returns the bars of the drawings, of all policies.
    fn bars_table(&self) -> Table {
        let columns = [
            "policy",
            "addition",
            "port",
            "bar_ms",
            "t_ms",
            "max_queue_bytes",
            "min_threshold_bytes",
            "mean_queue_bytes",
        ];
        let mut table = Table::new("fig10", &columns);
        let policies = &self.runs.policies;
        for (policy, runs) in policies.iter().zip(&self.runs.runs) {
            let first = runs.iter().flat_map(|run| [&run.bars, &run.fine]).flatten();
            for bars in first {
                for (name, bars) in ["A", "B"].into_iter().zip(bars) {
                    for (place, bar) in bars.bars.iter().enumerate() {
                        let t = bars.start.as_ms_f64() + place as f64 * bars.width.as_ms_f64();
                        table.push(vec![
                            policy.name().to_owned(),
                            policies.addition(policy),
                            name.to_owned(),
                            cell(Some(bars.width.as_ms_f64())),
                            cell(Some(t)),
                            bar.longest.to_string(),
                            bar.threshold.to_string(),
                            cell(Some(bar.mean)),
                        ]);
                    }
                }
            }
        }
        table
    }

    fn table(&self, context: &Context) -> Table {
        let alpha = |policy: &Entrant, part: Part| self.alpha(policy.name(), part);
        let starved = ["starved_time_percent", "starved_lo", "starved_hi"];
        let unused = ["unused_at_drops_percent", "unused_lo", "unused_hi"];
        let table = self.runs.policies.table("fig10-summary");
        table
            .interval(starved, |p| self.starved(context, p.name()))
            .interval(unused, |p| self.unused(context, p.name()))
            .number("drops", |p| {
                Some(self.runs.values(p.name(), |run| run.unused.1).iter().sum())
            })
            .number("alpha_heavier_before", |p| alpha(p, |a| &a.heavier_before))
            .number("alpha_heavier_after", |p| alpha(p, |a| &a.heavier_after))
            .number("alpha_lighter_before", |p| alpha(p, |a| &a.lighter_before))
            .number("alpha_lighter_after", |p| alpha(p, |a| &a.lighter_after))
            .table()
    }

    fn drawings(&self) -> Result<Vec<Figure>, FigureError> {
        let bars: fn(&QueuesRun) -> Option<&[Bars; 2]> = |run| run.bars.as_ref();
        let fine: fn(&QueuesRun) -> Option<&[Bars; 2]> = |run| run.fine.as_ref();
        let parts = [
            ("fig10", "Queues and thresholds, bars of 0.1 s", bars),
            (
                "fig10-excerpt",
                "Two overlapping bursts, bars of 2 ms (added)",
                fine,
            ),
        ];
        let drawings = parts.map(|(name, title, part)| self.drawing(name, title, part));
        drawings.into_iter().collect()
    }

    /// Draws panels of the paper's policies, port A above port B.
    fn drawing(
        &self,
        name: &str,
        title: &str,
        part: fn(&QueuesRun) -> Option<&[Bars; 2]>,
    ) -> Result<Figure, FigureError> {
        let shown = ["cs", "dt", self.runs.policies.learned()];
        let mut timeline = Timeline {
            trace: 0,
            start_ms: 0.0,
            bin_ms: 1.0,
            buffer_bytes: self.buffer_bytes,
            series: Vec::new(),
        };
        for policy in shown {
            let Some(bars) = self.runs.of(policy).first().and_then(part) else {
                continue;
            };
            timeline.start_ms = bars[0].start.as_ms_f64();
            timeline.bin_ms = bars[0].width.as_ms_f64();
            let pairs = self.ports.into_iter().zip(bars);
            timeline
                .series
                .extend(pairs.map(|(port, bars)| series_of(policy, port, bars)));
        }
        // Runs end at different times, but the panels share one axis.
        let bins = timeline.series.iter().map(|s| s.max_queue_bytes.len());
        let bins = bins.max().unwrap_or(0);
        for series in &mut timeline.series {
            series.max_queue_bytes.resize(bins, 0);
            series.mean_queue_bytes.resize(bins, 0.0);
            series.min_threshold_bytes.resize(bins, u64::MAX);
        }
        let rows: Vec<Row> = timeline
            .series
            .iter()
            .enumerate()
            .filter_map(|(place, series)| {
                let policy = self
                    .runs
                    .policies
                    .iter()
                    .find(|p| p.name() == series.policy)?;
                let port = ["A", "B"][place % 2];
                Some(Row {
                    label: format!("{}, port {port}", series.policy),
                    stroke: stroke(policy),
                    series,
                })
            })
            .collect();
        let description = format!("Queues of ports A and B under three policies. {KEY}");
        panels(name, title, description, &timeline, &rows)
    }
}

fn series_of(policy: &str, port: u32, bars: &Bars) -> TimelineSeries {
    TimelineSeries {
        policy: policy.to_owned(),
        port,
        max_queue_bytes: bars.bars.iter().map(|bar| bar.longest).collect(),
        mean_queue_bytes: bars.bars.iter().map(|bar| bar.mean).collect(),
        min_threshold_bytes: bars.bars.iter().map(|bar| bar.threshold).collect(),
    }
}

#[cfg(test)]
mod tests;
