//! Several trainings that differ in their seed only, as one row. A claim about learning concerns the mean and
//! the spread over seeds, and not the best of them.

use std::collections::BTreeMap;

use crate::data::{Entry, SeedGroup, TraceResult, Versus};
use crate::metric::{ObjectiveMetrics, PairedObjectives};
use crate::stats::{self, Tally};

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
    use crate::data::Training;
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
