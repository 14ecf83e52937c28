//! Policies as text: parsing them, and building the policy that a text names.
//!
//! A policy may be followed by queue management, `dt:alpha=64+random:p=0.007`.

use std::fmt;
use std::str::FromStr;

use bufgym_util::parameters;

use super::SwitchId;
use super::aqm::AqmSpec;
use super::parameters::{Given, PolicyParseError};
use super::policy::{AnyPolicy, Arguments, Definition, Policy as _, PolicyInfo, catalogue};
use crate::scenario::Scenario;

/// A policy and its parameters, written `name` or `name:key=value,key=value`; behind a `+`, the queue
/// management in the same form.
#[derive(Clone)]
pub struct PolicySpec {
    definition: &'static Definition,
    given: Given,
    aqm: Option<AqmSpec>,
}

impl fmt::Debug for PolicySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PolicySpec({self})")
    }
}

impl PartialEq for PolicySpec {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name() && self.given == other.given && self.aqm == other.aqm
    }
}

fn definition(name: &str) -> Option<&'static Definition> {
    catalogue()
        .iter()
        .copied()
        .find(|definition| definition.info.name == name)
}

/// Name of the policy whose buffer never fills.
const UNLIMITED: &str = "unlimited";

impl PolicySpec {
    /// Returns the policy of this name with its defaults.
    ///
    /// # Panics
    /// When there is no such policy. Use [`str::parse`] for names that a user gives.
    pub fn named(name: &str) -> PolicySpec {
        match definition(name) {
            Some(definition) => PolicySpec {
                definition,
                given: Given::default(),
                aqm: None,
            },
            None => panic!("no policy is called {name}"),
        }
    }

    /// Returns Dynamic Threshold with α = 1, the baseline of every comparison.
    pub fn baseline() -> PolicySpec {
        PolicySpec::named("dt")
    }

    /// Returns complete sharing with a buffer that never fills, the reference line.
    pub fn unlimited() -> PolicySpec {
        PolicySpec::named(UNLIMITED)
    }

    /// Returns the name without parameters.
    pub fn name(&self) -> &'static str {
        self.definition.info.name
    }

    /// Returns the description of the policy.
    pub fn info(&self) -> &'static PolicyInfo {
        &self.definition.info
    }

    /// Returns the queue management behind the policy, if there is one.
    pub fn aqm(&self) -> Option<&AqmSpec> {
        self.aqm.as_ref()
    }

    /// Returns the policy with another queue management, or none.
    pub fn with_aqm(mut self, aqm: Option<AqmSpec>) -> PolicySpec {
        self.aqm = aqm;
        self
    }

    /// Returns the name of the policy and, behind a `+`, of its queue management.
    pub fn names(&self) -> String {
        match &self.aqm {
            Some(aqm) => format!("{}+{}", self.name(), aqm.name()),
            None => self.name().to_owned(),
        }
    }

    /// Returns the policy with another value of a parameter.
    ///
    /// # Errors
    /// If the policy has no such parameter, or the parameter no such value.
    pub fn with(mut self, key: &str, value: &str) -> Result<PolicySpec, PolicyParseError> {
        self.set(key, value)?;
        Ok(self)
    }

    /// Returns the policy with the default of a parameter.
    pub fn without(mut self, key: &str) -> PolicySpec {
        self.given.reset(key);
        self
    }

    /// Returns the text of a parameter: the given value or a constant default. `None` for a derived
    /// default, and if there is no such parameter.
    pub fn text(&self, key: &str) -> Option<&str> {
        Arguments::of(self.definition.info.parameters, self.given.values()).text(key)
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), PolicyParseError> {
        let info = &self.definition.info;
        self.given.set(info.name, info.parameters, key, value)?;
        Ok(())
    }

    /// Checks that the policy and its queue management can be built for the switch of `scenario`.
    ///
    /// # Errors
    /// [`PolicyParseError::Unusable`] when the parameters do not fit the scenario or each other.
    pub fn check(&self, scenario: &Scenario) -> Result<(), PolicyParseError> {
        self.build(scenario)?;
        match &self.aqm {
            Some(aqm) => aqm
                .build(scenario, SwitchId(0), scenario.port_count())
                .map(|_| ()),
            None => Ok(()),
        }
    }

    /// Builds the policy for the switch of `scenario`.
    ///
    /// # Errors
    /// [`PolicyParseError::Unusable`] when the parameters do not fit the scenario or each other.
    pub fn build(&self, scenario: &Scenario) -> Result<AnyPolicy, PolicyParseError> {
        let arguments = Arguments::of(self.definition.info.parameters, self.given.values());
        let built = (self.definition.build)(&arguments, scenario);
        let built = built.and_then(|policy| self.with_queue_alpha(policy, &arguments, scenario));
        let built = built.and_then(|policy| match policy.lossless_thresholds() {
            None if scenario.has_lossless() => Err(format!(
                "it has no thresholds at the ingress, which lossless_priorities {} need; must be dt or \
                 sonic (Dynamic Threshold at both sides), sonic-abm or reverie",
                scenario.lossless.priorities
            )),
            Some(_) => match scenario.unmanageable() {
                Some(problem) => Err(problem),
                None => Ok(policy),
            },
            None => Ok(policy),
        });
        built.map_err(|problem| PolicyParseError::Unusable {
            policy: self.to_string(),
            problem,
        })
    }

    /// Returns the policy with the α of each queue that the scenario gives, if the policy has an α.
    fn with_queue_alpha(
        &self,
        mut policy: AnyPolicy,
        arguments: &Arguments<'_>,
        scenario: &Scenario,
    ) -> Result<AnyPolicy, String> {
        let alphas = scenario.queues.alpha.values();
        let mut parameters = self.definition.info.parameters.iter();
        if alphas.is_empty() || !parameters.any(|parameter| parameter.name == "alpha") {
            return Ok(policy);
        }
        let names = ["alpha", "alphas"];
        if let Some(name) = names.into_iter().find(|name| arguments.is_given(name)) {
            return Err(format!(
                "{name} and the scenario's queue_alpha are both given; leave one out"
            ));
        }
        for (queue, &alpha) in (0..scenario.queue_count()).zip(alphas.iter().cycle()) {
            if !policy.set_alpha(queue, alpha) {
                return Err("it has no alpha per queue; needs queue_alpha empty".to_owned());
            }
        }
        Ok(policy)
    }

    /// Returns the short name if the policy has one, else the policy in full.
    pub fn label(&self) -> String {
        let full = self.to_string();
        let label = LABELS.iter().find(|(_, known)| *known == full);
        label.map_or(full, |&(label, _)| label.to_owned())
    }

    /// Returns the size of the buffer under this policy, bytes: that of the scenario, except for
    /// `unlimited`.
    pub fn capacity(&self, scenario: &Scenario) -> u64 {
        match self.name() {
            UNLIMITED => u64::MAX / 2,
            _ => scenario.network.buffer_bytes,
        }
    }
}

/// Short names of policies with many parameters, each with the policy in full.
pub(crate) const LABELS: [(&str, &str); 1] = [(
    "fab+front",
    "fab:alpha_short=2048,short_bytes=10000,idle_us=10000+early:from=front",
)];

/// Returns the policy in full if `text` is one of the [labels](LABELS), else `text`.
pub(super) fn expanded(text: &str) -> &str {
    let mut labels = LABELS.iter();
    let found = labels.find(|(label, _)| *label == text.trim());
    found.map_or(text, |(_, full)| full)
}

impl FromStr for PolicySpec {
    type Err = PolicyParseError;

    fn from_str(text: &str) -> Result<PolicySpec, PolicyParseError> {
        let (text, aqm) = AqmSpec::split(expanded(text));
        let (name, parameters) = parameters::split(text);
        let definition = definition(name).ok_or_else(|| PolicyParseError::UnknownPolicy {
            name: name.to_owned(),
        })?;
        let mut spec = PolicySpec {
            definition,
            given: Given::default(),
            aqm: aqm.map(AqmSpec::parse).transpose()?.flatten(),
        };
        for parameter in parameters {
            let (key, value) = parameter.map_err(|error| error.of(spec.name()))?;
            spec.set(key, value)?;
        }
        Ok(spec)
    }
}

impl fmt::Display for PolicySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        self.given.fmt(f)?;
        match &self.aqm {
            Some(aqm) => write!(f, "+{aqm}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::switch::parameters::LEARNED;
    use crate::switch::policy::Kind;

    #[test]
    fn what_is_written_is_read_back() {
        for text in [
            "cs",
            "st",
            "dt",
            "dt:alpha=8",
            "edt",
            "edt:alpha=2,c1=4,t2_us=500",
            "unlimited",
        ] {
            assert_eq!(text.parse::<PolicySpec>().unwrap().to_string(), text);
        }
        for (label, full) in LABELS {
            let read: PolicySpec = label.parse().unwrap();
            assert_eq!(read.to_string(), full);
        }
        for text in ["dt:alpha=1", "dt:alpha=1.0"] {
            assert_eq!(text.parse(), Ok(PolicySpec::baseline()), "{text}");
        }
        let reordered: PolicySpec = "edt:c1=4,alpha=2".parse().unwrap();
        assert_eq!(reordered.to_string(), "edt:alpha=2,c1=4");
    }

    #[test]
    fn every_listed_policy_and_parameter_exists_and_builds() {
        let scenario = Scenario::default();
        for definition in catalogue() {
            let spec = PolicySpec::named(definition.info.name);
            assert!(spec.build(&scenario).is_ok(), "{spec}");
            for parameter in definition.info.parameters {
                let value = match parameter.kind {
                    Kind::Choice(words) => words[0],
                    Kind::Fraction => "0.5",
                    _ => "7",
                };
                let set = spec.clone().with(parameter.name, value).unwrap();
                assert!(set == spec || set.to_string().contains(parameter.name));
            }
        }
    }

    #[test]
    fn mistakes_are_named_with_the_nearest_right_thing() {
        let message = |text: &str| text.parse::<PolicySpec>().unwrap_err().to_string();
        assert!(message("dd").contains("`dt`"), "{}", message("dd"));
        assert!(message("dt:alfa=1").contains("`alpha`"));
        assert!(message("dt:alpha=-1").contains("above 0"));
        assert!(message("dt:alpha").contains("key=value"));
        assert!(message("cs:alpha=1").contains("none"));
        assert!(message("DT:alpha=1").contains("did you mean `dt`?"));
        assert!(message(" dt").contains("did you mean `dt`?"));
        assert!(message("dt:tuned").contains("one by one"));
        for learned in LEARNED {
            let message = message(learned);
            assert!(
                message.contains("a rule is needed") && message.contains("edt"),
                "{message}"
            );
            assert!(!message.contains("did you mean"), "{message}");
        }
        assert_eq!(
            message("dt:alpha=1,alpha=2"),
            "policy dt: alpha is given twice; leave one out"
        );
    }
}
