//! Reduces the results of every trace to one summary per policy.

use std::collections::{BTreeMap, BTreeSet};

use crate::data::{
    Arrivals, BASELINE, ByArrivals, Entry, PolicySummary, Role, SeedGroup, TraceResult, UNLIMITED,
    Versus,
};
use crate::metric::{
    AllFlows, ClassSlowdowns, FlowClasses, LosslessMetrics, LosslessRatios, ObjectiveMetrics,
    ObjectiveRatios, PairedObjectives, SlowdownRatios, SlowdownTails, Slowdowns,
};
use crate::seeds;
use crate::stats::{self, Estimate, Tally};

/// Fills in the ratio of every result to the result of DT (α = 1) on the same trace. It stays `None` if
/// the policy or DT failed the trace.
pub(crate) fn fill_ratios(results: &mut [TraceResult]) {
    let baseline: BTreeMap<u64, AllFlows> = results
        .iter()
        .filter(|result| result.policy == BASELINE && result.failure.is_none())
        .map(|result| (result.trace, result.all_flows))
        .collect();
    for result in results.iter_mut().filter(|result| result.failure.is_none()) {
        let dt = baseline.get(&result.trace).copied().unwrap_or_default();
        result.ratio_to_dt = ratio(result.all_flows.mean_fct_ms, dt.mean_fct_ms);
        result.p99_ratio_to_dt = ratio(result.all_flows.p99_fct_ms, dt.p99_fct_ms);
    }
}

fn ratio(value: Option<f64>, of: Option<f64>) -> Option<f64> {
    let ratio = value? / of?;
    ratio.is_finite().then_some(ratio)
}

/// Returns the traces that every policy finished. Means are over these traces only, so that no policy looks
/// better because it failed a hard trace.
fn common_traces(results: &[TraceResult]) -> BTreeSet<u64> {
    let failed: BTreeSet<u64> = results
        .iter()
        .filter(|r| r.failure.is_some())
        .map(|r| r.trace)
        .collect();
    results
        .iter()
        .map(|r| r.trace)
        .filter(|trace| !failed.contains(trace))
        .collect()
}

/// Returns the results of one policy, in the order of the traces.
fn results_of<'a>(results: &'a [TraceResult], policy: &str) -> Vec<&'a TraceResult> {
    results.iter().filter(|r| r.policy == policy).collect()
}

/// Summarises the results of every policy in the order of `entries`.
///
/// `results` must have their ratios filled by [`fill_ratios`]. Intervals come from `resamples`
/// bootstrap resamples seeded by `seed`; every policy gets the same resamples of traces.
pub(crate) fn summarise(
    entries: &[Entry],
    results: &[TraceResult],
    resamples: usize,
    seed: u64,
) -> Vec<PolicySummary> {
    let common = common_traces(results);
    let mut baseline = results_of(results, BASELINE);
    baseline.retain(|r| common.contains(&r.trace));
    let summarise_one = |entry: &Entry| {
        let own = results_of(results, &entry.policy);
        summarise_one(entry, &own, &common, &baseline, (resamples, seed))
    };
    let mut summaries: Vec<PolicySummary> = entries.iter().map(summarise_one).collect();
    let mean_of = |name: &str| {
        let summary = summaries.iter().find(|s| s.entry.policy == name)?;
        summary.all_flows.mean_fct_ms
    };
    if let (Some(baseline), Some(unlimited)) = (mean_of(BASELINE), mean_of(UNLIMITED)) {
        for summary in &mut summaries {
            let mean = summary.all_flows.mean_fct_ms;
            summary.headroom = mean.and_then(|mean| stats::headroom(baseline, mean, unlimited));
        }
    }
    summaries
}

/// Returns the mean FCT of one policy for every kind of arrivals among its results; none if all are of one kind.
fn by_arrivals(results: &[&TraceResult], resamples: usize, seed: u64) -> Vec<ByArrivals> {
    let of_kind = |arrivals: Arrivals| {
        let own: Vec<&TraceResult> = results
            .iter()
            .copied()
            .filter(|result| result.arrivals == arrivals)
            .collect();
        let ratios: Vec<f64> = own.iter().filter_map(|r| r.ratio_to_dt).collect();
        ByArrivals {
            arrivals,
            traces: own.len() as u64,
            mean_fct_ms: stats::finite_mean(own.iter().filter_map(|r| r.all_flows.mean_fct_ms)),
            ratio_to_dt: stats::bootstrap_mean(&ratios, resamples, seed),
        }
    };
    let kinds = Arrivals::ALL.map(of_kind);
    match kinds.iter().all(|kind| kind.traces > 0) {
        true => kinds.into(),
        false => Vec::new(),
    }
}

/// Summarises the results `own` of one policy on all traces; `baseline` are DT's on the common traces, in the
/// same order. Does not fill in the headroom.
fn summarise_one(
    entry: &Entry,
    own: &[&TraceResult],
    common: &BTreeSet<u64>,
    baseline: &[&TraceResult],
    (resamples, seed): (usize, u64),
) -> PolicySummary {
    let own_common = own.iter().copied().filter(|r| common.contains(&r.trace));
    let counted: Vec<&TraceResult> = own_common.collect();
    let sum = |count: fn(&TraceResult) -> u64| -> u64 { counted.iter().map(|r| count(r)).sum() };
    let flows = sum(|r| r.flows);
    let ratios: Vec<f64> = counted.iter().filter_map(|r| r.ratio_to_dt).collect();
    let tail_ratios: Vec<f64> = counted.iter().filter_map(|r| r.p99_ratio_to_dt).collect();
    let objectives = gather(&counted, |r| r.objectives);
    let lossless = gather(&counted, |r| r.lossless);
    let slowdowns: Vec<Slowdowns> = gather(&counted, TraceResult::slowdowns);
    let of_dt = gather(baseline, TraceResult::slowdowns);
    let failed = own.iter().filter(|r| r.failure.is_some()).count() as u64;
    let mut tally = Tally::of(&ratios);
    tally.lost += failed;
    PolicySummary {
        entry: entry.clone(),
        failed,
        all_flows: AllFlows::mean(&gather(&counted, |r| r.all_flows)),
        class_slowdowns: ClassSlowdowns::mean(&gather(&counted, |r| r.class_slowdowns)),
        slowdown_tails: SlowdownTails::mean(&gather(&counted, |r| r.slowdown_tails)),
        slowdown_ratios: SlowdownRatios::of(&slowdowns, &of_dt, resamples, seed),
        flow_classes: FlowClasses::mean(&gather(&counted, |r| r.flow_classes)),
        ratio_to_dt: stats::bootstrap_mean(&ratios, resamples, seed),
        p99_ratio_to_dt: stats::bootstrap_mean(&tail_ratios, resamples, seed),
        best_ratio: ratios.iter().copied().min_by(f64::total_cmp),
        worst_ratio: ratios.iter().copied().max_by(f64::total_cmp),
        tally,
        share_won: tally.share_won(),
        headroom: None,
        drops: sum(|r| r.drops),
        drops_data: sum(|r| r.drops_data),
        timeouts: sum(|r| r.timeouts),
        timeouts_per_flow: (flows > 0).then(|| sum(|r| r.timeouts) as f64 / flows as f64),
        timeout_share: seeds::timeout_share(&counted),
        by_arrivals: by_arrivals(&counted, resamples, seed),
        p99_occupancy: stats::finite_mean(counted.iter().filter_map(|r| r.p99_occupancy)),
        max_occupancy_bytes: counted
            .iter()
            .map(|r| r.max_occupancy_bytes)
            .max()
            .unwrap_or(0),
        decisions: sum(|r| r.decisions),
        objectives: ObjectiveMetrics::mean(&objectives),
        objective_ratios: ObjectiveRatios::of(
            &objectives,
            &gather(baseline, |r| r.objectives),
            resamples,
            seed,
        ),
        lossless: LosslessMetrics::mean(&lossless),
        lossless_ratios: LosslessRatios::of(
            &lossless,
            &gather(baseline, |r| r.lossless),
            resamples,
            seed,
        ),
    }
}

/// Returns one field of every result.
fn gather<T>(results: &[&TraceResult], field: fn(&TraceResult) -> T) -> Vec<T> {
    results.iter().map(|result| field(result)).collect()
}

/// Compares every learned policy with every rule, including the baseline and excluding the unlimited
/// buffer, and with the learned policies before it.
pub fn versus(
    entries: &[Entry],
    results: &[TraceResult],
    resamples: usize,
    seed: u64,
) -> Vec<Versus> {
    let common = common_traces(results);
    let means = |policy: &str| -> BTreeMap<u64, f64> {
        let of_policy = results
            .iter()
            .filter(|r| r.policy == policy && common.contains(&r.trace));
        of_policy
            .filter_map(|r| Some((r.trace, r.all_flows.mean_fct_ms?)))
            .collect()
    };
    let numbered = entries.iter().enumerate();
    let learned = numbered.filter(|(_, entry)| entry.role == Role::Learned);
    let objectives = |policy: &str| -> Vec<ObjectiveMetrics> {
        let own = results_of(results, policy).into_iter();
        let counted = own.filter(|r| common.contains(&r.trace));
        counted.map(|r| r.objectives).collect()
    };
    let pairs = learned.flat_map(|(number, policy)| {
        let others = entries
            .iter()
            .enumerate()
            .filter(move |(n, e)| match e.role {
                Role::Reference => false,
                Role::Learned => *n < number,
                Role::Heuristic | Role::Baseline => true,
            });
        others.map(move |(_, against)| (policy, against))
    });
    pairs
        .filter_map(|(policy, against)| {
            let (ratio, tally) = paired(
                &means(&policy.policy),
                &means(&against.policy),
                resamples,
                seed,
            )?;
            Some(Versus {
                policy: policy.policy.clone(),
                against: against.policy.clone(),
                ratio,
                tally,
                objectives: PairedObjectives::of(
                    &objectives(&policy.policy),
                    &objectives(&against.policy),
                    resamples,
                    seed,
                ),
            })
        })
        .collect()
}

/// Groups the networks whose trainings differ in the seed only, and compares each group with every rule,
/// including the baseline and excluding the unlimited buffer.
pub fn seeds(
    entries: &[Entry],
    results: &[TraceResult],
    resamples: usize,
    seed: u64,
) -> Vec<SeedGroup> {
    let common = common_traces(results);
    let rules = entries
        .iter()
        .filter(|entry| matches!(entry.role, Role::Heuristic | Role::Baseline));
    let counted = |policy: &str| {
        let own = results_of(results, policy).into_iter();
        own.filter(|r| common.contains(&r.trace)).collect()
    };
    let rules: Vec<&Entry> = rules.collect();
    seeds::groups(entries, &rules, &counted, (resamples, seed))
}

/// Returns the mean ratio of `ours` to `theirs` over the traces of both, and the traces won, tied and lost.
fn paired(
    ours: &BTreeMap<u64, f64>,
    theirs: &BTreeMap<u64, f64>,
    resamples: usize,
    seed: u64,
) -> Option<(Estimate, Tally)> {
    let ratios: Vec<f64> = ours
        .iter()
        .filter_map(|(trace, mean)| Some(mean / theirs.get(trace)?))
        .collect();
    Some((
        stats::bootstrap_mean(&ratios, resamples, seed)?,
        Tally::of(&ratios),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    #[test]
    fn the_means_of_a_small_comparison() {
        // The mean FCTs of two traces are: dt 10, 20; unlimited 5, 10; cs 8, 22.
        let (entries, mut results) = synthetic::from_means(&[
            ("dt", &[10.0, 20.0]),
            ("unlimited", &[5.0, 10.0]),
            ("cs", &[8.0, 22.0]),
        ]);
        fill_ratios(&mut results);
        let summaries = summarise(&entries, &results, 1000, 1);
        let cs = &summaries[2];
        assert_eq!(cs.all_flows.mean_fct_ms, Some(15.0));
        let ratio = cs.ratio_to_dt.unwrap();
        assert!((ratio.centre - 0.95).abs() < 1e-12, "mean of 0.8 and 1.1");
        assert!((ratio.low - 0.8).abs() < 1e-12 && (ratio.high - 1.1).abs() < 1e-12);
        // Losses are proportional to FCT here: 30 over 30.
        let losses = cs.objective_ratios.loss_ratio_to_dt.unwrap();
        assert!((losses.centre - 1.0).abs() < 1e-12 && losses.low < 0.85 && losses.high > 1.05);
        // The ratio is (992 + 978) over (990 + 980) Mbit/s.
        let goodput = cs.objective_ratios.goodput_ratio_to_dt.unwrap();
        assert!((goodput.centre - 1.0).abs() < 1e-12);
        assert_eq!(cs.objectives.p99_queueing_delay_us, Some(300.0));
        assert_eq!(
            cs.tally,
            Tally {
                won: 1,
                tied: 0,
                lost: 1
            }
        );
        assert_eq!(cs.headroom, Some(0.0), "both have 15 ms on average");
        assert_eq!(
            summaries[0].tally,
            Tally {
                won: 0,
                tied: 2,
                lost: 0
            }
        );
        assert_eq!(summaries[1].headroom, Some(1.0));
    }

    #[test]
    fn a_failed_trace_leaves_all_means_and_is_lost() {
        let (entries, mut results) = synthetic::from_means(&[
            ("dt", &[10.0, 20.0]),
            ("unlimited", &[5.0, 10.0]),
            ("cs", &[8.0, f64::NAN]),
        ]);
        fill_ratios(&mut results);
        let summaries = summarise(&entries, &results, 100, 1);
        assert_eq!(summaries[2].failed, 1);
        assert_eq!(
            summaries[2].tally,
            Tally {
                won: 1,
                tied: 0,
                lost: 1
            }
        );
        assert_eq!(
            summaries[0].all_flows.mean_fct_ms,
            Some(10.0),
            "the trace is left out for all"
        );
    }

    #[test]
    fn learned_policies_meet_every_rule() {
        let (entries, results) = synthetic::from_means(&[
            ("ndt:a", &[8.0, 10.0]),
            ("cs", &[16.0, 10.0]),
            ("dt", &[10.0, 20.0]),
            ("unlimited", &[5.0, 10.0]),
        ]);
        let versus = versus(&entries, &results, 100, 1);
        let against: Vec<&str> = versus.iter().map(|v| v.against.as_str()).collect();
        assert_eq!(against, ["cs", "dt"]);
        assert_eq!(versus[0].ratio.centre, 0.75);
        assert_eq!(
            versus[0].tally,
            Tally {
                won: 1,
                tied: 1,
                lost: 0
            }
        );
    }

    #[test]
    fn each_kind_has_its_own_mean() {
        let (_, mut results) =
            synthetic::from_means(&[("dt", &[10.0, 20.0, 10.0]), ("cs", &[8.0, 30.0, 10.0])]);
        for result in &mut results {
            if result.trace == 1 {
                result.arrivals = Arrivals::Synchronised;
            }
        }
        fill_ratios(&mut results);
        let cs: Vec<&TraceResult> = results.iter().filter(|r| r.policy == "cs").collect();
        let [spread, synchronised] = &by_arrivals(&cs, 100, 1)[..] else {
            panic!("two kinds")
        };
        assert_eq!((spread.traces, synchronised.traces), (2, 1));
        assert_eq!(spread.ratio_to_dt.unwrap().centre, 0.9);
        assert_eq!(synchronised.ratio_to_dt.unwrap().centre, 1.5);
        assert_eq!(spread.mean_fct_ms, Some(9.0));
        assert_eq!(by_arrivals(&cs[..1], 100, 1), []);
    }
}
