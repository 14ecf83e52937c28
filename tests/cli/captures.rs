//! `trace --from-pcap` and `sim --pcap`: a capture becomes a flow list and a simulation a capture, or one
//! line gives the reason why not.

use std::path::Path;

use crate::harness::Sandbox;

/// Builds a TCP segment over IPv4 with `payload` zero bytes from 10.0.0.`src` to 10.0.0.`dst`.
fn segment(src: u8, dst: u8, seq: u32, payload: usize) -> Vec<u8> {
    let mut bytes = vec![0x45, 0];
    bytes.extend((40 + payload as u16).to_be_bytes());
    bytes.extend([0, 0, 0, 0, 64, 6, 0, 0, 10, 0, 0, src, 10, 0, 0, dst]);
    bytes.extend([0x10, 0, 0x20, 0]);
    bytes.extend(seq.to_be_bytes());
    bytes.extend([0, 0, 0, 0, 5 << 4, 0x10, 1, 0, 0, 0, 0, 0]);
    bytes.resize(40 + payload, 0);
    bytes
}

/// Builds a pcap file of raw IP packets, a millisecond apart.
fn capture(packets: &[Vec<u8>]) -> Vec<u8> {
    let mut bytes = Vec::from(0xa1b2_c3d4_u32.to_le_bytes());
    bytes.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 101, 0, 0, 0]);
    for (time_ms, packet) in packets.iter().enumerate() {
        let length = packet.len() as u32;
        for value in [1_700_000_000, time_ms as u32 * 1_000, length, length] {
            bytes.extend(value.to_le_bytes());
        }
        bytes.extend(packet);
    }
    bytes
}

fn good() -> Vec<u8> {
    capture(&[
        segment(1, 2, 0, 0),
        segment(1, 2, 0, 1_000),
        segment(3, 2, 0, 500),
        segment(1, 2, 0, 1_000),
        segment(1, 2, 1_000, 200),
    ])
}

#[test]
fn a_capture_becomes_a_flow_list_that_simulates() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("good.pcap"), good()).unwrap();
    let run = sandbox.ok("trace --from-pcap good.pcap --out flows.csv");
    assert!(run.stdout.contains("2 flows"), "{}", run.stdout);
    assert!(run.stdout.contains("--set ports=3"), "{}", run.stdout);
    assert!(run.stderr.contains("1 without payload"), "{}", run.stderr);
    assert_eq!(
        sandbox.read("flows.csv"),
        "id,src,dst,start_ns,size_bytes,kind,query,priority\n\
         0,0,1,1000000,1200,tcp,-1,0\n\
         1,2,1,2000000,500,tcp,-1,0\n"
    );
    let summary = sandbox
        .ok("sim --policy dt --trace flows.csv --set ports=3 --set active_ports=1..3 --set incast_degree=1..2 --json")
        .json();
    assert_eq!(summary["completed"], 2);
}

/// Flows to one port that overrun its buffer.
const OVERRUN: &str = "id,src,dst,start_ns,size_bytes\n\
                       7,0,1,0,1\n\
                       3,2,1,1000000,300000\n\
                       4,3,1,1000000,300001\n\
                       9,0,2,400000000,20000\n";

#[test]
fn a_simulated_switch_is_captured_without_a_change_of_the_results() {
    let sandbox = Sandbox::new();
    sandbox.write("flows.csv", OVERRUN);
    sandbox.random_checkpoint("weights");
    let common = "--scenario testbed-4x100m --set buffer_bytes=30000 --trace flows.csv";
    for policy in ["dt", "ndt:weights"] {
        let run = format!("sim --policy {policy} {common} --force");
        let captured = sandbox
            .ok(&format!("{run} --out with --pcap switch.pcap --json"))
            .json();
        sandbox.ok(&format!("{run} --out without"));
        assert_eq!(
            sandbox.read("with/fct.csv"),
            sandbox.read("without/fct.csv")
        );
        assert!(captured["drops"].as_u64().unwrap() > 0, "{captured}");
        let read = "trace --from-pcap switch.pcap --out again.csv --force --json";
        let read = sandbox.ok(read).json();
        // Every arriving packet is captured, including those that are then lost.
        let count = |key: &str| captured[key].as_u64().unwrap();
        let came = count("packets_forwarded") + count("drops");
        let packets = read["packets"].as_u64().unwrap();
        assert!(
            (came..came + 20).contains(&packets),
            "{packets} of {came} and what is under way"
        );
        let again = sandbox.read("again.csv");
        let sizes: Vec<&str> = again
            .lines()
            .skip(1)
            .map(|line| line.split(',').nth(4).unwrap())
            .collect();
        assert_eq!(sizes, ["1", "300000", "300001", "20000"], "{again}");
    }
}

#[test]
fn what_cannot_be_captured_is_refused() {
    let sandbox = Sandbox::new();
    sandbox.write("flows.csv", OVERRUN);
    let cases: [(&str, &[&str]); 3] = [
        (
            "--policy dt --scenario leafspine-4x4 --pcap f.pcap",
            &["leafspine"],
        ),
        (
            "--policy sonic --scenario reverie-leafspine --pcap f.pcap",
            &["leafspine"],
        ),
        (
            "--policy ndt --record-control r --pcap f.pcap",
            &["--record-control"],
        ),
    ];
    for (arguments, words) in cases {
        sandbox.refused(&format!("sim {arguments}"), words);
    }
    sandbox.write("f.pcap", "mine");
    sandbox.refused(
        "sim --policy dt --trace flows.csv --pcap f.pcap",
        &["f.pcap", "--force"],
    );
    assert_eq!(sandbox.read("f.pcap"), "mine");
}

#[test]
fn json_tells_what_was_in_the_capture() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("good.pcap"), good()).unwrap();
    let value = sandbox
        .ok("trace --from-pcap good.pcap --ports 2 --idle-ms 500 --out flows.csv --json")
        .json();
    for (field, expected) in [
        ("packets", 5),
        ("flows", 2),
        ("bytes", 1_700),
        ("hosts", 3),
        ("ports", 2),
        ("idle_ms", 500),
    ] {
        assert_eq!(value[field], expected, "{field}");
    }
    assert_eq!(value["addresses"][2], "10.0.0.3");
    assert_eq!(value["skipped"]["no_payload"], 1);
    // The third host shares a port with the first.
    let flows = sandbox.read("flows.csv");
    let rows: Vec<_> = flows.lines().skip(1).collect();
    assert!(
        rows.iter().all(|row| row[1..].starts_with(",0,1,")),
        "{flows}"
    );
}

#[test]
fn a_capture_that_cannot_be_read_is_refused() {
    let sandbox = Sandbox::new();
    let out = "--out flows.csv";
    sandbox.refused(
        &format!("trace --from-pcap no.pcap {out}"),
        &["no.pcap", "cannot read"],
    );
    sandbox.write("bad.pcap", "neither one thing nor the other");
    sandbox.refused(
        &format!("trace --from-pcap bad.pcap {out}"),
        &["bad.pcap", "not a packet capture", "pcapng"],
    );
    std::fs::write(sandbox.path("cut.pcap"), &good()[..200]).unwrap();
    sandbox.refused(
        &format!("trace --from-pcap cut.pcap {out}"),
        &["cut.pcap", "byte 80", "after 1 packets", "ends within"],
    );
    std::fs::write(sandbox.path("idle.pcap"), capture(&[segment(1, 2, 0, 0)])).unwrap();
    sandbox.refused(
        &format!("trace --from-pcap idle.pcap {out}"),
        &["idle.pcap", "no flows", "1 without payload"],
    );
    sandbox.refused(&format!("trace --from-pcap . {out}"), &["cannot read"]);
}

#[test]
fn options_that_do_not_belong_together_are_refused() {
    let sandbox = Sandbox::new();
    std::fs::write(sandbox.path("good.pcap"), good()).unwrap();
    for other in [
        "--scenario ndt-16x1g",
        "--set load=0.5",
        "--index 3",
        "--split test",
        "--seed 3",
    ] {
        let flag = other.split(' ').next().unwrap();
        sandbox.refused(
            &format!("trace --from-pcap good.pcap --out flows.csv {other}"),
            &["--from-pcap", flag],
        );
    }
    sandbox.refused("trace --ports 4 --out flows.csv", &["--from-pcap"]);
    sandbox.refused("trace --idle-ms 4 --out flows.csv", &["--from-pcap"]);
    sandbox.refused(
        "trace --from-pcap good.pcap --ports 1 --out flows.csv",
        &["--ports", "1"],
    );
    sandbox.write("flows.csv", "mine");
    sandbox.refused(
        "trace --from-pcap good.pcap --out flows.csv",
        &["flows.csv", "exists", "--force"],
    );
}

/// Returns the path of a stored capture.
fn stored(name: &str) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/cli/captures");
    folder.join(name).display().to_string()
}

/// Returns the sizes of the flows of a stored capture, and the text on stderr.
fn sizes_of(sandbox: &Sandbox, name: &str, flags: &str) -> (Vec<u64>, String) {
    let command = format!(
        "trace --from-pcap {} --out f.csv --force {flags}",
        stored(name)
    );
    let run = sandbox.ok(&command);
    let list = sandbox.read("f.csv");
    let sizes = list
        .lines()
        .skip(1)
        .map(|line| line.split(',').nth(4).unwrap());
    (
        sizes.map(|size| size.parse().unwrap()).collect(),
        run.stderr,
    )
}

#[test]
fn the_flows_within_tunnels_are_taken_and_a_note_says_so() {
    let sandbox = Sandbox::new();
    for (name, sizes, tunnel) in [
        ("vxlan.pcap", vec![10_000, 20_000], "in VXLAN"),
        ("gre.pcap", vec![10_000], "in GRE"),
        ("ipip.pcap", vec![10_000], "in IP in IP"),
        ("pppoe.pcap", vec![10_000], "in PPPoE"),
    ] {
        let (found, notes) = sizes_of(&sandbox, name, "");
        assert_eq!(found, sizes, "{name}");
        assert!(notes.contains(tunnel), "{name}: {notes}");
        assert!(notes.contains("those within"), "{name}: {notes}");
        assert_eq!(
            notes.contains("--outer takes"),
            name != "pppoe.pcap",
            "{notes}"
        );
    }
    let (found, notes) = sizes_of(&sandbox, "vxlan.pcap", "--outer");
    assert_eq!(found.len(), 1);
    assert!(found[0] > 30_000, "{found:?}");
    assert!(notes.contains("those between the tunnels' ends"), "{notes}");
    let gre = format!(
        "trace --from-pcap {} --out o.csv --outer",
        stored("gre.pcap")
    );
    sandbox.refused(&gre, &["gre.pcap", "no flows", "neither TCP nor UDP"]);
}

#[test]
fn what_is_whole_of_a_capture_that_is_cut_short_is_taken_if_asked_for() {
    let sandbox = Sandbox::new();
    for name in ["cut.pcap", "ng-trunc.pcapng"] {
        let command = format!("trace --from-pcap {} --out refused.csv", stored(name));
        sandbox.refused(&command, &[name, "ends within", "--truncated"]);
        let (sizes, notes) = sizes_of(&sandbox, name, "--truncated");
        assert_eq!(sizes.len(), 1, "{name}");
        assert!(notes.contains("ends within a packet"), "{notes}");
    }
    let (sizes, notes) = sizes_of(&sandbox, "cut.pcap", "--truncated");
    assert_eq!(sizes, [10_000]);
    assert!(notes.contains("the 10 before it"), "{notes}");
}

#[test]
fn older_packet_blocks_are_read_and_other_blocks_counted() {
    let sandbox = Sandbox::new();
    let (sizes, _) = sizes_of(&sandbox, "ng-opb-mixed.pcapng", "");
    assert_eq!(sizes, [10_000]);
    // An Interface Statistics Block follows.
    let mut bytes = std::fs::read(stored("ng-opb-mixed.pcapng")).unwrap();
    bytes.extend([
        5, 0, 0, 0, 24, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 24, 0, 0, 0,
    ]);
    std::fs::write(sandbox.path("more.pcapng"), bytes).unwrap();
    let run = sandbox.ok("trace --from-pcap more.pcapng --out g.csv");
    let note = "blocks passed over, not packets: 1 interface statistics";
    assert!(run.stderr.contains(note), "{}", run.stderr);
    let json = sandbox
        .ok("trace --from-pcap more.pcapng --out g.csv --force --json")
        .json();
    assert_eq!(json["packets"], 10);
    assert_eq!(json["blocks"]["interface statistics"], 1);
}

#[test]
fn packets_that_were_captured_twice_count_once() {
    let sandbox = Sandbox::new();
    for name in ["udp-any.pcap", "ng-udp-bridge.pcapng"] {
        let (sizes, notes) = sizes_of(&sandbox, name, "");
        assert_eq!(sizes, [10_000], "{name}");
        let note = "captured again within 1 ms, and are counted once: 10";
        assert!(notes.contains(note), "{notes}");
    }
    let (sizes, notes) = sizes_of(&sandbox, "tcp-any.pcap", "");
    assert_eq!(sizes, [10_000]);
    assert!(!notes.contains("again"), "{notes}");
}

#[test]
fn keep_alives_do_not_join_requests() {
    let sandbox = Sandbox::new();
    for name in ["keepalive0.pcap", "keepalive1.pcap"] {
        let (sizes, _) = sizes_of(&sandbox, name, "");
        assert_eq!(sizes, [3_000, 2_000], "{name}");
    }
}
