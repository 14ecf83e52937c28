//! Invalid input is refused with its place and a remedy.

use std::fs;

use bufgym_slotted::{
    Arrivals, Generator, GeneratorOptions, Kind, Order, Packet, PolicySpec, SlottedError, Switch,
};

fn read(text: &str) -> Result<Arrivals, SlottedError> {
    Arrivals::from_reader(text.as_bytes(), "a.csv", 4)
}

fn message<T: std::fmt::Debug>(result: Result<T, SlottedError>) -> String {
    let text = result.unwrap_err().to_string();
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

fn assert_words(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "no '{word}' in: {text}");
    }
}

#[test]
fn a_number_beyond_its_range_is_refused_and_never_cut() {
    for (row, accepted) in [
        ("1125899906842624,3,1,1", true),
        ("1125899906842625,3,1,1", false),
        ("18446744073709551615,3,1,1", false),
        ("18446744073709551616,3,1,1", false),
        ("-1,3,1,1", false),
        ("0,4,1,1", false),
        // These values would be 3 and 1 if they were truncated to 32 bits.
        ("0,4294967299,1,1", false),
        ("0,3,4294967297,1", false),
        ("0,3,1,4294967297", false),
        ("0,3,1000000,1", true),
        ("0,3,1000001,1", false),
        ("0,3,1,1000000", true),
        ("0,3,1,1000001", false),
        ("0,3,0,1", false),
        ("0,3,1.0,1", false),
    ] {
        let result = read(&format!("slot,port,work,value\n{row}\n"));
        assert_eq!(result.is_ok(), accepted, "{row}: {result:?}");
    }
}

#[test]
fn a_switch_without_ports_takes_no_packet() {
    let error = message(Arrivals::new(vec![Packet::unit(0, 0)], 0));
    assert_words(&error, &["packet 1", "port", "at least one"]);
    let csv = Arrivals::from_reader("slot,port\n0,0\n".as_bytes(), "a.csv", 0);
    assert_words(&message(csv), &["a.csv:2", "port", "at least one"]);
}

#[test]
fn arrivals_are_read_in_any_order_of_columns() {
    let arrivals = read("# comment\nvalue,port,slot,note\n\n7,3,0,x\n 2 , 0 ,5,y\n").unwrap();
    let expected = [
        Packet {
            value: 7,
            ..Packet::unit(0, 3)
        },
        Packet {
            value: 2,
            ..Packet::unit(5, 0)
        },
    ];
    assert_eq!(arrivals.packets(), expected);
    assert_eq!(arrivals.kind(), Kind::Value);
    let arrivals = read("slot,port,work,value\n0,1,1,1\n0,1,3,1\n").unwrap();
    assert_eq!(arrivals.kind(), Kind::Work);
    assert_eq!(read("slot,port\n0,1\n").unwrap().kind(), Kind::Unit);
}

#[test]
fn bad_lines_are_found_by_line_and_field() {
    let cases: [(&str, &[&str]); 14] = [
        (
            "slot,port,work,port\n0,1,1,2\n",
            &["a.csv:1", "`port`", "two columns"],
        ),
        ("slot,port,work\n0,1,1\n0,1,0\n", &["a.csv:3", "work", "0"]),
        ("slot,port,value\n0,1,0\n", &["a.csv:2", "value"]),
        ("slot,port\n0,4\n", &["a.csv:2", "port", "0 to 3", "4"]),
        ("slot,port\n0,-1\n", &["a.csv:2", "port", "-1"]),
        ("slot,port\n3,0\n2,0\n", &["a.csv:3", "slot", "order"]),
        ("slot,port\n0,1,2\n", &["a.csv:2", "3 fields"]),
        ("slot,port\nx,1\n", &["a.csv:2", "slot", "'x'"]),
        ("slot,prot\n0,1\n", &["a.csv:1", "`port`"]),
        ("slot,port\n", &["no packets"]),
        ("", &["slot"]),
        (
            "slot,port,work,value\n0,1,2,1\n0,1,1,2\n",
            &["a.csv:3", "not both"],
        ),
        (
            "slot,port,work\n0,1,1000001\n",
            &["a.csv:2", "work", "1000000"],
        ),
        ("slot,port\n99999999999999999,0\n", &["a.csv:2", "slot"]),
    ];
    for (text, words) in cases {
        assert_words(&message(read(text)), words);
    }
}

#[test]
fn a_file_is_read_and_a_missing_one_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("in.csv");
    fs::write(&path, "slot,port\n0,0\n2,1\n").unwrap();
    assert_eq!(Arrivals::read_csv(&path, 2).unwrap().packets().len(), 2);
    assert_words(
        &message(Arrivals::read_csv(&path, 1)),
        &["in.csv:3", "port"],
    );
    let missing = folder.path().join("no.csv");
    assert_words(&message(Arrivals::read_csv(missing, 2)), &["no.csv"]);
}

#[test]
fn an_optimum_that_is_too_large_is_refused() {
    let switch = Switch::new(8, 60, Order::Pq).unwrap();
    let packets = (0..400)
        .map(|i| Packet {
            work: 1 + i % 17,
            ..Packet::unit(u64::from(i / 9), i % 8)
        })
        .collect();
    let arrivals = Arrivals::new(packets, 8).unwrap();
    let refused = PolicySpec::Optimum.run(&switch, &arrivals, 1, false);
    assert_words(
        &message(refused),
        &["too large", "of 400", "work", "unit packets"],
    );
}

#[test]
fn an_optimum_that_takes_too_much_memory_is_refused() {
    let ports = 1 << 18;
    let switch = Switch::new(ports, 60, Order::Pq).unwrap();
    let packets = (0..60)
        .map(|port| Packet {
            work: 2,
            ..Packet::unit(0, port)
        })
        .collect();
    let arrivals = Arrivals::new(packets, ports).unwrap();
    let refused = PolicySpec::Optimum.run(&switch, &arrivals, 1, false);
    assert_words(
        &message(refused),
        &["too large", "too much memory", "of 60"],
    );
}

#[test]
fn policies_refuse_what_they_are_not_defined_for() {
    let switch = Switch::new(4, 8, Order::Pq).unwrap();
    let with_work = read("slot,port,work\n0,1,2\n").unwrap();
    let run = |policy: &str, arrivals: &Arrivals, until_last_round| {
        let policy: PolicySpec = policy.parse().unwrap();
        policy.run(&switch, arrivals, 1, until_last_round)
    };
    for policy in ["followlqd", "credence"] {
        assert_words(
            &message(run(policy, &with_work, false)),
            &[policy, "unit packets", "lwd"],
        );
    }
    assert_words(
        &message(run("scripted-opt", &with_work, false)),
        &["--generate", "thm1"],
    );
    assert_words(
        &message(run("lqd", &with_work, true)),
        &["rounds", "--generate"],
    );
    let narrow = Switch::new(1, 8, Order::Pq).unwrap();
    let refused = PolicySpec::CompleteSharing.run(&narrow, &with_work, 1, false);
    assert_words(&message(refused), &["port", "below 1"]);
}

#[test]
fn generators_refuse_switches_that_they_do_not_fit() {
    let refused = |generator: &str, ports, buffer, rounds, options: GeneratorOptions| {
        let switch = Switch::new(ports, buffer, Order::Pq).unwrap();
        let generator: Generator = generator.parse().unwrap();
        message(generator.arrivals(&switch, rounds, &options))
    };
    let none = GeneratorOptions::default();
    assert_words(
        &refused("thm1", 3, 10, 1, none),
        &["thm1", "divides", "9", "12"],
    );
    assert_words(&refused("thm1", 1, 10, 1, none), &["at least 2 ports"]);
    assert_words(&refused("thm2", 8, 4, 1, none), &["one packet per port"]);
    assert_words(&refused("thm3", 4, 4, 1, none), &["two packets per port"]);
    assert_words(&refused("thm7", 4, 1_000, 1, none), &["ports"]);
    assert_words(&refused("thm2", 8, 64, 0, none), &["rounds"]);
    assert_words(
        &refused("thm2", 64, 1 << 40, 1 << 60, none),
        &["fewer rounds"],
    );
    let work = |max_work| GeneratorOptions {
        max_work: Some(max_work),
        ..none
    };
    assert_words(&refused("thm3", 4, 16, 1, work(10)), &["power", "4", "10"]);
    assert_words(
        &refused("thm6", 4, 16, 1, work(10)),
        &["max-work", "thm1 and thm3"],
    );
    assert_words(&refused("thm1", 4, 16, 1, work(0)), &["max-work", "0"]);
    let value = GeneratorOptions {
        max_value: Some(1),
        ..none
    };
    assert_words(&refused("thm6", 4, 16, 1, value), &["max-value"]);
    let rate = GeneratorOptions {
        burst_rate: Some(0.0),
        ..none
    };
    assert_words(&refused("poisson-bursts", 4, 16, 1, rate), &["burst-rate"]);
    assert_words(&message("thm4".parse::<Generator>()), &["thm4", "thm1"]);
    assert_words(&message("lifo".parse::<Order>()), &["lifo", "fifo"]);
    assert_words(&message(Switch::new(0, 1, Order::Pq)), &["ports"]);
    assert_words(&message(Switch::new(1, 0, Order::Pq)), &["buffer"]);
}
