//! A policy that decides like another one and records the calls of the switch.

use std::collections::VecDeque;

use bufgym_sim::scenario::Scenario;
use bufgym_sim::switch::{Loss, PacketView, Policy, Verdict, View};
use bufgym_sim::units::{Duration, Instant};

/// A packet that left a port.
#[derive(Clone, Copy, Debug)]
pub struct Departure {
    /// Wire bytes that entered the queue in this packet's turn.
    pub enqueued_bytes: u64,
    /// Wire bytes that left.
    pub bytes: u64,
    /// Time at which the packet entered the queue.
    pub enqueued: Instant,
    /// Time at which the last bit of the packet before it had left; zero for the first.
    pub port_free: Instant,
    /// Time at which the last bit of the packet left.
    pub left: Instant,
    /// Time that the line needs for the packet.
    pub transmission: Duration,
}

/// Wrapper of a policy.
#[derive(Clone, Debug)]
pub struct Probe<P> {
    inner: P,
    overhead_bytes: u64,
    count_in_service: bool,
    /// Bytes and time of entry of each packet in each queue, the one in service first.
    queues: Vec<VecDeque<(u64, Instant)>>,
    free_since: Vec<Instant>,
    /// Departures in the order in which the packets left.
    pub departures: Vec<Departure>,
    /// Packets that entered a queue.
    pub enqueued: u64,
    /// Packets dropped.
    pub drops: u64,
    /// Bytes dropped.
    pub dropped_bytes: u64,
    /// Description of the first problem.
    pub problem: Option<String>,
    /// True if the policy has named a queue that loses its head.
    expelling: bool,
}

impl<P> Probe<P> {
    /// Wraps `inner`, for a switch of `scenario`.
    pub fn new(inner: P, scenario: &Scenario) -> Probe<P> {
        let ports = scenario.port_count();
        Probe {
            inner,
            overhead_bytes: u64::from(scenario.packets.overhead_bytes),
            count_in_service: scenario.queues.count_in_service,
            queues: vec![VecDeque::new(); ports],
            free_since: vec![Instant::ZERO; ports],
            departures: Vec::new(),
            enqueued: 0,
            drops: 0,
            dropped_bytes: 0,
            problem: None,
            expelling: false,
        }
    }

    /// Returns the number of packets in all queues, those in service included.
    pub fn queued(&self) -> usize {
        self.queues.iter().map(VecDeque::len).sum()
    }

    fn expect(&mut self, right: bool, problem: impl FnOnce() -> String) {
        if !right && self.problem.is_none() {
            self.problem = Some(problem());
        }
    }

    /// Compares the switch's count of a queue with the packets noted, of which the first
    /// `uncounted` do not count.
    fn compare(&mut self, view: View<'_>, port: usize, uncounted: usize) {
        let noted: u64 = self.queues[port].iter().skip(uncounted).map(|p| p.0).sum();
        let (counted, now) = (view.buffer.queue(port), view.now);
        self.expect(counted == noted, || {
            format!("at {now}: port {port} counts {counted} B, {noted} B are queued")
        });
    }
}

impl<P> Probe<P> {
    /// Removes an enqueued packet that leaves without being sent: the one behind that in service, or
    /// the last one.
    fn remove(&mut self, packet: PacketView) {
        let queue = &mut self.queues[packet.port];
        let at = if self.expelling { 1 } else { queue.len() - 1 };
        let noted = if at > 0 { queue.remove(at) } else { None };
        self.enqueued -= 1;
        self.expect(noted.is_some_and(|noted| noted.0 == packet.bytes), || {
            format!("{packet:?} was pushed out, {noted:?} was queued")
        });
    }
}

impl<P: Policy> Policy for Probe<P> {
    fn on_arrival(&mut self, view: View<'_>, packet: PacketView) -> Verdict {
        let bytes = packet.bytes;
        let fits = view.buffer.fits(bytes);
        self.expect(fits, || format!("asked about {bytes} B that do not fit"));
        self.inner.on_arrival(view, packet)
    }

    fn on_enqueue(&mut self, view: View<'_>, packet: PacketView) {
        let PacketView { port, bytes, .. } = packet;
        let in_service = usize::from(!self.count_in_service && !self.queues[port].is_empty());
        self.queues[port].push_back((bytes, view.now));
        self.enqueued += 1;
        self.compare(view, port, in_service);
        self.inner.on_enqueue(view, packet);
    }

    fn on_departure(&mut self, view: View<'_>, packet: PacketView) {
        let PacketView { port, bytes, .. } = packet;
        let noted = self.queues[port].pop_front();
        self.expect(noted.is_some(), || {
            format!("{bytes} B left the empty queue of port {port}")
        });
        if let Some((enqueued_bytes, enqueued)) = noted {
            self.departures.push(Departure {
                enqueued_bytes,
                bytes,
                enqueued,
                port_free: self.free_since[port],
                left: view.now,
                transmission: view.rate.transmission_time(bytes + self.overhead_bytes),
            });
        }
        self.free_since[port] = view.now;
        // The next packet has not begun to leave: it still counts.
        self.compare(view, port, 0);
        self.inner.on_departure(view, packet);
    }

    fn on_drop(&mut self, view: View<'_>, packet: PacketView, loss: Loss) {
        let bytes = packet.bytes;
        if loss == Loss::PushedOut {
            self.remove(packet);
            self.drops += 1;
            self.dropped_bytes += bytes;
            return self.inner.on_drop(view, packet, loss);
        }
        if loss == Loss::Head {
            let noted = self.queues[packet.port].pop_front();
            self.enqueued -= 1;
            self.drops += 1;
            self.dropped_bytes += bytes;
            self.expect(noted.is_some_and(|noted| noted.0 == bytes), || {
                format!("{packet:?} was dropped at the head, {noted:?} was queued")
            });
            return self.inner.on_drop(view, packet, loss);
        }
        // Queue management is asked before room is made for a packet.
        if loss == Loss::Early {
            self.drops += 1;
            self.dropped_bytes += bytes;
            return self.inner.on_drop(view, packet, loss);
        }
        let full = loss == Loss::Full;
        let fits = view.buffer.fits(bytes);
        self.expect(full != fits, || {
            format!("a drop for want of room: {full}, although {bytes} B fit: {fits}")
        });
        self.drops += 1;
        self.dropped_bytes += bytes;
        self.inner.on_drop(view, packet, loss);
    }

    fn pushes_out(&self) -> bool {
        self.inner.pushes_out()
    }

    fn victim(&mut self, view: View<'_>, packet: PacketView, lengths: &[u64]) -> Option<usize> {
        self.inner.victim(view, packet, lengths)
    }

    fn expel(&mut self, view: View<'_>) -> Option<usize> {
        let queue = self.inner.expel(view);
        self.expelling = queue.is_some();
        queue
    }

    fn decision_due(&self) -> bool {
        self.inner.decision_due()
    }

    fn threshold(&self, view: View<'_>, port: usize) -> Option<u64> {
        self.inner.threshold(view, port)
    }

    fn alpha(&self, port: usize) -> Option<f64> {
        self.inner.alpha(port)
    }
}
