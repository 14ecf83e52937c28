//! The suite as a page in Markdown.

use std::fmt::Write as _;

use super::{CellResult, Comparison, HEADROOM, LOST_ABOVE, Suite, Transfer, key};
use crate::data::{Evaluation, PolicySummary, Role, SeedGroup, Versus};
use crate::stats::Estimate;
use crate::{format, label};

/// Number of rules in the first table, and of rules that learned policies are compared with.
const BEST: usize = 10;

/// Renders the page. `command` is the command that writes it again.
pub fn render(suite: &Suite, command: &str) -> String {
    let mut text = "# Results\n\n".to_owned();
    if let Some(first) = suite.mains.first() {
        _ = write!(
            text,
            "Written by `{command}` of {}: {:.0} min of wall time on {} threads. Every figure is from \
             traces of the test split, seed {}, which neither training nor tuning nor the choice of \
             weights has seen. Ratios are to DT (α = 1) on the same traces, their mean over the traces, \
             with 95 % bootstrap intervals; lower is better. A star marks policies that push out, as no \
             switch of today does. Timeouts are retransmission timeouts per flow, and the part of mean \
             FCT that flows waited for them. ",
            suite.software,
            suite.wall_s / 60.0,
            first.evaluation.timing.threads,
            first.evaluation.seed,
        );
        text.push_str(&budgets(suite));
        text.push_str("\n\n");
    }
    for comparison in &suite.mains {
        let scenario = &comparison.evaluation.scenario;
        _ = write!(text, "## `{}`\n\n", scenario.name);
        let facts = scenario.facts.iter().take(4);
        let facts: Vec<String> = facts
            .map(|(name, value)| format!("{name}: {value}"))
            .collect();
        _ = write!(
            text,
            "{}. {} traces.\n\n",
            facts.join(". "),
            comparison.evaluation.traces
        );
        _ = write!(text, "### The best\n\n{}\n", best_table(comparison));
        against_rules(&mut text, comparison);
        every_policy(&mut text, comparison);
    }
    transfer(&mut text, suite);
    text
}

/// Renders the table for a front page: the learned policies, the best rules, DT and the references in the
/// first of the main comparisons.
pub fn front_table(suite: &Suite) -> String {
    let Some(first) = suite.mains.first() else {
        return String::new();
    };
    format!("{}\n{}\n", best_table(first), budgets(suite))
}

/// Describes the simulations that searches and trainings have spent, in a sentence.
fn budgets(suite: &Suite) -> String {
    let training = suite.learner_simulations.map(|count| {
        format!(
            "the training of the shipped policy ran {}",
            format::count(count)
        )
    });
    format!(
        "Simulations are those that the search of a rule's parameters has spent; {}.",
        training.unwrap_or_default()
    )
}

/// The policies in a row of results.
enum Row<'a> {
    One(&'a PolicySummary),
    Seeds(&'a SeedGroup),
}

impl Row<'_> {
    fn key(&self) -> f64 {
        match self {
            Row::One(policy) => key(policy),
            Row::Seeds(group) => group.ratio_to_dt.centre,
        }
    }
}

/// Returns true if the policy belongs to a training with several seeds, which share one row.
fn is_in_a_group(policy: &PolicySummary, evaluation: &Evaluation) -> bool {
    let name = &policy.entry.policy;
    evaluation
        .seeds
        .iter()
        .any(|group| group.policies.contains(name))
}

/// Renders the learned policies, the best rules, DT, and the references; the best first.
fn best_table(comparison: &Comparison) -> String {
    let evaluation = &comparison.evaluation;
    let best: Vec<&str> = comparison
        .drop_tail()
        .iter()
        .take(BEST)
        .map(|policy| policy.entry.policy.as_str())
        .collect();
    let pushing = evaluation
        .policies
        .iter()
        .filter(|p| comparison.push_out.contains(&p.entry.policy))
        .min_by(|a, b| key(a).total_cmp(&key(b)));
    let pushing = pushing.map(|policy| policy.entry.policy.as_str());
    let shown = |policy: &&PolicySummary| {
        let name = policy.entry.policy.as_str();
        match policy.entry.role {
            Role::Learned => !is_in_a_group(policy, evaluation),
            Role::Heuristic => best.contains(&name) || pushing == Some(name),
            Role::Baseline | Role::Reference => true,
        }
    };
    let mut rows: Vec<Row<'_>> = evaluation
        .policies
        .iter()
        .filter(shown)
        .map(Row::One)
        .collect();
    rows.extend(evaluation.seeds.iter().map(Row::Seeds));
    rows.sort_by(|a, b| a.key().total_cmp(&b.key()));
    let mut text = "| policy | mean FCT ms | ratio to DT (95 % interval) | won / tied / lost | p99 ratio | timeouts | of FCT | simulations |\n\
                    |---|--:|--:|--:|--:|--:|--:|--:|\n"
        .to_owned();
    let full: Vec<(String, &str)> = rows
        .iter()
        .map(|row| match row {
            Row::One(policy) => (policy.entry.label().to_owned(), &*policy.entry.policy),
            Row::Seeds(group) => (label::of_task(&group.task), &*group.task),
        })
        .collect();
    for row in rows {
        match row {
            Row::One(policy) => one(&mut text, comparison, policy),
            Row::Seeds(group) => seeds(&mut text, group),
        }
    }
    text.push_str(&in_full(&full));
    text
}

/// Renders a list of labels, each with the policy string; nothing if all are the same.
fn in_full(labels: &[(String, &str)]) -> String {
    let others = labels.iter().filter(|(label, full)| label != full);
    let lines: String = others
        .map(|(label, full)| format!("- {}: {}\n", code(label), code(full)))
        .collect();
    match lines.as_str() {
        "" => lines,
        _ => format!("\n{lines}"),
    }
}

/// Renders a label as code within a table.
fn code(label: &str) -> String {
    format!("`{}`", label.replace('`', "'").replace('|', "\\|"))
}

fn one(text: &mut String, comparison: &Comparison, policy: &PolicySummary) {
    let tally = &policy.tally;
    _ = writeln!(
        text,
        "| {} | {} | {} | {} / {} / {} | {} | {} | {} | {} |",
        name(comparison, policy),
        format::optional(policy.all_flows.mean_fct_ms),
        format::interval(policy.ratio_to_dt.as_ref()),
        tally.won,
        tally.tied,
        tally.lost,
        format::ratio(policy.p99_ratio_to_dt.map(|ratio| ratio.centre)),
        format::optional(policy.timeouts_per_flow),
        format::percent(policy.timeout_share),
        simulations(comparison, policy),
    );
}

fn seeds(text: &mut String, group: &SeedGroup) {
    _ = writeln!(
        text,
        "| **{}: mean of {} seeds** ({:.3} to {:.3}, deviation {:.3}) | {} | {} | | {} | {} | {} | |",
        label::of_task(&group.task),
        group.seeds.len(),
        group.best(),
        group.worst(),
        group.deviation,
        format::optional(group.mean_fct_ms),
        format::interval(Some(&group.ratio_to_dt)),
        format::ratio(group.p99_ratio_to_dt.map(|ratio| ratio.centre)),
        format::optional(Some(group.timeouts_per_flow)),
        format::percent(group.timeout_share),
    );
}

/// Renders the label with a star if the policy pushes out, and in bold if it is learned.
fn name(comparison: &Comparison, policy: &PolicySummary) -> String {
    let entry = &policy.entry;
    let star = match comparison.push_out.contains(&entry.policy) {
        true => "\\*",
        false => "",
    };
    let label = code(entry.label());
    match entry.role {
        Role::Learned => format!("**{label}**"),
        Role::Reference => format!("{label} (reference)"),
        _ => format!("{label}{star}"),
    }
}

/// Renders the number of simulations of a tuned rule's search.
fn simulations(comparison: &Comparison, policy: &PolicySummary) -> String {
    match comparison.spent(&policy.entry.policy) {
        Some(spent) => spent
            .simulations
            .map_or_else(|| "not counted".to_owned(), format::count),
        None => String::new(),
    }
}

fn every_policy(text: &mut String, comparison: &Comparison) {
    let evaluation = &comparison.evaluation;
    text.push_str(
        "### All policies\n\n\
         | policy | mean FCT ms | ratio to DT | spread | synchronised | p99 FCT, ratio | best trace | worst trace | share of the unlimited buffer's gain | drops | timeouts | of FCT | in full |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|---|\n",
    );
    let mut policies: Vec<&PolicySummary> = evaluation.policies.iter().collect();
    policies.sort_by(|a, b| key(a).total_cmp(&key(b)));
    for policy in policies {
        let by_arrivals = |place: usize| {
            let kind = policy.by_arrivals.get(place);
            format::ratio(
                kind.and_then(|kind| kind.ratio_to_dt)
                    .map(|ratio| ratio.centre),
            )
        };
        _ = writeln!(
            text,
            "| {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |",
            name(comparison, policy),
            format::optional(policy.all_flows.mean_fct_ms),
            format::interval(policy.ratio_to_dt.as_ref()),
            by_arrivals(0),
            by_arrivals(1),
            format::interval(policy.p99_ratio_to_dt.as_ref()),
            format::ratio(policy.best_ratio),
            format::ratio(policy.worst_ratio),
            format::percent(policy.headroom),
            format::count(policy.drops),
            format::optional(policy.timeouts_per_flow),
            format::percent(policy.timeout_share),
            code(&policy.entry.policy),
        );
    }
    text.push('\n');
    let edges: Vec<String> = comparison
        .spent
        .iter()
        .filter(|spent| !spent.edges.is_empty())
        .map(|spent| {
            let label = code(evaluation.label(&spent.policy));
            format!("{label}: {}", spent.edges.join(", "))
        })
        .collect();
    if !edges.is_empty() {
        _ = writeln!(
            text,
            "At an edge of what was searched: {}.\n",
            edges.join("; ")
        );
    }
}

/// Renders the learned policies against the best rules, trace by trace.
fn against_rules(text: &mut String, comparison: &Comparison) {
    let evaluation = &comparison.evaluation;
    let best: Vec<&str> = comparison
        .drop_tail()
        .iter()
        .take(BEST)
        .map(|policy| policy.entry.policy.as_str())
        .collect();
    let grouped = |policy: &str| {
        evaluation
            .seeds
            .iter()
            .any(|g| g.policies.iter().any(|p| p == policy))
    };
    let alone = evaluation.versus.iter().filter(|v| !grouped(&v.policy));
    let together = evaluation.seeds.iter().flat_map(|group| &group.versus);
    let all: Vec<&Versus> = together.chain(alone).collect();
    for rule in best {
        for versus in all.iter().filter(|versus| versus.against == rule) {
            let tally = &versus.tally;
            _ = writeln!(
                text,
                "- {} {} {}: mean FCT ratio {}, {} won, {} tied, {} lost.",
                code(&label::of_policy_or_task(
                    &evaluation.policies,
                    &versus.policy
                )),
                verdict(&versus.ratio),
                code(evaluation.label(rule)),
                format::interval(Some(&versus.ratio)),
                tally.won,
                tally.tied,
                tally.lost,
            );
        }
    }
    text.push('\n');
}

fn verdict(ratio: &Estimate) -> &'static str {
    match ratio {
        better if better.is_below_one() => "beats",
        worse if worse.is_above_one() => "loses to",
        _ => "cannot be told apart from",
    }
}

fn transfer(text: &mut String, suite: &Suite) {
    let Some(first) = suite.cells.first() else {
        return;
    };
    let grouped = |p: &&PolicySummary| {
        let name = &p.entry.policy;
        !first
            .seeds
            .iter()
            .any(|group| group.policies.contains(name))
    };
    // A rule that was tuned for one cell has no column.
    let everywhere = |p: &&PolicySummary| {
        let name = &p.entry.policy;
        let mut cells = suite.cells.iter();
        cells.all(|cell| cell.policies.iter().any(|p| p.entry.policy == *name))
    };
    let alone = first.policies.iter().filter(grouped).filter(everywhere);
    let names: Vec<&str> = first
        .seeds
        .iter()
        .map(|group| group.task.as_str())
        .chain(alone.map(|policy| policy.entry.policy.as_str()))
        .collect();
    _ = write!(
        text,
        "## Scenarios that neither weights nor rules were made for\n\nThe same weights, and rules with the \
         parameters of `{}`. Headroom is how much lower the unlimited buffer's mean FCT is \
         than that of DT. \"Tuned for it\" is the best rule of those that were tuned for the scenario, by \
         validation traces, and \"against it\" the mean FCT of the first column over its, in pairs.\n\n\
         | scenario | traces | headroom |",
        super::MAIN,
    );
    let labels: Vec<(String, &str)> = names
        .iter()
        .map(|&name| (label::of_policy_or_task(&first.policies, name), name))
        .collect();
    for (label, _) in &labels {
        _ = write!(text, " {} |", code(label));
    }
    text.push_str(" tuned for it | against it |\n|---|--:|--:|");
    text.push_str(&"--:|".repeat(names.len() + 2));
    text.push('\n');
    for cell in &suite.cells {
        row(text, cell, &names);
    }
    text.push_str(&in_full(&labels));
    text.push('\n');
    for cell in &suite.cells {
        if let Some(tuned) = &cell.tuned {
            _ = writeln!(text, "- Tuned for {}: `{tuned}`", cell.title);
        }
    }
    let learned = first
        .policies
        .iter()
        .filter(|p| p.entry.role == Role::Learned);
    let learned = learned.filter(grouped).map(|p| p.entry.policy.as_str());
    let groups = first.seeds.iter().map(|group| group.task.as_str());
    for name in groups.chain(learned) {
        let transfer = suite.transfer(name);
        let lost = match transfer.lost.is_empty() {
            true => "none".to_owned(),
            false => transfer.lost.join(", "),
        };
        _ = writeln!(
            text,
            "- {}: cells whose interval lies above {LOST_ABOVE}: {lost}. Of the {} cells with \
             more than {:.0} % of headroom it is better than DT, beyond chance, in {}.{}",
            code(&label::of_policy_or_task(&first.policies, name)),
            transfer.with_headroom,
            100.0 * HEADROOM,
            transfer.better,
            against_tuned(&transfer),
        );
    }
}

fn against_tuned(transfer: &Transfer) -> String {
    if transfer.tuned == 0 {
        return String::new();
    }
    let worse = match transfer.worse_than_tuned.is_empty() {
        true => "none".to_owned(),
        false => transfer.worse_than_tuned.join(", "),
    };
    format!(
        " Against the rule tuned for the cell it is better, beyond chance, in {} of {}, and worse by more \
         than 2 % in: {worse}.",
        transfer.better_than_tuned, transfer.tuned,
    )
}

fn row(text: &mut String, cell: &CellResult, names: &[&str]) {
    let headroom = cell.headroom().map(|share| 100.0 * share);
    let headroom = headroom.map_or_else(
        || format::NONE.to_owned(),
        |share| format!("{share:.1} %").replace('-', "−"),
    );
    _ = write!(text, "| {} | {} | {headroom} |", cell.title, cell.traces);
    for name in names {
        _ = write!(text, " {} |", format::interval(cell.ratio(name).as_ref()));
    }
    let tuned = cell.tuned.as_deref().and_then(|name| cell.ratio(name));
    let against = names.first().and_then(|name| cell.against_tuned(name));
    for ratio in [tuned, against] {
        _ = write!(text, " {} |", format::interval(ratio.as_ref()));
    }
    text.push('\n');
}
