//! Pauses as a self-contained HTML page.

use maud::{Markup, html};

use super::{PausesExplained, PolicyPauses};
use crate::figures::Figure;
use crate::findings::short_name;
use crate::format;
use crate::html::{self, figure_grid, tables};

/// Renders the whole page.
pub(super) fn render(explained: &PausesExplained, figures: &[Figure]) -> String {
    let of = |prefix: &str| -> Vec<&Figure> {
        let chosen = figures.iter().filter(|f| f.name.starts_with(prefix));
        chosen.collect()
    };
    let content = html! {
        ul class="findings" aria-label="Findings" {
            @for finding in findings(explained) { li class="plain" { (finding) } }
        }
        (table(explained))
        @if explained.excerpt.is_none() {
            p class="note" { "No switch has paused anybody." }
        } @else {
            (figure_grid("Who pauses whom, and when", &of("pauses")))
            (figure_grid("Ingress queues", &of("ingress-")))
            (on_excerpt(explained))
        }
        (setup(explained))
    };
    let title = format!("Pauses on {}", explained.scenario.name);
    let intro = format!(
        "{} policies on the same {} traces ({} split, seed {}).",
        explained.policies.len(),
        explained.traces,
        explained.split,
        explained.seed,
    );
    html::document(&title, &explained.software, &intro, &content)
}

/// Returns a sentence for every policy.
pub(super) fn findings(explained: &PausesExplained) -> Vec<String> {
    explained.policies.iter().map(finding).collect()
}

fn finding(policy: &PolicyPauses) -> String {
    let name = short_name(&policy.entry.policy);
    let lossless = &policy.lossless;
    let lost = match lossless.drops_lossless {
        Some(drops) if drops > 0.0 => {
            format!("loses {} lossless packets", format::significant(drops))
        }
        _ => "loses no lossless packet".to_owned(),
    };
    if lossless.pauses == Some(0.0) {
        return format!("{name} pauses nobody and {lost}.");
    }
    format!(
        "{name} pauses {} times per trace, {} µs on average and {} ms together, and {lost}.",
        format::optional(lossless.pauses),
        format::optional(policy.mean_pause_us),
        format::optional(lossless.paused_ms),
    )
}

fn table(explained: &PausesExplained) -> Markup {
    let caption = html! {
        "Means over " (explained.traces) " traces. Paused time is the sum over all ports and \
         priorities; occupancies are 99th percentiles over time of what each class takes of the buffers \
         of switches that hosts are at."
    };
    let heads = [
        ("policy", ""),
        ("Pauses", "per trace"),
        ("Length of a pause", "mean, µs"),
        ("Paused", "ms per trace"),
        ("Lossless drops", "per trace"),
        ("Lossless p99", "of the buffer"),
        ("Lossy p99", "of the buffer"),
        ("Mean FCT", "ms"),
        ("Slowdown", "in-cast, mean"),
    ];
    let rows = html! {
        @for policy in &explained.policies {
            tr {
                th scope="row" { (policy.entry.policy) }
                td { (format::optional(policy.lossless.pauses)) }
                td { (format::optional(policy.mean_pause_us)) }
                td { (format::optional(policy.lossless.paused_ms)) }
                td { (format::optional(policy.lossless.drops_lossless)) }
                td { (format::percent(policy.lossless.p99_lossless_occupancy)) }
                td { (format::percent(policy.lossless.p99_lossy_occupancy)) }
                td { (format::optional(policy.mean_fct_ms)) }
                td { (format::optional(policy.incast_mean_slowdown)) }
            }
        }
    };
    tables::scrolling("Pauses", &caption, &heads, &rows)
}

fn on_excerpt(explained: &PausesExplained) -> Markup {
    let Some(excerpt) = &explained.excerpt else {
        return html! {};
    };
    html! {
        p class="note" {
            "Shown is trace " (excerpt.trace) ", on which the policies together pause longest, where \
             they pause most. It illustrates what they do and is no evidence about the average \
             trace. Switches and ports have the numbers of pfc.csv."
        }
    }
}

fn setup(explained: &PausesExplained) -> Markup {
    html! {
        section {
            h2 { "Setup" }
            dl {
                (html::facts(&explained.scenario))
                dt { "Traces" }
                dd { (explained.traces) " of the " (explained.split) " split, seed " (explained.seed) }
                (html::run_facts(&explained.software, &explained.timing))
            }
            (html::settings(&explained.scenario))
        }
    }
}
