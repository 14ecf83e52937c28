//! Time between decisions against the time of one decision (§VI-D): Fig. 12(b).

use bufgym_env::control::TriggerMode;
use bufgym_eval::batch::{Quantity, Running};
use bufgym_eval::entrant::Recording;
use bufgym_eval::evaluate::{EvalError, NumberedTrace};
use bufgym_eval::explain::{Inference, Observations, Watched, watch};
use bufgym_eval::figures::plot::{Curve, Plot, distribution, extent_x, logarithmic};
use bufgym_eval::figures::style::{self, Stroke};
use bufgym_eval::figures::{Figure, FigureError};
use bufgym_eval::format;
use bufgym_eval::stats::{self, Estimate};
use bufgym_sim::network::SimError;
use bufgym_sim::scenario::Scenario;
use bufgym_util::rng;
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use super::NdtFigure;
use super::setting::{Context, Extent};
use super::variants::{self, LINUX, Variant};
use crate::claim::{Claim, Target};
use crate::report::{Panel, Report, Table, addition, cell};
use crate::runs::{PapersError, run_all};
use crate::verdict::ascending;

const PRESET: &str = "ndt-testbed-4x1g";

/// Line rate of the simulated environment next to the testbed.
const FAST_BPS: u64 = 100_000_000_000;

/// The paper's limit of the mean inference time, milliseconds.
const PAPER_INFERENCE_MS: f64 = 0.4;

/// Variants, because the paper gives neither the load nor the workload of its measurement.
const VARIANTS: [Variant; 3] = [
    Variant::new("a load of 10 %", &["load=0.1"]),
    Variant::new("data mining", &["workload=data_mining"]),
    LINUX,
];

/// Observations kept of each trace, for timing.
const KEPT: usize = 256;

/// Shortest time in the drawing, milliseconds.
const SHORTEST_MS: f64 = 1e-6;

/// Returns the number of simulations known in advance: two triggers at two rates.
pub fn planned(extent: &Extent, seeds: usize) -> usize {
    4 * bufgym_util::convert::index(extent.triggers) * seeds
}

/// The intervals of one trigger at one rate, of all traces.
#[derive(Clone, Debug, PartialEq)]
struct Series {
    trigger: TriggerMode,
    rate_bps: u64,
    /// Intervals in ascending order, milliseconds.
    intervals_ms: Vec<f64>,
}

impl Series {
    fn new(trigger: TriggerMode, rate_bps: u64, intervals_ps: &[u64]) -> Series {
        let mut intervals_ms: Vec<f64> = intervals_ps.iter().map(|ps| *ps as f64 * 1e-9).collect();
        intervals_ms.sort_by(f64::total_cmp);
        Series {
            trigger,
            rate_bps,
            intervals_ms,
        }
    }

    fn percentile(&self, q: f64) -> Option<f64> {
        stats::nearest_rank(&self.intervals_ms, q)
    }

    /// Returns the share of the intervals that are shorter than `limit_ms`, per cent.
    fn below(&self, limit_ms: f64) -> Option<f64> {
        let count = self.intervals_ms.len();
        let below = self.intervals_ms.partition_point(|ms| *ms < limit_ms);
        (count > 0).then(|| 100.0 * below as f64 / count as f64)
    }

    fn name(&self) -> String {
        let trigger = match self.trigger {
            TriggerMode::PerPacket => "per packet",
            _ => "cumulative event",
        };
        format!("{trigger}, {}", format::rate(self.rate_bps))
    }
}

/// All measurements.
struct Results {
    /// The testbed's cumulative events, its packets, then both at the other rate.
    series: [Series; 4],
    inference: Inference,
}

/// Makes the figure.
///
/// # Errors
/// Fails if a run fails or the figure cannot be drawn.
pub fn make(context: &Context, report: &mut Report) -> Result<(), PapersError> {
    let mut testbed = Scenario::preset(PRESET)?;
    testbed.set("workload=web_search")?;
    let fast = testbed.clone().with(|scenario| {
        scenario.network.rate_bps = FAST_BPS;
    });
    let Some((actor, _)) = context.learned.network() else {
        return Err(PapersError::NotANetwork(context.learned.name().to_owned()));
    };
    let (cumulative, observations) = cumulative(context, &testbed, KEPT)?;
    let (fast_cumulative, _) = self::cumulative(context, &fast, 0)?;
    let results = Results {
        series: [
            cumulative,
            per_packet(context, &testbed)?,
            fast_cumulative,
            per_packet(context, &fast)?,
        ],
        inference: Inference::measure(&mut actor.clone(), &observations, &[]),
    };
    let mut claims = results.claims();
    variants::explain(&mut claims, &VARIANTS, |variant| {
        let scenario = variant.of(&testbed)?;
        context.work.plan(traces(context, &scenario)?.len());
        let (cumulative, _) = self::cumulative(context, &scenario, 0)?;
        let [_, packets, fast, fast_packets] = results.series.clone();
        let again = Results {
            series: [cumulative, packets, fast, fast_packets],
            inference: results.inference.clone(),
        };
        Ok(again.claims())
    })?;
    report.claims.extend(claims);
    report.panels.push(Panel {
        id: NdtFigure::Triggers.id(),
        title: "time between decisions against inference time",
        method: format!(
            "{PRESET} with web search at loads from 10 to 90 %, {} unseen traces, with the trigger of the \
             paper and with one decision per packet event, at 1 and at 100 Gbps (rate alone changed). \
             Inference: one thread of this machine, {} ports, {} passes.",
            context.extent.triggers * context.seeds,
            results.inference.ports,
            format::count(results.inference.passes as u64),
        ),
        tables: vec![results.distribution_table(), results.table()],
        drawings: vec![results.drawing()?],
    });
    report.add_scenario(&testbed);
    Ok(())
}

fn traces(context: &Context, scenario: &Scenario) -> Result<Vec<NumberedTrace>, EvalError> {
    context.traces(scenario, context.extent.triggers)
}

/// Measures the intervals of the paper's trigger, and keeps some observations of every trace.
fn cumulative(
    context: &Context,
    scenario: &Scenario,
    kept: usize,
) -> Result<(Series, Observations), PapersError> {
    let learned = context.learned;
    let Some((actor, low_level)) = learned.network() else {
        return Err(PapersError::NotANetwork(learned.name().to_owned()));
    };
    let traces = traces(context, scenario)?;
    let watched: Result<Vec<Watched>, EvalError> = traces
        .par_iter()
        .map(|numbered| {
            let mut actor = actor.clone();
            let mut chance = rng::stream(context.seed, "figures observations", numbered.index);
            let low_level = low_level.clone();
            let run = watch(
                scenario,
                &numbered.trace,
                &mut actor,
                low_level,
                kept,
                &mut chance,
            );
            context.work.tick(learned.name(), numbered.index);
            run.map_err(EvalError::simulation(learned.name(), numbered))
        })
        .collect();
    let mut all = Watched::new(scenario);
    watched?.into_iter().for_each(|run| all.append(run));
    let series = Series::new(
        TriggerMode::CumulativeEvent,
        scenario.network.rate_bps,
        &all.intervals_ps,
    );
    Ok((series, all.observations))
}

/// Times between decisions of a run with one decision at every packet event, picoseconds.
#[derive(Serialize, Deserialize)]
pub(crate) struct PacketIntervals(Vec<u64>);

impl Quantity for PacketIntervals {
    const NAME: &'static str = "packet-intervals";

    fn measure(run: &Running<'_>) -> Result<Self, SimError> {
        let recording = Recording {
            trigger: TriggerMode::PerPacket,
            ..Recording::default()
        };
        let outcome = run
            .policy
            .watched(run.scenario, &run.trace.trace, recording)?;
        Ok(PacketIntervals(outcome.trigger_intervals_ps))
    }
}

/// Measures the intervals with a decision at every packet event.
fn per_packet(context: &Context, scenario: &Scenario) -> Result<Series, PapersError> {
    let traces = traces(context, scenario)?;
    let learned = std::slice::from_ref(context.learned);
    let runs = run_all::<PacketIntervals>(&context.work, scenario, learned, &traces)?;
    let intervals = runs.into_iter().flatten().map(|PacketIntervals(run)| run);
    let pooled: Vec<u64> = intervals.flatten().collect();
    Ok(Series::new(
        TriggerMode::PerPacket,
        scenario.network.rate_bps,
        &pooled,
    ))
}

/// Formats a time given in milliseconds, in a suitable unit.
fn time(ms: f64) -> String {
    let units = [(1e3, "s"), (1.0, "ms"), (1e-3, "µs")];
    let unit = units.into_iter().find(|(unit, _)| ms >= 0.999 * unit);
    let (unit, name) = unit.unwrap_or((1e-6, "ns"));
    format!("{} {name}", format::tick(ms / unit))
}

impl Results {
    fn inference_ms(&self) -> f64 {
        self.inference.mean_us / 1e3
    }

    fn claims(&self) -> Vec<Claim> {
        let [cumulative, per_packet, fast, fast_packets] = &self.series;
        let mut claims = vec![self.inference_claim()];
        claims.extend(self.testbed_claims(cumulative, per_packet));
        let panel = ("12", "b");
        let rate =
            "The rate alone is changed to 100 Gbps; the paper does not describe that setting.";
        claims.push(
            Claim::number(
                panel,
                "ndt, 100 Gbps",
                "median time between decisions, ms",
                "At 100 Gbps NDT’s intervals are micro- to milliseconds (0.001 to 10 ms, as we read it).",
                Target::Between(0.001, 10.0),
            )
            .measured(fast.percentile(0.5).map(Estimate::exact))
            .remarked(rate),
        );
        claims.push(
            Claim::number(
                panel,
                "per packet, 100 Gbps",
                "median time between decisions, ms",
                "At 100 Gbps the per-packet trigger fires at the scale of nanoseconds or less (below 1 \
                 µs, as we read it).",
                Target::AtMost(0.001),
            )
            .measured(fast_packets.percentile(0.5).map(Estimate::exact))
            .remarked(rate),
        );
        claims
    }

    fn inference_claim(&self) -> Claim {
        Claim::number(
            ("12", "b"),
            "inference",
            "mean time of a decision, ms",
            "The average inference delay is less than 0.4 ms on the CPU of the emulated switch.",
            Target::AtMost(PAPER_INFERENCE_MS),
        )
        .measured(Some(Estimate::exact(self.inference_ms())))
        .remarked(format!(
            "Measured in this run, on this machine; the network is plain Rust on one thread, median {} \
             µs, 99th percentile {} µs.",
            format::significant(self.inference.median_us),
            format::significant(self.inference.p99_us),
        ))
    }

    fn testbed_claims(&self, cumulative: &Series, per_packet: &Series) -> Vec<Claim> {
        let (panel, limit) = (("12", "b"), self.inference_ms());
        let words = |series: &Series| {
            let percentiles = [0.05, 0.5, 0.95].map(|q| format::optional(series.percentile(q)));
            format!(
                "5th, 50th, 95th percentile: {} ms. Shorter than the paper’s 0.4 ms: {} %.",
                percentiles.join(", "),
                format::optional(series.below(PAPER_INFERENCE_MS)),
            )
        };
        let shorter =
            |series: &Series, limit: f64| ascending(&[series.percentile(0.95), Some(limit)]);
        let packets = Claim::order(
            panel,
            "per packet",
            "95th percentile of the time between decisions against inference time, ms",
            "Inference takes longer than the intervals of the per-packet trigger.",
            "per packet < inference",
        )
        .measured(per_packet.percentile(0.95).map(Estimate::exact))
        .ranked(shorter(per_packet, limit))
        .remarked(format!(
            "{} Shorter than inference on this machine ({} ms): {} %.",
            words(per_packet),
            format::significant(limit),
            format::optional(per_packet.below(limit)),
        ));
        let closes = shorter(per_packet, PAPER_INFERENCE_MS) == Some(true);
        vec![
            Claim::number(
                panel,
                "ndt",
                "median time between decisions, ms",
                "The interval between NDT’s triggers is typically several to tens of milliseconds (2 to \
                 100 ms, as we read it).",
                Target::Between(2.0, 100.0),
            )
            .measured(cumulative.percentile(0.5).map(Estimate::exact))
            .remarked(words(cumulative)),
            Claim::number(
                panel,
                "ndt",
                "intervals shorter than inference, %",
                "In all cases the inference time is shorter than the trigger interval of NDT.",
                Target::AtMost(0.0),
            )
            .measured(cumulative.below(limit).map(Estimate::exact))
            .remarked(words(cumulative)),
            Claim {
                reason: closes.then(|| {
                    "with the paper’s inference time of 0.4 ms it agrees in ranking".to_owned()
                }),
                ..packets
            },
        ]
    }

    /// Returns the points of the drawing.
    fn distribution_table(&self) -> Table {
        let rows = self.series.iter().flat_map(|series| {
            let percentiles = stats::half_percentiles(&series.intervals_ms);
            let points = distribution(&percentiles).into_iter();
            points.map(move |(ms, share)| (series, ms, share))
        });
        Table::of("fig12b", rows)
            .text("series", |row| row.0.name())
            .text("trigger", |row| row.0.trigger.name().to_owned())
            .text("rate_bps", |row| row.0.rate_bps.to_string())
            .number("share", |row| Some(row.2))
            .number("interval_ms", |row| Some(row.1))
            .table()
    }

    fn table(&self) -> Table {
        let of = |q: f64| move |series: &&Series| series.percentile(q);
        let summary = Table::of("fig12b-summary", &self.series)
            .text("series", |series| series.name())
            .text("addition", |_| addition(false))
            .text("count", |series| series.intervals_ms.len().to_string())
            .number("p5_ms", of(0.05))
            .number("p50_ms", of(0.5))
            .number("p95_ms", of(0.95))
            .number("below_inference_percent", |series| {
                series.below(self.inference_ms())
            })
            .number("below_0.4_ms_percent", |series| {
                series.below(PAPER_INFERENCE_MS)
            });
        let mut table = summary.table();
        let inference = [self.inference.median_us, self.inference.p99_us].map(|us| us / 1e3);
        table.push(vec![
            "inference, median and p99".to_owned(),
            addition(false),
            self.inference.passes.to_string(),
            String::new(),
            cell(Some(inference[0])),
            cell(Some(inference[1])),
            String::new(),
            String::new(),
        ]);
        table
    }

    fn drawing(&self) -> Result<Figure, FigureError> {
        let curves = self.series.iter().enumerate().map(|(place, series)| {
            let points = distribution(&stats::half_percentiles(&series.intervals_ms));
            let points = points.into_iter().map(|(ms, y)| (ms.max(SHORTEST_MS), y));
            let stroke = Stroke {
                dash: (series.rate_bps == FAST_BPS).then_some((6, 4)),
                ..style::series(1 + place % 2)
            };
            Curve::new(&series.name(), stroke, points)
        });
        let mut curves: Vec<Curve> = curves.filter(|curve| !curve.points.is_empty()).collect();
        let upright = |ms: f64| [(ms, 0.0), (ms, 1.0)];
        curves.push(Curve::new(
            "inference",
            Stroke {
                width: 3,
                ..style::series(0)
            },
            upright(self.inference_ms()),
        ));
        let (least, most) = extent_x(&curves).unwrap_or((0.001, 1.0));
        Plot {
            name: "fig12b",
            title: "Time between decisions, and inference time",
            description: "Cumulative distribution of the time between two decisions: with the paper’s \
                          trigger and with one decision per packet event, on the testbed and at 100 Gbps \
                          (dashed); intervals below 1 ns, of events at different ports, are at 1 ns. \
                          Upright: the mean time of one decision on this machine."
                .to_owned(),
            curves: &curves,
            x: logarithmic(least * 0.9, most * 1.1),
            x_label: "time between decisions (log scale)".to_owned(),
            x_tick: time,
            y: 0.0..1.0,
            y_label: "share of decisions",
            level: None,
        }
        .draw()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::Grade;

    const MS: u64 = 1_000_000_000;

    fn series(rate_bps: u64, trigger: TriggerMode, ps: [u64; 4]) -> Series {
        Series::new(trigger, rate_bps, &ps)
    }

    fn results(ndt: [u64; 4], packets: [u64; 4], mean_us: f64) -> Results {
        let (event, packet) = (TriggerMode::CumulativeEvent, TriggerMode::PerPacket);
        Results {
            series: [
                series(1_000_000_000, event, ndt),
                series(1_000_000_000, packet, packets),
                series(FAST_BPS, event, ndt.map(|ps| ps / 100)),
                series(FAST_BPS, packet, packets.map(|ps| ps / 100)),
            ],
            inference: Inference {
                ports: 4,
                passes: 10,
                mean_us,
                median_us: mean_us,
                p99_us: mean_us,
                shorter_intervals: Vec::new(),
            },
        }
    }

    fn grades(results: &Results) -> Vec<Grade> {
        results.claims().iter().map(Claim::grade).collect()
    }

    #[test]
    fn percentiles_and_shares_of_intervals() {
        let series = series(1, TriggerMode::PerPacket, [4 * MS, MS, 2 * MS, 3 * MS]);
        assert_eq!(series.percentile(0.5), Some(2.0));
        assert_eq!(series.below(2.0), Some(25.0));
        assert_eq!(series.below(9.0), Some(100.0));
        let empty = Series::new(TriggerMode::PerPacket, 1, &[]);
        assert_eq!((empty.below(1.0), empty.percentile(0.5)), (None, None));
    }

    #[test]
    fn times_have_the_unit_that_suits_them() {
        let cases = [
            (1e-6, "1 ns"),
            (2e-3, "2 µs"),
            (0.1, "100 µs"),
            (1.0, "1 ms"),
            (5_000.0, "5 s"),
        ];
        for (ms, text) in cases {
            assert_eq!(time(ms), text);
        }
    }

    #[test]
    fn intervals_like_the_paper_s_agree() {
        let like = results(
            [3 * MS, 5 * MS, 20 * MS, 40 * MS],
            [0, 1_000, 12_000, 90_000],
            300.0,
        );
        let mut expected = [Grade::Agrees; 6];
        expected[3] = Grade::InRanking;
        assert_eq!(grades(&like), expected);
    }

    #[test]
    fn a_fast_machine_is_the_reason_where_packets_are_slower_than_it() {
        let packets = [10_000_000, 12_000_000, 20_000_000, 90_000_000];
        let fast = results([MS / 2000, 5 * MS, 20 * MS, 40 * MS], packets, 5.0);
        let claims = fast.claims();
        let verdicts: Vec<String> = claims.iter().map(|c| c.verdict().to_string()).collect();
        assert_eq!(
            verdicts[3],
            "differs: with the paper’s inference time of 0.4 ms it agrees in ranking"
        );
        // One interval of 0.5 us is shorter than 5 us.
        assert_eq!(verdicts[2], "differs: unexplained");
        assert_eq!(fast.table().rows.len(), 5);
        assert_eq!(fast.distribution_table().rows.len(), 4 * 201);
    }
}
