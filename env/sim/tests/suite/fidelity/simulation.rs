//! This project's simulator on ns-3's flow lists.

use std::error::Error;

use bufgym_sim::scenario::Scenario;
use bufgym_sim::traffic::Trace;

use super::cases::Case;
use super::run::{Completion, Run};

/// Runs flows under the policy of a case.
///
/// # Errors
/// When the scenario cannot be built or a flow does not finish.
pub fn run(case: &Case, scenario: &Scenario, flows: &Trace) -> Result<Run, Box<dyn Error>> {
    let outcome = case.policy_spec().run(scenario, flows)?;
    let mut completions = Vec::with_capacity(outcome.records.len());
    for record in &outcome.records {
        let (Some(established), Some(finish)) = (record.established, record.finish) else {
            return Err(format!("{case}: flow {} does not finish", record.spec.id).into());
        };
        completions.push(Completion {
            kind: flows.kind_name(&record.spec).to_owned(),
            size: record.spec.size,
            start_ns: record.spec.start.as_ns(),
            established_ns: established.as_ns(),
            finish_ns: finish.as_ns(),
        });
    }
    Ok(Run {
        flows: completions,
        forwarded: outcome.summary.packets_forwarded,
        drops: outcome.summary.drops,
        marks: outcome.summary.marks,
    })
}
