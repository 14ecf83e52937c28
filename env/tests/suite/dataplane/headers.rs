//! `ndt_control.h` and `ndt_flows.h` on their own: limits and rules that a replay does not reach.

use std::process::Command;

use crate::dataplane::compiler::{BUILDS, text};

#[test]
fn the_headers_keep_their_rules() {
    for build in &BUILDS {
        let folder = tempfile::tempdir().unwrap();
        let defines = [
            "-DNDT_MAX_PORTS=4",
            "-DNDT_FLOW_BITS=4",
            "-DNDT_FLOW_PROBES=4",
        ];
        let files = ["env/tests/suite/dataplane/headers.c"];
        let Some(program) = build.program(folder.path(), &files, &defines) else {
            continue;
        };
        let output = Command::new(program).output().unwrap();
        assert!(output.status.success(), "{}: {}", build.name, text(&output));
        assert_eq!(text(&output), "17 checks\n");
    }
}
