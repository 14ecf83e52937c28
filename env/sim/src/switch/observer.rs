//! What can be watched at a switch.

use super::{Loss, PacketView, View};
use crate::engine::packet::PacketId;
use crate::engine::topology::SwitchId;
use crate::units::Time;

/// Watches switches. Every hook does nothing by default; `at` is the switch, and instants are those
/// of its own clock.
pub trait SwitchObserver {
    /// The last bit of a packet has arrived; the view shows the state before anything is decided.
    #[inline(always)]
    fn arriving(&mut self, _at: SwitchId, _view: View<'_>, _packet: PacketView) {}

    /// Queue management has marked a packet that arrives, which is enqueued next.
    #[inline(always)]
    fn marked(&mut self, _at: SwitchId, _packet: PacketView) {}

    /// A packet was enqueued; the view shows the state after it.
    #[inline(always)]
    fn enqueued(&mut self, _at: SwitchId, _view: View<'_>, _packet: PacketView) {}

    /// Queue management lets a packet leave its queue to be sent, which is before its first bit is; only where
    /// there is queue management.
    #[inline(always)]
    fn leaving(&mut self, _at: SwitchId, _now: Time, _packet: PacketView) {}

    /// The last bit of a packet has left its port; the view shows the state after it.
    #[inline(always)]
    fn departed(&mut self, _at: SwitchId, _view: View<'_>, _packet: PacketView) {}

    /// A packet was lost; the view shows the state after it.
    #[inline(always)]
    fn lost(&mut self, _at: SwitchId, _view: View<'_>, _packet: PacketView, _loss: Loss) {}

    /// An enqueued packet waits for its port. Until it is lost or delivered no other packet has the
    /// same number.
    #[inline(always)]
    fn waits(&mut self, _id: PacketId, _now: Time) {}

    /// A packet's port begins to send it; `waited` tells whether it had to wait.
    #[inline(always)]
    fn served(&mut self, _id: PacketId, _now: Time, _waited: bool) {}
}

impl SwitchObserver for () {}
