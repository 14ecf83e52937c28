//! The grid of values of a parameter.

use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::ParameterInfo;
use bufgym_sim::switch::policy::Kind;

/// The values of a parameter that a search tries: powers of two times the default, or powers of two
/// over a wide range if the default is derived from the scenario; shares of the buffer for bytes;
/// every word of a choice. Empty for paths and lists, and for seeds, as a lucky seed is of no use on
/// other traces.
pub fn values(parameter: &ParameterInfo, scenario: &Scenario) -> Vec<String> {
    let default: Option<f64> = parameter.default.parse().ok();
    let powers = |base: f64, from: i32, to: i32| {
        let value = move |power| base * f64::from(power).exp2();
        (from..=to).map(value).collect::<Vec<f64>>()
    };
    let numbers = match (parameter.kind, default) {
        (Kind::Positive, Some(default)) => powers(default, -4, 7),
        // 10 to 80,000, for durations in microseconds and the like.
        (Kind::Positive, None) => powers(10.0, 0, 13),
        (Kind::Fraction, _) => vec![0.0, 0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 0.9, 1.0],
        (Kind::Count, Some(default)) => whole(powers(default, -3, 4)),
        (Kind::Count, None) => whole(powers(1.0, 0, 10)),
        (Kind::Bytes, _) => whole(powers(scenario.buffer_bytes as f64, -8, 0)),
        (Kind::Choice(words), _) => return words.iter().map(|&word| word.to_owned()).collect(),
        _ => Vec::new(),
    };
    numbers.iter().map(f64::to_string).collect()
}

/// Rounds to whole numbers of at least 1, without repetitions.
fn whole(mut numbers: Vec<f64>) -> Vec<f64> {
    for number in &mut numbers {
        *number = number.round().max(1.0);
    }
    numbers.dedup();
    numbers
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parameter(default: &'static str, kind: Kind) -> ParameterInfo {
        ParameterInfo {
            name: "p",
            default,
            kind,
            meaning: "",
        }
    }

    #[test]
    fn the_grid_contains_the_default_and_every_value_is_accepted() {
        let scenario = Scenario::default();
        for (default, kind) in [
            ("1", Kind::Positive),
            ("0.5", Kind::Positive),
            ("3", Kind::Count),
        ] {
            let values = values(&parameter(default, kind), &scenario);
            assert!(values.contains(&default.to_owned()), "{values:?}");
            assert!(values.iter().all(|value| kind.accepts(value)), "{values:?}");
        }
        for kind in [Kind::Positive, Kind::Count, Kind::Bytes, Kind::Fraction] {
            let values = values(&parameter("B/N", kind), &scenario);
            assert!(values.len() > 5 && values.iter().all(|value| kind.accepts(value)));
        }
        for kind in [Kind::Path, Kind::Numbers, Kind::Seed] {
            assert!(values(&parameter("1", kind), &scenario).is_empty());
        }
    }
}
