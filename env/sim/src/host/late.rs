//! Late binding: a flow creates a packet when its host can soon send it (Linux: TCP small queues, two
//! packets of a flow below TCP). So the sender decides as late as possible which segment it sends, and
//! whether that is a retransmission. The times that it measures contain no wait at its own host.

use super::Hosts;
use crate::engine::Engine;
use crate::engine::topology::Topology;

impl<T: Topology> Hosts<T> {
    /// Returns true if the queue of the host has room for one more packet of the flow. With late binding, that
    /// is if fewer than two wait; for RDMA, if none waits; otherwise always.
    #[inline(always)]
    pub(super) fn has_room(&self, flow: u32) -> bool {
        !self.pulls || self.has_room_late(flow)
    }

    fn has_room_late(&self, flow: u32) -> bool {
        let flow = &self.flows[flow as usize];
        match flow.is_rdma() {
            true => flow.waiting.is_empty(),
            false => !self.late_binding || flow.waiting.has_at_most_one(),
        }
    }

    /// Handles that the line of a host has become free. The flow whose packet it takes may create another one.
    #[cold]
    pub(super) fn line_is_free_late(&mut self, host: u16, engine: &mut Engine<T>) {
        self.refill_sent(host, engine);
        let next = self.nics.next_flow(host, &self.flows);
        let leaving = next.and_then(|flow| self.next_departure(flow, engine));
        self.nics.line_is_free(host, &mut self.flows, engine);
        match (next, leaving) {
            (Some(flow), Some(bytes)) => self.depart(flow, bytes, engine),
            (Some(flow), None) if self.late_binding => self.refill(flow, engine),
            _ => {}
        }
    }

    /// Wakes the host after a flow has put packets into its queue.
    #[cold]
    pub(super) fn wake_late(&mut self, host: u16, flow: u32, engine: &mut Engine<T>) {
        if self.nics.is_idle(host) {
            self.line_is_free_late(host, engine);
        }
        if self.late_binding {
            self.refill(flow, engine);
        }
    }

    /// Creates packets instead of one that has left the queue; the line is busy.
    pub(super) fn refill(&mut self, flow: u32, engine: &mut Engine<T>) {
        if self.fill(flow, engine) {
            self.arm_timer(flow, engine);
        }
        if self.settings.paced {
            self.arm_pacer(flow, engine);
        }
    }
}
