//! An agent that is killed, counters that stop, somebody else who configures: the old values come back.

use std::time::Duration;

use bufgym_sim::units::Time;
use bufgym_sonic::profiles::{self, JOURNAL, Restored};
use bufgym_sonic::simulated::SimulatedSwitch;
use bufgym_sonic::{Agent, Database, Databases, Error, Event, Settings};

use crate::server::Server;
use crate::switch::{Dump, Watcher, crowded, delete, dump, set, settings};

struct Bench {
    server: Server,
    databases: Databases,
    switch: SimulatedSwitch,
    /// CONFIG_DB before the agent came.
    before: Dump,
}

impl Bench {
    fn new() -> Option<Bench> {
        let server = Server::start()?;
        let (scenario, trace) = crowded();
        let mut databases = server.connect();
        let mut switch = SimulatedSwitch::new(&scenario, &trace, true).unwrap();
        switch.populate(&mut databases).unwrap();
        let before = dump(&mut databases, Database::Config);
        Some(Bench {
            server,
            databases,
            switch,
            before,
        })
    }

    fn agent(&self, settings: Settings) -> (Agent<Watcher>, Restored) {
        Agent::start(
            self.server.connect(),
            Watcher::default(),
            settings,
            Duration::ZERO,
        )
        .unwrap()
    }

    /// Plays and polls until there are `decisions` more.
    fn decide(&mut self, agent: &mut Agent<Watcher>, decisions: u64) -> Vec<Event> {
        let until = agent.tally().decisions + decisions;
        let mut events = vec![agent.poll(self.switch.now()).unwrap()];
        while agent.tally().decisions < until {
            assert!(
                self.switch.play(Time::from_us(5_000)),
                "the trace is too short"
            );
            self.switch.publish(&mut self.databases).unwrap();
            events.push(agent.poll(self.switch.now()).unwrap());
        }
        events
    }

    fn config(&mut self) -> Dump {
        dump(&mut self.databases, Database::Config)
    }

    fn state(&mut self) -> Dump {
        dump(&mut self.databases, Database::State)
    }
}

#[test]
fn what_a_killed_agent_has_left_is_put_back() {
    let Some(mut bench) = Bench::new() else {
        return;
    };
    for with_journal in [true, false] {
        let (mut agent, _) = bench.agent(settings(5));
        bench.decide(&mut agent, 3);
        // A process that is killed closes its connections and does nothing else.
        drop(agent);
        let left = bench.config();
        assert_ne!(left, bench.before);
        assert_eq!(bench.state()[JOURNAL].len(), 16);
        if !with_journal {
            delete(&mut bench.databases, Database::State, JOURNAL);
        }
        let restored = profiles::restore(&mut bench.databases).unwrap();
        assert_eq!(restored.queues, 16);
        assert!(restored.profiles > 0);
        assert_eq!(bench.config(), bench.before);
        assert!(bench.state().is_empty());
        let again = profiles::restore(&mut bench.databases).unwrap();
        assert_eq!(again, Restored::default());
    }
}

#[test]
fn the_next_agent_puts_back_what_a_killed_one_has_left() {
    let Some(mut bench) = Bench::new() else {
        return;
    };
    let (mut agent, _) = bench.agent(settings(5));
    bench.decide(&mut agent, 3);
    drop(agent);
    let dry = Settings {
        dry_run: true,
        ..settings(5)
    };
    let refused = Agent::start(
        bench.server.connect(),
        Watcher::default(),
        dry,
        Duration::ZERO,
    );
    let error = refused.err().unwrap().to_string();
    assert!(error.contains("--restore"), "{error}");
    let (agent, restored) = bench.agent(settings(5));
    assert_eq!(restored.queues, 16);
    assert_eq!(bench.config(), bench.before);
    assert!(
        agent
            .layout()
            .ports
            .iter()
            .all(|port| port.queues[0].threshold == 0)
    );
}

#[test]
fn old_profiles_come_back_when_counters_stop_and_work_goes_on_with_them() {
    let Some(mut bench) = Bench::new() else {
        return;
    };
    let (mut agent, _) = bench.agent(settings(5));
    bench.decide(&mut agent, 3);
    let heard = bench.switch.now();
    let soon = heard + Duration::from_millis(9_999);
    assert_eq!(agent.poll(soon).unwrap(), Event::Nothing);
    assert_ne!(bench.config(), bench.before);
    let late = heard + Duration::from_secs(10);
    let Event::Stale(restored) = agent.poll(late).unwrap() else {
        panic!("the counters have stopped");
    };
    assert_eq!(restored.queues, 16);
    assert_eq!(bench.config(), bench.before);
    assert!(agent.thresholds().iter().all(|&threshold| threshold == 0));
    // Once is enough.
    assert_eq!(agent.poll(late * 2).unwrap(), Event::Nothing);
    let events = bench.decide(&mut agent, 2);
    assert!(events.contains(&Event::Began), "{events:?}");
    assert_ne!(bench.config(), bench.before);
    assert_eq!(agent.tally().stale, 1);
    agent.finish().unwrap();
    assert_eq!(bench.config(), bench.before);
}

#[test]
fn what_somebody_else_sets_stays_and_ends_the_agent() {
    let Some(mut bench) = Bench::new() else {
        return;
    };
    let (mut agent, _) = bench.agent(settings(5));
    bench.decide(&mut agent, 2);
    set(
        &mut bench.databases,
        Database::Config,
        "BUFFER_QUEUE|Ethernet4|0",
        "profile",
        "egress_lossless_profile",
    );
    let error = agent.poll(bench.switch.now()).unwrap_err();
    assert!(matches!(error, Error::Changed { .. }), "{error}");
    let text = error.to_string();
    assert!(
        text.contains("BUFFER_QUEUE|Ethernet4|0") && text.contains("egress_lossless_profile"),
        "{text}"
    );
    assert_eq!(agent.finish().unwrap().queues, 15);
    let mut expected = bench.before.clone();
    let queue = expected.get_mut("BUFFER_QUEUE|Ethernet4|0").unwrap();
    queue.insert("profile".to_owned(), "egress_lossless_profile".to_owned());
    assert_eq!(bench.config(), expected);
}

#[test]
fn an_old_profile_that_is_gone_is_told() {
    let Some(mut bench) = Bench::new() else {
        return;
    };
    let (mut agent, _) = bench.agent(settings(5));
    bench.decide(&mut agent, 2);
    delete(
        &mut bench.databases,
        Database::Config,
        "BUFFER_PROFILE|q_lossy_profile",
    );
    let error = agent.finish().unwrap_err().to_string();
    assert!(
        error.contains("q_lossy_profile") && error.contains("no such profile"),
        "{error}"
    );
    // The queues keep a profile that is there, and the journal stays for the next attempt.
    let config = bench.config();
    let profile = &config["BUFFER_QUEUE|Ethernet0|0"]["profile"];
    assert!(config.contains_key(&format!("BUFFER_PROFILE|{profile}")));
    set(
        &mut bench.databases,
        Database::Config,
        "BUFFER_PROFILE|q_lossy_profile",
        "dynamic_th",
        "0",
    );
    assert_eq!(profiles::restore(&mut bench.databases).unwrap().queues, 16);
    assert!(bench.state().is_empty());
}

#[test]
fn two_agents_are_one_too_many() {
    let Some(bench) = Bench::new() else { return };
    let (agent, _) = bench.agent(settings(5));
    let second = Agent::start(
        bench.server.connect(),
        Watcher::default(),
        settings(5),
        Duration::ZERO,
    );
    let error = second.err().unwrap();
    assert!(matches!(error, Error::Busy(_)), "{error}");
    drop(agent);
    bench.agent(settings(5));
}

#[test]
fn a_dry_run_writes_nothing_and_tells_what_it_would_write() {
    let Some(mut bench) = Bench::new() else {
        return;
    };
    let dry = Settings {
        dry_run: true,
        ..settings(5)
    };
    let (mut agent, _) = bench.agent(dry);
    let events = bench.decide(&mut agent, 5);
    let mut lines = Vec::new();
    for event in &events {
        if let Event::Decided { writes, .. } = event {
            lines.extend(writes.iter().map(ToString::to_string));
        }
    }
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("HSET BUFFER_PROFILE|bufgym_")),
        "{lines:?}"
    );
    assert!(
        lines
            .iter()
            .any(|line| line.starts_with("HSET BUFFER_QUEUE|Ethernet0|0 profile bufgym_")),
        "{lines:?}"
    );
    assert_eq!(agent.finish().unwrap(), Restored::default());
    assert_eq!(bench.config(), bench.before);
    assert!(bench.state().is_empty());
}

#[test]
fn a_server_that_goes_away_is_told_apart_from_bad_input() {
    let Some(mut bench) = Bench::new() else {
        return;
    };
    let (mut agent, _) = bench.agent(settings(5));
    bench.decide(&mut agent, 1);
    let Bench { server, .. } = bench;
    drop(server);
    let error = agent.poll(Duration::from_secs(1)).unwrap_err();
    assert!(error.is_disconnected(), "{error}");
    assert!(agent.reconnect().is_err());
}
