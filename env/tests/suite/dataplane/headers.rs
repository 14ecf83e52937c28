//! `ndt_control.h`, `ndt_flows.h` and `ndt_early.h` on their own: limits and rules that a replay does not reach.

use std::process::Command;

use crate::dataplane::compiler::{BUILDS, text};

/// Runs a file of checks in every build.
fn check(file: &str, defines: &[&str], expected: &str) {
    for build in &BUILDS {
        let folder = tempfile::tempdir().unwrap();
        let Some(program) = build.program(folder.path(), &[file], defines) else {
            continue;
        };
        let output = Command::new(program).output().unwrap();
        assert!(output.status.success(), "{}: {}", build.name, text(&output));
        assert_eq!(text(&output), expected);
    }
}

#[test]
fn the_headers_keep_their_rules() {
    let defines = [
        "-DNDT_MAX_PORTS=4",
        "-DNDT_FLOW_BITS=4",
        "-DNDT_FLOW_PROBES=4",
    ];
    check(
        "env/tests/suite/dataplane/headers.c",
        &defines,
        "17 checks\n",
    );
}

#[test]
fn early_drop_keeps_its_rules() {
    let defines = [
        "-DNDT_MAX_PORTS=4",
        "-DNDT_LOSS_BITS=4",
        "-DNDT_LOSS_PROBES=4",
        "-DNDT_WAITING_BITS=4",
        "-DNDT_WAITING_PROBES=4",
    ];
    check("env/tests/suite/dataplane/early.c", &defines, "12 checks\n");
}
