//! Tests of faults: a killed agent, counters that stop, somebody else who configures. The old values are
//! restored.

use std::time::{Duration, Instant};

use bufgym_sim::units;
use bufgym_sonic::journal::{JOURNAL, MADE};
use bufgym_sonic::profiles::{self, Restored};
use bufgym_sonic::simulated::SimulatedSwitch;
use bufgym_sonic::{Agent, Database, Databases, Error, Event, Settings};

use crate::server::Server;
use crate::switch::{Dump, Watcher, crowded, delete, dump, set, settings};

struct Bench {
    server: Server,
    databases: Databases,
    switch: SimulatedSwitch,
    /// CONFIG_DB before the agent started.
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
                self.switch.play(units::Duration::from_us(5_000)),
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
    let (mut agent, _) = bench.agent(settings(5));
    bench.decide(&mut agent, 3);
    // A killed process closes its connections and does nothing else.
    drop(agent);
    let left = bench.config();
    assert_ne!(left, bench.before);
    assert_eq!(bench.state()[JOURNAL].len(), 16);
    let made = left.keys().filter(|key| key.contains("|bufgym_")).count();
    assert_eq!(bench.state()[MADE].len(), made);
    let restored = profiles::restore(&mut bench.databases).unwrap();
    let expected = Restored {
        queues: 16,
        profiles: made,
    };
    assert_eq!(restored, expected);
    assert_eq!(bench.config(), bench.before);
    assert!(bench.state().is_empty());
    let again = profiles::restore(&mut bench.databases).unwrap();
    assert_eq!(again, Restored::default());
}

/// Names prove nothing: a profile in no journal is the operator's, and the agent uses other names.
#[test]
fn profiles_with_names_like_the_agents_are_left_alone() {
    let Some(mut bench) = Bench::new() else {
        return;
    };
    let profile = |bench: &mut Bench, name: &str, pool: &str| {
        let key = format!("BUFFER_PROFILE|{name}");
        for (field, value) in [("pool", pool), ("size", "0"), ("dynamic_th", "1")] {
            set(&mut bench.databases, Database::Config, &key, field, value);
        }
    };
    // The profiles are one that nobody uses, one of another pool that a queue uses, one in the pool that a
    // queue uses, and all that the agent would make.
    profile(&mut bench, "bufgym_3_mine", "egress_lossless_pool");
    profile(&mut bench, "gold", "egress_lossless_pool");
    profile(&mut bench, "bufgym_3_gold", "egress_lossless_pool");
    profile(&mut bench, "silver", "egress_lossy_pool");
    profile(&mut bench, "bufgym_3_silver", "egress_lossy_pool");
    for threshold in -2..=5 {
        let name = format!("bufgym_{threshold}_q_lossy_profile");
        profile(&mut bench, &name, "egress_lossy_pool");
    }
    for (queues, name) in [("3-4", "bufgym_3_gold"), ("0", "bufgym_3_silver")] {
        let key = format!("BUFFER_QUEUE|Ethernet4|{queues}");
        set(
            &mut bench.databases,
            Database::Config,
            &key,
            "profile",
            name,
        );
    }
    bench.before = bench.config();
    for killed in [false, true] {
        let (mut agent, restored) = bench.agent(settings(5));
        assert_eq!(restored, Restored::default());
        assert_eq!(bench.config(), bench.before);
        bench.decide(&mut agent, 3);
        let config = bench.config();
        for (key, fields) in &bench.before {
            let controlled = key.starts_with("BUFFER_QUEUE|") && key.ends_with("|0");
            assert!(controlled || config[key] == *fields, "{key}");
        }
        let new = &config["BUFFER_QUEUE|Ethernet0|0"]["profile"];
        assert!(new.starts_with("bufgym2_"), "{new}");
        match killed {
            true => {
                drop(agent);
                profiles::restore(&mut bench.databases).unwrap()
            }
            false => agent.finish().unwrap(),
        };
        assert_eq!(bench.config(), bench.before);
        assert!(bench.state().is_empty());
        assert_eq!(
            profiles::restore(&mut bench.databases).unwrap(),
            Restored::default()
        );
        assert_eq!(bench.config(), bench.before);
    }
}

/// After a reboot with a configuration that was saved while the agent ran, the agent's profiles belong to the
/// operator.
#[test]
fn without_a_journal_nothing_is_put_back_and_an_agent_works() {
    let Some(mut bench) = Bench::new() else {
        return;
    };
    let (mut agent, _) = bench.agent(settings(5));
    bench.decide(&mut agent, 3);
    drop(agent);
    for key in [JOURNAL, MADE] {
        delete(&mut bench.databases, Database::State, key);
    }
    bench.before = bench.config();
    let restored = profiles::restore(&mut bench.databases).unwrap();
    assert_eq!(restored, Restored::default());
    let (mut agent, _) = bench.agent(settings(5));
    bench.decide(&mut agent, 3);
    assert_ne!(bench.config(), bench.before);
    agent.finish().unwrap();
    assert_eq!(bench.config(), bench.before);
}

/// While it runs, the agent knows its own profiles.
#[test]
fn a_journal_that_is_gone_does_not_keep_the_agent_from_ending() {
    let Some(mut bench) = Bench::new() else {
        return;
    };
    let (mut agent, _) = bench.agent(settings(5));
    bench.decide(&mut agent, 3);
    for key in [JOURNAL, MADE] {
        delete(&mut bench.databases, Database::State, key);
    }
    assert_eq!(agent.finish().unwrap().queues, 16);
    assert_eq!(bench.config(), bench.before);
    assert!(bench.state().is_empty());
}

#[test]
fn a_profile_of_the_agent_that_somebody_elses_queue_has_stays() {
    let Some(mut bench) = Bench::new() else {
        return;
    };
    let (mut agent, _) = bench.agent(settings(5));
    bench.decide(&mut agent, 3);
    let made = bench.config()["BUFFER_QUEUE|Ethernet0|0"]["profile"].clone();
    let queue = "BUFFER_QUEUE|Ethernet0|3-4";
    set(
        &mut bench.databases,
        Database::Config,
        queue,
        "profile",
        &made,
    );
    let profile = format!("BUFFER_PROFILE|{made}");
    let config = bench.config();
    for key in [queue, profile.as_str()] {
        bench.before.insert(key.to_owned(), config[key].clone());
    }
    assert_eq!(agent.finish().unwrap().queues, 16);
    assert_eq!(bench.config(), bench.before);
    assert!(bench.state().is_empty());
    // The profile belongs to them from now on.
    let mut others = settings(5);
    others.wanted.ports = vec!["Ethernet4".to_owned(), "Ethernet8".to_owned()];
    let (mut agent, _) = bench.agent(others);
    bench.decide(&mut agent, 3);
    agent.finish().unwrap();
    assert_eq!(bench.config(), bench.before);
}

/// Somebody else makes a profile under the agent's next name, or edits a profile of the agent.
#[test]
fn profiles_that_somebody_else_makes_or_changes_end_the_agent() {
    type Meddle = fn(&str, &mut Databases);
    const CASES: [Meddle; 2] = [
        |made, databases| {
            for threshold in -2..=5 {
                let name = format!("bufgym_{threshold}_q_lossy_profile");
                if name != made {
                    let key = format!("BUFFER_PROFILE|{name}");
                    set(databases, Database::Config, &key, "dynamic_th", "7");
                }
            }
        },
        |made, databases| {
            let key = format!("BUFFER_PROFILE|{made}");
            delete(databases, Database::Config, &key);
        },
    ];
    for meddle in CASES {
        let Some(mut bench) = Bench::new() else {
            return;
        };
        let (mut agent, _) = bench.agent(settings(5));
        bench.decide(&mut agent, 1);
        let config = bench.config();
        let made: Vec<&str> = config
            .keys()
            .filter_map(|key| key.strip_prefix("BUFFER_PROFILE|bufgym_"))
            .collect();
        let [made] = made[..] else {
            panic!("the first decision is the same at all ports: {made:?}");
        };
        let made = format!("bufgym_{made}");
        meddle(&made, &mut bench.databases);
        let mut expected = bench.config();
        expected.remove(&format!("BUFFER_PROFILE|{made}"));
        for (key, fields) in &bench.before {
            expected.insert(key.clone(), fields.clone());
        }
        let error = loop {
            assert!(
                bench.switch.play(units::Duration::from_us(5_000)),
                "too short"
            );
            bench.switch.publish(&mut bench.databases).unwrap();
            if let Err(error) = agent.poll(bench.switch.now()) {
                break error;
            }
        };
        assert!(matches!(error, Error::Changed { .. }), "{error}");
        assert!(
            error.to_string().contains("BUFFER_PROFILE|bufgym_"),
            "{error}"
        );
        agent.finish().unwrap();
        assert_eq!(bench.config(), expected);
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
    // The old values are restored only once.
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

/// A server that hangs in the middle of the work costs one wait, however many commands were sent. A late
/// answer is not taken for the answer to another command.
#[test]
fn a_server_that_stands_still_is_left_and_the_agent_goes_on_later() {
    let Some(mut bench) = Bench::new() else {
        return;
    };
    let (mut agent, _) = bench.agent(settings(5));
    bench.decide(&mut agent, 3);
    let changed = bench.config();
    assert_ne!(changed, bench.before);
    bench.server.signal("STOP");
    let begin = Instant::now();
    let error = agent.poll(bench.switch.now()).unwrap_err();
    assert!(error.is_disconnected(), "{error}");
    assert!(
        error.to_string().contains("no answer within 5 s"),
        "{error}"
    );
    let error = agent.poll(bench.switch.now()).unwrap_err();
    assert!(error.is_disconnected(), "{error}");
    assert!(begin.elapsed() < Duration::from_secs(8));
    bench.server.signal("CONT");
    agent.reconnect().unwrap();
    bench.decide(&mut agent, 3);
    assert_eq!(agent.finish().unwrap().queues, 16);
    assert_eq!(bench.config(), bench.before);
    assert!(bench.state().is_empty());

    // The same holds at the end.
    let (mut agent, _) = bench.agent(settings(5));
    bench.decide(&mut agent, 1);
    bench.server.signal("STOP");
    agent.poll(bench.switch.now()).unwrap_err();
    bench.server.signal("CONT");
    assert_eq!(agent.finish().unwrap().queues, 16);
    assert_eq!(bench.config(), bench.before);
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
