//! The queue lengths that Longest Queue Drop would have.

use crate::switch::policy::lqd::longest_with;
use crate::switch::{PacketView, View};
use crate::units::{Duration, Instant, Rate};

/// The queue lengths `T` that Longest Queue Drop would have for the same arrivals, in bytes.
///
/// Arrivals follow Algorithm 2 of the Credence paper, with bytes instead of packets. If an arrival
/// of L bytes does not fit, the longest queue first loses L bytes; the arrival is counted in its
/// own queue. If its own queue is the longest, the arrival is lost.
///
/// A line drains the virtual queues of its port as long as they hold bytes, even if the real queues
/// are empty. While the real line sends a packet, the same number of virtual bytes leave with the
/// last bit of the packet. While it is idle, virtual bytes leave at line rate; they are subtracted
/// at the next access. Of several queues of a port, the queue whose packet is sent drains first,
/// then the queues in the order of their index.
#[derive(Clone, Debug)]
pub struct VirtualQueues {
    lengths: Vec<u64>,
    total: u64,
    lines: Vec<Line>,
    queues_per_port: usize,
}

/// The line of a port.
#[derive(Clone, Copy, Default, Debug)]
struct Line {
    /// Number of real packets in the queues of the port.
    packets: u32,
    /// Time up to which the virtual queues are drained, while there are no real packets.
    drained: Instant,
}

impl VirtualQueues {
    /// Creates empty virtual queues.
    pub fn new(ports: usize, queues_per_port: usize) -> VirtualQueues {
        VirtualQueues {
            lengths: vec![0; ports * queues_per_port],
            total: 0,
            lines: vec![Line::default(); ports],
            queues_per_port,
        }
    }

    /// Returns the length of a queue now, bytes.
    ///
    /// # Panics
    /// When the queue does not exist.
    pub fn length(&self, view: View<'_>, queue: usize) -> u64 {
        let port = queue / self.queues_per_port;
        let before = &self.lengths[port * self.queues_per_port..queue];
        let drained = self.idle_bytes(port, view.now, view.rate);
        let left = drained.saturating_sub(before.iter().sum());
        self.lengths[queue].saturating_sub(left)
    }

    /// Notes an arrival, whether the packet is accepted or not. Returns the length of its virtual
    /// queue, which includes the packet unless LQD would drop it, bytes.
    #[inline]
    pub fn arrive(&mut self, view: View<'_>, packet: PacketView) -> u64 {
        self.drain_idle(packet.port, view.now, view.rate);
        let capacity = view.buffer.capacity();
        if self.total + packet.bytes > capacity {
            return self.overflow(view, packet);
        }
        self.add(packet)
    }

    #[inline]
    fn add(&mut self, packet: PacketView) -> u64 {
        self.total += packet.bytes;
        let length = &mut self.lengths[packet.queue];
        *length += packet.bytes;
        *length
    }

    #[inline(never)]
    fn overflow(&mut self, view: View<'_>, packet: PacketView) -> u64 {
        for port in 0..self.lines.len() {
            self.drain_idle(port, view.now, view.rate);
        }
        if self.total + packet.bytes <= view.buffer.capacity() {
            return self.add(packet);
        }
        let longest = longest_with(&self.lengths, packet.queue, packet.bytes);
        if longest == packet.queue {
            return self.lengths[packet.queue];
        }
        // The longest queue holds more bytes than the arrival has, so one step makes room.
        self.take(longest, packet.bytes);
        self.add(packet)
    }

    /// Notes that a packet entered its real queue. [`arrive`](VirtualQueues::arrive) comes before.
    #[inline]
    pub fn enqueued(&mut self, packet: PacketView) {
        self.lines[packet.port].packets += 1;
    }

    /// Notes that the last bit of a real packet has left.
    #[inline]
    pub fn departed(&mut self, view: View<'_>, packet: PacketView) {
        let left = packet.bytes - self.take(packet.queue, packet.bytes);
        if left > 0 && self.queues_per_port > 1 {
            self.take_of_port(packet.port, left);
        }
        let line = &mut self.lines[packet.port];
        line.packets -= 1;
        line.drained = view.now;
    }

    /// Notes that a real packet was removed from its queue, and that the line does not send it.
    pub fn removed(&mut self, view: View<'_>, packet: PacketView) {
        let line = &mut self.lines[packet.port];
        line.packets -= 1;
        line.drained = view.now;
    }

    /// Removes up to `bytes` from a queue and returns the number of removed bytes.
    #[inline]
    fn take(&mut self, queue: usize, bytes: u64) -> u64 {
        let taken = bytes.min(self.lengths[queue]);
        self.lengths[queue] -= taken;
        self.total -= taken;
        taken
    }

    fn take_of_port(&mut self, port: usize, bytes: u64) {
        let first = port * self.queues_per_port;
        let mut left = bytes;
        for queue in first..first + self.queues_per_port {
            left -= self.take(queue, left);
        }
    }

    /// Returns the whole bytes that an idle line has sent since its virtual queues were last drained.
    fn idle_bytes(&self, port: usize, now: Instant, rate: Rate) -> u64 {
        let line = &self.lines[port];
        if line.packets > 0 {
            return 0;
        }
        let elapsed = u128::from(now.saturating_since(line.drained).0);
        u64::try_from(elapsed * u128::from(rate.0) / 8_000_000_000_000).unwrap_or(u64::MAX)
    }

    #[inline]
    fn drain_idle(&mut self, port: usize, now: Instant, rate: Rate) {
        if self.lines[port].packets > 0 {
            return;
        }
        let first = port * self.queues_per_port;
        let of_port = &self.lengths[first..first + self.queues_per_port];
        if of_port.iter().all(|length| *length == 0) {
            self.lines[port].drained = now;
        } else {
            self.drain_waiting(port, now, rate);
        }
    }

    #[inline(never)]
    fn drain_waiting(&mut self, port: usize, now: Instant, rate: Rate) {
        let first = port * self.queues_per_port;
        let waiting: u64 = self.lengths[first..first + self.queues_per_port]
            .iter()
            .sum();
        let bytes = self.idle_bytes(port, now, rate);
        self.take_of_port(port, bytes.min(waiting));
        let line = &mut self.lines[port];
        line.drained = if bytes < waiting {
            // The remaining time of a partial byte is kept for the next call.
            line.drained + exact_time(bytes, rate)
        } else {
            now
        };
    }
}

/// As [`Rate::transmission_time`], for any number of bytes.
fn exact_time(bytes: u64, rate: Rate) -> Duration {
    let ps = (u128::from(bytes) * 8_000_000_000_000).div_ceil(u128::from(rate.0));
    Duration(u64::try_from(ps).unwrap_or(u64::MAX))
}
