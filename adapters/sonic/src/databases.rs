//! The connection to SONiC's databases, one per database.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use redis::{
    Client, Connection, ConnectionAddr, FromRedisValue, IntoConnectionInfo as _, Pipeline,
    RedisResult,
};

use crate::{Address, Error};

/// How long the server may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The name of the agent's connection, by which another agent knows that it is not alone.
const CLIENT_NAME: &str = "bufgym-sonic-agent";

/// How long the server may take to notice that a connection is closed.
const CLOSING: Duration = Duration::from_secs(1);

/// Keys per answer of a SCAN.
const SCANNED: usize = 1_000;

/// A database of SONiC that the agent uses; the numbers are those of sonic-swss-common's
/// `common/database_config.json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Database {
    /// What is in force, as the daemons of the switch have computed it.
    Appl,
    /// Counters of ports and queues.
    Counters,
    /// What is configured.
    Config,
    /// States of daemons; the agent's journal.
    State,
}

impl Database {
    const ALL: [Database; 4] = [
        Database::Appl,
        Database::Counters,
        Database::Config,
        Database::State,
    ];

    /// Its number in Redis.
    pub fn number(self) -> u8 {
        match self {
            Database::Appl => 0,
            Database::Counters => 2,
            Database::Config => 4,
            Database::State => 6,
        }
    }

    /// Its name in SONiC.
    pub fn name(self) -> &'static str {
        match self {
            Database::Appl => "APPL_DB",
            Database::Counters => "COUNTERS_DB",
            Database::Config => "CONFIG_DB",
            Database::State => "STATE_DB",
        }
    }
}

/// Connections to the databases of a switch.
pub struct Databases {
    address: Address,
    /// In the order of [`Database::ALL`].
    connections: [Connection; 4],
}

impl Databases {
    /// Connects to the server.
    ///
    /// # Errors
    /// When nobody listens there, or it does not answer as Redis does.
    pub fn connect(address: &Address) -> Result<Databases, Error> {
        let open = |database: &Database| {
            let located = |source| located(address, "cannot connect", source);
            open(address, *database).map_err(located)
        };
        let mut connections = Vec::with_capacity(Database::ALL.len());
        for database in &Database::ALL {
            connections.push(open(database)?);
        }
        let connections = connections
            .try_into()
            .unwrap_or_else(|_| unreachable!("one for each"));
        Ok(Databases {
            address: address.clone(),
            connections,
        })
    }

    /// The server.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Gives the connection the agent's name. The server may need a moment to notice that an agent before has
    /// ended, so that this waits up to a second for it.
    ///
    /// # Errors
    /// [`Error::Busy`] when another connection has that name and keeps it, and those of the connection.
    pub fn claim(&mut self) -> Result<(), Error> {
        let begun = Instant::now();
        loop {
            match self.claim_now() {
                Err(Error::Busy(_)) if begun.elapsed() < CLOSING => {
                    std::thread::sleep(CLOSING / 50)
                }
                result => return result,
            }
        }
    }

    fn claim_now(&mut self) -> Result<(), Error> {
        let set_name = cmd(&["CLIENT", "SETNAME", CLIENT_NAME]);
        let () = self.query(Database::State, "cannot name the connection", &set_name)?;
        let list: String = self.query(
            Database::State,
            "cannot list connections",
            &cmd(&["CLIENT", "LIST"]),
        )?;
        let named = format!(" name={CLIENT_NAME} ");
        let agents: Vec<&str> = list.lines().filter(|line| line.contains(&named)).collect();
        // The names come first, so that of two agents that start at once neither goes on.
        match agents.len() {
            0 | 1 => Ok(()),
            _ => {
                let address = |line: &&str| {
                    let field = line.split(' ').find(|field| field.starts_with("addr="));
                    field.unwrap_or_default().to_owned()
                };
                let addresses: Vec<String> = agents.iter().map(address).collect();
                let () = self.query(
                    Database::State,
                    "cannot name the connection",
                    &cmd(&["CLIENT", "SETNAME", ""]),
                )?;
                Err(Error::Busy(addresses.join(", ")))
            }
        }
    }

    /// All fields of a hash; empty where the key is not there.
    ///
    /// # Errors
    /// Those of the connection.
    pub fn hash(
        &mut self,
        database: Database,
        key: &str,
    ) -> Result<HashMap<String, String>, Error> {
        self.query(database, "cannot read a table", &cmd(&["HGETALL", key]))
    }

    /// A field of a hash.
    ///
    /// # Errors
    /// Those of the connection.
    pub fn field(
        &mut self,
        database: Database,
        key: &str,
        field: &str,
    ) -> Result<Option<String>, Error> {
        self.query(database, "cannot read a field", &cmd(&["HGET", key, field]))
    }

    /// The names of the keys `TABLE|NAME`, in order, without the table.
    ///
    /// # Errors
    /// Those of the connection.
    pub fn names(&mut self, database: Database, table: &str) -> Result<Vec<String>, Error> {
        let pattern = format!("{table}|*");
        let (mut cursor, mut found) = (0u64, BTreeMap::new());
        loop {
            let mut scan = redis::cmd("SCAN");
            scan.arg(cursor)
                .arg("MATCH")
                .arg(&pattern)
                .arg("COUNT")
                .arg(SCANNED);
            let (next, keys): (u64, Vec<String>) =
                self.query(database, "cannot list a table", &scan)?;
            // A SCAN may return a key twice.
            found.extend(keys.into_iter().map(|key| (key, ())));
            if next == 0 {
                break;
            }
            cursor = next;
        }
        let prefix = pattern.len() - 1;
        Ok(found
            .into_keys()
            .map(|key| key[prefix..].to_owned())
            .collect())
    }

    /// Sends commands at once and returns their answers.
    ///
    /// # Errors
    /// Those of the connection.
    pub fn send<T: FromRedisValue>(
        &mut self,
        database: Database,
        doing: &'static str,
        pipeline: &Pipeline,
    ) -> Result<T, Error> {
        let Databases {
            address,
            connections,
        } = self;
        let answer = pipeline.query(&mut connections[database as usize]);
        answer.map_err(|source| located(address, doing, source))
    }

    fn query<T: FromRedisValue>(
        &mut self,
        database: Database,
        doing: &'static str,
        command: &redis::Cmd,
    ) -> Result<T, Error> {
        let Databases {
            address,
            connections,
        } = self;
        let answer = command.query(&mut connections[database as usize]);
        answer.map_err(|source| located(address, doing, source))
    }
}

/// A command of words.
pub(crate) fn cmd(words: &[&str]) -> redis::Cmd {
    let mut command = redis::Cmd::new();
    for word in words {
        command.arg(word);
    }
    command
}

fn open(address: &Address, database: Database) -> RedisResult<Connection> {
    let address = match address {
        Address::Unix(path) => ConnectionAddr::Unix(path.clone()),
        Address::Tcp(host, port) => ConnectionAddr::Tcp(host.clone(), *port),
    };
    let mut connection =
        Client::open(address.into_connection_info()?)?.get_connection_with_timeout(PATIENCE)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.set_write_timeout(Some(PATIENCE))?;
    let select = redis::cmd("SELECT").arg(database.number()).to_owned();
    let () = select.query(&mut connection)?;
    Ok(connection)
}

fn located(address: &Address, doing: &'static str, source: redis::RedisError) -> Error {
    Error::Redis {
        address: address.to_string(),
        doing,
        source,
    }
}
