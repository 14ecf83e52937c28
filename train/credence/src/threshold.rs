//! The threshold: the share of lost arrivals from which on a loss is predicted.

use bufgym_sim::switch::policy::{Forest, ForestError, Tree};
use rayon::prelude::*;

use crate::record::Arrival;

/// The threshold with the best F1 on these traces. Losses are rare, so with a threshold of one half
/// a forest of shallow trees predicts hardly any of them.
///
/// # Errors
/// When the trees cannot be used.
pub fn best_threshold(trees: &[Tree], traces: &[Vec<Arrival>]) -> Result<f32, ForestError> {
    let forest = Forest::new(trees, 1.0)?;
    let arrivals = traces.par_iter().flatten_iter();
    let mut votes: Vec<(f32, bool)> = arrivals
        .map(|arrival| (forest.votes(&arrival.features), arrival.lost))
        .collect();
    votes.par_sort_unstable_by(|a, b| b.0.total_cmp(&a.0));
    let all_lost = votes.iter().filter(|(_, lost)| *lost).count();
    let limit = best_limit(&votes, all_lost);
    Ok(limit / trees.len() as f32)
}

/// The limit with the best F1, half way to the next lower vote. `votes` are in descending order.
fn best_limit(votes: &[(f32, bool)], all_lost: usize) -> f32 {
    let (mut best, mut limit, mut found) = (-1.0, 1.0, 0);
    for (index, (vote, lost)) in votes.iter().enumerate() {
        found += usize::from(*lost);
        let next = votes.get(index + 1).map_or(0.0, |(vote, _)| *vote);
        if next == *vote || *vote == 0.0 {
            continue;
        }
        let predicted = index + 1;
        let f1 = 2.0 * found as f64 / (predicted + all_lost) as f64;
        if f1 > best {
            (best, limit) = (f1, f32::midpoint(*vote, next));
        }
    }
    limit
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_separates_what_can_be_separated() {
        let votes = [(0.9, true), (0.6, true), (0.2, false), (0.0, false)];
        let limit = best_limit(&votes, 2);
        assert!(0.2 < limit && limit < 0.6, "{limit}");
    }

    /// The first alone has F1 2/3; so have the four above 0.1, all five 4/7.
    #[test]
    fn equal_votes_fall_on_the_same_side() {
        let votes = [
            (0.9, true),
            (0.4, false),
            (0.4, true),
            (0.4, false),
            (0.1, false),
        ];
        let limit = best_limit(&votes, 2);
        assert!(limit > 0.4, "{limit}");
        let limit = best_limit(&votes[1..], 1);
        assert!(0.1 < limit && limit < 0.4, "{limit}");
    }
}
