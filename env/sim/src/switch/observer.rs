//! Observers of a switch.

use super::{Loss, PacketView, View};
use crate::engine::packet::PacketId;
use crate::engine::topology::SwitchId;
use crate::units::Instant;

/// Watches switches. Every hook does nothing by default; `at` is the switch, and instants are those
/// of its own clock.
pub trait SwitchObserver {
    /// Called when the last bit of a packet has arrived; the view shows the state before any decision.
    #[inline(always)]
    fn arriving(&mut self, _at: SwitchId, _view: View<'_>, _packet: PacketView) {}

    /// Called when queue management has marked an arriving packet, which is enqueued next.
    #[inline(always)]
    fn marked(&mut self, _at: SwitchId, _packet: PacketView) {}

    /// Called when a packet was enqueued; the view shows the state after it.
    #[inline(always)]
    fn enqueued(&mut self, _at: SwitchId, _view: View<'_>, _packet: PacketView) {}

    /// Called when queue management lets a packet leave its queue to be sent, before its first bit is;
    /// only with queue management.
    #[inline(always)]
    fn leaving(&mut self, _at: SwitchId, _now: Instant, _packet: PacketView) {}

    /// Called when the last bit of a packet has left its port; the view shows the state after it.
    #[inline(always)]
    fn departed(&mut self, _at: SwitchId, _view: View<'_>, _packet: PacketView) {}

    /// Called when a packet was lost; the view shows the state after it.
    #[inline(always)]
    fn lost(&mut self, _at: SwitchId, _view: View<'_>, _packet: PacketView, _loss: Loss) {}

    /// Called when an enqueued packet begins to wait for its port. Until the packet is lost or
    /// delivered, no other packet has the same number.
    #[inline(always)]
    fn waits(&mut self, _id: PacketId, _now: Instant) {}

    /// Called when a packet's port begins to send it; `waited` is true if the packet had to wait.
    #[inline(always)]
    fn served(&mut self, _id: PacketId, _now: Instant, _waited: bool) {}
}

impl SwitchObserver for () {}
