//! Ports, egress queues, buffer profiles and pool of a switch, read from its databases.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::RangeInclusive;

use crate::journal::Journal;
use crate::schema::{self, Reference, key};
use crate::{Database, Databases, Error};

/// The part of a switch to control.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// The pool whose queues are controlled.
    pub pool: String,
    /// Names of ports; if empty, all ports that are up and have a queue in the pool.
    pub ports: Vec<String>,
    /// Size of the pool if the databases do not contain it, bytes.
    pub buffer_bytes: Option<u64>,
}

/// The controlled part of a switch.
#[derive(Clone, Debug, PartialEq)]
pub struct Layout {
    /// The buffer pool that the queues share.
    pub pool: String,
    /// Size B of the pool, bytes.
    pub buffer_bytes: u64,
    /// Number of ports with a queue in the pool, controlled or not.
    pub present: usize,
    /// Number of ports that are left out because they are down or have zero profiles only.
    pub idle: usize,
    /// The controlled ports, in the order of their numbers.
    pub ports: Vec<Port>,
    /// Fields of the profiles that queues have, by name.
    pub profiles: BTreeMap<String, BTreeMap<String, String>>,
}

/// A controlled port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Port {
    /// Name, such as `Ethernet0`.
    pub name: String,
    /// Line rate, bit/s.
    pub rate_bps: u64,
    /// Object id of the port's counters.
    pub oid: String,
    /// Queues in the pool, by configuration key.
    pub queues: Vec<Queues>,
}

/// Queues of a port that are configured together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Queues {
    /// Key in CONFIG_DB, `BUFFER_QUEUE|PORT|FIRST-LAST`.
    pub key: String,
    /// The profile of the queues while nobody controls them.
    pub profile: Reference,
    /// The `dynamic_th` of that profile.
    pub threshold: i8,
    /// Object ids of the queues' counters.
    pub oids: Vec<String>,
}

impl Layout {
    /// Finds the queues of a pool.
    ///
    /// # Errors
    /// Fails if the agent cannot work with the configuration. The error names the key and what would be
    /// right.
    pub fn find(databases: &mut Databases, wanted: &Wanted) -> Result<Layout, Error> {
        let mut finder = Finder {
            databases,
            wanted,
            profiles: BTreeMap::new(),
        };
        let buffer_bytes = finder.pool()?;
        let Found {
            queues,
            present,
            idle,
        } = finder.queues()?;
        let profiles = finder.profiles;
        for port in &wanted.ports {
            if let Some(reason) = idle.get(port) {
                let problem = format!("{reason}; leave the port out of --ports");
                return Err(Error::switch(config(&key(schema::PORT, port)), problem));
            }
            if !present.contains(port) {
                return Err(Error::NoPort {
                    wanted: port.clone(),
                    pool: wanted.pool.clone(),
                    present: present.into_iter().collect(),
                });
            }
        }
        if queues.is_empty() {
            let problem = match idle.len() {
                0 => format!("no port has a queue with a profile in {}", wanted.pool),
                idle => format!(
                    "no port has a queue in {} to control: {idle} are down or have zero profiles",
                    wanted.pool
                ),
            };
            return Err(Error::switch(config(schema::BUFFER_QUEUE), problem));
        }
        let mut ports = with_counters(databases, queues)?;
        ports.sort_by_cached_key(|port| numbered(&port.name));
        Ok(Layout {
            pool: wanted.pool.clone(),
            buffer_bytes,
            present: present.len(),
            idle: idle.len(),
            ports,
            profiles,
        })
    }

    /// Returns β = B/N for the N controlled ports, at least 1.
    pub fn beta(&self) -> u64 {
        let ports = u64::try_from(self.ports.len()).expect("ports are few");
        (self.buffer_bytes / ports).max(1)
    }
}

/// Formats `CONFIG_DB KEY` for messages.
pub(crate) fn config(key: &str) -> String {
    format!("{} {key}", Database::Config.name())
}

/// Queues to be controlled, by port.
type Controlled = BTreeMap<String, Vec<(Queues, RangeInclusive<u8>)>>;

/// Queues of a pool according to the configuration.
struct Found {
    queues: Controlled,
    /// Ports with a queue in the pool.
    present: BTreeSet<String>,
    /// Wanted ports without a queue to control, with the reason.
    idle: BTreeMap<String, String>,
}

struct Finder<'a> {
    databases: &'a mut Databases,
    wanted: &'a Wanted,
    profiles: BTreeMap<String, BTreeMap<String, String>>,
}

impl Finder<'_> {
    /// Returns the size of the pool.
    fn pool(&mut self) -> Result<u64, Error> {
        let name = &self.wanted.pool;
        let key = key(schema::BUFFER_POOL, name);
        let fields = self.databases.hash(Database::Config, &key)?;
        if fields.is_empty() {
            let pools = self
                .databases
                .names(Database::Config, schema::BUFFER_POOL)?;
            let problem = format!("no such pool; there are {}", listed(&pools));
            return Err(Error::switch(config(&key), problem));
        }
        for (field, right) in [("type", &["egress", "both"][..]), ("mode", &["dynamic"])] {
            let value = fields.get(field).map_or("missing", String::as_str);
            if !right.contains(&value) {
                let problem =
                    format!("{field} is {value}; an egress pool with dynamic thresholds is needed");
                return Err(Error::switch(config(&key), problem));
            }
        }
        // With dynamic buffer calculation, the buffer manager has computed the size.
        let computed = format!("{}:{name}", schema::APPL_BUFFER_POOL);
        let computed = self.databases.field(Database::Appl, &computed, "size")?;
        let sizes = [fields.get("size").cloned(), computed];
        let size = sizes
            .into_iter()
            .flatten()
            .find_map(|size| size.parse().ok());
        match self.wanted.buffer_bytes.or(size) {
            Some(size) if size > 0 => Ok(size),
            _ => Err(Error::switch(
                config(&key),
                "the databases have no size of the pool; give it with --buffer-bytes",
            )),
        }
    }

    /// Returns the queues whose profile is in the pool, by port. Ignores ports that are not wanted or are
    /// down, and queues with a zero profile, whatever is configured there.
    fn queues(&mut self) -> Result<Found, Error> {
        let own = Journal::read(self.databases)?;
        let names = self
            .databases
            .names(Database::Config, schema::BUFFER_QUEUE)?;
        let (mut queues, mut idle) = (Controlled::new(), BTreeMap::new());
        let (mut present, mut down) = (BTreeSet::new(), BTreeMap::new());
        for name in names {
            let key = key(schema::BUFFER_QUEUE, &name);
            let profile = self
                .databases
                .field(Database::Config, &key, schema::PROFILE)?;
            let Some(profile) = profile.filter(|profile| !profile.is_empty()) else {
                continue;
            };
            let profile = Reference::parse(&profile);
            let known = self.load(&profile.name)?;
            if known && !self.in_pool(&profile.name) {
                continue;
            }
            let (port, indices) =
                place(&name).map_err(|problem| Error::switch(config(&key), problem))?;
            let ports: Vec<String> = port.split(',').map(str::to_owned).collect();
            if known {
                present.extend(ports.clone());
            }
            let wanted = ports.into_iter().filter(|port| self.wants(port));
            let wanted: Vec<String> = wanted.collect();
            for port in &wanted {
                if let Entry::Vacant(unknown) = down.entry(port.clone()) {
                    let is_down = self.is_down(port)?;
                    unknown.insert(is_down);
                }
            }
            let is_zero = known && is_zero(&self.profiles[&profile.name]);
            if is_zero || wanted.iter().all(|port| down[port]) {
                for port in wanted {
                    let reason = match down[&port] {
                        true => "is administratively down (admin_status)".to_owned(),
                        false => format!("its queues have the zero profile {}", profile.name),
                    };
                    idle.insert(port, reason);
                }
                continue;
            }
            if port.contains(',') {
                let problem = "names several ports; a key for each port is needed";
                return Err(Error::switch(config(&key), problem));
            }
            if !known {
                let name = &profile.name;
                let problem = format!("its profile {name} is not in {}", schema::BUFFER_PROFILE);
                return Err(Error::switch(config(&key), problem));
            }
            if own.has_made(&profile.name) {
                let problem = format!(
                    "it still has the agent's profile {}; run with --restore first",
                    profile.name
                );
                return Err(Error::switch(config(&key), problem));
            }
            let threshold = self.threshold(&profile.name)?;
            let group = Queues {
                key,
                profile,
                threshold,
                oids: Vec::new(),
            };
            queues
                .entry(port.to_owned())
                .or_default()
                .push((group, indices));
        }
        idle.retain(|port, _| !queues.contains_key(port));
        Ok(Found {
            queues,
            present,
            idle,
        })
    }

    /// Returns true if the port is wanted.
    fn wants(&self, port: &str) -> bool {
        let wanted = &self.wanted.ports;
        wanted.is_empty() || wanted.iter().any(|wanted| wanted == port)
    }

    /// Returns true if the port is administratively down. Reads APPL_DB if CONFIG_DB does not say it.
    fn is_down(&mut self, port: &str) -> Result<bool, Error> {
        let sources = [
            (Database::Config, key(schema::PORT, port)),
            (Database::Appl, format!("{}:{port}", schema::APPL_PORT)),
        ];
        for (database, key) in sources {
            let status = self.databases.field(database, &key, schema::ADMIN_STATUS)?;
            if let Some(status) = status {
                return Ok(status == "down");
            }
        }
        Ok(false)
    }

    /// Reads a profile if it has not been read; returns `false` if no profile has this name.
    fn load(&mut self, profile: &str) -> Result<bool, Error> {
        if !self.profiles.contains_key(profile) {
            let key = key(schema::BUFFER_PROFILE, profile);
            let fields = self.databases.hash(Database::Config, &key)?;
            if fields.is_empty() {
                return Ok(false);
            }
            let fields = fields.into_iter().collect();
            self.profiles.insert(profile.to_owned(), fields);
        }
        Ok(true)
    }

    /// Returns true if a profile that has been read is in the pool.
    fn in_pool(&self, profile: &str) -> bool {
        let pool = self.profiles[profile].get(schema::POOL);
        pool.is_some_and(|pool| schema::pool_name(pool) == self.wanted.pool)
    }

    /// Returns the `dynamic_th` of a profile that has been read.
    fn threshold(&self, profile: &str) -> Result<i8, Error> {
        let fields = &self.profiles[profile];
        let threshold = fields
            .get(schema::DYNAMIC_TH)
            .and_then(|value| value.parse().ok());
        match threshold.filter(|threshold| schema::DYNAMIC_TH_RANGE.contains(threshold)) {
            Some(threshold) => Ok(threshold),
            None => {
                let given = fields.get(schema::DYNAMIC_TH);
                let problem = match (given, fields.get(schema::STATIC_TH)) {
                    (Some(given), _) => format!("dynamic_th is {given}; must be from -8 to 7"),
                    (None, Some(_)) => {
                        "has static_th, a fixed limit; a profile with dynamic_th is \
                                        needed, or --ports without the ports that have this one"
                            .to_owned()
                    }
                    (None, None) => "has no dynamic_th".to_owned(),
                };
                let key = key(schema::BUFFER_PROFILE, profile);
                Err(Error::switch(config(&key), problem))
            }
        }
    }
}

/// Returns true if a profile gives its queues nothing: no reserved bytes, and the least share of the pool or
/// none. SONiC gives such profiles to ports that are not in use (SONiC's
/// `doc/qos/reclaim-reserved-buffer.md`).
fn is_zero(profile: &BTreeMap<String, String>) -> bool {
    let number = |field: &str| {
        profile
            .get(field)
            .and_then(|value| value.parse::<i64>().ok())
    };
    let least = i64::from(*schema::DYNAMIC_TH_RANGE.start());
    let shares = number(schema::DYNAMIC_TH) == Some(least) || number(schema::STATIC_TH) == Some(0);
    shares && number(schema::SIZE) == Some(0)
}

/// Parses `PORT|FIRST-LAST`: the port, or several separated by commas, and the queue numbers.
fn place(name: &str) -> Result<(&str, RangeInclusive<u8>), String> {
    let (port, queues) = match name.split('|').collect::<Vec<_>>()[..] {
        [port, queues] => (port, queues),
        [_, _, _, _] => {
            return Err("a chassis with virtual output queues is not supported".to_owned());
        }
        _ => return Err("must be BUFFER_QUEUE|PORT|QUEUES".to_owned()),
    };
    let (first, last) = queues.split_once('-').unwrap_or((queues, queues));
    match (first.parse(), last.parse()) {
        (Ok(first), Ok(last)) if first <= last && last < 64 => Ok((port, first..=last)),
        _ => Err(format!("'{queues}' is no queue and no range of queues")),
    }
}

/// Returns ports with their rates and the object ids of their counters.
fn with_counters(databases: &mut Databases, found: Controlled) -> Result<Vec<Port>, Error> {
    let ports = map(databases, schema::PORT_MAP, "counterpoll port enable")?;
    let queues = map(databases, schema::QUEUE_MAP, "counterpoll queue enable")?;
    let mut complete = Vec::with_capacity(found.len());
    for (name, groups) in found {
        let key = key(schema::PORT, &name);
        let speed = databases.field(Database::Config, &key, "speed")?;
        let speed: Option<u64> = speed.as_ref().and_then(|speed| speed.parse().ok());
        let Some(speed) = speed.filter(|speed| (1..=10_000_000).contains(speed)) else {
            return Err(Error::switch(
                config(&key),
                "speed is missing or no number of Mbit/s",
            ));
        };
        let absent = |table: &str, name: &str| {
            let key = format!("{} {table}", Database::Counters.name());
            Error::switch(key, format!("has no {name}; are its counters polled?"))
        };
        let oid = ports
            .get(&name)
            .ok_or_else(|| absent(schema::PORT_MAP, &name))?;
        let mut complete_groups = Vec::with_capacity(groups.len());
        for (mut group, indices) in groups {
            for index in indices {
                let queue = format!("{name}:{index}");
                let oid = queues
                    .get(&queue)
                    .ok_or_else(|| absent(schema::QUEUE_MAP, &queue))?;
                group.oids.push(oid.clone());
            }
            complete_groups.push(group);
        }
        complete.push(Port {
            rate_bps: speed * 1_000_000,
            oid: oid.clone(),
            queues: complete_groups,
            name,
        });
    }
    Ok(complete)
}

fn map(
    databases: &mut Databases,
    table: &str,
    remedy: &str,
) -> Result<HashMap<String, String>, Error> {
    let map = databases.hash(Database::Counters, table)?;
    match map.is_empty() {
        false => Ok(map),
        true => Err(Error::switch(
            format!("{} {table}", Database::Counters.name()),
            format!(
                "is not there; is this a switch with SONiC, and are counters polled (`{remedy}`)?"
            ),
        )),
    }
}

/// Splits the number from a name, so that `Ethernet8` sorts before `Ethernet16`.
fn numbered(name: &str) -> (String, u64, String) {
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit());
    let number = name[stem.len()..].parse().unwrap_or(0);
    (stem.to_owned(), number, name.to_owned())
}

fn listed(names: &[String]) -> String {
    match names {
        [] => "none".to_owned(),
        names => names.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_queues_are_read() {
        assert_eq!(place("Ethernet0|3"), Ok(("Ethernet0", 3..=3)));
        assert_eq!(place("Ethernet12|0-2"), Ok(("Ethernet12", 0..=2)));
        assert_eq!(
            place("Ethernet0,Ethernet4|0-2"),
            Ok(("Ethernet0,Ethernet4", 0..=2))
        );
        for (name, word) in [
            ("lc1|asic0|Ethernet0|0-2", "chassis"),
            ("Ethernet0", "must be"),
            ("Ethernet0|2-1", "no range"),
            ("Ethernet0|x", "no range"),
            ("Ethernet0|0-99", "no range"),
        ] {
            let problem = place(name).unwrap_err();
            assert!(problem.contains(word), "{name}: {problem}");
        }
    }

    #[test]
    fn zero_profiles_are_known_by_their_values() {
        let profile = |fields: &[(&str, &str)]| {
            let owned = |&(field, value): &(&str, &str)| (field.to_owned(), value.to_owned());
            fields.iter().map(owned).collect::<BTreeMap<_, _>>()
        };
        for threshold in [("dynamic_th", "-8"), ("static_th", "0")] {
            assert!(is_zero(&profile(&[("size", "0"), threshold])));
            assert!(!is_zero(&profile(&[("size", "1518"), threshold])));
            assert!(!is_zero(&profile(&[threshold])));
        }
        for threshold in [("dynamic_th", "-7"), ("static_th", "1518"), ("xon", "0")] {
            assert!(!is_zero(&profile(&[("size", "0"), threshold])));
        }
    }

    #[test]
    fn ports_are_in_the_order_of_their_numbers() {
        let mut names = ["Ethernet16", "Ethernet8", "Ethernet0", "mgmt"];
        names.sort_by_cached_key(|name| numbered(name));
        assert_eq!(names, ["Ethernet0", "Ethernet8", "Ethernet16", "mgmt"]);
    }
}
