//! Short names of policies for tables, legends and sentences.

use std::collections::BTreeSet;

use bufgym_sim::switch::PolicySpec;
use bufgym_util::input::excerpt;

use crate::data::{Entry, PolicySummary, Role};
use crate::entrant::Entrant;
use crate::findings::short_name;

/// Largest number of characters of a given label.
const LONGEST: usize = 40;

/// Largest number of characters of a policy string that serves as its own label.
const SHORT: usize = 24;

/// A label that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LabelError {
    /// The label before the `=` is empty.
    #[error(
        "policy '{}': the label before `=` is empty; write NAME=POLICY, as in 'my rule=dt:alpha=8'",
        excerpt(.0)
    )]
    Empty(String),
    /// The label has too many characters, or control characters.
    #[error("label '{}': a label has at most {LONGEST} characters, all of them visible", excerpt(.0))]
    Form(String),
    /// Two policies have the same label.
    #[error("label '{label}' is that of {first} and of {second}; give each policy its own label")]
    Repeated {
        /// The label.
        label: String,
        /// The first policy with it.
        first: String,
        /// The second policy with it.
        second: String,
    },
    /// One policy has two labels.
    #[error("policy {policy} has the labels '{first}' and '{second}'; give it one label")]
    Several {
        /// The policy.
        policy: String,
        /// The first label.
        first: String,
        /// The second label.
        second: String,
    },
}

/// Splits `NAME=POLICY` into the label and the policy string. A text has no label if there is a `:` or
/// a `+` before its first `=`, as in `dt:alpha=8`.
///
/// # Errors
/// Fails if the label is empty, has more than 40 characters, or has control characters.
pub fn split(text: &str) -> Result<(Option<&str>, &str), LabelError> {
    let parts = text.split_once('=');
    let Some((label, policy)) = parts.filter(|(label, _)| !label.contains([':', '+'])) else {
        return Ok((None, text));
    };
    let label = label.trim();
    if label.is_empty() {
        return Err(LabelError::Empty(text.to_owned()));
    }
    if label.chars().count() > LONGEST || label.contains(char::is_control) {
        return Err(LabelError::Form(label.to_owned()));
    }
    Ok((Some(label), policy.trim()))
}

/// Checks the given labels of an evaluation, which includes DT (α = 1) and the unlimited buffer.
///
/// # Errors
/// Fails if two policies have the same label, or a policy has two.
pub fn check(entrants: &[Entrant]) -> Result<(), LabelError> {
    let fixed = [Entrant::baseline(), Entrant::unlimited()];
    let entries: Vec<Entry> = entrants.iter().chain(&fixed).map(Entrant::entry).collect();
    for (place, second) in entries.iter().enumerate() {
        for first in &entries[..place] {
            let given = [first, second].map(|entry| !entry.label.is_empty());
            if first.policy != second.policy {
                if given.contains(&true) && proposed(first) == proposed(second) {
                    return Err(LabelError::Repeated {
                        label: proposed(first),
                        first: first.policy.clone(),
                        second: second.policy.clone(),
                    });
                }
            } else if given == [true, true] && first.label != second.label {
                return Err(LabelError::Several {
                    policy: first.policy.clone(),
                    first: first.label.clone(),
                    second: second.label.clone(),
                });
            }
        }
    }
    Ok(())
}

/// Completes the labels of an evaluation: every policy has one, and no two are equal. Given labels stay.
pub(crate) fn fill(entries: &mut [Entry]) {
    let mut order: Vec<&mut Entry> = entries.iter_mut().collect();
    order.sort_by_key(|entry| {
        let is_fixed = matches!(entry.role, Role::Baseline | Role::Reference);
        (entry.label.is_empty(), !is_fixed)
    });
    let mut taken = BTreeSet::new();
    for entry in order {
        let label = proposed(entry);
        let mut free = (1..).map(|number| numbered(&label, number));
        let free = free.find(|label| taken.insert(label.clone()));
        entry.label = free.unwrap_or(label);
    }
}

/// Returns the label of the policy with this number, counted from 1, among several with the same label.
pub fn numbered(label: &str, number: usize) -> String {
    match number {
        1 => label.to_owned(),
        _ => format!("{label} ({number})"),
    }
}

/// Returns the task of a training with an abbreviated heuristic.
pub(crate) fn of_task(task: &str) -> String {
    match task.split_once(" over ") {
        Some((learned, heuristic)) => format!("{learned} on top of {}", of_rule(heuristic, false)),
        None => task.to_owned(),
    }
}

/// Returns the label of a policy, or of the seeds of a training taken together.
pub(crate) fn of_policy_or_task(policies: &[PolicySummary], name: &str) -> String {
    match policies.iter().find(|policy| policy.entry.policy == name) {
        Some(policy) => policy.entry.label().to_owned(),
        None => of_task(name),
    }
}

/// Returns the given label, or the automatic one if there is none.
fn proposed(entry: &Entry) -> String {
    match entry.role {
        _ if !entry.label.is_empty() => entry.label.clone(),
        Role::Learned => short_name(&entry.policy).to_owned(),
        role => of_rule(
            &entry.policy,
            role == Role::Heuristic && !entry.origin.is_empty(),
        ),
    }
}

fn of_rule(policy: &str, is_tuned: bool) -> String {
    let Ok(spec) = policy.parse::<PolicySpec>() else {
        return policy.to_owned();
    };
    match spec.label() {
        label if label != policy => label,
        _ if is_tuned => format!("{} tuned", spec.names()),
        label if label.chars().count() <= SHORT => label,
        _ => format!("{} …", spec.names()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: &str = "fab:alpha=16.4,alpha_short=942,short_bytes=14673,idle_us=39.9";

    fn rule(policy: &str) -> Entrant {
        Entrant::rule(policy.parse().unwrap())
    }

    fn labels(entrants: &[Entrant]) -> Vec<String> {
        let mut entries: Vec<Entry> = entrants.iter().map(Entrant::entry).collect();
        fill(&mut entries);
        entries.into_iter().map(|entry| entry.label).collect()
    }

    fn learned(policy: &str) -> Entrant {
        Entrant::own(policy, "", || unreachable!("no run"))
    }

    #[test]
    fn a_text_is_split_at_the_first_sign_unless_it_has_parameters() {
        assert_eq!(
            split("my rule = dt:alpha=8"),
            Ok((Some("my rule"), "dt:alpha=8"))
        );
        for text in ["dt", "dt:alpha=8", "dt+red:max_p=0.07", "fab+front"] {
            assert_eq!(split(text), Ok((None, text)));
        }
        assert_eq!(split(" =dt"), Err(LabelError::Empty(" =dt".to_owned())));
        let longest = "é".repeat(40);
        assert_eq!(split(&format!("{longest}=dt")), Ok((Some(&*longest), "dt")));
        for label in [format!("{longest}é"), "a\nb".to_owned()] {
            assert_eq!(split(&format!("{label}=dt")), Err(LabelError::Form(label)));
        }
    }

    #[test]
    fn every_policy_has_a_short_label() {
        let front = "fab:alpha_short=2048,short_bytes=10000,idle_us=10000+early:from=front";
        let entrants = [
            learned("ndt:runs/a/"),
            rule(front),
            Entrant::tuned("dt:alpha=2+red:max_p=0.07".parse().unwrap()),
            rule("dt:alpha=8"),
            rule(LONG),
            rule("dt"),
            rule("edt").labelled("mine"),
        ];
        assert_eq!(
            labels(&entrants),
            [
                "a",
                "fab+front",
                "dt+red tuned",
                "dt:alpha=8",
                "fab …",
                "dt",
                "mine"
            ]
        );
    }

    #[test]
    fn equal_labels_are_numbered_and_given_ones_stay() {
        let longer = format!("{LONG}+early");
        let entrants = [
            learned("ndt:a/best"),
            learned("ndt:b/best"),
            learned("ndt:c/best"),
            learned("ndt:dt"),
            rule(LONG),
            rule(&longer).labelled("fab …"),
            rule("dt"),
        ];
        assert_eq!(
            labels(&entrants),
            [
                "best",
                "best (2)",
                "best (3)",
                "dt (2)",
                "fab … (2)",
                "fab …",
                "dt"
            ]
        );
    }

    #[test]
    fn a_given_label_names_one_policy() {
        let repeated = |label: &str, first: &str, second: &str| {
            Err(LabelError::Repeated {
                label: label.to_owned(),
                first: first.to_owned(),
                second: second.to_owned(),
            })
        };
        let two = |first: &str, second: &str| {
            check(&[rule("cs").labelled(first), rule("st").labelled(second)])
        };
        assert_eq!(two("a", "b"), Ok(()));
        assert_eq!(two("a", "a"), repeated("a", "cs", "st"));
        assert_eq!(two("a", "cs"), Ok(()), "no policy has this label");
        assert_eq!(
            two("a", "unlimited"),
            repeated("unlimited", "st", "unlimited")
        );
        assert_eq!(
            check(&[rule("cs"), rule("st").labelled("cs")]),
            repeated("cs", "cs", "st")
        );
        assert!(matches!(
            check(&[rule("cs").labelled("a"), rule("cs").labelled("b")]),
            Err(LabelError::Several { .. })
        ));
        assert_eq!(check(&[rule(LONG), rule("cs"), rule("cs")]), Ok(()));
    }

    #[test]
    fn the_heuristic_of_a_task_is_short() {
        let task = format!("ndt, trained on x for fct over {LONG}");
        assert_eq!(of_task(&task), "ndt, trained on x for fct on top of fab …");
        assert_eq!(
            of_task("ndt, trained on x for fct"),
            "ndt, trained on x for fct"
        );
    }
}
