//! Queue management as text: `random:min_bytes=15000,p=0.007`.

use std::fmt;

use bufgym_util::input::suggestion;
use bufgym_util::parameters;

use super::definition::{AqmDefinition, Context};
use super::early::EarlyGaps;
use super::{QueueManagement, codel, early, pie, random, red, step};
use crate::scenario::{Recovery, Scenario};
use crate::switch::SwitchId;
use crate::switch::parameters::{Given, PolicyParseError};
use crate::switch::policy::{Arguments, PolicyInfo};

static DEFINITIONS: [&AqmDefinition; 6] = [
    &random::DEFINITION,
    &red::DEFINITION,
    &early::DEFINITION,
    &codel::DEFINITION,
    &pie::DEFINITION,
    &step::DEFINITION,
];

/// Returns every discipline, for listings.
pub fn catalogue() -> &'static [&'static AqmDefinition] {
    &DEFINITIONS
}

/// The word for no queue management, which may be written after a policy.
const NONE: &str = "none";

fn names() -> Vec<&'static str> {
    let names = DEFINITIONS.iter().map(|definition| definition.info.name);
    names.chain([NONE]).collect()
}

/// A discipline and its parameters, written `name` or `name:key=value,key=value` after a policy and a
/// `+`.
#[derive(Clone)]
pub struct AqmSpec {
    definition: &'static AqmDefinition,
    given: Given,
}

impl AqmSpec {
    /// Splits `dt:alpha=8+red:max_p=0.1` into the policy and the discipline. The text after a `+` is a
    /// discipline if it begins with a name: letters up to the end or a colon. So `alpha=1e+3` and paths
    /// stay whole.
    pub fn split(text: &str) -> (&str, Option<&str>) {
        let is_name = |rest: &str| {
            let name = rest.split(':').next().unwrap_or(rest);
            !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphabetic())
        };
        match text.rsplit_once('+') {
            Some((policy, rest)) if is_name(rest) => (policy, Some(rest)),
            _ => (text, None),
        }
    }

    /// Reads a discipline; `None` for `none`.
    ///
    /// # Errors
    /// An unknown discipline or parameter, or a value that does not fit.
    pub fn parse(text: &str) -> Result<Option<AqmSpec>, PolicyParseError> {
        let (name, parameters) = parameters::split(text);
        if text == NONE {
            return Ok(None);
        }
        let found = DEFINITIONS
            .iter()
            .copied()
            .find(|definition| definition.info.name == name);
        let definition = found.ok_or_else(|| PolicyParseError::UnknownAqm {
            name: name.to_owned(),
            suggestion: suggestion(name, &names()),
            known: names().join(", "),
        })?;
        let info = &definition.info;
        let mut given = Given::default();
        for parameter in parameters {
            let (key, value) = parameter.map_err(|error| error.of(info.name))?;
            given.set(info.name, info.parameters, key, value)?;
        }
        Ok(Some(AqmSpec { definition, given }))
    }

    /// Returns the name without parameters.
    pub fn name(&self) -> &'static str {
        self.definition.info.name
    }

    /// Returns early drop whose gap is left open for a control loop.
    pub fn early() -> AqmSpec {
        AqmSpec {
            definition: &early::DEFINITION,
            given: Given::default(),
        }
    }

    /// Returns true if a control loop sets the gap of early drop, because the text leaves it open.
    pub fn is_open(&self) -> bool {
        let is_early = self.name() == early::DEFINITION.info.name;
        is_early
            && !self
                .given
                .values()
                .iter()
                .any(|(key, _)| *key == early::GAP)
    }

    /// Returns the gaps of early drop that decisions choose from; `None` unless one
    /// [is open](AqmSpec::is_open).
    pub fn gaps(&self) -> Option<EarlyGaps> {
        self.is_open()
            .then(|| EarlyGaps::of(self.text(early::FINEST)))
    }

    /// Returns the discipline with nothing left open.
    ///
    /// # Errors
    /// None: the default of the gap is a valid value.
    pub fn closed(self) -> Result<AqmSpec, PolicyParseError> {
        match self.is_open() {
            true => self
                .without(early::FINEST)
                .with(early::GAP, &early::DEFAULT_GAP.to_string()),
            false => Ok(self),
        }
    }

    /// Returns the description.
    pub fn info(&self) -> &'static PolicyInfo {
        &self.definition.info
    }

    /// Returns the discipline with another value of a parameter.
    ///
    /// # Errors
    /// If it has no such parameter, or the parameter no such value.
    pub fn with(mut self, key: &str, value: &str) -> Result<AqmSpec, PolicyParseError> {
        self.given
            .set(self.name(), self.definition.info.parameters, key, value)?;
        Ok(self)
    }

    /// Returns the discipline with the default of a parameter.
    pub fn without(mut self, key: &str) -> AqmSpec {
        self.given.reset(key);
        self
    }

    /// Returns the text of a parameter: the given value or a constant default. `None` for a derived
    /// default, and if there is no such parameter.
    pub fn text(&self, key: &str) -> Option<&str> {
        Arguments::of(self.definition.info.parameters, self.given.values()).text(key)
    }

    /// Returns the constants of early drop for the record of a control loop that sets it on the switch
    /// `id` of `scenario`, as keys and values; every port has an `early_random`. Empty unless early
    /// drop [is open](AqmSpec::is_open).
    ///
    /// # Errors
    /// As those of a simulation: when the parameters do not fit the scenario or each other.
    pub fn constants(
        &self,
        scenario: &Scenario,
        id: SwitchId,
    ) -> Result<Vec<(&'static str, String)>, PolicyParseError> {
        match self.is_open() {
            true => Ok(self.build(scenario, id, scenario.port_count())?.constants()),
            false => Ok(Vec::new()),
        }
    }

    /// Builds the discipline for the switch `id` of `scenario`, which has `ports` ports.
    ///
    /// # Errors
    /// [`PolicyParseError::Unusable`] when the parameters do not fit the scenario or each other.
    pub(crate) fn build(
        &self,
        scenario: &Scenario,
        id: SwitchId,
        ports: usize,
    ) -> Result<QueueManagement, PolicyParseError> {
        let info = &self.definition.info;
        let arguments = Arguments::of(info.parameters, self.given.values());
        let context = Context {
            ports,
            buffer_bytes: scenario.network.buffer_bytes,
            queues: ports * scenario.queues.queues_per_port as usize,
            rate: scenario.rate(),
            packet_bytes: scenario.full_packet_bytes(),
            outside_buffer: scenario.uncounted_packets(),
            ecn: scenario.uses_ecn(),
            rack: scenario.stack().recovery == Recovery::Rack,
        };
        let discipline = (self.definition.build)(&arguments, &context).map_err(|problem| {
            PolicyParseError::Unusable {
                policy: self.to_string(),
                problem,
            }
        })?;
        let seed = arguments.optional("seed").unwrap_or(1);
        Ok(QueueManagement::new(
            discipline,
            context.ecn,
            seed,
            id,
            ports,
        ))
    }
}

impl PartialEq for AqmSpec {
    fn eq(&self, other: &Self) -> bool {
        self.name() == other.name() && self.given == other.given
    }
}

impl fmt::Debug for AqmSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AqmSpec({self})")
    }
}

impl fmt::Display for AqmSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        self.given.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::topology::OneSwitch;
    use crate::switch::PolicySpec;

    #[test]
    fn what_is_written_is_read_back() {
        for text in [
            "dt+random",
            "dt:alpha=64+random:p=0.01",
            "unlimited+codel:target_us=1000,action=mark",
            "fab:alpha=2+red:min_bytes=1000,max_bytes=3000,gentle=no",
            "cs+pie",
            "lqd+step:bytes=90000",
        ] {
            assert_eq!(text.parse::<PolicySpec>().unwrap().to_string(), text);
        }
        assert_eq!("dt+none".parse(), Ok(PolicySpec::baseline()));
        assert_eq!(
            "dt+random:p=0.0070"
                .parse::<PolicySpec>()
                .unwrap()
                .to_string(),
            "dt+random"
        );
    }

    #[test]
    fn a_plus_within_a_value_belongs_to_the_policy() {
        let spec: PolicySpec = "dt:alpha=1e+1".parse().unwrap();
        assert_eq!(spec.to_string(), "dt:alpha=10");
        assert_eq!(
            AqmSpec::split("credence:model=/a+b/c"),
            ("credence:model=/a+b/c", None)
        );
    }

    #[test]
    fn mistakes_are_named_with_the_nearest_right_thing() {
        let message = |text: &str| text.parse::<PolicySpec>().unwrap_err().to_string();
        assert_eq!(
            message("dt+rde"),
            "queue management 'rde' is not known; did you mean `red`?; there are random, red, early, codel, pie, step, none"
        );
        assert!(
            message("dt+red:max=1").contains("red has no parameter 'max'"),
            "{}",
            message("dt+red:max=1")
        );
        assert!(message("dt+random:p=2").contains("from 0 to 1"));
        assert!(
            message("dt+none:p=2").contains("'none'"),
            "{}",
            message("dt+none:p=2")
        );
        let scenario = Scenario::default();
        let spec: PolicySpec = "dt+red:min_bytes=9,max_bytes=9".parse().unwrap();
        let error = spec
            .simulator::<OneSwitch>(&scenario, &crate::traffic::generate(&scenario, 1))
            .err()
            .unwrap();
        assert!(
            error
                .to_string()
                .contains("max_bytes=9 must be above min_bytes=9"),
            "{error}"
        );
    }
}
