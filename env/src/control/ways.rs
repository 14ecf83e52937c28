//! The paths of flows: the ports of the switches through which their data leaves.

use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;

use bufgym_sim::network::{
    LeafSpine, Neighbour, OneSwitch, PacketDirection, Route, SwitchId, Topology,
};
use bufgym_sim::scenario::{Scenario, ScenarioError};
use bufgym_sim::switch::Switch;
use bufgym_sim::switch::policy::ControlledThreshold;
use bufgym_sim::traffic::{Trace, host_number};
use bufgym_util::convert::index;

/// Largest number of switches on a path.
const MAX_HOPS: usize = 3;

/// Number of parts into which a flow's cost is divided, so that the switches on its path share it equally. It is a
/// multiple of every number of switches on a path.
const PARTS: u32 = 3;

/// A network whose switches can be controlled.
pub trait ControlTopology:
    Topology<
        PerSwitch<Switch<ControlledThreshold>>: Clone + Debug + Send + Sync,
        Events: Send + Sync,
    > + Send
    + Sync
{
    /// Returns the network of a scenario, for a trace with this seed.
    ///
    /// # Errors
    /// When the scenario has another network.
    fn for_trace(scenario: &Scenario, seed: u64) -> Result<Self, ScenarioError>;
}

impl ControlTopology for OneSwitch {
    fn for_trace(scenario: &Scenario, _seed: u64) -> Result<OneSwitch, ScenarioError> {
        scenario.require_single()?;
        Ok(OneSwitch {
            ports: scenario.port_count(),
        })
    }
}

impl ControlTopology for LeafSpine {
    /// Requires that spines have pools of their own: a decision is about the ports of one switch.
    fn for_trace(scenario: &Scenario, seed: u64) -> Result<LeafSpine, ScenarioError> {
        scenario.require_decidable()?;
        Ok(LeafSpine::of(scenario, seed))
    }
}

/// The paths of a trace's flows. Ports of all switches are numbered consecutively, switch by switch; such a number is
/// called a place.
///
/// With a single switch the path of a flow is the port of its receiver, and there is no table.
#[derive(Clone, Debug)]
pub(super) struct Paths<T> {
    topology: T,
    /// First place of every switch, and the number of all places.
    first: Arc<[usize]>,
    /// By number of the flow, in the order of starts.
    table: Arc<[Way]>,
}

/// Places of one flow, the last one at its receiver.
#[derive(Clone, Copy, Default, Debug)]
struct Way {
    places: [u32; MAX_HOPS],
    hops: u32,
}

impl<T: ControlTopology> Paths<T> {
    /// Creates the paths of `trace`'s flows between `switches` switches.
    ///
    /// Where packets of a flow take turns among equal links (`ecmp=spray`), the path is that of the first packet.
    pub(super) fn new(topology: T, switches: usize, trace: &Trace) -> Paths<T> {
        let mut first = vec![0];
        for switch in (0..switches).map(switch_id) {
            first.push(first[switch.index()] + topology.ports(switch));
        }
        let mut ways = Paths {
            topology,
            first: first.into(),
            table: Arc::default(),
        };
        if T::IS_FABRIC {
            let numbered = numbered(trace);
            let way = |(number, place): (u32, &u32)| ways.follow(trace, number, *place);
            ways.table = (0..).zip(&numbered).map(way).collect();
        }
        ways
    }

    fn follow(&self, trace: &Trace, number: u32, place: u32) -> Way {
        let flow = &trace.flows[place as usize];
        let route = Route {
            src: host_number(flow.src),
            dst: host_number(flow.dst),
            flow: number,
            direction: PacketDirection::Forward,
            turn: 0,
            came: None,
        };
        let mut at = self.topology.switch_of(route.src);
        let mut way = Way::default();
        loop {
            let port = self.topology.port_to(at, route);
            let place = u32::try_from(self.place(at, port));
            way.places[way.hops as usize] = place.expect("a network has fewer ports than 2^32");
            way.hops += 1;
            match self.topology.neighbour(at, port) {
                Neighbour::Host(_) => return way,
                Neighbour::Switch(next) => at = next,
            }
        }
    }

    pub(super) fn topology(&self) -> &T {
        &self.topology
    }

    /// Number of all ports.
    pub(super) fn places(&self) -> usize {
        self.first.last().copied().unwrap_or(0)
    }

    /// Returns the number of parts of a flow's cost.
    pub(super) fn parts() -> u32 {
        match T::IS_FABRIC {
            true => PARTS,
            false => 1,
        }
    }

    #[inline]
    pub(super) fn place(&self, switch: SwitchId, port: usize) -> usize {
        match T::IS_FABRIC {
            true => self.first[switch.index()] + port,
            false => port,
        }
    }

    /// The places of a switch.
    pub(super) fn places_of(&self, switch: SwitchId) -> Range<usize> {
        self.first[switch.index()]..self.first[switch.index() + 1]
    }

    /// Returns the place where the data of a flow leaves the network for the host `dst`.
    #[inline]
    pub(super) fn receiver(&self, number: u32, dst: u16) -> usize {
        if !T::IS_FABRIC {
            return usize::from(dst);
        }
        let way = &self.table[number as usize];
        way.places[way.hops as usize - 1] as usize
    }

    /// Calls `visit` with every place of a flow and its share of the flow, in parts of
    /// [`parts`](Paths::parts).
    #[inline]
    pub(super) fn visit(&self, number: u32, dst: u16, mut visit: impl FnMut(usize, u32)) {
        if !T::IS_FABRIC {
            return visit(usize::from(dst), 1);
        }
        let way = &self.table[number as usize];
        let share = PARTS / way.hops;
        for &place in &way.places[..way.hops as usize] {
            visit(place as usize, share);
        }
    }

    /// Same as [`visit`](Paths::visit) for one switch, with the number of the port there and the share as a factor.
    pub(super) fn visit_at(
        &self,
        switch: SwitchId,
        (number, dst): (u32, u16),
        mut visit: impl FnMut(usize, f64),
    ) {
        let own = self.places_of(switch);
        self.visit(number, dst, |place, share| {
            if own.contains(&place) {
                let factor = f64::from(share) / f64::from(Self::parts());
                visit(place - own.start, factor);
            }
        });
    }
}

/// The switch with this index.
pub(crate) fn switch_id(index: usize) -> SwitchId {
    let id = u16::try_from(index);
    SwitchId(id.expect("a network has fewer switches than 2^16"))
}

/// Places of the trace's flows in the order of starts, in which flows are numbered.
pub(super) fn numbered(trace: &Trace) -> Vec<u32> {
    let mut places: Vec<u32> = (0..).take(trace.flows.len()).collect();
    places.sort_by_key(|&place| trace.flows[index(u64::from(place))].start);
    places
}
