//! Grades the agreement of a measurement with a claim: by rules, never manually.

use std::fmt;

use bufgym_eval::stats::{Estimate, Spread};

/// Ratios of the measured value to the paper's that agree.
const AGREES: (f64, f64) = (0.8, 1.25);
/// Ratios that agree in factor.
const FACTOR: (f64, f64) = (0.67, 1.5);
/// Points of per cent by which a reduction may differ.
const POINTS: f64 = 5.0;
/// Share beyond which two values of the paper differ enough for their order to count.
const APART: f64 = 0.1;

/// The paper's value.
#[derive(Clone, Debug, PartialEq)]
pub enum Target {
    /// A number.
    Value(f64),
    /// A reduction in per cent.
    Reduction(f64),
    /// A lower limit.
    AtLeast(f64),
    /// An upper limit.
    AtMost(f64),
    /// A range.
    Between(f64, f64),
    /// A ranking, in words.
    Order(&'static str),
    /// The paper says too little for a comparison; contains the reason.
    Open(&'static str),
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Value(value) | Target::Reduction(value) => write!(f, "{value}"),
            Target::AtLeast(limit) => write!(f, ">= {limit}"),
            Target::AtMost(limit) => write!(f, "<= {limit}"),
            Target::Between(low, high) => write!(f, "{low} to {high}"),
            Target::Order(words) => f.write_str(words),
            Target::Open(_) => Ok(()),
        }
    }
}

/// The measured value with its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Ours {
    /// A mean with its confidence interval; both ends equal the mean if it is exact.
    Interval(Estimate),
    /// A median with the least and the largest value. No verdict reads these.
    Range(Spread),
}

impl Ours {
    /// Returns the mean or the median.
    pub fn value(&self) -> f64 {
        match self {
            Ours::Interval(interval) => interval.centre,
            Ours::Range(range) => range.median,
        }
    }

    /// Returns the lower and the upper end of the interval or the range.
    pub fn ends(&self) -> [f64; 2] {
        match self {
            Ours::Interval(interval) => [interval.low, interval.high],
            Ours::Range(range) => [range.least, range.largest],
        }
    }

    /// Returns the kind of the ends, for the column `ends` of `verdicts.csv`.
    pub fn kind(&self) -> &'static str {
        match self {
            Ours::Interval(_) => "interval",
            Ours::Range(_) => "range",
        }
    }
}

impl From<Estimate> for Ours {
    fn from(interval: Estimate) -> Ours {
        Ours::Interval(interval)
    }
}

impl From<Spread> for Ours {
    fn from(range: Spread) -> Ours {
        Ours::Range(range)
    }
}

/// The agreement of a measurement with a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// The ratio of the measured value to the paper's is within 0.8 to 1.25, a reduction is within 5 points,
    /// a limit holds, or the paper's value is inside the measured confidence interval. A range over seeds is
    /// no confidence interval.
    Agrees,
    /// The ratio is within 0.67 to 1.5.
    InFactor,
    /// The order of the series is the paper's.
    InRanking,
    /// None of the above.
    Differs,
    /// The paper says too little, or nothing could be measured.
    NotComparable,
}

/// A grade with its reason, for `verdicts.csv`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// [`Grade::Agrees`].
    Agrees,
    /// [`Grade::InFactor`].
    AgreesInFactor,
    /// [`Grade::InRanking`].
    AgreesInRanking,
    /// [`Grade::Differs`], and the variant that closes the gap, or `unexplained`.
    Differs(String),
    /// [`Grade::NotComparable`], and the reason.
    NotComparable(String),
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Verdict::Agrees => f.write_str("agrees"),
            Verdict::AgreesInFactor => f.write_str("agrees in factor"),
            Verdict::AgreesInRanking => f.write_str("agrees in ranking"),
            Verdict::Differs(reason) => write!(f, "differs: {reason}"),
            Verdict::NotComparable(reason) => write!(f, "not comparable: {reason}"),
        }
    }
}

impl Grade {
    /// All grades, the best first.
    pub const ALL: [Grade; 5] = [
        Grade::Agrees,
        Grade::InFactor,
        Grade::InRanking,
        Grade::Differs,
        Grade::NotComparable,
    ];

    /// Returns the name on the page and in counts.
    pub fn name(self) -> &'static str {
        match self {
            Grade::Agrees => "agrees",
            Grade::InFactor => "agrees in factor",
            Grade::InRanking => "agrees in ranking",
            Grade::Differs => "differs",
            Grade::NotComparable => "not comparable",
        }
    }
}

/// Grades the agreement of `ours` with the paper's value. `order` is true if the order of the series is the
/// paper's, if the claim implies one.
///
/// A number that is too far away agrees in ranking if the order is right. A claim about an order only cannot
/// get a better grade than that.
pub fn grade(paper: &Target, ours: Option<&Ours>, order: Option<bool>) -> Grade {
    let by_order = match order {
        Some(true) => Grade::InRanking,
        Some(false) => Grade::Differs,
        None if matches!(paper, Target::Order(_)) => Grade::NotComparable,
        None => Grade::Differs,
    };
    let ours = ours.filter(|ours| ours.value().is_finite());
    match (paper, ours) {
        (Target::Open(_), _) => Grade::NotComparable,
        (Target::Order(_), _) => by_order,
        (_, None) => Grade::NotComparable,
        (_, Some(ours)) if agrees(paper, ours) => Grade::Agrees,
        (_, Some(ours)) if agrees_in_factor(paper, ours.value()) => Grade::InFactor,
        _ => by_order,
    }
}

fn within((low, high): (f64, f64), ratio: f64) -> bool {
    (low..=high).contains(&ratio)
}

fn agrees(paper: &Target, ours: &Ours) -> bool {
    let contains = |value: f64| match ours {
        Ours::Interval(interval) => interval.low <= value && value <= interval.high,
        Ours::Range(_) => false,
    };
    let found = ours.value();
    match *paper {
        Target::Value(value) => within(AGREES, found / value) || contains(value),
        Target::Reduction(points) => (found - points).abs() <= POINTS || contains(points),
        Target::AtLeast(limit) => found >= limit || contains(limit),
        Target::AtMost(limit) => found <= limit || contains(limit),
        Target::Between(low, high) => within((low, high), found) || contains(low) || contains(high),
        Target::Order(_) | Target::Open(_) => false,
    }
}

fn agrees_in_factor(paper: &Target, ours: f64) -> bool {
    match *paper {
        Target::Value(value) | Target::Reduction(value) => within(FACTOR, ours / value),
        Target::AtLeast(limit) => ours / limit >= FACTOR.0,
        Target::AtMost(limit) => limit > 0.0 && ours / limit <= FACTOR.1,
        Target::Between(low, high) => ours / low >= FACTOR.0 && ours / high <= FACTOR.1,
        Target::Order(_) | Target::Open(_) => false,
    }
}

/// Returns true if the values are in strictly ascending order; `None` with fewer than two values, or if one
/// is not a number.
pub fn ascending(values: &[Option<f64>]) -> Option<bool> {
    let values: Vec<f64> = values.iter().copied().collect::<Option<_>>()?;
    let comparable = values.len() > 1 && values.iter().all(|value| value.is_finite());
    comparable.then(|| values.is_sorted_by(|a, b| a < b))
}

/// Does the same as [`same_order`], but only for the pairs with the one at `place`.
pub(crate) fn order_with(pairs: &[(f64, f64)], place: usize) -> Option<bool> {
    let own = *pairs.get(place)?;
    let others = pairs
        .iter()
        .enumerate()
        .filter(|(other, _)| *other != place);
    let known: Vec<bool> = others
        .filter_map(|(_, other)| same_order(&[own, *other]))
        .collect();
    (!known.is_empty()).then(|| known.iter().all(|same| *same))
}

/// Returns true if the measured values have the order of the paper's wherever those differ by more than 10 %
/// of the larger. A pair is the paper's value and the measured one. `None` if no two of the paper's values
/// differ so much.
pub(crate) fn same_order(pairs: &[(f64, f64)]) -> Option<bool> {
    let mut known = None;
    for (index, &(paper, ours)) in pairs.iter().enumerate() {
        for &(other_paper, other_ours) in &pairs[index + 1..] {
            let apart = (paper - other_paper).abs() > APART * paper.abs().max(other_paper.abs());
            if apart {
                let same = (paper < other_paper) == (ours < other_ours) && ours != other_ours;
                known = Some(known.unwrap_or(true) && same);
            }
        }
    }
    known
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exactly(mean: f64) -> Ours {
        interval(mean, mean, mean)
    }

    fn interval(centre: f64, low: f64, high: f64) -> Ours {
        Estimate { centre, low, high }.into()
    }

    fn judge(paper: &Target, ours: f64, order: Option<bool>) -> Grade {
        grade(paper, Some(&exactly(ours)), order)
    }

    #[test]
    fn the_order_of_one_series_among_others_counts_its_own_pairs() {
        let pairs = [(10.0, 9.0), (100.0, 50.0), (105.0, 40.0), (20.0, 60.0)];
        // The second and the third are too close for their own order.
        assert_eq!(order_with(&pairs, 0), Some(true));
        assert_eq!(order_with(&pairs, 1), Some(false));
        assert_eq!(order_with(&pairs[..3], 1), Some(true));
        assert_eq!(order_with(&pairs[1..3], 0), None);
        assert_eq!(order_with(&pairs, 4), None);
        // Equal measured values have no order, although the paper's differ.
        assert_eq!(order_with(&[(1.0, 3.0), (2.0, 3.0)], 0), Some(false));
    }

    #[test]
    fn a_number_agrees_by_ratio_then_in_factor_then_in_ranking() {
        let ten = Target::Value(10.0);
        let cases = [
            (8.0, Grade::Agrees),
            (12.5, Grade::Agrees),
            (7.99, Grade::InFactor),
            (12.51, Grade::InFactor),
            (6.7, Grade::InFactor),
            (15.0, Grade::InFactor),
            (6.69, Grade::InRanking),
            (15.01, Grade::InRanking),
        ];
        for (ours, expected) in cases {
            assert_eq!(judge(&ten, ours, Some(true)), expected, "{ours}");
        }
        assert_eq!(judge(&ten, 20.0, Some(false)), Grade::Differs);
        assert_eq!(judge(&ten, 20.0, None), Grade::Differs);
        assert_eq!(judge(&Target::Value(0.0), 1.0, None), Grade::Differs);
    }

    #[test]
    fn a_value_inside_the_interval_agrees_whatever_the_ratio() {
        let ten = Target::Value(10.0);
        let wide = interval(20.0, 9.0, 30.0);
        assert_eq!(grade(&ten, Some(&wide), None), Grade::Agrees);
        let beside = interval(20.0, 11.0, 30.0);
        assert_eq!(grade(&ten, Some(&beside), None), Grade::Differs);
        let reduction = Target::Reduction(10.0);
        assert_eq!(grade(&reduction, Some(&wide), None), Grade::Agrees);
    }

    /// Two seeds on both sides of the paper's value only show that the seeds differ.
    #[test]
    fn a_range_over_seeds_is_never_judged_as_an_interval() {
        let cases = [
            (Target::Value(10.0), Grade::Differs),
            (Target::Reduction(10.0), Grade::Differs),
            (Target::AtLeast(29.0), Grade::InFactor),
            (Target::AtMost(15.0), Grade::InFactor),
            (Target::Between(29.0, 30.0), Grade::InFactor),
        ];
        for (paper, expected) in cases {
            let range: Ours = Spread::of(vec![9.0, 31.0]).unwrap().into();
            assert_eq!(grade(&paper, Some(&range), None), expected, "{paper}");
            let wide = interval(20.0, 9.0, 31.0);
            assert_eq!(grade(&paper, Some(&wide), None), Grade::Agrees, "{paper}");
        }
        let near: Ours = Spread::of(vec![9.0, 11.0]).unwrap().into();
        assert_eq!(
            grade(&Target::Value(10.0), Some(&near), None),
            Grade::Agrees
        );
    }

    #[test]
    fn a_reduction_agrees_within_five_points() {
        let forty = Target::Reduction(40.0);
        let cases = [
            (35.0, Grade::Agrees),
            (45.0, Grade::Agrees),
            (45.1, Grade::InFactor),
            (60.0, Grade::InFactor),
            (60.1, Grade::Differs),
            (26.0, Grade::Differs),
        ];
        for (ours, expected) in cases {
            assert_eq!(judge(&forty, ours, None), expected, "{ours}");
        }
        // By ratio, 4 of 8 would differ.
        assert_eq!(judge(&Target::Reduction(8.0), 4.0, None), Grade::Agrees);
        assert_eq!(judge(&Target::Reduction(0.0), -4.9, None), Grade::Agrees);
        assert_eq!(judge(&Target::Reduction(0.0), -5.1, None), Grade::Differs);
    }

    #[test]
    fn limits_and_ranges_are_kept_or_missed_by_a_factor() {
        let least = Target::AtLeast(90.0);
        assert_eq!(judge(&least, 99.0, None), Grade::Agrees);
        assert_eq!(judge(&least, 89.0, None), Grade::InFactor);
        assert_eq!(judge(&least, 60.0, None), Grade::Differs);
        let near = interval(89.0, 80.0, 92.0);
        assert_eq!(grade(&least, Some(&near), None), Grade::Agrees);
        let most = Target::AtMost(0.4);
        assert_eq!(judge(&most, 0.01, None), Grade::Agrees);
        assert_eq!(judge(&most, 0.5, None), Grade::InFactor);
        assert_eq!(judge(&most, 0.7, Some(true)), Grade::InRanking);
        let none = Target::AtMost(0.0);
        assert_eq!(judge(&none, 0.0, None), Grade::Agrees);
        assert_eq!(judge(&none, 0.1, None), Grade::Differs);
        let range = Target::Between(2.0, 100.0);
        assert_eq!(judge(&range, 2.0, None), Grade::Agrees);
        assert_eq!(judge(&range, 150.0, None), Grade::InFactor);
        assert_eq!(judge(&range, 1.34, None), Grade::InFactor);
        assert_eq!(judge(&range, 1.0, None), Grade::Differs);
    }

    #[test]
    fn an_order_can_only_agree_in_ranking() {
        let order = Target::Order("a < b");
        assert_eq!(judge(&order, 1.0, Some(true)), Grade::InRanking);
        assert_eq!(judge(&order, 1.0, Some(false)), Grade::Differs);
        assert_eq!(judge(&order, 1.0, None), Grade::NotComparable);
        assert_eq!(grade(&order, None, Some(true)), Grade::InRanking);
    }

    #[test]
    fn what_the_paper_leaves_open_or_was_not_measured_is_not_comparable() {
        let open = Target::Open("no setting is given");
        assert_eq!(judge(&open, 1.0, Some(true)), Grade::NotComparable);
        let number = Target::Value(1.0);
        assert_eq!(grade(&number, None, Some(true)), Grade::NotComparable);
        assert_eq!(judge(&number, f64::NAN, Some(true)), Grade::NotComparable);
    }

    #[test]
    fn orders_of_values() {
        let values = |values: &[f64]| values.iter().map(|v| Some(*v)).collect::<Vec<_>>();
        assert_eq!(ascending(&values(&[1.0, 2.0, 3.0])), Some(true));
        assert_eq!(ascending(&values(&[1.0, 1.0])), Some(false));
        assert_eq!(ascending(&values(&[1.0])), None);
        assert_eq!(ascending(&values(&[1.0, f64::NAN])), None);
        assert_eq!(ascending(&[Some(1.0), None]), None);
    }

    #[test]
    fn an_order_counts_where_the_paper_s_values_are_apart() {
        // 100 and 105 are within 10 %, so their order does not matter.
        let pairs = [(100.0, 7.0), (105.0, 6.0), (200.0, 9.0)];
        assert_eq!(same_order(&pairs), Some(true));
        assert_eq!(same_order(&[(100.0, 7.0), (200.0, 6.0)]), Some(false));
        assert_eq!(same_order(&[(100.0, 7.0), (200.0, 7.0)]), Some(false));
        assert_eq!(same_order(&[(100.0, 7.0), (101.0, 6.0)]), None);
        assert_eq!(same_order(&[]), None);
    }

    #[test]
    fn verdicts_are_written_with_their_reason() {
        assert_eq!(Verdict::Agrees.to_string(), "agrees");
        assert_eq!(Verdict::AgreesInFactor.to_string(), "agrees in factor");
        assert_eq!(Verdict::AgreesInRanking.to_string(), "agrees in ranking");
        let differs = Verdict::Differs("unexplained".to_owned());
        assert_eq!(differs.to_string(), "differs: unexplained");
        let open = Verdict::NotComparable("no sizes".to_owned());
        assert_eq!(open.to_string(), "not comparable: no sizes");
    }
}
