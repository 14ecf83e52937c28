//! The document `docs/lab/fidelity.md`. Nothing in it depends on the machine or the number of threads.

use std::error::Error;
use std::fmt::Write as _;

use crate::cases::Case;
use crate::comparison::{Comparison, JITTER_NS, JITTERED_RUNS};
use crate::metrics::Metric;
use crate::rfc::{self, Deviation};
use crate::run::Run;
use crate::{reference, simulation, table};

/// One run of a case in each simulator.
pub struct Pair {
    case: Case,
    ns3: Run,
    here: Run,
}

impl Pair {
    /// Runs the case.
    ///
    /// # Errors
    /// When a file cannot be read or the scenario cannot be built.
    pub fn of(case: &Case) -> Result<Pair, Box<dyn Error>> {
        Ok(Pair {
            case: *case,
            ns3: reference::run(case)?,
            here: simulation::run(
                case,
                &case.scenario()?,
                &reference::flows(case.network, case.list)?,
            )?,
        })
    }
}

/// A figure in `docs/`.
pub struct Drawing {
    /// File of the figure.
    pub file: String,
    /// Minimum RTO of the cases in it.
    pub min_rto_ms: u64,
}

/// All content of the document.
pub struct Material<'a> {
    /// Flows alone in the network.
    pub isolated: &'a [Pair],
    /// Flows that compete.
    pub comparisons: &'a [Comparison],
    /// Flows that compete in a fabric.
    pub in_fabric: &'a [Pair],
    /// The figures.
    pub drawings: &'a [Drawing],
    /// RFC senders.
    pub deviations: &'a [Deviation],
    /// The manually written section.
    pub differences: &'a str,
}

const INTRODUCTION: &str = "\
# Agreement with ns-3

<!-- Written by `cargo run --release -p bufgym-sim --example fidelity`. The section on what it takes
     is in fidelity-differences.md; edit it there and run the command again. -->

With `recovery=ns3` this simulator computes what ns-3 3.37 computes: every flow of every list below \
is established and completed at the same nanosecond, and as many packets are dropped. \
`cargo test --release -p bufgym-sim --test suite fidelity` holds it to that. The flow lists and ns-3's \
results are in `env/sim/tests/suite/fidelity/data`.

The network is one switch with 1 MB of buffer, 16 hosts, links of 1 Gbit/s with 10 µs of propagation; \
[further down](#several-switches) a leaf-spine network.

- **isolated**: one flow at a time, 1 B to 30 MB.
- **2to1**: two flows of 10 MB to one host, the second 5 ms after the first.
- **mixed**: 600 web-search flows at load 0.5 and 25 in-cast queries of 8 flows of 40 kB.

## Settings

The preset `ns3-16x1g` has ns-3's packet sizes, handshake, window cap, host queues and loss \
recovery. Each case changes:

| case | policy | settings |
|---|---|---|
";

/// Returns the whole document.
pub fn text(material: &Material<'_>) -> String {
    let mut text = INTRODUCTION.to_owned();
    let cases = material.isolated.iter().map(|isolated| &isolated.case);
    let competing = material
        .comparisons
        .iter()
        .map(|comparison| &comparison.case);
    for case in cases.chain(competing) {
        let _ = writeln!(
            text,
            "| {case} | `{}` | `{}` |",
            case.policy_spec(),
            case.settings().join("` `")
        );
    }
    text += &isolated_flows(material.isolated);
    text += &equality(material.comparisons);
    text += &in_fabric(material.in_fabric);
    text += &figures(material.drawings);
    let _ = write!(text, "\n{}\n", material.differences.trim());
    text += &all_numbers(material.comparisons);
    text += &rfc_senders(material.deviations);
    text
}

fn isolated_flows(isolated: &[Pair]) -> String {
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
            let [ns3, here] = [&one.ns3, &one.here]
                .map(|run| &run.flows[line])
                .map(|flow| flow.finish_ns - flow.start_ns);
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

const EQUALITY: &str = "\
| case | equal flows | drops | packets forwarded | ECN marks |
|---|--:|--:|--:|--:|
";

/// Returns a table that shows how much of each case is equal.
fn equality(comparisons: &[Comparison]) -> String {
    let mut text = format!(
        "\n## Flows that compete\n\nFlows with both instants equal, and what the switch \
         counted: ns-3 / here.\n\n{EQUALITY}"
    );
    for Comparison {
        case, ns3, here, ..
    } in comparisons
    {
        text += &equal_line(case, ns3, here);
    }
    text
}

fn equal_line(case: &Case, ns3: &Run, here: &Run) -> String {
    let counts = [
        (ns3.drops, here.drops),
        (ns3.forwarded, here.forwarded),
        (ns3.marks, here.marks),
    ]
    .map(|(ns3, here)| format!("{} / {}", table::grouped(ns3), table::grouped(here)));
    format!(
        "| {case} | {} of {} | {} |\n",
        ns3.equal_flows(here),
        ns3.flows.len(),
        counts.join(" | ")
    )
}

const FABRIC: &str = "
## Several switches

Four leaves with four hosts each and two spines; every leaf has one link to every spine. Links of \
hosts have 1 Gbit/s, links between switches 1 Gbit/s (`fab1g`: the leaves are oversubscribed 2:1) or \
2 Gbit/s (`fab2g`), all 10 µs of propagation. Each switch has 1 MB of its own. Routes are static: a \
host of another leaf is reached over the spine of its number modulo 2.

- **isolated**: one flow at a time, between leaves and within one, 1 B to 30 MB.
- **mixed**: 404 web-search flows at load 0.4 of the host links and 14 in-cast queries of 14 flows of \
160 kB.

On top of the settings of the case of the same name above: `topology=leafspine` \
`fabric_rate_bps=1e9` or `2e9` `ecmp=dst_mod`. The results of ns-3 are in \
`env/sim/tests/suite/fidelity/data/fabric`. Counts are over all switches.

";

fn in_fabric(pairs: &[Pair]) -> String {
    let mut text = format!("{FABRIC}{EQUALITY}");
    for Pair { case, ns3, here } in pairs {
        text += &equal_line(case, ns3, here);
    }
    text
}

fn all_numbers(comparisons: &[Comparison]) -> String {
    let mut text = format!(
        "\n## All numbers\n\n\
         Times are counted from the establishment of the connection; percentiles are by nearest \
         rank. TCP in a shared buffer is chaotic: one packet earlier, and a flow's FCT changes by \
         half. How chaotic a list is shows where each flow's start is moved by up to {} µs (uniform, \
         seeded): *jittered* is the mean of {JITTERED_RUNS} such runs ± the standard deviation of \
         one. For three cases six such runs of ns-3 are known, with other random numbers; the ratio \
         of the two means stands with its standard error.\n",
        JITTER_NS / 1_000
    );
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

fn rfc_senders(deviations: &[Deviation]) -> String {
    let mut text = format!(
        "\n## RFC senders on the same lists\n\n\
         By default senders follow the RFCs (`recovery=rfc`), not ns-3. On the same lists, with all \
         settings equal but those shown, they come this close: means over {JITTERED_RUNS} jittered \
         runs relative to those with ns-3's senders, ± standard error.\n\n\
         | case | settings | {} |\n|---|---|{}\n",
        rfc::SHOWN.map(Metric::name).join(" | "),
        "--:|".repeat(rfc::SHOWN.len())
    );
    for deviation in deviations {
        let ratios = deviation.ratios.iter().copied().map(table::relative);
        let _ = writeln!(
            text,
            "| {} | `{}` | {} |",
            deviation.case,
            deviation.settings.join("` `"),
            ratios.collect::<Vec<_>>().join(" | ")
        );
    }
    text
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
