//! A switch whose arrivals come from a caller instead of hosts.

use super::{Admission, Policy, Switch, SwitchObserver};
use crate::engine::packet::{Packet, PacketId, PacketStore};
use crate::units::{Instant, Rate};

/// A [`Switch`] with one queue per port, the packets that it stores, and what its ports are sending. Packets leave at
/// line rate; of several that leave at the same instant, that of the lowest port is first.
#[derive(Clone, Debug)]
pub(crate) struct DrivenSwitch<P> {
    pub(crate) switch: Switch<P>,
    pub(crate) packets: PacketStore,
    pub(crate) rate: Rate,
    pub(crate) now: Instant,
    /// Bytes that a packet takes on the line besides those that the buffer counts.
    overhead: u64,
    /// The packet that each port is sending, and the time when its last bit leaves.
    serving: Vec<Option<(Instant, PacketId)>>,
}

impl<P: Policy> DrivenSwitch<P> {
    /// Takes an empty switch with ports of this rate, on whose lines packets have `overhead` bytes more.
    pub(crate) fn new(switch: Switch<P>, rate: Rate, overhead: u64) -> DrivenSwitch<P> {
        let mut packets = PacketStore::default();
        if switch.pushes_out() {
            packets.link_both_ways();
        }
        DrivenSwitch {
            serving: vec![None; switch.ports()],
            switch,
            packets,
            rate,
            overhead,
            now: Instant::ZERO,
        }
    }

    /// Sets the clock.
    ///
    /// # Panics
    /// When `at` lies in the past.
    pub(crate) fn advance_to(&mut self, at: Instant) {
        assert!(at >= self.now, "time goes back");
        self.now = at;
    }

    /// Adds the arrival of a packet for the port that its queue names, at the instant `at`. A lost packet stays in the
    /// store until the caller takes it out.
    ///
    /// # Panics
    /// When there is no such port or `at` lies in the past.
    pub(crate) fn arrive<O: SwitchObserver>(
        &mut self,
        at: Instant,
        packet: Packet,
        observer: &mut O,
    ) -> (PacketId, Admission) {
        self.advance_to(at);
        let port = usize::from(packet.queue);
        let id = self.packets.insert(packet);
        let admission = self.switch.arrive(&mut self.packets, id, at, observer);
        if let Admission::Served = admission {
            self.serve(port, id);
        }
        (id, admission)
    }

    /// Returns the time at which the next packet leaves, and its port, if one is being sent.
    pub(crate) fn next_departure(&self) -> Option<(Instant, usize)> {
        let ports = self.serving.iter().enumerate();
        ports
            .filter_map(|(port, serving)| Some((serving.as_ref()?.0, port)))
            .min()
    }

    /// Lets the next packet leave, if one is being sent. It stays in the store until the caller takes it out.
    pub(crate) fn depart<O: SwitchObserver>(
        &mut self,
        observer: &mut O,
    ) -> Option<(PacketId, usize)> {
        let (at, port) = self.next_departure()?;
        let (_, id) = self.serving[port].take()?;
        self.advance_to(at);
        if let Some(next) = self.switch.sent(&mut self.packets, id, at, observer) {
            self.serve(port, next);
        }
        Some((id, port))
    }

    fn serve(&mut self, port: usize, id: PacketId) {
        let bytes = u64::from(self.packets[id].wire_bytes) + self.overhead;
        self.serving[port] = Some((self.now + self.rate.transmission_time(bytes), id));
    }
}
