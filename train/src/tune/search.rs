//! The search: a screening of places all over the space, then CMA-ES from the best of them.

use std::collections::HashSet;

use bufgym_agents::Evolution;
use bufgym_sim::switch::PolicySpec;
use rand_xoshiro::Xoshiro256PlusPlus;

use super::space::{Point, Space};

/// Standard deviation of every coordinate in the first generation, as a share of its range.
const START_STEP: f64 = 0.2;

/// Most candidates that are compared at the end.
pub(super) const FINALISTS: usize = 8;

/// Divisor of the simulations: the comparison at the end takes at most this share.
const FINAL_SHARE: u64 = 3;

/// Most traces of a generation.
const MAX_TRACES: u64 = 16;

/// Generations that a search should have at least, as far as it is possible.
const WANTED_GENERATIONS: u64 = 12;

/// The budget of a search. Every set of traces also costs a simulation of DT each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Plan {
    /// Validation traces of the comparison at the end.
    pub(super) validation: u64,
    /// Traces of a generation.
    pub(super) traces: u64,
    /// Candidates of the screening, at most.
    pub(super) screened: usize,
    /// Candidates of a generation.
    pub(super) candidates: usize,
    /// Generations, all starts together.
    pub(super) generations: u64,
}

/// Validation traces at the end of a search with so many simulations.
pub(super) fn validation_traces(simulations: u64, most: u64) -> u64 {
    let share = simulations / FINAL_SHARE / (FINALISTS as u64 + 1);
    share.clamp(1, most)
}

impl Plan {
    /// Spends at most `simulations`, of which there must be enough for one generation.
    pub(super) fn new(simulations: u64, most: u64, space: &Space) -> Plan {
        let dimensions = space.dimensions();
        let candidates = (4 + 3 * dimensions.max(1).ilog2() as usize).max(6);
        let row = candidates as u64 + 1;
        let validation = validation_traces(simulations, most);
        let left = simulations.saturating_sub(validation * (FINALISTS as u64 + 1));
        let traces = (left / (WANTED_GENERATIONS * row)).clamp(2, MAX_TRACES);
        let wanted = space.combinations().len() + 2 * dimensions + 8;
        let affordable = usize::try_from(left / (4 * traces)).unwrap_or(usize::MAX);
        let screened = wanted.min(affordable).max(2);
        let left = left.saturating_sub((screened as u64 + 1) * traces);
        Plan {
            validation,
            traces,
            screened,
            candidates,
            generations: left / (row * traces),
        }
    }

    /// Places from which the evolution starts.
    fn starts(&self) -> usize {
        match self.generations {
            0..8 => 1,
            8..24 => 2,
            _ => 3,
        }
    }
}

/// Measures policies on fresh traces, the same for all of them: a cost each, infinite for one that does
/// not fit the scenario.
pub(super) type Judge<'a, E> = &'a mut dyn FnMut(&[PolicySpec]) -> Result<Vec<f64>, E>;

/// One run of CMA-ES from a start.
struct Leg {
    search: Evolution,
    words: Vec<usize>,
}

impl Leg {
    fn mean(&self, space: &Space) -> PolicySpec {
        space.spec(&self.place(self.search.mean()))
    }

    fn place(&self, numbers: &[f64]) -> Point {
        Point {
            words: self.words.clone(),
            numbers: numbers.to_vec(),
        }
    }

    /// Runs one generation and returns its best candidate. A candidate outside of the ranges gets the value of the edge
    /// and a penalty, so that the distribution comes back.
    fn step<E>(
        &mut self,
        space: &Space,
        candidates: usize,
        rng: &mut Xoshiro256PlusPlus,
        judge: Judge<'_, E>,
    ) -> Result<PolicySpec, E> {
        let places = self.search.ask(candidates, rng);
        let specs: Vec<PolicySpec> = places
            .iter()
            .map(|place| space.spec(&self.place(place)))
            .collect();
        let mut costs = judge(&specs)?;
        let best = order(&costs)[0];
        for (cost, place) in costs.iter_mut().zip(&places) {
            let outside = place.iter().map(|x| x - x.clamp(0.0, 1.0));
            *cost += outside.map(|x| x * x).sum::<f64>();
        }
        self.search.tell(&places, &costs);
        Ok(specs[best].clone())
    }
}

/// Returns indices from the lowest cost to the highest; of equals the first comes first.
fn order(costs: &[f64]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..costs.len()).collect();
    order.sort_by(|&a, &b| costs[a].total_cmp(&costs[b]));
    order
}

/// Searches the space. `given` are policies that are screened unchanged and compared at the end. Returns the policies
/// for the comparison, the given ones first, at most [`FINALISTS`] of them.
pub(super) fn search<E>(
    space: &Space,
    plan: &Plan,
    given: &[PolicySpec],
    rng: &mut Xoshiro256PlusPlus,
    judge: Judge<'_, E>,
) -> Result<Vec<PolicySpec>, E> {
    let screened = screening(space, plan, given, rng);
    if screened.len() < 2 {
        return Ok(given.to_vec());
    }
    let costs = judge(&screened)?;
    let ranked = order(&costs).into_iter().map(|index| &screened[index]);
    let ranked: Vec<&PolicySpec> = ranked.collect();
    let mut found = Vec::new();
    if space.dimensions() > 0 && plan.generations > 0 {
        found = evolve(space, plan, &ranked, rng, judge)?;
    }
    found.extend(ranked.into_iter().take(FINALISTS).cloned());
    Ok(distinct(given.iter().cloned().chain(found), FINALISTS))
}

/// The given policies, every combination of words, and random places.
fn screening(
    space: &Space,
    plan: &Plan,
    given: &[PolicySpec],
    rng: &mut Xoshiro256PlusPlus,
) -> Vec<PolicySpec> {
    let start = space.point(&given[0]);
    let combined = space.combinations().into_iter().map(|words| {
        space.spec(&Point {
            words,
            numbers: start.numbers.clone(),
        })
    });
    let random = match space.dimensions() {
        0 => 0,
        _ => plan.screened,
    };
    let random: Vec<PolicySpec> = (0..random)
        .map(|_| space.spec(&space.random(rng)))
        .collect();
    let all = given.iter().cloned().chain(combined).chain(random);
    distinct(all, plan.screened)
}

/// The first ones without repetitions.
fn distinct(policies: impl Iterator<Item = PolicySpec>, most: usize) -> Vec<PolicySpec> {
    let mut seen = HashSet::new();
    policies
        .filter(|policy| seen.insert(policy.to_string()))
        .take(most)
        .collect()
}

/// Runs CMA-ES from the best places: half of the generations for all of them, the rest for the one with the best mean.
/// Returns the policies that it found, the most promising first.
fn evolve<E>(
    space: &Space,
    plan: &Plan,
    ranked: &[&PolicySpec],
    rng: &mut Xoshiro256PlusPlus,
    judge: Judge<'_, E>,
) -> Result<Vec<PolicySpec>, E> {
    let mut legs: Vec<Leg> = ranked
        .iter()
        .take(plan.starts())
        .map(|policy| {
            let point = space.point(policy);
            let scales = vec![1.0; point.numbers.len()];
            Leg {
                search: Evolution::new(point.numbers, &scales, START_STEP),
                words: point.words,
            }
        })
        .collect();
    let mut left = plan.generations;
    let mut others = Vec::new();
    if legs.len() > 1 {
        // The comparison of the means costs no more than a generation.
        let each = (left / 2 / legs.len() as u64).max(1);
        for leg in &mut legs {
            for _ in 0..each {
                leg.step(space, plan.candidates, rng, judge)?;
            }
        }
        let means: Vec<PolicySpec> = legs.iter().map(|leg| leg.mean(space)).collect();
        let best = order(&judge(&means)?)[0];
        left = left.saturating_sub(each * legs.len() as u64 + 1);
        legs.swap(0, best);
        others = legs.iter().map(|leg| leg.mean(space)).collect();
    }
    let leg = &mut legs[0];
    let mut last = None;
    let mut halfway = None;
    for generation in 0..left {
        last = Some(leg.step(space, plan.candidates, rng, judge)?);
        if generation == left / 2 {
            halfway = Some(leg.mean(space));
        }
    }
    let found = [Some(leg.mean(space)), last, halfway];
    Ok(found.into_iter().flatten().chain(others).collect())
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use bufgym_sim::scenario::Scenario;
    use bufgym_util::rng::stream;

    use super::*;

    fn number(spec: &PolicySpec, key: &str) -> f64 {
        let own = spec.text(key);
        let managed = spec.aqm().and_then(|aqm| aqm.text(key));
        own.or(managed).unwrap().parse().unwrap()
    }

    /// Distance on a log scale from an optimum.
    fn distance(spec: &PolicySpec, optimum: &[(&str, f64)]) -> f64 {
        optimum
            .iter()
            .map(|&(key, best)| (number(spec, key) / best).ln().powi(2))
            .sum()
    }

    fn best(
        policy: &str,
        simulations: u64,
        cost: impl Fn(&PolicySpec) -> f64,
    ) -> (PolicySpec, u64) {
        let base: PolicySpec = policy.parse().unwrap();
        let space = Space::new(&base, &Scenario::default());
        let plan = Plan::new(simulations, 64, &space);
        let mut rng = stream(1, "test", 0);
        let mut judged = 0;
        let finalists = search(&space, &plan, &[space.default()], &mut rng, &mut |specs| {
            judged += (specs.len() as u64 + 1) * plan.traces;
            Ok::<_, Infallible>(specs.iter().map(&cost).collect())
        });
        let finalists = finalists.unwrap();
        assert_eq!(finalists[0], space.default());
        let last = (finalists.len() as u64 + 1) * plan.validation;
        let costs: Vec<f64> = finalists.iter().map(&cost).collect();
        (finalists[order(&costs)[0]].clone(), judged + last)
    }

    #[test]
    fn an_optimum_on_a_log_scale_with_whole_numbers_is_found() {
        let optimum = [
            ("alpha", 40.0),
            ("c1", 2.0),
            ("c2", 900.0),
            ("t1_us", 30.0),
            ("t2_us", 70_000.0),
        ];
        // The derived c2 of EDT does not follow from the default, which is the worst.
        let cost = |spec: &PolicySpec| match spec.text("c2") {
            Some(_) => distance(spec, &optimum),
            None => 1e3,
        };
        let (found, _) = best("edt", 8_000, cost);
        assert!(distance(&found, &optimum) < 0.1, "{found}");
        assert_eq!(number(&found, "c1"), 2.0);
    }

    #[test]
    fn both_parts_and_the_words_are_searched_together() {
        let optimum = [("alpha", 50.0), ("min_bytes", 30_000.0), ("max_p", 0.05)];
        let cost = |spec: &PolicySpec| {
            let gentle = spec.aqm().and_then(|aqm| aqm.text("gentle")) == Some("no");
            let bytes = number(spec, "max_bytes") > number(spec, "min_bytes");
            match (bytes, gentle) {
                (false, _) => f64::INFINITY,
                (_, true) => distance(spec, &optimum),
                (_, false) => 20.0 + distance(spec, &optimum),
            }
        };
        let (found, _) = best("dt+red", 8_000, cost);
        assert!(cost(&found) < 0.2, "{found}");
    }

    #[test]
    fn no_more_simulations_are_spent_than_given() {
        for policy in ["dt", "st", "cs+red", "ib+pie", "abm", "credence"] {
            for simulations in [100, 333, 1_500, 20_000] {
                let (_, spent) = best(policy, simulations, |spec| spec.to_string().len() as f64);
                assert!(spent <= simulations, "{policy} {simulations}: {spent}");
            }
        }
    }

    #[test]
    fn a_number_at_the_end_of_its_range_is_reached() {
        let (found, _) = best("dt", 3_000, |spec| -number(spec, "alpha"));
        assert_eq!(found.to_string(), "dt:alpha=4096");
    }
}
