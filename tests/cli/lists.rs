//! Flow lists and size distributions of other simulators.

use std::path::Path;

use crate::harness::Sandbox;

/// Returns the path of a stored list.
fn stored(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/lists");
    folder.join(name).display().to_string()
}

#[test]
fn lists_of_peers_are_simulated_and_converted() {
    let sandbox = Sandbox::new();
    for (name, format, start, priority) in [
        ("flow.txt", "hpcc", 2_000_000_000_u64, 3),
        ("incast.cm", "htsim", 0, 0),
    ] {
        let list = stored(name);
        let summary = sandbox
            .ok(&format!("sim --policy dt --trace {list} --json"))
            .json();
        assert_eq!(summary["completed"], 3, "{name}");
        let later = start + 500_000;
        let expected = format!(
            "id,src,dst,start_ns,size_bytes,kind,query,priority\n\
             0,1,0,{start},200000,flow,-1,{priority}\n\
             1,2,0,{start},200000,flow,-1,{priority}\n\
             2,3,0,{later},50000,flow,-1,{priority}\n"
        );
        let run = sandbox.ok(&format!("trace --from {list} --out f.csv --force"));
        assert_eq!(sandbox.read("f.csv"), expected);
        assert!(
            run.stdout.contains(&format!("({format})")),
            "{}",
            run.stdout
        );
        assert!(run.stdout.contains("--set ports=4"), "{}", run.stdout);
        let again = format!("trace --from {list} --format {format} --out g.csv --force --json");
        assert_eq!(sandbox.ok(&again).json()["format"], format);
        assert_eq!(sandbox.read("g.csv"), expected);
        // The content also identifies CSV and captures.
        sandbox.ok("trace --from f.csv --out h.csv --force");
        assert_eq!(sandbox.read("h.csv"), expected);
    }
}

#[test]
fn hosts_that_begin_at_1_are_shifted() {
    let sandbox = Sandbox::new();
    sandbox.write("from1.txt", "2\n1 16 0 100 1000 0\n16 1 0 100 1000 1e-3\n");
    let sim = "sim --policy dt --trace from1.txt --json";
    sandbox.refused(sim, &["from1.txt:2:3", "host 16", "--host-offset 1"]);
    let summary = sandbox.ok(&format!("{sim} --host-offset 1")).json();
    assert_eq!(summary["completed"], 2);
    sandbox.ok("trace --from from1.txt --host-offset 1 --out f.csv");
    assert!(sandbox.read("f.csv").contains("\n1,15,0,1000000,1000,"));
}

#[test]
fn what_a_list_cannot_be_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.write(
        "loop.cm",
        "Nodes 4\nConnections 1\n1->0 id 1 trigger 1 size 5\n",
    );
    for command in [
        "sim --policy dt --trace loop.cm",
        "trace --from loop.cm --out f.csv",
    ] {
        sandbox.refused(command, &["loop.cm:3:11", "trigger", "not supported yet"]);
    }
    let list = stored("flow.txt");
    for (flags, words) in [
        ("--outer", &["--outer", "captures", "hpcc"][..]),
        ("--truncated", &["--truncated", "captures"]),
        ("--ports 4", &["--ports", "captures"]),
        ("--idle-ms 4", &["--idle-ms", "captures"]),
        ("--format hpc", &["hpc", "csv, pcap, hpcc, htsim"]),
        ("--format pcap", &["flow.txt", "not a packet capture"]),
        ("--format htsim", &["flow.txt:1:1", "Nodes"]),
        ("--seed 3", &["--seed", "--from"]),
        ("--from-pcap x.pcap", &["--from"]),
        ("--scenario mixed", &["--from", "--scenario"]),
    ] {
        sandbox.refused(&format!("trace --from {list} --out f.csv {flags}"), words);
    }
    sandbox.refused(
        "trace --from no.txt --out f.csv",
        &["no.txt", "cannot read"],
    );
    sandbox.refused("trace --host-offset 1 --out f.csv", &["--from"]);
    let capture = stored("../captures/gre.pcap");
    let sim = format!("sim --policy dt --trace {capture}");
    sandbox.refused(&sim, &["a packet capture", "bufgym trace --from"]);
    let shifted = format!("trace --from {capture} --host-offset 1 --out f.csv");
    sandbox.refused(&shifted, &["--host-offset", "packet capture"]);
    sandbox.ok(&format!("trace --from {capture} --out f.csv"));
}

/// A distribution is part of the scenario by its points, not by the name of its file.
#[test]
fn sizes_of_a_file_are_drawn_and_kept() {
    let sandbox = Sandbox::new();
    let points = "1000:0 10000:0.5 1000000:1";
    std::fs::copy(stored("cdf.txt"), sandbox.path("cdf.txt")).unwrap();
    let from_file = "trace --set workload=cdf.txt --set flows=500..500";
    sandbox.ok(&format!("{from_file} --out f.csv"));
    let list = sandbox.read("f.csv");
    let rows: Vec<Vec<&str>> = list
        .lines()
        .skip(1)
        .map(|line| line.split(',').collect())
        .collect();
    assert_eq!(rows.len(), 500);
    let sizes = rows.iter().map(|row| row[4].parse::<u64>().unwrap());
    let small = sizes.clone().filter(|size| *size < 10_000).count();
    assert!((200..300).contains(&small), "{small}");
    assert!(sizes.clone().all(|size| (1_000..1_000_000).contains(&size)));
    assert!(rows.iter().all(|row| row[5] == "sizes"));

    let toml = format!("workload = \"{points}\"\nflows = \"500..500\"\n");
    sandbox.write("mine.toml", &toml);
    sandbox.ok("trace --scenario mine.toml --out g.csv");
    assert_eq!(sandbox.read("g.csv"), list);
    let printed = sandbox.ok("sim --policy dt --set workload=cdf.txt --set flows=10..10 --json");
    assert_eq!(printed.json()["completed"], 10);

    sandbox.write("file.toml", "workload = \"cdf.txt\"\n");
    sandbox.refused(
        "trace --scenario file.toml --out h.csv",
        &["file.toml:1", "--set workload=FILE"],
    );
    sandbox.write("bad.txt", "0 0\n10 60\n 20 50\n30 100\n");
    for (value, words) in [
        ("bad.txt", &["bad.txt:3:2", "cdf 0.5 after 0.6"][..]),
        ("no.txt", &["no.txt", "cannot read the size distribution"]),
        ("cdf", &["`cdf` is not one of web_search", "workload=FILE"]),
        ("/dev/zero", &["/dev/zero", "not a regular file"]),
    ] {
        sandbox.refused(&format!("trace --set workload={value} --out h.csv"), words);
    }
}
