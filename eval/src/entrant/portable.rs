//! Entrants that are sent to other processes.

use bufgym_models::FastActor;

use super::{Decider, Entrant, Kind};
use crate::portable::{Decides, NotPortable, Portable, PortableEntrant, unfit};

impl Entrant {
    /// Converts the policy into a form that another process reads and that decides the same there.
    ///
    /// # Errors
    /// Fails for a policy from the caller's program.
    pub fn portable(&self) -> Result<PortableEntrant, NotPortable> {
        let (decides, low_level) = match &self.kind {
            Kind::Rule(spec) | Kind::Tuned(spec) => (Portable::from(spec), String::new()),
            Kind::Learned {
                decider, low_level, ..
            } => (decider.portable(&self.name)?, low_level.to_string()),
        };
        Ok(PortableEntrant {
            name: self.name.clone(),
            decides,
            low_level,
        })
    }
}

impl Decider {
    fn portable(&self, name: &str) -> Result<Portable, NotPortable> {
        match self {
            Self::Network(actor) => Ok(Portable::from(&actor.weights())),
            Self::Integer(actor) => Portable::try_from(actor.as_ref()),
            Self::Linear(rule) => Ok(Portable::from(rule.as_ref())),
            Self::External(_) => Err(unfit(format_args!(
                "policy {name} is a network from a file of this machine: it cannot be sent to another one"
            ))),
            Self::Own(_) => Err(unfit(format_args!(
                "policy {name} is a function of this process: it cannot be sent to another one"
            ))),
        }
    }
}

/// Restores the policy to run it. The description of its origin is not sent.
impl TryFrom<PortableEntrant> for Entrant {
    type Error = NotPortable;

    fn try_from(sent: PortableEntrant) -> Result<Self, NotPortable> {
        let PortableEntrant {
            name,
            decides,
            low_level,
        } = sent;
        let decider = match Decides::try_from(decides)? {
            Decides::Rule(spec) => return Ok(Entrant::new(&name, Kind::Rule(spec))),
            Decides::Linear(rule) => Decider::Linear(rule),
            Decides::Network(weights) => Decider::Network(Box::new(FastActor::new(&weights))),
            Decides::Integer(actor) => Decider::Integer(actor),
        };
        let kind = Kind::Learned {
            decider,
            low_level: low_level.parse().map_err(unfit)?,
            origin: String::new(),
            training: None,
        };
        Ok(Entrant::new(&name, kind))
    }
}

#[cfg(test)]
mod tests {
    use bufgym_env::control::{ActionSet, FixedAlpha};
    use bufgym_models::{ActorWeights, LinearRule};
    use bufgym_sim::scenario::Scenario;
    use bufgym_sim::traffic::generate;
    use bufgym_util::rng::stream;

    use super::*;

    fn learned(decider: Decider, low_level: &str) -> Entrant {
        let kind = Kind::Learned {
            decider,
            low_level: low_level.parse().unwrap(),
            origin: String::new(),
            training: None,
        };
        Entrant::new("mine", kind)
    }

    #[test]
    fn what_is_sent_decides_as_what_was_there() {
        let mut scenario = Scenario::default();
        for setting in [
            "ports=4",
            "active_ports=2..4",
            "incast_degree=1..3",
            "flows=40..60",
        ] {
            scenario.set(setting).unwrap();
        }
        let trace = generate(&scenario, 3);
        let weights = ActorWeights::random_for(ActionSet::AlphaEarly, &mut stream(2, "test", 0));
        let entrants = [
            "dt:alpha=0.3333".parse().unwrap(),
            learned(
                Decider::Network(Box::new(FastActor::new(&weights))),
                "fab+early",
            ),
            learned(
                Decider::Linear(Box::new(LinearRule::constant(&[0.3, -0.7]))),
                "dt+early",
            ),
        ];
        for entrant in entrants {
            let sent = entrant.portable().unwrap();
            let json = serde_json::to_string(&sent).unwrap();
            let read: PortableEntrant = serde_json::from_str(&json).unwrap();
            assert_eq!(read, sent);
            let there = Entrant::try_from(read).unwrap();
            assert_eq!(there.name(), entrant.name());
            let run = |entrant: &Entrant| -> Vec<_> {
                let outcome = entrant.run(&scenario, &trace, None).unwrap();
                outcome.records.iter().map(|record| record.finish).collect()
            };
            assert_eq!(run(&there), run(&entrant));
        }
    }

    #[test]
    fn a_function_stays_where_it_is() {
        let own = Entrant::own("mine", "", || Box::new(FixedAlpha::new(3)));
        let refused = own.portable().unwrap_err().to_string();
        assert!(refused.contains("policy mine"), "{refused}");
    }

    #[test]
    fn weights_that_fit_nothing_are_refused() {
        let few = Portable::Linear {
            actions: "alpha".to_owned(),
            weights: vec![0.0; 3],
        };
        assert!(Decides::try_from(few).is_err());
        assert!(Decides::try_from(Portable::Rule("none".to_owned())).is_err());
        assert!(Decides::try_from(Portable::Integer("{}".to_owned())).is_err());
    }
}
