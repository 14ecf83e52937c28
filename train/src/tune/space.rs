//! The search space: the parameters of a policy and of its queue management, as points of a unit cube and as policies.

use std::borrow::Cow;

use bufgym_sim::scenario::{Scenario, Tier};
use bufgym_sim::switch::policy::{Kind, Scale, Search};
use bufgym_sim::switch::{ParameterInfo, PolicySpec};
use bufgym_util::rng;
use rand_xoshiro::Xoshiro256PlusPlus;
use serde::Serialize;

/// A value this close to an end of its range, as a share of the range, is at the edge.
const EDGE: f64 = 0.01;

/// A tuned parameter at an edge of the searched range: a wider range might have better values.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Edge {
    /// Name of the parameter; for queue management the name of the discipline stands before it.
    pub parameter: String,
    /// Value of the parameter.
    pub value: f64,
    /// The least value searched.
    pub low: f64,
    /// The greatest value searched.
    pub high: f64,
}

impl Edge {
    /// Returns a note such as `max_p=1 of 0.00001..1`.
    pub fn note(&self) -> String {
        format!(
            "{}={} of {}..{}",
            self.parameter, self.value, self.low, self.high
        )
    }
}

/// Owner of a parameter.
#[derive(Clone, Copy, Debug)]
enum Part {
    Policy,
    Aqm,
}

/// A number that is searched.
#[derive(Clone, Debug)]
struct Number {
    part: Part,
    info: &'static ParameterInfo,
    low: f64,
    high: f64,
    scale: Scale,
    /// Coordinate of a derived default.
    start: f64,
}

/// A choice between words.
#[derive(Clone, Debug)]
struct Choice {
    part: Part,
    info: &'static ParameterInfo,
    words: &'static [&'static str],
}

/// The parameters that are searched.
#[derive(Clone, Debug)]
pub(crate) struct Space {
    /// Policy with the parameters that are not searched.
    base: PolicySpec,
    numbers: Vec<Number>,
    choices: Vec<Choice>,
    fixed: Vec<String>,
}

/// A place in the space.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Point {
    /// Index of the word of every choice.
    pub(crate) words: Vec<usize>,
    /// Every number, 0 at its least value and 1 at its greatest.
    pub(crate) numbers: Vec<f64>,
}

impl Number {
    fn new(
        part: Part,
        info: &'static ParameterInfo,
        scenario: &Scenario,
    ) -> Option<Result<Number, ()>> {
        let Search::Range(range) = info.search else {
            return None;
        };
        let (low, high) = (range.low.value(scenario), range.high.value(scenario));
        let (low, high) = match is_whole(info.kind) {
            true => (low.ceil().max(1.0), high.floor()),
            false => (low, high),
        };
        if low >= high {
            return Some(Err(()));
        }
        let mut number = Number {
            part,
            info,
            low,
            high,
            scale: range.scale,
            start: 0.5,
        };
        if let Some(derived) = range.derived {
            number.start = number.coordinate(derived.value(scenario));
        }
        Some(Ok(number))
    }

    /// Returns the coordinate of a value, from 0 to 1.
    fn coordinate(&self, value: f64) -> f64 {
        let value = value.clamp(self.low, self.high);
        match self.scale {
            Scale::Log => libm::log(value / self.low) / libm::log(self.high / self.low),
            Scale::Linear => (value - self.low) / (self.high - self.low),
        }
    }

    /// Returns the value at a coordinate: a whole number, or one of three digits.
    fn value(&self, coordinate: f64) -> f64 {
        let share = coordinate.clamp(0.0, 1.0);
        let exact = match self.scale {
            Scale::Log => self.low * libm::exp(libm::log(self.high / self.low) * share),
            Scale::Linear => self.low + (self.high - self.low) * share,
        };
        let rounded = match is_whole(self.info.kind) {
            true => exact.round(),
            false => format!("{exact:.2e}").parse().unwrap_or(exact),
        };
        rounded.clamp(self.low, self.high)
    }

    fn name(&self, base: &PolicySpec) -> String {
        name(self.part, self.info, base)
    }
}

fn name(part: Part, info: &ParameterInfo, base: &PolicySpec) -> String {
    match (part, base.aqm()) {
        (Part::Aqm, Some(aqm)) => format!("{} {}", aqm.name(), info.name),
        _ => info.name.to_owned(),
    }
}

fn is_whole(kind: Kind) -> bool {
    matches!(kind, Kind::Count | Kind::Bytes)
}

/// The text of a parameter.
fn text<'a>(spec: &'a PolicySpec, part: Part, key: &str) -> Option<&'a str> {
    match part {
        Part::Policy => spec.text(key),
        Part::Aqm => spec.aqm()?.text(key),
    }
}

/// Returns the policy with another value of a parameter, or unchanged if there is no such value.
fn with(spec: PolicySpec, part: Part, key: &str, value: &str) -> PolicySpec {
    match part {
        Part::Policy => spec.clone().with(key, value).unwrap_or(spec),
        Part::Aqm => {
            let aqm = spec.aqm().cloned();
            let set = aqm.clone().and_then(|aqm| aqm.with(key, value).ok());
            spec.with_aqm(set.or(aqm))
        }
    }
}

/// Returns the scenario of a leaf, or of the only switch.
fn at_leaf(scenario: &Scenario) -> Cow<'_, Scenario> {
    match scenario.is_fabric() {
        true => Cow::Owned(scenario.at_switch(Tier::Leaf)),
        false => Cow::Borrowed(scenario),
    }
}

impl Space {
    /// Creates the space of a policy and its queue management in a scenario. In a network the ranges are those of a
    /// leaf.
    pub(crate) fn new(base: &PolicySpec, scenario: &Scenario) -> Space {
        let scenario = &*at_leaf(scenario);
        let mut space = Space {
            base: base.clone(),
            numbers: Vec::new(),
            choices: Vec::new(),
            fixed: Vec::new(),
        };
        let own = base.info().parameters.iter();
        let managed = base.aqm().map_or(&[][..], |aqm| aqm.info().parameters);
        let own = own.map(|info| (Part::Policy, info));
        for (part, info) in own.chain(managed.iter().map(|info| (Part::Aqm, info))) {
            space.add(part, info, scenario);
        }
        space
    }

    fn add(&mut self, part: Part, info: &'static ParameterInfo, scenario: &Scenario) {
        let with_ecn = scenario.uses_ecn();
        match (info.search, info.kind) {
            (Search::Marking, _) if !with_ecn => self.fixed.push(name(part, info, &self.base)),
            (Search::Words | Search::Marking, Kind::Choice(words)) => {
                self.choices.push(Choice { part, info, words });
            }
            _ => match Number::new(part, info, scenario) {
                Some(Ok(number)) => self.numbers.push(number),
                _ => self.fixed.push(name(part, info, &self.base)),
            },
        }
    }

    /// Returns the number of numbers that are searched.
    pub(crate) fn dimensions(&self) -> usize {
        self.numbers.len()
    }

    /// Names of the parameters that are not searched.
    pub(crate) fn fixed(&self) -> &[String] {
        &self.fixed
    }

    /// The policy with the default of every parameter that is searched.
    pub(crate) fn default(&self) -> PolicySpec {
        let numbers = self.numbers.iter().map(|number| (number.part, number.info));
        let choices = self.choices.iter().map(|choice| (choice.part, choice.info));
        numbers
            .chain(choices)
            .fold(self.base.clone(), |spec, (part, info)| match part {
                Part::Policy => spec.without(info.name),
                Part::Aqm => {
                    let aqm = spec.aqm().cloned().map(|aqm| aqm.without(info.name));
                    spec.with_aqm(aqm)
                }
            })
    }

    /// The place of a policy.
    pub(crate) fn point(&self, spec: &PolicySpec) -> Point {
        let word = |choice: &Choice| {
            let given = text(spec, choice.part, choice.info.name)?;
            choice.words.iter().position(|&word| word == given)
        };
        let number = |number: &Number| {
            let given = text(spec, number.part, number.info.name)?;
            given
                .parse()
                .ok()
                .map(|value: f64| number.coordinate(value))
        };
        Point {
            words: self.choices.iter().map(|c| word(c).unwrap_or(0)).collect(),
            numbers: self
                .numbers
                .iter()
                .map(|n| number(n).unwrap_or(n.start))
                .collect(),
        }
    }

    /// The policy at a place.
    pub(crate) fn spec(&self, point: &Point) -> PolicySpec {
        let words = self.choices.iter().zip(&point.words);
        let spec = words.fold(self.base.clone(), |spec, (choice, &word)| {
            with(spec, choice.part, choice.info.name, choice.words[word])
        });
        let numbers = self.numbers.iter().zip(&point.numbers);
        numbers.fold(spec, |spec, (number, &coordinate)| {
            let value = number.value(coordinate).to_string();
            with(spec, number.part, number.info.name, &value)
        })
    }

    /// Every combination of words.
    pub(crate) fn combinations(&self) -> Vec<Vec<usize>> {
        let mut all = vec![Vec::new()];
        for choice in &self.choices {
            let longer = |words: &Vec<usize>| {
                let words = words.clone();
                (0..choice.words.len()).map(move |word| [words.clone(), vec![word]].concat())
            };
            all = all.iter().flat_map(longer).collect();
        }
        all
    }

    /// A random place.
    pub(crate) fn random(&self, rng: &mut Xoshiro256PlusPlus) -> Point {
        let word = |choice: &Choice, rng: &mut _| {
            usize::try_from(rng::below(rng, choice.words.len() as u64)).unwrap_or(0)
        };
        Point {
            words: self
                .choices
                .iter()
                .map(|choice| word(choice, rng))
                .collect(),
            numbers: self.numbers.iter().map(|_| rng::uniform(rng)).collect(),
        }
    }

    /// The parameters of a policy that are at an edge of their ranges. Those that are not given have
    /// their defaults and are at no edge.
    pub(crate) fn edges(&self, spec: &PolicySpec) -> Vec<Edge> {
        let default = self.default();
        let edge = |number: &Number| {
            let key = number.info.name;
            let given = text(spec, number.part, key)?;
            if text(&default, number.part, key) == Some(given) {
                return None;
            }
            let value: f64 = given.parse().ok()?;
            let place = number.coordinate(value);
            (!(EDGE..=1.0 - EDGE).contains(&place)).then(|| Edge {
                parameter: number.name(&self.base),
                value,
                low: number.low,
                high: number.high,
            })
        };
        self.numbers.iter().filter_map(edge).collect()
    }
}

#[cfg(test)]
mod tests {
    use bufgym_sim::switch::policy::catalogue;

    use super::*;

    fn space(policy: &str) -> Space {
        Space::new(&policy.parse().unwrap(), &Scenario::default())
    }

    #[test]
    fn a_policy_becomes_a_place_and_the_place_the_policy() {
        for text in [
            "dt:alpha=64",
            "edt:alpha=8,c1=5,c2=1024,t1_us=160,t2_us=500",
            "dt:alpha=0.02+red:min_bytes=77,max_bytes=9000,max_p=0.5,weight=0.002,gentle=no,action=mark",
        ] {
            let space = space(text);
            let point = space.point(&text.parse().unwrap());
            assert_eq!(space.spec(&point).to_string(), text);
        }
    }

    #[test]
    fn every_number_of_every_policy_has_a_range_that_holds_its_default() {
        let scenario = Scenario::default();
        for definition in catalogue() {
            let base = PolicySpec::named(definition.info.name);
            let space = Space::new(&base, &scenario);
            for number in &space.numbers {
                let (low, high) = (number.low, number.high);
                assert!(low < high, "{base} {}", number.info.name);
                for end in [low, high] {
                    let value = number.value(number.coordinate(end)).to_string();
                    assert!(number.info.kind.accepts(&value), "{base} {value}");
                }
                if let Ok(default) = number.info.default.parse::<f64>() {
                    let below = number.info.name == "headroom_bytes";
                    assert!(below || (low..=high).contains(&default), "{base}");
                }
            }
        }
    }

    #[test]
    fn seeds_paths_and_lists_are_not_searched() {
        assert_eq!(
            space("abm").fixed(),
            ["alphas", "periodic_rtts", "estimate"]
        );
        assert_eq!(space("dt+random").fixed(), ["random seed"]);
        assert_eq!(space("credence").dimensions(), 0);
    }

    #[test]
    fn the_default_keeps_what_is_not_searched() {
        let space = space("ib:alpha=9,seed=5+random:p=0.5,seed=7");
        assert_eq!(space.default().to_string(), "ib:seed=5+random:seed=7");
    }

    #[test]
    fn values_at_an_edge_are_named_and_defaults_are_not() {
        let space = space("dt+red");
        let edges = |text: &str| space.edges(&text.parse().unwrap());
        assert_eq!(edges("dt:alpha=64+red:max_p=0.2"), []);
        // The weight is 1 by default.
        assert_eq!(edges("dt+red"), []);
        let found = edges("dt:alpha=4096+red:max_p=0.00001");
        let notes: Vec<String> = found.iter().map(Edge::note).collect();
        assert_eq!(
            notes,
            [
                "alpha=4096 of 0.015625..4096",
                "red max_p=0.00001 of 0.00001..1"
            ]
        );
    }

    #[test]
    fn words_are_combined() {
        assert_eq!(space("dt").combinations(), [Vec::<usize>::new()]);
        assert_eq!(space("dt+red").combinations().len(), 4);
    }

    #[test]
    fn marks_are_searched_only_where_hosts_use_ecn() {
        let base: PolicySpec = "dt+red:action=mark".parse().unwrap();
        let without = Space::new(&base, &Scenario::default());
        assert!(without.fixed().contains(&"red action".to_owned()));
        assert_eq!(without.default(), base);
        let mut scenario = Scenario::default();
        scenario.set("transport=dctcp").unwrap();
        let with = Space::new(&base, &scenario);
        assert_eq!(with.combinations().len(), 8);
        assert_eq!(with.default().to_string(), "dt+red");
    }
}
