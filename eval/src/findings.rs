//! The findings of an evaluation in sentences, derived from the numbers. Losses are stated as plainly
//! as wins.

use crate::data::{BASELINE, Evaluation, PolicySummary, Role, SeedGroup, Training, Versus};
use crate::entrant::LINEAR;
use crate::format;
use crate::metric::Metric;
use crate::stats::{Interval, Tally};

/// What a finding means for its policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// The policy is better, beyond chance.
    Wins,
    /// The interval includes 1.
    Open,
    /// The policy is worse, beyond chance.
    Loses,
    /// A fact that is neither good nor bad.
    Plain,
    /// Something is wrong with the evaluation itself.
    Warning,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What it means for the policy.
    pub tone: Tone,
    /// One or two sentences.
    pub text: String,
}

impl Finding {
    fn new(tone: Tone, text: String) -> Finding {
        Finding { tone, text }
    }
}

fn tone_of(ratio: &Interval) -> Tone {
    if ratio.is_below_one() {
        Tone::Wins
    } else if ratio.is_above_one() {
        Tone::Loses
    } else {
        Tone::Open
    }
}

/// A short name of a policy: for learned policies, the last component of the folder or file; for
/// others, the policy string.
pub fn short_name(policy: &str) -> &str {
    let path = match policy.split_once(':') {
        Some((kind, folder)) if kind.starts_with("ndt") => folder.trim_end_matches('/'),
        Some((LINEAR, file)) => file.trim_end_matches(".json"),
        _ => return policy,
    };
    path.rsplit('/').next().unwrap_or(policy)
}

/// All findings, the most important first: failed traces, then the learned policies (or, where
/// there is none, every rule) against DT (α = 1), then against each other rule and the learned
/// policies before them. One that was trained for another objective than mean FCT is compared by that
/// objective's metric first. The seeds of a training speak as one. Of many rules that are beaten, the
/// strongest are named.
pub fn findings(evaluation: &Evaluation) -> Vec<Finding> {
    let mut findings = failures(evaluation);
    let learned: Vec<&PolicySummary> = evaluation.learned().collect();
    for group in &evaluation.seeds {
        findings.push(seeds_against_baseline(group));
        let versus: Vec<&Versus> = group.versus.iter().collect();
        let mut members = learned.iter().map(|policy| &policy.entry);
        let member = members.find(|entry| group.policies.contains(&entry.policy));
        let training = member.and_then(|entry| entry.training.as_ref());
        findings.extend(trained_for(seeds_name(group), training, &versus));
        findings.extend(rules(seeds_name(group), &versus));
    }
    let alone = learned.iter().filter(|policy| {
        let mut groups = evaluation.seeds.iter();
        groups.all(|group| !group.policies.contains(&policy.entry.policy))
    });
    for policy in alone {
        let own = evaluation.versus.iter();
        let own: Vec<&Versus> = own.filter(|v| v.policy == policy.entry.policy).collect();
        let name = short_name(&policy.entry.policy);
        findings.extend(trained_for(name, policy.entry.training.as_ref(), &own));
        findings.extend(against_baseline(policy));
        findings.extend(tail(policy));
        findings.extend(headroom(policy));
        findings.extend(rules(name, &own));
    }
    if learned.is_empty() {
        let rules = evaluation
            .policies
            .iter()
            .filter(|p| p.entry.role == Role::Heuristic);
        findings.extend(rules.filter_map(against_baseline));
    }
    findings
}

/// What its seeds are called together: their task without the heuristic below.
fn seeds_name(group: &SeedGroup) -> &str {
    group.task.split(" over ").next().unwrap_or(&group.task)
}

fn seeds_against_baseline(group: &SeedGroup) -> Finding {
    let ratio = &group.ratio_to_dt;
    let tone = tone_of(ratio);
    let verdict = match tone {
        Tone::Wins => "beats DT (α = 1)",
        Tone::Loses => "loses to DT (α = 1)",
        _ => "cannot be told apart from DT (α = 1)",
    };
    let text = format!(
        "{} {verdict}: the mean over {} seeds has {} of its mean FCT, the best seed {} and the worst {}.",
        seeds_name(group),
        group.seeds.len(),
        format::interval(Some(ratio)),
        format::ratio(Some(group.best())),
        format::ratio(Some(group.worst())),
    );
    Finding::new(tone, text)
}

fn failures(evaluation: &Evaluation) -> Vec<Finding> {
    let failing = evaluation
        .policies
        .iter()
        .filter(|policy| policy.failed > 0);
    let finding = |policy: &PolicySummary| {
        let text = format!(
            "{} failed {} of {} traces: flows were left unfinished. These traces count as lost for \
             it and are left out of the means of every policy.",
            short_name(&policy.entry.policy),
            policy.failed,
            evaluation.traces,
        );
        Finding::new(Tone::Warning, text)
    };
    failing.map(finding).collect()
}

fn against_baseline(policy: &PolicySummary) -> Option<Finding> {
    let ratio = policy.ratio_to_dt.as_ref()?;
    let name = short_name(&policy.entry.policy);
    let detail = format!(
        "ratio {}, 95\u{a0}% interval {}",
        format::ratio(Some(ratio.mean)),
        format::bounds(ratio)
    );
    let tone = tone_of(ratio);
    let lead = match tone {
        Tone::Wins => format!(
            "{name} beats DT (α = 1): its mean FCT is {} lower on average ({detail}).",
            format::change(ratio.mean)
        ),
        Tone::Loses => format!(
            "{name} loses to DT (α = 1): its mean FCT is {} higher on average ({detail}).",
            format::change(ratio.mean)
        ),
        _ => format!("{name} cannot be told apart from DT (α = 1): mean FCT {detail}."),
    };
    Some(Finding::new(
        tone,
        format!("{lead} {}", tally_sentence(&policy.tally)),
    ))
}

/// The traces won, tied and lost, as a sentence.
fn tally_sentence(tally: &Tally) -> String {
    match tally.share_won() {
        None => format!("All {} traces are ties.", tally.total()),
        Some(share) => format!(
            "It wins {} traces, ties {} and loses {}: {} won of those that are not ties.",
            tally.won,
            tally.tied,
            tally.lost,
            format::percent(Some(share)),
        ),
    }
}

fn tail(policy: &PolicySummary) -> Option<Finding> {
    let ratio = policy.p99_ratio_to_dt.as_ref()?;
    let name = short_name(&policy.entry.policy);
    let detail = format!(
        "ratio {} [{}]",
        format::ratio(Some(ratio.mean)),
        format::bounds(ratio)
    );
    let tone = tone_of(ratio);
    let text = match tone {
        Tone::Wins => format!(
            "In the tail {name} is better than DT: p99 FCT is {} lower on average ({detail}).",
            format::change(ratio.mean)
        ),
        Tone::Loses => format!(
            "In the tail {name} is worse than DT: p99 FCT is {} higher on average ({detail}).",
            format::change(ratio.mean)
        ),
        _ => format!("In the tail {name} cannot be told apart from DT: p99 FCT {detail}."),
    };
    Some(Finding::new(tone, text))
}

fn headroom(policy: &PolicySummary) -> Option<Finding> {
    let share = policy.headroom?;
    let name = short_name(&policy.entry.policy);
    let text = if share > 0.0 {
        format!(
            "{name} captures {} of what an unlimited buffer would gain over DT in mean FCT.",
            format::percent(Some(share))
        )
    } else {
        format!(
            "{name} captures nothing of what an unlimited buffer would gain over DT in mean FCT \
             ({} of the headroom).",
            format::percent(Some(share))
        )
    };
    Some(Finding::new(Tone::Plain, text))
}

/// Beaten rules that are named where there are more.
const NAMED: usize = 6;

/// A learned policy against each rule other than the baseline, and each learned one before it, by mean FCT.
fn rules(name: &str, versus: &[&Versus]) -> Vec<Finding> {
    let others = versus.iter().filter(|v| v.against != BASELINE);
    by_metric(name, Metric::MeanFct, others.copied())
}

/// A learned policy against each rule, DT included, and each learned one before it, by the metric that it was
/// trained for, where that is another than mean FCT.
fn trained_for(name: &str, training: Option<&Training>, versus: &[&Versus]) -> Vec<Finding> {
    match training.map(Training::metric) {
        None | Some(Metric::MeanFct) => Vec::new(),
        Some(metric) => by_metric(name, metric, versus.iter().copied()),
    }
}

/// All others are named that are not beaten, and of the beaten ones the strongest.
fn by_metric<'a>(
    name: &str,
    metric: Metric,
    versus: impl Iterator<Item = &'a Versus>,
) -> Vec<Finding> {
    let ratio = |versus: &Versus| match metric {
        Metric::MeanFct => Some(versus.ratio),
        _ => versus.objectives.of_metric(metric),
    };
    let others: Vec<Against> = versus
        .filter_map(|versus| {
            Some(Against {
                name,
                other: &versus.against,
                metric,
                ratio: ratio(versus)?,
            })
        })
        .collect();
    let beaten = others.iter().filter(|other| other.ratio.is_below_one());
    let mut beaten: Vec<&Against> = beaten.collect();
    beaten.sort_by(|a, b| b.ratio.mean.total_cmp(&a.ratio.mean));
    let (strongest, rest) = beaten.split_at(beaten.len().min(NAMED));
    let is_strong = |other: &Against| strongest.iter().any(|s| s.other == other.other);
    let named = others
        .iter()
        .filter(|other| !other.ratio.is_below_one() || is_strong(other));
    let mut findings: Vec<Finding> = named.map(Against::finding).collect();
    if let (Some(closest), Some(farthest)) = (rest.first(), rest.last()) {
        let (better, _) = directions(metric);
        let text = format!(
            "{name} beats {} more: {} {} to {} {better}.",
            rest.len(),
            noun(metric),
            format::change(closest.shown().mean),
            format::change(farthest.shown().mean)
        );
        findings.push(Finding::new(Tone::Wins, text));
    }
    findings
}

fn noun(metric: Metric) -> &'static str {
    match metric {
        Metric::MeanFct => "mean FCT",
        Metric::Loss => "lost packets per delivered one",
        Metric::Goodput => "goodput",
        Metric::QueueingDelay => "p99 queueing delay",
        Metric::PortSlowdownVariance => "variance of port slowdowns",
        Metric::MeanSlowdown => "mean slowdown",
        Metric::IncastAndPauses => "in-cast slowdown",
        Metric::SlowdownTails => "tails of slowdown",
    }
}

/// What values of a metric are where they are better, and where they are worse.
fn directions(metric: Metric) -> (&'static str, &'static str) {
    match metric.higher_is_better() {
        true => ("higher", "lower"),
        false => ("lower", "higher"),
    }
}

/// A learned policy and another one, by one metric.
struct Against<'a> {
    name: &'a str,
    other: &'a str,
    metric: Metric,
    /// Below 1 where the learned policy is better.
    ratio: Interval,
}

impl Against<'_> {
    /// The ratio of the metric itself.
    fn shown(&self) -> Interval {
        match self.metric.higher_is_better() {
            true => self.ratio.inverse(),
            false => self.ratio,
        }
    }

    fn finding(&self) -> Finding {
        let (name, other, noun) = (self.name, short_name(self.other), noun(self.metric));
        let (better, worse) = directions(self.metric);
        let shown = self.shown();
        let change = format::change(shown.mean);
        let interval = format::interval(Some(&shown));
        let tone = tone_of(&self.ratio);
        let text = match tone {
            Tone::Wins => {
                format!("{name} beats {other}: {noun} {change} {better} (ratio {interval}).")
            }
            Tone::Loses => {
                format!("{name} loses to {other}: {noun} {change} {worse} (ratio {interval}).")
            }
            _ => format!("{name} cannot be told apart from {other}: {noun} ratio {interval}."),
        };
        Finding::new(tone, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic;

    fn texts(evaluation: &Evaluation) -> String {
        findings(evaluation)
            .into_iter()
            .map(|v| v.text + "\n")
            .collect()
    }

    #[test]
    fn learned_policies_are_named_after_their_files() {
        assert_eq!(short_name("ndt:runs/a/"), "a");
        assert_eq!(short_name("linear:checkpoints/mine.json"), "mine");
        assert_eq!(short_name("linear"), "linear");
        assert_eq!(short_name("dt:alpha=8"), "dt:alpha=8");
    }

    #[test]
    fn a_policy_that_loses_is_said_to_lose() {
        let text = texts(&synthetic::evaluation(&[
            ("ndt:runs/a/", &[12.0, 24.0, 30.0]),
            ("cs", &[11.0, 20.0, 29.0]),
            ("dt", &[10.0, 20.0, 25.0]),
            ("unlimited", &[5.0, 10.0, 20.0]),
        ]));
        assert!(
            text.contains("a loses to DT (α = 1): its mean FCT is 20.0\u{a0}% higher"),
            "{text}"
        );
        assert!(
            text.contains("It wins 0 traces, ties 0 and loses 3"),
            "{text}"
        );
        assert!(text.contains("a loses to cs"), "{text}");
        assert!(text.contains("captures nothing"), "{text}");
        assert!(text.contains("In the tail a is worse"), "{text}");
    }

    #[test]
    fn a_policy_that_wins_is_said_to_win() {
        let text = texts(&synthetic::typical(0.8));
        assert!(text.contains("ndt-fct beats DT (α = 1)"), "{text}");
        assert!(text.contains("ndt-fct beats st"), "{text}");
    }

    #[test]
    fn a_second_learned_policy_is_compared_with_the_first() {
        let text = texts(&synthetic::evaluation(&[
            ("ndt:runs/a", &[10.0, 20.0]),
            ("ndt:runs/b", &[9.0, 18.0]),
            ("dt", &[11.0, 22.0]),
            ("unlimited", &[5.0, 10.0]),
        ]));
        assert!(
            text.contains("b beats a: mean FCT 10.0\u{a0}% lower"),
            "{text}"
        );
        assert!(!text.contains("a loses to b"), "{text}");
    }

    #[test]
    fn what_was_trained_for_another_objective_is_judged_by_it_first() {
        let judged = |objective: &str| {
            let means: &[(&str, &[f64])] = &[
                ("ndt:a", &[10.0, 20.0]),
                ("cs", &[9.0, 18.0]),
                ("dt", &[20.0, 40.0]),
                ("unlimited", &[5.0, 10.0]),
            ];
            let mut evaluation = synthetic::evaluation(means);
            let training = Training::new("a task".to_owned(), 1, objective);
            evaluation.policies[0].entry.training = Some(training);
            texts(&evaluation)
        };
        let fairness = judged("fct=0.5,fairness=1");
        let lead = "a loses to cs: variance of port slowdowns 11.1\u{a0}% higher (ratio 1.111 [1.111–1.111]).\n\
                    a beats dt: variance of port slowdowns 50.0\u{a0}% lower (ratio 0.500 [0.500–0.500]).\n";
        assert!(fairness.starts_with(lead), "{fairness}");
        assert!(
            fairness.contains("a loses to cs: mean FCT 11.1"),
            "{fairness}"
        );
        // Goodputs of 990 and 980 Mbit/s against 980 and 960.
        let goodput = "a beats dt: goodput 1.6\u{a0}% higher (ratio 1.016 [1.010–1.021]).";
        assert!(
            judged("throughput").contains(goodput),
            "{}",
            judged("throughput")
        );
        assert!(!judged("fct").contains("goodput"));
    }

    #[test]
    fn of_many_beaten_rules_the_strongest_are_named_and_all_that_win() {
        let rules: Vec<String> = (1..=9)
            .map(|alpha| format!("dt:alpha={}", 10 * alpha))
            .collect();
        // 10.2, 10.4, ... for the learned policy's 10, and one that is better.
        let values: Vec<[f64; 2]> = (1..=9)
            .map(|k| [10.0 + 0.2 * f64::from(k), 20.0 + 0.4 * f64::from(k)])
            .collect();
        let mut means: Vec<(&str, &[f64])> = vec![("ndt:a", &[10.0, 20.0]), ("cs", &[9.0, 18.0])];
        means.extend(
            rules
                .iter()
                .zip(&values)
                .map(|(rule, own)| (rule.as_str(), &own[..])),
        );
        means.push(("dt", &[15.0, 30.0]));
        means.push(("unlimited", &[5.0, 10.0]));
        let text = texts(&synthetic::evaluation(&means));
        assert!(text.contains("a loses to cs"), "{text}");
        assert!(text.contains("a beats dt:alpha=10:") && text.contains("a beats dt:alpha=60:"));
        assert!(!text.contains("dt:alpha=70"), "{text}");
        assert!(
            text.contains("a beats 3 more: mean FCT 12.3\u{a0}% to 15.3\u{a0}% lower."),
            "{text}"
        );
    }

    #[test]
    fn the_seeds_of_a_training_speak_as_one() {
        let means: &[(&str, &[f64])] = &[
            ("ndt:a", &[8.0, 16.0]),
            ("ndt:b", &[6.0, 12.0]),
            ("cs", &[14.0, 28.0]),
            ("dt", &[10.0, 20.0]),
            ("unlimited", &[5.0, 10.0]),
        ];
        let evaluation = synthetic::evaluation(means);
        let evaluation = synthetic::with_two_seeds(evaluation, "ndt, trained on x over fab");
        let text = texts(&evaluation);
        let lead = "ndt, trained on x beats DT (α = 1): the mean over 2 seeds has 0.700 [0.700–0.700] of its mean FCT, the best seed 0.600 and the worst 0.800.";
        assert!(text.contains(lead), "{text}");
        assert!(
            text.contains("ndt, trained on x beats cs: mean FCT 50.0\u{a0}% lower"),
            "{text}"
        );
        assert!(
            !text.contains("a beats") && !text.contains("b beats"),
            "{text}"
        );
    }

    #[test]
    fn chance_is_not_called_a_win() {
        let evaluation = synthetic::evaluation(&[
            ("cs", &[9.0, 22.0]),
            ("dt", &[10.0, 20.0]),
            ("unlimited", &[5.0, 10.0]),
        ]);
        let findings = findings(&evaluation);
        assert_eq!(
            findings.len(),
            1,
            "without a learned policy the rules are judged"
        );
        assert_eq!(findings[0].tone, Tone::Open);
        assert!(findings[0].text.contains("cs cannot be told apart from DT"));
    }

    #[test]
    fn failures_come_first() {
        let evaluation = synthetic::evaluation(&[
            ("ndt:a", &[9.0, f64::NAN]),
            ("dt", &[10.0, 20.0]),
            ("unlimited", &[5.0, 10.0]),
        ]);
        let first = findings(&evaluation).remove(0);
        assert_eq!(first.tone, Tone::Warning);
        assert!(
            first.text.contains("a failed 1 of 2 traces"),
            "{}",
            first.text
        );
    }
}
