//! Lookup table of the neighbours of all ports of a network.

use super::link::LinkKind;
use super::topology::{Neighbour, SwitchId, Topology};

/// A port's line and the node at its other end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct PortLink {
    /// Port of the switch at the other end that leads back; 0 if a host is there.
    pub(crate) back: u16,
    pub(crate) line: LinkKind,
    pub(crate) to: Neighbour,
}

/// The ports of all switches. Empty for a single switch, whose ports need no lookup.
#[derive(Clone, Debug)]
pub(crate) struct PortLinks {
    /// Place of each switch's first port in `ports`.
    first: Box<[usize]>,
    ports: Box<[PortLink]>,
}

impl PortLinks {
    /// Builds the table of a network with this number of switches.
    pub(crate) fn of<T: Topology>(topology: &T, switches: usize) -> PortLinks {
        let (mut first, mut ports) = (Vec::new(), Vec::new());
        let switches = (0..u16::MAX).take(if T::IS_FABRIC { switches } else { 0 });
        for at in switches.map(SwitchId) {
            first.push(ports.len());
            ports.extend((0..topology.ports(at)).map(|port| PortLink {
                back: port_back(topology, at, port),
                line: topology.line(at, port),
                to: topology.neighbour(at, port),
            }));
        }
        PortLinks {
            first: first.into_boxed_slice(),
            ports: ports.into_boxed_slice(),
        }
    }

    /// Returns the line and the neighbour of a port.
    #[inline(always)]
    pub(crate) fn at(&self, switch: SwitchId, port: usize) -> PortLink {
        self.ports[self.first[switch.index()] + port]
    }
}

/// Returns the port at the other end of a link. The n-th of several parallel links leads to the n-th port
/// there.
fn port_back<T: Topology>(topology: &T, at: SwitchId, port: usize) -> u16 {
    let Neighbour::Switch(to) = topology.neighbour(at, port) else {
        return 0;
    };
    let leading = |from: SwitchId, to: SwitchId| {
        let ports = 0..topology.ports(from);
        ports.filter(move |port| topology.neighbour(from, *port) == Neighbour::Switch(to))
    };
    let place = leading(at, to).take_while(|other| *other < port).count();
    let back = leading(to, at).nth(place);
    back.and_then(|back| u16::try_from(back).ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::topology::{LeafSpine, OneSwitch, Routing};

    #[test]
    fn every_port_is_found() {
        let network = LeafSpine {
            leaves: 3,
            hosts_per_leaf: 4,
            spines: 2,
            links_per_pair: 2,
            routing: Routing::default(),
        };
        let port_links = PortLinks::of(&network, 5);
        for at in (0..5).map(SwitchId) {
            for port in 0..network.ports(at) {
                let port_link = port_links.at(at, port);
                assert_eq!(port_link.line, network.line(at, port));
                assert_eq!(port_link.to, network.neighbour(at, port));
            }
        }
        assert_eq!(port_links.ports.len(), 3 * 8 + 2 * 6);
    }

    #[test]
    fn a_single_switch_has_no_table() {
        let port_links = PortLinks::of(&OneSwitch { ports: 16 }, 1);
        assert!(port_links.first.is_empty() && port_links.ports.is_empty());
    }
}
