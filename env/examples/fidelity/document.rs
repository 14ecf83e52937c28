//! `docs/fidelity.md`. Nothing in it depends on the machine or the number of threads.

use std::error::Error;
use std::fmt::Write as _;

use crate::cases::Case;
use crate::comparison::{Comparison, JITTERED_RUNS, Row, Verdict};
use crate::known_differences::KNOWN_DIFFERENCES;
use crate::metrics::{Metric, Run};
use crate::simulation::JITTER_NS;
use crate::{reference, simulation, table};

/// Isolated flows in both simulators.
pub struct Isolated {
    case: Case,
    ns3: Run,
    here: Run,
}

impl Isolated {
    /// Runs the case.
    ///
    /// # Errors
    /// When a file cannot be read or the scenario cannot be built.
    pub fn of(case: &Case) -> Result<Isolated, Box<dyn Error>> {
        Ok(Isolated {
            case: *case,
            ns3: reference::run(case)?,
            here: simulation::run(case)?,
        })
    }
}

/// A figure in `docs/`.
pub struct Drawing {
    /// Its file.
    pub file: String,
    /// Of the cases in it.
    pub min_rto_ms: u64,
}

/// The metrics that have a target.
const TARGETS: [Metric; 5] = [
    Metric::Mean,
    Metric::P50,
    Metric::InCast,
    Metric::Forwarded,
    Metric::Drops,
];

const INTRODUCTION: &str = "\
# Agreement with ns-3

<!-- Written by `cargo run --release -p bufgym-env --example fidelity`. The section on differences
     and their causes is in fidelity-differences.md; edit it there and run the command again. -->

The same flows went through ns-3 3.37 and through this simulator: one switch with 1 MB of buffer, \
16 hosts, links of 1 Gbit/s with 10 µs of propagation. ns-3's results and the flow lists are in \
`env/tests/fidelity/data`; `cargo test --release -p bufgym-env --test fidelity` holds this simulator \
to what is said here.

- **isolated**: one flow at a time, 1 B to 30 MB. Nothing is left to chance, so both must agree to \
the nanosecond.
- **2to1**: two flows of 10 MB to one host, the second 5 ms after the first.
- **mixed**: 600 web-search flows at load 0.5 and 25 in-cast queries of 8 flows of 40 kB.

## Settings

The preset `ns3-16x1g` has ns-3's packet sizes, handshake, window cap, host queues and loss \
recovery. Each case changes:

| case | policy | settings |
|---|---|---|
";

/// The whole document.
pub fn text(
    isolated: &[Isolated],
    comparisons: &[Comparison],
    drawings: &[Drawing],
    differences: &str,
) -> String {
    let mut text = INTRODUCTION.to_owned();
    let cases = isolated.iter().map(|isolated| &isolated.case);
    for case in cases.chain(comparisons.iter().map(|comparison| &comparison.case)) {
        let _ = writeln!(
            text,
            "| {case} | `{}` | `{}` |",
            case.policy_spec(),
            case.settings().join("` `")
        );
    }
    text += &isolated_flows(isolated);
    text += &method();
    text += &verdicts(comparisons);
    text += &missed(comparisons);
    text += &figures(drawings);
    let _ = write!(text, "\n{}\n", differences.trim());
    text += "\n## All numbers\n";
    for comparison in comparisons {
        let _ = write!(
            text,
            "\n### {}\n\n{}",
            comparison.case,
            table::of(comparison)
        );
    }
    text
}

fn isolated_flows(isolated: &[Isolated]) -> String {
    let mut text =
        "\n## Flows alone in the network\n\nFCT with handshake, nanoseconds.\n\n".to_owned();
    let names: Vec<&str> = isolated.iter().map(|one| one.case.transport).collect();
    let _ = writeln!(
        text,
        "| bytes | {} |\n|--:|{}",
        names
            .iter()
            .map(|name| format!("{name}: ns-3 | here"))
            .collect::<Vec<_>>()
            .join(" | "),
        "--:|--:|".repeat(names.len())
    );
    let lines = isolated.first().map_or(0, |one| one.ns3.flows.len());
    for line in 0..lines {
        let _ = write!(
            text,
            "| {} |",
            table::grouped(isolated[0].ns3.flows[line].size)
        );
        for one in isolated {
            let [ns3, here] = [&one.ns3, &one.here].map(|run| run.flows[line].fct_ns);
            let mark = if ns3 == here { "" } else { " **differs**" };
            let _ = write!(
                text,
                " {} | {}{mark} |",
                table::grouped(ns3),
                table::grouped(here)
            );
        }
        text.push('\n');
    }
    text
}

fn method() -> String {
    format!(
        "\n## Flows that compete\n\n\
         TCP in a shared buffer is chaotic: one packet earlier, and a flow's FCT changes by half. \
         So this simulator runs each list as it is and {JITTERED_RUNS} times more with each flow's \
         start moved by up to {} µs (uniform, seeded); its figure is the mean of those, ± their \
         standard deviation. ns-3's is one run of the list as it is; for three cases its mean over \
         six such jittered runs is known and takes the place of the one run. Times are counted from \
         the establishment of the connection. Percentiles are by nearest rank.\n\n\
         A target is *undecided* where it is missed by less than two standard errors of the \
         difference between the simulators (a single run of ns-3 is taken to spread as much as a \
         run here): the runs there are cannot tell whether it is met.\n",
        JITTER_NS / 1_000
    )
}

/// All targets at a glance.
fn verdicts(comparisons: &[Comparison]) -> String {
    let mut text = format!(
        "\n## Targets\n\nThis simulator relative to ns-3. Targets: mean FCT within 3 %, median within \
         5 %, both within 10 % at a minRTO of 200 ms; mean FCT of in-cast flows within 10 %; packets \
         forwarded within 0.5 %; drops within 10 %.\n\n| case | {} |\n|---|{}\n",
        TARGETS.map(Metric::name).join(" | "),
        "---|".repeat(TARGETS.len())
    );
    let mut counts = [0; 3];
    for comparison in comparisons {
        let rows = comparison.rows();
        let _ = write!(text, "| {} |", comparison.case);
        for metric in TARGETS {
            let row = rows.iter().find(|row| row.metric == metric);
            let cell = row.and_then(|row| Some((row.ratio(), row.verdict()?)));
            text += &match cell {
                None => " |".to_owned(),
                Some((ratio, verdict)) => {
                    counts[verdict as usize] += 1;
                    format!(" {ratio:.3} {} |", table::verdict(verdict))
                }
            };
        }
        text.push('\n');
    }
    let [met, undecided, missed] = counts;
    let _ = writeln!(
        text,
        "\nOf {} targets {met} are met, {undecided} undecided, {missed} missed.",
        met + undecided + missed
    );
    text
}

/// Each target that is not met, with the reason where it is known.
fn missed(comparisons: &[Comparison]) -> String {
    let mut text = String::new();
    for comparison in comparisons {
        let name = comparison.case.name();
        let beyond = |row: &Row| !matches!(row.verdict(), None | Some(Verdict::Met));
        for row in comparison.rows().into_iter().filter(beyond) {
            let reason = KNOWN_DIFFERENCES
                .iter()
                .find(|known| (known.0, known.1) == (name.as_str(), row.metric))
                .map_or("not listed among the known differences", |known| known.3);
            let _ = writeln!(
                text,
                "- {name}, {}: {:.3}, target {}: {reason}.",
                row.metric.name(),
                row.ratio(),
                row.tolerance.map_or(String::new(), table::tolerance),
            );
        }
    }
    if text.is_empty() {
        text
    } else {
        format!("\n### Targets not met\n\n{text}")
    }
}

fn figures(drawings: &[Drawing]) -> String {
    let mut text = "\n## Distributions\n".to_owned();
    for Drawing { file, min_rto_ms } in drawings {
        let _ = writeln!(
            text,
            "\n![Cumulative distributions of the FCT in the mixed list, this simulator against ns-3, \
             minRTO {min_rto_ms} ms]({file})"
        );
    }
    text
}
