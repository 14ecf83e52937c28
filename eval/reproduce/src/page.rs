//! The page of a paper: the number of claims that agree, then every figure next to its claims.

use std::path::Path;

use bufgym_eval::output::{self, OutputError};
use bufgym_eval::{format, html};
use maud::{Markup, PreEscaped, html};

use super::claim::{Claim, Kind, Ours, Target};
use super::report::{Panel, Report};
use super::verdict::Grade;

/// Writes all files into an empty folder, which the caller then moves to its final place.
///
/// # Errors
/// Fails if a file cannot be written.
pub fn write_into(report: &Report, folder: &Path) -> Result<(), OutputError> {
    output::fill(folder, &contents(report)?)
}

fn contents(report: &Report) -> Result<Vec<(String, Vec<u8>)>, OutputError> {
    let mut files = vec![
        ("index.html".to_owned(), render(report).into_bytes()),
        ("verdicts.csv".to_owned(), report.verdicts().csv()?),
    ];
    for panel in &report.panels {
        for table in &panel.tables {
            files.push((format!("{}.csv", table.name), table.csv()?));
        }
        for figure in &panel.drawings {
            let svg = figure.standalone().into_bytes();
            files.push((format!("{}.svg", figure.name), svg));
        }
    }
    Ok(files)
}

/// Renders the whole page.
pub fn render(report: &Report) -> String {
    let title = format!("The figures of {}, made again", report.title);
    let content = html! {
        (counts(report))
        (notes(report))
        @for panel in &report.panels { (section(report, panel)) }
        (rules(report))
        (setup(report))
    };
    html::document(&title, &report.software, &report.extent, &content)
}

/// Renders the table at the beginning of the page.
fn counts(report: &Report) -> Markup {
    let (agree, all) = report.agreeing(None);
    let caption = html! {
        (agree) " of " (all) " claims agree in value, in factor or in ranking. By the kind of the \
        paper’s value: a number in its text, computed from its published data, derived from a formula, \
        or only an order."
    };
    let mut heads = vec![("kind", ""), ("claims", "")];
    heads.extend(Grade::ALL.map(|grade| (grade.name(), "")));
    let of_kind = |kind: Option<Kind>, name: &str| {
        let counts = report.counts(kind);
        html! {
            @if counts.iter().sum::<usize>() > 0 {
                tr {
                    th scope="row" { (name) }
                    td { (counts.iter().sum::<usize>()) }
                    @for count in counts { td { (count) } }
                }
            }
        }
    };
    let rows = html! {
        @for kind in Kind::ALL { (of_kind(Some(kind), kind.name())) }
        (of_kind(None, "all"))
    };
    html! {
        section {
            h2 { "How many claims agree" }
            (html::scrolling("Claims by kind and verdict", &caption, &heads, &rows))
        }
    }
}

fn notes(report: &Report) -> Markup {
    html! {
        @if !report.notes.is_empty() {
            ul class="findings" aria-label="Notes" {
                @for note in &report.notes { li class="plain" { (note) } }
            }
        }
    }
}

/// Renders a figure on the left, its claims on the right.
fn section(report: &Report, panel: &Panel) -> Markup {
    let own = |claim: &&Claim| format!("{}{}", claim.figure, claim.panel) == panel.id;
    let claims: Vec<&Claim> = report.claims.iter().filter(own).collect();
    html! {
        section {
            h2 { (heading(panel)) }
            p class="note" { (panel.method) }
            div class="beside" {
                div {
                    @for figure in &panel.drawings {
                        figure {
                            h3 { (figure.title) }
                            (PreEscaped(figure.inline()))
                            figcaption { (figure.description) }
                        }
                    }
                }
                ul class="claims" aria-label="Claims" {
                    @for claim in claims { (beside(claim)) }
                }
            }
        }
    }
}

fn heading(panel: &Panel) -> String {
    let panel_starts = panel.id.find(|c: char| c.is_ascii_lowercase());
    match panel_starts {
        Some(at) => {
            let (number, letter) = panel.id.split_at(at);
            format!("Figure {number}({letter}): {}", panel.title)
        }
        None if panel.id.starts_with(|c: char| c.is_ascii_digit()) => {
            format!("Figure {}: {}", panel.id, panel.title)
        }
        None => format!("Section {}: {}", panel.id, panel.title),
    }
}

/// Renders one claim with the paper's value, the measured one and the verdict.
fn beside(claim: &Claim) -> Markup {
    let class = match claim.grade() {
        Grade::Agrees | Grade::InFactor | Grade::InRanking => "wins",
        Grade::Differs => "loses",
        Grade::NotComparable => "open",
    };
    html! {
        li class=(class) {
            p { b { (claim.verdict()) } }
            p { "Paper (" (claim.kind) "): " (claim.statement) }
            p {
                (claim.metric) @if !claim.x.is_empty() { ", " (claim.x) } ": "
                (compared(claim))
            }
            @if !claim.remark.is_empty() { p class="note" { (claim.remark) } }
        }
    }
}

/// Describes the paper's value and the measured one.
fn compared(claim: &Claim) -> String {
    let ours = claim.ours.as_ref().map(shown);
    match (&claim.paper, ours) {
        (Target::Order(words), None) => format!("paper {words}"),
        (Target::Order(words), Some(ours)) => format!("paper {words}; {} {ours}", claim.series),
        (Target::Open(_), None) => "no value".to_owned(),
        (Target::Open(_), Some(ours)) => format!("ours {ours}"),
        (paper, None) => format!("paper {paper}, ours not measured"),
        (paper, Some(ours)) => format!("paper {paper}, ours {ours}"),
    }
}

fn shown(ours: &Ours) -> String {
    let text = format::significant(ours.value());
    let [low, high] = ours.ends();
    if low == high {
        return text;
    }
    let (from, to) = (format::significant(low), format::significant(high));
    match ours {
        Ours::Interval(_) => format!("{text} [{from}–{to}]"),
        Ours::Range(_) => format!("{text}, seeds from {from} to {to}"),
    }
}

fn rules(report: &Report) -> Markup {
    html! {
        section {
            h2 { "How verdicts are decided" }
            p {
                "By the program, from these rules. Agrees: the ratio of our value to the paper’s is \
                 within 0.8 to 1.25, a reduction in per cent is within 5 points, a limit is kept, or the \
                 paper’s value is inside our confidence interval, which a range over seeds is not. Agrees in factor: the ratio is within 0.67 to \
                 1.5. Agrees in ranking: the order of the series is the paper’s; a claim that is only an \
                 order cannot do better. Differs: none of these; the reason names the option that \
                 closes the gap, found by repeating the run with one option after the other, or \
                 says that none did. Not comparable: the paper says too little, or nothing was \
                 there to measure."
            }
            p {
                (report.intervals) " Curves marked “added” are not in the paper."
            }
        }
    }
}

fn setup(report: &Report) -> Markup {
    html! {
        section {
            h2 { "Setup" }
            dl {
                dt { "Traces" }
                dd {
                    "test split, " (report.seeds)
                    @if report.seeds == 1 { " set" } @else { " sets" }
                    " of traces, seeds from " (report.seed) " on"
                }
                dt { "Run" }
                dd { (report.software) ", scale " (report.scale) ", " (format::seconds(report.wall_s)) " wall time" }
            }
            @for scenario in &report.scenarios {
                h3 { (scenario.name) }
                dl { (html::facts(scenario)) }
                (html::settings(scenario))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::report::tests::small;
    use super::*;

    #[test]
    fn the_page_begins_with_the_counts_and_needs_nothing_from_outside() {
        let page = render(&small());
        let counts = page.find("1 of 3 claims agree").unwrap();
        assert!(counts < page.find("Figure 1(a): A table").unwrap());
        for outside in ["http://", "https://", "src=", "href=", "<script", "<link"] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn a_claim_stands_beside_its_figure_with_both_values() {
        let page = render(&small());
        assert!(page.contains("paper 10, ours 11.0 [10.0–12.0]"));
        assert!(page.contains("Paper (text): x is 10"));
        // Claims of panels without a figure in this run appear in the counts only.
        assert!(!page.contains("y is best"));
        assert!(!page.contains("<b>somehow"));
    }

    #[test]
    fn headings_name_figure_and_panel() {
        let heading_of = |id: &'static str| {
            let panel = Panel {
                id,
                ..small().panels.remove(0)
            };
            heading(&panel)
        };
        assert_eq!(heading_of("12b"), "Figure 12(b): A table");
        assert_eq!(heading_of("11"), "Figure 11: A table");
        assert_eq!(heading_of("V-A"), "Section V-A: A table");
    }

    #[test]
    fn every_file_of_a_report_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let report = small();
        write_into(&report, folder.path()).unwrap();
        for name in report.names() {
            assert!(folder.path().join(&name).is_file(), "{name}");
        }
        let table = std::fs::read_to_string(folder.path().join("fig1.csv")).unwrap();
        assert_eq!(table, "policy,ms\ndt,1.5\n");
    }
}
