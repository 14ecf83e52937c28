//! The suite as a page in Markdown.

use std::fmt::Write as _;

use super::{CellResult, HEADROOM, LOST_ABOVE, Suite, key, learned};
use crate::data::{Evaluation, PolicySummary, Role};
use crate::findings::findings;
use crate::format;

/// The page. `command` is the command that writes it again.
pub fn render(suite: &Suite, command: &str) -> String {
    let main = &suite.main;
    let mut text = format!(
        "# Results\n\nWritten by `{command}` of {}: {:.0} min of wall time on {} threads. \
         Every figure is from traces of the test split, seed {}, which neither training nor tuning \
         nor the choice of weights has seen. Ratios are to DT (α = 1) on the same traces, their \
         mean over the traces, with 95 % bootstrap intervals; lower is better.\n\n",
        suite.software,
        suite.wall_s / 60.0,
        main.timing.threads,
        main.seed,
    );
    every_policy(&mut text, suite);
    best_rule(&mut text, suite);
    list_findings(&mut text, main);
    transfer(&mut text, suite);
    text
}

fn every_policy(text: &mut String, suite: &Suite) {
    let main = &suite.main;
    _ = write!(
        text,
        "## Every policy in `{}`\n\n{} traces. Tuned parameters are those that `bufgym tune` found \
         on training traces; a star marks policies that push out, as no switch of today does. Headroom is \
         the share captured of what lies between DT and the \
         unlimited buffer.\n\n\
         | policy | mean FCT ms | ratio to DT | won / tied / lost | p99 FCT, ratio | best trace | worst trace | headroom | drops | timeouts |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|\n",
        main.scenario.name, main.traces,
    );
    let mut policies: Vec<&PolicySummary> = main.policies.iter().collect();
    policies.sort_by(|a, b| key(a).total_cmp(&key(b)));
    for policy in policies {
        let tally = &policy.tally;
        let star = match suite.push_out.contains(&policy.entry.policy) {
            true => "\\*",
            false => "",
        };
        let tuned = match policy.entry.origin.is_empty() || policy.entry.role == Role::Learned {
            true => "",
            false => " (tuned)",
        };
        _ = writeln!(
            text,
            "| `{}`{star}{tuned} | {} | {} | {} / {} / {} | {} | {} | {} | {} | {} | {} |",
            policy.entry.policy,
            format::optional(policy.all_flows.mean_fct_ms),
            format::interval(policy.ratio_to_dt.as_ref()),
            tally.won,
            tally.tied,
            tally.lost,
            format::interval(policy.p99_ratio_to_dt.as_ref()),
            format::ratio(policy.best_ratio),
            format::ratio(policy.worst_ratio),
            format::percent(policy.headroom),
            format::count(policy.drops),
            format::count(policy.timeouts),
        );
    }
    text.push('\n');
}

/// The best rule that a switch of today could run, and how the learned policies do against it.
fn best_rule(text: &mut String, suite: &Suite) {
    let Some(best) = suite.best_drop_tail() else {
        return;
    };
    let name = &best.entry.policy;
    _ = writeln!(
        text,
        "The best rule that never pushes out is `{name}`: {}.\n",
        format::interval(best.ratio_to_dt.as_ref())
    );
    for versus in suite.main.versus.iter().filter(|v| v.against == *name) {
        let tally = &versus.tally;
        let decided = (tally.won + tally.lost).max(1);
        _ = writeln!(
            text,
            "`{}` against it, trace by trace: {}, {} won, {} tied, {} lost; {:.0} % won of those that \
             are not ties.\n",
            versus.policy,
            format::interval(Some(&versus.ratio)),
            tally.won,
            tally.tied,
            tally.lost,
            100.0 * tally.won as f64 / decided as f64,
        );
    }
}

fn list_findings(text: &mut String, main: &Evaluation) {
    for finding in findings(main) {
        _ = writeln!(text, "- {}", finding.text);
    }
    text.push('\n');
}

fn transfer(text: &mut String, suite: &Suite) {
    let Some(first) = suite.cells.first() else {
        return;
    };
    let names: Vec<&str> = first
        .policies
        .iter()
        .map(|p| p.entry.policy.as_str())
        .collect();
    _ = write!(
        text,
        "## Scenarios that the weights have not seen\n\nThe same weights, {} traces each. Headroom \
         is how much lower the unlimited buffer's mean FCT is than that of DT.\n\n| scenario | headroom |",
        first.traces
    );
    for name in &names {
        _ = write!(text, " `{name}` |");
    }
    text.push_str("\n|---|--:|");
    text.push_str(&"--:|".repeat(names.len()));
    text.push('\n');
    for cell in &suite.cells {
        row(text, cell, &names);
    }
    text.push('\n');
    for name in learned(&first.policies) {
        let transfer = suite.transfer(name);
        let lost = match transfer.lost.is_empty() {
            true => "none".to_owned(),
            false => transfer.lost.join(", "),
        };
        _ = writeln!(
            text,
            "- `{name}`: cells whose interval lies above {LOST_ABOVE}: {lost}. Of the {} cells with \
             more than {:.0} % of headroom it is better than DT, beyond chance, in {}.",
            transfer.with_headroom,
            100.0 * HEADROOM,
            transfer.better,
        );
    }
}

fn row(text: &mut String, cell: &CellResult, names: &[&str]) {
    let headroom = cell.headroom().map(|share| 100.0 * share);
    let headroom = headroom.map_or_else(
        || format::NONE.to_owned(),
        |share| format!("{share:.1} %").replace('-', "−"),
    );
    _ = write!(text, "| {} | {headroom} |", cell.title);
    for name in names {
        let summary = cell.policies.iter().find(|p| p.entry.policy == *name);
        let ratio = summary.and_then(|summary| summary.ratio_to_dt);
        _ = write!(text, " {} |", format::interval(ratio.as_ref()));
    }
    text.push('\n');
}
