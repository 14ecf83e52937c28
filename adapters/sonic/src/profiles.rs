//! What the agent writes, and how the old values come back.
//!
//! For every level that is decided there is a profile of the agent, a copy of the one that the queues
//! had, with another `dynamic_th`; a decision points the queues of a port at one of them. Profiles that
//! the operator made are never changed. Before the first write, the old profile of every queue is
//! noted in a journal in STATE_DB. The names of the agent's profiles tell the old one too, so that a
//! configuration that was saved while the agent ran can be put right without the journal.

use std::collections::{BTreeMap, BTreeSet};

use redis::Pipeline;

use crate::databases::cmd;
use crate::layout::{Queues, config};
use crate::schema::{self, Reference, key};
use crate::{Database, Databases, Error, Layout};

/// STATE_DB: the old profile of every queue key that the agent has changed.
pub const JOURNAL: &str = "BUFGYM_SONIC_AGENT|OLD_PROFILES";

/// Names of the agent's profiles begin with this; then come `dynamic_th` and the old profile.
const OWN: &str = "bufgym_";

/// The agent's profile in the place of an old one: `bufgym_3_q_lossy_profile` for α = 2^3.
pub fn own_name(threshold: i8, old: &str) -> String {
    format!("{OWN}{threshold}_{old}")
}

/// Whether a profile is the agent's.
pub fn is_own(name: &str) -> bool {
    old_name(name).is_some()
}

/// The old profile in whose place the agent's is.
fn old_name(own: &str) -> Option<&str> {
    let (threshold, old) = own.strip_prefix(OWN)?.split_once('_')?;
    let threshold: i8 = threshold.parse().ok()?;
    (schema::DYNAMIC_TH_RANGE.contains(&threshold) && !old.is_empty()).then_some(old)
}

/// A field of CONFIG_DB to be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    /// The key.
    pub key: String,
    /// The fields with their values.
    pub fields: Vec<(String, String)>,
}

impl std::fmt::Display for Write {
    /// The command of Redis.
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
    /// The agent's profiles that are there.
    made: BTreeSet<String>,
    /// The reference that every queue key has now, where it is the agent's.
    set: BTreeMap<String, Reference>,
    journaled: bool,
}

impl Writer {
    /// What has to be written so that the queues have `threshold`; nothing where they have it.
    pub fn plan(&self, layout: &Layout, decided: &[(usize, i8)]) -> Vec<Write> {
        let mut planned = BTreeSet::new();
        let (mut profiles, mut queues) = (Vec::new(), Vec::new());
        for &(port, threshold) in decided {
            for group in &layout.ports[port].queues {
                let own = own_name(threshold, &group.profile.name);
                if self.set.get(&group.key).is_some_and(|set| set.name == own) {
                    continue;
                }
                if !self.made.contains(&own) && planned.insert(own.clone()) {
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

    /// Writes, all or nothing. `real` is false in a dry run: then it is only remembered.
    ///
    /// # Errors
    /// Those of the connection.
    pub fn write(
        &mut self,
        databases: &mut Databases,
        layout: &Layout,
        writes: &[Write],
        real: bool,
    ) -> Result<(), Error> {
        if real && !writes.is_empty() {
            self.journal(databases, layout)?;
            let mut pipeline = redis::pipe();
            pipeline.atomic();
            writes.iter().for_each(|write| set(&mut pipeline, write));
            let _: redis::Value =
                databases.send(Database::Config, "cannot write profiles", &pipeline)?;
        }
        for write in writes {
            match write.key.strip_prefix(schema::BUFFER_PROFILE) {
                Some(name) if name.starts_with('|') => {
                    self.made.insert(name[1..].to_owned());
                }
                _ => {
                    let reference = Reference::parse(&write.fields[0].1);
                    self.set.insert(write.key.clone(), reference);
                }
            }
        }
        Ok(())
    }

    /// Notes the old profiles before anything is changed.
    fn journal(&mut self, databases: &mut Databases, layout: &Layout) -> Result<(), Error> {
        if self.journaled {
            return Ok(());
        }
        let fields = |queues: &Queues| (queues.key.clone(), queues.profile.text());
        let fields = layout
            .ports
            .iter()
            .flat_map(|port| &port.queues)
            .map(fields);
        let mut pipeline = redis::pipe();
        let journal = Write {
            key: JOURNAL.to_owned(),
            fields: fields.collect(),
        };
        set(&mut pipeline, &journal);
        let _: redis::Value =
            databases.send(Database::State, "cannot write the journal", &pipeline)?;
        self.journaled = true;
        Ok(())
    }

    /// Checks that every queue still has what the agent, or before it the operator, has set.
    ///
    /// # Errors
    /// [`Error::Changed`] for the first one that has not, and those of the connection.
    pub fn verify(&self, databases: &mut Databases, layout: &Layout) -> Result<(), Error> {
        let groups: Vec<&Queues> = layout.ports.iter().flat_map(|port| &port.queues).collect();
        let mut pipeline = redis::pipe();
        for group in &groups {
            pipeline.cmd("HGET").arg(&group.key).arg(schema::PROFILE);
        }
        let found: Vec<Option<String>> =
            databases.send(Database::Config, "cannot read profiles", &pipeline)?;
        for (group, found) in groups.into_iter().zip(found) {
            let expected = self.set.get(&group.key).unwrap_or(&group.profile).text();
            if found.as_deref() != Some(expected.as_str()) {
                return Err(Error::Changed {
                    key: config(&group.key),
                    found: found.unwrap_or_else(|| "gone".to_owned()),
                    expected,
                });
            }
        }
        Ok(())
    }

    /// Forgets what is set, after it was put back.
    pub fn forget(&mut self) {
        *self = Writer::default();
    }
}

/// A profile with the fields of another and a `dynamic_th` of its own.
fn copy(name: &str, fields: &BTreeMap<String, String>, threshold: i8) -> Write {
    let mut fields = fields.clone();
    fields.insert(schema::DYNAMIC_TH.to_owned(), threshold.to_string());
    Write {
        key: key(schema::BUFFER_PROFILE, name),
        fields: fields.into_iter().collect(),
    }
}

fn set(pipeline: &mut Pipeline, write: &Write) {
    let command = pipeline.cmd("HSET").arg(&write.key);
    for (field, value) in &write.fields {
        command.arg(field).arg(value);
    }
}

/// What was put back.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Restored {
    /// Queue keys that have their old profile again.
    pub queues: usize,
    /// Profiles of the agent that were removed.
    pub profiles: usize,
}

/// Gives every queue its old profile back, by the journal or, where that is gone, by the name of the
/// agent's profile, and removes the agent's profiles. Queues that somebody else has given another
/// profile stay as they are.
///
/// # Errors
/// [`Error::Restore`] where an old profile is no longer there: that queue and the agent's profile stay,
/// and all others have been put back. Those of the connection.
pub fn restore(databases: &mut Databases) -> Result<Restored, Error> {
    let journal = databases.hash(Database::State, JOURNAL)?;
    let profiles: BTreeSet<String> = databases
        .names(Database::Config, schema::BUFFER_PROFILE)?
        .into_iter()
        .collect();
    let mut pipeline = redis::pipe();
    pipeline.atomic();
    let (mut restored, mut lost, mut in_use) = (Restored::default(), None, BTreeSet::new());
    for name in databases.names(Database::Config, schema::BUFFER_QUEUE)? {
        let key = key(schema::BUFFER_QUEUE, &name);
        let now = databases.field(Database::Config, &key, schema::PROFILE)?;
        let now = Reference::parse(&now.unwrap_or_default());
        let Some(by_name) = old_name(&now.name) else {
            continue;
        };
        let old = journal.get(&key).map(|old| Reference::parse(old));
        let old = old.unwrap_or_else(|| now.to(by_name.to_owned()));
        if !profiles.contains(&old.name) {
            in_use.insert(now.name.clone());
            lost.get_or_insert(Error::Restore {
                key: config(&key),
                old: old.name,
                problem: "there is no such profile; make it, or give the queue another one"
                    .to_owned(),
            });
            continue;
        }
        restored.queues += 1;
        pipeline.add_command(cmd(&["HSET", &key, schema::PROFILE, &old.text()]));
    }
    let own = profiles
        .iter()
        .filter(|name| is_own(name) && !in_use.contains(*name));
    for name in own {
        restored.profiles += 1;
        pipeline.add_command(cmd(&["DEL", &key(schema::BUFFER_PROFILE, name)]));
    }
    if restored != Restored::default() {
        let _: redis::Value =
            databases.send(Database::Config, "cannot put profiles back", &pipeline)?;
    }
    match lost {
        Some(error) => Err(error),
        None => {
            let mut pipeline = redis::pipe();
            pipeline.add_command(cmd(&["DEL", JOURNAL]));
            let _: redis::Value =
                databases.send(Database::State, "cannot remove the journal", &pipeline)?;
            Ok(restored)
        }
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
            sharing: 2,
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
    fn names_of_own_profiles_tell_the_old_one() {
        for threshold in -2..=5 {
            let name = own_name(threshold, "q_lossy_profile");
            assert_eq!(old_name(&name), Some("q_lossy_profile"));
        }
        for other in [
            "q_lossy_profile",
            "bufgym_x_lossy",
            "bufgym_9_lossy",
            "bufgym_3_",
            "bufgym_3",
        ] {
            assert!(!is_own(other), "{other}");
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
                match write.key.strip_prefix("BUFFER_PROFILE|") {
                    Some(name) => drop(writer.made.insert(name.to_owned())),
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
        writer.forget();
        assert_eq!(writer.plan(&layout, &[(1, 2)]).len(), 2);
    }
}
