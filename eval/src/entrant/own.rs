//! Controllers from the caller's program.

use std::fmt;
use std::sync::Arc;

use bufgym_env::control::Controller;

/// Makes a controller for every run; all runs may be in progress at the same time.
#[derive(Clone)]
pub(super) struct CustomController(Arc<dyn Fn() -> Box<dyn Controller> + Send + Sync>);

impl CustomController {
    pub(super) fn new(
        make: impl Fn() -> Box<dyn Controller> + Send + Sync + 'static,
    ) -> CustomController {
        CustomController(Arc::new(make))
    }

    /// Returns a fresh controller for one run.
    pub(super) fn controller(&self) -> Box<dyn Controller> {
        (self.0)()
    }
}

impl fmt::Debug for CustomController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("CustomController")
    }
}

#[cfg(test)]
mod tests {
    use bufgym_env::control::FixedAlpha;
    use bufgym_sim::scenario::Scenario;
    use bufgym_sim::switch::PolicySpec;
    use bufgym_sim::traffic::generate;

    use crate::Entrant;
    use crate::data::Role;

    #[test]
    fn a_controller_of_ones_own_runs_like_the_rule_that_it_imitates() {
        let mut scenario = Scenario::preset("ndt-16x1g").unwrap();
        scenario.set("flows=300..300").unwrap();
        let trace = generate(&scenario, 7);
        // Level 2 is α = 1.
        let mine = Entrant::own("mine", "a test", || Box::new(FixedAlpha::new(2)));
        assert_eq!((mine.name(), mine.role()), ("mine", Role::Learned));
        assert_eq!(mine.entry().origin, "a test");
        let rule = Entrant::rule("dt:alpha=1".parse::<PolicySpec>().unwrap());
        let [mine, rule] = [mine, rule].map(|entrant| {
            let outcome = entrant.run(&scenario, &trace, None).unwrap();
            (outcome.summary.mean_fct_ms, outcome.summary.drops)
        });
        assert_eq!(mine, rule);
    }
}
