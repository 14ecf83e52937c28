//! The findings of an evaluation in sentences, derived from the numbers. They state losses as plainly as
//! wins.

use crate::data::{BASELINE, Evaluation, PolicySummary, Role, SeedGroup, Training, Versus};
use crate::entrant::LINEAR;
use crate::format;
use crate::metric::Metric;
use crate::stats::{Estimate, Tally};

/// The meaning of a finding for its policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// The policy is significantly better.
    Wins,
    /// The interval includes 1.
    Open,
    /// The policy is significantly worse.
    Loses,
    /// A fact that is neither good nor bad.
    Plain,
    /// Something is wrong with the evaluation itself.
    Warning,
}

/// One finding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The meaning for the policy.
    pub tone: Tone,
    /// A few sentences. Each has at most one number, with its interval.
    pub text: String,
}

impl Finding {
    fn new(tone: Tone, text: String) -> Finding {
        Finding { tone, text }
    }
}

fn tone_of(ratio: &Estimate) -> Tone {
    if ratio.is_below_one() {
        Tone::Wins
    } else if ratio.is_above_one() {
        Tone::Loses
    } else {
        Tone::Open
    }
}

/// Returns a short name of a policy: for learned policies, the last component of the folder or file; for
/// others, the policy string.
pub fn short_name(policy: &str) -> &str {
    let path = match policy.split_once(':') {
        Some((kind, folder)) if kind.starts_with("ndt") => folder.trim_end_matches('/'),
        Some((LINEAR, file)) => file.trim_end_matches(".json"),
        _ => return policy,
    };
    path.rsplit('/').next().unwrap_or(policy)
}

/// Returns all findings, the most important first: failed traces, then the learned policies (or, if there is
/// none, every rule) against DT (α = 1), then against each other rule and the learned policies before them. A
/// policy that was trained for another objective than mean FCT is compared by that objective's metric first.
/// The seeds of a training share one finding. If many rules are beaten, the strongest are named.
pub fn findings(evaluation: &Evaluation) -> Vec<Finding> {
    let mut findings = failures(evaluation);
    let learned: Vec<&PolicySummary> = evaluation.learned().collect();
    for group in &evaluation.seeds {
        findings.push(seeds_against_baseline(group));
        let against = Comparisons {
            evaluation,
            name: seeds_name(group),
            versus: group.versus.iter().collect(),
        };
        let mut members = learned.iter().map(|policy| &policy.entry);
        let member = members.find(|entry| group.policies.contains(&entry.policy));
        let training = member.and_then(|entry| entry.training.as_ref());
        findings.extend(against.trained_for(training));
        findings.extend(against.rules());
    }
    let alone = learned.iter().filter(|policy| {
        let mut groups = evaluation.seeds.iter();
        groups.all(|group| !group.policies.contains(&policy.entry.policy))
    });
    for policy in alone {
        let own = evaluation.versus.iter();
        let against = Comparisons {
            evaluation,
            name: policy.entry.label(),
            versus: own.filter(|v| v.policy == policy.entry.policy).collect(),
        };
        findings.extend(against.trained_for(policy.entry.training.as_ref()));
        findings.extend(against_baseline(policy));
        findings.extend(tail(policy));
        findings.extend(headroom(policy));
        findings.extend(against.rules());
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

/// Returns a common name for the seeds of a training: their task without the heuristic below.
fn seeds_name(group: &SeedGroup) -> &str {
    group.task.split(" over ").next().unwrap_or(&group.task)
}

/// Returns the result of a comparison as a verb.
fn verb(tone: Tone) -> &'static str {
    match tone {
        Tone::Wins => "beats",
        Tone::Loses => "loses to",
        _ => "cannot be told apart from",
    }
}

/// Describes a ratio in words.
fn times(ratio: &Estimate) -> String {
    format!(
        "{} times as high [{}]",
        format::ratio(Some(ratio.centre)),
        format::bounds(ratio)
    )
}

fn seeds_against_baseline(group: &SeedGroup) -> Finding {
    let ratio = &group.ratio_to_dt;
    let tone = tone_of(ratio);
    let text = format!(
        "{} {} DT (α = 1): its mean FCT over all seeds is {}. The best seed scores {}. The worst seed \
         scores {}.",
        seeds_name(group),
        verb(tone),
        times(ratio),
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
            "{} failed {} of {} traces: some flows did not finish. These traces count as lost for it. \
             The means of every policy leave them out.",
            policy.entry.label(),
            policy.failed,
            evaluation.traces,
        );
        Finding::new(Tone::Warning, text)
    };
    failing.map(finding).collect()
}

fn against_baseline(policy: &PolicySummary) -> Option<Finding> {
    let ratio = policy.ratio_to_dt.as_ref()?;
    let tone = tone_of(ratio);
    let text = format!(
        "{} {} DT (α = 1): its mean FCT is {}. {}",
        policy.entry.label(),
        verb(tone),
        times(ratio),
        tally_sentence(&policy.tally)
    );
    Some(Finding::new(tone, text))
}

/// Describes the share of traces won, as a sentence.
fn tally_sentence(tally: &Tally) -> String {
    match tally.share_won() {
        None => "All traces are ties.".to_owned(),
        Some(_) if tally.won == 0 => "It wins no trace.".to_owned(),
        share => format!(
            "It wins {} of the traces that are not ties.",
            format::percent(share)
        ),
    }
}

fn tail(policy: &PolicySummary) -> Option<Finding> {
    let ratio = policy.p99_ratio_to_dt.as_ref()?;
    let tone = tone_of(ratio);
    let verdict = match tone {
        Tone::Wins => "is better than",
        Tone::Loses => "is worse than",
        _ => verb(tone),
    };
    let text = format!(
        "In the tail {} {verdict} DT: its p99 FCT is {}.",
        policy.entry.label(),
        times(ratio)
    );
    Some(Finding::new(tone, text))
}

fn headroom(policy: &PolicySummary) -> Option<Finding> {
    let share = policy.headroom?;
    let gain = match share {
        none if none <= 0.0 => "nothing of".to_owned(),
        part if part < 0.995 => format!("{} of", format::percent(Some(part))),
        whole => format!("{whole:.2} times"),
    };
    let text = format!(
        "{} gains {gain} what an unlimited buffer gains in mean FCT relative to DT.",
        policy.entry.label()
    );
    Some(Finding::new(Tone::Plain, text))
}

/// Number of beaten rules that are named if there are more.
const NAMED: usize = 6;

/// A learned policy with its comparisons with other policies.
struct Comparisons<'a> {
    evaluation: &'a Evaluation,
    name: &'a str,
    versus: Vec<&'a Versus>,
}

impl<'a> Comparisons<'a> {
    /// Compares with each rule other than the baseline, and each learned policy before it, by mean FCT.
    fn rules(&self) -> Vec<Finding> {
        let versus = self.versus.iter().copied();
        self.by_metric(Metric::MeanFct, versus.filter(|v| v.against != BASELINE))
    }

    /// Compares with each rule, DT included, and each learned policy before it, by the metric that it was
    /// trained for, if that is another than mean FCT.
    fn trained_for(&self, training: Option<&Training>) -> Vec<Finding> {
        match training.map(Training::metric) {
            None | Some(Metric::MeanFct) => Vec::new(),
            Some(metric) => self.by_metric(metric, self.versus.iter().copied()),
        }
    }

    /// Names all policies that are not beaten, and the strongest of the beaten ones.
    fn by_metric(&self, metric: Metric, versus: impl Iterator<Item = &'a Versus>) -> Vec<Finding> {
        let name = self.name;
        let others = versus.filter_map(|versus| {
            let ratio = match metric {
                Metric::MeanFct => Some(versus.ratio),
                _ => versus.objectives.of_metric(metric),
            };
            Some(Against {
                name,
                other: self.evaluation.label(&versus.against),
                metric,
                ratio: ratio?,
            })
        });
        let others: Vec<Against> = others.collect();
        let beaten = others.iter().filter(|other| other.ratio.is_below_one());
        let mut beaten: Vec<&Against> = beaten.collect();
        beaten.sort_by(|a, b| b.ratio.centre.total_cmp(&a.ratio.centre));
        let (strongest, rest) = beaten.split_at(beaten.len().min(NAMED));
        let is_strong = |other: &Against| strongest.iter().any(|s| s.other == other.other);
        let named = others
            .iter()
            .filter(|other| !other.ratio.is_below_one() || is_strong(other));
        let mut findings: Vec<Finding> = named.map(Against::finding).collect();
        let policies = match rest.len() {
            0 => return findings,
            1 => "1 more policy".to_owned(),
            count => format!("{count} more policies"),
        };
        let text = format!(
            "{name} beats {policies} by wider margins in {}.",
            noun(metric)
        );
        findings.push(Finding::new(Tone::Wins, text));
        findings
    }
}

fn noun(metric: Metric) -> &'static str {
    match metric {
        Metric::MeanFct => "mean FCT",
        Metric::Loss => "ratio of lost to delivered packets",
        Metric::Goodput => "goodput",
        Metric::QueueingDelay => "p99 queueing delay",
        Metric::PortSlowdownVariance => "variance of port slowdowns",
        Metric::MeanSlowdown => "mean slowdown",
        Metric::IncastAndPauses => "in-cast slowdown",
        Metric::SlowdownTails => "tail of slowdowns",
    }
}

/// A learned policy and another one, compared by one metric.
struct Against<'a> {
    name: &'a str,
    other: &'a str,
    metric: Metric,
    /// Ratio, below 1 if the learned policy is better.
    ratio: Estimate,
}

impl Against<'_> {
    /// Returns the ratio of the metric itself.
    fn shown(&self) -> Estimate {
        match self.metric.higher_is_better() {
            true => self.ratio.inverse(),
            false => self.ratio,
        }
    }

    fn finding(&self) -> Finding {
        let tone = tone_of(&self.ratio);
        let text = format!(
            "{} {} {}: its {} is {}.",
            self.name,
            verb(tone),
            self.other,
            noun(self.metric),
            times(&self.shown())
        );
        Finding::new(tone, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::synthetic::{self, typical};

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
            text.contains("a loses to DT (α = 1): its mean FCT is 1.200 times as high [1.200–1.200]. It wins no trace.\n"),
            "{text}"
        );
        assert!(text.contains("a loses to cs"), "{text}");
        assert!(
            text.contains("a gains nothing of what an unlimited buffer gains"),
            "{text}"
        );
        assert!(text.contains("In the tail a is worse"), "{text}");
    }

    #[test]
    fn a_policy_that_wins_is_said_to_win() {
        let text = texts(&typical(0.8));
        assert!(text.contains("ndt-fct beats DT (α = 1)"), "{text}");
        assert!(text.contains("ndt-fct beats st"), "{text}");
    }

    #[test]
    fn gains_are_relative_to_those_of_an_unlimited_buffer() {
        let text = |own: &[f64]| {
            texts(&synthetic::evaluation(&[
                ("ndt:runs/a", own),
                ("dt", &[10.0, 20.0]),
                ("unlimited", &[5.0, 10.0]),
            ]))
        };
        let twice = text(&[4.0, 8.0]);
        assert!(
            twice.contains("a gains 1.20 times what an unlimited buffer gains"),
            "{twice}"
        );
        let part = text(&[8.0, 16.0]);
        assert!(part.contains("a gains 40\u{a0}% of what an"), "{part}");
    }

    #[test]
    fn a_sentence_has_at_most_25_words() {
        for text in [typical(0.8), typical(1.3)].map(|evaluation| texts(&evaluation)) {
            let sentences = text.split(". ").flat_map(|text| text.split('\n'));
            for sentence in sentences {
                let words = sentence.split_whitespace().count();
                assert!(words <= 25, "{words} words: {sentence}");
            }
        }
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
            text.contains("b beats a: its mean FCT is 0.900 times as high [0.900–0.900]."),
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
        let lead = "a loses to cs: its variance of port slowdowns is 1.111 times as high [1.111–1.111].\n\
                    a beats dt: its variance of port slowdowns is 0.500 times as high [0.500–0.500].\n";
        assert!(fairness.starts_with(lead), "{fairness}");
        assert!(
            fairness.contains("a loses to cs: its mean FCT is 1.111 times"),
            "{fairness}"
        );
        // The goodputs are 990 and 980 Mbit/s against 980 and 960.
        let goodput = "a beats dt: its goodput is 1.016 times as high [1.010–1.021].";
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
        // The others have 10.2, 10.4, … against the learned policy's 10, and one is better.
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
            text.contains("a beats 3 more policies by wider margins in mean FCT."),
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
        let lead = "ndt, trained on x beats DT (α = 1): its mean FCT over all seeds is 0.700 times as high [0.700–0.700]. \
                    The best seed scores 0.600. The worst seed scores 0.800.";
        assert!(text.contains(lead), "{text}");
        assert!(
            text.contains("ndt, trained on x beats cs: its mean FCT is 0.500 times as high"),
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
