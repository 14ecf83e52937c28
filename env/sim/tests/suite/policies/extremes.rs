//! Parameters at the ends of the accepted ranges: a policy is refused with a reason, or works.

use bufgym_sim::network::OneSwitch;
use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::PolicySpec;
use bufgym_sim::switch::policy::catalogue;
use bufgym_sim::traffic::{Trace, generate};

/// The smallest and the largest of every kind of number.
const VALUES: [&str; 7] = [
    "0",
    "1",
    "1e-300",
    "1e300",
    "4294967295",
    "18446744073709551615",
    "0.5",
];

fn crowded() -> (Scenario, Trace) {
    let mut scenario = Scenario::default();
    for setting in [
        "flows=60",
        "active_ports=2",
        "incast_degree=8",
        "buffer_bytes=60000",
        "min_rto_us=10000",
        "max_simulated_ms=2000",
    ] {
        scenario.set(setting).unwrap();
    }
    let trace = generate(&scenario, 7);
    (scenario, trace)
}

#[test]
fn every_parameter_at_its_ends_is_refused_or_works() {
    let (scenario, trace) = crowded();
    let (mut refused, mut ran) = (0, 0);
    for definition in catalogue() {
        for parameter in definition.info.parameters {
            for value in VALUES {
                let named = PolicySpec::named(definition.info.name);
                let built = named
                    .with(parameter.name, value)
                    .map_err(|error| error.to_string())
                    .and_then(|spec| {
                        let run = spec.simulator::<OneSwitch>(&scenario, &trace);
                        run.map_err(|error| error.to_string())
                    });
                match built {
                    Ok(mut simulator) => {
                        ran += u32::from(simulator.run().summary.packets_forwarded > 1_000);
                    }
                    Err(error) => {
                        refused += 1;
                        assert!(error.contains(parameter.name), "{error}");
                    }
                }
            }
        }
    }
    assert!(ran > 100 && refused > 50, "{ran}, {refused}");
}

/// A time beyond the representable range never comes.
#[test]
fn an_endless_exception_of_edt_does_not_end() {
    let (scenario, trace) = crowded();
    let finishes = |policy: &str| {
        let policy: PolicySpec = policy.parse().unwrap();
        let outcome = policy.run(&scenario, &trace).unwrap();
        let finishes = outcome.records.iter().map(|record| record.finish);
        finishes.collect::<Vec<_>>()
    };
    let endless = finishes("edt:t2_us=1e300");
    assert_eq!(endless, finishes("edt:t2_us=1e9"));
    assert_ne!(endless, finishes("edt:t2_us=1"));
}
