//! Networks given by their links, with shortest paths.

use std::borrow::Cow;
use std::sync::Arc;

use super::{Attachment, MAX_QUEUES, Neighbour, Route, Routing, SwitchId, Topology};
use crate::engine::clock::ClockOffset;
use crate::engine::fabric::FabricEvents;
use crate::engine::link::{LinkKind, Links};
use crate::scenario::{NetworkLinks, Node, Scenario, Tier};
use crate::units::{Duration, Rate};

/// Hosts and switches connected by links of their own rates and delays. Packets take shortest paths by the number of
/// links; of equally short ones, a switch chooses as [`Routing`] says.
///
/// The ports of a switch are numbered in the order of its links.
#[derive(Clone, Debug)]
pub struct LinkedNetwork {
    routes: Arc<Routes>,
    routing: Routing,
}

/// The link of a port.
#[derive(Clone, Copy, Debug)]
struct Port {
    to: Neighbour,
    kind: LinkKind,
    rate: Rate,
}

#[derive(Debug)]
struct Routes {
    attachments: Vec<Attachment>,
    /// First port of each switch in `ports`, and behind the last one the number of all ports.
    first: Vec<usize>,
    ports: Vec<Port>,
    /// For every switch and every destination switch the first of its `next`, and behind the last one their number.
    ranges: Vec<u32>,
    /// Ports on shortest paths.
    next: Vec<u16>,
}

impl Routes {
    fn of(network: &NetworkLinks) -> Routes {
        let switches = network.switches().len();
        let kinds = network.kinds();
        let mut ports: Vec<Vec<Port>> = vec![Vec::new(); switches];
        let mut attachments = vec![
            Attachment {
                switch: SwitchId(0),
                port: 0
            };
            network.hosts()
        ];
        // The port of either end, by link.
        let mut port_at = vec![[0; 2]; network.links().len()];
        for (link, port_at) in network.links().iter().zip(&mut port_at) {
            let kind = match link.ends.map(Node::switch) {
                [Some(_), Some(_)] => {
                    let place = kinds
                        .iter()
                        .position(|kind| *kind == (link.rate, link.delay));
                    LinkKind::of_switches(place.unwrap_or(0))
                }
                _ => LinkKind::HOST,
            };
            let [a, b] = link.ends;
            for (place, (at, to)) in [(a, b), (b, a)].into_iter().enumerate() {
                let Some(switch) = at.switch() else { continue };
                port_at[place] = ports[switch].len();
                let to = match to {
                    Node::Host(host) => {
                        attachments[usize::from(host)] = Attachment {
                            switch: SwitchId::of(switch),
                            port: number(ports[switch].len()),
                        };
                        Neighbour::Host(host)
                    }
                    Node::Switch(to) => Neighbour::Switch(SwitchId(to)),
                };
                let rate = link.rate;
                ports[switch].push(Port { to, kind, rate });
            }
        }
        let adjacency = network.adjacency();
        let hops: Vec<Vec<u32>> = (0..switches)
            .map(|to| network.hops_to(to, &adjacency))
            .collect();
        let (mut ranges, mut next) = (vec![0], Vec::new());
        for from in 0..switches {
            for hops in &hops {
                let nearer = adjacency[from]
                    .iter()
                    .filter(|(to, _)| hops[*to] < hops[from]);
                next.extend(nearer.map(|(_, link)| {
                    let is_second = network.links()[*link].ends[1].switch() == Some(from);
                    number(port_at[*link][usize::from(is_second)])
                }));
                ranges.push(
                    u32::try_from(next.len()).expect("fewer than 2,048² next hops of few ports"),
                );
            }
        }
        let mut first = vec![0];
        for ports in &ports {
            first.push(first[first.len() - 1] + ports.len());
        }
        Routes {
            attachments,
            first,
            ports: ports.concat(),
            ranges,
            next,
        }
    }

    fn switches(&self) -> usize {
        self.first.len() - 1
    }

    fn ports(&self, switch: SwitchId) -> &[Port] {
        &self.ports[self.first[switch.index()]..self.first[switch.index() + 1]]
    }

    /// Returns the ports of a switch on shortest paths to another one.
    fn next(&self, switch: SwitchId, to: SwitchId) -> &[u16] {
        let place = switch.index() * self.switches() + to.index();
        &self.next[self.ranges[place] as usize..self.ranges[place + 1] as usize]
    }
}

/// Returns the number of a port in a network that [`check`](Topology::check) accepts.
fn number(port: usize) -> u16 {
    u16::try_from(port).unwrap_or(u16::MAX)
}

impl LinkedNetwork {
    /// Returns the network of these links; `routing` chooses among equally short paths.
    ///
    /// Time and memory are proportional to the square of the number of switches.
    pub fn new(network: &NetworkLinks, routing: Routing) -> LinkedNetwork {
        LinkedNetwork {
            routes: Arc::new(Routes::of(network)),
            routing,
        }
    }
}

impl Topology for LinkedNetwork {
    type PerSwitch<S> = Vec<S>;
    type Events = FabricEvents;

    const IS_FABRIC: bool = true;

    fn hosts(&self) -> usize {
        self.routes.attachments.len()
    }

    fn check(&self) -> Result<(), String> {
        let ports = self.routes.first.windows(2).map(|pair| pair[1] - pair[0]);
        match ports.max() {
            Some(most) if most > MAX_QUEUES => Err(format!(
                "a switch has at most {MAX_QUEUES} ports; found {most}"
            )),
            _ => Ok(()),
        }
    }

    fn ports(&self, switch: SwitchId) -> usize {
        self.routes.ports(switch).len()
    }

    fn clock_offset(_propagation: Duration) -> ClockOffset {
        ClockOffset::default()
    }

    fn attachment(&self, host: u16) -> Attachment {
        self.routes.attachments[usize::from(host)]
    }

    #[inline]
    fn port_towards(&self, switch: SwitchId, destination: Attachment, route: Route) -> usize {
        if switch == destination.switch {
            return usize::from(destination.port);
        }
        let next = self.routes.next(switch, destination.switch);
        let chosen = match next.len() {
            1 => 0,
            count => self.routing.choose(switch, route, count),
        };
        usize::from(next[chosen])
    }

    fn sprays(&self) -> bool {
        self.routing.sprays()
    }

    /// Counts a set for every pair of switches.
    fn path_sets(&self) -> usize {
        self.routes.switches() * self.routes.switches()
    }

    fn path_set(
        &self,
        switch: SwitchId,
        destination: Attachment,
        _came: Option<(SwitchId, usize)>,
    ) -> Option<usize> {
        let several = self.routes.next(switch, destination.switch).len() > 1;
        several.then(|| switch.index() * self.routes.switches() + destination.switch.index())
    }

    fn links_on_path(&self, route: Route) -> Option<Vec<LinkKind>> {
        let mut at = self.attachment(route.src).switch;
        let mut path = vec![LinkKind::HOST];
        loop {
            let port = self.routes.ports(at)[self.port_to(at, route)];
            path.push(port.kind);
            match port.to {
                Neighbour::Host(_) => return Some(path),
                Neighbour::Switch(next) => at = next,
            }
        }
    }

    fn neighbour(&self, switch: SwitchId, port: usize) -> Neighbour {
        self.routes.ports(switch)[port].to
    }

    fn scenario_at<'a>(&self, scenario: &'a Scenario, switch: SwitchId) -> Cow<'a, Scenario> {
        let rates = self.routes.ports(switch).iter().map(|port| port.rate);
        Cow::Owned(scenario.with_ports(&rates.collect::<Vec<_>>()))
    }

    fn kind(&self, switch: SwitchId, _links: &Links) -> (&'static str, Option<f64>) {
        let is_host = |port: &Port| matches!(port.to, Neighbour::Host(_));
        let tier = match self.routes.ports(switch).iter().any(is_host) {
            true => Tier::Leaf,
            false => Tier::Spine,
        };
        (tier.name(), None)
    }

    fn line(&self, switch: SwitchId, port: usize) -> LinkKind {
        self.routes.ports(switch)[port].kind
    }

    fn per_switch<S, E>(&self, make: impl FnMut(SwitchId) -> Result<S, E>) -> Result<Vec<S>, E> {
        (0..self.routes.switches())
            .map(SwitchId::of)
            .map(make)
            .collect()
    }
}
