//! The connection to SONiC's databases, one per database.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use redis::{
    Client, Connection, ConnectionAddr, FromRedisValue, IntoConnectionInfo as _, Pipeline,
    RedisConnectionInfo, RedisError, RedisResult, Value,
};

use crate::{Address, Error};

/// Time that the server may take to answer.
const PATIENCE: Duration = Duration::from_secs(5);

/// The name of the agent's connection, by which another agent notices that it is not alone.
const CLIENT_NAME: &str = "bufgym-sonic-agent";

/// Time that the server may take to notice that a connection is closed.
const CLOSING: Duration = Duration::from_secs(1);

/// Keys per answer of a SCAN.
const SCANNED: usize = 1_000;

/// A database of SONiC that the agent uses; the numbers are those of sonic-swss-common's
/// `common/database_config.json`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Database {
    /// The configuration in force, as computed by the daemons of the switch.
    Appl,
    /// Counters of ports and queues.
    Counters,
    /// The configuration.
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

    /// Returns the number of the database in Redis.
    pub fn number(self) -> u8 {
        match self {
            Database::Appl => 0,
            Database::Counters => 2,
            Database::Config => 4,
            Database::State => 6,
        }
    }

    /// Returns the name of the database in SONiC.
    pub fn name(self) -> &'static str {
        match self {
            Database::Appl => "APPL_DB",
            Database::Counters => "COUNTERS_DB",
            Database::Config => "CONFIG_DB",
            Database::State => "STATE_DB",
        }
    }
}

/// User and password for a server that asks for them.
#[derive(Clone)]
pub struct Login {
    /// A user of Redis's access control list; `None` for the default user.
    pub user: Option<String>,
    /// The password of that user.
    pub password: String,
}

impl std::fmt::Debug for Login {
    /// Formats the login without the password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Login")
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

/// Connections to the databases of a switch.
pub struct Databases {
    address: Address,
    login: Option<Login>,
    /// Connections in the order of [`Database::ALL`]; empty once one of them has failed, because a late
    /// answer would be taken for the answer to the next command.
    connections: Vec<Connection>,
}

impl Databases {
    /// Connects to a server that asks for no password.
    ///
    /// # Errors
    /// Returns the errors of [`connect_as`](Databases::connect_as).
    pub fn connect(address: &Address) -> Result<Databases, Error> {
        Databases::connect_as(address, None)
    }

    /// Connects to the server, as a user if a login is given.
    ///
    /// # Errors
    /// Fails if nobody listens there, or if the server does not answer within five seconds or does not answer
    /// like Redis. Returns [`Error::Login`] if the server asks for a password or refuses the given one.
    pub fn connect_as(address: &Address, login: Option<&Login>) -> Result<Databases, Error> {
        let mut databases = Databases {
            address: address.clone(),
            login: login.cloned(),
            connections: Vec::new(),
        };
        databases.reconnect()?;
        Ok(databases)
    }

    /// Connects to the same server again, as the same user. Closes the old connections first, so that the
    /// server does not take them for those of another agent.
    ///
    /// # Errors
    /// Returns the errors of [`connect_as`](Databases::connect_as).
    pub fn reconnect(&mut self) -> Result<(), Error> {
        self.close();
        let open = |database| open(&self.address, self.login.as_ref(), database);
        self.connections = Database::ALL
            .into_iter()
            .map(open)
            .collect::<Result<_, _>>()?;
        Ok(())
    }

    /// Closes all connections. Every command fails until [`reconnect`](Databases::reconnect) opens new ones.
    pub fn close(&mut self) {
        self.connections.clear();
    }

    /// Returns true if there are connections.
    pub fn is_connected(&self) -> bool {
        !self.connections.is_empty()
    }

    /// Returns the address of the server.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Gives the connection the agent's name. Waits up to a second, because the server may need a moment to
    /// notice that a previous agent has ended.
    ///
    /// # Errors
    /// Returns [`Error::Busy`] if another connection keeps that name, and connection errors.
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
        // The names come first, so that neither of two agents that start at once continues.
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

    /// Returns all fields of a hash; empty if the key does not exist.
    ///
    /// # Errors
    /// Returns connection errors.
    pub fn hash(
        &mut self,
        database: Database,
        key: &str,
    ) -> Result<HashMap<String, String>, Error> {
        self.query(database, "cannot read a table", &cmd(&["HGETALL", key]))
    }

    /// Returns a field of a hash.
    ///
    /// # Errors
    /// Returns connection errors.
    pub fn field(
        &mut self,
        database: Database,
        key: &str,
        field: &str,
    ) -> Result<Option<String>, Error> {
        self.query(database, "cannot read a field", &cmd(&["HGET", key, field]))
    }

    /// Returns the names of the keys `TABLE|NAME`, in order, without the table.
    ///
    /// # Errors
    /// Returns connection errors.
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
    /// Returns connection errors.
    pub fn send<T: FromRedisValue>(
        &mut self,
        database: Database,
        doing: &'static str,
        pipeline: &Pipeline,
    ) -> Result<T, Error> {
        let packed = pipeline.get_packed_pipeline();
        let answers = self.exchange(database, doing, &packed, pipeline.len())?;
        self.taken(doing, Value::Array(answers))
    }

    /// Watches keys of CONFIG_DB: the next [`commit`](Databases::commit) does nothing if one of them has
    /// changed by then.
    ///
    /// # Errors
    /// Returns connection errors.
    pub fn watch(&mut self, keys: &[String]) -> Result<(), Error> {
        let mut watch = redis::cmd("WATCH");
        watch.arg(keys);
        match keys {
            [] => Ok(()),
            _ => self.query(Database::Config, "cannot watch keys", &watch),
        }
    }

    /// Runs commands in STATE_DB and in CONFIG_DB as one transaction. Returns `false` if nothing was done
    /// because a [watched](Databases::watch) key has changed.
    ///
    /// # Errors
    /// Returns connection errors.
    pub fn commit(
        &mut self,
        doing: &'static str,
        state: Vec<redis::Cmd>,
        config: Vec<redis::Cmd>,
    ) -> Result<bool, Error> {
        // A transaction may switch the database midway, so that no crash comes between the two.
        let select = |database: Database| redis::cmd("SELECT").arg(database.number()).to_owned();
        let mut pipeline = redis::pipe();
        pipeline.atomic();
        let before = std::iter::once(select(Database::State)).chain(state);
        let after = std::iter::once(select(Database::Config)).chain(config);
        before.chain(after).for_each(|command| {
            pipeline.add_command(command);
        });
        // MULTI and EXEC have separate answers; that of EXEC is the last.
        let (packed, answers) = (pipeline.get_packed_pipeline(), pipeline.len() + 2);
        let answers = self.exchange(Database::Config, doing, &packed, answers)?;
        Ok(answers.last() != Some(&Value::Nil))
    }

    fn query<T: FromRedisValue>(
        &mut self,
        database: Database,
        doing: &'static str,
        command: &redis::Cmd,
    ) -> Result<T, Error> {
        let packed = command.get_packed_command();
        let mut answers = self.exchange(database, doing, &packed, 1)?;
        self.taken(doing, answers.pop().unwrap_or(Value::Nil))
    }

    /// Sends the packed commands and reads the given number of answers. Unlike the client's own pipelines,
    /// this does not wait for the second answer if the first one has not come.
    fn exchange(
        &mut self,
        database: Database,
        doing: &'static str,
        packed: &[u8],
        answers: usize,
    ) -> Result<Vec<Value>, Error> {
        let located = |source| located(&self.address, doing, source);
        let Some(connection) = self.connections.get_mut(database as usize) else {
            let gone = std::io::Error::from(std::io::ErrorKind::NotConnected);
            return Err(located(gone.into()));
        };
        let sent = connection.send_packed_command(packed);
        let mut receive = |_| connection.recv_response();
        let answers = sent.and_then(|()| (0..answers).map(&mut receive).collect());
        let answers: Vec<Value> = match answers {
            Ok(answers) => answers,
            Err(source) => {
                self.connections.clear();
                return Err(located(source));
            }
        };
        let within = |answer: &Value| match answer {
            Value::Array(answers) => answers.iter().find_map(server_error),
            answer => server_error(answer),
        };
        match answers.iter().find_map(within) {
            Some(source) => Err(located(source)),
            None => Ok(answers),
        }
    }

    /// Converts an answer into the expected form.
    fn taken<T: FromRedisValue>(&self, doing: &'static str, answer: Value) -> Result<T, Error> {
        T::from_redis_value(answer).map_err(|error| located(&self.address, doing, error.into()))
    }
}

/// Returns the error that the server has answered with, if the answer is an error.
fn server_error(answer: &Value) -> Option<RedisError> {
    match answer {
        Value::ServerError(error) => Some(error.clone().into()),
        _ => None,
    }
}

/// Builds a command from words.
pub(crate) fn cmd(words: &[&str]) -> redis::Cmd {
    let mut command = redis::Cmd::new();
    for word in words {
        command.arg(word);
    }
    command
}

/// Builds a command that sets fields of a key.
pub(crate) fn hset(key: &str, fields: &[(String, String)]) -> redis::Cmd {
    let mut command = cmd(&["HSET", key]);
    for (field, value) in fields {
        command.arg(field).arg(value);
    }
    command
}

fn open(address: &Address, login: Option<&Login>, database: Database) -> Result<Connection, Error> {
    let failed = |source| located(address, "cannot connect", source);
    let mut connection = connected(address).map_err(failed)?;
    if let Some(Login { user, password }) = login {
        let mut auth = redis::cmd("AUTH");
        user.iter().for_each(|user| {
            auth.arg(user);
        });
        let () = auth
            .arg(password)
            .query(&mut connection)
            .map_err(|source| refused(address, source))?;
    }
    let select = redis::cmd("SELECT").arg(database.number()).to_owned();
    let () = select.query(&mut connection).map_err(failed)?;
    Ok(connection)
}

fn connected(address: &Address) -> RedisResult<Connection> {
    let address = match address {
        Address::Unix(path) => ConnectionAddr::Unix(path.clone()),
        Address::Tcp(host, port) => ConnectionAddr::Tcp(host.clone(), *port),
    };
    // By default, the client would send its name in two commands and wait for both answers.
    let settings = RedisConnectionInfo::default().set_skip_set_lib_name();
    let info = address.into_connection_info()?.set_redis_settings(settings);
    let connection = Client::open(info)?.get_connection_with_timeout(PATIENCE)?;
    connection.set_read_timeout(Some(PATIENCE))?;
    connection.set_write_timeout(Some(PATIENCE))?;
    Ok(connection)
}

/// Builds the error for a refused login. The server's own words are left out, because some contain the
/// password.
fn refused(address: &Address, source: RedisError) -> Error {
    // The first text is that of Redis 6 and later, the second that of older versions.
    const NEEDLESS: [&str; 2] = ["without any password configured", "no password is set"];
    if source.is_io_error() {
        return located(address, "cannot log in", source);
    }
    let said = source.detail().unwrap_or_default();
    let problem = match NEEDLESS.iter().any(|words| said.contains(words)) {
        true => "it has no password for the default user; leave the password out",
        false => {
            "it refuses the user or the password; check --redis-user, and the password in \
             --redis-password-file or BUFGYM_REDIS_PASSWORD"
        }
    };
    Error::Login {
        address: address.to_string(),
        problem,
    }
}

fn located(address: &Address, doing: &'static str, source: RedisError) -> Error {
    let address = address.to_string();
    if source.is_timeout() {
        return Error::Silent {
            address,
            doing,
            patience: PATIENCE,
        };
    }
    if source.code() == Some("NOAUTH") {
        return Error::Login {
            address,
            problem: "it asks for a password; give it in a file with --redis-password-file, or in the \
                      variable BUFGYM_REDIS_PASSWORD",
        };
    }
    Error::Redis {
        address,
        doing,
        source,
    }
}
