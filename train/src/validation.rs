//! Fixed traces with DT's results on them: what policies are compared on during a search.

use std::ops::Range;
use std::slice;
use std::time::{Duration, Instant};

use bufgym_env::control::{BasePolicy, ControlOptions, Controller, RunOptions, run_controlled};
use bufgym_env::convert::index as index_of;
use bufgym_eval::Entrant;
use bufgym_eval::metric::{Comparison, IsolatedPorts, Metric, Sample, compare};
use bufgym_eval::stats::{Interval, bootstrap_mean};
use bufgym_models::checkpoint;
use bufgym_sim::network::{Outcome, SimError};
use bufgym_sim::rng::{Split, trace_seed};
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::PolicySpec;
use bufgym_sim::traffic::{Trace, generate};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};

/// Bootstrap resamples of an interval in the log. Published intervals come from an evaluation.
const RESAMPLES: usize = 1_000;

/// The result of one validation. Lower values are better.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValidationResult {
    /// The objective's metric relative to DT (α = 1), with a penalty where the policy is unusable;
    /// see [`Comparison`](bufgym_eval::metric::Comparison). Of mean FCT in a mixture it is the geometric mean over
    /// the traces.
    pub value: f64,
    /// Lower end of the ratio's 95 % interval.
    pub low: f64,
    /// Upper end of the ratio's 95 % interval.
    pub high: f64,
    /// Share of the traces won by the metric.
    pub won: f64,
    /// Mean over the traces of mean FCT / mean FCT of DT (α = 1).
    pub fct_ratio: f64,
    /// Traces with a flow that did not finish.
    pub failed: u64,
}

/// Traces of one split, each with DT's (α = 1) result by the metric.
pub(crate) struct ValidationSet {
    scenarios: Vec<Scenario>,
    metric: Metric,
    options: RunOptions,
    traces: Vec<ValidationTrace>,
}

/// A validation with what it was made from.
#[derive(Clone, Debug)]
pub(crate) struct Validation {
    pub(crate) result: ValidationResult,
    /// By trace.
    pub(crate) samples: Vec<Sample>,
    /// Time spent on all threads together.
    pub(crate) busy: Duration,
}

struct ValidationTrace {
    /// Index of its scenario.
    scenario: usize,
    trace: Trace,
    /// Only where the metric is about ports.
    ports: Option<IsolatedPorts>,
    baseline: Sample,
}

impl ValidationSet {
    /// Generates the traces with these indices of a split and runs DT on them, in parallel on the
    /// current pool. The scenarios take turns. Controllers will set the α of `low_level`.
    ///
    /// # Errors
    /// When a scenario is not valid.
    pub(crate) fn new(
        scenarios: &[Scenario],
        metric: Metric,
        low_level: &BasePolicy,
        (split, seed): (Split, u64),
        indices: Range<u64>,
    ) -> Result<Self, SimError> {
        scenarios.iter().try_for_each(Scenario::validate)?;
        let traces = indices
            .into_par_iter()
            .map(|index| {
                let turn = index_of(index % scenarios.len() as u64);
                let seed = trace_seed(split, seed, index / scenarios.len() as u64);
                ValidationTrace::new(metric, scenarios, turn, seed)
            })
            .collect::<Result<_, SimError>>()?;
        let control = ControlOptions {
            low_level: low_level.clone(),
            ..ControlOptions::default()
        };
        Ok(Self {
            scenarios: scenarios.to_vec(),
            metric,
            options: RunOptions {
                control,
                ..RunOptions::default()
            },
            traces,
        })
    }

    /// Compares one controller with DT.
    ///
    /// # Errors
    /// When the low-level policy does not fit the scenario.
    pub(crate) fn validate<C: Controller + Clone + Sync>(
        &self,
        controller: &C,
    ) -> Result<Validation, SimError> {
        let (mut samples, busy) = self.run(std::slice::from_ref(controller))?;
        let samples = samples.pop().unwrap_or_default();
        let found = self.compare(&samples, RESAMPLES);
        let result = ValidationResult {
            value: found.value,
            low: found.ratio.low,
            high: found.ratio.high,
            won: found.tally.won as f64 / self.traces.len().max(1) as f64,
            fct_ratio: found.fct_ratio,
            failed: found.failed,
        };
        Ok(Validation {
            result,
            samples,
            busy,
        })
    }

    /// Whether one controller is worse than another on the same traces, beyond chance: the whole interval
    /// of the ratio of their metrics lies above 1.
    pub(crate) fn is_worse(&self, than: &[Sample], samples: &[Sample]) -> bool {
        compare(self.metric, samples, than, RESAMPLES).ratio.low > 1.0
    }

    /// The value of each controller relative to DT, as in [`ValidationResult::value`].
    ///
    /// # Errors
    /// When the low-level policy does not fit the scenario.
    pub(crate) fn values<C: Controller + Clone + Sync>(
        &self,
        controllers: &[C],
    ) -> Result<Vec<f64>, SimError> {
        let (samples, _) = self.run(controllers)?;
        let values = samples.iter().map(|samples| self.compare(samples, 0).value);
        Ok(values.collect())
    }

    /// The result in the form of a manifest.
    pub(crate) fn for_manifest(&self, result: &ValidationResult) -> checkpoint::Validation {
        checkpoint::Validation {
            traces: self.traces.len() as u64,
            metric: self.metric.comparison().to_owned(),
            value: result.value,
            low: result.low,
            high: result.high,
            won: result.won,
        }
    }

    /// Runs every controller on every trace, in parallel on the current pool. Returns samples by
    /// controller, then by trace, and the time spent on all threads together. The samples do not
    /// depend on the number of threads.
    fn run<C: Controller + Clone + Sync>(
        &self,
        controllers: &[C],
    ) -> Result<(Vec<Vec<Sample>>, Duration), SimError> {
        self.measure(controllers, |controller, trace| {
            let mut controller = controller.clone();
            let scenario = &self.scenarios[trace.scenario];
            run_controlled(scenario, &trace.trace, &mut controller, &self.options)
        })
    }

    /// Compares each rule with DT.
    ///
    /// # Errors
    /// When one does not fit the scenario.
    pub(crate) fn rules(
        &self,
        rules: &[PolicySpec],
        resamples: usize,
    ) -> Result<Vec<Comparison>, SimError> {
        let (samples, _) = self.measure(rules, |rule, trace| {
            let scenario = &self.scenarios[trace.scenario];
            Entrant::rule(rule.clone()).run(scenario, &trace.trace, None)
        })?;
        let found = samples
            .iter()
            .map(|samples| self.compare(samples, resamples));
        Ok(found.collect())
    }

    /// As [`run`](ValidationSet::run), of anything that runs a trace.
    fn measure<C: Sync>(
        &self,
        candidates: &[C],
        run: impl Fn(&C, &ValidationTrace) -> Result<Outcome, SimError> + Sync,
    ) -> Result<(Vec<Vec<Sample>>, Duration), SimError> {
        let measured = (0..candidates.len() * self.traces.len())
            .into_par_iter()
            .map(|number| {
                let start = Instant::now();
                let known = &self.traces[number % self.traces.len()];
                let outcome = run(&candidates[number / self.traces.len()], known)?;
                let sample = Sample::of(self.metric, &outcome, known.ports.as_ref());
                Ok((sample, start.elapsed()))
            })
            .collect::<Result<Vec<(Sample, Duration)>, SimError>>()?;
        let busy = measured.iter().map(|(_, busy)| busy).sum();
        let samples = measured
            .chunks(self.traces.len().max(1))
            .map(|samples| samples.iter().map(|(sample, _)| *sample).collect())
            .collect();
        Ok((samples, busy))
    }

    /// How one controller compares with DT in each scenario, in their order.
    ///
    /// # Errors
    /// When the low-level policy does not fit a scenario.
    pub(crate) fn by_scenario<C: Controller + Clone + Sync>(
        &self,
        controller: &C,
    ) -> Result<Vec<Comparison>, SimError> {
        let (samples, _) = self.run(std::slice::from_ref(controller))?;
        let of = |number: usize| {
            let pairs = self.traces.iter().zip(&samples[0]);
            let own = pairs.filter(|(known, _)| known.scenario == number);
            let (baseline, samples): (Vec<Sample>, Vec<Sample>) =
                own.map(|(known, sample)| (known.baseline, *sample)).unzip();
            compare(self.metric, &samples, &baseline, RESAMPLES)
        };
        Ok((0..self.scenarios.len()).map(of).collect())
    }

    /// Compares with DT. In a mixture ratios to DT's mean FCT are averaged as logarithms: a per cent counts the
    /// same in every scenario, however much is to be won there.
    fn compare(&self, samples: &[Sample], resamples: usize) -> Comparison {
        let baseline: Vec<Sample> = self.traces.iter().map(|known| known.baseline).collect();
        let found = compare(self.metric, samples, &baseline, resamples);
        if self.scenarios.len() == 1 || self.metric != Metric::MeanFct {
            return found;
        }
        let pairs = samples.iter().zip(&baseline);
        let ratio = |(own, dt)| compare(self.metric, slice::from_ref(own), slice::from_ref(dt), 0);
        let logs: Vec<f64> = pairs.map(|pair| libm::log(ratio(pair).value)).collect();
        let Some(log) = bootstrap_mean(&logs, resamples, 0) else {
            return found;
        };
        let ratio = Interval {
            mean: libm::exp(log.mean),
            low: libm::exp(log.low),
            high: libm::exp(log.high),
        };
        Comparison {
            value: ratio.mean,
            ratio,
            ..found
        }
    }
}

impl ValidationTrace {
    /// Runs DT on the trace. Where the metric is about ports, also runs each port alone.
    fn new(
        metric: Metric,
        scenarios: &[Scenario],
        turn: usize,
        seed: u64,
    ) -> Result<Self, SimError> {
        let scenario = &scenarios[turn];
        let trace = generate(scenario, seed);
        let ports = metric.isolated_ports(scenario, &trace)?;
        let outcome = Entrant::baseline().run(scenario, &trace, None)?;
        let baseline = Sample::of(metric, &outcome, ports.as_ref());
        Ok(Self {
            scenario: turn,
            trace,
            ports,
            baseline,
        })
    }
}

#[cfg(test)]
mod tests {
    use bufgym_models::LinearRule;

    use super::*;

    fn scenario(buffer: &str) -> Scenario {
        let mut scenario = Scenario::default();
        let small = [
            "ports=4",
            "active_ports=2..4",
            "incast_degree=1..3",
            "flows=20..40",
        ];
        for setting in small.into_iter().chain([buffer]) {
            scenario.set(setting).unwrap();
        }
        scenario
    }

    #[test]
    fn a_mixture_counts_a_per_cent_the_same_in_every_scenario() {
        let scenarios = ["buffer_bytes=30000", "buffer_bytes=200000"].map(scenario);
        let low_level = "dt".parse().unwrap();
        let of = |scenarios: &[Scenario]| {
            let set = ValidationSet::new(
                scenarios,
                Metric::MeanFct,
                &low_level,
                (Split::Train, 5),
                0..8,
            );
            let set = set.unwrap();
            let found = set.validate(&LinearRule::constant(&[0.9])).unwrap();
            let pairs = found.samples.iter().zip(&set.traces);
            let ratio =
                |(own, known): (&Sample, &ValidationTrace)| own.value / known.baseline.value;
            (found.result, pairs.map(ratio).collect::<Vec<f64>>())
        };
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;

        let (one, ratios) = of(&scenarios[..1]);
        assert!((one.value - mean(&ratios)).abs() < 1e-12);

        let (both, ratios) = of(&scenarios);
        let logs: Vec<f64> = ratios.iter().map(|ratio| ratio.ln()).collect();
        assert!((both.value - mean(&logs).exp()).abs() < 1e-12);
        assert!(both.value < mean(&ratios) - 1e-6, "the traces differ");
        assert!(both.low < both.value && both.value < both.high);
    }
}
