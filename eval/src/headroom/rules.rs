//! The candidate rules, and the selection of the best ones.

use bufgym_env::control::LowLevelPolicy;
use bufgym_sim::switch::PolicySpec;
use bufgym_sim::switch::aqm::AqmSpec;

use super::{MeanFct, RuleResult};
use crate::stats::Estimate;

/// Dynamic Threshold with α = 2^-2 … 2^6 and the other rules that a switch could run without push-out, with
/// their defaults; also with a large α if the default is small; some of them with random early drop.
const STANDARD: [&str; 25] = [
    "dt:alpha=0.25",
    "dt:alpha=0.5",
    "dt",
    "dt:alpha=2",
    "dt:alpha=4",
    "dt:alpha=8",
    "dt:alpha=16",
    "dt:alpha=32",
    "dt:alpha=64",
    "cs",
    "edt",
    "tdt",
    "fab",
    "fab:alpha=8",
    "fab:alpha=32",
    "ib",
    "abm",
    "abm:alpha=64",
    "dt:alpha=4+random",
    "dt:alpha=16+random",
    "dt:alpha=64+random",
    "cs+random",
    "edt+random",
    "fab:alpha=8+random",
    "fab:alpha=32+random",
];

/// Number of rules that run on all copies for making choices: the best ones over all traces.
const FINALISTS: usize = 6;

/// Number of additional rules, the best ones of each trace.
const OWN_FINALISTS: usize = 3;

/// Returns the rules that are always among the candidates.
pub fn standard_rules() -> Vec<PolicySpec> {
    let parsed = |rule: &&str| rule.parse().expect("these rules have these parameters");
    STANDARD.iter().map(parsed).collect()
}

/// Returns the low-level heuristic of a rule with its α left open; `None` for a rule without α.
pub(super) fn searchable(rule: &PolicySpec) -> Option<LowLevelPolicy> {
    let aqm = rule.aqm().cloned().map(AqmSpec::closed).transpose().ok()?;
    let rule = rule.clone().without("alpha").with_aqm(aqm);
    rule.to_string().parse().ok()
}

/// Returns true if one mean FCT is less than another; a missing one counts as larger than all others.
pub(super) fn is_less(value: MeanFct, than: MeanFct) -> bool {
    value.unwrap_or(f64::INFINITY) < than.unwrap_or(f64::INFINITY)
}

/// Returns the rule with the least mean FCT on a trace, the first one if several are equal.
pub(super) fn best_of_trace(values: &[MeanFct]) -> usize {
    let better = |best, rule: usize| match is_less(values[rule], values[best]) {
        true => rule,
        false => best,
    };
    (0..values.len()).fold(0, better)
}

/// Returns the rule with the least mean over the traces of the ratio to the first rule, which has finished
/// all of them; the first one if several are equal. `values` are by trace and rule.
pub(super) fn best_of_all(values: &[&[MeanFct]]) -> usize {
    let rules = values.first().map_or(0, |trace| trace.len());
    let means: Vec<MeanFct> = (0..rules)
        .map(|rule| super::mean(&ratios(values, rule)))
        .collect();
    best_of_trace(&means)
}

/// Returns, for each trace, the rules for closer examination, in order: the first rule, which others are
/// relative to, the best ones over all traces, and the best ones of the trace.
pub(super) fn finalists(values: &[Vec<MeanFct>]) -> Vec<Vec<usize>> {
    let traces: Vec<&[MeanFct]> = values
        .iter()
        .map(Vec::as_slice)
        .filter(|trace| trace[0].is_some())
        .collect();
    let rules = values.first().map_or(0, Vec::len);
    let means: Vec<MeanFct> = (0..rules)
        .map(|rule| super::mean(&ratios(&traces, rule)))
        .collect();
    let of_all = first(&means, FINALISTS);
    let of_trace = |trace: &Vec<MeanFct>| {
        let mut chosen = vec![0];
        chosen.extend(&of_all);
        chosen.extend(first(trace, OWN_FINALISTS));
        chosen.sort_unstable();
        chosen.dedup();
        chosen
    };
    values.iter().map(of_trace).collect()
}

/// Returns the indices of the `count` least values.
fn first(values: &[MeanFct], count: usize) -> Vec<usize> {
    let mut places: Vec<usize> = (0..values.len()).collect();
    let key = |place: usize| values[place].unwrap_or(f64::INFINITY);
    places.sort_by(|&a, &b| key(a).total_cmp(&key(b)));
    places.truncate(count);
    places
}

/// Returns the ratio of a rule to the first one on each trace.
fn ratios(values: &[&[MeanFct]], rule: usize) -> Vec<Option<f64>> {
    let ratio = |trace: &&[MeanFct]| super::ratio(trace[rule], trace[0]);
    values.iter().map(ratio).collect()
}

/// Returns every rule with its ratio to the first one, the best first, and those that left flows unfinished
/// last.
pub(super) fn results(
    policies: &[PolicySpec],
    values: &[&[MeanFct]],
    interval: impl Fn(&[f64]) -> Option<Estimate>,
) -> Vec<RuleResult> {
    let mut results: Vec<RuleResult> = policies
        .iter()
        .enumerate()
        .map(|(rule, policy)| {
            let finished: Option<Vec<f64>> = ratios(values, rule).into_iter().collect();
            RuleResult {
                policy: policy.to_string(),
                ratio_to_dt: finished.and_then(|ratios| interval(&ratios)),
                best_on: values
                    .iter()
                    .filter(|trace| best_of_trace(trace) == rule)
                    .count() as u64,
            }
        })
        .collect();
    let key = |result: &RuleResult| {
        result
            .ratio_to_dt
            .map_or(f64::INFINITY, |ratio| ratio.centre)
    };
    results.sort_by(|a, b| key(a).total_cmp(&key(b)));
    results
}

#[cfg(test)]
mod tests {
    use bufgym_sim::scenario::{PRESETS, Scenario};
    use bufgym_sim::switch::Policy as _;
    use bufgym_sim::traffic::generate;
    use bufgym_util::rng::{Split, trace_seed};

    use super::*;
    use bufgym_sim::network::OneSwitch;

    #[test]
    fn the_standard_rules_fit_every_single_switch_and_do_not_push_out() {
        for preset in PRESETS {
            let scenario: Scenario = preset.scenario();
            if scenario.is_fabric() {
                continue;
            }
            let trace = generate(&scenario, trace_seed(Split::Validation, 1, 0));
            for rule in standard_rules() {
                let simulator = rule.simulator::<OneSwitch>(&scenario, &trace).unwrap();
                assert!(!simulator.policy().pushes_out(), "{rule}");
            }
        }
    }

    #[test]
    fn what_has_an_alpha_can_be_searched() {
        let low_level = |rule: &str| {
            let rule: PolicySpec = rule.parse().unwrap();
            searchable(&rule).map(|low_level| low_level.to_string())
        };
        assert_eq!(
            low_level("fab:alpha=32,short_bytes=10000+random:p=0.01").unwrap(),
            "fab:short_bytes=10000+random:p=0.01"
        );
        assert_eq!(low_level("dt:alpha=64").unwrap(), "dt");
        assert_eq!(low_level("dt:alpha=64+early").unwrap(), "dt+early:gap=256");
        assert_eq!(low_level("cs+random"), None);
    }

    #[test]
    fn the_baseline_and_the_best_of_all_and_of_a_trace_are_looked_at_closer() {
        // Rule 9 is the best on one trace and the worst on the others.
        let trace = |ninth: f64| {
            let mut values: Vec<MeanFct> =
                (0..12).map(|rule| Some(100.0 - f64::from(rule))).collect();
            values[9] = Some(ninth);
            values
        };
        let found = finalists(&[trace(1.0), trace(1e4), trace(1e4)]);
        assert_eq!(found[1], [0, 5, 6, 7, 8, 10, 11]);
        assert_eq!(found[0], [0, 5, 6, 7, 8, 9, 10, 11]);
    }

    #[test]
    fn a_rule_that_left_flows_unfinished_is_never_the_best() {
        let first: &[MeanFct] = &[Some(4.0), None, Some(2.0)];
        let second: &[MeanFct] = &[Some(1.0), Some(0.1), Some(1.0)];
        assert_eq!([best_of_trace(first), best_of_trace(second)], [2, 1]);
        assert_eq!(best_of_all(&[first, second]), 2);
        let policies = ["dt", "cs", "st"].map(PolicySpec::named);
        let results = results(&policies, &[first, second], |ratios| {
            crate::stats::bootstrap_mean(ratios, 10, 1)
        });
        let order: Vec<&str> = results.iter().map(|r| r.policy.as_str()).collect();
        assert_eq!(order, ["st", "dt", "cs"]);
        assert_eq!(results[2].ratio_to_dt, None);
        assert_eq!(results[0].best_on, 1);
    }
}
