//! The report as a self-contained HTML page: styles and figures are inline, and there are no scripts.

pub(crate) mod tables;

pub use tables::scrolling;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use crate::data::{Evaluation, Role, ScenarioFacts, Timing};
use crate::figures::{self, Figure};
use crate::findings::{Finding, Tone, findings};
use crate::format;

const STYLE: &str = include_str!("html/report.css");

/// Renders the whole page.
pub(crate) fn render(evaluation: &Evaluation, figures: &[Figure]) -> String {
    let name = &evaluation.scenario.name;
    let (timelines, others): (Vec<&Figure>, Vec<&Figure>) = figures
        .iter()
        .partition(|figure| figure.name.starts_with("timeline"));
    let (overview, curves): (Vec<&Figure>, Vec<&Figure>) = others
        .into_iter()
        .partition(|figure| figure.name == figures::OVERVIEW);
    let content = html! {
        (list_of_findings(evaluation))
        @if !overview.is_empty() { (figure_grid("Overview", &overview)) }
        (tables::comparison(evaluation))
        (tables::policies(evaluation))
        @if !curves.is_empty() { (figure_grid("Trace by trace", &curves)) }
        (tables::seeds(evaluation))
        (tables::by_arrivals(evaluation))
        (tables::versus(evaluation))
        (tables::completion_times(evaluation))
        (tables::slowdowns(evaluation))
        (tables::lossless(evaluation))
        (tables::objectives(evaluation))
        (tables::buffer(evaluation))
        @if !timelines.is_empty() { (timeline_section(evaluation, &timelines)) }
        (tables::failures(evaluation))
        (method(evaluation))
        (setup(evaluation))
    };
    let title = format!("Buffer policies on {name}");
    let intro = what_was_compared(evaluation);
    document(&title, &evaluation.software, &intro, &content)
}

/// Renders a whole page with the given content.
pub fn document(title: &str, software: &str, intro: &str, content: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta name="generator" content=(software);
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { (title) }
                    p { (intro) }
                }
                main { (content) }
            }
        }
    };
    page.into_string()
}

fn what_was_compared(evaluation: &Evaluation) -> String {
    let rules = evaluation.policies.len();
    let unseen = if evaluation.split == "test" {
        " unseen"
    } else {
        ""
    };
    format!(
        "{rules} policies, each on the same {}{unseen} traces ({} split, seed {}). All ratios are to DT \
         with α = 1 on the same trace; below 1 is better.",
        evaluation.traces, evaluation.split, evaluation.seed,
    )
}

fn tone_class(tone: Tone) -> &'static str {
    match tone {
        Tone::Wins => "wins",
        Tone::Open => "open",
        Tone::Loses => "loses",
        Tone::Plain => "plain",
        Tone::Warning => "warning",
    }
}

fn list_of_findings(evaluation: &Evaluation) -> Markup {
    let findings = findings(evaluation);
    html! {
        @if !findings.is_empty() {
            ul class="findings" aria-label="Findings" {
                @for finding in &findings { (list_item(finding)) }
            }
        }
    }
}

/// Renders a finding with its claim, the part before the first colon, in bold.
fn list_item(finding: &Finding) -> Markup {
    let text = &finding.text;
    let claim = text.find(": ").unwrap_or(0);
    let (claim, rest) = text.split_at(if finding.tone == Tone::Plain {
        0
    } else {
        claim
    });
    html! {
        li class=(tone_class(finding.tone)) {
            @if !claim.is_empty() { b { (claim) } }
            (rest)
        }
    }
}

/// Renders a section of figures side by side.
pub(crate) fn figure_grid(title: &str, figures: &[&Figure]) -> Markup {
    html! {
        section {
            h2 { (title) }
            div class="figures" {
                @for figure in figures {
                    figure {
                        h3 { (figure.title) }
                        (PreEscaped(figure.inline()))
                        figcaption { (figure.description) }
                    }
                }
            }
        }
    }
}

fn timeline_section(evaluation: &Evaluation, figures: &[&Figure]) -> Markup {
    let trace = evaluation
        .timeline
        .as_ref()
        .map_or(0, |timeline| timeline.trace);
    html! {
        (figure_grid(&format!("Queues and thresholds on trace {trace}"), figures))
        p class="note" {
            "Shown are the two ports with the longest queues under DT, around the time when both are \
             busiest, on the trace with several busy ports where DT drops most. It illustrates how \
             the policies differ and is no evidence about the average trace."
        }
    }
}

fn method(evaluation: &Evaluation) -> Markup {
    let learned = evaluation
        .policies
        .iter()
        .any(|policy| policy.entry.role == Role::Learned);
    html! {
        section {
            h2 { "How to read this" }
            p {
                "The comparison is paired: every policy sees the same flows. The ratio of a policy is \
                 the arithmetic mean over traces of its mean flow completion time (FCT) divided by \
                 DT’s on the same trace. Its interval is the 95 % percentile bootstrap over traces ("
                (format::count(evaluation.resamples as u64)) " seeded resamples). A trace is won below \
                 0.999, lost above 1.001, and tied in between; traces without a drop are ties."
            }
            p {
                "An unlimited buffer lowers mean FCT relative to DT. The share of this gain that a policy \
                 has is a scale and not a bound: shorter queues can beat an unlimited buffer. Percentiles \
                 are by nearest rank within a trace, then averaged over traces. Slowdown is FCT divided by \
                 the FCT of the same flow alone in the network; short flows have at most 100 KB, long ones \
                 at least 1 MB."
            }
            p {
                "The other objectives are compared by the mean over traces divided by DT’s, with the \
                 bootstrap over pairs of traces. Loss: data packets lost at the switch per data packet \
                 delivered. Goodput: all bytes over the time from the first start to the last \
                 completion. Queueing delay: 99th percentile over the packets sent, acknowledgements \
                 included, from the arrival of the last bit at the switch to the departure of the \
                 first. Port slowdown: mean FCT of the flows to a port divided by their mean FCT when \
                 only these flows are simulated, in the same buffer with complete sharing; its \
                 variance is over the ports that have flows."
            }
            @if evaluation.has_lossless() {
                p {
                    "Pauses are those that switches begin by a frame to what sends to one of their \
                     ports at a lossless priority; paused time is the sum over all of them, so that \
                     it can exceed the simulated time. A lossless drop is a packet of such a priority \
                     that was lost all the same. Occupancies are 99th percentiles over time of what a \
                     class of packets takes of the buffers of switches that hosts are at."
                }
            }
            p {
                "What a drop costs depends on minRTO and on loss recovery, so that these numbers hold \
                 for the transport below and not for others."
                @if learned { " Learned policies act on their mean, without exploration." }
            }
        }
    }
}

/// Renders the facts of a scenario as entries of a definition list.
pub fn facts(scenario: &ScenarioFacts) -> Markup {
    html! {
        dt { "Scenario" } dd { (scenario.name) }
        @for (name, value) in &scenario.facts {
            dt { (name) } dd { (value) }
        }
    }
}

/// Renders program and wall time as an entry of a definition list.
pub(crate) fn run_facts(software: &str, timing: &Timing) -> Markup {
    html! {
        dt { "Run" }
        dd {
            (software) ", " (format::seconds(timing.wall_s)) " wall time on "
            (timing.threads) @if timing.threads == 1 { " thread" } @else { " threads" }
        }
    }
}

/// Renders all settings of the scenario, folded.
pub fn settings(scenario: &ScenarioFacts) -> Markup {
    html! {
        details {
            summary { "All settings as TOML" }
            pre tabindex="0" { code { (scenario.toml) } }
        }
    }
}

fn setup(evaluation: &Evaluation) -> Markup {
    html! {
        section {
            h2 { "Setup" }
            dl {
                (facts(&evaluation.scenario))
                dt { "Traces" }
                dd { (evaluation.traces) " of the " (evaluation.split) " split, seed " (evaluation.seed) }
                (run_facts(&evaluation.software, &evaluation.timing))
            }
            (settings(&evaluation.scenario))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    fn page(evaluation: &Evaluation) -> String {
        render(evaluation, &figures::figures(evaluation).unwrap())
    }

    #[test]
    fn the_page_needs_nothing_from_outside() {
        let page = page(&synthetic::typical(0.8));
        for outside in [
            "http://", "https://", "src=", "href=", "url(", "@import", "<script", "<link",
        ] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn every_policy_is_in_every_main_table() {
        let evaluation = synthetic::typical(0.8);
        let page = page(&evaluation);
        for policy in &evaluation.policies {
            let head = format!("scope=\"row\">{}<", policy.entry.label());
            assert!(
                page.replace("<wbr>", "").matches(&head).count() >= 4,
                "{}",
                policy.entry.policy
            );
            let full = format!("<td>{}<", policy.entry.policy);
            assert!(page.replace("<wbr>", "").contains(&full), "{full}");
        }
    }

    /// A rule with many parameters on one line would push the numbers next to it out of sight.
    #[test]
    fn rules_that_a_learned_policy_is_compared_with_may_break_into_lines() {
        let mut evaluation = synthetic::typical(0.8);
        evaluation.versus[0].against = "fab:alpha=8,idle_us=100".to_owned();
        let page = page(&evaluation);
        assert!(page.contains("<td>fab:<wbr>alpha=8,<wbr>idle_us=100<wbr></td>"));
    }

    #[test]
    fn the_page_is_accessible() {
        let page = page(&synthetic::typical(0.8));
        assert!(page.starts_with("<!DOCTYPE html>"));
        for part in [
            "lang=\"en\"",
            "name=\"viewport\"",
            "<caption><span>",
            "scope=\"col\"",
            "role=\"img\"",
            "prefers-color-scheme",
            "@media print",
        ] {
            assert!(page.contains(part), "{part}");
        }
        let ids: Vec<&str> = page
            .split(" id=\"")
            .skip(1)
            .filter_map(|s| s.split('"').next())
            .collect();
        let unique: std::collections::BTreeSet<&str> = ids.iter().copied().collect();
        assert_eq!(unique.len(), ids.len(), "identifiers are unique");
    }

    #[test]
    fn a_loss_is_stated_at_the_top() {
        let page = page(&synthetic::typical(1.3));
        let finding = page.find("<li class=\"loses\">").unwrap();
        assert!(finding < page.find("<table").unwrap());
        assert!(page.contains("<b>ndt-fct loses to DT (α = 1)</b>"));
    }

    #[test]
    fn failed_traces_are_listed() {
        let page = page(&synthetic::evaluation(&[
            ("cs", &[9.0, f64::NAN]),
            ("dt", &[10.0, 20.0]),
            ("unlimited", &[5.0, 10.0]),
        ]));
        assert!(page.contains("cs failed 1 of 2 traces"));
        assert!(page.contains("1 of 300 flows did not finish"));
    }

    #[test]
    fn pauses_are_shown_where_packets_are_lossless() {
        let plain = synthetic::typical(0.8);
        let paused = synthetic::with_pauses(plain.clone());
        let (plain, paused) = (page(&plain), page(&paused));
        for part in [
            "Pauses and lossless packets",
            "Paused",
            "Lossless drops",
            "Lossy p99",
        ] {
            assert!(paused.contains(part), "{part}");
            assert!(!plain.contains(part), "{part}");
        }
    }

    #[test]
    fn names_are_escaped() {
        let mut evaluation = synthetic::evaluation(&[("cs", &[9.0]), ("dt", &[10.0])]);
        evaluation.scenario.name = "<b>&".to_string();
        assert!(page(&evaluation).contains("&lt;b&gt;&amp;"));
    }
}
