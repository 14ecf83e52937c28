//! Plays a trace of the simulator into a Redis server like a switch with SONiC would, for an agent in another
//! terminal:
//!
//! ```sh
//! redis-server --port 6390 --save '' &
//! cargo run --release -p bufgym-sonic --example simulated_switch -- 127.0.0.1:6390 &
//! bufgym sonic-agent --redis 127.0.0.1:6390 --checkpoint checkpoints/ndt-fct-dt --poll-ms 5 --min-interval-ms 10 --stale-ms 3000
//! ```
//!
//! Arguments: the address, then optionally the interval of counters in simulated ms (10), the pace in real ms
//! per interval (20), and the seed of the trace (1). The server must be empty; the example does not empty it.

use std::thread::sleep;
use std::time::Duration;

use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::PolicySpec;
use bufgym_sim::traffic;
use bufgym_sim::units;
use bufgym_sonic::simulated::SimulatedSwitch;
use bufgym_sonic::{Database, Databases, schema};
use bufgym_util::rng::{Split, trace_seed};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let address = arguments
        .next()
        .ok_or("give an address of Redis")?
        .parse()?;
    let mut number = |default: u64| arguments.next().map_or(Ok(default), |text| text.parse());
    let (interval_ms, pace_ms, seed) = (number(10)?, number(20)?, number(1)?);

    let scenario = Scenario::preset("ndt-16x1g")?;
    let trace = traffic::generate(&scenario, trace_seed(Split::Train, seed, 0));
    let mut databases = Databases::connect(&address)?;
    if !databases.names(Database::Config, schema::PORT)?.is_empty() {
        return Err("there are ports in CONFIG_DB already: give a server that is empty".into());
    }
    let mut switch = SimulatedSwitch::new(&scenario, &trace, true)?;
    switch.populate(&mut databases)?;
    println!(
        "{} flows, {} ports; waiting 5 s for an agent",
        trace.flows.len(),
        scenario.network.ports
    );
    sleep(Duration::from_secs(5));
    while switch.play(units::Duration::from_us(1_000 * interval_ms)) {
        switch.publish(&mut databases)?;
        sleep(Duration::from_millis(pace_ms));
        switch.apply(&mut databases)?;
    }
    let alone = PolicySpec::baseline()
        .run(&scenario, &trace)?
        .summary
        .mean_fct_ms;
    let summary = switch.outcome().summary;
    println!(
        "{:.3} s simulated, mean FCT {:.3} ms, {} packets lost; with dynamic_th 0 throughout {alone:.3} ms",
        summary.simulated_s, summary.mean_fct_ms, summary.drops
    );
    Ok(())
}
