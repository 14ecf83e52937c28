//! Writes profiles, and restores the old values.
//!
//! For every decided level the agent makes a profile: a copy of the queues' profile with another
//! `dynamic_th`. A decision points the queues of a port at one of these profiles. The agent never changes
//! profiles that the operator made.

use std::collections::{BTreeMap, BTreeSet};

use redis::Cmd;

use crate::databases::{cmd, hset};
use crate::journal::{JOURNAL, Journal, MADE};
use crate::layout::{Queues, config};
use crate::schema::{self, Reference, key};
use crate::{Database, Databases, Error, Layout};

/// Names of the agent's profiles begin with this; then come `dynamic_th` and the old profile.
const OWN: &str = "bufgym";

/// Number of attempts of a transaction while somebody else changes its keys.
const ATTEMPTS: usize = 20;

/// Returns an unused name for the agent's copy of an old profile: `bufgym_3_q_lossy_profile` for α = 2^3, or
/// with another number, `bufgym2_3_q_lossy_profile`.
fn own_name(threshold: i8, old: &str, taken: &BTreeSet<String>) -> String {
    let name = |number: usize| match number {
        1 => format!("{OWN}_{threshold}_{old}"),
        _ => format!("{OWN}{number}_{threshold}_{old}"),
    };
    (1..)
        .map(name)
        .find(|name| !taken.contains(name))
        .expect("names are finite")
}

/// Returns true if the name looks like one of the agent's profiles. The profile need not be the agent's.
fn is_named_like_own(name: &str) -> bool {
    let parts = name
        .strip_prefix(OWN)
        .and_then(|rest| rest.split_once('_'))
        .and_then(|(number, rest)| Some((number, rest.split_once('_')?)));
    let Some((number, (threshold, old))) = parts else {
        return false;
    };
    let threshold: Option<i8> = threshold.parse().ok();
    number.chars().all(|c| c.is_ascii_digit())
        && threshold.is_some_and(|threshold| schema::DYNAMIC_TH_RANGE.contains(&threshold))
        && !old.is_empty()
}

/// A write to a key of CONFIG_DB.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The key.
    pub key: String,
    /// The fields with their values.
    pub fields: Vec<(String, String)>,
}

impl Write {
    /// Returns the name and `dynamic_th` of the profile that the write makes; `None` if it gives a queue a
    /// profile.
    fn profile(&self) -> Option<(&str, &str)> {
        let name = self.key.strip_prefix(schema::BUFFER_PROFILE)?;
        let name = name.strip_prefix('|')?;
        let threshold = self
            .fields
            .iter()
            .find(|(field, _)| field == schema::DYNAMIC_TH);
        Some((name, threshold.map_or("", |(_, value)| value)))
    }
}

impl std::fmt::Display for Write {
    /// Formats the command of Redis.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "HSET {}", self.key)?;
        self.fields
            .iter()
            .try_for_each(|(field, value)| write!(f, " {field} {value}"))
    }
}

/// Writes decisions into CONFIG_DB.
#[derive(Clone, Debug, Default)]
pub struct Writer {
    /// Names of profiles that belong to somebody else.
    taken: BTreeSet<String>,
    /// The changes that this writer has made.
    journal: Journal,
    /// The current reference of every queue key that points to one of the agent's profiles.
    set: BTreeMap<String, Reference>,
    /// True if a transaction was sent and the connection was lost before its answer.
    in_doubt: bool,
}

impl Writer {
    /// Builds a writer that has changed nothing yet.
    ///
    /// # Errors
    /// Returns connection errors.
    pub fn new(databases: &mut Databases) -> Result<Writer, Error> {
        let taken = databases.names(Database::Config, schema::BUFFER_PROFILE)?;
        Ok(Writer {
            taken: taken.into_iter().collect(),
            ..Writer::default()
        })
    }

    /// Returns the writes that give the queues `threshold`; none for queues that have it.
    pub fn plan(&self, layout: &Layout, decided: &[(usize, i8)]) -> Vec<Write> {
        let mut planned = BTreeSet::new();
        let (mut profiles, mut queues) = (Vec::new(), Vec::new());
        for &(port, threshold) in decided {
            for group in &layout.ports[port].queues {
                let own = own_name(threshold, &group.profile.name, &self.taken);
                if self.set.get(&group.key).is_some_and(|set| set.name == own) {
                    continue;
                }
                if !self.journal.has_made(&own) && planned.insert(own.clone()) {
                    let copied = &layout.profiles[&group.profile.name];
                    profiles.push(copy(&own, copied, threshold));
                }
                queues.push(Write {
                    key: group.key.clone(),
                    fields: vec![(schema::PROFILE.to_owned(), group.profile.to(own).text())],
                });
            }
        }
        profiles.append(&mut queues);
        profiles
    }

    /// Writes all or nothing. In a dry run, `real` is false, and the writes are only remembered.
    ///
    /// # Errors
    /// Returns the errors of [`verify`](Writer::verify), and [`Error::Changed`] if somebody else has made a
    /// profile of the same name meanwhile.
    pub fn write(
        &mut self,
        databases: &mut Databases,
        layout: &Layout,
        writes: &[Write],
        real: bool,
    ) -> Result<(), Error> {
        if writes.is_empty() {
            return Ok(());
        }
        let mut journal = self.journal.clone();
        let groups = layout.ports.iter().flat_map(|port| &port.queues);
        let queues = groups.map(|group| (group.key.clone(), group.profile.clone()));
        journal.queues.extend(queues);
        let made = writes.iter().filter_map(Write::profile);
        let made = made.map(|(name, threshold)| (name.to_owned(), threshold.to_owned()));
        journal.made.extend(made);
        let written = match real {
            true => self.commit(databases, layout, writes, &journal),
            false => Ok(()),
        };
        self.in_doubt = written.as_ref().is_err_and(Error::is_disconnected);
        written?;
        self.journal = journal;
        for write in writes.iter().filter(|write| write.profile().is_none()) {
            let reference = Reference::parse(&write.fields[0].1);
            self.set.insert(write.key.clone(), reference);
        }
        Ok(())
    }

    /// Writes the journal, profiles and queues in one transaction, if nobody else changes them.
    fn commit(
        &self,
        databases: &mut Databases,
        layout: &Layout,
        writes: &[Write],
        journal: &Journal,
    ) -> Result<(), Error> {
        let keys: Vec<String> = writes.iter().map(|write| write.key.clone()).collect();
        for _ in 0..ATTEMPTS {
            databases.watch(&keys)?;
            self.verify(databases, layout)?;
            for write in writes.iter().filter(|write| write.profile().is_some()) {
                if !databases.hash(Database::Config, &write.key)?.is_empty() {
                    return Err(Error::Changed {
                        key: config(&write.key),
                        found: "there".to_owned(),
                        expected: "none of this name".to_owned(),
                    });
                }
            }
            let commands = writes
                .iter()
                .map(|write| hset(&write.key, &write.fields))
                .collect();
            let doing = "cannot write profiles";
            if databases.commit(doing, journal.commands(), commands)? {
                return Ok(());
            }
        }
        Err(restless())
    }

    /// Checks that every queue still has the profile that the agent, or before it the operator, has set, and
    /// that the agent's profiles have their `dynamic_th`.
    ///
    /// # Errors
    /// Returns [`Error::Changed`] for the first mismatch, and connection errors.
    pub fn verify(&self, databases: &mut Databases, layout: &Layout) -> Result<(), Error> {
        let groups: Vec<&Queues> = layout.ports.iter().flat_map(|port| &port.queues).collect();
        let queue = |group: &&Queues| {
            let expected = self.set.get(&group.key).unwrap_or(&group.profile).text();
            (group.key.clone(), schema::PROFILE, expected)
        };
        let profile = |(name, threshold): (&String, &String)| {
            let key = key(schema::BUFFER_PROFILE, name);
            (key, schema::DYNAMIC_TH, threshold.clone())
        };
        let queues = groups.iter().map(queue);
        let expected: Vec<_> = queues
            .chain(self.journal.made.iter().map(profile))
            .collect();
        let fields = expected
            .iter()
            .map(|(key, field, _)| (key.as_str(), *field));
        let found = read(databases, fields)?;
        for ((key, _, expected), found) in expected.into_iter().zip(found) {
            if found.as_deref() != Some(expected.as_str()) {
                return Err(Error::Changed {
                    key: config(&key),
                    found: found.unwrap_or_else(|| "gone".to_owned()),
                    expected,
                });
            }
        }
        Ok(())
    }

    /// Returns profiles that do not belong to the agent, although their names look like the agent's.
    pub fn namesakes(&self) -> Vec<&str> {
        let taken = self.taken.iter().map(String::as_str);
        taken.filter(|name| is_named_like_own(name)).collect()
    }

    /// Returns true if it is unknown whether the last write took effect. The journal in STATE_DB shows it.
    pub fn is_in_doubt(&self) -> bool {
        self.in_doubt
    }

    /// Returns the changes that this writer has made.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }
}

/// Reads fields of keys of CONFIG_DB.
fn read<'a>(
    databases: &mut Databases,
    fields: impl Iterator<Item = (&'a str, &'a str)>,
) -> Result<Vec<Option<String>>, Error> {
    let mut pipeline = redis::pipe();
    for (key, field) in fields {
        pipeline.cmd("HGET").arg(key).arg(field);
    }
    databases.send(Database::Config, "cannot read profiles", &pipeline)
}

/// Builds a profile with the fields of another one and its own `dynamic_th`.
fn copy(name: &str, fields: &BTreeMap<String, String>, threshold: i8) -> Write {
    let mut fields = fields.clone();
    fields.insert(schema::DYNAMIC_TH.to_owned(), threshold.to_string());
    Write {
        key: key(schema::BUFFER_PROFILE, name),
        fields: fields.into_iter().collect(),
    }
}

/// Builds the error for the case that somebody else writes the same keys again and again.
fn restless() -> Error {
    Error::Changed {
        key: config(schema::BUFFER_QUEUE),
        found: "written all the time".to_owned(),
        expected: "the agent's profiles".to_owned(),
    }
}

/// Counts of restored items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Queue keys that have their old profile again.
    pub queues: usize,
    /// Profiles of the agent that were removed.
    pub profiles: usize,
}

/// Restores what a killed agent has recorded in the journal; see [`put_back`].
///
/// # Errors
/// Returns the errors of [`put_back`].
pub fn restore(databases: &mut Databases) -> Result<Restored, Error> {
    let journal = Journal::read(databases)?;
    put_back(databases, &journal)
}

/// Gives every queue of a journal its old profile back, and removes the profiles that the agent has made.
/// Queues that somebody else has given another profile stay as they are. An agent's profile that somebody
/// else has given to another queue stays as well, and belongs to them from then on.
///
/// # Errors
/// Returns [`Error::Restore`] if an old profile no longer exists: that queue and the agent's profile stay,
/// and all others have been restored. Also returns connection errors.
pub fn put_back(databases: &mut Databases, journal: &Journal) -> Result<Restored, Error> {
    if journal.is_empty() {
        return Ok(Restored::default());
    }
    for _ in 0..ATTEMPTS {
        let plan = Plan::of(databases, journal)?;
        let mut state = vec![cmd(&["DEL", JOURNAL]), cmd(&["DEL", MADE])];
        state.append(&mut plan.left.commands());
        if !databases.commit("cannot put profiles back", state, plan.commands)? {
            continue;
        }
        return match plan.lost {
            Some(error) => Err(error),
            None => Ok(plan.restored),
        };
    }
    Err(restless())
}

/// A plan to restore the old values.
struct Plan {
    commands: Vec<Cmd>,
    restored: Restored,
    /// The first queue that cannot have its old profile.
    lost: Option<Error>,
    /// The entries that stay in the journal, for the next attempt.
    left: Journal,
}

impl Plan {
    /// Reads the current state, and watches it.
    fn of(databases: &mut Databases, journal: &Journal) -> Result<Plan, Error> {
        let queues = databases.names(Database::Config, schema::BUFFER_QUEUE)?;
        let queues: Vec<String> = queues
            .iter()
            .map(|name| key(schema::BUFFER_QUEUE, name))
            .collect();
        let old = journal.queues.values().map(|old| &old.name);
        let profiles: BTreeSet<&String> = old.chain(journal.made.keys()).collect();
        let profiles = profiles.into_iter();
        let profiles: Vec<String> = profiles
            .map(|name| key(schema::BUFFER_PROFILE, name))
            .collect();
        databases.watch(&[queues.clone(), profiles].concat())?;
        let fields = queues.iter().map(|key| (key.as_str(), schema::PROFILE));
        let found = read(databases, fields)?;
        let profiles = databases.names(Database::Config, schema::BUFFER_PROFILE)?;
        let profiles: BTreeSet<String> = profiles.into_iter().collect();
        let mut plan = Plan {
            commands: Vec::new(),
            restored: Restored::default(),
            lost: None,
            left: Journal::default(),
        };
        let mut in_use = BTreeSet::new();
        for (key, found) in queues.into_iter().zip(found) {
            let now = Reference::parse(&found.unwrap_or_default()).name;
            let Some((own, threshold)) = journal.made.get_key_value(&now) else {
                continue;
            };
            match journal.queues.get(&key) {
                Some(old) if profiles.contains(&old.name) => {
                    plan.restored.queues += 1;
                    let command = cmd(&["HSET", &key, schema::PROFILE, &old.text()]);
                    plan.commands.push(command);
                }
                Some(old) => {
                    plan.lost.get_or_insert(Error::Restore {
                        key: config(&key),
                        old: old.name.clone(),
                        problem: "there is no such profile; make it, or give the queue another one"
                            .to_owned(),
                    });
                    plan.left.queues.insert(key, old.clone());
                    plan.left.made.insert(own.clone(), threshold.clone());
                    in_use.insert(own);
                }
                None => {
                    in_use.insert(own);
                }
            }
        }
        for name in journal.made.keys() {
            if profiles.contains(name) && !in_use.contains(name) {
                plan.restored.profiles += 1;
                let command = cmd(&["DEL", &key(schema::BUFFER_PROFILE, name)]);
                plan.commands.push(command);
            }
        }
        Ok(plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::Port;

    fn layout() -> Layout {
        let group = |port: &str, indices: &str, profile: &str| Queues {
            key: format!("BUFFER_QUEUE|{port}|{indices}"),
            profile: Reference::parse(profile),
            threshold: 3,
            oids: Vec::new(),
        };
        let port = |name: &str, queues: Vec<Queues>| Port {
            name: name.to_owned(),
            rate_bps: 1_000_000_000,
            oid: String::new(),
            queues,
        };
        let profile = [
            ("pool", "egress_lossy_pool"),
            ("size", "1518"),
            ("dynamic_th", "3"),
        ];
        let profile: BTreeMap<String, String> = profile
            .map(|(field, value)| (field.to_owned(), value.to_owned()))
            .into();
        Layout {
            pool: "egress_lossy_pool".to_owned(),
            buffer_bytes: 1_000_000,
            present: 2,
            idle: 0,
            ports: vec![
                port(
                    "Ethernet0",
                    vec![
                        group("Ethernet0", "0-2", "lossy"),
                        group("Ethernet0", "5-6", "lossy"),
                    ],
                ),
                port(
                    "Ethernet4",
                    vec![group("Ethernet4", "0-2", "[BUFFER_PROFILE|lossy]")],
                ),
            ],
            profiles: [("lossy".to_owned(), profile)].into(),
        }
    }

    fn lines(writes: &[Write]) -> Vec<String> {
        writes.iter().map(Write::to_string).collect()
    }

    #[test]
    fn names_of_own_profiles_are_ones_that_nobody_has() {
        let mut taken = BTreeSet::new();
        for expected in ["bufgym_-2_lossy", "bufgym2_-2_lossy", "bufgym3_-2_lossy"] {
            let name = own_name(-2, "lossy", &taken);
            assert_eq!(name, expected);
            assert!(is_named_like_own(&name));
            taken.insert(name);
        }
        for other in [
            "q_lossy_profile",
            "bufgym_x_lossy",
            "bufgym_9_lossy",
            "bufgymx_3_lossy",
            "bufgym_3_",
            "bufgym_3",
        ] {
            assert!(!is_named_like_own(other), "{other}");
        }
    }

    #[test]
    fn a_profile_is_made_once_and_before_it_is_used() {
        let layout = layout();
        let writer = Writer::default();
        let writes = writer.plan(&layout, &[(0, -2), (1, -2)]);
        assert_eq!(
            lines(&writes),
            [
                "HSET BUFFER_PROFILE|bufgym_-2_lossy dynamic_th -2 pool egress_lossy_pool size 1518",
                "HSET BUFFER_QUEUE|Ethernet0|0-2 profile bufgym_-2_lossy",
                "HSET BUFFER_QUEUE|Ethernet0|5-6 profile bufgym_-2_lossy",
                "HSET BUFFER_QUEUE|Ethernet4|0-2 profile [BUFFER_PROFILE|bufgym_-2_lossy]",
            ]
        );
    }

    #[test]
    fn what_is_set_is_not_written_again() {
        let layout = layout();
        let mut writer = Writer::default();
        let note = |writer: &mut Writer, writes: &[Write]| {
            for write in writes {
                match write.profile() {
                    Some((name, threshold)) => {
                        let made = (name.to_owned(), threshold.to_owned());
                        writer.journal.made.extend([made]);
                    }
                    None => {
                        let set = Reference::parse(&write.fields[0].1);
                        writer.set.insert(write.key.clone(), set);
                    }
                }
            }
        };
        let writes = writer.plan(&layout, &[(0, 2), (1, 5)]);
        note(&mut writer, &writes);
        assert_eq!(writer.plan(&layout, &[(0, 2), (1, 5)]), []);
        let writes = writer.plan(&layout, &[(0, 2), (1, 2)]);
        assert_eq!(
            lines(&writes),
            ["HSET BUFFER_QUEUE|Ethernet4|0-2 profile [BUFFER_PROFILE|bufgym_2_lossy]"]
        );
        let mut writer = Writer::default();
        writer.taken.insert("bufgym_2_lossy".to_owned());
        assert_eq!(
            lines(&writer.plan(&layout, &[(1, 2)])),
            [
                "HSET BUFFER_PROFILE|bufgym2_2_lossy dynamic_th 2 pool egress_lossy_pool size 1518",
                "HSET BUFFER_QUEUE|Ethernet4|0-2 profile [BUFFER_PROFILE|bufgym2_2_lossy]"
            ]
        );
    }
}
