//! Configurations of real switches, and ones that the agent cannot work with.

use std::time::Duration;

use bufgym_sonic::{Agent, Database, Databases, Error, Event, Settings};

use crate::server::Server;
use crate::switch::{Watcher, delete, dump, set, settings, unset};

/// Fills the databases of a switch with three ports at 100 and 25 Gbit/s and eight queues each: lossy ones in
/// two groups, lossless ones between them. The switch computes the size of the pool, and the counters have
/// been read once.
fn populate(databases: &mut Databases) {
    let config = [
        ("BUFFER_POOL|egress_lossy_pool", "mode", "dynamic"),
        ("BUFFER_POOL|egress_lossy_pool", "type", "egress"),
        ("BUFFER_POOL|egress_lossless_pool", "mode", "dynamic"),
        ("BUFFER_POOL|egress_lossless_pool", "type", "egress"),
        ("BUFFER_POOL|egress_lossless_pool", "size", "34287552"),
        ("BUFFER_PROFILE|q_lossy_profile", "dynamic_th", "3"),
        (
            "BUFFER_PROFILE|q_lossy_profile",
            "pool",
            "egress_lossy_pool",
        ),
        ("BUFFER_PROFILE|q_lossy_profile", "size", "0"),
        ("BUFFER_PROFILE|q_scavenger_profile", "dynamic_th", "-1"),
        (
            "BUFFER_PROFILE|q_scavenger_profile",
            "pool",
            "egress_lossy_pool",
        ),
        ("BUFFER_PROFILE|q_scavenger_profile", "size", "1518"),
        ("BUFFER_PROFILE|egress_lossless_profile", "dynamic_th", "7"),
        (
            "BUFFER_PROFILE|egress_lossless_profile",
            "pool",
            "egress_lossless_pool",
        ),
        ("BUFFER_PROFILE|egress_lossless_profile", "size", "0"),
        ("DEVICE_METADATA|localhost", "buffer_model", "dynamic"),
    ];
    for (key, field, value) in config {
        set(databases, Database::Config, key, field, value);
    }
    set(
        databases,
        Database::Appl,
        "BUFFER_POOL_TABLE:egress_lossy_pool",
        "size",
        "23592960",
    );
    for (number, (port, speed)) in [
        ("Ethernet0", "100000"),
        ("Ethernet8", "100000"),
        ("Ethernet16", "25000"),
    ]
    .iter()
    .enumerate()
    {
        set(
            databases,
            Database::Config,
            &format!("PORT|{port}"),
            "speed",
            speed,
        );
        for (queues, profile) in [
            ("0-2", "q_lossy_profile"),
            ("3-4", "egress_lossless_profile"),
            ("5", "q_scavenger_profile"),
        ] {
            set(
                databases,
                Database::Config,
                &format!("BUFFER_QUEUE|{port}|{queues}"),
                "profile",
                profile,
            );
        }
        set(
            databases,
            Database::Counters,
            "COUNTERS_PORT_NAME_MAP",
            port,
            &format!("oid:0x10000000000{number:02x}"),
        );
        for queue in 0..8 {
            let oid = format!("oid:0x150000000{number:03x}{queue}");
            set(
                databases,
                Database::Counters,
                "COUNTERS_QUEUE_NAME_MAP",
                &format!("{port}:{queue}"),
                &oid,
            );
            counters(
                databases,
                number,
                queue,
                [1_000_000 * (queue + 1), 0, 2_000],
            );
        }
    }
}

fn counters(
    databases: &mut Databases,
    port: usize,
    queue: u64,
    [sent, dropped, watermark]: [u64; 3],
) {
    let key = format!("COUNTERS:oid:0x150000000{port:03x}{queue}");
    for (field, value) in [
        ("SAI_QUEUE_STAT_BYTES", sent),
        ("SAI_QUEUE_STAT_PACKETS", sent / 1_000),
        ("SAI_QUEUE_STAT_DROPPED_BYTES", dropped),
        ("SAI_QUEUE_STAT_DROPPED_PACKETS", dropped / 1_000),
        ("SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES", watermark),
    ] {
        set(
            databases,
            Database::Counters,
            &key,
            field,
            &value.to_string(),
        );
    }
}

/// Removes everything.
fn clear(databases: &mut Databases) {
    for database in [
        Database::Appl,
        Database::Counters,
        Database::Config,
        Database::State,
    ] {
        let keys: Vec<String> = dump(databases, database).into_keys().collect();
        keys.iter().for_each(|key| delete(databases, database, key));
    }
}

fn start(server: &Server, settings: Settings) -> Result<Agent<Watcher>, Error> {
    let started = Agent::start(
        server.connect(),
        Watcher::default(),
        settings,
        Duration::ZERO,
    );
    started.map(|(agent, _)| agent)
}

#[test]
fn lossy_queues_of_all_ports_are_controlled_and_no_others() {
    let Some(server) = Server::start() else {
        return;
    };
    let mut databases = server.connect();
    populate(&mut databases);
    let before = dump(&mut databases, Database::Config);
    let mut agent = start(&server, settings(100)).unwrap();
    let layout = agent.layout();
    let names: Vec<&str> = layout.ports.iter().map(|port| port.name.as_str()).collect();
    assert_eq!(names, ["Ethernet0", "Ethernet8", "Ethernet16"]);
    assert_eq!(
        (layout.buffer_bytes, layout.present, layout.beta()),
        (23_592_960, 3, 7_864_320)
    );
    let rates: Vec<u64> = layout
        .ports
        .iter()
        .map(|port| port.rate_bps / 1_000_000_000)
        .collect();
    assert_eq!(rates, [100, 100, 25]);
    let keys: Vec<&str> = layout.ports[0]
        .queues
        .iter()
        .map(|queues| queues.key.as_str())
        .collect();
    assert_eq!(
        keys,
        ["BUFFER_QUEUE|Ethernet0|0-2", "BUFFER_QUEUE|Ethernet0|5"]
    );
    assert_eq!(layout.ports[0].queues[0].oids.len(), 3);
    assert_eq!(agent.thresholds(), [3, 3, 3]);

    assert_eq!(agent.poll(Duration::ZERO).unwrap(), Event::Began);
    // The second port sends 9 MB and loses 1 MB at queue 1, then nothing.
    counters(&mut databases, 1, 1, [11_000_000, 1_000_000, 3_000_000]);
    let Event::Decided {
        changes, writes, ..
    } = agent.poll(Duration::from_millis(100)).unwrap()
    else {
        panic!("the longest interval is over");
    };
    assert!(!changes.is_empty());
    // Each port has two queue keys, and each key has a copy of its profile.
    let queues = writes
        .iter()
        .filter(|write| write.key.starts_with("BUFFER_QUEUE"));
    assert_eq!(queues.count(), 6);
    let config = dump(&mut databases, Database::Config);
    for (key, fields) in config
        .iter()
        .filter(|(key, _)| key.starts_with("BUFFER_PROFILE|bufgym_"))
    {
        let old = if key.contains("scavenger") {
            "q_scavenger_profile"
        } else {
            "q_lossy_profile"
        };
        let mut expected = before[&format!("BUFFER_PROFILE|{old}")].clone();
        expected.insert("dynamic_th".to_owned(), fields["dynamic_th"].clone());
        assert_eq!(*fields, expected);
    }
    assert_eq!(
        config["BUFFER_QUEUE|Ethernet8|3-4"]["profile"],
        "egress_lossless_profile"
    );
    agent.finish().unwrap();
    assert_eq!(dump(&mut databases, Database::Config), before);
}

#[test]
fn ports_can_be_chosen_and_they_alone_share_the_pool() {
    let Some(server) = Server::start() else {
        return;
    };
    let mut databases = server.connect();
    populate(&mut databases);
    let mut chosen = settings(100);
    chosen.wanted.ports = vec!["Ethernet16".to_owned()];
    chosen.wanted.buffer_bytes = Some(3_000_000);
    let agent = start(&server, chosen).unwrap();
    assert_eq!(agent.layout().ports.len(), 1);
    assert_eq!(agent.layout().present, 3);
    assert_eq!(agent.layout().beta(), 3_000_000);
}

type Edit = (Database, &'static str, &'static str, &'static str);

/// Ports that are not in use, in every form that the databases have for it.
const IDLE: [&[Edit]; 4] = [
    &[(Database::Config, "PORT|Ethernet8", "admin_status", "down")],
    // APPL_DB counts for a field that CONFIG_DB leaves out.
    &[(
        Database::Appl,
        "PORT_TABLE:Ethernet8",
        "admin_status",
        "down",
    )],
    &[
        (
            Database::Config,
            "BUFFER_PROFILE|egress_lossy_zero_profile",
            "dynamic_th",
            "-8",
        ),
        (
            Database::Config,
            "BUFFER_QUEUE|Ethernet8|0-2",
            "profile",
            "egress_lossy_zero_profile",
        ),
        (
            Database::Config,
            "BUFFER_QUEUE|Ethernet8|5",
            "profile",
            "egress_lossy_zero_profile",
        ),
    ],
    &[
        (
            Database::Config,
            "BUFFER_PROFILE|egress_lossy_zero_profile",
            "static_th",
            "0",
        ),
        (
            Database::Config,
            "BUFFER_QUEUE|Ethernet8|0-2",
            "profile",
            "[BUFFER_PROFILE|egress_lossy_zero_profile]",
        ),
        (
            Database::Config,
            "BUFFER_QUEUE|Ethernet8|5",
            "profile",
            "[BUFFER_PROFILE|egress_lossy_zero_profile]",
        ),
    ],
];

/// Applies the edits, and completes the zero profile if they have one.
fn edit(databases: &mut Databases, edits: &[Edit]) {
    for &(database, key, field, value) in edits {
        set(databases, database, key, field, value);
        if key.ends_with("_zero_profile") {
            set(databases, database, key, "pool", "egress_lossy_pool");
            set(databases, database, key, "size", "0");
        }
    }
}

#[test]
fn ports_that_are_not_in_use_are_left_alone_and_not_counted() {
    let Some(server) = Server::start() else {
        return;
    };
    let mut databases = server.connect();
    for edits in IDLE {
        clear(&mut databases);
        populate(&mut databases);
        set(
            &mut databases,
            Database::Config,
            "PORT|Ethernet0",
            "admin_status",
            "up",
        );
        edit(&mut databases, edits);
        let before = dump(&mut databases, Database::Config);
        let mut agent = start(&server, settings(100)).unwrap();
        let layout = agent.layout();
        let names: Vec<&str> = layout.ports.iter().map(|port| port.name.as_str()).collect();
        assert_eq!(names, ["Ethernet0", "Ethernet16"], "{edits:?}");
        assert_eq!((layout.present, layout.idle), (3, 1));
        assert_eq!(layout.beta(), 23_592_960 / 2);
        agent.poll(Duration::ZERO).unwrap();
        counters(&mut databases, 0, 1, [11_000_000, 1_000_000, 3_000_000]);
        let event = agent.poll(Duration::from_millis(100)).unwrap();
        assert!(matches!(event, Event::Decided { .. }), "{event:?}");
        let config = dump(&mut databases, Database::Config);
        assert_ne!(config, before);
        for key in ["BUFFER_QUEUE|Ethernet8|0-2", "BUFFER_QUEUE|Ethernet8|5"] {
            assert_eq!(config[key], before[key], "{edits:?}");
        }
        agent.finish().unwrap();
        assert_eq!(dump(&mut databases, Database::Config), before);
        // If the user asks for such a port, the error gives the reason.
        let mut wrong = settings(100);
        wrong.wanted.ports = vec!["Ethernet0".to_owned(), "Ethernet8".to_owned()];
        let error = start(&server, wrong).err().unwrap();
        assert!(error.is_input(), "{error}");
        let text = error.to_string();
        let reason = match edits.len() {
            1 => "down",
            _ => "egress_lossy_zero_profile",
        };
        for word in ["PORT|Ethernet8", reason, "--ports"] {
            assert!(text.contains(word), "no '{word}' in: {text}");
        }
    }
}

/// A queue with a zero profile at a port with others stays as it is; the port is in use.
#[test]
fn a_zero_profile_concerns_its_queues_alone() {
    let Some(server) = Server::start() else {
        return;
    };
    let mut databases = server.connect();
    populate(&mut databases);
    edit(&mut databases, &IDLE[2][..2]);
    let agent = start(&server, settings(100)).unwrap();
    let layout = agent.layout();
    assert_eq!((layout.ports.len(), layout.idle), (3, 0));
    let keys: Vec<&str> = layout.ports[1]
        .queues
        .iter()
        .map(|queues| queues.key.as_str())
        .collect();
    assert_eq!(keys, ["BUFFER_QUEUE|Ethernet8|5"]);
}

#[test]
fn a_switch_without_a_port_in_use_is_refused() {
    let Some(server) = Server::start() else {
        return;
    };
    let mut databases = server.connect();
    populate(&mut databases);
    for port in ["Ethernet0", "Ethernet8", "Ethernet16"] {
        let key = format!("PORT|{port}");
        set(
            &mut databases,
            Database::Config,
            &key,
            "admin_status",
            "down",
        );
    }
    let error = start(&server, settings(100)).err().unwrap();
    assert!(error.is_input(), "{error}");
    let text = error.to_string();
    assert!(text.contains("3 are down"), "{text}");
}

/// Configurations that the agent could not work with, at ports that it does not control.
#[test]
fn what_is_configured_at_other_ports_does_not_stop_the_agent() {
    const ELSEWHERE: [&[Edit]; 4] = [
        &[
            (
                Database::Config,
                "BUFFER_PROFILE|fixed",
                "static_th",
                "100000",
            ),
            (
                Database::Config,
                "BUFFER_PROFILE|fixed",
                "pool",
                "egress_lossy_pool",
            ),
            (
                Database::Config,
                "BUFFER_QUEUE|Ethernet8|0-2",
                "profile",
                "fixed",
            ),
        ],
        &[(
            Database::Config,
            "BUFFER_QUEUE|Ethernet8|0-2",
            "profile",
            "nowhere",
        )],
        &[(
            Database::Config,
            "BUFFER_QUEUE|Ethernet8,Ethernet0|6",
            "profile",
            "q_lossy_profile",
        )],
        &[(Database::Config, "PORT|Ethernet8", "speed", "fast")],
    ];
    let Some(server) = Server::start() else {
        return;
    };
    let mut databases = server.connect();
    for edits in ELSEWHERE {
        clear(&mut databases);
        populate(&mut databases);
        edit(&mut databases, edits);
        let mut everything = settings(100);
        assert!(start(&server, everything.clone()).is_err(), "{edits:?}");
        everything.wanted.ports = vec!["Ethernet16".to_owned()];
        let agent = start(&server, everything).unwrap();
        assert_eq!(agent.layout().ports.len(), 1, "{edits:?}");
        drop(agent);
        // The same holds for a port that is down.
        for port in ["Ethernet0", "Ethernet8"] {
            let key = format!("PORT|{port}");
            set(
                &mut databases,
                Database::Config,
                &key,
                "admin_status",
                "down",
            );
        }
        let agent = start(&server, settings(100)).unwrap();
        assert_eq!(agent.layout().ports.len(), 1, "{edits:?}");
    }
}

#[test]
fn references_in_brackets_stay_so() {
    let Some(server) = Server::start() else {
        return;
    };
    let mut databases = server.connect();
    populate(&mut databases);
    set(
        &mut databases,
        Database::Config,
        "BUFFER_PROFILE|q_lossy_profile",
        "pool",
        "[BUFFER_POOL|egress_lossy_pool]",
    );
    for port in ["Ethernet0", "Ethernet8", "Ethernet16"] {
        let key = format!("BUFFER_QUEUE|{port}|0-2");
        set(
            &mut databases,
            Database::Config,
            &key,
            "profile",
            "[BUFFER_PROFILE|q_lossy_profile]",
        );
    }
    let before = dump(&mut databases, Database::Config);
    let mut agent = start(&server, settings(100)).unwrap();
    agent.poll(Duration::ZERO).unwrap();
    counters(&mut databases, 0, 0, [30_000_000, 0, 9_000]);
    agent.poll(Duration::from_millis(100)).unwrap();
    let set =
        dump(&mut databases, Database::Config)["BUFFER_QUEUE|Ethernet0|0-2"]["profile"].clone();
    assert!(
        set.starts_with("[BUFFER_PROFILE|bufgym_") && set.ends_with("_q_lossy_profile]"),
        "{set}"
    );
    agent.finish().unwrap();
    assert_eq!(dump(&mut databases, Database::Config), before);
}

type Spoil = fn(&mut Databases);

/// Each configuration is refused before anything is written, and the message names the place and the problem.
#[test]
fn what_the_agent_cannot_work_with_is_refused() {
    const CASES: [(Spoil, &[&str]); 14] = [
        (
            |db| delete(db, Database::Counters, "COUNTERS_QUEUE_NAME_MAP"),
            &["COUNTERS_QUEUE_NAME_MAP", "counterpoll queue enable"],
        ),
        (
            |db| delete(db, Database::Counters, "COUNTERS_PORT_NAME_MAP"),
            &["COUNTERS_PORT_NAME_MAP"],
        ),
        (
            |db| {
                unset(
                    db,
                    Database::Counters,
                    "COUNTERS_QUEUE_NAME_MAP",
                    "Ethernet8:1",
                )
            },
            &["Ethernet8:1"],
        ),
        (
            |db| delete(db, Database::Counters, "COUNTERS:oid:0x1500000000011"),
            &["COUNTERS:oid:0x1500000000011", "counterpoll"],
        ),
        (
            |db| {
                unset(
                    db,
                    Database::Counters,
                    "COUNTERS:oid:0x1500000000011",
                    "SAI_QUEUE_STAT_SHARED_WATERMARK_BYTES",
                )
            },
            &["counterpoll watermark enable"],
        ),
        (
            |db| {
                set(
                    db,
                    Database::Counters,
                    "COUNTERS:oid:0x1500000000011",
                    "SAI_QUEUE_STAT_BYTES",
                    "many",
                )
            },
            &["'many'"],
        ),
        (
            |db| delete(db, Database::Config, "BUFFER_POOL|egress_lossy_pool"),
            &["BUFFER_POOL|egress_lossy_pool", "egress_lossless_pool"],
        ),
        (
            |db| {
                set(
                    db,
                    Database::Config,
                    "BUFFER_POOL|egress_lossy_pool",
                    "mode",
                    "static",
                )
            },
            &["mode is static"],
        ),
        (
            |db| delete(db, Database::Appl, "BUFFER_POOL_TABLE:egress_lossy_pool"),
            &["--buffer-bytes"],
        ),
        (
            |db| delete(db, Database::Config, "BUFFER_PROFILE|q_lossy_profile"),
            &["BUFFER_QUEUE|Ethernet0|0-2", "q_lossy_profile"],
        ),
        (
            |db| {
                unset(
                    db,
                    Database::Config,
                    "BUFFER_PROFILE|q_lossy_profile",
                    "dynamic_th",
                );
                set(
                    db,
                    Database::Config,
                    "BUFFER_PROFILE|q_lossy_profile",
                    "static_th",
                    "100000",
                );
            },
            &["BUFFER_PROFILE|q_lossy_profile", "static_th"],
        ),
        (
            |db| {
                set(
                    db,
                    Database::Config,
                    "BUFFER_PROFILE|q_lossy_profile",
                    "dynamic_th",
                    "9",
                )
            },
            &["dynamic_th is 9", "-8 to 7"],
        ),
        (
            |db| {
                set(
                    db,
                    Database::Config,
                    "BUFFER_QUEUE|Ethernet0,Ethernet8|6",
                    "profile",
                    "q_lossy_profile",
                )
            },
            &["several ports"],
        ),
        (
            |db| unset(db, Database::Config, "PORT|Ethernet8", "speed"),
            &["PORT|Ethernet8", "speed"],
        ),
    ];
    let Some(server) = Server::start() else {
        return;
    };
    let mut databases = server.connect();
    for (spoil, words) in CASES {
        clear(&mut databases);
        populate(&mut databases);
        spoil(&mut databases);
        let before = dump(&mut databases, Database::Config);
        let error = start(&server, settings(100))
            .err()
            .unwrap_or_else(|| panic!("{words:?}"));
        assert!(error.is_input(), "{error}");
        let text = error.to_string();
        for word in words {
            assert!(text.contains(word), "no '{word}' in: {text}");
        }
        assert_eq!(dump(&mut databases, Database::Config), before);
    }
}

#[test]
fn wishes_that_do_not_fit_the_switch_are_refused() {
    let Some(server) = Server::start() else {
        return;
    };
    let mut databases = server.connect();
    populate(&mut databases);
    let mut wrong = settings(100);
    wrong.wanted.ports = vec!["Ethernet0".to_owned(), "Ethernet99".to_owned()];
    let text = start(&server, wrong).err().unwrap().to_string();
    assert!(
        text.contains("Ethernet99") && text.contains("Ethernet16"),
        "{text}"
    );
    let mut wrong = settings(100);
    wrong.wanted.pool = "egress_lossy".to_owned();
    let text = start(&server, wrong).err().unwrap().to_string();
    assert!(
        text.contains("no such pool") && text.contains("egress_lossy_pool"),
        "{text}"
    );
    let mut wrong = settings(100);
    wrong.timing.longest = Duration::from_millis(50);
    let text = start(&server, wrong).err().unwrap().to_string();
    assert!(text.contains("50ms") && text.contains("100ms"), "{text}");
}
