//! Numbers of switches and packets, which all parts of the engine share.

use serde::Serialize;

/// Number of a switch, from 0.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Debug, Serialize)]
#[serde(transparent)]
pub struct SwitchId(pub u16);

impl SwitchId {
    /// Returns the number as an index.
    #[inline]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }

    /// Returns the switch with this index in a network that was [checked](super::topology::Topology::check).
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        reason = "a network has fewer switches than 16 bits can count"
    )]
    pub(super) fn of(index: usize) -> SwitchId {
        debug_assert!(index < 1 << 15);
        SwitchId(index as u16)
    }
}

/// Node at the other end of a switch port's link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Neighbour {
    /// A host.
    Host(u16),
    /// A switch.
    Switch(SwitchId),
}

/// Number of a packet in flight: its place in the store of all packets.
pub type PacketId = u32;

/// Number that stands for no packet.
pub(crate) const NO_PACKET: PacketId = PacketId::MAX;
