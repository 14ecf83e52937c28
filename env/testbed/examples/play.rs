//! Plays a generated trace through real TCP under a rule: `play [POLICY] [KEY=VALUE ...]`, as root.

use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::PolicySpec;
use bufgym_sim::traffic;
use bufgym_testbed::{Decider, Settings, run, serve_host};

/// Argument with which this program is called as a host.
const HOST: &str = "host";

fn main() -> Result<ExitCode, Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let policy = arguments.next().unwrap_or_else(|| "dt".to_owned());
    if policy == HOST {
        return Ok(if serve_host() {
            ExitCode::SUCCESS
        } else {
            ExitCode::FAILURE
        });
    }
    let spec: PolicySpec = policy.parse()?;
    let mut scenario = Scenario::preset("testbed-4x100m")?;
    for change in arguments {
        scenario.set(&change)?;
    }
    scenario.validate()?;
    let trace = traffic::generate(&scenario, 1);
    let settings = Settings {
        host_command: vec![std::env::current_exe()?.into(), HOST.into()],
        congestion: None,
        timeline: None,
        capture: None,
        limit: Duration::from_secs(120),
    };
    let played = run(
        &scenario,
        &trace,
        &Decider::Rule(&spec),
        &settings,
        &AtomicBool::new(false),
    )?;
    let summary = &played.outcome.summary;
    println!(
        "{spec}: {} of {} flows, mean FCT {:.2} ms, {} drops, {} timeouts",
        summary.completed, summary.flows, summary.mean_fct_ms, summary.drops, summary.timeouts
    );
    let simulated = spec.run(&scenario, &trace)?.summary;
    println!(
        "simulated: mean FCT {:.2} ms, {} drops, {} timeouts",
        simulated.mean_fct_ms, simulated.drops, simulated.timeouts
    );
    println!("{}", played.truth);
    Ok(ExitCode::SUCCESS)
}
