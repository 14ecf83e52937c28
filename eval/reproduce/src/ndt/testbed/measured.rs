//! Fig. 9 measured: real senders play the flows through a real switch, run by run, and the simulator predicts
//! the results for the same flow lists.

mod report;

use std::time::{Duration, Instant};

use bufgym_eval::batch::{Quantity, Running};
use bufgym_eval::entrant::Entrant;
use bufgym_eval::evaluate::{EvalError, NumberedTrace, OnProgress};
use bufgym_eval::result_cache::ResultCache;
use bufgym_eval::testbed::{Worst, simulated_propagation_ns};
use bufgym_sim::network::SimError;
use bufgym_sim::scenario::Scenario;
use bufgym_sim::traffic::Trace;
use serde::{Deserialize, Serialize};

use super::super::setting::{Context, Extent, LOADS, Policies};
use super::super::{NdtConfig, NdtFigure};
use super::played::Played;
use super::{Point, RULES, Results, at_load, stretched};
use crate::runs::{PapersError, Work, mean_fct, run_all};
use crate::{Report, Scale};

pub use super::stretched::SWEPT;

/// The panels that can be measured.
const PANELS: [NdtFigure; 2] = [NdtFigure::WebSearch, NdtFigure::DataMining];

const MEASURED: &str = "The paper measures on hardware with hosts of its own; this is the TCP of the \
    Linux kernel through a software switch.";

/// Seconds that a run takes besides its flows: hosts start, the round trip is measured, and traffic fades.
const RUN_S: f64 = 1.5;

/// Configuration of a measurement.
#[derive(Clone, Debug)]
pub struct MeasuredConfig {
    /// Policy, scale, traces, seeds; the figures are panels (a) and (b) of Fig. 9.
    pub figures: NdtConfig,
    /// `KEY=VALUE`, applied to the scenario of both panels.
    pub settings: Vec<String>,
    /// Distinguishes the learned policy from others of the same name, in stored results.
    pub learned: String,
    /// The machine in words, such as its kernel. Stored results belong to one machine.
    pub machine: String,
    /// Revision of the program, which stored results must match.
    pub revision: String,
}

/// Returns the number of traces of a point, and of flows of a trace with web search and with data mining.
fn extent(config: &NdtConfig) -> (u64, [u64; 2]) {
    let (traces, flows) = match config.scale {
        Scale::Quick => (2, [60, 12]),
        Scale::Paper => (50, [100, 100]),
    };
    (config.traces.unwrap_or(traces), flows)
}

/// One run to play.
#[derive(Clone, Copy, Debug)]
pub struct Order<'a> {
    /// Rate, buffer and hosts.
    pub scenario: &'a Scenario,
    /// The flows.
    pub trace: &'a Trace,
    /// The policy of the switch.
    pub policy: &'a Entrant,
    /// Simulated duration of the flows under Dynamic Threshold.
    pub expected: Duration,
}

/// A load with its flow lists.
#[derive(Debug)]
struct Load {
    percent: u32,
    scenario: Scenario,
    /// Traces, each with its simulated duration.
    traces: Vec<(NumberedTrace, Duration)>,
}

/// A panel with its loads.
#[derive(Debug)]
struct Planned {
    figure: NdtFigure,
    scenario: Scenario,
    loads: Vec<Load>,
}

/// All runs of the figure.
#[derive(Debug)]
pub struct MeasuredPlan {
    config: MeasuredConfig,
    policies: Policies,
    panels: Vec<Planned>,
}

/// The measured figure.
#[derive(Clone, Debug)]
pub struct Made {
    /// Tables, drawings, verdicts.
    pub report: Report,
    /// Worst measurement quality of the runs.
    pub worst: Worst,
    /// Propagation of a link with which the simulator has the measured round trip, nanoseconds; by panel.
    pub simulated_propagation_ns: Vec<u64>,
}

/// The simulator's prediction of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Predicted {
    mean_fct_ms: f64,
    drops: u64,
    timeouts: u64,
    lasts: Duration,
}

impl Quantity for Predicted {
    const NAME: &'static str = "ndt-testbed";

    fn measure(run: &Running<'_>) -> Result<Self, SimError> {
        let outcome = run.policy.run(run.scenario, &run.trace.trace, None)?;
        let summary = &outcome.summary;
        Ok(Predicted {
            mean_fct_ms: mean_fct(&outcome),
            drops: summary.drops,
            timeouts: summary.timeouts,
            lasts: Duration::from_secs_f64(summary.simulated_s.max(0.0)),
        })
    }
}

/// A panel that was played and simulated: by load, policy and trace.
struct Panel<'a> {
    planned: &'a Planned,
    played: Vec<Vec<Vec<Played>>>,
    predicted: Vec<Vec<Vec<Predicted>>>,
    propagation_ns: u64,
}

impl MeasuredPlan {
    /// Generates all flow lists, and simulates each under Dynamic Threshold to determine its duration.
    ///
    /// # Errors
    /// Fails if a setting or the resulting scenario is invalid.
    pub fn new(config: MeasuredConfig) -> Result<MeasuredPlan, PapersError> {
        let rules = RULES.map(|name| name.parse::<Entrant>());
        let mut policies = vec![config.figures.learned.clone()];
        policies.extend(rules.into_iter().collect::<Result<Vec<_>, _>>()?);
        let wanted = PANELS
            .into_iter()
            .filter(|panel| config.figures.wants(*panel));
        let panels = wanted.map(|panel| Planned::new(panel, &config));
        Ok(MeasuredPlan {
            panels: panels.collect::<Result<_, _>>()?,
            policies: Policies::new(policies, &RULES),
            config,
        })
    }

    /// Returns all flow lists with their scenarios, which every policy plays.
    pub fn lists(&self) -> impl Iterator<Item = (&Scenario, &Trace)> {
        let loads = self.panels.iter().flat_map(|panel| &panel.loads);
        loads.flat_map(|load| {
            let traces = load.traces.iter();
            traces.map(|(numbered, _)| (&load.scenario, &numbered.trace))
        })
    }

    /// Returns the number of runs.
    pub fn runs(&self) -> usize {
        let loads = self.panels.iter().flat_map(|panel| &panel.loads);
        let traces: usize = loads.map(|load| load.traces.len()).sum();
        traces * self.policies.len()
    }

    /// Returns the simulated duration of all runs together.
    pub fn expected(&self) -> Duration {
        let loads = self.panels.iter().flat_map(|panel| &panel.loads);
        let traces = loads.flat_map(|load| &load.traces);
        let flows: Duration = traces.map(|(_, expected)| *expected).sum();
        let policies = self.policies.len() as f64;
        Duration::from_secs_f64(flows.as_secs_f64() * policies + RUN_S * self.runs() as f64)
    }

    /// Plays all runs, one after the other, and makes the figure. Finished runs are stored in `parts`, and
    /// stored ones are not played again.
    ///
    /// # Errors
    /// Returns the errors of `play`. Fails if a result cannot be stored, a simulation fails or a figure
    /// cannot be drawn.
    pub fn make<E: From<PapersError>>(
        &self,
        parts: &ResultCache,
        mut play: impl FnMut(&Order<'_>) -> Result<Played, E>,
        progress: OnProgress,
    ) -> Result<Made, E> {
        let began = Instant::now();
        let work = Work::new(progress);
        work.plan(self.runs());
        let played = self
            .panels
            .iter()
            .map(|panel| self.play_panel(panel, parts, &work, &mut play))
            .collect::<Result<Vec<_>, E>>()?;
        let context = self.context();
        let panels = self.panels.iter().zip(played);
        let panels = panels
            .map(|(planned, played)| self.predict(&context, planned, played))
            .collect::<Result<Vec<_>, EvalError>>()
            .map_err(PapersError::from)?;
        let report = report::report(self, &context, &panels, began)?;
        let runs = panels.iter().flat_map(Panel::runs);
        Ok(Made {
            report,
            worst: Worst::of(runs.map(|run| &run.truth)),
            simulated_propagation_ns: panels.iter().map(|panel| panel.propagation_ns).collect(),
        })
    }

    /// Returns a context without progress: simulations are too short to show it.
    fn context(&self) -> Context<'_> {
        let figures = &self.config.figures;
        Context {
            learned: &figures.learned,
            extent: Extent::of(figures.scale, figures.traces),
            seed: figures.seed,
            seeds: figures.seeds,
            resamples: figures.resamples,
            work: Work::new(&|_| {}),
        }
    }

    /// Plays the runs of a panel; returns them by load, policy and trace. Every policy has each place in the
    /// order equally often, so that disturbances of the machine affect all of them equally.
    fn play_panel<E: From<PapersError>>(
        &self,
        panel: &Planned,
        parts: &ResultCache,
        work: &Work<'_>,
        play: &mut impl FnMut(&Order<'_>) -> Result<Played, E>,
    ) -> Result<Vec<Vec<Vec<Played>>>, E> {
        let policies = self.policies.len();
        let mut by_load = Vec::new();
        for (place, load) in panel.loads.iter().enumerate() {
            let mut played: Vec<Vec<Played>> = vec![Vec::new(); policies];
            for (number, (numbered, expected)) in load.traces.iter().enumerate() {
                for turn in 0..policies {
                    let policy = (place + number + turn) % policies;
                    let order = Order {
                        scenario: &load.scenario,
                        trace: &numbered.trace,
                        policy: &self.policies[policy],
                        expected: *expected,
                    };
                    played[policy].push(self.kept_or_played(&order, parts, play)?);
                    work.tick(order.policy.name(), numbered.index);
                }
            }
            by_load.push(played);
        }
        Ok(by_load)
    }

    fn kept_or_played<E: From<PapersError>>(
        &self,
        order: &Order<'_>,
        parts: &ResultCache,
        play: &mut impl FnMut(&Order<'_>) -> Result<Played, E>,
    ) -> Result<Played, E> {
        let MeasuredConfig {
            learned,
            machine,
            revision,
            ..
        } = &self.config;
        let weights = match order.policy.spec() {
            Some(_) => "",
            None => learned,
        };
        let (policy, seed) = (order.policy.name(), order.trace.seed);
        let scenario = order.scenario.to_toml();
        let of = format!("testbed\n{scenario}\n{policy} {weights}\n{seed}\n{machine}");
        let fingerprint = ResultCache::fingerprint(&of, revision);
        if let Some(kept) = parts.load(&fingerprint) {
            return Ok(kept);
        }
        let played = play(order)?;
        let kept = parts.keep(&fingerprint, &played);
        kept.map_err(|source| PapersError::Keep {
            folder: parts.folder().to_owned(),
            source,
        })?;
        Ok(played)
    }

    /// Simulates all runs of a panel with the measured round trip.
    fn predict<'a>(
        &self,
        context: &Context<'_>,
        planned: &'a Planned,
        played: Vec<Vec<Vec<Played>>>,
    ) -> Result<Panel<'a>, EvalError> {
        let runs = played.iter().flatten().flatten();
        let truths = runs.map(|run| &run.truth);
        let propagation_ns = simulated_propagation_ns(&planned.scenario, truths);
        let at_load = |load: &Load| {
            let scenario = load.scenario.clone().with(|scenario| {
                scenario.network.propagation_ns = propagation_ns;
            });
            let traces = load.traces.iter().map(|(trace, _)| trace.clone());
            let traces: Vec<NumberedTrace> = traces.collect();
            run_all::<Predicted>(&context.work, &scenario, &self.policies, &traces)
        };
        let predicted = planned.loads.iter().map(at_load);
        Ok(Panel {
            predicted: predicted.collect::<Result<_, _>>()?,
            planned,
            played,
            propagation_ns,
        })
    }
}

impl Planned {
    fn new(figure: NdtFigure, config: &MeasuredConfig) -> Result<Planned, PapersError> {
        let (count, flows) = extent(&config.figures);
        let flows = flows[usize::from(figure == NdtFigure::DataMining)];
        let scenario = stretched::scenario(figure, flows, &config.settings)?;
        let seeds = (config.figures.seed, config.figures.seeds);
        let load = |percent: u32| -> Result<Load, PapersError> {
            let scenario = at_load(&scenario, percent)?;
            let traces = crate::runs::test_traces(&scenario, seeds, count)?;
            let work = Work::new(&|_| {});
            let predicted =
                run_all::<Predicted>(&work, &scenario, &[Entrant::baseline()], &traces)?;
            let lasting = predicted.into_iter().flatten().map(|run| run.lasts);
            Ok(Load {
                percent,
                scenario,
                traces: traces.into_iter().zip(lasting).collect(),
            })
        };
        let loads = LOADS.into_iter().map(load).collect::<Result<_, _>>()?;
        Ok(Planned {
            figure,
            scenario,
            loads,
        })
    }
}

impl Panel<'_> {
    fn runs(&self) -> impl Iterator<Item = &Played> {
        self.played.iter().flatten().flatten()
    }

    fn results(
        &self,
        policies: &Policies,
        origin: &'static str,
        mean: impl Fn(usize, usize, usize) -> f64,
    ) -> Results {
        let loads = self.planned.loads.iter().enumerate();
        let points = loads.map(|(at, load)| {
            let of = |policy| {
                let traces = 0..load.traces.len();
                traces.map(|trace| mean(at, policy, trace)).collect()
            };
            Point {
                load: load.percent,
                means: (0..policies.len()).map(of).collect(),
            }
        });
        Results {
            figure: self.planned.figure,
            origin,
            policies: policies.clone(),
            points: points.collect(),
        }
    }

    /// Returns the measured results.
    fn measured(&self, policies: &Policies) -> Results {
        let mean =
            |load: usize, policy: usize, trace: usize| self.played[load][policy][trace].mean_fct_ms;
        self.results(policies, MEASURED, mean)
    }

    /// Returns the results that the simulator predicts.
    fn predicted(&self, policies: &Policies) -> Results {
        let mean = |load: usize, policy: usize, trace: usize| {
            self.predicted[load][policy][trace].mean_fct_ms
        };
        self.results(policies, super::SIMULATED, mean)
    }
}

#[cfg(test)]
mod tests;
