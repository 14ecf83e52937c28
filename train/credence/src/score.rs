//! The quality of predictions.

use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::policy::{FollowLqd, Forest, LongestQueueDrop};
use bufgym_sim::switch::{OpenLoop, Policy};
use rayon::prelude::*;
use serde::Serialize;

use crate::record::Arrival;

/// Counts of predictions, and the scores of the Credence paper (Appendix C). A loss is the positive
/// class.
#[derive(Clone, Copy, PartialEq, Default, Debug, Serialize)]
pub struct Scores {
    /// Losses that were predicted.
    pub true_positives: u64,
    /// Predicted losses of packets that were kept.
    pub false_positives: u64,
    /// Kept packets for which no loss was predicted.
    pub true_negatives: u64,
    /// Losses that were not predicted.
    pub false_negatives: u64,
    /// Share of right predictions.
    pub accuracy: f64,
    /// Share of losses among the predicted losses.
    pub precision: f64,
    /// Share of losses that were predicted.
    pub recall: f64,
    /// Harmonic mean of precision and recall.
    pub f1: f64,
    /// 1/η (Definition 1) on the same arrivals: packets that FollowLQD sends of those not predicted to be lost, over
    /// packets that LQD sends. `None` where ports have several queues.
    pub error_score: Option<f64>,
}

impl Scores {
    /// Scores a forest on traces.
    pub fn of(forest: &Forest, traces: &[Vec<Arrival>], scenario: &Scenario) -> Scores {
        let mut scores = Scores::default();
        for arrival in traces.iter().flatten() {
            let predicted = forest.predicts_loss(&arrival.features);
            *match (predicted, arrival.lost) {
                (true, true) => &mut scores.true_positives,
                (true, false) => &mut scores.false_positives,
                (false, false) => &mut scores.true_negatives,
                (false, true) => &mut scores.false_negatives,
            } += 1;
        }
        scores.error_score = error_score(forest, traces, scenario);
        scores.complete()
    }

    fn complete(mut self) -> Scores {
        let share = |part: u64, whole: u64| match whole {
            0 => 0.0,
            whole => part as f64 / whole as f64,
        };
        let right = self.true_positives;
        let wrong = self.false_positives + self.false_negatives;
        let all = right + wrong + self.true_negatives;
        self.accuracy = share(right + self.true_negatives, all);
        self.precision = share(right, right + self.false_positives);
        self.recall = share(right, right + self.false_negatives);
        self.f1 = share(2 * right, 2 * right + wrong);
        self
    }
}

fn error_score(forest: &Forest, traces: &[Vec<Arrival>], scenario: &Scenario) -> Option<f64> {
    if scenario.queues.queues_per_port > 1 {
        return None;
    }
    let ports = scenario.port_count();
    let sent = traces.par_iter().map(|arrivals| {
        let followed = arrivals.iter();
        let followed = followed.filter(|arrival| !forest.predicts_loss(&arrival.features));
        (
            transmitted(scenario, FollowLqd::new(ports, 1), followed),
            transmitted(scenario, LongestQueueDrop, arrivals.iter()),
        )
    });
    let (followed, lqd) = sent.reduce(|| (0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
    (lqd > 0).then(|| followed as f64 / lqd as f64)
}

/// Packets that leave a switch with these arrivals.
fn transmitted<'a, P: Policy>(
    scenario: &Scenario,
    policy: P,
    arrivals: impl Iterator<Item = &'a Arrival>,
) -> u64 {
    let (ports, bytes) = (scenario.port_count(), scenario.network.buffer_bytes);
    let mut switch = OpenLoop::new(ports, bytes, scenario.rate(), policy);
    for arrival in arrivals {
        switch.arrive(arrival.at, arrival.queue as usize, u64::from(arrival.bytes));
    }
    switch.finish();
    switch.sent()
}

#[cfg(test)]
mod tests {
    use bufgym_sim::switch::policy::Tree;

    use super::*;
    use crate::record::record;

    #[test]
    fn the_scores_are_those_of_the_counts() {
        let scores = Scores {
            true_positives: 6,
            false_positives: 2,
            true_negatives: 88,
            false_negatives: 4,
            ..Scores::default()
        }
        .complete();
        assert_eq!(
            (scores.accuracy, scores.precision, scores.recall),
            (0.94, 0.75, 0.6)
        );
        assert!((scores.f1 - 2.0 / 3.0).abs() < 1e-12);
        assert_eq!(Scores::default().complete().f1, 0.0);
    }

    /// Without predicted losses this is FollowLQD. If every loss is predicted, nothing is sent.
    #[test]
    fn the_error_score_has_the_right_ends() {
        let scenario = Scenario::default();
        let data = record(&scenario, 1, 2).unwrap();
        let always = |lost: f32| {
            let tree = Tree {
                feature: vec![-1],
                split: vec![0.0],
                left: vec![-1],
                right: vec![-1],
                lost: vec![lost],
            };
            let forest = Forest::new(&[tree], 0.5).unwrap();
            Scores::of(&forest, &data.test, &scenario)
        };
        let keep = always(0.0);
        assert!(keep.error_score.unwrap() > 0.5 && keep.error_score.unwrap() < 1.0);
        assert_eq!((keep.true_positives, keep.false_positives), (0, 0));
        assert_eq!(always(1.0).error_score, Some(0.0));
        assert_eq!(always(1.0).recall, 1.0);
    }
}
