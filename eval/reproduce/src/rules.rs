//! The rules by which claims about figures of networks are judged.

use bufgym_eval::format;
use bufgym_eval::stats::{Estimate, Spread, mean};
use serde::Deserialize;

use super::claim::{Claim, Kind, Ours, Target};
use super::incast::Regime;
use super::sweep::{Metric, Point, Series, SweepResults};

/// Figure and panel of a claim.
pub(crate) type Place = (&'static str, &'static str);

/// Share up to which two measured values count as equal: a smaller difference is chance, and no order.
const EQUAL: f64 = 0.01;
/// Share up to which two policies are alike.
const ALIKE: f64 = 0.1;
/// Ratio from which two policies are apart.
const APART: f64 = 1.5;
/// Place of a claim about several points.
const MEAN: &str = "mean over the points";

/// The rule of a claim, with the paper's value.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Rule {
    /// Reduction relative to the mean of the others, per cent. The order holds if the reduction has the paper's
    /// sign and exceeds 1 %.
    Reduction(f64),
    /// Reduction of at least so much.
    ReductionFrom(f64),
    /// No reduction: a difference of up to five points agrees, and there is no order.
    Equal,
    /// Reduction relative to the other at the point where it is largest, per cent.
    Largest(f64),
    /// The same at the point and in the panel where it is largest.
    Anywhere(f64),
    /// The series and the other are within 10 % on average over the points.
    OnPar,
    /// The series is below the other on average over the points.
    Below,
    /// The other is so many times as large as the series. The order holds from 1.5 on.
    Ratio(f64),
    /// The series over the other is within these limits.
    Over {
        above: Option<f64>,
        below: Option<f64>,
    },
    /// Value of the series.
    Value(f64),
    /// Increase of the series from the point before, per cent.
    Increase(f64),
    /// The series has a trend over the axis.
    Trend(Trend),
    /// The series grows less over the axis than the other.
    GrowsLess,
    /// The series grows over the axis, and is above the other at its end.
    Outgrows,
    /// At every point, the series and the first other differ by at most a tenth of the second other.
    Alike,
    /// The series and all others are within 10 % on average over the points.
    Similar,
    /// The series and all others are at most so large at every point.
    AtMost(f64),
    /// The largest value of the series is at most so many times as large as the least one.
    Steady(f64),
    /// The series has the same results at every point, seed by seed.
    Constant,
    /// The in-cast tails of all others leave the floor at earlier points than that of the series.
    LeavesLast,
}

/// The trend of a series over the axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Trend {
    /// The last value is above the first.
    Rises,
    /// The last value is below the first.
    Falls,
    /// The last value is not far below the first.
    Holds,
    /// No value is above the previous one, and the last is below the first.
    NeverRises,
    /// Every value is above the previous one.
    Ascends,
}

impl Trend {
    fn words(self) -> &'static str {
        match self {
            Trend::Rises => "rises over the axis",
            Trend::Falls => "falls over the axis",
            Trend::Holds => "does not fall by more than 10 % over the axis",
            Trend::NeverRises => "falls from point to point",
            Trend::Ascends => "rises from point to point",
        }
    }

    fn is_of(self, values: &[f64]) -> Option<bool> {
        let (first, last) = (*values.first()?, *values.last()?);
        let above = |a: f64, b: f64| a > b * (1.0 + EQUAL);
        Some(match self {
            Trend::Rises => above(last, first),
            Trend::Falls => above(first, last),
            Trend::Holds => last >= (1.0 - ALIKE) * first,
            Trend::NeverRises => {
                above(first, last) && values.windows(2).all(|pair| !above(pair[1], pair[0]))
            }
            Trend::Ascends => values.is_sorted_by(|a, b| a < b),
        })
    }
}

/// A part of a remark: the reduction of a series relative to others, or with `apart` the ratio, at the points of
/// the claim. `{}` in its words becomes the value. What is missing is that of the claim.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Also {
    words: String,
    metric: Option<Metric>,
    pub series: Option<String>,
    #[serde(default)]
    pub others: Vec<String>,
    #[serde(default)]
    apart: bool,
}

/// What a claim is about.
#[derive(Clone)]
pub(crate) struct Subject<'a> {
    pub swept: &'a SweepResults<'a>,
    pub panel: Place,
    pub metric: Metric,
    pub series: &'a str,
    pub others: Vec<&'a str>,
    pub points: Vec<&'a Point>,
    pub statement: &'static str,
}

impl Subject<'_> {
    /// Judges the claim.
    pub fn judged(&self, rule: Rule) -> Claim {
        match rule {
            Rule::Reduction(paper) | Rule::Anywhere(paper) => {
                self.reduced(Target::Reduction(paper))
            }
            Rule::ReductionFrom(paper) => self.reduced(Target::AtLeast(paper)),
            Rule::Equal => self.reduced(Target::Reduction(0.0)).ranked(None),
            Rule::Largest(paper) => self.largest(paper),
            Rule::OnPar => {
                let claim = self.order(&self.pair(), self.metric.reduction(), "within 10 %");
                let ours = self.reduction();
                let order = ours.map(|ours| ours.median.abs() <= 100.0 * ALIKE);
                self.found(claim.at(self.place()), ours, order)
            }
            Rule::Below => {
                let claim = self.order(&self.pair(), self.metric.reduction(), "below");
                let ours = self.reduction();
                let order = ours.map(|ours| ours.median > 100.0 * EQUAL);
                self.found(claim.at(self.place()), ours, order)
            }
            Rule::Ratio(paper) => self.ratio(paper),
            Rule::Over { above, below } => {
                let name = format!("{} over {}", self.series, self.other(0));
                let ratio = self.over(self.points[0]);
                let is_within = |ratio: f64| {
                    above.is_none_or(|limit| ratio > limit)
                        && below.is_none_or(|limit| ratio < limit)
                };
                let claim = self.order(&name, self.metric.name(), "within the limits");
                let ours = ratio.and_then(|ratio| Spread::of(vec![ratio]));
                self.found(claim.at(self.place()), ours, ratio.map(is_within))
            }
            Rule::Value(paper) => {
                let claim = self.number(self.series, self.metric.name(), Target::Value(paper));
                self.found(claim.at(self.place()), self.last(self.series), None)
            }
            Rule::Increase(paper) => self.increase(paper),
            Rule::Trend(trend) => self.trend(trend),
            Rule::GrowsLess => self.grows_less(),
            Rule::Outgrows => {
                let [own, other] = [self.series, self.other(0)].map(|name| self.medians(name));
                let claim = self.order(self.series, self.metric.name(), "grows, and is above");
                let order = own.zip(other).and_then(|(own, other)| {
                    let last = own.last()?;
                    Some(own.first()? < last && other.last()? < last)
                });
                self.found(claim.at(self.last_label()), self.last(self.series), order)
            }
            Rule::Alike => self.alike(),
            Rule::Similar => self.similar(),
            Rule::AtMost(limit) => {
                let names = self.all();
                let most = self.medians_of(&names);
                let most = most.map(|all| all.into_iter().flatten().fold(0.0, f64::max));
                let name = names.join(", ");
                let claim = self.order(&name, self.metric.name(), "at most the limit");
                let claim = claim.at("largest over policies and points");
                let order = most.map(|most| most <= limit);
                self.found(claim, most.map(Estimate::exact), order)
            }
            Rule::Steady(limit) => {
                let values = self.medians(self.series);
                let ratio = values.and_then(|values| {
                    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
                    let most = values.iter().copied().fold(0.0, f64::max);
                    Some((Spread::of(vec![most / least])?, most <= limit * least))
                });
                let claim = self.order(self.series, self.metric.name(), "within the limit");
                let order = ratio.as_ref().map(|(_, order)| *order);
                self.found(claim, ratio.map(|(ours, _)| ours), order)
            }
            Rule::Constant => self.constant(),
            Rule::LeavesLast => {
                let at = |series| self.leaves_at(series).unwrap_or(f64::INFINITY);
                let own = at(self.series);
                let order = self.medians_of(&self.all());
                let order = order.map(|_| self.others.iter().all(|other| at(other) < own));
                self.order(self.series, self.metric.name(), "the others earlier")
                    .ranked(order)
            }
        }
    }

    /// Moves to the panel and the point with the largest reduction relative to the first other.
    pub fn move_to_largest(&mut self, panels: impl Iterator<Item = (Place, Metric)> + Clone) {
        let reduction = |(metric, point): (Metric, &Point)| {
            let found = self
                .swept
                .reduction(self.series, &self.others, &[point], metric);
            found.map_or(f64::NEG_INFINITY, |reduction| reduction.median)
        };
        let points = self.points.iter().copied();
        let all = points.flat_map(|point| panels.clone().map(move |panel| (panel, point)));
        let largest = all.max_by(|((_, metric), point), ((_, other), at)| {
            reduction((*metric, point)).total_cmp(&reduction((*other, at)))
        });
        if let Some(((panel, metric), point)) = largest {
            (self.panel, self.metric, self.points) = (panel, metric, vec![point]);
        }
    }

    /// Fills in what a remark says about the results: `{also}` with these parts, `{regimes}`, `{leaving}` and
    /// `{ratios}`. It is empty if it has parts and none can be measured.
    pub fn remark(&self, text: &str, also: &[Also]) -> String {
        let parts: Vec<String> = also.iter().filter_map(|also| self.also(also)).collect();
        if parts.is_empty() && !also.is_empty() {
            return String::new();
        }
        let text = text.replace("{also}", &parts.join(", "));
        let fill = |text: String, name: &str, words: fn(&Self) -> String| match text.contains(name)
        {
            true => text.replace(name, &words(self)),
            false => text,
        };
        let text = fill(text, "{regimes}", Self::regimes);
        let text = fill(text, "{leaving}", Self::leaving);
        fill(text, "{ratios}", Self::ratios)
    }

    fn order(&self, series: &str, metric: &'static str, words: &'static str) -> Claim {
        Claim::order(self.panel, series, metric, self.statement, words)
    }

    fn number(&self, series: &str, metric: &'static str, paper: Target) -> Claim {
        Claim::number(self.panel, series, metric, self.statement, paper)
    }

    /// Sets the measured value and the order, or the reason why a series was not run.
    fn found(&self, claim: Claim, ours: Option<impl Into<Ours>>, order: Option<bool>) -> Claim {
        let ours: Option<Ours> = ours.map(Into::into);
        let missing = ours.is_none() || claim.kind == Kind::Order && order.is_none();
        let names = self.others.iter().chain([&self.series]);
        let refused = names
            .filter(|_| missing)
            .find_map(|name| self.swept.refusal(name));
        claim.measured(ours).ranked(order).not_run(refused)
    }

    fn other(&self, place: usize) -> &str {
        self.others.get(place).copied().unwrap_or_default()
    }

    /// Returns the series and the others.
    fn all(&self) -> Vec<&str> {
        [self.series]
            .into_iter()
            .chain(self.others.iter().copied())
            .collect()
    }

    fn pair(&self) -> String {
        format!("{} vs {}", self.series, self.others.join(", "))
    }

    /// Returns the label of the point, or that of a mean.
    fn place(&self) -> &str {
        match self.points.as_slice() {
            [point] => &point.label,
            _ => MEAN,
        }
    }

    fn last_label(&self) -> &str {
        self.points.last().map_or("", |point| &point.label)
    }

    /// Returns the value of a series at the last point.
    fn last(&self, series: &str) -> Option<Spread> {
        self.swept.value(series, self.points.last()?, self.metric)
    }

    fn median(&self, series: &str, point: &Point) -> Option<f64> {
        Some(self.swept.value(series, point, self.metric)?.median)
    }

    /// Returns the medians of a series at all points.
    fn medians(&self, series: &str) -> Option<Vec<f64>> {
        let points = self.points.iter();
        points.map(|point| self.median(series, point)).collect()
    }

    fn medians_of(&self, series: &[&str]) -> Option<Vec<Vec<f64>>> {
        series.iter().map(|series| self.medians(series)).collect()
    }

    fn reduction(&self) -> Option<Spread> {
        self.swept
            .reduction(self.series, &self.others, &self.points, self.metric)
    }

    fn reduced(&self, paper: Target) -> Claim {
        let ours = self.reduction();
        let sign = match paper {
            Target::Reduction(value) => value.signum(),
            _ => 1.0,
        };
        let claim = self.number(&self.pair(), self.metric.reduction(), paper);
        let order = ours.map(|ours| ours.median * sign > 100.0 * EQUAL);
        self.found(claim.at(self.place()), ours, order)
    }

    fn largest(&self, paper: f64) -> Claim {
        let at = |point: &&Point| {
            self.swept
                .reduction(self.series, &self.others, &[point], self.metric)
        };
        let all: Option<Vec<Spread>> = self.points.iter().map(at).collect();
        let most = all.and_then(|all| all.into_iter().max_by(|a, b| a.median.total_cmp(&b.median)));
        let target = Target::Reduction(paper);
        let claim = self.number(&self.pair(), self.metric.reduction(), target);
        self.found(claim, most, most.map(|most| most.median > 0.0))
    }

    /// Returns a value for every seed from those of two series or points.
    fn by_seed(
        &self,
        [of, from]: [(&str, &Point); 2],
        value: fn(f64, f64) -> f64,
    ) -> Option<Spread> {
        let values = |(series, point)| self.swept.values(series, point, self.metric);
        let (of, from) = values(of).zip(values(from))?;
        Spread::of(
            of.iter()
                .zip(&from)
                .map(|(of, from)| value(*of, *from))
                .collect(),
        )
    }

    fn ratio(&self, paper: f64) -> Claim {
        let (upper, point) = (self.other(0), self.points[0]);
        let ours = self.by_seed([(upper, point), (self.series, point)], |upper, lower| {
            upper / lower
        });
        let name = format!("{upper} vs {}", self.series);
        let claim = self.number(&name, self.metric.name(), Target::Value(paper));
        let order = ours.map(|ours| ours.median > APART);
        self.found(claim.at(self.place()), ours, order)
    }

    fn increase(&self, paper: f64) -> Claim {
        let point = self.points[0];
        let mut pairs = self.swept.sweep.points.windows(2);
        let before = pairs.find(|pair| pair[1] == *point).map(|pair| &pair[0]);
        let ours = before.and_then(|before| {
            let pair = [(self.series, point), (self.series, before)];
            self.by_seed(pair, |last, before| 100.0 * (last / before - 1.0))
        });
        let claim = self.number(self.series, self.metric.name(), Target::Reduction(paper));
        let order = ours.map(|ours| ours.median > 100.0 * EQUAL);
        self.found(claim.at(self.place()), ours, order)
    }

    fn trend(&self, trend: Trend) -> Claim {
        let values = self
            .points
            .iter()
            .map(|point| self.median(self.series, point));
        let values: Vec<Option<f64>> = values.collect();
        let known: Option<Vec<f64>> = values.iter().copied().collect();
        let words = values
            .iter()
            .map(|value| value.map_or_else(|| "–".to_owned(), format::significant));
        let words = format!("Found: {}.", words.collect::<Vec<_>>().join(", "));
        let remark = Some(words).filter(|_| known.is_some() || trend == Trend::Ascends);
        let claim = self.order(self.series, self.metric.name(), trend.words());
        let claim = claim
            .at(self.last_label())
            .remarked(remark.unwrap_or_default());
        let order = known.and_then(|values| trend.is_of(&values));
        self.found(claim, self.last(self.series), order)
    }

    fn grows_less(&self) -> Claim {
        let growth = |series: &str| {
            let values = self.medians(series)?;
            Some(values.last()? - values.first()?)
        };
        let other = self.other(0);
        let both = growth(self.series).zip(growth(other));
        let claim = self.order(self.series, self.metric.name(), "grows less");
        let claim = claim.at("growth over the axis");
        let claim = claim.remarked(growth(other).map_or_else(String::new, |grown| {
            format!("{other}’s grows by {}.", format::significant(grown))
        }));
        let ours = growth(self.series).map(Estimate::exact);
        self.found(claim, ours, both.map(|(own, other)| own < other))
    }

    fn alike(&self) -> Claim {
        let farthest = self.medians_of(&self.all()).map(|all| {
            let apart = (0..all[0].len()).map(|at| match (all[0][at] - all[1][at]).abs() {
                0.0 => 0.0,
                apart => 100.0 * apart / all[2][at],
            });
            apart.fold(0.0, f64::max)
        });
        let name = format!("{} vs {}", self.series, self.other(0));
        let claim = self.order(&name, self.metric.name(), "within 10 %");
        let claim = claim.at("largest over the points");
        let order = farthest.map(|farthest| farthest <= 100.0 * ALIKE);
        self.found(claim, farthest.map(Estimate::exact), order)
    }

    fn similar(&self) -> Claim {
        let names = self.all();
        let apart = self.medians_of(&names).and_then(|all| {
            let at = |place: usize| {
                let values = all.iter().map(|values| values[place]);
                let (least, most) = values.fold((f64::INFINITY, 0.0), |(least, most), value| {
                    (f64::min(least, value), f64::max(most, value))
                });
                100.0 * (most / least - 1.0)
            };
            mean(&(0..self.points.len()).map(at).collect::<Vec<f64>>())
        });
        let quantity = "largest over least of the policies, %";
        let claim = self
            .order(&names.join(", "), quantity, "within 10 %")
            .at(MEAN);
        let claim = claim.remarked(format!("Of the {}.", self.metric.name()));
        let order = apart.map(|apart| apart <= 100.0 * ALIKE);
        self.found(claim, apart.map(Estimate::exact), order)
    }

    fn constant(&self) -> Claim {
        let series = self.swept.sweep.series.iter();
        let same = series
            .filter(|series| series.name == self.series)
            .find_map(|series| {
                let first = self.swept.of(series, self.points.first()?);
                let mut others = self.points.iter().map(|point| self.swept.of(series, point));
                (!first.is_empty()).then(|| others.all(|results| results == first))
            });
        let claim = self.order(self.series, self.metric.name(), "the same at every point");
        let first = self.points.first();
        let ours = first.and_then(|point| self.swept.value(self.series, point, self.metric));
        self.found(claim.at("all points"), ours, same)
    }

    /// Returns the series over the first other at a point.
    fn over(&self, point: &Point) -> Option<f64> {
        Some(self.median(self.series, point)? / self.median(self.other(0), point)?)
    }

    fn also(&self, also: &Also) -> Option<String> {
        let mut other = self.clone();
        other.metric = also.metric.unwrap_or(self.metric);
        other.series = also.series.as_deref().unwrap_or(self.series);
        if !also.others.is_empty() {
            other.others = also.others.iter().map(String::as_str).collect();
        }
        let value = match also.apart {
            true => other.apart(),
            false => format::significant(other.reduction()?.median),
        };
        Some(also.words.replace("{}", &value))
    }

    /// Describes the ratio to the other, and the first point of the axis where both are apart.
    fn apart(&self) -> String {
        let mut points = self.swept.sweep.points.iter();
        let first = points.find(|point| self.over(point).is_some_and(|ratio| ratio > APART));
        let first = first.map_or("none", |point| &point.label);
        let ratio = format::ratio(self.points.first().and_then(|point| self.over(point)));
        format!("{ratio} (above {APART} first at {first})")
    }

    /// Describes the ratio of the first other to the series at all points of the axis.
    fn ratios(&self) -> String {
        let (lower, upper) = (self.series, self.other(0));
        let ratio = |point: &Point| Some(self.median(upper, point)? / self.median(lower, point)?);
        let values: Vec<Option<f64>> = self.swept.sweep.points.iter().map(ratio).collect();
        let known: Vec<f64> = values.iter().copied().flatten().collect();
        let words: Vec<String> = values.into_iter().map(format::ratio).collect();
        let falls = known.is_sorted_by(|a, b| a >= b);
        let trend = if falls { "falling" } else { "not monotone" };
        format!("{}, {trend}", words.join(", "))
    }

    /// Describes the paper's series, each in these words.
    fn of_own(&self, words: impl Fn(&Series) -> String, between: &str) -> String {
        let own = self
            .swept
            .sweep
            .series
            .iter()
            .filter(|series| !series.added);
        own.map(words).collect::<Vec<_>>().join(between)
    }

    /// Describes the regimes of all of the paper's series at the points.
    fn regimes(&self) -> String {
        let of_series = |series: &Series| {
            let at = self.points.iter().map(|point| {
                let regime = self.swept.regime(&series.name, point, self.metric);
                regime.map_or_else(|| "–".to_owned(), |regime| regime.to_string())
            });
            format!("{} {}", series.name, at.collect::<Vec<_>>().join(", "))
        };
        self.of_own(of_series, "; ")
    }

    /// Returns the first point of the axis at which the in-cast tail of a series is not at the floor.
    fn leaves_at(&self, series: &str) -> Option<f64> {
        let mut points = self.swept.sweep.points.iter();
        let beyond = points.find(|point| {
            let regime = self.swept.regime(series, point, self.metric);
            regime.is_some_and(|regime| regime != Regime::Floor)
        });
        beyond.map(|point| point.x)
    }

    /// Describes where the in-cast tails of the paper's series leave the floor.
    fn leaving(&self) -> String {
        let of_series = |series: &Series| match self.leaves_at(&series.name) {
            Some(x) => format!("{} at {x} %", series.name),
            None => format!("{} at none", series.name),
        };
        self.of_own(of_series, ", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trends_compare_the_ends_beyond_chance() {
        for (values, trend, expected) in [
            (vec![1.0, 5.0, 2.0], Trend::Rises, true),
            (vec![1.0, 5.0, 1.005], Trend::Rises, false),
            (vec![2.0, 0.0, 1.0], Trend::Falls, true),
            (vec![2.0, 2.0], Trend::Falls, false),
            (vec![10.0, 4.0, 9.0], Trend::Holds, true),
            (vec![10.0, 12.0, 8.9], Trend::Holds, false),
            (vec![0.0, 0.0], Trend::Holds, true),
            (vec![9.0, 5.0, 5.0, 1.0], Trend::NeverRises, true),
            (vec![9.0, 5.0, 6.0, 1.0], Trend::NeverRises, false),
            (vec![0.0, 0.0], Trend::NeverRises, false),
            (vec![1.0, 1.001, 2.0], Trend::Ascends, true),
            (vec![1.0, 1.0, 2.0], Trend::Ascends, false),
        ] {
            assert_eq!(trend.is_of(&values), Some(expected), "{trend:?} {values:?}");
        }
        assert_eq!(Trend::Rises.is_of(&[]), None);
    }
}
