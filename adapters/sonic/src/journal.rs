//! The journal in STATE_DB: the old profile of every queue, and the profiles that the agent has made. It is
//! written in the transaction that makes them. A profile that is not in the journal is not the agent's,
//! whatever its name.

use std::collections::BTreeMap;

use redis::Cmd;

use crate::databases::hset;
use crate::schema::Reference;
use crate::{Database, Databases, Error};

/// STATE_DB: the old profile of every queue key that the agent controls.
pub const JOURNAL: &str = "BUFGYM_SONIC_AGENT|OLD_PROFILES";

/// STATE_DB: the profiles that the agent has made, each with its `dynamic_th`.
pub const MADE: &str = "BUFGYM_SONIC_AGENT|OWN_PROFILES";

/// The changes that the agent has made.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Journal {
    /// The old profile of every queue key.
    pub(crate) queues: BTreeMap<String, Reference>,
    /// The profiles that the agent has made, with their `dynamic_th`.
    pub(crate) made: BTreeMap<String, String>,
}

impl Journal {
    /// Reads the journal that an agent has left.
    ///
    /// # Errors
    /// Returns connection errors.
    pub fn read(databases: &mut Databases) -> Result<Journal, Error> {
        let queues = databases.hash(Database::State, JOURNAL)?.into_iter();
        let made = databases.hash(Database::State, MADE)?.into_iter();
        Ok(Journal {
            queues: queues
                .map(|(key, old)| (key, Reference::parse(&old)))
                .collect(),
            made: made.collect(),
        })
    }

    /// Returns true if the agent has made this profile.
    pub fn has_made(&self, profile: &str) -> bool {
        self.made.contains_key(profile)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queues.is_empty() && self.made.is_empty()
    }

    /// Returns the commands that write the journal.
    pub(crate) fn commands(&self) -> Vec<Cmd> {
        let queues = self.queues.iter();
        let queues: Vec<_> = queues.map(|(key, old)| (key.clone(), old.text())).collect();
        let made: Vec<_> = self.made.clone().into_iter().collect();
        [(JOURNAL, queues), (MADE, made)]
            .iter()
            .filter(|(_, fields)| !fields.is_empty())
            .map(|(key, fields)| hset(key, fields))
            .collect()
    }
}
