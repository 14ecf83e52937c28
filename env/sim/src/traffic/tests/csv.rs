use proptest::prelude::*;

use crate::traffic::{FlowSpec, ListOptions, Trace, TraceError};
use crate::units::Instant;

fn read(text: impl AsRef<[u8]>) -> Result<Trace, String> {
    Trace::from_reader(text.as_ref(), "flows.csv").map_err(|error| error.to_string())
}

fn written(trace: &Trace) -> String {
    let mut bytes = Vec::new();
    trace.to_writer(&mut bytes).unwrap();
    String::from_utf8(bytes).unwrap()
}

fn flow(id: u64, src: u32, dst: u32) -> FlowSpec {
    FlowSpec {
        id,
        src,
        dst,
        start: Instant::ZERO,
        size: 1,
        kind: 0,
        query: -1,
        priority: 0,
    }
}

#[test]
fn the_five_required_columns_are_enough() {
    let trace = read("id,src,dst,start_ns,size_bytes\n7,0,2,1500,1000000\n").unwrap();
    let expected = FlowSpec {
        start: Instant::from_ns(1500),
        size: 1_000_000,
        ..flow(7, 0, 2)
    };
    assert_eq!(trace.flows, [expected]);
    assert_eq!(trace.kinds, ["flow"]);
    assert_eq!(trace.seed, 0);
}

#[test]
fn order_of_columns_and_lines_unknown_columns_comments_and_spaces_do_not_matter() {
    let text = "\u{feff}# made by hand\n\nfinish_ns,size_bytes, dst ,src,id,start_ns,kind,priority,query\n\
                9,10,1,0,1,2000,incast,3,4\n# between\n,20 ,2,0,0,1000,ws,, \n9,30,1,2,5,0,incast,,\n";
    let trace = read(text).unwrap();
    assert_eq!(trace.kinds, ["incast", "ws"]);
    let expected = [
        FlowSpec {
            start: Instant::from_us(2),
            size: 10,
            query: 4,
            priority: 3,
            ..flow(1, 0, 1)
        },
        FlowSpec {
            start: Instant::from_us(1),
            size: 20,
            kind: 1,
            ..flow(0, 0, 2)
        },
        FlowSpec {
            size: 30,
            ..flow(5, 2, 1)
        },
    ];
    assert_eq!(trace.flows, expected);
}

#[test]
fn line_ends_of_windows_and_a_missing_last_one_are_fine() {
    let trace = read("id,src,dst,start_ns,size_bytes\r\n0,0,1,5,6\r\n1,1,0,5,6").unwrap();
    assert_eq!(trace.flows.len(), 2);
}

#[test]
fn what_is_wrong_is_named_with_its_line_and_field() {
    let header = "id,src,dst,start_ns,size_bytes,kind,query,priority";
    for (line, problem) in [
        (
            "1,0,1,0,-5,ws,-1,0",
            "size_bytes: expected a whole number from 1 to 1000000000000, found `-5`",
        ),
        (
            "1,0,1,0,0,ws,-1,0",
            "size_bytes: expected a whole number from 1 to 1000000000000, found `0`",
        ),
        (
            "1,0,1,0,1e6,ws,-1,0",
            "size_bytes: expected a whole number from 1 to 1000000000000, found `1e6`",
        ),
        (
            "1,0,1,0,,ws,-1,0",
            "size_bytes: expected a whole number from 1 to 1000000000000, found nothing",
        ),
        (
            "1,0,1,-3,5,ws,-1,0",
            "start_ns: expected a whole number from 0 to 1000000000000000, found `-3`",
        ),
        (
            "1,0,1,99999999999999999999,5,ws,-1,0",
            "start_ns: expected a whole number from 0 to",
        ),
        (
            "1,3,3,0,5,ws,-1,0",
            "dst: equals src (3); a flow needs two different hosts",
        ),
        (
            "1,-1,3,0,5,ws,-1,0",
            "src: expected a whole number from 0 to 4294967295, found `-1`",
        ),
        (
            "0,1,3,0,5,ws,-1,0",
            "id: 0 already occurred on line 2; every flow needs its own",
        ),
        (
            "1,1,3,0,5,ws,x,0",
            "query: expected a whole number from -9223372036854775808",
        ),
        (
            "1,1,3,0,5,ws,-1,256",
            "priority: expected a whole number from 0 to 255, found `256`",
        ),
        ("1,1,3,0,5,ws", "6 fields where the header has 8"),
        ("1,1,3,0,5,ws,-1,0,9", "9 fields where the header has 8"),
    ] {
        let error = read(format!("{header}\n0,0,1,0,1,ws,-1,0\n{line}\n")).unwrap_err();
        assert!(
            error.starts_with(&format!("flows.csv:3: {problem}")),
            "{line}: {error}"
        );
        assert!(!error.contains('\n'));
    }
}

#[test]
fn a_header_that_is_not_right() {
    for (text, problem) in [
        (
            "id,src,dst,start,size_bytes\n0,0,1,0,1\n",
            "flows.csv:1: no column `start_ns` (there is `start`); the header must have \
             id,src,dst,start_ns,size_bytes",
        ),
        (
            "0,0,1,0,1\n",
            "flows.csv:1: no column `id`; the header must have id,src,dst,start_ns,size_bytes",
        ),
        (
            "id,src,dst,start_ns,size_bytes,src\n",
            "flows.csv:1: src: two columns have this name; keep one",
        ),
    ] {
        assert_eq!(read(text).unwrap_err(), problem);
    }
}

#[test]
fn nothing_to_simulate_is_an_error() {
    let header = "id,src,dst,start_ns,size_bytes\n";
    for text in ["", "\n\n", "# nothing\n", header] {
        let error = read(text).unwrap_err();
        assert!(error.starts_with("flows.csv: no flows; expected a header"));
    }
}

#[test]
fn bytes_that_are_not_text_are_an_error_only_where_they_matter() {
    let error = read(b"id,src,dst,start_ns,size_bytes,kind\n0,0,1,0,1,\xff\xfe\n").unwrap_err();
    assert_eq!(error, "flows.csv:2: kind: not UTF-8 text");
    let error = read(b"id,src,dst,start_ns,size_bytes\n\xff,0,1,0,1\n").unwrap_err();
    assert_eq!(error, "flows.csv:2: id: not UTF-8 text");
    assert!(read(b"id,src,dst,start_ns,size_bytes,\xff\n0,0,1,0,1,\xff\n").is_ok());
}

#[test]
fn a_host_beyond_the_ports_is_reported_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flows.csv");
    std::fs::write(
        &path,
        "id,src,dst,start_ns,size_bytes\n0,0,1,0,1\n1,0,16,0,1\n",
    )
    .unwrap();
    assert!(Trace::read_csv(&path).is_ok());
    let for_ports = |ports| {
        let options = ListOptions {
            ports,
            ..ListOptions::default()
        };
        Trace::read_list(&path, &options)
    };
    assert!(for_ports(17).is_ok());
    let error = for_ports(16).unwrap_err().to_string();
    assert_eq!(
        error,
        format!(
            "{}:3: dst: host 16 does not exist; with 16 ports hosts are 0 to 15; if the first host \
             of the list is 1, give --host-offset 1",
            path.display()
        )
    );
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let error = Trace::read_csv("/nowhere/flows.csv").unwrap_err();
    assert!(matches!(error, TraceError::Io { .. }));
    assert!(
        error
            .to_string()
            .starts_with("/nowhere/flows.csv: cannot read the flow list: ")
    );
    let error = Trace::default()
        .write_csv("/nowhere/flows.csv")
        .unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("/nowhere/flows.csv: cannot write the flow list: ")
    );
}

#[test]
fn a_written_file_is_complete_and_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("flows.csv");
    let trace = read("id,src,dst,start_ns,size_bytes,kind\n3,0,1,4,5,\"a,\"\"b\"\n").unwrap();
    for _ in 0..2 {
        trace.write_csv(&path).unwrap();
        assert_eq!(Trace::read_csv(&path).unwrap(), trace);
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    assert!(trace.write_csv(folder.path()).is_err());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}

/// Renaming a finished file over a device would replace the device.
#[cfg(unix)]
#[test]
fn a_link_or_device_is_written_to_and_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let (target, link) = (folder.path().join("target.csv"), folder.path().join("link"));
    std::fs::write(&target, "old").unwrap();
    std::os::unix::fs::symlink(&target, &link).unwrap();
    let trace = read("id,src,dst,start_ns,size_bytes\n3,0,1,4,5\n").unwrap();
    trace.write_csv(&link).unwrap();
    assert!(link.symlink_metadata().unwrap().is_symlink());
    assert_eq!(Trace::read_csv(&target).unwrap(), trace);
    trace.write_csv("/dev/null").unwrap();
    assert!(!std::fs::metadata("/dev/null").unwrap().is_file());
}

#[test]
fn traces_built_in_code_are_checked_too() {
    let check = |flows: Vec<FlowSpec>| {
        let trace = Trace {
            flows,
            kinds: vec!["flow".to_owned()],
            seed: 0,
        };
        trace.validate(4).map_err(|error| error.to_string())
    };
    assert_eq!(check(vec![flow(0, 0, 1), flow(1, 3, 2)]), Ok(()));
    for (flows, problem) in [
        (vec![], "the trace: no flows"),
        (
            vec![flow(5, 0, 4)],
            "flow 5: dst: host 4 does not exist; with 4 ports hosts are 0 to 3",
        ),
        (vec![flow(5, 1, 1)], "flow 5: dst: equals src (1)"),
        (
            vec![flow(5, 1, 0), flow(5, 1, 2)],
            "flow 5: id: occurs twice",
        ),
        (
            vec![FlowSpec {
                size: 0,
                ..flow(5, 1, 0)
            }],
            "flow 5: size_bytes: must be from 1",
        ),
        (
            vec![FlowSpec {
                start: Instant::MAX,
                ..flow(5, 1, 0)
            }],
            "flow 5: start_ns: must be at most",
        ),
    ] {
        let error = check(flows).unwrap_err();
        assert!(error.starts_with(problem), "{error}");
    }
}

prop_compose! {
    fn any_flow()(
        src in 0..u32::MAX,
        dst in 0..u32::MAX,
        start in 0..=Trace::MAX_START_NS,
        size in 1..=Trace::MAX_SIZE,
        query in any::<i64>(),
        priority in any::<u8>(),
    ) -> FlowSpec {
        let dst = if src == dst { u32::MAX - 1 - src / 2 } else { dst };
        FlowSpec { id: 0, src, dst, start: Instant::from_ns(start), size, kind: 0, query, priority }
    }
}

proptest! {
    #[test]
    fn what_was_written_reads_back(
        mut flows in prop::collection::vec(any_flow(), 1..40),
        ids in prop::collection::hash_set(any::<u64>(), 40),
        names in prop::collection::hash_set("[^\\s\\x00](\\PC{0,10}[^\\s])?", 1..5),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 40),
    ) {
        let names: Vec<String> = names.into_iter().collect();
        let mut kinds: Vec<String> = Vec::new();
        for ((flow, id), pick) in flows.iter_mut().zip(ids).zip(&picks) {
            flow.id = id;
            let name = pick.get(&names);
            let kind = kinds.iter().position(|known| known == name).unwrap_or_else(|| {
                kinds.push(name.clone());
                kinds.len() - 1
            });
            flow.kind = kind as u16;
        }
        let trace = Trace { flows, kinds, seed: 0 };
        prop_assert_eq!(trace.validate(u32::MAX).map_err(|error| error.to_string()), Ok(()));
        prop_assert_eq!(read(written(&trace)), Ok(trace));
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = read(bytes);
    }

    #[test]
    fn nearly_right_files_are_read_or_refused_in_one_line(
        body in "(([0-9]{1,22}|-?[0-9]|x|\"|\\PC)(,|\n)){0,40}",
    ) {
        if let Err(error) = read(format!("id,src,dst,start_ns,size_bytes\n{body}")) {
            prop_assert!(!error.contains('\n'), "{}", error);
            prop_assert!(error.starts_with("flows.csv"), "{}", error);
        }
    }
}
