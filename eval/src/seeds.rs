//! Several trainings that differ in their seed only, as one row. A claim about learning concerns the mean and
//! the spread over seeds, and not the best of them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::data::{Entry, TraceResult, Versus};
use crate::metric::{Metric, ObjectiveMetrics, PairedObjectives};
use crate::stats::{self, Estimate, Tally};

/// The training objective of a learned policy, and the seed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Training {
    /// Everything except the seed, in words.
    pub task: String,
    /// The seed.
    pub seed: u64,
    /// The objective whose metric decides; see [`Metric::objective`].
    #[serde(default = "fct")]
    pub objective: String,
}

fn fct() -> String {
    Metric::MeanFct.objective().to_owned()
}

impl Training {
    /// Builds a training; `objective` has the form of a manifest, with or without weights.
    pub fn new(task: String, seed: u64, objective: &str) -> Training {
        let metric = objective.parse().map(|objective| Metric::of(&objective));
        let objective = metric.unwrap_or(Metric::MeanFct).objective().to_owned();
        Training {
            task,
            seed,
            objective,
        }
    }

    /// Returns the metric of the objective.
    pub fn metric(&self) -> Metric {
        let mut all = Metric::ALL.into_iter();
        all.find(|metric| metric.objective() == self.objective)
            .unwrap_or(Metric::MeanFct)
    }
}

/// The policies of one task.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SeedGroup {
    /// See [`Training::task`].
    pub task: String,
    /// The policies, in the order of their seeds.
    pub policies: Vec<String>,
    /// Seeds of the policies.
    pub seeds: Vec<u64>,
    /// Mean over traces of mean FCT / mean FCT of DT (α = 1), for each policy.
    pub ratios_to_dt: Vec<f64>,
    /// Mean over seeds and traces of mean FCT / mean FCT of DT (α = 1). The interval is over traces, of the
    /// mean over seeds.
    pub ratio_to_dt: Estimate,
    /// Mean over seeds and traces of p99 FCT / p99 FCT of DT (α = 1), with an interval over traces.
    pub p99_ratio_to_dt: Option<Estimate>,
    /// Standard deviation over seeds of `ratios_to_dt` (n - 1).
    pub deviation: f64,
    /// Mean over seeds and traces of mean FCT, ms.
    pub mean_fct_ms: Option<f64>,
    /// Timeouts per flow, all traces and seeds together.
    pub timeouts_per_flow: f64,
    /// Part of mean FCT that flows wait for timeouts, all traces and seeds together.
    pub timeout_share: Option<f64>,
    /// The mean over seeds compared with every rule, trace by trace: mean FCT over the rule's.
    pub versus: Vec<Versus>,
}

impl SeedGroup {
    /// Returns the best seed's ratio.
    pub fn best(&self) -> f64 {
        self.ratios_to_dt
            .iter()
            .copied()
            .fold(f64::INFINITY, f64::min)
    }

    /// Returns the worst seed's ratio.
    pub fn worst(&self) -> f64 {
        self.ratios_to_dt.iter().copied().fold(0.0, f64::max)
    }
}

/// The results of one policy on the traces that every policy finished, in the order of traces.
pub(crate) type Counted<'a> = &'a dyn Fn(&str) -> Vec<&'a TraceResult>;

/// Returns the tasks that two or more of the learned policies share, in the given order; `rules` are compared
/// with them.
pub(crate) fn groups(
    entries: &[Entry],
    rules: &[&Entry],
    counted: Counted<'_>,
    (resamples, seed): (usize, u64),
) -> Vec<SeedGroup> {
    let mut tasks: Vec<(&str, BTreeMap<u64, &str>)> = Vec::new();
    for entry in entries {
        let Some(training) = &entry.training else {
            continue;
        };
        let place = tasks.iter().position(|(task, _)| *task == training.task);
        let place = place.unwrap_or_else(|| {
            tasks.push((&training.task, BTreeMap::new()));
            tasks.len() - 1
        });
        // The first policy of a seed counts.
        let policies = &mut tasks[place].1;
        policies.entry(training.seed).or_insert(&entry.policy);
    }
    let several = tasks.into_iter().filter(|(_, policies)| policies.len() > 1);
    several
        .filter_map(|(task, policies)| group(task, &policies, rules, counted, (resamples, seed)))
        .collect()
}

fn group(
    task: &str,
    policies: &BTreeMap<u64, &str>,
    rules: &[&Entry],
    counted: Counted<'_>,
    (resamples, seed): (usize, u64),
) -> Option<SeedGroup> {
    let results: Vec<Vec<&TraceResult>> = policies.values().map(|policy| counted(policy)).collect();
    let by_seed: Option<Vec<f64>> = results.iter().map(|own| mean(own, ratio_to_dt)).collect();
    let ratios_to_dt = by_seed?;
    let over_traces = |field: Field| {
        let means: Option<Vec<f64>> = (0..results[0].len())
            .map(|trace| mean_over_seeds(&results, trace, field))
            .collect();
        stats::bootstrap_mean(&means?, resamples, seed)
    };
    let all = || results.iter().flatten();
    let flows: u64 = all().map(|result| result.flows).sum();
    let timeouts: u64 = all().map(|result| result.timeouts).sum();
    let objectives: Vec<ObjectiveMetrics> = (0..results[0].len())
        .map(|trace| {
            let of_trace: Vec<_> = results.iter().map(|own| own[trace].objectives).collect();
            ObjectiveMetrics::mean(&of_trace)
        })
        .collect();
    let versus = rules.iter().filter_map(|rule| {
        let theirs = counted(&rule.policy);
        let ratios: Option<Vec<f64>> = theirs
            .iter()
            .enumerate()
            .map(|(trace, rule)| {
                Some(mean_over_seeds(&results, trace, mean_fct_ms)? / mean_fct_ms(rule)?)
            })
            .collect();
        let ratios = ratios?;
        Some(Versus {
            policy: task.to_owned(),
            against: rule.policy.clone(),
            ratio: stats::bootstrap_mean(&ratios, resamples, seed)?,
            tally: Tally::of(&ratios),
            objectives: {
                let theirs: Vec<_> = theirs.iter().map(|result| result.objectives).collect();
                PairedObjectives::of(&objectives, &theirs, resamples, seed)
            },
        })
    });
    let every: Vec<&TraceResult> = all().copied().collect();
    Some(SeedGroup {
        task: task.to_owned(),
        policies: policies.values().map(|&policy| policy.to_owned()).collect(),
        seeds: policies.keys().copied().collect(),
        ratio_to_dt: over_traces(ratio_to_dt)?,
        p99_ratio_to_dt: over_traces(|result| result.p99_ratio_to_dt),
        deviation: deviation(&ratios_to_dt)?,
        ratios_to_dt,
        mean_fct_ms: mean(&every, mean_fct_ms),
        timeouts_per_flow: timeouts as f64 / flows as f64,
        timeout_share: timeout_share(&every),
        versus: versus.collect(),
    })
}

type Field = fn(&TraceResult) -> Option<f64>;

fn ratio_to_dt(result: &TraceResult) -> Option<f64> {
    result.ratio_to_dt
}

fn mean_fct_ms(result: &TraceResult) -> Option<f64> {
    result.all_flows.mean_fct_ms
}

fn mean(results: &[&TraceResult], field: Field) -> Option<f64> {
    let values: Option<Vec<f64>> = results.iter().map(|result| field(result)).collect();
    stats::mean(&values?)
}

fn mean_over_seeds(results: &[Vec<&TraceResult>], trace: usize, field: Field) -> Option<f64> {
    let of_trace: Vec<&TraceResult> = results.iter().map(|own| own[trace]).collect();
    mean(&of_trace, field)
}

/// Returns the standard deviation with n - 1; `None` for fewer than two values.
fn deviation(values: &[f64]) -> Option<f64> {
    let count = values.len() as f64;
    let variance = stats::variance(values)?;
    (values.len() > 1).then(|| (variance * count / (count - 1.0)).sqrt())
}

/// Returns the part of the mean FCT that flows waited for timers that expired: a ratio of means over traces.
pub(crate) fn timeout_share(results: &[&TraceResult]) -> Option<f64> {
    let waited = mean(results, |result| Some(result.timeout_wait_ms))?;
    let share = waited / mean(results, mean_fct_ms)?;
    share.is_finite().then_some(share)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{summary, synthetic};

    fn trained(mut entries: Vec<Entry>) -> Vec<Entry> {
        for (entry, seed) in entries.iter_mut().take(2).zip([7, 3]) {
            entry.training = Some(Training::new("a task".to_owned(), seed, "fct"));
        }
        entries
    }

    #[test]
    fn seeds_of_one_task_are_averaged_trace_by_trace() {
        let (entries, mut results) = synthetic::from_means(&[
            ("ndt:a", &[8.0, 12.0]),
            ("ndt:b", &[4.0, 20.0]),
            ("cs", &[12.0, 16.0]),
            ("dt", &[10.0, 20.0]),
        ]);
        let entries = trained(entries);
        summary::fill_ratios(&mut results);
        let groups = summary::seeds(&entries, &results, 100, 1);
        let [group] = &groups[..] else {
            panic!("one task, not {}", groups.len())
        };
        assert_eq!(group.seeds, [3, 7]);
        assert_eq!(group.policies, ["ndt:b", "ndt:a"]);
        let ratios = [group.best(), group.worst(), group.ratio_to_dt.centre];
        assert!(
            ratios.iter().all(|ratio| (ratio - 0.7).abs() < 1e-12),
            "{ratios:?}"
        );
        assert!(group.deviation < 1e-12);
        assert_eq!(group.mean_fct_ms, Some(11.0));
        let against: Vec<&str> = group.versus.iter().map(|v| v.against.as_str()).collect();
        assert_eq!(against, ["cs", "dt"]);
        // The ratios are 6 over 12, and 16 over 16.
        assert_eq!(group.versus[0].ratio.centre, 0.75);
        assert_eq!(group.versus[0].tally.tied, 1);
    }

    #[test]
    fn a_single_seed_is_no_group() {
        let (entries, results) =
            synthetic::from_means(&[("ndt:a", &[8.0, 12.0]), ("dt", &[10.0, 20.0])]);
        let mut entries = trained(entries);
        assert_eq!(summary::seeds(&entries, &results, 100, 1), []);
        entries[1].training = None;
        assert_eq!(summary::seeds(&entries, &results, 100, 1), []);
    }

    #[test]
    fn the_deviation_is_that_of_a_sample() {
        assert_eq!(deviation(&[1.0, 3.0]), Some(2.0_f64.sqrt()));
        assert_eq!(deviation(&[1.0]), None);
    }
}
