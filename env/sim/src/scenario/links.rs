//! Networks given by their links.

use std::cmp::Reverse;
use std::collections::{HashMap, VecDeque};
use std::fmt;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;

use bufgym_util::input::{self, excerpt};
use serde::Serialize;

use crate::units::{Duration, Rate};

/// Most bytes of a file of links.
const MAX_FILE: u64 = 8 << 20;

/// Most hosts of a network.
const MAX_HOSTS: usize = 1 << 15;

/// Most switches of a network: the next hops of every pair are kept in memory.
const MAX_SWITCHES: usize = 2_048;

/// Most links of a network.
const MAX_LINKS: usize = 1 << 16;

/// Most pairs of a rate and a delay among the links between switches.
const MAX_KINDS: usize = 250;

/// First line of a file of links.
const HEADER: &str = "a,b,rate_bps,delay_ns";

/// An end of a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Node {
    /// The host with this number.
    Host(u16),
    /// The switch with this number.
    Switch(u16),
}

/// A full-duplex link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Link {
    /// Its two ends.
    pub ends: [Node; 2],
    /// Rate in each direction.
    pub rate: Rate,
    /// One-way propagation delay.
    pub delay: Duration,
}

/// Hosts, switches, and the links between them.
///
/// The text form has a link in every line, or after every blank: its two ends, its rate in bit/s and its one-way
/// delay in ns, as in `h0,leaf0,10000000000,500`. The node `h` with a number is the host of this number, any other name
/// is that of a switch. Switches are numbered in the order in which they first occur, and the ports of a switch in
/// the order of its links.
#[derive(Clone, PartialEq, Debug)]
pub struct NetworkLinks {
    switches: Vec<String>,
    hosts: usize,
    links: Vec<Link>,
    /// One-way delay of the longest path between two hosts, propagation only.
    longest: Duration,
    /// Most switches on the path between two hosts.
    most_switches: u32,
}

/// The error for links that are not a network.
#[derive(Debug, thiserror::Error)]
pub enum LinksError {
    /// A file that cannot be read.
    #[error("{}: cannot read the links: {source}", excerpt(.path))]
    File {
        /// The file.
        path: String,
        /// Reason of the failure.
        source: std::io::Error,
    },
    /// A line that is not a link, or a link that does not fit.
    #[error("{place}: {problem}")]
    Link {
        /// File and line, or the number of the link.
        place: String,
        /// The problem, and what is valid.
        problem: String,
    },
    /// Links that do not connect all hosts.
    #[error("{0}")]
    Network(String),
}

impl NetworkLinks {
    /// Reads a file of links. Its first line is `a,b,rate_bps,delay_ns`; empty lines and lines that begin with `#` are
    /// skipped.
    ///
    /// # Errors
    /// A file that cannot be read, a line that is not a link, and links that are not a network.
    pub fn read(path: &str) -> Result<NetworkLinks, LinksError> {
        let failed = |source| LinksError::File {
            path: path.to_owned(),
            source,
        };
        if !Path::new(path).is_file() && Path::new(path).exists() {
            return Err(failed(std::io::Error::other("not a regular file")));
        }
        let text = input::read_text(Path::new(path), MAX_FILE).map_err(failed)?;
        let mut lines = (1..).zip(text.lines().map(str::trim));
        let first = lines.next().map_or("", |(_, line)| line);
        if first.trim_start_matches('\u{feff}') != HEADER {
            return Err(LinksError::Link {
                place: format!("{}:1", excerpt(path)),
                problem: format!("the first line is `{}`; must be {HEADER}", excerpt(first)),
            });
        }
        let links = lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        let place = |line: usize| format!("{}:{line}", excerpt(path));
        NetworkLinks::of(links, place)
    }

    fn of<'a>(
        lines: impl Iterator<Item = (usize, &'a str)>,
        place: impl Fn(usize) -> String,
    ) -> Result<NetworkLinks, LinksError> {
        let mut names: HashMap<&str, u16> = HashMap::new();
        let mut network = NetworkLinks {
            switches: Vec::new(),
            hosts: 0,
            links: Vec::new(),
            longest: Duration::ZERO,
            most_switches: 1,
        };
        // The line of each host's link.
        let mut hosts: HashMap<u16, usize> = HashMap::new();
        for (number, line) in lines {
            let invalid = |problem: String| LinksError::Link {
                place: place(number),
                problem,
            };
            if network.links.len() == MAX_LINKS {
                return Err(invalid(format!("a network has at most {MAX_LINKS} links")));
            }
            let [a, b, rate, delay] = fields(line).map_err(invalid)?;
            let mut ends = [Node::Host(0); 2];
            for (end, name) in ends.iter_mut().zip([a, b]) {
                *end = network.node(name, &mut names).map_err(invalid)?;
                if let Node::Host(host) = *end
                    && let Some(first) = hosts.insert(host, number)
                {
                    let problem = format!(
                        "h{host} has a link already ({}); a host has one",
                        place(first)
                    );
                    return Err(invalid(problem));
                }
            }
            let rate = whole(rate, 1_000_000, 10_000_000_000_000)
                .ok_or_else(|| invalid(expected("rate_bps", rate, "10^6 to 10^13 bit/s")))?;
            let delay = whole(delay, 0, 10_000_000_000)
                .ok_or_else(|| invalid(expected("delay_ns", delay, "0 to 10^10 ns")))?;
            match ends {
                [Node::Host(_), Node::Host(_)] => {
                    return Err(invalid(
                        "two hosts; a host has a link to a switch".to_owned(),
                    ));
                }
                [Node::Switch(a), Node::Switch(b)] if a == b => {
                    return Err(invalid("both ends are the same switch".to_owned()));
                }
                _ => {}
            }
            network.links.push(Link {
                ends,
                rate: Rate(rate),
                delay: Duration::from_ns(delay),
            });
        }
        network.hosts = hosts.len();
        network.check()?;
        (network.longest, network.most_switches) = network.longest_path();
        Ok(network)
    }

    /// Returns the node of this name. Adds a switch that is not known yet.
    fn node<'a>(
        &mut self,
        name: &'a str,
        names: &mut HashMap<&'a str, u16>,
    ) -> Result<Node, String> {
        let is_valid = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
        if name.is_empty() || name.len() > 64 || !name.chars().all(is_valid) {
            return Err(format!(
                "`{}` is not a name; must be up to 64 letters, digits, _, - and .",
                excerpt(name)
            ));
        }
        if let Some(number) = name.strip_prefix('h')
            && number.bytes().all(|byte| byte.is_ascii_digit())
            && !number.is_empty()
        {
            let host = number
                .parse()
                .ok()
                .filter(|host| usize::from(*host) < MAX_HOSTS);
            let host = host.ok_or_else(|| {
                format!("{name}: hosts are numbered from h0 to h{}", MAX_HOSTS - 1)
            })?;
            return Ok(Node::Host(host));
        }
        let next = self.switches.len();
        if let Some(number) = names.get(name) {
            return Ok(Node::Switch(*number));
        }
        let number = u16::try_from(next).ok().filter(|_| next < MAX_SWITCHES);
        let number =
            number.ok_or_else(|| format!("a network has at most {MAX_SWITCHES} switches"))?;
        names.insert(name, number);
        self.switches.push(name.to_owned());
        Ok(Node::Switch(number))
    }

    fn check(&self) -> Result<(), LinksError> {
        let wrong = |problem: String| Err(LinksError::Network(problem));
        if self.hosts < 2 {
            return wrong(format!(
                "{} hosts; must be at least two, named h0, h1, …",
                self.hosts
            ));
        }
        let mut kinds = vec![None; self.hosts];
        for (host, kind) in self.links.iter().filter_map(Link::of_host) {
            match kinds.get_mut(usize::from(host)) {
                Some(place) => *place = Some(kind),
                None => {
                    let last = self.hosts - 1;
                    return wrong(format!(
                        "h{host} is beyond h{last}; hosts are numbered without gaps"
                    ));
                }
            }
        }
        if let Some(other) = kinds.iter().position(|kind| *kind != kinds[0]) {
            return wrong(format!(
                "the links of h0 and h{other} differ; those of all hosts must have one rate and one delay"
            ));
        }
        if self.kinds().len() > MAX_KINDS {
            return wrong(format!(
                "the links between switches have more than {MAX_KINDS} pairs of rate and delay"
            ));
        }
        let distances = self.hops_to(0, &self.adjacency());
        match distances.iter().position(|hops| *hops == u32::MAX) {
            None => Ok(()),
            Some(apart) => wrong(format!(
                "no path leads from {} to {}; all switches must be connected",
                self.switches[0], self.switches[apart]
            )),
        }
    }

    /// Returns the neighbours of every switch that are switches, each with the number of the link to it.
    pub(crate) fn adjacency(&self) -> Vec<Vec<(usize, usize)>> {
        let mut neighbours = vec![Vec::new(); self.switches.len()];
        for (number, link) in self.links.iter().enumerate() {
            if let [Some(a), Some(b)] = link.ends.map(Node::switch) {
                neighbours[a].push((b, number));
                neighbours[b].push((a, number));
            }
        }
        neighbours
    }

    /// Returns the number of links from every switch to one, on the shortest path; `u32::MAX` without a path.
    pub(crate) fn hops_to(&self, switch: usize, adjacency: &[Vec<(usize, usize)>]) -> Vec<u32> {
        let mut hops = vec![u32::MAX; self.switches.len()];
        let mut next = VecDeque::from([switch]);
        hops[switch] = 0;
        while let Some(at) = next.pop_front() {
            for &(other, _) in &adjacency[at] {
                if hops[other] == u32::MAX {
                    hops[other] = hops[at] + 1;
                    next.push_back(other);
                }
            }
        }
        hops
    }

    /// Returns the one-way delay of the longest of all shortest paths between two hosts, and the most switches on one.
    fn longest_path(&self) -> (Duration, u32) {
        let adjacency = self.adjacency();
        let mut has_hosts = vec![false; self.switches.len()];
        let mut of_host = Duration::ZERO;
        for link in &self.links {
            if let Some((_, (_, delay))) = link.of_host() {
                of_host = delay;
                for switch in link.ends.iter().filter_map(|end| end.switch()) {
                    has_hosts[switch] = true;
                }
            }
        }
        let (mut longest, mut most_hops) = (Duration::ZERO, 0);
        for to in (0..self.switches.len()).filter(|switch| has_hosts[*switch]) {
            let hops = self.hops_to(to, &adjacency);
            let mut order: Vec<usize> = (0..hops.len()).collect();
            order.sort_by_key(|switch| hops[*switch]);
            let mut delays = vec![Duration::ZERO; hops.len()];
            for from in order {
                for &(other, link) in &adjacency[from] {
                    if hops[other] < hops[from] {
                        let delay = delays[other] + self.links[link].delay;
                        delays[from] = delays[from].max(delay);
                    }
                }
                if has_hosts[from] {
                    longest = longest.max(delays[from]);
                    most_hops = most_hops.max(hops[from]);
                }
            }
        }
        (longest + of_host + of_host, most_hops + 1)
    }

    /// Returns the number of hosts.
    pub fn hosts(&self) -> usize {
        self.hosts
    }

    /// Returns the names of the switches, by number.
    pub fn switches(&self) -> &[String] {
        &self.switches
    }

    /// Returns the links.
    pub fn links(&self) -> &[Link] {
        &self.links
    }

    /// Returns rate and delay of the hosts' links.
    pub(crate) fn host_kind(&self) -> (Rate, Duration) {
        let mut kinds = self.links.iter().filter_map(Link::of_host);
        kinds.next().expect("a network has hosts").1
    }

    /// Returns the pairs of a rate and a delay that links between switches have, the most frequent first; of equally
    /// frequent ones, the one that occurs first.
    pub(crate) fn kinds(&self) -> Vec<(Rate, Duration)> {
        let mut counts: Vec<((Rate, Duration), usize)> = Vec::new();
        let mut places: HashMap<(Rate, Duration), usize> = HashMap::new();
        for link in self.links.iter().filter(|link| link.of_host().is_none()) {
            let kind = (link.rate, link.delay);
            let place = *places.entry(kind).or_insert_with(|| {
                counts.push((kind, 0));
                counts.len() - 1
            });
            counts[place].1 += 1;
        }
        counts.sort_by_key(|(_, count)| Reverse(*count));
        counts.into_iter().map(|(kind, _)| kind).collect()
    }

    /// Returns the number of ports of every switch.
    pub(crate) fn ports_by_switch(&self) -> Vec<usize> {
        let mut ports = vec![0; self.switches.len()];
        for end in self.links.iter().flat_map(|link| link.ends) {
            if let Some(switch) = end.switch() {
                ports[switch] += 1;
            }
        }
        ports
    }

    /// Returns the rate of all ports of the switch of host 0 together, Gbit/s.
    pub(crate) fn first_switch_gbps(&self) -> f64 {
        let of_first = self
            .links
            .iter()
            .find(|link| link.ends.contains(&Node::Host(0)));
        let switch = of_first.and_then(|link| link.ends.iter().find_map(|end| end.switch()));
        let has = |link: &&Link| link.ends.iter().any(|end| end.switch() == switch);
        let rates = self.links.iter().filter(has);
        rates.map(|link| link.rate.0 as f64 * 1e-9).sum()
    }

    /// Returns the most switches on the path between two hosts.
    pub(crate) fn most_switches(&self) -> u32 {
        self.most_switches
    }

    /// Returns the round-trip time of the longest path between two hosts, propagation only.
    pub(crate) fn longest_round_trip(&self) -> Duration {
        self.longest + self.longest
    }
}

impl Node {
    /// Returns the number of a switch.
    pub(crate) fn switch(self) -> Option<usize> {
        match self {
            Node::Host(_) => None,
            Node::Switch(switch) => Some(usize::from(switch)),
        }
    }
}

impl Link {
    /// Returns the host of a link with one, and the link's rate and delay.
    fn of_host(&self) -> Option<(u16, (Rate, Duration))> {
        self.ends.iter().find_map(|end| match end {
            Node::Host(host) => Some((*host, (self.rate, self.delay))),
            Node::Switch(_) => None,
        })
    }
}

fn fields(line: &str) -> Result<[&str; 4], String> {
    let fields: Vec<&str> = line.split(',').map(str::trim).collect();
    fields.try_into().map_err(|_| {
        format!(
            "`{}` is not a link; must be {HEADER}, as in h0,leaf0,10e9,500",
            excerpt(line)
        )
    })
}

fn expected(field: &str, found: &str, range: &str) -> String {
    format!(
        "{field} is `{}`; must be a whole number from {range}",
        excerpt(found)
    )
}

/// Returns a whole number, such as `10e9`, within a range.
fn whole(text: &str, least: u64, most: u64) -> Option<u64> {
    let number = match text.parse::<u64>() {
        Ok(number) => number,
        Err(_) => {
            let number = text
                .parse::<f64>()
                .ok()
                .filter(|number| number.fract() == 0.0)?;
            // All within the range are whole in 64 bits.
            (0.0..=1e15)
                .contains(&number)
                .then(|| bufgym_util::convert::floor_u64(number))?
        }
    };
    (least..=most).contains(&number).then_some(number)
}

impl fmt::Display for NetworkLinks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |node: &Node| match node {
            Node::Host(host) => format!("h{host}"),
            Node::Switch(switch) => self.switches[usize::from(*switch)].clone(),
        };
        for (number, link) in self.links.iter().enumerate() {
            let [a, b] = link.ends.each_ref().map(name);
            let (rate, delay) = (link.rate.0, link.delay.0 / 1_000);
            let blank = if number > 0 { " " } else { "" };
            write!(f, "{blank}{a},{b},{rate},{delay}")?;
        }
        Ok(())
    }
}

impl FromStr for NetworkLinks {
    type Err = LinksError;

    fn from_str(text: &str) -> Result<NetworkLinks, LinksError> {
        NetworkLinks::of((1..).zip(text.split_whitespace()), |link| {
            format!("link {link}")
        })
    }
}

/// Kinds of networks.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(into = "String")]
pub enum TopologyKind {
    /// One switch with a host on every port.
    Single,
    /// Leaf switches with hosts, each connected to every spine switch.
    LeafSpine,
    /// Switches and hosts connected by these links.
    Links(Arc<NetworkLinks>),
}

impl TopologyKind {
    /// Returns the name of the kind.
    pub fn name(&self) -> &'static str {
        match self {
            TopologyKind::Single => "single",
            TopologyKind::LeafSpine => "leafspine",
            TopologyKind::Links(_) => "links",
        }
    }
}

impl fmt::Display for TopologyKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            TopologyKind::Links(links) => write!(f, "{links}"),
            _ => f.pad(self.name()),
        }
    }
}

impl FromStr for TopologyKind {
    type Err = LinksError;

    /// Takes a name, links, or the name of a file of links, which contains a `.` or a `/`. The scenario holds the links,
    /// not the file that they came from.
    fn from_str(text: &str) -> Result<TopologyKind, LinksError> {
        Ok(match text {
            "single" => TopologyKind::Single,
            "leafspine" => TopologyKind::LeafSpine,
            _ if text.contains(',') => TopologyKind::Links(Arc::new(text.parse()?)),
            _ if text.contains(['.', '/']) => {
                TopologyKind::Links(Arc::new(NetworkLinks::read(text)?))
            }
            _ => {
                return Err(LinksError::Network(format!(
                    "`{}` is not one of single, leafspine, or a file of links with a . or / in its name{}",
                    excerpt(text),
                    input::suggestion(text, &["single", "leafspine"])
                )));
            }
        })
    }
}

impl From<TopologyKind> for String {
    fn from(kind: TopologyKind) -> String {
        kind.to_string()
    }
}
