//! Flow lists of other simulators.

use super::*;
use crate::traffic::{FlowFormat, ListOptions};

const HPCC: &str = "3\n1 0 3 100 200000 2\n2 0 3 100 200000 2\n3 0 3 100 50000 2.0005\n";
const HTSIM: &str = "Nodes 4\nConnections 3\n1->0 start 0 size 200000\n2->0 start 0 size 200000\n\
                     3->0 start 500000000 size 50000\n";

fn read(text: impl AsRef<[u8]>, options: &ListOptions) -> Result<Trace, String> {
    Trace::list_from_reader(text.as_ref(), "list", options).map_err(|error| error.to_string())
}

fn with_offset(host_offset: u32) -> ListOptions {
    ListOptions {
        host_offset,
        ..ListOptions::default()
    }
}

/// Returns id, source, destination, start in ns, size and priority of every flow.
fn outline(trace: &Trace) -> Vec<(u64, u32, u32, u64, u64, u8)> {
    let flows = trace.flows.iter();
    let of = |flow: &FlowSpec| {
        let start = flow.start.as_ns();
        (flow.id, flow.src, flow.dst, start, flow.size, flow.priority)
    };
    flows.map(of).collect()
}

#[test]
fn the_content_tells_the_format() {
    for (text, format) in [
        ("id,src,dst,start_ns,size_bytes\n", FlowFormat::Csv),
        ("# Nodes 4\nid,src", FlowFormat::Csv),
        ("id", FlowFormat::Csv),
        ("", FlowFormat::Csv),
        (HPCC, FlowFormat::Hpcc),
        ("\n\n  3 \r\n", FlowFormat::Hpcc),
        (HTSIM, FlowFormat::Htsim),
        ("# made by hand\n\nConnections 3\n", FlowFormat::Htsim),
        ("1->0 start 0 size 5", FlowFormat::Htsim),
    ] {
        assert_eq!(FlowFormat::of(text.as_bytes()), format, "{text:?}");
    }
    for magic in [
        [0x0a, 0x0d, 0x0d, 0x0a],
        [0xa1, 0xb2, 0xc3, 0xd4],
        [0xd4, 0xc3, 0xb2, 0xa1],
        [0x4d, 0x3c, 0xb2, 0xa1],
        [0xa1, 0xb2, 0x3c, 0x4d],
        [0x34, 0xcd, 0xb2, 0xa1],
    ] {
        assert_eq!(FlowFormat::of(&magic), FlowFormat::Pcap);
        let error = read(magic, &ListOptions::default()).unwrap_err();
        assert!(error.starts_with("list: a packet capture, not a flow list; `bufgym trace --from"));
    }
    for format in FlowFormat::ALL {
        assert_eq!(format.name().parse(), Ok(format));
    }
    let error = "hpc".parse::<FlowFormat>().unwrap_err().to_string();
    assert_eq!(
        error,
        "`hpc` is not one of csv, pcap, hpcc, htsim; did you mean `hpcc`?"
    );
}

#[test]
fn a_list_of_hpcc_is_read() {
    let expected = [
        (0, 1, 0, 2_000_000_000, 200_000, 3),
        (1, 2, 0, 2_000_000_000, 200_000, 3),
        (2, 3, 0, 2_000_500_000, 50_000, 3),
    ];
    for text in [
        HPCC,
        "3\r\n\r\n1 0 3 100 200000 2\r\n2\t0  3 100 200000 2.0\n3 0 3 100 50000 20005e-4",
    ] {
        let trace = read(text, &ListOptions::default()).unwrap();
        assert_eq!(outline(&trace), expected);
        trace.validate(4).unwrap();
        assert_eq!(trace.kinds, ["flow"]);
    }
    let from_1 = "1\n4 1 0 100 1 0.0000000015\n";
    let trace = read(from_1, &with_offset(1)).unwrap();
    assert_eq!(outline(&trace), [(0, 3, 0, 2, 1, 0)]);
}

#[test]
fn a_matrix_of_htsim_is_read() {
    let trace = read(HTSIM, &ListOptions::default()).unwrap();
    let expected = [
        (0, 1, 0, 0, 200_000, 0),
        (1, 2, 0, 0, 200_000, 0),
        (2, 3, 0, 500_000, 50_000, 0),
    ];
    assert_eq!(outline(&trace), expected);
    let text = "# of htsim\nNodes 5\nConnections 2\nTriggers 0\nFailures 0\n# flows\n\
                1->4 id 7 start 1499 size 1 prio 2 msg 3\n 4->1 size 2 id 9 start 2500\n";
    let trace = read(text, &with_offset(0)).unwrap();
    assert_eq!(outline(&trace), [(7, 1, 4, 1, 1, 2), (9, 4, 1, 3, 2, 0)]);
    let trace = read(text, &with_offset(1)).unwrap();
    assert_eq!(outline(&trace), [(7, 0, 3, 1, 1, 2), (9, 3, 0, 3, 2, 0)]);
}

#[test]
fn what_is_wrong_in_a_list_is_named_with_its_place() {
    let ports = ListOptions {
        ports: 3,
        ..ListOptions::default()
    };
    for (text, problem) in [
        (
            "0\n",
            "1:1: number of flows: expected a whole number from 1 to",
        ),
        (
            "3 1\n",
            "1:3: the first line must be the number of flows alone",
        ),
        ("99999999999\n", "1:1: number of flows: expected"),
        (
            "2\n1 0 3 100 5 2\n",
            "2:1: the first line says 2 flows, and there are 1",
        ),
        (
            "1\n1 0 3 100 5 2\n\n1 0 3 100 5 2\n",
            "4:1: the first line says 1 flows, and this is one more",
        ),
        (
            "1\n1 0 3 100 5\n",
            "2:12: no start_s; a line must be src dst",
        ),
        ("1\n1 0 3 100 5 2 9\n", "2:15: one word too many"),
        (
            "1\n x 0 3 100 5 2\n",
            "2:2: src: expected a whole number from 0 to 4294967295, found `x`",
        ),
        ("1\n1 -1 3 100 5 2\n", "2:3: dst: expected"),
        (
            "1\n1 0 256 100 5 2\n",
            "2:5: priority: expected a whole number from 0 to 255",
        ),
        ("1\n1 0 3 65536 5 2\n", "2:7: port: expected"),
        (
            "1\n1 0 3 100 0 2\n",
            "2:11: size_bytes: expected a whole number from 1 to",
        ),
        ("1\n1 0 3 100 1e3 2\n", "2:11: size_bytes: expected"),
        (
            "1\n1 0 3 100 5 -2\n",
            "2:13: start_s: expected a time from 0 to 1000000000000000 ns, found `-2`",
        ),
        ("1\n1 0 3 100 5 1000001\n", "2:13: start_s: expected a time"),
        ("1\n1 0 3 100 5 nan\n", "2:13: start_s: expected a time"),
        ("1\n1 1 3 100 5 2\n", "2:3: dst: equals src (1)"),
        (
            "1\n4 0 3 100 5 2\n",
            "2:1: src: host 4 does not exist; with 3 ports hosts are 0 to 2",
        ),
        (
            "1\n0 3 3 100 5 2\n",
            "2:3: dst: host 3 does not exist; with 3 ports hosts are 0 to 2; if the first host of the list is 1, give --host-offset 1",
        ),
        ("1\n1 0 3 100 \u{e9} 2\n", "2:11: size_bytes: expected"),
        (
            "Nodes 3\nConnections 2\n1->0 start 0 size 5\n",
            "3:1: Connections is 2, and there are 1",
        ),
        (
            "Nodes 3\n1->0 start 0 size 5\n",
            "2:1: no line `Connections C`",
        ),
        ("Nodes 3\nConnections 0\n", "2:1: no connections"),
        (
            "Connections 1\n1->0 start 0 size 5\n",
            "2:1: no line `Nodes N` before",
        ),
        ("Nodes 3\nNodes 3\n", "2:1: Nodes: occurs twice"),
        ("Nodes x\n", "1:7: Nodes: expected a whole number"),
        ("Nodes\n", "1:6: Nodes: no number"),
        ("Nodes 3 4\n", "1:9: Nodes: one word too many"),
        (
            "Nodes 3\nConections 1\n",
            "2:1: expected `Nodes N`, `Connections N`, ",
        ),
        (
            "Nodes 3\n1->3 start 0 size 5\n",
            "2:4: destination: host 3 does not exist; there are 3 nodes",
        ),
        ("Nodes 3\n1->1 start 0 size 5\n", "2:4: dst: equals src"),
        (
            "Nodes 9\n1->8 start 0 size 5\n",
            "2:4: dst: host 8 does not exist; with 3 ports",
        ),
        (
            "Nodes 3\n->1 start 0 size 5\n",
            "2:1: source: expected a whole number",
        ),
        ("Nodes 3\n1->0 start 0\n", "2:13: no `size`"),
        ("Nodes 3\n1->0 size 5\n", "2:12: no `start`"),
        ("Nodes 3\n1->0 start 0 size\n", "2:18: size: no value"),
        (
            "Nodes 3\n1->0 start 0 size 5 size 6\n",
            "2:21: size: occurs twice",
        ),
        (
            "Nodes 3\n1->0 start 0 size 5 sizes 6\n",
            "2:21: `sizes` is not one of id, start, size, prio, msg; did you mean `size`?",
        ),
        (
            "Nodes 3\n1->0 id 0 start 0 size 5\n",
            "2:9: id: expected a whole number from 1 to",
        ),
        (
            "Nodes 3\n1->0 id 1 start 0 size 5\n1->0 start 0 size 5\n",
            "3:20: no `id`, which connections before have",
        ),
        (
            "Nodes 3\n1->0 start 0 size 5\n1->0 id 1 start 0 size 5\n",
            "3:9: id: connections before have none",
        ),
        (
            "Nodes 3\n1->0 id 1 start 0 size 5\n1->0 id 1 start 0 size 5\n",
            "3:9: id: 1 already occurred on line 2",
        ),
        ("Nodes 3\nTriggers 1\n", "2:10: `1`: closed-loop forms, "),
        ("Nodes 3\nFailures 2\n", "2:10: `2`: closed-loop forms, "),
        (
            "Nodes 3\n1->0 trigger 1 size 5\n",
            "2:6: `trigger`: closed-loop forms, ",
        ),
        (
            "Nodes 3\n1->0 start 0 size 5 send_done_trigger 1\n",
            "2:21: `send_done_trigger`: closed-loop forms, ",
        ),
        (
            "Nodes 3\ntrigger id 1 oneshot\n",
            "2:1: `trigger`: closed-loop forms, ",
        ),
        (
            "Nodes 3\nfailure switch_type TOR switch_id 0 link_id 1\n",
            "2:1: `failure`: closed-loop forms, ",
        ),
    ] {
        let error = read(text, &ports).unwrap_err();
        assert!(
            error.starts_with(&format!("list:{problem}")),
            "{text:?}: {error}"
        );
        assert!(!error.contains('\n'));
    }
    let error = read("1\n0 1 3 100 5 2\n", &with_offset(1)).unwrap_err();
    assert_eq!(
        error,
        "list:2:1: src: host 0 is below 1, the first one by --host-offset"
    );
    let error = read(b"1\n0 1 \xc3\xa9 \xff 5 2\n", &with_offset(0)).unwrap_err();
    assert_eq!(error, "list:2:7: not UTF-8 text");
    let long = [b"1\n".as_slice(), &vec![b'1'; 1 << 21]].concat();
    let error = read(long, &with_offset(0)).unwrap_err();
    assert!(
        error.starts_with("list:2:1: a line of more than 1048576 bytes"),
        "{error}"
    );
}

/// A list of hosts from 1 is shifted, and a table program's floats are times.
#[test]
fn a_table_has_an_offset_and_decimal_times_too() {
    let text = "id,src,dst,start_ns,size_bytes\n0,1,2,1500.0,5\n1,2,1,1.6e3,6\n2,2,1,1999.5,7\n";
    let trace = read(text, &with_offset(1)).unwrap();
    let expected = [
        (0, 0, 1, 1_500, 5, 0),
        (1, 1, 0, 1_600, 6, 0),
        (2, 1, 0, 2_000, 7, 0),
    ];
    assert_eq!(outline(&trace), expected);
    let error = read(text, &with_offset(2)).unwrap_err();
    assert_eq!(
        error,
        "list:2: src: host 1 is below 2, the first one by --host-offset"
    );
}
