//! This project's simulator on ns-3's flow lists.

use std::error::Error;

use bufgym_env::rng::{below, stream};
use bufgym_env::traffic::Trace;
use bufgym_env::units::Time;
use rayon::prelude::*;

use crate::cases::Case;
use crate::metrics::{Completion, Run};
use crate::reference;

/// Start times are moved by up to this much, nanoseconds.
pub const JITTER_NS: u64 = 20_000;

/// The list as it is.
///
/// # Errors
/// When the scenario cannot be built or a flow does not finish.
pub fn run(case: &Case) -> Result<Run, Box<dyn Error>> {
    run_trace(case, &reference::flows(case.list)?)
}

/// The list so many times, each time with start times jittered in another way; in the order of the
/// seeds, whatever the number of threads.
///
/// # Errors
/// As [`run`].
pub fn jittered_runs(case: &Case, count: u64) -> Result<Vec<Run>, Box<dyn Error>> {
    let flows = reference::flows(case.list)?;
    (0..count)
        .into_par_iter()
        .map(|seed| run_trace(case, &jittered(&flows, seed)).map_err(|error| error.to_string()))
        .collect::<Result<_, _>>()
        .map_err(Into::into)
}

fn jittered(flows: &Trace, seed: u64) -> Trace {
    let mut rng = stream(seed, "fidelity jitter", 0);
    let mut jittered = flows.clone();
    for flow in &mut jittered.flows {
        flow.start += Time::from_ns(below(&mut rng, JITTER_NS + 1));
    }
    jittered
}

fn run_trace(case: &Case, flows: &Trace) -> Result<Run, Box<dyn Error>> {
    let outcome = case
        .policy_spec()
        .simulator(&case.scenario()?, flows)?
        .run();
    let mut completions = Vec::with_capacity(outcome.records.len());
    for record in &outcome.records {
        let spec = &record.spec;
        let (Some(established), Some(fct)) = (record.established, record.fct) else {
            return Err(format!("{case}: flow {} does not finish", spec.id).into());
        };
        completions.push(Completion {
            kind: flows.kind_name(spec).to_owned(),
            size: spec.size,
            established_ns: (established - spec.start).as_ns(),
            fct_ns: fct.as_ns(),
        });
    }
    Ok(Run {
        flows: completions,
        forwarded: outcome.summary.packets_forwarded,
        drops: outcome.summary.drops,
        marks: outcome.summary.marks,
    })
}
