//! Tests of the simulator behind Redis, with the agent in the loop.

use std::time::Duration;

use bufgym_env::control::{
    ControlEnv, ControlOptions, Controller as _, FEATURES, HISTORY, StopReason, TriggerMode,
};
use bufgym_sim::units;
use bufgym_sonic::counters::Source;
use bufgym_sonic::simulated::SimulatedSwitch;
use bufgym_sonic::{Agent, Database, Event, Settings};

use crate::server::Server;
use crate::switch::{Watcher, crowded, dump, settings};

const INTERVAL_MS: u64 = 5;

fn interval() -> units::Duration {
    units::Duration::from_us(1_000 * INTERVAL_MS)
}

/// Plays the trace with an agent in the loop. Returns the FCTs and the number of decisions, and leaves the
/// databases as they were.
fn play(
    server: &Server,
    settings: Settings,
    tells_occupancy: bool,
    watcher: &mut Watcher,
) -> (Vec<Option<units::Duration>>, u64) {
    let (scenario, trace) = crowded();
    let mut databases = server.connect();
    let mut switch = SimulatedSwitch::new(&scenario, &trace, tells_occupancy).unwrap();
    switch.populate(&mut databases).unwrap();
    let before = dump(&mut databases, Database::Config);
    let (mut agent, restored) =
        Agent::start(server.connect(), watcher, settings, Duration::ZERO).unwrap();
    assert_eq!((restored.queues, restored.profiles), (0, 0));
    assert_eq!(agent.poll(Duration::ZERO).unwrap(), Event::Began);
    let mut decisions = 0;
    while switch.play(interval()) {
        switch.publish(&mut databases).unwrap();
        // A poll without new counters in between changes nothing.
        if let Event::Decided { .. } = agent.poll(switch.now()).unwrap() {
            decisions += 1;
        }
        assert_eq!(agent.poll(switch.now()).unwrap(), Event::Nothing);
        switch.apply(&mut databases).unwrap();
        assert_eq!(switch.thresholds(), agent.thresholds());
    }
    assert_eq!(agent.tally().decisions, decisions);
    let restored = agent.finish().unwrap();
    assert_eq!(restored.queues, scenario.port_count());
    assert_eq!(dump(&mut databases, Database::Config), before);
    assert!(dump(&mut databases, Database::State).is_empty());
    let fcts = switch
        .outcome()
        .records
        .iter()
        .map(|record| record.fct)
        .collect();
    (fcts, decisions)
}

/// The network sees the same through the databases as in the simulator, bit by bit. So its decisions and
/// their results are the same too.
#[test]
fn the_agent_does_what_the_control_of_the_simulator_does() {
    let Some(server) = Server::start() else {
        return;
    };
    let (scenario, trace) = crowded();
    let fixed = scenario.with(|scenario| {
        scenario.control.max_interval_us = 1_000 * INTERVAL_MS;
    });
    let options = ControlOptions {
        trigger: TriggerMode::FixedInterval,
        ..ControlOptions::default()
    };
    let mut expected = Watcher::default();
    let mut env = ControlEnv::new(&fixed, &trace, &options).unwrap();
    let mut action = vec![0.0; env.ports()];
    while env.advance() == StopReason::Decision {
        expected.act(env.observation(), env.ports(), &mut action);
        env.act(&action);
    }
    let outcome = env.outcome();
    assert!(outcome.summary.drops > 100 && expected.seen.len() > 50);

    let mut watcher = Watcher::default();
    let (fcts, decisions) = play(&server, settings(INTERVAL_MS), true, &mut watcher);
    assert_eq!(decisions, outcome.summary.decisions);
    assert_eq!(watcher.seen, expected.seen);
    let expected: Vec<_> = outcome.records.iter().map(|record| record.fct).collect();
    assert_eq!(fcts, expected);
}

/// The switch reports watermarks only: they never underestimate the queue, sent bytes count as enqueued, and
/// drops are exact.
#[test]
fn watermarks_are_enough_to_close_the_loop() {
    let Some(server) = Server::start() else {
        return;
    };
    let mut with = Watcher::default();
    let mut without = Watcher::default();
    play(&server, settings(INTERVAL_MS), true, &mut with);
    let (fcts, decisions) = play(&server, settings(INTERVAL_MS), false, &mut without);
    assert!(decisions > 50);
    assert!(fcts.iter().all(Option::is_some));
    // Until the first decision has taken effect, both have seen the same traffic.
    let newest = |watcher: &Watcher, port: usize| {
        let end = (port + 1) * HISTORY * FEATURES;
        watcher.seen[0][end - FEATURES..end].to_vec()
    };
    let mut longer = 0;
    for port in 0..16 {
        let (with, without) = (newest(&with, port), newest(&without, port));
        assert!(without[0] >= with[0]);
        longer += usize::from(without[0] > with[0]);
        assert_eq!(without[2..], with[2..]);
    }
    assert!(longer > 0);
}

/// The trigger by counts fires at readings: fewer decisions than readings, none without a cause.
#[test]
fn decisions_come_by_trigger() {
    let Some(server) = Server::start() else {
        return;
    };
    let mut triggered = settings(INTERVAL_MS);
    triggered.timing.longest = Duration::ZERO;
    let mut watcher = Watcher::default();
    let (_, decisions) = play(&server, triggered.clone(), true, &mut watcher);
    let mut every = Watcher::default();
    let (_, all) = play(&server, settings(INTERVAL_MS), true, &mut every);
    assert!(0 < decisions && decisions < all, "{decisions} of {all}");
    // Decisions are no more frequent than the shortest interval allows.
    triggered.timing.shortest = Duration::from_millis(20 * INTERVAL_MS);
    let (_, few) = play(&server, triggered, true, &mut Watcher::default());
    assert!(0 < few && few <= all / 20 + 1, "{few} of {all}");
}

#[test]
fn counters_of_ports_will_do_as_well() {
    let Some(server) = Server::start() else {
        return;
    };
    let mut by_port = settings(INTERVAL_MS);
    by_port.source = Source::Port;
    let mut watcher = Watcher::default();
    let (fcts, decisions) = play(&server, by_port, true, &mut watcher);
    assert!(decisions > 50 && fcts.iter().all(Option::is_some));
    // Lost packets are counted, and are about as large as the sent ones.
    assert!(
        watcher
            .seen
            .iter()
            .flatten()
            .skip(2)
            .step_by(FEATURES)
            .any(|&dropped| dropped > 0.0)
    );
}

#[test]
fn what_the_switch_does_not_take_is_not_written() {
    let Some(server) = Server::start() else {
        return;
    };
    let mut bounded = settings(INTERVAL_MS);
    bounded.max_threshold = 1;
    let (scenario, trace) = crowded();
    let mut databases = server.connect();
    let mut switch = SimulatedSwitch::new(&scenario, &trace, true).unwrap();
    switch.populate(&mut databases).unwrap();
    let mut watcher = Watcher::default();
    let (mut agent, _) =
        Agent::start(server.connect(), &mut watcher, bounded, Duration::ZERO).unwrap();
    let (mut highest, mut lowest) = (i8::MIN, i8::MAX);
    agent.poll(Duration::ZERO).unwrap();
    while switch.play(interval()) {
        switch.publish(&mut databases).unwrap();
        agent.poll(switch.now()).unwrap();
        highest = highest.max(*agent.thresholds().iter().max().unwrap());
        lowest = lowest.min(*agent.thresholds().iter().min().unwrap());
        switch.apply(&mut databases).unwrap();
    }
    agent.finish().unwrap();
    assert_eq!((lowest, highest), (-2, 1));
}
