//! Repeats measurements that differ from the paper with one option after the other. Each option is a choice
//! that the paper leaves open.

use bufgym_sim::scenario::{Scenario, ScenarioError};

use crate::claim::Claim;
use crate::runs::PapersError;
use crate::verdict::Grade;

/// Settings that are changed together.
#[derive(Clone, Copy, Debug)]
pub struct Variant {
    /// Description in words.
    pub name: &'static str,
    /// Assignments in the form of the command line; in networks also other changes that a
    /// [sweep](crate::sweep::Sweep::change) supports.
    pub settings: &'static [&'static str],
}

impl Variant {
    /// Builds a variant.
    pub(crate) const fn new(name: &'static str, settings: &'static [&'static str]) -> Variant {
        Variant { name, settings }
    }

    /// Returns the scenario with the settings.
    ///
    /// # Errors
    /// Fails if a setting does not exist.
    pub fn of(&self, scenario: &Scenario) -> Result<Scenario, ScenarioError> {
        let mut changed = scenario.clone();
        changed.set_all(self.settings)?;
        Ok(changed)
    }
}

/// The senders of ns-3, with which the paper simulates: its packet sizes, handshake, window, host queues and
/// loss recovery, like in the preset `ns3-16x1g`.
pub const NS3: Variant = Variant::new(
    "the senders of ns-3",
    &[
        "mss=1448",
        "header_bytes=54",
        "ack_bytes=54",
        "syn_bytes=58",
        "sack_block_bytes=8",
        "recovery=ns3",
        "max_cwnd_bytes=130320",
        "handshake=true",
        "syn_timeout_us=10000",
        "host_queue=fifo",
        "count_in_service=false",
    ],
);

/// The senders of Linux, which runs on the testbed's hosts.
pub(crate) const LINUX: Variant = Variant::new(
    "the senders of Linux",
    &[
        "transport=linux",
        "mss=1448",
        "timestamps=true",
        "max_cwnd_bytes=6291456",
        "handshake=true",
        "syn_timeout_us=1000000",
        "late_binding=true",
    ],
);

/// A short minimum RTO, because the paper does not give it.
pub(crate) const SHORT_RTO: Variant = Variant::new("a minimum RTO of 10 ms", &["min_rto_us=10000"]);

/// The minimum RTO that is the default of ns-3.
pub(crate) const LONG_RTO: Variant = Variant::new("a minimum RTO of 1 s", &["min_rto_us=1000000"]);

/// Searches for the reason of every claim that differs: repeats the measurement with each variant until every
/// claim has a reason.
///
/// # Errors
/// Returns the errors of `repeat`.
pub fn explain(
    claims: &mut [Claim],
    variants: &[Variant],
    mut repeat: impl FnMut(&Variant) -> Result<Vec<Claim>, PapersError>,
) -> Result<(), PapersError> {
    let is_open = |claim: &Claim| claim.grade() == Grade::Differs && claim.reason.is_none();
    for variant in variants {
        if !claims.iter().any(is_open) {
            return Ok(());
        }
        let repeated = repeat(variant)?;
        for claim in claims.iter_mut().filter(|claim| is_open(claim)) {
            let again = repeated.iter().find(|other| other.is_same(claim));
            let closes = again
                .map(Claim::grade)
                .filter(|grade| *grade < Grade::Differs);
            if let Some(grade) = closes {
                claim.reason = Some(format!("with {} it {}", variant.name, grade.name()));
            }
        }
    }
    let names: Vec<&str> = variants.iter().map(|variant| variant.name).collect();
    for claim in claims.iter_mut().filter(|claim| is_open(claim)) {
        claim.reason = Some(match names.is_empty() {
            true => "unexplained".to_owned(),
            false => format!("unexplained; also with {}", names.join(", with ")),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::Target;
    use bufgym_eval::stats::Estimate;

    const NAMED: [Variant; 2] = [Variant::new("one", &[]), Variant::new("two", &[])];

    fn claim(series: &str, ours: f64) -> Claim {
        Claim::number(("1", ""), series, "m", "s", Target::Value(10.0))
            .measured(Some(Estimate::exact(ours)))
    }

    #[test]
    fn the_first_option_that_closes_a_gap_is_its_reason() {
        let mut claims = vec![claim("a", 100.0), claim("b", 100.0), claim("c", 10.0)];
        let mut repeated = Vec::new();
        explain(&mut claims, &NAMED, |variant| {
            repeated.push(variant.name);
            let closed = if variant.name == "two" { 14.0 } else { 90.0 };
            Ok(vec![claim("a", closed), claim("b", 50.0), claim("c", 99.0)])
        })
        .unwrap();
        assert_eq!(repeated, ["one", "two"]);
        let verdicts: Vec<String> = claims.iter().map(|c| c.verdict().to_string()).collect();
        assert_eq!(
            verdicts,
            [
                "differs: with two it agrees in factor",
                "differs: unexplained; also with one, with two",
                "agrees"
            ]
        );
    }

    #[test]
    fn nothing_is_repeated_where_nothing_differs() {
        let mut claims = vec![claim("a", 10.0)];
        explain(&mut claims, &NAMED, |_| unreachable!("nothing differs")).unwrap();
    }

    #[test]
    fn every_variant_is_a_valid_scenario() {
        let presets = ["ndt-16x1g", "ndt-testbed-4x1g", "ndt-4to2-incast"];
        for preset in presets.map(|name| Scenario::preset(name).unwrap()) {
            for variant in [NS3, LINUX, SHORT_RTO, LONG_RTO] {
                let changed = variant.of(&preset).unwrap();
                changed.validate().unwrap();
                assert_ne!(changed, preset, "{}", variant.name);
            }
        }
        let ns3 = Scenario::preset("ns3-16x1g").unwrap();
        let same = NS3.of(&Scenario::default()).unwrap().with(|scenario| {
            scenario.name = ns3.name.clone();
        });
        assert_eq!(same, ns3);
    }
}
