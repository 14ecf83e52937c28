//! Fixed traces with DT's results on them, on which policies are compared during a search.

use std::ops::Range;
use std::slice;
use std::time::Duration;

use bufgym_eval::metric::{Comparison, Metric, Sample, compare};
use bufgym_eval::stats::{Estimate, bootstrap_mean};
use bufgym_models::checkpoint;
use bufgym_sim::network::SimError;
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::PolicySpec;
use bufgym_util::convert::index as index_of;
use bufgym_util::rng::{Split, trace_seed};
use serde::{Deserialize, Serialize};

use crate::TrainError;
use crate::backend::Backend;
use crate::simulations::{Decider, Setting, TraceRef, TraceSet};

/// Bootstrap resamples of an interval in the log. Published intervals come from an evaluation.
pub(crate) const RESAMPLES: usize = 1_000;

/// The result of one validation. Lower values are better.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ValidationResult {
    /// The objective's metric relative to DT (α = 1), with a penalty if the policy is unusable; see
    /// [`Comparison`](bufgym_eval::metric::Comparison). For mean FCT in a mixture it is the geometric mean over the
    /// traces.
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
    traces: TraceSet,
    /// DT's results, by trace.
    baseline: Vec<Sample>,
    backend: Backend,
}

/// A validation with its inputs.
#[derive(Clone, Debug)]
pub(crate) struct Validation {
    pub(crate) result: ValidationResult,
    /// Time spent on all threads together.
    pub(crate) busy: Duration,
}

impl ValidationSet {
    /// Generates the traces with these indices of a split and runs DT on them. The scenarios take turns.
    ///
    /// # Errors
    /// When a scenario is not valid, or the backend fails.
    pub(crate) fn new(
        backend: &Backend,
        setting: Setting,
        (split, seed): (Split, u64),
        indices: Range<u64>,
    ) -> Result<Self, TrainError> {
        let scenarios = &setting.scenarios;
        let valid = scenarios.iter().try_for_each(Scenario::validate);
        valid.map_err(SimError::from)?;
        let count = scenarios.len() as u64;
        let traces = indices.map(|index| TraceRef {
            scenario: index_of(index % count),
            seed: trace_seed(split, seed, index / count),
        });
        let mut set = Self {
            traces: backend.prepare(setting, traces.collect())?,
            baseline: Vec::new(),
            backend: backend.clone(),
        };
        let (mut baseline, _) = set.measure(&[Decider::Rule(PolicySpec::baseline())])?;
        set.baseline = baseline.pop().unwrap_or_default();
        Ok(set)
    }

    /// Compares one decider with DT.
    ///
    /// # Errors
    /// When the low-level policy does not fit the scenario.
    pub(crate) fn validate(&self, decider: Decider) -> Result<Validation, TrainError> {
        let (samples, busy) = self.measure(&[decider])?;
        let result = self.result(&self.compare(&samples[0], RESAMPLES));
        Ok(Validation { result, busy })
    }

    /// Returns a comparison of [`comparisons`](ValidationSet::comparisons) as a result.
    pub(crate) fn result(&self, found: &Comparison) -> ValidationResult {
        ValidationResult {
            value: found.value,
            low: found.ratio.low,
            high: found.ratio.high,
            won: found.tally.won as f64 / self.count().max(1) as f64,
            fct_ratio: found.fct_ratio,
            failed: found.failed,
        }
    }

    fn count(&self) -> usize {
        self.traces.traces.len()
    }

    /// Compares each decider with DT.
    ///
    /// # Errors
    /// When one does not fit the scenario.
    pub(crate) fn comparisons(
        &self,
        deciders: &[Decider],
        resamples: usize,
    ) -> Result<Vec<Comparison>, TrainError> {
        let (samples, _) = self.measure(deciders)?;
        let found = samples
            .iter()
            .map(|samples| self.compare(samples, resamples));
        Ok(found.collect())
    }

    /// The result in the form of a manifest.
    pub(crate) fn for_manifest(&self, result: &ValidationResult) -> checkpoint::Validation {
        checkpoint::Validation {
            traces: self.count() as u64,
            metric: self.traces.setting.metric.comparison().to_owned(),
            value: result.value,
            low: result.low,
            high: result.high,
            won: result.won,
        }
    }

    /// Runs every decider on every trace. Returns samples by decider, then by trace, and the time spent on
    /// all threads together.
    fn measure(&self, deciders: &[Decider]) -> Result<(Vec<Vec<Sample>>, Duration), TrainError> {
        let measured = self.backend.measure(&self.traces, deciders)?;
        let busy = measured.iter().map(|measured| measured.busy).sum();
        let samples = measured
            .chunks(self.count().max(1))
            .map(|measured| measured.iter().map(|measured| measured.sample).collect())
            .collect();
        Ok((samples, busy))
    }

    /// Compares one decider with DT in each scenario, in their order.
    ///
    /// # Errors
    /// When the low-level policy does not fit a scenario.
    pub(crate) fn by_scenario(&self, decider: Decider) -> Result<Vec<Comparison>, TrainError> {
        let (samples, _) = self.measure(&[decider])?;
        let of = |number: usize| {
            let pairs = self
                .baseline
                .iter()
                .zip(&samples[0])
                .zip(&self.traces.traces);
            let own = pairs.filter(|(_, at)| at.scenario == number);
            let (baseline, samples): (Vec<Sample>, Vec<Sample>) =
                own.map(|((dt, sample), _)| (*dt, *sample)).unzip();
            compare(self.traces.setting.metric, &samples, &baseline, RESAMPLES)
        };
        Ok((0..self.traces.setting.scenarios.len()).map(of).collect())
    }

    /// Compares with DT. In a mixture, ratios to DT's mean FCT are averaged as logarithms: one per cent counts the same
    /// in every scenario, however large its possible gain is.
    fn compare(&self, samples: &[Sample], resamples: usize) -> Comparison {
        let (metric, baseline) = (self.traces.setting.metric, &self.baseline);
        let found = compare(metric, samples, baseline, resamples);
        if self.traces.setting.scenarios.len() == 1 || metric != Metric::MeanFct {
            return found;
        }
        let pairs = samples.iter().zip(baseline);
        let ratio = |(own, dt)| compare(metric, slice::from_ref(own), slice::from_ref(dt), 0);
        let logs: Vec<f64> = pairs.map(|pair| libm::log(ratio(pair).value)).collect();
        let Some(log) = bootstrap_mean(&logs, resamples, 0) else {
            return found;
        };
        let ratio = Estimate {
            centre: libm::exp(log.centre),
            low: libm::exp(log.low),
            high: libm::exp(log.high),
        };
        Comparison {
            value: ratio.centre,
            ratio,
            ..found
        }
    }
}

#[cfg(test)]
mod tests {
    use bufgym_models::LinearRule;

    use super::*;

    fn scenario(buffer: &str) -> Scenario {
        let mut scenario = Scenario::default();
        let settings = [
            "ports=4",
            "active_ports=2..4",
            "incast_degree=1..3",
            "flows=20..40",
            buffer,
        ];
        scenario.set_all(settings).unwrap();
        scenario
    }

    #[test]
    fn a_mixture_counts_a_per_cent_the_same_in_every_scenario() {
        let scenarios = ["buffer_bytes=30000", "buffer_bytes=200000"].map(scenario);
        let of = |scenarios: &[Scenario]| {
            let setting = Setting {
                scenarios: scenarios.to_vec(),
                metric: Metric::MeanFct,
                low_level: "dt".parse().unwrap(),
            };
            let set =
                ValidationSet::new(&Backend::default(), setting, (Split::Train, 5), 0..8).unwrap();
            let rule = Decider::linear(LinearRule::constant(&[0.9]));
            let (samples, _) = set.measure(std::slice::from_ref(&rule)).unwrap();
            let pairs = samples[0].iter().zip(&set.baseline);
            let ratio = |(own, dt): (&Sample, &Sample)| own.value / dt.value;
            let ratios = pairs.map(ratio).collect::<Vec<f64>>();
            (set.validate(rule).unwrap().result, ratios)
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
