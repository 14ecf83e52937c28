//! Explicit congestion notification between the switch and the hosts (RFC 3168).

use bufgym_sim::network::Summary;
use bufgym_sim::scenario::{RangeU32, Scenario};
use bufgym_sim::switch::PolicySpec;
use bufgym_sim::traffic::generate;

#[test]
fn data_is_marked_only_between_hosts_that_use_ecn() {
    let scenario = Scenario {
        flows: RangeU32::new(60, 60),
        ..Scenario::default()
    };
    let trace = generate(&scenario, 1);
    let run = |policy: &str, ecn: bool| {
        let scenario = Scenario {
            ecn,
            ..scenario.clone()
        };
        let spec: PolicySpec = policy.parse().unwrap();
        let simulator = spec.simulator(&scenario, &trace);
        simulator.map(|mut simulator| simulator.run().summary)
    };
    let [mark, drop] = ["dt+red:action=mark", "dt+red:action=drop"];
    let (marked, dropped) = (run(mark, true).unwrap(), run(drop, true).unwrap());
    assert!(marked.marks > 0 && dropped.marks == 0);
    let without = run(mark, false).unwrap();
    assert_eq!(without.marks, 0);
    let facts = |summary: &Summary| (summary.drops, summary.mean_fct_ms);
    assert_eq!(facts(&without), facts(&dropped));
    assert!(run("dt+step", true).unwrap().marks > 0);
    let refused = run("dt+step", false).unwrap_err().to_string();
    assert!(refused.contains("ecn=true"), "{refused}");
}
