//! `bufgym sonic-agent`: bad input, and a run against a real Redis server with signals.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Output};
use std::thread::sleep;
use std::time::{Duration, Instant};

use bufgym::sim::scenario::Scenario;
use bufgym::sim::traffic;
use bufgym::sim::units;
use bufgym::util::rng::{Split, trace_seed};
use bufgym_sonic::simulated::SimulatedSwitch;
use bufgym_sonic::{Address, Database, Databases, Login, schema};

use crate::harness::Sandbox;
use server::Server;

#[path = "../../adapters/sonic/tests/suite/server.rs"]
mod server;

#[test]
fn bad_input_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.random_checkpoint_over("alpha", "dt");
    for address in [
        "localhost",
        "redis://localhost:6379",
        "unix:redis.sock",
        "host:0",
    ] {
        sandbox.refused(
            &format!("sonic-agent --redis {address} --checkpoint alpha"),
            &[address, "unix:/PATH or HOST:PORT"],
        );
    }
    sandbox.refused(
        "sonic-agent --redis unix:/nowhere/redis.sock --checkpoint alpha",
        &["unix:/nowhere/redis.sock", "cannot connect"],
    );
    sandbox.refused(
        "sonic-agent --redis unix:/nowhere/redis.sock --restore",
        &["cannot connect"],
    );
    sandbox.refused(
        "sonic-agent --redis unix:/nowhere/redis.sock",
        &["--checkpoint"],
    );
    sandbox.refused(
        "sonic-agent --redis unix:/nowhere/redis.sock --checkpoint nothing",
        &["nothing", "No such file"],
    );
    let run = "sonic-agent --redis unix:/nowhere/redis.sock --checkpoint alpha";
    for (option, words) in [
        ("--counters packets", &["--counters", "queue or port"][..]),
        ("--max-dynamic-th 7", &["--max-dynamic-th", "-2..=5"]),
        ("--poll-ms 0", &["--poll-ms"]),
        ("--stale-ms 500", &["--stale-ms 500", "--poll-ms 1000"]),
        ("--dry-run --restore", &["--restore"]),
    ] {
        sandbox.refused(&format!("{run} {option}"), words);
    }
}

/// SONiC has the α of Dynamic Threshold, but no early drop, no ingress queues, no other rule, and no queue
/// management that the network was trained with.
#[test]
fn weights_that_decide_on_something_else_are_refused() {
    let sandbox = Sandbox::new();
    for low_level in ["dt+early", "fab", "reverie", "dt+red", "abm"] {
        let name = low_level.replace('+', "-");
        sandbox.random_checkpoint_over(&name, low_level);
        sandbox.refused(
            &format!("sonic-agent --redis unix:/nowhere/redis.sock --checkpoint {name}"),
            &[
                &name,
                low_level,
                "--low-level dt --actions alpha",
                "checkpoints/ndt-fct-dt",
            ],
        );
    }
}

/// A populated switch behind its own server.
struct Bench {
    sandbox: Sandbox,
    server: Server,
    databases: Databases,
    switch: SimulatedSwitch,
}

impl Bench {
    fn new() -> Option<Bench> {
        let server = Server::start()?;
        let mut scenario = Scenario::default();
        scenario.set("flows=300").unwrap();
        let trace = traffic::generate(&scenario, trace_seed(Split::Train, 5, 0));
        let mut switch = SimulatedSwitch::new(&scenario, &trace, true).unwrap();
        let mut databases = server.connect();
        switch.populate(&mut databases).unwrap();
        let sandbox = Sandbox::new();
        sandbox.random_checkpoint_over("alpha", "dt");
        Some(Bench {
            sandbox,
            server,
            databases,
            switch,
        })
    }

    fn command(&self, options: &str) -> String {
        format!("sonic-agent --redis {} {options}", self.server.address())
    }

    fn profile(&mut self) -> String {
        let key = schema::key(schema::BUFFER_QUEUE, "Ethernet0|0");
        self.databases
            .field(Database::Config, &key, schema::PROFILE)
            .unwrap()
            .unwrap()
    }

    /// Starts an agent that decides at every reading, and plays until the agent has written.
    fn agent(&mut self, options: &str) -> Child {
        let options = format!(
            "--checkpoint alpha --poll-ms 5 --min-interval-ms 1 --max-interval-ms 1 {options}"
        );
        let mut agent = self.sandbox.spawn(&self.command(&options));
        let begin = Instant::now();
        while self.profile() == "q_lossy_profile" {
            assert!(
                self.switch.play(units::Duration::from_us(200)),
                "the trace is too short"
            );
            self.switch.publish(&mut self.databases).unwrap();
            sleep(Duration::from_millis(20));
            assert!(
                begin.elapsed() < Duration::from_secs(60),
                "the agent writes nothing"
            );
            assert_eq!(agent.try_wait().unwrap(), None, "the agent has ended");
        }
        agent
    }
}

fn signal(agent: &Child, name: &str) {
    let sent = Command::new("kill")
        .args([format!("-{name}"), agent.id().to_string()])
        .status();
    assert!(sent.unwrap().success());
}

#[test]
fn signals_put_the_old_profiles_back() {
    let Some(mut bench) = Bench::new() else {
        return;
    };
    for (name, code) in [("INT", 130), ("TERM", 143)] {
        let agent = bench.agent("--json");
        assert!(bench.profile().starts_with("bufgym_"));
        signal(&agent, name);
        let output = agent.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{stderr}");
        assert_eq!(bench.profile(), "q_lossy_profile");
        let result: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert!(result["decisions"].as_u64().unwrap() > 0);
        assert_eq!(result["restored_queues"], 16);
        assert!(
            stderr.contains("16 of 16 ports") && stderr.contains("Ethernet0 0 ->"),
            "{stderr}"
        );
    }
}

#[test]
fn what_a_killed_agent_has_left_is_put_back_by_restore() {
    let Some(mut bench) = Bench::new() else {
        return;
    };
    let mut agent = bench.agent("");
    // A second agent is refused and changes nothing.
    let second = bench.command("--checkpoint alpha");
    bench.sandbox.refused(&second, &["another agent"]);
    agent.kill().unwrap();
    agent.wait().unwrap();
    assert!(bench.profile().starts_with("bufgym_"));
    let restored = bench.sandbox.ok(&bench.command("--restore --json")).json();
    assert_eq!(restored["restored_queues"], 16);
    assert_eq!(bench.profile(), "q_lossy_profile");
    let again = bench.sandbox.ok(&bench.command("--restore")).stdout;
    assert!(again.starts_with("0 queue keys"), "{again}");
}

#[test]
fn a_dry_run_prints_what_it_would_write() {
    let Some(mut bench) = Bench::new() else {
        return;
    };
    let options = "--checkpoint alpha --dry-run --poll-ms 5 --min-interval-ms 1 --max-interval-ms 1 --for-s 2";
    let agent = bench.sandbox.spawn(&bench.command(options));
    for _ in 0..50 {
        assert!(
            bench.switch.play(units::Duration::from_us(200)),
            "the trace is too short"
        );
        bench.switch.publish(&mut bench.databases).unwrap();
        sleep(Duration::from_millis(20));
    }
    let output = agent.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{stderr}");
    assert!(
        stderr.contains("dry run") && stderr.contains("would write: HSET BUFFER_PROFILE|bufgym_"),
        "{stderr}"
    );
    assert_eq!(bench.profile(), "q_lossy_profile");
}

/// Sets fields of keys of CONFIG_DB, one per line, like an operator.
fn configure(server: &Server, lines: &[String]) {
    let Address::Unix(path) = server.address() else {
        panic!("a socket of the file system");
    };
    let mut socket = UnixStream::connect(path).unwrap();
    let mut answers = BufReader::new(socket.try_clone().unwrap()).lines();
    for line in [&["SELECT 4".to_owned()], lines].concat() {
        writeln!(socket, "{line}\r").unwrap();
        let answer = answers.next().unwrap().unwrap();
        assert!(!answer.starts_with('-'), "{line}: {answer}");
    }
}

/// The bench has ports with SONiC's zero profile, ports that are down, and a profile of the operator's with a
/// name like the agent's. The log reports that they are left alone.
#[test]
fn what_is_left_alone_is_told() {
    let Some(bench) = Bench::new() else {
        return;
    };
    let zero = ["egress_lossy_zero_profile", "bufgym_3_mine"].map(|name| {
        format!("HSET BUFFER_PROFILE|{name} pool egress_lossy_pool size 0 dynamic_th -8")
    });
    let down = (8..12).map(|port| format!("HSET PORT|Ethernet{} admin_status down", 4 * port));
    let idle = (12..16).map(|port| {
        let key = format!("BUFFER_QUEUE|Ethernet{}|0", 4 * port);
        format!("HSET {key} profile egress_lossy_zero_profile")
    });
    let lines: Vec<String> = zero.into_iter().chain(down).chain(idle).collect();
    configure(&bench.server, &lines);
    let options = "--checkpoint alpha --dry-run --for-s 1";
    for (ports, told) in [
        ("", "8 of 16 ports (8 down or with zero profiles)"),
        ("--ports Ethernet0,Ethernet4", "2 of 16 ports, 2 queue keys"),
    ] {
        let run = bench
            .sandbox
            .ok(&bench.command(&format!("{options} {ports}")));
        let beta = if ports.is_empty() { 125_000 } else { 500_000 };
        for words in [
            told,
            &format!("beta {beta} bytes"),
            "BUFFER_PROFILE bufgym_3_mine: named like the agent's, but not in its journal",
        ] {
            assert!(
                run.stderr.contains(words),
                "no '{words}' in: {}",
                run.stderr
            );
        }
    }
    for (port, reason) in [
        ("Ethernet32", "administratively down"),
        ("Ethernet60", "zero profile egress_lossy_zero_profile"),
        ("Ethernet64", "no port Ethernet64"),
    ] {
        let command = bench.command(&format!("{options} --ports Ethernet0,{port}"));
        bench.sandbox.refused(&command, &[port, reason]);
    }
    let restored = bench.sandbox.ok(&bench.command("--restore"));
    assert!(restored.stdout.starts_with("0 queue keys"));
    assert!(
        restored.stderr.contains("bufgym_3_mine"),
        "{}",
        restored.stderr
    );
}

#[test]
fn a_password_comes_from_a_file_or_a_variable() {
    let login = |user: Option<&str>, password: &str| Login {
        user: user.map(str::to_owned),
        password: password.to_owned(),
    };
    let right = login(None, "open sesame");
    let options = [
        "--requirepass",
        "open sesame",
        "--user",
        "agent",
        "on",
        ">of its own",
        "~*",
        "+@all",
    ];
    let Some(server) = Server::start_for(Some(&right), &options) else {
        return;
    };
    let sandbox = Sandbox::new();
    sandbox.write("password", "open sesame\n");
    sandbox.write("agents", "of its own");
    sandbox.write("wrong", "open barley\r\n");
    sandbox.write("empty", "\n");
    sandbox.write("lines", "open\nsesame\n");
    let restore = format!("sonic-agent --redis {} --restore", server.address());
    let with = |variable: &str, options: &str| -> Output {
        let mut command = sandbox.command(&format!("{restore} {options}"));
        command.env("BUFGYM_REDIS_PASSWORD", variable);
        command.output().unwrap()
    };
    sandbox.ok(&format!("{restore} --redis-password-file password"));
    sandbox.ok(&format!(
        "{restore} --redis-user agent --redis-password-file agents"
    ));
    assert!(with("open sesame", "").status.success());
    assert!(with("of its own", "--redis-user agent").status.success());
    // The file has precedence.
    let output = with("open barley", "--redis-password-file password");
    assert!(output.status.success(), "{output:?}");

    sandbox.refused(
        &restore,
        &[
            "asks for a password",
            "--redis-password-file",
            "BUFGYM_REDIS_PASSWORD",
        ],
    );
    for (options, words) in [
        ("--redis-password-file wrong", &["refuses"][..]),
        (
            "--redis-user nobody --redis-password-file password",
            &["refuses", "--redis-user"],
        ),
        ("--redis-password-file empty", &["empty", "one line"]),
        ("--redis-password-file lines", &["lines", "one line"]),
        ("--redis-password-file nothing", &["nothing"]),
        (
            "--redis-user agent",
            &["--redis-user agent", "needs a password"],
        ),
    ] {
        sandbox.refused(&format!("{restore} {options}"), words);
    }
    let output = with("open barley", "");
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(
        stderr.contains("refuses") && !stderr.contains("barley"),
        "{stderr}"
    );
}

#[test]
fn a_server_that_does_not_answer_is_named() {
    let Some(server) = Server::start() else {
        return;
    };
    let sandbox = Sandbox::new();
    let address = server.address().to_string();
    server.signal("STOP");
    let begin = Instant::now();
    sandbox.refused(
        &format!("sonic-agent --redis {address} --restore"),
        &[&address, "no answer within 5 s", "redis-cli ping"],
    );
    assert!(begin.elapsed() < Duration::from_secs(10));
    server.signal("CONT");
    sandbox.ok(&format!("sonic-agent --redis {address} --restore"));
}
